"""Rigs without bones: blend shapes, a bend, a wire, any Python function, and chains of rigs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from softrig.errors import InputError, NotFiniteError, require_finite
from softrig.rig.bend_kernel import bent_points
from softrig.rig.deforming import Deforming, checked_positions
from softrig.rig.parameters import Parameters, unique_names
from softrig.rig.protocol import Deformer
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin
from softrig.rig.vertex_kernels import blend_points
from softrig.rig.wires import Hanging, Wires


@dataclass(frozen=True, eq=False, repr=False)
class BlendShapes(Deforming):
    """x = X + Σ_t w_t d_t. Parameters: "<name>.weight", dimensionless."""

    rest_positions: np.ndarray
    """(n, 3) metres."""
    targets: np.ndarray
    """(t, n, 3) metres, displacements from rest at weight one."""
    names: tuple[str, ...]
    """t names; repeated ones get "#2", "#3" … behind them."""
    rest_weights: np.ndarray | None = None
    """(t,) weights at rest; None: all zero."""

    def __post_init__(self) -> None:
        positions = checked_positions(self.rest_positions, "rest positions")
        targets = np.asarray(self.targets, dtype=np.float64)
        if targets.shape != (len(self.names), *positions.shape):
            raise InputError(f"{len(self.names)} targets of {len(positions)} vertices: targets {targets.shape}")
        require_finite(targets, "blend shape targets")
        object.__setattr__(self, "rest_positions", positions)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "names", unique_names(self.names))

    @cached_property
    def parameters(self) -> Parameters:
        """One weight a target."""
        count = len(self.names)
        rest = np.zeros(count) if self.rest_weights is None else self.rest_weights
        return Parameters(tuple(f"{name}.weight" for name in self.names), ("1",) * count, rest, np.zeros(0))

    @cached_property
    def _moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Vertices that any target moves, and of each vertex those targets and how: sculpts move few."""
        vertices, targets = np.nonzero(self.targets.any(axis=2).T)
        starts = np.concatenate([[0], np.cumsum(np.bincount(vertices, minlength=self.vertex_count))])
        return np.unique(vertices), starts, targets, np.ascontiguousarray(self.targets[targets, vertices])

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) points plus the weighted displacements of `vertices`."""
        out = np.array(points, dtype=np.float64, order="C")
        if not np.any(p):
            return out
        p = np.ascontiguousarray(p, dtype=np.float64)
        touched, starts, targets, moves = self._moves
        if vertices is None:
            blend_points(starts, targets, moves, p, touched, touched, out)
        else:
            chosen = np.ascontiguousarray(vertices, dtype=np.int64)
            blend_points(starts, targets, moves, p, chosen, np.arange(len(chosen)), out)
        return out


@dataclass(frozen=True, eq=False, repr=False)
class Bend(Deforming):
    """Bends a bar along `axis` towards `direction` into an arc that keeps its length. Parameter: "<name>.angle", rad.

    With s the distance along the axis from `origin`: between `low` and `high` the curvature is angle / (high − low);
    beyond, the bar continues straight. The cross-section at s = 0 stays where it is.
    """

    rest_positions: np.ndarray
    """(n, 3) metres."""
    origin: np.ndarray
    """(3,) metres, a point of the axis."""
    axis: np.ndarray
    """(3,) direction of the bar, any length but zero."""
    direction: np.ndarray
    """(3,) towards which a positive angle bends; made perpendicular to the axis."""
    low: float
    """Metres along the axis where bending begins, ≤ 0."""
    high: float
    """Metres along the axis where bending ends, ≥ 0."""
    name: str = "bend"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest_positions", checked_positions(self.rest_positions, "rest positions"))
        vectors = np.array([self.origin, self.axis, self.direction], dtype=np.float64)
        require_finite(vectors, "origin, axis and direction of the bend")
        length = np.linalg.norm(vectors[1])
        if not self.low <= 0.0 <= self.high or not self.low < self.high:
            raise InputError(f"a bend from {self.low} to {self.high} m must contain 0")
        axis = vectors[1] / (length or 1.0)
        direction = vectors[2] - axis * (axis @ vectors[2])
        size = np.linalg.norm(direction)
        if length == 0.0 or size <= 1e-9 * np.linalg.norm(vectors[2]):
            raise InputError("a bend needs an axis and a direction that is not along it")
        object.__setattr__(self, "origin", vectors[0])
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "direction", direction / size)

    @cached_property
    def parameters(self) -> Parameters:
        """The angle between the two ends."""
        return Parameters((f"{self.name}.angle",), ("rad",), np.zeros(1), np.zeros(0))

    @cached_property
    def _frame(self) -> np.ndarray:
        """(3, 3) origin, axis and direction."""
        return np.stack([self.origin, self.axis, self.direction])

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) bent points."""
        given = np.ascontiguousarray(points, dtype=np.float64)
        out, room = np.empty_like(given), np.empty((4, len(given)))
        bent_points(self._frame, float(self.low), float(self.high), float(p[0]), given, room, out)
        return out


@dataclass(frozen=True, eq=False, repr=False)
class Wire(Deforming):
    """Points follow a smooth curve. Parameters: "<name>.<i>.x", ".y", ".z", metres, displacement of control point i.

    Each vertex belongs to its nearest point of the rest curve (a cubic B-spline) and keeps its place in a frame that
    is carried along the curve without twist. The first frame turns the least a frame can to follow the first tangent.
    """

    rest_positions: np.ndarray
    """(n, 3) metres."""
    controls: np.ndarray
    """(c, 3) metres, c ≥ 2 control points at rest; the curve starts and ends in the outer ones."""
    weights: np.ndarray | None = None
    """(n,) share of the motion each vertex takes; None: all of it."""
    name: str = "wire"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest_positions", checked_positions(self.rest_positions, "rest positions"))
        object.__setattr__(self, "controls", checked_positions(self.controls, "control points"))
        if len(self.controls) < 2:
            raise InputError(f"a wire needs two control points or more, not {len(self.controls)}")
        if self.weights is not None and np.shape(self.weights) != (self.vertex_count,):
            raise InputError(f"wire weights must be ({self.vertex_count},), not {np.shape(self.weights)}")

    @cached_property
    def parameters(self) -> Parameters:
        """Three displacements a control point."""
        names = tuple(f"{self.name}.{i}.{c}" for i in range(len(self.controls)) for c in "xyz")
        return Parameters(names, ("m",) * len(names), np.zeros(len(names)), np.zeros(0))

    @property
    def hanging(self) -> Hanging:
        """The curve and its vertices, to be put together with others."""
        return Hanging(self.controls, self.rest_positions, self.weights)

    @cached_property
    def _compiled(self) -> Wires:
        return Wires([self.hanging])

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) where the curve carries the points."""
        return self._compiled.deform(p, points, vertices)


@dataclass(frozen=True, eq=False, repr=False)
class CallableRig(Deforming):
    """Any Python function as a rig: function(p, points, vertices) → (len(points), 3) metres.

    `points` are the rest positions (in a chain: the moved ones) of `vertices` (int array). A function that knows only
    all positions at once fits as `lambda p, points, vertices: f(p)[vertices]`; one that must see all points
    needs `needs_all=True`.
    """

    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    parameters: Parameters
    rest_positions: np.ndarray
    """(n, 3) metres."""
    needs_all: bool = False
    """Whether the function must be given all vertices even if some are asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest_positions", checked_positions(self.rest_positions, "rest positions"))

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) what the function says; refused if it has another shape or is not finite."""
        chosen = np.arange(self.vertex_count) if vertices is None else vertices
        # Copies: a function that writes into its arguments must not change the rig.
        result = np.asarray(self.function(p.copy(), points.copy(), chosen.copy()), dtype=np.float64)
        if result.shape != points.shape:
            raise InputError(f"the rig's function returned {result.shape} for points {points.shape}")
        if not np.isfinite(result).all():
            raise NotFiniteError(
                "the rig's function returned NaN or infinity", chosen[~np.isfinite(result).all(axis=1)]
            )
        return result


@dataclass(frozen=True, eq=False, repr=False)
class RigChain(Deforming):
    """Rigs one behind the other: each moves what the one before it gives. Parameters are concatenated in that order."""

    stages: tuple[Deformer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise InputError("a chain needs a rig")
        counts = [stage.vertex_count for stage in self.stages]
        if len(set(counts)) > 1:
            raise InputError(f"rigs of one chain move different numbers of vertices: {counts}")
        _ = self.parameters  # a name used twice is refused here

    def __repr__(self) -> str:
        return f"RigChain({', '.join(map(repr, self.stages))})"

    @property
    def rest_positions(self) -> np.ndarray:
        """(n, 3) metres: those of the first rig."""
        return self.stages[0].rest_positions

    @cached_property
    def parameters(self) -> Parameters:
        """All of them, one rig after the other."""
        return Parameters.concatenated([stage.parameters for stage in self.stages])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each rig's parameters begin, and where the last ends."""
        return tuple(int(i) for i in np.cumsum([0, *(len(stage.parameters) for stage in self.stages)]))

    @property
    def needs_all(self) -> bool:
        """Whether any of the rigs does."""
        return any(stage.needs_all for stage in self.stages)

    def stage_parameters(self, p: np.ndarray, stage: int) -> np.ndarray:
        """(..., P_stage) the parameters of one rig out of p (..., P)."""
        return p[..., self.starts[stage] : self.starts[stage + 1]]

    def deform(self, p: np.ndarray, points: np.ndarray, vertices: np.ndarray | None) -> np.ndarray:
        """(len(points), 3) points through all rigs."""
        for first, last, part in self._parts:
            points = part.deform(p[first:last], points, vertices)
        return points

    @cached_property
    def _parts(self) -> list[tuple[int, int, Deformer | Wires]]:
        """The rigs with their first and last parameter; neighbouring wires are done as one."""
        parts: list[tuple[int, int, Deformer | Wires]] = []
        places = zip(self.starts, self.starts[1:], self.stages, strict=False)
        for together, run in groupby(places, key=lambda place: isinstance(place[2], Wire)):
            members = list(run)
            if together:
                wires = Wires([stage.hanging for *_, stage in members if isinstance(stage, Wire)])
                parts.append((members[0][0], members[-1][1], wires))
            else:
                parts += members
        return parts


def carried_by_root(rig: Deformer, name: str = "root") -> RigChain:
    """`rig` followed by one node that translates, rotates and scales the whole: its parameters come last."""
    skeleton = Skeleton.from_heads([name], [-1], np.zeros((1, 3)))
    count = rig.vertex_count
    nothing = np.zeros((count, 0))
    root = LinearBlendSkin(
        skeleton,
        rig.rest_positions,
        np.zeros(0),
        np.zeros((0, 4, 4)),
        nothing,
        nothing,
        np.zeros(count, dtype=np.int32),
    )
    stages: Sequence[Deformer] = rig.stages if isinstance(rig, RigChain) else (rig,)
    return RigChain((*stages, root))
