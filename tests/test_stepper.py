"""The compiled pose-space step against the same formulas in plain NumPy, and what it promises when things go wrong."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pose_models_for_tests import TURNS, bar_model, inertia_mapped, mapped, pose
from reference_step_for_tests import Pose, Settings, clamped_tet, elasticity, external_force, reference_step
from rigs_for_tests import random_parameters, random_skin
from softrig.dynamics import Rayleigh
from softrig.errors import IndexRangeError, InputError, ModeCountError
from softrig.models.kernels.pose_space_chunks import chunked, equal_parts, owners
from softrig.models.kernels.pose_space_elastic import STRAINED, strain_square
from softrig.models.kernels.pose_space_frames import angular_rates, polar_rotation
from softrig.models.kernels.pose_space_layout import bone_runs, most_bones, region_runs
from softrig.models.kernels.pose_space_runs import mixed_quaternions, rotations_of, skinned
from softrig.models.pose_drive import compiled_features, skeleton_tree
from softrig.models.pose_space import PoseTable, polar_rotations
from softrig.models.stepper import Stepper
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors
from softrig.numerics.vectors import BEYOND
from softrig.rig.features import PoseFeatures
from softrig.rig.pose_space import PoseSpaceRig
from softrig.rig.skeleton_kernel import bone_matrices, world_matrices

KINDS = {
    "bind": {"poses": 3},
    "regions": {"poses": 4, "regions": 3, "modes": 13},
    "world": {"interpolation": "world"},
    "one basis": {"poses": 3, "basis_poses": 1},
    "black box": {"black_box": True, "poses": 3},
    "five poses": {"poses": 4, "morphs": True},
}


def lively(model, seed=0, correction=0.5):
    """The model with random cubature weights (some zero) and random stiffness corrections."""
    rng = np.random.default_rng(seed)
    shape, r = model.cubature.weights.shape, model.mode_count
    weights = rng.uniform(0.0, 2.0, shape) * (rng.uniform(size=shape) > 0.2)
    matrices = correction * rng.normal(size=(len(model.poses), r, r))
    matrices = (matrices + matrices.transpose(0, 2, 1)).astype(np.float32).astype(np.float64)
    cubature = replace(model.cubature, weights=weights, stiffness_correction=matrices)
    return replace(model, cubature=cubature)


def moment(model, stepper, seed=0, size=1.0):
    """Carrier values far from the poses with random rates, and a random state (3, r)."""
    rng = np.random.default_rng(seed)
    p = pose(model.rig, (0.2, 0.3, 2.6), root_turn=(0.3, 0.5, -0.2), root_move=(0.1, 0.2, 0.3), angle=2.6)
    z = stepper.carriers(p)
    z = z + 0.01 * rng.normal(size=z.shape)
    state = rng.normal(size=(3, model.mode_count)) * np.array([[0.01], [0.3], [10.0]])
    return z, size * rng.normal(size=z.shape), 5.0 * size * rng.normal(size=z.shape), state


def put(stepper, state):
    stepper.q[:], stepper.v[:], stepper.a[:] = state


def difference(ours, theirs):
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))


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
    ],
)
def test_compiled_step_equals_plain_numpy(kind, law, method, iterations):
    kind, _, maps = kind.partition(", ")
    model = lively(bar_model(law=law, **KINDS[kind]))
    model = mapped(model) if maps in ("mapped", "both mapped") else model
    model = inertia_mapped(model) if maps in ("inertia mapped", "both mapped") else model
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
    stepper = Stepper(model, method=method, damping=Rayleigh(0.3, 0.002), turns=1)
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
    stiff = np.full((3, 1, 1), 400.0)
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


def test_what_strains_has_its_tangent_made_anew():
    model = mapped(lively(bar_model(law="stvk", **KINDS["regions"])))
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
        stepper.restore(quiet._replace(strained=np.full_like(quiet.strained, (strain * STRAINED) ** 2)))
        stepper.q[:] += 1e-4
        stepper.step(z, still, still)
        changed = (stepper.snapshot().then != quiet.then).any(axis=1)
        assert changed[kept].all() == renewed


def test_strain_is_the_largest_change_of_the_deformation_gradients():
    rng = np.random.default_rng(4)
    moves, then, B = rng.normal(size=(3, 9, 8))
    D = (moves - then).reshape(3, 3, 8)  # D[α, i]
    F = np.einsum("ait,akt->ikt", D, B.reshape(3, 3, 8))
    expected = (F**2).sum(axis=(0, 1)).max()
    assert strain_square(8, moves.ravel(), then.ravel(), B.ravel()) == pytest.approx(expected, rel=1e-12)


def test_parts_are_cut_where_they_cost_the_same():
    np.testing.assert_array_equal(equal_parts(np.ones(8), 4), [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(equal_parts(np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 2), [0, 1, 6])
    np.testing.assert_array_equal(equal_parts(np.ones(2), 4), [0, 0, 1, 1, 2])
    np.testing.assert_array_equal(equal_parts(np.zeros(0), 3), [0, 0, 0, 0])
    with pytest.raises(InputError, match="one part"):
        equal_parts(np.ones(2), 0)


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


def test_angular_rates_are_derivatives_of_the_polar_rotation(slope):
    A0, A1, A2 = np.random.default_rng(5).normal(size=(3, 3, 3))
    A0 += 2.0 * np.eye(3)
    work = np.zeros(60)

    def rotation(t):
        R = np.zeros((3, 3))
        polar_rotation(A0 + t * A1 + 0.5 * t * t * A2, R, work)
        return R

    def spin(t):
        W = rotation(t).T @ slope(lambda s: rotation(t + s))
        return np.array([W[2, 1], W[0, 2], W[1, 0]])

    omega, turn = np.zeros(3), np.zeros(3)
    angular_rates(rotation(0.0), A0, A1, A2, omega, turn, work)
    np.testing.assert_allclose(omega, spin(0.0), rtol=1e-8)
    np.testing.assert_allclose(turn, slope(spin), rtol=1e-6)


def test_polar_rotation_of_any_matrix():
    rng = np.random.default_rng(1)
    work, R = np.zeros(60), np.zeros((3, 3))
    for A in [*rng.normal(size=(50, 3, 3)), 100.0 * np.eye(3), -np.eye(3), 1e-8 * rng.normal(size=(3, 3))]:
        polar_rotation(A, R, work)
        np.testing.assert_allclose(R, polar_rotations(A), atol=1e-9)
    polar_rotation(np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 1.0]), R, work)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("kind", ["bind", "black box", "five poses"])
def test_carriers_follow_their_definition(kind):
    model = bar_model(**KINDS[kind])
    stepper = Stepper(model)
    rng = np.random.default_rng(2)
    for _ in range(5):
        p = model.rig.parameters.normalised(
            model.rig.parameters.rest + 0.3 * rng.normal(size=len(model.rig.parameters))
        )
        z, m = stepper.carriers(p), len(model.poses)
        np.testing.assert_allclose(z[len(z) - m :], model.pose_weights(p), atol=1e-12)
        if model.tet_rig.kind == "skin":
            np.testing.assert_allclose(z[:24].reshape(2, 3, 4), model.bone_matrices(p), atol=1e-12)
        else:
            np.testing.assert_allclose(z[: len(z) - m].reshape(-1, 3), model.shepard_positions(p), atol=1e-12)
        stepper.place(z)
        stepper.q[:] = 0.01 * rng.normal(size=model.mode_count)
        np.testing.assert_allclose(stepper.vertex_displacements(), model.displacement(p, stepper.q), atol=1e-14)
        np.testing.assert_allclose(
            stepper.tet_positions(), model.tet_rest(p) + model.displacement(p, stepper.q), atol=1e-12
        )


def test_compiled_features_are_those_of_the_rig():
    """Every kind of feature counts here: turns, lengths, scales and morphs, each with its own weight."""
    model = bar_model(poses=4, morphs=True)
    rng = np.random.default_rng(4)
    parameters = model.rig.parameters
    weights = rng.uniform(0.5, 2.0, len(model.poses.feature_weights))
    weights[3] = 0.0
    features = PoseFeatures(parameters, model.pose_features.size, weights)
    poses = np.array([parameters.normalised(parameters.rest + rng.normal(size=len(parameters))) for _ in range(4)])
    model = replace(model, poses=PoseTable(model.poses.names, poses, features(poses), weights))
    assert compiled_features(model).poses.shape == (4, len(weights) - 1)
    stepper = Stepper(model)
    for _ in range(10):
        p = parameters.rest + rng.normal(size=len(parameters))
        np.testing.assert_allclose(stepper.pose_weights(p), model.pose_weights(p), atol=1e-12)
    for index, p in enumerate(poses):
        np.testing.assert_allclose(stepper.pose_weights(p), np.eye(4)[index], atol=1e-10)


@pytest.mark.parametrize("kind", ["bind", "black box", "five poses", "regions"])
def test_surface_is_the_rigs_own_plus_the_embedded_displacement(kind):
    model = bar_model(**KINDS[kind])
    rng = np.random.default_rng(3)
    nodes = model.tets[rng.integers(0, len(model.tets), len(model.embedding_nodes))]
    shares = rng.dirichlet(np.ones(4), len(nodes))
    shares[::5] = 0.0
    model = replace(model, embedding_nodes=nodes.astype(np.int32), embedding_weights=shares)
    stepper = Stepper(model)
    rig = PoseSpaceRig(model.rig, model.corrective, model.poses.parameters)
    p = pose(model.rig, (0.2, 0.3, 0.9), root_turn=(0.3, 0.5, -0.2), root_move=(0.1, 0.2, 0.3), angle=0.7)
    if kind == "five poses":
        stepper.surface(p)  # other weights before must leave no trace
        p[:2] = 0.3, 0.6
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.02 * rng.normal(size=model.mode_count)
    u = model.displacement(p, stepper.q)
    expected = rig.positions(p) + np.einsum("na,nak->nk", shares, u[nodes])
    out = np.empty(expected.shape, np.float32)
    assert stepper.surface(p, out) is out
    assert np.abs(u).max() > 1e-2
    np.testing.assert_allclose(out, expected, atol=1e-6)
    with pytest.raises(InputError, match="float32"):
        stepper.surface(p, np.empty(expected.shape))


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


@pytest.mark.parametrize("map_of", [lambda model: model, mapped], ids=["corrections", "map"])
def test_snapshots_restore_to_the_last_bit(map_of):
    model = map_of(bar_model(poses=3))
    stepper, other = Stepper(model), Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    kept = stepper.snapshot()
    runs = []
    for each in (stepper, stepper, other):
        each.restore(kept)
        shown = each.vertex_displacements()
        for _ in range(5):
            each.step(z, zd, zdd)
        runs.append((shown, each.snapshot()))
    for shown, end in runs[1:]:
        np.testing.assert_array_equal(shown, runs[0][0])
        for one, two in zip(end, runs[0][1], strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_copy_goes_on_by_itself():
    model = bar_model(poses=3)
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    other, before = copy.deepcopy(stepper), stepper.q.copy()
    other.step(z, zd, zdd)
    np.testing.assert_array_equal(stepper.q, before)
    assert np.abs(other.q - before).max() > 1e-9
    stepper.step(z, zd, zdd)
    np.testing.assert_array_equal(other.q, stepper.q)


@pytest.mark.parametrize("law", ["stvk", "neo-hookean", "stable-neo-hookean", "corotational"])
def test_extreme_steps_never_give_nan(law):
    model = lively(bar_model(poses=3, law=law))
    stepper = Stepper(model)
    rng = np.random.default_rng(7)
    for _ in range(150):
        turns = [quaternions_from_vectors(rng.normal(0.0, 2.0, 3)) for _ in range(2)]
        p = pose(model.rig)
        p[3:7], p[13:17] = turns
        z = stepper.carriers(p)
        size = 10.0 ** rng.uniform(0, 7)
        stepper.point_loads(rng.integers(0, len(model.vertices), 3), size * rng.normal(size=(3, 3)))
        stepper.step(z, size * rng.normal(size=z.shape), size * rng.normal(size=z.shape))
        assert np.isfinite(stepper.snapshot().q).all()
        assert np.isfinite(stepper.v).all()
        assert np.isfinite(stepper.a).all()
    counters = stepper.counters
    assert counters["steps"] == 150
    assert 150 >= counters["halved"] >= counters["decayed"] > 0


def test_a_step_that_cannot_be_saved_decays_by_half():
    stepper = Stepper(bar_model(poses=2))
    z, zd, zdd, state = moment(stepper.model, stepper)
    put(stepper, state)
    stepper.step(z, zd, np.nan * zdd)
    assert stepper.counters == {"steps": 1, "projected": stepper.counters["projected"], "halved": 1, "decayed": 1}
    for now, before in zip((stepper.q, stepper.v, stepper.a), state, strict=True):
        np.testing.assert_array_equal(now, 0.5 * before)
    stepper.step(z, zd, zdd)
    assert stepper.counters["decayed"] == 1


def test_too_large_a_displacement_is_redone_in_smaller_steps():
    """A force that throws a vertex beyond half the size in one step, but not in two or four shorter ones."""
    model = bar_model(poses=2)
    load, limit = np.array([[0.0, 1.0, 0.0]]), 0.5 * model.size
    steppers = {parts: Stepper(model, rate=5.0 * parts) for parts in (1, 2, 4)}
    z = steppers[1].carriers(model.rig.parameters.rest)
    while steppers[1].counters["halved"] == 0:
        load *= 1.2
        for parts, stepper in steppers.items():
            put(stepper, np.zeros((3, model.mode_count)))
            stepper.point_loads(np.array([80]), load)
            for _ in range(parts):
                stepper.step(z, 0 * z, 0 * z)
        assert np.abs(steppers[1].vertex_displacements()).max() <= limit * 1.0001
    assert steppers[1].counters["decayed"] == 0
    redone = steppers[2] if steppers[2].counters["halved"] == 0 else steppers[4]
    assert redone.counters["halved"] == 0
    for one, other in zip(steppers[1].snapshot()[:3], redone.snapshot()[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_an_indefinite_stiffness_is_projected():
    model = bar_model(poses=2)
    matrices = np.repeat(-1e7 * np.eye(model.mode_count)[None], 2, axis=0)
    model = replace(model, cubature=replace(model.cubature, stiffness_correction=matrices))
    stepper = Stepper(model)
    z = stepper.carriers(model.rig.parameters.rest)
    stepper.v[:] = 1e-3
    stepper.step(z, 0 * z, 0 * z)
    assert stepper.counters == {"steps": 1, "projected": 1, "halved": 0, "decayed": 0}
    assert np.isfinite(stepper.q).all()
    assert stepper.q.any()


@pytest.mark.parametrize("kind", ["regions", "black box"])
def test_carriers_end_with_the_weights_of_the_stiffness_map(kind):
    model = mapped(bar_model(**KINDS[kind]))
    stepper = Stepper(model)
    for turn in (0.0, 0.4, -0.9):
        p = pose(model.rig, (0.2, 0.3, turn), angle=turn)
        weights = model.linear_weights(p)
        np.testing.assert_allclose(stepper.carriers(p)[-4:], weights, rtol=1e-12, atol=1e-14)
        assert weights[0] == 1.0
    assert np.abs(model.linear_weights(model.rig.parameters.rest)[1:]).max() > 1e-3
    snapshot = stepper.snapshot()
    stepper.place(stepper.carriers(model.rig.parameters.rest))
    stepper.restore(snapshot)
    np.testing.assert_array_equal(stepper.snapshot().mixing, snapshot.mixing)


def test_carriers_end_with_the_shares_of_the_inertia_map():
    model = inertia_mapped(mapped(bar_model(**KINDS["regions"])))
    known = model.inertia_map
    for each in (model, replace(model, cubature=replace(model.cubature, stiffness_map=None))):
        stepper = Stepper(each)
        p = pose(each.rig, (0.2, 0.3, -0.9))
        shares = known.shares(each.pose_features(p), each.pose_weights(p))
        z = stepper.carriers(p)
        np.testing.assert_allclose(z[-7:], shares, rtol=1e-12, atol=1e-14)
        stepper.step(z, 0.0 * z, 0.0 * z)
        snapshot = stepper.snapshot()
        stepper.place(stepper.carriers(each.rig.parameters.rest))
        assert not np.allclose(stepper.snapshot().mixing, snapshot.mixing)
        stepper.restore(snapshot)
        np.testing.assert_array_equal(stepper.snapshot().mixing, snapshot.mixing)
    # One evaluation of the kernel serves both maps where they have the same samples.
    stiffness, names = model.cubature.stiffness_map, ("columns", "groups", "lengths", "samples")
    shared = replace(
        known,
        **{name: getattr(stiffness, name) for name in names},
        coefficients=known.coefficients[: len(stiffness.samples)],
    )
    assert shared.same_kernel(stiffness)
    assert not known.same_kernel(stiffness)
    both = replace(model, inertia_map=shared)
    np.testing.assert_allclose(
        Stepper(both).carriers(p)[-7:], shared.shares(both.pose_features(p), both.pose_weights(p)), rtol=1e-12
    )


def test_an_inertia_map_keeps_its_modes_and_refuses_what_does_not_fit():
    model = inertia_mapped(bar_model(**KINDS["regions"]))
    known = model.inertia_map
    stepper = Stepper(model, modes=6)
    small = stepper.model
    keep = np.array([0, 1, 5, 6, 9, 10])
    np.testing.assert_array_equal(small.inertia_map.turning, known.turning[keep])
    z, zd, zdd, state = moment(small, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    assert difference((stepper.q,), reference_step(small, state, z, zd, zdd, Settings())[:1]) < 1e-9
    for wrong, told in (
        ({"owners": known.owners + 1}, "bones of the inertia map"),
        ({"columns": known.columns + 1000}, "features of the inertia map"),
        ({"remainders": known.remainders[1:]}, "poses"),
        ({"turning": known.turning[:, 1:]}, "turning"),
        ({"turning": np.full_like(known.turning, np.nan)}, "turning"),
        ({"coefficients": known.coefficients[1:]}, "coefficients"),
    ):
        with pytest.raises(InputError, match=told):
            replace(model, inertia_map=replace(known, **wrong))
    world = bar_model(**KINDS["world"])
    with pytest.raises(InputError, match="bind space"):
        replace(world, inertia_map=known)


def test_a_stiffness_map_fades_to_its_baseline_and_refuses_what_does_not_fit():
    model = mapped(bar_model(**KINDS["bind"]))
    known = model.cubature.stiffness_map
    far = known.weights(np.full(len(model.poses.feature_weights), 1e3), np.ones(1))
    np.testing.assert_array_equal(far, [1.0, 0.0, 0.0, 0.0])
    fewer = model.with_modes(model.mode_count - 2)
    assert fewer.cubature.stiffness_map.components.shape == (4, fewer.mode_count, fewer.mode_count)
    for wrong, told in (
        ({"groups": known.groups + 1}, "groups"),
        ({"lengths": np.zeros(len(known.lengths))}, "positive"),
        ({"coefficients": known.coefficients[:2]}, "coefficients"),
        ({"samples": np.full_like(known.samples, np.nan)}, "samples"),
    ):
        with pytest.raises(InputError, match=told):
            replace(known, **wrong)
    with pytest.raises(InputError, match="features of the stiffness map"):
        replace(model, cubature=replace(model.cubature, stiffness_map=replace(known, columns=known.columns + 1000)))


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


def test_chunks_hold_every_tet_once():
    rng = np.random.default_rng(0)
    masks, sizes = rng.uniform(size=(77, 4)) < 0.4, np.array([5, 7, 3, 9])
    lists = chunked(masks, sizes)
    assert sorted(tet for chunk in lists for tet in chunk) == list(range(77))
    assert max(len(chunk) for chunk in lists) <= 8


def test_quaternions_mix_on_the_side_of_the_heaviest_bone():
    """A second bone that has turned beyond half a turn must not send its neighbours the long way round."""
    model = bar_model(poses=2)
    stepper = Stepper(model)
    p = pose(model.rig, (0.0, 0.0, 3.6), root_turn=(0.0, 0.0, 0.4))
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.01
    np.testing.assert_allclose(stepper.vertex_displacements(), model.displacement(p, stepper.q), atol=1e-14)


def test_runs_mix_quaternions_as_vertices_do():
    """Random quaternions of up to four bones: in most runs no common choice of signs exists."""
    rng = np.random.default_rng(8)
    weights = rng.uniform(size=(60, 6)) * (rng.uniform(size=(60, 6)) < 0.5)
    weights[:, 2] += 0.1
    table = csr_array(weights / weights.sum(axis=1, keepdims=True))
    quaternions = rng.normal(size=(6, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    order, runs = bone_runs(table)
    mixed, rotations = np.zeros((4, 60 + BEYOND)), np.zeros((9, 60))
    mixed_quaternions(*runs, quaternions, np.zeros(4 * most_bones(runs)), mixed)
    rotations_of(mixed, rotations)
    heaviest = quaternions[table.toarray().argmax(axis=1)]
    signs = np.where(heaviest @ quaternions.T < 0.0, -1.0, 1.0)
    expected = quaternion_matrices((table.toarray() * signs) @ quaternions)
    np.testing.assert_allclose(rotations.T.reshape(-1, 3, 3), expected[order], atol=1e-9)


def test_compiled_skin_equals_the_rig_for_any_skeleton():
    """Bones in another order than nodes, scales, fixed matrices, and vertices that follow a node."""
    rng = np.random.default_rng(9)
    skin = random_skin(rng)
    fixed = np.eye(4)
    fixed[:3] += 0.2 * rng.normal(size=(3, 4))
    skin = replace(skin, skeleton=replace(skin.skeleton, fixed_matrices={2: fixed}))
    p = random_parameters(skin.parameters, rng)
    binding = skin.binding
    tree = skeleton_tree(skin.skeleton, 0, binding.bones, binding.inverse_binds)
    world, matrices = np.zeros((len(skin.skeleton), 3, 4)), np.zeros((len(binding.bones), 3, 4))
    world_matrices(tree, p, world)
    bone_matrices(tree, world, matrices)
    np.testing.assert_allclose(matrices, skin.bone_matrices(p)[:, :3], atol=1e-12)
    order, runs = bone_runs(binding.table)
    points, out = np.zeros((3, len(order) + BEYOND)), np.zeros((3, len(order) + BEYOND))
    points[:, : len(order)] = skin.rest_positions[order].T
    skinned(points, matrices.reshape(-1), *runs, out)
    np.testing.assert_allclose(out.T[: len(order)], skin.positions(p)[order], atol=1e-12)


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


def test_bad_input_is_refused():
    model = bar_model(poses=2)
    stepper = Stepper(model)
    with pytest.raises(InputError, match="no implicit method"):
        Stepper(model, method="leapfrog")
    with pytest.raises(InputError, match="iteration"):
        Stepper(model, iterations=0)
    with pytest.raises(InputError, match="positive"):
        Stepper(model, rate=0.0)
    with pytest.raises(IndexRangeError):
        stepper.point_loads(np.array([10**6]), np.zeros((1, 3)))
    with pytest.raises(InputError, match="parameters"):
        stepper.carriers(np.zeros(3))
    with pytest.raises(InputError, match="gravity"):
        stepper.gravity = (1.0, 2.0)
    with pytest.raises(InputError, match="parameters"):
        Stepper(model, rig=bar_model(poses=2, morphs=True).rig)
    with pytest.raises(IndexRangeError, match="stand together"):
        replace(model, region_of_mode=np.array([0, 1, 0, 1, 1, 1, 1, 1]), region_names=("a", "b"))
    with pytest.raises(InputError, match="bind space"):
        replace(bar_model(black_box=True), interpolation="bind")
    hidden = bar_model(black_box=True)
    hidden = replace(
        hidden,
        cubature=replace(
            hidden.cubature,
            **{
                "tets": hidden.cubature.tets[:1],
                **{name: getattr(hidden.cubature, name)[:, :1] for name in ("weights", "young", "poisson")},
                "inertial_vertices": np.zeros(0, np.int32),
            },
        ),
        inertia=np.zeros((2, hidden.mode_count, 2)),
    )
    with pytest.raises(InputError, match="does not observe"):
        Stepper(hidden).tet_positions()


def test_the_builders_poses_are_where_they_should_be():
    model = bar_model(poses=4)
    for index, p in enumerate(model.poses.parameters):
        np.testing.assert_allclose(model.pose_weights(p), np.eye(4)[index], atol=1e-10)
        np.testing.assert_allclose(p[13:17], quaternions_from_vectors(TURNS[index]))
        gram = np.einsum("nia,n,nib->ab", model.shapes[index], model.vertex_mass, model.shapes[index])
        np.testing.assert_allclose(gram, np.eye(8), atol=1e-6)
