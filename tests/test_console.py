"""What the command line shows while it works."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from rich.text import Text

from softrig.console import Stages, duration, stages
from softrig.errors import InputError


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
        assert "left" not in output.getvalue(), "nobody knows yet"
        time.sleep(0.05)
        update(2, 4)
        time.sleep(0.6)  # what a column shows is made anew twice a second
        shown._progress.refresh()
    assert " left" in output.getvalue()


def test_a_stage_with_nothing_to_do_says_that_it_was_kept() -> None:
    output = io.StringIO()
    with stages(Console(file=output, width=100)) as shown:
        with shown.stage("Filling") as update:
            update(0, 0)
        with shown.stage("Bending") as update:
            update(1, 1)
        with shown.stage("Swinging") as update:
            update(1, 0)
            update(2, 2)
    filling, bending, swinging = output.getvalue().splitlines()
    assert swinging.startswith("✓ Swinging (partly kept from before) ")
    assert filling.startswith("✓ Filling (kept from before) ")
    assert "kept" not in bending


@pytest.mark.parametrize("parts", [[], [(0, 4)], [(1, 4)]])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_stage_that_fails_is_shown_as_failed(parts: list[tuple[int, int]], terminal: bool) -> None:
    output = io.StringIO()

    def read(shown: Stages) -> None:
        with shown.stage("Reading") as update:
            for part in parts:
                update(*part)
                shown._progress.refresh()
            raise InputError("no such file")

    with pytest.raises(InputError), stages(Console(file=output, width=100, force_terminal=terminal)) as shown:
        read(shown)
    last = [line for line in Text.from_ansi(output.getvalue()).plain.splitlines() if "Reading" in line][-1]
    assert last.lstrip().startswith("✗ Reading")
    assert "left" not in last
    assert "Reading" not in shown.seconds, "it took no time to finish"
    (task,) = shown._progress.tasks
    assert task.stop_time is not None, "its clock stands"


def test_an_interrupted_stage_is_not_finished_either() -> None:
    output = io.StringIO()
    with pytest.raises(KeyboardInterrupt), stages(Console(file=output, width=100)) as shown, shown.stage("Building"):
        raise KeyboardInterrupt
    assert "✗ Building" in output.getvalue()


def test_durations_are_read_at_a_glance() -> None:
    assert [duration(seconds) for seconds in (0.4, 48.0, 125.2)] == ["0 s", "48 s", "2 min 5 s"]
