"""What a multi-domain model is made from: the full body on its bones, in many poses and vibrating (MD11 §5.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softrig.bases.derivatives import ModalDerivatives, derivative_samples, modal_derivatives
from softrig.bases.modes import LinearModes, linear_modes
from softrig.errors import SolverError, notice
from softrig.models.multi_domain import MultiDomainModel, rigid_frames
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.posed import PosedBody, posed_equilibrium
from softrig.pipeline.pose_samples import clip_frames, mixed_poses, poses_of_one
from softrig.poses.selection import farthest_points
from softrig.poses.tet_rig import skinned

Progress = Callable[[int, int], None]

LARGEST_SWING = 0.05
"""Of the size: how far the first mode is taken to swing, which scales the derivatives beside the modes."""
SAME = 1e-3
"""Weighted features: poses nearer than this say nothing new."""


@dataclass(frozen=True, eq=False)
class Carrier:
    """How the vertices on bones move: with the frame of the domain that holds them."""

    vertices: np.ndarray
    """(n, 3) rest positions, metres."""
    holders: np.ndarray
    """(n,) domain that holds each vertex, −1: none."""
    centres: np.ndarray
    """(D, 3) metres."""
    shares: np.ndarray
    """(n, D) kilogram of each vertex in each domain."""

    def held(self, rotations: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(n, 3) metres, where frames (D, 3, 3) and (D, 3) have the held vertices; others stay at rest."""
        positions = self.vertices.copy()
        own = self.holders >= 0
        domain = self.holders[own]
        local = self.vertices[own] - self.centres[domain]
        positions[own] = np.einsum("nij,nj->ni", rotations[domain], local) + places[domain]
        return positions

    def gravity(self, rotations: np.ndarray, gravity: np.ndarray, *, sag_free: bool) -> np.ndarray:
        """(n, 3) newton: Σ_i m_i (g − R_i g), without the last where the rest shape bears nothing."""
        felt = gravity - rotations @ gravity if sag_free else np.tile(gravity, (len(rotations), 1))
        return self.shares @ felt


def pose_samples(model: PoseSpaceModel, count: int, *, seed: int) -> np.ndarray:
    """(k, P) at most `count` poses: half of the clips' moments, half mixtures of their joints, far from each other."""
    frames = clip_frames(model)
    if not model.clips:
        frames = poses_of_one(model, frames)
    mixtures = mixed_poses(model, frames, 4 * count, np.random.default_rng([seed, 23]))
    chosen = model.poses.parameters[:1]
    for source, most in ((frames, (count + 1) // 2), (mixtures, count)):
        features = model.pose_features(source)
        found = farthest_points(features, model.pose_features(chosen), most - len(chosen) + 1, SAME)
        chosen = np.concatenate([chosen, source[found]])
    return chosen[1:]


def pose_shapes(
    body: PosedBody,
    carrier: Carrier,
    matrices: Callable[[np.ndarray], np.ndarray],
    skin: Callable[[np.ndarray], np.ndarray],
    poses: np.ndarray,
    gravity: np.ndarray,
    *,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(s, n, 3) equilibria of the full body at `poses`, metres, and the frames (s, D, 3, 3), (s, D, 3) there.

    `matrices` of a pose: bone matrices (D, 3, 4) of the domains; `skin`: positions (n, 3) to start from. Poses at which
    none is found are left out, with a notice.
    """
    found, rotations, places, lost = [], [], [], []
    for index, p in enumerate(poses):
        R, t = rigid_frames(matrices(p), carrier.centres)
        load = body.restrict(carrier.gravity(R, gravity, sag_free=True))
        try:
            q = posed_equilibrium(body, carrier.held(R, t), skin(p), load)
        except SolverError:
            lost.append(index)
            continue
        finally:
            if progress:
                progress(index + 1, len(poses))
        found.append(body.mesh.vertices + body.expand(q))
        rotations.append(R)
        places.append(t)
    if not found:
        raise SolverError(
            "the full body found no equilibrium at any sample pose: are the poses folded into each other?"
        )
    if lost:
        notice(f"{len(lost)} of {len(poses)} sample poses have no equilibrium that Newton finds; left out", lost)
    return np.stack(found), np.stack(rotations), np.stack(places)


def vibration_shapes(
    body: PosedBody, count: int, derivatives: int, size: float
) -> tuple[LinearModes, np.ndarray, np.ndarray]:
    """The linear modes of the whole body at rest; (n, 3, k) what PCA is given of them and of the derivatives of the
    leading ones, metres √kg; and (n, 3, m) the modes alone."""
    body.hold(body.mesh.vertices)
    modes = linear_modes(body, min(count, body.size // 4))
    leading = modes.leading(min(derivatives, len(modes.eigenvalues)))
    known = (
        modal_derivatives(body, leading)
        if derivatives
        else ModalDerivatives(np.zeros((0, 2), np.int64), np.zeros((body.size, 0)))
    )
    samples = derivative_samples(body, modes, known, amplitude=LARGEST_SWING * size)
    return modes, body.expand(samples), body.expand(modes.shapes)


def local_displacements(
    model_vertices: np.ndarray,
    vertices: np.ndarray,
    centre: np.ndarray,
    positions: np.ndarray,
    rotations: np.ndarray,
    places: np.ndarray,
) -> np.ndarray:
    """(n_i, 3, s) Rᵀ(x − t) − p of a domain's `vertices` (n_i,); positions (s, n, 3), frames (s, 3, 3) and (s, 3)."""
    seen = np.einsum("sji,snj->sni", rotations, positions[:, vertices] - places[:, None])
    return np.moveaxis(seen - (model_vertices[vertices] - centre), 0, 2)


def skin_guess(model: PoseSpaceModel) -> Callable[[np.ndarray], np.ndarray]:
    """(n, 3) of a pose: the tets skinned as the surface is, which Newton starts from."""
    weights = model.tet_rig.weights
    assert weights is not None

    def guess(p: np.ndarray) -> np.ndarray:
        return skinned(weights, model.bone_matrices(p), model.vertices)

    return guess


def bones_at(model: PoseSpaceModel, bones: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """(D, 3, 4) of a pose: the matrices of the bones (D,)."""

    def matrices(p: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(model.bone_matrices(p)[bones])

    return matrices


def carrier_of(model: MultiDomainModel) -> Carrier:
    """The carrier of a finished model: who holds which vertex follows from its shapes, which are zero there."""
    n = len(model.vertices)
    shares, held = np.zeros((n, len(model.domains))), np.full(n, -1)
    for index, domain in enumerate(model.domains):
        shares[domain.vertices, index] = domain.mass
        held[domain.vertices[~domain.shapes.any(axis=(1, 2))]] = index
    return Carrier(model.vertices, held, np.stack([d.centre for d in model.domains]), shares)
