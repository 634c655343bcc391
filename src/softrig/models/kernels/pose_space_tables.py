"""The tables of a pose-space stepper: named tuples of flat arrays that compiled code reads and writes.

Columns of the basis come in runs, one a region, and most matrices vanish between regions that do not meet. Symmetric
matrices are therefore stored by `segments`: (row, first column, length, offset) of the lower halves of the rows.
Cubature tets stand in chunks of eight; a chunk knows the columns that any of its tets needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Places in `Memory.settings`.
STEP, ALPHA, BETA, INERTIA, GRAVITY, WIND, LIMIT, TOLERANCE, STRAINED, STALE = 0, 1, 2, 3, 4, 7, 10, 11, 12, 13
SETTINGS = 14
# Places in `Memory.switches`.
EULER, ITERATIONS, SAG_FREE, LOADS, KEPT, REMAINDER, AGE, FLEXIBLE = 0, 1, 2, 3, 4, 5, 6, 7
SWITCHES = 8
# Rows of `Memory.vectors`.
X, NEW, EXTERNAL, FORCE, RESIDUAL, FIRST, SECOND, BACKUP = 0, 1, 2, 3, 4, 5, 6, 7  # three rows of backup
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
    """(k,) tet vertices of the chunks, those of the same bones together (see `BoneRuns`)."""
    cubature_points: np.ndarray
    """(3, k) their rest positions."""
    cubature_corrections: np.ndarray
    """(m, 3, k) their δ."""


class BoneRuns(NamedTuple):
    """Vertices by the bones that carry them."""

    runs: np.ndarray
    """(k + 1,) int32 first place of each run."""
    starts: np.ndarray
    """(k + 1,) int32 where its bones stand in `bones`."""
    bones: np.ndarray
    """int32."""
    offsets: np.ndarray
    """(k,) int64 where its weights stand in `weights`: bone by bone."""
    weights: np.ndarray
    """`BEYOND` further entries at the end."""


class Sums(NamedTuple):
    """Matrices by pose that are summed at every step."""

    segments: np.ndarray
    """(s, 4) int32."""
    first: np.ndarray
    """(r,) int32 first column of each row of the system that can differ from zero."""
    mass: np.ndarray
    """(m_b (m_b + 1) / 2, entries)."""
    stiffness: np.ndarray
    """(k, entries) float32: the matrices that are mixed into ΔK or, with a stiffness map, into K̃ or its inverse."""
    stiffness_positive: np.ndarray
    """(m, entries) float32: the positive semidefinite part of the ΔK of each pose."""
    springs: np.ndarray
    """(2,) which of `stiffness`, first and end, are springs of contacts; see `pose_space_linear`."""
    sizes: np.ndarray
    """(k,) by how much a weight of one changes the stiffness, of itself; zero where it is known at once."""
    firmest: np.ndarray
    """(r,) what no mode is stiffer than, being an inverse; else (0,)."""


class Gyro(NamedTuple):
    """Gyroscopic matrices of the groups, in single precision: a correction, and memory is what it costs."""

    segments: np.ndarray
    """(s, 4) int32 of their sum, block by block of regions that meet."""
    starts: np.ndarray
    """(G + 1,) pieces of each group."""
    pieces: np.ndarray
    """(k, 3) int32: first entry in the sum, how many, and where `terms` begin."""
    terms: np.ndarray
    """(9, …) float32 Γ and Θ."""


class Projection(NamedTuple):
    """Reduced forces from a load vector a: f = C [x_s a_s], region by region over the loads it feels.

    What a region feels are pieces a_s of the load vector one behind the other, each times a number x_s of the pose.
    """

    modes: np.ndarray
    """(g + 1,) int32 first mode of each region."""
    starts: np.ndarray
    """(g + 1,) int32 first entry of each region in `pieces`."""
    pieces: np.ndarray
    """(k, 3) int32: first load, how many, and which of `Memory.mixture` they are multiplied by."""
    offsets: np.ndarray
    """(g + 1,) int64 first entry of each region in `entries`: mode by mode, load by load."""
    entries: np.ndarray
    """float32: memory is what it costs."""


class Chunks(NamedTuple):
    """Cubature tets, `LANES` at a time."""

    law: int
    groups: np.ndarray
    """(k + 1,) int32 first chunk of each group: chunks of the same columns."""
    starts: np.ndarray
    """(k + 1,) int32 where the columns of a group stand in `columns`."""
    columns: np.ndarray
    parts: np.ndarray
    """(P + 1,) int32 first chunk of each part: its stiffness is made anew together."""
    vertices: np.ndarray
    """(chunks, 4, LANES) int32 places in `Carriers.cubature_vertices`."""
    neutral: np.ndarray
    """(chunks, 9 · LANES) edges of the neutral tets."""
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
    """(chunks,) int64 into `Memory.edges`; all zero where chunks take turns in one place."""


class Rows(NamedTuple):
    """Shapes of every moving vertex in fixed point: `units` times `numbers`."""

    starts: np.ndarray
    """(k + 1,) int32 columns of each set of regions."""
    columns: np.ndarray
    of_vertex: np.ndarray
    """(n,) int32 set of each vertex, −1: it does not move."""
    offsets: np.ndarray
    """(n,) int32 into `numbers`: (3, m_b, columns)."""
    numbers: np.ndarray
    """int16, of what follows the modes int8."""
    units: np.ndarray
    """(m_b, r)."""


class Memory(NamedTuple):
    """State, settings and scratch of one stepper."""

    settings: np.ndarray
    switches: np.ndarray
    counters: np.ndarray
    state: np.ndarray
    """(3, r) q, v, a."""
    vectors: np.ndarray
    """(10, r) scratch."""
    pose: np.ndarray
    """(Z,) the carrier values of the pose."""
    mixture: np.ndarray
    """(1 + m + k,) one, the pose weights, and what the carrier values bring as shares of the inertia map."""
    w: np.ndarray
    """(m,) pose weights, of `mixture`."""
    positive: np.ndarray
    """(m,) w⁺."""
    mixing: np.ndarray
    """(k,) their weights: w⁺ itself, or what the carrier values bring."""
    basis: np.ndarray
    """(m_b,) weights of the bases."""
    turns: np.ndarray
    """(bones or 1, 3, 3) rotations."""
    quaternions: np.ndarray
    rates: np.ndarray
    """(G, 2, 3) Ω and Ω̇ of the gyroscopic groups."""
    load: np.ndarray
    turning: np.ndarray
    """(B, m, 3) the end of `load` with an inertia map: 2 ẇ ω of the bones; else (0, m, 3)."""
    wind: np.ndarray
    upsilon: np.ndarray
    """(r,) Υ."""
    positions: np.ndarray
    """(3, k + BEYOND) rest positions of the cubature vertices at the pose."""
    moved: np.ndarray
    """(3, k + BEYOND) the same in bind space."""
    signed: np.ndarray
    """(4 · most bones of a vertex,) scratch."""
    mixed: np.ndarray
    """(4, k + BEYOND) their quaternions, of any length."""
    rotations: np.ndarray
    """(9, k)."""
    gradients: np.ndarray
    """(chunks, 9 · LANES) B."""
    factors: np.ndarray
    """(chunks, LANES) ξ · volume."""
    lame: np.ndarray
    """(chunks, 2, LANES)."""
    edges: np.ndarray
    """Rows of the basis at the edges, flat (columns + 4, 9, LANES): of one chunk, or of all where they are kept."""
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
    inverse: np.ndarray
    """(entries,) of the flexibility, as it was last inverted,"""
    inverted_at: np.ndarray
    """(k,) where `mixing` was this."""
    square: np.ndarray
    """(r + 4, r + 4) scratch for that,"""
    room_of_rows: np.ndarray
    """(2, r + 4),"""
    no_first: np.ndarray
    """(r,) and zeros."""
    stiffness: np.ndarray
    """(r, r) K̂, lower half."""
    tangents: np.ndarray
    """(P, r, r) what the tets of each part add to it, lower halves, as they were last made."""
    then: np.ndarray
    """(chunks, 9 · LANES) how far the edges of the tets had moved then, metres."""
    strained: np.ndarray
    """(P,) the square of the largest strain of each part since then."""
    system: np.ndarray
    peaks: np.ndarray
    """(r,) the longest row of each column at the cubature vertices."""
    pairs: np.ndarray
    """A number for each pair of bases."""
    room: np.ndarray
    """Scratch for a projection."""
    gyro: np.ndarray
    """(3, entries) scratch: what stands before ẋ and x."""
    load_vertices: np.ndarray
    load_forces: np.ndarray
    load_rotations: np.ndarray
    """(≥ loads, 9)."""
