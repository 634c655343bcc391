"""What pages draw: the geometry once, and then frames of 16-bit positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.rig.clip import Clip
from softrig.viewer.inside import Layer
from softrig.viewer.protocol import encode
from softrig.viewer.subjects import Subject

STEPS = 65535
LOOKS = 24
"""Moments of a clip whose poses the first view has in it."""


class Picture:
    """Messages about one subject. `version` tells its frames from those of another one; numbers go on from `number`.

    `clip`: what it plays first, which the first view shows all of.
    """

    def __init__(self, subject: Subject, version: int, number: int = 0, clip: Clip | None = None) -> None:
        self._subject, self._version, self._clip = subject, version, clip
        self._view: np.ndarray | None = None
        self.number = number

    def geometry(self) -> bytes:
        """The geometry message."""
        geometry = self._subject.geometry()
        if self._view is None:
            self._view = first_view(self._subject, self._clip)
        header = {
            "is": "geometry",
            "version": self._version,
            "bounds": geometry.bounds.tolist(),
            "view": self._view.tolist(),
            "size": geometry.size,
        }
        arrays = {
            "rest": geometry.rest,
            "triangles": geometry.triangles,
            "weld": geometry.weld,
            "colours": geometry.colours,
        }
        return encode(header, arrays)

    def coat(self) -> bytes | None:
        """The pictures on the surface; None: there are none."""
        coat = self._subject.coat
        if coat is None or not coat.pictures or len(coat.layers) != len(self._subject.geometry().rest):
            return None
        types = [kind for kind, _ in coat.pictures]
        pictures = {f"picture {i}": np.frombuffer(content, np.uint8) for i, (_, content) in enumerate(coat.pictures)}
        header = {"is": "coat", "version": self._version, "side": coat.side, "types": types}
        return encode(header, {"places": coat.places, "layers": coat.layers, **pictures})

    def message(
        self,
        times: dict[str, float],
        handles: np.ndarray,
        layer: Layer | None,
        *,
        plain: bool,
        numbers: dict[str, Any] | None = None,
    ) -> bytes:
        """A frame message; `plain`: with the positions of plain skinning, too."""
        subject = self._subject
        soft, low, high = bounded(subject.soft_positions())
        still = None
        if plain:
            still, lowest, highest = bounded(subject.plain_positions())
            low, high = np.minimum(low, lowest), np.maximum(high, highest)
        step = np.maximum(high - low, 1e-9) / STEPS
        self.number += 1
        header: dict[str, Any] = {"is": "frame", "number": self.number, "version": self._version}
        header |= {name: round(value, 5) for name, value in times.items()}
        header |= {"low": low.tolist(), "step": step.tolist()}
        arrays = {"soft": coded(soft, low, step)}
        if still is not None:
            arrays["plain"] = coded(still, low, step)
        if len(handles):
            arrays["handles"] = bounded(handles)[0]
        if layer is not None:
            points = layer.points(subject)
            if points is not None:
                arrays["layer_points"] = bounded(points)[0]
            field = layer.field(subject, soft, subject.plain_positions() if still is None else still)
            if field is not None:
                arrays["field"], header["field_range"] = field[0], float(field[1])
        if numbers is not None:
            header["numbers"] = numbers
        return encode(header, arrays)


def first_view(subject: Subject, clip: Clip | None) -> np.ndarray:
    """(2, 3) the lowest and highest corner of what the first view shows: rest, and all poses of `clip`.

    A clip that travels would make a dot of the character: the view reaches at most one size beyond rest.
    """
    low, high = rest = subject.geometry().bounds
    if clip is None:
        return rest
    for pose in clip.sample(np.linspace(0.0, clip.duration, LOOKS, endpoint=False)):
        _, lowest, highest = bounded(subject.plain_positions(pose))
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
    return np.clip([low, high], rest[0] - subject.size, rest[1] + subject.size)


def coded(positions: np.ndarray, low: np.ndarray, step: np.ndarray) -> np.ndarray:
    """(n, 3) uint16 of positions (n, 3): low + step · value, to the nearest."""
    scaled = (positions - low.astype(np.float32)) * (1.0 / step).astype(np.float32)
    return np.clip(scaled + 0.5, 0.0, STEPS).astype(np.uint16)


def bounded(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (n, 3) that JSON and a graphics card can take, whatever happened, and their lowest and highest."""
    across = np.ascontiguousarray(positions.T)  # smallest and largest are found ten times as fast along rows
    low, high = across.min(axis=1, initial=np.inf), across.max(axis=1, initial=-np.inf)
    if np.isfinite(low).all() and np.isfinite(high).all():
        return positions, low.astype(np.float64), high.astype(np.float64)
    if len(positions) == 0:
        return positions, np.zeros(3), np.zeros(3)
    return bounded(np.nan_to_num(positions, nan=0.0, posinf=0.0, neginf=0.0))
