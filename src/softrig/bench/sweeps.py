"""Records in which the same is measured at several sizes: by size, for tables and charts."""

from __future__ import annotations

import re

from softrig.bench.conclusions import BEST
from softrig.bench.record import Record, Row, markdown_table, number

NAMED = re.compile(
    r"(?P<name>.+), (?:r = (?P<modes>\d+)|(?P<poses>\d+) poses?), without '(?P<clip>.+)': (?P<method>.+)"
)
"""What rows are called that `fidelity_sweep` makes."""
OURS, STEP = "ours", "step, ms"
ALSO = {BEST: "the best that its shapes could do", STEP: "a step of ours, ms"}
"""Further figures of ours that stand in the tables."""

Sweep = dict[str, dict[int, Row]]
"""By method, by size."""


def sweeps(record: Record, axis: str) -> dict[tuple[str, str], Sweep]:
    """By character and clip, the rows that differ in their number of "modes" or "poses", `axis`."""
    found: dict[tuple[str, str], Sweep] = {}
    for row in record.rows:
        match = NAMED.fullmatch(row.what)
        if match is not None and match[axis] is not None:
            methods = found.setdefault((match["name"], match["clip"]), {})
            methods.setdefault(match["method"], {})[int(match[axis])] = row
    return found


def sweep_tables(record: Record) -> str:
    """A table for each character, clip and axis: a line for each method, a column for each size."""
    parts = []
    for axis in ("modes", "poses"):
        for (name, clip), methods in sweeps(record, axis).items():
            sizes = sorted({size for rows in methods.values() for size in rows})
            lines = []
            for method, rows in methods.items():
                lines.append([method, *(_told(rows.get(size)) for size in sizes)])
                if method == OURS:
                    lines += [[words, *(_told(rows.get(size), of) for size in sizes)] for of, words in ALSO.items()]
            title = f"{name} without '{clip}': % off the full simulation"
            parts.append(markdown_table(title, [axis, *map(str, sizes)], lines, {axis}))
    return "\n".join(parts)


def _told(row: Row | None, further: str | None = None) -> str:
    if row is None:
        return ""
    return number(row.ours if further is None else row.also.get(further)) or "–"
