"""Corrective shapes: what an artist would sculpt at a pose, kept as a morph target and the pose it belongs to.

A correction's weight follows from the pose (pose-space deformation): its drivers' way from rest, measured along
their way to the correction's own pose; 0 at rest and at the poses of other corrections, 1 at its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.characters.paint import Triple, inside_softly
from softrig.characters.smoothing import neighbour_average, vertex_normals
from softrig.errors import SoftrigError
from softrig.numerics.rotations import quaternion_conjugate, quaternion_product, rotation_vectors
from softrig.rig.parameters import Parameters
from softrig.rig.protocol import Deformer

NORMAL_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class Correction:
    """One sculpted pose.

    name       of the morph target; its parameter is "<name>.weight"
    pose       (P,) the rig's parameters, its own weight 1 and all other corrections' 0
    drivers    what switches it on: "<joint>.rotation", or names of single parameters
    positions  (n, 3) the surface as sculpted at `pose`, m
    """

    name: str
    pose: np.ndarray
    drivers: tuple[str, ...]
    positions: np.ndarray


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


def correction_weights(parameters: Parameters, corrections: Sequence[Correction], p: np.ndarray) -> np.ndarray:
    """(..., c) weights of the corrections at parameters p (..., P): at each one's own pose 1, all others' 0."""
    if not corrections:
        return np.zeros((*p.shape[:-1], 0))
    at_poses = _ways(parameters, corrections, np.stack([correction.pose for correction in corrections]))
    # Poses that go partly the same way would switch each other on; the inverse takes that out.
    return np.clip(_ways(parameters, corrections, p) @ np.linalg.inv(at_poses), 0.0, 1.0)


def _ways(parameters: Parameters, corrections: Sequence[Correction], p: np.ndarray) -> np.ndarray:
    """(..., c) how much of the way to each correction's pose its drivers have gone, 0 to 1."""
    shares = []
    for correction in corrections:
        way = driver_values(parameters, correction.drivers, correction.pose)
        now = driver_values(parameters, correction.drivers, p)
        shares.append(np.clip((now * way).sum(axis=-1) / (way**2).sum(), 0.0, 1.0))
    return np.stack(shares, axis=-1)


def driver_values(parameters: Parameters, drivers: Sequence[str], p: np.ndarray) -> np.ndarray:
    """(..., d) how far the drivers are from rest: rotation vectors, rad, and plain differences."""
    values = []
    for driver in drivers:
        if driver.endswith(".rotation"):
            where = parameters.index(f"{driver}.x") + np.arange(4)
            turn = quaternion_product(p[..., where], quaternion_conjugate(parameters.rest[where]))
            values.append(rotation_vectors(turn))
        else:
            where = np.array([parameters.index(driver)])
            values.append(p[..., where] - parameters.rest[where])
    return np.concatenate(values, axis=-1)
