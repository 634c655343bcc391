"""Damping in physical terms, and the Rayleigh damping that has it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.errors import InputError
from softrig.models.pose_space import PoseSpaceModel

DEFAULT_RATIO = 0.12
"""Share of critical damping of soft tissue: a swing halves in about one period."""
FALLBACK_FREQUENCY = 5.0
"""Hertz, for a model that does not know its own frequencies."""


@dataclass(frozen=True)
class Damping:
    """How fast a swing dies away at one frequency; lower and higher ones are damped more."""

    ratio: float = DEFAULT_RATIO
    """Share of critical damping, 0 (swings for ever) to 1 (does not swing)."""
    frequency: float | None = None
    """Hertz where the ratio holds; None: the lowest of the model."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ratio) and self.ratio >= 0.0):
            raise InputError(f"a damping ratio must not be negative, got {self.ratio}")
        if self.frequency is not None and not (math.isfinite(self.frequency) and self.frequency > 0.0):
            raise InputError(f"a frequency must be positive, got {self.frequency} hertz")

    @classmethod
    def half_life(cls, seconds: float, frequency: float) -> Damping:
        """A swing at `frequency` hertz loses half of its amplitude in `seconds`: exp(−ζωt) = ½."""
        if not (math.isfinite(seconds) and seconds > 0.0 and math.isfinite(frequency) and frequency > 0.0):
            raise InputError(f"half-life and frequency must be positive, got {seconds} s and {frequency} hertz")
        return cls(math.log(2.0) / (2.0 * math.pi * frequency * seconds), frequency)

    def rayleigh(self, model: PoseSpaceModel) -> Rayleigh:
        """α = ζω, β = ζ/ω: ½(α/ω + βω) = ζ, half of it by mass and half by stiffness, the least of ½(α/ω' + βω')."""
        omega = 2.0 * math.pi * (self.frequency or lowest_frequency(model))
        return Rayleigh(mass=self.ratio * omega, stiffness=self.ratio / omega)


def lowest_frequency(model: PoseSpaceModel) -> float:
    """Hertz, the lowest of the model over its poses."""
    known = model.frequencies[np.isfinite(model.frequencies) & (model.frequencies > 0.0)]
    return float(known.min()) if known.size else FALLBACK_FREQUENCY
