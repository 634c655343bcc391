"""What every chart is laid out by, drawn as pixels or as SVG: axes with round ticks, and a legend in rows above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import InputError


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


def fitted_axis(
    low: float,
    high: float,
    start: float,
    end: float,
    *,
    most: int,
    logarithmic: bool = False,
    tight: bool = False,
    name: str = "",
) -> Axis:
    """An axis from pixel `start` to `end` for values from `low` to `high`, of about `most` round ticks.

    `tight`: it ends where the values end, not on ticks. `name` is what an error calls it.
    """
    if logarithmic:
        if low <= 0.0:
            raise InputError(f"a logarithmic axis cannot begin at {low}{f' ({name})' if name else ''}")
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high) - 1e-9)
        ticks = tuple(10.0**k for k in range(first, max(last, first + 1) + 1))
    else:
        if high <= low:
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        step = _round_step((high - low) / max(most, 2))
        ticks = tuple(k * step for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1))
    if tight and high > low:
        slack = 1e-9 * (high - low)
        return Axis(low, high, start, end, tuple(t for t in ticks if low - slack <= t <= high + slack), logarithmic)
    return Axis(ticks[0], ticks[-1], start, end, ticks, logarithmic)


def legend_places(
    widths: Sequence[float], left: float, right: float, top: float, height: float
) -> tuple[list[tuple[float, float]], float]:
    """Left end and middle of each entry, and where the rows end: entries of `widths` pixels in rows from `top` on.

    A row is `height` pixels high and goes from `left` to `right`; what does not fit goes to the next one.
    """
    places, x, y = [], left, top + 0.5 * height
    for wide in widths:
        if x + wide > right and x > left:
            x, y = left, y + height
        places.append((x, y))
        x += wide
    return places, y + 0.5 * height


def _round_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)
