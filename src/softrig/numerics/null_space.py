"""Sparse null spaces of constraint matrices by elimination with local pivoting (PSSD Eqs. 29, 30).

A constraint touches few unknowns (three for a vertex that slides in a plane), so eliminating one of its
own unknowns leaves the rest of the system as sparse as it was: no conjugate gradients are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError, require_finite

REDUNDANT = 1e-6
"""A row of which elimination leaves less than this share of its length follows from the others (PSSD §6)."""
PIVOT_SHARE = 0.5
"""A pivot is at least this share of the largest entry of its row: Z stays well conditioned and rounding small."""
_CANCELLED = 1e-14
"""Entries of rows of length one below this are what rounding leaves of a cancellation."""

Row = dict[int, float]


@dataclass(frozen=True)
class Elimination:
    """C u = 0 solved for as many unknowns as C has independent rows."""

    null_space: csr_array
    """(n, n − rank) Z with C Z = 0 and full rank: an identity on the unknowns that stay."""
    pivots: np.ndarray
    """(rank,) the unknowns that were eliminated, by row."""
    independent: np.ndarray
    """(rank,) the rows of C that count, rising."""
    redundant: np.ndarray
    """Rows that follow from the others (empty ones too) and were dropped, rising."""


def null_space(constraints: csr_array) -> csr_array:
    """(n, n − rank) sparse Z whose columns span {u : C u = 0}, for C (c, n); `eliminate` tells more."""
    return eliminate(constraints).null_space


def eliminate(constraints: csr_array) -> Elimination:
    """Gauss–Jordan elimination of sparse rows C (c, n).

    Each row is solved for that of its larger entries whose unknown the fewest other rows touch:
    u_p = −Σ a_j u_j, which is P[−C_p⁻¹C_n; I] of PSSD Eq. 29 without forming C_p.
    """
    constraints = csr_array(constraints, dtype=np.float64, copy=True)
    constraints.sum_duplicates()
    if not np.isfinite(constraints.data).all():
        require_finite(constraints.toarray(), "constraint rows")
    rows = _unit_rows(constraints)
    users = _users(rows)
    pivot_of_row: dict[int, int] = {}
    # Short rows first: what they eliminate fills in least.
    for index in sorted(range(len(rows)), key=lambda i: (len(rows[i]), i)):
        row = rows[index]
        largest = max(map(abs, row.values()), default=0.0)
        if largest <= REDUNDANT:
            for column in row:
                users[column].discard(index)
            row.clear()
            continue
        good = [column for column, value in row.items() if abs(value) >= PIVOT_SHARE * largest]
        pivot = min(good, key=lambda column: (len(users[column]), -abs(row[column]), column))
        pivot_of_row[index] = pivot
        _clear_column(rows, users, index, pivot)
    return _assembled(rows, pivot_of_row, constraints.shape)


def _unit_rows(constraints: csr_array) -> list[Row]:
    """Rows as column → value, each of length one; empty where the row is zero."""
    rows = []
    for start, stop in zip(constraints.indptr[:-1], constraints.indptr[1:], strict=True):
        values = constraints.data[start:stop]
        length = float(np.linalg.norm(values))
        kept = values / length if length > 0.0 else values
        columns = constraints.indices[start:stop]
        rows.append({int(c): float(v) for c, v in zip(columns, kept, strict=True) if v != 0.0})
    return rows


def _users(rows: list[Row]) -> dict[int, set[int]]:
    """Of each unknown, the rows that touch it."""
    users: dict[int, set[int]] = {}
    for index, row in enumerate(rows):
        for column in row:
            users.setdefault(column, set()).add(index)
    return users


def _clear_column(rows: list[Row], users: dict[int, set[int]], index: int, pivot: int) -> None:
    """Scale row `index` to one at `pivot` and subtract it from every other row there, done or still to come."""
    row = rows[index]
    scale = 1.0 / row[pivot]
    for column in row:
        row[column] *= scale
    row[pivot] = 1.0
    for other in sorted(users[pivot] - {index}):
        target = rows[other]
        factor = target.pop(pivot)
        for column, value in row.items():
            if column == pivot:
                continue
            left = target.get(column, 0.0) - factor * value
            if abs(left) > _CANCELLED:
                target[column] = left
                users[column].add(other)
            else:
                target.pop(column, None)
                users[column].discard(other)
    users[pivot] = {index}


def _assembled(rows: list[Row], pivot_of_row: dict[int, int], shape: tuple[int, int]) -> Elimination:
    independent = np.array(sorted(pivot_of_row), dtype=np.int64)
    pivots = np.array([pivot_of_row[index] for index in independent.tolist()], dtype=np.int64)
    stays = np.ones(shape[1], np.bool_)
    stays[pivots] = False
    place = np.cumsum(stays) - 1
    kept = np.flatnonzero(stays)
    entries = [
        (pivot, place[column], -value)
        for index, pivot in zip(independent.tolist(), pivots.tolist(), strict=True)
        for column, value in rows[index].items()
        if column != pivot
    ]
    table = np.array(entries, dtype=np.float64).reshape(-1, 3)
    lines = np.concatenate([kept, table[:, 0].astype(np.int64)])
    columns = np.concatenate([np.arange(len(kept)), table[:, 1].astype(np.int64)])
    values = np.concatenate([np.ones(len(kept)), table[:, 2]])
    matrix = csr_array((values, (lines, columns)), shape=(shape[1], len(kept)))
    redundant = np.setdiff1d(np.arange(shape[0]), independent)
    return Elimination(matrix, pivots, independent, redundant)


def require_null_space(matrix: csr_array, size: int) -> csr_array:
    """Z as CSR, or an `InputError` if it does not belong to `size` unknowns or leaves none free."""
    matrix = csr_array(matrix)
    if matrix.shape[0] != size or not 0 < matrix.shape[1] <= size:
        raise InputError(f"a null space of {size} unknowns has {size} rows and at least a column, not {matrix.shape}")
    return matrix
