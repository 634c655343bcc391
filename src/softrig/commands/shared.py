"""What several commands do alike."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel
    from softrig.project import Project


STILL = 1e-6
"""Metres: flesh that is never further from plain skinning does not move."""


def decisions(
    file: Path, project: Path | None, *, scale: float | None, tets: int | None, modes: int | None = None
) -> tuple[Project, Path | None]:
    """The project of a character file, with what the command says instead; and where it was read, if anywhere."""
    from softrig.project import Project, load_project

    own = file.with_suffix(".toml")
    chosen = project or (own if file.exists() and own.exists() else None)
    decided = load_project(chosen) if chosen else Project()
    if scale is not None:
        decided = decided.model_copy(update={"scale": scale})
    if modes is not None:
        decided = decided.changed(basis={"modes": modes})
    return (decided if tets is None else decided.changed(mesh={"tets": tets})), chosen


REMARKS = "Remarks, not problems; what would bring it nearer to the full body:"


def tell_model(model: PoseSpaceModel, remarks: str = REMARKS) -> None:
    """Print what a user should know of a new model, and on standard error what is wrong with it or could be better.

    `remarks`: what stands above the latter.
    """
    from softrig.inspection import soft_facts, soft_problems, soft_remarks

    for what, value in soft_facts(model):
        typer.echo(f"  {what:<20} {value}")
    for problem in soft_problems(model):
        typer.echo(f"! {problem}", err=True)
    for line in remark_lines(soft_remarks(model), remarks):
        typer.echo(line, err=True)


def remark_lines(remarks: Sequence[str], title: str = REMARKS) -> list[str]:
    """Remarks as a list under their title, set in, so that none looks like a problem; of none, nothing."""
    lines = [f"  - {remark}".replace("\n", "\n      ") for remark in remarks]
    return [title, *lines] if lines else []


def require_model(path: Path) -> None:
    """Refuse what is no model by its name, and say how one is made of it."""
    from softrig.characters import CHARACTERS
    from softrig.errors import InputError
    from softrig.io.characters import LOADERS
    from softrig.words import no_such_file

    is_built_in = not path.exists() and str(path) in CHARACTERS
    if not path.exists() and not is_built_in:
        raise InputError(f"{path}: {no_such_file(path)}")
    if is_built_in or path.suffix.lower() in LOADERS:
        raise InputError(
            f"{path}: by its name this is a character, not a model; build it first: "
            f"softrig build {shlex.quote(str(path))}, which makes {path.with_suffix('.softrig')}"
        )


def refuse_model(path: Path, command: str, *words: str) -> None:
    """Refuse a model where `command` takes a character, and name the character's file if the model knows it."""
    from softrig.characters import CHARACTERS
    from softrig.errors import InputError, SoftrigError
    from softrig.models.file import load_model

    if path.suffix.lower() != ".softrig" or not path.exists():
        return
    try:
        source = getattr(load_model(path), "notes", {}).get("source")
    except SoftrigError:
        source = None  # damaged; that it is the wrong kind of file is true all the same
    known = source if isinstance(source, dict) else {}
    # As in `model_character`: the file lies beside the model, whatever else a name in a file says.
    file = str(path.parent / Path(str(known["file"])).name) if "file" in known else str(known.get("name"))
    # A terminal would obey what cannot be printed.
    named = ("file" in known or file in CHARACTERS) and file.isprintable()
    typed = f": softrig {command} {shlex.join([file, *words])}" if named else ""
    raise InputError(f"{path}: {command} takes the character file, not the model{typed}")


def require_softrig(target: Path) -> None:
    """Refuse a place to which no model can be written, before the work begins."""
    from softrig.errors import InputError
    from softrig.files import require_writable

    if target.suffix.lower() != ".softrig":
        raise InputError(f"{target}: a model file ends in .softrig")
    require_writable(target)
