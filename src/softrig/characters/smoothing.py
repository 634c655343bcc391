"""What triangles say about their vertices: neighbours and normals."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


def neighbour_average(triangles: np.ndarray, count: int) -> csr_array:
    """(n, n) the matrix that takes values at vertices to the mean over each one's neighbours."""
    rows = triangles[:, [0, 1, 2, 1, 2, 0]].ravel()
    columns = triangles[:, [1, 2, 0, 0, 1, 2]].ravel()
    links = csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    links.data[:] = 1.0
    return csr_array(links.multiply(1.0 / np.asarray(links.sum(axis=1)).reshape(-1, 1)))


def vertex_normals(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(n, 3) outward unit normals: those of the triangles around, by area."""
    corners = vertices[triangles]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(normals, triangles[:, corner], facing)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
