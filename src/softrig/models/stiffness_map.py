"""How the reduced stiffness follows the pose between the poses of a model.

Stiffness in bind space depends on how the joints near a tet are bent, hardly on the others. So what the flesh yields to
forces on its modes, the flexibility F = K̃⁻¹ at u = 0, is regressed on the joints and on pairs of them, by the kernel κ
of `models.pose_kernel`:

    K̃(p) = (F_0 + Σ_k (Σ_t κ(p, p_t) A_tk) C_k)⁻¹ + Σ_j s(w⁺_j(p)) S_j,

fitted at t sample poses. F_0 is that of the first pose. S_j are springs of the contacts of pose j; they are no part of
the regression, so they hold as they are meant to (`contact_share`).

Flexibility, because it is what adds up: of springs in a row each yields by itself, and so do the parts of a body. And
what it is wrong by does less harm: to forces on some modes these yield by their own block of F, whatever the others
say. K̃ itself, wrong by ε in each of r entries of a row, is too soft by r ε² for slow motions, since the other modes
follow the errors: a gorilla of 100 modes swung 2 % too slowly in places, one of 200 worse than that.

Where the flesh itself changes by pose weight (materials of their own at the poses) K̃ is regressed as it is,

    K̃(p) = Σ_i w⁺_i(p) K̃_i + Σ_k (Σ_t κ(p, p_t) A_tk) C_k + Σ_j s(w⁺_j(p)) S_j,

for it is that which follows the materials; in files before version 8, and by the paper's recipe with one basis, with
K̃_0 alone in place of the first sum. Elsewhere pose weights must not be in it: they have a tip at every pose, which the
stiffness does not have and no smooth kernel takes away again.

Where modes lean on their tets, and where poses have bases of their own (`beside_tets`), it is ΔK(p) that is regressed
in K̃'s place, what the tets miss of the stiffness. These know the pose themselves and give all of their force: nothing
is taken from it that, beyond the samples or in flesh that turns far, is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite, require_indices
from softrig.models.fewer_modes import block_of_flexibilities
from softrig.models.kernels.pose_space_linear import HALVINGS
from softrig.models.pose_kernel import PoseKernel, add_mixture
from softrig.models.pose_space_checks import require_shapes

FIRMEST = 20.0
"""Times the stiffness of a mode at the first pose, that none becomes: bent as in the samples, flesh is up to four times
as stiff in some direction."""


@dataclass(frozen=True, eq=False)
class StiffnessMap(PoseKernel):
    """K̃ of a pose: weights of matrices, from the pose's features."""

    coefficients: np.ndarray = field(repr=False)
    """(t, k) A."""
    components: np.ndarray = field(repr=False)
    """(1 + s + k, r, r), or (m + s + k, r, r): F_0, K̃_0, or K̃_i of the poses; S_j; C_k. Symmetric, exactly
    representable in float32."""
    touching: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    """(s,) int32 the poses j whose contacts hold."""
    flexible: bool = False
    """Whether F is regressed, s²; else K̃, 1/s²."""
    beside_tets: bool = False
    """Whether ΔK is regressed in place of K̃, to be added to all that the tets give."""

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
        if self.flexible and self.beside_tets:
            raise InputError("what tets miss of a stiffness is no flexibility")
        if self.flexible and (self.own != 1 or not _is_definite(self.components[0])):
            raise InputError("the flexibility of the first pose is not one positive definite matrix")

    @property
    def own(self) -> int:
        """How many of the components are the poses' own: one, or as many as there are poses."""
        return len(self.components) - len(self.touching) - self.coefficients.shape[1]

    @property
    def flexibilities(self) -> np.ndarray:
        """(1 + s + k,) which components are flexibilities; springs never are."""
        return self.flexible & ~self._of_springs

    @property
    def _of_springs(self) -> np.ndarray:
        places = np.arange(len(self.components)) - self.own
        return (places >= 0) & (places < len(self.touching))

    def springs_alone(self) -> StiffnessMap:
        """The map of what contacts add, and nothing else."""
        return replace(self, components=self.components * self._of_springs[:, None, None])

    def check(self, features: int, modes: int, poses: int, bases: int) -> None:
        """Raise `InputError` unless it is for so many features, modes, poses and bases."""
        require_indices(self.columns, features, "features of the stiffness map")
        require_indices(self.touching, poses, "poses in contact of the stiffness map")
        if self.own not in (1, poses):
            raise InputError(f"a stiffness map of {self.own} poses for a model of {poses}")
        require_shapes(self, {"components": (len(self.components), modes, modes)})
        if self.flexible and bases > 1:
            raise InputError(f"a flexibility of {bases} bases: it belongs to one for all poses")

    def weights(self, features: np.ndarray, positive: np.ndarray) -> np.ndarray:
        """(1 + s + k,) weights of the components at weighted features (F,), where the poses have w⁺ `positive` (m,)."""
        own = positive if self.own > 1 else [1.0]
        return np.concatenate([own, contact_share(positive[self.touching]), self.kernel(features) @ self.coefficients])

    def stiffness(self, weights: np.ndarray) -> np.ndarray:
        """(r, r) K̃, or ΔK beside the tets, from the weights of the components, 1/s².

        Of what was learned of a flexibility less counts where, beyond all samples, it would be none, or hardly one.
        """
        if not self.flexible:
            return np.asarray(np.tensordot(weights, self.components, axes=1))
        learned = self.own + len(self.touching)
        change = np.tensordot(weights[learned:], self.components[learned:], axes=1)
        shares = [*0.5 ** np.arange(HALVINGS), 0.0]
        first = weights[0] * self.components[0]
        found = next(k for share in shares if (k := self._bearable(first + share * change)) is not None)
        held = np.tensordot(weights[self.own : learned], self.components[self.own : learned], axes=1)
        return np.asarray(found + held)

    def _bearable(self, flexibility: np.ndarray) -> np.ndarray | None:
        """(r, r) its inverse, unless it is not positive definite or a mode is stiffer than `firmest`."""
        if not _is_definite(flexibility):
            return None
        found = np.linalg.inv(flexibility)
        return found if (found.diagonal() <= self.firmest).all() else None

    @cached_property
    def firmest(self) -> np.ndarray:
        """(r,) 1/s²: no mode of a flexible map becomes stiffer, `FIRMEST` times what it is at the first pose."""
        return FIRMEST * np.linalg.inv(self.components[0]).diagonal()

    def springs(self, positive: np.ndarray) -> np.ndarray:
        """(r, r) what contacts add where the poses have w⁺ `positive` (m,)."""
        held = self.components[self.own : self.own + len(self.touching)]
        return np.asarray(np.tensordot(contact_share(positive[self.touching]), held, axes=1))

    @cached_property
    def sizes(self) -> np.ndarray:
        """(1 + s + k,) of a flexibility: the RMS change of stiffness, of itself, that a weight of one makes; else 0.

        Springs are not inverted, so theirs is zero, too.
        """
        sizes = np.zeros(len(self.components))
        if self.flexible:
            factor = np.linalg.inv(np.linalg.cholesky(self.components[0]))
            seen = factor @ self.components @ factor.T
            sizes = np.where(self.flexibilities, np.linalg.norm(seen, axis=(1, 2)) / np.sqrt(len(factor)), 0.0)
        return sizes

    def of_modes(self, keep: np.ndarray, mass: np.ndarray) -> StiffnessMap:
        """The map of the modes `keep` (k,) alone, `mass` (r, r) being M̂ of all; see `fewer_modes`. Stiffness is cut."""
        cut, some = self.components[:, keep[:, None], keep], self.flexibilities
        cut[some] = block_of_flexibilities(self.components[some], mass, keep)
        return replace(self, components=cut.astype(np.float32).astype(np.float64))


def _is_definite(matrix: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


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
