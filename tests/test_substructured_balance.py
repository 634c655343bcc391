"""Accelerations of a tree of domains: exact ones by Lagrange's equations, the paper's by its Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from domain_bodies_for_tests import (
    Place,
    accelerations_of,
    place_of,
    planted,
    rate,
    second_rate,
    shrub,
    shrub_mechanics,
    stir,
    turn,
    vee,
)
from softrig.dynamics import Rayleigh
from softrig.models.substructured_simulation import SubstructuredSimulation

GRAVITY = np.array([1.5, -2.0, -9.0])
DAMPING = (7.0, 2e-3)
PULLS = (("trunk 0", 3, (2.0, -1.0, 0.5)), ("trunk 2", 9, (-0.4, 0.9, 0.3)), ("twig 3", 11, (0.02, 0.05, -0.04)),
         ("twig 1", 8, (0.1, -0.2, 0.3)), ("trunk 0", 15, (0.3, 0.2, -0.8)))  # fmt: skip
TURNED = turn(-0.7, 0.5, 1.9)


def stirred(floating: bool, seed: int, *, bend: float = 1.0, speed: float = 30.0, **options) -> SubstructuredSimulation:
    """The shrub, bent and moving under gravity, pulls and damping; a floating root stands anywhere."""
    simulation = SubstructuredSimulation(shrub(floating), 1e-3, gravity=GRAVITY, damping=Rayleigh(*DAMPING), **options)
    stir(simulation, seed, bend=bend, speed=speed)
    if floating:
        state = simulation.state()
        state.root[:9] = (TURNED @ state.root[:9].reshape(3, 3)).ravel()
        state.root[9:12] += 0.4, 0.1, -0.3
        simulation.restore(state)
    for name, vertex, force in PULLS:
        simulation.pull(name, [vertex], np.array(force))
    return simulation


def pulled(model) -> np.ndarray:
    """(n, 3) the pulls at all vertices."""
    forces = np.zeros((int(model.vertex_starts[-1]), 3))
    for name, vertex, force in PULLS:
        forces[model.vertex_starts[model.domain(name)] + vertex] += force
    return forces


def weights(mechanics) -> np.ndarray:
    """(n, 3) gravity on all vertices."""
    return (mechanics.mass @ np.tile(GRAVITY, len(mechanics.mass) // 3)).reshape(-1, 3)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("floating", [False, True])
def test_exact_accelerations_are_lagranges(floating, seed):
    mechanics = shrub_mechanics(floating)
    simulation = stirred(floating, seed, bend=1.0 + 2.0 * seed)
    at, rates = place_of(simulation)
    np.testing.assert_allclose(
        np.concatenate([simulation.domain_positions(i) for i in range(4)]), mechanics.points(at), atol=1e-12
    )
    simulation.balance()
    forces = pulled(mechanics.model) + weights(mechanics)
    damping = DAMPING
    if not floating:
        # Held in the ground, mass damping is against the ground; else it is of the modes alone.
        forces -= DAMPING[0] * (mechanics.mass @ mechanics.velocities(at, rates).ravel()).reshape(-1, 3)
        damping = (0.0, DAMPING[1])
    internal = mechanics.internal(at.q, simulation.v, damping)
    wanted = mechanics.accelerations(at, rates, internal, forces)
    got = accelerations_of(simulation)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    if floating:
        np.testing.assert_allclose(got[:6], wanted[:6], atol=1e-6 * np.abs(wanted[:6]).max())


def test_a_bent_shrub_turns_its_interfaces_visibly():
    mechanics = shrub_mechanics()
    at, _ = place_of(stirred(False, 1, bend=3.0))
    turns = [np.arccos(0.5 * (np.trace(mechanics.hinge(i, mechanics.own(mechanics.model.domains[i].parent, at.q))[0]
             @ mechanics.model.domains[i].turn.T) - 1.0)) for i in (1, 2, 3)]  # fmt: skip
    assert max(turns) > 0.2


class Moving:
    """A frame at one instant: where it is, ω, velocity, α and acceleration in the world."""

    def __init__(self, R, x, omega, velocity, alpha, acceleration):
        self.R, self.x = R, x
        self.omega, self.velocity, self.alpha, self.acceleration = omega, velocity, alpha, acceleration

    def path(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        # d/dt of the rotation vector at 0 is ω, its second rate α.
        R = turn(*(t * self.omega + 0.5 * t * t * self.alpha)) @ self.R
        return R, self.x + t * self.velocity + 0.5 * t * t * self.acceleration


TICK = 3e-4


def subtrees(mechanics, at: Place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, centre in the world and net pull of each domain with all that hangs on it."""
    model = mechanics.model
    count, load, points = len(model.domains), pulled(model), mechanics.points(at)
    forces, masses, moments = np.zeros((count, 3)), np.zeros(count), np.zeros((count, 3))
    for i in range(count - 1, -1, -1):
        some = slice(model.vertex_starts[i], model.vertex_starts[i + 1])
        shares = mechanics.masses[i][::3, ::3].sum(axis=0)
        forces[i] += load[some].sum(axis=0)
        masses[i] += shares.sum()
        moments[i] += shares @ points[some]
        parent = model.domains[i].parent
        if parent >= 0:
            forces[parent] += forces[i]
            masses[parent] += masses[i]
            moments[parent] += moments[i]
    return masses, moments / masses[:, None], forces


def domain_step(mechanics, i: int, q, v, frame: Moving, hung: dict, free: bool) -> np.ndarray:
    """q̈ of one domain, of a `free` root its frame's acceleration and α first (Eq. 17).

    `hung`: by child, mass, place in the child's frame and force of the point that stands for its subtree.
    """
    model = mechanics.model

    def places(coordinates, R, x):
        rows = [mechanics.local(i, coordinates)]
        for j, (_, spot, _) in hung.items():
            Q, y = mechanics.hinge(j, coordinates)
            rows.append((y + Q @ spot)[None])
        return x + np.concatenate(rows) @ R.T

    def moved(by):
        head = by[:6] if free else np.zeros(6)
        return places(q + by[len(by) - len(q) :], turn(*head[3:]) @ frame.R, frame.x + head[:3])

    units = np.concatenate([np.full(6 if free else 0, 0.1), mechanics.own(i, mechanics.units)])
    moves = np.eye(len(units))
    J = np.stack([rate(lambda t, k=k: moved(t * moves[k]), 3e-3 * units[k]).ravel() for k in range(len(units))], axis=1)
    swept = second_rate(lambda t: places(q + t * v, *frame.path(t)), TICK).ravel()
    mass = block_diag(mechanics.masses[i], *(weight * np.eye(3) for weight, _, _ in hung.values()))
    own = pulled(model)[model.vertex_starts[i] : model.vertex_starts[i + 1]].ravel()
    load = np.concatenate([own, *(force for _, _, force in hung.values())])
    right = J.T @ (load + mass @ np.tile(GRAVITY, len(swept) // 3) - mass @ swept)
    right[len(right) - len(q) :] -= mechanics.elastic(i, q) + mechanics.damped(i, q, v, *DAMPING)
    return np.linalg.solve(J.T @ mass @ J, right)


def carried(mechanics, j: int, q, v, a, frame: Moving) -> Moving:
    """The frame of domain j, whose parent moves like `frame` and has the coordinates q (Eq. 1 – 9)."""

    def turned(t):
        return frame.path(t)[0] @ mechanics.hinge(j, q + t * v + 0.5 * t * t * a)[0]

    def stands(t):
        R, x = frame.path(t)
        return x + R @ mechanics.hinge(j, q + t * v + 0.5 * t * t * a)[1]

    R = turned(0.0)
    omega, alpha = vee(rate(turned, TICK) @ R.T), vee(second_rate(turned, TICK) @ R.T)
    return Moving(R, stands(0.0), omega, rate(stands, TICK), alpha, second_rate(stands, TICK))


def algorithm_1(mechanics, simulation, kind: str) -> np.ndarray:
    """q̈ of all domains, root to leaves (SUB11 Algorithm 1): what hangs on a domain is a point mass."""
    model = mechanics.model
    at, rates = place_of(simulation)
    masses, centres, forces = subtrees(mechanics, at)
    frames, zero = mechanics.frames(at), np.zeros(3)
    linear, angular = (rates[:3], rates[3:6]) if model.floating else (zero, zero)
    moving = {0: Moving(*frames[0], angular, linear, zero, zero)}
    found = []
    for i in range(len(model.domains)):
        hung = {}
        for j in (j for j, domain in enumerate(model.domains) if domain.parent == i):
            R, x = frames[j]
            hung[j] = masses[j], R.T @ (centres[j] - x) if kind == "centre" else zero, forces[j]
        q, v = mechanics.own(i, at.q), mechanics.own(i, simulation.v)
        free = model.floating and i == 0
        answer = domain_step(mechanics, i, q, v, moving[i], hung, free)
        found.append(answer)
        if free:
            moving[0].acceleration, moving[0].alpha = answer[:3], answer[3:6]
        for j in hung:
            moving[j] = carried(mechanics, j, q, v, answer[len(answer) - len(q) :], moving[i])
    return np.concatenate(found)


@pytest.mark.parametrize("kind", ["interface", "centre"])
@pytest.mark.parametrize("floating", [False, True])
def test_lumped_accelerations_are_those_of_algorithm_1(floating, kind):
    mechanics = shrub_mechanics(floating)
    simulation = stirred(floating, 2, speed=5.0, inertia=kind)
    wanted = algorithm_1(mechanics, simulation, kind)
    simulation.balance()
    got = accelerations_of(simulation)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
    if floating:
        np.testing.assert_allclose(got[:6], wanted[:6], atol=1e-5 * np.abs(wanted[:6]).max())


AIR = np.array([6.0, -3.0, 2.0])


def winds(mechanics, at: Place, rates: np.ndarray, air: np.ndarray, drag: float) -> np.ndarray:
    """(moves,) ½ drag |w| (w·n) n on every triangle that no other domain covers; w against the domain's centre."""
    model, tree = mechanics.model, planted()
    floating = model.floating
    J = mechanics.jacobian(mechanics.points, at, floating).reshape(-1, 3, len(rates))
    total = np.zeros(len(rates))
    clock = 0.1 * mechanics.clock(rates)
    for i, domain in enumerate(model.domains):
        shape = model.shapes[domain.shape]
        skin = shape.triangles[~tree.shapes[shape.name].held[shape.triangles].all(axis=1)]
        corners = domain.scale * shape.vertices[skin]
        normals = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        areas = np.linalg.norm(normals, axis=1)
        centre = areas @ corners.mean(axis=1) / areas.sum()

        def middle(t, i=i, centre=centre):
            R, x = mechanics.frames(mechanics.moved(at, t * rates))[i]
            return x + R @ centre

        w = air - rate(middle, clock)
        normals = normals @ mechanics.frames(at)[i][0].T
        pushes = 0.5 * drag * np.linalg.norm(w) * ((normals @ w) / areas)[:, None] * normals
        levers = J[model.vertex_starts[i] :][skin].mean(axis=1)
        total += np.einsum("tk,tkm->m", pushes, levers)
    return total


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("floating", [False, True])
def test_wind_pushes_every_triangle(floating, everywhere):
    """The drag property alone moves what the air does: the difference of two balances is its force."""
    mechanics = shrub_mechanics(floating)
    simulation = SubstructuredSimulation(shrub(floating), 1e-3)
    stir(simulation, 4, bend=0.0)
    at, rates = place_of(simulation)
    simulation.balance()
    calm = accelerations_of(simulation)
    simulation.drag = 250.0
    simulation.wind = AIR if everywhere else [(0.0, 0.0, 0.0), (1.0, 8.0, 0.5), (-3.0, 2.0, 9.0), (0.0, 7.0, 1.0)]
    simulation.balance()
    J = mechanics.jacobian(mechanics.points, at, floating)
    felt = J.T @ mechanics.mass @ J @ (accelerations_of(simulation) - calm)
    if everywhere:
        wanted = winds(mechanics, at, rates, AIR, 250.0)
        np.testing.assert_allclose(felt, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    else:
        own = mechanics.model.starts
        head = 6 if floating else 0
        alone = [winds(mechanics, at, rates, np.array(air), 250.0) for air in simulation.wind]
        for leaf in (1, 3):  # what a leaf's own coordinates feel is its own air alone
            some = slice(head + own[leaf], head + own[leaf + 1])
            np.testing.assert_allclose(felt[some], alone[leaf][some], rtol=1e-6, atol=1e-7 * np.abs(felt).max())


@pytest.mark.parametrize("kind", ["interface", "centre"])
def test_lumped_subtrees_hand_on_the_wind_they_catch(kind):
    simulation = SubstructuredSimulation(shrub(), 1e-3, inertia=kind)
    simulation.wind = AIR
    simulation.balance()
    blown = simulation.a.copy()
    simulation.wind = None
    # In still motion at rest the air's forces are known: the net one of each domain, and what its own modes feel.
    model, mechanics = simulation.model, shrub_mechanics()
    at, _ = place_of(simulation)
    masses, centres, _ = subtrees(mechanics, at)
    nets, frames = np.zeros((4, 3)), mechanics.frames(at)
    felt = []
    for i in range(3, -1, -1):
        domain = model.domains[i]
        R = frames[i][0]
        table, w = model.shapes[domain.shape].drag, R.T @ AIR
        by = 0.5 * simulation.drag * np.linalg.norm(w) * domain.scale**2
        nets[i] += by * R @ (table[:9].reshape(3, 3) @ w)
        if i:
            nets[domain.parent] += nets[i]
        felt.insert(0, by * domain.scale * table[21:].reshape(-1, 3) @ w)
    hung, system = felt[0].copy(), np.zeros((5, 5))
    basis = model.shapes[0].basis
    system += model.domains[0].scale ** 5 * basis.T @ (mechanics.bodies[0].mass @ basis)
    for j in (1, 2):
        R, x = frames[j]
        spot = R.T @ (centres[j] - x) if kind == "centre" else np.zeros(3)

        def stands(q, j=j, spot=spot):
            Q, y = mechanics.hinge(j, q)
            return frames[0][0] @ (y + Q @ spot)

        P = np.stack(
            [rate(lambda t, k=k: stands(t * np.eye(5)[k]), 1e-2 * mechanics.units[k]) for k in range(5)], axis=1
        )
        system += masses[j] * P.T @ P
        hung += P.T @ nets[j]
    wanted = np.linalg.solve(system, hung)
    np.testing.assert_allclose(blown[:5], wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())
