"""From carrier values to everything of a step that depends on the pose alone.

Carrier values of a skin: bone matrices (B, 3, 4), then pose weights (m,); of a black box: observed positions, then
pose weights. With their first and second rates they give frames, rest shape, reduced mass and the loads. Argument names
are those of the tables in `pose_space_layout`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.kernels.dense import FAST
from softrig.models.kernels.polar import angular_rates, polar_rotation
from softrig.models.kernels.pose_space_elements import LANES, rest_tet
from softrig.models.kernels.pose_space_frames import mixed_quaternion, quaternion_of
from softrig.models.kernels.pose_space_lanes import rest_lanes
from softrig.models.kernels.pose_space_sums import weighted_sum
from softrig.models.kernels.pose_space_tables import GRAVITY, INERTIA, SAG_FREE, STEP, WIND
from softrig.models.pose_space import REST_CLAMP

MOST_TURN = 0.3
"""Radians a step beyond which the explicit gyroscopic terms are cut off."""


@njit(cache=True)
def pose_frames(
    skin: bool,
    z: np.ndarray,
    sample: np.ndarray,
    arms: np.ndarray,
    turns: np.ndarray,
    quaternions: np.ndarray,
    work: np.ndarray,
) -> None:
    """Write the rotations of the bones, or of a black box' root."""
    if skin:
        count = turns.shape[0]
        bones = z[: 12 * count].reshape((count, 3, 4))
        for b in range(count):
            polar_rotation(bones[b], turns[b], work)
            quaternion_of(turns[b], quaternions[b])
    else:
        A = work[60:69].reshape((3, 3))
        root_matrix(z, sample, arms, A)
        polar_rotation(A, turns[0], work)
        quaternion_of(turns[0], quaternions[0])


@njit(cache=True)
def mixing_weights(z: np.ndarray, w: np.ndarray, positive: np.ndarray, basis: np.ndarray) -> None:
    """Write w, w⁺ and the weights of the bases."""
    first = z.shape[0] - w.shape[0]
    total = 0.0
    for i in range(w.shape[0]):
        w[i] = z[first + i]
        total += max(w[i], 0.0)
    for i in range(w.shape[0]):
        positive[i] = max(w[i], 0.0) / total
    if basis.shape[0] == 1:
        basis[0] = 1.0
    else:
        for i in range(w.shape[0]):  # w as a whole would have the compiler prepare for a wrong length
            basis[i] = w[i]


@njit(cache=True, forceinline=True)
def reduced_mass(
    terms: np.ndarray, segments: np.ndarray, basis: np.ndarray, mass: np.ndarray, upsilon: np.ndarray, pairs: np.ndarray
) -> None:
    """M̂ = Σ_ij w_i w_j V_iᵀMV_j and Υ (Eqs. 15, 16); `pairs` has a number for each term."""
    at = 0
    for i in range(basis.shape[0]):
        for j in range(i, basis.shape[0]):
            pairs[at] = basis[i] * basis[j]
            at += 1
    weighted_sum(terms, pairs, mass)
    for s in range(segments.shape[0]):
        row, column, length = segments[s, 0], segments[s, 1], segments[s, 2]
        if column + length == row + 1:
            square = mass[segments[s, 3] + length - 1]
            upsilon[row] = 1.0 / np.sqrt(square) if square > 0.0 else 1.0


@njit(cache=True)
def root_matrix(z: np.ndarray, sample: np.ndarray, arms: np.ndarray, A: np.ndarray) -> None:
    """A (3, 3) = Σ_s y_s m_s (X_s − X̄)ᵀ over the root sample of a black box; linear in z."""
    A[:] = 0.0
    for s in range(sample.shape[0]):
        at = sample[s]
        for i in range(3):
            for j in range(3):
                A[i, j] += z[at + i] * arms[s, j]


@njit(cache=True)
def rest_positions(
    skin: bool,
    vertices: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    turns: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    points: np.ndarray,
    corrections: np.ndarray,
    observed: np.ndarray,
    x: np.ndarray,
) -> None:
    """Write the rest positions (k, 3) of tet vertices (k,) at the pose (Eqs. 1, 2)."""
    for k in range(vertices.shape[0]):
        vertex = vertices[k]
        d0, d1, d2 = 0.0, 0.0, 0.0
        for i in range(w.shape[0]):
            d0 += w[i] * corrections[vertex, i, 0]
            d1 += w[i] * corrections[vertex, i, 1]
            d2 += w[i] * corrections[vertex, i, 2]
        x0, x1, x2 = 0.0, 0.0, 0.0
        if skin:
            d0, d1, d2 = points[vertex, 0] + d0, points[vertex, 1] + d1, points[vertex, 2] + d2
            for at in range(starts[vertex], starts[vertex + 1]):
                weight, b = weights[at], 12 * bones[at]
                x0 += weight * (z[b] * d0 + z[b + 1] * d1 + z[b + 2] * d2 + z[b + 3])
                x1 += weight * (z[b + 4] * d0 + z[b + 5] * d1 + z[b + 6] * d2 + z[b + 7])
                x2 += weight * (z[b + 8] * d0 + z[b + 9] * d1 + z[b + 10] * d2 + z[b + 11])
        else:
            at = observed[vertex]
            x0 = z[at] + turns[0, 0, 0] * d0 + turns[0, 0, 1] * d1 + turns[0, 0, 2] * d2
            x1 = z[at + 1] + turns[0, 1, 0] * d0 + turns[0, 1, 1] * d1 + turns[0, 1, 2] * d2
            x2 = z[at + 2] + turns[0, 2, 0] * d0 + turns[0, 2, 1] * d1 + turns[0, 2, 2] * d2
        x[k, 0], x[k, 1], x[k, 2] = x0, x1, x2


@njit(cache=True, forceinline=True, fastmath=FAST)
def bind_positions(points: np.ndarray, w: np.ndarray, corrections: np.ndarray, out: np.ndarray) -> None:
    """out (3, ≥ k) = points (3, k) + Σ_i w_i corrections[i]."""
    for i in range(3):
        target, source = out[i], points[i]
        for t in range(source.shape[0]):
            target[t] = source[t]
        for j in range(w.shape[0]):
            delta, weight = corrections[j, i], w[j]
            for t in range(source.shape[0]):
                target[t] += weight * delta[t]


@njit(cache=True)
def black_box_positions(
    vertices: np.ndarray,
    observed: np.ndarray,
    z: np.ndarray,
    points: np.ndarray,
    R: np.ndarray,
    moved: np.ndarray,
    positions: np.ndarray,
) -> None:
    """Write observed positions plus R times the corrections, which are `moved` − `points`; all (3, k)."""
    for k in range(vertices.shape[0]):
        d0, d1, d2 = moved[0, k] - points[0, k], moved[1, k] - points[1, k], moved[2, k] - points[2, k]
        at = observed[vertices[k]]
        for i in range(3):
            positions[i, k] = z[at + i] + R[i, 0] * d0 + R[i, 1] * d1 + R[i, 2] * d2


@njit(cache=True)
def same_rotation(R: np.ndarray, rotations: np.ndarray) -> None:
    """rotations (9, k) = R for all."""
    for i in range(9):
        for t in range(rotations.shape[1]):
            rotations[i, t] = R[i // 3, i % 3]


@njit(cache=True)
def vertex_rotations(
    vertices: np.ndarray,
    starts: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    quaternions: np.ndarray,
    root: int,
    blended: bool,
    rotations: np.ndarray,
) -> None:
    """Write R_v (k, 9), row by row, of tet vertices (k,)."""
    for k in range(vertices.shape[0]):
        x, y, z, w, s = mixed_quaternion(vertices[k], starts, bones, weights, quaternions, root, blended)
        sx, sy, sz = s * x, s * y, s * z
        rotations[k, 0], rotations[k, 1], rotations[k, 2] = 1.0 - sy * y - sz * z, sx * y - sz * w, sx * z + sy * w
        rotations[k, 3], rotations[k, 4], rotations[k, 5] = sx * y + sz * w, 1.0 - sx * x - sz * z, sy * z - sx * w
        rotations[k, 6], rotations[k, 7], rotations[k, 8] = sx * z - sy * w, sy * z + sx * w, 1.0 - sx * x - sy * y


@njit(cache=True, forceinline=True)
def rest_tets(
    corners: np.ndarray,
    neutral: np.ndarray,
    neutral_inverse: np.ndarray,
    positions: np.ndarray,
    gradients: np.ndarray,
    shares: np.ndarray,
    edges: np.ndarray,
    work: np.ndarray,
) -> None:
    """Write shape gradients B (chunks, 9 · LANES) of the clamped rest tets and their volumes over the neutral ones.

    `neutral` and `neutral_inverse` (chunks, 9 · LANES); `edges` (11 · LANES) scratch.
    """
    lanes = corners.shape[2]
    own, before, inverse, B = work[60:69], work[69:78], work[78:87], work[87:96]
    bounds = edges[9 * LANES : 10 * LANES]
    for c in range(corners.shape[0]):
        for t in range(LANES):
            base = corners[c, 0, t]
            for a in range(3):
                v = corners[c, a + 1, t]
                for i in range(3):
                    edges[LANES * (3 * i + a) + t] = positions[i, v] - positions[i, base]
        rest_lanes(lanes, edges, neutral_inverse[c], gradients[c], shares[c], bounds)
        for t in range(LANES):
            if bounds[t] >= REST_CLAMP:
                continue
            for k in range(9):
                own[k] = edges[LANES * k + t]
                before[k] = neutral[c, LANES * k + t]
                inverse[k] = neutral_inverse[c, LANES * k + t]
            shares[c, t] = rest_tet(own, inverse, before, REST_CLAMP, B, work)
            for k in range(9):
                gradients[c, LANES * k + t] = B[k]


@njit(cache=True, forceinline=True, fastmath=FAST, error_model="numpy")
def materials(
    positive: np.ndarray,
    weights: np.ndarray,
    young: np.ndarray,
    poisson: np.ndarray,
    scale: np.ndarray,
    volumes: np.ndarray,
    factors: np.ndarray,
    lame: np.ndarray,
) -> None:
    """Write λ, μ (chunks, 2, LANES) at w⁺; `factors` come in as relative volumes and leave as ξ · volume."""
    for c in range(volumes.shape[0]):
        for t in range(LANES):
            share, modulus, ratio = 0.0, 0.0, 0.0
            for i in range(positive.shape[0]):
                w = positive[i]
                share += w * weights[c, i, t]
                modulus += w * young[c, i, t]
                ratio += w * poisson[c, i, t]
            modulus *= scale[c, t]
            factors[c, t] *= share * volumes[c, t]
            lame[c, 0, t] = ratio * modulus / ((1.0 + ratio) * (1.0 - 2.0 * ratio))
            lame[c, 1, t] = 0.5 * modulus / (1.0 + ratio)


@njit(cache=True)
def loads(
    skin: bool,
    blended: bool,
    root: int,
    inertial: np.ndarray,
    zdd: np.ndarray,
    turns: np.ndarray,
    poses: int,
    settings: np.ndarray,
    switches: np.ndarray,
    load: np.ndarray,
    wind: np.ndarray,
    pull: np.ndarray,
) -> None:
    """Write the load vector: accelerations minus gravity in their frames, then ẅ; and the wind in its frames."""
    scale, sag_free = settings[INERTIA], switches[SAG_FREE] != 0
    count = turns.shape[0] if skin else inertial.shape[0]
    last = 0
    for b in range(count):
        R = turns[b if skin and blended else root]
        effective_gravity(settings, R, sag_free, pull)
        width = 4 if skin else 1
        first = 12 * b if skin else inertial[b]
        for j in range(width):
            a0, a1 = scale * zdd[first + j], scale * zdd[first + width + j]
            a2 = scale * zdd[first + 2 * width + j]
            if j == width - 1:
                a0, a1, a2 = a0 - pull[0], a1 - pull[1], a2 - pull[2]
            for i in range(3):
                load[last + width * i + j] = R[0, i] * a0 + R[1, i] * a1 + R[2, i] * a2
        last += 3 * width
    for i in range(poses):
        load[last + i] = scale * zdd[zdd.shape[0] - poses + i]
    for f in range(wind.shape[0] // 3):
        R = turns[f if blended else root]
        for i in range(3):
            wind[3 * f + i] = R[0, i] * settings[WIND] + R[1, i] * settings[WIND + 1] + R[2, i] * settings[WIND + 2]


@njit(cache=True)
def turning_loads(zd: np.ndarray, turns: np.ndarray, scale: float, out: np.ndarray) -> None:
    """Write 2 ẇ_j ω_b (B, m, 3): ω of the bones from the skew part of RᵀṀ (`models.inertia_map`)."""
    first = zd.shape[0] - out.shape[1]
    for b in range(out.shape[0]):
        R, rate = turns[b], zd[12 * b : 12 * b + 12].reshape((3, 4))
        for a in range(3):
            i, j = (a + 1) % 3, (a + 2) % 3
            turn = 0.0
            for x in range(3):
                turn += R[x, j] * rate[x, i] - R[x, i] * rate[x, j]
            for k in range(out.shape[1]):
                # Twice the product, with half the difference.
                out[b, k, a] = scale * zd[first + k] * turn


@njit(cache=True)
def effective_gravity(settings: np.ndarray, R: np.ndarray, sag_free: bool, out: np.ndarray) -> None:
    """Gravity, or how it differs from what the sculpted shape already bears: g − R g, zero at rest."""
    for i in range(3):
        out[i] = settings[GRAVITY + i]
        if sag_free:
            for j in range(3):
                out[i] -= R[i, j] * settings[GRAVITY + j]


@njit(cache=True)
def gyroscopic_rates(
    skin: bool,
    gyro_bones: np.ndarray,
    sample: np.ndarray,
    arms: np.ndarray,
    z: np.ndarray,
    zd: np.ndarray,
    zdd: np.ndarray,
    turns: np.ndarray,
    settings: np.ndarray,
    rates: np.ndarray,
    work: np.ndarray,
) -> None:
    """Write Ω and Ω̇ of the gyroscopic groups, cut off where a step would turn by more than `MOST_TURN`."""
    most = MOST_TURN / settings[STEP]
    A, A1, A2 = work[60:69].reshape((3, 3)), work[69:78].reshape((3, 3)), work[78:87].reshape((3, 3))
    for k in range(gyro_bones.shape[0]):
        b = gyro_bones[k]
        if skin:
            for i in range(3):
                for j in range(3):
                    at = 12 * b + 4 * i + j
                    A[i, j], A1[i, j], A2[i, j] = z[at], zd[at], zdd[at]
        else:
            root_matrix(z, sample, arms, A)
            root_matrix(zd, sample, arms, A1)
            root_matrix(zdd, sample, arms, A2)
        angular_rates(turns[b], A, A1, A2, rates[k, 0], rates[k, 1], work)
        _limit(rates[k, 0], most)
        _limit(rates[k, 1], MOST_TURN * most / settings[STEP])


@njit(cache=True)
def _limit(vector: np.ndarray, most: float) -> None:
    length = np.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
    if length > most:
        for i in range(3):
            vector[i] *= most / length
