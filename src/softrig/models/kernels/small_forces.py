"""Residual and matrix of a small body: forces, stiffness and viscosity of its tets, eight at a time.

Edge space and lanes as in `pose_space_elements`, with the first corner as origin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem.laws import STABLE_NEO_HOOKEAN, STVK
from softrig.models.kernels.pose_space_elements import LANES, chunk_elasticity
from softrig.models.kernels.pose_space_lanes import stable_neo_hookean_lanes, stvk_lanes
from softrig.models.kernels.pose_space_rows import hessian_times_rows
from softrig.models.kernels.small_lanes import corner_lanes, viscosity_lanes
from softrig.models.kernels.small_tables import BETA, CORNER_PAIRS, RELATIVE, TRIAL, SmallBody, SmallMemory

EDGES = 9 * LANES
HALF = 45 * LANES
"""Numbers of the lower half of a symmetric 9×9 matrix of a chunk."""
SCRATCH = 2 * HALF + (4 + CORNER_PAIRS) * EDGES
"""Numbers that `add_tets` needs beside its tables."""


@njit(cache=True, forceinline=True)
def add_tets(body: SmallBody, memory: SmallMemory, slope: float, projected: bool) -> None:
    """Add f(u) + β B(u) u̇ to the residual and K(u) + β `slope` B(u) to the matrix; `projected`: K made semidefinite."""
    lanes, law, beta = memory.lanes, body.law, memory.settings[BETA]
    # What is an argument of the tables must not look like a constant to the loops over lanes.
    width = body.corners.shape[2]
    hessian, viscous = lanes[0:HALF], lanes[HALF : 2 * HALF]
    rest = lanes[2 * HALF :]
    moves, swift = rest[0:EDGES], rest[EDGES : 2 * EDGES]
    pull, product = rest[2 * EDGES : 3 * EDGES], rest[3 * EDGES : 4 * EDGES]
    blocks = rest[4 * EDGES : (4 + CORNER_PAIRS) * EDGES]
    for chunk in range(body.corners.shape[0]):
        corners = body.corners[chunk]
        gradients, factors = memory.gradients[chunk], memory.factors[chunk]
        lam, mu = memory.lame[chunk, 0], memory.lame[chunk, 1]
        _edges(corners, memory.state[TRIAL], moves)
        if projected or law not in (STVK, STABLE_NEO_HOOKEAN):
            chunk_elasticity(law, moves, gradients, lam, mu, factors, projected, pull, hessian, memory.work)
        elif law == STVK:
            stvk_lanes(width, moves, gradients, lam, mu, factors, pull, hessian)
        else:
            stable_neo_hookean_lanes(width, moves, gradients, lam, mu, factors, pull, hessian)
        if beta != 0.0:
            _edges(corners, memory.state[RELATIVE], swift)
            viscosity_lanes(width, moves, gradients, lam, mu, factors, beta, viscous)
            hessian_times_rows(width, viscous, swift, 1, product)
            for t in range(EDGES):
                pull[t] += product[t]
            for t in range(HALF):
                hessian[t] += slope * viscous[t]
        _scatter_force(corners, pull, memory.residual)
        corner_lanes(width, hessian, blocks)
        _scatter_blocks(corners, body.places[chunk], body.firsts, blocks, memory.matrix)


@njit(cache=True)
def _edges(corners: np.ndarray, field: np.ndarray, out: np.ndarray) -> None:
    """Write field_α − field_0 of the corners (9, LANES): component i of edge α at 3α + i."""
    for t in range(LANES):
        base = field[corners[0, t]]
        for a in range(3):
            tip = field[corners[a + 1, t]]
            for i in range(3):
                out[LANES * (3 * a + i) + t] = tip[i] - base[i]


@njit(cache=True)
def _scatter_force(corners: np.ndarray, pull: np.ndarray, residual: np.ndarray) -> None:
    """Add the edge forces to the free corners; the first corner, always free, balances the others."""
    size = residual.shape[0]
    for t in range(LANES):
        base = 3 * corners[0, t]
        for a in range(3):
            at = 3 * corners[a + 1, t]
            for i in range(3):
                value = pull[LANES * (3 * a + i) + t]
                residual[base + i] -= value
                if at < size:
                    residual[at + i] += value


@njit(cache=True)
def _scatter_blocks(
    corners: np.ndarray, places: np.ndarray, firsts: np.ndarray, blocks: np.ndarray, matrix: np.ndarray
) -> None:
    """Add the blocks (CORNER_PAIRS, 3, 3, LANES) of pairs of free corners to the envelope."""
    for t in range(LANES):
        for a in range(4):
            row = corners[a, t]
            if row >= firsts.shape[0]:
                break  # on the bones, and so are the corners behind it
            width = 3 * (row - firsts[row] + 1)
            for pair in range(a * (a + 1) // 2, (a + 1) * (a + 2) // 2):
                at, of = places[pair, t], EDGES * pair + t
                for _ in range(3):
                    matrix[at] += blocks[of]
                    matrix[at + 1] += blocks[of + LANES]
                    matrix[at + 2] += blocks[of + 2 * LANES]
                    at += width
                    of += 3 * LANES
