"""Compiled sums over the tets of a body at one pose: edge forces, edge stiffness, sketched columns.

Edge space: with the last corner as origin, a tet has three edges, and everything it does follows from the nine
numbers u_a − u_3. B (3, 3) = Ds⁻¹ has the shape gradients of corners 0 to 2 as rows, so F = I + Σ_a (u_a − u_3) B_aᵀ
and the force against edge a is volume · P B_a: nine rows a tet instead of twelve.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem import laws
from softrig.models.kernels.dense import FAST


@njit(cache=True)
def edge_forces(
    law: int,
    edges: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    remainder: bool,
    forces: np.ndarray,
) -> None:
    """Write volume · P B_a, newton, into `forces` (e, 9, k) for edge displacements u_a − u_3 `edges` (e, 9, k).

    Row 3a + i is component i of edge a. With `remainder` the linear part λ tr ε I + 2μ ε, ε = sym(F − I), which
    all laws share, is taken from P: what is left is f − K₀u.
    """
    F, P = np.empty((3, 3)), np.empty((3, 3))
    work = np.empty(laws.WORKSPACE)
    for e in range(edges.shape[0]):
        B = gradients[e]
        for k in range(edges.shape[2]):
            for i in range(3):
                for K in range(3):
                    F[i, K] = (1.0 if i == K else 0.0) + (
                        edges[e, i, k] * B[0, K] + edges[e, 3 + i, k] * B[1, K] + edges[e, 6 + i, k] * B[2, K]
                    )
            laws.stress(law, F, lam[e], mu[e], P, work)
            if remainder:
                trace = lam[e] * (F[0, 0] + F[1, 1] + F[2, 2] - 3.0)
                for i in range(3):
                    P[i, i] -= trace + 2.0 * mu[e] * (F[i, i] - 1.0)
                    for K in range(i):
                        shear = mu[e] * (F[i, K] + F[K, i])
                        P[i, K] -= shear
                        P[K, i] -= shear
            for a in range(3):
                for i in range(3):
                    forces[e, 3 * a + i, k] = volumes[e] * (P[i, 0] * B[a, 0] + P[i, 1] * B[a, 1] + P[i, 2] * B[a, 2])


@njit(cache=True)
def edge_stiffness(
    law: int,
    edges: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    stiffness: np.ndarray,
) -> None:
    """Write ∂(edge forces)/∂(edge displacements) at `edges` (e, 9) into `stiffness` (e, 9, 9), newton per metre."""
    F = np.empty((3, 3))
    H = np.empty((9, 9))
    work = np.empty(laws.WORKSPACE)
    for e in range(edges.shape[0]):
        B = gradients[e]
        for i in range(3):
            for K in range(3):
                F[i, K] = (1.0 if i == K else 0.0) + (
                    edges[e, i] * B[0, K] + edges[e, 3 + i] * B[1, K] + edges[e, 6 + i] * B[2, K]
                )
        laws.hessian(law, F, lam[e], mu[e], H, work)
        for a in range(3):
            for b in range(3):
                for i in range(3):
                    for j in range(3):
                        total = 0.0
                        for K in range(3):
                            for L in range(3):
                                total += B[a, K] * H[3 * i + K, 3 * j + L] * B[b, L]
                        stiffness[e, 3 * a + i, 3 * b + j] = volumes[e] * total


@njit(cache=True)
def scatter_edges(tets: np.ndarray, forces: np.ndarray, field: np.ndarray) -> None:
    """Add edge forces (e, 9, k) to the corners in `field` (n, 3, k); the last corner balances the others."""
    for e in range(tets.shape[0]):
        for a in range(3):
            for i in range(3):
                for k in range(forces.shape[2]):
                    value = forces[e, 3 * a + i, k]
                    field[tets[e, a], i, k] += value
                    field[tets[e, 3], i, k] -= value


@njit(cache=True, fastmath=FAST)
def add_sketched_columns(
    forces: np.ndarray, rows: np.ndarray, buckets: np.ndarray, signs: np.ndarray, columns: np.ndarray
) -> None:
    """Add a random sketch of each part's generalised forces to `columns` (e, s), one part a row.

    Entry (k, j) of the sample × mode array Σ_d forces[e, d, k] rows[e, d, j] goes to place buckets[k, j] with factor
    signs[k, j] (Charikar et al. 2002): products of sketched columns are those of the full ones on average. The
    full array is never stored.
    """
    modes = rows.shape[2]
    one = np.empty(modes)
    for e in range(forces.shape[0]):
        target = columns[e]
        for k in range(forces.shape[2]):
            one[:] = 0.0
            for d in range(forces.shape[1]):
                value = forces[e, d, k]
                row = rows[e, d]
                for j in range(modes):
                    one[j] += value * row[j]
            place, sign = buckets[k], signs[k]
            for j in range(modes):
                target[place[j]] += sign[j] * one[j]
