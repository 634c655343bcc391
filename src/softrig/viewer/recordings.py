"""The takes of a viewer: live play that is being recorded, takes that are kept, and the one that is replayed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.simulation import Simulation
from softrig.viewer.recorder import Recorder
from softrig.viewer.subjects import FRAME
from softrig.viewer.takes import Replay, Take

MOST_TAKES = 20
"""Older ones are forgotten."""


class Recordings:
    """Called from the thread that owns the simulation."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._recorder: Recorder | None = None
        self._replay: Replay | None = None
        self.takes: dict[str, Take] = {}

    # Recording

    def begin(self, simulation: Any) -> None:
        """Begin a take."""
        if not isinstance(simulation, Simulation):
            raise InputError("only characters with flesh can be recorded")
        if self._replay is not None:
            raise InputError("end the replay first")
        self._recorder = Recorder(simulation, self._new_name())

    def end(self) -> None:
        """End the take that is being recorded, and keep it if there is anything in it."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None and len(recorder):
            self._keep(recorder.finish())

    def frame(self, simulation: Any, pose: np.ndarray, cut: bool) -> AbstractContextManager[None]:
        """Around one frame of the simulation."""
        recorder = self._recorder
        if recorder is None:
            return nullcontext()
        if not recorder.records(simulation):
            self._tell("warning", "The recording ended here: it is long enough, or the model became another one.")
            self.end()
            return nullcontext()
        return recorder.frame(simulation, pose, FRAME, cut=cut)

    # Takes

    def take(self, name: str) -> Take:
        """The take called `name`."""
        if name not in self.takes:
            raise InputError(f"no take is called '{name}'")
        return self.takes[name]

    def add(self, take: Take) -> str:
        """Keep a take that comes from a file; the name it has here."""
        name = take.name if take.name.isprintable() and 0 < len(take.name) <= 60 else ""
        kept = replace(take, name=self._new_name() if not name or name in self.takes else name)
        self._keep(kept)
        return kept.name

    def forget(self, name: str) -> None:
        """Let a take go."""
        if self._replay is not None and self._replay.take is self.take(name):
            self.replay(None, None)
        del self.takes[self.take(name).name]

    def replay(self, name: str | None, simulation: Any) -> None:
        """Play a take again; None ends it."""
        if self._replay is not None:
            self._replay.close()
            self._replay = None
        if name is None:
            return
        take = self.take(name)
        if not isinstance(simulation, Simulation):
            raise InputError("there is nothing to replay")
        self.end()
        self._replay = Replay(take, simulation)

    @property
    def replaying(self) -> Replay | None:
        """The take that is being played."""
        return self._replay

    def state(self) -> dict[str, Any]:
        """For the page."""
        recorder = self._recorder
        return {
            "recording": {
                "on": recorder is not None,
                "seconds": 0.0 if recorder is None else round(len(recorder) * FRAME, 1),
                "takes": list(self.takes),
            },
            "replaying": None if self._replay is None else self._replay.take.name,
        }

    def _new_name(self) -> str:
        number = 1
        while f"take {number}" in self.takes:
            number += 1
        return f"take {number}"

    def _keep(self, take: Take) -> None:
        self.takes[take.name] = take
        for old in list(self.takes)[:-MOST_TAKES]:
            self.forget(old)
