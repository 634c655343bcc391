"""Laws that survive inversion: singular values of F clamped from below (Irving et al. 2004; Teran et al. 2005, MD11).

F = U diag(σ) Vᵀ with rotations U, V and signed σ; P(F) = U P̂(max(σ, ε)) Vᵀ is continuous through inversion and pushes a
tet that is flat or inside out back as hard as one squeezed to ε. The law is isotropic, so U P̂ Vᵀ is its stress at the
clamped F. Stable neo-Hookean needs none of this: it is finite, smooth and restoring for every F by itself.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem import laws
from softrig.numerics.rotations import svd3

LEAST_STRETCH = 0.25
"""ε, below which no singular value counts."""
WORKSPACE = laws.WORKSPACE + 39
"""Doubles of scratch."""


@njit(cache=True)
def clamped_gradient(F: np.ndarray, least: float, clamped: np.ndarray, work: np.ndarray) -> bool:
    """Write F with its signed singular values clamped to at least `least`; whether that changed anything."""
    U, V = work[0:9].reshape((3, 3)), work[9:18].reshape((3, 3))
    s = work[18:21]
    svd3(F, U, s, V, work[21:30].reshape((3, 3)))
    if s[0] >= least and s[1] >= least and s[2] >= least:
        clamped[:] = F
        return False
    for i in range(3):
        for K in range(3):
            total = 0.0
            for m in range(3):
                total += U[i, m] * max(s[m], least) * V[K, m]
            clamped[i, K] = total
    return True


@njit(cache=True)
def invertible_energy(law: int, F: np.ndarray, lam: float, mu: float, work: np.ndarray) -> float:
    """ψ(F̂) + P(F̂) : (F − F̂) with F̂ the clamped F, joule per cubic metre: what tells whether a Newton step helped."""
    if law == laws.STABLE_NEO_HOOKEAN:
        return laws.energy(law, F, lam, mu, work)
    clamped = work[30:39].reshape((3, 3))
    total = 0.0
    if clamped_gradient(F, LEAST_STRETCH, clamped, work):
        P = work[0:9].reshape((3, 3))
        laws.stress(law, clamped, lam, mu, P, work[39:])
        for i in range(3):
            for K in range(3):
                total += P[i, K] * (F[i, K] - clamped[i, K])
    return total + laws.energy(law, clamped, lam, mu, work[39:])


@njit(cache=True)
def invertible_stress(law: int, F: np.ndarray, lam: float, mu: float, P: np.ndarray, work: np.ndarray) -> None:
    """P at the clamped F, pascal; of stable neo-Hookean P(F) itself."""
    if law == laws.STABLE_NEO_HOOKEAN:
        laws.stress(law, F, lam, mu, P, work)
        return
    clamped = work[30:39].reshape((3, 3))
    clamped_gradient(F, LEAST_STRETCH, clamped, work)
    laws.stress(law, clamped, lam, mu, P, work[39:])


@njit(cache=True)
def invertible_hessian(
    law: int, F: np.ndarray, lam: float, mu: float, project: bool, H: np.ndarray, work: np.ndarray
) -> None:
    """∂P/∂F (9, 9), pascal: exact where nothing is clamped, unless `project`; else the positive semidefinite one at the
    clamped F (Teran et al. 2005), a stand-in under which Newton's steps point downhill."""
    if law == laws.STABLE_NEO_HOOKEAN:
        if project:
            laws.projected_hessian(law, F, lam, mu, H, work)
        else:
            laws.hessian(law, F, lam, mu, H, work)
        return
    clamped = work[30:39].reshape((3, 3))
    if clamped_gradient(F, LEAST_STRETCH, clamped, work) or project:
        laws.projected_hessian(law, clamped, lam, mu, H, work[39:])
    else:
        laws.hessian(law, clamped, lam, mu, H, work[39:])
