"""Sample deformations that a cubature is trained on and measured with: answers to loads, and Gaussian ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from softrig.errors import SolverError
from softrig.forces.projection import PoseElasticity

SMALLEST, LARGEST = 0.0003, 0.005
"""Root-mean-square displacement of samples in sizes of the character: 0.5 to 9 mm on a human."""
EQUILIBRIUM_STEPS = 8


@dataclass(frozen=True, eq=False)
class Samples:
    """Coordinates at one pose."""

    q: np.ndarray
    """(r, k)."""
    load_driven: np.ndarray
    """(k,) bool."""


def sample_poses(
    poses: Sequence[PoseElasticity],
    vertex_mass: np.ndarray,
    loads: Sequence[np.ndarray] | None,
    size: float,
    count: int,
    seed: int,
) -> list[Samples]:
    """`count` samples for each pose, half of them answers to its `loads` (n, 3, k), or all Gaussian without."""
    driven = [None] * len(poses) if loads is None else list(loads)
    return [
        pose_samples(pose, vertex_mass, load, size, count, np.random.default_rng([seed, index]))
        for index, (pose, load) in enumerate(zip(poses, driven, strict=True))
    ]


def pose_samples(
    pose: PoseElasticity,
    vertex_mass: np.ndarray,
    loads: np.ndarray | None,
    size: float,
    count: int,
    random: np.random.Generator,
) -> Samples:
    """`count` samples at one pose with RMS displacements log-uniform between 0.0003 and 0.005 of `size` (metres).

    Gaussian: independent in the vibration modes of the reduced body with σ_k ∝ 1/λ_k (PSSD §5.3: inverse stiffness).
    Load-driven: static answers to random mixtures of the loads, by Newton's steps with the stiffness at rest and
    exact forces.
    """
    basis = pose.shapes.reshape(-1, pose.modes)
    mass = basis.T @ (np.repeat(vertex_mass, 3)[:, None] * basis)
    values, vectors = eigh(pose.rest_stiffness, mass)
    if values[0] <= 0.0:
        raise SolverError(f"the reduced stiffness at rest is not positive definite: {values[0]:.3g}")
    driven = 0 if loads is None else count // 2
    amplitudes = size * np.exp(random.uniform(np.log(SMALLEST), np.log(LARGEST), count))
    gaussian = vectors @ (random.normal(size=(pose.modes, count - driven)) / values[:, None])
    parts = [gaussian]
    if loads is not None:
        forces = basis.T @ (vertex_mass[:, None, None] * random_mixtures(loads, vertex_mass, driven, random)).reshape(
            -1, driven
        )
        parts.append(cho_solve(cho_factor(pose.rest_stiffness), forces))
    q = np.concatenate(parts, axis=1)
    # Mass-weighted RMS: √(qᵀM̃q / total mass).
    lengths = np.sqrt(np.einsum("rk,rs,sk->k", q, mass, q) / vertex_mass.sum())
    q *= amplitudes / np.maximum(lengths, 1e-300)
    load_driven = np.arange(count) >= count - driven
    if driven:
        q[:, load_driven] = _equilibria(pose, q[:, load_driven])
    return Samples(_bearable(pose, q), load_driven)


def random_mixtures(loads: np.ndarray, vertex_mass: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """(n, 3, count) accelerations: sums of `loads` (n, 3, k) with random sizes, a few of them large in each.

    Loads come in m/s², rad/s² and (rad/s)²; each is first brought to 1 m/s² where it acts, √(Σ m a⁴ / Σ m a²).
    """
    squares = np.einsum("nxk,nxk->nk", loads, loads)
    energy = vertex_mass @ squares
    typical = np.sqrt((vertex_mass @ squares**2) / np.maximum(energy, 1e-300))
    scales = np.where(typical > 0.0, 1.0 / np.maximum(typical, 1e-300), 0.0)
    # A log-normal factor makes single loads stand out: arms that swing while the rest is still.
    shape = (loads.shape[2], count)
    coefficients = scales[:, None] * random.normal(size=shape) * np.exp(random.normal(size=shape))
    return loads @ coefficients


def _bearable(pose: PoseElasticity, q: np.ndarray) -> np.ndarray:
    """`q` (r, k) with samples halved until they have a force: neo-Hookean tets have none once inverted."""
    for _ in range(20):
        wild = ~np.isfinite(pose.force(q)).all(axis=0)
        if not wild.any():
            break
        q[:, wild] *= 0.5
    return q


def _equilibria(pose: PoseElasticity, linear: np.ndarray) -> np.ndarray:
    """(r, k) nonlinear answers f(q) = K₀ q_lin to the loads whose linear answers are `linear` (r, k).

    q ← q + t K₀⁻¹ (K₀ q_lin − f(q)), each sample with its own step t, halved where the residual grew. Good enough for a
    sample: what is asked is a likely shape, not an equilibrium to the last digit.
    """
    factor = cho_factor(pose.rest_stiffness)
    wanted = pose.rest_stiffness @ linear
    q = np.zeros_like(linear)
    residual, steps = wanted.copy(), np.ones(linear.shape[1])
    for _ in range(EQUILIBRIUM_STEPS):
        trial = q + steps * cho_solve(factor, residual)
        left = wanted - pose.force(trial)
        better = np.linalg.norm(left, axis=0) < np.linalg.norm(residual, axis=0)
        q[:, better], residual[:, better] = trial[:, better], left[:, better]
        steps = np.where(better, np.minimum(1.0, 1.5 * steps), 0.5 * steps)
    return q
