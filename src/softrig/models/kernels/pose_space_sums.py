"""Sums over poses of matrices stored by segments, products with them, and the Cholesky of the step's system."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST

_DEFINITE = 1e-14
"""A pivot must keep more than this of its diagonal entry."""


@njit(cache=True, forceinline=True, fastmath=FAST)
def weighted_sum(terms: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
    """total (k,) = Σ_i weights[i] terms[i], four at a time; fours of weight zero are not read."""
    for t in range(total.shape[0]):
        total[t] = 0.0
    fours = terms.shape[0] - terms.shape[0] % 4
    for i in range(0, fours, 4):
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
            a, b, c, d = terms[i], terms[i + 1], terms[i + 2], terms[i + 3]
            for t in range(total.shape[0]):
                total[t] += w0 * a[t] + w1 * b[t] + w2 * c[t] + w3 * d[t]
    for i in range(fours, terms.shape[0]):
        w, term = weights[i], terms[i]
        if w != 0.0:
            for t in range(total.shape[0]):
                total[t] += w * term[t]


@njit(cache=True, forceinline=True, fastmath=FAST)
def segment_product(segments: np.ndarray, entries: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """y += A x of a symmetric A stored by segments."""
    for s in range(segments.shape[0]):
        i, j, length, at = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        diagonal = 1 if j + length == i + 1 else 0
        part, source, target = entries[at : at + length], x[j : j + length], y[j : j + length]
        xi, total = x[i], 0.0
        for t in range(length - diagonal):
            total += part[t] * source[t]
            target[t] += part[t] * xi
        if diagonal:
            total += part[length - 1] * xi
        y[i] += total


@njit(cache=True, forceinline=True, fastmath=FAST)
def add_segments(segments: np.ndarray, entries: np.ndarray, factor: float, matrix: np.ndarray) -> None:
    """The lower half of `matrix` += factor · A."""
    for s in range(segments.shape[0]):
        i, j, length, at = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        row, part = matrix[i, j : j + length], entries[at : at + length]
        for t in range(length):
            row[t] += factor * part[t]


@njit(cache=True, forceinline=True, fastmath=FAST)
def project(
    modes: np.ndarray,
    starts: np.ndarray,
    pieces: np.ndarray,
    offsets: np.ndarray,
    all_entries: np.ndarray,
    load: np.ndarray,
    mixture: np.ndarray,
    sign: float,
    room: np.ndarray,
    force: np.ndarray,
) -> None:
    """force += sign · C [x_s a_s] by `Projection`, four modes at a time. `room` holds the loads of a region."""
    for g in range(modes.shape[0] - 1):
        width = 0
        for s in range(starts[g], starts[g + 1]):
            first, length, factor = pieces[s, 0], pieces[s, 1], sign * mixture[pieces[s, 2]]
            for t in range(length):
                room[width + t] = factor * load[first + t]
            width += length
        felt, entries = room[:width], all_entries[offsets[g] : offsets[g + 1]]
        count = modes[g + 1] - modes[g]
        fours = count - count % 4
        for k in range(0, fours, 4):
            rows = entries[k * width : (k + 4) * width]
            a, b, c, d = rows[:width], rows[width : 2 * width], rows[2 * width : 3 * width], rows[3 * width :]
            s0 = s1 = s2 = s3 = 0.0
            for t in range(width):
                s0 += a[t] * felt[t]
                s1 += b[t] * felt[t]
                s2 += c[t] * felt[t]
                s3 += d[t] * felt[t]
            at = modes[g] + k
            force[at] += s0
            force[at + 1] += s1
            force[at + 2] += s2
            force[at + 3] += s3
        for k in range(fours, count):
            row, total = entries[k * width : (k + 1) * width], 0.0
            for t in range(width):
                total += row[t] * felt[t]
            force[modes[g] + k] += total


@njit(cache=True, forceinline=True, fastmath=FAST)
def assemble(
    segments: np.ndarray,
    mass: np.ndarray,
    mass_factor: float,
    stiffness: np.ndarray,
    stiffness_factor: float,
    system: np.ndarray,
) -> None:
    """The lower half of `system` = mass_factor · M̂ + stiffness_factor · K̂."""
    for i in range(stiffness.shape[0]):
        target, source = system[i], stiffness[i]
        for j in range(i + 1):
            target[j] = stiffness_factor * source[j]
    add_segments(segments, mass, mass_factor, system)


@njit(cache=True, forceinline=True, fastmath=FAST)
def cholesky(matrix: np.ndarray, first: np.ndarray, size: int) -> bool:
    """Overwrite the lower half of a symmetric matrix by L of A = L Lᵀ; the diagonal holds 1/L[i, i].

    False if it is not positive definite. Row-dot form, tiles of four rows by two columns: eight running sums share six
    loads. Nothing before the first column of a row is touched (no fill-in there). `matrix` has rows up to size + 3.
    """
    for i in range(0, size, 4):
        begin = first[i]
        for k in range(i, min(i + 4, size)):
            begin = min(begin, first[k])
        # Tiles begin at even distance from the diagonal block, so that two columns always fit.
        begin -= (i - begin) % 2
        r0, r1, r2, r3 = matrix[i, begin:], matrix[i + 1, begin:], matrix[i + 2, begin:], matrix[i + 3, begin:]
        for j in range(0, i - begin, 2):
            c, d = matrix[begin + j, begin:], matrix[begin + j + 1, begin:]
            s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = 0.0
            for t in range(j):
                s00 += r0[t] * c[t]
                s01 += r0[t] * d[t]
                s10 += r1[t] * c[t]
                s11 += r1[t] * d[t]
                s20 += r2[t] * c[t]
                s21 += r2[t] * d[t]
                s30 += r3[t] * c[t]
                s31 += r3[t] * d[t]
            one, between, two = c[j], d[j], d[j + 1]
            x0, x1, x2, x3 = (r0[j] - s00) * one, (r1[j] - s10) * one, (r2[j] - s20) * one, (r3[j] - s30) * one
            r0[j], r1[j], r2[j], r3[j] = x0, x1, x2, x3
            r0[j + 1] = (r0[j + 1] - s01 - x0 * between) * two
            r1[j + 1] = (r1[j + 1] - s11 - x1 * between) * two
            r2[j + 1] = (r2[j + 1] - s21 - x2 * between) * two
            r3[j + 1] = (r3[j + 1] - s31 - x3 * between) * two
        if not _diagonal_block(r0, r1, r2, r3, i - begin, min(4, size - i)):
            return False
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def _diagonal_block(r0: np.ndarray, r1: np.ndarray, r2: np.ndarray, r3: np.ndarray, j: int, count: int) -> bool:
    """Finish `count` rows whose entries before column j are done."""
    s00 = s10 = s11 = s20 = s21 = s22 = s30 = s31 = s32 = s33 = 0.0
    for t in range(j):
        a, b, c, d = r0[t], r1[t], r2[t], r3[t]
        s00 += a * a
        s10 += b * a
        s11 += b * b
        s20 += c * a
        s21 += c * b
        s22 += c * c
        s30 += d * a
        s31 += d * b
        s32 += d * c
        s33 += d * d
    # Written so that NaN fails too.
    left = r0[j] - s00
    if not left > _DEFINITE * abs(r0[j]):
        return False
    r0[j] = 1.0 / np.sqrt(left)
    if count > 1:
        r1[j] = (r1[j] - s10) * r0[j]
        left = r1[j + 1] - s11 - r1[j] * r1[j]
        if not left > _DEFINITE * abs(r1[j + 1]):
            return False
        r1[j + 1] = 1.0 / np.sqrt(left)
    if count > 2:
        r2[j] = (r2[j] - s20) * r0[j]
        r2[j + 1] = (r2[j + 1] - s21 - r2[j] * r1[j]) * r1[j + 1]
        left = r2[j + 2] - s22 - r2[j] * r2[j] - r2[j + 1] * r2[j + 1]
        if not left > _DEFINITE * abs(r2[j + 2]):
            return False
        r2[j + 2] = 1.0 / np.sqrt(left)
    if count > 3:
        r3[j] = (r3[j] - s30) * r0[j]
        r3[j + 1] = (r3[j + 1] - s31 - r3[j] * r1[j]) * r1[j + 1]
        r3[j + 2] = (r3[j + 2] - s32 - r3[j] * r2[j] - r3[j + 1] * r2[j + 1]) * r2[j + 2]
        left = r3[j + 3] - s33 - r3[j] * r3[j] - r3[j + 1] * r3[j + 1] - r3[j + 2] * r3[j + 2]
        if not left > _DEFINITE * abs(r3[j + 3]):
            return False
        r3[j + 3] = 1.0 / np.sqrt(left)
    return True


@njit(cache=True, forceinline=True, fastmath=FAST)
def cholesky_solve(matrix: np.ndarray, first: np.ndarray, x: np.ndarray) -> None:
    """Solve L Lᵀ x = b in place, `matrix` from `cholesky`."""
    size = x.shape[0]
    for i in range(size):
        begin = first[i]
        row, source = matrix[i, begin:i], x[begin:i]
        total = x[i]
        for t in range(i - begin):
            total -= row[t] * source[t]
        x[i] = total * matrix[i, i]
    for i in range(size - 1, -1, -1):
        begin = first[i]
        x[i] *= matrix[i, i]
        xi = x[i]
        row, target = matrix[i, begin:i], x[begin:i]
        for t in range(i - begin):
            target[t] -= row[t] * xi
