"""Modes and derivatives under contact (PSSD §6) against dense definitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.linalg import null_space as dense_null_space

from bodies_for_tests import beam, relative
from softrig.bases.contact import constrained_derivatives, constrained_modes, constrained_solve, constraint_rows
from softrig.bases.modes import linear_modes
from softrig.errors import IndexRangeError, InputError, ModeCountError
from softrig.numerics.null_space import eliminate, null_space

SOLVERS = ["superlu", "pardiso"]


@dataclass
class Contacts:
    vertices: np.ndarray
    normals: np.ndarray
    sliding: np.ndarray


def bar(**options):
    return beam("tets", (1.0, 0.22, 0.17), (5, 2, 2), mass="lumped", **options)


def some_contacts(body, *, held=1, seed=0):
    """Five vertices of the far end, the last `held` of them held altogether."""
    rng = np.random.default_rng(seed)
    far = np.flatnonzero(body.mesh.vertices[:, 0] > 0.7)
    vertices = rng.choice(far, 5, replace=False)
    sliding = np.arange(5) < 5 - held
    return Contacts(vertices, rng.standard_normal((5, 3)), sliding)


@pytest.fixture(scope="module")
def pressed():
    body = bar()
    contacts = some_contacts(body)
    rows = constraint_rows(contacts, body.free)
    return body, contacts, rows, null_space(rows)


def test_rows_take_the_normal_part_of_sliding_vertices_and_all_of_held_ones(pressed):
    body, contacts, rows, _ = pressed
    u = np.random.default_rng(1).standard_normal(body.size)
    field = body.expand(u)
    unit = contacts.normals / np.linalg.norm(contacts.normals, axis=1)[:, None]
    along = np.einsum("ck,ck->c", unit, field[contacts.vertices])
    assert rows.shape == (7, body.size)
    assert rows @ u == pytest.approx(np.concatenate([along[:4], field[contacts.vertices[4]]]))


def test_rows_accept_places_among_the_free_as_well_as_a_mask(pressed):
    body, contacts, rows, _ = pressed
    assert np.array_equal(constraint_rows(contacts, body.pattern.free).toarray(), rows.toarray())


def test_a_vertex_against_a_triangle_holds_their_difference():
    body = bar()
    free = np.flatnonzero(body.free)
    contacts = Contacts(free[[3]], np.array([[0.0, 2.0, 0.0]]), np.array([True]))
    shares = np.array([[0.2, 0.3, 0.5]])
    rows = constraint_rows(contacts, body.free, partners=free[[[7, 8, 9]]], partner_weights=shares)
    u = np.random.default_rng(2).standard_normal(body.size)
    field = body.expand(u)[free]
    assert (rows @ u)[0] == pytest.approx(field[3, 1] - shares[0] @ field[7:10, 1])
    Z = null_space(rows)
    assert np.abs((rows @ Z).toarray()).max() < 1e-12


def test_contacts_at_fixed_vertices_need_no_rows():
    body = bar()
    fixed, free = np.flatnonzero(body.fixed)[0], np.flatnonzero(body.free)[0]
    contacts = Contacts(np.array([fixed, free]), np.ones((2, 3)), np.array([False, True]))
    rows = constraint_rows(contacts, body.free)
    assert rows.shape == (1, body.size)


def test_contacts_without_normal_or_vertex_are_named():
    body = bar()
    flat = Contacts(np.array([1, 2, 3]), np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 1]]), np.array([True] * 3))
    with pytest.raises(InputError) as caught:
        constraint_rows(flat, body.free)
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(IndexRangeError):
        constraint_rows(Contacts(np.array([10_000]), np.ones((1, 3)), np.array([True])), body.free)
    with pytest.raises(InputError, match="flags"):
        constraint_rows(Contacts(np.array([1]), np.ones((1, 3)), np.array([True, False])), body.free)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constrained_modes_are_those_of_the_dense_null_space(solver):
    body = bar(solver=solver)
    rows = constraint_rows(some_contacts(body), body.free)
    modes = constrained_modes(body, 8, null_space(rows))
    N = dense_null_space(rows.toarray())
    K, M = body.rest_stiffness.toarray(), body.mass.toarray()
    values = eigh(N.T @ K @ N, N.T @ M @ N, eigvals_only=True)
    assert modes.eigenvalues == pytest.approx(values[:8], rel=1e-9)
    U = modes.shapes
    assert np.abs(rows @ U).max() < 1e-10
    assert np.allclose(U.T @ M @ U, np.eye(8), atol=1e-9)
    # Galerkin: what is left of K φ − λ M φ is a contact force, nothing within the null space.
    assert np.abs(N.T @ (K @ U - M @ U * modes.eigenvalues)).max() < 1e-7 * np.abs(K @ U).max()


def test_contact_stiffens_and_redundant_contacts_change_nothing(pressed):
    body, contacts, _, Z = pressed
    free, held = linear_modes(body, 4), constrained_modes(body, 4, Z)
    assert (held.eigenvalues > free.eigenvalues * (1.0 + 1e-6)).all()
    twice = Contacts(
        np.tile(contacts.vertices, 2),
        np.concatenate([contacts.normals, -contacts.normals]),
        np.tile(contacts.sliding, 2),
    )
    found = eliminate(constraint_rows(twice, body.free))
    assert len(found.redundant) == 7
    assert constrained_modes(body, 4, found.null_space).eigenvalues == pytest.approx(held.eigenvalues, rel=1e-10)


@pytest.mark.parametrize("law", ["stvk", "neo-hookean"])
def test_constrained_derivatives_solve_equation_28_with_the_load_by_finite_differences(law):
    body = bar(law=law)
    rows = constraint_rows(some_contacts(body), body.free)
    Z = null_space(rows)
    modes = constrained_modes(body, 3, Z)
    derivatives = constrained_derivatives(body, modes, Z)
    assert derivatives.pairs.tolist() == [[i, j] for j in range(3) for i in range(j + 1)]
    assert np.abs(rows @ derivatives.shapes).max() < 1e-10 * np.abs(derivatives.shapes).max()
    N = dense_null_space(rows.toarray())
    for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True):
        step = 1e-4 / np.abs(modes.shapes[:, i]).max()
        ahead, behind = (body.force_and_stiffness(s * modes.shapes[:, i])[1] for s in (step, -step))
        load = (ahead @ modes.shapes[:, j] - behind @ modes.shapes[:, j]) / (2.0 * step)  # (H:φ_i)φ_j
        assert relative(N.T @ (body.rest_stiffness @ shape), -N.T @ load) < 1e-5, (i, j)


def test_the_derivative_is_the_curvature_of_the_static_answer_under_contact(pressed):
    """R(u) = ε K φ within the constraints has u = εφ + ½ε²Ψ + O(ε³)."""
    body, _, rows, Z = pressed
    modes = constrained_modes(body, 1, Z)
    derivative = constrained_derivatives(body, modes, Z).shapes[:, 0]
    phi = modes.shapes[:, 0]
    N = dense_null_space(rows.toarray())
    epsilon = 1e-3 / np.abs(phi).max()
    solutions = []
    for sign in (1.0, -1.0):
        u = sign * epsilon * phi
        target = N.T @ (body.rest_stiffness @ u)
        for _ in range(8):
            force, stiffness = body.force_and_stiffness(u)
            u = u + N @ np.linalg.solve(N.T @ (stiffness @ N), target - N.T @ force)
        solutions.append(u)
    curvature = (solutions[0] + solutions[1]) / epsilon**2
    assert relative(curvature, derivative) < 1e-3


def test_the_constrained_solve_is_the_dense_one_and_without_contact_the_plain_one(pressed):
    body, _, rows, Z = pressed
    load = np.random.default_rng(5).standard_normal((body.size, 3))
    K = body.rest_stiffness.toarray()
    N = dense_null_space(rows.toarray())
    assert relative(constrained_solve(body, Z)(load), N @ np.linalg.solve(N.T @ K @ N, N.T @ load)) < 1e-9
    assert relative(constrained_solve(body)(load), np.linalg.solve(K, load)) < 1e-9
    assert relative(constrained_solve(body, Z)(load[:, 0]), constrained_solve(body, Z)(load)[:, 0]) < 1e-12


def test_without_contact_modes_are_the_linear_ones_and_too_many_are_refused(pressed):
    body, _, _, Z = pressed
    assert np.array_equal(constrained_modes(body, 3).shapes, linear_modes(body, 3).shapes)
    with pytest.raises(ModeCountError):
        constrained_modes(body, Z.shape[1] + 1, Z)
