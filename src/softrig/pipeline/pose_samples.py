"""Poses at which the maps of a model are fitted: its own, moments of its clips, mixtures, single joints turned.

The maps add up what each joint does. Clips move joints together, and within their own range: what a joint does alone,
and beyond that range, only poses tell in which nothing else moves. Control points of wires are places in space: taken
from different moments they would tear the body apart, so they count and move all together. What moves tets and is no
feature of the pose, as the weight of a corrective morph, is what the clips make of it at such features: set free, it
would be noise to the maps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from softrig.models.pose_kernel import pose_kernel
from softrig.models.pose_space import PoseSpaceModel
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_product,
    quaternions_from_vectors,
    rotation_vectors,
    unit_quaternions,
)
from softrig.poses.selection import farthest_points
from softrig.rig.parameters import Parameters

FRAMES_A_SECOND = 15.0
"""Of the clips, from which sample poses are chosen."""
MOST_FRAMES = 4000
FROM_CLIPS, MIXED = 48, 96
"""Sample poses from the clips, and poses that take every joint from another moment of them. A gorilla's jump that the
build did not see is 0.7 to 0.9 points nearer to the truth with 96 or 144 of the latter than with 48."""
ALONE = 0.9
"""Radians that a joint turns alone, both ways about each of its axes."""
MOST_ALONE = 120
"""Poses of one joint at most; characters with many joints get those farthest from all other samples."""
FAR = 0.05
"""Joints whose turn moves the surface less than this share of what the farthest-reaching does need a clip to count."""
SHORTEST = 0.3
"""Radians: no joint's kernel is narrower; also the least share of a length or morph."""
BEYOND = 2.0
"""Half of the joints of the mixtures go so many times as far from rest, and so do other parameters alone. A gorilla's
unseen jump, in which its arms rise by 0.6 rad more than in any other clip, was off by 13.3 % with 1.5 and 12.8 with 2.
With half of the joints of every mixture it errs by 10.3 to 10.6 % (four seeds), with all joints of half of the
mixtures by 10.7 to 10.8 (three)."""
STILL = 1e-6
"""Weighted features that change less than this do not move."""
DRIVING = 400
"""Frames of the clips, at most, that tell what else moves with the joints."""
DRIVING_NOISE = 1e-3
"""Of the kernel's diagonal: how nearly they are met."""
_POINT = re.compile(r"\.\d+\.[xyz]$")
"""How the parameters of a control point end (`rig.deformers.Wire`)."""
SAME = 1e-3
"""Sample poses nearer than this, in kernel lengths, say nothing new."""


@dataclass(frozen=True, eq=False)
class MapSamples:
    """Where maps over the poses of a model are fitted."""

    sources: np.ndarray
    """(k, P) moments of the clips, or the poses and single joints turned: what mixtures are made of."""
    poses: np.ndarray
    """(t, P) the sample poses, the model's own first, joints turned alone last."""
    usual: int
    """How many come before those of joints turned alone."""
    columns: np.ndarray
    """(f,) int32 features that count, group by group."""
    groups: np.ndarray
    """(G + 1,) int32 where each group begins."""
    features: np.ndarray
    """(t, f) of the poses, weighted."""
    lengths: np.ndarray
    """(G,) of the kernel."""


def map_samples(model: PoseSpaceModel, *, seed: int) -> MapSamples | None:
    """The samples for a model's maps; none where its rig never leaves its poses."""
    frames = clip_frames(model)
    alone = poses_of_one(model, frames)
    columns, groups = feature_groups(model, np.concatenate([frames, alone]))
    if not len(columns):
        return None
    sources = frames if model.clips else np.concatenate([frames, alone])
    poses, usual = sample_poses(model, frames, alone, sources, columns, groups, seed=seed)
    if len(poses) <= len(model.poses):
        return None
    features = model.pose_features(poses)[:, columns]
    lengths = kernel_lengths(model, features, columns, groups)
    return MapSamples(sources, poses, usual, columns.astype(np.int32), groups.astype(np.int32), features, lengths)


def clip_frames(model: PoseSpaceModel) -> np.ndarray:
    """(k, P) moments of the clips; of a model without clips its poses."""
    if not model.clips:
        return model.poses.parameters
    frames = np.concatenate([clip.resample(FRAMES_A_SECOND)[1] for clip in model.clips])
    return frames[:: -(-len(frames) // MOST_FRAMES)]


def feature_groups(model: PoseSpaceModel, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f,) features that count and that the poses or frames (k, P) move, and (G + 1,) where each group begins.

    A group is a joint's rotation, all control points, or a single other parameter.
    """
    moved = np.ptp(model.pose_features(np.concatenate([model.poses.parameters, frames])), axis=0) > STILL
    features = model.pose_features
    parameters = features.parameters
    turned = set(_places(parameters)[parameters.quaternions].tolist())
    points = _places(parameters)[control_points(parameters)]
    columns: list[int] = []
    groups = [0]
    feature = 0
    while feature < len(features.weights):
        width = 3 if feature in turned else 1
        some = slice(feature, feature + width)
        if feature not in points and features.weights[some].all() and moved[some].any():
            columns += range(feature, feature + width)
            groups.append(len(columns))
        feature += width
    together = points[(features.weights[points] > 0.0) & moved[points]].tolist()
    if together:
        columns += together
        groups.append(len(columns))
    return np.array(columns, np.int64), np.array(groups, np.int64)


def _places(parameters: Parameters) -> np.ndarray:
    """(P,) the feature of each parameter. The w of a quaternion is none, so those behind it stand one place earlier."""
    return np.cumsum(~np.isin(np.arange(len(parameters)), parameters.quaternions + 3)) - 1


def control_points(parameters: Parameters) -> np.ndarray:
    """(k,) parameters that are coordinates of control points, in space."""
    found = [
        index
        for index, (name, unit) in enumerate(zip(parameters.names, parameters.units, strict=True))
        if unit == "m" and _POINT.search(name)
    ]
    return np.array(found, np.int64)


def kernel_lengths(model: PoseSpaceModel, features: np.ndarray, columns: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(G,) ℓ in weighted features: how far each group goes over the samples (t, f), at least `SHORTEST` unweighted."""
    weights = model.pose_features.weights[columns]
    spans = [np.linalg.norm(np.ptp(part, axis=1)) for part in np.split(features.T, groups[1:-1])]
    return np.maximum(spans, SHORTEST * np.maximum.reduceat(weights, groups[:-1]))


def sample_poses(
    model: PoseSpaceModel,
    frames: np.ndarray,
    alone: np.ndarray,
    mixed_from: np.ndarray,
    columns: np.ndarray,
    groups: np.ndarray,
    *,
    seed: int,
) -> tuple[np.ndarray, int]:
    """(t, P) the model's poses, frames (k, P) of the clips as far apart as can be, mixtures of the joints of
    `mixed_from` (j, P), and poses (i, P) of joints turned `alone`; and how many come before the latter."""
    mixtures = mixed_poses(model, mixed_from, MIXED, np.random.default_rng([seed, 11]))
    sources = (model.poses.parameters, frames, mixtures, alone)
    most = (len(model.poses), FROM_CLIPS, MIXED, MOST_ALONE)
    whole = np.concatenate(sources)
    features = model.pose_features(whole)[:, columns]
    scaled = features / np.repeat(kernel_lengths(model, features, columns, groups), np.diff(groups))
    chosen, begin, usual = np.arange(len(model.poses)), len(model.poses), 0
    for source, count in zip(sources[1:], most[1:], strict=True):
        end, usual = begin + len(source), len(chosen)
        if begin < end:
            found = farthest_points(scaled[begin:end], scaled[chosen], count, SAME)
            chosen = np.concatenate([chosen, begin + np.array(found, np.int64)])
        begin = end
    return whole[chosen], usual


def with_driven(model: PoseSpaceModel, poses: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """`poses` (k, P) with all numbers that are no feature as the frames (t, P) have them, where these move them.

    Regressed on the features that count, joint by joint, within the frames' range. On skeletons, whose tets follow the
    bones alone, such parameters move nothing that a map learns.
    """
    if model.tet_rig.kind == "skin" and model.tet_rig.frame_fit is None:
        return poses
    parameters = model.rig.parameters
    turns = parameters.quaternions[:, None] + np.arange(4)
    others = np.setdiff1d(np.arange(len(parameters)), turns)
    others = others[model.pose_features.weights[_places(parameters)[others]] == 0.0]
    driven = others[np.ptp(frames[:, others], axis=0) > STILL]
    columns, groups = feature_groups(model, frames)
    if not (len(driven) and len(columns)):
        return poses
    frames = frames[:: -(-len(frames) // DRIVING)]
    features = model.pose_features(frames)[:, columns]
    asked = np.clip(model.pose_features(poses)[:, columns], features.min(axis=0), features.max(axis=0))
    lengths = kernel_lengths(model, features, columns, groups)
    kernel = pose_kernel(features, features, groups, lengths, pairs=0.0)
    kernel += DRIVING_NOISE * kernel[0, 0] * np.eye(len(kernel))
    mean = frames[:, driven].mean(axis=0)
    learned = cho_solve(cho_factor(kernel, lower=True), frames[:, driven] - mean)
    poses = poses.copy()
    poses[:, driven] = mean + pose_kernel(asked, features, groups, lengths, pairs=0.0) @ learned
    return poses


def poses_of_one(model: PoseSpaceModel, frames: np.ndarray) -> np.ndarray:
    """(k, P) the first pose with one joint turned by ± `ALONE` about one of its axes, or with one other parameter
    `BEYOND` times as far from there as any frame (t, P); if that is an angle, as far as a joint, too. What it drives
    goes with it.

    Of those that the frames move; of a model without clips, all joints that reach far enough.
    """
    parameters, start = model.rig.parameters, model.poses.parameters[0]
    places = _places(parameters)
    moved = (np.ptp(model.pose_features(frames), axis=0) > STILL)[places]
    turned = np.array([moved[place : place + 3].any() for place in parameters.quaternions], np.bool_)
    if not model.clips:
        reach = model.pose_features.weights[places[parameters.quaternions]]
        turned |= reach > FAR * reach.max(initial=0.0)
    joints = parameters.quaternions[turned]
    turns = quaternions_from_vectors(ALONE * np.concatenate([np.eye(3), -np.eye(3)]))
    ends = start + BEYOND * (np.stack([frames.min(axis=0), frames.max(axis=0)]) - start)
    least = np.where(np.array(parameters.units) == "rad", ALONE, 0.0)
    ends = np.stack([np.minimum(ends[0], start - least), np.maximum(ends[1], start + least)])
    others = np.setdiff1d(np.flatnonzero(moved), parameters.quaternions[:, None] + np.arange(4))
    others = np.setdiff1d(others, control_points(parameters))
    found = np.tile(start, (len(turns) * len(joints) + len(ends) * len(others), 1))
    for index, place in enumerate(joints):
        rows = found[len(turns) * index : len(turns) * (index + 1), place : place + 4]
        rows[:] = quaternion_product(unit_quaternions(rows), turns)
    for index, place in enumerate(others):
        begin = len(turns) * len(joints) + len(ends) * index
        found[begin : begin + len(ends), place] = ends[:, place]
    return with_driven(model, found, frames)


def mixed_poses(model: PoseSpaceModel, frames: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """(count, P) poses that take each joint, other parameter, or all control points, from a frame (k, P) of their own.

    By chance half of these go `BEYOND` times as far from rest: somebody will pose the character as no clip does. What
    they drive goes with them.
    """
    parameters = model.rig.parameters
    owner = np.arange(len(parameters))
    for start in parameters.quaternions:
        owner[start : start + 4] = start
    points = control_points(parameters)
    owner[points] = points[:1]
    picks = random.integers(len(frames), size=(count, len(parameters)))[:, owner]
    mixed = frames[picks, np.arange(len(parameters))]
    farther = random.integers(2, size=mixed.shape)[:, owner] == 1
    return with_driven(model, np.where(farther, _exaggerated(parameters, mixed), mixed), frames)


def _exaggerated(parameters: Parameters, poses: np.ndarray) -> np.ndarray:
    """(k, P) poses `BEYOND` times as far from rest."""
    where = parameters.quaternions[:, None] + np.arange(4)
    rest = unit_quaternions(parameters.rest[where])
    turns = rotation_vectors(quaternion_product(quaternion_conjugate(rest), unit_quaternions(poses[:, where])))
    poses = parameters.rest + BEYOND * (poses - parameters.rest)
    poses[:, where] = quaternion_product(rest, quaternions_from_vectors(BEYOND * turns))
    return poses
