"""A character without flesh, as its file has it: to be looked at until it is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.rig.bones import skin_of
from softrig.rig.character import Character
from softrig.viewer.coats import Coat
from softrig.viewer.subjects import FRAME, Geometry, Grip, between, surface_geometry
from softrig.viewer.tuning import Scope, Settings


class PlainCharacter:
    """A character without flesh: its skin and its clips; see `subjects.Subject`."""

    kind = "character"
    model = None
    simulation = None
    regions: tuple[str, ...] = ()

    def __init__(self, character: Character) -> None:
        self.character = character
        self.coat: Coat | None = None
        self.name = character.name
        self.clips = character.clips
        self.parameters = character.rig.parameters
        self.skeleton = character.skeleton if skin_of(character.rig) is not None else None
        self.size = character.size
        self._geometry: Geometry | None = None
        self._before = self._now = self.pose = self.parameters.rest
        self._shown: np.ndarray | None = None

    def geometry(self) -> Geometry:
        """The surface at rest."""
        if self._geometry is None:
            character = self.character
            colours = character.colours if character.colours is not None else _part_colours(character)
            self._geometry = surface_geometry(character.rest_positions, character.triangles, colours, self.coat)
        return self._geometry

    def move(self, pose: np.ndarray, *, cut: bool = False, seconds: float = FRAME) -> None:
        """To `pose` (P,)."""
        self._before, self._now = (pose if cut else self._now), pose

    def look(self, share: float, q: np.ndarray | None = None) -> None:
        """Show the moment `share` of the way between the last two frames."""
        self.pose = between(self.parameters, self._before, self._now, share)
        self._shown = None

    def begin(self, pose: np.ndarray) -> None:
        """Be at `pose` (P,)."""
        self.move(pose, cut=True)
        self.look(1.0)

    def still(self) -> None:
        """Nothing swings."""

    def soft_positions(self) -> np.ndarray:
        """(n, 3) float32 as shown."""
        if self._shown is None:
            self._shown = self.plain_positions(self.pose)
        return self._shown

    def plain_positions(self, pose: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) float32 at `pose` (P,); by default the same as soft: there is no flesh."""
        return self.soft_positions() if pose is None else self.character.rig.positions(pose).astype(np.float32)

    def newest_positions(self) -> np.ndarray:
        """The same as shown."""
        return self.soft_positions()

    def foresee(self, pose: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) where vertices will be, twice: there is no flesh."""
        places = self.character.rig.positions(pose, vertices)
        return places, places

    def tet_positions(self) -> np.ndarray:
        """None: there are no tets yet."""
        return np.zeros((0, 3))

    def grip(self, vertex: int, radius: float | None = None) -> Grip:
        """There is nothing to hold."""
        raise InputError("there is no flesh to pull at yet: build it first")

    def scope(self) -> Scope:
        """Nothing can be tuned."""
        return Scope((), 0)

    def settings(self) -> Settings:
        """None to speak of."""
        return Settings()

    def tune(self, settings: Settings) -> None:
        """Nothing happens."""

    def prepare(self, settings: Settings) -> None:
        """Nothing is needed."""

    def numbers(self) -> dict[str, Any]:
        """None."""
        return {"energy": {}, "weights": [], "counters": {}}

    def about(self) -> dict[str, Any]:
        """Counts for people."""
        return {
            "vertices": self.character.rig.vertex_count,
            "triangles": len(self.character.triangles),
            "parts": len(self.character.parts),
        }


def _part_colours(character: Character) -> np.ndarray | None:
    """(n, 4) linear colours put together from those of the parts; None where no part has any."""
    if all(part.colours is None for part in character.parts):
        return None
    colours = np.full((character.rig.vertex_count, 4), 0.6)
    for part in character.parts:
        if part.colours is not None:
            colours[part.vertices] = part.colours
    return colours
