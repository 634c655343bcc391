"""The command line: the commands of `softrig.commands` put together, and what becomes of errors."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from softrig.commands.bake import bake
from softrig.commands.bench import bench
from softrig.commands.blender import blender_app
from softrig.commands.build import build
from softrig.commands.characters import characters
from softrig.commands.compare import compare
from softrig.commands.convert import convert
from softrig.commands.demo import demo
from softrig.commands.figures import figures
from softrig.commands.info import info
from softrig.commands.mesh import mesh
from softrig.commands.picture import picture
from softrig.commands.view import view
from softrig.version import __version__

STOPPED = 130
"""What a command returns that Ctrl-C stopped."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Soft bodies by model-reduced finite elements; characters in and out.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"softrig {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


# In the order of --help.
for _command in (demo, info, mesh, convert, characters, build, bake, picture, view, compare, bench, figures):
    app.command()(_command)
app.add_typer(blender_app, name="blender")


def main() -> None:
    """Run the command line; softrig's own errors become one line and exit code 1."""
    from softrig.errors import SoftrigError
    from softrig.words import told_by_system

    # Notices are for people here: one line each, without the place in the code.
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"softrig: note: {message}", err=True)
    try:
        app()
    except SystemExit as end:
        if end.code == STOPPED:  # by Ctrl-C, which the library for commands takes for itself
            typer.echo("softrig: stopped; what a build or a comparison of a file has finished is kept", err=True)
        raise
    except SoftrigError as error:
        typer.echo(f"softrig: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(f"softrig: {told_by_system(error)}", err=True)
        sys.exit(1)
