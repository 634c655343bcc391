"""`softrig view`: the live viewer."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer


def view(
    file: Annotated[
        str, typer.Argument(help="A model (.softrig), a character (.glb, .vrm), or a built-in name: gorilla, flower …")
    ],
    project: Annotated[
        Path | None, typer.Option(help="Project file to save into; default: the one beside FILE.")
    ] = None,
    clip: Annotated[str | None, typer.Option(help="Clip to begin with; the first by default.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than 127.0.0.1 opens the viewer to other machines.")
    ] = "127.0.0.1",
    up: Annotated[str, typer.Option(help="Of a plain body: its axis that points up, y or z.")] = "z",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open the live viewer: play, pull, tune, paint, build, look inside, take away."""
    from softrig.console import stages
    from softrig.io.blender_files import ENDINGS as THROUGH_BLENDER
    from softrig.viewer.view import Prepared, reach

    # What cannot be shown is said at once, before a word about compiling. What another program reads takes a while.
    slowly = Path(file).is_file() and Path(file).suffix.lower() in THROUGH_BLENDER
    with stages() if slowly else nullcontext() as work, work.stage("Reading") if work else nullcontext():
        prepared = Prepared(file, project=project, clip=clip, host=host, port=port, up=up)
    with stages() as work, work.stage("Opening (compiles the first time)"):
        viewer = prepared.open()
    with viewer:
        try:
            if not no_browser:
                viewer.show()
            typer.echo(f"The viewer is at {viewer.url}")
            if (opens := reach(viewer)) is not None:
                typer.echo(f"! {opens}", err=True)
            typer.echo("Ctrl+C ends it.")
            viewer.wait()
        except KeyboardInterrupt:
            typer.echo("softrig: the viewer is closed", err=True)
