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


# Quaternions are (..., 4) arrays in the order x, y, z, w (glTF), any number of leading axes.


def unit_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """(..., 4) of length one; a quaternion of length zero becomes the identity."""
    lengths = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    identity = np.array([0.0, 0.0, 0.0, 1.0])
    return np.where(lengths > 0.0, quaternions / np.where(lengths > 0.0, lengths, 1.0), identity)


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., 4) the rotation `b` followed by the rotation `a`."""
    ax, ay, az, aw = np.moveaxis(np.asarray(a, dtype=np.float64), -1, 0)
    bx, by, bz, bw = np.moveaxis(np.asarray(b, dtype=np.float64), -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def quaternion_conjugate(quaternions: np.ndarray) -> np.ndarray:
    """(..., 4) the inverse rotation of unit quaternions."""
    return quaternions * np.array([-1.0, -1.0, -1.0, 1.0])


def quaternion_matrices(quaternions: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation matrices; the quaternions need not be of unit length."""
    x, y, z, w = np.moveaxis(unit_quaternions(np.asarray(quaternions, dtype=np.float64)), -1, 0)
    R = np.empty((*x.shape, 3, 3))
    R[..., 0, 0], R[..., 1, 1] = 1.0 - 2.0 * (y * y + z * z), 1.0 - 2.0 * (x * x + z * z)
    R[..., 2, 2] = 1.0 - 2.0 * (x * x + y * y)
    R[..., 0, 1], R[..., 1, 0] = 2.0 * (x * y - z * w), 2.0 * (x * y + z * w)
    R[..., 0, 2], R[..., 2, 0] = 2.0 * (x * z + y * w), 2.0 * (x * z - y * w)
    R[..., 1, 2], R[..., 2, 1] = 2.0 * (y * z - x * w), 2.0 * (y * z + x * w)
    return R


def quaternions_from_matrices(rotations: np.ndarray) -> np.ndarray:
    """(..., 4) unit quaternions of (..., 3, 3) rotation matrices, by the largest of the four (Shepperd 1978)."""
    R = np.asarray(rotations, dtype=np.float64)
    d0, d1, d2 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    # Row k is 4 q_k q: whichever component is largest gives the quaternion without cancellation.
    rows = np.empty((*R.shape[:-2], 4, 4))
    rows[..., 0, 0], rows[..., 1, 1] = 1.0 + d0 - d1 - d2, 1.0 - d0 + d1 - d2
    rows[..., 2, 2], rows[..., 3, 3] = 1.0 - d0 - d1 + d2, 1.0 + d0 + d1 + d2
    rows[..., 0, 1] = rows[..., 1, 0] = R[..., 0, 1] + R[..., 1, 0]
    rows[..., 0, 2] = rows[..., 2, 0] = R[..., 0, 2] + R[..., 2, 0]
    rows[..., 1, 2] = rows[..., 2, 1] = R[..., 1, 2] + R[..., 2, 1]
    rows[..., 0, 3] = rows[..., 3, 0] = R[..., 2, 1] - R[..., 1, 2]
    rows[..., 1, 3] = rows[..., 3, 1] = R[..., 0, 2] - R[..., 2, 0]
    rows[..., 2, 3] = rows[..., 3, 2] = R[..., 1, 0] - R[..., 0, 1]
    best = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    return unit_quaternions(np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :])


def quaternions_from_vectors(vectors: np.ndarray) -> np.ndarray:
    """(..., 4) unit quaternions of (..., 3) rotation vectors, radians."""
    vectors = np.asarray(vectors, dtype=np.float64)
    half = 0.5 * np.linalg.norm(vectors, axis=-1, keepdims=True)
    # np.sinc(x) is sin(πx)/(πx): finite at zero.
    return np.concatenate([0.5 * np.sinc(half / np.pi) * vectors, np.cos(half)], axis=-1)


def rotation_vectors(quaternions: np.ndarray) -> np.ndarray:
    """(..., 3) rotation vectors of (..., 4) quaternions, radians, never longer than π."""
    q = unit_quaternions(np.asarray(quaternions, dtype=np.float64))
    q = np.where(q[..., 3:] < 0.0, -q, q)
    sines = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    angles = 2.0 * np.arctan2(sines, q[..., 3:])
    return q[..., :3] * np.where(sines > 1e-12, angles / np.where(sines > 1e-12, sines, 1.0), 2.0)


def slerp(a: np.ndarray, b: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """(..., 4) between unit quaternions `a` (t = 0) and `b` (t = 1), at constant speed the shorter way round."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)[..., None]
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    b = np.where(cosine < 0.0, -b, b)
    # The half angle between the two from |a − b| and |a + b|: acos loses half the digits near zero.
    angle = 2.0 * np.arctan2(
        np.linalg.norm(a - b, axis=-1, keepdims=True), np.linalg.norm(a + b, axis=-1, keepdims=True)
    )
    # sin(tα)/sin α as a ratio of sincs: finite where the two are equal.
    down = (1.0 - t) * np.sinc((1.0 - t) * angle / np.pi) / np.sinc(angle / np.pi)
    up = t * np.sinc(t * angle / np.pi) / np.sinc(angle / np.pi)
    return unit_quaternions(down * a + up * b)


def quaternions_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., 4) the smallest rotations that turn directions `a` into directions `b` (..., 3); any length but zero."""
    a = a / np.linalg.norm(a, axis=-1, keepdims=True)
    b = b / np.linalg.norm(b, axis=-1, keepdims=True)
    a, b = np.broadcast_arrays(a, b)
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    q = np.concatenate([np.cross(a, b), 1.0 + cosine], axis=-1)
    # Opposite directions: half a turn about any perpendicular, taken from the smallest component of a.
    helper = np.eye(3)[np.argmin(np.abs(a), axis=-1)]
    turn = np.concatenate([np.cross(a, helper), np.zeros_like(cosine)], axis=-1)
    return unit_quaternions(np.where(cosine > -1.0 + 1e-14, q, turn))
