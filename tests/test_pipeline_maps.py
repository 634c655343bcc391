"""What a build of a small limb learns between its poses, stiffness and inertia, and the poses it learns them from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import eigh

from characters_for_tests import SMALL, bent_bar, limb, wired_bar
from softrig.characters import built_in
from softrig.fidelity import trajectory_error
from softrig.forces.cubature import TETS_PER_MODE
from softrig.inspection import soft_problems
from softrig.models.moving import MovingBody
from softrig.models.tet_motion import tet_carriers
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_product,
    quaternions_from_vectors,
    rotation_vectors,
)
from softrig.pipeline.build import Built, build, build_parts
from softrig.pipeline.compare import (
    default_damping,
    exact_forces,
    full_trajectory,
    learned_along,
    reduced_trajectory,
)
from softrig.pipeline.elasticity import mixed_elasticity
from softrig.pipeline.inertia import clip_inertia_errors, load_vector
from softrig.pipeline.pose_samples import (
    ALONE,
    BEYOND,
    _exaggerated,
    clip_frames,
    control_points,
    map_samples,
    mixed_poses,
    poses_of_one,
    with_driven,
)
from softrig.pipeline.reduction import LEANING, between_poses_errors
from softrig.pipeline.stiffness import SOUND, STIFF, UNBOUNDED, flexibility_range, is_sound, stiffness_range
from softrig.pipeline.yielding import YieldingStiffness
from softrig.project import Project
from softrig.rig.clip import Clip

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


@pytest.fixture(scope="module")
def built(cache) -> Built:
    return build_parts(limb(), SMALL, cache=cache, jobs=1)


@pytest.fixture(scope="module")
def boxed(cache) -> Built:
    return build_parts(bent_bar(), SMALL.changed(basis={"regions": 1, "interpolation": "world"}), cache=cache, jobs=1)


def test_unseen_force_errors_are_small_at_and_between_poses(built: Built) -> None:
    for errors in built.model.notes["cubature"]["unseen"]:
        assert errors["gaussian"] < 0.06
        assert errors["loads"] < 0.06
    for p in built.model.poses.parameters:
        given = between_poses_errors(built.model, built.flesh, built.posing, built.fabric, p, own=True)
        found = between_poses_errors(built.model, built.flesh, built.posing, built.fabric, p)
        assert 0.0 < max(given.gaussian, given.loads) < 0.04
        # Nothing touches here, and the map is nearly exact at the poses.
        assert found.loads == pytest.approx(given.loads, abs=0.02)
    halfway = built.character.clip("bend").sample(0.5)[0]
    errors = between_poses_errors(built.model, built.flesh, built.posing, built.fabric, halfway)
    assert max(errors.gaussian, errors.loads) < 0.06
    # Without the map, ΔK of the poses alone, the stiffness of the same model is off there.
    poses_only = replace(built.model, cubature=replace(built.model.cubature, stiffness_map=None), followers=None)
    worse = between_poses_errors(poses_only, built.flesh, built.posing, built.fabric, halfway)
    assert np.abs(np.subtract(errors.stiffness_range, 1.0)).max() < 0.02
    assert np.abs(np.subtract(worse.stiffness_range, 1.0)).max() > 0.05


def test_the_stiffness_map_is_right_at_its_poses_and_definite_far_from_them(built: Built) -> None:
    model = built.model
    share = model.cubature.beyond
    yielding = YieldingStiffness(model, built.flesh, built.fabric, share)
    neutral = yielding.at(model.poses.parameters[0])
    # The neutral pose above all, where flesh comes to rest: pose weights, mixed in, would make a tip there.
    assert model.cubature.stiffness_map.own == 1
    assert np.linalg.norm(model.linear_part(model.poses.parameters[0]) - neutral) < 6e-4 * np.linalg.norm(neutral)
    for p in model.poses.parameters:
        exact = yielding.at(p)
        assert np.linalg.norm(model.linear_part(p) - exact) < 0.01 * np.linalg.norm(exact)
        stiff = mixed_elasticity(model, built.flesh, built.fabric, p).rest_stiffness
        shares = eigh(exact, stiff, eigvals_only=True)
        assert shares.min() > share - 1e-6
        assert shares.max() < 1.0 + 1e-6
        assert shares.mean() < 0.9
    wild = model.rig.parameters.rest.copy()
    start = model.rig.parameters.index("lower.rotation.x")
    for angle in (-2.5, -1.0, 2.0, 3.0):
        wild[start : start + 4] = quaternions_from_vectors(angle * np.array([0.3, 0.5, 0.8]))
        assert np.linalg.eigvalsh(model.linear_part(wild)).min() > 0.0


def test_a_material_that_stiffens_with_the_pose_is_followed(built: Built) -> None:
    model, fabric = built.model, built.fabric
    young = fabric.young.copy()
    young[1:] *= 4.0
    stiff = replace(fabric, young=young)
    stiffened = YieldingStiffness(model, built.flesh, stiff, 0.2).at(model.poses.parameters[1])
    plain = YieldingStiffness(model, built.flesh, fabric, 0.2).at(model.poses.parameters[1])
    np.testing.assert_allclose(eigh(stiffened, plain, eigvals_only=True), 4.0, rtol=1e-6)


def test_a_material_of_a_pose_counts_by_pose_weight(cache: Path) -> None:
    """There the stiffness has the pose weights' tips itself, and the poses' own are mixed."""
    project = SMALL.changed(material={"poses": {"bend @ 0.80 s": {"young": 9e4}}})
    model = build(limb(), project, cache=cache, jobs=1)
    known = model.cubature.stiffness_map
    assert known is not None
    assert known.own == len(model.poses)
    assert not known.flexible
    p = 0.5 * (model.poses.parameters[0] + model.poses.parameters[1])
    np.testing.assert_allclose(model.linear_weights(p)[: known.own], model.positive_weights(p))


def test_where_the_rest_yields_the_motion_is_truer_than_that_of_the_modes_alone(cache: Path) -> None:
    """On clips that nothing was rehearsed for; the paper's recipe does without."""
    built = build_parts(limb(), SMALL.changed(basis={"rehearsal": 0.0, "modes": 16}), cache=cache, jobs=1)
    assert built.model.cubature.beyond < 0.7  # 16 modes lock
    damping = default_damping(built)
    errors = []
    for clip in limb().clips:
        _, poses = clip.resample(60.0)
        full = full_trajectory(built, poses, 60.0, damping=damping)
        errors.append(
            [
                trajectory_error(reduced_trajectory(model, poses, 60.0, damping=damping), full, model.vertex_mass)
                for model in (built.model, exact_forces(built))
            ]
        )
    ours, alone = np.array(errors).T
    assert ours.mean() < 0.9 * alone.mean()
    assert (ours < 1.05 * alone).all()  # where the modes alone follow closely there is little to gain
    assert build(limb(), SMALL, recipe="paper", cache=cache, jobs=1).cubature.beyond == 1.0


def test_bones_move_the_modes_at_rest_as_far_as_the_full_body(built: Built) -> None:
    """K̃ x = C a of a limb held in its poses under accelerations of its bones, beside VᵀM K⁻¹M ẍ of all tets."""
    model, fabric = built.model, built.fabric
    assert model.yielding is not None
    body = MovingBody(
        model.tets,
        model.vertices,
        fixed=model.fixed,
        vertex_mass=model.vertex_mass,
        young=fabric.young[0],
        poisson=fabric.poisson[0],
        law=model.law,
    )
    carriers = tet_carriers(model)
    modes_alone = replace(model, yielding=None)
    off = {"ours": 0.0, "loads on the modes alone": 0.0}
    for p in model.poses.parameters:
        body.place(model.tet_rest(p))
        turned = np.einsum("nij,njk->nik", model.vertex_rotations(p), model.shapes[0])
        heavy = body.mass_times(body.restrict(turned))
        sight = body.restrict(turned).T @ heavy
        z = np.concatenate([model.bone_matrices(p).ravel(), model.pose_weights(p)])
        pushes = np.random.default_rng(4).normal(size=(3, len(z))) * (np.arange(len(z)) < len(z) - len(model.poses))
        for push in pushes:
            still = np.zeros_like(z)
            field = body.restrict(carriers.motion(z, still, push).accelerations)
            true = np.linalg.solve(sight, heavy.T @ body.solve(body.rest_stiffness, body.mass_times(field)))
            a = load_vector(model, model.frame_rotations(p), still, push)
            for name, one in zip(off, (model, modes_alone), strict=True):
                found = np.linalg.solve(model.linear_part(p), one.inertia_at(p) @ a)
                off[name] += (found - true) @ sight @ (found - true) / (true @ sight @ true)
    assert off["ours"] < 0.5 * off["loads on the modes alone"]


def test_the_rest_that_goes_along_with_the_modes_has_its_mass(built: Built) -> None:
    """So that modes swing as slowly as the full body does, to which those of the modes alone are too fast."""
    model = built.model
    yielding = YieldingStiffness(model, built.flesh, built.fabric, 0.0)
    beside = [yielding.beside(p) for p in model.poses.parameters]
    mass = [np.einsum("nia,nib,n->ab", one, one, model.vertex_mass) for one in beside]
    np.testing.assert_allclose(model.carried_mass, np.mean(mass, axis=0), atol=1e-5)
    stiffness = yielding.at(model.poses.parameters[0])
    body = yielding._body
    true = np.sqrt(eigh(body.rest_stiffness.toarray(), body.mass.toarray(), eigvals_only=True, subset_by_index=(0, 3)))
    alone = model.mass_products[0, 0]
    heavy, light = (np.sqrt(eigh(stiffness, own, eigvals_only=True)[:4]) for own in (alone + mass[0], alone))
    assert (true < heavy * (1.0 + 1e-9)).all()
    assert (heavy - true < 0.7 * (light - true)).all()
    assert exact_forces(built).carried_mass is None


def test_maps_that_know_a_clip_are_truer_along_it(built: Built, cache: Path) -> None:
    times, poses = limb().clip("bend").resample(30.0)
    elbow = slice(built.model.rig.parameters.quaternions[1], built.model.rig.parameters.quaternions[1] + 4)
    sideways = quaternions_from_vectors(np.linspace(0.0, 1.0, len(poses))[:, None] * [0.0, 1.3, 0.0])
    poses[:, elbow] = quaternion_product(sideways, poses[:, elbow])
    clip = Clip.from_samples("far", built.model.rig.parameters, times, poses)
    knowing = learned_along(built, clip, SMALL, cache)
    np.testing.assert_array_equal(knowing.shapes, built.model.shapes)
    assert [one.name for one in knowing.clips] == [*(one.name for one in built.model.clips), "far"]
    yielding = YieldingStiffness(built.model, built.flesh, built.fabric, built.model.cubature.beyond)
    off = np.zeros(2)
    for p in poses[::7]:
        exact = yielding.at(p)
        for index, model in enumerate((knowing, built.model)):
            shares = eigh(model.linear_part(p), exact, eigvals_only=True)
            off[index] += np.sum(np.log(shares) ** 2)
    assert off[0] < 0.8 * off[1]


def test_the_inertia_map_is_exact_at_the_poses_and_truer_between_them(built: Built) -> None:
    model = built.model
    for i, p in enumerate(model.poses.parameters):
        own = replace(model, yielding=None).inertia_at(p)[:, : model.load_count]
        assert np.abs(own - model.inertia[i]).max() < 1e-6 * np.abs(model.inertia[i]).max()
    told = model.notes["inertia"]
    assert told["held out"]["mean"] < 0.5 * told["held out, mixed by pose weights"]["mean"]
    assert told["held out"]["worst"] < 0.01
    plain = clip_inertia_errors(replace(model, inertia_map=None))
    assert max(model.notes["inertia"]["along clips"].values()) < 0.5 * max(plain.values())


@pytest.mark.parametrize(("scale", "ends"), [(1.0, BEYOND * 1.2), (0.1, ALONE)])
def test_an_angle_alone_goes_as_far_as_a_joint(scale: float, ends: float, boxed: Built) -> None:
    """A bend that its clips hardly show is a joint nevertheless: without samples its stiffness was made up."""
    frames = scale * clip_frames(boxed.model)
    alone = poses_of_one(boxed.model, frames)
    np.testing.assert_allclose(np.sort(alone[:, 0]), [-ends, ends], rtol=0.03)


def test_the_paper_and_the_world_mix_inertia_by_pose_weights(boxed: Built, cache: Path) -> None:
    assert boxed.model.inertia_map is None
    assert build(limb(), SMALL, recipe="paper", cache=cache, jobs=1).inertia_map is None


def test_what_is_regressed_unsoundly_is_left_out(boxed: Built, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(boxed.model.shapes) == len(boxed.model.poses)  # in the world a basis at each pose
    truth, ours = np.diag([100.0, 1.0]), np.diag([101.0, 0.4])
    np.testing.assert_allclose(stiffness_range(np.stack([truth, ours]), np.stack([truth, truth])), [0.4, 1.01])
    np.testing.assert_array_equal(stiffness_range(np.zeros((0, 2, 2)), np.zeros((0, 2, 2))), [1.0, 1.0])
    assert is_sound(SOUND, STIFF, 0.01)
    assert not is_sound(0.99 * SOUND, STIFF, 0.01)
    assert not is_sound(SOUND, 1.01 * STIFF, 0.01)
    assert not is_sound(SOUND, STIFF, -0.01), "where a joint turns alone it must push back"
    monkeypatch.setattr("softrig.pipeline.stiffness.SOUND", 0.9999)
    strict = build(limb(), SMALL, cache=cache, jobs=1)
    assert strict.cubature.stiffness_map is None
    assert not strict.notes["stiffness map"]["kept"]
    assert any("could not be learned" in problem for problem in soft_problems(strict))
    assert strict.notes["leans on tets"]
    usual = round(TETS_PER_MODE * strict.mode_count)
    assert usual < len(strict.cubature.tets) <= round(LEANING * TETS_PER_MODE * strict.mode_count)
    assert len(build(limb(), SMALL.changed(cubature={"count": 9}), cache=cache, jobs=1).cubature.tets) <= 9
    assert boxed.model.notes["stiffness map"]["kept"] == (boxed.model.cubature.stiffness_map is not None)
    assert np.abs(strict.cubature.stiffness_correction).max() > 0.0


def test_it_is_the_flexibility_that_is_learned(built: Built) -> None:
    """Unless materials or bases belong to poses."""
    known = built.model.cubature.stiffness_map
    assert known is not None
    assert known.flexible
    exact = YieldingStiffness(built.model, built.flesh, built.fabric, built.model.cubature.beyond)
    first = built.model.poses.parameters[0]
    expected = np.linalg.inv(exact.at(first))
    np.testing.assert_allclose(known.components[0], expected, atol=1e-6 * np.abs(expected).max())
    assert eigh(built.model.linear_part(first), exact.at(first), eigvals_only=True) == pytest.approx(1.0, abs=0.05)
    truth, ours = np.diag([100.0, 1.0]), np.diag([200.0, 0.8])
    softest, stiffest = flexibility_range(np.stack([truth, ours]), np.stack([truth, truth]))
    assert (softest, stiffest) == pytest.approx((0.5, 1.25))
    assert flexibility_range(-truth[None], truth[None]).tolist() == [0.0, UNBOUNDED]
    assert not is_sound(*flexibility_range(-truth[None], truth[None]), 0.0)


def test_mixed_poses_take_whole_joints(built: Built) -> None:
    frames = clip_frames(built.model)
    mixed = mixed_poses(built.model, frames, 60, np.random.default_rng(0))
    quaternions = built.model.rig.parameters.quaternions
    for start in quaternions:
        np.testing.assert_allclose(np.linalg.norm(mixed[:, start : start + 4], axis=1), 1.0)
    # About half of them hold a joint as some frame has it, the others go beyond; other parameters on their own.
    turn = slice(quaternions[1], quaternions[1] + 4)
    held = np.array([np.isclose(frames[:, turn], p[turn]).all(axis=1).any() for p in mixed])
    farther = _exaggerated(built.model.rig.parameters, frames)
    assert all(np.isclose(farther[:, turn], p[turn]).all(axis=1).any() for p in mixed[~held])
    lift = built.model.rig.parameters.index("upper.translation.y")
    lifted = np.array([not np.isclose(frames[:, lift], p[lift]).any() for p in mixed])
    turned = np.abs(rotation_vectors(mixed[:, turn])).max(axis=1) > 0.1
    assert 0.2 < held[turned].mean() < 0.8
    assert (held & turned & lifted).any()
    most = np.abs(rotation_vectors(frames[:, turn])).max()
    assert np.abs(rotation_vectors(mixed[:, turn])).max() == pytest.approx(BEYOND * most, rel=0.2)


def test_correctives_go_with_what_drives_them(cache: Path) -> None:
    """The X is squeezed where it bends: that is no feature of the pose, and set free it would be noise to the maps."""
    x = built_in("x")
    project = Project().changed(mesh={"tets": 600}, basis={"rehearsal": 0.0, "modes": 8}, poses={"count": 2})
    model = build(x, project, cache=cache, jobs=1)
    names, frames = x.rig.parameters.names, clip_frames(model)
    left, right, down, bend, bow = (
        names.index(name)
        for name in ("LeanLeft.weight", "LeanRight.weight", "BowDown.weight", "bend.angle", "bow.angle")
    )
    mixed = mixed_poses(model, frames, 60, np.random.default_rng(3))
    mixed = np.concatenate([mixed, poses_of_one(model, frames)])
    assert np.abs(mixed[:, bend]).max() > 1.5  # beyond the clips, where it is as at their end
    for weight, angle, turn in ((left, bend, 1.0 / 0.95), (right, bend, -1.0 / 0.95), (down, bow, 1.0 / 1.1)):
        expected = np.clip(turn * np.clip(mixed[:, angle], *np.quantile(frames[:, angle], [0, 1])), 0.0, 1.0)
        assert expected.max() > 0.9
        assert np.abs(mixed[:, weight] - expected).max() < 0.1
        assert np.sqrt(np.mean((mixed[:, weight] - expected) ** 2)) < 0.04
    own = model.poses.parameters
    assert np.array_equal(with_driven(model, own[:0], frames), own[:0])


def test_control_points_are_taken_together() -> None:
    """One by one, from different moments, they would tear a body apart."""
    rig = built_in("bear").rig
    points = control_points(rig.parameters)
    names = [rig.parameters.names[k] for k in points]
    assert len(points) % 3 == 0
    assert {"Spine.0.x", "Spine.0.y", "Spine.0.z"} < set(names)
    assert not any(name.startswith("Root") or "weight" in name for name in names)
    frames = rig.parameters.rest + np.random.default_rng(1).normal(size=(5, len(rig.parameters)))
    skeleton = SimpleNamespace(rig=rig, tet_rig=SimpleNamespace(kind="skin", frame_fit=None))
    mixed = mixed_poses(skeleton, frames, 12, np.random.default_rng(2))
    others = np.setdiff1d(np.arange(len(rig.parameters)), points)
    farther = _exaggerated(rig.parameters, frames)
    for pose in mixed:
        own = [frame for frame in (*frames, *farther) if np.array_equal(pose[points], frame[points])]
        assert len(own) == 1
        assert not np.array_equal(pose[others], own[0][others])


def test_control_points_are_one_group(cache: Path) -> None:
    model = build(wired_bar(), SMALL.changed(basis={"regions": 1}, poses={"count": 2}), cache=cache, jobs=1)
    samples = map_samples(model, seed=0)
    points = control_points(model.rig.parameters)
    assert len(samples.groups) == 2
    assert 1 < len(samples.columns) < len(points)  # those that move
    # None is moved alone: all samples are poses, moments, or mixtures of whole moments.
    assert samples.usual == len(samples.poses)


def test_sample_poses_turn_each_joint_alone(built: Built) -> None:
    model, frames = built.model, clip_frames(built.model)
    alone = poses_of_one(model, frames)
    start, quaternions = model.poses.parameters[0], model.rig.parameters.quaternions
    moved = [k for k in quaternions if np.ptp(frames[:, k : k + 4], axis=0).max() > 1e-6]
    assert len(alone) == 6 * len(moved)
    for place in moved:
        four = slice(place, place + 4)
        own = alone[np.abs(np.delete(alone - start, np.r_[four], axis=1)).max(axis=1) < 1e-12]
        turns = rotation_vectors(quaternion_product(quaternion_conjugate(start[four]), own[:, four]))
        expected = ALONE * np.concatenate([np.eye(3), -np.eye(3)])
        assert len(own) == 6
        np.testing.assert_allclose(turns, expected, atol=1e-12)
    # About the joint's own axes where it stands, not about its parent's.
    bent = model.poses.parameters.copy()
    tilt = quaternions_from_vectors(np.array([0.4, -0.3, 0.2]))
    bent[0, moved[0] : moved[0] + 4] = tilt
    first = poses_of_one(replace(model, poses=replace(model.poses, parameters=bent)), frames)[0]
    expected = quaternion_product(tilt, quaternions_from_vectors(ALONE * np.eye(3)[0]))
    np.testing.assert_allclose(first[moved[0] : moved[0] + 4], expected, atol=1e-12)
    samples = map_samples(model, seed=0).poses
    np.testing.assert_array_equal(samples[: len(model.poses)], model.poses.parameters)
    assert all((np.abs(samples - p).max(axis=1) < 1e-12).any() for p in alone)


def test_joints_that_only_tremble_are_not_turned(built: Built) -> None:
    """Baked clips carry rounding; and q and −q are one rotation."""
    model, place = built.model, built.model.rig.parameters.quaternions[1]
    frames = np.repeat(model.rig.parameters.rest[None], 4, axis=0)
    frames[1, place] += 1e-6
    frames[2, place : place + 4] *= -1.0
    assert len(poses_of_one(model, frames)) == 0


def test_parameters_of_no_joint_go_beyond_their_range(boxed: Built) -> None:
    model, frames = boxed.model, clip_frames(boxed.model)
    start, quaternions = model.poses.parameters[0], model.rig.parameters.quaternions
    weights = model.pose_features.weights
    assert len(quaternions) == 0
    moved = np.flatnonzero((np.ptp(frames, axis=0) > 1e-3) & (weights > 1e-3))
    alone = poses_of_one(model, frames)
    for place in moved:
        own = np.sort(alone[np.abs(alone - start)[:, place] > 1e-9][:, place])
        low, high = frames[:, place].min(), frames[:, place].max()
        ends = np.array([start[place] + BEYOND * (end - start[place]) for end in (low, high)])
        np.testing.assert_allclose(own, ends[np.abs(ends - start[place]) > 1e-9])
    assert len(moved) > 0


def test_without_clips_joints_that_reach_far_are_turned_once_and_no_farther(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(built.model, clips=())
    posed, places = model.poses.parameters, model.rig.parameters.quaternions
    samples = map_samples(model, seed=0)
    sources = np.concatenate([posed, poses_of_one(model, posed)])
    np.testing.assert_array_equal(samples.sources, sources)
    assert len(sources) - len(posed) == 6 * sum(
        bool(np.any(np.abs(rotation_vectors(sources[:, k : k + 4])).max() > 0.5)) for k in places
    )
    # Those that the poses turn count however little they reach.
    monkeypatch.setattr("softrig.pipeline.pose_samples.FAR", 2.0)
    bent = sum(bool(np.ptp(posed[:, k : k + 4], axis=0).max() > 1e-3) for k in places)
    assert len(poses_of_one(model, posed)) == 6 * bent
    monkeypatch.setattr("softrig.pipeline.pose_samples.MOST_ALONE", 2)
    monkeypatch.setattr("softrig.pipeline.pose_samples.MIXED", 0)
    assert len(map_samples(model, seed=0).poses) == len(posed) + 2


def test_a_model_without_clips_knows_its_stiffness_between_the_poses(cache: Path) -> None:
    """Joints turned alone stand in for the clips."""
    character = limb()
    _, poses = character.clip("bend").resample(10.0)
    still = replace(character, clips=())
    built = build_parts(still, SMALL.changed(poses={"count": 1}), cache=cache, jobs=1)
    assert built.model.cubature.stiffness_map is not None
    assert built.model.inertia_map is not None
    yielding = YieldingStiffness(built.model, built.flesh, built.fabric, built.model.cubature.beyond)
    neutral = yielding.at(built.model.poses.parameters[0])
    ours, constant = [], []
    for p in poses:
        exact = yielding.at(p)
        known = built.model.cubature.stiffness_map
        weights = known.weights(built.model.pose_features(p), built.model.positive_weights(p))
        ours.append(np.linalg.norm(known.stiffness(weights) - exact))
        constant.append(np.linalg.norm(neutral - exact))
    assert np.mean(ours) < 0.3 * np.mean(constant)
