"""External forces on the vertices of a volume mesh, (n, 3), newton."""

from __future__ import annotations

import numpy as np

from softrig.errors import require_indices, require_vectors
from softrig.fem.embedding import Embedding

STANDARD_GRAVITY = 9.80665
"""metre per second²."""


def gravity_force(
    vertex_mass: np.ndarray, acceleration: tuple[float, float, float] = (0.0, 0.0, -STANDARD_GRAVITY)
) -> np.ndarray:
    """Weight of every vertex; `vertex_mass` (n,) kilogram, z up by default."""
    return vertex_mass[:, None] * np.asarray(acceleration, dtype=np.float64)


def point_force(count: int, vertices: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Forces (k, 3) or one (3,) for all, newton, at k of `count` vertices; repeated vertices add up."""
    vertices = require_indices(vertices, count, "vertices")
    field = np.zeros((count, 3))
    np.add.at(field, vertices, require_vectors(forces, len(vertices), "forces"))
    return field


def pressure_force(positions: np.ndarray, triangles: np.ndarray, pressure: float | np.ndarray) -> np.ndarray:
    """Pressure (pascal; one number or (t,)) on outward triangles (t, 3) at `positions` (n, 3): pushes inwards.

    A follower load: give the current positions for the true one, rest positions for a dead load.
    """
    corners = positions[triangles]
    area_normals = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    shares = -np.asarray(pressure, dtype=np.float64).reshape(-1, 1) * area_normals / 3.0
    field = np.zeros_like(positions)
    for corner in range(3):
        np.add.at(field, triangles[:, corner], shares)
    return field


def pull_force(
    positions: np.ndarray, embedding: Embedding, targets: np.ndarray, stiffness: float, most: float = np.inf
) -> np.ndarray:
    """Springs (newton per metre) from embedded points to `targets` (m, 3), each at most `most` newton.

    What a mouse does to the flesh: the embedding may be one vertex, a patch, or a point on the drawn surface.
    """
    forces = stiffness * (np.asarray(targets, dtype=np.float64) - embedding.carry(positions))
    lengths = np.linalg.norm(forces, axis=1, keepdims=True)
    forces = forces * np.minimum(1.0, most / np.maximum(lengths, 1e-300))
    return embedding.spread(forces, len(positions))
