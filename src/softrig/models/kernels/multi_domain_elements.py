"""Internal forces of a domain by its cubature tets, on elements that survive inversion (MD11 §3.1)."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem.invertible import invertible_energy, invertible_hessian, invertible_stress
from softrig.models.kernels.dense import FAST


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_tet(
    law: int,
    gradient: np.ndarray,
    weight: float,
    lam: float,
    mu: float,
    q: np.ndarray,
    with_stiffness: bool,
    project: bool,
    force: np.ndarray,
    stiffness: np.ndarray,
    small: np.ndarray,
    product: np.ndarray,
) -> None:
    """Add w Gᵀ P(F) to `force` (r,), and w Gᵀ H G to the lower half of `stiffness` (r · r), of one tet.

    `gradient` G (9 · r): F = I + Σ_m G_m q_m; `weight` its volume times its cubature weight, m³. `small` and `product`
    (9 · r) are scratch.
    """
    r = len(q)
    F, P = small[0:9].reshape((3, 3)), small[9:18].reshape((3, 3))
    H, work = small[18:99].reshape((9, 9)), small[99:]
    for a in range(9):
        row = gradient[a * r : (a + 1) * r]
        total = 0.0
        for m in range(r):
            total += row[m] * q[m]
        small[a] = total + (1.0 if a % 4 == 0 else 0.0)
    invertible_stress(law, F, lam, mu, P, work)
    for a in range(9):
        row = gradient[a * r : (a + 1) * r]
        scale = weight * small[9 + a]
        for m in range(r):
            force[m] += scale * row[m]
    if not with_stiffness:
        return
    invertible_hessian(law, F, lam, mu, project, H, work)
    for a in range(9):
        out = product[a * r : (a + 1) * r]
        out[:] = 0.0
        for b in range(9):
            scale, row = weight * H[a, b], gradient[b * r : (b + 1) * r]
            for m in range(r):
                out[m] += scale * row[m]
    p0, p1, p2 = product[0:r], product[r : 2 * r], product[2 * r : 3 * r]
    p3, p4, p5 = product[3 * r : 4 * r], product[4 * r : 5 * r], product[5 * r : 6 * r]
    p6, p7, p8 = product[6 * r : 7 * r], product[7 * r : 8 * r], product[8 * r : 9 * r]
    for i in range(r):
        g0, g1, g2 = gradient[i], gradient[r + i], gradient[2 * r + i]
        g3, g4, g5 = gradient[3 * r + i], gradient[4 * r + i], gradient[5 * r + i]
        g6, g7, g8 = gradient[6 * r + i], gradient[7 * r + i], gradient[8 * r + i]
        target = stiffness[i * r : i * r + i + 1]
        for j in range(i + 1):
            target[j] += (
                (g0 * p0[j] + g1 * p1[j] + g2 * p2[j])
                + (g3 * p3[j] + g4 * p4[j] + g5 * p5[j])
                + (g6 * p6[j] + g7 * p7[j] + g8 * p8[j])
            )


@njit(cache=True, forceinline=True, fastmath=FAST)
def tet_energy(law: int, gradient: np.ndarray, lam: float, mu: float, q: np.ndarray, small: np.ndarray) -> float:
    """ψ(F) of one tet, joule per cubic metre; arguments as of `add_tet`."""
    r = len(q)
    F = small[0:9].reshape((3, 3))
    for a in range(9):
        row = gradient[a * r : (a + 1) * r]
        total = 0.0
        for m in range(r):
            total += row[m] * q[m]
        small[a] = total + (1.0 if a % 4 == 0 else 0.0)
    return invertible_energy(law, F, lam, mu, small[99:])


@njit(cache=True)
def tet_forces(
    law: int,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    samples: np.ndarray,
    forces: np.ndarray,
) -> None:
    """Write v_e G_eᵀ P(F_e), N/√kg, of tets with gradients (e, 9, r) at samples (s, r) into `forces` (e, s, r)."""
    r = samples.shape[1]
    F, P = np.empty((3, 3)), np.empty((3, 3))
    work = np.empty(120)
    for e in range(len(volumes)):
        for s in range(len(samples)):
            for a in range(9):
                total = 1.0 if a % 4 == 0 else 0.0
                for m in range(r):
                    total += gradients[e, a, m] * samples[s, m]
                F[a // 3, a % 3] = total
            invertible_stress(law, F, lam[e], mu[e], P, work)
            for m in range(r):
                total = 0.0
                for a in range(9):
                    total += gradients[e, a, m] * P[a // 3, a % 3]
                forces[e, s, m] = volumes[e] * total
