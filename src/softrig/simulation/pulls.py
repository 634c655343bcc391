"""Forces of a hand: a pull at a surface vertex, spread over the flesh around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from softrig.errors import InputError, require_finite, require_indices
from softrig.models.pose_space import PoseSpaceModel

DEFAULT_RADIUS = 0.05
"""Character sizes: a hand's width on a person. A pull at a single vertex is felt too little by any basis."""


class Pull:
    """A force that acts until it is released; assign `force` to change it, newton, world axes."""

    def __init__(
        self, vertices: np.ndarray, weights: np.ndarray, force: np.ndarray, changed: Callable[[Pull, bool], None]
    ) -> None:
        self.vertices = vertices
        self.weights = weights
        self._changed = changed
        self._force = checked_force(force)

    @property
    def force(self) -> np.ndarray:
        """(3,) newton, the sum over the patch; a copy."""
        return self._force.copy()

    @force.setter
    def force(self, value: np.ndarray) -> None:
        self._force = checked_force(value)
        self._changed(self, True)

    def release(self) -> None:
        """Let go; releasing twice does nothing."""
        self._changed(self, False)

    def forces(self) -> np.ndarray:
        """(k, 3) newton at `vertices` (k,) of the tets."""
        return self.weights[:, None] * self._force


def checked_force(force: np.ndarray) -> np.ndarray:
    """(3,) finite numbers."""
    array = np.array(force, dtype=np.float64)
    if array.shape != (3,):
        raise InputError(f"a force has three components, not the shape {array.shape}")
    require_finite(array, "force")
    return array


def patch(model: PoseSpaceModel, vertex: int, radius: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Tet vertices (k,) within `radius` metres of a surface vertex and their shares (k,) of a force, summing to one.

    Shares fall off as (1 − d²/radius²)² with the distance at rest. What is near but not joined to the vertex within the
    ball (the other thigh) takes no part, nor does what is fixed.
    """
    vertex = int(require_indices([vertex], len(model.embedding_nodes), "surface vertices")[0])
    nodes = model.embedding_nodes[vertex][model.embedding_weights[vertex] != 0.0]
    if len(nodes) == 0 or model.fixed[nodes].all():
        raise InputError("this surface vertex has no flesh to pull at", [vertex])
    radius = DEFAULT_RADIUS * model.size if radius is None else float(radius)
    if not (np.isfinite(radius) and radius >= 0.0):
        raise InputError(f"a radius must not be negative, got {radius} metres")
    centre = model.embedding_weights[vertex] @ model.vertices[model.embedding_nodes[vertex]]
    distances = np.linalg.norm(model.vertices - centre, axis=1)
    near = distances < radius
    near[nodes] = True
    chosen = np.flatnonzero(_joined(model, near, nodes) & ~model.fixed)
    shares = np.maximum(1.0 - (distances[chosen] / max(radius, 1e-300)) ** 2, 0.0) ** 2
    if shares.sum() <= 0.0:  # a ball that holds no vertex: those that carry the surface there
        chosen = nodes[~model.fixed[nodes]]
        shares = np.ones(len(chosen))
    return chosen.astype(np.int32), shares / shares.sum()


def _joined(model: PoseSpaceModel, near: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """(n,) which of the `near` (n,) hang together with `nodes` through tets whose corners are all near."""
    tets = model.tets[near[model.tets].all(axis=1)]
    rows, columns = tets[:, [0, 1, 2]].ravel(), tets[:, [1, 2, 3]].ravel()
    graph = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(near),) * 2)
    _, labels = connected_components(graph, directed=False)
    return near & np.isin(labels, labels[nodes])
