"""From meshes and a camera to a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softrig.errors import EmptyMeshError, InputError
from softrig.render.colour import linear
from softrig.render.normals import corner_normals
from softrig.render.occlusion import occlusion, smoothed, tap_spiral
from softrig.render.raster import NOTHING, Lens, Plane, lay_ground, rasterise
from softrig.render.scene import Background, Camera, Ground, Light, Mesh
from softrig.render.shade import Lighting, Surface, Triple, depth_and_normals, encoded, shade
from softrig.render.shadow import disc, shadow_map, tallest_around


def render(
    meshes: Mesh | Sequence[Mesh],
    camera: Camera,
    size: tuple[int, int] = (960, 540),
    *,
    light: Light | None = None,
    ground: Ground | None = None,
    background: Background | None = None,
) -> np.ndarray:
    """(height, width, 3) uint8 picture of `meshes`; `size` is (width, height) in pixels.

    Without a `light` there is one over the viewer's left shoulder; without a `ground` there is none.
    Everything that is not given follows from the camera alone, so frames of an animation match.
    """
    meshes = [meshes] if isinstance(meshes, Mesh) else list(meshes)
    if not meshes:
        raise EmptyMeshError("render: no meshes")
    width, height = size
    if not (0 < width <= 8192 and 0 < height <= 8192):
        raise InputError(f"render: size {size} is not within 1 … 8192 pixels")
    light = light or Light.over_shoulder(camera)
    background = background or Background()

    axes = camera.axes()
    half_height = math.tan(camera.field_of_view / 2)
    lens = Lens(height / half_height, float(width), float(height))
    points, surface = _surface(meshes, camera, axes, lens)
    plane = _plane(camera, axes, ground)
    visible = np.full((2 * height, 2 * width), NOTHING, np.int32)
    nearness = np.zeros((2 * height, 2 * width), np.float32)
    nearest = 1e-3 * camera.distance()
    rasterise(surface.points, np.ones(len(points)), 1.0 / nearest, surface.triangles, nearness, visible)
    if ground is not None:
        lay_ground(lens, plane, nearness, visible)

    depth, facing = depth_and_normals(visible, nearness, surface.faces, lens, plane.normal)
    pixel_lens = Lens(lens.focal / 2, width / 2 + 0.25, height / 2 + 0.25)
    reach = 0.15 * half_height * camera.distance()
    openness = smoothed(occlusion(depth, facing, pixel_lens, reach, tap_spiral()), depth)
    frame, heights = shadow_map(points, surface.triangles, _light_axes(light, axes), math.tan(light.radius))
    tallest = tallest_around(heights)
    lighting = _lighting(light, camera, axes, ground, background)
    return encoded(
        shade(
            surface,
            visible,
            nearness,
            depth,
            openness,
            lens,
            plane,
            lighting,
            frame,
            heights,
            tallest,
            disc(),
        )
    )


def _surface(meshes: Sequence[Mesh], camera: Camera, axes: np.ndarray, lens: Lens) -> tuple[np.ndarray, Surface]:
    """All meshes as one: (v, 3) points in camera axes (m), and what the kernels want to know."""
    points = np.concatenate([(mesh.vertices - camera.eye) @ axes.T for mesh in meshes])
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes])
    counts = [len(mesh.triangles) for mesh in meshes]
    triangles = np.concatenate([mesh.triangles + start for mesh, start in zip(meshes, starts, strict=False)])
    normals = [corner_normals(mesh.vertices, mesh.triangles, mesh.crease_angle) for mesh in meshes]
    colours = [np.broadcast_to(linear(np.asarray(mesh.colours)), mesh.vertices.shape) for mesh in meshes]
    a, b, c = (points[triangles[:, corner]] for corner in range(3))
    faces = np.cross(c - a, b - a)  # right, upward, forward is left-handed: the product turns round
    faces /= np.maximum(np.linalg.norm(faces, axis=1), 1e-300)[:, None]
    x, y, z = points.T
    homogeneous = np.stack([lens.focal * x + lens.centre_x * z, lens.centre_y * z - lens.focal * y, z], axis=1)
    return points, Surface(
        positions=points,
        points=homogeneous,
        triangles=triangles,
        faces=faces.astype(np.float32),
        normals=np.ascontiguousarray(np.concatenate(normals) @ axes.T.astype(np.float32)),
        colours=np.ascontiguousarray(np.concatenate(colours), dtype=np.float32),
        gloss=np.repeat([min(max(mesh.gloss, 0.0), 1.0) for mesh in meshes], counts),
        wire=np.repeat([mesh.wire for mesh in meshes], counts),
    )


def _plane(camera: Camera, axes: np.ndarray, ground: Ground | None) -> Plane:
    up = np.asarray(camera.up)
    height = 0.0 if ground is None else ground.height
    fade = None if ground is None else ground.fade
    middle = np.asarray(camera.target) + (height - np.asarray(camera.target) @ up) * up
    return Plane(
        normal=_triple(axes @ up),
        offset=float(height - np.asarray(camera.eye) @ up),
        middle=_triple(axes @ (middle - camera.eye)),
        fade=3.0 * camera.distance() if fade is None else fade,
    )


def _light_axes(light: Light, axes: np.ndarray) -> np.ndarray:
    toward = axes @ np.asarray(light.direction)
    across = np.cross(toward, np.eye(3)[np.argmin(np.abs(toward))])
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(toward, across), toward])


def _lighting(
    light: Light, camera: Camera, axes: np.ndarray, ground: Ground | None, background: Background
) -> Lighting:
    top, bottom = linear(np.asarray(background.top)), linear(np.asarray(background.bottom))
    floor = linear(np.asarray((ground or Ground()).colour))
    up, toward = np.asarray(camera.up), np.asarray(light.direction)
    sideways = toward - (toward @ up) * up
    fill = 0.35 * up - sideways if np.linalg.norm(sideways) > 1e-6 else axes[0]
    tint = top / max(float(top.max()), 1e-6)
    return Lighting(
        key=_triple(light.strength * linear(np.asarray(light.colour))),
        sky=_triple(0.37 * (0.5 + 0.5 * tint)),
        bounce=_triple(0.20 * (0.3 + 0.7 * floor)),
        fill=_triple(0.10 * tint),
        fill_toward=_triple(axes @ (fill / np.linalg.norm(fill))),
        up=_triple(axes @ up),
        ground=_triple(floor),
        top=_triple(top),
        bottom=_triple(bottom),
    )


def _triple(values: np.ndarray) -> Triple:
    x, y, z = (float(value) for value in values)
    return x, y, z
