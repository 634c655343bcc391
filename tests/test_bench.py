"""`softrig bench`: exponents, parts of a step, crowds, figures of the first paper, and peers that cannot be had."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pose_models_for_tests import bar_model
from softrig.bench import BENCHES, paper
from softrig.bench.breakdown import breakdown
from softrig.bench.crowd import FACTOR, MEMORY, Cast, crowd_rows, measured_crowds
from softrig.bench.environments import Environment, UnavailableError, environment_python, told
from softrig.bench.peers import PEERS, SCRIPTS, Peer, peer_rows
from softrig.bench.posespace import unseen_moments
from softrig.bench.record import Record, body_sizes, model_sizes
from softrig.bench.scaling import (
    LEANS,
    Axis,
    Made,
    axis_rows,
    measured_axes,
    measured_axis,
    polynomial_rows,
    scaling_record,
    slope,
)
from softrig.bench.sketching import drawn, solved
from softrig.bench.speed import tet_beam
from softrig.dynamics import Rayleigh
from softrig.machine import this_machine
from softrig.models.pose_space import WHOLE_BODY
from softrig.models.stepper import Stepper
from softrig.pipeline.pose_samples import FRAMES_A_SECOND

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "records"


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


# Exponents


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5, 4.0])
def test_slopes_of_powers_are_their_exponents(power: float) -> None:
    sizes = np.array([10, 25, 50, 100, 200])
    assert slope(sizes, 3e-5 * sizes**power) == pytest.approx(power, abs=1e-12)


def test_a_slope_sees_through_noise() -> None:
    sizes = np.geomspace(2e3, 128e3, 7)
    noise = np.exp(0.1 * np.random.default_rng(0).standard_normal(7))
    assert slope(sizes, sizes**1.3 * noise) == pytest.approx(1.3, abs=0.15)


def test_an_axis_of_small_models_has_a_row_a_size_and_its_exponents() -> None:
    axis = Axis("modes", (4, 8), lambda r: Made(bar_model(modes=r), 0.1 * r, 1e-3 * r), 3.0, "a bar")
    points = measured_axis(axis, quiet, rounds=5)
    rows = axis_rows(axis, points)
    assert [row.what for row in rows[:2]] == ["4 modes: step", "8 modes: step"]
    assert rows[0].also["build, s"] == pytest.approx(0.4)
    told = {row.what: row for row in rows[2:]}
    assert told["build against modes"].ours == pytest.approx(1.0)
    assert told["full step against modes"].ours == pytest.approx(1.0)
    assert told["step against modes"].others == {"PSSD": 3.0}
    record = scaling_record(rows, {"bar": model_sizes(points[-1].made.model)}, ["modes: a bar"])
    assert "exponent" in record.markdown()
    assert not rows[0].note
    points[0].made.model.notes["leans on tets"] = True
    assert axis_rows(axis, points)[0].note == LEANS
    found, sizes = measured_axes([axis], quiet)
    assert [row.what for row in found] == [row.what for row in rows]
    assert list(sizes) == ["largest of modes"]


@pytest.mark.parametrize(
    ("names", "count"), [((WHOLE_BODY,), 1), (("Arm", "Leg"), 2), ((WHOLE_BODY, "Arm", "Leg", "Hip"), 3)]
)
def test_regions_are_counted_without_the_whole_body(names: tuple[str, ...], count: int) -> None:
    assert model_sizes(replace(bar_model(), region_names=names))["regions"] == count


def test_polynomial_bodies_have_their_exponents() -> None:
    rows, sizes = polynomial_rows((4, 8), (4, 6))
    exponents = {row.what: row for row in rows if row.unit == "exponent"}
    assert exponents["StVK step against modes"].others == {"StVK05": 4.0}
    assert len(exponents) == 3
    assert sizes["beam"] == body_sizes(tet_beam((16, 4, 3)))


# Parts of a step


@pytest.mark.parametrize("black_box", [False, True])
def test_parts_of_a_step_leave_the_step_as_it_was(black_box: bool) -> None:
    model = bar_model(poses=2, black_box=black_box)
    stepper = Stepper(model, damping=Rayleigh(1.0, 1e-3))
    parts = breakdown(stepper, repeats=3)
    for timing in (parts.pose, parts.call, parts.inertial, parts.integration, parts.surface, parts.step):
        assert 0.0 < timing.least <= timing.median <= timing.p99
    assert min(parts.fitting, parts.internal) >= 0.0
    assert parts.core + parts.dynamics > 0.0
    assert parts.total > parts.step.least
    assert np.isfinite(stepper.q).all()
    assert stepper.counters["decayed"] == 0


# Crowds


def test_a_cast_moves_each_character_by_itself() -> None:
    model = bar_model(poses=2)
    room = np.zeros(3 * 3 * len(model.embedding_nodes), np.float32)
    cast = Cast(model, room, None, 0)
    cast.grow(2)
    for _ in range(5):
        cast.frame()
    shown = room.reshape(3, -1, 3)
    assert np.abs(shown[0] - shown[1]).max() > 1e-4
    assert not shown[2].any()
    alone = np.zeros_like(room)
    other = Cast(model, alone, None, 0)
    other.grow(1)
    for _ in range(5):
        other.frame()
    np.testing.assert_array_equal(shown[0], alone.reshape(3, -1, 3)[0])


def test_crowds_on_two_cores() -> None:
    model = bar_model(poses=2)
    crowds = measured_crowds(model, (1, 3), 2, frames=10)
    assert [crowd.characters for crowd in crowds] == [1, 3]
    assert all(0.0 < crowd.frame.least <= crowd.frame.p99 for crowd in crowds)
    rows = crowd_rows(model, crowds, 2, None)
    assert [row.what for row in rows] == ["1 character, r = 8, 2 cores", "3 characters, r = 8, 2 cores"]
    assert all(row.also[FACTOR] > 0.0 and row.also[MEMORY] > 1.0 for row in rows)


# StVK05


def test_the_figures_of_the_first_paper_have_its_figures_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "MODELS", {"spoon": paper.MODELS["spoon"]})
    fifth, eighth, eleventh = paper.figure_5(quiet), paper.figure_8(quiet), paper.figure_11(quiet)
    assert [row.others[paper.PAPER] for row in fifth.rows] == [2005, 60, 98]
    assert [row.others[paper.PAPER] for row in eighth.rows] == [24, 6.5, 33]
    assert [row.others[paper.PAPER] for row in eleventh.rows] == pytest.approx([17.7, 12.5, 30.2, 565, 275])
    for record in (fifth, eighth, eleventh):
        assert record.name in BENCHES
        assert all(row.ours is not None and row.ours > 0.0 for row in record.rows)
        assert record.sizes["spoon"]["modes"] == 12


def test_sketched_loads_are_solved_one_by_one() -> None:
    body = tet_beam((6, 2, 2))
    pulls = drawn(body, 9, 0.05)
    shapes, each = solved(body, pulls, quiet)
    assert shapes.shape == (body.size, 9)
    assert each.calls == 9
    assert each.least <= each.mean <= each.p99 + 1e-9


# Peers


def test_a_peer_that_cannot_be_installed_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(command: list[str], seconds: float) -> str:
        if "venv" in command:
            return ""
        words = "WARNING: Retrying\nERROR: No matching distribution found for nobody==9.9\n\n"
        return told([sys.executable, "-c", f"import sys; sys.exit({words!r})"], 60.0)

    monkeypatch.setattr("softrig.bench.environments.told", no_network)
    nobody = Environment("nobody", ("nobody==9.9",))
    peer = Peer("nobody 9.9", nobody, "run_mujoco.py", "full", 3, "anything")
    [row] = peer_rows([peer], tmp_path / "scene.npz", quiet, tmp_path / "cache")
    assert row.ours is None
    assert row.note == "could not be installed: No matching distribution found for nobody==9.9"
    assert not nobody.folder(tmp_path / "cache").exists()
    record = Record("peers", "Peers", this_machine(), [row], value="a step, least", notes="what it cannot do")
    assert "could not be installed" in record.markdown()


def fake_environment(folder: Path, environment: Environment) -> None:
    """As if it had been installed: our own interpreter."""
    home = environment.folder(folder)
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    (home / "ready").touch()


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_peer_that_fails_is_a_row(tmp_path: Path) -> None:
    broken = Environment("broken", ("nothing",))
    fake_environment(tmp_path, broken)
    peer = Peer("broken", broken, "run_mujoco.py", "full", 3, "anything")
    [row] = peer_rows([peer], tmp_path / "no-scene.npz", quiet, tmp_path)
    assert row.ours is None
    assert row.note.startswith("did not run: ")


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_peer_that_runs_tells_steps_and_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = Environment("works", ("nothing",))
    fake_environment(tmp_path, works)
    script = tmp_path / "run_anything.py"
    result = (
        '{"preprocessing": 2.0, "steps": [0.002, 0.001], "vertices": [], "freedoms": 9, "note": "slow", "moved": 0}'
    )
    script.write_text(f"print('noise')\nprint('RESULT ' + {result!r})\nprint('more')\n", encoding="utf-8")
    monkeypatch.setattr("softrig.bench.peers.SCRIPTS", tmp_path)
    [row] = peer_rows([Peer("works", works, script.name, "", 2, "no rig")], tmp_path / "scene.npz", quiet, tmp_path)
    assert row.ours == pytest.approx(1.0)
    assert row.median == pytest.approx(1.5)
    assert row.also == pytest.approx({"steps a second": 1e3 / 1.5, "preprocessing, s": 2.0, "degrees of freedom": 9.0})
    assert row.note == "no rig; slow"
    script.write_text(script.read_text(encoding="utf-8").replace('"moved": 0', '"moved": NaN'), encoding="utf-8")
    [row] = peer_rows([Peer("works", works, script.name, "", 2, "no rig")], tmp_path / "scene.npz", quiet, tmp_path)
    assert row.ours is None
    assert row.note.startswith("its motion diverged")


def test_a_command_that_takes_too_long_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="took more than"):
        told([sys.executable, "-c", "import time; time.sleep(30)"], 0.5)


def test_an_environment_that_is_ready_is_taken_as_it_is(tmp_path: Path) -> None:
    ready = Environment("ready", ("nothing",))
    (ready.folder(tmp_path)).mkdir(parents=True)
    (ready.folder(tmp_path) / "ready").touch()
    assert environment_python(ready, tmp_path).parent.parent == ready.folder(tmp_path)
    assert ready.folder(tmp_path) != Environment("ready", ("something",)).folder(tmp_path)


@pytest.mark.parametrize("script", sorted({peer.script for peer in PEERS}))
def test_scripts_of_peers_know_nothing_of_softrig(script: str) -> None:
    text = (SCRIPTS / script).read_text(encoding="utf-8")
    assert not re.search(r"^\s*(from|import) softrig", text, re.M)
    subprocess.run([sys.executable, "-m", "py_compile", str(SCRIPTS / script)], check=True)


@pytest.mark.parametrize("duration", [0.4, 1.2, 2.7])
def test_moments_between_the_poses_are_not_those_that_maps_are_fitted_at(duration: float) -> None:
    moments = unseen_moments(duration)
    steps = moments * FRAMES_A_SECOND
    np.testing.assert_allclose(steps - np.floor(steps), 0.5)
    assert 0.0 < moments[0] < moments[1] < duration
