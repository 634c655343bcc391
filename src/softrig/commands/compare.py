"""`softrig compare`: the reduced motion beside the full simulation's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import decisions, refuse_model


def compare(
    file: Annotated[str, typer.Argument(help="A character file, or the name of a built-in character.")],
    clip: Annotated[str | None, typer.Argument(help="The clip to compare in.", show_default=False)] = None,
    project: Annotated[Path | None, typer.Argument(help="Project file (.toml); FILE's own, if there is one.")] = None,
    named: Annotated[str | None, typer.Option("--clip", help="The clip, instead of CLIP.")] = None,
    seen: Annotated[bool, typer.Option("--seen", help="The build sees the clip; by default it is left out.")] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="The paper's recipe, simpler models, what is linear: five more builds.")
    ] = False,
    converged: Annotated[
        bool,
        typer.Option(
            "--converged", help="Also against a full simulation at 720 steps a second: longer than all else together."
        ),
    ] = False,
    modes: Annotated[int | None, typer.Option(min=2, max=400, help="Modes over all regions.")] = None,
    scale: Annotated[float | None, typer.Option(help="Metres per unit of the file.", min=1e-9)] = None,
    tets: Annotated[int | None, typer.Option(min=100, help="About how many tets.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the figures as JSON and Markdown; default: none.")
    ] = None,
) -> None:
    """Compare the reduced motion of a clip with the full simulation's, and with simpler models.

    It builds and simulates in full: about five minutes of processor time for a short clip and the default tets. Stopped
    and started again, both go on where they were if FILE is a file; figures are told as they become known.
    """
    from rich.console import Console

    from softrig.bench.conclusions import conclusion, told_row
    from softrig.bench.fidelity import compare_clip
    from softrig.bench.run import show_turned
    from softrig.console import stages
    from softrig.errors import InputError
    from softrig.pipeline.sources import named_character

    if named is not None:
        # What stands bare is the project file then.
        if clip is not None and (project is not None or not clip.lower().endswith(".toml")):
            raise InputError(f"one clip at a time: '{clip}' or '{named}'")
        clip, project = named, Path(clip) if clip is not None else project
    path = Path(file)
    refuse_model(path, "compare", *filter(None, [clip]))
    decided, chosen = decisions(path, project, scale=scale, tets=tets, modes=modes)
    with stages() as work:
        with work.stage("Reading"):
            character = named_character(file, scale=decided.scale)
        if clip is None and len(character.clips) == 1:
            clip = character.clips[0].name
        if clip is None:
            there = ", ".join(f"'{own.name}'" for own in character.clips) or "none"
            raise InputError(f"say in which clip to compare; '{character.name}' has: {there}")
        record = compare_clip(
            character,
            clip,
            decided,
            unseen=not seen,
            baselines=baselines,
            converged=converged,
            folder=chosen.parent if chosen else None,
            cache=path.parent / ".softrig-cache" if path.exists() else None,
            stage=work.stage,
            told=lambda row: typer.echo(f"  {told_row(row)}", err=True),
        )
    show_turned(Console(), record)
    typer.echo(conclusion(record))
    if output is not None:
        for path in record.write(output):
            typer.echo(f"  {path}")
