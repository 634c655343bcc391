"""Pose-space cubature of a two-bone bar: exact where it must be, close on unseen samples, better than the paper's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from softrig.bases.modes import linear_modes
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.forces.cubature import (
    _sketch,
    _Steps,
    cubature_errors,
    train_cubature,
)
from softrig.forces.projection import PoseElasticity
from softrig.forces.samples import LARGEST, SMALLEST, pose_samples, random_mixtures, sample_poses
from softrig.meshing import box_tets
from softrig.models.full import FullBody
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

YOUNG, POISSON, MODES = 2e4, 0.4, 8


def bone_turn(skin, angle):
    p = skin.parameters.rest.copy()
    p[skin.skeleton.rotation(1)] = quaternions_from_vectors(np.array([0.0, 0.0, angle]))
    return p


@pytest.fixture(scope="module")
def bar():
    """A bar along x, its second half turned by bone 1; fixed on the axis; modes of the rest pose turn with the skin."""
    mesh = box_tets((0.6, 0.15, 0.15), (8, 2, 2))
    X = mesh.vertices
    skeleton = Skeleton.from_heads(("one", "two"), (-1, 0), np.array([[0.0, 0.075, 0.075], [0.3, 0.075, 0.075]]))
    share = np.clip((X[:, 0] - 0.15) / 0.3, 0.0, 1.0)
    weights = np.column_stack([1.0 - share, share])
    binds = np.linalg.inv(skeleton.rest_world_matrices)
    skin = LinearBlendSkin(skeleton, X, [0, 1], binds, np.tile([0, 1], (len(X), 1)), weights)
    fixed = (np.abs(X[:, 1:] - 0.075).max(axis=1) < 1e-9) | (X[:, 0] < 1e-9)
    body = FullBody(mesh, Material(YOUNG, POISSON, 1000.0), fixed=fixed, mass="lumped")
    V = body.expand(linear_modes(body, MODES).shapes)

    def at(angle, law="stable-neo-hookean"):
        positions = skin.positions(bone_turn(skin, angle))
        rotations = quaternion_matrices(quaternions_from_vectors(share[:, None] * [0.0, 0.0, angle]))
        elasticity = PoseElasticity(
            positions, mesh.elements, fixed, law, YOUNG, POISSON, rotations @ V, neutral=mesh.vertices
        )
        return elasticity, loads_at(positions, share)

    def loads_at(positions, share):
        arms = share[:, None] * (positions - [0.3, 0.075, 0.075])
        uniform = [np.broadcast_to(axis, positions.shape) for axis in np.eye(3)]
        return np.stack([*uniform, *(np.cross(axis, arms) for axis in np.eye(3)), -arms], axis=2)

    poses, loads = zip(*(at(angle) for angle in (0.0, 1.0)), strict=True)
    size = float(np.linalg.norm(np.ptp(X, axis=0)))
    return SimpleNamespace(at=at, poses=poses, loads=loads, mass=body.vertex_mass, size=size)


@pytest.fixture(scope="module")
def trained(bar):
    return train_cubature(bar.poses, bar.mass, bar.loads, bar.size)


def test_all_tets_with_weight_one_have_no_error(bar):
    tets = np.arange(len(bar.poses[1].tets))
    samples = sample_poses(bar.poses, bar.mass, bar.loads, bar.size, 6, 3)[1]
    errors = cubature_errors(bar.poses[1], tets, np.ones(len(tets)), np.zeros((MODES, MODES)), samples)
    assert max(errors.gaussian, errors.loads, errors.worst) < 1e-10
    np.testing.assert_allclose(errors.stiffness_range, 1.0, atol=1e-9)


def test_unseen_samples_at_the_poses(bar, trained):
    assert len(trained.tets) <= 12
    assert (np.diff(trained.tets) > 0).all()
    assert trained.weights.shape == (2, len(trained.tets))
    assert (trained.weights >= 0.0).all()
    for errors in trained.errors:
        assert errors.gaussian < 0.05
        assert errors.loads < 0.05
        assert errors.worst >= max(errors.gaussian, errors.loads)
        np.testing.assert_allclose(errors.stiffness_range, 1.0, atol=1e-8)
    assert (trained.training_error < 0.05).all()


def test_small_motion_is_exact_at_the_poses(bar, trained):
    q = 1e-8 * np.random.default_rng(0).normal(size=(MODES, 3))
    for pose, weights, delta in zip(bar.poses, trained.weights, trained.stiffness_correction, strict=True):
        found = pose.cubature_force(q, trained.tets, weights) + delta @ q
        exact = pose.force(q)
        np.testing.assert_allclose(found, exact, atol=1e-5 * np.linalg.norm(exact))
        assert np.linalg.norm(delta @ q) > 1e-2 * np.linalg.norm(exact)


def test_the_correction_beats_plain_forces_and_more_tets_are_better(bar, trained):
    plain = train_cubature(bar.poses, bar.mass, bar.loads, bar.size, correction=False)
    assert not plain.stiffness_correction.any()
    more = train_cubature(bar.poses, bar.mass, bar.loads, bar.size, count=40)
    for few, without, many in zip(trained.errors, plain.errors, more.errors, strict=True):
        assert few.gaussian < 0.3 * without.gaussian
        assert few.loads < 0.3 * without.loads
        assert many.gaussian < 0.5 * few.gaussian


@pytest.mark.parametrize("method", ["greedy", "htp"])
def test_every_selection_works(bar, method):
    report = train_cubature(bar.poses, bar.mass, bar.loads, bar.size, method=method)
    assert report.method == method
    assert max(max(errors.gaussian, errors.loads) for errors in report.errors) < 0.15


def test_the_papers_recipe(bar):
    report = train_cubature(bar.poses, bar.mass, bar.loads, bar.size, recipe="paper", count=40)
    assert (report.recipe, report.method) == ("paper", "htp")
    assert not report.stiffness_correction.any()
    for errors in report.errors:
        assert errors.gaussian < 0.5
        assert np.isfinite(errors.loads)
        assert errors.stiffness_range[0] < 0.999


def test_weights_per_pose_are_the_best_on_their_samples(bar, trained):
    samples = sample_poses(bar.poses, bar.mass, bar.loads, bar.size, 50, 0)
    for i, (pose, sample) in enumerate(zip(bar.poses, samples, strict=True)):
        lengths = np.linalg.norm(pose.force(sample.q), axis=0)

        def miss(weights, pose=pose, sample=sample, lengths=lengths):
            columns = pose.element_forces(sample.q, trained.tets, remainder=True)
            rest = np.einsum("e,erk->rk", weights, columns) - pose.force(sample.q, remainder=True)
            return np.sqrt(np.mean(np.sum((rest / lengths) ** 2, axis=0)))

        best = miss(trained.weights[i])
        assert best == pytest.approx(trained.training_error[i], rel=1e-9)
        assert best <= miss(trained.weights[1 - i])
        for factor in (0.99, 1.01):
            assert best < miss(factor * trained.weights[i])


def test_same_seed_same_cubature(bar, trained):
    again = train_cubature(bar.poses, bar.mass, bar.loads, bar.size)
    np.testing.assert_array_equal(trained.tets, again.tets)
    np.testing.assert_array_equal(trained.weights, again.weights)
    other = train_cubature(bar.poses, bar.mass, bar.loads, bar.size, seed=5)
    assert not np.array_equal(trained.tets, other.tets)


@pytest.mark.parametrize("remainder", [True, False])
def test_the_sketch_keeps_products(bar, remainder):
    samples = sample_poses(bar.poses, bar.mass, bar.loads, bar.size, 20, 0)
    full = np.concatenate(
        [
            (pose.element_forces(sample.q, remainder=remainder) / np.linalg.norm(pose.force(sample.q), axis=0)).reshape(
                len(pose.tets), -1
            )
            for pose, sample in zip(bar.poses, samples, strict=True)
        ],
        axis=1,
    )
    gram = full @ full.T
    unpressed, target = _sketch(bar.poses, samples, remainder, 10**9, 0, _Steps(None, 1))
    assert unpressed.shape == full.shape
    np.testing.assert_allclose(unpressed @ unpressed.T, gram, atol=1e-10 * np.abs(gram).max())
    np.testing.assert_allclose(target @ target, full.sum(axis=0) @ full.sum(axis=0), rtol=1e-9)
    mean = np.zeros_like(gram)
    for seed in range(30):
        pressed, _ = _sketch(bar.poses, samples, remainder, 100, seed, _Steps(None, 1))
        assert pressed.shape[1] == 100
        mean += pressed @ pressed.T / 30
    assert np.linalg.norm(mean - gram) < 0.1 * np.linalg.norm(gram)


def test_samples_are_as_large_as_said_and_soft_modes_move_most(bar):
    pose = bar.poses[0]
    samples = pose_samples(pose, bar.mass, None, bar.size, 400, np.random.default_rng(0))
    assert not samples.load_driven.any()
    u = pose.displacements(samples.q)
    rms = np.sqrt(np.einsum("v,vxk,vxk->k", bar.mass, u, u) / bar.mass.sum())
    assert rms.min() >= SMALLEST * bar.size * 0.999
    assert rms.max() <= LARGEST * bar.size * 1.001
    # The modes of the rest pose are the basis. Of two Gaussians the median of |a/b| is the ratio of their spreads.
    stiffness = np.diag(pose.rest_stiffness)
    for mode in (3, MODES - 1):
        ratio = np.median(np.abs(samples.q[mode] / samples.q[0]))
        assert ratio == pytest.approx(stiffness[0] / stiffness[mode], rel=0.3)


def test_load_driven_samples_are_static_answers(bar):
    pose, load = bar.poses[1], bar.loads[1]
    samples = pose_samples(pose, bar.mass, load, bar.size, 40, np.random.default_rng(0))
    assert samples.load_driven.sum() == 20
    basis = pose.shapes.reshape(-1, MODES)
    possible = basis.T @ (bar.mass[:, None, None] * load).reshape(len(basis), -1)
    forces = pose.force(samples.q[:, samples.load_driven])
    # Seven loads, eight modes: the force lies in their span.
    rest = forces - possible @ np.linalg.lstsq(possible, forces)[0]
    assert np.linalg.norm(rest) < 0.05 * np.linalg.norm(forces)
    other = pose.force(samples.q[:, ~samples.load_driven])
    assert np.linalg.norm(other - possible @ np.linalg.lstsq(possible, other)[0]) > 0.1 * np.linalg.norm(other)


def test_loads_of_any_unit_count_alike(bar):
    load = bar.loads[0]
    mixed = random_mixtures(load, bar.mass, 3, np.random.default_rng(0))
    scaled = random_mixtures(load * np.logspace(-3, 3, load.shape[2]), bar.mass, 3, np.random.default_rng(0))
    np.testing.assert_allclose(mixed, scaled, rtol=1e-9, atol=1e-12)


def test_without_loads_there_are_no_load_errors(bar):
    report = train_cubature(bar.poses[:1], bar.mass, None, bar.size)
    assert np.isnan(report.errors[0].loads)
    assert report.errors[0].gaussian < 0.05


def test_progress_and_bad_input(bar):
    told = []
    train_cubature(
        bar.poses[:1], bar.mass, None, bar.size, samples=5, unseen=2, progress=lambda *done: told.append(done)
    )
    assert told[-1][0] == told[-1][1]
    with pytest.raises(InputError, match="no cubature recipe called 'magic'"):
        train_cubature(bar.poses, bar.mass, bar.loads, bar.size, recipe="magic")
    with pytest.raises(InputError, match="at least one pose"):
        train_cubature([], bar.mass, None, bar.size)
    with pytest.raises(InputError, match="as many masses"):
        train_cubature(bar.poses, bar.mass[1:], None, bar.size)
    with pytest.raises(InputError, match="loads must be") as caught:
        train_cubature(bar.poses, bar.mass, [bar.loads[0], bar.loads[1][1:]], bar.size)
    assert list(caught.value.indices) == [1]
