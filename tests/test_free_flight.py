"""Free flight against first principles: momenta, energy, Euler's equations, and the unreduced body."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from bodies_for_tests import beam, momenta, slopes, tip
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.errors import InputError, StepSizeError
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody

SPIN = np.array([1.5, 2.5, -2.0])
VELOCITY = np.array([0.3, -0.2, 0.5])


def flying(body, size=6, step=1e-3, **options) -> FreeFlight:
    """In flight, spinning and vibrating visibly."""
    return set_off(FreeFlight(reduce_body(body, derivative_basis(body, size).shapes), step, **options))


def set_off(flight: FreeFlight) -> FreeFlight:
    r = flight.model.size
    rng = np.random.default_rng(0)
    scale = 0.05 / np.abs(flight.model.basis).max()
    flight.q[:] = scale * rng.standard_normal(r) / np.arange(1, r + 1)
    flight.v[:] = 4.0 * scale * rng.standard_normal(r) / np.arange(1, r + 1)
    flight.launch(VELOCITY)
    flight.spin(SPIN)
    flight.balance()
    return flight


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("kind", ["tets", "bricks"])
@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
def test_both_momenta_are_conserved_while_spinning_and_vibrating(kind, mass, method):
    body = beam(kind, free=True, mass=mass)
    flight = flying(body, method=method, damping=Rayleigh(0.1, 1e-4))
    linear, angular = momenta(body, flight.positions(), flight.velocities())
    np.testing.assert_allclose(linear, body.vertex_mass.sum() * VELOCITY, rtol=1e-10)
    assert flight.mass == pytest.approx(body.vertex_mass.sum(), rel=1e-12)
    turned = flight.rotation.copy()
    for _ in range(4):
        flight.run(500)
        now_linear, now_angular = momenta(body, flight.positions(), flight.velocities())
        np.testing.assert_allclose(now_linear, linear, atol=1e-10 * np.linalg.norm(linear))
        np.testing.assert_allclose(now_angular, angular, atol=1e-10 * np.linalg.norm(angular))
        np.testing.assert_allclose(flight.rotation @ flight.rotation.T, np.eye(3), atol=1e-12)
    assert flight.resets == 0
    assert flight.time == pytest.approx(2.0)
    assert np.abs(flight.rotation - turned).max() > 0.5


def test_velocities_are_the_rates_of_positions():
    errors = []
    for step in (1e-3, 5e-4, 2.5e-4):
        flight = flying(beam(free=True), step=step)
        flight.run(round(0.1 / step) - 1)
        before = flight.positions()
        flight.step()
        velocities = flight.velocities()
        flight.step()
        errors.append(float(np.abs((flight.positions() - before) / (2.0 * step) - velocities).max()))
    assert errors[-1] < 3e-3 * np.abs(velocities).max()
    assert (np.abs(slopes(errors) - 2.0) < 0.3).all(), slopes(errors)


def kinetic_plus_elastic(body, flight) -> float:
    velocities = flight.velocities()
    kinetic = 0.5 * np.einsum("ax,ax->", velocities, body.scalar_mass @ velocities)
    local = (flight.positions() - flight.centre) @ flight.rotation
    return kinetic + body.energy(body.restrict(local - body.mesh.vertices))


def test_energy_is_that_of_the_full_body_and_drifts_with_the_step_squared():
    body = beam(free=True)
    drifts = []
    for step in (2e-3, 1e-3, 5e-4):
        flight = flying(body, step=step, tolerance=1e-12, iterations=20)
        start = flight.energy()
        assert start == pytest.approx(kinetic_plus_elastic(body, flight), rel=1e-9)
        strayed = []
        for _ in range(round(1.0 / step)):
            flight.step()
            strayed.append(abs(flight.energy() - start) / start)
        drifts.append(max(strayed))
        assert flight.energy() == pytest.approx(kinetic_plus_elastic(body, flight), rel=1e-9)
    assert drifts[0] < 0.02
    assert (np.abs(slopes(drifts) - 2.0) < 0.25).all(), slopes(drifts)


def inertia_of(body) -> np.ndarray:
    """∫ρ (x·x I − x⊗x) about the centre of mass, straight from the mass matrix."""
    x = body.mesh.vertices - body.vertex_mass @ body.mesh.vertices / body.vertex_mass.sum()
    second = x.T @ (body.scalar_mass @ x)
    return np.trace(second) * np.eye(3) - second


def test_a_stiff_body_follows_eulers_equations_through_the_flip_of_its_intermediate_axis():
    body = beam(lengths=(1.0, 0.6, 0.3), free=True, material=Material(young=1e10, poisson=0.3, density=1000.0))
    model = reduce_body(body, linear_modes(body, 3).shapes)
    flight = FreeFlight(model, 1e-3)
    inertia = inertia_of(body)
    spin = np.array([0.03, 6.0, 0.02])  # the y axis is the intermediate one
    assert inertia[0, 0] < inertia[1, 1] < inertia[2, 2]
    flight.spin(spin)
    flight.balance()
    truth = solve_ivp(
        lambda _, w: np.linalg.solve(inertia, np.cross(inertia @ w, w)),
        (0.0, 4.0), spin, rtol=1e-10, atol=1e-12, dense_output=True,
    ).sol  # fmt: skip
    flipped = False
    for _ in range(80):
        flight.run(50)
        local = flight.rotation.T @ flight.angular_velocity
        np.testing.assert_allclose(local, truth(flight.time), atol=0.01 * 6.0)
        flipped |= local[1] < -5.0
    assert flipped


def test_gravity_gives_an_exact_parabola_and_no_spin():
    body = beam(free=True)
    gravity = (0.5, 0.0, -9.81)
    flight = FreeFlight(reduce_body(body, linear_modes(body, 4).shapes), 0.01, gravity=gravity)
    start = flight.centre.copy()
    np.testing.assert_allclose(start, body.vertex_mass @ body.mesh.vertices / body.vertex_mass.sum(), rtol=1e-12)
    np.testing.assert_allclose(flight.positions(), body.mesh.vertices, atol=1e-12)
    flight.launch(VELOCITY)
    for _ in range(5):
        flight.run(20)
        t = flight.time
        np.testing.assert_allclose(flight.centre, start + t * VELOCITY + 0.5 * t * t * np.array(gravity), atol=1e-11)
        np.testing.assert_allclose(flight.velocities(), np.tile(VELOCITY + t * np.array(gravity), (20, 1)), atol=1e-10)
    assert np.abs(flight.q).max() < 1e-12
    assert np.abs(flight.angular_velocity).max() < 1e-12


def test_a_push_adds_its_impulse_and_its_turning_impulse():
    body = beam(free=True)
    flight = flying(body)
    corner = tip(body)[:2]
    forces = np.array([[0.5, -1.0, 2.0], [0.3, 0.4, -1.5]])
    linear, angular = momenta(body, flight.positions(), flight.velocities())
    for _ in range(200):
        flight.clear_forces()
        flight.push(corner, forces)
        torque = np.cross(flight.positions()[corner] - flight.centre, forces).sum(axis=0)
        before = flight.angular_momentum.copy()
        flight.step()
        np.testing.assert_allclose(flight.angular_momentum - before, 1e-3 * torque, atol=1e-12)
        linear = linear + 1e-3 * forces.sum(axis=0)
    flight.clear_forces()
    now_linear, now_angular = momenta(body, flight.positions(), flight.velocities())
    np.testing.assert_allclose(now_linear, linear, rtol=1e-9)
    about_origin = flight.angular_momentum + np.cross(flight.centre, flight.momentum)
    np.testing.assert_allclose(now_angular, about_origin, rtol=1e-9)
    assert np.linalg.norm(now_angular - angular) > 1e-3
    kept = flight.angular_momentum.copy()
    flight.run(50)
    np.testing.assert_array_equal(flight.angular_momentum, kept)


def test_a_push_does_work_on_the_body():
    """Energy gained = ∫ force · velocity of the pushed vertices: modal, turning and carrying parts together."""
    body = beam(free=True)
    flight = flying(body, step=2.5e-4)
    corner, force = tip(body)[:1], np.array([[30.0, -40.0, 50.0]])
    start, work = flight.energy(), 0.0
    for _ in range(400):
        flight.clear_forces()
        flight.push(corner, force)
        here = flight.positions()[corner]
        flight.step()
        work += float((force * (flight.positions()[corner] - here)).sum())
    assert abs(work) > 0.05 * start
    assert flight.energy() - start == pytest.approx(work, rel=0.02)


def test_a_push_left_in_place_keeps_its_direction_in_the_world_and_its_vertex():
    body = beam(free=True)
    left, renewed = flying(body), flying(body)
    corner, force = tip(body)[:1], np.array([[1.0, -1.5, 2.0]])
    left.push(corner, force)
    for _ in range(800):
        renewed.clear_forces()
        renewed.push(corner, force)
        left.step()
        renewed.step()
    apart = np.abs(left.positions() - renewed.positions()).max()
    pushed = np.abs(renewed.positions() - plain_flight(body, 800).positions()).max()
    assert apart < 0.02 * pushed


def plain_flight(body, steps):
    flight = flying(body)
    flight.run(steps)
    return flight


def same_start(body, flight) -> State:
    """The unreduced body where the flight is."""
    moved = body.restrict(flight.positions() - body.mesh.vertices)
    return State(moved, body.restrict(flight.velocities()), np.zeros(body.size))


def true_positions(body, start, duration, force=0.0) -> np.ndarray:
    """(n, 3) where an eighth-order Runge–Kutta of M q̈ + R(q) = force takes the unreduced body."""
    size = body.size
    end = solve_ivp(
        lambda _, y: np.concatenate([y[size:], body.solve_mass(force - body.force(y[:size]))]),
        (0.0, duration), np.concatenate([start.q, start.v]), method="DOP853", rtol=1e-11, atol=1e-13,
    )  # fmt: skip
    return body.mesh.vertices + body.expand(end.y[:size, -1])


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_with_all_modes_it_converges_to_the_unreduced_body(mass):
    body = beam(lengths=(1.0, 0.7, 0.5), counts=(1, 1, 1), free=True, mass=mass, solver="superlu")
    model = reduce_body(body, linear_modes(body, body.size - 6).shapes)
    wanted = true_positions(body, same_start(body, set_off(FreeFlight(model, 1.0))), 0.25)
    errors = []
    for steps in (50, 100, 200, 400):
        flight = set_off(FreeFlight(model, 0.25 / steps, iterations=30, tolerance=1e-13))
        start = flight.positions()
        flight.run(steps)
        moved = np.abs(wanted - start).max()
        errors.append(float(np.abs(flight.positions() - wanted).max() / moved))
    assert errors[-1] < 1e-4
    assert (np.abs(slopes(errors) - 2.0) < 0.15).all(), slopes(errors)


def test_with_all_modes_a_push_renewed_each_step_converges_to_the_pushed_unreduced_body():
    body = beam(lengths=(1.0, 0.7, 0.5), counts=(1, 1, 1), free=True)
    model = reduce_body(body, linear_modes(body, body.size - 6).shapes)
    field = np.zeros_like(body.mesh.vertices)
    field[7] = [600.0, -900.0, 700.0]
    start = same_start(body, set_off(FreeFlight(model, 1.0)))
    wanted = true_positions(body, start, 0.1, body.restrict(field))
    pushed = np.abs(wanted - true_positions(body, start, 0.1)).max()
    errors = []
    for steps in (100, 200, 400):
        flight = set_off(FreeFlight(model, 0.1 / steps, iterations=30, tolerance=1e-12))
        flight.push([7], field[[7]])
        flight.balance()
        for _ in range(steps):
            flight.clear_forces()
            flight.push([7], field[[7]])
            flight.step()
        errors.append(float(np.abs(flight.positions() - wanted).max() / pushed))
    assert errors[-1] < 5e-3, errors
    assert (slopes(errors) > 0.85).all(), slopes(errors)


def test_a_reduced_beam_stays_close_to_the_unreduced_one():
    body = beam(free=True, material=Material(young=4e5, poisson=0.35, density=1000.0), solver="superlu")
    flight = FreeFlight(reduce_body(body, derivative_basis(body, 20).shapes), 1e-3)
    modes = linear_modes(body, 2).shapes
    bent = modes @ (0.04 / np.abs(modes).max(axis=0))
    flight.q[:] = flight.model.basis.T @ (body.mass @ bent)
    flight.launch(VELOCITY)
    flight.spin(SPIN)
    flight.balance()
    integrator = Integrator(body, 1e-3)
    nothing = np.zeros(body.size)
    state, _ = integrator.run(integrator.start(same_start(body, flight), nothing), 400, nothing)
    wanted, start = body.mesh.vertices + body.expand(state.q), flight.positions()
    flight.run(400)
    assert np.linalg.norm(flight.positions() - wanted) < 0.02 * np.linalg.norm(wanted - start)


def test_an_edited_density_moves_the_centre_and_keeps_the_momenta():
    blank = beam(free=True, groups=2)
    model = reduce_body(blank, derivative_basis(blank, 6).shapes).with_material("group 1", density=3500.0)
    density = np.where(blank.mesh.groups == 1, 3500.0, 1000.0)
    body = FullBody(blank.mesh, Material(young=1e5, poisson=0.35, density=density), solver="superlu")
    flight = FreeFlight(model, 1e-3)
    np.testing.assert_allclose(flight.centre, body.vertex_mass @ body.mesh.vertices / body.vertex_mass.sum())
    assert flight.centre[0] > 0.6  # towards the heavy half
    assert flight.mass == pytest.approx(body.vertex_mass.sum())
    set_off(flight)
    start_energy = flight.energy()
    linear, angular = momenta(body, flight.positions(), flight.velocities())
    np.testing.assert_allclose(linear, flight.mass * VELOCITY, rtol=1e-10)
    for _ in range(4):
        flight.run(250)
        now_linear, now_angular = momenta(body, flight.positions(), flight.velocities())
        np.testing.assert_allclose(now_linear, linear, atol=1e-10 * np.linalg.norm(linear))
        np.testing.assert_allclose(now_angular, angular, atol=1e-10 * np.linalg.norm(angular))
    assert flight.energy() == pytest.approx(start_energy, rel=0.01)
    assert flight.energy() == pytest.approx(kinetic_plus_elastic(body, flight), rel=1e-8)


def test_spin_sets_a_rigid_rotation_about_the_centre():
    body = beam("tets", free=True)
    flight = FreeFlight(reduce_body(body, linear_modes(body, 4).shapes), 1e-3)
    flight.spin(SPIN)
    np.testing.assert_allclose(flight.angular_velocity, SPIN, rtol=1e-10)
    np.testing.assert_allclose(flight.velocities(), np.cross(SPIN, body.mesh.vertices - flight.centre), atol=1e-10)
    np.testing.assert_allclose(flight.angular_momentum, inertia_of(body) @ SPIN, rtol=1e-10)


def test_a_spinning_body_bulges_outwards():
    body = beam(free=True)
    flight = FreeFlight(
        reduce_body(body, linear_modes(body, 12).shapes), 1e-2, "backward-euler", damping=Rayleigh(5.0, 0.05)
    )
    flight.spin([0.0, 0.0, 4.0])
    flight.run(2000)
    length = np.linalg.norm(np.ptp((flight.positions() - flight.centre) @ flight.rotation, axis=0)[0])
    assert length > 1.005


def test_damping_takes_vibration_and_leaves_the_spin():
    body = beam(free=True)
    flight = flying(body, damping=Rayleigh(2.0, 0.02))
    kept = flight.angular_momentum.copy()
    energies = []
    for _ in range(8):
        flight.run(250)
        energies.append(flight.energy())
    assert (np.diff(energies) < 0.0).all()
    np.testing.assert_array_equal(flight.angular_momentum, kept)
    assert np.abs(flight.v).max() < 0.2 * np.abs(flying(body).v).max()


@pytest.mark.parametrize("size", [1e4, 1e8, 1e12])
def test_extreme_pushes_never_leave_anything_but_numbers(size):
    body = beam(free=True)
    flight = flying(body, step=1 / 60)
    rng = np.random.default_rng(3)
    for _ in range(300):
        flight.clear_forces()
        flight.push(tip(body), size * rng.standard_normal((4, 3)))
        flight.step()
        assert np.isfinite(np.concatenate([flight.q, flight.v, flight.rotation.ravel()])).all()
    assert np.isfinite(flight.positions()).all()
    assert np.abs(flight.rotation @ flight.rotation.T - np.eye(3)).max() < 1e-9


def test_surface_positions_without_embedding_are_the_vertices():
    flight = flying(beam(free=True))
    flight.run(10)
    np.testing.assert_array_equal(flight.surface_positions(), flight.positions())


def test_the_same_start_gives_the_same_bits():
    ends = [plain_flight(beam(free=True), 100).positions() for _ in range(2)]
    np.testing.assert_array_equal(*ends)


def test_fewer_modes_fly_as_a_model_built_with_fewer():
    body = beam(free=True, groups=2)
    basis = derivative_basis(body, 6).shapes
    ends = []
    for model in (reduce_body(body, basis).with_modes([0, 2, 3]), reduce_body(body, basis[:, [0, 2, 3]])):
        flight = set_off(FreeFlight(model, 1e-3))
        flight.run(200)
        ends.append(flight.positions())
    np.testing.assert_allclose(*ends, atol=1e-10)


def test_anchored_models_and_unusable_steps_are_refused():
    body = beam()
    with pytest.raises(InputError, match="ReducedSimulation"):
        FreeFlight(reduce_body(body, linear_modes(body, 3).shapes), 0.01)
    free = beam(free=True)
    model = reduce_body(free, linear_modes(free, 3).shapes)
    for step in (0.0, -1.0, np.nan):
        with pytest.raises(StepSizeError):
            FreeFlight(model, step)
    with pytest.raises(InputError, match="midpoint"):
        FreeFlight(model, 0.01, "midpoint")
