"""Shapes of single tet vertices, in fixed point (`Rows`): displacements, and reduced forces of point loads."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_frames import mixed_quaternion


@njit(cache=True)
def add_local_displacements(
    vertices: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    of_vertex: np.ndarray,
    offsets: np.ndarray,
    numbers: np.ndarray,
    units: np.ndarray,
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
    factors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add Rᵀu to (k, 3) of tet vertices (k,), metres; `factors` (m_b · r,) scratch."""
    current, width = -1, 0
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
        if own < 0:
            continue
        if own != current:
            current, width = own, 0
            for b in range(basis.shape[0]):
                for t in range(starts[own], starts[own + 1]):
                    column = columns[t]
                    factors[width] = units[b, column] * basis[b] * upsilon[column] * q[column]
                    width += 1
        at = offsets[vertices[k]]
        for i in range(3):
            out[k, i] += _row_product(numbers[at : at + width], factors)
            at += width


@njit(cache=True, forceinline=True, fastmath=FAST)
def _row_product(numbers: np.ndarray, factors: np.ndarray) -> float:
    total = 0.0
    for t in range(numbers.shape[0]):
        total += numbers[t] * factors[t]
    return total


@njit(cache=True)
def turn_vectors(
    vertices: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    root: int,
    blended: bool,
    vectors: np.ndarray,
) -> None:
    """Turn vectors (k, 3) of tet vertices (k,) by their R_v."""
    for k in range(vertices.shape[0]):
        x, y, z, w, s = mixed_quaternion(vertices[k], starts, bones, weights, quaternions, root, blended)
        # By the quaternion alone: v + s (w t + q × t) with t = q × v.
        u0, u1, u2 = vectors[k, 0], vectors[k, 1], vectors[k, 2]
        t0, t1, t2 = y * u2 - z * u1, z * u0 - x * u2, x * u1 - y * u0
        vectors[k, 0] = u0 + s * (w * t0 + y * t2 - z * t1)
        vectors[k, 1] = u1 + s * (w * t1 + z * t0 - x * t2)
        vectors[k, 2] = u2 + s * (w * t2 + x * t1 - y * t0)


@njit(cache=True)
def add_point_loads(
    vertices: np.ndarray,
    forces: np.ndarray,
    rotations: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    of_vertex: np.ndarray,
    offsets: np.ndarray,
    numbers: np.ndarray,
    units: np.ndarray,
    basis: np.ndarray,
    force: np.ndarray,
) -> None:
    """force += Σ_v Σ_i w_i V_i[v]ᵀ R_vᵀ F_v; `rotations` (≥ k, 9)."""
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
        if own < 0:
            continue
        begin, at = starts[own], offsets[vertices[k]]
        width = starts[own + 1] - begin
        R = rotations[k]
        for i in range(3):
            local = R[i] * forces[k, 0] + R[3 + i] * forces[k, 1] + R[6 + i] * forces[k, 2]
            for b in range(basis.shape[0]):
                factor = basis[b] * local
                for t in range(width):
                    column = columns[begin + t]
                    force[column] += factor * units[b, column] * numbers[at + t]
                at += width


@njit(cache=True)
def within(
    limit: float,
    vertices: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    of_vertex: np.ndarray,
    offsets: np.ndarray,
    numbers: np.ndarray,
    units: np.ndarray,
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
) -> bool:
    """Whether no tet vertex of (k,) moves by more than `limit`, metres."""
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
        if own < 0:
            continue
        begin, at, square = starts[own], offsets[vertices[k]], 0.0
        width = starts[own + 1] - begin
        for _ in range(3):
            move = 0.0
            for b in range(basis.shape[0]):
                for t in range(width):
                    column = columns[begin + t]
                    move += basis[b] * units[b, column] * numbers[at + t] * upsilon[column] * q[column]
                at += width
            square += move * move
        if not square <= limit * limit:
            return False
    return True
