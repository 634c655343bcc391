"""Long work in a process of its own: it tells how far it is, can be stopped at any moment, and ends with the viewer.

The child (`softrig.viewer.errand_side`) gets its job as one line of JSON on standard input and answers in lines of
JSON. Standard input stays open: when it closes, because the viewer is gone however it went, the child ends itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import softrig
from softrig.errors import SoftrigError
from softrig.io.processes import Outcome, end_with_children, last_words

GRACE = 2.0
"""Seconds that a child has to end by itself, and to take its unfinished files away, before it is killed."""

Heard = Callable[[dict[str, Any]], None]
Ended = Callable[[str | None, dict[str, Any] | None], None]
"""Called once with what went wrong, None: nothing, and with the result, None: there is none."""


class Errand:
    """One job in a child process. `heard` gets every message on the way; `ended` is called last; from another thread.

    `job`: what to do, or what prepares it there. `ended(None, result)`: it went well; `ended(text, None)`: it failed;
    `ended(None, None)`: it was stopped.
    """

    def __init__(self, job: Mapping[str, Any] | Callable[[], Mapping[str, Any]], *, heard: Heard, ended: Ended) -> None:
        self._job = job
        self._heard, self._ended = heard, ended
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="softrig errand", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the child, or what follows it here, is still at work."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            # Whoever waits for the child's last line must not wait for ever.
            killer = threading.Timer(GRACE, _killed, [process])
            killer.daemon = True
            killer.start()

    def close(self, seconds: float = 2.0 * GRACE) -> None:
        """Stop it and wait until it is gone."""
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _run(self) -> None:
        problem: str | None = None
        result: dict[str, Any] | None = None
        try:
            with tempfile.TemporaryDirectory(prefix="softrig-", ignore_cleanup_errors=True) as name:
                problem, result = self._told(Path(name))
        except (OSError, SoftrigError) as error:
            problem = f"the work could not be started: {error}"
        if self._stopped:
            problem = None  # what was finished before the word came stays finished
        self._ended(problem, result)

    def _told(self, folder: Path) -> tuple[str | None, dict[str, Any] | None]:
        job = {**(self._job() if callable(self._job) else self._job), "scratch": str(folder)}
        log = folder / "program.log"
        with log.open("wb") as output:
            process = self._started(folder, output)
            if process is None:
                return None, None
            try:
                last = self._listened(process, job)
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                code = _ending(process)
        if "done" in last:
            return None, last["done"]
        if "failed" in last:
            return str(last["failed"]), None
        return f"the work ended {Outcome(code, '').ending}: {last_words(log) or 'without a word'}", None

    def _started(self, folder: Path, output: Any) -> subprocess.Popen[bytes] | None:
        # Workers leave large arrays in files; those go with the folder, whatever ends them.
        environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(folder), "PYTHONPATH": _import_path()}
        own_group: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
        with self._lock:
            if self._stopped:
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "softrig.viewer.errand_side"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                **own_group,
            )
        return self._process

    def _listened(self, process: subprocess.Popen[bytes], job: Mapping[str, Any]) -> dict[str, Any]:
        """Hand on all messages; the last one that says how it ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        last: dict[str, Any] = {}
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return last
        for line in process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "done" in message or "failed" in message:
                last = message
            elif not self._stopped:
                self._heard(message)
        return last


def _killed(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        end_with_children(process)


def _ending(process: subprocess.Popen[bytes]) -> int | None:
    """Wait a moment for the child, then end it and everything it started."""
    code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(GRACE)
    end_with_children(process)
    if process.stdout is not None:
        process.stdout.close()
    return code


def _import_path() -> str:
    """Where the child finds this very softrig, before anything else."""
    own = str(Path(softrig.__file__).parent.parent)
    return os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
