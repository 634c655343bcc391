"""What is drawn: displacements of tet vertices, and the skinned surface carried along by them, in single precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_frames import mixed_quaternion


class Skinning(NamedTuple):
    """A blend-shaped, linearly skinned surface; vertices of the same bones stand together ("runs")."""

    order: np.ndarray
    """(n̄,) int32 the vertex at each place."""
    points: np.ndarray
    """(3, n̄) float32 rest positions by place."""
    runs: np.ndarray
    """(k + 1,) int32 first place of each run."""
    starts: np.ndarray
    """(k + 1,) int32 where its bones stand in `bones`."""
    bones: np.ndarray
    offsets: np.ndarray
    """(k,) int64 where its weights stand in `weights`: bone by bone."""
    weights: np.ndarray
    """float32."""
    morphs: np.ndarray
    """(t,) int32 parameters of the blend shapes."""
    morph_starts: np.ndarray
    """(t + 1,) int32."""
    morph_places: np.ndarray
    """int32 places that a blend shape moves."""
    morph_moves: np.ndarray
    """(3, entries) float32."""
    room: np.ndarray
    """(2, 3, n̄) float32 scratch: moved rest positions, skinned positions."""


class Embedding(NamedTuple):
    """The surface in the tets, and the tet vertices it hangs on."""

    vertices: np.ndarray
    """(k,) int32 moving tet vertices, in the order of their shapes."""
    nodes: np.ndarray
    """(n̄, 4) int32 place in `vertices` + 1 of each node, by place of the surface; 0: it does not move."""
    weights: np.ndarray
    """(n̄, 4) float32."""
    moves: np.ndarray
    """(k + 1, 4) float32 displacements; the first stays zero."""


@njit(cache=True, fastmath=FAST)
def local_displacement(entries: np.ndarray, at: int, factors: np.ndarray, width: int, out: np.ndarray) -> None:
    """out (3,) = three rows of `width` entries from `at` on, times `factors`."""
    one, two, three = (
        entries[at : at + width],
        entries[at + width : at + 2 * width],
        entries[at + 2 * width : at + 3 * width],
    )
    x, y, z = out.dtype.type(0), out.dtype.type(0), out.dtype.type(0)
    for t in range(width):
        f = factors[t]
        x += one[t] * f
        y += two[t] * f
        z += three[t] * f
    out[0], out[1], out[2] = x, y, z


@njit(cache=True)
def displacements(
    vertices: np.ndarray,
    bone_starts: np.ndarray,
    bones: np.ndarray,
    bone_weights: np.ndarray,
    root: int,
    blended: bool,
    of_vertex: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
    quaternions: np.ndarray,
    factors: np.ndarray,
    local: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write u (k, ≥ 3) of tet vertices (k,), metres.

    `factors` scratch for m_b · r numbers; it and `local` (3,) set the precision of the sums.
    """
    current = -1
    width = 0
    for k in range(vertices.shape[0]):
        vertex = vertices[k]
        own = of_vertex[vertex]
        if own < 0:
            out[k, 0], out[k, 1], out[k, 2] = 0.0, 0.0, 0.0
            continue
        if own != current:
            current = own
            width = 0
            for b in range(basis.shape[0]):
                for t in range(starts[own], starts[own + 1]):
                    factors[width] = basis[b] * upsilon[columns[t]] * q[columns[t]]
                    width += 1
        local_displacement(entries, offsets[vertex], factors, width, local)
        x, y, z, w, s = mixed_quaternion(vertex, bone_starts, bones, bone_weights, quaternions, root, blended)
        # The turned vector by q alone: v + s (w t + q × t) with t = q × v.
        u0, u1, u2 = local[0], local[1], local[2]
        t0, t1, t2 = y * u2 - z * u1, z * u0 - x * u2, x * u1 - y * u0
        out[k, 0] = u0 + s * (w * t0 + y * t2 - z * t1)
        out[k, 1] = u1 + s * (w * t1 + z * t0 - x * t2)
        out[k, 2] = u2 + s * (w * t2 + x * t1 - y * t0)


@njit(cache=True)
def moved_points(
    points: np.ndarray,
    p: np.ndarray,
    morphs: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    moves: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write points (3, n̄) plus the weighted blend shapes; False, and nothing written, where all weights are zero."""
    touched = False
    for t in range(morphs.shape[0]):
        weight = np.float32(p[morphs[t]])
        if weight == 0.0:
            continue
        if not touched:
            for i in range(3):
                for k in range(points.shape[1]):
                    out[i, k] = points[i, k]
            touched = True
        for i in range(3):
            for k in range(starts[t], starts[t + 1]):
                out[i, places[k]] += weight * moves[i, k]
    return touched


@njit(cache=True, fastmath=FAST)
def skinned(
    points: np.ndarray,
    matrices: np.ndarray,
    runs: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Σ_b w_b M_b points (3, n̄), float32, run by run: inside one, the bones are the same for all vertices."""
    for run in range(runs.shape[0] - 1):
        low, high = runs[run], runs[run + 1]
        count = high - low
        x, y, z = points[0, low:high], points[1, low:high], points[2, low:high]
        u, v, w = out[0, low:high], out[1, low:high], out[2, low:high]
        at = offsets[run]
        for k in range(starts[run], starts[run + 1]):
            b = bones[k]
            a0, a1, a2, a3 = matrices[b, 0, 0], matrices[b, 0, 1], matrices[b, 0, 2], matrices[b, 0, 3]
            b0, b1, b2, b3 = matrices[b, 1, 0], matrices[b, 1, 1], matrices[b, 1, 2], matrices[b, 1, 3]
            c0, c1, c2, c3 = matrices[b, 2, 0], matrices[b, 2, 1], matrices[b, 2, 2], matrices[b, 2, 3]
            share = weights[at : at + count]
            keep = np.float32(0.0 if k == starts[run] else 1.0)
            for t in range(count):
                u[t] = keep * u[t] + share[t] * (a0 * x[t] + a1 * y[t] + a2 * z[t] + a3)
                v[t] = keep * v[t] + share[t] * (b0 * x[t] + b1 * y[t] + b2 * z[t] + b3)
                w[t] = keep * w[t] + share[t] * (c0 * x[t] + c1 * y[t] + c2 * z[t] + c3)
            at += count


@njit(cache=True, fastmath=FAST)
def add_moves(
    order: np.ndarray,
    positions: np.ndarray,
    nodes: np.ndarray,
    weights: np.ndarray,
    moves: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write out (n̄, 3) = positions (3, n̄) by place, plus the embedded displacements."""
    for k in range(order.shape[0]):
        n0, n1, n2, n3 = nodes[k, 0], nodes[k, 1], nodes[k, 2], nodes[k, 3]
        w0, w1, w2, w3 = weights[k, 0], weights[k, 1], weights[k, 2], weights[k, 3]
        v = order[k]
        for i in range(3):
            moved = w0 * moves[n0, i] + w1 * moves[n1, i] + w2 * moves[n2, i] + w3 * moves[n3, i]
            out[v, i] = positions[i, k] + moved
