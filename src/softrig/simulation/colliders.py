"""Things the flesh cannot enter: planes, spheres and capsules, with signed distances and outward directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import InputError, require_finite

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Plane:
    """The half-space behind a plane is solid."""

    point: Sequence[float] | np.ndarray
    """(3,) metres, on the plane."""
    normal: Sequence[float] | np.ndarray
    """(3,) out of the solid, any length."""
    friction: float = 0.0
    """Coulomb's coefficient, 0 (ice) to about 1 (rubber)."""

    def __post_init__(self) -> None:
        _set_points(self, "point", "normal")
        _check(self)
        length = float(np.linalg.norm(self.normal))
        if length < TINY:
            raise InputError("the normal of a plane must not be zero")
        object.__setattr__(self, "normal", np.divide(self.normal, length))

    def distances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) signed distances of points (k, 3), negative inside, and (k, 3) unit directions outwards."""
        return (points - self.point) @ self.normal, np.broadcast_to(self.normal, points.shape)


@dataclass(frozen=True, eq=False)
class Sphere:
    """A solid ball."""

    centre: Sequence[float] | np.ndarray
    """(3,) metres."""
    radius: float
    """Metres."""
    friction: float = 0.0
    """Coulomb's coefficient."""

    def __post_init__(self) -> None:
        _set_points(self, "centre")
        _check(self)

    def distances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) signed distances of points (k, 3), negative inside, and (k, 3) unit directions outwards."""
        return _outwards(points - self.centre, self.radius)


@dataclass(frozen=True, eq=False)
class Capsule:
    """All within `radius` of a segment: a limb, a stick."""

    start: Sequence[float] | np.ndarray
    """(3,) metres."""
    end: Sequence[float] | np.ndarray
    """(3,) metres."""
    radius: float
    """Metres."""
    friction: float = 0.0
    """Coulomb's coefficient."""

    def __post_init__(self) -> None:
        _set_points(self, "start", "end")
        _check(self)

    def distances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) signed distances of points (k, 3), negative inside, and (k, 3) unit directions outwards."""
        axis = np.subtract(self.end, self.start)
        along = np.clip((points - self.start) @ axis / max(axis @ axis, TINY), 0.0, 1.0)
        return _outwards(points - self.start - along[:, None] * axis, self.radius)


Collider = Plane | Sphere | Capsule


def _outwards(arms: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.linalg.norm(arms, axis=1)
    directions = arms / np.maximum(lengths, TINY)[:, None]
    directions[lengths < TINY] = (0.0, 1.0, 0.0)  # exactly in the middle: any way out is as good
    return lengths - radius, directions


def _set_points(collider: Collider, *names: str) -> None:
    for name in names:
        array = np.array(getattr(collider, name), dtype=np.float64)
        if array.shape != (3,):
            raise InputError(f"{name} has three components, not the shape {array.shape}")
        require_finite(array, name)
        object.__setattr__(collider, name, array)


def _check(collider: Collider) -> None:
    for name in ("radius", "friction"):
        value = getattr(collider, name, 0.0)
        if not (np.isfinite(value) and value >= 0.0):
            raise InputError(f"{name} must not be negative, got {value}")
