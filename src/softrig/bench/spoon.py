"""StVK05 Fig. 12: a spoon kicked deep into the nonlinear range, reduced against full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.bases.sketch import SketchPad, sketched_basis
from softrig.bench.paper import MODELS, PAPER, stand_in
from softrig.bench.record import Record, Row, body_sizes
from softrig.console import Update
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.fidelity import first_swing_frequency
from softrig.forces.polynomial import reduce_body
from softrig.machine import this_machine
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation


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
    _, _, body = stand_in(MODELS["spoon"])
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
        Row("full: nonlinear over linear frequency", "", first_swing_frequency(full, 1.0 / step) * period),
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
        swings = [first_swing_frequency(curve, 1.0 / step) for curve in (reduced, full)]
        frequency = 100.0 * abs(swings[0] / swings[1] - 1.0)
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
        {"spoon": body_sizes(body) | {"modes": 12}},
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
