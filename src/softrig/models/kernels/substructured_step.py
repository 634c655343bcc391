"""One implicit step of a tree of reduced domains, in time linear in their number, compiled (SUB11 Algorithm 1).

Frames follow from the coordinates, so there are no constraints. A round goes over the tree three times: down for the
frames and what velocities do, up for what each subtree weighs, down for the accelerations. The unknowns are q̈, all at
once: with Newmark's q = q* + q̈/a₁ and forces linear about the last round's q, each domain's
    M q̈ + Bᵀ A = g
is condensed onto the acceleration A of its frame, I − B M⁻¹ Bᵀ, and handed to its parent (Featherstone's articulated
inertia, with modes for joints). `inertia` says what a parent feels of a subtree:
    INTERFACE  its mass, at the interface (the paper's L1)
    CENTRE     its mass, at its centre of mass (the paper's L2)
    EXACT      all of it (ours)
Further rounds start from the answer of the last; one is the paper's semi-implicit step.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.substructured_frames import across, descend, move_root
from softrig.models.kernels.substructured_tables import Loads, Motion, Room, Tables
from softrig.models.kernels.substructured_weights import EXACT, ascend, weigh

SHIFTS, RESETS = 0, 1
"""Places in `counters`: domains whose system had to be shifted to be definite, steps thrown away."""


@njit(cache=True, forceinline=True, fastmath=FAST)
def _accelerate(factor: np.ndarray, coupling: np.ndarray, right: np.ndarray, A: np.ndarray, out: np.ndarray) -> None:
    """Write q̈ = L⁻ᵀ(L⁻¹g − Y A)."""
    r = right.shape[0]
    for i in range(r):
        row = coupling[i]
        out[i] = right[i] - (
            row[0] * A[0] + row[1] * A[1] + row[2] * A[2] + row[3] * A[3] + row[4] * A[4] + row[5] * A[5]
        )
    start = r * (r + 1) // 2
    for i in range(r - 1, -1, -1):
        start -= i + 1
        out[i] *= factor[start + i]
        value = out[i]
        for j in range(i):
            out[j] -= factor[start + j] * value


@njit(cache=True)
def _solve6(matrix: np.ndarray, right: np.ndarray) -> None:
    """Solve a positive definite system (6, 6) in place, by Cholesky."""
    for i in range(6):
        for j in range(i + 1):
            total = 0.5 * (matrix[i, j] + matrix[j, i])
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                matrix[i, i] = np.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
        total = right[i]
        for j in range(i):
            total -= matrix[i, j] * right[j]
        right[i] = total / matrix[i, i]
    for i in range(5, -1, -1):
        total = right[i]
        for j in range(i + 1, 6):
            total -= matrix[j, i] * right[j]
        right[i] = total / matrix[i, i]


@njit(cache=True, forceinline=True)
def _settle(tables: Tables, loads: Loads, room: Room, floating: bool) -> None:
    """Accelerations of all frames and modes, the frames' with gravity taken off."""
    first = room.accelerations[0]
    if floating:
        for k in range(6):
            first[k] = -room.bias[0, k]
        _solve6(room.inertia[0], first)
    else:
        frame = room.frames[0]
        for k in range(3):
            # A held root does not fall: seen from what falls freely, it rises.
            first[k] = -(
                frame[k] * loads.gravity[0] + frame[3 + k] * loads.gravity[1] + frame[6 + k] * loads.gravity[2]
            )
            first[3 + k] = 0.0
    for i in range(tables.parents.shape[0]):
        start, end = tables.modes[i], tables.modes[i + 1]
        parent, A = tables.parents[i], room.accelerations[i]
        if parent >= 0:
            hinge = room.hinges[i]
            across(hinge[0:9].reshape((3, 3)), hinge[9:12], room.accelerations[parent], A)
            up = tables.modes[parent]
            begin, last = tables.link_starts[i, 0] // 2, tables.link_starts[i, 1] // 2
            follow = room.follow[begin:last].reshape(((last - begin) // 6, 6))
            for k in range(6):
                A[k] += hinge[15 + k]
            for mode in range(follow.shape[0]):
                value = room.new_a[up + mode]
                for k in range(6):
                    A[k] += follow[mode, k] * value
        system = room.factors[room.factor_starts[i, 0] : room.factor_starts[i, 1]]
        _accelerate(system, room.coupling[start:end], room.right[start:end], A, room.new_a[start:end])


@njit(cache=True)
def _ground_damping(constants: np.ndarray, kind: int, floating: bool) -> float:
    """α where it damps motion against the ground: what floats, or is lumped, is damped in its modes alone."""
    return constants[6] if kind == EXACT and not floating else 0.0


@njit(cache=True, forceinline=True)
def step(
    tables: Tables,
    motion: Motion,
    loads: Loads,
    room: Room,
    constants: np.ndarray,
    counters: np.ndarray,
    kind: int,
    floating: bool,
    rounds: int,
) -> None:
    """One step. `constants`: a₁ … a₆, α, β, tolerance. What does not stay finite is thrown away, and all stops."""
    a1, a2, a3, a4, a5, a6 = constants[0], constants[1], constants[2], constants[3], constants[4], constants[5]
    q, v, a = motion.q, motion.v, motion.a
    total = q.shape[0]
    start_q, start_v = motion.start_q, motion.start_v
    for i in range(total):
        moved = (a2 * v[i] + a3 * a[i]) / a1
        start_q[i] = q[i] + moved
        start_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
        room.new_q[i] = q[i]
        room.new_v[i] = v[i]
    room.root[:] = motion.root
    alpha = _ground_damping(constants, kind, floating)
    shifted = 0
    for _ in range(rounds):
        descend(tables, room, room.new_q, room.new_v, room.root)
        weigh(tables, loads, room, alpha)
        shifted = ascend(tables, loads, room, start_q, start_v, constants, kind)
        _settle(tables, loads, room, floating)
        change, size = 0.0, 0.0
        for i in range(total):
            new = start_q[i] + room.new_a[i] / a1
            change += (new - room.new_q[i]) ** 2
            size += (new - q[i]) ** 2
            room.new_q[i] = new
            room.new_v[i] = start_v[i] + a4 / a1 * room.new_a[i]
        if floating:
            before = room.root[9] + room.root[10] + room.root[11]
            move_root(motion.root, loads.gravity, room.accelerations[0], constants, room.root, room.scratch)
            change += (room.root[9] + room.root[10] + room.root[11] - before) ** 2
        if not change > constants[8] * constants[8] * size:
            break
    finite = np.isfinite(np.sum(room.new_q)) and np.isfinite(np.sum(room.new_a)) and np.isfinite(np.sum(room.root))
    counters[SHIFTS] += shifted
    if not finite:
        counters[RESETS] += 1
        v[:] = 0.0
        a[:] = 0.0
        motion.root[12:24] = 0.0
        return
    q[:] = room.new_q
    v[:] = room.new_v
    a[:] = room.new_a
    motion.root[:] = room.root


@njit(cache=True)
def balance(
    tables: Tables, motion: Motion, loads: Loads, room: Room, constants: np.ndarray, kind: int, floating: bool
) -> None:
    """Write the accelerations that the present motion and loads ask for into `motion`.

    `constants`: those of a step of no length: a₁ beyond all others, a₂ … a₆ zero, α, β, tolerance.
    """
    for into, source in (
        (room.new_q, motion.q), (room.new_v, motion.v), (motion.start_q, motion.q), (motion.start_v, motion.v)
    ):  # fmt: skip
        into[:] = source
    room.root[:] = motion.root
    descend(tables, room, motion.q, motion.v, motion.root)
    weigh(tables, loads, room, _ground_damping(constants, kind, floating))
    ascend(tables, loads, room, motion.start_q, motion.start_v, constants, kind)
    _settle(tables, loads, room, floating)
    motion.a[:] = room.new_a
    if floating:
        root, first = motion.root, room.accelerations[0]
        for k in range(3):
            root[18 + k] = first[3 + k]
            root[21 + k] = (
                root[3 * k] * first[0] + root[3 * k + 1] * first[1] + root[3 * k + 2] * first[2] + loads.gravity[k]
            )


@njit(cache=True)
def run(
    tables: Tables,
    motion: Motion,
    loads: Loads,
    room: Room,
    constants: np.ndarray,
    counters: np.ndarray,
    kind: int,
    floating: bool,
    rounds: int,
    steps: int,
    trajectory: np.ndarray,
) -> None:
    """Many steps under the same loads; `trajectory` (steps, r̂) receives q after each, or has no rows."""
    for i in range(steps):
        step(tables, motion, loads, room, constants, counters, kind, floating, rounds)
        if trajectory.shape[0] > 0:
            trajectory[i] = motion.q


@njit(cache=True)
def place(tables: Tables, motion: Motion, room: Room) -> None:
    """Write the frames of the present motion into `room.frames`."""
    descend(tables, room, motion.q, motion.v, motion.root)
