"""The child's side of an errand: `python -m softrig.viewer.errand_side`, a job on standard input, JSON lines back.

Lines: {"stage": title}, {"part": [done, total]}, {"note": text}, and last {"done": result} or {"failed": text}.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

OFTEN = 0.1
"""Seconds between two tellings of progress."""
POLITE = 5
"""How much this process stands back behind the live simulation."""


class Teller:
    """Writes messages, progress not too often."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock = stream, threading.Lock()
        self._last = 0.0
        self._notes: set[str] = set()

    def say(self, **message: Any) -> None:
        """One line."""
        with self._lock:
            self._stream.write(json.dumps(message) + "\n")
            self._stream.flush()

    def note(self, text: str) -> None:
        """A remark for people, each once."""
        if text not in self._notes:
            self._notes.add(text)
            self.say(note=text)

    def part(self, done: int, total: int) -> None:
        """How much of a stage is done."""
        now = time.monotonic()
        if now - self._last >= OFTEN or done >= total:
            self._last = now
            self.say(part=[int(done), int(total)])

    @contextmanager
    def stage(self, title: str) -> Iterator[Callable[[int, int], None]]:
        """A stage of the work, as `pipeline.build` wants to tell it."""
        self._last = 0.0
        self.say(stage=title)
        yield self.part


def main() -> None:
    """Do one job."""
    # What libraries print must not get between the messages.
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    teller = Teller(stream)
    signal.signal(signal.SIGTERM, _leave)
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_watch, args=[job["scratch"]], daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(POLITE)
    warnings.showwarning = lambda message, *_, **__: teller.note(str(message))
    try:
        from softrig.viewer.jobs import JOBS

        done = JOBS[job["do"]](job, teller)
    except Exception as error:
        teller.say(failed=_words(error))
        raise
    teller.say(done=done)


def _leave(*_: object) -> None:
    """Asked to stop: unwind, so that unfinished files and workers go."""
    raise SystemExit(130)


def _watch(scratch: str) -> None:
    """End with whoever started this: their end of the pipe closes when they are gone, and nobody else tidies up."""
    # A closed pipe reads as empty; nothing else is ever written.
    while os.read(0, 4096):
        pass
    shutil.rmtree(scratch, ignore_errors=True)
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1.0)
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(130)


def _words(error: Exception) -> str:
    from softrig.errors import SoftrigError

    if isinstance(error, SoftrigError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
    if isinstance(error, MemoryError):
        return "the machine's memory is not enough"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
