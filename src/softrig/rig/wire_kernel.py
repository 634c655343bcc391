"""Wires one behind the other, compiled: the curves' frames once a pose, then each vertex through all that hold it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

NO_LENGTH = 1e-12
"""Of the longest slope of a curve: shorter ones have no direction."""
OPPOSITE = -1.0 + 1e-14
"""Cosine below which two directions are opposite."""
SUPPORT = 4
"""Control points that a point of a cubic curve depends on."""
SHARE, CURVE, SLOPE, FOOT, HOME, COLUMNS = 0, 1, 5, 9, 12, 21
"""Columns of `WireTables.holds`."""
FRAME = 12
"""Numbers of a sample: its unit tangent and a matrix."""


class WireTables(NamedTuple):
    """w wires with c control points and s samples in all, and h holds: a vertex with a share of a wire."""

    controls: np.ndarray
    """(c + SUPPORT, 3) metres at rest, then zeros: curves of fewer points than SUPPORT read beyond their own."""
    first_controls: np.ndarray
    """(w + 1,) int32 where the control points of each begin."""
    first_samples: np.ndarray
    """(w + 1,) int32 where the samples of each begin."""
    sample_controls: np.ndarray
    """(s,) int32 the first control point that a sample depends on."""
    sample_slopes: np.ndarray
    """(s, SUPPORT) slope weights of those."""
    rest_tangents: np.ndarray
    """(w, 3) at the first samples, unit."""
    rest_frames: np.ndarray
    """(s, 4) quaternions that take a frame from the first sample to each, without twist, at rest."""
    starts: np.ndarray
    """(n + 1,) int32 where the holds of each vertex begin; they are in the order of the wires."""
    places: np.ndarray
    """(h, 3) int32 wire, first control point, and the sample at or before the vertex."""
    holds: np.ndarray
    """(h, COLUMNS) share; curve weights; slope weights; the rest curve's nearest point (m); the rotation from the own
    rest tangent to that of the sample, by rows."""


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
def _across(a: tuple) -> tuple:
    """A direction perpendicular to `a`, taken from its smallest component."""
    x, y, z = abs(a[0]), abs(a[1]), abs(a[2])
    if x <= y and x <= z:
        return 0.0, a[2], -a[1]
    if y <= z:
        return -a[2], 0.0, a[0]
    return a[1], -a[0], 0.0


@njit(cache=True, forceinline=True)
def turn_between(a: tuple, b: tuple) -> tuple:
    """The smallest rotation that turns unit direction a into b."""
    cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    if cosine > OPPOSITE:
        x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
        w = 1.0 + cosine
    else:  # half a turn about any perpendicular
        x, y, z = _across(a)
        w = 0.0
    length = np.sqrt(x * x + y * y + z * z + w * w)
    return x / length, y / length, z / length, w / length


@njit(cache=True, forceinline=True)
def half_way(a: tuple, b: tuple, least: float) -> tuple:
    """h such that half a turn about unit direction a and then one about h is the smallest rotation from a to b.

    No rotation where b is not longer than `least`.
    """
    square = b[0] * b[0] + b[1] * b[1] + b[2] * b[2]
    if square <= least * least:
        return a
    length = np.sqrt(square)
    if a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > OPPOSITE * length:
        return length * a[0] + b[0], length * a[1] + b[1], length * a[2] + b[2]
    n = _across(a)
    return n[1] * a[2] - n[2] * a[1], n[2] * a[0] - n[0] * a[2], n[0] * a[1] - n[1] * a[0]


@njit(cache=True)
def curve_frames(
    tables: WireTables, p: np.ndarray, controls: np.ndarray, moved: np.ndarray, least: np.ndarray, frames: np.ndarray
) -> None:
    """Write where the curves are at displacements p (3c,) of their control points.

    `controls` (c + SUPPORT, 3); `moved` (w,) whether any control point of a wire did; and of those, `least` (w,)
    length of a slope that has a direction, `frames` (s, FRAME): tangent t and the sample's turn since rest, followed by
    half a turn about t, by rows.
    """
    count = tables.controls.shape[0] - SUPPORT
    for i in range(count):
        for k in range(3):
            controls[i, k] = tables.controls[i, k] + p[3 * i + k]
    for wire in range(moved.shape[0]):
        moved[wire] = False
        for i in range(3 * tables.first_controls[wire], 3 * tables.first_controls[wire + 1]):
            if p[i] != 0.0:
                moved[wire] = True
        if not moved[wire]:
            continue
        first, last = tables.first_samples[wire], tables.first_samples[wire + 1]
        longest = 0.0
        for s in range(first, last):
            at = tables.sample_controls[s]
            square = 0.0
            for k in range(3):
                slope = 0.0
                for i in range(SUPPORT):
                    slope += tables.sample_slopes[s, i] * controls[at + i, k]
                frames[s, k] = slope
                square += slope * slope
            longest = max(longest, square)
        least[wire] = NO_LENGTH * max(np.sqrt(longest), 1e-300)
        _fill_tangents(frames, first, last, least[wire])
        before = (tables.rest_tangents[wire, 0], tables.rest_tangents[wire, 1], tables.rest_tangents[wire, 2])
        frame = (0.0, 0.0, 0.0, 1.0)
        for s in range(first, last):
            t = (frames[s, 0], frames[s, 1], frames[s, 2])
            frame = _product(turn_between(before, t), frame)
            before = t
            rest = tables.rest_frames[s]
            turn = _product(frame, (-rest[0], -rest[1], -rest[2], rest[3]))
            # Half a turn about t is the quaternion (t, 0).
            _write_matrix(_product((t[0], t[1], t[2], 0.0), turn), frames[s])


@njit(cache=True, forceinline=True)
def _fill_tangents(frames: np.ndarray, first: int, last: int, least: float) -> None:
    """Unit tangents from slopes; where one has no length (control points coincide), that of the nearest before it."""
    good = -1
    for s in range(first, last):
        length = np.sqrt(frames[s, 0] ** 2 + frames[s, 1] ** 2 + frames[s, 2] ** 2)
        if length > least:
            for k in range(3):
                frames[s, k] /= length
            if good < 0:
                for earlier in range(first, s):
                    for k in range(3):
                        frames[earlier, k] = frames[s, k]
            good = s
        elif good >= 0:
            for k in range(3):
                frames[s, k] = frames[good, k]
    if good < 0:
        for s in range(first, last):
            frames[s, 0], frames[s, 1], frames[s, 2] = 1.0, 0.0, 0.0


@njit(cache=True, forceinline=True)
def _write_matrix(q: tuple, frame: np.ndarray) -> None:
    """The rotation matrix of a unit quaternion, by rows behind the tangent."""
    x, y, z, w = q
    frame[3], frame[4], frame[5] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)
    frame[6], frame[7], frame[8] = 2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)
    frame[9], frame[10], frame[11] = 2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)


@njit(cache=True)
def carried_points(
    tables: WireTables,
    points: np.ndarray,
    vertices: np.ndarray,
    controls: np.ndarray,
    moved: np.ndarray,
    least: np.ndarray,
    frames: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write (m, 3) where the wires take `points` (m, 3) of `vertices` (m,), with what `curve_frames` wrote."""
    for m in range(vertices.shape[0]):
        px, py, pz = points[m, 0], points[m, 1], points[m, 2]
        for h in range(tables.starts[vertices[m]], tables.starts[vertices[m] + 1]):
            wire = tables.places[h, 0]
            if not moved[wire]:
                continue
            hold = tables.holds[h]
            at = tables.places[h, 1]
            x, y, z, u, v, w = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(SUPPORT):
                a, b, c = controls[at + i, 0], controls[at + i, 1], controls[at + i, 2]
                share, slope = hold[CURVE + i], hold[SLOPE + i]
                x, y, z = x + share * a, y + share * b, z + share * c
                u, v, w = u + slope * a, v + slope * b, w + slope * c
            frame = frames[tables.places[h, 2]]
            hx, hy, hz = half_way((frame[0], frame[1], frame[2]), (u, v, w), least[wire])
            # From the own tangent at rest to the sample's, with the sample, and on to the own tangent now.
            a, b, c = px - hold[FOOT], py - hold[FOOT + 1], pz - hold[FOOT + 2]
            d = hold[HOME] * a + hold[HOME + 1] * b + hold[HOME + 2] * c
            e = hold[HOME + 3] * a + hold[HOME + 4] * b + hold[HOME + 5] * c
            f = hold[HOME + 6] * a + hold[HOME + 7] * b + hold[HOME + 8] * c
            a = frame[3] * d + frame[4] * e + frame[5] * f
            b = frame[6] * d + frame[7] * e + frame[8] * f
            c = frame[9] * d + frame[10] * e + frame[11] * f
            along = 2.0 * (hx * a + hy * b + hz * c) / (hx * hx + hy * hy + hz * hz)
            share = hold[SHARE]
            px += share * (x + along * hx - a - px)
            py += share * (y + along * hy - b - py)
            pz += share * (z + along * hz - c - pz)
        out[m, 0], out[m, 1], out[m, 2] = px, py, pz
