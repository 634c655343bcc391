"""Cubature of one domain: a few of its tets that stand for all (MD11 §3.1, An et al. 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.models.kernels.multi_domain_elements import tet_forces
from softrig.numerics.sparse_selection import sparse_selection

MOST_NUMBERS = 4_000_000
"""Of the system of training forces; beyond it samples are mixed into fewer rows."""


@dataclass(frozen=True, eq=False)
class DomainCubature:
    """Chosen tets and their weights, and how far the forces are off."""

    tets: np.ndarray
    """(c,) rising places among the domain's tets."""
    weights: np.ndarray
    """(c,) ξ > 0."""
    training_error: float
    """‖Σ ξ f_e − f‖ / ‖f‖, RMS over the samples trained on."""
    unseen_error: float
    """The same over samples that were kept back."""


def domain_cubature(
    law: int,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    samples: np.ndarray,
    count: int,
    *,
    unseen: int = 8,
    method: str = "nnls",
    seed: int = 0,
) -> DomainCubature:
    """At most `count` of the tets with G (e, 9, r), m³, λ and μ (e,), trained on coordinates `samples` (s, r).

    Every `unseen`-th sample is kept back. Each force is measured against its own length.
    """
    forces = np.empty((len(volumes), len(samples), samples.shape[1]))
    tet_forces(law, gradients, volumes, lam, mu, np.ascontiguousarray(samples), forces)
    whole = forces.sum(axis=0)
    lengths = np.linalg.norm(whole, axis=1)
    kept = lengths > 1e-9 * lengths.max(initial=0.0)
    forces, whole = forces[:, kept] / lengths[kept, None], whole[kept] / lengths[kept, None]
    held_back = np.arange(len(whole)) % unseen == unseen - 1
    columns = np.ascontiguousarray(forces[:, ~held_back].reshape(len(volumes), -1).T)
    target = whole[~held_back].ravel()
    if columns.size > MOST_NUMBERS:
        columns, target = _sketched(columns, target, MOST_NUMBERS // len(volumes), seed)
    found = sparse_selection(columns, target, min(count, len(volumes)), method=method, seed=seed)

    def error(some: np.ndarray) -> float:
        if not some.any():
            return 0.0
        misses = np.einsum("e,esr->sr", found.weights, forces[found.support][:, some]) - whole[some]
        return float(np.sqrt(np.mean(np.sum(misses**2, axis=1))))

    return DomainCubature(found.support, found.weights, error(~held_back), error(held_back))


def _sketched(columns: np.ndarray, target: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with random signs, added up into fewer."""
    random = np.random.default_rng([seed, 7])
    bucket = random.permutation(len(columns)) % rows
    signs = random.choice([-1.0, 1.0], len(columns))
    small, right = np.zeros((rows, columns.shape[1])), np.zeros(rows)
    np.add.at(small, bucket, signs[:, None] * columns)
    np.add.at(right, bucket, signs * target)
    return small, right
