"""An arched timber footbridge of twenty metres between two stone abutments."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from softrig.bodies.soup import AnchorBox, Colour, Piece, Soup, pour
from softrig.bodies.sweeps import beam, block, ellipse, rounded_rectangle, sweep

HALF_SPAN = 10.0
RESOLUTION = 102
CUBE = 2.0 * HALF_SPAN / RESOLUTION
HALF_WIDTH = 5.0 * CUBE
"""The deck is ten cubes wide, and what runs lengthwise straddles a plane of the grid: two cubes
thick in the simulation, slender in the picture."""
SIDE = HALF_WIDTH - CUBE
DECK_RISE = 1.25
FOOT = -1.9
RAIL_HEIGHT = 1.12

OAK: Colour = (0.58, 0.40, 0.24)
LARCH: Colour = (0.72, 0.53, 0.34)
IRON: Colour = (0.20, 0.27, 0.29)
STONE: Colour = (0.62, 0.60, 0.56)


def footbridge() -> Soup:
    """The bridge: x along it, y across, deck ends at z = 0; held at both abutments."""
    pieces = [*_deck(), *_ribs(), *_railings(), *_abutments()]
    reach = HALF_SPAN - 2.5 * CUBE
    anchors = [
        AnchorBox((reach, -2.0, FOOT - 1.0), (HALF_SPAN + 1.0, 2.0, 0.0)),
        AnchorBox((-HALF_SPAN - 1.0, -2.0, FOOT - 1.0), (-reach, 2.0, 0.0)),
    ]
    return pour("footbridge", pieces, anchors, RESOLUTION)


def _deck_height(x: np.ndarray) -> np.ndarray:
    """Top of the deck: a parabola, flat enough to walk on."""
    return DECK_RISE * (1.0 - (x / HALF_SPAN) ** 2)


def _rib_height(x: np.ndarray) -> np.ndarray:
    """Axis of the arch ribs: from the feet of the abutments up to the deck at midspan."""
    crown = DECK_RISE - 0.38
    return FOOT + 0.25 + (crown - FOOT - 0.25) * (1.0 - (x / HALF_SPAN) ** 2)


def _along(height: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return np.stack([x, np.full_like(x, y), height], axis=1)


def _shaded(colour: Colour, amount: float) -> Colour:
    red, green, blue = (float(np.clip(channel * (1.0 + amount), 0.0, 1.0)) for channel in colour)
    return red, green, blue


def _deck() -> list[Piece]:
    """Planks across, each of its own shade, on two stringers and a middle one."""
    count = 100
    edges = np.linspace(-HALF_SPAN, HALF_SPAN, count + 1)
    shades = np.random.default_rng(7).uniform(-0.14, 0.10, count)
    pieces = []
    for left, right, shade in zip(edges[:-1], edges[1:], shades, strict=True):
        x = np.array([left + 0.012, right - 0.012])
        top = _deck_height(x)
        slope = np.array([x[1] - x[0], 0.0, top[1] - top[0]])
        upward = np.array([-slope[2], 0.0, slope[0]]) / np.linalg.norm(slope)
        middle = np.array([x.mean(), 0.0, top.mean()]) - 0.04 * upward
        reach = np.array([0.0, HALF_WIDTH, 0.0])
        width, colour = float(np.linalg.norm(slope)), _shaded(LARCH, float(shade))
        pieces.append(beam(middle - reach, middle + reach, width, 0.08, colour, pieces=8, up=upward))
    x = np.linspace(-HALF_SPAN + 0.05, HALF_SPAN - 0.05, 121)
    for y in (-SIDE, 0.0, SIDE):
        section = rounded_rectangle(0.20, 0.24, 0.03)
        pieces.append(sweep(_along(_deck_height(x) - 0.2, x, y), section, OAK))
    return pieces


def _ribs() -> list[Piece]:
    """Two arched ribs under the stringers, struts between them, and the posts that carry the deck."""
    x = np.linspace(-HALF_SPAN + 0.1, HALF_SPAN - 0.1, 161)
    section = rounded_rectangle(0.22, 0.32, 0.04)
    pieces = [sweep(_along(_rib_height(x), x, y), section, IRON) for y in (-SIDE, SIDE)]
    for station in np.arange(-8, 9) * HALF_SPAN / 8.6:
        at = np.array([station])
        low, high = float(_rib_height(at)[0]), float(_deck_height(at)[0]) - 0.2
        for y in (-SIDE, SIDE) if high - low > 0.45 else ():
            foot, head = (station, y, low), (station, y, high)
            pieces.append(beam(foot, head, 0.16, 0.16, IRON, pieces=6, up=(0, 1, 0)))
        pieces.append(beam((station, -SIDE, low), (station, SIDE, low), 0.14, 0.14, IRON, pieces=8))
    return pieces


def _railings() -> list[Piece]:
    """Posts with round caps, a handrail and a slender middle rail on either side."""
    x = np.linspace(-HALF_SPAN + 0.1, HALF_SPAN - 0.1, 201)
    pieces = []
    for y in (-SIDE, SIDE):
        top = _along(_deck_height(x) + RAIL_HEIGHT, x, y)
        pieces.append(sweep(top, ellipse(0.17, 0.13, 16), OAK))
        middle = _along(_deck_height(x) + 0.58 * RAIL_HEIGHT, x, y)
        pieces.append(sweep(middle, ellipse(0.06, 0.06, 12), IRON))
        for station in np.linspace(-HALF_SPAN + 0.16, HALF_SPAN - 0.16, 15):
            foot = float(_deck_height(np.array([station]))[0])
            start, end = (station, y, foot - 0.3), (station, y, foot + RAIL_HEIGHT)
            pieces.append(beam(start, end, 0.13, 0.13, OAK, pieces=8, up=(0, 1, 0)))
    return pieces


def _abutments() -> list[Piece]:
    """Courses of stone at both ends, the joints of one course over the middles of the next."""
    courses = 5
    depth = 3.0 * CUBE
    low, high = FOOT - 0.25, -0.12
    step = (high - low) / courses
    shades = iter(np.random.default_rng(3).uniform(-0.12, 0.12, 100))
    pieces = []
    for course in range(courses):
        cuts = [-1.0, -0.33, 0.33, 1.0] if course % 2 == 0 else [-1.0, -0.6, 0.0, 0.6, 1.0]
        for left, right in pairwise(cuts):
            for end in (-1.0, 1.0):
                x = sorted((end * (HALF_SPAN - depth), end * HALF_SPAN))
                corner = (x[0], left * HALF_WIDTH, low + course * step)
                opposite = (x[1], right * HALF_WIDTH, low + (course + 1) * step)
                pieces.append(block(corner, opposite, _shaded(STONE, float(next(shades)))))
    return pieces
