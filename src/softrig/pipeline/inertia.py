"""What accelerations of the rig do to the modes: exact for bones, by a few vertices for any other rig (PSSD §5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softrig.forces.inertia import correction_inertia, skin_inertia, train_inertia
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.posing import Posing
from softrig.pipeline.shapes import Shapes
from softrig.project import Project


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
    if posing.bones is not None:
        assert posing.tet_rig.weights is not None
        matrices = skin_inertia(
            shapes.shapes,
            mass,
            X,
            posing.tet_rig.corrections,
            posing.tet_rig.weights,
            np.stack([posing.bones.matrices(p)[:, :3] for p in posing.table.parameters]),
            rotations,
            frames,
        )
        return Inertia(matrices, np.zeros(0, np.int32), {"kind": "exact projection"})
    trained = train_inertia(
        lambda p: posing.carried_by_surface(p, X),
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
