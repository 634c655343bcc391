"""The linear part of the elastic force at the pose: matrices mixed, or flexibilities mixed and inverted."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.inverse import invert
from softrig.models.kernels.pose_space_sums import add_segments, weighted_sum
from softrig.models.kernels.pose_space_tables import FLEXIBLE, STALE, Memory, Sums

HALVINGS = 6
"""What was learned counts by half, a quarter … where a flexibility is none; after so many, nothing."""


@njit(cache=True, forceinline=True)
def linear_part(sums: Sums, memory: Memory) -> None:
    """Write K̃ or ΔK of the pose into `memory.correction` (entries,).

    It is `sums.stiffness` (k, entries) mixed by `memory.mixing` (k,). With a map of flexibilities (switch FLEXIBLE) all
    but the springs of contacts are mixed and inverted. That is as much work as the rest of a step's algebra, so the
    inverse is kept until the pose has moved by STALE of it.
    """
    correction, mixing = memory.correction, memory.mixing
    if memory.switches[FLEXIBLE] == 0:
        weighted_sum(sums.stiffness, mixing, correction)
        return
    moved = 0.0
    for k in range(mixing.shape[0]):
        moved += (sums.sizes[k] * (mixing[k] - memory.inverted_at[k])) ** 2
    if not moved <= memory.settings[STALE] ** 2:
        for k in range(mixing.shape[0]):
            memory.inverted_at[k] = mixing[k]
        invert_flexibility(
            sums.stiffness,
            sums.segments,
            sums.springs,
            sums.firmest,
            memory.inverted_at,
            correction,
            memory.square,
            memory.room_of_rows,
            memory.no_first,
            memory.inverse,
        )
    for t in range(correction.shape[0]):
        correction[t] = memory.inverse[t]
    for k in range(sums.springs[0], sums.springs[1]):
        weight, spring = mixing[k], sums.stiffness[k]
        if weight != 0.0:
            for t in range(correction.shape[0]):
                correction[t] += weight * spring[t]


@njit(cache=True, forceinline=True)
def invert_flexibility(
    terms: np.ndarray,
    segments: np.ndarray,
    springs: np.ndarray,
    firmest: np.ndarray,
    mixing: np.ndarray,
    total: np.ndarray,
    square: np.ndarray,
    room: np.ndarray,
    first: np.ndarray,
    inverse: np.ndarray,
) -> None:
    """Write the inverse (entries,) of Σ mixing[k] terms[k] over the first k and all behind the springs.

    Beyond all samples that may be no flexibility, or hardly one: then less of what was learned is taken, until it is
    positive definite and no mode is stiffer than `firmest` (r,). What cannot be inverted at all leaves it as it was.
    """
    size, learned = first.shape[0], springs[1]
    weighted_sum(terms[learned:], mixing[learned:], total)
    share, sound = 1.0, False
    for trial in range(HALVINGS + 1):
        if trial == HALVINGS:
            share = 0.0
        for i in range(size):
            for j in range(i + 1):
                square[i, j] = 0.0
        add_segments(segments, terms[0], mixing[0], square)
        add_segments(segments, total, share, square)
        sound = invert(square, first, size, room)
        for i in range(size):
            sound = sound and square[i, i] <= firmest[i]
        if sound:
            break
        share *= 0.5
    if not sound:
        return
    for s in range(segments.shape[0]):
        i, j, length, at = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        for t in range(length):
            inverse[at + t] = square[i, j + t]
