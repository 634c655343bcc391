"""Pictures of records in which a curve says more than a column of figures; drawn from the record alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf, isfinite
from pathlib import Path

import numpy as np

from softrig.bench.record import Record, Row, capital
from softrig.bench.scaling import FULL, SURFACE
from softrig.bench.sweeps import sweeps
from softrig.files import write_bytes
from softrig.render.plot import Series, line_plot

TETS = re.compile(r"(?P<tets>[\d,]+) tets: step")
"""What rows are called that `axis_rows` makes."""
WORDLESS = re.compile(r"[^\w-]+")
"""What names of files do without."""
SIZE = (720, 440)
"""Pixels."""


def charts(record: Record) -> dict[str, str]:
    """SVG by file name; nothing for most records."""
    make = CHARTS.get(record.name)
    return {} if make is None else make(record)


def write_charts(record: Record, folder: Path) -> list[Path]:
    """The charts of a record beside it; those that were not there yet, or others."""
    changed = []
    for name, svg in charts(record).items():
        path, content = folder / name, f"{svg}\n".encode()
        if not path.exists() or path.read_bytes() != content:
            write_bytes(path, content)
            changed.append(path)
    return changed


def _by_modes(record: Record) -> dict[str, str]:
    """A chart a character: errors of each method against the number of modes."""
    drawn = {}
    for (name, clip), methods in sweeps(record, "modes").items():
        known = {method: [(float(size), row.ours) for size, row in rows.items()] for method, rows in methods.items()}
        lines = _series(
            {method: [(x, y) for x, y in some if y is not None and isfinite(y)] for method, some in known.items()}
        )
        if lines:
            drawn[f"{record.name}-{WORDLESS.sub('-', f'{name}-{clip}')}.svg"] = line_plot(
                lines,
                title=capital(f"{name} without '{clip}'"),
                x_label="modes",
                y_label="off the full simulation, %",
                size=SIZE,
            )
    return drawn


def _by_tets(record: Record) -> dict[str, str]:
    """Times of a step against the number of tets: reduced, drawn, full."""
    times: dict[str, list[tuple[float, float]]] = {}
    for row in record.rows:
        match = TETS.fullmatch(row.what)
        if match is not None:
            tets = float(match["tets"].replace(",", ""))
            for name, value in _times(row).items():
                times.setdefault(name, []).append((tets, value))
    lines = _series(times)
    if not lines:
        return {}
    svg = line_plot(
        lines,
        title="A step on one core",
        x_label="tets",
        y_label="ms",
        size=SIZE,
        logarithmic="xy",
    )
    return {f"{record.name}.svg": svg}


def _times(row: Row) -> dict[str, float]:
    told = {
        "reduced step": row.ours,
        "drawing the vertices": row.also.get(SURFACE),
        "full step": row.also.get(FULL),
    }
    return {name: value for name, value in told.items() if value is not None and 0.0 < value < inf}


def _series(lines: dict[str, list[tuple[float, float]]]) -> list[Series]:
    """A line for each that has more than one point (x, y)."""
    sets = [(name, np.array(sorted(points)).T) for name, points in lines.items() if len(points) > 1]
    return [Series(name, x, y) for name, (x, y) in sets]


CHARTS: dict[str, Callable[[Record], dict[str, str]]] = {"fidelity-sweep": _by_modes, "scaling-tets": _by_tets}
"""What draws a record, by its name."""
