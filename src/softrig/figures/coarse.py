"""PSSD Figure 15: the reduced gorilla beside the full one and coarse meshes, of its cost and of five times that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Row, model_sizes, number
from softrig.characters import built_in
from softrig.console import Update
from softrig.dynamics import Rayleigh
from softrig.fidelity import trajectory_error
from softrig.figures.chart import BAND, FOURTH, OTHER, OURS, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import GHOST, framing, key, lengths, shot
from softrig.figures.look import wrong as wrong_colour
from softrig.figures.sheet import Panel, sheet
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.coarse import (
    ITERATIONS,
    CoarseBody,
    equal_cost_body,
    full_step_seconds,
    on_surface,
    reduced_step_seconds,
)
from softrig.pipeline.compare import RATE, default_damping, full_trajectory, reduced_trajectory
from softrig.project import Project
from softrig.render import Mesh, scale_end
from softrig.rig.character import Character

FPS = 60.0
CLIP, SECONDS = "jump", 1.2
SEEN = ("walk", "beat")
"""Clips that the build knows."""
FINE = 3500
"""Tets: ours and the full simulation's."""
COSTS = (1, 5)
"""What steps on the two coarse meshes of PSSD Fig. 15 may cost, over ours; the paper's had 420 and 1229 tets."""
SETTINGS = Project().changed(
    mesh={"tets": FINE},
    basis={"modes": 100, "contact": False, "rehearsal": 3.0},
    material={"preset": "muscle"},
    poses={"count": 4},
)


@dataclass(frozen=True, eq=False)
class Run:
    """A motion of the drawn surface and what a step cost."""

    surface: np.ndarray
    """(steps, n̄, 3) metres off plain skinning."""
    seconds: float
    """Least of a step."""
    tets: int
    free: float
    """Share of the tet vertices that can move."""


def full_run(body: Built | CoarseBody, poses: np.ndarray, damping: Rayleigh) -> Run:
    """Every tet of a mesh, step by step."""
    u = full_trajectory(body, poses, FPS, damping=damping, iterations=ITERATIONS)
    return _run(body.model, u, full_step_seconds(body, damping))


def reduced_run(built: Built, poses: np.ndarray) -> Run:
    """The reduced model."""
    damping = default_damping(built)
    u = reduced_trajectory(built.model, poses, FPS, damping=damping)
    return _run(built.model, u, reduced_step_seconds(built.model, damping))


def _run(model: PoseSpaceModel, u: np.ndarray, seconds: float) -> Run:
    return Run(on_surface(model, u), seconds, len(model.tets), float((~model.fixed).mean()))


def full_and_coarse(update: Update) -> Figure:
    """PSSD Fig. 15: the reduced gorilla against the full one and against coarse meshes."""
    character = built_in("gorilla")
    _, poses = character.clip(CLIP).resample(FPS)
    poses = poses[: round(SECONDS * FPS)]
    character = replace(character, clips=tuple(character.clip(name) for name in SEEN))
    with TemporaryDirectory() as folder:
        built = build_parts(character, SETTINGS, cache=Path(folder), jobs=1)
        update(1, 5)
        damping = default_damping(built)
        runs = {"full body": full_run(built, poses, damping)}
        update(2, 5)
        runs["reduced"] = reduced_run(built, poses)
        dear = []
        for done, times in enumerate(COSTS):
            budget = times * runs["reduced"].seconds
            found = equal_cost_body(built, SETTINGS, budget=budget, damping=damping, cache=Path(folder))
            run = full_run(found.body, poses, damping)
            runs[_coarse_name(run, runs["reduced"].seconds)] = run
            dear += [] if found.is_met else [times]
            update(3 + done, 5)
    truth = runs["full body"]
    errors = {
        name: 100.0 * trajectory_error(run.surface, truth.surface, character.areas)
        for name, run in runs.items()
        if run is not truth
    }
    ours = runs["reduced"].seconds
    rows = [Row("full body: a step", "ms", 1e3 * truth.seconds), Row("reduced: a step", "ms", 1e3 * ours)]
    rows.append(Row("full step over reduced", "×", truth.seconds / ours, others={"PSSD": 60.0}))
    for name, run in runs.items():
        if run is not truth:
            rows.append(Row(f"{name}: error of the surface", "%", errors[name]))
        if name not in ("full body", "reduced"):
            rows.append(Row(f"{name}: a step, over ours", "×", run.seconds / ours))
        if name != "reduced":
            rows.append(Row(f"{name}: vertices that can move", "%", 100.0 * run.free))
    return made(
        "pssd-15",
        "PSSD Figure 15: full, reduced, and coarse meshes",
        _sheet(character, built, poses, runs, errors),
        rows,
        f"A gorilla jumps; the clip was not seen by the build. Grey is the full simulation of {truth.tets:,} tets, "
        "the others are red where they are off it, at the moment of its largest motion. The reduced model has "
        f"{built.model.mode_count} modes on the same mesh. Coarse meshes without reduction move too little: "
        "more of their vertices are held by the bones. Below: the RMS motion of the surface, the full body's as a "
        "wide grey band. The full step is that of a small mesh, compiled like ours: on larger meshes, such as the "
        "default of 16,000 tets, a full step grows with them and a reduced one hardly, so the speed-up is another.",
        alt=f"A jumping gorilla, four times: the reduced one is {number(errors['reduced'])} % off the full one at "
        f"{number(truth.seconds / ours)} times its speed, the coarse ones "
        f"{' and '.join(number(errors[name]) + ' %' for name in list(errors)[1:])}",
        remark="Same material, damping and step everywhere, no gravity. The coarse meshes are the finest of some tried "
        "whose compiled full step costs no more than ours, and than five of ours; the paper's had 420 and 1,229 tets. "
        "Steps are timed one at a time, the quickest counts." + _too_dear(dear),
        sizes={"gorilla": model_sizes(built.model)},
    )


def _coarse_name(run: Run, ours: float) -> str:
    """By its mesh, and what a step was measured to cost over that of `ours`, s."""
    return f"{run.tets:,} tets, {number(run.seconds / ours)} × the cost"


def _too_dear(dear: list[int]) -> str:
    """What to say of costs, over ours, that no mesh keeps to."""
    return "".join(f" No mesh costs so little as {times} of our steps: the coarsest is shown." for times in dear)


def _sheet(
    character: Character, built: Built, poses: np.ndarray, runs: dict[str, Run], errors: dict[str, float]
) -> np.ndarray:
    size = (290, 310)
    truth = runs["full body"]
    swing = {name: np.sqrt((run.surface**2).sum(axis=2).mean(axis=1)) for name, run in runs.items()}
    when = int(np.argmax(swing["full body"]))
    p = poses[min(round((when + 1) / RATE * FPS), len(poses) - 1)]
    plain = built.model.rig.positions(built.model.corrected(p))
    camera = framing([plain + run.surface[when] for run in runs.values()], (0.45, 0.12, 1.0), size, margin=1.03)
    most = scale_end(0.5 * float(lengths(truth.surface[when]).max()))
    panels = []
    for name, run in runs.items():
        paint: object = GHOST if run is truth else wrong_colour(lengths(run.surface[when] - truth.surface[when]), most)
        mesh = Mesh(plain + run.surface[when], character.triangles, paint)  # type: ignore[arg-type]
        note = f"{number(1e3 * run.seconds)} ms a step"
        note += "" if run is truth else f"\nerror {errors[name]:.0f} %"
        panels.append(Panel(shot([mesh], camera, size), name, note))
    times = np.arange(1, len(truth.surface) + 1) / RATE
    colours = (BAND, OURS, OTHER, FOURTH)
    lines = [
        Line(
            name,
            times,
            1e3 * swing[name],
            colour,
            width=10.0 if name == "full body" else 2.0,
        )
        for name, colour in zip(runs, colours, strict=True)
    ]
    chart = line_chart(lines, x_label="time, s", y_label="surface moves, mm", size=(1180, 300))
    return sheet([panels, [key(wrong_colour, most, "mm and more from the full body", unit=1e3)], [Panel(chart)]])
