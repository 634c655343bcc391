"""The inverse of a symmetric positive definite matrix, in place."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_sums import cholesky


@njit(cache=True, forceinline=True)
def invert(matrix: np.ndarray, first: np.ndarray, size: int, room: np.ndarray) -> bool:
    """Overwrite the lower half of a symmetric A by that of A⁻¹ = L⁻ᵀL⁻¹; False if it is not positive definite.

    `matrix` has rows up to size + 3, as for `cholesky`; `first` (size,) is zero; `room` (2, size) is scratch.
    """
    if not cholesky(matrix, first, size):
        return False
    _invert_triangle(matrix, size, room[0], room[1])
    _square(matrix, size, room[0], room[1])
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def _invert_triangle(matrix: np.ndarray, size: int, one: np.ndarray, two: np.ndarray) -> None:
    """L, with 1/L[i, i] on its diagonal, by X = L⁻¹: X[i] = (e_i − Σ_k<i L[i, k] X[k]) / L[i, i].

    Two rows i and four k at a time, so that eight products share six loads.
    """
    for i in range(0, size, 2):
        r, s = matrix[i], matrix[i + 1]
        for t in range(i + 1):
            one[t] = 0.0
            two[t] = 0.0
        for k in range(0, i - i % 4, 4):
            a0, a1, a2, a3 = r[k], r[k + 1], r[k + 2], r[k + 3]
            b0, b1, b2, b3 = s[k], s[k + 1], s[k + 2], s[k + 3]
            x0, x1, x2, x3 = matrix[k], matrix[k + 1], matrix[k + 2], matrix[k + 3]
            for t in range(k + 1):
                one[t] += a0 * x0[t] + a1 * x1[t] + a2 * x2[t] + a3 * x3[t]
                two[t] += b0 * x0[t] + b1 * x1[t] + b2 * x2[t] + b3 * x3[t]
            # X has nothing above its diagonal, whatever stands there.
            one[k + 1] += a1 * x1[k + 1] + a2 * x2[k + 1] + a3 * x3[k + 1]
            two[k + 1] += b1 * x1[k + 1] + b2 * x2[k + 1] + b3 * x3[k + 1]
            one[k + 2] += a2 * x2[k + 2] + a3 * x3[k + 2]
            two[k + 2] += b2 * x2[k + 2] + b3 * x3[k + 2]
            one[k + 3] += a3 * x3[k + 3]
            two[k + 3] += b3 * x3[k + 3]
        for k in range(i - i % 4, i):
            a, b, x = r[k], s[k], matrix[k]
            for t in range(k + 1):
                one[t] += a * x[t]
                two[t] += b * x[t]
        for t in range(i):
            r[t] = -r[i] * one[t]
        if i + 1 < size:
            # The second of the two rows also has the first to take away.
            between, own = s[i], s[i + 1]
            for t in range(i + 1):
                s[t] = -own * (two[t] + between * r[t])


@njit(cache=True, forceinline=True, fastmath=FAST)
def _square(matrix: np.ndarray, size: int, one: np.ndarray, two: np.ndarray) -> None:
    """The lower half of XᵀX in place of the lower triangle X: row i is Σ_k≥i X[k, i] X[k, : i + 1].

    Two rows i and four k at a time.
    """
    for i in range(0, size - 1, 2):
        x = matrix[i]
        corner = x[i]
        for t in range(i + 1):
            one[t] = corner * x[t]
            two[t] = 0.0
        two[i + 1] = 0.0
        fours = size - (size - i - 1) % 4
        for k in range(i + 1, fours, 4):
            x0, x1, x2, x3 = matrix[k], matrix[k + 1], matrix[k + 2], matrix[k + 3]
            a0, a1, a2, a3 = x0[i], x1[i], x2[i], x3[i]
            b0, b1, b2, b3 = x0[i + 1], x1[i + 1], x2[i + 1], x3[i + 1]
            for t in range(i + 1):
                one[t] += a0 * x0[t] + a1 * x1[t] + a2 * x2[t] + a3 * x3[t]
                two[t] += b0 * x0[t] + b1 * x1[t] + b2 * x2[t] + b3 * x3[t]
            two[i + 1] += b0 * b0 + b1 * b1 + b2 * b2 + b3 * b3
        for k in range(fours, size):
            x = matrix[k]
            a, b = x[i], x[i + 1]
            for t in range(i + 1):
                one[t] += a * x[t]
                two[t] += b * x[t]
            two[i + 1] += b * b
        for t in range(i + 1):
            matrix[i, t] = one[t]
            matrix[i + 1, t] = two[t]
        matrix[i + 1, i + 1] = two[i + 1]
    if size % 2:
        corner = matrix[size - 1, size - 1]
        for t in range(size):
            matrix[size - 1, t] *= corner
