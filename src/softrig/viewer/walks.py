"""How far places of a surface are from each other along it, so that a brush on one thigh leaves the other alone."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from softrig.errors import require_indices


class Walks:
    """Distances along a surface, by walks over its edges and straight across pairs of triangles.

    `weld` (n,): the vertex that stands for each one, so that seams do not stop a walk. A walk over edges alone would be
    up to a third too long; the steps across neighbouring triangles take most of that away.
    """

    def __init__(self, rest: np.ndarray, triangles: np.ndarray, weld: np.ndarray) -> None:
        self._weld = np.asarray(weld, np.int64)
        self._graph = _graph(np.asarray(rest, np.float64), self._weld[np.asarray(triangles, np.int64)])

    def within(self, vertex: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """The vertices (k,) at most `radius` metres from `vertex` along the surface, and how far (k,) they are."""
        start = int(require_indices([vertex], len(self._weld), "surface vertices")[0])
        distances = dijkstra(self._graph, indices=self._weld[start], limit=max(radius, 0.0))[self._weld]
        near = np.flatnonzero(np.isfinite(distances))
        return near, distances[near]


def _graph(points: np.ndarray, triangles: np.ndarray) -> csr_array:
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    corners = triangles[:, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]].reshape(-1, 3)  # an edge, and the corner across
    pairs = [corners[:, :2]]
    lengths = [np.linalg.norm(points[corners[:, 0]] - points[corners[:, 1]], axis=1)]
    one, other = _neighbours(corners[:, :2], len(points))
    ends = np.stack([corners[one, 2], corners[other, 2]], axis=1)
    pairs.append(ends)
    lengths.append(_across(points, corners[one, 0], corners[one, 1], ends))
    rows, columns = np.concatenate(pairs).T
    forth, back = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((np.concatenate(lengths), back, forth))
    forth, back, steps = forth[order], back[order], np.concatenate(lengths)[order]
    first = np.ones(len(forth), bool)
    first[1:] = (forth[1:] != forth[:-1]) | (back[1:] != back[:-1])
    first &= np.isfinite(steps)
    # A step of no length would be no step for a sparse matrix.
    values = np.maximum(steps[first], 1e-12)
    half = coo_array((values, (forth[first], back[first])), shape=(len(points),) * 2)
    return csr_array(half + half.T)


def _neighbours(edges: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in `edges` (3t, 2) of the two sides of every edge that exactly two triangles share."""
    keys = edges.min(axis=1) * count + edges.max(axis=1)
    order = np.argsort(keys, kind="stable")
    _, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    twice = first[counts == 2]
    return order[twice], order[twice + 1]


def _across(points: np.ndarray, a: np.ndarray, b: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Lengths between the far corners of two triangles on the edge ab, laid flat; infinite where that leaves them."""
    edge = points[b] - points[a]
    length = np.maximum(np.linalg.norm(edge, axis=1), 1e-300)
    along, away = [], []
    for end in ends.T:
        arm = points[end] - points[a]
        x = np.einsum("ij,ij->i", arm, edge) / length
        along.append(x)
        away.append(np.sqrt(np.maximum(np.einsum("ij,ij->i", arm, arm) - x * x, 0.0)))
    height = np.maximum(away[0] + away[1], 1e-300)
    crossing = along[0] + (along[1] - along[0]) * away[0] / height
    straight = np.hypot(along[1] - along[0], height)
    return np.where((crossing >= 0.0) & (crossing <= length), straight, np.inf)
