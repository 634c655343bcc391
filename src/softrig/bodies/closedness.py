"""Whether triangles close: a body has every edge in exactly two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.words import counted


@dataclass(frozen=True)
class Closedness:
    """Edges by how many triangles they have."""

    open_edges: int
    """In one triangle."""
    crowded_edges: int
    """In more than two."""
    degenerate: int
    """Triangles that name a vertex twice."""

    @property
    def closed(self) -> bool:
        """Whether every edge has two triangles."""
        return not (self.open_edges or self.crowded_edges)

    def words(self) -> str:
        """In words."""
        if self.closed:
            return "closed"
        open_ones = [counted(self.open_edges, "open edge")] * bool(self.open_edges)
        return ", ".join([*open_ones, *([counted(self.crowded_edges, "crowded edge")] * bool(self.crowded_edges))])


def closedness(triangles: np.ndarray) -> Closedness:
    """Of triangles (t, 3), their vertices welded already; those without area are left out."""
    first, second, third = triangles.T
    flat = (first == second) | (second == third) | (third == first)
    kept = triangles[~flat]
    edges = np.sort(kept[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True) if len(edges) else (None, np.zeros(0, int))
    return Closedness(int((counts == 1).sum()), int((counts > 2).sum()), int(flat.sum()))
