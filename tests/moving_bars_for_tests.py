"""A two-bone bar that swings: its carriers with exact rates, and what a full simulation needs of its model."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_array

from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.tet_motion import SkinCarriers
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors, skew

LENGTHS = (0.5, 0.12, 0.1)
BAR = box_tets(LENGTHS, (6, 2, 2))


def lumped(mesh: VolumeMesh, density: float = 1000.0) -> np.ndarray:
    return np.bincount(mesh.elements.ravel(), np.repeat(density * mesh.volumes / 4.0, 4), len(mesh.vertices))


def rotation(vector) -> np.ndarray:
    return quaternion_matrices(quaternions_from_vectors(np.asarray(vector, dtype=np.float64)))


@dataclass(frozen=True)
class Jet:
    """A matrix that moves: value and two rates."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __matmul__(self, other: Jet) -> Jet:
        return Jet(
            self.value @ other.value,
            self.first @ other.value + self.value @ other.first,
            self.second @ other.value + 2.0 * self.first @ other.first + self.value @ other.second,
        )


def turning(axis, angle: tuple[float, float, float], about=(0.0, 0.0, 0.0)) -> Jet:
    """(4, 4) rotation by θ about an axis through a point, with θ̇ and θ̈."""
    k = skew(np.asarray(axis) / np.linalg.norm(axis))
    R = rotation(np.asarray(axis) / np.linalg.norm(axis) * angle[0])
    parts = (R, angle[1] * k @ R, (angle[2] * k + angle[1] ** 2 * k @ k) @ R)
    matrices = []
    for i, part in enumerate(parts):
        M = np.zeros((4, 4))
        M[:3, :3] = part
        M[:3, 3] = (np.asarray(about) if i == 0 else 0.0) - part @ np.asarray(about)
        M[3, 3] = i == 0
        matrices.append(M)
    return Jet(*matrices)


def sliding(offset: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> Jet:
    matrices = [np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))]
    for matrix, part in zip(matrices, (offset, velocity, acceleration), strict=True):
        matrix[:3, 3] = part
    return Jet(*matrices)


def rise(amplitude: float, rate: float, t: float) -> tuple[float, float, float]:
    """A rise from rest without a jerk: amplitude · (1 − cos)²/4 and its rates."""
    c, s = np.cos(rate * t), np.sin(rate * t)
    return (
        0.25 * amplitude * (1 - c) ** 2,
        0.5 * amplitude * rate * (1 - c) * s,
        0.5 * amplitude * rate**2 * (s * s + (1 - c) * c),
    )


def carriers_of(bones: list[Jet], weights: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    parts = zip(("value", "first", "second"), weights, strict=True)
    return tuple(np.concatenate([*(getattr(bone, name)[:3].ravel() for bone in bones), w]) for name, w in parts)


def swing(t: float, turn: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z, ż, z̈ of a two-bone bar that swings about its end and bends in the middle while its end slides."""
    offset, speed, push = rise(0.1, 5.0, t)
    way = np.array([0.3, 1.0, 0.5])
    upper = sliding(offset * way, speed * way, push * way) @ turning((0.1, 0.3, 1.0), rise(0.9, 6.0, t))
    lower = upper @ turning((0.0, 0.2, 1.0), rise(0.7, 7.0, t), about=(0.25, 0.06, 0.05))
    bones = [upper, lower]
    if turn is not None:
        fixed = np.eye(4)
        fixed[:3, :3] = turn
        zero = np.zeros((4, 4))
        bones = [Jet(fixed, zero, zero) @ bone for bone in bones]
    w = [np.array([1.0 - a if i == 0 else -a, a]) for i, a in enumerate(rise(0.8, 7.0, t))]
    return carriers_of(bones, tuple(w))


def bar_model(mesh: VolumeMesh = BAR, *, fixed: np.ndarray | None = None, interpolation: str = "bind"):
    """A two-bone bar held along its axis and at one end, two poses: what a full simulation needs of a model."""
    x, y, z = mesh.vertices.T
    share = np.clip((x / LENGTHS[0] - 0.3) / 0.4, 0.0, 1.0)
    if fixed is None:
        fixed = (np.abs(y - 0.5 * LENGTHS[1]) < 1e-9) & (np.abs(z - 0.5 * LENGTHS[2]) < 1e-9) | (x == 0.0)
    bulge = 0.02 * np.stack([np.sin(9 * x), y * np.cos(5 * x), x * z], axis=1)
    corrections = np.stack([np.zeros_like(bulge), bulge])
    weights = csr_array(np.stack([1.0 - share, share], axis=1))
    rig = SimpleNamespace(kind="skin", weights=weights, corrections=corrections, root_bone=0, root_sample=None)
    return SimpleNamespace(
        tets=mesh.elements,
        vertices=mesh.vertices,
        fixed=fixed,
        vertex_mass=lumped(mesh),
        law="stable-neo-hookean",
        tet_rig=rig,
        interpolation=interpolation,
    )


def skin_carriers() -> SkinCarriers:
    rig = bar_model().tet_rig
    return SkinCarriers(BAR.vertices, rig.weights, rig.corrections)
