"""From a sculpture to its triangles: marching cubes on a graded grid, thinned to a count, evened out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bodies.implicit import Field, gradient, onto_surface
from softrig.characters.smoothing import neighbour_average, vertex_normals
from softrig.errors import SoftrigError

SURPLUS = 3.5
"""Vertices of marching cubes for each one that is kept."""

UNFOLDINGS = 12
"""Most rounds of mending the few triangles that thinning folded over."""

BLOCK = 4
"""Cells of the grid between two coarse samples."""


@dataclass(frozen=True)
class Focus:
    """A box in which the surface is finer, m."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    factor: float = 2.2


def closed_surface(
    field: Field, low: np.ndarray, high: np.ndarray, count: int, focus: Focus | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (about `count`, 3), m, and outward triangles (t, 3) int32 of the zero set in a box.

    One closed surface of Euler characteristic 2 whose triangles all face along the field's gradient;
    `SoftrigError` where the field does not allow one.
    """
    import igl

    spacing = _spacing(field, low, high, count, focus)
    vertices, triangles = _marched(field, low, high, spacing, focus)
    vertices, triangles = _main_component(vertices, triangles)
    vertices, triangles, _, _ = igl.qslim(vertices, triangles.astype(np.int64), 2 * count - 4)
    vertices = _relaxed(field, vertices, triangles, spacing)
    vertices = _unfolded(field, vertices, triangles, spacing)
    euler = len(vertices) - 3 * len(triangles) // 2 + len(triangles)
    if euler != 2:
        raise SoftrigError(f"sculpture: Euler characteristic {euler} instead of 2")
    return np.ascontiguousarray(vertices), np.ascontiguousarray(triangles, dtype=np.int32)


def _spacing(field: Field, low: np.ndarray, high: np.ndarray, count: int, focus: Focus | None) -> float:
    """Grid spacing, m, at which marching cubes gives `SURPLUS` times `count` vertices: their number grows with 1/h²."""
    trial = 0.02 * float((high - low).max())
    vertices, _ = _marched(field, low, high, trial, focus)
    return trial * float(np.sqrt(len(vertices) / (SURPLUS * count)))


def _marched(
    field: Field, low: np.ndarray, high: np.ndarray, spacing: float, focus: Focus | None
) -> tuple[np.ndarray, np.ndarray]:
    import igl

    ticks = [_ticks(low[d], high[d], spacing, focus, d) for d in range(3)]
    nx, ny, nz = (len(t) for t in ticks)
    vertices, triangles, _ = igl.marching_cubes(_band(field, ticks), _lattice(ticks), nx, ny, nz, 0.0)
    corners = vertices[triangles]
    volume = np.einsum("ni,ni->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return vertices, triangles if volume > 0.0 else triangles[:, ::-1]


def _ticks(low: float, high: float, spacing: float, focus: Focus | None, axis: int) -> np.ndarray:
    """Places of the grid's planes along one axis, closer together in the focus."""
    fine = np.linspace(low, high, 4001)
    density = np.full(len(fine), 1.0 / spacing)
    if focus is not None:
        ramp = 0.06 * (high - low)
        outside = np.maximum(np.maximum(focus.low[axis] - fine, fine - focus.high[axis]), 0.0)
        density *= 1.0 + (focus.factor - 1.0) * np.exp(-((outside / ramp) ** 2))
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine))])
    count = BLOCK * int(np.ceil(mass[-1] / BLOCK)) + 1
    return np.interp(np.linspace(0.0, mass[-1], count), mass, fine)


def _band(field: Field, ticks: list[np.ndarray]) -> np.ndarray:
    """(nx · ny · nz,) the field: itself near the surface, interpolated from every `BLOCK`th sample elsewhere."""
    coarse = [t[::BLOCK] for t in ticks]
    values = field(_lattice(coarse)).reshape([len(t) for t in coarse[::-1]])
    for axis, (rough, fine) in enumerate(zip(coarse[::-1], ticks[::-1], strict=True)):
        values = np.moveaxis(np.moveaxis(values, axis, -1) @ _between(rough, fine), -1, axis)
    # Everything within two blocks of the surface: thinner parts than a block lie between coarse samples.
    width = 2.0 * max(float(np.diff(t).max()) for t in coarse)
    near = np.flatnonzero(np.abs(values) < width)
    flat = np.ascontiguousarray(values).ravel()
    flat[near] = field(np.ascontiguousarray(_lattice(ticks)[near]))
    return flat


def _lattice(ticks: list[np.ndarray]) -> np.ndarray:
    """(nx · ny · nz, 3) the grid's points, x running fastest."""
    z, y, x = np.meshgrid(*ticks[::-1], indexing="ij")
    return np.stack([x, y, z], axis=-1).reshape(-1, 3)


def _between(rough: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """(rough, fine) weights of linear interpolation along one axis."""
    return np.stack([np.interp(fine, rough, unit) for unit in np.eye(len(rough))])


def _main_component(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest piece: hollows closed off inside the body are nobody's surface."""
    import igl

    _, piece = igl.facet_components(triangles)
    kept = triangles[piece == np.bincount(piece).argmax()]
    used, renumbered = np.unique(kept, return_inverse=True)
    return vertices[used], renumbered.reshape(-1, 3)


def _relaxed(field: Field, vertices: np.ndarray, triangles: np.ndarray, spacing: float, rounds: int = 5) -> np.ndarray:
    """The vertices moved along the surface half way to the middle of their neighbours, `rounds` times."""
    average = neighbour_average(triangles, len(vertices))
    vertices = onto_surface(field, vertices, spacing)
    for _ in range(rounds):
        normals = vertex_normals(vertices, triangles)
        move = average @ vertices - vertices
        move -= (move * normals).sum(axis=1, keepdims=True) * normals
        vertices = onto_surface(field, vertices + 0.5 * move, spacing, rounds=1)
    return vertices


def _unfolded(field: Field, vertices: np.ndarray, triangles: np.ndarray, spacing: float) -> np.ndarray:
    """Vertices of triangles that face inwards moved to the middle of their neighbours, until none is left."""
    average = neighbour_average(triangles, len(vertices))
    for attempt in range(UNFOLDINGS + 1):
        folded = _folded(field, vertices, triangles, spacing)
        if not len(folded):
            return vertices
        if attempt < UNFOLDINGS:
            moved = np.unique(triangles[np.isin(triangles, triangles[folded]).any(axis=1)])
            for _ in range(1 + attempt // 2):
                vertices = vertices.copy()
                vertices[moved] = (average @ vertices)[moved]
            vertices[moved] = onto_surface(field, vertices[moved], 0.2 * spacing, rounds=1)
    where = vertices[triangles[folded[0], 0]]
    raise SoftrigError(f"sculpture: {len(folded)} triangles face inwards, the first near {where.round(3)}")


def _folded(field: Field, vertices: np.ndarray, triangles: np.ndarray, spacing: float) -> np.ndarray:
    """Indices of the triangles that face against the field's gradient at their corners."""
    corners = vertices[triangles]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    slopes = gradient(field, vertices, 0.1 * spacing)[triangles].sum(axis=1)
    return np.nonzero((facing * slopes).sum(axis=1) <= 0.0)[0]
