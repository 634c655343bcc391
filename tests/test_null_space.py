"""Sparse null spaces: exact, of full rank, sparse, and honest about redundant rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space as dense_null_space
from scipy.sparse import csr_array, random_array

from softrig.errors import InputError, NotFiniteError
from softrig.numerics.null_space import eliminate, null_space, require_null_space


def sliding_rows(vertices, normals, count):
    """One row a vertex: n · u_v."""
    rows = np.repeat(np.arange(len(vertices)), 3)
    columns = (3 * np.asarray(vertices)[:, None] + np.arange(3)).ravel()
    return csr_array((np.ravel(normals), (rows, columns)), shape=(len(vertices), 3 * count))


def assert_is_null_space(constraints, elimination):
    Z = elimination.null_space.toarray()
    C = constraints.toarray()
    lengths = np.linalg.norm(C, axis=1)
    residual = (C / np.where(lengths > 0.0, lengths, 1.0)[:, None]) @ Z
    assert np.abs(residual).max(initial=0.0) < 1e-12
    assert Z.shape[1] == C.shape[1] - np.linalg.matrix_rank(C)
    assert np.linalg.matrix_rank(Z) == Z.shape[1]
    exact = dense_null_space(C)
    assert np.linalg.norm(Z - exact @ (exact.T @ Z)) < 1e-10 * max(np.linalg.norm(Z), 1.0)


def test_a_sliding_row_eliminates_its_largest_entry_and_touches_its_own_vertex_only():
    rows = sliding_rows([2], [[0.1, -0.9, 0.3]], 4)
    found = eliminate(rows)
    assert found.pivots.tolist() == [7]
    assert_is_null_space(rows, found)
    Z = found.null_space
    assert Z.nnz == 11 + 2
    # u_y = (0.1 u_x + 0.3 u_z)/0.9
    assert Z[[7], :].toarray().ravel()[[6, 7]] == pytest.approx([0.1 / 0.9, 0.3 / 0.9])


def test_unknowns_that_no_row_touches_stay_as_they_are():
    rng = np.random.default_rng(0)
    rows = sliding_rows([1, 5, 8], rng.standard_normal((3, 3)), 10)
    Z = null_space(rows).toarray()
    untouched = np.setdiff1d(np.arange(30), np.unique(rows.indices))
    assert np.array_equal(Z[untouched] != 0.0, Z[untouched] == 1.0)
    assert (np.abs(Z[untouched]).sum(axis=1) == 1.0).all()
    assert np.abs(Z).max() <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_vertices_against_triangles_of_vertices_that_are_in_contact_themselves(seed):
    """Rows of 12 entries that share vertices: elimination must fill in and stay exact."""
    rng = np.random.default_rng(seed)
    rows, columns, values = [], [], []
    for row in range(40):
        nodes = rng.choice(30, 4, replace=False)
        normal = rng.standard_normal(3)
        shares = np.concatenate([[1.0], -rng.dirichlet(np.ones(3))])
        rows += [row] * 12
        columns += (3 * nodes[:, None] + np.arange(3)).ravel().tolist()
        values += (shares[:, None] * normal).ravel().tolist()
    constraints = csr_array((values, (rows, columns)), shape=(40, 90))
    found = eliminate(constraints)
    assert_is_null_space(constraints, found)
    assert len(found.independent) + len(found.redundant) == 40


@pytest.mark.parametrize("seed", range(3))
def test_random_sparse_rows_of_any_rank(seed):
    rng = np.random.default_rng(seed)
    base = random_array((6, 20), density=0.3, rng=rng)
    mixed = csr_array(csr_array(random_array((9, 6), density=0.5, rng=rng)) @ csr_array(base))
    found = eliminate(mixed)
    assert_is_null_space(mixed, found)


def test_repeated_opposite_scaled_and_empty_rows_are_reported_and_change_nothing():
    one = sliding_rows([0, 1], [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], 3).toarray()
    every = np.concatenate([one, -5.0 * one[:1], np.zeros((1, 9)), one[:1] + 1e-4 * one[1:]])
    found = eliminate(csr_array(every))
    assert found.independent.tolist() == [0, 1]
    assert found.redundant.tolist() == [2, 3, 4]
    assert_is_null_space(csr_array(every), found)


def test_rows_that_differ_by_less_than_a_millionth_are_one_row():
    base = np.array([[1.0, 1.0, 0.0, 0.0]])
    nearly, rather = base + 1e-8 * np.eye(4)[2], base + 1e-4 * np.eye(4)[2]
    assert eliminate(csr_array(np.concatenate([base, nearly]))).redundant.size == 1
    assert eliminate(csr_array(np.concatenate([base, rather]))).redundant.size == 0


def test_three_rows_hold_a_vertex_altogether_and_a_fourth_is_redundant():
    rng = np.random.default_rng(3)
    rows = sliding_rows([1, 1, 1, 1], rng.standard_normal((4, 3)), 2)
    found = eliminate(rows)
    assert sorted(found.pivots.tolist()) == [3, 4, 5]
    assert len(found.redundant) == 1
    assert np.abs(found.null_space.toarray()[3:]).max() < 1e-12
    assert_is_null_space(rows, found)


def test_no_rows_leave_everything_free():
    Z = null_space(csr_array((0, 7)))
    assert np.array_equal(Z.toarray(), np.eye(7))


def test_rows_that_are_not_finite_are_named():
    rows = sliding_rows([0, 1], [[1.0, 2.0, 3.0], [0.0, np.nan, 0.0]], 3)
    with pytest.raises(NotFiniteError) as caught:
        null_space(rows)
    assert caught.value.indices.tolist() == [1]


def test_a_null_space_of_another_body_is_refused():
    with pytest.raises(InputError, match="9 unknowns"):
        require_null_space(csr_array(np.eye(6)), 9)
