"""The kernel over poses by which matrices are regressed on the joints, one by one and two by two.

With v_g the features of joint (or other parameter) g and d_g = √3 ‖v_g − v'_g‖/ℓ_g it is a sum of Matérn kernels and of
their products,

    κ(p, p') = Σ_g κ_g + ρ/(G − 1) Σ_{g ≠ h} κ_g κ_h,   κ_g = a_g (1 + d_g) exp(−d_g),

where the second sum is (Σ_g κ_g)² − Σ_g κ_g² and costs nothing. The first answers combinations of joints that were
never seen together by what each joint did; the second knows that two joints next to each other move the same flesh, and
that two bends of one body do not add up at all: without it the stiffness of a letter X, bent and bowed, is negative
halfway between its samples. a_g says how much joint g matters.

Beyond what the samples show of a feature it counts as if it were at the end of that: nothing is extrapolated.
(Otherwise the stiffness of a bear that waves, learned from a walk and a shake with hanging arms, was negative. A
Gaussian kernel, being infinitely smooth, shoots over even between samples far apart.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite
from softrig.models.pose_space_checks import require_shapes

PAIRS = 1.0
"""ρ: pairs count as much, all of them, as single joints. From ½ to 2 it hardly matters."""
MOST_RELEVANCE = 1e6
"""Far beyond what is fitted; squares of it are still numbers."""


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
    pairs: float
    """ρ; zero: joints one by one."""
    relevance: np.ndarray = field(repr=False)
    """(G,) a, from zero up."""

    def __post_init__(self) -> None:
        f, groups = len(self.columns), len(self.groups) - 1
        require_shapes(self, {"columns": (None,), "groups": (None,), "samples": (None, f)})
        require_shapes(self, {"lengths": (groups,), "relevance": (groups,)})
        if not len(self.samples):
            raise InputError("a map over poses needs samples")
        if not (len(self.groups) and self.groups[0] == 0 and self.groups[-1] == f and (np.diff(self.groups) > 0).all()):
            raise InputError("the groups of a map over poses must cover its features once, in order")
        for name in ("samples", "lengths", "relevance"):
            require_finite(getattr(self, name), f"map over poses: {name}")
        if not (isfinite(self.pairs) and self.pairs >= 0.0):
            raise InputError(f"the share of pairs in a map over poses must be a number from zero up, not {self.pairs}")
        wrong = ~((self.relevance >= 0.0) & (self.relevance <= MOST_RELEVANCE))
        if wrong.any():
            raise InputError("relevances of a map over poses are out of range", np.flatnonzero(wrong))
        if not (self.lengths > 0.0).all():
            raise InputError("lengths of a map over poses must be positive", np.flatnonzero(~(self.lengths > 0.0)))

    def kernel(self, features: np.ndarray) -> np.ndarray:
        """(t,) κ between weighted features (F,), within the range of the samples, and these."""
        low, high = self.bounds
        known = np.clip(np.asarray(features)[self.columns], low, high)
        return pose_kernel(known[None], self.samples, self.groups, self.lengths, self.pairs, self.relevance)[0]

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(f,) each: the least and the largest of each feature that the samples show."""
        return self.samples.min(axis=0), self.samples.max(axis=0)

    def same_samples(self, other: PoseKernel) -> bool:
        """Whether `other` differs in relevances at most, so that one evaluation of the joints serves both."""
        names = ("columns", "groups", "lengths", "samples")
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
        return same and self.pairs == other.pairs


def pose_kernel(
    points: np.ndarray,
    samples: np.ndarray,
    groups: np.ndarray,
    lengths: np.ndarray,
    pairs: float = PAIRS,
    relevance: np.ndarray | None = None,
) -> np.ndarray:
    """(a, t) κ between features (a, f) and (t, f); all joints matter alike unless `relevance` (G,) says otherwise."""
    single = joint_kernels(points, samples, groups, lengths)
    return mixed_kernel(single, np.ones(len(lengths)) if relevance is None else relevance, pairs)


def joint_kernels(points: np.ndarray, samples: np.ndarray, groups: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(a, t, G) κ_g between features (a, f) and (t, f), where all joints matter alike."""
    squares = (points[:, None] - samples[None]) ** 2
    distances = np.sqrt(3.0 * np.add.reduceat(squares, groups[:-1], axis=2)) / lengths
    return np.asarray((1.0 + distances) * np.exp(-distances))


def mixed_kernel(single: np.ndarray, relevance: np.ndarray, pairs: float = PAIRS) -> np.ndarray:
    """(a, t) κ from those of the joints (a, t, G) and how much each matters (G,)."""
    total = single @ relevance
    return np.asarray(total + _of_pairs(len(relevance), pairs) * (total**2 - single**2 @ relevance**2))


def relevance_slopes(slopes: np.ndarray, single: np.ndarray, relevance: np.ndarray, pairs: float = PAIRS) -> np.ndarray:
    """(G,) slopes by the relevance of each joint of what has `slopes` (a, t) by the entries of `mixed_kernel`."""
    both = 2.0 * _of_pairs(len(relevance), pairs)
    direct = np.einsum("ij,ijg->g", slopes * (1.0 + both * (single @ relevance)), single, optimize=True)
    return np.asarray(direct - both * relevance * np.einsum("ij,ijg,ijg->g", slopes, single, single))


@njit(cache=True)
def _of_pairs(groups: int, pairs: float) -> float:
    """ρ/(G − 1); nothing where there is but one group."""
    return pairs / (groups - 1) if groups > 1 else 0.0


@njit(cache=True)
def write_kernels(
    places: np.ndarray,
    groups: np.ndarray,
    lengths: np.ndarray,
    samples: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    pairs: float,
    relevance: np.ndarray,
    features: np.ndarray,
    single: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write κ (k, t) of k maps with the same samples and relevances (k, G) of their own; `single` (G,) is scratch.

    `places` (f,): where each feature stands in `features`; `low` and `high` (f,) their bounds.
    """
    of_pairs = _of_pairs(lengths.shape[0], pairs)
    for t in range(samples.shape[0]):
        sample = samples[t]
        for g in range(lengths.shape[0]):
            square = 0.0
            for i in range(groups[g], groups[g + 1]):
                square += (min(max(features[places[i]], low[i]), high[i]) - sample[i]) ** 2
            distance = np.sqrt(3.0 * square) / lengths[g]
            single[g] = (1.0 + distance) * np.exp(-distance)
        for k in range(relevance.shape[0]):
            total, own = 0.0, 0.0
            for g in range(lengths.shape[0]):
                counted = relevance[k, g] * single[g]
                total += counted
                own += counted * counted
            out[k, t] = total + of_pairs * (total**2 - own)


@njit(cache=True)
def add_mixture(weights: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out (k,) += Σ_t weights[t] rows[t]."""
    for t in range(rows.shape[0]):
        weight, row = weights[t], rows[t]
        for k in range(row.shape[0]):
            out[k] += weight * row[k]
