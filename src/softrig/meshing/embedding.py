"""Points in tets: in which one each lies, and its barycentric weights there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from softrig.errors import InputError, require_finite
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.soup_tree import build_tree, nearest_points

ON_THE_FACE = 1e-9
"""A weight above minus this counts as inside: rounding on a shared face must not make a hole."""

MOST_BUCKETS = 1 << 20


@dataclass(frozen=True)
class TetEmbedding(Embedding):
    """An `Embedding` in tets that knows which tet carries each point and which points lie outside."""

    tets: np.ndarray
    """(m,) int32 the tet of each point, the nearest one for points outside."""
    outside: np.ndarray
    """(m,) bool: in no tet. Such a point has weights below 0 and follows its tet's own linear motion."""

    @property
    def smallest_weight(self) -> float:
        """The lowest barycentric weight: 0 or more if every point is in a tet, −0.6 is usual for a character."""
        return float(self.weights.min(initial=1.0))

    @property
    def share_outside(self) -> float:
        """The share of points outside all tets."""
        return float(self.outside.mean()) if len(self.outside) else 0.0


def embed_points(mesh: VolumeMesh, points: np.ndarray) -> TetEmbedding:
    """Carry `points` (m, 3), metres, by the tets of `mesh`: barycentric, the nearest tet where there is none.

    Positions are reproduced to rounding and linear fields exactly, inside or not.
    """
    require_tets(mesh, "embed_points")
    queries = np.ascontiguousarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3:
        raise InputError(f"points must have shape (m, 3), got {queries.shape}")
    require_finite(queries, "points to embed")
    buckets = _buckets(mesh.vertices, mesh.elements)
    tets = _find(mesh.vertices, mesh.elements, *buckets, queries)
    outside = tets < 0
    tets[outside] = _nearest_tets(mesh, queries[outside])
    weights = barycentric_weights(mesh.vertices[mesh.elements[tets]], queries)
    return TetEmbedding(mesh.elements[tets], weights, tets.astype(np.int32), outside)


def require_tets(mesh: VolumeMesh, what: str) -> None:
    """Raise an `InputError` unless `mesh` is made of tets."""
    if mesh.elements.shape[1] != 4:
        raise InputError(f"{what} needs tets, not bricks of {mesh.elements.shape[1]} corners")


def barycentric_weights(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(m, 4) weights of `points` (m, 3) in tets with `corners` (m, 4, 3); rows sum to one."""
    origin = corners[:, 0]
    edges = np.stack([corners[:, k] - origin for k in (1, 2, 3)], axis=2)
    target = (points - origin)[..., None]
    rest = np.linalg.solve(edges, target)
    # One step of refinement keeps flat tets exact to rounding.
    rest = (rest + np.linalg.solve(edges, target - edges @ rest))[..., 0]
    return np.concatenate([1.0 - rest.sum(axis=1, keepdims=True), rest], axis=1)


def _buckets(vertices: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray, np.ndarray]:
    """A grid over the mesh and the tets whose boxes meet each of its cells: origin, size, counts, starts, members."""
    corners = vertices[tets]
    low, high = corners.min(axis=1), corners.max(axis=1)
    origin, extent = vertices.min(axis=0), np.ptp(vertices, axis=0)
    size = max(float((high - low).mean()), float(extent.max()) * 1e-6)
    counts = np.maximum(np.ceil(extent / size), 1.0)
    if counts.prod() > MOST_BUCKETS:
        size *= float((counts.prod() / MOST_BUCKETS) ** (1 / 3)) * 1.5
        counts = np.maximum(np.ceil(extent / size), 1.0)
    shape = counts.astype(np.int64)
    first = np.clip(np.floor((low - origin) / size - 1e-6), 0, shape - 1).astype(np.int64)
    last = np.clip(np.floor((high - origin) / size + 1e-6), 0, shape - 1).astype(np.int64)
    starts, members = _fill_buckets(first, last, shape)
    return origin, size, shape, starts, members


@njit(cache=True)
def _fill_buckets(first: np.ndarray, last: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = np.zeros(shape[0] * shape[1] * shape[2] + 1, np.int64)
    members = np.empty(0, np.int64)
    for fill in range(2):
        for t in range(len(first)):
            for i in range(first[t, 0], last[t, 0] + 1):
                for j in range(first[t, 1], last[t, 1] + 1):
                    for k in range(first[t, 2], last[t, 2] + 1):
                        cell = (i * shape[1] + j) * shape[2] + k
                        if fill == 0:
                            starts[cell + 1] += 1
                        else:
                            members[starts[cell]] = t
                            starts[cell] += 1
        if fill == 0:
            starts = np.cumsum(starts)
            members = np.empty(starts[-1], np.int64)
    for cell in range(len(starts) - 1, 0, -1):
        starts[cell] = starts[cell - 1]
    starts[0] = 0
    return starts, members


@njit(cache=True)
def _find(
    vertices: np.ndarray,
    tets: np.ndarray,
    origin: np.ndarray,
    size: float,
    shape: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    queries: np.ndarray,
) -> np.ndarray:
    """(m,) the tet in which each query lies deepest, −1 for none."""
    result = np.full(len(queries), -1)
    for q in range(len(queries)):
        cell, beyond = 0, False
        for d in range(3):
            place = (queries[q, d] - origin[d]) / size
            beyond = beyond or place < -1e-6 or place > shape[d] + 1e-6
            cell = cell * shape[d] + min(max(int(np.floor(place)), 0), shape[d] - 1)
        if beyond:
            continue
        best = -ON_THE_FACE
        for slot in range(starts[cell], starts[cell + 1]):
            t = members[slot]
            depth = _smallest_weight(vertices, tets[t], queries[q])
            if depth >= best:
                best = depth
                result[q] = t
    return result


@njit(cache=True)
def _smallest_weight(vertices: np.ndarray, tet: np.ndarray, point: np.ndarray) -> float:
    a, b, c, d = vertices[tet[0]], vertices[tet[1]], vertices[tet[2]], vertices[tet[3]]
    whole = _six_volumes(a, b, c, d)
    one, two = _six_volumes(point, b, c, d), _six_volumes(a, point, c, d)
    three, four = _six_volumes(a, b, point, d), _six_volumes(a, b, c, point)
    return min(one, two, three, four) / whole


@njit(cache=True)
def _six_volumes(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    wx, wy, wz = d[0] - a[0], d[1] - a[1], d[2] - a[2]
    return ux * (vy * wz - vz * wy) + uy * (vz * wx - vx * wz) + uz * (vx * wy - vy * wx)


def _nearest_tets(mesh: VolumeMesh, queries: np.ndarray) -> np.ndarray:
    """(q,) tet nearest to each query outside the mesh: the one behind the nearest boundary triangle."""
    if not len(queries):
        return np.zeros(0, np.int64)
    faces, owners = boundary_owners(mesh.elements)
    triangle = nearest_points(build_tree(mesh.vertices, faces), queries, np.inf)[1]
    return owners[triangle]


def boundary_owners(tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f, 3) faces with a tet on one side only, outward, and (f,) that tet."""
    faces = tets[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    keys = np.sort(faces, axis=1)
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    single = np.sort(first[counts == 1])
    return faces[single], single // 4
