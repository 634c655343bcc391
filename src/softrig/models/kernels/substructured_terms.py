"""What one domain of a tree weighs and feels in its own moving frame, and how its child's frame follows it, compiled.

In the frame of a domain, of origin acceleration a and angular acceleration α, a point is at y = s(X + Uq), s the scale
of the instance. With A = (a, α), a wrench F about the origin and the modal coordinates q its equations are
    I A + B q̈ + p = F,      Bᵀ A + M q̈ + c + f_int = f_ext,
I (6, 6) the rigid inertia at q, B (6, r) how the modes carry momentum, p and c what velocities do (SUB11 Eq. 14 and
App. B are Bᵀ A + c). All integrals are O(r²) from `products` (`product_table`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.polar import angular_map, angular_rates, fitted_rotation

HEAD = 13
"""Numbers of a product table before those of the modes: mass, ∫ρX, ∫ρ X⊗X."""
POLAR_WORK = 90
"""Numbers that `interface` needs to work with, besides three a mode."""


def product_table(products: np.ndarray) -> np.ndarray:
    """(13 + 12 r + 9 r²,) flat, as the step reads it, of `products` (r+2, r+2, 3, 3) ∫ρ a ⊗ b of {uniform, X, modes}.

    mass | ∫ρX (3) | ∫ρ X⊗X (9) | ∫ρU_l (r, 3) | ∫ρ U_l⊗X (r, 9) | ∫ρ U_l⊗U_p (r, 9, r), the last with p fastest.
    """
    uniform, modes = products[0], products[2:, 2:]
    # The uniform field is e_x + e_y + e_z: any row of its products is the integral of the other field.
    parts = (
        uniform[0, 0, :1],
        uniform[1, 0],
        products[1, 1],
        uniform[2:, 0],
        products[2:, 1],
        modes.transpose(0, 2, 3, 1),
    )
    return np.concatenate([np.ascontiguousarray(part).ravel() for part in parts])


@njit(cache=True, forceinline=True)
def cross(a0: float, a1: float, a2: float, b0: float, b1: float, b2: float) -> tuple[float, float, float]:
    """a × b."""
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@njit(cache=True, forceinline=True, fastmath=FAST)
def _first_moments(products: np.ndarray, q: np.ndarray, v: np.ndarray, W: np.ndarray, Z: np.ndarray) -> None:
    """Write W_l = ∫ρ U_l ⊗ (X + Uq) and Z_l = ∫ρ U_l ⊗ Uq̇, each (r, 9)."""
    r = q.shape[0]
    at = HEAD + 12 * r
    for mode in range(r):
        for entry in range(9):
            row = products[at : at + r]
            w, z = 0.0, 0.0
            for p in range(r):
                w += row[p] * q[p]
                z += row[p] * v[p]
            W[mode, entry] = w + products[HEAD + 3 * r + 9 * mode + entry]
            Z[mode, entry] = z
            at += r


@njit(cache=True, forceinline=True)
def domain_terms(
    products: np.ndarray,
    scale: float,
    q: np.ndarray,
    v: np.ndarray,
    omega: np.ndarray,
    W: np.ndarray,
    Z: np.ndarray,
    inertia: np.ndarray,
    coupling: np.ndarray,
    bias: np.ndarray,
    modal_bias: np.ndarray,
) -> None:
    """Add I (6, 6), Bᵀ (r, 6), p (6,) and c (r,) of a domain that turns with `omega` (3,), its own axes.

    `W` and `Z` (r, 9) are room to work in. Lengths scale with s, so mass goes with s³ and first and second moments with
    s⁴ and s⁵; modal coordinates have no unit of length (u = s U q).
    """
    r = q.shape[0]
    _first_moments(products, q, v, W, Z)
    s3 = scale * scale * scale
    s4, s5 = s3 * scale, s3 * scale * scale
    x, y, z = omega[0], omega[1], omega[2]
    square = x * x + y * y + z * z
    mass = s3 * products[0]
    # First moments ∫ρy and ∫ρẏ; second moments ∫ρ y⊗y and ∫ρ y⊗ẏ.
    c0, c1, c2 = products[1], products[2], products[3]
    d0, d1, d2 = 0.0, 0.0, 0.0
    for mode in range(r):
        u0, u1, u2 = products[HEAD + 3 * mode], products[HEAD + 3 * mode + 1], products[HEAD + 3 * mode + 2]
        c0 += u0 * q[mode]
        c1 += u1 * q[mode]
        c2 += u2 * q[mode]
        d0 += u0 * v[mode]
        d1 += u1 * v[mode]
        d2 += u2 * v[mode]
        for axis in range(3):
            coupling[mode, axis] += s4 * products[HEAD + 3 * mode + axis]
    c0, c1, c2, d0, d1, d2 = s4 * c0, s4 * c1, s4 * c2, s4 * d0, s4 * d1, s4 * d2
    for axis in range(3):
        inertia[axis, axis] += mass
    # −[c]× in the upper right corner: α × c pulls at the origin.
    inertia[0, 4] += c2
    inertia[0, 5] -= c1
    inertia[1, 3] -= c2
    inertia[1, 5] += c0
    inertia[2, 3] += c1
    inertia[2, 4] -= c0
    inertia[4, 0] += c2
    inertia[5, 0] -= c1
    inertia[3, 1] -= c2
    inertia[5, 1] += c0
    inertia[3, 2] += c1
    inertia[4, 2] -= c0
    along = x * c0 + y * c1 + z * c2
    e0, e1, e2 = cross(x, y, z, d0, d1, d2)
    bias[0] += x * along - square * c0 + 2.0 * e0
    bias[1] += y * along - square * c1 + 2.0 * e1
    bias[2] += z * along - square * c2 + 2.0 * e2
    for i in range(3):
        for j in range(3):
            # The symmetric part alone counts in the inertia.
            second, flow = products[4 + 3 * i + j], 0.0
            for mode in range(r):
                second += q[mode] * (products[HEAD + 3 * r + 9 * mode + 3 * j + i] + W[mode, 3 * i + j])
                flow += v[mode] * W[mode, 3 * j + i]
            second, flow = s5 * second, s5 * flow
            inertia[3 + i, 3 + j] -= second
            trace = second if i == j else 0.0
            for axis in range(3):
                inertia[3 + axis, 3 + axis] += trace
            # ω × Jω = −ω × (∫ρ y⊗y)ω, and 2∫ρ y × (ω × ẏ) = 2(tr(∫ρ y·ẏ)ω − (∫ρ y⊗ẏ)ᵀω).
            part = second * omega[j]
            j1, j2 = (i + 1) % 3, (i + 2) % 3
            bias[3 + j1] -= omega[j2] * part
            bias[3 + j2] += omega[j1] * part
            bias[3 + j] -= 2.0 * flow * omega[i]
            if i == j:
                for axis in range(3):
                    bias[3 + axis] += 2.0 * flow * omega[axis]
    for mode in range(r):
        w, u = W[mode], Z[mode]
        coupling[mode, 3] += s5 * (w[7] - w[5])
        coupling[mode, 4] += s5 * (w[2] - w[6])
        coupling[mode, 5] += s5 * (w[3] - w[1])
        turning = (
            x * (w[0] * x + w[1] * y + w[2] * z)
            + y * (w[3] * x + w[4] * y + w[5] * z)
            + z * (w[6] * x + w[7] * y + w[8] * z)
            - square * (w[0] + w[4] + w[8])
        )
        swaying = x * (u[7] - u[5]) + y * (u[2] - u[6]) + z * (u[3] - u[1])
        modal_bias[mode] += s5 * (turning + 2.0 * swaying)


@njit(cache=True)
def interface(
    place: np.ndarray,
    turn: np.ndarray,
    link: np.ndarray,
    scale: float,
    q: np.ndarray,
    v: np.ndarray,
    omega: np.ndarray,
    Q: np.ndarray,
    at: np.ndarray,
    spin: np.ndarray,
    follow: np.ndarray,
    gain: np.ndarray,
    work: np.ndarray,
) -> None:
    """How a child's frame stands in and follows its parent's (SUB11 Eqs. 1 – 9).

    `place` (3,) and `turn` R̂ (3, 3) at rest, in the parent's unscaled axes; `link` (12 r) â (3, r) and then the slopes
    (r, 3, 3) of A(q) = 1 + Σ slopes q; `q`, `v`, `omega` and `scale` the parent's. Writes Q (3, 3), from the child's
    axes to the parent's, and `at` (3,), its origin there, metres; `spin` (3,), its angular velocity against the parent,
    its own axes; with A the accelerations (6,), each in its own axes, A_child = T A_parent + `follow`ᵀ q̈ + `gain`,
    T = [Qᵀ, −Qᵀ[at]×; 0, Qᵀ], follow (r, 6), gain (6,).
    """
    r = q.shape[0]
    A, A1, A2 = work[0:9].reshape((3, 3)), work[9:18].reshape((3, 3)), work[18:27].reshape((3, 3))
    R, rest = work[27:36].reshape((3, 3)), work[36:81]
    omega_body, turn_body = work[81:84], work[84:87]
    slopes = link[3 * r : 12 * r].reshape((r, 3, 3))
    for i in range(3):
        for j in range(3):
            A[i, j] = 1.0 if i == j else 0.0
            A1[i, j] = 0.0
            A2[i, j] = 0.0
    m0, m1, m2 = 0.0, 0.0, 0.0
    at[:] = place
    for mode in range(r):
        for i in range(3):
            at[i] += link[i * r + mode] * q[mode]
            for j in range(3):
                A[i, j] += slopes[mode, i, j] * q[mode]
                A1[i, j] += slopes[mode, i, j] * v[mode]
        m0 += link[mode] * v[mode]
        m1 += link[r + mode] * v[mode]
        m2 += link[2 * r + mode] * v[mode]
    for i in range(3):
        at[i] *= scale
    m0, m1, m2 = scale * m0, scale * m1, scale * m2
    fitted_rotation(A, R, rest)
    angular_rates(R, A, A1, A2, omega_body, turn_body, rest)
    for i in range(3):
        for j in range(3):
            Q[i, j] = R[i, 0] * turn[0, j] + R[i, 1] * turn[1, j] + R[i, 2] * turn[2, j]
    for i in range(3):
        spin[i] = turn[0, i] * omega_body[0] + turn[1, i] * omega_body[1] + turn[2, i] * omega_body[2]
    # What velocities do: centripetal and Coriolis at the origin; and α = Qᵀα_parent + Ω̇ + (Qᵀω_parent) × Ω.
    x, y, z = omega[0], omega[1], omega[2]
    along = x * at[0] + y * at[1] + z * at[2]
    square = x * x + y * y + z * z
    e0, e1, e2 = cross(x, y, z, m0, m1, m2)
    g0 = x * along - square * at[0] + 2.0 * e0
    g1 = y * along - square * at[1] + 2.0 * e1
    g2 = z * along - square * at[2] + 2.0 * e2
    for i in range(3):
        gain[i] = Q[0, i] * g0 + Q[1, i] * g1 + Q[2, i] * g2
        gain[3 + i] = turn[0, i] * turn_body[0] + turn[1, i] * turn_body[1] + turn[2, i] * turn_body[2]
    p0 = Q[0, 0] * x + Q[1, 0] * y + Q[2, 0] * z
    p1 = Q[0, 1] * x + Q[1, 1] * y + Q[2, 1] * z
    p2 = Q[0, 2] * x + Q[1, 2] * y + Q[2, 2] * z
    e0, e1, e2 = cross(p0, p1, p2, spin[0], spin[1], spin[2])
    gain[3] += e0
    gain[4] += e1
    gain[5] += e2
    # A unit of q̈ of each mode does the same to the accelerations as a unit of q̇ to the velocities.
    spins = work[POLAR_WORK : POLAR_WORK + 3 * r].reshape((3, r))
    angular_map(R, A, slopes, spins, rest)
    for mode in range(r):
        a0, a1, a2 = scale * link[mode], scale * link[r + mode], scale * link[2 * r + mode]
        for i in range(3):
            follow[mode, i] = Q[0, i] * a0 + Q[1, i] * a1 + Q[2, i] * a2
            follow[mode, 3 + i] = (
                turn[0, i] * spins[0, mode] + turn[1, i] * spins[1, mode] + turn[2, i] * spins[2, mode]
            )
