"""Points carried by a volume mesh: each a weighted sum of element corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError


@dataclass(frozen=True)
class Embedding:
    """m points as Σ_k weights[:, k] · vertices[nodes[:, k]]: trilinear in bricks, barycentric in tets."""

    nodes: np.ndarray
    """(m, k) int32 vertices of the volume mesh."""
    weights: np.ndarray
    """(m, k) float64, each row sums to one."""

    def __post_init__(self) -> None:
        if self.nodes.shape != self.weights.shape or self.nodes.ndim != 2:
            raise InputError(f"nodes {self.nodes.shape} and weights {self.weights.shape} must be (m, k)")

    def carry(self, field: np.ndarray) -> np.ndarray:
        """(m, ...) values at the points of a field (n, ...) given at the mesh's vertices."""
        flat = self.matrix(len(field)) @ field.reshape(len(field), -1)
        return np.asarray(flat).reshape(len(self.nodes), *field.shape[1:])

    def spread(self, field: np.ndarray, vertices: int) -> np.ndarray:
        """(vertices, ...) what forces (m, ...) at the points do to the mesh: the transpose of `carry`."""
        return np.asarray(self.matrix(vertices).T @ field.reshape(len(field), -1)).reshape(vertices, *field.shape[1:])

    def matrix(self, vertices: int) -> csr_array:
        """(m, vertices) the sparse map A of positions = A · vertices."""
        points, corners = self.nodes.shape
        rows = np.repeat(np.arange(points), corners)
        entries = (self.weights.ravel(), (rows, self.nodes.ravel()))
        return csr_array(entries, shape=(points, vertices))
