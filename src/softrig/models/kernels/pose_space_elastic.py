"""Reduced elastic force and stiffness by cubature (PSSD §5.3), chunk by chunk."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem.laws import STABLE_NEO_HOOKEAN, STVK
from softrig.models.kernels.pose_space_elements import LANES, chunk_elasticity, subtract_linear
from softrig.models.kernels.pose_space_lanes import stable_neo_hookean_lanes, stvk_lanes
from softrig.models.kernels.pose_space_rows import (
    EDGES,
    active_poses,
    add_force,
    add_stiffness,
    edge_moves,
    edge_rows,
    hessian_times_rows,
    scatter_lower,
)
from softrig.models.kernels.pose_space_sums import add_segments, segment_product, weighted_sum


@njit(cache=True)
def elasticity(
    law: int,
    groups: np.ndarray,
    starts: np.ndarray,
    all_columns: np.ndarray,
    vertices: np.ndarray,
    offsets: np.ndarray,
    shapes: np.ndarray,
    edge_offsets: np.ndarray,
    basis: np.ndarray,
    rotations: np.ndarray,
    gradients: np.ndarray,
    lame: np.ndarray,
    factors: np.ndarray,
    segments: np.ndarray,
    corrections: np.ndarray,
    positive_corrections: np.ndarray,
    mixing: np.ndarray,
    positive: np.ndarray,
    correction: np.ndarray,
    x: np.ndarray,
    fresh: bool,
    projected: bool,
    remainder: bool,
    edges: np.ndarray,
    product: np.ndarray,
    local: np.ndarray,
    lanes: np.ndarray,
    active: np.ndarray,
    work: np.ndarray,
    force: np.ndarray,
    stiffness: np.ndarray,
) -> None:
    """Write f̂ (r,) and K̂ (r, r), lower half, at x = Υq (r,): cubature plus the stiffness correction ΔK x, ΔK.

    ΔK is `corrections` (k, entries) mixed by `mixing` (k,).
    `fresh`: rows of the basis must be made first. `projected`: positive semidefinite element Hessians and ΔK.
    `remainder`: what is mixed is the whole of K̃ at u = 0, and the tets give only what goes beyond it.
    """
    for i in range(stiffness.shape[0]):
        force[i] = 0.0
        for j in range(i + 1):
            stiffness[i, j] = 0.0
    # One name each: what is an argument here must not look like a constant to the loops over lanes.
    width = vertices.shape[2]
    hessian, turned, mixed = lanes[0 : 45 * LANES], lanes[0 : 36 * LANES], lanes[36 * LANES : 48 * LANES]
    moves, pull = lanes[48 * LANES : 57 * LANES], lanes[57 * LANES : 66 * LANES]
    chosen = lanes[66 * LANES : 66 * LANES + basis.shape[0] + 4]
    used = active_poses(basis, active, chosen) if fresh else 0
    for g in range(groups.shape[0] - 1):
        columns = all_columns[starts[g] : starts[g + 1]]
        count = columns.shape[0]
        for i in range(count):
            for j in range(i + 1):
                local[i, j] = 0.0
        for c in range(groups[g], groups[g + 1]):
            rows = edges[edge_offsets[c] : edge_offsets[c] + (count + 4) * EDGES]
            if fresh:
                gather_rotations(vertices[c], rotations, turned)
                own = shapes[offsets[c] : offsets[c] + count * basis.shape[0] * 12 * LANES]
                edge_rows(width, own, basis.shape[0], active[:used], chosen[:used], turned, count, mixed, rows)
            edge_moves(rows, columns, x, moves)
            if projected or law not in (STVK, STABLE_NEO_HOOKEAN):
                chunk_elasticity(
                    law, moves, gradients[c], lame[c, 0], lame[c, 1], factors[c], projected, pull, hessian, work
                )
            elif law == STVK:
                stvk_lanes(width, moves, gradients[c], lame[c, 0], lame[c, 1], factors[c], pull, hessian)
            else:
                stable_neo_hookean_lanes(width, moves, gradients[c], lame[c, 0], lame[c, 1], factors[c], pull, hessian)
            if remainder:
                subtract_linear(
                    width, moves, gradients[c], lame[c, 0], lame[c, 1], factors[c], not projected, pull, hessian
                )
            add_force(rows, columns, pull, force)
            hessian_times_rows(width, hessian, rows, count, product)
            add_stiffness(product, rows, count, local)
        scatter_lower(local, columns, stiffness)
    if projected:
        weighted_sum(positive_corrections, positive, correction)
        add_segments(segments, correction, 1.0, stiffness)
    weighted_sum(corrections, mixing, correction)
    if not projected:
        add_segments(segments, correction, 1.0, stiffness)
    segment_product(segments, correction, x, force)


@njit(cache=True)
def gather_rotations(vertices: np.ndarray, rotations: np.ndarray, out: np.ndarray) -> None:
    """out, flat (4, 9, LANES), from rotations (9, k) of the corners (4, LANES)."""
    for a in range(4):
        for t in range(LANES):
            v = vertices[a, t]
            for k in range(9):
                out[LANES * (9 * a + k) + t] = rotations[k, v]
