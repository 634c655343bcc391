"""Cholesky of sparse symmetric matrices of 3×3 blocks that keep to an envelope: each row from its first block on.

Block row v holds its three rows one after the other, each with all columns from block firsts[v] to block v, the
diagonal block whole; they begin at starts[v]. A factor fills the same envelope, so it is made in place. Small bodies,
well ordered, need no more than that: every inner product runs over contiguous numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


def envelope_starts(firsts: np.ndarray) -> np.ndarray:
    """(f + 1,) where the block rows with these first blocks (f,) begin, and how many numbers there are."""
    return np.concatenate([[0], np.cumsum(9 * (np.arange(len(firsts)) - firsts + 1))])


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def envelope_cholesky(firsts: np.ndarray, starts: np.ndarray, values: np.ndarray) -> bool:
    """Replace A by L of A = L Lᵀ, with 1/L[i, i] on the diagonal. False if A is not positive definite.

    Nine inner products at once, of three rows with three: six numbers are read for nine products.
    """
    for v in range(firsts.shape[0]):
        low = firsts[v]
        width = 3 * (v - low + 1)
        at = starts[v]
        row0, row1, row2 = values[at : at + width], values[at + width : at + 2 * width], values[at + 2 * width :]
        for c in range(low, v + 1):
            begin = max(low, firsts[c])
            other = 3 * (c - firsts[c] + 1)
            length, mine, theirs = 3 * (c - begin), 3 * (begin - low), starts[c] + 3 * (begin - firsts[c])
            a0, a1, a2 = row0[mine : mine + length], row1[mine : mine + length], row2[mine : mine + length]
            b0 = values[theirs : theirs + length]
            b1 = values[theirs + other : theirs + other + length]
            b2 = values[theirs + 2 * other : theirs + 2 * other + length]
            s00, s01, s02, s10, s11, s12, s20, s21, s22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(length):
                x, y, z = a0[k], a1[k], a2[k]
                p, q, r = b0[k], b1[k], b2[k]
                s00 += x * p
                s01 += x * q
                s02 += x * r
                s10 += y * p
                s11 += y * q
                s12 += y * r
                s20 += z * p
                s21 += z * q
                s22 += z * r
            here = 3 * (c - low)
            if c < v:
                last = starts[c] + other - 3
                d0, d1, d2 = values[last], values[last + other + 1], values[last + 2 * other + 2]
                l10, l20, l21 = values[last + other], values[last + 2 * other], values[last + 2 * other + 1]
                x = d0 * (row0[here] - s00)
                y = d1 * (row0[here + 1] - s01 - l10 * x)
                row0[here], row0[here + 1] = x, y
                row0[here + 2] = d2 * (row0[here + 2] - s02 - l20 * x - l21 * y)
                x = d0 * (row1[here] - s10)
                y = d1 * (row1[here + 1] - s11 - l10 * x)
                row1[here], row1[here + 1] = x, y
                row1[here + 2] = d2 * (row1[here + 2] - s12 - l20 * x - l21 * y)
                x = d0 * (row2[here] - s20)
                y = d1 * (row2[here + 1] - s21 - l10 * x)
                row2[here], row2[here + 1] = x, y
                row2[here + 2] = d2 * (row2[here + 2] - s22 - l20 * x - l21 * y)
            else:
                left = row0[here] - s00
                if not left > 1e-14 * abs(row0[here]):  # written so that NaN fails too
                    return False
                d0 = 1.0 / np.sqrt(left)
                l10, l20 = d0 * (row1[here] - s10), d0 * (row2[here] - s20)
                left = row1[here + 1] - s11 - l10 * l10
                if not left > 1e-14 * abs(row1[here + 1]):
                    return False
                d1 = 1.0 / np.sqrt(left)
                l21 = d1 * (row2[here + 1] - s21 - l20 * l10)
                left = row2[here + 2] - s22 - l20 * l20 - l21 * l21
                if not left > 1e-14 * abs(row2[here + 2]):
                    return False
                row0[here], row1[here], row1[here + 1] = d0, l10, d1
                row2[here], row2[here + 1], row2[here + 2] = l20, l21, 1.0 / np.sqrt(left)
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def envelope_solve(firsts: np.ndarray, starts: np.ndarray, factor: np.ndarray, x: np.ndarray) -> None:
    """Solve L Lᵀ x = b in place, x (3·f,), `factor` from `envelope_cholesky`."""
    count = firsts.shape[0]
    for v in range(count):
        width = 3 * (v - firsts[v] + 1)
        for i in range(3):
            at = starts[v] + i * width
            length = width - 3 + i
            row, before = factor[at : at + length], x[3 * firsts[v] : 3 * firsts[v] + length]
            total = 0.0
            for k in range(length):
                total += row[k] * before[k]
            x[3 * v + i] = (x[3 * v + i] - total) * factor[at + length]
    for v in range(count - 1, -1, -1):
        width = 3 * (v - firsts[v] + 1)
        for i in range(2, -1, -1):
            at = starts[v] + i * width
            length = width - 3 + i
            row, before = factor[at : at + length], x[3 * firsts[v] : 3 * firsts[v] + length]
            own = x[3 * v + i] * factor[at + length]
            x[3 * v + i] = own
            for k in range(length):
                before[k] -= own * row[k]
