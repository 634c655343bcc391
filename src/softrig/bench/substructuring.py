"""SUB11: Table 1 again with our flower and oak; how a step grows with the domains, their depth and their modes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from softrig.bench.record import Record, Row, Sizes, timing_row
from softrig.bench.scaling import slope
from softrig.bodies.divided import DividedBody, Limb, LimbShape, PlantedTree
from softrig.bodies.flower import flower
from softrig.bodies.oak import LEAVES, WOOD, oak
from softrig.console import Update
from softrig.dynamics import Rayleigh
from softrig.errors import SolverError
from softrig.machine import Timing, this_machine, timed
from softrig.meshing.boxes import box_tets
from softrig.models.kernels import polynomial
from softrig.models.substructured import DomainShape, SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import MODES, substructure

PAPER = "SUB11 (2011)"
STEP = 1.0 / 180.0
"""Seconds."""
DAMPING = Rayleigh(0.2, 0.004)
WIND = (5.0, 0.0, 0.0)
"""m/s."""
WARMING = 60
"""Steps before any is timed: domains are bent by then."""
MANY = 10
"""Steps of a run, where runs are timed."""
OAK_MODES = dict.fromkeys(WOOD, 20) | {"leaf": 8}
"""As the paper has them."""
KINDS = {
    "the paper's way (L1, one iteration)": ("interface", 1),
    "exact inertia, one iteration": ("exact", 1),
    "exact inertia, at most three (the default)": ("exact", 3),
}


@dataclass(frozen=True)
class Published:
    """A row of SUB11 Table 1; seconds and milliseconds."""

    elements: int
    vertices: int
    domains: int
    modes: int
    depth: int
    build: float
    step: float
    stvk: float
    """Share of the step."""
    display: float


PUBLISHED = {
    "flower": Published(7602, 2713, 12, 240, 3, 36.0, 6.5, 0.78, 0.43),
    "oak": Published(626734, 262363, 1435, 11972, 5, 60.0, 29.0, 0.48, 12.2),
}


def table_1(update: Update) -> Record:
    """SUB11 Table 1: sizes, precomputation, a step and ui = Uiqi of flower and oak."""
    rows: list[Row] = []
    sizes: Sizes = {}
    repeats = {"flower": 600, "oak": 150}
    bodies: list[tuple[DividedBody | PlantedTree, int | dict[str, int]]] = [(flower(), MODES), (oak(), OAK_MODES)]
    for done, (body, modes) in enumerate(bodies):
        start = time.perf_counter()
        model = substructure(body, modes=modes)
        seconds = time.perf_counter() - start
        rows += table_rows(body, model, seconds, repeats[body.name])
        sizes[body.name] = model_sizes(model)
        update(done + 1, 2)
    return Record(
        "sub11-table-1",
        "SUB11 Table 1: flower and oak in the wind",
        this_machine(),
        rows,
        f"Stand-ins of the paper's two, generated. Wind of {WIND[0]:g} m/s, a step of 1/180 s, on one core; "
        "the paper's figures are of one core of 2010. Elements and vertices count "
        "every instance. ui = Uiqi makes all drawn vertices, seams averaged. The polynomials are timed by themselves, "
        "each domain's coefficients read from the nearest cache: what the paper calls StVK is these and the domains' "
        "linear systems.",
        sizes,
    )


def table_rows(body: DividedBody | PlantedTree, model: SubstructuredModel, build: float, repeats: int) -> list[Row]:
    """The rows of one body; `build` seconds."""
    name, paper = body.name, PUBLISHED.get(body.name)

    def published(of: Callable[[Published], float]) -> dict[str, float]:
        return {} if paper is None else {PAPER: of(paper)}

    counts = model_sizes(model) | {"elements": element_count(body)}
    rows = [
        Row(f"{name}: {what}", "", float(counts[what]), others=published(attrgetter(what)))
        for what in ("elements", "vertices", "domains", "modes", "depth")
    ]
    rows.append(Row(f"{name}: precomputation", "s", build, others=published(lambda row: row.build)))
    for what, (inertia, rounds) in KINDS.items():
        simulation = in_the_wind(model, inertia, rounds)
        told = published(lambda row: row.step) if inertia == "interface" else {}
        rows.append(timing_row(f"{name}: step(), {what}", "ms", timed(simulation.step, repeats=repeats), others=told))
        helped = simulation.fallbacks
        if helped.shifts or helped.resets:
            raise SolverError(f"{name} in the wind, {what}: {helped}")
    simulation = in_the_wind(model, "interface", 1)
    whole = timed(lambda: simulation.run(MANY), repeats=max(repeats // MANY, 12))
    each = Timing(whole.least / MANY, whole.median / MANY, whole.p99 / MANY, whole.calls * MANY)
    told = published(lambda row: row.step)
    rows.append(timing_row(f"{name}: run(n), the paper's way", "ms", each, others=told))
    told = published(lambda row: row.stvk * row.step)
    seconds = polynomial_seconds(model)
    rows.append(Row(f"{name}: polynomials of all domains, evaluated once", "ms", 1e3 * seconds, others=told))
    room = simulation.positions()
    drawing = timed(lambda: simulation.positions(room), repeats=max(repeats // 2, 10))
    rows.append(timing_row(f"{name}: ui = Uiqi", "ms", drawing, others=published(lambda row: row.display)))
    return rows


def in_the_wind(model: SubstructuredModel, inertia: str, rounds: int | None) -> SubstructuredSimulation:
    """The model bent by the wind, warmed up."""
    simulation = SubstructuredSimulation(model, STEP, inertia=inertia, iterations=rounds, damping=DAMPING)
    simulation.wind = WIND
    simulation.run(WARMING)
    return simulation


def polynomial_seconds(model: SubstructuredModel) -> float:
    """Seconds of the reduced StVK forces and stiffnesses of all domains, each evaluated once."""
    uses = np.bincount([domain.shape for domain in model.domains], minlength=len(model.shapes))
    times = [_evaluation(shape) if shape.size else 0.0 for shape in model.shapes]
    return float(uses @ np.array(times))


def _evaluation(shape: DomainShape) -> float:
    r = shape.size
    s = r * (r + 1) // 2
    q, force, stiffness, scratch = np.full(r, 1e-3), np.empty(r), np.empty(s), np.empty(4 * s)
    flat = shape.coefficients
    return timed(lambda: polynomial.evaluate(flat, q, force, stiffness, scratch), repeats=50, inner=20).least


def element_count(body: DividedBody | PlantedTree) -> int:
    """Elements of all instances."""
    if isinstance(body, DividedBody):
        return len(body.mesh.elements)
    return sum(len(body.shapes[limb.shape].mesh.elements) for limb in body.limbs)


def model_sizes(model: SubstructuredModel) -> dict[str, int]:
    """What counts of a substructured model."""
    return {
        "vertices": model.drawn_count,
        "domains": len(model.domains),
        "shapes": len(model.shapes),
        "modes": model.size,
        "depth": model.depth,
    }


# How a step grows

FEW_MODES = 8
LEAF_COUNTS = (50, 200, 700, LEAVES, 5000)
LINKS = (4, 16, 64, 256, 1024)
MODE_COUNTS = (5, 10, 20, 40)


def chain(links: int) -> PlantedTree:
    """As many equal rods on end, each held by the last: as deep a tree as can be."""
    mesh = box_tets((0.05, 0.05, 0.3), (2, 2, 6))
    vertices = mesh.vertices - np.array([0.025, 0.025, 0.0])
    shape = LimbShape(
        type(mesh).build(vertices, mesh.elements), vertices[:, 2] < 1e-9, 1e7, 0.3, 700.0, np.ones_like(vertices)
    )
    above, straight = np.array([0.0, 0.0, 0.3]), np.eye(3)
    limbs = [Limb("rod", i - 1, above if i else np.zeros(3), straight, 1.0) for i in range(links)]
    return PlantedTree("chain", {"rod": shape}, tuple(limbs))


def domains(update: Update) -> Record:
    """A step against leaves of the oak, links of a chain and modes of the flower, with the exponents."""
    return domains_record(LEAF_COUNTS, LINKS, MODE_COUNTS, update)


def domains_record(leaves: Sequence[int], links: Sequence[int], modes: Sequence[int], update: Update) -> Record:
    """The same of some sizes."""
    done, total = 0, len(leaves) + len(links) + len(modes)
    sizes: Sizes = {}
    rows: list[Row] = []

    def axis(name: str, what: str, counts: Sequence[int], make: Callable[[int], SubstructuredModel]) -> None:
        nonlocal done
        measured: list[tuple[int, dict[str, Timing]]] = []
        for count in counts:
            model = make(count)
            size = count if name == "flower" else len(model.domains)
            found = {label: step_timing(model, *KINDS[kind]) for label, kind in LABELS.items()}
            measured.append((size, found))
            rows.append(_size_row(f"{name}: {size:,} {what}", model, found))
            sizes[f"largest {name}"] = model_sizes(model)
            done += 1
            update(done, total)
        order = 4.0 if name == "flower" else 1.0
        for label in LABELS:
            k = slope([size for size, _ in measured], [found[label].least for _, found in measured])
            rows.append(Row(f"{name}: step against {what}, {label}", "exponent", k, others={PAPER: order}))
        if name == "flower":
            (few, fast), (many, slow) = measured[-2:]
            k = slope([few, many], [fast["exact"].least, slow["exact"].least])
            rows.append(
                Row(f"{name}: the same from {few} to {many} alone, exact", "exponent", k, others={PAPER: order})
            )

    every = dict.fromkeys([*WOOD, "leaf"], FEW_MODES)
    axis("oak", "domains", leaves, lambda count: substructure(oak(leaves=count), modes=every))
    axis("chain", "domains", links, lambda count: substructure(chain(count), modes=FEW_MODES))
    axis("flower", "modes a domain", modes, lambda count: substructure(flower(), modes=count))
    return Record(
        "sub11-domains",
        "SUB11: a step against domains, depth and modes",
        this_machine(),
        rows,
        f"Oaks of more and more leaves, every domain with {FEW_MODES} modes; chains of equal rods of as many, as deep "
        "as they are long; flowers of more and more modes. An exponent k: time grows as size to the k, by the best "
        "line through the logarithms of the least times. The paper's: linear in the domains, r⁴ in their modes "
        "with exact forces.",
        sizes,
    )


LABELS = {"L1": next(iter(KINDS)), "exact": list(KINDS)[1]}
"""Both with one iteration."""


def step_timing(model: SubstructuredModel, inertia: str, rounds: int) -> Timing:
    """Of some hundred steps, fewer of large models."""
    simulation = SubstructuredSimulation(model, STEP, inertia=inertia, iterations=rounds, damping=DAMPING)
    simulation.wind = (0.5, 0.0, 0.0)
    simulation.run(10)
    return timed(simulation.step, repeats=int(np.clip(4e5 / model.size, 30, 300)))


def _size_row(what: str, model: SubstructuredModel, found: dict[str, Timing]) -> Row:
    exact = found["exact"]
    also = {
        "L1, ms": 1e3 * found["L1"].least,
        "exact, µs a domain": 1e6 * exact.least / len(model.domains),
        "modes in all": float(model.size),
        "depth": float(model.depth),
    }
    return timing_row(what, "ms", exact, also=also)
