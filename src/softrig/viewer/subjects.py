"""What a viewer can show: something with a surface that moves, with or without flesh, with or without clips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from softrig.render.colour import srgb
from softrig.rig.clip import Clip
from softrig.rig.features import bounding_size
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.rig.weld import TOLERANCE, weld
from softrig.viewer.coats import Coat
from softrig.viewer.tuning import Scope, Settings

FRAME = 1.0 / 60.0
"""Seconds of a subject's own time between two frames: the same at every speed, so that slow motion is the same motion
and a bake at 60 frames a second is what was seen."""
CLAY = (214, 162, 138, 255)
"""sRGB of a surface without colours of its own."""
GRAVITY = 9.81
"""m/s²."""


Adopt = Callable[[Settings], None]
"""Takes up what was prepared; given the settings as they are by then."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """The surface to draw, y up."""

    rest: np.ndarray = field(repr=False)
    """(n, 3) float32 metres."""
    triangles: np.ndarray = field(repr=False)
    """(t, 3) uint32."""
    weld: np.ndarray = field(repr=False)
    """(n,) uint32 the first of the vertices that lie where each one lies: they share a normal."""
    colours: np.ndarray = field(repr=False)
    """(n, 4) uint8 sRGB."""
    bounds: np.ndarray
    """(2, 3) lowest and highest corner, metres."""
    size: float
    """Metres: the diagonal of the bounding box."""


class Grip(Protocol):
    """A hold on a patch of flesh around a vertex."""

    vertex: int
    compliance: np.ndarray
    """(3, 3) metres that newtons along each axis (columns), held for one frame, move the vertex; symmetric."""

    def push(self, force: np.ndarray) -> None:
        """Pull with `force` (3,) newton until told otherwise."""

    def release(self) -> None:
        """Let go."""


class Subject(Protocol):
    """A character or a body. All lengths in metres, y up; called from one thread."""

    kind: str
    """"character" or "body"."""
    name: str
    model: Any
    """The `PoseSpaceModel` or `ReducedBody`; None: no flesh yet."""
    simulation: Any
    """The `Simulation` or `ReducedSimulation`; None: no flesh yet."""
    clips: tuple[Clip, ...]
    regions: tuple[str, ...]
    """Whose stiffness can be tuned apart."""
    skeleton: Skeleton | None
    parameters: Parameters
    """Of a pose."""
    pose: np.ndarray
    """(P,) as shown."""
    size: float
    coat: Coat | None
    """Pictures on the surface; given before its geometry is first asked for."""

    def geometry(self) -> Geometry:
        """The surface at rest."""

    def soft_positions(self) -> np.ndarray:
        """(n, 3) float32, as shown."""

    def plain_positions(self, pose: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) float32 at `pose` (P,), by default as shown, without the flesh's own motion."""

    def tet_positions(self) -> np.ndarray:
        """(N, 3) vertices of the volume mesh, as shown."""

    def newest_positions(self) -> np.ndarray:
        """(n, 3) float32 at the end of the last frame, which may lie ahead of what is shown."""

    def foresee(self, pose: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) where surface vertices will be if the next frame goes to `pose` (P,), and without flesh."""

    def begin(self, pose: np.ndarray) -> None:
        """Begin anew at `pose` (P,), at rest there: the first frame."""

    def move(self, pose: np.ndarray, *, cut: bool = False, seconds: float = FRAME) -> None:
        """One frame further, to `pose` (P,); `cut`: the pose jumped, which does not kick the flesh."""

    def look(self, share: float, q: np.ndarray | None = None) -> None:
        """Show the moment `share` of the way from the last frame but one to the last; `q` (r,): with this shape."""

    def still(self) -> None:
        """Stop all swinging: begin anew at the present pose."""

    def grip(self, vertex: int, radius: float | None = None) -> Grip:
        """Take hold of the flesh around a surface vertex; an `InputError` where there is none."""

    def scope(self) -> Scope:
        """What can be tuned."""

    def settings(self) -> Settings:
        """As they are."""

    def tune(self, settings: Settings) -> None:
        """Take up live settings, but for what `prepare` is needed for."""

    def prepare(self, settings: Settings) -> Adopt | None:
        """Make what settings need that takes long, in any thread; what it gives adopts it. None: nothing is needed."""

    def numbers(self) -> dict[str, Any]:
        """Energy, pose weights and counters of fallbacks, as they are now."""

    def about(self) -> dict[str, Any]:
        """Counts for people."""


def surface_geometry(
    rest: np.ndarray, triangles: np.ndarray, colours: np.ndarray | None, coat: Coat | None = None
) -> Geometry:
    """The geometry of vertices (n, 3) and triangles (t, 3) with linear colours (n, 3 or 4) in 0 … 1, or clay.

    What a `coat` says about colours comes on top of them.
    """
    rest = np.asarray(rest, dtype=np.float64)
    if coat is not None and len(coat.tints) == len(rest):
        colours = coat.coloured(colours)
    size = bounding_size(rest)
    together = weld(rest, TOLERANCE * max(size, 1e-9))
    bounds = np.stack([rest.min(axis=0), rest.max(axis=0)])
    return Geometry(
        rest.astype(np.float32),
        np.asarray(triangles).astype(np.uint32),
        together.representative[together.unique_of_vertex].astype(np.uint32),
        drawn_colours(len(rest), colours),
        bounds,
        float(size),
    )


def drawn_colours(count: int, colours: np.ndarray | None) -> np.ndarray:
    """(count, 4) uint8 sRGB of linear colours (count, 3 or 4), clay where there are none or they are not finite."""
    drawn = np.tile(np.array(CLAY, np.uint8), (count, 1))
    if colours is not None and np.shape(colours)[0] == count:
        light = np.asarray(colours, dtype=np.float64)[:, :3]
        known = np.isfinite(light).all(axis=1)
        drawn[known, :3] = np.rint(255.0 * srgb(np.clip(light[known], 0.0, 1.0)))
    return drawn


def between(parameters: Parameters, start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    """The pose (P,) `share` of the way from `start` to `end`, which lie one frame apart; rotations the shorter way."""
    if share >= 1.0:
        return end
    start = start.copy()
    for where in parameters.quaternions:
        turn = slice(where, where + 4)
        if start[turn] @ end[turn] < 0.0:
            start[turn] *= -1.0
    return parameters.normalised((1.0 - share) * start + share * end)


def swung(start: Sequence[np.ndarray], end: Sequence[np.ndarray], share: float) -> np.ndarray:
    """Modal coordinates between two frames: the cubic with both ends' values and rates, (q, v) each."""
    if share >= 1.0:
        return end[0]
    t, h = share, FRAME
    return (
        (2.0 * t**3 - 3.0 * t**2 + 1.0) * start[0]
        + h * (t**3 - 2.0 * t**2 + t) * start[1]
        + (3.0 * t**2 - 2.0 * t**3) * end[0]
        + h * (t**3 - t**2) * end[1]
    )


def sound_compliance(moves: np.ndarray) -> np.ndarray:
    """(3, 3) symmetric and positive, from the moves (3, 3) that a newton along each axis makes."""
    values, vectors = np.linalg.eigh(0.5 * (moves + moves.T))
    least = 1e-6 * max(float(values.max()), 1e-12)
    return (vectors * np.maximum(values, least)) @ vectors.T


def plain_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """`values` as floats that JSON can hold: what is not finite is left out."""
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
