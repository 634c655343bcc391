"""Sparse symmetric systems: direct solves and the lowest eigenpairs.

Two solvers behind one door. SuperLU comes with SciPy and is always there. PARDISO (the optional
`fast` extra) uses the symmetry and keeps its analysis while the pattern stays the same.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu
from threadpoolctl import threadpool_limits

from softrig.errors import InputError, ModeCountError, SolverError

SOLVERS = ("auto", "superlu", "pardiso")

_DEFINITE, _INDEFINITE = 2, -2
"""PARDISO's types of real symmetric matrices."""
_SETTINGS = {_DEFINITE: {1: 1, 2: 2, 8: 0}, _INDEFINITE: {1: 1, 2: 2, 8: 5, 10: 8, 21: 1}}
"""Nested dissection; up to five refinements to mend pivots perturbed at 1e-8, and Bunch-Kaufman pivoting. Definite
matrices need none: two refinements, which are the default, leave the residual as it is and make a solve thrice as
long."""


class SymmetricSolver(Protocol):
    """A factorised symmetric matrix. `factorise` may be called again, best with the same pattern."""

    def factorise(self, matrix: csr_array) -> None:
        """Factorise; raises `SolverError` for a singular matrix (or an indefinite one, if declared definite)."""

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve for one (n,) or many (n, m) right-hand sides."""

    def inverse_products(self, right: np.ndarray) -> np.ndarray:
        """(m, m) BᵀK⁻¹B of `right` B (n, m); for many columns cheaper than to solve."""


def symmetric_solver(name: str = "auto", *, definite: bool = True) -> SymmetricSolver:
    """The solver called `name`; "auto" is PARDISO where installed, SuperLU otherwise.

    `definite` promises positive definite matrices, which PARDISO is faster for; both notice a broken promise.
    """
    if name not in SOLVERS:
        raise InputError(f"no sparse solver called {name!r}; there are {', '.join(SOLVERS)}")
    installed = find_spec("pypardiso") is not None
    if name == "pardiso" and not installed:
        raise InputError("the pardiso solver needs the optional package: pip install 'softrig[fast]'")
    if name == "pardiso" or (name == "auto" and installed):
        return _Pardiso(definite)
    return _SuperLU(definite)


class _SuperLU:
    """SciPy's LU with an ordering for symmetric patterns."""

    def __init__(self, definite: bool) -> None:
        self._definite = definite
        self._factor: Any = None

    def factorise(self, matrix: csr_array) -> None:
        _require_finite(matrix)
        try:
            self._factor = splu(
                matrix.T, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options={"SymmetricMode": True}
            )
        except RuntimeError as error:
            raise SolverError(f"the sparse factorisation failed: {error}") from error
        if self._definite and not self._found_definite():
            raise SolverError("the sparse factorisation failed: the matrix is not positive definite")

    def _found_definite(self) -> bool:
        """Whether elimination took every pivot from the diagonal and found it positive (Sylvester's law of inertia)."""
        factor = self._factor
        return bool(np.array_equal(factor.perm_r, factor.perm_c) and (factor.U.diagonal() > 0.0).all())

    def solve(self, right: np.ndarray) -> np.ndarray:
        return self._factor.solve(np.ascontiguousarray(right))

    def inverse_products(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(right.T @ self.solve(right))


class _Pardiso:
    """MKL PARDISO on the upper triangle; the analysis is kept while the pattern stays the same."""

    def __init__(self, definite: bool) -> None:
        self._definite = definite
        self._solver = _pardiso(_DEFINITE if definite else _INDEFINITE)
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None
        self._upper_entries = np.zeros(0, np.int64)
        self._upper: Any = None
        self._finalise = weakref.finalize(self, _release, self._solver)

    def factorise(self, matrix: csr_array) -> None:
        _require_finite(matrix)
        if not matrix.has_canonical_format:  # unsorted columns crash PARDISO
            matrix = csr_array(matrix, copy=True)
            matrix.sum_duplicates()
        if not self._same_pattern(matrix):
            self._analyse(matrix)
        self._upper.data[:] = matrix.data[self._upper_entries]
        self._call(22, np.zeros(matrix.shape[0]))
        if self._solver.get_iparm(14) > 0:
            self._require_regular(matrix)

    def solve(self, right: np.ndarray) -> np.ndarray:
        return self._call(33, np.asfortranarray(right, dtype=np.float64))

    def inverse_products(self, right: np.ndarray) -> np.ndarray:
        if not self._definite:
            return np.asarray(right.T @ self.solve(right))
        # K = LLᵀ: half of the solve tells them, as (L⁻¹B)ᵀ(L⁻¹B).
        half = self._call(331, np.asfortranarray(right, dtype=np.float64))
        return np.asarray(half.T @ half)

    def _require_regular(self, matrix: csr_array) -> None:
        """PARDISO made up pivots where it found none: refinement mends that, but not in a singular matrix.

        A solve with any right-hand side tells: only a singular matrix answers hugely, or wrongly.
        """
        right = np.random.default_rng(0).standard_normal(matrix.shape[0])
        answer = self.solve(right)
        huge = 1e12 * np.linalg.norm(right)
        wrong = np.linalg.norm(matrix @ answer - right) > 1e-6 * np.linalg.norm(right)
        if wrong or not np.abs(matrix.data).max() * np.linalg.norm(answer) < huge:
            raise SolverError("the sparse factorisation failed: the matrix is singular")

    def _same_pattern(self, matrix: csr_array) -> bool:
        if self._pattern is None:
            return False
        indptr, indices = self._pattern
        if indptr is matrix.indptr and indices is matrix.indices:
            return True
        return np.array_equal(indptr, matrix.indptr) and np.array_equal(indices, matrix.indices)

    def _analyse(self, matrix: csr_array) -> None:
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        self._upper_entries = np.nonzero(matrix.indices >= rows)[0]
        counts = np.bincount(rows[self._upper_entries], minlength=matrix.shape[0])
        if not counts.all():  # PARDISO crashes on an empty row
            raise SolverError("the matrix has an empty row: it is singular")
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        columns = matrix.indices[self._upper_entries].astype(np.int32)
        data = matrix.data[self._upper_entries]
        self._upper = csr_array((data, columns, indptr), shape=matrix.shape)
        self._pattern = (matrix.indptr, matrix.indices)
        self._call(11, np.zeros(matrix.shape[0]))

    def _call(self, phase: int, right: np.ndarray) -> np.ndarray:
        from pypardiso.pardiso_wrapper import PyPardisoError

        self._solver.set_phase(phase)
        try:
            return self._solver._call_pardiso(self._upper, right)
        except PyPardisoError as error:
            if phase not in (33, 331):
                self._pattern = None
            reason = "is not positive definite" if error.value == -4 else f"gave PARDISO error {error.value}"
            raise SolverError(f"the sparse factorisation failed: the matrix {reason}") from error


def _pardiso(matrix_type: int) -> Any:
    """A PARDISO handle. Finding MKL on the disk takes pypardiso 0.2 s each time; it is told after the first."""
    from pypardiso import PyPardisoSolver

    solver = PyPardisoSolver(mtype=matrix_type)
    os.environ.setdefault("PYPARDISO_MKL_RT", solver.libmkl._name)
    for place, value in _SETTINGS[matrix_type].items():
        solver.set_iparm(place, value)
    return solver


def _release(solver: Any) -> None:
    solver.free_memory(everything=True)


def _require_finite(matrix: csr_array) -> None:
    if not np.isfinite(matrix.data).all():
        raise SolverError("the matrix holds NaN or infinity")


def singular_solve(
    matrix: csr_array, mass: csr_array, null_space: np.ndarray, *, definite: bool, solver: str = "auto"
) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves A x = b − M N Nᵀb with NᵀM x = 0, for a symmetric A with A N = 0, NᵀM N = I.

    What of b pulls along the null space N is dropped, and the answer has nothing of it. As many entries
    of x are held as N has columns, those where N is most independent; what is left of A is regular, and
    positive definite where A is semidefinite (`definite`).
    """
    weighted = mass @ null_space
    held = qr(null_space.T, mode="r", pivoting=True)[1][: null_space.shape[1]]
    kept = np.setdiff1d(np.arange(matrix.shape[0]), held)
    factor = symmetric_solver(solver, definite=definite)
    factor.factorise(csr_array(matrix[kept][:, kept]))

    def solve(right: np.ndarray) -> np.ndarray:
        balanced = right - weighted @ (null_space.T @ right)
        answer = np.zeros_like(balanced)
        answer[kept] = factor.solve(balanced[kept])
        return answer - null_space @ (weighted.T @ answer)

    return solve


def stiffness_solve(
    stiffness: csr_array, mass: csr_array, null_space: np.ndarray | None, *, solver: str = "auto"
) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves K x = b for a positive definite K, or as `singular_solve` does for a semidefinite one."""
    if null_space is not None:
        return singular_solve(stiffness, mass, null_space, definite=True, solver=solver)
    factor = symmetric_solver(solver)
    factor.factorise(stiffness)
    return factor.solve


def lowest_eigenpairs(
    stiffness: csr_array,
    mass: csr_array,
    count: int,
    *,
    null_space: np.ndarray | None = None,
    solver: str = "auto",
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` lowest eigenpairs of K x = λ M x: (count,), (n, count), mass-orthonormal.

    Inverse Lanczos on one factorisation. `null_space` (n, k) holds the known, mass-orthonormal solutions
    with λ = 0, which are left out: a Krylov space would not find all of a multiple eigenvalue. The start
    vector is fixed, so the result is repeatable.
    """
    size = stiffness.shape[0]
    known = 0 if null_space is None else null_space.shape[1]
    if count > size - known:
        raise ModeCountError(f"{count} eigenpairs asked of a matrix of {size} rows")
    if 3 * (count + known) >= size:  # Lanczos needs room; a dense solve of so small a matrix is cheap
        values, vectors = eigh(stiffness.toarray(), mass.toarray())
        return values[known : known + count], _with_fixed_signs(vectors[:, known : known + count])
    with threadpool_limits(1, user_api="blas"):  # small products: threads only cost
        start = np.random.default_rng(0).standard_normal(size)
        if null_space is not None:
            start -= null_space @ (null_space.T @ (mass @ start))
        solve = stiffness_solve(stiffness, mass, null_space, solver=solver)
        inverse = LinearOperator((size, size), matvec=solve, dtype=np.float64)
        try:
            values, vectors = eigsh(stiffness, count, mass, sigma=0.0, OPinv=inverse, v0=start, tol=1e-12)
        except ArpackError as error:
            raise SolverError(f"the eigensolver failed: {error}") from error
    order = np.argsort(values)
    return values[order], _with_fixed_signs(vectors[:, order])


def _with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """An eigensolver leaves the sign open: make the largest entry of each column positive, for repeatability."""
    return vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
