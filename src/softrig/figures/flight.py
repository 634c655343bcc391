"""StVK05 Figure 13: a body without anchors that flies, spins and bends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softrig.bases.derivatives import derivative_basis
from softrig.bench.record import Row, body_sizes
from softrig.bodies import spoon
from softrig.console import Update
from softrig.dynamics import Integrator, State
from softrig.figures.chart import OURS, TRUTH, Line, line_chart
from softrig.figures.figure import Figure, made
from softrig.figures.look import framing, key, labelled, lengths, shot
from softrig.figures.look import wrong as bent_colour
from softrig.figures.sheet import Panel, sheet
from softrig.figures.spoons import RUBBER, UP, SoftSpoon
from softrig.forces.polynomial import reduce_body
from softrig.machine import timed
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody
from softrig.render import scale_end

SIZE, MODES = 40, 20
REDUCED = f"reduced, r = {SIZE}"
STEP = 1.0 / 600.0
SECONDS = 0.42
SPIN = np.array([3.0, 22.0, 9.0])
"""rad/s at the start."""
THROW = np.array([1.6, 0.0, 2.4])
"""m/s."""
GRAVITY = (0.0, 0.0, -9.81)
APART = 0.11
"""Metres by which each moment is drawn farther to the right than it flew, so that none hides another."""
MOMENTS = 7
SOFT = replace(RUBBER, young=9e5)


@dataclass(frozen=True, eq=False)
class Flight:
    """A thrown body at every measured moment."""

    times: np.ndarray
    """(k,) seconds."""
    places: np.ndarray
    """(k, n, 3) metres."""


def free_spoon(resolution: int = 40) -> SoftSpoon:
    """The spoon with nothing holding it."""
    soup = spoon()
    voxels = soup.voxelised(resolution)
    return SoftSpoon(soup, voxels, FullBody(voxels.mesh, SOFT))


def thrown(body: FullBody, size: int = SIZE, modes: int = MODES) -> FreeFlight:
    """The reduced body at the moment it leaves the hand: spinning rigidly, not bent."""
    basis = derivative_basis(body, size, modes=modes, inertia=False)
    flight = FreeFlight(reduce_body(body, basis), STEP, gravity=GRAVITY)
    flight.launch(THROW)
    flight.spin(SPIN)
    flight.balance()
    return flight


def reduced_flight(flight: FreeFlight, seconds: float, every: int) -> tuple[Flight, dict[str, float]]:
    """The flight, and by how much it broke what physics keeps: momenta and energy, relative."""
    start = flight.angular_momentum.copy(), _energy(flight)
    times, places = [0.0], [flight.positions()]
    for _ in range(round(seconds / STEP / every)):
        flight.run(every)
        times.append(flight.time)
        places.append(flight.positions())
    fell = THROW + np.array(GRAVITY) * flight.time
    drift = {
        "linear momentum": float(
            np.linalg.norm(flight.momentum - flight.mass * fell) / np.linalg.norm(flight.mass * fell)
        ),
        "angular momentum": float(np.linalg.norm(flight.angular_momentum - start[0]) / np.linalg.norm(start[0])),
        "energy": abs(_energy(flight) / start[1] - 1.0),
    }
    return Flight(np.array(times), np.stack(places)), drift


def _energy(flight: FreeFlight) -> float:
    """Joule, with the height of the centre."""
    return flight.energy() - flight.mass * float(np.array(GRAVITY) @ flight.centre)


def full_flight(body: FullBody, seconds: float, every: int, update: Update | None = None) -> Flight:
    """The same throw of the full body, in the world's coordinates."""
    x = body.mesh.vertices
    centre = body.vertex_mass @ x / body.vertex_mass.sum()
    start = THROW + np.cross(SPIN, x - centre)
    pull = body.restrict(body.vertex_mass[:, None] * np.array(GRAVITY))
    integrator = Integrator(body, STEP, tolerance=1e-5)
    state = integrator.start(State(np.zeros(body.size), body.restrict(start), np.zeros(body.size), 0.0), pull)
    times, places = [0.0], [x]
    for i in range(round(seconds / STEP)):
        state = integrator.step(state, pull)
        if (i + 1) % every == 0:
            times.append(state.time)
            places.append(x + body.expand(state.q))
            if update is not None:
                update(i + 1, round(seconds / STEP) + 10)
    return Flight(np.array(times), np.stack(places))


def bent(body: FullBody, places: np.ndarray) -> np.ndarray:
    """(n,) metres: how far each vertex is from the nearest rigid placing of the body."""
    x, mass = body.mesh.vertices, body.vertex_mass
    a, b = x - mass @ x / mass.sum(), places - mass @ places / mass.sum()
    U, _, Vt = np.linalg.svd((mass[:, None] * b).T @ a)
    U[:, 2] *= np.sign(np.linalg.det(U @ Vt))
    return lengths(b - a @ (U @ Vt).T)


def thrown_spoon(update: Update) -> Figure:
    """StVK05 Fig. 13: a thrown spoon that flies, spins and bends."""
    thing = free_spoon()
    body = thing.body
    every = 3
    full = full_flight(body, SECONDS, every, update)
    flight = thrown(body)
    reduced, drift = reduced_flight(flight, SECONDS, every)
    bending = {
        "full": np.array([bent(body, places).max() for places in full.places]),
        "reduced": np.array([bent(body, places).max() for places in reduced.places]),
    }
    apart = np.linalg.norm(full.places - reduced.places, axis=2)
    error = float(np.linalg.norm(bending["reduced"] - bending["full"]) / np.linalg.norm(bending["full"]))
    time = timed(lambda: flight.run(20), repeats=10)
    length = float(np.ptp(body.mesh.vertices[:, 0]))
    rows = [
        Row("a step", "µs", 1e6 * time.least / 20.0, 1e6 * time.median / 20.0),
        Row("bends by, of its length", "%", 100.0 * float(bending["full"].max()) / length),
        Row("bending against the full body: error", "%", 100.0 * error),
        Row("farthest vertex from the full body's, of the length", "%", 100.0 * float(apart.max()) / length),
        *(Row(f"drift of {name} in {SECONDS:g} s", "%", 100.0 * value) for name, value in drift.items()),
    ]
    size = (1080, 330)
    moments = np.linspace(0, len(reduced.times) - 1, MOMENTS).round().astype(int)
    most = scale_end(float(bending["full"].max()))
    meshes = []
    for order, i in enumerate(moments):
        u = reduced.places[i] - body.mesh.vertices + np.array([order * APART, 0.0, 0.0])
        meshes.append(thing.drawn(u, bent_colour(bent(body, reduced.places[i]), most)))
    below = [mesh.vertices.mean(axis=0) * [1, 1, 0] + [0.0, 0.0, mesh.vertices[:, 2].min() - 0.02] for mesh in meshes]
    camera = framing(
        [*(mesh.vertices for mesh in meshes), np.array(below) - [0.0, 0.0, 0.03]], (0.0, -1.0, 0.12), size, up=UP
    )
    image = labelled(
        shot(meshes, camera, size), camera, np.array(below), [f"{reduced.times[i]:.2f} s" for i in moments]
    )
    lines = [
        Line("full body", full.times, 1e3 * bending["full"], TRUTH, width=4.0),
        Line(REDUCED, reduced.times, 1e3 * bending["reduced"], OURS, dashed=True),
    ]
    chart = line_chart(lines, x_label="time, s", y_label="bent by, mm", size=(1080, 300))
    return made(
        "stvk05-13",
        "StVK05 Figure 13: a body that flies, spins and bends",
        sheet(
            [
                [Panel(image, REDUCED)],
                [key(bent_colour, most, "mm bent from any rigid placing", unit=1e3)],
                [Panel(chart)],
            ]
        ),
        rows,
        "A soft spoon thrown with a spin, nothing holding it; colour is how far it is bent from any rigid placing. "
        f"Every moment is drawn {1e2 * APART:.0f} cm farther to the right than it flew. Its reduced model carries "
        "position, rotation and modes, coupled by Coriolis and centrifugal forces. Below: its largest bend over time, "
        "beside the full body's.",
        alt=f"A thrown spoon at seven moments, and its bending over time: {rows[2].told()} off the full body's",
        value=REDUCED,
        sizes={"spoon": body_sizes(body) | {"modes": SIZE}},
    )
