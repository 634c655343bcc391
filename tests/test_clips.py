"""Clips: interpolation by hand and by formula, ends, loops, cuts, resampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from rigs_for_tests import RIGS, random_parameters, two_bone_bar
from softrig.characters import built_in
from softrig.errors import IndexRangeError, InputError, NotFiniteError, Notice
from softrig.numerics.rotations import quaternions_from_vectors
from softrig.rig.clip import Clip, Track
from softrig.rig.parameters import Parameters
from softrig.rig.skinning import LinearBlendSkin

NUMBERS = Parameters(("a.x", "a.y", "b"), ("m", "m", "1"), np.array([5.0, 6.0, 7.0]), np.zeros(0))
TURN = Parameters(tuple(f"n.rotation.{c}" for c in "xyzw"), ("1",) * 4, np.array([0.0, 0, 0, 1]), np.array([0]))


def random_quaternions(count, seed=0, size=1.0):
    return quaternions_from_vectors(np.random.default_rng(seed).normal(0.0, size, (count, 3)))


def random_cubic(keys=4, width=2, seed=0, quaternion=False):
    rng = np.random.default_rng(seed)
    values = rng.normal(0.0, 1.0, (3 * keys, width))
    if quaternion:
        values[1::3] = random_quaternions(keys, seed, 0.5)
    times = np.concatenate([[0.3], 0.3 + np.cumsum(rng.uniform(0.2, 1.5, keys - 1))])
    return Track(0, width, times, values, "cubic", quaternion)


class TestTracks:
    def test_step_and_linear_by_hand(self):
        times, values = [1.0, 2.0, 4.0], [[10.0], [20.0], [0.0]]
        step, linear = (Track(2, 1, times, values, kind) for kind in ("step", "linear"))
        at = np.array([0.0, 1.0, 1.999, 2.0, 3.0, 4.0, 9.0])
        assert step.sample(at)[:, 0] == pytest.approx([10, 10, 10, 20, 20, 0, 0])
        assert linear.sample(at)[:, 0] == pytest.approx([10, 10, 19.99, 20, 10, 0, 0])

    def test_quaternions_against_scipy(self):
        times = np.array([0.0, 0.5, 2.0, 2.2])
        q = random_quaternions(4)
        at = np.linspace(0.0, 2.2, 45)
        expected = Slerp(times, Rotation.from_quat(q))(at).as_matrix()
        signed = q * np.array([1.0, -1.0, 1.0, -1.0])[:, None]  # the same rotations, some the long way round
        got = Track(0, 4, times, signed, "linear", True).sample(at)
        assert np.abs(Rotation.from_quat(got).as_matrix() - expected).max() < 1e-13
        assert np.linalg.norm(got, axis=1) == pytest.approx(1.0, abs=1e-14)

    def test_equal_quaternions(self):
        q = np.tile(random_quaternions(1), (2, 1))
        assert Track(0, 4, [0, 1], q, "linear", True).sample([0.3])[0] == pytest.approx(q[0], abs=1e-15)

    def test_cubic_formula(self):
        track = random_cubic()
        v, into, out = track.values[1::3], track.values[0::3], track.values[2::3]
        for key in range(3):
            d = track.times[key + 1] - track.times[key]
            for t in (0.0, 0.1, 0.5, 0.85):
                expected = (
                    (2 * t**3 - 3 * t**2 + 1) * v[key]
                    + d * (t**3 - 2 * t**2 + t) * out[key]
                    + (-2 * t**3 + 3 * t**2) * v[key + 1]
                    + d * (t**3 - t**2) * into[key + 1]
                )
                assert track.sample([track.times[key] + t * d])[0] == pytest.approx(expected, abs=1e-12)

    def test_cubic_passes_its_keys_with_its_tangents(self):
        track = random_cubic()
        h = 1e-6
        for key, time in enumerate(track.times):
            near = track.sample([time - h, time, time + h])
            assert near[1] == pytest.approx(track.keys[key], abs=1e-12)
            assert near[0] == pytest.approx(near[2], abs=1e-4)  # continuous
            if key > 0:
                assert (near[1] - near[0]) / h == pytest.approx(track.values[3 * key], abs=1e-4)
            if key < 3:
                assert (near[2] - near[1]) / h == pytest.approx(track.values[3 * key + 2], abs=1e-4)
        ends = track.sample([0.0, 99.0])
        assert ends == pytest.approx(track.keys[[0, -1]], abs=1e-14)

    def test_cubic_reproduces_a_cubic(self):
        times = np.array([0.0, 0.7, 2.0])
        f, df = (lambda t: t**3 - 2 * t**2 + 1), (lambda t: 3 * t**2 - 4 * t)
        values = np.stack([df(times), f(times), df(times)], axis=1).reshape(-1, 1)
        at = np.linspace(0, 2, 21)
        assert Track(0, 1, times, values, "cubic").sample(at)[:, 0] == pytest.approx(f(at), abs=1e-12)

    def test_cubic_quaternions_are_normalised_after_mixing(self):
        track = random_cubic(width=4, quaternion=True)
        at = np.linspace(track.times[0], track.times[-1], 30)
        raw = replace(track, quaternion=False).sample(at)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        assert np.ptp(lengths) > 0.01
        assert track.sample(at) == pytest.approx(raw / lengths, abs=1e-13)

    def test_one_key_and_equal_times(self):
        assert Track(0, 1, [1.0], [[4.0]]).sample([0.0, 1.0, 5.0])[:, 0] == pytest.approx([4, 4, 4])
        cubic = Track(0, 1, [1.0], [[9.0], [4.0], [9.0]], "cubic")
        assert cubic.sample([0.0, 1.0, 5.0])[:, 0] == pytest.approx([4, 4, 4])
        jump = Track(0, 1, [0.0, 1.0, 1.0, 2.0], [[0.0], [1.0], [5.0], [6.0]])
        assert jump.sample([0.5, 0.999999, 1.0, 1.5])[:, 0] == pytest.approx([0.5, 0.999999, 5.0, 5.5])

    def test_faults_are_named(self):
        with pytest.raises(InputError, match="fall") as fault:
            Track(0, 1, [0.0, 2.0, 1.0], np.zeros((3, 1)))
        assert fault.value.indices.tolist() == [2]
        with pytest.raises(InputError, match="values"):
            Track(0, 1, [0.0, 1.0], np.zeros((2, 1)), "cubic")
        with pytest.raises(InputError, match="values"):
            Track(0, 1, [], np.zeros((0, 1)))
        with pytest.raises(InputError, match="four values"):
            Track(0, 3, [0.0], np.zeros((1, 3)), quaternion=True)
        with pytest.raises(InputError, match="must be step"):
            Track(0, 1, [0.0], np.zeros((1, 1)), "bezier")
        with pytest.raises(NotFiniteError):
            Track(0, 1, [0.0, np.nan], np.zeros((2, 1)))


def some_clip(**changes):
    tracks = (
        Track(0, 2, [0.0, 1.0, 3.0], [[0.0, 1.0], [2.0, 3.0], [4.0, -1.0]]),
        Track(2, 1, [0.5, 2.5], [[1.0], [0.0]], "step"),
    )
    return replace(Clip("walk", NUMBERS, tracks, 3.0), **changes)


class TestClips:
    def test_untouched_parameters_rest(self):
        clip = some_clip(tracks=(Track(2, 1, [0.0, 1.0], [[0.0], [1.0]]),))
        assert clip.sample([0.25])[0] == pytest.approx([5.0, 6.0, 0.25])
        assert clip.sample(0.25).shape == (1, 3)

    def test_holds_or_loops_beyond_its_ends(self):
        clip = some_clip()
        assert clip.sample([-1.0, 99.0]) == pytest.approx(clip.sample([0.0, 3.0]))
        looped = clip.looped()
        assert looped.looping
        assert not clip.looping
        at = np.array([0.2, 1.7, 2.9])
        assert looped.sample(at + 6.0) == pytest.approx(clip.sample(at))
        assert looped.sample(at - 3.0) == pytest.approx(clip.sample(at))
        assert looped.sample([3.0]) == pytest.approx(clip.sample([0.0]))

    def test_resample(self):
        times, values = some_clip().resample(10.0)
        assert times == pytest.approx(np.arange(31) / 10.0)
        assert values == pytest.approx(some_clip().sample(times))
        assert len(some_clip(duration=2.95).resample(10.0)[0]) == 30
        looped_times, looped_values = some_clip().looped().resample(10.0)
        assert looped_values[-1] == pytest.approx(values[-1])
        assert len(looped_times) == 31
        with pytest.raises(InputError, match="frame rate"):
            some_clip().resample(0.0)
        with pytest.raises(InputError, match="too many frames"):
            some_clip().resample(1e9)

    @pytest.mark.parametrize(("start", "end"), [(0.1, 0.2), (0.5, 2.5), (0.0, 3.0), (0.7, 2.9), (1.0, 3.0)])
    def test_trimmed_is_the_same_curve(self, start, end):
        clip = some_clip()
        cut = clip.trimmed(start, end)
        assert cut.duration == pytest.approx(end - start)
        at = np.linspace(0.0, end - start, 101)[:-1]
        # A step falls on its key: sample a hair after, where rounding of start + t cannot decide it.
        assert cut.sample(at + 1e-9) == pytest.approx(clip.sample(start + at + 1e-9), abs=1e-7)
        assert cut.sample([end - start]) == pytest.approx(clip.sample([end]))

    @pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (0.35, 0.4), (0.5, 2.0), (0.1, 99.0)])
    @pytest.mark.parametrize("kind", ["cubic", "cubic quaternion", "quaternion"])
    def test_trimmed_curves_and_rotations(self, start, end, kind):
        if kind == "quaternion":
            track = Track(0, 4, [0.3, 0.9, 1.8, 2.7], random_quaternions(4), "linear", True)
        else:
            track = random_cubic(width=4, quaternion="quaternion" in kind)
        parameters = TURN if "quaternion" in kind else replace(TURN, quaternions=np.zeros(0))
        clip = Clip("c", parameters, (track,), float(track.times[-1]) + 0.5)
        end = min(end, clip.duration)
        at = np.linspace(0.0, end - start, 57)
        assert clip.trimmed(start, end).sample(at) == pytest.approx(clip.sample(start + at), abs=1e-10)
        twice = clip.trimmed(start, end).trimmed(0.01, end - start - 0.01)
        assert twice.sample(at[:-10] * 0.5) == pytest.approx(clip.sample(start + 0.01 + at[:-10] * 0.5), abs=1e-10)

    def test_trimmed_cubic_at_keys(self):
        track = random_cubic(width=4)
        clip = Clip("c", replace(TURN, quaternions=np.zeros(0)), (track,), float(track.times[-1]))
        start, end = track.times[1], track.times[2]
        at = np.linspace(0.0, end - start, 23)
        assert clip.trimmed(start, end).sample(at) == pytest.approx(clip.sample(start + at), abs=1e-12)

    def test_from_samples(self):
        rig = RIGS["shapes and skin"]
        rng = np.random.default_rng(0)
        values = np.tile(rig.parameters.rest, (4, 1))
        values[:, 1] = rng.normal(size=4)
        values[:, 6:10] = random_quaternions(4, 2)
        values[:, 13:16] = rng.normal(size=(4, 3))
        times = np.array([0.0, 0.1, 0.2, 0.5])
        clip = Clip.from_samples("made", rig.parameters, times, values)
        assert [(track.start, track.width, track.quaternion) for track in clip.tracks] == [
            (1, 1, False),
            (6, 4, True),
            (13, 3, False),
        ]
        assert clip.sample(times) == pytest.approx(values, abs=1e-14)
        assert clip.duration == 0.5
        everything = np.stack([random_parameters(rig.parameters, rng) for _ in range(4)])
        full = Clip.from_samples("all", rig.parameters, times, everything)
        assert [track.width for track in full.tracks] == [1, 1, 1] + [3, 4, 3] * 6
        assert full.sample(times) == pytest.approx(everything, abs=1e-13)

    def test_placed_in_a_larger_rig(self):
        chain = RIGS["shapes and skin"]
        skin = chain.stages[1]
        values = np.stack([random_parameters(skin.parameters, np.random.default_rng(i)) for i in range(3)])
        clip = Clip.from_samples("move", skin.parameters, np.arange(3.0), values)
        placed = clip.placed(chain.parameters)
        assert placed.sample([0.7])[:, 3:] == pytest.approx(clip.sample([0.7]))
        assert placed.sample([0.7])[:, :3] == pytest.approx(0.0)
        with pytest.raises(InputError, match="no parameter is called 'node0"):
            clip.placed(NUMBERS)

    def test_animated_scale_reaches_the_vertices(self):
        bar = two_bone_bar(LinearBlendSkin)
        where = bar.skeleton.scale(1)
        track = Track(where.start, 3, [0.0, 1.0], [[1.0, 1.0, 1.0], [3.0, -1.0, 2.0]])
        halfway = Clip("grow", bar.parameters, (track,), 1.0).sample([0.5])[0]
        end = bar.rest_positions[:, 0] == 1.0
        assert bar.positions(halfway)[end] == pytest.approx(bar.rest_positions[end] * [2.0, 0.0, 1.5], abs=1e-13)

    def test_faults_are_named(self):
        with pytest.raises(IndexRangeError, match="beyond") as fault:
            some_clip(tracks=(Track(0, 1, [0.0], [[0.0]]), Track(2, 2, [0.0], [[0.0, 1.0]])))
        assert fault.value.indices.tolist() == [1]
        with pytest.raises(InputError, match="duration"):
            some_clip(duration=-1.0)
        with pytest.raises(InputError, match="cannot cut"):
            some_clip().trimmed(2.0, 1.0)
        with pytest.raises(InputError, match="cannot cut"):
            some_clip().trimmed(0.0, 3.5)
        with pytest.raises(InputError, match="samples"):
            Clip.from_samples("x", NUMBERS, np.zeros(2), np.zeros((3, 3)))
        with pytest.raises(NotFiniteError):
            some_clip().sample(np.array([np.nan]))


def test_a_clip_that_lacks_a_joint_says_so_and_leaves_it_at_rest():
    clip = built_in("arm").clip("wave")
    names = ("extra.angle", "extra.weight", *clip.parameters.names)
    shifted = clip.parameters.quaternions + 2
    rest = np.concatenate([[0.3, 0.0], clip.parameters.rest])
    wider = Parameters(names, ("rad", "1", *clip.parameters.units), rest, shifted)
    with pytest.warns(Notice, match=r"clip 'wave' lacks 1 parameters, such as 'extra.angle': they stay at rest"):
        fitted = clip.fitted(wider, ignored=["extra.weight"])
    poses = fitted.resample(10.0)[1]
    np.testing.assert_array_equal(poses[:, 0], 0.3)
    np.testing.assert_allclose(poses[:, 2:], clip.resample(10.0)[1])
    assert clip.fitted(clip.parameters) is clip
