"""The viewer's builds and sketches, in processes of their own that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bodies_for_tests import beam, mass_norm, tip
from errands_for_tests import TINY, Told, children, until
from softrig.bases.modes import linear_modes
from softrig.bases.sketch import sketched_shapes
from softrig.errors import InputError
from softrig.forces.polynomial import reduce_body
from softrig.io.characters import load_character
from softrig.models.file import load_character_model
from softrig.pipeline.build import build
from softrig.project import Project
from softrig.viewer.errands import Errand
from softrig.viewer.progress import Progress
from softrig.viewer.sketching import Sketching
from softrig.viewer.workshop import Workshop

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


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
