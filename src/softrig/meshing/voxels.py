"""Any triangle soup as axis-aligned bricks that carry it (the voxel path of StVK05, section 3.1).

A cube of the grid becomes a brick where a triangle touches it, or where the soup winds around its
centre. Neither asks the soup to be closed, manifold or consistent; the more it is, the more of its
inside is filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.ndimage import label
from scipy.spatial import cKDTree

from softrig.errors import EmptyMeshError, IndexRangeError, InputError, notice, require_finite
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import BRICK_CORNERS
from softrig.meshing.overlap import mark_touched_cells

MOST_CELLS = 1 << 26
"""Largest grid in cubes, kept or not: labelling its rooms takes about half a gigabyte."""

MOST_BRICKS = 1 << 21
"""Most bricks: checking and integrating over them takes about two kilobytes each."""

WINDING_BATCH = 1 << 20
"""Winding numbers asked for at once: bounds the memory of a fine grid."""


@dataclass(frozen=True)
class Voxelisation:
    """Bricks made from a soup of triangles, and the soup's vertices embedded in them."""

    mesh: VolumeMesh
    """The bricks."""
    embedding: Embedding
    """The soup's vertices, each in the brick around it."""
    voxel_size: float
    """Edge of a brick, metres."""
    cells: np.ndarray
    """(e, 3) int32 place of each brick in the grid, in lexicographic order."""
    parts: np.ndarray
    """(e,) int32 face-connected part of each brick; part 0 has the most bricks."""
    origin: np.ndarray
    """(3,) corner of cell (0, 0, 0), metres."""

    @property
    def part_count(self) -> int:
        """How many face-connected parts there are."""
        return int(self.parts.max()) + 1


@dataclass(frozen=True)
class _Grid:
    """Cubes around a soup's box, centred on it so that a symmetric soup meets symmetric cubes."""

    origin: np.ndarray
    size: float
    counts: tuple[int, int, int]


def voxelise(
    vertices: np.ndarray,
    triangles: np.ndarray,
    *,
    resolution: int | None = None,
    voxel_size: float | None = None,
    bricks: int | None = None,
) -> Voxelisation:
    """Turn a triangle soup into bricks that carry it.

    `vertices` (n, 3) in metres, `triangles` (m, 3) vertex indices. Say how fine in exactly one way:
    `resolution`, cubes along the longest side of the soup's box; `voxel_size`, the cube's edge in
    metres; or `bricks`, about how many to make. Triangles may be open, doubled, flipped, crossing
    or without area. A vertex of no triangle does not shape the body; it follows the nearest brick.
    """
    points, faces = _checked_soup(vertices, triangles)
    if sum(choice is not None for choice in (resolution, voxel_size, bricks)) != 1:
        raise InputError("give exactly one of resolution, voxel_size and bricks")
    if bricks is not None:
        resolution = resolution_for_bricks(points, faces, bricks)
    grid = _grid_around(points[np.unique(faces)], resolution, voxel_size)
    kept = _kept_cells(points, faces, grid)
    if (count := int(np.count_nonzero(kept))) > MOST_BRICKS:
        raise InputError(f"{count} bricks are above the limit of {MOST_BRICKS}: use larger cubes")
    cells = np.argwhere(kept).astype(np.int32)
    mesh = _brick_mesh(cells, grid)
    parts = _face_connected_parts(kept, cells)
    return Voxelisation(mesh, _embed(points, mesh, cells, grid), grid.size, cells, parts, grid.origin)


def resolution_for_bricks(vertices: np.ndarray, triangles: np.ndarray, bricks: int) -> int:
    """The resolution (cubes along the longest side) whose number of bricks is nearest to `bricks`.

    Bricks grow with resolution on the whole but not step by step, so the neighbours of the crossing
    found by bisection are tried as well.
    """
    if bricks < 1:
        raise InputError(f"a body needs at least one brick, not {bricks}")
    if bricks > MOST_BRICKS:
        raise InputError(f"{bricks} bricks are above the limit of {MOST_BRICKS}")
    points, faces = _checked_soup(vertices, triangles)
    counted: dict[int, int] = {}

    def count(resolution: int) -> int:
        if resolution not in counted:
            grid = _grid_around(points[np.unique(faces)], resolution, None)
            counted[resolution] = int(_kept_cells(points, faces, grid).sum())
        return counted[resolution]

    low, high = 1, 2
    while count(high) < bricks:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < bricks else (low, middle)
    for near in range(max(1, low - 2), high + 3):
        count(near)
    return min(sorted(counted), key=lambda resolution: abs(counted[resolution] - bricks))


def _checked_soup(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The soup as float64 (n, 3) and int64 (m, 3), or the error that says what is wrong with it."""
    points = np.ascontiguousarray(vertices, dtype=np.float64)
    faces = np.asarray(triangles)
    if points.size == 0 or faces.size == 0:
        raise EmptyMeshError(f"a soup of {len(points)} vertices and {len(faces)} triangles has no body")
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"vertices must have shape (n, 3), got {points.shape}")
    if faces.ndim != 2 or faces.shape[1] != 3 or not np.issubdtype(faces.dtype, np.integer):
        raise InputError(f"triangles must be integers of shape (m, 3), got {faces.dtype} {faces.shape}")
    require_finite(points, "soup vertices")
    outside = ((faces < 0) | (faces >= len(points))).any(axis=1)
    if outside.any():
        raise IndexRangeError(f"triangles name vertices outside 0 to {len(points) - 1}", np.nonzero(outside)[0])
    return points, np.ascontiguousarray(faces, dtype=np.int64)


def _grid_around(points: np.ndarray, resolution: int | None, voxel_size: float | None) -> _Grid:
    low, high = points.min(axis=0), points.max(axis=0)
    extent = high - low
    if resolution is not None:
        if resolution < 1:
            raise InputError(f"resolution must be at least one cube, not {resolution}")
        if extent.max() == 0.0:
            raise InputError("all triangles lie in one point: give a voxel_size, not a resolution")
        size = float(extent.max()) / resolution
    else:
        size = float(voxel_size) if voxel_size is not None else 0.0
        if not (np.isfinite(size) and size > 0.0):
            raise InputError(f"voxel_size must be a positive length in metres, not {voxel_size}")
    # The slack keeps a side of exactly n cubes from becoming n + 1 by rounding. Floats: no overflow.
    with np.errstate(over="ignore"):
        counts = np.maximum(np.ceil(extent / size - 1e-9), 1.0)
    cells = prod(counts.tolist())
    if cells > MOST_CELLS:
        sides = " × ".join(f"{n:.6g}" for n in counts)
        raise InputError(f"a grid of {sides} = {cells:.3g} cubes is above the limit of {MOST_CELLS}")
    nx, ny, nz = (int(n) for n in counts)
    return _Grid(0.5 * (low + high) - 0.5 * size * counts, size, (nx, ny, nz))


def _kept_cells(points: np.ndarray, faces: np.ndarray, grid: _Grid) -> np.ndarray:
    """Boolean grid of the cubes a triangle touches or the soup winds around."""
    local = (points - grid.origin) / grid.size
    kept = np.zeros(grid.counts, dtype=np.bool_)
    mark_touched_cells(local, faces, kept)
    walls = _winding_faces(local, faces)
    if len(walls):
        fill = _fill_rooms if _is_closed(walls) else _fill_cells
        fill(local, walls, kept)
    return kept


def _winding_faces(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """The triangles that count for the winding number, welded: each place once, none without area.

    A doubled triangle would count twice and make an open sheet look solid. A pair facing both ways
    cancels, as the wall between two bodies that share it must; only if everything is so paired is
    the soup taken as drawn two-sided, and one side is kept.
    """
    _, first_there, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    welded = first_there[place.reshape(-1)][faces]
    a, b, c = (points[welded[:, corner]] for corner in range(3))
    welded = welded[(np.cross(b - a, c - a) != 0.0).any(axis=1)]
    order = np.argsort(welded, axis=1)
    even = (order[:, 1] - order[:, 0]) % 3 == 1
    keys, first, copy = np.unique(
        np.take_along_axis(welded, order, axis=1), axis=0, return_index=True, return_inverse=True
    )
    facing = np.bincount(copy.reshape(-1), weights=np.where(even, 1.0, -1.0), minlength=len(keys))
    if not facing.any():
        return welded[first]
    return np.where(facing[:, None] > 0, keys, keys[:, ::-1])[facing != 0.0]


def _is_closed(faces: np.ndarray) -> bool:
    """Whether every edge is walked as often one way as the other: the faces then have no border."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    count = int(faces.max()) + 1
    there, back = edges @ np.array([count, 1]), edges @ np.array([1, count])
    return np.array_equal(np.sort(there), np.sort(back))


def _fill_rooms(points: np.ndarray, faces: np.ndarray, kept: np.ndarray) -> None:
    """Keep every room (untouched cubes joined by faces) that closed `faces` wind around.

    Around a closed surface the winding number changes only across it, so one cube answers for its
    whole room: this saves nearly all of the queries.
    """
    rooms, count = label(~kept)
    cell = np.zeros(count + 1, np.int64)
    for i, layer in enumerate(rooms):
        found, where = np.unique(layer, return_index=True)
        cell[found] = i * layer.size + where
    inside = np.zeros(count + 1, np.bool_)
    inside[1:] = _wound_around(points, faces, cell[1:], kept.shape)
    for i, layer in enumerate(rooms):
        kept[i] |= inside[layer]


def _fill_cells(points: np.ndarray, faces: np.ndarray, kept: np.ndarray) -> None:
    """Keep every untouched cube that open `faces` wind around by more than half a turn."""
    untouched = np.flatnonzero(~kept)
    flat = kept.reshape(-1)
    for start in range(0, len(untouched), WINDING_BATCH):
        batch = untouched[start : start + WINDING_BATCH]
        flat[batch] = _wound_around(points, faces, batch, kept.shape)


def _wound_around(points: np.ndarray, faces: np.ndarray, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Which of `cells` (flat numbers) have a winding number beyond a half, of either sign."""
    import igl

    if not len(cells):
        return np.zeros(0, np.bool_)
    centres = np.stack(np.unravel_index(cells, shape), axis=1) + 0.5
    return np.abs(igl.fast_winding_number(points, faces, centres)) > 0.5


def _brick_mesh(cells: np.ndarray, grid: _Grid) -> VolumeMesh:
    lattice = np.array(grid.counts) + 1
    corners = cells[:, None, :].astype(np.int64) + BRICK_CORNERS
    used, bricks = np.unique(np.ravel_multi_index(tuple(np.moveaxis(corners, -1, 0)), lattice), return_inverse=True)
    places = np.stack(np.unravel_index(used, lattice), axis=1)
    return VolumeMesh.build(grid.origin + grid.size * places, bricks.reshape(-1, 8).astype(np.int32))


def _face_connected_parts(kept: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(e,) part of each brick, largest part first; a notice if there are several."""
    labels = label(kept)[0][tuple(cells.T)] - 1
    sizes = np.bincount(labels)
    if len(sizes) == 1:
        return labels.astype(np.int32)
    by_size = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(sizes), np.int32)
    rank[by_size] = np.arange(len(sizes))
    parts = rank[labels]
    most = ", ".join(str(n) for n in sizes[by_size][:5]) + (", …" if len(sizes) > 5 else "")
    notice(
        f"{len(sizes)} parts share no face ({most} bricks): edges and corners between them are hinges;"
        " first brick of each smaller part",
        np.unique(parts, return_index=True)[1][1:],
    )
    return parts


def _embed(points: np.ndarray, mesh: VolumeMesh, cells: np.ndarray, grid: _Grid) -> Embedding:
    """Every point in the brick around it, or in the nearest one where there is none."""
    local = (points - grid.origin) / grid.size
    counts = np.array(grid.counts)
    inside = np.clip(np.floor(local), 0, counts - 1).astype(np.int64)
    flat = np.ravel_multi_index(tuple(cells.T.astype(np.int64)), grid.counts)
    wanted = np.ravel_multi_index(tuple(inside.T), grid.counts)
    brick = np.minimum(np.searchsorted(flat, wanted), len(flat) - 1)
    beyond = (np.abs(local - 0.5 * counts) > 0.5 * counts + 1e-9).any(axis=1)
    stray = np.nonzero((flat[brick] != wanted) | beyond)[0]
    if stray.size:
        brick[stray] = cKDTree(cells + 0.5).query(local[stray])[1]
    return Embedding(mesh.elements[brick], _trilinear_weights(local - cells[brick]))


def _trilinear_weights(local: np.ndarray) -> np.ndarray:
    """(m, 8) weights of a brick's corners at `local` (m, 3), cube coordinates.

    Outside the cube the weights go on along their tangent at the nearest point of the cube: still
    exact for the rest shape, and growing with the distance rather than with its third power.
    """
    nearest = np.clip(local, 0.0, 1.0)
    along = np.where(BRICK_CORNERS, nearest[:, None, :], 1.0 - nearest[:, None, :])
    weights = along.prod(axis=2)
    step = (local - nearest)[:, None, :] * np.where(BRICK_CORNERS, 1.0, -1.0)
    # Rounding at a cube's face leaves steps of 1e-13: not outside.
    step[np.abs(step) < 1e-9] = 0.0
    weights += step[..., 0] * along[..., 1] * along[..., 2]
    weights += step[..., 1] * along[..., 2] * along[..., 0]
    weights += step[..., 2] * along[..., 0] * along[..., 1]
    return weights
