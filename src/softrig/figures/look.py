"""How bodies look in every figure: white paper, one camera a row, one colour map a quantity and its bar beneath."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw

from softrig.bodies.sweeps import skin_triangles
from softrig.fem.meshes import VolumeMesh
from softrig.figures.sheet import GREY, NOTE, Panel, font, spelt
from softrig.render import Background, Camera, Ground, Light, Mesh, colour_bar, diverging, render, sequential

WHITE = Background((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
CLAY = (0.78, 0.74, 0.69)
GHOST = (0.62, 0.66, 0.72)
STEEL = (0.72, 0.75, 0.80)
GREEN = (0.20, 0.62, 0.38)
RED = (0.80, 0.27, 0.22)

LIGHT = Light((-0.12, 1.0, 0.6), radius=0.12, strength=1.2)
"""From high above and before it: the shadow on the ground stays near the feet, and soft."""
LIT = 249.5
"""Of 255, the least that a white ground in full light has of a colour: drawn white as the paper, it has no edge."""
FLOOR = 1.1
"""Sizes of a body from its middle to where the ground is gone: beyond the shadow."""


def shot(
    meshes: Mesh | Sequence[Mesh],
    camera: Camera,
    size: tuple[int, int],
    *,
    ground: Ground | None = None,
    above: bool = False,
) -> np.ndarray:
    """(height, width, 3) uint8 on white; on a ground, and if so wanted, under a light from high `above`."""
    if ground is None and not above:
        return render(meshes, camera, size, background=WHITE)
    image = render(meshes, camera, size, light=LIGHT, ground=ground, background=WHITE)
    return np.rint(np.minimum(image * (255.0 / LIT), 255.0)).astype(np.uint8)


def white_ground(places: np.ndarray, size: float) -> Ground:
    """The ground under the lowest of places (…, 3), metres, wide enough for the shadow of a body of that size."""
    return Ground(float(places[..., 1].min()), colour=(1.0, 1.0, 1.0), fade=FLOOR * size)


def skin(mesh: VolumeMesh, positions: np.ndarray, colours: object = CLAY, *, wire: bool = False) -> Mesh:
    """The boundary of a volume mesh at `positions` (n, 3), metres."""
    triangles = mesh.boundary_triangles
    used, packed = np.unique(triangles, return_inverse=True)
    paint = np.asarray(colours, dtype=np.float64)
    return Mesh(
        positions[used],
        packed.reshape(triangles.shape),
        paint[used] if paint.ndim == 2 else tuple(paint.tolist()),
        wire=wire,
    )


def framing(
    places: Sequence[np.ndarray],
    direction: Sequence[float],
    size: tuple[int, int],
    *,
    up: Sequence[float] = (0.0, 1.0, 0.0),
    margin: float = 1.06,
) -> Camera:
    """A camera that sees all of `places`, each (n, 3) metres."""
    points = np.concatenate([place.reshape(-1, 3) for place in places])
    return Camera.framing(points, direction, up=up, aspect=size[0] / size[1], margin=margin, field_of_view=0.45)


def lengths(field: np.ndarray) -> np.ndarray:
    """(n,) lengths of vectors (n, 3)."""
    return np.asarray(np.linalg.norm(field, axis=1))


def heat(values: np.ndarray, most: float) -> np.ndarray:
    """(n, 3) colours of values from 0 to `most`."""
    return sequential(values, low=0.0, high=most)


def wrong(values: np.ndarray, most: float) -> np.ndarray:
    """(n, 3) colours of errors: pale where there is none, red at `most`."""
    return diverging(np.maximum(values, 0.0), limit=most)


def key(
    colour_map: Callable[[np.ndarray, float], np.ndarray],
    most: float,
    what: str,
    *,
    width: int = 340,
    unit: float = 1.0,
) -> Panel:
    """The colour bar of `heat` or `wrong` up to `most`, to be put under the panels.

    `what` is the unit and the quantity ("mm from the full body"), `unit` how many of it one of `most` is.
    """
    high = unit * most
    bar = colour_bar(lambda values: colour_map(values, high), 0.0, float(f"{high:.4g}"), spelt(what), width=width)
    return Panel(bar)


def labelled(image: np.ndarray, camera: Camera, places: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """The (h, w, 3) picture that `camera` took, with a text in the middle of each place (k, 3), metres."""
    height, width = image.shape[:2]
    across, above, away = camera.axes() @ (places - np.asarray(camera.eye)).T
    focal = 0.5 * height / math.tan(0.5 * camera.field_of_view)
    canvas = Image.fromarray(image)
    for x, y, text in zip(0.5 * width + focal * across / away, 0.5 * height - focal * above / away, texts, strict=True):
        ImageDraw.Draw(canvas).text((x, y), spelt(text), font=font(NOTE), fill=GREY, anchor="mm")
    return np.asarray(canvas)


def tube(path: np.ndarray, radius: float, colour: Sequence[float] = RED, *, sides: int = 16) -> Mesh:
    """A round rod along `path` (k, 3), metres."""
    tangents = np.gradient(path, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    first = np.cross(tangents, np.eye(3)[np.argmin(np.abs(tangents[0]))])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(tangents, first)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    around = np.cos(angle)[:, None] * first[:, None] + np.sin(angle)[:, None] * second[:, None]
    rings = path[:, None] + radius * around
    return Mesh(rings.reshape(-1, 3), skin_triangles(len(path), sides), tuple(colour))


def arrow(start: np.ndarray, end: np.ndarray, radius: float, colour: Sequence[float] = RED) -> list[Mesh]:
    """A pull: a rod with a point."""
    start, end = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    along = (end - start) / np.linalg.norm(end - start)
    neck = end - 5.0 * radius * along
    cone = tube(np.stack([neck, end]), 2.4 * radius, colour)
    vertices = cone.vertices.copy()
    vertices[len(vertices) // 2 :] = end
    return [tube(np.stack([start, neck]), radius, colour), Mesh(vertices, cone.triangles, tuple(colour))]


def ball(centre: np.ndarray, radius: float, colour: Sequence[float] = GREEN) -> Mesh:
    """A round handle."""
    rings, sides = 14, 24
    polar, around = np.linspace(0.0, np.pi, rings)[:, None], 2.0 * np.pi * np.arange(sides)[None] / sides
    places = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar) + 0.0 * around], axis=2
    )
    return Mesh(np.asarray(centre) + radius * places.reshape(-1, 3), skin_triangles(rings, sides), tuple(colour))
