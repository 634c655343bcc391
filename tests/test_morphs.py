"""Compression into morph targets: stated error, weights within [0, 1], pull-back through any skin matrix."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from softrig.errors import InputError, NotFiniteError
from softrig.io.morphs import Morphs, compress, fit_targets, one_target_a_frame, pull_back, stretches
from softrig.numerics.rotations import quaternion_matrices


def jiggle(frames=60, vertices=300, waves=12, seed=0):
    """(frames, vertices, 3) metres: local bumps, each with its own wave; a fifth of the vertices stay put."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames) / 60.0
    points = rng.uniform(size=(vertices, 3))
    moves = np.zeros((frames, vertices, 3))
    for wave in range(waves):
        bump = np.exp(-(((points - rng.uniform(size=3)) / 0.35) ** 2).sum(axis=1))[:, None] * rng.normal(size=3)
        swing = np.sin(2.0 * np.pi * (1.0 + 0.4 * wave) * times + 6.0 * rng.uniform())
        moves += 0.05 / (1 + wave) * swing[:, None, None] * bump
    moves[:, points[:, 1] > 0.8] = 0.0
    return moves


def largest_error(morphs: Morphs, moves: np.ndarray) -> float:
    return max(np.linalg.norm(morphs.displacements(f) - moves[f], axis=1).max() for f in range(len(moves)))


@pytest.fixture(scope="module")
def moves():
    return jiggle()


@pytest.mark.parametrize("tolerance", [5e-3, 5e-4, 5e-5])
@pytest.mark.parametrize("quantise", [False, True])
def test_every_vertex_is_within_the_tolerance(moves, tolerance, quantise):
    morphs = compress(moves, tolerance=tolerance, quantise=quantise)
    assert largest_error(morphs, moves) <= 1.001 * tolerance
    assert 1 < morphs.count <= 14
    assert morphs.weights.dtype == np.float32
    assert morphs.weights.min() >= 0.0
    assert morphs.weights.max() <= 1.0
    assert (morphs.weights[:, 0] == 1.0).all(), "the first target is the constant one"
    still = (moves == 0.0).all(axis=(0, 2))
    assert still.any()
    assert not morphs.targets[:, still].any()


def test_tighter_tolerances_take_more_targets(moves):
    counts = [compress(moves, tolerance=tolerance).count for tolerance in (2e-2, 5e-3, 1e-3, 1e-4)]
    assert counts == sorted(set(counts))


def test_error_decreases_with_targets(moves):
    errors = [largest_error(compress(moves, tolerance=1e-9, most_targets=k), moves) for k in (2, 4, 6, 8, 10, 13)]
    assert all(b < 0.9 * a for a, b in pairwise(errors))
    assert errors[-1] < 1e-6, "12 waves and the constant are all there is"


def test_reweighting_beats_the_plain_decomposition(moves):
    centred = (moves - moves.mean(axis=0)).reshape(len(moves), -1)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    plain = np.linalg.norm((centred - u[:, :6] * s[:6] @ vt[:6]).reshape(moves.shape), axis=2).max()
    assert largest_error(compress(moves, tolerance=1e-9, most_targets=7), moves) < 0.85 * plain


def test_gains_count_the_error_in_the_world(moves):
    plain, tenfold = (compress(moves, tolerance=5e-3, gains=np.full(moves.shape[:2], g)) for g in (1.0, 10.0))
    finer = compress(moves, tolerance=5e-4)
    assert tenfold.count == finer.count > plain.count
    assert largest_error(tenfold, moves) <= 5.01e-4


def test_nothing_to_say_takes_no_targets(moves):
    assert compress(1e-5 * moves, tolerance=1e-3).count == 0
    assert compress(np.zeros((5, 4, 3)), tolerance=1e-3).count == 0
    none = compress(np.zeros((5, 4, 3)), tolerance=1e-3)
    assert none.weights.shape == (5, 0)
    assert none.targets.shape == (0, 4, 3)


def test_a_constant_displacement_takes_one_target(moves):
    constant = np.repeat(moves[:1], 20, axis=0)
    morphs = compress(constant, tolerance=1e-4)
    assert morphs.count == 1
    assert largest_error(morphs, constant) <= 1e-4


def test_one_frame_works(moves):
    assert largest_error(compress(moves[:1], tolerance=1e-4), moves[:1]) <= 1e-4


def test_quantised_targets_are_codes_times_scales(moves):
    morphs = compress(moves, tolerance=5e-4, quantise=True)
    assert morphs.codes.dtype == np.int16
    assert np.abs(morphs.codes).max(axis=(1, 2)).tolist() == [32767] * morphs.count
    assert np.allclose(morphs.targets, morphs.codes * (morphs.scales / 32767.0)[:, None, None], rtol=1e-6)


def test_plain_bake_is_exact(moves):
    morphs = one_target_a_frame(moves)
    assert np.array_equal(morphs.weights, np.eye(len(moves)))
    assert np.array_equal(morphs.targets, moves.astype(np.float32))


def test_runs_are_alike(moves):
    first, second = (compress(moves, tolerance=1e-3) for _ in range(2))
    assert np.array_equal(first.targets, second.targets)
    assert np.array_equal(first.weights, second.weights)


def test_fitted_targets_follow_the_weights():
    rng = np.random.default_rng(5)
    weights = np.hstack([np.ones((20, 1)), rng.uniform(size=(20, 3))])
    truth = rng.normal(size=(4, 7, 3))
    truth[:, 0] = 1e-6
    fitted = fit_targets(weights, np.einsum("fk,kni->fni", weights, truth), negligible=1e-4)
    assert np.allclose(fitted[:, 1:], truth[:, 1:], atol=1e-5)
    assert not fitted[:, 0].any()


def random_matrices(count, seed=1):
    rng = np.random.default_rng(seed)
    rotations = quaternion_matrices(rng.normal(size=(count, 4)))
    scales = rng.uniform(0.5, 2.0, size=(count, 3)) * rng.choice([-1.0, 1.0], size=(count, 1))
    return rotations * scales[:, None, :] @ np.swapaxes(quaternion_matrices(rng.normal(size=(count, 4))), 1, 2)


def test_pull_back_is_the_inverse_where_there_is_one():
    linear = random_matrices(200)
    wanted = np.random.default_rng(2).normal(size=(200, 3))
    assert np.allclose(np.einsum("nij,nj->ni", linear, pull_back(linear, wanted)), wanted, atol=1e-12)


def test_pull_back_of_flat_matrices_stays_bounded():
    flat = random_matrices(50) @ np.diag([1.0, 1.0, 1e-9])
    flat[0] = 0.0
    flat[1] = np.diag([1.0, 0.0, 0.0])
    offsets = np.random.default_rng(2).normal(size=(50, 3))
    back = pull_back(flat, offsets)
    sizes = np.linalg.norm(flat, 2, axis=(1, 2))
    assert np.isfinite(back).all()
    assert not back[0].any()
    assert np.allclose(back[1], [offsets[1, 0], 10.0 * 0.0 + back[1, 1], back[1, 2]])
    assert (np.linalg.norm(back[1:], axis=1) <= 10.001 / sizes[1:] * np.linalg.norm(offsets[1:], axis=1)).all()
    # What can be reached is reached: the part of the offset in the matrix' plane.
    u, _, _ = np.linalg.svd(flat[2:])
    missed = np.einsum("nij,nj->ni", flat[2:], back[2:]) - offsets[2:]
    assert np.abs(np.einsum("nij,ni->nj", u[:, :, :2], missed)).max() < 1e-9


def test_stretches_bound_the_largest_singular_value():
    linear = random_matrices(100)
    exact = np.linalg.norm(linear, 2, axis=(1, 2))
    assert (stretches(linear) >= exact * (1.0 - 1e-12)).all()
    assert (stretches(linear) <= exact * np.sqrt(3.0)).all()
    rotations = quaternion_matrices(np.random.default_rng(0).normal(size=(20, 4)))
    assert np.allclose(stretches(0.01 * rotations), 0.01)


def test_bad_input_names_the_frame(moves):
    broken = moves.copy()
    broken[7, 3, 1] = np.inf
    with pytest.raises(NotFiniteError) as caught:
        compress(broken, tolerance=1e-3)
    assert caught.value.indices.tolist() == [7]
    with pytest.raises(InputError, match="cannot be"):
        compress(moves, tolerance=0.0)
    with pytest.raises(InputError, match="cannot be"):
        compress(moves, tolerance=1e-3, most_targets=0)
    with pytest.raises(InputError, match="gains of shape"):
        compress(moves, tolerance=1e-3, gains=np.ones((3, 3)))
    with pytest.raises(InputError, match="not \\(frames, n, 3\\)"):
        compress(moves[0], tolerance=1e-3)
