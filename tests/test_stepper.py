"""The compiled pose-space step against the same formulas in plain NumPy, and against what they must give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh

from pose_models_for_tests import bar_model, inertia_mapped, mapped, pose, with_more_mass
from reference_step_for_tests import Pose, Settings, clamped_tet, elasticity, external_force, reference_step
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, ModeCountError
from softrig.models.kernels import pose_space_tables as tables
from softrig.models.kernels.pose_space_chunks import owners
from softrig.models.kernels.pose_space_layout import region_runs
from softrig.models.stepper import LEAST_STRAINED, MOST_STRAINED, STALE, STRAINED, Stepper, enough_iterations
from steppers_for_tests import KINDS, difference, lively, moment, put


@pytest.mark.parametrize(
    ("kind", "law", "method", "iterations"),
    [
        ("bind", "stvk", "newmark", 1),
        ("bind", "stvk", "backward-euler", 2),
        ("regions", "stable-neo-hookean", "newmark", 2),
        ("regions", "stvk", "newmark", 1),
        ("world", "neo-hookean", "newmark", 1),
        ("world", "stable-neo-hookean", "backward-euler", 1),
        ("one basis", "corotational", "newmark", 3),
        ("black box", "stvk", "newmark", 1),
        ("black box", "neo-hookean", "backward-euler", 2),
        ("five poses", "stable-neo-hookean", "newmark", 1),
        ("bind, mapped", "stvk", "newmark", 1),
        ("regions, mapped", "stable-neo-hookean", "newmark", 2),
        ("one basis, mapped", "corotational", "backward-euler", 1),
        ("black box, mapped", "neo-hookean", "newmark", 1),
        ("regions, inertia mapped", "stvk", "newmark", 1),
        ("one basis, inertia mapped", "stable-neo-hookean", "backward-euler", 1),
        ("regions, both mapped", "stvk", "newmark", 1),
        ("one basis of regions, flexible", "stable-neo-hookean", "newmark", 2),
        ("one basis, flexible", "stvk", "backward-euler", 1),
        ("one basis, beside tets", "stable-neo-hookean", "newmark", 1),
        ("one basis of regions, beside tets", "stvk", "newmark", 2),
    ],
)
def test_compiled_step_equals_plain_numpy(kind, law, method, iterations):
    kind, _, maps = kind.partition(", ")
    model = lively(bar_model(law=law, **KINDS[kind]))
    if maps in ("mapped", "both mapped", "flexible", "beside tets"):
        model = mapped(model, flexible=maps == "flexible", beside_tets=maps == "beside tets")
    model = inertia_mapped(model) if maps in ("inertia mapped", "both mapped") else model
    model = with_more_mass(model) if maps == "flexible" else model
    wind, loaded = np.array([30.0, -20.0, 50.0]), np.array([5, 40, 40, 70])
    forces = np.random.default_rng(3).normal(size=(4, 3))
    sag_free = method == "newmark"
    stepper = Stepper(
        model,
        method=method,
        iterations=iterations,
        damping=Rayleigh(0.3, 0.002),
        inertia_scale=0.8,
        gravity=(0.5, -9.0, 1.0),
        sag_free=sag_free,
    )
    stepper.wind = wind
    stepper.point_loads(loaded, forces)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    settings = Settings(
        method=method,
        iterations=iterations,
        alpha=0.3,
        beta=0.002,
        inertia=0.8,
        gravity=np.array([0.5, -9.0, 1.0]),
        sag_free=sag_free,
        wind=wind,
        vertices=loaded,
        forces=forces,
    )
    there = Pose(model, z)
    expected = reference_step(model, state, z, zd, zdd, settings)
    assert any(clamped_tet(model, there, tet)[2] for tet in model.cubature.tets)
    assert stepper.counters == {"steps": 1, "projected": 0, "halved": 0, "decayed": 0}
    assert difference((stepper.q, stepper.v, stepper.a), expected) < 1e-9
    moves = there.U @ (there.scales * stepper.q)
    np.testing.assert_allclose(stepper.vertex_displacements(), moves, atol=1e-14)
    np.testing.assert_allclose(stepper.tet_positions(np.array([3, 50])), (there.x + moves)[[3, 50]], atol=1e-13)


@pytest.mark.parametrize("method", ["newmark", "backward-euler"])
@pytest.mark.parametrize("kind", ["regions", "one basis, mapped"])
def test_later_steps_start_where_free_modes_would_be(kind, method):
    model = lively(bar_model(law="stvk", **KINDS[kind.removesuffix(", mapped")]))
    model = mapped(model) if kind.endswith("mapped") else model
    stepper = Stepper(model, method=method, damping=Rayleigh(0.3, 0.002), turns=1, iterations=1)
    settings = Settings(method=method, alpha=0.3, beta=0.002)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, 0.3 * state)
    stepper.step(z, zd, zdd)
    before = stepper.snapshot()
    stepper.step(z, zd, zdd)
    expected = reference_step(model, before[:3], z, zd, zdd, settings, before.diagonal)
    assert difference((stepper.q, stepper.v, stepper.a), expected) < 1e-9
    unpredicted = reference_step(model, before[:3], z, zd, zdd, settings)
    many = Settings(method=method, alpha=0.3, beta=0.002, iterations=8)
    converged = reference_step(model, before[:3], z, zd, zdd, many)
    assert difference(expected[:1], converged[:1]) < 0.7 * difference(unpredicted[:1], converged[:1])


def test_a_linear_mode_is_predicted_exactly():
    """Without forces, with one mode: Newton has nothing left to do."""
    model = lively(bar_model(poses=3, modes=1, basis_poses=1), correction=0.0)
    none = np.zeros_like(model.cubature.weights)
    # Of a mode of mass one; numbers of 16 bits are one to a hundred-thousandth.
    stiff = np.full((3, 1, 1), 400.0 * model.mass_products[0, 0, 0, 0])
    model = replace(model, cubature=replace(model.cubature, weights=none, stiffness_correction=stiff))
    stepper = Stepper(model, gravity=(0.0, 0.0, 0.0))
    z = stepper.carriers(model.rig.parameters.rest)
    stepper.place(z)
    stepper.q[:] = 0.01
    stepper.a[:] = -0.01 * 400.0
    still = np.zeros_like(z)
    stepper.step(z, still, still)
    kept = stepper.snapshot()
    h = 1.0 / stepper.rate
    foreseen = kept.q + (h * kept.v + 0.5 * h * h * kept.a) / (1.0 + 0.25 * h * h * 400.0)
    stepper.step(z, still, still)
    np.testing.assert_allclose(stepper.q, foreseen, rtol=1e-10)


@pytest.mark.parametrize("kind", ["regions", "one basis"])
def test_a_tangent_made_by_turns_changes_the_motion_little(kind):
    model = mapped(lively(bar_model(law="stable-neo-hookean", **KINDS[kind])))
    runs = []
    for turns in (1, 4):
        stepper = Stepper(model, damping=Rayleigh(0.3, 0.002), turns=turns)
        z, zd, zdd, state = moment(model, stepper)
        put(stepper, 0.3 * state)
        shown = []
        for k in range(60):
            stepper.step(z, 0.0 * zd, np.sin(0.2 * k) * zdd)
            shown.append(stepper.q.copy())
        assert stepper.counters == {"steps": 60, "projected": 0, "halved": 0, "decayed": 0}
        runs.append(np.array(shown))
    assert not np.array_equal(*runs)
    assert np.linalg.norm(runs[1] - runs[0]) < 0.01 * np.linalg.norm(runs[0])


def _shaken(model, size, **settings):
    """(40, r) coordinates of a model that is driven to and fro, and what its stepper counted."""
    stepper = Stepper(model, damping=Rayleigh(0.3, 0.002), **settings)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, 0.3 * state)
    shown = []
    for k in range(40):
        stepper.step(z, 0.0 * zd, size * np.sin(0.2 * k) * zdd)
        shown.append(stepper.q.copy())
    return np.array(shown), stepper.counters


@pytest.mark.parametrize("size", [1.0, 300.0])
@pytest.mark.parametrize("beside_tets", [False, True])
def test_where_most_of_the_remainder_counts_a_step_is_solved_twice(beside_tets, size):
    """The second time by the tangents that are there, or, where flesh is flung about, by new ones."""
    model = lively(bar_model(law="stable-neo-hookean", **KINDS["one basis"]), correction=0.0)
    model = mapped(model, beside_tets=beside_tets)
    assert enough_iterations(model) == 2
    assert enough_iterations(replace(model, cubature=model.cubature.softened(0.4))) == 1
    assert enough_iterations(bar_model(**KINDS["bind"])) == 1, "a basis at each pose"
    truth, _ = _shaken(model, size, iterations=12)
    once, _ = _shaken(model, size, iterations=1)
    ours, counted = _shaken(model, size)
    assert counted == {"steps": 40, "projected": 0, "halved": 0, "decayed": 0}
    off = np.linalg.norm(ours - truth) / np.linalg.norm(truth)
    assert off < 0.01
    assert off < 0.3 * np.linalg.norm(once - truth) / np.linalg.norm(truth)


def test_tangents_that_do_not_serve_are_made_anew():
    """Flesh that was stretched far while its tets were never found strained: a second iteration alone is not enough."""
    model = lively(bar_model(law="stable-neo-hookean", **KINDS["one basis"]), correction=0.0)
    model = mapped(model, beside_tets=True)
    runs = []
    for iterations in (12, None):
        stepper = Stepper(model, damping=Rayleigh(0.3, 0.002), iterations=iterations)
        z, zd, zdd, state = moment(model, stepper)
        stepper.step(z, 0.0 * zd, 0.0 * zdd)  # makes the tangents of flesh at rest
        stepper._memory.settings[tables.STRAINED] = np.inf
        put(stepper, np.array([[8.0], [1.0], [1.0]]) * state)
        stepper.step(z, 0.0 * zd, zdd)
        assert stepper.counters == {"steps": 2, "projected": 0, "halved": 0, "decayed": 0}
        runs.append(stepper.q.copy())
    assert np.linalg.norm(runs[1] - runs[0]) < 1e-6 * np.linalg.norm(runs[0])


def test_tangents_serve_while_the_pose_moves():
    model = lively(bar_model(law="stable-neo-hookean", **KINDS["one basis"]), correction=0.0)
    model = mapped(model, beside_tets=True)
    runs = []
    for iterations in (12, 1, None):
        stepper = Stepper(model, damping=Rayleigh(0.3, 0.002), iterations=iterations)
        one, other = (stepper.carriers(p) for p in model.poses.parameters[:2])
        stepper.place(one)
        shown = []
        for k in range(120):
            t, rate = k / stepper.rate, 10.0
            share = 0.5 - 0.5 * np.cos(rate * t)
            speeds = 0.5 * rate * np.sin(rate * t), 0.5 * rate**2 * np.cos(rate * t)
            stepper.step(one + share * (other - one), *(speed * (other - one) for speed in speeds))
            shown.append(stepper.q.copy())
        runs.append(np.array(shown))
    truth, once, ours = runs
    assert np.linalg.norm(ours - truth) < 1e-3 * np.linalg.norm(truth)
    assert np.linalg.norm(ours - truth) < 0.5 * np.linalg.norm(once - truth)


def test_a_flexibility_is_inverted_anew_when_the_pose_has_moved():
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    known = model.cubature.stiffness_map
    stepper = Stepper(model)
    z, *_ = moment(model, stepper)
    still, weights = np.zeros_like(z), slice(-len(known.components), None)
    stepper.step(z, still, still)
    first = stepper.snapshot()
    np.testing.assert_array_equal(first.inverted_at, z[weights])
    # Weights of what was learned, by which the whole stiffness changes by so much of itself.
    change = np.zeros_like(z)
    change[-1] = STALE / known.sizes[-1]
    for factor, renewed in ((0.9, False), (1.1, True)):
        stepper.restore(first)
        stepper.step(z + factor * change, still, still)
        there = z + factor * change if renewed else z
        np.testing.assert_array_equal(stepper.snapshot().inverted_at, there[weights])
        assert np.array_equal(stepper.snapshot().inverse, first.inverse) != renewed


def test_a_restored_flexible_stepper_goes_on_to_the_last_bit():
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, 0.3 * state)
    drift = np.zeros_like(z)
    drift[-1] = 0.4 * STALE / model.cubature.stiffness_map.sizes[-1]

    def go_on(begin, end):
        for k in range(begin, end):
            stepper.step(z + k * drift, zd, zdd)
        return stepper.q.copy()

    # A new inverse is due at 0, 3, 6 …: the old one still counts where it goes on.
    go_on(0, 2)
    kept = stepper.snapshot()
    once = go_on(2, 5)
    stepper.restore(kept)
    np.testing.assert_array_equal(go_on(2, 5), once)


def _verge_of(first, change):
    """The factor x up to which first + x change is positive definite."""
    return -1.0 / eigh(change, first, eigvals_only=True)[0]


def test_of_a_flexibility_beyond_all_samples_less_counts_until_it_is_definite():
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    known = model.cubature.stiffness_map
    stepper = Stepper(model)
    z, *_ = moment(model, stepper)
    verge = _verge_of(known.components[0], known.components[-1])
    for wild in (0.0, 0.999 * verge, 3.0 * verge, 1e9):
        weights = z[-len(known.components) :].copy()
        weights[[0, 2, 3]] = 1.0, 0.0, wild
        change = np.tensordot(weights[2:], known.components[2:], axes=1)
        first = weights[0] * known.components[0]
        assert (np.linalg.eigvalsh(first + change)[0] > 0.0) == (wild < verge)
        stiffness = known.stiffness(weights) - weights[1] * known.components[1]
        assert np.linalg.eigvalsh(stiffness)[0] > 0.0
        assert (stiffness.diagonal() <= known.firmest).all()
        stepper.step(np.r_[z[: -len(weights)], weights], np.zeros_like(z), np.zeros_like(z))
        inverse = np.zeros_like(stiffness)
        for i, j, length, at in stepper._sums.segments:
            inverse[i, j : j + length] = stepper.snapshot().inverse[at : at + length]
        np.testing.assert_allclose(inverse, np.tril(stiffness), rtol=1e-9, atol=1e-9 * np.abs(stiffness).max())
    np.testing.assert_allclose(stiffness, np.linalg.inv(first), rtol=1e-9)


def test_a_flexible_stiffness_is_scaled_like_any_other():
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    model = replace(model, cubature=replace(model.cubature, weights=np.zeros_like(model.cubature.weights)))
    stepper = Stepper(model)
    z, *_ = moment(model, stepper)
    stepper.step(z, np.zeros_like(z), np.zeros_like(z))
    before = stepper.snapshot()
    stepper.stiffness_scale = scales = np.arange(1.0, 1.0 + len(model.region_names))
    stepper.step(z, np.zeros_like(z), np.zeros_like(z))
    sides = np.sqrt(scales)[model.region_of_mode]
    expected = model.cubature.stiffness_map.stiffness(z[-4:]) * sides[:, None] * sides
    np.testing.assert_allclose(np.tril(stepper._memory.stiffness), np.tril(expected), rtol=1e-6, atol=1e-6)
    # Nor does a state of before bring the old stiffness back.
    stepper.restore(before)
    stepper.step(z, np.zeros_like(z), np.zeros_like(z))
    np.testing.assert_allclose(np.tril(stepper._memory.stiffness), np.tril(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("begin", ["restart", "settle"])
def test_a_flexible_stepper_that_begins_anew_knows_nothing_of_before(begin):
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    z, *_ = moment(model, Stepper(model))
    near = z.copy()
    near[-1] += 0.8 * STALE / model.cubature.stiffness_map.sizes[-1]
    found = []
    for earlier in ((), (near,)):
        stepper = Stepper(model)
        for pose_before in earlier:
            stepper.step(pose_before, np.zeros_like(z), np.zeros_like(z))
        getattr(stepper, begin)(z)
        stepper.step(z, np.zeros_like(z), np.zeros_like(z))
        found.append(stepper.q.copy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_steps_of_several_iterations_invert_at_every_pose():
    model = mapped(lively(bar_model(law="stvk", **KINDS["one basis of regions"])), flexible=True)
    stepper = Stepper(model, iterations=3)
    z, *_ = moment(model, stepper)
    for change in (0.0, 1e-9):
        near = z.copy()
        near[-1] += change
        stepper.step(near, np.zeros_like(z), np.zeros_like(z))
        assert stepper.snapshot().inverted_at[-1] == near[-1]


@pytest.mark.parametrize(("share", "limit"), [(1.0, LEAST_STRAINED), (0.2, 5.0 * STRAINED), (0.05, MOST_STRAINED)])
def test_what_strains_has_its_tangent_made_anew(share, limit):
    """By more, the less of what they add to the stiffness counts."""
    model = mapped(lively(bar_model(law="stvk", **KINDS["regions"])))
    model = replace(model, cubature=model.cubature.softened(share))
    stepper = Stepper(model, damping=Rayleigh(0.3, 0.002))
    z, *_ = moment(model, stepper)
    still = np.zeros_like(z)
    for _ in range(3):
        stepper.step(z, still, still)
    quiet = stepper.snapshot()
    stepper.step(z, still, still)
    kept = (stepper.snapshot().then == quiet.then).all(axis=1)
    assert kept.any()
    for strain, renewed in ((0.8, False), (1.2, True)):
        stepper.restore(quiet._replace(strained=np.full_like(quiet.strained, (strain * limit) ** 2)))
        stepper.q[:] += 1e-4
        stepper.step(z, still, still)
        changed = (stepper.snapshot().then != quiet.then).any(axis=1)
        assert changed[kept].all() == renewed


def test_fast_turns_are_cut_off():
    """Beyond 0.3 rad a step; without the inertial force, which such a motion would make far too large."""
    model = lively(bar_model(poses=3))
    model = replace(model, inertia=np.zeros_like(model.inertia))
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper, size=300.0)
    zdd *= 100.0
    put(stepper, state)
    stepper.step(z, zd, zdd)
    speeds, turns = np.linalg.norm(Pose(model, z).rates(zd, zdd), axis=2)
    assert speeds.min() > 0.3 * 180.0
    assert turns.min() > 0.09 * 180.0**2
    assert difference((stepper.q, stepper.v, stepper.a), reference_step(model, state, z, zd, zdd, Settings())) < 1e-9


@pytest.mark.parametrize("change", [("inertia_scale", 0.0), ("gravity", (0, 0, 0)), ("sag_free", False), ("wind", 9.0)])
def test_each_load_matters(change):
    model = bar_model(poses=3)
    stepper, changed = Stepper(model), Stepper(model)
    setattr(changed, change[0], np.full(3, 9.0) if change[0] == "wind" else change[1])
    z, zd, zdd, state = moment(model, stepper)
    for each in (stepper, changed):
        put(each, state)
        each.step(z, zd, zdd)
    assert np.abs(stepper.q - changed.q).max() > 1e-6


def test_a_turned_character_keeps_its_modes():
    """Without gravity a rotation of everything changes nothing in the modes."""
    model = bar_model(poses=3)
    trajectories = []
    for root in ((0.0, 0.0, 0.0), (0.7, -1.9, 0.4)):
        stepper = Stepper(model, gravity=(0, 0, 0))
        z = stepper.carriers(pose(model.rig, (0.0, 0.0, 0.8), root_turn=root, root_move=root))
        stepper.place(z)
        stepper.q[:] = 0.01
        for _ in range(20):
            stepper.step(z, 0.0 * z, 0.0 * z)
        trajectories.append(stepper.q.copy())
    np.testing.assert_allclose(trajectories[1], trajectories[0], atol=1e-12)
    assert np.abs(trajectories[0] - 0.01).max() > 1e-3


@pytest.mark.parametrize("kind", ["regions", "world", "black box"])
def test_settled_modes_are_in_equilibrium(kind):
    model = lively(bar_model(law="stable-neo-hookean", **KINDS[kind]), correction=0.1)
    stepper = Stepper(model, sag_free=False, damping=Rayleigh(0.1, 0.001))
    p = pose(model.rig, (0.0, 0.0, 0.7), root_turn=(0.0, 0.0, -1.2), angle=0.6)
    z = stepper.carriers(p)
    stepper.wind = (5.0, 0.0, 3.0)
    stepper.point_loads(np.array([60]), np.array([[0.0, 2.0, 0.0]]))
    assert stepper.settle(z) < 1e-9
    settings = Settings(sag_free=False, wind=stepper.wind, vertices=np.array([60]), forces=np.array([[0.0, 2.0, 0.0]]))
    there = Pose(model, z)
    load = external_force(model, there, 0 * z, 0 * z, stepper.q, stepper.v, settings)
    force, _ = elasticity(model, there, stepper.q)
    np.testing.assert_allclose(force, load, atol=1e-8 * np.abs(load).max())
    settled = stepper.q.copy()
    assert np.abs(stepper.vertex_displacements()).max() > 1e-3
    for _ in range(10):
        stepper.step(z, 0 * z, 0 * z)
    np.testing.assert_allclose(stepper.q, settled, atol=1e-9 * np.abs(settled).max())


def test_sag_free_rest_stays_at_rest():
    stepper = Stepper(bar_model(poses=3))
    z = stepper.carriers(stepper.model.rig.parameters.rest)
    for _ in range(5):
        stepper.step(z, 0 * z, 0 * z)
    assert np.abs(stepper.q).max() < 1e-14
    stepper.sag_free = False
    stepper.step(z, 0 * z, 0 * z)
    assert np.abs(stepper.q).max() > 1e-5


def test_fewer_modes_are_a_part_of_the_model():
    model = lively(bar_model(**KINDS["regions"]))
    stepper = Stepper(model, modes=6)
    small = stepper.model
    assert np.bincount(small.region_of_mode).tolist() == [2, 2, 2]
    assert stepper.q.shape == (6,)
    # Importance falls with the number, so each region keeps its first modes.
    keep = np.array([0, 1, 5, 6, 9, 10])
    np.testing.assert_array_equal(small.shapes, model.shapes[..., keep])
    np.testing.assert_array_equal(small.mass_products[1, 2], model.mass_products[1, 2][np.ix_(keep, keep)])
    z, zd, zdd, state = moment(small, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    assert difference((stepper.q,), reference_step(small, state, z, zd, zdd, Settings())[:1]) < 1e-9
    assert model.with_modes(2).mode_count == 2
    assert np.bincount(model.with_modes(4).region_of_mode).min() == 1
    assert model.with_modes(13) is model
    with pytest.raises(ModeCountError):
        model.with_modes(14)


def test_stiffness_scales_by_region():
    model = lively(bar_model(**KINDS["regions"]))
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    scales = np.array([0.5, 1.0, 3.0])
    stepper.stiffness_scale = scales
    put(stepper, state)
    stepper.step(z, zd, zdd)
    sides = np.sqrt(scales)[model.region_of_mode]
    correction = (model.cubature.stiffness_correction * np.outer(sides, sides)).astype(np.float32).astype(np.float64)
    stiffer = replace(model, cubature=replace(model.cubature, stiffness_correction=correction))
    of_tet = scales[owners(model, region_runs(model.region_of_mode))]
    assert np.unique(of_tet).size == 3
    expected = reference_step(stiffer, state, z, zd, zdd, Settings(tet_scale=of_tet))
    assert difference((stepper.q, stepper.v, stepper.a), expected) < 1e-9
    np.testing.assert_array_equal(stepper.stiffness_scale, scales)
    with pytest.raises(InputError, match="positive"):
        stepper.stiffness_scale = (1.0, -1.0, 1.0)


def test_without_cubature_only_the_correction_is_stiff():
    model = bar_model(poses=2)
    stiff = np.repeat(50.0 * np.eye(model.mode_count)[None], 2, axis=0)
    weights = np.zeros_like(model.cubature.weights)
    model = replace(model, cubature=replace(model.cubature, weights=weights, stiffness_correction=stiff))
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    assert difference((stepper.q, stepper.v), reference_step(model, state, z, zd, zdd, Settings())[:2]) < 1e-9
