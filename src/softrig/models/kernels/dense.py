"""Dense symmetric kernels on packed lower triangles (row i holds columns 0 to i)."""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Lets sums vectorise, and unlike full fast maths keeps NaN and infinity meaningful.

A function that is called by compiled code and sums so is also `forceinline`: else it exists twice in a process that
compiles, optimised alone and within its caller, and the first run would differ in the last digit from later ones.
"""


@njit(cache=True, forceinline=True, fastmath=FAST)
def packed_matvec(packed: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """y = A x."""
    start = 0
    for i in range(x.shape[0]):
        row = packed[start : start + i]
        xi = x[i]
        total = packed[start + i] * xi
        for j in range(i):
            total += row[j] * x[j]
            y[j] += row[j] * xi
        y[i] = total
        start += i + 1


@njit(cache=True, forceinline=True, fastmath=FAST)
def lower_matvec(lower: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """y = A x for a symmetric A of which only the lower half of the square array is read.

    Four rows at a time, each entry used for its row and its column: half the memory traffic of a
    plain product, which is what bounds it.
    """
    n = x.shape[0]
    y[:] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = lower[i, :i], lower[i + 1, :i], lower[i + 2, :i], lower[i + 3, :i]
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for j in range(i):
            xj = x[j]
            t0 += a[j] * xj
            t1 += b[j] * xj
            t2 += c[j] * xj
            t3 += d[j] * xj
            y[j] += a[j] * x0 + b[j] * x1 + c[j] * x2 + d[j] * x3
        l10, l20, l21 = lower[i + 1, i], lower[i + 2, i], lower[i + 2, i + 1]
        l30, l31, l32 = lower[i + 3, i], lower[i + 3, i + 1], lower[i + 3, i + 2]
        y[i] = t0 + lower[i, i] * x0 + l10 * x1 + l20 * x2 + l30 * x3
        y[i + 1] = t1 + l10 * x0 + lower[i + 1, i + 1] * x1 + l21 * x2 + l31 * x3
        y[i + 2] = t2 + l20 * x0 + l21 * x1 + lower[i + 2, i + 2] * x2 + l32 * x3
        y[i + 3] = t3 + l30 * x0 + l31 * x1 + l32 * x2 + lower[i + 3, i + 3] * x3
    for i in range(whole, n):
        row = lower[i, :i]
        xi = x[i]
        total = lower[i, i] * xi
        for j in range(i):
            total += row[j] * x[j]
            y[j] += row[j] * xi
        y[i] = total


@njit(cache=True, forceinline=True, fastmath=FAST)
def packed_cholesky(packed: np.ndarray, factor: np.ndarray, size: int) -> bool:
    """Write L of A = L Lᵀ into `factor` (packed; the diagonal holds 1/L[i,i]). False if A is not positive definite.

    Row-dot form: both operands of every inner product are contiguous.
    """
    start = 0
    for i in range(size):
        row = factor[start : start + i]
        other = 0
        for j in range(i):
            total = packed[start + j]
            column = factor[other : other + j]
            for k in range(j):
                total -= row[k] * column[k]
            row[j] = total * factor[other + j]
            other += j + 1
        pivot = packed[start + i]
        square = 0.0
        for k in range(i):
            square += row[k] * row[k]
        remaining = pivot - square
        if not remaining > 1e-14 * abs(pivot):  # written so that NaN fails too
            return False
        factor[start + i] = 1.0 / np.sqrt(remaining)
        start += i + 1
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def packed_cholesky_solve(factor: np.ndarray, x: np.ndarray) -> None:
    """Solve L Lᵀ x = b in place, `factor` from `packed_cholesky`."""
    size = x.shape[0]
    start = 0
    for i in range(size):
        row = factor[start : start + i]
        total = x[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total * factor[start + i]
        start += i + 1
    for i in range(size - 1, -1, -1):
        start -= i + 1
        row = factor[start : start + i]
        x[i] *= factor[start + i]
        xi = x[i]
        for j in range(i):
            x[j] -= row[j] * xi
