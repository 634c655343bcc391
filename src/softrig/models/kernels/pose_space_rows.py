"""Basis rows of cubature tets, and what they add to reduced force and stiffness; everything eight tets wide.

A chunk's rows are (columns, 9, LANES): for each mode the nine edge components of eight tets, contiguous. So dot
products of rows are long sums that vectorise, and K̂ = Σ rowsᵀ H rows is made of tiles of such dots: twice as fast as
a general matrix product here, because only the lower half is done.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_elements import LANES

CORNERS = 12 * LANES
EDGES = 9 * LANES
NEGLIGIBLE = 1e-6
"""Poses of smaller weight are left out of the basis."""


@njit(cache=True, forceinline=True, fastmath=FAST)
def edge_rows(
    lanes: int,
    shapes: np.ndarray,
    poses: int,
    active: np.ndarray,
    weights: np.ndarray,
    R: np.ndarray,
    columns: int,
    mixed: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write rows[k] = R_α Σ_i w_i V_i[α, k] − R_0 Σ_i w_i V_i[0, k] for the three edges α of eight tets; all flat.

    `shapes` float32 (columns, poses, 4, 3, LANES); `R` (4, 9, LANES); `mixed` (12, LANES) scratch; `rows`
    (columns, 9, LANES). `active` and `weights`: the poses that count, in fours, padded by weights of zero.
    """
    for k in range(columns):
        mix(shapes[k * poses * CORNERS : (k + 1) * poses * CORNERS], active, weights, mixed)
        turn_edges(lanes, R, mixed, rows[EDGES * k : EDGES * (k + 1)])


@njit(cache=True, forceinline=True, fastmath=FAST)
def turn_edges(lanes: int, R: np.ndarray, corners: np.ndarray, edges: np.ndarray) -> None:
    """edges (9, LANES) = R_α v_α − R_0 v_0, three edges α of eight tets: corners v (4, 3, LANES), R (4, 9, LANES)."""
    for t in range(lanes):
        x0, y0, z0 = corners[t], corners[8 + t], corners[16 + t]
        x1, y1, z1 = corners[24 + t], corners[32 + t], corners[40 + t]
        x2, y2, z2 = corners[48 + t], corners[56 + t], corners[64 + t]
        x3, y3, z3 = corners[72 + t], corners[80 + t], corners[88 + t]
        base = R[t] * x0 + R[8 + t] * y0 + R[16 + t] * z0
        edges[t] = R[72 + t] * x1 + R[80 + t] * y1 + R[88 + t] * z1 - base
        edges[24 + t] = R[144 + t] * x2 + R[152 + t] * y2 + R[160 + t] * z2 - base
        edges[48 + t] = R[216 + t] * x3 + R[224 + t] * y3 + R[232 + t] * z3 - base
        base = R[24 + t] * x0 + R[32 + t] * y0 + R[40 + t] * z0
        edges[8 + t] = R[96 + t] * x1 + R[104 + t] * y1 + R[112 + t] * z1 - base
        edges[32 + t] = R[168 + t] * x2 + R[176 + t] * y2 + R[184 + t] * z2 - base
        edges[56 + t] = R[240 + t] * x3 + R[248 + t] * y3 + R[256 + t] * z3 - base
        base = R[48 + t] * x0 + R[56 + t] * y0 + R[64 + t] * z0
        edges[16 + t] = R[120 + t] * x1 + R[128 + t] * y1 + R[136 + t] * z1 - base
        edges[40 + t] = R[192 + t] * x2 + R[200 + t] * y2 + R[208 + t] * z2 - base
        edges[64 + t] = R[264 + t] * x3 + R[272 + t] * y3 + R[280 + t] * z3 - base


@njit(cache=True, forceinline=True, fastmath=FAST)
def turn_back(lanes: int, R: np.ndarray, edges: np.ndarray, corners: np.ndarray) -> None:
    """corners (4, 3, LANES) = R_αᵀ f_α, the first −R_0ᵀ Σ f_α, of forces f (9, LANES) on the edges of eight tets.

    The transpose of `turn_edges`.
    """
    for t in range(lanes):
        a0, a1, a2 = edges[t], edges[8 + t], edges[16 + t]
        b0, b1, b2 = edges[24 + t], edges[32 + t], edges[40 + t]
        c0, c1, c2 = edges[48 + t], edges[56 + t], edges[64 + t]
        s0, s1, s2 = -(a0 + b0 + c0), -(a1 + b1 + c1), -(a2 + b2 + c2)
        corners[t] = R[t] * s0 + R[24 + t] * s1 + R[48 + t] * s2
        corners[8 + t] = R[8 + t] * s0 + R[32 + t] * s1 + R[56 + t] * s2
        corners[16 + t] = R[16 + t] * s0 + R[40 + t] * s1 + R[64 + t] * s2
        corners[24 + t] = R[72 + t] * a0 + R[96 + t] * a1 + R[120 + t] * a2
        corners[32 + t] = R[80 + t] * a0 + R[104 + t] * a1 + R[128 + t] * a2
        corners[40 + t] = R[88 + t] * a0 + R[112 + t] * a1 + R[136 + t] * a2
        corners[48 + t] = R[144 + t] * b0 + R[168 + t] * b1 + R[192 + t] * b2
        corners[56 + t] = R[152 + t] * b0 + R[176 + t] * b1 + R[200 + t] * b2
        corners[64 + t] = R[160 + t] * b0 + R[184 + t] * b1 + R[208 + t] * b2
        corners[72 + t] = R[216 + t] * c0 + R[240 + t] * c1 + R[264 + t] * c2
        corners[80 + t] = R[224 + t] * c0 + R[248 + t] * c1 + R[272 + t] * c2
        corners[88 + t] = R[232 + t] * c0 + R[256 + t] * c1 + R[280 + t] * c2


@njit(cache=True, forceinline=True, fastmath=FAST)
def corner_moves(
    shapes: np.ndarray,
    columns: np.ndarray,
    scale: float,
    x: np.ndarray,
    y: np.ndarray,
    by_x: np.ndarray,
    by_y: np.ndarray,
) -> None:
    """by_x (12·LANES,) = scale Σ_k x[columns[k]] shapes[k], and by_y of y; `shapes` flat (columns, 12·LANES).

    Both at once and four columns at a time: what is read serves eight products.
    """
    for t in range(CORNERS):
        by_x[t] = 0.0
        by_y[t] = 0.0
    count = columns.shape[0]
    fours = count - count % 4
    for k in range(0, fours, 4):
        a, b = shapes[CORNERS * k :][:CORNERS], shapes[CORNERS * (k + 1) :][:CORNERS]
        c, d = shapes[CORNERS * (k + 2) :][:CORNERS], shapes[CORNERS * (k + 3) :][:CORNERS]
        i0, i1, i2, i3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        x0, x1, x2, x3 = scale * x[i0], scale * x[i1], scale * x[i2], scale * x[i3]
        y0, y1, y2, y3 = scale * y[i0], scale * y[i1], scale * y[i2], scale * y[i3]
        for t in range(CORNERS):
            by_x[t] += x0 * a[t] + x1 * b[t] + x2 * c[t] + x3 * d[t]
            by_y[t] += y0 * a[t] + y1 * b[t] + y2 * c[t] + y3 * d[t]
    for k in range(fours, count):
        shape, x0, y0 = shapes[CORNERS * k :][:CORNERS], scale * x[columns[k]], scale * y[columns[k]]
        for t in range(CORNERS):
            by_x[t] += x0 * shape[t]
            by_y[t] += y0 * shape[t]


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_corner_force(
    shapes: np.ndarray, columns: np.ndarray, scale: float, force: np.ndarray, total: np.ndarray
) -> None:
    """total[columns[k]] += scale · shapes[k] · force (12·LANES,); `shapes` flat (columns, 12·LANES)."""
    count = columns.shape[0]
    fours = count - count % 4
    for k in range(0, fours, 4):
        a, b = shapes[CORNERS * k :][:CORNERS], shapes[CORNERS * (k + 1) :][:CORNERS]
        c, d = shapes[CORNERS * (k + 2) :][:CORNERS], shapes[CORNERS * (k + 3) :][:CORNERS]
        s0 = s1 = s2 = s3 = 0.0
        for t in range(CORNERS):
            s0 += a[t] * force[t]
            s1 += b[t] * force[t]
            s2 += c[t] * force[t]
            s3 += d[t] * force[t]
        total[columns[k]] += scale * s0
        total[columns[k + 1]] += scale * s1
        total[columns[k + 2]] += scale * s2
        total[columns[k + 3]] += scale * s3
    for k in range(fours, count):
        shape, sum_ = shapes[CORNERS * k :][:CORNERS], 0.0
        for t in range(CORNERS):
            sum_ += shape[t] * force[t]
        total[columns[k]] += scale * sum_


@njit(cache=True, forceinline=True, fastmath=FAST)
def mix(shapes: np.ndarray, active: np.ndarray, weights: np.ndarray, mixed: np.ndarray) -> None:
    """mixed (12·LANES,) = Σ_i weights[i] shapes[active[i]], four poses at a time; `shapes` flat (poses, 12·LANES)."""
    for i in range(0, active.shape[0], 4):
        a, b = shapes[active[i] * CORNERS :][:CORNERS], shapes[active[i + 1] * CORNERS :][:CORNERS]
        c, d = shapes[active[i + 2] * CORNERS :][:CORNERS], shapes[active[i + 3] * CORNERS :][:CORNERS]
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        if i == 0 and w1 == 0.0 and w2 == 0.0 and w3 == 0.0:
            # One basis for all poses.
            for t in range(CORNERS):
                mixed[t] = w0 * a[t]
        elif i == 0:
            for t in range(CORNERS):
                mixed[t] = w0 * a[t] + w1 * b[t] + w2 * c[t] + w3 * d[t]
        else:
            for t in range(CORNERS):
                mixed[t] += w0 * a[t] + w1 * b[t] + w2 * c[t] + w3 * d[t]


@njit(cache=True)
def active_poses(weights: np.ndarray, active: np.ndarray, chosen: np.ndarray) -> int:
    """Write the poses whose weight counts and their weights; returns how many, filled up to a multiple of four."""
    count = 0
    for i in range(weights.shape[0]):
        if abs(weights[i]) >= NEGLIGIBLE:
            active[count], chosen[count] = i, weights[i]
            count += 1
    while count % 4 > 0 or count == 0:
        active[count], chosen[count] = 0, 0.0
        count += 1
    return count


@njit(cache=True, forceinline=True, fastmath=FAST)
def edge_moves(rows: np.ndarray, columns: np.ndarray, x: np.ndarray, moves: np.ndarray) -> None:
    """Write moves (9·LANES,) = Σ_k x[columns[k]] rows[k]; `rows` flat (≥ columns, 9·LANES)."""
    for t in range(EDGES):
        moves[t] = 0.0
    for k in range(columns.shape[0]):
        factor = x[columns[k]]
        row = rows[EDGES * k : EDGES * (k + 1)]
        for t in range(EDGES):
            moves[t] += factor * row[t]


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_force(rows: np.ndarray, columns: np.ndarray, force: np.ndarray, total: np.ndarray) -> None:
    """total[columns[k]] += rows[k] · force (9·LANES,)."""
    for k in range(columns.shape[0]):
        row = rows[EDGES * k : EDGES * (k + 1)]
        sum_ = 0.0
        for t in range(EDGES):
            sum_ += row[t] * force[t]
        total[columns[k]] += sum_


@njit(cache=True, forceinline=True, fastmath=FAST)
def hessian_times_rows(lanes: int, h: np.ndarray, rows: np.ndarray, columns: int, product: np.ndarray) -> None:
    """product[k] = H rows[k], flat: `h` (45, LANES) the lower half, `rows` and `product` (columns, 9, LANES).

    Written out so that the loop over the lanes is innermost and vectorises.
    """
    for k in range(columns):
        row, out = rows[EDGES * k : EDGES * (k + 1)], product[EDGES * k : EDGES * (k + 1)]
        for t in range(lanes):
            r0, r1, r2 = row[t], row[8 + t], row[16 + t]
            r3, r4, r5 = row[24 + t], row[32 + t], row[40 + t]
            r6, r7, r8 = row[48 + t], row[56 + t], row[64 + t]
            out[t] = (
                h[t] * r0
                + h[8 + t] * r1
                + h[24 + t] * r2
                + h[48 + t] * r3
                + h[80 + t] * r4
                + h[120 + t] * r5
                + h[168 + t] * r6
                + h[224 + t] * r7
                + h[288 + t] * r8
            )
            out[8 + t] = (
                h[8 + t] * r0
                + h[16 + t] * r1
                + h[32 + t] * r2
                + h[56 + t] * r3
                + h[88 + t] * r4
                + h[128 + t] * r5
                + h[176 + t] * r6
                + h[232 + t] * r7
                + h[296 + t] * r8
            )
            out[16 + t] = (
                h[24 + t] * r0
                + h[32 + t] * r1
                + h[40 + t] * r2
                + h[64 + t] * r3
                + h[96 + t] * r4
                + h[136 + t] * r5
                + h[184 + t] * r6
                + h[240 + t] * r7
                + h[304 + t] * r8
            )
            out[24 + t] = (
                h[48 + t] * r0
                + h[56 + t] * r1
                + h[64 + t] * r2
                + h[72 + t] * r3
                + h[104 + t] * r4
                + h[144 + t] * r5
                + h[192 + t] * r6
                + h[248 + t] * r7
                + h[312 + t] * r8
            )
            out[32 + t] = (
                h[80 + t] * r0
                + h[88 + t] * r1
                + h[96 + t] * r2
                + h[104 + t] * r3
                + h[112 + t] * r4
                + h[152 + t] * r5
                + h[200 + t] * r6
                + h[256 + t] * r7
                + h[320 + t] * r8
            )
            out[40 + t] = (
                h[120 + t] * r0
                + h[128 + t] * r1
                + h[136 + t] * r2
                + h[144 + t] * r3
                + h[152 + t] * r4
                + h[160 + t] * r5
                + h[208 + t] * r6
                + h[264 + t] * r7
                + h[328 + t] * r8
            )
            out[48 + t] = (
                h[168 + t] * r0
                + h[176 + t] * r1
                + h[184 + t] * r2
                + h[192 + t] * r3
                + h[200 + t] * r4
                + h[208 + t] * r5
                + h[216 + t] * r6
                + h[272 + t] * r7
                + h[336 + t] * r8
            )
            out[56 + t] = (
                h[224 + t] * r0
                + h[232 + t] * r1
                + h[240 + t] * r2
                + h[248 + t] * r3
                + h[256 + t] * r4
                + h[264 + t] * r5
                + h[272 + t] * r6
                + h[280 + t] * r7
                + h[344 + t] * r8
            )
            out[64 + t] = (
                h[288 + t] * r0
                + h[296 + t] * r1
                + h[304 + t] * r2
                + h[312 + t] * r3
                + h[320 + t] * r4
                + h[328 + t] * r5
                + h[336 + t] * r6
                + h[344 + t] * r7
                + h[352 + t] * r8
            )


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_stiffness(product: np.ndarray, rows: np.ndarray, columns: int, local: np.ndarray) -> None:
    """local[i, j] += product[i] · rows[j] for j ≤ i; `product` and `rows` flat (≥ columns + 3, 9·LANES).

    Four rows by three columns at a time: twelve running sums share seven loads. What lies beyond is ignored.
    """
    for i in range(0, columns, 4):
        y0, y1 = product[EDGES * i :][:EDGES], product[EDGES * (i + 1) :][:EDGES]
        y2, y3 = product[EDGES * (i + 2) :][:EDGES], product[EDGES * (i + 3) :][:EDGES]
        for j in range(0, min(i + 4, columns), 3):
            e0, e1 = rows[EDGES * j :][:EDGES], rows[EDGES * (j + 1) :][:EDGES]
            e2 = rows[EDGES * (j + 2) :][:EDGES]
            s00 = s01 = s02 = s10 = s11 = s12 = 0.0
            s20 = s21 = s22 = s30 = s31 = s32 = 0.0
            for t in range(EDGES):
                a, b, c = e0[t], e1[t], e2[t]
                s00 += y0[t] * a
                s01 += y0[t] * b
                s02 += y0[t] * c
                s10 += y1[t] * a
                s11 += y1[t] * b
                s12 += y1[t] * c
                s20 += y2[t] * a
                s21 += y2[t] * b
                s22 += y2[t] * c
                s30 += y3[t] * a
                s31 += y3[t] * b
                s32 += y3[t] * c
            local[i, j] += s00
            local[i, j + 1] += s01
            local[i, j + 2] += s02
            local[i + 1, j] += s10
            local[i + 1, j + 1] += s11
            local[i + 1, j + 2] += s12
            local[i + 2, j] += s20
            local[i + 2, j + 1] += s21
            local[i + 2, j + 2] += s22
            local[i + 3, j] += s30
            local[i + 3, j + 1] += s31
            local[i + 3, j + 2] += s32


@njit(cache=True)
def scatter_lower(local: np.ndarray, columns: np.ndarray, total: np.ndarray) -> None:
    """total[columns[i], columns[j]] += local[i, j] for j ≤ i; the columns rise."""
    for i in range(columns.shape[0]):
        row, source = total[columns[i]], local[i]
        for j in range(i + 1):
            row[columns[j]] += source[j]
