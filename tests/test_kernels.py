"""Packed dense kernels against NumPy."""

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import softrig
from softrig.models.kernels.dense import lower_matvec, packed_cholesky, packed_cholesky_solve, packed_matvec
from softrig.models.kernels.inverse import invert
from softrig.numerics.symmetric_tensors import pack

ROOT = Path(__file__).parent.parent
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


def compiled_functions() -> list[Dispatcher]:
    """All functions of the package that are compiled."""
    found: dict[int, Dispatcher] = {}
    for module in pkgutil.walk_packages(softrig.__path__, "softrig."):
        source = Path(ROOT / "src" / Path(*module.name.split("."))).with_suffix(".py")
        if source.exists() and "njit" in source.read_text():
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Dispatcher):
                    found[id(value)] = value
    return list(found.values())


def callees(function: Dispatcher) -> list[Dispatcher]:
    scope = function.py_func.__globals__
    named = [scope.get(name) for name in function.py_func.__code__.co_names]
    return [each for each in named if isinstance(each, Dispatcher)]


def reassociates(function: Dispatcher) -> bool:
    return bool(function.targetoptions.get("fastmath")) or any(reassociates(each) for each in callees(function))


def test_what_sums_in_any_order_is_part_of_its_caller():
    """Left a function of its own, it is optimised twice, and which of the two runs depends on what was compiled before.

    Then the first run on a machine would differ in the last digit from all later ones.
    """
    functions = compiled_functions()
    assert len(functions) > 100
    loose = {
        f"{each.py_func.__module__}.{each.py_func.__name__}"
        for function in functions
        for each in callees(function)
        if function.py_func.__module__.startswith("softrig.models.kernels.")
        and reassociates(each)
        and not each.targetoptions.get("forceinline")
        and each.targetoptions.get("inline") != "always"
    }
    assert loose == set()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 10, 33])
def test_a_matrix_is_inverted_in_place(size):
    rng = np.random.default_rng(size)
    factor = rng.normal(size=(size, size))
    matrix = factor @ factor.T + 0.1 * np.eye(size)
    square = np.full((size + 4, size + 4), 99.0)
    square[:size, :size] = np.where(np.tri(size, dtype=bool), matrix, np.nan)
    assert invert(square, np.zeros(size, np.int32), size, np.zeros((2, size + 4)))
    expected = np.linalg.inv(matrix)
    np.testing.assert_allclose(np.tril(square[:size, :size]), np.tril(expected), atol=1e-9 * np.abs(expected).max())
    square[:size, :size] = np.tril(matrix - 2.0 * np.linalg.eigvalsh(matrix)[-1] * np.eye(size))
    assert not invert(square, np.zeros(size, np.int32), size, np.zeros((2, size + 4)))
