"""Tables of the project file's settings, made from `softrig.project` itself whenever the site is built.

A page holds `<!-- settings: NAME -->`, with a name of `TABLES`, where a table belongs, and `<!-- presets -->` where the
kinds of flesh belong. Names, ranges and defaults are the schema's; meanings, the docstrings of its fields. What those
cannot say (units, what no value means) is in `WORDS`. A field without a word, a word without a field, and one word
for two fields are errors.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from softrig import project
from softrig.poses.materials import PRESETS

TABLES: dict[str, type[BaseModel]] = {
    "file": project.Project,
    "mesh": project.MeshSettings,
    "material": project.MaterialSettings,
    "material of a pose": project.PoseMaterial,
    "poses": project.PoseSettings,
    "given pose": project.GivenPose,
    "basis": project.BasisSettings,
    "handle": project.HandleSettings,
    "cubature": project.CubatureSettings,
    "simulation": project.SimulationSettings,
}
"""Models by the names that pages use."""


@dataclass(frozen=True)
class Word:
    """What the schema does not say of a field."""

    unit: str = ""
    """Empty where a field has none; "1" for plain numbers."""
    absent: str = "–"
    """What it means that there is no value."""
    meaning: str = ""
    """Where the docstring is missing, or leans on what the table has in columns of its own."""


PRESETS_OWN = "the preset's"
WORDS: dict[str, Word] = {
    "scale": Word(
        "m", "1", "Metres per unit of the character file; an unlikely size is refused where it is not given."
    ),
    "seed": Word("1", meaning="Of everything random: the same seed gives the same model."),
    "parts": Word(absent="guessed from the meshes", meaning="Role of a part, by its name."),
    "tets": Word("tets"),
    "mesher": Word(),
    "young": Word("Pa", PRESETS_OWN, "Young's modulus: how stiff it is. A number, or the name of a map."),
    "poisson": Word(
        "1",
        PRESETS_OWN,
        "Poisson ratio: how much flesh gives way sideways; near 0.5 it keeps its volume. A number, or a map's name.",
    ),
    "density": Word("kg/m³", PRESETS_OWN, "Mass of a cubic metre."),
    "softness_map": Word(meaning="Painted map: 1 as soft as the preset, towards 0 stiffer, exactly 0 plain skinning."),
    "stiffness_map": Word(),
    "stiffness_range": Word("1", meaning="What 1 on the stiffness map multiplies Young's modulus by."),
    "preset": Word(meaning="Kind of flesh."),
    "law": Word(meaning="How stress follows from strain."),
    "smoothing": Word("tets²"),
    "bony": Word(),
    "firm": Word(),
    "poses.count": Word("poses"),
    "cubature.count": Word("tets", "1.5 a mode, 3 in very soft bodies", "How many tets are chosen."),
    "given": Word(meaning="Poses chosen by hand; they come first."),
    "clips": Word(absent="all", meaning="From which clips poses are chosen."),
    "corrections": Word(),
    "name": Word(absent="made from clip and time", meaning="What it is called in reports and in `[material.poses]`."),
    "clip": Word(meaning="A clip of the character."),
    "time": Word("s", meaning="The moment of the clip."),
    "handle.name": Word(meaning="What the region is called."),
    "parameters": Word(meaning="Rig parameters by name; the others at rest."),
    "sculpt": Word(),
    "recipe": Word(),
    "basis.modes": Word("modes", meaning="How many shapes, over all regions (r)."),
    "simulation.modes": Word("modes", "all", "How many of the model's modes are stepped, the most important first."),
    "regions": Word("regions"),
    "handles": Word(absent="regions are made from the bones"),
    "bone": Word(meaning="A bone by name."),
    "point": Word("m", meaning="A place at rest."),
    "segment": Word("m", meaning="Two places at rest."),
    "interpolation": Word(),
    "between_poses": Word(
        absent='`"pooled"`; in the world `"interpolated"`',
        meaning='Which shapes are used between the prepared poses. `"pooled"`: one basis for all poses, the principal '
        'components of all of theirs; `"interpolated"`: a basis at each pose, as in the paper; `"neutral"`: that of '
        "the rest pose.",
    ),
    "rehearsal": Word("s"),
    "contact": Word(),
    "derivatives": Word("modes"),
    "cubature.method": Word(absent='`"nnls"`; `"htp"` with the paper\'s recipe', meaning="How the tets are chosen."),
    "simulation.method": Word(
        meaning='How time is stepped. `"newmark"` adds no damping of its own; `"backward-euler"` calms quick swings '
        "more than slow ones, and more at a lower rate."
    ),
    "samples": Word("a pose"),
    "stiffness_correction": Word(
        meaning="Whether the linear part of the force is known apart from the tets, which then give what is beyond it."
    ),
    "damping_ratio": Word(
        "1", PRESETS_OWN, "Share of critical damping at the lowest frequency: 0 swings on, 1 does not swing."
    ),
    "gravity": Word(
        meaning='`"change"`: the shape as sculpted already sags, and only turning it adds to that; `"full"`: it sags '
        'further; `"off"`: no weight.'
    ),
    "inertia": Word("1", meaning="Factor on the rig's accelerations as the flesh feels them; 1 is physical."),
    "rate": Word("1/s"),
    "stiffness": Word("1", "1 everywhere"),
    "wind": Word("N/m²", "off", "The same force on every square metre of skin, along the world's axes."),
}
"""By field, or by table and field where the same word means another thing."""

HIDDEN = {"mesh", "material", "poses", "basis", "cubature", "simulation"}
"""Fields of the whole that are tables of their own (pages describe `material.poses` in words)."""


def settings_table(name: str) -> str:
    """The Markdown table of one of `TABLES`."""
    model = TABLES[name]
    schema = model.model_json_schema()
    meanings = docstrings(model)
    rows = []
    for field, content in schema["properties"].items():
        if field in HIDDEN and isinstance(model.model_fields[field].default, BaseModel | dict):
            continue
        word = word_of(name, field)
        meaning = word.meaning or meanings.get(field)
        if not meaning:
            raise ValueError(f"{model.__name__}.{field} has no docstring and no word")
        cells = (
            f"`{field}`",
            word.unit,
            allowed(content),
            default(model, field, word),
            " ".join(meaning.split()),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    head = "| key | unit | range | default | meaning |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *rows])


def word_of(name: str, field: str) -> Word:
    """The word of a field of a table; one word for fields that two tables declare apart is an error."""
    own = f"{name}.{field}"
    if own in WORDS:
        return WORDS[own]
    sharing = [
        other for other, model in TABLES.items() if field in model.model_fields and f"{other}.{field}" not in WORDS
    ]
    if len({declaring(TABLES[other], field) for other in sharing}) > 1:
        raise ValueError(f"'{field}' of {', '.join(sharing)} are different fields: give each a word of its own")
    return WORDS[field]


def declaring(model: type[BaseModel], field: str) -> type:
    """The class whose body declares a field of `model`."""
    return next(base for base in model.__mro__ if field in inspect.get_annotations(base))


def unknown_words() -> set[str]:
    """Words of fields that no table has."""
    pairs = [(name, field) for name, model in TABLES.items() for field in model.model_fields]
    return set(WORDS) - {field for _, field in pairs} - {f"{name}.{field}" for name, field in pairs}


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field in the source, base classes included."""
    found: dict[str, str] = {}
    for each in reversed([base for base in model.__mro__ if base.__module__ == project.__name__]):
        body = ast.parse(inspect.getsource(each)).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                if is_text and isinstance(text.value.value, str):  # type: ignore[attr-defined]
                    found[field.target.id] = text.value.value  # type: ignore[attr-defined]
    return found


def allowed(content: dict[str, Any]) -> str:
    """What a field may be, in words: numbers with their limits, or the choices."""
    if either := content.get("anyOf") or content.get("oneOf"):
        return " or ".join(allowed(each) for each in either if each.get("type") != "null")
    if "enum" in content:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in content["enum"])
    kind = content.get("type")
    if kind in ("integer", "number"):
        return _interval(content)
    if kind == "object" and isinstance(values := content.get("additionalProperties"), dict):
        return f"by name: {allowed(values)}"
    if kind == "array":
        return _list(content)
    return {"boolean": "`true`, `false`", "string": "text"}.get(str(kind), "table")


def _list(content: dict[str, Any]) -> str:
    if "prefixItems" in content:
        return "list of " + ("three numbers" if len(content["prefixItems"]) == 3 else "two points")
    return "list of tables" if "$ref" in content.get("items", {}) else "list of names"


def _interval(content: dict[str, Any]) -> str:
    low, high = content.get("minimum"), content.get("maximum")
    above, below = content.get("exclusiveMinimum"), content.get("exclusiveMaximum")
    parts = []
    if low is not None or above is not None:
        parts.append(f"≥ {_number(low)}" if low is not None else f"> {_number(above)}")
    if high is not None or below is not None:
        parts.append(f"≤ {_number(high)}" if high is not None else f"< {_number(below)}")
    if low is not None and high is not None:
        return f"{_number(low)} … {_number(high)}"
    return ", ".join(parts) or "any number"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def default(model: type[BaseModel], field: str, word: Word) -> str:
    """The default in words."""
    info = model.model_fields[field]
    value = info.default
    if info.is_required():
        return "must be given"
    if value is None or value in ({}, ()):
        return word.absent
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return word.absent if not any(value) else ", ".join(_number(each) for each in value)
    return _number(value)


def presets_table() -> str:
    """The kinds of flesh."""
    rows = []
    for name, kind in PRESETS.items():
        numbers = f"{kind.young:,.0f} | {kind.poisson:g} | {kind.density:,.0f} | {kind.damping_ratio:g}"
        rows.append(f'| `"{name}"` | {numbers} | {kind.looks} |')
    head = "| preset | Young's modulus, Pa | Poisson ratio | density, kg/m³ | damping ratio | what it looks like |"
    return "\n".join([head, "| --- | ---: | ---: | ---: | ---: | --- |", *rows])


def with_tables(markdown: str) -> str:
    """A page with its marks replaced; an unknown name is an error."""
    markdown = re.sub(r"<!-- settings: (.+?) -->", lambda match: settings_table(match.group(1)), markdown)
    return markdown.replace("<!-- presets -->", presets_table())


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return with_tables(markdown)
