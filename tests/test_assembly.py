"""Forces, stiffness, its derivative and mass of whole meshes, for every law and element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softrig.errors import InputError
from softrig.fem.laws import LAWS
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_bricks, box_tets
from softrig.models.full import FullBody
from softrig.numerics.symmetric_tensors import sorted_indices

ELEMENTS = ("tet", "brick")
every_element = pytest.mark.parametrize("element", ELEMENTS)
every_law_and_element = pytest.mark.parametrize(("law", "element"), list(product(LAWS, ELEMENTS)))


@pytest.fixture
def free_body(distorted_box, varied_material):
    """An unanchored body on a distorted mesh, another material in every element."""

    def build(element, law="stvk", *, solver="superlu", **options):
        mesh = distorted_box(element)
        return FullBody(mesh, varied_material(mesh), law=law, solver=solver, **options)

    return build


def flat(field):
    return np.ascontiguousarray(field).ravel()


def affine(vertices, F, shift=(0.0, 0.0, 0.0)):
    """Displacements that take X to F X + shift."""
    return vertices @ (F - np.eye(3)).T + np.asarray(shift)


def large_deformation(body, seed=3):
    """Displacements that turn, stretch and shear the body by far more than a small strain, without inversion."""
    rng = np.random.default_rng(seed)
    turn = Rotation.from_rotvec([0.7, -0.4, 0.9]).as_matrix()
    F = turn @ np.array([[1.3, 0.2, 0.0], [0.0, 0.8, 0.1], [0.1, 0.0, 1.1]])
    noise = 0.05 * rng.standard_normal(body.mesh.vertices.shape)
    return flat(affine(body.mesh.vertices, F, (0.3, 0.1, -0.2)) + noise)[: body.size]


def smallest_jacobian(body, q):
    points = body.mesh.stiffness_points
    grad = np.einsum("eki,epkj->epij", body.expand(q)[points.nodes], points.gradients)
    return np.linalg.det(np.eye(3) + grad).min()


def differences(slope, function, at):
    """Derivatives of `function` along every coordinate, as columns."""
    columns = [slope(lambda t, row=row: function(at + t * row)) for row in np.eye(len(at))]
    return np.transpose(columns)


def assert_close(got, expected, tolerance):
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


@every_law_and_element
def test_force_is_the_derivative_of_energy(law, element, free_body, slope):
    body = free_body(element, law)
    q = large_deformation(body)
    assert smallest_jacobian(body, q) > 0.1
    assert_close(body.force(q), differences(slope, body.energy, q), 1e-8)


@every_law_and_element
def test_stiffness_is_the_derivative_of_force(law, element, free_body, slope):
    body = free_body(element, law)
    q = large_deformation(body)
    force, stiffness = body.force_and_stiffness(q)
    assert_close(stiffness.toarray(), differences(slope, body.force, q), 1e-7)
    assert_close(force, body.force(q), 1e-14)


@every_law_and_element
def test_stiffness_is_symmetric(law, element, free_body):
    body = free_body(element, law)
    K = body.force_and_stiffness(large_deformation(body))[1].toarray()
    assert_close(K, K.T, 1e-13)


@every_law_and_element
def test_projected_stiffness_is_positive_semidefinite_where_the_exact_one_is_not(law, element, free_body):
    body = free_body(element, law)
    squeezed = affine(body.mesh.vertices, np.diag([0.5, 0.6, 0.5]))
    q = flat(squeezed + 0.02 * np.random.default_rng(0).standard_normal(squeezed.shape))
    exact = np.linalg.eigvalsh(body.force_and_stiffness(q)[1].toarray())
    projected = np.linalg.eigvalsh(body.force_and_stiffness(q, projected=True)[1].toarray())
    assert exact[0] < -1e-3 * exact[-1], "the case must be indefinite to show anything"
    assert projected[0] > -1e-12 * projected[-1]


@every_law_and_element
def test_projection_changes_nothing_at_rest(law, element, free_body):
    body = free_body(element, law)
    projected = body.force_and_stiffness(np.zeros(body.size), projected=True)[1]
    assert_close(projected.toarray(), body.rest_stiffness.toarray(), 1e-13)


@every_law_and_element
def test_rigid_motion_of_a_free_body_costs_nothing(law, element, free_body):
    body = free_body(element, law)
    turn = Rotation.from_rotvec([0.3, 1.9, -0.8]).as_matrix()
    q = flat(affine(body.mesh.vertices, turn, (2.0, -1.0, 0.5)))
    scale = np.abs(body.rest_stiffness).max()
    assert body.energy(q) < 1e-13 * scale
    assert np.abs(body.force(q)).max() < 1e-13 * scale


@every_law_and_element
def test_force_turns_with_the_deformed_body(law, element, free_body):
    body = free_body(element, law)
    q = large_deformation(body)
    turn = Rotation.from_rotvec([-1.3, 0.4, 0.6]).as_matrix()
    turned = flat((body.mesh.vertices + body.expand(q)) @ turn.T - body.mesh.vertices)
    assert_close(body.force(turned).reshape(-1, 3), body.force(q).reshape(-1, 3) @ turn.T, 1e-12)


@every_law_and_element
def test_internal_forces_have_no_resultant_and_no_moment(law, element, free_body):
    body = free_body(element, law)
    q = large_deformation(body)
    force = body.force(q).reshape(-1, 3)
    scale = np.abs(force).sum()
    moments = np.cross(body.mesh.vertices + body.expand(q), force)
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-13 * scale)
    np.testing.assert_allclose(moments.sum(axis=0), 0.0, atol=1e-12 * scale)


@every_element
def test_rest_stiffness_has_exactly_six_rigid_modes(element, free_body):
    values = np.linalg.eigvalsh(free_body(element).rest_stiffness.toarray())
    assert np.abs(values[:6]).max() < 1e-13 * values[-1]
    assert values[6] > 1e-4 * values[-1]


@every_law_and_element
def test_patch_of_uniform_material_under_affine_motion_is_in_equilibrium(law, element, distorted_box):
    mesh = distorted_box(element, (3, 3, 3), interior_only=True)
    body = FullBody(mesh, Material(young=2.0, poisson=0.3, density=1.0), law=law, solver="superlu")
    F = Rotation.from_rotvec([0.2, 0.5, -0.3]).as_matrix() @ np.array([[1.4, 0.3, 0], [0, 0.7, 0.2], [0, 0, 1.1]])
    force = body.force(flat(affine(mesh.vertices, F, (0.1, 0.2, 0.3)))).reshape(-1, 3)
    inside = np.setdiff1d(np.arange(len(mesh.vertices)), mesh.boundary_faces)
    assert len(inside) == 8
    assert np.abs(force[inside]).max() < 1e-14 * np.abs(force).max() * len(mesh.vertices)


@every_element
def test_pulled_bar_answers_with_youngs_modulus_and_poissons_ratio(element, distorted_box):
    """Uniaxial stress σ: strain σ/E along, −νσ/E across; the end face carries σ times its area, outwards."""
    mesh = distorted_box(element, (3, 3, 3), interior_only=True)
    young, poisson, stretch = 5.0, 0.35, 1e-7
    body = FullBody(mesh, Material(young, poisson, 1.0), law="corotational")
    strain = np.diag([1.0, -poisson, -poisson]) * stretch
    force = body.force(flat(affine(mesh.vertices, np.eye(3) + strain))).reshape(-1, 3)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    area = (high - low)[1] * (high - low)[2]
    pulled = np.isclose(mesh.vertices[:, 0], high[0])
    held = np.isclose(mesh.vertices[:, 0], low[0])
    np.testing.assert_allclose(force[pulled].sum(axis=0), [young * stretch * area, 0, 0], atol=1e-6 * stretch)
    np.testing.assert_allclose(force[held].sum(axis=0), [-young * stretch * area, 0, 0], atol=1e-6 * stretch)
    assert np.abs(force[~pulled & ~held]).max() < 1e-6 * stretch


AB = 1  # the place of the pair (0, 1) among (0, 0), (0, 1), (1, 1)


@every_law_and_element
def test_stiffness_derivative_is_the_second_difference_of_force(law, element, free_body):
    body = free_body(element, law)
    a, b = np.random.default_rng(4).standard_normal((2, body.size))

    def mixed_difference(step):
        corners = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
        return sum(sign * body.force(step * (s * a + t * b)) for s, t, sign in corners) / (4.0 * step**2)

    step = 4e-4
    expected = (4.0 * mixed_difference(step) - mixed_difference(2.0 * step)) / 3.0
    derivative = body.stiffness_derivative(np.stack([a, b], axis=1))
    assert_close(derivative[:, AB], expected, 1e-6)


@every_law_and_element
def test_stiffness_derivative_is_bilinear_and_symmetric(law, element, free_body):
    body = free_body(element, law)
    a, b, c = np.random.default_rng(5).standard_normal((3, body.size))

    def pair(one, other):
        return body.stiffness_derivative(np.stack([one, other], axis=1))[:, AB]

    assert_close(pair(b, a), pair(a, b), 1e-13)
    assert_close(pair(2.0 * a - 3.0 * b, c), 2.0 * pair(a, c) - 3.0 * pair(b, c), 1e-12)


def test_stiffness_derivatives_of_many_fields_stand_in_pair_order(free_body):
    body = free_body("brick", "stable-neo-hookean")
    fields = np.random.default_rng(5).standard_normal((body.size, 4))
    together = body.stiffness_derivative(fields)
    for place, (i, j) in enumerate(sorted_indices(2, 4)):
        alone = body.stiffness_derivative(fields[:, [i, j]])[:, AB]
        assert_close(together[:, place], alone, 1e-12)


@every_law_and_element
def test_stiffness_derivative_is_the_change_of_stiffness(law, element, free_body, slope):
    body = free_body(element, law)
    a, b = np.random.default_rng(6).standard_normal((2, body.size))
    change = slope(lambda t: body.force_and_stiffness(t * a)[1] @ b)
    derivative = body.stiffness_derivative(np.stack([a, b], axis=1))
    assert_close(derivative[:, AB], change, 1e-5)


@every_law_and_element
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_fixing_vertices_strikes_out_their_rows_and_columns(law, element, mass, free_body):
    free = free_body(element, law, mass=mass)
    held = np.random.default_rng(7).choice(len(free.mesh.vertices), 9, replace=False)
    body = FullBody(free.mesh, free.material, law=law, mass=mass, fixed=held, solver="superlu")
    kept = np.repeat(~np.isin(np.arange(len(free.mesh.vertices)), held), 3)
    displacement = 0.05 * np.random.default_rng(8).standard_normal(free.size) * kept

    force, stiffness = free.force_and_stiffness(displacement)
    own_force, own_stiffness = body.force_and_stiffness(displacement[kept])
    assert body.size == kept.sum()
    assert_close(own_force, force[kept], 1e-14)
    assert_close(own_stiffness.toarray(), stiffness.toarray()[np.ix_(kept, kept)], 1e-14)
    assert_close(body.mass.toarray(), free.mass.toarray()[np.ix_(kept, kept)], 1e-14)
    assert body.energy(displacement[kept]) == pytest.approx(free.energy(displacement), rel=1e-14)

    fields = np.random.default_rng(9).standard_normal((free.size, 2)) * kept[:, None]
    own_derivative = body.stiffness_derivative(fields[kept])
    assert_close(own_derivative, free.stiffness_derivative(fields)[kept], 1e-13)


def test_expand_puts_zeros_at_fixed_vertices_and_restrict_undoes_it(free_body):
    free = free_body("tet")
    body = FullBody(free.mesh, free.material, fixed=[0, 5, 7])
    for shape in ((body.size,), (body.size, 4)):
        q = np.random.default_rng(0).standard_normal(shape)
        field = body.expand(q)
        assert field.shape == (len(body.mesh.vertices), 3, *shape[1:])
        assert not field[[0, 5, 7]].any()
        np.testing.assert_array_equal(body.restrict(field), q)


def test_fixed_vertices_may_be_given_as_a_mask_or_as_indices(free_body):
    free = free_body("brick")
    mask = free.mesh.vertices[:, 0] < 0.2
    by_mask = FullBody(free.mesh, free.material, fixed=mask)
    by_indices = FullBody(free.mesh, free.material, fixed=np.nonzero(mask)[0])
    np.testing.assert_array_equal(by_mask.rest_stiffness.toarray(), by_indices.rest_stiffness.toarray())
    np.testing.assert_array_equal(by_mask.free, ~mask)


@every_element
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_each_direction_carries_the_whole_mass(element, mass, free_body):
    body = free_body(element, mass=mass)
    M = body.mass.toarray().reshape(len(body.mesh.vertices), 3, -1, 3)
    expected = np.eye(3) * (body.density * body.mesh.volumes).sum()
    np.testing.assert_allclose(M.sum(axis=(0, 2)), expected, rtol=0, atol=1e-13)
    assert body.vertex_mass.sum() == pytest.approx(expected[0, 0], rel=1e-13)


@every_element
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_mass_is_symmetric_and_positive_definite(element, mass, free_body):
    M = free_body(element, mass=mass).mass.toarray()
    assert_close(M, M.T, 1e-15)
    assert np.linalg.eigvalsh(M)[0] > 0.0


@every_element
def test_lumped_mass_is_the_row_sums_of_the_consistent_mass(element, free_body):
    consistent, lumped = free_body(element), free_body(element, mass="lumped")
    np.testing.assert_allclose(
        lumped.mass.toarray(), np.diag(consistent.mass.toarray().sum(axis=1)), rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(lumped.vertex_mass, consistent.vertex_mass, rtol=1e-13)


def test_consistent_mass_of_a_tet_is_the_textbook_one():
    """ρV/20 (1 + δ_ab)."""
    corners = np.random.default_rng(0).uniform(0.0, 0.2, (4, 3)) + np.vstack([np.zeros(3), np.eye(3)])
    body = FullBody(VolumeMesh.build(corners, np.array([[0, 1, 2, 3]])), Material(1.0, 0.3, density=7.0))
    volume = abs(np.linalg.det(corners[1:] - corners[0])) / 6.0
    expected = 7.0 * volume / 20.0 * (np.ones((4, 4)) + np.eye(4))
    np.testing.assert_allclose(body.scalar_mass.toarray(), expected, rtol=1e-14)
    np.testing.assert_allclose(body.mass.toarray(), np.kron(expected, np.eye(3)), rtol=1e-14)


@pytest.mark.parametrize("box", [box_tets, box_bricks])
def test_consistent_mass_integrates_products_of_linear_fields_exactly(box):
    """∫ρ x y dV = ρ L₁² L₂² L₃ / 4 and ∫ρ x² dV = ρ L₁³ L₂ L₃ / 3 over a box with a corner at 0."""
    lengths = np.array([1.2, 0.7, 0.5])
    body = FullBody(box(lengths, (2, 3, 1)), Material(1.0, 0.3, density=3.0))
    x, y, _ = body.mesh.vertices.T
    assert x @ (body.scalar_mass @ y) == pytest.approx(3.0 * lengths.prod() * lengths[0] * lengths[1] / 4.0, rel=1e-13)
    assert x @ (body.scalar_mass @ x) == pytest.approx(3.0 * lengths.prod() * lengths[0] ** 2 / 3.0, rel=1e-13)


@every_element
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_mass_solve_undoes_mass_times(element, mass, free_body):
    body = free_body(element, mass=mass)
    for shape in ((body.size,), (body.size, 3)):
        v = np.random.default_rng(1).standard_normal(shape)
        np.testing.assert_allclose(body.solve_mass(body.mass_times(v)), v, rtol=0, atol=1e-12)


@every_element
def test_system_is_the_weighted_sum_of_mass_and_stiffness(element, free_body):
    body = free_body(element)
    K = body.force_and_stiffness(large_deformation(body))[1]
    expected = 2.5 * body.mass.toarray() - 0.75 * K.toarray()
    assert_close(body.system(2.5, K, -0.75).toarray(), expected, 1e-14)


@pytest.mark.parametrize("solver", ["superlu", "auto"])
def test_solve_handles_definite_and_indefinite_systems(solver, free_body):
    body = free_body("tet", solver=solver)
    right = np.random.default_rng(2).standard_normal(body.size)
    for stiffness_factor in (1.0, -0.3):
        system = body.system(1.0, body.rest_stiffness, stiffness_factor)
        solution = body.solve(system, right)
        assert np.abs(system @ solution - right).max() < 1e-10 * np.abs(right).max()


def test_unknown_mass_is_refused(free_body):
    with pytest.raises(InputError, match="consistent, lumped"):
        free_body("tet", mass="heavy")
