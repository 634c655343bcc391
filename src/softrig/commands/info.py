"""`softrig info`: what a file holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import decisions, remark_lines


def info(
    file: Annotated[Path, typer.Argument(help="A character (.glb, .gltf, .vrm) or a model (.softrig).")],
    scale: Annotated[
        float | None, typer.Option(help="Metres per unit of the file; default: the project file's, or 1.", min=1e-9)
    ] = None,
) -> None:
    """Tell what a file holds: parts, joints, clips, size, and the problems found."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from softrig.inspection import inspect_file, is_character

    source = None
    if scale is None and is_character(file):
        project, source = decisions(file, None, scale=None, tets=None)
        scale = project.scale
    found = inspect_file(file, scale=1.0 if scale is None else scale)
    if source is not None and scale is not None:
        found = replace(found, facts=(("scale", f"{scale:g} metres per unit, by {source.name}"), *found.facts))
    console = Console()
    console.print(f"[bold]{found.title}[/bold]", highlight=False)
    facts = Table.grid(padding=(0, 1, 0, 0))
    facts.add_column(min_width=22, no_wrap=True)
    facts.add_column(overflow="fold")  # what is long goes on below itself
    for what, value in found.facts:
        facts.add_row(Text(f"  {what}"), Text(value))
    console.print(facts)
    for title, head, rows in found.tables:
        table = Table(title=title, title_justify="left")
        for column in head:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if found.legend:
        console.print(found.legend, style="dim", highlight=False, markup=False)
    problems = Table.grid(padding=(0, 1, 0, 0))
    for problem in found.problems:
        problems.add_row(Text("!", style="yellow"), Text(problem, style="yellow"))
    if found.problems:
        console.print(problems)
    for line in remark_lines(found.remarks):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
