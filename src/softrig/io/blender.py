"""Blender as a helper in a process of its own: finding it, giving it a job, and trusting nothing that comes back.

Blender is under the GPL and pins old packages, so it is never imported: `blender_side.py` runs inside it,
and the two sides share only files of a temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softrig.errors import SoftrigError
from softrig.io.processes import job_folder, run_bounded
from softrig.io.usd import MissingExtraError

VARIABLE = "SOFTRIG_BLENDER"
"""Environment variable: a Python that has the module bpy, or a blender executable."""

SCRIPT = Path(__file__).with_name("blender_side.py")
SECONDS = 300.0
"""How long a job may take by default."""

_MOST_RESPONSE = 1 << 20
_TOLD = 500
_PASSED_ON = ("PATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class BlenderError(SoftrigError):
    """Blender failed, took too long, or gave back nothing usable; the message holds its own words."""


@dataclass(frozen=True)
class Blender:
    """A Blender that can be run: a Python that has bpy, or a blender executable."""

    path: Path
    found_by: str
    """How it was found, in words."""

    @property
    def is_python(self) -> bool:
        """Whether it is a Python rather than a blender executable, by its name."""
        return "python" in self.path.name.lower()

    def command(self, script: Path, argument: Path) -> list[str]:
        """The command line that runs a script with one argument, without anyone's settings or add-ons."""
        if self.is_python:
            return [str(self.path), "-I", str(script), str(argument)]
        quiet = ["--background", "--factory-startup", "--disable-autoexec", "--python-exit-code", "3"]
        return [str(self.path), *quiet, "--python", str(script), "--", str(argument)]


@dataclass(frozen=True)
class BlenderCheck:
    """What is known of a Blender after asking it."""

    blender: Blender
    version: str
    python: str
    missing: tuple[str, ...]
    """What it cannot do, in words."""


def data_folder() -> Path:
    """The user's own folder for what softrig installs."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "softrig"


def environment_folder() -> Path:
    """Where `softrig blender install` puts its environment."""
    return data_folder() / "blender"


def environment_python(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_blender() -> Blender:
    """The Blender to use: what `SOFTRIG_BLENDER` names, else the installed environment; it is not run yet."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingExtraError(f"{VARIABLE} is '{named}', which is no program that can be run")
        return Blender(Path(found).absolute(), f"by {VARIABLE}")
    python = environment_python(environment_folder())
    if python.exists():
        return Blender(python, "installed by 'softrig blender install'")
    raise MissingExtraError(
        "this needs Blender: run 'softrig blender install' (about 1 GB, in an environment of its own), or set"
        f" {VARIABLE} to a Python that has bpy or to a blender executable"
    )


def check_blender(blender: Blender | None = None, *, seconds: float = 60.0) -> BlenderCheck:
    """Start Blender and ask it what it is; `BlenderError` if it does not answer."""
    chosen = blender or find_blender()
    with job_folder() as folder:
        answer = run_job(chosen, folder, {"job": "version"}, seconds=seconds)
    missing = answer.get("missing", [])
    return BlenderCheck(chosen, str(answer["version"]), str(answer.get("python", "?")), tuple(map(str, missing)))


def run_job(blender: Blender, folder: Path, request: dict[str, Any], *, seconds: float = SECONDS) -> dict[str, Any]:
    """Have Blender do one job in `folder` and return its answer, checked to be one.

    request: plain values for JSON; `job` names a function of blender_side.py. After `seconds` Blender and all that it
    started are ended.
    """
    request_path, response_path = folder / "request.json", folder / "response.json"
    response_path.unlink(missing_ok=True)
    request_path.write_text(json.dumps(request), encoding="utf-8")
    try:
        outcome = run_bounded(blender.command(SCRIPT, request_path), folder, _environment(folder), seconds)
    except OSError as error:
        raise BlenderError(f"{blender.path} cannot be run: {error.strerror or error}") from error
    if outcome.code is None:
        raise BlenderError(f"Blender did not finish within {seconds:g} s and was ended")
    ended = f"Blender ({blender.path}) ended {outcome.ending}"
    words = f": {outcome.last_words}" if outcome.last_words else ""
    if not response_path.is_file():
        raise BlenderError(f"{ended} without an answer{words}")
    if response_path.stat().st_size > _MOST_RESPONSE:
        raise BlenderError(f"Blender's answer is {response_path.stat().st_size} bytes long, which is no answer")
    try:
        answer = json.loads(response_path.read_bytes())
    except ValueError as error:
        raise BlenderError(f"Blender's answer cannot be read: {error}") from error
    if isinstance(answer, dict) and "error" in answer:
        raise BlenderError(f"Blender: {str(answer['error'])[:_TOLD]}")
    if outcome.code != 0 or not isinstance(answer, dict) or not isinstance(answer.get("version"), str):
        raise BlenderError(f"{ended} with no usable answer{words}")
    return answer


def _environment(folder: Path) -> dict[str, str]:
    """Only what a program needs to start; settings, home and temporary files are in the job's folder."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    place = str(folder)
    own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), place)
    return {**kept, **own, "BLENDER_USER_RESOURCES": place, "PYTHONDONTWRITEBYTECODE": "1"}
