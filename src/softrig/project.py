"""The project file (`hero.toml`): what the user decided about a character. Everything has a sensible default.

```toml
[material]
preset = "fat"            # muscle (default), fat, firm or jelly
softness_map = "softness" # painted map: 1 as soft as the preset, towards 0 stiffer, 0 plain skinning

[parts]
Shirt = "follows"         # soft, rigid or follows

[poses]
count = 4                 # chosen from the clips; or by hand:
given = [{ clip = "walk", time = 0.4 }]
```
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from softrig.errors import InputError
from softrig.faults import told_faults, toml_key
from softrig.files import write_bytes

LARGEST_FILE = 1 << 20
"""Bytes: a project file is written by hand."""

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Triple = tuple[float, float, float]
_NumberOrMap = Discriminator(lambda value: "map" if isinstance(value, str) else "number")
"""Tells the two apart, so that a wrong number is not told off for being no map as well."""
_Map = Annotated[str, Tag("map"), Field(description="the name of a map")]
Modulus = Annotated[Annotated[Positive, Field(strict=True), Tag("number")] | _Map, _NumberOrMap]
Ratio = Annotated[Annotated[float, Field(gt=-1.0, lt=0.5, strict=True), Tag("number")] | _Map, _NumberOrMap]

MOST_POSES = 64


class _Settings(BaseModel):
    """Unknown keys are refused: a typing mistake must not pass for a default."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class MeshSettings(_Settings):
    """The volume mesh."""

    tets: Annotated[int, Field(ge=100, le=200_000)] = 16_000
    """About how many tets."""
    mesher: Literal["lattice", "wild"] = "lattice"
    """"wild" is fTetWild, the optional extra."""


class PoseMaterial(_Settings):
    """What is different about the material at one pose."""

    young: Modulus | None = None
    """Young's modulus, Pa: a number, or the name of a map of one a vertex or one a tet."""
    poisson: Ratio | None = None
    """Poisson ratio: a number, or the name of a map like Young's modulus."""
    softness_map: str | None = None
    stiffness_map: str | None = None
    """Painted map whose values multiply Young's modulus (0 … 1 mapped to 1 … `stiffness_range`)."""
    stiffness_range: Positive = 10.0


class MaterialSettings(PoseMaterial):
    """What the flesh is made of; values given here take the place of the preset's."""

    preset: Literal["fat", "muscle", "firm", "jelly"] = "muscle"
    density: Positive | None = None
    """kg/m³."""
    law: Literal["stvk", "corotational", "neo-hookean", "stable-neo-hookean"] = "stable-neo-hookean"
    smoothing: Annotated[float, Field(ge=0.0)] = 1.0
    """How far painted values are smoothed into the body (ζ of PSSD Eq. 37)."""
    bony: bool = True
    """Whether hands, feet and heads, known by the names of their joints, are firm where nothing is painted: they are
    mostly bone, and rigs seldom have bones inside them."""
    firm: tuple[str, ...] = ()
    """Joints, by name, whose flesh is as firm as a hand's, whatever they are called, where nothing is painted."""
    poses: dict[str, PoseMaterial] = {}
    """By pose name."""


class GivenPose(_Settings):
    """A pose chosen by hand: a moment of a clip, or parameters by name (the others at rest)."""

    name: str | None = None
    clip: str | None = None
    time: Annotated[float, Field(ge=0.0)] = 0.0
    """Seconds."""
    parameters: dict[str, float] = {}
    sculpt: str | None = None
    """An OBJ beside the project file: the surface as it should look at this pose."""

    @model_validator(mode="after")
    def _one_source(self) -> GivenPose:
        if (self.clip is None) == (not self.parameters):
            raise ValueError("a pose needs either a clip or parameters")
        return self


class PoseSettings(_Settings):
    """The poses at which a basis is prepared; the rest pose is always the first."""

    count: Annotated[int, Field(ge=1, le=MOST_POSES)] = 4
    """Altogether; those not given are picked from the clips, each as far from the others as possible."""
    given: tuple[GivenPose, ...] = ()
    clips: tuple[str, ...] | None = None
    """From which clips; all by default."""
    corrections: bool = False
    """Whether the file's corrective morphs follow the pose by themselves (pose-space deformation), each with a pose of
    its own in the model. Otherwise they are as the clips have them."""


class HandleSettings(_Settings):
    """A place around which a region grows: a point, a segment, or a bone by name."""

    name: str
    bone: str | None = None
    point: Triple | None = None
    segment: tuple[Triple, Triple] | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> HandleSettings:
        if sum(shape is not None for shape in (self.bone, self.point, self.segment)) != 1:
            raise ValueError(f"handle '{self.name}' needs exactly one of bone, point, segment")
        return self


class BasisSettings(_Settings):
    """The shapes the flesh may take."""

    recipe: Literal["load", "paper"] = "load"
    """"load": responses to the rig's own accelerations; "paper": PSSD's choices, here, in interpolation, in cubature
    and in time (`paper_recipe`)."""
    modes: Annotated[int, Field(ge=2, le=400)] = 100
    """r, over all regions."""
    regions: Annotated[int, Field(ge=1, le=32)] = 6
    """At most so many regions, made from the bones; 1: global shapes."""
    handles: tuple[HandleSettings, ...] = ()
    """Regions by hand."""
    interpolation: Literal["auto", "bind", "world"] = "auto"
    """"bind" rotates shapes with the skin, or with frames fitted to a rig without bones; "world" is the paper's;
    "auto" is bind."""
    between_poses: Literal["pooled", "interpolated", "neutral"] | None = None
    """"pooled": one basis for all poses, the principal components of all of theirs; "interpolated": a basis at each
    pose, as in the paper; "neutral": the rest pose's. Default: pooled in bind space, interpolated in the world."""
    rehearsal: Annotated[float, Field(ge=0.0, le=600.0)] = 6.0
    """Seconds of the clips that the full body lives through, for a fifth of the shapes; 0: none. In bind space only."""
    contact: Literal[True, False, "sliding", "fixed"] = True
    """How shapes respect self-contact at each pose: "sliding" (or true) holds what touches along the normal of contact,
    "fixed" in all directions; false not at all."""
    derivatives: Annotated[int, Field(ge=0, le=64)] = 24
    """How many leading modes get derivatives."""

    @property
    def contact_kind(self) -> Literal["none", "sliding", "fixed"]:
        """Whether what touches at a pose is free, slides, or is held in all directions."""
        if self.contact == "fixed":
            return "fixed"
        return "sliding" if self.contact else "none"


class CubatureSettings(_Settings):
    """The few tets that stand for all."""

    count: Annotated[int, Field(ge=4)] | None = None
    """Default: 1.5 a mode; 3 where the modes can do nearly everything by themselves, as in flesh that turns far."""
    method: Literal["nnls", "greedy", "htp"] | None = None
    samples: Annotated[int, Field(ge=4, le=1000)] = 48
    """Training deformations a pose."""
    stiffness_correction: bool = True


class SimulationSettings(_Settings):
    """How it moves; can be changed while it plays."""

    damping_ratio: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    """At the lowest frequency; default: the preset's."""
    gravity: Literal["change", "full", "off"] = "change"
    """"change": the sculpted shape already sags, only turning adds to it."""
    inertia: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    rate: Annotated[float, Field(ge=30.0, le=5000.0)] = 180.0
    """Inner steps a second."""
    method: Literal["newmark", "backward-euler"] = "newmark"
    """"backward-euler" calms more the faster something swings, and the slower the rate."""
    modes: Annotated[int, Field(ge=1, le=400)] | None = None
    """How many of the model's modes are stepped; default: all."""
    stiffness: dict[str, Positive] = {}
    """Factor on Young's modulus by region."""
    wind: Triple = (0.0, 0.0, 0.0)
    """N/m², world axes."""


class Project(_Settings):
    """All decisions about one character."""

    scale: Positive | None = None
    """Metres per unit of the character file. Default: 1, if that makes it as large as a living thing."""
    seed: Annotated[int, Field(ge=0)] = 0
    parts: dict[str, Literal["soft", "rigid", "follows"]] = {}
    mesh: MeshSettings = MeshSettings()
    material: MaterialSettings = MaterialSettings()
    poses: PoseSettings = PoseSettings()
    basis: BasisSettings = BasisSettings()
    cubature: CubatureSettings = CubatureSettings()
    simulation: SimulationSettings = SimulationSettings()

    @property
    def metres_per_unit(self) -> float:
        """Of the character file: `scale`, 1 where nothing is said."""
        return 1.0 if self.scale is None else self.scale

    def changed(self, **tables: dict[str, Any]) -> Project:
        """The same decisions with some settings of some tables changed: `changed(basis={"modes": 50})`."""
        content = self.model_dump()
        for table, values in tables.items():
            content[table] = {**content[table], **values} if isinstance(values, dict) else values
        return _checked(content, "settings")

    def fingerprint(self, *tables: str) -> str:
        """A hash of the named tables, the same on every machine."""
        content = {table: self.model_dump(mode="json")[table] for table in tables}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def with_recipe(project: Project, recipe: str | None = None) -> Project:
    """`project` with all that a recipe decides, by default its own: what a model is built by, and notes."""
    recipe = recipe or project.basis.recipe
    if recipe not in ("load", "paper"):
        raise InputError(f"no recipe called {recipe!r}; there are load and paper")
    return paper_recipe(project) if recipe == "paper" else project.changed(basis={"recipe": "load"})


def paper_recipe(project: Project | None = None) -> Project:
    """`project` with the choices PSSD prints: its bases, world-space interpolation, plain cubature, backward Euler at
    90 steps a second. The law stays, and so do the root's frame and its gyroscopic terms, without which a character
    that turns is wrong altogether."""
    return (project or Project()).changed(
        basis={"recipe": "paper", "interpolation": "world", "between_poses": "interpolated", "rehearsal": 0.0},
        cubature={"stiffness_correction": False, "method": "htp"},
        simulation={"method": "backward-euler", "rate": 90.0},
    )


def noted_scale(notes: Mapping[str, Any]) -> float:
    """Metres per unit of the file that a model was built from, by the model's notes."""
    scale = notes.get("project", {}).get("scale")
    return 1.0 if scale is None else float(scale)


def load_project(path: str | Path) -> Project:
    """Read a project file; what is wrong is named with its place in the file."""
    path = Path(path)
    if path.suffix.lower() == ".softrig" and path.exists():
        raise InputError(f"{path}: by its name this is a model; a project file ends in .toml")
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: a project file of more than {LARGEST_FILE} bytes is none")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not readable as TOML: {error}") from error
    return _checked(content, str(path))


def save_project(project: Project, path: str | Path) -> None:
    """Write what differs from the defaults."""
    write_bytes(path, project_toml(project).encode())


def project_toml(project: Project) -> str:
    """The project as TOML, without what is as by default."""
    content = project.model_dump(mode="json", exclude_defaults=True)
    lines = [f"{key} = {_value(value)}" for key, value in content.items() if not isinstance(value, dict)]
    for key, value in content.items():
        if isinstance(value, dict):
            lines += ["", f"[{toml_key(key)}]"] + [
                f"{toml_key(k)} = {_value(v)}" for k, v in value.items() if v is not None
            ]
    return "\n".join(lines).strip() + "\n"


def _checked(content: dict[str, Any], where: str) -> Project:
    try:
        return Project.model_validate(content)
    except ValidationError as error:
        told = told_faults(error.errors(), Project.model_json_schema())
        raise InputError(f"{where}: {told}") from error


def _value(value: Any) -> str:
    """A TOML value; JSON's strings, numbers and booleans are TOML's."""
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {inner} }}"
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "[\n" + "".join(f"  {_value(item)},\n" for item in value) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
