"""Smooth surfaces as the zero set of a distance-like field, negative inside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

Field = Callable[[np.ndarray], np.ndarray]
"""From points (n, 3) to distances (n,), negative inside."""


def limb(points: np.ndarray, axis: np.ndarray, radii: np.ndarray, far: float) -> np.ndarray:
    """(n,) distance of `points` (n, 3) from a round limb about the polyline `axis` (k, 3).

    Each stretch is the hull of the spheres at its ends, of `radii` (k,): a round cone. The foot of a
    point is moved along the axis by the cone's taper; a square foot would leave a step at every knot.
    Points outside the limb's box by more than `far` get that gap, a lower bound: most points of a
    large body, spared the loop over the stretches.
    """
    alongs = axis[1:] - axis[:-1]
    squared = (alongs * alongs).sum(axis=1)
    widening = radii[1:] - radii[:-1]
    tapers = widening / np.sqrt(squared)
    leans = tapers / np.sqrt(np.maximum(1.0 - tapers * tapers, 1e-6) * squared)
    low, high = (axis - radii[:, None]).min(axis=0), (axis + radii[:, None]).max(axis=0)
    start = np.ascontiguousarray(axis[:-1]), np.ascontiguousarray(radii[:-1])
    return _distances(np.asarray(points), *start, alongs, squared, widening, leans, low, high, far)


@njit(cache=True)
def _distances(
    points: np.ndarray,
    axis: np.ndarray,
    radii: np.ndarray,
    alongs: np.ndarray,
    squared: np.ndarray,
    widening: np.ndarray,
    leans: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    far: float,
) -> np.ndarray:
    """`limb` from what is known of its stretches, of which `axis` and `radii` are the beginnings."""
    distances = np.empty(points.shape[0])
    for n in range(points.shape[0]):
        gap = 0.0
        for d in range(3):
            gap = max(gap, low[d] - points[n, d], points[n, d] - high[d])
        nearest = gap if gap > far else np.inf
        for s in range(axis.shape[0] if gap <= far else 0):
            x, y, z = points[n, 0] - axis[s, 0], points[n, 1] - axis[s, 1], points[n, 2] - axis[s, 2]
            t = (x * alongs[s, 0] + y * alongs[s, 1] + z * alongs[s, 2]) / squared[s]
            aside = np.sqrt(max(x * x + y * y + z * z - t * t * squared[s], 0.0))
            t = min(max(t + leans[s] * aside, 0.0), 1.0)
            x, y, z = x - t * alongs[s, 0], y - t * alongs[s, 1], z - t * alongs[s, 2]
            nearest = min(nearest, np.sqrt(x * x + y * y + z * z) - radii[s] - t * widening[s])
        distances[n] = nearest
    return distances


def smooth_union(one: np.ndarray, other: np.ndarray, blend: float) -> np.ndarray:
    """The lesser of two distances, rounded over a width `blend` where they are alike."""
    overlap = np.maximum(blend - np.abs(one - other), 0.0) / blend
    return np.minimum(one, other) - 0.25 * blend * overlap**2


def smooth_cut(one: np.ndarray, away: np.ndarray, blend: float) -> np.ndarray:
    """What is inside `one` and outside `away`, the edge rounded over a width `blend`."""
    return -smooth_union(-one, away, blend)


def gradient(field: Field, points: np.ndarray, step: float) -> np.ndarray:
    """(n, 3) central differences of `field`."""
    columns = []
    for axis in range(3):
        shift = np.zeros(3)
        shift[axis] = step
        columns.append((field(points + shift) - field(points - shift)) / (2.0 * step))
    return np.stack(columns, axis=1)


def onto_surface(field: Field, points: np.ndarray, step: float, rounds: int = 2) -> np.ndarray:
    """`points` moved to the zero set along the gradient, by at most `step` a round."""
    for _ in range(rounds):
        slope = gradient(field, points, 0.1 * step)
        length = np.maximum((slope**2).sum(axis=1, keepdims=True), 1e-12)
        move = field(points)[:, None] * slope / length
        size = np.linalg.norm(move, axis=1, keepdims=True)
        points = points - move * np.minimum(1.0, step / np.maximum(size, 1e-300))
    return points


def skin(
    field: Field, low: np.ndarray, high: np.ndarray, spacing: float, relaxations: int = 6
) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of the zero set inside a box: marching cubes, then evened out along the surface.

    Marching cubes leaves slivers, which show in smooth shading; each relaxation moves a vertex
    half way to the middle of its neighbours and back onto the surface.
    """
    import igl

    counts = np.ceil((high - low) / spacing).astype(np.int64) + 1
    z, y, x = np.meshgrid(*(np.arange(n) for n in counts[::-1]), indexing="ij")
    grid = low + spacing * np.stack([x, y, z], axis=-1).reshape(-1, 3)
    nx, ny, nz = (int(n) for n in counts)
    vertices, triangles, _ = igl.marching_cubes(field(grid), grid, nx, ny, nz, 0.0)
    links = igl.adjacency_matrix(triangles)
    degrees = np.asarray(links.sum(axis=1)).reshape(-1, 1)
    for _ in range(relaxations):
        vertices = 0.5 * (vertices + (links @ vertices) / degrees)
        vertices = onto_surface(field, vertices, spacing, rounds=1)
    vertices = onto_surface(field, vertices, spacing)
    corners = vertices[triangles]
    volume = np.einsum("ni,ni->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return vertices, triangles if volume > 0.0 else triangles[:, ::-1]
