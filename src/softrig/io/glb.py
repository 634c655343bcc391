"""The container of glTF 2.0: a GLB (binary) or a .gltf (JSON text), taken apart and its JSON parsed."""

from __future__ import annotations

import codecs
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from softrig.io.format_error import FileFormatError
from softrig.io.json_fields import JsonObject
from softrig.words import no_such_file

_MAGIC = b"glTF"
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<II")
_JSON_CHUNK = 0x4E4F534A
_BINARY_CHUNK = 0x004E4942


@dataclass(frozen=True)
class GltfDocument:
    """A parsed glTF: its JSON, the GLB's binary chunk if there is one, and the bytes of the file on disk."""

    path: Path
    json: dict[str, Any]
    binary: memoryview | None
    size: int

    @property
    def root(self) -> JsonObject:
        """The JSON as an object whose fields are checked when they are read."""
        return JsonObject(self.path, "", self.json)


def read_document(path: str | Path) -> GltfDocument:
    """Read a GLB, VRM or .gltf file; which of them it is, its first bytes tell. Nothing else is opened."""
    source = Path(path)
    try:
        if not source.is_file():
            raise FileFormatError(source, "is not a file" if source.exists() else no_such_file(source))
        content = source.read_bytes()
    except (OSError, ValueError) as trouble:
        if isinstance(trouble, FileFormatError):
            raise
        raise FileFormatError(source, f"cannot be read ({trouble})") from trouble
    if not content:
        raise FileFormatError(source, "is empty")
    if content[:4] == _MAGIC:
        text, binary = split_glb(source, content)
    elif not content.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"{", b"[")):
        raise FileFormatError(
            source, "this is no 3D character, whatever its name says; what can be read is GLB, VRM or glTF 2.0"
        )
    else:
        text, binary = memoryview(content), None
    document = GltfDocument(source, _parse(source, text), binary, len(content))
    _check_version(document.root)
    return document


def split_glb(path: Path, content: bytes) -> tuple[memoryview, memoryview | None]:
    """The JSON and the binary chunk of a GLB's bytes, without copying; chunks of other kinds are passed over."""
    if len(content) < _HEADER.size:
        raise FileFormatError(path, f"is cut off: {len(content)} bytes hold no GLB header")
    _, version, length = _HEADER.unpack_from(content)
    if version != 2:
        raise FileFormatError(path, f"is GLB version {version}; softrig reads version 2")
    if length > len(content):
        raise FileFormatError(path, f"is cut off: the header says {length} bytes, there are {len(content)}")
    chunks: list[tuple[int, memoryview]] = []
    position = _HEADER.size
    view = memoryview(content)[:length]
    while position + _CHUNK.size <= length:
        chunk_length, kind = _CHUNK.unpack_from(view, position)
        start = position + _CHUNK.size
        if chunk_length > length - start:
            raise FileFormatError(
                path, f"chunk {len(chunks)} claims {chunk_length} bytes, {length - start} are left", [len(chunks)]
            )
        chunks.append((kind, view[start : start + chunk_length]))
        position = start + chunk_length
        if len(chunks) == 2:  # only the second chunk may be the binary one; nothing after it concerns us
            break
    if not chunks or chunks[0][0] != _JSON_CHUNK:
        raise FileFormatError(path, "the first chunk of the GLB is not JSON")
    binary = chunks[1][1] if len(chunks) == 2 and chunks[1][0] == _BINARY_CHUNK else None
    return chunks[0][1], binary


def _parse(path: Path, text: memoryview) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        parsed = json.loads(bytes(text).decode("utf-8-sig"), parse_constant=refuse)
    except RecursionError:
        raise FileFormatError(path, "the JSON is nested too deeply") from None
    except UnicodeDecodeError as trouble:
        raise FileFormatError(path, f"is neither a GLB nor JSON text ({trouble.reason})") from None
    except ValueError as trouble:
        raise FileFormatError(path, f"the JSON cannot be read ({trouble})") from None
    if not isinstance(parsed, dict):
        raise FileFormatError(path, "the JSON is not an object")
    return parsed


def _check_version(root: JsonObject) -> None:
    asset = root.child("asset")
    if asset is None:
        raise root.error("has no 'asset' with a version: not a glTF file")
    version = asset.text("version")
    if not version.startswith("2."):
        raise asset.error(f"glTF version {version[:20]!r}; softrig reads 2.x")
