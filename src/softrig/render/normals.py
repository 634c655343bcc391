"""Corner normals with creases: smooth where the surface is smooth, sharp at its edges."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


def corner_normals(vertices: np.ndarray, triangles: np.ndarray, crease_angle: float) -> np.ndarray:
    """(t, 3, 3) unit normals, one a triangle corner.

    A corner averages, weighted by area, the faces around its vertex that turn away from its own face by
    less than `crease_angle` (rad). Vertices at the same place count as one, so texture seams stay smooth.
    """
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    area_vectors = np.cross(b - a, c - a)
    length = np.linalg.norm(area_vectors, axis=1)
    units = area_vectors / np.maximum(length, 1e-300)[:, None]
    if crease_angle <= 0.0:
        return np.repeat(units[:, None, :], 3, axis=1).astype(np.float32)
    welded = _welded(vertices)[triangles]
    order = np.argsort(welded.ravel(), kind="stable")
    starts = np.searchsorted(welded.ravel()[order], np.arange(welded.max() + 2))
    return _averaged(welded, order // 3, starts, area_vectors, units, math.cos(crease_angle))


def _welded(vertices: np.ndarray) -> np.ndarray:
    """(v,) a label a vertex, the same for vertices at the same place."""
    order = np.lexsort(vertices.T)
    ranked = vertices[order]
    labels = np.empty(len(vertices), np.int64)
    labels[order] = np.concatenate([[0], np.cumsum((ranked[1:] != ranked[:-1]).any(axis=1))])
    return labels


@njit(cache=True)
def _averaged(
    welded: np.ndarray,
    faces: np.ndarray,
    starts: np.ndarray,
    area_vectors: np.ndarray,
    units: np.ndarray,
    crease_cosine: float,
) -> np.ndarray:
    normals = np.empty((welded.shape[0], 3, 3), np.float32)
    for t in range(welded.shape[0]):
        for corner in range(3):
            x, y, z = 0.0, 0.0, 0.0
            label = welded[t, corner]
            for k in range(starts[label], starts[label + 1]):
                f = faces[k]
                cosine = units[t, 0] * units[f, 0] + units[t, 1] * units[f, 1] + units[t, 2] * units[f, 2]
                if f == t or cosine >= crease_cosine:
                    x += area_vectors[f, 0]
                    y += area_vectors[f, 1]
                    z += area_vectors[f, 2]
            length = math.sqrt(x * x + y * y + z * z)
            if length > 0.0:
                x, y, z = x / length, y / length, z / length
            normals[t, corner, 0], normals[t, corner, 1], normals[t, corner, 2] = x, y, z
    return normals
