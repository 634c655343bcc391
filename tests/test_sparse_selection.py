"""Columns with weights ≥ 0: against scipy's NNLS, brute force, and planted solutions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from softrig.errors import InputError, NotFiniteError
from softrig.numerics.sparse_selection import METHODS, nonnegative_weights, sparse_selection


def positive_problem(rows, columns, planted, seed=0, noise=0.0):
    """Random columns of very different lengths, and the sum of a few of them with positive weights."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, columns)) * rng.uniform(0.2, 2.0, columns)
    x = np.zeros(columns)
    x[rng.choice(columns, planted, replace=False)] = rng.uniform(0.5, 2.0, planted)
    return A, A @ x + noise * rng.normal(size=rows), x


@pytest.mark.parametrize("seed", range(6))
def test_active_set_run_to_the_end_is_nnls(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(40, 30)), rng.normal(size=40)
    expected, residual = nnls(A, b)
    for method in ("nnls", "greedy"):
        found = sparse_selection(A, b, 30, method=method, seed=seed)
        x = np.zeros(30)
        x[found.support] = found.weights
        np.testing.assert_allclose(x, expected, atol=1e-9)
        assert found.error == pytest.approx(residual / np.linalg.norm(b), rel=1e-9)


def test_each_choice_lowers_the_error_though_columns_are_much_alike():
    rng = np.random.default_rng(2)
    A = 1.0 + 0.3 * rng.normal(size=(60, 120))
    b = A @ rng.uniform(0.0, 1.0, 120) * (1.0 + 0.2 * rng.normal(size=60))
    errors = [sparse_selection(A, b, count).error for count in range(1, 25)]
    assert (np.diff(errors) <= 1e-12).all()
    expected = nnls(A, b)[1] / np.linalg.norm(b)
    assert sparse_selection(A, b, 120).error == pytest.approx(expected, rel=1e-8)


def test_active_set_wider_than_tall():
    rng = np.random.default_rng(3)
    A = np.abs(rng.normal(size=(12, 200)))
    b = A @ rng.uniform(0.0, 1.0, 200)
    found = sparse_selection(A, b, 60)
    assert len(found.support) <= 12
    assert found.error < 1e-8
    assert nnls(A, b)[1] < 1e-8


@pytest.mark.parametrize("method", METHODS)
def test_planted_solution_is_found(method):
    A, b, x = positive_problem(120, 300, 10, seed=1)
    found = sparse_selection(A, b, 10, method=method)
    np.testing.assert_array_equal(found.support, np.flatnonzero(x))
    np.testing.assert_allclose(found.weights, x[found.support], rtol=1e-9)
    assert found.error < 1e-10


@pytest.mark.parametrize("method", ["greedy", "htp"])
def test_the_length_of_a_column_does_not_matter(method):
    """Tets of a hand and of a belly: a pursuit that compared raw entries would only ever see the long ones."""
    A, b, x = positive_problem(120, 300, 10, seed=1)
    lengths = np.logspace(-2, 2, 300)
    found = sparse_selection(A * lengths, b, 10, method=method)
    np.testing.assert_array_equal(found.support, np.flatnonzero(x))
    np.testing.assert_allclose(found.weights, (x / lengths)[found.support], rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_close_to_the_best_of_all_subsets(method):
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A, b = np.abs(rng.normal(size=(15, 9))), np.abs(rng.normal(size=15)) + 1.0
        best = min(nnls(A[:, chosen], b)[1] for chosen in combinations(range(9), 3)) / np.linalg.norm(b)
        found = sparse_selection(A, b, 3, method=method, seed=seed)
        assert len(found.support) <= 3
        assert found.error >= best - 1e-12
        ratios.append(found.error / best)
    assert np.mean(ratios) < 1.25


@pytest.mark.parametrize("method", METHODS)
def test_more_columns_are_never_worse_and_weights_are_optimal(method):
    A, b, _ = positive_problem(80, 150, 60, seed=4, noise=0.3)
    errors = []
    for count in (5, 15, 40):
        found = sparse_selection(A, b, count, method=method)
        assert len(found.support) <= count
        assert (found.weights > 0.0).all()
        assert (np.diff(found.support) > 0).all()
        again, error = nonnegative_weights(A[:, found.support], b)
        np.testing.assert_allclose(found.weights, again, rtol=1e-7, atol=1e-9)
        assert found.error == pytest.approx(error, rel=1e-9)
        errors.append(found.error)
    assert errors[0] > errors[1] > errors[2]


def test_weights_on_a_support_equal_scipy_with_and_without_compression():
    rng = np.random.default_rng(5)
    for rows in (12, 400):
        A = rng.normal(size=(rows, 10)) * np.logspace(-4, 4, 10)
        b = A @ np.where(np.arange(10) % 2, 1.0, -1.0) * 1e-4 + rng.normal(size=rows)
        weights, error = nonnegative_weights(A, b)
        lengths = np.linalg.norm(A, axis=0)
        expected, residual = nnls(A / lengths, b)
        np.testing.assert_allclose(weights * lengths, expected, atol=1e-9)
        assert error == pytest.approx(residual / np.linalg.norm(b), rel=1e-9)
        assert (weights >= 0.0).all()


def test_greedy_depends_on_its_seed_alone():
    A, b, _ = positive_problem(60, 1500, 40, seed=6, noise=0.5)
    one, same, other = (sparse_selection(A, b, 20, method="greedy", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.support, same.support)
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.support, other.support)


def test_repeated_and_empty_columns_do_no_harm():
    A, b, _ = positive_problem(50, 20, 6, seed=7)
    A = np.column_stack([A, A, np.zeros((50, 3))])
    for method in METHODS:
        found = sparse_selection(A, b, 25, method=method)
        assert found.error < (1e-8 if method != "htp" else 0.5)
        assert np.isfinite(found.weights).all()
        assert (found.support < 40).all()


def test_nothing_to_match():
    found = sparse_selection(np.eye(3), np.zeros(3), 2)
    assert found.support.size == 0
    assert found.error == 0.0
    # No column points the target's way: nothing is chosen.
    assert sparse_selection(-np.eye(3), np.ones(3), 2).support.size == 0


def test_progress_is_told():
    told = []
    A, b, _ = positive_problem(40, 50, 10)
    sparse_selection(A, b, 8, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (8, 8)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="no selection called 'lasso'"):
        sparse_selection(np.eye(3), np.ones(3), 2, method="lasso")
    with pytest.raises(InputError, match="must be"):
        sparse_selection(np.eye(3), np.ones(4), 2)
    with pytest.raises(InputError, match="at least one"):
        sparse_selection(np.eye(3), np.ones(3), 0)
    A = np.eye(3)
    A[0, 2] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        sparse_selection(A, np.ones(3), 2)
    assert list(caught.value.indices) == [2]
