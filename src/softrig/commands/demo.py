"""`softrig demo`: a soft gorilla, or a crate that falls on a bridge."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import tell_model

REMARKS = (
    "Remarks, not problems: the demo is finished, and coarse so that it is quick. This would bring it nearer to the\n"
    "full body; for a character of your own, hero.glb, such lines go into hero.toml beside it:"
)


def demo(
    what: Annotated[
        str, typer.Argument(help="character (a soft gorilla) or bridge (a crate falls on it).")
    ] = "character",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("demo"),
) -> None:
    """Build a soft gorilla, bake its jump into a GLB, write before/after pictures and a report; or drop a crate."""
    typer.echo("Compiling takes about a minute the first time; the result is kept.", err=True)
    {"character": _character_demo, "bridge": _bridge_demo}.get(what, _unknown_demo)(output)


def _unknown_demo(output: Path) -> None:
    from softrig.errors import InputError

    raise InputError("there are two demos: character and bridge")


def _character_demo(output: Path) -> None:
    from softrig.demo import run_character_demo
    from softrig.words import millimetres

    result = run_character_demo(output)
    tell_model(result.model, REMARKS)
    typer.echo(f"The jump moves the flesh up to {millimetres(result.largest_offset)} from plain skinning.")
    for path in result.files:
        typer.echo(f"  {path}")
    typer.echo(f"Look at {result.files[-1]}; open {result.baked.path} in any glTF viewer.")
    typer.echo(f"Play it live: {Path(sys.argv[0]).as_posix()} view {output / 'gorilla.softrig'}")


def _bridge_demo(output: Path) -> None:
    from softrig.demo import run_demo

    result = run_demo(output)
    typer.echo(
        f"{result.bricks:,} bricks reduced to {result.modes} modes; a step takes {1e6 * result.step.median:.1f} µs."
    )
    error = 100.0 * (result.static_reduced / result.static_full - 1.0)
    typer.echo(
        f"Deflection under the crate: {1e3 * result.static_reduced:.1f} mm reduced, "
        f"{1e3 * result.static_full:.1f} mm full ({error:+.1f} %)."
    )
    for path in result.files:
        typer.echo(f"  {path}")
