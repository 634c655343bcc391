"""Sculpting of corrective shapes: bulges on a posed surface, pulled back through the rig into a morph target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.characters.paint import Triple, inside_softly
from softrig.characters.smoothing import neighbour_average, vertex_normals
from softrig.errors import SoftrigError
from softrig.rig.protocol import Deformer

NORMAL_ROUNDS = 12


@dataclass(frozen=True)
class Bulge:
    """Flesh pushed out along the posed surface's normal by `amount`, m, within a soft ellipsoid of the rest pose."""

    centre: Triple
    radii: Triple | float
    amount: float
    softness: float = 0.8
    turn: Triple = (0.0, 0.0, 0.0)

    def mirrored(self) -> Bulge:
        """The bulge on the other side."""
        (cx, cy, cz), (tx, ty, tz) = self.centre, self.turn
        return Bulge((-cx, cy, cz), self.radii, self.amount, self.softness, (tx, -ty, -tz))


def bulged(rest: np.ndarray, posed: np.ndarray, triangles: np.ndarray, bulges: Sequence[Bulge]) -> np.ndarray:
    """(n, 3) the `posed` surface with the bulges on it, m."""
    average = neighbour_average(triangles, len(rest))
    normals = vertex_normals(posed, triangles)
    # In a crease neighbouring normals cross; smoothed ones lead the flesh out of it side by side.
    for _ in range(NORMAL_ROUNDS):
        normals = average @ normals
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    heights = np.zeros(len(rest))
    for bulge in bulges:
        heights += bulge.amount * inside_softly(rest, bulge.centre, bulge.radii, bulge.softness, bulge.turn)
    return posed + heights[:, None] * normals


def pulled_back(rig: Deformer, p: np.ndarray, target: np.ndarray, rounds: int = 4) -> np.ndarray:
    """(n, 3) displacements of the rest positions that `rig` at `p` takes to `target` (n, 3), m.

    Newton's method a vertex. Skins and wires are affine in a vertex' place: they need one round, and one for
    rounding. Vertices that are in place already get exactly zero.
    """
    rest = rig.rest_positions
    moved = np.flatnonzero(np.abs(target - rig.deform(p, rest, None)).max(axis=1) > 1e-12)
    points = rest[moved]
    step = 1e-5
    for _ in range(rounds):
        now = rig.deform(p, points, moved)
        slopes = [rig.deform(p, points + step * unit, moved) - now for unit in np.eye(3)]
        jacobians = np.stack(slopes, axis=2) / step
        points = points + np.linalg.solve(jacobians, (target[moved] - now)[:, :, None])[:, :, 0]
    missed = np.abs(rig.deform(p, points, moved) - target[moved]).max(initial=0.0)
    if not missed < 1e-9:
        raise SoftrigError(f"correction: the rig cannot reach the sculpted shape, it misses by {missed:.2g} m")
    displacements = np.zeros_like(rest)
    displacements[moved] = points - rest[moved]
    return displacements
