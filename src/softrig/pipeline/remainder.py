"""How much of what goes beyond the linear part counts where the rest of the body yields: γ of `pipeline.yielding`.

A body that can do nothing but its modes is too stiff beyond its linear part as well: flesh that turns moves on arcs,
and where the modes have no shape for that it seems to be stretched. Modes that can do nearly everything by themselves,
on the other hand, need all of the remainder, or what turns is pulled back by a linear part that nothing cancels.

So it is tried. At every pose the full body is loaded by what the rig can cause until it is at rest, and so are the
modes alone, with each γ, their stiffness K⁺ raised to γ VᵀKV (not held by contacts: the full body is
not either). The γ that counts is the one with which they come nearest to where the full body went, under loads like
those of violent moments and under milder ones: most of a motion is milder than that.

At their own poses modes may do nearly everything that they cannot do elsewhere. So where most of the remainder seems to
count, other poses decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from softrig.bases.compliance import acceleration_forces
from softrig.dynamics import static_equilibrium
from softrig.errors import AnchorError, SolverError
from softrig.forces.samples import random_mixtures
from softrig.models.full import FullBody
from softrig.models.pose_space import REST_CLAMP, PoseSpaceModel
from softrig.pipeline.cache import Arrays, StageCache, content_hash
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.parallel import Progress, cached_each
from softrig.pipeline.pose_samples import SAME, MapSamples
from softrig.pipeline.posing import Posing
from softrig.pipeline.shapes import posed_body, rig_causes
from softrig.pipeline.yielding import raised, yielding_shapes, yielding_stiffness
from softrig.poses.selection import farthest_points

SHARES = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""What γ may be. At rest under violent loads alone an arm of 1,500 tets and 100 modes is 17, 14 and 5 % off at 0.2, 0.6
and 0.8; on a wave that it did not see 16, 14 and 7. A gorilla of 5,300 tets and 100 modes is 14, 16 and 22 % off at
rest at 0.2, 0.4 and 0.8; on a jump, with its stiffness known, 14, 15 and, at 1, 27. A letter X, whose K⁺ is far below
VᵀKV and has to be raised, is 5.1, 6.3 and 8.4 % off at 0.003, 0.01 and 0.03 on a bow that it did not see."""
DOUBTED = 0.5
"""Shares above this are measured elsewhere. An X of 100 modes is nearest with 1 at its own poses, with 0.01 at others;
on a bow that it did not see it is 32 and 5 % off. An arm of 200 modes is nearest with 0.8 at both."""
ELSEWHERE = 8
"""Poses that are asked then, at most."""
ALIKE = 1.1
"""Of shares whose errors are within this factor of the least, the smallest: a stiffness that has to be raised to more
of VᵀKV depends on the pose less smoothly, and its map errs more. Which of two small ones is better in motion is nearly
chance, and no measure at rest was found that tells: with 0.003, 0.01, 0.03 and 0.1 a gorilla's unseen beat is 11.8,
11.1, 10.1 and 13.0 % off, an arm's bend 9.3, 10.3, 13.0 and 9.6, at rest both least with 0.1. (An X, whose errors at
rest are alike as well up to 0.03, does tell them apart in motion: see `LITTLE`.)"""
LITTLE = 0.03
"""Of shares up to this the nearest counts, not the smallest: they hardly raise the stiffness, and the less counts, the
more flesh grows that turns far. A bear, nearest with this, is 16 % off on a shake that it did not see, and 21 with
0.003. An X eight times as firm as another, nearest with 0.01, is 14, 8.3 and 8.0 % off with 0.03, 0.01 and 0.003, and
its volume by 0.5, 0.7 and 1.0 %."""
LOADS = 8
"""Over all poses of the model, at least two at each; as many at each other pose."""
MOVE = 0.0075
"""RMS displacement by the largest loads, of the body's size: violent moments."""
LEVELS = (1.0, 1.0 / 3.0, 1.0 / 9.0)
"""Of that: how large the loads are. Clips move flesh by 0.0003 to 0.004 of the size, an X by far more. An arm of 5,400
tets and 100 modes is nearest with 0.8, 0.6 and 0.2 at these; its bend, which it did not see, is 17 % off with the first
and 9 with 0.2 and 0.4. A gorilla gets 0.03 or 0.1, a bear 0.03, as from violent loads alone."""
ITERATIONS = 30
TOLERANCE = 1e-3
SHORTEST = 1e-3
"""Of a Newton step."""
FLOOR = 1e-2
"""Of the stiffness at rest, where that of the moment is not positive."""


@dataclass(frozen=True, eq=False)
class Remainder:
    """What was tried at the poses."""

    share: float
    """γ."""
    rests: tuple[np.ndarray, ...]
    """Of each pose (n, 3, k) metres, seen from the vertices: where the largest loads brought the full body to rest."""
    told: bool = True
    """Whether any load told the shares apart."""

    @property
    def is_whole(self) -> bool:
        """Whether modes that can do nothing but V x came nearest."""
        return self.told and self.share == SHARES[-1]


@dataclass(frozen=True, eq=False)
class _Task:
    """One pose; sent to a worker."""

    body: tuple[np.ndarray | str | float, ...]
    """For `posed_body`."""
    basis: np.ndarray
    """(n, 3, r) in the world."""
    loads: np.ndarray
    """(n, 3, k) m/s²."""
    size: float
    bind: bool
    """Whether loads on the rest move the modes, as in bind space."""


def measured_remainder(
    model: PoseSpaceModel,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    loads: tuple[np.ndarray, ...],
    samples: MapSamples,
    cache: StageCache,
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Remainder:
    """γ of a model with one basis for all poses; `loads` (n, 3, L) that the rig can cause at each, m/s².

    `samples`: poses, among others than the model's. Of the model nothing is used that has to do with forces.
    """
    poses = model.poses.parameters
    size = float(np.linalg.norm(np.ptp(flesh.mesh.vertices, axis=0)))
    count, bind = max(2, -(-LOADS // len(poses))), model.interpolation == "bind"

    def task(index: int, p: np.ndarray, posed: np.ndarray, weights: np.ndarray, loads: np.ndarray) -> _Task:
        random = np.random.default_rng([seed, 29, index])
        body = (
            flesh.mesh.vertices, posed, flesh.mesh.elements, flesh.fixed, fabric.law,
            weights @ fabric.young, weights @ fabric.poisson, fabric.density,
        )  # fmt: skip
        turned = np.einsum("nij,njk->nik", model.vertex_rotations(p), model.shapes[0], optimize=True)
        return _Task(body, turned, random_mixtures(loads, model.vertex_mass, count, random), size, bind)

    def measured(tasks: list[_Task], progress: Progress | None) -> list[Arrays]:
        settings = ["loads on yielding shapes, and rests", *SHARES, MOVE, *LEVELS, ITERATIONS, TOLERANCE, SHORTEST]
        keys = [content_hash(list(one.body), one.basis, one.loads, one.bind, settings, [FLOOR]) for one in tasks]
        return list(cached_each(cache, "remainder", keys, _errors, tasks, jobs, progress))

    each_alone = np.eye(len(poses))
    own = [task(i, p, posing.positions[i], each_alone[i], loads[i]) for i, p in enumerate(poses)]
    found = measured(own, progress)
    rests = []
    for p, arrays in zip(poses, found, strict=True):
        field = np.zeros((len(flesh.mesh.vertices), 3, arrays["rests"].shape[1]))
        field[~flesh.fixed] = arrays["rests"].reshape(len(arrays["rests"]) // 3, *field.shape[1:])
        rests.append(np.einsum("nji,njk->nik", model.vertex_rotations(p), field, optimize=True))
    errors = np.concatenate([arrays["errors"] for arrays in found], axis=1)
    if best_share(errors) > DOUBTED:
        # These alone: modes that err by a thousandth at their own poses would else outvote what they do elsewhere.
        others = [
            task(len(poses) + i, p, posed, model.positive_weights(p), rig_causes(posing, flesh, p, posed))
            for i, (p, posed) in enumerate(_elsewhere(model, samples))
        ]
        if others:
            errors = np.concatenate([arrays["errors"] for arrays in measured(others, None)], axis=1)
    return Remainder(best_share(errors), tuple(rests), bool(np.isfinite(errors).all(axis=2).any()))


def _elsewhere(model: PoseSpaceModel, samples: MapSamples) -> list[tuple[np.ndarray, np.ndarray]]:
    """Parameters (P,) and vertices (n, 3) of `ELSEWHERE` samples, as far from the model's poses and from each other as
    can be; none crushes a tet farther than the full simulation would let it (`REST_CLAMP`)."""
    own = len(model.poses)
    scaled = samples.features / np.repeat(samples.lengths, np.diff(samples.groups))
    held, left = scaled[:own], list(range(own, len(scaled)))
    found: list[tuple[np.ndarray, np.ndarray]] = []
    while left and len(found) < ELSEWHERE:
        farthest = farthest_points(scaled[left], held, 1, SAME)
        if not farthest:
            break
        index = left.pop(farthest[0])
        posed = model.tet_rest(samples.poses[index])
        if least_stretch(model.tets, model.vertices, posed) >= REST_CLAMP:
            found.append((samples.poses[index], posed))
            held = np.concatenate([held, scaled[index : index + 1]])
    return found


def least_stretch(tets: np.ndarray, rest: np.ndarray, posed: np.ndarray) -> float:
    """How far the most crushed of tets (t, 4) is stretched where it is least, from vertices (n, 3) at rest to posed
    ones; negative where one is inside out."""
    before, after = (np.swapaxes(places[tets[:, 1:]] - places[tets[:, :1]], 1, 2) for places in (rest, posed))
    gradients = after @ np.linalg.inv(before)
    return float((np.sign(np.linalg.det(gradients)) * np.linalg.svd(gradients, compute_uv=False)[:, -1]).min())


def best_share(errors: np.ndarray) -> float:
    """γ from squared errors (levels, k, len(SHARES)) of k loads, nan where one has none; all of the remainder where no
    load tells. Of a level counts how many times its least error a share has, and the mean over the levels decides: the
    smallest that is `ALIKE`, but the nearest where that is `LITTLE`."""
    told = [level[np.isfinite(level).all(axis=1)] for level in errors]
    roots = [np.sqrt(level.mean(axis=0)) for level in told if len(level)]
    if not roots:
        return SHARES[-1]
    # Nearer than rests are found to be at rest nothing is told apart.
    times = [np.maximum(root, TOLERANCE) / max(root.min(), TOLERANCE) for root in roots]
    mean = np.mean(times, axis=0)
    smallest, little = int(np.argmax(mean <= ALIKE * mean.min())), SHARES.index(LITTLE)
    return SHARES[int(mean[: little + 1].argmin()) if smallest < little else smallest]


def _errors(task: _Task) -> Arrays:
    body = posed_body(*task.body)  # type: ignore[arg-type]
    forces = acceleration_forces(body, task.loads)
    errors, rests = resting_errors(body, body.restrict(task.basis), forces, task.size, bind=task.bind)
    return {"errors": errors, "rests": rests}


def resting_errors(
    body: FullBody, basis: np.ndarray, loads: np.ndarray, size: float, *, bind: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """(len(LEVELS), k, len(SHARES)) ‖x − y‖² / ‖y‖², by mass, of modes at rest in x where the full body rests in y, nan
    where some found no rest, and (3·free, ≤ k) metres: that body, under the largest of the loads.

    `basis` V (3·free, r); `loads` (3·free, k) newton, of any size: each is scaled so that a body of that `size`, metre,
    would move by `MOVE` times each of `LEVELS` of it if it were linear.
    `bind`: loads act on the modes by their yielding shapes, as in bind space, or by the modes alone.
    """
    heavy = body.mass @ basis
    mass, given = basis.T @ heavy, basis.T @ (body.rest_stiffness @ basis)
    answers = np.asarray(body.solve(body.rest_stiffness, np.hstack([heavy, loads])))
    relaxed, straight = answers[:, : basis.shape[1]], answers[:, basis.shape[1] :]
    yielding = yielding_stiffness(mass, heavy.T @ relaxed)
    shapes = yielding_shapes(basis, heavy, relaxed) if bind else basis
    stiffness = [raised(yielding, given, share) for share in SHARES]
    sight, total = cho_factor(mass), float(body.vertex_mass.sum())
    found, rests = np.full((len(LEVELS), loads.shape[1], len(SHARES)), np.nan), []
    for index, (load, answer) in enumerate(zip(loads.T, straight.T, strict=True)):
        rms = float(np.sqrt(answer @ (body.mass @ answer) / total))
        if not rms > 0.0:
            continue
        for level, errors in zip(LEVELS, found[:, index], strict=True):
            force = (level * MOVE * size / rms) * load
            try:
                u = static_equilibrium(body, force, iterations=ITERATIONS, tolerance=TOLERANCE)
            except (AnchorError, SolverError):
                continue
            if level == LEVELS[0]:
                rests.append(u)
            y = cho_solve(sight, heavy.T @ u)
            length = float(y @ mass @ y)
            # Modes may turn a tet inside out that the body does not, and some laws have no force then.
            if not (length > 0.0 and np.isfinite(body.energy(basis @ y))):
                continue
            # A share that is hard to solve must not look good because it was left at the start: it stays nan.
            tangent = modes_stiffness(body, basis, y)
            for place, (linear, share) in enumerate(zip(stiffness, SHARES, strict=True)):
                x = modes_at_rest(body, basis, linear - share * given, share, shapes.T @ force, y, tangent)
                if x is None:
                    break
                errors[place] = (x - y) @ mass @ (x - y) / length
    return found, np.array(rests).reshape(-1, body.size).T


def modes_at_rest(
    body: FullBody,
    basis: np.ndarray,
    stiffness: np.ndarray,
    share: float,
    force: np.ndarray,
    start: np.ndarray,
    tangent: np.ndarray | None = None,
) -> np.ndarray | None:
    """(r,) x with S x + γ Vᵀf(V x) = `force` (r,): `stiffness` S (r, r), nowhere negative, and γ of the body.

    Newton from `start` (r,), where the body's VᵀKV is `tangent` if that is known, with a positive stiffness in place of
    one that is not, so that the potential falls in every step. None where it does not get there.
    """

    def potential(x: np.ndarray) -> float:
        return float(0.5 * x @ stiffness @ x + share * body.energy(basis @ x) - force @ x)

    x, value, factor, before = np.array(start), potential(start), None, np.inf
    for _ in range(ITERATIONS):
        residual = stiffness @ x + share * (basis.T @ body.force(basis @ x)) - force
        size = float(np.linalg.norm(residual))
        if size <= TOLERANCE * np.linalg.norm(force):
            return x
        # Shares differ by little: the stiffness at the start serves until it does not bring the half.
        if factor is None and tangent is not None:
            factor = _factor(stiffness + share * tangent)
        if factor is None or size > 0.5 * before:
            factor = _factor(stiffness + share * modes_stiffness(body, basis, x))
        if factor is None:
            factor = cho_factor(stiffness + share * modes_stiffness(body, basis, x, positive=True))
        before = size
        step = -cho_solve(factor, residual)
        length, lower = 1.0, potential(x + step)
        while not lower < value and length > SHORTEST:
            length *= 0.5
            lower = potential(x + length * step)
        if not lower < value:
            return None
        x, value = x + length * step, lower
    return None


def modes_stiffness(body: FullBody, basis: np.ndarray, x: np.ndarray, *, positive: bool = False) -> np.ndarray:
    """(r, r) VᵀK(V x)V; `positive`: of positive element stiffnesses and a little of that at rest."""
    tangent = body.force_and_stiffness(basis @ x, projected=positive)[1]
    if positive:
        tangent = tangent + FLOOR * body.rest_stiffness
    return np.asarray(basis.T @ (tangent @ basis))


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """Cholesky factor, or nothing where there is none."""
    try:
        return cho_factor(matrix)
    except np.linalg.LinAlgError:
        return None
