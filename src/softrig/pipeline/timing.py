"""How long a step of a model takes on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from softrig.machine import timed
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.pipeline.motion import Carriers, carrier_steps
from softrig.simulation.damping import Damping

ROUNDS = 480
FPS = 60.0
"""Frames a second of the motion that is timed."""


def moving_carriers(stepper: Stepper, model: PoseSpaceModel, count: int = 240) -> list[tuple[np.ndarray, ...]]:
    """Carrier values, rates and accelerations of inner steps along the model's first clip, as a simulation sees them.

    Still ones where it has none.
    """
    return carriers_along(stepper.carriers, model, stepper.rate, count)


def carriers_along(carriers: Carriers, model: PoseSpaceModel, rate: float, count: int) -> list[tuple[np.ndarray, ...]]:
    """The same of any simulation, reduced or full, that has these carriers and `rate` steps a second."""
    moments: list[tuple[np.ndarray, ...]] = []
    if model.clips:
        _, poses = model.clips[0].resample(FPS)
        # What a timeline yields are views of its one present moment.
        moments = [
            tuple(part.copy() for part in moment) for moment in islice(carrier_steps(carriers, poses, FPS, rate), count)
        ]
    if len(moments) < 2:  # no clip, or one of a single key
        z = carriers(model.rig.parameters.rest)
        moments = [(z, np.zeros_like(z), np.zeros_like(z))] * count
    return moments


class Steps(Protocol):
    """A simulation, reduced or full, that is driven by carriers."""

    def place(self, z: np.ndarray, /) -> None:
        """Take a pose without motion."""

    def step(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray, /) -> None:
        """One inner step."""


def least_step(simulation: Steps, moments: Sequence[tuple[np.ndarray, ...]]) -> float:
    """Seconds: the quickest step through `moments`, of which the first is not timed, as it may compile.

    What has nothing to do must not look quick: load `simulation` with gravity.
    """
    simulation.place(moments[0][0])
    turn = iter(moments)
    return timed(lambda: simulation.step(*next(turn)), repeats=len(moments) - 1).least


def step_times(model: PoseSpaceModel, *, rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds: least, median and 99th percentile of an inner step in motion, and the median with the drawn surface."""
    stepper = Stepper(model, damping=Damping().rayleigh(model))
    moments = moving_carriers(stepper, model)
    stepper.place(moments[0][0])
    pose = model.clips[0].sample(0.1)[0] if model.clips else model.rig.parameters.rest
    turn = iter(range(10**9))

    def step() -> None:
        stepper.step(*moments[next(turn) % len(moments)])

    taken = timed(step, repeats=rounds)
    drawn = timed(lambda: stepper.surface(pose), repeats=max(10, rounds // 4))
    return {
        "least": taken.least,
        "median": taken.median,
        "p99": taken.p99,
        "surface": drawn.median,
        "with surface": taken.median + drawn.median,
        "bytes": float(table_bytes(stepper)),
    }


def table_bytes(*owners: object) -> int:
    """Bytes of all arrays that objects hold, in attributes, tuples and lists, each once; the model is left out."""
    seen: dict[int, int] = {}
    left: list[object] = [vars(owner) for owner in owners]
    while left:
        value = left.pop()
        if isinstance(value, np.ndarray):
            root = value if value.base is None or not isinstance(value.base, np.ndarray) else value.base
            seen[id(root)] = root.nbytes
        elif isinstance(value, PoseSpaceModel | str | bytes) or callable(value):
            continue
        elif isinstance(value, dict):
            left += list(value.values())
        elif isinstance(value, tuple | list):
            left += list(value)
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("softrig.models."):
            left.append(vars(value))
    return sum(seen.values())
