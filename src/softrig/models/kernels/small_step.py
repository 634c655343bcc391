"""A full step of a small body on its moving rest shape, compiled: PSSD Eq. 4 with every free vertex and every tet."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.envelope import envelope_cholesky, envelope_solve
from softrig.models.kernels.pose_space_pose import materials, rest_tets
from softrig.models.kernels.small_forces import add_tets
from softrig.models.kernels.small_tables import (
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    ALPHA,
    RELATIVE,
    STEP,
    TRIAL,
    A,
    Q,
    SmallBody,
    SmallMemory,
    V,
)
from softrig.numerics.rotations import rotation_from_vector

DONE, PROJECTED, INDEFINITE, DIVERGED = 0, 1, 2, 3
"""What became of a step."""


@njit(cache=True)
def advance(body: SmallBody, memory: SmallMemory) -> int:
    """One Newton iteration from the last u turned by its frames, and the rates that follow; a failure changes no state.

    Rest shape, loads and spins are those of the end of the step. Where the matrix is indefinite, once more with the
    tets' Hessians made semidefinite.
    """
    rest_tets(
        body.corners,
        body.edges,
        body.inverses,
        memory.positions.T,
        memory.gradients,
        memory.factors,
        memory.lanes,
        memory.work,
    )
    shares = memory.positive if body.young.shape[1] > 1 else memory.whole
    materials(shares, body.ones, body.young, body.poisson, body.scale, body.volumes, memory.factors, memory.lame)
    outcome = DONE
    _start(body, memory)
    _system(body, memory, False)
    if not envelope_cholesky(body.firsts, body.starts, memory.matrix):
        outcome = PROJECTED
        _system(body, memory, True)
        if not envelope_cholesky(body.firsts, body.starts, memory.matrix):
            return INDEFINITE
    envelope_solve(body.firsts, body.starts, memory.matrix, memory.residual)
    for k in range(memory.residual.shape[0]):
        if not np.isfinite(memory.residual[k]):
            return DIVERGED
    _take(memory)
    return outcome


@njit(cache=True)
def _start(body: SmallBody, memory: SmallMemory) -> None:
    """The trial: u turned with its surroundings, and its rate relative to them, u̇ − ω × u."""
    state, settings, R, vector = memory.state, memory.settings, memory.work[0:9].reshape((3, 3)), memory.work[9:12]
    for v in range(body.mass.shape[0]):
        spin, before, trial, relative = memory.spin[v], state[Q, v], state[TRIAL, v], state[RELATIVE, v]
        for i in range(3):
            vector[i] = settings[STEP] * spin[i]
        rotation_from_vector(vector, R)
        for i in range(3):
            trial[i] = R[i, 0] * before[0] + R[i, 1] * before[1] + R[i, 2] * before[2]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            rate = settings[A4] * (trial[i] - before[i]) + settings[A5] * state[V, v, i] + settings[A6] * state[A, v, i]
            relative[i] = rate - (spin[j] * trial[k] - spin[k] * trial[j])


@njit(cache=True, forceinline=True)
def _system(body: SmallBody, memory: SmallMemory, projected: bool) -> None:
    """Residual M (a + α u̇) + f + β B u̇ − load at the trial, and a₁ M + K + a₄ (α M + β B)."""
    state, settings, matrix, residual = memory.state, memory.settings, memory.matrix, memory.residual
    for k in range(matrix.shape[0]):
        matrix[k] = 0.0
    for v in range(body.mass.shape[0]):
        mass, width = body.mass[v], 3 * (v - body.firsts[v] + 1)
        for i in range(3):
            a = (
                settings[A1] * (state[TRIAL, v, i] - state[Q, v, i])
                - settings[A2] * state[V, v, i]
                - settings[A3] * state[A, v, i]
            )
            residual[3 * v + i] = mass * (a + settings[ALPHA] * state[RELATIVE, v, i]) - memory.load[v, i]
            matrix[body.starts[v] + i * width + width - 3 + i] = mass * (settings[A1] + settings[A4] * settings[ALPHA])
    add_tets(body, memory, settings[A4], projected)


@njit(cache=True)
def _take(memory: SmallMemory) -> None:
    """u at the end of the step, and its rates."""
    state, settings = memory.state, memory.settings
    for v in range(memory.load.shape[0]):
        for i in range(3):
            q, speed, turn = state[Q, v, i], state[V, v, i], state[A, v, i]
            new = state[TRIAL, v, i] - memory.residual[3 * v + i]
            state[Q, v, i] = new
            state[A, v, i] = settings[A1] * (new - q) - settings[A2] * speed - settings[A3] * turn
            state[V, v, i] = settings[A4] * (new - q) + settings[A5] * speed + settings[A6] * turn
