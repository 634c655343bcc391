"""From what somebody wants to see (a file, a name, a model, a simulation) to a subject and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softrig.characters import CHARACTERS
from softrig.errors import InputError, ModelFileError, SoftrigError
from softrig.models.file import load_model
from softrig.models.full import FullBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.pipeline.maps import ENDING as MAP_ENDING
from softrig.pipeline.sources import named_character
from softrig.project import Project, load_project
from softrig.rig.character import Character
from softrig.simulation import Simulation
from softrig.viewer.body import SoftBody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.plain import PlainCharacter
from softrig.viewer.subjects import Subject

BODY_STEP = 1e-3
"""Seconds: the step of a reduced body that comes without a simulation."""
ENDINGS = (".softrig", ".glb", ".vrm")
"""What may be uploaded."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A subject and what is known of its origin."""

    subject: Subject
    project: Project
    project_path: Path | None = None
    """Where decisions are kept; the file may not exist yet."""
    source: Path | str | None = None
    """The character's file, or the name of a built-in one; None: it cannot be built anew."""
    model_path: Path | None = None
    character: Character | None = None
    body: FullBody | None = None
    """Of a plain body: the full one, for sketches."""
    uploaded: bool = False
    """Whether its folder goes when the viewer is closed: nothing can be saved there."""


def opened(thing: Any, *, project: Path | None = None, body: FullBody | None = None, up: str = "z") -> Opened:
    """Open a path, a built-in character's name, a character, a model, a body or a simulation of one.

    `project`: the project file; default: the one beside the character. `body`, `up`: of plain bodies.
    """
    if isinstance(thing, str | Path):
        return _file(thing, project, up)
    if isinstance(thing, Character):
        return _character(thing, thing.source, project)
    if isinstance(thing, PoseSpaceModel | Simulation):
        return _model(thing, None, project)
    if isinstance(thing, ReducedBody):
        thing = ReducedSimulation(thing, BODY_STEP)
    if isinstance(thing, ReducedSimulation):
        subject = SoftBody(thing, up=up)
        subject.body = body
        return Opened(subject, Project(), body=body)
    raise InputError(
        f"cannot show a {type(thing).__name__}: give a file, a character, a model, a Simulation or a ReducedSimulation"
    )


def _file(name: str | Path, project: Path | None, up: str) -> Opened:
    path = Path(name)
    if path.suffix.lower() != ".softrig":
        builtin = not path.exists() and str(name) in CHARACTERS
        home = Path(f"{name}.toml") if builtin else path.with_suffix(".toml")
        decided, where = _project(project, None if builtin else home, home)
        character = named_character(name, scale=decided.scale)
        return Opened(
            PlainCharacter(character),
            decided,
            where,
            source=str(name) if builtin else path,
            model_path=Path(f"{name}.softrig") if builtin else path.with_suffix(".softrig"),
            character=character,
        )
    if not path.is_file():
        raise ModelFileError(f"{path}: there is no such file")
    model = load_model(path)
    if isinstance(model, ReducedBody):
        subject = SoftBody(ReducedSimulation(model, BODY_STEP), name=path.stem, up=up)
        return Opened(subject, Project(), model_path=path)
    return _model(model, path, project)


def _model(thing: PoseSpaceModel | Simulation, path: Path | None, project: Path | None) -> Opened:
    subject = SoftCharacter(thing.model, thing) if isinstance(thing, Simulation) else SoftCharacter(thing)
    source = model_source(subject.model, path)
    beside = (
        source.with_suffix(".toml") if isinstance(source, Path) else None if path is None else path.with_suffix(".toml")
    )
    decided, where = _project(project, beside, beside)
    if where is None or not where.exists():
        decided = noted_project(subject.model)
    return Opened(subject, decided, where, source, path, _painted_character(decided, source))


def _painted_character(project: Project, source: Path | str | None) -> Character | None:
    """The character itself where painted maps are in its file, and it can be read."""
    names = [project.material.softness_map, *(pose.softness_map for pose in project.material.poses.values())]
    if source is None or all(name is None or name.lower().endswith(MAP_ENDING) for name in names):
        return None
    try:
        return named_character(source, scale=project.scale)
    except (SoftrigError, OSError):
        return None


def _character(character: Character, source: Path | None, project: Path | None) -> Opened:
    beside = None if source is None else source.with_suffix(".toml")
    decided, where = _project(project, beside, beside)
    return Opened(
        PlainCharacter(character),
        decided,
        where,
        source=source,
        model_path=None if source is None else source.with_suffix(".softrig"),
        character=character,
    )


def model_source(model: PoseSpaceModel, path: Path | None) -> Path | str | None:
    """What a model can be built anew from: the file beside it that it was built from, or a built-in name."""
    note = model.notes.get("source", {})
    if "file" in note and path is not None:
        file = path.parent / Path(str(note["file"])).name
        return file if file.is_file() else None
    name = str(note.get("name", ""))
    return name if "file" not in note and name in CHARACTERS and path is not None else None


def noted_project(model: PoseSpaceModel) -> Project:
    """The decisions that a model was built by; defaults where its notes are not understood."""
    try:
        return Project().changed(**model.notes.get("project", {}))
    except (SoftrigError, TypeError, AttributeError, KeyError):
        return Project()


def _project(given: Path | None, beside: Path | None, default: Path | None) -> tuple[Project, Path | None]:
    """The decisions, and where they are or would be kept."""
    if given is not None:
        return load_project(given), given
    if beside is not None and beside.is_file():
        return load_project(beside), beside
    return Project(), default
