"""What the rest of the body does beside the modes, drawn although it is not simulated.

Modes x move, and all else of the body is where its own stiffness and the loads hold it beside them. Most of that is
foretold by the modes themselves (`pipeline.followers`): s more shapes Φ follow them,

    u = R_v (V x + Φ y),   y = (Y_0 + A (Σ_j s_j C_j) B) x,   s = S c(p),

where c(p) are the weights of what the stiffness map has learned (`models.stiffness_map`), for beside which the rest
yields depends on the pose as stiffness does. They add no unknowns, and nothing to a step: y is made when something is
drawn or asked where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.models.pose_space_checks import require_shapes


@dataclass(frozen=True, eq=False)
class Followers:
    """s shapes that follow r modes, by j mixtures of the stiffness map's k learned components."""

    rows: np.ndarray = field(repr=False)
    """(n, 3, s) int8: Φ in steps of `steps`. Single followers are a few percent of a motion; where they are modes that
    were left out (`of_modes`) it is off by less than a percent of what is drawn."""
    steps: np.ndarray = field(repr=False)
    """(s,) positive, 1/√kilogram."""
    regions: np.ndarray = field(repr=False)
    """(s,) int32, rising: followers of one region are zero outside it."""
    mean: np.ndarray = field(repr=False)
    """(s, r) Y_0."""
    left: np.ndarray = field(repr=False)
    """(s, a) A."""
    core: np.ndarray = field(repr=False)
    """(j, a, b) C_j."""
    right: np.ndarray = field(repr=False)
    """(b, r) B."""
    mixing: np.ndarray = field(repr=False)
    """(j, k) S."""

    def __post_init__(self) -> None:
        if np.ndim(self.core) != 3 or 0 in np.shape(self.core):
            raise InputError(f"core of followers must be matrices, at least one, not {np.shape(self.core)}")
        count, (mixtures, rows, columns) = len(self.steps), np.shape(self.core)
        require_shapes(
            self,
            {
                "rows": (None, 3, count),
                "regions": (count,),
                "mean": (count, None),
                "left": (count, rows),
                "right": (columns, self.mean.shape[-1]),
                "mixing": (mixtures, None),
            },
        )
        if self.rows.dtype != np.int8:
            raise InputError(f"rows of followers are int8, not {self.rows.dtype}")
        for name in ("steps", "mean", "left", "core", "right", "mixing"):
            require_finite(getattr(self, name), f"followers: {name}")
        if not (self.steps > 0.0).all():
            raise InputError("steps of followers must be positive", np.flatnonzero(~(self.steps > 0.0)))
        if (np.diff(self.regions) < 0).any() or (self.regions < 0).any():
            raise InputError("followers must stand region by region")

    @property
    def count(self) -> int:
        """Followers, s."""
        return len(self.steps)

    @property
    def shapes(self) -> np.ndarray:
        """(n, 3, s) Φ, 1/√kilogram."""
        return self.rows * self.steps

    def check(self, vertices: int, modes: int, learned: int) -> None:
        """Raise `InputError` unless it is for so many vertices, modes and learned components of a stiffness map."""
        wanted = {"rows": (vertices, 3, self.count), "mean": (self.count, modes), "mixing": (len(self.core), learned)}
        require_shapes(self, dict(wanted))

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """(s, r) Y of y = Y x, at the weights of the stiffness map's components, of which c (k,) are the last."""
        shares = self.mixing @ weights[len(weights) - self.mixing.shape[1] :]
        return np.asarray(self.mean + self.left @ np.tensordot(shares, self.core, axes=1) @ self.right)

    def of_modes(self, foretold: np.ndarray, keep: np.ndarray, shapes: np.ndarray, regions: np.ndarray) -> Followers:
        """Those of the modes `keep` (k,) alone, by which all are `foretold` (r, k): what that makes of all modes, whose
        shapes are (n, 3, r) and belong to `regions` (r,), follows, too. Only vertices that the modes kept move."""
        beside = foretold.copy()
        beside[keep, np.arange(len(keep))] -= 1.0
        rows, steps = in_steps(shapes)
        order = np.argsort(np.concatenate([self.regions, regions]), kind="stable")
        still = ~np.any(shapes[..., keep] != 0.0, axis=(1, 2))
        all_rows = np.concatenate([self.rows, rows], axis=2)[..., order]
        all_rows[still] = 0
        single = (np.concatenate([self.mean @ foretold, beside])[order], self.right @ foretold)
        mean, right = (part.astype(np.float32).astype(np.float64) for part in single)  # as a file keeps them
        return Followers(
            rows=all_rows,
            steps=np.concatenate([self.steps, steps])[order],
            regions=np.concatenate([self.regions, regions])[order],
            mean=mean,
            left=np.pad(self.left, ((0, len(steps)), (0, 0)))[order],
            core=self.core,
            right=right,
            mixing=self.mixing,
        )

    @classmethod
    def none(cls, vertices: int, modes: int, learned: int) -> Followers:
        """Nothing that follows, of so many vertices, modes and learned components of a stiffness map."""
        return cls(
            rows=np.zeros((vertices, 3, 0), np.int8),
            steps=np.zeros(0),
            regions=np.zeros(0, np.int32),
            mean=np.zeros((0, modes)),
            left=np.zeros((0, 1)),
            core=np.zeros((1, 1, 1)),
            right=np.zeros((1, modes)),
            mixing=np.zeros((1, learned)),
        )


def in_steps(shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`Followers.rows` and `Followers.steps` of shapes (n, 3, s)."""
    peaks = np.abs(shapes).max(axis=(0, 1), initial=0.0)
    steps = np.where(peaks > 0.0, peaks, 1.0) / np.iinfo(np.int8).max
    return np.rint(shapes / steps).astype(np.int8), steps
