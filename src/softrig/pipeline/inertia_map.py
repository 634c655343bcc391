"""Inertia between the poses: exact at many sample poses, learned from there for each bone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky
from threadpoolctl import threadpool_limits

from softrig.forces.inertia import bone_inertia, perturbed, turning_inertia
from softrig.models.inertia_map import BLOCK, InertiaMap
from softrig.models.kernels.pose_space_layout import region_runs
from softrig.models.pose_kernel import PAIRS, pose_kernel
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.tet_motion import tet_carriers
from softrig.pipeline.cache import Arrays, StageCache, content_hash
from softrig.pipeline.inertia import inertial_forces
from softrig.pipeline.parallel import Progress, part_of
from softrig.pipeline.pose_samples import map_samples, mixed_poses
from softrig.project import Project

COMPONENTS = 12
"""Components a bone has on average beside those of the poses; who needs more gets more. The inertial force of a gorilla
at 24 moments of its beat is at worst 1.3 % off with 6 or 8, 0.9 with 12, 0.4 with 20."""
KEPT = 1e-3
"""Components smaller than this share of the largest are left out."""
FAINT = 1e-7
"""The same against C: what single precision does not show."""
SLIGHT = 0.01
"""Columns of a bone in a region smaller than this share of all that corrections do while their bones turn are left out,
those of the first pose and how they follow the pose alike."""
TURNERS = 8
"""Components of a bone, the strongest, by which those columns follow the pose."""
TURNED_AT = 64
"""Sample poses from which that is learned: a few numbers for every bone need no more."""
RIDGE = 1e-4
UNSEEN = 24
"""Poses held out, on which the error is measured."""


def with_inertia_map(
    model: PoseSpaceModel, project: Project, cache: StageCache, progress: Progress | None = None
) -> tuple[PoseSpaceModel, dict[str, Any]]:
    """`model` with C at any pose, regressed over the poses of `map_samples`; and what to note of it.

    Only in bind space do vertices mix rotations; elsewhere, by the paper's recipe, and where poses held out say that it
    is no better, the C_i mixed by pose weights stay.
    """
    if model.interpolation != "bind" or project.basis.recipe == "paper":
        return model, {}
    samples = map_samples(model, seed=project.seed)
    if samples is None:
        return model, {}
    poses, groups, lengths = samples.poses, samples.groups, samples.lengths
    weights = model.tet_rig.weights
    assert weights is not None
    fit = model.tet_rig.frame_fit
    key = content_hash(
        poses, model.shapes, model.vertex_mass, model.vertices, model.tet_rig.corrections, weights.data,
        weights.indices, weights.indptr, lengths, [PAIRS, COMPONENTS, KEPT, FAINT, RIDGE, SLIGHT, TURNERS, TURNED_AT],
        samples.features, groups, model.region_of_mode, model.poses.features, model.poses.feature_weights,
        *([] if fit is None else [fit]),
    )  # fmt: skip

    def make() -> Arrays:
        with threadpool_limits(1, user_api="blas"):  # small products: threads only cost
            blocks = exact_blocks(model, poses, part_of(progress, 0, 2))
            kernel = pose_kernel(samples.features, samples.features, groups, lengths)
            fitted, shares = fitted_map(blocks, kernel, len(model.poses), region_runs(model.region_of_mode))
            return fitted | turning_components(model, poses, shares, fitted["owners"], part_of(progress, 1, 2))

    found = cache.get("inertia", key, make)
    known = InertiaMap(
        samples.columns,
        groups,
        lengths,
        samples.features,
        PAIRS,
        np.ones(len(lengths)),
        found["coefficients"],
        found["remainders"],
        found["owners"],
        found["components"].astype(np.float64),
        _turning(model),
        found["turners"],
        found["turned"].astype(np.float64),
    )
    mapped = replace(model, inertia_map=known)
    unseen = mixed_poses(model, samples.sources, UNSEEN, np.random.default_rng([project.seed, 13]))
    ours, theirs = (unseen_errors(each, unseen, project.seed) for each in (mapped, model))
    if not ours.mean() < theirs.mean():
        return model, {}
    report = {"kind": "map over poses, exact at those of the model", "components": len(known.owners)}
    held = {"held out": ours, "held out, mixed by pose weights": theirs}
    return mapped, report | {name: {"mean": float(x.mean()), "worst": float(x.max())} for name, x in held.items()}


def exact_blocks(model: PoseSpaceModel, poses: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """(t, B, r, 12) exact C_b at poses (t, P)."""
    found = []
    for index, p in enumerate(poses):
        points = model.vertices + np.tensordot(model.pose_weights(p), model.tet_rig.corrections, axes=1)
        local, rotations, frames = _seen_at(model, p)
        columns = bone_inertia(local, model.vertex_mass, points, model.tet_rig.weights, rotations, frames)
        found.append(columns.reshape(len(columns), -1, BLOCK).transpose(1, 0, 2))
        if progress is not None:
            progress(index + 1, len(poses))
    return np.stack(found)


def _seen_at(model: PoseSpaceModel, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, 3, r) shapes, (n, 3, 3) R_v and (B, 3, 3) R_b at parameters p (P,)."""
    local = np.tensordot(model.basis_weights(p), model.shapes, axes=1)
    return local, model.vertex_rotations(p), model.frame_rotations(p)


def _turning(model: PoseSpaceModel) -> np.ndarray:
    """(r, 3 m B) the columns of changing corrections at the first pose, exactly representable in float32."""
    columns = _turning_at(model, model.poses.parameters[0])
    least = SLIGHT * float(np.linalg.norm(columns))
    for block in np.split(columns, model.frame_count, axis=1):
        drop_faint(block, least, region_runs(model.region_of_mode))
    return columns.astype(np.float32).astype(np.float64)


def _turning_at(model: PoseSpaceModel, p: np.ndarray) -> np.ndarray:
    local, rotations, frames = _seen_at(model, p)
    weights = model.tet_rig.weights
    assert weights is not None
    return turning_inertia(local, model.vertex_mass, model.tet_rig.corrections, weights, rotations, frames)


def turning_components(
    model: PoseSpaceModel,
    poses: np.ndarray,
    shares: np.ndarray,
    owners: np.ndarray,
    progress: Progress | None = None,
) -> Arrays:
    """By which components ("turners"), and how ("turned"), the columns of changing corrections follow the pose.

    Of shares (t, k) of components that belong to bones `owners` (k,), at poses (t, P). By least squares, summed up pose
    by pose: all columns of all poses at once would be large.
    """
    some = np.unique(np.linspace(0, len(poses) - 1, TURNED_AT).astype(int))
    sizes, strongest = np.linalg.norm(shares, axis=0), {}
    for bone in np.unique(owners).tolist():
        own = np.flatnonzero(owners == bone)
        strongest[bone] = np.sort(own[np.argsort(-sizes[own], kind="stable")[:TURNERS]])
    inverses = {bone: np.linalg.pinv(shares[np.ix_(some, own)], KEPT) for bone, own in strongest.items()}
    first = _turning_at(model, poses[0])
    width = first.shape[1] // model.frame_count
    found = {bone: np.zeros((len(own), len(first), width)) for bone, own in strongest.items()}
    for index, p in enumerate(poses[some]):
        change = _turning_at(model, p) - first
        for bone, inverse in inverses.items():
            found[bone] += inverse[:, index, None, None] * change[:, width * bone : width * (bone + 1)]
        if progress is not None:
            progress(index + 1, len(some))
    least, runs = SLIGHT * float(np.linalg.norm(first)), region_runs(model.region_of_mode)
    turners, turned = [], [np.zeros((0, len(first), width), np.float32)]
    for bone, own in strongest.items():
        for component, matrix in zip(own.tolist(), found[bone], strict=True):
            # As large as it gets at any one sample, not as all of them together.
            drop_faint(matrix, least / max(float(np.abs(shares[:, component]).max()), 1e-300), runs)
            if matrix.any():
                turners.append(component)
                turned.append(matrix[None].astype(np.float32))
    return {"turners": np.array(turners, np.int32), "turned": np.concatenate(turned)}


def fitted_map(blocks: np.ndarray, kernel: np.ndarray, own: int, runs: np.ndarray) -> tuple[Arrays, np.ndarray]:
    """Coefficients, remainders, owners and components for C_b (t, B, r, 12) at samples, `own` poses first; and the
    shares (t, k) of the components at the samples.

    `kernel` (t, t) of the samples, the same all along its diagonal; `runs` (g + 1,) first mode of each region. First
    come the directions in which the poses' own blocks differ, so that these are exact, then the principal components of
    what is left, the largest of all bones.
    """
    count, bones, modes, _ = blocks.shape
    differences = (blocks - blocks[0]).transpose(1, 0, 2, 3).reshape(bones, count, -1)
    unseen = FAINT * float(np.linalg.norm(blocks[0]))
    first = [_principal(rows[1:own], unseen) for rows in differences]
    left = [rows - rows @ found.T @ found for rows, found in zip(differences, first, strict=True)]
    sizes = np.sort(np.concatenate([np.linalg.svd(rows, compute_uv=False) for rows in left]))[::-1]
    least = max(sizes[min(COMPONENTS * bones, len(sizes) - 1)], KEPT * sizes[0], unseen)
    shares, components, owners = [], [], []
    for bone, rows in enumerate(differences):
        found = np.concatenate([first[bone], _principal(left[bone], least)])
        shares.append(rows @ found.T)
        for index, (component, share) in enumerate(zip(found, shares[-1].T, strict=True)):
            limit = unseen if index < len(first[bone]) else least
            drop_faint(component.reshape(modes, BLOCK), limit / float(np.linalg.norm(share)), runs)
        components.append(found)
        owners += [bone] * len(found)
    noise = RIDGE * kernel[0, 0]
    factor = cholesky(kernel + noise * np.eye(count), lower=True)
    known = np.hstack(shares)
    coefficients = cho_solve((factor, True), known)
    fitted = {
        "coefficients": coefficients,
        "remainders": noise * coefficients[:own],  # the shares less what the regression gives, kernel @ coefficients
        "owners": np.array(owners, np.int32),
        "components": np.concatenate(components).reshape(-1, modes, BLOCK).astype(np.float32),
    }
    return fitted, known


def _principal(rows: np.ndarray, least: float) -> np.ndarray:
    """(k, n) the principal directions of rows (t, n) with singular values beyond `least`."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[sizes > least])


def drop_faint(component: np.ndarray, least: float, runs: np.ndarray) -> None:
    """Clear (r, k) columns in regions where they are smaller than what is left out as a whole."""
    for begin, end in pairwise(runs):
        if np.linalg.norm(component[begin:end]) < least:
            component[begin:end] = 0.0


def unseen_errors(model: PoseSpaceModel, poses: np.ndarray, seed: int) -> np.ndarray:
    """(k,) relative errors of the inertial force at poses (k, P), under random accelerations of all parameters."""
    carriers, parameters = tet_carriers(model), model.rig.parameters
    random = np.random.default_rng([seed, 17])
    errors = []
    for p in poses:
        before, after = (perturbed(p, parameters, model.size, random)[0] for _ in range(2))
        reduced, exact = inertial_forces(model, carriers, np.stack([before, p, after]))
        errors.append(np.linalg.norm(reduced - exact) / np.linalg.norm(exact))
    return np.array(errors)
