"""A pose-space model laid out in the tables of the compiled step (`pose_space_tables`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from softrig.models.inertia_map import BLOCK
from softrig.models.kernels.pose_space_elements import LANES, WORK
from softrig.models.kernels.pose_space_tables import (
    COUNTERS,
    SETTINGS,
    SWITCHES,
    BoneRuns,
    Carriers,
    Chunks,
    Gyro,
    Memory,
    Projection,
    Rows,
    Sums,
)
from softrig.models.pose_space import PoseSpaceModel
from softrig.numerics.vectors import BEYOND

NOTHING = 1e-14
"""Entries below this times the largest are zero."""
FAINT = 1e-7
"""The same of what is kept in single precision."""
HIGHEST = 32767
"""The largest number of 16 bits."""


def region_runs(region_of_mode: np.ndarray) -> np.ndarray:
    """(g + 1,) first mode of each run of equal regions."""
    changes = np.flatnonzero(np.diff(region_of_mode)) + 1
    return np.concatenate([[0], changes, [len(region_of_mode)]]).astype(np.int32)


def vertex_regions(model: PoseSpaceModel, runs: np.ndarray) -> np.ndarray:
    """(n, g) bool: whether any shape of a run moves a vertex."""
    moving = (model.shapes != 0.0).any(axis=(0, 2))
    return np.stack([moving[:, low:high].any(axis=1) for low, high in pairwise(runs)], axis=1)


def run_columns(runs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """int32 columns of the chosen (g,) runs."""
    parts = [np.arange(runs[k], runs[k + 1]) for k in np.flatnonzero(chosen)]
    return np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32)


def coupled(matrices: np.ndarray, runs: np.ndarray, faint: float = NOTHING) -> np.ndarray:
    """(g, g) bool: which runs meet in any of the (..., r, r) matrices, in entries beyond `faint` of the largest."""
    size = np.abs(matrices).reshape(-1, *matrices.shape[-2:]).max(axis=0, initial=0.0)
    sums = np.maximum.reduceat(np.maximum.reduceat(size, runs[:-1], axis=0), runs[:-1], axis=1)
    meets = sums > faint * sums.max(initial=0.0)
    return meets | meets.T


def segments_of(meets: np.ndarray, runs: np.ndarray, offset: int = 0) -> np.ndarray:
    """(s, 4) int32 row, first column, length, offset of the lower half where runs meet."""
    rows: list[list[int]] = []
    for region in range(len(meets)):
        for row in range(runs[region], runs[region + 1]):
            start = end = -1
            for other in np.flatnonzero(meets[region, : region + 1]):
                low, high = int(runs[other]), min(int(runs[other + 1]), row + 1)
                if low == end:
                    end = high
                    rows[-1][2] = end - start
                else:
                    start, end = low, high
                    rows.append([row, start, high - low, 0])
    table = np.array(rows, dtype=np.int32).reshape(-1, 4)
    table[:, 3] = offset + np.concatenate([[0], np.cumsum(table[:, 2])])[: len(table)]
    return table


def packed(matrices: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """(..., entries) the entries of (..., r, r) matrices in the order of `segments`."""
    rows = np.repeat(segments[:, 0], segments[:, 2])
    columns = np.concatenate([np.zeros(0, int), *(np.arange(c, c + k) for c, k in segments[:, 1:3].tolist())])
    return np.ascontiguousarray(matrices[..., rows, columns.astype(int)])


def mixed_projection(matrices: np.ndarray, runs: np.ndarray) -> Projection:
    """(m, r, loads) matrices that pose weights mix."""
    poses, modes, loads = matrices.shape
    pieces = [(0, loads, 1 + i) for i in range(poses)]
    return projection(matrices.transpose(1, 0, 2).reshape(modes, -1), pieces, runs)


def inertia_projection(model: PoseSpaceModel, runs: np.ndarray) -> Projection:
    """The inertial matrices: mixed by pose weights, or by the inertia map."""
    known = model.inertia_map
    if known is None:
        return mixed_projection(model.felt_inertia, runs)
    felt = model.felt_inertia
    poses, modes, loads = felt.shape
    late, width = loads - poses, 3 * poses
    pieces = [
        (0, late, 0),
        *((BLOCK * bone, BLOCK, 1 + poses + k) for k, bone in enumerate(known.owners.tolist())),
        *((loads + width * int(known.owners[k]), width, 1 + poses + k) for k in known.turners.tolist()),
        *((late, poses, 1 + i) for i in range(poses)),
        (loads, known.turning.shape[1], 0),
    ]
    side_by_side = [
        stack.transpose(1, 0, 2).reshape(modes, -1) for stack in (known.components, known.turned, felt[:, :, late:])
    ]
    return projection(np.hstack([felt[0, :, :late], *side_by_side, known.turning]), pieces, runs)


def projection(matrix: np.ndarray, pieces: list[tuple[int, int, int]], runs: np.ndarray) -> Projection:
    """(r, loads of the pieces) a matrix by region, over the parts of the pieces that reach it."""
    size = np.abs(matrix)
    low = NOTHING * size.max(initial=0.0)
    loads = np.concatenate([np.arange(first, first + length) for first, length, _ in pieces])
    factors = np.repeat([factor for _, _, factor in pieces], [length for _, length, _ in pieces])
    parts, entries = [], []
    for begin, end in pairwise(runs):
        felt = np.flatnonzero(size[begin:end].max(axis=0, initial=0.0) > low)
        breaks = (np.diff(loads[felt]) != 1) | (np.diff(factors[felt]) != 0)
        together = np.split(felt, np.flatnonzero(breaks) + 1) if len(felt) else []
        parts.append(np.array([(loads[k[0]], len(k), factors[k[0]]) for k in together], np.int32).reshape(-1, 3))
        entries.append(matrix[begin:end, felt].ravel())
    return Projection(
        runs.astype(np.int32),
        np.cumsum([0, *(len(part) for part in parts)]).astype(np.int32),
        np.concatenate(parts),
        np.cumsum([0, *(len(part) for part in entries)]).astype(np.int64),
        np.concatenate(entries).astype(np.float32),
    )


def widest(table: Projection) -> int:
    """The most loads that a region feels."""
    return max(int(table.pieces[low:high, 1].sum()) for low, high in pairwise(table.starts))


def sums(model: PoseSpaceModel, runs: np.ndarray, together: np.ndarray) -> Sums:
    """The matrices of the model; `together` (g, g): runs that share a chunk."""
    products, basis = model.moved_mass, len(model.shapes)
    poses, correction, known = (
        model.cubature.stiffness_correction,
        model.cubature.linear_parts,
        model.cubature.stiffness_map,
    )
    meets = (
        coupled(products, runs) | coupled(correction, runs) | coupled(poses, runs) | np.eye(len(runs) - 1, dtype=bool)
    )
    if known is not None and known.flexible:
        meets[:] = True  # an inverse has no zeros
    segments = segments_of(meets, runs)
    terms = [
        products[i, j] if i == j else products[i, j] + products[j, i] for i in range(basis) for j in range(i, basis)
    ]
    lowest = np.argmax(meets | together, axis=1)
    return Sums(
        segments,
        runs[lowest].repeat(np.diff(runs)).astype(np.int32),
        packed(np.array(terms), segments),
        packed(correction, segments).astype(np.float32),
        packed(np.array([positive_part(matrix) for matrix in poses]), segments).astype(np.float32),
        np.array([0, 0] if known is None else [known.own, known.own + len(known.touching)], np.int64),
        np.zeros(len(correction)) if known is None else known.sizes,
        known.firmest.copy() if known is not None and known.flexible else np.zeros(0),
    )


def gyro(model: PoseSpaceModel, runs: np.ndarray) -> Gyro:
    """The gyroscopic matrices, block by block of regions that meet in a group."""
    meeting = [coupled(matrices, runs, FAINT) for matrices in model.gyro]
    union = np.any([np.zeros((len(runs) - 1,) * 2, bool), *meeting], axis=0)
    blocks = [(i, j) for i, j in np.argwhere(union) if j <= i]
    segments, ends = [np.zeros((0, 4), np.int32)], [0]
    for i, j in blocks:
        only = np.zeros_like(union)
        only[i, j] = True
        segments.append(segments_of(only, runs, ends[-1]))
        ends.append(ends[-1] + int(segments[-1][:, 2].sum()))
    starts, pieces, terms, used = [0], [np.zeros((0, 3), np.int32)], [np.zeros((9, 0))], 0
    for matrices, meets in zip(model.gyro, meeting, strict=True):
        felt = [k for k, (i, j) in enumerate(blocks) if meets[i, j]]
        for run in np.split(felt, np.flatnonzero(np.diff(felt) > 1) + 1) if felt else ():
            low, high = ends[run[0]], ends[run[-1] + 1]
            pieces.append(np.array([[low, high - low, used]], np.int32))
            terms += [packed(matrices, segments[k + 1]) for k in run]
            used += high - low
        starts.append(len(pieces) - 1)
    return Gyro(
        np.concatenate(segments),
        np.array(starts, np.int32),
        np.concatenate(pieces),
        np.concatenate(terms, axis=1).astype(np.float32),
    )


def positive_part(matrix: np.ndarray) -> np.ndarray:
    """(r, r) the nearest positive semidefinite matrix to a symmetric one."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def rows(model: PoseSpaceModel, runs: np.ndarray, regions: np.ndarray) -> Rows:
    """The shapes of the vertices, those that carry the surface first, of the same regions together."""
    units = fixed_point(model.shapes)
    masks, of_vertex = np.unique(regions, axis=0, return_inverse=True)
    of_vertex = of_vertex.ravel()
    columns = [run_columns(runs, mask) for mask in masks]
    numbers = [np.zeros(0, np.int16)]
    for vertices, part in _row_order(model, of_vertex, columns):
        values = model.shapes[:, vertices][..., part].transpose(1, 2, 0, 3)
        numbers.append(np.rint(values / units[:, part]).astype(np.int16).ravel())
    still = np.array([len(part) == 0 for part in columns])
    return Rows(
        np.cumsum([0, *(len(part) for part in columns)]).astype(np.int32),
        np.concatenate([np.zeros(0, np.int32), *columns]),
        np.where(still[of_vertex], -1, of_vertex).astype(np.int32),
        _row_offsets(model, of_vertex, columns, len(model.shapes)),
        np.concatenate([*numbers, np.zeros(BEYOND, np.int16)]),
        units,
    )


def follower_rows(model: PoseSpaceModel, known: Rows) -> Rows:
    """The same of what follows the modes, for the sets of vertices `known`."""
    followers = model.followers
    values = np.zeros((len(model.vertices), 3, 0), np.int8) if followers is None else followers.rows
    steps = np.zeros(0) if followers is None else followers.steps
    reached = (values != 0).any(axis=1)
    sets = range(len(known.starts) - 1)
    columns = [np.flatnonzero(reached[known.of_vertex == own].any(axis=0)).astype(np.int32) for own in sets]
    order = _row_order(model, known.of_vertex, columns)
    numbers = [values[vertices][..., part].ravel() for vertices, part in order]
    return Rows(
        np.cumsum([0, *(len(part) for part in columns)]).astype(np.int32),
        np.concatenate([np.zeros(0, np.int32), *columns]),
        known.of_vertex,
        _row_offsets(model, known.of_vertex, columns, 1),
        np.concatenate([*numbers, np.zeros(BEYOND, np.int8)]),
        steps[None],
    )


def _row_order(
    model: PoseSpaceModel, of_vertex: np.ndarray, columns: list[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Vertices in the order in which rows of shapes stand, with the columns of their set."""
    drawn = np.zeros(len(model.vertices), bool)
    drawn[model.embedding_nodes[model.embedding_weights != 0.0]] = True
    for chosen in (drawn, ~drawn):
        for own, part in enumerate(columns):
            yield np.flatnonzero(chosen & (of_vertex == own)), part


def _row_offsets(model: PoseSpaceModel, of_vertex: np.ndarray, columns: list[np.ndarray], bases: int) -> np.ndarray:
    """(n,) int32 where the rows of each vertex begin."""
    offsets, used = np.zeros(len(model.vertices), np.int32), 0
    for vertices, part in _row_order(model, of_vertex, columns):
        size = 3 * bases * len(part)
        offsets[vertices] = used + size * np.arange(len(vertices))
        used += size * len(vertices)
    return offsets


def fixed_point(shapes: np.ndarray) -> np.ndarray:
    """Units (m_b, r), powers of two, of the numbers of 16 bits that stand for shapes (m_b, n, 3, r)."""
    peaks = np.abs(shapes).max(axis=(1, 2), initial=0.0)
    return np.asarray(np.exp2(np.ceil(np.log2(np.where(peaks > 0.0, peaks, 1.0) / HIGHEST))))


def in_fixed_point(shapes: np.ndarray) -> np.ndarray:
    """The nearest shapes (m_b, n, 3, r) that such numbers stand for: finer ones nobody sees, and they take room."""
    units = fixed_point(shapes)[:, None, None]
    return np.asarray(np.rint(shapes / units) * units)


def bone_runs(
    table: csr_array, within: np.ndarray | None = None, kind: type = np.float64
) -> tuple[np.ndarray, BoneRuns]:
    """An order of the rows in which those of the same bones stand together, and the runs.

    `table` (n, bones) weights; `within` (n, k) bool: what stands together in a run; `kind`: precision of the weights.
    """
    table.sort_indices()
    keys = [tuple(table.indices[low:high].tolist()) for low, high in pairwise(table.indptr)]
    marks = [b""] * len(keys) if within is None else [row.tobytes() for row in within]
    order = np.array(sorted(range(len(keys)), key=lambda k: (keys[k], marks[k], k)), np.int64)
    begins = [k for k in range(len(order)) if k == 0 or keys[order[k]] != keys[order[k - 1]]]
    bones = [np.array(keys[order[k]], np.int32) for k in begins]
    runs = np.array([*begins, len(order)], np.int32)
    weights = [np.zeros(0)]
    for low, high in pairwise(runs):
        own = [table.data[table.indptr[v] : table.indptr[v + 1]] for v in order[low:high]]
        weights.append(np.stack(own, axis=1).ravel())
    return order, BoneRuns(
        runs,
        np.cumsum([0, *(len(part) for part in bones)]).astype(np.int32),
        np.concatenate([np.zeros(0, np.int32), *bones]),
        np.cumsum([len(part) for part in weights])[: len(begins)].astype(np.int64),
        np.concatenate([*weights, np.zeros(BEYOND)]).astype(kind),
    )


def most_bones(bones: BoneRuns) -> int:
    """How many bones a vertex has at most."""
    return int(np.diff(bones.starts).max(initial=0))


def root_table(model: PoseSpaceModel, count: int) -> csr_array:
    """(count, bones) the root alone carries everything: what turns vertices outside bind space."""
    root = model.tet_rig.root_bone if model.tet_rig.kind == "skin" else 0
    return csr_array((np.ones(count), (np.arange(count), np.full(count, root))), shape=(count, root + 1))


def cubature_runs(model: PoseSpaceModel, vertices: np.ndarray) -> tuple[np.ndarray, BoneRuns]:
    """An order of the cubature vertices (k,) in which those of the same bones stand together, and their runs."""
    table = model.tet_rig.weights
    return bone_runs(root_table(model, len(vertices)) if table is None else table[vertices])


def carriers(model: PoseSpaceModel, observed: np.ndarray, cubature_vertices: np.ndarray) -> Carriers:
    """`observed` (k,): the black-box vertices whose positions are carrier values."""
    n = len(model.vertices)
    skin = model.tet_rig.kind == "skin"
    place = np.full(n, -1, np.int64)
    place[observed] = 3 * np.arange(len(observed))
    if skin:
        assert model.tet_rig.weights is not None
        table = model.tet_rig.weights.tocsr()
        order = np.lexsort((table.indices, -table.data, np.repeat(np.arange(n), np.diff(table.indptr))))
        starts, bones, weights = table.indptr, table.indices[order], table.data[order]
        gyro_bones = (
            model.gyro_frames
            if model.interpolation == "bind"
            else np.full(len(model.gyro_frames), model.tet_rig.root_bone)
        )
    else:
        starts, bones, weights = np.arange(n + 1), np.zeros(n), np.ones(n)
        gyro_bones = np.zeros(len(model.gyro_frames))
    return Carriers(
        skin,
        model.interpolation == "bind",
        int(model.tet_rig.root_bone) if skin else 0,
        starts.astype(np.int32),
        bones.astype(np.int16 if bones.max(initial=0) < 1 << 15 else np.int32),
        weights.astype(np.float64),
        np.ascontiguousarray(model.vertices, dtype=np.float64),
        np.ascontiguousarray(model.tet_rig.corrections.transpose(1, 0, 2), dtype=np.float64),
        place,
        place[model.tet_rig.root_sample],
        np.zeros((0, 3)) if skin else model.root_arms,
        place[model.cubature.inertial_vertices],
        gyro_bones.astype(np.int32),
        cubature_vertices.astype(np.int32),
        np.ascontiguousarray(model.vertices[cubature_vertices].T),
        np.ascontiguousarray(model.tet_rig.corrections[:, cubature_vertices].transpose(0, 2, 1), dtype=np.float64),
    )


def memory(
    model: PoseSpaceModel,
    chunks: Chunks,
    sums_: Sums,
    gyro_: Gyro,
    carriers_: Carriers,
    bones: BoneRuns,
    projections: tuple[Projection, Projection],
    values: int,
) -> Memory:
    """Room for everything a step writes; `values`: how many carrier values there are."""
    r, m, basis = model.mode_count, len(model.poses), len(model.shapes)
    count, entries = len(chunks.volumes), sums_.mass.shape[1]
    columns = int(np.diff(chunks.starts).max(initial=0)) + 4
    vertices = len(carriers_.cubature_vertices)
    turning = (values - m) // 12 if carriers_.skin else 1
    lengths = np.linalg.norm(model.shapes[:, carriers_.cubature_vertices], axis=2)
    positive = np.zeros(m)
    known, inertial = model.cubature.stiffness_map, model.inertia_map
    flexible = known is not None and known.flexible
    mixture = np.ones(1 + m + (0 if inertial is None else len(inertial.owners)))
    load = np.zeros(model.load_count + (0 if inertial is None else inertial.turning.shape[1]))
    edge_room = 0 if count == 0 else int(chunks.edge_offsets[-1]) + columns * 9 * LANES
    return Memory(
        np.zeros(SETTINGS),
        np.zeros(SWITCHES, np.int64),
        np.zeros(len(COUNTERS), np.int64),
        np.zeros((3, r)),
        np.zeros((10, r)),
        np.zeros(values),
        mixture,
        mixture[1 : 1 + m],
        positive,
        positive if known is None else np.zeros(len(known.components)),
        np.zeros(basis),
        np.zeros((turning, 3, 3)),
        np.zeros((turning, 4)),
        np.zeros((len(model.gyro_frames), 2, 3)),
        load,
        load[model.load_count :].reshape(-1, m, 3),
        np.zeros(3 * model.frame_count),
        np.ones(r),
        np.zeros((3, vertices + BEYOND)),
        np.zeros((3, vertices + BEYOND)),
        np.zeros(4 * most_bones(bones)),
        np.zeros((4, vertices + BEYOND)),
        np.zeros((9, vertices)),
        np.zeros((count, 9 * LANES)),
        np.zeros((count, LANES)),
        np.zeros((count, 2, LANES)),
        np.zeros(edge_room),
        np.zeros(columns * 9 * LANES),
        np.zeros((columns, columns)),
        np.zeros(132 * LANES + basis + 4),
        np.zeros(basis + 4, np.int64),
        np.zeros(WORK),
        np.zeros(entries),
        np.zeros(entries),
        np.zeros(entries if flexible else 0),
        np.zeros(len(known.components) if flexible and known is not None else 0),
        np.zeros((r + 4, r + 4) if flexible else (0, 0)),
        np.zeros((2, r + 4)),
        np.zeros(r, np.int32),
        np.zeros((r, r)),
        np.zeros((len(chunks.parts) - 1, r, r)),
        np.zeros((count, 9 * LANES)),
        np.zeros(len(chunks.parts) - 1),
        np.zeros((r + 4, r + 4)),
        lengths.max(axis=(0, 1), initial=0.0),
        np.zeros(len(sums_.mass)),
        np.zeros(max(widest(table) for table in projections)),
        np.zeros((3, int(gyro_.segments[:, 2].sum()))),
        np.zeros(8, np.int32),
        np.zeros((8, 3)),
        np.zeros((8, 9)),
    )
