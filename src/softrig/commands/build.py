"""`softrig build`: the soft model of a character."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from softrig.commands.shared import decisions, refuse_model, require_softrig, tell_model


def build(
    file: Annotated[str, typer.Argument(help="A character file, or the name of a built-in character.")],
    project: Annotated[Path | None, typer.Argument(help="Project file (.toml); FILE's own, if there is one.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .softrig to write; default beside FILE.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="load (ours) or paper (as the 2016 paper prints it); default: the project's.")
    ] = None,
    modes: Annotated[int | None, typer.Option(min=2, max=400, help="Modes over all regions.")] = None,
    scale: Annotated[float | None, typer.Option(help="Metres per unit of the file.", min=1e-9)] = None,
    tets: Annotated[int | None, typer.Option(min=100, help="About how many tets.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; all cores by default.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a dask scheduler to build on.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of finished stages; default .softrig-cache beside the output.")
    ] = None,
) -> None:
    """Build the soft model of a character: meshes, poses, shapes, forces. A killed build goes on where it stopped."""
    start = time.perf_counter()  # before the imports, of which some compile
    from softrig.console import duration, stages
    from softrig.models.file import save_model
    from softrig.pipeline.build import build as build_model
    from softrig.pipeline.sources import named_character
    from softrig.pipeline.timing import step_times

    path = Path(file)
    refuse_model(path, "build")
    decided, chosen = decisions(path, project, scale=scale, tets=tets, modes=modes)
    target = output or (path.with_suffix(".softrig") if path.exists() else Path(f"{file}.softrig"))
    require_softrig(target)
    with stages() as work:
        with work.stage("Reading"):
            character = named_character(file, scale=decided.scale)
        model = build_model(
            character,
            decided,
            recipe=recipe,
            cache=cache or target.parent / ".softrig-cache",
            folder=chosen.parent if chosen else None,
            jobs=jobs,
            cluster=cluster,
            stage=work.stage,
        )
        with work.stage("Timing a step (compiles the first time)"):
            model.notes["step"] = step_times(model)
        with work.stage("Writing"):
            save_model(model, target)
    tell_model(model)
    typer.echo(f"  {target}")
    typer.echo(f"It took {duration(time.perf_counter() - start)}, loading and compiling included.", err=True)
