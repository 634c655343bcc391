"""Pose-space cubature (PSSD §5.3): a few tets with weights that stand for all of them, at every pose.

f̃(q) = Σ_{e∈C} ξ_e f̃_e(q) (Eq. 21). One set C for all poses (Eq. 17), weights per pose (Eq. 19), chosen so that the sum
is right for sample deformations. Ours trains on the remainder f − K₀u and adds ΔK u
(`PoseElasticity.stiffness_correction`), so the linear part is exact at the poses whatever the tets; `recipe="paper"`
trains on plain forces, without correction.

What a sample is divided by (Eq. 18): with the correction, the error of the force is the error of the remainder, so
the remainder is measured against the whole force ‖f‖. Dividing by the remainder's own norm would spend tets on small
samples, where the linear part is right already.

Between poses the remainder stays as good as at them; what goes wrong is the linear part, because stiffness is not
linear in the pose weights. `models.stiffness_map` takes its place there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from softrig.errors import InputError, SolverError
from softrig.forces.elements import add_sketched_columns
from softrig.forces.projection import BLOCK, PoseElasticity
from softrig.forces.samples import Samples, sample_poses
from softrig.numerics.sparse_selection import nonnegative_weights, sparse_selection

Progress = Callable[[int, int], None] | None

RECIPES = ("ours", "paper")
SKETCH_ROWS = 8
"""Rows of the sketch for each tet to choose."""
TETS_PER_MODE = 1.5
SHORTEST = 0.01
"""Tets whose column is shorter than this times the RMS length are left out: a huge weight on a tet that hardly deforms
(between fixed vertices, say) would bring in a stiffness that only cancels at the poses themselves."""


@dataclass(frozen=True)
class CubatureErrors:
    """How far a cubature is from the exact reduced forces at one pose, on samples it has not seen.

    Errors are root mean squares over samples of ‖f̃_cubature − f̃‖ / ‖f̃‖; nan where there was no such sample.
    """

    gaussian: float
    loads: float
    worst: float
    """The largest of any one sample."""
    stiffness_range: tuple[float, float]
    """Least and largest eigenvalue of (K̃_cubature + ΔK, K̃_exact) at u = 0: one is right."""


@dataclass(frozen=True, eq=False)
class CubatureReport:
    """The cubature and how good it is."""

    tets: np.ndarray
    """(c,) int32, rising."""
    weights: np.ndarray
    """(m, c) ξ ≥ 0."""
    stiffness_correction: np.ndarray
    """(m, r, r) ΔK; zeros where the recipe has none."""
    recipe: str
    method: str
    training_error: np.ndarray
    """(m,) on the samples the weights were fitted to: optimistic."""
    errors: tuple[CubatureErrors, ...]
    """(m) on unseen samples at the poses."""


def train_cubature(
    poses: Sequence[PoseElasticity],
    vertex_mass: np.ndarray,
    loads: Sequence[np.ndarray] | None,
    size: float,
    *,
    count: int | None = None,
    samples: int = 50,
    unseen: int = 20,
    recipe: str = "ours",
    method: str | None = None,
    correction: bool | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> CubatureReport:
    """Choose `count` tets (default 1.5 r) for the bodies `poses`, which share tets and modes, and weigh them per pose.

    `vertex_mass` (n,) kilogram; `loads`, per pose, (n, 3, k) accelerations that the rig can cause (in any units: each
    is brought to 1 m/s² where it acts), None: Gaussian samples only; `size` of the character, metres. `samples` and
    `unseen` count samples a pose; unseen ones are half load-driven under every recipe. `method` of `sparse_selection`
    and `correction` overrule the recipe. `progress(done, total)` counts stages.
    """
    plan = _Plan.of(recipe, method, correction)
    _check(poses, vertex_mass, loads)
    count = round(TETS_PER_MODE * poses[0].modes) if count is None else count
    count = min(count, len(poses[0].tets))
    steps = _Steps(progress, 2 * len(poses) + 1)
    trained = sample_poses(poses, vertex_mass, loads if plan.load_driven else None, size, samples, seed)
    columns, target = _sketch(poses, trained, plan.correction, SKETCH_ROWS * count, seed, steps)
    squares = np.einsum("es,es->e", columns, columns)
    candidates = np.flatnonzero(squares > SHORTEST**2 * squares.mean())
    selection = sparse_selection(columns[candidates].T, target, count, method=plan.method, seed=seed)
    del columns
    if not selection.support.size:
        raise SolverError("no tet lessens the error of the reduced force: are the loads and modes zero?")
    steps.done()
    tets, weights, training = _pose_weights(poses, trained, candidates[selection.support], plan.correction)
    corrections = np.zeros((len(poses), poses[0].modes, poses[0].modes))
    if plan.correction:
        corrections = np.stack([p.stiffness_correction(tets, w) for p, w in zip(poses, weights, strict=True)])
    errors = []
    fresh = sample_poses(poses, vertex_mass, loads, size, unseen, seed + 1)
    for pose, pose_weights, delta, new in zip(poses, weights, corrections, fresh, strict=True):
        errors.append(cubature_errors(pose, tets, pose_weights, delta, new))
        steps.done()
    return CubatureReport(
        tets.astype(np.int32), weights, corrections, recipe, plan.method, training, tuple(errors)
    )  # fmt: skip


def cubature_errors(
    pose: PoseElasticity,
    tets: np.ndarray,
    weights: np.ndarray,
    correction: np.ndarray,
    samples: Samples,
    *,
    linear: np.ndarray | None = None,
    beyond: float = 1.0,
) -> CubatureErrors:
    """Errors of tets (c,) with `weights` (c,) and ΔK (r, r), all rows, at any pose: between poses with mixed ones.

    Against the force K q + `beyond` times what goes beyond it, K being `linear` (r, r) or the pose's own.
    """
    linear = pose.rest_stiffness if linear is None else linear
    exact = linear @ samples.q + beyond * pose.force(samples.q, remainder=True)
    found = pose.cubature_force(samples.q, tets, weights) + correction @ samples.q
    relative = np.linalg.norm(found - exact, axis=0) / np.linalg.norm(exact, axis=0)
    stiffness = pose.cubature_stiffness(np.zeros(pose.modes), tets, weights) + correction
    values = eigh(stiffness, linear, eigvals_only=True)
    return CubatureErrors(
        _root_mean_square(relative[~samples.load_driven]),
        _root_mean_square(relative[samples.load_driven]),
        float(relative.max(initial=0.0)),
        (float(values[0]), float(values[-1])),
    )


@dataclass(frozen=True)
class _Plan:
    correction: bool
    load_driven: bool
    method: str

    @classmethod
    def of(cls, recipe: str, method: str | None, correction: bool | None) -> _Plan:
        if recipe not in RECIPES:
            raise InputError(f"no cubature recipe called {recipe!r}; there are {', '.join(RECIPES)}")
        ours = recipe == "ours"
        corrected = ours if correction is None else correction
        return cls(corrected, ours, method or ("nnls" if ours else "htp"))


class _Steps:
    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._count = progress, total, 0

    def done(self) -> None:
        self._count += 1
        if self._progress:
            self._progress(self._count, self._total)


def _check(poses: Sequence[PoseElasticity], vertex_mass: np.ndarray, loads: Sequence[np.ndarray] | None) -> None:
    if not poses:
        raise InputError("cubature needs at least one pose")
    first = poses[0]
    others = [
        i for i, p in enumerate(poses) if p.shapes.shape != first.shapes.shape or not (p.tets == first.tets).all()
    ]
    if others:
        raise InputError("poses with other tets or another count of modes than the first", others)
    count = len(first.positions)
    if np.shape(vertex_mass) != (count,):
        raise InputError(f"{count} vertices need as many masses, not {np.shape(vertex_mass)}")
    if loads is not None:
        wrong = [i for i, load in enumerate(loads) if load.ndim != 3 or load.shape[:2] != (count, 3)]
        if len(loads) != len(poses) or wrong:
            raise InputError(f"loads must be ({count}, 3, k) for each of {len(poses)} poses", wrong)


def _sketch(
    poses: Sequence[PoseElasticity], samples: Sequence[Samples], remainder: bool, rows: int, seed: int, steps: _Steps
) -> tuple[np.ndarray, np.ndarray]:
    """(e, s) sketched columns of Eq. 17, a tet a row, and their sum, the target (s,).

    16k tets, 4 poses, 50 samples and 100 modes would be 2.6 gigabytes; the sketch is 150 megabytes.
    """
    full = sum(sample.q.size for sample in samples)
    rows = min(rows, full)
    random = np.random.default_rng([seed, 7])
    columns = np.zeros((len(poses[0].tets), rows))
    places = np.arange(full) if rows == full else random.permutation(full) % rows
    first = 0
    for pose, sample in zip(poses, samples, strict=True):
        shape = (sample.q.shape[1], pose.modes)
        buckets = places[first : first + shape[0] * shape[1]].reshape(shape)
        first += shape[0] * shape[1]
        signs = random.choice([-1.0, 1.0], shape)
        u, lengths = pose.displacements(sample.q), np.linalg.norm(pose.force(sample.q), axis=0)
        for start in range(0, len(columns), BLOCK):
            some = slice(start, start + BLOCK)
            forces = pose.edge_forces(u, some, remainder=remainder) / lengths
            add_sketched_columns(forces, pose.edge_rows(some), buckets, signs, columns[some])
        steps.done()
    return columns, columns.sum(axis=0)


def _pose_weights(
    poses: Sequence[PoseElasticity], samples: Sequence[Samples], tets: np.ndarray, remainder: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tets that weigh something at any pose, weights (m, c) by Eq. 19 on full rows, and training errors (m,)."""
    weights, errors = np.zeros((len(poses), len(tets))), np.zeros(len(poses))
    for i, (pose, sample) in enumerate(zip(poses, samples, strict=True)):
        exact = pose.force(sample.q)
        lengths = np.linalg.norm(exact, axis=0)
        target = (pose.force(sample.q, remainder=True) if remainder else exact) / lengths
        columns = pose.element_forces(sample.q, tets, remainder=remainder) / lengths
        weights[i], _ = nonnegative_weights(columns.reshape(len(tets), -1).T, target.ravel())
        misses = np.einsum("e,erk->rk", weights[i], columns) - target
        errors[i] = _root_mean_square(np.linalg.norm(misses, axis=0))
    used = weights.any(axis=0)
    return tets[used], np.ascontiguousarray(weights[:, used]), errors


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")
