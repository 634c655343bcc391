"""The joints of a subject that a hand can take: those that carry flesh, and the tips of the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softrig.rig.bones import rest_bones
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.viewer.subjects import Subject


@dataclass(frozen=True, eq=False)
class Joints:
    """The joints that carry flesh, and the tips of the last of them, as nodes of a skeleton that has the tips too."""

    skeleton: Skeleton
    nodes: np.ndarray
    """(j,) of `skeleton`."""
    parents: np.ndarray
    """(j,) places in `nodes`, −1: none."""
    tips: np.ndarray
    """(j,) whether it is a tip: it can be dragged, not turned."""

    def listed(self) -> list[dict[str, Any]]:
        """For the page; `index` is the place in `handles`."""
        names = [self.skeleton.names[node] for node in self.nodes]
        return [
            {"name": name, "parent": int(parent), "index": index, "tip": bool(tip)}
            for index, (name, parent, tip) in enumerate(zip(names, self.parents, self.tips, strict=True))
        ]


def carrying_joints(subject: Subject) -> Joints | None:
    """The joints of a subject's skeleton that carry vertices, and a tip for each that carries no other joint."""
    skeleton = subject.skeleton
    rig = getattr(subject.model, "rig", None) or getattr(getattr(subject, "character", None), "rig", None)
    if skeleton is None or rig is None:
        return None
    bones = rest_bones(rig, skeleton, subject.geometry().rest.astype(np.float64))
    carrying = sorted({bone.node for bone in bones})
    if not carrying:
        return None
    parents = [next((above for above in skeleton.ancestors(node) if above in carrying), -1) for node in carrying]
    tails = {bone.node: bone.tail for bone in bones}
    leaves = [node for node in carrying if node not in parents]
    world = skeleton.rest_world_matrices
    arms = [np.linalg.solve(world[node], np.append(tails[node], 1.0))[:3] for node in leaves]
    count = len(skeleton)
    extended = Skeleton(
        (*skeleton.names, *(f"{skeleton.names[node]} tip" for node in leaves)),
        np.concatenate([skeleton.parents, np.array(leaves, np.int32)]),
        np.concatenate([skeleton.translations, np.array(arms).reshape(-1, 3)]),
        np.concatenate([skeleton.rotations, np.tile([0.0, 0.0, 0.0, 1.0], (len(leaves), 1))]),
        np.concatenate([skeleton.scales, np.ones((len(leaves), 3))]),
        skeleton.fixed_matrices,
    )
    nodes = np.array([*carrying, *range(count, count + len(leaves))])
    above = [carrying.index(parent) if parent >= 0 else -1 for parent in parents]
    above += [carrying.index(node) for node in leaves]
    return Joints(extended, nodes, np.array(above), np.arange(len(nodes)) >= len(carrying))


def root_places(parameters: Parameters) -> tuple[int, int] | None:
    """Where a rig without joints has its root's translation and, or −1, its rotation; None: it has no root."""
    for index, name in enumerate(parameters.names):
        if name.lower() == "root.translation.x":
            turn = index + 3
            return index, turn if turn in parameters.quaternions else -1
    return None


def top_nodes(skeleton: Skeleton) -> list[int]:
    """The uppermost nodes that have parameters of their own."""
    fixed = skeleton.fixed_matrices
    return [
        node
        for node in range(len(skeleton))
        if node not in fixed and all(above in fixed for above in skeleton.ancestors(node))
    ]
