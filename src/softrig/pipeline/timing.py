"""How long a step of a model takes on this machine."""

from __future__ import annotations

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.machine import timed
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper

ROUNDS = 200


def moving_carriers(stepper: Stepper, model: PoseSpaceModel, count: int = 64) -> list[tuple[np.ndarray, ...]]:
    """Carrier values, rates and accelerations along the model's first clip, or still ones where it has none."""
    rest = model.rig.parameters.rest
    poses = model.clips[0].sample(np.arange(count) / stepper.rate) if model.clips else np.tile(rest, (count, 1))
    z = np.stack([stepper.carriers(pose) for pose in poses])
    speed = np.gradient(z, 1.0 / stepper.rate, axis=0)
    return list(zip(z, speed, np.gradient(speed, 1.0 / stepper.rate, axis=0), strict=True))


def step_times(model: PoseSpaceModel, *, rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds: least, median and 99th percentile of an inner step in motion, and the median with the drawn surface."""
    stepper = Stepper(model, damping=Rayleigh(1.0, 1e-3))
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
