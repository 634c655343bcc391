"""Frames that turn shapes: quaternions of rotations, and mixtures of them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def quaternion_of(R: np.ndarray, q: np.ndarray) -> None:
    """Write the unit quaternion x, y, z, w of a rotation, by the largest of the four (Shepperd 1978)."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    best, largest = 3, trace
    for i in range(3):
        if R[i, i] > largest:
            best, largest = i, R[i, i]
    if best == 3:
        q[0], q[1], q[2] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
        q[3] = 1.0 + trace
    else:
        j, k = (best + 1) % 3, (best + 2) % 3
        q[best] = 1.0 + 2.0 * R[best, best] - trace
        q[j] = R[j, best] + R[best, j]
        q[k] = R[k, best] + R[best, k]
        q[3] = R[k, j] - R[j, k]
    scale = 1.0 / np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    for i in range(4):
        q[i] *= scale


@njit(cache=True)
def mixed_quaternion(
    vertex: int,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    root: int,
    blended: bool,
) -> tuple[float, float, float, float, float]:
    """x, y, z, w of a vertex' quaternion, of any length, and 2 / length²: the mixture of its bones', or the root's.

    `bones` and `weights` of vertex v stand at starts[v] to starts[v + 1], the heaviest first: it decides the signs.
    """
    first = starts[vertex] if blended else 0
    b = bones[first] if blended else root
    a0, a1, a2, a3 = quaternions[b, 0], quaternions[b, 1], quaternions[b, 2], quaternions[b, 3]
    if not blended:
        return a0, a1, a2, a3, 2.0
    weight = weights[first]
    x, y, z, w = weight * a0, weight * a1, weight * a2, weight * a3
    for at in range(first + 1, starts[vertex + 1]):
        b, weight = bones[at], weights[at]
        b0, b1, b2, b3 = quaternions[b, 0], quaternions[b, 1], quaternions[b, 2], quaternions[b, 3]
        if a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3 < 0.0:
            weight = -weight
        x += weight * b0
        y += weight * b1
        z += weight * b2
        w += weight * b3
    square = x * x + y * y + z * z + w * w
    return x, y, z, w, 2.0 / square if square > 0.0 else 0.0
