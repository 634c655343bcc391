"""What pages draw: the geometry once, and then frames of 16-bit positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.viewer.inside import Layer
from softrig.viewer.protocol import encode
from softrig.viewer.subjects import Subject

STEPS = 65535


class Picture:
    """Messages about one subject. `version` tells its frames from those of another one; numbers go on from `number`."""

    def __init__(self, subject: Subject, version: int, number: int = 0) -> None:
        self._subject, self._version = subject, version
        self.number = number

    def geometry(self) -> bytes:
        """The geometry message."""
        geometry = self._subject.geometry()
        header = {
            "is": "geometry",
            "version": self._version,
            "bounds": geometry.bounds.tolist(),
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
