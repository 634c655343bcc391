"""Shapes of one domain: some of them from poses, the others from vibration, each by PCA (MD11 §5.1)."""

from __future__ import annotations

import numpy as np

from softrig.errors import ModeCountError

RANK = 1e-6
"""Directions whose share of the samples is smaller than this times the largest say nothing."""


def domain_shapes(
    poses: np.ndarray, vibration: np.ndarray, mass: np.ndarray, size: int, *, pose_share: float = 0.5
) -> np.ndarray:
    """(n, 3, r) mass-orthonormal shapes, r ≤ `size`, of samples (n, 3, s) and (n, 3, k) in the domain's frame, metres.

    `pose_share` · `size` principal components of the poses first; then those of what the vibration adds to them, and
    where it adds less than that, more of the poses. No mean is taken off: rest stays representable.
    """
    if size < 1:
        raise ModeCountError(f"a domain needs at least one shape, got {size}")
    root = np.repeat(np.sqrt(mass), 3)[:, None]
    columns = [root * samples.reshape(len(root), -1) for samples in (poses, vibration)]
    basis = np.zeros((len(root), 0))
    for samples, most in ((columns[0], max(1, round(pose_share * size))), (columns[1], size), (columns[0], size)):
        basis = np.concatenate([basis, _components(samples, basis, most - basis.shape[1])], axis=1)
    if not basis.shape[1]:
        raise ModeCountError("no sample moves this domain: all of it is on its bones")
    basis, _ = np.linalg.qr(basis)
    return (basis / root).reshape(*poses.shape[:2], -1)


def _components(samples: np.ndarray, basis: np.ndarray, most: int) -> np.ndarray:
    """At most so many left singular vectors of what `basis` does not span of the samples."""
    if most <= 0 or not samples.size:
        return np.zeros((len(samples), 0))
    scale = float(np.linalg.norm(samples))
    for _ in range(2):  # the second pass removes what rounding left in the first
        samples = samples - basis @ (basis.T @ samples)
    U, s, _ = np.linalg.svd(samples, full_matrices=False)
    return U[:, : min(most, int((s > RANK * scale).sum()))]
