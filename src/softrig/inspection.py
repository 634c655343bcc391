"""What a file holds, in words: characters and models, with the problems found in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softrig.bodies.closedness import Closedness, closedness
from softrig.io.characters import LOADERS, read_character, unread_ending
from softrig.io.sizes import likelier_scale, size_trouble
from softrig.models.file import load_model
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel
from softrig.models.pose_space_file import tensors_of
from softrig.models.reduced import ReducedBody
from softrig.models.substructured import SubstructuredModel
from softrig.project import MOST_POSES, Project, noted_scale, project_toml
from softrig.rig.anatomy import outer_joints
from softrig.rig.bones import skin_of
from softrig.rig.character import Character
from softrig.rig.driving import rig_trouble
from softrig.words import counted, figure, so_many_are

MODEL_ENDING = ".softrig"
LEGEND = "role: soft is simulated, rigid keeps its shape, follows moves along; tracks: animated channels"
"""What the columns of a character's tables mean."""

WEIGHT = ".weight"
"""How the parameter of a morph ends."""
MOST_JOINTS, LONGEST_NAME = 8, 60
"""Named in a line, and letters of each."""
MOST_SHAPES = 40
"""Of a tree of domains that are listed."""
LEAN_ON = 2.5
"""Tets a mode that a model which leans on its tets should have."""
LOOSE = 0.15
"""Forces further off than this along the clips are told of."""
MOST_YOUNG = 1e12
"""Pa: nothing is stiffer, diamond included; what a file says beyond it is no modulus."""
STIFF = 0.9
"""A basis that takes up less than this share of the rig's loads moves too stiffly."""


Table = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Title, head, rows."""


@dataclass(frozen=True)
class Inspection:
    """Facts as (what, value) lines, tables by title, and in plain words problems and remarks."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...] = ()
    problems: tuple[str, ...] = ()
    legend: str = ""
    """What the columns mean, in one line."""
    remarks: tuple[str, ...] = ()
    """What is right as it is, and what would make it better."""


def inspect_file(path: Path, *, scale: float = 1.0) -> Inspection:
    """What is in a character file (.glb, .gltf, .vrm) or a model file (.softrig)."""
    if path.is_dir() or path.suffix.lower() not in readable_endings():
        raise unread_ending(path, MODEL_ENDING)
    if path.suffix.lower() == MODEL_ENDING:
        model = load_model(path)
        if isinstance(model, PoseSpaceModel):
            return inspect_soft_character(model, path.name)
        if isinstance(model, MultiDomainModel):
            return inspect_domains(model, path.name)
        if isinstance(model, SubstructuredModel):
            return inspect_tree(model, path.name)
        return inspect_model(model, path.name)
    character = read_character(path, scale=scale)
    found = inspect_character(character)
    trouble = size_trouble(character, scale)
    return replace(found, problems=(trouble, *found.problems)) if trouble else found


def is_character(path: Path) -> bool:
    """Whether a file holds a character, by its name."""
    return path.suffix.lower() in LOADERS


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
        ("painted maps", ", ".join(_painted(character)) or "none"),
        ("morphs", _morph_words(character)),
        ("corrections", ", ".join(correction.name for correction in character.corrections) or "none"),
    ]
    parts = _grouped([_part_row(character, index) for index in range(len(character.parts))])
    clips = tuple((clip.name, f"{clip.duration:.2f} s", str(len(clip.tracks))) for clip in character.clips)
    tables: list[Table] = [("Parts", ("name", "role", "vertices", "triangles", "surface"), parts)]
    if clips:
        tables.append(("Clips", ("name", "length", "tracks"), clips))
    problems = _problems(character, whole)
    return Inspection(f"{character.name} (character)", tuple(facts), tuple(tables), tuple(problems), LEGEND)


def _morphs(character: Character) -> list[str]:
    return [name.removesuffix(WEIGHT) for name in character.rig.parameters.names if name.endswith(WEIGHT)]


def _painted(character: Character) -> list[str]:
    """Maps that are no morphs. Where meshes share a morph's name, its parameters have the mesh's name before it."""
    morphs = {part for name in _morphs(character) for part in (name, name.partition(".")[2])}
    return sorted(name for name in character.maps if name not in morphs)


def _morph_words(character: Character) -> str:
    """Their names; those that a bake has numbered as one, with their count."""
    counts: dict[str, int] = {}
    for name in _morphs(character):
        stem = re.sub(r"\.\d+$", "", name)
        counts[stem] = counts.get(stem, 0) + 1
    names = ", ".join(name if n == 1 else f"{name} × {n}" for name, n in counts.items())
    return f"{names} (each serves as a map, too)" if names else "none"


def _part_row(character: Character, index: int) -> tuple[str, ...]:
    part = character.parts[index]
    triangles = character.welded.triangles(character.triangles[part.triangles])
    count = len(range(*part.vertices.indices(len(character.rest_positions))))
    return part.name, part.role, f"{count:,}", f"{len(triangles):,}", closedness(triangles).words()


def _grouped(rows: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Rows that differ only in the number behind a repeated name ("wheel", "wheel#2" …) as one row with their count."""
    counts: dict[tuple[str, ...], int] = {}
    for name, *facts in rows:
        key = re.sub(r"#\d+$", "", name), *facts
        counts[key] = counts.get(key, 0) + 1
    return tuple((name if n == 1 else f"{name} × {n}", *facts) for (name, *facts), n in counts.items())


def _problems(character: Character, whole: Closedness) -> list[str]:
    problems = []
    if whole.open_edges:
        problems.append(f"the surface is open at {counted(whole.open_edges, 'edge')}: the volume mesh closes it")
    if whole.crowded_edges:
        problems.append(f"more than two triangles meet at {counted(whole.crowded_edges, 'edge')}")
    if whole.degenerate:
        problems.append(f"after welding there is no area in {counted(whole.degenerate, 'triangle')}")
    if not character.clips:
        problems.append("there are no clips: poses must be given by hand")
    if trouble := rig_trouble(character.rig, character.clips):
        problems.append(trouble)
    return problems


def inspect_soft_character(model: PoseSpaceModel, name: str) -> Inspection:
    """A row of PSSD's Table 3: counts, memory, errors, step times; then poses and regions, and what to be warned of."""
    return Inspection(
        f"{name} (model)",
        soft_facts(model),
        (_pose_rows(model), _region_rows(model)),
        soft_problems(model),
        remarks=soft_remarks(model),
    )


def soft_facts(model: PoseSpaceModel) -> tuple[tuple[str, str], ...]:
    """Counts, memory, errors and times of a soft character, in words."""
    notes = model.notes
    facts = [
        ("kind", f"soft character '{model.name}', {model.law}, {_basis_words(model)} in {model.interpolation} space"),
        ("tets", f"{len(model.tets):,} of {len(model.vertices):,} vertices, {100.0 * model.fixed.mean():.0f} % held"),
        ("surface", f"{len(model.embedding_nodes):,} vertices, {len(model.triangles):,} triangles"),
        ("mass", f"{figure(model.vertex_mass.sum())} kg"),
        *_material_fact(model),
        *_bony_fact(model),
        ("modes", f"{model.mode_count} {_region_words(model)}, {counted(len(model.poses), 'pose')}"),
        *_follower_words(model),
        ("cubature", _cubature_words(model)),
        ("lowest frequency", f"{model.frequencies.min():.2f} Hz"),
        ("file", f"{model_bytes(model) / 1e6:.1f} MB"),
        ("clips", ", ".join(clip.name for clip in model.clips) or "none"),
    ]
    errors = notes.get("cubature", {}).get("unseen", [])
    if errors:
        worst = max(max(error["gaussian"], error["loads"]) for error in errors)
        between = _errors_along_clips(notes)
        more = f", {100.0 * max(between.values()):.1f} % between them" if between else ""
        facts.append(("force error", f"at most {100.0 * worst:.1f} % on unseen deformations at the poses{more}"))
    inertial = _errors_along_clips(notes, "inertia")
    if inertial:
        facts.append(("inertial error", f"at most {100.0 * max(inertial.values()):.1f} % along the clips"))
    if "step" in notes:
        step = notes["step"]
        least, median, drawn = (f"{1e3 * step[name]:.3f}" for name in ("least", "median", "with surface"))
        facts.append(("step", f"{least} ms at best, {median} ms median, {drawn} ms with the surface"))
        facts.append(("memory", f"{step['bytes'] / 1e6:.1f} MB of tables while it moves"))
    return tuple(facts)


def _bony_fact(model: PoseSpaceModel) -> list[tuple[str, str]]:
    names = model.notes.get("firm joints", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return []
    if not names and _could_be_firm(model):
        return [
            ("firm", "no hands, feet or head known by their joints' names; see firm under [material], or paint them")
        ]
    words = f"{_some(names)}, by their names or the project's (bony = false: as soft as the rest)"
    return [("firm", words)] if names else []


def _some(names: Sequence[str]) -> str:
    """Names of joints, not too many."""
    more = f", … ({len(names)})" if len(names) > MOST_JOINTS else ""
    return ", ".join(map(clean_name, names[:MOST_JOINTS])) + more


def _material_fact(model: PoseSpaceModel) -> list[tuple[str, str]]:
    """How stiff the flesh is: by volume as the build noted it, else by the chosen tets."""
    noted, whose = model.notes.get("young"), ""
    known = noted if isinstance(noted, list) and all(isinstance(value, float) for value in noted) else []
    if not (len(known) == 3 and 0.0 < known[0] <= known[1] <= known[2] <= MOST_YOUNG):
        young = np.asarray(model.cubature.young)
        if not young.size:
            return []
        known, whose = np.percentile(young, (5.0, 50.0, 95.0)).tolist(), " (of the chosen tets)"
    low, middle, high = (figure(value / 1e3) for value in known)
    spread = "" if low == high else f", most of it {low} to {high}"
    return [("flesh", f"Young's modulus {middle} kPa{spread}{whose}")]


def _could_be_firm(model: PoseSpaceModel) -> bool:
    """Whether joints with telling names would be firm: there is a skin, `bony` is on and nothing is painted."""
    skin = skin_of(model.rig)
    if skin is None or len(skin.binding.bones) < 2:
        return False  # a single bone carries all of the body, and no hand
    project = model.notes.get("project")
    if "firm joints" not in model.notes or not isinstance(project, dict):
        return False  # made by no build, or by one that knew of no firm joints
    material = project.get("material", {})
    if not isinstance(material, dict) or not material.get("bony", True):
        return False
    return not any(isinstance(material.get(name), str) for name in ("softness_map", "stiffness_map", "young"))


def clean_name(name: str) -> str:
    """A name from a file, without what a terminal would obey, and no longer than a line bears."""
    return "".join(letter for letter in name if letter.isprintable())[:LONGEST_NAME]


def _errors_along_clips(notes: Mapping[str, Any], of: str = "cubature") -> dict[str, float]:
    """Errors by moment, of the forces or of the "inertia"; whatever else a file has there is left out."""
    table = notes.get(of)
    found = table.get("along clips") if isinstance(table, dict) else None
    if not isinstance(found, dict):
        return {}
    return {
        clean_name(name): float(error) for name, error in found.items() if isinstance(name, str) and _is_finite(error)
    }


def _is_finite(value: object) -> bool:
    # Not math.isfinite, which raises where an integer is larger than any float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _basis_words(model: PoseSpaceModel) -> str:
    return "one basis" if len(model.shapes) == 1 else "shapes interpolated"


def _region_words(model: PoseSpaceModel) -> str:
    whole = sum(name == WHOLE_BODY for name in model.region_names)
    words = f"in {counted(len(model.region_names) - whole, 'region')}"
    return f"{words} and over the whole body" if whole else words


def _follower_words(model: PoseSpaceModel) -> list[tuple[str, str]]:
    count = model.follower_count
    return [("followers", f"{counted(count, 'shape')} beside the modes, drawn and not simulated")] if count else []


def _cubature_words(model: PoseSpaceModel) -> str:
    tets = counted(len(model.cubature.tets), "tet")
    vertices = len(model.cubature.inertial_vertices)
    return f"{tets}, {vertices} vert{'ices' if vertices > 1 else 'ex'} for inertia" if vertices else tets


def model_bytes(model: PoseSpaceModel) -> int:
    """The model's arrays as its file stores them, without clips and report."""
    tensors = tensors_of(model)
    return sum(array.nbytes for name, array in tensors.items() if name != "document" and not name.startswith("clip."))


def _pose_rows(model: PoseSpaceModel) -> Table:
    basis, fits = model.notes.get("basis", {}), model.notes.get("fit", [])
    edges = {tuple(edge): index for index, edge in enumerate(basis.get("tree", []))}
    rows = []
    for i, pose in enumerate(model.poses.names):
        fit = fits[i] if i < len(fits) else {}
        known = basis.get("subspace angles", [])
        angles = next((known[index] for (_, j), index in edges.items() if j == i and index < len(known)), None)
        rows.append(
            (
                pose,
                f"{model.frequencies[i].min():.2f} Hz",
                f"{1e3 * fit['error']:.1f} mm" if fit else "–",
                "–" if angles is None else f"{np.mean(angles):.0f}° / {np.max(angles):.0f}°",
                str(basis.get("contacts", [0] * len(model.poses))[i]),
                f"{100.0 * basis['compliance']['mean'][i]:.1f} %" if "compliance" in basis else "–",
            )
        )
    head = ("pose", "lowest frequency", "fit error", "subspace angle mean / largest", "contacts", "compliance")
    return ("Poses", head, tuple(rows))


def _region_rows(model: PoseSpaceModel) -> Table:
    counts = np.bincount(model.region_of_mode, minlength=len(model.region_names))
    rows = []
    for region, (name, count) in enumerate(zip(model.region_names, counts, strict=True)):
        reached = model.shapes[..., model.region_of_mode == region].any(axis=(0, 2, 3)).sum()
        rows.append((name, str(count), f"{reached:,}"))
    return ("Regions", ("region", "modes", "vertices"), tuple(rows))


def soft_problems(model: PoseSpaceModel) -> tuple[str, ...]:
    """What a user should know before trusting the model."""
    problems = []
    proposed = likelier_scale(model.size, noted_scale(model.notes))
    if proposed is not None:
        problems.append(
            f"the character is {model.size:.3g} m from corner to corner, and moves like a thing of that size; if its "
            f"unit is not the metre, write scale = {proposed:g} at the top of the project file and build again, or "
            f"build with --scale {proposed:g}"
        )
    if trouble := rig_trouble(model.rig, model.clips):
        problems.append(trouble)
    for name, fit in zip(model.poses.names, model.notes.get("fit", []), strict=False):
        if fit.get("inverted"):
            turned = so_many_are(round(fit["inverted"]), "tet")
            problems.append(f"pose '{name}': {turned} inside out; choose a milder pose")
    learned = model.notes.get("stiffness map", {"kept": True})
    if not learned["kept"]:
        problems.append(
            f"the stiffness between the poses could not be learned ({learned['softest']:.2g} to "
            f"{learned['stiffest']:.2g} times the true one at sample poses) and is mixed; more poses help"
        )
    if model.notes.get("leans on tets") and len(model.cubature.tets) < LEAN_ON * model.mode_count:
        problems.append(
            f"the model leans on its chosen tets, and {len(model.cubature.tets):,} may let it fly apart; leave "
            f"cubature.count out of the project file, or ask for three a mode"
        )
    if trouble := region_trouble(model):
        problems.append(trouble)
    between = _errors_along_clips(model.notes)
    if between and max(between.values()) > LOOSE:
        moment = max(between, key=lambda name: between[name])
        by_tets = model.notes.get("leans on tets") or len(model.cubature.tets) < model.mode_count
        few = "more of them (cubature.count)" if by_tets else "more poses"
        stiffness = "mixed" if model.cubature.stiffness_map is None else "learned"
        mixed_in = model.cubature.stiffness_map is None and _touches_itself(model)
        springs = " (contacts' springs included)" if mixed_in else ""
        problems.append(
            f"{moment}: the {len(model.cubature.tets):,} chosen tets and the {stiffness} stiffness give forces "
            f"{100.0 * between[moment]:.0f} % off{springs}; {few} help"
        )
    return tuple(problems)


def soft_remarks(model: PoseSpaceModel) -> tuple[str, ...]:
    """What would bring a sound model nearer to the full body, and how to ask for it."""
    suggested = model.notes.get("suggested poses", [])
    remarks = [f"worth a pose: {pose['name']} ({pose['reason']})" for pose in suggested]
    if not model.clips:
        remarks.append(
            "there are no clips, so nothing was rehearsed and there is nothing to bake; add clips to the file, or "
            "poses by hand under [poses] in the project file"
        )
    if lines := _lines_for_poses(model, [pose["name"] for pose in suggested]):
        remarks.append(
            f"to add what is worth a pose, let [poses] in the project file be this, and build again:\n{lines}"
        )
    skin = skin_of(model.rig)
    if skin is not None and not model.notes.get("firm joints") and _could_be_firm(model):
        remarks.append(
            "no joint is called hand, foot, head or the like, so all flesh is equally soft; what is mostly bone there "
            'flaps: name its joints, firm = ["…"] under [material] in the project file, or paint it; joints at the '
            f"ends are {_some(outer_joints(skin))}"
        )
    shares = model.notes.get("basis", {}).get("compliance", {}).get("mean", [])
    if shares and min(shares) < STIFF:
        worst = int(np.argmin(shares))
        rehearsed = " (rehearsed clips are followed closer)" if WHOLE_BODY in model.region_names else ""
        remarks.append(
            f"pose '{model.poses.names[worst]}': the shapes take up {100.0 * shares[worst]:.0f} % of all that the rig "
            f"could do to the flesh{rehearsed}; more modes (basis.modes) help"
        )
    return tuple(remarks)


def stillness_words(model: PoseSpaceModel) -> str:
    """What may be the reason that flesh does not move at all in a clip."""
    if trouble := rig_trouble(model.rig, ()):
        return trouble
    if model.fixed.all():
        return "all of it is held: paint more softness, or give fewer parts as rigid"
    return (
        "the clip may move nothing that carries flesh, or the flesh may be far too stiff ([material]) or small (scale)"
    )


def _touches_itself(model: PoseSpaceModel) -> bool:
    """Whether there are contacts at any pose. Their springs are meant; where they are mixed in they count as errors."""
    basis = model.notes.get("basis")
    contacts = basis.get("contacts") if isinstance(basis, dict) else None
    return isinstance(contacts, list) and any(_is_finite(count) and count > 0 for count in contacts)


def region_trouble(model: PoseSpaceModel) -> str:
    """What is wrong with the regions whose stiffness the model's settings change; "" if nothing is."""
    project = model.notes.get("project")
    settings = project.get("simulation") if isinstance(project, dict) else None
    scales = settings.get("stiffness") if isinstance(settings, dict) else None
    if not isinstance(scales, dict):
        return ""
    unknown = [clean_name(str(name)) for name in scales if name not in model.region_names]
    if not unknown:
        return ""
    more = f", … ({len(unknown)})" if len(unknown) > MOST_JOINTS else ""
    return (
        f"simulation.stiffness: '{clean_name(model.name)}' has no region {', '.join(unknown[:MOST_JOINTS])}{more}; "
        f"its regions: {', '.join(map(clean_name, model.region_names))}. That stiffness is left out"
    )


def _lines_for_poses(model: PoseSpaceModel, names: list[str]) -> str:
    """The table of the project file that adds poses called "walk @ 0.43 s" to those there are; of others, nothing."""
    clips = {clip.name for clip in model.clips}
    found = [re.fullmatch(r"(.*) @ (\d+\.\d+) s", name) for name in names]
    added = [{"clip": match[1], "time": float(match[2])} for match in found if match and match[1] in clips]
    if not added:
        return ""
    decided = Project().changed(poses=model.notes.get("project", {}).get("poses", {}))
    given = [pose.model_dump() for pose in decided.poses.given]
    added = added[: MOST_POSES - decided.poses.count]
    # The count is of all together: as many as before are chosen beside these.
    if not added:
        return ""
    more = decided.changed(poses={"count": decided.poses.count + len(added), "given": given + added})
    return project_toml(more).strip()


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


def inspect_domains(model: MultiDomainModel, name: str) -> Inspection:
    """Domains, modes and springs of a character cut at its joints."""
    facts = (
        ("kind", f"character in {counted(len(model.domains), 'domain')}, one a bone"),
        ("modes", f"{model.mode_count:,} together"),
        ("tets", f"{len(model.tets):,}, of which {sum(len(d.tets) for d in model.domains):,} stand for all"),
        ("vertices", f"{len(model.vertices):,} simulated, {len(model.embedding_nodes):,} drawn"),
        ("interfaces", f"{len(model.seams)}, springs of {figure(model.spring)} Pa/m"),
        ("lowest frequency", f"{figure(model.frequency)} Hz"),
        ("clips", ", ".join(clip.name for clip in model.clips) or "none"),
    )
    rows = [
        (domain.name, str(domain.rank), f"{len(domain.vertices):,}", f"{figure(float(domain.mass.sum()))} kg")
        for domain in model.domains
    ]
    head = ("domain", "modes", "vertices", "mass")
    return Inspection(f"{name} (model)", facts, (("Domains", head, tuple(rows)),))


def inspect_tree(model: SubstructuredModel, name: str) -> Inspection:
    """Domains, modes and shapes of a body in a tree of domains."""
    facts = (
        ("kind", "reduced StVK domains in a tree, the root " + ("floating" if model.floating else "held")),
        ("domains", f"{len(model.domains):,}, at most {model.depth} in a row"),
        ("modes", f"{model.size:,} together"),
        ("vertices", f"{model.drawn_count:,} drawn"),
        ("triangles", f"{len(model.triangles):,}"),
        ("mass", f"{figure(model.mass)} kg"),
    )
    numbers = np.array([domain.shape for domain in model.domains])
    scales = np.array([domain.scale for domain in model.domains])
    rows = []
    for number, shape in enumerate(model.shapes[:MOST_SHAPES]):
        own = scales[numbers == number]
        slowest = f"{figure(float(shape.frequencies[0]))} Hz" if shape.size else "rigid"
        span = figure(float(own.min())) if np.ptp(own) == 0.0 else f"{figure(own.min())} to {figure(own.max())}"
        rows.append((shape.name, str(len(own)), span, str(shape.size), f"{len(shape.vertices):,}", slowest))
    head = ("shape", "instances", "scale", "modes", "vertices", "slowest mode")
    more = len(model.shapes) - MOST_SHAPES
    remarks = (f"{counted(more, 'more shape')} left out",) if more > 0 else ()
    legend = "slowest mode: of the shape by itself at scale 1, held where it is held"
    return Inspection(f"{name} (model)", facts, (("Shapes", head, tuple(rows)),), legend=legend, remarks=remarks)
