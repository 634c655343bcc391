"""Bases that are local to regions (PSSD §7): ours by a partition of unity, and the paper's weighted modes.

Ours multiplies global samples by region weights that sum to one: all regions together can still do what the samples
do. The paper's clamps every region at its border, which stiffens the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from softrig.errors import InputError, ModeCountError, require_finite
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.regions import Handle, region_weights
from softrig.numerics.pca import RANK_TOLERANCE, mass_orthonormal
from softrig.numerics.sparse import stiffness_solve

FAIR = 0.5
"""A region of bones holds at least this part of an equal share of the volume."""
TWINS = 1.1
"""Regions whose volumes differ by less than this factor are merged together, if one of them is."""
BLEND = 0.15
"""Default width over which region weights are smoothed, in edges of a cube of a region's volume; 0 is none.
Wider is truer and less local: on the arm 0, 0.25 and 0.5 put a vertex into 1.3, 1.7 and 2.0 regions, at 6.3, 5.9 and
5.9 % trajectory error."""


@dataclass(frozen=True)
class RegionalBasis:
    """Bases of several poses whose columns belong to regions, as many of each region at every pose."""

    shapes: tuple[np.ndarray, ...]
    """For each pose (n, 3, r), mass-orthonormal within each region, 1/√kilogram; exactly zero outside it."""
    region_of_mode: np.ndarray
    """(r,) int32, rising; within a region columns fall in σ."""
    sigma: np.ndarray
    """(r,) how much each column matters: RMS over the poses of its singular values, metres √kilogram."""


def regional_basis(
    samples: Sequence[np.ndarray],
    partition: np.ndarray,
    vertex_mass: np.ndarray,
    size: int,
    *,
    minimum: int = 4,
    metric: np.ndarray | None = None,
) -> RegionalBasis:
    """`size` modes shared among g regions: mass-PCA of the samples times each region's weights.

    `samples`: for each pose (n, 3, k) metres, zero at fixed vertices (in the world or un-rotated, as the shapes are
    to be). `partition` (n, g) in 0 … 1, rows sum to one; `vertex_mass` (n,) kilogram. Every region gets
    `minimum` modes, the others go one by one to the region whose next σ is largest (RMS over the poses).
    `metric` (n,) multiplies the mass in the PCA only. Contacts that hold single vertices stay held.
    """
    weights = _checked_partition(partition, samples, vertex_mass)
    # One at a time: all of them together are the samples once for every region.
    parts = ((_Part(field, region) for region in weights.T) for field in samples)
    return _basis_of_parts(parts, vertex_mass, size, minimum, None, metric)


def completed_basis(
    lived: np.ndarray,
    share: int,
    samples: Sequence[np.ndarray],
    partition: np.ndarray,
    vertex_mass: np.ndarray,
    size: int,
    *,
    minimum: int = 4,
    metric: np.ndarray | None = None,
) -> RegionalBasis:
    """At most `share` modes for the whole body from shapes it took, `lived` (n, 3, k), and local ones up to `size`.

    The local modes are of what the samples of each pose (n, 3, k) hold beyond the whole body's modes. Those, the same
    at every pose, come last, as one region more where there are several. σ of both kinds count from their own largest.
    """
    whole = _components(_Part(lived), vertex_mass, share)
    share = min(share, len(whole.sigma))
    known = whole.shapes(vertex_mass, share)
    beyond = []
    for field in samples:
        held = np.einsum("nia,nik,n->ak", known, field, vertex_mass, optimize=True)
        beyond.append(field - np.einsum("nia,ak->nik", known, held, optimize=True))
    try:
        local = regional_basis(beyond, partition, vertex_mass, size - share, minimum=minimum, metric=metric)
    except ModeCountError as short:
        if short.most is None:
            raise
        most = short.most + share
        raise ModeCountError(f"{size} modes asked of a body that has {most}", most=most) from short
    shapes = tuple(np.concatenate([own, known], axis=2) for own in local.shapes)
    own_region = partition.shape[1] if partition.shape[1] > 1 else 0
    regions = np.concatenate([local.region_of_mode, np.full(share, own_region, np.int32)])
    sigma = [part / max(float(part.max(initial=0.0)), 1e-300) for part in (local.sigma, whole.sigma[:share])]
    return RegionalBasis(shapes, regions, np.concatenate(sigma))


def leading_fields(fields: np.ndarray, measure: np.ndarray, count: int) -> np.ndarray:
    """(n, 3, ≤ count) the principal components of samples (n, 3, k) by the mass `measure` (n,), at their size."""
    if fields.shape[2] <= count:
        return fields
    part = _components(_Part(fields), measure, count)
    leading = np.zeros((*fields.shape[:2], min(count, len(part.sigma))))
    leading[part.inside] = part.sized.reshape(len(part.inside), 3, -1)
    return leading


def basis_of_regions(
    samples: Sequence[Sequence[np.ndarray]],
    vertex_mass: np.ndarray,
    size: int,
    *,
    minimum: int = 4,
    counts: Sequence[int] | None = None,
    metric: np.ndarray | None = None,
) -> RegionalBasis:
    """The same from samples (n, 3, k) for each pose and each region; `counts` (g,) settles who gets how many modes."""
    parts = ((_Part(field) for field in pose) for pose in samples)
    return _basis_of_parts(parts, vertex_mass, size, minimum, counts, metric)


class _Part(NamedTuple):
    """A region's part of the samples of a pose: the products of both."""

    field: np.ndarray
    """(n, 3, k) metres."""
    weights: np.ndarray | None = None
    """(n,); None: all one."""


def _basis_of_parts(
    parts: Iterable[Iterable[_Part]],
    vertex_mass: np.ndarray,
    size: int,
    minimum: int,
    counts: Sequence[int] | None,
    metric: np.ndarray | None,
) -> RegionalBasis:
    measure = vertex_mass if metric is None else vertex_mass * metric
    components = [[_components(part, measure, size) for part in pose] for pose in parts]
    spectra = [[component.sigma for component in pose] for pose in components]
    if counts is None:
        counts = shared_counts(spectra, size, minimum)
    elif sum(counts) != size:
        raise InputError(f"{list(counts)} modes for the regions are not {size} in all")
    ranks = np.array([[len(s) for s in pose] for pose in spectra]).min(axis=0)
    if (short := ranks < counts).any():
        raise ModeCountError(f"regions asked for {list(counts)} modes have {ranks.tolist()}", np.flatnonzero(short))
    shapes = tuple(
        np.concatenate([part.shapes(vertex_mass, k) for part, k in zip(pose, counts, strict=True)], axis=2)
        for pose in components
    )
    regions = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    pooled = [_pooled([pose[g] for pose in spectra])[:k] for g, k in enumerate(counts)]
    return RegionalBasis(shapes, regions, np.concatenate(pooled))


def shared_counts(spectra: Sequence[Sequence[np.ndarray]], size: int, minimum: int) -> list[int]:
    """Modes for each region: `minimum` each, then one by one to the largest next σ pooled over the poses.

    `spectra`: for each pose and region the singular values, falling; no region gets more than it has at every pose.
    """
    pooled = [_pooled(list(of_region)) for of_region in zip(*spectra, strict=True)]
    available = np.array([len(values) for values in pooled])
    if size < minimum * len(pooled):
        raise ModeCountError(f"{size} modes are too few for {len(pooled)} regions with at least {minimum} each")
    if (short := available < minimum).any():
        raise ModeCountError(f"regions with fewer than {minimum} modes", np.flatnonzero(short))
    if size > available.sum():
        raise ModeCountError(f"{size} modes asked of regions that have {available.tolist()}", most=int(available.sum()))
    counts = [minimum] * len(pooled)
    for _ in range(size - sum(counts)):
        following = [values[k] if k < len(values) else -1.0 for values, k in zip(pooled, counts, strict=True)]
        counts[int(np.argmax(following))] += 1
    return counts


def _pooled(spectra: list[np.ndarray]) -> np.ndarray:
    """RMS over the poses of each singular value, as many as all poses have."""
    count = min(len(values) for values in spectra)
    return np.sqrt(np.mean([values[:count] ** 2 for values in spectra], axis=0))


@dataclass(frozen=True)
class _Components:
    """The mass-PCA of a region's samples, over its own vertices alone: all others are zero and cost nothing."""

    vertices: int
    inside: np.ndarray
    """(k,) vertices that move."""
    sized: np.ndarray
    """(3k, ≤ rank) metres: the first shapes times σ."""
    sigma: np.ndarray
    """(rank,) falling, metres √kilogram."""

    def shapes(self, vertex_mass: np.ndarray, count: int) -> np.ndarray:
        """(n, 3, count) the first, mass-orthonormal."""
        shapes = np.zeros((self.vertices, 3, count))
        if count:
            basis = mass_orthonormal(self.sized[:, :count] / self.sigma[:count], _diagonal(vertex_mass[self.inside]))
            shapes[self.inside] = basis.reshape(-1, 3, count)
        return shapes


def _components(part: _Part, measure: np.ndarray, most: int) -> _Components:
    """Of samples F (n, 3, k): with the Gram matrix FᵀMF = VΣ²Vᵀ shapes times σ are F V; the first `most` of them."""
    field, weights = part
    inside = np.arange(len(field)) if weights is None else np.flatnonzero(weights)
    inside = inside[field[inside].any(axis=(1, 2))]
    own = field[inside] if weights is None else field[inside] * weights[inside, None, None]
    if not np.isfinite(own).all():
        require_finite(field, "samples")  # all of it, so that the vertex named is the caller's
    flat = own.reshape(-1, field.shape[2])
    values, vectors = np.linalg.eigh(flat.T @ (_diagonal(measure[inside]) @ flat))
    sigma = np.sqrt(np.maximum(values, 0.0))
    kept = np.flatnonzero(sigma > 2.0 * RANK_TOLERANCE * sigma[-1])[::-1]
    return _Components(len(field), inside, flat @ vectors[:, kept[:most]], sigma[kept])


def _diagonal(vertex_mass: np.ndarray) -> csr_array:
    return csr_array(diags_array(np.repeat(vertex_mass, 3)))


def _checked_partition(weights: np.ndarray, samples: Sequence[np.ndarray], vertex_mass: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    n = len(vertex_mass)
    if weights.ndim != 2 or len(weights) != n or any(s.ndim != 3 or s.shape[:2] != (n, 3) for s in samples):
        raise InputError(f"weights {weights.shape} and samples {[s.shape for s in samples]} for {n} vertices")
    if not samples:
        raise InputError("at least one pose has samples")
    uneven = ~(np.abs(weights.sum(axis=1) - 1.0) < 1e-6) | (weights < 0.0).any(axis=1)
    if uneven.any():
        raise InputError("region weights must not be negative and sum to one, vertices", np.flatnonzero(uneven))
    moving = np.any([field.any(axis=(1, 2)) for field in samples], axis=0)
    require_members(weights, moving)
    return weights


def require_members(weights: np.ndarray, free: np.ndarray, names: Sequence[str] = ()) -> None:
    """An `InputError` that names the regions of `weights` (n, g) without any vertex, or without one in `free` (n,)."""
    for mask, what in ((np.ones(len(weights), np.bool_), "vertices"), (free, "free vertices")):
        empty = np.flatnonzero(~(weights[mask] > 0.0).any(axis=0))
        if empty.size:
            known = f" ({', '.join(names[k] for k in empty.tolist())})" if names else ""
            raise InputError(f"regions without {what}{known}", empty)


def log_size_counts(weights: np.ndarray, size: int, *, minimum: int = 1) -> list[int]:
    """`size` modes for the regions of `weights` (n, g) in proportion to the logarithm of their vertex counts."""
    members = (weights > 0.0).sum(axis=0)
    if size < minimum * len(members):
        raise ModeCountError(f"{size} modes are too few for {len(members)} regions with at least {minimum} each")
    shares = np.log(1.0 + members)
    exact = minimum + (size - minimum * len(members)) * shares / shares.sum()
    counts = np.floor(exact).astype(int)
    # Largest remainders first, lower index first among equals.
    for region in np.argsort(-(exact - counts), kind="stable")[: size - counts.sum()]:
        counts[region] += 1
    return counts.tolist()


@dataclass(frozen=True)
class BoneRegions:
    """Regions made of bones, as weights over the vertices of a mesh."""

    names: tuple[str, ...]
    """g names, that of the topmost bone of each."""
    weights: np.ndarray
    """(n, g) in 0 … 1, rows sum to one, exactly zero outside a region."""
    region_of_bone: np.ndarray
    """(B,) int32."""


def default_regions(
    mesh: VolumeMesh,
    tet_weights: csr_array,
    parents: np.ndarray,
    *,
    names: Sequence[str] = (),
    count: int = 6,
    handles: Sequence[Handle] | None = None,
    blend: float = BLEND,
) -> BoneRegions:
    """At most `count` regions: bones merged up the hierarchy until each holds a fair share of the volume.

    `tet_weights` (n, B) rows sum to one; `parents` (B,) −1 for roots. The weights of a region are the sum of its bones'
    skin weights, smoothed over `blend` times the edge of a cube of a region's volume, small ones cut off. With
    `handles` (points, segments, bones), one region each by bounded biharmonic weights instead of bones.
    """
    if handles is not None:
        found = region_weights(mesh, handles)
        owner = np.argmax(tet_weights.T @ found.weights, axis=1).astype(np.int32)
        return BoneRegions(found.names, compact_partition(found.weights), owner)
    volumes = np.bincount(mesh.elements.ravel(), np.repeat(mesh.volumes / 4.0, 4), minlength=len(mesh.vertices))
    region_of_bone, tops = merged_bones(np.asarray(tet_weights.T @ volumes).ravel(), parents, count)
    bones = np.arange(tet_weights.shape[1])
    merge = csr_array((np.ones(len(bones)), (bones, region_of_bone)), shape=(len(bones), len(tops)))
    weights = (tet_weights @ merge).toarray()
    if blend > 0.0:
        weights = _diffused(weights, mesh, volumes, blend * float(volumes.sum() / len(tops)) ** (1.0 / 3.0))
    titles = tuple(names[top] if names else f"bone {top}" for top in tops)
    return BoneRegions(titles, compact_partition(weights), region_of_bone)


def paper_regions(mesh: VolumeMesh, regions: BoneRegions, handles: Sequence[Handle] | None = None) -> BoneRegions:
    """The same regions with the weights of PSSD §7: bounded biharmonic, of one handle each, as they come.

    `handles`, one a region, default points in the middle of the regions: the paper's users set points. The weights
    reach from handle to handle, so that regions overlap far more than parts of a partition; `paper_region_weights`
    cuts them off. Weights that were cut off before (`compact_partition`) would be so twice.
    """
    if len(regions.names) == 1:
        return regions
    if handles is None:
        volumes = np.bincount(mesh.elements.ravel(), np.repeat(mesh.volumes / 4.0, 4), minlength=len(mesh.vertices))
        shares = regions.weights * volumes[:, None]
        middles = shares.T @ mesh.vertices / shares.sum(axis=0)[:, None]
        handles = [Handle.point(name, middle) for name, middle in zip(regions.names, middles, strict=True)]
    return replace(regions, weights=region_weights(mesh, handles).weights)


def merged_bones(volumes: np.ndarray, parents: np.ndarray, count: int) -> tuple[np.ndarray, list[int]]:
    """(B,) the region of each bone, and the topmost bone of each region; `volumes` (B,) m³ that the bones carry.

    The smallest region joins the one above it (a root's, the trunk below) while there are more than `count` or
    it holds less than half of a fair share, total/count. Regions of nearly the same volume join together: left and
    right stay alike.
    """
    if count < 1 or volumes.shape != np.shape(parents) or not volumes.sum() > 0.0:
        raise InputError(f"{count} regions of bones {volumes.shape} with parents {np.shape(parents)}")
    top = np.arange(len(volumes))
    while True:
        size = np.bincount(top, volumes, minlength=len(volumes))
        tops = np.unique(top)
        smallest = float(size[tops].min())
        enough = len(tops) <= count and smallest >= FAIR * volumes.sum() / count
        if enough or len(tops) == 1:
            break
        for region in tops[size[tops] <= TWINS * smallest].tolist():
            if np.unique(top).size > 1:
                top[top == region] = _neighbour(region, top, size, parents)
        top = _at_their_tops(top, parents)
    return np.searchsorted(tops, top).astype(np.int32), tops.tolist()


def _neighbour(region: int, top: np.ndarray, size: np.ndarray, parents: np.ndarray) -> int:
    """The region above; of a root the one below with the largest branch (the trunk), or the smallest of other trees."""
    if parents[region] >= 0:
        return int(top[parents[region]])
    others = np.unique(top[top != region])
    below = [other for other in others.tolist() if parents[other] >= 0 and top[parents[other]] == region]
    if not below:
        return int(min(others.tolist(), key=lambda other: (size[other], other)))
    # Joining a limb instead would tell left from right.
    return max(below, key=lambda other: (_branch(other, top, size, parents), -other))


def _branch(region: int, top: np.ndarray, size: np.ndarray, parents: np.ndarray) -> float:
    """The volume of a region and of all below it."""
    total = 0.0
    for other in np.unique(top).tolist():
        at = other
        while at != region and parents[at] >= 0:
            at = int(top[parents[at]])
        total += float(size[other]) if at == region else 0.0
    return total


def _at_their_tops(top: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """Each region renamed after a bone of its own that has none of them above it."""
    renamed = top.copy()
    for region in np.unique(top).tolist():
        members = np.flatnonzero(top == region)
        heads = [bone for bone in members.tolist() if parents[bone] < 0 or top[parents[bone]] != region]
        renamed[members] = heads[0]
    return renamed


def _diffused(weights: np.ndarray, mesh: VolumeMesh, volumes: np.ndarray, length: float) -> np.ndarray:
    """Weights (n, g) after two implicit steps of diffusion over ℓ = `length` metres: (V + ℓ²L) w' = V w.

    Never less than half a mean edge of the mesh: weights that jump within a tet would strain it. L has positive edge
    weights, so that 0 … 1 and the sum of one stay. Two steps leave no crease.
    """
    n = len(mesh.vertices)
    pairs = mesh.elements[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2)
    ends = np.unique(np.sort(pairs, axis=1), axis=0)
    degree = np.bincount(ends.ravel(), minlength=n)
    per_edge = volumes / np.maximum(degree, 1)
    squares = np.sum((mesh.vertices[ends[:, 0]] - mesh.vertices[ends[:, 1]]) ** 2, axis=1)
    # Six neighbours at a distance h make the plain second differences of a grid, Σ (u_b − u_a)/h².
    length = max(length, 0.5 * float(np.sqrt(squares).mean()))
    strength = 6.0 * 0.5 * per_edge[ends].sum(axis=1) / squares
    graph = csr_array((strength, (ends[:, 0], ends[:, 1])), shape=(n, n))
    graph = graph + graph.T
    laplacian = diags_array(np.asarray(graph.sum(axis=1)).ravel()) - graph
    held = np.maximum(volumes, 1e-12 * volumes.max())
    solve = stiffness_solve(csr_array(diags_array(held) + length**2 * laplacian), graph, None)
    for _ in range(2):
        weights = np.asarray(solve(np.ascontiguousarray(held[:, None] * weights)))
    return np.clip(weights, 0.0, 1.0)


def compact_partition(weights: np.ndarray, *, threshold: float = 0.1) -> np.ndarray:
    """(n, g) weights that are zero below `threshold`, rise from it without a crease, and sum to one again."""
    least = min(threshold, 0.5 / weights.shape[1])
    share = np.clip((weights - least) / (1.0 - least), 0.0, 1.0)
    bent = share**2 * (3.0 - 2.0 * share)
    return np.asarray(bent / bent.sum(axis=1, keepdims=True))
