"""The kernel over poses: single joints and pairs of them."""

from itertools import permutations

import numpy as np
import pytest

from softrig.models.pose_kernel import joint_kernels, mixed_kernel, pose_kernel, relevance_slopes, write_kernels

GROUPS = np.array([0, 3, 4, 6], np.int32)
LENGTHS = np.array([0.7, 0.3, 1.1])
RELEVANCE = np.array([2.0, 0.1, 0.7])


def points(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 6))


@pytest.mark.parametrize("pairs", [0.0, 0.5, 1.0])
def test_it_is_the_sum_of_single_kernels_and_of_products_of_different_ones(pairs: float) -> None:
    a, b = points(4, 0), points(5, 1)
    expected = np.zeros((4, 5))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            single = []
            for g, length in enumerate(LENGTHS):
                d = np.sqrt(3.0) * np.linalg.norm((x - y)[GROUPS[g] : GROUPS[g + 1]]) / length
                single.append(RELEVANCE[g] * (1.0 + d) * np.exp(-d))
            expected[i, j] = sum(single) + pairs / 2.0 * sum(g * h for g, h in permutations(single, 2))
    np.testing.assert_allclose(pose_kernel(a, b, GROUPS, LENGTHS, pairs, RELEVANCE), expected, rtol=1e-12)


def test_all_joints_matter_alike_unless_it_is_said() -> None:
    a = points(4, 0)
    np.testing.assert_array_equal(
        pose_kernel(a, a, GROUPS, LENGTHS), pose_kernel(a, a, GROUPS, LENGTHS, relevance=np.ones(3))
    )


def test_slopes_by_relevance_are_those_of_differences() -> None:
    single, weights, step = joint_kernels(points(4, 7), points(5, 8), GROUPS, LENGTHS), points(4, 9)[:, :5], 1e-5
    slopes = relevance_slopes(weights, single, RELEVANCE, 0.7)
    for g in range(3):
        high, low = (mixed_kernel(single, RELEVANCE + sign * step * np.eye(3)[g], 0.7) for sign in (1.0, -1.0))
        np.testing.assert_allclose(slopes[g], np.sum(weights * (high - low)) / (2.0 * step), rtol=1e-7)


def test_one_group_has_no_pairs() -> None:
    a, one = points(3, 2), np.array([0, 6], np.int32)
    alone = pose_kernel(a, a, one, LENGTHS[:1], 0.0)
    np.testing.assert_array_equal(pose_kernel(a, a, one, LENGTHS[:1], 1.0), alone)


def test_it_is_positive_definite() -> None:
    a = points(40, 3)
    assert np.linalg.eigvalsh(pose_kernel(a, a, GROUPS, LENGTHS))[0] > 0.0


def test_the_compiled_one_is_the_same_and_stays_within_the_samples() -> None:
    samples, features = points(7, 4), 5.0 * points(1, 5)[0]
    low, high = samples.min(axis=0), samples.max(axis=0)
    found, both, places = np.full((2, 7), np.nan), np.stack([RELEVANCE, np.ones(3)]), np.arange(6, dtype=np.int32)
    write_kernels(places, GROUPS, LENGTHS, samples, low, high, 0.8, both, features, np.empty(3), found)
    known = np.clip(features, low, high)
    for relevance, out in zip(both, found, strict=True):
        expected = pose_kernel(known[None], samples, GROUPS, LENGTHS, 0.8, relevance)[0]
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_pairs_learn_what_sums_cannot() -> None:
    """A product of two features, regressed: pairs answer it between the samples, single joints cannot."""
    groups, lengths = np.array([0, 1, 2], np.int32), np.full(2, 2.0)
    random = np.random.default_rng(6)
    seen, unseen = random.uniform(-1.0, 1.0, (60, 2)), random.uniform(-0.9, 0.9, (40, 2))
    errors = []
    for pairs in (0.0, 1.0):
        kernel = pose_kernel(seen, seen, groups, lengths, pairs)
        shares = np.linalg.solve(kernel + 1e-6 * np.eye(60), seen.prod(axis=1))
        answer = pose_kernel(unseen, seen, groups, lengths, pairs) @ shares
        errors.append(np.linalg.norm(answer - unseen.prod(axis=1)) / np.linalg.norm(unseen.prod(axis=1)))
    assert errors[0] > 0.5
    assert errors[1] < 0.05
