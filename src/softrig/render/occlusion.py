"""Screen-space ambient occlusion: corners and contacts see less of the sky.

Scalable ambient obscurance (McGuire, Mara, Luebke 2012) on one sample a pixel. Each pixel of a 4×4 tile
turns its taps by another angle and a 4×4 box takes the average, which leaves no pattern.
"""

from __future__ import annotations

import math

import numpy as np

from softrig.render.raster import Lens, kernel

TAPS = 14
TURNS = 5.0
STRENGTH = 9.0


def tap_spiral() -> np.ndarray:
    """(16, TAPS, 2) taps in the unit disc, one spiral for each pixel of a tile."""
    share = (np.arange(TAPS) + 0.5) / TAPS
    turn = np.arange(16) * 7 % 16 / 16
    angle = 2.0 * math.pi * (turn[:, None] + TURNS * share)
    return np.stack([np.cos(angle) * share, np.sin(angle) * share], axis=2)


@kernel
def occlusion(depth: np.ndarray, normals: np.ndarray, lens: Lens, radius: float, spiral: np.ndarray) -> np.ndarray:
    """(height, width) share of the sky that is open, 0 … 1.

    depth    (height, width) m along the line of sight, 0 where nothing is
    normals  (height, width, 3) in camera axes
    lens     of this resolution
    radius   how far occluders reach, m
    spiral   `tap_spiral()`
    """
    height, width = depth.shape
    openness = np.ones((height, width), np.float32)
    square = radius * radius
    for row in range(height):
        for column in range(width):
            z = depth[row, column]
            if z <= 0.0:
                continue
            px = (column + 0.5 - lens.centre_x) / lens.focal * z
            py = (lens.centre_y - row - 0.5) / lens.focal * z
            nx, ny, nz = normals[row, column, 0], normals[row, column, 1], normals[row, column, 2]
            reach = min(radius * lens.focal / z, 0.25 * height)
            tile = (row % 4) * 4 + (column % 4)
            total = 0.0
            for tap in range(TAPS):
                x = math.floor(column + 0.5 + spiral[tile, tap, 0] * reach)
                y = math.floor(row + 0.5 + spiral[tile, tap, 1] * reach)
                if x < 0 or y < 0 or x >= width or y >= height:
                    continue
                far = depth[y, x]
                if far <= 0.0:
                    continue
                dx = (x + 0.5 - lens.centre_x) / lens.focal * far - px
                dy = (lens.centre_y - y - 0.5) / lens.focal * far - py
                dz = far - z
                distance = dx * dx + dy * dy + dz * dz
                if distance >= square:
                    continue
                rise = dx * nx + dy * ny + dz * nz - 0.002 * z
                if rise > 0.0:
                    near = 1.0 - distance / square
                    total += near * near * rise / math.sqrt(distance + 1e-4 * square)
            openness[row, column] = 1.0 / (1.0 + STRENGTH * total / TAPS)
    return openness


@kernel
def smoothed(openness: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """The 4×4 average, over neighbours at a similar depth only."""
    height, width = openness.shape
    result = np.ones((height, width), np.float32)
    for row in range(height):
        for column in range(width):
            z = depth[row, column]
            if z <= 0.0:
                continue
            total, weight = 0.0, 0.0
            for y in range(max(row - 2, 0), min(row + 2, height)):
                for x in range(max(column - 2, 0), min(column + 2, width)):
                    if abs(depth[y, x] - z) < 0.015 * z:
                        total += openness[y, x]
                        weight += 1.0
            result[row, column] = total / weight
    return result
