"""Takes: live play, recorded frame by frame at the door of the simulation, and played again to the last bit.

What goes in there is the pose, the frame's duration, whether it was a cut, the settings, colliders and pulls. Where the
flesh was between two frames by other means (made still, a new start), its whole state is written down, as at the
beginning. So it does not matter who moved what: the same goes in, the same comes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softrig.errors import InputError
from softrig.io.format_error import FileFormatError
from softrig.io.npy import read_npz, write_npz
from softrig.models.pose_space import PoseSpaceModel
from softrig.rig.clip import Clip
from softrig.simulation import Pull, Simulation
from softrig.simulation.live import TELEPORTS
from softrig.viewer import take_rows as rows
from softrig.viewer.take_checks import check_take

VERSION = 1
MOST_BYTES = 1 << 29
"""Of one take in memory; beyond, recording ends."""


class Step(NamedTuple):
    """One frame to be made: call `simulation.move(pose, seconds)`, after `simulation.cut()` if `cut`."""

    pose: np.ndarray
    seconds: float
    cut: bool


@dataclass(frozen=True, eq=False)
class Take:
    """A recording of f frames. `arrays`: its numbers, see `take_checks`; `about`: of which simulation it is."""

    name: str
    about: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.arrays["seconds"])

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return float(self.arrays["seconds"][1:].sum())

    @property
    def times(self) -> np.ndarray:
        """(f,) seconds, the first frame at zero."""
        return np.cumsum(self.arrays["seconds"]) - self.arrays["seconds"][:1]

    def simulation(self, model: PoseSpaceModel) -> Simulation:
        """A simulation like the recorded one, of the model with all its modes or with as many as were recorded."""
        modes = int(self.about["modes"])
        if modes > model.mode_count:
            raise InputError(f"take '{self.name}' has {modes} modes, the model only {model.mode_count}")
        options = {name: self.about[name] for name in ("rate", "method", "teleport", "settled")}
        return Simulation(model, modes=modes, **options)

    def clip(self, model: PoseSpaceModel) -> Clip:
        """The poses as a clip; what was pulled and tuned is not in it."""
        return Clip.from_samples(self.name, model.rig.parameters, self.times, self.arrays["poses"])

    def replay(self, simulation: Simulation) -> Iterator[np.ndarray]:
        """(n̄, 3) float32 vertices of each frame, exactly as they were; afterwards the simulation is as before."""
        playing = Replay(self, simulation)
        try:
            while (step := playing.next()) is not None:
                if step.cut:
                    simulation.cut()
                yield simulation.step(step.pose, step.seconds).copy()
        finally:
            playing.close()

    def vertices(self, model: PoseSpaceModel, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        """(f, n̄, 3) float32 all frames."""
        frames = np.empty((len(self), len(model.embedding_nodes), 3), np.float32)
        for index, positions in enumerate(self.replay(self.simulation(model))):
            frames[index] = positions
            if progress is not None:
                progress(index + 1, len(self))
        return frames

    def save(self, path: str | Path) -> None:
        """Write it as .npz: arrays of numbers and a line of text."""
        document = json.dumps({"softrig take": VERSION, "name": self.name, **self.about})
        write_npz(path, {"document": np.frombuffer(document.encode(), np.uint8), **self.arrays})

    @classmethod
    def load(cls, path: str | Path) -> Take:
        """Read a take; nothing in the file is trusted."""
        arrays = read_npz(path, most_bytes=2 * MOST_BYTES)
        try:
            document = json.loads(arrays.pop("document").tobytes())
            version = document.pop("softrig take")
            name = document.pop("name")
            about = {key: document[key] for key in ("model", "modes", "rate", "method", "teleport", "settled")}
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise FileFormatError(path, "not a recorded take") from error
        if version != VERSION:
            raise FileFormatError(path, f"a take of version {str(version)[:20]}; {VERSION} is read")
        kinds = {"model": str, "modes": int, "rate": float, "method": str, "teleport": str, "settled": bool}
        if not isinstance(name, str) or any(not isinstance(about[key], kind) for key, kind in kinds.items()):
            raise FileFormatError(path, "not a recorded take")
        if about["teleport"] not in TELEPORTS or not np.isfinite(about["rate"]):
            raise FileFormatError(path, "not a recorded take")
        try:
            check_take(arrays)
        except InputError as error:
            raise FileFormatError(path, str(error)) from error
        return cls(name, about, arrays)


class Replay:
    """A take that is being played on a simulation of the same model.

    `next` puts everything in place for a frame, which the caller then makes; `close` gives the simulation back as it
    was.
    """

    def __init__(self, take: Take, simulation: Simulation) -> None:
        if take.about["model"] != rows.model_mark(simulation.model):
            raise InputError(f"take '{take.name}' was recorded with another model, or with other modes of it")
        if (take.about["rate"], take.about["method"]) != (simulation.rate, simulation.stepper.method):
            raise InputError(f"take '{take.name}' was recorded at {take.about['rate']:g} steps a second")
        if take.arrays["poses"].shape[1] != len(simulation.parameters):
            raise InputError(f"take '{take.name}' has poses of {take.arrays['poses'].shape[1]} parameters")
        self.take, self._simulation = take, simulation
        starts, values = take.arrays["key_starts"], take.arrays["key_values"]
        keys = rows.states_of([values[start:end] for start, end in pairwise(starts)], simulation)
        self._keys = dict(zip(take.arrays["key_frames"].tolist(), keys, strict=True))
        self._own = simulation.state(), rows.settings_row(simulation), simulation.colliders
        self._own_pulls = simulation.pulls
        self._options = simulation.teleport, simulation.settled
        simulation.teleport, simulation.settled = take.about["teleport"], bool(take.about["settled"])
        self._pulls: dict[int, Pull] = {}
        self.frame = 0
        """The next one."""
        simulation.release()

    @property
    def done(self) -> bool:
        """Whether the last frame was made."""
        return self.frame >= len(self.take)

    def next(self) -> Step | None:
        """What the next frame is, with the simulation prepared for it; None: it is over."""
        if self.done:
            return None
        number, arrays = self.frame, self.take.arrays
        self._inputs(number)
        if number in self._keys:
            self._simulation.restore(self._keys[number])
        self.frame += 1
        return Step(arrays["poses"][number].copy(), float(arrays["seconds"][number]), bool(arrays["cuts"][number]))

    def close(self) -> None:
        """Give the simulation back as it was."""
        state, settings, colliders = self._own
        simulation = self._simulation
        simulation.release()
        for pull in self._own_pulls:
            pull.force = pull.force  # takes hold again
        simulation.teleport, simulation.settled = self._options
        rows.apply_settings(simulation, settings)
        simulation.colliders = colliders
        simulation.restore(state)

    def _inputs(self, number: int) -> None:
        arrays, simulation = self.take.arrays, self._simulation
        for change in np.flatnonzero(arrays["setting_frames"] == number):
            rows.apply_settings(simulation, arrays["setting_rows"][change])
        for change in np.flatnonzero(arrays["collider_frames"] == number):
            start, end = arrays["collider_starts"][change : change + 2]
            simulation.colliders = rows.colliders_of(arrays["collider_rows"][start:end])
        start, end = arrays["pull_starts"][number : number + 2]
        wanted = dict(zip(arrays["pull_patches"][start:end].tolist(), arrays["pull_forces"][start:end], strict=True))
        for patch in [patch for patch in self._pulls if patch not in wanted]:
            self._pulls.pop(patch).release()
        for patch, force in wanted.items():
            if patch in self._pulls:
                self._pulls[patch].force = force
            else:
                here = slice(*arrays["patch_starts"][patch : patch + 2])
                self._pulls[patch] = simulation.pull_tets(
                    arrays["patch_vertices"][here], arrays["patch_shares"][here], force
                )
