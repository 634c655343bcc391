"""The full simulation on a moving rest shape: covariance, order, gravity, and the reduced one beside it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import pose_models_for_tests as pose_models
from bodies_for_tests import relative, slopes
from moving_bars_for_tests import BAR, bar_model, carriers_of, rise, rotation, swing, turning
from softrig.dynamics import Rayleigh, State, static_equilibrium
from softrig.fidelity import trajectory_error
from softrig.models.moving import FullSimulation
from softrig.models.stepper import Stepper

# The simulation alone


def swung(rate: float, duration: float = 0.4, **options) -> np.ndarray:
    """(n, 3) displacements of the swinging bar at the end."""
    turn = options.pop("turn", None)
    settings = {"iterations": None, "damping": Rayleigh(1.0, 0.004), "sag_free": False, "solver": "superlu"}
    simulation = FullSimulation(bar_model(), 2e4, 0.4, rate=rate, **{**settings, **options})
    for i in range(1, round(duration * rate) + 1):
        simulation.step(*swing(i / rate, turn))
    return simulation.displacements()


def test_the_swing_is_covariant_under_a_constant_rotation_of_everything():
    turn = rotation((0.7, -1.1, 0.4))
    gravity = np.array([0.0, -9.81, 0.0])
    one = swung(60, gravity=gravity)
    other = swung(60, gravity=turn @ gravity, turn=turn)
    assert np.abs(one).max() > 0.005
    assert relative(other, one @ turn.T) < 1e-7


@pytest.mark.parametrize(("method", "order"), [("newmark", 2.0), ("backward-euler", 1.0)])
def test_order_of_the_step_on_a_smooth_motion(method, order):
    """Without gravity, so that the start is in balance but for the swing, whose load rises from rest."""
    quiet = {"gravity": (0, 0, 0), "duration": 0.2, "method": method}
    results = [started_swing(rate, **quiet) for rate in (80, 160, 320, 640)]
    differences = [float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(results)]
    assert slopes(differences)[-1] == pytest.approx(order, abs=0.25)


def started_swing(rate: float, duration: float, **options) -> np.ndarray:
    """As `swung`, with the acceleration of a start in balance: Newmark keeps its order only then."""
    simulation = FullSimulation(
        bar_model(), 2e4, 0.4, rate=rate, iterations=None, damping=Rayleigh(1.0, 0.004), solver="superlu", **options
    )
    simulation.start(*swing(0.0))
    for i in range(1, round(duration * rate) + 1):
        simulation.step(*swing(i / rate))
    return simulation.displacements()


def test_one_iteration_comes_close_to_the_converged_step():
    converged = swung(180)
    assert relative(swung(180, iterations=1), converged) < 0.01
    assert relative(swung(180, iterations=3), converged) < 1e-4


def test_sag_free_gravity_vanishes_at_rest_and_full_gravity_does_not():
    still = carriers_of([turning((0, 0, 1), (0.0, 0.0, 0.0))] * 2, (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))
    for sag_free in (True, False):
        simulation = FullSimulation(bar_model(), 2e4, 0.4, sag_free=sag_free, solver="superlu")
        for _ in range(5):
            simulation.step(*still)
        size = np.abs(simulation.displacements()).max()
        assert (size < 1e-12) if sag_free else (size > 1e-4)


@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_sag_free_gravity_of_a_turned_bar(interpolation):
    """Upside down, the change of gravity in the bar's frame is twice its weight: g − R g."""
    model = bar_model(interpolation=interpolation)
    over = turning((0, 0, 1), (np.pi, 0.0, 0.0))
    z = carriers_of([over, over], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))[0]
    simulation = FullSimulation(model, 2e4, 0.4, solver="superlu")
    simulation.settle(z)
    load = simulation.body.restrict(model.vertex_mass[:, None] * np.array([0.0, -2 * 9.81, 0.0]))
    wanted = static_equilibrium(simulation.body, load)
    assert relative(simulation.state.q, wanted) < 1e-9
    assert simulation.displacements()[:, 1].min() < -1e-3


def test_sag_free_frames_of_the_two_interpolations():
    """Bent by 90° in the middle: "bind" turns gravity by each vertex' own bones, "world" by the root's alone."""
    still, bend = turning((0, 0, 1), (0.0, 0, 0)), turning((0, 0, 1), (0.5 * np.pi, 0, 0), about=(0.25, 0.06, 0.05))
    z = carriers_of([still, bend], (np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)))
    tip = np.argmax(BAR.vertices[:, 0])
    for interpolation, wanted in (("bind", (-9.81, -9.81, 0.0)), ("world", (0.0, 0.0, 0.0))):
        simulation = FullSimulation(bar_model(interpolation=interpolation), 2e4, 0.4, solver="superlu")
        simulation.step(*z)
        load = simulation.body.expand(simulation._load(simulation.carriers.motion(*z)))
        mass = simulation.body.vertex_mass
        assert load[tip] / mass[tip] == pytest.approx(wanted, abs=1e-12)


def test_fixed_vertices_do_not_leave_the_rest_shape_and_loads_pull():
    simulation = FullSimulation(bar_model(), 2e4, 0.4, gravity=(0, 0, 0), solver="superlu")
    simulation.point_loads(np.array([-1 + len(BAR.vertices)]), np.array([[0.0, 0.0, -1.0]]))
    simulation.settle(swing(0.0)[0])
    u = simulation.displacements()
    assert np.abs(u[simulation.body.fixed]).max() == 0.0
    assert u[-1, 2] < -1e-4
    assert np.abs(simulation.positions() - simulation.body.positions - u).max() < 1e-15


def test_placing_elsewhere_takes_the_displacements_along():
    """A pull that turns with the body: the settled shape turned by R is the settled shape under the turned pull."""
    turn = rotation((0.4, 0.9, -0.2))
    simulation = FullSimulation(bar_model(), 2e4, 0.4, gravity=(0, 0, 0), solver="superlu")
    simulation.external[-1] = (0.0, 0.0, -1.0)
    simulation.settle(swing(0.0)[0])
    before = simulation.displacements()
    simulation.place(swing(0.0, rotation((-0.8, 0.3, 0.6)))[0])
    simulation.place(swing(0.0, turn)[0])
    assert relative(simulation.displacements(), before @ turn.T) < 1e-12
    simulation.external[-1] = turn @ (0.0, 0.0, -1.0)
    placed = simulation.displacements()
    simulation.settle(swing(0.0, turn)[0])
    assert relative(placed, simulation.displacements()) < 1e-7
    simulation.reset()
    assert not simulation.displacements().any()


def test_materials_of_poses_are_mixed_by_positive_weights():
    young = np.stack([np.full(len(BAR.elements), 2e4), np.full(len(BAR.elements), 6e4)])
    simulation = FullSimulation(bar_model(), young, 0.4, solver="superlu")
    z = swing(0.0)[0].copy()
    for w, wanted in (((0.75, 0.25), 3e4), ((-0.2, 1.2), 6e4), ((0.5, 0.0), 2e4)):
        z[-2:] = w
        simulation.place(z)
        assert simulation.body.mu == pytest.approx(np.full(len(BAR.elements), wanted / 2.8))


def test_black_box_and_skin_agree_where_they_carry_the_same_motion():
    model = bar_model()
    model.tet_rig.corrections[:] = 0.0
    box = SimpleNamespace(**vars(model))
    box.tet_rig = SimpleNamespace(
        kind="black-box", corrections=model.tet_rig.corrections, root_sample=np.arange(len(BAR.vertices))
    )
    options = {"sag_free": False, "solver": "superlu", "rate": 90}
    one, other = FullSimulation(model, 2e4, 0.4, **options), FullSimulation(box, 2e4, 0.4, **options)
    for i in range(1, 8):
        z = swing(i / 90)
        one.step(*z)
        motion = one.carriers.motion(*z)
        parts = zip((motion.positions, motion.velocities, motion.accelerations), z, strict=True)
        other.step(*(np.concatenate([field.ravel(), part[-2:]]) for field, part in parts))
    # Only the damping-free start of Newton differs (other frames), which one iteration leaves a trace of.
    assert relative(other.displacements(), one.displacements()) < 1e-3


def test_the_start_is_in_balance():
    """M ü + (αM + βB)(u̇ − ω × u) + f_int = f_ext − M ẍ, term by term, in the middle of a swing."""
    damping = Rayleigh(2.0, 0.01)
    simulation = FullSimulation(bar_model(), 2e4, 0.4, damping=damping, solver="superlu")
    body, rng, z = simulation.body, np.random.default_rng(0), swing(0.35)
    q, v = 0.003 * rng.standard_normal(body.size), 0.1 * rng.standard_normal(body.size)
    simulation.state = State(q, v, np.zeros(body.size))
    simulation.start(*z)
    motion = simulation.carriers.motion(*z)
    slip = v - body.restrict(np.cross(motion.spin, body.expand(q)))
    internal, viscosity = body.force(q), body.viscosity(q)
    inertia = body.restrict(body.vertex_mass[:, None] * (motion.accelerations + body.expand(simulation.state.a)))
    pull = np.array([0.0, -9.81, 0.0])
    weight = body.restrict(body.vertex_mass[:, None] * (pull - motion.turned @ pull))
    balance = inertia + (2.0 * body.mass + 0.01 * viscosity) @ slip + internal - weight
    assert np.abs(slip - v).max() > 0.005
    assert np.linalg.norm(balance) < 1e-10 * np.linalg.norm(internal)


# Beside the reduced model


@pytest.mark.parametrize("options", [{}, {"interpolation": "world"}, {"black_box": True}], ids=["bind", "world", "box"])
def test_carriers_of_a_pose_give_the_models_rest_shape_and_rotations(options):
    model = pose_models.bar_model(3, **options)
    simulation = FullSimulation(model, model.cubature.young, model.cubature.poisson, solver="superlu")
    turn = {"angle": 0.7} if "black_box" in options else {"turn": (0.4, -0.5, 0.6)}
    p = pose_models.pose(model.rig, root_turn=(0.3, -1.2, 0.5), root_move=(0.1, 0.4, -0.2), **turn)
    simulation.place(simulation.carriers_at(p))
    assert np.abs(simulation.body.positions - model.tet_rest(p)).max() < 1e-12
    if "interpolation" not in options:
        assert np.abs(simulation.frames - model.vertex_rotations(p)).max() < 1e-12


@pytest.mark.parametrize("sag_free", [True, False])
@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_at_the_poses_the_load_is_the_one_the_reduced_model_projects(interpolation, sag_free):
    """−V_iᵀ R_vᵀ (f_ext − M ẍ) = C_i a with a = R_fᵀ(M̈_b − [0 0 0 g]), or g − R_b g, for any M̈."""
    model = pose_models.bar_model(2, interpolation)
    p, gravity = model.poses.parameters[1], np.array([1.0, -9.81, 2.0])
    simulation = FullSimulation(model, 2e4, 0.4, gravity=gravity, sag_free=sag_free, solver="superlu")
    z = simulation.carriers_at(p)
    second = np.random.default_rng(0).standard_normal(len(z))
    second[-2:] = 0.0
    load = simulation.body.expand(simulation._load(simulation.carriers.motion(z, 0.0 * z, second)))
    local = np.einsum("nji,nj->ni", model.vertex_rotations(p), load)
    wanted = -np.einsum("nir,ni->r", model.shapes[1], local)
    rotations = np.broadcast_to(model.frame_rotations(p), (2, 3, 3))
    accelerations = second[:24].reshape(2, 3, 4).copy()
    accelerations[:, :, 3] -= gravity - (rotations @ gravity if sag_free else 0.0)
    vector = np.concatenate([np.einsum("bji,bjk->bik", rotations, accelerations).ravel(), np.zeros(2)])
    assert relative(model.inertia[1] @ vector, wanted) < 1e-7  # kept in single precision


@pytest.mark.parametrize("felt", [1.0, 0.1])
def test_the_reduced_step_with_a_complete_basis_converges_to_this_one(felt):
    """Two implementations of one equation: they differ by the reduced step's explicit gyroscopic terms, O(step)."""
    model = pose_models.bar_model(1, modes=192, corrections=0.0, law="stable-neo-hookean")
    assert model.mode_count == 3 * (~model.fixed).sum()
    errors = []
    for rate in (60, 120):
        options = {"rate": rate, "damping": Rayleigh(1.0, 0.002), "inertia_scale": felt}
        reduced = Stepper(model, **options)
        full = FullSimulation(model, model.cubature.young, model.cubature.poisson, solver="superlu", **options)
        trajectories = []
        for i in range(1, 4 * rate // 10 + 1):
            bone = turning((0.1, 0.3, 1.0), rise(1.2, 6.0, i / rate))
            z = carriers_of([bone, bone], (np.ones(1), np.zeros(1), np.zeros(1)))
            reduced.step(*z)
            full.step(*z)
            trajectories.append((reduced.vertex_displacements(None).copy(), full.displacements()))
        errors.append(
            trajectory_error(*(np.array(part) for part in zip(*trajectories, strict=True)), full.body.vertex_mass)
        )
    assert errors[1] < 0.01
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize("interpolation", ["bind", "world"])
def test_sag_free_gravity_turns_with_the_same_frames_reduced_and_full(interpolation: str) -> None:
    model = pose_models.bar_model(interpolation=interpolation, modes=24)
    stepper = Stepper(model)
    full = FullSimulation(model, 1e5, 0.4)
    bent = model.poses.parameters[1]
    stepper.settle(stepper.carriers(bent))
    full.settle(full.carriers_at(bent))
    reduced, truth = (np.abs(u).max() for u in (stepper.vertex_displacements(None), full.displacements()))
    if interpolation == "world":  # the root has not turned: nothing sags
        assert reduced < 1e-9
        assert truth < 1e-9
    else:
        assert reduced > 1e-5
        assert truth > 1e-5
