"""How the tets' rest shape moves: positions, velocities and accelerations of all tet vertices from carrier values.

Carrier values z and their two rates are what a rig gives at one moment. Skinning rigs: the upper three rows of the
bone matrices, (B, 3, 4) flat, then the pose weights w (m,). Black-box rigs: positions of all tet vertices without
corrections, (n, 3) flat, then w. Everything is differentiated exactly in time, nothing by differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError, require_finite
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_matrices,
    quaternion_product,
    quaternions_from_matrices,
    skew,
)

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel


@dataclass(frozen=True)
class TetMotion:
    """The moving rest shape at one moment, in the world."""

    positions: np.ndarray
    """(n, 3) metres."""
    velocities: np.ndarray
    """(n, 3) metre per second."""
    accelerations: np.ndarray
    """(n, 3) metre per second²."""
    rotations: np.ndarray
    """(n, 3, 3) R_v, the rotation of each vertex' surroundings since the bind pose."""
    spin: np.ndarray
    """(n, 3) ω_v with Ṙ_v = ω_v × R_v, radian per second."""
    turned: np.ndarray
    """(n, 3, 3) Σ_b W_vb R_f(b): what turns the sag that was sculpted into the shape."""
    weights: np.ndarray
    """(m,) pose weights."""

    @property
    def positive_weights(self) -> np.ndarray:
        """(m,) w⁺: pose weights without what is negative, summing to one."""
        positive = np.maximum(self.weights, 0.0)
        return positive / positive.sum()

    def felt(self, gravity: np.ndarray, inertia_scale: float, *, sag_free: bool) -> np.ndarray:
        """(n, 3) m/s²: what the rest shape's motion and gravity (3,) do to flesh that moves along with it.

        `sag_free`: without the gravity that the sculpted shape bears already.
        """
        pull = gravity - inertia_scale * self.accelerations
        return pull - self.turned @ gravity if sag_free else pull


class TetCarriers(Protocol):
    """What turns carrier values into the motion of all tet vertices."""

    @property
    def size(self) -> int:
        """Z, how many carrier values there are."""

    def motion(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> TetMotion:
        """Positions and rates at carrier values (Z,), their rates per second and per second²."""


class SkinCarriers:
    """x_v = Σ_b W_vb M_b [X_v + Σ_i w_i δ_iv; 1] and its time derivatives (PSSD Eq. 1, 2 for a skinning rig).

    With A_v = Σ_b W_vb M_b = [L_v t_v] and y_v = X_v + Σ_i w_i δ_iv:
        ẍ_v = L̈_v y_v + ẗ_v + 2 L̇_v ẏ_v + L_v ÿ_v.
    `weights` (n, B) rows sum to one; `corrections` (m, n, 3) δ, metres; `root_frame`: the bone whose rotation stands
    for all in the turning of sculpted sag ("world" interpolation), None for each bone's own ("bind").
    """

    def __init__(
        self, vertices: np.ndarray, weights: csr_array, corrections: np.ndarray, root_frame: int | None = None
    ) -> None:
        self.vertices = np.asarray(vertices, dtype=np.float64)
        self.weights = csr_array(weights)
        self.weights.sum_duplicates()
        self.corrections = _checked_corrections(corrections, len(self.vertices))
        if self.weights.shape[0] != len(self.vertices):
            raise InputError(f"tet weights of {self.weights.shape[0]} vertices for {len(self.vertices)}")
        if root_frame is not None and not 0 <= root_frame < self.weights.shape[1]:
            raise InputError(f"root bone {root_frame} of {self.weights.shape[1]} bones", [root_frame])
        self.root_frame = root_frame
        self._entry_rows = np.repeat(np.arange(len(self.vertices)), np.diff(self.weights.indptr))
        self._entry_heaviest = _heaviest_columns(self.weights)[self._entry_rows]

    @property
    def size(self) -> int:
        """Z = 12 B + m."""
        return 12 * self.weights.shape[1] + len(self.corrections)

    def motion(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> TetMotion:
        """Positions and rates at carrier values (12 B + m,), their rates per second and per second²."""
        bones = self.weights.shape[1]
        values = _checked_carriers(z, zdot, zddot, self.size)
        matrices = values[:, : 12 * bones].reshape(3, bones, 12)
        w = values[:, 12 * bones :]
        blended = [(self.weights @ part).reshape(-1, 3, 4) for part in matrices]
        L, L1, L2 = (part[:, :, :3] for part in blended)
        t, t1, t2 = (part[:, :, 3] for part in blended)
        delta, y1, y2 = np.tensordot(w, self.corrections, axes=1)
        y = self.vertices + delta
        frames = matrices.reshape(3, bones, 3, 4)[..., :3]
        rotations, rates = polar_rates(frames[0], frames[1])
        mixed, spin = self._vertex_frames(rotations, rates)
        return TetMotion(
            positions=_times(L, y) + t,
            velocities=_times(L1, y) + t1 + _times(L, y1),
            accelerations=_times(L2, y) + t2 + 2.0 * _times(L1, y1) + _times(L, y2),
            rotations=mixed,
            spin=spin,
            turned=self._turned(rotations),
            weights=w[0],
        )

    def _vertex_frames(self, rotations: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R_v of the mixed quaternion Σ_b W_vb (±q_b), and its exact rate: ω = 2 Im(ṗ p⁻¹) for any length of p."""
        q = quaternions_from_matrices(rotations)
        rate = np.concatenate([rates, np.zeros((len(rates), 1))], axis=1)
        qdot = 0.5 * quaternion_product(rate, q)
        signed = self.weights.copy()
        same_side = np.sum(q[self._entry_heaviest] * q[signed.indices], axis=1) >= 0.0
        signed.data = np.where(same_side, signed.data, -signed.data)
        p, pdot = signed @ q, signed @ qdot
        squares = np.sum(p * p, axis=1, keepdims=True)
        spin = 2.0 * quaternion_product(pdot, quaternion_conjugate(p))[:, :3] / np.where(squares > 0.0, squares, 1.0)
        return quaternion_matrices(p), spin

    def _turned(self, rotations: np.ndarray) -> np.ndarray:
        if self.root_frame is not None:
            return np.broadcast_to(rotations[self.root_frame], (len(self.vertices), 3, 3))
        return (self.weights @ rotations.reshape(-1, 9)).reshape(-1, 3, 3)


class BlackBoxCarriers:
    """x_v = ξ_v + R_root Σ_i w_i δ_iv with ξ_v carried by the rig (PSSD Eq. 1, 2), and its time derivatives.

    R_root is the polar rotation of Σ_s m_s ξ_s (X_s − X̄)ᵀ over the `sample` vertices, X̄ their centre of mass.
    """

    def __init__(
        self, vertices: np.ndarray, vertex_mass: np.ndarray, sample: np.ndarray, corrections: np.ndarray
    ) -> None:
        self.vertices = np.asarray(vertices, dtype=np.float64)
        self.corrections = _checked_corrections(corrections, len(self.vertices))
        self.sample = np.asarray(sample)
        mass = vertex_mass[self.sample][:, None]
        centre = (mass * self.vertices[self.sample]).sum(axis=0) / mass.sum()
        self._arms = mass * (self.vertices[self.sample] - centre)

    @property
    def size(self) -> int:
        """Z = 3 n + m."""
        return self.vertices.size + len(self.corrections)

    def motion(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> TetMotion:
        """Positions and rates at carrier values (3 n + m,), their rates per second and per second²."""
        count = len(self.vertices)
        values = _checked_carriers(z, zdot, zddot, self.size)
        x, x1, x2 = values[:, : 3 * count].reshape(3, count, 3)
        w = values[:, 3 * count :]
        d, d1, d2 = np.tensordot(w, self.corrections, axes=1)
        A, A1, A2 = np.einsum("tsi,sj->tij", values[:, : 3 * count].reshape(3, count, 3)[:, self.sample], self._arms)
        R, R1, R2, spin = polar_derivatives(A, A1, A2)
        return TetMotion(
            positions=x + d @ R.T,
            velocities=x1 + d @ R1.T + d1 @ R.T,
            accelerations=x2 + d @ R2.T + 2.0 * (d1 @ R1.T) + d2 @ R.T,
            rotations=np.broadcast_to(R, (count, 3, 3)),
            spin=np.broadcast_to(spin, (count, 3)),
            turned=np.broadcast_to(R, (count, 3, 3)),
            weights=w[0],
        )


def tet_carriers(model: PoseSpaceModel) -> TetCarriers:
    """The carriers of a pose-space model's tet rig, for all its vertices."""
    rig = model.tet_rig
    if rig.kind == "skin":
        root = None if model.interpolation == "bind" else int(rig.root_bone)
        return SkinCarriers(model.vertices, rig.weights, rig.corrections, root)
    if rig.kind == "black-box":
        return BlackBoxCarriers(model.vertices, model.vertex_mass, rig.root_sample, rig.corrections)
    raise InputError(f"no tet rig of kind {rig.kind!r}; there are skin and black-box")


def carrier_values(model: PoseSpaceModel, p: np.ndarray) -> np.ndarray:
    """(Z,) the carrier values of all tet vertices at rig parameters p (P,)."""
    rows = model.bone_matrices(p) if model.tet_rig.kind == "skin" else model.shepard_positions(p)
    return np.concatenate([rows.ravel(), model.pose_weights(p)])


def polar_rates(A: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (k, 3, 3) of A = R S, and its angular velocity ω (k, 3) in the world, from A and Ȧ (k, 3, 3).

    (tr(S) I − S) Rᵀω = the axial vector of RᵀȦ − ȦᵀR (SUB11).
    """
    R, S = _polar(A)
    body = _body_rates(S, np.swapaxes(R, -1, -2) @ rate)
    return R, np.einsum("...ij,...j->...i", R, body)


def polar_derivatives(
    A: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """R, Ṙ, R̈ (3, 3) and ω (3,) in the world, of the polar rotation of A (3, 3) with rates Ȧ and Ä.

    With Y = RᵀȦ, Ω = RᵀṘ, Ṡ = Y − ΩS: (tr(S) I − S) ω̇ = axial(Ẏ − Ẏᵀ) − (tr(Ṡ) I − Ṡ) ω, Ẏ = RᵀÄ − ΩY; R̈ = R(Ω² + Ω̇).
    """
    R, S = _polar(A)
    Y = R.T @ first
    omega = _body_rates(S, Y)
    Omega = skew(omega)
    Sdot = Y - Omega @ S
    Ydot = R.T @ second - Omega @ Y
    right = _axial(Ydot - Ydot.T) - (np.trace(Sdot) * np.eye(3) - Sdot) @ omega
    alpha = skew(np.linalg.solve(np.trace(S) * np.eye(3) - S, right))
    return R, R @ Omega, R @ (Omega @ Omega + alpha), R @ omega


def _polar(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with det R = 1 and symmetric S of A = R S; a mirroring A gets a negative S, so that no axis needs choosing."""
    U, s, Vt = np.linalg.svd(A)
    R = U @ Vt
    sign = np.where(np.linalg.det(R) < 0.0, -1.0, 1.0)[..., None, None]
    return sign * R, sign * (np.swapaxes(Vt, -1, -2) * s[..., None, :]) @ Vt


def _body_rates(S: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Rᵀω from S and Y = RᵀȦ; none where S is flat in two directions and its rotation undefined (a hidden bone)."""
    trace = np.trace(S, axis1=-2, axis2=-1)[..., None, None]
    G = trace * np.eye(3) - S
    lost = np.linalg.cond(G)[..., None, None] > 1e12
    right = _axial(Y - np.swapaxes(Y, -1, -2))[..., None]
    return np.linalg.solve(np.where(lost, np.eye(3), G), np.where(lost, 0.0, right))[..., 0]


def _axial(W: np.ndarray) -> np.ndarray:
    """The vector of a skew matrix."""
    return np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], axis=-1)


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nj->ni", matrices, vectors)


def _heaviest_columns(weights: csr_array) -> np.ndarray:
    """(n,) the column of the largest entry of each row, the first of equals."""
    empty = np.flatnonzero(np.diff(weights.indptr) == 0)
    if empty.size:
        raise InputError("tet vertices that no bone carries", empty)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    order = np.lexsort((weights.indices, -weights.data, rows))
    return weights.indices[order[weights.indptr[:-1]]]


def _checked_corrections(corrections: np.ndarray, count: int) -> np.ndarray:
    corrections = np.asarray(corrections, dtype=np.float64)
    if corrections.ndim != 3 or corrections.shape[1:] != (count, 3) or not len(corrections):
        raise InputError(f"corrections must be (poses, {count}, 3), not {corrections.shape}")
    return corrections


def _checked_carriers(z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray, size: int) -> np.ndarray:
    """(3, size) the carrier values and their two rates."""
    for name, part in (("values", z), ("rates", zdot), ("second rates", zddot)):
        if np.shape(part) != (size,):
            raise InputError(f"carrier {name} have shape {np.shape(part)}, not ({size},)")
    values = np.stack([z, zdot, zddot]).astype(np.float64)
    require_finite(values, "carriers (0 values, 1 rates, 2 second rates)")
    return values
