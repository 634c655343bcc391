"""PSSD Figure 11: local shapes answer a pull where it is; global ones ring everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.bases.load_modes import load_samples, paper_recipe, sample_basis
from softrig.bases.localised import (
    RegionalBasis,
    basis_of_regions,
    log_size_counts,
    regional_basis,
)
from softrig.bases.paper_modes import paper_regional_recipe
from softrig.bench.record import Row, body_sizes, number
from softrig.characters import built_in
from softrig.console import Update
from softrig.figures.chart import FOURTH, OTHER, OURS, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import arrow, framing, heat, key, lengths, shot, skin
from softrig.figures.sheet import Panel, sheet
from softrig.models.full import FullBody
from softrig.numerics.sparse import stiffness_solve
from softrig.pipeline.cache import StageCache
from softrig.pipeline.fabric import make_fabric
from softrig.pipeline.flesh import make_flesh
from softrig.pipeline.posing import pose_character
from softrig.pipeline.regions import make_regions
from softrig.pipeline.rigging import bones_of
from softrig.pipeline.shapes import pose_loads, posed_body
from softrig.project import Project
from softrig.render import scale_end
from softrig.rig.character import Character

CHEEK = np.array([0.16, 1.14, 1.13])
"""Where the bear is pulled, metres."""
FAR = 0.6
"""Metres from the pull on: what should hardly notice."""
MODES = 100
COUNTS = (30, 50, 100, 180, 260)
"""Modes tried of each kind."""
FULL, GLOBAL, LOCAL, LOAD = "full body", "global (paper)", "local (paper)", "load modes (default)"


def _segment(name: str, start: tuple[float, ...], end: tuple[float, ...]) -> dict[str, object]:
    return {"name": name, "segment": (start, end)}


HANDLES = (
    _segment("head", (0.0, 1.14, 1.05), (0.0, 1.13, 1.36)),
    _segment("body", (0.0, 0.85, 0.35), (0.0, 0.85, -0.55)),
    _segment("left foreleg", (0.23, 0.72, 0.44), (0.25, 0.10, 0.52)),
    _segment("right foreleg", (-0.23, 0.72, 0.44), (-0.25, 0.10, 0.52)),
    _segment("left hindleg", (0.22, 0.65, -0.50), (0.25, 0.10, -0.58)),
    _segment("right hindleg", (-0.22, 0.65, -0.50), (-0.25, 0.10, -0.58)),
)


@dataclass(frozen=True, eq=False)
class Regional:
    """A body at rest, its regions and what its rig can do to it."""

    body: FullBody
    weights: np.ndarray
    """(n, g) of the regions, rows sum to one."""
    loads: np.ndarray
    """(n, 3, L) m/s²."""


def regional_body(character: Character, project: Project) -> Regional:
    """The flesh of `character` at rest with the project's regions."""
    cache = StageCache(None)
    flesh = make_flesh(character, project, cache)
    posing = pose_character(character, flesh, project, cache, bones=bones_of(character))
    fabric = make_fabric(character, flesh, posing, project)
    regions = make_regions(character, flesh, posing, project, cache)
    mesh = flesh.mesh
    body = posed_body(
        mesh.vertices,
        mesh.vertices,
        mesh.elements,
        flesh.fixed,
        fabric.law,
        fabric.young[0],
        fabric.poisson[0],
        fabric.density * flesh.density_factor,
    )
    return Regional(body, regions.weights, pose_loads(posing, flesh, 0))


def global_basis(body: FullBody, size: int) -> np.ndarray:
    """(3·free, size) the papers' modes and derivatives over the whole body."""
    return sample_basis(body, paper_recipe(body, size), size).shapes


def paper_local_basis(thing: Regional, size: int) -> np.ndarray:
    """(3·free, size) PSSD §7: modes and derivatives of each region by itself."""
    body, weights = thing.body, thing.weights
    counts = log_size_counts(weights, size)
    parts = [body.expand(samples.fields) for samples in paper_regional_recipe(body, weights, size)]
    return _columns(body, basis_of_regions([parts], body.vertex_mass, size, counts=counts))


def load_local_basis(thing: Regional, size: int) -> np.ndarray:
    """(3·free, size) ours: answers to the rig's loads, times the regions' weights."""
    fields = thing.body.expand(load_samples(thing.body, thing.loads, derivatives=16).fields)
    return _columns(thing.body, regional_basis([fields], thing.weights, thing.body.vertex_mass, size))


def _columns(body: FullBody, basis: RegionalBasis) -> np.ndarray:
    return body.restrict(basis.shapes[0])


def patch_pull(body: FullBody, centre: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Surface vertices within `radius` of `centre`, metres, and one newton outwards shared by them (n, 3)."""
    surface = np.unique(body.mesh.boundary_triangles)
    surface = surface[body.free[surface]]
    away = np.linalg.norm(body.mesh.vertices[surface] - centre, axis=1)
    patch = surface[away < max(radius, 1.01 * away.min())]
    load = np.zeros_like(body.mesh.vertices)
    load[patch, 0] = np.sign(centre[0]) / len(patch)
    return patch, load


def held_answer(body: FullBody, basis: np.ndarray, force: np.ndarray) -> np.ndarray:
    """(n, 3) metres: linear static answer in the span of a basis, U (UᵀKU)⁻¹ Uᵀ f."""
    stiffness = basis.T @ (body.rest_stiffness @ basis)
    return body.expand(basis @ np.linalg.solve(stiffness, basis.T @ force))


def ringing(u: np.ndarray, patch: np.ndarray, far: np.ndarray) -> float:
    """The largest motion far away over the mean motion of the pulled patch."""
    return float(lengths(u)[far].max() / lengths(u)[patch].mean())


def modes_needed(counts: Sequence[int], yields: Sequence[float], wanted: float) -> float | None:
    """How many modes yield `wanted`: where the curve of `yields` over `counts` first reaches it; None: nowhere."""
    reached = np.flatnonzero(np.asarray(yields) >= wanted)
    if not len(reached):
        return None
    place = int(reached[0])
    if place == 0:
        return float(counts[0])
    share = (wanted - yields[place - 1]) / (yields[place] - yields[place - 1])
    return counts[place - 1] + share * (counts[place] - counts[place - 1])


@dataclass(frozen=True, eq=False)
class Pulled:
    """Answers of one kind of basis to the pull, by the number of modes (the full body's: by 0)."""

    moved: dict[int, np.ndarray]
    """(n, 3) metres."""
    yields: dict[int, float]
    """Of the cheek, % of the full body's."""
    rings: dict[int, float]
    """Far away, % of the cheek's motion."""


def local_against_global(update: Update) -> Figure:
    """PSSD Fig. 11: local and global shapes under a pull at a cheek."""
    project = Project().changed(mesh={"tets": 3500}, basis={"handles": HANDLES}, poses={"count": 1})
    thing = regional_body(built_in("bear"), project)
    body = thing.body
    update(1, 5)
    patch, load = patch_pull(body, CHEEK, 0.10)
    force = body.restrict(load)
    far = np.linalg.norm(body.mesh.vertices - body.mesh.vertices[patch].mean(axis=0), axis=1) > FAR
    truth = body.expand(stiffness_solve(body.rest_stiffness, body.mass, None, solver=body.solver_name)(force))

    def pulled(moved: dict[int, np.ndarray]) -> Pulled:
        yields = {r: 100.0 * float((load * u).sum() / (load * truth).sum()) for r, u in moved.items()}
        return Pulled(moved, yields, {r: 100.0 * ringing(u, patch, far) for r, u in moved.items()})

    makers: dict[str, Callable[[int], np.ndarray]] = {
        GLOBAL: lambda r: global_basis(body, r),
        LOCAL: lambda r: paper_local_basis(thing, r),
        LOAD: lambda r: load_local_basis(thing, r),
    }
    found = {FULL: pulled({0: truth})}
    for done, (name, maker) in enumerate(makers.items()):
        found[name] = pulled({r: held_answer(body, maker(r), force) for r in COUNTS})
        update(2 + done, 5)
    wanted = found[LOCAL].yields[MODES]
    needed = {name: modes_needed(COUNTS, list(found[name].yields.values()), wanted) for name in (GLOBAL, LOAD)}
    rows = [
        Row(f"{name}: modes needed to yield as much as {MODES} local ones", "", None if count is None else round(count),
            note=f"more than {COUNTS[-1]}" if count is None else "")
        for name, count in needed.items()
    ]  # fmt: skip
    for name, of in found.items():
        for r in of.moved:
            called = f"{name}, r = {r}" if r else name
            rows.append(Row(f"{called}: cheek yields, of the full body", "%", of.yields[r]))
            rows.append(Row(f"{called}: motion {FAR:g} m away, of the cheek's", "%", of.rings[r]))
    update(5, 5)
    told = {name: f"more than {COUNTS[-1]}" if count is None else f"{count:.0f}" for name, count in needed.items()}
    return made(
        "pssd-11",
        "PSSD Figure 11: local and global shapes",
        _sheet(body, patch, load, found),
        rows,
        "A bear pulled at its left cheek (red arrow). Colour is how far the flesh moves under one newton; every "
        "picture has a scale of its own, beneath it. Global modes hardly move the cheek and shake the body instead "
        "(ringing); shapes that end at the borders of six regions stay where the pull is. Below: how much of the full "
        f"body's answer the cheek gives, and what moves more than {FAR:g} m away, by the number of modes. For the "
        f"cheek to yield as much as with {MODES} local modes it takes {told[GLOBAL]} global ones, and {told[LOAD]} "
        "load modes. " + _default_against_paper(found[LOAD], found[LOCAL]),
        alt=f"A bear pulled at its cheek: {MODES} local modes yield {number(wanted)} % of what the full body does, as "
        f"much as {told[GLOBAL]} global ones",
        remark="Linear static answers to one pull; same body, same force. Modes needed are read off the curves, "
        "which are straight between the numbers tried.",
        sizes={"bear": body_sizes(body)},
    )


def _default_against_paper(load: Pulled, local: Pulled) -> str:
    """Where the default is better or worse than the paper's local recipe under this pull."""
    parts = [
        f"its {what} is {number(ours)} % with {MODES} modes, against {number(theirs)} %"
        for what, ours, theirs in (
            ("yield", load.yields[MODES], local.yields[MODES]),
            ("motion far away", load.rings[MODES], local.rings[MODES]),
        )
    ]
    worse = load.yields[MODES] < local.yields[MODES], load.rings[MODES] > local.rings[MODES]
    verdict = {2: "worse here than the paper's recipe", 1: "partly worse here than the paper's recipe"}.get(
        sum(worse), "no worse here than the paper's recipe"
    )
    return (
        f"softrig's default, load modes, is {verdict}: {', and '.join(parts)}. It is made of answers to the rig's own "
        "accelerations, with no thought of a pull at a cheek."
    )


def _sheet(body: FullBody, patch: np.ndarray, load: np.ndarray, found: dict[str, Pulled]) -> np.ndarray:
    size = (290, 250)
    places = body.mesh.vertices
    camera = framing([places], (0.9, 0.25, 0.85), size, margin=1.03)
    along = load.sum(axis=0) / np.linalg.norm(load.sum(axis=0))
    start = places[patch].mean(axis=0)
    panels, bars = [], []
    for name, of in found.items():
        r = 0 if name == FULL else MODES
        u = of.moved[r]
        most = scale_end(float(lengths(u).max()))
        image = shot(
            [
                skin(body.mesh, places + 0.12 * u / lengths(u).max(), heat(lengths(u), most)),
                *arrow(start + 0.12 * along, start + 0.42 * along, 0.015),
            ],
            camera,
            size,
        )
        note = f"cheek yields {number(of.yields[r])} %\nfar away {number(of.rings[r])} %"
        panels.append(Panel(image, f"{name},\nr = {r}" if r else name, note))
        bars.append(key(heat, most, "µm moved", unit=1e6, width=size[0]))
    x = np.array(COUNTS, dtype=np.float64)
    charts = []
    colours = {GLOBAL: OTHER, LOCAL: FOURTH, LOAD: OURS}
    for part, label in (("yields", "cheek yields, %"), ("rings", "far away, %")):
        lines = [Line(FULL, x, np.full_like(x, getattr(found[FULL], part)[0]), TRUTH, dashed=True)]
        lines += [
            Line(name, x, np.array([getattr(found[name], part)[r] for r in COUNTS]), colour, dots=True)
            for name, colour in colours.items()
        ]
        charts.append(Panel(line_chart(lines, x_label="modes", y_label=label, size=(600, 346), logarithmic="y")))
    return sheet([panels, bars, charts])
