"""From rig parameters to bone matrices and pose weights: forward kinematics, features and radial basis functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Tree(NamedTuple):
    """The nodes of a skeleton, parents first."""

    start: int
    """Where its parameters begin."""
    parents: np.ndarray
    """(j,) int32."""
    fixed: np.ndarray
    """(j,) int32 place in `matrices` of nodes with a fixed local matrix, −1: none."""
    matrices: np.ndarray
    """(k, 3, 4)."""
    bones: np.ndarray
    """(B,) int32 nodes."""
    binds: np.ndarray
    """(B, 3, 4) what stands behind a node's world matrix."""


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
def world_matrices(tree: Tree, p: np.ndarray, world: np.ndarray) -> None:
    """Write the nodes' world matrices (j, 3, 4) at parameters p: translation · rotation · scale, parent first."""
    for node in range(tree.parents.shape[0]):
        at = tree.start + 10 * node
        x, y, z, w = p[at + 3], p[at + 4], p[at + 5], p[at + 6]
        square = x * x + y * y + z * z + w * w
        s = 2.0 / square if square > 0.0 else 0.0
        sx, sy, sz = p[at + 7], p[at + 8], p[at + 9]
        m00, m01, m02 = (1.0 - s * (y * y + z * z)) * sx, s * (x * y - z * w) * sy, s * (x * z + y * w) * sz
        m10, m11, m12 = s * (x * y + z * w) * sx, (1.0 - s * (x * x + z * z)) * sy, s * (y * z - x * w) * sz
        m20, m21, m22 = s * (x * z - y * w) * sx, s * (y * z + x * w) * sy, (1.0 - s * (x * x + y * y)) * sz
        m03, m13, m23 = p[at], p[at + 1], p[at + 2]
        if tree.fixed[node] >= 0:
            F = tree.matrices[tree.fixed[node]]
            m00, m01, m02, m03 = F[0, 0], F[0, 1], F[0, 2], F[0, 3]
            m10, m11, m12, m13 = F[1, 0], F[1, 1], F[1, 2], F[1, 3]
            m20, m21, m22, m23 = F[2, 0], F[2, 1], F[2, 2], F[2, 3]
        out = world[node]
        if tree.parents[node] < 0:
            out[0, 0], out[0, 1], out[0, 2], out[0, 3] = m00, m01, m02, m03
            out[1, 0], out[1, 1], out[1, 2], out[1, 3] = m10, m11, m12, m13
            out[2, 0], out[2, 1], out[2, 2], out[2, 3] = m20, m21, m22, m23
        else:
            above = world[tree.parents[node]]
            for i in range(3):
                a, b, c = above[i, 0], above[i, 1], above[i, 2]
                out[i, 0] = a * m00 + b * m10 + c * m20
                out[i, 1] = a * m01 + b * m11 + c * m21
                out[i, 2] = a * m02 + b * m12 + c * m22
                out[i, 3] = a * m03 + b * m13 + c * m23 + above[i, 3]


@njit(cache=True)
def bone_matrices(tree: Tree, world: np.ndarray, out: np.ndarray) -> None:
    """Write M_b (B, 3, 4), flat or not, of any precision: world matrix of the bone's node · its bind matrix."""
    for b in range(tree.bones.shape[0]):
        above, bind, target = world[tree.bones[b]], tree.binds[b], out[b]
        for i in range(3):
            u, v, w = above[i, 0], above[i, 1], above[i, 2]
            for j in range(4):
                target[i, j] = u * bind[0, j] + v * bind[1, j] + w * bind[2, j]
            target[i, 3] += above[i, 3]


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
