"""Integrators: orders, energy, damping, frequencies, and one code for full and reduced bodies."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import eigh

from bodies_for_tests import beam, mass_norm, relative, slopes, tip_load
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.dynamics import (
    Integrator,
    Rayleigh,
    State,
    critical_step,
    kinetic_energy,
    static_equilibrium,
    step_constants,
)
from softrig.errors import InputError, SolverError, StepSizeError
from softrig.forces.polynomial import reduce_body

DAMPING = Rayleigh(mass=0.6, stiffness=0.01)


def bent_start(body) -> State:
    """A beam bent far by a tip load, let go with a sideways swing."""
    q = static_equilibrium(body, tip_load(body, (0.0, 1.0, -6.0)))
    v = 2.0 * static_equilibrium(body, tip_load(body, (0.0, 2.0, 1.0)))
    return State(q, v, np.zeros(body.size))


def swaying_force(body):
    load = tip_load(body, (0.0, 3.0, 2.0))
    return lambda time: np.sin(3.0 * time) * load


def true_motion(body, start, damping, force, duration):
    """q after `duration` by an eighth-order Runge–Kutta of M q̈ + (αM + βK(q)) q̇ + R(q) = f(t)."""
    size = body.size

    def rates(time, y):
        q, v = y[:size], y[size:]
        internal, stiffness = body.force_and_stiffness(q)
        damped = damping.mass * body.mass_times(v) + damping.stiffness * (stiffness @ v)
        return np.concatenate([v, body.solve_mass(force(time) - internal - damped)])

    end = solve_ivp(rates, (0.0, duration), np.concatenate([start.q, start.v]), method="DOP853", rtol=1e-11, atol=1e-13)
    return end.y[:size, -1]


@pytest.mark.parametrize("damping", [Rayleigh(), DAMPING], ids=["undamped", "damped"])
@pytest.mark.parametrize(
    ("method", "order", "coarsest"),
    [("newmark", 2, 30), ("backward-euler", 1, 60), ("central-differences", 2, 48)],
)
def test_methods_converge_to_the_true_motion_with_their_order(method, order, coarsest, damping):
    body = beam(lengths=(1.0, 0.3, 0.25), counts=(2, 1, 1), mass="lumped")
    start, force, duration = bent_start(body), swaying_force(body), 0.15
    truth = true_motion(body, start, damping, force, duration)
    errors = []
    for steps in (coarsest, 2 * coarsest, 4 * coarsest, 8 * coarsest):
        integrator = Integrator(body, duration / steps, method, damping=damping, tolerance=1e-11)
        end, trajectory = integrator.run(integrator.start(start, force(0.0)), steps, force)
        assert end.time == pytest.approx(duration)
        assert trajectory.shape == (steps, body.size)
        np.testing.assert_array_equal(trajectory[-1], end.q)
        errors.append(mass_norm(body, end.q - truth))
    assert errors[-1] < 0.05 * mass_norm(body, truth)
    assert (np.abs(slopes(errors) - order) < 0.1).all(), slopes(errors)


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("kind", ["tets", "bricks"])
def test_the_critical_step_is_two_over_the_highest_frequency_less_its_margin(kind, mass):
    body = beam(kind, mass=mass)
    highest = np.sqrt(eigh(body.rest_stiffness.toarray(), body.mass.toarray(), eigvals_only=True)[-1])
    assert 0.975 * 2.0 / highest <= critical_step(body) <= 0.99 * 2.0 / highest


def test_central_differences_hold_just_below_two_over_omega_and_are_refused_beyond():
    body = beam(counts=(2, 1, 1))
    limit = critical_step(body) / 0.98
    start = State(1e-6 * np.random.default_rng(0).standard_normal(body.size), np.zeros(body.size), np.zeros(body.size))
    integrator = Integrator(body, 0.97 * limit, "central-differences")
    _, trajectory = integrator.run(integrator.start(start, np.zeros(body.size)), 2000, np.zeros(body.size))
    assert np.abs(trajectory).max() < 1e-4
    with pytest.raises(StepSizeError, match="unstable"):
        Integrator(body, 1.01 * limit, "central-differences")
    forced = Integrator(body, 1e-6, "central-differences")
    forced.step_size = 1.05 * limit  # what the refusal protects from
    with pytest.raises(SolverError, match="diverged"), np.errstate(all="ignore"):
        forced.run(start, 2000, np.zeros(body.size))


@pytest.fixture(scope="module")
def swinging():
    """A reduced beam, and where it is let go: its tip a tenth of its length away."""
    body = beam(lengths=(1.0, 0.3, 0.25))
    model = reduce_body(body, derivative_basis(body, 5, modes=3).shapes)
    return model, 0.1 / np.abs(model.basis[:, 0]).max() * np.array([1.0, 0.3, 0.0, 0.0, 0.0])


def energies(model, q, method, step, steps):
    """Total energy after each step of an undamped swing from q."""
    nothing = np.zeros(model.size)
    integrator = Integrator(model, step, method, tolerance=1e-11)
    state = integrator.start(State(q, nothing, nothing), nothing)
    total = [model.energy(state.q)]
    for _ in range(steps):
        state = integrator.step(state, nothing)
        total.append(model.energy(state.q) + kinetic_energy(model, state))
    return np.array(total)


def test_newmark_keeps_the_energy_of_a_nonlinear_beam_in_a_band_that_shrinks_as_the_step_squared(swinging):
    model, q = swinging
    period = 2.0 * np.pi / np.sqrt(np.linalg.eigvalsh(model.force_and_stiffness(np.zeros(5))[1])[0])
    assert np.abs(model.force(q) - model.force_and_stiffness(np.zeros(5))[1] @ q).max() > 0.1 * model.force(q).max()
    bands = []
    for parts in (200, 400, 800):
        total = energies(model, q, "newmark", period / parts, 8 * parts)
        strayed = np.abs(total / total[0] - 1.0)
        quarter = len(strayed) // 4
        assert strayed[-quarter:].max() < 1.3 * strayed[:quarter].max()  # a band, no drift
        bands.append(strayed.max())
    assert bands[0] < 0.01
    assert ((slopes(bands) > 1.8) & (slopes(bands) < 2.2)).all(), slopes(bands)


def test_backward_euler_only_ever_loses_energy(swinging):
    model, q = swinging
    total = energies(model, q, "backward-euler", 0.02, 400)
    assert (np.diff(total) < 0.0).all()
    assert total[-1] < 0.5 * total[0]


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("damping", [Rayleigh(mass=1.5), Rayleigh(stiffness=0.004), Rayleigh(0.7, 0.003)])
def test_a_linear_mode_decays_at_its_damping_ratio(damping, mode):
    body = beam()
    modes = linear_modes(body, 4)
    omega, shape = np.sqrt(modes.eigenvalues[mode]), modes.shapes[:, mode]
    ratio = 0.5 * (damping.mass / omega + damping.stiffness * omega)
    assert damping.ratio(omega / (2.0 * np.pi)) == pytest.approx(ratio, rel=1e-12)
    integrator = Integrator(body, 2.0 * np.pi / omega / 200, damping=damping)
    state = integrator.start(State(1e-7 * shape, np.zeros(body.size), np.zeros(body.size)), np.zeros(body.size))

    def amplitude(state):
        x, v = shape @ (body.mass @ state.q), shape @ (body.mass @ state.v)
        return np.sqrt((1.0 - ratio**2) * (omega * x) ** 2 + (v + ratio * omega * x) ** 2)

    end, _ = integrator.run(state, 200, np.zeros(body.size))
    measured = np.log(amplitude(state) / amplitude(end)) / (omega * end.time)
    assert measured == pytest.approx(ratio, rel=2e-3)


def test_damping_from_two_ratios_hits_both():
    damping = Rayleigh.from_ratios((2.0, 0.02), (30.0, 0.07))
    assert damping.ratio(2.0) == pytest.approx(0.02, rel=1e-12)
    assert damping.ratio(30.0) == pytest.approx(0.07, rel=1e-12)
    assert damping.ratio(8.0) < 0.05


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rayleigh(mass=-1.0),
        lambda: Rayleigh(stiffness=-1e-9),
        lambda: Rayleigh(mass=np.nan),
        lambda: Rayleigh.from_ratios((5.0, 0.1), (5.0, 0.1)),
        lambda: Rayleigh.from_ratios((0.0, 0.1), (5.0, 0.1)),
        lambda: Rayleigh.from_ratios((1.0, 0.5), (10.0, 0.0)),
    ],
)
def test_unphysical_damping_raises(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize("mode", [0, 1, 5])
def test_a_small_swing_has_the_frequency_of_its_linear_mode(mode):
    body = beam("tets")
    modes = linear_modes(body, 6)
    omega, shape = np.sqrt(modes.eigenvalues[mode]), modes.shapes[:, mode]
    step, steps = 2.0 * np.pi / omega / 60, 150
    integrator = Integrator(body, step, tolerance=1e-11)
    state = integrator.start(State(1e-7 * shape, np.zeros(body.size), np.zeros(body.size)), np.zeros(body.size))
    phase = [0.0]
    for _ in range(steps):
        state = integrator.step(state, np.zeros(body.size))
        x, v = shape @ (body.mass @ state.q), shape @ (body.mass @ state.v)
        phase.append(np.arctan2(-v / omega, x))
    seen = np.unwrap(phase)[-1] / (steps * step)
    # Newmark turns a frequency ω into (2/h) atan(ωh/2): undo that.
    assert 2.0 / step * np.tan(0.5 * seen * step) == pytest.approx(omega, rel=1e-6)


@pytest.mark.parametrize("damping", [Rayleigh(), DAMPING], ids=["undamped", "damped"])
@pytest.mark.parametrize("method", ["newmark", "backward-euler", "central-differences"])
def test_a_reduced_body_with_all_modes_moves_as_the_full_one(method, damping):
    body = beam(lengths=(1.0, 0.3, 0.25), counts=(2, 1, 1))
    modes = linear_modes(body, body.size)
    model = reduce_body(body, modes.shapes)
    start, force = bent_start(body), swaying_force(body)
    to_modes = modes.shapes.T @ body.mass
    reduced_start = State(to_modes @ start.q, to_modes @ start.v, np.zeros(body.size))
    step = 1e-3 if method == "central-differences" else 1e-2
    full, reduced = (Integrator(b, step, method, damping=damping, tolerance=1e-12) for b in (body, model))
    _, wanted = full.run(full.start(start, force(0.0)), 40, force)
    begin = reduced.start(reduced_start, modes.shapes.T @ force(0.0))
    _, got = reduced.run(begin, 40, lambda time: modes.shapes.T @ force(time))
    assert relative(got @ modes.shapes.T, wanted) < 1e-8


def test_kinetic_energy_is_half_the_mass_times_velocity_squared():
    body = beam()
    uniform = body.restrict(np.ones_like(body.mesh.vertices) * [3.0, 0.0, 0.0])
    state = State(np.zeros(body.size), uniform, np.zeros(body.size))
    inner = body.scalar_mass[body.free][:, body.free].sum()
    assert kinetic_energy(body, state) == pytest.approx(4.5 * inner)


def test_start_balances_every_force():
    body = beam()
    integrator = Integrator(body, 0.01, damping=DAMPING)
    force = tip_load(body, (1.0, 2.0, 3.0))
    state = integrator.start(bent_start(body), force)
    internal, stiffness = body.force_and_stiffness(state.q)
    damped = DAMPING.mass * (body.mass @ state.v) + DAMPING.stiffness * (stiffness @ state.v)
    assert np.linalg.norm(body.mass @ state.a + damped + internal - force) < 1e-9 * np.linalg.norm(internal)


def test_rest_without_force_stays_at_rest():
    body = beam()
    state, trajectory = Integrator(body, 0.01).run(State.rest(body.size), 5, np.zeros(body.size))
    assert np.abs(trajectory).max() == 0.0
    assert state.time == pytest.approx(0.05)


@pytest.mark.parametrize("step", [0.0, -0.01, np.nan, np.inf])
@pytest.mark.parametrize("method", ["newmark", "backward-euler", "central-differences"])
def test_unusable_steps_raise(method, step):
    with pytest.raises(StepSizeError):
        Integrator(beam(), step, method)


def test_unknown_methods_and_no_iterations_raise():
    with pytest.raises(InputError, match="leapfrog"):
        Integrator(beam(), 0.01, "leapfrog")
    with pytest.raises(InputError, match="central-differences"):
        step_constants("central-differences", 0.01)
    with pytest.raises(InputError, match="iteration"):
        Integrator(beam(), 0.01, iterations=0)


def test_a_force_that_is_not_finite_raises_instead_of_spreading():
    body = beam()
    with pytest.raises(SolverError, match="diverged"):
        Integrator(body, 0.01).step(State.rest(body.size), np.full(body.size, np.nan))
