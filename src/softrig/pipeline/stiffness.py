"""The stiffness between the poses: exact at many sample poses, learned from there for joints and pairs of joints."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from softrig.forces.projection import PoseElasticity
from softrig.models.followers import Followers
from softrig.models.pose_kernel import PAIRS, joint_kernels, mixed_kernel
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stiffness_map import StiffnessMap
from softrig.pipeline.cache import Arrays, StageCache, content_hash
from softrig.pipeline.elasticity import mixed_elasticity
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.followers import (
    FOLLOWING,
    SEEN,
    SEEN_TOGETHER,
    Candidates,
    candidates,
    fitted_followers,
    lived_seen,
    loads_seen,
    most_of,
    principal_shapes,
)
from softrig.pipeline.inertia_map import SLIGHT
from softrig.pipeline.parallel import Progress, each
from softrig.pipeline.pose_samples import MapSamples
from softrig.pipeline.posing import Posing
from softrig.pipeline.relevance import DIRECTIONS, ITERATIONS, RANGES, fitted_relevance
from softrig.pipeline.remainder import SHARES, Remainder
from softrig.pipeline.shapes import Shapes
from softrig.pipeline.yielding import YieldingStiffness, added_by_the_rest, raised

CONTACT = 1.0
"""Stiffness of contacts against that of the flesh. Ten times as much locks modes that were never meant to touch."""
YIELDING_CONTACT = 0.4
"""Of that, where the rest yields: springs do not stand out there either."""
TOGETHER = 24
"""Sample poses that a worker does at a time."""
COMPONENTS = 100
"""At most. With 40, 60 and 100 a gorilla's unseen walk is off by 10.4, 10.3 and 10.2 %, its jump by 13.5, 13.4 and
13.3, its beat by 12.2, 12.0 and 11.5. Twenty cost the model 0.4 MB."""
KEPT = 1e-4
"""Components that hold less than this share of the variance are left out."""
SOUND = 0.5
"""Regressed stiffness must stay above this share of the true one in its softest direction: flesh that is far too soft
flies off. Where bases far apart are mixed in the world, a percent of a stiff mode is more than all of a soft one."""
STEADY = 0.4
"""K̃ must be this share of what the chosen tets take from it. An arm of jelly (16,000 tets, 100 modes, 150 of the tets)
flies off at γ = 0.6, where it is 0.26, and has 0.3 at 0.1 and 0.6 at 0.03; one of fat (3,000 tets) at γ = 0.8 is steady
with 0.6."""
STIFF = 4.0
"""And below so many times the true one in its stiffest: there it hardly moves, whichever it is, and without the map a
gorilla's forces would be 45 % off between the poses."""

UNBOUNDED = 1e9
"""Stands for infinity, which no file of a model can hold."""


def with_stiffness_map(
    model: PoseSpaceModel,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    contact: np.ndarray,
    shapes: Shapes,
    samples: MapSamples,
    remainder: Remainder | None,
    cache: StageCache,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> PoseSpaceModel:
    """`model` with K̃ at any pose, regressed over `samples`: its poses, its clips, mixtures, and joints turned alone.

    `contact` (m, r, r) is what contact adds at the poses, `shapes` what the modes come from: also what follows them
    is found. `remainder`: how the rest of the body yields beside the modes, if it may. Where it does not yield at all,
    the tets push with all that they have, and what is regressed is what these miss. An arm with bases of its own at
    three poses, mixed in the world, is 38 % off the full simulation then on a wave that it did not see; with all of the
    stiffness regressed, of which the tets' must be taken away, it is thrown about. A model whose stiffness cannot be
    regressed soundly stays as it is.
    """
    beside_tets = remainder.is_whole if remainder is not None else len(model.shapes) > 1
    yields, share = remainder is not None and not beside_tets, 1.0
    rests: tuple[np.ndarray, ...] = ()
    if remainder is not None and yields:
        share, rests = _steady(remainder.share, model, flesh, posing, fabric, cache), remainder.rests
    poses, groups, lengths = samples.poses, samples.groups, samples.lengths
    mixed = len(model.shapes) > 1 or not fabric.is_same_at_all_poses
    flexible = yields and not mixed
    follows = flexible and model.interpolation == "bind"
    key = content_hash(
        poses,
        model.shapes,
        fabric.young,
        fabric.poisson,
        fabric.law,
        flesh.mesh.vertices,
        posing.positions,
        samples.features,
        groups,
        lengths,
        samples.usual,
        ["how stiff, by joints that matter", mixed, flexible, PAIRS, COMPONENTS, KEPT, *RANGES, ITERATIONS, DIRECTIONS],
        model.interpolation,
        [share] if yields else [],
        [model.cubature.tets, model.cubature.weights] if beside_tets else [],
        *([*shapes.loads, *shapes.lived, shapes.partition, *rests, FOLLOWING] if follows else []),
    )

    def make() -> Arrays:
        task = _Task(model, flesh, fabric, share if yields else None, poses, beside_tets=beside_tets)
        known = _candidates(task, shapes, jobs) if follows else None
        exact = _at_samples(replace(task, candidates=known), jobs, progress)
        stiffness = exact["stiffness"]
        mixture = np.stack([model.positive_weights(p) for p in poses]) if mixed else np.ones((len(poses), 1))
        single = joint_kernels(samples.features, samples.features, groups, lengths)
        tets = exact.get("tets", np.zeros(1))
        wanted = _inverses(stiffness) if flexible else stiffness - tets
        relevance, coefficients, components = fitted_map(wanted, mixture, single, wanted[0] + tets[0])
        weights = mixed_kernel(single, relevance) @ coefficients
        regressed = np.tensordot(np.concatenate([mixture, weights], axis=1), components, axes=1)
        range_of = flexibility_range if flexible else stiffness_range
        arrays = {
            "range": range_of((regressed + tets)[: samples.usual], (wanted + tets)[: samples.usual]),
            "alone": range_of((regressed + tets)[samples.usual :], (wanted + tets)[samples.usual :]),
            "relevance": relevance,
            "coefficients": coefficients,
            "components": components.astype(np.float32),
        }
        if known is not None:
            told = fitted_followers(model, known, exact["following"], exact["variance"], weights, rests)
            arrays |= {f"followers.{name}": value for name, value in (told or {}).items()}
        return arrays

    found = cache.get("stiffness", key, make)
    softest, stiffest = found["range"].tolist()
    kept = is_sound(softest, stiffest, float(found["alone"][0]))
    model.notes["stiffness map"] = {"softest": softest, "stiffest": stiffest, "kept": kept}
    if not kept:
        return model
    touching = np.flatnonzero(contact.any(axis=(1, 2)))
    springs = (YIELDING_CONTACT if yields else 1.0) * contact[touching]
    own, learned = np.split(found["components"], [len(model.poses) if mixed else 1])
    known = StiffnessMap(
        samples.columns,
        groups,
        lengths,
        samples.features,
        PAIRS,
        found["relevance"],
        found["coefficients"],
        np.concatenate([own, springs.astype(np.float32), learned]).astype(np.float64),
        touching.astype(np.int32),
        flexible,
        beside_tets,
    )
    cubature = replace(model.cubature, stiffness_map=known)
    if not yields:
        return replace(model, cubature=cubature)
    model = replace(model, cubature=cubature.softened(share))
    if model.interpolation != "bind":
        return model
    if "followers.rows" in found:
        names = [one.name for one in fields(Followers)]
        followers = Followers(**{name: _wide(found[f"followers.{name}"]) for name in names})
        model = replace(model, followers=followers)
        model.notes["followers"] = {"count": model.follower_count, "share": float(found["followers.share"])}
    weights, fit = model.tet_rig.weights, model.tet_rig.frame_fit
    assert weights is not None
    carried = [weights.data, weights.indices, weights.indptr, model.tet_rig.corrections, model.vertex_mass]
    loads_key = content_hash(key, *carried, ["inertia and mass", SLIGHT], *([] if fit is None else [fit]))

    def added() -> Arrays:
        inertia, mass = added_by_the_rest(model, YieldingStiffness(model, flesh, fabric, share))
        return {"inertia": inertia, "mass": mass}

    rest = cache.get("yielding", loads_key, added)
    return replace(model, yielding=rest["inertia"], carried_mass=rest["mass"])


def steady_share(most: float, yielding: np.ndarray, given: np.ndarray, tets: np.ndarray) -> float:
    """The largest of `SHARES` up to `most` with which the chosen tets do not take away what is not there.

    K⁺ (m, r, r), VᵀKV and the stiffness at rest of the chosen tets at the poses. The linear part of the remainder,
    γ times the latter, is taken from the stiffness K̃, which is K⁺ raised to γ VᵀKV: where it is far more than that,
    flesh that the tets no longer hold as firmly, being deformed, is pushed on and on.
    """
    for share in sorted((share for share in SHARES if share <= most), reverse=True):
        stiffness = (raised(own, other, share) for own, other in zip(yielding, given, strict=True))
        # Some modes move none of the tets, so these are measured by the stiffness, not the other way round.
        taken = (eigh(own, k, eigvals_only=True)[-1] for k, own in zip(stiffness, tets, strict=True))
        if all(share * most_taken <= 1.0 / STEADY for most_taken in taken):
            return share
    return SHARES[0]


def _steady(
    share: float, model: PoseSpaceModel, flesh: Flesh, posing: Posing, fabric: Fabric, cache: StageCache
) -> float:
    key = content_hash(
        model.shapes, model.cubature.tets, model.cubature.weights, model.vertex_mass, flesh.mesh.vertices,
        posing.positions, fabric.young, fabric.poisson, fabric.law, [share, *SHARES, STEADY],
    )  # fmt: skip
    found = cache.get("steady", key, lambda: {"share": np.array(steady_share(share, *_at_poses(model, flesh, fabric)))})
    return float(found["share"])


def _at_poses(model: PoseSpaceModel, flesh: Flesh, fabric: Fabric) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m, r, r) each: K⁺, VᵀKV and the stiffness at rest of the chosen tets at the model's poses."""
    yielding = YieldingStiffness(model, flesh, fabric, 0.0)
    found, given, tets = [], [], []
    for p in model.poses.parameters:
        found.append(yielding.at(p))
        exact = mixed_elasticity(model, flesh, fabric, p)
        given.append(exact.rest_stiffness)
        tets.append(_of_tets(model, exact, p))
    return np.stack(found), np.stack(given), np.stack(tets)


def is_sound(softest: float, stiffest: float, alone: float) -> bool:
    """Whether a map may be kept that is so soft and so stiff, of the truth, at moments of the clips and their mixtures,
    and so soft where a joint turns `alone`: a knee turned backwards may be answered badly, but must push back."""
    return SOUND <= softest and stiffest <= STIFF and alone > 0.0


def contact_stiffness(flesh: Flesh, fabric: Fabric, shapes: Shapes, rotations: np.ndarray) -> np.ndarray:
    """(m, r, r) newton per metre: springs that hold the contacts of each pose where they are (PSSD §6).

    Bases of their own at every pose keep C u = 0 exactly, and these are zero. One basis for all poses cannot, and
    rehearsed shapes do not: there it costs `CONTACT` times the stiffness of the flesh to move into what is touched, or
    along it where contacts are fixed. `rotations` (m, n, 3, 3) of the vertices at the poses.
    """
    edge = float(np.cbrt(np.median(flesh.mesh.volumes)))
    found = []
    for pose, rows in enumerate(shapes.contacts):
        local = shapes.shapes[pose if len(shapes.shapes) > 1 else 0]
        turned = np.einsum("nij,njk->nik", rotations[pose], local, optimize=True)
        moved = rows @ turned[~flesh.fixed].reshape(-1, turned.shape[2])
        found.append(CONTACT * edge * float(np.median(fabric.young[pose])) * (moved.T @ moved))
    return np.stack(found)


@dataclass(frozen=True, eq=False)
class _Task:
    model: PoseSpaceModel
    flesh: Flesh
    fabric: Fabric
    share: float | None
    """γ where the rest yields."""
    poses: np.ndarray
    candidates: Candidates | None = None
    """What may follow the modes, if anything may."""
    likely: tuple[np.ndarray, np.ndarray] | None = None
    """Loads and shapes by which to find out what is beside the modes."""
    beside_tets: bool = False
    """Whether the stiffness of the chosen tets is wanted, too."""


def _candidates(task: _Task, shapes: Shapes, jobs: int) -> Candidates | None:
    """What may follow the modes, from what is beside them at some of the sample poses."""
    likely = loads_seen(task.model, shapes.loads), lived_seen(task.model, shapes.lived)
    chosen = task.poses[:SEEN]
    # Not by how many workers there are, which would make another model.
    parts = np.array_split(chosen, -(-len(chosen) // SEEN_TOGETHER))
    tasks = [replace(task, poses=part, likely=likely) for part in parts]
    return candidates(task.model, list(each(_some_beside, tasks, jobs)), shapes.partition, *likely)


def _some_beside(task: _Task) -> np.ndarray:
    assert task.likely is not None
    yielding = YieldingStiffness(task.model, task.flesh, task.fabric, 0.0)
    found = np.zeros((*task.model.vertices.shape, 0))
    for p in task.poses:
        found = most_of([found, principal_shapes(*yielding.expected(p, *task.likely)[1:])], task.model)
    return found


def _at_samples(task: _Task, jobs: int, progress: Progress | None) -> Arrays:
    """At the task's poses (t, P): "stiffness" (t, r, r), K̃ at u = 0, exact, or that of modes beside which the rest
    yields; with candidates also "following" (t, s, r) and "variance" (t, r, r); "tets" (t, r, r), what the chosen tets
    have of it, where that is wanted."""
    parts = np.array_split(task.poses, -(-len(task.poses) // TOGETHER))
    found: list[Arrays] = []
    for some in each(_some_samples, [replace(task, poses=part) for part in parts], jobs):
        found.append(some)
        if progress is not None:
            progress(sum(len(arrays["stiffness"]) for arrays in found), len(task.poses))
    return {name: np.concatenate([arrays[name] for arrays in found]) for name in found[0]}


def _some_samples(task: _Task) -> Arrays:
    if task.share is not None:
        yielding, known = YieldingStiffness(task.model, task.flesh, task.fabric, task.share), task.candidates
        if known is None:
            return {"stiffness": np.stack([yielding.at(p) for p in task.poses])}
        parts = []
        for p in task.poses:
            stiffness, beside, variance = yielding.expected(p, known.loads, known.lived)
            parts.append((stiffness, known.nearest @ beside.reshape(-1, beside.shape[2]), variance))
        names = "stiffness", "following", "variance"
        return {name: np.stack(part) for name, part in zip(names, zip(*parts, strict=True), strict=True)}
    found, pattern = [], None
    for p in task.poses:
        exact = mixed_elasticity(task.model, task.flesh, task.fabric, p, pattern=pattern)
        pattern = exact.pattern
        found.append((exact.rest_stiffness, *([_of_tets(task.model, exact, p)] if task.beside_tets else [])))
    return {name: np.stack(part) for name, part in zip(("stiffness", "tets"), zip(*found, strict=True), strict=False)}


def _of_tets(model: PoseSpaceModel, exact: PoseElasticity, p: np.ndarray) -> np.ndarray:
    """(r, r) the stiffness at rest of the chosen tets of a model at parameters p (P,), where `exact` is all flesh."""
    chosen = model.cubature
    return exact.cubature_stiffness(np.zeros(model.mode_count), chosen.tets, model.positive_weights(p) @ chosen.weights)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def stiffness_range(regressed: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """(2,) the least and the largest xᵀK'x / xᵀKx of any x, over matrices K' and K (t, r, r); ones where t is 0."""
    if not len(exact):
        return np.ones(2)
    ranges = np.array(
        [eigh(ours, truth, eigvals_only=True)[[0, -1]] for ours, truth in zip(regressed, exact, strict=True)]
    )
    return np.array([ranges[:, 0].min(), ranges[:, 1].max()])


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """(t, r, r) of symmetric matrices, symmetric to the last bit."""
    found = np.linalg.inv(matrices)
    return np.asarray(0.5 * (found + found.transpose(0, 2, 1)))


def flexibility_range(regressed: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The same of the stiffnesses whose inverses these are; where one is not definite, from 0 to `UNBOUNDED`."""
    least, most = stiffness_range(regressed, exact)
    return np.array([1.0 / most, 1.0 / least]) if least > 0.0 else np.array([0.0, UNBOUNDED])


def fitted_map(
    matrices: np.ndarray, mixture: np.ndarray, single: np.ndarray, measure: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How much each joint matters (G,), coefficients (t, k) and components (o + k, r, r) for matrices
    (t, r, r), K̃, its inverse or ΔK, those of o poses first; `single` (t, t, G) kernels of the joints between the
    samples.

    The differences from the poses' own, mixed by `mixture` (t, o), are compressed to their principal components,
    measured against `measure` (r, r), positive definite, so that soft modes count as much as stiff ones.
    """
    own = matrices[: mixture.shape[1]]
    factor = cholesky(measure, lower=True)
    differences = matrices - np.tensordot(mixture, own, axes=1)
    seen = solve_triangular(factor, differences.transpose(1, 0, 2).reshape(len(factor), -1), lower=True)
    seen = seen.reshape(len(factor), len(matrices), -1).transpose(1, 2, 0)
    seen = solve_triangular(factor, seen.transpose(1, 0, 2).reshape(len(factor), -1), lower=True)
    seen = seen.reshape(len(factor), len(matrices), -1).transpose(1, 0, 2).reshape(len(matrices), -1)
    values, vectors = np.linalg.eigh(seen @ seen.T)
    order = np.argsort(-values)[:COMPONENTS]
    kept = order[values[order] > KEPT * max(values.sum(), 1e-300) / len(values)]
    shares = vectors[:, kept]
    components = np.einsum("tk,tij->kij", shares, differences)
    relevance, noise = fitted_relevance(single, shares * np.sqrt(values[kept]))
    kernel = mixed_kernel(single, relevance)
    factor = cholesky(kernel + noise * np.eye(len(kernel)), lower=True)
    return relevance, cho_solve((factor, True), shares), np.concatenate([own, components])
