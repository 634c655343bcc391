"""Hands on the flesh: springs, a ball, a floor, joints and the root."""

from __future__ import annotations

import numpy as np
import pytest

from pose_models_for_tests import bar_model
from softrig.errors import InputError
from softrig.viewer.character import SoftCharacter
from softrig.viewer.posing import Posing
from softrig.viewer.subjects import FRAME
from softrig.viewer.touch import LONGEST, Touch
from viewer_for_tests import frames, soft_bar, stage


def tip_vertex() -> int:
    """The end of the bar, its upper corner."""
    rest = soft_bar().rig.positions(soft_bar().rig.parameters.rest)
    return int(np.argmax(rest[:, 0] + 0.1 * rest[:, 1]))


def displacements(made) -> np.ndarray:
    return np.linalg.norm(made.subject.soft_positions() - made.subject.plain_positions(), axis=1)


def test_a_pull_deforms_near_the_pick_and_relaxes_after_release():
    with stage(None) as made:
        frames(made, 2)
        vertex, size = tip_vertex(), made.subject.size
        start = made.subject.soft_positions()[vertex].astype(float)
        made.pull(0, "a", vertex, start + np.array([0.0, 0.05 * size, 0.0]))
        frames(made, 40)
        moved = made.subject.soft_positions()[vertex] - start
        assert moved[1] > 0.3 * 0.05 * size, "the flesh follows the hand"
        assert moved[1] < 1.1 * 0.05 * size, "and not further"
        rest = made.subject.geometry().rest
        far = np.linalg.norm(rest - rest[vertex], axis=1) > 0.6 * size
        assert displacements(made)[vertex] > 2.5 * displacements(made)[far].max()
        made.touch.release(0, "a")
        frames(made, 300)
        assert displacements(made).max() < 1e-4 * size
        assert made.touch.pulls == []


def test_a_hand_that_moves_is_followed():
    with stage(None) as made:
        frames(made, 2)
        vertex, size = tip_vertex(), made.subject.size
        start = made.subject.soft_positions()[vertex].astype(float)
        made.pull(0, "a", vertex, start + np.array([0.0, 0.04 * size, 0.0]))
        frames(made, 30)
        made.pull(0, "a", vertex, start - [0.0, 0.04 * size, 0.0])
        frames(made, 60)
        assert made.subject.soft_positions()[vertex][1] < start[1] - 0.01 * size
        assert len(made.touch.pulls) == 1


@pytest.mark.parametrize("young", [2e2, 2e4, 2e6, 2e8])
def test_a_spring_holds_on_any_flesh_and_a_wild_hand_breaks_nothing(young):
    subject = SoftCharacter(bar_model(law="stable-neo-hookean", young=young))
    touch, rest = Touch(subject), subject.parameters.rest
    vertex, random = tip_vertex(), np.random.default_rng(0)
    touch.pull(0, 0, vertex, np.zeros(3))
    for frame in range(120):
        if frame % 3 == 0:
            touch.pull(0, 0, vertex, random.normal(0.0, 100.0, 3))
        touch.act(rest)
        subject.move(rest)
        moved = np.abs(subject.newest_positions() - subject.geometry().rest).max()
        assert moved < 5.0 * LONGEST * subject.size
    assert subject.simulation.counters["decayed"] == 0
    # Held still, it comes to rest and does not hum.
    touch.pull(0, 0, vertex, subject.geometry().rest[vertex] + [0.0, 0.03 * subject.size, 0.0])
    places = []
    for _ in range(900):
        touch.act(rest)
        subject.move(rest)
        places.append(subject.newest_positions()[vertex].copy())
    assert np.ptp(np.array(places[-30:]), axis=0).max() < 2e-3 * subject.size


def test_asking_what_the_flesh_would_do_changes_nothing():
    with stage() as made, stage() as other:
        frames(made, 10)
        frames(other, 10)
        grip = made.subject.grip(tip_vertex())
        made.subject.foresee(made.playback.pose(), np.array([3, 4]))
        grip.release()
        np.testing.assert_array_equal(frames(made, 20), frames(other, 20))


def test_foresight_is_what_happens():
    with stage(None) as made:
        frames(made, 3)
        made.subject.simulation.stepper.v[:] = 0.05
        pose = made.playback.pose()
        soft, plain = made.subject.foresee(pose, np.array([5, 17]))
        made.subject.move(pose)
        made.subject.look(1.0)
        np.testing.assert_allclose(made.subject.soft_positions()[[5, 17]], soft, atol=1e-7)
        np.testing.assert_allclose(made.subject.plain_positions()[[5, 17]], plain, atol=1e-7)


def test_a_ball_pushes_the_flesh_out_of_its_way():
    with stage(None) as made:
        frames(made, 2)
        rest = made.subject.geometry().rest.astype(float)
        vertex = int(np.argmin(np.linalg.norm(rest - [0.45, 0.06, 0.0], axis=1)))
        centre = rest[vertex] + np.array([0.0, 0.03, 0.0])
        made.poke(0, centre, 0.05)
        frames(made, 40)
        nearest = np.linalg.norm(made.subject.soft_positions() - centre, axis=1).min()
        assert nearest > 0.03 + 0.1 * 0.02, "pressed towards the ball's skin, or slipped off"
        made.poke(0, None, 0.0)
        frames(made, 300)
        np.testing.assert_allclose(made.subject.soft_positions()[vertex], rest[vertex], atol=1e-4)
        assert made.subject.simulation.colliders == ()


def test_a_floor_bears_the_flesh():
    with stage(None) as made:
        made.tuning.change("gravity", "full")
        hanging = frames(made, 240)[-1][:, 1].min()
        made.touch.ground(True)
        resting = frames(made, 240)[-1][:, 1].min()
        low = made.subject.geometry().bounds[0, 1]
        assert hanging < low - 1e-3
        assert resting > low - 0.7 * (low - hanging)


def test_a_hand_that_is_gone_lets_go():
    with stage(None) as made:
        made.pull(7, "a", tip_vertex(), np.zeros(3))
        made.pull(8, "a", tip_vertex(), np.zeros(3))
        made.poke(7, np.zeros(3), 0.05)
        made.touch.leave(7)
        frames(made, 1)
        assert len(made.touch.pulls) == 1
        assert made.subject.simulation.colliders == ()


def test_what_cannot_be_pulled_is_named():
    with stage(None) as made:
        with pytest.raises(InputError, match="surface vertices outside"):
            made.pull(0, "a", 10**6, np.zeros(3))
        with pytest.raises(InputError, match="NaN"):
            made.pull(0, "a", tip_vertex(), np.array([0.0, np.nan, 0.0]))
        for name in range(10):
            made.pull(0, name, tip_vertex(), np.zeros(3))
        with pytest.raises(InputError, match="at most 10"):
            made.pull(0, 10, tip_vertex(), np.zeros(3))


def test_a_dragged_joint_comes_to_the_hand_and_the_clip_goes_on_below_it():
    with stage("sway") as made:
        frames(made, 2)
        head = made.posing.handles(made.subject.pose)[0].astype(float)
        tip = made.posing.handles(made.subject.pose)[2].astype(float)
        to = head + 0.9 * np.linalg.norm(tip - head) * np.array([0.6, 0.0, 0.8])
        made.playback.play(False)
        made.drag_joint(2, to)
        frames(made, 120)
        np.testing.assert_allclose(made.posing.handles(made.subject.pose)[2], to, atol=1e-4)
        made.playback.play(True)
        before = made.posing.handles(made.subject.pose)[2].copy()
        frames(made, 20)
        assert np.linalg.norm(made.posing.handles(made.subject.pose)[2] - before) > 1e-3
        made.posing.reset()
        frames(made, 120)
        np.testing.assert_allclose(made.subject.pose, made.playback.pose(), atol=1e-12)


def test_a_limb_is_not_folded_flat():
    with stage(None) as made:
        made.drag_joint(2, np.zeros(3))
        frames(made, 120)
        head, _, tip = made.posing.handles(made.subject.pose)
        assert 0.05 < np.linalg.norm(tip - head) < 0.1
        assert np.isfinite(made.subject.soft_positions()).all()


def test_a_joint_under_one_other_points_at_the_hand():
    with stage(None) as made:
        made.drag_joint(1, np.array([0.0, 5.0, 0.0]))
        frames(made, 120)
        np.testing.assert_allclose(made.posing.handles(made.subject.pose)[1], [0.0, 0.3, 0.0], atol=1e-4)


def test_a_hand_in_steps_does_not_kick_the_flesh():
    with stage(None) as made:
        still = frames(made, 2)
        made.posing.move_root(np.array([0.1, 0.0, 0.0]))
        places = np.concatenate([still, frames(made, 60)])[:, 0]
        speeds = np.diff(places, axis=0) / FRAME
        assert np.abs(np.diff(speeds, axis=0)).max() / FRAME < 0.11 * 30.0**2
        np.testing.assert_allclose(places[-1] - made.subject.geometry().rest[0], [0.1, 0.0, 0.0], atol=1e-4)


def test_the_root_turns_about_itself():
    with stage("held") as made:
        frames(made, 1)
        before = made.posing.handles(made.subject.pose)
        made.posing.turn_root(np.array([0.0, np.pi / 2, 0.0]))
        frames(made, 200)
        after = made.posing.handles(made.subject.pose)
        np.testing.assert_allclose(after[0], before[0], atol=1e-5)
        arm, turned = before[1] - before[0], after[1] - after[0]
        np.testing.assert_allclose(turned, [arm[2], arm[1], -arm[0]], atol=1e-4)


def test_joints_turn_in_the_world_and_turns_add_up():
    with stage(None) as made:
        moments = iter(np.arange(0.0, 100.0, 1.0))
        made.posing = Posing(made.subject, clock=lambda: next(moments))
        frames(made, 1)
        start = made.posing.handles(made.subject.pose)
        for angle in (0.05, 0.4, 0.8):  # one drag
            made.turn_joint(1, np.array([0.0, 0.0, angle]))
        made.turn_joint(1, np.array([0.0, 0.0, 0.01]))  # the next one begins from there
        made.turn_joint(1, np.array([0.0, 0.0, 0.2]))
        frames(made, 200)
        arm = made.posing.handles(made.subject.pose)[2] - start[1]
        straight = start[2] - start[1]
        np.testing.assert_allclose(np.arctan2(arm[1], arm[0]) - np.arctan2(straight[1], straight[0]), 1.0, atol=1e-3)
        with pytest.raises(InputError, match="a tip"):
            made.turn_joint(2, np.zeros(3))
        with pytest.raises(InputError, match="joints outside"):
            made.turn_joint(3, np.zeros(3))


def test_a_black_box_has_no_joints_and_can_be_touched_all_the_same():
    subject = SoftCharacter(bar_model(law="stable-neo-hookean", black_box=True))
    posing, touch = Posing(subject), Touch(subject)
    assert posing.joints is None
    assert posing.handles(subject.pose).shape == (0, 3)
    with pytest.raises(InputError, match="no joints"):
        posing.drag(0, np.zeros(3), subject.pose)
    posing.move_root(np.array([0.1, 0.0, 0.0]))
    touch.pull(0, 0, tip_vertex(), np.array([0.6, 0.3, 0.0]))
    rest = subject.parameters.rest
    for _ in range(60):
        posing.follow()
        pose = posing.posed(rest)
        touch.act(pose)
        subject.move(pose)
    subject.look(1.0)
    moved = subject.plain_positions() - subject.geometry().rest
    np.testing.assert_allclose(moved, np.broadcast_to([0.1, 0.0, 0.0], moved.shape), atol=1e-5)
    assert np.abs(subject.soft_positions() - subject.plain_positions()).max() > 1e-3
    assert subject.tet_positions().shape == subject.model.vertices.shape
