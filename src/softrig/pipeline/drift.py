"""Whether a model was built with other settings than its project file has by now."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from softrig.errors import InputError
from softrig.models.pose_space import PoseSpaceModel
from softrig.project import Project, load_project, with_recipe

MOST_SETTINGS, LONGEST_VALUE = 6, 40
"""Named in a line, and letters of a value that is shown."""


def drift_words(model: PoseSpaceModel, model_path: Path, character: Path | None) -> str:
    """Which settings the project file beside the character has that the model has not, and what to type; "" if none.

    The settings are compared, not the times of the files: what the command line of `build` said counts, too.
    """
    path = None if character is None else character.with_suffix(".toml")
    if character is None or path is None or not path.is_file():
        return ""
    try:
        differing = differing_settings(model, load_project(path))
    except InputError as trouble:
        return f"{model_path.name} is baked as it was built, its project file cannot be read: {trouble}"
    if not differing:
        return ""
    more = f", … ({len(differing)})" if len(differing) > MOST_SETTINGS else ""
    where = "" if model_path == character.with_suffix(".softrig") else f" -o {shlex.quote(str(model_path))}"
    return (
        f"{model_path.name} was built with other settings than {path.name} has: "
        f"{', '.join(differing[:MOST_SETTINGS])}{more}. It is baked as it was built; to build it by the file: "
        f"softrig build {shlex.quote(str(character))}{where}"
    )


def differing_settings(model: PoseSpaceModel, project: Project) -> list[str]:
    """By name, with both values where they are short, the settings of `project` that the model was not built with."""
    noted = model.notes.get("project")
    if not isinstance(noted, dict):
        return []
    try:
        built = Project.model_validate(noted)
    except ValueError:
        return []  # by another softrig, whose settings have other names
    settings = built, with_recipe(project)
    before, now = (_flat(_meant(each)) for each in settings)
    said = [_flat(each.model_dump(mode="json", exclude_defaults=True)) for each in settings]
    names = [name for name in {**said[0], **said[1]} if before.get(name) != now.get(name)]
    return [name + _values(before.get(name), now.get(name)) for name in names]


def _meant(project: Project) -> dict[str, Any]:
    """All settings, those that can be said in several ways as what they mean."""
    content = project.model_dump(mode="json")
    content["scale"] = project.metres_per_unit
    content["basis"]["contact"] = project.basis.contact_kind
    return content


def _flat(content: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Settings as "material.young"."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{key}.")
        else:
            flat[above + key] = value
    return flat


def _values(before: Any, now: Any) -> str:
    shown = ["default" if value is None else json.dumps(value) for value in (before, now)]
    return f" ({shown[0]}, in the file {shown[1]})" if max(map(len, shown)) <= LONGEST_VALUE else ""
