"""A mesh cut into domains, one a bone, and the interfaces where they meet (MD11 §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.errors import InputError
from softrig.fem.meshes import VolumeMesh


@dataclass(frozen=True, eq=False)
class Partition:
    """Which domain each tet belongs to, and which bone carries each domain."""

    domain_of_tet: np.ndarray
    """(e,) int32."""
    bones: np.ndarray
    """(D,) int32 the bone whose rigid motion is the domain's frame."""
    domain_of_bone: np.ndarray
    """(B,) int32 the domain that the flesh of each bone went to, −1: it had none."""


@dataclass(frozen=True, eq=False)
class Interface:
    """Vertices that two domains share, k of them."""

    first: int
    second: int
    vertices: np.ndarray
    """(k,) int32 of the mesh, rising."""
    areas: np.ndarray
    """(k,) m², a third of the faces around each that lie between the two."""


def bone_domains(mesh: VolumeMesh, weights: np.ndarray, parents: np.ndarray, *, least: int = 1) -> Partition:
    """Each tet to the bone that carries most of its corners; domains in an order that eliminates leaves first.

    `weights` (n, B) of the vertices; `parents` (B,) bone above each, −1: none. A bone with fewer than `least` tets
    joins the nearest bone above it that has any (or below, for a root). What is cut off from the rest of its domain
    joins the neighbour it shares most faces with.
    """
    if mesh.elements.shape[1] != 4:
        raise InputError("domains are cut out of tets")
    if np.shape(weights)[0] != len(mesh.vertices) or np.shape(weights)[1] != len(parents):
        raise InputError(f"weights {np.shape(weights)} of {len(mesh.vertices)} vertices and {len(parents)} bones")
    bone_of_tet = weights[mesh.elements].sum(axis=1).argmax(axis=1)
    merged = _merged_bones(bone_of_tet, parents, least)
    bone_of_tet = _whole(mesh, merged[bone_of_tet])
    bones = np.unique(bone_of_tet)
    bones = bones[_elimination_order(mesh, np.searchsorted(bones, bone_of_tet), len(bones))]
    place = np.full(len(parents), -1, np.int32)
    place[bones] = np.arange(len(bones))
    return Partition(place[bone_of_tet], bones.astype(np.int32), place[merged])


def interfaces(mesh: VolumeMesh, domain_of_tet: np.ndarray) -> list[Interface]:
    """All pairs of domains that share faces, first < second, in order."""
    faces, one, other = mesh.inner_faces
    pair = np.sort(np.stack([domain_of_tet[one], domain_of_tet[other]], axis=1), axis=1)
    between = pair[:, 0] != pair[:, 1]
    faces, pair = faces[between], pair[between]
    corners = mesh.vertices[faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    found = []
    for first, second in np.unique(pair, axis=0).tolist():
        here = (pair == (first, second)).all(axis=1)
        shares = np.bincount(faces[here].ravel(), np.repeat(area[here] / 3.0, 3), minlength=len(mesh.vertices))
        vertices = np.flatnonzero(shares > 0.0).astype(np.int32)
        found.append(Interface(first, second, vertices, shares[vertices]))
    return found


def holders(
    mesh: VolumeMesh, domain_of_tet: np.ndarray, fixed: np.ndarray, segments: np.ndarray, domain_of_segment: np.ndarray
) -> np.ndarray:
    """(n,) int32 the domain in whose frame each of the `fixed` (n,) vertices is held, −1 for those that are free.

    Of the domains with a tet there, the one of which a bone, one of `segments` (b, 2, 3), metres, is nearest.
    """
    held = np.full(len(mesh.vertices), -1, np.int32)
    count = int(domain_of_tet.max()) + 1
    touches = np.zeros((len(mesh.vertices), count), bool)
    touches[mesh.elements.ravel(), np.repeat(domain_of_tet, 4)] = True
    distance = np.full((len(mesh.vertices), count), 1e300)
    for (head, tail), domain in zip(segments, domain_of_segment, strict=True):
        if domain >= 0:
            along = tail - head
            share = np.clip((mesh.vertices - head) @ along / max(float(along @ along), 1e-300), 0.0, 1.0)
            gap = np.linalg.norm(mesh.vertices - head - share[:, None] * along, axis=1)
            distance[:, domain] = np.minimum(distance[:, domain], gap)
    distance[~touches] = np.inf
    held[fixed] = distance[fixed].argmin(axis=1)
    return held


def _merged_bones(bone_of_tet: np.ndarray, parents: np.ndarray, least: int) -> np.ndarray:
    """(B,) the bone that each bone's tets go to."""
    counts = np.bincount(bone_of_tet, minlength=len(parents))
    merged = np.arange(len(parents))
    # Children stand behind their parents in a skeleton, but bones may come in any order: deepest first.
    depth = np.array([_depth(parents, bone) for bone in range(len(parents))])
    for bone in np.argsort(-depth, kind="stable").tolist():
        above = int(parents[bone])
        if 0 < counts[bone] < least and above >= 0:
            counts[above] += counts[bone]
            counts[bone] = 0
            merged[merged == bone] = above
    for bone in np.flatnonzero((counts > 0) & (counts < least)).tolist():  # roots, which nothing is above
        others = [child for child in np.flatnonzero(parents == bone).tolist() if counts[child] >= least]
        if others:
            merged[merged == bone] = others[0]
    return merged


def _depth(parents: np.ndarray, bone: int) -> int:
    depth = 0
    while (bone := int(parents[bone])) >= 0:
        depth += 1
    return depth


def _whole(mesh: VolumeMesh, owner: np.ndarray) -> np.ndarray:
    """(e,) `owner`, with islands given to their neighbours: all but the largest piece of what each owns."""
    owner = owner.copy()
    _, one, other = mesh.inner_faces
    while True:
        same = owner[one] == owner[other]
        graph = coo_array((np.ones(same.sum(), np.int8), (one[same], other[same])), shape=(len(owner),) * 2)
        count, piece = connected_components(graph, directed=False)
        sizes = np.bincount(piece, minlength=count)
        owner_of_piece = np.zeros(count, np.int64)
        owner_of_piece[piece] = owner
        largest = np.zeros(count, bool)
        for each in np.unique(owner):
            mine = np.flatnonzero(owner_of_piece == each)
            largest[mine[sizes[mine].argmax()]] = True
        # A part of the mesh without neighbours stays an island.
        ends = np.concatenate([np.stack([one, other], 1), np.stack([other, one], 1)])[np.tile(~same, 2)]
        islands = ends[~largest[piece[ends[:, 0]]]]
        if not len(islands):
            return owner
        first = piece[islands[0, 0]]
        around = owner[islands[piece[islands[:, 0]] == first, 1]]
        owner[piece == first] = np.bincount(around).argmax()


def _elimination_order(mesh: VolumeMesh, domain_of_tet: np.ndarray, count: int) -> np.ndarray:
    """(D,) domains in the order in which elimination fills in least: always the one with fewest neighbours left."""
    _, one, other = mesh.inner_faces
    around: list[set[int]] = [set() for _ in range(count)]
    for a, b in np.unique(np.stack([domain_of_tet[one], domain_of_tet[other]], 1), axis=0).tolist():
        if a != b:
            around[a].add(b)
            around[b].add(a)
    left, order = set(range(count)), []
    while left:
        best = min(left, key=lambda domain: (len(around[domain]), domain))
        for a in around[best]:
            around[a] |= around[best] - {a}
            around[a].discard(best)
        left.remove(best)
        order.append(best)
    return np.array(order, np.int64)
