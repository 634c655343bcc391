"""What all rigs of this package share: checks, subsets, chains and pose features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite
from softrig.rig.features import PoseFeatures, bounding_size, vertex_areas
from softrig.rig.parameters import Parameters


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Deforming(ABC):
    """Base of the rigs: `deform` moves given points, `positions` starts from the rig's own rest positions."""

    areas: np.ndarray | None = None
    """(n,) square metres around each vertex, for the default weights of pose features; None: all equal."""
    feature_weights: np.ndarray | None = None
    """(F,) the user's weights of the pose features; None: the defaults of `PoseFeatures.of_rig`."""

    if TYPE_CHECKING:  # at run time a property here would become the default value of a subclass' field

        @property
        def rest_positions(self) -> np.ndarray:
            """(n, 3) metres."""

        @property
        def parameters(self) -> Parameters:
            """Names, units and rest values of the parameters."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vertex_count:,} vertices, {len(self.parameters):,} parameters)"

    @property
    def needs_all(self) -> bool:
        """Whether `deform` must be given all vertices at once."""
        return False

    @abstractmethod
    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where `points`, the moved rest positions of `vertices` (None: all), go."""

    @property
    def vertex_count(self) -> int:
        """n, how many vertices the rig moves."""
        return len(self.rest_positions)

    def positions(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) metres at parameters p (P,), or (len(vertices), 3) of the named vertices alone."""
        p = self.parameters.checked(p)
        if vertices is None:
            return self.deform(p, self.rest_positions, None)
        vertices = checked_vertices(vertices, self.vertex_count)
        if self.needs_all:
            return self.deform(p, self.rest_positions, None)[vertices]
        return self.deform(p, self.rest_positions[vertices], vertices)

    @cached_property
    def pose_features(self) -> PoseFeatures:
        """The features and their weights. Found at first use: two evaluations a parameter."""
        if self.feature_weights is None:
            return PoseFeatures.of_rig(self, self.areas)
        size = bounding_size(self.positions(self.parameters.rest))
        return PoseFeatures(self.parameters, size, np.asarray(self.feature_weights, dtype=np.float64))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the F pose features."""
        return self.pose_features.names

    def features(self, p: np.ndarray) -> np.ndarray:
        """(F,) weighted pose features of parameters p (P,), dimensionless."""
        return self.pose_features(p)

    def with_areas(self, triangles: np.ndarray) -> Deforming:
        """The same rig, with vertex areas of its rest pose for the default feature weights."""
        return replace(self, areas=vertex_areas(self.positions(self.parameters.rest), triangles))


def checked_vertices(vertices: np.ndarray, count: int) -> np.ndarray:
    """`vertices` as an index array, or an error naming those that are not among `count` vertices."""
    vertices = np.atleast_1d(np.asarray(vertices))
    if vertices.dtype == bool or not np.issubdtype(vertices.dtype, np.integer):
        if vertices.size:
            raise InputError(f"vertices must be indices, not {vertices.dtype}")
        vertices = vertices.astype(np.int64)
    wrong = (vertices < 0) | (vertices >= count)
    if wrong.any():
        raise IndexRangeError(f"the rig has {count} vertices; no vertex", vertices[wrong])
    return vertices


def checked_positions(positions: np.ndarray, what: str) -> np.ndarray:
    """(n, 3) float64, finite, or an error."""
    positions = np.asarray(positions, dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise InputError(f"{what} must be (n, 3), not {positions.shape}")
    require_finite(positions, what)
    return positions
