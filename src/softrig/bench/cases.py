"""Characters and clips that the fidelity study is made of, and what is asked of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from softrig.characters import built_in
from softrig.project import Project
from softrig.rig.anatomy import bony_joints
from softrig.rig.character import Character


@dataclass(frozen=True)
class Case:
    """A character and one of its clips, which its build usually does not see."""

    name: str
    clip: str
    goal: float | None
    """Percent: whole-body clips 8, those of a single limb 15."""
    project: Project
    variants: bool = True
    """Whether ours with one thing changed is beside it: one region, nothing rehearsed, maps that know the clip,
    all of it linear."""
    rivals: bool = True
    """Whether other methods at as many modes are beside it, and a coarse mesh of equal cost."""
    given: Character | None = None
    """The character, where it is not the built-in one of that name."""
    unseen: bool = True
    """Whether the build leaves the clip out."""
    folder: Path | None = None
    """Where the project's sculpts and maps lie."""
    called: str = ""
    """What to call it where the name does not tell it from others."""

    @property
    def what(self) -> str:
        """The case in words."""
        soft = not self.project.material.bony and bony_joints(self.character)
        name = self.called or (f"{self.name} soft to the fingertips" if soft else self.name)
        return f"{name} without '{self.clip}'" if self.unseen else f"{name}, '{self.clip}'"

    @property
    def character(self) -> Character:
        """All of it, with the clip."""
        return self.given or built_in(self.name)

    def stages(self, cache: Path) -> Path:
        """Where in `cache` its finished stages are kept. Names out of files make no folders."""
        return cache / self.name if self.given is None else cache

    @property
    def shown(self) -> Character:
        """What the build sees of it."""
        character = self.character
        if not self.unseen:
            return character
        return replace(character, clips=tuple(clip for clip in character.clips if clip.name != self.clip))


_COARSE = Project().changed(mesh={"tets": 5500}, basis={"contact": False})
_ARM = _COARSE.changed(basis={"modes": 45, "regions": 3})
_X = _COARSE.changed(basis={"modes": 30, "regions": 1}, poses={"count": 3}, material={"young": 4e5})
"""Held at its crossing alone: as soft as flesh it would swing by a third of its size."""
_FIRM_X = _X.changed(material={"young": 3.2e6})
_ARM_OF_MANY, _X_OF_MANY = (project.changed(basis={"modes": 100}) for project in (_ARM, _X))
_SOFT = _COARSE.changed(material={"bony": False})
WHOLE, LIMB = 8.0, 15.0
CONVERGED_GOALS = {WHOLE: 12.0, LIMB: 18.0}
"""Percent against a converged simulation, by the goal against one at the same step."""
FREQUENCY, FREQUENCY_GOAL = "frequency, % off", 1.0
"""Percent."""
CASES = (
    Case("gorilla", "walk", WHOLE, _COARSE),
    Case("gorilla", "jump", WHOLE, _COARSE),
    Case("gorilla", "beat", LIMB, _COARSE),
    Case("arm", "bend", LIMB, _ARM),
)
SWEPT = (replace(CASES[0], rivals=False), CASES[3])
"""Those that are tried with other numbers of modes and of poses: a clip of the whole body, beside the paper's recipe,
and one of a limb, beside all other methods."""
OTHERS = (
    Case("gorilla", "walk", WHOLE, _SOFT, variants=False, rivals=False),
    Case("gorilla", "jump", WHOLE, _SOFT, variants=False, rivals=False),
    Case("gorilla", "beat", LIMB, _SOFT, variants=False, rivals=False),
    Case("arm", "wave", LIMB, _ARM, variants=False),
    Case("arm", "swing", LIMB, _ARM, variants=False),
    Case("bear", "walk", WHOLE, _COARSE, variants=False),
    Case("bear", "shake", WHOLE, _COARSE, variants=False),
    Case("bear", "wave", LIMB, _COARSE, variants=False),
    Case("x", "bend", WHOLE, _X, variants=False),
    Case("x", "shake", WHOLE, _X, variants=False),
    Case("x", "shake", WHOLE, _FIRM_X, variants=False, rivals=False, called="x eight times as firm"),
    Case("x", "bow", WHOLE, _X, variants=False),
    Case("arm", "bend", LIMB, _ARM_OF_MANY, variants=False, rivals=False, called="arm of 100 modes"),
    Case("arm", "wave", LIMB, _ARM_OF_MANY, variants=False, rivals=False, called="arm of 100 modes"),
    Case("x", "bend", WHOLE, _X_OF_MANY, variants=False, rivals=False, called="x of 100 modes"),
    Case("x", "bow", WHOLE, _X_OF_MANY, variants=False, rivals=False, called="x of 100 modes"),
    Case("x", "bend", None, _X_OF_MANY, variants=False, rivals=False, called="x of 100 modes", unseen=False),
    Case("x", "bow", None, _X_OF_MANY, variants=False, rivals=False, called="x of 100 modes", unseen=False),
)
