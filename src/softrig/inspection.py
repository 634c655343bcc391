"""What a file holds, in words: characters and models, with the problems found in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.bodies.closedness import Closedness, closedness
from softrig.errors import InputError
from softrig.io.characters import LOADERS, load_character
from softrig.models.file import load_model
from softrig.models.reduced import ReducedBody
from softrig.rig.bones import skin_of
from softrig.rig.character import Character

MODEL_ENDING = ".softrig"


Table = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Title, head, rows."""


@dataclass(frozen=True)
class Inspection:
    """Facts as (what, value) lines, tables by title, and problems in plain words."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...] = ()
    problems: tuple[str, ...] = ()


def inspect_file(path: Path, *, scale: float = 1.0) -> Inspection:
    """What is in a character file (.glb, .gltf, .vrm) or a model file (.softrig)."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a file")
    if path.suffix.lower() not in readable_endings():
        raise InputError(f"{path}: cannot read {path.suffix or 'this'}; softrig reads {', '.join(readable_endings())}")
    if path.suffix.lower() == MODEL_ENDING:
        return inspect_model(load_model(path), path.name)
    return inspect_character(load_character(path, scale=scale))


def readable_endings() -> tuple[str, ...]:
    """Endings of files that can be inspected."""
    return (*sorted(LOADERS), MODEL_ENDING)


def inspect_character(character: Character) -> Inspection:
    """Parts, joints, influences, clips, size, watertightness and problems."""
    positions, weld = character.rest_positions, character.welded
    welded = weld.triangles(character.triangles)
    whole = closedness(welded)
    extent = np.ptp(positions, axis=0)
    skin = skin_of(character.rig)
    facts = [
        ("size", f"{extent[0]:.3g} × {extent[1]:.3g} × {extent[2]:.3g} m"),
        ("vertices", f"{len(positions):,} ({len(weld.representative):,} after welding)"),
        ("triangles", f"{len(character.triangles):,}"),
        ("surface", whole.words()),
        ("joints", "none" if skin is None else f"{len(skin.bones):,}"),
        ("influences a vertex", "none" if skin is None else f"at most {skin.binding.influences}"),
        ("rig parameters", f"{len(character.rig.parameters.names):,}"),
        ("painted maps", ", ".join(sorted(character.maps)) or "none"),
    ]
    parts = tuple(_part_row(character, index) for index in range(len(character.parts)))
    clips = tuple((clip.name, f"{clip.duration:.2f} s", str(len(clip.tracks))) for clip in character.clips)
    tables: list[Table] = [("Parts", ("name", "role", "vertices", "triangles", "surface"), parts)]
    if clips:
        tables.append(("Clips", ("name", "length", "tracks"), clips))
    problems = _problems(character, whole)
    return Inspection(f"{character.name} (character)", tuple(facts), tuple(tables), tuple(problems))


def _part_row(character: Character, index: int) -> tuple[str, ...]:
    part = character.parts[index]
    triangles = character.welded.triangles(character.triangles[part.triangles])
    count = len(range(*part.vertices.indices(len(character.rest_positions))))
    return part.name, part.role, f"{count:,}", f"{len(triangles):,}", closedness(triangles).words()


def _problems(character: Character, whole: Closedness) -> list[str]:
    problems = []
    if whole.open_edges:
        problems.append(f"the surface is open at {whole.open_edges:,} edges: the volume mesh closes it")
    if whole.crowded_edges:
        problems.append(f"{whole.crowded_edges:,} edges have more than two triangles")
    if whole.degenerate:
        problems.append(f"{whole.degenerate:,} triangles have no area after welding")
    if not character.clips:
        problems.append("there are no clips: poses must be given by hand")
    if skin_of(character.rig) is None:
        problems.append("there is no skin: the character does not bend")
    return problems


def inspect_model(model: ReducedBody, name: str) -> Inspection:
    """Modes, sizes and materials of a reduced body."""
    facts = (
        ("kind", "reduced StVK body, " + ("flying freely" if model.is_free else "anchored")),
        ("modes", str(model.size)),
        ("vertices", f"{len(model.vertices):,} simulated, {len(model.surface_rest):,} drawn"),
        ("triangles", f"{len(model.surface_triangles):,}"),
        *((f"note: {key}", value) for key, value in sorted(model.notes.items())),
    )
    rows = []
    for g, group in enumerate(model.group_names):
        lam, mu = model.lam[g], model.mu[g]
        young, poisson = mu * (3.0 * lam + 2.0 * mu) / (lam + mu), 0.5 * lam / (lam + mu)
        rows.append((group, f"{young:.4g} Pa", f"{poisson:.3g}", f"{model.density[g]:.4g} kg/m³"))
    head = ("group", "Young's modulus", "Poisson ratio", "density")
    return Inspection(f"{name} (model)", facts, (("Materials", head, tuple(rows)),))
