"""Viscosity and corner blocks of eight tets at once, written out entry by entry, as and why in `pose_space_lanes`."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, forceinline=True, fastmath=FAST)
def viscosity_lanes(
    lanes: int,
    moves: np.ndarray,
    gradients: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    factors: np.ndarray,
    scale: float,
    hessian: np.ndarray,
) -> None:
    """Write `fem.laws.viscosity` in edge space (45, lanes), times `scale` and `factors`.

    H[iα, jβ] = λ kiα kjβ + μ (qiβ qjα + nαβ cij) with k = cof(F) Bᵀ, q = F Bᵀ, n = B Bᵀ, c = F Fᵀ.
    """
    for t in range(lanes):
        b00, b01, b02 = gradients[t], gradients[8 + t], gradients[16 + t]
        b10, b11, b12 = gradients[24 + t], gradients[32 + t], gradients[40 + t]
        b20, b21, b22 = gradients[48 + t], gradients[56 + t], gradients[64 + t]
        x, y, z = moves[t], moves[24 + t], moves[48 + t]
        f00 = 1.0 + x * b00 + y * b10 + z * b20
        f01 = x * b01 + y * b11 + z * b21
        f02 = x * b02 + y * b12 + z * b22
        x, y, z = moves[8 + t], moves[32 + t], moves[56 + t]
        f10 = x * b00 + y * b10 + z * b20
        f11 = 1.0 + x * b01 + y * b11 + z * b21
        f12 = x * b02 + y * b12 + z * b22
        x, y, z = moves[16 + t], moves[40 + t], moves[64 + t]
        f20 = x * b00 + y * b10 + z * b20
        f21 = x * b01 + y * b11 + z * b21
        f22 = 1.0 + x * b02 + y * b12 + z * b22
        g00 = f11 * f22 - f12 * f21
        g01 = f12 * f20 - f10 * f22
        g02 = f10 * f21 - f11 * f20
        g10 = f21 * f02 - f22 * f01
        g11 = f22 * f00 - f20 * f02
        g12 = f20 * f01 - f21 * f00
        g20 = f01 * f12 - f02 * f11
        g21 = f02 * f10 - f00 * f12
        g22 = f00 * f11 - f01 * f10
        lambda_, m = scale * factors[t] * lam[t], scale * factors[t] * mu[t]
        k00 = g00 * b00 + g01 * b01 + g02 * b02
        k01 = g00 * b10 + g01 * b11 + g02 * b12
        k02 = g00 * b20 + g01 * b21 + g02 * b22
        k10 = g10 * b00 + g11 * b01 + g12 * b02
        k11 = g10 * b10 + g11 * b11 + g12 * b12
        k12 = g10 * b20 + g11 * b21 + g12 * b22
        k20 = g20 * b00 + g21 * b01 + g22 * b02
        k21 = g20 * b10 + g21 * b11 + g22 * b12
        k22 = g20 * b20 + g21 * b21 + g22 * b22
        q00 = f00 * b00 + f01 * b01 + f02 * b02
        q01 = f00 * b10 + f01 * b11 + f02 * b12
        q02 = f00 * b20 + f01 * b21 + f02 * b22
        q10 = f10 * b00 + f11 * b01 + f12 * b02
        q11 = f10 * b10 + f11 * b11 + f12 * b12
        q12 = f10 * b20 + f11 * b21 + f12 * b22
        q20 = f20 * b00 + f21 * b01 + f22 * b02
        q21 = f20 * b10 + f21 * b11 + f22 * b12
        q22 = f20 * b20 + f21 * b21 + f22 * b22
        # n times μ.
        n00 = m * (b00 * b00 + b01 * b01 + b02 * b02)
        n10 = m * (b10 * b00 + b11 * b01 + b12 * b02)
        n11 = m * (b10 * b10 + b11 * b11 + b12 * b12)
        n20 = m * (b20 * b00 + b21 * b01 + b22 * b02)
        n21 = m * (b20 * b10 + b21 * b11 + b22 * b12)
        n22 = m * (b20 * b20 + b21 * b21 + b22 * b22)
        c00 = f00 * f00 + f01 * f01 + f02 * f02
        c10 = f10 * f00 + f11 * f01 + f12 * f02
        c11 = f10 * f10 + f11 * f11 + f12 * f12
        c20 = f20 * f00 + f21 * f01 + f22 * f02
        c21 = f20 * f10 + f21 * f11 + f22 * f12
        c22 = f20 * f20 + f21 * f21 + f22 * f22
        hessian[t] = lambda_ * k00 * k00 + m * q00 * q00 + n00 * c00
        hessian[8 + t] = lambda_ * k10 * k00 + m * q10 * q00 + n00 * c10
        hessian[16 + t] = lambda_ * k10 * k10 + m * q10 * q10 + n00 * c11
        hessian[24 + t] = lambda_ * k20 * k00 + m * q20 * q00 + n00 * c20
        hessian[32 + t] = lambda_ * k20 * k10 + m * q20 * q10 + n00 * c21
        hessian[40 + t] = lambda_ * k20 * k20 + m * q20 * q20 + n00 * c22
        hessian[48 + t] = lambda_ * k01 * k00 + m * q00 * q01 + n10 * c00
        hessian[56 + t] = lambda_ * k01 * k10 + m * q00 * q11 + n10 * c10
        hessian[64 + t] = lambda_ * k01 * k20 + m * q00 * q21 + n10 * c20
        hessian[72 + t] = lambda_ * k01 * k01 + m * q01 * q01 + n11 * c00
        hessian[80 + t] = lambda_ * k11 * k00 + m * q10 * q01 + n10 * c10
        hessian[88 + t] = lambda_ * k11 * k10 + m * q10 * q11 + n10 * c11
        hessian[96 + t] = lambda_ * k11 * k20 + m * q10 * q21 + n10 * c21
        hessian[104 + t] = lambda_ * k11 * k01 + m * q11 * q01 + n11 * c10
        hessian[112 + t] = lambda_ * k11 * k11 + m * q11 * q11 + n11 * c11
        hessian[120 + t] = lambda_ * k21 * k00 + m * q20 * q01 + n10 * c20
        hessian[128 + t] = lambda_ * k21 * k10 + m * q20 * q11 + n10 * c21
        hessian[136 + t] = lambda_ * k21 * k20 + m * q20 * q21 + n10 * c22
        hessian[144 + t] = lambda_ * k21 * k01 + m * q21 * q01 + n11 * c20
        hessian[152 + t] = lambda_ * k21 * k11 + m * q21 * q11 + n11 * c21
        hessian[160 + t] = lambda_ * k21 * k21 + m * q21 * q21 + n11 * c22
        hessian[168 + t] = lambda_ * k02 * k00 + m * q00 * q02 + n20 * c00
        hessian[176 + t] = lambda_ * k02 * k10 + m * q00 * q12 + n20 * c10
        hessian[184 + t] = lambda_ * k02 * k20 + m * q00 * q22 + n20 * c20
        hessian[192 + t] = lambda_ * k02 * k01 + m * q01 * q02 + n21 * c00
        hessian[200 + t] = lambda_ * k02 * k11 + m * q01 * q12 + n21 * c10
        hessian[208 + t] = lambda_ * k02 * k21 + m * q01 * q22 + n21 * c20
        hessian[216 + t] = lambda_ * k02 * k02 + m * q02 * q02 + n22 * c00
        hessian[224 + t] = lambda_ * k12 * k00 + m * q10 * q02 + n20 * c10
        hessian[232 + t] = lambda_ * k12 * k10 + m * q10 * q12 + n20 * c11
        hessian[240 + t] = lambda_ * k12 * k20 + m * q10 * q22 + n20 * c21
        hessian[248 + t] = lambda_ * k12 * k01 + m * q11 * q02 + n21 * c10
        hessian[256 + t] = lambda_ * k12 * k11 + m * q11 * q12 + n21 * c11
        hessian[264 + t] = lambda_ * k12 * k21 + m * q11 * q22 + n21 * c21
        hessian[272 + t] = lambda_ * k12 * k02 + m * q12 * q02 + n22 * c10
        hessian[280 + t] = lambda_ * k12 * k12 + m * q12 * q12 + n22 * c11
        hessian[288 + t] = lambda_ * k22 * k00 + m * q20 * q02 + n20 * c20
        hessian[296 + t] = lambda_ * k22 * k10 + m * q20 * q12 + n20 * c21
        hessian[304 + t] = lambda_ * k22 * k20 + m * q20 * q22 + n20 * c22
        hessian[312 + t] = lambda_ * k22 * k01 + m * q21 * q02 + n21 * c20
        hessian[320 + t] = lambda_ * k22 * k11 + m * q21 * q12 + n21 * c21
        hessian[328 + t] = lambda_ * k22 * k21 + m * q21 * q22 + n21 * c22
        hessian[336 + t] = lambda_ * k22 * k02 + m * q22 * q02 + n22 * c20
        hessian[344 + t] = lambda_ * k22 * k12 + m * q22 * q12 + n22 * c21
        hessian[352 + t] = lambda_ * k22 * k22 + m * q22 * q22 + n22 * c22


@njit(cache=True, forceinline=True, fastmath=FAST)
def corner_lanes(lanes: int, hessian: np.ndarray, blocks: np.ndarray) -> None:
    """Blocks (10, 3, 3, lanes) of pairs of corners a ≥ b at a(a + 1)/2 + b; each block row sums to zero over b."""
    for t in range(lanes):
        u, v, w = hessian[t], hessian[48 + t], hessian[168 + t]
        x = u + v + w
        blocks[144 + t] = u
        u, v, w = hessian[48 + t], hessian[72 + t], hessian[192 + t]
        y = u + v + w
        blocks[288 + t], blocks[360 + t] = u, v
        u, v, w = hessian[168 + t], hessian[192 + t], hessian[216 + t]
        z = u + v + w
        blocks[504 + t], blocks[576 + t], blocks[648 + t] = u, v, w
        blocks[t] = x + y + z
        blocks[72 + t], blocks[216 + t], blocks[432 + t] = -x, -y, -z
        u, v, w = hessian[8 + t], hessian[80 + t], hessian[224 + t]
        x = u + v + w
        blocks[152 + t] = u
        u, v, w = hessian[56 + t], hessian[104 + t], hessian[248 + t]
        y = u + v + w
        blocks[296 + t], blocks[368 + t] = u, v
        u, v, w = hessian[176 + t], hessian[200 + t], hessian[272 + t]
        z = u + v + w
        blocks[512 + t], blocks[584 + t], blocks[656 + t] = u, v, w
        blocks[8 + t] = x + y + z
        blocks[80 + t], blocks[224 + t], blocks[440 + t] = -x, -y, -z
        u, v, w = hessian[24 + t], hessian[120 + t], hessian[288 + t]
        x = u + v + w
        blocks[160 + t] = u
        u, v, w = hessian[64 + t], hessian[144 + t], hessian[312 + t]
        y = u + v + w
        blocks[304 + t], blocks[376 + t] = u, v
        u, v, w = hessian[184 + t], hessian[208 + t], hessian[336 + t]
        z = u + v + w
        blocks[520 + t], blocks[592 + t], blocks[664 + t] = u, v, w
        blocks[16 + t] = x + y + z
        blocks[88 + t], blocks[232 + t], blocks[448 + t] = -x, -y, -z
        u, v, w = hessian[8 + t], hessian[56 + t], hessian[176 + t]
        x = u + v + w
        blocks[168 + t] = u
        u, v, w = hessian[80 + t], hessian[104 + t], hessian[200 + t]
        y = u + v + w
        blocks[312 + t], blocks[384 + t] = u, v
        u, v, w = hessian[224 + t], hessian[248 + t], hessian[272 + t]
        z = u + v + w
        blocks[528 + t], blocks[600 + t], blocks[672 + t] = u, v, w
        blocks[24 + t] = x + y + z
        blocks[96 + t], blocks[240 + t], blocks[456 + t] = -x, -y, -z
        u, v, w = hessian[16 + t], hessian[88 + t], hessian[232 + t]
        x = u + v + w
        blocks[176 + t] = u
        u, v, w = hessian[88 + t], hessian[112 + t], hessian[256 + t]
        y = u + v + w
        blocks[320 + t], blocks[392 + t] = u, v
        u, v, w = hessian[232 + t], hessian[256 + t], hessian[280 + t]
        z = u + v + w
        blocks[536 + t], blocks[608 + t], blocks[680 + t] = u, v, w
        blocks[32 + t] = x + y + z
        blocks[104 + t], blocks[248 + t], blocks[464 + t] = -x, -y, -z
        u, v, w = hessian[32 + t], hessian[128 + t], hessian[296 + t]
        x = u + v + w
        blocks[184 + t] = u
        u, v, w = hessian[96 + t], hessian[152 + t], hessian[320 + t]
        y = u + v + w
        blocks[328 + t], blocks[400 + t] = u, v
        u, v, w = hessian[240 + t], hessian[264 + t], hessian[344 + t]
        z = u + v + w
        blocks[544 + t], blocks[616 + t], blocks[688 + t] = u, v, w
        blocks[40 + t] = x + y + z
        blocks[112 + t], blocks[256 + t], blocks[472 + t] = -x, -y, -z
        u, v, w = hessian[24 + t], hessian[64 + t], hessian[184 + t]
        x = u + v + w
        blocks[192 + t] = u
        u, v, w = hessian[120 + t], hessian[144 + t], hessian[208 + t]
        y = u + v + w
        blocks[336 + t], blocks[408 + t] = u, v
        u, v, w = hessian[288 + t], hessian[312 + t], hessian[336 + t]
        z = u + v + w
        blocks[552 + t], blocks[624 + t], blocks[696 + t] = u, v, w
        blocks[48 + t] = x + y + z
        blocks[120 + t], blocks[264 + t], blocks[480 + t] = -x, -y, -z
        u, v, w = hessian[32 + t], hessian[96 + t], hessian[240 + t]
        x = u + v + w
        blocks[200 + t] = u
        u, v, w = hessian[128 + t], hessian[152 + t], hessian[264 + t]
        y = u + v + w
        blocks[344 + t], blocks[416 + t] = u, v
        u, v, w = hessian[296 + t], hessian[320 + t], hessian[344 + t]
        z = u + v + w
        blocks[560 + t], blocks[632 + t], blocks[704 + t] = u, v, w
        blocks[56 + t] = x + y + z
        blocks[128 + t], blocks[272 + t], blocks[488 + t] = -x, -y, -z
        u, v, w = hessian[40 + t], hessian[136 + t], hessian[304 + t]
        x = u + v + w
        blocks[208 + t] = u
        u, v, w = hessian[136 + t], hessian[160 + t], hessian[328 + t]
        y = u + v + w
        blocks[352 + t], blocks[424 + t] = u, v
        u, v, w = hessian[304 + t], hessian[328 + t], hessian[352 + t]
        z = u + v + w
        blocks[568 + t], blocks[640 + t], blocks[712 + t] = u, v, w
        blocks[64 + t] = x + y + z
        blocks[136 + t], blocks[280 + t], blocks[496 + t] = -x, -y, -z
