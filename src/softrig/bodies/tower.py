"""A lattice tower of three hundred metres: four curved legs, three platforms, a spire."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.interpolate import PchipInterpolator

from softrig.bodies.soup import AnchorBox, Colour, Piece, Soup, pour
from softrig.bodies.sweeps import beam, block, ellipse, rounded_rectangle, sweep

HEIGHT = 300.0
RESOLUTION = 116
CUBE = HEIGHT / RESOLUTION

FIRST, SECOND, THIRD = 57.0, 116.0, 268.0
"""Heights of the platforms, metres."""

# Half the tower's width and the width of one leg against height, metres; logarithms are
# interpolated, which gives the tower its exponential sweep.
OUTLINE = ((0.0, 58.0), (FIRST, 31.5), (SECOND, 15.5), (180.0, 7.8), (THIRD, 4.4), (HEIGHT, 4.0))
LEG = ((0.0, 13.5), (FIRST, 10.0), (SECOND, 7.5), (HEIGHT, 7.0))

BRONZE: Colour = (0.50, 0.37, 0.26)
LIGHT_BRONZE: Colour = (0.60, 0.46, 0.33)
DARK_BRONZE: Colour = (0.36, 0.27, 0.20)
STONE: Colour = (0.66, 0.63, 0.57)


def tower() -> Soup:
    """The tower: centred on the z axis, feet at z = 0, where it is held."""
    pieces = [*_legs(), *_spire(), *_arches(), *_platforms(), *_feet(), *_top()]
    ground = AnchorBox((-100.0, -100.0, -1.0), (100.0, 100.0, 1.5 * CUBE))
    return pour("tower", pieces, [ground], RESOLUTION)


def _at(knots: tuple[tuple[float, float], ...], z: np.ndarray | float) -> np.ndarray:
    heights, values = np.array(knots).T
    return np.exp(PchipInterpolator(heights, np.log(values))(z))


def _outer(z: np.ndarray | float) -> np.ndarray:
    """Distance of the axes of the outer chords from the tower's middle planes."""
    return _at(OUTLINE, z)


def _inner(z: np.ndarray | float) -> np.ndarray:
    """The same for the inner chords of a leg."""
    return _at(OUTLINE, z) - _at(LEG, z)


def _chord(z: np.ndarray) -> np.ndarray:
    """Thickness of the chords, metres: about one and a half cubes below, one above."""
    return np.interp(z, [0.0, SECOND, HEIGHT], [3.0, 2.5, 2.0])


def _four_times(pieces: list[Piece]) -> list[Piece]:
    """Pieces of the quarter x, y > 0 in all four."""
    halves = pieces + [piece.mirrored(0) for piece in pieces]
    return halves + [piece.mirrored(1) for piece in halves]


def _legs() -> list[Piece]:
    """Four legs of four chords, laced on every side, up to the second platform."""
    z = np.linspace(2.0, SECOND, 60)
    tracks = [(_outer, _outer), (_inner, _outer), (_inner, _inner), (_outer, _inner)]
    thickness = _chord(z)
    pieces = []
    for x_of, y_of in tracks:
        path = np.stack([x_of(z), y_of(z), z], axis=1)
        pieces.append(sweep(path, rounded_rectangle(1, 1, 0.15), BRONZE, up=(0, 1, 0), scale=thickness))
    levels = np.concatenate([np.linspace(3.0, FIRST, 6), np.linspace(FIRST, SECOND, 8)[1:]])
    for low, high in pairwise(levels):
        for side in range(4):
            left, right = tracks[side], tracks[(side + 1) % 4]
            corners = [np.array([f(h), g(h), h]) for h in (low, high) for f, g in (left, right)]
            pieces += _laced(np.array(corners), 1.7)
    return _four_times(pieces)


def _laced(corners: np.ndarray, size: float) -> list[Piece]:
    """A cross and the bar below it between `corners` (4, 3): two below, two above."""
    a, b, c, d = corners
    outward = np.cross(b - a, c - a)
    up = outward / np.linalg.norm(outward)
    return [
        beam(a, d, size, size, LIGHT_BRONZE, pieces=4, up=up),
        beam(b, c, size, size, LIGHT_BRONZE, pieces=4, up=up),
        beam(a, b, size, size, LIGHT_BRONZE, pieces=4, up=up),
    ]


def _spire() -> list[Piece]:
    """One chord a corner from the second platform up, the faces between them laced."""
    z = np.linspace(SECOND, THIRD, 80)
    path = np.stack([_outer(z), _outer(z), z], axis=1)
    section = rounded_rectangle(1, 1, 0.15)
    pieces = _four_times([sweep(path, section, BRONZE, up=(0, 1, 0), scale=1.25 * _chord(z))])
    levels = [SECOND]
    # Bays as high as they are wide, so that the crosses shrink with the tower.
    while levels[-1] < THIRD - 9.0:
        levels.append(levels[-1] + max(1.05 * float(2.0 * _outer(levels[-1])), 10.0))
    levels[-1] = THIRD
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for low, high in pairwise(levels):
        w, v = float(_outer(low)), float(_outer(high))
        corners = np.array([[w, -w, low], [w, w, low], [v, -v, high], [v, v, high]])
        size = float(np.interp(low, [SECOND, THIRD], [2.3, 1.7]))
        for _ in range(4):
            pieces += _laced(corners, size)
            corners = corners @ turn.T
    return pieces


def _arches() -> list[Piece]:
    """The round arches between the legs under the first platform, one in each outer face."""
    angle = np.linspace(0.0, np.pi, 61)
    spring, crown = 14.0, FIRST - 7.0
    z = spring + (crown - spring) * np.sin(angle)
    x = (float(_inner(spring)) + 1.0) * np.cos(angle)
    pieces = []
    for lift, size in ((0.0, 2.6), (4.6, 1.7)):
        outer = _outer(z + lift)
        path = np.stack([x * (1.0 + lift / 60.0), -outer, z + lift], axis=1)
        pieces.append(sweep(path, rounded_rectangle(size, size, 0.4), LIGHT_BRONZE, up=(0, -1, 0.4)))
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    quarter = [Piece(piece.vertices @ turned.T, piece.triangles, piece.colour) for piece in pieces]
    return pieces + quarter + [piece.mirrored(1) for piece in pieces] + [p.mirrored(0) for p in quarter]


def _platforms() -> list[Piece]:
    """A square ring, a square, and the lookout; each with a parapet and a girder under its edge."""
    pieces = []
    for height, brim, width, thick in (
        (FIRST, 3.5, 14.0, 4.0),
        (SECOND, 2.6, 19.0, 3.4),
        (THIRD, 3.0, 8.0, 3.0),
    ):
        half = float(_outer(height)) + brim
        pieces += _square_ring(half, width, height - thick, height, DARK_BRONZE)
        pieces += _square_ring(half + 0.5, 1.4, height, height + 1.6, LIGHT_BRONZE)
    return pieces


def _square_ring(half: float, width: float, low: float, high: float, colour: Colour) -> list[Piece]:
    """Four slabs around the z axis; a plain square where the width leaves no hole."""
    hole = half - width
    if hole <= 0.0:
        return [_slab((-half, -half, low), (half, half, high), colour)]
    return [
        _slab((-half, -half, low), (half, -hole, high), colour),
        _slab((-half, hole, low), (half, half, high), colour),
        _slab((-half, -hole, low), (-hole, hole, high), colour),
        _slab((hole, -hole, low), (half, hole, high), colour),
    ]


def _slab(low: tuple[float, float, float], high: tuple[float, float, float], colour: Colour) -> Piece:
    """A level slab, cut across its length often enough to bend."""
    a, b = np.array(low), np.array(high)
    middle = 0.5 * (a + b)
    along = 0 if b[0] - a[0] >= b[1] - a[1] else 1
    start, end = middle.copy(), middle.copy()
    start[along], end[along] = a[along], b[along]
    return beam(start, end, float((b - a)[1 - along]), float((b - a)[2]), colour, pieces=24)


def _feet() -> list[Piece]:
    """A block of stone under each leg."""
    low, high = float(_inner(0.0)) - 3.0, float(_outer(0.0)) + 3.0
    return _four_times([block((low, low, 0.0), (high, high, 4.0), STONE)])


def _top() -> list[Piece]:
    """Cabin, dome and mast above the third platform."""
    cabin = block((-4.2, -4.2, THIRD), (4.2, 4.2, THIRD + 8.0), BRONZE)
    t = np.linspace(0.0, 0.5 * np.pi * 0.97, 12)
    dome = np.stack([0 * t, 0 * t, THIRD + 8.0 + 6.0 * np.sin(t)], axis=1)
    mast = np.linspace([0.0, 0.0, THIRD + 12.0], [0.0, 0.0, HEIGHT], 12)
    slim = np.linspace(1.0, 0.55, 12)
    return [
        cabin,
        sweep(dome, ellipse(9.6, 9.6, 28), LIGHT_BRONZE, up=(0, 1, 0), scale=np.cos(t)),
        sweep(mast, ellipse(3.4, 3.4, 20), BRONZE, up=(0, 1, 0), scale=slim),
    ]
