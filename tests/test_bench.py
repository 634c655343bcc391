"""`softrig bench`: records, pages that show them, exponents, crowds, and peers that cannot be had."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pose_models_for_tests import bar_model
from softrig.bench import BENCHES, fill_pages, listing, paper, run_benches
from softrig.bench.breakdown import breakdown
from softrig.bench.catalogue import Bench
from softrig.bench.crowd import FACTOR, MEMORY, Cast, crowd_rows, measured_crowds
from softrig.bench.environments import Environment, UnavailableError, environment_python, told
from softrig.bench.pages import MARKED, filled, marked_records, read_records
from softrig.bench.peers import PEERS, SCRIPTS, Peer, peer_rows
from softrig.bench.posespace import unseen_moments
from softrig.bench.record import UNBROKEN, Record, Row, body_sizes, model_sizes, read_record, timing_row
from softrig.bench.run import announcement, chosen_benches, measured
from softrig.bench.scaling import (
    Axis,
    Made,
    axes,
    axis_rows,
    measured_axis,
    polynomial_rows,
    scaling_record,
    slope,
    tets_record,
)
from softrig.bench.sketching import drawn, solved
from softrig.bench.speed import tet_beam
from softrig.cli import app
from softrig.dynamics import Rayleigh
from softrig.errors import InputError
from softrig.machine import Timing, this_machine
from softrig.models.stepper import Stepper
from softrig.pipeline.pose_samples import FRAMES_A_SECOND

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "records"


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


def example(name: str = "example") -> Record:
    rows = [
        timing_row("step", "ms", Timing(1e-4, 2e-4, 3e-4, 100), goal=0.25, others={"PSSD": 1.33}, also={"tets": 12.0}),
        Row("peer", "ms", None, note="could not be installed: a | b"),
        Row("speed-up", "×", 190.0),
    ]
    sizes = {"bar": {"tets": 200, "modes": 8}}
    return Record(name, "An example", this_machine(), rows, "A remark.", sizes, date="2026-01-02", load=(0.25, 1.5))


# Records


def test_a_record_comes_back_from_its_file(tmp_path: Path) -> None:
    record = replace(example(), seconds=3.5)
    record.write(tmp_path)
    assert read_record(tmp_path / "example.json") == record
    assert (tmp_path / "example.md").read_text(encoding="utf-8") == record.markdown()


def test_a_record_says_what_on_what_when_and_how_busy() -> None:
    content = json.loads(example().json())
    row = content["rows"][0]
    assert (row["ours"], row["median"], row["p99"]) == pytest.approx((0.1, 0.2, 0.3))
    assert content["sizes"] == {"bar": {"tets": 200, "modes": 8}}
    assert content["machine"]["versions"]["softrig"]
    assert content["load"] == [0.25, 1.5]
    assert content["date"] == "2026-01-02"


def test_the_table_has_published_figures_beside_ours_and_keeps_its_columns() -> None:
    text = example().markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == "|  | unit | softrig | median | 99 % | goal | PSSD | tets | remark |"
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    assert lines[2] == f"| step | ms | 0.1 | 0.2 | 0.3 | ≤{UNBROKEN}0.25{UNBROKEN}✓ | 1.33 | 12 |  |"
    assert lines[3].endswith("| could not be installed: a \\| b |")
    assert "Sizes: bar: 200 tets, 8 modes." in text
    assert text.rstrip().endswith("Load 0.25 at the start, 1.50 at the end.")


@pytest.mark.parametrize("where", ["median", "p99"])
def test_no_figure_is_not_a_number(where: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        Row("a", "s", 1.0, **{where: float("nan")})
    with pytest.raises(ValueError, match="not a number"):
        Row("a", "s", None, also={"x": float("nan")})


@pytest.mark.parametrize("content", ["", "[]", '{"rows": []}', '{"name": "a", "rows": [{}], "machine": {}}'])
def test_what_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json is no record"):
        read_record(tmp_path / "bad.json")


def test_a_run_stamps_date_load_and_duration() -> None:
    bare = replace(example(), date="", load=None)
    record = measured(Bench(lambda update: bare, "nothing", 0.1), "example")
    assert record.seconds is not None
    assert record.load is not None
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", record.date)
    assert record.rows == bare.rows


def test_long_runs_take_the_longer_form() -> None:
    short, long = example("short"), example("long")
    bench = Bench(lambda update: short, "two forms", 0.1, longer=lambda update: long, longer_minutes=30.0)
    assert measured(bench, "forms").name == "short"
    assert measured(bench, "forms", long=True).name == "long"
    assert bench.expected(long=True) == 30.0


def test_benchmarks_say_what_they_are_and_how_long_they_take() -> None:
    lines = listing()
    assert len(lines) == len(BENCHES)
    assert all(re.search(r"\((\d+ s|\d+ min)", line) for line in lines)
    usual, all_of_them = chosen_benches([]), chosen_benches([], long=True)
    long = {"fidelity", "fidelity-others", "fidelity-sweep", "pssd-table-1", "pssd-table-3", "scaling-tets"}
    assert long == set(all_of_them) - set(usual)
    assert list(all_of_them) == list(BENCHES)
    assert sum(bench.expected() for bench in usual.values()) < 20.0
    assert "about" in announcement(usual)
    wanted = ("pssd-table-2", "stvk05-fig-5", "stvk05-fig-8", "stvk05-fig-10", "stvk05-fig-11")
    assert {*wanted, "peers", "scaling", "crowd"} <= set(usual)


def test_the_command_lists_and_fills(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "--list"])
    assert result.exit_code == 0
    assert "pssd-table-2" in result.stdout
    example().write(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- record: example -->\n<!-- end record -->\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["bench", "--fill", str(page), "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| step | ms |" in page.read_text(encoding="utf-8")


# Pages


def test_a_page_is_filled_once_and_stays() -> None:
    records = {"example": example()}
    page = "# A\n\n<!-- record: example -->\nold\n<!-- end record -->\n\nb\n"
    once = filled(page, records)
    assert once.startswith("# A\n\n<!-- record: example -->\n|  | unit |")
    assert once.endswith("at the end.</p>\n</details>\n<!-- end record -->\n\nb\n")
    assert "old" not in once
    assert filled(once, records) == once
    assert marked_records(once) == ["example"]


def test_one_figure_stands_in_a_sentence() -> None:
    page = "A step: <!-- record: example: step -->?<!-- end record -->"
    page += ", <!-- record: example: speed-up --><!-- end record -->."
    assert re.sub(r"<!--.*?-->", "", filled(page, {"example": example()})) == "A step: 0.1 ms, 190×."


def test_rows_of_several_things_have_a_table_each() -> None:
    rows = [Row(f"{of}: {what}", "%", 5.0) for of in ("an arm", "a leg") for what in ("ours", "theirs", "both")]
    record = replace(example(), rows=rows)
    told = record.folded()
    assert told.index("**An arm**") < told.index("| theirs | % | 5 |") < told.index("**A leg**")
    assert "| an arm: theirs |" in record.body()
    assert record.row("a leg: both").ours == 5.0
    for apart in (rows[:1] + rows[3:4], [*rows, Row("a foot", "%", 1.0)]):
        assert replace(record, rows=apart).groups() == [("", apart)], "few rows each, or one that is of nothing"


def test_a_page_may_choose_among_further_figures() -> None:
    rows = [Row("step", "ms", 1.0, also={"bytes": 4.0, "cells": 5.0, "µs, all": 6.0})]
    records = {"example": replace(example(), rows=rows)}
    page = filled("<!-- record: example | cells | µs, all --><!-- end record -->", records)
    assert "|  | unit | softrig | cells | µs, all |" in page
    assert filled(page, records) == page
    assert "bytes" in records["example"].body()
    for wrong, why in (("example | cell", "no column cell"), ("example: step | cells", "one row of it without")):
        with pytest.raises(InputError, match=why):
            filled(f"<!-- record: {wrong} --><!-- end record -->", records)
    with pytest.raises(InputError, match="shows one record"):
        filled("<!-- record: example other --><!-- end record -->", records | {"other": records["example"]})


def test_many_sources_share_a_column() -> None:
    rows = [Row("step", "ms", 1.0, others={name: 2.0}) for name in ("one", "two", "three")]
    assert replace(example(), rows=rows[:2]).table()[0] == ["", "unit", "softrig", "one", "two"]
    head, lines = replace(example(), rows=rows).table()
    assert head == ["", "unit", "softrig", "beside it"]
    assert [line[-1] for line in lines] == ["one: 2", "two: 2", "three: 2"]
    both = Row("step", "ms", 1.0, others={"PSSD, 8 threads": 2.0, "PSSD, one core": 3.0})
    assert replace(example(), rows=[*rows, both]).table()[1][-1][-1] == "PSSD, 8 threads: 2; PSSD, one core: 3"


def test_goals_that_are_missed_are_listed() -> None:
    rows = [Row("near", "%", 3.0, goal=4.0), Row("far", "%", 5.0, goal=4.0), Row("free", "%", 9.0)]
    bad, good = replace(example(), rows=rows), replace(example(), name="good", rows=rows[:1])
    page = "<!-- missed: example good --><!-- end record -->"
    text = filled(page, {"example": bad, "good": good})
    assert "2 of 3 goals are met; these are not:" in text
    assert "| far | 5 % | ≤ 4 % |" in text
    assert "near" not in text
    assert marked_records(text) == ["example", "good"]
    lost = replace(bad, rows=[*rows, Row("lost", "%", None, goal=4.0, note="did not come | through")])
    text = filled(page, {"example": lost, "good": good})
    assert "2 of 4 goals are met; these are not:" in text, "what could not be measured is not met"
    assert "| lost | did not come \\| through | ≤ 4 % |" in text
    assert replace(bad, rows=[Row("close", "%", 4.0004, goal=4.0)]).rows[0].told() == "4.0004 %"
    assert Row("on it", "%", 4.0, goal=4.0).is_met
    assert "1 of 1 goals are met." in filled("<!-- missed: good --><!-- end record -->", {"good": good})
    assert [cells[3] for cells in bad.table()[1]] == [f"≤{UNBROKEN}4{UNBROKEN}✓", f"≤{UNBROKEN}4{UNBROKEN}✗", ""]


def test_a_page_says_when_and_on_what() -> None:
    record = example()
    text = filled("<!-- measured: example --><!-- end record -->", {"example": record})
    assert f"{record.date} on {record.machine.processor}, {record.machine.cores} cores" in text


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("<!-- record: nothing --><!-- end record -->", "no record called 'nothing'"),
        ("<!-- record: example: jump --><!-- end record -->", "no row 'jump'"),
        ("<!-- record: example -->", "without its end"),
        ("<!-- end record -->", "without its beginning"),
    ],
)
def test_a_page_that_cannot_be_filled_says_why(page: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        filled(page, {"example": example()})


def test_folders_of_pages_are_filled(tmp_path: Path) -> None:
    example().write(tmp_path / "records")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "a.md"
    page.write_text("<!-- record: example: step --><!-- end record -->", encoding="utf-8")
    assert fill_pages([tmp_path / "docs"], tmp_path / "records") == [page]
    assert fill_pages([tmp_path / "docs"], tmp_path / "records") == []
    table = tmp_path / "records" / "example.md"
    table.write_text("of an older form", encoding="utf-8")
    assert fill_pages([tmp_path / "docs"], tmp_path / "records") == [table]
    assert table.read_text(encoding="utf-8") == read_record(table.with_suffix(".json")).markdown()
    with pytest.raises(InputError, match="no page or folder"):
        fill_pages([tmp_path / "nowhere"], tmp_path / "records")


# What is committed


def committed() -> list[Path]:
    return sorted(RECORDS.glob("*.json"))


def documentation() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_there_are_committed_records() -> None:
    assert committed()


@pytest.mark.parametrize("path", committed(), ids=lambda path: path.stem)
def test_a_committed_record_and_its_table_agree(path: Path) -> None:
    record = read_record(path)
    assert record.name == path.stem
    assert record.name in BENCHES
    assert path.with_suffix(".md").read_text(encoding="utf-8") == record.markdown()
    assert record.json() == path.read_text(encoding="utf-8")
    assert record.sizes
    assert record.load is not None
    assert len({row.what for row in record.rows}) == len(record.rows)


def test_committed_remarks_about_growth_are_those_of_the_command() -> None:
    studied = axes((), (), (), ())
    settings = [f"{axis.name}: {axis.setting}" for axis in studied]
    of_tets = tets_record([], {}, studied[0].setting)
    for written in (scaling_record([], {}, settings), of_tets):
        assert read_record(RECORDS / f"{written.name}.json").remark == written.remark


@pytest.mark.parametrize("page", documentation(), ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_in_the_pages_are_those_of_the_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, read_records(RECORDS), str(page)) == text, "run: softrig bench --fill README.md docs"


def test_markers_do_not_swallow_one_another() -> None:
    text = "<!-- record: a -->1<!-- end record --> 2 <!-- record: b: c -->3<!-- end record -->"
    assert [(m["name"], m["row"], m["text"]) for m in MARKED.finditer(text)] == [("a", None, "1"), ("b", "c", "3")]


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


def test_running_writes_records_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHES, "example", Bench(lambda update: example(), "nothing", 0.1))
    [record] = run_benches(["example"], tmp_path, tmp_path / "page.md")
    assert read_record(tmp_path / "example.json") == record
    assert record.title in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("duration", [0.4, 1.2, 2.7])
def test_moments_between_the_poses_are_not_those_that_maps_are_fitted_at(duration: float) -> None:
    moments = unseen_moments(duration)
    steps = moments * FRAMES_A_SECOND
    np.testing.assert_allclose(steps - np.floor(steps), 0.5)
    assert 0.0 < moments[0] < moments[1] < duration
