"""How stiff modes are beside which the rest of a body yields."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from bodies_for_tests import beam
from softrig.bases.modes import linear_modes
from softrig.pipeline.yielding import raised, yielding_shapes, yielding_stiffness


@pytest.fixture(scope="module")
def full():
    body = beam("tets")
    stiffness, mass = body.rest_stiffness.toarray(), body.mass.toarray()
    return body, stiffness, mass


def of(basis: np.ndarray, stiffness: np.ndarray, mass: np.ndarray) -> np.ndarray:
    heavy = mass @ basis
    return yielding_stiffness(basis.T @ heavy, heavy.T @ np.linalg.solve(stiffness, heavy))


def random_basis(size: int, count: int = 7) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(size, count))


def test_loads_move_the_modes_as_far_as_the_full_body(full):
    _, stiffness, mass = full
    basis = random_basis(len(stiffness))
    reduced_mass = basis.T @ mass @ basis
    load = mass @ basis @ np.random.default_rng(6).normal(size=7)
    moved = np.linalg.solve(reduced_mass, basis.T @ mass @ np.linalg.solve(stiffness, load))
    ours = np.linalg.solve(of(basis, stiffness, mass), basis.T @ load)
    np.testing.assert_allclose(ours, moved, rtol=1e-9, atol=1e-9 * np.abs(moved).max())
    stiff = np.linalg.solve(basis.T @ stiffness @ basis, basis.T @ load)
    assert np.linalg.norm(stiff) < 0.5 * np.linalg.norm(moved)  # the modes alone hardly give way


def test_any_load_moves_the_modes_as_far_as_the_full_body_by_its_yielding_shapes(full):
    """Also one that acts on the rest alone, which the modes do not feel by themselves."""
    _, stiffness, mass = full
    basis = random_basis(len(stiffness))
    heavy = mass @ basis
    shapes = yielding_shapes(basis, heavy, np.linalg.solve(stiffness, heavy))
    reduced_mass = basis.T @ heavy
    np.testing.assert_allclose(heavy.T @ shapes, reduced_mass, rtol=1e-8, atol=1e-8 * np.abs(reduced_mass).max())
    field = np.random.default_rng(9).normal(size=len(stiffness))
    unfelt = field - basis @ np.linalg.solve(reduced_mass, heavy.T @ field)
    for acceleration in (field, unfelt):
        moved = np.linalg.solve(reduced_mass, heavy.T @ np.linalg.solve(stiffness, mass @ acceleration))
        ours = np.linalg.solve(of(basis, stiffness, mass), shapes.T @ mass @ acceleration)
        np.testing.assert_allclose(ours, moved, rtol=1e-8, atol=1e-8 * np.abs(moved).max())
    assert np.abs(heavy.T @ unfelt).max() < 1e-9 * np.abs(shapes.T @ mass @ unfelt).max()


def test_it_is_the_least_energy_of_all_shapes_that_look_the_same(full):
    _, stiffness, mass = full
    basis = random_basis(len(stiffness))
    x = np.random.default_rng(7).normal(size=7)
    heavy = mass @ basis
    shape = np.linalg.solve(stiffness, heavy) @ np.linalg.solve(
        heavy.T @ np.linalg.solve(stiffness, heavy), heavy.T @ basis @ x
    )
    np.testing.assert_allclose(heavy.T @ shape, heavy.T @ basis @ x, rtol=1e-8)
    energy = x @ of(basis, stiffness, mass) @ x
    np.testing.assert_allclose(energy, shape @ stiffness @ shape, rtol=1e-8)
    other = np.random.default_rng(8).normal(size=len(stiffness))
    other -= basis @ np.linalg.solve(heavy.T @ basis, heavy.T @ other)  # nothing that the modes see
    for step in (-1e-3, 1e-3):
        moved = shape + step * other
        assert moved @ stiffness @ moved > energy


def test_free_vibrations_yield_nothing_more(full):
    body, stiffness, mass = full
    modes = linear_modes(body, 6)
    np.testing.assert_allclose(
        of(modes.shapes, stiffness, mass), np.diag(modes.eigenvalues), atol=1e-6 * modes.eigenvalues.max()
    )


def test_frequencies_lie_between_the_true_ones_and_those_of_the_modes_alone(full):
    _, stiffness, mass = full
    basis = np.linalg.solve(stiffness, mass @ random_basis(len(stiffness), 12))
    reduced = basis.T @ mass @ basis
    true = eigh(stiffness, mass, eigvals_only=True)[:4]
    ours = eigh(of(basis, stiffness, mass), reduced, eigvals_only=True)[:4]
    alone = eigh(basis.T @ stiffness @ basis, reduced, eigvals_only=True)[:4]
    assert (true < ours * (1 + 1e-9)).all()
    assert (ours < alone).all()
    assert (ours[0] - true[0]) < 0.5 * (alone[0] - true[0])


def test_what_goes_along_has_mass(full):
    """K⁺ with the mass of the yielding shapes is the body that can do these: its frequencies are nearer, from above."""
    _, stiffness, mass = full
    basis = np.linalg.solve(stiffness, mass @ random_basis(len(stiffness), 12))
    heavy = mass @ basis
    shapes = yielding_shapes(basis, heavy, np.linalg.solve(stiffness, heavy))
    beside, reduced = shapes - basis, basis.T @ heavy
    moved = reduced + beside.T @ mass @ beside
    np.testing.assert_allclose(shapes.T @ mass @ shapes, moved, rtol=1e-6, atol=1e-9 * np.abs(moved).max())
    true = eigh(stiffness, mass, eigvals_only=True)[:4]
    ours, light = (eigh(of(basis, stiffness, mass), own, eigvals_only=True)[:4] for own in (moved, reduced))
    assert (true < ours * (1 + 1e-9)).all()
    assert (ours - true < 0.6 * (light - true)).all()


def test_a_stiffness_is_raised_only_where_it_is_below():
    factor = np.random.default_rng(9).normal(size=(6, 6))
    other = factor @ factor.T
    shares = np.array([0.1, 0.15, 0.9, 1.2, 1.9, 7.0])
    stiffness = (factor * shares) @ factor.T
    found = eigh(raised(stiffness, other, 0.2), other, eigvals_only=True)
    np.testing.assert_allclose(found, np.maximum(shares, 0.2), rtol=1e-9)
    np.testing.assert_allclose(raised(stiffness, other, 0.05), stiffness, rtol=1e-9, atol=1e-12)


def test_the_compliance_of_a_load_is_how_much_softer_the_rest_makes_the_modes(full):
    """fᵀV(VᵀKV)⁻¹Vᵀf / fᵀK⁻¹f of a load f = M V y lies between the least and the largest K⁺ of VᵀKV."""
    _, stiffness, mass = full
    basis = random_basis(len(stiffness))
    force = mass @ basis @ np.random.default_rng(4).normal(size=7)
    given, yielding, pushed = basis.T @ stiffness @ basis, of(basis, stiffness, mass), basis.T @ force
    alone = pushed @ np.linalg.solve(given, pushed)
    share = alone / (force @ np.linalg.solve(stiffness, force))
    assert share == pytest.approx(alone / (pushed @ np.linalg.solve(yielding, pushed)), rel=1e-9)
    bounds = eigh(yielding, given, eigvals_only=True)
    assert bounds[0] < share < bounds[-1] < 1.0 + 1e-9
