"""Packed dense kernels against NumPy."""

import numpy as np
import pytest

from softrig.models.kernels.dense import lower_matvec, packed_cholesky, packed_cholesky_solve, packed_matvec
from softrig.numerics.symmetric_tensors import pack

SIZES = range(1, 41)


def symmetric(size: int) -> np.ndarray:
    a = np.random.default_rng(size).standard_normal((size, size))
    return a + a.T


def definite(size: int) -> np.ndarray:
    a = np.random.default_rng(size).standard_normal((size, size))
    return a @ a.T + size * np.eye(size)


@pytest.mark.parametrize("size", SIZES)
def test_packed_matvec_is_the_symmetric_product(size):
    a, x = symmetric(size), np.random.default_rng(1).standard_normal(size)
    y = np.full(size, 7.0)  # what stood there must not matter
    packed_matvec(pack(a), x, y)
    np.testing.assert_allclose(y, a @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_lower_matvec_reads_only_the_lower_half(size):
    a, x = symmetric(size), np.random.default_rng(2).standard_normal(size)
    lower = a.copy()
    lower[np.triu_indices(size, 1)] = np.nan
    y = np.full(size, 7.0)
    lower_matvec(lower, x, y)
    np.testing.assert_allclose(y, a @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_packed_cholesky_factor_multiplies_back_and_solves(size):
    a, b = definite(size), np.random.default_rng(3).standard_normal(size)
    factor = np.full(size * (size + 1) // 2, 7.0)
    assert packed_cholesky(pack(a), factor, size)
    lower = np.zeros((size, size))
    lower[np.tril_indices(size)] = factor
    np.fill_diagonal(lower, 1.0 / np.diag(lower))
    np.testing.assert_allclose(lower @ lower.T, a, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lower, np.linalg.cholesky(a), rtol=1e-12, atol=1e-12)
    x = b.copy()
    packed_cholesky_solve(factor, x)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spoil", ["indefinite", "singular", "negative", "nan", "nan below"])
def test_packed_cholesky_refuses_what_is_not_definite(size, spoil):
    a = definite(size)
    if spoil == "indefinite":
        values, vectors = np.linalg.eigh(a)
        values[size // 2] *= -1e-3
        a = (vectors * values) @ vectors.T
    elif spoil == "singular":
        a[-1], a[:, -1] = 0.0, 0.0
    elif spoil == "negative":
        a = -a
    elif spoil == "nan":
        a[size // 2, size // 2] = np.nan
    else:
        a[-1, 0] = a[0, -1] = np.nan
    assert not packed_cholesky(pack(a), np.empty(size * (size + 1) // 2), size)
