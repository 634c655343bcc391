"""What several commands do alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel
    from softrig.project import Project


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


def require_softrig(target: Path) -> None:
    """Refuse a place to which no model can be written, before the work begins."""
    from softrig.errors import InputError
    from softrig.files import require_writable

    if target.suffix.lower() != ".softrig":
        raise InputError(f"{target}: a model file ends in .softrig")
    require_writable(target)
