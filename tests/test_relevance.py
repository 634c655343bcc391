"""How much each joint matters: samples left out, slopes against differences, and joints that do nothing."""

import numpy as np
import pytest

from softrig.models.pose_kernel import joint_kernels, mixed_kernel
from softrig.pipeline.relevance import RANGES, fitted_relevance, left_out, loss

GROUPS, LENGTHS = np.arange(6, dtype=np.int32), np.full(5, 2.0)


def samples(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (count, 5))


def test_a_sample_left_out_is_missed_as_the_formula_says() -> None:
    points, noise = samples(12), 0.3
    kernel = mixed_kernel(joint_kernels(points, points, GROUPS, LENGTHS), np.ones(5))
    targets = np.random.default_rng(1).normal(size=(12, 3))
    total = 0.0
    for t in range(12):
        others = np.arange(12) != t
        inner = kernel[np.ix_(others, others)] + noise * np.eye(11)
        answer = kernel[t, others] @ np.linalg.solve(inner, targets[others])
        total += float(np.sum((targets[t] - answer) ** 2))
    assert left_out(kernel, noise, targets)[0] == pytest.approx(np.log(total), rel=1e-12)


def test_slopes_are_those_of_differences() -> None:
    points, step = samples(9), 1e-6
    kernel = mixed_kernel(joint_kernels(points, points, GROUPS, LENGTHS), np.ones(5))
    targets = np.random.default_rng(2).normal(size=(9, 2))
    slopes = left_out(kernel, 0.2, targets)[1]
    np.testing.assert_allclose(slopes, slopes.T, atol=1e-12)
    for i, j in ((0, 0), (1, 4), (7, 2)):
        moved = np.zeros((9, 9))
        moved[i, j] = moved[j, i] = step  # the kernel stays symmetric
        difference = (left_out(kernel + moved, 0.2, targets)[0] - left_out(kernel - moved, 0.2, targets)[0]) / 2 / step
        assert (slopes * moved).sum() / step == pytest.approx(difference, rel=1e-5)


def test_the_whole_loss_has_the_slopes_of_differences() -> None:
    points, step = samples(9), 1e-5
    single, targets = joint_kernels(points, points, GROUPS, LENGTHS), np.random.default_rng(6).normal(size=(9, 2))
    logs = np.log([0.4, 3.0, 1.0, 0.1, 2.0, 0.05])
    slopes = loss(logs, single, targets)[1]
    for place in range(6):
        moved = step * np.eye(6)[place]
        difference = (loss(logs + moved, single, targets)[0] - loss(logs - moved, single, targets)[0]) / (2.0 * step)
        assert slopes[place] == pytest.approx(difference, rel=1e-6, abs=1e-9)


def test_joints_that_do_nothing_do_not_matter_and_unseen_poses_are_answered_better() -> None:
    points, unseen = samples(80), samples(50, 3)

    def done(x: np.ndarray) -> np.ndarray:
        return np.stack([np.sin(2.0 * x[:, 1]), x[:, 1] * x[:, 3], np.zeros(len(x))], axis=1)

    single = joint_kernels(points, points, GROUPS, LENGTHS)
    relevance, noise = fitted_relevance(single, done(points))
    assert set(np.argsort(-relevance)[:2]) == {1, 3}
    assert relevance[[0, 2, 4]].max() < 0.02 * relevance[1]
    assert (relevance >= RANGES[0] * 0.999).all()
    errors = {}
    for name, (a, nu) in {"alike": (np.ones(5), noise), "fitted": (relevance, noise)}.items():
        solved = np.linalg.solve(mixed_kernel(single, a) + nu * np.eye(80), done(points))
        answer = mixed_kernel(joint_kernels(unseen, points, GROUPS, LENGTHS), a) @ solved
        errors[name] = np.linalg.norm(answer - done(unseen)) / np.linalg.norm(done(unseen))
    assert errors["fitted"] < 0.3 * errors["alike"]


def test_where_nothing_changes_all_joints_matter_alike() -> None:
    points = samples(7)
    relevance, noise = fitted_relevance(joint_kernels(points, points, GROUPS, LENGTHS), np.zeros((7, 2)))
    np.testing.assert_array_equal(relevance, np.ones(5))
    assert noise > 0.0


def test_many_directions_tell_what_their_largest_do() -> None:
    points, random = samples(40), np.random.default_rng(4)
    few = np.stack([np.sin(points[:, 0]), points[:, 2]], axis=1)
    many = few @ random.normal(size=(2, 300))
    single = joint_kernels(points, points, GROUPS, LENGTHS)
    assert set(np.argsort(-fitted_relevance(single, many)[0])[:2]) == {0, 2}
