"""The tables of StVK05 (its Figures 5, 8 and 11) on stand-ins of the same element counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from softrig.bases.derivatives import derivative_samples, modal_derivatives
from softrig.bases.modes import linear_modes
from softrig.bench.record import Record, Row, body_sizes, timing_row
from softrig.bodies import Soup, footbridge, heart, spoon, tower
from softrig.console import Update
from softrig.dynamics import Rayleigh
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body
from softrig.machine import Timing, this_machine, timed
from softrig.meshing.voxels import Voxelisation
from softrig.models.full import FullBody
from softrig.models.kernels import polynomial
from softrig.models.kernels.dense import packed_cholesky, packed_cholesky_solve
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
    steps: int
    """Integration steps a graphics frame."""
    display: float
    frames: float
    """Graphics frames a second, without the graphics card's help."""


MODELS = {
    "spoon": Model(spoon, 3e6, 6, 12, 2005, 24, 6.5, 33, 60, 98e3, 8.2, 9.5, 12.5, 30.2, 25, 565, 275),
    "bridge": Model(footbridge, 1.5e7, 8, 15, 5854, None, None, None, 186, 223e3, 22, 25, 18.4, 65.4, 10, 14500, 38),
    "tower": Model(tower, 1e9, 20, 30, 11304, 65, 226, 1560, 4752, 3.0e6, 550, 770, 75, 1395, 15, 25500, 17),
    "heart": Model(heart, 1e5, 20, 30, 14444, 111, 291, 1680, 5844, 3.0e6, 550, 770, 75, 1395, 15, 6500, 31),
}


def stand_in(model: Model) -> tuple[Soup, Voxelisation, FullBody]:
    """The generated triangles, their bricks, and the body held where the soup says."""
    soup = model.make()
    voxels = soup.voxelised()
    material = Material(young=model.young, poisson=0.3, density=1000.0)
    return soup, voxels, FullBody(voxels.mesh, material, fixed=soup.fixed_vertices(voxels.mesh.vertices))


@dataclass(frozen=True, eq=False)
class Reduced:
    """A stand-in reduced as in the paper, and the seconds each stage took, once."""

    body: FullBody
    model: ReducedBody
    drawn: int
    linear_modes: float
    right_sides: float
    solves: float
    coefficients: float


@cache
def reduced(name: str) -> Reduced:
    """The stand-in called `name`, reduced; made once a run."""
    model = MODELS[name]
    soup, voxels, body = stand_in(model)
    times = [time.perf_counter()]

    def lap() -> float:
        times.append(time.perf_counter())
        return times[-1] - times[-2]

    modes = linear_modes(body, model.modes)
    modes_seconds = lap()
    derivatives = modal_derivatives(body, modes)
    derivative_seconds = lap()
    # The right-hand sides alone, once more: the derivatives made them, too.
    body.stiffness_derivative(modes.shapes)
    right_seconds = lap()
    shapes, _ = mass_pca(derivative_samples(body, modes, derivatives), body.mass, model.size)
    lap()
    made = reduce_body(body, shapes, surface=voxels.embedding, surface_triangles=soup.triangles)
    return Reduced(
        body,
        made,
        len(soup.vertices),
        modes_seconds,
        right_seconds,
        max(derivative_seconds - right_seconds, 0.0),
        lap(),
    )


def _figure(
    name: str, title: str, rows_of: Callable[[str, Model, Reduced], list[Row]], remark: str, update: Update
) -> Record:
    rows: list[Row] = []
    sizes = {}
    for done, (body, model) in enumerate(MODELS.items()):
        made = reduced(body)
        rows += rows_of(body, model, made)
        sizes[body] = body_sizes(made.body) | {"modes": made.model.size}
        update(done + 1, len(MODELS))
    return Record(name, title, this_machine(), rows, remark, sizes)


def _row(what: str, unit: str, ours: float, paper: float | None) -> Row:
    return Row(what, unit, ours, others={} if paper is None else {PAPER: paper})


STAND_INS = "Stand-ins of the paper's element counts, generated. "


def figure_5(update: Update) -> Record:
    """StVK05 Fig. 5: precomputation and size of the polynomial coefficients."""

    def rows(name: str, model: Model, made: Reduced) -> list[Row]:
        parts = made.model.coefficients
        size = parts.linear.nbytes + parts.cubic.nbytes + parts.quartic.nbytes
        return [
            _row(f"{name}: elements", "", len(made.body.mesh.elements), model.elements),
            _row(f"{name}: coefficients, r = {model.size}", "s", made.coefficients, model.coefficients),
            _row(f"{name}: size of the coefficients", "kB", size / 1e3, model.coefficient_bytes / 1e3),
        ]

    remark = STAND_INS + "Timed once. Ours are kept with λ and μ apart, so that the material can change at runtime."
    return _figure("stvk05-fig-5", "StVK05 Figure 5: polynomial coefficients", rows, remark, update)


def figure_8(update: Update) -> Record:
    """StVK05 Fig. 8: linear modes and modal derivatives."""

    def rows(name: str, model: Model, made: Reduced) -> list[Row]:
        return [
            _row(f"{name}: {model.modes} linear modes", "s", made.linear_modes, model.linear_modes),
            _row(f"{name}: right-hand sides of the derivatives", "s", made.right_sides, model.right_sides),
            _row(f"{name}: their solves", "s", made.solves, model.solves),
        ]

    remark = STAND_INS + "Timed once; the factorisation is among the solves. The paper does not give the bridge's."
    return _figure("stvk05-fig-8", "StVK05 Figure 8: modal derivatives", rows, remark, update)


def figure_11(update: Update) -> Record:
    """StVK05 Fig. 11: one integration step, its parts, u = Uq and frames a second."""

    def rows(name: str, model: Model, made: Reduced) -> list[Row]:
        evaluate, solve, step, display = step_parts(made.model)
        frame = model.steps * step.least + display.least
        both = {PAPER: model.force + model.stiffness}
        return [
            timing_row(f"{name}: force and stiffness, r = {model.size}", "µs", evaluate, others=both),
            timing_row(f"{name}: linear system", "µs", solve, others={PAPER: model.solve}),
            timing_row(f"{name}: integration total", "µs", step, others={PAPER: model.total}),
            timing_row(f"{name}: u = Uq, {made.drawn:,} drawn vertices", "µs", display, others={PAPER: model.display}),
            _row(f"{name}: frames a second of {model.steps} steps", "1/s", 1.0 / frame, model.frames),
        ]

    remark = STAND_INS + (
        "The stiffness gives the force for nothing, so both are one entry. Our frames are steps and u = Uq; the "
        "paper's are drawn, too, without the graphics card's help."
    )
    return _figure("stvk05-fig-11", "StVK05 Figure 11: a step at runtime", rows, remark, update)


def step_parts(model: ReducedBody) -> tuple[Timing, Timing, Timing, Timing]:
    """Seconds of one evaluation, of one factorisation and solve, of one whole step, and of one display."""
    r = model.size
    s = r * (r + 1) // 2
    q, force, stiffness, scratch = np.full(r, 1e-3), np.empty(r), np.empty(s), np.empty(4 * s)
    flat = model.flat_coefficients
    evaluate = timed(lambda: polynomial.evaluate(flat, q, force, stiffness, scratch), repeats=100, inner=50)
    factor, right = np.empty(s), np.empty(r)
    definite = flat[:s] + flat[s : 2 * s]  # stiffness at rest plus mass

    def linear_system() -> None:
        right[:] = 1.0  # solved over and over, it would fade into slow numbers near zero
        packed_cholesky(definite, factor, r)
        packed_cholesky_solve(factor, right)

    solve = timed(linear_system, repeats=100, inner=50)
    simulation = ReducedSimulation(model, 1e-4, damping=Rayleigh(0.0, 1e-4))
    simulation.v[0] = 1e-3
    step = timed(simulation.step, repeats=100, inner=50)
    drawn = simulation.surface_positions()
    return evaluate, solve, step, timed(lambda: simulation.surface_positions(drawn), repeats=30)
