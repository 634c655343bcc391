"""Corrective shapes: what an artist sculpted at a pose, kept as morph targets and the pose they belong to.

A correction's weight follows from the pose (pose-space deformation): its drivers' way from rest, measured along
their way to the correction's own pose; 0 at rest and at the poses of other corrections, 1 at its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite
from softrig.numerics.rotations import quaternion_conjugate, quaternion_product, rotation_vectors
from softrig.rig.parameters import Parameters

_LEAST_WAY = 1e-6
"""Drivers that are nearer to rest than this, rad, m or 1, cannot tell a correction's pose from rest."""
_LARGEST_CONDITION = 1e6
"""Beyond, two corrections' drivers go the same way and nothing tells which of them is meant."""


@dataclass(frozen=True, eq=False)
class Correction:
    """One sculpted pose.

    name       of the correction; of its morph target too, unless `weights` names others
    pose       (P,) the rig's parameters, its own weight 1 and all other corrections' 0
    drivers    what switches it on: "<joint>.rotation", or names of single parameters
    positions  (n, 3) the surface as sculpted at `pose`, m
    weights    the parameters that take its weight, several where meshes share it; default "<name>.weight" alone
    """

    name: str
    pose: np.ndarray
    drivers: tuple[str, ...]
    positions: np.ndarray
    weights: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "drivers", tuple(self.drivers))
        object.__setattr__(self, "weights", tuple(self.weights) or (f"{self.name}.weight",))

    def __repr__(self) -> str:
        return f"Correction({self.name!r}, drivers={self.drivers}, {len(self.positions):,} vertices)"


def correction_weights(parameters: Parameters, corrections: Sequence[Correction], p: np.ndarray) -> np.ndarray:
    """(..., c) weights of the corrections at parameters p (..., P): at each one's own pose 1, all others' 0."""
    if not corrections:
        return np.zeros((*p.shape[:-1], 0))
    # Poses that go partly the same way would switch each other on; the inverse takes that out.
    return np.clip(_ways(parameters, corrections, p) @ np.linalg.inv(shared_ways(parameters, corrections)), 0.0, 1.0)


def corrected(parameters: Parameters, corrections: Sequence[Correction], p: np.ndarray) -> np.ndarray:
    """(..., P) a copy of parameters `p` with the weights of the corrections that belong to the pose."""
    p = np.array(p, dtype=np.float64)
    weights = correction_weights(parameters, corrections, p)
    for number, correction in enumerate(corrections):
        p[..., [parameters.index(name) for name in correction.weights]] = weights[..., number, None]
    return p


def check_correction(parameters: Parameters, vertex_count: int, correction: Correction) -> None:
    """Raise `InputError` if a correction does not belong to a rig of these parameters and that many vertices."""
    name = correction.name
    if np.shape(correction.pose) != (len(parameters),):
        raise InputError(f"correction '{name}': its pose must be ({len(parameters)},), not {np.shape(correction.pose)}")
    if np.shape(correction.positions) != (vertex_count, 3):
        raise InputError(
            f"correction '{name}': its positions must be ({vertex_count}, 3), not {np.shape(correction.positions)}"
        )
    require_finite(correction.pose, f"correction '{name}': parameters of its pose")
    require_finite(correction.positions, f"correction '{name}': its positions")
    circular = [index for index, driver in enumerate(correction.drivers) if driver in correction.weights]
    if circular:
        raise InputError(f"correction '{name}' drives itself", circular)
    try:
        for weight in correction.weights:
            parameters.index(weight)
        way = driver_values(parameters, correction.drivers, correction.pose)
    except InputError as trouble:
        raise InputError(f"correction '{name}': {trouble}") from None
    if not np.linalg.norm(way) > _LEAST_WAY:
        raise InputError(f"correction '{name}': its drivers are at rest in its pose, so nothing switches it on")


def check_corrections(parameters: Parameters, vertex_count: int, corrections: Sequence[Correction]) -> None:
    """`check_correction` for all of them, and that their poses can be told apart."""
    for correction in corrections:
        check_correction(parameters, vertex_count, correction)
    if not told_apart(shared_ways(parameters, corrections)):
        names = ", ".join(f"'{correction.name}'" for correction in corrections)
        raise InputError(f"corrections whose drivers do not tell their poses apart: {names}")


def told_apart(ways: np.ndarray) -> bool:
    """Whether a matrix (c, c) of `shared_ways` can be inverted."""
    return ways.size == 0 or bool(np.isfinite(ways).all() and np.linalg.cond(ways) < _LARGEST_CONDITION)


def shared_ways(parameters: Parameters, corrections: Sequence[Correction]) -> np.ndarray:
    """(c, c) how far, 0 to 1, the pose of each correction (row) goes the way of each (column); the diagonal is one."""
    if not corrections:
        return np.zeros((0, 0))
    return _ways(parameters, corrections, np.stack([correction.pose for correction in corrections]))


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
    values = [np.zeros((*np.shape(p)[:-1], 0))]
    for driver in drivers:
        if driver.endswith(".rotation"):
            start = parameters.index(f"{driver}.x")
            if start not in parameters.quaternions:
                raise IndexRangeError(f"'{driver}' is no rotation", [start])
            where = start + np.arange(4)
            turn = quaternion_product(p[..., where], quaternion_conjugate(parameters.rest[where]))
            values.append(rotation_vectors(turn))
        else:
            where = np.array([parameters.index(driver)])
            values.append(p[..., where] - parameters.rest[where])
    return np.concatenate(values, axis=-1)
