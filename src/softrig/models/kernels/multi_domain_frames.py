"""Rigid frames of bones and their rates: from bone matrices that change to R, RᵀṘ and RᵀR̈ (MD11 §3.1)."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.numerics.rotations import svd3

FLAT = 1e-9
"""Of a bone's size: a bone scaled to a line or less has no rotation of its own, and keeps still."""


@njit(cache=True)
def rigid_frames(
    matrices: np.ndarray,
    centres: np.ndarray,
    rotations: np.ndarray,
    spins: np.ndarray,
    accelerations: np.ndarray,
    places: np.ndarray,
) -> None:
    """Frames of bone matrices (3, D, 3, 4), now and their two rates, whose domains have `centres` (D, 3), metres.

    Writes R (D, 3, 3); `spins` RᵀṘ and `accelerations` RᵀR̈ (D, 3, 3), 1/s and 1/s²; `places` (3, D, 3): t, ṫ, ẗ. With
    A = R S, Y = RᵀȦ and G = tr(S) I − S: G ω = axial(Y − Yᵀ), Ṡ = Y − ω̃S, and
    G ω̇ = axial(Ẏ − Ẏᵀ) − (tr(Ṡ) I − Ṡ) ω with Ẏ = RᵀÄ − ω̃Y; RᵀR̈ = ω̃² + (ω̇)~. All in the frame's own axes.
    """
    U, V, scratch, S = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    s, omega, alpha, right = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    Y, G, rate = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for d in range(len(centres)):
        svd3(matrices[0, d, :, :3], U, s, V, scratch)
        R = rotations[d]
        for i in range(3):
            for j in range(3):
                R[i, j] = U[i, 0] * V[j, 0] + U[i, 1] * V[j, 1] + U[i, 2] * V[j, 2]
                S[i, j] = V[i, 0] * s[0] * V[j, 0] + V[i, 1] * s[1] * V[j, 1] + V[i, 2] * s[2] * V[j, 2]
            for k in range(3):
                value = matrices[k, d, i, 3]
                for j in range(3):
                    value += matrices[k, d, i, j] * centres[d, j]
                places[k, d, i] = value
        _turned(R, matrices[1, d], Y)
        _gram(S, G)
        _axial(Y, right)
        _solve(G, right, omega)
        for i in range(3):
            for j in range(3):
                rate[i, j] = Y[i, j] - _cross(omega, S, i, j)
        _turned(R, matrices[2, d], V)
        for i in range(3):
            for j in range(3):
                U[i, j] = V[i, j] - _cross(omega, Y, i, j)
        _axial(U, right)
        trace = rate[0, 0] + rate[1, 1] + rate[2, 2]
        for i in range(3):
            for j in range(3):
                right[i] -= ((trace if i == j else 0.0) - rate[i, j]) * omega[j]
        _solve(G, right, alpha)
        square = omega[0] ** 2 + omega[1] ** 2 + omega[2] ** 2
        for i in range(3):
            for j in range(3):
                spins[d, i, j] = _skew(omega, i, j)
                accelerations[d, i, j] = omega[i] * omega[j] - (square if i == j else 0.0) + _skew(alpha, i, j)


@njit(cache=True)
def _turned(R: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """Rᵀ times the square part of a (3, 4) matrix."""
    for i in range(3):
        for j in range(3):
            out[i, j] = R[0, i] * matrix[0, j] + R[1, i] * matrix[1, j] + R[2, i] * matrix[2, j]


@njit(cache=True)
def _gram(S: np.ndarray, G: np.ndarray) -> None:
    """tr(S) I − S."""
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    for i in range(3):
        for j in range(3):
            G[i, j] = (trace if i == j else 0.0) - S[i, j]


@njit(cache=True)
def _axial(Y: np.ndarray, out: np.ndarray) -> None:
    """The vector of Y − Yᵀ."""
    out[0], out[1], out[2] = Y[2, 1] - Y[1, 2], Y[0, 2] - Y[2, 0], Y[1, 0] - Y[0, 1]


@njit(cache=True)
def _skew(w: np.ndarray, i: int, j: int) -> float:
    """(w×)[i, j]."""
    if i == j:
        return 0.0
    k = 3 - i - j
    return -w[k] if (i + 1) % 3 == j else w[k]


@njit(cache=True)
def _cross(w: np.ndarray, A: np.ndarray, i: int, j: int) -> float:
    """(w × A)[i, j], column by column."""
    a, b = (i + 1) % 3, (i + 2) % 3
    return w[a] * A[b, j] - w[b] * A[a, j]


@njit(cache=True)
def _solve(G: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """G x = right by Cramer's rule, G (3, 3) symmetric; zero where G is flat."""
    size = max(abs(G[0, 0]), abs(G[1, 1]), abs(G[2, 2]))
    c0 = G[1, 1] * G[2, 2] - G[1, 2] * G[2, 1]
    c1 = G[1, 2] * G[2, 0] - G[1, 0] * G[2, 2]
    c2 = G[1, 0] * G[2, 1] - G[1, 1] * G[2, 0]
    determinant = G[0, 0] * c0 + G[0, 1] * c1 + G[0, 2] * c2
    if not abs(determinant) > FLAT * size**3:
        out[:] = 0.0
        return
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        value = 0.0
        for j in range(3):
            c, d = (j + 1) % 3, (j + 2) % 3
            value += (G[a, c] * G[b, d] - G[a, d] * G[b, c]) * right[j]
        out[i] = value / determinant
