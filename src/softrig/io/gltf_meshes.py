"""Meshes of a glTF document: triangles, skin weights, morph targets, colours and painted maps, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.errors import notice
from softrig.io.accessors import AccessorReader
from softrig.io.json_fields import JsonObject, printable
from softrig.rig.skinning import WEIGHT_TOLERANCE

_DRACO = "KHR_draco_mesh_compression"
_MODES = ("points", "lines", "line loops", "line strips", "triangles", "triangle strips", "triangle fans")
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
# Exporters that solve for weights leave rounding below zero.
_WEIGHT_NOISE = 1e-5
_CHANNELS = "rgba"
_AXES = "xyzw"


@dataclass(frozen=True)
class Primitive:
    """One primitive as the file has it, n vertices; lengths in the file's unit."""

    place: JsonObject
    positions: np.ndarray
    """(n, 3)"""
    triangles: np.ndarray
    """(t, 3) int64"""
    joints: np.ndarray | None
    """(n, k) int64, places in the skin's list of joints; None where the primitive has none."""
    weights: np.ndarray | None
    """(n, k), rows of sum 1."""
    targets: tuple[np.ndarray | None, ...]
    """Of each morph target the (n, 3) displacements; None where it moves nothing."""
    colours: np.ndarray | None
    """(n, 4) linear red, green, blue, alpha."""
    maps: dict[str, np.ndarray]
    """Painted maps by name, (n,) each."""


@dataclass(frozen=True)
class Mesh:
    """A mesh: primitives with the same morph targets."""

    name: str
    primitives: tuple[Primitive, ...]
    target_names: tuple[str, ...]
    weights: np.ndarray
    """(targets,) morph weights at rest."""


def read_mesh(reader: AccessorReader, entry: JsonObject, index: int) -> Mesh:
    """One mesh of the document."""
    places = entry.children("primitives")
    if not places:
        raise entry.error("has no primitives")
    primitives = tuple(_read_primitive(reader, place) for place in places)
    count = len(primitives[0].targets)
    wrong = [i for i, primitive in enumerate(primitives) if len(primitive.targets) != count]
    if wrong:
        raise entry.error(f"primitives with another number of morph targets than the first, {count}", wrong)
    names = _target_names([entry, *places], count)
    _add_morph_maps(reader, primitives, names)
    shown = names or tuple(f"morph_{i}" for i in range(count))
    return Mesh(entry.name(f"mesh_{index}"), primitives, shown, morph_weights(entry, count, np.zeros(count)))


def morph_weights(entry: JsonObject, count: int, default: np.ndarray) -> np.ndarray:
    """The `weights` of a mesh or a node with `count` morph targets."""
    weights = entry.numbers("weights")
    if weights is None or weights.size == 0:
        return default
    if weights.size != count:
        raise entry.error(f"{weights.size} weights for {count} morph targets")
    return weights


def _read_primitive(reader: AccessorReader, place: JsonObject) -> Primitive:
    mode = place.whole("mode", _TRIANGLES)
    if mode not in (_TRIANGLES, _STRIP, _FAN):
        what = _MODES[mode] if mode < len(_MODES) else f"mode {mode}"
        raise place.error(f"is made of {what}; softrig reads triangles, strips and fans")
    attributes = place.child("attributes")
    if attributes is None or not attributes.has("POSITION"):
        raise place.error("has no POSITION")
    where = attributes.whole("POSITION")
    extensions = place.fields.get("extensions")
    if isinstance(extensions, dict) and _DRACO in extensions and not reader.has_bytes(where):
        raise place.error(f"is compressed with {_DRACO}, which softrig does not read; save it uncompressed")
    positions = reader.numbers(where, ("VEC3",), finite=False)
    broken = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if broken.size:
        raise place.error("POSITION of vertices is NaN or infinite", broken)
    joints, weights = _read_influences(reader, attributes, len(positions))
    colours, maps = _read_paint(reader, attributes, len(positions))
    return Primitive(
        place,
        positions,
        _read_triangles(reader, place, mode, len(positions)),
        joints,
        weights,
        _read_targets(reader, place, len(positions)),
        colours,
        maps,
    )


def _read_triangles(reader: AccessorReader, place: JsonObject, mode: int, vertex_count: int) -> np.ndarray:
    if place.has("indices"):
        corners = reader.integers(place.whole("indices"), ("SCALAR",))[:, 0]
        beyond = np.flatnonzero(corners >= vertex_count)
        if beyond.size:
            raise place.error(f"indices beyond its {vertex_count} vertices", beyond)
    else:
        reader.budget.charge(8 * vertex_count, place.place)
        corners = np.arange(vertex_count)
    if mode == _TRIANGLES:
        left = len(corners) % 3
        if left:
            notice(
                f"{place.path}: {place.place}: {len(corners)} corners are no whole triangles; the last {left} dropped"
            )
        return corners[: len(corners) - left].reshape(-1, 3)
    reader.budget.charge(24 * len(corners), place.place)
    first = np.arange(max(len(corners) - 2, 0))
    if mode == _FAN:
        triangles = np.stack(
            [corners[first + 1], corners[first + 2], np.broadcast_to(corners[:1], first.shape)], axis=1
        )
    else:
        odd = first % 2
        triangles = np.stack([corners[first], corners[first + 1 + odd], corners[first + 2 - odd]], axis=1)
    # Strips are stitched together with triangles that name a corner twice.
    a, b, c = triangles.T
    return triangles[(a != b) & (b != c) & (c != a)]


def _read_influences(
    reader: AccessorReader, attributes: JsonObject, count: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    joint_sets: list[np.ndarray] = []
    weight_sets: list[np.ndarray] = []
    while attributes.has(f"JOINTS_{len(joint_sets)}"):
        number = len(joint_sets)
        if not attributes.has(f"WEIGHTS_{number}"):
            raise attributes.error(f"has JOINTS_{number} but no WEIGHTS_{number}")
        joint_sets.append(reader.integers(attributes.whole(f"JOINTS_{number}"), ("VEC4",), count=count))
        weight_sets.append(reader.numbers(attributes.whole(f"WEIGHTS_{number}"), ("VEC4",), count=count))
    if not joint_sets:
        return None, None
    reader.budget.charge(16 * 4 * len(joint_sets) * count, attributes.place)
    joints, weights = np.concatenate(joint_sets, axis=1), np.concatenate(weight_sets, axis=1)
    negative = np.flatnonzero((weights < -_WEIGHT_NOISE).any(axis=1))
    if negative.size:
        raise attributes.error("negative skin weights of vertices", negative)
    np.maximum(weights, 0.0, out=weights)
    sums = weights.sum(axis=1)
    unbound = np.flatnonzero(sums <= 0.0)
    if unbound.size:
        notice(
            f"{attributes.path}: {attributes.place}: vertices without skin weights follow their first joint", unbound
        )
        weights[unbound, 0], sums[unbound] = 1.0, 1.0
    uneven = np.flatnonzero(np.abs(sums - 1.0) > WEIGHT_TOLERANCE)
    if uneven.size:
        notice(f"{attributes.path}: {attributes.place}: skin weights of vertices scaled to the sum 1", uneven)
    weights /= sums[:, None]
    joints[weights == 0.0] = 0
    used = (weights > 0.0).any(axis=0)
    return joints[:, used], weights[:, used]


def _read_targets(reader: AccessorReader, place: JsonObject, count: int) -> tuple[np.ndarray | None, ...]:
    return tuple(
        reader.numbers(target.whole("POSITION"), ("VEC3",), count=count) if target.has("POSITION") else None
        for target in place.children("targets")
    )


def _read_paint(
    reader: AccessorReader, attributes: JsonObject, count: int
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Colours from COLOR_0, and maps from every channel of COLOR_n and of the attributes whose name starts with _."""
    colours: np.ndarray | None = None
    maps: dict[str, np.ndarray] = {}
    for name in attributes.fields:
        if not name.startswith(("COLOR_", "_")):
            continue
        accessor, shown = attributes.whole(name), printable(name)
        kind = reader.kind(accessor)
        if name.startswith("COLOR_"):
            values = reader.numbers(accessor, ("VEC3", "VEC4"), count=count)
            maps |= {f"{shown}.{channel}": column for channel, column in zip(_CHANNELS, values.T, strict=False)}
            if name == "COLOR_0":
                reader.budget.charge(32 * count, attributes.place)
                colours = np.ones((count, 4))
                colours[:, : values.shape[1]] = values
        elif kind == "SCALAR":
            maps[shown] = reader.numbers(accessor, ("SCALAR",), count=count)[:, 0]
        elif kind in ("VEC2", "VEC3", "VEC4"):
            values = reader.numbers(accessor, (kind,), count=count)
            maps |= {f"{shown}.{axis}": column for axis, column in zip(_AXES, values.T, strict=False)}
    return colours, maps


def _target_names(places: list[JsonObject], count: int) -> tuple[str, ...]:
    """`extras.targetNames` of the mesh or of a primitive; empty where nobody says. Extras may hold anything."""
    for place in places:
        extras = place.fields.get("extras")
        names = extras.get("targetNames") if isinstance(extras, dict) else None
        if isinstance(names, list) and len(names) == count and all(isinstance(name, str) for name in names):
            return tuple(printable(name) or f"morph_{i}" for i, name in enumerate(names))
    return ()


def _add_morph_maps(reader: AccessorReader, primitives: tuple[Primitive, ...], names: tuple[str, ...]) -> None:
    """A named morph is a map too: how far it moves each vertex, 1 where it moves one farthest."""
    for target, name in enumerate(names):
        lengths: list[np.ndarray | None] = []
        for primitive in primitives:
            moves = primitive.targets[target]
            reader.budget.charge(8 * len(primitive.positions), primitive.place.place)
            lengths.append(None if moves is None else np.linalg.norm(moves, axis=1))
        farthest = max((float(length.max()) for length in lengths if length is not None), default=0.0)
        if farthest > 0.0:
            for primitive, length in zip(primitives, lengths, strict=True):
                if length is not None:
                    primitive.maps.setdefault(name, length / farthest)
