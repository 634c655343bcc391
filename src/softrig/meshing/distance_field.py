"""A signed distance to any triangle soup: inside is where it winds around by more than half a turn.

The magnitude is the distance to the nearest triangle, so the field jumps where a hole is bridged;
whoever looks for its zero must bisect rather than trust its slope.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.errors import EmptyMeshError
from softrig.meshing.soup_tree import SoupTree, build_tree, nearest_points, winding_numbers
from softrig.meshing.voxels import _checked_soup, _is_closed, _winding_faces

PEEK = 1e-5
"""How far from a triangle its two sides are looked at, of the soup's size."""


@dataclass(frozen=True)
class SurfaceField:
    """A soup moved into a box of size one about the origin, and what can be asked of it.

    All lengths here are in units of `scale`; a point p in metres is (p − middle) / scale.
    """

    points: np.ndarray
    """(n, 3) the soup's vertices."""
    faces: np.ndarray
    """(m, 3) triangles with area, each place once, none with the inside on both sides."""
    normals: np.ndarray
    """(m, 3) unit normals, away from the inside where there is one."""
    sheet: np.ndarray
    """(m,) bool: no inside on either side of the triangle."""
    middle: np.ndarray
    """(3,) metres."""
    scale: float
    """Metres: the longest side of the soup's box."""
    closed: bool
    """Whether the triangles have no border."""
    overlapping: bool
    """Whether some of the inside is wound around more than once."""
    area: float
    """Sum of the triangles' areas."""
    signed_volume: float
    """By the divergence theorem: overlaps count twice, holes as if coned from the origin."""
    near: SoupTree
    """For distances: over `faces`."""
    around: SoupTree
    """For winding numbers: a pair that faces both ways has cancelled."""

    @classmethod
    def of(cls, vertices: np.ndarray, triangles: np.ndarray) -> SurfaceField:
        """The field of a soup (n, 3) metres, (m, 3); raises an `InputError` that names what is wrong."""
        metres, faces = _checked_soup(vertices, triangles)
        used = metres[np.unique(faces)]
        low, high = used.min(axis=0), used.max(axis=0)
        scale = float((high - low).max())
        if scale == 0.0:
            raise EmptyMeshError("all triangles lie in one point: there is no body")
        middle = 0.5 * low + 0.5 * high
        points = (metres - middle) / scale
        kept = _different_faces(points, faces)
        if not len(kept):
            raise EmptyMeshError("no triangle has an area: there is no body")
        walls = _winding_faces(points, faces)
        around = build_tree(points, walls)
        skin, normals, sheet, overlapping = _skin(points, kept, walls, around)
        return cls(
            points=points,
            faces=skin,
            normals=normals,
            sheet=sheet,
            middle=middle,
            scale=scale,
            closed=_is_closed(walls),
            overlapping=overlapping,
            area=float(np.linalg.norm(_area_vectors(points, skin), axis=1).sum()),
            signed_volume=float(np.einsum("td,td->", points[walls[:, 0]], _area_vectors(points, walls)) / 3.0),
            near=build_tree(points, skin),
            around=around,
        )

    @cached_property
    def pieces(self) -> int:
        """How many pieces the triangles form that share vertices: the body has at most so many parts."""
        corners = self.faces
        one, other = corners[:, [0, 1]].ravel(), corners[:, [1, 2]].ravel()
        graph = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(len(self.points),) * 2)
        labels = connected_components(graph, directed=False)[1]
        return len(np.unique(labels[corners]))

    def windings(self, queries: np.ndarray) -> np.ndarray:
        """(q,) winding number about each query."""
        return winding_numbers(self.around, np.ascontiguousarray(queries))

    def inside(self, queries: np.ndarray) -> np.ndarray:
        """(q,) bool: wound around by more than half a turn, either way (a soup may be inside out)."""
        return np.asarray(np.abs(self.windings(queries)) > 0.5)

    def distances(self, queries: np.ndarray, bound: float = np.inf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distance (q,), triangle (q,) and nearest point (q, 3); `bound` and −1 where further than `bound`."""
        return nearest_points(self.near, np.ascontiguousarray(queries), bound)

    def signed(self, queries: np.ndarray, bound: float = np.inf, known: np.ndarray | None = None) -> np.ndarray:
        """(q,) distance to the surface, positive inside, at most `bound` in size.

        `known` (q,) is 1 or −1 where the sign is known already, 0 elsewhere: winding numbers cost most.
        """
        distances = self.distances(queries, bound)[0]
        signs = np.zeros(len(queries)) if known is None else known.astype(np.float64)
        asked = signs == 0.0
        signs[asked] = np.where(self.inside(queries[asked]), 1.0, -1.0)
        return signs * distances

    def local(self, metres: np.ndarray) -> np.ndarray:
        """Points in metres in the units of this field."""
        return (np.asarray(metres, np.float64) - self.middle) / self.scale

    def metres(self, local: np.ndarray) -> np.ndarray:
        """Points of this field's units in metres."""
        return local * self.scale + self.middle


def both_sides(around: SoupTree, places: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q,) bool whether it is inside just below and just above surface points with these normals."""
    below, above = (
        np.abs(winding_numbers(around, np.ascontiguousarray(places + side * PEEK * normals))) > 0.5
        for side in (-1.0, 1.0)
    )
    return below, above


def _area_vectors(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(m, 3) normals as long as the triangles are large."""
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return 0.5 * np.cross(b - a, c - a)


def _skin(
    points: np.ndarray, faces: np.ndarray, walls: np.ndarray, around: SoupTree
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """The triangles on the border of the inside, their outward normals, which are sheets; and if parts overlap.

    Where parts of a character overlap (a body in its clothes), the buried walls are no surface, and
    the body must not look thin because of them.
    """
    areas = _area_vectors(points, faces)
    normals = areas / np.linalg.norm(areas, axis=1, keepdims=True)
    corners = points[faces]
    drop = _winding_drops(faces, walls)

    def sides(which: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # One winding number a place: across a triangle it drops by one.
        below = winding_numbers(around, np.ascontiguousarray(places - PEEK * normals[which]))
        return below, below - drop[which]

    below, above = sides(np.arange(len(faces)), corners.mean(axis=1))
    overlapping = bool((np.maximum(np.abs(below), np.abs(above)) > 1.5).any())
    solid_below, solid_above = np.abs(below) > 0.5, np.abs(above) > 0.5
    buried = solid_below & solid_above
    for corner in range(3):
        still = np.nonzero(buried)[0]
        one, other = sides(still, 0.8 * corners[still, corner] + 0.2 * corners[still].mean(axis=1))
        buried[still] = (np.abs(one) > 0.5) & (np.abs(other) > 0.5)
    if buried.all():
        buried[:] = False
    normals = np.where((solid_above & ~solid_below)[:, None], -normals, normals)
    return faces[~buried], normals[~buried], (~solid_below & ~solid_above)[~buried], overlapping


def _winding_drops(faces: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """(m,) by how much the winding number drops across each face along its normal: 1, −1 turned, 0 cancelled."""
    every = np.concatenate([walls, faces])
    order = np.argsort(every, axis=1)
    turn = np.where((order[:, 1] - order[:, 0]) % 3 == 1, 1.0, -1.0)
    keys, which = np.unique(np.take_along_axis(every, order, axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    facing = np.zeros(len(keys))
    facing[which[: len(walls)]] = turn[: len(walls)]
    return facing[which[len(walls) :]] * turn[len(walls) :]


def _different_faces(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """The triangles that have an area, one of each set with the same corners."""
    _, first_there, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    welded = first_there[place.reshape(-1)][faces]
    a, b, c = (points[welded[:, corner]] for corner in range(3))
    welded = welded[np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-300]
    first = np.unique(np.sort(welded, axis=1), axis=0, return_index=True)[1]
    return welded[np.sort(first)]
