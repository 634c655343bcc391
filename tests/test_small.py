"""The compiled full step of small bodies: it moves as `FullSimulation`; its kernels by themselves, and its failures."""

from __future__ import annotations

import numpy as np
import pytest

import pose_models_for_tests as pose_models
from bodies_for_tests import relative
from moving_bars_for_tests import BAR, bar_model, rotation, swing
from softrig.characters import built_in
from softrig.dynamics import Rayleigh, State
from softrig.errors import InputError, SolverError
from softrig.fem import laws
from softrig.fem.laws import LAWS
from softrig.models import small
from softrig.models.kernels.envelope import envelope_cholesky, envelope_solve, envelope_starts
from softrig.models.kernels.pose_space_elements import LANES
from softrig.models.kernels.small_lanes import viscosity_lanes
from softrig.models.kernels.small_tables import A, Q, V
from softrig.models.moving import FullSimulation
from softrig.models.small import SmallSimulation
from softrig.pipeline.coarse import coarse_body
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.unreduced import full_simulation
from softrig.project import Project

DAMPED = Rayleigh(1.0, 0.004)
STILL = {"gravity": (0.0, 0.0, 0.0)}


def parted(full: FullSimulation, other: SmallSimulation, moments) -> float:
    """How far the two are apart in u, u̇ and ü at most, over the most that any moment has."""
    most, apart = np.zeros(3), np.zeros(3)
    for z, speed, push in moments:
        full.step(z, speed, push)
        other.step(z, speed, push)
        for k, name in enumerate("qva"):
            wanted, found = getattr(full.state, name), getattr(other.state, name)
            most[k], apart[k] = max(most[k], np.abs(wanted).max()), max(apart[k], np.abs(found - wanted).max())
    assert most[0] > 1e-4
    return float((apart / most).max())


def both(model, young=2e4, poisson=0.4, **options) -> tuple[FullSimulation, SmallSimulation]:
    settings = {"damping": DAMPED, "rate": 120.0, **options}
    return (
        FullSimulation(model, young, poisson, iterations=1, solver="superlu", **settings),
        SmallSimulation(model, young, poisson, **settings),
    )


def swings(rate: float = 120.0, count: int = 40):
    return (swing(i / rate) for i in range(1, count + 1))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("options", [STILL, {"sag_free": True}, {"sag_free": False}], ids=["none", "change", "all"])
def test_it_moves_as_the_full_simulation(law, options) -> None:
    model = bar_model()
    model.law = law
    assert parted(*both(model, **options), swings()) < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"method": "backward-euler"},
        {"damping": Rayleigh()},
        {"damping": Rayleigh(3.0, 0.0)},
        {"damping": Rayleigh(0.0, 0.02)},
        {"inertia_scale": 0.3},
    ],
    ids=str,
)
def test_it_takes_the_same_settings(options) -> None:
    assert parted(*both(bar_model(interpolation="world"), **options), swings()) < 1e-9


def test_materials_are_mixed_by_the_pose() -> None:
    rng = np.random.default_rng(0)
    young, poisson = rng.uniform(1e4, 4e4, (2, len(BAR.elements))), rng.uniform(0.2, 0.45, len(BAR.elements))
    assert parted(*both(bar_model(), young, poisson), swings()) < 1e-9


def test_rigs_without_bones_carry_it_as_well() -> None:
    model = pose_models.bar_model(black_box=True)
    full, other = both(model, 3e4, 0.4, rate=180.0)
    poses = model.clips[0].resample(60.0)[1] if model.clips else pose_models.waving_clip(model.rig).resample(60.0)[1]
    assert parted(full, other, carrier_steps(other.carriers_at, poses[:20], 60.0, 180.0)) < 1e-9


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin arm
@pytest.mark.parametrize("options", [STILL, {}], ids=["weightless", "heavy"])
def test_a_coarse_arm_waves_the_same_way(options) -> None:
    character = built_in("arm")
    body = coarse_body(character, Project().changed(poses={"count": 2}, material={"preset": "fat"}), 300)
    _, poses = character.clips[0].resample(60.0)
    settings = {"damping": DAMPED, "rate": 180.0, **options}
    full, other = both(body.model, body.fabric.young, body.fabric.poisson, **settings)
    start = full.carriers_at(poses[0])
    full.place(start)
    other.place(start)
    moments = carrier_steps(full.carriers_at, poses[:25], 60.0, 180.0)
    assert parted(full, other, moments) < 1e-8
    assert relative(other.displacements(), full.displacements()) < 1e-8
    assert relative(other.positions(), full.positions()) < 1e-12


def test_where_the_matrix_is_indefinite_hessians_are_made_semidefinite() -> None:
    """Half folded together, StVK pulls apart what it should push: both take the same way out."""
    model = bar_model()
    model.law = "stvk"
    full, other = both(model, 2e6, 0.4, damping=Rayleigh(), **STILL)
    q = full.body.restrict(-0.6 * (BAR.vertices - BAR.vertices.mean(axis=0)))
    full.state = State(q, np.zeros_like(q), np.zeros_like(q))
    other._memory.state[Q] = full.displacements()[other._order]
    assert parted(full, other, [swing(0.01)]) < 1e-7
    assert other.projected == 1


def test_displacements_go_along_to_another_place() -> None:
    full, other = both(bar_model())
    for moment in swings(count=10):
        full.step(*moment)
        other.step(*moment)
    turn = rotation((0.4, 0.9, -0.2))
    elsewhere = swing(0.3, turn)
    full.place(elsewhere[0])
    other.place(elsewhere[0])
    assert relative(other.state.v, full.state.v) < 1e-9
    assert relative(other.positions(), full.positions()) < 1e-9
    assert parted(full, other, [elsewhere]) < 1e-9
    assert other.state.time == pytest.approx(11 / 120)
    other.reset()
    assert not other.displacements().any()


def test_a_step_without_a_solution_says_so_and_changes_nothing() -> None:
    simulation = SmallSimulation(bar_model(), 2e4, 0.4)
    simulation.step(*swing(0.01))
    before, places = simulation.state, simulation.positions()
    z, speed, push = swing(0.02)
    for wrong in (np.nan, np.inf):
        with pytest.raises(SolverError, match=r"the step at 0\.00555556 s .*: try a smaller step"):
            simulation.step(z, speed, np.where(np.arange(len(push)) == 3, wrong, push))
        with pytest.raises(SolverError):
            simulation.step(np.where(np.arange(len(z)) == 3, wrong, z), speed, push)
    for row in "qva":
        assert np.array_equal(getattr(simulation.state, row), getattr(before, row))
    np.testing.assert_allclose(simulation.positions(), places, atol=1e-12)
    simulation.step(z, speed, push)
    assert np.isfinite(simulation.displacements()).all()


def test_bad_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="have shape"):
        SmallSimulation(bar_model(), 2e4, 0.4).step(*(part[1:] for part in swing(0.0)))
    with pytest.raises(InputError, match="nothing can move"):
        SmallSimulation(bar_model(fixed=np.ones(len(BAR.vertices), bool)), 2e4, 0.4)
    with monkeypatch.context() as changed:
        changed.setattr(small, "TOO_MANY", 30)
        with pytest.raises(InputError, match=r"in one envelope, at most 30: use FullSimulation"):
            SmallSimulation(bar_model(), 2e4, 0.4)
    light = bar_model()
    light.vertex_mass[np.flatnonzero(~light.fixed)[0]] = 0.0
    with pytest.raises(InputError, match="positive mass"):
        SmallSimulation(light, 2e4, 0.4)


def test_small_bodies_with_one_iteration_take_the_compiled_step(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cloth:
        young, poisson = 2e4, 0.4

    def kind(iterations):
        return type(full_simulation(bar_model(), Cloth, rate=90.0, damping=DAMPED, iterations=iterations))

    assert (kind(1), kind(3), kind(None)) == (SmallSimulation, FullSimulation, FullSimulation)
    monkeypatch.setattr(small, "MOST_UNKNOWNS", 12)
    assert kind(1) is FullSimulation


def test_the_viscosity_of_lanes_is_that_of_the_laws() -> None:
    rng = np.random.default_rng(3)
    moves, B = 0.4 * rng.standard_normal((9, LANES)), rng.standard_normal((9, LANES))
    lam, mu, factors = rng.uniform(0.5, 2.0, (3, LANES))
    found = np.zeros((45, LANES))
    viscosity_lanes(LANES, moves.ravel(), B.ravel(), lam, mu, factors, 0.7, found.ravel())
    H = np.zeros((9, 9))
    for t in range(LANES):
        gradients, edges = B[:, t].reshape(3, 3), moves[:, t].reshape(3, 3).T
        laws.viscosity(np.eye(3) + edges @ gradients, lam[t], mu[t], H)
        by_edges = np.einsum("aK,iKjL,bL->aibj", gradients, H.reshape(3, 3, 3, 3), gradients).reshape(9, 9)
        assert found[:, t] == pytest.approx(0.7 * factors[t] * by_edges[np.tril_indices(9)], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_the_envelope_holds_its_factor_and_solves(count) -> None:
    rng = np.random.default_rng(count)
    firsts = np.array([rng.integers(max(0, v - 6), v + 1) for v in range(count)])
    starts, dense = envelope_starts(firsts), np.zeros((3 * count, 3 * count))
    for v in range(count):
        dense[3 * v : 3 * v + 3, 3 * firsts[v] : 3 * v + 3] = rng.standard_normal((3, 3 * (v - firsts[v] + 1)))
    dense = np.tril(dense) + np.tril(dense, -1).T + 30.0 * np.eye(3 * count)

    def stored(matrix):
        rows = [matrix[3 * v : 3 * v + 3, 3 * firsts[v] : 3 * v + 3].ravel() for v in range(count)]
        return np.concatenate(rows)

    values, right = stored(dense), rng.standard_normal(3 * count)
    assert len(values) == starts[-1]
    assert envelope_cholesky(firsts, starts, values)
    answer = right.copy()
    envelope_solve(firsts, starts, values, answer)
    assert relative(dense @ answer, right) < 1e-12
    for place in range(3 * count):
        for wrong in (-30.0, np.nan):
            spoiled = dense.copy()
            spoiled[place, place] = wrong
            assert not envelope_cholesky(firsts, starts, stored(spoiled))


def test_all_rows_of_the_state_are_there() -> None:
    """A body without motion keeps still: nothing but rounding comes of a solve without a load."""
    simulation = SmallSimulation(bar_model(), 2e4, 0.4, **STILL)
    z = swing(0.0)[0]
    simulation.step(z, np.zeros_like(z), np.zeros_like(z))
    assert max(np.abs(simulation._memory.state[row]).max() for row in (Q, V, A)) < 1e-12
