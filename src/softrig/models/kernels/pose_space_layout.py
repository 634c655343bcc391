"""A pose-space model as flat arrays for the compiled step, grouped by what they serve.

Columns of the basis come in runs, one a region, and most matrices vanish between regions that do not meet. Symmetric
matrices are therefore stored by `segments`: (row, first column, length, offset) of the lower halves of the rows.
Cubature tets stand in chunks of eight; a chunk knows the columns that any of its tets needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softrig.fem.laws import law_code
from softrig.models.kernels.pose_space_elements import LANES, WORK
from softrig.models.pose_space import PoseSpaceModel

NOTHING = 1e-14
"""Entries below this times the largest are zero."""

# Places in `Memory.settings`.
STEP, ALPHA, BETA, INERTIA, GRAVITY, WIND, LIMIT, TOLERANCE = 0, 1, 2, 3, 4, 7, 10, 11
SETTINGS = 12
# Places in `Memory.switches`.
EULER, ITERATIONS, SAG_FREE, LOADS = 0, 1, 2, 3
SWITCHES = 4
# Places in `Memory.counters`.
STEPS, PROJECTED, HALVED, DECAYED = 0, 1, 2, 3
COUNTERS = ("steps", "projected", "halved", "decayed")


class Carriers(NamedTuple):
    """What turns carrier values into frames and rest positions."""

    skin: bool
    blended: bool
    """Whether vertices mix the rotations of bones (bind space) or all take the root's."""
    root: int
    starts: np.ndarray
    """(n + 1,) where the bones of a vertex stand in `bones` and `weights`, the heaviest first."""
    bones: np.ndarray
    weights: np.ndarray
    points: np.ndarray
    """(n, 3) rest positions."""
    corrections: np.ndarray
    """(n, m, 3) δ."""
    observed: np.ndarray
    """(n,) black-box: where the position of a vertex stands in the carrier values, −1: nowhere."""
    sample: np.ndarray
    """(k,) black-box: where those of the root sample stand."""
    arms: np.ndarray
    """(k, 3)."""
    inertial: np.ndarray
    """(n_s,) black-box: where those of the inertial vertices stand."""
    gyro_bones: np.ndarray
    """(G,) the rotating matrix of each gyroscopic group."""
    cubature_vertices: np.ndarray
    """(k,) tet vertices of the chunks."""


class Sums(NamedTuple):
    """Matrices by pose that are summed at every step."""

    segments: np.ndarray
    """(s, 4) int32."""
    first: np.ndarray
    """(r,) int32 first column of each row of the system that can differ from zero."""
    mass: np.ndarray
    """(m_b (m_b + 1) / 2, entries)."""
    stiffness: np.ndarray
    """(m, entries) ΔK."""
    stiffness_positive: np.ndarray
    """(m, entries) the positive semidefinite part of each ΔK."""
    inertia: Projection
    wind: Projection
    gyro_segments: np.ndarray
    gyro_starts: np.ndarray
    """(G + 1,) segments of each group."""
    gyro: np.ndarray
    """(9, entries)."""


class Projection(NamedTuple):
    """Reduced forces from a load vector a: f = Σ_i w_i C_i a, region by region over the loads it feels."""

    modes: np.ndarray
    """(g + 1,) int32 first mode of each region."""
    starts: np.ndarray
    """(g + 1,) int32 first entry of each region in `loads`."""
    loads: np.ndarray
    """Load numbers."""
    offsets: np.ndarray
    """(g + 1,) int64 first entry of each region in `entries`: mode by mode, pose by pose, load by load."""
    entries: np.ndarray


class Chunks(NamedTuple):
    """Cubature tets, `LANES` at a time."""

    law: int
    groups: np.ndarray
    """(k + 1,) int32 first chunk of each group: chunks of the same columns."""
    starts: np.ndarray
    """(k + 1,) int32 where the columns of a group stand in `columns`."""
    columns: np.ndarray
    vertices: np.ndarray
    """(chunks, 4, LANES) int32 places in `Carriers.cubature_vertices`."""
    neutral: np.ndarray
    """(chunks, 9, LANES) edges of the neutral tets."""
    neutral_inverse: np.ndarray
    volumes: np.ndarray
    """(chunks, LANES) neutral volumes, m³; zero: an empty lane."""
    weights: np.ndarray
    """(chunks, m, LANES) ξ."""
    young: np.ndarray
    poisson: np.ndarray
    scale: np.ndarray
    """(chunks, LANES) factors on Young's modulus."""
    offsets: np.ndarray
    """(chunks,) int64 into `shapes`."""
    shapes: np.ndarray
    """float32: column by column, pose by pose, (4 corners, 3, LANES)."""
    edge_offsets: np.ndarray
    """(chunks,) int64 into `Memory.edges`."""


class Rows(NamedTuple):
    """The shapes of every moving vertex, float32."""

    starts: np.ndarray
    """(k + 1,) int32 columns of each set of regions."""
    columns: np.ndarray
    of_vertex: np.ndarray
    """(n,) int32 set of each vertex, −1: it does not move."""
    offsets: np.ndarray
    """(n,) int64 into `entries`: (3, m_b, columns)."""
    entries: np.ndarray


class Memory(NamedTuple):
    """State, settings and scratch of one stepper."""

    settings: np.ndarray
    switches: np.ndarray
    counters: np.ndarray
    state: np.ndarray
    """(3, r) q, v, a."""
    vectors: np.ndarray
    """(8, r) scratch."""
    pose: np.ndarray
    """(Z,) the carrier values of the pose."""
    w: np.ndarray
    """(m,) pose weights."""
    positive: np.ndarray
    """(m,) w⁺."""
    basis: np.ndarray
    """(m_b,) weights of the bases."""
    turns: np.ndarray
    """(bones or 1, 3, 3) rotations."""
    quaternions: np.ndarray
    rates: np.ndarray
    """(G, 2, 3) Ω and Ω̇ of the gyroscopic groups."""
    load: np.ndarray
    wind: np.ndarray
    upsilon: np.ndarray
    """(r,) Υ."""
    positions: np.ndarray
    """(k, 3) rest positions of the cubature vertices."""
    rotations: np.ndarray
    """(k, 9)."""
    gradients: np.ndarray
    """(chunks, 9 · LANES) B."""
    factors: np.ndarray
    """(chunks, LANES) ξ · volume."""
    lame: np.ndarray
    """(chunks, 2, LANES)."""
    edges: np.ndarray
    """Rows of the basis at the edges, flat: chunk by chunk (columns + 4, 9, LANES)."""
    product: np.ndarray
    """Flat (columns + 4, 9, LANES): Hessian times rows of one chunk."""
    local: np.ndarray
    """(columns + 4, columns + 4)."""
    lanes: np.ndarray
    """Scratch of a chunk."""
    active: np.ndarray
    """Poses that count."""
    work: np.ndarray
    mass: np.ndarray
    """(entries,) M̂."""
    correction: np.ndarray
    stiffness: np.ndarray
    """(r, r) K̂, lower half."""
    system: np.ndarray
    peaks: np.ndarray
    """(r,) the longest row of each column at the cubature vertices."""
    pairs: np.ndarray
    """A number for each pair of bases."""
    room: np.ndarray
    """Scratch for a projection."""
    gyro: np.ndarray
    """(3, entries) scratch."""
    load_vertices: np.ndarray
    load_forces: np.ndarray
    load_rotations: np.ndarray
    """(≥ loads, 9)."""


def region_runs(region_of_mode: np.ndarray) -> np.ndarray:
    """(g + 1,) first mode of each run of equal regions."""
    changes = np.flatnonzero(np.diff(region_of_mode)) + 1
    return np.concatenate([[0], changes, [len(region_of_mode)]]).astype(np.int32)


def vertex_regions(model: PoseSpaceModel, runs: np.ndarray) -> np.ndarray:
    """(n, g) bool: whether any shape of a run moves a vertex."""
    moving = (model.shapes != 0.0).any(axis=(0, 2))
    return np.stack([moving[:, low:high].any(axis=1) for low, high in zip(runs, runs[1:], strict=False)], axis=1)


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
    rows = []
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
    for begin, end in zip(runs, runs[1:], strict=False):
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
    correction = model.cubature.stiffness_correction
    meets = coupled(products, runs) | coupled(correction, runs) | np.eye(len(runs) - 1, dtype=bool)
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
        packed(np.array([positive_part(matrix) for matrix in correction]), segments),
        projection(model.inertia, runs),
        projection(model.wind, runs),
        np.concatenate(gyro_segments),
        np.array(starts, np.int32),
        np.concatenate(gyro, axis=1),
    )


def positive_part(matrix: np.ndarray) -> np.ndarray:
    """(r, r) the nearest positive semidefinite matrix to a symmetric one."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def rows(model: PoseSpaceModel, runs: np.ndarray, regions: np.ndarray) -> Rows:
    """The shapes of the vertices, those that carry the surface first."""
    n = len(model.vertices)
    masks, of_vertex = np.unique(regions, axis=0, return_inverse=True)
    of_vertex = of_vertex.ravel()
    columns = [run_columns(runs, mask) for mask in masks]
    drawn = np.zeros(n, bool)
    drawn[model.embedding_nodes[model.embedding_weights != 0.0]] = True
    offsets, entries, used = np.zeros(n, np.int64), [np.zeros(0, np.float32)], 0
    for vertex in np.lexsort((np.arange(n), of_vertex, ~drawn)):
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
    )


def memory(model: PoseSpaceModel, chunks: Chunks, sums_: Sums, carriers_: Carriers, values: int) -> Memory:
    """Room for everything a step writes; `values`: how many carrier values there are."""
    r, m, basis = model.mode_count, len(model.poses), len(model.shapes)
    count, entries = len(chunks.volumes), sums_.mass.shape[1]
    widest = int(np.diff(chunks.starts).max(initial=0)) + 4
    vertices = len(carriers_.cubature_vertices)
    turning = (values - m) // 12 if carriers_.skin else 1
    lengths = np.linalg.norm(model.shapes[:, carriers_.cubature_vertices], axis=2)
    edge_room = 0 if count == 0 else int(chunks.edge_offsets[-1]) + widest * 9 * LANES
    return Memory(
        np.zeros(SETTINGS),
        np.zeros(SWITCHES, np.int64),
        np.zeros(len(COUNTERS), np.int64),
        np.zeros((3, r)),
        np.zeros((8, r)),
        np.zeros(values),
        np.zeros(m),
        np.zeros(m),
        np.zeros(basis),
        np.zeros((turning, 3, 3)),
        np.zeros((turning, 4)),
        np.zeros((len(model.gyro_frames), 2, 3)),
        np.zeros(model.load_count),
        np.zeros(3 * model.frame_count),
        np.ones(r),
        np.zeros((vertices, 3)),
        np.zeros((vertices, 9)),
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


def law_of(model: PoseSpaceModel) -> int:
    """The code of the model's law."""
    return law_code(model.law)
