"""Tables and figures of records inside pages, so that no number in the documentation is typed by hand.

<!-- record: step -->                       the whole table of docs/records/step.json
<!-- end record -->

<!-- record: step | 99 %, µs | bytes -->    the same, of further figures these two alone
<!-- end record -->

a step takes <!-- record: step: step(), r = 12 -->2.8 µs<!-- end record -->, one figure of it
measured <!-- measured: step -->2026-11-18 on a machine, 2 cores<!-- end record -->

<!-- swept: fidelity-sweep -->              the same by size: a line for each method, a column for each size
<!-- end record -->

<!-- missed: step crowd -->                 the rows of these records that do not keep to their goals
<!-- end record -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from softrig.bench.charts import write_charts
from softrig.bench.record import Record, cell, read_record
from softrig.bench.sweeps import sweep_tables
from softrig.errors import InputError
from softrig.files import write_bytes

RECORDS = Path("docs/records")
"""Where the records of the documentation lie."""
MARKED = re.compile(
    r"<!-- (?P<kind>record|measured|missed|swept): (?P<name>[\w -]+?)"
    r"(?:: (?P<row>[^\n]+?))?(?: \| (?P<columns>[^\n]+?))? -->"
    r"(?P<text>.*?)<!-- end record -->",
    re.S,
)
OPENED = re.compile(r"<!-- (?:record|measured|missed|swept): |<!-- end record -->")


def read_records(folder: Path) -> dict[str, Record]:
    """All records of a folder, by name."""
    return {record.name: record for record in map(read_record, sorted(folder.glob("*.json")))}


def filled(text: str, records: dict[str, Record], page: str = "the page") -> str:
    """`text` with what stands between each pair of markers taken from `records`."""

    def fill(match: re.Match[str]) -> str:
        named = match["name"].split()
        for name in named:
            if name not in records:
                raise InputError(f"{page}: no record called '{name}'; there are {', '.join(records) or 'none'}")
        opening = match[0][: match.start("text") - match.start()]
        return f"{opening}{_content(match, [records[name] for name in named])}<!-- end record -->"

    if len(OPENED.findall(text)) != 2 * len(MARKED.findall(text)):
        raise InputError(f"{page}: a record marker without its end, or an end without its beginning")
    return MARKED.sub(fill, text)


def _content(match: re.Match[str], records: Sequence[Record]) -> str:
    if match["kind"] == "missed":
        return f"\n{missed_goals(records)}"
    record = records[0]
    if match["kind"] == "measured":
        machine = record.machine
        return f"{record.date} on {machine.processor}, {machine.cores} cores"
    if len(records) > 1 or (match["row"] is not None and match["columns"] is not None):
        raise InputError(f"a marker shows one record, or one row of it without columns: {match['name']}")
    if match["row"] is not None:
        return record.row(match["row"]).told()
    command = f"softrig bench {record.name}{' --long' if record.long else ''}"
    if match["kind"] == "swept":
        tables = sweep_tables(record)
        if not tables or match["columns"] is not None:
            raise InputError(f"a marker 'swept' shows a record of several sizes, and all of it: {match['name']}")
        return f"\n{tables}\n{record.remark}\n\n{record.folded_origin(command)}"
    columns = match["columns"].split(" | ") if match["columns"] else []
    known = {name for row in record.rows for name in row.also}
    if not set(columns) <= known:
        raise InputError(f"record {record.name} has no column {', '.join(sorted(set(columns) - known))}")
    return f"\n{record.folded(columns or None, command=command)}"


def missed_goals(records: Sequence[Record]) -> str:
    """How many of the goals of `records` are met, and a table of those that are not."""
    asked = [row for record in records for row in record.rows if row.goal is not None]
    missed = [row for row in asked if row.ours is None or not row.is_met]
    lines = [f"{len(asked) - len(missed)} of {len(asked)} goals are met{'; these are not:' if missed else '.'}"]
    if missed:
        lines += ["", "| not met | measured | goal |", "| --- | ---: | ---: |"]
        for row in missed:
            told = row.note if row.ours is None else row.told()
            lines.append(f"| {cell(row.what)} | {cell(told)} | {row.bound} {replace(row, ours=row.goal).told()} |")
    return "\n".join(lines) + "\n"


def marked_records(text: str) -> list[str]:
    """The records that a page shows, by name."""
    return list(dict.fromkeys(name for match in MARKED.finditer(text) for name in match["name"].split()))


def fill_pages(paths: Sequence[Path], folder: Path = RECORDS) -> list[Path]:
    """Fill every page among `paths` (files, or folders of .md files) from the records in `folder`, and write the tables
    and charts of these anew; those changed."""
    records = read_records(folder)
    changed = []
    for record in records.values():
        table = folder / f"{record.name}.md"
        if not table.exists() or table.read_text(encoding="utf-8") != record.markdown():
            write_bytes(table, record.markdown().encode())
            changed.append(table)
        changed += write_charts(record, folder)
    for page in _pages(paths):
        text = page.read_text(encoding="utf-8")
        new = filled(text, records, str(page))
        if new != text:
            write_bytes(page, new.encode())
            changed.append(page)
    return changed


def _pages(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"no page or folder called {path}")
        found += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return found
