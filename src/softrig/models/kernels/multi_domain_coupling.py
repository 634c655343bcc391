"""Springs between domains and the inertia of their moving frames, without a sum over vertices (MD11 §3.2, §4, App. A).

With W a 3×3 matrix, one number for all vertices of a seam or a domain, Σ_k a_k U_kᵀ W Ū_k = Σ_μν W_μν A^μν.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, forceinline=True, fastmath=FAST)
def sandwich(matrices: np.ndarray, W: np.ndarray, out: np.ndarray) -> None:
    """out = Σ_μν W_μν A^μν (Eq. 25); `matrices` flat, nine of the length of `out`."""
    size = len(out)
    for k in range(9):
        weight = W[k // 3, k % 3]
        part = matrices[k * size : (k + 1) * size]
        if k == 0:
            for i in range(size):
                out[i] = weight * part[i]
        else:
            for i in range(size):
                out[i] += weight * part[i]


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_product(scale: float, matrix: np.ndarray, x: np.ndarray, last: float, rows: int, out: np.ndarray) -> None:
    """out += scale · A (x, last) for the first `rows` rows of A (…, len(x) + 1)."""
    width = len(x) + 1
    for i in range(rows):
        row = matrix[i * width : (i + 1) * width]
        total = row[width - 1] * last
        for j in range(width - 1):
            total += row[j] * x[j]
        out[i] += scale * total


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_transposed(scale: float, matrix: np.ndarray, x: np.ndarray, last: float, width: int, out: np.ndarray) -> None:
    """out += scale · Aᵀ (x, last) for the first len(out) columns of A (len(x) + 1, width)."""
    for i in range(len(x) + 1):
        weight = scale * (x[i] if i < len(x) else last)
        row = matrix[i * width : (i + 1) * width]
        for j in range(len(out)):
            out[j] += weight * row[j]


@njit(cache=True, forceinline=True)
def relative(first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """out = firstᵀ second, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = first[0, i] * second[0, j] + first[1, i] * second[1, j] + first[2, i] * second[2, j]


@njit(cache=True, forceinline=True)
def times(first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """out = first second, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = first[i, 0] * second[0, j] + first[i, 1] * second[1, j] + first[i, 2] * second[2, j]


@njit(cache=True, forceinline=True)
def add_turned(scale: float, sides: np.ndarray, R: np.ndarray, vector: np.ndarray, out: np.ndarray) -> None:
    """out += scale · N Rᵀ vector, N (len(out), 3) flat: what a force that is the same at all vertices does to modes."""
    for k in range(3):
        local = scale * (R[0, k] * vector[0] + R[1, k] * vector[1] + R[2, k] * vector[2])
        for i in range(len(out)):
            out[i] += local * sides[3 * i + k]


@njit(cache=True, forceinline=True, fastmath=FAST)
def block_times(
    starts: np.ndarray, blocks: np.ndarray, places: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray
) -> None:
    """y = A x for a symmetric A of which the lower blocks are stored, diagonal ones whole."""
    y[:] = 0.0
    for i in range(len(starts) - 1):
        for j in range(i + 1):
            if blocks[i, j] < 0:
                continue
            begin, width = places[blocks[i, j]], starts[j + 1] - starts[j]
            for a in range(starts[i + 1] - starts[i]):
                row = values[begin + a * width : begin + (a + 1) * width]
                xa, total = x[starts[i] + a], 0.0
                for b in range(width):
                    total += row[b] * x[starts[j] + b]
                y[starts[i] + a] += total
                if i != j:
                    for b in range(width):
                        y[starts[j] + b] += row[b] * xa
