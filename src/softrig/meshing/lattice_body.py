"""One lattice of a given spacing around a surface, stuffed: nodes, cuts and tets before any repair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from softrig.errors import EmptyMeshError, InputError
from softrig.meshing.distance_field import SurfaceField
from softrig.meshing.soup_tree import segment_distance
from softrig.meshing.stuffing import LOCAL_EDGES, crossed_tets, snap_nodes, stuffed_tets
from softrig.meshing.thickness import SurfaceSamples, offsets_at, sample_offsets

MOST_CUBES = 1 << 23
"""Largest lattice in cubes, used or not: the arrays over them take some 300 megabytes."""

BLOCK = 4
"""Cubes along a block; blocks away from the surface are settled by one question."""

PHASES = ((0.0, 0.31, 0.17), (0.0, 0.06, 0.42), (0.23, 0.12, 0.37), (0.37, 0.23, 0.06))
"""Where the middle of the surface's box may lie in a cube. At first mirrored along x, as most bodies are; off the
planes of symmetry along y and z, or many nodes would enter at once and the count would jump."""

CAPSULE = 0.65
"""Of a spacing: radius of the body kept around bones, so that fingers and tails do not break off."""


@dataclass(frozen=True)
class StuffedBody:
    """Tets of one lattice, in the field's units. They may hang together by a vertex or an edge only."""

    places: np.ndarray
    """(n, 3) vertices, all of them used."""
    tets: np.ndarray
    """(t, 4) positively wound."""
    spacing: float
    """Edge of the lattice's cubes."""
    samples: SurfaceSamples
    """The surface at the lattice's resolution."""


@dataclass(frozen=True)
class GrownBody:
    """The field whose zero is meshed: the surface grown outward, united with capsules around bones."""

    field: SurfaceField
    samples: SurfaceSamples
    offsets: np.ndarray
    """(s,) of each sample."""
    capsules: np.ndarray
    """(c, 2, 3) pieces of bones in or near the surface."""
    spacing: float
    reach: float
    """b: the largest offset in spacings."""

    @property
    def bound(self) -> float:
        """Distances beyond this need not be known."""
        return (self.reach + 1.5) * self.spacing

    def grown(self, signed: np.ndarray, queries: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """(q,) the field at `queries`, positive inside, from the surface's signed distance and offset there."""
        values = signed + offsets
        if len(self.capsules):
            values = np.maximum(values, CAPSULE * self.spacing - capsule_distances(self.capsules, queries))
        return values

    def offsets_near(self, queries: np.ndarray) -> np.ndarray:
        """(q,) offset of the surface about each query."""
        return offsets_at(self.samples, self.offsets, self.spacing, queries)


def grown_body(
    field: SurfaceField, samples: SurfaceSamples, spacing: float, reach: float, bones: np.ndarray
) -> GrownBody:
    """The body that a lattice of `spacing` is to fill; `bones` (b, 2, 3) in the field's units."""
    offsets = sample_offsets(samples, spacing, reach)
    return GrownBody(field, samples, offsets, _bone_pieces(field, bones, spacing), spacing, reach)


def _bone_pieces(field: SurfaceField, bones: np.ndarray, spacing: float) -> np.ndarray:
    """(c, 2, 3) pieces of the bones, about half a spacing each, that lie in the surface or close to it.

    Helpers of a rig (targets, roots on the floor) lie outside and must not grow a body of their own.
    """
    pieces = [np.zeros((0, 2, 3))]
    for head, tail in bones:
        length = float(np.linalg.norm(tail - head))
        if length > 0.0:
            cuts = min(max(int(np.ceil(2.0 * length / spacing)), 1), 1000)
            at = head + np.linspace(0.0, 1.0, cuts + 1)[:, None] * (tail - head)
            pieces.append(np.stack([at[:-1], at[1:]], axis=1))
    every = np.concatenate(pieces)
    close = field.signed(every.mean(axis=1), spacing) > -0.25 * spacing
    return np.ascontiguousarray(every[close])


@njit(cache=True)
def capsule_distances(segments: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """(q,) distance from each query to the nearest of `segments` (c, 2, 3)."""
    result = np.empty(len(queries))
    for q in range(len(queries)):
        best = np.inf
        for c in range(len(segments)):
            best = min(best, segment_distance(segments[c, 0], segments[c, 1], queries[q])[0])
        result[q] = np.sqrt(best)
    return result


@dataclass(frozen=True)
class _Lattice:
    """Cubes about the surface's box, and which nodes have been looked at."""

    origin: np.ndarray
    spacing: float
    cubes: tuple[int, int, int]

    @property
    def corner_shape(self) -> tuple[int, int, int]:
        nx, ny, nz = self.cubes
        return nx + 1, ny + 1, nz + 1

    @property
    def corner_count(self) -> int:
        return int(np.prod(self.corner_shape))

    def doubled(self, nodes: np.ndarray) -> np.ndarray:
        """(n, 3) places in half spacings: even at corners, odd at centres."""
        centre = nodes >= self.corner_count
        at_corner = np.stack(np.unravel_index(np.where(centre, 0, nodes), self.corner_shape), axis=1)
        at_centre = np.stack(np.unravel_index(np.where(centre, nodes - self.corner_count, 0), self.cubes), axis=1)
        return np.where(centre[:, None], 2 * at_centre + 1, 2 * at_corner).astype(np.int64)

    def places(self, nodes: np.ndarray) -> np.ndarray:
        return self.origin + 0.5 * self.spacing * self.doubled(nodes)


def stuff(body: GrownBody, phase: tuple[float, float, float] = PHASES[0]) -> StuffedBody:
    """Fill the body with tets: evaluate the nodes, find the cuts, snap, cut the tets."""
    lattice = _lattice_around(body, np.array(phase))
    values, signed, offsets = _node_values(body, lattice)
    corners = lattice.corner_count
    inside = values > 0.0
    nodes = crossed_tets(inside[:corners].reshape(lattice.corner_shape), inside[corners:].reshape(lattice.cubes))
    if not len(nodes):
        raise EmptyMeshError("no lattice node lies in the body: ask for more tets")
    used, compact = np.unique(nodes, return_inverse=True)
    compact = compact.reshape(nodes.shape)
    doubled, places = lattice.doubled(used), lattice.places(used)
    signs = np.where(inside[used], 1, -1).astype(np.int8)
    edges, tet_edges = _edges(compact, len(used))
    crossing = np.nonzero(signs[edges[:, 0]] != signs[edges[:, 1]])[0]
    ends = edges[crossing]
    along = _cut_shares(body, places[ends], values[used[ends]], signed[used[ends]], offsets[used[ends]])
    cuts = places[ends[:, 0]] + along[:, None] * (places[ends[:, 1]] - places[ends[:, 0]])
    long_edge = (doubled[ends[:, 0], 0] - doubled[ends[:, 1], 0]) % 2 == 0
    snap_nodes(places, signs, ends, long_edge, along)
    tets = stuffed_tets(compact, tet_edges, signs, doubled)
    every = np.concatenate([places, np.empty((len(edges), 3))])
    every[len(places) + crossing] = cuts
    kept, tets = np.unique(tets, return_inverse=True)
    return StuffedBody(every[kept], tets.reshape(-1, 4), body.spacing, body.samples)


def _lattice_around(body: GrownBody, phase: np.ndarray) -> _Lattice:
    used = body.field.points[body.field.faces].reshape(-1, 3)
    low, high = used.min(axis=0), used.max(axis=0)
    margin = max(body.reach, CAPSULE + 0.5) + 1.0
    first = np.floor(low / body.spacing - margin - phase)
    counts = np.ceil(high / body.spacing + margin - phase) - first
    if counts.prod() > MOST_CUBES:
        sides = " × ".join(f"{n:.6g}" for n in counts)
        raise InputError(f"a lattice of {sides} cubes is above the limit of {MOST_CUBES}: ask for fewer tets")
    nx, ny, nz = (int(n) for n in counts)
    return _Lattice((first + phase) * body.spacing, body.spacing, (nx, ny, nz))


def _node_values(body: GrownBody, lattice: _Lattice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, signed distance and offset of every node; away from the surface ± the bound and no offset."""
    near_cube, inside_cube = _cubes_near_surface(body, lattice)
    corners = lattice.corner_count
    near = np.concatenate([_any_neighbour(near_cube).ravel(), near_cube.ravel()])
    inside = np.concatenate([_any_neighbour(inside_cube).ravel(), inside_cube.ravel()])
    offsets = np.zeros(corners + near_cube.size)
    signed = np.where(inside, body.bound, -body.bound)
    nodes = np.nonzero(near)[0]
    places = lattice.places(nodes)
    signed[nodes] = body.field.signed(places, body.bound)
    close = np.abs(signed[nodes]) < body.bound
    nodes, places = nodes[close], places[close]
    offsets[nodes] = body.offsets_near(places)
    values = signed.copy()
    values[nodes] = body.grown(signed[nodes], places, offsets[nodes])
    return values, signed, offsets


def _cubes_near_surface(body: GrownBody, lattice: _Lattice) -> tuple[np.ndarray, np.ndarray]:
    """Which cubes need their nodes looked at, and which of the others are inside, by blocks.

    A block whose middle is further from every triangle than its own radius and the largest offset
    is all inside or all outside; through the hole of an open soup the winding number changes
    without a triangle, so there the middle's must be decided as well.
    """
    blocks = tuple(-(-n // BLOCK) for n in lattice.cubes)
    index = np.stack(np.meshgrid(*(np.arange(n) for n in blocks), indexing="ij"), axis=-1).reshape(-1, 3)
    middles = lattice.origin + body.spacing * BLOCK * (index + 0.5)
    far = 0.5 * np.sqrt(3.0) * BLOCK * body.spacing + body.bound
    near = body.field.distances(middles, far)[0] < far
    turns = np.zeros(len(middles))
    turns[~near] = np.abs(body.field.windings(middles[~near]))
    if not body.field.closed:
        near |= np.abs(turns - 0.5) < 0.25

    def by_cube(flags: np.ndarray) -> np.ndarray:
        grid = flags.reshape(blocks)
        for axis in range(3):
            grid = np.repeat(grid, BLOCK, axis=axis)
        return np.ascontiguousarray(grid[tuple(slice(n) for n in lattice.cubes)])

    return by_cube(near), by_cube(~near & (turns > 0.5))


def _any_neighbour(cubes: np.ndarray) -> np.ndarray:
    """Corner array: whether any cube about each corner is set."""
    padded = np.pad(cubes, 1)
    for axis in range(3):
        low = np.take(padded, np.arange(padded.shape[axis] - 1), axis=axis)
        high = np.take(padded, np.arange(1, padded.shape[axis]), axis=axis)
        padded = low | high
    return padded


def _edges(tets: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """(e, 2) the edges of all tets, lower node first, and (t, 6) which edges each tet has."""
    pairs = np.sort(tets[:, LOCAL_EDGES], axis=2)
    keys, which = np.unique(pairs[..., 0] * nodes + pairs[..., 1], return_inverse=True)
    return np.stack([keys // nodes, keys % nodes], axis=1), which.reshape(-1, 6)


def _cut_shares(
    body: GrownBody, ends: np.ndarray, values: np.ndarray, signed: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """(c,) where along each edge the field changes sign, from bracketing values (c, 2).

    False position and bisection take turns: the first is nearly exact where the field is a
    distance, the second halves the bracket where it jumps.
    """
    low, high = np.zeros(len(ends)), np.ones(len(ends))
    at_low, at_high = values[:, 0].copy(), values[:, 1].copy()
    far_low, far_high = signed[:, 0].copy(), signed[:, 1].copy()
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)

    def straight() -> np.ndarray:
        return low + (high - low) * np.clip(at_low / (at_low - at_high), 0.05, 0.95)

    for step in range(5):
        share = 0.5 * (low + high) if step % 2 else straight()
        queries = ends[:, 0] + share[:, None] * (ends[:, 1] - ends[:, 0])
        known = np.zeros(len(ends))
        if body.field.closed:  # within its distance from the surface a point shares its side with all others
            known = np.where((share - low) * lengths < np.abs(far_low), np.sign(far_low), known)
            known = np.where((high - share) * lengths < np.abs(far_high), np.sign(far_high), known)
        far = body.field.signed(queries, body.bound, known)
        got = body.grown(far, queries, offsets[:, 0] + share * (offsets[:, 1] - offsets[:, 0]))
        same = (got > 0.0) == (at_low > 0.0)
        low, at_low, far_low = (np.where(same, *pair) for pair in ((share, low), (got, at_low), (far, far_low)))
        high, at_high, far_high = (np.where(same, *pair) for pair in ((high, share), (at_high, got), (far_high, far)))
    return np.asarray(straight())
