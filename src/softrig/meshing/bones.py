"""What holds the flesh: tets that bones pass through, and surface painted stiff."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.errors import InputError, notice, require_finite
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.embedding import require_tets

TOUCH = 1e-9
"""How far outside a tet, in barycentric weight, a segment still touches it."""


def checked_segments(segments: np.ndarray, what: str = "segments") -> np.ndarray:
    """`segments` as float64 (b, 2, 3), or the `InputError` that says what is wrong."""
    array = np.ascontiguousarray(segments, dtype=np.float64)
    if array.ndim != 3 or array.shape[1:] != (2, 3):
        raise InputError(f"{what} must have shape (b, 2, 3), head and tail, got {array.shape}")
    require_finite(array, what)
    return array


def crossed_tets_of(mesh: VolumeMesh, segments: np.ndarray) -> np.ndarray:
    """(b, e) bool: which tets each of `segments` (b, 2, 3), metres, passes through or touches.

    A segment without length touches nothing: it is a helper of the rig, not a bone.
    """
    require_tets(mesh, "crossed_tets_of")
    return _crossed(mesh.vertices, mesh.elements, checked_segments(segments))


def fixed_vertices(mesh: VolumeMesh, segments: np.ndarray) -> np.ndarray:
    """(n,) bool: the vertices of every tet that one of `segments` (b, 2, 3), metres, passes through.

    Leaf joints need an end invented by the caller. A part of the mesh without any fixed vertex is
    free to fall: a notice names its first tet.
    """
    fixed = np.zeros(len(mesh.vertices), np.bool_)
    fixed[mesh.elements[crossed_tets_of(mesh, segments).any(axis=0)]] = True
    parts = mesh.part_of_element
    held = np.zeros(int(parts.max()) + 1, np.bool_)
    held[parts[fixed[mesh.elements].any(axis=1)]] = True
    if not held.all():
        first = np.unique(parts, return_index=True)[1]
        free = int((~held).sum())
        notice(
            f"{free} of {len(held)} parts {'has' if free == 1 else 'have'} no fixed vertex: give each a bone, or let it"
            " follow the body ([parts] in the project file); first tet of each",
            first[~held],
        )
    return fixed


def painted_fixed(embedding: Embedding, paint: np.ndarray, vertices: int) -> np.ndarray:
    """(vertices,) bool: the mesh vertices that carry a surface vertex painted 0.

    `paint` (m,) in 0 … 1, one a point of `embedding`: 0 is stiff. All corners of such a point's tet are
    fixed, so that the point does not move against the rig at all.
    """
    values = np.asarray(paint, np.float64)
    if values.shape != (len(embedding.nodes),):
        raise InputError(f"paint must be {len(embedding.nodes)} numbers, one a surface vertex, got {values.shape}")
    require_finite(values, "paint")
    fixed = np.zeros(vertices, np.bool_)
    fixed[embedding.nodes[values <= 0.0]] = True
    return fixed


@njit(cache=True)
def _crossed(vertices: np.ndarray, tets: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Clip each segment by the four faces of each tet whose box it meets."""
    result = np.zeros((len(segments), len(tets)), np.bool_)
    low, high = np.empty((len(tets), 3)), np.empty((len(tets), 3))
    for t in range(len(tets)):
        for d in range(3):
            low[t, d], high[t, d] = np.inf, -np.inf
            for c in range(4):
                low[t, d] = min(low[t, d], vertices[tets[t, c], d])
                high[t, d] = max(high[t, d], vertices[tets[t, c], d])
    for s in range(len(segments)):
        head, tail = segments[s, 0], segments[s, 1]
        if head[0] == tail[0] and head[1] == tail[1] and head[2] == tail[2]:
            continue
        for t in range(len(tets)):
            apart = False
            for d in range(3):
                slack = TOUCH * (high[t, d] - low[t, d])
                apart = apart or max(head[d], tail[d]) < low[t, d] - slack or min(head[d], tail[d]) > high[t, d] + slack
            if not apart:
                result[s, t] = _meets(vertices, tets[t], head, tail)
    return result


@njit(cache=True)
def _meets(vertices: np.ndarray, tet: np.ndarray, head: np.ndarray, tail: np.ndarray) -> bool:
    """Whether all four weights are above −TOUCH somewhere on the segment; each is linear along it."""
    begin, end = 0.0, 1.0
    for c in range(4):
        a, b, d = vertices[tet[(c + 1) % 4]], vertices[tet[(c + 2) % 4]], vertices[tet[(c + 3) % 4]]
        own = vertices[tet[c]]
        nx = (b[1] - a[1]) * (d[2] - a[2]) - (b[2] - a[2]) * (d[1] - a[1])
        ny = (b[2] - a[2]) * (d[0] - a[0]) - (b[0] - a[0]) * (d[2] - a[2])
        nz = (b[0] - a[0]) * (d[1] - a[1]) - (b[1] - a[1]) * (d[0] - a[0])
        height = nx * (own[0] - a[0]) + ny * (own[1] - a[1]) + nz * (own[2] - a[2])
        at_head = (nx * (head[0] - a[0]) + ny * (head[1] - a[1]) + nz * (head[2] - a[2])) / height + TOUCH
        at_tail = (nx * (tail[0] - a[0]) + ny * (tail[1] - a[1]) + nz * (tail[2] - a[2])) / height + TOUCH
        if at_head < 0.0 and at_tail < 0.0:
            return False
        if at_head < 0.0:
            begin = max(begin, at_head / (at_head - at_tail))
        elif at_tail < 0.0:
            end = min(end, at_head / (at_head - at_tail))
    return begin <= end
