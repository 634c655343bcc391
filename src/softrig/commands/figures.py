"""`softrig figures`: the papers' figures again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def figures(
    names: Annotated[list[str] | None, typer.Argument(help="Which ones; all by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("docs/gallery"),
    listing: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
) -> None:
    """Make clips and the papers' figures again: pictures, their numbers (JSON) and a page of all of them (index.md)."""
    from softrig.figures import FIGURES, figure_line, run_figures

    if listing:
        for name in FIGURES:
            typer.echo(f"  {name:<17} {figure_line(name)}")
        return
    for figure in run_figures(names or [], output):
        typer.echo(f"  {output / figure.name}.png")
    typer.echo(f"All of them: {output / 'index.md'}")
