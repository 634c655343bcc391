"""Live settings: what can be changed while it plays, with undo and redo, and how it is kept in a project file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from softrig.errors import InputError
from softrig.poses.materials import PRESETS, preset_called
from softrig.project import Project
from softrig.simulation.live import GRAVITIES
from softrig.viewer.values import checked_number, short

STIFFNESS = (0.01, 100.0)
"""Least and largest factor on Young's modulus."""
STRONGEST_WIND = 1e4
"""N/m²."""
ONE_DRAG = 0.7
"""Seconds: changes of one setting that follow each other faster are one step of undo, the drag of one slider."""
MOST_STEPS = 200


@dataclass(frozen=True)
class Settings:
    """Everything tuned live. `stiffness`: factor on Young's modulus by region."""

    damping_ratio: float = 0.12
    gravity: str = "change"
    inertia: float = 1.0
    modes: int = 0
    stiffness: Mapping[str, float] = field(default_factory=dict)
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    preset: str | None = None

    def shown(self) -> dict[str, Any]:
        """As the page sees it."""
        return {**asdict(self), "stiffness": dict(self.stiffness), "wind": list(self.wind)}


@dataclass(frozen=True)
class Scope:
    """What settings a subject has."""

    regions: tuple[str, ...]
    most_modes: int
    gravities: tuple[str, ...] = GRAVITIES
    young: float | None = None
    """Pa that the flesh was built with, where presets apply to it."""
    modes_stay: bool = False
    """Whether the number of modes is that of the model."""

    def changed(self, settings: Settings, name: str, value: Any) -> Settings:
        """`settings` with the setting called `name` changed; an `InputError` names what is wrong."""
        if name.startswith("stiffness."):
            region = name.removeprefix("stiffness.")
            if region not in self.regions:
                raise InputError(f"no region is called '{region}'; there are {', '.join(self.regions) or 'none'}")
            scales = {**settings.stiffness, region: checked_number(value, "stiffness", *STIFFNESS)}
            return replace(settings, stiffness=scales, preset=None)
        change = _CHANGES.get(name)
        if change is None:
            raise InputError(f"no setting is called '{name}'")
        return change(self, settings, value)

    def fitted(self, settings: Settings, own: Settings) -> Settings:
        """`settings` of another model as far as they apply here; the rest as in `own`."""
        scales = {name: settings.stiffness.get(name, scale) for name, scale in own.stiffness.items()}
        gravity = settings.gravity if settings.gravity in self.gravities else own.gravity
        # All modes of the old model are all modes of the new one.
        modes = min(settings.modes, self.most_modes) if settings.modes < own.modes else own.modes
        return replace(settings, gravity=gravity, modes=modes or own.modes, stiffness=scales)

    def _damping(self, settings: Settings, value: Any) -> Settings:
        return replace(settings, damping_ratio=checked_number(value, "damping ratio", 0.0, 2.0), preset=None)

    def _gravity(self, settings: Settings, value: Any) -> Settings:
        if not isinstance(value, str) or value not in self.gravities:
            raise InputError(f"gravity is {', '.join(self.gravities)}, not {short(value)}")
        return replace(settings, gravity=value)

    def _inertia(self, settings: Settings, value: Any) -> Settings:
        return replace(settings, inertia=checked_number(value, "inertia", 0.0, 10.0))

    def _modes(self, settings: Settings, value: Any) -> Settings:
        if self.modes_stay:
            raise InputError("this body moves in the modes it was made with")
        return replace(settings, modes=round(checked_number(value, "modes", 1, self.most_modes)))

    def _wind(self, settings: Settings, value: Any) -> Settings:
        if not isinstance(value, list | tuple) or len(value) != 3:
            raise InputError("wind has three components")
        x, y, z = (checked_number(component, "wind", -STRONGEST_WIND, STRONGEST_WIND) for component in value)
        return replace(settings, wind=(x, y, z))

    def _stiffness(self, settings: Settings, value: Any) -> Settings:
        scale = checked_number(value, "stiffness", *STIFFNESS)
        return replace(settings, stiffness=dict.fromkeys(self.regions, scale), preset=None)

    def _preset(self, settings: Settings, value: Any) -> Settings:
        if value is None:
            return replace(settings, preset=None)
        preset = preset_called(value if isinstance(value, str) else short(value))
        if self.young is None:
            raise InputError("presets are for characters")
        scale = min(max(preset.young / self.young, STIFFNESS[0]), STIFFNESS[1])
        return replace(
            settings,
            preset=str(value),
            damping_ratio=preset.damping_ratio,
            stiffness=dict.fromkeys(self.regions, scale),
        )


_CHANGES: dict[str, Callable[[Scope, Settings, Any], Settings]] = {
    "damping_ratio": Scope._damping,
    "gravity": Scope._gravity,
    "inertia": Scope._inertia,
    "modes": Scope._modes,
    "wind": Scope._wind,
    "stiffness": Scope._stiffness,
    "preset": Scope._preset,
}


class Tuning:
    """The settings of one subject and how they came about."""

    def __init__(self, scope: Scope, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.scope = scope
        self.now = self.built = settings
        """`built`: what the model was made with."""
        self.saved = settings
        self._clock = clock
        self._done: list[Settings] = []
        self._undone: list[Settings] = []
        self._last = ("", -math.inf)

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether a change was taken back."""
        return bool(self._undone)

    @property
    def dirty(self) -> bool:
        """Whether something is not saved."""
        return self.now != self.saved

    def change(self, name: str, value: Any) -> Settings:
        """Change one setting."""
        new = self.scope.changed(self.now, name, value)
        moment = self._clock()
        same_drag = self._last[0] == name and moment - self._last[1] < ONE_DRAG and bool(self._done)
        self._last = (name, moment)
        if new != self.now:
            if not same_drag:
                self._done = [*self._done[-MOST_STEPS:], self.now]
            self._undone = []
            self.now = new
        return self.now

    def undo(self) -> Settings:
        """Take the last change back; nothing where there is none."""
        return self._step(self._done, self._undone)

    def redo(self) -> Settings:
        """Make the change again that was taken back last."""
        return self._step(self._undone, self._done)

    def reset(self) -> Settings:
        """As built; can be undone."""
        if self.now != self.built:
            self._done.append(self.now)
            self._undone = []
            self.now = self.built
        self._last = ("", -math.inf)
        return self.now

    def _step(self, source: list[Settings], target: list[Settings]) -> Settings:
        if source:
            target.append(self.now)
            self.now = source.pop()
        self._last = ("", -math.inf)
        return self.now


def simulation_table(settings: Settings, built: Settings) -> dict[str, Any]:
    """The `[simulation]` entries of a project file that make a model move as tuned."""
    table: dict[str, Any] = {
        "damping_ratio": settings.damping_ratio,
        "gravity": settings.gravity,
        "inertia": settings.inertia,
        "wind": settings.wind,
        "modes": settings.modes if settings.modes != built.modes else None,
        "stiffness": {name: scale for name, scale in settings.stiffness.items() if scale != 1.0},
    }
    return table


def into_project(project: Project, settings: Settings, built: Settings) -> Project:
    """`project` with the live settings in its `[simulation]` table."""
    return project.changed(simulation=simulation_table(settings, built))


def presets_shown() -> dict[str, dict[str, Any]]:
    """The kinds of flesh for the page."""
    return {name: asdict(preset) for name, preset in PRESETS.items()}
