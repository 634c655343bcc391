"""Cubature tets in edge space: their rest shape, and force and stiffness of any law.

Of a tet with rest edges Ds (columns x_α − x_0, clamped) and B = Ds⁻¹, F = I + D B with D the columns u_α − u_0. Force
and Hessian are taken by the nine numbers D[i, α], at place 3α + i, so that rows of the reduced basis need no further
transformation. With Q = FBᵀ, N = BBᵀ, C = FFᵀ, T = BSBᵀ, d = D + Ds = F Ds, b = det B:

    StVK                 force F S Bᵀ,       H[iα, jβ] = δij Tαβ + λ Qiα Qjβ + μ (Qiβ Qjα + Nαβ Cij)
    stable neo-Hookean   force μQ + s b cof(d),  H = μ δij Nαβ + (λ+μ) b² cof(d)iα cof(d)jβ + s b εijk εαβγ d_kγ,
                         s = (λ+μ)(J − 1) − μ

These two stand in `pose_space_lanes`, eight tets (LANES) side by side. Other laws, and the positive semidefinite
Hessian of any, go tet by tet through `fem.laws`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem import laws
from softrig.numerics.rotations import svd3

LANES = 8
"""Tets a chunk."""
WORK = 320
"""Doubles of scratch."""


@njit(cache=True)
def inverse3(A: np.ndarray, B: np.ndarray) -> float:
    """Write B = A⁻¹ (9 numbers each, row by row) and return det A."""
    c0 = A[4] * A[8] - A[5] * A[7]
    c1 = A[5] * A[6] - A[3] * A[8]
    c2 = A[3] * A[7] - A[4] * A[6]
    determinant = A[0] * c0 + A[1] * c1 + A[2] * c2
    s = 1.0 / determinant
    B[0], B[3], B[6] = s * c0, s * c1, s * c2
    B[1], B[4], B[7] = s * (A[2] * A[7] - A[1] * A[8]), s * (A[0] * A[8] - A[2] * A[6]), s * (A[1] * A[6] - A[0] * A[7])
    B[2], B[5], B[8] = s * (A[1] * A[5] - A[2] * A[4]), s * (A[2] * A[3] - A[0] * A[5]), s * (A[0] * A[4] - A[1] * A[3])
    return determinant


@njit(cache=True)
def rest_tet(
    edges: np.ndarray, neutral_inverse: np.ndarray, neutral: np.ndarray, low: float, B: np.ndarray, work: np.ndarray
) -> float:
    """Write B (9,) of a tet with posed edges (9,) and return its volume over that of the neutral tet.

    Where F_rest = Ds Dm⁻¹ has a signed singular value below `low` it is raised to `low`: such a tet is thin or inverted
    between the fitted poses. 2J/‖F‖² is never above the smallest singular value, so most tets are spared the SVD.
    `edges` is changed to the clamped ones.
    """
    F = work[0:9]
    square = 0.0
    for i in range(3):
        for j in range(3):
            value = (
                edges[3 * i] * neutral_inverse[j]
                + edges[3 * i + 1] * neutral_inverse[3 + j]
                + edges[3 * i + 2] * neutral_inverse[6 + j]
            )
            F[3 * i + j] = value
            square += value * value
    J = F[0] * (F[4] * F[8] - F[5] * F[7]) - F[1] * (F[3] * F[8] - F[5] * F[6]) + F[2] * (F[3] * F[7] - F[4] * F[6])
    if not 2.0 * J >= low * square:
        J = _clamped(F, neutral, low, edges, J, work[9:60])
    inverse3(edges, B)
    return J


@njit(cache=True)
def _clamped(F: np.ndarray, neutral: np.ndarray, low: float, edges: np.ndarray, J: float, work: np.ndarray) -> float:
    """Raise the singular values of F (9,) to `low`, write the edges that follow, and return the new determinant."""
    U, s, V = work[0:9].reshape((3, 3)), work[9:12], work[12:21].reshape((3, 3))
    svd3(F.reshape((3, 3)), U, s, V, work[21:30].reshape((3, 3)))
    if s[2] >= low:
        return J
    a, b, c = max(s[0], low), max(s[1], low), max(s[2], low)
    for i in range(3):
        for j in range(3):
            F[3 * i + j] = U[i, 0] * a * V[j, 0] + U[i, 1] * b * V[j, 1] + U[i, 2] * c * V[j, 2]
    for i in range(3):
        for j in range(3):
            edges[3 * i + j] = F[3 * i] * neutral[j] + F[3 * i + 1] * neutral[3 + j] + F[3 * i + 2] * neutral[6 + j]
    return a * b * c


@njit(cache=True)
def subtract_linear(
    width: int,
    moves: np.ndarray,
    gradients: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    factors: np.ndarray,
    force: np.ndarray,
) -> None:
    """Take the linear part, which all laws share, from the force (9, LANES): with ε = sym(F − I), (λ tr ε I + 2μ ε) Bᵀ.

    `width` is LANES, unknown to the compiler.
    """
    for t in range(width):
        lam_t, mu_t = factors[t] * lam[t], factors[t] * mu[t]
        g00, g01, g02 = 0.0, 0.0, 0.0
        g10, g11, g12 = 0.0, 0.0, 0.0
        g20, g21, g22 = 0.0, 0.0, 0.0
        for a in range(3):
            at = LANES * 3 * a + t
            b0, b1, b2 = gradients[at], gradients[at + LANES], gradients[at + 2 * LANES]
            x, y, z = moves[at], moves[at + LANES], moves[at + 2 * LANES]
            g00, g01, g02 = g00 + x * b0, g01 + x * b1, g02 + x * b2
            g10, g11, g12 = g10 + y * b0, g11 + y * b1, g12 + y * b2
            g20, g21, g22 = g20 + z * b0, g21 + z * b1, g22 + z * b2
        trace = lam_t * (g00 + g11 + g22)
        p00, p11, p22 = trace + 2.0 * mu_t * g00, trace + 2.0 * mu_t * g11, trace + 2.0 * mu_t * g22
        p01, p02, p12 = mu_t * (g01 + g10), mu_t * (g02 + g20), mu_t * (g12 + g21)
        for a in range(3):
            at = LANES * 3 * a + t
            b0, b1, b2 = gradients[at], gradients[at + LANES], gradients[at + 2 * LANES]
            force[at] -= p00 * b0 + p01 * b1 + p02 * b2
            force[at + LANES] -= p01 * b0 + p11 * b1 + p12 * b2
            force[at + 2 * LANES] -= p02 * b0 + p12 * b1 + p22 * b2


@njit(cache=True)
def subtract_stiffness(
    width: int, gradients: np.ndarray, lam: np.ndarray, mu: np.ndarray, factors: np.ndarray, hessian: np.ndarray
) -> None:
    """The same from the Hessian (45, LANES).

    H[iα, jβ] = λ B[α, i] B[β, j] + μ (δij N[α, β] + B[α, j] B[β, i]), N = BBᵀ.

    That is the Hessian at F = I; times the moves it is the force of `subtract_linear`.
    """
    place = 0
    for a in range(3):
        for i in range(3):
            ai = LANES * (3 * a + i)
            for column in range(3 * a + i + 1):
                b, j = column // 3, column % 3
                bj, aj, bi = LANES * (3 * b + j), LANES * (3 * a + j), LANES * (3 * b + i)
                target = hessian[LANES * place : LANES * place + LANES]
                for t in range(width):
                    target[t] -= factors[t] * (
                        lam[t] * gradients[ai + t] * gradients[bj + t] + mu[t] * gradients[aj + t] * gradients[bi + t]
                    )
                if i == j:
                    a0, b0 = LANES * 3 * a, LANES * 3 * b
                    for t in range(width):
                        target[t] -= (
                            factors[t]
                            * mu[t]
                            * (
                                gradients[a0 + t] * gradients[b0 + t]
                                + gradients[a0 + LANES + t] * gradients[b0 + LANES + t]
                                + gradients[a0 + 2 * LANES + t] * gradients[b0 + 2 * LANES + t]
                            )
                        )
                place += 1


@njit(cache=True)
def chunk_elasticity(
    law: int,
    moves: np.ndarray,
    gradients: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    factors: np.ndarray,
    projected: bool,
    force: np.ndarray,
    hessian: np.ndarray,
    work: np.ndarray,
) -> None:
    """Write factor · force (9, LANES) and factor · Hessian (45, LANES: the lower half) of eight tets; all flat.

    `moves` (9, LANES): D[i, α] at 3α + i; `gradients` (9, LANES): B[α, K] at 3α + K. Through stress and Hessian by F:
    force P Bᵀ, H[iα, jβ] = Σ_KL B[α, K] H_F[iK, jL] B[β, L].
    """
    B, F = work[0:9], work[9:18]
    P, scratch = work[18:27].reshape((3, 3)), work[27:87]
    H, half = work[90:171].reshape((9, 9)), work[171:252].reshape((9, 9))
    square = F.reshape((3, 3))
    for t in range(LANES):
        for k in range(9):
            B[k] = gradients[LANES * k + t]
        for i in range(3):
            for K in range(3):
                total = 1.0 if i == K else 0.0
                for a in range(3):
                    total += moves[LANES * (3 * a + i) + t] * B[3 * a + K]
                F[3 * i + K] = total
        laws.stress(law, square, lam[t], mu[t], P, scratch)
        if projected:
            laws.projected_hessian(law, square, lam[t], mu[t], H, scratch)
        else:
            laws.hessian(law, square, lam[t], mu[t], H, scratch)
        for i in range(3):
            for a in range(3):
                total = P[i, 0] * B[3 * a] + P[i, 1] * B[3 * a + 1] + P[i, 2] * B[3 * a + 2]
                force[LANES * (3 * a + i) + t] = factors[t] * total
                for k in range(9):
                    half[3 * a + i, k] = (
                        B[3 * a] * H[3 * i, k] + B[3 * a + 1] * H[3 * i + 1, k] + B[3 * a + 2] * H[3 * i + 2, k]
                    )
        for row in range(9):
            for column in range(row + 1):
                b, j = column // 3, column % 3
                total = 0.0
                for K in range(3):
                    total += half[row, 3 * j + K] * B[3 * b + K]
                hessian[LANES * (row * (row + 1) // 2 + column) + t] = factors[t] * total
