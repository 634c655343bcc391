"""Trees of domains in motion: against one reduced body, free flight and the full body; orders, energy and momenta."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from domain_bodies_for_tests import (
    RUBBER,
    accelerations_of,
    amplitudes,
    bar_mechanics,
    bar_model,
    cut_bar,
    orders,
    place_of,
    planted,
    shrub,
    shrub_mechanics,
    stir,
    turn,
)
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.bodies.divided import Limb, PlantedTree
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure

EXACTLY = {"iterations": 30, "tolerance": 1e-13}


def full_bar(held: bool = True, **options) -> FullBody:
    body = cut_bar(1, held=held, **options)
    return FullBody(body.mesh, RUBBER, fixed=body.fixed if held else None, solver="superlu")


def moving(model, step: float, seed: int = 0, *, bend=1.0, speed=20.0, **options) -> SubstructuredSimulation:
    """Bent, moving and balanced; solved to rounding unless told otherwise."""
    simulation = SubstructuredSimulation(model, step, **(EXACTLY | options))
    stir(simulation, seed, bend=bend, speed=speed)
    simulation.balance()
    return simulation


# Against others


@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
def test_one_held_domain_is_a_reduced_body(method):
    model = bar_model(1, modes=7)
    damping = Rayleigh(0.4, 1e-3)
    one = SubstructuredSimulation(model, 1e-3, method, damping=damping, iterations=1)
    full, fields = full_bar(), model.shapes[0].basis.T.reshape(7, -1, 3)
    basis = np.stack([full.restrict(field) for field in fields], axis=1)
    other = ReducedSimulation(reduce_body(full, basis), 1e-3, method, damping=damping)
    end, forces = [6, 13], np.array([[0.0, 0.5, 8.0], [0.9, -0.3, 2.0]])
    one.pull("d0", end, forces)
    other.pull(end, forces)
    one.run(150)
    other.run(150)
    assert np.abs(one.positions() - model.shapes[0].vertices).max() > 0.02
    np.testing.assert_allclose(one.q, other.q, atol=1e-10 * np.abs(other.q).max())
    np.testing.assert_allclose(one.v, other.v, atol=1e-10 * np.abs(other.v).max())
    np.testing.assert_allclose(one.positions(), other.positions(), atol=1e-11)
    assert one.time == pytest.approx(0.15)


def test_one_floating_domain_flies_like_a_free_body_to_second_order():
    model = bar_model(1, False, 5)
    full = full_bar(False)
    reduced = reduce_body(full, derivative_basis(full, 5))
    spin, velocity = np.array([1.0, 3.0, -2.0]), np.array([1.0, 0.0, 2.0])
    errors = []
    for step in (4e-3, 2e-3, 1e-3):
        one = SubstructuredSimulation(model, step, gravity=(0.0, 1.0, -3.0), **EXACTLY)
        other = FreeFlight(reduced, step, gravity=(0.0, 1.0, -3.0))
        other.launch(velocity)
        other.spin(spin)
        one.launch(velocity - np.cross(spin, other.centre), spin)
        for simulation in (one, other):
            simulation.balance()
            simulation.run(round(0.3 / step))
        errors.append(float(np.abs(one.positions() - other.positions()).max()))
    assert errors[-1] < 1e-3
    assert (np.abs(orders(errors) - 2.0) < 0.3).all(), orders(errors)


# Orders, energy, momenta


@pytest.mark.parametrize("floating", [False, True])
def test_newmark_is_of_second_order(floating):
    def end(step):
        # Not by stiffness: it is another matrix where that of bent flesh is indefinite.
        simulation = moving(shrub(floating), step, gravity=(0.0, 2.0, -9.0), damping=Rayleigh(0.5, 0.0))
        simulation.pull("twig 3", [4], np.array([0.02, 0.0, 0.03]))
        simulation.balance()
        simulation.run(round(0.06 / step))
        assert not any(simulation.fallbacks)
        return simulation.positions()

    truth = end(6.25e-5)
    errors = [float(np.abs(end(step) - truth).max()) for step in (1e-3, 5e-4, 2.5e-4)]
    assert errors[-1] < 1e-3
    assert (np.abs(orders(errors) - 2.0) < 0.35).all(), orders(errors)


def test_backward_euler_runs_and_is_of_first_order():
    def end(step):
        simulation = moving(bar_model(3), step, speed=5.0, method="backward-euler", gravity=(0.0, 0.0, -9.0))
        simulation.run(round(0.04 / step))
        assert not any(simulation.fallbacks)
        return simulation.positions()

    truth = end(1e-5)
    errors = [float(np.abs(end(step) - truth).max()) for step in (4e-4, 2e-4, 1e-4)]
    assert (np.abs(orders(errors) - 1.0) < 0.3).all(), orders(errors)


@pytest.mark.parametrize("floating", [False, True])
def test_energy_drifts_with_the_square_of_the_step(floating):
    mechanics = shrub_mechanics(floating)
    drifts = []
    for step in (1e-3, 5e-4, 2.5e-4):
        simulation = moving(mechanics.model, step)
        start = mechanics.energy(*place_of(simulation))
        strayed = []
        for _ in range(20):
            simulation.run(round(4e-3 / step))
            strayed.append(abs(mechanics.energy(*place_of(simulation)) / start - 1.0))
        drifts.append(max(strayed))
    assert drifts[0] < 0.03
    assert (np.abs(orders(drifts) - 2.0) < 0.4).all(), orders(drifts)


def test_a_floating_tree_keeps_its_momenta_to_the_square_of_the_step():
    mechanics = bar_mechanics(3, False, 4)
    errors = []
    for step in (2e-3, 1e-3, 5e-4):
        simulation = moving(mechanics.model, step, speed=10.0)
        linear, angular = mechanics.momenta(*place_of(simulation))
        assert np.linalg.norm(linear) > 1.0
        strayed = []
        for _ in range(10):
            simulation.run(round(1e-2 / step))
            now_linear, now_angular = mechanics.momenta(*place_of(simulation))
            strayed.append(
                np.linalg.norm(now_linear - linear) / np.linalg.norm(linear)
                + np.linalg.norm(now_angular - angular) / np.linalg.norm(angular)
            )
        errors.append(float(max(strayed)))
    assert errors[-1] < 5e-3
    assert (orders(errors) > 1.6).all(), orders(errors)


@pytest.mark.parametrize("inertia", ["exact", "centre", "interface"])
def test_a_floating_tree_falls_without_bending(inertia):
    gravity = np.array([1.0, -2.0, -9.0])
    simulation = SubstructuredSimulation(shrub(True), 5e-3, inertia=inertia, gravity=gravity)
    start = simulation.positions()
    velocity = np.array([0.5, 1.0, 3.0])
    simulation.launch(velocity)
    simulation.balance()
    simulation.run(100)
    t = simulation.time
    np.testing.assert_allclose(simulation.positions(), start + t * velocity + 0.5 * t * t * gravity, atol=1e-9)
    assert np.abs(simulation.q / amplitudes(simulation.model)).max() < 1e-8


@pytest.mark.parametrize("damping", [Rayleigh(20.0, 0.0), Rayleigh(0.0, 5e-3)])
def test_damping_takes_energy_away(damping):
    mechanics = shrub_mechanics()
    simulation = moving(mechanics.model, 2e-4, damping=damping)
    energies = []
    for _ in range(25):
        energies.append(mechanics.energy(*place_of(simulation)))
        simulation.run(10)
    assert (np.diff(energies) < 0.0).all()
    assert energies[-1] < 0.7 * energies[0]


def test_a_single_rigid_domain_spins_by_eulers_equations():
    model = substructure(cut_bar(1, held=False, counts=(2, 1, 1)), modes=0)
    body = full_bar(False, counts=(2, 1, 1))
    centre = body.vertex_mass @ body.mesh.vertices / body.vertex_mass.sum()
    arms = body.mesh.vertices - centre
    second = arms.T @ (body.scalar_mass @ arms)
    inertia = np.trace(second) * np.eye(3) - second
    spin, velocity = np.array([6.0, 2.0, -3.0]), np.array([0.2, -0.4, 0.3])
    truth = solve_ivp(
        lambda _, w: np.linalg.solve(inertia, np.cross(inertia @ w, w)), (0.0, 0.5), spin, rtol=1e-11, atol=1e-12
    ).y[:, -1]
    errors = []
    for step in (2e-3, 1e-3, 5e-4):
        simulation = SubstructuredSimulation(model, step, iterations=20)
        simulation.launch(velocity - np.cross(spin, centre), spin)
        simulation.balance()
        simulation.run(round(0.5 / step))
        at, rates = place_of(simulation)
        w = rates[3:]
        np.testing.assert_allclose(at.R @ at.R.T, np.eye(3), atol=1e-10)
        momentum, energy = at.R @ inertia @ at.R.T @ w, 0.5 * w @ at.R @ inertia @ at.R.T @ w
        np.testing.assert_allclose(momentum, inertia @ spin, rtol=1e-2, atol=1e-2 * np.abs(inertia @ spin).max())
        assert energy == pytest.approx(0.5 * spin @ inertia @ spin, rel=1e-2)
        middle = at.x + at.R @ centre
        errors.append(
            float(np.abs(at.R.T @ w - truth).max() + np.abs(middle - centre - simulation.time * velocity).max())
        )
    assert (np.abs(orders(errors) - 2.0) < 0.3).all(), orders(errors)


@pytest.mark.parametrize("make", [shrub, lambda: shrub(True), lambda: substructure(spinner(), modes=0)])
def test_a_converged_step_ends_in_balance(make):
    """Newmark's accelerations at the end are those that the state there asks for; so rounds go on until they are."""
    model = make()
    simulation = moving(model, 2e-3, gravity=(1.0, 0.0, -9.0), damping=Rayleigh(0.5, 1e-3))
    if model.floating:
        simulation.launch((0.0, 0.0, 0.0), (9.0, -6.0, 4.0))
        simulation.balance()
    simulation.run(3)
    stepped = accelerations_of(simulation)
    simulation.balance()
    np.testing.assert_allclose(stepped, accelerations_of(simulation), atol=1e-8 * np.abs(stepped).max())


def spinner():
    """A floating bar about its own centre of mass."""
    body = cut_bar(1, held=False, counts=(2, 1, 1))
    full = full_bar(False, counts=(2, 1, 1))
    centre = full.vertex_mass @ full.mesh.vertices / full.vertex_mass.sum()
    return replace(body, mesh=VolumeMesh.build(body.mesh.vertices - centre, body.mesh.elements))


# Scale and rotation


def trajectory(model, step=2e-3, **options):
    """Positions after every tenth of 60 steps from rest under its weight and a pull at the last domain."""
    simulation = SubstructuredSimulation(model, step, **(EXACTLY | options))
    simulation.pull(len(model.domains) - 1, [1], np.array([0.02, 0.05, -0.03]))
    simulation.balance()
    result = []
    for _ in range(6):
        simulation.run(10)
        result.append(simulation.positions())
    return np.array(result)


@pytest.mark.parametrize("size", [0.5, 2.2])
def test_a_scaled_domain_is_one_of_a_scaled_mesh(size):
    model = bar_model(3)
    scaled = replace(model, domains=tuple(replace(domain, scale=size) for domain in model.domains))
    built = substructure(cut_bar(3, size=size), modes=4)
    assert scaled.mass == pytest.approx(built.mass)
    np.testing.assert_allclose(built.shapes[1].frequencies, model.shapes[1].frequencies / size, rtol=1e-9)
    pull = np.array([0.2, -1.0, 2.0]) * size**2
    paths = []
    for candidate in (scaled, built):
        simulation = SubstructuredSimulation(candidate, 2e-3, gravity=(0.0, 3.0, -9.0), **EXACTLY)
        simulation.pull("d2", [1, 6], pull)
        simulation.wind = (1.0, 30.0, -20.0)
        simulation.balance()
        simulation.run(60)
        paths.append(simulation.positions())
    assert np.abs(paths[0] - size * cut_bar(3).mesh.vertices).max() > 0.02 * size
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-8 * size)


def test_an_instance_rotated_at_rest_is_one_of_a_rotated_mesh():
    tree = planted()
    G = np.roll(np.eye(3), 1, axis=0)  # x → y → z: the box around the mesh, which sets the amplitude, stays
    twig = tree.shapes["twig"]
    mesh = VolumeMesh.build(twig.mesh.vertices @ G.T, twig.mesh.elements)
    shapes = {"trunk": tree.shapes["trunk"], "twig": replace(twig, mesh=mesh)}
    limbs = tuple(
        Limb(limb.shape, limb.parent, limb.at, limb.rotation @ G.T, limb.scale) if limb.shape == "twig" else limb
        for limb in tree.limbs
    )
    modes = {"trunk": 5, "twig": 3}
    turned = substructure(PlantedTree("turned", shapes, limbs), modes=modes)
    model = substructure(tree, modes=modes)
    paths = [trajectory(candidate, gravity=(2.0, 3.0, -9.0)) for candidate in (model, turned)]
    assert np.abs(paths[0][-1] - paths[0][0]).max() > 1e-3
    np.testing.assert_allclose(paths[1], paths[0], atol=1e-8)


@pytest.mark.parametrize("inertia", ["exact", "centre", "interface"])
@pytest.mark.parametrize("floating", [False, True])
def test_a_rotated_world_gives_the_rotated_motion(floating, inertia):
    model = shrub(floating)
    G, shift = turn(-0.9, 2.0, 0.4), np.array([3.0, -1.0, 2.0])
    root = model.domains[0]
    moved = replace(root, place=G @ root.place + shift, turn=G @ root.turn)
    paths = []
    for candidate, by in ((model, np.eye(3)), (replace(model, domains=(moved, *model.domains[1:])), G)):
        simulation = SubstructuredSimulation(
            candidate, 1e-3, gravity=by @ np.array([0.0, 3.0, -9.0]), inertia=inertia, damping=Rayleigh(1.0, 5e-3)
        )
        stir(simulation, 3, bend=0.3, speed=5.0)
        if floating:
            simulation.launch(by @ np.array([1.0, 2.0, 0.0]), by @ np.array([0.5, -1.0, 2.0]))
        simulation.pull("twig 3", [4], by @ np.array([0.02, 0.05, 0.0]))
        simulation.wind = by @ np.array([3.0, 0.0, 1.0])
        simulation.balance()
        simulation.run(50)
        paths.append(simulation.positions())
    np.testing.assert_allclose(paths[1], paths[0] @ G.T + shift, atol=1e-10)


# Against the full body

FINE = (16, 2, 2)
STEP = 1.0 / 180.0


@cache
def truth() -> tuple[np.ndarray, np.ndarray]:
    """The velocities at which a held bar starts, its first mode, and where its end goes."""
    full = full_bar(counts=FINE)
    velocities = full.expand(linear_modes(full, 1).shapes[:, 0])
    velocities *= 0.6 / np.abs(velocities).max()
    state = State(np.zeros(full.size), full.restrict(velocities), np.zeros(full.size))
    end = full.mesh.vertices[:, 0] == 1.0
    _, path = Integrator(full, STEP).run(state, 200, np.zeros(full.size))
    return velocities, np.array([full.expand(q)[end].mean(axis=0) for q in path])


def path_error(basis: str) -> float:
    """How far the end of a bar in four domains strays from the full one's, relatively."""
    model = substructure(cut_bar(4, counts=FINE), modes=16, basis=basis)
    velocities, wanted = truth()
    simulation = SubstructuredSimulation(model, STEP, **EXACTLY)
    rest, moves = simulation.positions(), []
    for unit in 1e-6 * np.eye(model.size):
        simulation.q = unit
        moves.append(1e6 * (simulation.positions() - rest).ravel())
    simulation.reset()
    simulation.v = np.linalg.lstsq(np.array(moves).T, velocities.ravel(), rcond=None)[0]
    simulation.balance()
    end = cut_bar(4, counts=FINE).mesh.vertices[:, 0] == 1.0
    path = []
    for _ in wanted:
        simulation.step()
        path.append((simulation.positions() - rest)[end].mean(axis=0))
    return float(np.linalg.norm(np.array(path) - wanted) / np.linalg.norm(wanted))


def test_a_carrying_basis_follows_the_full_body_where_derivatives_alone_do_not():
    assert np.abs(truth()[1]).max() > 0.1
    carrying, paper = path_error("carrying"), path_error("modal-derivatives")
    assert carrying < 0.03
    assert paper > 2.0 * carrying


def test_the_first_frequency_is_the_full_bodys_and_lumped_inertia_is_too_fast():
    model = substructure(cut_bar(4, counts=FINE), modes=16)
    wanted = np.sqrt(linear_modes(full_bar(counts=FINE), 1).eigenvalues[0])
    found = {}
    for inertia in ("exact", "centre", "interface"):
        simulation = SubstructuredSimulation(model, 1e-3, inertia=inertia)
        columns = []
        for unit in np.diag(1e-6 * amplitudes(model)):
            simulation.q = unit
            simulation.balance()
            columns.append(-simulation.a / unit.max())
        found[inertia] = float(np.sqrt(np.linalg.eigvals(np.array(columns).T).real.min()) / wanted)
    assert found["exact"] == pytest.approx(1.0, abs=0.01)
    # A weakness of the paper's that we know of: what a subtree resists by turning is left out.
    assert 1.02 < found["centre"] < found["interface"]
