"""`softrig info`: what a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import remark_lines


def info(
    file: Annotated[Path, typer.Argument(help="A character (.glb, .gltf, .vrm) or a model (.softrig).")],
    scale: Annotated[float, typer.Option(help="Metres per unit of the file.", min=1e-9)] = 1.0,
) -> None:
    """Tell what a file holds: parts, joints, clips, size, and the problems found."""
    from rich.console import Console
    from rich.table import Table

    from softrig.inspection import inspect_file

    found = inspect_file(file, scale=scale)
    console = Console()
    console.print(f"[bold]{found.title}[/bold]", highlight=False)
    for what, value in found.facts:
        console.print(f"  {what:<20} {value}", highlight=False, markup=False)
    for title, head, rows in found.tables:
        table = Table(title=title, title_justify="left")
        for column in head:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if found.legend:
        console.print(found.legend, style="dim", highlight=False, markup=False)
    for problem in found.problems:
        console.print(f"! {problem}", style="yellow", highlight=False, markup=False)
    for line in remark_lines(found.remarks):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
