"""How the reduced stiffness follows the pose between the poses of a model.

Stiffness in bind space depends on how the joints near a tet are bent, hardly on the others. So K̃ at u = 0 is regressed
on the joints and on pairs of them, by the kernel κ of `models.pose_kernel`:

    K̃(p) = Σ_i w⁺_i(p) K̃_i + Σ_k (Σ_t κ(p, p_t) A_tk) C_k,

fitted at t sample poses. At the model's own poses, where w⁺ picks one, it is their K̃_i, as nearly as the second sum is
nothing there: to a percent or so, and to three where they are in contact.
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
    """(m + k, r, r) K̃_i of the poses (or one for all), then C_k; symmetric, exactly representable in float32."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_shapes(self, {"coefficients": (len(self.samples), None)})
        if self.own < 1:
            raise InputError(
                f"{len(self.components)} components for {self.coefficients.shape[1]} columns and the poses"
            )
        for name in ("coefficients", "components"):
            require_finite(getattr(self, name), f"stiffness map: {name}")

    @property
    def own(self) -> int:
        """How many of the components are the poses' own."""
        return len(self.components) - self.coefficients.shape[1]

    def check(self, features: int, modes: int, poses: int) -> None:
        """Raise `InputError` unless it is for so many features, modes and poses."""
        require_indices(self.columns, features, "features of the stiffness map")
        if self.own not in (1, poses):
            raise InputError(f"a stiffness map of {self.own} poses for a model of {poses}")
        require_shapes(self, {"components": (len(self.components), modes, modes)})

    def weights(self, features: np.ndarray, positive: np.ndarray) -> np.ndarray:
        """(m + k,) weights of the components at weighted features (F,), where the poses have w⁺ `positive` (m,)."""
        return np.concatenate([positive if self.own > 1 else [1.0], self.kernel(features) @ self.coefficients])


@njit(cache=True)
def write_weights(kernel: np.ndarray, coefficients: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Write the weights (m + k,) of the components from κ (t,) and the pose weights w (m,)."""
    own = out.shape[0] - coefficients.shape[1]
    total = 0.0
    for i in range(w.shape[0]):
        total += max(w[i], 0.0)
    for i in range(own):
        out[i] = 1.0 if own == 1 else max(w[i], 0.0) / total
    out[own:] = 0.0
    add_mixture(kernel, coefficients, out[own:])
