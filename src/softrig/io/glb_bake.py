"""A simulated clip back into its GLB: the input's own bytes, plus morph targets and one more animation.

Viewers show rest + morphs, then skin. What the simulation adds to the skinned pose is therefore pulled back through
each vertex' blended skin matrix and compressed into morph targets (`softrig.io.morphs`); the new animation
holds the skeleton channels of the chosen clip (the same accessors) and the weights of the targets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.files import write_bytes
from softrig.io.accessors import AccessorReader
from softrig.io.glb_builder import GlbBuilder
from softrig.io.glb_targets import MeshGrowth, clip_channels, grow_mesh
from softrig.io.morphs import Morphs, compress, fit_targets, one_target_a_frame, pull_back, stretches
from softrig.io.vertex_normals import turned, vertex_normals
from softrig.rig.bones import skin_of
from softrig.rig.character import Character, Part
from softrig.rig.skinning import LinearBlendSkin

TOLERANCE = 5e-4
"""Metres, on a body whose bounding box has a diagonal of `HUMAN_SIZE`; other sizes in proportion."""
HUMAN_SIZE = 2.0
MOST_TARGETS = 96
_NEGLIGIBLE_NORMAL = 2e-3


@dataclass(frozen=True)
class BakeReport:
    """What a bake did."""

    animation: str
    """Name of the new animation."""
    error: float
    """Largest distance between a baked vertex and what the file shows at a frame [m]."""
    tolerance: float
    """What was asked for [m]."""
    targets: dict[int, int]
    """New morph targets of each mesh of the file that has some."""
    bytes_added: int


@dataclass(frozen=True)
class _Bake:
    """A character's simulated frames and how viewers get there."""

    character: Character
    skin: LinearBlendSkin
    parameters: np.ndarray  # (f, P)
    positions: np.ndarray  # (f, n, 3), m
    scale: float  # metres a unit of the file

    def linear(self, frame: int) -> np.ndarray:
        """(n, 3, 3) from displacements at rest [file units] to the world [m]."""
        start = self.character.skeleton_start
        p = self.parameters[frame, start : start + len(self.skin.parameters)]
        return self.scale * self.skin.blended_matrices(p)[:, :, :3]

    def skinned(self, frame: int) -> np.ndarray:
        return self.character.rig.positions(self.parameters[frame])


@dataclass(frozen=True)
class _Group:
    """Meshes that are fitted together; several copies only of a mesh that several nodes show."""

    copies: list[np.ndarray]  # of each copy, the character's vertices
    nodes: dict[int, list[int]]  # mesh → the node of each copy
    ranges: dict[int, dict[int, slice]]  # mesh → primitive → its run of a copy's vertices


def bake_glb(
    source: bytes,
    character: Character,
    clip: str | None,
    times: np.ndarray,
    positions: np.ndarray,
    *,
    name: str | None = None,
    tolerance: float | None = None,
    most_targets: int = MOST_TARGETS,
    per_frame: bool = False,
    quantise: bool = False,
    normals: bool = False,
) -> tuple[bytes, BakeReport]:
    """The bytes of `source`, a GLB, with `positions` (frames, n, 3) [m] at `times` (frames,) [s] as a new animation.

    character: as read from `source`; clip: the name of one of its clips, None for the rest pose. tolerance [m]
    defaults to 0.5 mm on a human-sized body, in proportion for others. per_frame makes one morph target a frame
    instead of compressing. quantise stores targets in 16 bits (KHR_mesh_quantization). normals adds fitted
    normals to the targets. The input's bytes of meshes, materials, images and animations stay as they are.
    """
    builder = GlbBuilder.opened(source, character.source or "input.glb")
    animation = _unused_name(builder, name or f"{clip or 'rest'}.soft")
    channels = clip_channels(builder, character, clip)
    bake = _prepared(character, clip, times, positions, channels.reader)
    tolerance = TOLERANCE * character.size / HUMAN_SIZE if tolerance is None else tolerance
    moves, gains = _pulled_back(bake)
    changes = _normal_changes(bake, _rest_normals(bake, channels.reader)) if normals else None
    grown: dict[int, int] = {}
    errors = [0.0]
    for group in _groups(character):
        stacked = _stacked(moves, group)
        if per_frame:
            morphs = one_target_a_frame(stacked, quantise=quantise)
        else:
            gain = _stacked(gains, group)
            morphs = compress(stacked, tolerance=tolerance, most_targets=most_targets, gains=gain, quantise=quantise)
        errors.append(_largest_error(bake, morphs, group))
        fitted = None
        if changes is not None and morphs.count:
            fitted = fit_targets(morphs.weights, _stacked(changes, group), negligible=_NEGLIGIBLE_NORMAL)
        for growth in _growths(group, morphs, fitted, animation):
            grow_mesh(builder, growth, channels, np.asarray(times, np.float64))
            grown[growth.mesh] = growth.morphs.count
    channels.finish(builder, animation)
    content = builder.content()
    return content, BakeReport(animation, max(errors), tolerance, grown, len(content) - len(source))


def write_baked_glb(
    path: str | os.PathLike[str],
    source: bytes,
    character: Character,
    clip: str | None,
    times: np.ndarray,
    positions: np.ndarray,
    **options: Any,
) -> BakeReport:
    """`bake_glb` into a file; `options` are its keywords."""
    content, report = bake_glb(source, character, clip, times, positions, **options)
    write_bytes(path, content)
    return report


def _prepared(
    character: Character, clip: str | None, times: np.ndarray, positions: np.ndarray, reader: AccessorReader
) -> _Bake:
    times, positions = np.asarray(times, np.float64), np.asarray(positions)
    count = character.rig.vertex_count
    if positions.ndim != 3 or positions.shape[1:] != (count, 3) or len(positions) == 0:
        raise InputError(f"bake: positions of shape {positions.shape} are not (frames, {count}, 3)")
    if times.shape != (len(positions),):
        raise InputError(f"bake: {times.size} times for {len(positions)} frames")
    require_finite(times, "bake: times")
    require_finite(positions, "bake: positions by frame")
    late = np.flatnonzero(np.diff(times.astype(np.float32), prepend=np.float32(-1.0)) <= 0.0)
    if late.size or times[0] < 0.0:
        raise InputError("bake: times must increase from 0 s on; frames", late if late.size else [0])
    skin = skin_of(character.rig)
    if not isinstance(skin, LinearBlendSkin):
        raise InputError(f"bake: '{character.name}' is not moved by linear blend skinning, all that a GLB can hold")
    rest = character.rig.parameters.rest
    parameters = np.tile(rest, (len(times), 1)) if clip is None else character.clip(clip).sample(times)
    return _Bake(character, skin, parameters, positions, _scale_of(character, skin, reader))


def _scale_of(character: Character, skin: LinearBlendSkin, reader: AccessorReader) -> float:
    """Metres a unit of the file, and proof that the character is the file's."""
    own = []
    for index, part in enumerate(character.parts):
        found = _attribute(reader, part, index, "POSITION")
        if found is None or len(found) != part.vertices.stop - part.vertices.start:
            raise InputError("bake: parts that are not in this file, or not with as many vertices", [index])
        own.append(found)
    ours = [skin.rest_positions[part.vertices] for part in character.parts]
    squares = sum(float(np.sum(o * o)) for o in own)
    scale = sum(float(np.sum(a * b)) for a, b in zip(ours, own, strict=True)) / max(squares, 1e-300)
    reach = max(float(np.abs(a).max()) for a in ours)
    off = [i for i, (a, b) in enumerate(zip(ours, own, strict=True)) if np.abs(a - scale * b).max() > 1e-5 * reach]
    if off or not scale > 0.0:
        raise InputError("bake: parts whose rest positions are not those of the file", off)
    return scale


def _attribute(reader: AccessorReader, part: Part, index: int, name: str) -> np.ndarray | None:
    """(n, 3) an attribute of the primitive that a part was read from; None where it has none."""
    missing = [key for key in ("mesh", "node", "primitive") if key not in part.source]
    if missing:
        raise InputError(f"bake: part '{part.name}' does not say which {missing[0]} of the file it is", [index])
    primitive = reader.root.at("meshes", part.source["mesh"]).at("primitives", part.source["primitive"])
    attributes = primitive.child("attributes")
    if attributes is None or not attributes.has(name):
        return None
    return reader.numbers(attributes.whole(name), ("VEC3",))


def _pulled_back(bake: _Bake) -> tuple[np.ndarray, np.ndarray]:
    """Displacements at rest (f, n, 3) [file units] and how much they grow in the world (f, n) [m a unit]."""
    moves = np.empty(bake.positions.shape, np.float32)
    gains = np.empty(bake.positions.shape[:2], np.float32)
    # Rounding of float32 input is no motion: below this a vertex counts as still, and its target stays empty.
    still = 1e-6 * bake.character.size
    for frame, wanted in enumerate(bake.positions):
        offsets = wanted - bake.skinned(frame)
        offsets[np.abs(offsets).max(axis=1) < still] = 0.0
        linear = bake.linear(frame)
        moves[frame] = pull_back(linear, offsets)
        gains[frame] = stretches(linear)
    return moves, gains


def _largest_error(bake: _Bake, morphs: Morphs, group: _Group) -> float:
    """The largest distance [m] between what viewers show of a group and what was asked."""
    worst = 0.0
    targets = morphs.targets.reshape(morphs.count, 3 * morphs.targets.shape[1])
    weights = np.split(morphs.weights, len(group.copies))
    for frame, wanted in enumerate(bake.positions):
        linear, skinned = bake.linear(frame), bake.skinned(frame)
        for copy, vertices in enumerate(group.copies):
            moves = (weights[copy][frame] @ targets).reshape(-1, 3)
            shown = skinned[vertices] + np.einsum("nij,nj->ni", linear[vertices], moves)
            worst = max(worst, float(np.linalg.norm(shown - wanted[vertices], axis=1).max(initial=0.0)))
    return worst


def _rest_normals(bake: _Bake, reader: AccessorReader) -> np.ndarray:
    """(n, 3) unit normals of the file; smooth ones where it has none (they go unused)."""
    character = bake.character
    normals = vertex_normals(bake.skin.rest_positions, character.triangles, character.welded.unique_of_vertex)
    for index, part in enumerate(character.parts):
        own = _attribute(reader, part, index, "NORMAL")
        if own is not None:
            normals[part.vertices] = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-30)
    return normals


def _normal_changes(bake: _Bake, own: np.ndarray) -> np.ndarray:
    """(f, n, 3) float32: what to add to unit normals at rest so that they turn as the surface does.

    The file's own normals (hard edges and all) are not replaced: the turn from the skinned to the baked surface is
    applied to them.
    """
    character = bake.character
    triangles, weld = character.triangles, character.welded.unique_of_vertex
    changes = np.empty(bake.positions.shape, np.float32)
    for frame, wanted in enumerate(bake.positions):
        linear = bake.linear(frame)
        skinned = vertex_normals(bake.skinned(frame), triangles, weld)
        baked = vertex_normals(np.asarray(wanted, np.float64), triangles, weld)
        posed = np.einsum("nij,nj->ni", linear, own)
        back = pull_back(linear, turned(posed, skinned, baked))
        changes[frame] = back / np.maximum(np.linalg.norm(back, axis=1, keepdims=True), 1e-30) - own
    return changes


def _groups(character: Character) -> list[_Group]:
    """Meshes shown once are fitted together, so that where they meet they move alike; others one by one."""
    found: dict[int, dict[int, dict[int, slice]]] = {}
    for part in character.parts:
        mesh, node, primitive = (int(part.source[key]) for key in ("mesh", "node", "primitive"))
        found.setdefault(mesh, {}).setdefault(node, {})[primitive] = part.vertices
    once = {mesh: nodes for mesh, nodes in found.items() if len(nodes) == 1}
    several = [{mesh: nodes} for mesh, nodes in found.items() if len(nodes) > 1]
    return [_group(meshes) for meshes in ([once] if once else []) + several]


def _group(meshes: dict[int, dict[int, dict[int, slice]]]) -> _Group:
    copies = [
        np.concatenate(
            [
                np.arange(vertices.start, vertices.stop)
                for nodes in meshes.values()
                for _, vertices in sorted(list(nodes.values())[copy].items())
            ]
        )
        for copy in range(len(next(iter(meshes.values()))))
    ]
    ranges: dict[int, dict[int, slice]] = {}
    start = 0
    for mesh, nodes in meshes.items():
        ranges[mesh] = {}
        for primitive, vertices in sorted(next(iter(nodes.values())).items()):
            ranges[mesh][primitive] = slice(start, start + vertices.stop - vertices.start)
            start = ranges[mesh][primitive].stop
    return _Group(copies, {mesh: list(nodes) for mesh, nodes in meshes.items()}, ranges)


def _growths(group: _Group, morphs: Morphs, normals: np.ndarray | None, label: str) -> Iterator[MeshGrowth]:
    """For each mesh of a group the targets that move it, if any."""
    weights = np.split(morphs.weights, len(group.copies))
    for mesh, ranges in group.ranges.items():
        first, last = min(r.start for r in ranges.values()), max(r.stop for r in ranges.values())
        used = np.flatnonzero(morphs.targets[:, first:last].any(axis=(1, 2)))
        if used.size:
            yield MeshGrowth(
                mesh,
                morphs.part(used),
                None if normals is None else normals[used],
                {node: weights[copy][:, used] for copy, node in enumerate(group.nodes[mesh])},
                ranges,
                label,
            )


def _stacked(values: np.ndarray, group: _Group) -> np.ndarray:
    """(copies · f, n, ...) the frames (f, ...) of all copies of a group, one copy behind the other."""
    return np.concatenate([values[:, vertices] for vertices in group.copies])


def _unused_name(builder: GlbBuilder, wanted: str) -> str:
    taken = {entry.get("name") for entry in builder.json.get("animations", [])}
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}.{number}"
    return name
