"""Structured boxes of bricks or tetrahedra, for tests and examples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from softrig.errors import InputError
from softrig.fem.meshes import VolumeMesh

BRICK_CORNERS = np.array(
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=np.int64
)
"""(8, 3) lattice offsets of a brick's nodes in VTK's order."""


def box_bricks(lengths: Sequence[float], counts: Sequence[int]) -> VolumeMesh:
    """A box of 8-node bricks with one corner at the origin.

    `lengths` (3,): edges of the box in metres; `counts` (3,): bricks along each.
    """
    vertices, bricks = _lattice(lengths, counts)
    return VolumeMesh.build(vertices, bricks)


def box_tets(lengths: Sequence[float], counts: Sequence[int]) -> VolumeMesh:
    """A box of 4-node tetrahedra with one corner at the origin: every brick split into Kuhn's six.

    All six share the brick's main diagonal, and every brick is cut the same way, so faces match.
    `lengths` (3,): edges of the box in metres; `counts` (3,): bricks along each.
    """
    vertices, bricks = _lattice(lengths, counts)
    return VolumeMesh.build(vertices, bricks[:, _kuhn_corners()].reshape(-1, 4))


def _kuhn_corners() -> np.ndarray:
    """(6, 4) brick corners of Kuhn's tets: from (0,0,0) to (1,1,1), one axis at a time, in each order."""
    number = {tuple(corner): n for n, corner in enumerate(BRICK_CORNERS.tolist())}
    tets = []
    for axes in permutations(range(3)):
        steps = np.eye(3, dtype=np.int64)[list(axes)]
        path = np.vstack([np.zeros((1, 3), np.int64), np.cumsum(steps, axis=0)])
        tet = [number[tuple(corner)] for corner in path.tolist()]
        # An odd permutation walks a left-handed tet; swapping two corners rights it.
        tets.append(tet if np.linalg.det(steps) > 0 else [tet[0], tet[2], tet[1], tet[3]])
    return np.array(tets)


def _lattice(lengths: Sequence[float], counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) in metres and bricks (e, 8) of a box, x running fastest."""
    size = np.asarray(lengths, dtype=np.float64)
    number = np.asarray(counts)
    if size.shape != (3,) or not np.isfinite(size).all() or (size <= 0).any():
        raise InputError(f"a box needs three positive lengths in metres, not {lengths}")
    if number.shape != (3,) or not np.issubdtype(number.dtype, np.integer) or (number < 1).any():
        raise InputError(f"a box needs three whole counts of at least one, not {counts}")
    nx, ny, nz = (int(n) for n in number)
    z, y, x = np.meshgrid(np.arange(nz + 1), np.arange(ny + 1), np.arange(nx + 1), indexing="ij")
    vertices = np.stack([x, y, z], axis=-1).reshape(-1, 3) * (size / number)
    strides = np.array([1, nx + 1, (nx + 1) * (ny + 1)])
    z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
    cells = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    return vertices, (cells[:, None, :] + BRICK_CORNERS) @ strides
