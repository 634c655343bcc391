"""Commands of a page: every name and every value is checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.viewer.stage import Stage
from softrig.viewer.values import checked_number, short

LONGEST_TEXT = 200
FARTHEST = 1e6
"""Metres: no place and no time is further away."""
MOST_VERTICES = 1 << 31


class Command(Mapping[str, Any]):
    """What a page asks for: the values of a JSON object, each read as what it has to be."""

    def __init__(self, values: Mapping[str, Any], owner: int) -> None:
        self._values = values
        self.owner = owner
        """Which page it is of."""

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise InputError(f"'{name}' is true or false, not {short(value)}")
        return value

    def number(self, name: str, least: float = -FARTHEST, most: float = FARTHEST, *, usual: Any = None) -> float:
        """A finite number within bounds."""
        return checked_number(self.get(name, usual), name, least, most)

    def index(self, name: str) -> int:
        """A whole number, not negative."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_VERTICES:
            raise InputError(f"'{name}' is a whole number from 0 on, not {short(value)}")
        return value

    def text(self, name: str) -> str:
        """Some letters."""
        value = self.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
            raise InputError(f"'{name}' is a text of 1 to {LONGEST_TEXT} letters, not {short(value)}")
        return value

    def maybe_text(self, name: str) -> str | None:
        """Some letters or none."""
        return None if self.get(name) is None else self.text(name)

    def place(self, name: str) -> np.ndarray:
        """(3,) finite numbers."""
        value = self.get(name)
        if not isinstance(value, list) or len(value) != 3:
            raise InputError(f"'{name}' is a list of three numbers, not {short(value)}")
        return np.array([checked_number(each, name, -FARTHEST, FARTHEST) for each in value])

    def maybe_place(self, name: str) -> np.ndarray | None:
        """(3,) finite numbers or none."""
        return None if self.get(name) is None else self.place(name)


def obey(stage: Stage, command: Command) -> None:
    """Do what a page asks for; an `InputError` says what is wrong with it."""
    name = command.get("do")
    action = ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        raise InputError(f"no command is called {short(name)}")
    action(stage, command)


def _poke(stage: Stage, c: Command) -> None:
    centre = c.maybe_place("centre")
    stage.poke(c.owner, centre, 0.0 if centre is None else c.number("radius", 0.0))


def _mode(stage: Stage, c: Command) -> None:
    index = None if c.get("index") is None else c.index("index")
    amplitude = None if c.get("amplitude") is None else c.number("amplitude", 0.0, 1.0)
    stage.sights.mode(index, amplitude)


def _brush(stage: Stage, c: Command) -> None:
    radius, value = c.number("radius", 0.0), c.number("value", 0.0, 1.0)
    stage.sights.brush(c.index("vertex"), radius, value, c.number("strength", 0.0, 1.0, usual=1.0))


def _bake(stage: Stage, c: Command) -> None:
    stage.studio.bake(c.text("clip"), c.text("ending"), stage.tuning.now)


def _save(stage: Stage, _: Command) -> None:
    stage.tell("info", f"Saved in {stage.studio.save(stage.tuning).name}.")


def _pull_name(c: Command) -> str:
    name = c.get("id")
    return str(c.index("id")) if isinstance(name, int) else c.text("id")


ACTIONS: dict[str, Callable[[Stage, Command], object]] = {
    "play": lambda s, c: s.playback.play(c.flag("on")),
    "speed": lambda s, c: s.playback.set_speed(c.number("value", 0.0, 2.0)),
    "clip": lambda s, c: s.playback.choose(c.maybe_text("name")),
    "seek": lambda s, c: s.playback.seek(c.number("time", 0.0)),
    "loop": lambda s, c: setattr(s.playback, "loop", c.flag("on")),
    "show": lambda s, c: s.show_what(c.text("what")),
    "ground": lambda s, c: s.touch.ground(c.flag("on")),
    "pull": lambda s, c: s.pull(c.owner, _pull_name(c), c.index("vertex"), c.place("to")),
    "release": lambda s, c: s.touch.release(c.owner, _pull_name(c)),
    "poke": _poke,
    "shake": lambda s, c: s.posing.move_root(c.place("offset")),
    "turn_root": lambda s, c: s.posing.turn_root(c.place("angles")),
    "drag_joint": lambda s, c: s.drag_joint(c.index("joint"), c.place("to")),
    "turn_joint": lambda s, c: s.turn_joint(c.index("joint"), c.place("angles")),
    "reset_pose": lambda s, c: s.posing.reset(),
    "reset": lambda s, c: s.reset(),
    "tune": lambda s, c: s.tuning.change(c.text("name"), c.get("value")),
    "undo": lambda s, c: s.tuning.undo(),
    "redo": lambda s, c: s.tuning.redo(),
    "reset_settings": lambda s, c: s.tuning.reset(),
    "save_project": _save,
    "layer": lambda s, c: s.sights.layer(c.maybe_text("name")),
    "mode": _mode,
    "paint": lambda s, c: s.sights.paint(c.flag("on"), c.maybe_text("pose")),
    "brush": _brush,
    "paint_undo": lambda s, c: s.sights.paint_undo(),
    "paint_clear": lambda s, c: s.sights.paint_clear(),
    "capture_pose": lambda s, c: s.capture_pose(c.text("name")),
    "remove_pose": lambda s, c: s.studio.remove_pose(c.text("name")),
    "add_handle": lambda s, c: s.studio.add_handle(c.text("name"), c.index("vertex")),
    "remove_handle": lambda s, c: s.studio.remove_handle(c.text("name")),
    "build": lambda s, c: s.studio.build(),
    "cancel_build": lambda s, c: s.studio.cancel(),
    "bake": _bake,
    "record": lambda s, c: s.studio.record(c.flag("on")),
    "bake_take": lambda s, c: s.studio.bake_take(c.text("take"), c.text("ending")),
    "forget_take": lambda s, c: s.studio.recordings.forget(c.text("take")),
    "replay": lambda s, c: s.replay(c.maybe_text("take")),
    "save_take": lambda s, c: s.studio.save_take(c.text("take")),
    "forget_job": lambda s, c: s.studio.takeaway.forget(c.text("id")),
    "sketch_record": lambda s, c: s.studio.sketch().record(c.flag("on")),
    "sketch_clear": lambda s, c: s.studio.sketch().clear(),
    "sketch_build": lambda s, c: s.studio.sketch().build(round(c.number("size", 1, 200))),
}
"""By the name a page calls them."""
