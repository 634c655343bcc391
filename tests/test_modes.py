"""Linear modes against a dense eigensolve, anchored and free, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import eigh

from bodies_for_tests import RUBBER, beam
from softrig.bases.modes import linear_modes, rigid_motions
from softrig.errors import AnchorError, ModeCountError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody

KINDS = ["tets", "bricks"]


def residual(body, modes):
    """‖Kψ − λMψ‖ relative to ‖Kψ‖, a mode at a time."""
    pulled = body.rest_stiffness @ modes.shapes
    return np.linalg.norm(pulled - (body.mass @ modes.shapes) * modes.eigenvalues, axis=0) / np.linalg.norm(
        pulled, axis=0
    )


@pytest.mark.parametrize("solver", ["superlu", "pardiso"])
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_modes_solve_the_eigenproblem_and_are_the_lowest(free, kind, mass, solver):
    body = beam(kind, free=free, mass=mass, solver=solver)
    modes = linear_modes(body, 7)
    dense = eigh(body.rest_stiffness.toarray(), body.mass.toarray(), eigvals_only=True)
    skip = 6 if free else 0
    np.testing.assert_allclose(modes.eigenvalues, dense[skip : skip + 7], rtol=1e-7)
    assert residual(body, modes).max() < 1e-6
    np.testing.assert_allclose(modes.shapes.T @ (body.mass @ modes.shapes), np.eye(7), atol=1e-10)
    np.testing.assert_allclose(modes.frequencies, np.sqrt(dense[skip : skip + 7]) / (2.0 * np.pi), rtol=1e-7)


@pytest.mark.parametrize("count", [3, "all"])
def test_free_modes_hold_no_rigid_motion(count):
    body = beam(free=True, counts=(3, 1, 1))
    modes = linear_modes(body, body.size - 6 if count == "all" else count)
    assert np.abs(modes.rigid.T @ (body.mass @ modes.shapes)).max() < 1e-10
    np.testing.assert_allclose(modes.rigid.T @ (body.mass @ modes.rigid), np.eye(6), atol=1e-10)
    if count == "all":
        together = np.concatenate([modes.rigid, modes.shapes], axis=1)
        assert np.linalg.matrix_rank(together) == body.size


def test_anchored_modes_come_without_rigid_motions():
    assert linear_modes(beam(), 2).rigid is None


@pytest.mark.parametrize("axis", range(3))
def test_rigid_motions_span_translations_and_rotations_about_any_point(axis):
    body = beam("tets", free=True)
    rigid = rigid_motions(body)
    direction = np.eye(3)[axis]
    fields = (np.broadcast_to(direction, body.mesh.vertices.shape), np.cross(direction, body.mesh.vertices - [3, 2, 1]))
    for field in fields:
        u = body.restrict(np.array(field))
        np.testing.assert_allclose(rigid @ (rigid.T @ (body.mass @ u)), u, atol=1e-10)
        assert np.linalg.norm(body.rest_stiffness @ u) < 1e-9 * np.abs(body.rest_stiffness.data).max()


def test_all_modes_of_a_small_body_may_be_asked_for():
    body = beam(counts=(1, 1, 1))
    assert linear_modes(body, body.size).shapes.shape == (12, 12)


@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_asking_for_more_modes_than_there_are_raises(free):
    body = beam(counts=(1, 1, 1), free=free)
    available = body.size - 6 * free
    linear_modes(body, available)
    for count in (available + 1, 0, -1):
        with pytest.raises(ModeCountError):
            linear_modes(body, count)


@pytest.mark.parametrize("held", [[0], [0, 1], [0, 1, 2, 3, 4]], ids=["a point", "two points", "a line"])
def test_a_body_held_by_too_little_raises_and_names_it(held):
    mesh = box_tets((1.0, 0.2, 0.15), (4, 1, 1))  # vertices 0 to 4 lie on one edge
    with pytest.raises(AnchorError) as raised:
        linear_modes(FullBody(mesh, RUBBER, fixed=np.array(held)), 3)
    assert raised.value.indices.tolist() == [0]


def two_boxes() -> VolumeMesh:
    one = box_tets((1.0, 0.2, 0.15), (2, 1, 1))
    n = len(one.vertices)
    return VolumeMesh.build(
        np.concatenate([one.vertices, one.vertices + np.array([0.0, 5.0, 0.0])]),
        np.concatenate([one.elements, one.elements + n]),
    )


def test_a_free_body_in_two_parts_raises_and_names_a_vertex_of_each():
    mesh = two_boxes()
    with pytest.raises(AnchorError) as raised:
        linear_modes(FullBody(mesh, RUBBER), 3)
    assert raised.value.indices.tolist() == [0, len(mesh.vertices) // 2]


def test_an_anchored_body_with_a_loose_part_raises_and_names_that_part():
    mesh = two_boxes()
    fixed = (mesh.vertices[:, 0] == 0.0) & (mesh.vertices[:, 1] < 2.0)
    with pytest.raises(AnchorError) as raised:
        linear_modes(FullBody(mesh, RUBBER, fixed=fixed), 3)
    assert mesh.vertices[raised.value.indices][:, 1].min() >= 5.0


@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_frequencies_scale_as_the_root_of_stiffness_over_density(free):
    soft = linear_modes(beam(free=free), 4)
    stiff = linear_modes(beam(free=free, material=Material(young=9e5, poisson=0.35, density=4000.0)), 4)
    np.testing.assert_allclose(stiff.frequencies, 1.5 * soft.frequencies, rtol=1e-8)
