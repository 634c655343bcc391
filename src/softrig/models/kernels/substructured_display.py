"""Drawn vertices of a tree of domains: each in its frame, copies at seams averaged (SUB11 §5)."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, fastmath=FAST)
def drawn_positions(
    domains: np.ndarray,
    scales: np.ndarray,
    starts: np.ndarray,
    rest: np.ndarray,
    modes: np.ndarray,
    q: np.ndarray,
    frames: np.ndarray,
    drawn: np.ndarray,
    shares: np.ndarray,
    room: np.ndarray,
    out: np.ndarray,
) -> None:
    """out (m, 3) = Σ of the copies of each vertex times their share.

    `domains` (d, 4) int64: first coordinate and modes of each domain, and where its shape starts in `rest` (flat, 3n
    each) and in `modes` (flat, (r, 3n) each); `starts` (d + 1,) the first copies of each; `frames` as the step writes
    them; `drawn` (N,) and `shares` (N,) of the copies; `room` holds three numbers a vertex of the largest shape.
    """
    out[:] = 0.0
    for i in range(domains.shape[0]):
        first, r, at, mode_at = domains[i, 0], domains[i, 1], domains[i, 2], domains[i, 3]
        copies = starts[i + 1] - starts[i]
        size = 3 * copies
        local = room[:size]
        local[:] = rest[at : at + size]
        for mode in range(r):
            factor = q[first + mode]
            shape = modes[mode_at + mode * size : mode_at + (mode + 1) * size]
            for k in range(size):
                local[k] += factor * shape[k]
        s = scales[i]
        frame = frames[i]
        r00, r01, r02 = s * frame[0], s * frame[1], s * frame[2]
        r10, r11, r12 = s * frame[3], s * frame[4], s * frame[5]
        r20, r21, r22 = s * frame[6], s * frame[7], s * frame[8]
        o0, o1, o2 = frame[9], frame[10], frame[11]
        for k in range(copies):
            x, y, z = local[3 * k], local[3 * k + 1], local[3 * k + 2]
            target, share = drawn[starts[i] + k], shares[starts[i] + k]
            out[target, 0] += share * (o0 + r00 * x + r01 * y + r02 * z)
            out[target, 1] += share * (o1 + r10 * x + r11 * y + r12 * z)
            out[target, 2] += share * (o2 + r20 * x + r21 * y + r22 * z)
