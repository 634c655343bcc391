"""Where a curve carries points: the part of a wire that is done vertex by vertex, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

NO_LENGTH = 1e-12
"""Of the longest slope: shorter ones have no direction."""
OPPOSITE = -1.0 + 1e-14
"""Cosine below which two directions are opposite."""


@njit(cache=True, forceinline=True)
def _product(a: tuple, b: tuple) -> tuple:
    """Two quaternions, (x, y, z, w) each."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@njit(cache=True, forceinline=True)
def turn_between(a: tuple, b: tuple) -> tuple:
    """The smallest rotation that turns unit direction a into b."""
    cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    if cosine > OPPOSITE:
        x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
        w = 1.0 + cosine
    else:  # half a turn about any perpendicular, taken from the smallest component of a
        least = 0
        for k in range(1, 3):
            if abs(a[k]) < abs(a[least]):
                least = k
        x, y, z = 0.0, a[2], -a[1]
        if least == 1:
            x, y, z = -a[2], 0.0, a[0]
        elif least == 2:
            x, y, z = a[1], -a[0], 0.0
        w = 0.0
    length = np.sqrt(x * x + y * y + z * z + w * w)
    return x / length, y / length, z / length, w / length


@njit(cache=True)
def carried_points(
    points: np.ndarray,
    vertices: np.ndarray,
    weights: np.ndarray,
    slopes: np.ndarray,
    before: np.ndarray,
    back: np.ndarray,
    rest: np.ndarray,
    controls: np.ndarray,
    tangents: np.ndarray,
    turns: np.ndarray,
) -> np.ndarray:
    """(m, 3) where control points `controls` (c, 3), at rest `rest`, carry points (m, 3) of `vertices` (m,).

    Of all vertices (n): curve and slope weights (n, c), the sample at or before each (n,), and `back` (n, 4) from
    its rest tangent to that sample's. Of the samples (s): moved unit tangents (s, 3) and turns since rest (s, 4).
    """
    count, c = len(vertices), len(controls)
    own = np.zeros((count, 3))
    longest = 1e-300
    for m in range(count):
        for i in range(c):
            share = slopes[vertices[m], i]
            for k in range(3):
                own[m, k] += share * controls[i, k]
        longest = max(longest, np.sqrt(own[m, 0] ** 2 + own[m, 1] ** 2 + own[m, 2] ** 2))
    out = np.empty((count, 3))
    for m in range(count):
        vertex = vertices[m]
        sample = before[vertex]
        tangent = (tangents[sample, 0], tangents[sample, 1], tangents[sample, 2])
        length = np.sqrt(own[m, 0] ** 2 + own[m, 1] ** 2 + own[m, 2] ** 2)
        ahead = (0.0, 0.0, 0.0, 1.0)
        if length > NO_LENGTH * longest:
            ahead = turn_between(tangent, (own[m, 0] / length, own[m, 1] / length, own[m, 2] / length))
        turn = (turns[sample, 0], turns[sample, 1], turns[sample, 2], turns[sample, 3])
        home = (back[vertex, 0], back[vertex, 1], back[vertex, 2], back[vertex, 3])
        x, y, z, w = _product(ahead, _product(turn, home))
        at = np.zeros(3)
        arm = np.empty(3)
        for k in range(3):
            arm[k] = points[m, k]
        for i in range(c):
            share = weights[vertex, i]
            for k in range(3):
                at[k] += share * controls[i, k]
                arm[k] -= share * rest[i, k]
        # v + 2 q × (q × v + w v) of a unit quaternion.
        a = y * arm[2] - z * arm[1] + w * arm[0]
        b = z * arm[0] - x * arm[2] + w * arm[1]
        d = x * arm[1] - y * arm[0] + w * arm[2]
        out[m, 0] = at[0] + arm[0] + 2.0 * (y * d - z * b)
        out[m, 1] = at[1] + arm[1] + 2.0 * (z * a - x * d)
        out[m, 2] = at[2] + arm[2] + 2.0 * (x * b - y * a)
    return out
