"""Load modes: shapes a body takes under the accelerations its rig can cause, and how they bend on.

The rig's accelerations are known beforehand: its root moves, and each joint turns all that hangs on it. Spanning the
body's answers to those takes far fewer vectors than spanning its vibrations.

loads = rig_loads(posed, tet_weights, *skin_joints(skin, p), free=body.free, vertex_mass=body.vertex_mass)
samples = load_samples(body, loads)
basis = sample_basis(body, samples, 45)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array

from softrig.bases.compliance import acceleration_forces
from softrig.bases.contact import Solve, constrained_derivatives, constrained_modes, constrained_solve
from softrig.bases.derivatives import derivative_samples
from softrig.bases.modes import LinearModes
from softrig.bases.snapshots import Basis
from softrig.errors import InputError, ModeCountError, require_finite, require_vectors
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_orthonormal, mass_pca
from softrig.numerics.rotations import quaternion_product, quaternions_from_vectors, skew, unit_quaternions
from softrig.rig.parameters import Parameters
from softrig.rig.skinning import Skin

GRAVITY = 9.81
"""m/s²: the size of a load."""
CENTRIPETAL = 0.2
"""Of that, the size of centripetal loads: what swings by an angle θ accelerates by θω² along its way and by at most
(θω)² across it. As large as the others they take modes from them: the best that 100 modes of a gorilla can do on a walk
they were not made for is 13.5 % off at 1, 12.7 at 0.3 and 12.1 at 0.1; on a jump 12.1, 11.7, 11.8; on a beat 10.2, 10.2
and 10.3."""
UNIFORM = np.ones(3)
TURNING = np.repeat([1.0, CENTRIPETAL], [3, 6])
"""Sizes, in g, of the loads of `_uniform_fields` and of `_turning_fields`."""
NOTHING = 1e-9
"""A parameter or bone that moves less than this share does nothing."""
CURVED = 1e-6
"""The same for second differences, which hold less of the truth and more rounding."""
SWAYS = 1e-2
"""A load moves what it accelerates by more than this share of its largest acceleration."""
AMPLITUDE = 0.02
"""Default of the largest displacement of the leading load mode, over the body's diagonal. Between 0.01 and 0.04 the
trajectory errors on an arm were alike; larger, derivatives push load modes out of a small basis."""
LIGHTEST_BONE = 0.1
"""Bones lighter than this share of the mean count in the metric as if they had it: fingers do not outvote a hip."""
SIGNIFICANT = 1e-6
"""Load modes weaker than this share of the first are left out."""


@dataclass(frozen=True)
class Samples:
    """Deformations to make a basis of, each as large as it is expected to occur."""

    fields: np.ndarray
    """(3·free, k) metres."""
    sigma: np.ndarray
    """(k,) mass norm of each, metres √kilogram."""


def rig_loads(
    vertices: np.ndarray,
    tet_weights: csr_array,
    origins: np.ndarray,
    parents: np.ndarray,
    *,
    free: np.ndarray | None = None,
    vertex_mass: np.ndarray | None = None,
) -> np.ndarray:
    """(n, 3, L) accelerations that a skinning rig can cause at a pose, m/s², each 1 g RMS over what it moves,
    centripetal ones `CENTRIPETAL` g.

    The root's translation along x, y, z; and for each joint j, with the arm d = x − x_j and the share s of the
    skin weight on the joint's whole subtree: its angular accelerations s e_k × d (3), and its centripetal
    accelerations s ω × (ω × d) by the six products of ω's components: s (e_a d_a − d) and s (e_a d_b + e_b d_a).

    `vertices` (n, 3) posed tet vertices and `origins` (B, 3) joints, metres in the world; `tet_weights` (n, B), rows
    sum to one; `parents` (B,) the bone above, −1 for roots. `free` (n,) mask, default all: joints that move
    none of it, and joints that coincide with another in place and subtree, are skipped. `vertex_mass` (n,) for the
    RMS, default equal.
    """
    count, bones = tet_weights.shape
    vertices = require_vectors(vertices, count, "posed vertices")
    origins = require_vectors(origins, bones, "bone origins")
    moving = _moving_mass(count, free, vertex_mass)
    subtrees = _subtrees(np.asarray(parents), bones)
    carrying = np.asarray(tet_weights.T @ moving).ravel() > NOTHING * moving.sum()
    fields, sizes = [_uniform_fields(count)], [UNIFORM]
    seen: set[tuple[bytes, bytes]] = set()
    for joint in range(bones):
        carried = subtrees[joint] & carrying
        key = (carried.tobytes(), origins[joint].tobytes())
        if not carried.any() or key in seen:
            continue
        seen.add(key)
        share = np.asarray(tet_weights @ subtrees[joint].astype(np.float64)).ravel()
        fields.append(share[:, None, None] * _turning_fields(vertices - origins[joint]))
        sizes.append(TURNING)
    return _sized(np.concatenate(fields, axis=2), moving, np.concatenate(sizes))


def skin_joints(skin: Skin, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, 3) world positions of the joints of a skin's bones at parameters p, metres; (B,) the bone above each, or −1.

    In the order of `skin.binding`; nodes between two bones are passed over.
    """
    nodes = skin.binding.bones
    origins = skin.skeleton.world_matrices(p)[nodes, :3, 3]
    bone_of_node = {int(node): bone for bone, node in reversed(list(enumerate(nodes)))}
    parents = np.full(len(nodes), -1, np.int64)
    for bone, node in enumerate(nodes.tolist()):
        if bone_of_node[node] != bone:  # a second bone on the same node moves with the first
            parents[bone] = bone_of_node[node]
            continue
        above = (bone_of_node[a] for a in skin.skeleton.ancestors(node) if a in bone_of_node)
        parents[bone] = next(above, -1)
    return origins, parents


def rig_loads_black_box(
    positions: Callable[[np.ndarray], np.ndarray],
    p: np.ndarray,
    parameters: Parameters,
    size: float,
    *,
    free: np.ndarray | None = None,
    vertex_mass: np.ndarray | None = None,
    step: float = 1e-2,
) -> np.ndarray:
    """(n, 3, L) accelerations that any rig can cause at parameters p (P,), m/s², each 1 g RMS over what it moves,
    centripetal ones and those of ṗ² `CENTRIPETAL` g.

    Translation (3), and rotation (3) and centripetal terms (6) about the centre, of the whole; and of each parameter
    ∂x/∂p_k (what p̈_k does) and ∂²x/∂p_k² (what ṗ_k² does) by central differences of `positions` (n, 3), metres.
    Quaternions are turned about their three axes. `step`: radians, or of the unit, or of `size` for lengths.
    Parameters that move nothing free give no load.
    """
    rest = np.asarray(positions(p), dtype=np.float64)
    moving = _moving_mass(len(rest), free, vertex_mass)
    centre = moving @ rest / moving.sum()
    fields, sizes = [_uniform_fields(len(rest)), _turning_fields(rest - centre)], [*UNIFORM, *TURNING]
    for ahead, behind in parameter_steps(parameters, p, size, step):
        after, before = (np.asarray(positions(moved), dtype=np.float64) for moved in (ahead, behind))
        # Differences of the size of a displacement, to tell what moves from what rounding does.
        first, second = 0.5 * (after - before), after - 2.0 * rest + before
        changes = (first, NOTHING * step * size, 1.0), (second, CURVED * step**2 * size, CENTRIPETAL)
        for change, least, strength in changes:
            if np.abs(change[moving > 0.0]).max(initial=0.0) > least:
                fields.append(change[:, :, None])
                sizes.append(strength)
    stack = np.concatenate(fields, axis=2)
    require_finite(stack, "rig positions")
    return _sized(stack, moving, np.array(sizes))


def parameter_steps(
    parameters: Parameters, p: np.ndarray, size: float, step: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Parameters a small step ahead of and behind p (P,), for each parameter; for a quaternion about its three axes."""
    p = parameters.checked(p)
    inside = {int(start) + k: (int(start), k) for start in parameters.quaternions for k in range(4)}
    pairs = []
    for index, unit in enumerate(parameters.units):
        start, axis = inside.get(index, (index, -1))
        if axis == 3:
            continue
        pair = (p.copy(), p.copy())
        for moved, sign in zip(pair, (step, -step), strict=True):
            if axis < 0:
                moved[index] += sign * (size if unit == "m" else 1.0)
            else:
                four = slice(start, start + 4)
                turn = quaternions_from_vectors(sign * np.eye(3)[axis])
                moved[four] = quaternion_product(unit_quaternions(moved[four]), turn)
        pairs.append(pair)
    return pairs


def _moving_mass(count: int, free: np.ndarray | None, vertex_mass: np.ndarray | None) -> np.ndarray:
    """(count,) mass of each vertex that moves, zero at the others."""
    mass = np.ones(count) if vertex_mass is None else np.asarray(vertex_mass, dtype=np.float64)
    mask = np.ones(count, np.bool_) if free is None else np.asarray(free)
    if mass.shape != (count,) or mask.shape != (count,) or mask.dtype != bool:
        raise InputError(f"mass {mass.shape} and mask of free vertices {mask.shape} must be ({count},)")
    moving = np.where(mask, mass, 0.0)
    if not moving.sum() > 0.0:
        raise InputError("nothing moves: no vertex is free and has mass")
    return moving


def _subtrees(parents: np.ndarray, bones: int) -> np.ndarray:
    """(B, B) bool: row j has the bones of joint j's subtree, itself included."""
    if parents.shape != (bones,):
        raise InputError(f"{bones} bones need as many parents, not {parents.shape}")
    inside = np.zeros((bones, bones), np.bool_)
    for bone in range(bones):
        above, steps = bone, 0
        while above >= 0:
            if above >= bones or steps > bones:
                raise InputError("bones whose parents run in a circle or do not exist", [bone])
            inside[above, bone] = True
            above, steps = int(parents[above]), steps + 1
    return inside


def _uniform_fields(count: int) -> np.ndarray:
    """(n, 3, 3) one acceleration for all, along each axis."""
    return np.broadcast_to(np.eye(3), (count, 3, 3))


def _turning_fields(arms: np.ndarray) -> np.ndarray:
    """(n, 3, 9) of arms d (n, 3): e_k × d (3), then ω × (ω × d) by ω's products 00, 11, 22, 01, 02, 12 (6)."""
    fields = np.zeros((len(arms), 3, 9))
    fields[:, :, :3] = -skew(arms)  # column k of −S(d) is −d × e_k
    for a in range(3):
        fields[:, :, 3 + a] = -arms
        fields[:, a, 3 + a] = 0.0
    for place, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        fields[:, a, 6 + place] = arms[:, b]
        fields[:, b, 6 + place] = arms[:, a]
    return fields


def _sized(fields: np.ndarray, moving: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Each field (n, 3, L) scaled to `sizes` (L,) g RMS over the mass it moves; those that move nothing go."""
    squares = np.einsum("nik,nik->nk", fields, fields)
    squares = np.where(moving[:, None] > 0.0, squares, 0.0)
    largest = squares.max(axis=0)
    moved = moving @ (squares > SWAYS**2 * largest)
    mean = (moving @ squares) / np.where(moved > 0.0, moved, 1.0)
    kept = mean > 0.0
    return np.ascontiguousarray(fields[:, :, kept] * (GRAVITY * sizes[kept] / np.sqrt(mean[kept])))


def load_samples(
    body: FullBody,
    loads: np.ndarray,
    *,
    krylov: int = 3,
    derivatives: int = 24,
    null_space: csr_array | None = None,
    metric: np.ndarray | None = None,
    amplitude: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Load modes and the derivatives of the leading ones: {σ_iφ_i, ½σ_iσ_j (2 if i≠j) Ψ_ij}.

    `loads` (n, 3, L): acceleration fields, m/s². X₀ = K⁻¹M L and X_{k+1} = λ₁K⁻¹M X_k, k < `krylov`, are what
    slow and less slow motions of those loads do (a Krylov space, hence also the modes they excite); their mass-PCA
    gives φ_i and σ_i; KΨ_ij = −(H:φ_i)φ_j (StVK05 Eq. 14) of the first `derivatives` says how each bends on.
    λ₁ is the lowest eigenvalue that the loads excite.

    σ is calibrated to visible displacement: all σ_i together are scaled such that the leading shape moves some
    vertex by `amplitude` metres (default: `AMPLITUDE` of the body's diagonal). σ_iφ_i is in metres and Ψ_ij in 1/kg per
    metre, so the calibration sets how much derivatives count against modes, whatever the stiffness.

    `null_space` Z of contacts: every answer keeps C u = 0 (PSSD Eq. 28). `metric` (n,) multiplies the vertex
    mass in the PCA only (`bone_mass_metric`). `progress(done, total)` counts block solves.
    """
    if krylov < 0 or derivatives < 0:
        raise InputError(f"krylov and derivatives are counts, got {krylov} and {derivatives}")
    if loads.ndim != 3 or loads.shape[2] < 1:
        raise InputError(f"at least one load (n, 3, L), got {loads.shape}")
    solve = constrained_solve(body, null_space)
    total = krylov + 2
    answers = [solve(acceleration_forces(body, loads))]
    for done in range(krylov):
        _report(progress, done + 1, total)
        answers.append(solve(body.mass @ answers[-1]))
    sized = _principal(_scaled_blocks(body, answers), metric_mass(body, metric))
    sized *= _calibration(body, sized[:, 0], amplitude)
    _report(progress, total - 1, total)
    bent = _bending(body, sized[:, :derivatives], solve)
    _report(progress, total, total)
    return samples_of(body, np.concatenate([sized, bent], axis=1))


def _report(progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if progress:
        progress(done, total)


def _scaled_blocks(body: FullBody, answers: list[np.ndarray]) -> np.ndarray:
    """[X₀, λ₁X₁, λ₁²X₂ …] side by side, with λ₁ from the last block by Rayleigh and Ritz.

    The last block is that of inverse iteration, in which the lowest mode that the loads excite has outgrown the rest.
    """
    lowest = _lowest_ritz_value(body, answers[-1])
    return np.concatenate([block * lowest**k for k, block in enumerate(answers)], axis=1)


def _lowest_ritz_value(body: FullBody, fields: np.ndarray) -> float:
    fields = fields / np.maximum(np.linalg.norm(fields, axis=0), np.finfo(np.float64).tiny)
    shapes = _principal(fields, body.mass, 1e-4)
    stiffness, mass = (shapes.T @ (matrix @ shapes) for matrix in (body.rest_stiffness, body.mass))
    return float(eigh(stiffness, mass, eigvals_only=True, subset_by_index=(0, 0))[0])


def _principal(fields: np.ndarray, mass: csr_array, least: float = SIGNIFICANT) -> np.ndarray:
    """σ_iφ_i, metres: the mass-PCA of `fields` (3·free, m), without those under `least` of the first.

    With the Gram matrix FᵀMF = VΣ²Vᵀ they are F V: unlike φ_i they need not be made orthonormal again.
    """
    require_finite(fields.T, "samples")
    values, vectors = np.linalg.eigh(fields.T @ (mass @ fields))
    if not values[-1] > 0.0:
        raise InputError("the loads do not move the body")
    kept = np.flatnonzero(values > least**2 * values[-1])[::-1]
    return fields @ vectors[:, kept]


def _calibration(body: FullBody, leading: np.ndarray, amplitude: float | None) -> float:
    """What to multiply σ with so that the leading shape's largest displacement is `amplitude` metres."""
    if amplitude is None:
        amplitude = flesh_amplitude(body)
    if amplitude <= 0.0:
        raise InputError(f"the amplitude is a length in metres, got {amplitude}")
    return amplitude / float(np.linalg.norm(leading.reshape(-1, 3), axis=1).max())


def _bending(body: FullBody, sized: np.ndarray, solve: Solve) -> np.ndarray:
    """(3·free, d(d+1)/2) ½σ_iσ_j(2 if i≠j)Ψ_ij, metres, of the d shapes σ_iφ_i: Ψ is bilinear in them."""
    if sized.shape[1] == 0:
        return np.zeros((len(sized), 0))
    leading = LinearModes(np.ones(sized.shape[1]), np.ascontiguousarray(sized), None)
    derivatives = constrained_derivatives(body, leading, solve=solve)
    i, j = derivatives.pairs.T
    return derivatives.shapes * np.where(i == j, 0.5, 1.0)


def samples_of(body: FullBody, fields: np.ndarray) -> Samples:
    """Given fields (3·free, k), metres, as samples."""
    return Samples(fields, np.sqrt(np.einsum("ik,ik->k", fields, body.mass @ fields)))


def paper_samples(
    body: FullBody,
    modes: int,
    *,
    derivatives: int | None = None,
    null_space: csr_array | None = None,
    amplitude: float | None = None,
) -> Samples:
    """The papers' recipe: `modes` linear modes and their derivatives (PSSD Eqs. 10, 26–28), at a physical size.

    `derivatives`: those of so many leading modes, default all. `amplitude` as in
    `bases.derivatives.derivative_samples`: metres, default a quarter of the diagonal; 0 is the printed scaling.
    """
    linear = constrained_modes(body, modes, null_space)
    bent = constrained_derivatives(body, linear.leading(derivatives), null_space)
    return samples_of(body, derivative_samples(body, linear, bent, amplitude=amplitude))


def paper_recipe(body: FullBody, size: int, *, null_space: csr_array | None = None) -> Samples:
    """What the paper's recipe makes a global basis of `size` columns of: as many linear modes, derivatives of the first
    ones, for a motion of flesh. PSSD does not say how many modes it takes nor how large: with 30 and 60 linear modes
    instead of 19 a gorilla's basis of 100 erred by 44 and 30 %, not 53."""
    return paper_samples(
        body,
        size,
        derivatives=paper_mode_count(size),
        null_space=null_space,
        amplitude=flesh_amplitude(body),
    )


def flesh_amplitude(body: FullBody) -> float:
    """Metres: how far soft flesh is expected to move at most."""
    return AMPLITUDE * float(np.linalg.norm(np.ptp(body.mesh.vertices, axis=0)))


def paper_mode_count(size: int) -> int:
    """As many linear modes as, with their derivatives, fill a basis of `size` about twice."""
    return next(k for k in range(1, size + 3) if k + k * (k + 1) // 2 >= 2 * size)


def sample_basis(body: FullBody, samples: Samples, size: int, *, metric: np.ndarray | None = None) -> Basis:
    """A mass-orthonormal basis (3·free, size): the mass-PCA of the samples, with `metric` (n,) times the mass."""
    if size > body.size:
        raise ModeCountError(f"{size} modes asked of a body that has {body.size}")
    shapes, singular = mass_pca(samples.fields, metric_mass(body, metric), size)
    return Basis(mass_orthonormal(shapes, body.mass), singular)


def metric_mass(body: FullBody, metric: np.ndarray | None) -> csr_array:
    """The mass matrix, or D^½ M D^½ with `metric` D (n,) a vertex: what the PCA measures with."""
    if metric is None:
        return body.mass
    metric = np.asarray(metric, dtype=np.float64)
    if metric.shape != body.fixed.shape:
        raise InputError(f"a metric of shape {metric.shape} for {len(body.fixed)} vertices")
    if not (np.isfinite(metric) & (metric > 0.0)).all():
        raise InputError("a metric must be positive", np.flatnonzero(~(metric > 0.0)))
    root = diags_array(np.repeat(np.sqrt(metric[body.free]), 3))
    return csr_array(root @ body.mass @ root)


def bone_mass_metric(tet_weights: csr_array, vertex_mass: np.ndarray, *, lightest: float = LIGHTEST_BONE) -> np.ndarray:
    """(n,) the mean mass of a bone over the mass of the bones that carry a vertex: each bone counts alike in a PCA.

    Without it a light limb is ignored. `tet_weights` (n, B) rows sum to one; `vertex_mass` (n,) kilogram. Bones
    lighter than `lightest` times the mean count as that heavy.
    """
    masses = np.asarray(tet_weights.T @ vertex_mass).ravel()
    carrying = masses > 0.0
    if not carrying.any():
        raise InputError("no bone carries any mass")
    mean = float(masses[carrying].mean())
    return np.asarray(tet_weights @ np.where(carrying, mean / np.maximum(masses, lightest * mean), 1.0)).ravel()
