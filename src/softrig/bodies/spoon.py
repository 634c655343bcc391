"""A dessert spoon: an oval bowl and a handle in one smooth skin."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from softrig.bodies.soup import AnchorBox, Piece, Soup, pour
from softrig.bodies.sweeps import skin_triangles

LENGTH = 0.2
STATIONS = 92
AROUND = 36
RESOLUTION = 86

# Along the spoon from the end of the handle (0) to the tip of the bowl (1); widths and heights are
# fractions of the length. A cubic spline runs through the knots: highlights show any kink.
HALF_WIDTH = ((0.0, 0.041), (0.12, 0.041), (0.30, 0.030), (0.48, 0.020), (0.585, 0.022), (0.665, 0.062),
              (0.74, 0.099), (0.80, 0.109), (0.86, 0.112), (1.0, 0.112))  # fmt: skip
SPINE = ((0.0, -0.014), (0.15, 0.016), (0.32, 0.046), (0.46, 0.056), (0.56, 0.048), (0.66, 0.018),
         (0.75, 0.002), (0.85, 0.002), (1.0, 0.012))  # fmt: skip
BOWL_START = 0.62
BOWL_DEPTH = 0.058
THICKNESS = 0.0125


def spoon() -> Soup:
    """The spoon: x from handle to bowl, z up out of the bowl; held at the far end of the handle."""
    vertices, triangles = _skin()
    piece = Piece(LENGTH * vertices, triangles, (0.80, 0.81, 0.84))
    held = AnchorBox((-0.01, -0.05, -0.05), (0.06 * LENGTH, 0.05, 0.05))
    return pour("spoon", [piece], [held], RESOLUTION)


def _half_width(s: np.ndarray) -> np.ndarray:
    """Outline: a handle that swells to a round end, then an oval with a round tip."""
    return _through(HALF_WIDTH, s) * _round_end(s / 0.06) * _round_end((1.0 - s) / 0.23)


def _through(knots: tuple[tuple[float, float], ...], s: np.ndarray) -> np.ndarray:
    places, values = np.array(knots).T
    return CubicSpline(places, values)(s)


def _round_end(t: np.ndarray) -> np.ndarray:
    """From 0 up to 1 along a quarter of a circle."""
    return np.sqrt(1.0 - (1.0 - np.clip(t, 0.0, 1.0)) ** 2)


def _skin() -> tuple[np.ndarray, np.ndarray]:
    """Closed rings along the spoon and a point at each end, in units of the length."""
    # Stations crowd towards both ends, where the outline turns fast.
    t = np.linspace(0.0, 1.0, STATIONS + 2)[1:-1]
    s = 0.5 - 0.5 * np.cos(np.pi * t)
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    rings = _ring(s[:, None], np.cos(angle)[None], np.sin(angle)[None])
    ends = _ring(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))
    count = STATIONS * AROUND
    around, following = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND
    last = count - AROUND
    first_fan = np.stack([np.full(AROUND, count), around, following], axis=1)
    last_fan = np.stack([np.full(AROUND, count + 1), last + following, last + around], axis=1)
    vertices = np.vstack([rings.reshape(-1, 3), ends])
    return vertices, np.vstack([skin_triangles(STATIONS, AROUND), first_fan, last_fan])[:, ::-1]


def _ring(s: np.ndarray, across: np.ndarray, over: np.ndarray) -> np.ndarray:
    """Points of the skin: `across` in -1 to 1 from rim to rim, `over` in -1 (under) to 1 (upper side)."""
    half_width = _half_width(s)
    along = np.clip((s - BOWL_START) / (1.0 - BOWL_START), 0.0, 1.0)
    # Deepest before the middle; flat at the neck and at the tip, so that the rim runs on smoothly.
    depth = BOWL_DEPTH * (4.0 * along * (1.0 - along)) ** 0.9 * (1.12 - 0.24 * along)
    thickness = THICKNESS * (1.0 + 0.35 * np.exp(-(((s - 0.60) / 0.08) ** 2)))
    taper = np.minimum(1.0, half_width / (0.8 * thickness))
    height = _through(SPINE, s) - depth * (1.0 - across**2) + 0.5 * thickness * taper * over
    x = np.broadcast_to(s, height.shape)
    return np.stack([x, half_width * across, height], axis=-1)
