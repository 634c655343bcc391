"""Forces, stiffness and mass equal to those of scikit-fem, from weak forms written out here.

The forms are the textbooks' tensors (Bonet & Wood 2008; Smith et al. 2018 for the stable law) in
index-free NumPy, assembled by another library's elements, mappings and quadrature loops.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from skfem import Basis, BilinearForm, ElementHex1, ElementTetP1, ElementVector, LinearForm, MeshHex1, MeshTet1

from softrig.models.full import FullBody

# scikit-fem's corners of the unit cube, as positions in VTK's order.
HEX_FROM_VTK = [0, 4, 3, 1, 7, 5, 2, 6]
ELEMENTS = ("tet", "brick")
TOLERANCE = 1e-10


def gauss_cube():
    """The 2×2×2 Gauss rule on scikit-fem's unit cube."""
    line = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)
    return np.array(list(product(line, line, line))).T, np.full(8, 0.125)


def other_basis(mesh):
    """scikit-fem's basis on the same vertices, and the dof of every coordinate of every vertex, flat."""
    if mesh.elements.shape[1] == 4:
        other = MeshTet1(mesh.vertices.T, mesh.elements.T.astype(np.int64))
        basis = Basis(other, ElementVector(ElementTetP1()), intorder=2)
    else:
        other = MeshHex1(mesh.vertices.T, mesh.elements[:, HEX_FROM_VTK].T.astype(np.int64))
        basis = Basis(other, ElementVector(ElementHex1()), quadrature=gauss_cube())
    np.testing.assert_array_equal(other.p.T, mesh.vertices)
    dofs = basis.nodal_dofs.T.ravel()
    np.testing.assert_allclose(basis.doflocs[:, dofs[::3]].T, mesh.vertices, rtol=0, atol=1e-12)
    return basis, dofs


def at_points(field):
    """(3, 3, elements, points) as scikit-fem has it, to (elements, points, 3, 3) for matrix algebra."""
    return np.moveaxis(field, (0, 1), (-2, -1))


def transpose(A):
    return np.swapaxes(A, -1, -2)


def trace(A):
    return np.trace(A, axis1=-2, axis2=-1)[..., None, None]


def contract(A, B):
    return (A * B).sum(axis=(-2, -1))


def stvk_stress(F, lam, mu):
    E = 0.5 * (transpose(F) @ F - np.eye(3))
    return F @ (lam * trace(E) * np.eye(3) + 2.0 * mu * E)


def stvk_tangent(F, D, lam, mu):
    E = 0.5 * (transpose(F) @ F - np.eye(3))
    dE = 0.5 * (transpose(D) @ F + transpose(F) @ D)
    S, dS = (lam * trace(strain) * np.eye(3) + 2.0 * mu * strain for strain in (E, dE))
    return D @ S + F @ dS


def neo_hookean_stress(F, lam, mu):
    inverse = transpose(np.linalg.inv(F))
    return mu * (F - inverse) + lam * np.log(np.linalg.det(F))[..., None, None] * inverse


def neo_hookean_tangent(F, D, lam, mu):
    inverse = transpose(np.linalg.inv(F))
    logarithm = np.log(np.linalg.det(F))[..., None, None]
    turned = inverse @ transpose(D) @ inverse
    return mu * D + (mu - lam * logarithm) * turned + lam * trace(transpose(inverse) @ D) * inverse


def stable_stress(F, lam, mu):
    """Smith et al. 2018 Eq. 18 with their λ = λ + μ, so that small strains are Hooke's."""
    stiff, J = lam + mu, np.linalg.det(F)[..., None, None]
    return mu * F + stiff * (J - 1.0 - mu / stiff) * J * transpose(np.linalg.inv(F))


def stable_tangent(F, D, lam, mu):
    stiff, J, inverse = lam + mu, np.linalg.det(F)[..., None, None], transpose(np.linalg.inv(F))
    alpha = 1.0 + mu / stiff
    along = trace(transpose(inverse) @ D)
    return mu * D + stiff * J * ((2.0 * J - alpha) * along * inverse - (J - alpha) * inverse @ transpose(D) @ inverse)


TEXTBOOK = {
    "stvk": (stvk_stress, stvk_tangent),
    "neo-hookean": (neo_hookean_stress, neo_hookean_tangent),
    "stable-neo-hookean": (stable_stress, stable_tangent),
}


def deformation_gradient(w):
    return np.eye(3) + at_points(w["displacement"].grad)


def force_form(stress):
    return LinearForm(lambda v, w: contract(stress(deformation_gradient(w), w["lam"], w["mu"]), at_points(v.grad)))


def stiffness_form(tangent):
    return BilinearForm(
        lambda u, v, w: contract(
            tangent(deformation_gradient(w), at_points(u.grad), w["lam"], w["mu"]), at_points(v.grad)
        )
    )


@BilinearForm
def hooke_form(u, v, w):
    gradient, test = at_points(u.grad), at_points(v.grad)
    strain = 0.5 * (gradient + transpose(gradient))
    return contract(w["lam"] * trace(strain) * np.eye(3) + 2.0 * w["mu"] * strain, test)


@BilinearForm
def mass_form(u, v, w):
    return w["density"][..., 0, 0] * (u * v).sum(axis=0)


def per_point(values, basis):
    """(elements, points, 1, 1) of one value an element."""
    return np.broadcast_to(values[:, None, None, None], (len(values), basis.X.shape[-1], 1, 1))


def assert_same(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("law", TEXTBOOK)
def test_force_and_stiffness_of_a_large_deformation_equal_scikit_fems(law, element, distorted_box, varied_material):
    mesh = distorted_box(element, (3, 2, 2), seed=11)
    body = FullBody(mesh, varied_material(mesh), law=law, solver="superlu")
    basis, dofs = other_basis(mesh)
    noise = 0.04 * np.random.default_rng(12).standard_normal(mesh.vertices.shape)
    q = (mesh.vertices @ np.array([[0.3, -0.5, 0.1], [0.4, -0.1, 0.2], [0.0, 0.1, -0.2]]) + noise).ravel()
    displacement = np.empty_like(q)
    displacement[dofs] = q
    state = {
        "displacement": basis.interpolate(displacement),
        "lam": per_point(body.lam, basis),
        "mu": per_point(body.mu, basis),
    }
    stress, tangent = TEXTBOOK[law]

    force, stiffness = body.force_and_stiffness(q)
    assert_same(force, force_form(stress).assemble(basis, **state)[dofs])
    assert_same(stiffness.toarray(), stiffness_form(tangent).assemble(basis, **state).toarray()[np.ix_(dofs, dofs)])


@pytest.mark.parametrize("element", ELEMENTS)
def test_rest_stiffness_and_mass_equal_scikit_fems(element, distorted_box, varied_material):
    mesh = distorted_box(element, (3, 2, 2), seed=13)
    body = FullBody(mesh, varied_material(mesh), law="corotational", solver="superlu")
    basis, dofs = other_basis(mesh)
    lam, mu, density = (per_point(values, basis) for values in (body.lam, body.mu, body.density))
    stiffness = hooke_form.assemble(basis, lam=lam, mu=mu).toarray()[np.ix_(dofs, dofs)]
    mass = mass_form.assemble(basis, density=density).toarray()[np.ix_(dofs, dofs)]
    assert_same(body.rest_stiffness.toarray(), stiffness)
    assert_same(body.mass.toarray(), mass)
