"""PSSD Figure 13: the X, bent by one number, at three poses."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softrig.bench.record import Row, model_sizes, number
from softrig.characters import built_in
from softrig.console import Update
from softrig.fidelity import peak, trajectory_error
from softrig.figures.chart import OTHER, OURS, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import GHOST, framing, heat, key, lengths, shot, skin
from softrig.figures.sheet import Panel, sheet
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.compare import RATE, default_damping, full_trajectory, reduced_trajectory
from softrig.pipeline.timing import step_times
from softrig.project import Project, paper_recipe
from softrig.render import scale_end
from softrig.rig.character import Character

FPS = 60.0
BENT = np.radians(90.0)
MOMENTS = (0.35, 0.70, 1.25, 1.75)
"""Seconds, shown."""
PAPER_TETS = 144
"""Of the paper's cubature for its X."""
SECONDS, LAST = 2.4, 1.8
"""How long it is, and where its last and fastest swing begins."""
DEFAULT, PAPER = "default recipe", "paper's recipe"
SETTINGS = Project().changed(
    mesh={"tets": 2000},
    basis={"modes": 30, "regions": 1, "contact": False, "rehearsal": 0.0},
    material={"preset": "jelly", "young": 4.0e5, "law": "stable-neo-hookean"},
    poses={
        "count": 3,
        "given": (
            {"name": "left", "parameters": {"bend.angle": float(BENT)}},
            {"name": "right", "parameters": {"bend.angle": float(-BENT)}},
        ),
    },
)


def swung(character: Character, angle: float, seconds: float = SECONDS) -> np.ndarray:
    """(f, P) at 60 a second: from one side to the other and halfway back, with stops."""
    times = np.arange(round(seconds * FPS) + 1) / FPS

    def eased(start: float, length: float) -> np.ndarray:
        x = np.clip((times - start) / length, 0.0, 1.0)
        return np.asarray(x * x * (3.0 - 2.0 * x))

    poses = np.repeat(character.rig.parameters.rest[None], len(times), axis=0)
    bend = angle * (eased(0.0, 0.7) - 2.0 * eased(0.8, 0.9) + eased(LAST, 0.4))
    poses[:, character.rig.parameters.index("bend.angle")] = bend
    return poses


def bent_letter(update: Update) -> Figure:
    """PSSD Fig. 13: the X, bent by one number."""
    character = built_in("x")
    recipes = {PAPER: paper_recipe(SETTINGS).changed(cubature={"count": PAPER_TETS}), DEFAULT: SETTINGS}
    poses = swung(character, BENT)
    moved: dict[str, np.ndarray] = {}
    errors: dict[str, float] = {}
    early: dict[str, float] = {}
    before = slice(0, round(LAST * RATE))
    builds: dict[str, Built] = {}
    with TemporaryDirectory() as folder:
        for done, (name, project) in enumerate(recipes.items()):
            builds[name] = built = build_parts(character, project, cache=Path(folder), jobs=1)
            damping = default_damping(built)
            # Each beside the full body on its own moving rest shape; that of the default, the last, is shown.
            moved["full body"] = full_trajectory(built, poses, FPS, damping=damping)
            moved[name] = reduced_trajectory(built.model, poses, FPS, damping=damping)
            full, mass = moved["full body"], built.model.vertex_mass
            errors[name] = 100.0 * trajectory_error(moved[name], full, mass)
            early[name] = 100.0 * trajectory_error(moved[name][before], full[before], mass)
            update(done + 1, 3)
    timing = step_times(built.model)
    peaks = {name: 1e3 * peak(u) for name, u in moved.items()}
    rows = [
        Row("steps a second, one core", "1/s", 1.0 / timing["with surface"], others={"PSSD, 8 threads": 1700}),
        Row(
            "trajectory error against the full body",
            "%",
            errors[DEFAULT],
            others={PAPER: errors[PAPER]},
        ),
        Row(f"the same up to {LAST:g} s, before the last swing", "%", early[DEFAULT], others={PAPER: early[PAPER]}),
        Row(
            "flesh moves up to",
            "mm",
            peaks[DEFAULT],
            others={name: peaks[name] for name in (PAPER, "full body")},
        ),
    ]
    update(3, 3)
    return made(
        "pssd-13",
        "PSSD Figure 13: the X, bent by one number",
        _sheet(built, poses, moved),
        rows,
        "A soft rubber X whose rig has one number: how far it is bent. Bases are made upright and at "
        f"{np.degrees(BENT):.0f}° to either side. The shapes that the rig gives are grey; in front of them the flesh "
        "as it is thrown by the motion (default recipe), coloured by how far it moves. Below: the top of the X off its "
        f"rest shape, beside the full body. By the paper's recipe bases {np.degrees(BENT):.0f}° apart are mixed in the "
        "world, so that halfway each is turned the wrong way by half of that. By the default recipe frames that are "
        "fitted to the rig's motion stand for the bones it does not have, the shapes turn with them, and the "
        f"stiffness is learned over all bends. Until the last and fastest swing begins, at {LAST:g} s, the default "
        f"recipe is {number(early[DEFAULT])} % off the full body and the paper's {number(early[PAPER])} %; over all, "
        f"{number(errors[DEFAULT])} % and {number(errors[PAPER])} %. The flesh goes up to {number(peaks[DEFAULT])} mm "
        f"by the default recipe, {number(peaks[PAPER])} mm by the paper's and {number(peaks['full body'])} mm in the "
        "full body.",
        alt=f"A rubber X bent to either side: {number(errors[DEFAULT])} % off the full body by the default recipe, "
        f"{number(errors[PAPER])} % by the paper's",
        value=DEFAULT,
        remark="Steps a second are the default recipe's, surface included.",
        sizes={f"X, {name}": model_sizes(each.model) for name, each in builds.items()},
    )


def _sheet(built: Built, poses: np.ndarray, moved: dict[str, np.ndarray]) -> np.ndarray:
    size = (290, 270)
    mesh, reduced = built.flesh.mesh, moved[DEFAULT]
    steps = [int(t * RATE) for t in MOMENTS]
    rest = [built.model.tet_rest(poses[round(t * FPS)]) for t in MOMENTS]
    camera = framing([*rest, *(x + reduced[i] for x, i in zip(rest, steps, strict=True))], (0.0, 0.15, 1.0), size)
    most = scale_end(float(lengths(reduced[steps].reshape(-1, 3)).max()))
    panels = []
    for t, i, x in zip(MOMENTS, steps, rest, strict=True):
        u = reduced[i]
        behind = skin(mesh, x - np.array([0.0, 0.0, 0.22]), GHOST, wire=True)
        image = shot([behind, skin(mesh, x + u, heat(lengths(u), most))], camera, size)
        angle = np.degrees(poses[round(t * FPS), built.model.rig.parameters.index("bend.angle")])
        panels.append(Panel(image, "", f"{t:.2f} s, bent {angle:.0f}°\nup to {1e3 * lengths(u).max():.0f} mm"))
    tip = int(np.argmax(mesh.vertices[:, 1] + 0.2 * mesh.vertices[:, 0]))
    times = np.arange(1, len(reduced) + 1) / RATE
    colours = {"full body": TRUTH, PAPER: OTHER, DEFAULT: OURS}
    lines = [
        Line(name, times, 1e3 * lengths(u[:, tip]), colours[name], dashed=name != "full body", width=3.0)
        for name, u in moved.items()
    ]
    chart = line_chart(lines, x_label="time, s", y_label="top moves, mm", size=(1180, 300))
    return sheet([panels, [key(heat, most, "mm moved", unit=1e3)], [Panel(chart)]])
