"""Cholesky of a symmetric matrix of blocks, one block row a domain (MD11 Fig. 5).

Only blocks of the lower half that are not zero, or fill in, are stored: block (i, j), i ≥ j, is r_i rows of r_j numbers
from `places[blocks[i, j]]` on. Domains come in an order of elimination, leaves of the graph of seams first, in which
a tree fills in nothing: sixteen domains of 20 modes are then some forty times fewer operations than the dense matrix of
320 rows takes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


def block_pattern(ranks: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`blocks` (D, D) int32, the number of block (i, j) or −1, and `places` (b + 1,) int64 where each begins.

    `ranks` (D,) and `pairs` (k, 2) of domains that meet; fill-in included.
    """
    count = len(ranks)
    full = np.eye(count, dtype=bool)
    for first, second in pairs:
        full[max(first, second), min(first, second)] = True
    for k in range(count):
        below = np.flatnonzero(full[k + 1 :, k]) + k + 1
        for i in below:
            full[i, below[below <= i]] = True
    blocks = np.full((count, count), -1, np.int32)
    rows, columns = np.nonzero(np.tril(full))
    blocks[rows, columns] = np.arange(len(rows))
    return blocks, np.concatenate([[0], np.cumsum(np.asarray(ranks)[rows] * np.asarray(ranks)[columns])])


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def block_cholesky(starts: np.ndarray, blocks: np.ndarray, places: np.ndarray, values: np.ndarray) -> bool:
    """Replace A by L of A = L Lᵀ, with 1/L[i, i] on the diagonal. False if A is not positive definite."""
    count = len(starts) - 1
    for k in range(count):
        width = starts[k + 1] - starts[k]
        own = values[places[blocks[k, k]] : places[blocks[k, k]] + width * width]
        for i in range(width):
            row = own[i * width : i * width + i]
            for j in range(i):
                other = own[j * width : j * width + j]
                total = row[j]
                for m in range(j):
                    total -= row[m] * other[m]
                row[j] = total * own[j * width + j]
            pivot = own[i * width + i]
            square = 0.0
            for m in range(i):
                square += row[m] * row[m]
            remaining = pivot - square
            if not remaining > 1e-14 * abs(pivot):  # written so that NaN fails too
                return False
            own[i * width + i] = 1.0 / np.sqrt(remaining)
        for i in range(k + 1, count):
            if blocks[i, k] < 0:
                continue
            begin, height = places[blocks[i, k]], starts[i + 1] - starts[i]
            for a in range(height):
                row = values[begin + a * width : begin + (a + 1) * width]
                for j in range(width):
                    other = own[j * width : j * width + j]
                    total = row[j]
                    for m in range(j):
                        total -= row[m] * other[m]
                    row[j] = total * own[j * width + j]
            for j in range(k + 1, i + 1):
                if blocks[j, k] < 0:
                    continue
                there, across = places[blocks[j, k]], starts[j + 1] - starts[j]
                target = places[blocks[i, j]]
                for a in range(height):
                    row = values[begin + a * width : begin + (a + 1) * width]
                    for b in range(a + 1 if i == j else across):
                        other = values[there + b * width : there + (b + 1) * width]
                        total = 0.0
                        for m in range(width):
                            total += row[m] * other[m]
                        values[target + a * across + b] -= total
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def block_solve(starts: np.ndarray, blocks: np.ndarray, places: np.ndarray, values: np.ndarray, x: np.ndarray) -> None:
    """Solve L Lᵀ x = b in place, `values` from `block_cholesky`."""
    count = len(starts) - 1
    for k in range(count):
        width, at = starts[k + 1] - starts[k], places[blocks[k, k]]
        mine = x[starts[k] : starts[k + 1]]
        for i in range(width):
            total = mine[i]
            for j in range(i):
                total -= values[at + i * width + j] * mine[j]
            mine[i] = total * values[at + i * width + i]
        for i in range(k + 1, count):
            if blocks[i, k] >= 0:
                begin = places[blocks[i, k]]
                for a in range(starts[i + 1] - starts[i]):
                    total = 0.0
                    for j in range(width):
                        total += values[begin + a * width + j] * mine[j]
                    x[starts[i] + a] -= total
    for k in range(count - 1, -1, -1):
        width, at = starts[k + 1] - starts[k], places[blocks[k, k]]
        mine = x[starts[k] : starts[k + 1]]
        for i in range(k + 1, count):
            if blocks[i, k] >= 0:
                begin = places[blocks[i, k]]
                for a in range(starts[i + 1] - starts[i]):
                    other = x[starts[i] + a]
                    for j in range(width):
                        mine[j] -= values[begin + a * width + j] * other
        for i in range(width - 1, -1, -1):
            mine[i] *= values[at + i * width + i]
            xi = mine[i]
            for j in range(i):
                mine[j] -= values[at + i * width + j] * xi
