"""How the reduced stiffness follows the pose between the poses of a model.

Stiffness in bind space depends on how the joints near a tet are bent, hardly on the others. So K̃ at u = 0 is regressed
on the joints one by one: with v_g the features of joint (or other parameter) g and d_g = √3 ‖v_g − v'_g‖/ℓ_g, by an
additive Matérn kernel

    κ(p, p') = Σ_g (1 + d_g) exp(−d_g),      K̃(p) = C₀ + Σ_k (Σ_t κ(p, p_t) A_tk) C_k,

fitted at t sample poses. Combinations of joints that were never seen together are answered by what each joint did, and
far from everything the sum fades to C₀, the stiffness of the rest pose. (A Gaussian kernel, being infinitely smooth,
shoots over beyond the samples: a clip that nobody had seen got stiffnesses that were not even positive.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite, require_indices
from softrig.models.pose_space_checks import require_shapes


@dataclass(frozen=True, eq=False)
class StiffnessMap:
    """K̃ of a pose: weights of matrices, from the pose's features. f features count, in G groups; t samples."""

    columns: np.ndarray = field(repr=False)
    """(f,) int32 which weighted features of the pose table count, group by group."""
    groups: np.ndarray = field(repr=False)
    """(G + 1,) int32 first place of each group in `columns`."""
    lengths: np.ndarray = field(repr=False)
    """(G,) ℓ in weighted features."""
    samples: np.ndarray = field(repr=False)
    """(t, f) weighted features of the sample poses."""
    coefficients: np.ndarray = field(repr=False)
    """(t, k) A."""
    components: np.ndarray = field(repr=False)
    """(k + 1, r, r) C₀, then C_k; symmetric, exactly representable in float32."""

    def __post_init__(self) -> None:
        f, k = len(self.columns), len(self.components) - 1
        require_shapes(
            self,
            {"samples": (None, f), "coefficients": (len(self.samples), k), "lengths": (len(self.groups) - 1,)},
        )
        if not (len(self.groups) and self.groups[0] == 0 and self.groups[-1] == f and (np.diff(self.groups) > 0).all()):
            raise InputError("the groups of a stiffness map must cover its features once, in order")
        for name in ("samples", "coefficients", "components", "lengths"):
            require_finite(getattr(self, name), f"stiffness map: {name}")
        if not (self.lengths > 0.0).all():
            raise InputError("lengths of a stiffness map must be positive", np.flatnonzero(~(self.lengths > 0.0)))

    def check(self, features: int, modes: int) -> None:
        """Raise `InputError` unless it is for so many features and modes."""
        require_indices(self.columns, features, "features of the stiffness map")
        require_shapes(self, {"components": (len(self.components), modes, modes)})

    def weights(self, features: np.ndarray) -> np.ndarray:
        """(k + 1,) weights of the components at weighted features (F,); the first is one."""
        kernel = additive_kernel(np.asarray(features)[None, self.columns], self.samples, self.groups, self.lengths)[0]
        return np.concatenate([[1.0], kernel @ self.coefficients])


def additive_kernel(points: np.ndarray, samples: np.ndarray, groups: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(a, t) κ between features (a, f) and (t, f)."""
    squares = (points[:, None] - samples[None]) ** 2
    distances = np.sqrt(3.0 * np.add.reduceat(squares, groups[:-1], axis=2)) / lengths
    return np.asarray(((1.0 + distances) * np.exp(-distances)).sum(axis=2))


@njit(cache=True)
def write_weights(
    places: np.ndarray,
    groups: np.ndarray,
    lengths: np.ndarray,
    samples: np.ndarray,
    coefficients: np.ndarray,
    features: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the weights (k + 1,) of the components; `places` (f,): where each feature stands in `features`."""
    out[0] = 1.0
    for k in range(coefficients.shape[1]):
        out[k + 1] = 0.0
    for t in range(samples.shape[0]):
        sample = samples[t]
        kernel = 0.0
        for g in range(lengths.shape[0]):
            square = 0.0
            for i in range(groups[g], groups[g + 1]):
                square += (features[places[i]] - sample[i]) ** 2
            distance = np.sqrt(3.0 * square) / lengths[g]
            kernel += (1.0 + distance) * np.exp(-distance)
        row = coefficients[t]
        for k in range(row.shape[0]):
            out[k + 1] += kernel * row[k]
