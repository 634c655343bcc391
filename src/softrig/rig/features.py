"""Pose features: numbers whose distance says how much the SHAPE of two poses differs (PSSD Section 4, Eq. 2).

Raw features of parameters p: the rotation vector of each joint's local rotation relative to rest (rad), lengths
relative to rest divided by the character's size, all other parameters relative to rest. Each is multiplied by a weight:
the area-weighted root-mean-square displacement of the surface per unit of the feature, over the size, AFTER the rigid
motion that fits the displacement best is taken away. So a root that only carries the character about has weight
zero, and fingers do not outvote the hip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import InputError
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_product,
    quaternions_from_vectors,
    rotation_vectors,
    unit_quaternions,
)
from softrig.rig.parameters import Parameters

if TYPE_CHECKING:
    from softrig.rig.protocol import Rig

SAMPLES = 2000
"""At most so many vertices stand for the surface when weights are found."""
_STEP = 1e-3
_NOTHING = 1e-7
"""Weights below this are rounding of the finite difference."""


@dataclass(frozen=True, eq=False)
class PoseFeatures:
    """F features of P parameters: a quaternion gives three, every other parameter one."""

    parameters: Parameters
    size: float
    """Metres; lengths are divided by it."""
    weights: np.ndarray
    """(F,) dimensionless; the user's to change."""

    def __post_init__(self) -> None:
        count = len(self.parameters) - len(self.parameters.quaternions)
        if np.shape(self.weights) != (count,):
            raise InputError(f"{count} features need as many weights, not {np.shape(self.weights)}")

    def __repr__(self) -> str:
        return f"PoseFeatures({len(self.weights):,} features of {len(self.parameters):,} parameters)"

    @property
    def names(self) -> tuple[str, ...]:
        """F names: those of the parameters, without the w of quaternions."""
        skipped = set((self.parameters.quaternions + 3).tolist())
        return tuple(name for index, name in enumerate(self.parameters.names) if index not in skipped)

    def raw(self, p: np.ndarray) -> np.ndarray:
        """(..., F) unweighted features of parameters p (..., P)."""
        rest = self.parameters.rest
        p = self.parameters.checked(p)
        values = (p - rest) / _lengths(self.parameters, self.size)
        starts = self.parameters.quaternions
        where = starts[:, None] + np.arange(4)
        back = quaternion_conjugate(unit_quaternions(rest[where]))
        turned = quaternion_product(back, unit_quaternions(p[..., where]))
        values[..., starts[:, None] + np.arange(3)] = rotation_vectors(turned)
        return np.delete(values, starts + 3, axis=-1)

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """(..., F) weighted features of parameters p (..., P)."""
        return self.weights * self.raw(p)

    @classmethod
    def of_rig(cls, rig: Rig, areas: np.ndarray | None = None) -> PoseFeatures:
        """Default weights of a rig by central differences at rest; `areas` (n,) of the vertices, None: all equal."""
        rest = rig.positions(rig.parameters.rest)
        size = bounding_size(rest)
        chosen = np.arange(0, len(rest), max(1, -(-len(rest) // SAMPLES)))
        shares = np.ones(len(rest)) if areas is None else np.asarray(areas, dtype=np.float64)
        if shares.shape != (len(rest),):
            raise InputError(f"{len(rest)} vertices need as many areas, not {shares.shape}")
        shares = np.sqrt(shares[chosen] / max(shares[chosen].sum(), 1e-300))
        rigid = _rigid_motions(rest[chosen], shares)
        reach = np.zeros(len(rig.parameters))
        for index, (ahead, behind) in _unit_steps(rig.parameters, size):
            change = (rig.positions(ahead, chosen) - rig.positions(behind, chosen)) / (2.0 * _STEP * size)
            field = (shares[:, None] * change).ravel()
            reach[index] = np.linalg.norm(field - rigid @ (rigid.T @ field))
        for start in rig.parameters.quaternions:
            # One weight a joint: three different ones would make the distance depend on the joint's axes.
            reach[start : start + 3] = np.sqrt(np.mean(reach[start : start + 3] ** 2))
        weights = np.delete(np.where(reach > _NOTHING, reach, 0.0), rig.parameters.quaternions + 3)
        return cls(rig.parameters, size, weights)


def bounding_size(points: np.ndarray) -> float:
    """Metres: the diagonal of the bounding box of `points` (n, 3), 1 where all coincide."""
    if len(points) == 0:
        return 1.0
    return float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0


def vertex_areas(positions: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(n,) square metres: a third of the area of the triangles around each vertex."""
    corners = positions[triangles]
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return np.bincount(triangles.ravel(), np.repeat(areas / 3.0, 3), minlength=len(positions))


def _lengths(parameters: Parameters, size: float) -> np.ndarray:
    """(P,) what each parameter is divided by: the size where it is a length."""
    return np.array([size if unit == "m" else 1.0 for unit in parameters.units])


def _unit_steps(parameters: Parameters, size: float) -> list[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """For each feature its first parameter and the parameters a small step ahead of and behind rest."""
    rest, lengths = parameters.rest, _lengths(parameters, size)
    steps = []
    in_quaternion = {int(start) + k: (int(start), k) for start in parameters.quaternions for k in range(4)}
    for index in range(len(parameters)):
        pair = (rest.copy(), rest.copy())
        start, axis = in_quaternion.get(index, (index, -1))
        if axis == 3:
            continue
        for p, sign in zip(pair, (1.0, -1.0), strict=True):
            if axis < 0:
                p[index] += sign * _STEP * lengths[index]
            else:
                turn = quaternions_from_vectors(sign * _STEP * np.eye(3)[axis])
                p[start : start + 4] = quaternion_product(unit_quaternions(p[start : start + 4]), turn)
        steps.append((index, pair))
    return steps


def _rigid_motions(points: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(3m, ≤ 6) orthonormal columns: the small rigid motions of `points` (m, 3), rows times `shares`."""
    arms = points - np.average(points, axis=0, weights=shares**2) if shares.any() else points
    fields = [np.broadcast_to(axis, points.shape) for axis in np.eye(3)]
    fields += [np.cross(axis, arms) for axis in np.eye(3)]
    columns = np.stack([(shares[:, None] * field).ravel() for field in fields], axis=1)
    columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, s > 1e-9]
