"""Flower and oak in pictures: on white, z up, a light from high before them, a wind that comes in gusts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.figures.look import LIT, WHITE, framing
from softrig.models.substructured import SubstructuredModel
from softrig.render import Camera, Ground, Light, Mesh, render

UP = (0.0, 0.0, 1.0)
LIGHT = Light((-0.45, -0.75, 1.0), radius=0.10, strength=1.15)
"""From the left, before it and above."""
CREASE = 0.9
"""Radians: petals and leaves have edges, stems have none."""
FLOOR = 0.62
"""Sizes of a body from its middle to where the ground is gone."""


def drawn(model: SubstructuredModel, places: np.ndarray, colours: np.ndarray | None = None) -> Mesh:
    """The model at `places` (m, 3), metres, in its own colours or in (m, 3) others."""
    return Mesh(places, model.triangles, model.drawn_colours if colours is None else colours, crease_angle=CREASE)


def white_floor(size: float, height: float = 0.0) -> Ground:
    """The ground at a height, wide enough for the shadow of a body of that size, metres."""
    return Ground(height, colour=(1.0, 1.0, 1.0), fade=FLOOR * size)


def taken(
    meshes: Mesh | Sequence[Mesh],
    camera: Camera,
    size: tuple[int, int],
    *,
    ground: Ground | None = None,
    finer: int = 1,
) -> np.ndarray:
    """(height, width, 3) uint8 on white; `finer` times as large at first, so that thin things have smooth edges."""
    wide, tall = size
    image = render(meshes, camera, (finer * wide, finer * tall), light=LIGHT, ground=ground, background=WHITE) * (
        255.0 / LIT
    )
    image = np.minimum(image, 255.0).reshape(tall, finer, wide, finer, 3).mean(axis=(1, 3))
    return np.rint(image).astype(np.uint8)


def seen(
    places: Sequence[np.ndarray], direction: Sequence[float], size: tuple[int, int], margin: float = 1.06
) -> Camera:
    """A camera that sees all of `places`, each (n, 3) metres, from a `direction`."""
    return framing(places, direction, size, up=UP, margin=margin)


def gusts(origins: np.ndarray, seconds: float, speed: float, period: float, *, reach: float = 2.5) -> np.ndarray:
    """(d, 3) m/s of the air about domains whose origins (d, 3) are in metres: gusts that travel along x, and repeat.

    The mean along x is `speed`; waves of length `reach` metres and its parts pass in whole numbers a `period`,
    seconds, so that the wind ends as it begins. Sideways and upwards it wavers by a fifth.
    """
    x, y, z = (origins / reach).T
    phase = 2.0 * np.pi * seconds / period
    along = (
        0.55 * np.sin(phase - 2.0 * x + 0.4 * y)
        + 0.30 * np.sin(2.0 * phase - 3.1 * x - 0.9 * y + 0.7 * z + 1.0)
        + 0.15 * np.sin(5.0 * phase - 7.3 * x + 3.1 * y + 2.3 * z + 2.0)
    )
    sideways = 0.20 * np.sin(2.0 * phase - 2.7 * x + 1.7 * y + 0.5) + 0.10 * np.sin(5.0 * phase + 5.9 * y - 4.1 * z)
    upwards = 0.20 * np.sin(3.0 * phase - 3.7 * x + 1.3 * z + 1.7)
    return speed * np.stack([1.0 + along, sideways, upwards], axis=1)
