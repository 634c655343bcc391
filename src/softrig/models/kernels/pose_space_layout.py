"""A pose-space model laid out in the tables of the compiled step (`pose_space_tables`)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from softrig.models.kernels.pose_space_elements import LANES, WORK
from softrig.models.kernels.pose_space_tables import (
    COUNTERS,
    SETTINGS,
    SWITCHES,
    BoneRuns,
    Carriers,
    Chunks,
    Memory,
    Projection,
    Rows,
    Sums,
)
from softrig.models.pose_space import PoseSpaceModel

NOTHING = 1e-14
"""Entries below this times the largest are zero."""


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


def coupled(matrices: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """(g, g) bool: which runs meet in any of the (..., r, r) matrices."""
    size = np.abs(matrices).reshape(-1, *matrices.shape[-2:]).max(axis=0, initial=0.0)
    sums = np.maximum.reduceat(np.maximum.reduceat(size, runs[:-1], axis=0), runs[:-1], axis=1)
    meets = sums > NOTHING * sums.max(initial=0.0)
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


def projection(matrices: np.ndarray, runs: np.ndarray) -> Projection:
    """(m, r, loads) matrices by region over the loads that reach it."""
    size = np.abs(matrices).max(axis=0, initial=0.0)
    low = NOTHING * size.max(initial=0.0)
    loads, entries = [], []
    for begin, end in pairwise(runs):
        felt = np.flatnonzero(size[begin:end].max(axis=0, initial=0.0) > low)
        loads.append(felt)
        entries.append(matrices[:, begin:end][:, :, felt].transpose(1, 0, 2).ravel())
    return Projection(
        runs.astype(np.int32),
        np.cumsum([0, *(len(part) for part in loads)]).astype(np.int32),
        np.concatenate(loads).astype(np.int32),
        np.cumsum([0, *(len(part) for part in entries)]).astype(np.int64),
        np.concatenate(entries).astype(np.float64),
    )


def sums(model: PoseSpaceModel, runs: np.ndarray, together: np.ndarray) -> Sums:
    """The matrices of the model; `together` (g, g): runs that share a chunk."""
    products, basis = model.mass_products, len(model.shapes)
    poses, correction = model.cubature.stiffness_correction, model.cubature.linear_parts
    meets = (
        coupled(products, runs) | coupled(correction, runs) | coupled(poses, runs) | np.eye(len(runs) - 1, dtype=bool)
    )
    segments = segments_of(meets, runs)
    terms = [
        products[i, j] if i == j else products[i, j] + products[j, i] for i in range(basis) for j in range(i, basis)
    ]
    lowest = np.argmax(meets | together, axis=1)
    gyro_segments, starts, gyro = [np.zeros((0, 4), np.int32)], [0], [np.zeros((9, 0))]
    for matrices in model.gyro:
        own = segments_of(coupled(matrices, runs), runs, sum(part.shape[1] for part in gyro))
        gyro_segments.append(own)
        starts.append(starts[-1] + len(own))
        gyro.append(packed(matrices, own))
    return Sums(
        segments,
        runs[lowest].repeat(np.diff(runs)).astype(np.int32),
        packed(np.array(terms), segments),
        packed(correction, segments),
        packed(np.array([positive_part(matrix) for matrix in poses]), segments),
        np.concatenate(gyro_segments),
        np.array(starts, np.int32),
        np.concatenate(gyro, axis=1).astype(np.float32),
    )


def positive_part(matrix: np.ndarray) -> np.ndarray:
    """(r, r) the nearest positive semidefinite matrix to a symmetric one."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def rows(model: PoseSpaceModel, runs: np.ndarray, regions: np.ndarray) -> Rows:
    """The shapes of the vertices, those that carry the surface first, of the same bones together."""
    n = len(model.vertices)
    masks, of_vertex = np.unique(regions, axis=0, return_inverse=True)
    of_vertex = of_vertex.ravel()
    columns = [run_columns(runs, mask) for mask in masks]
    drawn = np.zeros(n, bool)
    drawn[model.embedding_nodes[model.embedding_weights != 0.0]] = True
    offsets, entries, used = np.zeros(n, np.int64), [np.zeros(0, np.float32)], 0
    for vertex in np.lexsort((np.arange(n), of_vertex, bone_sets(model), ~drawn)):
        own = model.shapes[:, vertex][:, :, columns[of_vertex[vertex]]]
        if own.size == 0:
            of_vertex[vertex] = -1
            continue
        offsets[vertex] = used
        entries.append(own.transpose(1, 0, 2).astype(np.float32).ravel())
        used += own.size
    starts = np.cumsum([0, *(len(part) for part in columns)]).astype(np.int32)
    return Rows(
        starts,
        np.concatenate([np.zeros(0, np.int32), *columns]),
        of_vertex.astype(np.int32),
        offsets,
        np.concatenate(entries),
    )


def bone_runs(
    table: csr_array, order: np.ndarray | None = None, kind: type = np.float64
) -> tuple[np.ndarray, BoneRuns]:
    """An order of the rows in which those of the same bones stand together, and the runs; or the runs of an order.

    `table` (n, bones) weights; `kind`: the precision of the runs' weights.
    """
    table.sort_indices()
    keys = [tuple(table.indices[low:high].tolist()) for low, high in pairwise(table.indptr)]
    if order is None:
        order = np.array(sorted(range(len(keys)), key=lambda k: (keys[k], k)), np.int64)
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
        np.concatenate(weights).astype(kind),
    )


def root_table(model: PoseSpaceModel, count: int) -> csr_array:
    """(count, bones) the root alone carries everything: what turns vertices outside bind space."""
    root = model.tet_rig.root_bone if model.tet_rig.kind == "skin" else 0
    return csr_array((np.ones(count), (np.arange(count), np.full(count, root))), shape=(count, root + 1))


def cubature_runs(model: PoseSpaceModel, vertices: np.ndarray) -> tuple[np.ndarray, BoneRuns]:
    """An order of the cubature vertices (k,) in which those of the same bones stand together, and their runs."""
    table = model.tet_rig.weights
    return bone_runs(root_table(model, len(vertices)) if table is None else table[vertices])


def bone_sets(model: PoseSpaceModel) -> np.ndarray:
    """(n,) a number for the set of bones that carries each tet vertex; all the same where there are none."""
    if model.tet_rig.weights is None:
        return np.zeros(len(model.vertices), np.int64)
    table = model.tet_rig.weights
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    carried = np.zeros(table.shape, bool)
    carried[rows, table.indices] = True
    return np.unique(carried, axis=0, return_inverse=True)[1].ravel()


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
        bones.astype(np.int32),
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


def memory(model: PoseSpaceModel, chunks: Chunks, sums_: Sums, carriers_: Carriers, values: int) -> Memory:
    """Room for everything a step writes; `values`: how many carrier values there are."""
    r, m, basis = model.mode_count, len(model.poses), len(model.shapes)
    count, entries = len(chunks.volumes), sums_.mass.shape[1]
    widest = int(np.diff(chunks.starts).max(initial=0)) + 4
    vertices = len(carriers_.cubature_vertices)
    turning = (values - m) // 12 if carriers_.skin else 1
    lengths = np.linalg.norm(model.shapes[:, carriers_.cubature_vertices], axis=2)
    positive = np.zeros(m)
    known = model.cubature.stiffness_map
    edge_room = 0 if count == 0 else int(chunks.edge_offsets[-1]) + widest * 9 * LANES
    return Memory(
        np.zeros(SETTINGS),
        np.zeros(SWITCHES, np.int64),
        np.zeros(len(COUNTERS), np.int64),
        np.zeros((3, r)),
        np.zeros((10, r)),
        np.zeros(values),
        np.zeros(m),
        positive,
        positive if known is None else np.zeros(len(known.components)),
        np.zeros(basis),
        np.zeros((turning, 3, 3)),
        np.zeros((turning, 4)),
        np.zeros((len(model.gyro_frames), 2, 3)),
        np.zeros(model.load_count),
        np.zeros(3 * model.frame_count),
        np.ones(r),
        np.zeros((3, vertices)),
        np.zeros((3, vertices)),
        np.zeros((4, vertices)),
        np.zeros((9, vertices)),
        np.zeros((count, 9 * LANES)),
        np.zeros((count, LANES)),
        np.zeros((count, 2, LANES)),
        np.zeros(edge_room),
        np.zeros(widest * 9 * LANES),
        np.zeros((widest, widest)),
        np.zeros(66 * LANES + basis + 4),
        np.zeros(basis + 4, np.int64),
        np.zeros(WORK),
        np.zeros(entries),
        np.zeros(entries),
        np.zeros((r, r)),
        np.zeros((r + 4, r + 4)),
        lengths.max(axis=(0, 1), initial=0.0),
        np.zeros(len(sums_.mass)),
        np.zeros(m * max(model.load_count, 3 * model.frame_count)),
        np.zeros((3, sums_.gyro.shape[1])),
        np.zeros(8, np.int32),
        np.zeros((8, 3)),
        np.zeros((8, 9)),
    )
