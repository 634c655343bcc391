"""The words of a picture: mesh, camera, light, ground and background.

Lengths are metres, angles radians, colours sRGB in 0 … 1. Everything is immutable; an animation makes
the next frame's mesh with `dataclasses.replace(mesh, vertices=...)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import EmptyMeshError, IndexRangeError, InputError, require_finite

Colour = Sequence[float]
Vector = Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle surface to look at.

    vertices      (v, 3) positions, m
    triangles     (t, 3) vertex indices; both sides are visible, so winding does not matter
    colours       one colour, or (v, 3) one a vertex; sRGB in 0 … 1
    crease_angle  edges that turn by more than this are drawn sharp, rad; 0 draws flat facets
    gloss         0 is chalk, 1 is varnish
    wire          whether the triangles' edges are drawn over the surface
    """

    vertices: np.ndarray
    triangles: np.ndarray
    colours: np.ndarray | Colour = (0.80, 0.79, 0.76)
    crease_angle: float = 0.7
    gloss: float = 0.25
    wire: bool = False

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "vertices", _points(self.vertices, "mesh vertices"))
        set_field(self, "triangles", _triangles(self.triangles, len(self.vertices)))
        set_field(self, "colours", _colours(self.colours, len(self.vertices)))
        for name in ("crease_angle", "gloss"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"mesh {name}: not a finite number")


@dataclass(frozen=True, eq=False)
class Camera:
    """A perspective eye. `up` is the world's vertical; `field_of_view` is the picture's height, rad."""

    eye: Vector
    target: Vector
    up: Vector = (0.0, 1.0, 0.0)
    field_of_view: float = 0.6

    def __post_init__(self) -> None:
        for name in ("eye", "target", "up"):
            object.__setattr__(self, name, _vector(getattr(self, name), f"camera {name}"))
        object.__setattr__(self, "up", _unit(self.up, "camera up"))
        forward = _unit(np.subtract(self.target, self.eye), "camera target minus eye")
        _unit(np.cross(forward, self.up), "camera up, seen across the line of sight")
        if not 0.0 < self.field_of_view < math.pi:
            raise InputError(f"camera field_of_view: {self.field_of_view} is not between 0 and π")

    @classmethod
    def framing(
        cls,
        vertices: np.ndarray,
        direction: Vector = (0.6, 0.35, 1.0),
        *,
        up: Vector = (0.0, 1.0, 0.0),
        field_of_view: float = 0.6,
        aspect: float = 16 / 9,
        margin: float = 1.12,
    ) -> Camera:
        """The nearest camera that looks along `-direction` and has every vertex inside the picture.

        `aspect` is the picture's width over its height; `margin` 1 touches the borders.
        """
        points = _points(vertices, "vertices to frame")
        looking = cls(np.add(points[0], _unit(direction, "framing direction")), points[0], up, field_of_view)
        right, upward, forward = axes = looking.axes()
        across, above, away = axes @ (points - points[0]).T
        half_height = math.tan(field_of_view / 2) / margin
        # Each border is a plane through the eye: two opposite ones fix where the eye must stand.
        eye_across, retreat_x = _stand_back(across, away, half_height * aspect)
        eye_above, retreat_y = _stand_back(above, away, half_height)
        depth = max(float(np.ptp(away)), float(np.ptp(across)), float(np.ptp(above)), 1e-6)
        retreat = max(retreat_x, retreat_y, 0.05 * depth - float(away.min()))
        eye = points[0] + eye_across * right + eye_above * upward - retreat * forward
        middle = retreat + 0.5 * float(away.min() + away.max())
        return cls(eye, eye + middle * forward, up, field_of_view)

    def axes(self) -> np.ndarray:
        """(3, 3) unit rows: right, upward, forward."""
        forward = _unit(np.subtract(self.target, self.eye), "camera target minus eye")
        right = _unit(np.cross(forward, self.up), "camera right")
        return np.stack([right, np.cross(right, forward), forward])

    def distance(self) -> float:
        """From the eye to the target, m."""
        return float(np.linalg.norm(np.subtract(self.target, self.eye)))


@dataclass(frozen=True, eq=False)
class Light:
    """The sun of the picture: parallel light, the only one that casts a shadow.

    direction  points from the scene to the light
    colour     sRGB tint
    strength   brightness of a white surface facing it, 1 is full white
    radius     half the angle the light subtends, rad: the width of penumbrae (the sun's is 0.005)
    """

    direction: Vector
    colour: Colour = (1.0, 0.975, 0.93)
    strength: float = 0.92
    radius: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", _unit(self.direction, "light direction"))
        object.__setattr__(self, "colour", _vector(self.colour, "light colour"))
        if not (self.strength >= 0.0 and 0.0 <= self.radius < 0.5):
            raise InputError("light: strength must be at least 0 and radius within 0 … 0.5 rad")

    @classmethod
    def over_shoulder(cls, camera: Camera, *, radius: float = 0.05) -> Light:
        """From behind the viewer's left shoulder and well above: reads as daylight, shadow to the right."""
        right, _, forward = camera.axes()
        ahead = forward - (forward @ camera.up) * np.asarray(camera.up)
        if np.linalg.norm(ahead) < 1e-6:
            ahead = camera.axes()[1]
        ahead /= np.linalg.norm(ahead)
        return cls(np.asarray(camera.up) - 0.62 * right - 0.38 * ahead, radius=radius)

    def shadow(self, points: np.ndarray, height: float = 0.0, up: Vector = (0.0, 1.0, 0.0)) -> np.ndarray:
        """(…, 3) m: where the shadows of points (…, 3) fall on the plane at `height` along `up`."""
        toward, upward = np.asarray(self.direction), _unit(up, "shadow up")
        rise = float(toward @ upward)
        if rise < 1e-6:
            raise InputError("light: does not shine down on the ground")
        return np.asarray(points - ((points @ upward - height) / rise)[..., None] * toward)


@dataclass(frozen=True, eq=False)
class Ground:
    """An endless plane across `Camera.up` that receives shadow and fades into the background.

    height  along `up`, m
    colour  sRGB
    fade    distance from the camera's target at which it is gone, m; None follows the camera
    """

    height: float = 0.0
    colour: Colour = (0.86, 0.86, 0.85)
    fade: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "colour", _vector(self.colour, "ground colour"))
        if not math.isfinite(self.height) or (self.fade is not None and not self.fade > 0.0):
            raise InputError("ground: height must be finite and fade positive")

    @classmethod
    def under(cls, meshes: Iterable[Mesh], up: Vector = (0.0, 1.0, 0.0)) -> Ground:
        """The plane that touches the lowest vertex of `meshes`."""
        upward = _unit(up, "ground up")
        lowest = [float((mesh.vertices @ upward).min()) for mesh in meshes]
        if not lowest:
            raise EmptyMeshError("ground: no meshes to lie under")
        return cls(min(lowest))


@dataclass(frozen=True, eq=False)
class Background:
    """A vertical gradient, sRGB; its upper colour also tints the sky light."""

    top: Colour = (0.80, 0.85, 0.91)
    bottom: Colour = (0.95, 0.95, 0.94)

    def __post_init__(self) -> None:
        object.__setattr__(self, "top", _vector(self.top, "background top"))
        object.__setattr__(self, "bottom", _vector(self.bottom, "background bottom"))


def _points(values: np.ndarray, what: str) -> np.ndarray:
    points = np.ascontiguousarray(values, dtype=np.float64)
    if points.size == 0:
        raise EmptyMeshError(f"{what}: none")
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"{what}: shape {points.shape} is not (n, 3)")
    require_finite(points, what)
    return points


def _triangles(values: np.ndarray, vertex_count: int) -> np.ndarray:
    given = np.asarray(values)
    if given.size == 0:
        raise EmptyMeshError("mesh triangles: none")
    if given.ndim != 2 or given.shape[1] != 3 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"mesh triangles: {given.dtype} of shape {given.shape} is not integer (n, 3)")
    outside = ((given < 0) | (given >= vertex_count)).any(axis=1)
    if outside.any():
        raise IndexRangeError(f"mesh triangles: vertex index outside 0 … {vertex_count - 1}", np.nonzero(outside)[0])
    return np.ascontiguousarray(given, dtype=np.int64)


def _colours(values: np.ndarray | Colour, vertex_count: int) -> np.ndarray:
    colours = np.asarray(values, dtype=np.float64)
    if colours.shape not in ((3,), (vertex_count, 3)):
        raise InputError(f"mesh colours: shape {colours.shape} is neither (3,) nor ({vertex_count}, 3)")
    require_finite(colours, "mesh colours")
    return np.clip(colours, 0.0, 1.0)


def _vector(values: Vector, what: str) -> np.ndarray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (3,):
        raise InputError(f"{what}: shape {vector.shape} is not (3,)")
    require_finite(vector, what)
    return vector


def _unit(values: Vector, what: str) -> np.ndarray:
    vector = _vector(values, what)
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        raise InputError(f"{what}: has no direction")
    return vector / length


def _stand_back(across: np.ndarray, away: np.ndarray, half_width: float) -> tuple[float, float]:
    """Sideways position and distance behind the origin of the nearest eye that sees all points."""
    right = float((across / half_width - away).max())
    left = float((-across / half_width - away).max())
    return 0.5 * half_width * (right - left), 0.5 * (right + left)
