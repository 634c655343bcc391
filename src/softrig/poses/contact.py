"""Self-contact at a pose (PSSD Section 6): which vertices of the posed tets' surface press against which other part.

A vertex is in contact where another part of the surface, far from it at rest, faces it closer than a gap, or where it
lies inside that part. Neighbours in a crease are near at rest and do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.spatial import cKDTree

from softrig.errors import InputError, require_finite
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.soup_tree import nearest_on_triangle
from softrig.poses.fit import mean_edge

GAP = 0.15
"""Cells: surfaces closer than this touch."""
DEEPEST = 2.0
"""Cells: how far into another part a vertex may lie and still be found in contact with its skin."""
APART = 4.0
"""Cells: how far apart at rest two places must be for their contact to count."""
FACING = -0.2
"""Largest cosine between the two surfaces' normals: they must look at each other."""
BLUR = 0.25
"""Cells: over about this far the normal of the other surface is averaged."""
OUTSIDE = 1e-3
"""Cells: how far along its own normal a vertex is moved before it is asked whether it lies inside: off its own skin."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """c contact vertices of a tet mesh at one pose."""

    vertices: np.ndarray
    """(c,) int64 tet vertices, ascending."""
    normals: np.ndarray
    """(c, 3) unit, world: out of the part the vertex presses against, towards the vertex' own."""
    sliding: np.ndarray
    """(c,) bool: free to move in the plane of contact (Nᵀu = 0); False: held in all directions (u = 0)."""
    depths: np.ndarray
    """(c,) metres inside the other part; below zero: a gap."""
    triangles: np.ndarray
    """(c, 3) int64 tet vertices of the triangle each one touches."""

    def __len__(self) -> int:
        return len(self.vertices)

    @property
    def deepest(self) -> float:
        """Metres: the deepest penetration, 0 where there is none."""
        return float(max(self.depths.max(initial=0.0), 0.0))

    def summary(self) -> str:
        """One line for a report."""
        inside = int((self.depths > 0.0).sum())
        return f"{len(self)} contact vertices, {inside} of them inside, up to {1e3 * self.deepest:.2g} mm deep"


def self_contacts(
    mesh: VolumeMesh,
    posed: np.ndarray,
    rest: np.ndarray | None = None,
    *,
    gap: float = GAP,
    depth: float = DEEPEST,
    apart: float = APART,
    fixed_beyond: float | None = None,
) -> Contacts:
    """Contacts of the boundary of `mesh` at positions `posed` (n, 3), metres; `rest` (n, 3), default: the mesh's own.

    `gap`, `depth` and `apart` in cells, the mean edge of a tet: within the gap surfaces touch; deeper inside than
    `depth` nothing is looked for; places nearer than `apart` at rest do not count. All contacts slide, but for those
    deeper than `fixed_beyond` cells, if it is given: firmly pressed flesh does not slide. −∞ holds all of them.
    """
    posed = np.ascontiguousarray(posed, dtype=np.float64)
    rest = mesh.vertices if rest is None else np.ascontiguousarray(rest, dtype=np.float64)
    if posed.shape != mesh.vertices.shape or rest.shape != mesh.vertices.shape:
        raise InputError(
            f"the mesh has {len(mesh.vertices)} vertices, not {posed.shape} posed and {rest.shape} at rest"
        )
    require_finite(posed, "posed tet vertices")
    cell, faces = mean_edge(mesh), mesh.boundary_triangles.astype(np.int64)
    skin = np.unique(faces)
    normals = _vertex_normals(posed, faces)
    inside = _inside(posed, faces, posed[skin] + OUTSIDE * cell * normals[skin])
    reach = np.where(inside, depth, gap) * cell
    sides = np.where(inside, -1.0, 1.0)
    triangle, distance, direction = _nearest_facing(
        posed, rest, faces, skin, normals[skin], sides, reach, apart * cell, BLUR * cell
    )
    hit = np.flatnonzero(triangle >= 0)
    depths = np.where(inside, distance, -distance)[hit]
    sliding = np.ones(len(hit), dtype=bool)
    if fixed_beyond is not None:
        sliding = depths <= fixed_beyond * cell
    return Contacts(skin[hit], direction[hit], sliding, depths, faces[triangle[hit]])


def self_overlap(mesh: VolumeMesh, posed: np.ndarray) -> float:
    """Cubic metres that two parts of the body share at positions `posed` (n, 3): where its boundary winds around twice.

    Asked at four points of each tet, which stand for a quarter of it each. Both parts have tets there, so half counts.
    """
    corners = np.asarray(posed, dtype=np.float64)[mesh.elements]
    near, far = (5.0 + 3.0 * np.sqrt(5.0)) / 20.0, (5.0 - np.sqrt(5.0)) / 20.0
    points = far * corners.sum(axis=1, keepdims=True) + (near - far) * corners
    twice = _winding(posed, mesh.boundary_triangles.astype(np.int64), points.reshape(-1, 3)) > 1.5
    volumes = np.abs(np.linalg.det(corners[:, :3] - corners[:, 3:])) / 6.0
    return float(0.5 * volumes @ twice.reshape(-1, 4).mean(axis=1))


def _inside(posed: np.ndarray, faces: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """(q,) bool: whether the posed boundary winds around each query."""
    return _winding(posed, faces, queries) > 0.5


def _winding(posed: np.ndarray, faces: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """(q,) how many times the posed boundary winds around each query."""
    import igl

    return np.asarray(igl.fast_winding_number(np.ascontiguousarray(posed), faces, np.ascontiguousarray(queries)))


def _vertex_normals(posed: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(n, 3) unit normals, outward, area-weighted; zero off the surface."""
    areas = _area_vectors(posed, faces)
    normals = np.zeros_like(posed)
    for corner in range(3):
        np.add.at(normals, faces[:, corner], areas)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


def _area_vectors(posed: np.ndarray, faces: np.ndarray) -> np.ndarray:
    corners = posed[faces]
    return np.asarray(0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))


def _nearest_facing(
    posed: np.ndarray,
    rest: np.ndarray,
    faces: np.ndarray,
    skin: np.ndarray,
    normals: np.ndarray,
    sides: np.ndarray,
    reach: np.ndarray,
    apart: float,
    blur: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each skin vertex the nearest triangle (−1: none) that faces it within its reach and was far at rest.

    With its distance and a normal (3,). `sides` (+1 or −1): the triangle lies before the vertex, or behind it for one
    inside. The normal is the mean of all such triangles about there, nearer ones counting more: a lattice's surface is
    bumpy.
    """
    centres = posed[faces].mean(axis=1)
    radii = np.linalg.norm(posed[faces] - centres[:, None], axis=2).max(axis=1)
    lists = cKDTree(centres).query_ball_point(posed[skin], reach + radii.max())
    starts = np.concatenate([[0], np.cumsum([len(found) for found in lists])])
    candidates = np.fromiter((t for found in lists for t in sorted(found)), np.int64, int(starts[-1]))
    areas = _area_vectors(posed, faces)
    return _choose(
        posed[skin],
        rest[skin],
        normals,
        sides,
        reach,
        starts,
        candidates,
        np.ascontiguousarray(posed[faces]),
        rest[faces].mean(axis=1),
        areas,
        apart,
        blur,
    )


@njit(cache=True)
def _choose(
    points: np.ndarray,
    rest_points: np.ndarray,
    normals: np.ndarray,
    sides: np.ndarray,
    reach: np.ndarray,
    starts: np.ndarray,
    candidates: np.ndarray,
    corners: np.ndarray,
    rest_centres: np.ndarray,
    areas: np.ndarray,
    apart: float,
    blur: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = points.shape[0]
    chosen = np.full(count, -1, np.int64)
    distances = np.full(count, np.inf)
    directions = np.zeros((count, 3))
    near = np.empty(3)
    for v in range(count):
        total = np.zeros(3)
        for k in range(starts[v], starts[v + 1]):
            t = candidates[k]
            size = np.sqrt(areas[t, 0] ** 2 + areas[t, 1] ** 2 + areas[t, 2] ** 2)
            away, cosine = 0.0, 0.0
            for d in range(3):
                away += (rest_points[v, d] - rest_centres[t, d]) ** 2
                cosine += normals[v, d] * areas[t, d]
            if away < apart * apart or cosine > FACING * size:
                continue
            square = nearest_on_triangle(corners[t], points[v], near)
            distance = np.sqrt(square)
            ahead = 0.0
            for d in range(3):
                ahead += sides[v] * normals[v, d] * (near[d] - points[v, d])
            if distance > reach[v] or ahead < -0.5 * distance:
                continue
            share = 1.0 / (square + blur * blur)
            for d in range(3):
                total[d] += share * areas[t, d]
            if distance < distances[v]:
                distances[v], chosen[v] = distance, t
        length = np.sqrt(total[0] ** 2 + total[1] ** 2 + total[2] ** 2)
        if chosen[v] >= 0 and length > 0.0:
            for d in range(3):
                directions[v, d] = total[d] / length
        else:
            chosen[v] = -1
    return chosen, distances, directions
