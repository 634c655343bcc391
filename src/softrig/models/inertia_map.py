"""How the inertial matrices of a skin follow the pose between the poses of a model.

C(p) a = Σ_v V_vᵀ m_v R_vᵀ ẍ_v (`forces.inertia`). Its columns C_b for the acceleration of bone b, seen from that bone,
change only as the bones that share vertices with b turn relative to it, which mixes rotations and is not linear in the
pose weights. So C_b is regressed on the joints and pairs of them, with components of its own for each bone:

    C_b(p) = C_b(p_0) + Σ_k c_k(p) D_k  (k of bone b),   c(p) = Σ_t κ(p, p_t) A_t + Σ_i w_i(p) ρ_i

with κ of `models.pose_kernel`. The small ρ_i are what the regression leaves at the poses of the model, where w picks
one: there C is exact. The columns for ẅ are mixed by w.

A skin's ẍ_v has one more term, 2 L̇_v Σ_j ẇ_j δ_jv of corrections δ that change while their bones turn. For rigid bones
R_bᵀL̇_b is ω_b ×, with ω_b the angular velocity seen from the bone; so the load vector ends with 2 ẇ_j ω_b. Its columns
T_b mix the same rotations as C_b, so that the same shares tell how they follow the pose, by matrices E_k of the
components for which it counts: T_b(p) = T_b(p_0) + Σ_k c_k(p) E_k.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite, require_indices
from softrig.models.pose_kernel import PoseKernel, add_mixture
from softrig.models.pose_space_checks import require_shapes

BLOCK = 12
"""Loads of a bone: its 3 × 4 acceleration."""


@dataclass(frozen=True, eq=False)
class InertiaMap(PoseKernel):
    """C of a pose: shares c of the bones' components, from the pose's features."""

    coefficients: np.ndarray = field(repr=False)
    """(t, k) A."""
    remainders: np.ndarray = field(repr=False)
    """(m, k) ρ."""
    owners: np.ndarray = field(repr=False)
    """(k,) int32 the bone of each component."""
    components: np.ndarray = field(repr=False)
    """(k, r, 12) D; zero in regions where it does not count; exactly representable in float32."""
    turning: np.ndarray = field(repr=False)
    """(r, 3 m B) T at the first pose, bone by bone, pose by pose; exactly representable in float32."""
    turners: np.ndarray = field(repr=False)
    """(j,) int32 components whose shares T follows."""
    turned: np.ndarray = field(repr=False)
    """(j, r, 3 m) E of those; exactly representable in float32."""

    def __post_init__(self) -> None:
        super().__post_init__()
        k = len(self.owners)
        require_shapes(
            self, {"coefficients": (len(self.samples), k), "remainders": (None, k), "components": (k, None, BLOCK)}
        )
        for name in ("coefficients", "remainders", "components", "turning", "turned"):
            require_finite(getattr(self, name), f"inertia map: {name}")

    def check(self, features: int, modes: int, poses: int, bones: int) -> None:
        """Raise `InputError` unless it is for so many features, modes, poses and bones."""
        require_indices(self.columns, features, "features of the inertia map")
        require_indices(self.owners, bones, "bones of the inertia map")
        if len(self.remainders) != poses:
            raise InputError(f"an inertia map of {len(self.remainders)} poses for a model of {poses}")
        require_shapes(self, {"components": (len(self.owners), modes, BLOCK), "turning": (modes, 3 * poses * bones)})
        require_indices(self.turners, len(self.owners), "components that turn in the inertia map")
        require_shapes(self, {"turned": (len(self.turners), modes, 3 * poses)})

    def shares(self, features: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(k,) c at weighted features (F,) with pose weights w (m,)."""
        return np.asarray(self.kernel(features) @ self.coefficients + w @ self.remainders)

    def matrix(self, inertia: np.ndarray, w: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """(r, 12 B + m + 3 m B) C from those of the poses (m, r, 12 B + m), pose weights w (m,) and shares c (k,)."""
        late = inertia.shape[2] - len(w)
        mixed = np.tensordot(w, inertia, axes=1)
        mixed[:, :late] = inertia[0, :, :late]
        for bone, share, component in zip(self.owners, shares, self.components, strict=True):
            mixed[:, BLOCK * bone : BLOCK * (bone + 1)] += share * component
        turning, width = self.turning.copy(), 3 * len(w)
        for component, matrix in zip(self.turners, self.turned, strict=True):
            bone = self.owners[component]
            turning[:, width * bone : width * (bone + 1)] += shares[component] * matrix
        return np.concatenate([mixed, turning], axis=1)


@njit(cache=True)
def write_shares(
    kernel: np.ndarray, coefficients: np.ndarray, remainders: np.ndarray, w: np.ndarray, out: np.ndarray
) -> None:
    """Write the shares c (k,) of the components from κ (t,) and the pose weights w (m,)."""
    out[:] = 0.0
    add_mixture(kernel, coefficients, out)
    add_mixture(w, remainders, out)
