"""Looking inside: tets, regions, fixed and contact vertices, cubature tets, paint, how far the flesh moved, and modes.

A layer's message says what does not move; points that move are asked for with every frame while the layer is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from softrig.errors import ModeCountError
from softrig.fem.meshes import VolumeMesh
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.viewer.contacts import contact_vertices
from softrig.viewer.protocol import encode

AMPLITUDE = 0.06
"""Of the size: how far the surface moves at most where one mode is shown."""
LARGEST_AMPLITUDE = 0.5
MODE_FREQUENCY = 0.7
"""Hertz at which a mode is shown, whatever its own."""
DOT = 0.006
"""Of the size: radius of a point."""
LARGEST_DOT = 0.03
"""Of the size: radius of the heaviest cubature tet."""
HOLD = 0.997
"""What is left of the largest displacement seen, frame by frame: colours must not flicker."""
GREY = (150, 150, 150, 255)
TET_COLOUR, CUT_COLOUR, FIXED_COLOUR = (70, 110, 170, 255), (40, 60, 95, 255), (205, 60, 50, 255)
CUBATURE_COLOUR = (250, 190, 60, 255)


class Layer(Protocol):
    """Something to see instead of, or inside, the surface."""

    name: str

    def message(self) -> bytes:
        """What does not move."""

    def points(self, subject: Any) -> np.ndarray | None:
        """(k, 3) float32 metres: where its points are now; None: it has none."""

    def field(self, subject: Any, soft: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, float] | None:
        """(n,) uint8 on the surface and what 255 stands for, metres; None: it has none."""


def layers(subject: Any, painting: Any = None) -> dict[str, Callable[[], Layer]]:
    """What can be looked at in a subject, by name; each is made when it is first wanted. `painting`: a `Painting`."""
    model, body = subject.model, getattr(subject, "body", None)
    found: dict[str, Callable[[], Layer]] = {}
    if isinstance(model, PoseSpaceModel):
        mesh = VolumeMesh(model.vertices, model.tets, np.zeros(len(model.tets), np.int32), ("body",))
        found["tets"] = lambda: Wires("tets", _edges(mesh.boundary_triangles), TET_COLOUR)
        found["cut"] = lambda: Wires("cut", _edges(_half(mesh)), CUT_COLOUR)
        found["regions"] = lambda: Paint("regions", *region_colours(model))
        found["fixed"] = lambda: Dots("fixed", np.flatnonzero(model.fixed), DOT * model.size, FIXED_COLOUR)
        found["contact"] = lambda: _contacts(model)
        found["cubature"] = lambda: _cubature(model)
        found["magnitude"] = lambda: Magnitude(model.size)
    elif isinstance(model, ReducedBody):
        size = float(subject.geometry().size)
        if body is not None:
            found["tets"] = lambda: Wires("tets", _edges(body.mesh.boundary_faces), TET_COLOUR)
            found["cut"] = lambda: Wires("cut", _edges(_half(body.mesh)), CUT_COLOUR)
        found["fixed"] = lambda: Dots("fixed", _still_vertices(model), DOT * size, FIXED_COLOUR)
        found["magnitude"] = lambda: Magnitude(size)
    if painting is not None:
        found["softness"] = lambda: Paint("softness", painting.colours())
    return found


class _Still:
    """A layer without moving points and without a field."""

    name = ""

    def points(self, subject: Any) -> np.ndarray | None:
        """None: nothing of it moves by itself."""
        return None

    def field(self, subject: Any, soft: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, float] | None:
        """None: it colours nothing by how the surface moves."""
        return None


class Paint(_Still):
    """Colours on the surface instead of its own."""

    def __init__(self, name: str, colours: np.ndarray, legend: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.name, self._colours = name, np.ascontiguousarray(colours, np.uint8)
        self._legend = [{"name": text, "colour": [int(c) for c in colour]} for text, colour in (legend or {}).items()]

    def message(self) -> bytes:
        """`field_colours` (n, 4), and what the colours mean."""
        header = {"is": "layer", "layer": self.name, "legend": self._legend}
        return encode(header, {"field_colours": self._colours})


class Wires(_Still):
    """Edges between tet vertices (k, 2)."""

    def __init__(self, name: str, edges: np.ndarray, colour: tuple[int, int, int, int]) -> None:
        self.name = name
        self._vertices, places = np.unique(edges, return_inverse=True)
        self._edges = places.reshape(-1, 2).astype(np.uint32)
        self._colours = np.tile(np.array(colour, np.uint8), (len(self._vertices), 1))

    def message(self) -> bytes:
        """`edges` (k, 2) between the points, and their `colours`."""
        return encode({"is": "layer", "layer": self.name}, {"edges": self._edges, "colours": self._colours})

    def points(self, subject: Any) -> np.ndarray:
        """(k, 3) float32 metres: the ends of the edges now."""
        return np.ascontiguousarray(subject.tet_positions()[self._vertices], np.float32)


class Dots(_Still):
    """Points at tet vertices (k,), or in the middle of several (k, c), with `radius` in metres, one or one each."""

    def __init__(
        self,
        name: str,
        corners: np.ndarray,
        radius: float | np.ndarray,
        colours: tuple[int, int, int, int] | np.ndarray,
        legend: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.name = name
        self._corners = np.asarray(corners, np.int64).reshape(len(corners), -1)
        self._radii = np.broadcast_to(np.asarray(radius, np.float32), len(corners))
        self._colours = np.broadcast_to(np.asarray(colours, np.uint8), (len(corners), 4))
        self._legend = [{"name": text, "colour": [int(c) for c in colour]} for text, colour in (legend or {}).items()]

    def message(self) -> bytes:
        """`sizes` (k,) radii in metres, and `colours`."""
        header = {"is": "layer", "layer": self.name, "legend": self._legend}
        return encode(header, {"sizes": self._radii, "colours": self._colours})

    def points(self, subject: Any) -> np.ndarray:
        """(k, 3) float32 metres: where they are now."""
        places = np.asarray(subject.tet_positions())
        if len(self._corners) == 0:
            return np.zeros((0, 3), np.float32)
        return np.ascontiguousarray(places[self._corners].mean(axis=1), np.float32)


class Magnitude(_Still):
    """How far each vertex is from where it would be without the flesh's motion."""

    name = "magnitude"

    def __init__(self, size: float) -> None:
        self._least = 1e-4 * size
        self._largest = 0.0

    def message(self) -> bytes:
        """Nothing: all comes with the frames."""
        return encode({"is": "layer", "layer": self.name, "legend": []})

    def field(self, subject: Any, soft: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, float]:
        """(n,) uint8 and the metres that 255 stands for: 1, 2 or 5 times a power of ten, at least the largest."""
        distances = np.linalg.norm(np.subtract(soft, plain, dtype=np.float32), axis=1)
        self._largest = max(float(distances.max(initial=0.0)), HOLD * self._largest, self._least)
        most = _round_up(self._largest)
        return np.rint(distances * (255.0 / most)).astype(np.uint8), most


class ModeShow:
    """One mode of a subject, swinging: `coordinates` take the place of the simulated ones.

    `amplitude`: how far the surface moves at most, in sizes of the subject.
    """

    def __init__(self, subject: Any, index: int, amplitude: float | None = None) -> None:
        model = getattr(subject.simulation, "model", subject.model)
        surface = _surface_modes(model, index)
        share = AMPLITUDE if amplitude is None else float(np.clip(amplitude, 0.0, LARGEST_AMPLITUDE))
        reach = float(np.linalg.norm(surface, axis=1).max(initial=0.0))
        size = float(subject.geometry().size)
        self.index = index
        self._swing = np.zeros(_mode_count(model))
        self._swing[index] = share * size / reach if reach > 0.0 else 0.0

    def coordinates(self, seconds: float) -> np.ndarray:
        """(r,) q at a time."""
        return self._swing * math.sin(2.0 * math.pi * MODE_FREQUENCY * seconds)


def region_colours(model: PoseSpaceModel) -> tuple[np.ndarray, dict[str, tuple[int, ...]]]:
    """(n̄, 4) uint8: each region's colour by its share of the flesh that carries a vertex, and the colours by name."""
    shares = region_shares(model)
    palette = region_palette(len(model.region_names))
    carried = np.einsum("sa,sag->sg", model.embedding_weights, shares[model.embedding_nodes])
    total = carried.sum(axis=1, keepdims=True)
    soft = total[:, 0] > 1e-9
    rgb = np.tile(np.array(GREY[:3], float), (len(carried), 1))
    # Where flesh is partly held, its colour fades.
    mixed = (carried @ palette) + np.maximum(1.0 - total, 0.0) * rgb
    rgb[soft] = (mixed / np.maximum(total, 1.0))[soft]
    colours = np.concatenate([np.rint(rgb), np.full((len(rgb), 1), 255.0)], axis=1).astype(np.uint8)
    names = {
        name: tuple(round(float(c)) for c in colour) for name, colour in zip(model.region_names, palette, strict=True)
    }
    return colours, names


def region_shares(model: PoseSpaceModel) -> np.ndarray:
    """(n, g) how much of the motion of each tet vertex is each region's: they sum to one, or to zero where it is held.

    Modes times their importance make up the deformations a region was built from, which are the whole body's times the
    region's weight.
    """
    regions = len(model.region_names)
    squares = np.zeros((len(model.vertices), regions))
    for region in range(regions):
        own = model.region_of_mode == region
        moved = model.shapes[..., own] * model.modes_order[own]
        squares[:, region] = np.einsum("mnkr,mnkr->n", moved, moved)
    sizes = np.sqrt(squares)
    return sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)


def region_palette(count: int) -> np.ndarray:
    """(count, 3) sRGB in 0 … 255: hues a golden angle apart, so that neighbours in the list differ."""
    hues = (0.07 + 0.6180339887 * np.arange(count)) % 1.0
    lift = np.where(np.arange(count) % 2 == 0, 0.92, 0.74)
    wheel = np.clip(np.abs((hues[:, None] * 6.0 + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    return np.asarray(255.0 * lift[:, None] * (1.0 - 0.6 * (1.0 - wheel)))


def _cubature(model: PoseSpaceModel) -> Dots:
    """Cubature tets; one that stands for eight times as much flesh is twice as large."""
    weights = model.cubature.weights.mean(axis=0)
    kept = np.flatnonzero(weights > 0.0)
    sides = np.cbrt(weights[kept])
    radii = LARGEST_DOT * model.size * sides / max(float(sides.max(initial=0.0)), 1e-300)
    return Dots("cubature", model.tets[model.cubature.tets[kept]], radii, CUBATURE_COLOUR)


def _contacts(model: PoseSpaceModel) -> Dots:
    """Vertices that touch another part at a pose, coloured by the first pose at which they do."""
    found = contact_vertices(model)
    vertices = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))
    first = np.array([next(i for i, own in enumerate(found) if vertex in own) for vertex in vertices.tolist()], int)
    palette = np.concatenate([np.rint(region_palette(len(found))), np.full((len(found), 1), 255.0)], axis=1)
    legend = {
        f"{name}: {len(own)}": tuple(int(c) for c in palette[i, :3])
        for i, (name, own) in enumerate(zip(model.poses.names, found, strict=True))
        if len(own)
    }
    return Dots("contact", vertices, DOT * model.size, palette[first].astype(np.uint8).reshape(-1, 4), legend)


def _edges(faces: np.ndarray) -> np.ndarray:
    """(k, 2) the different edges of faces (f, 3 or 4)."""
    around = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    return np.unique(np.sort(around, axis=1), axis=0)


def _half(mesh: VolumeMesh) -> np.ndarray:
    """Faces of the half behind a plane through the middle, across the body's shortest side: its inside shows."""
    middles = mesh.vertices[mesh.elements].mean(axis=1)
    axis = int(np.ptp(mesh.vertices, axis=0).argmin())
    behind = middles[:, axis] < 0.5 * (mesh.vertices[:, axis].min() + mesh.vertices[:, axis].max())
    if not behind.any():
        return mesh.boundary_faces
    return VolumeMesh(mesh.vertices, mesh.elements[behind], mesh.groups[behind], mesh.group_names).boundary_faces


def _still_vertices(model: ReducedBody) -> np.ndarray:
    """Volume vertices that no mode moves."""
    return np.flatnonzero(~model.basis.reshape(len(model.vertices), -1).any(axis=1))


def _surface_modes(model: PoseSpaceModel | ReducedBody, index: int) -> np.ndarray:
    """(n̄, 3) what one mode does to the surface at rest, metres per unit."""
    if not 0 <= index < _mode_count(model):
        raise ModeCountError(f"there are modes 0 to {_mode_count(model) - 1}, not {index}")
    if isinstance(model, ReducedBody):
        return model.surface_modes[index].reshape(-1, 3)
    rest = model.rig.parameters.rest
    own = model.drawn_shapes(rest)[:, :, index] * model.mode_scales(rest)[index]
    return np.einsum("sa,sak->sk", model.embedding_weights, own[model.embedding_nodes])


def _mode_count(model: PoseSpaceModel | ReducedBody) -> int:
    return model.size if isinstance(model, ReducedBody) else model.mode_count


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 … times a power of ten that is at least `value` > 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * (1.0 - 1e-9))
