"""What accelerations of the rig do to the modes: exact for bones, by a few vertices for any other rig (PSSD §5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softrig.forces.inertia import correction_inertia, skin_inertia, train_inertia
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.tet_motion import TetCarriers, tet_carriers
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.posing import Posing
from softrig.pipeline.shapes import Shapes
from softrig.project import Project

STEP = 1.0 / 120.0
"""Seconds between the poses whose second difference is an acceleration."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """C_i of the poses."""

    matrices: np.ndarray
    """(m, r, L)."""
    vertices: np.ndarray
    """(n_s,) int32 vertices that stand for all; none for bones."""
    report: dict[str, Any]


def make_inertia(flesh: Flesh, posing: Posing, shapes: Shapes, mass: np.ndarray, project: Project) -> Inertia:
    """The inertial forces of a skinned character or of a black box."""
    X, unit = flesh.mesh.vertices, flesh.unit_mass
    frames = np.stack([posing.frames(p, X, unit) for p in posing.table.parameters])
    rotations = np.stack([posing.vertex_rotations(p, X, unit) for p in posing.table.parameters])
    if posing.tet_rig.kind == "skin":
        assert posing.tet_rig.weights is not None
        matrices = skin_inertia(
            shapes.shapes,
            mass,
            X,
            posing.tet_rig.corrections,
            posing.tet_rig.weights,
            np.stack([posing.matrices(p)[:, :3] for p in posing.table.parameters]),
            rotations,
            frames,
        )
        return Inertia(matrices, np.zeros(0, np.int32), {"kind": "projection, exact at the poses"})
    trained = train_inertia(
        lambda p: posing.carried_by_black_box(p, X),
        posing.table.parameters,
        posing.rig.parameters,
        shapes.shapes,
        frames[:, 0],
        mass,
        float(np.linalg.norm(np.ptp(X, axis=0))),
        seed=project.seed,
    )
    direct = trained.matrices
    late = correction_inertia(shapes.shapes, mass, posing.tet_rig.corrections)
    report = {"kind": "vertex cubature", "vertices": len(trained.vertices), "errors": trained.errors.tolist()}
    return Inertia(np.concatenate([direct, late], axis=2), trained.vertices, report)


def clip_inertia_errors(model: PoseSpaceModel, frames: int = 12) -> dict[str, float]:
    """Of each clip, the largest relative error of the reduced inertial force against Σ_v V_vᵀ m_v R_vᵀ ẍ_v.

    At moments spread over the clip, mostly between the poses; moments of little acceleration are left out.
    """
    carriers = tet_carriers(model)
    worst = {}
    for clip in model.clips:
        moments = clip.duration * (np.arange(frames) + 0.5) / frames
        pairs = [inertial_forces(model, carriers, clip.sample(moment + STEP * np.arange(-1, 2))) for moment in moments]
        sizes = np.array([np.linalg.norm(exact) for _, exact in pairs])
        misses = np.array([np.linalg.norm(reduced - exact) for reduced, exact in pairs])
        telling = sizes > 0.1 * sizes.max(initial=0.0)
        worst[clip.name] = float((misses[telling] / sizes[telling]).max(initial=0.0))
    return worst


def inertial_forces(model: PoseSpaceModel, carriers: TetCarriers, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(r,) by the model's matrices and (r,) by all vertices, in the middle of three poses (3, P) `STEP` apart.

    Both without what the rest of the body adds, which is no projection (`pipeline.yielding`).
    """
    skin = model.tet_rig.kind == "skin"
    places = [model.bone_matrices(p) if skin else model.shepard_positions(p) for p in poses]
    before, z, after = (
        np.concatenate([place.ravel(), model.pose_weights(p)]) for place, p in zip(places, poses, strict=True)
    )
    speed, acceleration = (after - before) / (2.0 * STEP), (after - 2.0 * z + before) / STEP**2
    motion = carriers.motion(z, speed, acceleration)
    loads = load_vector(model, model.frame_rotations(poses[1]), speed, acceleration)
    reduced = model.inertia_at(poses[1]) @ loads
    if model.yielding is not None:
        reduced -= model.yielding @ loads[: model.yielding.shape[1]]
    own = np.tensordot(model.basis_weights(poses[1]), model.shapes, axes=1)
    seen = np.einsum("nji,nj->ni", model.vertex_rotations(poses[1]), motion.accelerations)
    return reduced, np.einsum("nik,n,ni->k", own, model.vertex_mass, seen, optimize=True)


def load_vector(model: PoseSpaceModel, frames: np.ndarray, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """(L,) what `PoseSpaceModel.inertia_at` is multiplied by, from rates of carrier values and frame rotations."""
    late = len(acceleration) - len(model.poses)
    if model.tet_rig.kind != "skin":
        chosen = acceleration[:late].reshape(-1, 3)[model.cubature.inertial_vertices]
        return np.concatenate([(chosen @ frames[0]).ravel(), acceleration[late:]])
    turns = np.broadcast_to(frames, (late // 12, 3, 3))
    moved, moving = (np.einsum("bji,bjk->bik", turns, part[:late].reshape(-1, 3, 4)) for part in (acceleration, speed))
    parts = [moved.ravel(), acceleration[late:]]
    if model.inertia_map is not None:
        # RᵀṀ of a rigid bone is skew.
        spin = 0.5 * np.stack([moving[:, j, i] - moving[:, i, j] for i, j in ((1, 2), (2, 0), (0, 1))], axis=1)
        parts.append(2.0 * np.einsum("ba,j->bja", spin, speed[late:]).ravel())
    return np.concatenate(parts)
