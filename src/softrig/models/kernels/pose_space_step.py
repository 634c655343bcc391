"""One implicit step of the reduced character: what the pose gives, then one or more Newton iterations.

    M̃ q̈ + (αM̃ + βK̃) q̇ + f̃_int(q) = f̃_inert + f̃_gyro + f̃_ext                              (PSSD Eq. 5)

The unknown of the solver is x = Υq, so that neither the basis nor any matrix is ever scaled: with hats for unscaled
quantities, (a₁ + a₄α) M̂ + (1 + a₄β) K̂ times Υ Δq equals the unscaled residual.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.pose_space_elastic import elasticity
from softrig.models.kernels.pose_space_gyro import gyroscopic
from softrig.models.kernels.pose_space_packed import StepTables
from softrig.models.kernels.pose_space_prepare import prepare
from softrig.models.kernels.pose_space_shapes import within
from softrig.models.kernels.pose_space_sums import (
    assemble,
    cholesky,
    cholesky_solve,
    segment_product,
)
from softrig.models.kernels.pose_space_tables import (
    AGE,
    ALPHA,
    BACKUP,
    BETA,
    DECAYED,
    EULER,
    EXTERNAL,
    FIRST,
    FORCE,
    HALVED,
    ITERATIONS,
    KEPT,
    LIMIT,
    NEW,
    PROJECTED,
    RESIDUAL,
    SECOND,
    STEP,
    STEPS,
    TOLERANCE,
    Carriers,
    Chunks,
    Gyro,
    Memory,
    Rows,
    Sums,
    X,
)

EVERY = 4
"""Steps from the turn of one part of the tets at a new stiffness to that of the next, if it has not strained before."""
NONE = -2
"""No part's turn."""
SLOW = 0.1
"""If a second iteration still finds more than this of the first's residual, squared, the tangents of before do not
serve: all are made anew. A letter X of 100 modes that is shaken until it turns by a right angle had to decay in 5 of
504 steps without that and in none with it; at 0.3 four steps had to be halved. A bow and a bend never get there."""
WILD = 3
"""Iterations from there."""
QUIET = 1e-20
"""Of the forces at play, squared: a residual below it is rounding, and says nothing of tangents."""
SUBSTEPS = 4
"""A step that has no sound result is redone as 2, then as this many."""


@njit(cache=True)
def step(z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, moving: bool, tables: StepTables) -> None:
    """One step that ends at carrier values z with rates zd and zdd.

    Not `moving`: only what depends on the pose is made ready. A step that has no sound result is redone as 2, then as
    4; failing that the modes decay by half.
    """
    carriers, bones, sums, gyro, memory = tables.carriers, tables.bones, tables.sums, tables.gyro, tables.memory
    inertia, wind, chunks, rows = tables.inertia, tables.wind, tables.chunks, tables.rows
    prepare(carriers, bones, sums, inertia, wind, chunks, rows, memory, z, zd, zdd)
    if not moving:
        return
    memory.counters[STEPS] += 1
    state, backup = memory.state, memory.vectors[BACKUP : BACKUP + 3]
    parts, done, sound = 1, 0, True
    fresh = done == 0  # a plain True would have the compiler make all of `elasticity` twice
    while done < parts:
        sound = attempt(carriers, sums, gyro, chunks, rows, memory, memory.settings[STEP] / parts, fresh)
        fresh = memory.switches[KEPT] == 0
        done += 1
        if sound:
            continue
        memory.switches[AGE] = 0
        if parts == SUBSTEPS:
            break
        if parts == 1:
            memory.counters[HALVED] += 1
            copy_rows(state, backup)
        copy_rows(backup, state)
        parts, done = 2 * parts, 0
    if not sound:
        memory.counters[DECAYED] += 1
        for k in range(3):
            for i in range(state.shape[1]):
                value = 0.5 * backup[k, i]
                state[k, i] = value if np.isfinite(value) else 0.0


@njit(cache=True)
def copy_rows(source: np.ndarray, target: np.ndarray) -> None:
    """target[:] = source, (k, r)."""
    for k in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[k, i] = source[k, i]


@njit(cache=True, inline="always")
def attempt(
    carriers: Carriers, sums: Sums, gyro: Gyro, chunks: Chunks, rows: Rows, memory: Memory, h: float, fresh: bool
) -> bool:
    """Step the modes by h seconds; False, and the state as it was, if there is no sound result.

    `fresh`: the rows of the basis at this pose are not there yet.
    """
    r = memory.state.shape[1]
    q, v, a = memory.state[0], memory.state[1], memory.state[2]
    x, new, force, residual = memory.vectors[X], memory.vectors[NEW], memory.vectors[FORCE], memory.vectors[RESIDUAL]
    first, second = memory.vectors[FIRST], memory.vectors[SECOND]
    upsilon, first_column = memory.upsilon, sums.first
    alpha, beta, tolerance = memory.settings[ALPHA], memory.settings[BETA], memory.settings[TOLERANCE]
    if memory.switches[EULER]:
        a1, a2, a3, a4, a5 = 1.0 / (h * h), 1.0 / h, 0.0, 1.0 / h, 0.0
    else:
        a1, a2, a3, a4, a5 = 4.0 / (h * h), 4.0 / h, 1.0, 2.0 / h, -1.0
    near, age = (1.0 if memory.switches[EULER] else 0.5), memory.switches[AGE]
    for i in range(r):
        new[i] = q[i]
        if age > 0:
            # Where a free mode of that stiffness would be: what is left for one iteration is small.
            stiff = max(upsilon[i] * upsilon[i] * memory.stiffness[i, i], 0.0)
            new[i] += (h * v[i] + near * h * h * a[i]) / (1.0 + near * near * h * h * stiff)
        x[i] = upsilon[i] * q[i]
        first[i] = upsilon[i] * v[i]
    for i in range(r):
        force[i] = memory.vectors[EXTERNAL, i]
    gyroscopic(gyro.segments, gyro.starts, gyro.pieces, gyro.terms, memory.rates, x, first, memory.gyro, force)
    projected, sound, trials = False, True, memory.switches[ITERATIONS]
    # Stiffness that the tets have beyond that at rest changes little in a few steps; the force is always that of now.
    parts = memory.tangents.shape[0]
    turn = (age // EVERY) % parts if age % EVERY == 0 else NONE
    if parts == 1 or age == 0:
        turn = -1
    before, known = np.inf, age < 0  # a plain False would have the compiler make all of `elasticity` twice
    while trials > 0:
        for i in range(r):
            moved = new[i] - q[i]
            speed = a4 * moved + a5 * v[i]
            x[i] = upsilon[i] * new[i]
            first[i] = beta * upsilon[i] * speed
            second[i] = upsilon[i] * (a1 * moved - a2 * v[i] - a3 * a[i] + alpha * speed)
        all_or_turn = -1 if projected else turn
        written = elasticity(
            chunks, sums, memory, x, first, beta != 0.0, fresh, projected, all_or_turn, known, residual
        )
        fresh = memory.switches[KEPT] == 0
        scale = 0.0
        for i in range(r):
            scale += residual[i] * residual[i] + force[i] * force[i]
            residual[i] -= force[i]
        segment_product(sums.segments, memory.mass, second, residual)
        square = 0.0
        for i in range(r):
            square += residual[i] * residual[i]
        if square <= tolerance * tolerance * scale and scale < np.inf:
            break
        if known and not (projected or square <= SLOW * before or square <= QUIET * scale):
            # From here on Newton's method as it is written, at this very place again.
            turn, known, trials = -1, False, WILD
            continue
        before = square
        if written:
            assemble(sums.segments, memory.mass, a1 + a4 * alpha, memory.stiffness, 1.0 + a4 * beta, memory.system)
        if written and not cholesky(memory.system, first_column, r):
            if projected:
                sound = False
                break
            # The same iteration again with positive semidefinite Hessians, and those from here on.
            projected = True
            memory.counters[PROJECTED] += 1
            continue
        cholesky_solve(memory.system, first_column, residual)
        for i in range(r):
            new[i] -= residual[i] / upsilon[i]
        trials -= 1
        if parts > 1 and turn != -1:
            # What the first iteration was solved by serves the next, but for tets that had strained by then.
            turn, known = NONE, True
    memory.switches[AGE] = 0 if projected else age + 1
    limit, most = memory.settings[LIMIT], _largest_move(new, upsilon, memory.basis, memory.peaks)
    # Only beyond the limit need vertices be looked at.
    if sound and not most <= limit:
        sound = np.isfinite(most) and within(
            limit,
            carriers.cubature_vertices,
            rows.starts,
            rows.columns,
            rows.of_vertex,
            rows.offsets,
            rows.numbers,
            rows.units,
            new,
            upsilon,
            memory.basis,
        )
    if sound:
        for i in range(r):
            moved = new[i] - q[i]
            speed = a4 * moved + a5 * v[i]
            a[i] = a1 * moved - a2 * v[i] - a3 * a[i]
            v[i] = speed
            q[i] = new[i]
    return sound


@njit(cache=True)
def _largest_move(q: np.ndarray, upsilon: np.ndarray, basis: np.ndarray, peaks: np.ndarray) -> float:
    """Metres that no cubature vertex moves beyond: the sum of every mode's largest displacement."""
    total, share = 0.0, 0.0
    for i in range(q.shape[0]):
        total += abs(upsilon[i] * q[i]) * peaks[i]
    for b in range(basis.shape[0]):
        share += abs(basis[b])
    return total * share
