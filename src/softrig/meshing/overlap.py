"""Which cubes of a unit grid a triangle touches: the separating-axis test, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

SLACK = 1e-9
"""Relative widening of every cube and axis. It makes contact count on both sides of a grid plane
whatever the rounding, so that a symmetric soup gives a symmetric mesh and no vertex is lost."""


@njit(cache=True)
def edge_separates(edge: np.ndarray, end: np.ndarray, opposite: np.ndarray) -> bool:
    """Whether an axis `edge × x`, `edge × y` or `edge × z` parts a triangle from a cube at the origin.

    `end` is one end of the edge (the other projects alike) and `opposite` the triangle's third corner.
    An edge along a grid axis gives a zero axis, which parts nothing.
    """
    slack = SLACK * (abs(edge[0]) + abs(edge[1]) + abs(edge[2]))
    for x in range(3):
        y, z = (x + 1) % 3, (x + 2) % 3
        reach = 0.5 * (abs(edge[y]) + abs(edge[z])) + slack
        one = end[z] * edge[y] - end[y] * edge[z]
        other = opposite[z] * edge[y] - opposite[y] * edge[z]
        if min(one, other) > reach or max(one, other) < -reach:
            return True
    return False


@njit(cache=True)
def mark_touched_cells(points: np.ndarray, triangles: np.ndarray, touched: np.ndarray) -> None:
    """Set `touched[i, j, k]` where a triangle meets the closed cube [i, i+1] × [j, j+1] × [k, k+1].

    `points` (n, 3) are in cells from the grid's origin. Thirteen candidate axes decide: the three of
    the grid (by the range of the loops), the triangle's normal, and nine edge × axis products
    (Akenine-Möller 2001). A triangle without area has no normal; the other axes then test it exactly
    as the segment or the point that it is.
    """
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    corners, seen, edges = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for t in range(triangles.shape[0]):
        for c in range(3):
            corners[c] = points[triangles[t, c]]
        for d in range(3):
            last = touched.shape[d] - 1
            low[d] = min(max(int(np.floor(corners[:, d].min() - SLACK)), 0), last)
            high[d] = min(max(int(np.floor(corners[:, d].max() + SLACK)), 0), last)
            for c in range(3):
                edges[c, d] = corners[(c + 1) % 3, d] - corners[c, d]
        nx = edges[0, 1] * edges[1, 2] - edges[0, 2] * edges[1, 1]
        ny = edges[0, 2] * edges[1, 0] - edges[0, 0] * edges[1, 2]
        nz = edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0]
        plane_reach = 0.5 * (abs(nx) + abs(ny) + abs(nz))
        plane_reach += SLACK * np.abs(edges[0]).sum() * np.abs(edges[1]).sum()
        for i in range(low[0], high[0] + 1):
            seen[:, 0] = corners[:, 0] - (i + 0.5)
            for j in range(low[1], high[1] + 1):
                seen[:, 1] = corners[:, 1] - (j + 0.5)
                for k in range(low[2], high[2] + 1):
                    if touched[i, j, k]:
                        continue
                    height = corners[0, 2] - (k + 0.5)
                    if abs(nx * seen[0, 0] + ny * seen[0, 1] + nz * height) > plane_reach:
                        continue
                    for c in range(3):
                        seen[c, 2] = corners[c, 2] - (k + 0.5)
                    parted = edge_separates(edges[0], seen[0], seen[2])
                    parted = parted or edge_separates(edges[1], seen[1], seen[0])
                    parted = parted or edge_separates(edges[2], seen[2], seen[1])
                    touched[i, j, k] = not parted
