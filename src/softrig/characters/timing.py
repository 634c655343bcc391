"""Curves over time that an animator draws: eases, keys, envelopes, overshoot, gaits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import PchipInterpolator

FPS = 60.0
"""Keys a second of the built-in clips."""


def frames(duration: float) -> np.ndarray:
    """(f,) key times from 0 to `duration`, s, both included."""
    return np.arange(round(duration * FPS) + 1) / FPS


def ease(times: np.ndarray, start: float, end: float) -> np.ndarray:
    """0 before `start`, 1 after `end`, s; still at both, in speed and acceleration."""
    x = np.clip((times - start) / (end - start), 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def hold(times: np.ndarray, start: float, full: float, leave: float, end: float) -> np.ndarray:
    """Up from `start` to `full`, down from `leave` to `end`, s."""
    return ease(times, start, full) * (1.0 - ease(times, leave, end))


def keyed(times: np.ndarray, keys: Sequence[tuple[float, float]]) -> np.ndarray:
    """Through (time, value) keys without overshoot, level at the first, the last and every turning point."""
    places, values = np.array(keys).T
    inner = np.clip(times, places[0], places[-1])
    # Two flat keys beyond the ends make the curve start and stop at rest.
    padded = np.concatenate([[places[0] - 1.0], places, [places[-1] + 1.0]])
    return PchipInterpolator(padded, np.concatenate([values[:1], values, values[-1:]]))(inner)


def settled(times: np.ndarray, start: float, *, cycles: float = 2.0, damping: float = 0.35) -> np.ndarray:
    """From 0 to 1 at `start`, s, past it and back: `cycles` swings a second, `damping` 1 has no overshoot."""
    t = np.maximum(times - start, 0.0)
    rate = 2.0 * np.pi * cycles
    free = np.sqrt(1.0 - damping**2)
    swing = np.cos(free * rate * t) + damping / free * np.sin(free * rate * t)
    return 1.0 - np.exp(-damping * rate * t) * swing


def step_cycle(phase: np.ndarray, support: float) -> tuple[np.ndarray, np.ndarray]:
    """Of a foot: place along the stride (½ ahead … −½ behind) and lift (0 … 1) at `phase`, cycles.

    The foot stands from phase 0 for the share `support` of the cycle and moves back at constant speed, as
    seen from the body; then it swings ahead. It leaves and lands at the ground's own speed, so it does not scuff.
    """
    phase = np.mod(phase, 1.0)
    standing = 0.5 - phase / support
    x = np.clip((phase - support) / (1.0 - support), 0.0, 1.0)
    slope = -(1.0 - support) / support
    # The cubic from −½ to ½ that starts and ends with the slope of the standing foot.
    swinging = -0.5 + slope * x + (3.0 - 3.0 * slope) * x**2 - (2.0 - 2.0 * slope) * x**3
    lift = np.sin(np.pi * x) ** 2 * (1.25 - 0.5 * x)
    return np.where(phase < support, standing, swinging), np.where(phase < support, 0.0, lift)
