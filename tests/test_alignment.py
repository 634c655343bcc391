"""Alignment of bases between poses (PSSD §5.1)."""

from __future__ import annotations

import numpy as np
import pytest

from bodies_for_tests import RUBBER, beam
from softrig.bases.alignment import align, alignment_tree, vertex_rotations
from softrig.bases.modes import linear_modes
from softrig.errors import FlatElementError, InputError
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors

ONE_REGION = np.zeros(4, int)


def turn(*vector):
    return quaternion_matrices(quaternions_from_vectors(np.array(vector)))


def bar(vertices=None):
    mesh = box_tets((1.0, 0.2, 0.15), (5, 2, 2))
    fixed = mesh.vertices[:, 0] == 0.0
    if vertices is not None:
        mesh = VolumeMesh.build(vertices, mesh.elements)
    return FullBody(mesh, RUBBER, fixed=fixed, mass="lumped", solver="superlu")


def orthonormal(n, r, mass, seed):
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.standard_normal((3 * n, r)))
    return (q / np.sqrt(np.repeat(mass, 3))[:, None]).reshape(n, 3, r)


def products(a, b, mass):
    return np.einsum("nir,n,nis->rs", a, mass, b)


def test_a_turned_mesh_turns_every_vertex():
    mesh = box_tets((1.0, 0.4, 0.3), (3, 2, 2))
    R = turn(0.4, -2.1, 0.7)
    found = vertex_rotations(mesh.vertices, mesh.vertices @ R.T + [1.0, 2.0, 3.0], mesh.elements)
    assert np.allclose(found, R, atol=1e-12)
    back = vertex_rotations(mesh.vertices @ R.T, mesh.vertices, mesh.elements)
    assert np.allclose(back, R.T, atol=1e-12)


def test_stretch_and_shear_are_taken_out_by_polar_decomposition():
    mesh = box_tets((1.0, 0.4, 0.3), (2, 2, 2))
    R, S = turn(0.0, 0.5, 0.2), np.array([[1.3, 0.2, 0.0], [0.2, 0.8, 0.1], [0.0, 0.1, 1.1]])
    assert np.allclose(vertex_rotations(mesh.vertices, mesh.vertices @ (R @ S).T, mesh.elements), R, atol=1e-12)


def test_rotations_of_a_twist_beyond_half_a_turn_follow_the_tets_smoothly():
    """Quaternions change sign on the way: averaging without minding it would give nonsense somewhere."""
    mesh = box_tets((2.0, 0.2, 0.2), (40, 1, 1))
    angles = 1.6 * np.pi * mesh.vertices[:, 0] / 2.0
    arms = mesh.vertices - [0.0, 0.1, 0.1]
    turns = turn_each(angles)
    twisted = np.einsum("nij,nj->ni", turns, arms)
    found = vertex_rotations(mesh.vertices, twisted, mesh.elements)
    assert np.abs(found - turns).max() < 0.2
    assert np.allclose(found @ np.swapaxes(found, 1, 2), np.eye(3), atol=1e-12)


def turn_each(angles):
    return quaternion_matrices(quaternions_from_vectors(angles[:, None] * np.array([1.0, 0.0, 0.0])))


def test_larger_tets_count_more():
    """Two tets that share a face turn by different angles: the shared vertices lean to the larger one."""
    X = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.2, 1.0], [0.2, 0.2, -0.1]])
    tets = np.array([[0, 1, 2, 3], [0, 2, 1, 4]])
    moved = X.copy()
    moved[4] += [0.1, 0.0, 0.0]  # shears the small tet alone
    found = vertex_rotations(X, moved, tets)
    assert np.allclose(found[3], np.eye(3))
    shared, alone = (np.linalg.norm(found[v] - np.eye(3)) for v in (0, 4))
    assert 0.0 < shared < 0.15 * alone
    assert np.allclose(vertex_rotations(np.vstack([X, [9, 9, 9]]), np.vstack([moved, [9, 9, 9]]), tets)[5], np.eye(3))


def test_flat_tets_are_named():
    X = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    with pytest.raises(FlatElementError) as caught:
        vertex_rotations(X, X, np.array([[0, 1, 2, 3]]))
    assert caught.value.indices.tolist() == [0]


def test_the_tree_grows_from_the_neutral_pose_to_the_nearest():
    features = np.array([[0.0], [5.0], [1.0], [2.5], [-0.5]])
    assert alignment_tree(features) == [(0, 4), (0, 2), (2, 3), (3, 1)]
    assert alignment_tree(np.zeros((1, 3))) == []
    assert len(alignment_tree(np.random.default_rng(0).standard_normal((7, 3)))) == 6


def test_permuted_modes_align():
    """PSSD Fig. 6: width and height of the beam change places by a hair, and so do the first two modes."""
    epsilon = 1e-3
    sides = ((1.0, 0.2, 0.2 - epsilon), (1.0, 0.2 - epsilon, 0.2))
    one, other = (beam("bricks", lengths, (5, 2, 2), mass="lumped") for lengths in sides)
    U, V = (body.expand(linear_modes(body, 2).shapes) for body in (one, other))
    mass = one.vertex_mass
    before = np.abs(products(V, U, mass))
    assert before[0, 0] < 0.1  # they are permuted indeed
    assert before[0, 1] > 0.9
    plain = 0.5 * (U + V)
    aligned, angles = align(np.stack([U, V]), mass, np.zeros(2, int), [(0, 1)])
    mixed = 0.5 * (aligned[0] + aligned[1])
    assert np.linalg.cond(products(plain, plain, mass)) > 50.0  # a degenerate basis
    assert np.linalg.cond(products(mixed, mixed, mass)) < 1.01
    assert angles.max() < 0.1
    assert np.array_equal(aligned[0], U)


def test_a_pose_turned_by_90_degrees_aligns_with_rotations_and_not_without():
    """PSSD Fig. 7."""
    one = bar()
    R = turn(0.5 * np.pi, 0.0, 0.0)  # about the bar: bending one way becomes bending the other way
    other = bar(one.mesh.vertices @ R.T)
    shapes = np.stack([body.expand(linear_modes(body, 4).shapes) for body in (one, other)])
    mass = one.vertex_mass
    rotations = vertex_rotations(one.mesh.vertices, other.mesh.vertices, one.mesh.elements)
    aligned, angles = align(shapes, mass, ONE_REGION, [(0, 1)], [rotations])
    assert angles.max() < 1e-5
    # Each mode of the turned pose is the turned mode of the first one.
    assert np.allclose(aligned[1], np.einsum("ij,njr->nir", R, aligned[0]), atol=1e-5 * np.abs(aligned).max())
    without, wide = align(shapes, mass, ONE_REGION, [(0, 1)])
    assert wide.max() > 0.1
    assert np.abs(without[1] - np.einsum("ij,njr->nir", R, without[0])).max() > 0.3 * np.abs(without).max()
    # Bind space: un-rotated shapes need no rotations.
    bind = np.stack([shapes[0], np.einsum("ji,njr->nir", R, shapes[1])])
    assert align(bind, mass, ONE_REGION, [(0, 1)])[1] == pytest.approx(angles, abs=1e-6)


def test_alignment_is_the_best_orthogonal_match_and_keeps_the_span():
    mass = np.random.default_rng(1).uniform(1.0, 2.0, 30)
    A, B = orthonormal(30, 4, mass, 2), orthonormal(30, 4, mass, 3)
    aligned, angles = align(np.stack([A, B]), mass, ONE_REGION, [(0, 1)])
    distance = products(aligned[1] - A, aligned[1] - A, mass).trace()
    rng = np.random.default_rng(4)
    for _ in range(50):
        Q, _ = np.linalg.qr(np.eye(4) + rng.standard_normal((4, 4)))
        assert products(B @ Q - A, B @ Q - A, mass).trace() > distance - 1e-12
    cross = products(aligned[1], B, mass)
    assert np.allclose(cross @ cross.T, np.eye(4), atol=1e-10)
    # After alignment U_jᵀMU_i is symmetric positive: its eigenvalues are the cosines.
    matched = products(aligned[1], A, mass)
    assert np.allclose(matched, matched.T, atol=1e-10)
    assert np.sort(np.linalg.eigvalsh(matched)) == pytest.approx(np.sort(np.cos(angles[0])), abs=1e-10)
    assert (np.diff(angles[0]) >= 0.0).all()


def test_regions_do_not_mix():
    mass = np.ones(30)
    A = orthonormal(30, 4, mass, 0)
    A[:15, :, 2:] = A[15:, :, :2] = 0.0
    for half in (slice(0, 2), slice(2, 4)):
        q, _ = np.linalg.qr(A[:, :, half].reshape(90, 2))
        A[:, :, half] = q.reshape(30, 3, 2)
    B = A[:, :, [1, 0, 3, 2]] * [1.0, -1.0, -1.0, 1.0]
    regions = np.array([0, 0, 1, 1])
    aligned, angles = align(np.stack([A, B]), mass, regions, [(0, 1)])
    assert np.allclose(aligned[1], A, atol=1e-12)
    assert angles.max() < 1e-6
    swapped, wide = align(np.stack([A, A[:, :, [2, 3, 0, 1]]]), mass, regions, [(0, 1)])
    assert wide == pytest.approx(0.5 * np.pi)  # the other region's shapes cannot be used
    assert np.abs(swapped[1][:15, :, :2]).max() < 1e-12


def test_a_chain_is_aligned_in_order_to_the_already_aligned():
    mass = np.ones(20)
    A = orthonormal(20, 3, mass, 0)
    Q1, Q2 = (np.linalg.qr(np.random.default_rng(s).standard_normal((3, 3)))[0] for s in (1, 2))
    aligned, angles = align(np.stack([A, A @ Q1, A @ Q2]), mass, np.zeros(3, int), [(0, 2), (2, 1)])
    assert np.allclose(aligned, A, atol=1e-10)
    assert angles.shape == (2, 3)


def test_bad_input_is_refused():
    mass = np.ones(20)
    A = orthonormal(20, 3, mass, 0)
    two, regions = np.stack([A, A]), np.zeros(3, int)
    with pytest.raises(InputError) as caught:
        align(np.stack([A, 2.0 * A]), mass, regions, [(0, 1)])
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(InputError, match="tree"):
        align(two, mass, regions, [(0, 1), (1, 0)])
    with pytest.raises(InputError, match="tree"):
        align(two, mass, regions, [(0, 5)])
    with pytest.raises(InputError, match="rotations"):
        align(two, mass, regions, [(0, 1)], [])
    with pytest.raises(InputError, match="regions"):
        align(two, mass, regions[:2], [(0, 1)])


def test_the_beam_of_the_other_tests_is_not_needed_to_be_lumped():
    """Orthonormality is judged with vertex masses: a consistent mass is refused rather than misjudged."""
    body = beam("tets")
    shapes = body.expand(linear_modes(body, 2).shapes)
    with pytest.raises(InputError, match="orthonormal"):
        align(np.stack([shapes, shapes]), body.vertex_mass, np.zeros(2, int), [(0, 1)])
