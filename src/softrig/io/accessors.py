"""Buffers, buffer views and accessors of a glTF document: bytes in, checked NumPy arrays out.

Nothing is trusted: every range is checked before an array is made, no buffer outside the file's own folder is
opened, and the memory that reading may take is limited (`memory_limit`), however often the file repeats its bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.io.format_error import FileFormatError
from softrig.io.glb import GltfDocument
from softrig.io.json_fields import JsonObject, printable

COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_UNSIGNED = (5121, 5123, 5125)

MEMORY_FLOOR = 256 * 2**20
MEMORY_A_BYTE = 64
# Sparse accessors may have no bytes of their own: then so many elements at most, or one a byte of the file.
ELEMENTS_WITHOUT_BYTES = 2**20

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def memory_limit(file_bytes: int) -> int:
    """The bytes of arrays that reading a file of this size (with its buffers) may make: 256 MiB + 64 a byte."""
    return MEMORY_FLOOR + MEMORY_A_BYTE * file_bytes


class MemoryBudget:
    """Counts the bytes of the arrays made while reading one file, and refuses before the limit is passed."""

    def __init__(self, path: Path, file_bytes: int) -> None:
        self.path = path
        self.file_bytes = file_bytes
        self.spent = 0

    def charge(self, size: int, what: str) -> None:
        """Note that `size` bytes are about to be allocated for `what`."""
        self.spent += size
        limit = memory_limit(self.file_bytes)
        if self.spent > limit:
            raise FileFormatError(
                self.path,
                f"{what} would need {self.spent / 2**20:.0f} MiB in memory; the limit for a file of "
                f"{self.file_bytes / 2**20:.2f} MiB is {limit / 2**20:.0f} MiB",
            )


class BufferStore:
    """The bytes of the document's buffers, each fetched when first needed and only from safe places."""

    def __init__(self, document: GltfDocument) -> None:
        self.document = document
        self.budget = MemoryBudget(document.path, document.size)
        self._buffers: dict[int, memoryview] = {}
        self._files: dict[Path, memoryview] = {}

    def buffer(self, index: int) -> memoryview:
        """The `byteLength` bytes of a buffer."""
        if index not in self._buffers:
            entry = self.document.root.at("buffers", index)
            length = entry.whole("byteLength", least=1)
            content = self._fetch(entry, index, length)
            if length > len(content):
                raise entry.error(f"byteLength is {length}, but there are {len(content)} bytes")
            self._buffers[index] = content[:length]
        return self._buffers[index]

    def view(self, index: int) -> tuple[memoryview, int, int]:
        """The bytes of a buffer view, its offset in the buffer, and its stride (0: tightly packed)."""
        entry = self.document.root.at("bufferViews", index)
        offset, length = entry.whole("byteOffset", 0), entry.whole("byteLength", least=1)
        content = self.buffer(entry.whole("buffer"))
        if offset + length > len(content):
            raise entry.error(f"bytes {offset} to {offset + length} of a buffer of {len(content)}")
        return content[offset : offset + length], offset, entry.whole("byteStride", 0)

    def _fetch(self, entry: JsonObject, index: int, length: int) -> memoryview:
        if not entry.has("uri"):
            if index == 0 and self.document.binary is not None:
                return self.document.binary
            extensions = entry.fields.get("extensions")
            names = printable(", ".join(sorted(extensions))) if isinstance(extensions, dict) else ""
            raise entry.error(f"has no data that softrig can read ({names})" if names else "has no uri and no data")
        uri = entry.text("uri")
        if uri[:5].lower() == "data:":
            return memoryview(_decode_data_uri(entry, uri))
        return self._read_beside(entry, uri, length)

    def _read_beside(self, entry: JsonObject, uri: str, length: int) -> memoryview:
        target = _safe_target(entry, uri, self.document.path)
        known = self._files.get(target, memoryview(b""))
        if len(known) < length:
            try:
                with target.open("rb") as file:
                    # Asking for more than there is would reserve it all.
                    content = memoryview(file.read(min(length, target.stat().st_size)))
            except OSError as trouble:
                raise entry.error(f"uri {uri[:80]!r} cannot be read ({trouble.strerror})") from trouble
            self.budget.file_bytes += len(content) - len(known)
            self._files[target] = known = content
        return known


@dataclass(frozen=True)
class _Layout:
    """What an accessor says about its elements."""

    entry: JsonObject
    count: int
    width: int
    component: int

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(COMPONENTS[self.component])


class AccessorReader:
    """Accessors by index, as NumPy arrays."""

    def __init__(self, document: GltfDocument) -> None:
        self.root = document.root
        self.buffers = BufferStore(document)
        self.budget = self.buffers.budget
        self._numbers: dict[int, np.ndarray] = {}

    def numbers(
        self, index: int, kinds: tuple[str, ...], *, count: int | None = None, finite: bool = True
    ) -> np.ndarray:
        """Elements as float64 (count, width), normalised integers turned into fractions; read-only.

        `kinds` are the accessor types allowed, `count` the number of elements it must have.
        """
        layout = self._layout(index, kinds, count)
        if index not in self._numbers:
            raw = self._raw(layout)
            self.budget.charge(8 * raw.size, layout.entry.place)
            values = raw.astype(np.float64)
            if layout.entry.flag("normalized") and layout.component != 5126:
                values /= np.iinfo(layout.dtype).max
                # Two's complement has one value below −1.
                np.maximum(values, -1.0, out=values)
            values.flags.writeable = False
            self._numbers[index] = values
        values = self._numbers[index]
        if finite and not np.isfinite(values).all():
            raise layout.entry.error("NaN or infinite", np.unique(np.nonzero(~np.isfinite(values))[0]))
        return values

    def integers(self, index: int, kinds: tuple[str, ...], *, count: int | None = None) -> np.ndarray:
        """Elements of an accessor of unsigned integers, int64 (count, width)."""
        layout = self._layout(index, kinds, count)
        if layout.component not in _UNSIGNED:
            raise layout.entry.error(f"componentType {layout.component} where unsigned integers belong")
        raw = self._raw(layout)
        self.budget.charge(8 * raw.size, layout.entry.place)
        return raw.astype(np.int64)

    def count(self, index: int) -> int:
        """How many elements an accessor claims to have."""
        return self.root.at("accessors", index).whole("count", least=1)

    def kind(self, index: int) -> str:
        """The accessor's type, for example VEC3."""
        return self.root.at("accessors", index).text("type")

    def has_bytes(self, index: int) -> bool:
        """Whether an accessor has a buffer view or sparse values; without, it is all zeros (or compressed)."""
        entry = self.root.at("accessors", index)
        return entry.has("bufferView") or entry.has("sparse")

    def _layout(self, index: int, kinds: tuple[str, ...], count: int | None) -> _Layout:
        entry = self.root.at("accessors", index)
        kind, component = entry.text("type"), entry.whole("componentType")
        if kind not in kinds:
            raise entry.error(f"type {kind[:20]!r} where {' or '.join(kinds)} belongs")
        if component not in COMPONENTS:
            raise entry.error(f"componentType {component} is none of {', '.join(map(str, COMPONENTS))}")
        claimed = entry.whole("count", least=1)
        if count is not None and claimed != count:
            raise entry.error(f"has {claimed} elements where {count} belong")
        return _Layout(entry, claimed, WIDTHS[kind], component)

    def _raw(self, layout: _Layout) -> np.ndarray:
        entry = layout.entry
        sparse = entry.child("sparse")
        if entry.has("bufferView"):
            elements = self._elements(entry, layout, layout.count)
        else:
            most = max(ELEMENTS_WITHOUT_BYTES, self.budget.file_bytes)
            if layout.count > most:
                raise entry.error(f"{layout.count} elements without bytes of their own; at most {most} are read")
            self.budget.charge(layout.count * layout.width * layout.dtype.itemsize, entry.place)
            elements = np.zeros((layout.count, layout.width), layout.dtype)
        return elements if sparse is None else self._with_sparse(layout, sparse, elements)

    def _with_sparse(self, layout: _Layout, sparse: JsonObject, base: np.ndarray) -> np.ndarray:
        count = sparse.whole("count", least=1)
        if count > layout.count:
            raise sparse.error(f"count {count} is above the accessor's {layout.count}")
        where, what = sparse.child("indices"), sparse.child("values")
        if where is None or what is None:
            raise sparse.error("lacks indices or values")
        component = where.whole("componentType")
        if component not in _UNSIGNED:
            raise where.error(f"componentType {component} where unsigned integers belong")
        self.budget.charge(8 * count + base.nbytes, sparse.place)
        rows = self._elements(where, _Layout(where, count, 1, component), count)[:, 0].astype(np.int64)
        beyond = np.flatnonzero(rows >= layout.count)
        if beyond.size:
            raise where.error(f"beyond the {layout.count} elements", beyond)
        unsorted = np.flatnonzero(np.diff(rows) <= 0)
        if unsorted.size:
            raise where.error("not strictly increasing", unsorted + 1)
        replaced = np.array(base)
        replaced[rows] = self._elements(what, layout, count)
        return replaced

    def _elements(self, place: JsonObject, layout: _Layout, count: int) -> np.ndarray:
        """A (count, width) window into a buffer view, without copying; all of it checked to lie inside."""
        content, view_offset, stride = self.buffers.view(place.whole("bufferView"))
        offset, size = place.whole("byteOffset", 0), layout.dtype.itemsize
        tight = layout.width * size
        stride = stride or tight
        if stride < tight:
            raise place.error(f"byteStride {stride} is less than an element of {tight} bytes")
        if (offset + view_offset) % size or stride % size:
            raise place.error(f"misaligned: offset {offset + view_offset}, stride {stride} for numbers of {size} bytes")
        end = offset + stride * (count - 1) + tight
        if end > len(content):
            raise place.error(f"{count} elements reach to byte {end} of a buffer view of {len(content)}")
        return np.ndarray((count, layout.width), layout.dtype, content, offset, (stride, size))


def _decode_data_uri(entry: JsonObject, uri: str) -> bytes:
    header, comma, payload = uri.partition(",")
    if not comma:
        raise entry.error("the data: uri has no comma")
    if not header.lower().endswith(";base64"):
        return urllib.parse.unquote_to_bytes(payload)
    try:
        return base64.b64decode(urllib.parse.unquote_to_bytes(payload), validate=True)
    except (binascii.Error, ValueError) as trouble:
        raise entry.error(f"the data: uri is not base64 ({trouble})") from None


def _safe_target(entry: JsonObject, uri: str, document: Path) -> Path:
    """The file a buffer's uri names: a regular one in the document's folder or below, symlinks followed."""
    shown = repr(uri[:80])
    # A space may stand in a file name, but a scheme of any kind is refused, Windows drives included.
    if _SCHEME.match(uri):
        raise entry.error(f"uri {shown} is an address; only files beside this one and data: are read")
    name = urllib.parse.unquote(uri)
    parts = re.split(r"[/\\]", name)
    if _SCHEME.match(name) or name.startswith(("/", "\\")) or ".." in parts or "\0" in name or not name:
        raise entry.error(f"uri {shown} leads outside the file's folder")
    folder = document.parent.resolve()
    try:
        target = (folder / name).resolve()
        exists = target.is_file()
    except (OSError, RuntimeError, ValueError) as trouble:
        raise entry.error(f"uri {shown} cannot be followed ({type(trouble).__name__})") from None
    if not target.is_relative_to(folder):
        raise entry.error(f"uri {shown} leads outside the file's folder, by a symbolic link")
    if not exists:
        raise entry.error(f"uri {shown}: there is no such file")
    return target
