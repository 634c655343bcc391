"""States and bakes of a simulation: repeatable to the bit, equal to stepping, and loops that close."""

from dataclasses import replace

import numpy as np
import pytest

from pose_models_for_tests import bar_model, coarse, offsets, pose
from softrig.errors import InputError
from softrig.rig.clip import Clip
from softrig.simulation import Plane, Simulation, baking


def test_a_restored_state_goes_on_to_the_bit(bending):
    rng = np.random.default_rng(4)
    poses = np.array(
        [pose(bending.rig, (0, 0, s), root_move=(0, 0.2 * s, 0)) for s in np.cumsum(0.05 * rng.standard_normal(60))]
    )
    simulation = Simulation(bending, fps=50)
    simulation.colliders = [Plane((0.0, -0.05, 0.0), (0.0, 1.0, 0.0), friction=0.3)]
    simulation.pull(20, (0.0, 3.0, 1.0))
    simulation.run(poses[:30])
    state = simulation.state()
    first = simulation.run(poses[30:])
    simulation.run(poses[::-1])
    simulation.restore(state)
    np.testing.assert_array_equal(simulation.run(poses[30:]), first)
    other = Simulation(bending, fps=50)
    other.colliders = simulation.colliders
    other.pull(20, (0.0, 3.0, 1.0))
    other.restore(state)
    np.testing.assert_array_equal(other.run(poses[30:]), first)


def test_two_runs_are_equal_to_the_bit(bending):
    clip = bending.clips[0]
    one, two = (Simulation(bending).bake(clip, 60) for _ in range(2))
    np.testing.assert_array_equal(one.vertices, two.vertices)


@pytest.mark.parametrize("fps", [24, 60])
def test_a_bake_is_what_stepping_gives(bending, fps):
    clip = bending.clips[0]
    simulation = Simulation(bending, fps=fps)
    live = simulation.run(clip.resample(fps)[1])
    before = simulation.state()
    calls = []
    bake = simulation.bake(clip, plain=True, progress=lambda done, total: calls.append((done, total)))
    np.testing.assert_array_equal(bake.vertices, live)
    assert calls == [(i + 1, len(bake)) for i in range(len(bake))]
    assert bake.vertices.dtype == np.float32
    assert bake.report.largest_offset == pytest.approx(np.linalg.norm(live - bake.plain, axis=2).max())
    after = simulation.step(bake.poses[0])
    simulation.restore(before)
    np.testing.assert_array_equal(simulation.step(bake.poses[0]), after)


@pytest.mark.parametrize(
    "options",
    [{"interpolation": "world"}, {"morphs": True}, {"black_box": True}, {"regions": 2}],
    ids=["world", "morphs", "black box", "regions"],
)
def test_every_kind_of_model_bakes_as_it_steps(options):
    model = coarse(bar_model(2, modes=6, **options), 4)
    clip = model.clips[0]
    simulation = Simulation(model, fps=50)
    simulation.colliders = [Plane((0.0, -0.06, 0.0), (0.0, 1.0, 0.0), 0.3)]
    poses = clip.resample(50)[1]
    live = simulation.run(poses)
    bake = simulation.bake(clip)
    np.testing.assert_array_equal(bake.vertices, live)
    assert 1e-4 < np.abs(offsets(model, poses, live)).max() < 0.1
    state = simulation.state()
    after = simulation.run(poses[:5])
    simulation.restore(state)
    np.testing.assert_array_equal(simulation.run(poses[:5]), after)


def test_clips_of_one_and_two_frames_bake(bending):
    parameters, poses = bending.rig.parameters, bending.poses.parameters
    one = Clip.from_samples("one", parameters, [0.0], poses[1:2])
    two = Clip.from_samples("two", parameters, [0.0, 1 / 30], poses[[0, 1]])
    for clip in (one, two):
        for loop in (False, True):
            assert np.isfinite(Simulation(bending).bake(clip, 30, loop=loop).vertices).all()
    other = replace(one.parameters, names=tuple("x" + name for name in parameters.names))
    with pytest.raises(InputError, match="xupper"):
        Simulation(bending).bake(Clip.from_samples("other", other, [0.0], poses[1:2] + 1.0), 30)


@pytest.mark.parametrize("travel", [0.0, 2.0])
def test_a_loop_closes(bending, travel):
    times = np.arange(25) / 24
    frames = [
        pose(
            bending.rig,
            (0, 0, 0.5 + 0.4 * np.sin(2 * np.pi * t)),
            root_move=(travel * t, 0.05 * np.cos(2 * np.pi * t), 0),
        )
        for t in times
    ]
    clip = Clip.from_samples("loop", bending.rig.parameters, times, np.array(frames))
    simulation = Simulation(bending)
    bake = simulation.bake(clip, 60, loop=True, plain=True)
    assert len(bake) == 60
    assert bake.report.fps == pytest.approx(60.0)
    assert 1 <= bake.report.cycles <= 8
    assert bake.report.loop_step <= 1.05 * bake.report.usual_step
    flesh = bake.vertices - bake.plain
    steps = np.linalg.norm(np.roll(flesh, -1, axis=0) - flesh, axis=2).max(axis=1)
    assert steps[-1] == pytest.approx(bake.report.loop_step)
    assert np.linalg.norm(flesh, axis=2).max() > 1e-3
    once = simulation.bake(clip, 60, plain=True)
    opening = np.linalg.norm((once.vertices - once.plain)[[-1, 0]][0] - (once.vertices - once.plain)[0], axis=1).max()
    assert opening > 2.0 * bake.report.seam  # what the pre-roll has removed


def test_what_is_left_of_a_seam_is_spread_over_the_cycle(bending, monkeypatch):
    monkeypatch.setattr(baking, "MOST_CYCLES", 1)
    simulation = Simulation(bending)
    bake = simulation.bake(bending.clips[0], 60, loop=True)
    assert bake.report.cycles == 1
    assert bake.report.seam > 1e-3
    assert bake.report.loop_step <= 1.05 * bake.report.usual_step
    q = []
    for p in [*bake.poses, bake.poses[0]]:
        simulation.move(p)
        q.append(simulation.shown_coordinates())
    shares = np.arange(len(bake))[:, None] / len(bake)
    np.testing.assert_allclose(bake.coordinates, q[:-1] - shares * (q[-1] - q[0]), rtol=0, atol=1e-12)
