"""What a domain weighs in its moving frame and how frames follow: brute force, differences, the paper's equations."""

from __future__ import annotations

import numpy as np
import pytest

from domain_bodies_for_tests import RUBBER, polar, rate, second_rate, shrub, shrub_bodies, tilde, turn, vee
from softrig.bases.carrying import carrying_basis, wrench_fields
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.errors import InputError, ModeCountError
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.models.kernels.polar import angular_map, angular_rates, polar_rotation
from softrig.models.kernels.substructured_terms import POLAR_WORK, domain_terms, interface, product_table
from softrig.pipeline.domain_flesh import drag_table, interface_link, mean_gradients, mode_counts, subtree_burdens

SEEDS = [0, 1, 2]


def crooked_body(seed: int = 0) -> FullBody:
    """A small box, distorted, off its origin."""
    box = box_tets((0.5, 0.4, 0.3), (1, 2, 1))
    rng = np.random.default_rng(seed)
    vertices = box.vertices + 0.03 * rng.standard_normal(box.vertices.shape) + np.array([0.2, -0.4, 0.3])
    return FullBody(VolumeMesh.build(vertices, box.elements), RUBBER, solver="superlu")


def products_of(body: FullBody, basis: np.ndarray) -> np.ndarray:
    """(r+2, r+2, 3, 3) ∫ρ a ⊗ b of {uniform, X, modes} by the consistent mass."""
    X = body.mesh.vertices
    fields = np.concatenate([np.ones((len(X), 3, 1)), X[:, :, None], basis.reshape(len(X), 3, -1)], axis=2)
    return np.einsum("ixa,ij,jyb->abxy", fields, body.scalar_mass.toarray(), fields)


@pytest.mark.parametrize("scale", [1.0, 0.6, 1.7])
@pytest.mark.parametrize("modes", [0, 1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_domain_terms_sum_the_accelerations_of_all_vertices(seed, modes, scale):
    rng = np.random.default_rng(seed)
    body = crooked_body(seed)
    X = body.mesh.vertices
    n = len(X)
    basis = rng.standard_normal((3 * n, modes))
    q, v, omega = 0.2 * rng.standard_normal(modes), rng.standard_normal(modes), rng.standard_normal(3)
    y, dy = scale * (X + (basis @ q).reshape(-1, 3)), scale * (basis @ v).reshape(-1, 3)
    turning = np.concatenate([-tilde(arm) for arm in y])
    J = np.hstack([np.tile(np.eye(3), (n, 1)), turning, scale * basis])
    mass = scale**3 * np.kron(body.scalar_mass.toarray(), np.eye(3))
    wanted = J.T @ mass @ J
    swept = J.T @ mass @ (np.cross(omega, np.cross(omega, y)) + 2.0 * np.cross(omega, dy)).ravel()

    table = product_table(products_of(body, basis))
    assert table.shape == (13 + 12 * modes + 9 * modes**2,)
    # It adds to what is there.
    inertia, coupling, bias, modal = np.ones((6, 6)), 2.0 * np.ones((modes, 6)), 3.0 * np.ones(6), 4.0 * np.ones(modes)
    W, Z = np.empty((modes, 9)), np.empty((modes, 9))
    domain_terms(table, scale, q, v, omega, W, Z, inertia, coupling, bias, modal)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(inertia - 1.0, wanted[:6, :6], atol=1e-11 * size)
    np.testing.assert_allclose(coupling - 2.0, wanted[6:, :6], atol=1e-11 * size)
    np.testing.assert_allclose(bias - 3.0, swept[:6], atol=1e-11 * np.abs(swept).max())
    np.testing.assert_allclose(modal - 4.0, swept[6:], atol=1e-11 * np.abs(swept).max())


@pytest.mark.parametrize("number", [0, 1])
def test_a_shape_has_the_products_of_its_mesh(number):
    shape, body = shrub().shapes[number], shrub_bodies()[number]
    wanted = products_of(body, shape.basis)
    np.testing.assert_allclose(shape.products, wanted, atol=1e-13 * np.abs(wanted).max())
    assert shape.mass == pytest.approx(1000.0 * body.mesh.volumes.sum())
    np.testing.assert_allclose(shape.basis.T @ (body.mass @ shape.basis), np.eye(shape.size), atol=1e-9)


# How a frame follows


def parent_path(seed: int, angle: float, modes: int = 4):
    """A hinge whose interface is turned by `angle` at t = 0, on a quadratic path of a parent that moves, too."""
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(3)
    slopes = 0.3 * rng.standard_normal((modes, 3, 3))
    # The first mode alone turns the interface; the others stretch and shear it.
    slopes[0] = turn(*(angle * axis / np.linalg.norm(axis))) - np.eye(3)
    q, v, a = 0.1 * rng.standard_normal(modes), rng.standard_normal(modes), rng.standard_normal(modes)
    q[0] = 1.0
    link = np.concatenate([rng.standard_normal(3 * modes), slopes.ravel()])
    place, rest = rng.standard_normal(3), turn(*rng.standard_normal(3))
    R, x = turn(*rng.standard_normal(3)), rng.standard_normal(3)
    omega, alpha, velocity, acceleration = rng.standard_normal((4, 3))
    return slopes, q, v, a, link, place, rest, R, x, omega, alpha, velocity, acceleration


@pytest.mark.parametrize("scale", [1.0, 0.6])
@pytest.mark.parametrize("angle", [0.0, 0.8, 1.8, 2.8])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_childs_frame_follows_the_path_of_its_parent(seed, angle, scale):
    slopes, q, v, a, link, place, rest, R, x, omega, alpha, velocity, acceleration = parent_path(seed, angle)
    r = len(q)
    centre = link[: 3 * r].reshape(3, r)

    def hinge(t):
        now = q + t * v + 0.5 * t * t * a
        return polar(np.eye(3) + np.tensordot(now, slopes, 1)) @ rest, scale * (place + centre @ now)

    def turned(t):
        # ω and α are given in the parent's axes.
        return R @ turn(*(t * omega + 0.5 * t * t * alpha)) @ hinge(t)[0]

    def stands(t):
        own = R @ turn(*(t * omega + 0.5 * t * t * alpha))
        return x + R @ (t * velocity + 0.5 * t * t * acceleration) + own @ hinge(t)[1]

    if angle > 1.7:
        assert np.trace(hinge(0.0)[0] @ rest.T) < 1.0  # beyond 90 degrees
    Q, at, spin = np.empty((3, 3)), np.empty(3), np.empty(3)
    follow, gain, work = np.empty((r, 6)), np.empty(6), np.full(POLAR_WORK + 3 * r, np.nan)
    interface(place, rest, link, scale, q, v, omega, Q, at, spin, follow, gain, work)
    np.testing.assert_allclose(Q, hinge(0.0)[0], atol=1e-12)
    np.testing.assert_allclose(at, hinge(0.0)[1], atol=1e-12)
    tick = 1e-3
    S = turned(0.0)
    np.testing.assert_allclose(spin, S.T @ vee(rate(lambda t: R @ hinge(t)[0], tick) @ S.T), atol=1e-8)
    T = np.block([[Q.T, -Q.T @ tilde(at)], [np.zeros((3, 3)), Q.T]])
    got = T @ np.concatenate([acceleration, alpha]) + follow.T @ a + gain
    np.testing.assert_allclose(got[:3], S.T @ second_rate(stands, tick), atol=1e-7)
    np.testing.assert_allclose(got[3:], S.T @ vee(second_rate(turned, tick) @ S.T), atol=1e-7)


@pytest.mark.parametrize("angle", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_rotations_turn_as_their_matrices_do(seed, angle):
    """`angular_map` and `angular_rates` by differences, and by SUB11 Eqs. 7 – 9 as they stand."""
    slopes, q, v, a, *_ = parent_path(seed, angle)

    def matrix(t):
        return np.eye(3) + np.tensordot(q + t * v + 0.5 * t * t * a, slopes, 1)

    A, A1, A2 = matrix(0.0), np.tensordot(v, slopes, 1), np.tensordot(a, slopes, 1)
    R = np.empty((3, 3))
    polar_rotation(A, R, np.empty(30))
    np.testing.assert_allclose(R, polar(A), atol=1e-13)
    spins = np.empty((3, len(q)))
    angular_map(R, A, slopes, spins, np.full(24, np.nan))
    for mode, slope in enumerate(slopes):
        turning = rate(lambda t, slope=slope: polar(A + t * slope), 1e-3)
        np.testing.assert_allclose(R @ tilde(spins[:, mode]), turning, atol=1e-8)
    omega, rising = np.empty(3), np.empty(3)
    angular_rates(R, A, A1, A2, omega, rising, np.full(45, np.nan))
    np.testing.assert_allclose(spins @ v, omega, atol=1e-12)
    # The paper's ω is in the outer axes: ω̃ = Ṙ Rᵀ.
    S = R.T @ A
    G = (np.trace(S) * np.eye(3) - S) @ R.T
    w = np.linalg.solve(G, 2.0 * vee(R.T @ A1))
    S1 = R.T @ (A1 - tilde(w) @ R @ S)
    slowing = (np.trace(S1) * np.eye(3) - S1) @ R.T @ w
    w1 = np.linalg.solve(G, 2.0 * vee(R.T @ (A2 - tilde(w) @ A1)) - slowing)
    np.testing.assert_allclose(R @ omega, w, atol=1e-11)
    np.testing.assert_allclose(R @ rising, w1, atol=1e-10)
    np.testing.assert_allclose(
        second_rate(lambda t: polar(matrix(t)), 1e-3), (tilde(w1) + tilde(w) @ tilde(w)) @ R, atol=1e-6
    )


def test_a_collapsed_interface_gives_no_spin_instead_of_nan():
    A = np.zeros((3, 3))
    R, spins = np.empty((3, 3)), np.full((3, 2), np.nan)
    polar_rotation(A, R, np.empty(30))
    angular_map(R, A, np.random.default_rng(0).standard_normal((2, 3, 3)), spins, np.empty(24))
    assert np.isfinite(R).all()
    np.testing.assert_array_equal(spins, 0.0)


# What the builder hands on


def interface_points(planar: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    points, areas = rng.standard_normal((9, 3)), rng.uniform(0.5, 2.0, 9)
    if planar:
        points = points @ np.diag([1.0, 0.7, 0.0]) @ turn(0.3, -0.8, 0.5).T + 0.4
    return points, areas


@pytest.mark.parametrize("planar", [False, True])
def test_a_linear_motion_of_the_interface_is_its_link(planar):
    """Moves G X + t of every point give A's slope G and â = G x̂ + t, the normal's column by the flesh around."""
    points, areas = interface_points(planar)
    rng = np.random.default_rng(4)
    gradients, shifts = rng.standard_normal((3, 3, 5)), rng.standard_normal((3, 5))
    gradients[:, :, 0] = tilde(rng.standard_normal(3))  # an infinitesimal rotation
    moves = np.einsum("ijr,kj->kir", gradients, points) + shifts
    around = gradients if planar else np.full((3, 3, 5), np.nan)
    place, centre, slopes = interface_link(points, areas, moves, around)
    middle = np.average(points, axis=0, weights=areas)
    np.testing.assert_allclose(place, middle, atol=1e-14)
    np.testing.assert_allclose(centre, np.einsum("ijr,j->ir", gradients, middle) + shifts, atol=1e-12)
    np.testing.assert_allclose(slopes, gradients.transpose(2, 0, 1), atol=1e-9)


def test_an_interface_of_a_plane_takes_its_normal_from_the_flesh_around():
    points, areas = interface_points(True)
    normal = np.linalg.svd(points - points.mean(axis=0))[2][2]
    rng = np.random.default_rng(5)
    in_plane, around = rng.standard_normal((3, 3, 2)), rng.standard_normal((3, 3, 2))
    moves = np.einsum("ijr,kj->kir", in_plane, points)
    _, _, slopes = interface_link(points, areas, moves, around)
    across = np.eye(3) - np.outer(normal, normal)
    for mode in range(2):
        np.testing.assert_allclose(slopes[mode] @ normal, around[:, :, mode] @ normal, atol=1e-9)
        np.testing.assert_allclose(slopes[mode] @ across, in_plane[:, :, mode] @ across, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_interface_fits_by_least_squares_with_areas(seed):
    """SUB11 Eqs. 2 – 4: A = B C⁻¹."""
    rng = np.random.default_rng(seed)
    points, areas = interface_points(False)
    moves = rng.standard_normal((9, 3, 3))
    _, centre, slopes = interface_link(points, areas, moves, np.zeros((3, 3, 3)))
    arms = points - areas @ points / areas.sum()
    for mode in range(3):
        np.testing.assert_allclose(centre[:, mode], areas @ moves[:, :, mode] / areas.sum(), atol=1e-13)
        B = np.einsum("k,ki,kj->ij", areas, moves[:, :, mode] - centre[:, mode], arms)
        C = np.einsum("k,ki,kj->ij", areas, arms, arms)
        np.testing.assert_allclose(slopes[mode], B @ np.linalg.inv(C), atol=1e-11)


def test_the_mean_gradient_is_that_of_linear_fields_and_weighs_by_volume():
    mesh = crooked_body().mesh
    rng = np.random.default_rng(0)
    G = rng.standard_normal((3, 3, 2))
    some = np.array([0, 3, 4])
    np.testing.assert_allclose(mean_gradients(mesh, np.einsum("ijr,nj->nir", G, mesh.vertices), some), G, atol=1e-11)
    fields = rng.standard_normal((len(mesh.vertices), 3, 2))
    alone = np.stack([mean_gradients(mesh, fields, np.array([tet])) for tet in some])
    wanted = np.average(alone, axis=0, weights=mesh.volumes[some])
    np.testing.assert_allclose(mean_gradients(mesh, fields, some), wanted, atol=1e-11)


@pytest.mark.parametrize("planar", [False, True])
def test_wrench_fields_are_unit_wrenches(planar):
    points, areas = interface_points(planar)
    fields = wrench_fields(points, areas, 0.3)
    middle = areas @ points / areas.sum()
    forces = fields.sum(axis=0)
    torques = np.cross((points - middle)[:, :, None], fields, axis=1).sum(axis=0)
    np.testing.assert_allclose(forces, np.hstack([np.eye(3), np.zeros((3, 3))]), atol=1e-13)
    np.testing.assert_allclose(torques, np.hstack([np.zeros((3, 3)), 0.3 * np.eye(3)]), atol=1e-12)
    np.testing.assert_allclose(fields[:, 0, 0] / areas, fields[0, 0, 0] / areas[0], rtol=1e-12)


def test_a_carrying_basis_has_the_static_answers():
    mesh = box_tets((1.0, 0.12, 0.1), (8, 1, 1))
    body = FullBody(mesh, RUBBER, fixed=mesh.vertices[:, 0] == 0.0, solver="superlu")
    end = np.nonzero(mesh.vertices[:, 0] == 1.0)[0]
    fields = np.zeros((len(mesh.vertices), 3, 6))
    fields[end] = wrench_fields(mesh.vertices[end], np.ones(len(end)), 0.5)
    loads = body.restrict(fields)
    basis = carrying_basis(body, 14, loads)
    assert basis.shapes.shape == (body.size, 14)
    np.testing.assert_allclose(basis.shapes.T @ (body.mass @ basis.shapes), np.eye(14), atol=1e-10)
    K = body.rest_stiffness.toarray()

    def compliance(U):
        answers = np.einsum("im,im->m", loads, U @ np.linalg.solve(U.T @ K @ U, U.T @ loads))
        return answers / np.einsum("im,im->m", loads, np.linalg.solve(K, loads))

    bending = [1, 2, 4, 5]  # across and about the axes across: what a slender bar is soft against
    assert compliance(basis.shapes)[bending].min() > 0.99
    assert compliance(basis.shapes).max() < 1.0 + 1e-9
    assert compliance(basis.shapes)[bending].min() > compliance(derivative_basis(body, 14).shapes)[bending].min()
    first = linear_modes(body, 1)
    frequency = np.linalg.eigvalsh(basis.shapes.T @ K @ basis.shapes)[0]
    assert frequency == pytest.approx(first.eigenvalues[0], rel=1e-3)


def test_a_carrying_basis_refuses_loads_that_do_not_fit():
    body = crooked_body()
    with pytest.raises(InputError, match="loads"):
        carrying_basis(body, 3, np.zeros((body.size + 1, 2)))
    with pytest.raises(InputError, match="loads"):
        carrying_basis(body, 3, np.zeros((body.size, 0)))
    with pytest.raises(ModeCountError, match="at least one"):
        carrying_basis(body, 0, np.zeros((body.size, 1)))


def test_modes_are_shared_by_the_logarithm_of_elements():
    elements = {"a": 10, "b": 1000, "c": 100000}
    logs = np.log1p([10, 1000, 100000])
    counts = mode_counts(40, elements)
    np.testing.assert_allclose(list(counts.values()), 40 * logs / logs.mean(), atol=0.5)
    assert mode_counts(0, elements) == {"a": 0, "b": 0, "c": 0}
    assert mode_counts({"c": 3, "a": 0, "b": 7}, elements) == {"a": 0, "b": 7, "c": 3}


def test_subtrees_weigh_what_hangs_on_them_whatever_the_order():
    parents, masses = [2, -1, 1, 2, 0], np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    centres = np.random.default_rng(0).standard_normal((5, 3))
    total, middles = subtree_burdens(parents, [1, 2, 0, 3, 4], masses, centres)
    for i, some in enumerate(([0, 4], [0, 1, 2, 3, 4], [0, 2, 3, 4], [3], [4])):
        assert total[i] == pytest.approx(masses[some].sum())
        np.testing.assert_allclose(middles[i], np.average(centres[some], axis=0, weights=masses[some]), atol=1e-14)


def test_a_drag_table_sums_over_triangles():
    mesh = crooked_body().mesh
    fields = np.random.default_rng(1).standard_normal((len(mesh.vertices), 3, 2))
    skin = mesh.boundary_triangles[:7]
    facing, turning, modal, centre, whole = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(3), 0.0
    for triangle in skin:
        a, b, c = mesh.vertices[triangle]
        normal = np.cross(b - a, c - a)
        area = 0.5 * np.linalg.norm(normal)
        normal /= 2.0 * area
        facing += area * np.outer(normal, normal)
        turning += area * np.outer(np.cross((a + b + c) / 3.0, normal), normal)
        modal += area * np.outer(fields[triangle].mean(axis=0).T @ normal, normal)
        centre += area * (a + b + c) / 3.0
        whole += area
    wanted = np.concatenate([facing.ravel(), turning.ravel(), centre / whole, modal.ravel()])
    np.testing.assert_allclose(drag_table(mesh.vertices, fields, skin), wanted, atol=1e-14)
    assert np.isfinite(drag_table(mesh.vertices, fields, skin[:0])).all()
