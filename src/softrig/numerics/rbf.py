"""Interpolation over scattered poses: normalised biharmonic radial basis functions (PSSD Eq. 2).

The kernel is φ(r) = r. With D_ij = ‖f_i − f_j‖ the matrix of distances between the m poses and
d_j(f) = ‖f − f_j‖, the weights are

    w(f) = D⁻¹ d(f) / (1ᵀ D⁻¹ d(f)).

They are one at their own pose, zero at the others, sum to one everywhere, and may be negative. The
denominator cannot vanish: distances are squared distances of points on a sphere of some Hilbert space
(Schoenberg), and the sum is (‖c − f‖² + R²) / 2R² ≥ 1/2 with that sphere's centre c and radius R.
Far from all poses w tends to D⁻¹1 / (1ᵀD⁻¹1), whichever way one leaves.
"""

from __future__ import annotations

import numpy as np

from softrig.errors import InputError, require_finite

# Poses nearer than this fraction of the largest distance count as the same: the weights would swing from one
# to the other within it.
COINCIDENT = 1e-6


class BiharmonicWeights:
    """Weights of m poses at any features.

    `features` (m, F), `matrix` (m, m) = D⁻¹ (symmetric), so compiled code does w = matrixᵀ·d, w /= w.sum().
    With one pose the matrix is [[0]] and the weight is one everywhere: callers that use `matrix` treat m = 1
    on their own.
    """

    def __init__(self, features: np.ndarray) -> None:
        features = np.array(features, dtype=np.float64)
        if features.ndim != 2 or not len(features):
            raise InputError(f"pose features must be (m, F) with at least one pose, got shape {features.shape}")
        require_finite(features, "features of the poses")
        distances = np.linalg.norm(features[:, None] - features[None], axis=2)
        require_different_poses(distances)
        self.features = features
        self.matrix = _inverse(distances)
        self.features.setflags(write=False)
        self.matrix.setflags(write=False)

    @property
    def count(self) -> int:
        """Number of poses, m."""
        return len(self.features)

    @property
    def limit(self) -> np.ndarray:
        """(m,) the weights infinitely far away from all poses."""
        if self.count == 1:
            return np.ones(1)
        rows = self.matrix.sum(axis=1)
        return np.asarray(rows / rows.sum())

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Weights (..., m) at `features` (..., F)."""
        features = np.asarray(features, dtype=np.float64)
        if features.shape[-1:] != self.features.shape[1:]:
            raise InputError(f"features have {features.shape[-1:]} entries, the poses {self.features.shape[1:]}")
        if self.count == 1:
            return np.ones((*features.shape[:-1], 1))
        distances = np.linalg.norm(features[..., None, :] - self.features, axis=-1)
        raw = distances @ self.matrix
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))


def positive_weights(weights: np.ndarray) -> np.ndarray:
    """w⁺ = max(w, 0) / Σ max(w, 0) (..., m): convex weights for what must not be extrapolated, such as moduli."""
    clipped = np.maximum(weights, 0.0)
    return np.asarray(clipped / clipped.sum(axis=-1, keepdims=True))


def require_different_poses(distances: np.ndarray) -> None:
    """Raise `InputError` naming the first two poses whose entry of `distances` (m, m) is (nearly) zero."""
    first, second = np.triu_indices(len(distances), 1)
    if not first.size:
        return
    gaps = distances[first, second]
    same = np.flatnonzero(gaps <= COINCIDENT * gaps.max())
    if same.size:
        pairs = ", ".join(f"{first[k]} and {second[k]}" for k in same[:4])
        raise InputError(
            f"poses {pairs} coincide in their features, so no weights can tell them apart; remove one of each",
            np.unique([first[same], second[same]]),
        )


def _inverse(distances: np.ndarray) -> np.ndarray:
    """D⁻¹ with one step of refinement, which makes the weights at the poses exact to a few roundings."""
    if len(distances) == 1:
        return np.zeros((1, 1))
    inverse = np.linalg.inv(distances)
    inverse = inverse @ (2.0 * np.eye(len(distances)) - distances @ inverse)
    return np.asarray(0.5 * (inverse + inverse.T))
