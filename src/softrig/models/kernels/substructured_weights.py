"""What each subtree weighs and asks for, from the leaves up: forces, elasticity, and their condensation onto the frame.

See `substructured_step` for the equations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST, packed_cholesky, packed_matvec
from softrig.models.kernels.polynomial import evaluate
from softrig.models.kernels.substructured_frames import across, back
from softrig.models.kernels.substructured_tables import Loads, Room, Tables
from softrig.models.kernels.substructured_terms import HEAD, cross, domain_terms

INTERFACE, CENTRE, EXACT = 0, 1, 2
"""What a parent feels of a subtree; see `substructured_step`."""


@njit(cache=True)
def _push(
    frame: np.ndarray,
    scale: float,
    q: np.ndarray,
    arm: np.ndarray,
    lever: np.ndarray,
    force: np.ndarray,
    bias: np.ndarray,
    right: np.ndarray,
    subtree: np.ndarray,
) -> None:
    """Let a force (3,) of the world pull at a point of a domain."""
    r = q.shape[0]
    f0 = frame[0] * force[0] + frame[3] * force[1] + frame[6] * force[2]
    f1 = frame[1] * force[0] + frame[4] * force[1] + frame[7] * force[2]
    f2 = frame[2] * force[0] + frame[5] * force[1] + frame[8] * force[2]
    y0, y1, y2 = arm[0], arm[1], arm[2]
    for mode in range(r):
        y0 += lever[0, mode] * q[mode]
        y1 += lever[1, mode] * q[mode]
        y2 += lever[2, mode] * q[mode]
        right[mode] += scale * (lever[0, mode] * f0 + lever[1, mode] * f1 + lever[2, mode] * f2)
    t0, t1, t2 = cross(scale * y0, scale * y1, scale * y2, f0, f1, f2)
    bias[0] -= f0
    bias[1] -= f1
    bias[2] -= f2
    bias[3] -= t0
    bias[4] -= t1
    bias[5] -= t2
    subtree[4] += f0
    subtree[5] += f1
    subtree[6] += f2


@njit(cache=True)
def _blow(
    frame: np.ndarray,
    scale: float,
    table: np.ndarray,
    wind: np.ndarray,
    drag: float,
    bias: np.ndarray,
    right: np.ndarray,
    subtree: np.ndarray,
) -> None:
    """Let the air push: each piece of surface along its normal, by the air's speed against the domain's centre.

    Half the surface faces the wind: traction drag · |w| (w·n) n on half of ∫n⊗n dA.
    """
    r = right.shape[0]
    c0, c1, c2 = cross(
        frame[12], frame[13], frame[14], scale * table[18], scale * table[19], scale * table[20]
    )  # fmt: skip
    w0 = frame[0] * wind[0] + frame[3] * wind[1] + frame[6] * wind[2] - frame[15] - c0
    w1 = frame[1] * wind[0] + frame[4] * wind[1] + frame[7] * wind[2] - frame[16] - c1
    w2 = frame[2] * wind[0] + frame[5] * wind[1] + frame[8] * wind[2] - frame[17] - c2
    by = 0.5 * drag * np.sqrt(w0 * w0 + w1 * w1 + w2 * w2) * scale * scale
    for k in range(3):
        force = by * (table[3 * k] * w0 + table[3 * k + 1] * w1 + table[3 * k + 2] * w2)
        bias[k] -= force
        subtree[4 + k] += force
        bias[3 + k] -= by * scale * (table[9 + 3 * k] * w0 + table[10 + 3 * k] * w1 + table[11 + 3 * k] * w2)
    for mode in range(r):
        at = 21 + 3 * mode
        right[mode] += by * scale * (table[at] * w0 + table[at + 1] * w1 + table[at + 2] * w2)


@njit(cache=True, forceinline=True, fastmath=FAST)
def _condense(
    factor: np.ndarray, coupling: np.ndarray, right: np.ndarray, inertia: np.ndarray, bias: np.ndarray
) -> None:
    """Overwrite Bᵀ and g by Y = L⁻¹Bᵀ and L⁻¹g, and take YᵀY off I, add YᵀL⁻¹g to p."""
    r = right.shape[0]
    start = 0
    for i in range(r):
        row = coupling[i]
        total = right[i]
        for j in range(i):
            entry = factor[start + j]
            above = coupling[j]
            for k in range(6):
                row[k] -= entry * above[k]
            total -= entry * right[j]
        pivot = factor[start + i]
        total *= pivot
        right[i] = total
        for k in range(6):
            row[k] *= pivot
        start += i + 1
        for k in range(6):
            bias[k] += row[k] * total
            for m in range(6):
                inertia[k, m] -= row[k] * row[m]


@njit(cache=True, forceinline=True, fastmath=FAST)
def _hang(
    Q: np.ndarray,
    at: np.ndarray,
    gain: np.ndarray,
    follow: np.ndarray,
    inertia: np.ndarray,
    bias: np.ndarray,
    system: np.ndarray,
    above_coupling: np.ndarray,
    above_right: np.ndarray,
    above_inertia: np.ndarray,
    above_bias: np.ndarray,
    work: np.ndarray,
) -> None:
    """Add what a child (Î, p̂) makes its parent feel through A_child = T A + Ψᵀq̈ + γ."""
    r = follow.shape[0]
    wrench, felt, heavy = work[0:6], work[6:12], work[12 : 12 + 6 * r].reshape((r, 6))
    for k in range(6):
        total = bias[k]
        for m in range(6):
            total += inertia[k, m] * gain[m]
        wrench[k] = total
    back(Q, at, wrench, felt)
    for k in range(6):
        above_bias[k] += felt[k]
    start = 0
    for mode in range(r):
        row, carried = follow[mode], heavy[mode]
        total = 0.0
        for k in range(6):
            total += row[k] * wrench[k]
            value = 0.0
            for m in range(6):
                value += inertia[k, m] * row[m]
            carried[k] = value
        above_right[mode] -= total
        for other in range(mode + 1):
            value = 0.0
            for k in range(6):
                value += heavy[other, k] * row[k]
            system[start + other] += value
        start += mode + 1
        back(Q, at, carried, felt)
        for k in range(6):
            above_coupling[mode, k] += felt[k]
    # Tᵀ Î T, column by column: the parent's unit accelerations carried over, and what they cost carried back.
    unit = work[12 + 6 * r : 18 + 6 * r]
    moved = work[18 + 6 * r : 24 + 6 * r]
    for m in range(6):
        for k in range(6):
            unit[k] = 1.0 if k == m else 0.0
        across(Q, at, unit, moved)
        for k in range(6):
            total = 0.0
            for j in range(6):
                total += inertia[k, j] * moved[j]
            wrench[k] = total
        back(Q, at, wrench, felt)
        for k in range(6):
            above_inertia[k, m] += felt[k]


@njit(cache=True, error_model="numpy")
def _lump(kind: int, subtree: np.ndarray, omega: np.ndarray, inertia: np.ndarray, bias: np.ndarray) -> None:
    """Replace (Î, p̂) by those of a point that has the mass of the whole subtree (SUB11 L1 and L2)."""
    mass = subtree[0]
    inertia[:] = 0.0
    bias[:] = 0.0
    for k in range(3):
        inertia[k, k] = mass
        bias[k] = -subtree[4 + k]
    if kind == INTERFACE:
        return
    c0, c1, c2 = subtree[1], subtree[2], subtree[3]  # mass times place
    inertia[0, 4], inertia[0, 5], inertia[1, 3] = c2, -c1, -c2
    inertia[1, 5], inertia[2, 3], inertia[2, 4] = c0, c1, -c0
    for i in range(3):
        for j in range(3):
            inertia[3 + i, j] = inertia[j, 3 + i]
            inertia[3 + i, 3 + j] = -subtree[1 + i] * subtree[1 + j] / mass
        inertia[3 + i, 3 + i] += (c0 * c0 + c1 * c1 + c2 * c2) / mass
    x, y, z = omega[0], omega[1], omega[2]
    along, square = x * c0 + y * c1 + z * c2, x * x + y * y + z * z
    # What the mass resists when it turns, and the forces on the subtree, act at its centre.
    for k in range(3):
        bias[k] += omega[k] * along - square * subtree[1 + k]
    t0, t1, t2 = cross(c0 / mass, c1 / mass, c2 / mass, bias[0], bias[1], bias[2])
    bias[3], bias[4], bias[5] = t0, t1, t2


@njit(cache=True, forceinline=True)
def _factor(system: np.ndarray, mass: np.ndarray, shift: float, r: int, work: np.ndarray) -> bool:
    """Replace a packed system by its Cholesky factor, with growing multiples of the mass added until it has one.

    True if it had to be. NaN stays NaN.
    """
    size = r * (r + 1) // 2
    given = work[:size]
    given[:] = system
    if packed_cholesky(given, system, r):
        return False
    for _ in range(60):
        for i in range(size):
            given[i] += shift * mass[i]
        if packed_cholesky(given, system, r):
            return True
        shift *= 2.0
    system[:] = np.nan
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def _own_system(
    coefficients: np.ndarray,
    q: np.ndarray,
    start_q: np.ndarray,
    start_v: np.ndarray,
    s3: float,
    s5: float,
    stiff: float,
    constants: np.ndarray,
    system: np.ndarray,
    right: np.ndarray,
    work: np.ndarray,
) -> None:
    """Add to M and g what a domain's elasticity and damping ask for, linear about `q`.

    With q = q* + q̈/a₁ and q̇ = v* + (a₄/a₁) q̈:
        M ← s⁵(1 + α a₄/a₁) M + s³k (K + β a₄ D)/a₁,    g ← − s³k (R(q) + K(q* − q) + β D v*) − s⁵ α M v*.
    D is K, and where that is indefinite, so that it would give energy, the stiffness at rest. (At rest alone it would
    resist flesh that turns within its domain.)
    """
    r = q.shape[0]
    s = r * (r + 1) // 2
    a1, a4, alpha, beta = constants[0], constants[3], constants[6], constants[7]
    force, moved, product = work[0:r], work[r : 2 * r], work[2 * r : 3 * r]
    stiffness, scratch = work[3 * r : 3 * r + s], work[3 * r + s : 3 * r + 5 * s]
    evaluate(coefficients, q, force, stiffness, scratch)
    mass = coefficients[s : 2 * s]
    elastic = s3 * stiff
    by_mass, by_stiffness = s5 * (1.0 + alpha * a4 / a1), elastic / a1
    for i in range(s):
        system[i] += by_mass * mass[i] + by_stiffness * stiffness[i]
    for i in range(r):
        moved[i] = start_q[i] - q[i]
    packed_matvec(stiffness, moved, product)
    for i in range(r):
        right[i] -= elastic * (force[i] + product[i])
    if beta != 0.0:
        damper = stiffness if packed_cholesky(stiffness, scratch[:s], r) else coefficients[:s]
        for i in range(s):
            system[i] += elastic * beta * a4 / a1 * damper[i]
        packed_matvec(damper, start_v, product)
        for i in range(r):
            right[i] -= elastic * beta * product[i]
    if alpha != 0.0:
        packed_matvec(mass, start_v, product)
        for i in range(r):
            right[i] -= s5 * alpha * product[i]


@njit(cache=True)
def _slow(
    alpha: float,
    share: float,
    inertia: np.ndarray,
    coupling: np.ndarray,
    v: np.ndarray,
    frame: np.ndarray,
    acceleration: np.ndarray,
    bias: np.ndarray,
    right: np.ndarray,
) -> None:
    """Damp a domain's momentum in the world, α(I V + B q̇) and αBᵀV; αM q̇ is in `_own_system`.

    Implicit, or steps longer than 1/α would fly apart: with the step's q̇ = v + `share` q̈, the frame's V changes with
    its acceleration A by `share`, too. `v` (r,) without that of q̈; `acceleration` (6,) what `frame` was found with.
    """
    r = v.shape[0]
    for k in range(6):
        momentum = 0.0
        for m in range(3):
            momentum += inertia[k, m] * (frame[15 + m] - share * acceleration[m])
            momentum += inertia[k, 3 + m] * (frame[12 + m] - share * acceleration[3 + m])
        for mode in range(r):
            momentum += coupling[mode, k] * v[mode]
        bias[k] += alpha * momentum
    for mode in range(r):
        carried = 0.0
        for m in range(3):
            carried += coupling[mode, m] * (frame[15 + m] - share * acceleration[m])
            carried += coupling[mode, 3 + m] * (frame[12 + m] - share * acceleration[3 + m])
        right[mode] -= alpha * carried
        for k in range(6):
            coupling[mode, k] *= 1.0 + alpha * share
    for k in range(6):
        for m in range(6):
            inertia[k, m] *= 1.0 + alpha * share


@njit(cache=True, forceinline=True)
def weigh(tables: Tables, loads: Loads, room: Room, start_v: np.ndarray, alpha: float, share: float) -> None:
    """Write what every domain by itself weighs, what velocities do to it and what pulls at it.

    `alpha`: mass damping of frames, 1/s; q̇ = `start_v` (r̂,) + `share` q̈ in this step. `room.accelerations` are those of
    the last round.
    """
    room.inertia[:] = 0.0
    room.bias[:] = 0.0
    room.coupling[:] = 0.0
    room.right[:] = 0.0
    room.subtree[:] = 0.0
    pull = 0
    for i in range(tables.parents.shape[0]):
        start, end = tables.modes[i], tables.modes[i + 1]
        r, scale, frame = end - start, tables.scales[i], room.frames[i]
        q, v, right = room.new_q[start:end], room.new_v[start:end], room.right[start:end]
        coupling, inertia, bias, subtree = room.coupling[start:end], room.inertia[i], room.bias[i], room.subtree[i]
        products = tables.products[tables.product_starts[i, 0] : tables.product_starts[i, 1]]
        W, Z = room.scratch[0 : 9 * r].reshape((r, 9)), room.scratch[9 * r : 18 * r].reshape((r, 9))
        domain_terms(products, scale, q, v, frame[12:15], W, Z, inertia, coupling, bias, right)
        for mode in range(r):
            right[mode] = -right[mode]
        s3 = scale * scale * scale
        subtree[0] = s3 * products[0]
        for axis in range(3):
            moment = products[1 + axis]
            for mode in range(r):
                moment += products[HEAD + 3 * mode + axis] * q[mode]
            subtree[1 + axis] = s3 * scale * moment
        if alpha > 0.0:
            own = room.accelerations[i]
            _slow(alpha, share, inertia, coupling, start_v[start:end], frame, own, bias, right)
        while pull < loads.pulled.shape[0] and loads.pulled[pull] == i:
            _push(frame, scale, q, loads.arms[pull], loads.levers[pull], loads.pulls[pull], bias, right, subtree)
            pull += 1
        if loads.drag[0] > 0.0:
            drags = tables.drags[tables.drag_starts[i, 0] : tables.drag_starts[i, 1]]
            _blow(frame, scale, drags, loads.wind[i], loads.drag[0], bias, right, subtree)


@njit(cache=True, forceinline=True)
def ascend(
    tables: Tables, loads: Loads, room: Room, start_q: np.ndarray, start_v: np.ndarray, constants: np.ndarray, kind: int
) -> int:
    """Condense every domain's equations and hand them to its parent. Returns how many systems had to be shifted."""
    room.factors[:] = 0.0
    shifted = 0
    work = room.scratch
    for i in range(tables.parents.shape[0] - 1, -1, -1):
        start, end = tables.modes[i], tables.modes[i + 1]
        r, scale = end - start, tables.scales[i]
        right, coupling = room.right[start:end], room.coupling[start:end]
        inertia, bias, subtree = room.inertia[i], room.bias[i], room.subtree[i]
        system = room.factors[room.factor_starts[i, 0] : room.factor_starts[i, 1]]
        if r > 0:
            s3, s5 = scale * scale * scale, scale * scale * scale * scale * scale
            coefficients = tables.coefficients[tables.coefficient_starts[i, 0] : tables.coefficient_starts[i, 1]]
            _own_system(
                coefficients, room.new_q[start:end], start_q[start:end], start_v[start:end], s3, s5,
                tables.stiffness[i], constants, system, right, work,
            )  # fmt: skip
            size = r * (r + 1) // 2
            if _factor(system, coefficients[size : 2 * size], 0.1 * s5, r, work):
                shifted += 1
            _condense(system, coupling, right, inertia, bias)
        parent = tables.parents[i]
        if parent < 0:
            continue
        hinge = room.hinges[i]
        Q, at = hinge[0:9].reshape((3, 3)), hinge[9:12]
        above = room.subtree[parent]
        above[0] += subtree[0]
        for k in range(3):
            above[1 + k] += subtree[0] * at[k]
            for m in range(3):
                above[1 + k] += Q[k, m] * subtree[1 + m]
                above[4 + k] += Q[k, m] * subtree[4 + m]
        if kind != EXACT:
            _lump(kind, subtree, room.frames[i, 12:15], inertia, bias)
        first, last = tables.link_starts[i, 0] // 2, tables.link_starts[i, 1] // 2
        up, to = tables.modes[parent], tables.modes[parent + 1]
        _hang(
            Q, at, hinge[15:21], room.follow[first:last].reshape((to - up, 6)), inertia, bias,
            room.factors[room.factor_starts[parent, 0] : room.factor_starts[parent, 1]],
            room.coupling[up:to], room.right[up:to], room.inertia[parent], room.bias[parent], work,
        )  # fmt: skip
    return shifted
