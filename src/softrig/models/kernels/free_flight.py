"""One implicit step of a body that deforms while it flies and spins, compiled.

Positions x = c + R y, y = X + Uq about the centre of mass. With mass products S[a, b] of the fields
{X, U_1 … U_r} and weights w = (1, q):
    Y = Σ w_a w_b S[a, b],  J = tr Y I − Y        inertia
    h_j = Σ_a w_a ∫ φ_a × U_j                      momentum of mode j
    N_ij = ∫ U_i × U_j,  J_j = ∂J/∂q_j
Angular momentum in the body frame: ℓ = Rᵀ L = J ω + h q̇. The world's L changes by torque only and is
a state variable, so it is conserved by construction. Equations of motion (Lagrange, ω̇ eliminated):
    M q̈ + 2 Σ_i q̇_i N_ij·ω + h_j·ω̇ − ½ ω·J_j ω + R_j(q) + (C q̇)_j = f_j
    J ω̇ = τ − ω × ℓ − J̇ ω − h q̈
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import packed_cholesky, packed_cholesky_solve, packed_matvec
from softrig.models.kernels.polynomial import evaluate
from softrig.numerics.rotations import rotation_from_vector


@njit(cache=True)
def _cross_of(S: np.ndarray, out: np.ndarray) -> None:
    """∫ a × b from the product ∫ a ⊗ b."""
    out[0] = S[1, 2] - S[2, 1]
    out[1] = S[2, 0] - S[0, 2]
    out[2] = S[0, 1] - S[1, 0]


@njit(cache=True)
def _inertia_of(Y: np.ndarray, out: np.ndarray) -> None:
    """tr Y I − sym Y."""
    trace = Y[0, 0] + Y[1, 1] + Y[2, 2]
    for x in range(3):
        for y in range(3):
            out[x, y] = -0.5 * (Y[x, y] + Y[y, x])
        out[x, x] += trace


@njit(cache=True)
def inertia_and_coupling(
    products: np.ndarray, q: np.ndarray, J: np.ndarray, J_modes: np.ndarray, h: np.ndarray
) -> None:
    """J (3, 3), its derivatives J_modes (r, 3, 3) and the modes' momenta h (r, 3) at q."""
    r = q.shape[0]
    Y = np.zeros((3, 3))
    Y_mode = np.empty((3, 3))
    Y[:] = products[0, 0]
    for j in range(r):
        Y_mode[:] = products[0, j + 1]
        for i in range(r):
            for x in range(3):
                for y in range(3):
                    Y_mode[x, y] += q[i] * products[i + 1, j + 1, x, y]
        _cross_of(Y_mode, h[j])
        _inertia_of(Y_mode, J_modes[j])
        for x in range(3):
            for y in range(3):
                # X enters with weight 1 from both sides, each pair of modes once from either.
                Y[x, y] += q[j] * (Y_mode[x, y] + products[j + 1, 0, x, y])
                J_modes[j, x, y] *= 2.0
    _inertia_of(Y, J)


@njit(cache=True)
def _dot(A: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    for i in range(3):
        out[i] = A[i, 0] * x[0] + A[i, 1] * x[1] + A[i, 2] * x[2]


@njit(cache=True)
def _cross(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@njit(cache=True)
def angular_velocity(
    products: np.ndarray, q: np.ndarray, v: np.ndarray, R: np.ndarray, L: np.ndarray, omega: np.ndarray
) -> None:
    """ω in the body frame from the world's angular momentum L."""
    r = q.shape[0]
    J, J_modes, h = np.empty((3, 3)), np.empty((r, 3, 3)), np.empty((r, 3))
    inertia_and_coupling(products, q, J, J_modes, h)
    _angular_velocity(np.linalg.inv(J), h, v, R.T @ L, omega)


@njit(cache=True)
def _angular_velocity(inverse: np.ndarray, h: np.ndarray, v: np.ndarray, ell: np.ndarray, omega: np.ndarray) -> None:
    """ω = J⁻¹ (ℓ − h q̇)."""
    remaining = ell.copy()
    for j in range(v.shape[0]):
        remaining -= v[j] * h[j]
    _dot(inverse, remaining, omega)


@njit(cache=True, forceinline=True)
def _imbalance(
    coefficients: np.ndarray,
    products: np.ndarray,
    alpha: float,
    beta: float,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    omega: np.ndarray,
    ell: np.ndarray,
    torque: np.ndarray,
    force: np.ndarray,
    J_modes: np.ndarray,
    h: np.ndarray,
    inverse: np.ndarray,
    stiffness: np.ndarray,
    residual: np.ndarray,
) -> float:
    """Write what the equations of motion leave over at (q, q̇, q̈) into `residual`, and K(q) into `stiffness`.

    ω, ℓ and `torque` in the body frame. Returns the squared size of the forces at play.
    """
    r = q.shape[0]
    s = r * (r + 1) // 2
    J_dot, flow = np.zeros((3, 3)), np.empty((3, 3))
    cross, spin, omega_dot = np.empty(3), np.empty(3), np.empty(3)
    moment = torque.copy()
    for j in range(r):
        J_dot += v[j] * J_modes[j]
        moment -= a[j] * h[j]
    _cross(omega, ell, cross)
    _dot(J_dot, omega, spin)
    moment -= cross + spin
    _dot(inverse, moment, omega_dot)
    evaluate(coefficients, q, residual, stiffness, np.empty(4 * s))
    product = np.empty(r)
    packed_matvec(coefficients[s : 2 * s], a + alpha * v, product)
    scale = np.sum(residual * residual) + np.sum(force * force) + np.sum(product * product)
    residual += product - force
    packed_matvec(stiffness, v, product)
    residual += beta * product
    for j in range(r):
        flow[:] = 0.0
        for i in range(r):
            for x in range(3):
                for y in range(3):
                    flow[x, y] += v[i] * products[i + 1, j + 1, x, y]
        _cross_of(flow, cross)
        _dot(J_modes[j], omega, spin)
        for x in range(3):
            residual[j] += 2.0 * cross[x] * omega[x] + h[j, x] * omega_dot[x] - 0.5 * omega[x] * spin[x]
    return scale


@njit(cache=True, forceinline=True)
def _solve_system(
    mass: np.ndarray,
    stiffness: np.ndarray,
    h: np.ndarray,
    inverse: np.ndarray,
    inertia_factor: float,
    mass_factor: float,
    stiffness_factor: float,
    x: np.ndarray,
) -> bool:
    """Solve (inertia_factor (M − hᵀJ⁻¹h) + mass_factor M + stiffness_factor K) x = b in place.

    The middle term is the mass that modes have once the frame may yield to them.
    """
    r = x.shape[0]
    system, factor = np.empty_like(mass), np.empty_like(mass)
    yielded = np.empty(3)
    at = 0
    for j in range(r):
        _dot(inverse, h[j], yielded)
        for i in range(j + 1):
            held = h[i, 0] * yielded[0] + h[i, 1] * yielded[1] + h[i, 2] * yielded[2]
            system[at] = (
                (inertia_factor + mass_factor) * mass[at] - inertia_factor * held + stiffness_factor * stiffness[at]
            )
            at += 1
    shift = 0.1 * inertia_factor
    while not packed_cholesky(system, factor, r):
        system += shift * mass
        shift *= 2.0
        if not shift < 1e300:
            return False
    packed_cholesky_solve(factor, x)
    return True


@njit(cache=True)
def balance(
    coefficients: np.ndarray,
    products: np.ndarray,
    constants: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    R: np.ndarray,
    L: np.ndarray,
    force: np.ndarray,
    torque: np.ndarray,
) -> bool:
    """Set q̈ to what the forces, the spin and the deformation ask for, so that the first step is exact too."""
    r = q.shape[0]
    s = r * (r + 1) // 2
    J, J_modes, h = np.empty((3, 3)), np.empty((r, 3, 3)), np.empty((r, 3))
    inertia_and_coupling(products, q, J, J_modes, h)
    inverse, ell, omega = np.linalg.inv(J), R.T @ L, np.empty(3)
    _angular_velocity(inverse, h, v, ell, omega)
    residual, stiffness = np.empty(r), np.empty(s)
    _imbalance(
        coefficients, products, constants[6], constants[7], q, v, np.zeros(r), omega, ell, R.T @ torque, force,
        J_modes, h, inverse, stiffness, residual,
    )  # fmt: skip
    solved = _solve_system(coefficients[s : 2 * s], stiffness, h, inverse, 1.0, 0.0, 0.0, residual)
    a[:] = -residual
    return solved


@njit(cache=True, forceinline=True)
def step(
    coefficients: np.ndarray,
    products: np.ndarray,
    constants: np.ndarray,
    h_step: float,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    R: np.ndarray,
    L: np.ndarray,
    force: np.ndarray,
    torque: np.ndarray,
    iterations: int,
) -> bool:
    """Advance q, v, a, R and L by one step. False, and nothing changed, if it did not stay finite.

    `constants`: a₁…a₆, α, β, tolerance. `force` (r,) acts on the modes, `torque` (3,) is the world's about the
    centre of mass.
    """
    r = q.shape[0]
    s = r * (r + 1) // 2
    a1, a2, a3, a4, a5, a6 = (
        constants[0],
        constants[1],
        constants[2],
        constants[3],
        constants[4],
        constants[5],
    )
    alpha, beta, tolerance = constants[6], constants[7], constants[8]
    J, J_modes, h = np.empty((3, 3)), np.empty((r, 3, 3)), np.empty((r, 3))
    new_q, new_v, new_a = q.copy(), np.empty(r), np.empty(r)
    residual, stiffness = np.empty(r), np.empty(s)
    omega, turn = np.empty(3), np.empty((3, 3))
    angular_velocity(products, q, v, R, L, omega)
    new_omega, new_R = omega.copy(), R.copy()
    new_L = L + h_step * torque
    for _ in range(iterations):
        for i in range(r):
            moved = new_q[i] - q[i]
            new_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
            new_a[i] = a1 * moved - a2 * v[i] - a3 * a[i]
        inertia_and_coupling(products, new_q, J, J_modes, h)
        inverse = np.linalg.inv(J)
        # Orientation and angular velocity depend on each other weakly: two rounds an iteration settle them.
        for _round in range(2):
            rotation_from_vector(0.5 * h_step * (omega + new_omega), turn)
            new_R[:] = R @ turn
            ell = new_R.T @ new_L
            _angular_velocity(inverse, h, new_v, ell, new_omega)
        scale = _imbalance(
            coefficients, products, alpha, beta, new_q, new_v, new_a, new_omega, ell, new_R.T @ torque, force,
            J_modes, h, inverse, stiffness, residual,
        )  # fmt: skip
        if np.sum(residual * residual) <= tolerance * tolerance * scale < np.inf:
            break
        mass = coefficients[s : 2 * s]
        if not _solve_system(mass, stiffness, h, inverse, a1, a4 * alpha, 1.0 + a4 * beta, residual):
            return False
        new_q -= residual
    if not np.isfinite(np.sum(new_q)) or not np.isfinite(np.sum(new_omega)):
        return False
    for i in range(r):
        moved = new_q[i] - q[i]
        new_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
        a[i] = a1 * moved - a2 * v[i] - a3 * a[i]
    q[:] = new_q
    v[:] = new_v
    # Rounding would let R drift from a rotation over millions of steps: one Newton step of the polar iteration.
    R[:] = 1.5 * new_R - 0.5 * new_R @ (new_R.T @ new_R)
    L[:] = new_L
    return True


@njit(cache=True)
def run(
    coefficients: np.ndarray,
    products: np.ndarray,
    constants: np.ndarray,
    h_step: float,
    mass: float,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    R: np.ndarray,
    centre: np.ndarray,
    momentum: np.ndarray,
    L: np.ndarray,
    force: np.ndarray,
    thrust: np.ndarray,
    torque: np.ndarray,
    iterations: int,
    steps: int,
) -> int:
    """Many steps under constant loads: the body as a whole by `thrust` (3,), its shape and spin by `step`.

    Returns how many steps were thrown away because they did not stay finite.
    """
    resets = 0
    for _ in range(steps):
        if not step(coefficients, products, constants, h_step, q, v, a, R, L, force, torque, iterations):
            resets += 1
            v[:] = 0.0
            a[:] = 0.0
        for x in range(3):
            centre[x] += h_step * (momentum[x] + 0.5 * h_step * thrust[x]) / mass
            momentum[x] += h_step * thrust[x]
    return resets
