"""Time, clips and poses of the viewer: what is seen is what would be baked, at any speed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from characters_for_tests import limb
from pose_models_for_tests import pose
from softrig.errors import InputError
from softrig.pipeline.baking import model_simulation
from softrig.rig.clip import Clip
from softrig.viewer.character import SoftCharacter
from softrig.viewer.opening import Opened, opened
from softrig.viewer.plain import PlainCharacter
from softrig.viewer.playback import Playback
from softrig.viewer.protocol import decode
from softrig.viewer.stage import Stage
from softrig.viewer.telling import hello, state
from viewer_for_tests import TICK, frames, soft_bar, stage


def test_playing_moves_the_vertices_and_the_flesh_on_them():
    with stage() as made:
        shown = frames(made, 15)
        assert np.abs(shown[-1] - shown[0]).max() > 0.05
        assert np.abs(made.subject.soft_positions() - made.subject.plain_positions()).max() > 1e-4
        plain = made.subject.model.rig.positions(made.subject.model.corrected(made.subject.pose))
        np.testing.assert_allclose(made.subject.plain_positions(), plain, atol=1e-5)


def test_what_is_seen_is_what_a_bake_gives_to_the_bit():
    model = soft_bar()
    baked = model_simulation(model).bake(model.clips[0], 60.0)
    with stage() as made:
        first = made.subject.soft_positions().copy()
        np.testing.assert_array_equal(first, baked.vertices[0])
        np.testing.assert_array_equal(frames(made, len(baked) - 1), baked.vertices[1:])


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0])
def test_another_speed_is_the_same_motion(speed):
    """At the frames to the bit; in between within a thousandth of what the flesh moves."""
    with stage() as full, stage() as other:
        truth = frames(full, 40)
        count = round(40 / speed)
        shown = frames(other, count, speed)
        times = speed * np.arange(1, count + 1)
        whole = np.isclose(times, np.round(times))
        np.testing.assert_array_equal(shown[whole], truth[np.round(times[whole]).astype(int) - 1])
        if speed < 1.0:
            # Halfway between two frames: compare with the mean of them, the curve's bend aside.
            half = np.flatnonzero(np.isclose(times % 1.0, 0.5) & (times > 1.0))
            middle = 0.5 * (truth[(times[half] - 0.5).astype(int) - 1] + truth[(times[half] + 0.5).astype(int) - 1])
            bend = np.abs(np.diff(truth, 2, axis=0)).max() / 8.0
            assert np.abs(shown[half] - middle).max() < 2.0 * bend


def test_a_cut_between_clips_does_not_kick_the_flesh():
    with stage() as made:
        usual = [_offset(made) for _ in frames(made, 30)]
        made.playback.choose("held")
        after = [_offset(made) for _ in range(60) if len(frames(made, 1))]
        assert max(after) < 1.5 * max(usual) + 1e-4
        made.playback.choose("wave")
        assert max(_offset(made) for _ in range(20) if len(frames(made, 1))) < 1.5 * max(usual) + 1e-4


def test_a_cut_that_could_be_a_motion_is_a_cut_all_the_same():
    """Five centimetres in a frame: three metres a second, which would swing the flesh if it were a motion."""
    with stage(None) as made:
        frames(made, 2)
        made.reset()
        made.playback.choose("aside")
        assert max(_offset(made) for _ in range(30) if len(frames(made, 1))) < 1e-5
        made.playback.choose(None)
        frames(made, 30)
        made.subject.move(soft_bar().clips[3].sample(0.0)[0])
        made.subject.look(1.0)
        assert _offset(made) > 1e-3, "a motion does swing it"


def test_the_pose_of_the_clip_is_reached_at_once_after_a_cut():
    with stage() as made:
        frames(made, 10)
        made.playback.choose("held")
        frames(made, 1)
        np.testing.assert_allclose(made.subject.pose, soft_bar().clips[1].sample(0.0)[0], atol=1e-12)


def test_a_pause_holds_the_pose_and_the_flesh_comes_to_rest():
    with stage() as made:
        frames(made, 17)
        made.playback.play(False)
        frames(made, 1)
        held = made.subject.pose.copy()
        shown = frames(made, 400)
        np.testing.assert_array_equal(made.subject.pose, held)
        assert np.abs(np.diff(shown[:40], axis=0)).max() > 1e-6, "the flesh lives on"
        assert np.abs(np.diff(shown[-10:], axis=0)).max() < 1e-5, "and is still in the end"


def test_time_that_stands_still_moves_nothing():
    with stage() as made:
        frames(made, 17)
        made.playback.set_speed(0.0)
        shown = frames(made, 5, made.playback.speed)
        np.testing.assert_array_equal(shown[0], shown[-1])


def test_seeking_goes_there_and_on_from_there():
    with stage() as made:
        made.playback.seek(0.5)
        frames(made, 1)
        np.testing.assert_allclose(made.subject.pose, soft_bar().clips[0].sample(0.5)[0])
        frames(made, 6)
        np.testing.assert_allclose(made.subject.pose, soft_bar().clips[0].sample(0.5 + 6 * TICK)[0])


def test_loops_and_ends():
    with stage() as made:
        frames(made, 61)
        assert made.playback.time == 0.0, "a clip that does not loop begins again"
        made.playback.loop = False
        frames(made, 100)
        assert made.playback.time == pytest.approx(1.0, abs=TICK)
        made.playback.choose("sway")
        made.playback.loop = True
        frames(made, 91)
        assert made.playback.time == pytest.approx(0.5)
        made.playback.choose(None)
        frames(made, 1)
        np.testing.assert_array_equal(made.subject.pose, made.subject.parameters.rest)
        with pytest.raises(InputError, match="no clip is called 'x'; there are: 'wave', 'held', 'sway', 'aside'"):
            made.playback.choose("x")


def test_a_clip_that_does_not_loop_jumps_back_with_a_cut():
    with stage() as made:
        player = Playback(made.subject)
        cuts = [player.advance() for _ in range(61)]
        assert cuts[:60] == [False] * 60
        assert cuts[60]
        assert player.time == 0.0


def test_a_frame_tells_where_everything_is():
    with stage() as made:
        frames(made, 5)
        made.show_what("both")
        made.sights.layer("magnitude")
        header, arrays = decode(made.frame({"step_ms": {}}))
        geometry, shapes = decode(made.geometry())
        assert header["version"] == geometry["version"]
        assert header["clip_time"] == pytest.approx(5 * TICK, abs=1e-4)
        soft = header["low"] + np.array(header["step"]) * arrays["soft"]
        np.testing.assert_allclose(soft, made.subject.soft_positions(), atol=2e-5)
        assert arrays["plain"].shape == arrays["soft"].shape == shapes["rest"].shape
        assert arrays["field"].shape == (len(soft),)
        assert header["field_range"] > 0.0
        np.testing.assert_allclose(arrays["handles"][0], made.subject.pose[:3], atol=1e-6)
        made.show_what("soft")
        assert "plain" not in decode(made.frame())[1]
        with pytest.raises(InputError, match="soft, plain, both, split"):
            made.show_what("all")


def test_the_first_view_has_every_pose_of_the_clip_that_plays_first_in_it():
    with stage() as made:
        bounds, (low, high) = made.subject.geometry().bounds, decode(made.geometry())[0]["view"]
        wave = np.concatenate([made.subject.plain_positions(pose) for pose in made.subject.clips[0].resample(60.0)[1]])
        air = 0.01 * made.subject.size
        assert (wave >= np.subtract(low, air)).all()
        assert (wave <= np.add(high, air)).all()
        assert np.ptp([low, high], axis=0).max() < 1.2 * np.ptp([*wave, *bounds], axis=0).max(), "and not much beside"


def test_a_clip_that_travels_does_not_make_a_dot_of_the_character():
    model = soft_bar()
    far = pose(model.rig, root_move=(40.0, 0.0, 0.0))
    away = Clip.from_samples("away", model.rig.parameters, np.array([0.0, 1.0]), np.stack([far, far]))
    with stage(None, replace(model, clips=(away,))) as made:
        bounds, size = made.subject.geometry().bounds, made.subject.size
        np.testing.assert_allclose(decode(made.geometry())[0]["view"], [bounds[0], bounds[1] + [size, 0.0, 0.0]])


def test_a_mode_swings_while_everything_waits():
    with stage() as made:
        frames(made, 5)
        time = made.time
        made.sights.mode(1, 0.1)
        made.advance(0.36)
        _, swung = decode(made.frame())
        assert made.time == time
        _, still = decode(made.frame())
        np.testing.assert_array_equal(swung["soft"], still["soft"])
        made.sights.mode(None, None)
        made.advance(TICK)
        assert made.time > time
        with pytest.raises(InputError, match="modes go from 0 to 23"):
            made.sights.mode(24, None)


def test_hello_and_state_are_plain_json_with_everything_a_page_needs():
    with stage() as made:
        greeting = json.loads(json.dumps(hello(made, 80), allow_nan=False))
        assert [clip["name"] for clip in greeting["clips"]] == ["wave", "held", "sway", "aside"]
        assert greeting["regions"] == ["region 0", "region 1"]
        assert [joint["name"] for joint in greeting["joints"]] == ["upper", "lower", "lower tip"]
        assert greeting["modes"] == {"now": 24, "most": 24, "stay": False}
        told = json.loads(json.dumps(state(made), allow_nan=False))
        wanted = (
            "playing speed clip clip_time loop show layer mode settings can_undo can_redo unsaved paint poses handles"
        )
        assert set(wanted.split()) <= set(told)
        assert {"build", "jobs", "recording", "replaying", "sketch", "ground"} <= set(told)


def test_a_character_without_flesh_plays_its_clips_until_a_model_is_swapped_in(tmp_path):
    character = limb()
    plain = Opened(PlainCharacter(character), opened(character).project)
    made = Stage(plain, tell=lambda *_: None, swap=lambda *_: None, swap_body=lambda *_: None)
    try:
        frames(made, 20)
        np.testing.assert_array_equal(made.subject.soft_positions(), made.subject.plain_positions())
        expected = character.rig.positions(character.clips[0].sample(20 * TICK)[0])
        np.testing.assert_allclose(made.subject.soft_positions(), expected, atol=1e-6)
        assert not hello(made, 0)["flesh"]
        with pytest.raises(InputError, match="build"):
            made.pull(0, "a", 5, np.zeros(3))
        version = made.version
        made.swap(SoftCharacter(soft_bar()), tmp_path / "bar.softrig")
        assert made.version == version + 1
        assert hello(made, 0)["flesh"]
        frames(made, 3)
        made.pull(0, "a", 5, np.zeros(3))
    finally:
        made.close()


def test_a_swapped_model_keeps_clip_time_and_settings(tmp_path):
    with stage("sway") as made:
        made.tuning.change("damping_ratio", 0.4)
        made.tuning.change("stiffness.region 1", 2.0)
        frames(made, 30)
        time = made.playback.time
        made.swap(SoftCharacter(soft_bar()), tmp_path / "bar.softrig")
        assert made.playback.clip.name == "sway"
        assert made.playback.time == pytest.approx(time)
        frames(made, 2)
        assert made.subject.simulation.damping.ratio == 0.4
        np.testing.assert_array_equal(made.subject.simulation.stepper.stiffness_scale, [1.0, 2.0])


def _offset(made) -> float:
    return float(np.linalg.norm(made.subject.soft_positions() - made.subject.plain_positions(), axis=1).max())
