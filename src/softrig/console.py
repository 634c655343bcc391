"""What the command line shows while it works: one line a stage, with time left where it is known."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Update = Callable[[int, int], None]
"""Tells how much of how much is done."""


class Stages:
    """Progress bars, a line a stage, and how long each stage took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}
        """By stage, in order."""

    @contextmanager
    def stage(self, title: str) -> Iterator[Update]:
        """Run one stage; call what it yields with (done, total) where that is known."""
        task = self._progress.add_task(title, total=None)
        if not self._progress.console.is_terminal:
            # Bars are drawn at the end only where nobody watches; a log wants to know what is going on.
            print(f"{title} …", file=sys.stderr, flush=True)
        start = time.perf_counter()

        def update(done: int, total: int) -> None:
            self._progress.update(task, completed=done, total=total)

        yield update
        self.seconds[title] = time.perf_counter() - start
        self._finish(task)

    def _finish(self, task: TaskID) -> None:
        total = self._progress.tasks[self._progress.task_ids.index(task)].total or 1
        self._progress.update(task, completed=total, total=total)


def duration(seconds: float) -> str:
    """Seconds, and minutes where there are some: "48 s", "2 min 5 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def stages(console: Console | None = None) -> Iterator[Stages]:
    """Show stages on the terminal (on standard error, so that output can be piped)."""
    columns = (
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as progress:
        yield Stages(progress)
