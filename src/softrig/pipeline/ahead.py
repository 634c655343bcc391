"""Compiling beside the build: what a finished model runs is compiled by another process while the model is made.

The two meet in Numba's cache on disk. Nothing depends on it: what is not there when it is wanted is compiled then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import softrig
from softrig.io.processes import end_with_children
from softrig.pipeline.parallel import worker_count

PATIENCE = 600.0
"""Seconds to wait for what is being compiled; it is ahead of whoever would begin now."""
SIDE = "softrig.pipeline.ahead_side"


class Ahead:
    """A process that compiles; None where there is none."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self.process = process

    def wait(self, seconds: float = PATIENCE) -> None:
        """Until it is done, well or badly, or `seconds` have passed."""
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)


@contextmanager
def compiling_ahead(module: str = SIDE) -> Iterator[Ahead]:
    """Run `module`, which compiles, beside what is done in here; at the end it is gone.

    On one core there is no process: it would only take turns with this one.
    """
    process = _started(module) if worker_count(None) > 1 else None
    try:
        yield Ahead(process)
    finally:
        if process is not None:
            end_with_children(process)
            assert process.stdin is not None
            process.stdin.close()


def _started(module: str) -> subprocess.Popen[bytes] | None:
    own = str(Path(softrig.__file__).parent.parent)
    path = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    own_group: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            # Colouring the messages of errors that it only tries out takes the compiler 4 % of its time.
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"},
            stdin=subprocess.PIPE,  # closes when this process is gone, however that happens
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **own_group,
        )
    except OSError:
        return None
