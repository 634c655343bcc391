"""Bases from given deformations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bases.modes import rigid_motions
from softrig.errors import InputError
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca


@dataclass(frozen=True)
class Basis:
    """A mass-orthonormal basis and how much each vector matters."""

    shapes: np.ndarray
    """(3·free, r), 1/√kilogram."""
    singular_values: np.ndarray
    """(r,) falling; the samples' size along each vector, metres √kilogram."""


def snapshot_basis(body: FullBody, displacements: np.ndarray, size: int) -> Basis:
    """Mass-PCA of displacements (m, n, 3), metres, to `size` vectors (StVK05 App. A).

    Fixed vertices are ignored; of a free body the rigid part of each snapshot is removed first.
    """
    displacements = np.asarray(displacements, dtype=np.float64)
    if displacements.ndim != 3 or displacements.shape[1:] != body.mesh.vertices.shape:
        raise InputError(f"snapshots have shape {displacements.shape}, not (m, {len(body.mesh.vertices)}, 3)")
    samples = body.restrict(np.moveaxis(displacements, 0, 2))
    if body.is_free:
        rigid = rigid_motions(body)
        samples = samples - rigid @ (rigid.T @ (body.mass @ samples))
    return Basis(*mass_pca(samples, body.mass, size))


def mass_distance_selection(body: FullBody, samples: np.ndarray, separation: float) -> np.ndarray:
    """Indices of columns of `samples` (3·free, m), first to last, each at least `separation` from all kept before.

    Distance: √((a−b)ᵀM(a−b)), in units of metres √kilogram (StVK05 Eq. 17); also from rest.
    """
    weighted = body.mass @ samples
    gram = samples.T @ weighted
    squares = np.diag(gram)
    kept: list[int] = []
    for k in range(samples.shape[1]):
        distances = squares[k] + squares[kept] - 2.0 * gram[k, kept]
        nearest = min(squares[k], distances.min(initial=np.inf))
        if nearest >= separation**2:
            kept.append(k)
    return np.array(kept, dtype=np.int64)
