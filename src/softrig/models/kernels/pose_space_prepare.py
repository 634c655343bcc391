"""All of a step that does not depend on the modes: pose, rest shape, and the forces on them."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.pose_space_pose import (
    bind_positions,
    black_box_positions,
    gyroscopic_rates,
    loads,
    materials,
    mixing_weights,
    pose_frames,
    reduced_mass,
    rest_tets,
    same_rotation,
    turning_loads,
    vertex_rotations,
)
from softrig.models.kernels.pose_space_runs import mixed_quaternions, rotations_of, skinned
from softrig.models.kernels.pose_space_shapes import add_point_loads
from softrig.models.kernels.pose_space_sums import project
from softrig.models.kernels.pose_space_tables import (
    EXTERNAL,
    INERTIA,
    LOADS,
    WIND,
    BoneRuns,
    Carriers,
    Chunks,
    Memory,
    Projection,
    Rows,
    Sums,
)


@njit(cache=True, forceinline=True)
def place(
    z: np.ndarray,
    skin: bool,
    sample: np.ndarray,
    arms: np.ndarray,
    segments: np.ndarray,
    mass_terms: np.ndarray,
    pose: np.ndarray,
    w: np.ndarray,
    positive: np.ndarray,
    basis: np.ndarray,
    turns: np.ndarray,
    quaternions: np.ndarray,
    mass: np.ndarray,
    upsilon: np.ndarray,
    pairs: np.ndarray,
    work: np.ndarray,
) -> None:
    """Take z (Z,) as the pose: weights, frames, reduced mass and Υ."""
    for k in range(z.shape[0]):
        pose[k] = z[k]
    mixing_weights(z, w, positive, basis)
    pose_frames(skin, z, sample, arms, turns, quaternions, work)
    reduced_mass(mass_terms, segments, basis, mass, upsilon, pairs)


@njit(cache=True, inline="always")
def prepare(
    carriers: Carriers,
    bones: BoneRuns,
    sums: Sums,
    inertia: Projection,
    wind: Projection,
    chunks: Chunks,
    rows: Rows,
    memory: Memory,
    z: np.ndarray,
    zd: np.ndarray,
    zdd: np.ndarray,
) -> None:
    """All of a step that does not depend on the modes: carrier values z at its end, with rates zd and zdd."""
    skin, work = carriers.skin, memory.work
    place(
        z,
        skin,
        carriers.sample,
        carriers.arms,
        sums.segments,
        sums.mass,
        memory.pose,
        memory.w,
        memory.positive,
        memory.basis,
        memory.turns,
        memory.quaternions,
        memory.mass,
        memory.upsilon,
        memory.pairs,
        work,
    )
    bind_positions(carriers.cubature_points, memory.w, carriers.cubature_corrections, memory.moved)
    if skin:
        skinned(
            memory.moved,
            z,
            bones.runs,
            bones.starts,
            bones.bones,
            bones.offsets,
            bones.weights,
            memory.positions,
        )
    else:
        black_box_positions(
            carriers.cubature_vertices,
            carriers.observed,
            z,
            carriers.cubature_points,
            memory.turns[0],
            memory.moved,
            memory.positions,
        )
    if carriers.blended:
        mixed_quaternions(
            bones.runs,
            bones.starts,
            bones.bones,
            bones.offsets,
            bones.weights,
            memory.quaternions,
            memory.signed,
            memory.mixed,
        )
        rotations_of(memory.mixed, memory.rotations)
    else:
        same_rotation(memory.turns[carriers.root], memory.rotations)
    rest_tets(
        chunks.vertices,
        chunks.neutral,
        chunks.neutral_inverse,
        memory.positions,
        memory.gradients,
        memory.factors,
        memory.lanes,
        work,
    )
    materials(
        memory.positive,
        chunks.weights,
        chunks.young,
        chunks.poisson,
        chunks.scale,
        chunks.volumes,
        memory.factors,
        memory.lame,
    )
    loads(
        skin,
        carriers.blended,
        carriers.root,
        carriers.inertial,
        zdd,
        memory.turns,
        memory.w.shape[0],
        memory.settings,
        memory.switches,
        memory.load,
        memory.wind,
        work,
    )
    turning_loads(zd, memory.turns, memory.settings[INERTIA], memory.turning)
    gyroscopic_rates(
        skin,
        carriers.gyro_bones,
        carriers.sample,
        carriers.arms,
        z,
        zd,
        zdd,
        memory.turns,
        memory.settings,
        memory.rates,
        work,
    )
    force = memory.vectors[EXTERNAL]
    for i in range(force.shape[0]):
        force[i] = 0.0
    project(
        inertia.modes,
        inertia.starts,
        inertia.pieces,
        inertia.offsets,
        inertia.entries,
        memory.load,
        memory.mixture,
        -1.0,
        memory.room,
        force,
    )
    blows = memory.settings[WIND : WIND + 3]
    if blows[0] != 0.0 or blows[1] != 0.0 or blows[2] != 0.0:
        project(
            wind.modes,
            wind.starts,
            wind.pieces,
            wind.offsets,
            wind.entries,
            memory.wind,
            memory.mixture,
            1.0,
            memory.room,
            force,
        )
    count = memory.switches[LOADS]
    if count > 0:
        vertex_rotations(
            memory.load_vertices[:count],
            carriers.starts,
            carriers.bones,
            carriers.weights,
            memory.quaternions,
            carriers.root,
            carriers.blended,
            memory.load_rotations,
        )
        add_point_loads(
            memory.load_vertices[:count],
            memory.load_forces,
            memory.load_rotations,
            rows.starts,
            rows.columns,
            rows.of_vertex,
            rows.offsets,
            rows.numbers,
            rows.units,
            memory.basis,
            force,
        )
