"""Corrections that follow the pose (PSSD Eqs. 1, 2): exact at the poses, bind-space deltas from sculpts."""

from __future__ import annotations

import numpy as np
import pytest

from bars_for_tests import bar_character, turn
from rigs_for_tests import RIGS, random_parameters, two_bone_bar
from softrig.errors import IndexRangeError, InputError, Notice
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.pose_space import PoseSpaceRig, features_of_frames, sculpted_correction, with_corrections
from softrig.rig.protocol import Rig
from softrig.rig.skinning import LinearBlendSkin


def bent(rig: Rig, angle: float, axis: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> np.ndarray:
    p = rig.parameters.rest.copy()
    start = rig.parameters.index("right.rotation.x")
    p[start : start + 4] = turn(angle, axis)[0]
    return p


@pytest.fixture
def sculpted() -> tuple[PoseSpaceRig, np.ndarray, np.ndarray]:
    """A bar with a sculpt at 1.5 rad about z and one at 1 rad about y, and a third pose without; poses; sculpts."""
    skin = two_bone_bar(LinearBlendSkin)
    rng = np.random.default_rng(1)
    poses = np.stack([bent(skin, 0.0), bent(skin, 1.5), bent(skin, 1.0, (0.0, 1.0, 0.0)), bent(skin, -1.2)])
    sculpts = np.stack([skin.positions(p) + rng.normal(0.0, 0.02, skin.rest_positions.shape) for p in poses[1:3]])
    deltas = np.stack([sculpted_correction(skin, p, s) for p, s in zip(poses[1:3], sculpts, strict=True)])
    rig = with_corrections(skin, deltas, ("elbow", "aside"))
    parameters = np.concatenate([np.zeros((4, 2)), poses], axis=1)
    return PoseSpaceRig(rig, [("elbow.weight", 1), ("aside.weight", 2)], parameters), parameters, sculpts


def test_the_sculpts_are_met_exactly_at_their_poses(sculpted) -> None:
    rig, poses, sculpts = sculpted
    assert isinstance(rig, Rig)
    plain = rig.rig.positions
    assert rig.positions(poses[1]) == pytest.approx(sculpts[0], abs=1e-12)
    assert rig.positions(poses[2]) == pytest.approx(sculpts[1], abs=1e-12)
    for p in (poses[0], poses[3]):
        assert rig.positions(p) == pytest.approx(plain(p), abs=1e-12)
    some = np.array([3, 50, 7])
    assert rig.positions(poses[1], some) == pytest.approx(sculpts[0][some], abs=1e-12)


def test_between_the_poses_the_weights_are_those_of_eq_2(sculpted) -> None:
    rig, poses, _ = sculpted
    p = np.concatenate([[0.0, 0.0], bent(rig.rig.stages[1], 0.6, (0.0, 0.6, 0.8))])
    features = np.stack([rig.features(pose) for pose in poses])
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    raw = np.linalg.solve(distances, np.linalg.norm(rig.features(p) - features, axis=1))
    assert rig.corrected(p)[:2] == pytest.approx((raw / raw.sum())[1:3])
    assert np.array_equal(rig.corrected(p)[2:], p[2:])


def test_what_the_caller_sets_the_correctives_to_does_not_matter(sculpted) -> None:
    rig, poses, _ = sculpted
    wild = poses.copy()
    wild[:, :2] = np.random.default_rng(0).normal(size=(4, 2))
    assert np.array_equal(rig.corrected(wild), rig.corrected(poses))
    assert np.array_equal(rig.features(wild), rig.features(poses))
    assert rig.features(wild)[:, [rig.feature_names.index("elbow.weight")]] == pytest.approx(0.0)
    assert not np.array_equal(features_of_frames(rig.rig, wild), features_of_frames(rig.rig, poses))


def test_many_frames_at_once_are_the_frames_one_by_one(sculpted) -> None:
    rig, _, _ = sculpted
    rng = np.random.default_rng(2)
    p = np.stack([random_parameters(rig.parameters, rng) for _ in range(6)]).reshape(2, 3, -1)
    at_once = rig.corrected(p)
    assert at_once.shape == p.shape
    assert at_once[1, 2] == pytest.approx(rig.corrected(p[1, 2]))


def test_without_correctives_the_rig_is_the_plain_one() -> None:
    plain = RIGS["shapes and skin"]
    rng = np.random.default_rng(3)
    poses = np.stack([plain.parameters.rest, random_parameters(plain.parameters, rng)])
    rig = PoseSpaceRig(plain, (), poses)
    p = random_parameters(plain.parameters, rng)
    assert np.array_equal(rig.positions(p), plain.positions(p))
    assert rig.pose_weights(poses) == pytest.approx(np.eye(2))
    assert PoseSpaceRig(plain, (), poses[0]).pose_weights(p) == pytest.approx([1.0])


def test_other_morphs_keep_their_weights_and_count_as_pose() -> None:
    shapes = BlendShapes(np.eye(3), np.full((2, 3, 3), 0.1) * np.eye(3), ("smile", "fix"))
    rest = np.zeros(2)
    rig = PoseSpaceRig(shapes, [("fix.weight", 1)], np.array([rest, [1.0, 0.0]]))
    assert rig.corrected(np.array([0.25, 9.0])) == pytest.approx([0.25, 0.25])


def test_ignored_parameters_are_no_part_of_the_pose() -> None:
    shapes = BlendShapes(np.eye(3), np.full((3, 3, 3), 0.1) * np.eye(3), ("bend", "fix", "smile"))
    poses = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    rig = PoseSpaceRig(shapes, [("fix.weight", 1)], poses, ignored=("smile.weight",))
    assert rig.corrected(np.array([0.25, 0.0, 3.0])) == pytest.approx([0.25, 0.25, 3.0])


def test_a_correction_without_a_pose_or_with_two_is_an_error(sculpted) -> None:
    rig, poses, _ = sculpted
    with pytest.raises(IndexRangeError, match=r"'aside.weight' belongs to pose 4, but there are only 4"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 1), ("aside.weight", 4)], poses)
    with pytest.raises(InputError, match="more than one pose"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 1), ("elbow.weight", 2)], poses)
    with pytest.raises(InputError, match="no parameter"):
        PoseSpaceRig(rig.rig, [("knee.weight", 1)], poses)


def test_a_correction_at_rest_is_refused_and_rest_should_be_a_pose(sculpted) -> None:
    rig, poses, _ = sculpted
    with pytest.raises(InputError, match=r"'elbow.weight' belongs to the rest pose"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 0)], poses)
    with pytest.raises(InputError, match="belongs to the rest pose"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 0)], poses[1])
    with pytest.warns(Notice, match="rest pose is not among"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 0)], poses[1:])


def test_poses_that_differ_in_correctives_alone_coincide(sculpted) -> None:
    rig, poses, _ = sculpted
    twin = poses[:2].copy()
    twin[1] = twin[0]
    twin[1, 0] = 1.0
    with pytest.raises(InputError, match="0 and 1 coincide"):
        PoseSpaceRig(rig.rig, [("elbow.weight", 1)], twin)


@pytest.mark.parametrize("kind", ["linear", "dual", "bend", "wire", "callable", "bend and wire", "shapes and skin"])
def test_a_sculpt_is_pulled_back_through_any_rig(kind: str) -> None:
    rig = RIGS[kind]
    rng = np.random.default_rng(5)
    p = random_parameters(rig.parameters, rng, 0.15)
    posed = rig.positions(p)
    sculpt = posed + rng.normal(0.0, 0.01, posed.shape)
    sculpt[::3] = posed[::3]
    delta = sculpted_correction(rig, p, sculpt)
    assert rig.deform(p, rig.rest_positions + delta, None) == pytest.approx(sculpt, abs=1e-8)
    assert np.array_equal(delta[::3], np.zeros_like(delta[::3]))
    assert np.abs(delta).max() > 1e-3


def test_the_correction_scales_with_the_character() -> None:
    small, large = bar_character(with_morph=False).rig, bar_character(with_morph=False, scale=100.0).rig
    p = small.parameters.rest.copy()
    p[small.parameters.index("bone1.rotation.x") :][:4] = turn(0.8, [1.0, 0.0, 0.0])[0]
    q = p + large.parameters.rest - small.parameters.rest
    sculpt = small.positions(p) * 1.02
    assert sculpted_correction(large, q, 100.0 * sculpt) == pytest.approx(
        100.0 * sculpted_correction(small, p, sculpt), rel=1e-6, abs=1e-7
    )


def test_sculpts_of_other_meshes_are_refused() -> None:
    rig = two_bone_bar(LinearBlendSkin)
    posed = rig.positions(rig.parameters.rest)
    with pytest.raises(InputError, match=f"sculpt has {len(posed) - 1} vertices, the character {len(posed)}"):
        sculpted_correction(rig, rig.parameters.rest, posed[:-1])
    with pytest.warns(Notice, match="reordered"):
        sculpted_correction(rig, rig.parameters.rest, posed[::-1])


def test_where_the_skin_collapsed_the_sculpt_cannot_be_reached() -> None:
    rig = two_bone_bar(LinearBlendSkin)
    p = rig.parameters.rest.copy()
    scale = rig.parameters.index("right.scale.x")
    p[scale] = 0.0
    posed = rig.positions(p)
    posed[-1, 0] += 0.1
    with pytest.raises(InputError, match="cannot take") as caught:
        sculpted_correction(rig, p, posed)
    assert list(caught.value.indices) == [len(posed) - 1]


def test_corrections_extend_the_blend_shapes_in_front() -> None:
    character = bar_character()
    rig = character.rig
    assert isinstance(rig, RigChain)
    deltas = np.random.default_rng(6).normal(0.0, 0.1, (2, rig.vertex_count, 3))
    wider = with_corrections(rig, deltas, ("a", "b"))
    assert wider.parameters.names[:3] == ("bulge.weight", "a.weight", "b.weight")
    assert wider.parameters.names[3:] == rig.parameters.names[1:]
    p = np.insert(random_parameters(rig.parameters, np.random.default_rng(7)), 1, [0.5, -2.0])
    bulge = rig.stages[0].targets[0]
    points = rig.rest_positions + p[0] * bulge + p[1] * deltas[0] + p[2] * deltas[1]
    expected = rig.stages[1].deform(p[3:], points, None)
    assert wider.positions(p) == pytest.approx(expected)
    clip = character.clip("bulge")
    moved = clip.placed(wider.parameters)
    assert wider.positions(moved.sample(0.4)[0]) == pytest.approx(rig.positions(clip.sample(0.4)[0]))


def test_the_users_feature_weights_stay_with_their_features() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    weights = np.arange(float(len(skin.feature_names)))
    rig = with_corrections(RigChain((skin,), feature_weights=weights), np.zeros((1, skin.vertex_count, 3)), ("a",))
    assert rig.pose_features.weights == pytest.approx([0.0, *weights])


def test_corrections_of_another_vertex_count_or_a_taken_name_are_refused() -> None:
    rig = bar_character().rig
    count = rig.vertex_count
    with pytest.raises(InputError, match=f"{count + 1} vertices for a character of {count}"):
        with_corrections(rig, np.zeros((1, count + 1, 3)), ("a",))
    with pytest.raises(InputError, match="name of its own"):
        with_corrections(rig, np.zeros((1, count, 3)), ("bulge",))
    with pytest.raises(InputError, match="must be"):
        with_corrections(rig, np.zeros((1, count, 3)), ("a", "b"))
