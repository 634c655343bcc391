"""Animations into a GLB: their channels, and a whole new motion added to a file that stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.io.glb_builder import GlbBuilder
from softrig.io.gltf_nodes import NodeTree, read_nodes, unique_names
from softrig.io.json_fields import JsonObject
from softrig.rig.character import Character
from softrig.rig.skeleton import NODE_PARAMETERS

PATHS = (("translation", 0, 3), ("rotation", 3, 4), ("scale", 7, 3))
"""Of a node: what can be animated, where it begins among its parameters, how many numbers it has."""


class AnimationChannels:
    """The channels of one animation; equal key times share an accessor."""

    def __init__(self, builder: GlbBuilder) -> None:
        self.builder = builder
        self.channels: list[dict[str, Any]] = []
        self.samplers: list[dict[str, Any]] = []
        self._times: dict[bytes, int] = {}

    def add(self, node: int, path: str, times: np.ndarray, values: np.ndarray) -> None:
        """Move one property of a node by `values` (f, width) at `times` (f,), linearly."""
        keys = times.astype(np.float32)
        if keys.tobytes() not in self._times:
            self._times[keys.tobytes()] = self.builder.accessor(keys, bounds=True)
        sampler = {"input": self._times[keys.tobytes()], "output": self.builder.accessor(values.astype(np.float32))}
        self.samplers.append({**sampler, "interpolation": "LINEAR"})
        self.channels.append({"sampler": len(self.samplers) - 1, "target": {"node": node, "path": path}})

    def finish(self, name: str) -> None:
        """Write the animation, unless it moves nothing."""
        if self.channels:
            self.builder.add("animations", {"name": name, "channels": self.channels, "samplers": self.samplers})


def with_animation(
    source: bytes, character: Character, name: str, times: np.ndarray, poses: np.ndarray, *, scale: float = 1.0
) -> bytes:
    """The bytes of `source`, a GLB, with one animation more: poses (f, P) of its rig at `times` (f,), seconds.

    `character`: as read from `source`, with `scale` metres a unit. All else in the file stays; a node that had a matrix
    and is animated now has what the matrix was made of, as the format demands.
    """
    poses = character.rig.parameters.normalised(character.rig.parameters.checked(poses))
    if poses.shape[0] != len(times) or len(times) == 0:
        raise InputError(f"animation: {len(times)} times for {len(poses)} poses")
    builder = GlbBuilder.opened(source, character.source or "input.glb")
    root = builder.document().root
    tree = read_nodes(root)
    shown, kept = _moving_nodes(root, tree)
    skeleton = character.skeleton
    if skeleton is None or skeleton.names != unique_names(tree.entries[n].name(f"node_{n}") for n in kept):
        raise InputError(f"animation: '{character.name}' does not have the nodes of the file")
    channels = AnimationChannels(builder)
    rest = character.rig.parameters.rest
    for slot, node in enumerate(kept):
        for path, offset, width in () if slot in skeleton.fixed_matrices else PATHS:
            first = character.skeleton_start + NODE_PARAMETERS * slot + offset
            values = poses[:, first : first + width]
            if (values != rest[first : first + width]).any():
                _without_matrix(builder.json["nodes"][node], rest[first - offset :], scale)
                channels.add(node, path, times, values / scale if path == "translation" else values)
    start = 0
    for node in shown:
        mesh = builder.json["meshes"][builder.json["nodes"][node]["mesh"]]
        count = len(mesh["primitives"][0].get("targets", []))
        values = poses[:, start : start + count]
        if count and (values != rest[start : start + count]).any():
            channels.add(node, "weights", times, values.ravel())
        start += count
    if not channels.channels:  # a motion that stands still is one, too
        still = next(slot for slot in range(len(kept)) if slot not in skeleton.fixed_matrices)
        first = character.skeleton_start + NODE_PARAMETERS * still
        _without_matrix(builder.json["nodes"][kept[still]], rest[first:], scale)
        channels.add(kept[still], "translation", times, poses[:, first : first + 3] / scale)
    channels.finish(name)
    return builder.content()


def _moving_nodes(root: JsonObject, tree: NodeTree) -> tuple[list[int], list[int]]:
    """Nodes that show a mesh, and with them all that move a vertex, in the order of the character's skeleton."""
    shown = [node for node in tree.order if tree.in_scene[node] and tree.entries[node].has("mesh")]
    skins = sorted({tree.entries[node].index("skin") for node in shown} - {-1})
    joints = [joint for skin in skins for joint in root.at("skins", skin).wholes("joints")]
    return shown, tree.with_ancestors([*shown, *joints])


def _without_matrix(node: dict[str, Any], parameters: np.ndarray, scale: float) -> None:
    """Say a node's place as translation, rotation and scale: only these can be animated."""
    if node.pop("matrix", None) is not None:
        node["translation"] = (parameters[:3] / scale).tolist()
        node["rotation"] = parameters[3:7].tolist()
        node["scale"] = parameters[7:10].tolist()
