"""What was built before and need not be built again: arrays by a hash of everything they follow from.

One file a result, written whole or not at all, so a build that was killed goes on where it stopped and two builds may
share a folder. Files hold arrays and text only; one that cannot be read is made anew. A folder that grows beyond
`MOST_BYTES` loses what was not used for the longest time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from softrig.files import write_bytes
from softrig.version import __version__

VERSION = 4
"""Part of every hash, beside softrig's own: raised when a stage computes something else from the same input."""

MOST_BYTES = 4 * 2**30
"""Of a folder; a build of an ordinary character keeps some hundred megabytes, a full simulation of a clip as much."""
_OWN = re.compile(r".+-[0-9a-f]{32}\.npz")

Arrays = dict[str, np.ndarray]


def content_hash(*parts: Any) -> str:
    """A hash of arrays, numbers, texts, lists and tables of these; the same on every run."""
    digest = hashlib.sha256(f"{__version__} {VERSION}".encode())
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()[:32]


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, Mapping):
        for key in sorted(part):
            digest.update(f"key {key}".encode())
            _feed(digest, part[key])
    elif isinstance(part, list | tuple):
        digest.update(f"list {len(part)}".encode())
        for item in part:
            _feed(digest, item)
    else:
        digest.update(f"{type(part).__name__} {json.dumps(part, sort_keys=True)}".encode())


class StageCache:
    """A folder of finished stages; None keeps nothing."""

    def __init__(self, folder: Path | str | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.reused: list[str] = []
        """Names of the stages that were found finished."""
        self.made: list[str] = []
        self._used: set[Path] = set()

    def get(self, stage: str, key: str, make: Callable[[], Arrays]) -> Arrays:
        """The arrays of `stage` for inputs hashed as `key`, made now if they are not there."""
        found = self.find(stage, key)
        if found is not None:
            return found
        arrays = make()
        self.keep(stage, key, arrays)
        return arrays

    def find(self, stage: str, key: str) -> Arrays | None:
        """The arrays, if they are there and whole."""
        found = self._read(stage, key)
        if found is not None:
            self.reused.append(stage)
        return found

    def keep(self, stage: str, key: str, arrays: Arrays) -> None:
        """Write a result down."""
        self.made.append(stage)
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write_bytes(self._path(stage, key), buffer.getvalue())
        self._used.add(self._path(stage, key))
        self._trim()

    def _trim(self) -> None:
        """Remove results that were not used for the longest time, none of this run's, until the folder fits."""
        assert self.folder is not None
        found = []
        for path in self.folder.iterdir():
            if _OWN.fullmatch(path.name):
                try:
                    about = path.stat()
                except OSError:  # another build has removed it
                    continue
                found.append((about.st_mtime, about.st_size, path))
        excess = sum(size for _, size, _ in found) - MOST_BYTES
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            if path in self._used:
                continue
            try:
                path.unlink(missing_ok=True)
            except OSError:  # somebody reads it: another time
                continue
            excess -= size

    def _path(self, stage: str, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{stage}-{key}.npz"

    def _read(self, stage: str, key: str) -> Arrays | None:
        if self.folder is None or not self._path(stage, key).exists():
            return None
        path = self._path(stage, key)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None  # damaged: make it anew
        self._used.add(path)
        with suppress(OSError):  # a folder that only may be read
            os.utime(path)
        return arrays


def text_array(value: Any) -> np.ndarray:
    """A JSON-able value as bytes, to be kept beside arrays."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def text_value(array: np.ndarray) -> Any:
    """What `text_array` kept."""
    return json.loads(array.tobytes())
