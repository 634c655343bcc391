"""Where a lattice is too coarse for its surface: parts thinner than two cells, gaps it has closed."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from softrig.meshing.distance_field import SurfaceField
from softrig.meshing.thickness import SurfaceSamples

FAR_ALONG = 4.0
"""Spacings along the surface beyond which two places belong to different parts."""

MOST_PAIRS = 2000
"""Candidates followed along the surface; of more, every k-th is."""


def walking_graph(field: SurfaceField, samples: SurfaceSamples) -> csr_array:
    """Lengths of steps along the surface: between samples first, then the soup's vertices.

    The soup's own edges and the way from a sample to the corners of its triangle do for small
    triangles; on large ones samples of the same or a touching triangle are linked as well. A step
    across a gap, however narrow, is none of these.
    """
    pairs, count = samples.neighbours, len(samples.places)
    corners = field.faces[samples.owners]
    touching = (corners[pairs[:, 0]][:, :, None] == corners[pairs[:, 1]][:, None, :]).any(axis=(1, 2))
    edges = np.concatenate([field.faces[:, [0, 1]], field.faces[:, [1, 2]], field.faces[:, [2, 0]]])
    down = np.stack([np.repeat(np.arange(count), 3), count + corners.ravel()], axis=1)
    ends = np.unique(np.sort(np.concatenate([pairs[touching], down, count + edges]), axis=1), axis=0)
    places = np.concatenate([samples.places, field.points])
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    return coo_array((np.maximum(lengths, 1e-12), (ends[:, 0], ends[:, 1])), shape=(len(places),) * 2).tocsr()


def half_thickness(samples: SurfaceSamples) -> np.ndarray:
    """(s,) how deep the body is at each sample, in the field's units; no more than the balls are grown.

    At a sharp edge the touching ball is small however thick the body; the largest ball among the
    neighbours, twice over, sees past it.
    """
    one, other = samples.neighbours[:, 0], samples.neighbours[:, 1]
    radii = samples.inner
    for _ in range(2):
        wider = radii.copy()
        np.maximum.at(wider, one, radii[other])
        np.maximum.at(wider, other, radii[one])
        radii = wider
    return np.asarray(radii)


def close_pairs(field: SurfaceField, samples: SurfaceSamples, spacing: float) -> np.ndarray:
    """(p, 2) samples that face each other across a gap under one cell but lie far apart along the surface."""
    facing = np.nonzero((samples.outer < 0.5 * spacing) & (samples.outer > 0.0))[0]
    facing = facing[:: -(-len(facing) // MOST_PAIRS) or 1]
    if not facing.size:
        return np.zeros((0, 2), np.int64)
    across = samples.places[facing] + 2.0 * samples.outer[facing, None] * samples.outward[facing]
    count = min(4, len(samples.places))
    partners = samples.tree.query(across, k=count)[1].reshape(-1, count)
    turned = np.einsum("fd,fkd->fk", samples.outward[facing], samples.outward[partners])
    best = turned.argmin(axis=1)
    partner = partners[np.arange(len(facing)), best]
    apart = samples.places[partner] - samples.places[facing]
    ahead = np.einsum("fd,fd->f", apart, samples.outward[facing]) > 0.0
    opposed = (turned.min(axis=1) < -0.3) & ahead & (np.linalg.norm(apart, axis=1) < spacing)
    pairs = np.stack([facing, partner], axis=1)[opposed]
    if not len(pairs):
        return pairs
    pairs = pairs[~field.inside(samples.places[pairs].mean(axis=1))]
    if not len(pairs):
        return pairs
    graph = walking_graph(field, samples)
    return pairs[_far_along(graph, pairs, FAR_ALONG * spacing)]


def _far_along(graph: csr_array, pairs: np.ndarray, limit: float) -> np.ndarray:
    """(p,) bool: whether a walk along the surface from one of a pair to the other is longer than `limit`."""
    far = np.zeros(len(pairs), bool)
    batch = max(1, (1 << 22) // graph.shape[0])
    for start in range(0, len(pairs), batch):
        some = pairs[start : start + batch]
        walks = dijkstra(graph, directed=False, indices=some[:, 0], limit=limit)
        far[start : start + batch] = ~np.isfinite(walks[np.arange(len(some)), some[:, 1]])
    return far


def clusters(places: np.ndarray, spacing: float) -> np.ndarray:
    """(c, 3) the middle of each group of `places` within two spacings of one another, the largest first."""
    if not len(places):
        return np.zeros((0, 3))
    from scipy.spatial import cKDTree

    pairs = cKDTree(places).query_pairs(2.0 * spacing, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(len(places),) * 2)
    which = connected_components(graph, directed=False)[1]
    sizes = np.bincount(which)
    middles = np.stack([np.bincount(which, weights=places[:, d]) / sizes for d in range(3)], axis=1)
    return middles[np.argsort(-sizes, kind="stable")]
