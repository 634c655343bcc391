"""What errands do, in their own process: builds, bakes of clips and takes, bases from sketched pulls.

Each takes a job (plain JSON) and a teller, and gives back a result that is plain JSON, too.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softrig.conversion import write_motion
from softrig.errors import InputError
from softrig.files import replacing
from softrig.io.characters import load_character
from softrig.io.glb_animation import with_animation
from softrig.models.file import load_character_model, save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import bake, model_simulation
from softrig.pipeline.build import build
from softrig.pipeline.sources import model_character, named_character
from softrig.project import Project, noted_scale
from softrig.rig.character import Character, Part
from softrig.rig.parameters import Parameters
from softrig.simulation import Damping, Simulation
from softrig.viewer.errand_side import Teller
from softrig.viewer.sketch_files import read_sketch, solve_sketch
from softrig.viewer.subjects import between
from softrig.viewer.takes import Take

READING, WRITING = "Reading", "Writing"
Job = Mapping[str, Any]


def build_job(job: Job, teller: Teller) -> dict[str, Any]:
    """Build `source` by `project` into the file `target`; stages are kept in `cache`."""
    project = Project.model_validate(job["project"])
    target = Path(job["target"])
    with teller.stage(READING):
        character = named_character(job["source"], scale=project.metres_per_unit)
    model = build(
        character,
        project,
        cache=Path(job["cache"]),
        folder=Path(job["folder"]) if job["folder"] else None,
        jobs=int(job["jobs"]),
        stage=teller.stage,
    )
    with teller.stage(WRITING):
        save_model(model, target)
    return {"model": str(target), "stages": model.notes["stages"]}


def bake_job(job: Job, teller: Teller) -> dict[str, Any]:
    """Bake `clips` of a model, tuned as `settings` say, into files `ending`; several become one archive."""
    folder, settings = Path(job["folder"]), job["settings"]
    with tempfile.TemporaryDirectory() as scratch:
        with teller.stage(READING):
            model = load_character_model(job["model"])
            character = _character(job, model, Path(scratch))
        with teller.stage("Simulating") as update:
            results = bake(
                model,
                character,
                job["clips"],
                folder,
                ending=job["ending"],
                fps=float(job["fps"]),
                progress=update,
                simulate=lambda model, fps: tuned_simulation(model, settings, fps=fps),
            )
    failed = [f"{result.clip}: {result.failure}" for result in results if result.done is None]
    if len(failed) == len(results):
        raise InputError("; ".join(failed))
    for text in failed:
        teller.note(f"not baked: {text}")
    return {"file": _packed(folder, job["name"]), "offset": max(result.largest_offset for result in results)}


def take_job(job: Job, teller: Teller) -> dict[str, Any]:
    """Bake a recorded take into a file, everything that was pulled and tuned included."""
    folder, ending, fps = Path(job["folder"]), job["ending"], float(job["fps"])
    take = Take.load(job["take"])
    with tempfile.TemporaryDirectory() as scratch:
        with teller.stage(READING):
            model = load_character_model(job["model"])
            character = _character(job, model, Path(scratch))
        with teller.stage("Simulating") as update:
            vertices = take.vertices(model, update)
        with teller.stage(WRITING):
            times, vertices, poses = even_frames(take, vertices, fps, model.rig.parameters)
            clip = ""
            if ending == ".glb":
                character, clip = _with_take(character, model, take, times, poses, Path(scratch))
            title = "".join(c if c.isalnum() or c in "-_ " else "_" for c in take.name).strip() or "take"
            write_motion(character, clip, times, vertices, folder / f"{title}{ending}", name=f"{take.name}.soft")
    return {"file": _packed(folder, job["name"])}


def sketch_job(job: Job, teller: Teller) -> dict[str, Any]:
    """A new basis for a plain body from recorded pulls, and the body reduced by it."""
    with teller.stage(READING):
        sketch = read_sketch(Path(job["sketch"]))
    model, told = solve_sketch(sketch, int(job["size"]), teller.stage)
    with teller.stage(WRITING):
        save_model(model, job["target"])
    return {"model": str(job["target"]), **told}


JOBS: dict[str, Callable[[Job, Teller], dict[str, Any]]] = {
    "build": build_job,
    "bake": bake_job,
    "take": take_job,
    "sketch": sketch_job,
}


def tuned_simulation(model: PoseSpaceModel, settings: Mapping[str, Any] | None, *, fps: float = 60.0) -> Simulation:
    """A simulation with live settings, as the page sees them; what they do not say is as the model was built."""
    settings = settings or {}
    options: dict[str, Any] = {name: settings[name] for name in ("gravity", "inertia") if name in settings}
    if settings.get("damping_ratio") is not None:
        options["damping"] = Damping(float(settings["damping_ratio"]))
    if settings.get("modes"):
        options["modes"] = min(int(settings["modes"]), model.mode_count)
    simulation = model_simulation(model, fps=fps, **options)
    if "stiffness" in settings:
        scales = settings["stiffness"]
        simulation.stepper.stiffness_scale = np.array([float(scales.get(name, 1.0)) for name in model.region_names])
    if "wind" in settings:
        simulation.wind = np.array(settings["wind"], dtype=np.float64)
    return simulation


def even_frames(
    take: Take, vertices: np.ndarray, fps: float, parameters: Parameters
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (f,), vertices (f, n̄, 3) and poses (f, P) of a take at `fps` frames a second, straight between its own.

    Frames that are evenly spaced at that rate already are as they were.
    """
    own, poses = take.times, take.arrays["poses"]
    if len(own) == 1 or np.abs(np.diff(own) - 1.0 / fps).max() < 1e-9:
        return np.arange(len(own)) / fps, vertices, poses
    times = np.arange(int(own[-1] * fps + 1e-6) + 1) / fps
    high = np.clip(np.searchsorted(own, times, side="right"), 1, len(own) - 1)
    low = high - 1
    share = np.clip((times - own[low]) / np.maximum(own[high] - own[low], 1e-12), 0.0, 1.0)
    mixed = vertices[low] + share.astype(np.float32)[:, None, None] * (vertices[high] - vertices[low])
    pairs = zip(poses[low], poses[high], share.tolist(), strict=True)
    return times, mixed, np.array([between(parameters, start, end, part) for start, end, part in pairs])


def _character(job: Job, model: PoseSpaceModel, scratch: Path) -> Character:
    """The character's own file, which a GLB needs; the model's surface does for everything else."""
    given = Path(job["character"]) if job.get("character") else None
    try:
        return model_character(model, Path(job["beside"] or job["model"]), given, scratch)
    except (InputError, OSError):
        if job["ending"] == ".glb":
            raise
        whole = Part(model.name, slice(0, len(model.embedding_nodes)), slice(0, len(model.triangles)))
        return Character(model.name, model.rig, None, model.triangles, (whole,), colours=model.colours)


def _with_take(
    character: Character, model: PoseSpaceModel, take: Take, times: np.ndarray, poses: np.ndarray, scratch: Path
) -> tuple[Character, str]:
    """The character from a copy of its file that has the take's poses as an animation, and that clip's name."""
    if character.source is None or character.source.suffix.lower() not in (".glb", ".vrm"):
        raise InputError("a recorded take can be added to a .glb or .vrm; the character is neither: use a point cache")
    scale = noted_scale(model.notes)
    parameters = model.rig.parameters
    own = poses[:, [parameters.index(name) for name in character.rig.parameters.names]]
    content = with_animation(character.source.read_bytes(), character, take.name, times, own, scale=scale)
    path = scratch / f"take-{character.source.stem}.glb"
    path.write_bytes(content)
    grown = load_character(path, scale=scale)
    return grown, grown.clips[-1].name


def _packed(folder: Path, name: str) -> str:
    """The one file in a folder, or an archive of all of them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise InputError("nothing was written")
    if len(files) == 1:
        return str(files[0])
    target = folder / f"{name}.zip"
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as pack:
        for path in files:
            pack.write(path, path.name)
    for path in files:
        path.unlink()
    return str(target)
