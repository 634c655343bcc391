"""Sums over integration points: energy, force, stiffness, its derivative, mass.

Fields at vertices have shape (n, 3). Matrices live on the free degrees of freedom only: fixed
vertices are removed from the system, not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import coo_array, csr_array

from softrig.fem import laws
from softrig.fem.meshes import IntegrationPoints


@njit(cache=True)
def _deformation_gradient(u: np.ndarray, nodes: np.ndarray, gradients: np.ndarray, F: np.ndarray) -> None:
    """F = I + Σ_a u_a ⊗ dN_a/dX."""
    for i in range(3):
        for K in range(3):
            F[i, K] = 1.0 if i == K else 0.0
    for a in range(nodes.shape[0]):
        for i in range(3):
            value = u[nodes[a], i]
            for K in range(3):
                F[i, K] += value * gradients[a, K]


@njit(cache=True)
def total_energy(
    law: int,
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    u: np.ndarray,
) -> float:
    """Elastic energy of displacements u (n, 3), joule."""
    F = np.empty((3, 3))
    work = np.empty(laws.WORKSPACE)
    total = 0.0
    for e in range(nodes.shape[0]):
        for p in range(volumes.shape[1]):
            _deformation_gradient(u, nodes[e], gradients[e, p], F)
            total += volumes[e, p] * laws.energy(law, F, lam[e], mu[e], work)
    return total


@njit(cache=True)
def internal_force(
    law: int,
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    u: np.ndarray,
    force: np.ndarray,
) -> None:
    """Write R(u) = ∂energy/∂u into `force` (n, 3), newton."""
    F = np.empty((3, 3))
    P = np.empty((3, 3))
    work = np.empty(laws.WORKSPACE)
    force[:] = 0.0
    for e in range(nodes.shape[0]):
        for p in range(volumes.shape[1]):
            _deformation_gradient(u, nodes[e], gradients[e, p], F)
            laws.stress(law, F, lam[e], mu[e], P, work)
            _scatter_stress(P, volumes[e, p], nodes[e], gradients[e, p], force)


@njit(cache=True)
def _scatter_stress(P: np.ndarray, volume: float, nodes: np.ndarray, gradients: np.ndarray, force: np.ndarray) -> None:
    """Add volume · P dN_a to the force on each corner."""
    for a in range(nodes.shape[0]):
        for i in range(3):
            force[nodes[a], i] += volume * (
                P[i, 0] * gradients[a, 0] + P[i, 1] * gradients[a, 1] + P[i, 2] * gradients[a, 2]
            )


@njit(cache=True)
def force_and_stiffness(
    law: int,
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    u: np.ndarray,
    project: bool,
    free: np.ndarray,
    slots: np.ndarray,
    starts: np.ndarray,
    force: np.ndarray,
    data: np.ndarray,
) -> None:
    """Write R(u) into `force` (n, 3) and K(u) = ∂R/∂u into the values `data` of the system's pattern."""
    corners = nodes.shape[1]
    F = np.empty((3, 3))
    P = np.empty((3, 3))
    H = np.empty((9, 9))
    HB = np.empty((9, 3))
    block = np.empty((corners, corners, 3, 3))
    work = np.empty(laws.WORKSPACE)
    force[:] = 0.0
    data[:] = 0.0
    for e in range(nodes.shape[0]):
        block[:] = 0.0
        for p in range(volumes.shape[1]):
            G = gradients[e, p]
            volume = volumes[e, p]
            _deformation_gradient(u, nodes[e], G, F)
            laws.stress(law, F, lam[e], mu[e], P, work)
            _scatter_stress(P, volume, nodes[e], G, force)
            if project:
                laws.projected_hessian(law, F, lam[e], mu[e], H, work)
            else:
                laws.hessian(law, F, lam[e], mu[e], H, work)
            _add_blocks(H, G, volume, HB, block)
        _complete_blocks(block)
        _scatter_blocks(block, nodes[e], slots[e], free, starts, data)


@njit(cache=True)
def viscosity(
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    u: np.ndarray,
    free: np.ndarray,
    slots: np.ndarray,
    starts: np.ndarray,
    data: np.ndarray,
) -> None:
    """Write the matrix of `laws.viscosity` at u into the values `data` of the system's pattern, newton per metre."""
    corners = nodes.shape[1]
    F = np.empty((3, 3))
    H = np.empty((9, 9))
    HB = np.empty((9, 3))
    block = np.empty((corners, corners, 3, 3))
    data[:] = 0.0
    for e in range(nodes.shape[0]):
        block[:] = 0.0
        for p in range(volumes.shape[1]):
            _deformation_gradient(u, nodes[e], gradients[e, p], F)
            laws.viscosity(F, lam[e], mu[e], H)
            _add_blocks(H, gradients[e, p], volumes[e, p], HB, block)
        _complete_blocks(block)
        _scatter_blocks(block, nodes[e], slots[e], free, starts, data)


@njit(cache=True)
def _add_blocks(H: np.ndarray, G: np.ndarray, volume: float, HB: np.ndarray, block: np.ndarray) -> None:
    """Add volume · dN_a H dN_b to the upper blocks of all corners but the last; HB (9, 3) is scratch."""
    # Row sums of the shape gradients vanish, so the last corner follows from the others.
    for b in range(block.shape[0] - 1):
        for row in range(9):
            for j in range(3):
                HB[row, j] = volume * (
                    H[row, 3 * j] * G[b, 0] + H[row, 3 * j + 1] * G[b, 1] + H[row, 3 * j + 2] * G[b, 2]
                )
        for a in range(b + 1):
            for i in range(3):
                for j in range(3):
                    block[a, b, i, j] += (
                        G[a, 0] * HB[3 * i, j] + G[a, 1] * HB[3 * i + 1, j] + G[a, 2] * HB[3 * i + 2, j]
                    )


@njit(cache=True)
def _complete_blocks(block: np.ndarray) -> None:
    """Mirror the upper blocks and fill the last block row and column: each block row sums to zero."""
    last = block.shape[0] - 1
    for a in range(last):
        for b in range(a + 1, last):
            for i in range(3):
                for j in range(3):
                    block[b, a, j, i] = block[a, b, i, j]
    for i in range(3):
        for j in range(3):
            corner = 0.0
            for a in range(last):
                total = 0.0
                for b in range(last):
                    total += block[a, b, i, j]
                block[a, last, i, j] = -total
                block[last, a, j, i] = -total
                corner += total
            block[last, last, i, j] = corner


@njit(cache=True)
def _scatter_blocks(
    block: np.ndarray,
    nodes: np.ndarray,
    slots: np.ndarray,
    free: np.ndarray,
    starts: np.ndarray,
    data: np.ndarray,
) -> None:
    """Add the blocks between free corners to the CSR values."""
    corners = nodes.shape[0]
    for a in range(corners):
        row = free[nodes[a]]
        if row < 0:
            continue
        for i in range(3):
            start = starts[3 * row + i]
            for b in range(corners):
                slot = slots[a, b]
                if slot >= 0:
                    at = start + 3 * slot
                    data[at] += block[a, b, i, 0]
                    data[at + 1] += block[a, b, i, 1]
                    data[at + 2] += block[a, b, i, 2]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def stiffness_derivative(
    law: int,
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    lam: np.ndarray,
    mu: np.ndarray,
    fields: np.ndarray,
    result: np.ndarray,
) -> None:
    """Write (H:a)b at rest for all pairs a ≤ b of `fields` (n, 3, k) into `result` (n, 3, k(k+1)/2), newton.

    (H:a)b = D²R(0)[a, b] (StVK05 Eqs. 14, 15) is the force of the stress
        S(ε₂) + ∇b S(ε_a) + ∇a S(ε_b) + c₁(ε_a ε_b + ε_b ε_a)
        + 2c₂(tr ε_a ε_b + tr ε_b ε_a + tr(ε_a ε_b) I) + 2c₃ tr ε_a tr ε_b I,
    ε = sym ∇, ε₂ = sym(∇aᵀ∇b), S(ε) = λ tr ε I + 2μ ε, and c₁, c₂, c₃ the law's third-order constants.
    Symmetric in a and b, exact for every law. Pair (a, b) stands at a + b(b+1)/2, so that for each b
    everything runs over contiguous a.
    """
    count = fields.shape[2]
    corners = nodes.shape[1]
    pairs = count * (count + 1) // 2
    A = np.empty((3, 3, count))
    strain = np.empty((3, 3, count))
    linear = np.empty((3, 3, count))
    trace = np.empty(count)
    pressure = np.empty(count)
    P = np.empty((3, 3, pairs))
    forces = np.empty((corners, 3, pairs))
    result[:] = 0.0
    for e in range(nodes.shape[0]):
        cubic, mixed, volumetric = laws.third_order_constants(law, lam[e], mu[e])
        forces[:] = 0.0
        for p in range(volumes.shape[1]):
            G = gradients[e, p]
            volume = volumes[e, p]
            A[:] = 0.0
            for a in range(corners):
                for i in range(3):
                    for K in range(3):
                        for m in range(count):
                            A[i, K, m] += fields[nodes[e, a], i, m] * G[a, K]
            for m in range(count):
                trace[m] = A[0, 0, m] + A[1, 1, m] + A[2, 2, m]
            for i in range(3):
                for K in range(3):
                    for m in range(count):
                        strain[i, K, m] = 0.5 * (A[i, K, m] + A[K, i, m])
                        linear[i, K, m] = 2.0 * mu[e] * strain[i, K, m]
                        if i == K:
                            linear[i, K, m] += lam[e] * trace[m]
            at = 0
            for n in range(count):
                for m in range(n + 1):
                    pressure[m] = 2.0 * volumetric * trace[m] * trace[n]
                for i in range(3):
                    for K in range(3):
                        gradient, small = lam[e] * A[i, K, n], 2.0 * mixed * strain[i, K, n]
                        for m in range(n + 1):
                            pressure[m] += gradient * A[i, K, m] + small * strain[i, K, m]
                for i in range(3):
                    for K in range(3):
                        row = P[i, K, at : at + n + 1]
                        for m in range(n + 1):
                            row[m] = pressure[m] if i == K else 0.0
                        for L in range(3):
                            b_li, b_lk, b_il = mu[e] * A[L, i, n], mu[e] * A[L, K, n], A[i, L, n]
                            s_lk = linear[L, K, n]
                            for m in range(n + 1):
                                row[m] += (
                                    b_lk * A[L, i, m] + b_li * A[L, K, m] + b_il * linear[L, K, m] + s_lk * A[i, L, m]
                                )
                        if law != laws.STVK:
                            weight, small = 2.0 * mixed * trace[n], 2.0 * mixed * strain[i, K, n]
                            for m in range(n + 1):
                                row[m] += weight * strain[i, K, m] + small * trace[m]
                            for L in range(3):
                                e_lk, e_il = cubic * strain[L, K, n], cubic * strain[i, L, n]
                                for m in range(n + 1):
                                    row[m] += e_lk * strain[i, L, m] + e_il * strain[L, K, m]
                at += n + 1
            for a in range(corners):
                for i in range(3):
                    target = forces[a, i]
                    for K in range(3):
                        slope = volume * G[a, K]
                        stress = P[i, K]
                        for pair in range(pairs):
                            target[pair] += slope * stress[pair]
        for a in range(corners):
            for i in range(3):
                target = result[nodes[e, a], i]
                source = forces[a, i]
                for pair in range(pairs):
                    target[pair] += source[pair]


@dataclass(frozen=True)
class SystemPattern:
    """The sparsity of matrices on free vertices: 3×3 blocks in CSR, and where each element adds to it."""

    free: np.ndarray
    """(n,) int32 position of each vertex among the free ones, −1 where fixed."""
    slots: np.ndarray
    """(e, k, k) int32 block column of corner b within the block row of corner a, −1 where fixed."""
    indptr: np.ndarray
    """(3·free + 1,) int32 CSR row starts."""
    indices: np.ndarray
    """(nonzeros,) int32 CSR columns, sorted."""

    @property
    def size(self) -> int:
        """Free degrees of freedom."""
        return len(self.indptr) - 1

    def matrix(self, data: np.ndarray) -> csr_array:
        """The sparse matrix with these values, sharing the pattern's index arrays."""
        matrix = csr_array((data, self.indices, self.indptr), shape=(self.size, self.size), copy=False)
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        return matrix

    def from_scalar(self, scalar: csr_array) -> np.ndarray:
        """Values of scalar ⊗ I₃ on this pattern; `scalar` (free, free) may have fewer nonzeros."""
        values = np.zeros(len(self.indices))
        scalar = scalar.tocoo()
        block_starts = self.indptr[:-1:3]
        widths = np.diff(self.indptr)[::3] // 3
        block_columns = (
            self.indices[
                np.concatenate([np.arange(s, s + 3 * w, 3) for s, w in zip(block_starts, widths, strict=True)])
            ]
            // 3
        )
        offsets = np.concatenate([[0], np.cumsum(widths)])
        keys = np.repeat(np.arange(len(widths)), widths) * len(widths) + block_columns
        wanted = scalar.row.astype(np.int64) * len(widths) + scalar.col
        slot = np.searchsorted(keys, wanted) - offsets[scalar.row]
        for i in range(3):
            values[self.indptr[3 * scalar.row + i] + 3 * slot + i] = scalar.data
        return values


def system_pattern(vertices: int, elements: np.ndarray, fixed: np.ndarray) -> SystemPattern:
    """The pattern of stiffness on the vertices not in the mask `fixed` (vertices,)."""
    free = np.full(vertices, -1, np.int32)
    free[~fixed] = np.arange((~fixed).sum(), dtype=np.int32)
    corners = elements.shape[1]
    rows = np.repeat(free[elements], corners, axis=1).ravel()
    columns = np.tile(free[elements], (1, corners)).ravel()
    kept = (rows >= 0) & (columns >= 0)
    count = int((~fixed).sum())
    keys, inverse = np.unique(rows[kept].astype(np.int64) * count + columns[kept], return_inverse=True)
    block_rows, block_columns = keys // count, keys % count
    widths = np.bincount(block_rows, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(widths)])
    slots = np.full(rows.size, -1, np.int32)
    slots[kept] = inverse - offsets[rows[kept]]
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * widths, 3))]).astype(np.int32)
    expanded = (3 * block_columns[:, None] + np.arange(3)).astype(np.int32)
    indices = np.concatenate([np.tile(row.ravel(), 3) for row in np.split(expanded, offsets[1:-1])])
    return SystemPattern(free, slots.reshape(-1, corners, corners), indptr, indices)


def consistent_mass(points: IntegrationPoints, density: np.ndarray, vertices: int) -> csr_array:
    """(n, n) scalar mass ∫ρ N_a N_b dV, kilogram; the mass matrix is this ⊗ I₃."""
    values = np.einsum("ep,pa,pb->eab", points.volumes * density[:, None], points.shapes, points.shapes, optimize=True)
    corners = points.nodes.shape[1]
    rows = np.repeat(points.nodes, corners, axis=1).ravel()
    columns = np.tile(points.nodes, (1, corners)).ravel()
    return coo_array((values.ravel(), (rows, columns)), shape=(vertices, vertices)).tocsr()


def lumped_mass(points: IntegrationPoints, density: np.ndarray, vertices: int) -> np.ndarray:
    """(n,) row sums of the consistent mass, kilogram."""
    values = np.einsum("ep,pa->ea", points.volumes * density[:, None], points.shapes)
    return np.bincount(points.nodes.ravel(), weights=values.ravel(), minlength=vertices)
