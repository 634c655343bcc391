"""The demo and the benchmarks run, small, and check their own results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from softrig import __version__
from softrig.bench import BENCHES, run_benches
from softrig.bench.record import UNBROKEN, Record, Row, number
from softrig.cli import app
from softrig.demo import run_character_demo, run_demo
from softrig.errors import InputError
from softrig.io.characters import load_character
from softrig.machine import this_machine, timed
from softrig.models.file import load_model
from softrig.project import Project


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"), modes=10, seconds=1.5, fps=4.0)


def test_demo_writes_a_model_a_strip_an_animation_and_a_report(demo) -> None:
    assert {path.name for path in demo.files} == {
        "bridge.softrig",
        "strip.png",
        "drop.gif",
        "displacement.png",
        "report.html",
    }
    assert sorted(path.name for path in demo.folder.iterdir()) == sorted(path.name for path in demo.files)
    assert load_model(demo.folder / "bridge.softrig").size == 10
    page = (demo.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 3
    assert "<svg" in page
    with Image.open(demo.folder / "drop.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 6


def test_demo_bridge_is_as_large_as_promised_and_true(demo) -> None:
    assert abs(demo.bricks - 5900) < 100
    assert abs(demo.static_reduced / demo.static_full - 1.0) < 0.10


def test_demo_pictures_show_something(demo) -> None:
    for name in ("strip.png", "displacement.png"):
        with Image.open(demo.folder / name) as image:
            assert np.asarray(image.convert("L")).std() > 10.0


def test_benchmarks_have_a_table_and_a_record(tmp_path: Path) -> None:
    records = run_benches(["full"], tmp_path)
    stored = json.loads((tmp_path / "full.json").read_text(encoding="utf-8"))
    assert stored["name"] == records[0].name == "full"
    assert all(row["ours"] > 0.0 for row in stored["rows"])
    assert stored["machine"]["processor"]
    assert (tmp_path / "full.md").read_text(encoding="utf-8").startswith("## The unreduced body")


def test_unknown_benchmark_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no benchmark called wheels"):
        run_benches(["wheels"], tmp_path)
    assert "step" in BENCHES


def test_record_tables_leave_out_empty_columns() -> None:
    rows = [Row("a", "s", 1.0, others={"peer": 2.0}), Row("b", "ms", 0.5, median=0.75, goal=3.0)]
    head, lines = Record("x", "X", this_machine(), rows).table()
    assert head == ["", "unit", "softrig", "median", "goal", "peer"]
    assert lines == [["a", "s", "1", "", "", "2"], ["b", "ms", "0.5", "0.75", f"≤{UNBROKEN}3{UNBROKEN}✓", ""]]
    with pytest.raises(ValueError, match="not a number"):
        Row("c", "s", float("nan"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.5, "1,234"), (0.000123, "0.000123"), (1.234e-6, "1.23e-06"), (None, "")],
)
def test_numbers_have_three_figures(value, text) -> None:
    assert number(value) == text


def test_timing_counts_calls() -> None:
    calls = []
    timing = timed(lambda: calls.append(1), repeats=4, inner=3)
    assert len(calls) == 13
    assert timing.calls == 12
    assert 0.0 < timing.least <= timing.median <= timing.p99


def test_command_line_tells_its_version_and_refuses_nonsense(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).stdout == f"softrig {__version__}\n"
    assert runner.invoke(app, ["bench", "--nonsense"]).exit_code == 2
    result = runner.invoke(app, ["bench", "wheels", "--output", str(tmp_path)])
    assert isinstance(result.exception, InputError)


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
def test_the_character_demo_builds_bakes_and_shows(tmp_path: Path) -> None:
    settings = Project().changed(
        mesh={"tets": 800}, basis={"modes": 16, "derivatives": 6, "contact": False}, poses={"count": 2}
    )
    demo = run_character_demo(tmp_path, name="arm", clip="wave", settings=settings, frames=2, gif_fps=3.0)
    assert [path.name for path in demo.files] == [
        "arm.glb",
        "arm.softrig",
        "arm-wave-soft.glb",
        "arm-sheet.png",
        "arm-soft.gif",
        "arm-report.html",
    ]
    with Image.open(tmp_path / "arm-sheet.png") as sheet:
        foot = np.asarray(sheet.convert("RGB"))[-40:]
    # The scale stands below the pictures, on white.
    assert (foot[:, :100] == 255).all()
    assert (foot[:, foot.shape[1] // 2] < 255).any()
    with Image.open(tmp_path / "arm-soft.gif") as animation:
        frames = []
        for frame in range(getattr(animation, "n_frames", 1)):
            animation.seek(frame)
            frames.append(np.asarray(animation.convert("RGB")))
    moving = (np.stack(frames) != frames[0]).any(axis=(0, 3))
    width, foot = moving.shape[1] // 2, 60
    for half in (moving[:-foot, : width - 10], moving[:-foot, width + 10 :]):
        assert half.any()
        rim = [half[0], half[:, 0], half[:, -1]]
        assert not np.concatenate(rim).any(), "no frame has body or shadow cut off"
    page = (tmp_path / "arm-report.html").read_text(encoding="utf-8")
    assert page.index("<img") < page.index("<table")
    assert 1e-3 < demo.largest_offset < 0.2
    assert "wave.soft" in [clip.name for clip in load_character(tmp_path / "arm-wave-soft.glb").clips]
