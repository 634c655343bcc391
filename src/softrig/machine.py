"""Which machine this is and how busy, and how long something takes on it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from softrig.version import __version__

_REPORTED = ("numpy", "scipy", "numba", "pypardiso")


@dataclass(frozen=True)
class Machine:
    """What a figure was measured on."""

    processor: str
    cores: int
    load: float
    """Average number of running processes over the last minute; not known on every system (−1)."""
    system: str
    versions: dict[str, str]

    def __str__(self) -> str:
        busy = "load unknown" if self.load < 0 else f"load {self.load:.2f}"
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"{self.processor}, {self.cores} cores, {busy}; {self.system}; {packages}"


def this_machine() -> Machine:
    """The machine as it is now."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0,
        system=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        versions={"softrig": __version__} | {name: found for name in _REPORTED if (found := _version(name))},
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        if names:
            return names[0]
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Timing:
    """Seconds a call, over many calls."""

    least: float
    median: float
    p99: float
    calls: int


def timed(call: Callable[[], object], *, repeats: int = 5, inner: int = 1) -> Timing:
    """Time `repeats` rounds of `inner` calls each, after one untimed call (which may compile).

    The minimum is what the code costs, the median what a busy machine makes of it.
    """
    call()
    seconds = np.empty(repeats)
    for i in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        seconds[i] = (time.perf_counter() - start) / inner
    return Timing(float(seconds.min()), float(np.median(seconds)), float(np.quantile(seconds, 0.99)), repeats * inner)
