"""Line plots as SVG text: axes, ticks, units and a legend, to be put into an HTML report as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.render.axes import Axis, fitted_axis, legend_places

# Distinct for colour-blind readers too (Okabe and Ito 2008), darkest first.
LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
LEGEND_ROW = 20.0
"""Pixels."""


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a plot; `dashed` for references."""

    name: str
    x: np.ndarray
    y: np.ndarray
    dashed: bool = False

    def __post_init__(self) -> None:
        for axis in ("x", "y"):
            values = np.asarray(getattr(self, axis), dtype=np.float64)
            object.__setattr__(self, axis, values)
            require_finite(values, f"series {self.name!r} {axis}")
        if self.x.ndim != 1 or self.x.shape != self.y.shape or self.x.size == 0:
            raise InputError(f"series {self.name!r}: x {self.x.shape} and y {self.y.shape} do not fit")


def line_plot(
    series: Sequence[Series],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    size: tuple[int, int] = (640, 360),
    logarithmic: str = "",
) -> str:
    """An `<svg>` element. Labels carry the units ("time, s"); `logarithmic` is "", "x", "y" or "xy"."""
    if len(series) == 0:
        raise InputError("line plot: no series")
    width, height = size
    left, right, top = 66.0, width - 18.0, 44.0 if title else 18.0
    named = series if len(series) > 1 else ()
    places, top = legend_places([_legend_width(line) for line in named], left, right, top - 12.0, LEGEND_ROW)
    top += 12.0 if named else 12.0 - LEGEND_ROW
    x_axis = _axis([line.x for line in series], left, right, "x" in logarithmic, width // 90, x_label)
    bottom = height - (52.0 if x_label else 34.0)
    y_axis = _axis([line.y for line in series], bottom, top, "y" in logarithmic, height // 55, y_label)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" fill="#262a30" role="img">',
        f"<title>{escape(title or y_label)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_grid(x_axis, y_axis),
        *_words(title, x_label, y_label, x_axis, y_axis, height),
        *(_line(line, _colour(i), x_axis, y_axis) for i, line in enumerate(series)),
        *_legend(named, places),
        "</svg>",
    ]
    return "\n".join(parts)


def _axis(values: Sequence[np.ndarray], start: float, end: float, logarithmic: bool, most: int, label: str) -> Axis:
    """The data's own ends stay on a horizontal axis unless it is logarithmic; the vertical one ends on ticks."""
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    tight = end > start and not logarithmic
    return fitted_axis(low, high, start, end, most=most, logarithmic=logarithmic, tight=tight, name=label)


def _tick_text(value: float, axis: Axis) -> str:
    if axis.logarithmic:
        exponent = round(math.log10(value))
        if -3 <= exponent <= 3:
            return f"{value:g}"
        sign = "−" if exponent < 0 else ""
        return f'10<tspan dy="-5" font-size="9">{sign}{abs(exponent)}</tspan>'
    step = axis.ticks[1] - axis.ticks[0] if len(axis.ticks) > 1 else 1.0
    value = 0.0 if abs(value) < 1e-9 * step else value
    return f"{value:.6g}".replace("-", "−")


def _grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    left, right, bottom = x_axis.start, x_axis.end, y_axis.start
    parts = ['<g stroke="#e4e6ea">']
    for tick in y_axis.ticks:
        y = float(y_axis.pixel(tick))
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}"/>')
    parts.append(f'</g><path d="M{left:.1f} {bottom:.1f}H{right:.1f}" stroke="#868b94"/>')
    parts.append('<g fill="#5a606a" text-anchor="middle">')
    for tick in x_axis.ticks:
        x = float(x_axis.pixel(tick))
        parts.append(f'<path d="M{x:.1f} {bottom:.1f}v5" stroke="#868b94"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 19:.1f}">{_tick_text(tick, x_axis)}</text>')
    parts.append('</g><g fill="#5a606a" text-anchor="end">')
    for tick in y_axis.ticks:
        y = float(y_axis.pixel(tick))
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}">{_tick_text(tick, y_axis)}</text>')
    return [*parts, "</g>"]


def _words(title: str, x_label: str, y_label: str, x_axis: Axis, y_axis: Axis, height: int) -> list[str]:
    parts = []
    if title:
        parts.append(f'<text x="{x_axis.start:.1f}" y="24" font-size="15" font-weight="600">{escape(title)}</text>')
    if x_label:
        middle = 0.5 * (x_axis.start + x_axis.end)
        parts.append(f'<text x="{middle:.1f}" y="{height - 10}" text-anchor="middle">{escape(x_label)}</text>')
    if y_label:
        middle = 0.5 * (y_axis.start + y_axis.end)
        parts.append(
            f'<text transform="translate(16 {middle:.1f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
        )
    return parts


def _line(line: Series, colour: str, x_axis: Axis, y_axis: Axis) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(x_axis.pixel(line.x), y_axis.pixel(line.y), strict=True))
    dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dashes}/>'
    )


def _legend_width(line: Series) -> float:
    """Pixels of a line's sample, its name (letters are not measured, a reader's own are taken) and a gap."""
    return 26.0 + 6.6 * len(line.name) + 18.0


def _legend(series: Sequence[Series], places: Sequence[tuple[float, float]]) -> list[str]:
    parts = []
    for i, (line, (x, middle)) in enumerate(zip(series, places, strict=True)):
        dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
        parts.append(
            f'<path d="M{x:.1f} {middle:.1f}h20" stroke="{_colour(i)}" stroke-width="2.5"{dashes}/>'
            f'<text x="{x + 26:.1f}" y="{middle + 4:.1f}">{escape(line.name)}</text>'
        )
    return parts


def _colour(index: int) -> str:
    return LINE_COLOURS[index % len(LINE_COLOURS)]
