"""`softrig mesh`: a character filled with tets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import decisions


def mesh(
    file: Annotated[
        Path, typer.Argument(help="A character (.glb, .gltf, .vrm; .fbx, .blend, .usd by Blender), or a built-in one.")
    ],
    project: Annotated[Path | None, typer.Argument(help="Project file (.toml); FILE's own, if there is one.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .npz to write; default beside FILE.")
    ] = None,
    tets: Annotated[
        int | None, typer.Option(min=100, help="About how many tets; default: the project's, or 16000.")
    ] = None,
    mesher: Annotated[
        str | None,
        typer.Option(
            help="lattice (seconds), or wild: fTetWild, minutes, the extra softrig\\[wild]; default: the project's."
        ),
    ] = None,
    scale: Annotated[float | None, typer.Option(help="Metres per unit of the file.", min=1e-9)] = None,
) -> None:
    """Fill a character with tets, as build does: writes mesh (.npz) and picture (.png), prints the quality report."""
    from softrig.console import stages
    from softrig.pipeline.flesh import prepared_character
    from softrig.pipeline.sources import named_character
    from softrig.volume import character_volume, quality_lines, write_volume, write_volume_picture

    target = output or file.with_name(f"{file.stem}-tets.npz")
    decided, _ = decisions(file, project, scale=scale, tets=tets)
    with stages() as work:
        with work.stage("Reading"):
            character = prepared_character(named_character(str(file), scale=decided.scale), decided)
        with work.stage("Filling with tets") as update:
            volume = character_volume(
                character, tets=decided.mesh.tets, mesher=mesher or decided.mesh.mesher, progress=update
            )
        with work.stage("Writing"):
            write_volume(volume, target)
            write_volume_picture(volume, target.with_suffix(".png"))
    for what, value in quality_lines(volume):
        typer.echo(f"  {what:<20} {value}")
    typer.echo(f"  {target}\n  {target.with_suffix('.png')}")
