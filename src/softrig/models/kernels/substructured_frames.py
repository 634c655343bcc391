"""Frames of a tree of domains: from the root down, each by its parent's modes (SUB11 §3)."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.substructured_tables import FRAME, Room, Tables
from softrig.models.kernels.substructured_terms import cross, interface
from softrig.numerics.rotations import rotation_from_vector


@njit(cache=True)
def descend(tables: Tables, room: Room, q: np.ndarray, v: np.ndarray, root: np.ndarray) -> None:
    """Frames, hinges and followings of all domains at q and q̇."""
    frames, hinges = room.frames, room.hinges
    for i in range(tables.parents.shape[0]):
        frame = frames[i]
        parent = tables.parents[i]
        if parent < 0:
            frame[:] = root[:FRAME]
            continue
        above = frames[parent]
        start, end = tables.modes[parent], tables.modes[parent + 1]
        hinge = hinges[i]
        Q, at, spin, gain = hinge[0:9].reshape((3, 3)), hinge[9:12], hinge[12:15], hinge[15:21]
        first, last = tables.link_starts[i, 0], tables.link_starts[i, 1]
        mine, yours = q[start:end], v[start:end]
        interface(
            tables.places[i], tables.turns[i], tables.links[first:last], tables.scales[parent], mine, yours,
            above[12:15], Q, at, spin, room.follow[first // 2 : last // 2].reshape((end - start, 6)), gain,
            room.scratch,
        )  # fmt: skip
        link, scale = tables.links[first:last], tables.scales[parent]
        r = end - start
        x, y, z = above[12], above[13], above[14]
        u0, u1, u2 = cross(x, y, z, at[0], at[1], at[2])
        u0 += above[15]
        u1 += above[16]
        u2 += above[17]
        m0, m1, m2 = 0.0, 0.0, 0.0
        for mode in range(r):
            m0 += link[mode] * yours[mode]
            m1 += link[r + mode] * yours[mode]
            m2 += link[2 * r + mode] * yours[mode]
        u0, u1, u2 = u0 + scale * m0, u1 + scale * m1, u2 + scale * m2
        for k in range(3):
            frame[12 + k] = Q[0, k] * x + Q[1, k] * y + Q[2, k] * z + spin[k]
            frame[15 + k] = Q[0, k] * u0 + Q[1, k] * u1 + Q[2, k] * u2
            frame[9 + k] = above[9 + k]
            for m in range(3):
                frame[9 + k] += above[3 * k + m] * at[m]
                frame[3 * k + m] = above[3 * k] * Q[0, m] + above[3 * k + 1] * Q[1, m] + above[3 * k + 2] * Q[2, m]


@njit(cache=True)
def across(Q: np.ndarray, at: np.ndarray, A: np.ndarray, out: np.ndarray) -> None:
    """T A: the parent's acceleration at the child's origin, in the child's axes."""
    e0, e1, e2 = cross(A[3], A[4], A[5], at[0], at[1], at[2])
    e0, e1, e2 = e0 + A[0], e1 + A[1], e2 + A[2]
    for k in range(3):
        out[k] = Q[0, k] * e0 + Q[1, k] * e1 + Q[2, k] * e2
        out[3 + k] = Q[0, k] * A[3] + Q[1, k] * A[4] + Q[2, k] * A[5]


@njit(cache=True)
def back(Q: np.ndarray, at: np.ndarray, F: np.ndarray, out: np.ndarray) -> None:
    """Tᵀ F: a wrench on the child's frame, felt by the parent's."""
    f0 = Q[0, 0] * F[0] + Q[0, 1] * F[1] + Q[0, 2] * F[2]
    f1 = Q[1, 0] * F[0] + Q[1, 1] * F[1] + Q[1, 2] * F[2]
    f2 = Q[2, 0] * F[0] + Q[2, 1] * F[1] + Q[2, 2] * F[2]
    t0, t1, t2 = cross(at[0], at[1], at[2], f0, f1, f2)
    out[0], out[1], out[2] = f0, f1, f2
    out[3] = t0 + Q[0, 0] * F[3] + Q[0, 1] * F[4] + Q[0, 2] * F[5]
    out[4] = t1 + Q[1, 0] * F[3] + Q[1, 1] * F[4] + Q[1, 2] * F[5]
    out[5] = t2 + Q[2, 0] * F[3] + Q[2, 1] * F[4] + Q[2, 2] * F[5]


@njit(cache=True)
def move_root(
    root: np.ndarray, gravity: np.ndarray, A: np.ndarray, constants: np.ndarray, out: np.ndarray, work: np.ndarray
) -> None:
    """Write where a floating root goes in a step with the acceleration A (6,) at its end, gravity taken off."""
    a1, a2, a3, a4, a5, a6 = constants[0], constants[1], constants[2], constants[3], constants[4], constants[5]
    old, new = root[0:9].reshape((3, 3)), out[0:9].reshape((3, 3))
    moved, turn = work[0:3], work[3:12].reshape((3, 3))
    for k in range(3):
        moved[k] = (A[3 + k] + a2 * root[12 + k] + a3 * root[18 + k]) / a1
        out[12 + k] = a4 * moved[k] + a5 * root[12 + k] + a6 * root[18 + k]
        out[18 + k] = A[3 + k]
    rotation_from_vector(moved, turn)
    for i in range(3):
        for j in range(3):
            new[i, j] = old[i, 0] * turn[0, j] + old[i, 1] * turn[1, j] + old[i, 2] * turn[2, j]
    # The origin moves in the world: velocities and accelerations go there and back.
    for i in range(3):
        start_v = old[i, 0] * root[15] + old[i, 1] * root[16] + old[i, 2] * root[17]
        start_a = root[21 + i]
        a = new[i, 0] * A[0] + new[i, 1] * A[1] + new[i, 2] * A[2] + gravity[i]
        by = (a + a2 * start_v + a3 * start_a) / a1
        out[9 + i] = root[9 + i] + by
        moved[i] = a4 * by + a5 * start_v + a6 * start_a
        out[21 + i] = a
    for k in range(3):
        out[15 + k] = new[0, k] * moved[0] + new[1, k] * moved[1] + new[2, k] * moved[2]
