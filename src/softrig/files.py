"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EISDIR, ENOENT
from pathlib import Path
from stat import S_IWUSR


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it takes its place when the block ends well.

    If the block raises, the temporary file goes and an old file at `path` stays as it was.
    """
    target = require_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes private files; give this one the mode an ordinary open() would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(path: str | os.PathLike[str]) -> Path:
    """`path`, if a file can be written there; says what is in the way otherwise."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "the folder to write into does not exist", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(EISDIR, "a folder is in the way of the file to write", str(target))
    if target.exists() and not target.stat().st_mode & S_IWUSR:
        raise PermissionError(EACCES, "the file to replace is read-only", str(target))
    return target


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
