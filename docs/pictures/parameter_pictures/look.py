"""How all pictures of settings look: one camera, one scale of colours with its bar beneath, curves of one size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_dilation, binary_erosion

from softrig.render import Background, Camera, Mesh, Series, beneath, colour_bar, label, line_plot, render, strip
from softrig.render.plot import LINE_COLOURS

WIDTH, HEIGHT, CLOSE = 980, 180, 130
"""Pixels of a row of panels, without their words, and the height of what is magnified."""
GAP = 8
WORDS = 15
CHART = (720, 320)
FROM = (0.25, 0.25, 1.0)
"""Where the camera stands."""
SKIN = (0.83, 0.74, 0.68)
STEEL = (0.62, 0.70, 0.78)
RAMP = np.array([SKIN, (0.95, 0.60, 0.25), (0.80, 0.12, 0.10), (0.42, 0.02, 0.12)])
"""From nothing to the end of a scale."""
PAINT = np.array([(0.90, 0.93, 0.95), (0.45, 0.63, 0.80), (0.08, 0.24, 0.50)])
"""Of a painted map, from 0 to 1: not to be taken for millimetres."""
SEEN = 0.98
"""Share of the vertices that lie within a scale."""
PAPER = Background((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
OUTLINE = np.array([20.0, 70.0, 150.0])
"""Colour (0 … 255) of the line that shows where plain skinning ends."""
FINE = 3
"""How many times finer than the picture that line is found."""
MAGNIFIED = 0.17
"""Metres around a spot that is shown magnified."""
REFERENCE = "#000000"
"""Colour of the line that the others of a chart are held against."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A surface, and the quantity (n,) that colours it; none: skin."""

    vertices: np.ndarray
    words: str
    values: np.ndarray | None = None
    beside: tuple[Mesh, ...] = ()
    """What else stands there, such as arrows."""
    plain: np.ndarray | None = None
    """(n, 3) the same surface by plain skinning: its outline is drawn over the picture."""
    told: str = ""
    """Stands in the corner, such as how far it is off."""
    paint: np.ndarray | None = None
    """(n,) a map from 0 to 1 that is shown instead of `values`, in colours of its own."""

    def mesh(self, triangles: np.ndarray, most: float) -> Mesh:
        """The surface in its colours, whose scale ends at `most`."""
        if self.paint is not None:
            colours = ramp(self.paint, 1.0, PAINT)
        else:
            colours = np.array(SKIN) if self.values is None else ramp(self.values, most)
        return Mesh(self.vertices.astype(np.float64), triangles, colours)


def ramp(values: np.ndarray, most: float, colours: np.ndarray = RAMP) -> np.ndarray:
    """(n, 3) colours of values from 0 to `most`; beyond, the last."""
    share = np.clip(np.asarray(values) / most, 0.0, 1.0)
    knots = np.linspace(0.0, 1.0, len(colours))
    return np.stack([np.interp(share, knots, colours[:, k]) for k in range(3)], axis=-1)


def row(
    triangles: np.ndarray,
    panels: Sequence[Panel],
    unit: str,
    *,
    most: float | None = None,
    height: int = HEIGHT,
    near: np.ndarray | None = None,
    close: int = CLOSE,
) -> np.ndarray:
    """Surfaces side by side, by one camera and one scale up to `most`, whose bar stands beneath with its `unit`.

    A scale not given ends where few vertices lie beyond; `near` and `close`: as in `surfaces`.
    """
    most = most or scale_of(panels)
    return with_bar(
        surfaces(triangles, panels, most, height=height, near=near, close=close),
        most,
        unit,
        painted=any(panel.paint is not None for panel in panels),
    )


def surfaces(
    triangles: np.ndarray,
    panels: Sequence[Panel],
    most: float,
    *,
    height: int = HEIGHT,
    near: np.ndarray | None = None,
    close: int = CLOSE,
) -> np.ndarray:
    """Surfaces side by side by one camera; `near`: vertices shown again beneath, magnified, `close` pixels high.

    A `height` of 0 shows these alone.
    """
    width = (WIDTH + GAP) // len(panels) - GAP
    views = []
    if height:
        framed = [panel.vertices for panel in panels]
        framed += [mesh.vertices for panel in panels for mesh in panel.beside]
        camera = Camera.framing(np.concatenate(framed), FROM, aspect=width / height, margin=1.04)
        views.append([shot(triangles, panel, most, camera, (width, height)) for panel in panels])
    if near is not None:
        seen = np.concatenate([panel.vertices[near] for panel in panels])
        camera = Camera.framing(seen, FROM, aspect=width / close, margin=1.0)
        views.append([framed_shot(triangles, panel, most, camera, (width, close)) for panel in panels])
    views[0] = [told(picture, panel.told) for picture, panel in zip(views[0], panels, strict=True)]
    pictures = [np.concatenate(column) for column in zip(*views, strict=True)]
    return strip(pictures, [panel.words for panel in panels], size=WORDS, gap=GAP)


def told(picture: np.ndarray, words: str) -> np.ndarray:
    """The picture with words in the upper corner that is emptier."""
    corner = (slice(0, 3 * WORDS), slice(0, 6 * WORDS))
    left, right = (int((each[corner] < 250).sum()) for each in (picture, picture[:, ::-1]))
    return label(picture, words, corner="top left" if left <= right else "top right", size=WORDS) if words else picture


def shot(triangles: np.ndarray, panel: Panel, most: float, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """One surface with the outline of plain skinning, where the panel knows it."""
    picture = render([panel.mesh(triangles, most), *panel.beside], camera, size, background=PAPER)
    if panel.plain is None:
        return picture
    plain = Mesh(panel.plain.astype(np.float64), triangles, SKIN)
    inside = (render([plain], camera, (FINE * size[0], FINE * size[1]), background=PAPER) < 250).any(axis=2)
    edge = binary_dilation(inside, iterations=2) & ~binary_erosion(inside, iterations=2, border_value=1)
    share = edge.reshape(size[1], FINE, size[0], FINE).mean(axis=(1, 3))[..., None]
    return np.rint((1.0 - share) * picture + share * OUTLINE).astype(np.uint8)


def framed_shot(triangles: np.ndarray, panel: Panel, most: float, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """As `shot`, in a thin frame."""
    picture = shot(triangles, panel, most, camera, size)
    picture[[0, -1]] = picture[:, [0, -1]] = 190
    return picture


def around(plain: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(k,) vertices (of places (n, 3), m) about the one that `moved` (n,) most: what is worth a closer look."""
    return np.flatnonzero(lengths(plain - plain[int(np.argmax(moved))]) < MAGNIFIED)


def scale_of(panels: Sequence[Panel]) -> float:
    """A round number that few vertices of the panels exceed."""
    values = [panel.values for panel in panels if panel.values is not None]
    return round_up(max(float(np.quantile(each, SEEN)) for each in values))


def with_bar(image: np.ndarray, most: float, unit: str, *, painted: bool = False) -> np.ndarray:
    """The picture with the bar of its colours beneath, and beside it that of a map where one is shown."""
    bar = colour_bar(lambda values: ramp(values, most), 0.0, most, unit, width=420, size=14)
    if painted:
        paint = colour_bar(lambda values: ramp(values, 1.0, PAINT), 0.0, 1.0, "on the map", width=200, size=14)
        bar = np.concatenate([bar, np.full((len(bar), 60, 3), 255, np.uint8), paint], axis=1)
    return beneath(image, bar, gap=6)


def round_up(value: float) -> float:
    """The least of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is not below `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if factor * power >= value)


def chart(lines: Sequence[Series], x_label: str, y_label: str, *, reference: str = "") -> str:
    """Curves as an SVG; the one called `reference` is black."""
    image = line_plot(lines, x_label=x_label, y_label=y_label, size=CHART)
    for line, colour in zip(lines, LINE_COLOURS, strict=False):
        if line.name == reference:
            image = image.replace(f'stroke="{colour}"', f'stroke="{REFERENCE}"')
    return image


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
