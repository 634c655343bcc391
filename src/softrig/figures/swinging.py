"""SUB11 Figure 7 and a clip: a flower that swings or is pulled, the full simulation beside reduced ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from softrig.bench.record import Row, body_sizes
from softrig.bench.substructured_fidelity import CENTRE, ENDS, EXACT, INTERFACE, PUBLISHED, SCENES
from softrig.bench.substructured_truth import STEP, Swing, first_mode_swing, full_motion, reduced_motion
from softrig.bench.substructuring import PAPER, model_sizes
from softrig.console import Update
from softrig.fidelity import compare, trajectory_error
from softrig.figures.chart import BAND, FOURTH, OTHER, OURS, Line, line_chart
from softrig.figures.figure import Figure, made, made_of
from softrig.figures.flowers import DAMPING, FORCE, HELD, PULLED, flower_body, flower_model, pull_at_the_end, pulled
from softrig.figures.garden import drawn, seen, taken, white_floor
from softrig.figures.pulled import SIZE, TOWARDS, pull_arrow, pull_tip
from softrig.figures.sheet import Panel, sheet
from softrig.io.images import animated_png
from softrig.models.substructured import SubstructuredModel
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.substructuring import substructure
from softrig.render.axes import fitted_axis

STEPS = 540
WIDE = SCENES["wide"]
BLOOMS = {"A": "bloom", "B": "side bloom"}
"""What the paper calls the tops of the two."""
LOOKS = {
    EXACT: ("softrig, exact inertia", OURS),
    CENTRE: ("lumped at the centre (L2)", OTHER),
    INTERFACE: ("lumped at the interface (L1)", FOURTH),
}
FULL = "full simulation"
EVERY = 9
"""Steps for each frame of the clip."""
ABOVE_AND_BELOW, BESIDE = 76, 94
"""Pixels of a chart without a legend that are not its field."""
GROUND_LINE = "#e2e4e9"


@cache
def paper_model() -> SubstructuredModel:
    """The flower with modal derivatives alone, as the paper has it; made once a run."""
    return substructure(flower_body(), basis="modal-derivatives")


def top(model: SubstructuredModel, domain: str, rest: np.ndarray) -> int:
    """The highest vertex of a domain, of the drawn ones; `rest` (m, 3) metres."""
    number = model.domain(domain)
    own = model.drawn[model.vertex_starts[number] : model.vertex_starts[number + 1]]
    return int(own[np.argmax(rest[own, 2])])


def trajectories(update: Update) -> Figure:
    """SUB11 Fig. 7: trajectories of two blooms, full, exact and with lumped inertia."""
    swing = first_mode_swing(flower_body(), ENDS)
    velocity, mass = WIDE * swing.velocity, swing.full.vertex_mass
    truth = full_motion(swing.full, STEPS, velocity, update=lambda done, total: update(done, total + 40)).displacements
    motions = {
        kind: reduced_motion(
            flower_model() if kind == EXACT else paper_model(), kind, STEPS, velocity, mass
        ).displacements
        for kind in LOOKS
    }
    update(STEPS + 20, STEPS + 40)
    reports = {kind: compare(motion, truth, mass, 1.0 / STEP) for kind, motion in motions.items()}
    rows = []
    for kind, (name, _) in LOOKS.items():
        report = reports[kind]
        published = {PAPER: PUBLISHED[kind]} if kind in PUBLISHED else {}
        rows += [
            Row(f"{name}: trajectory error", "%", 100.0 * report.error),
            Row(f"{name}: frequency over full", "×", report.frequency_ratio, others=published),
            Row(f"{name}: peak over full", "×", report.peak_ratio),
        ]
    charts = [paths(swing, truth, motions, letter, domain) for letter, domain in BLOOMS.items()]
    return made(
        "sub11-7",
        "SUB11 Figure 7: how true trajectories are",
        sheet([at_a_moment(swing, truth, motions), charts, [Panel(over_time(swing, truth, motions))]]),
        rows,
        "The flower starts undeformed with a velocity along the first mode of the whole mesh, enough to turn the end "
        f"of its side stem by {WIDE:g}°, and swings for {STEPS * STEP:g} s. Above: at rest, and all at the height of "
        "its second swing. Middle: the paths of the tops of both blooms, seen from above. Below: the first bloom's "
        f"way over time. With exact inertia the error is {rows[0].told()}, and the curves lie on those of the full "
        f"simulation. The paper's lumped kinds swing {rows[4].told()} (L2) and {rows[7].told()} (L1) as fast as the "
        "truth on this flower.",
        alt=f"Paths of two blooms of a flower from above: softrig's lie on those of the full simulation, "
        f"{rows[0].told()} off; the paper's lumped kinds do not",
        value="measured",
        remark="20 modes a domain; ours with the basis that knows what it carries, L1 and L2 with modal derivatives "
        "alone, all with the same damping and step.",
        sizes={"flower": body_sizes(swing.full) | {"domains": 12, "modes": flower_model().size}},
    )


def at_a_moment(swing: Swing, truth: np.ndarray, motions: dict[str, np.ndarray]) -> list[Panel]:
    """The flower at rest, and at the height of its second swing, of the full simulation and of each kind."""
    model, x = flower_model(), swing.body.mesh.vertices
    first, last = (round(periods / swing.frequency / STEP) for periods in (1.0, 1.5))
    moment = first + int(np.linalg.norm(truth[first:last], axis=2).max(axis=1).argmax())
    size = (205, 290)
    shown = {FULL: truth[moment], **{LOOKS[kind][0]: motion[moment] for kind, motion in motions.items()}}
    camera = seen([x, *(x + u for u in shown.values())], TOWARDS, size)
    ground = white_floor(SIZE)
    panels = [Panel(taken(drawn(model, x), camera, size, ground=ground, finer=2), "at rest", "0 s")]
    for name, u in shown.items():
        image = taken(drawn(model, x + u), camera, size, ground=ground, finer=2)
        panels.append(Panel(image, name.replace(", ", ",\n").replace(" at", "\nat"), f"{(moment + 1) * STEP:.2f} s"))
    return panels


def paths(swing: Swing, truth: np.ndarray, motions: dict[str, np.ndarray], letter: str, domain: str) -> Panel:
    """A bird's eye view of where the top of a bloom goes, x to the right and y upwards, at one scale both."""
    vertex = top(flower_model(), domain, swing.body.mesh.vertices)
    tracks = {kind: 1e3 * motion[:, vertex, :2] for kind, motion in motions.items()}
    true = 1e3 * truth[:, vertex, :2]
    most = max(float(np.abs(track).max()) for track in (true, *tracks.values()))
    step = next(s for s in (5.0, 10.0, 20.0, 50.0) if 4.0 * s >= most)
    ends = step * np.ceil(most / step)
    sideways = max(float(np.abs(track[:, 1]).max()) for track in (true, *tracks.values()))
    y_axis = fitted_axis(-sideways, sideways, 0.0, 1.0, most=5)
    lines = [Line("", true[:, 0], true[:, 1], BAND, width=8.0)]
    lines += [
        Line("", tracks[kind][:, 0], tracks[kind][:, 1], LOOKS[kind][1], width=1.4) for kind in (INTERFACE, CENTRE)
    ]
    lines.append(Line("", tracks[EXACT][:, 0], tracks[EXACT][:, 1], OURS, width=2.0))
    lines.append(Line("", np.array([-ends, ends]), np.zeros(2), GROUND_LINE, width=0.5))
    width = 531
    height = ABOVE_AND_BELOW + round((width - BESIDE) * (y_axis.high - y_axis.low) / (2.0 * ends))
    chart = line_chart(
        lines,
        x_label="x, mm",
        y_label="y, mm",
        size=(width, height),
        legend="",
        y_range=(-sideways, sideways),
    )
    return Panel(chart, f"{letter}: top of the {'first' if domain == 'bloom' else 'side'} bloom, from above")


def over_time(swing: Swing, truth: np.ndarray, motions: dict[str, np.ndarray]) -> np.ndarray:
    """x of A against time, of all."""
    vertex = top(flower_model(), BLOOMS["A"], swing.body.mesh.vertices)
    times = STEP * np.arange(1, len(truth) + 1)
    lines = [
        Line(LOOKS[kind][0], times, 1e3 * motions[kind][:, vertex, 0], LOOKS[kind][1], width=1.8)
        for kind in (INTERFACE, CENTRE)
    ]
    lines = [Line(FULL, times, 1e3 * truth[:, vertex, 0], BAND, width=6.0), *lines]
    lines.append(Line(LOOKS[EXACT][0], times, 1e3 * motions[EXACT][:, vertex, 0], OURS))
    return line_chart(lines, x_label="time, s", y_label="x of A, mm", size=(1080, 330))


def flower_clip(update: Update) -> Figure:
    """Clip: a flower is pulled and let go, full and in domains."""
    body, model = flower_body(), flower_model()
    swing = first_mode_swing(body, ENDS)
    pull = pull_at_the_end(model, PULLED, FORCE)
    x = body.mesh.vertices
    forces = np.stack([pull.field(len(x), (i + 1) * STEP) for i in range(STEPS)])
    truth = (
        x
        + full_motion(
            swing.full, STEPS, forces=forces, update=lambda done, total: update(done, total + 60), damping=DAMPING
        ).displacements
    )
    ours = pulled(model, pull, STEPS).places
    error = trajectory_error(ours - x, truth - x, swing.full.vertex_mass)
    apart = np.linalg.norm(ours - truth, axis=2)
    moments = range(EVERY - 1, STEPS, EVERY)
    size = (250, 330)
    camera = seen([x, truth[::6].reshape(-1, 3)[::5], pull_tip(pull, truth[moments[17]])[None]], TOWARDS, size)
    ground = white_floor(SIZE)

    def both(moment: int) -> np.ndarray:
        strength = pull.strength((moment + 1) * STEP)
        panels = []
        for name, places in ((FULL, truth[moment]), ("softrig, 12 domains", ours[moment])):
            meshes = [drawn(model, places), *(pull_arrow(pull, places) if strength > 0.0 else [])]
            panels.append(Panel(taken(meshes, camera, size, ground=ground, finer=2), name))
        return sheet([panels])

    with ThreadPoolExecutor(worker_count(None)) as pool:
        pictures = list(pool.map(both, moments))
    # What cannot play it shows the pull.
    first = round(HELD / STEP / EVERY) - 2
    pictures = [*pictures[first:], *pictures[:first]]
    update(STEPS + 60, STEPS + 60)
    rows = [
        Row("trajectory error against the full simulation, all vertices and steps", "%", 100.0 * error),
        Row("from the full simulation, farthest vertex of all steps", "mm", 1e3 * float(apart.max())),
        Row("the side bloom goes, farthest", "mm", 1e3 * float(np.linalg.norm(truth - x, axis=2).max())),
    ]
    return made_of(
        "clip-flower",
        "Clip: a flower is pulled and let go",
        animated_png(pictures, 1.0 / (STEP * EVERY)),
        rows,
        f"{STEPS * STEP:g} s in {len(pictures)} frames, in real time. Left: the full simulation of all "
        f"{len(body.mesh.elements):,} tets, step by step. Right: 12 reduced domains with {model.size} modes in all. "
        f"The side stem is pulled with {np.linalg.norm(FORCE):.2f} N (red) and let go after {HELD:g} s; over the whole "
        f"clip the reduced flower errs by {rows[0].told()} of the full motion.",
        alt=f"A flower is pulled and let go, full and reduced: {rows[0].told()} apart",
        value="softrig",
        remark="Both from rest, with the same material, damping and steps, without gravity.",
        sizes={"flower": body_sizes(swing.full) | model_sizes(model)},
    )
