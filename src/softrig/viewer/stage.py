"""The stage: a subject, what plays, who touches it and how it is tuned. One thread owns it.

Time goes in whole frames of the subject's own time; what is shown lies on the way from the last frame but one to the
last, so that any speed shows the same motion.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.viewer.body import SoftBody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.opening import Opened
from softrig.viewer.picture import Picture
from softrig.viewer.playback import Playback
from softrig.viewer.posing import Posing
from softrig.viewer.retuning import Retuning
from softrig.viewer.sights import Sights
from softrig.viewer.studio import Studio
from softrig.viewer.subjects import FRAME, Subject
from softrig.viewer.touch import Touch
from softrig.viewer.tuning import Tuning

SHOWS = ("soft", "plain", "both", "split")
TROUBLE = (30, 45)
"""In so many of so many last frames a step had to be given up: the flesh is lost and begins anew."""
PATIENCE = 20.0
"""Seconds between two warnings of that."""


class Stage:
    """Everything about one viewer but its pages. `tell(level, text)` and the swaps may be called from any thread."""

    def __init__(
        self,
        opened: Opened,
        *,
        tell: Callable[[str, str], None],
        swap: Callable[[PoseSpaceModel, Path], None],
        swap_body: Callable[[ReducedBody], None],
        clip: str | None = None,
        folder: Path | None = None,
    ) -> None:
        self.tell, self._swaps, self._folder = tell, (swap, swap_body), folder
        self._maker = ThreadPoolExecutor(1, "softrig modes")
        self.version = 0
        self.show = "soft"
        self.time = 0.0
        self.opened = opened
        self.picture = Picture(opened.subject, self.version)
        self.studio = self._new_studio(opened)
        self._settle_in(opened.subject, clip)

    def _new_studio(self, opened: Opened) -> Studio:
        swap, swap_body = self._swaps
        return Studio(opened, tell=self.tell, swap=swap, swap_body=swap_body, folder=self._folder)

    def _settle_in(self, subject: Subject, clip: str | None = None) -> None:
        """Put a subject on the stage."""
        self.subject = subject
        self.version += 1
        self.playback = Playback(subject, clip)
        # A body that somebody set going goes on.
        if subject.kind == "character":
            subject.begin(self.playback.pose())
        self.posing = Posing(subject)
        self.touch = Touch(subject)
        self.tuning = Tuning(subject.scope(), subject.settings())
        self.sights = Sights(subject, self.studio)
        self.retuning = Retuning(
            subject,
            self.tuning,
            self._maker,
            changing=lambda: self.studio.replay(None),
            changed=self.sights.renew_mode,
            tell=self.tell,
        )
        self.picture = Picture(subject, self.version, self.picture.number, self.playback.clip)
        self._share = 1.0
        self._warned = -math.inf
        self._troubles: deque[int] = deque(maxlen=TROUBLE[1])
        self.steps = 0
        """Inner steps since the subject came."""
        self.busy = 0.0
        """Seconds that they took."""

    # Time

    def advance(self, seconds: float) -> None:
        """Let `seconds` of the subject's own time pass."""
        self.retuning.step()
        if self.sights.mode_shown is not None:
            self.sights.mode_time += seconds
            return
        self._share += seconds / FRAME
        while self._share > 1.0 + 1e-9:
            self._share -= 1.0
            self._frame()
        self.subject.look(self._share)

    def _frame(self) -> None:
        before = self._counted()
        replaying = self.studio.recordings.replaying
        step = replaying.next() if replaying is not None else None
        if step is not None:
            self._move(step.pose, step.cut, step.seconds)
        else:
            if replaying is not None:
                self.replay(None)
            cut = self.playback.advance()
            self.posing.follow()
            pose = self.posing.posed(self.playback.pose())
            self.touch.act(pose)
            self.studio.sketched()
            with self.studio.recordings.frame(self.subject.simulation, pose, cut):
                self._move(pose, cut, FRAME)
        self.time += FRAME
        after = self._counted()
        self.steps += after[0] - before[0]
        self._watch(after[1] - before[1])

    def _move(self, pose: np.ndarray, cut: bool, seconds: float) -> None:
        start = time.perf_counter()
        self.subject.move(pose, cut=cut, seconds=seconds)
        self.busy += time.perf_counter() - start

    def _counted(self) -> tuple[int, int]:
        """Inner steps, and how many had to be given up."""
        counters = getattr(self.subject.simulation, "counters", None)
        if counters is None:
            time = getattr(self.subject.simulation, "time", 0.0)
            return round(time / self.subject.simulation.step_size) if self.subject.simulation else 0, 0
        return counters["steps"], counters["decayed"]

    def _watch(self, given_up: int) -> None:
        self._troubles.append(int(given_up > 0))
        if len(self._troubles) == TROUBLE[1] and sum(self._troubles) >= TROUBLE[0]:
            self._troubles.clear()
            self.touch.let_go()
            self.subject.still()
            if self.time - self._warned > PATIENCE:
                self._warned = self.time
                self.tell("warning", "The flesh could not bear this and began anew; fewer modes or more damping help.")

    def recover(self) -> None:
        """After something went wrong in a frame: nothing touches, nothing is bent, the flesh is still."""
        self.touch.let_go()
        self.posing.drop()
        self.studio.replay(None)
        self.playback.choose(None)
        self.subject.still()
        self.subject.look(1.0)

    def show_what(self, what: str) -> None:
        """Soft, plain, both or split."""
        if what not in SHOWS:
            raise InputError(f"what is shown is {', '.join(SHOWS)}, not '{what}'")
        self.show = what

    # Touch

    def pull(self, owner: Hashable, name: Hashable, vertex: int, to: np.ndarray) -> None:
        """Pull a vertex."""
        self._require_live()
        self.touch.pull(owner, name, vertex, to)

    def poke(self, owner: Hashable, centre: np.ndarray | None, radius: float) -> None:
        """Poke with a ball."""
        if centre is not None:
            self._require_live()
        self.touch.poke(owner, centre, radius)

    def drag_joint(self, joint: int, to: np.ndarray) -> None:
        """Bring a joint somewhere."""
        self.posing.drag(joint, to, self.playback.pose())

    def turn_joint(self, joint: int, angles: np.ndarray) -> None:
        """Turn a joint."""
        self.posing.turn(joint, angles, self.playback.pose())

    def reset(self) -> None:
        """The flesh is still at once."""
        self.touch.let_go()
        self.subject.still()

    def _require_live(self) -> None:
        if self.subject.simulation is None:
            raise InputError("there is no flesh yet: build it first")
        if self.studio.recordings.replaying is not None:
            raise InputError("a take is being replayed: end that first")

    # Takes

    def capture_pose(self, name: str) -> None:
        """The pose shown now becomes a training pose."""
        self.studio.capture(name, self.subject.pose)

    def replay(self, name: str | None) -> None:
        """Play a take; None: back to live."""
        self.touch.let_go()
        self.studio.replay(name)

    # Another subject

    def swap(self, subject: SoftCharacter, path: Path) -> None:
        """Take up a new model of the same character; clip, time and settings stay where they still apply."""
        self._replace(subject)
        self.studio.model_swapped(subject, path)

    def swap_body(self, model: ReducedBody) -> None:
        """Take up a new basis of the same body."""
        old = self.subject
        assert isinstance(old, SoftBody)
        self._replace(old.with_basis(model))
        self.studio.subject = self.subject

    def _replace(self, subject: Subject) -> None:
        old_playback, settings, had_ground = self.playback, self.tuning.now, self.touch.has_ground
        shown = None if self.sights.shown is None else self.sights.shown.name
        was_built = self.tuning.built
        self.studio.record(False)
        self.studio.replay(None)
        self.touch.let_go()
        self._settle_in(subject)
        self.playback.taken_over(old_playback)
        if settings != was_built:
            self.tuning.now = self.tuning.scope.fitted(settings, self.tuning.built)
        if had_ground and hasattr(subject.simulation, "colliders"):
            self.touch.ground(True)
        if shown is not None and shown in self.sights.layers():
            self.sights.layer(shown)

    def open(self, opened: Opened) -> Studio:
        """Put something else on the stage; returns the old studio, which is to be closed."""
        old, self.opened = self.studio, opened
        self.studio = self._new_studio(opened)
        self._settle_in(opened.subject)
        return old

    # For the pages

    def frame(self, numbers: dict[str, Any] | None = None) -> bytes:
        """The frame message as things are now; `numbers` go into its header."""
        sights = self.sights
        if sights.mode_shown is not None:
            self.subject.look(1.0, sights.mode_shown.coordinates(sights.mode_time))
        clip_time = self.playback.time
        if self.playback.playing and self.playback.clip is not None:
            clip_time = max(clip_time - (1.0 - self._share) * FRAME, 0.0)
        ahead = (1.0 - self._share) * FRAME
        times = {"time": self.time - ahead, "clip_time": clip_time}
        replaying = self.studio.recordings.replaying
        if replaying is not None and replaying.frame > 0:
            times["replay"] = float(replaying.take.times[replaying.frame - 1]) - ahead
        return self.picture.message(
            times,
            self.posing.handles(self.subject.pose),
            sights.shown,
            plain=self.show != "soft",
            numbers=numbers,
        )

    def geometry(self) -> bytes:
        """The geometry message."""
        return self.picture.geometry()

    def numbers(self) -> dict[str, Any]:
        """Energy, weights, counters and how far the flesh is from plain skinning."""
        found = self.subject.numbers()
        soft, plain = self.subject.soft_positions(), self.subject.plain_positions()
        offset = float(np.sqrt(np.einsum("ni,ni->n", soft - plain, soft - plain).max(initial=0.0)))
        found["offset_mm"] = round(1e3 * offset, 3) if math.isfinite(offset) else 0.0
        return found

    def close(self) -> None:
        """Stop everything that belongs to it."""
        self._maker.shutdown(cancel_futures=True)
        self.studio.close()
