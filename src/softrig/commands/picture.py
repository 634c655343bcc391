"""`softrig picture`: plain skinning beside soft flesh, to look at and to show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import STILL, require_model


def picture(
    model: Annotated[Path, typer.Argument(help="A model (.softrig).")],
    clip: Annotated[str | None, typer.Argument(help="The clip; the first by default.", show_default=False)] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .png: moments; a .gif: it moves. Default: <model>-<clip>.png."),
    ] = None,
    named: Annotated[str | None, typer.Option("--clip", help="The clip, instead of CLIP.")] = None,
    span: Annotated[
        tuple[float, float] | None, typer.Option(help="From when to when, seconds; at most 20.", show_default=False)
    ] = None,
    moments: Annotated[
        int | None, typer.Option(min=1, max=6, help="PNG: how many; default 4.", show_default=False)
    ] = None,
    fps: Annotated[
        float | None, typer.Option(min=1.0, max=50.0, help="GIF: frames a second; default 15.", show_default=False)
    ] = None,
    turn: Annotated[
        float | None,
        typer.Option(
            help="Degrees to the character's left from which it is seen; default: where most of the motion is seen."
        ),
    ] = None,
    loop: Annotated[
        bool | None, typer.Option("--loop/--no-loop", help="Whether the motion closes; default: where the clip loops.")
    ] = None,
) -> None:
    """Draw a clip, plain skinning beside soft flesh: its most telling moments (.png), or all of it (.gif)."""
    from softrig.console import stages
    from softrig.errors import InputError
    from softrig.inspection import clean_name, stillness_words
    from softrig.models.file import load_character_model
    from softrig.pipeline.baking import clip_called, safe_name
    from softrig.pipeline.showing import MOMENTS, MOVING_FPS, check_picture, show_clip
    from softrig.words import millimetres

    if clip is not None and named is not None:
        raise InputError(f"one clip at a time: '{clip}' or '{named}'")
    require_model(model)
    if output is not None:
        check_picture(output)
    moves = output is not None and output.suffix.lower() == ".gif"
    if moves and moments is not None:
        raise InputError("--moments is for sheets (.png); an animation shows them all")
    if not moves and fps is not None:
        raise InputError("--fps is for animations: say where to write one, as in -o it.gif")
    with stages() as work:
        with work.stage("Reading"):
            loaded = load_character_model(model)
            wanted = clip if clip is not None else named
            if wanted is None and not loaded.clips:
                raise InputError(f"{model}: the model has no clips")
            chosen = loaded.clips[0] if wanted is None else clip_called(loaded, wanted)
            target = output or model.with_name(f"{model.stem}-{safe_name(chosen.name)}.png")
        told = show_clip(
            loaded,
            chosen.name,
            target,
            span=span,
            moments=moments or MOMENTS,
            fps=fps or MOVING_FPS,
            turn=turn,
            loop=loop,
            stage=work.stage,
        )
    name, joint = clean_name(chosen.name), clean_name(told.joint)
    where = f" at '{joint}'" if joint and told.most >= STILL else ""
    typer.echo(f"  {target}: '{name}', flesh up to {millimetres(told.most)} from plain skinning{where}")
    if told.most < STILL:
        typer.echo(f"! '{name}': the flesh does not move: {stillness_words(loaded)}", err=True)
    others = [clean_name(other.name) for other in loaded.clips if other is not chosen]
    if wanted is None and others:
        typer.echo(f"  other clips: {', '.join(others)}")
