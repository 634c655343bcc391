"""Blend shapes and linear blend skinning of some or all vertices, compiled: a row of a sparse table a vertex."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def blend_points(
    starts: np.ndarray,
    targets: np.ndarray,
    moves: np.ndarray,
    p: np.ndarray,
    vertices: np.ndarray,
    places: np.ndarray,
    points: np.ndarray,
) -> None:
    """Add Σ_t p_t d_t of `vertices` (m,) to what stands at their `places` (m,) among `points`.

    The displacements of vertex v are `moves` (k, 3) from `starts` (n + 1,) [v] on, those of `targets` (k,).
    """
    for m in range(vertices.shape[0]):
        point = points[places[m]]
        for k in range(starts[vertices[m]], starts[vertices[m] + 1]):
            weight = p[targets[k]]
            point[0] += weight * moves[k, 0]
            point[1] += weight * moves[k, 1]
            point[2] += weight * moves[k, 2]


@njit(cache=True)
def skinned_points(
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    points: np.ndarray,
    vertices: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Σ_k w_k M_k [x; 1] of `points` (m, 3) of `vertices` (m,), with bone `matrices` (B, 3, 4).

    `weights` (k,) of `bones` (k,) from `starts` (n + 1,) [v] on carry vertex v.
    """
    for m in range(vertices.shape[0]):
        px, py, pz = points[m, 0], points[m, 1], points[m, 2]
        x, y, z = 0.0, 0.0, 0.0
        for k in range(starts[vertices[m]], starts[vertices[m] + 1]):
            weight, M = weights[k], matrices[bones[k]]
            x += weight * (M[0, 0] * px + M[0, 1] * py + M[0, 2] * pz + M[0, 3])
            y += weight * (M[1, 0] * px + M[1, 1] * py + M[1, 2] * pz + M[1, 3])
            z += weight * (M[2, 0] * px + M[2, 1] * py + M[2, 2] * pz + M[2, 3])
        out[m, 0], out[m, 1], out[m, 2] = x, y, z
