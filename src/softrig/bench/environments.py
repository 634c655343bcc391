"""Environments of their own for programs that must not, or cannot, live in ours."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 900.0


class UnavailableError(Exception):
    """Why something could not be installed or did not run, in a line."""


@dataclass(frozen=True)
class Environment:
    """Packages by name and version, in the order of the calls of pip."""

    name: str
    requirements: tuple[str, ...]
    alone: tuple[str, ...] = ()
    """Installed afterwards, without what they ask for."""

    def folder(self, cache: Path) -> Path:
        """Where it is kept, for this Python and these packages."""
        content = "\n".join((sys.version, *self.requirements, *self.alone))
        return cache / f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def cache_folder() -> Path:
    """Where environments are kept between runs, yours to delete."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "softrig" / "peers"


def environment_python(environment: Environment, cache: Path) -> Path:
    """The interpreter of an environment, installed first where it is not there yet."""
    folder = environment.folder(cache)
    if not (folder / "ready").exists():
        _install(environment, folder)
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _install(environment: Environment, folder: Path) -> None:
    # Whole or not at all: an environment that was left half made would fail at every later run.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        told([sys.executable, "-m", "venv", str(folder)], INSTALL_SECONDS)
        pip = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        told([*pip, *environment.requirements], INSTALL_SECONDS)
        if environment.alone:
            told([*pip, "--no-deps", *environment.alone], INSTALL_SECONDS)
        (folder / "ready").touch()
    except (UnavailableError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UnavailableError(str(error)) from error


def told(command: Sequence[str], seconds: float, threads: int | None = None) -> str:
    """What a command prints; one that fails or takes too long is unavailable, with its last words."""
    environment = dict(os.environ)
    if threads is not None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[name] = str(threads)
    # Not in the present folder: a module lying there could take a package's name.
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, env=environment, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(f"took more than {seconds:.0f} s") from error
    if done.returncode != 0:
        raise UnavailableError(_reason(done.stderr or done.stdout) or f"ended with {done.returncode}")
    return done.stdout


def _reason(text: str) -> str:
    """The line of an output that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [""])[-1].removeprefix("ERROR: ")[:160]
