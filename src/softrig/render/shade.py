"""Light on surfaces: key light, sky, fill and gloss, in linear light; then tone map and sRGB."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softrig.render.raster import GROUND, NOTHING, Lens, Plane, inlined_kernel, kernel
from softrig.render.shadow import ShadowFrame, light_reaching

Triple = tuple[float, float, float]


class Surface(NamedTuple):
    """All meshes of a picture as one, in camera axes.

    positions  (v, 3) m
    points     (v, 3) the same, homogeneous in samples
    triangles  (t, 3)
    faces      (t, 3) unit normals of the flat triangles
    normals    (t, 3, 3) unit normals at their corners
    colours    (v, 3) linear light
    gloss      (t,) 0 … 1
    wire       (t,) whether edges are drawn
    """

    positions: np.ndarray
    points: np.ndarray
    triangles: np.ndarray
    faces: np.ndarray
    normals: np.ndarray
    colours: np.ndarray
    gloss: np.ndarray
    wire: np.ndarray


class Lighting(NamedTuple):
    """Linear colours of everything that shines, the ground's own colour, and the world's up."""

    key: Triple
    sky: Triple
    bounce: Triple
    fill: Triple
    fill_toward: Triple
    up: Triple
    ground: Triple
    top: Triple
    bottom: Triple


@inlined_kernel
def surface_at(surface: Surface, t: int, x: float, y: float) -> tuple[float, float, float, float]:
    """Barycentric shares of triangle t at sample position (x, y), and how near an edge is, in samples."""
    i, j, k = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
    p = surface.points
    x0, y0, w0 = p[i, 0], p[i, 1], p[i, 2]
    x1, y1, w1 = p[j, 0], p[j, 1], p[j, 2]
    x2, y2, w2 = p[k, 0], p[k, 1], p[k, 2]
    a0, b0 = y1 * w2 - w1 * y2, w1 * x2 - x1 * w2
    a1, b1 = y2 * w0 - w2 * y0, w2 * x0 - x2 * w0
    a2, b2 = y0 * w1 - w0 * y1, w0 * x1 - x0 * w1
    e0 = a0 * x + b0 * y + (x1 * y2 - y1 * x2)
    e1 = a1 * x + b1 * y + (x2 * y0 - y2 * x0)
    e2 = a2 * x + b2 * y + (x0 * y1 - y0 * x1)
    total = e0 + e1 + e2
    edge = 1e9
    if surface.wire[t]:
        edge = min(
            abs(e0) / math.sqrt(a0 * a0 + b0 * b0 + 1e-300),
            abs(e1) / math.sqrt(a1 * a1 + b1 * b1 + 1e-300),
            abs(e2) / math.sqrt(a2 * a2 + b2 * b2 + 1e-300),
        )
    if total == 0.0:
        return 1.0, 0.0, 0.0, edge
    return e0 / total, e1 / total, e2 / total, edge


@inlined_kernel
def lifted(
    surface: Surface, t: int, corner: int, side: float, px: float, py: float, pz: float
) -> tuple[float, float, float]:
    """From point p of triangle t up to the tangent plane of a corner, where p lies below it, m.

    Weighted by the barycentric shares it puts p on the smooth surface the facets stand for, so that
    facets near the terminator do not shadow themselves (Hanika 2021).
    """
    v = surface.triangles[t, corner]
    nx, ny, nz = surface.normals[t, corner, 0], surface.normals[t, corner, 1], surface.normals[t, corner, 2]
    dx = px - surface.positions[v, 0]
    dy = py - surface.positions[v, 1]
    dz = pz - surface.positions[v, 2]
    below = min(side * (dx * nx + dy * ny + dz * nz), 0.0) * side
    return -below * nx, -below * ny, -below * nz


@kernel
def depth_and_normals(
    visible: np.ndarray, nearness: np.ndarray, faces: np.ndarray, lens: Lens, up: Triple
) -> tuple[np.ndarray, np.ndarray]:
    """One sample of each pixel's 2×2 as depth (m, 0 where nothing is) and face normal toward the eye."""
    height, width = visible.shape[0] // 2, visible.shape[1] // 2
    depth = np.zeros((height, width), np.float32)
    normals = np.zeros((height, width, 3), np.float32)
    for row in range(height):
        for column in range(width):
            t = visible[2 * row, 2 * column]
            if t == NOTHING:
                continue
            depth[row, column] = 1.0 / nearness[2 * row, 2 * column]
            if t == GROUND:
                normals[row, column, 0], normals[row, column, 1], normals[row, column, 2] = up
                continue
            ray_x = (2 * column + 0.5 - lens.centre_x) / lens.focal
            ray_y = (lens.centre_y - 2 * row - 0.5) / lens.focal
            side = -1.0 if faces[t, 0] * ray_x + faces[t, 1] * ray_y + faces[t, 2] > 0.0 else 1.0
            for axis in range(3):
                normals[row, column, axis] = side * faces[t, axis]
    return depth, normals


@inlined_kernel
def _openness_near(openness: np.ndarray, depth: np.ndarray, row: int, column: int, z: float) -> float:
    """Occlusion of the pixel, or of the neighbour whose depth fits this sample best."""
    if abs(depth[row, column] - z) < 0.01 * z:
        return openness[row, column]
    best, found = 1e30, 1.0
    for y in range(max(row - 1, 0), min(row + 2, depth.shape[0])):
        for x in range(max(column - 1, 0), min(column + 2, depth.shape[1])):
            gap = abs(depth[y, x] - z)
            if depth[y, x] > 0.0 and gap < best:
                best, found = gap, openness[y, x]
    return found


@kernel
def _gloss(gloss: float, facing: float, half: float) -> tuple[float, float]:
    """Highlight of the key light and reflection of the sky (Blinn; Schlick's Fresnel term)."""
    power = 8.0 + 180.0 * gloss * gloss
    fresnel = 0.04 + 0.96 * (1.0 - facing) ** 5
    return 0.04 * gloss * (power + 8.0) / 8.0 * half**power, 0.35 * gloss * fresnel


@kernel
def _shoulder(x: float) -> float:
    """Identity up to 0.7, then a soft approach to 1: highlights keep their colour instead of clipping."""
    if x <= 0.7:
        return max(x, 0.0)
    over = (x - 0.7) / 0.3
    return 0.7 + 0.3 * over / math.sqrt(1.0 + over * over)


@kernel
def shade(
    surface: Surface,
    visible: np.ndarray,
    nearness: np.ndarray,
    depth: np.ndarray,
    openness: np.ndarray,
    lens: Lens,
    plane: Plane,
    lighting: Lighting,
    frame: ShadowFrame,
    heights: np.ndarray,
    tallest: np.ndarray,
    taps: np.ndarray,
) -> np.ndarray:
    """(height, width, 3) tone-mapped linear colour, the mean of each pixel's 2×2 samples."""
    height, width = depth.shape
    picture = np.empty((height, width, 3), np.float32)
    lx, ly, lz = frame.toward
    ux, uy, uz = lighting.up
    fx, fy, fz = lighting.fill_toward
    for row in range(height):
        mix = (row + 0.5) / height
        mix = mix * mix * (3.0 - 2.0 * mix)
        back_r = lighting.top[0] + mix * (lighting.bottom[0] - lighting.top[0])
        back_g = lighting.top[1] + mix * (lighting.bottom[1] - lighting.top[1])
        back_b = lighting.top[2] + mix * (lighting.bottom[2] - lighting.top[2])
        for column in range(width):
            sum_r, sum_g, sum_b = 0.0, 0.0, 0.0
            for share in range(4):
                y, x = 2 * row + share // 2, 2 * column + share % 2
                t = visible[y, x]
                if t == NOTHING:
                    sum_r, sum_g, sum_b = sum_r + back_r, sum_g + back_g, sum_b + back_b
                    continue
                ray_x = (x + 0.5 - lens.centre_x) / lens.focal
                ray_y = (lens.centre_y - y - 0.5) / lens.focal
                pz = 1.0 / nearness[y, x]
                px, py = ray_x * pz, ray_y * pz
                qx, qy, qz = px, py, pz
                gloss, solid = 0.0, 1.0
                if t == GROUND:
                    nx, ny, nz = lighting.up
                    red, green, blue = lighting.ground
                    dx, dy, dz = px - plane.middle[0], py - plane.middle[1], pz - plane.middle[2]
                    solid = 1.6 * (1.0 - math.sqrt(dx * dx + dy * dy + dz * dz) / plane.fade)
                    solid = min(max(solid, 0.0), 1.0)
                    solid = solid * solid * (3.0 - 2.0 * solid)
                else:
                    s0, s1, s2, edge = surface_at(surface, t, x + 0.5, y + 0.5)
                    i, j, k = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
                    n, c = surface.normals, surface.colours
                    nx = s0 * n[t, 0, 0] + s1 * n[t, 1, 0] + s2 * n[t, 2, 0]
                    ny = s0 * n[t, 0, 1] + s1 * n[t, 1, 1] + s2 * n[t, 2, 1]
                    nz = s0 * n[t, 0, 2] + s1 * n[t, 1, 2] + s2 * n[t, 2, 2]
                    red = s0 * c[i, 0] + s1 * c[j, 0] + s2 * c[k, 0]
                    green = s0 * c[i, 1] + s1 * c[j, 1] + s2 * c[k, 1]
                    blue = s0 * c[i, 2] + s1 * c[j, 2] + s2 * c[k, 2]
                    gx, gy, gz = surface.faces[t, 0], surface.faces[t, 1], surface.faces[t, 2]
                    scale = 1.0 / math.sqrt(nx * nx + ny * ny + nz * nz + 1e-30)
                    # The face, not the smooth normal, says which side is seen: no dark rims.
                    side = -1.0 if gx * ray_x + gy * ray_y + gz > 0.0 else 1.0
                    scale *= side
                    for corner in range(3):
                        lift_x, lift_y, lift_z = lifted(surface, t, corner, side, px, py, pz)
                        part = s0 if corner == 0 else (s1 if corner == 1 else s2)
                        qx, qy, qz = qx + part * lift_x, qy + part * lift_y, qz + part * lift_z
                    nx, ny, nz = nx * scale, ny * scale, nz * scale
                    gloss = surface.gloss[t]
                    line = 1.0 - 0.55 * min(max(1.9 - edge, 0.0), 1.0)
                    red, green, blue = red * line, green * line, blue * line
                sky_open = _openness_near(openness, depth, row, column, pz)
                facing_key = nx * lx + ny * ly + nz * lz
                lit = 0.0
                if facing_key > 0.0:
                    tile = (row % 4) * 4 + column % 4
                    lit = light_reaching(qx, qy, qz, nx, ny, nz, tile, share, frame, heights, tallest, taps)
                key = max(facing_key, 0.0) * lit * (0.7 + 0.3 * sky_open)
                sky = (0.5 + 0.5 * (nx * ux + ny * uy + nz * uz)) * sky_open
                bounce = (0.5 - 0.5 * (nx * ux + ny * uy + nz * uz)) * sky_open
                fill = max(nx * fx + ny * fy + nz * fz, 0.0) * sky_open
                kr, kg, kb = lighting.key
                sr, sg, sb = lighting.sky
                red *= key * kr + sky * sr + bounce * lighting.bounce[0] + fill * lighting.fill[0]
                green *= key * kg + sky * sg + bounce * lighting.bounce[1] + fill * lighting.fill[1]
                blue *= key * kb + sky * sb + bounce * lighting.bounce[2] + fill * lighting.fill[2]
                if gloss > 0.0:
                    scale = 1.0 / math.sqrt(ray_x * ray_x + ray_y * ray_y + 1.0)
                    vx, vy, vz = -ray_x * scale, -ray_y * scale, -scale
                    hx, hy, hz = vx + lx, vy + ly, vz + lz
                    scale = 1.0 / math.sqrt(hx * hx + hy * hy + hz * hz + 1e-30)
                    half = max((hx * nx + hy * ny + hz * nz) * scale, 0.0)
                    facing = min(max(nx * vx + ny * vy + nz * vz, 0.0), 1.0)
                    shine, mirror = _gloss(gloss, facing, half)
                    shine, mirror = shine * key, mirror * sky
                    red, green, blue = (
                        red + shine * kr + mirror * sr,
                        green + shine * kg + mirror * sg,
                        blue + shine * kb + mirror * sb,
                    )
                sum_r += back_r + solid * (_shoulder(red) - back_r)
                sum_g += back_g + solid * (_shoulder(green) - back_g)
                sum_b += back_b + solid * (_shoulder(blue) - back_b)
            picture[row, column, 0] = 0.25 * sum_r
            picture[row, column, 1] = 0.25 * sum_g
            picture[row, column, 2] = 0.25 * sum_b
    return picture


@kernel
def encoded(picture: np.ndarray) -> np.ndarray:
    """Linear light as 8-bit sRGB. A fixed pattern of half a step hides the bands of slow gradients."""
    height, width, _ = picture.shape
    image = np.empty((height, width, 3), np.uint8)
    for row in range(height):
        for column in range(width):
            # Interleaved gradient noise (Jimenez 2014): even, and the same in every frame.
            noise = 52.9829189 * ((0.06711056 * column + 0.00583715 * row) % 1.0) % 1.0
            for channel in range(3):
                x = picture[row, column, channel]
                x = 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1.0 / 2.4) - 0.055
                image[row, column, channel] = int(min(max(x, 0.0), 1.0) * 254.999 + noise)
    return image
