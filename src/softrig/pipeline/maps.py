"""Painted maps: a number at every surface vertex, from the character's own file or from a `.npy` beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.io.npy import read_npy, write_npy
from softrig.rig.character import Character

ENDING = ".npy"
"""A map's name that ends so is the name of a file."""
_MOST_HEADER = 16384


def paint_map(character: Character, name: str, folder: Path | None = None) -> np.ndarray:
    """(n̄,) the painted map called `name`; one that ends in .npy is a file in `folder`, the project file's."""
    if name.lower().endswith(ENDING):
        return read_map(_beside(folder, name), character.rig.vertex_count)
    if name not in character.maps:
        known = ", ".join(f"'{known}'" for known in character.maps) or "none"
        raise InputError(f"'{character.name}' has no painted map '{name}'; its maps: {known}")
    return np.asarray(character.maps[name], np.float64)


def read_map(path: Path, count: int) -> np.ndarray:
    """(count,) float64, finite: the map in a .npy file of as many floats."""
    try:
        values = read_npy(path, most_bytes=8 * max(count, 1 << 20) + _MOST_HEADER)
    except FileNotFoundError:
        raise InputError(f"the painted map {path} is not there") from None
    if values.dtype.kind != "f" or values.ndim != 1:
        raise InputError(f"{path}: a painted map is one row of floats, not {values.dtype} of shape {values.shape}")
    if len(values) != count:
        raise InputError(
            f"{path}: {len(values):,} painted values, where the character has {count:,} vertices: "
            "it was painted on another mesh"
        )
    require_finite(values, f"{path}: painted values")
    return values.astype(np.float64)


def write_map(path: Path, values: np.ndarray) -> None:
    """Write a map (n̄,) as a .npy file of float32."""
    write_npy(path, np.ascontiguousarray(values, np.float32))


def _beside(folder: Path | None, name: str) -> Path:
    """The file called `name` in the project's folder, and nowhere else."""
    if folder is None:
        raise InputError(f"map '{name}': maps are looked for beside the project file, and there is none")
    if Path(name).name != name or "\\" in name or "\0" in name:
        raise InputError(f"map '{name}': give the plain name of a file beside the project file")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"map '{name}' lies outside the project's folder")
    return path
