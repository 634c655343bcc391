"""The character demo: a gorilla from surface to soft model, one clip baked, and pictures of what it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.characters import built_in
from softrig.console import Stages, Update, stages
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
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.timing import step_times
from softrig.project import Project
from softrig.render import (
    Camera,
    Ground,
    Light,
    Mesh,
    Series,
    beneath,
    colour_bar,
    label,
    lightened,
    line_plot,
    render,
    sequential,
    strip,
)
from softrig.report import Report
from softrig.rig.character import Character
from softrig.simulation import Bake
from softrig.words import counted

SETTINGS = Project().changed(mesh={"tets": 6000}, basis={"modes": 60}, material={"preset": "fat", "young": 12e3})
"""Softer than a gorilla is, so that there is something to see; coarser than the default, so that it is quick."""
SIZE, GIF_SIZE = (420, 460), (440, 482)
"""Pixels of each picture of a row, and of each half of the animation: of the same shape, as they share a camera."""
MARGIN = 1.08
FRAMES = 4
GIF_FPS = 15.0
TOWARDS = (0.5, 0.14, 1.0)
"""From the character to the camera."""
LIGHT = Light((0.05, 1.0, 0.6), radius=0.1, strength=1.15)
"""From high above and before it: what the camera sees is lit, and the shadow stays near the feet."""
SKIN = (0.75, 0.66, 0.6)
"""Of a character without colours."""
LIGHTENED = 0.55
"""Power of the skin's luminance: a gorilla's fur is nearly black, and flesh that moves under it would not be seen."""


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
    frames: int = FRAMES,
    gif_fps: float = GIF_FPS,
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
        files = _write(folder, name, clip, model, character, baked, shown, work, frames, gif_fps)
    return CharacterDemo(folder, files, model, baked, baked.largest_offset)


def _write(
    folder: Path,
    name: str,
    clip: str,
    model: PoseSpaceModel,
    character: Character,
    baked: Baked,
    shown: Bake,
    work: Stages,
    frames: int,
    gif_fps: float,
) -> tuple[Path, ...]:
    assert shown.plain is not None
    offsets = np.linalg.norm(shown.vertices - shown.plain, axis=2)
    paint = _Painter(character, shown, float(np.ceil(100.0 * offsets.max()) / 100.0))
    with work.stage("Pictures"):
        sheet = _sheet(paint, shown, offsets, frames)
    with work.stage("Animation") as update:
        moving = _animation(paint, shown, gif_fps, update)
    sheet_path, gif_path, page = (folder / f"{name}-{part}" for part in ("sheet.png", "soft.gif", "report.html"))
    write_png(sheet_path, sheet)
    write_gif(gif_path, moving, fps=gif_fps)
    pictures = (gif_path.read_bytes(), sheet_path.read_bytes())
    report = _report(name, clip, model, baked, shown, offsets, work, pictures)
    report.footer(f"Measured on {this_machine()}.")
    write_bytes(page, report.html().encode())
    return (folder / f"{name}.glb", folder / f"{name}.softrig", baked.path, sheet_path, gif_path, page)


def whole_camera(places: np.ndarray, ground: Ground) -> Camera:
    """A camera that sees everything at `places` (n, 3), metres, and all of its shadow."""
    seen = np.concatenate([places, LIGHT.shadow(places, ground.height)])
    return Camera.framing(seen, TOWARDS, aspect=SIZE[0] / SIZE[1], margin=MARGIN, field_of_view=0.5)


def shown_skin(character: Character) -> np.ndarray:
    """(3,) or (n̄, 3) sRGB of a character in pictures."""
    colours = character.colours
    return np.array(SKIN) if colours is None else lightened(np.asarray(colours)[:, :3], LIGHTENED)


class _Painter:
    """Pictures of one character under one camera."""

    def __init__(self, character: Character, shown: Bake, most: float) -> None:
        assert shown.plain is not None
        self._triangles = character.triangles
        self._most = most
        self._skin = shown_skin(character)
        self._ground = Ground.under([Mesh(character.rest_positions, character.triangles)], (0.0, 1.0, 0.0))
        every = (slice(None, None, max(1, len(shown) // 40)), slice(None, None, 7))
        sides = [side[every].reshape(-1, 3).astype(np.float64) for side in (shown.plain, shown.vertices)]
        self._camera = whole_camera(np.concatenate(sides), self._ground)

    def plain(self, vertices: np.ndarray, size: tuple[int, int] = SIZE) -> np.ndarray:
        return self._shot(vertices, self._skin, size)

    def offset(self, vertices: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        return self._shot(vertices, sequential(offsets, low=0.0, high=self._most), SIZE)

    def bar(self) -> np.ndarray:
        return colour_bar(sequential, 0.0, 1e3 * self._most, "mm")

    def _shot(self, vertices: np.ndarray, colours: object, size: tuple[int, int]) -> np.ndarray:
        mesh = Mesh(vertices.astype(np.float64), self._triangles, colours)  # type: ignore[arg-type]
        return render([mesh], self._camera, size, light=LIGHT, ground=self._ground)


def _sheet(paint: _Painter, shown: Bake, offsets: np.ndarray, frames: int) -> np.ndarray:
    """Rows plain, soft, offset; columns the moments of largest offset, apart from each other."""
    assert shown.plain is not None
    chosen = telling_frames(offsets.max(axis=1), frames)
    pictures, captions = [], []
    for i in chosen:
        pictures.append(paint.plain(shown.plain[i]))
        captions.append(f"{shown.times[i]:.2f} s, plain")
    for i in chosen:
        pictures.append(paint.plain(shown.vertices[i]))
        captions.append("soft")
    for i in chosen:
        pictures.append(paint.offset(shown.vertices[i], offsets[i]))
        captions.append(f"up to {1e3 * offsets[i].max():.0f} mm")
    # One scale for all of the last row, and nothing of the body behind it.
    return beneath(strip(pictures, captions, columns=len(chosen)), paint.bar())


def telling_frames(sizes: np.ndarray, count: int) -> list[int]:
    """`count` frames where `sizes` (f,) is large, no two nearer than a part of the whole, in order of time."""
    apart = max(1, len(sizes) // (2 * count))
    left = sizes.astype(np.float64).copy()
    chosen: list[int] = []
    while len(chosen) < min(count, len(sizes)) and left.max() > -np.inf:
        best = int(left.argmax())
        chosen.append(best)
        left[max(0, best - apart) : best + apart + 1] = -np.inf
    return sorted(chosen)


def _animation(paint: _Painter, shown: Bake, fps: float, update: Update) -> list[np.ndarray]:
    """Frames of plain and soft side by side."""
    assert shown.plain is not None
    chosen = range(0, len(shown), max(1, round(60.0 / fps)))
    sides = [side[i] for i in chosen for side in (shown.plain, shown.vertices)]
    with ThreadPoolExecutor(worker_count(None)) as pool:
        pictures = []
        for picture in pool.map(lambda vertices: paint.plain(vertices, GIF_SIZE), sides):
            pictures.append(picture)
            update(len(pictures), len(sides))
    frames = []
    for i, plain, soft in zip(chosen, pictures[::2], pictures[1::2], strict=True):
        both = strip([plain, soft], ["plain skinning", "soft"], size=22)
        # On the white foot, where no hand or shadow comes.
        frames.append(label(both, f"{shown.times[i]:.2f} s", corner="bottom right", size=16))
    return frames


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
        f"The clip '{clip}' moves the flesh up to {1e3 * offsets.max():.0f} mm from plain skinning.",
    )
    report.picture(pictures[0], "Plain skinning, and with soft tissue.", "gif")
    report.picture(pictures[1], "Plain, soft, and how far the flesh is from plain skinning.")
    report.heading("The model")
    report.facts(soft_facts(model))
    report.heading("Baked")
    report.text(
        f"{baked.path.name} is {name}.glb with one animation more: the skeleton's own motion and morph targets that "
        f"play the flesh, {1e3 * baked.done.error:.2g} mm off the simulation; {baked.done.size_words()}. "
        "Everything else in the file is as it was. Open it in any glTF viewer."
    )
    report.heading("Motion")
    largest = Series("largest", shown.times, 1e3 * offsets.max(axis=1))
    mean = Series("mean", shown.times, 1e3 * offsets.mean(axis=1))
    plot = line_plot([largest, mean], x_label="time, s", y_label="offset, mm")
    report.plot(plot, "How far the flesh is from plain skinning.")
    report.table(["stage", "seconds"], [[stage, f"{taken:.1f}"] for stage, taken in work.seconds.items()])
    return report
