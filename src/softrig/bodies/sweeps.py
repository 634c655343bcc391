"""Cross-sections, and the solids they leave behind when they travel along a path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.bodies.soup import Colour, Piece


def rounded_rectangle(width: float, height: float, radius: float, steps: int = 2) -> np.ndarray:
    """(4·(steps + 1), 2) a rectangle about the origin with round corners, metres, anticlockwise."""
    radius = min(radius, 0.5 * width, 0.5 * height)
    centre = np.array([0.5 * width - radius, 0.5 * height - radius])
    corners = []
    for quarter, sign in enumerate([(1, 1), (-1, 1), (-1, -1), (1, -1)]):
        angle = 0.5 * np.pi * (quarter + np.linspace(0.0, 1.0, steps + 1))
        corners.append(centre * sign + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return np.concatenate(corners)


def ellipse(width: float, height: float, sides: int = 12) -> np.ndarray:
    """(sides, 2) an ellipse about the origin, metres, anticlockwise."""
    angle = 2.0 * np.pi * np.arange(sides) / sides
    return np.stack([0.5 * width * np.cos(angle), 0.5 * height * np.sin(angle)], axis=1)


def sweep(
    path: np.ndarray,
    section: np.ndarray,
    colour: Colour,
    *,
    up: Sequence[float] | np.ndarray = (0.0, 0.0, 1.0),
    scale: np.ndarray | None = None,
) -> Piece:
    """Carry `section` (k, 2) along `path` (n, 3), metres, and close both ends with flat caps.

    The section's first axis is level (across `up` and the path), its second as near to `up` as the
    path lets it be. `scale` (n,) grows or shrinks it on the way.
    """
    tangents = np.gradient(path, axis=0, edge_order=1)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    across = np.cross(tangents, np.asarray(up))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    over = np.cross(across, tangents)
    size = np.ones(len(path)) if scale is None else scale
    planar = size[:, None, None] * section
    rings = path[:, None] + planar[..., :1] * across[:, None] + planar[..., 1:] * over[:, None]
    return Piece(*capped_rings(rings), colour)


def capped_rings(rings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A skin over `rings` (n, k, 3) and flat caps; caps have their own vertices to stay crisp."""
    n, k = rings.shape[:2]
    skin = skin_triangles(n, k)
    fan = np.stack([np.full(k, k), np.arange(k), (np.arange(k) + 1) % k], axis=1)
    ends = [np.vstack([ring, ring.mean(axis=0)]) for ring in (rings[0], rings[-1])]
    vertices = np.vstack([rings.reshape(-1, 3), *ends])
    return vertices, np.vstack([skin, fan + n * k, fan[:, ::-1] + n * k + k + 1])


def skin_triangles(rings: int, around: int) -> np.ndarray:
    """Triangles between successive closed rings of `around` vertices, numbered ring by ring.

    Outward where the rings run anticlockwise as seen looking back along the path.
    """
    ring, place = np.meshgrid(np.arange(rings - 1), np.arange(around), indexing="ij")
    a = (ring * around + place).ravel()
    b = (ring * around + (place + 1) % around).ravel()
    return np.concatenate([np.stack([a, a + around, b], 1), np.stack([b, a + around, b + around], 1)])


def beam(
    start: Sequence[float] | np.ndarray,
    end: Sequence[float] | np.ndarray,
    width: float,
    height: float,
    colour: Colour,
    *,
    pieces: int = 1,
    up: Sequence[float] | np.ndarray = (0.0, 0.0, 1.0),
) -> Piece:
    """A straight bar with slightly rounded edges; `width` level, `height` towards `up`, metres."""
    path = np.linspace(np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64), pieces + 1)
    section = rounded_rectangle(width, height, 0.18 * min(width, height), steps=1)
    return sweep(path, section, colour, up=up)


def block(low: Sequence[float], high: Sequence[float], colour: Colour) -> Piece:
    """A box with rounded upright edges, metres."""
    a, b = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    middle = 0.5 * (a + b)
    size = b - a
    path = np.array([[middle[0], middle[1], a[2]], [middle[0], middle[1], b[2]]])
    section = rounded_rectangle(size[0], size[1], 0.06 * min(size[0], size[1]))
    return sweep(path, section, colour, up=(0.0, 1.0, 0.0))
