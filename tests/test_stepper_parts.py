"""What the compiled pose-space step is made of: carriers, maps, features, the surface and the kernels below."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pose_models_for_tests import TURNS, bar_model, inertia_mapped, mapped, pose
from reference_step_for_tests import Settings, reference_step
from rigs_for_tests import random_parameters, random_skin
from softrig.errors import InputError
from softrig.models.kernels.polar import angular_rates, polar_rotation
from softrig.models.kernels.pose_space_chunks import chunked, equal_parts
from softrig.models.kernels.pose_space_elastic import strain_square
from softrig.models.kernels.pose_space_layout import bone_runs, most_bones
from softrig.models.kernels.pose_space_runs import mixed_quaternions, rotations_of, skinned
from softrig.models.pose_drive import compiled_features, skeleton_tree
from softrig.models.pose_space import PoseTable, polar_rotations
from softrig.models.stepper import Stepper
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors
from softrig.numerics.vectors import BEYOND
from softrig.rig.features import PoseFeatures
from softrig.rig.pose_space import PoseSpaceRig
from softrig.rig.skeleton_kernel import bone_matrices, world_matrices
from steppers_for_tests import KINDS, difference, moment, put


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


@pytest.mark.parametrize(("kind", "own"), [("regions", 1), ("regions", 4), ("black box", 1)])
def test_carriers_end_with_the_weights_of_the_stiffness_map(kind, own):
    model = mapped(bar_model(**KINDS[kind]), own=own)
    stepper = Stepper(model)
    assert model.cubature.stiffness_map.own == own
    near_last = 0.95 * model.poses.parameters[-1] + 0.05 * model.poses.parameters[0]
    turned = [pose(model.rig, (0.2, 0.3, turn), angle=turn) for turn in (0.0, 0.4, -0.9)]
    shares = []
    for p in (*turned, near_last):
        weights, positive = model.linear_weights(p), model.positive_weights(p)
        shares.append(weights[own])
        np.testing.assert_allclose(stepper.carriers(p)[-own - 3 :], weights, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(weights[:own], positive if own > 1 else [1.0])
    assert 0.1 < max(shares) < 1.0, "springs hold, in part"
    assert np.abs(model.linear_weights(model.rig.parameters.rest)[own + 1 :]).max() > 1e-3
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
    stiffness, names = model.cubature.stiffness_map, ("columns", "groups", "lengths", "samples", "pairs")
    shared = replace(
        known,
        **{name: getattr(stiffness, name) for name in names},
        relevance=0.5 + np.arange(len(stiffness.lengths)),
        coefficients=known.coefficients[: len(stiffness.samples)],
    )
    assert shared.same_samples(stiffness)
    assert not known.same_samples(stiffness)
    assert not replace(shared, pairs=0.1).same_samples(stiffness)
    both = replace(model, inertia_map=shared)
    z = Stepper(both).carriers(p)
    np.testing.assert_allclose(z[-7:], shared.shares(both.pose_features(p), both.pose_weights(p)), rtol=1e-12)
    np.testing.assert_allclose(z[-11:-7], both.linear_weights(p), rtol=1e-12, atol=1e-14)


def test_an_inertia_map_keeps_its_modes_and_refuses_what_does_not_fit():
    model = inertia_mapped(bar_model(**KINDS["regions"]))
    known = model.inertia_map
    stepper = Stepper(model, modes=6)
    small = stepper.model
    keep = np.array([0, 1, 5, 6, 9, 10])
    np.testing.assert_array_equal(small.inertia_map.turning, known.turning[keep])
    np.testing.assert_array_equal(small.inertia_map.turned, known.turned[:, keep])
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
        ({"components": known.components[:, :, 1:]}, "components"),
        ({"turners": known.turners + 100}, "components that turn"),
        ({"turned": known.turned[:, :, 1:]}, "turned"),
        ({"turned": np.full_like(known.turned, np.nan)}, "turned"),
    ):
        with pytest.raises(InputError, match=told):
            replace(model, inertia_map=replace(known, **wrong))
    world = bar_model(**KINDS["world"])
    with pytest.raises(InputError, match="bind space"):
        replace(world, inertia_map=known)


def test_springs_of_contacts_hold_at_their_pose_and_until_it_is_half_left():
    model = mapped(bar_model(poses=2))
    known, last = model.cubature.stiffness_map, model.poses.parameters[1]
    springs = known.components[1]
    np.testing.assert_allclose(known.springs(model.positive_weights(last)), springs)
    assert not known.springs(model.positive_weights(model.poses.parameters[0])).any()
    # 2 w⁺ − 1 is a half, so a quarter of them holds.
    np.testing.assert_allclose(known.springs(np.array([0.25, 0.75])), 0.25 * springs)
    without = np.tensordot(known.kernel(model.pose_features(last)) @ known.coefficients, known.components[2:], axes=1)
    np.testing.assert_allclose(model.linear_part(last), known.components[0] + springs + without, rtol=1e-6)
    halfway = np.array([0.45, 0.55])
    weights = known.weights(model.pose_features(last), halfway)
    np.testing.assert_allclose(weights[1], 0.01)


def test_a_stiffness_map_ends_where_its_samples_end_and_refuses_what_does_not_fit():
    model = mapped(bar_model(**KINDS["bind"]))
    known = model.cubature.stiffness_map
    features = np.zeros(len(model.poses.feature_weights))
    for sign, end in ((-1.0, known.samples.min(axis=0)), (1.0, known.samples.max(axis=0))):
        features[known.columns] = end
        positive = np.eye(len(model.poses))[0]
        far = known.weights(np.full_like(features, 1e3 * sign), positive)
        np.testing.assert_array_equal(far, known.weights(features, positive))
        assert np.abs(far[2:]).max() > 1e-3
    fewer = model.with_modes(model.mode_count - 2)
    assert fewer.cubature.stiffness_map.components.shape == (4, fewer.mode_count, fewer.mode_count)
    for wrong, told in (
        ({"groups": known.groups + 1}, "groups"),
        ({"lengths": np.zeros(len(known.lengths))}, "positive"),
        ({"coefficients": known.coefficients[:2]}, "coefficients"),
        ({"samples": np.full_like(known.samples, np.nan)}, "samples"),
        ({"relevance": known.relevance * [1.0, -1.0][: len(known.lengths)]}, "out of range.*1"),
        ({"relevance": 1e200 * known.relevance}, "out of range"),
        ({"touching": known.touching[None]}, "touching"),
        ({"columns": known.columns[None]}, "columns"),
        ({"relevance": known.relevance[:0]}, "relevance"),
        ({"relevance": np.full_like(known.relevance, np.nan)}, "relevance"),
    ):
        with pytest.raises(InputError, match=told):
            replace(known, **wrong)
    with pytest.raises(InputError, match="features of the stiffness map"):
        replace(model, cubature=replace(model.cubature, stiffness_map=replace(known, columns=known.columns + 1000)))
    flexible = mapped(bar_model(**KINDS["one basis"]), flexible=True).cubature.stiffness_map
    with pytest.raises(InputError, match="one for all poses"):
        replace(model, cubature=replace(model.cubature, stiffness_map=flexible))
    with pytest.raises(InputError, match="poses in contact"):
        replace(model, cubature=replace(model.cubature, stiffness_map=replace(known, touching=known.touching + 1)))


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


def test_the_builders_poses_are_where_they_should_be():
    model = bar_model(poses=4)
    for index, p in enumerate(model.poses.parameters):
        np.testing.assert_allclose(model.pose_weights(p), np.eye(4)[index], atol=1e-10)
        np.testing.assert_allclose(p[13:17], quaternions_from_vectors(TURNS[index]))
        gram = np.einsum("nia,n,nib->ab", model.shapes[index], model.vertex_mass, model.shapes[index])
        np.testing.assert_allclose(gram, np.eye(8), atol=3e-5)
