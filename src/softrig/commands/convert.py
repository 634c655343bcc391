"""`softrig convert`: a clip in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    file: Annotated[
        Path, typer.Argument(help="A character (.glb, .vrm; .gltf for caches; .fbx, .blend, .usd by Blender).")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="What to write: .glb .pc2 .mdd .npz .obj .usd .usda .usdc, or .abc by Blender"
        ),
    ],
    clip: Annotated[str | None, typer.Argument(help="The clip; the first by default.", show_default=False)] = None,
    named: Annotated[str | None, typer.Option("--clip", help="The clip, instead of CLIP.")] = None,
    fps: Annotated[float, typer.Option(help="Frames a second.", min=1.0, max=1000.0)] = 60.0,
    scale: Annotated[float, typer.Option(help="Metres per unit of the file.", min=1e-9)] = 1.0,
    per_frame: Annotated[bool, typer.Option(help="GLB: one morph target a frame.")] = False,
    quantise: Annotated[bool, typer.Option(help="GLB: 16-bit morph targets, half the size.")] = False,
    normals: Annotated[bool, typer.Option(help="GLB: morph targets move normals too.")] = False,
) -> None:
    """Write a clip's motion, without dynamics, into another file or format."""
    from softrig.console import stages
    from softrig.conversion import GlbOptions, check_output, convert_clip
    from softrig.errors import InputError
    from softrig.inspection import clean_name
    from softrig.io.characters import load_character
    from softrig.words import millimetres

    if clip is not None and named is not None:
        raise InputError(f"one clip at a time: '{clip}' or '{named}'")
    wanted = clip if clip is not None else named
    check_output(output, file if file.exists() else None)
    with stages() as work:
        with work.stage("Reading"):
            character = load_character(file, scale=scale)
        with work.stage("Converting") as update:
            options = GlbOptions(per_frame=per_frame, quantise=quantise, normals=normals)
            done = convert_clip(character, wanted, output, fps=fps, options=options, progress=update)
    name = clean_name(wanted if wanted is not None else character.clips[0].name) if character.clips else "at rest"
    typer.echo(
        f"{output.parent}: {done.what}, '{name}', {done.frames} frames, {millimetres(done.error)} off the clip; "
        f"{done.size_words()}"
    )
