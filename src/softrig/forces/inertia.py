"""Inertial forces of the moving rest shape in the reduced basis (PSSD §5.4): exact for skins, else vertex cubature.

f̃ = −Σ_v V_vᵀ m_v R_vᵀ ẍ_v (the paper's Eq. 24 leaves the sign out; here as there the matrices are without it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import InputError, SolverError
from softrig.forces.elements import add_sketched_columns
from softrig.forces.projection import carried_by
from softrig.numerics.rotations import quaternion_product, quaternions_from_vectors, unit_quaternions
from softrig.numerics.sparse_selection import nonnegative_weights, sparse_selection
from softrig.rig.parameters import Parameters

Progress = Callable[[int, int], None] | None
Positions = Callable[[np.ndarray], np.ndarray]

LARGEST_TURN = np.radians(1.0)
"""Perturbations of joint angles, radian (PSSD §5.4)."""
LARGEST_SHIFT = 1e-3 / 1.8
"""Perturbations of lengths in sizes of the character: 1 mm on a human."""
LARGEST_SHARE = 0.01
"""Perturbations of plain numbers: morph weights, scales."""
SKETCH_ROWS = 8
VERTICES_PER_MODE = 1.0
REFINEMENT = 1e-6
"""Ridge of the refinement, relative to the mean square of a sample."""


def skin_inertia(
    shapes: np.ndarray,
    vertex_mass: np.ndarray,
    vertices: np.ndarray,
    corrections: np.ndarray,
    tet_weights: csr_array,
    bone_matrices: np.ndarray,
    vertex_rotations: np.ndarray,
    frame_rotations: np.ndarray,
) -> np.ndarray:
    """(m, r, 12B + m) C_i with C_i a = Σ_v V_vᵀ m_v R_vᵀ ẍ_v at pose i, for the load vector a = [R_fᵀM̈_b flat, ẅ].

    x_v = Σ_b W_vb M_b [X_v + Σ_j w_j δ_jv; 1] is linear in M_b. With A_b = R_f(b)ᵀM̈_b (3×4, row-major) and
    L_v = Σ_b W_vb M_b (3×3 part), at pose i
        C_i a = Σ_v V_vᵀ m_v R_vᵀ (Σ_b W_vb R_f(b) A_b [X_v + δ_iv; 1] + L_v Σ_j ẅ_j δ_jv),
    exact for any M̈_b and ẅ, but for the mixed term 2 L̇_v Σ_j ẇ_j δ_jv, see `turning_inertia`.

    `shapes` V (m, n, 3, r), or (1, n, 3, r); `vertex_mass` (n,) kg; `vertices` X (n, 3) m; `corrections` δ (m, n, 3) m;
    `tet_weights` W (n, B); per pose `bone_matrices` (m, B, 3, 4), `vertex_rotations` (m, n, 3, 3) and `frame_rotations`
    (m, B, 3, 3) of the bones in "bind", (m, 1, 3, 3) of the root in "world".
    """
    poses, bones = bone_matrices.shape[:2]
    _check_skin(shapes, corrections, tet_weights, bone_matrices, vertex_rotations, frame_rotations)
    modes = shapes.shape[3]
    result = np.empty((poses, modes, 12 * bones + poses))
    frames = np.broadcast_to(frame_rotations, (poses, bones, 3, 3))
    for i in range(poses):
        own, points = shapes[i if len(shapes) > 1 else 0], vertices + corrections[i]
        result[i, :, : 12 * bones] = bone_inertia(own, vertex_mass, points, tet_weights, vertex_rotations[i], frames[i])
        linear = (tet_weights @ bone_matrices[i, :, :, :3].reshape(bones, 9)).reshape(-1, 3, 3)
        # (n, 3, r) R_v V_v m_v: the weighted shapes in the world.
        turned = vertex_rotations[i] @ own * vertex_mass[:, None, None]
        moved = np.einsum("vxy,jvy->jvx", linear, corrections)
        result[i, :, 12 * bones :] = np.einsum("vxr,jvx->rj", turned, moved, optimize=True)
    return result


def bone_inertia(
    shapes: np.ndarray,
    vertex_mass: np.ndarray,
    points: np.ndarray,
    tet_weights: csr_array,
    vertex_rotations: np.ndarray,
    frame_rotations: np.ndarray,
) -> np.ndarray:
    """(r, 12B) the columns of the bones at one pose: Σ_v V_vᵀ m_v R_vᵀ W_vb R_f(b) A_b [x_v; 1] for A_b flat.

    `shapes` V (n, 3, r) and `points` x (n, 3) m in bind space, corrections included; `vertex_rotations` (n, 3, 3) and
    `frame_rotations` (B, 3, 3) there.
    """
    lifted = vertex_mass[:, None] * np.concatenate([points, np.ones((len(points), 1))], axis=1)
    blocks = []
    for b, frame in enumerate(frame_rotations):
        rows, weights = carried_by(tet_weights, b)
        turned = _seen_from(vertex_rotations[rows], frame, weights)
        arms = turned[..., None] * lifted[rows, None, None, :]
        blocks.append(shapes[rows].reshape(-1, shapes.shape[2]).T @ arms.reshape(-1, 12))
    return np.hstack(blocks)


def turning_inertia(
    shapes: np.ndarray,
    vertex_mass: np.ndarray,
    corrections: np.ndarray,
    tet_weights: csr_array,
    vertex_rotations: np.ndarray,
    frame_rotations: np.ndarray,
) -> np.ndarray:
    """(r, 3 m B) columns for 2 ẇ_j ω_b, bone by bone and pose by pose: Σ_v V_vᵀ m_v R_vᵀ W_vb R_b (ω_b × δ_jv) ẇ_j.

    The part of `skin_inertia` that is bilinear in rates, for bones that turn with ω_b seen from themselves. Arguments
    as in `bone_inertia`; `corrections` δ (m, n, 3) m.
    """
    # (n, 3, m, 3) e_a × δ_j, by vertex, coordinate, pose and a.
    crossed = np.cross(np.eye(3), corrections[:, :, None]).transpose(1, 3, 0, 2) * vertex_mass[:, None, None, None]
    blocks = []
    for b, frame in enumerate(frame_rotations):
        rows, weights = carried_by(tet_weights, b)
        turned = _seen_from(vertex_rotations[rows], frame, weights)
        arms = np.einsum("vxy,vyja->vxja", turned, crossed[rows], optimize=True)
        blocks.append(shapes[rows].reshape(-1, shapes.shape[2]).T @ arms.reshape(-1, 3 * len(corrections)))
    return np.hstack(blocks)


def _seen_from(vertex_rotations: np.ndarray, frame: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(k, 3, 3) W_v R_vᵀ R_f of vertices with R_v (k, 3, 3)."""
    return weights[:, None, None] * (np.swapaxes(vertex_rotations, 1, 2) @ frame)


def correction_inertia(shapes: np.ndarray, vertex_mass: np.ndarray, corrections: np.ndarray) -> np.ndarray:
    """(m, r, m) Σ_v V_vᵀ m_v δ_jv: the ẅ columns of a black-box rig, whose corrections turn with the root alone.

    `shapes` V (m, n, 3, r), or (1, n, 3, r); `corrections` δ (m, n, 3) m.
    """
    own = shapes if len(shapes) > 1 else np.broadcast_to(shapes, (len(corrections), *shapes.shape[1:]))
    return np.stack([np.einsum("vxr,v,jvx->rj", V, vertex_mass, corrections, optimize=True) for V in own])


def _check_skin(
    shapes: np.ndarray,
    corrections: np.ndarray,
    tet_weights: csr_array,
    bone_matrices: np.ndarray,
    vertex_rotations: np.ndarray,
    frame_rotations: np.ndarray,
) -> None:
    poses, bones = bone_matrices.shape[:2]
    count = shapes.shape[1]
    if len(shapes) not in (1, poses) or corrections.shape != (poses, count, 3):
        raise InputError(f"shapes {shapes.shape} and corrections {corrections.shape} for {poses} poses")
    if tet_weights.shape != (count, bones):
        raise InputError(f"tet weights {tet_weights.shape} must be ({count}, {bones})")
    if vertex_rotations.shape != (poses, count, 3, 3) or frame_rotations.shape not in (
        (poses, bones, 3, 3),
        (poses, 1, 3, 3),
    ):
        raise InputError(f"rotations {vertex_rotations.shape} and {frame_rotations.shape} for {poses} poses")


@dataclass(frozen=True, eq=False)
class InertialCubature:
    """A few vertices whose accelerations stand for all (PSSD Eq. 23)."""

    vertices: np.ndarray
    """(s,) int32 tet vertices, rising."""
    weights: np.ndarray
    """(s,) v_s > 0, for all poses."""
    matrices: np.ndarray
    """(m, r, 3 s) from accelerations of the vertices in the root's frame to forces: v_s m_s V_i[s]ᵀ, or refined."""
    errors: np.ndarray
    """(m,) RMS of ‖f̃_cubature − f̃‖ / ‖f̃‖ over unseen accelerations at each pose."""


def train_inertia(
    positions: Positions,
    poses: np.ndarray,
    parameters: Parameters,
    shapes: np.ndarray,
    root_rotations: np.ndarray,
    vertex_mass: np.ndarray,
    size: float,
    *,
    count: int | None = None,
    samples: int = 50,
    unseen: int = 20,
    method: str = "nnls",
    refine: bool = True,
    seed: int = 0,
    progress: Progress = None,
) -> InertialCubature:
    """Vertices and weights for a black-box rig, `positions(p)` (n, 3) m of the tet vertices (PSSD §5.4, Eqs. 23–25).

    Around each of `poses` (m, P) random poses, at most 1° and a millimetre on a human away, stand for consecutive
    frames; their second differences are sample accelerations. Uniform accelerations join them, because gravity runs
    over the same vertices. `shapes` V (m, n, 3, r), or (1, n, 3, r), and accelerations are seen in the root's frame,
    `root_rotations` (m, 3, 3). `count` defaults to r. `progress(done, total)` counts samples.

    `refine` (ours): C_i = v_s m_s V_i[s]ᵀ is moved as little as makes the samples right. A rig causes far fewer
    accelerations than it has vertices, so a few vertices tell them all; the runtime pays nothing.
    """
    count = round(VERTICES_PER_MODE * shapes.shape[3]) if count is None else count
    count = min(count, len(vertex_mass))
    if len(shapes) not in (1, len(poses)) or shapes.shape[1] != len(vertex_mass):
        raise InputError(f"shapes {shapes.shape} for {len(poses)} poses and {len(vertex_mass)} vertices")
    own = [shapes[i if len(shapes) > 1 else 0] for i in range(len(poses))]
    trained: list[np.ndarray] = []
    fresh: list[np.ndarray] = []
    done = 0
    for index, (p, root) in enumerate(zip(poses, root_rotations, strict=True)):
        for chosen, number, part in ((trained, samples, 0), (fresh, unseen, 1)):
            random = np.random.default_rng([seed, index, part])
            chosen.append(root.T @ sample_accelerations(positions, p, parameters, size, number, random))
            done += number
            if progress:
                progress(done, len(poses) * (samples + unseen))
    fields = [_with_uniform(field) for field in trained]
    columns, target = _sketched_columns(own, fields, vertex_mass, SKETCH_ROWS * count, seed)
    # As long as they are: a vertex that is heavy and moves far matters more, unlike a tet that happens to be large.
    support = sparse_selection(columns.T, target, count, method=method, seed=seed, equal_lengths=False).support
    if not support.size:
        raise SolverError("no vertex lessens the error of the inertial force: does the rig move at these poses?")
    weights = _full_weights(own, fields, vertex_mass, support)
    support, weights = support[weights > 0.0], weights[weights > 0.0]
    factors = (weights * vertex_mass[support])[:, None, None]
    matrices = [(factors * V[support]).reshape(-1, V.shape[2]).T for V in own]
    if refine:
        forces = [_forces(V, field, vertex_mass) for V, field in zip(own, fields, strict=True)]
        matrices = [_refined(C, f, a[support]) for C, f, a in zip(matrices, forces, fields, strict=True)]
    errors = [
        _relative_error(C @ field[support].reshape(C.shape[1], -1), _forces(V, field, vertex_mass))
        for C, V, field in zip(matrices, own, fresh, strict=True)
    ]
    return InertialCubature(support.astype(np.int32), weights, np.stack(matrices), np.array(errors))


def _refined(matrix: np.ndarray, forces: np.ndarray, picked: np.ndarray) -> np.ndarray:
    """(r, 3s) the matrix moved as little as makes `forces` (r, k) of accelerations `picked` (s, 3, k) right.

    ΔC = E (AᵀA + ρ)⁻¹ Aᵀ with E what is missing; ρ keeps what the samples do not tell at the cubature's answer.
    """
    lengths = _lengths(forces)
    A = picked.reshape(-1, picked.shape[2]) / lengths
    missing = forces / lengths - matrix @ A
    gram = A.T @ A
    ridge = REFINEMENT * np.trace(gram) / len(gram)
    return matrix + missing @ np.linalg.solve(gram + ridge * np.eye(len(gram)), A.T)


def sample_accelerations(
    positions: Positions,
    p: np.ndarray,
    parameters: Parameters,
    size: float,
    count: int,
    random: np.random.Generator,
) -> np.ndarray:
    """(n, 3, count + count/2) second differences of `positions` around p (P,), metres.

    `count` of them over count + 2 random poses, as in the paper. They hardly see the centripetal part of
    ẍ = J p̈ + ṗᵀHṗ, which fast motion makes as large as the other, so half as many follow that see nothing else: over
    a pose, p and the opposite pose.
    """
    poses = [perturbed(p, parameters, size, random)[0] for _ in range(count + 2)]
    frames = np.stack([positions(pose) for pose in poses], axis=2)
    wandering = frames[:, :, 2:] - 2.0 * frames[:, :, 1:-1] + frames[:, :, :-2]
    if count < 2:
        return wandering
    pairs = [perturbed(p, parameters, size, random) for _ in range(count // 2)]
    swinging = np.stack([positions(ahead) + positions(behind) for ahead, behind in pairs], axis=2)
    return np.concatenate([wandering, swinging - 2.0 * positions(p)[:, :, None]], axis=2)


def perturbed(
    p: np.ndarray, parameters: Parameters, size: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(P,) a random pose near p (P,) and the one opposite of it.

    Angles stay within 1°, lengths within a millimetre on a human, other numbers within 1/100.
    """
    reach = {"rad": LARGEST_TURN, "m": LARGEST_SHIFT * size}
    limits = np.array([reach.get(unit, LARGEST_SHARE) for unit in parameters.units])
    step = limits * random.uniform(-1.0, 1.0, len(parameters))
    where = parameters.quaternions[:, None] + np.arange(4)
    turns = random.normal(size=(len(where), 3))
    turns *= random.uniform(0.0, LARGEST_TURN, (len(where), 1)) / np.linalg.norm(turns, axis=1, keepdims=True)
    base = np.asarray(p, dtype=np.float64)
    ahead, behind = base + step, base - step
    for result, sign in ((ahead, 1.0), (behind, -1.0)):
        result[where] = quaternion_product(unit_quaternions(base[where]), quaternions_from_vectors(sign * turns))
    return ahead, behind


def _with_uniform(field: np.ndarray) -> np.ndarray:
    """(n, 3, k + 3) accelerations and the three uniform ones."""
    uniform = np.broadcast_to(np.eye(3), (len(field), 3, 3))
    return np.concatenate([field, uniform], axis=2)


def _forces(shapes: np.ndarray, field: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(r, k) Σ_v V_vᵀ m_v a_v of accelerations (n, 3, k)."""
    modes = shapes.shape[2]
    weighted = vertex_mass[:, None, None] * shapes
    return weighted.reshape(-1, modes).T @ field.reshape(-1, field.shape[2])


def _lengths(forces: np.ndarray) -> np.ndarray:
    """(k,) norms to divide by (Eq. 25); infinite where a sample has no force and so says nothing."""
    lengths = np.linalg.norm(forces, axis=0)
    return np.where(lengths > 1e-12 * lengths.max(initial=0.0), lengths, np.inf)


def _sketched_columns(
    shapes: Sequence[np.ndarray], fields: Sequence[np.ndarray], vertex_mass: np.ndarray, rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, s) sketched columns of Eq. 17 for vertices, a vertex a row, and their sum."""
    modes = shapes[0].shape[2]
    full = modes * sum(field.shape[2] for field in fields)
    rows = min(rows, full)
    random = np.random.default_rng([seed, 11])
    places = np.arange(full) if rows == full else random.permutation(full) % rows
    columns = np.zeros((len(vertex_mass), rows))
    first = 0
    for V, field in zip(shapes, fields, strict=True):
        shape = (field.shape[2], modes)
        buckets = places[first : first + field.shape[2] * modes].reshape(shape)
        first += field.shape[2] * modes
        scaled = vertex_mass[:, None, None] * field / _lengths(_forces(V, field, vertex_mass))
        add_sketched_columns(scaled, np.ascontiguousarray(V), buckets, random.choice([-1.0, 1.0], shape), columns)
    return columns, columns.sum(axis=0)


def _full_weights(
    shapes: Sequence[np.ndarray], fields: Sequence[np.ndarray], vertex_mass: np.ndarray, support: np.ndarray
) -> np.ndarray:
    """(s,) weights of the chosen vertices on all rows of all poses."""
    columns, targets = [], []
    for V, field in zip(shapes, fields, strict=True):
        forces = _forces(V, field, vertex_mass)
        lengths = _lengths(forces)
        factors = vertex_mass[support][:, None, None]
        columns.append(
            np.einsum("vxr,vxk->rkv", factors * V[support], field[support] / lengths).reshape(-1, len(support))
        )
        targets.append((forces / lengths).ravel())
    return nonnegative_weights(np.concatenate(columns), np.concatenate(targets))[0]


def _relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """RMS over samples of ‖found − exact‖ / ‖exact‖, both (r, k)."""
    return float(np.sqrt(np.mean((np.linalg.norm(found - exact, axis=0) / _lengths(exact)) ** 2)))
