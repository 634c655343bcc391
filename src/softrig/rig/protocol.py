"""What every rig answers: positions of all or some surface vertices, and features of the pose."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from softrig.rig.parameters import Parameters


@runtime_checkable
class Rig(Protocol):
    """Parameters p in, positions of surface vertices out. Nothing else is known of a rig."""

    @property
    def parameters(self) -> Parameters:
        """Names, units and rest values of the P parameters."""

    @property
    def vertex_count(self) -> int:
        """n, how many vertices the rig moves."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the F pose features."""

    def positions(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) metres at parameters p (P,), or (len(vertices), 3) of the named vertices alone."""

    def features(self, p: np.ndarray) -> np.ndarray:
        """(F,) weighted pose features, dimensionless: their distance says how much the shape differs."""


@runtime_checkable
class Deformer(Rig, Protocol):
    """A rig that can stand behind another one in a `RigChain`."""

    @property
    def rest_positions(self) -> np.ndarray:
        """(n, 3) metres, what the deformer moves when it stands alone."""

    @property
    def needs_all(self) -> bool:
        """Whether `deform` must be given all vertices at once."""

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the deformer takes `points`, the moved rest positions of `vertices` (None: all)."""
