"""Poses at which the maps of a model are fitted: its own, moments of its clips, and mixtures of them."""

from __future__ import annotations

import numpy as np

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
FROM_CLIPS, MIXED = 48, 48
"""Sample poses from the clips, and poses that take every joint from another moment of them."""
SHORTEST = 0.3
"""Radians: no joint's kernel is narrower; also the least share of a length or morph."""
BEYOND = 1.5
STILL = 1e-6
"""Weighted features that change less than this do not move."""
SAME = 1e-3
"""Sample poses nearer than this, in kernel lengths, say nothing new."""


def clip_frames(model: PoseSpaceModel) -> np.ndarray:
    """(k, P) moments of the clips."""
    frames = np.concatenate([clip.resample(FRAMES_A_SECOND)[1] for clip in model.clips])
    return frames[:: -(-len(frames) // MOST_FRAMES)]


def feature_groups(model: PoseSpaceModel, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f,) features that count and that the poses or frames (k, P) move, and (G + 1,) where each group begins.

    A group is a joint's rotation, or a single other parameter.
    """
    moved = np.ptp(model.pose_features(np.concatenate([model.poses.parameters, frames])), axis=0) > STILL
    features = model.pose_features
    parameters = features.parameters
    # The w of a quaternion is no feature, so those behind it stand one place earlier.
    place = np.cumsum(~np.isin(np.arange(len(parameters)), parameters.quaternions + 3)) - 1
    turned = {int(place[start]) for start in parameters.quaternions}
    columns: list[int] = []
    groups = [0]
    feature = 0
    while feature < len(features.weights):
        width = 3 if feature in turned else 1
        some = slice(feature, feature + width)
        if features.weights[some].all() and moved[some].any():
            columns += range(feature, feature + width)
            groups.append(len(columns))
        feature += width
    return np.array(columns, np.int64), np.array(groups, np.int64)


def kernel_lengths(model: PoseSpaceModel, features: np.ndarray, columns: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(G,) ℓ in weighted features: how far each group goes over the samples (t, f), at least `SHORTEST` unweighted."""
    weights = model.pose_features.weights[columns]
    spans = [np.linalg.norm(np.ptp(part, axis=1)) for part in np.split(features.T, groups[1:-1])]
    return np.maximum(spans, SHORTEST * np.maximum.reduceat(weights, groups[:-1]))


def sample_poses(
    model: PoseSpaceModel, frames: np.ndarray, columns: np.ndarray, groups: np.ndarray, *, seed: int
) -> np.ndarray:
    """(t, P) the model's poses, frames (k, P) of the clips as far apart as can be, and mixtures of their joints."""
    mixtures = mixed_poses(model, frames, MIXED, np.random.default_rng([seed, 11]))
    whole = np.concatenate([model.poses.parameters, frames, mixtures])
    features = model.pose_features(whole)[:, columns]
    scaled = features / np.repeat(kernel_lengths(model, features, columns, groups), np.diff(groups))
    own, last = len(model.poses), len(model.poses) + len(frames)
    chosen = own + np.array(farthest_points(scaled[own:last], scaled[:own], FROM_CLIPS, SAME), np.int64)
    held = np.concatenate([scaled[:own], scaled[chosen]])
    blends = last + np.array(farthest_points(scaled[last:], held, MIXED, SAME), np.int64)
    return np.concatenate([whole[:own], whole[chosen], whole[blends]])


def mixed_poses(model: PoseSpaceModel, frames: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """(count, P) poses that take each joint, or other parameter, from a frame (k, P) of its own.

    Every other one goes `BEYOND` times as far from rest: somebody will pose the character as no clip does.
    """
    parameters = model.rig.parameters
    owner = np.arange(len(parameters))
    for start in parameters.quaternions:
        owner[start : start + 4] = start
    picks = random.integers(len(frames), size=(count, len(parameters)))[:, owner]
    mixed = frames[picks, np.arange(len(parameters))]
    mixed[1::2] = _exaggerated(parameters, mixed[1::2])
    return mixed


def _exaggerated(parameters: Parameters, poses: np.ndarray) -> np.ndarray:
    """(k, P) poses `BEYOND` times as far from rest."""
    where = parameters.quaternions[:, None] + np.arange(4)
    rest = unit_quaternions(parameters.rest[where])
    turns = rotation_vectors(quaternion_product(quaternion_conjugate(rest), unit_quaternions(poses[:, where])))
    poses = parameters.rest + BEYOND * (poses - parameters.rest)
    poses[:, where] = quaternion_product(rest, quaternions_from_vectors(BEYOND * turns))
    return poses
