"""Records of `softrig bench`, the pages that show them, and those that are committed."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from softrig.bench import BENCHES, fill_pages, listing, run_benches
from softrig.bench.cases import CASES, OTHERS
from softrig.bench.catalogue import Bench
from softrig.bench.charts import charts
from softrig.bench.pages import MARKED, filled, marked_records, read_records
from softrig.bench.record import UNBROKEN, Record, Row, read_record, timing_row
from softrig.bench.run import announcement, chosen_benches, measured, show_record
from softrig.bench.scaling import FULL, SURFACE, axes, scaling_record, tets_record
from softrig.bench.sweeps import sweeps
from softrig.characters import CHARACTERS, built_in
from softrig.cli import app
from softrig.errors import InputError
from softrig.machine import Timing, this_machine

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "records"
MEASURED = "docs/fidelity.md"
RIVALS = (
    "one PCA basis in bind space, exact forces",
    "one PCA basis in the world, exact forces",
    "basis of the neutral pose, exact forces",
    "the paper's recipe",
    "the paper's recipe, exact forces",
    "a coarse full mesh of equal cost",
)


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
    long |= {"multi-domain", "sub11-domains", "sub11-fidelity"}
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


def test_running_draws_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHES, "fidelity-sweep", Bench(lambda _: swept(), "an example", 0.1))
    run_benches(["fidelity-sweep"], tmp_path, show=False)
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == sorted(charts(swept()))


def test_running_writes_records_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHES, "example", Bench(lambda update: example(), "nothing", 0.1))
    [record] = run_benches(["example"], tmp_path, tmp_path / "page.md")
    assert read_record(tmp_path / "example.json") == record
    assert record.title in (tmp_path / "page.md").read_text(encoding="utf-8")


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


def test_more_may_be_better() -> None:
    rows = [Row("fast", "1/s", 9.0, goal=8.0, at_least=True), Row("slow", "1/s", 7.0, goal=8.0, at_least=True)]
    record = replace(example(), rows=rows)
    assert [row.is_met for row in rows] == [True, False]
    assert Row("on it", "1/s", 8.0, goal=8.0, at_least=True).is_met
    assert [cells[3] for cells in record.table()[1]] == [f"≥{UNBROKEN}8{UNBROKEN}✓", f"≥{UNBROKEN}8{UNBROKEN}✗"]
    text = filled("<!-- missed: example --><!-- end record -->", {"example": record})
    assert "1 of 2 goals are met; these are not:" in text
    assert "| slow | 7 1/s | ≥ 8 1/s |" in text


@pytest.mark.parametrize(("count", "told"), [(1, "1 pose"), (2, "2 poses"), (1200, "1,200 poses")])
def test_sizes_are_counted(count: int, told: str) -> None:
    record = replace(example(), sizes={"bar": {"poses": count, "degrees of freedom": 1}})
    assert f"Sizes: bar: {told}, 1 degrees of freedom." in record.markdown()


@pytest.mark.parametrize(("width", "whole"), [(60, False), (100, True)])
def test_a_narrow_terminal_shows_the_figures_that_matter_whole(width: int, whole: bool) -> None:
    console = Console(width=width, record=True, file=StringIO())
    also = {"a further figure, %": 12.5, "another one, %": 34.5}
    rows = [Row("step, all of it", "ms", 1.25, goal=2.0, also=also), Row("peer", "ms", None, note="")]
    show_record(console, replace(example(), rows=rows))
    told = console.export_text()
    assert "…" not in told
    assert all(("12.5" in told, "34.5" in told)) == whole
    assert ("Further figures of each row: example.md." in " ".join(told.split())) == (not whole)
    for word in ("step, all of it", "1.25", "≤", "A remark."):
        assert word in told, word


# Charts


def swept() -> Record:
    """Two methods of two characters, the worse in the second half of the rows; one that did not come through."""
    rows = [
        Row(f"{name}, r = {modes}, without 'walk': {method}", "%", factor * error, also={"step, ms": 1.0})
        for name, factor in (("arm", 1.0), ("bear", 2.0))
        for modes, error in ((10, 40.0), (100, 8.0), (25, 20.0))
        for method in ("ours", "other")
    ]
    rows += [Row("arm, 2 poses, without 'walk': ours", "%", 7.0), Row("arm, r = 200, without 'walk': ours", "%", None)]
    return replace(example("fidelity-sweep"), rows=rows)


def drawn_points(svg: str) -> list[list[tuple[float, float]]]:
    lines = re.findall(r'<polyline points="([^"]+)"', svg)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())] for line in lines]


def test_a_sweep_is_drawn_a_chart_a_character() -> None:
    found = charts(swept())
    assert list(found) == ["fidelity-sweep-arm-walk.svg", "fidelity-sweep-bear-walk.svg"]
    for svg, name in zip(found.values(), ("Arm", "Bear"), strict=True):
        assert f"{name} without 'walk'" in html.unescape(svg)
        assert all(word in svg for word in ("ours", "other", "modes", "off the full simulation, %"))
        lines = drawn_points(svg)
        assert len(lines) == 2
        for line in lines:
            assert len(line) == 3, "neither poses nor what was not measured"
            across, down = np.array(line).T
            assert (np.diff(across) > 0.0).all(), "from few modes to many"
            assert (np.diff(down) > 0.0).all(), "pixels grow downwards, errors fall"


def test_a_sweep_has_a_column_for_each_size() -> None:
    rows = [*swept().rows, Row("arm, r = 50, without 'jump': ours", "%", 3.0, also={"step, ms": 0.25})]
    text = filled("<!-- swept: fidelity-sweep --><!-- end record -->", {"fidelity-sweep": replace(swept(), rows=rows)})
    titles = re.findall(r"\*\*(.+?): % off the full simulation\*\*", text)
    assert titles == ["Arm without 'walk'", "Bear without 'walk'", "Arm without 'jump'", "Arm without 'walk'"]
    tables = [part.split("\n\n")[1].splitlines() for part in text.split("**Arm")[1:]]
    assert tables[0][0].split(" | ")[0] == "| modes"
    assert tables[0][0].count("|") == 6, "10 to 100, and 200, which was not measured"
    assert next(line for line in tables[0] if line.startswith("| ours |")).endswith(" | – |")
    assert tables[1][2:] == [
        "| ours | 3 |",
        "| the best that its shapes could do | – |",
        "| a step of ours, ms | 0.25 |",
    ]
    assert tables[2][0] == "| poses | 2 |"
    assert tables[2][2] == "| ours | 7 |"
    assert "<p><code>softrig bench fidelity-sweep</code></p>" in text
    assert swept().remark in text
    for marker in ("swept: step", "swept: fidelity-sweep | step, ms"):
        known = {"step": example("step"), "fidelity-sweep": swept()}
        with pytest.raises(InputError, match="shows a record of several sizes, and all of it"):
            filled(f"<!-- {marker} --><!-- end record -->", known)


def test_at_every_size_ours_errs_less_than_all_other_methods_as_the_page_says() -> None:
    assert "At each size ours errs least." in (ROOT / MEASURED).read_text(encoding="utf-8")
    record, compared = read_record(RECORDS / "fidelity-sweep.json"), 0
    for axis in ("modes", "poses"):
        for methods in sweeps(record, axis).values():
            for size, ours in methods.pop("ours").items():
                assert ours.ours is not None
                others = [rows[size].ours for rows in methods.values()]
                assert all(other is None or ours.ours < other for other in others), (ours.what, others)
                compared += len(others)
    assert compared == 3 * 8 + 6 * 9


def test_charts_leave_out_what_cannot_be_drawn() -> None:
    rows = [*swept().rows, Row("arm, r = 100, without 'jump': ours", "%", 3.0)]
    assert list(charts(replace(swept(), rows=rows))) == list(charts(swept())), "one point is no line"
    rows = [Row(f"arm, r = {r}, without 'walk': ours", "%", e) for r, e in ((10, math.inf), (25, 5.0), (50, 4.0))]
    ((line,),) = (drawn_points(svg) for svg in charts(replace(swept(), rows=rows)).values())
    assert len(line) == 2
    rows = [Row(f"../x, r = {r}, without 'a/b': ours", "%", 5.0) for r in (10, 25)]
    assert list(charts(replace(swept(), rows=rows))) == ["fidelity-sweep--x-a-b.svg"], "no path"
    for name in ("fidelity-sweep", "scaling-tets"):
        assert charts(replace(example(), name=name)) == {}


def test_growth_is_drawn_beside_the_full_step() -> None:
    rows = [
        timing_row(f"{n:,} tets: step", "ms", Timing(1e-4, 1e-4, 1e-4, 9), also={SURFACE: 0.2, FULL: n / 1e3})
        for n in (2000, 4000)
    ]
    record = replace(example("scaling-tets"), rows=[*rows, Row("step against tets", "exponent", 0.0)])
    ((name, svg),) = charts(record).items()
    assert name == "scaling-tets.svg"
    step, surface, full = drawn_points(svg)
    assert step[0][1] == step[1][1]
    assert surface[0][1] < step[0][1], "longer is higher up"
    assert full[1][1] < full[0][1] < surface[0][1]
    assert charts(example()) == {}


def test_charts_are_written_beside_their_records(tmp_path: Path) -> None:
    swept().write(tmp_path)
    changed = fill_pages([], tmp_path)
    assert [path.name for path in changed] == ["fidelity-sweep-arm-walk.svg", "fidelity-sweep-bear-walk.svg"]
    assert fill_pages([], tmp_path) == []
    changed[0].write_text("an older one", encoding="utf-8")
    assert fill_pages([], tmp_path) == changed[:1]


# Pages


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
    for name, svg in charts(record).items():
        assert (RECORDS / name).read_text(encoding="utf-8") == f"{svg}\n"
    assert record.sizes
    assert record.load is not None
    assert len({row.what for row in record.rows}) == len(record.rows)


def test_ours_errs_less_than_every_other_method_in_every_clip_as_the_pages_say() -> None:
    told = "In every clip of every built-in character"
    assert all(told in (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", MEASURED))
    compared = set()
    for name in ("fidelity", "fidelity-others"):
        errors = {row.what: row.ours for row in read_record(RECORDS / f"{name}.json").rows}
        for case in (case for case in (*CASES, *OTHERS) if case.rivals and f"{case.what}: ours" in errors):
            others = [errors[f"{case.what}: {rival}"] for rival in RIVALS]
            assert errors[f"{case.what}: ours"] < min(others), case.what
            compared.add((case.name, case.clip))
    assert compared == {(name, clip.name) for name in CHARACTERS for clip in built_in(name).clips}


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
