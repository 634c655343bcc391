"""Colours at the vertices: soft strokes over a ground coat, and a grain that reads as fur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from softrig.bodies.soup import Colour
from softrig.characters.smoothing import neighbour_average
from softrig.render.colour import linear

Triple = tuple[float, float, float]


def inside_softly(
    points: np.ndarray, centre: Triple, radii: Triple | float, softness: float, turn: Triple = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """(n,) 1 inside an ellipsoid of half axes `radii`, m, 0 beyond a border of `softness` times them.

    `turn` is in degrees about x, then y, then z.
    """
    axes = Rotation.from_euler("xyz", turn, degrees=True).as_matrix()
    reach = np.linalg.norm((points - np.array(centre)) @ axes / np.array(radii), axis=1)
    return _smooth_step((1.0 + softness - reach) / max(softness, 1e-6))


@dataclass(frozen=True)
class Stroke:
    """A soft ellipsoid of colour.

    centre, radii  m; full colour inside
    softness       width of the border, as a share of the radii
    strength       0 to 1
    facing         only where the surface faces this way, if not zero
    """

    colour: Colour
    centre: Triple
    radii: Triple | float
    softness: float = 0.35
    strength: float = 1.0
    facing: Triple = (0.0, 0.0, 0.0)
    turn: Triple = (0.0, 0.0, 0.0)
    """Degrees about x, y and z."""

    def mirrored(self) -> Stroke:
        """The stroke on the other side."""
        (cx, cy, cz), (fx, fy, fz), (tx, ty, tz) = self.centre, self.facing, self.turn
        return replace(self, centre=(-cx, cy, cz), facing=(-fx, fy, fz), turn=(tx, -ty, -tz))

    def amount(self, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """(n,) how much of the colour the points take, 0 to 1."""
        amount = inside_softly(points, self.centre, self.radii, self.softness, self.turn)
        if any(self.facing):
            direction = np.array(self.facing) / np.linalg.norm(self.facing)
            amount *= _smooth_step(0.5 + 1.2 * (normals @ direction))
        return self.strength * amount


def both_strokes(*strokes: Stroke) -> list[Stroke]:
    """The strokes, each followed by its mirror image."""
    return [side for stroke in strokes for side in (stroke, stroke.mirrored())]


def painted(
    vertices: np.ndarray,
    triangles: np.ndarray,
    normals: np.ndarray,
    ground: Colour,
    strokes: Sequence[Stroke],
    *,
    grain: float = 0.05,
    seed: int = 0,
) -> np.ndarray:
    """(n, 4) red, green, blue and alpha in 0 to 1, linear: strokes in their order, then the grain.

    `ground` and the strokes are sRGB; `normals` (n, 3) outward unit vectors; `grain` is the share of noise.
    """
    colours = np.tile(np.array(ground), (len(vertices), 1))
    for stroke in strokes:
        amount = stroke.amount(vertices, normals)[:, None]
        colours += amount * (np.array(stroke.colour) - colours)
    noise = np.random.default_rng(seed).standard_normal(len(vertices))
    noise = 0.5 * (noise + neighbour_average(triangles, len(vertices)) @ noise)
    colours *= 1.0 + grain * noise[:, None]
    return np.concatenate([linear(np.clip(colours, 0.0, 1.0)), np.ones((len(vertices), 1))], axis=1)


def _smooth_step(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)
