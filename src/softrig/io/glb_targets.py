"""Morph targets and their weights into an existing glTF: meshes grow, their old animations are padded to match."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.io.accessors import AccessorReader
from softrig.io.glb_builder import GlbBuilder
from softrig.io.morphs import Morphs
from softrig.rig.character import Character
from softrig.rig.clip import Interpolation, Track

_INTERPOLATION: dict[str, Interpolation] = {"STEP": "step", "LINEAR": "linear", "CUBICSPLINE": "cubic"}
_POINTER = re.compile(r"/(nodes|meshes)/(\d+)/weights")
_SHORT = 32767.0


@dataclass(frozen=True)
class MeshGrowth:
    """New targets of one mesh of the file."""

    mesh: int
    morphs: Morphs
    normals: np.ndarray | None
    """(k, n, 3) or None."""
    weights: dict[int, np.ndarray]
    """node → (frames, k)"""
    ranges: dict[int, slice]
    """primitive → its vertices among the n of the morphs"""
    label: str

    @property
    def normalised(self) -> np.ndarray:
        """(k,) whether the codes of a quantised target stand for −1 … 1; else for whole units of the file."""
        assert self.morphs.scales is not None
        return self.morphs.scales <= 1.0

    def shown_weights(self, node: int) -> np.ndarray:
        """(frames, k) the weights to store: a quantised target's scale goes into them, and they stay within [0, 1]."""
        if self.morphs.scales is None:
            return self.weights[node]
        return self.weights[node] * np.where(self.normalised, self.morphs.scales, self.morphs.scales / _SHORT)


@dataclass
class NewAnimation:
    """Channels of the chosen clip, to be joined by weights."""

    reader: AccessorReader
    channels: list[dict[str, Any]] = field(default_factory=list)
    """Each with its sampler itself instead of the sampler's index."""

    def taken_weights(self, node: int, count: int, times: np.ndarray) -> np.ndarray | None:
        """(frames, count) the clip's own weights of a node at `times`; its channel goes, for a node has only one."""
        for channel in self.channels:
            if channel["target"].get("node") == node and channel["target"].get("path") == "weights":
                self.channels.remove(channel)
                keys, values, interpolation = _keys(self.reader, channel["sampler"], count)
                return Track(0, count, keys, values, interpolation).sample(times)
        return None

    def add_weights(self, node: int, key_accessor: int, value_accessor: int) -> None:
        """Animate the weights of a node, linearly."""
        sampler = {"input": key_accessor, "output": value_accessor, "interpolation": "LINEAR"}
        self.channels.append({"sampler": sampler, "target": {"node": node, "path": "weights"}})

    def finish(self, builder: GlbBuilder, name: str) -> None:
        """Write the animation, unless it moves nothing."""
        samplers: list[dict[str, Any]] = []
        channels = []
        for channel in self.channels:
            if channel["sampler"] not in samplers:
                samplers.append(channel["sampler"])
            channels.append({**channel, "sampler": samplers.index(channel["sampler"])})
        if channels:
            builder.add("animations", {"name": name, "channels": channels, "samplers": samplers})


def clip_channels(builder: GlbBuilder, character: Character, clip: str | None) -> NewAnimation:
    """The channels of the animation that `clip` was read from; none for None."""
    reader = AccessorReader(builder.document())
    if clip is None:
        return NewAnimation(reader)
    source = builder.json["animations"][animation_index(reader, character, clip)]
    channels = copy.deepcopy(source["channels"])
    for channel in channels:
        channel["sampler"] = copy.deepcopy(source["samplers"][channel["sampler"]])
    return NewAnimation(reader, channels)


def animation_index(reader: AccessorReader, character: Character, clip: str) -> int:
    """Which animation of the file a clip of the character is.

    Clips are in the order of the file, but animations that move no vertex are none, and repeated names got "#2".
    """
    names = [entry.name(f"animation_{i}") for i, entry in enumerate(reader.root.children("animations"))]
    wanted = character.clip(clip).name
    start = 0
    for known in character.clips:
        alike = (i for i in range(start, len(names)) if known.name == names[i] or known.name.startswith(names[i] + "#"))
        found = next(alike, None)
        if found is None:
            break
        if known.name == wanted:
            return found
        start = found + 1
    raise InputError(f"bake: the file has no animation '{clip}'")


def grow_mesh(builder: GlbBuilder, growth: MeshGrowth, animation: NewAnimation, times: np.ndarray) -> None:
    """Append targets to all primitives of a mesh, pad everything that counts them, animate the weights."""
    mesh = builder.json["meshes"][growth.mesh]
    old = len(mesh["primitives"][0].get("targets", []))
    _pad_animations(builder, animation.reader, growth.mesh, old, growth.morphs.count)
    for number, primitive in enumerate(mesh["primitives"]):
        _grow_primitive(builder, primitive, growth, growth.ranges.get(number))
    rest = {node: _rest_weights(builder.json, node, mesh, old) for node in growth.weights}
    added = [0.0] * growth.morphs.count
    mesh["weights"] = [*(mesh.get("weights") or [0.0] * old), *added]
    for node in builder.json["nodes"]:
        if node.get("mesh") == growth.mesh and node.get("weights"):
            node["weights"] = [*node["weights"], *added]
    _extend_names(mesh, growth, old)
    keys = builder.accessor(times.astype(np.float32), bounds=True)
    for node in growth.weights:
        before = animation.taken_weights(node, old, times) if old else None
        if before is None:
            before = np.tile(rest[node], (len(times), 1))
        values = np.hstack([before, growth.shown_weights(node)]).astype(np.float32)
        animation.add_weights(node, keys, builder.accessor(values.ravel()))


def _grow_primitive(builder: GlbBuilder, primitive: dict[str, Any], growth: MeshGrowth, vertices: slice | None) -> None:
    """Old and new targets get the same attributes: readers take a missing one for the base's own values."""
    attributes = primitive["attributes"]
    count = builder.json["accessors"][next(iter(attributes.values()))]["count"]
    if "POSITION" in attributes:
        count = builder.json["accessors"][attributes["POSITION"]]["count"]
    if vertices is not None and vertices.stop - vertices.start != count:
        raise InputError(f"bake: a primitive of mesh {growth.mesh} has {count} vertices, the character other ones")
    old = primitive.get("targets", [])
    kinds = {name: builder.json["accessors"][index]["type"] for target in old for name, index in target.items()}
    if "POSITION" in attributes or not kinds:
        kinds["POSITION"] = "VEC3"
    if growth.normals is not None and "NORMAL" in attributes:
        kinds["NORMAL"] = "VEC3"
    new = []
    for number in range(growth.morphs.count):
        target = {}
        if vertices is not None:
            target["POSITION"] = _position_accessor(builder, growth, number, vertices)
            if growth.normals is not None and "NORMAL" in kinds:
                target["NORMAL"] = builder.morph_accessor(growth.normals[number, vertices])
        new.append(target)
    for target in [*old, *new]:
        target |= {name: builder.zeros(kind, count) for name, kind in kinds.items() if name not in target}
    primitive["targets"] = [*old, *new]


def _position_accessor(builder: GlbBuilder, growth: MeshGrowth, number: int, vertices: slice) -> int:
    if growth.morphs.codes is None:
        return builder.morph_accessor(growth.morphs.targets[number, vertices])
    builder.require("KHR_mesh_quantization")
    codes = growth.morphs.codes[number, vertices]
    return builder.morph_accessor(codes, normalised=bool(growth.normalised[number]))


def _rest_weights(document: dict[str, Any], node: int, mesh: dict[str, Any], count: int) -> np.ndarray:
    """(count,) the weights a node has when nothing animates them."""
    weights = document["nodes"][node].get("weights") or mesh.get("weights") or [0.0] * count
    return np.asarray(weights, np.float64)


def _extend_names(mesh: dict[str, Any], growth: MeshGrowth, old: int) -> None:
    """`extras.targetNames`, of the mesh and of primitives that have their own; other extras stay."""
    added = [f"{growth.label}.{number:03d}" for number in range(growth.morphs.count)]
    for owner in mesh["primitives"]:
        extras = owner.get("extras")
        if isinstance(extras, dict) and isinstance(extras.get("targetNames"), list):
            extras["targetNames"] = [*extras["targetNames"], *added]
    extras = mesh.setdefault("extras", {})
    if isinstance(extras, dict):
        known = extras.get("targetNames", [f"target_{i}" for i in range(old)])
        if isinstance(known, list) and len(known) == old:
            extras["targetNames"] = [*known, *added]


def _pad_animations(builder: GlbBuilder, reader: AccessorReader, mesh: int, old: int, added: int) -> None:
    """Weights that the file animates already get zeros for the new targets."""
    if not old:
        return
    for animation in builder.json.get("animations", []):
        padded: dict[int, int] = {}
        for channel in animation["channels"]:
            if _animated_mesh(builder.json, channel) != mesh:
                continue
            sampler = channel["sampler"]
            if sampler not in padded:
                padded[sampler] = _padded_sampler(builder, reader, animation, sampler, mesh, old, added)
            channel["sampler"] = padded[sampler]


def _padded_sampler(
    builder: GlbBuilder,
    reader: AccessorReader,
    animation: dict[str, Any],
    index: int,
    mesh: int,
    old: int,
    added: int,
) -> int:
    """The sampler's index after padding: the same one, or a new one where other channels share it."""
    sampler = animation["samplers"][index]
    _, values, _ = _keys(reader, sampler, old)
    wide = np.hstack([values, np.zeros((len(values), added))])
    accessor = builder.accessor(wide.astype(np.float32).ravel())
    users = {_animated_mesh(builder.json, c) for c in animation["channels"] if c["sampler"] == index}
    if users == {mesh}:
        sampler["output"] = accessor
        return index
    animation["samplers"].append({**sampler, "output": accessor})
    return len(animation["samplers"]) - 1


def _animated_mesh(document: dict[str, Any], channel: dict[str, Any]) -> int | None:
    """The mesh whose weights a channel animates, by its path or by a pointer (KHR_animation_pointer); else None."""
    target = channel["target"]
    if target.get("path") == "weights" and "node" in target:
        return document["nodes"][target["node"]].get("mesh")
    pointer = target.get("extensions", {}).get("KHR_animation_pointer", {}).get("pointer", "")
    match = _POINTER.fullmatch(pointer)
    if match is None:
        return None
    return int(match[2]) if match[1] == "meshes" else document["nodes"][int(match[2])].get("mesh")


def _keys(reader: AccessorReader, sampler: dict[str, Any], width: int) -> tuple[np.ndarray, np.ndarray, Interpolation]:
    """Times (f,), values (f, width) or for cubic ones (3f, width), and the interpolation of a sampler of weights."""
    interpolation = _INTERPOLATION[sampler.get("interpolation", "LINEAR")]
    times = reader.numbers(sampler["input"], ("SCALAR",))[:, 0]
    rows = len(times) * (3 if interpolation == "cubic" else 1)
    values = reader.numbers(sampler["output"], ("SCALAR",), count=rows * width).reshape(rows, width)
    return times, values, interpolation
