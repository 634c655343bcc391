"""Runs benchmarks by name, shows their tables and keeps their records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from softrig.bench import meshes, paper, posespace, speed, viewer
from softrig.bench.record import Record
from softrig.console import Update, stages
from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.machine import this_machine

BENCHES: dict[str, Callable[[Update], Record]] = {
    "step": speed.step_speed,
    "coefficients": speed.coefficient_speed,
    "derivatives": speed.derivative_speed,
    "full": speed.full_speed,
    "mesher": meshes.mesher,
    "posespace": posespace.pose_space,
    "posespace-fidelity": posespace.fidelity,
    "pssd-table-1": posespace.constrained,
    "pssd-table-3": posespace.table_3,
    "stvk05-tables": paper.paper_tables,
    "stvk05-spoon": paper.kicked_spoon,
    "viewer": viewer.live_viewer,
}
"""By name, in the order they run."""


def run_benches(names: Sequence[str], folder: Path, page: Path | None = None) -> list[Record]:
    """Run the named benchmarks (all by default), print each table, write JSON and Markdown into `folder`.

    `page` receives all tables in one Markdown page, for the documentation.
    """
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        raise InputError(f"no benchmark called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    console = Console()
    console.print(f"[bold]{this_machine()}[/bold]")
    records = []
    for name in names or BENCHES:
        with stages() as work, work.stage(name) as update:
            record = BENCHES[name](update)
        record.write(folder)
        _show(console, record)
        records.append(record)
    if page is not None:
        write_bytes(page, _page(records).encode())
    return records


def _page(records: Sequence[Record]) -> str:
    today = datetime.now(tz=UTC).date()
    told = f"Written by `softrig bench --page` on {today}, not by hand. Least of many where not said otherwise."
    head = f"# Measurements\n\n{told}\n"
    return "\n".join([head, *(record.markdown() for record in records)])


def _show(console: Console, record: Record) -> None:
    head, lines = record.table()
    table = Table(title=record.title, title_justify="left", caption=record.remark or None, caption_justify="left")
    for place, column in enumerate(head):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row, cells in zip(record.rows, lines, strict=True):
        met = row.goal is None or row.ours <= row.goal
        table.add_row(*cells, style=None if met else "red")
    console.print(table)
