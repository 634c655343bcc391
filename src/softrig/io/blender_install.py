"""An environment of its own for Blender's Python module, in the user's data folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from softrig.io.blender import (
    Blender,
    BlenderCheck,
    BlenderError,
    check_blender,
    environment_folder,
    environment_python,
)

BPY = "bpy==5.0.1"
PYTHON = (3, 11)
"""The one Python that this bpy runs on."""

NEEDED_BYTES = 2 << 30
"""Free space asked for: the download (0.4 GB) lies beside what is unpacked (1 GB) for a while."""

_TOLD = 800


def install_blender(
    *,
    folder: Path | None = None,
    package: str = BPY,
    python: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> BlenderCheck:
    """Make an environment and install bpy into it with pip, about 1 GB; an environment that works is kept.

    folder: where, by default in the user's data folder. python: the Python 3.11 to build on. tell: gets a line of
    text now and then. A failed attempt leaves nothing behind.
    """
    target = folder or environment_folder()
    say = tell or (lambda _: None)
    if target.exists():
        try:
            return check_blender(Blender(environment_python(target), "installed before"))
        except BlenderError as broken:
            if not (target / "pyvenv.cfg").is_file():
                raise BlenderError(f"{target} is in the way and no environment of ours") from broken
            say(f"The environment in {target} does not work ({broken}); it is made again.")
            shutil.rmtree(target)
    base = python or matching_python()
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if free < NEEDED_BYTES:
        raise BlenderError(f"{target.parent} has {free / 1e9:.1f} GB free; {NEEDED_BYTES / 1e9:.1f} GB are needed")
    try:
        say(f"Making an environment in {target}")
        _do([str(base), "-m", "venv", str(target)], say)
        own = environment_python(target)
        say(f"Installing {package}: 0.4 GB to download, 1 GB on disk")
        _do([str(own), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", package], say)
        say("Trying it")
        return check_blender(Blender(own, "just installed"))
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def matching_python() -> Path:
    """A Python of the version that bpy needs: this one, or another on the search path."""
    if sys.version_info[:2] == PYTHON:
        return Path(sys.executable)
    name = f"python{PYTHON[0]}.{PYTHON[1]}"
    found = shutil.which(name)
    if found is None:
        raise BlenderError(
            f"{BPY} needs {name}, which is not here (this is {sys.version_info[0]}.{sys.version_info[1]}): install it,"
            " or set SOFTRIG_BLENDER to a blender executable"
        )
    return Path(found)


def _do(command: list[str], say: Callable[[str], None]) -> None:
    """Run a command, passing on what it says line by line."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    last: list[str] = []
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
    except OSError as error:
        raise BlenderError(f"{command[0]} cannot be run: {error.strerror or error}") from error
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                words = line.decode("utf-8", "replace").strip()
                if words:
                    say(words)
                    last = [*last[-4:], words]
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise BlenderError(
            f"'{' '.join(command[1:4])}' failed: {' | '.join(last)[-_TOLD:]}. Where pip's index does not have bpy,"
            " set PIP_EXTRA_INDEX_URL=https://download.blender.org/pypi/"
        )
