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
    # One by one: a list would lie in memory that is not aligned as registers are.
    first, second = load_four(a, np.uint64(0)), load_four(a, np.uint64(4))
    third, fourth = load_four(a, np.uint64(8)), load_four(a, np.uint64(12))
    one, two, three, four = transposed(first, second, third, fourth)
    store(out, np.uint64(0), one)
    store(out, np.uint64(4), two)
    store(out, np.uint64(8), three)
    store(out, np.uint64(12), four)


@pytest.mark.parametrize(("kind", "count"), [(np.float32, 8), (np.float64, 4)])
def test_registers_calculate_like_numbers(kind, count):
    a, b = np.arange(1, 1 + count, dtype=kind), np.linspace(2.0, 3.0, count, dtype=kind)
    out = np.zeros(count, kind)
    calculated(a, b, out)
    np.testing.assert_allclose(out, np.hypot(a, b) - a / b, rtol=8 * np.finfo(kind).eps)


@pytest.mark.parametrize("shift", range(4))
def test_four_rows_become_columns_wherever_they_lie(shift):
    a, out = np.zeros(20)[shift : shift + 16], np.zeros(20)[shift : shift + 16]
    a[:] = np.arange(16.0)
    turned(a, out)
    np.testing.assert_array_equal(out.reshape(4, 4), a.reshape(4, 4).T)
