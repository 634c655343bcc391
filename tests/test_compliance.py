"""The compliance number of a basis."""

from __future__ import annotations

import numpy as np
import pytest

from bodies_for_tests import beam
from softrig.bases.compliance import acceleration_forces, compliance, gravity_compliance, gravity_loads
from softrig.bases.contact import constrained_solve, constraint_rows
from softrig.bases.modes import linear_modes
from softrig.errors import InputError, NotFiniteError
from softrig.numerics.null_space import null_space


@pytest.fixture(scope="module", params=["lumped", "consistent"])
def body(request):
    return beam("tets", (1.0, 0.22, 0.17), (4, 2, 1), mass=request.param)


def test_it_is_the_ratio_of_elastic_works(body):
    rng = np.random.default_rng(0)
    U, F = rng.standard_normal((body.size, 7)), rng.standard_normal((body.size, 3))
    K = body.rest_stiffness.toarray()
    got = compliance(body, U, F)
    for k, f in enumerate(F.T):
        reduced = f @ U @ np.linalg.solve(U.T @ K @ U, U.T @ f)
        assert got[k] == pytest.approx(reduced / (f @ np.linalg.solve(K, f)), rel=1e-9)
    assert compliance(body, U, F[:, 0]) == pytest.approx(got[:1])


def test_a_basis_that_holds_the_answer_gets_one_and_an_orthogonal_one_zero(body):
    loads = gravity_loads(body)
    answers = np.linalg.solve(body.rest_stiffness.toarray(), loads)
    assert compliance(body, answers, loads) == pytest.approx(1.0, abs=1e-10)
    # One column, K-orthogonal to the answer: Uᵀf = UᵀK u = 0.
    u, other = answers[:, 1], np.random.default_rng(1).standard_normal(body.size)
    other -= u * (u @ body.rest_stiffness @ other) / (u @ body.rest_stiffness @ u)
    assert compliance(body, other[:, None], loads[:, 1])[0] < 1e-12


def test_scaling_and_dependent_columns_do_not_matter_and_more_columns_never_hurt(body):
    loads = gravity_loads(body)
    U = linear_modes(body, 6).shapes
    base = compliance(body, U, loads)
    scaled = np.concatenate(
        [U * [1e-6, 1.0, 1e3, 1.0, 1.0, 1.0], U[:, :2] + U[:, 2:4], np.zeros((body.size, 1))], axis=1
    )
    assert compliance(body, scaled, loads) == pytest.approx(base, rel=1e-6)
    fewer = compliance(body, U[:, :3], loads)
    assert (fewer <= base + 1e-12).all()
    assert (base <= 1.0 + 1e-12).all()


def test_gravity_is_the_weight_along_each_axis(body):
    loads = gravity_loads(body, 9.81)
    for axis in range(3):
        field = body.expand(loads[:, axis])
        assert field[:, axis].sum() == pytest.approx(9.81 * body.vertex_mass[body.free].sum())
        assert np.abs(np.delete(field, axis, axis=1)).max() == 0.0
    U = linear_modes(body, 4).shapes
    assert np.array_equal(gravity_compliance(body, U), compliance(body, U, loads))


def test_accelerations_of_fixed_vertices_pull_through_a_consistent_mass(body):
    field = np.zeros((len(body.fixed), 3, 1))
    field[body.fixed, 1] = 1.0
    pulled = acceleration_forces(body, field)
    assert (np.abs(pulled).max() > 0.0) == (body.mass_kind == "consistent")


def test_under_contact_the_truth_is_the_constrained_one():
    body = beam("tets", (1.0, 0.22, 0.17), (4, 2, 1), mass="lumped")

    class Contacts:
        vertices = np.flatnonzero(body.mesh.vertices[:, 0] > 0.9)[:3]
        normals = np.eye(3)
        sliding = np.array([True, True, False])

    Z = null_space(constraint_rows(Contacts(), body.free))
    loads = gravity_loads(body)
    answers = constrained_solve(body, Z)(loads)
    assert compliance(body, answers, loads, null_space=Z) == pytest.approx(1.0, abs=1e-9)
    assert (compliance(body, answers, loads) < 0.999).any()


def test_a_load_that_does_nothing_is_answered_fully_and_wrong_shapes_are_refused(body):
    U = linear_modes(body, 2).shapes
    assert compliance(body, U, np.zeros((body.size, 1)))[0] == 1.0
    with pytest.raises(InputError, match="rows"):
        compliance(body, U[:-1], gravity_loads(body))
    with pytest.raises(NotFiniteError):
        compliance(body, U * np.nan, gravity_loads(body))
    with pytest.raises(InputError, match="acceleration fields"):
        acceleration_forces(body, np.zeros((2, 3, 1)))
