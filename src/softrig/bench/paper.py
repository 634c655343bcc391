"""The tables of StVK05 on stand-ins of the same element counts, and its Figure 12."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softrig.bases.derivatives import derivative_basis, derivative_samples, modal_derivatives
from softrig.bases.modes import linear_modes
from softrig.bases.sketch import SketchPad, sketched_basis
from softrig.bench.record import Record, Row
from softrig.bodies import Soup, footbridge, heart, spoon, tower
from softrig.console import Update
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body
from softrig.machine import this_machine, timed
from softrig.meshing.voxels import Voxelisation
from softrig.models.full import FullBody
from softrig.models.kernels import polynomial
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.numerics.pca import mass_pca

PAPER = "StVK05 (2005)"


@dataclass(frozen=True)
class Model:
    """One row of the paper's tables, with our stand-in's geometry; seconds and microseconds as printed."""

    make: Callable[[], Soup]
    young: float
    modes: int
    size: int
    elements: int
    linear_modes: float | None
    right_sides: float | None
    solves: float | None
    coefficients: float
    coefficient_bytes: float
    force: float
    stiffness: float
    solve: float
    total: float
    display: float


MODELS = {
    "spoon": Model(spoon, 3e6, 6, 12, 2005, 24, 6.5, 33, 60, 98e3, 8.2, 9.5, 12.5, 30.2, 565),
    "bridge": Model(footbridge, 1.5e7, 8, 15, 5854, None, None, None, 186, 223e3, 22, 25, 18.4, 65.4, 14500),
    "tower": Model(tower, 1e9, 20, 30, 11304, 65, 226, 1560, 4752, 3.0e6, 550, 770, 75, 1395, 25500),
    "heart": Model(heart, 1e5, 20, 30, 14444, 111, 291, 1680, 5844, 3.0e6, 550, 770, 75, 1395, 6500),
}


def _stand_in(model: Model) -> tuple[Soup, Voxelisation, FullBody]:
    """The generated triangles, their bricks, and the body held where the soup says."""
    soup = model.make()
    voxels = soup.voxelised()
    material = Material(young=model.young, poisson=0.3, density=1000.0)
    return soup, voxels, FullBody(voxels.mesh, material, fixed=soup.fixed_vertices(voxels.mesh.vertices))


def paper_tables(update: Update) -> Record:
    """StVK05 Figs. 5, 8 and 11 for the four stand-ins."""
    rows: list[Row] = []
    for done, (name, model) in enumerate(MODELS.items()):
        rows += _rows(name, model)
        update(done + 1, len(MODELS))
    return Record(
        "stvk05-tables",
        "StVK05 Figures 5, 8 and 11, on generated stand-ins",
        this_machine(),
        rows,
        "Precomputation is timed once, steps as the least of many. Elements: ours against the paper's count. "
        "The stiffness gives the force for nothing, so force and stiffness are one entry.",
    )


def _rows(name: str, model: Model) -> list[Row]:
    soup, voxels, body = _stand_in(model)

    def row(what: str, unit: str, ours: float, paper: float | None) -> Row:
        return Row(f"{name}: {what}", unit, ours, others={} if paper is None else {PAPER: paper})

    start = time.perf_counter()
    modes = linear_modes(body, model.modes)
    modes_seconds = time.perf_counter() - start
    start = time.perf_counter()
    derivatives = modal_derivatives(body, modes)
    derivative_seconds = time.perf_counter() - start
    shapes, _ = mass_pca(derivative_samples(body, modes, derivatives), body.mass, model.size)
    start = time.perf_counter()
    reduced = reduce_body(body, shapes, surface=voxels.embedding, surface_triangles=soup.triangles)
    coefficient_seconds = time.perf_counter() - start
    parts = reduced.coefficients
    size = parts.linear.nbytes + parts.cubic.nbytes + parts.quartic.nbytes
    paper_derivatives = None if model.solves is None else (model.right_sides or 0.0) + model.solves
    evaluate, step, display = _step_parts(reduced)
    r = f"r = {model.size}"
    return [
        row("elements", "", len(body.mesh.elements), model.elements),
        row(f"{model.modes} linear modes (Fig. 8)", "s", modes_seconds, model.linear_modes),
        row("modal derivatives, right-hand sides and solves (Fig. 8)", "s", derivative_seconds, paper_derivatives),
        row(f"coefficients, {r} (Fig. 5)", "s", coefficient_seconds, model.coefficients),
        row("size of coefficients, λ and μ apart (Fig. 5)", "kB", size / 1e3, model.coefficient_bytes / 1e3),
        row(f"force and stiffness, {r} (Fig. 11)", "µs", evaluate, model.force + model.stiffness),
        row(f"integration total, {r} (Fig. 11)", "µs", step, model.total),
        row(f"u = Uq, {len(soup.vertices):,} drawn vertices (Fig. 11)", "µs", display, model.display),
    ]


def _step_parts(model: ReducedBody) -> tuple[float, float, float]:
    """Microseconds of one evaluation, one whole step, one display."""
    r = model.size
    s = r * (r + 1) // 2
    q, force, stiffness, scratch = np.full(r, 1e-3), np.empty(r), np.empty(s), np.empty(4 * s)
    flat = model.flat_coefficients
    evaluate = timed(lambda: polynomial.evaluate(flat, q, force, stiffness, scratch), repeats=100, inner=50)
    simulation = ReducedSimulation(model, 1e-4, damping=Rayleigh(0.0, 1e-4))
    simulation.v[0] = 1e-3
    step = timed(simulation.step, repeats=100, inner=50)
    drawn = simulation.surface_positions()
    display = timed(lambda: simulation.surface_positions(drawn), repeats=30)
    return 1e6 * evaluate.least, 1e6 * step.least, 1e6 * display.least


@dataclass(frozen=True)
class Kick:
    """StVK05 §7: a short vertical impulse at the end of the spoon, deep into the nonlinear range."""

    force: float = 0.035
    """Peak, newton; a half sine."""
    periods: float = 1.9
    """How long to watch, periods of the first mode."""
    steps_a_period: int = 80

    @property
    def damping(self) -> Rayleigh:
        """A little, for the high frequencies."""
        return Rayleigh(0.0, 2e-4)


def kicked_spoon(update: Update) -> Record:
    """StVK05 Fig. 12: amplitude and frequency of the kicked spoon, full against reduced."""
    _, _, body = _stand_in(MODELS["spoon"])
    kick = Kick()
    period = 1.0 / linear_modes(body, 1).frequencies[0]
    step = period / kick.steps_a_period
    steps = round(kick.periods * kick.steps_a_period)
    tip = _tip(body)
    shape = np.zeros_like(body.mesh.vertices)
    shape[tip, 2] = 1.0 / len(tip)
    load = body.restrict(shape)
    times = step * np.arange(1, steps + 1)
    length = period / 6.0
    pulse = np.where(times < length, kick.force * np.sin(np.pi * times / length), 0.0)
    full = np.empty(steps)
    integrator = Integrator(body, step, damping=kick.damping, tolerance=1e-6)
    state = State.rest(body.size)
    for i in range(steps):
        state = integrator.step(state, pulse[i] * load)
        full[i] = load @ state.q
        update(i + 1, steps + 40)
    reach = float(np.ptp(body.mesh.vertices, axis=0).max())
    rows = [
        Row("full: amplitude over the spoon's length", "", float(np.abs(full).max()) / reach),
        Row("full: nonlinear over linear frequency", "", _frequency(full, step) * period),
    ]
    sketched = _sketch(body, tip, lambda done, total: update(steps + 20 + 20 * done // total, steps + 40))
    bases = {
        "modal derivatives, r = 12": (derivative_basis(body, 12, modes=6).shapes, 4.6),
        "modal derivatives, printed scaling, r = 12": (derivative_basis(body, 12, modes=6, amplitude=0.0).shapes, None),
        "sketched pulls, r = 12": (sketched, 10.1),
        "linear modes only, r = 12": (linear_modes(body, 12).shapes, None),
    }
    for name, (basis, published) in bases.items():
        simulation = ReducedSimulation(reduce_body(body, basis), step, damping=kick.damping, iterations=8)
        along = basis.T @ load
        reduced = simulation.run(steps, pulse[:, None] * along, record=True) @ along
        goal_amplitude, goal_frequency = (5.0, 10.0) if published else (None, None)
        amplitude = 100.0 * abs(np.abs(reduced).max() / np.abs(full).max() - 1.0)
        frequency = 100.0 * abs(_frequency(reduced, step) / _frequency(full, step) - 1.0)
        trajectory = 100.0 * float(np.linalg.norm(reduced - full) / np.linalg.norm(full))
        others = {} if published is None else {PAPER: published}
        rows.append(Row(f"{name}: amplitude error", "%", amplitude, goal=goal_amplitude))
        rows.append(Row(f"{name}: frequency error", "%", frequency, goal=goal_frequency, others=others))
        rows.append(Row(f"{name}: trajectory error (RMS)", "%", trajectory))
    update(steps + 40, steps + 40)
    return Record(
        "stvk05-spoon",
        "StVK05 Figure 12: a spoon kicked deep into the nonlinear range, against the full simulation",
        this_machine(),
        rows,
        f"{len(body.mesh.elements):,} bricks; vertical motion of the bowl's end; same Newmark step everywhere. The "
        "sketched pulls are not the kick.",
    )


def _tip(body: FullBody) -> np.ndarray:
    """The dozen vertices farthest from the anchor."""
    vertices = body.mesh.vertices
    return np.argsort(np.linalg.norm(vertices - vertices[body.fixed].mean(axis=0), axis=1))[-12:]


def _sketch(body: FullBody, tip: np.ndarray, update: Update) -> np.ndarray:
    """Pulls a user might draw: the bowl's end and the middle of the spoon, up and down, some sideways, ever harder."""
    vertices = body.mesh.vertices
    low, high = vertices[:, 0].min(), vertices[:, 0].max()
    middle = np.nonzero(np.abs(vertices[:, 0] - 0.5 * (low + high)) < 0.01 * (high - low))[0]
    pad = SketchPad(body)
    for place, hardest in ((tip, 0.024), (middle, 0.12)):
        for sign in (1.0, -1.0):
            for strength in (0.25, 0.5, 0.75, 1.0):
                for side in (-0.25, 0.1):
                    direction = np.array([0.0, side, 1.0])
                    pad.pull(place, sign * strength * hardest / len(place) * direction)
    return sketched_basis(body, pad.pulls, 12, shape_separation=0.01, progress=update).shapes


def _frequency(signal: np.ndarray, step: float) -> float:
    """hertz, from the first zero crossing after the start to the second after it."""
    changes = np.nonzero(np.diff(np.sign(signal)))[0]
    changes = changes[changes > 3]
    if len(changes) < 3:
        return float("nan")
    exact = changes + signal[changes] / (signal[changes] - signal[changes + 1])
    return 1.0 / (step * (exact[2] - exact[0]))
