"""One step of a multi-domain model: what its frames and seams ask for, then Newton on all domains at once (MD11 §5.2).

    q̈ + C q̇ + f_int(q) + κ (S q + s) + κ_d (S q̇ + s′) = f,        C = αI + βK,
with S the springs between the copies on the seams, s what they ask where q = 0, and f gravity and the inertia of the
frames. f and s′ are explicit, at the unknowns as they would be without any force; the rest is implicit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.multi_domain_blocks import block_cholesky, block_solve
from softrig.models.kernels.multi_domain_coupling import (
    add_product,
    add_transposed,
    add_turned,
    block_times,
    relative,
    sandwich,
    times,
)
from softrig.models.kernels.multi_domain_elements import add_tet, tet_energy
from softrig.models.kernels.multi_domain_layout import Memory, Tables

FAILED = -1.0
"""Instead of a length: the matrix was not positive definite, or the numbers are not finite."""


@njit(cache=True, fastmath=FAST)
def prepare(
    t: Tables,
    m: Memory,
    gravity: np.ndarray,
    sag: np.ndarray,
    inertia: float,
    spring_damping: float,
    step: float,
) -> None:
    """Write load, constant and coupling of the frames in `m`; `step` seconds, 0: nothing moves.

    `gravity` (3,) m/s²; `sag` (3,) what of it the rest shape bears already, in each frame; `inertia` scales the forces
    of the moving frames: f_qv + f_rigid = −UᵀM (W Ū (q, 1) + 2 ω̃ U q̇) − M_tqᵀ Rᵀ ẗ with W = RᵀR̈ = ω̃² + (ω̇)~.
    """
    starts = t.starts
    W, vector = m.small[0:9].reshape((3, 3)), m.small[9:12]
    turn, other = m.small[12:21].reshape((3, 3)), m.small[21:30].reshape((3, 3))
    qp, vp = m.moved, m.rate
    for i in range(len(qp)):
        qp[i] = m.q[i] + step * (m.v[i] + 0.5 * step * m.a[i])
        vp[i] = m.v[i] + step * m.a[i] if step > 0.0 else 0.0
    m.load[:] = 0.0
    m.constant[:] = 0.0
    m.coupling[:] = 0.0
    for d in range(len(starts) - 1):
        s, e = starts[d], starts[d + 1]
        r = e - s
        load, R = m.load[s:e], m.rotations[d]
        for k in range(3):
            vector[k] = gravity[k] - inertia * m.places[2, d, k]
        sides = t.drift[3 * s : 3 * e]
        add_turned(1.0, sides, R, vector, load)
        for i in range(r):
            load[i] -= sides[3 * i] * sag[0] + sides[3 * i + 1] * sag[1] + sides[3 * i + 2] * sag[2]
        out = m.buffer[: r * (r + 1)]
        nine = t.inertia[t.inertia_at[d] : t.inertia_at[d + 1]]
        if step > 0.0:
            sandwich(nine, m.accelerations[d], out)
            add_product(-inertia, out, qp[s:e], 1.0, r, load)
            sandwich(nine, m.spins[d], out)
            add_product(-2.0 * inertia, out, vp[s:e], 0.0, r, load)
            if spring_damping > 0.0:
                sandwich(t.own[t.inertia_at[d] : t.inertia_at[d + 1]], m.spins[d], out)
                add_product(-spring_damping, out, qp[s:e], 1.0, r, load)
        trace = t.trace[t.inertia_at[d] // 9 : t.inertia_at[d + 1] // 9]
        block = m.coupling[t.places[t.blocks[d, d]] : t.places[t.blocks[d, d]] + r * r]
        for i in range(r):
            for j in range(r):
                block[i * r + j] = trace[i * (r + 1) + j]
            m.constant[s + i] += trace[i * (r + 1) + r]
    for pair in range(len(t.pairs)):
        i, j = t.pairs[pair, 0], t.pairs[pair, 1]
        si, ei, sj, ej = starts[i], starts[i + 1], starts[j], starts[j + 1]
        ri, rj = ei - si, ej - sj
        nine = t.across[t.across_at[pair] : t.across_at[pair + 1]]
        out = m.buffer[: (ri + 1) * (rj + 1)]
        relative(m.rotations[i], m.rotations[j], turn)
        sandwich(nine, turn, out)
        # First < second: the block below the diagonal is that of the second's rows.
        block = m.coupling[t.places[t.blocks[j, i]] : t.places[t.blocks[j, i]] + rj * ri]
        for a in range(ri):
            for b in range(rj):
                block[b * ri + a] = -out[a * (rj + 1) + b]
            m.constant[si + a] -= out[a * (rj + 1) + rj]
        for b in range(rj):
            m.constant[sj + b] -= out[ri * (rj + 1) + b]
        one = t.sides[t.sides_at[pair] : t.sides_at[pair] + 3 * ri]
        two = t.sides[t.sides_at[pair] + 3 * ri : t.sides_at[pair + 1]]
        for k in range(3):
            vector[k] = m.places[0, i, k] - m.places[0, j, k]
        add_turned(1.0, one, m.rotations[i], vector, m.constant[si:ei])
        add_turned(-1.0, two, m.rotations[j], vector, m.constant[sj:ej])
        if step > 0.0 and spring_damping > 0.0:
            times(turn, m.spins[j], W)
            sandwich(nine, W, out)
            add_product(spring_damping, out, qp[sj:ej], 1.0, ri, m.load[si:ei])
            relative(m.spins[i], turn, other)
            sandwich(nine, other, out)
            add_transposed(spring_damping, out, qp[si:ei], 1.0, rj + 1, m.load[sj:ej])
            for k in range(3):
                vector[k] = m.places[1, i, k] - m.places[1, j, k]
            add_turned(-spring_damping, one, m.rotations[i], vector, m.load[si:ei])
            add_turned(spring_damping, two, m.rotations[j], vector, m.load[sj:ej])


@njit(cache=True, forceinline=True, fastmath=FAST)
def _rates(m: Memory, c: np.ndarray) -> None:
    """a into `product` and v into `rate` at the trial, by the six constants of the implicit step."""
    for i in range(len(m.q)):
        moved = m.trial[i] - m.q[i]
        m.product[i] = c[0] * moved - c[1] * m.v[i] - c[2] * m.a[i]
        m.rate[i] = c[3] * moved + c[4] * m.v[i] + c[5] * m.a[i]


@njit(cache=True, forceinline=True, fastmath=FAST)
def _balance(
    t: Tables,
    m: Memory,
    c: np.ndarray,
    alpha: float,
    beta: float,
    spring: float,
    spring_damping: float,
    with_matrix: bool,
    project: bool,
) -> None:
    """Write residual and matrix at the trial. Without motion c, α, β and κ_d are zero and so are a and v."""
    starts, residual = t.starts, m.residual
    _rates(m, c)
    for i in range(len(residual)):
        residual[i] = m.product[i] + alpha * m.rate[i] + spring * m.constant[i] - m.load[i]
        m.moved[i] = spring * m.trial[i] + spring_damping * m.rate[i]
    block_times(starts, t.blocks, t.places, m.coupling, m.moved, m.product)
    for i in range(len(residual)):
        residual[i] += m.product[i]
    if with_matrix:
        factor = spring + c[3] * spring_damping
        for i in range(len(m.matrix)):
            m.matrix[i] = factor * m.coupling[i]
    for d in range(len(starts) - 1):
        s, e = starts[d], starts[d + 1]
        r = e - s
        own = m.square[: r * r]
        own[:] = 0.0
        for tet in range(t.tet_starts[d], t.tet_starts[d + 1]):
            add_tet(
                t.law,
                t.gradients[t.gradients_at[tet] : t.gradients_at[tet + 1]],
                t.weights[tet],
                t.lam[tet],
                t.mu[tet],
                m.trial[s:e],
                with_matrix,
                project,
                residual[s:e],
                own,
                m.small,
                m.buffer,
            )
        rest = t.stiffness[t.square_at[d] : t.square_at[d + 1]]
        for i in range(r):
            total = 0.0
            for j in range(r):
                total += rest[i * r + j] * m.rate[s + j]
            residual[s + i] += beta * total
        if with_matrix:
            block = m.matrix[t.places[t.blocks[d, d]] : t.places[t.blocks[d, d]] + r * r]
            for i in range(r):
                for j in range(i + 1):
                    block[i * r + j] += own[i * r + j] + beta * c[3] * rest[i * r + j]
                block[i * r + i] += c[0] + c[3] * alpha


@njit(cache=True, fastmath=FAST)
def newton(
    t: Tables,
    m: Memory,
    c: np.ndarray,
    alpha: float,
    beta: float,
    spring: float,
    spring_damping: float,
    iterations: int,
    enough: float,
    most: float,
    project: bool,
) -> tuple[int, float]:
    """Newton on `trial` until it moves less than `enough`, or `iterations` are done; how many, and how far the last.

    Lengths are norms of changes of the unknowns, m √kg. A change longer than `most` is cut to that length. `FAILED` as
    a length where the system is not positive definite.
    """
    length = 0.0
    for count in range(iterations):
        _balance(t, m, c, alpha, beta, spring, spring_damping, True, project)
        if not block_cholesky(t.starts, t.blocks, t.places, m.matrix):
            return count, FAILED
        block_solve(t.starts, t.blocks, t.places, m.matrix, m.residual)
        square = 0.0
        for i in range(len(m.trial)):
            square += m.residual[i] * m.residual[i]
        if not np.isfinite(square):
            return count, FAILED
        length = np.sqrt(square)
        scale = most / length if length > most else 1.0
        for i in range(len(m.trial)):
            m.trial[i] -= scale * m.residual[i]
        if length <= enough:
            return count + 1, length
    return iterations, length


@njit(cache=True, fastmath=FAST)
def potential(t: Tables, m: Memory, spring: float) -> float:
    """Joule: energy of flesh and springs at the trial, less the work of the load, but for what does not change."""
    block_times(t.starts, t.blocks, t.places, m.coupling, m.trial, m.product)
    total = 0.0
    for i in range(len(m.trial)):
        total += m.trial[i] * (spring * (0.5 * m.product[i] + m.constant[i]) - m.load[i])
    for d in range(len(t.starts) - 1):
        for tet in range(t.tet_starts[d], t.tet_starts[d + 1]):
            gradient = t.gradients[t.gradients_at[tet] : t.gradients_at[tet + 1]]
            own = m.trial[t.starts[d] : t.starts[d + 1]]
            total += t.weights[tet] * tet_energy(t.law, gradient, t.lam[tet], t.mu[tet], own, m.small)
    return total


@njit(cache=True, fastmath=FAST)
def take(m: Memory, c: np.ndarray) -> None:
    """The trial becomes the state, with the rates that follow from it."""
    _rates(m, c)
    for i in range(len(m.q)):
        m.q[i], m.v[i], m.a[i] = m.trial[i], m.rate[i], m.product[i]


@njit(cache=True, fastmath=FAST)
def balance(
    t: Tables,
    m: Memory,
    c: np.ndarray,
    alpha: float,
    beta: float,
    spring: float,
    spring_damping: float,
    with_matrix: bool,
) -> None:
    """Residual and matrix at the trial, for those who look at them."""
    _balance(t, m, c, alpha, beta, spring, spring_damping, with_matrix, False)
