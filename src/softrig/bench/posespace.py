"""`softrig bench posespace`: the pose-space step on one core, its bound and its errors."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.bench.record import Record, Row, model_sizes, timing_row
from softrig.characters import built_in
from softrig.console import Update
from softrig.machine import Timing, this_machine, timed
from softrig.models.kernels.pose_space_layout import inertia_projection, region_runs
from softrig.models.moving import FullSimulation
from softrig.models.stepper import Stepper
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.compare import default_damping
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.pose_samples import FRAMES_A_SECOND
from softrig.pipeline.reduction import between_poses_errors
from softrig.pipeline.timing import moving_carriers, table_bytes
from softrig.project import Project

GORILLA = Project().changed(basis={"modes": 100, "regions": 6}, poses={"count": 4})

PAPER_SINGLE_CORE = {100: 1e3 / 240.0, 50: 1e3 / 600.0, 25: 1e3 / 1400.0, 10: 1e3 / 2200.0}
"""ms a frame of the gorilla on one core, by modes (PSSD §9), surface included."""
STEPS = 400


def pose_space(update: Update) -> Record:
    """The gorilla: 6 regions, r = 100, 4 poses, one thread."""
    with TemporaryDirectory() as folder:
        return _pose_space(Path(folder), update)


def _pose_space(cache: Path, update: Update) -> Record:
    character = built_in("gorilla")
    start = time.perf_counter()
    built = build_parts(character, GORILLA, cache=cache)
    seconds = time.perf_counter() - start
    update(1, 6)
    with threadpool_limits(1):
        rows = [Row("whole build, all cores", "s", seconds, goal=120.0)]
        step, surface = step_and_surface(built)
        rows += _step_rows(step, surface)
        pose = pose_time(built)
        rows.append(timing_row("pose: kinematics, features, weights", "ms", pose))
        update(2, 6)
        bound = machine_bound(built)
        rows.append(Row("least step over the machine's bound", "×", step.least / bound, goal=4.0))
        full = full_step(built)
        rows.append(timing_row("full simulation, a step", "ms", full))
        ratio, paper = full.least / step.least, {"PSSD": 125.0}
        rows.append(Row("full over reduced", "×", ratio, goal=150.0, others=paper, at_least=True))
        update(3, 6)
        for modes in (50, 25, 10):
            part, drawn = step_and_surface(built, modes)
            total = 1e3 * (part.least + drawn.least)
            paper = {"PSSD, one core, with surface": PAPER_SINGLE_CORE[modes]}
            rows.append(
                Row(f"r = {modes}: step and surface", "ms", total, 1e3 * (part.median + drawn.median), others=paper)
            )
        update(4, 6)
    held = table_bytes(Stepper(built.model, damping=default_damping(built)))
    rows.append(Row("memory of the running model", "MB", held / 1e6, goal=10.0, others={"PSSD": 7.9}))
    rows += _error_rows(built)
    rows += _count_rows(built, cache)
    update(6, 6)
    return Record(
        "posespace",
        "Pose-space dynamics: gorilla, 16,000 tets, r = 100 in 6 regions, 4 poses, one thread",
        this_machine(),
        rows,
        "The bound: the step's matrix products and the reading of its tables at this machine's measured rates.",
        {"gorilla": model_sizes(built.model)},
    )


def step_and_surface(built: Built, modes: int | None = None) -> tuple[Timing, Timing]:
    """Seconds of an inner step in motion, and of drawing the surface."""
    stepper = Stepper(built.model, damping=default_damping(built), modes=modes)
    moments = moving_carriers(stepper, stepper.model)
    stepper.place(moments[0][0])
    count = iter(range(10**9))
    step = timed(lambda: stepper.step(*moments[next(count) % len(moments)]), repeats=STEPS)
    pose = built.model.clips[0].sample(0.1)[0]
    return step, timed(lambda: stepper.surface(pose), repeats=STEPS // 4)


def pose_time(built: Built) -> Timing:
    """Seconds from rig parameters to carrier values: kinematics, features and pose weights."""
    stepper = Stepper(built.model, damping=default_damping(built))
    pose = built.model.clips[0].sample(0.1)[0]
    return timed(lambda: stepper.carriers(pose), repeats=STEPS)


def _step_rows(step: Timing, surface: Timing) -> list[Row]:
    both = step.least + surface.least
    paper = {"PSSD, 8 threads": 1.33, "PSSD, one core": PAPER_SINGLE_CORE[100]}
    return [
        timing_row("step", "ms", step, goal=0.25),
        timing_row("surface of 15,774 vertices", "ms", surface),
        Row("step and surface", "ms", 1e3 * both, 1e3 * (step.median + surface.median), goal=0.45, others=paper),
    ]


def machine_bound(built: Built) -> float:
    """Seconds: the step's matrix products at this machine's GEMM rate plus its tables at its memory bandwidth."""
    model = built.model
    touched = [np.unique(model.tets[tet]) for tet in model.cubature.tets]
    reach = np.asarray(model.shapes.any(axis=(0, 2)))
    columns = np.array([reach[vertices].any(axis=0).sum() for vertices in touched])
    flops = float(np.sum(9 * columns**2) + model.mode_count**3 / 3.0)  # half of 2·9·c², symmetric; Cholesky
    table = float(sum(12 * c for c in columns)) * len(model.shapes) * 4.0  # shapes are single precision
    inertia = inertia_projection(model, region_runs(model.region_of_mode)).entries
    table += 8.0 * 0.5 * (model.moved_mass != 0.0).sum() / 2.0 + inertia.nbytes
    return flops / gemm_rate() + table / bandwidth()


def gemm_rate(size: int = 384) -> float:
    """Floating-point operations a second of a matrix product, one thread."""
    a = np.random.default_rng(0).standard_normal((size, size))
    out = np.empty_like(a)
    return 2.0 * size**3 / timed(lambda: np.dot(a, a, out=out), repeats=20).least


def bandwidth(megabytes: int = 2) -> float:
    """Bytes a second of reading an array that fits the cache of a core, as the step's tables do."""
    values = np.ones(megabytes * 125_000)
    return values.nbytes / timed(values.sum, repeats=50).least


def full_step(built: Built, steps: int = 12) -> Timing:
    """Seconds of a step of the full simulation in motion."""
    full = FullSimulation(
        built.model, built.fabric.young, built.fabric.poisson, damping=default_damping(built), gravity=(0.0, 0.0, 0.0)
    )
    _, poses = built.model.clips[0].resample(60.0)
    moments = [
        tuple(part.copy() for part in moment) for moment in carrier_steps(full.carriers_at, poses[:8], 60.0, 180.0)
    ]
    full.place(full.carriers_at(poses[0]))
    count = iter(range(10**9))
    return timed(lambda: full.step(*moments[next(count) % len(moments)]), repeats=steps)


def _error_rows(built: Built) -> list[Row]:
    at = _worst_error(built, built.model.poses.parameters, own=True)
    between = np.concatenate([clip.sample(unseen_moments(clip.duration)) for clip in built.model.clips])
    worst = _worst_error(built, between, own=False)
    inertial = built.model.notes["inertia"]["along clips"]
    return [
        Row("force error at the poses, worst", "%", 100.0 * at, goal=5.0, others={"PSSD, training": 3.0}),
        Row("force error between them, worst", "%", 100.0 * worst, goal=6.0),
        Row("inertial error along the clips, worst", "%", 100.0 * max(inertial.values()), goal=1.0),
    ]


def unseen_moments(duration: float) -> np.ndarray:
    """(2,) seconds, a third and two thirds into a clip, halfway between moments at which maps may have been fitted."""
    steps = np.floor(duration * FRAMES_A_SECOND * np.array([1.0, 2.0]) / 3.0)
    return (steps + 0.5) / FRAMES_A_SECOND


def _worst_error(built: Built, poses: np.ndarray, *, own: bool) -> float:
    """The largest error of the model's internal force at poses (k, P), its own or not, on samples no fit has seen."""
    parts = built.model, built.flesh, built.posing, built.fabric
    found = [between_poses_errors(*parts, p, own=own) for p in poses]
    return max(max(errors.gaussian, errors.loads) for errors in found)


def _count_rows(built: Built, cache: Path) -> list[Row]:
    """Error and time against the number of cubature tets."""
    rows = []
    for share in (0.75, 3.0):
        count = round(share * built.model.mode_count)
        other = build_parts(built.character, GORILLA.changed(cubature={"count": count}), cache=cache)
        worst = _worst_error(other, other.model.poses.parameters, own=True)
        with threadpool_limits(1):
            step, _ = step_and_surface(other)
        rows.append(Row(f"{len(other.model.cubature.tets)} cubature tets: error at the poses", "%", 100.0 * worst))
        rows.append(
            Row(f"{len(other.model.cubature.tets)} cubature tets: step", "ms", 1e3 * step.least, 1e3 * step.median)
        )
    return rows
