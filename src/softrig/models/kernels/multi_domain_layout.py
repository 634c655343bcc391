"""What the compiled step of a multi-domain model reads and writes: flat arrays, in two tuples of constant types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Tables(NamedTuple):
    """Flat arrays; R = Σ r_i modes, of which domain i has those from starts[i] on."""

    starts: np.ndarray
    """(D + 1,) int64."""
    centres: np.ndarray
    """(D, 3) metres."""
    drift: np.ndarray
    """Of each domain (r, 3) Σ_k m_k U_k, √kg: M_tq of MD11 App. A."""
    inertia: np.ndarray
    """Of each domain nine (r, r + 1) matrices Σ_k m_k U_kᵀ E^μν Ū_k."""
    inertia_at: np.ndarray
    """(D + 1,) int64 where each domain's begin, also those of `own`."""
    own: np.ndarray
    """Of each domain nine (r, r + 1) matrices Σ_k a_k U_kᵀ E^μν Ū_k over all its seams."""
    trace: np.ndarray
    """Of each domain (r, r + 1): the same with W = I, a ninth as long."""
    stiffness: np.ndarray
    """Of each domain (r, r) UᵀKU at rest."""
    square_at: np.ndarray
    """(D + 1,) int64 where (r, r) matrices begin."""
    pairs: np.ndarray
    """(I, 2) int64 first and second domain of each seam."""
    across: np.ndarray
    """Of each seam nine (r_i + 1, r_j + 1) matrices A^μν = Σ_k a_k Ū_kᵀ E^μν Ū_k."""
    across_at: np.ndarray
    """(I + 1,) int64."""
    sides: np.ndarray
    """Of each seam Σ_k a_k U_k of the first domain (r_i, 3), then of the second (r_j, 3)."""
    sides_at: np.ndarray
    """(I + 1,) int64."""
    blocks: np.ndarray
    """(D, D) int32 of `block_pattern`."""
    places: np.ndarray
    """(b + 1,) int64."""
    tet_starts: np.ndarray
    """(D + 1,) int64 cubature tets of each domain."""
    weights: np.ndarray
    """(c,) volume times cubature weight, m³."""
    lam: np.ndarray
    """(c,) pascal."""
    mu: np.ndarray
    """(c,) pascal."""
    gradients: np.ndarray
    """Of each cubature tet G (9, r), 1/(m √kg)."""
    gradients_at: np.ndarray
    """(c + 1,) int64."""
    law: int


class Memory(NamedTuple):
    """All that a step reads and writes beside its tables."""

    q: np.ndarray
    """(R,) the unknowns, then their rates per second and per second²."""
    v: np.ndarray
    a: np.ndarray
    trial: np.ndarray
    """(R,) the unknowns that Newton works on."""
    load: np.ndarray
    """(R,) f − κ_d s′."""
    constant: np.ndarray
    """(R,) s of a spring of one."""
    coupling: np.ndarray
    """Blocks of S of a spring of one."""
    matrix: np.ndarray
    """Blocks of the system, then its factor."""
    rotations: np.ndarray
    """(D, 3, 3), and of `kernels.multi_domain_frames` what follows."""
    spins: np.ndarray
    accelerations: np.ndarray
    places: np.ndarray
    """(3, D, 3)."""
    residual: np.ndarray
    """(R,), and scratch of as many each."""
    moved: np.ndarray
    rate: np.ndarray
    product: np.ndarray
    buffer: np.ndarray
    """One sandwich of any seam or domain, or one tet's products."""
    square: np.ndarray
    """(r_max²) a domain's own stiffness."""
    small: np.ndarray
    """(220,)."""
