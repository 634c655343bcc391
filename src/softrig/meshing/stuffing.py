"""Isosurface stuffing on a body-centred cubic lattice (Labelle and Shewchuk 2007), compiled.

Nodes are the corners and the centres of cubes. Each tet of the lattice spans two neighbouring
centres and two neighbouring corners of the face between: two long edges (one spacing; local 0–1 and
2–3) and four short ones (√3/2 spacings). Tets that the surface crosses are cut; where it passes a
node closely, the node is moved onto it first, which is what keeps the angles.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LONG_SNAP, SHORT_SNAP = 0.25, 0.41
"""A cut nearer to a node than this share of its long or short edge moves the node (α of the paper)."""

LOCAL_EDGES = np.array([[0, 1], [2, 3], [0, 2], [0, 3], [1, 2], [1, 3]])
"""Edges of a tet; the first two are long."""

EDGE_OF = np.array([[-1, 0, 2, 3], [0, -1, 4, 5], [2, 4, -1, 1], [3, 5, 1, -1]])
"""Edge between two local corners."""


@njit(cache=True)
def crossed_tets(corner_inside: np.ndarray, centre_inside: np.ndarray) -> np.ndarray:
    """(t, 4) nodes of every lattice tet with a node inside; corners are numbered first, then centres."""
    none = np.empty((0, 4), np.int64)
    tets = np.empty((_visit_tets(corner_inside, centre_inside, none), 4), np.int64)
    _visit_tets(corner_inside, centre_inside, tets)
    return tets


@njit(cache=True)
def _visit_tets(corner_inside: np.ndarray, centre_inside: np.ndarray, tets: np.ndarray) -> int:
    """How many tets have a node inside; they are written to `tets` if it has room."""
    nx, ny, nz = centre_inside.shape
    start, count = corner_inside.size, 0
    for axis in range(3):
        si, sj, sk = 1 if axis == 0 else 0, 1 if axis == 1 else 0, 1 if axis == 2 else 0
        for i in range(nx - si):
            for j in range(ny - sj):
                for k in range(nz - sk):
                    either = centre_inside[i, j, k] or centre_inside[i + si, j + sj, k + sk]
                    for turn in range(4):
                        a = _ring_corner(i, j, k, axis, turn)
                        b = _ring_corner(i, j, k, axis, (turn + 1) % 4)
                        if not (either or corner_inside[a] or corner_inside[b]):
                            continue
                        if len(tets):
                            tets[count, 0] = start + (i * ny + j) * nz + k
                            tets[count, 1] = start + ((i + si) * ny + j + sj) * nz + k + sk
                            tets[count, 2] = (a[0] * (ny + 1) + a[1]) * (nz + 1) + a[2]
                            tets[count, 3] = (b[0] * (ny + 1) + b[1]) * (nz + 1) + b[2]
                        count += 1
    return count


@njit(cache=True)
def _ring_corner(i: int, j: int, k: int, axis: int, turn: int) -> tuple[int, int, int]:
    """Corner `turn` of the face between cube (i, j, k) and the next along `axis`, counter-clockwise."""
    up = 1 if turn in {1, 2} else 0
    across = 1 if turn >= 2 else 0
    if axis == 0:
        return i + 1, j + up, k + across
    if axis == 1:
        return i + across, j + 1, k + up
    return i + up, j + across, k + 1


@njit(cache=True)
def snap_nodes(
    places: np.ndarray, signs: np.ndarray, edges: np.ndarray, long_edge: np.ndarray, along: np.ndarray
) -> None:
    """Move nodes onto cuts that come too close, in place: `places`, and `signs` becomes 0 there.

    `edges` (c, 2) are the cut edges, `along` (c,) the cut's share of the way from the first node to
    the second; it becomes −1 where the edge is no longer cut because a node of it lies on the surface.
    Only unmoved nodes have cut edges, so every cut lies on the straight edge it was found on.
    """
    first = np.zeros(len(places) + 1, np.int64)
    for e in range(len(edges)):
        first[edges[e, 0] + 1] += 1
        first[edges[e, 1] + 1] += 1
    first = np.cumsum(first)
    fill = first.copy()
    incident = np.empty(2 * len(edges), np.int64)
    for e in range(len(edges)):
        for end in range(2):
            incident[fill[edges[e, end]]] = e
            fill[edges[e, end]] += 1
    for node in range(len(places)):
        best, chosen = np.inf, -1
        for slot in range(first[node], first[node + 1]):
            e = incident[slot]
            if along[e] < 0.0:
                continue
            share = along[e] if edges[e, 0] == node else 1.0 - along[e]
            if share < (LONG_SNAP if long_edge[e] else SHORT_SNAP):
                length = share * (1.0 if long_edge[e] else np.sqrt(0.75))
                if length < best:
                    best, chosen = length, e
        if chosen < 0:
            continue
        a, b = edges[chosen, 0], edges[chosen, 1]
        for d in range(3):
            places[node, d] = (1.0 - along[chosen]) * places[a, d] + along[chosen] * places[b, d]
        signs[node] = 0
        for slot in range(first[node], first[node + 1]):
            along[incident[slot]] = -1.0


@njit(cache=True)
def _even(p: np.ndarray, n: np.ndarray) -> bool:
    """The parity rule: whether p is above n along an even number of axes.

    Of the two ends of a long edge exactly one is, so neighbouring tets pick the same diagonal.
    """
    return ((p[0] > n[0]) + (p[1] > n[1]) + (p[2] > n[2])) % 2 == 0


@njit(cache=True)
def _emit(tets: np.ndarray, count: int, a: int, b: int, c: int, d: int, mirrored: bool) -> int:
    tets[count, 0], tets[count, 1] = (b, a) if mirrored else (a, b)
    tets[count, 2], tets[count, 3] = c, d
    return count + 1


@njit(cache=True)
def _odd(a: int, b: int, c: int, d: int) -> bool:
    """Whether the order a, b, c, d of 0 … 3 is an odd permutation: it mirrors the tet."""
    swaps = (a > b) + (a > c) + (a > d) + (b > c) + (b > d) + (c > d)
    return swaps % 2 == 1


@njit(cache=True)
def _is_long(a: int, b: int) -> bool:
    return a + b == 1 or a + b == 5


@njit(cache=True)
def _pyramid(
    tets: np.ndarray, count: int, ring: tuple[int, int, int, int], touches_second: bool, apex: int, mirrored: bool
) -> int:
    """Two tets over the quad a, b, cut of b, cut of a; the diagonal is a–(cut of b) or b–(cut of a)."""
    a, b, cut_b, cut_a = ring
    if touches_second:
        count = _emit(tets, count, a, b, cut_b, apex, mirrored)
        return _emit(tets, count, a, cut_b, cut_a, apex, mirrored)
    count = _emit(tets, count, a, b, cut_a, apex, mirrored)
    return _emit(tets, count, b, cut_b, cut_a, apex, mirrored)


@njit(cache=True)
def stuffed_tets(nodes: np.ndarray, tet_edges: np.ndarray, signs: np.ndarray, lattice: np.ndarray) -> np.ndarray:
    """(t, 4) the tets of the body: nodes by their number, cuts by the number of nodes plus the edge's.

    `nodes` (l, 4) lattice tets, `tet_edges` (l, 6) their edges, `signs` of nodes after snapping (1
    inside, 0 on the surface, −1 outside), `lattice` (n, 3) integer places for the parity rule.
    """
    tets = np.empty((3 * len(nodes), 4), np.int64)
    start = len(signs)
    count = 0
    by_sign = np.empty(4, np.int64)
    for t in range(len(nodes)):
        corner, edge = nodes[t], tet_edges[t]
        plus, minus = 0, 0
        for c in range(4):  # by_sign lists inside corners first, outside ones last
            if signs[corner[c]] > 0:
                by_sign[plus] = c
                plus += 1
            elif signs[corner[c]] < 0:
                by_sign[3 - minus] = c
                minus += 1
        if plus == 0:
            continue
        middle = plus
        for c in range(4):
            if signs[corner[c]] == 0:
                by_sign[middle] = c
                middle += 1
        if minus == 0:
            count = _emit(tets, count, corner[0], corner[1], corner[2], corner[3], False)
            continue
        a, b, c, d = by_sign[0], by_sign[1], by_sign[2], by_sign[3]
        if plus == 1:
            ends = (
                corner[b] if signs[corner[b]] == 0 else start + edge[EDGE_OF[a, b]],
                corner[c] if signs[corner[c]] == 0 else start + edge[EDGE_OF[a, c]],
                start + edge[EDGE_OF[a, d]],
            )
            count = _emit(tets, count, corner[a], ends[0], ends[1], ends[2], _odd(a, b, c, d))
        elif minus == 1:
            if plus == 3:  # c is made the corner across the long edge from d, and cut off with a and b
                if _is_long(a, d):
                    a, c = c, a
                elif _is_long(b, d):
                    b, c = c, b
                apex = start + edge[EDGE_OF[c, d]]
                count = _emit(tets, count, corner[a], corner[b], corner[c], apex, _odd(a, b, c, d))
            else:
                apex = corner[c]
            ring = (corner[a], corner[b], start + edge[EDGE_OF[b, d]], start + edge[EDGE_OF[a, d]])
            # The diagonal must touch the cut on the long edge (the other choice loses 2°), if one is long.
            touches_second = _even(lattice[corner[a]], lattice[corner[d]]) if _is_long(a, b) else _is_long(b, d)
            count = _pyramid(tets, count, ring, touches_second, apex, _odd(a, b, d, c))
        else:
            across = _is_long(a, b)
            if across and not _even(lattice[corner[a]], lattice[corner[c]]):
                a, b = b, a
            elif not across and _is_long(a, d):
                c, d = d, c
            mirrored = _odd(a, b, c, d)
            ac, ad = start + edge[EDGE_OF[a, c]], start + edge[EDGE_OF[a, d]]
            bc, bd = start + edge[EDGE_OF[b, c]], start + edge[EDGE_OF[b, d]]
            if across:  # the parity rule gives the diagonals a–bc and b–ad; ad–bc is then the only third
                count = _emit(tets, count, corner[a], corner[b], bc, ad, mirrored)
                count = _emit(tets, count, corner[a], bc, ac, ad, mirrored)
                count = _emit(tets, count, corner[b], bd, bc, ad, mirrored)
            else:  # a–c and b–d are long: b–ac, a–bd, and ac–bd
                count = _emit(tets, count, corner[a], corner[b], ac, bd, mirrored)
                count = _emit(tets, count, corner[a], ac, ad, bd, mirrored)
                count = _emit(tets, count, corner[b], bd, bc, ac, mirrored)
    return tets[:count].copy()
