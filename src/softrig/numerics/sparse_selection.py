"""Few columns with weights ≥ 0 that add up to a target: A x ≈ b, x ≥ 0, at most `count` entries above zero.

Three ways, one signature:

| word | way |
| --- | --- |
| "nnls" | Lawson and Hanson's active set on the Gram matrix, stopped once it holds `count` columns |
| "greedy" | the best aligned of some random candidates enters, all weights are solved again (An et al. 2008) |
| "htp" | hard thresholding pursuit: gradient step, the `count` largest entries, weights on them (PSSD §5.3) |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from softrig.errors import InputError, SolverError, require_finite

Progress = Callable[[int, int], None] | None

NOTHING = 1e-11
"""A column whose gradient is below this times the lengths of column and target adds only the Gram matrix' rounding."""
DEPENDENT = 1e-10
"""Squared sine of the angle to the columns at hand below which a column says nothing new."""
CANDIDATES = 500
"""The greedy looks at so many random columns before each choice."""
ENTRIES = 30
"""Columns that may enter an active set for each that is wanted: rounding could let two take turns for ever."""
PURSUITS = 40
"""Hard thresholding pursuit stops after so many steps, or when a support returns."""


class Selection(NamedTuple):
    """The columns chosen and their weights."""

    support: np.ndarray
    """(c,) int64 columns, rising."""
    weights: np.ndarray
    """(c,) > 0."""
    error: float
    """‖A x − b‖ / ‖b‖ on the rows given."""


def sparse_selection(
    columns: np.ndarray,
    target: np.ndarray,
    count: int,
    *,
    method: str = "nnls",
    seed: int = 0,
    equal_lengths: bool = True,
    progress: Progress = None,
) -> Selection:
    """At most `count` of the columns of A = `columns` (rows, k) and weights > 0 so that A x ≈ b = `target` (rows,).

    `method` is one of `METHODS`; `seed` matters to "greedy" only, and `equal_lengths` to "htp":
    whether columns are compared as if equally long, or as they are. Fewer than `count` come back where more would not
    bring the sum closer. `progress(done, total)` counts columns, or steps of the pursuit.
    """
    if method not in METHODS:
        raise InputError(f"no selection called {method!r}; there are {', '.join(METHODS)}")
    columns, target = _checked(columns, target)
    if count < 1:
        raise InputError(f"at least one column must be allowed, got {count}")
    count = min(count, columns.shape[1])
    if not target.any():
        return Selection(np.zeros(0, np.int64), np.zeros(0), 0.0)
    problem = _Problem(columns, target, equal_lengths)
    support, weights = METHODS[method](problem, count, np.random.default_rng(seed), progress)
    order = np.argsort(support)
    support, weights = support[order], weights[order]
    return Selection(support, weights, _relative_error(columns[:, support], weights, target))


def nonnegative_weights(columns: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """(c,) weights ≥ 0 that minimise ‖A x − b‖ on given columns A (rows, c), and ‖A x − b‖ / ‖b‖.

    Many rows are first pressed into c + 1 by a QR factorisation, which changes no weight.
    """
    columns, target = _checked(columns, target)
    rows, count = columns.shape
    if count == 0 or not target.any():
        return np.zeros(count), 1.0 if target.any() else 0.0
    # Lengths span decades (tets of a hand and of a belly); equal ones keep the solver's tolerances meaningful.
    lengths = np.linalg.norm(columns, axis=0)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    system = np.column_stack([columns / lengths, target])
    if rows > 2 * count:
        system = np.asarray(np.linalg.qr(system, mode="r"))
    try:
        weights, _ = nnls(system[:, :-1], system[:, -1], maxiter=100 * (count + 1))
    except RuntimeError as error:
        raise SolverError(f"weights of {count} columns did not converge: {error}") from error
    weights = weights / lengths
    return weights, _relative_error(columns, weights, target)


def _checked(columns: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns, target = np.asarray(columns, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if columns.ndim != 2 or target.shape != columns.shape[:1]:
        raise InputError(f"columns {columns.shape} and target {target.shape} must be (rows, k) and (rows,)")
    require_finite(columns.T, "columns")
    require_finite(target, "target")
    return columns, target


def _relative_error(columns: np.ndarray, weights: np.ndarray, target: np.ndarray) -> float:
    return float(np.linalg.norm(columns @ weights - target) / np.linalg.norm(target))


class _Problem:
    """A, b and Aᵀb; columns of the Gram matrix AᵀA are made when first asked for."""

    def __init__(self, columns: np.ndarray, target: np.ndarray, equal_lengths: bool) -> None:
        self.columns = columns
        self.target = target
        self.lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
        self.scales = np.where(equal_lengths & (self.lengths > 0.0), self.lengths, 1.0)
        self.correlations = columns.T @ target
        self.smallest = NOTHING * float(np.linalg.norm(target)) * self.lengths
        self._gram: dict[int, np.ndarray] = {}

    def gram(self, column: int) -> np.ndarray:
        """(k,) Aᵀ A e_column; kept, because columns leave and return."""
        if column not in self._gram:
            self._gram[column] = self.columns.T @ self.columns[:, column]
        return self._gram[column]


Pick = Callable[[np.ndarray], int]


def _active_set(problem: _Problem, count: int, pick: Pick, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
    """Lawson and Hanson (1974, ch. 23): let the column `pick` names enter, solve, drop what turns negative.

    `pick` sees the gradient Aᵀ(b − A x), −inf where a column may not enter, and answers −1 to stop.
    """
    support: list[int] = []
    weights = np.zeros(0)
    rows = np.empty((count, problem.columns.shape[1]))
    factor = _GrowingCholesky(count)
    barred = np.zeros(problem.columns.shape[1], dtype=bool)
    for _ in range(ENTRIES * count):
        if len(support) == count:
            break
        gradient = problem.correlations - weights @ rows[: len(support)]
        gradient[(gradient <= problem.smallest) | barred] = -np.inf
        gradient[support] = -np.inf
        entering = pick(gradient)
        if entering < 0:
            break
        gram = problem.gram(entering)
        if not factor.append(gram[support], gram[entering]):
            barred[entering] = True
            continue
        rows[len(support)] = gram
        support.append(entering)
        weights = np.append(weights, 0.0)
        support, weights = _feasible(problem, support, weights, rows, factor)
        if entering in support:
            barred[:] = False  # what had no room beside a column that has left may have room now
        else:
            barred[entering] = True
        if progress:
            progress(len(support), count)
    return np.array(support, dtype=np.int64), weights


def _feasible(
    problem: _Problem, support: list[int], weights: np.ndarray, rows: np.ndarray, factor: _GrowingCholesky
) -> tuple[list[int], np.ndarray]:
    """Walk towards the unconstrained weights of the support; a column that reaches zero on the way leaves."""
    while support:
        wanted = factor.solve(problem.correlations[support])
        if (wanted > 0.0).all():
            return support, wanted
        falling = wanted <= 0.0
        ratios = weights[falling] / np.maximum(weights[falling] - wanted[falling], 1e-300)
        weights = weights + ratios.min() * (wanted - weights)
        leaving = falling & (weights <= 1e-14 * max(float(weights.max()), 0.0))
        leaving[np.flatnonzero(falling)[ratios.argmin()]] = True
        kept = np.flatnonzero(~leaving)
        support = [support[place] for place in kept]
        rows[: len(kept)] = rows[kept]
        weights = np.maximum(weights[kept], 0.0)
        factor.refactorise(rows[: len(kept)][:, support])
    return support, weights


class _GrowingCholesky:
    """L of a Gram matrix that grows by a row at a time: O(c²) each, where a new factorisation costs O(c³)."""

    def __init__(self, capacity: int) -> None:
        self._factor = np.zeros((capacity, capacity))
        self._size = 0

    def append(self, products: np.ndarray, square: float) -> bool:
        """Add a column with these products with the others; False, and nothing changed, if it depends on them."""
        size = self._size
        row = solve_triangular(self._factor[:size, :size], products, lower=True) if size else products
        rest = square - row @ row
        if not rest > DEPENDENT * square:
            return False
        self._factor[size, :size] = row
        self._factor[size, size] = np.sqrt(rest)
        self._size = size + 1
        return True

    def refactorise(self, gram: np.ndarray) -> None:
        """Start again; columns leave too rarely for a downdate to pay."""
        self._size = len(gram)
        self._factor[: self._size, : self._size] = np.linalg.cholesky(gram) if len(gram) else gram

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(c,) the solution with the Gram matrix."""
        factor = self._factor[: self._size, : self._size]
        return solve_triangular(factor.T, solve_triangular(factor, right, lower=True), lower=False)


def _lawson_hanson(
    problem: _Problem, count: int, random: np.random.Generator, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    def steepest(gradient: np.ndarray) -> int:
        best = int(gradient.argmax())
        return best if gradient[best] > 0.0 else -1

    return _active_set(problem, count, steepest, progress)


def _greedy(
    problem: _Problem, count: int, random: np.random.Generator, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """An et al. 2008, §4.2: of some random columns the one whose direction is closest to the residual's."""

    def best_aligned(gradient: np.ndarray) -> int:
        possible = np.flatnonzero(gradient > 0.0)
        if not possible.size:
            return -1
        if possible.size > CANDIDATES:
            possible = random.choice(possible, CANDIDATES, replace=False)
        return int(possible[(gradient[possible] / problem.lengths[possible]).argmax()])

    return _active_set(problem, count, best_aligned, progress)


def _hard_thresholding(
    problem: _Problem, count: int, random: np.random.Generator, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Support ← the `count` largest of x + s Aᵀ(b − A x), x ← weights on it, until a support returns.

    s = ‖g‖²/‖A g‖² with g the gradient on the present support, the step of normalised thresholding. Where the
    problem says so columns are first made equally long: entries are compared, and a long one would win by its length.
    The best support seen is kept, for the pursuit need not descend.
    """
    lengths = problem.scales
    A, correlations = problem.columns / lengths, problem.correlations / lengths
    support = np.argsort(-correlations, kind="stable")[:count]
    x = np.zeros(A.shape[1])
    best: tuple[float, np.ndarray, np.ndarray] = (np.inf, support[:0], np.zeros(0))
    seen: set[bytes] = set()
    for step in range(PURSUITS):
        gradient = correlations if step == 0 else A.T @ (problem.target - A[:, support] @ x[support])
        moved = A[:, support] @ gradient[support]
        length = (gradient[support] @ gradient[support]) / max(moved @ moved, 1e-300)
        proposal = x + length * gradient
        support = np.sort(np.argsort(-proposal, kind="stable")[:count])
        support = support[proposal[support] > 0.0]
        if not support.size or support.tobytes() in seen:
            break
        seen.add(support.tobytes())
        weights, error = nonnegative_weights(A[:, support], problem.target)
        x[:] = 0.0
        x[support] = weights
        if error < best[0]:
            best = (error, support, weights)
        if progress:
            progress(step + 1, PURSUITS)
    _, support, weights = best
    used = weights > 0.0
    return support[used], weights[used] / lengths[support[used]]


METHODS: dict[str, Callable[[_Problem, int, np.random.Generator, Progress], tuple[np.ndarray, np.ndarray]]] = {
    "nnls": _lawson_hanson,
    "greedy": _greedy,
    "htp": _hard_thresholding,
}
"""Ways to select, by the word people use."""
