"""Programs in a process of their own: they end in time, take what they started with them, and leave a log."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOLD = 500  # characters of a program's own words that go into an error


@dataclass(frozen=True)
class Outcome:
    """How a program ended."""

    code: int | None
    """Its exit code, negative for a signal, None if it was ended for taking too long."""
    last_words: str
    """The end of what it printed, on one line."""

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.code is None:
            return "for taking too long"
        if self.code >= 0:
            return f"with code {self.code}"
        try:
            return f"by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"by signal {-self.code}"


@contextmanager
def job_folder() -> Iterator[Path]:
    """A folder for one job; it goes with everything in it."""
    with tempfile.TemporaryDirectory(prefix="softrig-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def run_bounded(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Outcome:
    """Run a command in `folder` for at most `seconds`; an `OSError` if it cannot be started.

    What it prints goes to `program.log` there. On POSIX everything it started ends with it.
    """
    log = folder / "program.log"
    own_group: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **own_group,
        )
        code: int | None = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_with_children(process)
    return Outcome(code, last_words(log))


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    """End a process and, on POSIX, its group, which outlives a leader that left something behind.

    It must have been started as the leader of a session of its own.
    """
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def last_words(log: Path) -> str:
    """The end of what a program wrote into its log, on one line."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return " | ".join(line.strip() for line in lines if line.strip())[-_TOLD:]
