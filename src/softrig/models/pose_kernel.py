"""The additive kernel over poses by which matrices are regressed on the joints one by one.

With v_g the features of joint (or other parameter) g and d_g = √3 ‖v_g − v'_g‖/ℓ_g it is a sum of Matérn kernels,

    κ(p, p') = Σ_g (1 + d_g) exp(−d_g).

Combinations of joints that were never seen together are answered by what each joint did. Beyond what the samples show
of a feature it counts as if it were at the end of that: nothing is extrapolated. (Otherwise the stiffness of a bear
that waves, learned from a walk and a shake with hanging arms, was negative. A Gaussian kernel, being infinitely smooth,
shoots over even between samples far apart.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite
from softrig.models.pose_space_checks import require_shapes


@dataclass(frozen=True, eq=False)
class PoseKernel:
    """Where the samples of a regression lie. f features count, in G groups; t samples."""

    columns: np.ndarray = field(repr=False)
    """(f,) int32 which weighted features of the pose table count, group by group."""
    groups: np.ndarray = field(repr=False)
    """(G + 1,) int32 first place of each group in `columns`."""
    lengths: np.ndarray = field(repr=False)
    """(G,) ℓ in weighted features."""
    samples: np.ndarray = field(repr=False)
    """(t, f) weighted features of the sample poses."""

    def __post_init__(self) -> None:
        f = len(self.columns)
        require_shapes(self, {"samples": (None, f), "lengths": (len(self.groups) - 1,)})
        if not len(self.samples):
            raise InputError("a map over poses needs samples")
        if not (len(self.groups) and self.groups[0] == 0 and self.groups[-1] == f and (np.diff(self.groups) > 0).all()):
            raise InputError("the groups of a map over poses must cover its features once, in order")
        for name in ("samples", "lengths"):
            require_finite(getattr(self, name), f"map over poses: {name}")
        if not (self.lengths > 0.0).all():
            raise InputError("lengths of a map over poses must be positive", np.flatnonzero(~(self.lengths > 0.0)))

    def kernel(self, features: np.ndarray) -> np.ndarray:
        """(t,) κ between weighted features (F,), within the range of the samples, and these."""
        low, high = self.bounds
        known = np.clip(np.asarray(features)[self.columns], low, high)
        return additive_kernel(known[None], self.samples, self.groups, self.lengths)[0]

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(f,) each: the least and the largest of each feature that the samples show."""
        return self.samples.min(axis=0), self.samples.max(axis=0)

    def same_kernel(self, other: PoseKernel) -> bool:
        """Whether `other` has the same samples, so that one evaluation serves both."""
        names = ("columns", "groups", "lengths", "samples")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


def additive_kernel(points: np.ndarray, samples: np.ndarray, groups: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(a, t) κ between features (a, f) and (t, f)."""
    squares = (points[:, None] - samples[None]) ** 2
    distances = np.sqrt(3.0 * np.add.reduceat(squares, groups[:-1], axis=2)) / lengths
    return np.asarray(((1.0 + distances) * np.exp(-distances)).sum(axis=2))


@njit(cache=True)
def write_kernel(
    places: np.ndarray,
    groups: np.ndarray,
    lengths: np.ndarray,
    samples: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    features: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write κ (t,); `places` (f,): where each feature stands in `features`; `low` and `high` (f,) their bounds."""
    for t in range(samples.shape[0]):
        sample = samples[t]
        kernel = 0.0
        for g in range(lengths.shape[0]):
            square = 0.0
            for i in range(groups[g], groups[g + 1]):
                square += (min(max(features[places[i]], low[i]), high[i]) - sample[i]) ** 2
            distance = np.sqrt(3.0 * square) / lengths[g]
            kernel += (1.0 + distance) * np.exp(-distance)
        out[t] = kernel


@njit(cache=True)
def add_mixture(weights: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out (k,) += Σ_t weights[t] rows[t]."""
    for t in range(rows.shape[0]):
        weight, row = weights[t], rows[t]
        for k in range(row.shape[0]):
            out[k] += weight * row[k]
