"""Smooth regions of a body around handles: bounded biharmonic weights (Jacobson et al. 2011).

A handle is a point, a segment or a bone. Each gets a weight per mesh vertex in 0 … 1: 1 on the handle,
0 on all others, smooth between; over all handles the weights sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from softrig.errors import InputError, notice
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.bones import checked_segments, crossed_tets_of
from softrig.meshing.embedding import require_tets

ITERATIONS = 30
"""Rounds of the active-set solver; more change weights in the third digit."""


@dataclass(frozen=True)
class Handle:
    """What a region grows around: a segment from `head` to `tail` in metres, a point where they agree."""

    name: str
    head: tuple[float, float, float]
    tail: tuple[float, float, float]

    @classmethod
    def point(cls, name: str, place: Sequence[float] | np.ndarray) -> Handle:
        """A handle at one place, metres."""
        return cls.segment(name, place, place)

    @classmethod
    def segment(cls, name: str, head: Sequence[float] | np.ndarray, tail: Sequence[float] | np.ndarray) -> Handle:
        """A handle along a segment, metres."""
        ends = checked_segments(np.array([[head, tail]]), f"handle {name!r}")[0]
        return cls(name, tuple(ends[0].tolist()), tuple(ends[1].tolist()))

    @classmethod
    def bone(cls, bone: tuple[str, np.ndarray, np.ndarray, int]) -> Handle:
        """A handle along a bone as `Character.bones()` lists them: name, head, tail, node."""
        return cls.segment(bone[0], bone[1], bone[2])


@dataclass(frozen=True)
class Regions:
    """Weights of handles over the vertices of a mesh."""

    names: tuple[str, ...]
    weights: np.ndarray
    """(n, k) float64 in 0 … 1, each row sums to one."""
    handle_of_vertex: np.ndarray
    """(n,) int32 the handle on which a vertex lies, −1 between them."""


def region_weights(mesh: VolumeMesh, handles: Sequence[Handle], *, smooth: bool = True) -> Regions:
    """Weights of `handles` over the vertices of a tet mesh.

    Biharmonic and bounded if `smooth`; otherwise harmonic over the mesh's edges, which is one sparse
    solve for all handles, bounded by itself, and has a crease at each handle.
    """
    require_tets(mesh, "region_weights")
    names = tuple(handle.name for handle in handles)
    if not names or len(set(names)) != len(names):
        raise InputError(f"regions need at least one handle and different names, got {names}")
    owner = _handle_vertices(mesh, handles)
    parts = _vertex_parts(mesh)
    weights = np.zeros((len(mesh.vertices), len(names)))
    for part in np.unique(parts):
        members = np.nonzero(parts == part)[0]
        present = np.unique(owner[members])
        present = present[present >= 0]
        if len(present) < 2:
            alone = present[0] if len(present) else _nearest_handle(mesh.vertices[members].mean(axis=0), handles)
            weights[members, alone] = 1.0
            continue
        weights[np.ix_(members, present)] = _part_weights(mesh, members, present, owner, smooth)
    return Regions(names, weights, owner.astype(np.int32))


def _handle_vertices(mesh: VolumeMesh, handles: Sequence[Handle]) -> np.ndarray:
    """(n,) the handle each vertex lies on, −1 for none; where several cross, the nearest."""
    segments = checked_segments(np.array([[handle.head, handle.tail] for handle in handles]), "handles")
    distances = np.stack([_distances(mesh.vertices, head, tail) for head, tail in segments], axis=1)
    touched = np.zeros(distances.shape, np.bool_)
    for k, crossed in enumerate(crossed_tets_of(mesh, segments)):
        touched[mesh.elements[crossed], k] = True
        if not touched[:, k].any():
            touched[distances[:, k].argmin(), k] = True
    best = np.where(touched, distances, np.inf).argmin(axis=1)
    owner = np.where(touched.any(axis=1), best, -1)
    crowded = []
    for k in np.nonzero(np.bincount(owner[owner >= 0], minlength=len(handles)) == 0)[0].tolist():
        counts = np.bincount(owner[owner >= 0], minlength=len(handles))
        order = np.argsort(distances[:, k], kind="stable")
        spare = order[(owner[order] < 0) | (counts[owner[order]] > 1)]
        if len(spare):
            owner[spare[0]] = k
        else:
            crowded.append(k)
    if crowded:
        notice("handles without a mesh vertex of their own: their regions are empty", crowded)
    return owner


def _distances(points: np.ndarray, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    along = tail - head
    squared = float(along @ along)
    share = np.clip((points - head) @ along / squared, 0.0, 1.0) if squared > 0.0 else np.zeros(len(points))
    return np.asarray(np.linalg.norm(points - head - share[:, None] * along, axis=1))


def _nearest_handle(place: np.ndarray, handles: Sequence[Handle]) -> int:
    reach = [_distances(place[None], np.array(handle.head), np.array(handle.tail))[0] for handle in handles]
    return int(np.argmin(reach))


def _vertex_parts(mesh: VolumeMesh) -> np.ndarray:
    """(n,) component of each vertex over the mesh's edges."""
    return connected_components(_edge_graph(mesh.elements, mesh.vertices), directed=False)[1]


def _edge_graph(tets: np.ndarray, vertices: np.ndarray) -> csr_array:
    """(n, n) symmetric: one over the length of each edge."""
    ends = np.unique(np.sort(tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2), axis=1), axis=0)
    strength = 1.0 / np.linalg.norm(vertices[ends[:, 0]] - vertices[ends[:, 1]], axis=1)
    graph = coo_array((strength, (ends[:, 0], ends[:, 1])), shape=(len(vertices),) * 2)
    return (graph + graph.T).tocsr()


def _part_weights(
    mesh: VolumeMesh, members: np.ndarray, present: np.ndarray, owner: np.ndarray, smooth: bool
) -> np.ndarray:
    """(members, present) weights within one connected part."""
    local = np.full(len(mesh.vertices), -1)
    local[members] = np.arange(len(members))
    tets = local[mesh.elements[np.isin(mesh.elements[:, 0], members)]]
    vertices = mesh.vertices[members]
    held = np.nonzero(owner[members] >= 0)[0]
    targets = (owner[members][held, None] == present).astype(np.float64)
    weights = _biharmonic(vertices, tets, held, targets) if smooth else _harmonic(vertices, tets, held, targets)
    sums = weights.sum(axis=1, keepdims=True)
    if not (np.isfinite(weights).all() and (sums > 0.1).all()):
        notice("bounded biharmonic weights failed: harmonic ones are used")
        weights = _harmonic(vertices, tets, held, targets)
        sums = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / sums)


def _biharmonic(vertices: np.ndarray, tets: np.ndarray, held: np.ndarray, targets: np.ndarray) -> np.ndarray:
    import igl

    # Unit size: the solver's thresholds are absolute.
    scaled = (vertices - vertices.mean(axis=0)) / max(float(np.ptp(vertices, axis=0).max()), 1e-300)
    weights = igl.bbw(
        np.ascontiguousarray(scaled),
        np.ascontiguousarray(tets, np.int64),
        held.astype(np.int64),
        np.ascontiguousarray(targets),
        max_iter=ITERATIONS,
    )
    weights = np.clip(np.asarray(weights), 0.0, 1.0)
    weights[held] = targets
    return weights


def _harmonic(vertices: np.ndarray, tets: np.ndarray, held: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Positive edge weights make the maximum principle hold: 0 … 1 and a sum of one come by themselves."""
    graph = _edge_graph(tets, vertices)
    laplacian = (diags_array(np.asarray(graph.sum(axis=1)).ravel()) - graph).tocsr()
    free = np.setdiff1d(np.arange(len(vertices)), held)
    weights = np.zeros((len(vertices), targets.shape[1]))
    weights[held] = targets
    if len(free):
        inner = laplacian[free][:, free].tocsc()
        weights[free] = splu(inner).solve(np.asarray(-laplacian[free][:, held] @ targets))
    return np.clip(weights, 0.0, 1.0)
