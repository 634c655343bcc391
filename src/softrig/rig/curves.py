"""Smooth curves through space and frames that are carried along them without twist."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial import cKDTree

from softrig.numerics.rotations import quaternion_product, quaternions_between


def spline_basis(count: int, where: np.ndarray, derivative: int = 0) -> np.ndarray:
    """(m, count) weights of `count` control points at parameters `where` (m,) in 0 … 1, or derivatives of them.

    A uniform B-spline of degree three (less for fewer than four points) that starts and ends in its end points.
    """
    degree = min(3, count - 1)
    inner = np.linspace(0.0, 1.0, count - degree + 1)
    knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
    if derivative > degree:
        return np.zeros((len(where), count))
    return BSpline(knots, np.eye(count), degree)(where, nu=derivative)


def nearest_parameters(controls: np.ndarray, points: np.ndarray, samples: int) -> np.ndarray:
    """(m,) parameters of the curve's points nearest to `points` (m, 3): the nearest sample, refined by Newton."""
    grid = np.linspace(0.0, 1.0, samples)
    _, nearest = cKDTree(spline_basis(len(controls), grid) @ controls).query(points)
    low, high = grid[np.maximum(nearest - 1, 0)], grid[np.minimum(nearest + 1, samples - 1)]
    where = grid[nearest]
    for _ in range(8):
        gap, slope, bend = (spline_basis(len(controls), where, order) @ controls for order in range(3))
        gap = gap - points
        curvature = np.sum(slope * slope, axis=1) + np.sum(gap * bend, axis=1)
        step = np.where(curvature > 0.0, np.sum(gap * slope, axis=1) / np.where(curvature > 0.0, curvature, 1.0), 0.0)
        where = np.clip(where - step, low, high)
    return where


def filled_tangents(tangents: np.ndarray) -> np.ndarray:
    """(m, 3) unit tangents; where one has no length (control points coincide), that of the nearest before it."""
    lengths = np.linalg.norm(tangents, axis=1)
    good = lengths > 1e-12 * max(float(lengths.max(initial=0.0)), 1e-300)
    if not good.any():
        return np.broadcast_to([1.0, 0.0, 0.0], tangents.shape)
    source = np.maximum.accumulate(np.where(good, np.arange(len(good)), -1))
    source = np.where(source < 0, np.argmax(good), source)
    return tangents[source] / lengths[source][:, None]


def transported(tangents: np.ndarray) -> np.ndarray:
    """(m, 4) quaternions that carry a frame from the first of unit `tangents` (m, 3) to each, without twist.

    Discrete parallel transport: the product of the smallest rotations between neighbours (Bergou et al. 2008).
    """
    turns = np.concatenate([[[0.0, 0.0, 0.0, 1.0]], quaternions_between(tangents[:-1], tangents[1:])])
    # Running products by doubling: log₂ m vectorised passes instead of m small ones.
    reach = 1
    while reach < len(turns):
        turns = np.concatenate([turns[:reach], quaternion_product(turns[reach:], turns[:-reach])])
        reach *= 2
    return turns
