"""Values that come from outside, and how they are spoken of."""

from __future__ import annotations

import math
from typing import Any

from softrig.errors import InputError


def checked_number(value: Any, what: str, least: float, most: float) -> float:
    """A finite number within bounds; whole numbers of any length are refused like all that are too large."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"'{what}' is a number from {least:g} to {most:g}, not {short(value)}")
    if not math.isfinite(value):
        raise InputError(f"'{what}' is not a finite number")
    return float(value)


def short(value: Any) -> str:
    """A value in a message, not too long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number too long to be written
        return "that"
    return text if len(text) <= 60 else text[:57] + "…"
