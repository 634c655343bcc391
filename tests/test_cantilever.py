"""The lowest bending frequency of a clamped beam: order of convergence, and agreement with beam theory.

ν = 0, so that the clamp has no corner singularity, the bent cross-section stays plane across its
width, and the shear coefficient of a rectangle is exactly 5/6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from softrig.fem.material import Material
from softrig.meshing import box_bricks, box_tets
from softrig.models.full import FullBody
from softrig.numerics.sparse import lowest_eigenpairs

LENGTH, THICKNESS, WIDTH = 1.0, 0.2, 0.3  # bends along THICKNESS, the softer way
YOUNG, DENSITY = 1e6, 1000.0


def timoshenko_frequency():
    """Lowest frequency of a clamped–free Timoshenko beam, hertz; Euler–Bernoulli is 2.6 % higher at L/t = 5.

    State (w, ψ, M, Q) along the beam: w' = ψ + Q/(kGA), ψ' = M/(EI), M' = −Q − ρIω²ψ, Q' = −ρAω²w.
    w = ψ = 0 at the clamp; M = Q = 0 at the free end where the transfer matrix exp(S L) is singular.
    """
    area, inertia = THICKNESS * WIDTH, WIDTH * THICKNESS**3 / 12.0
    bending, shear = YOUNG * inertia, 5.0 / 6.0 * (YOUNG / 2.0) * area

    def end_forces(omega):
        S = np.zeros((4, 4))
        S[0, 1], S[0, 3] = 1.0, 1.0 / shear
        S[1, 2] = 1.0 / bending
        S[2, 1], S[2, 3] = -DENSITY * inertia * omega**2, -1.0
        S[3, 0] = -DENSITY * area * omega**2
        return np.linalg.det(expm(S * LENGTH)[2:, 2:])

    euler_bernoulli = 1.875104068711961**2 * np.sqrt(bending / (DENSITY * area)) / LENGTH**2
    return brentq(end_forces, 0.8 * euler_bernoulli, 1.05 * euler_bernoulli) / (2.0 * np.pi)


def lowest_frequency(box, counts):
    mesh = box((LENGTH, THICKNESS, WIDTH), counts)
    body = FullBody(mesh, Material(YOUNG, 0.0, DENSITY), fixed=mesh.vertices[:, 0] == 0.0)
    values, _ = lowest_eigenpairs(body.rest_stiffness, body.mass, 1)
    return np.sqrt(values[0]) / (2.0 * np.pi)


def order(sizes, errors):
    """Slope of log |error| over log h."""
    return np.polyfit(np.log(sizes), np.log(np.abs(errors)), 1)[0]


@pytest.fixture(scope="module")
def brick_frequencies():
    """By number of bricks through the thickness; one through the width, across which nothing varies."""
    return {n: lowest_frequency(box_bricks, (5 * n, n, 1)) for n in (2, 4, 8, 16)}


@pytest.fixture(scope="module")
def brick_limit(brick_frequencies):
    """Richardson's extrapolation of the two finest."""
    return brick_frequencies[16] - (brick_frequencies[8] - brick_frequencies[16]) / 3.0


def test_brick_frequency_converges_with_second_order(brick_frequencies):
    """Measured 1.94 and 1.98, without assuming a limit: log₂ of the ratio of successive differences."""
    f = list(brick_frequencies.values())
    steps = -np.diff(f)
    assert (steps > 0.0).all(), "full integration converges from above"
    orders = np.log2(steps[:-1] / steps[1:])
    np.testing.assert_allclose(orders, 2.0, rtol=0, atol=0.1)


def test_brick_frequency_error_falls_with_the_square_of_the_size(brick_frequencies, brick_limit):
    """Measured slope 1.97 over meshes that did not enter as the finest of the extrapolation."""
    sizes = np.array([2, 4, 8])
    measured = order(1.0 / sizes, [brick_frequencies[n] - brick_limit for n in sizes])
    assert measured == pytest.approx(2.0, abs=0.1)


def test_brick_limit_is_timoshenkos_beam(brick_limit):
    """Measured 0.01 % apart."""
    assert brick_limit == pytest.approx(timoshenko_frequency(), rel=1e-3)


def test_tet_frequency_converges_to_the_bricks_limit_with_second_order(brick_limit):
    """Measured slope 1.92, against a limit that no tet has seen."""
    through = np.array([4, 6, 8])
    frequencies = np.array([lowest_frequency(box_tets, (5 * n, n, 3 * n // 2)) for n in through])
    assert order(1.0 / through, frequencies - brick_limit) == pytest.approx(2.0, abs=0.15)
    ratio = (8.0 / 6.0) ** 2
    extrapolated = frequencies[2] - (frequencies[1] - frequencies[2]) / (ratio - 1.0)
    assert extrapolated == pytest.approx(timoshenko_frequency(), rel=1e-2)
