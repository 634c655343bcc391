"""`bake`: clips of a model, simulated and written into files that every program opens."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softrig.conversion import ENDINGS, Conversion, GlbOptions, check_output, write_motion
from softrig.errors import InputError, SoftrigError, notice
from softrig.inspection import region_trouble
from softrig.models.kinds import require_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.parallel import part_of
from softrig.rig.bones import carrying_joint
from softrig.rig.character import Character
from softrig.rig.clip import Clip
from softrig.simulation import Bake, Damping, Simulation
from softrig.words import has_no

Progress = Callable[[int, int], None]

SAME_PLACE = 1e-5
"""Of the size: vertices of one character, through a file and back, lie this close."""

_FILE_ENDING = re.compile(r"\.(?!v\d+$)(?=.*[a-z])[a-z0-9]{2,6}", re.IGNORECASE)
"""As of a file: ".fbx", ".mp4". A folder "walk.v2" or "take-1.5" is none."""


@dataclass(frozen=True)
class Baked:
    """One clip: what was written, or why not."""

    clip: str
    path: Path
    done: Conversion | None
    largest_offset: float = 0.0
    """How far the flesh was from plain skinning at most, metres."""
    joint: str = ""
    """Which joint carries the flesh that was, where one does."""
    failure: str = ""


def model_simulation(model: PoseSpaceModel, **options: object) -> Simulation:
    """A simulation with the settings that the model was built with; `options` of `Simulation` overrule them."""
    require_model(model, PoseSpaceModel, "model_simulation")
    settings = model.notes.get("project", {}).get("simulation", {})
    chosen: dict[str, object] = {
        name: settings[name] for name in ("gravity", "inertia", "rate", "method") if name in settings
    }
    ratio = model.notes.get("damping ratio")
    if isinstance(ratio, int | float):
        chosen["damping"] = Damping(float(ratio))
    if settings.get("modes") is not None:
        chosen["modes"] = min(int(settings["modes"]), model.mode_count)
    simulation = Simulation(model, **(chosen | options))  # type: ignore[arg-type]
    if trouble := region_trouble(model):
        notice(trouble)
    scales = settings.get("stiffness", {})
    if any(name in scales for name in model.region_names):
        simulation.stepper.stiffness_scale = np.array([float(scales.get(name, 1.0)) for name in model.region_names])
    if "wind" in settings:
        simulation.wind = np.array(settings["wind"], dtype=np.float64)
    return simulation


def chosen_clips(model: PoseSpaceModel, names: Sequence[str]) -> tuple[Clip, ...]:
    """The clips of a model by name; "all" is all of them."""
    known = {clip.name: clip for clip in model.clips}
    if not known:
        raise InputError(f"'{model.name}' has no clips")
    if list(names) in ([], ["all"]):
        return tuple(model.clips)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(has_no(model.name, "clip", unknown, list(known)))
    return tuple(known[name] for name in names)


def clip_called(model: PoseSpaceModel, name: str) -> Clip:
    """The clip of a model with that name."""
    found = [clip for clip in model.clips if clip.name == name]
    if not found:
        raise InputError(has_no(model.name, "clip", [name], [clip.name for clip in model.clips]))
    return found[0]


def bake(
    model: PoseSpaceModel,
    character: Character,
    clips: Sequence[str],
    output: Path,
    *,
    ending: str = ".glb",
    fps: float = 60.0,
    loop: bool | None = None,
    options: GlbOptions | None = None,
    progress: Progress | None = None,
    simulate: Callable[[PoseSpaceModel, float], Simulation] | None = None,
) -> list[Baked]:
    """Simulate clips of `model` and write each: to `output` if it is a file, else into that folder as `<clip><ending>`.

    `character`: the one the model was built from. `loop`: whether the motion closes; None: where the clip loops.
    `simulate`: makes the simulation of a model at some frames a second; by default with the settings it was built with.
    A clip that fails is reported and does not stop the others.
    """
    return bake_planned(
        model,
        character,
        planned(model, character, clips, output, ending),
        fps=fps,
        loop=loop,
        options=options,
        progress=progress,
        simulate=simulate,
    )


def bake_planned(
    model: PoseSpaceModel,
    character: Character,
    plan: Sequence[tuple[Clip, Path]],
    *,
    fps: float = 60.0,
    loop: bool | None = None,
    options: GlbOptions | None = None,
    progress: Progress | None = None,
    simulate: Callable[[PoseSpaceModel, float], Simulation] | None = None,
) -> list[Baked]:
    """As `bake`, of what it has `planned`."""
    results = []
    for index, (clip, path) in enumerate(plan):
        tell = part_of(progress, index, len(plan))
        closes = clip.looping if loop is None else loop
        make = simulate or (lambda model, fps: model_simulation(model, fps=fps))
        results.append(_bake_one(model, character, clip, path, fps, closes, options, tell, make))
    return results


def planned(
    model: PoseSpaceModel, character: Character, clips: Sequence[str], output: Path, ending: str
) -> list[tuple[Clip, Path]]:
    """The clips that `bake` simulates, and where each is written, in a folder that is made; refuses what it cannot."""
    require_same_character(model, character)
    wanted = chosen_clips(model, clips)
    ending = ending if ending.startswith(".") else f".{ending}"
    paths = _paths(wanted, output, ending)
    if output.suffix.lower() not in ENDINGS:
        output.mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_output(path, character.source)
    return list(zip(wanted, paths, strict=True))


def _bake_one(
    model: PoseSpaceModel,
    character: Character,
    clip: Clip,
    path: Path,
    fps: float,
    loop: bool,
    options: GlbOptions | None,
    progress: Progress | None,
    simulate: Callable[[PoseSpaceModel, float], Simulation],
) -> Baked:
    try:
        simulation = simulate(model, fps)
        made: Bake = simulation.bake(clip, fps, loop=loop, plain=True, progress=progress)
        times, vertices = made.times, made.vertices
        if loop:
            # The end of the cycle is its beginning for the flesh; files want a frame there, or it would stand still.
            end = replace(clip, looping=False).sample(clip.duration)[0]
            times = np.append(times, clip.duration)
            vertices = np.concatenate([vertices, simulation.show(end, made.coordinates[0])[None]])
        done = write_motion(character, clip.name, times, vertices, path, name=f"{clip.name}.soft", options=options)
    except (SoftrigError, OSError) as error:
        return Baked(clip.name, path, None, failure=str(error))
    at = made.report.largest_at
    return Baked(clip.name, path, done, made.report.largest_offset, carrying_joint(character.rig, at))


def _paths(clips: Sequence[Clip], output: Path, ending: str) -> list[Path]:
    """A path a clip, no two the same on any disk."""
    if output.suffix.lower() in ENDINGS:
        if len(clips) > 1:
            raise InputError(f"{output}: one file for {len(clips)} clips; give a folder")
        return [output]
    if _FILE_ENDING.fullmatch(output.suffix) and not output.is_dir():
        raise InputError(
            f"{output}: cannot write {output.suffix}; there are {', '.join(ENDINGS)}, or a folder without an ending"
        )
    if ending not in ENDINGS:
        raise InputError(f"cannot write {ending}; there are {', '.join(ENDINGS)}")
    taken: set[str] = set()
    paths = []
    for clip in clips:
        stem = name = safe_name(clip.name)
        copy = 1
        while name.lower() in taken:
            copy += 1
            name = f"{stem}-{copy}"
        taken.add(name.lower())
        paths.append(output / f"{name}{ending}")
    return paths


def safe_name(name: str) -> str:
    """A clip's name as a file's: no separators, no leading dots."""
    safe = "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in name)
    return safe.strip(". ") or "clip"


def require_same_character(model: PoseSpaceModel, character: Character) -> None:
    """Refuse a character that is not the one `model` was built from, or that changed since."""
    own = model.rig.positions(model.rig.parameters.rest)
    theirs = character.rest_positions
    if own.shape != theirs.shape or np.abs(own - theirs).max(initial=0.0) > SAME_PLACE * model.size:
        raise InputError(
            f"'{character.name}' is not the character this model was built for: "
            + (
                f"{len(theirs):,} vertices instead of {len(own):,}"
                if own.shape != theirs.shape
                else "its vertices lie elsewhere at rest"
            )
            + "; run build again"
        )
    known = model.notes.get("source", {}).get("sha256")
    if known and character.source is not None and _sha256(character.source) != known:
        raise InputError(f"{character.source} changed since the model was built: build it again")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
