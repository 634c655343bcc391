"""What the command line shows while it works."""

from __future__ import annotations

import io
import time

from rich.console import Console

from softrig.console import duration, stages


def test_a_stage_takes_until_it_is_over_not_until_its_last_part() -> None:
    output = io.StringIO()
    with stages(Console(file=output, width=100, force_terminal=True)) as shown:
        with shown.stage("Thinking") as update:
            update(3, 3)
            (task,) = shown._progress.tasks
            assert not task.finished
            time.sleep(0.05)
        assert task.finished
        assert task.finished_time is not None
        assert task.finished_time >= 0.05
        assert shown.seconds["Thinking"] >= 0.05
    last = [line for line in output.getvalue().splitlines() if "Thinking" in line][-1]
    assert "left" not in last


def test_time_left_is_told_while_a_stage_runs() -> None:
    output = io.StringIO()
    with stages(Console(file=output, width=100, force_terminal=True)) as shown, shown.stage("Counting") as update:
        update(1, 4)
        shown._progress.refresh()
    assert " left" in output.getvalue()


def test_durations_are_read_at_a_glance() -> None:
    assert [duration(seconds) for seconds in (0.4, 48.0, 125.2)] == ["0 s", "48 s", "2 min 5 s"]
