"""`softrig characters`: the built-in ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def characters(
    names: Annotated[list[str] | None, typer.Argument(help="Which to write; without names they are listed.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(),
    everything: Annotated[bool, typer.Option("--all", help="Write all of them.")] = False,
) -> None:
    """List the built-in characters, or write them as GLB."""
    from softrig.characters import CHARACTERS, built_in

    wanted = list(CHARACTERS) if everything else names or []
    if not wanted:
        for name, make in CHARACTERS.items():
            typer.echo(f"  {name:<10} {(make.__doc__ or '').strip().splitlines()[0]}")
        typer.echo("Write one with: softrig characters NAME")
        return
    from softrig.console import stages
    from softrig.io.glb_writer import write_character_glb

    output.mkdir(parents=True, exist_ok=True)
    with stages() as work:
        for name in wanted:
            with work.stage(f"Making {name}"):
                write_character_glb(built_in(name), output / f"{name}.glb")
    for name in wanted:
        typer.echo(f"  {output / name}.glb")
