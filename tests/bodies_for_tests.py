"""Small bodies that several test files share."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_bricks, box_tets
from softrig.models.full import FullBody

BOXES = {"tets": box_tets, "bricks": box_bricks}
# Matrices of a hundred rows: more threads than one only wait for each other on a busy machine.
threadpool_limits(1, user_api="blas")
os.environ.setdefault("MKL_NUM_THREADS", "1")  # MKL is loaded later, with the first PARDISO
RUBBER = Material(young=1e5, poisson=0.35, density=1000.0)


def beam(
    kind: str = "bricks",
    lengths: tuple[float, float, float] = (1.0, 0.22, 0.17),
    counts: tuple[int, int, int] = (4, 1, 1),
    *,
    free: bool = False,
    material: Material = RUBBER,
    groups: int = 1,
    solver: str = "superlu",
    **options: str,
) -> FullBody:
    """A box with three different sides, held at x = 0 unless `free`; `groups` slices along x.

    SuperLU by default: for so small a body PARDISO takes longer to load than to solve.
    """
    mesh = BOXES[kind](lengths, counts)
    if groups > 1:
        mesh = sliced(mesh, groups)
    return FullBody(mesh, material, fixed=None if free else mesh.vertices[:, 0] == 0.0, solver=solver, **options)


def sliced(mesh: VolumeMesh, groups: int) -> VolumeMesh:
    """The mesh with material groups "group 0", … as slices along x."""
    middle = mesh.vertices[mesh.elements].mean(axis=1)[:, 0]
    number = np.minimum(groups * middle / np.ptp(mesh.vertices[:, 0]), groups - 1).astype(np.int32)
    return replace(mesh, groups=number, group_names=tuple(f"group {g}" for g in range(groups)))


def tip(body: FullBody) -> np.ndarray:
    """Vertices at the far end in x."""
    x = body.mesh.vertices[:, 0]
    return np.nonzero(x > x.max() - 1e-9)[0]


def tip_load(body: FullBody, force: tuple[float, float, float]) -> np.ndarray:
    """(3·free,) a force in newton shared by the vertices of the far end."""
    field = np.zeros_like(body.mesh.vertices)
    field[tip(body)] = np.asarray(force) / len(tip(body))
    return body.restrict(field)


def mass_norm(body: FullBody, u: np.ndarray) -> float:
    """√(uᵀMu)."""
    return float(np.sqrt(u @ (body.mass @ u)))


def relative(got: np.ndarray, wanted: np.ndarray) -> float:
    """‖got − wanted‖ / ‖wanted‖."""
    return float(np.linalg.norm(np.asarray(got) - wanted) / np.linalg.norm(wanted))


def momenta(body: FullBody, positions: np.ndarray, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum (about the origin) straight from Σ_ab M_ab."""
    carried = body.scalar_mass @ velocities
    return carried.sum(axis=0), np.cross(positions, carried).sum(axis=0)


def slopes(errors: list[float]) -> np.ndarray:
    """Orders of convergence between errors whose step was halved each time."""
    return np.log2(np.asarray(errors[:-1]) / np.asarray(errors[1:]))
