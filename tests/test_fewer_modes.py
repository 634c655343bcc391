"""Fewer modes of a model against the same formulas for those modes from the start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh

from pose_models_for_tests import bar_model, mapped
from softrig.models.fewer_modes import (
    DRIVEN,
    block_of_flexibilities,
    carried_by_kept,
    force_on_kept,
    foretold_by_kept,
    least_share,
    likely_motion,
    most_important,
)
from softrig.models.stepper import Stepper
from softrig.pipeline.yielding import yielding_shapes, yielding_stiffness


@pytest.fixture
def body():
    """K (n, n), M (n,), V (n, r) of a chain of springs."""
    rng = np.random.default_rng(4)
    n, r = 30, 9
    springs = np.diff(np.eye(n + 1), axis=0)[:, 1:]
    stiffness = springs.T * rng.uniform(1.0, 20.0, n) @ springs
    return stiffness, rng.uniform(0.5, 2.0, n), rng.normal(size=(n, r))


def yielding(stiffness, mass, basis):
    """M̂, F and W of modes beside which the rest yields."""
    heavy = mass[:, None] * basis
    relaxed = np.linalg.solve(stiffness, heavy)
    own = basis.T @ heavy
    found = np.linalg.inv(yielding_stiffness(own, heavy.T @ relaxed))
    return own, found, yielding_shapes(basis, heavy, relaxed)


def test_modes_left_out_yield_like_the_rest_of_the_body(body):
    stiffness, mass, basis = body
    keep = np.array([1, 2, 5, 8])
    own, flexibility, shapes = yielding(stiffness, mass, basis)
    _, fewer, fewer_shapes = yielding(stiffness, mass, basis[:, keep])
    np.testing.assert_allclose(block_of_flexibilities(flexibility, own, keep), fewer, rtol=1e-9)
    accelerations = np.random.default_rng(5).normal(size=len(mass))
    force = force_on_kept(flexibility, own, keep) @ (shapes.T @ (mass * accelerations))
    np.testing.assert_allclose(force, fewer_shapes.T @ (mass * accelerations), rtol=1e-9)
    # They go along as the rest does, and so does their mass.
    foretold = foretold_by_kept(flexibility, own, keep)
    np.testing.assert_allclose(shapes @ foretold, fewer_shapes, rtol=1e-8, atol=1e-9)
    heavier = carried_by_kept(shapes.T @ (mass[:, None] * shapes), foretold, own, keep)
    given = basis[:, keep].T @ (mass[:, None] * basis[:, keep])
    np.testing.assert_allclose(given + heavier, fewer_shapes.T @ (mass[:, None] * fewer_shapes), rtol=1e-5)
    held = np.linalg.inv(flexibility)[np.ix_(keep, keep)]
    share = least_share(flexibility, own, keep)
    assert 0.0 < share < 1.0
    left = eigh(np.linalg.inv(fewer) - share * held, held, eigvals_only=True)
    np.testing.assert_allclose(left[0], 0.0, atol=1e-9)
    assert least_share(np.diag([2.0, 3.0]), np.eye(2), np.array([1])) == pytest.approx(1.0)


def test_what_is_likely_of_the_others_answers_the_loads(body):
    """Driven by the loads alone all modes are where these move them; by energy alone where the others yield."""
    stiffness, mass, basis = body
    keep = np.array([0, 3, 4, 6, 7])
    own, flexibility, shapes = yielding(stiffness, mass, basis)
    loads = shapes.T @ (mass[:, None] * np.random.default_rng(8).normal(size=(len(mass), 3)))
    answers = flexibility @ loads @ np.array([0.3, -1.0, 0.5])
    seen = np.linalg.solve(own[np.ix_(keep, keep)], own[keep] @ answers)
    errors = [
        np.linalg.norm(foretold_by_kept(covariance, own, keep) @ seen - answers) / np.linalg.norm(answers)
        for covariance in (flexibility, likely_motion(flexibility, loads), likely_motion(flexibility, 1e-9 * loads))
    ]
    assert errors[1] < 0.9 * errors[0]
    assert errors[2] == pytest.approx(errors[1], rel=1e-6), "how large accelerations are does not matter"
    np.testing.assert_allclose(likely_motion(flexibility, 0.0 * loads), flexibility)
    by_loads = likely_motion(flexibility, loads) - (1.0 - 1e-9) * flexibility
    np.testing.assert_allclose(foretold_by_kept(by_loads, own, keep) @ seen, answers, rtol=1e-4, atol=1e-6)
    assert np.trace(by_loads) == pytest.approx(DRIVEN * np.trace(flexibility), rel=1e-6)


def test_modes_in_the_world_feel_what_those_left_out_felt():
    """Without bones whose loads are known apart all of C is brought over."""
    model = mapped(bar_model(poses=2, interpolation="world", basis_poses=1), flexible=True)
    assert model.yielding is None
    fewer, keep = model.with_modes(3), most_important(model.region_of_mode, model.modes_order, 3)
    brought = force_on_kept(model.cubature.stiffness_map.components[0], model.mass_products[0, 0], keep)
    np.testing.assert_allclose(fewer.inertia, brought @ model.inertia, rtol=1e-12)
    stepper, p = Stepper(fewer), model.poses.parameters[1]
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.02, -0.01, 0.015
    u = fewer.displacement(p, stepper.q)
    np.testing.assert_allclose(stepper.vertex_displacements(), u, atol=2e-4 * np.abs(u).max())


def test_a_flexible_model_of_fewer_modes_is_softer_than_one_cut_out():
    model = mapped(bar_model(poses=2, regions=2, basis_poses=1), flexible=True)
    loads = model.load_count - len(model.poses)
    rng = np.random.default_rng(6)
    beside = 0.1 * rng.normal(size=(4, model.mode_count))
    model = replace(model, yielding=rng.normal(size=(model.mode_count, loads)), carried_mass=beside.T @ beside)
    fewer, p = model.with_modes(3), model.poses.parameters[0]
    keep = most_important(model.region_of_mode, model.modes_order, 3)
    cut = model.linear_part(p)[np.ix_(keep, keep)]
    softest = eigh(fewer.linear_part(p), cut, eigvals_only=True)
    assert softest[0] < 0.9999
    assert softest[-1] < 1.0001
    known, mass = model.cubature.stiffness_map, model.mass_products[0, 0]
    flexibilities = [
        np.linalg.inv(model.linear_part(at) - known.springs(model.positive_weights(at)))
        for at in model.poses.parameters
    ]
    share = min(least_share(flexibility, mass, keep) for flexibility in flexibilities)
    np.testing.assert_allclose(fewer.cubature.weights, share * model.cubature.weights)
    # All of the loads on the modes are brought over, those of the bones by what the modes feel of them on average.
    given = model.inertia[:, :, :loads].mean(axis=0)
    felt = force_on_kept(known.components[0], mass, keep) @ (given + model.yielding)
    np.testing.assert_allclose(given[keep] + fewer.yielding, felt, rtol=1e-5, atol=1e-5)
    foretold = foretold_by_kept(known.components[0], mass, keep)
    moved = foretold.T @ (mass + model.carried_mass) @ foretold
    np.testing.assert_allclose(fewer.moved_mass[0, 0], moved, rtol=1e-5, atol=1e-6 * np.abs(moved).max())
    assert (np.diag(fewer.carried_mass) > 0.0).all()
    # Springs of contacts are cut out: they are no flexibility.
    np.testing.assert_array_equal(fewer.cubature.stiffness_map.components[1], known.components[1][np.ix_(keep, keep)])


def test_a_stiffness_that_is_mixed_is_cut_out():
    model = mapped(bar_model(poses=2, regions=2))
    fewer, keep, p = (
        model.with_modes(3),
        most_important(model.region_of_mode, model.modes_order, 3),
        model.poses.parameters[-1],
    )
    np.testing.assert_allclose(fewer.linear_part(p), model.linear_part(p)[np.ix_(keep, keep)], rtol=1e-6)
    np.testing.assert_array_equal(fewer.cubature.weights, model.cubature.weights)
