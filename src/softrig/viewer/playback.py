"""Which clip plays, where it is, and whether it goes on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.rig.clip import Clip
from softrig.viewer.subjects import FRAME, Subject
from softrig.words import none_called

FASTEST = 2.0


class Playback:
    """The clip's share of a subject's pose. Time goes in whole frames from where the clip was begun.

    A clip that is not made to loop starts over with a cut, as do jumps in time and from clip to clip: they move the
    pose without kicking the flesh.
    """

    def __init__(self, subject: Subject, clip: str | None = None) -> None:
        self._clips = {each.name: _placed(each, subject) for each in subject.clips}
        self._rest = subject.parameters.rest
        self.playing = True
        self.loop = True
        self.speed = 1.0
        self.clip: Clip | None = None
        self._origin = 0.0
        self._frames = 0
        self._cut = False
        if clip is not None or self._clips:
            self.choose(clip if clip is not None else next(iter(self._clips)))
        self._cut = False

    @property
    def time(self) -> float:
        """Seconds into the clip."""
        if self.clip is None:
            return 0.0
        time = self._origin + self._frames * FRAME
        if self.clip.duration <= 0.0:
            return 0.0
        return math.fmod(time, self.clip.duration) if self._wraps else min(time, self.clip.duration)

    @property
    def _wraps(self) -> bool:
        return self.clip is not None and self.clip.looping and self.loop

    def choose(self, name: str | None) -> None:
        """Begin a clip; None holds the rest pose."""
        if name is not None and name not in self._clips:
            raise InputError(none_called("clip", name, list(self._clips)))
        self.clip = None if name is None else self._clips[name]
        self.seek(0.0)

    def seek(self, time: float) -> None:
        """Jump within the clip; outside of it: to its nearer end."""
        duration = 0.0 if self.clip is None else self.clip.duration
        self._origin, self._frames = min(max(float(time), 0.0), duration), 0
        self._cut = True

    def play(self, on: bool) -> None:
        """Go on or hold the pose. A stop in mid-motion is the film's, not the character's: nothing is kicked."""
        if on != self.playing:
            self.playing = on
            self._cut = True
            if on and self.clip is not None and not self.loop and self.time >= self.clip.duration:
                self.seek(0.0)

    def set_speed(self, value: float) -> None:
        """1 is real time, 0 stops time itself."""
        self.speed = min(max(float(value), 0.0), FASTEST)

    def advance(self) -> bool:
        """One frame further; whether the pose jumps there."""
        cut, self._cut = self._cut, False
        # A place that was jumped to is shown before time goes on from there.
        if cut or not self.playing or self.clip is None:
            return cut
        self._frames += 1
        if not self._wraps and self._origin + self._frames * FRAME > self.clip.duration + 1e-9:
            if not self.loop:
                self._frames -= 1
                return cut
            self._origin, self._frames = 0.0, 0
            return True
        return cut

    def pose(self) -> np.ndarray:
        """(P,) the clip's pose now."""
        if self.clip is None:
            return self._rest.copy()
        time = self._origin + self._frames * FRAME
        if not self._wraps:
            time = min(time, self.clip.duration)
            if self.clip.looping and time >= self.clip.duration:
                time = np.nextafter(self.clip.duration, 0.0)  # its end, which a looping clip takes for its beginning
        return self.clip.sample(time)[0]

    def shown(self) -> dict[str, Any]:
        """For the page."""
        return {
            "playing": self.playing,
            "speed": self.speed,
            "clip": None if self.clip is None else self.clip.name,
            "clip_time": round(self.time, 4),
            "loop": self.loop,
        }

    def taken_over(self, old: Playback) -> None:
        """Go on where another subject's playback was, as far as this one has its clip."""
        self.playing, self.loop, self.speed = old.playing, old.loop, old.speed
        if old.clip is None:
            self.choose(None)
        elif old.clip.name in self._clips:
            self.choose(old.clip.name)
            self.seek(old.time)


def listed(subject: Subject) -> list[dict[str, Any]]:
    """The clips for the page."""
    return [{"name": clip.name, "duration": clip.duration, "looping": clip.looping} for clip in subject.clips]


def _placed(clip: Clip, subject: Subject) -> Clip:
    return clip if clip.parameters.names == subject.parameters.names else clip.placed(subject.parameters)
