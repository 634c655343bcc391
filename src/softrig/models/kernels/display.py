"""Positions to draw from modal coordinates: u = Uq in single precision."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST

_BLOCK = 2048


@njit(cache=True, fastmath=FAST)
def display_positions(rest: np.ndarray, modes: np.ndarray, q: np.ndarray, out: np.ndarray) -> None:
    """out = rest + Σ_k q[k] modes[k], all flat over 3·vertices.

    By blocks that stay in the cache while the modes stream past once: the memory bound. One thread,
    because a BLAS that wakes others for so small a product waits for them longer than it computes.
    """
    size = rest.shape[0]
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        block = out[start:end]
        block[:] = rest[start:end]
        for k in range(q.shape[0]):
            factor = q[k]
            mode = modes[k, start:end]
            for i in range(end - start):
                block[i] += factor * mode[i]
