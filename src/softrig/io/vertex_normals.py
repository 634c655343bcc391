"""Smooth vertex normals on welded topology, and the turn between two of them."""

from __future__ import annotations

import numpy as np


def vertex_normals(positions: np.ndarray, triangles: np.ndarray, unique: np.ndarray | None = None) -> np.ndarray:
    """(n, 3) unit normals, averaged over the triangles around a vertex by area.

    unique: (n,) vertices with the same number count as one, so that texture seams stay smooth. A vertex
    without area gets (0, 1, 0).
    """
    a, b, c = (positions[triangles[:, k]] for k in range(3))
    areas = np.cross(b - a, c - a)
    owner = np.arange(len(positions)) if unique is None else unique
    corners = owner[triangles].ravel()
    count = int(owner.max()) + 1
    sums = np.stack([np.bincount(corners, np.repeat(areas[:, k], 3), count) for k in range(3)], axis=1)
    lengths = np.linalg.norm(sums, axis=1)
    flat = lengths <= 1e-12 * max(float(lengths.max(initial=0.0)), 1e-300)
    units = np.where(flat[:, None], [0.0, 1.0, 0.0], sums / np.where(flat, 1.0, lengths)[:, None])
    return units[owner]


def turned(vectors: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(n, 3) `vectors` turned by the smallest rotation that takes unit vectors `before` (n, 3) to `after` (n, 3)."""
    axis = np.cross(before, after)
    cosine = np.einsum("ni,ni->n", before, after)
    once = np.cross(axis, vectors)
    # Opposite directions have no smallest rotation; any will do, and the limit keeps it finite.
    return vectors + once + np.cross(axis, once) / np.maximum(1.0 + cosine, 1e-9)[:, None]
