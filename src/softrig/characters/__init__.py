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
from softrig.words import did_you_mean

CHARACTERS: dict[str, Callable[[], BuiltInCharacter]] = {"arm": arm, "x": letter_x, "bear": bear, "gorilla": gorilla}
"""Name to the function that builds the character, in some seconds; the same bits every time."""


def no_built_in(name: str) -> str:
    """What to say of a name that no built-in character has."""
    asked = did_you_mean(name, list(CHARACTERS))
    return f"no built-in character '{name}'{asked}{' There' if asked else '; there'} are {', '.join(CHARACTERS)}"


def built_in(name: str) -> BuiltInCharacter:
    """The built-in character called `name`, one of `CHARACTERS`."""
    if name not in CHARACTERS:
        raise InputError(no_built_in(name))
    return CHARACTERS[name]()


__all__ = ["CHARACTERS", "BuiltInCharacter", "Correction", "built_in"]
