"""How the tets follow the rig (PSSD Section 4.1): Shepard weights, skin weights of tet vertices, and corrections δ.

Skinning rigs:   x_v(p) = Σ_b W_vb M_b(p) [X_v + Σ_i w_i δ_iv; 1]
Black-box rigs:  x_v(p) = X_v + Σ_a s_va (Φ̄_a(p) − Φ̄_a(rest)) + R_root(p) Σ_i w_i δ_iv

W is the Shepard mixture of the surface's skin weights, s the Shepard weights themselves; both are found at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from softrig.errors import InputError, notice, require_finite
from softrig.meshing.quality import tet_volumes

MOST_BONES = 8
"""Bones a tet vertex keeps."""
SMOOTHING = 4
"""Rounds of averaging skin weights along tet edges. On the built-in arm and gorilla inverted rest tets fall 3 to 10
times, while the surface stays within a tenth of a cell of its own skin; more rounds wash the joints out."""
COINCIDENT = 1e-9
"""Of the size: a tet vertex this close to a surface vertex takes that one alone."""
FLAT_SKIN = 0.05
"""Smallest singular value of a blended bone matrix through which a correction is taken back to bind space as it is."""

Progress = Callable[[int, int], None]


def shepard(points: np.ndarray, surface_vertices: np.ndarray, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, k) int32 and weights (n, k) of `points` (n, 3) in `surface_vertices` (n̄, 3), metres.

    w_a ∝ 1 / distance to the a-th of the k nearest surface vertices, rows sum to one; a point that coincides with
    a surface vertex takes it alone.
    """
    points, surface = np.asarray(points, dtype=np.float64), np.asarray(surface_vertices, dtype=np.float64)
    require_finite(points, "points")
    require_finite(surface, "surface vertices")
    if not 1 <= k <= len(surface):
        raise InputError(f"{k} nearest of {len(surface)} surface vertices")
    distances, nodes = cKDTree(surface).query(points, k=k)
    distances, nodes = distances.reshape(len(points), k), nodes.reshape(len(points), k)
    size = float(np.linalg.norm(np.ptp(surface, axis=0))) or 1.0
    on_vertex = distances[:, 0] <= COINCIDENT * size
    weights = np.zeros_like(distances)
    weights[on_vertex, 0] = 1.0
    weights[~on_vertex] = 1.0 / distances[~on_vertex]
    return nodes.astype(np.int32), weights / weights.sum(axis=1, keepdims=True)


def tet_skin(
    volume_vertices: np.ndarray,
    surface_vertices: np.ndarray,
    skin_weights: csr_array,
    k: int = 4,
    *,
    tets: np.ndarray | None = None,
    smoothing: int = SMOOTHING,
) -> csr_array:
    """(n, B) skin weights of the tet vertices: Shepard mixtures of the surface's `skin_weights` (n̄, B).

    With `tets` (e, 4) the weights are then averaged along tet edges `smoothing` times: deep inside, the nearest surface
    vertices change abruptly from one side of a limb to the other. At most 8 bones a vertex; rows sum to one.
    """
    if skin_weights.shape[0] != len(surface_vertices):
        raise InputError(f"skin weights of {skin_weights.shape[0]} vertices for a surface of {len(surface_vertices)}")
    nodes, weights = shepard(volume_vertices, surface_vertices, k)
    table = csr_array(_mixture(nodes, weights, len(surface_vertices)) @ skin_weights)
    if tets is not None:
        average = _edge_average(tets, len(volume_vertices))
        for _ in range(smoothing):
            table = csr_array(average @ table)
    table = _strongest(table, MOST_BONES)
    sums = np.asarray(table.sum(axis=1)).ravel()
    lost = np.flatnonzero(sums <= 0.0)
    if lost.size:
        raise InputError("tet vertices near surface vertices without skin weights", lost)
    return csr_array(table.multiply((1.0 / sums)[:, None]))


def skinned(weights: csr_array, bone_matrices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n, 3) Σ_b W_vb M_b [x_v; 1], metres, of weights (n, B), bone matrices (B, 4, 4) and `points` (n, 3)."""
    blended = blended_matrices(weights, bone_matrices)
    return np.asarray(np.einsum("nij,nj->ni", blended[:, :, :3], points) + blended[:, :, 3])


def blended_matrices(weights: csr_array, bone_matrices: np.ndarray) -> np.ndarray:
    """(n, 3, 4) Σ_b W_vb M_b."""
    return np.asarray(weights @ bone_matrices[:, :3].reshape(len(bone_matrices), 12)).reshape(-1, 3, 4)


def carried(vertices: np.ndarray, nodes: np.ndarray, weights: np.ndarray, displacements: np.ndarray) -> np.ndarray:
    """(n, 3) X_v + Σ_a s_va (Φ̄_a(p) − Φ̄_a(rest)), metres; `displacements` (n̄, 3) of the surface from rest."""
    return np.asarray(vertices + np.einsum("nk,nkd->nd", weights, displacements[nodes]))


def bind_correction(
    weights: csr_array, bone_matrices: np.ndarray, vertices: np.ndarray, fitted: np.ndarray
) -> np.ndarray:
    """(n, 3) δ in bind space with Σ_b W_vb M_b [X_v + δ_v; 1] = `fitted` (n, 3), metres.

    Where the blended matrix is nearly singular (a joint that the skin wrings out) δ stays bounded and the fitted
    place is missed a little: a `Notice` names those vertices.
    """
    blended = blended_matrices(weights, bone_matrices)
    target = fitted - blended[:, :, 3] - np.einsum("nij,nj->ni", blended[:, :, :3], vertices)
    U, s, Vt = np.linalg.svd(blended[:, :, :3])
    flat = s[:, 2] < FLAT_SKIN
    # 1/s up to the bound, beyond it s/bound²: falls back to zero where the skin gives no way to reach a direction.
    inverse = np.where(s < FLAT_SKIN, s / FLAT_SKIN**2, 1.0 / np.maximum(s, FLAT_SKIN))
    correction = np.einsum("nji,nj,nkj,nk->ni", Vt, inverse, U, target)
    if flat.any():
        notice("the skin wrings these tet vertices flat; their fitted places are met only nearly", np.flatnonzero(flat))
    return np.asarray(correction)


@dataclass(frozen=True)
class InversionReport:
    """Which rest tets are inside out along a motion of f frames."""

    counts: np.ndarray
    """(f,) inverted tets in each frame."""
    volume_shares: np.ndarray
    """(f,) their share of the volume at rest."""
    tets: np.ndarray
    """(k,) int64 the tets that are inverted in some frame."""
    smallest: np.ndarray
    """(f,) the smallest volume ratio, posed over rest, below 0 where a tet is inverted."""

    @property
    def worst_frame(self) -> int:
        """The frame with the largest inverted volume."""
        return int(self.volume_shares.argmax()) if len(self.counts) else 0


def inverted_rest_tets(
    rest_positions: Callable[[np.ndarray], np.ndarray],
    frames: np.ndarray,
    vertices: np.ndarray,
    tets: np.ndarray,
    *,
    progress: Progress | None = None,
) -> InversionReport:
    """Follow `rest_positions`, p (P,) → (n, 3), over `frames` (f, P) and look for tets turned inside out."""
    neutral = tet_volumes(vertices, tets)
    counts, shares = np.zeros(len(frames), dtype=np.int64), np.zeros(len(frames))
    smallest, ever = np.ones(len(frames)), np.zeros(len(tets), dtype=bool)
    for index, p in enumerate(frames):
        ratios = tet_volumes(rest_positions(p), tets) / neutral
        inverted = ~(ratios > 0.0)
        ever |= inverted
        counts[index] = inverted.sum()
        shares[index] = neutral[inverted].sum() / neutral.sum()
        smallest[index] = ratios.min()
        if progress is not None:
            progress(index + 1, len(frames))
    return InversionReport(counts, shares, np.flatnonzero(ever), smallest)


def _mixture(nodes: np.ndarray, weights: np.ndarray, count: int) -> csr_array:
    rows = np.repeat(np.arange(len(nodes)), nodes.shape[1])
    return csr_array((weights.ravel(), (rows, nodes.ravel())), shape=(len(nodes), count))


def _edge_average(tets: np.ndarray, count: int) -> csr_array:
    """(n, n) half of the vertex itself, half of the mean of its neighbours along tet edges."""
    pairs = np.array([[a, b] for a in range(4) for b in range(4) if a != b])
    ends = np.unique(tets[:, pairs].reshape(-1, 2), axis=0)
    degrees = np.bincount(ends[:, 0], minlength=count)
    own = np.arange(count)
    rows = np.concatenate([own, ends[:, 0]])
    columns = np.concatenate([own, ends[:, 1]])
    values = np.concatenate([np.where(degrees > 0, 0.5, 1.0), 0.5 / degrees[ends[:, 0]]])
    return csr_array((values, (rows, columns)), shape=(count, count))


def _strongest(table: csr_array, most: int) -> csr_array:
    """`table` with only the `most` largest entries of each row."""
    table.sum_duplicates()
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((table.indices, -table.data, rows))
    rank = np.arange(len(order)) - table.indptr[rows[order]]
    kept = np.sort(order[rank < most])
    return csr_array((table.data[kept], (rows[kept], table.indices[kept])), shape=table.shape)
