"""One implicit step of the reduced character: what the pose gives, then one or more Newton iterations.

    M̃ q̈ + (αM̃ + βK̃) q̇ + f̃_int(q) = f̃_inert + f̃_gyro + f̃_ext                              (PSSD Eq. 5)

The unknown of the solver is x = Υq, so that neither the basis nor any matrix is ever scaled: with hats for unscaled
quantities, (a₁ + a₄α) M̂ + (1 + a₄β) K̂ times Υ Δq equals the unscaled residual.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.pose_space_elastic import elasticity
from softrig.models.kernels.pose_space_layout import (
    ALPHA,
    BETA,
    EULER,
    INERTIA,
    ITERATIONS,
    LIMIT,
    LOADS,
    PROJECTED,
    TOLERANCE,
    WIND,
    Carriers,
    Chunks,
    Memory,
    Rows,
    Sums,
)
from softrig.models.kernels.pose_space_pose import (
    gyroscopic_rates,
    loads,
    materials,
    mixing_weights,
    pose_frames,
    reduced_mass,
    rest_positions,
    rest_tets,
    vertex_rotations,
)
from softrig.models.kernels.pose_space_sums import (
    assemble,
    cholesky,
    cholesky_solve,
    gyroscopic,
    lower_product,
    project,
    segment_product,
)

# Rows of `Memory.vectors`.
X, SPEED, NEW, EXTERNAL, FORCE, RESIDUAL, FIRST, SECOND = 0, 1, 2, 3, 4, 5, 6, 7
VECTORS = 8


@njit(cache=True)
def place(carriers: Carriers, sums: Sums, memory: Memory, z: np.ndarray) -> None:
    """Take z (Z,) as the pose: weights, frames, reduced mass and Υ."""
    memory.pose[:] = z
    mixing_weights(z, memory.w, memory.positive, memory.basis)
    pose_frames(carriers.skin, z, carriers.sample, carriers.arms, memory.turns, memory.quaternions, memory.work)
    reduced_mass(sums.mass, sums.segments, memory.basis, memory.mass, memory.upsilon, memory.pairs)


@njit(cache=True)
def prepare(
    carriers: Carriers,
    sums: Sums,
    chunks: Chunks,
    rows: Rows,
    memory: Memory,
    z: np.ndarray,
    zd: np.ndarray,
    zdd: np.ndarray,
) -> None:
    """All of a step that does not depend on the modes: carrier values z at its end, with rates zd and zdd."""
    skin, work = carriers.skin, memory.work
    memory.pose[:] = z
    mixing_weights(z, memory.w, memory.positive, memory.basis)
    pose_frames(skin, z, carriers.sample, carriers.arms, memory.turns, memory.quaternions, work)
    reduced_mass(sums.mass, sums.segments, memory.basis, memory.mass, memory.upsilon, memory.pairs)
    vertex_rotations(
        carriers.cubature_vertices,
        carriers.starts,
        carriers.bones,
        carriers.weights,
        memory.quaternions,
        carriers.root,
        carriers.blended,
        memory.rotations,
    )
    rest_positions(
        skin,
        carriers.cubature_vertices,
        z,
        memory.w,
        memory.turns[0],
        carriers.starts,
        carriers.bones,
        carriers.weights,
        carriers.points,
        carriers.corrections,
        carriers.observed,
        memory.positions,
    )
    rest_tets(
        chunks.vertices,
        chunks.neutral,
        chunks.neutral_inverse,
        memory.positions,
        memory.gradients,
        memory.factors,
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
    force[:] = 0.0
    project(sums.inertia, memory.load, memory.w, -1.0, memory.room, force)
    wind = memory.settings[WIND : WIND + 3]
    if wind[0] != 0.0 or wind[1] != 0.0 or wind[2] != 0.0:
        project(sums.wind, memory.wind, memory.w, 1.0, memory.room, force)
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
            rows.of_vertex,
            rows.starts,
            rows.columns,
            rows.offsets,
            rows.entries,
            memory.basis,
            force,
        )


@njit(cache=True)
def add_point_loads(
    vertices: np.ndarray,
    forces: np.ndarray,
    rotations: np.ndarray,
    of_vertex: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
    basis: np.ndarray,
    force: np.ndarray,
) -> None:
    """force += Σ_v Σ_i w_i V_i[v]ᵀ R_vᵀ F_v."""
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
        if own < 0:
            continue
        begin, at = starts[own], offsets[vertices[k]]
        width = starts[own + 1] - begin
        R = rotations[k]
        for i in range(3):
            local = R[i] * forces[k, 0] + R[3 + i] * forces[k, 1] + R[6 + i] * forces[k, 2]
            for b in range(basis.shape[0]):
                factor = basis[b] * local
                for t in range(width):
                    force[columns[begin + t]] += factor * entries[at + t]
                at += width


@njit(cache=True)
def attempt(carriers: Carriers, sums: Sums, chunks: Chunks, rows: Rows, memory: Memory, h: float, fresh: bool) -> bool:
    """Step the modes by h seconds; False, and the state as it was, if there is no sound result.

    `fresh`: the rows of the basis at this pose are not there yet.
    """
    r = memory.state.shape[1]
    q, v, a = memory.state[0], memory.state[1], memory.state[2]
    x, new, force, residual = memory.vectors[X], memory.vectors[NEW], memory.vectors[FORCE], memory.vectors[RESIDUAL]
    first, second = memory.vectors[FIRST], memory.vectors[SECOND]
    upsilon, first_column = memory.upsilon, sums.first
    alpha, beta, tolerance = memory.settings[ALPHA], memory.settings[BETA], memory.settings[TOLERANCE]
    if memory.switches[EULER]:
        a1, a2, a3, a4, a5 = 1.0 / (h * h), 1.0 / h, 0.0, 1.0 / h, 0.0
    else:
        a1, a2, a3, a4, a5 = 4.0 / (h * h), 4.0 / h, 1.0, 2.0 / h, -1.0
    for i in range(r):
        new[i] = q[i]
        x[i] = upsilon[i] * q[i]
        first[i] = upsilon[i] * v[i]
    force[:] = memory.vectors[EXTERNAL]
    scale = memory.settings[INERTIA]
    gyroscopic(sums.gyro_segments, sums.gyro_starts, sums.gyro, memory.rates, x, first, scale, memory.gyro, force)
    projected, trials = False, memory.switches[ITERATIONS]
    while trials > 0:
        for i in range(r):
            moved = new[i] - q[i]
            speed = a4 * moved + a5 * v[i]
            x[i] = upsilon[i] * new[i]
            first[i] = beta * upsilon[i] * speed
            second[i] = upsilon[i] * (a1 * moved - a2 * v[i] - a3 * a[i] + alpha * speed)
        elasticity(
            chunks.law,
            chunks.groups,
            chunks.starts,
            chunks.columns,
            chunks.vertices,
            chunks.offsets,
            chunks.shapes,
            chunks.edge_offsets,
            memory.basis,
            memory.rotations,
            memory.gradients,
            memory.lame,
            memory.factors,
            sums.segments,
            sums.stiffness,
            sums.stiffness_positive,
            memory.positive,
            memory.correction,
            x,
            fresh,
            projected,
            memory.edges,
            memory.product,
            memory.local,
            memory.lanes,
            memory.active,
            memory.work,
            residual,
            memory.stiffness,
        )
        fresh = False
        scale = 0.0
        for i in range(r):
            scale += residual[i] * residual[i] + force[i] * force[i]
            residual[i] -= force[i]
        segment_product(sums.segments, memory.mass, second, residual)
        if beta != 0.0:
            lower_product(memory.stiffness, first_column, first, residual)
        square = 0.0
        for i in range(r):
            square += residual[i] * residual[i]
        if square <= tolerance * tolerance * scale and scale < np.inf:
            break
        assemble(sums.segments, memory.mass, a1 + a4 * alpha, memory.stiffness, 1.0 + a4 * beta, memory.system)
        if not cholesky(memory.system, first_column, r):
            if projected:
                return False
            # The same iteration again with positive semidefinite Hessians, and those from here on.
            projected = True
            memory.counters[PROJECTED] += 1
            continue
        cholesky_solve(memory.system, first_column, residual)
        for i in range(r):
            new[i] -= residual[i] / upsilon[i]
        trials -= 1
    if not _sound(
        new,
        upsilon,
        memory.basis,
        memory.peaks,
        memory.settings[LIMIT],
        carriers.cubature_vertices,
        rows.of_vertex,
        rows.starts,
        rows.columns,
        rows.offsets,
        rows.entries,
    ):
        return False
    for i in range(r):
        moved = new[i] - q[i]
        speed = a4 * moved + a5 * v[i]
        a[i] = a1 * moved - a2 * v[i] - a3 * a[i]
        v[i] = speed
        q[i] = new[i]
    return True


@njit(cache=True)
def _sound(
    q: np.ndarray,
    upsilon: np.ndarray,
    basis: np.ndarray,
    peaks: np.ndarray,
    limit: float,
    vertices: np.ndarray,
    of_vertex: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
) -> bool:
    """Whether q is finite and moves no cubature vertex by more than the limit.

    The sum of every mode's largest displacement is never smaller: only beyond the limit need vertices be looked at.
    """
    total, share = 0.0, 0.0
    for i in range(q.shape[0]):
        total += abs(upsilon[i] * q[i]) * peaks[i]
    for b in range(basis.shape[0]):
        share += abs(basis[b])
    if total * share <= limit:
        return True
    if not np.isfinite(total):
        return False
    for k in range(vertices.shape[0]):
        own = of_vertex[vertices[k]]
        if own < 0:
            continue
        begin, at, square = starts[own], offsets[vertices[k]], 0.0
        width = starts[own + 1] - begin
        for _ in range(3):
            move = 0.0
            for b in range(basis.shape[0]):
                for t in range(width):
                    column = columns[begin + t]
                    move += basis[b] * entries[at + t] * upsilon[column] * q[column]
                at += width
            square += move * move
        if not square <= limit * limit:
            return False
    return True
