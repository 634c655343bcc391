"""How the reduced stiffness follows the pose between the poses of a model.

Stiffness in bind space depends on how the joints near a tet are bent, hardly on the others. So K̃ at u = 0 is regressed
on the joints and on pairs of them, by the kernel κ of `models.pose_kernel`:

    K̃(p) = K̃_0 + Σ_j s(w⁺_j(p)) S_j + Σ_k (Σ_t κ(p, p_t) A_tk) C_k,

fitted at t sample poses. K̃_0 is that of the first pose. S_j are springs of the contacts of pose j; they are no part of
the regression, so they hold as they are meant to (`contact_share`).

Where the flesh itself changes by pose weight (materials or bases of their own at the poses) Σ_i w⁺_i(p) K̃_i stands in
place of K̃_0. Elsewhere it must not: pose weights have a tip at every pose, which the stiffness does not have and no
smooth kernel takes away again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite, require_indices
from softrig.models.pose_kernel import PoseKernel, add_mixture
from softrig.models.pose_space_checks import require_shapes


@dataclass(frozen=True, eq=False)
class StiffnessMap(PoseKernel):
    """K̃ of a pose: weights of matrices, from the pose's features."""

    coefficients: np.ndarray = field(repr=False)
    """(t, k) A."""
    components: np.ndarray = field(repr=False)
    """(1 + s + k, r, r), or (m + s + k, r, r): K̃_0, or K̃_i of the poses; S_j; C_k. Symmetric, exactly representable in
    float32."""
    touching: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    """(s,) int32 the poses j whose contacts hold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_shapes(self, {"coefficients": (len(self.samples), None), "touching": (None,)})
        if self.own < 1:
            raise InputError(
                f"{len(self.components)} components for {self.coefficients.shape[1]} columns, "
                f"{len(self.touching)} poses in contact and the poses"
            )
        for name in ("coefficients", "components"):
            require_finite(getattr(self, name), f"stiffness map: {name}")

    @property
    def own(self) -> int:
        """How many of the components are the poses' own: one, or as many as there are poses."""
        return len(self.components) - len(self.touching) - self.coefficients.shape[1]

    def check(self, features: int, modes: int, poses: int) -> None:
        """Raise `InputError` unless it is for so many features, modes and poses."""
        require_indices(self.columns, features, "features of the stiffness map")
        require_indices(self.touching, poses, "poses in contact of the stiffness map")
        if self.own not in (1, poses):
            raise InputError(f"a stiffness map of {self.own} poses for a model of {poses}")
        require_shapes(self, {"components": (len(self.components), modes, modes)})

    def weights(self, features: np.ndarray, positive: np.ndarray) -> np.ndarray:
        """(1 + s + k,) weights of the components at weighted features (F,), where the poses have w⁺ `positive` (m,)."""
        own = positive if self.own > 1 else [1.0]
        return np.concatenate([own, contact_share(positive[self.touching]), self.kernel(features) @ self.coefficients])

    def springs(self, positive: np.ndarray) -> np.ndarray:
        """(r, r) what contacts add where the poses have w⁺ `positive` (m,)."""
        held = self.components[self.own : self.own + len(self.touching)]
        return np.asarray(np.tensordot(contact_share(positive[self.touching]), held, axes=1))


@njit(cache=True)
def _held(weight: float) -> float:
    """How much contacts of a pose hold at its weight w⁺: nothing until it is halfway there."""
    return max(2.0 * weight - 1.0, 0.0) ** 2


def contact_share(weights: np.ndarray) -> np.ndarray:
    """(m,) how much the contacts of each pose hold at pose weights w⁺ (m,)."""
    return np.array([_held(float(weight)) for weight in weights])


@njit(cache=True)
def write_weights(
    kernel: np.ndarray, coefficients: np.ndarray, touching: np.ndarray, w: np.ndarray, out: np.ndarray
) -> None:
    """Write the weights (1 + s + k,) of the components from κ (t,) and the pose weights w (m,)."""
    springs = touching.shape[0]
    own = out.shape[0] - springs - coefficients.shape[1]
    total = 0.0
    for i in range(w.shape[0]):
        total += max(w[i], 0.0)
    for i in range(own):
        out[i] = 1.0 if own == 1 else max(w[i], 0.0) / total
    for i in range(springs):
        out[own + i] = _held(w[touching[i]] / total)
    out[own + springs :] = 0.0
    add_mixture(kernel, coefficients, out[own + springs :])
