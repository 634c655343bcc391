"""Gyroscopic forces: what turning frames do to what moves in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.numerics.vectors import load, load_four, plus_product, spread, store, widened


@njit(cache=True, forceinline=True)
def gyroscopic(
    segments: np.ndarray,
    starts: np.ndarray,
    pieces: np.ndarray,
    terms: np.ndarray,
    rates: np.ndarray,
    x: np.ndarray,
    speed: np.ndarray,
    room: np.ndarray,
    force: np.ndarray,
) -> None:
    """force −= Σ_groups (2 Σ_a Ω_a Γ_a ẋ + Σ_a Ω̇_a Γ_a x + Σ_ab Ω_aΩ_b Θ_ab x), ẋ = `speed`.

    First the sums over groups of what stands before ẋ and x, then one product. `terms` (9, …): the lower halves of
    three skew Γ, then of six symmetric Θ; `rates` (G, 2, 3): Ω, Ω̇; `room` (3, entries) scratch.
    """
    spin, turn, pull = room[0], room[1], room[2]
    for t in range(spin.shape[0]):
        spin[t], turn[t], pull[t] = 0.0, 0.0, 0.0
    still = True
    for k in range(rates.shape[0]):
        ox, oy, oz = rates[k, 0, 0], rates[k, 0, 1], rates[k, 0, 2]
        tx, ty, tz = rates[k, 1, 0], rates[k, 1, 1], rates[k, 1, 2]
        if ox == 0.0 and oy == 0.0 and oz == 0.0 and tx == 0.0 and ty == 0.0 and tz == 0.0:
            continue
        still = False
        for p in range(starts[k], starts[k + 1]):
            low, high, at = pieces[p, 0], pieces[p, 0] + pieces[p, 1], pieces[p, 2]
            _add_group(terms, at, pieces[p, 1], rates[k], spin[low:high], turn[low:high], pull[low:high])
    if not still:
        _subtract_product(segments, spin, turn, pull, x, speed, force)


@njit(cache=True)
def _add_group(
    terms: np.ndarray,
    first: int,
    count: int,
    rates: np.ndarray,
    spin: np.ndarray,
    turn: np.ndarray,
    pull: np.ndarray,
) -> None:
    """Add the share of one group to `count` entries; `terms` from `first` on, `rates` (2, 3).

    One pass, because to make single numbers double is most of the work, and loops over so many arrays stay scalar.
    """
    x, y, z = rates[0, 0], rates[0, 1], rates[0, 2]
    factors = (2.0 * x, 2.0 * y, 2.0 * z)
    turns = (rates[1, 0], rates[1, 1], rates[1, 2])
    squares = (x * x, y * y, z * z)
    mixed = (x * y, x * z, y * z)
    flat, stride = terms.reshape(-1), np.uint64(terms.shape[1])
    third = stride + stride + stride
    whole = np.uint64(count - count % 4)
    for t in range(np.uint64(0), whole, np.uint64(4)):
        at = np.uint64(first) + t
        one, two, three = _three(flat, at, stride)
        store(spin, t, _plus_three(load(spin, t), factors, one, two, three))
        store(turn, t, _plus_three(load(turn, t), turns, one, two, three))
        one, two, three = _three(flat, at + third, stride)
        total = _plus_three(load(pull, t), squares, one, two, three)
        one, two, three = _three(flat, at + third + third, stride)
        store(pull, t, _plus_three(total, mixed, one, two, three))
    for t in range(whole, count):
        for i in range(3):
            spin[t] += factors[i] * terms[i, first + t]
            turn[t] += turns[i] * terms[i, first + t]
            pull[t] += squares[i] * terms[3 + i, first + t] + mixed[i] * terms[6 + i, first + t]


@njit(cache=True)
def _three(terms: np.ndarray, at: np.uint64, stride: np.uint64) -> tuple[Any, Any, Any]:
    one, two = load_four(terms, at), load_four(terms, at + stride)
    return widened(one), widened(two), widened(load_four(terms, at + stride + stride))


@njit(cache=True)
def _plus_three(total: Any, factors: tuple[float, float, float], one: Any, two: Any, three: Any) -> Any:
    total = plus_product(plus_product(total, spread(factors[0]), one), spread(factors[1]), two)
    return plus_product(total, spread(factors[2]), three)


@njit(cache=True, forceinline=True, fastmath=FAST)
def _subtract_product(
    segments: np.ndarray,
    spin: np.ndarray,
    turn: np.ndarray,
    pull: np.ndarray,
    x: np.ndarray,
    speed: np.ndarray,
    force: np.ndarray,
) -> None:
    """force −= C ẋ + (E + H) x, with skew C (`spin`), skew E (`turn`) and symmetric H (`pull`), by segments."""
    for s in range(segments.shape[0]):
        i, j, length, at = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        c, e, h = spin[at : at + length], turn[at : at + length], pull[at : at + length]
        source, pace, target = x[j : j + length], speed[j : j + length], force[j : j + length]
        xi, vi, total = x[i], speed[i], 0.0
        for t in range(length):
            total += c[t] * pace[t] + (h[t] + e[t]) * source[t]
            target[t] -= (h[t] - e[t]) * xi - c[t] * vi
        if j + length == i + 1:
            # The diagonal was counted twice; Γ has none.
            total -= h[length - 1] * xi
        force[i] -= total
