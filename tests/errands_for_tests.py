"""A build that is quick, and what is told of errands and of the processes that run them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from softrig.project import Project

TINY = Project().changed(
    mesh={"tets": 400},
    basis={"modes": 8, "regions": 1, "contact": False, "derivatives": 4},
    poses={"count": 2},
    cubature={"samples": 12},
    material={"preset": "fat"},
)
PATIENCE = 120.0


class Told(list):
    """What was told, as (level, text)."""

    def __call__(self, level: str, text: str) -> None:
        self.append((level, text))

    @property
    def errors(self) -> list[str]:
        return [text for level, text in self if level == "error"]


def until(condition, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def children() -> list[str]:
    """Errands that run anywhere below this process: their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = f"PPid:\t{os.getpid()}\n" in (entry / "status").read_text()
            except OSError:
                continue
            if mine and "errand_side" in line:
                found.append(line)
    return found
