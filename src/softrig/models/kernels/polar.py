"""Rotations of 3×3 matrices that change with time: polar factors, their rates, and how they answer to coordinates."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.numerics.rotations import svd3

_ROUNDS = 12
_FLAT = 3e-4
"""Of det A against |A|³: flatter matrices are left to their singular values, the iteration takes long for them."""
_CLOSE = 1e-30
"""Newton's iteration ends once the last change was this small, squared: it converges quadratically."""


@njit(cache=True)
def polar_rotation(A: np.ndarray, R: np.ndarray, work: np.ndarray) -> None:
    """Write the rotation of A = R S (3, 3); a mirroring A gets a negative S. `work` holds 30 numbers.

    Newton's iteration R ← ½(R + R⁻ᵀ) (Higham 1986), at once exact for rigid bones; a flat A goes through its
    singular values.
    """
    determinant = _cofactors(A, work)
    square = 0.0
    for i in range(3):
        for j in range(3):
            square += A[i, j] * A[i, j]
    if not abs(determinant) > _FLAT * square * np.sqrt(square):
        nearest_rotation(A, R, work)
        return
    scale = 1.0 / np.cbrt(determinant)
    for i in range(3):
        for j in range(3):
            R[i, j] = A[i, j] * scale
    for _ in range(_ROUNDS):
        half = 0.5 / _cofactors(R, work)
        change = 0.0
        for i in range(3):
            for j in range(3):
                value = 0.5 * R[i, j] + half * work[3 * i + j]
                change += (value - R[i, j]) ** 2
                R[i, j] = value
        if change < _CLOSE:
            return


@njit(cache=True)
def _cofactors(A: np.ndarray, work: np.ndarray) -> float:
    """Write cof(A) flat into `work` and return det A; A⁻ᵀ = cof(A) / det A."""
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            c, d = (j + 1) % 3, (j + 2) % 3
            work[3 * i + j] = A[a, c] * A[b, d] - A[a, d] * A[b, c]
    return A[0, 0] * work[0] + A[0, 1] * work[1] + A[0, 2] * work[2]


@njit(cache=True)
def fitted_rotation(A: np.ndarray, R: np.ndarray, work: np.ndarray) -> None:
    """Write the rotation nearest to A (3, 3), continuous where A is flattened and turned inside out (Kabsch 1976).

    The same as `polar_rotation` but for an A that mirrors. `work` holds 30 numbers.
    """
    if _cofactors(A, work) > 0.0:
        polar_rotation(A, R, work)
    else:
        nearest_rotation(A, R, work)


@njit(cache=True)
def nearest_rotation(A: np.ndarray, R: np.ndarray, work: np.ndarray) -> None:
    """As `fitted_rotation`, by singular values; the last has the sign of det A."""
    U, V = work[0:9].reshape((3, 3)), work[12:21].reshape((3, 3))
    svd3(A, U, work[9:12], V, work[21:30].reshape((3, 3)))
    for i in range(3):
        for j in range(3):
            R[i, j] = U[i, 0] * V[j, 0] + U[i, 1] * V[j, 1] + U[i, 2] * V[j, 2]


@njit(cache=True)
def angular_rates(
    R: np.ndarray, A: np.ndarray, A1: np.ndarray, A2: np.ndarray, omega: np.ndarray, turn: np.ndarray, work: np.ndarray
) -> None:
    """Write body-frame Ω (`omega`) and Ω̇ (`turn`), rad/s and rad/s², of the rotation R of A(t) = R S.

    With Rᵀ Ȧ = [Ω]S + Ṡ and G = tr(S) I − S:  G Ω = 2 skew(RᵀȦ),
    G Ω̇ = 2 skew(RᵀÄ − [Ω]²S) − 2(tr(Ṡ) I − Ṡ) Ω  (skew = axial vector of the antisymmetric part; cf. SUB11 Eq. 10).
    Zero where S leaves a direction undetermined. `work` holds 45 numbers.
    """
    S, B1, B2 = work[0:9].reshape((3, 3)), work[9:18].reshape((3, 3)), work[18:27].reshape((3, 3))
    G, right = work[27:36].reshape((3, 3)), work[36:39]
    for i in range(3):
        for j in range(3):
            S[i, j] = R[0, i] * A[0, j] + R[1, i] * A[1, j] + R[2, i] * A[2, j]
            B1[i, j] = R[0, i] * A1[0, j] + R[1, i] * A1[1, j] + R[2, i] * A1[2, j]
            B2[i, j] = R[0, i] * A2[0, j] + R[1, i] * A2[1, j] + R[2, i] * A2[2, j]
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    for i in range(3):
        for j in range(3):
            G[i, j] = -0.5 * (S[i, j] + S[j, i])
        G[i, i] += trace
        right[i] = _axial(B1, i)
    _solve3(G, right, omega, trace)
    x, y, z = omega[0], omega[1], omega[2]
    # Ṡ = RᵀȦ − [Ω]S, and Ä's part is reduced by [Ω]²S = Ω(ΩᵀS) − |Ω|²S.
    square = x * x + y * y + z * z
    for j in range(3):
        along = x * S[0, j] + y * S[1, j] + z * S[2, j]
        for i in range(3):
            B2[i, j] -= omega[i] * along - square * S[i, j]
        B1[0, j] -= y * S[2, j] - z * S[1, j]
        B1[1, j] -= z * S[0, j] - x * S[2, j]
        B1[2, j] -= x * S[1, j] - y * S[0, j]
    slope = B1[0, 0] + B1[1, 1] + B1[2, 2]
    for i in range(3):
        pulled = B1[i, 0] * x + B1[i, 1] * y + B1[i, 2] * z
        right[i] = _axial(B2, i) - 2.0 * (slope * omega[i] - pulled)
    _solve3(G, right, turn, trace)


@njit(cache=True)
def _axial(A: np.ndarray, i: int) -> float:
    """Component i of twice the axial vector of A's antisymmetric part."""
    j, k = (i + 1) % 3, (i + 2) % 3
    return A[k, j] - A[j, k]


@njit(cache=True)
def _solve3(G: np.ndarray, b: np.ndarray, x: np.ndarray, size: float) -> None:
    """x = G⁻¹ b of a symmetric G (3, 3); zero where G is singular beside `size`."""
    c00 = G[1, 1] * G[2, 2] - G[1, 2] * G[1, 2]
    c01 = G[0, 2] * G[1, 2] - G[0, 1] * G[2, 2]
    c02 = G[0, 1] * G[1, 2] - G[0, 2] * G[1, 1]
    determinant = G[0, 0] * c00 + G[0, 1] * c01 + G[0, 2] * c02
    if not abs(determinant) > 1e-9 * abs(size) ** 3:
        x[:] = 0.0
        return
    c11 = G[0, 0] * G[2, 2] - G[0, 2] * G[0, 2]
    c12 = G[0, 1] * G[0, 2] - G[0, 0] * G[1, 2]
    c22 = G[0, 0] * G[1, 1] - G[0, 1] * G[0, 1]
    x[0] = (c00 * b[0] + c01 * b[1] + c02 * b[2]) / determinant
    x[1] = (c01 * b[0] + c11 * b[1] + c12 * b[2]) / determinant
    x[2] = (c02 * b[0] + c12 * b[1] + c22 * b[2]) / determinant


@njit(cache=True)
def angular_map(R: np.ndarray, A: np.ndarray, slopes: np.ndarray, spins: np.ndarray, work: np.ndarray) -> None:
    """Write `spins` (3, r): body-frame Ω = Σ spins[:, l] q̇_l of the rotation R of A(q) = R S, ∂A/∂q_l = slopes[l].

    Column by column the first equation of `angular_rates`; `slopes` is (r, 3, 3). `work` holds 24 numbers.
    """
    S, G = work[0:9].reshape((3, 3)), work[9:18].reshape((3, 3))
    right, spin = work[18:21], work[21:24]
    for i in range(3):
        for j in range(3):
            S[i, j] = R[0, i] * A[0, j] + R[1, i] * A[1, j] + R[2, i] * A[2, j]
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    for i in range(3):
        for j in range(3):
            G[i, j] = -0.5 * (S[i, j] + S[j, i])
        G[i, i] += trace
    for mode in range(slopes.shape[0]):
        slope = slopes[mode]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            right[i] = 0.0
            for x in range(3):
                right[i] += R[x, k] * slope[x, j] - R[x, j] * slope[x, k]
        _solve3(G, right, spin, trace)
        for i in range(3):
            spins[i, mode] = spin[i]
