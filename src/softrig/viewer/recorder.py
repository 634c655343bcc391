"""Recording live play: what goes into a simulation is written down, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from softrig.errors import InputError
from softrig.simulation import Pull, Simulation
from softrig.viewer import take_rows as rows
from softrig.viewer.takes import MOST_BYTES, Take


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
