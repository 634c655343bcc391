"""Wires one behind the other, compiled: the curves' frames once a pose, then each vertex through all that hold it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.numerics.vectors import load, load_four, root, spread, store, transposed

NO_LENGTH = 1e-12
"""Of the longest slope of a curve: shorter ones have no direction."""
SMALL = 1e-100
"""Metres: its square is a number, too."""
OPPOSITE = -1.0 + 1e-14
"""Cosine below which two directions are opposite."""
SUPPORT = 4
"""Control points that a point of a cubic curve depends on."""
LANES = 4
"""Vertices that are done at once: double numbers of a register."""
SHARE, CURVE, SLOPE, FOOT, HOME, COLUMNS = 0, 1, 5, 9, 12, 16
"""Columns of `Holds.values`."""
FIRST_CURVE, FIRST_SLOPE = np.uint64(LANES * CURVE), np.uint64(LANES * SLOPE)
FOOT_X, FOOT_Y, FOOT_Z = (np.uint64(LANES * (FOOT + k)) for k in range(3))
HOME_X, HOME_Y, HOME_Z, HOME_W = (np.uint64(LANES * (HOME + k)) for k in range(4))
FRAME = 12
"""Numbers of a sample: its unit tangent and a matrix."""


class Curves(NamedTuple):
    """w wires with c control points and s samples in all."""

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


class Pose(NamedTuple):
    """Where the curves are; written by `curve_frames`."""

    p: np.ndarray
    """(3c,) displacements of the control points."""
    controls: np.ndarray
    """(c + SUPPORT, 3) metres."""
    moved: np.ndarray
    """(w,) bool: whether any control point of a wire did."""
    least: np.ndarray
    """(w,) length of a slope without a direction."""
    frames: np.ndarray
    """(s, FRAME) tangent t, then by rows the sample's turn since rest followed by half a turn about t."""


class Holds(NamedTuple):
    """Which vertices have shares of which wires, for some vertices: in runs that hang on one sample, wire by wire.

    Runs are filled up to whole blocks of LANES with holds of no share, by the vertex behind the last.
    """

    runs: np.ndarray
    """(r, 5) int32: wire, first control point, sample at or before the vertices, first block, and that of the next."""
    rows: np.ndarray
    """(b, LANES) uint64 where the rows of four numbers of the chosen vertices begin."""
    values: np.ndarray
    """Flat (b, COLUMNS, LANES): share; curve weights; slope weights; the rest curve's nearest point (m); the
    quaternion from the own rest tangent to that of the sample."""


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


@njit(cache=True)
def curve_frames(curves: Curves, p: np.ndarray, pose: Pose) -> bool:
    """Write where the curves are at displacements p (3c,) of their control points; whether any wire moved.

    What was drawn is often what was just stepped: nothing is done where p is that of the last time.
    """
    controls, moved, least, frames = pose.controls, pose.moved, pose.least, pose.frames
    same = True
    for i in range(p.shape[0]):
        same = same and p[i] == pose.p[i]
    if same:
        return bool(moved.any())
    pose.p[:] = p
    count = curves.controls.shape[0] - SUPPORT
    for i in range(count):
        for k in range(3):
            controls[i, k] = curves.controls[i, k] + p[3 * i + k]
    for wire in range(moved.shape[0]):
        moved[wire] = False
        for i in range(3 * curves.first_controls[wire], 3 * curves.first_controls[wire + 1]):
            if p[i] != 0.0:
                moved[wire] = True
        if not moved[wire]:
            continue
        first, last = curves.first_samples[wire], curves.first_samples[wire + 1]
        longest = 0.0
        for s in range(first, last):
            at = curves.sample_controls[s]
            square = 0.0
            for k in range(3):
                slope = 0.0
                for i in range(SUPPORT):
                    slope += curves.sample_slopes[s, i] * controls[at + i, k]
                frames[s, k] = slope
                square += slope * slope
            longest = max(longest, square)
        least[wire] = max(NO_LENGTH * np.sqrt(longest), SMALL)
        _fill_tangents(frames, first, last, least[wire])
        before = (curves.rest_tangents[wire, 0], curves.rest_tangents[wire, 1], curves.rest_tangents[wire, 2])
        frame = (0.0, 0.0, 0.0, 1.0)
        for s in range(first, last):
            t = (frames[s, 0], frames[s, 1], frames[s, 2])
            frame = _product(turn_between(before, t), frame)
            before = t
            rest = curves.rest_frames[s]
            turn = _product(frame, (-rest[0], -rest[1], -rest[2], rest[3]))
            # Half a turn about t is the quaternion (t, 0).
            _write_matrix(_product((t[0], t[1], t[2], 0.0), turn), frames[s])
    return bool(moved.any())


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
def carried_points(holds: Holds, pose: Pose, points: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write (m, 3) where the wires take `points` (m, 3) of the vertices of `holds`; `rows`: room of 4 (m + 1) numbers.

    A point x of share σ goes to x + σ (c + R (x − X) − x), with its nearest point X of the curve, c of the moved curve,
    and R: from its own rest tangent to the sample's, with the sample since rest, and on to its own tangent now. With
    unit tangent t and slope s that last turn is half a turn about t and one about h = |s| t + s. Where the slope has
    no length a little more t makes it none; where it is opposite any answer is as good.
    """
    count = points.shape[0]
    for m in range(count):
        rows[4 * m], rows[4 * m + 1], rows[4 * m + 2], rows[4 * m + 3] = points[m, 0], points[m, 1], points[m, 2], 0.0
    rows[4 * count :] = 0.0
    values, two = holds.values, spread(2.0)
    for r in range(holds.runs.shape[0]):
        wire, first, sample = holds.runs[r, 0], holds.runs[r, 1], holds.runs[r, 2]
        if not pose.moved[wire]:
            continue
        frame, places, least = pose.frames[sample], pose.controls[first : first + SUPPORT], spread(pose.least[wire])
        tx, ty, tz = spread(frame[0]), spread(frame[1]), spread(frame[2])
        for block in range(holds.runs[r, 3], holds.runs[r, 4]):
            at = np.uint64(LANES * COLUMNS * block)
            # Weighted sums of the control points.
            weight, slope = load(values, at + FIRST_CURVE), load(values, at + FIRST_SLOPE)
            a, b, c = spread(places[0, 0]), spread(places[0, 1]), spread(places[0, 2])
            cx, cy, cz = weight * a, weight * b, weight * c
            sx, sy, sz = slope * a, slope * b, slope * c
            for i in range(1, SUPPORT):
                step = np.uint64(LANES * i)
                weight, slope = load(values, at + FIRST_CURVE + step), load(values, at + FIRST_SLOPE + step)
                a, b, c = spread(places[i, 0]), spread(places[i, 1]), spread(places[i, 2])
                cx, cy, cz = cx + weight * a, cy + weight * b, cz + weight * c
                sx, sy, sz = sx + slope * a, sy + slope * b, sz + slope * c
            length = root(sx * sx + sy * sy + sz * sz) + least
            hx, hy, hz = sx + length * tx, sy + length * ty, sz + length * tz
            own = holds.rows[block]
            px, py, pz, rest = transposed(
                load_four(rows, own[0]), load_four(rows, own[1]), load_four(rows, own[2]), load_four(rows, own[3])
            )
            # v + 2 q × (q × v + w v) of a unit quaternion.
            vx, vy, vz = px - load(values, at + FOOT_X), py - load(values, at + FOOT_Y), pz - load(values, at + FOOT_Z)
            qx, qy, qz = load(values, at + HOME_X), load(values, at + HOME_Y), load(values, at + HOME_Z)
            qw = load(values, at + HOME_W)
            a, b, c = qy * vz - qz * vy + qw * vx, qz * vx - qx * vz + qw * vy, qx * vy - qy * vx + qw * vz
            vx, vy, vz = vx + two * (qy * c - qz * b), vy + two * (qz * a - qx * c), vz + two * (qx * b - qy * a)
            a = spread(frame[3]) * vx + spread(frame[4]) * vy + spread(frame[5]) * vz
            b = spread(frame[6]) * vx + spread(frame[7]) * vy + spread(frame[8]) * vz
            c = spread(frame[9]) * vx + spread(frame[10]) * vy + spread(frame[11]) * vz
            along = two * (hx * a + hy * b + hz * c) / (hx * hx + hy * hy + hz * hz)
            share = load(values, at)
            px = px + share * (cx + along * hx - a - px)
            py = py + share * (cy + along * hy - b - py)
            pz = pz + share * (cz + along * hz - c - pz)
            one, second, third, fourth = transposed(px, py, pz, rest)
            store(rows, own[0], one)
            store(rows, own[1], second)
            store(rows, own[2], third)
            store(rows, own[3], fourth)
    for m in range(count):
        out[m, 0], out[m, 1], out[m, 2] = rows[4 * m], rows[4 * m + 1], rows[4 * m + 2]


@njit(cache=True)
def wired_points(
    curves: Curves, holds: Holds, p: np.ndarray, pose: Pose, points: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> bool:
    """Both in one call, so that no other thread comes between; whether any wire moved, else nothing is written."""
    moved = curve_frames(curves, p, pose)
    if moved:
        carried_points(holds, pose, points, rows, out)
    return moved
