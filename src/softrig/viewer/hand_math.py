"""Vectors and turns that a hand asks for, made such that a body can follow them."""

from __future__ import annotations

import math

import numpy as np

from softrig.errors import InputError, require_finite

FOLDED = 0.15
"""Of a limb's length: its end does not come nearer to its beginning. Flesh between two bones that lie on each other has
no volume."""


def unfolded(heads: np.ndarray, to: np.ndarray) -> np.ndarray:
    """`to` (3,), or the place beyond it where a limb with these heads (3, 3) does not yet lie flat on itself."""
    arm = to - heads[0]
    least = FOLDED * float(np.linalg.norm(np.diff(heads, axis=0), axis=1).sum())
    if np.linalg.norm(arm) >= least:
        return to
    if np.linalg.norm(arm) < 1e-9:
        arm = heads[1] - heads[0]  # any way out is as good
    return heads[0] + least * arm / np.linalg.norm(arm)


def rotation_part(matrix: np.ndarray) -> np.ndarray:
    """(3, 3) the rotation nearest to a matrix (3, 3)."""
    U, _, Vt = np.linalg.svd(matrix)
    U[:, 2] *= np.sign(np.linalg.det(U @ Vt))
    return U @ Vt


def nearest(vector: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Of the rotation vectors of one rotation the one nearest to `old`: the pose must not go round the other way."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-9:
        return vector
    others = [vector * (1.0 + 2.0 * math.pi * turns / angle) for turns in (-1, 0, 1)]
    return min(others, key=lambda other: float(np.linalg.norm(other - old)))


def shortened(vector: np.ndarray, longest: float) -> np.ndarray:
    """`vector` (3,), no longer than `longest`."""
    return vector * min(1.0, longest / max(float(np.linalg.norm(vector)), 1e-300))


def checked_vector(value: np.ndarray, what: str) -> np.ndarray:
    """(3,) finite numbers."""
    vector = np.array(value, dtype=np.float64)
    if vector.shape != (3,):
        raise InputError(f"{what}: three numbers, not {vector.shape}")
    require_finite(vector, what)
    return vector
