"""`softrig bench scaling`: how step and build grow with tets, modes, poses and regions, and the orders they follow."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.bases.modes import linear_modes
from softrig.bench.models import character_of
from softrig.bench.posespace import full_step
from softrig.bench.record import Record, Row, Sizes, body_sizes, model_sizes, so_many, timing_row
from softrig.bench.speed import tet_beam
from softrig.console import Update
from softrig.dynamics import Rayleigh
from softrig.errors import Notice
from softrig.forces.polynomial import reduce_body
from softrig.machine import Timing, this_machine, timed
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.pipeline.build import build_parts
from softrig.pipeline.reduction import LEANING
from softrig.pipeline.timing import step_times
from softrig.project import Project

PSSD, STVK = "PSSD", "StVK05"
BUILD, FULL, SURFACE = "build, s", "full step, ms", "surface, ms"
LEANS = f"leans on its tets: {LEANING:g} times as many, each step solved more than once"
REHEARSAL = 0.25
"""Seconds of the clips that the full body lives through: what that costs is a factor, not an order."""

EXPONENTS = (
    f"Builds are cold, on all cores, once, with {REHEARSAL} s of rehearsal instead of 6; steps on one core. "
    "An exponent k: time grows as size to the k, by the best line through the logarithms."
)


@dataclass(frozen=True)
class Made:
    """A model of one size, and what it cost."""

    model: PoseSpaceModel
    build: float
    """Seconds."""
    full: float | None = None
    """Seconds of a step of the full simulation."""


Maker = Callable[[int], Made]


@dataclass(frozen=True)
class Axis:
    """What grows, by which sizes, and the orders that the paper gives for its own step."""

    name: str
    sizes: Sequence[int]
    make: Maker
    order: float | None
    """Of the step, by PSSD."""
    setting: str
    """What stays the same."""


@dataclass(frozen=True)
class Point:
    """One size of an axis, measured."""

    size: int
    step: Timing
    surface: float
    made: Made


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent k of values ≈ c · sizes^k: the slope of the best line through their logarithms."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(values, float))
    x = x - x.mean()
    return float(x @ y / (x @ x))


def scaling(update: Update) -> Record:
    """2,000 to 16,000 tets, 10 to 200 modes, 1 to 16 poses, 1 to 8 regions; and the reduced StVK body."""
    rows, sizes = polynomial_rows()
    studied = axes((2000, 4000, 8000, 16000), (10, 25, 50, 100, 200), (1, 4, 16), (1, 4, 8))
    found, grown = measured_axes(studied, update)
    settings = [f"{axis.name}: {axis.setting}" for axis in studied]
    return scaling_record([*rows, *found], sizes | grown, settings)


def scaling_tets(update: Update) -> Record:
    """2,000 to 128,000 tets alone: the largest takes as long as all others."""
    studied = axes((2000, 4000, 8000, 16000, 32000, 64000, 128000), (), (), ())[:1]
    rows, sizes = measured_axes(studied, update)
    return tets_record(rows, sizes, studied[0].setting)


def axes(tets: Sequence[int], modes: Sequence[int], poses: Sequence[int], regions: Sequence[int]) -> list[Axis]:
    """The four axes of pose-space models."""
    base = {"tets": 4000, "modes": 45, "poses": 2, "regions": 3}
    many = base | {"modes": 60}
    return [
        Axis("tets", tets, _maker("arm", base, "tets", full=True), 0.0, "arm, r = 45, 3 regions, 2 poses"),
        Axis("modes", modes, _maker("arm", base, "modes"), 3.0, "arm, 4,000 tets, 3 regions, 2 poses"),
        Axis("poses", poses, _maker("arm", base, "poses"), 1.0, "arm, 4,000 tets, r = 45, 3 regions"),
        Axis("regions", regions, _maker("gorilla", many, "regions"), None, "gorilla, 4,000 tets, r = 60, 2 poses"),
    ]


def _maker(name: str, base: dict[str, int], grows: str, *, full: bool = False) -> Maker:
    character = character_of(name)

    def make(size: int) -> Made:
        sizes = base | {grows: size}
        project = Project().changed(
            mesh={"tets": sizes["tets"]},
            basis={"modes": sizes["modes"], "regions": sizes["regions"], "rehearsal": REHEARSAL},
            poses={"count": sizes["poses"]},
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)  # thin places of coarse meshes
            built = build_parts(character, project)
        seconds = time.perf_counter() - start
        with threadpool_limits(1):
            return Made(built.model, seconds, full_step(built, 5).least if full else None)

    return make


def measured_axis(axis: Axis, update: Update, *, rounds: int = 300) -> list[Point]:
    """Build and step every size."""
    points = []
    for done, size in enumerate(axis.sizes):
        made = axis.make(size)
        with threadpool_limits(1):
            times = step_times(made.model, rounds=rounds)
        step = Timing(times["least"], times["median"], times["p99"], rounds)
        points.append(Point(_grown(axis.name, made.model), step, times["surface"], made))
        update(done + 1, len(axis.sizes))
    return points


def _grown(name: str, model: PoseSpaceModel) -> int:
    """How large the model became along the axis: meshers and regions come close to what is asked, not upon it."""
    return model_sizes(model)[name]


def axis_rows(axis: Axis, points: Sequence[Point]) -> list[Row]:
    """A row a size, then the exponents."""
    rows = []
    for point in points:
        also = {SURFACE: 1e3 * point.surface, BUILD: point.made.build}
        if point.made.full is not None:
            also[FULL] = 1e3 * point.made.full
        note = LEANS if point.made.model.notes.get("leans on tets") else ""
        rows.append(timing_row(f"{so_many(point.size, axis.name)}: step", "ms", point.step, also=also, note=note))
    sizes = [point.size for point in points]
    orders = {} if axis.order is None else {PSSD: axis.order}
    rows.append(
        Row(f"step against {axis.name}", "exponent", slope(sizes, [p.step.least for p in points]), others=orders)
    )
    rows.append(Row(f"build against {axis.name}", "exponent", slope(sizes, [p.made.build for p in points])))
    full = [point.made.full for point in points if point.made.full is not None]
    if len(full) == len(points):
        rows.append(Row(f"full step against {axis.name}", "exponent", slope(sizes, full)))
    return rows


def polynomial_rows(
    modes: Sequence[int] = (10, 20, 30, 45, 60), cells: Sequence[int] = (8, 16, 32, 64)
) -> tuple[list[Row], Sizes]:
    """The reduced StVK body: step and coefficients against modes, coefficients against elements."""
    body = tet_beam((16, 4, 3))
    shapes = linear_modes(body, max(modes)).shapes
    rows, steps, builds = [], [], []
    reduce_body(body, shapes[:, : modes[0]])  # compiles
    for r in modes:
        start = time.perf_counter()
        reduced = reduce_body(body, shapes[:, :r])
        builds.append(time.perf_counter() - start)
        simulation = ReducedSimulation(reduced, 1e-3, damping=Rayleigh(0.1, 1e-3))
        simulation.v[:3] = 1.0
        step = timed(simulation.step, repeats=100, inner=5)
        steps.append(step.least)
        rows.append(timing_row(f"StVK, r = {r}: step", "ms", step, also={BUILD: builds[-1]}))
    rows.append(Row("StVK step against modes", "exponent", slope(modes, steps), others={STVK: 4.0}))
    rows.append(Row("StVK coefficients against modes", "exponent", slope(modes, builds), others={STVK: 4.0}))
    elements, seconds = [], []
    for count in cells:
        beam = tet_beam((count, 6, 4))
        basis = linear_modes(beam, 20).shapes
        elements.append(len(beam.mesh.elements))
        seconds.append(timed(lambda beam=beam, basis=basis: reduce_body(beam, basis), repeats=2).least)  # type: ignore[misc]
    what = "StVK coefficients against elements, r = 20"
    rows.append(Row(what, "exponent", slope(elements, seconds), others={STVK: 1.0}))
    return rows, {"beam": body_sizes(body)}


def measured_axes(studied: Sequence[Axis], update: Update) -> tuple[list[Row], Sizes]:
    """The rows of all axes, and how large the largest of each is."""
    total = sum(len(axis.sizes) for axis in studied) + 1
    rows: list[Row] = []
    sizes: Sizes = {}
    studied[0].make(studied[0].sizes[0])  # compiles, and starts the workers
    done = 1
    update(done, total)
    for axis in studied:
        points = measured_axis(axis, lambda more, _, done=done: update(done + more, total))  # type: ignore[misc]
        done += len(axis.sizes)
        rows += axis_rows(axis, points)
        sizes[f"largest of {axis.name}"] = model_sizes(points[-1].made.model)
    return rows, sizes


def scaling_record(rows: list[Row], sizes: Sizes, settings: Sequence[str]) -> Record:
    """The record of all axes."""
    remark = (
        f"{'; '.join(settings)}. {EXPONENTS} The paper's orders: its step does not depend on tets, grows "
        "as r³ and, interpolating bases, with the poses that count; ours "
        "pools the poses' bases into one. StVK: step and coefficients as r⁴, coefficients with elements."
    )
    return Record("scaling", "Step and build against size", this_machine(), rows, remark, sizes)


def tets_record(rows: list[Row], sizes: Sizes, setting: str) -> Record:
    """That of tets alone, up to many."""
    remark = f"{setting}. {EXPONENTS} The paper's step does not depend on tets."
    return Record("scaling-tets", "Step and build against tets, to 128,000", this_machine(), rows, remark, sizes)
