"""The node tree of a glTF document, checked to be a tree, and the part of it that moves vertices as a `Skeleton`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from softrig.io.accessors import MemoryBudget
from softrig.io.json_fields import JsonObject
from softrig.numerics.rotations import quaternions_from_matrices
from softrig.rig.skeleton import Skeleton

# What one node costs: its ten parameters with their names, and its matrices.
_BYTES_A_NODE = 4096
# Matrices come from single precision: what differs less from a TRS is one.
_TRS_TOLERANCE = 1e-6


@dataclass(frozen=True)
class NodeTree:
    """All nodes of the document; `order` puts parents before children, `in_scene` marks what the scene shows."""

    entries: list[JsonObject]
    parents: np.ndarray
    order: list[int]
    in_scene: np.ndarray

    def with_ancestors(self, wanted: Iterable[int]) -> list[int]:
        """The wanted nodes and all above them, parents first."""
        kept = np.zeros(len(self.entries), dtype=bool)
        for node in wanted:
            above = node
            while above >= 0 and not kept[above]:
                kept[above] = True
                above = int(self.parents[above])
        return [node for node in self.order if kept[node]]


def read_nodes(root: JsonObject) -> NodeTree:
    """The nodes with their parents; a node with two parents and a cycle are refused."""
    entries = root.children("nodes")
    children = [entry.wholes("children") for entry in entries]
    parents = np.full(len(entries), -1, dtype=np.int64)
    for parent, below in enumerate(children):
        for child in below:
            if child >= len(entries):
                raise entries[parent].error(f"child {child} does not exist, there are {len(entries)} nodes")
            if parents[child] >= 0:
                raise root.error(f"node {child} has two parents", [int(parents[child]), parent])
            parents[child] = parent
    order = _parents_first(children, np.flatnonzero(parents < 0).tolist())
    if len(order) < len(entries):
        cyclic = np.setdiff1d(np.arange(len(entries)), order)
        raise root.error("nodes form a cycle or hang below one", cyclic)
    return NodeTree(entries, parents, order, _in_scene(root, parents, order))


def _parents_first(children: list[list[int]], roots: list[int]) -> list[int]:
    """Depth-first order in the document's order, without recursion: trees may be 10,000 nodes deep."""
    order: list[int] = []
    waiting = roots[::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(children[node]))
    return order


def _in_scene(root: JsonObject, parents: np.ndarray, order: list[int]) -> np.ndarray:
    """The nodes of the default scene, of the first one if none is said to be, of all where there are no scenes."""
    shown = np.ones(len(parents), dtype=bool)
    if not root.children("scenes"):
        return shown
    scene = root.at("scenes", root.index("scene", 0))
    shown[:] = False
    for node in scene.wholes("nodes"):
        if node >= len(parents):
            raise scene.error(f"node {node} does not exist, there are {len(parents)}")
        if parents[node] >= 0:
            raise scene.error("has a node that is the child of another one", [node])
        shown[node] = True
    for node in order:
        if parents[node] >= 0:
            shown[node] = shown[parents[node]]
    return shown


def skeleton_of(tree: NodeTree, kept: list[int], scale: float, budget: MemoryBudget) -> tuple[Skeleton, dict[int, int]]:
    """The kept nodes as a skeleton in metres, and where each of them stands in it."""
    budget.charge(_BYTES_A_NODE * len(kept), "the node tree")
    slots = {node: slot for slot, node in enumerate(kept)}
    translations, scales = np.zeros((len(kept), 3)), np.ones((len(kept), 3))
    rotations = np.tile([0.0, 0.0, 0.0, 1.0], (len(kept), 1))
    fixed: dict[int, np.ndarray] = {}
    for slot, node in enumerate(kept):
        entry = tree.entries[node]
        matrix = entry.numbers("matrix", 16)
        if matrix is None:
            local = _given_trs(entry)
        else:
            columns = matrix.reshape(4, 4).T.copy()
            if np.abs(columns[3] - [0.0, 0.0, 0.0, 1.0]).max() > _TRS_TOLERANCE:
                raise entry.error("the last row of its matrix is not 0, 0, 0, 1")
            parts = trs_of(columns)
            if parts is None:
                columns[:3, 3] *= scale
                fixed[slot] = columns
                continue
            local = parts
        translations[slot], rotations[slot], scales[slot] = local[0] * scale, local[1], local[2]
    parents = np.array([slots.get(int(tree.parents[node]), -1) for node in kept], dtype=np.int32)
    names = unique_names([tree.entries[node].name(f"node_{node}") for node in kept])
    return Skeleton(names, parents, translations, rotations, scales, fixed), slots


def _given_trs(entry: JsonObject) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    translation, rotation, scale = (
        entry.numbers(key, length) for key, length in (("translation", 3), ("rotation", 4), ("scale", 3))
    )
    if rotation is None:
        rotation = np.array([0.0, 0.0, 0.0, 1.0])
    length = np.linalg.norm(rotation)
    if not 1e-12 < length < np.inf:
        raise entry.error("its rotation has no direction")
    return (
        np.zeros(3) if translation is None else translation,
        rotation / length,
        np.ones(3) if scale is None else scale,
    )


def trs_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Translation, quaternion and scale of a 4×4 matrix; None where it shears, projects or flattens.

    A mirroring matrix gets a negative x scale.
    """
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if not (np.isfinite(scale).all() and scale.min() > 1e-9 * scale.max() > 0.0):
        return None
    if np.linalg.det(linear / scale) < 0.0:
        scale[0] = -scale[0]
    rotation = linear / scale
    if np.abs(rotation.T @ rotation - np.eye(3)).max() > _TRS_TOLERANCE:
        return None
    return matrix[:3, 3].copy(), quaternions_from_matrices(rotation), scale


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names with "#2", "#3" … behind repeated ones, in time linear in their number however often they repeat."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        candidate = name
        while candidate in taken:
            counts[name] = counts.get(name, 1) + 1
            candidate = f"{name}#{counts[name]}"
        taken.add(candidate)
        result.append(candidate)
    return tuple(result)
