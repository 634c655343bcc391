"""How long a step of a model takes on this machine."""

from __future__ import annotations

from itertools import islice

import numpy as np

from softrig.machine import timed
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.pipeline.motion import carrier_steps
from softrig.simulation.damping import Damping

ROUNDS = 480
FPS = 60.0
"""Frames a second of the motion that is timed."""


def moving_carriers(stepper: Stepper, model: PoseSpaceModel, count: int = 240) -> list[tuple[np.ndarray, ...]]:
    """Carrier values, rates and accelerations of inner steps along the model's first clip, as a simulation sees them.

    Still ones where it has none.
    """
    if not model.clips:
        z = stepper.carriers(model.rig.parameters.rest)
        return [(z, np.zeros_like(z), np.zeros_like(z))] * count
    _, poses = model.clips[0].resample(FPS)
    return list(islice(carrier_steps(stepper.carriers, poses, FPS, stepper.rate), count))


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
