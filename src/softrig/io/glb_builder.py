"""A GLB that grows: what is in it stays byte by byte, new arrays go to the end of its binary chunk."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.io.format_error import FileFormatError
from softrig.io.glb import GltfDocument, split_glb

BYTE, UNSIGNED_BYTE, SHORT, UNSIGNED_SHORT, UNSIGNED_INT, FLOAT = 5120, 5121, 5122, 5123, 5125, 5126
VERTICES, INDICES = 34962, 34963
"""Targets of buffer views."""

_COMPONENT = {"b": BYTE, "B": UNSIGNED_BYTE, "h": SHORT, "H": UNSIGNED_SHORT, "I": UNSIGNED_INT, "f": FLOAT}
_KINDS = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<II")
_JSON_CHUNK, _BINARY_CHUNK = 0x4E4F534A, 0x004E4942
_MOST_BYTES = (1 << 32) - 1


class GlbBuilder:
    """The JSON of a GLB (`json`, a plain dict to add to) and its binary chunk, which can only grow."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"asset": {"version": "2.0", "generator": "softrig"}}
        self._pieces: list[bytes] = []
        self._length = 0
        self._rest = b""
        self._zeros: dict[tuple[str, int], int] = {}

    @classmethod
    def opened(cls, content: bytes, path: str | Path = "input.glb") -> GlbBuilder:
        """Continue the GLB of these bytes; `path` is for messages. Chunks of other kinds are kept behind."""
        source = Path(path)
        if content[:4] != b"glTF":
            raise FileFormatError(source, "is not a GLB; a .gltf must be packed into one first")
        text, binary = split_glb(source, content)
        builder = cls()
        try:
            builder.json = json.loads(bytes(text).decode("utf-8-sig"))
        except (ValueError, RecursionError) as trouble:
            raise FileFormatError(source, f"the JSON cannot be read ({trouble})") from None
        buffers = builder.json.setdefault("buffers", [])
        if buffers and (binary is None or "uri" in buffers[0]):
            raise FileFormatError(source, "keeps its first buffer outside the file: pack it into the GLB first", [0])
        end = _HEADER.size + _CHUNK.size + len(text)
        if binary is not None:
            builder._append(bytes(binary) + bytes(-len(binary) % 4))
            end += _CHUNK.size + len(binary)
        builder._rest = content[end : _HEADER.unpack_from(content)[2]]
        return builder

    @property
    def binary_length(self) -> int:
        """Bytes of the binary chunk so far."""
        return self._length

    def document(self) -> GltfDocument:
        """What is there now, for readers of accessors."""
        binary = b"".join(self._pieces)
        return GltfDocument(Path("input.glb"), self.json, memoryview(binary), len(binary))

    def add(self, collection: str, entry: dict[str, Any]) -> int:
        """Append `entry` to one of the lists of the JSON ("nodes", "meshes" …); returns its index."""
        entries = self.json.setdefault(collection, [])
        entries.append(entry)
        return len(entries) - 1

    def view(self, content: bytes, *, target: int | None = None, stride: int | None = None) -> int:
        """A buffer view of `content`, at a multiple of four bytes."""
        entry: dict[str, Any] = {"buffer": 0, "byteOffset": self._length, "byteLength": len(content)}
        if stride is not None:
            entry["byteStride"] = stride
        if target is not None:
            entry["target"] = target
        self._append(content + bytes(-len(content) % 4))
        return self.add("bufferViews", entry)

    def accessor(
        self, values: np.ndarray, *, bounds: bool = False, target: int | None = None, normalised: bool = False
    ) -> int:
        """An accessor of (count,), (count, width) or (count, 4, 4) numbers, matrices stored column by column.

        Vertex attributes are padded to multiples of four bytes. `bounds` adds the least and largest values.
        """
        table = _table(values)
        entry = _description(table, bounds, normalised)
        size = table.shape[1] * table.itemsize
        stride = size + -size % 4
        if target == VERTICES and stride != size:
            padded = np.zeros((len(table), stride), np.uint8)
            padded[:, :size] = np.ascontiguousarray(table).view(np.uint8).reshape(len(table), size)
            view = self.view(padded.tobytes(), target=target, stride=stride)
        else:
            view = self.view(table.tobytes(), target=target)
        return self.add("accessors", {"bufferView": view, **entry})

    def morph_accessor(self, values: np.ndarray, *, normalised: bool = False) -> int:
        """An accessor of (n, 3) displacements, sparse where that is smaller; with bounds."""
        rows = np.flatnonzero((values != 0).any(axis=1))
        if rows.size == 0:
            return self.zeros("VEC3", len(values))
        index_type = np.dtype("<u2") if len(values) <= 1 << 16 else np.dtype("<u4")
        element = 3 * values.itemsize
        if rows.size * (element + index_type.itemsize) >= len(values) * (element + -element % 4):
            return self.accessor(values, bounds=True, target=VERTICES, normalised=normalised)
        entry = _description(_table(values), True, normalised)
        indices = {
            "bufferView": self.view(rows.astype(index_type).tobytes()),
            "componentType": _COMPONENT[index_type.char],
        }
        entry["sparse"] = {
            "count": int(rows.size),
            "indices": indices,
            "values": {"bufferView": self.view(_table(values[rows]).tobytes())},
        }
        return self.add("accessors", entry)

    def zeros(self, kind: str, count: int) -> int:
        """An accessor of float zeros that takes no bytes; made once a kind and count."""
        key = kind, count
        if key not in self._zeros:
            width = next(width for width, name in _KINDS.items() if name == kind)
            bounds = {"min": [0.0] * width, "max": [0.0] * width}
            entry = {"componentType": FLOAT, "count": count, "type": kind, **bounds}
            self._zeros[key] = self.add("accessors", entry)
        return self._zeros[key]

    def require(self, extension: str) -> None:
        """Say that readers must know `extension`."""
        for collection in ("extensionsUsed", "extensionsRequired"):
            names = self.json.setdefault(collection, [])
            if extension not in names:
                names.append(extension)

    def content(self) -> bytes:
        """The bytes of the GLB."""
        buffers = self.json.setdefault("buffers", [])
        if self._length:
            if not buffers:
                buffers.append({})
            buffers[0]["byteLength"] = self._length
        for collection in ("buffers", "bufferViews", "accessors"):
            if not self.json.get(collection, True):
                del self.json[collection]
        text = json.dumps(self.json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 4)
        chunks = [_CHUNK.pack(len(text), _JSON_CHUNK), text]
        if self._length:
            chunks += [_CHUNK.pack(self._length, _BINARY_CHUNK), *self._pieces]
        chunks.append(self._rest)
        total = _HEADER.size + sum(map(len, chunks))
        if total > _MOST_BYTES:
            raise InputError(f"a GLB of {total} bytes cannot be: 4 GB is the most; bake fewer frames or targets")
        return b"".join([_HEADER.pack(b"glTF", 2, total), *chunks])

    def _append(self, content: bytes) -> None:
        self._pieces.append(content)
        self._length += len(content)


def _table(values: np.ndarray) -> np.ndarray:
    """(count, width) contiguous, little-endian, of a type glTF has (floats become float32)."""
    array = np.asarray(values)
    if array.ndim == 3:
        array = array.transpose(0, 2, 1).reshape(len(array), 16)
    if array.dtype.kind == "f":
        array = array.astype("<f4")
    if array.dtype.char not in _COMPONENT:
        raise InputError(f"GLB: numbers of type {array.dtype} cannot be stored")
    return np.ascontiguousarray(array.reshape(len(array), -1))


def _description(table: np.ndarray, bounds: bool, normalised: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "componentType": _COMPONENT[table.dtype.char],
        "count": len(table),
        "type": _KINDS[table.shape[1]],
    }
    if normalised:
        entry["normalized"] = True
    if bounds:
        entry |= {"min": table.min(axis=0).tolist(), "max": table.max(axis=0).tolist()}
    return entry
