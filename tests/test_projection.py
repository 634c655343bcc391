"""Exact reduced elasticity at a pose, mass products, wind and gyroscopic matrices, each against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from softrig.bases.modes import linear_modes
from softrig.errors import FlatElementError, InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.projection import (
    PoseElasticity,
    carried_areas,
    gyro_groups,
    gyro_matrices,
    hierarchy_distances,
    mass_products,
    wind_matrices,
)
from softrig.meshing import box_tets
from softrig.models.full import FullBody
from softrig.models.pose_space import REST_CLAMP
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors, skew

LAWS = ("stvk", "corotational", "neo-hookean", "stable-neo-hookean")


def bent_box(law="stvk", modes=6, counts=(4, 2, 2)):
    """A box bent to a pose, as a full body there, with its lowest modes; materials vary."""
    box = box_tets((0.6, 0.2, 0.2), counts)
    x, y, z = box.vertices.T
    posed = np.column_stack([x, y + 0.5 * x**2, z + 0.1 * np.sin(4.0 * x)])
    rng = np.random.default_rng(0)
    young, poisson = rng.uniform(1e4, 3e4, len(box.elements)), rng.uniform(0.3, 0.45, len(box.elements))
    body = FullBody(
        VolumeMesh.build(posed, box.elements), Material(young, poisson, 1000.0), law=law, fixed=x < 1e-9, mass="lumped"
    )
    shapes = body.expand(linear_modes(body, modes).shapes)
    elasticity = PoseElasticity(posed, box.elements, body.fixed, law, young, poisson, shapes, neutral=box.vertices)
    return box, body, elasticity


@pytest.mark.parametrize("law", LAWS)
def test_force_and_stiffness_are_the_full_body_projected(law):
    _, body, elasticity = bent_box(law)
    basis = body.restrict(elasticity.shapes)
    q = 5e-3 * np.random.default_rng(1).normal(size=6)
    force, stiffness = body.force_and_stiffness(basis @ q)
    scale = np.linalg.norm(basis.T @ force)
    np.testing.assert_allclose(elasticity.force(q), basis.T @ force, atol=1e-11 * scale)
    exact = basis.T @ (stiffness @ basis)
    np.testing.assert_allclose(elasticity.stiffness(q), exact, atol=1e-11 * np.abs(exact).max())
    np.testing.assert_allclose(elasticity.element_forces(q).sum(axis=0), elasticity.force(q), atol=1e-11 * scale)
    everything = np.arange(len(elasticity.tets))
    ones = np.ones(len(everything))
    np.testing.assert_allclose(elasticity.cubature_force(q, everything, ones), basis.T @ force, atol=1e-11 * scale)
    np.testing.assert_allclose(
        elasticity.cubature_stiffness(q, everything, ones), exact, atol=1e-11 * np.abs(exact).max()
    )


@pytest.mark.parametrize("law", LAWS)
def test_stiffness_is_the_slope_of_the_force(law, slope):
    _, _, elasticity = bent_box(law)
    rng = np.random.default_rng(2)
    q, d = 5e-3 * rng.normal(size=6), 1e-2 * rng.normal(size=6)
    expected = elasticity.stiffness(q) @ d
    np.testing.assert_allclose(
        slope(lambda t: elasticity.force(q + t * d)), expected, atol=1e-7 * np.linalg.norm(expected)
    )


@pytest.mark.parametrize("law", LAWS)
def test_remainder_is_what_the_linear_force_leaves(law):
    _, _, elasticity = bent_box(law)
    q = 5e-3 * np.random.default_rng(3).normal(size=(6, 4))
    expected = elasticity.force(q) - elasticity.rest_stiffness @ q
    found = elasticity.force(q, remainder=True)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(elasticity.force(q)).max())
    assert np.linalg.norm(expected) > 1e-3 * np.linalg.norm(elasticity.force(q))
    # Of second order: half the amplitude leaves about a quarter.
    half = elasticity.force(0.5e-2 * q, remainder=True)
    whole = elasticity.force(1e-2 * q, remainder=True)
    assert np.linalg.norm(half) / np.linalg.norm(whole) == pytest.approx(0.25, rel=0.02)


def test_some_elements_and_several_samples_at_once():
    _, _, elasticity = bent_box()
    q = 5e-3 * np.random.default_rng(4).normal(size=(6, 3))
    some = np.array([3, 17, 40])
    every = elasticity.element_forces(q)
    np.testing.assert_allclose(elasticity.element_forces(q, some), every[some])
    np.testing.assert_allclose(elasticity.element_forces(q[:, 1], some), every[some, :, 1])
    weights = np.array([2.0, 0.5, 3.0])
    np.testing.assert_allclose(
        elasticity.cubature_force(q, some, weights), np.einsum("e,erk->rk", weights, every[some]), rtol=1e-10
    )


def test_corrected_cubature_is_exact_in_the_linear_range():
    _, _, elasticity = bent_box("stable-neo-hookean")
    some, weights = np.array([0, 20, 50]), np.array([10.0, 20.0, 30.0])
    correction = elasticity.stiffness_correction(some, weights)
    q = 1e-7 * np.random.default_rng(5).normal(size=6)
    found = elasticity.cubature_force(q, some, weights) + correction @ q
    np.testing.assert_allclose(found, elasticity.force(q), atol=1e-4 * np.linalg.norm(elasticity.force(q)))
    np.testing.assert_allclose(
        correction + elasticity.cubature_stiffness(0 * q, some, weights), elasticity.rest_stiffness, atol=1e-9
    )


def test_thin_rest_shapes_are_thickened_and_stay_free_of_force():
    box = box_tets((1.0, 1.0, 1.0), (1, 1, 1))
    fixed = np.zeros(8, dtype=bool)
    shapes = np.random.default_rng(6).normal(size=(8, 3, 2))
    for squash in (0.05, -0.3):
        posed = box.vertices * [1.0, squash, 1.0]
        elasticity = PoseElasticity(posed, box.elements, fixed, "stvk", 1e4, 0.4, shapes, neutral=box.vertices)
        assert elasticity.clamped == 6
        np.testing.assert_allclose(elasticity.volumes, REST_CLAMP * box.volumes)
        np.testing.assert_allclose(elasticity.force(np.zeros(2)), 0.0, atol=1e-10)
        with_plain = box.vertices * [1.0, REST_CLAMP, 1.0]
        plain = PoseElasticity(with_plain, box.elements, fixed, "stvk", 1e4, 0.4, shapes)
        q = np.array([0.01, -0.02])
        np.testing.assert_allclose(elasticity.force(q), plain.force(q), rtol=1e-9)
    kept = PoseElasticity(
        box.vertices * [1, 0.3, 1], box.elements, fixed, "stvk", 1e4, 0.4, shapes, neutral=box.vertices
    )
    assert kept.clamped == 0
    np.testing.assert_allclose(kept.volumes, 0.3 * box.volumes)
    with pytest.raises(FlatElementError) as caught:
        PoseElasticity(box.vertices * [1, -1, 1], box.elements, fixed, "stvk", 1e4, 0.4, shapes)
    assert len(caught.value.indices) == 6


def test_bad_bodies_are_named():
    box, body, elasticity = bent_box()
    args = (elasticity.positions, box.elements, body.fixed, "stvk", 1e4, 0.4)
    shapes = elasticity.shapes.copy()
    culprit = np.flatnonzero(body.fixed)[2]
    shapes[culprit, 1, 3] = 1e-3
    with pytest.raises(InputError, match="move fixed vertices") as caught:
        PoseElasticity(*args, shapes)
    assert list(caught.value.indices) == [culprit]
    with pytest.raises(InputError, match="must be"):
        PoseElasticity(*args, elasticity.shapes[1:])


def test_mass_products_give_the_interpolated_mass():
    rng = np.random.default_rng(7)
    shapes, mass = rng.normal(size=(3, 20, 3, 4)), rng.uniform(0.1, 1.0, 20)
    w = np.array([0.7, 0.5, -0.2])
    mixed = np.einsum("i,inxr->nxr", w, shapes)
    expected = np.einsum("nxr,n,nxs->rs", mixed, mass, mixed)
    found = np.einsum("i,j,ijrs->rs", w, w, mass_products(shapes, mass))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def random_frames(rng, vertices, frames):
    weights = rng.uniform(size=(vertices, frames)) * (rng.uniform(size=(vertices, frames)) < 0.6)
    weights[np.arange(vertices), rng.integers(0, frames, vertices)] += 0.3
    weights /= weights.sum(axis=1, keepdims=True)
    return csr_array(weights), quaternion_matrices(rng.normal(size=(frames, 4)))


def test_wind_is_force_times_area_at_each_pose():
    rng = np.random.default_rng(8)
    weights, one = random_frames(rng, 30, 4)
    frames = np.stack([one, random_frames(rng, 30, 4)[1]])
    rotations = quaternion_matrices(rng.normal(size=(2, 30, 4)))
    shapes, areas = rng.normal(size=(2, 30, 3, 5)), rng.uniform(size=30)
    wind = np.array([1.0, -2.0, 0.5])
    D = wind_matrices(shapes, areas, rotations, weights, frames)
    single = wind_matrices(shapes[:1], areas, rotations, weights, frames)
    for i in range(2):
        local = (np.swapaxes(frames[i], 1, 2) @ wind).ravel()
        for matrices, own in ((D, shapes[i]), (single, shapes[0])):
            expected = np.einsum("vir,vji,v,j->r", own, rotations[i], areas, wind)
            np.testing.assert_allclose(matrices[i] @ local, expected, rtol=1e-12)
    root = frames[:, :1]
    alone = csr_array(np.ones((30, 1)))
    world = wind_matrices(shapes, areas, np.repeat(root, 30, axis=1), alone, root)
    expected = np.einsum("vir,ji,v,j->r", shapes[1], root[1, 0], areas, wind)
    np.testing.assert_allclose(world[1] @ (root[1, 0].T @ wind), expected, rtol=1e-12)


def test_areas_are_handed_to_the_tets_and_none_is_lost():
    box = box_tets((1.0, 2.0, 3.0), (1, 1, 1))
    triangles = box.boundary_triangles
    nodes = np.repeat(np.arange(8)[:, None], 4, axis=1)
    areas = carried_areas(box.vertices, triangles, nodes, np.tile([0.5, 0.5, 0.0, 0.0], (8, 1)), 8)
    assert areas.sum() == pytest.approx(22.0)
    assert (areas > 0.0).all()
    weights = np.zeros((8, 4))
    weights[:4, 0] = 1.0
    assert carried_areas(box.vertices, triangles, nodes, weights, 8)[4:].sum() == 0.0


def test_gyro_matrices_are_the_second_derivative_in_a_turning_frame():
    rng = np.random.default_rng(9)
    shapes, mass = rng.normal(size=(25, 3, 4)), rng.uniform(0.1, 1.0, 25)
    omega, alpha = rng.normal(size=3), rng.normal(size=3)
    q, v, a = rng.normal(size=(3, 4))
    R0 = quaternion_matrices(rng.normal(size=4))

    def world(t):
        # R = R₀ exp(Ωt + ½Ω̇t²): body angular velocity Ω and acceleration Ω̇ at t = 0.
        turn = quaternion_matrices(quaternions_from_vectors(omega * t + 0.5 * alpha * t * t))
        return R0 @ turn @ (shapes @ (q + v * t + 0.5 * a * t * t))[..., None]

    h = 1e-3
    near, far = world(h) + world(-h), world(2 * h) + world(-2 * h)
    second = (16.0 * near - far - 30.0 * world(0.0)) / (12.0 * h * h)
    expected = np.einsum("vxr,v,yx,vy->r", shapes, mass, R0, second[..., 0])
    M = mass_products(shapes[None], mass)[0, 0]
    terms = gyro_matrices(shapes, mass, np.ones((1, 25)))[0]
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    found = M @ a + 2.0 * np.einsum("a,ars,s->r", omega, terms[:3], v) + np.einsum("a,ars,s->r", alpha, terms[:3], q)
    found += sum(omega[i] * omega[j] * terms[3 + k] @ q for k, (i, j) in enumerate(pairs))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.linalg.norm(expected))


def test_gyro_matrices_by_definition_with_groups():
    rng = np.random.default_rng(10)
    shapes, mass, groups = rng.normal(size=(15, 3, 3)), rng.uniform(size=15), rng.uniform(size=(2, 15))
    E = skew(np.eye(3))
    found = gyro_matrices(shapes, mass, groups)

    def sandwich(matrix):
        return np.einsum("gv,v,vxr,xy,vys->grs", groups, mass, shapes, matrix, shapes)

    for a in range(3):
        np.testing.assert_allclose(found[:, a], sandwich(E[a]), atol=1e-12)
        np.testing.assert_allclose(found[:, 3 + a], sandwich(E[a] @ E[a]), atol=1e-12)
    for k, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        np.testing.assert_allclose(found[:, 6 + k], sandwich(E[a] @ E[b] + E[b] @ E[a]), atol=1e-12)


def test_groups_of_frames_follow_mass_and_hierarchy():
    # 0 ── 1 ── 2 ── 3, and 4 under 0; a second tree 5.
    parents = np.array([-1, 0, 1, 2, 0, -1])
    distances = hierarchy_distances(parents)
    np.testing.assert_array_equal(distances[3], [3, 2, 1, 0, 4, 5])
    np.testing.assert_array_equal(distances, distances.T)
    weights = csr_array(np.eye(6))
    mass = np.array([0.5, 5.0, 0.1, 3.0, 0.2, 0.1])
    frames, groups = gyro_groups(weights, mass, parents, most=2)
    np.testing.assert_array_equal(frames, [1, 3])
    # 2 lies between 1 and 3: the heavier takes it.
    np.testing.assert_array_equal(groups, [[1, 1, 1, 0, 1, 1], [0, 0, 0, 1, 0, 0]])
    frames, groups = gyro_groups(csr_array(np.ones((6, 1))), mass, np.array([-1]))
    np.testing.assert_array_equal(groups, np.ones((1, 6)))
    with pytest.raises(InputError, match="circle"):
        hierarchy_distances(np.array([1, 0]))
