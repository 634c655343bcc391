"""From what somebody wants to see (a file, a name, a model, a simulation) to a subject and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from softrig.bodies import flower
from softrig.characters import CHARACTERS
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, ModelFileError, SoftrigError
from softrig.io.characters import LOADERS, unread_ending
from softrig.models.file import load_model
from softrig.models.full import FullBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.maps import ENDING as MAP_ENDING
from softrig.pipeline.sources import named_character
from softrig.pipeline.substructuring import substructure
from softrig.project import Project, load_project
from softrig.rig.character import Character
from softrig.simulation import Simulation
from softrig.viewer.body import SoftBody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.coats import coat_of
from softrig.viewer.plain import PlainCharacter
from softrig.viewer.subjects import Subject
from softrig.viewer.tree import SoftTree
from softrig.words import no_such_file

BODY_STEP = 1e-3
"""Seconds: the step of a reduced body that comes without a simulation."""
MODEL = ".softrig"
TREE_STEP, TREE_DAMPING = 1.0 / 180.0, Rayleigh(0.4, 0.004)
"""Seconds, and 1/s and s: of a tree of domains that comes without a simulation."""
TREES = {"flower": flower}
"""Built-in bodies in a tree of domains, reduced when they are asked for."""
UPLOADS = (".glb", ".vrm", MODEL)
"""Endings of characters and models that may be uploaded: those that are read here, and need no file beside them."""
SubjectT = TypeVar("SubjectT", SoftCharacter, PlainCharacter)


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


@dataclass(frozen=True, eq=False)
class Found:
    """What somebody wants to see, read from its file and sound, but not yet made ready to move."""

    thing: Character | PoseSpaceModel | ReducedBody | SubstructuredModel
    name: str
    path: Path | None
    """Its file; None: a built-in character."""
    project: Project
    project_path: Path | None

    @property
    def clips(self) -> tuple[str, ...]:
        """Names of its clips."""
        return tuple(clip.name for clip in getattr(self.thing, "clips", ()))


def found(name: str | Path, project: Path | None = None) -> Found:
    """Read a file, or make a built-in character; an error here comes before anything is compiled or opened."""
    path = Path(name)
    if not path.exists() and str(name) in TREES:
        return Found(substructure(TREES[str(name)]()), str(name), None, Project(), None)
    if path.suffix.lower() != MODEL:
        builtin = not path.exists() and str(name) in CHARACTERS
        if not builtin and path.is_dir():
            raise InputError(f"{path}: that is a folder; name a model (.softrig) or a character (.glb, .vrm) in it")
        if (path.is_file() or path.suffix) and path.suffix.lower() not in LOADERS:
            raise unread_ending(path, MODEL)
        home = Path(f"{name}.toml") if builtin else path.with_suffix(".toml")
        decided, where = _project(project, None if builtin else home, home)
        character = named_character(name, scale=decided.metres_per_unit)
        return Found(character, str(name), None if builtin else path, decided, where)
    if not path.is_file():
        raise ModelFileError(f"{path}: {no_such_file(path)}")
    model = load_model(path)
    if isinstance(model, ReducedBody | SubstructuredModel):
        return Found(model, path.stem, path, Project(), None)
    if not isinstance(model, PoseSpaceModel):
        raise InputError(f"{path}: the viewer shows no multi-domain models; step one with sr.MultiDomainSimulation")
    return Found(model, path.stem, path, *_model_project(model, model_source(model, path), path, project))


def opened(thing: Any, *, project: Path | None = None, body: FullBody | None = None, up: str = "z") -> Opened:
    """Open a path, a built-in character's name, a character, a model, a body or a simulation of one.

    `project`: the project file; default: the one beside the character. `body`, `up`: of plain bodies.
    """
    if isinstance(thing, str | Path):
        thing = found(thing, project)
    if isinstance(thing, Found):
        return _file(thing, up)
    if isinstance(thing, Character):
        return _character(thing, thing.source, project)
    if isinstance(thing, PoseSpaceModel | Simulation):
        model = thing.model if isinstance(thing, Simulation) else thing
        return _model(thing, None, *_model_project(model, None, None, project))
    if isinstance(thing, ReducedBody):
        thing = ReducedSimulation(thing, BODY_STEP)
    if isinstance(thing, ReducedSimulation):
        subject = SoftBody(thing, up=up)
        subject.body = body
        return Opened(subject, Project(), body=body)
    if isinstance(thing, SubstructuredModel):
        thing = tree_simulation(thing)
    if isinstance(thing, SubstructuredSimulation):
        return Opened(SoftTree(thing, up=up), Project())
    raise InputError(
        f"cannot show a {type(thing).__name__}: give a file, a character, a model, a Simulation, a ReducedSimulation "
        "or a SubstructuredSimulation"
    )


def tree_simulation(model: SubstructuredModel) -> SubstructuredSimulation:
    """A simulation of a tree of domains that comes without one; swings die away within seconds."""
    return SubstructuredSimulation(model, TREE_STEP, damping=TREE_DAMPING)


def _file(found: Found, up: str) -> Opened:
    thing, path = found.thing, found.path
    if isinstance(thing, ReducedBody):
        subject = SoftBody(ReducedSimulation(thing, BODY_STEP), name=found.name, up=up)
        return Opened(subject, Project(), model_path=path)
    if isinstance(thing, SubstructuredModel):
        return Opened(SoftTree(tree_simulation(thing), name=found.name, up=up), Project(), model_path=path)
    if isinstance(thing, PoseSpaceModel):
        return _model(thing, path, found.project, found.project_path)
    return Opened(
        _dressed(PlainCharacter(thing), thing),
        found.project,
        found.project_path,
        source=found.name if path is None else path,
        model_path=Path(f"{found.name}.softrig") if path is None else path.with_suffix(".softrig"),
        character=thing,
    )


def _model_project(
    model: PoseSpaceModel, source: Path | str | None, path: Path | None, given: Path | None
) -> tuple[Project, Path | None]:
    beside = (
        source.with_suffix(".toml") if isinstance(source, Path) else None if path is None else path.with_suffix(".toml")
    )
    decided, where = _project(given, beside, beside)
    if where is None or not where.exists():
        decided = noted_project(model)
    return decided, where


def _model(thing: PoseSpaceModel | Simulation, path: Path | None, decided: Project, where: Path | None) -> Opened:
    subject = SoftCharacter(thing.model, thing) if isinstance(thing, Simulation) else SoftCharacter(thing)
    source = model_source(subject.model, path)
    if isinstance(source, Path):
        _dressed(subject, _own_character(subject.model, source, decided))
    return Opened(subject, decided, where, source, path, _painted_character(decided, source))


def _own_character(model: PoseSpaceModel, source: Path, project: Project) -> Character | None:
    """The character that a model was built from, if the file has the same surface still."""
    try:
        character = named_character(source, scale=project.metres_per_unit)
    except (SoftrigError, OSError):
        return None
    same = np.array_equal(character.triangles, model.triangles)
    return character if same and character.rig.vertex_count == len(model.embedding_nodes) else None


def _dressed(subject: SubjectT, character: Character | None) -> SubjectT:
    """The same subject with the pictures of its character's file on it."""
    subject.coat = None if character is None else coat_of(character)
    return subject


def _painted_character(project: Project, source: Path | str | None) -> Character | None:
    """The character itself where painted maps are in its file, and it can be read."""
    names = [project.material.softness_map, *(pose.softness_map for pose in project.material.poses.values())]
    if source is None or all(name is None or name.lower().endswith(MAP_ENDING) for name in names):
        return None
    try:
        return named_character(source, scale=project.metres_per_unit)
    except (SoftrigError, OSError):
        return None


def _character(character: Character, source: Path | None, project: Path | None) -> Opened:
    beside = None if source is None else source.with_suffix(".toml")
    decided, where = _project(project, beside, beside)
    return Opened(
        _dressed(PlainCharacter(character), character),
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
