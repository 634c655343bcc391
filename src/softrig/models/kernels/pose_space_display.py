"""What is drawn: the skinned surface carried along by the displacements of the tets, in single precision.

Vertices that hang on the same bones stand in runs (`pose_space_runs`). Each run of the surface is morphed, skinned and
carried along before the next, so that what lies between stays in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.following import Following, follow
from softrig.models.kernels.pose_space_drive import Features, pose_weights
from softrig.models.kernels.pose_space_rows import NEGLIGIBLE
from softrig.models.kernels.pose_space_runs import mixed_quaternions, skin_run
from softrig.models.kernels.pose_space_tables import BoneRuns
from softrig.numerics.vectors import BEYOND, load_four, plus_product, row, spread_four, store_three
from softrig.rig.skeleton_kernel import Tree, bone_matrices, world_matrices


class Motion(NamedTuple):
    """What moves the tet vertices that carry the surface."""

    q: np.ndarray
    upsilon: np.ndarray
    basis: np.ndarray
    quaternions: np.ndarray
    starts: np.ndarray
    """As in `Rows`, and so the next three."""
    columns: np.ndarray
    numbers: np.ndarray
    units: np.ndarray
    sets: np.ndarray
    """(k, 2) int32: a set of regions, and how many of these vertices have it, in the order of their shapes."""
    slots: np.ndarray
    """(d,) uint32: where each of them stands among those below, by bones."""
    factors: np.ndarray
    """(m_b · r + BEYOND,) float32 scratch."""
    local: np.ndarray
    """(3, d) float32 Rᵀu."""
    signed: np.ndarray
    """(4 · most bones of a vertex,) float32 scratch."""
    mixed: np.ndarray
    """(4, d + BEYOND) float32 quaternions of any length."""
    moves: np.ndarray
    """Flat (d + 1, 4) float32 u, after a vertex that never moves."""


class Followed(NamedTuple):
    """Where what follows the modes is, in front of `Following`."""

    weights: np.ndarray
    """(k,) of the stiffness map's components, as in `Memory.mixing`."""
    starts: np.ndarray
    """As in `Rows` of the followers, and so the next three."""
    columns: np.ndarray
    numbers: np.ndarray
    units: np.ndarray
    scales: np.ndarray
    """(s,) ones: what follows is scaled as it is."""
    basis: np.ndarray
    """(1,) one: at every pose there are the same."""


class Skinning(NamedTuple):
    """A blend-shaped, linearly skinned surface by place in its runs."""

    points: np.ndarray
    """(3, n̄ + BEYOND) float32 rest positions."""
    piece_starts: np.ndarray
    """(runs + 1,) int32."""
    pieces: np.ndarray
    """(k, 4) int32: a blend shape, the first place it moves, how many, and where `piece_moves` begin."""
    piece_moves: np.ndarray
    """(3, entries) float32."""
    room: np.ndarray
    """(6, longest run + BEYOND) float32 scratch: morphed and skinned positions."""
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
    features: np.ndarray
    """Scratch."""


class Embedding(NamedTuple):
    """The surface in the tets, by place."""

    nodes: np.ndarray
    """Flat (n̄, 4) unsigned: which of `Motion.moves`."""
    weights: np.ndarray
    """Flat (n̄, 4) float32."""
    vertices: np.ndarray
    """(n̄,) uint32 vertex of the surface at each place."""


# Where each table begins among the arguments of `draw_skin`.
_BONES = len(Motion._fields)
_FOLLOWED = _BONES + len(BoneRuns._fields)
_FOLLOWING = _FOLLOWED + len(Followed._fields)
_TREE = _FOLLOWING + len(Following._fields)
_FEATURES = _TREE + len(Tree._fields)
_SKINNING = _FEATURES + len(Features._fields)
_RUNS = _SKINNING + len(Skinning._fields)
_EMBEDDING = _RUNS + len(BoneRuns._fields)
_END = _EMBEDDING + len(Embedding._fields)


@njit(cache=True, forceinline=True)
def move_tets(*tables: Any) -> None:
    """Write u of the tet vertices that carry the surface.

    `tables`: fields of `Motion`, of their `BoneRuns`, of `Followed` and of `Following`.
    """
    motion, bones = Motion(*tables[:_BONES]), BoneRuns(*tables[_BONES:_FOLLOWED])
    followed = Followed(*tables[_FOLLOWED:_FOLLOWING])
    motion.local[:] = 0.0
    add_local_moves(
        motion.starts,
        motion.columns,
        motion.numbers,
        motion.units,
        motion.q,
        motion.upsilon,
        motion.basis,
        motion.sets,
        motion.slots,
        motion.factors,
        motion.local,
    )
    if followed.columns.shape[0] > 0:
        follow(motion.q, motion.upsilon, followed.weights, *tables[_FOLLOWING:_TREE])
        add_local_moves(
            followed.starts,
            followed.columns,
            followed.numbers,
            followed.units,
            Following(*tables[_FOLLOWING:_TREE]).y,
            followed.scales,
            followed.basis,
            motion.sets,
            motion.slots,
            motion.factors,
            motion.local,
        )
    mixed_quaternions(
        bones.runs,
        bones.starts,
        bones.bones,
        bones.offsets,
        bones.weights,
        motion.quaternions,
        motion.signed,
        motion.mixed,
    )
    turn_moves(motion.mixed, motion.local, motion.moves)


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_local_moves(
    starts: np.ndarray,
    columns: np.ndarray,
    numbers: np.ndarray,
    units: np.ndarray,
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
    sets: np.ndarray,
    slots: np.ndarray,
    factors: np.ndarray,
    local: np.ndarray,
) -> None:
    """Add Rᵀu (3, d), metres: rows of shapes in the order in which they stand, times factors of their set.

    Sums run on in whole vectors, over entries of the next row times zeros.
    """
    first, last = drawn_poses(basis)
    x, y, z = local[0], local[1], local[2]
    begin, done = np.uint64(0), np.uint64(0)
    for s in range(sets.shape[0]):
        own, count = sets[s, 0], np.uint64(sets[s, 1])
        length = starts[own + 1] - starts[own]
        width = 0
        for b in range(first, last):
            for t in range(starts[own], starts[own + 1]):
                column = columns[t]
                factors[width] = basis[b] * units[b, column] * upsilon[column] * q[column]
                width += 1
        factors[width : width + BEYOND] = 0.0
        stride, skipped = np.uint64(basis.shape[0] * length), np.uint64(first * length)
        whole = np.uint64((width + BEYOND - 1) // BEYOND) * np.uint64(BEYOND)
        for k in range(done, done + count):
            at = begin + skipped
            one, two, three = (
                numbers[at : at + whole],
                numbers[at + stride :][:whole],
                numbers[at + stride + stride :][:whole],
            )
            sx, sy, sz = np.float32(0.0), np.float32(0.0), np.float32(0.0)
            for t in range(whole):
                f = factors[t]
                sx += np.float32(one[t]) * f
                sy += np.float32(two[t]) * f
                sz += np.float32(three[t]) * f
            x[slots[k]] += sx
            y[slots[k]] += sy
            z[slots[k]] += sz
            begin += stride + stride + stride
        done += count


@njit(cache=True)
def drawn_poses(basis: np.ndarray) -> tuple[int, int]:
    """The first pose that counts, and the one after the last: those between need no test of their own."""
    first, last = 0, basis.shape[0]
    while first + 1 < last and abs(basis[first]) < NEGLIGIBLE:
        first += 1
    while first + 1 < last and abs(basis[last - 1]) < NEGLIGIBLE:
        last -= 1
    return first, last


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def turn_moves(mixed: np.ndarray, local: np.ndarray, moves: np.ndarray) -> None:
    """Write `moves`, flat (d + 1, 4), after the first: vectors (3, d) turned by quaternions (4, ≥ d) of any length."""
    x, y, z, w = mixed[0], mixed[1], mixed[2], mixed[3]
    u, v, h = local[0], local[1], local[2]
    out = moves[4:]
    for t in range(u.shape[0]):
        s = np.float32(2.0) / (x[t] * x[t] + y[t] * y[t] + z[t] * z[t] + w[t] * w[t] + np.float32(1e-30))
        t0, t1, t2 = y[t] * h[t] - z[t] * v[t], z[t] * u[t] - x[t] * h[t], x[t] * v[t] - y[t] * u[t]
        out[4 * t] = u[t] + s * (w[t] * t0 + y[t] * t2 - z[t] * t1)
        out[4 * t + 1] = v[t] + s * (w[t] * t1 + z[t] * t0 - x[t] * t2)
        out[4 * t + 2] = h[t] + s * (w[t] * t2 + x[t] * t1 - y[t] * t0)
        # All four, so that whole vectors are stored.
        out[4 * t + 3] = np.float32(0.0)


@njit(cache=True)
def draw_skin(p: np.ndarray, out: np.ndarray, *tables: Any) -> None:
    """Write the surface, flat (n̄, 3), at rig parameters p (P,), correctives applied, carried along by the tets.

    `tables`: fields of `Motion`, its `BoneRuns`, `Followed`, `Following`, `Tree`, `Features`, `Skinning`, its
    `BoneRuns` and `Embedding`.
    """
    move_tets(*tables[:_TREE])
    tree, features = Tree(*tables[_TREE:_FEATURES]), Features(*tables[_FEATURES:_SKINNING])
    skinning, bones = Skinning(*tables[_SKINNING:_RUNS]), BoneRuns(*tables[_RUNS:_EMBEDDING])
    embedding, moves = Embedding(*tables[_EMBEDDING:_END]), Motion(*tables[:_BONES]).moves
    own = skinning.p
    for k in range(p.shape[0]):
        own[k] = p[k]
    if skinning.correctives.shape[0] > 0:
        pose_weights(features, p, skinning.features, skinning.w)
        for k in range(skinning.correctives.shape[0]):
            own[skinning.correctives[k]] = skinning.w[skinning.corrective_poses[k]]
    world_matrices(tree, own, skinning.world)
    bone_matrices(tree, skinning.world, skinning.matrices)
    points, room, matrices = skinning.points, skinning.room, skinning.matrices.reshape(-1)
    for run in range(bones.runs.shape[0] - 1):
        low, high = bones.runs[run], bones.runs[run + 1]
        x, y, z = points[0, low:], points[1, low:], points[2, low:]
        pieces = skinning.pieces[skinning.piece_starts[run] : skinning.piece_starts[run + 1]]
        if morph(high - low, x, y, z, own, pieces, low, skinning.piece_moves, room[0], room[1], room[2]):
            x, y, z = room[0], room[1], room[2]
        carrying = bones.bones[bones.starts[run] : bones.starts[run + 1]]
        shares = bones.weights[bones.offsets[run] :]
        skin_run(high - low, x, y, z, matrices, carrying, shares, room[3], room[4], room[5])
        nodes, weights = embedding.nodes[4 * low : 4 * high], embedding.weights[4 * low : 4 * high]
        embed(room[3], room[4], room[5], moves, nodes, weights, embedding.vertices[low:high], out)


@njit(cache=True, forceinline=True, fastmath=FAST)
def morph(
    count: int,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    p: np.ndarray,
    pieces: np.ndarray,
    low: int,
    moves: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
) -> bool:
    """Write into u, v, w `count` points x, y, z, the first at place `low`, plus the weighted blend shapes.

    False, and nothing written, where all weights are zero.
    """
    moving = False
    for k in range(pieces.shape[0]):
        weight = np.float32(p[pieces[k, 0]])
        if weight == 0.0:
            continue
        if not moving:
            for t in range(count):
                u[t], v[t], w[t] = x[t], y[t], z[t]
            moving = True
        at = pieces[k, 3]
        _add(weight, moves[0, at : at + pieces[k, 2]], u[pieces[k, 1] - low :])
        _add(weight, moves[1, at : at + pieces[k, 2]], v[pieces[k, 1] - low :])
        _add(weight, moves[2, at : at + pieces[k, 2]], w[pieces[k, 1] - low :])
    return moving


@njit(cache=True, forceinline=True, fastmath=FAST)
def _add(weight: np.float32, source: np.ndarray, target: np.ndarray) -> None:
    for t in range(source.shape[0]):
        target[t] += weight * source[t]


@njit(cache=True)
def embed(
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    moves: np.ndarray,
    nodes: np.ndarray,
    weights: np.ndarray,
    vertices: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write out[vertices] = positions plus the displacements `moves` of the tets around, of k vertices.

    All flat: positions (k,), `moves` (d + 1, 4), `nodes` and `weights` (k, 4), `out` (n̄, 3).
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for k in range(np.uint64(vertices.shape[0])):
        a, b, c, d = four * k, four * k + one, four * k + two, four * k + three
        total = row(x[k], y[k], z[k])
        total = plus_product(total, spread_four(weights[a]), load_four(moves, four * nodes[a]))
        total = plus_product(total, spread_four(weights[b]), load_four(moves, four * nodes[b]))
        total = plus_product(total, spread_four(weights[c]), load_four(moves, four * nodes[c]))
        total = plus_product(total, spread_four(weights[d]), load_four(moves, four * nodes[d]))
        store_three(out, three * vertices[k], total)
