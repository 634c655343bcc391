"""Choosing poses: farthest-point sampling over the clips, poses by hand, and suggestions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bars_for_tests import bar_character, turn
from softrig.errors import InputError, Notice
from softrig.poses.selection import Pose, farthest_poses, pose_at, pose_of, suggest_poses
from softrig.rig.clip import Clip
from softrig.rig.deformers import Bend, carried_by_root


@pytest.fixture(scope="module")
def bar():
    return bar_character()


def bend_rig() -> tuple[Bend, Clip]:
    """One angle: distances between poses are those of angles. The clip goes from 0 to 1 and on to −0.6."""
    x = np.linspace(-1.0, 1.0, 41)
    points = np.stack([x, 0.1 * np.cos(9.0 * x), 0.1 * np.sin(9.0 * x)], axis=1)
    rig = Bend(points, (0, 0, 0), (1, 0, 0), (0, 1, 0), -0.5, 0.5)
    clip = Clip.from_samples("nod", rig.parameters, [0.0, 1.0, 2.6], [[0.0], [1.0], [-0.6]])
    return rig, clip


def test_each_next_pose_is_the_farthest_from_all_before() -> None:
    rig, clip = bend_rig()
    names, poses = farthest_poses(rig, [clip], 5, fps=10.0)
    assert names[0] == "rest"
    assert poses[:3, 0] == pytest.approx([0.0, 1.0, -0.6])
    assert poses[3, 0] == pytest.approx(0.5)
    assert poses[4, 0] == pytest.approx(-0.3)
    assert names[1] == "nod @ 1.00 s"
    assert names[2] == "nod @ 2.60 s"


def test_greedy_choice_by_brute_force(bar) -> None:
    names, poses = farthest_poses(bar.rig, bar.clips, 5, fps=20.0, ignored=("bulge.weight",), near=0.0)
    frames = np.concatenate([clip.resample(20.0)[1] for clip in bar.clips])
    keep = [k for k, name in enumerate(bar.rig.feature_names) if name != "bulge.weight"]
    features = bar.rig.features(frames)[:, keep]
    chosen = bar.rig.features(poses)[:, keep]
    for k in range(1, 5):
        gaps = np.linalg.norm(features[:, None] - chosen[None, :k], axis=2).min(axis=1)
        assert np.linalg.norm(chosen[k] - chosen[:k], axis=1).min() == pytest.approx(gaps.max())
    assert len(set(names)) == 5


def test_it_stops_where_nothing_new_is_left() -> None:
    rig, clip = bend_rig()
    names, poses = farthest_poses(rig, [clip], 50, fps=100.0, near=0.2)
    gaps = np.abs(clip.resample(100.0)[1] - poses[:, 0]).min(axis=1)
    assert len(names) < 12
    assert gaps.max() <= 0.2 + 1e-9
    still = Clip("still", rig.parameters, (), 1.0)
    assert farthest_poses(rig, [still], 5)[0] == ("rest",)
    assert farthest_poses(rig, (), 5)[0] == ("rest",)


def test_given_poses_are_kept_and_come_behind_rest() -> None:
    rig, clip = bend_rig()
    given = [Pose("bow", np.array([0.7])), pose_at(clip, frame=5, fps=10.0)]
    names, poses = farthest_poses(rig, [clip], 4, given=given, fps=10.0)
    assert names[:3] == ("rest", "bow", "nod @ 0.50 s")
    assert poses[:3, 0] == pytest.approx([0.0, 0.7, 0.5])
    assert poses[3, 0] == pytest.approx(-0.6)
    assert len(farthest_poses(rig, [clip], 1, given=given)[0]) == 3


def test_poses_by_clip_or_by_parameters(bar) -> None:
    clip = bar.clip("bend")
    assert pose_at(clip, 0.25).parameters == pytest.approx(clip.sample(0.25)[0])
    assert pose_at(clip, 0.25).name == "bend @ 0.25 s"
    assert pose_at(clip, frame=6, fps=24.0).parameters == pytest.approx(clip.sample(0.25)[0])
    with pytest.raises(InputError, match=r"lasts 1.00 s; there is no pose at 3.00 s"):
        pose_at(clip, 3.0)
    with pytest.raises(InputError, match="either a time or a frame"):
        pose_at(clip)
    by_name = pose_of(bar.rig.parameters, {"bone1.rotation.z": 0.5, "bone1.rotation.w": 0.5}, "turned")
    start = bar.rig.parameters.index("bone1.rotation.x")
    assert by_name.parameters[start : start + 4] == pytest.approx(turn(np.pi / 2, [0, 0, 1])[0])
    with pytest.raises(InputError, match="no parameter"):
        pose_of(bar.rig.parameters, {"tail.rotation.z": 1.0}, "wag")


def test_coincident_poses_are_named() -> None:
    rig, clip = bend_rig()
    with pytest.raises(InputError, match="'rest' and 'nothing' are the same pose"):
        farthest_poses(rig, [clip], 3, given=[Pose("nothing", np.zeros(1))])
    with pytest.raises(InputError, match="'a' and 'b'") as caught:
        farthest_poses(rig, [clip], 3, given=[Pose("a", np.ones(1)), Pose("b", np.ones(1))])
    assert list(caught.value.indices) == [1, 2]


def test_poses_outside_the_rigs_range_are_refused_or_told() -> None:
    rig, clip = bend_rig()
    with pytest.raises(InputError, match="'gone' is not one row of finite"):
        farthest_poses(rig, [clip], 3, given=[Pose("gone", np.array([np.nan]))])
    with pytest.raises(InputError, match="parameters, not"):
        farthest_poses(rig, [clip], 3, given=[Pose("other", np.zeros(2))])
    with pytest.warns(Notice, match="'wound up' lies far beyond"):
        farthest_poses(rig, [clip], 3, given=[Pose("wound up", np.array([20.0]))])
    moved = carried_by_root(rig)
    torn = moved.parameters.rest.copy()
    torn[moved.parameters.index("root.scale.x")] = 1e4
    with pytest.raises(InputError, match="'torn' is outside the rig's range"):
        farthest_poses(moved, [], 3, given=[Pose("torn", torn)])
    with pytest.raises(InputError, match="at least the rest pose"):
        farthest_poses(rig, [clip], 0)


def test_travelling_is_not_a_pose() -> None:
    rig, clip = bend_rig()
    moved = carried_by_root(rig)
    walk = clip.placed(moved.parameters)
    values = walk.resample(10.0)[1]
    values[:, moved.parameters.index("root.translation.x")] = np.linspace(0.0, 50.0, len(values))
    travelling = Clip.from_samples("walk", moved.parameters, np.arange(len(values)) / 10.0, values)
    poses = farthest_poses(moved, [travelling], 3, fps=10.0)[1]
    assert poses[:, 0] == pytest.approx([0.0, 1.0, -0.6])


def test_a_clip_of_another_rig_is_refused_and_one_that_lacks_joints_is_told(bar) -> None:
    rig, clip = bend_rig()
    with pytest.raises(InputError, match="'nod' is of another rig: no parameter"):
        farthest_poses(bar.rig, [clip], 3)
    moved = carried_by_root(rig)
    with pytest.warns(Notice, match="'nod' lacks 10 parameters, such as 'root"):
        names, _ = farthest_poses(moved, [clip], 2)
    assert len(names) == 2


def test_inverted_tets_ask_for_the_worst_frame() -> None:
    rig, clip = bend_rig()
    counts = np.zeros(27, dtype=int)
    counts[8:12] = [3, 9, 2, 1]
    poses = np.array([[0.0], [-0.6]])
    wanted = suggest_poses(rig, [clip], ("rest", "back"), poses, inverted={"nod": counts}, fps=10.0)
    assert [s.name for s in wanted] == ["nod @ 0.90 s"]
    assert wanted[0].parameters == pytest.approx([0.9])
    assert "9 rest tets are inverted" in wanted[0].reason
    near = np.array([[0.0], [0.88]])
    assert suggest_poses(rig, [clip], ("rest", "near"), near, inverted={"nod": counts}, fps=10.0) == []


def test_wide_angles_ask_for_a_frame_between() -> None:
    rig, clip = bend_rig()
    poses = np.array([[0.0], [1.0], [-0.6]])
    angles = np.array([[1.2, 1.0], [0.1, 0.3]])
    wanted = suggest_poses(rig, [clip], ("rest", "bow", "back"), poses, tree=[(0, 1), (0, 2)], angles=angles, fps=10.0)
    assert len(wanted) == 1
    assert wanted[0].parameters == pytest.approx([0.5])
    assert wanted[0].name == "nod @ 0.50 s"
    assert "'rest' and 'bow' differ by 63°" in wanted[0].reason


def test_without_a_frame_between_it_is_halfway(bar) -> None:
    rig = bar.rig
    one, other = rig.parameters.rest.copy(), rig.parameters.rest.copy()
    start = rig.parameters.index("bone2.rotation.x")
    other[start : start + 4] = turn(1.6, [1, 0, 0])[0]
    still = replace(bar.clip("bend"), tracks=())
    wanted = suggest_poses(rig, [still], ("rest", "tip"), np.stack([one, other]), tree=[(0, 1)], angles=np.array([1.5]))
    assert wanted[0].name == "between rest and tip"
    assert wanted[0].parameters[start : start + 4] == pytest.approx(turn(0.8, [1, 0, 0])[0])


def test_the_worst_come_first_and_not_too_many() -> None:
    rig, clip = bend_rig()
    back = Clip.from_samples("back", rig.parameters, [0.0, 1.0], [[0.0], [-0.6]])
    poses = np.array([[0.0], [0.5]])
    inverted = {"nod": np.r_[np.zeros(10), 4, np.zeros(16)], "back": np.r_[np.zeros(10), 40]}
    wanted = suggest_poses(rig, [clip, back], ("rest", "half"), poses, inverted=inverted, fps=10.0)
    assert [s.name for s in wanted] == ["back @ 1.00 s", "nod @ 1.00 s"]
    assert len(suggest_poses(rig, [clip, back], ("rest", "half"), poses, inverted=inverted, fps=10.0, most=1)) == 1
