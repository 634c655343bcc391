"""Which lattice spacing gives the wanted number of tets: a secant in log count over log spacing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

GOOD_ENOUGH = 0.04
"""Relative distance from the target at which the search stops; 0.1 is what is promised."""

NARROW = 0.01
"""A bracket of spacings narrower than this holds a jump of the count: a flat side meets a layer of nodes."""

MOST_PASSES = 9


@dataclass
class SpacingSearch:
    """Spacings tried so far and the counts they gave."""

    target: int
    tried: dict[float, int] = field(default_factory=dict)

    def miss(self, count: int) -> float:
        """Relative distance of a count from the target."""
        return abs(count / self.target - 1.0)

    @property
    def best(self) -> float:
        """The spacing whose count came nearest."""
        return min(self.tried, key=lambda spacing: (self.miss(self.tried[spacing]), spacing))

    @property
    def bracket(self) -> tuple[float, float]:
        """The largest spacing that gave too many and the smallest that gave too few; 0 and ∞ if there is none."""
        low = max((s for s, count in self.tried.items() if count > self.target), default=1e-300)
        high = min((s for s, count in self.tried.items() if count < self.target), default=np.inf)
        return low, high if high > low else np.inf

    def run(self, spacing: float, count: Callable[[float], int]) -> float:
        """Try `spacing` and better ones until the count is good enough; the best one tried."""
        for _ in range(MOST_PASSES):
            self.tried[spacing] = max(count(spacing), 1)
            low, high = self.bracket
            if self.miss(self.tried[spacing]) <= GOOD_ENOUGH or high / low < 1.0 + NARROW:
                break
            spacing = self.following()
        return self.best

    def following(self) -> float:
        """The next spacing: along the last two points, −2.7 at first, always inside the known bracket."""
        sizes, counts = list(self.tried), list(self.tried.values())
        slope = -2.7
        if len(sizes) > 1 and sizes[-1] != sizes[-2]:
            slope = np.log(counts[-1] / counts[-2]) / np.log(sizes[-1] / sizes[-2])
            slope = float(np.clip(slope, -3.5, -1.5))
        start = self.best
        step = np.clip(np.log(self.target / self.tried[start]) / slope, -1.0, 1.0)
        wanted = float(start * np.exp(step))
        low, high = self.bracket
        if low > 1e-300 and high < np.inf and not low < wanted < high:
            return float(np.sqrt(low * high))
        if wanted in self.tried:
            return wanted * (1.0 + 1e-3)
        return wanted


def expected_tets(volume: float, area: float, spacing: float) -> float:
    """How many tets of h³/12 a body of `volume` and `area`, grown by about 0.3 h, holds at the spacing h."""
    return 12.0 * (volume + 0.3 * spacing * area) / spacing**3


def first_spacing(volume: float, area: float, target: int) -> float:
    """The spacing h at which a body of `volume` and `area`, grown by about 0.3 h, holds `target` tets of h³/12."""
    spacing = 1.0
    for _ in range(60):
        spacing = float(np.cbrt(12.0 * (volume + 0.3 * spacing * area) / target) * 0.5 + spacing * 0.5)
    return spacing
