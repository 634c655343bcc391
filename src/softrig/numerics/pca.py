"""Principal components in a mass metric (StVK05 App. A), through the small Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import ModeCountError, require_finite

RANK_TOLERANCE = 1e-7
"""Singular values below this times the largest are rounding noise of the Gram matrix."""


def mass_pca(samples: np.ndarray, mass: csr_array, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The best mass-orthonormal basis (n, size) of the columns of `samples` (n, m), and singular values.

    Best: the sum of squared mass-distances from the samples to their span is least. Only hyperplanes
    through the origin, so that rest stays representable: no mean is subtracted. (size,) singular
    values, falling.
    """
    require_finite(samples.T, "samples")
    if size < 1:
        raise ModeCountError(f"a basis needs at least one vector, got {size}")
    gram = samples.T @ (mass @ samples)
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    singular = np.sqrt(np.maximum(values, 0.0))
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum()) if singular.size and singular[0] > 0 else 0
    if size > rank:
        raise ModeCountError(f"{size} modes asked of samples that span only {rank} dimensions")
    basis = samples @ (vectors[:, :size] / singular[:size])
    return mass_orthonormal(basis, mass), singular[:size]


def mass_orthonormal(basis: np.ndarray, mass: csr_array) -> np.ndarray:
    """The columns made mass-orthonormal, changing each as little as its predecessors allow."""
    for _ in range(2):  # the second pass removes what rounding left in the first
        factor = np.linalg.cholesky(basis.T @ (mass @ basis))
        basis = np.linalg.solve(factor, basis.T).T
    return np.ascontiguousarray(basis)
