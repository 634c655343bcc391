"""A tree of nodes with a translation, a rotation and a scale each: joints and the plain nodes above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite
from softrig.numerics.rotations import quaternion_matrices
from softrig.rig.parameters import Parameters, unique_names

NODE_PARAMETERS = 10
"""Parameters a node: translation x, y, z; rotation x, y, z, w; scale x, y, z."""

_SUFFIXES = (*(f"translation.{c}" for c in "xyz"), *(f"rotation.{c}" for c in "xyzw"), *(f"scale.{c}" for c in "xyz"))
_UNITS = ("m",) * 3 + ("1",) * 7


@dataclass(frozen=True, eq=False)
class Skeleton:
    """j nodes; a node's local matrix is translation · rotation · scale, its world matrix parent · local."""

    names: tuple[str, ...]
    """j names; repeated ones get "#2", "#3" … behind them."""
    parents: np.ndarray
    """(j,) int32, −1 for roots, parent before child."""
    translations: np.ndarray
    """(j, 3) metres at rest, in the parent's frame."""
    rotations: np.ndarray
    """(j, 4) unit quaternions x, y, z, w at rest."""
    scales: np.ndarray
    """(j, 3) at rest."""
    fixed_matrices: dict[int, np.ndarray] = field(default_factory=dict)
    """Local (4, 4) matrices of nodes that no translation, rotation and scale describes; their parameters do nothing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", unique_names(self.names))
        object.__setattr__(self, "parents", np.asarray(self.parents, dtype=np.int32))
        count = len(self.names)
        for name, width in (("translations", 3), ("rotations", 4), ("scales", 3)):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if array.shape != (count, width):
                raise InputError(f"{name} of {count} nodes must be ({count}, {width}), not {array.shape}")
            require_finite(array, name)
            object.__setattr__(self, name, array)
        if self.parents.shape != (count,):
            raise InputError(f"parents of {count} nodes must be ({count},), not {self.parents.shape}")
        wrong = (self.parents < -1) | (self.parents >= np.arange(count))
        if wrong.any():
            raise IndexRangeError("a node's parent must come before it", np.flatnonzero(wrong))
        for node, matrix in self.fixed_matrices.items():
            if not 0 <= node < count or np.shape(matrix) != (4, 4):
                raise IndexRangeError("a fixed matrix must be (4, 4) and belong to a node", [node])
            require_finite(np.asarray(matrix), f"fixed matrix of node {node}")

    def __repr__(self) -> str:
        return f"Skeleton({len(self.names):,} nodes)"

    @classmethod
    def from_heads(cls, names: Sequence[str], parents: Sequence[int] | np.ndarray, heads: np.ndarray) -> Skeleton:
        """Nodes at world positions `heads` (j, 3), metres, with no rotation and no scale at rest."""
        parents = np.asarray(parents, dtype=np.int32)
        heads = np.asarray(heads, dtype=np.float64)
        if heads.shape != (len(parents), 3):
            raise InputError(f"{len(parents)} parents need heads of shape ({len(parents)}, 3), not {heads.shape}")
        translations = np.where(parents[:, None] >= 0, heads - heads[parents], heads)
        rotations = np.tile([0.0, 0.0, 0.0, 1.0], (len(heads), 1))
        return cls(tuple(names), parents, translations, rotations, np.ones((len(heads), 3)))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def parameters(self) -> Parameters:
        """Ten a node, node after node: translation (m), rotation quaternion, scale."""
        rest = np.concatenate([self.translations, self.rotations, self.scales], axis=1).ravel()
        names = tuple(f"{name}.{suffix}" for name in self.names for suffix in _SUFFIXES)
        return Parameters(names, _UNITS * len(self), rest, NODE_PARAMETERS * np.arange(len(self)) + 3)

    @cached_property
    def _levels(self) -> list[np.ndarray]:
        """Nodes by depth, so that world matrices need one product a level."""
        depths = np.zeros(len(self), dtype=np.int64)
        for node, parent in enumerate(self.parents):
            depths[node] = depths[parent] + 1 if parent >= 0 else 0
        return [np.flatnonzero(depths == depth) for depth in range(int(depths.max(initial=-1)) + 1)]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Of each node, its children."""
        lists: list[list[int]] = [[] for _ in self.names]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                lists[parent].append(node)
        return tuple(tuple(nodes) for nodes in lists)

    def index(self, name: str) -> int:
        """The node called `name`."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(f"no node is called '{name}'") from None

    def translation(self, node: int) -> slice:
        """Where the three translation parameters of `node` are."""
        return slice(NODE_PARAMETERS * node, NODE_PARAMETERS * node + 3)

    def rotation(self, node: int) -> slice:
        """Where the four rotation parameters of `node` are."""
        return slice(NODE_PARAMETERS * node + 3, NODE_PARAMETERS * node + 7)

    def scale(self, node: int) -> slice:
        """Where the three scale parameters of `node` are."""
        return slice(NODE_PARAMETERS * node + 7, NODE_PARAMETERS * node + 10)

    def ancestors(self, node: int) -> list[int]:
        """The nodes above `node`, nearest first."""
        chain = []
        while (node := int(self.parents[node])) >= 0:
            chain.append(node)
        return chain

    def local_matrices(self, p: np.ndarray) -> np.ndarray:
        """(..., j, 4, 4) each node's frame in its parent's, at parameters p (..., 10 j)."""
        p = self.parameters.checked(p)
        nodes = p.reshape(*p.shape[:-1], len(self), NODE_PARAMETERS)
        matrices = np.zeros((*nodes.shape[:-1], 4, 4))
        matrices[..., :3, :3] = quaternion_matrices(nodes[..., 3:7]) * nodes[..., None, 7:10]
        matrices[..., :3, 3] = nodes[..., :3]
        matrices[..., 3, 3] = 1.0
        for node, matrix in self.fixed_matrices.items():
            matrices[..., node, :, :] = matrix
        return matrices

    def world_matrices(self, p: np.ndarray) -> np.ndarray:
        """(..., j, 4, 4) each node's frame in the world, at parameters p (..., 10 j); frames may be stacked."""
        matrices = self.local_matrices(p)
        for nodes in self._levels[1:]:
            matrices[..., nodes, :, :] = matrices[..., self.parents[nodes], :, :] @ matrices[..., nodes, :, :]
        return matrices

    @cached_property
    def rest_world_matrices(self) -> np.ndarray:
        """(j, 4, 4) world matrices at rest."""
        return self.world_matrices(self.parameters.rest)
