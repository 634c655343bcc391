"""Rest shape and two laws for eight tets at once, written out entry by entry: one loop over the lanes vectorises.

Formulas and conventions of `pose_space_elements`; arrays are flat with lanes side by side, and a symmetric 9×9 matrix
is its lower half, row by row. The number of lanes is an argument, although it is always eight: loops of a known short
length are unrolled before they can become vector instructions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST


@njit(cache=True, forceinline=True, fastmath=FAST)
def stvk_lanes(
    lanes: int,
    moves: np.ndarray,
    gradients: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    factors: np.ndarray,
    force: np.ndarray,
    hessian: np.ndarray,
) -> None:
    """Write force (9, lanes) and Hessian (45, lanes) of St. Venant–Kirchhoff tets, times `factors`."""
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
        lambda_, m = factors[t] * lam[t], factors[t] * mu[t]
        both = lambda_ + m
        # m (FᵀF − I) + ½ l tr(FᵀF − I) I is the second Piola stress times the factor.
        s00 = m * (f00 * f00 + f10 * f10 + f20 * f20)
        s10 = m * (f01 * f00 + f11 * f10 + f21 * f20)
        s11 = m * (f01 * f01 + f11 * f11 + f21 * f21)
        s20 = m * (f02 * f00 + f12 * f10 + f22 * f20)
        s21 = m * (f02 * f01 + f12 * f11 + f22 * f21)
        s22 = m * (f02 * f02 + f12 * f12 + f22 * f22)
        c00 = f00 * f00 + f01 * f01 + f02 * f02
        c10 = f10 * f00 + f11 * f01 + f12 * f02
        c11 = f10 * f10 + f11 * f11 + f12 * f12
        c20 = f20 * f00 + f21 * f01 + f22 * f02
        c21 = f20 * f10 + f21 * f11 + f22 * f12
        c22 = f20 * f20 + f21 * f21 + f22 * f22
        pressure = 0.5 * lambda_ * (c00 + c11 + c22 - 3.0) - m
        s00, s11, s22 = s00 + pressure, s11 + pressure, s22 + pressure
        p00 = s00 * b00 + s10 * b01 + s20 * b02
        p01 = s00 * b10 + s10 * b11 + s20 * b12
        p02 = s00 * b20 + s10 * b21 + s20 * b22
        p10 = s10 * b00 + s11 * b01 + s21 * b02
        p11 = s10 * b10 + s11 * b11 + s21 * b12
        p12 = s10 * b20 + s11 * b21 + s21 * b22
        p20 = s20 * b00 + s21 * b01 + s22 * b02
        p21 = s20 * b10 + s21 * b11 + s22 * b12
        p22 = s20 * b20 + s21 * b21 + s22 * b22
        force[t] = f00 * p00 + f01 * p10 + f02 * p20
        force[8 + t] = f10 * p00 + f11 * p10 + f12 * p20
        force[16 + t] = f20 * p00 + f21 * p10 + f22 * p20
        force[24 + t] = f00 * p01 + f01 * p11 + f02 * p21
        force[32 + t] = f10 * p01 + f11 * p11 + f12 * p21
        force[40 + t] = f20 * p01 + f21 * p11 + f22 * p21
        force[48 + t] = f00 * p02 + f01 * p12 + f02 * p22
        force[56 + t] = f10 * p02 + f11 * p12 + f12 * p22
        force[64 + t] = f20 * p02 + f21 * p12 + f22 * p22
        t00 = b00 * p00 + b01 * p10 + b02 * p20
        t10 = b10 * p00 + b11 * p10 + b12 * p20
        t11 = b10 * p01 + b11 * p11 + b12 * p21
        t20 = b20 * p00 + b21 * p10 + b22 * p20
        t21 = b20 * p01 + b21 * p11 + b22 * p21
        t22 = b20 * p02 + b21 * p12 + b22 * p22
        q00 = f00 * b00 + f01 * b01 + f02 * b02
        q01 = f00 * b10 + f01 * b11 + f02 * b12
        q02 = f00 * b20 + f01 * b21 + f02 * b22
        q10 = f10 * b00 + f11 * b01 + f12 * b02
        q11 = f10 * b10 + f11 * b11 + f12 * b12
        q12 = f10 * b20 + f11 * b21 + f12 * b22
        q20 = f20 * b00 + f21 * b01 + f22 * b02
        q21 = f20 * b10 + f21 * b11 + f22 * b12
        q22 = f20 * b20 + f21 * b21 + f22 * b22
        n00 = b00 * b00 + b01 * b01 + b02 * b02
        n10 = b10 * b00 + b11 * b01 + b12 * b02
        n11 = b10 * b10 + b11 * b11 + b12 * b12
        n20 = b20 * b00 + b21 * b01 + b22 * b02
        n21 = b20 * b10 + b21 * b11 + b22 * b12
        n22 = b20 * b20 + b21 * b21 + b22 * b22
        hessian[t] = both * q00 * q00 + m * n00 * c00 + t00
        hessian[8 + t] = both * q10 * q00 + m * n00 * c10
        hessian[16 + t] = both * q10 * q10 + m * n00 * c11 + t00
        hessian[24 + t] = both * q20 * q00 + m * n00 * c20
        hessian[32 + t] = both * q20 * q10 + m * n00 * c21
        hessian[40 + t] = both * q20 * q20 + m * n00 * c22 + t00
        hessian[48 + t] = lambda_ * q01 * q00 + m * (q00 * q01 + n10 * c00) + t10
        hessian[56 + t] = lambda_ * q01 * q10 + m * (q00 * q11 + n10 * c10)
        hessian[64 + t] = lambda_ * q01 * q20 + m * (q00 * q21 + n10 * c20)
        hessian[72 + t] = both * q01 * q01 + m * n11 * c00 + t11
        hessian[80 + t] = lambda_ * q11 * q00 + m * (q10 * q01 + n10 * c10)
        hessian[88 + t] = lambda_ * q11 * q10 + m * (q10 * q11 + n10 * c11) + t10
        hessian[96 + t] = lambda_ * q11 * q20 + m * (q10 * q21 + n10 * c21)
        hessian[104 + t] = both * q11 * q01 + m * n11 * c10
        hessian[112 + t] = both * q11 * q11 + m * n11 * c11 + t11
        hessian[120 + t] = lambda_ * q21 * q00 + m * (q20 * q01 + n10 * c20)
        hessian[128 + t] = lambda_ * q21 * q10 + m * (q20 * q11 + n10 * c21)
        hessian[136 + t] = lambda_ * q21 * q20 + m * (q20 * q21 + n10 * c22) + t10
        hessian[144 + t] = both * q21 * q01 + m * n11 * c20
        hessian[152 + t] = both * q21 * q11 + m * n11 * c21
        hessian[160 + t] = both * q21 * q21 + m * n11 * c22 + t11
        hessian[168 + t] = lambda_ * q02 * q00 + m * (q00 * q02 + n20 * c00) + t20
        hessian[176 + t] = lambda_ * q02 * q10 + m * (q00 * q12 + n20 * c10)
        hessian[184 + t] = lambda_ * q02 * q20 + m * (q00 * q22 + n20 * c20)
        hessian[192 + t] = lambda_ * q02 * q01 + m * (q01 * q02 + n21 * c00) + t21
        hessian[200 + t] = lambda_ * q02 * q11 + m * (q01 * q12 + n21 * c10)
        hessian[208 + t] = lambda_ * q02 * q21 + m * (q01 * q22 + n21 * c20)
        hessian[216 + t] = both * q02 * q02 + m * n22 * c00 + t22
        hessian[224 + t] = lambda_ * q12 * q00 + m * (q10 * q02 + n20 * c10)
        hessian[232 + t] = lambda_ * q12 * q10 + m * (q10 * q12 + n20 * c11) + t20
        hessian[240 + t] = lambda_ * q12 * q20 + m * (q10 * q22 + n20 * c21)
        hessian[248 + t] = lambda_ * q12 * q01 + m * (q11 * q02 + n21 * c10)
        hessian[256 + t] = lambda_ * q12 * q11 + m * (q11 * q12 + n21 * c11) + t21
        hessian[264 + t] = lambda_ * q12 * q21 + m * (q11 * q22 + n21 * c21)
        hessian[272 + t] = both * q12 * q02 + m * n22 * c10
        hessian[280 + t] = both * q12 * q12 + m * n22 * c11 + t22
        hessian[288 + t] = lambda_ * q22 * q00 + m * (q20 * q02 + n20 * c20)
        hessian[296 + t] = lambda_ * q22 * q10 + m * (q20 * q12 + n20 * c21)
        hessian[304 + t] = lambda_ * q22 * q20 + m * (q20 * q22 + n20 * c22) + t20
        hessian[312 + t] = lambda_ * q22 * q01 + m * (q21 * q02 + n21 * c20)
        hessian[320 + t] = lambda_ * q22 * q11 + m * (q21 * q12 + n21 * c21)
        hessian[328 + t] = lambda_ * q22 * q21 + m * (q21 * q22 + n21 * c22) + t21
        hessian[336 + t] = both * q22 * q02 + m * n22 * c20
        hessian[344 + t] = both * q22 * q12 + m * n22 * c21
        hessian[352 + t] = both * q22 * q22 + m * n22 * c22 + t22


@njit(cache=True, forceinline=True, fastmath=FAST)
def stable_neo_hookean_lanes(
    lanes: int,
    moves: np.ndarray,
    gradients: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    factors: np.ndarray,
    force: np.ndarray,
    hessian: np.ndarray,
) -> None:
    """Write force (9, lanes) and Hessian (45, lanes) of stable neo-Hookean tets, times `factors`."""
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
        lambda_, m = factors[t] * (lam[t] + mu[t]), factors[t] * mu[t]
        slope = lambda_ * (f00 * g00 + f01 * g01 + f02 * g02 - 1.0) - m
        # k = cof(F) Bᵀ = det(B) cof(d), and e = cof(B), so that d below is slope · F eᵀ = slope · det(B) d.
        k00 = g00 * b00 + g01 * b01 + g02 * b02
        k01 = g00 * b10 + g01 * b11 + g02 * b12
        k02 = g00 * b20 + g01 * b21 + g02 * b22
        k10 = g10 * b00 + g11 * b01 + g12 * b02
        k11 = g10 * b10 + g11 * b11 + g12 * b12
        k12 = g10 * b20 + g11 * b21 + g12 * b22
        k20 = g20 * b00 + g21 * b01 + g22 * b02
        k21 = g20 * b10 + g21 * b11 + g22 * b12
        k22 = g20 * b20 + g21 * b21 + g22 * b22
        e00 = b11 * b22 - b12 * b21
        e01 = b12 * b20 - b10 * b22
        e02 = b10 * b21 - b11 * b20
        e10 = b21 * b02 - b22 * b01
        e11 = b22 * b00 - b20 * b02
        e12 = b20 * b01 - b21 * b00
        e20 = b01 * b12 - b02 * b11
        e21 = b02 * b10 - b00 * b12
        e22 = b00 * b11 - b01 * b10
        d00 = slope * (f00 * e00 + f01 * e01 + f02 * e02)
        d01 = slope * (f00 * e10 + f01 * e11 + f02 * e12)
        d02 = slope * (f00 * e20 + f01 * e21 + f02 * e22)
        d10 = slope * (f10 * e00 + f11 * e01 + f12 * e02)
        d11 = slope * (f10 * e10 + f11 * e11 + f12 * e12)
        d12 = slope * (f10 * e20 + f11 * e21 + f12 * e22)
        d20 = slope * (f20 * e00 + f21 * e01 + f22 * e02)
        d21 = slope * (f20 * e10 + f21 * e11 + f22 * e12)
        d22 = slope * (f20 * e20 + f21 * e21 + f22 * e22)
        q00 = f00 * b00 + f01 * b01 + f02 * b02
        q01 = f00 * b10 + f01 * b11 + f02 * b12
        q02 = f00 * b20 + f01 * b21 + f02 * b22
        q10 = f10 * b00 + f11 * b01 + f12 * b02
        q11 = f10 * b10 + f11 * b11 + f12 * b12
        q12 = f10 * b20 + f11 * b21 + f12 * b22
        q20 = f20 * b00 + f21 * b01 + f22 * b02
        q21 = f20 * b10 + f21 * b11 + f22 * b12
        q22 = f20 * b20 + f21 * b21 + f22 * b22
        n00 = b00 * b00 + b01 * b01 + b02 * b02
        n10 = b10 * b00 + b11 * b01 + b12 * b02
        n11 = b10 * b10 + b11 * b11 + b12 * b12
        n20 = b20 * b00 + b21 * b01 + b22 * b02
        n21 = b20 * b10 + b21 * b11 + b22 * b12
        n22 = b20 * b20 + b21 * b21 + b22 * b22
        force[t] = m * q00 + slope * k00
        force[8 + t] = m * q10 + slope * k10
        force[16 + t] = m * q20 + slope * k20
        force[24 + t] = m * q01 + slope * k01
        force[32 + t] = m * q11 + slope * k11
        force[40 + t] = m * q21 + slope * k21
        force[48 + t] = m * q02 + slope * k02
        force[56 + t] = m * q12 + slope * k12
        force[64 + t] = m * q22 + slope * k22
        hessian[t] = lambda_ * k00 * k00 + m * n00
        hessian[8 + t] = lambda_ * k10 * k00
        hessian[16 + t] = lambda_ * k10 * k10 + m * n00
        hessian[24 + t] = lambda_ * k20 * k00
        hessian[32 + t] = lambda_ * k20 * k10
        hessian[40 + t] = lambda_ * k20 * k20 + m * n00
        hessian[48 + t] = lambda_ * k01 * k00 + m * n10
        hessian[56 + t] = lambda_ * k01 * k10 - d22
        hessian[64 + t] = lambda_ * k01 * k20 + d12
        hessian[72 + t] = lambda_ * k01 * k01 + m * n11
        hessian[80 + t] = lambda_ * k11 * k00 + d22
        hessian[88 + t] = lambda_ * k11 * k10 + m * n10
        hessian[96 + t] = lambda_ * k11 * k20 - d02
        hessian[104 + t] = lambda_ * k11 * k01
        hessian[112 + t] = lambda_ * k11 * k11 + m * n11
        hessian[120 + t] = lambda_ * k21 * k00 - d12
        hessian[128 + t] = lambda_ * k21 * k10 + d02
        hessian[136 + t] = lambda_ * k21 * k20 + m * n10
        hessian[144 + t] = lambda_ * k21 * k01
        hessian[152 + t] = lambda_ * k21 * k11
        hessian[160 + t] = lambda_ * k21 * k21 + m * n11
        hessian[168 + t] = lambda_ * k02 * k00 + m * n20
        hessian[176 + t] = lambda_ * k02 * k10 + d21
        hessian[184 + t] = lambda_ * k02 * k20 - d11
        hessian[192 + t] = lambda_ * k02 * k01 + m * n21
        hessian[200 + t] = lambda_ * k02 * k11 - d20
        hessian[208 + t] = lambda_ * k02 * k21 + d10
        hessian[216 + t] = lambda_ * k02 * k02 + m * n22
        hessian[224 + t] = lambda_ * k12 * k00 - d21
        hessian[232 + t] = lambda_ * k12 * k10 + m * n20
        hessian[240 + t] = lambda_ * k12 * k20 + d01
        hessian[248 + t] = lambda_ * k12 * k01 + d20
        hessian[256 + t] = lambda_ * k12 * k11 + m * n21
        hessian[264 + t] = lambda_ * k12 * k21 - d00
        hessian[272 + t] = lambda_ * k12 * k02
        hessian[280 + t] = lambda_ * k12 * k12 + m * n22
        hessian[288 + t] = lambda_ * k22 * k00 + d11
        hessian[296 + t] = lambda_ * k22 * k10 - d01
        hessian[304 + t] = lambda_ * k22 * k20 + m * n20
        hessian[312 + t] = lambda_ * k22 * k01 - d10
        hessian[320 + t] = lambda_ * k22 * k11 + d00
        hessian[328 + t] = lambda_ * k22 * k21 + m * n21
        hessian[336 + t] = lambda_ * k22 * k02
        hessian[344 + t] = lambda_ * k22 * k12
        hessian[352 + t] = lambda_ * k22 * k22 + m * n22


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def rest_lanes(
    lanes: int,
    edges: np.ndarray,
    neutral_inverse: np.ndarray,
    gradients: np.ndarray,
    shares: np.ndarray,
    bounds: np.ndarray,
) -> None:
    """Of rest tets with these edges Ds (9, lanes): B = Ds⁻¹ (9, lanes), J = det(Ds Dm⁻¹), and the bound 2J/‖Ds Dm⁻¹‖².

    The bound is never above the smallest singular value.
    """
    for t in range(lanes):
        d00, d01, d02 = edges[t], edges[8 + t], edges[16 + t]
        d10, d11, d12 = edges[24 + t], edges[32 + t], edges[40 + t]
        d20, d21, d22 = edges[48 + t], edges[56 + t], edges[64 + t]
        f00 = d00 * neutral_inverse[t] + d01 * neutral_inverse[24 + t] + d02 * neutral_inverse[48 + t]
        f01 = d00 * neutral_inverse[8 + t] + d01 * neutral_inverse[32 + t] + d02 * neutral_inverse[56 + t]
        f02 = d00 * neutral_inverse[16 + t] + d01 * neutral_inverse[40 + t] + d02 * neutral_inverse[64 + t]
        f10 = d10 * neutral_inverse[t] + d11 * neutral_inverse[24 + t] + d12 * neutral_inverse[48 + t]
        f11 = d10 * neutral_inverse[8 + t] + d11 * neutral_inverse[32 + t] + d12 * neutral_inverse[56 + t]
        f12 = d10 * neutral_inverse[16 + t] + d11 * neutral_inverse[40 + t] + d12 * neutral_inverse[64 + t]
        f20 = d20 * neutral_inverse[t] + d21 * neutral_inverse[24 + t] + d22 * neutral_inverse[48 + t]
        f21 = d20 * neutral_inverse[8 + t] + d21 * neutral_inverse[32 + t] + d22 * neutral_inverse[56 + t]
        f22 = d20 * neutral_inverse[16 + t] + d21 * neutral_inverse[40 + t] + d22 * neutral_inverse[64 + t]
        square = (
            f00 * f00 + f01 * f01 + f02 * f02 + f10 * f10 + f11 * f11 + f12 * f12 + f20 * f20 + f21 * f21 + f22 * f22
        )
        J = f00 * (f11 * f22 - f12 * f21) - f01 * (f10 * f22 - f12 * f20) + f02 * (f10 * f21 - f11 * f20)
        shares[t] = J
        bounds[t] = 2.0 * J / square
        c0, c1, c2 = d11 * d22 - d12 * d21, d12 * d20 - d10 * d22, d10 * d21 - d11 * d20
        s = 1.0 / (d00 * c0 + d01 * c1 + d02 * c2)
        gradients[t] = s * c0
        gradients[8 + t] = s * (d02 * d21 - d01 * d22)
        gradients[16 + t] = s * (d01 * d12 - d02 * d11)
        gradients[24 + t] = s * c1
        gradients[32 + t] = s * (d00 * d22 - d02 * d20)
        gradients[40 + t] = s * (d02 * d10 - d00 * d12)
        gradients[48 + t] = s * c2
        gradients[56 + t] = s * (d01 * d20 - d00 * d21)
        gradients[64 + t] = s * (d00 * d11 - d01 * d10)
