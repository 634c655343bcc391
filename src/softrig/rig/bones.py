"""Bones as line segments in rest pose: what the volume mesher fixes and regions are grown from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softrig.rig.features import bounding_size
from softrig.rig.protocol import Rig
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import Skin

_SHORTEST = 1e-3
"""Segments shorter than this times the size are left out."""
_LEAF_REACH = 1.5
"""A leaf's invented end lies this many times as far as the centre of what it carries: 2 would be its very end."""


class Bone(NamedTuple):
    """One segment; a joint with several children has several."""

    name: str
    head: np.ndarray
    """(3,) metres."""
    tail: np.ndarray
    """(3,) metres."""
    node: int


def skin_of(rig: Rig) -> Skin | None:
    """The skin in a rig: the rig itself or the last skin of a chain; None if it has none."""
    if isinstance(rig, Skin):
        return rig
    found: Skin | None = None
    for stage in getattr(rig, "stages", ()):
        found = skin_of(stage) or found
    return found


def carrying_joint(rig: Rig, vertex: int) -> str:
    """The name of the joint that carries most of a surface vertex; "" where no skin does."""
    skin = skin_of(rig)
    if skin is None or not 0 <= vertex < skin.binding.table.shape[0]:
        return ""
    row = skin.binding.table[[vertex]].toarray()[0]
    return skin.skeleton.names[skin.binding.bones[int(np.argmax(row))]] if row.any() else ""


def rest_bones(rig: Rig, skeleton: Skeleton | None, rest_positions: np.ndarray) -> list[Bone]:
    """The segments of all bones that carry vertices; joints that carry nothing (helpers) only end segments.

    A leaf ends beyond the centre of the vertices it carries. Nodes that merely hold a rigid mesh give no bone.
    """
    skin = skin_of(rig)
    if skin is None or skeleton is None:
        return []
    shortest = _SHORTEST * bounding_size(rest_positions)
    heads = skeleton.rest_world_matrices[:, :3, 3]
    is_bone = np.zeros(len(skeleton), dtype=bool)
    is_bone[skin.bones] = True
    sums, centres = _carried(skin, len(skeleton), rest_positions)
    bones: list[Bone] = []
    for node in np.flatnonzero(sums > 0.0).tolist():
        ends = [heads[below] for below in _joints_below(skeleton, node, is_bone)]
        if not any(np.linalg.norm(end - heads[node]) > shortest for end in ends):
            ends = [heads[node] + _LEAF_REACH * (centres[node] - heads[node])]
        long_enough = [end for end in ends if np.linalg.norm(end - heads[node]) > shortest]
        bones.extend(Bone(skeleton.names[node], heads[node].copy(), end.copy(), node) for end in long_enough)
    return bones


def carried_by_nodes(skin: Skin) -> np.ndarray:
    """(j,) sums of skin weights of the skeleton's nodes, as bones: several skins may share one."""
    sums = np.zeros(len(skin.skeleton))
    np.add.at(sums, skin.bones, np.asarray(skin.binding.table[:, : len(skin.bones)].sum(axis=0)).ravel())
    return sums


def _carried(skin: Skin, nodes: int, rest_positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each node the sum of skin weights (j,) and the centre (j, 3) of the vertices it carries as a bone."""
    moments = np.asarray(skin.binding.table[:, : len(skin.bones)].T @ rest_positions)
    sums, centres = carried_by_nodes(skin), np.zeros((nodes, 3))
    np.add.at(centres, skin.bones, moments)
    return sums, centres / np.where(sums > 0.0, sums, 1.0)[:, None]


def _joints_below(skeleton: Skeleton, node: int, is_bone: np.ndarray) -> list[int]:
    """The nearest bones under `node`, through plain nodes."""
    found, open_nodes = [], list(skeleton.children[node])
    while open_nodes:
        below = open_nodes.pop()
        if is_bone[below]:
            found.append(below)
        else:
            open_nodes.extend(skeleton.children[below])
    return sorted(found)
