"""Characters by file or by the name of a built-in one, and the character a model was built from."""

from __future__ import annotations

from pathlib import Path

from softrig.characters import CHARACTERS, built_in
from softrig.errors import InputError, notice
from softrig.io.characters import load_character, read_character
from softrig.io.glb_writer import write_character_glb
from softrig.io.sizes import diagonal, likelier_scale, size_trouble
from softrig.models.pose_space import PoseSpaceModel
from softrig.project import noted_scale
from softrig.rig.character import Character
from softrig.words import did_you_mean


def named_character(name: str | Path, *, scale: float | None = 1.0) -> Character:
    """The character in a file, or the built-in one of that name where there is no such file.

    `scale`: metres per unit of the file. None: nobody has said, so it is 1, and a size that is unlikely is refused.
    """
    path = Path(name)
    if not path.exists() and str(name) in CHARACTERS:
        return built_in(str(name))
    if not path.exists() and not path.suffix:
        asked = did_you_mean(str(name), list(CHARACTERS))
        raise InputError(f"there is neither a file nor a built-in character called '{name}'{asked}")
    if scale is not None:
        return load_character(path, scale=scale)
    character = read_character(path)
    size = diagonal(character)
    proposed = likelier_scale(size, 1.0)
    if proposed is None and (trouble := size_trouble(character, 1.0)):
        notice(f"{path}: {trouble}")
    if proposed is not None:
        raise InputError(
            f"{path}: the character is {size:.3g} m from corner to corner, and would move like a thing of that size; "
            f"its unit is likely not the metre: write scale = {proposed:g} at the top of the project file "
            f"({path.with_suffix('.toml').name}), where build, view and compare find it, or give --scale {proposed:g} "
            "to this command alone. If it is as large as that, --scale 1"
        )
    return character


def model_character(model: PoseSpaceModel, model_path: Path, given: Path | None, folder: Path) -> Character:
    """The character `model` was built from: `given`, or its file beside the model, or the built-in one.

    A built-in character is written as a GLB into `folder`, so that clips can be added to it.
    """
    source = model.notes.get("source", {})
    scale = noted_scale(model.notes)
    if given is not None:
        return load_character(given, scale=scale)
    if "file" in source:
        path = model_path.parent / Path(str(source["file"])).name
        if not path.exists():
            raise InputError(
                f"{path}: the character that the model was built from is not there; name it: --character FILE"
            )
        return load_character(path, scale=scale)
    name = str(source.get("name", model.name))
    if name not in CHARACTERS:
        raise InputError(f"the model does not say which file '{name}' came from; name it: --character FILE")
    path = folder / f"{name}.glb"
    write_character_glb(built_in(name), path)
    return load_character(path)
