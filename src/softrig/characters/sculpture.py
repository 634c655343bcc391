"""Clay: round lumps grown together into one smooth body, each lump knowing the bone it sits on.

Characters face +z, y is up, their left is +x; lengths are metres. A lump made for both sides is
given for the left one; its mirror image belongs to the bone of the same name on the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit
from scipy.spatial.transform import Rotation

from softrig.bodies.implicit import limb, smooth_cut, smooth_union

FAR = 0.35
"""Metres: wider than any blend."""

BAND = 0.06
"""Metres from the surface within which the field is exact; farther away only its sign and order count."""

OUTSIDE = 1.0
"""Metres: the distance of a point with no lump near."""

FLOOR_RADIUS = 200.0

MIRROR = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True)
class Lump:
    """A chain of round cones, or an ellipsoid.

    bone     name of the bone it moves with
    knots    (k, 4) x, y, z, radius of a chain of round cones; or (1, 4) x, y, z, 0 of an ellipsoid
    radii    half axes of the ellipsoid, m; empty for a chain
    turn     rotation of the ellipsoid: degrees about x, then y, then z
    blend    width over which it flows into what is there already, m
    cut      whether it is taken away instead of added
    """

    bone: str
    knots: tuple[tuple[float, float, float, float], ...]
    radii: tuple[float, ...] = ()
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    blend: float = 0.05
    cut: bool = False

    @cached_property
    def axis(self) -> np.ndarray:
        """(k, 3) the knots' places, m."""
        return np.array([knot[:3] for knot in self.knots])

    @cached_property
    def thickness(self) -> np.ndarray:
        """(k,) the knots' radii, m."""
        return np.array([knot[3] for knot in self.knots])

    @cached_property
    def _axes(self) -> np.ndarray:
        return Rotation.from_euler("xyz", self.turn, degrees=True).as_matrix()

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(n,) distance of `points` (n, 3) from the lump, negative inside; of an ellipsoid nearly so."""
        if not self.radii:
            return limb(points, self.axis, self.thickness, FAR)
        return _ellipsoid(points, self.axis[0], self._axes, np.array(self.radii))

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners of the box around the lump, m."""
        if self.radii:
            reach = np.sqrt(((self._axes * np.array(self.radii)) ** 2).sum(axis=1))
            return self.axis[0] - reach, self.axis[0] + reach
        reach = self.thickness[:, None]
        return (self.axis - reach).min(axis=0), (self.axis + reach).max(axis=0)

    def near(self, points: np.ndarray, far: float) -> np.ndarray:
        """Indices of the `points` (n, 3) within `far` of the lump's box, m."""
        low, high = self.box
        return _inside(points, low - far, high + far)

    def mirrored(self) -> Lump:
        """The lump on the other side."""
        x, y, z = self.turn
        flipped = tuple((-knot[0], *knot[1:]) for knot in self.knots)
        return replace(self, bone=other_side(self.bone), knots=flipped, turn=(x, -y, -z))


def other_side(name: str) -> str:
    """The name with Left for Right and Right for Left."""
    if "Left" in name:
        return name.replace("Left", "Right")
    return name.replace("Right", "Left")


def ball(
    bone: str,
    centre: tuple[float, float, float],
    radii: tuple[float, float, float] | float,
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0),
    *,
    blend: float = 0.05,
    cut: bool = False,
) -> Lump:
    """An ellipsoid of half axes `radii`, m, turned by degrees about x, y and z."""
    axes = radii if isinstance(radii, tuple) else (radii, radii, radii)
    return Lump(bone, ((*centre, 0.0),), axes, turn, blend, cut)


def chain(bone: str, *knots: tuple[float, float, float, float], blend: float = 0.05, cut: bool = False) -> Lump:
    """Round cones through `knots` x, y, z, radius, m."""
    return Lump(bone, knots, (), (0.0, 0.0, 0.0), blend, cut)


def floor(blend: float = 0.016) -> Lump:
    """Cuts soles flat at height 0: a ball so large that it bulges by less than a millimetre."""
    return ball("", (0.0, -FLOOR_RADIUS, 0.0), FLOOR_RADIUS, blend=blend, cut=True)


@dataclass(frozen=True)
class Group:
    """Lumps grown together first, then joined to the body.

    blend   width of the joint at `joint`, m
    joint   where it joins; the blend fades with the distance from there, so that a hanging arm is
            not webbed to the flank
    reach   distance over which it fades, m; 0 keeps it everywhere
    """

    lumps: tuple[Lump, ...]
    blend: float = 0.1
    joint: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reach: float = 0.0
    least: float = 0.012

    def mirrored(self) -> Group:
        """The group on the other side."""
        joint = (-self.joint[0], *self.joint[1:])
        return replace(self, lumps=tuple(lump.mirrored() for lump in self.lumps), joint=joint)

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(n,) distance from the lumps of the group."""
        distance = np.full(len(points), OUTSIDE)
        for lump in self.lumps:
            near = lump.near(points, max(lump.blend, self.blend) + BAND)
            combine = smooth_cut if lump.cut else smooth_union
            distance[near] = combine(distance[near], lump.distance(points[near]), lump.blend)
        return distance

    def blend_at(self, points: np.ndarray) -> np.ndarray:
        """(n,) width of the joint at `points`, m."""
        if self.reach == 0.0:
            return np.full(len(points), self.blend)
        away = ((points - np.array(self.joint)) ** 2).sum(axis=1) / self.reach**2
        return self.least + (self.blend - self.least) * np.exp(-away)


@dataclass(frozen=True)
class Sculpture:
    """A body of groups, joined in their order."""

    groups: tuple[Group, ...]

    @property
    def lumps(self) -> list[Lump]:
        """All lumps that were added, none that were cut away."""
        return [lump for group in self.groups for lump in group.lumps if not lump.cut]

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners of a box around all lumps, m."""
        boxes = [lump.box for lump in self.lumps]
        return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(n,) distance of `points` (n, 3), m, from the body, negative inside."""
        distance = self.groups[0].distance(points)
        for group in self.groups[1:]:
            other = group.distance(points)
            near = np.nonzero(other < OUTSIDE)[0]
            width = group.blend_at(points[near])
            distance[near] = width * smooth_union(distance[near] / width, other[near] / width, 1.0)
        return distance


def both_sides(groups: Sequence[Group]) -> list[Group]:
    """The groups, each followed by its mirror image."""
    return [side for group in groups for side in (group, group.mirrored())]


def both(*lumps: Lump) -> list[Lump]:
    """The lumps, each followed by its mirror image."""
    return [side for lump in lumps for side in (lump, lump.mirrored())]


@njit(cache=True)
def _ellipsoid(points: np.ndarray, centre: np.ndarray, axes: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """(n,) nearly the distance: exact at the surface, and of slope 1 there."""
    distances = np.empty(points.shape[0])
    for n in range(points.shape[0]):
        x, y, z = points[n, 0] - centre[0], points[n, 1] - centre[1], points[n, 2] - centre[2]
        squared, slope = 0.0, 0.0
        for d in range(3):
            along = (x * axes[0, d] + y * axes[1, d] + z * axes[2, d]) / radii[d]
            squared += along * along
            slope += (along / radii[d]) ** 2
        reach = np.sqrt(squared)
        distances[n] = reach * (reach - 1.0) / np.sqrt(slope) if slope > 1e-18 else -radii.min()
    return distances


@njit(cache=True)
def _inside(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Indices of the points in a box."""
    found = np.empty(points.shape[0], np.int64)
    count = 0
    for n in range(points.shape[0]):
        inside = True
        for d in range(3):
            inside = inside and low[d] <= points[n, d] <= high[d]
        if inside:
            found[count] = n
            count += 1
    return found[:count]
