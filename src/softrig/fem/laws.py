"""Material laws: energy, stress and stiffness of one integration point, compiled, each formula once.

Full assembly calls these functions, and so does every runtime that evaluates stress. Arguments: `law` one of
the codes below, `F` (3, 3) deformation gradient, λ and μ the Lamé constants in pascal. J = det F, C = FᵀF,
E = (C − I)/2, F = R S the polar decomposition, σ its signed singular values.

| law | energy density ψ |
| --- | --- |
| St. Venant–Kirchhoff | λ/2 (tr E)² + μ tr E² |
| corotational linear | λ/2 (tr S − 3)² + μ ‖S − I‖² |
| neo-Hookean | μ/2 (tr C − 3) − μ ln J + λ/2 (ln J)² (infinite for J ≤ 0) |
| stable neo-Hookean | μ/2 (tr C − 3) − μ (J − 1) + (λ+μ)/2 (J − 1)² (Smith et al. 2018) |

Derivatives: P = ∂ψ/∂F, and H (9, 9) = ∂P/∂F with row 3i+K for P[i, K] and column 3j+L for F[j, L].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.errors import InputError
from softrig.numerics.rotations import svd3, symmetric_eigen3

STVK = 0
COROTATIONAL = 1
NEO_HOOKEAN = 2
STABLE_NEO_HOOKEAN = 3

LAWS = {
    "stvk": STVK,
    "corotational": COROTATIONAL,
    "neo-hookean": NEO_HOOKEAN,
    "stable-neo-hookean": STABLE_NEO_HOOKEAN,
}
"""Codes of the compiled laws by the names people use."""


def law_code(name: str) -> int:
    """The code of a law by name; an unknown name lists the known ones."""
    if name not in LAWS:
        raise InputError(f"no material law called {name!r}; there are {', '.join(sorted(LAWS))}")
    return LAWS[name]


WORKSPACE = 60
"""Doubles of scratch that `stress`, `hessian` and `projected_hessian` need."""


@njit(cache=True)
def determinant(F: np.ndarray) -> float:
    """J = det F."""
    return (
        F[0, 0] * (F[1, 1] * F[2, 2] - F[1, 2] * F[2, 1])
        - F[0, 1] * (F[1, 0] * F[2, 2] - F[1, 2] * F[2, 0])
        + F[0, 2] * (F[1, 0] * F[2, 1] - F[1, 1] * F[2, 0])
    )


@njit(cache=True)
def _cofactor(F: np.ndarray, i: int, K: int) -> float:
    """cof(F)[i, K] = ∂J/∂F[i, K]."""
    a, b = (i + 1) % 3, (i + 2) % 3
    c, d = (K + 1) % 3, (K + 2) % 3
    return F[a, c] * F[b, d] - F[a, d] * F[b, c]


@njit(cache=True)
def _svd_workspace(F: np.ndarray, work: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    U = work[0:9].reshape((3, 3))
    s = work[9:12]
    V = work[12:21].reshape((3, 3))
    svd3(F, U, s, V, work[21:30].reshape((3, 3)))
    return U, s, V


@njit(cache=True)
def energy(law: int, F: np.ndarray, lam: float, mu: float, work: np.ndarray) -> float:
    """ψ(F), joule per cubic metre."""
    if law == STVK:
        trace = 0.0
        square = 0.0
        for K in range(3):
            for L in range(3):
                strain = 0.5 * (F[0, K] * F[0, L] + F[1, K] * F[1, L] + F[2, K] * F[2, L] - (1.0 if K == L else 0.0))
                square += strain * strain
                if K == L:
                    trace += strain
        return 0.5 * lam * trace * trace + mu * square
    if law == COROTATIONAL:
        _, s, _ = _svd_workspace(F, work)
        trace = s[0] + s[1] + s[2] - 3.0
        return 0.5 * lam * trace * trace + mu * ((s[0] - 1.0) ** 2 + (s[1] - 1.0) ** 2 + (s[2] - 1.0) ** 2)
    first = -3.0
    for K in range(3):
        for L in range(3):
            first += F[K, L] * F[K, L]
    J = determinant(F)
    if law == NEO_HOOKEAN:
        if J <= 0.0:
            return np.inf
        logarithm = np.log(J)
        return 0.5 * mu * first - mu * logarithm + 0.5 * lam * logarithm * logarithm
    return 0.5 * mu * first - mu * (J - 1.0) + 0.5 * (lam + mu) * (J - 1.0) ** 2


@njit(cache=True)
def stress(law: int, F: np.ndarray, lam: float, mu: float, P: np.ndarray, work: np.ndarray) -> None:
    """P(F) = ∂ψ/∂F, pascal: F S, 2μ(F−R) + λ tr(S−I) R, μF + (λ ln J − μ) F⁻ᵀ, μF + s cof F."""
    if law == STVK:
        S = work[0:9].reshape((3, 3))
        _second_piola(F, lam, mu, S)
        for i in range(3):
            for K in range(3):
                P[i, K] = F[i, 0] * S[0, K] + F[i, 1] * S[1, K] + F[i, 2] * S[2, K]
        return
    if law == COROTATIONAL:
        U, s, V = _svd_workspace(F, work)
        pressure = lam * (s[0] + s[1] + s[2] - 3.0) - 2.0 * mu
        for i in range(3):
            for K in range(3):
                rotation = U[i, 0] * V[K, 0] + U[i, 1] * V[K, 1] + U[i, 2] * V[K, 2]
                P[i, K] = 2.0 * mu * F[i, K] + pressure * rotation
        return
    slope = _volume_slope(law, determinant(F), lam, mu)
    for i in range(3):
        for K in range(3):
            P[i, K] = mu * F[i, K] + slope * _cofactor(F, i, K)


@njit(cache=True)
def _second_piola(F: np.ndarray, lam: float, mu: float, S: np.ndarray) -> None:
    """S = λ tr(E) I + 2μ E (StVK05 Eq. 1)."""
    trace = -3.0
    for K in range(3):
        for L in range(K + 1):
            product = F[0, K] * F[0, L] + F[1, K] * F[1, L] + F[2, K] * F[2, L]
            if K == L:
                trace += product
                product -= 1.0
            S[K, L] = S[L, K] = mu * product
    for K in range(3):
        S[K, K] += 0.5 * lam * trace


@njit(cache=True)
def _volume_slope(law: int, J: float, lam: float, mu: float) -> float:
    """∂/∂J of the part of ψ that depends on J alone."""
    if law == NEO_HOOKEAN:
        return (lam * np.log(J) - mu) / J if J > 0.0 else np.nan
    return (lam + mu) * (J - 1.0) - mu


@njit(cache=True)
def _volume_curvature(law: int, J: float, lam: float, mu: float) -> float:
    """∂²/∂J² of the part of ψ that depends on J alone."""
    if law == NEO_HOOKEAN:
        return (lam - lam * np.log(J) + mu) / (J * J) if J > 0.0 else np.nan
    return lam + mu


@njit(cache=True)
def hessian(law: int, F: np.ndarray, lam: float, mu: float, H: np.ndarray, work: np.ndarray) -> None:
    """H(F) = ∂P/∂F (9, 9), pascal, exact (may be indefinite).

    StVK: H[iK, jL] = δij S[K, L] + λ F[i,K] F[j,L] + μ (F[i,L] F[j,K] + (FFᵀ)[i,j] δKL).
    Neo-Hookean laws with volume part g(J): μ δij δKL + g'' cof cof + g' ∂cof/∂F.
    Corotational: from the principal stretches.
    """
    if law == STVK:
        S = work[0:9].reshape((3, 3))
        _second_piola(F, lam, mu, S)
        for i in range(3):
            for j in range(i + 1):
                left = mu * (F[i, 0] * F[j, 0] + F[i, 1] * F[j, 1] + F[i, 2] * F[j, 2])
                for K in range(3):
                    for L in range(3):
                        value = lam * F[i, K] * F[j, L] + mu * F[i, L] * F[j, K]
                        if K == L:
                            value += left
                        if i == j:
                            value += S[K, L]
                        H[3 * i + K, 3 * j + L] = value
                        H[3 * j + L, 3 * i + K] = value
        return
    if law == COROTATIONAL:
        _principal_hessian(law, F, lam, mu, H, work, False)
        return
    J = determinant(F)
    slope = _volume_slope(law, J, lam, mu)
    curvature = _volume_curvature(law, J, lam, mu)
    cofactor = work[0:9]
    for i in range(3):
        for K in range(3):
            cofactor[3 * i + K] = _cofactor(F, i, K)
    for a in range(9):
        for b in range(9):
            H[a, b] = curvature * cofactor[a] * cofactor[b]
        H[a, a] += mu
    # ∂cof[i, K]/∂F[j, L] = ε_ijm ε_KLN F[m, N]: nonzero only for i ≠ j and K ≠ L.
    for i in range(3):
        for step in range(1, 3):
            j = (i + step) % 3
            m = 3 - i - j
            for K in range(3):
                for turn in range(1, 3):
                    L = (K + turn) % 3
                    sign = slope if step == turn else -slope
                    H[3 * i + K, 3 * j + L] += sign * F[m, 3 - K - L]


@njit(cache=True)
def viscosity(F: np.ndarray, lam: float, mu: float, H: np.ndarray) -> None:
    """Write H (9, 9), pascal, of the viscous stress H Ḟ = λ J̇ cof F + 2μ F Ė, which takes λ J̇² + 2μ Ė : Ė.

    H[iK, jL] = λ cof[i,K] cof[j,L] + μ (F[i,L] F[j,K] + (FFᵀ)[i,j] δKL), with J̇ = cof F : Ḟ and Ė = sym(FᵀḞ). At F = I
    this is the Hessian of every law. Elsewhere it resists every change of volume and of shape and no rotation, so that
    a damping made of it takes energy only. A law's own Hessian gives some where flesh is compressed and turns.
    """
    for i in range(3):
        for j in range(i + 1):
            left = mu * (F[i, 0] * F[j, 0] + F[i, 1] * F[j, 1] + F[i, 2] * F[j, 2])
            for K in range(3):
                for L in range(3):
                    value = lam * _cofactor(F, i, K) * _cofactor(F, j, L) + mu * F[i, L] * F[j, K]
                    if K == L:
                        value += left
                    H[3 * i + K, 3 * j + L] = value
                    H[3 * j + L, 3 * i + K] = value


@njit(cache=True)
def projected_hessian(law: int, F: np.ndarray, lam: float, mu: float, H: np.ndarray, work: np.ndarray) -> None:
    """The nearest positive semidefinite matrix to `hessian`, through the principal stretches."""
    _principal_hessian(law, F, lam, mu, H, work, True)


@njit(cache=True)
def _principal_curvatures(
    law: int, s: np.ndarray, lam: float, mu: float, A: np.ndarray, differences: np.ndarray, sums: np.ndarray
) -> None:
    """Second derivatives of ψ(σ): A = ∂²ψ/∂σᵢ∂σⱼ, and for the pair opposite k, (i, j):

    differences[k] = (ψᵢ − ψⱼ)/(σᵢ − σⱼ), sums[k] = (ψᵢ + ψⱼ)/(σᵢ + σⱼ), with ψᵢ = ∂ψ/∂σᵢ. Divided by
    hand, so that equal stretches cost no accuracy.
    """
    if law == STVK:
        pressure = 0.5 * lam * (s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - 3.0) - mu
    elif law == COROTATIONAL:
        pressure = lam * (s[0] + s[1] + s[2] - 3.0) - 2.0 * mu
    else:
        J = s[0] * s[1] * s[2]
        slope = _volume_slope(law, J, lam, mu)
        curvature = _volume_curvature(law, J, lam, mu)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        if law == STVK:
            squares = s[i] * s[i] + s[j] * s[j]
            A[k, k] = pressure + (lam + 3.0 * mu) * s[k] * s[k]
            A[i, j] = A[j, i] = lam * s[i] * s[j]
            differences[k] = pressure + mu * (squares + s[i] * s[j])
            sums[k] = pressure + mu * (squares - s[i] * s[j])
        elif law == COROTATIONAL:
            A[k, k] = lam + 2.0 * mu
            A[i, j] = A[j, i] = lam
            differences[k] = 2.0 * mu
            # σᵢ + σⱼ → 0 is where the rotation itself is undefined.
            total = s[i] + s[j]
            sums[k] = 2.0 * mu + 2.0 * pressure / max(total, 1e-9)
        else:
            A[k, k] = mu + curvature * (s[i] * s[j]) ** 2
            A[i, j] = A[j, i] = curvature * s[k] * J + slope * s[k]
            differences[k] = mu - slope * s[k]
            sums[k] = mu + slope * s[k]


@njit(cache=True)
def _clamp_symmetric3(A: np.ndarray, work: np.ndarray) -> None:
    """Replace negative eigenvalues of the symmetric 3×3 A by zero, in place."""
    vectors = work[0:9].reshape((3, 3))
    symmetric_eigen3(A, vectors)
    low0, low1, low2 = max(A[0, 0], 0.0), max(A[1, 1], 0.0), max(A[2, 2], 0.0)
    for i in range(3):
        for j in range(3):
            A[i, j] = (
                vectors[i, 0] * low0 * vectors[j, 0]
                + vectors[i, 1] * low1 * vectors[j, 1]
                + vectors[i, 2] * low2 * vectors[j, 2]
            )


@njit(cache=True)
def _principal_hessian(
    law: int, F: np.ndarray, lam: float, mu: float, H: np.ndarray, work: np.ndarray, project: bool
) -> None:
    """H from the nine eigen-directions of an isotropic law: three stretches, and a shear and a twist a pair.

    Stretches couple through A; (uᵢvⱼᵀ ± uⱼvᵢᵀ)/√2 are eigenvectors with eigenvalues differences[k] and
    sums[k]. Clamping those at zero is the exact projection.
    """
    U, s, V = _svd_workspace(F, work)
    A = work[30:39].reshape((3, 3))
    differences = work[39:42]
    sums = work[42:45]
    _principal_curvatures(law, s, lam, mu, A, differences, sums)
    if project:
        _clamp_symmetric3(A, work[45:54])
    H[:] = 0.0
    for a in range(9):
        i, K = a // 3, a % 3
        for b in range(a + 1):
            j, L = b // 3, b % 3
            total = 0.0
            for m in range(3):
                for n in range(3):
                    total += A[m, n] * U[i, m] * V[K, m] * U[j, n] * V[L, n]
            H[a, b] = total
    for k in range(3):
        m, n = (k + 1) % 3, (k + 2) % 3
        shear, twist = differences[k], sums[k]
        if project:
            shear, twist = max(shear, 0.0), max(twist, 0.0)
        for a in range(9):
            i, K = a // 3, a % 3
            mn_a, nm_a = U[i, m] * V[K, n], U[i, n] * V[K, m]
            for b in range(a + 1):
                j, L = b // 3, b % 3
                mn_b, nm_b = U[j, m] * V[L, n], U[j, n] * V[L, m]
                H[a, b] += 0.5 * (shear * (mn_a + nm_a) * (mn_b + nm_b) + twist * (mn_a - nm_a) * (mn_b - nm_b))
    for a in range(9):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(cache=True)
def third_order_constants(law: int, lam: float, mu: float) -> tuple[float, float, float]:
    """(a, b, c) of the expansion ψ = λ/2 (tr E)² + μ tr E² + a/3 tr E³ + b tr E tr E² + c/3 (tr E)³ + O(E⁴).

    Every isotropic law that is stress-free at rest has this form, so three numbers say how it
    departs from StVK to the order that modal derivatives see. They follow from
    ln J = tr E − tr E² + 4/3 tr E³ and S = I + E − E²/2 + E³/2.
    """
    if law == COROTATIONAL:
        return -3.0 * mu, -0.5 * lam, 0.0
    if law == NEO_HOOKEAN:
        return -4.0 * mu, -lam, 0.0
    if law == STABLE_NEO_HOOKEAN:
        return -4.0 * mu, -lam, 1.5 * lam + mu
    return 0.0, 0.0, 0.0
