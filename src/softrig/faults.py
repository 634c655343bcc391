"""What is wrong with settings, in the words of the file they stand in: which, what was given, and what is wanted.

Names, kinds and ranges are those of the settings' JSON schema.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

MOST_FAULTS = 5
LONGEST = 40
"""Letters of a given value that are repeated."""

Schema = Mapping[str, Any]
Location = tuple[int | str, ...]


def told_faults(faults: Sequence[Mapping[str, Any]], schema: Schema) -> str:
    """The first of pydantic's `faults` in one line; `schema`: of all settings."""
    told = [_told(fault, schema) for fault in faults[:MOST_FAULTS]]
    more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
    return "; ".join(told) + more


def _told(fault: Mapping[str, Any], schema: Schema) -> str:
    location, kind = tuple(fault["loc"]), fault["type"]
    if kind == "extra_forbidden":
        return f"{_place(location)}: {_unknown(location, schema)}"
    if kind == "missing" and isinstance(location[-1], int):
        location, kind = location[:-1], "too short"  # it is the list that was given wrongly
    location, wanted = _found(location, schema)
    if kind == "value_error":
        return f"{_place(location)}: {str(fault['msg']).removeprefix('Value error, ')}"
    given = "missing" if kind == "missing" else _written(fault["input"])
    return f"{_place(location)} is {given}, but should be {_wanted(wanted, schema)}"


def _unknown(location: Location, schema: Schema) -> str:
    """What to say of a key that there is not."""
    key = str(location[-1])
    known = list(_plain(_found(location[:-1], schema)[1], schema).get("properties", {}))
    if close := difflib.get_close_matches(key, known, 1):
        return f"there is no such setting, did you mean {close[0]}?"
    tables = [
        name for name, table in schema["properties"].items() if key in _plain(table, schema).get("properties", {})
    ]
    if tables:
        return f"there is no such setting here, but in {' and '.join(f'[{name}]' for name in tables)}"
    return f"there is no such setting, there are {', '.join(known)}"


def _found(location: Location, schema: Schema) -> tuple[Location, Schema]:
    """How far the schema knows `location`, and what it says there; pydantic adds words that stand in no file."""
    here = schema
    for depth, part in enumerate(location):
        inner = _inside(_plain(here, schema), part)
        if inner is None:
            return location[:depth], here
        here = inner
    return location, here


def _inside(here: Schema, part: int | str) -> Schema | None:
    if isinstance(part, int):
        fixed: Sequence[Schema] = here.get("prefixItems", ())
        return fixed[part] if part < len(fixed) else here.get("items")
    others = here.get("additionalProperties")
    found: Schema | None = here.get("properties", {}).get(part)
    return found if found is not None else others if isinstance(others, Mapping) else None


def _choices(here: Schema) -> list[Schema]:
    """What a setting may be, where that is of several kinds. That it may be left out needs no word."""
    return [choice for choice in here.get("anyOf", here.get("oneOf", ())) if choice.get("type") != "null"]


def _plain(here: Schema, schema: Schema) -> Schema:
    """`here` without references, and without choices where there is only one."""
    if "$ref" in here:
        return _plain(schema["$defs"][here["$ref"].rpartition("/")[2]], schema)
    choices = _choices(here)
    return _plain(choices[0], schema) if len(choices) == 1 else here


def _wanted(here: Schema, schema: Schema) -> str:
    here = _plain(here, schema)
    if choices := _choices(here):
        return ", or ".join(_wanted(choice, schema) for choice in choices)
    if "enum" in here:
        *most, last = map(_written, here["enum"])
        return f"{', '.join(most)} or {last}"
    if here["type"] in ("integer", "number"):
        return f"a {'whole ' * (here['type'] == 'integer')}number{_range(here)}"
    if here["type"] == "array" and "prefixItems" in here:
        kind = "numbers" if here["prefixItems"][0]["type"] == "number" else "lists"
        return f"a list of {here['minItems']} {kind}"
    if here["type"] == "string":
        return str(here.get("description", "a text in quotes"))
    return {"boolean": "true or false", "array": "a list", "object": "a table"}[here["type"]]


def _range(here: Schema) -> str:
    if "minimum" in here and "maximum" in here:
        return f" from {here['minimum']:g} to {here['maximum']:g}"
    words = {
        "minimum": "of at least",
        "maximum": "of at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
    }
    told = [f"{word} {here[key]:g}" for key, word in words.items() if key in here]
    return " " + " and ".join(told) if told else ""


def _place(location: Location) -> str:
    """As it stands in the file: "[mesh] tets", "[material.poses.bent] young", "[poses] given, entry 2"."""
    first = next((depth for depth, part in enumerate(location) if isinstance(part, int)), len(location))
    *tables, key = [toml_key(str(part)) for part in location[:first]] or ["the file"]
    inner = [f"entry {part + 1}" if isinstance(part, int) else toml_key(part) for part in location[first:]]
    return ", ".join([f"[{'.'.join(tables)}] {key}" if tables else key, *inner])


def toml_key(key: str) -> str:
    """A key as TOML has it: in quotes where it needs some."""
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else json.dumps(key, ensure_ascii=False)


def _written(value: Any) -> str:
    """A value as the file has it, or its beginning."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, str | bool):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(map(_written, value))}]"
    else:
        text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
