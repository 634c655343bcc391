"""From poses at the caller's frames to carrier values at the inner steps.

Inner steps lie on a grid of fixed spacing h, so that the flesh moves alike whatever the caller's frame rate. Between
two frames each carrier value follows a cubic (Hermite) with the values and slopes of both ends. The slope at the newest
frame can only look back: through the last three frames, at their real times,

    v₁ = d₁ + Δ₁/(Δ₁ + Δ₀) (d₁ − d₀),        d = the slopes of the two last chords, Δ = their durations,

exact for constant acceleration. The curve of successive frames is smooth in its slope, not in its second derivative,
which swings by 2Δ times the third derivative about the truth within every frame. Sampling it at the inner times gave an
oscillator 15 to 25 % of error. Its mean over an inner step is the change of slope, m_k = (ż_k − ż_{k−1})/h, hence free
of that swing; it is the middle of the step's, and Newmark wants the value at the end: z̈_k = m_k + ½(m_k − m_{k−1}).
This gave 0.5 to 2 %. Backward Euler wants the mean itself.

Carriers are never extrapolated: inner steps reach the last grid time not after the frame, and what is left, less than a
step, is bridged by the flesh itself, which is smooth (extrapolated carriers made noise in the poses up to ten times
stronger).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

SNAP = 1e-6
"""Steps: a frame this close to a grid time is at it, so that rounding never costs or adds a step."""


class TimelineState(NamedTuple):
    """A copy of everything a `Timeline` remembers."""

    arrays: np.ndarray
    """(5, Z) last values, slope, chord, rate and mean acceleration of the last inner step."""
    chord_span: float
    since: float


class Timeline:
    """Carrier values (Z,) of the last frame and what is needed to go on from there."""

    def __init__(self, size: int, rate: float, *, lead: bool) -> None:
        self._rate = rate
        self._lead = 0.5 if lead else 0.0
        self._memory = np.zeros((5, size))
        self._chord_span = 0.0
        self.since = 0.0
        self._cubic = np.zeros((4, size))
        self._now = np.zeros((3, size))

    @property
    def values(self) -> np.ndarray:
        """(Z,) at the last frame, live."""
        return self._memory[0]  # never kept: a copy of the timeline must look into its own memory

    @property
    def slope(self) -> np.ndarray:
        """(Z,) at the last frame, 1/s, live."""
        return self._memory[1]

    @property
    def is_moving(self) -> bool:
        """Whether there is a slope: not at the first frame after a restart."""
        return self._chord_span > 0.0

    @property
    def seconds_since_step(self) -> float:
        """How long ago the last grid time was, in [0, h) seconds."""
        return self.since / self._rate

    def restart(self, values: np.ndarray, *, since: float = 0.0) -> None:
        """Forget all slopes: the next frame is taken to have been reached at constant speed, which kicks nothing."""
        self._memory[:] = 0.0
        self.values[:] = values
        self._chord_span = 0.0
        self.since = since

    def shift(self, values: np.ndarray) -> None:
        """The pose was changed while no time passed: go on from there with the old slopes."""
        self.values[:] = values

    def grid_steps(self, seconds: float) -> int:
        """Pass `seconds` without a motion; returns how many grid times lie in them."""
        total = self.since + seconds * self._rate
        count = int(total + SNAP)
        self.since = _snapped(total - count)
        return count

    def frame(self, values: np.ndarray, seconds: float) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Go to the frame `seconds` after the last one; yields z, ż, z̈ (Z,) at each grid time on the way, as views."""
        _join(self._memory, self._cubic, values, seconds, self._chord_span)
        self._chord_span = seconds
        start = self.since
        for index in range(self.grid_steps(seconds)):
            t = (index + 1 - start) / self._rate
            _inner(self._memory, self._cubic, self._now, t, self._rate, self._lead)
            yield self._now[0], self._now[1], self._now[2]

    def state(self) -> TimelineState:
        """A copy of everything remembered."""
        return TimelineState(self._memory.copy(), self._chord_span, self.since)

    def restore(self, state: TimelineState) -> None:
        """Go on exactly as after `state`."""
        self._memory[:] = state.arrays
        self._chord_span, self.since = state.chord_span, state.since


def _snapped(steps: float) -> float:
    return 0.0 if steps < SNAP else steps


@njit(cache=True)
def _join(memory: np.ndarray, cubic: np.ndarray, values: np.ndarray, seconds: float, chord_span: float) -> None:
    """The cubic (4, Z) from the last frame to this one, in powers of the seconds since; then this is the last frame."""
    back = seconds / (seconds + chord_span)
    for i in range(len(values)):
        chord = (values[i] - memory[0, i]) / seconds
        if chord_span > 0.0:
            end = chord + back * (chord - memory[2, i])
        else:
            end = chord
            memory[1, i] = chord
            memory[3, i] = chord
        slope = memory[1, i]
        cubic[0, i] = memory[0, i]
        cubic[1, i] = slope
        cubic[2, i] = (3.0 * chord - 2.0 * slope - end) / seconds
        cubic[3, i] = (slope + end - 2.0 * chord) / (seconds * seconds)
        memory[0, i] = values[i]
        memory[1, i] = end
        memory[2, i] = chord


@njit(cache=True)
def _inner(memory: np.ndarray, cubic: np.ndarray, now: np.ndarray, t: float, rate: float, lead: float) -> None:
    """z, ż and z̈ into `now` (3, Z), `t` seconds after the frame the cubic starts from."""
    for i in range(now.shape[1]):
        now[0, i] = cubic[0, i] + t * (cubic[1, i] + t * (cubic[2, i] + t * cubic[3, i]))
        slope = cubic[1, i] + t * (2.0 * cubic[2, i] + 3.0 * t * cubic[3, i])
        mean = (slope - memory[3, i]) * rate
        now[1, i] = slope
        now[2, i] = mean + lead * (mean - memory[4, i])
        memory[3, i] = slope
        memory[4, i] = mean
