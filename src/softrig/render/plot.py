"""Line plots as SVG text: axes, ticks, units and a legend, to be put into an HTML report as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from softrig.errors import InputError, require_finite

# Distinct for colour-blind readers too (Okabe and Ito 2008), darkest first.
LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")


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


@dataclass(frozen=True)
class Axis:
    """Maps values to pixels from `start` to `end`; `ticks` lie within `low` … `high`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool

    def pixel(self, values: np.ndarray | float) -> np.ndarray:
        """Where values are drawn; on a logarithmic axis what is below its low end stands there."""
        value, low, high = np.asarray(values, dtype=np.float64), self.low, self.high
        if self.logarithmic:
            value, low, high = np.log10(np.maximum(value, low)), math.log10(low), math.log10(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


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
    top = 44 if title else 18
    x_axis = _axis([line.x for line in series], 66.0, width - 18.0, "x" in logarithmic, width // 90, x_label)
    bottom = height - (52.0 if x_label else 34.0)
    y_axis = _axis([line.y for line in series], bottom, float(top), "y" in logarithmic, height // 55, y_label)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" fill="#262a30" role="img">',
        f"<title>{escape(title or y_label)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_grid(x_axis, y_axis),
        *_words(title, x_label, y_label, x_axis, y_axis, height),
        *(_line(line, _colour(i), x_axis, y_axis) for i, line in enumerate(series)),
        *_legend(series, x_axis, y_axis),
        "</svg>",
    ]
    return "\n".join(parts)


def _axis(values: Sequence[np.ndarray], start: float, end: float, logarithmic: bool, most: int, label: str) -> Axis:
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    if logarithmic:
        if low <= 0.0:
            raise InputError(f"line plot: {label or 'axis'} is logarithmic but has values up to {low}")
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        if len(decades) < 2:
            decades = range(decades[0], decades[0] + 2)
        ticks = tuple(10.0**k for k in decades)
        return Axis(ticks[0], ticks[-1], start, end, ticks, True)
    if high == low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    step = _round_step((high - low) / max(most, 2))
    # The data's own ends stay on the horizontal axis; the vertical one ends on ticks.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(k * step for k in range(first, last + 1))
    if end > start:
        ticks = tuple(t for t in ticks if low - 1e-9 * step <= t <= high + 1e-9 * step)
        return Axis(low, high, start, end, ticks, False)
    return Axis(ticks[0], ticks[-1], start, end, ticks, False)


def _round_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)


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


def _legend(series: Sequence[Series], x_axis: Axis, y_axis: Axis) -> list[str]:
    """Names in the emptiest corner, on a pale ground; none for a single line."""
    if len(series) < 2:
        return []
    wide = 40 + 6.6 * max(len(line.name) for line in series)
    high = 18 * len(series) + 8
    boxes = [(x_axis.end - wide - 6, y_axis.end + 4), (x_axis.start + 8, y_axis.end + 4)]
    boxes += [(x, y_axis.start - high - 6) for x, _ in boxes]
    x, y = min(boxes, key=lambda box: _points_inside(series, x_axis, y_axis, box, (wide, high)))
    parts = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high}" rx="4" fill="#fff" fill-opacity="0.85"/>'
    ]
    for i, line in enumerate(series):
        middle = y + 13 + 18 * i
        dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
        parts.append(
            f'<path d="M{x + 8:.1f} {middle:.1f}h20" stroke="{_colour(i)}" stroke-width="2.5"{dashes}/>'
            f'<text x="{x + 34:.1f}" y="{middle + 4:.1f}">{escape(line.name)}</text>'
        )
    return parts


def _points_inside(
    series: Sequence[Series],
    x_axis: Axis,
    y_axis: Axis,
    corner: tuple[float, float],
    size: tuple[float, float],
) -> int:
    count = 0
    for line in series:
        x, y = x_axis.pixel(line.x) - corner[0], y_axis.pixel(line.y) - corner[1]
        count += int(((x > 0) & (x < size[0]) & (y > 0) & (y < size[1])).sum())
    return count


def _colour(index: int) -> str:
    return LINE_COLOURS[index % len(LINE_COLOURS)]
