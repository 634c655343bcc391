"""Signed SVD of 3×3 matrices, symmetric eigenvalues and rotation vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softrig.numerics.rotations import rotation_from_vector, skew, svd3, symmetric_eigen3


def turned(stretches, seed):
    """U diag(stretches) Vᵀ with random rotations U and V."""
    U, V = Rotation.random(2, random_state=seed).as_matrix()
    return U @ np.diag(np.asarray(stretches, dtype=float)) @ V.T


def rank_one(seed):
    rng = np.random.default_rng(seed)
    return np.outer(rng.standard_normal(3), rng.standard_normal(3))


MATRICES = {
    "zero": np.zeros((3, 3)),
    "identity": np.eye(3),
    "mirror": np.diag([1.0, -1.0, 1.0]),
    "minus identity": -np.eye(3),
    "diagonal rising": np.diag([0.1, 2.0, 5.0]),
    "one entry": np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -3.0], [0.0, 0.0, 0.0]]),
    **{f"random {i}": np.random.default_rng(i).standard_normal((3, 3)) for i in range(20)},
    **{f"rank one {i}": rank_one(i) for i in range(4)},
    **{f"rank two {i}": turned((1.7, 0.4, 0.0), i) for i in range(4)},
    **{f"inverted {i}": turned((1.7, 0.8, -0.3), i) for i in range(4)},
    **{f"two equal {i}": turned((1.3, 1.3, 0.2), i) for i in range(4)},
    **{f"other two equal {i}": turned((1.3, 0.2, 0.2), i) for i in range(4)},
    **{f"equal and opposite {i}": turned((1.3, 0.2, -0.2), i) for i in range(4)},
    **{f"all equal {i}": turned((0.7, 0.7, 0.7), i) for i in range(4)},
    **{f"thin {i}": turned((1.0, 1e-2, 1e-5), i) for i in range(4)},
    **{f"nearly equal {i}": turned((1.0 + 1e-9, 1.0, 1.0 - 1e-9), i) for i in range(4)},
    "huge": 1e8 * turned((1.7, 0.8, -0.3), 7),
    "tiny": 1e-8 * turned((1.7, 0.8, -0.3), 8),
}


def signed_svd(F):
    U, s, V, work = np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    svd3(np.ascontiguousarray(F), U, s, V, work)
    return U, s, V


@pytest.mark.parametrize("F", MATRICES.values(), ids=MATRICES.keys())
def test_svd_rebuilds_the_matrix_from_rotations_and_ordered_stretches(F):
    U, s, V = signed_svd(F)
    size = np.abs(F).max()
    np.testing.assert_allclose(U @ np.diag(s) @ V.T, F, rtol=0, atol=1e-12 * size)
    for factor in (U, V):
        np.testing.assert_allclose(factor.T @ factor, np.eye(3), rtol=0, atol=1e-12)
        assert np.linalg.det(factor) == pytest.approx(1.0, abs=1e-12)
    assert s[0] >= s[1] - 1e-14 * size
    assert s[1] >= abs(s[2]) - 1e-14 * size
    np.testing.assert_allclose(np.abs(s), np.linalg.svd(F, compute_uv=False), rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("F", MATRICES.values(), ids=MATRICES.keys())
def test_last_stretch_carries_the_sign_of_the_determinant(F):
    _, s, _ = signed_svd(F)
    assert s.prod() == pytest.approx(np.linalg.det(F), rel=1e-9, abs=1e-14 * np.abs(F).max() ** 3)


@pytest.mark.parametrize("middle", [1e-4, 1e-7, 1e-10, 1e-13, 1e-16, 0.0])
def test_factors_stay_rotations_however_thin_the_matrix(middle):
    for seed in range(50):
        U, _, V = signed_svd(turned((1.0, middle, 0.1 * middle), seed))
        for factor in (U, V):
            np.testing.assert_allclose(factor.T @ factor, np.eye(3), rtol=0, atol=1e-13)
            assert np.linalg.det(factor) == pytest.approx(1.0, abs=1e-13)


def test_factors_of_rank_one_matrices_are_rotations_to_the_last_digit():
    """What rounding leaves of the second stretch points anywhere; it must not enter U."""
    for seed in range(1000):
        U, _, _ = signed_svd(rank_one(seed))
        np.testing.assert_allclose(U.T @ U, np.eye(3), rtol=0, atol=3e-15)


@pytest.mark.parametrize("seed", range(10))
def test_symmetric_eigenvalues_rebuild_the_matrix(seed):
    half = np.random.default_rng(seed).standard_normal((3, 3))
    original = half + half.T
    diagonal, vectors = original.copy(), np.empty((3, 3))
    symmetric_eigen3(diagonal, vectors)
    np.testing.assert_allclose(vectors @ np.diag(np.diag(diagonal)) @ vectors.T, original, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.sort(np.diag(diagonal)), np.linalg.eigvalsh(original), rtol=0, atol=1e-13)
    assert np.linalg.det(vectors) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-7, 0.9e-6, 1.1e-6, 1e-3, 0.7, np.pi, 5.0, 40.0])
def test_rotation_from_vector_equals_scipys(angle):
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    R = np.empty((3, 3))
    rotation_from_vector(angle * axis, R)
    np.testing.assert_allclose(R, Rotation.from_rotvec(angle * axis).as_matrix(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", [1e-12, 1e-7, 0.9e-6, 1.1e-6, 1e-3, 0.7])
def test_small_rotations_keep_all_their_digits(angle):
    """The antisymmetric part of R is sin(angle) times the axis."""
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    R = np.empty((3, 3))
    rotation_from_vector(angle * axis, R)
    antisymmetric = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    np.testing.assert_allclose(antisymmetric, np.sin(angle) * axis, rtol=5e-15)


def test_skew_is_the_cross_product():
    v, w = np.random.default_rng(0).standard_normal((2, 5, 3))
    np.testing.assert_allclose(np.einsum("nij,nj->ni", skew(v), w), np.cross(v, w), rtol=0, atol=1e-15)
