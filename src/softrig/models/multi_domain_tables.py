"""What the compiled step reads of a multi-domain model: everything that depends on vertices, summed over them once.

Fast Sandwich Transforms (MD11 §4): Σ_k a_k U_kᵀ W Ū_k is linear in the nine entries of W, so nine matrices, one for
each, are all that is needed of the vertices. Ū = [U | p] takes the homogeneous coordinates (q, 1).
"""

from __future__ import annotations

import numpy as np

from softrig.fem.laws import law_code
from softrig.models.kernels.multi_domain_blocks import block_pattern
from softrig.models.kernels.multi_domain_layout import Tables
from softrig.models.multi_domain import Domain, MultiDomainModel


def tables_of(model: MultiDomainModel) -> Tables:
    """The tables of a model."""
    domains = model.domains
    ranks = np.array([domain.rank for domain in domains], np.int64)
    pairs = np.array([(seam.first, seam.second) for seam in model.seams], np.int64).reshape(-1, 2)
    blocks, places = block_pattern(ranks, pairs)
    barred = [homogeneous(model, domain) for domain in domains]
    inertia = [sandwich_matrices(d.shapes, bar, d.mass) for d, bar in zip(domains, barred, strict=True)]
    own = [np.zeros((9, d.rank, d.rank + 1)) for d in domains]
    across, sides = [], []
    for seam in model.seams:
        bars = []
        for index, rows in ((seam.first, seam.first_rows), (seam.second, seam.second_rows)):
            shapes, bar = domains[index].shapes[rows], barred[index][rows]
            own[index] += sandwich_matrices(shapes, bar, seam.areas)
            sides.append(np.einsum("k,kim->mi", seam.areas, shapes))
            bars.append(bar)
        across.append(sandwich_matrices(bars[0], bars[1], seam.areas))
    gradients = [tet_gradients(model.vertices, model.tets[d.tets], d.vertices, d.shapes) for d in domains]
    volumes = [tet_volumes(model.vertices, model.tets[d.tets]) * d.weights for d in domains]
    per_tet = np.repeat(9 * ranks, [len(domain.tets) for domain in domains])
    return Tables(
        starts=_begins(ranks),
        centres=np.stack([domain.centre for domain in domains]),
        drift=_flat([np.einsum("k,kim->mi", d.mass, d.shapes) for d in domains]),
        inertia=_flat(inertia),
        inertia_at=_begins(9 * ranks * (ranks + 1)),
        own=_flat(own),
        trace=_flat([part[0] + part[4] + part[8] for part in own]),
        stiffness=_flat([domain.stiffness for domain in domains]),
        square_at=_begins(ranks * ranks),
        pairs=pairs,
        across=_flat(across),
        across_at=_begins(np.array([part.size for part in across], np.int64)),
        sides=_flat(sides),
        sides_at=_begins(3 * ranks[pairs].sum(axis=1)),
        blocks=blocks,
        places=places.astype(np.int64),
        tet_starts=_begins(np.array([len(domain.tets) for domain in domains], np.int64)),
        weights=_flat(volumes),
        lam=_flat([domain.lam for domain in domains]),
        mu=_flat([domain.mu for domain in domains]),
        gradients=_flat(gradients),
        gradients_at=_begins(per_tet),
        law=law_code(model.law),
    )


def sandwich_matrices(left: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(9, a, b) Σ_k w_k L_kᵀ E^μν R_k of left (k, 3, a) and right (k, 3, b), in the order of a flat (3, 3) (Eq. 24)."""
    found = np.einsum("k,kma,knb->mnab", weights, left, right, optimize=True)
    return np.ascontiguousarray(found.reshape(9, left.shape[2], right.shape[2]))


def homogeneous(model: MultiDomainModel, domain: Domain) -> np.ndarray:
    """(n_i, 3, r + 1) Ū = [U | p], p the rest positions seen from the domain's centre, metres."""
    rest = model.vertices[domain.vertices] - domain.centre
    return np.concatenate([domain.shapes, rest[:, :, None]], axis=2)


def tet_gradients(vertices: np.ndarray, tets: np.ndarray, owned: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """(c, 9, r) G of tets (c, 4): how each mode changes F, row 3i + K for F[i, K].

    `vertices` (n, 3) metres; the shapes (n_i, 3, r) belong to the vertices `owned` (n_i,), which rise.
    """
    slopes = _slopes(vertices[tets])
    found = np.einsum("caim,caK->ciKm", shapes[np.searchsorted(owned, tets)], slopes, optimize=True)
    return np.ascontiguousarray(found.reshape(len(tets), 9, shapes.shape[2]))


def tet_volumes(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(c,) m³ of tets (c, 4) with vertices (n, 3), metres."""
    corners = vertices[tets]
    return np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6.0


def _slopes(corners: np.ndarray) -> np.ndarray:
    """(c, 4, 3) dN_a/dX of tets with these corners (c, 4, 3)."""
    inverse = np.linalg.inv(np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2))
    return np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)


def _begins(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _flat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.ravel(part) for part in parts)])
