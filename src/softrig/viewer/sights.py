"""What is shown of the inside: a layer, paint, or one mode that swings while everything else waits."""

from __future__ import annotations

from collections.abc import Callable

from softrig.errors import InputError
from softrig.models.reduced import ReducedBody
from softrig.models.substructured import SubstructuredModel
from softrig.viewer import protocol
from softrig.viewer.inside import Layer, ModeShow, layers
from softrig.viewer.studio import Studio
from softrig.viewer.subjects import Subject


class Sights:
    """Of one subject and what is made of it."""

    def __init__(self, subject: Subject, studio: Studio) -> None:
        self._subject, self._studio = subject, studio
        self.shown: Layer | None = None
        self.mode_shown: ModeShow | None = None
        self.mode_time = 0.0
        """Seconds since a mode is shown."""
        self._amplitude: float | None = None
        self.messages: dict[str, bytes | None] = {"layer": None}
        """By kind, what pages have to be sent anew; None: nothing of that kind is shown any more."""

    def layers(self) -> dict[str, Callable[[], Layer]]:
        """What can be looked at."""
        return layers(self._subject, self._studio.painting() if self._studio.can_paint else None)

    def layer(self, name: str | None) -> None:
        """Show a layer; None: none."""
        if name is None:
            self.shown = None
            self.messages["layer"] = None
            return
        known = self.layers()
        if name not in known:
            raise InputError(f"no layer is called '{name}'; there are {', '.join(known) or 'none'}")
        self.shown = known[name]()
        self.messages["layer"] = self.shown.message()

    def message(self) -> bytes | None:
        """What a page that comes now must know of the layer."""
        return None if self.shown is None else self.shown.message()

    # Modes

    def mode(self, index: int | None, amplitude: float | None) -> None:
        """Show one mode swinging, while everything else waits; None: go on."""
        if index is None:
            self.mode_shown = None
            return
        if self._subject.simulation is None:
            raise InputError("there are no modes yet: build first")
        model = self._subject.simulation.model
        if isinstance(model, SubstructuredModel):
            raise InputError("the modes of a tree of domains are not shown one by one")
        count = model.size if isinstance(model, ReducedBody) else model.mode_count
        if not 0 <= index < count:
            raise InputError(f"modes go from 0 to {count - 1}")
        if self.mode_shown is None:
            self.mode_time = 0.0
        self.mode_shown, self._amplitude = ModeShow(self._subject, index, amplitude), amplitude

    def renew_mode(self) -> None:
        """Show the same mode of another simulation; none where it has no such."""
        if self.mode_shown is not None:
            try:
                self.mode(self.mode_shown.index, self._amplitude)
            except InputError:
                self.mode_shown = None

    # Paint

    def paint(self, on: bool, pose: str | None) -> None:
        """Begin or end to paint; the paint is shown while it lasts."""
        self._studio.paint(on, pose)
        if on:
            self._show_paint()
        elif self.shown is not None and self.shown.name == "softness":
            self.layer(None)

    def brush(self, vertex: int, radius: float, value: float, strength: float) -> None:
        """A dab."""
        self._studio.dab(vertex, radius, value, strength)
        self._show_paint()

    def paint_undo(self) -> None:
        """Take back a stroke."""
        self._studio.painting().undo()
        self._show_paint()

    def paint_clear(self) -> None:
        """As soft as the preset everywhere."""
        self._studio.painting().clear(self._studio.painted_pose)
        self._show_paint()

    def _show_paint(self) -> None:
        if self.shown is None or self.shown.name != "softness":
            self.layer("softness")
        colours = self._studio.painting().colours(self._studio.painted_pose)
        self.messages["layer"] = protocol.encode({"is": "layer", "layer": "softness"}, {"field_colours": colours})
