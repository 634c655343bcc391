"""Arithmetic of vector registers in compiled code."""

import numpy as np
import pytest
from numba import njit

from softrig.numerics.vectors import load, load_four, root, store, transposed


@njit
def calculated(a, b, out):
    one, two = load(a, np.uint64(0)), load(b, np.uint64(0))
    store(out, np.uint64(0), root(one * one + two * two) - one / two)


@njit
def turned(a, out):
    rows = [load_four(a, np.uint64(4 * k)) for k in range(4)]
    columns = transposed(rows[0], rows[1], rows[2], rows[3])
    for k in range(4):
        store(out, np.uint64(4 * k), columns[k])


@pytest.mark.parametrize(("kind", "count"), [(np.float32, 8), (np.float64, 4)])
def test_registers_calculate_like_numbers(kind, count):
    a, b = np.arange(1, 1 + count, dtype=kind), np.linspace(2.0, 3.0, count, dtype=kind)
    out = np.zeros(count, kind)
    calculated(a, b, out)
    np.testing.assert_allclose(out, np.hypot(a, b) - a / b, rtol=8 * np.finfo(kind).eps)


def test_four_rows_become_columns():
    a, out = np.arange(16.0), np.zeros(16)
    turned(a, out)
    np.testing.assert_array_equal(out.reshape(4, 4), a.reshape(4, 4).T)
