"""Symmetric tensors stored by their different entries only, in an order that makes truncation a prefix.

An entry i ≤ j ≤ k ≤ l stands at C(i,1) + C(j+1,2) + C(k+2,3) + C(l+3,4) (and likewise for two and
three indices). Indices below r' fill exactly the first entries, so dropping trailing modes of a
reduced model is slicing. Two indices: i + j(j+1)/2, the packed lower triangle by rows.
"""

from __future__ import annotations

from math import comb

import numpy as np


def entry_count(order: int, size: int) -> int:
    """How many different entries a symmetric tensor of this order over `size` indices has."""
    return comb(size + order - 1, order)


def sorted_indices(order: int, size: int) -> np.ndarray:
    """(entries, order) the index tuples i ≤ j ≤ … in storage order."""
    if order == 1:
        return np.arange(size)[:, None]
    # Entries whose last index is l come together, the rest of their indices running over 0 to l in the same order.
    lower = sorted_indices(order - 1, size)
    blocks = []
    for last in range(size):
        head = lower[: entry_count(order - 1, last + 1)]
        blocks.append(np.concatenate([head, np.full((len(head), 1), last)], axis=1))
    return np.concatenate(blocks) if blocks else np.zeros((0, order), np.int64)


def entry_position(indices: np.ndarray) -> np.ndarray:
    """Storage position of index tuples (..., order), in any order of their indices."""
    ordered = np.sort(np.asarray(indices, dtype=np.int64), axis=-1)
    position = np.zeros(ordered.shape[:-1], np.int64)
    for place in range(ordered.shape[-1]):
        top = ordered[..., place] + place
        binomial = np.ones_like(top)
        for factor in range(place + 1):
            binomial = binomial * (top - factor) // (factor + 1)
        position += binomial
    return position


def pack(matrix: np.ndarray) -> np.ndarray:
    """The packed lower triangle (…, s) of symmetric matrices (…, r, r)."""
    rows, columns = np.tril_indices(matrix.shape[-1])
    return np.ascontiguousarray(matrix[..., rows, columns])


def unpack(packed: np.ndarray) -> np.ndarray:
    """Symmetric matrices (…, r, r) from packed lower triangles (…, s)."""
    size = packed_size(packed.shape[-1])
    matrix = np.empty((*packed.shape[:-1], size, size))
    rows, columns = np.tril_indices(size)
    matrix[..., rows, columns] = packed
    matrix[..., columns, rows] = packed
    return matrix


def packed_size(entries: int) -> int:
    """r with r(r+1)/2 = entries."""
    size = int((np.sqrt(8.0 * entries + 1.0) - 1.0) / 2.0 + 0.5)
    if size * (size + 1) // 2 != entries:
        raise ValueError(f"{entries} is not the size of a packed symmetric matrix")
    return size
