"""Static equilibrium of a pose-space model: Newton's method with step control, on the compiled force and stiffness."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from softrig.models.kernels.pose_space_elastic import elasticity
from softrig.models.kernels.pose_space_tables import AGE, EXTERNAL, PROJECTED, Chunks, Memory, Sums

ENOUGH = 1e-12
"""Residual over loads at which a static equilibrium is one."""
HALVINGS = 12
SHIFT = 1e-6
"""Of the largest eigenvalue: smaller ones of a semidefinite stiffness are raised to it."""


def settled_modes(sums: Sums, chunks: Chunks, memory: Memory, iterations: int) -> float:
    """Write the q that balances the external force of the prepared pose, with no rates, into the state.

    From q = 0, with positive semidefinite Hessians where the exact ones fail and halved steps until the residual falls.
    Returns what is left of the residual, over the loads.
    """
    loads = memory.vectors[EXTERNAL].copy()
    scale = float(np.linalg.norm(loads)) or 1.0
    x = np.zeros_like(loads)
    force, stiffness = reduced_elasticity(sums, chunks, memory, x)
    left = float(np.linalg.norm(force - loads))
    for _ in range(iterations):
        if not left > ENOUGH * scale:
            break
        change = _newton_change(sums, chunks, memory, x, force - loads, stiffness)
        for part in 0.5 ** np.arange(HALVINGS):
            trial = x - part * change
            force, stiffness = reduced_elasticity(sums, chunks, memory, trial)
            size = float(np.linalg.norm(force - loads))
            if size < left:
                break
        else:
            # No step helps any more: rounding, or an instability that Newton cannot pass.
            break
        x, left = trial, size
    memory.state[:] = 0.0
    memory.state[0] = x / memory.upsilon
    memory.switches[AGE] = 0
    return left / scale


def _newton_change(
    sums: Sums, chunks: Chunks, memory: Memory, x: np.ndarray, residual: np.ndarray, stiffness: np.ndarray
) -> np.ndarray:
    """(r,) K⁻¹ residual; positive semidefinite Hessians, shifted if they must be, where K is not definite."""
    try:
        return cho_solve(cho_factor(stiffness, lower=True), residual)
    except LinAlgError:
        memory.counters[PROJECTED] += 1
    _, stiffness = reduced_elasticity(sums, chunks, memory, x, projected=True)
    values, vectors = np.linalg.eigh(stiffness)
    return vectors @ (vectors.T @ residual / np.maximum(values, SHIFT * values[-1]))


def reduced_elasticity(
    sums: Sums, chunks: Chunks, memory: Memory, x: np.ndarray, *, projected: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """f̂ (r,) and K̂ (r, r) at x = Υq (r,), at the prepared pose."""
    force = np.empty_like(x)
    elasticity(chunks, sums, memory, x, x, False, True, projected, -1, False, force)
    lower = np.tril(memory.stiffness)
    return force, lower + np.tril(lower, -1).T
