"""Wires one behind the other as one compiled thing: tables of which vertex hangs on which curve, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softrig.numerics.rotations import quaternions_between
from softrig.rig.curves import filled_tangents, nearest_parameters, spline_basis, transported
from softrig.rig.wire_kernel import (
    COLUMNS,
    FRAME,
    HOME,
    LANES,
    SUPPORT,
    Curves,
    Holds,
    Pose,
    wired_points,
)

SAMPLES_PER_CONTROL = 16
REMEMBERED = 16
"""Choices of vertices whose tables are kept."""


class Hanging(NamedTuple):
    """One curve and the vertices that hang on it."""

    controls: np.ndarray
    """(c, 3) metres at rest."""
    rest_positions: np.ndarray
    """(n, 3) metres."""
    weights: np.ndarray | None
    """(n,) share of the motion each vertex takes; None: all of it."""


class Wires:
    """Several curves, each moving what those before it left. Parameters: displacements of all control points."""

    def __init__(self, parts: Sequence[Hanging]) -> None:
        self._curves, self._vertex_holds = wire_tables(parts)
        wires, samples = len(self._curves.rest_tangents), len(self._curves.sample_controls)
        controls = self._curves.controls
        self._pose = Pose(
            np.full(controls[:-SUPPORT].size, np.nan),
            np.zeros_like(controls),
            np.zeros(wires, np.bool_),
            np.zeros(wires),
            np.zeros((samples, FRAME)),
        )
        self._all: tuple[Holds, np.ndarray] | None = None
        self._some: dict[bytes, tuple[Holds, np.ndarray]] = {}

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the curves carry `points` of `vertices` (None: all) at displacements p (3c,)."""
        holds, room = self._holds(vertices)
        p, given = (np.ascontiguousarray(part, dtype=np.float64) for part in (p, points))
        out = np.empty((len(points), 3))
        return out if wired_points(self._curves, holds, p, self._pose, given, room, out) else points

    def _holds(self, vertices: np.ndarray | None) -> tuple[Holds, np.ndarray]:
        """The holds of `vertices` and room for their points; the same few are asked for again and again."""
        if vertices is None:
            if self._all is None:
                self._all = self._vertex_holds.of(np.arange(len(self._vertex_holds.starts) - 1))
            return self._all
        key = np.ascontiguousarray(vertices, dtype=np.int64).tobytes()
        found = self._some.get(key)
        if found is None:
            found = self._vertex_holds.of(np.asarray(vertices))
            # A new one, since other threads may be reading the last.
            self._some = dict([*self._some.items()][1 - REMEMBERED :]) | {key: found}
        return found


class VertexHolds(NamedTuple):
    """What each vertex hangs on, vertex by vertex and within one in the order of the wires."""

    starts: np.ndarray
    """(n + 1,) where the holds of each vertex begin."""
    places: np.ndarray
    """(h, 3) wire, first control point, and the sample at or before the vertex."""
    values: np.ndarray
    """(h, COLUMNS) as in `Holds`."""

    def of(self, vertices: np.ndarray) -> tuple[Holds, np.ndarray]:
        """Those of `vertices` (m,), in runs and blocks, and room for their points."""
        counts = self.starts[vertices + 1] - self.starts[vertices]
        owners = np.repeat(np.arange(len(vertices)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = self.starts[vertices][owners] + within
        order = np.lexsort((owners, *self.places[chosen].T[::-1]))
        chosen, owners = chosen[order], owners[order]
        keys, sizes = np.unique(self.places[chosen], axis=0, return_counts=True)
        blocks = -(-sizes // LANES)
        ends = np.cumsum(blocks)
        # Where each hold stands once every run is filled up.
        run = np.repeat(np.arange(len(sizes)), sizes)
        place = LANES * (ends - blocks)[run] + np.arange(len(owners)) - (np.cumsum(sizes) - sizes)[run]
        total = int(ends[-1]) if len(ends) else 0
        rows = np.full(LANES * total, 4 * len(vertices), np.uint64)
        rows[place] = 4 * owners
        values = np.zeros((LANES * total, COLUMNS))
        values[:, HOME + 3] = 1.0
        values[place] = self.values[chosen]
        runs = np.concatenate([keys, (ends - blocks)[:, None], ends[:, None]], axis=1).astype(np.int32)
        flat = np.ascontiguousarray(values.reshape(total, LANES, COLUMNS).transpose(0, 2, 1)).ravel()
        return Holds(runs, rows.reshape(-1, LANES), flat), np.zeros(4 * (len(vertices) + 1))


def wire_tables(parts: Sequence[Hanging]) -> tuple[Curves, VertexHolds]:
    """The curves at rest and what hangs on them; a vertex without a share of a curve costs nothing."""
    sample_controls, sample_slopes, rest_tangents, rest_frames = [], [], [], []
    owners, places, holds = [], [], []
    first_controls, first_samples = [0], [0]
    for wire, (controls, positions, weights) in enumerate(parts):
        count = len(controls)
        samples = np.linspace(0.0, 1.0, SAMPLES_PER_CONTROL * count + 1)
        basis = spline_basis(count, samples, 1)
        tangents = filled_tangents(basis @ controls)
        sample_controls.append(first_controls[-1] + _first_used(basis, basis))
        sample_slopes.append(_used(basis, _first_used(basis, basis)))
        rest_tangents.append(tangents[0])
        rest_frames.append(transported(tangents))

        shares = np.ones(len(positions)) if weights is None else np.asarray(weights, dtype=np.float64)
        touched = np.flatnonzero(shares)
        where = nearest_parameters(controls, positions[touched], len(samples))
        before = np.clip(np.searchsorted(samples, where, side="right") - 1, 0, len(samples) - 1)
        curve, slope = spline_basis(count, where), spline_basis(count, where, 1)
        first = _first_used(curve, slope)
        home = quaternions_between(_own(slope @ controls, tangents, before), tangents[before])
        owners.append(touched)
        places.append(
            np.stack([np.full(len(touched), wire), first_controls[-1] + first, first_samples[-1] + before], 1)
        )
        holds.append(
            np.concatenate(
                [
                    shares[touched, None],
                    _used(curve, first),
                    _used(slope, first),
                    curve @ controls,
                    home,
                ],
                axis=1,
            )
        )
        first_controls.append(first_controls[-1] + count)
        first_samples.append(first_samples[-1] + len(samples))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")  # keeps the order of the wires
    counts = np.bincount(owner, minlength=len(parts[0].rest_positions))
    values = np.concatenate(holds)[order]
    assert values.shape[1] == COLUMNS
    curves = Curves(
        np.concatenate([*(part.controls for part in parts), np.zeros((SUPPORT, 3))]),
        np.array(first_controls, np.int32),
        np.array(first_samples, np.int32),
        np.concatenate(sample_controls).astype(np.int32),
        np.concatenate(sample_slopes),
        np.stack(rest_tangents),
        np.concatenate(rest_frames),
    )
    return curves, VertexHolds(np.concatenate([[0], np.cumsum(counts)]), np.concatenate(places)[order], values)


def _first_used(curve: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """(m,) the first control point with a weight, or one before it, so that SUPPORT of them are among the points."""
    first = np.argmax((curve != 0.0) | (slope != 0.0), axis=1)
    return np.minimum(first, max(curve.shape[1] - SUPPORT, 0))


def _used(basis: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(m, SUPPORT) weights (m, c) from `first` (m,) on; no others are there."""
    padded = np.pad(basis, ((0, 0), (0, SUPPORT)))
    return np.take_along_axis(padded, first[:, None] + np.arange(SUPPORT), axis=1)


def _own(slopes: np.ndarray, tangents: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(m, 3) slopes, or where they have no length the tangents of the samples before them."""
    lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
    return np.where(lengths > 1e-12 * lengths.max(initial=1e-300), slopes, tangents[before])
