"""Whether a character is as large as a living thing, or in another unit than was thought."""

from __future__ import annotations

import numpy as np

from softrig.rig.character import Character

SMALLEST, LARGEST = 0.1, 10.0
"""Metres: a character whose diagonal is outside is probably in another unit."""


def diagonal(character: Character) -> float:
    """Metres from corner to corner of the box around the character at rest."""
    with np.errstate(all="ignore"):  # absurd numbers of a file may overflow
        return float(np.linalg.norm(np.ptp(character.rest_positions, axis=0)))


def likelier_scale(size: float, scale: float) -> float | None:
    """Metres per unit to propose for a character that is `size` metres at `scale`; None where that is plausible."""
    if SMALLEST <= size <= LARGEST or not 0.0 < size < np.inf:
        return None
    return float(scale * 10.0 ** -round(np.log10(size)))


def size_trouble(character: Character, scale: float) -> str:
    """What is odd about the size of a character read at `scale` metres per unit, and what helps; "" if nothing is."""
    size = diagonal(character)
    if not 0.0 < size < np.inf:
        return "all vertices are at one place, or too far apart to measure"
    proposed = likelier_scale(size, scale)
    if proposed is None:
        return ""
    return (
        f"the character is {size:.3g} m from corner to corner; if its unit is not the metre, build it with "
        f"--scale {proposed:g} (in the project file scale = {proposed:g}, in Python scale={proposed:g})"
    )
