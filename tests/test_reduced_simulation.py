"""The compiled step: equals the plain integrator, repeats to the bit, and survives anything."""

import numpy as np
import pytest

from bodies_for_tests import beam, relative, tip
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.bases.snapshots import snapshot_basis
from softrig.dynamics import Integrator, Rayleigh, State
from softrig.errors import InputError, NotFiniteError, StepSizeError
from softrig.forces.polynomial import reduce_body
from softrig.models.reduced_simulation import ReducedSimulation

SIZE = 7
DAMPING = Rayleigh(mass=0.5, stiffness=0.004)


@pytest.fixture(scope="module")
def body():
    return beam(groups=2)


@pytest.fixture(scope="module")
def model(body):
    reduced = reduce_body(body, derivative_basis(body, SIZE).shapes)
    return reduced.with_material("group 1", density=1700.0)  # so that the reduced mass is not the identity


@pytest.fixture
def swinging_state(model):
    rng = np.random.default_rng(0)
    q = rng.standard_normal(SIZE) * 0.3 / np.arange(1, SIZE + 1) ** 2
    return State(q, rng.standard_normal(SIZE), rng.standard_normal(SIZE), 0.0)


@pytest.fixture
def pushes():
    return 20.0 * np.random.default_rng(1).standard_normal((50, SIZE))


def states_equal(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in "qva") and one.time == other.time


@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("damping", [Rayleigh(), DAMPING], ids=["undamped", "damped"])
@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
def test_the_compiled_step_is_the_integrators(model, swinging_state, pushes, method, damping, iterations):
    options = {"damping": damping, "iterations": iterations, "tolerance": 0.0}
    plain = Integrator(model, 0.005, method, **options)
    compiled = ReducedSimulation(model, 0.005, method, **options)
    compiled.restore(swinging_state)
    state = swinging_state
    for force in pushes:
        state = plain.step(state, force)
        compiled.force[:] = force
        compiled.step()
        for name in "qva":
            assert relative(getattr(compiled, name), getattr(state, name)) < 1e-12
    assert compiled.time == pytest.approx(state.time)
    assert compiled.fallbacks == (0, 0)


def test_iterations_stop_once_the_residual_is_below_the_tolerance(model, swinging_state):
    ends = []
    for iterations, tolerance in ((1, 0.0), (10, 1e3), (10, 1e-10), (30, 1e-10)):
        simulation = ReducedSimulation(model, 0.02, iterations=iterations, tolerance=tolerance)
        simulation.restore(swinging_state)
        simulation.step()
        ends.append(simulation.q.copy())
    one, loose, many, more = ends
    np.testing.assert_array_equal(loose, swinging_state.q)  # content at once
    np.testing.assert_array_equal(many, more)
    assert relative(one, many) > 1e-6


def test_run_is_as_many_steps_to_the_bit_and_records_each(model, swinging_state, pushes):
    one, other = (ReducedSimulation(model, 0.005, damping=DAMPING) for _ in range(2))
    for simulation in (one, other):
        simulation.restore(swinging_state)
    recorded = one.run(len(pushes), pushes, record=True)
    stepped = []
    for force in pushes:
        other.force[:] = force
        other.step()
        stepped.append(other.q.copy())
    np.testing.assert_array_equal(recorded, stepped)
    assert states_equal(one.state(), other.state())
    np.testing.assert_array_equal(one.force, pushes[-1])
    assert one.run(20).shape == (0, SIZE)  # the last force stays, nothing recorded
    for _ in range(20):
        other.step()
    assert states_equal(one.state(), other.state())
    assert one.time == pytest.approx(70 * 0.005)


def test_every_step_sees_its_own_force(model, pushes):
    simulation = ReducedSimulation(model, 0.005)
    shifted = ReducedSimulation(model, 0.005)
    first = simulation.run(50, pushes, record=True)
    changed = pushes.copy()
    changed[30:] = 0.0
    second = shifted.run(50, changed, record=True)
    np.testing.assert_array_equal(first[:30], second[:30])
    assert relative(second[30], first[30]) > 1e-4


def test_the_same_start_gives_the_same_bits(model, swinging_state, pushes):
    trajectories = []
    for _ in range(2):
        simulation = ReducedSimulation(model, 0.005, iterations=3)
        simulation.restore(swinging_state)
        trajectories.append(simulation.run(50, pushes, record=True))
    np.testing.assert_array_equal(*trajectories)


def test_a_state_restored_continues_as_if_nothing_had_happened(model, swinging_state, pushes):
    simulation = ReducedSimulation(model, 0.005, damping=DAMPING)
    simulation.restore(swinging_state)
    simulation.run(20, pushes[:20])
    kept = simulation.state()
    wanted = simulation.run(30, pushes[20:], record=True)
    end = simulation.state()
    simulation.restore(kept)
    assert states_equal(simulation.state(), kept)
    np.testing.assert_array_equal(simulation.run(30, pushes[20:], record=True), wanted)
    assert states_equal(simulation.state(), end)
    kept.q[:] = 99.0
    assert states_equal(simulation.state(), end)  # states are copies


def test_reset_is_a_new_simulation(model, pushes):
    simulation = ReducedSimulation(model, 0.005)
    fresh = simulation.run(50, pushes, record=True)
    simulation.run(100, 1e12 * np.random.default_rng(2).standard_normal((100, SIZE)))
    simulation.reset()
    assert states_equal(simulation.state(), State.rest(SIZE))
    assert simulation.fallbacks == (0, 0)
    assert not simulation.force.any()
    np.testing.assert_array_equal(simulation.run(50, pushes, record=True), fresh)


def test_balance_makes_the_first_step_second_order_and_start_equal_to_the_integrators(model, swinging_state):
    simulation = ReducedSimulation(model, 0.005, damping=DAMPING)
    simulation.restore(swinging_state)
    simulation.force[:] = np.arange(SIZE)
    simulation.balance()
    wanted = Integrator(model, 0.005, damping=DAMPING).start(swinging_state, np.arange(float(SIZE)))
    np.testing.assert_allclose(simulation.a, wanted.a, rtol=1e-12)


@pytest.mark.parametrize(
    "edit", [{"young": 3e5}, {"poisson": 0.1}, {"density": 400.0}, {"young": 2e4, "density": 5000.0}], ids=str
)
def test_an_edit_in_motion_is_a_new_simulation_continued(model, swinging_state, pushes, edit):
    simulation = ReducedSimulation(model, 0.005, damping=DAMPING)
    simulation.restore(swinging_state)
    simulation.run(25, pushes[:25])
    continued = ReducedSimulation(model.with_material("group 0", **edit), 0.005, damping=DAMPING)
    unedited = ReducedSimulation(model, 0.005, damping=DAMPING)
    for other in (continued, unedited):
        other.restore(simulation.state())
    simulation.edit_material("group 0", **edit)
    trajectory = simulation.run(25, pushes[25:], record=True)
    np.testing.assert_array_equal(trajectory, continued.run(25, pushes[25:], record=True))
    assert relative(trajectory, unedited.run(25, pushes[25:], record=True)) > 1e-3
    assert simulation.model.density[0] == pytest.approx(edit.get("density", 1000.0))
    simulation.balance()
    continued.balance()
    np.testing.assert_array_equal(simulation.a, continued.a)


def test_pulls_add_up_and_positions_follow(model, body):
    simulation = ReducedSimulation(model, 0.005)
    for direction in ([0.0, 0.0, -2.0], [0.0, 1.0, 0.0]):
        simulation.pull(tip(body), np.tile(direction, (len(tip(body)), 1)))
    wanted = model.reduced_force(tip(body), np.tile([0.0, 1.0, -2.0], (len(tip(body)), 1)))
    np.testing.assert_allclose(simulation.force, wanted, atol=1e-12)
    simulation.run(40)
    moved = simulation.positions()[tip(body)] - body.mesh.vertices[tip(body)]
    assert moved[:, 2].max() < -1e-3
    assert moved[:, 1].min() > 1e-4
    np.testing.assert_array_equal(simulation.positions(), model.positions(simulation.q))
    np.testing.assert_array_equal(simulation.surface_positions(), model.surface_positions(simulation.q))


@pytest.fixture(scope="module")
def slender():
    """Two bending modes and a squeeze: pushed together, it buckles. Also the coordinates of the squeeze."""
    body = beam(lengths=(1.0, 0.12, 0.1), counts=(6, 1, 1))
    bending = body.expand(linear_modes(body, 2).shapes).transpose(2, 0, 1)
    squeeze = -0.2 * body.mesh.vertices * [1.0, 0.0, 0.0]
    model = reduce_body(body, snapshot_basis(body, np.stack([*bending, squeeze]), 3).shapes)
    return model, model.basis.T @ body.expand(body.mass @ body.restrict(squeeze)).ravel()


@pytest.mark.parametrize("damping", [Rayleigh(), DAMPING], ids=["undamped", "damped"])
@pytest.mark.parametrize("iterations", [1, 5])
@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
@pytest.mark.parametrize("size", [1e6, 1e12, 1e30, 1e150, 1e300])
def test_extreme_forces_never_leave_anything_but_numbers(slender, size, method, iterations, damping):
    model, _ = slender
    rng = np.random.default_rng(6)
    simulation = ReducedSimulation(model, 1 / 60, method, iterations=iterations, damping=damping)
    for _ in range(10):
        trajectory = simulation.run(300, size * rng.uniform(-1.0, 1.0, (300, 3)), record=True)
        assert np.isfinite(trajectory).all()
        state = simulation.state()
        assert np.isfinite(np.concatenate([state.q, state.v, state.a])).all()


def test_every_step_of_a_buckling_bar_that_needs_help_is_counted(slender):
    model, squeezed = slender
    hold = model.force(squeezed) + 1e-3 * np.random.default_rng(7).uniform(-1.0, 1.0, (3000, 3))
    simulation = ReducedSimulation(model, 1.0)
    simulation.q[:] = squeezed
    simulation.run(3000, hold)
    assert simulation.fallbacks.shifts > 0
    assert np.isfinite(np.concatenate([simulation.q, simulation.v, simulation.a])).all()


def test_a_force_beyond_all_arithmetic_is_counted_not_ignored(model):
    simulation = ReducedSimulation(model, 1 / 60)
    simulation.run(3, np.full((3, SIZE), 1e200))
    assert simulation.fallbacks.resets > 0 or np.abs(simulation.q).max() > 0.0


def test_an_indefinite_system_is_shifted_and_counted(slender):
    model, squeezed = slender
    simulation = ReducedSimulation(model, 10.0, "backward-euler")  # so large a step that only stiffness counts
    assert np.linalg.eigvalsh(model.mass / 100.0 + model.force_and_stiffness(squeezed)[1])[0] < 0.0
    simulation.q[:] = squeezed + np.array([1e-3, 1e-3, 0.0])
    before = model.energy(simulation.q)
    simulation.step()
    assert simulation.fallbacks == (1, 0)
    assert model.energy(simulation.q) < before  # the shifted system still steps downhill
    simulation.reset()
    assert simulation.fallbacks == (0, 0)


def test_a_step_that_ends_in_nan_is_thrown_away_and_counted(model, swinging_state):
    simulation = ReducedSimulation(model, 0.005)
    simulation.restore(swinging_state)
    simulation.force[:] = np.nan
    simulation.step()
    assert simulation.fallbacks.resets == 1
    np.testing.assert_array_equal(simulation.q, swinging_state.q)
    assert not simulation.v.any()
    assert not simulation.a.any()
    simulation.force[:] = 0.0
    simulation.run(100)
    assert simulation.fallbacks.resets == 1
    assert np.isfinite(simulation.q).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_forces_that_are_not_finite_are_refused_and_named(model, bad):
    simulation = ReducedSimulation(model, 0.005)
    forces = np.zeros((5, SIZE))
    forces[3, 2] = bad
    with pytest.raises(NotFiniteError) as raised:
        simulation.run(5, forces)
    assert raised.value.indices.tolist() == [3]
    assert simulation.time == 0.0


@pytest.mark.parametrize("step", [0.0, -0.01, np.nan, np.inf])
def test_unusable_steps_are_refused(model, step):
    with pytest.raises(StepSizeError):
        ReducedSimulation(model, step)


def test_other_wrong_arguments_are_refused(model):
    with pytest.raises(InputError, match="iteration"):
        ReducedSimulation(model, 0.01, iterations=0)
    with pytest.raises(InputError, match="central"):
        ReducedSimulation(model, 0.01, "central-differences")
    simulation = ReducedSimulation(model, 0.01)
    with pytest.raises(InputError, match="-1 steps"):
        simulation.run(-1)
    for shape in ((4, SIZE), (5, SIZE + 1), (5,)):
        with pytest.raises(InputError, match="shape"):
            simulation.run(5, np.zeros(shape))
    with pytest.raises(InputError, match="nowhere"):
        simulation.edit_material("nowhere", young=1.0)
    with pytest.raises(InputError, match="outside"):
        simulation.pull([10**6], [[0.0, 0.0, 1.0]])


def test_a_free_body_is_refused():
    body = beam(free=True)
    with pytest.raises(InputError, match="FreeFlight"):
        ReducedSimulation(reduce_body(body, linear_modes(body, 3).shapes), 0.01)
