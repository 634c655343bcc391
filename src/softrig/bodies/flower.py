"""A flower in twelve domains, in the likeness of SUB11's: stem, bloom, petals, leaves, a side stem and its bloom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline

from softrig.bodies.divided import (
    Brickwork,
    DividedBody,
    arc,
    blade_rows,
    frames_along,
    round_section,
    tube_rings,
)
from softrig.bodies.soup import Colour

SEED = 11

# The whole flower sways about once a second, its side stem twice, leaves and petals flutter two or three times: with
# one stiffness for all, only the stem would be seen to bend.
YOUNG = (4e7, 2e6, 4e6, 4e5, 1.5e6, 1.2e6, 3e5, 1.4e5, 1.4e5, 1.4e5, 1.4e5, 1.4e5)
"""Of each domain, Pa."""
POISSON = 0.35
DENSITY = 500.0
"""kg/m³."""

STEM_STOPS = (0.0, 0.103, 0.109, 0.163, 0.169, 0.223, 0.229, 0.235, 0.400)
"""Heights where the stem must have a section, metres: where it ends and where something grows out of its side."""
STEM_SPACING = 0.0092
"""At most so far apart are its sections, metres."""

STEM_BEND = (
    (0.0, 0.0, 0.0),
    (0.10, -0.004, 0.002),
    (0.23, -0.012, 0.006),
    (0.34, -0.020, 0.000),
    (0.40, -0.034, -0.012),
)
"""Height, x and y of the stem's axis, metres."""

# Rows of a bloom's core above the stem's end: height and radius, metres. Petals grow out between the second and the
# third of them, the inner ones out between the fourth and the fifth.
CORE = ((0.006, 0.0085), (0.013, 0.0150), (0.020, 0.0165), (0.027, 0.0170), (0.033, 0.0170), (0.038, 0.0135))
SIDE_CORE = ((0.004, 0.0065), (0.009, 0.0085), (0.014, 0.0085), (0.018, 0.0085), (0.022, 0.0078), (0.025, 0.0058))
OUTER_ROW, INNER_ROW = 2, 4

GREEN: Colour = (0.33, 0.52, 0.22)
DARK_GREEN: Colour = (0.20, 0.40, 0.17)
LIGHT_GREEN: Colour = (0.47, 0.66, 0.29)
YELLOW: Colour = (0.95, 0.76, 0.20)
AMBER: Colour = (0.80, 0.50, 0.13)
PINK: Colour = (0.93, 0.52, 0.66)
DEEP_PINK: Colour = (0.75, 0.18, 0.42)
PALE_PINK: Colour = (0.98, 0.80, 0.86)
VIOLET: Colour = (0.62, 0.46, 0.83)
DEEP_VIOLET: Colour = (0.38, 0.22, 0.62)

NAMES = ("stem", "bloom", "side stem", "side bloom", "left leaf", "right leaf", "side leaf",
         *(f"petal {i + 1}" for i in range(5)))  # fmt: skip
STEM, BLOOM, SIDE_STEM, SIDE_BLOOM, LEFT_LEAF, RIGHT_LEAF, SIDE_LEAF, FIRST_PETAL = range(8)


def flower() -> DividedBody:
    """The flower: half a metre tall, rooted at z = 0, where it is held; the blooms look towards -y."""
    work = Brickwork()
    random = np.random.default_rng(SEED)
    stem = _stem(work)
    _bloom(work, stem, random)
    _leaf(work, _bud(work, stem, stem.row(0.103), 5, 1, STEM), LEFT_LEAF, length=0.205, width=0.027, rise=(0.95, -0.55))
    _leaf(
        work, _bud(work, stem, stem.row(0.163), 0, 1, STEM), RIGHT_LEAF, length=0.180, width=0.024, rise=(1.05, -0.35)
    )
    _side_stem(work, _bud(work, stem, stem.row(0.223), 8, 2, STEM), random)
    mesh, domains, colours = work.finished()
    fixed = np.zeros(len(mesh.vertices), np.bool_)
    fixed[stem.numbers[0]] = True
    return DividedBody("flower", mesh, domains, NAMES, fixed, np.array(YOUNG), POISSON, DENSITY, colours)


@dataclass(frozen=True)
class _Tube:
    """A tube as laid: where its sections and its sides are."""

    numbers: np.ndarray
    """(n, m) vertices of the sections."""
    rim: np.ndarray
    """(sides,) which of a section's are on its rim."""
    path: np.ndarray
    """(n, 3) metres."""
    frames: np.ndarray
    """(n, 3, 3) rows across, over, along."""

    def row(self, height: float) -> int:
        """The section next to `height`, metres."""
        return int(np.argmin(np.abs(self.path[:, 2] - height)))

    def patch(self, row: int, side: int, wide: int, high: int) -> np.ndarray:
        """(wide + 1, high + 1) vertices on the rim: `wide` sides around and `high` rows along."""
        sides = self.rim[(side + np.arange(wide + 1)) % len(self.rim)]
        return self.numbers[row : row + high + 1, sides].T


@dataclass(frozen=True)
class _Bud:
    """A patch something grows out of: where, and which way."""

    patch: np.ndarray
    """(a, b) vertices, across the tube and along it."""
    place: np.ndarray
    """(3,) its middle, metres."""
    outward: np.ndarray
    """(3,) unit vector away from the tube."""
    up: np.ndarray
    """(3,) unit vector along the tube."""

    @property
    def across(self) -> np.ndarray:
        """(3,) unit vector around the tube."""
        return np.cross(self.up, self.outward)


def _stem(work: Brickwork) -> _Tube:
    section = round_section(5, ring=True)
    heights = np.concatenate([np.linspace(low, high, int(np.ceil((high - low) / STEM_SPACING - 1e-9)), endpoint=False)
                              for low, high in pairwise(STEM_STOPS)] + [STEM_STOPS[-1:]])  # fmt: skip
    knots = np.array(STEM_BEND)
    path = np.column_stack([CubicSpline(knots[:, 0], knots[:, 1:])(heights), heights])
    frames = frames_along(path, np.array([1.0, 0.0, 0.0]))
    radii = 0.0075 - 0.0015 * heights / heights[-1] + 0.009 * np.exp(-heights / 0.014)
    rings = tube_rings(path, frames, radii, section)
    rings[0, :, 2] = 0.0  # the ground is level
    fresh = np.linspace(0.0, 1.0, len(path))[:, None, None]
    colours = np.broadcast_to((1.0 - fresh) * np.array(DARK_GREEN) + fresh * np.array(GREEN), rings.shape)
    first = work.add(rings[0], colours[0])
    numbers = work.tube(first, section.quads, rings[1:], STEM, colours[1:])
    return _Tube(numbers, section.rim, path, frames)


def _patch_bud(work: Brickwork, tube: _Tube, row: int, side: int, wide: int, high: int) -> _Bud:
    patch = tube.patch(row, side, wide, high)
    place = work.place(patch).mean(axis=(0, 1))
    up = tube.frames[row : row + high + 1, 2].mean(axis=0)
    up /= np.linalg.norm(up)
    outward = place - tube.path[row : row + high + 1].mean(axis=0)
    outward -= (outward @ up) * up
    return _Bud(patch, place, outward / np.linalg.norm(outward), up)


def _bud(work: Brickwork, tube: _Tube, row: int, side: int, high: int, domain: int, size: float = 0.0042) -> _Bud:
    """Two sides wide and `high` rows high, carried out of the tube onto a plane: there another domain may begin."""
    bud = _patch_bud(work, tube, row, side, 2, high)
    rising = 0.75 * bud.outward + 0.66 * bud.up
    over = np.cross(rising, bud.across)
    place = bud.place + 0.007 * rising
    x, y = np.meshgrid([-1.0, 0.0, 1.0], np.linspace(-1.0, 1.0, high + 1), indexing="ij")
    plane = place + size * (x[..., None] * bud.across + 0.8 * y[..., None] * over)
    carried = work.blade(bud.patch, plane[None], domain, GREEN, stalk_rows=0)[1]
    return _Bud(carried, place, bud.outward, bud.up)


def _leaf(work: Brickwork, bud: _Bud, domain: int, *, length: float, width: float, rise: tuple[float, float]) -> None:
    """A long leaf that rises out of its bud and arches over; `rise` is its slope at both ends, radians."""
    count, stalk_rows = 16, 3
    along = np.arange(1, count + 1) / count
    path = arc(bud.place, bud.outward, bud.up, rise[0] + (rise[1] - rise[0]) * along, np.full(count, length / count))
    frames = frames_along(path, bud.across)
    blade = np.clip((np.arange(count) - stalk_rows) / (count - 1.0 - stalk_rows), 0.0, 1.0)
    half_widths = np.interp(blade, [0.0, 1.0], [0.0065, 0.0050]) + width * np.sin(np.pi * blade**0.75)
    half_widths[:stalk_rows] = 0.0038
    thicknesses = np.interp(along, [0.0, 0.2, 1.0], [0.0062, 0.0044, 0.0036])
    rows = blade_rows(path, frames, half_widths, thicknesses, across=4, stalk=2, layers=1, stalk_rows=stalk_rows,
                      cup=0.38 - 0.28 * along, swept=0.75 * along**3,
                      gathered=np.interp(blade, [0.0, 0.3], [0.6, 1.0]))  # fmt: skip
    middle = np.abs(np.linspace(-1.0, 1.0, 5))[None, :, None, None]
    colours = (1.0 - middle) * np.array(LIGHT_GREEN) + middle * np.array(GREEN)
    work.blade(bud.patch, rows, domain, np.broadcast_to(colours, rows.shape), stalk_rows=stalk_rows)


def _bloom(work: Brickwork, stem: _Tube, random: np.random.Generator) -> None:
    """The core on the stem's end, five petals that are domains of their own and five short ones that are not."""
    up = stem.frames[-1, 2] + np.array([0.18, -0.62, 0.0])
    core = _core(work, stem, up / np.linalg.norm(up), CORE, BLOOM, round_section(5, ring=True).quads)
    for i in range(5):
        bud = _patch_bud(work, core, OUTER_ROW, 2 * i, 1, 1)
        tilt = 0.42 + random.uniform(-0.07, 0.07)
        _petal(work, bud, FIRST_PETAL + i, length=0.092 * random.uniform(0.96, 1.05), width=0.048, count=9, across=7,
               rise=(tilt + 0.30, tilt - 0.80), tint=(DEEP_PINK, PINK, PALE_PINK), twist=0.28)  # fmt: skip
    for i in range(5):
        bud = _patch_bud(work, core, INNER_ROW, 2 * i + 1, 1, 1)
        tilt = 0.85 + random.uniform(-0.08, 0.08)
        _petal(work, bud, BLOOM, length=0.046, width=0.019, count=5, across=3, rise=(tilt, tilt - 0.1),
               tint=(DEEP_PINK, DEEP_PINK, PINK), twist=0.15)  # fmt: skip


def _core(
    work: Brickwork,
    tube: _Tube,
    up: np.ndarray,
    outline: tuple[tuple[float, float], ...],
    domain: int,
    quads: np.ndarray,
) -> _Tube:
    """A knob on the end of a tube that looks along `up`; green below, yellow on top."""
    heights, radii = np.array(outline).T
    section = round_section(5 if len(tube.rim) == 10 else 4, ring=len(tube.rim) == 10)
    path = tube.path[-1] + heights[:, None] * up
    # All sections look along `up`, so that the flat sides between them are flat.
    frames = np.repeat(frames_along(path, tube.frames[-1, 0])[:1], len(path), axis=0)
    rings = tube_rings(path, frames, radii, section)
    fill = (section.points**2).sum(axis=1)
    rings[-1] += (0.004 * (1.0 - fill))[:, None] * up
    ripe = np.clip((heights - heights[1]) / (heights[-2] - heights[1]), 0.0, 1.0)[:, None, None] ** 2
    colours = np.broadcast_to((1.0 - ripe) * np.array(GREEN) + ripe * np.array(AMBER), rings.shape).copy()
    colours[-1, fill < 0.9] = YELLOW
    numbers = work.tube(tube.numbers[-1], quads, rings, domain, colours)
    all_paths = np.vstack([tube.path[-1:], path])
    return _Tube(numbers, section.rim, all_paths, np.concatenate([frames[:1], frames]))


def _petal(
    work: Brickwork,
    bud: _Bud,
    domain: int,
    *,
    length: float,
    width: float,
    count: int,
    across: int,
    rise: tuple[float, float],
    tint: tuple[Colour, Colour, Colour],
    twist: float,
) -> None:
    """A round petal; `rise` is its slope at both ends and `twist` its turn about its middle, radians."""
    along = np.arange(1, count + 1) / count
    along[0] *= 0.35  # broad soon, so that hardly a gap is left beside the core
    slope = rise[0] * np.minimum(1.0, 2.5 * along) + (rise[1] - rise[0]) * along
    path = arc(bud.place, bud.outward, bud.up, slope, length * np.diff(along, prepend=0.0))
    frames = frames_along(path, bud.across)
    turn = twist * np.sqrt(along)
    side, over = frames[:, 0].copy(), frames[:, 1].copy()
    frames[:, 0] = np.cos(turn)[:, None] * side + np.sin(turn)[:, None] * over
    frames[:, 1] = np.cos(turn)[:, None] * over - np.sin(turn)[:, None] * side
    half_widths = width * np.interp(along, [0.0, 0.12, 0.2, 0.3, 0.55, 0.78, 0.9, 1.0],
                                    [0.2, 0.32, 0.52, 0.66, 0.92, 1.0, 0.95, 0.78])  # fmt: skip
    base = float(np.ptp(work.place(bud.patch) @ bud.up))
    thicknesses = np.interp(along, [0.0, 0.35, 1.0], [base, 0.0040, 0.0038])
    rows = blade_rows(path, frames, half_widths, thicknesses, across=across, stalk=1, layers=1, stalk_rows=0,
                      cup=0.16 * np.sqrt(along), swept=0.5 * along**2,
                      gathered=np.interp(along, [0.0, 0.5], [0.55, 1.0]))  # fmt: skip
    ramp = np.stack([np.interp(along, [0.0, 0.45, 1.0], [colour[i] for colour in tint]) for i in range(3)], axis=1)
    colours = np.broadcast_to(ramp[:, None, None], rows.shape)
    work.blade(bud.patch, rows, domain, colours, stalk_rows=0)


def _side_stem(work: Brickwork, bud: _Bud, random: np.random.Generator) -> None:
    """A thinner stem out of a bud, with a leaf at its side and a bloom at its end."""
    section = round_section(4, ring=False)
    directions = np.rint(section.points).astype(np.int64)
    start = bud.patch[1 + directions[:, 0], 1 + directions[:, 1]]
    steps = np.array([*[0.008] * 7, 0.006, 0.006, *[0.010] * 11])
    along = np.cumsum(steps) / steps.sum()
    path = arc(bud.place, bud.outward, bud.up, np.interp(along, [0.0, 0.45, 0.8, 1.0], [0.62, 0.66, 1.2, 1.3]), steps)
    frames = frames_along(path, bud.across)
    rings = tube_rings(path, frames, np.interp(along, [0.0, 0.2, 1.0], [0.0046, 0.0042, 0.0036]), section)
    numbers = work.tube(start, section.quads, rings, SIDE_STEM, GREEN)
    tube = _Tube(numbers, section.rim, np.vstack([bud.place[None], path]), np.concatenate([frames[:1], frames]))
    _leaf(
        work, _bud(work, tube, 7, 5, 1, SIDE_STEM, size=0.003), SIDE_LEAF, length=0.105, width=0.015, rise=(0.5, -0.8)
    )
    up = frames[-1, 2] + np.array([0.15, -0.25, 0.0])
    core = _core(work, tube, up / np.linalg.norm(up), SIDE_CORE, SIDE_BLOOM, section.quads)
    for i in range(8):
        inner = i % 2
        tilt = (0.75, 1.05)[inner] + random.uniform(-0.06, 0.06)
        bud = _patch_bud(work, core, (OUTER_ROW, INNER_ROW)[inner], i, 1, 1)
        _petal(work, bud, SIDE_BLOOM, length=(0.046, 0.034)[inner],
               width=(0.021, 0.014)[inner], count=4, across=3, rise=(tilt, tilt - 0.45),
               tint=(DEEP_VIOLET, VIOLET, VIOLET), twist=0.2)  # fmt: skip
