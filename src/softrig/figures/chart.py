"""Line charts as pixels, drawn at twice their size and halved so that lines are smooth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from softrig.errors import InputError
from softrig.figures.sheet import GREY, INK, PAPER, font, spelt
from softrig.render.axes import Axis, fitted_axis, legend_places

FINE = 2
"""Pixels drawn for each one shown, in both directions."""
GRID = (226, 228, 233)
LETTERS = 17
LEFT = 78.0
"""Pixels left of the chart, for ticks and label."""
TRUTH, OURS, OTHER, THIRD, FOURTH, FIFTH = "#000000", "#0072b2", "#d55e00", "#cc79a7", "#009e73", "#e69f00"
"""Full simulation, softrig, what it is compared with; distinct for colour-blind readers (Okabe and Ito 2008)."""
BAND = "#c6cad1"
"""Full simulation as a wide band, where what lies upon it would hide a line."""


@dataclass(frozen=True, eq=False)
class Line:
    """One curve; `dots` marks its points."""

    name: str
    """In the legend; none where it is empty."""
    x: np.ndarray
    y: np.ndarray
    colour: str
    dashed: bool = False
    dots: bool = False
    width: float = 2.4


def line_chart(
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    size: tuple[int, int] = (560, 340),
    logarithmic: str = "",
    legend: str = "above",
    y_range: tuple[float, float] | None = None,
) -> np.ndarray:
    """(height, width, 3) of curves over an axis; labels carry the units ("time, s").

    `logarithmic`: "", "x", "y" or "xy". `legend`: "above" the chart, or "" for none.
    """
    if not lines:
        raise InputError("a chart needs a line")
    canvas, draw = _canvas(size)
    top = _legend(draw, lines, size[0]) if legend else 10.0
    bottom, left, right = size[1] - 58.0, LEFT, size[0] - 16.0
    xs, ys = np.concatenate([line.x for line in lines]), np.concatenate([line.y for line in lines])
    x_axis = fitted_axis(
        float(xs.min()), float(xs.max()), left, right, most=6, logarithmic="x" in logarithmic, tight=True, name=x_label
    )
    low, high = y_range or (float(ys.min()), float(ys.max()))
    y_axis = fitted_axis(low, high, bottom, top + 8.0, most=5, logarithmic="y" in logarithmic, name=y_label)
    _frame(draw, x_axis, y_axis)
    _labels(canvas, draw, x_label, y_label, x_axis, y_axis, size)
    for line in lines:
        points = np.stack([x_axis.pixel(line.x), y_axis.pixel(line.y)], axis=1)
        _curve(draw, points, line)
    return _shrunk(canvas)


def _canvas(size: tuple[int, int]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    canvas = Image.new("RGB", (FINE * size[0], FINE * size[1]), PAPER)
    return canvas, ImageDraw.Draw(canvas)


def _shrunk(canvas: Image.Image) -> np.ndarray:
    return np.asarray(canvas.resize((canvas.width // FINE, canvas.height // FINE), Image.Resampling.BOX))


def _fine(*values: float) -> list[float]:
    return [FINE * value for value in values]


def _text(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    text: str,
    ink: Sequence[int],
    anchor: str = "mm",
    size: int = LETTERS,
) -> None:
    where = (FINE * place[0], FINE * place[1])
    draw.text(where, spelt(text), font=font(FINE * size), fill=tuple(ink), anchor=anchor)


def _upright(canvas: Image.Image, text: str, middle: float) -> None:
    letters = font(FINE * LETTERS)
    wide = math.ceil(letters.getlength(spelt(text))) + 8
    strip = Image.new("RGB", (wide, FINE * (LETTERS + 8)), PAPER)
    ImageDraw.Draw(strip).text((wide / 2, strip.height / 2), spelt(text), font=letters, fill=GREY, anchor="mm")
    turned = strip.rotate(90, expand=True)
    canvas.paste(turned, (0, max(0, round(FINE * middle - turned.height / 2))))


def _legend(draw: ImageDraw.ImageDraw, lines: Sequence[Line], width: int) -> float:
    """Names in rows above the chart; returns where the chart begins, pixels."""
    lines = [line for line in lines if line.name]
    letters = font(FINE * LETTERS)
    widths = [33.0 + letters.getlength(spelt(line.name)) / FINE + 25.0 for line in lines]
    places, bottom = legend_places(widths, LEFT, width + 25.0, 2.0, 24.0)
    for line, (x, y) in zip(lines, places, strict=True):
        for start, end in [(x, x + 9.0), (x + 15.0, x + 24.0)] if line.dashed else [(x, x + 26.0)]:
            draw.line(_fine(start, y, end, y), fill=line.colour, width=round(FINE * max(3.0, line.width)))
        _text(draw, (x + 33.0, y), line.name, INK, anchor="lm")
    return bottom + 4.0


def _tick(value: float, axis: Axis) -> str:
    if axis.logarithmic and not 1e-3 <= value <= 1e4:
        return f"1e{round(math.log10(value))}"
    step = axis.ticks[1] - axis.ticks[0] if len(axis.ticks) > 1 else 1.0
    return f"{0.0 if abs(value) < 1e-9 * step else value:.6g}"


def _frame(draw: ImageDraw.ImageDraw, x_axis: Axis, y_axis: Axis) -> None:
    left, right, bottom = x_axis.start, x_axis.end, y_axis.start
    for tick in y_axis.ticks:
        y = float(y_axis.pixel(tick))
        draw.line(_fine(left, y, right, y), fill=GRID, width=FINE)
        _text(draw, (left - 9.0, y), _tick(tick, y_axis), GREY, anchor="rm", size=LETTERS - 2)
    draw.line(_fine(left, bottom, right, bottom), fill=GREY, width=FINE)
    for tick in x_axis.ticks:
        x = float(x_axis.pixel(tick))
        draw.line(_fine(x, bottom, x, bottom + 5), fill=GREY, width=FINE)
        _text(draw, (x, bottom + 17.0), _tick(tick, x_axis), GREY, size=LETTERS - 2)


def _labels(
    canvas: Image.Image,
    draw: ImageDraw.ImageDraw,
    x_label: str,
    y_label: str,
    x_axis: Axis,
    y_axis: Axis,
    size: tuple[int, int],
) -> None:
    _text(draw, (0.5 * (x_axis.start + x_axis.end), size[1] - 14.0), x_label, GREY)
    _upright(canvas, y_label, 0.5 * (y_axis.start + y_axis.end))


def _curve(draw: ImageDraw.ImageDraw, points: np.ndarray, line: Line) -> None:
    fine = FINE * points
    wide = round(FINE * line.width)
    runs = _dashes(fine, FINE * 9.0, FINE * 6.0) if line.dashed else [fine]
    for run in runs:
        if len(run) > 1:
            draw.line([tuple(point) for point in run.tolist()], fill=line.colour, width=wide, joint="curve")
    if line.dots:
        r = FINE * 4.5
        for x, y in fine.tolist():
            draw.ellipse([x - r, y - r, x + r, y + r], fill=line.colour)


def _dashes(points: np.ndarray, on: float, off: float) -> list[np.ndarray]:
    """The parts of a path that are drawn, `on` pixels long with `off` between them."""
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    runs = []
    for start in np.arange(0.0, lengths[-1], on + off):
        inner = lengths[(lengths > start) & (lengths < start + on)]
        where = np.concatenate([[start], inner, [min(start + on, lengths[-1])]])
        runs.append(np.stack([np.interp(where, lengths, points[:, k]) for k in (0, 1)], axis=1))
    return runs
