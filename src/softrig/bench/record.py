"""A benchmark's result: a table for people, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from softrig.files import write_bytes
from softrig.machine import Machine


@dataclass(frozen=True)
class Row:
    """One line: what was measured, ours, and what to compare it with (same unit)."""

    what: str
    unit: str
    ours: float
    median: float | None = None
    goal: float | None = None
    """At most this, where we set ourselves a bound."""
    others: dict[str, float] = field(default_factory=dict)
    """Published and peer figures, by source."""

    def __post_init__(self) -> None:
        if not self.ours == self.ours:
            raise ValueError(f"{self.what}: not a number")


@dataclass(frozen=True)
class Record:
    """One benchmark with its rows and the machine it ran on."""

    name: str
    title: str
    machine: Machine
    rows: Sequence[Row]
    remark: str = ""

    def write(self, folder: Path) -> None:
        """`name.json` and `name.md` in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / f"{self.name}.json", (json.dumps(asdict(self), indent=1) + "\n").encode())
        write_bytes(folder / f"{self.name}.md", self.markdown().encode())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and cells, as text."""
        sources = list(dict.fromkeys(source for row in self.rows for source in row.others))
        medians = any(row.median is not None for row in self.rows)
        goals = any(row.goal is not None for row in self.rows)
        head = ["", "unit", "softrig"] + ["median"] * medians + ["goal"] * goals + sources
        lines = []
        for row in self.rows:
            cells = [row.what, row.unit, number(row.ours)]
            cells += [number(row.median)] * medians
            cells += [("≤ " + number(row.goal)) if row.goal is not None else ""] * goals
            cells += [number(row.others.get(source)) for source in sources]
            lines.append(cells)
        return head, lines

    def markdown(self) -> str:
        """The table as Markdown."""
        head, lines = self.table()
        rule = ["---"] + ["---:"] * (len(head) - 1)
        rows = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])
        remark = f"\n{self.remark}\n" if self.remark else ""
        return f"## {self.title}\n\n{rows}\n{remark}\nMeasured on {self.machine}.\n"


def number(value: float | None) -> str:
    """Three figures, or nothing."""
    if value is None:
        return ""
    if value == 0.0 or 0.01 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:.2e}"
