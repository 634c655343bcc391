"""`softrig bake`: clips, simulated and written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import STILL, require_model


def bake(
    model: Annotated[Path, typer.Argument(help="A model (.softrig).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A file, or a folder for several clips.")],
    clips: Annotated[list[str] | None, typer.Argument(help="Clips by name; all by default.")] = None,
    clip: Annotated[list[str] | None, typer.Option(help="The same, once for each clip.")] = None,
    character: Annotated[Path | None, typer.Option(help="The character file; default: the one beside MODEL.")] = None,
    ending: Annotated[str, typer.Option("--format", help="What to write into a folder.")] = ".glb",
    fps: Annotated[float, typer.Option(help="Frames a second.", min=1.0, max=1000.0)] = 60.0,
    loop: Annotated[
        bool | None, typer.Option("--loop/--no-loop", help="Whether the motion closes; default: where the clip loops.")
    ] = None,
    per_frame: Annotated[bool, typer.Option(help="GLB: one morph target a frame.")] = False,
    quantise: Annotated[bool, typer.Option(help="GLB: 16-bit morph targets, half the size.")] = False,
    normals: Annotated[bool, typer.Option(help="GLB: morph targets move normals too.")] = False,
) -> None:
    """Simulate clips and write them: the input file with a soft animation added (.glb), or point caches."""
    import tempfile

    from softrig.console import stages
    from softrig.conversion import GlbOptions
    from softrig.errors import notice
    from softrig.inspection import stillness_words
    from softrig.models.file import load_character_model
    from softrig.pipeline.baking import bake_planned, planned
    from softrig.pipeline.drift import drift_words
    from softrig.pipeline.sources import model_character
    from softrig.words import millimetres

    require_model(model)
    with tempfile.TemporaryDirectory() as folder, stages() as work:
        with work.stage("Reading"):
            loaded = load_character_model(model)
            source = model_character(loaded, model, character, Path(folder))
            if drift := drift_words(loaded, model, source.source):
                notice(drift)
        wanted = list(dict.fromkeys([*(clips or []), *(clip or [])]))
        plan = planned(loaded, source, wanted, output, ending)  # what is wrong is told before a stage seems to begin
        with work.stage("Simulating and writing") as update:
            options = GlbOptions(per_frame=per_frame, quantise=quantise, normals=normals)
            results = bake_planned(loaded, source, plan, fps=fps, loop=loop, options=options, progress=update)
    for result in results:
        if result.done is None:
            typer.echo(f"  {result.clip:<16} failed: {result.failure}", err=True)
            continue
        where = f" at '{result.joint}'" if result.joint and result.largest_offset >= STILL else ""
        offset = f"flesh up to {millimetres(result.largest_offset)} from plain skinning{where}"
        told = f"{result.done.frames} frames, {offset}"
        lost = f"{millimetres(result.done.error)} off the simulation" if result.done.error else "exact"
        typer.echo(f"  {result.clip:<16} {result.path}: {told}; {lost}; {result.done.size_words()}")
        if result.largest_offset < STILL:
            least = "less than a thousandth of a millimetre from plain skinning"
            typer.echo(f"! '{result.clip}': the flesh does not move, {least}: {stillness_words(loaded)}", err=True)
    if any(result.done is None for result in results):
        raise typer.Exit(1)
