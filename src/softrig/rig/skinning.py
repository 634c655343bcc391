"""Skinning: vertices carried by a weighted mixture of bones, linear or by dual quaternions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import IndexRangeError, InputError, notice, require_finite
from softrig.numerics.rotations import quaternion_matrices, quaternion_product, quaternions_from_matrices
from softrig.rig.deforming import Deforming, checked_positions, checked_vertices
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.rig.skeleton_kernel import Tree, bone_matrices, skeleton_tree, world_matrices
from softrig.rig.vertex_kernels import skinned_points

WEIGHT_TOLERANCE = 0.02
"""Weights whose sum misses one by more than this draw a notice (bytes miss it by up to 0.01)."""


@dataclass(frozen=True, eq=False)
class SkinBinding:
    """Which bones carry which vertices: after normalising, and with bones for vertices that follow one node."""

    bones: np.ndarray
    """(b,) int32 node of each bone."""
    inverse_binds: np.ndarray
    """(b, 4, 4) from rest positions to the bone's frame."""
    table: csr_array
    """(n, b) weights, each row sums to one."""

    def __repr__(self) -> str:
        return f"SkinBinding({self.table.shape[0]:,} vertices, {len(self.bones):,} bones)"

    @property
    def influences(self) -> int:
        """The largest number of bones that carry one vertex."""
        return int(np.diff(self.table.indptr).max(initial=0))


@dataclass(frozen=True, eq=False)
class SkinMap:
    """The exact linear map from bone matrices to m points: x_i = Σ_b M_b h_ib, with homogeneous vectors h_ib."""

    matrix: csr_array
    """(m, 4b) the h_ib side by side, metres (and weights in every fourth column)."""

    def __repr__(self) -> str:
        return f"SkinMap({self.matrix.shape[0]:,} points, {self.matrix.shape[1] // 4:,} bones)"

    def positions(self, bone_matrices: np.ndarray) -> np.ndarray:
        """(m, 3) metres, or the like of any linear combination (differences in time) of bone matrices (b, 4, 4)."""
        stacked = np.ascontiguousarray(bone_matrices[:, :3].transpose(0, 2, 1)).reshape(-1, 3)
        return self.matrix @ stacked

    def dense(self) -> np.ndarray:
        """(m, b, 4) the vectors h_ib."""
        return self.matrix.toarray().reshape(self.matrix.shape[0], -1, 4)


@dataclass(frozen=True, eq=False, repr=False)
class Skin(Deforming):
    """Base of both skins. Vertices without any weight follow the node `attach` names for them."""

    skeleton: Skeleton
    rest_positions: np.ndarray
    """(n, 3) metres: bind pose of skinned vertices, the node's own frame for those that follow a node."""
    bones: np.ndarray
    """(b,) int32 node of each bone."""
    inverse_binds: np.ndarray
    """(b, 4, 4)."""
    joints: np.ndarray
    """(n, k) int32 bones of each vertex, any k, also 0."""
    weights: np.ndarray
    """(n, k), not negative; rows are normalised."""
    attach: np.ndarray | None = None
    """(n,) int32 node that an unweighted vertex follows, −1: its first bone. None: all −1."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "rest_positions", checked_positions(self.rest_positions, "rest positions"))
        count = len(self.rest_positions)
        set_field(self, "bones", np.asarray(self.bones, dtype=np.int32).reshape(-1))
        set_field(self, "inverse_binds", np.asarray(self.inverse_binds, dtype=np.float64).reshape(-1, 4, 4))
        set_field(self, "joints", np.asarray(self.joints, dtype=np.int32))
        set_field(self, "weights", np.asarray(self.weights, dtype=np.float64))
        attach = np.full(count, -1) if self.attach is None else self.attach
        set_field(self, "attach", np.asarray(attach, dtype=np.int32))
        _check_skin(self)
        _ = self.binding  # faults and notices belong to making the skin, not to its first use

    @property
    def parameters(self) -> Parameters:
        """Those of the skeleton."""
        return self.skeleton.parameters

    @cached_property
    def binding(self) -> SkinBinding:
        """The normalised weights, and one more bone for each node that unweighted vertices follow."""
        return _bind(self)

    def bone_matrices(self, p: np.ndarray) -> np.ndarray:
        """(b', 4, 4) rest positions to world, for the b' ≥ b bones of `binding`, at parameters p (P,)."""
        return self.skeleton.world_matrices(p)[..., self.binding.bones, :, :] @ self.binding.inverse_binds

    @abstractmethod
    def blended_matrices(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n, 3, 4) from each vertex' rest position to the world, at parameters p (P,)."""

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the skin takes `points`, the moved rest positions of `vertices`."""
        blended = self.blended_matrices(p, vertices)
        return np.einsum("nij,nj->ni", blended[:, :, :3], points) + blended[:, :, 3]

    def rows(self, vertices: np.ndarray | None) -> csr_array:
        """(len(vertices), b') weights of some vertices; costs only their rows."""
        return self.binding.table if vertices is None else self.binding.table[vertices]


@dataclass(frozen=True, eq=False, repr=False)
class LinearBlendSkin(Skin):
    """x = Σ_k w_k M_k X with M_k = world matrix · inverse bind matrix of bone k."""

    def blended_matrices(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n, 3, 4) weighted sums of bone matrices at parameters p (P,), for all or the named vertices."""
        rows = self.rows(vertices)
        return (rows @ self.bone_matrices(p)[:, :3].reshape(-1, 12)).reshape(-1, 3, 4)

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the skin takes `points`, without matrices of the vertices."""
        table, tree = self.binding.table, self._tree
        world, matrices = np.empty((len(self.skeleton), 3, 4)), np.empty((len(self.binding.bones), 3, 4))
        world_matrices(tree, np.ascontiguousarray(p, dtype=np.float64), world)
        bone_matrices(tree, world, matrices)
        if (matrices == np.eye(3, 4)).all():  # often so with a root behind other rigs
            return np.array(points, dtype=np.float64)
        chosen = np.arange(self.vertex_count) if vertices is None else np.ascontiguousarray(vertices, dtype=np.int64)
        points, out = np.ascontiguousarray(points, dtype=np.float64), np.empty((len(chosen), 3))
        skinned_points(table.indptr, table.indices, table.data, matrices, points, chosen, out)
        return out

    @cached_property
    def _tree(self) -> Tree:
        return skeleton_tree(self.skeleton, 0, self.binding.bones, self.binding.inverse_binds)

    def linear_map(self, vertices: np.ndarray | None = None) -> SkinMap:
        """The map from bone matrices to all or the named vertices."""
        if vertices is None:
            return self._map(self.binding.table, self.rest_positions, 1.0)
        vertices = checked_vertices(vertices, self.vertex_count)
        return self._map(self.binding.table[vertices], self.rest_positions[vertices], 1.0)

    def embedded_map(self, nodes: np.ndarray, weights: np.ndarray) -> SkinMap:
        """The map from bone matrices to m points Σ_a weights[i, a] · position of vertex nodes[i, a]; both (m, a)."""
        full = self.linear_map().matrix
        return SkinMap(_carrier(nodes, weights, self.vertex_count) @ full)

    def vector_map(
        self, deltas: np.ndarray, nodes: np.ndarray | None = None, weights: np.ndarray | None = None
    ) -> SkinMap:
        """The map from bone matrices to what rest displacements `deltas` (n, 3), metres, add to the positions.

        Of a chain of blend shapes and this skin: positions = linear_map + Σ_t w_t vector_map(target t).
        """
        deltas = checked_positions(deltas, "displacements")
        full = self._map(self.binding.table, deltas, 0.0)
        if nodes is None or weights is None:
            return full
        return SkinMap(_carrier(nodes, weights, self.vertex_count) @ full.matrix)

    def _map(self, table: csr_array, points: np.ndarray, last: float) -> SkinMap:
        count, bones = table.shape
        rows = np.repeat(np.arange(count), np.diff(table.indptr))
        homogeneous = np.concatenate([points, np.full((count, 1), last)], axis=1)
        values = table.data[:, None] * homogeneous[rows]
        columns = 4 * table.indices[:, None] + np.arange(4)
        return SkinMap(csr_array((values.ravel(), columns.ravel(), 4 * table.indptr), shape=(count, 4 * bones)))


@dataclass(frozen=True, eq=False, repr=False)
class DualQuaternionSkin(Skin):
    """x = rigid(Σ_k w_k q̂_k) · (Σ_k w_k S_k) X: joints twist without losing volume (Kavan et al. 2007).

    Each bone matrix is split into a stretch S_k about the bind origin and a rigid motion q̂_k, a unit dual quaternion.
    """

    @cached_property
    def _pivots(self) -> np.ndarray:
        """(n,) the bone of largest weight: its quaternion decides the signs of the others."""
        table = self.binding.table
        if table.shape[0] == 0:
            return np.zeros(0, dtype=np.int64)
        starts = table.indptr[:-1]
        largest = np.repeat(np.maximum.reduceat(table.data, starts), np.diff(table.indptr))
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        pivots = np.empty(table.shape[0], dtype=np.int64)
        hits = np.flatnonzero(table.data == largest)[::-1]
        pivots[rows[hits]] = table.indices[hits]
        return pivots

    def blended_matrices(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n, 3, 4) rigid motion times stretch at parameters p (P,), for all or the named vertices."""
        matrices = self.bone_matrices(p)
        rotations, stretches = _polar(matrices[:, :3, :3])
        real = quaternions_from_matrices(rotations)
        shifts = np.concatenate([matrices[:, :3, 3], np.zeros((len(matrices), 1))], axis=1)
        dual = 0.5 * quaternion_product(shifts, real)
        rows = self.rows(vertices).copy()
        pivots = self._pivots if vertices is None else self._pivots[vertices]
        stretch = (rows @ stretches.reshape(-1, 9)).reshape(-1, 3, 3)
        # q and −q are one rotation: mix each on the side of the strongest bone, or the mixture goes the long way.
        own = np.repeat(real[pivots], np.diff(rows.indptr), axis=0)
        rows.data = np.where(np.sum(own * real[rows.indices], axis=1) < 0.0, -rows.data, rows.data)
        mixed_real, mixed_dual = rows @ real, rows @ dual
        squares = np.sum(mixed_real**2, axis=1, keepdims=True)
        result = np.empty((len(mixed_real), 3, 4))
        result[:, :, :3] = quaternion_matrices(mixed_real) @ stretch
        conjugate = mixed_real * np.array([-1.0, -1.0, -1.0, 1.0])
        result[:, :, 3] = 2.0 * quaternion_product(mixed_dual, conjugate)[:, :3] / squares
        return result


def _carrier(nodes: np.ndarray, weights: np.ndarray, count: int) -> csr_array:
    """(m, n) the sparse matrix of points carried by vertices."""
    if np.shape(nodes) != np.shape(weights) or np.ndim(nodes) != 2:
        raise InputError(f"nodes {np.shape(nodes)} and weights {np.shape(weights)} must be (m, k)")
    nodes = checked_vertices(nodes, count)
    rows = np.repeat(np.arange(len(nodes)), nodes.shape[1])
    return csr_array((np.ravel(weights), (rows, nodes.ravel())), shape=(len(nodes), count))


def _check_skin(skin: Skin) -> None:
    count, nodes = len(skin.rest_positions), len(skin.skeleton)
    if skin.inverse_binds.shape[0] != len(skin.bones):
        raise InputError(f"{len(skin.bones)} bones but {skin.inverse_binds.shape[0]} inverse bind matrices")
    require_finite(skin.inverse_binds, "inverse bind matrices")
    wrong = (skin.bones < 0) | (skin.bones >= nodes)
    if wrong.any():
        raise IndexRangeError("a bone names a node that does not exist", np.flatnonzero(wrong))
    if skin.joints.shape != skin.weights.shape or skin.joints.ndim != 2 or len(skin.joints) != count:
        raise InputError(f"joints {skin.joints.shape} and weights {skin.weights.shape} must be ({count}, k)")
    require_finite(skin.weights, "skin weights")
    negative = (skin.weights < 0.0).any(axis=1)
    if negative.any():
        raise InputError("negative skin weights at vertices", np.flatnonzero(negative))
    # Files fill unused places with any number: only influences with a weight must name a bone.
    missing = (skin.weights > 0.0) & ((skin.joints < 0) | (skin.joints >= len(skin.bones)))
    if missing.any():
        raise IndexRangeError("a bone that does not exist carries vertices", np.unique(np.nonzero(missing)[0]))
    assert skin.attach is not None
    if skin.attach.shape != (count,):
        raise InputError(f"attach must be ({count},), not {skin.attach.shape}")
    stray = np.flatnonzero((skin.attach < -1) | (skin.attach >= nodes))
    if stray.size:
        raise IndexRangeError("vertices follow a node that does not exist", stray)


def _bind(skin: Skin) -> SkinBinding:
    """Normalise the weights and give each node that unweighted vertices follow a bone of its own."""
    count, bones = len(skin.rest_positions), len(skin.bones)
    assert skin.attach is not None
    sums = skin.weights.sum(axis=1)
    empty = sums <= 0.0
    uneven = ~empty & (np.abs(sums - 1.0) > WEIGHT_TOLERANCE)
    if uneven.any():
        notice("skin weights that do not sum to one were normalised, vertices", np.flatnonzero(uneven))
    lost = empty & (skin.attach < 0)
    first = _first_bones(skin, lost)
    nodes = np.unique(skin.attach[empty & ~lost])
    extra = np.searchsorted(nodes, skin.attach[empty & ~lost]) + bones
    used = skin.weights > 0.0
    rows = np.concatenate([np.nonzero(used)[0], np.flatnonzero(lost), np.flatnonzero(empty & ~lost)])
    columns = np.concatenate([skin.joints[used], first, extra])
    values = np.concatenate([(skin.weights / np.where(empty, 1.0, sums)[:, None])[used], np.ones(int(empty.sum()))])
    table = csr_array((values, (rows, columns)), shape=(count, bones + len(nodes)))
    table.sum_duplicates()
    inverse_binds = np.concatenate([skin.inverse_binds, np.tile(np.eye(4), (len(nodes), 1, 1))])
    return SkinBinding(np.concatenate([skin.bones, nodes]).astype(np.int32), inverse_binds, table)


def _first_bones(skin: Skin, lost: np.ndarray) -> np.ndarray:
    """Bones for vertices with neither weight nor node: their first one, as most programs do."""
    if not lost.any():
        return np.zeros(0, dtype=np.int32)
    if len(skin.bones) == 0:
        raise InputError("vertices with neither a bone nor a node", np.flatnonzero(lost))
    notice("vertices without skin weights follow their first bone", np.flatnonzero(lost))
    first = skin.joints[lost, 0] if skin.joints.shape[1] else np.zeros(int(lost.sum()), dtype=np.int32)
    return np.where((first < 0) | (first >= len(skin.bones)), 0, first)


def _polar(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations R (det +1) and symmetric S with A = R S; a mirroring A gets a negative S, without a choice of axis."""
    U, s, Vt = np.linalg.svd(matrices)
    R = U @ Vt
    signs = np.where(np.linalg.det(R) < 0.0, -1.0, 1.0)[:, None, None]
    return signs * R, signs * (np.swapaxes(Vt, -1, -2) * s[:, None, :]) @ Vt
