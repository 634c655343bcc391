"""SUB11 Figures 3, 5 and 8: secondary motion, localised deformation, and seams of a pulled flower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softrig.bench.record import Row
from softrig.bench.substructured_truth import STEP
from softrig.bench.substructuring import model_sizes
from softrig.console import Update
from softrig.dynamics import Rayleigh
from softrig.figures.chart import FOURTH, OTHER, OURS, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.flowers import (
    DAMPING,
    FORCE,
    HELD,
    PULLED,
    Pull,
    Pulled,
    deviations,
    flower_model,
    pull_at_the_end,
    pulled,
)
from softrig.figures.garden import CREASE, drawn, seen, taken, white_floor
from softrig.figures.look import RED, arrow, ball, key, lengths, wrong
from softrig.figures.sheet import Panel, sheet
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.render import Camera, Mesh

STEPS = 540
TOWARDS = (0.5, -1.0, 0.25)
SIZE = 0.5
"""Of the flower, metres."""
MOMENTS = (0.9, 1.06, 1.34)
"""Seconds of Figure 3's pictures after the first, which is at rest."""
NAMED = 3
"""Interfaces that have a line of their own in a chart."""
COLOURS = (OURS, OTHER, FOURTH)
REST_LINE = "#b9bec7"
LOCAL_PULLS = {"petal 5": -0.03, "left leaf": 0.06, "side leaf": 0.04}
"""Newton, of Figure 5, across the blades."""
OURS_RGB = (0.0, 0.447, 0.698)
NEAR = 0.008
"""Metres: half of what is seen of a seam."""
HARD = 1.6
"""Times that Figure 8 pulls harder than Figure 3."""
LARGER = 20
"""Times that gaps are drawn larger."""


def pull_arrow(pull: Pull, places: np.ndarray, colour: Sequence[float] = RED) -> list[Mesh]:
    """The pull, where the body is."""
    start = places[pull.vertices].mean(axis=0)
    along = pull.force / np.linalg.norm(pull.force)
    return arrow(start, start + 0.11 * along, 0.0032, colour)


def secondary_motion(update: Update) -> Figure:
    """SUB11 Fig. 3: a pull on the small stem, secondary motion, and how rigid the interfaces stay."""
    model = flower_model()
    pull = pull_at_the_end(model, PULLED, FORCE)
    found = pulled(model, pull, STEPS)
    update(1, 2)
    shown = [found.rest, *(found.places[round(moment / STEP) - 2] for moment in MOMENTS)]
    size = (255, 380)
    # Where it goes for a moment between pictures need not be seen.
    camera = seen([*shown, np.array([pull_tip(pull, shown[1])])], TOWARDS, size)
    panels = []
    for i, places in enumerate(shown):
        meshes = [drawn(model, places), *(pull_arrow(pull, places) if i == 1 else [])]
        head = "at rest" if i == 0 else ("pulled" if i == 1 else "let go")
        note = "0 s" if i == 0 else f"{MOMENTS[i - 1]:.2f} s"
        panels.append(Panel(taken(meshes, camera, size, ground=white_floor(SIZE), finer=2), head, note))
    others = moved_alone(model, found)
    chart, most = deviation_chart(model, found)
    rows = [
        Row("the side bloom goes, farthest", "mm", 1e3 * others["side bloom"]),
        Row("the first bloom, that nobody pulls, goes", "mm", 1e3 * others["bloom"]),
        *(Row(f"‖A − R‖ of {name}, largest", "", value) for name, value in most[:NAMED]),
        Row("‖A − R‖ of the other interfaces, largest", "", max(value for _, value in most[NAMED:])),
    ]
    update(2, 2)
    return made(
        "sub11-3",
        "SUB11 Figure 3: a pull on the small stem",
        sheet([panels, [Panel(chart)]]),
        rows,
        f"The end of the side stem is pulled with {np.linalg.norm(FORCE):.2f} N and let go after {HELD:g} s. Blooms, "
        "petals and leaves swing, though nothing pulls them: the frames that carry them do. Below: how far each of the "
        "eleven interfaces is from rigid, the distance of its linear map A from the rotation R that its child takes "
        f"over. It never exceeds {rows[2].told()}, so little is lost by taking the rotation alone, as in the paper.",
        alt="A flower whose side stem is pulled and let go, and how far its interfaces are from rigid: at most "
        f"{rows[2].told()}",
        value="softrig",
        sizes={"flower": model_sizes(model)},
    )


def pull_tip(pull: Pull, places: np.ndarray) -> np.ndarray:
    """(3,) where the arrow of a pull ends, metres."""
    along = pull.force / np.linalg.norm(pull.force)
    return np.asarray(places[pull.vertices].mean(axis=0) + 0.12 * along)


def moved_alone(model: SubstructuredModel, found: Pulled) -> dict[str, float]:
    """How far the farthest vertex of each domain goes, metres, by name."""
    far = np.linalg.norm(found.places - found.rest, axis=2).max(axis=0)
    starts = model.vertex_starts
    return {
        domain.name: float(far[model.drawn[starts[i] : starts[i + 1]]].max()) for i, domain in enumerate(model.domains)
    }


def deviation_chart(model: SubstructuredModel, found: Pulled) -> tuple[np.ndarray, list[tuple[str, float]]]:
    """The interfaces' distances from rigid over time, and the largest of each by what meets there, largest first."""
    names = [f"{model.domains[domain.parent].name} to {domain.name}" for domain in model.domains[1:]]
    order = np.argsort(-found.deviations.max(axis=0))
    named = [Line(names[k], found.times, found.deviations[:, k], COLOURS[i]) for i, k in enumerate(order[:NAMED])]
    others = [Line("", found.times, found.deviations[:, k], REST_LINE, width=1.6) for k in order[NAMED:]]
    told = replace(others[0], name=f"the {len(others)} others")
    chart = line_chart([*others, told, *named], x_label="time, s", y_label="||A - R||", size=(1080, 330))
    return chart, [(names[k], float(found.deviations[:, k].max())) for k in order]


def localised_deformation(update: Update) -> Figure:
    """SUB11 Fig. 5: a pull on one petal and on one leaf, and what else moves."""
    model = flower_model()
    rest = SubstructuredSimulation(model, STEP).positions()
    starts = model.vertex_starts
    size, panels, rows = (330, 400), [], []
    found = {}
    for done, (domain, strength) in enumerate(LOCAL_PULLS.items()):
        pull = pull_at_the_end(model, domain, np.array([0.0, 0.0, 1.0]), 6)
        number = model.domain(domain)
        own = model.drawn[starts[number] : starts[number + 1]]
        pull = replace(pull, force=strength * thin_direction(rest[own]))
        places = held_still(model, pull)
        found[domain] = pull, places
        far = lengths(places - rest)
        rows.append(Row(f"{domain} pulled: it goes", "mm", 1e3 * float(far[own].max())))
        rows.append(Row(f"{domain} pulled: all other domains, mean", "mm", 1e3 * float(np.delete(far, own).mean())))
        update(done + 1, len(LOCAL_PULLS) + 1)
    camera = seen([np.vstack([places, pull_tip(pull, places)]) for pull, places in found.values()], TOWARDS, size)
    for domain, (pull, places) in found.items():
        far = lengths(places - rest)
        meshes = [drawn(model, places, wrong(far / far.max(), 1.0)), *pull_arrow(pull, places, OURS_RGB)]
        note = f"farthest: {1e3 * far.max():.0f} mm"
        panels.append(Panel(taken(meshes, camera, size, ground=white_floor(SIZE), finer=2), f"{domain} pulled", note))
    update(len(LOCAL_PULLS) + 1, len(LOCAL_PULLS) + 1)
    return made(
        "sub11-5",
        "SUB11 Figure 5: deformation that stays local",
        sheet([panels, [key(wrong, 1.0, "% of the farthest", unit=100.0)]]),
        rows,
        "A petal and two leaves, each pulled across its blade (blue arrow) and held. Modes belong to domains: a pull "
        "on one moves that one, and what carries it only as far as that yields. Modes of the whole flower would ripple "
        "through all of it.",
        alt=f"A flower with one petal and two leaves pulled: a petal goes {rows[0].told()}, all else {rows[1].told()} "
        "in the mean",
        value="softrig",
        sizes={"flower": model_sizes(model)},
    )


def thin_direction(places: np.ndarray) -> np.ndarray:
    """(3,) unit vector across a sheet (n, 3), upwards."""
    across = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2][2]
    return across * np.sign(across[2])


def held_still(model: SubstructuredModel, pull: Pull) -> np.ndarray:
    """(m, 3) where a steady pull holds the model, metres: after a second of much damping."""
    simulation = SubstructuredSimulation(model, STEP, "backward-euler", damping=Rayleigh(12.0, 0.01))
    for i in range(360):
        simulation.clear_forces()
        strength = min((i + 1) / 120.0, 1.0)
        simulation.pull(pull.domain, pull.own, np.tile(strength / len(pull.own) * pull.force, (len(pull.own), 1)))
        simulation.step()
    return simulation.positions()


def seams(update: Update) -> Figure:
    """SUB11 Fig. 8: seams of a pulled flower, as the domains leave them and with the copies averaged."""
    model = flower_model()
    pull = pull_at_the_end(model, PULLED, HARD * FORCE)
    simulation = SubstructuredSimulation(model, STEP, damping=DAMPING)
    for i in range(round(HELD / STEP) - 1):
        pull.apply(simulation, (i + 1) * STEP)
        simulation.step()
    update(1, 2)
    places = simulation.positions()
    copies = np.concatenate([simulation.domain_positions(i) for i in range(len(model.domains))])
    apart = copies - places[model.drawn]
    gap = 2.0 * lengths(apart)
    many = np.bincount(model.drawn)[model.drawn] > 1
    child = widest_seam(model, gap)
    pair = (model.domains[child].parent, child)
    rows = [
        Row("between two copies of a vertex at a seam, largest", "mm", 1e3 * float(gap.max())),
        Row("the same, mean of all seams' vertices", "mm", 1e3 * float(gap[many].mean())),
        Row("‖A − R‖ of all interfaces, largest", "", float(deviations(model, simulation.q).max())),
        Row("height of the flower", "mm", 1e3 * float(np.ptp(places[:, 2]))),
    ]
    whole, near = (250, 330), (255, 330)
    camera = seen([places, pull_tip(pull, places)[None]], TOWARDS, whole)
    one, other = (model.drawn[model.vertex_starts[i] : model.vertex_starts[i + 1]] for i in pair)
    seam = np.intersect1d(one, other)
    spot = ball(places[seam].mean(axis=0), 0.009, RED)
    meshes = [drawn(model, places), spot, *pull_arrow(pull, places, OURS_RGB)]
    panels = [Panel(taken(meshes, camera, whole, ground=white_floor(SIZE), finer=2), "pulled", "red: where")]
    views = {
        "domains apart": (copies, "as they are"),
        "domains apart ": (copies + (LARGER - 1.0) * apart, f"gaps {LARGER} times as wide"),
        "copies averaged": (places[model.drawn], "as drawn"),
    }
    close = at_the_seam(model, pair, places, seam, near)
    for head, (where, note) in views.items():
        panels.append(Panel(taken(domain_meshes(model, where, pair), close, near, finer=2), head.strip(), note))
    update(2, 2)
    names = " and ".join(model.domains[i].name for i in pair)
    return made(
        "sub11-8",
        "SUB11 Figure 8: seams",
        sheet([panels]),
        rows,
        "A child takes over the rotation of its interface and not its stretch, so at a seam the two copies of a vertex "
        f"come apart. With the side stem pulled by {np.linalg.norm(pull.force):.2f} N (blue arrow) the widest seam, of "
        f"{names}, opens by {rows[0].told()}; the pictures of it are {2e2 * NEAR:g} cm high. What is drawn is the mean "
        "of the copies, which closes all seams.",
        alt=f"A pulled flower, and its widest seam from near, open by {rows[0].told()} and closed",
        value="softrig",
        sizes={"flower": model_sizes(model)},
    )


def widest_seam(model: SubstructuredModel, gap: np.ndarray) -> int:
    """The child at the seam whose copies are farthest apart; `gap` (k,) metres, of every copy."""
    starts = model.vertex_starts
    widest = model.drawn[int(np.argmax(gap))]
    holders = [i for i in range(len(model.domains)) if widest in model.drawn[starts[i] : starts[i + 1]]]
    return max(holders)


def at_the_seam(
    model: SubstructuredModel, pair: tuple[int, int], places: np.ndarray, seam: np.ndarray, size: tuple[int, int]
) -> Camera:
    """A camera close to the seam of two domains, across the child, from where least of them is in the way."""
    starts = model.vertex_starts
    parent, child = (places[model.drawn[starts[i] : starts[i + 1]]] for i in pair)
    middle = places[seam].mean(axis=0)
    along = child[np.linalg.norm(child - middle, axis=1) < 4.0 * NEAR].mean(axis=0) - middle
    side = np.linalg.svd(along[None])[2][1:]
    angles = np.linspace(0.0, 2.0 * np.pi, 36, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ side
    bodies = np.concatenate([parent, child])
    bodies = np.concatenate([0.5 * (bodies[:-1] + bodies[1:]), bodies]) - middle

    ahead = directions @ bodies.T
    beside = np.linalg.norm(bodies - ahead[:, :, None] * directions[:, None], axis=2)
    hiding = ((ahead > 0.5 * NEAR) & (beside < NEAR)).sum(axis=1)
    around = middle + NEAR * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return seen([around], directions[np.argmin(hiding)], size, margin=1.0)


def domain_meshes(model: SubstructuredModel, places: np.ndarray, chosen: Sequence[int]) -> list[Mesh]:
    """A mesh for each of the `chosen` domains, of the copies of all vertices (k, 3), metres."""
    meshes = []
    for i in chosen:
        shape, start = model.shapes[model.domains[i].shape], model.vertex_starts[i]
        meshes.append(
            Mesh(places[start : start + len(shape.vertices)], shape.triangles, shape.colours, crease_angle=CREASE)
        )
    return meshes
