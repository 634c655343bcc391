"""A bend, compiled: the arc of each point by series in its half angle, in loops that become vector instructions."""

from __future__ import annotations

from math import factorial, frexp

import numpy as np
from numba import njit

TERMS = 10
"""Of each series: up to one radian the next one is below rounding."""
SINC = np.array([(-1.0) ** k / factorial(2 * k + 1) for k in range(TERMS)])
"""Coefficients of sin h / h in powers of h²."""
COSINE = np.array([(-1.0) ** k / factorial(2 * k) for k in range(TERMS)])


@njit(cache=True, forceinline=True)
def _series(coefficients: np.ndarray, square: float) -> float:
    """Σ_k c_k squareᵏ, the last first."""
    value = coefficients[TERMS - 1]
    for k in range(TERMS - 1):
        value = value * square + coefficients[TERMS - 2 - k]
    return value


@njit(cache=True)
def bent_points(
    frame: np.ndarray, low: float, high: float, angle: float, points: np.ndarray, room: np.ndarray, out: np.ndarray
) -> None:
    """Write (m, 3) where a bend by `angle`, rad, takes `points` (m, 3); `room`: (4, m) numbers.

    `frame` (3, 3): origin, unit axis and unit direction. With s along the axis and u along the direction, c = s within
    `low` to `high`, φ = angle c / (high − low) and h = φ/2, the arc's point is (sin φ, 1 − cos φ) c/φ
    = (sinc h cos h, h sinc² h) c, which is exact at angle zero, and the cross-section there is turned by φ.
    """
    ox, oy, oz = frame[0, 0], frame[0, 1], frame[0, 2]
    ax, ay, az = frame[1, 0], frame[1, 1], frame[1, 2]
    dx, dy, dz = frame[2, 0], frame[2, 1], frame[2, 2]
    half = 0.5 * angle / (high - low)
    # |h| is at most half the angle. What goes beyond the series' radian is halved first and doubled after it: sinc 2h =
    # sinc h cos h, cos 2h = 1 − 2 sin² h. The error grows with the angle like that of φ itself, no faster.
    doublings = max(frexp(0.5 * angle)[1], 0)
    rate = half * 0.5**doublings
    s, u, sinc, cosine = room[0], room[1], room[2], room[3]
    # A few arrays a loop: with more of them LLVM does not find out that they lie apart.
    for m in range(points.shape[0]):
        x, y, z = points[m, 0] - ox, points[m, 1] - oy, points[m, 2] - oz
        s[m], u[m] = x * ax + y * ay + z * az, x * dx + y * dy + z * dz
    for m in range(points.shape[0]):
        h = rate * min(max(s[m], low), high)
        sinc[m], cosine[m] = _series(SINC, h * h), _series(COSINE, h * h)
    for _ in range(doublings):
        for m in range(points.shape[0]):
            sine = rate * min(max(s[m], low), high) * sinc[m]
            sinc[m], cosine[m] = sinc[m] * cosine[m], 1.0 - 2.0 * sine * sine
        rate *= 2.0
    for m in range(points.shape[0]):
        c = min(max(s[m], low), high)
        sine = half * c * sinc[m]
        turn_sine, turn_cosine = 2.0 * sine * cosine[m], 1.0 - 2.0 * sine * sine
        along = c * sinc[m] * cosine[m] - u[m] * turn_sine + (s[m] - c) * turn_cosine - s[m]
        aside = c * sine * sinc[m] + u[m] * turn_cosine + (s[m] - c) * turn_sine - u[m]
        s[m], u[m] = along, aside
    for m in range(points.shape[0]):
        out[m, 0] = points[m, 0] + s[m] * ax + u[m] * dx
        out[m, 1] = points[m, 1] + s[m] * ay + u[m] * dy
        out[m, 2] = points[m, 2] + s[m] * az + u[m] * dz
