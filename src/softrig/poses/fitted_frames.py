"""Frames that stand for the bones of a rig that has none: affine maps fitted to how its surface moves.

Frames lie as far from each other as they can, measured through the flesh. A vertex belongs to those near it, smoothly,
and each frame's matrix at a pose is the affine map that takes the rest positions of a few surface vertices, weighted
by how much they belong to it, to where the rig puts them. With Y_s = [X_s; 1] that is linear in what the rig gives:

    M_b(p) = argmin Σ_s W_sb ‖M Y_s − x_s(p)‖² = Σ_s x_s(p) g_bsᵀ,  g_bs = (Σ_t W_tb Y_t Y_tᵀ)⁻¹ W_sb Y_s.

From there on the rig is a skin like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from softrig.errors import InputError
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.poses.selection import farthest_points
from softrig.poses.tet_rig import MOST_BONES

FRAMES = 12
"""The letter X, bent by up to a radian about two axes, is off by 3 % of its motion between poses; 6 frames: 6 %."""
WIDTH = 0.55
"""Of the radius of a frame's neighbourhood: where its weight has fallen to 1/e."""
FAINT = 1e-3
"""Of a vertex' largest weight: smaller ones are none."""
FLOOR = 1e-6
"""Of a frame's largest weight, added to all: a frame whose neighbourhood is flat takes the rest from farther away."""
LARGEST_CONDITION = 1e10
SAMPLES = 16
"""Surface vertices a frame: four not in one plane would do, but the motion of many is smoother."""
OWN = 8
"""Of these, so many at least belong to the frame more than any other surface vertices do."""

_PAIRS = np.array(list(combinations(range(4), 2)))
"""The edges of a tet."""


@dataclass(frozen=True, eq=False)
class FittedFrames:
    """B frames over n tet vertices, fitted to S surface vertices."""

    weights: csr_array
    """(n, B), rows sum to one."""
    sample: np.ndarray
    """(S,) int32 surface vertices that the frames are fitted to."""
    fit: np.ndarray
    """(B, 4, S) g, 1/m and 1."""
    parents: np.ndarray
    """(B,) of each frame the nearest that was chosen before it, −1: none."""

    @property
    def root(self) -> int:
        """The frame that carries the most vertices."""
        return int(np.asarray(self.weights.sum(axis=0)).argmax())


def fitted_frames(
    mesh: VolumeMesh, surface: Embedding, soft_vertices: np.ndarray, rest: np.ndarray, *, count: int = FRAMES
) -> FittedFrames:
    """Frames of a body in whose tets the `surface` of the rig's `soft_vertices` (k,) hangs; at most `count`.

    `rest` (k, 3) metres: where the rig puts those at rest.
    """
    centres, distances = _spread_through(mesh, count)
    table = _frame_weights(mesh.vertices, centres, distances)
    of_surface = np.maximum(np.einsum("ka,kab->kb", surface.weights, table.toarray()[surface.nodes]), 0.0)
    first = int(np.linalg.norm(rest - rest.mean(axis=0), axis=1).argmax())
    chosen = np.append(first, farthest_points(rest, rest[[first]], SAMPLES * len(centres) - 1, 0.0))
    # A small part close to a large one has a frame, but may have no sample of its own.
    chosen = np.unique(np.concatenate([chosen, np.argsort(-of_surface, axis=0)[:OWN].ravel()]))
    fit = np.stack([affine_fit(rest[chosen], weights) for weights in of_surface[chosen].T])
    parents = [-1] + [int(distances[:b, centres[b]].argmin()) for b in range(1, len(centres))]
    return FittedFrames(table, soft_vertices[chosen].astype(np.int32), fit, np.array(parents, np.int64))


def affine_fit(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(4, S) g of the weighted affine fit: Σ_s x_s g_sᵀ is the (3, 4) map that takes `points` (S, 3) to x (S, 3)."""
    if not weights.max(initial=0.0) > 0.0:
        raise InputError('a part of the body without any surface to fit a frame to; use interpolation = "world"')
    centre = np.average(points, axis=0, weights=weights + FLOOR * weights.max())
    size = np.linalg.norm(points - centre, axis=1).max() or 1.0
    rows = np.concatenate([(points - centre) / size, np.ones((len(points), 1))], axis=1)
    heavy = rows * (weights + FLOOR * weights.max())[:, None]
    moments = heavy.T @ rows
    if not np.linalg.cond(moments) < LARGEST_CONDITION:
        raise InputError('a surface too flat for vertex rotations to be read off it; use interpolation = "world"')
    local = np.linalg.solve(moments, heavy.T)
    # From coordinates about the centre, over the size, back to metres: M [X; 1] = A (X − c)/size + t.
    linear = local[:3] / size
    return np.concatenate([linear, (local[3] - centre @ linear)[None]])


def _spread_through(mesh: VolumeMesh, count: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `count` tet vertices, each the farthest along edges from those before it, and their distances (B, n)."""
    pairs = np.unique(np.sort(mesh.elements[:, _PAIRS].reshape(-1, 2), axis=1), axis=0)
    lengths = np.linalg.norm(mesh.vertices[pairs[:, 0]] - mesh.vertices[pairs[:, 1]], axis=1)
    graph = csr_array((lengths, pairs.T), shape=(len(mesh.vertices),) * 2)
    centres = [int(np.linalg.norm(mesh.vertices - mesh.vertices.mean(axis=0), axis=1).argmax())]
    distances = [dijkstra(graph, directed=False, indices=centres[0])]
    while len(centres) < count and (nearest := np.min(distances, axis=0)).max() > 0.0:
        centres.append(int(nearest.argmax()))
        distances.append(dijkstra(graph, directed=False, indices=centres[-1]))
    return np.array(centres), np.stack(distances)


def _frame_weights(vertices: np.ndarray, centres: np.ndarray, distances: np.ndarray) -> csr_array:
    """(n, B) a bell about each centre, rows sum to one; what no edge leads to belongs to the nearest in air."""
    nearest = distances.min(axis=0)
    lost = np.flatnonzero(np.isinf(nearest))
    distances = distances.copy()
    airy = np.linalg.norm(vertices[lost, None] - vertices[centres], axis=2)
    distances[airy.argmin(axis=1), lost] = 0.0
    radius = float(distances.min(axis=0).max()) or 1.0
    # Relative to the nearest frame, so that no row vanishes.
    table = np.exp((distances.min(axis=0) ** 2 - distances**2).T / (WIDTH * radius) ** 2)
    table[table < FAINT] = 0.0
    faint = np.argsort(-table, axis=1)[:, MOST_BONES:]
    np.put_along_axis(table, faint, 0.0, axis=1)
    return csr_array(table / table.sum(axis=1, keepdims=True))
