"""Sparse solvers, the lowest eigenpairs and mass-PCA against dense linear algebra."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csr_array, diags_array, eye_array, random_array

from softrig.errors import InputError, ModeCountError, NotFiniteError, SolverError
from softrig.fem.material import Material
from softrig.meshing import box_tets
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_orthonormal, mass_pca
from softrig.numerics.sparse import lowest_eigenpairs, singular_solve, symmetric_solver

needs_pardiso = pytest.mark.skipif(
    find_spec("pypardiso") is None, reason="pypardiso is not installed: MKL exists for x86_64 only"
)
PARDISO = pytest.param("pardiso", marks=needs_pardiso)
every_solver = pytest.mark.parametrize("solver", ["superlu", PARDISO])


def random_symmetric(size=60, seed=0):
    half = random_array((size, size), density=0.06, rng=np.random.default_rng(seed))
    return csr_array(half + half.T)


def definite_matrix(size=60, seed=0):
    matrix = random_symmetric(size, seed)
    return csr_array(matrix + diags_array(abs(matrix).sum(axis=1) + 0.5))


def indefinite_matrix(size=60, seed=0):
    """Diagonally dominant with both signs on the diagonal: regular and indefinite."""
    matrix = random_symmetric(size, seed)
    signs = np.where(np.arange(size) % 3 == 0, -1.0, 1.0)
    return csr_array(matrix + diags_array(signs * (abs(matrix).sum(axis=1) + 0.5)))


def assert_solves(factor, matrix, seed=1):
    rng = np.random.default_rng(seed)
    for shape in ((matrix.shape[0],), (matrix.shape[0], 4)):
        right = rng.standard_normal(shape)
        expected = np.linalg.solve(matrix.toarray(), right)
        got = factor.solve(right)
        assert got.shape == shape
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(factor.inverse_products(right), right.T @ expected, rtol=0, atol=1e-9)


@every_solver
@pytest.mark.parametrize("definite", [True, False])
def test_solvers_solve_definite_systems(solver, definite):
    factor = symmetric_solver(solver, definite=definite)
    factor.factorise(definite_matrix())
    assert_solves(factor, definite_matrix())


@every_solver
def test_solvers_solve_indefinite_systems(solver):
    matrix = indefinite_matrix()
    values = np.linalg.eigvalsh(matrix.toarray())
    assert values[0] < 0.0 < values[-1]
    factor = symmetric_solver(solver, definite=False)
    factor.factorise(matrix)
    assert_solves(factor, matrix)


@every_solver
def test_refactorising_with_the_same_pattern_uses_the_new_values(solver):
    factor = symmetric_solver(solver)
    matrix = definite_matrix()
    shared = csr_array((2.0 * matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    equal = csr_array((3.0 * matrix.data, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
    for again in (matrix, shared, equal, matrix):
        factor.factorise(again)
        assert_solves(factor, again)


@every_solver
def test_refactorising_with_another_pattern_or_size_starts_anew(solver):
    factor = symmetric_solver(solver)
    for again in (definite_matrix(), definite_matrix(seed=3), definite_matrix(size=25), definite_matrix()):
        factor.factorise(again)
        assert_solves(factor, again)


@every_solver
def test_a_solver_is_usable_again_after_a_failure(solver):
    factor = symmetric_solver(solver)
    matrix = definite_matrix()
    factor.factorise(matrix)
    with pytest.raises(SolverError):
        factor.factorise(csr_array((0.0 * matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape))
    factor.factorise(matrix)
    assert_solves(factor, matrix)


@needs_pardiso
def test_pardiso_notices_that_a_matrix_declared_definite_is_not():
    with pytest.raises(SolverError, match="not positive definite"):
        symmetric_solver("pardiso", definite=True).factorise(indefinite_matrix())


SINGULAR = {
    "free chain": np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]),
    "rank one": np.ones((4, 4)),
    "empty row": np.diag([1.0, 0.0, 2.0]),
    "indefinite": np.array([[1.0, 2, 0, 0], [2, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]),
}


@every_solver
@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR.keys())
def test_singular_matrices_are_refused(solver, definite, matrix):
    with pytest.raises(SolverError):
        symmetric_solver(solver, definite=definite).factorise(csr_array(matrix))


@every_solver
@pytest.mark.parametrize("definite", [True, False])
def test_a_zero_stored_on_the_diagonal_is_refused(solver, definite):
    stored = csr_array((np.array([1.0, 0.0, 2.0]), np.arange(3), np.arange(4)), shape=(3, 3))
    assert stored.nnz == 3
    with pytest.raises(SolverError):
        symmetric_solver(solver, definite=definite).factorise(stored)


UNSORTED_COLUMNS = """
import sys
import numpy as np
from scipy.sparse import csr_array
from softrig.numerics.sparse import symmetric_solver

dense = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 9.0]])
backwards = csr_array((dense[:, ::-1].ravel(), np.tile([2, 1, 0], 3), np.arange(0, 10, 3)), shape=(3, 3))
factor = symmetric_solver(sys.argv[1])
factor.factorise(backwards)
np.testing.assert_allclose(dense @ factor.solve(np.ones(3)), 1.0, atol=1e-12)
"""


@every_solver
def test_columns_may_stand_in_any_order(solver):
    """SciPy's products leave rows unsorted, and PARDISO crashes on them: hence a process of its own."""
    outcome = subprocess.run([sys.executable, "-c", UNSORTED_COLUMNS, solver], capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr.decode()


@needs_pardiso
def test_an_unanchored_body_has_no_static_solution():
    """K(0) of a free body is singular; an answer of 1e13 metres is no answer."""
    body = FullBody(box_tets((1.0, 1.0, 1.0), (2, 2, 2)), Material(1e3, 0.3, 1e3), solver="pardiso")
    with pytest.raises(SolverError):
        body.solve(body.rest_stiffness, np.ones(body.size))


@every_solver
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_matrices_that_are_not_finite_are_refused(solver, bad):
    matrix = definite_matrix()
    matrix.data[5] = bad
    with pytest.raises(SolverError, match="NaN or infinity"):
        symmetric_solver(solver).factorise(matrix)


def test_unknown_solver_names_the_known_ones():
    with pytest.raises(InputError, match="auto, superlu, pardiso"):
        symmetric_solver("abacus")


@pytest.fixture(scope="module")
def beam():
    mesh = box_tets((1.0, 0.3, 0.2), (5, 2, 2))
    return FullBody(mesh, Material(1e4, 0.3, 1e3), fixed=mesh.vertices[:, 0] == 0.0, solver="superlu")


@every_solver
@pytest.mark.parametrize("count", [1, 8, 60])
def test_lowest_eigenpairs_equal_dense_ones(solver, count, beam):
    """60 of 135 goes the dense way inside, 1 and 8 through Lanczos."""
    K, M = beam.rest_stiffness, beam.mass
    values, vectors = lowest_eigenpairs(K, M, count, solver=solver)
    expected = eigh(K.toarray(), M.toarray(), eigvals_only=True)[:count]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ (M @ vectors), np.eye(count), rtol=0, atol=1e-10)
    residual = K @ vectors - (M @ vectors) * values
    assert np.abs(residual).max() < 1e-7 * np.abs(K @ vectors).max()


@every_solver
@pytest.mark.parametrize("count", [3, 60])
def test_lowest_eigenpairs_leave_out_a_known_null_space(solver, count, beam):
    free = FullBody(beam.mesh, beam.material, solver="superlu")
    K, M = free.rest_stiffness, free.mass
    expected, vectors = eigh(K.toarray(), M.toarray())
    values, found = lowest_eigenpairs(K, M, count, null_space=vectors[:, :6], solver=solver)
    np.testing.assert_allclose(values, expected[6 : 6 + count], rtol=1e-9)
    assert np.abs(vectors[:, :6].T @ (M @ found)).max() < 1e-7


@every_solver
@pytest.mark.parametrize("definite", [True, False])
def test_a_singular_solve_drops_the_null_space_from_load_and_answer(solver, definite, beam):
    free = FullBody(beam.mesh, beam.material, solver="superlu")
    K, M = free.rest_stiffness, free.mass
    values, vectors = eigh(K.toarray(), M.toarray())
    null, matrix = (vectors[:, :6], K) if definite else (vectors[:, 9:10], csr_array(K - values[9] * M))
    right = np.random.default_rng(5).standard_normal((free.size, 2))
    x = singular_solve(matrix, M, null, definite=definite, solver=solver)(right)
    assert np.abs(null.T @ (M @ x)).max() < 1e-9 * np.abs(x).max()
    balanced = right - M @ (null @ (null.T @ right))
    assert np.abs(matrix @ x - balanced).max() < 1e-8 * np.abs(balanced).max()


@every_solver
@pytest.mark.parametrize("count", [8, 60])
def test_lowest_eigenpairs_repeat_bit_for_bit(solver, count, beam):
    one = lowest_eigenpairs(beam.rest_stiffness, beam.mass, count, solver=solver)
    other = lowest_eigenpairs(beam.rest_stiffness, beam.mass, count, solver=solver)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_eigenvectors_point_the_same_way_whatever_the_solver(beam):
    _, lanczos = lowest_eigenpairs(beam.rest_stiffness, beam.mass, 6, solver="superlu")
    _, dense = lowest_eigenpairs(beam.rest_stiffness, beam.mass, beam.size, solver="superlu")
    np.testing.assert_allclose(lanczos, dense[:, :6], rtol=0, atol=1e-6 * np.abs(dense).max())


def test_more_eigenpairs_than_rows_are_refused():
    matrix = csr_array(eye_array(5))
    with pytest.raises(ModeCountError):
        lowest_eigenpairs(matrix, matrix, 6)


def pca_case(seed=0):
    """Eight samples of falling size in 30 dimensions, and a full mass matrix L Lᵀ."""
    rng = np.random.default_rng(seed)
    L = np.tril(rng.uniform(-0.3, 0.3, (30, 30))) + np.diag(rng.uniform(1.0, 2.0, 30))
    samples = rng.standard_normal((30, 8)) * 0.6 ** np.arange(8)
    return samples, csr_array(L @ L.T), L


def test_mass_pca_is_the_svd_of_the_mass_weighted_samples():
    samples, mass, L = pca_case()
    basis, singular = mass_pca(samples, mass, 5)
    left, expected, _ = np.linalg.svd(L.T @ samples, full_matrices=False)
    np.testing.assert_allclose(singular, expected[:5], rtol=1e-10)
    np.testing.assert_allclose(np.abs(left[:, :5].T @ L.T @ basis), np.eye(5), rtol=0, atol=1e-8)
    assert subspace_angles(L.T @ basis, left[:, :5]).max() < 1e-8


@pytest.mark.parametrize("size", [1, 5, 8])
def test_mass_pca_basis_is_mass_orthonormal(size):
    samples, mass, _ = pca_case(1)
    samples = samples * 10.0 ** -np.arange(0.0, 4.0, 0.5)
    basis, _ = mass_pca(samples, mass, size)
    np.testing.assert_allclose(basis.T @ (mass @ basis), np.eye(size), rtol=0, atol=1e-12)


def test_mass_pca_of_more_modes_than_the_samples_span_is_refused():
    samples, mass, _ = pca_case(2)
    dependent = np.hstack([samples[:, :3], samples[:, :3] @ np.random.default_rng(0).standard_normal((3, 4))])
    assert mass_pca(dependent, mass, 3)[0].shape == (30, 3)
    with pytest.raises(ModeCountError, match="only 3"):
        mass_pca(dependent, mass, 4)
    with pytest.raises(ModeCountError, match="only 0"):
        mass_pca(np.zeros((30, 2)), mass, 1)


def test_mass_pca_names_samples_that_are_not_finite():
    samples, mass, _ = pca_case(3)
    samples[4, 6] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        mass_pca(samples, mass, 2)
    assert caught.value.indices.tolist() == [6]


def test_orthonormalising_keeps_the_first_direction_and_the_spans():
    samples, mass, _ = pca_case(4)
    basis = mass_orthonormal(samples, mass)
    np.testing.assert_allclose(basis.T @ (mass @ basis), np.eye(8), rtol=0, atol=1e-12)
    for size in (1, 4, 8):
        assert subspace_angles(basis[:, :size], samples[:, :size]).max() < 1e-7
    assert basis[:, 0] @ (mass @ samples[:, 0]) > 0.0


def test_orthonormalising_nearly_parallel_columns_is_still_exact():
    samples, mass, _ = pca_case(5)
    nearly_parallel = samples[:, :1] + 1e-5 * samples
    basis = mass_orthonormal(nearly_parallel[:, 1:5], mass)
    np.testing.assert_allclose(basis.T @ (mass @ basis), np.eye(4), rtol=0, atol=1e-12)
