"""The viewer's long work: builds, bakes and sketches in processes of their own, and takes that replay to the bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bodies_for_tests import beam, mass_norm, tip
from characters_for_tests import limb
from pose_models_for_tests import bar_model
from softrig.bases.modes import linear_modes
from softrig.bases.sketch import sketched_shapes
from softrig.errors import InputError
from softrig.forces.polynomial import reduce_body
from softrig.io.caches import read_npz, read_obj_sequence
from softrig.io.characters import load_character
from softrig.io.format_error import FileFormatError
from softrig.io.glb_animation import with_animation
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import load_character_model, save_model
from softrig.pipeline.build import build
from softrig.project import Project
from softrig.simulation import Damping, Plane, Simulation, Sphere
from softrig.viewer.errands import Errand
from softrig.viewer.jobs import even_frames, tuned_simulation
from softrig.viewer.progress import Progress
from softrig.viewer.recorder import Recorder
from softrig.viewer.sketching import Sketching
from softrig.viewer.takeaway import Takeaway
from softrig.viewer.takes import Replay, Take
from softrig.viewer.workshop import Workshop

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

TINY = Project().changed(
    mesh={"tets": 400},
    basis={"modes": 8, "regions": 1, "contact": False, "derivatives": 4},
    poses={"count": 2},
    cubature={"samples": 12},
    material={"preset": "fat"},
)
FRAME = 1.0 / 60.0
PATIENCE = 120.0


class Told(list):
    """What was told, as (level, text)."""

    def __call__(self, level: str, text: str) -> None:
        self.append((level, text))

    @property
    def errors(self) -> list[str]:
        return [text for level, text in self if level == "error"]


def until(condition, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def children() -> list[str]:
    """Errands that run anywhere below this process: their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = f"PPid:\t{os.getpid()}\n" in (entry / "status").read_text()
            except OSError:
                continue
            if mine and "errand_side" in line:
                found.append(line)
    return found


def group_members(group: int) -> list[int]:
    """Living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


# Builds


@pytest.fixture(scope="module")
def limb_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("limb") / "limb.glb"
    write_character_glb(limb(), path)
    return path


def workshop(folder: Path, limb_file: Path, project: Project = TINY, **options) -> SimpleNamespace:
    told, swapped = Told(), []
    source = folder / "limb.glb"
    source.write_bytes(limb_file.read_bytes())
    options = {"jobs": 1, **options}
    shop = Workshop(source, project, folder / "limb.toml", tell=told, swap=lambda *new: swapped.append(new), **options)
    return SimpleNamespace(shop=shop, told=told, swapped=swapped, folder=folder)


def test_a_build_runs_beside_and_its_model_is_swapped_in(tmp_path: Path, limb_file: Path) -> None:
    made = workshop(tmp_path, limb_file)
    assert made.shop.state == {"running": False, "stage": None, "done": 0.0, "left_s": None, "message": None}
    start = time.monotonic()
    assert made.shop.build()
    assert time.monotonic() - start < 0.3
    assert not made.shop.build()  # one at a time
    stages, shares = [], []
    while made.shop.running:
        state = made.shop.state
        if state["running"]:
            stages.append(state["stage"])
            shares.append(state["done"])
        time.sleep(0.005)
    assert made.told.errors == []
    assert {"Filling with tets", "Fitting the poses"} <= set(stages)
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] <= shares[-1] <= 1.0
    ((model, path),) = made.swapped
    assert path == tmp_path / "limb.softrig"
    assert np.array_equal(model.shapes, load_character_model(path).shapes)
    assert np.array_equal(model.shapes, build(load_character(tmp_path / "limb.glb"), TINY, jobs=1).shapes)
    assert ("info", "The new model is built.") in made.told
    made.shop.close()
    assert children() == []


def test_a_cancelled_build_leaves_no_process_and_its_finished_stages(tmp_path: Path, limb_file: Path) -> None:
    slow = TINY.changed(mesh={"tets": 1500}, basis={"modes": 60, "derivatives": 24}, poses={"count": 4})
    made = workshop(tmp_path, limb_file, slow, jobs=2)
    made.shop.build()
    until(lambda: made.shop.state["stage"] == "Finding shapes")
    group = made.shop._errand._process.pid
    assert len(group_members(group)) > 2  # it has workers of its own
    start = time.monotonic()
    made.shop.cancel()
    assert time.monotonic() - start < 0.1
    until(lambda: not made.shop.running, 10.0)
    assert time.monotonic() - start < 8.0
    until(lambda: group_members(group) == [], 5.0)  # a killed process takes a moment to be gone
    assert made.swapped == []
    assert made.told.errors == []
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == [".softrig-cache", "limb.glb"]  # no model, whole or half
    kept = sorted(entry.name for entry in (tmp_path / ".softrig-cache").iterdir())
    assert not [name for name in kept if name.startswith(".")]
    assert sum(name.startswith("fit-") for name in kept) == 3
    # What was finished is found again.
    quick = TINY.changed(mesh={"tets": 1500}, poses={"count": 4})
    made.shop._jobs = 1  # workers take their time to start
    assert made.shop.build(quick)
    until(lambda: not made.shop.running)
    assert made.told.errors == []
    stages = made.swapped[0][0].notes["stages"]
    assert {"flesh", "fit"} <= set(stages["reused"])
    assert not {"flesh", "fit"} & set(stages["made"])
    made.shop.close()
    assert children() == []


def test_a_failed_build_says_why_and_keeps_the_old_model(tmp_path: Path, limb_file: Path) -> None:
    made = workshop(tmp_path, limb_file)
    (tmp_path / "limb.softrig").write_bytes(b"the old one")
    made.shop.build(TINY.changed(material={"softness_map": "limb-softness.npy"}))
    until(lambda: not made.shop.running)
    assert "limb-softness.npy is not there" in made.told.errors[0]
    assert "limb-softness.npy" in made.shop.state["message"]
    assert made.swapped == []
    assert (tmp_path / "limb.softrig").read_bytes() == b"the old one"
    made.shop.close()


def test_closing_ends_a_build_quietly(tmp_path: Path, limb_file: Path) -> None:
    made = workshop(tmp_path, limb_file)
    made.shop.build()
    until(lambda: made.shop.state["stage"] not in (None, "Starting"))
    made.shop.close()
    assert not made.shop.running
    assert children() == []
    assert made.told == []
    assert made.swapped == []


def test_a_child_that_dies_is_reported() -> None:
    heard, ends = [], []
    errand = Errand({"do": "nothing like it"}, heard=heard.append, ended=lambda *end: ends.append(end))
    until(lambda: not errand.running)
    assert ends == [("KeyError: 'nothing like it'", None)]
    errand = Errand({"do": "build"}, heard=heard.append, ended=lambda *end: ends.append(end))
    until(lambda: errand._process is not None)
    os.kill(errand._process.pid, signal.SIGKILL)
    until(lambda: not errand.running)
    assert "SIGKILL" in ends[1][0]


def test_no_build_outlives_a_viewer_that_was_killed(tmp_path: Path, limb_file: Path) -> None:
    slow = TINY.changed(mesh={"tets": 3000}, basis={"modes": 60}, poses={"count": 4}, cubature={"samples": 400})
    code = f"""
import sys, time
from pathlib import Path
from softrig.project import Project
from softrig.viewer.workshop import Workshop
project = Project.model_validate({slow.model_dump(mode="json")!r})
shop = Workshop(Path({str(limb_file)!r}), project, None, Path({str(tmp_path / "a.softrig")!r}),
                tell=lambda *_: None, swap=lambda *_: None, jobs=1)
shop.build()
while shop.state["stage"] != "Fitting the poses":
    time.sleep(0.01)
print(shop._errand._process.pid, flush=True)
time.sleep(60)
"""
    (tmp_path / "scratch").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    viewer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    group = int(viewer.stdout.readline())
    assert group_members(group)
    viewer.kill()
    viewer.wait()
    until(lambda: not group_members(group), 10.0)
    assert not (tmp_path / "a.softrig").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_time_left_follows_the_pace_and_not_stages_that_were_found() -> None:
    now = [0.0]
    progress = Progress({"a": 1.0, "b": 4.0, "c": 5.0}, clock=lambda: now[0])
    assert progress.left is None
    progress.hear({"stage": "a"})
    now[0] += 0.1  # found in the cache
    progress.hear({"stage": "b"})
    assert progress.done == pytest.approx(0.1)
    assert progress.left is None
    now[0] += 10.0
    progress.hear({"part": [1, 2]})
    assert progress.done == pytest.approx(0.3)
    assert progress.left == pytest.approx(10.0 + 25.0)
    now[0] += 10.0
    progress.hear({"stage": "c"})
    assert progress.left == pytest.approx(25.0)
    now[0] += 5.0
    assert progress.left == pytest.approx(20.0)


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
    with pytest.raises(InputError, match="no clip nope"):
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


# Sketches


def test_a_sketched_basis_knows_the_pulls_it_was_made_of() -> None:
    """The whole loop of StVK05 §5.2: pull, record, static solves, basis, and the body that plays on."""
    full = beam(lengths=(1.0, 0.12, 0.1), counts=(6, 1, 1))
    old = reduce_body(full, linear_modes(full, 3).shapes)
    told, swapped = Told(), []
    sketching = Sketching(full, old, tell=told, swap=swapped.append)
    try:
        sketching.pulled(tip(full), np.ones((4, 3)))  # not yet recording
        sketching.record(True)
        for side in (-1.0, 0.0, 1.0):
            for share in np.linspace(0.0, 1.0, 24):
                force = np.tile([0.0, 0.5 * side * share, -1.0 * share], (4, 1))
                for _ in range(3):  # frames go faster than a hand
                    sketching.pulled(tip(full), force)
            sketching.pulled(np.zeros(0, int), np.zeros((0, 3)))
        sketching.record(False)
        sketching.pulled(tip(full), 9.0 * np.ones((4, 3)))
        kept = list(sketching.pulls)
        assert 20 <= len(kept) <= 70
        assert sketching.state["pulls"] == len(kept)
        start = time.monotonic()
        assert sketching.build(9)
        assert time.monotonic() - start < 0.3
        assert sketching.running
        assert not sketching.build(9)
        until(lambda: not sketching.running)
        assert told.errors == []
        (new,) = swapped
        assert 3 < new.size <= 9
        strongest = max(kept, key=lambda pull: np.linalg.norm(pull.forces))
        shape = sketched_shapes(full, [strongest])[:, 0]

        def missed(model) -> float:
            basis = full.restrict(model.basis.reshape(len(full.mesh.vertices), 3, -1))
            return mass_norm(full, shape - basis @ (basis.T @ (full.mass @ shape))) / mass_norm(full, shape)

        assert missed(new) < 0.02
        assert missed(new) < 0.2 * missed(old)
        assert sketching.build(200)  # as many as there are
        until(lambda: not sketching.running)
        assert swapped[1].size >= new.size
        sketching.clear()
        with pytest.raises(InputError, match="no pulls"):
            sketching.build(5)
    finally:
        sketching.close()
    assert children() == []


def test_what_cannot_be_sketched_is_said() -> None:
    full = beam()
    model = reduce_body(full, linear_modes(full, 2).shapes)
    nothing = {"tell": Told(), "swap": lambda _: None}
    for body, why in (
        (None, "body=full_body"),
        (beam(counts=(2, 1, 1)), "vertices"),
        (beam(law="corotational"), "stvk"),
    ):
        sketching = Sketching(body, model, **nothing)
        assert not sketching.possible
        with pytest.raises(InputError, match=why):
            sketching.record(True)
        with pytest.raises(InputError, match=why):
            sketching.build(3)
        sketching.close()
    loose = beam(free=True)
    sketching = Sketching(loose, model, **nothing)
    assert not sketching.possible
    sketching.close()
    sketching = Sketching(full, model, **nothing)
    sketching.record(True)
    with pytest.raises(InputError):
        sketching.pulled(np.array([10**6]), np.ones((1, 3)))
    sketching.close()
