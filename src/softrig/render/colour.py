"""Colour: sRGB and linear light, and two maps from numbers to colours that look evenly spaced.

The maps are curves in Oklab (Ottosson 2020), whose distances match what the eye calls different,
walked at constant speed. `sequential` grows steadily lighter, so it also reads in grey.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from softrig.errors import InputError, require_finite

STEPS = 512

_LMS_FROM_OKLAB = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_LINEAR_FROM_LMS = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])

# Knots of the curves: lightness, chroma, hue in degrees.
_SEQUENTIAL = np.array(
    [
        [0.27, 0.125, 302.0],
        [0.44, 0.125, 272.0],
        [0.60, 0.105, 205.0],
        [0.76, 0.150, 152.0],
        [0.93, 0.175, 103.0],
    ]
)
_DIVERGING = np.array(
    [
        [0.40, 0.135, 258.0],
        [0.66, 0.105, 245.0],
        [0.94, 0.004, 240.0],
        [0.94, 0.004, 50.0],
        [0.68, 0.130, 42.0],
        [0.42, 0.150, 27.0],
    ]
)


def linear(srgb: np.ndarray) -> np.ndarray:
    """Linear light of sRGB values in 0 … 1."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def srgb(linear_light: np.ndarray) -> np.ndarray:
    """sRGB values of linear light, both in 0 … 1."""
    clipped = np.clip(linear_light, 0.0, 1.0)
    return np.where(clipped <= 0.0031308, 12.92 * clipped, 1.055 * clipped ** (1 / 2.4) - 0.055)


def luminance(colours: np.ndarray) -> np.ndarray:
    """Relative luminance, 0 … 1, of sRGB colours (…, 3)."""
    return linear(np.asarray(colours, dtype=np.float64)) @ _LUMINANCE


def lightened(linear_light: np.ndarray, power: float) -> np.ndarray:
    """(…, 3) sRGB of linear light in 0 … 1 whose luminance Y is raised to Y**power; the proportions of a colour stay as
    far as none of them is cut at 1.

    Below 1, what is dark grows lighter and white stays white: fur that is nearly black shows its form.
    """
    light = np.asarray(linear_light, dtype=np.float64)
    shine = np.maximum(light @ _LUMINANCE, 1e-6)
    return srgb(light * (shine ** (power - 1.0))[..., None])


def sequential(values: np.ndarray, *, low: float | None = None, high: float | None = None) -> np.ndarray:
    """(…, 3) sRGB of `values` from dark violet (`low`) over teal to yellow (`high`).

    The ends default to the least and greatest value; values beyond them take the end's colour.
    """
    values = _numbers(values)
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    return _looked_up(values, low, high, _table("sequential"))


def diverging(values: np.ndarray, *, limit: float | None = None) -> np.ndarray:
    """(…, 3) sRGB of signed `values`: blue at `-limit`, near white at 0, red at `limit`.

    `limit` defaults to the greatest absolute value.
    """
    values = _numbers(values)
    limit = float(np.abs(values).max()) if limit is None else limit
    return _looked_up(values, -limit, limit, _table("diverging"))


def _numbers(values: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0:
        raise InputError("colour map: no values")
    require_finite(numbers, "colour map values")
    return numbers


def _looked_up(values: np.ndarray, low: float, high: float, table: np.ndarray) -> np.ndarray:
    if high < low:
        raise InputError(f"colour map: high {high} is below low {low}")
    share = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    position = np.clip(share, 0.0, 1.0) * (STEPS - 1)
    below = np.minimum(position.astype(np.int64), STEPS - 2)
    part = (position - below)[..., None]
    return (1.0 - part) * table[below] + part * table[below + 1]


@lru_cache(maxsize=2)
def _table(name: str) -> np.ndarray:
    """(STEPS, 3) sRGB along the curve, at equal Oklab distances."""
    curve = _curve(_SEQUENTIAL) if name == "sequential" else _curve(_DIVERGING)
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    travelled = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0.0, travelled[-1], STEPS)
    if name == "diverging":  # white stays in the middle although the red arm is longer
        middle = travelled[int(np.argmax(curve[:, 0]))]
        half = STEPS // 2
        even = np.concatenate([np.linspace(0.0, middle, half), np.linspace(middle, travelled[-1], STEPS - half)])
    lab = np.stack([np.interp(even, travelled, curve[:, k]) for k in range(3)], axis=1)
    return srgb((lab @ _LMS_FROM_OKLAB.T) ** 3 @ _LINEAR_FROM_LMS.T)


def _curve(knots: np.ndarray) -> np.ndarray:
    """Many Oklab points along the knots, rounded at the corners."""
    angle = np.radians(knots[:, 2])
    lab = np.stack([knots[:, 0], knots[:, 1] * np.cos(angle), knots[:, 1] * np.sin(angle)], axis=1)
    fine = np.linspace(0, len(knots) - 1, 4001)
    dense = np.stack([np.interp(fine, np.arange(len(knots)), lab[:, k]) for k in range(3)], axis=1)
    window = np.hanning(1001)
    window /= window.sum()
    padded = np.concatenate([2 * dense[0] - dense[500:0:-1], dense, 2 * dense[-1] - dense[-2:-502:-1]])
    return np.stack([np.convolve(padded[:, k], window, mode="valid") for k in range(3)], axis=1)


def scale_end(value: float) -> float:
    """The least number of two figures that is not below `value`: where a colour bar may end."""
    if value <= 0.0:
        return 1.0
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return power * math.ceil(value / power - 1e-9)
