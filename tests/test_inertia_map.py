"""The inertial force between the poses: the compiled step with an inertia map against all vertices, at unseen poses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pose_models_for_tests import bar_model, pose
from softrig.forces.inertia import perturbed, turning_inertia
from softrig.models.kernels.pose_space_tables import EXTERNAL
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.models.tet_motion import tet_carriers
from softrig.pipeline import inertia_map
from softrig.pipeline.cache import StageCache
from softrig.pipeline.inertia import STEP, load_vector
from softrig.pipeline.inertia_map import (
    exact_blocks,
    fitted_map,
    turning_components,
    unseen_errors,
    with_inertia_map,
)
from softrig.project import Project, paper_recipe


@pytest.fixture(scope="module")
def plain() -> PoseSpaceModel:
    return bar_model(poses=3, basis_poses=1, regions=2, modes=10, corrections=0.01)


@pytest.fixture(scope="module")
def built(plain: PoseSpaceModel) -> PoseSpaceModel:
    model, told = with_inertia_map(plain, Project(), StageCache(None))
    assert told["components"] == len(model.inertia_map.owners)
    assert told["held out"]["mean"] < 0.5 * told["held out, mixed by pose weights"]["mean"]
    return model


def unseen(model: PoseSpaceModel, count: int = 12) -> np.ndarray:
    """Poses within the reach of the clip that are neither samples nor poses of the model."""
    angles = np.random.default_rng(5).uniform(0.15, 1.05, count)
    return np.array([pose(model.rig, (0.0, 0.0, angle), root_turn=(0.0, 0.3, 0.1)) for angle in angles])


def test_it_is_exact_at_the_poses(built: PoseSpaceModel) -> None:
    blocks = exact_blocks(built, built.poses.parameters)
    for i, p in enumerate(built.poses.parameters):
        found = built.inertia_at(p)
        assert np.abs(found[:, : built.load_count] - built.inertia[i]).max() < 1e-6 * np.abs(built.inertia[i]).max()
        own = built.inertia[i, :, :24].reshape(-1, 2, 12).transpose(1, 0, 2)
        np.testing.assert_allclose(blocks[i], own, atol=1e-7 * np.abs(own).max())


def test_the_compiled_force_is_that_of_all_vertices(built: PoseSpaceModel, plain: PoseSpaceModel) -> None:
    """External force of a step without gravity, mode by mode, against −Σ_v V_vᵀ m_v R_vᵀ ẍ_v."""
    carriers, random, errors = tet_carriers(built), np.random.default_rng(2), []
    steppers = [Stepper(model, gravity=(0.0, 0.0, 0.0)) for model in (built, plain)]
    for p in unseen(built):
        # Fast enough for what is quadratic in the rates to count.
        around = [perturbed(p, built.rig.parameters, built.size, random)[0] for _ in range(2)]
        around = [p + 6.0 * (near - p) for near in around]
        forces = []
        for stepper in steppers:
            before, z, after = (stepper.carriers(each) for each in (around[0], p, around[1]))
            speed, acceleration = (after - before) / (2.0 * STEP), (after - 2.0 * z + before) / STEP**2
            stepper.restart(z)
            stepper.step(z, speed, acceleration)
            forces.append(stepper._memory.vectors[EXTERNAL].copy())
        count = 24 + len(built.poses)
        motion = carriers.motion(z[:count], speed[:count], acceleration[:count])
        seen = np.einsum("nji,nj->ni", built.vertex_rotations(p), motion.accelerations)
        exact = -np.einsum("nik,n,ni->k", built.shapes[0], built.vertex_mass, seen, optimize=True)
        errors.append([np.linalg.norm(force - exact) / np.linalg.norm(exact) for force in forces])
    ours, theirs = np.array(errors).T
    assert ours.max() < 0.006
    assert ours.mean() < 0.2 * theirs.mean()


def test_the_compiled_force_of_changing_corrections_follows_the_pose(built: PoseSpaceModel) -> None:
    """What they add to the force against T(p) 2ẇω at unseen poses; kept from the first pose it is farther off."""
    known, carriers, random, errors = built.inertia_map, tet_carriers(built), np.random.default_rng(4), []
    assert known is not None
    still = replace(known, turning=0.0 * known.turning, turned=0.0 * known.turned)
    maps = (still, known, replace(known, turned=0.0 * known.turned))
    steppers = [Stepper(replace(built, inertia_map=each), gravity=(0.0, 0.0, 0.0)) for each in maps]
    for p in unseen(built):
        step = 6.0 * (perturbed(p, built.rig.parameters, built.size, random)[0] - p)
        forces = []
        for stepper in steppers:
            before, z, after = (stepper.carriers(each) for each in (p - step, p, p + step))
            speed, acceleration = (after - before) / (2.0 * STEP), (after - 2.0 * z + before) / STEP**2
            stepper.restart(z)
            stepper.step(z, speed, acceleration)
            forces.append(stepper._memory.vectors[EXTERNAL].copy())
        count = carriers.size
        loads = load_vector(built, built.frame_rotations(p), speed[:count], acceleration[:count])[built.load_count :]
        exact = -exact_turning(built, p) @ loads
        errors.append([np.linalg.norm(force - forces[0] - exact) / np.linalg.norm(exact) for force in forces[1:]])
    followed, kept = np.mean(errors, axis=0)
    assert followed < 0.02
    assert followed < 0.3 * kept


def exact_turning(model: PoseSpaceModel, p: np.ndarray) -> np.ndarray:
    """(r, 3 m B) T at p."""
    rig, turns, frames = model.tet_rig, model.vertex_rotations(p), model.frame_rotations(p)
    return turning_inertia(model.shapes[0], model.vertex_mass, rig.corrections, rig.weights, turns, frames)


def test_columns_of_changing_corrections_follow_the_pose(built: PoseSpaceModel) -> None:
    """At unseen poses they are nearer to the exact ones than those of the first pose are."""
    kept, followed, count = [], [], built.load_count
    for p in unseen(built):
        exact = exact_turning(built, p)
        size = np.linalg.norm(exact)
        kept.append(np.linalg.norm(built.inertia_map.turning - exact) / size)
        followed.append(np.linalg.norm(built.inertia_at(p)[:, count:] - exact) / size)
    assert max(followed) < 0.02
    assert np.mean(followed) < 0.2 * np.mean(kept)


def test_what_hardly_turns_is_left_out(plain: PoseSpaceModel, built: PoseSpaceModel, monkeypatch) -> None:
    """Region by region: what is fainter than a share of the whole costs nothing in a step."""
    poses, shares, owners = built.poses.parameters, np.eye(3), np.array([0, 1, 1], np.int32)
    whole = turning_components(plain, poses, shares, owners)
    assert whole["turners"].size > 0
    rows = np.linalg.norm(whole["turned"].reshape(-1, 2, 5 * whole["turned"].shape[2]), axis=2)
    size = float(np.linalg.norm(exact_turning(plain, poses[0])))
    middle = float(np.sort(rows.ravel())[rows.size // 2])
    monkeypatch.setattr(inertia_map, "SLIGHT", (1.0 + 1e-6) * middle / size)
    part = turning_components(plain, poses, shares, owners)
    kept = {int(turner): matrix for turner, matrix in zip(part["turners"], part["turned"], strict=True)}
    for turner, matrix, own in zip(whole["turners"].tolist(), whole["turned"], rows, strict=True):
        found = kept.get(turner, np.zeros_like(matrix))
        for region, row in enumerate(own):
            span = slice(5 * region, 5 * region + 5)
            np.testing.assert_array_equal(found[span], matrix[span] if row > middle else 0.0)
    monkeypatch.setattr(inertia_map, "SLIGHT", 1e6)
    assert turning_components(plain, poses, shares, owners)["turners"].size == 0


def test_errors_at_unseen_poses_repeat_and_are_smaller(built: PoseSpaceModel, plain: PoseSpaceModel) -> None:
    ours = unseen_errors(built, unseen(built), 0)
    np.testing.assert_array_equal(ours, unseen_errors(built, unseen(built), 0))
    assert (ours < unseen_errors(plain, unseen(plain), 0)).all()


def test_the_fit_keeps_what_counts() -> None:
    """Blocks of known rank: as many components, in the regions they are in, and right at every sample."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, 30)
    directions = random.normal(size=(2, 8, 12))
    directions[1, 4:] = 0.0
    shares = np.stack([np.sin(x) - np.sin(x[0]), np.cos(2.0 * x) - np.cos(2.0 * x[0])])
    blocks = np.ones((30, 2, 8, 12))
    blocks[:, 1] += np.einsum("kt,krc->trc", shares, directions)
    distances = np.sqrt(3.0) * np.abs(x[:, None] - x) / 2.0
    kernel = (1.0 + distances) * np.exp(-distances)
    found, known = fitted_map(blocks, kernel, 2, np.array([0, 4, 8]))
    np.testing.assert_array_equal(found["owners"], [1, 1])
    np.testing.assert_allclose(np.linalg.norm(found["components"].reshape(2, -1), axis=1), 1.0, rtol=1e-6)
    weights = np.zeros((30, 2))
    weights[:2] = np.eye(2)
    coefficients = kernel @ found["coefficients"] + weights @ found["remainders"]
    again = 1.0 + np.tensordot(coefficients, found["components"].astype(float), axes=1)
    np.testing.assert_allclose(again[:2], blocks[:2, 1], atol=1e-5)
    np.testing.assert_allclose(again, blocks[:, 1], atol=0.02)
    exact = 1.0 + np.tensordot(known, found["components"].astype(float), axes=1)
    np.testing.assert_allclose(exact, blocks[:, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "project"),
    [
        ({"interpolation": "world"}, Project()),
        ({"black_box": True}, Project()),
        ({}, paper_recipe(Project())),
    ],
)
def test_others_mix_by_pose_weights(changes: dict, project: Project) -> None:
    model = bar_model(**changes)
    assert with_inertia_map(model, project, StageCache(None)) == (model, {})
