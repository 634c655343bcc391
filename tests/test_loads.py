"""External forces: totals, directions, and that embedding spreads what it carries."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import InputError
from softrig.fem.embedding import Embedding
from softrig.fem.loads import STANDARD_GRAVITY, gravity_force, point_force, pressure_force, pull_force
from softrig.fem.material import Material
from softrig.meshing import box_bricks, box_tets
from softrig.models.full import FullBody

ELEMENTS = ("tet", "brick")


@pytest.fixture
def embedding():
    """Five points, each a weighted mean of four of twelve vertices, one vertex named twice by a point."""
    rng = np.random.default_rng(0)
    nodes = np.array([rng.choice(12, 4, replace=False) for _ in range(5)])
    nodes[2, 1] = nodes[2, 0]
    weights = rng.uniform(0.1, 1.0, (5, 4))
    return Embedding(nodes, weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("element", ELEMENTS)
def test_pressure_on_a_closed_surface_has_no_resultant_and_no_torque(element, distorted_box):
    mesh = distorted_box(element)
    force = pressure_force(mesh.vertices, mesh.boundary_triangles, 3.0)
    assert np.abs(force).max() > 0.01
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(np.cross(mesh.vertices, force).sum(axis=0), 0.0, atol=1e-13)


@pytest.mark.parametrize("box", [box_tets, box_bricks])
def test_pressure_on_a_flat_face_is_pressure_times_area_inwards(box):
    mesh = box((1.0, 0.5, 0.4), (3, 2, 2))
    triangles = mesh.boundary_triangles
    end = triangles[np.isclose(mesh.vertices[triangles][:, :, 0], 1.0).all(axis=1)]
    force = pressure_force(mesh.vertices, end, 7.0)
    np.testing.assert_allclose(force.sum(axis=0), [-7.0 * 0.5 * 0.4, 0.0, 0.0], atol=1e-14)
    assert not force[mesh.vertices[:, 0] < 0.99].any()
    np.testing.assert_allclose(pressure_force(mesh.vertices, end, np.full(len(end), 7.0)), force)


def test_each_triangle_has_its_own_pressure():
    positions = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [5, 5, 0], [6, 5, 0], [5, 6, 0]])
    force = pressure_force(positions, np.array([[0, 1, 2], [3, 4, 5]]), np.array([3.0, 6.0]))
    np.testing.assert_allclose(force, [[0, 0, -1.0]] * 6)


def test_pressure_is_the_gradient_of_pressure_times_volume(distorted_box, slope):
    """A follower load: −p ∂V/∂x at the current positions."""
    mesh = distorted_box("tet")
    triangles = mesh.boundary_triangles

    def enclosed_volume(positions):
        return np.linalg.det(positions[triangles]).sum() / 6.0

    direction = np.random.default_rng(3).standard_normal(mesh.vertices.shape)
    expected = -2.0 * slope(lambda t: enclosed_volume(mesh.vertices + t * direction))
    assert (pressure_force(mesh.vertices, triangles, 2.0) * direction).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_gravity_pulls_with_the_whole_mass(element, mass, distorted_box, varied_material):
    mesh = distorted_box(element)
    body = FullBody(mesh, varied_material(mesh), mass=mass, solver="superlu")
    total = (body.density * mesh.volumes).sum()
    np.testing.assert_allclose(
        gravity_force(body.vertex_mass).sum(axis=0), [0.0, 0.0, -STANDARD_GRAVITY * total], rtol=1e-12
    )
    sideways = (1.0, -2.0, 3.0)
    np.testing.assert_allclose(
        gravity_force(body.vertex_mass, sideways).sum(axis=0), np.multiply(sideways, total), rtol=1e-12
    )


def test_gravity_does_the_work_of_the_falling_mass_centre(distorted_box):
    mesh = distorted_box("brick")
    body = FullBody(mesh, Material(1.0, 0.3, density=2.0), solver="superlu")
    weight = gravity_force(body.vertex_mass)
    assert (weight * [0.0, 0.0, -0.5]).sum() == pytest.approx(0.5 * STANDARD_GRAVITY * 2.0 * mesh.volumes.sum())
    torque = np.cross(mesh.vertices, weight).sum(axis=0)
    centre = body.vertex_mass @ mesh.vertices / body.vertex_mass.sum()
    np.testing.assert_allclose(torque, np.cross(centre, weight.sum(axis=0)), atol=1e-12)


def test_point_forces_at_the_same_vertex_add_up():
    force = point_force(4, [1, 3, 1], [[1.0, 0, 0], [0, 2, 0], [0, 0, 5]])
    np.testing.assert_array_equal(force, [[0, 0, 0], [1, 0, 5], [0, 0, 0], [0, 2, 0]])


def test_one_point_force_serves_every_named_vertex():
    np.testing.assert_array_equal(point_force(3, [0, 2], [1.0, 2, 3]), [[1, 2, 3], [0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(point_force(2, 1, [1.0, 2, 3]), [[0, 0, 0], [1, 2, 3]])


def test_point_forces_outside_the_mesh_are_refused_by_vertex():
    with pytest.raises(InputError) as caught:
        point_force(3, [0, 3, -1], [1.0, 0.0, 0.0])
    assert caught.value.indices.tolist() == [3, -1]


def test_pull_is_minus_the_gradient_of_the_spring_energy(embedding, slope):
    rng = np.random.default_rng(1)
    positions, targets, stiffness = rng.standard_normal((12, 3)), rng.standard_normal((5, 3)), 2.5

    def spring_energy(moved):
        return 0.5 * stiffness * ((embedding.carry(moved) - targets) ** 2).sum()

    units = np.eye(36).reshape(36, 12, 3)
    expected = [-slope(lambda t, unit=unit: spring_energy(positions + t * unit)) for unit in units]
    np.testing.assert_allclose(pull_force(positions, embedding, targets, stiffness).ravel(), expected, atol=1e-9)


def test_pull_saturates_each_spring_and_keeps_its_direction():
    embedding = Embedding(np.array([[0], [1], [2]]), np.ones((3, 1)))
    positions = np.zeros((3, 3))
    targets = np.array([[3.0, 4.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])
    force = pull_force(positions, embedding, targets, stiffness=10.0, most=2.0)
    np.testing.assert_allclose(force, [[1.2, 1.6, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], rtol=0, atol=1e-15)


@pytest.mark.parametrize("trailing", [(), (3,), (3, 2)])
def test_carry_and_spread_are_transposes(embedding, trailing):
    rng = np.random.default_rng(2)
    field, forces = rng.standard_normal((12, *trailing)), rng.standard_normal((5, *trailing))
    carried, spread = embedding.carry(field), embedding.spread(forces, 12)
    assert carried.shape == forces.shape
    assert spread.shape == field.shape
    assert (carried * forces).sum() == pytest.approx((field * spread).sum(), rel=1e-12)
    np.testing.assert_allclose(embedding.matrix(12) @ field.reshape(12, -1), carried.reshape(5, -1), atol=1e-15)


def test_embedding_carries_constants_exactly_and_spreads_the_whole_force(embedding):
    np.testing.assert_allclose(embedding.carry(np.full((12, 3), 4.0)), 4.0, rtol=1e-15)
    forces = np.random.default_rng(4).standard_normal((5, 3))
    np.testing.assert_allclose(embedding.spread(forces, 12).sum(axis=0), forces.sum(axis=0), rtol=0, atol=1e-14)


def test_embedding_of_mismatched_nodes_and_weights_is_refused():
    with pytest.raises(InputError):
        Embedding(np.zeros((2, 4), int), np.ones((2, 3)))
