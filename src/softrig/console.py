"""What the command line shows while it works: one line a stage, with time left where it is known."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

Update = Callable[[int, int], None]
"""Tells how much of how much is done; (0, 0): nothing was to do, all is kept from before; (some, 0): part of it is."""


NEARLY = 0.999
"""Share of a bar up to which it is filled before its stage is over."""


class Mark(SpinnerColumn):
    """A spinner while a stage runs; then whether it was finished."""

    def __init__(self) -> None:
        super().__init__(finished_text="[green]✓")

    def render(self, task: Task) -> RenderableType:
        """As "⠋", "✓" or "✗"."""
        return Text("✗", style="red") if task.fields.get("failed") else super().render(task)


class TimeLeft(TimeRemainingColumn):
    """How long a stage will still take; nothing once it is over."""

    def __call__(self, task: Task) -> RenderableType:
        """Unlike other columns, never what it was a moment ago once the stage is over."""
        return Text("") if task.finished or task.fields.get("failed") else super().__call__(task)

    def render(self, task: Task) -> Text:
        """As "0:00:12 left"; nothing where it is not known."""
        known = super().render(task)
        return known + Text(" left", style="dim") if known.plain.strip(" -:") else Text("")


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
            if total == 0:
                self._progress.update(task, description=f"{title} [dim]({'partly ' * (done > 0)}kept from before)")
                return
            # A full bar is taken to be finished and its clock stops; what comes after its last part counts, too.
            self._progress.update(task, completed=min(done, NEARLY * total), total=total)

        try:
            yield update
        except BaseException:
            self._progress.stop_task(task)
            # Without a total the bar would look as if it were still at work.
            self._progress.update(task, total=self._total(task), failed=True)
            raise
        self.seconds[title] = time.perf_counter() - start
        self._progress.update(task, completed=self._total(task), total=self._total(task))

    def _total(self, task: TaskID) -> float:
        return self._progress.tasks[self._progress.task_ids.index(task)].total or 1.0


def duration(seconds: float) -> str:
    """Seconds, and minutes where there are some: "48 s", "2 min 5 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def stages(console: Console | None = None) -> Iterator[Stages]:
    """Show stages on the terminal (on standard error, so that output can be piped)."""
    columns = (
        Mark(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TimeElapsedColumn(),
        TimeLeft(),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as progress:
        yield Stages(progress)
