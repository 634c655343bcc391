"""Forward kinematics, compiled: from a skeleton's parameters to matrices of its nodes and of the bones on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from softrig.rig.skeleton import Skeleton


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


def skeleton_tree(skeleton: Skeleton, start: int, bones: np.ndarray, binds: np.ndarray) -> Tree:
    """The compiled form of a skeleton whose bones carry `binds` (B, 4, 4)."""
    fixed = np.full(len(skeleton), -1, np.int32)
    fixed[list(skeleton.fixed_matrices)] = np.arange(len(skeleton.fixed_matrices))
    matrices = np.array([np.asarray(matrix)[:3] for matrix in skeleton.fixed_matrices.values()])
    return Tree(
        start,
        np.ascontiguousarray(skeleton.parents, dtype=np.int32),
        fixed,
        np.ascontiguousarray(matrices.reshape(-1, 3, 4), dtype=np.float64),
        np.ascontiguousarray(bones, dtype=np.int32),
        np.ascontiguousarray(binds[:, :3], dtype=np.float64),
    )


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
