"""Characters from glTF 2.0: GLB, VRM (a GLB too) and .gltf. The scene becomes one surface, one rig and its clips.

Every node that shows a mesh gives its own vertices: skinned ones follow the skin's joints (the node's own transform
is then ignored, glTF 2.0 §3.7.3.3), others follow the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.errors import InputError, notice
from softrig.io.accessors import AccessorReader, MemoryBudget
from softrig.io.format_error import FileFormatError
from softrig.io.glb import GltfDocument, read_document
from softrig.io.gltf_clips import Targets, read_clips
from softrig.io.gltf_corrections import MorphedMesh, read_corrections
from softrig.io.gltf_meshes import Mesh, Primitive, morph_weights, read_mesh
from softrig.io.gltf_nodes import NodeTree, read_nodes, skeleton_of, unique_names
from softrig.io.json_fields import JsonObject, printable
from softrig.rig.character import Character, Part
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.skeleton import NODE_PARAMETERS, Skeleton
from softrig.rig.skinning import LinearBlendSkin

_READ = {"KHR_mesh_quantization"}
# These change materials, textures, lights and metadata, but no vertex.
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "MSFT_texture_", "KHR_lights_", "KHR_xmp", "VRM")
_HARMLESS_NAMES = {"KHR_techniques_webgl", "KHR_animation_pointer", "KHR_node_visibility", "EXT_lights_image_based"}
# What Python objects and the checks of a part and of a vertex cost beside the numbers of the file.
_BYTES_A_PART = 16384
_BYTES_A_VERTEX = 400
_BYTES_AN_INFLUENCE = 40
# Guessing roles compares parts in pairs wherever they touch: with more parts times vertices it takes too long.
_MOST_GUESSING = 10_000_000


@dataclass(frozen=True)
class _Instance:
    """A mesh shown by a node; `skin` −1: by none."""

    node: int
    mesh_index: int
    mesh: Mesh
    skin: int
    weights: np.ndarray

    def carried(self, primitive: Primitive) -> bool:
        """Whether joints, not the node, carry a primitive."""
        return self.skin >= 0 and primitive.joints is not None


@dataclass(frozen=True)
class _Bones:
    """The joints of all skins in use, one skin after the other."""

    nodes: list[int]
    inverse_binds: np.ndarray
    starts: dict[int, int]
    counts: dict[int, int]


def load_gltf(path: str | Path, *, scale: float = 1.0) -> Character:
    """The character in a .glb, .vrm or .gltf file; lengths of the file are multiplied by `scale` to be metres.

    Raises `FileFormatError` for a file that is damaged, unsafe or uses an extension that softrig does not read.
    """
    source = Path(path)
    if not (np.isfinite(scale) and scale > 0.0):
        raise InputError(f"scale must be positive, not {scale}")
    try:
        # Absurd numbers of a file may overflow; what comes of it is checked, so no warnings on the way.
        with np.errstate(all="ignore"):
            return _character(read_document(source), float(scale))
    except FileFormatError:
        raise
    except InputError as trouble:
        raise FileFormatError(source, str(trouble)) from trouble


def _character(document: GltfDocument, scale: float) -> Character:
    root = document.root
    _check_extensions(root)
    reader = AccessorReader(document)
    tree = read_nodes(root)
    instances = _read_instances(reader, root, tree)
    bones = _read_bones(reader, root, tree, sorted({i.skin for i in instances if i.skin >= 0}), scale)
    kept = tree.with_ancestors([*(instance.node for instance in instances), *bones.nodes])
    skeleton, slots = skeleton_of(tree, kept, scale, reader.budget)
    parts, surface = _assemble(instances, bones, tree, slots, reader.budget)
    positions = surface.positions * scale
    skin = LinearBlendSkin(
        skeleton,
        positions,
        np.array([slots[node] for node in bones.nodes], dtype=np.int32),
        bones.inverse_binds,
        surface.joints,
        surface.weights,
        surface.attach,
    )
    shapes, morphs = _blend_shapes(instances, parts, positions, scale, skeleton, slots, reader.budget)
    triangles = _outward(surface.triangles, parts, skin)
    # Areas weigh the pose features: a joint counts for the surface it moves.
    rig = (RigChain((shapes, skin)) if shapes is not None else skin).with_areas(triangles)
    first = len(shapes.parameters) if shapes is not None else 0
    nodes = {n: first + NODE_PARAMETERS * slot for n, slot in slots.items() if slot not in skeleton.fixed_matrices}
    morphed = [
        MorphedMesh(root.at("meshes", instance.mesh_index), instance.mesh.target_names, morphs[instance.node][0])
        for instance in instances
        if instance.node in morphs
    ]
    character = Character(
        document.path.stem,
        rig,
        skeleton,
        triangles,
        parts,
        read_clips(reader, root, Targets(rig.parameters, nodes, morphs, scale)),
        _whole_colours(parts, len(positions)),
        _whole_maps(parts, len(positions), reader.budget),
        document.path,
        read_corrections(morphed, rig, scale, reader.budget),
    )
    if len(parts) > 1 and len(parts) * len(positions) > _MOST_GUESSING:
        notice(f"{document.path}: {len(parts)} parts are too many to guess which of them are soft: all are")
        return character
    return character.with_guessed_roles()


def _check_extensions(root: JsonObject) -> None:
    needed = [name for name in root.texts("extensionsRequired") if name not in _READ | _HARMLESS_NAMES]
    unknown = [printable(name) for name in needed if not name.startswith(_HARMLESS)]
    if unknown:
        raise root.error(
            f"needs {', '.join(unknown[:8])}, which softrig does not read; save the file without (uncompressed)"
        )


def _read_instances(reader: AccessorReader, root: JsonObject, tree: NodeTree) -> list[_Instance]:
    meshes: dict[int, Mesh] = {}
    instances: list[_Instance] = []
    for node in tree.order:
        entry = tree.entries[node]
        if not (tree.in_scene[node] and entry.has("mesh")):
            continue
        index = entry.whole("mesh")
        if index not in meshes:
            meshes[index] = read_mesh(reader, root.at("meshes", index), index)
        mesh = meshes[index]
        reader.budget.charge(_BYTES_A_PART * len(mesh.primitives), entry.place)
        weights = morph_weights(entry, len(mesh.target_names), mesh.weights)
        instances.append(_Instance(node, index, mesh, entry.index("skin"), weights))
    if not instances:
        raise root.error("shows no mesh in its scene")
    return instances


def _read_bones(reader: AccessorReader, root: JsonObject, tree: NodeTree, skins: list[int], scale: float) -> _Bones:
    nodes: list[int] = []
    matrices = [np.zeros((0, 4, 4))]
    starts: dict[int, int] = {}
    counts: dict[int, int] = {}
    for skin in skins:
        entry = root.at("skins", skin)
        joints = entry.wholes("joints")
        wrong = [i for i, joint in enumerate(joints) if joint >= len(tree.entries)]
        if wrong or not joints:
            raise entry.error("joints that do not exist" if wrong else "has no joints", wrong)
        starts[skin], counts[skin] = len(nodes), len(joints)
        nodes += joints
        reader.budget.charge(2 * 128 * len(joints), entry.place)
        matrices.append(_inverse_binds(reader, entry, len(joints), scale))
    return _Bones(nodes, np.concatenate(matrices), starts, counts)


def _inverse_binds(reader: AccessorReader, skin: JsonObject, count: int, scale: float) -> np.ndarray:
    """(count, 4, 4) with translations in metres; identities where the skin has none."""
    if not skin.has("inverseBindMatrices"):
        return np.tile(np.eye(4), (count, 1, 1))
    values = reader.numbers(skin.whole("inverseBindMatrices"), ("MAT4",))
    if len(values) < count:
        raise skin.error(f"{len(values)} inverse bind matrices for {count} joints")
    matrices = values[:count].reshape(count, 4, 4).transpose(0, 2, 1).copy()
    wrong = np.flatnonzero(np.abs(matrices[:, 3] - [0.0, 0.0, 0.0, 1.0]).max(axis=1) > 1e-4)
    if wrong.size:
        raise skin.error("inverse bind matrices whose last row is not 0, 0, 0, 1", wrong)
    matrices[:, 3] = [0.0, 0.0, 0.0, 1.0]
    matrices[:, :3, 3] *= scale
    return matrices


@dataclass(frozen=True)
class _Surface:
    """All parts side by side, in the file's unit."""

    positions: np.ndarray
    triangles: np.ndarray
    joints: np.ndarray
    weights: np.ndarray
    attach: np.ndarray


def _assemble(
    instances: list[_Instance], bones: _Bones, tree: NodeTree, slots: dict[int, int], budget: MemoryBudget
) -> tuple[tuple[Part, ...], _Surface]:
    """Every primitive of every instance as one part, and their arrays in one piece."""
    pieces = [(instance, number) for instance in instances for number in range(len(instance.mesh.primitives))]
    primitives = [instance.mesh.primitives[number] for instance, number in pieces]
    count = sum(len(primitive.positions) for primitive in primitives)
    width = max((p.joints.shape[1] for p in primitives if p.joints is not None), default=0)
    faces = sum(len(primitive.triangles) for primitive in primitives)
    budget.charge((_BYTES_A_VERTEX + _BYTES_AN_INFLUENCE * width) * count + 64 * faces, "the surface")
    joints, weights = np.zeros((count, width), dtype=np.int32), np.zeros((count, width))
    attach = np.full(count, -1, dtype=np.int32)
    names = unique_names(_part_name(instance, number, tree) for instance, number in pieces)
    parts: list[Part] = []
    triangles: list[np.ndarray] = []
    vertex = face = 0
    for (instance, number), primitive, name in zip(pieces, primitives, names, strict=True):
        here = slice(vertex, vertex + len(primitive.positions))
        there = slice(face, face + len(primitive.triangles))
        if instance.carried(primitive):
            _bind(joints[here], weights[here], primitive, instance, bones)
        else:
            attach[here] = slots[instance.node]
            if instance.skin >= 0:
                notice(
                    f"{primitive.place.path}: {primitive.place.place} has a skin but no JOINTS_0; it follows its node"
                )
        triangles.append(primitive.triangles + vertex)
        where = {"node": instance.node, "mesh": instance.mesh_index, "primitive": number, "skin": instance.skin}
        parts.append(
            Part(name, here, there, "soft", slots[instance.node], primitive.colours, dict(primitive.maps), where)
        )
        vertex, face = here.stop, there.stop
    positions = np.concatenate([primitive.positions for primitive in primitives])
    return tuple(parts), _Surface(positions, np.concatenate(triangles), joints, weights, attach)


def _bind(joints: np.ndarray, weights: np.ndarray, primitive: Primitive, instance: _Instance, bones: _Bones) -> None:
    """Fill the rows of one skinned part: from places in its skin to places among all bones."""
    assert primitive.joints is not None
    assert primitive.weights is not None
    beyond = np.flatnonzero((primitive.joints >= bones.counts[instance.skin]).any(axis=1))
    if beyond.size:
        raise primitive.place.error(
            f"joints beyond the {bones.counts[instance.skin]} of skins[{instance.skin}], at vertices", beyond
        )
    width = primitive.joints.shape[1]
    joints[:, :width] = primitive.joints + bones.starts[instance.skin]
    weights[:, :width] = primitive.weights


def _part_name(instance: _Instance, number: int, tree: NodeTree) -> str:
    name = tree.entries[instance.node].name(instance.mesh.name)
    return name if len(instance.mesh.primitives) == 1 else f"{name}.{number}"


def _blend_shapes(
    instances: list[_Instance],
    parts: tuple[Part, ...],
    positions: np.ndarray,
    scale: float,
    skeleton: Skeleton,
    slots: dict[int, int],
    budget: MemoryBudget,
) -> tuple[BlendShapes | None, dict[int, tuple[int, int]]]:
    """All morph targets, instance by instance, and of each node with some the first weight and their number."""
    count = sum(len(instance.weights) for instance in instances)
    if count == 0:
        return None, {}
    # The deltas, and a mask of the finite ones while they are checked; names of targets may be long.
    budget.charge(count * (27 * len(positions) + 1024), "the morph targets")
    targets = np.zeros((count, *positions.shape))
    ranges: dict[int, tuple[int, int]] = {}
    remaining = iter(parts)
    start = 0
    for instance in instances:
        if len(instance.weights):
            ranges[instance.node] = (start, len(instance.weights))
        for primitive in instance.mesh.primitives:
            part = next(remaining)
            for number, moves in enumerate(primitive.targets):
                if moves is not None:
                    np.multiply(moves, scale, out=targets[start + number, part.vertices])
        start += len(instance.weights)
    names = _morph_names(instances, [skeleton.names[slots[instance.node]] for instance in instances])
    weights = np.concatenate([instance.weights for instance in instances])
    return BlendShapes(positions, targets, names, weights), ranges


def _morph_names(instances: list[_Instance], owners: list[str]) -> tuple[str, ...]:
    """The file's names; with the owner's name before them where several instances share one."""
    users: dict[str, int] = {}
    for instance in instances:
        for name in set(instance.mesh.target_names):
            users[name] = users.get(name, 0) + 1
    return unique_names(
        name if users[name] == 1 else f"{owner}.{name}"
        for instance, owner in zip(instances, owners, strict=True)
        for name in instance.mesh.target_names
    )


def _outward(triangles: np.ndarray, parts: tuple[Part, ...], skin: LinearBlendSkin) -> np.ndarray:
    """The triangles, turned over in parts that the rest pose mirrors, so that their outside stays outside."""
    blended = skin.blended_matrices(skin.parameters.rest)[:, :, :3]
    mirrored = np.linalg.det(blended) < 0.0
    turned = triangles.copy()
    for part in parts:
        if np.mean(mirrored[part.vertices]) > 0.5:
            turned[part.triangles] = triangles[part.triangles][:, [0, 2, 1]]
    return turned.astype(np.int32)


def _whole_colours(parts: tuple[Part, ...], count: int) -> np.ndarray | None:
    """(n, 4), white where a part has none; None if all have none."""
    if all(part.colours is None for part in parts):
        return None
    colours = np.ones((count, 4))
    for part in parts:
        if part.colours is not None:
            colours[part.vertices] = part.colours
    return colours


def _whole_maps(parts: tuple[Part, ...], count: int, budget: MemoryBudget) -> dict[str, np.ndarray]:
    """Every painted map over all vertices, zero on parts without it."""
    names = dict.fromkeys(name for part in parts for name in part.maps)
    budget.charge(8 * count * len(names), "the painted maps")
    maps = {name: np.zeros(count) for name in names}
    for part in parts:
        for name, values in part.maps.items():
            maps[name][part.vertices] = values
    return maps
