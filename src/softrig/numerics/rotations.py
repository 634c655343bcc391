"""Rotations: signed singular values and polar factors of 3×3 matrices, rotation vectors, quaternions.

The 3×3 kernels are compiled and write into arrays the caller owns, so that loops over elements
allocate nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_SWEEPS = 12


@njit(cache=True)
def symmetric_eigen3(matrix: np.ndarray, vectors: np.ndarray) -> None:
    """Diagonalise a symmetric 3×3 `matrix` in place by Jacobi rotations; columns of `vectors` turn with it.

    On return the diagonal of `matrix` holds the eigenvalues, unsorted. det(vectors) stays +1.
    """
    for i in range(3):
        for j in range(3):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(_SWEEPS):
        off = matrix[0, 1] ** 2 + matrix[0, 2] ** 2 + matrix[1, 2] ** 2
        if off <= 1e-40 * (matrix[0, 0] ** 2 + matrix[1, 1] ** 2 + matrix[2, 2] ** 2):
            return
        for pair in range(3):
            p = 0 if pair < 2 else 1
            q = 1 if pair == 0 else 2
            apq = matrix[p, q]
            if apq == 0.0:
                continue
            theta = 0.5 * (matrix[q, q] - matrix[p, p]) / apq
            t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
            if theta < 0.0:
                t = -t
            c = 1.0 / np.sqrt(t * t + 1.0)
            s = t * c
            r = 3 - p - q
            arp = matrix[r, p]
            arq = matrix[r, q]
            matrix[p, p] -= t * apq
            matrix[q, q] += t * apq
            matrix[p, q] = matrix[q, p] = 0.0
            matrix[r, p] = matrix[p, r] = c * arp - s * arq
            matrix[r, q] = matrix[q, r] = s * arp + c * arq
            for i in range(3):
                vip = vectors[i, p]
                viq = vectors[i, q]
                vectors[i, p] = c * vip - s * viq
                vectors[i, q] = s * vip + c * viq


@njit(cache=True)
def _any_perpendicular(a: np.ndarray, column: int) -> None:
    """Fill column + 1 of `a` with a unit vector perpendicular to the unit vector in `column`."""
    x, y, z = a[0, column], a[1, column], a[2, column]
    if abs(x) < 0.6:
        px, py, pz = 0.0, z, -y
    else:
        px, py, pz = -z, 0.0, x
    scale = 1.0 / np.sqrt(px * px + py * py + pz * pz)
    a[0, column + 1], a[1, column + 1], a[2, column + 1] = px * scale, py * scale, pz * scale


@njit(cache=True)
def svd3(F: np.ndarray, U: np.ndarray, s: np.ndarray, V: np.ndarray, work: np.ndarray) -> None:
    """F = U diag(s) Vᵀ with det U = det V = 1 and s[0] ≥ s[1] ≥ |s[2]|: s[2] < 0 where F is inverted.

    `work` is a 3×3 scratch array. The signed convention (Irving et al. 2004) keeps material laws
    smooth through inversion.
    """
    for i in range(3):
        for j in range(3):
            work[i, j] = F[0, i] * F[0, j] + F[1, i] * F[1, j] + F[2, i] * F[2, j]
    symmetric_eigen3(work, V)
    # Sort columns of V by falling eigenvalue; a swap flips one column to keep det V = 1.
    for i in range(2):
        for j in range(2 - i):
            if work[j, j] < work[j + 1, j + 1]:
                work[j, j], work[j + 1, j + 1] = work[j + 1, j + 1], work[j, j]
                for k in range(3):
                    V[k, j], V[k, j + 1] = V[k, j + 1], -V[k, j]
    for j in range(2):
        for i in range(3):
            U[i, j] = F[i, 0] * V[0, j] + F[i, 1] * V[1, j] + F[i, 2] * V[2, j]
    s[0] = np.sqrt(U[0, 0] ** 2 + U[1, 0] ** 2 + U[2, 0] ** 2)
    if s[0] == 0.0:
        for i in range(3):
            s[i] = 0.0
            for j in range(3):
                U[i, j] = V[i, j]
        return
    for i in range(3):
        U[i, 0] /= s[0]
    along = U[0, 0] * U[0, 1] + U[1, 0] * U[1, 1] + U[2, 0] * U[2, 1]
    for i in range(3):
        U[i, 1] -= along * U[i, 0]
    s[1] = np.sqrt(U[0, 1] ** 2 + U[1, 1] ** 2 + U[2, 1] ** 2)
    if s[1] > 1e-14 * s[0]:
        for i in range(3):
            U[i, 1] /= s[1]
    else:
        _any_perpendicular(U, 0)
    U[0, 2] = U[1, 0] * U[2, 1] - U[2, 0] * U[1, 1]
    U[1, 2] = U[2, 0] * U[0, 1] - U[0, 0] * U[2, 1]
    U[2, 2] = U[0, 0] * U[1, 1] - U[1, 0] * U[0, 1]
    total = 0.0
    for i in range(3):
        total += U[i, 2] * (F[i, 0] * V[0, 2] + F[i, 1] * V[1, 2] + F[i, 2] * V[2, 2])
    s[2] = total


@njit(cache=True)
def rotation_from_vector(vector: np.ndarray, R: np.ndarray) -> None:
    """Write exp of the skew matrix of `vector` (radians) into R (Rodrigues)."""
    x, y, z = vector[0], vector[1], vector[2]
    square = x * x + y * y + z * z
    angle = np.sqrt(square)
    if angle > 1e-6:
        a = np.sin(angle) / angle
        b = (1.0 - np.cos(angle)) / square
    else:  # series, exact to rounding at this size
        a = 1.0 - square / 6.0
        b = 0.5 - square / 24.0
    c = np.cos(angle)
    R[0, 0], R[0, 1], R[0, 2] = c + b * x * x, b * x * y - a * z, b * x * z + a * y
    R[1, 0], R[1, 1], R[1, 2] = b * x * y + a * z, c + b * y * y, b * y * z - a * x
    R[2, 0], R[2, 1], R[2, 2] = b * x * z - a * y, b * y * z + a * x, c + b * z * z


def skew(vectors: np.ndarray) -> np.ndarray:
    """(..., 3, 3) matrices S(v) with S(v) w = v × w."""
    result = np.zeros((*vectors.shape, 3))
    x, y, z = np.moveaxis(vectors, -1, 0)
    result[..., 0, 1], result[..., 0, 2], result[..., 1, 2] = -z, y, -x
    result[..., 1, 0], result[..., 2, 0], result[..., 2, 1] = z, -y, x
    return result
