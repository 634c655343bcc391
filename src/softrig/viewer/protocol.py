"""The binary messages of the viewer, server to page, little-endian:

    uint32 length of the header | header, JSON in UTF-8, padded with spaces | array | array | …

The header names the arrays in order, `"arrays": [{"name", "type", "shape"}]`. Header and arrays are padded so that each
array begins at a multiple of 8 bytes, where a browser can look at it without copying.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from softrig.errors import InputError

ALIGNMENT = 8
"""Bytes."""
TYPES = {name: np.dtype(name).newbyteorder("<") for name in ("float32", "uint16", "int32", "uint32", "uint8")}
"""What arrays may hold: what typed arrays of a browser hold."""


def encode(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """One message; `header` must be JSON without NaN and must not have an entry "arrays"."""
    parts = {name: _little(name, array) for name, array in (arrays or {}).items()}
    listed = [{"name": name, "type": kind, "shape": list(array.shape)} for name, (kind, array) in parts.items()]
    text = json.dumps({**header, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % ALIGNMENT)
    pieces = [struct.pack("<I", len(text)), text]
    for _, array in parts.values():
        pieces += [array.tobytes(), bytes(-array.nbytes % ALIGNMENT)]
    return b"".join(pieces)


def decode(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a message; the arrays look into its bytes and cannot be written to."""
    try:
        (length,) = struct.unpack_from("<I", message)
        header = json.loads(message[4 : 4 + length])
        place, arrays = 4 + length, {}
        for entry in header.pop("arrays"):
            kind, shape = TYPES[entry["type"]], tuple(entry["shape"])
            count = math.prod(shape)
            if min(shape, default=0) < 0:
                raise ValueError("an array of negative size")
            arrays[entry["name"]] = np.frombuffer(message, kind, count, place).reshape(shape)
            size = count * kind.itemsize
            place += size + -size % ALIGNMENT
    except (struct.error, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"not a message of the viewer: {error}") from error
    return header, arrays


def _little(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    kind = array.dtype.name
    if kind not in TYPES:
        raise InputError(f"array '{name}' holds {kind}; a message can hold {', '.join(TYPES)}")
    return kind, np.ascontiguousarray(array, dtype=TYPES[kind])
