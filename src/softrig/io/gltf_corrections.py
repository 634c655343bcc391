"""Corrections in glTF: which pose each corrective morph target belongs to, as a table in the `extras` of its mesh.

    "extras": {
      "targetNames": ["ElbowBent"],
      "softrig": {"corrections": [{
        "name": "ElbowBent",
        "morph": "ElbowBent",
        "drivers": ["Forearm.rotation"],
        "pose": {"Forearm.rotation.z": 0.8, "Forearm.rotation.w": 0.6}
      }]}
    }

`morph` is one of the mesh' `targetNames`. `drivers` switch it on: "<node>.rotation", or a single parameter. `pose`
gives the parameters that differ from rest, by name: "<node>.translation.x", y, z (in the file's unit),
"<node>.rotation.x", y, z, w, "<node>.scale.x", y, z, and "<morph>.weight" of morphs that are no corrections. `name` (by
default that of the morph) joins the morphs of several meshes into one correction where drivers and pose are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softrig.errors import InputError, notice
from softrig.io.accessors import MemoryBudget
from softrig.io.format_error import FileFormatError
from softrig.io.gltf_nodes import unique_names
from softrig.io.json_fields import JsonObject, printable
from softrig.rig.bones import skin_of
from softrig.rig.character import Character
from softrig.rig.corrections import Correction, check_correction, shared_ways, told_apart
from softrig.rig.parameters import Parameters
from softrig.rig.protocol import Rig

MOST_CORRECTIONS = 256
"""More of a mesh, or of a file, are left out: each costs a pose and a surface."""
_MOST_DRIVERS = 64


@dataclass(frozen=True)
class MorphedMesh:
    """A mesh shown by a node, whose morph weights are the rig's parameters from `first` on."""

    mesh: JsonObject
    target_names: tuple[str, ...]
    first: int


@dataclass(frozen=True)
class _Meant:
    """What one line of a table says, but for the morph; equal ones of several meshes are one correction."""

    name: str
    drivers: tuple[str, ...]
    pose: tuple[tuple[int, float], ...]


def correction_table(character: Character, morph_names: Iterable[str]) -> list[dict[str, Any]]:
    """The lines of the table for a mesh with morphs of these names; lengths in metres."""
    owners = {weight: correction for correction in character.corrections for weight in correction.weights}
    lines = []
    for morph in morph_names:
        correction = owners.get(f"{morph}.weight")
        if correction is not None:
            lines.append(
                {
                    "name": correction.name,
                    "morph": morph,
                    "drivers": list(correction.drivers),
                    "pose": _named_pose(character, correction, set(owners)),
                }
            )
    return lines


def _named_pose(character: Character, correction: Correction, weights: set[str]) -> dict[str, float]:
    """What differs from rest at a correction's pose, without the corrections' own weights; quaternions whole."""
    parameters = character.rig.parameters
    differs = correction.pose != parameters.rest
    where = parameters.quaternions[:, None] + np.arange(4)
    differs[where] = differs[where].any(axis=1, keepdims=True)
    unused = _unused_nodes(character.rig)
    return {
        parameters.names[index]: float(correction.pose[index])
        for index in np.flatnonzero(differs)
        if parameters.names[index] not in weights and parameters.names[index].rsplit(".", 2)[0] not in unused
    }


def _unused_nodes(rig: Rig) -> set[str]:
    """Names of nodes that carry no bone, themselves or below: a reader does not keep them."""
    skin = skin_of(rig)
    if skin is None:
        return set()
    skeleton = skin.skeleton
    used = np.zeros(len(skeleton), dtype=bool)
    for bone in skin.binding.bones.tolist():
        node = bone
        while node >= 0 and not used[node]:
            used[node] = True
            node = int(skeleton.parents[node])
    return {name for name, kept in zip(skeleton.names, used, strict=True) if not kept}


def read_corrections(
    meshes: Sequence[MorphedMesh], rig: Rig, scale: float, budget: MemoryBudget
) -> tuple[Correction, ...]:
    """The corrections that the tables of `meshes` name; what is wrong in them is left out with a notice.

    scale: metres a unit of the file.
    """
    parameters = rig.parameters
    weights: dict[_Meant, list[str]] = {}
    places: dict[_Meant, JsonObject] = {}
    owned: dict[str, _Meant] = {}
    lines: dict[str, list[tuple[JsonObject, _Meant, int]]] = {}
    for shown in meshes:
        if shown.mesh.place not in lines:
            lines[shown.mesh.place] = list(_lines(shown, parameters, scale))
        for item, meant, target in lines[shown.mesh.place]:
            weight = parameters.names[shown.first + target]
            if weight in owned:
                notice(f"{item.path}: {item.place} is left out: its morph has a correction already")
            elif meant not in weights and len(weights) >= MOST_CORRECTIONS:
                notice(f"{item.path}: {item.place} is left out: there are {MOST_CORRECTIONS} corrections before it")
            else:
                owned[weight] = meant
                weights.setdefault(meant, []).append(weight)
                places.setdefault(meant, item)
    if not weights:
        return ()
    # A pose, a surface, and what the rig makes on the way there.
    budget.charge(len(weights) * (8 * len(parameters) + 24 * rig.vertex_count), "the corrections")
    budget.charge(200 * rig.vertex_count, "the corrections")
    zero = np.array([parameters.index(weight) for weight in owned])
    names = unique_names(meant.name for meant in weights)
    found = [
        (places[meant], correction)
        for name, (meant, own) in zip(names, weights.items(), strict=True)
        if (correction := _correction(name, meant, own, zero, rig, places[meant])) is not None
    ]
    return _told_apart(parameters, found)


def _lines(shown: MorphedMesh, parameters: Parameters, scale: float) -> Iterator[tuple[JsonObject, _Meant, int]]:
    """The readable lines of a mesh' table: where, what, and which of the mesh' targets."""
    extras = shown.mesh.fields.get("extras")
    # Other programs' extras may hold anything: only a table under our own name is ours to read.
    if not (isinstance(extras, dict) and isinstance(extras.get("softrig"), dict)):
        return
    own = JsonObject(shown.mesh.path, f"{shown.mesh.place}.extras.softrig", extras["softrig"])
    table = own.fields.get("corrections", [])
    if not isinstance(table, list):
        notice(f"{own.path}: {own.place}.corrections is left out: it is not a list")
        return
    if len(table) > MOST_CORRECTIONS:
        notice(
            f"{own.path}: {own.place}.corrections has {len(table)} lines; those after {MOST_CORRECTIONS} are left out"
        )
    for number in range(min(len(table), MOST_CORRECTIONS)):
        try:
            item = own.at("corrections", number)
            yield item, *_read_line(item, shown.target_names, parameters, scale)
        except FileFormatError as trouble:
            notice(f"{trouble}; this correction is left out")


def _read_line(
    item: JsonObject, target_names: tuple[str, ...], parameters: Parameters, scale: float
) -> tuple[_Meant, int]:
    morph = printable(item.text("morph"))
    if morph not in target_names:
        raise item.error(f"no morph target of the mesh is called '{morph}'")
    drivers = tuple(printable(driver) for driver in item.texts("drivers"))
    if not 1 <= len(drivers) <= _MOST_DRIVERS:
        raise item.error(f"has {len(drivers)} drivers, not 1 to {_MOST_DRIVERS}")
    pose = item.child("pose")
    if pose is None:
        raise item.error("has no pose")
    values = JsonObject(item.path, item.place, {"pose": list(pose.fields.values())}).numbers("pose")
    assert values is not None
    try:
        indices = [parameters.index(printable(name)) for name in pose.fields]
    except InputError as trouble:
        raise item.error(str(trouble)) from None
    metres = [value * (scale if parameters.units[i] == "m" else 1.0) for i, value in zip(indices, values, strict=True)]
    pairs = tuple(sorted(zip(indices, map(float, metres), strict=True)))
    return _Meant(item.name(morph), drivers, pairs), target_names.index(morph)


def _correction(
    name: str, meant: _Meant, own: list[str], zero: np.ndarray, rig: Rig, place: JsonObject
) -> Correction | None:
    """The correction, or None with a notice; `zero` are the indices of all corrections' weights."""
    parameters = rig.parameters
    pose = parameters.rest.copy()
    for index, value in meant.pose:
        pose[index] = value
    pose[zero] = 0.0
    pose[[parameters.index(weight) for weight in own]] = 1.0
    pose = parameters.normalised(pose)
    correction = Correction(name, pose, meant.drivers, rig.positions(pose), tuple(own))
    try:
        check_correction(parameters, rig.vertex_count, correction)
    except InputError as trouble:
        notice(f"{place.path}: {place.place} is left out: {trouble}")
        return None
    return correction


def _told_apart(parameters: Parameters, found: list[tuple[JsonObject, Correction]]) -> tuple[Correction, ...]:
    """The corrections whose poses their drivers tell apart from those before them; the others with a notice."""
    ways = shared_ways(parameters, [correction for _, correction in found])
    kept = list(range(len(found)))
    if not told_apart(ways):
        kept = []
        for number, (place, correction) in enumerate(found):
            if told_apart(ways[np.ix_([*kept, number], [*kept, number])]):
                kept.append(number)
            else:
                notice(
                    f"{place.path}: {place.place} is left out: the drivers of '{correction.name}' do not tell its pose "
                    "from those before"
                )
    return tuple(found[number][1] for number in kept)
