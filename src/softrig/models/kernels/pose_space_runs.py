"""Vertices in runs: those that hang on the same bones stand together, so that loops over a run have nothing to look
up and vectorise. Any precision; fields of `BoneRuns` come one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, fastmath=FAST)
def mixed_quaternions(
    runs: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    mixed: np.ndarray,
) -> None:
    """Write the mixtures (4, k) of the quaternions of each vertex' bones, of any length.

    Signs as in `mixed_quaternion`, where the heaviest bone of a vertex decides. Mostly all bones of a run agree on the
    signs, whichever is heaviest; else every vertex is looked at.
    """
    kind = mixed.dtype.type
    for run in range(runs.shape[0] - 1):
        low, high = runs[run], runs[run + 1]
        first, last, count = starts[run], starts[run + 1], high - low
        x, y, z, w = mixed[0, low:high], mixed[1, low:high], mixed[2, low:high], mixed[3, low:high]
        for t in range(count):
            x[t], y[t], z[t], w[t] = 0.0, 0.0, 0.0, 0.0
        together = _one_side(bones[first:last], quaternions)
        at = offsets[run]
        for k in range(first, last):
            b = bones[k]
            share = weights[at : at + count]
            sign = -1.0 if together and _product(quaternions, b, bones[first]) < 0.0 else 1.0
            q0, q1 = kind(sign * quaternions[b, 0]), kind(sign * quaternions[b, 1])
            q2, q3 = kind(sign * quaternions[b, 2]), kind(sign * quaternions[b, 3])
            if together:
                for t in range(count):
                    x[t] += share[t] * q0
                    y[t] += share[t] * q1
                    z[t] += share[t] * q2
                    w[t] += share[t] * q3
            else:
                for t in range(count):
                    heaviest = _heaviest(weights, offsets[run], count, t, bones[first:last])
                    own = -share[t] if _product(quaternions, b, heaviest) < 0.0 else share[t]
                    x[t] += own * q0
                    y[t] += own * q1
                    z[t] += own * q2
                    w[t] += own * q3
            at += count


@njit(cache=True)
def _product(quaternions: np.ndarray, a: int, b: int) -> float:
    total = 0.0
    for i in range(4):
        total += quaternions[a, i] * quaternions[b, i]
    return total


@njit(cache=True)
def _one_side(bones: np.ndarray, quaternions: np.ndarray) -> bool:
    """Whether signs by the first bone are signs by any: every two agree as both agree with the first."""
    for i in range(1, bones.shape[0]):
        one = _product(quaternions, bones[0], bones[i])
        for j in range(1, i):
            other = _product(quaternions, bones[0], bones[j])
            if one * other * _product(quaternions, bones[i], bones[j]) < 0.0:
                return False
    return True


@njit(cache=True)
def _heaviest(weights: np.ndarray, offset: int, count: int, t: int, bones: np.ndarray) -> int:
    best, most = 0, weights[offset + t]
    for k in range(1, bones.shape[0]):
        if weights[offset + k * count + t] > most:
            best, most = k, weights[offset + k * count + t]
    return bones[best]


@njit(cache=True, fastmath=FAST)
def rotations_of(mixed: np.ndarray, rotations: np.ndarray) -> None:
    """Write the matrices (9, k), row by row, of quaternions (4, k) of any length but zero."""
    x, y, z, w = mixed[0], mixed[1], mixed[2], mixed[3]
    r0, r1, r2 = rotations[0], rotations[1], rotations[2]
    r3, r4, r5 = rotations[3], rotations[4], rotations[5]
    r6, r7, r8 = rotations[6], rotations[7], rotations[8]
    for t in range(x.shape[0]):
        s = 2.0 / (x[t] * x[t] + y[t] * y[t] + z[t] * z[t] + w[t] * w[t] + 1e-300)
        sx, sy, sz = s * x[t], s * y[t], s * z[t]
        r0[t], r1[t], r2[t] = 1.0 - sy * y[t] - sz * z[t], sx * y[t] - sz * w[t], sx * z[t] + sy * w[t]
        r3[t], r4[t], r5[t] = sx * y[t] + sz * w[t], 1.0 - sx * x[t] - sz * z[t], sy * z[t] - sx * w[t]
        r6[t], r7[t], r8[t] = sx * z[t] - sy * w[t], sy * z[t] + sx * w[t], 1.0 - sx * x[t] - sy * y[t]


@njit(cache=True, fastmath=FAST)
def skinned(
    points: np.ndarray,
    matrices: np.ndarray,
    runs: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Σ_b w_b M_b points (3, k), run by run."""
    for run in range(runs.shape[0] - 1):
        low, high = runs[run], runs[run + 1]
        count = high - low
        x, y, z = points[0, low:high], points[1, low:high], points[2, low:high]
        u, v, w = out[0, low:high], out[1, low:high], out[2, low:high]
        at = offsets[run]
        for k in range(starts[run], starts[run + 1]):
            b = bones[k]
            a0, a1, a2, a3 = matrices[b, 0, 0], matrices[b, 0, 1], matrices[b, 0, 2], matrices[b, 0, 3]
            b0, b1, b2, b3 = matrices[b, 1, 0], matrices[b, 1, 1], matrices[b, 1, 2], matrices[b, 1, 3]
            c0, c1, c2, c3 = matrices[b, 2, 0], matrices[b, 2, 1], matrices[b, 2, 2], matrices[b, 2, 3]
            share = weights[at : at + count]
            if k == starts[run]:
                for t in range(count):
                    u[t] = share[t] * (a0 * x[t] + a1 * y[t] + a2 * z[t] + a3)
                    v[t] = share[t] * (b0 * x[t] + b1 * y[t] + b2 * z[t] + b3)
                    w[t] = share[t] * (c0 * x[t] + c1 * y[t] + c2 * z[t] + c3)
            else:
                for t in range(count):
                    u[t] += share[t] * (a0 * x[t] + a1 * y[t] + a2 * z[t] + a3)
                    v[t] += share[t] * (b0 * x[t] + b1 * y[t] + b2 * z[t] + b3)
                    w[t] += share[t] * (c0 * x[t] + c1 * y[t] + c2 * z[t] + c3)
            at += count
