"""Teleports: changes of pose that no motion makes, after which the flesh must not be kicked."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.models.pose_space import PoseSpaceModel

LARGEST_JUMP = 0.25
"""Character sizes between a bone and where its speed would have taken it. At 24 frames a second a person's hand that
stops dead from 10 m/s is just within; the flesh could not be left further behind and look like anything."""
LARGEST_KICK = 10.0
"""Character sizes a second of change in a bone's speed within one frame; what `LARGEST_JUMP` is at 40 frames a second.
At higher rates a small jump is already too fast: 0.2 m in 1/144 s is 29 m/s."""
LARGEST_TURN = np.radians(100.0)
"""Rotation of a bone within one frame. At 60 frames a second this is 6000 °/s, about the fastest a human joint turns (a
pitcher's shoulder); beyond it the cubic through the bone's matrices would flatten what it carries."""
SLOWEST_TURN_CHECK = 1.0 / 20.0
"""Seconds: in longer frames a turn this large may be a motion."""


class Jumps:
    """Tells jumps from motions in the carrier values of a model."""

    def __init__(self, model: PoseSpaceModel) -> None:
        self._size = model.size
        self._bones: np.ndarray | None = None
        known = model.cubature.stiffness_map
        self._points = -len(model.poses) - (0 if known is None else len(known.components))
        if model.tet_rig.kind == "skin":
            assert model.tet_rig.weights is not None
            carried = model.tet_rig.weights.T.multiply(model.vertex_mass).tocsr()
            mass = np.asarray(carried.sum(axis=1)).ravel()
            self._bones = np.flatnonzero(mass > 0.0)
            # A bone is watched at the centre of the flesh it carries: its own origin may lie anywhere.
            self._centres = (carried @ model.vertices)[self._bones] / mass[self._bones, None]

    def found(self, start: np.ndarray, end: np.ndarray, slope: np.ndarray | None, seconds: float) -> bool:
        """Whether carriers (Z,) jumped from `start` to `end` within `seconds`; slope (Z,) None: speed unknown."""
        bound = self._size * min(LARGEST_JUMP, LARGEST_KICK * seconds)
        if self._bones is None:
            if slope is None:
                return False
            misses = (end - start - seconds * slope)[: self._points].reshape(-1, 3)
            return bool(np.einsum("bi,bi->b", misses, misses).max(initial=0.0) > bound * bound)
        if slope is not None and largest_miss(self._bones, self._centres, start, end, slope, seconds) > bound:
            return True
        return seconds <= SLOWEST_TURN_CHECK and bool(least_cosine(self._bones, start, end) < np.cos(LARGEST_TURN))


@njit(cache=True)
def largest_miss(
    bones: np.ndarray, centres: np.ndarray, start: np.ndarray, end: np.ndarray, slope: np.ndarray, seconds: float
) -> float:
    """Metres between the centres (b, 3) of the bones and where their speeds would have taken them, the largest."""
    largest = 0.0
    for index in range(len(bones)):
        square = 0.0
        for i in range(3):
            row = 12 * bones[index] + 4 * i
            miss = end[row + 3] - start[row + 3] - seconds * slope[row + 3]
            for j in range(3):
                miss += centres[index, j] * (end[row + j] - start[row + j] - seconds * slope[row + j])
            square += miss * miss
        largest = max(largest, square)
    return np.sqrt(largest)


@njit(cache=True)
def least_cosine(bones: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
    """cos θ of the bone that turned most: ⟨R₀, R₁⟩ = 1 + 2 cos θ; dividing by the norms makes scale drop out."""
    least = 1.0
    for bone in bones:
        inner, first, second = 0.0, 0.0, 0.0
        for i in range(3):
            for j in range(3):
                x, y = start[12 * bone + 4 * i + j], end[12 * bone + 4 * i + j]
                inner += x * y
                first += x * x
                second += y * y
        if first > 0.0 and second > 0.0:
            least = min(least, 0.5 * (3.0 * inner / np.sqrt(first * second) - 1.0))
    return least
