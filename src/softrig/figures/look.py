"""How bodies look in every figure: white paper, one camera a row, one colour map a quantity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.bodies.sweeps import skin_triangles
from softrig.fem.meshes import VolumeMesh
from softrig.render import Background, Camera, Ground, Mesh, diverging, render, sequential

WHITE = Background((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
CLAY = (0.78, 0.74, 0.69)
GHOST = (0.62, 0.66, 0.72)
STEEL = (0.72, 0.75, 0.80)
GREEN = (0.20, 0.62, 0.38)
RED = (0.80, 0.27, 0.22)


def shot(
    meshes: Mesh | Sequence[Mesh],
    camera: Camera,
    size: tuple[int, int],
    *,
    ground: Ground | None = None,
) -> np.ndarray:
    """(height, width, 3) uint8 on white."""
    return render(meshes, camera, size, background=WHITE, ground=ground)


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
