"""The thread that owns the stage: time at its own fixed rate, commands in between, the latest frame for the pages."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import SoftrigError
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.viewer.audience import Audience, Nobody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.commands import Command, obey
from softrig.viewer.opening import Opened
from softrig.viewer.stage import Stage
from softrig.viewer.studio import Studio
from softrig.viewer.takes import Take
from softrig.viewer.telling import hello, state

TICK = 1.0 / 60.0
"""Seconds of the wall's clock between two frames."""
CATCH_UP = 0.1
"""Seconds: a machine that stalled longer is not caught up with."""
MOST_COMMANDS = 2000
"""Waiting at once; more are dropped."""
EVERY = 0.1
"""Seconds between two states, and between two sets of numbers."""
SURPRISE_EVERY = 5.0
"""Seconds between two tellings of one and the same error."""
KEPT_TIMES = 600
log = logging.getLogger(__name__)


class Runner:
    """Runs a stage until it is closed. Public methods may be called from any thread."""

    def __init__(self, opened: Opened, *, clip: str | None = None, folder: Path | None = None) -> None:
        self.audience: Audience = Nobody()
        self.port = 0
        self.stage = Stage(opened, tell=self.tell, swap=self.swap, swap_body=self.swap_body, clip=clip, folder=folder)
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softrig viewer", daemon=True)
        self._times: deque[float] = deque(maxlen=KEPT_TIMES)
        self._surface_times: deque[float] = deque(maxlen=KEPT_TIMES)
        self._rates: deque[tuple[float, int]] = deque(maxlen=60)
        self._behind = 0.0
        self._stated = 0.0
        self._last_state: dict[str, Any] = {}
        self._counted = 0.0
        self._last_surprise = ("", -SURPRISE_EVERY)
        self._closers: list[threading.Thread] = []

    # From any thread

    def start(self) -> None:
        """Begin. What every frame needs is compiled here: nothing interrupts a compiler, so a thread that compiles
        cannot be ended."""
        self.stage.geometry()
        self.stage.numbers()
        self._thread.start()

    def close(self) -> None:
        """End; waits until nothing runs any more."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self.stage.close()
        for closer in self._closers:
            closer.join(10.0)

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def command(self, values: dict[str, Any], page: int = 0) -> bool:
        """Have a page's command done before the next frame; False: too many are waiting."""

        def do() -> None:
            try:
                obey(self.stage, Command(values, page))
            except (SoftrigError, OSError) as error:
                self.audience.tell("error", str(error), page)

        # Only pages are held to a bound: what the viewer itself has to do is few, and none of it may be lost.
        if self._commands.qsize() >= MOST_COMMANDS:
            return False
        self.soon(do)
        return True

    def soon(self, action: Callable[[], None]) -> None:
        """Have something done by the runner's thread before the next frame."""
        self._commands.put(action)

    def welcome(self, page: int) -> None:
        """Tell a new page everything."""
        self.soon(lambda: self._introduce(page))

    def left(self, page: int) -> None:
        """A page is gone: what it held is let go."""
        self.soon(lambda: self.stage.touch.leave(page))

    def tell(self, level: str, text: str) -> None:
        """A line for all pages."""
        log.log({"error": logging.ERROR, "warning": logging.WARNING}.get(level, logging.INFO), text)
        self.audience.tell(level, text)

    def swap(self, model: PoseSpaceModel, path: Path) -> None:
        """Put a new model of the same character on the stage."""
        # Made ready here, in the caller's thread: what plays must not wait for it.
        subject = SoftCharacter(model)
        subject.coat = self.stage.subject.coat
        subject.geometry()

        def do() -> None:
            self.stage.swap(subject, path)
            self._introduce(None)

        self.soon(do)

    def swap_body(self, model: ReducedBody) -> None:
        """Put a new basis of the same body on the stage."""

        def do() -> None:
            self.stage.swap_body(model)
            self._introduce(None)

        self.soon(do)

    def add_take(self, take: Take) -> None:
        """Keep a take that came in a file; it can be replayed where it is of the model that is shown."""
        self.soon(lambda: self.tell("info", f"{self.stage.studio.recordings.add(take)} is among the takes."))

    def open(self, opened: Opened) -> None:
        """Put something else on the stage."""

        def do() -> None:
            old = self.stage.open(opened)
            self._introduce(None)
            self._close_later(old)

        self.soon(do)

    def _close_later(self, studio: Studio) -> None:
        """A build that is at work takes a moment to end."""
        closer = threading.Thread(target=studio.close, name="softrig closing", daemon=True)
        self._closers = [*(each for each in self._closers if each.is_alive()), closer]
        closer.start()

    # The thread

    def _run(self) -> None:
        due = time.perf_counter()
        while not self._stop.is_set():
            now = time.perf_counter()
            if now < due:
                self._stop.wait(due - now)
                continue
            ticks = 1 + int((now - due) / TICK)
            due += ticks * TICK
            self._behind = 0.9 * self._behind + 0.1 * (ticks > 2)
            # A machine that is too slow shows everything slower rather than less often.
            self.tick(min(ticks, 2 if self._is_behind else int(CATCH_UP / TICK)))

    @property
    def _is_behind(self) -> bool:
        return self._behind > 0.3

    def tick(self, count: int = 1) -> None:
        """What the thread does `count`/60 s after the last time; called by others only where it does not run."""
        self._obey_all()
        self._guarded(lambda: self._pass(count * TICK))

    def _pass(self, seconds: float) -> None:
        if self.audience.is_there():
            self._advance(seconds * self.stage.playback.speed)
            self._publish()
        self._tell_state()

    def _obey_all(self) -> None:
        for _ in range(MOST_COMMANDS):
            try:
                action = self._commands.get_nowait()
            except queue.Empty:
                return
            self._guarded(action, recovers=False)

    def _guarded(self, action: Callable[[], None], *, recovers: bool = True) -> None:
        """Whatever happens, the thread lives on."""
        try:
            action()
        except Exception as error:
            self._surprised(error)
            if recovers:
                try:
                    self.stage.recover()
                except Exception:
                    log.exception("the viewer could not recover")

    def _surprised(self, error: Exception) -> None:
        """Say so; what happens in every frame is said once in a while."""
        words, now = f"{type(error).__name__}: {error}", time.perf_counter()
        if words != self._last_surprise[0] or now - self._last_surprise[1] > SURPRISE_EVERY:
            self._last_surprise = (words, now)
            log.exception("the viewer was surprised")
            self.audience.tell("error", f"Something went wrong: {words}")

    def _advance(self, seconds: float) -> None:
        stage = self.stage
        before, busy = stage.steps, stage.busy
        stage.advance(seconds)
        steps = stage.steps - before
        if steps > 0:
            self._times.append((stage.busy - busy) / steps)
        self._rates.append((time.perf_counter(), steps))

    def _publish(self) -> None:
        for kind, message in self.stage.sights.messages.items():
            self.audience.send(kind, message)
        self.stage.sights.messages.clear()
        if not self.audience.wants_frame():
            return
        start = time.perf_counter()
        numbers = None
        if start - self._counted > EVERY:
            self._counted, numbers = start, self._numbers()
            start = time.perf_counter()
        message = self.stage.frame(numbers)
        self._surface_times.append(time.perf_counter() - start)
        self.audience.frame(message, self.stage.picture.number)

    def _introduce(self, page: int | None) -> None:
        """Everything a page must know; to one page, or to all after a swap."""
        stage, send = self.stage, self.audience.send
        send("hello", _json(hello(stage, self.port)), page)
        send("geometry", stage.geometry(), page)
        send("coat", stage.picture.coat(), page)
        send("layer", stage.sights.message(), page)
        send("state", _json(state(stage)), page)
        if page is None:
            stage.sights.messages.clear()

    def _tell_state(self) -> None:
        """The state where it changed, at most ten times a second."""
        now = time.perf_counter()
        if now - self._stated < EVERY:
            return
        self._stated = now
        current = state(self.stage)
        # Frames tell how far a clip is.
        lasting = {name: value for name, value in current.items() if name != "clip_time" or not current["playing"]}
        if lasting != self._last_state:
            self._last_state = lasting
            self.audience.send("state", _json(current))

    def _numbers(self) -> dict[str, Any]:
        span = self._rates[-1][0] - self._rates[0][0] if len(self._rates) > 1 else 0.0
        steps = sum(count for _, count in list(self._rates)[1:])
        return {
            "step_ms": _milliseconds(self._times),
            "surface_ms": _milliseconds(self._surface_times),
            "rate": round(steps / span, 1) if span > 0.0 else 0.0,
            "behind": self._is_behind,
            **self.stage.numbers(),
        }


def _milliseconds(times: deque[float]) -> dict[str, float]:
    if not times:
        return {"median": 0.0, "p99": 0.0, "last": 0.0}
    median, p99 = np.percentile(times, [50, 99])
    return {"median": round(1e3 * median, 4), "p99": round(1e3 * p99, 4), "last": round(1e3 * times[-1], 4)}


def _json(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
