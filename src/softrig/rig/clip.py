"""Clips: parameters as functions of time, interpolated between keys as glTF 2.0 defines it (Appendix C)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from softrig.errors import IndexRangeError, InputError, notice, require_finite
from softrig.numerics.rotations import slerp, unit_quaternions
from softrig.rig.parameters import Parameters

Interpolation = Literal["step", "linear", "cubic"]
MOST_FRAMES = 10_000_000
"""More resampled frames than this are refused: a rate or a duration is wrong."""


@dataclass(frozen=True, eq=False)
class Track:
    """Keys of `width` neighbouring parameters from `start` on. Before the first and after the last key: held."""

    start: int
    width: int
    times: np.ndarray
    """(f,) seconds, never falling."""
    values: np.ndarray
    """(f, width); cubic: (3f, width), in-tangent, value, out-tangent of each key, tangents per second."""
    interpolation: Interpolation = "linear"
    quaternion: bool = False
    """Whether the four values are one rotation: linear is then slerp the shorter way, cubic is normalised."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", np.asarray(self.times, dtype=np.float64).reshape(-1))
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        if self.interpolation not in ("step", "linear", "cubic"):
            raise InputError(f"interpolation must be step, linear or cubic, not '{self.interpolation}'")
        rows = len(self.times) * (3 if self.interpolation == "cubic" else 1)
        if len(self.times) == 0 or self.values.shape != (rows, self.width):
            raise InputError(f"{len(self.times)} {self.interpolation} keys of {self.width}: values {self.values.shape}")
        if self.quaternion and self.width != 4:
            raise InputError(f"a quaternion has four values, not {self.width}")
        require_finite(self.times, "key times")
        require_finite(self.values, "key values")
        falling = np.diff(self.times) < 0.0
        if falling.any():
            raise InputError("key times fall at keys", np.flatnonzero(falling) + 1)

    def __repr__(self) -> str:
        last = self.start + self.width - 1
        return f"Track(parameters {self.start} to {last}, {len(self.times):,} {self.interpolation} keys)"

    @property
    def keys(self) -> np.ndarray:
        """(f, width) the values at the keys, without tangents."""
        return self.values[1::3] if self.interpolation == "cubic" else self.values

    def sample(self, times: np.ndarray) -> np.ndarray:
        """(m, width) at `times` (m,), seconds."""
        times = np.clip(np.asarray(times, dtype=np.float64), self.times[0], self.times[-1])
        # The last key at or before each time; equal times count as one jump.
        low = np.searchsorted(self.times, times, side="right") - 1
        high = np.minimum(low + 1, len(self.times) - 1)
        spans = np.where(high > low, self.times[high] - self.times[low], 1.0)
        t = (times - self.times[low]) / spans
        if self.interpolation == "step":
            result = self.keys[low]
        elif self.interpolation == "cubic":
            result = self._hermite(low, high, t, spans)
        elif self.quaternion:
            unit = unit_quaternions(self.keys)
            return slerp(unit[low], unit[high], t)
        else:
            result = self.keys[low] + t[:, None] * (self.keys[high] - self.keys[low])
        return unit_quaternions(result) if self.quaternion else result

    def _hermite(self, low: np.ndarray, high: np.ndarray, t: np.ndarray, spans: np.ndarray) -> np.ndarray:
        t = t[:, None]
        values, into, out = self.values[1::3], self.values[0::3], self.values[2::3]
        return (
            (2.0 * t**3 - 3.0 * t**2 + 1.0) * values[low]
            + spans[:, None] * (t**3 - 2.0 * t**2 + t) * out[low]
            + (3.0 * t**2 - 2.0 * t**3) * values[high]
            + spans[:, None] * (t**3 - t**2) * into[high]
        )

    def _hermite_slope(self, time: float) -> np.ndarray:
        """(width,) the derivative of the cubic at `time`, per second, zero where it is held."""
        if not self.times[0] <= time < self.times[-1]:
            return np.zeros(self.width)
        low = int(np.searchsorted(self.times, time, side="right")) - 1
        span = self.times[low + 1] - self.times[low]
        t = (time - self.times[low]) / span
        values, into, out = self.values[1::3], self.values[0::3], self.values[2::3]
        return (
            (6.0 * t**2 - 6.0 * t) / span * (values[low] - values[low + 1])
            + (3.0 * t**2 - 4.0 * t + 1.0) * out[low]
            + (3.0 * t**2 - 2.0 * t) * into[low + 1]
        )

    def trimmed(self, start: float, end: float) -> Track:
        """The same curve from `start` to `end` seconds, `start` moved to zero; keys are added at both ends."""
        inside = (self.times > start) & (self.times < end)
        times = np.concatenate([[start], self.times[inside], [end]]) - start
        if self.interpolation != "cubic":
            ends = self.sample(np.array([start, end]))
            keys = unit_quaternions(self.keys) if self.quaternion else self.keys
            return replace(self, times=times, values=np.concatenate([ends[:1], keys[inside], ends[1:]]))
        return replace(self, times=times, values=self._trimmed_cubic(start, end, inside))

    def _trimmed_cubic(self, start: float, end: float, inside: np.ndarray) -> np.ndarray:
        """(3f, width) a cubic cut short is the cubic with its own values and slopes at the cuts, not normalised."""
        raw = replace(self, quaternion=False)
        cuts = []
        for time, value in zip((start, end), raw.sample(np.array([start, end])), strict=True):
            slope = raw._hermite_slope(time)
            cuts.append(np.stack([slope, value, slope]))
        middle = self.values.reshape(-1, 3, self.width)[inside].copy()
        # Where the curve is held before the first or after the last key, the new interval must be flat.
        if len(middle) and start < self.times[0]:
            middle[0, 0] = 0.0
        if len(middle) and end > self.times[-1]:
            middle[-1, 2] = 0.0
        at_end = np.flatnonzero(self.times == end)
        if at_end.size:  # a key at the very end: its in-tangent belongs to the interval before it
            cuts[1] = self.values.reshape(-1, 3, self.width)[at_end[0]]
        return np.concatenate([cuts[0][None], middle, cuts[1][None]]).reshape(-1, self.width)


@dataclass(frozen=True, eq=False)
class Clip:
    """p(t) of a rig: tracks over some of its parameters; all others stay at rest."""

    name: str
    parameters: Parameters
    tracks: tuple[Track, ...]
    duration: float
    """Seconds."""
    looping: bool = False
    """Whether time beyond the duration starts again at zero; otherwise the last pose is held."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tracks", tuple(self.tracks))
        if not (np.isfinite(self.duration) and self.duration >= 0.0):
            raise InputError(f"clip '{self.name}': duration {self.duration} s")
        outside = [
            index
            for index, track in enumerate(self.tracks)
            if track.start < 0 or track.start + track.width > len(self.parameters)
        ]
        if outside:
            raise IndexRangeError(f"clip '{self.name}': tracks beyond the rig's parameters", outside)

    def __repr__(self) -> str:
        looping = ", looping" if self.looping else ""
        return f"Clip({self.name!r}, {self.duration:g} s, {len(self.tracks):,} tracks{looping})"

    @classmethod
    def from_samples(
        cls, name: str, parameters: Parameters, times: np.ndarray, values: np.ndarray, *, looping: bool = False
    ) -> Clip:
        """Linear tracks through `values` (f, P) at `times` (f,), seconds; parameters that stay at rest get no track."""
        times, values = np.asarray(times, dtype=np.float64).reshape(-1), parameters.checked(values)
        if values.shape != (len(times), len(parameters)) or len(times) == 0:
            raise InputError(f"{len(times)} times and samples {values.shape} of {len(parameters)} parameters")
        starts = set(parameters.quaternions.tolist())
        tracks = [
            Track(start, width, times, values[:, start : start + width], "linear", start in starts)
            for start, width in _groups(parameters)
            if np.any(values[:, start : start + width] != parameters.rest[start : start + width])
        ]
        return cls(name, parameters, tuple(tracks), float(times[-1]), looping)

    def sample(self, when: np.ndarray | float) -> np.ndarray:
        """(f, P) parameters at the times `when` (f,), seconds; of overlapping tracks the last one counts."""
        times = np.atleast_1d(np.asarray(when, dtype=np.float64))
        require_finite(times, "times")
        if self.looping and self.duration > 0.0:
            times = np.mod(times, self.duration)
        else:
            times = np.clip(times, 0.0, self.duration)
        values = np.tile(self.parameters.rest, (len(times), 1))
        for track in self.tracks:
            values[:, track.start : track.start + track.width] = track.sample(times)
        return values

    def resample(self, fps: float) -> tuple[np.ndarray, np.ndarray]:
        """Times (f,) = 0, 1/fps, 2/fps … up to the duration, and the parameters (f, P) there."""
        if not (np.isfinite(fps) and fps > 0.0):
            raise InputError(f"a frame rate must be positive, not {fps}")
        if self.duration * fps > MOST_FRAMES:
            raise InputError(f"clip '{self.name}': {self.duration} s at {fps} frames per second are too many frames")
        # A duration that is a whole number of frames but for rounding keeps its last frame.
        times = np.arange(int(np.floor(self.duration * fps + 1e-6)) + 1) / fps
        held = replace(self, looping=False)
        return times, held.sample(times)

    def trimmed(self, start: float, end: float) -> Clip:
        """The part from `start` to `end` seconds, `start` moved to zero; the curves are the same."""
        if not 0.0 <= start < end <= self.duration + 1e-9:
            raise InputError(f"clip '{self.name}' lasts {self.duration} s; cannot cut it to {start} … {end} s")
        end = min(end, self.duration)
        return replace(self, tracks=tuple(track.trimmed(start, end) for track in self.tracks), duration=end - start)

    def placed(self, parameters: Parameters) -> Clip:
        """The same motion for a rig with more parameters, found by name: a skeleton's clip for a whole character."""
        tracks = []
        for track in self.tracks:
            names = self.parameters.names[track.start : track.start + track.width]
            start = parameters.index(names[0])
            if parameters.names[start : start + track.width] != names:
                raise InputError(f"clip '{self.name}': '{names[0]}' and its neighbours are elsewhere in the other rig")
            tracks.append(replace(track, start=start))
        return replace(self, parameters=parameters, tracks=tuple(tracks))

    def fitted(self, parameters: Parameters, *, ignored: Iterable[str] = ()) -> Clip:
        """The clip on a rig's parameters; what it lacks, but for what is `ignored`, stays at rest: a notice says so."""
        if self.parameters.names == parameters.names:
            return self
        placed = self.placed(parameters)
        lacking = set(parameters.names) - set(self.parameters.names) - set(ignored)
        if lacking:
            notice(f"clip '{self.name}' lacks {len(lacking)} parameters, such as '{min(lacking)}': they stay at rest")
        return placed

    def looped(self) -> Clip:
        """The same clip, starting again at zero whenever it ends."""
        return replace(self, looping=True)


def _groups(parameters: Parameters) -> list[tuple[int, int]]:
    """(start, width) of neighbouring parameters that differ only in their last word: one node's translation, say."""
    heads = [name.rpartition(".")[0] for name in parameters.names]
    inside = np.zeros(len(heads), dtype=bool)
    inside[(parameters.quaternions[:, None] + np.arange(1, 4)).ravel()] = True
    quaternion = np.zeros(len(heads), dtype=bool)
    quaternion[parameters.quaternions] = True
    groups: list[tuple[int, int]] = []
    for index, head in enumerate(heads):
        same = index > 0 and head == heads[index - 1] and head != "" and not quaternion[index]
        after_quaternion = index >= 4 and quaternion[index - 4]
        if inside[index] or (same and not after_quaternion):
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((index, 1))
    return groups
