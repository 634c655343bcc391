"""Soft shadow of the key light: a depth map seen from the light, filtered by how far the blocker is.

Percentage-closer soft shadows (Fernando 2005) with a receiver plane instead of a constant bias, so that
slanted surfaces neither shadow themselves nor lift off their shadow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softrig.render.raster import inlined_kernel, rasterise

MAP_SIZE = 2048
EMPTY = np.float32(-1e30)
DISC_POINTS = 64
SHARES = 4  # each of a pixel's four samples takes every fourth point of the disc
WIDEST = 60.0  # texels
BLOCK = 32  # texels; two blocks are wider than WIDEST


class ShadowFrame(NamedTuple):
    """The light's view of camera space: across, down, toward (unit axes), and the map's corner and texel.

    `toward` points to the light; `spread` is the tangent of the light's half angle.
    """

    across: tuple[float, float, float]
    down: tuple[float, float, float]
    toward: tuple[float, float, float]
    corner_x: float
    corner_y: float
    texel: float
    spread: float


def shadow_map(
    points: np.ndarray, triangles: np.ndarray, axes: np.ndarray, spread: float
) -> tuple[ShadowFrame, np.ndarray]:
    """The frame and the (MAP_SIZE, MAP_SIZE) map of heights toward the light, m; `EMPTY` where none.

    points  (v, 3) in camera axes, m
    axes    (3, 3) unit rows: across, down, toward the light
    """
    seen = points @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    extent = max(float((high - low)[:2].max()), 1e-6) * 1.02
    # Texel size and corner move in steps, so that an animation's shadow edges do not crawl.
    texel = 2.0 ** (math.ceil(4.0 * math.log2(extent)) / 4.0) / (MAP_SIZE - 2)
    corner = np.floor((0.5 * (low + high)[:2]) / texel) * texel - 0.5 * MAP_SIZE * texel
    flat = np.ones_like(seen)
    flat[:, :2] = (seen[:, :2] - corner) / texel
    heights = np.full((MAP_SIZE, MAP_SIZE), EMPTY, np.float32)
    owner = np.full((MAP_SIZE, MAP_SIZE), -1, np.int32)
    rasterise(flat, np.ascontiguousarray(seen[:, 2]), 1e30, triangles, heights, owner)
    across, down, toward = (tuple(float(x) for x in axis) for axis in axes)
    frame = ShadowFrame(across, down, toward, float(corner[0]), float(corner[1]), texel, spread)  # type: ignore[arg-type]
    return frame, heights


def tallest_around(heights: np.ndarray) -> np.ndarray:
    """(b, b) greatest height within two blocks of each block: one look tells most samples they are lit."""
    count = MAP_SIZE // BLOCK
    tallest = heights.reshape(count, BLOCK, MAP_SIZE).max(axis=1).reshape(count, count, BLOCK).max(axis=2)
    for axis in (0, 1):
        padded = np.pad(tallest, [(2, 2) if k == axis else (0, 0) for k in (0, 1)], constant_values=EMPTY)
        tallest = np.max([np.take(padded, range(k, k + count), axis) for k in range(5)], axis=0)
    return tallest


def disc() -> np.ndarray:
    """(16, DISC_POINTS, 2) points spread evenly over the unit disc (Vogel's spiral).

    One disc for each pixel of a 4×4 tile, turned: what would be bands in a penumbra is fine grain instead.
    """
    index = np.arange(DISC_POINTS)
    radius = np.sqrt((index + 0.5) / DISC_POINTS)
    turn = np.arange(16) * 7 % 16 / 16
    angle = index * math.pi * (3.0 - math.sqrt(5.0)) + 2.0 * math.pi * turn[:, None]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).astype(np.float32)


@inlined_kernel
def light_reaching(
    px: float,
    py: float,
    pz: float,
    nx: float,
    ny: float,
    nz: float,
    tile: int,
    share: int,
    frame: ShadowFrame,
    heights: np.ndarray,
    tallest: np.ndarray,
    taps: np.ndarray,
) -> float:
    """Share of the light, 0 … 1, that reaches point p (camera axes, m) with normal n."""
    ax, ay, az = frame.across
    dx, dy, dz = frame.down
    lx, ly, lz = frame.toward
    texel = frame.texel
    x = (ax * px + ay * py + az * pz - frame.corner_x) / texel
    y = (dx * px + dy * py + dz * pz - frame.corner_y) / texel
    height = lx * px + ly * py + lz * pz
    facing = max(nx * lx + ny * ly + nz * lz, 0.12)
    # Height of the receiver's own plane, a texel further across or down.
    slope_x = -(nx * ax + ny * ay + nz * az) / facing * texel
    slope_y = -(nx * dx + ny * dy + nz * dz) / facing * texel
    height += 0.6 * texel + 0.5 * (abs(slope_x) + abs(slope_y))
    if x < -WIDEST or y < -WIDEST or x > MAP_SIZE + WIDEST or y > MAP_SIZE + WIDEST:
        return 1.0
    block_x = min(max(math.floor(x) // BLOCK, 0), MAP_SIZE // BLOCK - 1)
    block_y = min(max(math.floor(y) // BLOCK, 0), MAP_SIZE // BLOCK - 1)
    above = tallest[block_y, block_x] - height
    reach = min(max(frame.spread * above / texel, 2.0), WIDEST)
    if above < -(abs(slope_x) + abs(slope_y)) * reach:
        return 1.0
    total, blockers = 0.0, 0
    for tap in range(share, DISC_POINTS, SHARES):
        i = math.floor(x + taps[tile, tap, 0] * reach)
        j = math.floor(y + taps[tile, tap, 1] * reach)
        if i >= 0 and j >= 0 and i < MAP_SIZE and j < MAP_SIZE:
            blocker = heights[j, i]
            if blocker > height + slope_x * (i + 0.5 - x) + slope_y * (j + 0.5 - y):
                total += blocker
                blockers += 1
    if blockers == 0:
        return 1.0
    if blockers == DISC_POINTS // SHARES:
        return 0.0
    reach = min(max(frame.spread * (total / blockers - height) / texel, 1.3), WIDEST)
    lit = 0.0
    for tap in range(share, DISC_POINTS, SHARES):
        tap_x, tap_y = x + taps[tile, tap, 0] * reach - 0.5, y + taps[tile, tap, 1] * reach - 0.5
        i, j = math.floor(tap_x), math.floor(tap_y)
        if i < 0 or j < 0 or i >= MAP_SIZE - 1 or j >= MAP_SIZE - 1:
            lit += 1.0
            continue
        fx, fy = tap_x - i, tap_y - j
        plane = height + slope_x * (i + 0.5 - x) + slope_y * (j + 0.5 - y)
        if heights[j, i] <= plane:
            lit += (1.0 - fx) * (1.0 - fy)
        if heights[j, i + 1] <= plane + slope_x:
            lit += fx * (1.0 - fy)
        if heights[j + 1, i] <= plane + slope_y:
            lit += (1.0 - fx) * fy
        if heights[j + 1, i + 1] <= plane + slope_x + slope_y:
            lit += fx * fy
    return lit * SHARES / DISC_POINTS
