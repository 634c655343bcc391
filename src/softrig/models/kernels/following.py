"""Coordinates of what follows the modes (`models.followers`), in single precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


class Following(NamedTuple):
    """A model's followers, and room."""

    mean: np.ndarray
    """(s, r) float32 Y_0."""
    left: np.ndarray
    """(s, a) float32 A, times the units of `core`."""
    core: np.ndarray
    """(a, j · b) int16 C, so that a row is the product of one vector."""
    right: np.ndarray
    """(b, r) float32 B."""
    mixing: np.ndarray
    """(j, k) float32 S."""
    seen: np.ndarray
    """(r,) float32 x, scratch, and so are the next two."""
    turned: np.ndarray
    """(j · b,) s_j (B x)."""
    mixed: np.ndarray
    """(a,)."""
    y: np.ndarray
    """(s,) float32: the answer."""


@njit(cache=True, forceinline=True)
def follow(
    q: np.ndarray,
    upsilon: np.ndarray,
    weights: np.ndarray,
    mean: np.ndarray,
    left: np.ndarray,
    core: np.ndarray,
    right: np.ndarray,
    mixing: np.ndarray,
    seen: np.ndarray,
    turned: np.ndarray,
    mixed: np.ndarray,
    y: np.ndarray,
) -> None:
    """Write y for modes q (r,), scaled by `upsilon`; c are the last of `weights`, the stiffness map's."""
    for i in range(seen.shape[0]):
        seen[i] = upsilon[i] * q[i]
    count, columns = mixing.shape[0], right.shape[0]
    learned = weights[weights.shape[0] - mixing.shape[1] :]
    for b in range(columns):
        turned[b] = _product(right[b], seen)
    # From behind: the first mixture's place holds B x until then.
    for back in range(count):
        j = count - 1 - back
        share = np.float32(_product(mixing[j], learned))
        for b in range(columns):
            turned[j * columns + b] = share * turned[b]
    for a in range(mixed.shape[0]):
        mixed[a] = _product(core[a], turned)
    for s in range(y.shape[0]):
        y[s] = _product(mean[s], seen) + _product(left[s], mixed)


@njit(cache=True, forceinline=True, fastmath=FAST)
def _product(one: np.ndarray, other: np.ndarray) -> float:
    total = other.dtype.type(0.0)
    for t in range(one.shape[0]):
        total += other.dtype.type(one[t]) * other[t]
    return total
