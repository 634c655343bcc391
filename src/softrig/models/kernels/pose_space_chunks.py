"""Cubature tets in chunks of eight: which tets stand together, and their arrays."""

from __future__ import annotations

import numpy as np

from softrig.errors import InputError
from softrig.fem.laws import law_code
from softrig.models.kernels.pose_space_elements import LANES
from softrig.models.kernels.pose_space_layout import cubature_runs, run_columns
from softrig.models.kernels.pose_space_tables import BoneRuns, Chunks
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel


def chunk_cost(columns: float) -> float:
    """Time of a chunk of so many columns, in columns of rows: rows are linear in it, the stiffness is quadratic."""
    return 12.0 + columns + 0.017 * columns * columns


def chunked(masks: np.ndarray, sizes: np.ndarray) -> list[list[int]]:
    """Tets in lists of at most eight, so that the chunks are few and narrow.

    `masks` (c, g): regions each tet meets; `sizes` (g,): their columns. Whole chunks of equal masks first; what is
    left of each mask joins others where one wider chunk is cheaper than two.
    """
    lists: list[list[int]] = []
    open_lists: list[tuple[list[int], np.ndarray]] = []
    for mask in np.unique(masks, axis=0):
        tets = np.flatnonzero((masks == mask).all(axis=1)).tolist()
        whole = len(tets) - len(tets) % LANES
        lists += [tets[at : at + LANES] for at in range(0, whole, LANES)]
        if tets[whole:]:
            open_lists.append((tets[whole:], mask))
    while True:
        gains = [
            (chunk_cost(sizes @ a) + chunk_cost(sizes @ b) - chunk_cost(sizes @ (a | b)), i, j)
            for i, (one, a) in enumerate(open_lists)
            for j, (two, b) in enumerate(open_lists[:i])
            if len(one) + len(two) <= LANES
        ]
        gain, i, j = max(gains, default=(0.0, 0, 0))
        if gain <= 0.0:
            return lists + [tets for tets, _ in open_lists]
        two, b = open_lists.pop(i)
        one, a = open_lists[j]
        open_lists[j] = (one + two, a | b)


def chunks(
    model: PoseSpaceModel, runs: np.ndarray, regions: np.ndarray, kept: bool, parts: int
) -> tuple[Chunks, np.ndarray, np.ndarray, BoneRuns, np.ndarray]:
    """The chunks of a model, their members, the vertices of its cubature tets by bones, and (g, g) who shares a chunk.

    Members (chunks, LANES): places in `cubature.tets`, −1 in empty lanes.

    `runs` (g + 1,) first modes of the regions, `regions` (n, g) which of them move a vertex; `kept`: whether each chunk
    has a place of its own for the rows of its basis, so that they need not be made anew; `parts`: into how many the
    chunks are divided that take turns.
    """
    corners = model.tets[model.cubature.tets]
    masks = regions[corners].any(axis=1)
    felt = np.flatnonzero(masks.any(axis=1) & (model.cubature.weights > 0.0).any(axis=0))
    lists = [felt[chunk].tolist() for chunk in chunked(masks[felt], np.diff(runs))]
    unions = [masks[chunk].any(axis=0) for chunk in lists]
    order = sorted(range(len(lists)), key=lambda k: tuple(unions[k].tolist()))
    lists, unions = [lists[k] for k in order], [unions[k] for k in order]
    together = np.zeros((regions.shape[1],) * 2, bool)
    for union in unions:
        together |= np.outer(union, union)
    begins = [k for k in range(len(lists)) if k == 0 or (unions[k] != unions[k - 1]).any()]
    columns = [run_columns(runs, unions[k]) for k in begins]
    vertices = np.unique(corners[felt])
    by_bones, bones = cubature_runs(model, vertices)
    place = np.empty(len(model.vertices), np.int32)
    vertices = vertices[by_bones]
    place[vertices] = np.arange(len(vertices))
    width = np.array([int(np.diff(runs) @ union) for union in unions], np.int64)
    members = np.array([own + [-1] * (LANES - len(own)) for own in lists], np.int32).reshape(-1, LANES)
    corner_places, edges, inverses, volumes, weights, young, poisson, shapes = _arrays(
        model, lists, unions, runs, place
    )
    starts = np.cumsum([0, *(len(part) for part in columns)]).astype(np.int32)
    return (
        Chunks(
            law_code(model.law),
            np.array([*begins, len(lists)], np.int32),
            starts,
            np.concatenate([np.zeros(0, np.int32), *columns]),
            equal_parts(width.astype(np.float64) ** 2, parts),
            corner_places,
            edges,
            inverses,
            volumes,
            weights,
            young,
            poisson,
            np.ones((len(lists), LANES)),
            _offsets(width * len(model.shapes) * 12 * LANES),
            shapes,
            _offsets((width + 4) * 9 * LANES * kept),
        ),
        members,
        vertices,
        bones,
        together,
    )


def equal_parts(costs: np.ndarray, parts: int) -> np.ndarray:
    """(parts + 1,) int32 where to cut a row of things with `costs` (k,), so that the parts cost about the same."""
    if parts < 1:
        raise InputError(f"at least one part, not {parts}")
    upto = np.concatenate([[0.0], np.cumsum(costs)])
    wanted = upto[-1] * np.arange(parts + 1) / parts
    return np.maximum.accumulate(np.abs(upto[:, None] - wanted).argmin(axis=0)).astype(np.int32)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])[: len(sizes)].astype(np.int64)


def _arrays(
    model: PoseSpaceModel, lists: list[list[int]], unions: list[np.ndarray], runs: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Corners, neutral edges, their inverses, volumes, weights, Young's moduli, Poisson ratios, shapes."""
    count, m = len(lists), len(model.poses)
    corners = np.zeros((count, 4, LANES), np.int32)
    edges, inverses = np.zeros((count, 9 * LANES)), np.zeros((count, 9 * LANES))
    volumes = np.zeros((count, LANES))
    tables = [np.zeros((count, m, LANES)) for _ in range(3)]
    shapes = [np.zeros(0, np.float32)]
    for k, own in enumerate(lists):
        # Empty lanes repeat the first tet with no volume: everything stays finite and nothing is added.
        filled = np.array(own + own[:1] * (LANES - len(own)))
        nodes = model.tets[model.cubature.tets[filled]]
        corners[k] = place[nodes].T
        Dm = np.swapaxes(model.vertices[nodes[:, 1:]] - model.vertices[nodes[:, :1]], 1, 2)
        edges[k] = Dm.reshape(LANES, 9).T.ravel()
        inverses[k] = np.linalg.inv(Dm).reshape(LANES, 9).T.ravel()
        volumes[k, : len(own)] = np.abs(np.linalg.det(Dm))[: len(own)] / 6.0
        for table, source in zip(
            tables, (model.cubature.weights, model.cubature.young, model.cubature.poisson), strict=True
        ):
            table[k] = source[:, filled]
        rows = model.shapes[:, nodes][..., run_columns(runs, unions[k])]
        shapes.append(rows.transpose(4, 0, 2, 3, 1).astype(np.float32).ravel())
    return corners, edges, inverses, volumes, *tables, np.concatenate(shapes)


def owners(model: PoseSpaceModel, runs: np.ndarray) -> np.ndarray:
    """(c,) the region (a number in `region_names`) whose shapes move each cubature tet most; a local one if any."""
    corners = model.tets[model.cubature.tets]
    squares = (model.shapes**2).sum(axis=(0, 2))
    of_vertex = np.add.reduceat(squares, runs[:-1], axis=1)
    regions = model.region_of_mode[runs[:-1]]
    local = np.array([model.region_names[region] != WHOLE_BODY for region in regions])
    shares = of_vertex[corners].sum(axis=1)
    return regions[np.where(local | ~local.any(), shares, -1.0).argmax(axis=1)]
