"""A tree of boxes over a triangle soup: nearest points and winding numbers, compiled.

The tree is built once and asked many times, with a bound on the distance that matters: most of a
mesher's questions are about points next to the surface.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

LEAF = 6
"""Triangles below which a box is not split."""

OPENING = 2.0
"""A box is seen as one dipole from further than this times its radius (Barill et al. 2018, first order)."""

DEEPEST = 96
"""Stack of a traversal: twice the depth of a median-split tree of more triangles than memory holds."""


class SoupTree(NamedTuple):
    """Boxes over triangles; box 0 is the root, leaves have `left` = −1."""

    corners: np.ndarray
    """(m, 3, 3) corners of each triangle, leaf by leaf."""
    triangle: np.ndarray
    """(m,) which triangle of the soup each of `corners` is."""
    low: np.ndarray
    """(k, 3) lowest corner of each box."""
    high: np.ndarray
    """(k, 3) highest corner of each box."""
    left: np.ndarray
    """(k,) left child, −1 at leaves; the right child is the next one."""
    span: np.ndarray
    """(k, 2) first triangle and one past the last."""
    dipole: np.ndarray
    """(k, 3) sum of area vectors."""
    centre: np.ndarray
    """(k, 3) mean of the triangles' middles, weighted by area."""
    radius: np.ndarray
    """(k,) from `centre` to the furthest corner of a triangle."""


def build_tree(points: np.ndarray, faces: np.ndarray) -> SoupTree:
    """The tree over triangles `faces` (m, 3) of `points` (n, 3)."""
    corners = np.ascontiguousarray(points[faces], dtype=np.float64)
    order, *boxes = _build(corners)
    return SoupTree(corners[order], order, *(table.copy() for table in boxes))


@njit(cache=True)
def _build(corners: np.ndarray) -> tuple[np.ndarray, ...]:
    """All of the tree but the corners; loops, because whole arrays would cost the compiler twice as much."""
    count = corners.shape[0]
    order = np.arange(count)
    middles = np.empty((count, 3))
    for t in range(count):
        for d in range(3):
            middles[t, d] = (corners[t, 0, d] + corners[t, 1, d] + corners[t, 2, d]) / 3.0
    most = max(2 * count, 1) + 1
    low, high = np.empty((most, 3)), np.empty((most, 3))
    dipole, centre, radius = np.zeros((most, 3)), np.zeros((most, 3)), np.zeros(most)
    left, span = np.full(most, -1), np.empty((most, 2), np.int64)
    span[0, 0], span[0, 1] = 0, count
    boxes, box = 1, 0
    while box < boxes:
        first, last = span[box, 0], span[box, 1]
        _summarise(corners, middles, order[first:last], low[box], high[box], dipole[box], centre[box])
        for t in order[first:last]:
            for c in range(3):
                square = 0.0
                for d in range(3):
                    square += (corners[t, c, d] - centre[box, d]) ** 2
                radius[box] = max(radius[box], np.sqrt(square))
        if last - first > LEAF:
            part = order[first:last].copy()
            widest, axis = -1.0, 0
            for d in range(3):
                least, greatest = np.inf, -np.inf
                for t in part:
                    least, greatest = min(least, middles[t, d]), max(greatest, middles[t, d])
                if greatest - least > widest:
                    widest, axis = greatest - least, d
            along = np.empty(last - first)
            for k in range(last - first):
                along[k] = middles[part[k], axis]
            places = np.argsort(along, kind="mergesort")
            for k in range(last - first):
                order[first + k] = part[places[k]]
            half = (first + last) // 2
            left[box] = boxes
            span[boxes, 0], span[boxes, 1] = first, half
            span[boxes + 1, 0], span[boxes + 1, 1] = half, last
            boxes += 2
        box += 1
    return (
        order,
        low[:boxes],
        high[:boxes],
        left[:boxes],
        span[:boxes],
        dipole[:boxes],
        centre[:boxes],
        radius[:boxes],
    )


@njit(cache=True)
def _summarise(
    corners: np.ndarray,
    middles: np.ndarray,
    members: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    dipole: np.ndarray,
    centre: np.ndarray,
) -> None:
    low[:], high[:] = np.inf, -np.inf
    total = 0.0
    area = np.empty(3)
    for t in members:
        for c in range(3):
            for d in range(3):
                low[d] = min(low[d], corners[t, c, d])
                high[d] = max(high[d], corners[t, c, d])
        for d in range(3):
            e, f = (d + 1) % 3, (d + 2) % 3
            one = (corners[t, 1, e] - corners[t, 0, e]) * (corners[t, 2, f] - corners[t, 0, f])
            other = (corners[t, 1, f] - corners[t, 0, f]) * (corners[t, 2, e] - corners[t, 0, e])
            area[d] = 0.5 * (one - other)
        size = np.sqrt(area[0] ** 2 + area[1] ** 2 + area[2] ** 2)
        total += size
        for d in range(3):
            dipole[d] += area[d]
            centre[d] += size * middles[t, d]
    for d in range(3):
        centre[d] = centre[d] / total if total > 0.0 else 0.5 * (low[d] + high[d])


@njit(cache=True)
def winding_numbers(tree: SoupTree, queries: np.ndarray) -> np.ndarray:
    """(q,) how often the soup winds around each query: 1 inside a closed outward surface, 0 outside."""
    result = np.empty(queries.shape[0])
    stack = np.empty(DEEPEST, np.int64)
    for q in range(queries.shape[0]):
        x, y, z = queries[q, 0], queries[q, 1], queries[q, 2]
        total = 0.0
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            box = stack[depth]
            dx, dy, dz = tree.centre[box, 0] - x, tree.centre[box, 1] - y, tree.centre[box, 2] - z
            squared = dx * dx + dy * dy + dz * dz
            if squared > (OPENING * tree.radius[box]) ** 2:
                flux = tree.dipole[box, 0] * dx + tree.dipole[box, 1] * dy + tree.dipole[box, 2] * dz
                total += flux / (squared * np.sqrt(squared))
            elif tree.left[box] >= 0:
                stack[depth], stack[depth + 1] = tree.left[box], tree.left[box] + 1
                depth += 2
            else:
                for t in range(tree.span[box, 0], tree.span[box, 1]):
                    total += _solid_angle(tree.corners[t], x, y, z)
        result[q] = total / (4.0 * np.pi)
    return result


@njit(cache=True)
def _solid_angle(corners: np.ndarray, x: float, y: float, z: float) -> float:
    """Signed solid angle of a triangle (van Oosterom and Strackee 1983)."""
    ax, ay, az = corners[0, 0] - x, corners[0, 1] - y, corners[0, 2] - z
    bx, by, bz = corners[1, 0] - x, corners[1, 1] - y, corners[1, 2] - z
    cx, cy, cz = corners[2, 0] - x, corners[2, 1] - y, corners[2, 2] - z
    a = np.sqrt(ax * ax + ay * ay + az * az)
    b = np.sqrt(bx * bx + by * by + bz * bz)
    c = np.sqrt(cx * cx + cy * cy + cz * cz)
    triple = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    ab = ax * bx + ay * by + az * bz
    bc = bx * cx + by * cy + bz * cz
    ca = cx * ax + cy * ay + cz * az
    return 2.0 * np.arctan2(triple, a * b * c + ab * c + bc * a + ca * b)


@njit(cache=True)
def nearest_points(tree: SoupTree, queries: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance (q,), triangle (q,) and nearest point (q, 3) of the soup for each query.

    Beyond `bound` nothing is searched: the distance is then `bound` and the triangle −1.
    """
    count = queries.shape[0]
    distances, triangles = np.full(count, bound), np.full(count, -1)
    places = queries.copy()
    stack, apart = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    near = np.empty(3)
    for q in range(count):
        point = queries[q]
        best = bound * bound
        stack[0], apart[0], depth = 0, _box_distance(tree, 0, point), 1
        while depth > 0:
            depth -= 1
            box = stack[depth]
            if apart[depth] >= best:
                continue
            child = tree.left[box]
            if child >= 0:
                one, other = _box_distance(tree, child, point), _box_distance(tree, child + 1, point)
                swap = 1 if one < other else 0  # the nearer child is put on top: it tightens the bound
                stack[depth], apart[depth] = child + swap, max(one, other)
                stack[depth + 1], apart[depth + 1] = child + 1 - swap, min(one, other)
                depth += 2
                continue
            for t in range(tree.span[box, 0], tree.span[box, 1]):
                squared = nearest_on_triangle(tree.corners[t], point, near)
                if squared < best:
                    best = squared
                    triangles[q] = tree.triangle[t]
                    distances[q] = np.sqrt(squared)
                    for d in range(3):
                        places[q, d] = near[d]
    return distances, triangles, places


@njit(cache=True)
def _box_distance(tree: SoupTree, box: int, point: np.ndarray) -> float:
    total = 0.0
    for d in range(3):
        beyond = max(tree.low[box, d] - point[d], point[d] - tree.high[box, d])
        if beyond > 0.0:
            total += beyond * beyond
    return total


@njit(cache=True)
def nearest_on_triangle(corners: np.ndarray, point: np.ndarray, near: np.ndarray) -> float:
    """Squared distance from `point` to a triangle (3, 3); `near` becomes the nearest point.

    Inside the plane's prism the foot of the perpendicular is nearest, otherwise the nearest edge
    is; a triangle without area is its edges.
    """
    a, b, c = corners[0], corners[1], corners[2]
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    wx, wy, wz = point[0] - a[0], point[1] - a[1], point[2] - a[2]
    uu, uv, vv = ux * ux + uy * uy + uz * uz, ux * vx + uy * vy + uz * vz, vx * vx + vy * vy + vz * vz
    wu, wv = wx * ux + wy * uy + wz * uz, wx * vx + wy * vy + wz * vz
    area = uu * vv - uv * uv
    s, t = vv * wu - uv * wv, uu * wv - uv * wu
    if area > 0.0 and s >= 0.0 and t >= 0.0 and s + t <= area:
        s, t = s / area, t / area
        near[0], near[1], near[2] = a[0] + s * ux + t * vx, a[1] + s * uy + t * vy, a[2] + s * uz + t * vz
        return (point[0] - near[0]) ** 2 + (point[1] - near[1]) ** 2 + (point[2] - near[2]) ** 2
    best = np.inf
    for e in range(3):
        p, q = corners[e], corners[(e + 1) % 3]
        squared, along = segment_distance(p, q, point)
        if squared < best:
            best = squared
            for d in range(3):
                near[d] = p[d] + along * (q[d] - p[d])
    return best


@njit(cache=True)
def segment_distance(head: np.ndarray, tail: np.ndarray, point: np.ndarray) -> tuple[float, float]:
    """Squared distance from `point` to a segment, and where along it (0 at the head, 1 at the tail)."""
    length, along = 0.0, 0.0
    for d in range(3):
        length += (tail[d] - head[d]) ** 2
        along += (tail[d] - head[d]) * (point[d] - head[d])
    along = min(max(along / length, 0.0), 1.0) if length > 0.0 else 0.0
    squared = 0.0
    for d in range(3):
        squared += (head[d] + along * (tail[d] - head[d]) - point[d]) ** 2
    return squared, along
