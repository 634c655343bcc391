"""Vertices in runs: those that hang on the same bones stand together, so that a register holds vertices of one kind.

Any precision; fields of `BoneRuns` come one by one. Registers run on beyond the end of a run, into what the next run
writes after it: all arrays over vertices have `BEYOND` further entries (`vectors`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.numerics.vectors import BYTES, load, plus_product, spread, store


@njit(cache=True)
def mixed_quaternions(
    runs: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    signed: np.ndarray,
    mixed: np.ndarray,
) -> None:
    """Write the mixtures (4, k) of the quaternions of each vertex' bones, of any length.

    Signs as in `mixed_quaternion`, where the heaviest bone of a vertex decides. Mostly all bones of a run agree on the
    signs, whichever is heaviest; else every vertex is looked at. `signed` (≥ 4 · bones of a run) scratch.
    """
    for run in range(runs.shape[0] - 1):
        low, high, own = runs[run], runs[run + 1], bones[starts[run] : starts[run + 1]]
        share = weights[offsets[run] :]
        if _one_side(own, quaternions):
            for k in range(own.shape[0]):
                sign = -1.0 if _product(quaternions, own[0], own[k]) < 0.0 else 1.0
                for i in range(4):
                    signed[4 * k + i] = sign * quaternions[own[k], i]
            x, y, z, w = mixed[0, low:], mixed[1, low:], mixed[2, low:], mixed[3, low:]
            _mix_run(high - low, own.shape[0], share, signed, x, y, z, w)
        else:
            _mix_vertices(high - low, own, share, quaternions, mixed[:, low:])


@njit(cache=True)
def _mix_run(
    count: int,
    bones: int,
    weights: np.ndarray,
    signed: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
) -> None:
    """Write Σ_b weights[b] signed[b] of `count` vertices, a register of them at a time."""
    zero, four, rows = np.uint64(0), np.uint64(4), np.uint64(count)
    nothing = spread(weights.dtype.type(0))
    for t in range(zero, rows, np.uint64(BYTES // weights.itemsize)):
        sx = sy = sz = sw = nothing
        at = np.uint64(t)
        for b in range(zero, four * np.uint64(bones), four):
            share = load(weights, at)
            sx = plus_product(sx, share, spread(signed[b]))
            sy = plus_product(sy, share, spread(signed[b + np.uint64(1)]))
            sz = plus_product(sz, share, spread(signed[b + np.uint64(2)]))
            sw = plus_product(sw, share, spread(signed[b + np.uint64(3)]))
            at += rows
        store(x, t, sx)
        store(y, t, sy)
        store(z, t, sz)
        store(w, t, sw)


@njit(cache=True)
def _mix_vertices(
    count: int, bones: np.ndarray, weights: np.ndarray, quaternions: np.ndarray, mixed: np.ndarray
) -> None:
    """The same where signs differ from vertex to vertex."""
    for t in range(count):
        heaviest = 0
        for k in range(1, bones.shape[0]):
            if weights[k * count + t] > weights[heaviest * count + t]:
                heaviest = k
        for i in range(4):
            mixed[i, t] = 0.0
        for k in range(bones.shape[0]):
            share = weights[k * count + t]
            if _product(quaternions, bones[k], bones[heaviest]) < 0.0:
                share = -share
            for i in range(4):
                mixed[i, t] += share * quaternions[bones[k], i]


@njit(cache=True)
def _product(quaternions: np.ndarray, a: int, b: int) -> float:
    one, two = quaternions[a], quaternions[b]
    return one[0] * two[0] + one[1] * two[1] + one[2] * two[2] + one[3] * two[3]


@njit(cache=True)
def _one_side(bones: np.ndarray, quaternions: np.ndarray) -> bool:
    """Whether signs by the first bone are signs by any: every two agree as both agree with the first.

    So it is where all turn by less than a right angle from the first; else every two are looked at.
    """
    near = True
    for i in range(1, bones.shape[0]):
        near = near and _product(quaternions, bones[0], bones[i]) ** 2 > 0.5
    if near:
        return True
    for i in range(2, bones.shape[0]):
        one = _product(quaternions, bones[0], bones[i])
        for j in range(1, i):
            other = _product(quaternions, bones[0], bones[j])
            if one * other * _product(quaternions, bones[i], bones[j]) < 0.0:
                return False
    return True


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def rotations_of(mixed: np.ndarray, rotations: np.ndarray) -> None:
    """Write the matrices (9, k), row by row, of quaternions (4, ≥ k) of any length but zero."""
    x, y, z, w = mixed[0], mixed[1], mixed[2], mixed[3]
    r0, r1, r2 = rotations[0], rotations[1], rotations[2]
    r3, r4, r5 = rotations[3], rotations[4], rotations[5]
    r6, r7, r8 = rotations[6], rotations[7], rotations[8]
    for t in range(r0.shape[0]):
        s = 2.0 / (x[t] * x[t] + y[t] * y[t] + z[t] * z[t] + w[t] * w[t] + 1e-300)
        sx, sy, sz = s * x[t], s * y[t], s * z[t]
        r0[t], r1[t], r2[t] = 1.0 - sy * y[t] - sz * z[t], sx * y[t] - sz * w[t], sx * z[t] + sy * w[t]
        r3[t], r4[t], r5[t] = sx * y[t] + sz * w[t], 1.0 - sx * x[t] - sz * z[t], sy * z[t] - sx * w[t]
        r6[t], r7[t], r8[t] = sx * z[t] - sy * w[t], sy * z[t] + sx * w[t], 1.0 - sx * x[t] - sy * y[t]


@njit(cache=True)
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
    """Write Σ_b w_b M_b points (3, k), run by run; `matrices` flat (bones, 3, 4)."""
    for run in range(runs.shape[0] - 1):
        low, own = runs[run], bones[starts[run] : starts[run + 1]]
        x, y, z = points[0, low:], points[1, low:], points[2, low:]
        u, v, w = out[0, low:], out[1, low:], out[2, low:]
        skin_run(runs[run + 1] - low, x, y, z, matrices, own, weights[offsets[run] :], u, v, w)


@njit(cache=True)
def skin_run(
    count: int,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    matrices: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
) -> None:
    """Write u, v, w = Σ_b w_b M_b (x, y, z) of `count` vertices of the same bones; `weights` bone by bone."""
    rows, four, nothing = np.uint64(count), np.uint64(4), spread(weights.dtype.type(0))
    for t in range(np.uint64(0), rows, np.uint64(BYTES // weights.itemsize)):
        px, py, pz = load(x, t), load(y, t), load(z, t)
        su = sv = sw = nothing
        at = np.uint64(t)
        for k in range(bones.shape[0]):
            line, share = np.uint64(12) * np.uint64(bones[k]), load(weights, at)
            su = plus_product(su, share, _affine(matrices, line, px, py, pz))
            sv = plus_product(sv, share, _affine(matrices, line + four, px, py, pz))
            sw = plus_product(sw, share, _affine(matrices, line + four + four, px, py, pz))
            at += rows
        store(u, t, su)
        store(v, t, sv)
        store(w, t, sw)


@njit(cache=True)
def _affine(matrices: np.ndarray, at: np.uint64, x: Any, y: Any, z: Any) -> Any:
    """a x + b y + c z + d of a line a, b, c, d of a matrix, a register of vertices at a time."""
    one, two, three = at + np.uint64(1), at + np.uint64(2), at + np.uint64(3)
    total = plus_product(spread(matrices[three]), spread(matrices[two]), z)
    return plus_product(plus_product(total, spread(matrices[one]), y), spread(matrices[at]), x)
