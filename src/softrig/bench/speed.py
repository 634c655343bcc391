"""Time of the compiled step, of the precomputation and of the full simulation."""

from __future__ import annotations

import numpy as np

from softrig.bases.derivatives import modal_derivatives
from softrig.bases.modes import linear_modes
from softrig.bench.record import Record, body_sizes, timing_row
from softrig.console import Update
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body
from softrig.machine import Timing, this_machine, timed
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation

VEGA_STEP = {12: 3.7, 15: 6.3, 20: 15.4, 30: 56.5}
"""VegaFEM 4.0, C++, one Newmark step on a machine like ours, microseconds."""
PAPER_STEP = {12: 30.2, 15: 65.4, 30: 1395.0}
"""StVK05 Fig. 11, integration total, 3 GHz Pentium, microseconds."""
STEP_GOAL = {12: 6.0, 15: 8.0, 20: 15.0, 30: 45.0}
RUN_GOAL = {12: 4.0, 15: 6.0, 20: 13.0, 30: 42.0}
VEGA_COEFFICIENTS = {12: 3.0, 15: 7.4, 20: 21.7, 30: 79.3}
"""VegaFEM 4.0, a bridge of 12,827 tets, seconds."""
COEFFICIENT_GOAL = {20: 1.0, 30: 4.0}
RUBBER = Material(young=1e6, poisson=0.3, density=1000.0)


def tet_beam(counts: tuple[int, int, int]) -> FullBody:
    """A box of 6 tets a cell of 5 cm, clamped at one end."""
    lengths = (0.05 * counts[0], 0.05 * counts[1], 0.05 * counts[2])
    mesh = box_tets(lengths, counts)
    return FullBody(mesh, RUBBER, fixed=mesh.vertices[:, 0] < 1e-9)


def step_speed(update: Update) -> Record:
    """One Newmark step, called one by one and many at once."""
    body = tet_beam((16, 4, 3))
    shapes = linear_modes(body, 30).shapes
    rows = []
    for done, r in enumerate(STEP_GOAL):
        simulation = ReducedSimulation(reduce_body(body, shapes[:, :r]), 1e-3, damping=Rayleigh(0.1, 1e-3))
        simulation.v[:3] = 1.0
        others = {"VegaFEM (C++)": VEGA_STEP[r]} | ({"StVK05 (2005)": PAPER_STEP[r]} if r in PAPER_STEP else {})
        one = timed(simulation.step, repeats=300, inner=30)
        many = timed(lambda s=simulation: s.run(100), repeats=100)  # type: ignore[misc]
        each = Timing(many.least / 100, many.median / 100, many.p99 / 100, 100 * many.calls)
        rows.append(timing_row(f"step(), r = {r}", "µs", one, goal=STEP_GOAL[r], others=others))
        rows.append(timing_row(f"run(n), r = {r}", "µs", each, goal=RUN_GOAL[r], others=others))
        update(done + 1, len(STEP_GOAL))
    return Record(
        "step",
        "One implicit Newmark step of the reduced StVK body (one Newton iteration)",
        this_machine(),
        rows,
        "Of many rounds; the others' figures are one Newmark step on their own machines.",
        {"beam": body_sizes(body)},
    )


def coefficient_speed(update: Update) -> Record:
    """Polynomial coefficients of a body of 12,792 tets."""
    body = tet_beam((41, 13, 4))
    shapes = linear_modes(body, 30).shapes
    rows = []
    for done, r in enumerate(VEGA_COEFFICIENTS):
        time = timed(lambda r=r: reduce_body(body, shapes[:, :r]), repeats=3)  # type: ignore[misc]
        others = {"VegaFEM (C++)": VEGA_COEFFICIENTS[r]}
        rows.append(timing_row(f"r = {r}", "s", time, goal=COEFFICIENT_GOAL.get(r), others=others))
        update(done + 1, len(VEGA_COEFFICIENTS))
    title = f"Coefficients of the reduced forces, {len(body.mesh.elements):,} tets"
    return Record("coefficients", title, this_machine(), rows, sizes={"beam": body_sizes(body)})


def derivative_speed(update: Update) -> Record:
    """15 linear modes of the same body and their 120 derivatives."""
    body = tet_beam((41, 13, 4))
    modes_time = timed(lambda: linear_modes(body, 15), repeats=3)
    update(1, 2)
    modes = linear_modes(body, 15)
    derivative_time = timed(lambda: modal_derivatives(body, modes), repeats=3)
    update(2, 2)
    what = "120 modal derivatives: right-hand sides, factorisation, solves"
    others = {"VegaFEM (C++), right-hand sides": 2.3}
    rows = [
        timing_row("15 linear modes", "s", modes_time),
        timing_row(what, "s", derivative_time, goal=1.0, others=others),
    ]
    title = f"Modal derivatives, {len(body.mesh.elements):,} tets"
    return Record("derivatives", title, this_machine(), rows, sizes={"beam": body_sizes(body)})


def full_speed(update: Update) -> Record:
    """Assembly and one implicit step of the unreduced body, 16,038 tets."""
    body = tet_beam((27, 11, 9))
    q = 0.01 * np.random.default_rng(0).standard_normal(body.size) * 0.05
    rows = []
    assembly = timed(lambda: body.force_and_stiffness(q), repeats=20)
    rows.append(timing_row("stiffness and force assembly", "ms", assembly, goal=20.0))
    update(1, 3)
    force = body.restrict(0.1 * body.vertex_mass[:, None] * np.array([0.0, 0.0, -9.81]))
    for done, solver in enumerate(_solvers()):
        full = FullBody(body.mesh, RUBBER, fixed=body.fixed, solver=solver)
        integrator = Integrator(full, 1e-3, iterations=1)
        state = State.rest(full.size)
        step = timed(lambda i=integrator, s=state: i.step(s, force), repeats=8 if solver == "pardiso" else 3)  # type: ignore[misc]
        goal = 100.0 if solver == "pardiso" else None
        others = {"full corotational step, 16,919 tets": 75.0} if solver == "pardiso" else {}
        rows.append(timing_row(f"one implicit step, {solver}", "ms", step, goal=goal, others=others))
        update(done + 2, 3)
    title = f"The unreduced body, {len(body.mesh.elements):,} tets, {body.size:,} degrees of freedom"
    return Record("full", title, this_machine(), rows, sizes={"beam": body_sizes(body)})


def _solvers() -> list[str]:
    from importlib.util import find_spec

    return ["pardiso", "superlu"] if find_spec("pypardiso") else ["superlu"]
