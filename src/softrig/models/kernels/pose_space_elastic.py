"""Reduced elastic force and stiffness by cubature (PSSD §5.3), chunk by chunk."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem.laws import STABLE_NEO_HOOKEAN, STVK
from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_elements import LANES, chunk_elasticity, subtract_linear, subtract_stiffness
from softrig.models.kernels.pose_space_lanes import stable_neo_hookean_lanes, stvk_lanes
from softrig.models.kernels.pose_space_linear import linear_part
from softrig.models.kernels.pose_space_rows import (
    EDGES,
    active_poses,
    add_corner_force,
    add_force,
    add_stiffness,
    corner_moves,
    edge_moves,
    edge_rows,
    hessian_times_rows,
    scatter_lower,
    turn_back,
    turn_edges,
)
from softrig.models.kernels.pose_space_sums import add_segments, segment_product, weighted_sum
from softrig.models.kernels.pose_space_tables import REMAINDER, STRAINED, Chunks, Memory, Sums


@njit(cache=True, forceinline=True)
def elasticity(
    chunks: Chunks,
    sums: Sums,
    memory: Memory,
    x: np.ndarray,
    rates: np.ndarray,
    damped: bool,
    fresh: bool,
    projected: bool,
    turn: int,
    known: bool,
    force: np.ndarray,
) -> bool:
    """Write f̂ (r,) and K̂ (`memory.stiffness`) at x = Υq (r,): cubature plus the stiffness correction ΔK x, ΔK.

    `damped`: f̂ has K̂ times `rates` (r,) added, K̂ being that at x, whatever of it is made anew.

    ΔK is that of `linear_part`. With a map of the stiffness (switch REMAINDER) that is the whole of K̃ at u = 0, and the
    tets give only what goes beyond it.
    `fresh`: rows of the basis must be made first. `projected`: positive semidefinite element Hessians and ΔK.
    `turn`: the part of the chunks whose stiffness is made anew besides those that have strained much since it was; the
    others keep what they had. −1: all. `known`: ΔK and K̂ are there from an earlier iteration of the step. K̂ stays as it
    is unless some part of it is made anew; returns whether it was written.

    With one basis for all poses most tets give no new stiffness, and then need no rows: their corners are moved in the
    coordinates of the basis and turned once, not mode by mode, and their forces are turned back.
    """
    law, basis, lanes, local, stiffness = chunks.law, memory.basis, memory.lanes, memory.local, memory.stiffness
    remainder = memory.switches[REMAINDER] != 0
    for i in range(force.shape[0]):
        force[i] = 0.0
    # One name each: what is an argument here must not look like a constant to the loops over lanes.
    width = chunks.vertices.shape[2]
    hessian, mixed, hurried = lanes[0 : 45 * LANES], lanes[45 * LANES : 57 * LANES], lanes[57 * LANES : 69 * LANES]
    moves, pull, swift = lanes[69 * LANES : 78 * LANES], lanes[78 * LANES : 87 * LANES], lanes[87 * LANES : 96 * LANES]
    turned = lanes[96 * LANES : 132 * LANES]
    chosen = lanes[132 * LANES : 132 * LANES + basis.shape[0] + 4]
    direct = basis.shape[0] == 1 and memory.tangents.shape[0] > 1
    used = active_poses(basis, memory.active, chosen) if fresh or direct else 0
    g, written = 0, projected or not known
    for part in range(chunks.parts.shape[0] - 1):
        tangent = memory.tangents[part]
        renewed = turn in (-1, part) or not memory.strained[part] <= memory.settings[STRAINED]
        memory.strained[part] = 0.0
        if renewed:
            written = True
            clear_lower(tangent, tangent.shape[0])
        for c in range(chunks.parts[part], chunks.parts[part + 1]):
            while c >= chunks.groups[g + 1]:
                g += 1
            columns = chunks.columns[chunks.starts[g] : chunks.starts[g + 1]]
            count = columns.shape[0]
            gradients, lam, mu, factors = memory.gradients[c], memory.lame[c, 0], memory.lame[c, 1], memory.factors[c]
            at = chunks.edge_offsets[c]
            rows = memory.edges[at : at + (count + 4) * EDGES]
            own = chunks.shapes[chunks.offsets[c] : chunks.offsets[c] + count * basis.shape[0] * 12 * LANES]
            if fresh or direct:
                gather_rotations(chunks.vertices[c], memory.rotations, turned)
            if renewed if direct else fresh:
                edge_rows(width, own, basis.shape[0], memory.active[:used], chosen[:used], turned, count, mixed, rows)
            if direct:
                corner_moves(own, columns, basis[0], x, rates, mixed, hurried)
                turn_edges(width, turned, mixed, moves)
                turn_edges(width, turned, hurried, swift)
            else:
                edge_moves(rows, columns, x, moves)
                if damped:
                    edge_moves(rows, columns, rates, swift)
            if projected or law not in (STVK, STABLE_NEO_HOOKEAN):
                chunk_elasticity(law, moves, gradients, lam, mu, factors, projected, pull, hessian, memory.work)
            elif law == STVK:
                stvk_lanes(width, moves, gradients, lam, mu, factors, pull, hessian)
            else:
                stable_neo_hookean_lanes(width, moves, gradients, lam, mu, factors, pull, hessian)
            if remainder:
                subtract_linear(width, moves, gradients, lam, mu, factors, pull)
            if remainder and renewed and not projected:
                subtract_stiffness(width, gradients, lam, mu, factors, hessian)
            elif remainder and damped and not projected:
                # Only what this adds to the force is wanted, not the stiffness itself.
                subtract_linear(width, swift, gradients, lam, mu, factors, pull)
            if damped:
                hessian_times_rows(width, hessian, swift, 1, memory.product)
                for t in range(EDGES):
                    pull[t] += memory.product[t]
            if direct:
                turn_back(width, turned, pull, mixed)
                add_corner_force(own, columns, basis[0], mixed, force)
            else:
                add_force(rows, columns, pull, force)
            then = memory.then[c]
            if not renewed:
                memory.strained[part] = max(memory.strained[part], strain_square(width, moves, then, gradients))
                continue
            for t in range(EDGES):
                then[t] = moves[t]
            if c == chunks.parts[part] or c == chunks.groups[g]:
                clear_lower(local, count)
            hessian_times_rows(width, hessian, rows, count, memory.product)
            add_stiffness(memory.product, rows, count, local)
            if c + 1 == chunks.parts[part + 1] or c + 1 == chunks.groups[g + 1]:
                scatter_lower(local, columns, tangent)
    correction = memory.correction
    if written:
        sum_lower(memory.tangents, stiffness)
        if projected:
            weighted_sum(sums.stiffness_positive, memory.positive, correction)
            add_segments(sums.segments, correction, 1.0, stiffness)
            if damped:
                segment_product(sums.segments, correction, rates, force)
        linear_part(sums, memory)
        if not projected:
            add_segments(sums.segments, correction, 1.0, stiffness)
    if damped and not projected:
        segment_product(sums.segments, correction, rates, force)
    segment_product(sums.segments, correction, x, force)
    return written


@njit(cache=True, forceinline=True, fastmath=FAST)
def strain_square(width: int, moves: np.ndarray, then: np.ndarray, gradients: np.ndarray) -> float:
    """max ‖F − F_then‖² over eight tets with edges moved by `moves` and `then`; all flat (9, LANES)."""
    most = 0.0
    for t in range(width):
        square = 0.0
        for i in range(3):
            x = moves[LANES * i + t] - then[LANES * i + t]
            y = moves[LANES * (3 + i) + t] - then[LANES * (3 + i) + t]
            z = moves[LANES * (6 + i) + t] - then[LANES * (6 + i) + t]
            for K in range(3):
                f = (
                    x * gradients[LANES * K + t]
                    + y * gradients[LANES * (3 + K) + t]
                    + z * gradients[LANES * (6 + K) + t]
                )
                square += f * f
        most = max(most, square)
    return most


@njit(cache=True)
def clear_lower(matrix: np.ndarray, size: int) -> None:
    """The lower half of the first `size` rows becomes zero."""
    for i in range(size):
        for j in range(i + 1):
            matrix[i, j] = 0.0


@njit(cache=True)
def sum_lower(matrices: np.ndarray, total: np.ndarray) -> None:
    """The lower half of `total` (r, r) = that of the sum of `matrices` (P, r, r)."""
    for i in range(total.shape[0]):
        row = total[i]
        for j in range(i + 1):
            row[j] = matrices[0, i, j]
        for part in range(1, matrices.shape[0]):
            more = matrices[part, i]
            for j in range(i + 1):
                row[j] += more[j]


@njit(cache=True)
def gather_rotations(vertices: np.ndarray, rotations: np.ndarray, out: np.ndarray) -> None:
    """out, flat (4, 9, LANES), from rotations (9, k) of the corners (4, LANES)."""
    for a in range(4):
        for t in range(LANES):
            v = vertices[a, t]
            for k in range(9):
                out[LANES * (9 * a + k) + t] = rotations[k, v]
