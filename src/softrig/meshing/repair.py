"""Parts of a tet mesh that hang together by a vertex or an edge only act as hinges: found and parted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.meshing.quality import tet_volumes

_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
_EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])


@dataclass(frozen=True)
class Mended:
    """Tets without hinges, and what was done to get there."""

    vertices: np.ndarray
    """(n, 3)."""
    tets: np.ndarray
    """(t, 4)."""
    parted: int
    """Vertices doubled because only a vertex or an edge held parts together there."""
    removed: int
    """Tets removed: around edges that could not be parted, and crumbs."""
    part_of_tet: np.ndarray
    """(t,) face-connected part, the largest first."""
    pinched_edges: int
    """Edges about which the tets still fall into separate fans."""


def face_pairs(tets: np.ndarray) -> np.ndarray:
    """(p, 2) pairs of tets that share a face."""
    keys = np.sort(tets[:, _FACES].reshape(-1, 3), axis=1)
    order = np.lexsort(keys.T)
    same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
    return np.stack([order[:-1][same] // 4, order[1:][same] // 4], axis=1)


def part_count(tets: np.ndarray) -> int:
    """How many face-connected parts there are."""
    return int(_components(face_pairs(tets), len(tets)).max()) + 1


def hinge_count(tets: np.ndarray) -> int:
    """How many face-connected parts hang on another by a vertex or an edge only."""
    parts = _components(face_pairs(tets), len(tets))
    corners = np.unique(np.stack([parts.repeat(4), tets.ravel()], axis=1), axis=0)
    by_vertex = _components(_chains(corners[:, 1], corners[:, 0]), int(parts.max()) + 1)
    return int(parts.max() - by_vertex.max())


def mend(vertices: np.ndarray, tets: np.ndarray, crumb: float) -> Mended:
    """Part what no face holds together; drop parts with a volume under `crumb` unless it is the largest.

    A vertex whose tets fall into several fans (joined face to face) gets a copy for each. Edges that
    still have several fans afterwards, because the fans meet again around one of their ends, lose
    the smaller fans.
    """
    parted, removed = 0, 0
    for _ in range(8):
        before = len(np.unique(tets))
        vertices, tets = _part_vertices(vertices, tets)
        parted += len(vertices) - before
        doomed = _smaller_fans(tets)
        if not doomed.size:
            break
        removed += len(doomed)
        tets = np.delete(tets, doomed, axis=0)
    parts = _components(face_pairs(tets), len(tets))
    volumes = np.bincount(parts, weights=tet_volumes(vertices, tets))
    keep = volumes >= crumb
    keep[volumes.argmax()] = True
    removed += int((~keep[parts]).sum())
    tets, parts = tets[keep[parts]], parts[keep[parts]]
    rank = np.empty(len(volumes), np.int64)
    rank[np.argsort(-np.where(keep, volumes, -1.0), kind="stable")] = np.arange(len(volumes))
    used, tets = np.unique(tets, return_inverse=True)
    tets = tets.reshape(-1, 4)
    return Mended(vertices[used], tets, parted, removed, rank[parts], len(_pinched(tets)[0]))


def _components(pairs: np.ndarray, count: int) -> np.ndarray:
    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def _chains(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(p, 2) pairs of `values` that follow each other among those with the same key."""
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    return np.stack([values[order[:-1]][same], values[order[1:]][same]], axis=1)


def _fans(pairs: np.ndarray, things: np.ndarray) -> np.ndarray:
    """(t·k,) components of the slots of `things` (t, k): the same corner or edge in two tets of a face is one."""
    width = things.shape[1]
    links = []
    for slot in range(width):
        match = things[pairs[:, 1]] == things[pairs[:, 0], slot][:, None]
        shared = np.nonzero(match.any(axis=1))[0]
        other = width * pairs[shared, 1] + match[shared].argmax(axis=1)
        links.append(np.stack([width * pairs[shared, 0] + slot, other], axis=1))
    return _components(np.concatenate(links), things.size)


def _part_vertices(vertices: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy of each vertex for every fan of tets about it. Fans are components of tet corners."""
    fans = _fans(face_pairs(tets), tets)
    count = int(fans.max()) + 1
    vertex_of_fan = np.empty(count, np.int64)
    vertex_of_fan[fans] = tets.ravel()
    order = np.lexsort((np.arange(count), vertex_of_fan))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return vertices[vertex_of_fan[order]], rank[fans].reshape(-1, 4)


def _pinched(tets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges with several fans; and fan and edge of every tet edge (t·6,)."""
    ends = np.sort(tets[:, _EDGES], axis=2)
    edges = np.unique(ends[..., 0] * (tets.max() + 1) + ends[..., 1], return_inverse=True)[1].reshape(-1, 6)
    fans = _fans(face_pairs(tets), edges)
    edge_of_fan = np.empty(int(fans.max()) + 1, np.int64)
    edge_of_fan[fans] = edges.ravel()
    return np.nonzero(np.bincount(edge_of_fan) > 1)[0], fans, edges.ravel()


def _smaller_fans(tets: np.ndarray) -> np.ndarray:
    """The tets of all but the largest fan about each pinched edge."""
    pinched, fans, edges = _pinched(tets)
    if not pinched.size:
        return np.zeros(0, np.int64)
    sizes = np.bincount(fans)
    slots = np.nonzero(np.isin(edges, pinched))[0]
    slots = slots[np.lexsort((fans[slots], -sizes[fans[slots]], edges[slots]))]
    leads = np.concatenate([[True], edges[slots[1:]] != edges[slots[:-1]]])
    largest = np.zeros(len(sizes), bool)
    largest[fans[slots[leads]]] = True
    return np.unique(slots[~largest[fans[slots]]] // 6)
