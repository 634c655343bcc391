"""Bakes: all frames of a clip at once, exactly as live stepping gives them, and loops that close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import InputError
from softrig.rig.clip import MOST_FRAMES, Clip

if TYPE_CHECKING:
    from softrig.simulation.live import Simulation

MOST_CYCLES = 8
"""Cycles a loop is run through at most before what is left of the seam is spread over the cycle."""
SEAM = 1e-5
"""Character sizes: a loop whose flesh returns this closely has closed (0.02 mm on a person)."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BakeReport:
    """What to know of a bake. Lengths in metres, the largest over all vertices."""

    fps: float
    """Frames a second; of a loop, what makes the cycle a whole number of frames."""
    counters: dict[str, int]
    """Inner steps, and how often one needed help."""
    largest_offset: float
    """Between the soft vertices and plain skinning, NaN if plain skinning was not made."""
    largest_at: int = -1
    """The vertex where it is; -1 if it is nowhere."""
    cycles: int = 0
    """Of a loop: cycles run through, the given one included."""
    seam: float = 0.0
    """Of a loop: how far the flesh was off after the last cycle; spread over all its frames."""
    loop_step: float = 0.0
    """Of a loop: how far the flesh moves on its bones from the last frame to the first."""
    usual_step: float = 0.0
    """Of a loop: the largest such step between neighbouring frames within it."""


@dataclass(frozen=True, eq=False)
class Bake:
    """The frames of a clip."""

    name: str
    times: np.ndarray = field(repr=False)
    """(f,) seconds."""
    poses: np.ndarray = field(repr=False)
    """(f, P)."""
    vertices: np.ndarray = field(repr=False)
    """(f, n̄, 3) float32 metres."""
    plain: np.ndarray | None = field(repr=False)
    """(f, n̄, 3) float32 metres without the flesh's motion, if asked for."""
    coordinates: np.ndarray = field(repr=False)
    """(f, r) modal coordinates."""
    report: BakeReport

    def __len__(self) -> int:
        return len(self.times)


def bake_clip(
    simulation: Simulation, clip: Clip, fps: float, *, loop: bool, plain: bool, progress: Progress | None
) -> Bake:
    """Run `simulation` through `clip` from a fresh start; it is left wherever the clip ends."""
    morphs = [name for name in simulation.parameters.names if name.endswith(".weight")]
    clip = clip.fitted(simulation.parameters, ignored=morphs)
    simulation.reset()
    before = simulation.counters
    times, poses = _loop_frames(clip, fps) if loop else clip.resample(fps)
    if loop:
        step = clip.duration / len(times)
        q, cycles, seam = _closed(simulation, poses, step, progress)
        report = BakeReport(1.0 / step if step else fps, {}, np.nan, cycles=cycles, seam=seam)
    else:
        q = _trajectory(simulation, poses, 1.0 / fps, progress)
        report = BakeReport(fps, {}, np.nan)
    vertices = np.stack([simulation.show(pose, each) for pose, each in zip(poses, q, strict=True)])
    rigid = None
    if plain or loop:
        still = np.zeros(q.shape[1])
        rigid = np.stack([simulation.show(pose, still) for pose in poses])
        report = _measured(report, vertices - rigid, loop)
    counters = {name: count - before.get(name, 0) for name, count in simulation.counters.items()}
    report = replace(report, counters=counters)
    return Bake(clip.name, times, poses, vertices, rigid if plain else None, q, report)


def _trajectory(simulation: Simulation, poses: np.ndarray, step: float, progress: Progress | None) -> np.ndarray:
    """(f, r) modal coordinates at each of the poses (f, P)."""
    q = np.empty((len(poses), simulation.model.mode_count))
    for index, pose in enumerate(poses):
        simulation.move(pose, step)
        q[index] = simulation.shown_coordinates()
        if progress is not None:
            progress(index + 1, len(poses))
    return q


def _loop_frames(clip: Clip, fps: float) -> tuple[np.ndarray, np.ndarray]:
    """Times (f,) and poses (f, P) of one cycle; its end is its beginning and not among them."""
    if not (np.isfinite(fps) and fps > 0.0) or clip.duration * fps > MOST_FRAMES:
        raise InputError(f"clip '{clip.name}': {clip.duration} s at {fps} frames per second")
    count = max(round(clip.duration * fps), 1)
    times = np.arange(count) * (clip.duration / count)
    return times, replace(clip, looping=False).sample(times)


def _closed(
    simulation: Simulation, poses: np.ndarray, step: float, progress: Progress | None
) -> tuple[np.ndarray, int, float]:
    """(f, r) modal coordinates of a cycle that closes, how many were run, and the seam in metres before closing it."""
    around = np.concatenate([poses[1:], poses[:1]])
    total = MOST_CYCLES * len(poses)
    simulation.move(poses[0])
    q = np.empty((len(poses) + 1, simulation.model.mode_count))
    for cycle in range(1, MOST_CYCLES + 1):
        done = (cycle - 1) * len(poses)
        q[0] = simulation.shown_coordinates()
        # The total is what it takes at most: cycles that are not needed count as done at the end.
        q[1:] = _trajectory(simulation, around, step, progress and _shifted(progress, done, total))
        gap = simulation.show(poses[0], q[-1]) - simulation.show(poses[0], q[0])
        seam = float(np.linalg.norm(gap, axis=1).max(initial=0.0))
        if seam <= SEAM * simulation.model.size:
            break
    if progress is not None:
        progress(total, total)
    drift = np.linspace(0.0, 1.0, len(q))[:, None] * (q[-1] - q[0])
    return (q - drift)[:-1], cycle, seam


def _shifted(progress: Progress, done: int, total: int) -> Progress:
    return lambda count, _: progress(done + count, total)


def _measured(report: BakeReport, offsets: np.ndarray, loop: bool) -> BakeReport:
    """`report` with the sizes of offsets (f, n̄, 3) from plain skinning and, of a loop, their steps."""
    lengths = np.linalg.norm(offsets, axis=2)
    largest = float(lengths.max(initial=0.0))
    at = int(np.argmax(lengths)) % lengths.shape[1] if largest > 0.0 else -1
    report = replace(report, largest_offset=largest, largest_at=at)
    if not loop:
        return report
    steps = np.linalg.norm(np.roll(offsets, -1, axis=0) - offsets, axis=2).max(axis=1, initial=0.0)
    return replace(report, loop_step=float(steps[-1]), usual_step=float(steps[:-1].max(initial=0.0)))
