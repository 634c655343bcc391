"""Runs benchmarks by name, shows their tables and keeps their records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from softrig.bench.catalogue import BENCHES, Bench
from softrig.bench.charts import write_charts
from softrig.bench.record import Record, number
from softrig.console import stages
from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.machine import this_machine

WAY, MARGIN = 12, 3
"""Letters: the least width of a column in which the name of a way can be read, and what stands between columns."""
WIDEST = 1000
"""Letters that a table is measured on."""


def run_benches(
    names: Sequence[str], folder: Path, page: Path | None = None, *, long: bool = False, show: bool = True
) -> list[Record]:
    """Run the named benchmarks (all but the long ones by default), write JSON and Markdown into `folder`.

    `long`: the long studies too, and the longer form of those that have one. `page` receives all tables in one Markdown
    page. `show`: print each table.
    """
    chosen = chosen_benches(names, long=long)
    console = Console(quiet=not show)
    console.print(f"[bold]{this_machine()}[/bold]")
    console.print(announcement(chosen, long=long))
    records = []
    for name, bench in chosen.items():
        record = measured(bench, name, long=long)
        record.write(folder)
        write_charts(record, folder)
        show_record(console, record)
        records.append(record)
    if page is not None:
        write_bytes(page, _page(records).encode())
    return records


def chosen_benches(names: Sequence[str], *, long: bool = False) -> dict[str, Bench]:
    """The named benchmarks, or those that run when none is named."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        raise InputError(f"no benchmark called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    return {name: BENCHES[name] for name in names or [n for n, bench in BENCHES.items() if long or not bench.only_long]}


def measured(bench: Bench, name: str, *, long: bool = False) -> Record:
    """Run one benchmark; its record says when, how long it took and how busy the machine was."""
    load, start = this_machine().load, time.perf_counter()
    with stages() as work, work.stage(f"{name} (about {minutes_told(bench.expected(long=long))})") as update:
        record = bench.function(long=long)(update)
    seconds = time.perf_counter() - start
    today = datetime.now(tz=UTC).date().isoformat()
    return replace(
        record,
        date=today,
        load=(load, this_machine().load),
        seconds=round(seconds, 1),
        long=long and bench.longer is not None,
    )


def announcement(benches: dict[str, Bench], *, long: bool = False) -> str:
    """What will run, and for how long on two idle cores."""
    each = [f"{name} {minutes_told(bench.expected(long=long))}" for name, bench in benches.items()]
    total = sum(bench.expected(long=long) for bench in benches.values())
    first = "; compiling takes about a minute more the first time"
    return f"{', '.join(each)}: about {minutes_told(total)} on two idle cores{first}."


def listing() -> list[str]:
    """A line a benchmark: its name, what it measures, how long that takes."""
    width = max(map(len, BENCHES))
    lines = []
    for name, bench in BENCHES.items():
        took = minutes_told(bench.expected(long=bench.only_long))
        if bench.only_long:
            took += ", only with --long or by name"
        elif bench.longer is not None:
            took += f"; with --long {minutes_told(bench.expected(long=True))}"
        lines.append(f"{name:<{width}}  {bench.what} ({took})")
    return lines


def minutes_told(minutes: float) -> str:
    """Minutes in words."""
    return f"{60.0 * minutes:.0f} s" if minutes < 1.0 else f"{minutes:.0f} min"


def _page(records: Sequence[Record]) -> str:
    today = datetime.now(tz=UTC).date()
    told = f"Written by `softrig bench --page` on {today}, not by hand. Least of many where not said otherwise."
    head = f"# Measurements\n\n{told}\n"
    return "\n".join([head, *(record.markdown() for record in records)])


def show_turned(console: Console, record: Record) -> None:
    """Print a record of one thing by several ways: a row a figure, a column a way, in as many tables as it takes."""
    names = list(dict.fromkeys(name for row in record.rows for name in row.also))
    first = max(map(len, ("error, %", *names))) + MARGIN
    columns = max((console.width - first - 1) // (WAY + MARGIN), 1)
    blocks = [record.rows[start : start + columns] for start in range(0, len(record.rows), columns)]
    for index, rows in enumerate(blocks):
        table = Table(title=record.title if index == 0 else None, title_justify="left")
        table.add_column("", width=first - MARGIN)
        for row in rows:
            table.add_column(row.what, justify="right", width=WAY)
        table.add_row(f"error, {rows[0].unit}", *(number(row.ours) for row in rows))
        for name in names:
            if any(name in row.also for row in rows):
                table.add_row(name, *(number(row.also[name]) if name in row.also else "" for row in rows))
        console.print(table)
    if record.remark:
        console.print(record.remark, style="dim italic", highlight=False, markup=False)
    for row in record.rows:
        if row.note:
            console.print(f"{row.what}: {row.note}")


def show_record(console: Console, record: Record) -> None:
    """Print a record's table, further figures only where there is room for all columns."""
    table, width = _shown(record, None), console.width
    if Measurement.get(console, console.options.update(width=WIDEST), table).maximum > width:
        table = _shown(record, [])
    console.print(table)


def _shown(record: Record, columns: Sequence[str] | None) -> Table:
    head, lines = record.table(columns)
    left_out = columns is not None and any(row.also for row in record.rows)
    more = f"Further figures of each row: {record.name}.md." if left_out else ""
    caption = " ".join(filter(None, (record.remark, more)))
    table = Table(title=record.title, title_justify="left", caption=caption or None, caption_justify="left")
    texts = record.words(record.rows)
    for column in head:
        table.add_column(column, justify="left" if column in texts else "right")
    for row, cells in zip(record.rows, lines, strict=True):
        table.add_row(*cells, style=None if row.is_met else "red")
    return table
