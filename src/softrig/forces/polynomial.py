"""Coefficients of the reduced StVK polynomials, by matrix products (StVK05 §4.2, App. B).

With G_i = ∇φ_i at an integration point, the Green strain of u = Uq is
    E(q) = Σ q_i sym G_i + ½ Σ q_i q_j sym(G_iᵀ G_j).
Stack the linear terms and the pair terms i ≤ j as columns of one tall matrix X, a few rows a point,
each scaled by the root of volume and modulus: the energy is ½‖X (q, ½qq)‖², and XᵀX holds every
coefficient. GEMM does the O(r⁴) work per element that the paper does in loops.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from softrig.bases.modes import rigid_motions
from softrig.bases.snapshots import Basis
from softrig.errors import InputError, ModeCountError, require_finite, require_indices
from softrig.fem import assembly
from softrig.fem.embedding import Embedding
from softrig.models.full import FullBody
from softrig.models.reduced import LAMBDA, MU, ReducedBody, StvkCoefficients
from softrig.numerics.symmetric_tensors import entry_count, pack, sorted_indices

BLOCK_BYTES = 6 * 2**20
"""Memory for one block of stacked strain rows: small enough to stay in the cache until its product is done."""


def reduce_body(
    body: FullBody,
    basis: np.ndarray | Basis,
    *,
    surface: Embedding | None = None,
    surface_triangles: np.ndarray | None = None,
    surface_colours: np.ndarray | None = None,
    notes: dict[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReducedBody:
    """The reduced model of a StVK body in the span of `basis`, a `Basis` or (3·free, r) mass-orthonormal vectors.

    `surface` and `surface_triangles` (t, 3) hang a finer mesh to draw on the volume mesh. A body
    without fixed vertices becomes one that flies freely: its basis must hold no rigid motion (those of
    `softrig.bases` do not). `progress(done, total)` counts elements.
    """
    if isinstance(basis, Basis):
        basis = basis.shapes
    if body.law != "stvk":
        raise InputError(f"only the stvk law reduces to polynomials, this body has {body.law!r}")
    if basis.ndim != 2 or basis.shape[0] != body.size:
        raise InputError(f"the basis has shape {basis.shape}, the body {body.size} free degrees of freedom")
    if basis.shape[1] == 0:
        raise ModeCountError("the basis has no vectors")
    require_finite(basis.T, "basis vectors")
    if (surface is None) != (surface_triangles is None):
        raise InputError("give `surface` and `surface_triangles` together")
    if surface is not None and surface_triangles is not None:
        require_indices(surface.nodes.ravel(), len(body.mesh.vertices), "vertices of the embedding")
        require_indices(surface_triangles.ravel(), len(surface.nodes), "vertices of the surface triangles")
    if body.is_free:
        _require_no_rigid_motion(body, basis)
    full_basis = np.ascontiguousarray(body.expand(basis))
    coefficients, lam, mu, density = stvk_coefficients(body, full_basis, progress)
    triangles = body.mesh.boundary_triangles if surface_triangles is None else surface_triangles
    return ReducedBody(
        vertices=body.mesh.vertices,
        basis=full_basis.reshape(-1, basis.shape[1]),
        coefficients=coefficients,
        group_names=body.mesh.group_names,
        lam=lam,
        mu=mu,
        density=density,
        uniform_products=_uniform_products(body, full_basis, density),
        surface_triangles=np.ascontiguousarray(triangles, dtype=np.int32),
        surface=surface,
        surface_colours=surface_colours,
        rigid_products=rigid_products(body, full_basis, density) if body.is_free else None,
        notes=notes or {},
    )


def stvk_coefficients(
    body: FullBody, basis: np.ndarray, progress: Callable[[int, int], None] | None = None
) -> tuple[StvkCoefficients, np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients in the basis (n, 3, r), and each group's reference λ, μ (pascal) and density (kg/m³)."""
    r = basis.shape[2]
    groups = body.mesh.groups
    count = len(body.mesh.group_names)
    lam, mu, density = (_reference(field, groups, count) for field in (body.lam, body.mu, body.density))
    shapes = [(count, 2, entry_count(order, r)) for order in (2, 3, 4)]
    linear, cubic, quartic = (np.zeros(shape) for shape in shapes)
    mass = np.zeros((count, entry_count(2, r)))
    done = 0
    triples, quads = sorted_indices(3, r), sorted_indices(4, r)
    for g in range(count):
        members = np.nonzero(groups == g)[0]
        gram_lambda, gram_mu = _strain_grams(body, basis, members, lam[g], mu[g], progress, done)
        done += len(members)
        for place, gram in ((LAMBDA, gram_lambda), (MU, gram_mu)):
            linear[g, place] = pack(gram[:r, :r])
            _symmetrise(gram, r, triples, quads, cubic[g, place], quartic[g, place])
        mass[g] = pack(_reduced_products(_group_mass(body, g, density[g]), basis, basis).trace(axis1=2, axis2=3))
    return StvkCoefficients(linear, cubic, quartic, mass), lam, mu, density


def _reference(field: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """(count,) the value of largest magnitude in each group: the value itself where it is uniform."""
    result = np.zeros(count)
    for g in range(count):
        values = field[groups == g]
        if values.size:
            result[g] = values[np.abs(values).argmax()]
    return result


def _relative(field: np.ndarray, reference: float) -> np.ndarray:
    return field / reference if reference != 0.0 else np.ones_like(field)


def _strain_grams(
    body: FullBody,
    basis: np.ndarray,
    members: np.ndarray,
    lam: float,
    mu: float,
    progress: Callable[[int, int], None] | None,
    done: int,
) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX of the elements `members` for unit λ and for unit μ, both (r+s, r+s)."""
    r = basis.shape[2]
    width = r + entry_count(2, r)
    gram_lambda, gram_mu = np.zeros((width, width)), np.zeros((width, width))
    points = body.mesh.stiffness_points
    per_element = points.volumes.shape[1]
    block = max(1, BLOCK_BYTES // (8 * 7 * width * per_element))
    traces = np.empty((block * per_element, width))
    strains = np.empty((6 * block * per_element, width))
    # One BLAS thread: on a busy machine two are slower than one, and never much faster at this size.
    with threadpool_limits(1, user_api="blas"):
        for start in range(0, len(members), block):
            some = members[start : start + block]
            rows = len(some) * per_element
            weights = (points.volumes[some] * _relative(body.lam[some], lam)[:, None]).ravel()
            T, S = traces[:rows], strains[: 6 * rows]
            _fill_strains(
                points.nodes[some], points.gradients[some], points.volumes[some],
                _relative(body.mu[some], mu), basis, T, S,
            )  # fmt: skip
            gram_mu += S.T @ S
            # λ may have either sign, so its weight cannot go under a root.
            gram_lambda += (T * weights[:, None]).T @ T
            if progress:
                progress(done + start + len(some), len(body.mesh.elements))
    return gram_lambda, gram_mu


@njit(cache=True, fastmath=True)
def _fill_strains(
    nodes: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
    mu: np.ndarray,
    basis: np.ndarray,
    traces: np.ndarray,
    strains: np.ndarray,
) -> None:
    """Rows of X: tr of each strain term, and √(2μ volume) times its six components (off-diagonals × √2)."""
    r = basis.shape[2]
    G = np.empty((3, 3, r))
    row = 0
    for e in range(nodes.shape[0]):
        for p in range(volumes.shape[1]):
            G[:] = 0.0
            for a in range(nodes.shape[1]):
                for i in range(3):
                    for K in range(3):
                        slope = gradients[e, p, a, K]
                        for m in range(r):
                            G[i, K, m] += basis[nodes[e, a], i, m] * slope
            scale = np.sqrt(2.0 * mu[e] * volumes[e, p])
            for m in range(r):
                traces[row, m] = G[0, 0, m] + G[1, 1, m] + G[2, 2, m]
            column = r
            for m in range(r):
                for n in range(m + 1):
                    total = 0.0
                    for i in range(3):
                        for K in range(3):
                            total += G[i, K, m] * G[i, K, n]
                    traces[row, column + n] = total
                column += m + 1
            component = 6 * row
            for K in range(3):
                for L in range(K, 3):
                    # sym(A)[K,L] counts twice in E:E where K ≠ L: factor ½·√2 = √½.
                    weight = scale * (0.5 if K == L else np.sqrt(0.5))
                    target = strains[component]
                    for m in range(r):
                        target[m] = weight * (G[K, L, m] + G[L, K, m])
                    column = r
                    for m in range(r):
                        k0, k1, k2 = G[0, K, m], G[1, K, m], G[2, K, m]
                        l0, l1, l2 = G[0, L, m], G[1, L, m], G[2, L, m]
                        for n in range(m + 1):
                            target[column + n] = weight * (
                                k0 * G[0, L, n] + k1 * G[1, L, n] + k2 * G[2, L, n]
                                + l0 * G[0, K, n] + l1 * G[1, K, n] + l2 * G[2, K, n]
                            )  # fmt: skip
                        column += m + 1
                    component += 1
            row += 1


@njit(cache=True)
def _pair(i: int, j: int) -> int:
    return i + j * (j + 1) // 2 if i <= j else j + i * (i + 1) // 2


@njit(cache=True)
def _symmetrise(
    gram: np.ndarray, r: int, triples: np.ndarray, quads: np.ndarray, cubic: np.ndarray, quartic: np.ndarray
) -> None:
    """Third and fourth derivatives of the energy: sums over the ways to split the indices into pairs.

    T₃[ijk] = Q[i,jk] + Q[j,ik] + Q[k,ij], T₄[ijkl] = Q[ij,kl] + Q[ik,jl] + Q[il,jk], Q = XᵀX.
    """
    for t in range(triples.shape[0]):
        i, j, k = triples[t, 0], triples[t, 1], triples[t, 2]
        cubic[t] = gram[i, r + _pair(j, k)] + gram[j, r + _pair(i, k)] + gram[k, r + _pair(i, j)]
    for t in range(quads.shape[0]):
        i, j, k, m = quads[t, 0], quads[t, 1], quads[t, 2], quads[t, 3]
        quartic[t] = (
            gram[r + _pair(i, j), r + _pair(k, m)]
            + gram[r + _pair(i, k), r + _pair(j, m)]
            + gram[r + _pair(i, m), r + _pair(j, k)]
        )


def _group_mass(body: FullBody, group: int, density: float) -> csr_array:
    """(n, n) scalar mass of one group at unit density."""
    mesh = body.mesh
    weight = np.where(mesh.groups == group, _relative(body.density, density), 0.0)
    if body.mass_kind == "lumped":
        lumped = assembly.lumped_mass(mesh.mass_points, weight, len(mesh.vertices))
        return csr_array((lumped, (np.arange(len(lumped)),) * 2))
    return assembly.consistent_mass(mesh.mass_points, weight, len(mesh.vertices))


def _reduced_products(mass: csr_array, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(k, m, 3, 3) Σ_ab mass[a,b] left[a,:,i] ⊗ right[b,:,j] of fields (n, 3, k) and (n, 3, m)."""
    weighted = (mass @ right.reshape(len(right), -1)).reshape(right.shape)
    return np.einsum("axi,ayj->ijxy", left, weighted, optimize=True)


def _require_no_rigid_motion(body: FullBody, basis: np.ndarray) -> None:
    rigid = rigid_motions(body)
    share = np.linalg.norm(rigid.T @ (body.mass @ basis), axis=0)
    size = np.sqrt(np.einsum("ij,ij->j", basis, body.mass @ basis))
    moving = np.nonzero(share > 1e-6 * size)[0]
    if moving.size:
        raise InputError("basis vectors of a free body that hold rigid motion", moving)


def _uniform_products(body: FullBody, basis: np.ndarray, density: np.ndarray) -> np.ndarray:
    """(g, 3, r) Σ mass · basis at unit density: the modes' share in uniform accelerations."""
    groups = range(len(body.mesh.group_names))
    masses = [np.asarray(_group_mass(body, g, density[g]).sum(axis=0)).ravel() for g in groups]
    return np.einsum("gn,nxr->gxr", np.array(masses), basis)


def rigid_products(body: FullBody, basis: np.ndarray, density: np.ndarray) -> np.ndarray:
    """(g, r+2, r+2, 3, 3) products of {uniform, rest position, modes} at unit density.

    The uniform field stands for e_x + e_y + e_z: entry [x, y] of a product with it only uses its x.
    """
    n, _, r = basis.shape
    fields = np.empty((n, 3, r + 2))
    fields[:, :, 0] = 1.0
    fields[:, :, 1] = body.mesh.vertices
    fields[:, :, 2:] = basis
    groups = range(len(body.mesh.group_names))
    return np.stack([_reduced_products(_group_mass(body, g, density[g]), fields, fields) for g in groups])
