"""The character demo: a gorilla from surface to soft model, one clip baked, and pictures of what it does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.characters import built_in
from softrig.console import Stages, stages
from softrig.files import write_bytes
from softrig.inspection import soft_facts
from softrig.io.characters import load_character
from softrig.io.glb_writer import write_character_glb
from softrig.io.images import write_gif, write_png
from softrig.machine import this_machine
from softrig.models.file import load_character_model, save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.ahead import compiling_ahead
from softrig.pipeline.baking import Baked, bake, model_simulation
from softrig.pipeline.build import build
from softrig.pipeline.showing import MOMENTS, MOVING_FPS, BesidePlain
from softrig.pipeline.timing import step_times
from softrig.project import Project
from softrig.render import Series, line_plot
from softrig.report import Report
from softrig.simulation import Bake
from softrig.words import counted, millimetres

SETTINGS = Project().changed(mesh={"tets": 6000}, basis={"modes": 60}, material={"preset": "fat", "young": 12e3})
"""Softer than a gorilla is, so that there is something to see; coarser than the default, so that it is quick."""


@dataclass(frozen=True)
class CharacterDemo:
    """What the demo wrote and found."""

    folder: Path
    files: tuple[Path, ...]
    model: PoseSpaceModel
    baked: Baked
    largest_offset: float
    """How far the flesh moves from plain skinning, metres."""


def run_character_demo(
    folder: Path,
    *,
    name: str = "gorilla",
    clip: str = "jump",
    settings: Project = SETTINGS,
    frames: int = MOMENTS,
    gif_fps: float = MOVING_FPS,
    jobs: int = 1,
) -> CharacterDemo:
    """Build a soft character, bake a clip, and write everything into `folder`.

    One worker: on a fresh machine several would each compile the same code, which takes longer than the work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with stages() as work, compiling_ahead() as ahead:
        with work.stage(f"Making the {name}"):
            write_character_glb(built_in(name), folder / f"{name}.glb")
            character = load_character(folder / f"{name}.glb")
        model = build(character, settings, cache=folder / ".softrig-cache", jobs=jobs, stage=work.stage)
        with work.stage("Timing a step (compiles the first time)"):
            ahead.wait()
            model.notes["step"] = step_times(model)
        with work.stage("Writing and reading the model file"):
            save_model(model, folder / f"{name}.softrig")
            model = load_character_model(folder / f"{name}.softrig")
        with work.stage(f"Baking '{clip}' into a GLB") as update:
            target = folder / f"{name}-{clip}-soft.glb"
            (baked,) = bake(model, character, [clip], target, progress=update)
            if baked.done is None:
                raise RuntimeError(f"the bake failed: {baked.failure}")
        with work.stage("Simulating for the pictures"):
            shown = model_simulation(model).bake(character.clip(clip), 60.0, plain=True)
        files = _write(folder, name, clip, model, baked, shown, work, frames, gif_fps)
    return CharacterDemo(folder, files, model, baked, baked.largest_offset)


def _write(
    folder: Path,
    name: str,
    clip: str,
    model: PoseSpaceModel,
    baked: Baked,
    shown: Bake,
    work: Stages,
    frames: int,
    gif_fps: float,
) -> tuple[Path, ...]:
    pictures = BesidePlain(model, shown)
    with work.stage("Pictures"):
        sheet = pictures.sheet(frames)
    with work.stage("Animation") as update:
        moving, moving_fps = pictures.animation(gif_fps, update)
    sheet_path, gif_path, page = (folder / f"{name}-{part}" for part in ("sheet.png", "soft.gif", "report.html"))
    write_png(sheet_path, sheet)
    write_gif(gif_path, moving, fps=moving_fps)
    written = (gif_path.read_bytes(), sheet_path.read_bytes())
    report = _report(name, clip, model, baked, shown, pictures.offsets, work, written)
    report.footer(f"Measured on {this_machine()}.")
    write_bytes(page, report.html().encode())
    return (folder / f"{name}.glb", folder / f"{name}.softrig", baked.path, sheet_path, gif_path, page)


def _report(
    name: str,
    clip: str,
    model: PoseSpaceModel,
    baked: Baked,
    shown: Bake,
    offsets: np.ndarray,
    work: Stages,
    pictures: tuple[bytes, bytes],
) -> Report:
    assert baked.done is not None
    report = Report(
        f"A soft {name}",
        f"{len(model.tets):,} tets reduced to {model.mode_count} modes at {counted(len(model.poses), 'pose')}. "
        f"The clip '{clip}' moves the flesh up to {millimetres(float(offsets.max()))} from plain skinning.",
    )
    report.picture(pictures[0], "Plain skinning, and with soft tissue.", "gif")
    report.picture(pictures[1], "Plain, soft, and how far the flesh is from plain skinning.")
    report.heading("The model")
    report.facts(soft_facts(model))
    report.heading("Baked")
    report.text(
        f"{baked.path.name} is {name}.glb with one animation more: the skeleton's own motion and morph targets that "
        f"play the flesh, {millimetres(baked.done.error)} off the simulation; {baked.done.size_words()}. "
        "Everything else in the file is as it was. Open it in any glTF viewer."
    )
    report.heading("Motion")
    largest = Series("largest", shown.times, 1e3 * offsets.max(axis=1))
    mean = Series("mean", shown.times, 1e3 * offsets.mean(axis=1))
    plot = line_plot([largest, mean], x_label="time, s", y_label="offset, mm")
    report.plot(plot, "How far the flesh is from plain skinning.")
    report.table(["stage", "seconds"], [[stage, f"{taken:.1f}"] for stage, taken in work.seconds.items()])
    return report
