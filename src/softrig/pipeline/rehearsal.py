"""A rehearsal: the full body lives through the most violent moments of the clips, and its shapes go into the basis.

Shapes found from loads span whatever a rig may do; shapes the body really took span what it will be asked to do again,
and few of them are enough (`REHEARSED` in `pipeline/shapes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.errors import SolverError
from softrig.models.moving import FullSimulation
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.cache import Arrays, StageCache, content_hash
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.parallel import Progress, cached_each
from softrig.rig.clip import Clip

RATE = 90.0
"""Steps a second: half the rate at which it will be simulated is enough to see the shapes."""
EVERY = 2
"""So many steps lie between two shapes that are kept."""
SHORTEST = 0.5
"""Seconds: shorter parts of a clip are not worth starting."""
MOST_SHAPES = 100
"""A part's shapes are compressed to so many."""
NOTHING = 1e-8
"""Share of the mean square displacement below which a compressed shape is left out."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A part of a clip to live through; sent to a worker."""

    model: PoseSpaceModel
    young: np.ndarray
    poisson: np.ndarray
    damping: Rayleigh
    poses: np.ndarray
    """(f, P) at `RATE` frames a second."""


def rehearse(
    model: PoseSpaceModel,
    fabric: Fabric,
    damping: Rayleigh,
    seconds: float,
    cache: StageCache,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[np.ndarray]:
    """For each part of the clips, in all about `seconds` long, (n, 3, k) shapes that the full body took.

    In the frames' coordinates (R_vᵀu), every part scaled so that its mean square mass norm is one.
    """
    parts = violent_parts(model, seconds)
    scenes = [Scene(model, fabric.young, fabric.poisson, damping, poses) for poses in parts]
    common = content_hash(
        model.vertices,
        model.tets,
        model.fixed,
        model.vertex_mass,
        model.tet_rig.corrections,
        model.poses.features,
        model.poses.feature_weights,
        model.interpolation,
        model.law,
        fabric.young,
        fabric.poisson,
        [damping.mass, damping.stiffness, RATE, EVERY],
    )
    keys = [content_hash(common, scene.poses) for scene in scenes]
    found = cached_each(cache, "rehearsal", keys, lived_through, scenes, jobs, progress)
    return [arrays["shapes"] for arrays in found if arrays["shapes"].shape[2]]


def violent_parts(model: PoseSpaceModel, seconds: float) -> list[np.ndarray]:
    """Poses (f, P) of a part of each clip: of every clip its share of `seconds`, where the rig accelerates most."""
    clips = [clip for clip in model.clips if clip.duration >= 2.0 / RATE]
    total = sum(clip.duration for clip in clips)
    parts = []
    for clip in clips:
        length = min(clip.duration, max(SHORTEST, seconds * clip.duration / max(total, 1e-300)))
        times = clip.duration if clip.duration - length < SHORTEST else length
        parts.append(_most_violent(model, clip, times))
    return _longest_first(parts, seconds)


def _longest_first(parts: list[np.ndarray], seconds: float) -> list[np.ndarray]:
    """The parts, long ones first (so that workers end together), as many as fit into twice the time."""
    kept: list[np.ndarray] = []
    spent = 0.0
    for poses in sorted(parts, key=len, reverse=True):
        if kept and spent + len(poses) / RATE > 2.0 * seconds:
            break
        spent += len(poses) / RATE
        kept.append(poses)
    return kept


def _most_violent(model: PoseSpaceModel, clip: Clip, length: float) -> np.ndarray:
    """(f, P) of the `length` seconds of a clip in which surface vertices accelerate most."""
    _, poses = clip.resample(RATE)
    count = round(length * RATE) + 1
    if len(poses) <= count:
        return poses
    some = np.unique(np.linspace(0, model.rig.vertex_count - 1, 64).astype(int))
    places = np.stack([model.rig.positions(pose, some) for pose in poses])
    square = np.sum(np.diff(places, 2, axis=0) ** 2, axis=(1, 2))
    sums = np.concatenate([[0.0], np.cumsum(square)])
    width = count - 2
    start = int(np.argmax(sums[width:] - sums[:-width]))
    return poses[start : start + count]


def lived_through(scene: Scene) -> Arrays:
    """The shapes of one part, compressed; a motion that the full step cannot follow ends where it fails."""
    model = scene.model
    full = FullSimulation(model, scene.young, scene.poisson, rate=RATE, damping=scene.damping, gravity=(0.0, 0.0, 0.0))
    full.place(full.carriers_at(scene.poses[0]))
    shapes = []
    for index, moment in enumerate(carrier_steps(full.carriers_at, scene.poses, RATE, RATE)):
        try:
            full.step(*moment)
        except SolverError:
            break
        if index % EVERY == EVERY - 1:
            shapes.append(np.einsum("nji,nj->ni", full.frames, full.displacements()))
    return {"shapes": compressed(shapes, model.vertex_mass)}


def compressed(shapes: Sequence[np.ndarray], vertex_mass: np.ndarray) -> np.ndarray:
    """(n, 3, k) with the same mean square as the shapes (n, 3), up to a factor that makes it one: their mass-PCA."""
    if not len(shapes):
        return np.zeros((len(vertex_mass), 3, 0))
    stack = np.stack(shapes, axis=2)
    gram = np.einsum("nik,nil,n->kl", stack, stack, vertex_mass, optimize=True)
    values, vectors = np.linalg.eigh(gram)
    total = float(np.trace(gram))
    kept = np.flatnonzero(values > NOTHING * total)[::-1][:MOST_SHAPES]
    return stack @ vectors[:, kept] / np.sqrt(max(total, 1e-300))
