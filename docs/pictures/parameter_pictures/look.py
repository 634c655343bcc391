"""How all pictures of settings look: one camera, one scale of colours with its bar beneath, curves of one size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.render import Background, Camera, Mesh, Series, beneath, colour_bar, line_plot, render, strip

WIDTH, HEIGHT = 980, 190
"""Pixels of a row of panels, without their words."""
GAP = 8
WORDS = 15
CHART = (720, 300)
FROM = (0.25, 0.25, 1.0)
"""Where the camera stands."""
SKIN = (0.83, 0.74, 0.68)
STEEL = (0.62, 0.70, 0.78)
RAMP = np.array([SKIN, (0.95, 0.60, 0.25), (0.80, 0.12, 0.10), (0.42, 0.02, 0.12)])
"""From nothing to the end of a scale."""
SEEN = 0.98
"""Share of the vertices that lie within a scale."""
PAPER = Background((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Panel:
    """A surface, and the quantity (n,) that colours it; none: skin."""

    vertices: np.ndarray
    words: str
    values: np.ndarray | None = None
    beside: tuple[Mesh, ...] = ()
    """What else stands there, such as arrows."""


def ramp(values: np.ndarray, most: float) -> np.ndarray:
    """(n, 3) colours of values from 0 to `most`; beyond, the last."""
    share = np.clip(np.asarray(values) / most, 0.0, 1.0)
    knots = np.linspace(0.0, 1.0, len(RAMP))
    return np.stack([np.interp(share, knots, RAMP[:, k]) for k in range(3)], axis=-1)


def row(
    triangles: np.ndarray,
    panels: Sequence[Panel],
    unit: str,
    *,
    most: float | None = None,
    columns: int | None = None,
    height: int = HEIGHT,
) -> np.ndarray:
    """Surfaces side by side, by one camera and one scale up to `most`, whose bar stands beneath with its `unit`.

    A scale not given ends where few vertices lie beyond.
    """
    size = ((WIDTH + GAP) // (columns or len(panels)) - GAP, height)
    values = [panel.values for panel in panels if panel.values is not None]
    most = most or round_up(max(float(np.quantile(each, SEEN)) for each in values))
    framed = [panel.vertices for panel in panels]
    framed += [mesh.vertices for panel in panels for mesh in panel.beside]
    camera = Camera.framing(np.concatenate(framed), FROM, aspect=size[0] / size[1], margin=1.04)
    pictures = []
    for panel in panels:
        colours = SKIN if panel.values is None else ramp(panel.values, most)
        mesh = Mesh(panel.vertices.astype(np.float64), triangles, colours)
        pictures.append(render([mesh, *panel.beside], camera, size, background=PAPER))
    words = [panel.words for panel in panels]
    return with_bar(strip(pictures, words, columns=columns, size=WORDS, gap=GAP), most, unit)


def with_bar(image: np.ndarray, most: float, unit: str) -> np.ndarray:
    """The picture with the bar of its colours beneath."""
    bar = colour_bar(lambda values: ramp(values, most), 0.0, most, unit, width=420, size=14)
    return beneath(image, bar, gap=6)


def round_up(value: float) -> float:
    """The least of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is not below `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if factor * power >= value)


def chart(lines: Sequence[Series], x_label: str, y_label: str, *, logarithmic: str = "") -> str:
    """Curves as an SVG."""
    return line_plot(lines, x_label=x_label, y_label=y_label, size=CHART, logarithmic=logarithmic)


def lengths(vectors: np.ndarray) -> np.ndarray:
    """(…,) lengths of vectors (…, 3)."""
    return np.asarray(np.linalg.norm(vectors, axis=-1))


def cut_open(vertices: np.ndarray, tets: np.ndarray, colour: Callable[[np.ndarray], np.ndarray] | None = None) -> Mesh:
    """The far half of a body of tets; `colour`: (k, 3) colours of tets (k,), by default steel."""
    behind = np.flatnonzero(vertices[tets].mean(axis=1)[:, 2] < 0.0)
    faces = tets[behind][:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    outer = first[counts == 1]
    if colour is None:
        return Mesh(vertices, faces[outer], STEEL, crease_angle=0.0, wire=True)
    # A colour a tet: every face has corners of its own.
    corners = vertices[faces[outer]].reshape(-1, 3)
    paint = np.repeat(colour(behind[outer // 4]), 3, axis=0)
    return Mesh(corners, np.arange(len(corners)).reshape(-1, 3), paint, crease_angle=0.0)
