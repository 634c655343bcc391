"""What the rest of the body does beside the modes: which shapes follow them, and how, at any pose.

K⁺ (`pipeline.yielding`) lets the rest of the body yield beside the modes, and V x alone does not show it. What is
likely beside x? Whatever happens to flesh it is mostly held against accelerations: those that the rig can cause, L, and
its own, V; and it does again what it did in rehearsals, Z. Let u be random, of covariance

    Σ = K⁻¹M (LLᵀ + b² VVᵀ) MK⁻¹ + c² ZZᵀ.

Then what is to be expected of it where its modes are seen to be x, M̂x = VᵀMu, is

    W x,   W = ΣMV (VᵀMΣMV)⁻¹ M̂.

W − V, seen from the vertices, is what follows; of a gorilla's unseen walk and jump 9.4 and 10.6 % are beside 100 modes,
and 5.2 and 6.6 % beside W of the loads, known exactly. (Were every force as likely as its energy is small, Σ = K⁻¹, W
would be the shapes of least energy, `yielding_shapes`: 7.2 and 8.1 %. Forces on flesh are not like that.)

It is not linear: flesh that turns on arcs is held otherwise than flesh that hardly moves. So W − V counts as much, φ,
as brings it nearest to where the full body came to rest under violent loads (`pipeline.remainder`): 1 in a gorilla, 0.6
in an arm, less than 0.1 in a letter X that bends by 90°. The shapes Φ are the principal ones of W − V over the poses,
local to the regions. At every sample pose of the stiffness map, Φy is made as near to (W − V) x as it can be, and y is
regressed on what the map has learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bases.localised import leading_fields, regional_basis
from softrig.errors import InputError, ModeCountError
from softrig.models.followers import Followers, in_steps
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.cache import Arrays
from softrig.pipeline.yielding import LIVED, OWN

FOLLOWERS = 2.0
"""For each mode. With 0.5, 1, 1.5 and 2 a gorilla's unseen walk is off by 9.1, 8.5, 8.1 and 7.9 %, its jump by 11.6,
11.2, 11.1 and 11.0."""
LOADS = 64
"""The principal ones of those that the rig can cause at the poses, and of what was rehearsed."""
SEEN, SEEN_TOGETHER = 32, 8
"""Sample poses from which the shapes are taken, and how many a worker does at a time."""
FIELDS = 60
"""Directions of x at each."""
TOGETHER = 4
"""For each mode, so many of these from several poses: large bodies would need gigabytes for all of them."""
LEFT, RIGHT, MIXTURES = 1.0, 0.35, 40
"""Of Y's changes by the pose only so much is kept: directions of y and of x, for each mode, and matrices. All of it
would take six times the room, for 0.1 points."""
RIDGE = 1e-2
"""Of the regression, of the largest variance of a component's weight. From 1e-6 to 0.03 it does not matter."""
NOTHING = 1e-8
"""Of the largest eigenvalue: directions below are none."""
WORTH = 0.01
"""What follows must be this much, RMS, of what it follows."""
FOLLOWING = [
    FOLLOWERS,
    LOADS,
    OWN,
    LIVED,
    SEEN,
    SEEN_TOGETHER,
    FIELDS,
    TOGETHER,
    LEFT,
    RIGHT,
    MIXTURES,
    RIDGE,
    NOTHING,
    WORTH,
]
"""All that it depends on beside its arguments."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Shapes that may follow, and loads that move them; sent to workers."""

    shapes: np.ndarray
    """(n, 3, s) Φ, seen from the vertices."""
    regions: np.ndarray
    """(s,) int32, rising."""
    loads: np.ndarray
    """(n, 3, l) L, m/s², seen from the vertices."""
    lived: np.ndarray
    """(n, 3, k) Z, the same of what was rehearsed."""
    gram: np.ndarray
    """(s, s) ΦᵀMΦ."""
    nearest: np.ndarray
    """(s, 3n) (ΦᵀMΦ)⁻¹ΦᵀM: times a field, the followers nearest to it by mass."""


def loads_seen(model: PoseSpaceModel, loads: tuple[np.ndarray, ...]) -> np.ndarray:
    """(n, 3, ≤ LOADS) the principal loads of all poses, m/s², seen from the vertices; `loads` (n, 3, L) of each."""
    turned = [
        np.einsum("nji,njk->nik", model.vertex_rotations(p), own, optimize=True)
        for p, own in zip(model.poses.parameters, loads, strict=True)
    ]
    return leading_fields(np.concatenate(turned, axis=2), model.vertex_mass, LOADS)


def lived_seen(model: PoseSpaceModel, lived: tuple[np.ndarray, ...]) -> np.ndarray:
    """(n, 3, ≤ LOADS) the principal shapes of what was rehearsed, `lived` (n, 3, k) in each part."""
    nothing = np.zeros((*model.vertices.shape, 0))
    return leading_fields(np.concatenate([nothing, *lived], axis=2), model.vertex_mass, LOADS)


def principal_shapes(beside: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """(n, 3, ≤ FIELDS) of `beside`, W − V (n, 3, r), as large as x of that `variance` (r, r) makes them."""
    return np.asarray(beside @ _root(variance)[0][-FIELDS:].T)


def most_of(fields: list[np.ndarray], model: PoseSpaceModel) -> np.ndarray:
    """(n, 3, ≤ TOGETHER r) the principal shapes of all `fields` (n, 3, k)."""
    return leading_fields(np.concatenate(fields, axis=2), model.vertex_mass, TOGETHER * model.mode_count)


def candidates(
    model: PoseSpaceModel, fields: list[np.ndarray], partition: np.ndarray, loads: np.ndarray, lived: np.ndarray
) -> Candidates | None:
    """Followers from what is `beside` the modes at some poses, local to the regions of `partition` (n, g)."""
    stack, mass, regions = np.concatenate(fields, axis=2), model.vertex_mass, partition.shape[1]
    moving = 3 * int((~model.fixed).sum()) - model.mode_count
    count = min(round(FOLLOWERS * model.mode_count), moving // 2)
    while count >= regions:
        try:
            found = regional_basis([stack], partition, mass, count, minimum=1)
        except ModeCountError as short:
            if short.most is None or short.most >= count:
                return None
            count = short.most
        except InputError:  # a region beside whose modes nothing is
            return None
        else:
            flat = found.shapes[0].reshape(-1, count)
            heavy = np.repeat(mass, 3)[:, None] * flat
            gram = flat.T @ heavy
            inverse = _root(gram)[1]
            nearest = inverse.T @ (inverse @ heavy.T)
            return Candidates(found.shapes[0], found.region_of_mode, loads, lived, gram, nearest)
    return None


def fitted_followers(
    model: PoseSpaceModel,
    known: Candidates,
    matrices: np.ndarray,
    covariances: np.ndarray,
    weights: np.ndarray,
    rests: tuple[np.ndarray, ...],
) -> Arrays | None:
    """The fields of `Followers`, from Y (t, s, r) and the covariances of x (t, r, r) at sample poses, whose learned
    components have `weights` c (t, k). None where nothing worth it follows.

    `rests` (n, 3, k): where the full body came to rest at each of the model's poses, which are the first samples, seen
    from the vertices.
    """
    out, back_out = _root(known.gram)
    spread, back_in = _root(covariances.mean(axis=0))
    # ‖Φ Y x‖ over likely x is the Frobenius norm of these.
    seen = out @ matrices @ spread.T
    if not np.sum(seen**2) > WORTH**2 * len(seen) * np.sum(spread**2):
        return None
    middle, centre = seen.mean(axis=0), weights.mean(axis=0)
    off = weights - centre
    ridge = RIDGE * len(off) * float(np.mean(off**2, axis=0).max(initial=0.0))
    solved = np.linalg.solve(off.T @ off + max(ridge, 1e-300) * np.eye(off.shape[1]), off.T)
    slopes = np.tensordot(solved, seen - middle, axes=1)
    fitted = np.tensordot(off, slopes, axes=1)
    modes = model.mode_count
    left = _principal(np.einsum("tab,tcb->ac", fitted, fitted, optimize=True), round(LEFT * modes))
    right = _principal(np.einsum("tab,tac->bc", fitted, fitted, optimize=True), round(RIGHT * modes))
    small = left.T @ slopes @ right
    entries = left.shape[1] * right.shape[1]
    reached = np.tensordot(off, small, axes=1).reshape(len(off), entries)
    values, vectors = np.linalg.eigh(reached @ reached.T)
    # Where the pose changes nothing one mixture, of nothing, stays.
    kept = np.flatnonzero(values >= NOTHING * values[-1])[::-1][:MIXTURES]
    flat = (vectors[:, kept].T @ reached) / np.sqrt(np.maximum(values[kept], 1e-300))[:, None]
    mixing = flat @ small.reshape(len(small), entries).T
    core = flat.reshape(len(flat), left.shape[1], right.shape[1])
    mean = middle - left @ np.tensordot(mixing @ centre, core, axes=1) @ right.T
    rows, steps = in_steps(known.shapes)
    found = Followers(
        rows, steps, known.regions, back_out.T @ mean @ back_in, back_out.T @ left, core, right.T @ back_in, mixing
    )
    share = following_share(model, found, weights, rests)
    arrays = {"rows": rows, "steps": steps, "regions": known.regions, "core": core, "right": found.right}
    arrays |= {"mixing": mixing, "mean": share * found.mean, "left": share * found.left}
    names = ("mean", "left", "core", "right", "mixing")
    arrays |= {name: arrays[name].astype(np.float32) for name in names}
    return arrays | {"share": np.array(share)} if share > 0.0 else None


def following_share(
    model: PoseSpaceModel, followers: Followers, weights: np.ndarray, rests: tuple[np.ndarray, ...]
) -> float:
    """φ, from 0 to 1: how much of the followers brings them nearest to bodies at rest in `rests`; 1 where none are."""
    shapes, mass = model.shapes[0], model.vertex_mass[:, None, None]
    heavy, followed = shapes * mass, followers.shapes
    modes = np.einsum("nia,nib->ab", heavy, shapes, optimize=True)
    along = across = 0.0
    for c, u in zip(weights, rests, strict=False):
        x = np.linalg.solve(modes, np.einsum("nia,nik->ak", heavy, u, optimize=True))
        rest, told = u - shapes @ x, followed @ (followers.matrix(c) @ x)
        size = np.maximum(np.sum(mass * u**2, axis=(0, 1)), 1e-300)
        along += float(np.sum(np.sum(mass * rest * told, axis=(0, 1)) / size))
        across += float(np.sum(np.sum(mass * told**2, axis=(0, 1)) / size))
    return min(max(along / across, 0.0), 1.0) if across > 0.0 else 1.0


def _root(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N (k, s) with NᵀN the semidefinite `matrix` (s, s), and its pseudo-inverse transposed (k, s)."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = values > NOTHING * values[-1]
    sizes, directions = np.sqrt(values[kept])[:, None], vectors[:, kept].T
    return sizes * directions, directions / sizes


def _principal(matrix: np.ndarray, count: int) -> np.ndarray:
    """(n, ≤ count) the eigenvectors of the largest eigenvalues."""
    return np.linalg.eigh(matrix)[1][:, ::-1][:, : max(count, 1)]
