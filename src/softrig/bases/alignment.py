"""Making bases of different poses comparable column by column (PSSD §5.1): un-rotate, Procrustes, along a tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softrig.errors import FlatElementError, InputError, require_finite, require_vectors
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_matrices

ORTHONORMAL = 1e-4
"""Bases within a region may miss mass-orthonormality by this: shapes are stored in single precision."""


def vertex_rotations(rest_i: np.ndarray, rest_j: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotation of each vertex from pose i to pose j, both (n, 3) metres (PSSD Eq. 13).

    Polar rotations of the tets' deformation gradients, averaged as quaternions with the tets' volumes in
    pose i over the tets around a vertex, signs turned to the side of its largest tet. Vertices without tets: identity.
    """
    rest_i = require_vectors(rest_i, len(rest_i), "vertices of pose i")
    rest_j = require_vectors(rest_j, len(rest_i), "vertices of pose j")
    edges_i, edges_j = (np.swapaxes(x[tets[:, 1:]] - x[tets[:, :1]], 1, 2) for x in (rest_i, rest_j))
    volumes = np.abs(np.linalg.det(edges_i)) / 6.0
    if (flat := ~(volumes > 0.0)).any():
        raise FlatElementError("tets without volume in pose i", np.flatnonzero(flat))
    rotations = _polar_rotations(edges_j @ np.linalg.inv(edges_i))
    quaternions = quaternions_from_matrices(rotations)
    n, corners = len(rest_i), tets.ravel()
    tet_of_corner = np.repeat(np.arange(len(tets)), tets.shape[1])
    largest = np.full(n, -1)
    order = np.argsort(volumes[tet_of_corner], kind="stable")
    largest[corners[order]] = tet_of_corner[order]  # the last to write is the largest
    own = quaternions[tet_of_corner]
    signs = np.where(np.einsum("ck,ck->c", own, quaternions[largest[corners]]) < 0.0, -1.0, 1.0)
    weighted = (signs * volumes[tet_of_corner])[:, None] * own
    sums = np.stack([np.bincount(corners, weighted[:, k], minlength=n) for k in range(4)], axis=1)
    return quaternion_matrices(sums)


def _polar_rotations(gradients: np.ndarray) -> np.ndarray:
    """(e, 3, 3) nearest rotations, det +1; of an inverted one the weakest direction is turned."""
    U, _, Vt = np.linalg.svd(gradients)
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    return U @ Vt


def alignment_tree(features: np.ndarray) -> list[tuple[int, int]]:
    """m − 1 edges (i, j), i aligned before j: grown greedily from pose 0, the neutral one, by distance (PSSD §5.1).

    `features` (m, F): pose features, whose distance says how much two poses differ.
    """
    features = np.atleast_2d(np.asarray(features, dtype=np.float64))
    require_finite(features, "pose features")
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    connected = np.zeros(len(features), np.bool_)
    connected[:1] = True
    edges: list[tuple[int, int]] = []
    while not connected.all():
        open_distances = np.where(connected[:, None] & ~connected[None], distances, np.inf)
        i, j = np.unravel_index(int(np.argmin(open_distances)), distances.shape)
        edges.append((int(i), int(j)))
        connected[j] = True
    return edges


def align(
    shapes: np.ndarray,
    vertex_mass: np.ndarray,
    region_of_mode: np.ndarray,
    tree: Sequence[tuple[int, int]],
    rotations: Sequence[np.ndarray] | np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bases (m, n, 3, r) turned within each region to match along `tree`, and angles (edges, r), radians.

    For each edge (i, j) and each region: U_jᵀ M U_i = YΣZᵀ, U_j ← U_j YZᵀ (PSSD Eqs. 11, 12), with the aligned U_i.
    The spans stay, so that contact and locality do. Angles θ = arccos σ between the two subspaces, rising within each
    region's columns; large ones ask for a pose between the two. Columns of one region never mix with another's.

    `vertex_mass` (n,) kilogram; `region_of_mode` (r,). `rotations` (n, 3, 3) for each edge, from i to j
    (`vertex_rotations`): U_j is rotated back by them to be compared. None: the shapes are in bind space already.
    """
    shapes = np.array(shapes, dtype=np.float64)
    if shapes.ndim != 4 or shapes.shape[2] != 3:
        raise InputError(f"shapes must be (m, n, 3, r), not {shapes.shape}")
    regions = np.asarray(region_of_mode)
    if regions.shape != (shapes.shape[3],) or np.shape(vertex_mass) != (shapes.shape[1],):
        raise InputError(f"{regions.shape} regions and {np.shape(vertex_mass)} masses for shapes {shapes.shape}")
    if rotations is not None and len(rotations) != len(tree):
        raise InputError(f"{len(tree)} edges need as many sets of rotations, not {len(rotations)}")
    _require_tree(tree, len(shapes))
    groups = [np.flatnonzero(regions == region) for region in np.unique(regions)]
    _require_orthonormal(shapes, vertex_mass, groups)
    angles = np.zeros((len(tree), len(regions)))
    for edge, (i, j) in enumerate(tree):
        moved = shapes[j] if rotations is None else np.einsum("nba,nbr->nar", rotations[edge], shapes[j])
        for columns in groups:
            Y, sigma, Zt = np.linalg.svd(_products(moved[:, :, columns], shapes[i][:, :, columns], vertex_mass))
            angles[edge, columns] = np.arccos(np.clip(sigma, 0.0, 1.0))
            shapes[j][:, :, columns] = shapes[j][:, :, columns] @ (Y @ Zt)
    return shapes, angles


def _products(a: np.ndarray, b: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(k, k) aᵀMb of shapes (n, 3, k), by one matrix product."""
    weighted = (vertex_mass[:, None, None] * b).reshape(-1, b.shape[2])
    return np.asarray(a.reshape(-1, a.shape[2]).T @ weighted)


def _require_tree(tree: Sequence[tuple[int, int]], poses: int) -> None:
    """Every edge starts at a pose that is aligned already and ends at one that is not; pose 0 is at first."""
    aligned = {0} if not tree else {int(tree[0][0])}
    for edge, (i, j) in enumerate(tree):
        if i not in aligned or j in aligned or not 0 <= j < poses or not 0 <= i < poses:
            raise InputError("edges that do not grow a tree from one pose", [edge])
        aligned.add(j)


def _require_orthonormal(shapes: np.ndarray, vertex_mass: np.ndarray, groups: list[np.ndarray]) -> None:
    wrong = [
        pose
        for pose, basis in enumerate(shapes)
        for columns in groups
        if not np.allclose(
            _products(basis[:, :, columns], basis[:, :, columns], vertex_mass), np.eye(len(columns)), atol=ORTHONORMAL
        )
    ]
    if wrong:
        raise InputError("poses whose bases are not mass-orthonormal within each region", np.unique(wrong))
