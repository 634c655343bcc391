"""Objects of an untrusted JSON document, read field by field: every field has its type and range checked.

Errors name the place the way the document is written, for example `accessors[3].count`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softrig.io.format_error import FileFormatError

# Names are repeated for every parameter and every instance, so a very long one would multiply a file's size.
LONGEST_NAME = 200
_LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class JsonObject:
    """One object of the document at `path`, with the `place` it stands at ("" is the document itself)."""

    path: Path
    place: str
    fields: dict[str, Any]

    def error(self, message: str, indices: Iterable[int] | np.ndarray = ()) -> FileFormatError:
        """An error about this object, for the caller to raise."""
        return FileFormatError(self.path, f"{self.place}: {message}" if self.place else message, indices)

    def has(self, key: str) -> bool:
        """Whether the field is there at all."""
        return key in self.fields

    def whole(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number of at least `least`; without a default the field must be there."""
        if key not in self.fields and default is not None:
            return default
        return self._checked_whole(self.fields.get(key), key, least)

    def index(self, key: str, default: int = -1) -> int:
        """An index into another list of the document, or `default` where the field is missing."""
        return self.whole(key) if key in self.fields else default

    def wholes(self, key: str) -> list[int]:
        """A list of whole numbers ≥ 0; empty where the field is missing."""
        return [self._checked_whole(value, f"{key}[{i}]", 0) for i, value in enumerate(self._list(key))]

    def numbers(self, key: str, length: int | None = None) -> np.ndarray | None:
        """A list of finite numbers, of `length` if given; None where the field is missing."""
        if key not in self.fields:
            return None
        values = self._list(key)
        if length is not None and len(values) != length:
            raise self.error(f"{key} has {len(values)} numbers, not {length}")
        wrong = [i for i, value in enumerate(values) if not _is_finite(value)]
        if wrong:
            raise self.error(f"{key} holds what is not a finite number", wrong)
        return np.array([float(value) for value in values], dtype=np.float64)

    def text(self, key: str, default: str = "") -> str:
        """A string, or `default` where the field is missing."""
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} is not a string")
        return value

    def name(self, default: str) -> str:
        """The object's `name`, cut to a sane length; `default` where it has none."""
        value = self.fields.get("name")
        return printable(value) if isinstance(value, str) and value else default

    def flag(self, key: str) -> bool:
        """True or false; false where the field is missing."""
        value = self.fields.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} is neither true nor false")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of strings; empty where the field is missing."""
        values = self._list(key)
        wrong = [i for i, value in enumerate(values) if not isinstance(value, str)]
        if wrong:
            raise self.error(f"{key} holds what is not a string", wrong)
        return values

    def child(self, key: str) -> JsonObject | None:
        """The object in a field, or None where the field is missing."""
        return self._wrapped(self.fields[key], key) if key in self.fields else None

    def children(self, key: str) -> list[JsonObject]:
        """The objects in a list; empty where the field is missing."""
        return [self._wrapped(value, f"{key}[{i}]") for i, value in enumerate(self._list(key))]

    def at(self, key: str, index: int) -> JsonObject:
        """The object at `index` of a list that must have it."""
        values = self._list(key)
        if not 0 <= index < len(values):
            raise self.error(f"{key}[{index}] does not exist, there are {len(values)}")
        return self._wrapped(values[index], f"{key}[{index}]")

    def _wrapped(self, value: object, key: str) -> JsonObject:
        place = f"{self.place}.{key}" if self.place else key
        if not isinstance(value, dict):
            raise FileFormatError(self.path, f"{place} is not an object")
        return JsonObject(self.path, place, value)

    def _list(self, key: str) -> list[Any]:
        value = self.fields.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"{key} is not a list")
        return value

    def _checked_whole(self, value: object, key: str, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST_WHOLE:
            raise self.error(f"{key} = {_shown(value)} is not a whole number of at least {least}")
        return value


def printable(text: str) -> str:
    """A string of the file made fit to show: no control characters or lone surrogates, and not too long."""
    return "".join(letter if letter.isprintable() else "_" for letter in text[:LONGEST_NAME])


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    # A whole number of 400 digits is legal JSON and overflows a float.
    return abs(value) < _LARGEST_WHOLE if isinstance(value, int) else math.isfinite(value)


def _shown(value: object) -> str:
    """A value of the file for a message: never a megabyte of it."""
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        return "a number beyond 2⁵³" if value > 0 else "a number below −2⁵³"
    if isinstance(value, str | list | dict):
        return {str: "a string", list: "a list", dict: "an object"}[type(value)]
    return "nothing" if value is None else str(value)
