"""The moving rest shape of a small skinned body: where its vertices are, how they are accelerated, and how they turn.

The formulas of `models.tet_motion.SkinCarriers`, compiled.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.polar import angular_rates
from softrig.models.kernels.pose_space_pose import mixing_weights, pose_frames, rest_positions
from softrig.models.kernels.small_tables import GRAVITY, INERTIA, SAG_FREE, SmallMemory, SmallRig


@njit(cache=True)
def skin_motion(
    rig: SmallRig, mass: np.ndarray, memory: SmallMemory, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray
) -> None:
    """Write rest positions, loads and spins at carrier values z (Z,), rates zd per second and zdd per second²."""
    work, settings = memory.work, memory.settings
    mixing_weights(z, memory.w, memory.positive, memory.whole)
    # A skin has no sample of a root; any tables do.
    pose_frames(True, z, rig.order, rig.points, memory.turns, memory.quaternions, work)
    rest_positions(
        True,
        rig.order,
        z,
        memory.w,
        memory.turns,
        rig.starts,
        rig.bones,
        rig.weights,
        rig.points,
        rig.corrections,
        rig.order,
        memory.positions,
    )
    _bone_rates(z, zd, zdd, memory.turns, memory.quaternions, memory.rates, work)
    for v in range(mass.shape[0]):
        _spin(v, rig.starts, rig.bones, rig.weights, memory.quaternions, memory.rates, memory.spin[v])
        load = memory.load[v]
        _acceleration(v, rig, z, zd, zdd, load)
        scale = settings[INERTIA]
        for i in range(3):
            load[i] = settings[GRAVITY + i] - scale * load[i]
        if settings[SAG_FREE] != 0.0:
            _take_sag(v, rig, memory.turns, settings, load)
        for i in range(3):
            load[i] *= mass[v]


@njit(cache=True)
def _bone_rates(
    z: np.ndarray,
    zd: np.ndarray,
    zdd: np.ndarray,
    turns: np.ndarray,
    quaternions: np.ndarray,
    rates: np.ndarray,
    work: np.ndarray,
) -> None:
    """Write q̇ = ½ ω q of the bones' rotations, ω their angular velocity in the world."""
    count = turns.shape[0]
    bones, first = z[: 12 * count].reshape((count, 3, 4)), zd[: 12 * count].reshape((count, 3, 4))
    second = zdd[: 12 * count].reshape((count, 3, 4))
    body, unused, scratch = work[0:3], work[3:6], work[6:51]
    for b in range(count):
        R, q, rate = turns[b], quaternions[b], rates[b]
        angular_rates(R, bones[b], first[b], second[b], body, unused, scratch)
        x = 0.5 * (R[0, 0] * body[0] + R[0, 1] * body[1] + R[0, 2] * body[2])
        y = 0.5 * (R[1, 0] * body[0] + R[1, 1] * body[1] + R[1, 2] * body[2])
        s = 0.5 * (R[2, 0] * body[0] + R[2, 1] * body[1] + R[2, 2] * body[2])
        rate[0] = x * q[3] + y * q[2] - s * q[1]
        rate[1] = y * q[3] - x * q[2] + s * q[0]
        rate[2] = x * q[1] - y * q[0] + s * q[3]
        rate[3] = -x * q[0] - y * q[1] - s * q[2]


@njit(cache=True)
def _spin(
    vertex: int,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    rates: np.ndarray,
    spin: np.ndarray,
) -> None:
    """ω = 2 Im(ṗ p⁻¹) of the mixed quaternion p = Σ_b W_b (±q_b), signs by the heaviest bone, which stands first."""
    head = quaternions[bones[starts[vertex]]]
    x, y, z, w, dx, dy, dz, dw = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for at in range(starts[vertex], starts[vertex + 1]):
        q, rate, weight = quaternions[bones[at]], rates[bones[at]], weights[at]
        if head[0] * q[0] + head[1] * q[1] + head[2] * q[2] + head[3] * q[3] < 0.0:
            weight = -weight
        x, y, z, w = x + weight * q[0], y + weight * q[1], z + weight * q[2], w + weight * q[3]
        dx, dy, dz, dw = dx + weight * rate[0], dy + weight * rate[1], dz + weight * rate[2], dw + weight * rate[3]
    square = x * x + y * y + z * z + w * w
    scale = 2.0 / square if square > 0.0 else 0.0
    spin[0] = scale * (dx * w - dw * x - dy * z + dz * y)
    spin[1] = scale * (dy * w - dw * y + dx * z - dz * x)
    spin[2] = scale * (dz * w - dw * z - dx * y + dy * x)


@njit(cache=True)
def _acceleration(vertex: int, rig: SmallRig, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, out: np.ndarray) -> None:
    """Write ẍ = Σ_b W_b (M̈_b [y; 1] + 2 Ṁ_b ẏ + M_b ÿ) with y = X + Σ_i w_i δ_i (PSSD Eqs. 1, 2)."""
    delta = rig.corrections[vertex]
    first = z.shape[0] - delta.shape[0]
    y0, y1, y2 = rig.points[vertex, 0], rig.points[vertex, 1], rig.points[vertex, 2]
    v0, v1, v2, a0, a1, a2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(delta.shape[0]):
        w, speed, turn = z[first + i], 2.0 * zd[first + i], zdd[first + i]
        y0, y1, y2 = y0 + w * delta[i, 0], y1 + w * delta[i, 1], y2 + w * delta[i, 2]
        v0, v1, v2 = v0 + speed * delta[i, 0], v1 + speed * delta[i, 1], v2 + speed * delta[i, 2]
        a0, a1, a2 = a0 + turn * delta[i, 0], a1 + turn * delta[i, 1], a2 + turn * delta[i, 2]
    for i in range(3):
        total = 0.0
        for at in range(rig.starts[vertex], rig.starts[vertex + 1]):
            b = 12 * rig.bones[at] + 4 * i
            total += rig.weights[at] * (
                zdd[b] * y0
                + zdd[b + 1] * y1
                + zdd[b + 2] * y2
                + zdd[b + 3]
                + zd[b] * v0
                + zd[b + 1] * v1
                + zd[b + 2] * v2
                + z[b] * a0
                + z[b + 1] * a1
                + z[b + 2] * a2
            )
        out[i] = total


@njit(cache=True)
def _take_sag(vertex: int, rig: SmallRig, turns: np.ndarray, settings: np.ndarray, pull: np.ndarray) -> None:
    """Take from the pull what the sculpted shape already bears: Σ_b W_b R_b g, or the root's R g."""
    g0, g1, g2 = settings[GRAVITY], settings[GRAVITY + 1], settings[GRAVITY + 2]
    if rig.root >= 0:
        R = turns[rig.root]
        for i in range(3):
            pull[i] -= R[i, 0] * g0 + R[i, 1] * g1 + R[i, 2] * g2
        return
    for at in range(rig.starts[vertex], rig.starts[vertex + 1]):
        R, weight = turns[rig.bones[at]], rig.weights[at]
        for i in range(3):
            pull[i] -= weight * (R[i, 0] * g0 + R[i, 1] * g1 + R[i, 2] * g2)
