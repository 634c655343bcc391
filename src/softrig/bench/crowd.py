"""`softrig bench crowd`: many characters at once, on one core and on all.

A core is a process with characters of its own (a compiled step holds Python's lock, so threads would take turns). In
every frame each process is told to go, steps its characters and writes their vertices into memory it shares; the frame
ends when the last has answered.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_float
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softrig.bench.pssd import built
from softrig.bench.record import Record, Row, model_sizes, timing_row
from softrig.console import Update
from softrig.machine import Timing, this_machine
from softrig.models.file import load_character_model, save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.parallel import worker_count
from softrig.simulation.live import Simulation

COUNTS = (1, 4, 10, 30, 100)
FPS = 60.0
FEWER = 25
"""Modes of the level of detail that is measured, too."""
FRAMES = 240
"""Frames measured at most; fewer of large crowds."""
SECONDS = 4.0
"""About how long a crowd is watched."""
FACTOR, MEMORY, EACH = "real-time factor", "memory, MB", "a character, ms"


@dataclass(frozen=True)
class Crowd:
    """What a crowd cost."""

    characters: int
    frame: Timing
    memory: float
    """Bytes that its processes hold."""

    @property
    def factor(self) -> float:
        """Seconds of motion made a second, at the median."""
        return 1.0 / (FPS * self.frame.median)


def crowd(update: Update) -> Record:
    """Gorillas of 100 modes, and of 25, at 60 frames a second."""
    model = built("gorilla").model
    cores = worker_count(None)
    levels = [None] + [FEWER] * (model.mode_count > FEWER)
    cases = [(modes, used) for modes in levels for used in dict.fromkeys((1, cores))]
    rows: list[Row] = []
    for done, (modes, used) in enumerate(cases):
        rows += crowd_rows(model, measured_crowds(model, COUNTS, used, modes=modes), used, modes)
        update(done + 1, len(cases))
    remark = (
        "A frame at 60 frames a second: three inner steps of 1/180 s and the drawn vertices of every character, all at "
        "different moments of a clip. A core is a process; its memory is all that it holds, Python and the model "
        "included. Real-time factor: seconds of motion made in a second; above 1 it keeps up."
    )
    sizes = {"gorilla": model_sizes(model)}
    return Record("crowd", "Characters at once", this_machine(), rows, remark, sizes, value="ms a frame, least")


def crowd_rows(model: PoseSpaceModel, crowds: Sequence[Crowd], cores: int, modes: int | None) -> list[Row]:
    """A row a crowd."""
    on = "one core" if cores == 1 else f"{cores} cores"
    rows = []
    for each in crowds:
        also = {
            EACH: 1e3 * each.frame.median / each.characters,
            FACTOR: each.factor,
            MEMORY: each.memory / 1e6,
        }
        who = "1 character" if each.characters == 1 else f"{each.characters} characters"
        what = f"{who}, r = {modes or model.mode_count}, {on}"
        rows.append(timing_row(what, "ms", each.frame, also=also))
    return rows


def measured_crowds(
    model: PoseSpaceModel,
    counts: Sequence[int],
    cores: int,
    *,
    modes: int | None = None,
    frames: int = FRAMES,
) -> list[Crowd]:
    """Crowds of growing size on `cores` processes."""
    crowds = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.softrig"
        save_model(model, path)
        with _processes(path, len(model.embedding_nodes), max(counts), cores, modes) as lines:
            for count in sorted(counts):
                shares = [count // cores + (core < count % cores) for core in range(cores)]
                used = [line for line, share in zip(lines, shares, strict=True) if share]
                memory = sum(_ask(used, "grow", [share for share in shares if share]))
                _ask(used, "frame")  # settles
                first = _frame(used)
                number = max(10, min(frames, round(SECONDS / first)))
                taken = np.array([_frame(used) for _ in range(number)])
                timing = Timing(
                    float(taken.min()), float(np.median(taken)), float(np.quantile(taken, 0.99)), len(taken)
                )
                crowds.append(Crowd(count, timing, memory))
    return crowds


def _frame(lines: Sequence[Connection]) -> float:
    start = time.perf_counter()
    _ask(lines, "frame")
    return time.perf_counter() - start


def _ask(lines: Sequence[Connection], what: str, values: Sequence[int] | None = None) -> list[float]:
    for index, line in enumerate(lines):
        line.send((what, 0 if values is None else values[index]))
    return [float(line.recv()) for line in lines]


@contextmanager
def _processes(path: Path, vertices: int, most: int, cores: int, modes: int | None) -> Iterator[list[Connection]]:
    """A line to each of `cores` processes that hold characters; they end with the block."""
    context = multiprocessing.get_context("spawn")
    lines, members = [], []
    for index in range(cores):
        line, other = context.Pipe()
        shared = context.RawArray(c_float, 3 * vertices * (most // cores + 1))
        member = context.Process(target=_member, args=(other, str(path), shared, modes, index), daemon=True)
        member.start()
        other.close()
        lines.append(line)
        members.append(member)
    try:
        _ask(lines, "ready")
        yield lines
    finally:
        for line in lines:
            line.close()
        for member in members:
            member.join(timeout=10.0)
            if member.is_alive():
                member.terminate()


def _member(line: Connection, path: str, shared: Any, modes: int | None, index: int) -> None:
    """A process of the crowd: does what it is told until the line is closed."""
    with threadpool_limits(1):
        cast = Cast(load_character_model(path), shared, modes, 100 * index)
        while True:
            try:
                what, value = line.recv()
            except EOFError:
                return
            if what == "grow":
                cast.grow(value)
            elif what == "frame":
                cast.frame()
            line.send(resident_bytes())


class Cast:
    """Some characters of one model, each at its own moment of the first clip."""

    def __init__(self, model: PoseSpaceModel, shared: Any, modes: int | None, phase: int) -> None:
        self._first = Simulation(model, fps=FPS, modes=modes)
        self._first.warm_up()
        self._members: list[Simulation] = []
        _, self._poses = model.clips[0].resample(FPS)
        room = np.frombuffer(shared, np.float32)
        count = 3 * len(model.embedding_nodes)
        self._out = room[: count * (len(room) // count)].reshape(-1, len(model.embedding_nodes), 3)
        self._time, self._phase = 0, phase

    def grow(self, count: int) -> None:
        """Have `count` characters."""
        kept = (self._first.model, self._first.model.rig)
        while len(self._members) < count:
            # A copy has tables and state of its own, as if it had been made anew, in a hundredth of the time.
            self._members.append(copy.deepcopy(self._first, {id(each): each for each in kept}))
        del self._members[count:]

    def frame(self) -> None:
        """One frame of everybody: poses in, vertices out."""
        for index, member in enumerate(self._members):
            # Clips run to and fro, so that nobody jumps where one ends.
            turn = (self._time + 7 * index + self._phase) % (2 * len(self._poses) - 2)
            pose = self._poses[min(turn, 2 * len(self._poses) - 2 - turn)]
            member.step(pose, out=self._out[index])
        self._time += 1


def resident_bytes() -> int:
    """Bytes of memory that this process holds."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
