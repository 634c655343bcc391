"""The viewer's takes, which replay to the bit, and what can be taken away of them and of clips."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from errands_for_tests import TINY, Told, children, until
from pose_models_for_tests import bar_model
from softrig.errors import InputError
from softrig.io.caches import read_npz, read_obj_sequence
from softrig.io.characters import load_character
from softrig.io.format_error import FileFormatError
from softrig.io.glb_animation import with_animation
from softrig.models.file import save_model
from softrig.pipeline.build import build
from softrig.simulation import Damping, Plane, Simulation, Sphere
from softrig.viewer.jobs import even_frames, tuned_simulation
from softrig.viewer.recorder import Recorder
from softrig.viewer.takeaway import Takeaway
from softrig.viewer.takes import Replay, Take

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

FRAME = 1.0 / 60.0

# Takes


@pytest.fixture(scope="module")
def model():
    return bar_model(3, regions=2)


def played(simulation: Simulation, recorder: Recorder) -> np.ndarray:
    """Eighty frames in which everything happens; the vertices."""
    clip, shown = simulation.model.clips[0], []
    pull = None
    for k in range(80):
        p = clip.sample(k / 60.0 + (0.4 if k >= 45 else 0.0))[0]
        if k == 8:
            simulation.wind = (0.0, 0.0, 30.0)
        if k == 10:
            pull = simulation.pull(5, np.array([0.0, 3.0, 0.0]))
        if 10 < k < 30:
            pull.force = np.array([0.0, 3.0, 0.1 * k])
        if k == 20:
            simulation.colliders = (Plane((0.0, -0.05, 0.0), (0.1, 1.0, 0.3), 0.3), Sphere((0.3, 0.1, 0.0), 0.05))
        if k == 30:
            pull.release()
        if k == 35:
            simulation.damping = Damping(0.3)
            simulation.stepper.stiffness_scale = [2.0, 0.5]
            simulation.stepper.inertia_scale = 1.5
        if k == 40:
            simulation.colliders = ()
        if k == 50:  # made still
            simulation.reset()
            simulation.move(p, FRAME)
        if k == 60:  # asked something, and put back
            before = simulation.state()
            simulation.move(p, FRAME)
            simulation.restore(before)
        if k == 65:
            simulation.stepper.sag_free = False
        with recorder.frame(simulation, p, FRAME, cut=k == 45):
            if k == 45:
                simulation.cut()
            simulation.move(p, FRAME)
        simulation.show(simulation.parameters.rest, np.zeros(simulation.model.mode_count))
        shown.append(simulation.show(p, simulation.shown_coordinates()).copy())
    return np.array(shown)


@pytest.fixture(scope="module")
def recorded(model) -> SimpleNamespace:
    simulation = Simulation(model)
    for k in range(20):
        simulation.step(model.clips[0].sample(k / 60.0)[0])
    recorder = Recorder(simulation, "take 1")
    vertices = played(simulation, recorder)
    return SimpleNamespace(take=recorder.finish(), vertices=vertices, simulation=simulation)


def test_a_take_replays_to_the_bit(recorded, model, tmp_path: Path) -> None:
    assert recorded.take.duration == pytest.approx(79 / 60.0)
    recorded.take.save(tmp_path / "take.npz")
    loaded = Take.load(tmp_path / "take.npz")
    assert loaded.name == "take 1"
    assert np.array_equal(loaded.vertices(model), recorded.vertices)
    # On the very simulation that goes on playing, which is as before afterwards.
    before = recorded.simulation.state().stepper
    frames = np.array(list(loaded.replay(recorded.simulation)))
    assert np.array_equal(frames, recorded.vertices)
    after = recorded.simulation.state().stepper
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert recorded.simulation.damping == Damping(0.3)
    # What is recorded matters: nothing of it is there by chance.
    for name, columns in (("pull_forces", slice(None)), ("setting_rows", slice(None)), ("collider_rows", slice(1, 4))):
        wrong = loaded.arrays[name].copy()
        wrong[:, columns] *= 1.001
        harmed = replace(loaded, arrays={**loaded.arrays, name: wrong})
        assert not np.array_equal(harmed.vertices(model), recorded.vertices)
    assert recorded.take.arrays["key_frames"].tolist()[0] == 0
    assert 50 in recorded.take.arrays["key_frames"]
    assert 60 not in recorded.take.arrays["key_frames"]


def test_frames_can_be_replayed_one_by_one(recorded, model) -> None:
    simulation = Simulation(model)
    held = simulation.pull(5, np.array([0.0, 0.0, 1.0]))
    playing = Replay(recorded.take, simulation)
    assert simulation.pulls == ()
    for wanted in recorded.vertices[:40]:
        step = playing.next()
        if step.cut:
            simulation.cut()
        assert np.array_equal(simulation.step(step.pose, step.seconds), wanted)
    playing.close()
    assert simulation.pulls == (held,)
    assert simulation.colliders == ()
    assert simulation.next_frame == "first"


def test_a_take_belongs_to_its_model(recorded, model) -> None:
    for other in (bar_model(2), model.with_modes(4)):
        with pytest.raises(InputError, match="another model"):
            next(recorded.take.replay(Simulation(other)))
    with pytest.raises(InputError, match="steps a second"):
        next(recorded.take.replay(Simulation(model, rate=240.0)))
    recorder = Recorder(Simulation(model))
    with pytest.raises(InputError, match="nothing was recorded"):
        recorder.finish()
    with recorder.frame(Simulation(model), model.rig.parameters.rest, FRAME):
        pass
    assert recorder.full  # the simulation became another one
    assert len(recorder) == 0


def test_fewer_modes_are_remembered(model) -> None:
    simulation = Simulation(model, modes=4)
    recorder = Recorder(simulation)
    shown = []
    for k in range(10):
        p = model.clips[0].sample(k / 60.0)[0]
        with recorder.frame(simulation, p, FRAME):
            shown.append(simulation.step(p, FRAME).copy())
    assert np.array_equal(recorder.finish().vertices(model), shown)


@pytest.mark.parametrize(
    "harm",
    [
        {"pull_patches": np.array([99])},
        {"pull_starts": np.arange(81) * 2},
        {"key_frames": np.array([0, 5])},
        {"key_starts": np.array([0, 10**12])},
        {"collider_starts": np.array([0, -5])},
        {"seconds": np.full(80, np.nan)},
        {"seconds": np.full(80, -1.0)},
        {"poses": np.zeros((3, 20))},
        {"poses": np.zeros((0, 20))},
        {"setting_frames": np.array([1])},
        {"patch_shares": np.zeros(0)},
        {"cuts": np.zeros(80)},
        {"extra": np.zeros(1)},
        {"document": np.frombuffer(b"[1, 2]", np.uint8)},
        {"document": np.frombuffer(b'{"softrig take": 99}', np.uint8)},
        {"document": np.frombuffer(b"\xff\xfe", np.uint8)},
    ],
)
def test_takes_that_are_none_are_refused(recorded, tmp_path: Path, harm: dict[str, np.ndarray]) -> None:
    path = tmp_path / "bad.npz"
    document = {"softrig take": 1, "name": "x", **recorded.take.about}
    arrays = {"document": np.frombuffer(json.dumps(document).encode(), np.uint8), **recorded.take.arrays}
    np.savez(path, **arrays)
    Take.load(path)
    np.savez(path, **(arrays | harm))
    with pytest.raises(FileFormatError):
        Take.load(path)


def test_states_that_fit_no_simulation_are_refused(recorded, model, tmp_path: Path) -> None:
    def harmed(**harm: np.ndarray) -> Take:
        return replace(recorded.take, arrays={**recorded.take.arrays, **harm})

    starts, values = recorded.take.arrays["key_starts"], recorded.take.arrays["key_values"]
    short = harmed(key_values=values[: len(values) // 2], key_starts=starts // 2)
    nothing = harmed(key_values=np.full_like(values, np.nan))
    outside = harmed(patch_vertices=np.full_like(recorded.take.arrays["patch_vertices"], 10**6))
    rows = recorded.take.arrays["collider_rows"].copy()
    rows[:, 0] = 7.0
    for take in (short, nothing, outside, harmed(collider_rows=rows)):
        with pytest.raises(InputError):
            take.vertices(model)
    path = tmp_path / "pickle.npz"
    np.savez(path, document=np.array([print], dtype=object))
    with pytest.raises(FileFormatError, match="pickle"):
        Take.load(path)


def test_uneven_frames_are_made_even(recorded, model) -> None:
    take, vertices = recorded.take, recorded.vertices
    times, same, _ = even_frames(take, vertices, 60.0, model.rig.parameters)
    assert same is vertices
    assert np.allclose(np.diff(times), FRAME)
    times, fewer, poses = even_frames(take, vertices, 30.0, model.rig.parameters)
    assert np.allclose(fewer, vertices[::2], atol=1e-6)
    assert np.allclose(poses, model.rig.parameters.normalised(take.arrays["poses"][::2]), atol=1e-9)
    assert len(times) == 40


# Takeaway

SETTINGS = {
    "damping_ratio": 0.05,
    "gravity": "full",
    "inertia": 1.4,
    "modes": 6,
    "stiffness": {"region 0": 0.5, "region 1": 2.0},
    "wind": [0.0, 0.0, 20.0],
    "preset": None,
}


@pytest.fixture
def away(tmp_path: Path):
    told = Told()
    takeaway = Takeaway(tmp_path, told)
    yield SimpleNamespace(takeaway=takeaway, told=told, folder=tmp_path)
    takeaway.close()
    assert children() == []


def finished(away, job: str) -> dict:
    def state() -> dict:
        return next(entry for entry in away.takeaway.jobs if entry["id"] == job)

    until(lambda: state()["url"] or state()["failed"])
    return state()


def test_a_bake_is_what_live_stepping_shows_with_the_same_settings(away, model) -> None:
    clip = model.clips[0]
    job = away.takeaway.bake(model, None, "wave", ".npz", SETTINGS)
    state = finished(away, job)
    assert state["failed"] is None
    assert state["done"] == 1.0
    assert state["url"] == f"/files/{job}/wave.npz"
    baked = read_npz(away.takeaway.file(job))
    live = Simulation(model, modes=6, damping=Damping(0.05), gravity="full", inertia=1.4)
    live.stepper.stiffness_scale = [0.5, 2.0]
    live.wind = (0.0, 0.0, 20.0)
    frames = np.array([live.step(p, FRAME).copy() for p in clip.resample(60.0)[1]])
    assert np.array_equal(baked.positions, frames)
    plain = Simulation(model)
    other = np.array([plain.step(p, FRAME).copy() for p in clip.resample(60.0)[1]])
    assert np.abs(other - frames).max() > 1e-3  # the settings count
    tuned = tuned_simulation(model, SETTINGS)
    assert np.array_equal(np.array([tuned.step(p).copy() for p in clip.resample(60.0)[1]]), frames)


def test_several_files_come_in_one_archive_and_are_forgotten(away, model, tmp_path: Path) -> None:
    two = replace(model, clips=(model.clips[0], replace(model.clips[0], name="again", duration=0.2)))
    save_model(two, tmp_path / "bar.softrig")
    everything = away.takeaway.bake(two, tmp_path / "bar.softrig", "all", "npz")
    frames = away.takeaway.bake(two, tmp_path / "bar.softrig", "again", ".obj")
    assert finished(away, everything)["failed"] is None
    with zipfile.ZipFile(away.takeaway.file(everything)) as pack:
        assert sorted(pack.namelist()) == ["again.npz", "wave.npz"]
    finished(away, frames)
    with zipfile.ZipFile(away.takeaway.file(frames)) as pack:
        assert len(pack.namelist()) == 13
        pack.extractall(tmp_path / "objs")
    assert len(read_obj_sequence(tmp_path / "objs", "again", fps=60.0).positions) == 13
    path = away.takeaway.file(frames)
    away.takeaway.forget(frames)
    assert not path.exists()
    with pytest.raises(InputError, match="no such file"):
        away.takeaway.file(frames)
    with pytest.raises(InputError, match="no clip 'nope'"):
        away.takeaway.bake(two, None, "nope", ".npz")
    with pytest.raises(InputError, match=r"cannot write \.exe"):
        away.takeaway.bake(two, None, "wave", ".exe")
    for wrong in ("", "../x", "0" * 16):
        with pytest.raises(InputError):
            away.takeaway.file(wrong)


def test_a_bake_that_fails_says_why(away, model) -> None:
    state = finished(away, away.takeaway.bake(model, None, "wave", ".glb"))
    assert "which file 'bar' came from" in state["failed"]
    assert state["url"] is None
    until(lambda: len(away.told.errors) == 1)


def test_closing_stops_what_is_at_work_and_leaves_nothing(model, tmp_path: Path) -> None:
    long = replace(model, clips=(replace(model.clips[0], duration=500.0),))
    takeaway = Takeaway(tmp_path, Told())
    first = takeaway.bake(long, None, "wave", ".npz")
    takeaway.bake(long, None, "wave", ".npz")
    until(lambda: takeaway.jobs[0]["done"] > 0.0)
    (line,) = children()  # one after the other
    assert "errand_side" in line
    takeaway.forget(first)
    until(lambda: takeaway.jobs[0]["done"] > 0.0)
    takeaway.close()
    assert children() == []
    assert list(tmp_path.iterdir()) == []


def test_a_take_can_be_taken_away_as_itself_and_as_a_cache(away, recorded, model) -> None:
    saved = away.takeaway.save_take(recorded.take)
    cache = away.takeaway.bake_take(model, None, recorded.take, ".npz")
    assert finished(away, saved)["url"].endswith("/take%201.npz")
    assert np.array_equal(Take.load(away.takeaway.file(saved)).vertices(model), recorded.vertices)
    finished(away, cache)
    found = read_npz(away.takeaway.file(cache))
    assert np.array_equal(found.positions, recorded.vertices)
    assert np.allclose(np.diff(found.times), FRAME)


def test_a_take_becomes_an_animation_of_the_characters_own_file(away, limb_file: Path, tmp_path: Path) -> None:
    source = tmp_path / "limb.glb"
    source.write_bytes(limb_file.read_bytes())
    character = load_character(source)
    model = build(character, TINY, jobs=1)
    save_model(model, tmp_path / "limb.softrig")
    simulation = Simulation(model)
    recorder = Recorder(simulation, "my take")
    shown = []
    pull = simulation.pull(len(model.embedding_nodes) - 1, np.array([0.0, 2.0, 0.0]))
    index = character.rig.parameters.index("smile.weight")
    for k in range(30):
        p = character.clip("bend").sample(0.02 * k)[0]
        p[index] = 0.5 * k / 30.0
        pull.force = np.array([0.0, 0.1 * k, 0.0])
        with recorder.frame(simulation, p, FRAME):
            shown.append(simulation.step(p, FRAME).copy())
    job = away.takeaway.bake_take(model, tmp_path / "limb.softrig", recorder.finish(), ".glb")
    assert finished(away, job)["failed"] is None
    baked = load_character(away.takeaway.file(job))
    assert {"bend", "shake", "my take", "my take.soft"} <= {clip.name for clip in baked.clips}
    times, poses = baked.clip("my take.soft").resample(60.0)
    assert len(times) == 30
    off = max(np.abs(baked.rig.positions(p) - wanted).max() for p, wanted in zip(poses, shown, strict=True))
    assert off < 1e-3
    plain = baked.clip("my take").resample(60.0)[1]
    assert max(np.abs(baked.rig.positions(p) - w).max() for p, w in zip(plain, shown, strict=True)) > 3.0 * off
    baked_clip = finished(away, away.takeaway.bake(model, tmp_path / "limb.softrig", "bend", ".glb"))
    assert baked_clip["failed"] is None


def test_an_added_animation_changes_nothing_else(limb_file: Path) -> None:
    character = load_character(limb_file, scale=0.5)
    source = limb_file.read_bytes()
    times, poses = character.clip("bend").resample(30.0)
    content = with_animation(source, character, "again", times, poses, scale=0.5)
    path = limb_file.with_name("grown.glb")
    path.write_bytes(content)
    grown = load_character(path, scale=0.5)
    assert [clip.name for clip in grown.clips] == [*(clip.name for clip in character.clips), "again"]
    for name in ("again", "bend"):
        for p, wanted in zip(grown.clip(name).resample(30.0)[1][::9], poses[::9], strict=True):
            assert np.abs(grown.rig.positions(p) - character.rig.positions(wanted)).max() < 1e-6
    still = with_animation(source, character, "still", times, np.tile(character.rig.parameters.rest, (len(times), 1)))
    path.write_bytes(still)
    assert load_character(path).clips[-1].name == "still"
    other = replace(character, skeleton=replace(character.skeleton, names=("a",) * len(character.skeleton)))
    with pytest.raises(InputError, match="nodes of the file"):
        with_animation(source, other, "x", times, poses)
