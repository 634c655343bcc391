"""PSSD Figure 11: local shapes answer a pull where it is; global ones ring everywhere."""

from __future__ import annotations

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
from softrig.figures.look import arrow, framing, heat, lengths, shot, skin
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
from softrig.rig.character import Character

CHEEK = np.array([0.16, 1.14, 1.13])
"""Where the bear is pulled, metres."""
FAR = 0.6
"""Metres from the pull on: what should hardly notice."""
MODES = 100
COUNTS = (20, 50, 100, 180)
"""Global modes tried."""


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


def local_against_global(update: Update) -> Figure:
    """PSSD Fig. 11: local and global shapes under a pull at a cheek."""
    project = Project().changed(mesh={"tets": 3500}, basis={"handles": HANDLES}, poses={"count": 1})
    thing = regional_body(built_in("bear"), project)
    body = thing.body
    update(1, 8)
    patch, load = patch_pull(body, CHEEK, 0.10)
    force = body.restrict(load)
    solve = stiffness_solve(body.rest_stiffness, body.mass, None, solver=body.solver_name)
    answers = {"full body": body.expand(solve(force))}
    for done, size in enumerate(COUNTS):
        answers[f"global, r = {size}"] = held_answer(body, global_basis(body, size), force)
        update(2 + done, 8)
    answers[f"local, r = {MODES}"] = held_answer(body, paper_local_basis(thing, MODES), force)
    update(7, 8)
    answers[f"load modes, r = {MODES}"] = held_answer(body, load_local_basis(thing, MODES), force)
    far = np.linalg.norm(body.mesh.vertices - body.mesh.vertices[patch].mean(axis=0), axis=1) > FAR
    yields = {
        name: 100.0 * float((load * u).sum() / (load * answers["full body"]).sum()) for name, u in answers.items()
    }
    rings = {name: 100.0 * ringing(u, patch, far) for name, u in answers.items()}
    rows = []
    for name in answers:
        rows.append(Row(f"{name}: cheek yields, of the full body", "%", yields[name]))
        rows.append(Row(f"{name}: motion {FAR:g} m away, of the cheek's", "%", rings[name]))
    update(8, 8)
    return made(
        "pssd-11",
        "PSSD Figure 11: local and global shapes",
        _sheet(body, patch, load, answers, yields, rings),
        rows,
        "A bear pulled at its left cheek (red arrow). Colour is how far the flesh moves, each picture up to its own "
        "largest motion. Global modes hardly move the cheek and shake the body instead (ringing); shapes that end "
        "at the borders of six regions stay where the pull is. Below: how much of the full body's answer the cheek "
        f"gives, and what moves more than {FAR:g} m away, against the number of global modes. `local` is the paper's "
        "recipe; `load modes` is softrig's default, made of answers to the rig's own accelerations, with no thought "
        "of a pull at a cheek.",
        remark="Linear static answers to one pull; same body, same force.",
        sizes={"bear": body_sizes(body)},
    )


def _sheet(
    body: FullBody,
    patch: np.ndarray,
    load: np.ndarray,
    answers: dict[str, np.ndarray],
    yields: dict[str, float],
    rings: dict[str, float],
) -> np.ndarray:
    size = (290, 250)
    places = body.mesh.vertices
    camera = framing([places], (0.9, 0.25, 0.85), size, margin=1.03)
    along = load.sum(axis=0) / np.linalg.norm(load.sum(axis=0))
    start = places[patch].mean(axis=0)
    shown = ["full body", f"global, r = {COUNTS[-1]}", f"local, r = {MODES}", f"load modes, r = {MODES}"]
    panels = []
    for name in shown:
        u = answers[name]
        share = lengths(u) / lengths(u).max()
        image = shot(
            [
                skin(body.mesh, places + 0.12 * u / lengths(u).max(), heat(share, 1.0)),
                *arrow(start + 0.12 * along, start + 0.42 * along, 0.015),
            ],
            camera,
            size,
        )
        panels.append(Panel(image, name, f"cheek yields {number(yields[name])} %\nfar away {number(rings[name])} %"))
    x = np.array(COUNTS, dtype=np.float64)
    level = np.ones_like(x)
    charts = []
    for values, label in ((yields, "cheek yields, %"), (rings, "far away, %")):
        lines = [
            Line("full body", x, values["full body"] * level, TRUTH, dashed=True),
            Line("global", x, np.array([values[f"global, r = {r}"] for r in COUNTS]), OTHER, dots=True),
            Line(f"local, {MODES}", x, values[f"local, r = {MODES}"] * level, OURS),
            Line(f"load modes, {MODES}", x, values[f"load modes, r = {MODES}"] * level, FOURTH),
        ]
        charts.append(Panel(line_chart(lines, x_label="global modes", y_label=label, size=(600, 320), logarithmic="y")))
    return sheet([panels, charts])
