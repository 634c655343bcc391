"""What is drawn: displacements of tet vertices, and the skinned surface carried along by them, in single precision.

Vertices of the surface stand in runs of the same bones (`pose_space_runs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.pose_space_drive import (
    Features,
    Tree,
    bone_matrices,
    pose_weights,
    world_matrices,
)
from softrig.models.kernels.pose_space_frames import mixed_quaternion
from softrig.models.kernels.pose_space_runs import skinned


class Skinning(NamedTuple):
    """A blend-shaped, linearly skinned surface by place in its runs."""

    points: np.ndarray
    """(3, n̄) float32 rest positions."""
    morphs: np.ndarray
    """(t,) int32 parameters of the blend shapes."""
    morph_starts: np.ndarray
    """(t + 1,) int32."""
    morph_places: np.ndarray
    """int32 places that a blend shape moves."""
    morph_moves: np.ndarray
    """(3, entries) float32."""
    touched: np.ndarray
    """int32 places that any blend shape moves."""
    moved: np.ndarray
    """(3, n̄) float32 moved rest positions."""
    out: np.ndarray
    """(3, n̄) float32 skinned positions."""
    world: np.ndarray
    """(nodes, 3, 4) scratch."""
    matrices: np.ndarray
    """(bones, 3, 4) float32 scratch."""
    correctives: np.ndarray
    """(c,) int64 parameters whose weight is that of a pose."""
    corrective_poses: np.ndarray
    p: np.ndarray
    """(P,) scratch: parameters with those weights."""
    w: np.ndarray
    """(m,) scratch."""
    room: np.ndarray
    """Scratch for features."""


class Embedding(NamedTuple):
    """The surface in the tets, tet by tet."""

    starts: np.ndarray
    """(k + 1,) int32 first entry of each tet."""
    nodes: np.ndarray
    """(k, 4) int32 place + 1 of its corners among the displacements; 0: it does not move."""
    places: np.ndarray
    """(n̄,) int32 place of each entry among the skinned positions."""
    vertices: np.ndarray
    """(n̄,) int32 surface vertex of each entry."""
    weights: np.ndarray
    """(n̄, 4) float32."""


@njit(cache=True, fastmath=FAST)
def local_displacement(entries: np.ndarray, at: int, factors: np.ndarray, width: int, out: np.ndarray) -> None:
    """out (3,) = three rows of `width` entries from `at` on, times `factors`; in the precision of `out`."""
    one, two = entries[at : at + width], entries[at + width : at + 2 * width]
    three = entries[at + 2 * width : at + 3 * width]
    x, y, z = out.dtype.type(0), out.dtype.type(0), out.dtype.type(0)
    for t in range(width):
        f = factors[t]
        x += one[t] * f
        y += two[t] * f
        z += three[t] * f
    out[0], out[1], out[2] = x, y, z


@njit(cache=True)
def local_displacements(
    vertices: np.ndarray,
    of_vertex: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
    factors: np.ndarray,
    local: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Rᵀu (k, ≥ 3) of tet vertices (k,), metres.

    `factors` scratch for m_b · r numbers; it and `local` (3,) set the precision of the sums.
    """
    current = -1
    width = 0
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
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
        local_displacement(entries, offsets[vertices[k]], factors, width, local)
        out[k, 0], out[k, 1], out[k, 2] = local[0], local[1], local[2]


@njit(cache=True)
def turn_vectors(
    vertices: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    root: int,
    blended: bool,
    vectors: np.ndarray,
) -> None:
    """Turn vectors (k, ≥ 3) of tet vertices (k,) by their R_v."""
    for k in range(vertices.shape[0]):
        x, y, z, w, s = mixed_quaternion(vertices[k], starts, bones, weights, quaternions, root, blended)
        # By the quaternion alone: v + s (w t + q × t) with t = q × v.
        u0, u1, u2 = vectors[k, 0], vectors[k, 1], vectors[k, 2]
        t0, t1, t2 = y * u2 - z * u1, z * u0 - x * u2, x * u1 - y * u0
        vectors[k, 0] = u0 + s * (w * t0 + y * t2 - z * t1)
        vectors[k, 1] = u1 + s * (w * t1 + z * t0 - x * t2)
        vectors[k, 2] = u2 + s * (w * t2 + x * t1 - y * t0)


@njit(cache=True, fastmath=FAST)
def turn_by(mixed: np.ndarray, vectors: np.ndarray) -> None:
    """Turn vectors (k, 4), float32, by quaternions (4, k) of any length."""
    x, y, z, w = mixed[0], mixed[1], mixed[2], mixed[3]
    for t in range(x.shape[0]):
        s = np.float32(2.0) / (x[t] * x[t] + y[t] * y[t] + z[t] * z[t] + w[t] * w[t] + np.float32(1e-30))
        u0, u1, u2 = vectors[t, 0], vectors[t, 1], vectors[t, 2]
        t0, t1, t2 = y[t] * u2 - z[t] * u1, z[t] * u0 - x[t] * u2, x[t] * u1 - y[t] * u0
        vectors[t, 0] = u0 + s * (w[t] * t0 + y[t] * t2 - z[t] * t1)
        vectors[t, 1] = u1 + s * (w[t] * t1 + z[t] * t0 - x[t] * t2)
        vectors[t, 2] = u2 + s * (w[t] * t2 + x[t] * t1 - y[t] * t0)


@njit(cache=True)
def moved_points(
    points: np.ndarray,
    p: np.ndarray,
    morphs: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    moves: np.ndarray,
    touched: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write points (3, n̄) plus the weighted blend shapes; False, and nothing written, where all weights are zero.

    `out` holds the points already where no blend shape reaches; `touched` names the other places.
    """
    moving = False
    for t in range(morphs.shape[0]):
        weight = np.float32(p[morphs[t]])
        if weight == 0.0:
            continue
        if not moving:
            for i in range(3):
                for k in range(touched.shape[0]):
                    out[i, touched[k]] = points[i, touched[k]]
            moving = True
        for i in range(3):
            for k in range(starts[t], starts[t + 1]):
                out[i, places[k]] += weight * moves[i, k]
    return moving


@njit(cache=True)
def skin_surface(
    p: np.ndarray,
    tree: Tree,
    features: Features,
    skinning: Skinning,
    runs: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Write the skinned positions at rig parameters p (P,), correctives applied, into `skinning.out`."""
    own = skinning.p
    for k in range(p.shape[0]):
        own[k] = p[k]
    if skinning.correctives.shape[0] > 0:
        pose_weights(features, p, skinning.room, skinning.w)
        for k in range(skinning.correctives.shape[0]):
            own[skinning.correctives[k]] = skinning.w[skinning.corrective_poses[k]]
    world_matrices(tree, own, skinning.world)
    bone_matrices(tree, skinning.world, skinning.matrices)
    points = skinning.points
    if moved_points(
        points,
        own,
        skinning.morphs,
        skinning.morph_starts,
        skinning.morph_places,
        skinning.morph_moves,
        skinning.touched,
        skinning.moved,
    ):
        points = skinning.moved
    skinned(points, skinning.matrices, runs, starts, bones, offsets, weights, skinning.out)


@njit(cache=True, fastmath=FAST)
def add_moves(
    positions: np.ndarray,
    moves: np.ndarray,
    starts: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    vertices: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write out (n̄, 3) = positions (3, n̄) by place, plus the displacements `moves` (k + 1, 4) of the tet around."""
    for tet in range(nodes.shape[0]):
        a, b, c, d = nodes[tet, 0], nodes[tet, 1], nodes[tet, 2], nodes[tet, 3]
        ax, ay, az = moves[a, 0], moves[a, 1], moves[a, 2]
        bx, by, bz = moves[b, 0], moves[b, 1], moves[b, 2]
        cx, cy, cz = moves[c, 0], moves[c, 1], moves[c, 2]
        dx, dy, dz = moves[d, 0], moves[d, 1], moves[d, 2]
        for k in range(starts[tet], starts[tet + 1]):
            w0, w1, w2, w3 = weights[k, 0], weights[k, 1], weights[k, 2], weights[k, 3]
            place, v = places[k], vertices[k]
            out[v, 0] = positions[0, place] + (w0 * ax + w1 * bx + w2 * cx + w3 * dx)
            out[v, 1] = positions[1, place] + (w0 * ay + w1 * by + w2 * cy + w3 * dy)
            out[v, 2] = positions[2, place] + (w0 * az + w1 * bz + w2 * cz + w3 * dz)
