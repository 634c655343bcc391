"""Normalised biharmonic weights (PSSD Eq. 2) against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import InputError, NotFiniteError
from softrig.numerics.rbf import BiharmonicWeights, positive_weights


@pytest.fixture
def poses() -> np.ndarray:
    return np.random.default_rng(4).normal(size=(7, 5))


def test_one_at_its_own_pose_and_zero_at_the_others(poses: np.ndarray) -> None:
    assert BiharmonicWeights(poses)(poses) == pytest.approx(np.eye(7), abs=1e-13)


def test_weights_solve_the_interpolation_problem(poses: np.ndarray) -> None:
    """A function Σ_j c_j ‖f − f_j‖ through given values, divided by the same through ones, is what the weights give."""
    rng = np.random.default_rng(5)
    values, f = rng.normal(size=7), rng.normal(size=5)
    distances = np.array([[np.linalg.norm(a - b) for b in poses] for a in poses])
    at_f = np.array([np.linalg.norm(f - a) for a in poses])
    through_values = np.linalg.solve(distances, values) @ at_f
    through_ones = np.linalg.solve(distances, np.ones(7)) @ at_f
    assert BiharmonicWeights(poses)(f) @ values == pytest.approx(through_values / through_ones, rel=1e-12)


def test_weights_sum_to_one_and_the_sum_before_is_at_least_half(poses: np.ndarray) -> None:
    weights = BiharmonicWeights(poses)
    f = np.random.default_rng(6).normal(scale=3.0, size=(4, 50, 5))
    assert weights(f).shape == (4, 50, 7)
    assert weights(f).sum(axis=-1) == pytest.approx(np.ones((4, 50)))
    raw = np.linalg.norm(f[..., None, :] - poses, axis=-1) @ weights.matrix
    assert raw.sum(axis=-1).min() >= 0.5


def test_matrix_serves_compiled_code(poses: np.ndarray) -> None:
    weights = BiharmonicWeights(poses)
    f = np.linspace(-1.0, 1.0, 5)
    raw = weights.matrix.T @ np.linalg.norm(f - poses, axis=1)
    assert weights(f) == pytest.approx(raw / raw.sum())
    assert np.array_equal(weights.matrix, weights.matrix.T)


def test_far_away_the_weights_reach_their_limit(poses: np.ndarray) -> None:
    weights = BiharmonicWeights(poses)
    for direction in np.random.default_rng(7).normal(size=(3, 5)):
        assert weights(1e9 * direction) == pytest.approx(weights.limit, abs=1e-7)
    assert weights.limit.sum() == pytest.approx(1.0)


def test_two_poses_share_by_distance() -> None:
    weights = BiharmonicWeights(np.array([[0.0], [2.0]]))
    assert weights(np.array([0.5])) == pytest.approx([0.75, 0.25])
    assert weights(np.array([-2.0])) == pytest.approx([2 / 3, 1 / 3])


def test_units_of_the_features_do_not_matter(poses: np.ndarray) -> None:
    f = np.ones((3, 5)) * 0.3
    assert BiharmonicWeights(1e4 * poses)(1e4 * f) == pytest.approx(BiharmonicWeights(poses)(f))


def test_one_pose_has_weight_one_everywhere() -> None:
    assert np.array_equal(BiharmonicWeights(np.ones((1, 3)))(np.zeros((2, 4, 3))), np.ones((2, 4, 1)))
    assert BiharmonicWeights(np.zeros((1, 0)))(np.zeros(0)) == pytest.approx([1.0])


def test_coincident_poses_are_named(poses: np.ndarray) -> None:
    poses[5] = poses[2]
    with pytest.raises(InputError, match="2 and 5") as caught:
        BiharmonicWeights(poses)
    assert list(caught.value.indices) == [2, 5]


def test_nan_wrong_shape_and_no_pose_are_errors(poses: np.ndarray) -> None:
    poses[3, 1] = np.nan
    with pytest.raises(NotFiniteError, match="index 3"):
        BiharmonicWeights(poses)
    with pytest.raises(InputError, match="at least one"):
        BiharmonicWeights(np.zeros((0, 3)))
    with pytest.raises(InputError, match="entries"):
        BiharmonicWeights(np.eye(3))(np.zeros(4))


def test_positive_weights_are_convex() -> None:
    assert positive_weights(np.array([[1.2, -0.2], [0.3, 0.7]])) == pytest.approx(np.array([[1.0, 0.0], [0.3, 0.7]]))
