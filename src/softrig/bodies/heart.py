"""A human heart with its great vessels: one smooth closed surface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from softrig.bodies.implicit import limb, onto_surface, skin, smooth_cut, smooth_union
from softrig.bodies.soup import AnchorBox, Colour, Piece, Soup, pour

RESOLUTION = 48
CENTIMETRE = 0.01
SPACING = 0.152
CUT_DEPTH = 0.5
WALL = 0.3
FAR = 1.0
"""Centimetres: wider than any blend and any detail."""

MUSCLE: Colour = (0.66, 0.19, 0.16)
ATRIUM: Colour = (0.60, 0.23, 0.22)
ARTERY: Colour = (0.80, 0.30, 0.25)
VEIN: Colour = (0.36, 0.42, 0.64)
CORONARY: Colour = (0.82, 0.45, 0.30)
LUMEN: Colour = (0.25, 0.06, 0.07)


@dataclass(frozen=True)
class Organ:
    """A chamber or vessel: knots x, y, z, radius in centimetres; x to the heart's left, y back."""

    knots: tuple[tuple[float, float, float, float], ...]
    blend: float
    colour: Colour
    cut: bool = False
    """Whether the last knot is cut across, showing the vessel's hollow."""

    @cached_property
    def course(self) -> np.ndarray:
        """(k, 4) the knots, with a spline between them where there are three or more."""
        knots = np.array(self.knots)
        if len(knots) < 3:
            return knots
        places = np.arange(len(knots))
        return CubicSpline(places, knots)(np.linspace(0, len(knots) - 1, 4 * len(knots)))


CHAMBERS = (
    Organ(((0.5, 0.5, 0.9, 3.0), (1.3, 0.1, -1.4, 2.5), (2.5, -0.7, -4.1, 1.05)), 0.5, MUSCLE),
    Organ(((-1.7, -0.6, 0.6, 2.3), (-0.5, -1.1, -1.2, 1.9), (1.3, -1.1, -3.2, 1.0)), 0.9, MUSCLE),
    Organ(((-1.0, -1.2, 0.8, 1.9), (0.2, -1.7, 2.4, 1.35)), 0.9, MUSCLE),
    Organ(((-2.9, 0.4, 2.0, 1.75), (-2.6, 0.6, 3.2, 1.45)), 0.5, ATRIUM),
    Organ(((-2.6, -0.8, 3.0, 0.95), (-1.7, -1.5, 3.3, 0.6)), 0.5, ATRIUM),
    Organ(((0.0, 2.2, 2.8, 1.7), (1.6, 2.0, 2.8, 1.75)), 0.7, ATRIUM),
    Organ(((2.6, 0.8, 2.9, 0.95), (2.9, -0.5, 2.7, 0.7), (2.4, -1.4, 2.5, 0.5)), 0.5, ATRIUM),
)
VESSELS = (
    Organ(((-0.5, -0.2, 2.4, 1.3), (-1.2, -0.5, 4.6, 1.2), (-0.8, -0.1, 6.3, 1.15), (0.6, 0.8, 6.9, 1.1),
           (1.8, 1.8, 6.0, 1.0), (2.2, 2.4, 4.4, 0.95), (2.3, 3.0, 2.0, 0.9)), 0.35, ARTERY),
    Organ(((-0.7, 0.0, 6.8, 0.62), (-0.95, -0.1, 8.0, 0.56), (-1.2, -0.2, 9.3, 0.56)), 0.3, ARTERY, cut=True),
    Organ(((0.25, 0.5, 7.2, 0.52), (0.4, 0.5, 8.2, 0.5), (0.45, 0.4, 9.4, 0.5)), 0.3, ARTERY, cut=True),
    Organ(((1.1, 1.2, 7.0, 0.52), (1.5, 1.3, 8.0, 0.5), (2.0, 1.3, 9.2, 0.5)), 0.3, ARTERY, cut=True),
    Organ(((0.2, -1.7, 2.2, 1.3), (0.75, -1.5, 3.8, 1.15), (1.3, -0.5, 5.0, 1.0), (2.4, 0.3, 5.3, 0.85),
           (4.0, 0.9, 5.5, 0.75)), 0.35, VEIN, cut=True),
    Organ(((1.3, -0.2, 5.0, 0.9), (0.0, 1.1, 4.9, 0.8), (-2.2, 1.6, 4.8, 0.75), (-4.1, 1.5, 4.9, 0.7)),
          0.35, VEIN, cut=True),
    Organ(((-2.7, 0.5, 2.8, 1.0), (-2.95, 0.4, 5.0, 0.85), (-3.05, 0.2, 7.2, 0.85), (-3.1, 0.1, 9.0, 0.9)),
          0.4, VEIN, cut=True),
    Organ(((-2.6, 0.9, 1.6, 1.1), (-2.4, 1.4, -0.6, 0.95), (-2.3, 1.6, -2.4, 0.95)), 0.4, VEIN, cut=True),
    Organ(((1.8, 2.3, 3.1, 0.62), (3.6, 2.6, 3.6, 0.55)), 0.35, ARTERY, cut=True),
    Organ(((1.8, 2.3, 2.4, 0.62), (3.7, 2.6, 2.2, 0.55)), 0.35, ARTERY, cut=True),
    Organ(((0.0, 2.5, 3.1, 0.62), (-3.2, 2.6, 3.5, 0.55)), 0.35, ARTERY, cut=True),
    Organ(((0.0, 2.5, 2.3, 0.62), (-3.3, 2.7, 2.0, 0.55)), 0.35, ARTERY, cut=True),
)  # fmt: skip
CORONARIES = (
    (
        (1.6, -2.6, 2.2),
        (1.5, -3.0, 1.0),
        (1.3, -3.2, -0.8),
        (1.9, -2.8, -2.6),
        (2.7, -2.0, -4.4),
        (2.7, -0.6, -5.3),
    ),
    ((1.5, -3.0, 1.2), (2.4, -2.6, 0.2), (3.0, -2.0, -1.2), (3.2, -1.6, -2.6)),
    ((1.3, -3.2, -0.6), (0.2, -3.2, -1.3), (-0.4, -3.0, -2.2)),
    ((1.9, -2.0, 2.2), (3.0, -1.2, 1.5), (3.7, 0.2, 1.2), (3.2, 2.0, 0.8), (2.2, 3.2, 0.4)),
    ((3.4, -0.6, 1.3), (3.8, -0.4, -0.2), (3.8, -0.2, -1.8), (3.6, -0.2, -3.0)),
    ((-1.2, -2.2, 2.4), (-2.4, -2.6, 1.6), (-3.6, -1.4, 0.7), (-4.0, 0.0, 0.2)),
    ((-3.4, -1.6, 0.8), (-2.8, -2.6, -0.6), (-1.4, -2.9, -1.9), (0.0, -2.6, -3.2)),
)
"""Courses of the coronary arteries, near the surface; they are drawn onto it."""


def heart() -> Soup:
    """The heart, fifteen centimetres high with its vessels, seen from the front along +y; hung by its vessels."""
    vertices, triangles = skin(_field, np.array([-5.6, -4.8, -6.2]), np.array([5.2, 5.0, 10.4]), SPACING)
    piece = Piece(CENTIMETRE * vertices, triangles, _colours(vertices))
    held = AnchorBox((-0.1, -0.1, 0.079), (0.1, 0.1, 0.12))
    return pour("heart", [piece], [held], RESOLUTION)


def _field(points: np.ndarray) -> np.ndarray:
    """Chambers and vessels grown together, the cut ends hollowed, the coronaries laid on."""
    distance = _body(points)
    # Only what is near the surface has to know of its details.
    near = np.nonzero(np.abs(distance) < FAR)[0]
    detailed, place = distance[near], points[near]
    for organ in VESSELS:
        if organ.cut:
            detailed = smooth_cut(detailed, _hollow(organ, place), 0.25)
    for course in _coronary_courses():
        detailed = smooth_union(detailed, limb(place, course, _slimming(course), FAR), 0.4)
    distance[near] = detailed
    return distance


def _body(points: np.ndarray) -> np.ndarray:
    distance = np.full(len(points), 1e3)
    for organ in CHAMBERS + VESSELS:
        distance = smooth_union(distance, _solid(organ, points), organ.blend)
    return distance


def _solid(organ: Organ, points: np.ndarray) -> np.ndarray:
    course = organ.course
    distance = limb(points, course[:, :3], course[:, 3], FAR)
    if not organ.cut:
        return distance
    end, outward = _mouth(organ)
    return smooth_cut(distance, -((points - end) @ outward), 0.25)


def _hollow(organ: Organ, points: np.ndarray) -> np.ndarray:
    """A short bore into a cut vessel."""
    end, outward = _mouth(organ)
    bore = np.array([end - CUT_DEPTH * outward, end + outward])
    radius = organ.knots[-1][3] - WALL
    return limb(points, bore, np.array([radius, radius]), FAR)


def _mouth(organ: Organ) -> tuple[np.ndarray, np.ndarray]:
    """Middle of a vessel's cut end, and the direction out of it."""
    course = organ.course[:, :3]
    outward = course[-1] - course[-2]
    return course[-1], outward / np.linalg.norm(outward)


@cache
def _coronary_courses() -> tuple[np.ndarray, ...]:
    """(k, 3) smooth courses of the coronaries on the surface of the body."""
    courses = []
    for knots in CORONARIES:
        fine = CubicSpline(np.arange(len(knots)), np.array(knots))(np.linspace(0, len(knots) - 1, 5 * len(knots)))
        courses.append(onto_surface(_body, fine, 0.4, rounds=8))
    return tuple(courses)


def _slimming(course: np.ndarray) -> np.ndarray:
    """(k,) radii of a coronary, centimetres: slimmer towards its end."""
    return np.linspace(0.24, 0.17, len(course))


def _colours(points: np.ndarray) -> np.ndarray:
    """(n, 3) each point in the colours of what it is nearest to, softly mixed."""
    organs = CHAMBERS + VESSELS
    distances = np.stack([_solid(organ, points) for organ in organs], axis=1)
    weights = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / 0.10)
    colours = weights @ np.array([organ.colour for organ in organs]) / weights.sum(axis=1, keepdims=True)
    coronary = np.min([limb(points, c, _slimming(c), FAR) for c in _coronary_courses()], axis=0)
    colours = _mixed(colours, CORONARY, np.exp(-np.maximum(coronary, 0.0) / 0.12))
    hollow = np.min([_hollow(organ, points) for organ in VESSELS if organ.cut], axis=0)
    return _mixed(colours, LUMEN, np.exp(-np.maximum(hollow, 0.0) / 0.03))


def _mixed(colours: np.ndarray, other: Colour, amount: np.ndarray) -> np.ndarray:
    return colours + amount[:, None] * (np.array(other) - colours)
