"""A body in domains that is set moving along its first mode: the full simulation, and reduced ones beside it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation
from threadpoolctl import threadpool_limits

from softrig.bases.modes import linear_modes
from softrig.bodies.divided import DividedBody
from softrig.console import Update
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.models.full import FullBody
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation

STEP = 1.0 / 180.0
"""Seconds."""
DAMPING = Rayleigh(0.0, 1e-3)
"""A 300th of critical at 1 Hz: without any, the paper's two kinds run away within three seconds."""
TOLERANCE = 1e-5
"""To which the full simulation is converged."""
SMALL = 1e-4
"""Of a body's size, to be linear; of a coordinate, for differences."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Where a body went."""

    displacements: np.ndarray
    """(steps, n, 3) metres, after each step."""
    seconds: np.ndarray
    """(steps,) that each step took."""


@dataclass(frozen=True, eq=False)
class Swing:
    """A body at rest with a velocity along its first mode."""

    body: DividedBody
    full: FullBody
    frequency: float
    """Of that mode, hertz."""
    velocity: np.ndarray
    """(n, 3) m/s, such that the linear body turns its most mobile interface by one degree."""


def shared_vertices(body: DividedBody, one: str, other: str) -> np.ndarray:
    """The vertices where two domains meet, by their names."""
    found = [body.mesh.elements[body.domains == body.domain_names.index(name)] for name in (one, other)]
    return np.intersect1d(*found)


def turn(before: np.ndarray, after: np.ndarray) -> float:
    """Degrees of the rotation that fits best between places (n, 3) and where they are later, metres."""
    rotation, _ = Rotation.align_vectors(after - after.mean(axis=0), before - before.mean(axis=0))
    return float(np.degrees(rotation.magnitude()))


def first_mode_swing(body: DividedBody, ends: tuple[tuple[str, str], ...]) -> Swing:
    """The body with a velocity along its first mode; `ends`: pairs of domains whose interface is watched."""
    full = FullBody(body.mesh, body.material(), fixed=body.fixed)
    modes = linear_modes(full, 1)
    frequency, shape = float(modes.frequencies[0]), full.expand(modes.shapes[:, 0])
    x = body.mesh.vertices
    small = SMALL * float(np.ptp(x, axis=0).max()) * shape / np.abs(shape).max()
    where = [shared_vertices(body, *pair) for pair in ends]
    degrees = max(turn(x[some], x[some] + small[some]) for some in where)
    return Swing(body, full, frequency, 2.0 * np.pi * frequency / degrees * small)


def full_motion(
    full: FullBody,
    steps: int,
    velocity: np.ndarray | None = None,
    forces: np.ndarray | None = None,
    update: Update | None = None,
    damping: Rayleigh = DAMPING,
) -> Motion:
    """The full body, undeformed at first, with a `velocity` (n, 3) m/s and under `forces` (steps, n, 3), newton.

    On one core, as the reduced ones are.
    """
    with threadpool_limits(1):
        return _full_motion(full, steps, velocity, forces, update, damping)


def _full_motion(
    full: FullBody,
    steps: int,
    velocity: np.ndarray | None,
    forces: np.ndarray | None,
    update: Update | None,
    damping: Rayleigh,
) -> Motion:
    integrator = Integrator(full, STEP, damping=damping, tolerance=TOLERANCE)
    state = State.rest(full.size)
    if velocity is not None:
        state.v[:] = full.restrict(velocity)
    load = np.zeros(full.size)
    found, seconds = np.empty((steps, *full.mesh.vertices.shape)), np.empty(steps)
    for i in range(steps):
        if forces is not None:
            load = full.restrict(forces[i])
        start = time.perf_counter()
        state = integrator.step(state, load)
        seconds[i] = time.perf_counter() - start
        found[i] = full.expand(state.q)
        if update is not None:
            update(i + 1, steps)
    return Motion(found, seconds)


def matching_rates(simulation: SubstructuredSimulation, velocity: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(r̂,) rates at rest nearest to a `velocity` (n, 3) m/s, weighted by `vertex_mass` (n,) kg."""
    simulation.reset()
    rest, weight = simulation.positions(), np.repeat(np.sqrt(vertex_mass), 3)
    columns = np.empty((rest.size, simulation.model.size))
    for k in range(simulation.model.size):
        simulation.q[k] = SMALL
        columns[:, k] = simulation.positions().ravel() - rest.ravel()
        simulation.q[k] = 0.0
    found = np.linalg.lstsq(weight[:, None] * columns, weight * velocity.ravel(), rcond=None)[0]
    return np.asarray(SMALL * found)


def reduced_motion(
    model: SubstructuredModel, inertia: str, steps: int, velocity: np.ndarray, vertex_mass: np.ndarray
) -> Motion:
    """The same of a reduced body: from rest, with the rates nearest to `velocity` (n, 3) m/s.

    It starts without acceleration, as the full one does: undeformed, nothing pulls it back yet.
    """
    simulation = SubstructuredSimulation(model, STEP, inertia=inertia, damping=DAMPING)
    simulation.step()  # compiles
    rates = matching_rates(simulation, velocity, vertex_mass)
    simulation.reset()
    simulation.v = rates
    rest = model_rest(model)
    found, seconds = np.empty((steps, *rest.shape)), np.empty(steps)
    for i in range(steps):
        start = time.perf_counter()
        simulation.step()
        seconds[i] = time.perf_counter() - start
        found[i] = simulation.positions() - rest
    return Motion(found, seconds)


def model_rest(model: SubstructuredModel) -> np.ndarray:
    """(m, 3) its drawn vertices at rest, metres."""
    return SubstructuredSimulation(model, STEP).positions()
