"""A character as a new GLB: meshes, colours, painted maps, skin, morph targets and clips.

A GLB knows skeletons, linear blend skinning and morph targets. Blend shapes before the skin are written as they are;
any other deformer (a bend, a wire, a function) is written as what it does in the clips, compressed into morph targets.
The poses of corrective shapes go with their morph targets (`softrig.io.gltf_corrections`), but not through such
compression, which mixes shapes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.io.glb_animation import PATHS, AnimationChannels
from softrig.io.glb_bake import HUMAN_SIZE, MOST_TARGETS, TOLERANCE
from softrig.io.glb_builder import INDICES, VERTICES, GlbBuilder
from softrig.io.gltf_corrections import correction_table
from softrig.io.morphs import compress, fit_targets
from softrig.io.vertex_normals import vertex_normals
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.skeleton import NODE_PARAMETERS, Skeleton
from softrig.rig.skinning import LinearBlendSkin

FPS = 60.0
_NEGLIGIBLE_NORMAL = 2e-3
_TOP = {"roughnessFactor": 0.8, "metallicFactor": 0.0}


@dataclass(frozen=True)
class _Shapes:
    """What morphs before the skin: base (n, 3), targets and normals (k, n, 3), weights by clip."""

    base: np.ndarray
    names: tuple[str, ...]
    targets: np.ndarray
    normals: np.ndarray
    rest_weights: np.ndarray
    keys: dict[str, tuple[np.ndarray, np.ndarray]]
    """clip name → times (f,) and weights (f, k)"""


def write_character_glb(
    character: Character, path: str | os.PathLike[str], *, fps: float = FPS, tolerance: float | None = None
) -> None:
    """Write the character with its clips as a GLB.

    fps [1/s] is the rate at which curves that are not linear are sampled; tolerance [m] the largest error of deformers
    that become morph targets, by default 0.5 mm on a human-sized body, in proportion for others.
    """
    ending = Path(path).suffix
    if ending.lower() != ".glb":
        raise InputError(f"{path}: a character is written as .glb, not as {ending or 'a file without ending'}")
    write_bytes(path, character_glb(character, fps=fps, tolerance=tolerance))


def character_glb(character: Character, *, fps: float = FPS, tolerance: float | None = None) -> bytes:
    """The bytes that `write_character_glb` writes."""
    builder = GlbBuilder()
    stages = character.rig.stages if isinstance(character.rig, RigChain) else (character.rig,)
    skin = stages[-1] if isinstance(stages[-1], LinearBlendSkin) else None
    before = stages[:-1] if skin is not None else stages
    shapes = _shapes(character, before, skin, fps, tolerance)
    joints = _add_skeleton(builder, skin) if skin is not None else None
    builder.add("materials", {"name": character.name, "pbrMetallicRoughness": dict(_TOP)})
    meshes = _add_meshes(builder, character, shapes, skin, joints)
    for clip in character.clips:
        channels = AnimationChannels(builder)
        if skin is not None:
            _add_skeleton_channels(channels, replace(clip, looping=False), character, skin.skeleton, fps)
        if clip.name in shapes.keys:
            times, weights = shapes.keys[clip.name]
            for node, used in meshes.items():
                if used.size:
                    channels.add(node, "weights", times, weights[:, used].ravel())
        channels.finish(clip.name)
    skeleton_roots = [] if skin is None else np.flatnonzero(skin.skeleton.parents < 0).tolist()
    builder.add("scenes", {"nodes": [*skeleton_roots, *meshes]})
    builder.json["scene"] = 0
    return builder.content()


def _shapes(
    character: Character,
    before: tuple[Any, ...],
    skin: LinearBlendSkin | None,
    fps: float,
    tolerance: float | None,
) -> _Shapes:
    if not before:
        assert skin is not None
        nothing = np.zeros((0, len(skin.rest_positions), 3))
        return _Shapes(skin.rest_positions, (), nothing, nothing, np.zeros(0), {})
    if len(before) == 1 and isinstance(before[0], BlendShapes):
        return _own_shapes(character, before[0], fps)
    return _baked_shapes(character, RigChain(before), skin, fps, tolerance)


def _own_shapes(character: Character, shapes: BlendShapes, fps: float) -> _Shapes:
    base, weld = shapes.rest_positions, character.welded.unique_of_vertex
    normals = vertex_normals(base, character.triangles, weld)
    turned = [vertex_normals(base + target, character.triangles, weld) - normals for target in shapes.targets]
    count = len(shapes.names)
    keys = {}
    for clip in character.clips:
        times = _key_times(clip, 0, count, fps)
        if times is not None:
            keys[clip.name] = times, replace(clip, looping=False).sample(times)[:, :count]
    changes = np.array(turned).reshape(shapes.targets.shape)
    changes[np.abs(changes).max(axis=2) < _NEGLIGIBLE_NORMAL] = 0.0
    return _Shapes(base, shapes.names, shapes.targets, changes, shapes.parameters.rest, keys)


def _baked_shapes(
    character: Character, before: RigChain, skin: LinearBlendSkin | None, fps: float, tolerance: float | None
) -> _Shapes:
    """What the deformers before the skin do in all clips together, as morph targets that the clips share."""
    count = len(before.parameters)
    base = before.positions(before.parameters.rest)
    sampled = {clip.name: replace(clip, looping=False).resample(fps) for clip in character.clips}
    frames = [p for _, values in sampled.values() for p in values]
    moved = np.array([before.positions(p[:count]) for p in frames]).reshape(-1, *base.shape)
    gains = None
    if skin is not None:
        rest = skin.blended_matrices(skin.parameters.rest)[:, :, :3]
        gains = np.tile(np.linalg.norm(rest, 2, axis=(1, 2)), (len(frames), 1))
    nothing = _Shapes(base, (), np.zeros((0, *base.shape)), np.zeros((0, *base.shape)), np.zeros(0), {})
    if not frames:
        return nothing
    tolerance = TOLERANCE * character.size / HUMAN_SIZE if tolerance is None else tolerance
    morphs = compress(moved - base, tolerance=tolerance, most_targets=MOST_TARGETS, gains=gains)
    if morphs.count == 0:
        return nothing
    weld = character.welded.unique_of_vertex
    own = vertex_normals(base, character.triangles, weld)
    changes = np.array([vertex_normals(points, character.triangles, weld) - own for points in moved])
    normals = fit_targets(morphs.weights, changes, negligible=_NEGLIGIBLE_NORMAL)
    lengths = [len(times) for times, _ in sampled.values()]
    pieces = np.split(morphs.weights, np.cumsum(lengths)[:-1])
    keys = {name: (times, piece) for (name, (times, _)), piece in zip(sampled.items(), pieces, strict=True)}
    names = tuple(f"shape.{number:03d}" for number in range(morphs.count))
    return _Shapes(base, names, morphs.targets, normals, np.zeros(morphs.count), keys)


def _add_skeleton(builder: GlbBuilder, skin: LinearBlendSkin) -> dict[str, Any]:
    """Nodes (the skeleton's come first, in its order) and the skin; returns the skin's entry."""
    skeleton = skin.skeleton
    for index, name in enumerate(skeleton.names):
        node: dict[str, Any] = {"name": name, **_local(skeleton, index)}
        if skeleton.children[index]:
            node["children"] = list(skeleton.children[index])
        builder.add("nodes", node)
    joints: list[int] = []
    for bone in skin.binding.bones.tolist():
        if bone in joints:
            # A skin names a joint once: the second bone of a node gets a child that lies on it.
            child = builder.add("nodes", {"name": f"{skeleton.names[bone]}.second"})
            builder.json["nodes"][bone].setdefault("children", []).append(child)
            joints.append(child)
        else:
            joints.append(bone)
    matrices = skin.binding.inverse_binds.copy()
    matrices[:, 3] = [0.0, 0.0, 0.0, 1.0]
    entry = {"joints": joints, "inverseBindMatrices": builder.accessor(matrices)}
    builder.add("skins", entry)
    return entry


def _local(skeleton: Skeleton, node: int) -> dict[str, list[float]]:
    """The node's transform; what is at its default is left out."""
    if node in skeleton.fixed_matrices:
        return {"matrix": np.asarray(skeleton.fixed_matrices[node], float).T.ravel().tolist()}
    rest = skeleton.parameters.normalised(skeleton.parameters.rest)[NODE_PARAMETERS * node :]
    defaults = {"translation": [0.0] * 3, "rotation": [0.0, 0.0, 0.0, 1.0], "scale": [1.0] * 3}
    values = {path: rest[start : start + width].tolist() for path, start, width in PATHS}
    return {path: value for path, value in values.items() if value != defaults[path]}


def _add_meshes(
    builder: GlbBuilder,
    character: Character,
    shapes: _Shapes,
    skin: LinearBlendSkin | None,
    joints: dict[str, Any] | None,
) -> dict[int, np.ndarray]:
    """One mesh and node a part; returns node → the targets (indices) that the part has."""
    normals = vertex_normals(shapes.base, character.triangles, character.welded.unique_of_vertex)
    influences = None if skin is None or joints is None else _influences(skin, len(joints["joints"]))
    nodes: dict[int, np.ndarray] = {}
    for index, part in enumerate(_parts(character)):
        here = part.vertices
        corners = character.triangles[part.triangles] - here.start
        if ((corners < 0) | (corners >= here.stop - here.start)).any():
            raise InputError(f"part '{part.name}' has triangles on vertices of other parts", [index])
        attributes = {
            "POSITION": builder.accessor(shapes.base[here], bounds=True, target=VERTICES),
            "NORMAL": builder.accessor(normals[here], target=VERTICES),
            **_paint(builder, character, part),
        }
        for number, (bones, weights) in enumerate(influences or ()):
            attributes[f"JOINTS_{number}"] = builder.accessor(bones[here], target=VERTICES)
            attributes[f"WEIGHTS_{number}"] = builder.accessor(weights[here], target=VERTICES)
        kind = np.uint16 if here.stop - here.start < 1 << 16 else np.uint32
        indices = builder.accessor(corners.astype(kind).ravel(), target=INDICES)
        primitive: dict[str, Any] = {"attributes": attributes, "indices": indices, "material": 0}
        mesh: dict[str, Any] = {"name": part.name, "primitives": [primitive]}
        used = np.flatnonzero(shapes.targets[:, here].any(axis=(1, 2)))
        if used.size:
            _add_targets(builder, mesh, shapes, used, here)
            table = correction_table(character, mesh["extras"]["targetNames"])
            if table:
                mesh["extras"]["softrig"] = {"corrections": table}
        node = {"name": part.name, "mesh": builder.add("meshes", mesh)}
        if influences:
            node["skin"] = 0
        nodes[builder.add("nodes", node)] = used
    return nodes


def _parts(character: Character) -> tuple[Part, ...]:
    """The parts, without empty ones; the whole as one part where they do not cover it."""
    whole = slice(0, character.rig.vertex_count), slice(0, len(character.triangles))
    parts = tuple(
        p for p in character.parts if p.vertices.stop > p.vertices.start and p.triangles.stop > p.triangles.start
    )
    covered = sum(part.triangles.stop - part.triangles.start for part in parts)
    return parts if covered == len(character.triangles) else (Part(character.name, *whole),)


def _add_targets(builder: GlbBuilder, mesh: dict[str, Any], shapes: _Shapes, used: np.ndarray, here: slice) -> None:
    mesh["primitives"][0]["targets"] = [
        {
            "POSITION": builder.morph_accessor(shapes.targets[k, here].astype(np.float32)),
            "NORMAL": builder.morph_accessor(shapes.normals[k, here].astype(np.float32)),
        }
        for k in used
    ]
    mesh["weights"] = shapes.rest_weights[used].tolist()
    mesh["extras"] = {"targetNames": [shapes.names[k] for k in used]}


def _paint(builder: GlbBuilder, character: Character, part: Part) -> dict[str, int]:
    """COLOR_0, and painted maps as attributes of their own, whose names glTF wants to start with an underscore."""
    here = part.vertices
    colours = character.colours[here] if character.colours is not None else part.colours
    attributes: dict[str, int] = {}
    if colours is not None:
        codes = np.rint(np.clip(colours, 0.0, 1.0) * 65535.0).astype(np.uint16)
        attributes["COLOR_0"] = builder.accessor(codes, target=VERTICES, normalised=True)
    for name, values in character.maps.items():
        if not name.startswith("COLOR_"):
            key = name if name.startswith("_") else f"_{name}"
            attributes[key] = builder.accessor(np.asarray(values[here], np.float32), target=VERTICES)
    return attributes


def _influences(skin: LinearBlendSkin, bone_count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """JOINTS_n and WEIGHTS_n, (n, 4) each: the largest weights first, sums of exactly one."""
    table = skin.binding.table
    counts = np.diff(table.indptr)
    width = 4 * max(1, -(-int(counts.max(initial=1)) // 4))
    rows = np.repeat(np.arange(table.shape[0]), counts)
    order = np.lexsort((-table.data, rows))
    columns = np.arange(len(rows)) - np.repeat(table.indptr[:-1], counts)
    bones = np.zeros((table.shape[0], width), np.uint8 if bone_count <= 256 else np.uint16)
    weights = np.zeros((table.shape[0], width), np.float32)
    weights[rows, columns] = table.data[order]
    bones[rows, columns] = table.indices[order]
    bones[weights == 0.0] = 0
    weights[:, 0] += (1.0 - weights.sum(axis=1, dtype=np.float64)).astype(np.float32)
    return [(bones[:, k : k + 4], weights[:, k : k + 4]) for k in range(0, width, 4)]


def _add_skeleton_channels(
    channels: AnimationChannels, clip: Clip, character: Character, skeleton: Skeleton, fps: float
) -> None:
    # The skin's own skeleton, which need not be the character's: a root node may carry a rig of other deformers.
    start = character.rig.parameters.index(skeleton.parameters.names[0])
    for node in range(len(skeleton)):
        if node in skeleton.fixed_matrices:
            continue
        for path, offset, width in PATHS:
            first = start + NODE_PARAMETERS * node + offset
            times = _key_times(clip, first, width, fps)
            if times is not None:
                values = clip.sample(times)[:, first : first + width]
                if path == "rotation":  # a mean of key poses is no longer a unit quaternion; the format demands one
                    values = values / np.linalg.norm(values, axis=1, keepdims=True)
                channels.add(node, path, times, values)


def _key_times(clip: Clip, first: int, width: int, fps: float) -> np.ndarray | None:
    """(f,) when to put keys for `width` parameters: where linear tracks have theirs, else evenly; None: at rest."""
    tracks = [t for t in clip.tracks if t.start < first + width and t.start + t.width > first]
    if not tracks:
        return None
    if all(track.interpolation == "linear" for track in tracks):
        keys = np.concatenate([[0.0, clip.duration], *(track.times for track in tracks)])
        times = keys[(keys >= 0.0) & (keys <= clip.duration)]
    else:
        times = replace(clip, looping=False).resample(fps)[0]
    return np.unique(times.astype(np.float32)).astype(np.float64)
