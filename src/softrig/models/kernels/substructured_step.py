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

SHIFTS, RESETS, HALVED = 0, 1, 2
"""Places in `counters`: systems of domains that had to be shifted to be definite, steps thrown away, steps halved."""
AGREED = 0.01
"""Of a step: rounds whose answers differ by more have not found where it ends."""
SHORTEST = 1.0 / 32.0
"""Of a step: it is not halved further."""


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


@njit(cache=True, error_model="numpy")
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
        _held(room.frames[0], loads.gravity, first)
    for i in range(tables.parents.shape[0]):
        start, end = tables.modes[i], tables.modes[i + 1]
        if tables.parents[i] >= 0:
            _carry(tables, room, i)
        system = room.factors[room.factor_starts[i, 0] : room.factor_starts[i, 1]]
        _accelerate(
            system, room.coupling[start:end], room.right[start:end], room.accelerations[i], room.new_a[start:end]
        )


@njit(cache=True)
def _held(frame: np.ndarray, gravity: np.ndarray, A: np.ndarray) -> None:
    """The acceleration of a held root, gravity taken off: seen from what falls freely, it rises."""
    for k in range(3):
        A[k] = -(frame[k] * gravity[0] + frame[3 + k] * gravity[1] + frame[6 + k] * gravity[2])
        A[3 + k] = 0.0


@njit(cache=True)
def _carry(tables: Tables, room: Room, i: int) -> None:
    """Write the acceleration of a domain's frame, from its parent's and q̈ of the parent."""
    parent, A, hinge = tables.parents[i], room.accelerations[i], room.hinges[i]
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


@njit(cache=True)
def _ground_damping(constants: np.ndarray, kind: int, floating: bool) -> float:
    """α where it damps motion against the ground: what floats, or is lumped, is damped in its modes alone."""
    return constants[6] if kind == EXACT and not floating else 0.0


@njit(cache=True)
def _presume(tables: Tables, loads: Loads, room: Room, start_v: np.ndarray, share: float) -> None:
    """Accelerations of frames with which the presumed rates come about, q̇ = start_v + share q̈."""
    for i in range(start_v.shape[0]):
        room.new_a[i] = (room.new_v[i] - start_v[i]) / share if share > 0.0 else 0.0
    _held(room.frames[0], loads.gravity, room.accelerations[0])
    for i in range(1, tables.parents.shape[0]):
        _carry(tables, room, i)


@njit(cache=True)
def _root_change(start: np.ndarray, before: np.ndarray, now: np.ndarray, tolerance: float) -> bool:
    """Whether a floating root has moved and turned in the last round beyond `tolerance` of the step."""
    for first, last in ((0, 9), (9, 12)):
        change, size = 0.0, 0.0
        for k in range(first, last):
            change += (now[k] - before[k]) ** 2
            size += (now[k] - start[k]) ** 2
        if change > tolerance * tolerance * size:
            return True
    return False


@njit(cache=True, forceinline=True, fastmath=FAST)
def _sizes(tables: Tables, room: Room) -> tuple[float, float]:
    """xᵀ S x of what the last round changed and of the whole step, with S = L Lᵀ the domains' systems.

    In the length of q a stiff mode that runs away is small beside soft ones; in energy it is not.
    """
    change, size = 0.0, 0.0
    for i in range(tables.parents.shape[0]):
        start, end = tables.modes[i], tables.modes[i + 1]
        factor = room.factors[room.factor_starts[i, 0] : room.factor_starts[i, 1]]
        one, other = room.changes[0, start:end], room.changes[1, start:end]
        r = end - start
        for j in range(r):
            at = j * (j + 1) // 2 + j
            x, y = one[j] / factor[at], other[j] / factor[at]  # the diagonal holds 1/L
            at += j + 1
            for k in range(j + 1, r):
                x += factor[at] * one[k]
                y += factor[at] * other[k]
                at += k + 1
            change += x * x
            size += y * y
    return change, size


@njit(cache=True, forceinline=True)
def _solve(
    tables: Tables,
    motion: Motion,
    loads: Loads,
    room: Room,
    constants: np.ndarray,
    counters: np.ndarray,
    kind: int,
    floating: bool,
    rounds: int,
) -> bool:
    """Find where one step ends, into `room`. False if the rounds do not agree, or not all is finite."""
    a1, a2, a3, a4, a5, a6 = constants[0], constants[1], constants[2], constants[3], constants[4], constants[5]
    q, v, a = motion.q, motion.v, motion.a
    total, tolerance = q.shape[0], constants[8]
    start_q, start_v = motion.start_q, motion.start_v
    for i in range(total):
        moved = (a2 * v[i] + a3 * a[i]) / a1
        start_q[i] = q[i] + moved
        start_v[i] = a4 * moved + a5 * v[i] + a6 * a[i]
        room.new_q[i] = q[i]
        room.new_v[i] = v[i]
    room.root[:] = motion.root
    alpha = _ground_damping(constants, kind, floating)
    change, size, root_settled = 0.0, 0.0, True
    for turn in range(rounds):
        descend(tables, room, room.new_q, room.new_v, room.root)
        if alpha > 0.0 and turn == 0:
            _presume(tables, loads, room, start_v, a4 / a1)
        weigh(tables, loads, room, start_v, alpha, a4 / a1)
        counters[SHIFTS] += ascend(tables, loads, room, start_q, start_v, constants, kind)
        _settle(tables, loads, room, floating)
        for i in range(total):
            new = start_q[i] + room.new_a[i] / a1
            room.changes[0, i] = new - room.new_q[i]
            room.changes[1, i] = new - q[i]
            room.new_q[i] = new
            room.new_v[i] = start_v[i] + a4 / a1 * room.new_a[i]
        change, size = _sizes(tables, room)
        if floating:
            before = room.before
            before[:] = room.root
            move_root(motion.root, loads.gravity, room.accelerations[0], constants, room.root, room.scratch)
            root_settled = not _root_change(motion.root, before, room.root, tolerance)
        if root_settled and not change > tolerance * tolerance * size:
            break
    if not (np.isfinite(np.sum(room.new_q)) and np.isfinite(np.sum(room.new_a)) and np.isfinite(np.sum(room.root))):
        return False
    return rounds == 1 or kind != EXACT or change <= AGREED * AGREED * size


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
    """One step. `constants`: a₁ … a₆, α, β, tolerance.

    A step whose rounds do not agree is taken in halves, and these in halves again. Where even short ones do not
    agree, or not all is finite, the rest of the step is thrown away, and all stops.
    """
    part, done = 1.0, 0.0
    own = room.constants
    while done < 1.0 - 1e-9:
        own[:] = constants
        # As a step of that length has them, of Newmark and of backward Euler alike.
        own[0] = constants[0] / (part * part)
        own[1], own[3], own[5] = constants[1] / part, constants[3] / part, constants[5] * part
        if not _solve(tables, motion, loads, room, own, counters, kind, floating, rounds):
            if part > SHORTEST:
                part *= 0.5
                counters[HALVED] += 1
                continue
            counters[RESETS] += 1
            for i in range(motion.q.shape[0]):
                motion.v[i] = 0.0
                motion.a[i] = 0.0
                if not np.isfinite(motion.q[i]):
                    motion.q[i] = 0.0
            motion.root[12:24] = 0.0
            return
        motion.q[:] = room.new_q
        motion.v[:] = room.new_v
        motion.a[:] = room.new_a
        motion.root[:] = room.root
        done += part


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
