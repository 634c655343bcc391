"""Wires one behind the other as one compiled thing: tables of which vertex hangs on which curve, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softrig.numerics.rotations import quaternion_matrices, quaternions_between
from softrig.rig.curves import filled_tangents, nearest_parameters, spline_basis, transported
from softrig.rig.wire_kernel import COLUMNS, FRAME, SUPPORT, WireTables, carried_points, curve_frames

SAMPLES_PER_CONTROL = 16


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
        self._tables = tables = wire_tables(parts)
        self._all = np.arange(len(tables.starts) - 1)
        self._controls = np.zeros_like(tables.controls)
        self._moved = np.zeros(len(tables.rest_tangents), np.bool_)
        self._least = np.zeros(len(tables.rest_tangents))
        self._frames = np.zeros((len(tables.sample_controls), FRAME))

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the curves carry `points` of `vertices` (None: all) at displacements p (3c,)."""
        room = self._controls, self._moved, self._least, self._frames
        curve_frames(self._tables, np.ascontiguousarray(p, dtype=np.float64), *room)
        if not self._moved.any():
            return points
        chosen = self._all if vertices is None else np.ascontiguousarray(vertices, dtype=np.int64)
        out = np.empty((len(chosen), 3))
        carried_points(self._tables, np.ascontiguousarray(points, dtype=np.float64), chosen, *room, out)
        return out


def wire_tables(parts: Sequence[Hanging]) -> WireTables:
    """What the compiled code needs to know of the curves at rest; a vertex without a share of a curve costs nothing."""
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
        home = quaternion_matrices(quaternions_between(_own(slope @ controls, tangents, before), tangents[before]))
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
                    home.reshape(-1, 9),
                ],
                axis=1,
            )
        )
        first_controls.append(first_controls[-1] + count)
        first_samples.append(first_samples[-1] + len(samples))
    vertex_count = len(parts[0].rest_positions)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")  # keeps the order of the wires
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=vertex_count))])
    all_holds = np.concatenate(holds)[order]
    assert all_holds.shape[1] == COLUMNS
    return WireTables(
        np.concatenate([*(part.controls for part in parts), np.zeros((SUPPORT, 3))]),
        np.array(first_controls, np.int32),
        np.array(first_samples, np.int32),
        np.concatenate(sample_controls).astype(np.int32),
        np.concatenate(sample_slopes),
        np.stack(rest_tangents),
        np.concatenate(rest_frames),
        starts.astype(np.int32),
        np.ascontiguousarray(np.concatenate(places)[order], dtype=np.int32),
        np.ascontiguousarray(all_holds),
    )


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
