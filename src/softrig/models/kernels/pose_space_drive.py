"""From rig parameters to carrier values and pose weights: features and radial basis functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.rig.skeleton_kernel import Tree, bone_matrices, world_matrices


class Features(NamedTuple):
    """Features of weight other than zero, and the poses in their space."""

    scalars: np.ndarray
    """(s,) int32 parameters."""
    rests: np.ndarray
    factors: np.ndarray
    """(s,) weight over unit length."""
    turns: np.ndarray
    """(t,) int32 first parameters of quaternions."""
    backs: np.ndarray
    """(t, 4) inverse rest rotations."""
    turn_weights: np.ndarray
    """(t, 3)."""
    poses: np.ndarray
    """(m, s + 3t) the poses' features in this order."""
    matrix: np.ndarray
    """(m, m) of the radial basis functions."""


@njit(cache=True)
def pose_weights(features: Features, p: np.ndarray, room: np.ndarray, w: np.ndarray) -> None:
    """Write the pose weights (m,) at parameters p (Eq. 2), and the features there into `room`."""
    m = w.shape[0]
    count = features.scalars.shape[0]
    for k in range(count):
        room[k] = (p[features.scalars[k]] - features.rests[k]) * features.factors[k]
    for k in range(features.turns.shape[0]):
        _rotation_vector(features.backs[k], p, features.turns[k], room[count + 3 * k : count + 3 * k + 3])
        for i in range(3):
            room[count + 3 * k + i] *= features.turn_weights[k, i]
    if m == 1:
        w[0] = 1.0
        return
    for i in range(m):
        w[i] = 0.0
    total = 0.0
    for j in range(m):
        pose = features.poses[j]
        square = 0.0
        for k in range(pose.shape[0]):
            square += (room[k] - pose[k]) ** 2
        distance = np.sqrt(square)
        for i in range(m):
            w[i] += distance * features.matrix[j, i]
    for i in range(m):
        total += w[i]
    for i in range(m):
        w[i] /= total


@njit(cache=True)
def _rotation_vector(a: np.ndarray, p: np.ndarray, at: int, out: np.ndarray) -> None:
    """The rotation vector, radians, of quaternion a · p[at : at + 4], never longer than π."""
    bx, by, bz, bw = p[at], p[at + 1], p[at + 2], p[at + 3]
    length = np.sqrt(bx * bx + by * by + bz * bz + bw * bw)
    if length > 0.0:
        bx, by, bz, bw = bx / length, by / length, bz / length, bw / length
    else:
        bw = 1.0
    x = a[3] * bx + a[0] * bw + a[1] * bz - a[2] * by
    y = a[3] * by - a[0] * bz + a[1] * bw + a[2] * bx
    z = a[3] * bz + a[0] * by - a[1] * bx + a[2] * bw
    w = a[3] * bw - a[0] * bx - a[1] * by - a[2] * bz
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    sine = np.sqrt(x * x + y * y + z * z)
    factor = 2.0 * np.arctan2(sine, w) / sine if sine > 1e-12 else 2.0
    out[0], out[1], out[2] = factor * x, factor * y, factor * z


@njit(cache=True)
def skin_carriers(
    tree: Tree, features: Features, p: np.ndarray, world: np.ndarray, room: np.ndarray, z: np.ndarray
) -> None:
    """Write the carrier values z: bone matrices, then pose weights."""
    world_matrices(tree, p, world)
    count = tree.bones.shape[0]
    bone_matrices(tree, world, z[: 12 * count].reshape((count, 3, 4)))
    pose_weights(features, p, room, z[12 * count :])


@njit(cache=True)
def carried_by_nodes(
    rest: np.ndarray, nodes: np.ndarray, weights: np.ndarray, surface: np.ndarray, z: np.ndarray
) -> None:
    """Write `rest` (k, 3) + Σ_a weights[v, a] surface[nodes[v, a]] as the first 3k of z; both tables (k, a)."""
    for v in range(rest.shape[0]):
        for i in range(3):
            place = 0.0
            for a in range(nodes.shape[1]):
                place += weights[v, a] * surface[nodes[v, a], i]
            z[3 * v + i] = rest[v, i] + place
