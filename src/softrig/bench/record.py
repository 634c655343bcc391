"""A benchmark's result: a table for people, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from html import escape
from math import isnan
from pathlib import Path
from typing import Any

from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.machine import Machine, Timing
from softrig.models.full import FullBody
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel

Sizes = dict[str, dict[str, int]]
"""Counts by name, of each model by its name."""
FEW = 3
"""Where rows of one thing are fewer than this on average, all are one table."""
UNBROKEN = "\N{NO-BREAK SPACE}"
BESIDE = "beside it"
"""Head of what several sources say."""
MANY = 2
"""Sources beyond which they share a column."""


@dataclass(frozen=True)
class Row:
    """One line: what was measured, ours, and what to compare it with (same unit)."""

    what: str
    unit: str
    ours: float | None
    """The best of many, or the one figure there is; None where there is none, and `note` says why."""
    median: float | None = None
    goal: float | None = None
    """At most this, or `at_least`, where we set ourselves a bound."""
    others: dict[str, float] = field(default_factory=dict)
    """Published and peer figures, by source."""
    p99: float | None = None
    """99 of 100 are below."""
    also: dict[str, float] = field(default_factory=dict)
    """Further figures of the same thing, by a name that says their unit."""
    note: str = ""
    at_least: bool = False
    """Whether more is better."""

    def __post_init__(self) -> None:
        for value in (self.ours, self.median, self.goal, self.p99, *self.others.values(), *self.also.values()):
            if value is not None and isnan(value):
                raise ValueError(f"{self.what}: not a number")

    @property
    def is_met(self) -> bool:
        """Whether the figure keeps to its bound, where it has one."""
        if self.goal is None or self.ours is None:
            return True
        return self.ours >= self.goal if self.at_least else self.ours <= self.goal

    @property
    def bound(self) -> str:
        """The sign before the goal."""
        return "≥" if self.at_least else "≤"

    def told(self) -> str:
        """The figure with its unit, as it stands in a sentence."""
        return f"{self.figure()} {self.unit}".strip() if self.unit != "×" else f"{self.figure()}×"

    def figure(self) -> str:
        """The figure, so exactly that it does not look like a goal that it misses."""
        told = number(self.ours)
        return f"{self.ours:.7g}" if not self.is_met and told == number(self.goal) else told


def timing_row(
    what: str,
    unit: str,
    timing: Timing,
    *,
    goal: float | None = None,
    others: dict[str, float] | None = None,
    also: dict[str, float] | None = None,
    note: str = "",
) -> Row:
    """A row with least, median and 99th percentile of `timing` in `unit` (s, ms or µs)."""
    factor = {"s": 1.0, "ms": 1e3, "µs": 1e6}[unit]
    least, median, p99 = factor * timing.least, factor * timing.median, factor * timing.p99
    return Row(what, unit, least, median, goal, others or {}, p99, also or {}, note)


@dataclass(frozen=True)
class Record:
    """One benchmark with its rows and the machine it ran on."""

    name: str
    title: str
    machine: Machine
    rows: Sequence[Row]
    remark: str = ""
    sizes: Sizes = field(default_factory=dict)
    """How large the models were."""
    value: str = "softrig"
    """Head of the column of our figures."""
    notes: str = "remark"
    """Head of the column of notes."""
    long: bool = False
    """Whether it is the longer form of one that has two."""
    date: str = field(default_factory=lambda: datetime.now(tz=UTC).date().isoformat())
    """When, year-month-day."""
    load: tuple[float, float] | None = None
    """Running processes on the machine, averaged over a minute, when it began and when it ended."""
    seconds: float | None = None
    """How long the whole benchmark took."""

    def write(self, folder: Path) -> tuple[Path, Path]:
        """`name.json` and `name.md` in `folder`, which are returned."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / f"{self.name}.json", folder / f"{self.name}.md"
        write_bytes(paths[0], self.json().encode())
        write_bytes(paths[1], self.markdown().encode())
        return paths

    def json(self) -> str:
        """The record for machines."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    def row(self, what: str) -> Row:
        """The row that says `what`."""
        for row in self.rows:
            if row.what == what:
                return row
        raise InputError(f"record {self.name} has no row '{what}'; there are: {'; '.join(r.what for r in self.rows)}")

    def table(self, columns: Sequence[str] | None = None) -> tuple[list[str], list[list[str]]]:
        """Head and cells, as text; of further figures those in `columns`, all where it is None."""
        return _table(self, self.rows, columns)

    def groups(self) -> list[tuple[str, list[Row]]]:
        """The rows by what they are of, the words before a colon, without these; all in one where few share them."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            of, _, what = row.what.partition(": ")
            found.setdefault(of if what else "", []).append(replace(row, what=what or row.what))
        if "" in found or len(self.rows) < FEW * len(found):
            return [("", list(self.rows))]
        return list(found.items())

    def words(self, rows: Sequence[Row]) -> set[str]:
        """Heads of the columns of `rows` that hold words, not figures."""
        return {"", BESIDE, self.notes if any(row.note for row in rows) else ""}

    def markdown(self) -> str:
        """The record as a section of a page."""
        return f"## {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """The section without its title: the table, the remark, sizes, machine and date."""
        return self._shown([("", list(self.rows))], None) + "".join(f"\n{line}\n" for line in self.origin())

    def folded(self, columns: Sequence[str] | None = None, *, command: str = "") -> str:
        """The same for readers: a table for each of what it is about, of further figures only those in `columns`, and
        what it was measured with, and by which `command`, folded away."""
        return f"{self._shown(self.groups(), columns)}\n{self.folded_origin(command)}"

    def folded_origin(self, command: str = "") -> str:
        """What it was measured with, and by which `command`, folded away."""
        origin = "".join(f"<p>{escape(line, quote=False)}</p>\n" for line in self.origin())
        by = f"<p><code>{escape(command, quote=False)}</code></p>\n" if command else ""
        title = "Command, sizes, machine and date" if command else "Sizes, machine and date"
        return f"<details><summary>{title}</summary>\n{by}{origin}</details>\n"

    def origin(self) -> list[str]:
        """What it was measured with, and when: sentences."""
        return [*([self._sizes()] if self.sizes else []), self.measured()]

    def _shown(self, groups: Sequence[tuple[str, list[Row]]], columns: Sequence[str] | None) -> str:
        parts = []
        for of, rows in groups:
            head, lines = _table(self, rows, columns)
            parts.append(markdown_table(of, head, lines, self.words(rows)))
        return "\n".join([*parts, *([f"{self.remark}\n"] if self.remark else [])])

    def measured(self) -> str:
        """When and on what, in a sentence."""
        busy = "" if self.load is None else f" Load {self.load[0]:.2f} at the start, {self.load[1]:.2f} at the end."
        return f"Measured {self.date} on {self.machine}.{busy}"

    def _sizes(self) -> str:
        told = [
            f"{model}: " + ", ".join(so_many(count, name) for name, count in counts.items())
            for model, counts in self.sizes.items()
        ]
        return "Sizes: " + "; ".join(told) + "."


def read_record(path: Path) -> Record:
    """The record that `Record.write` put at `path`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = [Row(**row) for row in content.pop("rows")]
        machine = Machine(**content.pop("machine"))
        load = content.pop("load", None)
        known = {f.name for f in fields(Record)}
        kept: dict[str, Any] = {key: value for key, value in content.items() if key in known}
        if set(content) != set(kept):
            raise TypeError(f"unknown: {', '.join(sorted(set(content) - known))}")
        return Record(machine=machine, rows=rows, load=None if load is None else (load[0], load[1]), **kept)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is no record of softrig bench: {error}") from error


def model_sizes(model: PoseSpaceModel) -> dict[str, int]:
    """What counts of a pose-space model."""
    return {
        "tets": len(model.tets),
        "tet vertices": len(model.vertices),
        "drawn vertices": len(model.embedding_nodes),
        "modes": model.mode_count,
        "regions": sum(name != WHOLE_BODY for name in model.region_names) or 1,
        "poses": len(model.poses),
        "cubature tets": len(model.cubature.tets),
    }


def body_sizes(body: FullBody) -> dict[str, int]:
    """What counts of a full body."""
    return {
        "elements": len(body.mesh.elements),
        "vertices": len(body.mesh.vertices),
        "degrees of freedom": body.size,
    }


def so_many(count: int, names: str) -> str:
    """As "1 pose", "2 poses", of the plural."""
    return f"{count:,} {names.removesuffix('s') if count == 1 else names}"


def number(value: float | None) -> str:
    """Three figures, or nothing."""
    if value is None:
        return ""
    if value == 0.0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if value == round(value) and abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.2e}"


def _table(record: Record, rows: Sequence[Row], columns: Sequence[str] | None) -> tuple[list[str], list[list[str]]]:
    """Head and cells of `rows`, as text; of further figures those in `columns`, all where it is None."""
    sources = list(dict.fromkeys(source for row in rows for source in row.others))
    further = list(dict.fromkeys(name for row in rows for name in row.also if columns is None or name in columns))
    # Many sources that say little each are told in one column.
    together = len(sources) > MANY
    medians = any(row.median is not None for row in rows)
    tails = any(row.p99 is not None for row in rows)
    goals = any(row.goal is not None for row in rows)
    notes = any(row.note for row in rows)
    head = ["", "unit", record.value] + ["median"] * medians + ["99 %"] * tails + ["goal"] * goals
    head += ([BESIDE] if together else sources) + further + [record.notes] * notes
    lines = []
    for row in rows:
        cells = [row.what, row.unit, row.figure()]
        cells += [number(row.median)] * medians
        cells += [number(row.p99)] * tails
        cells += [_goal(row)] * goals
        told = [number(row.others.get(source)) for source in sources]
        cells += ["; ".join(f"{source}: {number(value)}" for source, value in row.others.items())] if together else told
        cells += [number(row.also.get(name)) for name in further]
        cells += [row.note] * notes
        lines.append(cells)
    return head, lines


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    told = f"{row.bound}{UNBROKEN}{number(row.goal)}"
    return told if row.ours is None else f"{told}{UNBROKEN}{'✓' if row.is_met else '✗'}"


def markdown_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]], words: Collection[str]) -> str:
    """A table with its `title`, if it has one, in bold; columns whose heads are among `words` begin at the left."""
    rule = ["---" if column in words else "---:" for column in head]
    told = "\n".join("| " + " | ".join(map(cell, cells)) + " |" for cells in [head, rule, *lines])
    return (f"**{capital(title)}**\n\n" if title else "") + f"{told}\n"


def capital(text: str) -> str:
    """With a capital at the beginning and all else as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def cell(text: str) -> str:
    """Text as a table of Markdown takes it."""
    return text.replace("|", "\\|").replace("\n", " ")
