"""Vertices that lie in one place count as one for physics, and are split again for output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.errors import InputError

TOLERANCE = 1e-6
"""Co-located: nearer than this times the size."""


@dataclass(frozen=True, eq=False)
class Weld:
    """m welded vertices of n."""

    unique_of_vertex: np.ndarray
    """(n,) int64 welded vertex of each vertex."""
    representative: np.ndarray
    """(m,) int64 the first vertex of each welded one, rising."""

    def __repr__(self) -> str:
        return f"Weld({len(self.unique_of_vertex):,} vertices into {len(self.representative):,})"

    def merged(self, values: np.ndarray) -> np.ndarray:
        """(m, ...) the values (n, ...) of the representatives."""
        return values[self.representative]

    def split(self, values: np.ndarray) -> np.ndarray:
        """(n, ...) each vertex gets the value of its welded vertex (m, ...): seams cannot crack."""
        return values[self.unique_of_vertex]

    def triangles(self, triangles: np.ndarray) -> np.ndarray:
        """(≤ t, 3) int32 triangles (t, 3) over welded vertices, without those that lost a corner."""
        welded = self.unique_of_vertex[triangles]
        a, b, c = welded.T
        return welded[(a != b) & (b != c) & (c != a)].astype(np.int32)


def weld(positions: np.ndarray, tolerance: float, groups: np.ndarray | None = None) -> Weld:
    """Join rows of `positions` (n, d ≤ 3) nearer than `tolerance` along every axis, within equal `groups` (n,).

    Rows further apart than twice the tolerance are joined only through rows between them.
    """
    positions = np.asarray(positions, dtype=np.float64)
    count, axes = positions.shape
    if not tolerance > 0.0:
        raise InputError(f"a welding tolerance must be positive, not {tolerance}")
    positions = positions - positions.min(axis=0, initial=0.0)
    extra = np.zeros((count, 1), np.int64) if groups is None else np.asarray(groups, np.int64).reshape(count, 1)
    labels = np.arange(count)
    # Two rows nearer than the tolerance share a cell of twice that width in at least one of the shifted grids.
    # Memory stays linear however many rows coincide, which a search for pairs cannot say.
    for shift in product((0.0, 0.5), repeat=axes):
        cells = np.floor(positions / (2.0 * tolerance) + np.array(shift)).astype(np.int64)
        _, cell = np.unique(np.concatenate([cells, extra], axis=1), axis=0, return_inverse=True)
        labels = _joined(labels, cell.reshape(-1))
    _, first, unique = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Weld(rank[unique.reshape(-1)], first[order])


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) labels of the finest grouping in which rows of equal `a` or of equal `b` are together."""
    if len(a) == 0:
        return a
    total = int(a.max()) + int(b.max()) + 2
    edges = (np.ones(len(a)), (a, b + int(a.max()) + 1))
    _, component = connected_components(coo_array(edges, shape=(total, total)), directed=False)
    return component[a].astype(np.int64)
