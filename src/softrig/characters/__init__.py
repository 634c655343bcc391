"""Built-in characters, made by code: an arm, an X, a polar bear and a gorilla.

They stand in for the four examples of PSSD (Table 3) and have as many surface vertices.
"""

from __future__ import annotations

from collections.abc import Callable

from softrig.characters.arm import arm
from softrig.characters.assembly import BuiltInCharacter
from softrig.characters.bear import bear
from softrig.characters.gorilla import gorilla
from softrig.characters.letter import letter_x
from softrig.errors import InputError
from softrig.rig.corrections import Correction

CHARACTERS: dict[str, Callable[[], BuiltInCharacter]] = {"arm": arm, "x": letter_x, "bear": bear, "gorilla": gorilla}
"""Name to the function that builds the character, in some seconds; the same bits every time."""


def built_in(name: str) -> BuiltInCharacter:
    """The built-in character called `name`, one of `CHARACTERS`."""
    if name not in CHARACTERS:
        raise InputError(f"no built-in character '{name}'; there are {', '.join(CHARACTERS)}")
    return CHARACTERS[name]()


__all__ = ["CHARACTERS", "BuiltInCharacter", "Correction", "built_in"]
