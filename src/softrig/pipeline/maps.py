"""Painted maps: a number at every surface vertex, from the character's own file or from a `.npy` beside the project.

Maps of elastic constants may have one at every tet instead.
"""

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


def vertex_or_tet_map(
    character: Character, name: str, tets: int, folder: Path | None = None
) -> tuple[np.ndarray, bool]:
    """(n̄,) or (tets,) float64, finite: the map called `name`, and whether it is of tets, as its length tells.

    Attributes of the character are of vertices, files may be of either. Where there are as many tets as vertices a
    file's length tells nothing, and it is refused.
    """
    values, path = _found(character, name, folder)
    if path is None:
        return values, False
    vertices = character.rig.vertex_count
    if len(values) not in (vertices, tets):
        raise InputError(
            f"{path}: {len(values):,} values, where the character has {vertices:,} vertices and its mesh {tets:,} "
            "tets: it was made for another mesh"
        )
    if vertices == tets:
        raise InputError(
            f"{path}: {len(values):,} values could be of the vertices or of the tets, which are equally many: "
            "ask for another number of tets"
        )
    return values, len(values) == tets


def require_map(character: Character, name: str, folder: Path | None = None) -> None:
    """Refuse a name by which there is no map of vertices or tets; of how many, only the mesh can tell."""
    _found(character, name, folder)


def _found(character: Character, name: str, folder: Path | None) -> tuple[np.ndarray, Path | None]:
    """The finite values of a map of vertices or tets, and the file they are from, if it is no attribute."""
    if not name.lower().endswith(ENDING):
        values = paint_map(character, name)
        require_finite(values, f"map '{name}'")
        return values, None
    path = _beside(folder, name)
    values = _floats(path, character.rig.vertex_count)
    require_finite(values, f"{path}: values")
    return values, path


def read_map(path: Path, count: int) -> np.ndarray:
    """(count,) float64, finite: the map in a .npy file of as many floats."""
    values = _floats(path, count)
    if len(values) != count:
        raise InputError(
            f"{path}: {len(values):,} painted values, where the character has {count:,} vertices: "
            "it was painted on another mesh"
        )
    require_finite(values, f"{path}: painted values")
    return values


def _floats(path: Path, expected: int) -> np.ndarray:
    """The row of floats in a .npy file, as float64; a file of far more than are `expected` is not read."""
    try:
        values = read_npy(path, most_bytes=8 * max(expected, 1 << 20) + _MOST_HEADER)
    except FileNotFoundError:
        raise InputError(f"the painted map {path} is not there") from None
    except OSError as error:
        raise InputError(f"the painted map {path} cannot be read: {error.strerror}") from error
    if values.dtype.kind != "f" or values.ndim != 1:
        raise InputError(f"{path}: a painted map is one row of floats, not {values.dtype} of shape {values.shape}")
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
