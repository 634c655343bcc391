"""How far long work is and how long it will take, from the stages that were passed and what they usually cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

INSTANT = 0.5
"""Seconds: a stage that took less was found finished and says nothing about the others."""
UNKNOWN_STAGE = 1.0


class Progress:
    """`costs`: what each stage usually takes compared to the others, in order."""

    def __init__(self, costs: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._costs, self._clock = dict(costs), clock
        self._passed: dict[str, float] = {}
        self._stage: str | None = None
        self._share = 0.0
        self._since = clock()

    @property
    def stage(self) -> str | None:
        """The one at work; None: not begun, or over."""
        return self._stage

    def hear(self, message: Mapping[str, Any]) -> None:
        """A message of the child: a new stage, or how much of one is done."""
        if "stage" in message:
            self._finish()
            self._stage, self._share, self._since = str(message["stage"]), 0.0, self._clock()
        elif "part" in message:
            done, total = message["part"]
            self._share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0

    def _finish(self) -> None:
        if self._stage is not None:
            self._passed[self._stage] = self._clock() - self._since

    @property
    def done(self) -> float:
        """From 0 to 1."""
        total = sum(self._costs.values()) or UNKNOWN_STAGE
        passed = sum(self._cost(stage) for stage in self._passed)
        here = self._share * self._cost(self._stage) if self._stage is not None else 0.0
        return min((passed + here) / total, 1.0)

    @property
    def left(self) -> float | None:
        """Seconds still to go; None while that cannot be known."""
        spent = {stage: seconds for stage, seconds in self._passed.items() if seconds > INSTANT}
        worth = sum(self._cost(stage) for stage in spent)
        seconds = sum(spent.values())
        here = self._clock() - self._since if self._stage is not None else 0.0
        if self._stage is not None and self._share > 0.05 and here > INSTANT:
            worth, seconds = worth + self._share * self._cost(self._stage), seconds + here
        if worth <= 0.0:
            return None
        begun = {*self._passed, self._stage}
        ahead = sum(cost for stage, cost in self._costs.items() if stage not in begun)
        rest = (1.0 - self._share) * self._cost(self._stage) if self._stage is not None else 0.0
        pace = seconds / worth
        # Of a stage that does not tell its share, the time it has taken already is gone.
        left = pace * (ahead + rest) - (here if self._share == 0.0 else 0.0)
        return max(left, pace * ahead)

    def _cost(self, stage: str | None) -> float:
        return self._costs.get(stage or "", UNKNOWN_STAGE)
