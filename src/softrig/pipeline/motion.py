"""Carrier values at every inner step of a motion, as a simulation sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from softrig.simulation.timeline import Timeline

Carriers = Callable[[np.ndarray], np.ndarray]


def carrier_steps(
    carriers: Carriers, poses: np.ndarray, fps: float, rate: float, *, newmark: bool = True
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """z, ż, z̈ at every inner step of a motion: poses (f, P) at `fps`."""
    first = carriers(poses[0])
    timeline = Timeline(len(first), rate, lead=newmark)
    timeline.restart(first)
    for pose in poses[1:]:
        yield from timeline.frame(carriers(pose), 1.0 / fps)
