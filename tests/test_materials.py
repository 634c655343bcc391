"""Materials: Lamé constants and the values that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import InputError, MaterialError, NotFiniteError
from softrig.fem.material import Material

GOOD = {"young": 1e5, "poisson": 0.3, "density": 1000.0}


def with_values(name, values):
    return Material(**{**GOOD, name: values})


def test_lame_constants_give_back_youngs_modulus_and_poissons_ratio():
    """E = μ(3λ+2μ)/(λ+μ), ν = λ/(2(λ+μ)); a textbook value: E = 200, ν = 0.25 has λ = μ = 80."""
    lam, mu = Material(young=200.0, poisson=0.25, density=1.0).lame()
    assert (lam, mu) == (pytest.approx(80.0), pytest.approx(80.0))
    young, poisson = np.array([1.0, 2e5, 3e9]), np.array([-0.5, 0.0, 0.49])
    lam, mu = Material(young, poisson, 1.0).lame()
    back = Material.from_lame(lam, mu, 1.0)
    np.testing.assert_allclose(back.young, young, rtol=1e-12)
    np.testing.assert_allclose(back.poisson, poisson, rtol=0, atol=1e-12)


def test_one_value_serves_every_element_and_arrays_are_kept():
    density = np.array([1.0, 2.0, 3.0])
    lam, mu, rho = Material(young=200.0, poisson=0.25, density=density).per_element(3)
    np.testing.assert_allclose(lam, np.full(3, 80.0))
    np.testing.assert_allclose(mu, np.full(3, 80.0))
    np.testing.assert_array_equal(rho, density)


OUT_OF_RANGE = [
    ("young", 0.0),
    ("young", -1.0),
    ("density", 0.0),
    ("density", -5.0),
    ("poisson", 0.5),
    ("poisson", 0.6),
    ("poisson", -1.0),
]


@pytest.mark.parametrize(("name", "bad"), OUT_OF_RANGE)
def test_values_outside_the_physical_range_are_refused_by_element(name, bad):
    with pytest.raises(MaterialError) as caught:
        with_values(name, bad)
    assert caught.value.indices.size == 0
    values = np.full(6, GOOD[name])
    values[[2, 4]] = bad
    with pytest.raises(MaterialError) as caught:
        with_values(name, values)
    assert caught.value.indices.tolist() == [2, 4]


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_by_element(name, bad):
    with pytest.raises(NotFiniteError, match=name):
        with_values(name, bad)
    values = np.full(6, GOOD[name])
    values[[1, 5]] = bad
    with pytest.raises(NotFiniteError, match=name) as caught:
        with_values(name, values)
    assert caught.value.indices.tolist() == [1, 5]


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("shape", [(5,), (1,), (7,), (6, 1)])
def test_arrays_of_the_wrong_length_are_refused(name, shape):
    with pytest.raises(InputError, match="6 elements"):
        with_values(name, np.full(shape, GOOD[name])).per_element(6)


def test_youngs_modulus_and_poissons_ratio_of_different_lengths_are_refused_as_input_errors():
    with pytest.raises(InputError):
        Material(young=np.full(6, 1e5), poisson=np.full(5, 0.3), density=1.0).per_element(6)


def test_lame_constants_outside_the_physical_range_are_refused():
    with pytest.raises(MaterialError, match="shear modulus") as caught:
        Material.from_lame([1.0, 1.0], [1.0, 0.0], 1.0)
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(MaterialError):  # λ = -μ has neither a Young's modulus nor a Poisson ratio
        Material.from_lame(-0.9, 1.0, 1.0)
