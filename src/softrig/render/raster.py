"""The rasteriser: which triangle covers which sample, for the eye and for the light alike.

Homogeneous rasterisation (Olano and Greer 1997). A vertex is (x·w, y·w, w) with x, y in samples. The
edge functions of a triangle are eᵢ(x, y) = (x, y, 1) · (pⱼ × pₖ); their shares of the determinant
interpolate anything linear on the screen. Triangles that cross the eye plane need no clipping.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

# Without the lock, so that pictures can be made side by side.
kernel = njit(cache=True, fastmath=True, error_model="numpy", nogil=True)
# A call that hands over the scene's arrays takes longer than the body of these.
inlined_kernel = njit(cache=True, fastmath=True, error_model="numpy", inline="always")

NOTHING = -1
GROUND = -2


class Lens(NamedTuple):
    """Samples from rays: the ray of sample (x, y) is ((x - centre_x)/focal, (centre_y - y)/focal, 1)."""

    focal: float
    centre_x: float
    centre_y: float


class Plane(NamedTuple):
    """The ground, all p with normal · p = offset, in camera axes, m.

    `middle` is the point of it under the camera's target, `fade` how far around there it is seen.
    """

    normal: tuple[float, float, float]
    offset: float
    middle: tuple[float, float, float]
    fade: float


@kernel
def rasterise(
    points: np.ndarray,
    keys: np.ndarray,
    highest: float,
    triangles: np.ndarray,
    nearness: np.ndarray,
    visible: np.ndarray,
) -> None:
    """Keep, for each sample, the greatest interpolated key and its triangle.

    points    (v, 3) homogeneous positions in samples
    keys      (v,) nearness times w: 1 for the eye (gives 1/depth), minus the depth for parallel light
    highest   keys above it are in front of the near plane and are not drawn
    nearness  (height, width) greatest key so far, in and out
    visible   (height, width) its triangle, in and out
    """
    height, width = nearness.shape
    for t in range(triangles.shape[0]):
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        x0, y0, w0 = points[i, 0], points[i, 1], points[i, 2]
        x1, y1, w1 = points[j, 0], points[j, 1], points[j, 2]
        x2, y2, w2 = points[k, 0], points[k, 1], points[k, 2]
        top, bottom = 0, height - 1
        left, right = 0.0, width - 1.0
        if w0 > 0.0 and w1 > 0.0 and w2 > 0.0:
            r0, r1, r2 = y0 / w0, y1 / w1, y2 / w2
            top = max(0, math.ceil(max(min(r0, r1, r2), 0.0) - 0.5))
            bottom = math.floor(min(max(r0, r1, r2), height + 0.0) - 0.5)
            bottom = min(bottom, height - 1)
            r0, r1, r2 = x0 / w0, x1 / w1, x2 / w2
            left = max(left, min(r0, r1, r2) - 0.5)
            right = min(right, max(r0, r1, r2) - 0.5)
            if top > bottom or math.ceil(left) > right:
                continue
        elif w0 <= 0.0 and w1 <= 0.0 and w2 <= 0.0:
            continue
        a0, b0, c0 = y1 * w2 - w1 * y2, w1 * x2 - x1 * w2, x1 * y2 - y1 * x2
        a1, b1, c1 = y2 * w0 - w2 * y0, w2 * x0 - x2 * w0, x2 * y0 - y2 * x0
        a2, b2, c2 = y0 * w1 - w0 * y1, w0 * x1 - x0 * w1, x0 * y1 - y0 * x1
        determinant = a0 * x0 + b0 * y0 + c0 * w0
        if determinant == 0.0:
            continue
        s = 1.0 / determinant
        a0, b0, c0, a1, b1, c1, a2, b2, c2 = (
            a0 * s, b0 * s, c0 * s, a1 * s, b1 * s, c1 * s, a2 * s, b2 * s, c2 * s
        )  # fmt: skip
        q0, q1, q2 = keys[i], keys[j], keys[k]
        key_a = a0 * q0 + a1 * q1 + a2 * q2
        key_b = b0 * q0 + b1 * q1 + b2 * q2
        key_c = c0 * q0 + c1 * q1 + c2 * q2
        for row in range(top, bottom + 1):
            y = row + 0.5
            low, high = left, right
            low, high = _trim(a0, b0 * y + c0, low, high)
            low, high = _trim(a1, b1 * y + c1, low, high)
            low, high = _trim(a2, b2 * y + c2, low, high)
            if low > high:
                continue
            key_row = key_b * y + key_c
            for column in range(math.ceil(low), math.floor(high) + 1):
                key = key_a * (column + 0.5) + key_row
                if key > nearness[row, column] and key < highest:
                    nearness[row, column] = key
                    visible[row, column] = t


@kernel
def _trim(slope: float, constant: float, low: float, high: float) -> tuple[float, float]:
    """The part of [low, high] (columns) where slope·(column + ½) + constant is not negative."""
    # The slack keeps a sample that lies exactly on a shared edge from falling between both triangles.
    if slope > 0.0:
        return max(low, -constant / slope - 0.5 - 1e-7), high
    if slope < 0.0:
        return low, min(high, -constant / slope - 0.5 + 1e-7)
    if constant < 0.0:
        return 1.0, 0.0
    return low, high


@kernel
def lay_ground(lens: Lens, plane: Plane, nearness: np.ndarray, visible: np.ndarray) -> None:
    """Put the plane behind the triangles: marks samples `GROUND` where it is nearest and not faded."""
    nx, ny, nz = plane.normal
    mx, my, mz = plane.middle
    if plane.offset >= 0.0:  # seen from below it would hide everything
        return
    for row in range(nearness.shape[0]):
        ray_y = (lens.centre_y - row - 0.5) / lens.focal
        for column in range(nearness.shape[1]):
            ray_x = (column + 0.5 - lens.centre_x) / lens.focal
            key = (nx * ray_x + ny * ray_y + nz) / plane.offset
            if key > nearness[row, column] and key > 0.0:
                depth = 1.0 / key
                dx, dy, dz = ray_x * depth - mx, ray_y * depth - my, depth - mz
                if dx * dx + dy * dy + dz * dz < plane.fade * plane.fade:
                    nearness[row, column] = key
                    visible[row, column] = GROUND
