"""The pose-space model (PSSD): everything a soft character needs at run time, as plain arrays.

n tet vertices, e tets, m poses, m_b poses of the basis (m, or 1), r modes, B bones, g regions, n̄ surface vertices. The
displacement of tet vertex v at pose parameters p and modal coordinates q is

    u_v = R_v(p) Σ_i w_i(p) V_i[v] (Υ q),      Υ = diag(1/√M̂_kk),   M̂ = Σ_ij w_i w_j V_iᵀ M V_j     (Eqs. 14–16)

with bind-space shapes V_i, pose weights w (Eq. 2) and vertex rotations R_v; where the rest of the body goes along with
the modes, its mass is in M̂ (`moved_mass`), and what follows them is drawn, too (`models.followers`). The drawn surface
is Φ̄(p) + A u. The methods here are the plain definitions, slow; `models.stepper` is their compiled counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError, require_finite, require_indices
from softrig.fem.laws import law_code
from softrig.models.followers import Followers
from softrig.models.inertia_map import InertiaMap
from softrig.models.level_of_detail import model_of_modes
from softrig.models.pose_space_checks import check_model, require_shapes
from softrig.models.stiffness_map import StiffnessMap
from softrig.numerics.rbf import BiharmonicWeights
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_matrices
from softrig.rig.bones import skin_of
from softrig.rig.clip import Clip
from softrig.rig.features import PoseFeatures, bounding_size
from softrig.rig.protocol import Rig
from softrig.rig.skinning import Skin

REST_CLAMP = 0.2
"""Signed singular values of a rest tet's deformation (neutral → pose) are kept at or above this."""
WHOLE_BODY = "whole body"
"""The region of modes that reach everywhere, beside local ones."""
KINDS = ("skin", "black-box")
INTERPOLATIONS = ("bind", "world")


@dataclass(frozen=True, eq=False)
class PoseTable:
    """The m poses and where they lie in feature space."""

    names: tuple[str, ...]
    parameters: np.ndarray = field(repr=False)
    """(m, P) rig parameters."""
    features: np.ndarray = field(repr=False)
    """(m, F) weighted features."""
    feature_weights: np.ndarray = field(repr=False)
    """(F,) dimensionless; zero where a feature does not count (the weights of correctives)."""

    def __post_init__(self) -> None:
        m = len(self.names)
        require_shapes(self, {"parameters": (m, None), "features": (m, len(self.feature_weights))})

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def interpolant(self) -> BiharmonicWeights:
        """The radial basis functions (Eq. 2)."""
        return BiharmonicWeights(self.features)

    def weights(self, features: np.ndarray) -> np.ndarray:
        """(..., m) pose weights w at weighted features (..., F); they sum to one and may be negative."""
        return self.interpolant(features)


@dataclass(frozen=True, eq=False)
class TetRig:
    """How the rest shape of the tets follows the pose (Eqs. 1–3)."""

    kind: str
    """"skin": carried by bones, or by frames fitted to a rig without any; "black-box": carried by surface vertices."""
    weights: csr_array | None = field(repr=False)
    """(n, B) skin: bone weights, rows sum to one."""
    shepard_nodes: np.ndarray | None = field(repr=False)
    """(n, 4) int32 black-box: surface vertices."""
    shepard_weights: np.ndarray | None = field(repr=False)
    """(n, 4) black-box: their weights, rows sum to one."""
    corrections: np.ndarray = field(repr=False)
    """(m, n, 3) metres, bind-space corrections δ of the fitted poses."""
    root_bone: int = 0
    """Skin: the bone whose rotation is the root's."""
    root_sample: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    """(k,) int32 black-box: tet vertices that tell the root's rotation."""
    frame_sample: np.ndarray | None = field(default=None, repr=False)
    """(S,) int32 skin whose bones are frames fitted to a rig without bones: the surface vertices they are fitted to."""
    frame_fit: np.ndarray | None = field(default=None, repr=False)
    """(B, 4, S) the fit: M_b = Σ_s x_s g_bsᵀ of the places x_s of those vertices."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"no tet rig of the kind {self.kind!r}; there are {', '.join(KINDS)}")
        if self.kind == "skin":
            if self.weights is None:
                raise InputError("a tet rig of the kind 'skin' needs bone weights")
            require_indices([self.root_bone], self.weights.shape[1], "the root bone")
            self._check_frames(self.weights.shape[1])
        elif self.frame_sample is not None or self.frame_fit is not None:
            raise InputError("fitted frames belong to a tet rig of the kind 'skin'")
        elif self.shepard_nodes is None or self.shepard_weights is None or len(self.root_sample) < 3:
            raise InputError("a black-box tet rig needs Shepard nodes and weights, and three vertices for its root")

    def _check_frames(self, bones: int) -> None:
        if (self.frame_sample is None) != (self.frame_fit is None):
            raise InputError("fitted frames need both the vertices they are fitted to and the fit")
        if self.frame_sample is None or self.frame_fit is None:
            return
        wanted = (bones, 4, len(self.frame_sample))
        if self.frame_fit.shape != wanted:
            raise InputError(f"the fit of frames must have the shape {wanted}, not {self.frame_fit.shape}")
        require_finite(self.frame_fit, "the fit of frames")


@dataclass(frozen=True, eq=False)
class Cubature:
    """Where elastic and inertial forces are evaluated (§5.3, §5.4)."""

    tets: np.ndarray = field(repr=False)
    """(c,) int32."""
    weights: np.ndarray = field(repr=False)
    """(m, c) ξ ≥ 0 at each pose."""
    young: np.ndarray = field(repr=False)
    """(m, c) Young's modulus, pascal."""
    poisson: np.ndarray = field(repr=False)
    """(m, c) Poisson ratio."""
    stiffness_correction: np.ndarray = field(repr=False)
    """(m, r, r) ΔK: what the cubature misses of the stiffness at u = 0, symmetric."""
    inertial_vertices: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    """(n_s,) int32 black-box: tet vertices whose accelerations stand for all."""
    stiffness_map: StiffnessMap | None = field(default=None, repr=False)
    """K̃ at u = 0 of any pose, in place of ΔK: the tets then give only what goes beyond the linear part. Or, if it is
    `beside_tets`, ΔK of any pose.

    None: the ΔK of the poses, mixed by w⁺.
    """
    beyond: float = 1.0
    """How much of what goes beyond the linear part counts; `weights` have this factor in them."""

    def softened(self, share: float) -> Cubature:
        """The same where only a share of what goes beyond the linear part counts."""
        return replace(self, weights=share * self.weights, beyond=share * self.beyond)

    @property
    def holds_linear(self) -> bool:
        """Whether the linear part is the tets' own, with ΔK; else it is the map's, and they give what is beyond it."""
        return self.stiffness_map is None or self.stiffness_map.beside_tets

    @property
    def linear_parts(self) -> np.ndarray:
        """(k, r, r) the matrices that `PoseSpaceModel.linear_weights` mixes into K̃, its inverse, or ΔK."""
        return self.stiffness_correction if self.stiffness_map is None else self.stiffness_map.components


@dataclass(frozen=True, eq=False)
class PoseSpaceModel:
    """A reduced soft character; immutable. World metres, kilograms, seconds."""

    name: str
    law: str
    rig: Rig = field(repr=False)
    """The surface rig, without its pose-space layer."""
    corrective: tuple[tuple[str, int], ...]
    """(morph parameter, pose): the morphs whose weight is the pose's w."""
    poses: PoseTable
    tet_rig: TetRig
    interpolation: str
    """"bind": shapes turn with the vertex rotations of bones or fitted frames; "world": with the root alone."""
    vertices: np.ndarray = field(repr=False)
    """(n, 3) rest positions of the tet vertices."""
    tets: np.ndarray = field(repr=False)
    """(e, 4) int32."""
    fixed: np.ndarray = field(repr=False)
    """(n,) bool: vertices that only follow the rig."""
    vertex_mass: np.ndarray = field(repr=False)
    """(n,) kilogram, lumped."""
    triangles: np.ndarray = field(repr=False)
    """(t, 3) int32 of the surface."""
    colours: np.ndarray | None = field(repr=False)
    """(n̄, 4) or None."""
    embedding_nodes: np.ndarray = field(repr=False)
    """(n̄, 4) int32 tet vertices that carry each surface vertex."""
    embedding_weights: np.ndarray = field(repr=False)
    """(n̄, 4); all zero: the vertex takes no part."""
    shapes: np.ndarray = field(repr=False)
    """(m_b, n, 3, r) V_i, bind space, exactly representable in float32."""
    region_of_mode: np.ndarray = field(repr=False)
    """(r,) int32; modes of one region stand together."""
    region_names: tuple[str, ...]
    mass_products: np.ndarray = field(repr=False)
    """(m_b, m_b, r, r) V_iᵀ M V_j."""
    inertia: np.ndarray = field(repr=False)
    """(m, r, L) C_i: from the load vector to reduced inertial forces."""
    wind: np.ndarray = field(repr=False)
    """(m, r, 3·frames) from a pressure vector in each frame (N/m²) to reduced forces."""
    gyro_frames: np.ndarray = field(repr=False)
    """(G,) int32 frames whose rotation stands for a group of vertices."""
    gyro: np.ndarray = field(repr=False)
    """(G, 9, r, r): three skew Γ, then six symmetric Θ (00, 11, 22, 01, 02, 12)."""
    cubature: Cubature = field(repr=False)
    modes_order: np.ndarray = field(repr=False)
    """(r,) importance of each mode."""
    frequencies: np.ndarray = field(repr=False)
    """(m, k) hertz, the lowest of the full model at each pose."""
    clips: tuple[Clip, ...] = field(default=(), repr=False)
    notes: dict[str, Any] = field(default_factory=dict, repr=False)
    size: float = 1.0
    """Metres: the diagonal of the bounding box."""
    inertia_map: InertiaMap | None = field(default=None, repr=False)
    """C of any pose of a skin. None: the C_i of the poses are mixed by w."""
    yielding: np.ndarray | None = field(default=None, repr=False)
    """(r, 12 B) what to add to C at every pose, because bones also move the modes through the rest of the body, which
    yields to them (`pipeline.yielding`); exactly representable in float32. None: nothing."""
    carried_mass: np.ndarray | None = field(default=None, repr=False)
    """(r, r) what to add to V_iᵀ M V_j, because the rest of the body goes along with the modes (`pipeline.yielding`);
    exactly representable in float32. None: nothing."""
    followers: Followers | None = field(default=None, repr=False)
    """What else of the body follows the modes. None: nothing does."""

    def __post_init__(self) -> None:
        law_code(self.law)
        if self.interpolation not in INTERPOLATIONS:
            raise InputError(f"no interpolation called {self.interpolation!r}; there are {', '.join(INTERPOLATIONS)}")
        if self.interpolation == "bind" and self.tet_rig.kind != "skin":
            raise InputError("bind space needs bones or fitted frames; use 'world'")
        if len(self.shapes) not in (1, len(self.poses)):
            raise InputError(f"a basis at {len(self.shapes)} poses; it must be at all {len(self.poses)} or at one")
        check_model(self)
        require_indices(self.gyro_frames, self.frame_count, "gyroscopic frames")
        require_indices([pose for _, pose in self.corrective], len(self.poses), "poses of correctives")

    @property
    def mode_count(self) -> int:
        """Modes, r."""
        return int(self.shapes.shape[3])

    @property
    def follower_count(self) -> int:
        """Shapes that follow the modes, s."""
        return 0 if self.followers is None else self.followers.count

    @property
    def frame_count(self) -> int:
        """Frames that turn shapes: B in bind space, else 1."""
        return self._bone_count if self.interpolation == "bind" else 1

    @property
    def load_count(self) -> int:
        """L, the length of the load vector."""
        blocks = 12 * self._bone_count if self.tet_rig.kind == "skin" else 3 * len(self.cubature.inertial_vertices)
        return blocks + len(self.poses)

    @property
    def _bone_count(self) -> int:
        return int(self.tet_rig.weights.shape[1]) if self.tet_rig.weights is not None else 0

    @property
    def skin(self) -> Skin | None:
        """The skin that carries the tets, None where the rig is not one."""
        if self.tet_rig.kind != "skin" or self.tet_rig.frame_fit is not None:
            return None
        skin = skin_of(self.rig)
        if skin is None or len(skin.binding.bones) != self._bone_count:
            raise InputError(f"the tets are carried by {self._bone_count} bones, which the rig does not have")
        return skin

    @cached_property
    def pose_features(self) -> PoseFeatures:
        """The features that tell poses apart, with the table's weights."""
        rest = self.rig.positions(self.rig.parameters.rest)
        return PoseFeatures(self.rig.parameters, bounding_size(rest), self.poses.feature_weights)

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """(m,) w at parameters p (P,); they sum to one and may be negative."""
        return self.poses.weights(self.pose_features(p))

    def corrected(self, p: np.ndarray) -> np.ndarray:
        """(P,) a copy of p (P,) with the weights of corrective morphs replaced by those of their poses."""
        p = np.array(self.rig.parameters.checked(p))
        w = self.pose_weights(p)
        for name, pose in self.corrective:
            p[self.rig.parameters.index(name)] = w[pose]
        return p

    def bone_matrices(self, p: np.ndarray) -> np.ndarray:
        """(B, 3, 4) M_b at parameters p (P,): from rest to now, the identity at rest."""
        if self.tet_rig.frame_fit is not None:
            return fitted_matrices(
                self.tet_rig.frame_fit, self.rig.positions(self.corrected(p), self.tet_rig.frame_sample)
            )
        skin = self.skin
        if skin is None:
            raise InputError("a black-box rig has no bones")
        start = parameters_start(self.rig, skin)
        own = self.rig.parameters.checked(p)[start : start + len(skin.parameters)]
        return (skin.bone_matrices(own) @ rest_inverses(skin))[:, :3]

    def shepard_positions(self, p: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) black-box tet positions without corrections, metres, or (len(chosen), 3) of some."""
        nodes, weights = self.tet_rig.shepard_nodes, self.tet_rig.shepard_weights
        if nodes is None or weights is None:
            raise InputError("the tets of a skinning rig do not follow surface vertices")
        if chosen is None:
            moves = self.rig.positions(self.corrected(p)) - self._rest_surface
            return np.asarray(self.vertices + np.einsum("na,nak->nk", weights, moves[nodes]))
        used, places = np.unique(nodes[chosen], return_inverse=True)
        moves = self.rig.positions(self.corrected(p), used) - self._rest_surface[used]
        carried = moves[places.reshape(-1, nodes.shape[1])]
        return np.asarray(self.vertices[chosen] + np.einsum("na,nak->nk", weights[chosen], carried))

    @cached_property
    def _rest_surface(self) -> np.ndarray:
        """(n̄, 3) metres."""
        return self.rig.positions(self.corrected(self.rig.parameters.rest))

    def frame_rotations(self, p: np.ndarray) -> np.ndarray:
        """(frames, 3, 3) rotations R_f at parameters p (P,)."""
        if self.tet_rig.kind == "skin":
            rotations = polar_rotations(self.bone_matrices(p)[:, :, :3])
            return rotations if self.interpolation == "bind" else rotations[self.tet_rig.root_bone][None]
        return polar_rotations(
            np.einsum("sk,sl->kl", self.shepard_positions(p, self.tet_rig.root_sample), self.root_arms)
        )[None]

    @cached_property
    def root_arms(self) -> np.ndarray:
        """(k, 3) m_s (X_s − X̄) of the root sample: A = Σ_s y_s armᵀ has the root's rotation as its polar factor."""
        sample = self.tet_rig.root_sample
        mass = self.vertex_mass[sample]
        return mass[:, None] * (self.vertices[sample] - mass @ self.vertices[sample] / mass.sum())

    def vertex_rotations(self, p: np.ndarray) -> np.ndarray:
        """(n, 3, 3) R_v: the normalised mixture of bone quaternions in bind space, else the root's rotation."""
        frames = self.frame_rotations(p)
        if self.interpolation == "world":
            return np.broadcast_to(frames[0], (len(self.vertices), 3, 3)).copy()
        assert self.tet_rig.weights is not None
        return blended_rotations(self.tet_rig.weights, frames)

    def tet_rest(self, p: np.ndarray) -> np.ndarray:
        """(n, 3) rest positions of the tet vertices at parameters p (P,), metres, not clamped."""
        corrections = np.tensordot(self.pose_weights(p), self.tet_rig.corrections, axes=1)
        if self.tet_rig.kind != "skin":
            return self.shepard_positions(p) + corrections @ self.frame_rotations(p)[0].T
        assert self.tet_rig.weights is not None
        blended = (self.tet_rig.weights @ self.bone_matrices(p).reshape(-1, 12)).reshape(-1, 3, 4)
        return np.einsum("nij,nj->ni", blended[:, :, :3], self.vertices + corrections) + blended[:, :, 3]

    def positive_weights(self, p: np.ndarray) -> np.ndarray:
        """(m,) w⁺ at parameters p (P,): the weights without what is negative, summing to one."""
        w = np.maximum(self.pose_weights(p), 0.0)
        return np.asarray(w / w.sum())

    def linear_weights(self, p: np.ndarray) -> np.ndarray:
        """(k,) weights of `Cubature.linear_parts` at parameters p (P,)."""
        known = self.cubature.stiffness_map
        positive = self.positive_weights(p)
        return positive if known is None else known.weights(self.pose_features(p), positive)

    def linear_part(self, p: np.ndarray) -> np.ndarray:
        """(r, r) K̃ at u = 0 of parameters p (P,), or ΔK where the tets hold the linear part; for coordinates Υq."""
        known, weights = self.cubature.stiffness_map, self.linear_weights(p)
        return np.tensordot(weights, self.cubature.linear_parts, axes=1) if known is None else known.stiffness(weights)

    def inertia_at(self, p: np.ndarray) -> np.ndarray:
        """(r, L) C at parameters p (P,); with an inertia map the columns for 2 ẇ_j ω_b stand behind."""
        w, known, felt = self.pose_weights(p), self.inertia_map, self.felt_inertia
        if known is None:
            return np.asarray(np.tensordot(w, felt, axes=1))
        return known.matrix(felt, w, known.shares(self.pose_features(p), w))

    @cached_property
    def felt_inertia(self) -> np.ndarray:
        """(m, r, L) C_i with what the rest of the body adds to them."""
        if self.yielding is None:
            return self.inertia
        felt = self.inertia.copy()
        felt[:, :, : self.yielding.shape[1]] += self.yielding
        return felt

    def basis_weights(self, p: np.ndarray) -> np.ndarray:
        """(m_b,) weights of the bases: w, or one where there is one basis."""
        return self.pose_weights(p) if len(self.shapes) > 1 else np.ones(1)

    @property
    def moved_mass(self) -> np.ndarray:
        """(m_b, m_b, r, r) `mass_products` with what the modes carry along: the mass of a motion."""
        return self.mass_products if self.carried_mass is None else self.mass_products + self.carried_mass

    def mode_scales(self, p: np.ndarray) -> np.ndarray:
        """(r,) the diagonal of Υ (Eq. 15)."""
        w = self.basis_weights(p)
        return 1.0 / np.sqrt(np.einsum("i,j,ijkk->k", w, w, self.moved_mass))

    def displacement(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """(n, 3) u at parameters p (P,) and modal coordinates q (r,), metres."""
        return np.einsum("nij,nj->ni", self.vertex_rotations(p), self.drawn_shapes(p) @ (self.mode_scales(p) * q))

    def drawn_shapes(self, p: np.ndarray) -> np.ndarray:
        """(n, 3, r) the modes with what follows them, V + Φ Y, at parameters p (P,), seen from the vertices."""
        shapes = np.tensordot(self.basis_weights(p), self.shapes, axes=1)
        if self.followers is None:
            return shapes
        return np.asarray(shapes + self.followers.shapes @ self.followers.matrix(self.linear_weights(p)))

    def with_modes(self, count: int) -> PoseSpaceModel:
        """The same character with `count` modes: the most important of each region, in proportion to what it has."""
        return model_of_modes(self, count)


def parameters_start(rig: Rig, part: Rig) -> int:
    """Where the parameters of `part`, the rig itself or a stage of a chain, begin among those of `rig`."""
    if rig is part:
        return 0
    start = 0
    for stage in getattr(rig, "stages", ()):
        if stage is part or part in getattr(stage, "stages", ()):
            return start + parameters_start(stage, part)
        start += len(stage.parameters)
    raise InputError("the rig has no such part")


def rest_inverses(skin: Skin) -> np.ndarray:
    """(B, 4, 4) inverses of the bone matrices at rest: identities where the character rests in its bind pose.

    They make M_b the identity at rest also for nodes that carry rigid parts. A bone that is flat at rest keeps its
    own matrix.
    """
    matrices = skin.bone_matrices(skin.parameters.rest)
    flat = np.abs(np.linalg.det(matrices)) < 1e-12
    return np.linalg.inv(np.where(flat[:, None, None], np.eye(4), matrices))


def fitted_matrices(fit: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(B, 3, 4) M_b = Σ_s x_s g_bsᵀ of frames with `fit` g (B, 4, S) whose sample is at `places` x (S, 3), metres."""
    bones, rows, count = fit.shape
    return np.ascontiguousarray((fit.reshape(-1, count) @ places).reshape(bones, rows, 3).transpose(0, 2, 1))


def blended_rotations(weights: csr_array, frames: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations of vertices with frame `weights` (n, frames) and frame rotations (frames, 3, 3).

    The normalised mixture of quaternions, each on the side of the vertex' heaviest frame.
    """
    table = weights.toarray()
    quaternions = quaternions_from_matrices(frames)
    signs = np.where(quaternions[table.argmax(axis=1)] @ quaternions.T < 0.0, -1.0, 1.0)
    return quaternion_matrices((table * signs) @ quaternions)


def polar_rotations(matrices: np.ndarray) -> np.ndarray:
    """(..., 3, 3) R of A = R S; a mirroring A gets a negative S, so that no axis needs choosing."""
    U, _, Vt = np.linalg.svd(matrices)
    R = U @ Vt
    return R * np.where(np.linalg.det(R) < 0.0, -1.0, 1.0)[..., None, None]
