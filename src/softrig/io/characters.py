"""Character files by their ending: one entry a format, each loader in a module of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from softrig.errors import notice
from softrig.io import blender_files
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf
from softrig.io.sizes import size_trouble
from softrig.rig.character import Character
from softrig.words import no_such_file

LOADERS: dict[str, Callable[..., Character]] = {
    ".glb": load_gltf,
    ".gltf": load_gltf,
    ".vrm": load_gltf,
    **dict.fromkeys(blender_files.ENDINGS, blender_files.load_with_blender),
}
"""Loader by lower-case ending, called as loader(path, scale=scale)."""


def unread_ending(path: str | Path, *others: str) -> FileFormatError:
    """The error about a file of an ending that is not read; `others`: endings that are, beside those of characters."""
    ending = Path(path).suffix.lower()
    known = ", ".join(sorted([*LOADERS, *others]))
    what = f"ending {ending}" if ending else "no ending"
    if Path(path).is_dir():
        return FileFormatError(path, f"this is a folder; name a file in it (softrig reads {known})")
    if not Path(path).exists():
        return FileFormatError(path, f"{no_such_file(path)} (softrig reads {known})")
    return FileFormatError(path, f"{what}: softrig reads {known}")


def load_character(path: str | Path, *, scale: float = 1.0) -> Character:
    """The character in a file, by the loader of its ending; lengths are multiplied by `scale` to be metres.

    Draws a `Notice` for a character of implausible size.
    """
    character = read_character(path, scale=scale)
    if trouble := size_trouble(character, scale):
        notice(f"{path}: {trouble}")
    return character


def read_character(path: str | Path, *, scale: float = 1.0) -> Character:
    """As `load_character`, of whatever size."""
    ending = Path(path).suffix.lower()
    if ending not in LOADERS:
        raise unread_ending(path)
    return LOADERS[ending](path, scale=scale)
