"""Arrays in NumPy's own formats, trusting nothing: no pickles, and no more memory than the file's bytes ask for."""

from __future__ import annotations

import io
import zipfile
import zlib
from math import prod
from pathlib import Path

import numpy as np

from softrig.files import write_bytes
from softrig.io.format_error import FileFormatError

MOST_MEMBERS = 256
"""Arrays in one .npz."""
MOST_BYTES = 1 << 31
"""Of all arrays of one .npz, unpacked, unless a caller says less."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: str | Path, *, most_bytes: int = MOST_BYTES) -> np.ndarray:
    """The array of numbers in a .npy file of at most `most_bytes`."""
    size = Path(path).stat().st_size
    if size > most_bytes:
        raise FileFormatError(path, f"{size:,} bytes, where at most {most_bytes:,} are expected")
    return npy_array(Path(path).read_bytes(), path)


def npy_array(content: bytes, path: str | Path) -> np.ndarray:
    """The array of numbers in the bytes of a .npy file; `path` is for messages.

    What its header promises must be exactly what follows it, so a header that asks for a terabyte makes nothing.
    """
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise FileFormatError(path, f"NumPy format {version[0]}.{version[1]}; 1.0 and 2.0 are read")
        shape, by_columns, kind = _HEADERS[version](stream)
    except (ValueError, EOFError, SyntaxError, TypeError, RecursionError, MemoryError) as trouble:
        if isinstance(trouble, FileFormatError):
            raise
        raise FileFormatError(path, "not a NumPy array, or a damaged one") from trouble
    if kind.hasobject:
        raise FileFormatError(path, "holds Python objects (pickle), which could run anything: not read")
    if kind.kind not in "biuf" or any(length < 0 for length in shape):
        raise FileFormatError(path, f"holds {kind}, not plain numbers")
    wanted, there = prod(shape) * kind.itemsize, len(content) - stream.tell()
    if wanted != there:
        raise FileFormatError(path, f"its header asks for {wanted:,} bytes, and {there:,} follow")
    flat = np.frombuffer(content, kind, offset=stream.tell())
    native = flat.astype(kind.newbyteorder("="))
    return native.reshape(shape, order="F" if by_columns else "C")


def write_npy(path: str | Path, array: np.ndarray) -> None:
    """Write one array, whole or not at all."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def read_npz(path: str | Path, *, most_bytes: int = MOST_BYTES) -> dict[str, np.ndarray]:
    """All arrays of a .npz file by name; together at most `most_bytes` unpacked."""
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            total = sum(member.file_size for member in members)
            if len(members) > MOST_MEMBERS or total > most_bytes:
                raise FileFormatError(path, f"{len(members)} arrays of {total:,} bytes: more than it can be")
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(set(names)) != len(names):
                raise FileFormatError(path, "two arrays of the same name")
            return {name: npy_array(file.read(member), path) for name, member in zip(names, members, strict=True)}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as trouble:
        if isinstance(trouble, FileFormatError):
            raise
        raise FileFormatError(path, f"not a NumPy .npz file, or a damaged one ({trouble})") from trouble


def write_npz(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays by name, compressed, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())
