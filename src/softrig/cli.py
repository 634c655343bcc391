"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softrig.version import __version__

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel
    from softrig.project import Project

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


@app.command()
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

    result = run_character_demo(output)
    _tell_model(result.model)
    typer.echo(f"The jump moves the flesh up to {1e3 * result.largest_offset:.0f} mm from plain skinning.")
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


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="A character (.glb, .gltf, .vrm) or a model (.softrig).")],
    scale: Annotated[float, typer.Option(help="Metres per unit of the file.", min=1e-9)] = 1.0,
) -> None:
    """Tell what a file holds: parts, joints, clips, size, and the problems found."""
    from rich.console import Console
    from rich.table import Table

    from softrig.inspection import inspect_file

    found = inspect_file(file, scale=scale)
    console = Console()
    console.print(f"[bold]{found.title}[/bold]", highlight=False)
    for what, value in found.facts:
        console.print(f"  {what:<20} {value}", highlight=False, markup=False)
    for title, head, rows in found.tables:
        table = Table(title=title, title_justify="left")
        for column in head:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if found.legend:
        console.print(found.legend, style="dim", highlight=False, markup=False)
    for problem in found.problems:
        console.print(f"! {problem}", style="yellow", highlight=False, markup=False)


@app.command()
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
    decided, _ = _decisions(file, project, scale=scale, tets=tets)
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


@app.command()
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
    clip: Annotated[str | None, typer.Option(help="Name of the clip; the first by default.")] = None,
    fps: Annotated[float, typer.Option(help="Frames a second.", min=1.0, max=1000.0)] = 60.0,
    scale: Annotated[float, typer.Option(help="Metres per unit of the file.", min=1e-9)] = 1.0,
    per_frame: Annotated[bool, typer.Option(help="GLB: one morph target a frame.")] = False,
    quantise: Annotated[bool, typer.Option(help="GLB: 16-bit morph targets, half the size.")] = False,
    normals: Annotated[bool, typer.Option(help="GLB: morph targets move normals too.")] = False,
) -> None:
    """Write a clip's motion, without dynamics, into another file or format."""
    from softrig.console import stages
    from softrig.conversion import GlbOptions, check_output, convert_clip
    from softrig.io.characters import load_character

    check_output(output, file if file.exists() else None)
    with stages() as work:
        with work.stage("Reading"):
            character = load_character(file, scale=scale)
        with work.stage("Converting") as update:
            options = GlbOptions(per_frame=per_frame, quantise=quantise, normals=normals)
            done = convert_clip(character, clip, output, fps=fps, options=options, progress=update)
    typer.echo(
        f"{output.parent}: {done.what}, {done.frames} frames, {1e3 * done.error:.2g} mm off the clip; "
        f"{done.size_words()}"
    )


@app.command()
def characters(
    names: Annotated[list[str] | None, typer.Argument(help="Which to write; without names they are listed.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(),
    everything: Annotated[bool, typer.Option("--all", help="Write all of them.")] = False,
) -> None:
    """List the built-in characters, or write them as GLB."""
    from softrig.characters import CHARACTERS, built_in

    wanted = list(CHARACTERS) if everything else names or []
    if not wanted:
        for name, make in CHARACTERS.items():
            typer.echo(f"  {name:<10} {(make.__doc__ or '').strip().splitlines()[0]}")
        typer.echo("Write one with: softrig characters NAME")
        return
    from softrig.console import stages
    from softrig.io.glb_writer import write_character_glb

    output.mkdir(parents=True, exist_ok=True)
    with stages() as work:
        for name in wanted:
            with work.stage(f"Making {name}"):
                write_character_glb(built_in(name), output / f"{name}.glb")
    for name in wanted:
        typer.echo(f"  {output / name}.glb")


blender_app = typer.Typer(
    no_args_is_help=True, help="Blender in a process of its own: FBX and .blend in, Alembic out, and comparisons."
)
app.add_typer(blender_app, name="blender")


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


@app.command()
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
    decided, chosen = _decisions(path, project, scale=scale, tets=tets)
    if modes is not None:
        decided = decided.changed(basis={"modes": modes})
    target = output or (path.with_suffix(".softrig") if path.exists() else Path(f"{file}.softrig"))
    _require_softrig(target)
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
    _tell_model(model)
    typer.echo(f"  {target}")
    typer.echo(f"It took {duration(time.perf_counter() - start)}, loading and compiling included.", err=True)


def _decisions(
    file: Path, project: Path | None, *, scale: float | None, tets: int | None
) -> tuple[Project, Path | None]:
    """The project of a character file, with what the command says instead; and where it was read, if anywhere."""
    from softrig.project import Project, load_project

    own = file.with_suffix(".toml")
    chosen = project or (own if file.exists() and own.exists() else None)
    decided = load_project(chosen) if chosen else Project()
    if scale is not None:
        decided = decided.model_copy(update={"scale": scale})
    return (decided if tets is None else decided.changed(mesh={"tets": tets})), chosen


def _tell_model(model: PoseSpaceModel) -> None:
    from softrig.inspection import soft_facts, soft_problems

    for what, value in soft_facts(model):
        typer.echo(f"  {what:<20} {value}")
    for problem in soft_problems(model):
        typer.echo(f"! {problem}", err=True)


def _require_softrig(target: Path) -> None:
    from softrig.errors import InputError
    from softrig.files import require_writable

    if target.suffix.lower() != ".softrig":
        raise InputError(f"{target}: a model file ends in .softrig")
    require_writable(target)


@app.command()
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
    from softrig.models.file import load_character_model
    from softrig.pipeline.baking import bake as bake_clips
    from softrig.pipeline.sources import model_character

    with tempfile.TemporaryDirectory() as folder, stages() as work:
        with work.stage("Reading"):
            loaded = load_character_model(model)
            source = model_character(loaded, model, character, Path(folder))
        with work.stage("Simulating and writing") as update:
            options = GlbOptions(per_frame=per_frame, quantise=quantise, normals=normals)
            wanted = list(dict.fromkeys([*(clips or []), *(clip or [])]))
            results = bake_clips(
                loaded, source, wanted, output, ending=ending, fps=fps, loop=loop, options=options, progress=update
            )
    for result in results:
        if result.done is None:
            typer.echo(f"  {result.clip:<16} failed: {result.failure}", err=True)
            continue
        told = f"{result.done.frames} frames, flesh up to {1e3 * result.largest_offset:.0f} mm from plain skinning"
        lost = f"{1e3 * result.done.error:.2g} mm off the simulation" if result.done.error else "exact"
        typer.echo(f"  {result.clip:<16} {result.path}: {told}; {lost}; {result.done.size_words()}")
    if any(result.done is None for result in results):
        raise typer.Exit(1)


@app.command()
def view(
    file: Annotated[
        str, typer.Argument(help="A model (.softrig), a character (.glb, .vrm), or a built-in one's name.")
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


@app.command()
def compare(
    file: Annotated[str, typer.Argument(help="A character file, or the name of a built-in character.")],
    clip: Annotated[str | None, typer.Argument(help="The clip to compare in.", show_default=False)] = None,
    project: Annotated[Path | None, typer.Argument(help="Project file (.toml); FILE's own, if there is one.")] = None,
    named: Annotated[str | None, typer.Option("--clip", help="The clip, instead of CLIP.")] = None,
    seen: Annotated[bool, typer.Option("--seen", help="The build sees the clip; by default it is left out.")] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="The paper's recipe and simpler models, too: five more builds.")
    ] = False,
    scale: Annotated[float | None, typer.Option(help="Metres per unit of the file.", min=1e-9)] = None,
    tets: Annotated[int | None, typer.Option(min=100, help="About how many tets.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the figures as JSON and Markdown; default: none.")
    ] = None,
) -> None:
    """Compare the reduced motion of a clip with the full simulation's, and with simpler models. Takes minutes."""
    from rich.console import Console

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
    decided, chosen = _decisions(path, project, scale=scale, tets=tets)
    with stages() as work:
        with work.stage("Reading"):
            character = named_character(file, scale=decided.scale)
        if clip is None:
            there = ", ".join(f"'{own.name}'" for own in character.clips) or "none"
            raise InputError(f"say in which clip to compare; '{character.name}' has: {there}")
        record = compare_clip(
            character,
            clip,
            decided,
            unseen=not seen,
            baselines=baselines,
            folder=chosen.parent if chosen else None,
            cache=path.parent / ".softrig-cache" if path.exists() else None,
            stage=work.stage,
        )
    show_turned(Console(), record)
    ours, (sizes,) = record.rows[0], record.sizes.values()
    best = ours.also.get("best of these shapes, %")
    least = "" if best is None else f"; its {sizes['modes']} modes could come as near as {best:.3g} %"
    typer.echo(f"The flesh is {ours.told()} of its motion off the full simulation{least}. More modes bring it nearer.")
    if output is not None:
        record.write(output)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which ones (see --list), all by default; with --fill: pages or folders.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the records [bench; docs/records with --fill].")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="One Markdown page with all tables.")] = None,
    long: Annotated[bool, typer.Option("--long", help="The long studies, too.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Say what there is and how long it takes.")] = False,
    fill: Annotated[
        bool,
        typer.Option("--fill", help="Write the records' tables into pages, between their markers; measure nothing."),
    ] = False,
) -> None:
    """Measure this machine and print ours beside the published and the peers' figures."""
    from softrig.bench import fill_pages, listing, run_benches

    if listed:
        for line in listing():
            typer.echo(line)
    elif fill:
        for path in fill_pages([Path(name) for name in names or []], output or Path("docs/records")):
            typer.echo(f"  {path}")
    else:
        run_benches(names or [], output or Path("bench"), page, long=long)
        typer.echo(f"Records (JSON and Markdown) are in {output or Path('bench')}.")


@app.command()
def figures(
    names: Annotated[list[str] | None, typer.Argument(help="Which ones; all by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("docs/gallery"),
    listing: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
) -> None:
    """Make clips and the papers' figures again: pictures, their numbers (JSON) and a page of all of them (index.md)."""
    from softrig.figures import FIGURES, figure_line, run_figures

    if listing:
        for name in FIGURES:
            typer.echo(f"  {name:<17} {figure_line(name)}")
        return
    for figure in run_figures(names or [], output):
        typer.echo(f"  {output / figure.name}.png")
    typer.echo(f"All of them: {output / 'index.md'}")


def main() -> None:
    """Run the command line; softrig's own errors become one line and exit code 1."""
    from softrig.errors import SoftrigError

    # Notices are for people here: one line each, without the place in the code.
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"softrig: note: {message}", err=True)
    try:
        app()
    except SoftrigError as error:
        typer.echo(f"softrig: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("softrig: stopped; a build started again goes on where it was", err=True)
        sys.exit(130)
    except OSError as error:
        typer.echo(f"softrig: {error.strerror or error}: {error.filename or ''}", err=True)
        sys.exit(1)
