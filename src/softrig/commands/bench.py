"""`softrig bench`: figures of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which ones (see --list), all by default; with --fill: pages or folders.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the records; default: bench, docs/records with --fill."),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="One Markdown page with all tables.")] = None,
    long: Annotated[bool, typer.Option("--long", help="The long studies, too.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Say what there is and how long it takes.")] = False,
    fill: Annotated[
        bool,
        typer.Option("--fill", help="Write the records' tables into pages, between their markers; measure nothing."),
    ] = False,
) -> None:
    """Measure this machine and print ours beside the published and the peers' figures."""
    from softrig.bench import fill_pages, listing, run_benches

    if listed:
        for line in listing():
            typer.echo(line)
    elif fill:
        for path in fill_pages([Path(name) for name in names or []], output or Path("docs/records")):
            typer.echo(f"  {path}")
    else:
        run_benches(names or [], output or Path("bench"), page, long=long)
        typer.echo(f"Records (JSON and Markdown) are in {output or Path('bench')}.")
