"""Takes: live play, recorded frame by frame at the door of the simulation, and played again to the last bit.

What goes in there is the pose, the frame's duration, whether it was a cut, the settings, colliders and pulls. Where the
flesh was between two frames by other means (made still, a new start), its whole state is written down, as at the
beginning. So it does not matter who moved what: the same goes in, the same comes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softrig.errors import InputError, require_finite
from softrig.io.format_error import FileFormatError
from softrig.io.npy import read_npz, write_npz
from softrig.models.pose_space import PoseSpaceModel
from softrig.rig.clip import Clip
from softrig.simulation import Pull, Simulation
from softrig.simulation.live import TELEPORTS
from softrig.viewer import take_rows as rows

VERSION = 1
MOST_BYTES = 1 << 29
"""Of one take in memory; beyond, recording ends."""
_ARRAYS = {
    "poses": 2, "seconds": 1, "cuts": 1, "key_frames": 1, "key_starts": 1, "key_values": 1, "setting_frames": 1,
    "setting_rows": 2, "collider_frames": 1, "collider_starts": 1, "collider_rows": 2, "patch_starts": 1,
    "patch_vertices": 1, "patch_shares": 1, "pull_starts": 1, "pull_patches": 1, "pull_forces": 2,
}  # fmt: skip
_INTEGERS = ("cuts", "key_frames", "key_starts", "setting_frames", "collider_frames", "collider_starts",
             "patch_starts", "patch_vertices", "pull_starts", "pull_patches")  # fmt: skip


class Step(NamedTuple):
    """One frame to be made: call `simulation.move(pose, seconds)`, after `simulation.cut()` if `cut`."""

    pose: np.ndarray
    seconds: float
    cut: bool


@dataclass(frozen=True, eq=False)
class Take:
    """A recording of f frames. `arrays`: its numbers, see `_ARRAYS`; `about`: which model and simulation it is of."""

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
            _check(arrays)
        except InputError as error:
            raise FileFormatError(path, str(error)) from error
        return cls(name, about, arrays)


class Recorder:
    """Writes down what goes into a simulation:

    with recorder.frame(simulation, pose, seconds, cut=cut):
        …  # simulation.cut() if cut, and simulation.move(pose, seconds)
    """

    def __init__(self, simulation: Simulation, name: str = "take") -> None:
        self.name = name
        self.full = False
        """Whether there is no more room, or the simulation became another one: nothing more is recorded."""
        self._simulation = simulation
        self._about = {
            "model": rows.model_mark(simulation.model),
            "modes": simulation.model.mode_count,
            "rate": float(simulation.rate),
            "method": simulation.stepper.method,
            "teleport": simulation.teleport,
            "settled": simulation.settled,
        }
        self._poses: list[np.ndarray] = []
        self._seconds: list[float] = []
        self._cuts: list[bool] = []
        self._keys: list[tuple[int, np.ndarray]] = []
        self._settings: list[tuple[int, np.ndarray]] = []
        self._colliders: list[tuple[int, np.ndarray]] = []
        self._patches: list[tuple[np.ndarray, np.ndarray]] = []
        self._pulls: list[list[tuple[int, np.ndarray]]] = []
        self._known: list[tuple[Pull, int]] = []
        self._left: np.ndarray | None = None
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._poses)

    def records(self, simulation: Simulation) -> bool:
        """Whether this is the simulation it began with, and there is room for more."""
        return simulation is self._simulation and not self.full

    @property
    def seconds(self) -> float:
        """Recorded so far."""
        return float(sum(self._seconds))

    @contextmanager
    def frame(self, simulation: Simulation, pose: np.ndarray, seconds: float, *, cut: bool = False) -> Iterator[None]:
        """Around one `simulation.move(pose, seconds)`: what goes in is noted before, where it left the flesh after."""
        self.full = self.full or simulation is not self._simulation or self._bytes > MOST_BYTES
        if self.full:
            yield
            return
        number = len(self._poses)
        if self._left is None or not np.array_equal(self._left, _signature(simulation), equal_nan=True):
            self._keep(self._keys, number, rows.state_vector(simulation.state()))
        self._changed(self._settings, number, rows.settings_row(simulation))
        self._changed(self._colliders, number, rows.collider_rows(simulation.colliders))
        pulls = [(self._patch(pull), pull.force) for pull in simulation.pulls]
        cut = cut or simulation.next_frame == "cut"
        yield
        self._poses.append(np.array(pose, dtype=np.float64))
        self._seconds.append(float(seconds))
        self._cuts.append(cut)
        self._pulls.append(pulls)
        self._bytes += 8 * (len(self._poses[-1]) + 4 + 4 * len(pulls))
        self._left = _signature(simulation)

    def finish(self) -> Take:
        """The take; at least one frame must be in it."""
        if not self._poses:
            raise InputError("nothing was recorded")
        flat = [pull for pulls in self._pulls for pull in pulls]
        parameters, regions = len(self._poses[0]), len(self._simulation.model.region_names)
        arrays = {
            "poses": np.array(self._poses).reshape(-1, parameters),
            "seconds": np.array(self._seconds),
            "cuts": np.array(self._cuts, np.uint8),
            "key_frames": np.array([number for number, _ in self._keys], np.int64),
            "key_starts": _starts([len(row) for _, row in self._keys]),
            "key_values": np.concatenate([row for _, row in self._keys]),
            "setting_frames": np.array([number for number, _ in self._settings], np.int64),
            "setting_rows": np.array([row for _, row in self._settings]).reshape(-1, rows.SETTINGS + regions),
            "collider_frames": np.array([number for number, _ in self._colliders], np.int64),
            "collider_starts": _starts([len(row) for _, row in self._colliders]),
            "collider_rows": np.concatenate([row for _, row in self._colliders]).reshape(-1, rows.COLLIDER),
            "patch_starts": _starts([len(vertices) for vertices, _ in self._patches]),
            "patch_vertices": np.concatenate([np.zeros(0, np.int32), *(v for v, _ in self._patches)]),
            "patch_shares": np.concatenate([np.zeros(0), *(shares for _, shares in self._patches)]),
            "pull_starts": _starts([len(pulls) for pulls in self._pulls]),
            "pull_patches": np.array([patch for patch, _ in flat], np.int64),
            "pull_forces": np.array([force for _, force in flat], np.float64).reshape(-1, 3),
        }
        return Take(self.name, dict(self._about), arrays)

    def _changed(self, kept: list[tuple[int, np.ndarray]], number: int, row: np.ndarray) -> None:
        if not kept or not np.array_equal(kept[-1][1], row):
            self._keep(kept, number, row)

    def _keep(self, kept: list[tuple[int, np.ndarray]], number: int, row: np.ndarray) -> None:
        # A frame that failed may have left its own row behind.
        kept[:] = [pair for pair in kept if pair[0] < number]
        kept.append((number, row))
        self._bytes += row.nbytes

    def _patch(self, pull: Pull) -> int:
        for known, index in self._known:
            if known is pull:
                return index
        self._known.append((pull, len(self._patches)))
        self._patches.append((pull.vertices.copy(), pull.weights.copy()))
        self._bytes += pull.vertices.nbytes + pull.weights.nbytes
        return len(self._patches) - 1


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


def renamed(take: Take, name: str) -> Take:
    """The same take under another name."""
    return replace(take, name=name)


def _signature(simulation: Simulation) -> np.ndarray:
    """What must be as the last frame left it, or something else moved the flesh.

    Without the pose that was shown last, which no step looks at, and without a cut that was announced.
    """
    state = simulation.state()
    motion = {"q", "v", "a", "counters"}
    shown = {name: np.zeros_like(part) for name, part in state.stepper._asdict().items() if name not in motion}
    return rows.state_vector(replace(state, cut=False, stepper=state.stepper._replace(**shown)))


def _starts(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.array(counts, np.int64))]).astype(np.int64)


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that do not fit together; those of the model are checked where it is there."""
    if set(arrays) != set(_ARRAYS):
        raise InputError("not a recorded take: arrays are missing, or too many")
    for name, axes in _ARRAYS.items():
        array = arrays[name]
        if array.ndim != axes or (array.dtype.kind == "f") == (name in _INTEGERS):
            raise InputError(f"not a recorded take: '{name}' is {array.dtype} of shape {array.shape}")
        if name in _INTEGERS:
            arrays[name] = array.astype(np.int64)
        elif name != "key_values":
            require_finite(array, name)
    frames = len(arrays["seconds"])
    if frames == 0 or len(arrays["poses"]) != frames or len(arrays["cuts"]) != frames:
        raise InputError("not a recorded take: frames without poses")
    if (arrays["seconds"] < 0.0).any():
        raise InputError("not a recorded take: frames that last less than no time")
    for name, count in (("key", "key_values"), ("collider", "collider_rows"), ("patch", "patch_vertices"),
                        ("pull", "pull_patches")):  # fmt: skip
        runs = frames if name == "pull" else None if name == "patch" else len(arrays[f"{name}_frames"])
        _check_runs(arrays[f"{name}_starts"], len(arrays[count]), runs)
    for name in ("key_frames", "setting_frames", "collider_frames"):
        numbers = arrays[name]
        if len(numbers) == 0 or numbers[0] != 0 or (np.diff(numbers) <= 0).any() or numbers[-1] >= frames:
            raise InputError(f"not a recorded take: '{name}' do not rise from 0")
    patches = len(arrays["patch_starts"]) - 1
    named = arrays["pull_patches"]
    fits = (
        len(arrays["setting_rows"]) == len(arrays["setting_frames"])
        and arrays["setting_rows"].shape[1] > rows.SETTINGS
        and arrays["collider_rows"].shape[1] == rows.COLLIDER
        and len(arrays["patch_shares"]) == len(arrays["patch_vertices"])
        and arrays["pull_forces"].shape == (len(named), 3)
        and (named.size == 0 or (named.min() >= 0 and named.max() < patches))
    )
    if not fits:
        raise InputError("not a recorded take: its arrays do not fit together")


def _check_runs(starts: np.ndarray, total: int, runs: int | None) -> None:
    if len(starts) == 0 or (runs is not None and len(starts) != runs + 1):
        raise InputError("not a recorded take: runs are missing")
    if starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
        raise InputError("not a recorded take: runs that leave their array")
