"""Packed symmetric tensors: the storage order and its promise that truncation is a prefix."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from softrig.numerics.symmetric_tensors import (
    entry_count,
    entry_position,
    pack,
    packed_size,
    sorted_indices,
    unpack,
)

SIZES = [(order, size) for order in (1, 2, 3, 4) for size in (1, 2, 5)]


@pytest.mark.parametrize(("order", "size"), SIZES)
def test_positions_are_a_bijection(order, size):
    indices = sorted_indices(order, size)
    assert indices.shape == (entry_count(order, size), order)
    assert (np.diff(indices, axis=1) >= 0).all()
    assert len(np.unique(indices, axis=0)) == len(indices)
    np.testing.assert_array_equal(entry_position(indices), np.arange(len(indices)))


@pytest.mark.parametrize(("order", "size"), SIZES)
def test_position_ignores_the_order_of_indices(order, size):
    indices = sorted_indices(order, size)
    for permutation in permutations(range(order)):
        np.testing.assert_array_equal(entry_position(indices[:, permutation]), np.arange(len(indices)))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_dropping_trailing_indices_keeps_a_prefix(order):
    large, small = sorted_indices(order, 6), sorted_indices(order, 4)
    np.testing.assert_array_equal(large[: len(small)], small)
    assert (large[len(small) :].max(axis=1) >= 4).all()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pack_and_unpack_are_inverse(size):
    half = np.random.default_rng(size).standard_normal((2, 3, size, size))
    matrices = half + np.swapaxes(half, -1, -2)
    packed = pack(matrices)
    assert packed.shape == (2, 3, entry_count(2, size))
    np.testing.assert_array_equal(unpack(packed), matrices)


def test_packed_matrix_stands_at_the_positions_of_its_index_pairs():
    half = np.random.default_rng(0).standard_normal((5, 5))
    matrix = half + half.T
    i, j = sorted_indices(2, 5).T
    np.testing.assert_array_equal(pack(matrix), matrix[i, j])
    np.testing.assert_array_equal(pack(matrix)[: entry_count(2, 3)], pack(matrix[:3, :3]))


def test_packed_size_inverts_the_triangle_numbers_and_refuses_others():
    assert [packed_size(r * (r + 1) // 2) for r in range(1, 300)] == list(range(1, 300))
    for entries in (2, 4, 5, 7, 11):
        with pytest.raises(ValueError, match="packed symmetric matrix"):
            packed_size(entries)
