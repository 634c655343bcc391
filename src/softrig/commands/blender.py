"""`softrig blender …`: what is done by Blender."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

blender_app = typer.Typer(
    no_args_is_help=True, help="Blender in a process of its own: FBX and .blend in, Alembic out, and comparisons."
)


@blender_app.command("install")
def blender_install() -> None:
    """Install Blender's Python module (GPL) into an environment of its own: 0.4 GB to download, 1 GB on disk."""
    from softrig.io.blender_install import install_blender

    found = install_blender(tell=lambda line: typer.echo(f"  {line}", err=True))
    typer.echo(f"Blender {found.version} is ready in {found.blender.path.parent.parent}")


@blender_app.command("check")
def blender_check() -> None:
    """Say which Blender softrig finds, and whether it works."""
    from softrig.io.blender import check_blender

    found = check_blender()
    typer.echo(f"Blender {found.version} on Python {found.python}, {found.blender.found_by}: {found.blender.path}")
    for lacking in found.missing:
        typer.echo(f"! it has no {lacking}")


@blender_app.command("compare")
def blender_compare(
    file: Annotated[Path, typer.Argument(help="A .glb, such as one that 'softrig convert' has written.")],
    clip: Annotated[str | None, typer.Option(help="Name of the clip; the first by default.")] = None,
    frames: Annotated[int, typer.Option(min=1, max=1000, help="Times at which to compare.")] = 10,
) -> None:
    """Open a GLB in Blender and print how far its vertices are from softrig's."""
    from softrig.io.blender_files import compare_with_blender

    off = compare_with_blender(file, clip=clip, frames=frames)
    typer.echo(
        f"{file.name}, clip {off.clip!r}, {off.frames} frames: Blender is {1e3 * off.largest:.2g} mm off at most"
    )
