"""Reduced StVK as polynomials of the modal coordinates, and its implicit step, compiled.

Energy ½ K₀qq + ⅙ T₃qqq + 1/24 T₄qqqq with symmetric tensors, hence
    K(q) = K₀ + K₁ + K₂,  K₁ = T₃q,  K₂ = ½ T₄qq,
and by Euler's theorem for homogeneous functions the force costs nothing beyond the stiffness:
    R(q) = (K₀ + ½K₁ + ⅓K₂) q.
K₂ is one symmetric matrix-vector product of size s = r(r+1)/2 with the monomials q_k q_l.

Two flat arrays, so that the same numbers can be stepped from any language:
`coefficients`: K₀ (s) | M (s) | T₃ (s × r) | T₄ (s × s, lower half read)
`memory`: settings (16) | q | v | a | force (r each) | scratch
Matrices with s entries are packed lower triangles.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import (
    FAST,
    lower_matvec,
    packed_cholesky,
    packed_cholesky_solve,
    packed_matvec,
)

SETTINGS = 16
"""Doubles of settings at the start of `memory`: a₁…a₆, α, β, tolerance, then unused."""
SHIFTS, RESETS = 0, 1
"""Places in `counters`: steps whose system had to be shifted to be definite, steps thrown away."""


def memory_size(r: int) -> int:
    """Length of `memory`."""
    s = r * (r + 1) // 2
    return SETTINGS + 9 * r + 6 * s


@njit(cache=True, forceinline=True, fastmath=FAST)
def stiffness_parts(coefficients: np.ndarray, q: np.ndarray, scratch: np.ndarray) -> None:
    """Write monomials | K₁ | K₂ (s each) into `scratch`."""
    r = q.shape[0]
    s = r * (r + 1) // 2
    monomials = scratch[:s]
    at = 0
    for k in range(r):
        qk = q[k]
        for m in range(k):
            monomials[at + m] = qk * q[m]
        monomials[at + k] = 0.5 * qk * qk
        at += k + 1
    linear = scratch[s : 2 * s]
    cubic = coefficients[2 * s : 2 * s + s * r].reshape((s, r))
    for i in range(s):
        row = cubic[i]
        total = 0.0
        for k in range(r):
            total += row[k] * q[k]
        linear[i] = total
    quartic = coefficients[2 * s + s * r : 2 * s + s * r + s * s].reshape((s, s))
    lower_matvec(quartic, monomials, scratch[2 * s : 3 * s])


@njit(cache=True, forceinline=True, fastmath=FAST)
def evaluate(
    coefficients: np.ndarray, q: np.ndarray, force: np.ndarray, stiffness: np.ndarray, scratch: np.ndarray
) -> None:
    """Write R(q) (r,) and K(q) (s, packed); `scratch` holds at least 4s."""
    r = q.shape[0]
    s = r * (r + 1) // 2
    stiffness_parts(coefficients, q, scratch)
    secant = scratch[3 * s : 4 * s]
    for i in range(s):
        k0, k1, k2 = coefficients[i], scratch[s + i], scratch[2 * s + i]
        stiffness[i] = k0 + k1 + k2
        secant[i] = k0 + 0.5 * k1 + k2 / 3.0
    packed_matvec(secant, q, force)


@njit(cache=True, fastmath=FAST)
def energy(coefficients: np.ndarray, q: np.ndarray, scratch: np.ndarray) -> float:
    """½ qᵀ(K₀ + ⅓K₁ + ⅙K₂)q, joule; `scratch` holds at least 4s + r."""
    r = q.shape[0]
    s = r * (r + 1) // 2
    stiffness_parts(coefficients, q, scratch)
    blend = scratch[3 * s : 4 * s]
    for i in range(s):
        blend[i] = coefficients[i] + scratch[s + i] / 3.0 + scratch[2 * s + i] / 6.0
    product = scratch[4 * s : 4 * s + r]
    packed_matvec(blend, q, product)
    total = 0.0
    for i in range(r):
        total += q[i] * product[i]
    return 0.5 * total


@njit(cache=True, forceinline=True, fastmath=FAST)
def _solve_definite(system: np.ndarray, mass: np.ndarray, factor: np.ndarray, x: np.ndarray, a1: float) -> bool:
    """Solve in place by Cholesky; where that fails, add growing multiples of the mass. True if it had to."""
    r = x.shape[0]
    if packed_cholesky(system, factor, r):
        packed_cholesky_solve(factor, x)
        return False
    shift = 0.1 * a1
    for _ in range(60):
        for i in range(system.shape[0]):
            system[i] += shift * mass[i]
        if packed_cholesky(system, factor, r):
            packed_cholesky_solve(factor, x)
            return True
        shift *= 2.0
    x[:] = np.nan
    return True


@njit(cache=True)
def _all_finite(x: np.ndarray) -> bool:
    for i in range(x.shape[0]):
        if not np.isfinite(x[i]):
            return False
    return True


@njit(cache=True, forceinline=True)
def step(coefficients: np.ndarray, memory: np.ndarray, counters: np.ndarray, r: int, iterations: int) -> None:
    """One implicit step (StVK05 App. C) under the force held in `memory`.

    A system that is not positive definite is shifted until it is; a step that ends in NaN is thrown away
    and the body stops where it was. Both are counted.
    """
    s = r * (r + 1) // 2
    a1, a2, a3, a4, a5, a6 = memory[0], memory[1], memory[2], memory[3], memory[4], memory[5]
    alpha, beta, tolerance = memory[6], memory[7], memory[8]
    at = SETTINGS
    q, v, a = memory[at : at + r], memory[at + r : at + 2 * r], memory[at + 2 * r : at + 3 * r]
    force = memory[at + 3 * r : at + 4 * r]
    at += 4 * r
    new_q, new_v, new_a = memory[at : at + r], memory[at + r : at + 2 * r], memory[at + 2 * r : at + 3 * r]
    product, residual = memory[at + 3 * r : at + 4 * r], memory[at + 4 * r : at + 5 * r]
    at += 5 * r
    stiffness, scratch = memory[at : at + s], memory[at + s : at + 6 * s]
    mass = coefficients[s : 2 * s]
    shifted = False
    new_q[:] = q
    for _ in range(iterations):
        evaluate(coefficients, new_q, residual, stiffness, scratch)
        for i in range(r):
            moved = new_q[i] - q[i]
            new_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
            new_a[i] = a1 * moved - a2 * v[i] - a3 * a[i] + alpha * new_v[i]
        packed_matvec(mass, new_a, product)
        square, scale = 0.0, 0.0
        for i in range(r):
            scale += product[i] * product[i] + residual[i] * residual[i] + force[i] * force[i]
            residual[i] += product[i] - force[i]
        if beta != 0.0:
            packed_matvec(stiffness, new_v, product)
            for i in range(r):
                residual[i] += beta * product[i]
        for i in range(r):
            square += residual[i] * residual[i]
        if square <= tolerance * tolerance * scale < np.inf:
            break
        system = scratch[:s]
        for i in range(s):
            system[i] = (a1 + a4 * alpha) * mass[i] + (1.0 + a4 * beta) * stiffness[i]
        shifted |= _solve_definite(system, mass, scratch[s : 2 * s], residual, a1)
        for i in range(r):
            new_q[i] -= residual[i]
    if shifted:
        counters[SHIFTS] += 1
    if not _all_finite(new_q):
        counters[RESETS] += 1
        v[:] = 0.0
        a[:] = 0.0
        return
    for i in range(r):
        moved = new_q[i] - q[i]
        new_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
        a[i] = a1 * moved - a2 * v[i] - a3 * a[i]
        v[i] = new_v[i]
        q[i] = new_q[i]


@njit(cache=True)
def run(
    coefficients: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    r: int,
    iterations: int,
    forces: np.ndarray,
    trajectory: np.ndarray,
    steps: int,
) -> None:
    """Many steps in one call. `forces` (steps, r), or no rows to keep the force in `memory`;
    `trajectory` (steps, r) receives q after each step, or has no rows."""
    at = SETTINGS
    for i in range(steps):
        if forces.shape[0] > 0:
            memory[at + 3 * r : at + 4 * r] = forces[i]
        step(coefficients, memory, counters, r, iterations)
        if trajectory.shape[0] > 0:
            trajectory[i] = memory[at : at + r]
