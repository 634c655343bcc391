"""An oak in the likeness of SUB11's: 41 wooden limbs of five shapes and 1,394 leaves of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from softrig.bodies.divided import (
    Brickwork,
    Limb,
    LimbShape,
    PlantedTree,
    blade_rows,
    frames_along,
    round_section,
    tube_rings,
)
from softrig.bodies.soup import Colour
from softrig.errors import InputError

SEED = 45
LEAVES = 1394
"""As many as SUB11's oak has."""
MOST_LEAVES = 100_000
"""More would be a mistake in the asking."""

GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))

BARK: Colour = (0.50, 0.41, 0.32)
DARK_BARK: Colour = (0.43, 0.35, 0.28)
YOUNG_BARK: Colour = (0.52, 0.44, 0.31)
LEAF_GREEN: Colour = (0.44, 0.62, 0.23)
RIB_GREEN: Colour = (0.62, 0.73, 0.36)
WOOD_DENSITY, LEAF_DENSITY = 700.0, 200.0
"""kg/m³."""

CROWN_MIDDLE, CROWN_REACH = np.array([0.0, 0.0, 3.35]), np.array([2.0, 2.0, 1.65])
"""The ellipsoid that the crown fills: its middle and half its axes, metres."""
FORK = np.array([0.0, 0.0, 2.3])
"""Leaves look away from here, metres."""


@dataclass(frozen=True)
class _Wood:
    """How a wooden limb is made: an axis that wanders sideways and a radius, both along it."""

    length: float
    """Metres."""
    radii: tuple[tuple[float, float], ...]
    """Place along the limb in 0 to 1, radius in metres."""
    bend: tuple[tuple[float, float, float], ...]
    """Place along the limb in 0 to 1, x and y of the axis in metres."""
    rows: int
    folds: int
    ring: bool
    young: float
    """Pa."""
    bark: tuple[Colour, Colour]
    """At the base and at the tip."""

    def path(self, along: np.ndarray | float) -> np.ndarray:
        """(…, 3) points of the axis, metres; it leaves the origin along z."""
        along = np.asarray(along, np.float64)
        return np.concatenate([self._sideways(along), (self.length * along)[..., None]], axis=-1)

    @cached_property
    def _sideways(self) -> CubicSpline:
        knots = np.array(self.bend)
        return CubicSpline(knots[:, 0], knots[:, 1:], bc_type=((1, np.zeros(2)), "not-a-knot"))

    def direction(self, along: float) -> np.ndarray:
        """(3,) unit vector along the axis."""
        ahead = self.path(min(along + 0.01, 1.0)) - self.path(max(along - 0.01, 0.0))
        return ahead / np.linalg.norm(ahead)

    def across(self, along: float) -> np.ndarray:
        """(2, 3) unit vectors across the axis and each other."""
        x, y, z = self.direction(along)
        side = np.array([1.0 - x * x, -x * y, -x * z]) / np.sqrt(1.0 - x * x)
        return np.stack([side, np.cross((x, y, z), side)])

    def radius(self, along: np.ndarray | float) -> np.ndarray:
        """Metres."""
        places, radii = np.array(self.radii).T
        return np.interp(along, places, radii)


# Under what they carry all sway about 1.2 to 1.5 times a second, twice that when bare: wood is a hundred times as
# stiff, but then nobody would see it sway.
WOOD = {
    "trunk": _Wood(2.10, ((0.0, 0.36), (0.04, 0.285), (0.11, 0.23), (0.5, 0.185), (0.9, 0.150), (1.0, 0.11)),
                   ((0.0, 0.0, 0.0), (0.35, 0.05, -0.03), (0.7, -0.02, 0.03), (1.0, 0.07, 0.05)),
                   24, 5, True, 1.3e7, (DARK_BARK, BARK)),
    "bough": _Wood(1.42, ((0.0, 0.108), (0.08, 0.086), (0.6, 0.056), (0.95, 0.036), (1.0, 0.022)),
                   ((0.0, 0.0, 0.0), (0.3, 0.04, -0.05), (0.65, 0.18, 0.02), (1.0, 0.32, -0.05)),
                   20, 4, True, 1e7, (BARK, BARK)),
    "crooked bough": _Wood(1.32, ((0.0, 0.104), (0.08, 0.083), (0.6, 0.054), (0.95, 0.035), (1.0, 0.022)),
                           ((0.0, 0.0, 0.0), (0.25, -0.09, 0.05), (0.55, 0.06, 0.12), (1.0, 0.26, 0.02)),
                           18, 4, True, 1e7, (BARK, BARK)),
    "branch": _Wood(1.15, ((0.0, 0.038), (0.08, 0.031), (0.6, 0.022), (0.95, 0.014), (1.0, 0.009)),
                    ((0.0, 0.0, 0.0), (0.3, 0.05, 0.02), (0.6, 0.02, 0.08), (1.0, 0.16, 0.05)),
                    24, 4, False, 2e7, (BARK, YOUNG_BARK)),
    "twig": _Wood(0.85, ((0.0, 0.0175), (0.08, 0.0145), (0.6, 0.0105), (0.95, 0.0085), (1.0, 0.007)),
                  ((0.0, 0.0, 0.0), (0.3, -0.03, 0.02), (0.6, 0.04, 0.05), (1.0, 0.10, -0.02)),
                  28, 4, False, 6e7, (BARK, YOUNG_BARK)),
}  # fmt: skip

LEAF_LENGTH = 0.30
STALK_ROWS, LOBES, LOBE_ROWS = 3, 4, 5
"""Rows of cells in the leaf's stalk, pairs of lobes (the last is the tip), rows of cells in each."""
STALK = 0.16
"""Its part of the length."""
STALK_SIZE = (0.0030, 0.0022)
"""Half its width and half its thickness where it is held, metres."""
# Half width of the blade without its bays: place along it in 0 to 1, metres.
LEAF_OUTLINE = ((0.0, 0.010), (0.15, 0.042), (0.4, 0.062), (0.65, 0.078), (0.85, 0.070), (0.93, 0.056),
                (1.0, 0.018))  # fmt: skip
LEAF_YOUNG = 8e6
"""Pa: leaves flutter two or three times a second."""


@dataclass(frozen=True)
class _Growth:
    """What grows out of each limb of one kind, from the places `along` of them, 0 to 1."""

    shapes: tuple[str, ...]
    along: tuple[float, ...]
    lean: tuple[float, float]
    """Angle with the parent's axis from its first child to its last, radians."""
    scale: tuple[float, float]
    rise: float
    """How much is added of the way up, in parts of the way it would grow by itself."""


# 1 + 5 + 5·3 + 15·1 + 5·1 = 41 wooden limbs.
BOUGHS = _Growth(("bough", "crooked bough", "bough", "crooked bough", "bough"), (0.60, 0.71, 0.82, 0.91, 0.955),
                 (1.25, 0.35), (1.15, 1.05), 0.0)  # fmt: skip
BRANCHES = _Growth(("branch",), (0.40, 0.66, 0.88), (1.15, 0.80), (1.08, 0.90), 0.0)
TWIGS = _Growth(("twig",), (0.55,), (1.0, 1.0), (1.05, 1.05), 0.05)
BOUGH_TWIGS = _Growth(("twig",), (0.97,), (0.3, 0.3), (1.1, 1.1), 0.05)
LAST_LEAF = 0.985
"""Place along a limb up to which it has leaves, 0 to 1: their bases are in its wood."""
TRIES = 40
"""Ways a limb might grow, of which it takes the one with the most room."""
SAMPLES = np.linspace(0.3, 1.0, 8)
"""Places along a limb that ask for room, 0 to 1."""
THINNER = 0.82
"""Radius of a limb's base in radii of the wood it grows from, at most."""


def oak(*, leaves: int = LEAVES) -> PlantedTree:
    """The oak: four and a half metres tall, rooted at z = 0, with `leaves` leaves on its outer limbs (0: in winter)."""
    if not isinstance(leaves, int | np.integer) or isinstance(leaves, bool) or not 0 <= leaves <= MOST_LEAVES:
        raise InputError(f"leaves must be a whole number within 0 and {MOST_LEAVES:,}, not {leaves!r}")
    shapes = {name: _wooden_shape(wood) for name, wood in WOOD.items()}
    shapes["leaf"] = _leaf_shape()
    tree = _Planting(np.random.default_rng(SEED))
    trunk = tree.plant_root("trunk")
    boughs = tree.grow([trunk], BOUGHS)
    branches = tree.grow(boughs, BRANCHES)
    tree.grow(branches, TWIGS)
    tree.grow(boughs, BOUGH_TWIGS)
    tree.leaf_out(int(leaves))
    return PlantedTree("oak", shapes, tuple(tree.limbs))


def _wooden_shape(wood: _Wood) -> LimbShape:
    section = round_section(wood.folds, ring=wood.ring)
    along = np.linspace(0.0, 1.0, wood.rows + 1)
    path = wood.path(along)
    frames = frames_along(path, np.array([1.0, 0.0, 0.0]))
    frames[0] = np.eye(3)
    rings = tube_rings(path, frames, wood.radius(along), section)
    fresh = along[:, None, None]
    colours = np.broadcast_to((1.0 - fresh) * np.array(wood.bark[0]) + fresh * np.array(wood.bark[1]), rings.shape)
    work = Brickwork()
    first = work.add(rings[0], colours[0])
    work.tube(first, section.quads, rings[1:], 0, colours[1:])
    return _finished(work, first, wood.young, WOOD_DENSITY)


def _leaf_shape() -> LimbShape:
    """A lobed blade, folded a little along its rib and arched back; its upper side looks along +y."""
    blade = np.arange(LOBES * LOBE_ROWS + 1)[1:] / (LOBES * LOBE_ROWS)
    along = np.concatenate([STALK * np.arange(1, STALK_ROWS + 1) / STALK_ROWS, STALK + (1.0 - STALK) * blade])
    bays = 0.58 + 0.42 * np.abs(np.sin(np.pi * LOBES * blade)) ** 0.6
    bays[blade > 1.0 - 0.5 / LOBES] = 1.0  # the tip is round
    outline = np.interp(blade, *np.array(LEAF_OUTLINE).T)
    half_widths = np.concatenate([np.full(STALK_ROWS, STALK_SIZE[0]), bays * outline])
    thicknesses = np.interp(along, [0.0, STALK, 1.0], [2.0 * STALK_SIZE[1], 0.0040, 0.0024])
    arched = -0.14 * LEAF_LENGTH * along**2
    path = np.column_stack([np.zeros(len(along)), arched, LEAF_LENGTH * along])
    whole = np.vstack([np.zeros((1, 3)), path])
    frames = frames_along(whole, np.array([1.0, 0.0, 0.0]))[1:]
    rows = blade_rows(path, frames, half_widths, thicknesses, across=4, stalk=2, layers=1, stalk_rows=STALK_ROWS,
                      cup=0.22, swept=-0.20 + 0.35 * along**4)  # fmt: skip
    x, y = np.meshgrid(STALK_SIZE[0] * np.array([-1.0, 0.0, 1.0]), STALK_SIZE[1] * np.array([-1.0, 1.0]), indexing="ij")
    colours = np.broadcast_to(np.array(LEAF_GREEN), rows.shape).copy()
    colours[:, 2] = RIB_GREEN
    work = Brickwork()
    first = work.add(np.stack([x, y, np.zeros_like(x)], axis=-1), RIB_GREEN)
    work.blade(first, rows, 0, colours, stalk_rows=STALK_ROWS)
    return _finished(work, first, LEAF_YOUNG, LEAF_DENSITY)


def _finished(work: Brickwork, base: np.ndarray, young: float, density: float) -> LimbShape:
    mesh, _, colours = work.finished()
    held = np.zeros(len(mesh.vertices), np.bool_)
    held[base] = True
    return LimbShape(mesh, held, young, 0.3, density, colours)


@dataclass
class _Planting:
    """The tree as far as it has grown, with where its limbs stand."""

    random: np.random.Generator
    limbs: list[Limb] = field(default_factory=list)
    origins: list[np.ndarray] = field(default_factory=list)
    """Metres."""
    turns: list[np.ndarray] = field(default_factory=list)
    """From the limbs' own axes to the world's."""
    wood: list[np.ndarray] = field(default_factory=list)
    """Points within the wooden limbs, metres."""

    def plant_root(self, shape: str) -> int:
        """The number of the limb that stands on the ground."""
        root = Limb(shape, -1, np.zeros(3), np.eye(3), 1.0)
        self.wood.append(WOOD[shape].path(SAMPLES))
        return self._plant(root, np.zeros(3), np.eye(3))

    def _plant(self, limb: Limb, origin: np.ndarray, turn: np.ndarray) -> int:
        self.limbs.append(limb)
        self.origins.append(origin)
        self.turns.append(turn)
        return len(self.limbs) - 1

    def grow(self, parents: list[int], growth: _Growth) -> list[int]:
        """Children of every one of `parents`, each where it finds room; their numbers."""
        children = []
        for i, along in enumerate(growth.along):
            part = i / max(len(growth.along) - 1, 1)
            lean = float(np.interp(part, [0.0, 1.0], growth.lean))
            shape = growth.shapes[i % len(growth.shapes)]
            for parent in parents:
                scale = np.interp(part, [0.0, 1.0], growth.scale) * self.random.uniform(0.92, 1.08)
                children.append(self._child(parent, shape, along, lean, float(scale), growth.rise))
        return children

    def _child(self, parent: int, shape: str, along: float, lean: float, scale: float, rise: float) -> int:
        """A wooden limb out of the parent's axis, so that its base is hidden in the parent's wood."""
        wood = WOOD[self.limbs[parent].shape]
        parent_radius = self.limbs[parent].scale * float(wood.radius(along))
        scale = min(scale, THINNER * parent_radius / float(WOOD[shape].radius(0.0)))
        ahead, across = wood.direction(along), wood.across(along)
        at = wood.path(along)
        origin = self._world(parent, at)
        others = np.concatenate(self.wood)
        limb_points = scale * WOOD[shape].path(SAMPLES)
        best, most = np.eye(3), -np.inf
        for azimuth in 2.0 * np.pi * (np.arange(TRIES) + self.random.uniform()) / TRIES:
            tilt = lean + self.random.uniform(-0.35, 0.35)
            sideways = np.cos(azimuth) * across[0] + np.sin(azimuth) * across[1]
            direction = self.turns[parent] @ (np.cos(tilt) * ahead + np.sin(tilt) * sideways)
            direction = direction + np.array([0.0, 0.0, rise])
            direction[2] = max(direction[2], 0.08)  # an oak's limbs hardly hang
            # Shapes bend towards their +x: that way up, more or less, as wood grows to the light.
            turn = _turn_to(direction, self.random.uniform(-1.0, 1.0))
            room = _room(origin + limb_points @ turn.T, others)
            if room > most:
                best, most = turn, room
        self.wood.append(origin + limb_points @ best.T)
        return self._plant(Limb(shape, parent, at, self.turns[parent].T @ best, scale), origin, best)

    def _world(self, limb: int, place: np.ndarray) -> np.ndarray:
        return self.origins[limb] + self.turns[limb] @ (self.limbs[limb].scale * place)

    @staticmethod
    def _outward(place: np.ndarray) -> np.ndarray:
        """(3,) unit vector out of the crown at `place` (3,), metres."""
        away = place - FORK
        return away / max(float(np.linalg.norm(away)), 1e-9)

    def leaf_out(self, count: int) -> None:
        """`count` leaves: the thinner a limb, the farther down it has leaves and the more of them."""
        bare = {"bough": (0.45, 0.6), "crooked bough": (0.45, 0.6), "branch": (0.22, 1.0), "twig": (0.10, 1.15)}
        wooden = [i for i, limb in enumerate(self.limbs) if limb.shape in bare]
        reach = [(1.0 - bare[self.limbs[i].shape][0]) * WOOD[self.limbs[i].shape].length * self.limbs[i].scale
                 * bare[self.limbs[i].shape][1] for i in wooden]  # fmt: skip
        ends = np.rint(count * np.cumsum([0.0, *reach]) / np.sum(reach)).astype(np.int64)
        for i, many in zip(wooden, np.diff(ends), strict=True):
            azimuth = self.random.uniform(0.0, 2.0 * np.pi)
            start = bare[self.limbs[i].shape][0]
            for number in range(many):
                along = start + (LAST_LEAF - start) * ((number + 0.5) / many) ** 0.8
                azimuth += GOLDEN_ANGLE
                self._leaf(i, float(along), azimuth + self.random.uniform(-0.3, 0.3))

    def _leaf(self, parent: int, along: float, azimuth: float) -> None:
        """A leaf on the parent's bark that points ahead and out, its upper side to the sky."""
        wood = WOOD[self.limbs[parent].shape]
        ahead = wood.direction(along)
        across = wood.across(along)
        sideways = np.cos(azimuth) * across[0] + np.sin(azimuth) * across[1]
        scale = float(self.random.uniform(0.85, 1.35))
        # So far below the bark that the whole base of the stalk is in the wood.
        base = float(np.hypot(*STALK_SIZE)) * scale / self.limbs[parent].scale
        at = wood.path(along) + max(0.85 * float(wood.radius(along)) - base, 0.0) * sideways
        origin = self._world(parent, at)
        lean = np.interp(along, [0.0, 0.9, 1.0], [1.25, 1.05, 0.4]) + self.random.uniform(-0.3, 0.3)
        grown = self.turns[parent] @ (np.cos(lean) * ahead + np.sin(lean) * sideways)
        direction = grown + 0.3 * self._outward(origin) + 0.28 * self.random.standard_normal(3)
        direction /= np.linalg.norm(direction)
        sky = np.array([0.0, 0.0, 1.0]) + 0.5 * self._outward(origin) + 0.35 * self.random.standard_normal(3)
        x_axis = np.cross(sky, direction)
        x_axis /= np.linalg.norm(x_axis)
        turn = np.column_stack([x_axis, np.cross(direction, x_axis), direction])
        self._plant(Limb("leaf", parent, at, self.turns[parent].T @ turn, scale), origin, turn)


def _room(points: np.ndarray, others: np.ndarray) -> float:
    """How far `points` (n, 3) are from `others` (m, 3) on average, less what they stand out of the crown, metres."""
    apart = np.linalg.norm(points[:, None] - others, axis=-1).min(axis=1)
    outside = np.linalg.norm((points - CROWN_MIDDLE) / CROWN_REACH, axis=1) - 1.0
    return float((apart - 4.0 * np.maximum(outside, 0.0)).mean())


def _turn_to(direction: np.ndarray, roll: float) -> np.ndarray:
    """(3, 3) a rotation that takes z to `direction` (3,) and x as far up as can be but for a `roll`, radians."""
    ahead = direction / np.linalg.norm(direction)
    over = frames_along(np.array([np.zeros(3), ahead]), np.array([1e-3, 0.0, 1.0]))[0, 0]
    side = np.cross(ahead, over)
    return np.column_stack(
        [np.cos(roll) * over + np.sin(roll) * side, np.cos(roll) * side - np.sin(roll) * over, ahead]
    )
