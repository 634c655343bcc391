"""A tree of reduced domains in motion: one compiled call a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softrig.dynamics import Rayleigh, require_step, step_constants
from softrig.errors import InputError, require_indices, require_output, require_vectors
from softrig.models.kernels import substructured_step as kernel
from softrig.models.kernels.substructured_display import drawn_positions
from softrig.models.kernels.substructured_tables import ROOT, Loads, Motion, room_for
from softrig.models.kernels.substructured_weights import CENTRE, EXACT, INTERFACE
from softrig.models.kinds import require_model
from softrig.models.substructured import SubstructuredModel

INERTIA = {"interface": INTERFACE, "centre": CENTRE, "exact": EXACT}
"""What a domain feels of what hangs on it, by name."""
AIR = 0.72
"""kg/m³: half the density of air times the drag coefficient of a plate."""


NO_TIME = (1e300, 0.0, 0.0, 0.0, 1.0, 0.0)
"""a₁ … a₆ of a step that takes no time: where and how fast things are stays, and their accelerations are found."""


class TreeFallbacks(NamedTuple):
    """How often a step needed help, since the last reset."""

    shifts: int
    """Systems of domains that were not positive definite and were shifted until they were."""
    resets: int
    """Steps that ended in NaN, or whose end was not found, and were thrown away; the body stopped where it was."""
    halved: int
    """Steps, and parts of steps, whose rounds did not agree and which were taken in halves."""


@dataclass(frozen=True, eq=False)
class SubstructuredState:
    """Where the domains are: modal coordinates, their two rates, the root's motion, and the time in seconds."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    root: np.ndarray
    time: float
    fallbacks: TreeFallbacks


class SubstructuredSimulation:
    """Steps a `SubstructuredModel` with a fixed time step in seconds.

    `inertia`: what a domain feels of the subtree that hangs on it. "exact" (default): all of it. "interface" and
    "centre": its mass alone, at the interface or at its centre of mass, as the paper has them (L1, L2); these are no
    mechanical system, move too fast, and are only stable in the paper's semi-implicit step of one iteration.
    `iterations` rounds a step at most (3, of L1 and L2 one), fewer once coordinates change by less than `tolerance` of
    the step; where they do not agree, the step is taken in halves. `gravity` m/s².

    Set forces with `pull`; they stay until `clear_forces`. Assign `wind` for moving air. A step never gives NaN: what
    went wrong is counted in `fallbacks`.
    """

    def __init__(
        self,
        model: SubstructuredModel,
        step: float,
        method: str = "newmark",
        *,
        inertia: str = "exact",
        damping: Rayleigh | None = None,
        gravity: Sequence[float] = (0.0, 0.0, 0.0),
        iterations: int | None = None,
        tolerance: float = 1e-6,
    ) -> None:
        require_model(model, SubstructuredModel, "SubstructuredSimulation")
        if inertia not in INERTIA:
            raise InputError(f"no inertia called {inertia!r}; there are {', '.join(INERTIA)}")
        if iterations is None:
            iterations = 3 if inertia == "exact" else 1
        if not (np.isfinite(tolerance) and tolerance >= 0.0):
            raise InputError(f"the tolerance must not be negative, got {tolerance}")
        if iterations < 1:
            raise InputError(f"at least one iteration a step, got {iterations}")
        self._model = model
        self._step_size = require_step(step)
        self._kind = INERTIA[inertia]
        self._rounds = iterations
        self._constants = np.array([*step_constants(method, self._step_size), 0.0, 0.0, tolerance])
        self.damping = damping or Rayleigh()
        r, self._tables = model.size, model.tables._replace(stiffness=model.tables.stiffness.copy())
        self._room = room_for(self._tables)
        self._motion = Motion(np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(ROOT), np.zeros(r), np.zeros(r))
        self._drawing = np.empty(3 * max(len(shape.vertices) for shape in model.shapes))
        self._counters = np.zeros(3, np.int64)
        self._steps = 0
        self._gravity = require_vectors(np.asarray(gravity, dtype=np.float64), 1, "gravity")[0].copy()
        self._wind = np.zeros((len(model.domains), 3))
        self._air = AIR
        self._drag = np.zeros(1)
        self._pulls: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._gathered: Loads | None = None
        self._none = np.empty((0, r))
        self.reset()

    # What it is

    @property
    def model(self) -> SubstructuredModel:
        """The tree of domains."""
        return self._model

    @property
    def step_size(self) -> float:
        """Seconds."""
        return self._step_size

    @property
    def time(self) -> float:
        """Seconds since the last reset."""
        return self._steps * self._step_size

    @property
    def fallbacks(self) -> TreeFallbacks:
        """How often a step needed help."""
        return TreeFallbacks(*(int(count) for count in self._counters))

    @property
    def damping(self) -> Rayleigh:
        """Rayleigh damping; assign to change it.

        Its mass part damps motion against the ground, as in the full simulation. Where the root floats, or inertia is
        lumped, it damps the modes alone. Its stiffness part is that of the flesh as it is bent, and where that
        would give energy, as it is at rest.
        """
        return self._damping

    @damping.setter
    def damping(self, value: Rayleigh) -> None:
        self._damping = value
        self._constants[6:8] = value.mass, value.stiffness

    # Its state

    @property
    def q(self) -> np.ndarray:
        """(r̂,) modal coordinates of all domains, one after another; write into it or assign to it."""
        return self._motion.q

    @q.setter
    def q(self, value: np.ndarray) -> None:
        self._motion.q[:] = value

    @property
    def v(self) -> np.ndarray:
        """(r̂,) their rates; write into it or assign to it."""
        return self._motion.v

    @v.setter
    def v(self, value: np.ndarray) -> None:
        self._motion.v[:] = value

    @property
    def a(self) -> np.ndarray:
        """(r̂,) their accelerations, as the last step left them."""
        return self._motion.a

    def of(self, name: str) -> slice:
        """Where the coordinates of the domain called `name` are in `q`."""
        number = self._model.domain(name)
        return slice(int(self._model.starts[number]), int(self._model.starts[number + 1]))

    def launch(self, velocity: Sequence[float], spin: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Set a floating root moving: `velocity` (3,) m/s of its origin and `spin` (3,) rad/s, both in the world."""
        if not self._model.floating:
            raise InputError("the root of this body is held")
        R = self._motion.root[:9].reshape(3, 3)
        moving, turning = require_vectors(velocity, 1, "velocity")[0], require_vectors(spin, 1, "spin")[0]
        self._motion.root[15:18] = R.T @ moving
        self._motion.root[12:15] = R.T @ turning

    def reset(self) -> None:
        """Back to where it began: undeformed, still, time zero. Forces and wind stay."""
        for array in (self.q, self.v, self.a):
            array[:] = 0.0
        root = self._model.domains[0]
        self._motion.root[:] = np.concatenate([root.turn.ravel(), root.place, np.zeros(12)])
        self._steps = 0
        self._counters[:] = 0

    def state(self) -> SubstructuredState:
        """A copy of the current state."""
        return SubstructuredState(
            self.q.copy(), self.v.copy(), self.a.copy(), self._motion.root.copy(), self.time, self.fallbacks
        )

    def restore(self, state: SubstructuredState) -> None:
        """Continue from `state`."""
        self.q[:], self.v[:], self.a[:], self._motion.root[:] = state.q, state.v, state.a, state.root
        self._steps = round(state.time / self._step_size)
        self._counters[:] = state.fallbacks

    # What acts on it

    @property
    def gravity(self) -> np.ndarray:
        """(3,) m/s²; write into it or assign to it."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: Sequence[float]) -> None:
        self._gravity[:] = require_vectors(value, 1, "gravity")[0]

    def edit_stiffness(self, domain: str | int, factor: float) -> None:
        """Multiply the internal forces of a domain by `factor` from now on; exact (SUB11 §5)."""
        if not (np.isfinite(factor) and factor > 0.0):
            raise InputError(f"stiffness must be multiplied by a positive number, got {factor}")
        self._tables.stiffness[self._number(domain)] = factor

    @property
    def wind(self) -> np.ndarray | None:
        """(d, 3) m/s of the air about each domain; assign (3,) for all alike, or (d, 3). None, as at first: no air."""
        return self._wind if self._drag[0] > 0.0 else None

    @wind.setter
    def wind(self, value: np.ndarray | Sequence[float] | None) -> None:
        if value is not None:
            self._wind[:] = require_vectors(value, len(self._wind), "wind")
        self._drag[0] = 0.0 if value is None else self._air

    @property
    def drag(self) -> float:
        """kg/m³: half the density of the air times the drag coefficient of a plate."""
        return self._air

    @drag.setter
    def drag(self, value: float) -> None:
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"drag must be positive, got {value}")
        self._air = float(value)
        if self._drag[0] > 0.0:
            self._drag[0] = self._air

    def pull(self, domain: str | int, vertices: Sequence[int] | np.ndarray, forces: np.ndarray) -> None:
        """Add forces (k, 3), or one (3,) for all, newton, in the world, at k vertices of a domain's shape."""
        number = self._number(domain)
        count = len(self._model.shapes[self._model.domains[number].shape].vertices)
        chosen = require_indices(np.asarray(vertices), count, "vertices")
        self._pulls.append((number, chosen, require_vectors(np.asarray(forces), len(chosen), "forces")))
        self._gathered = None

    def _number(self, domain: str | int) -> int:
        if isinstance(domain, str):
            return self._model.domain(domain)
        return int(require_indices([domain], len(self._model.domains), "domains")[0])

    def clear_forces(self) -> None:
        """Remove all pulls."""
        self._pulls.clear()
        self._gathered = None

    @property
    def _loads(self) -> Loads:
        """The loads as the step reads them: one row a pulled vertex, in the order of the domains."""
        if self._gathered is None:
            self._gathered = self._gather()
        return self._gathered

    def _gather(self) -> Loads:
        most = int(self._model.sizes.max(initial=0))
        rows = sorted((number, int(vertex), i, j) for i, (number, vertices, _) in enumerate(self._pulls)
                      for j, vertex in enumerate(vertices))  # fmt: skip
        pulled = np.array([row[0] for row in rows], np.int64)
        pulls, arms, levers = np.zeros((len(rows), 3)), np.zeros((len(rows), 3)), np.zeros((len(rows), 3, most))
        for place, (number, vertex, i, j) in enumerate(rows):
            shape = self._model.shapes[self._model.domains[number].shape]
            pulls[place] = self._pulls[i][2][j]
            arms[place] = shape.vertices[vertex]
            levers[place, :, : shape.size] = shape.basis[3 * vertex : 3 * vertex + 3]
        return Loads(pulled, pulls, arms, levers, self._gravity, self._wind, self._drag)

    # Its motion

    def balance(self) -> None:
        """Give the modes and a floating root the accelerations that the present motion and forces ask for.

        Call it after setting up a motion by hand: without it the first step starts from the last
        acceleration (zero at first), an error of first order in the step.
        """
        constants = self._constants.copy()
        constants[:6] = NO_TIME
        self._advance(constants, 1, 1, self._none)

    def step(self) -> None:
        """One step."""
        self.run(1)

    def run(self, steps: int, *, record: bool = False) -> np.ndarray:
        """Many steps in one compiled call. Returns (steps, r̂) q after each step if `record`, else (0, r̂)."""
        if steps < 0:
            raise InputError(f"cannot run {steps} steps")
        trajectory = np.empty((steps, self._model.size)) if record else self._none
        self._advance(self._constants, self._rounds, steps, trajectory)
        self._steps += steps
        return trajectory

    def _advance(self, constants: np.ndarray, rounds: int, steps: int, trajectory: np.ndarray) -> None:
        kernel.run(
            self._tables, self._motion, self._loads, self._room, constants, self._counters, self._kind,
            self._model.floating, rounds, steps, trajectory,
        )  # fmt: skip

    # Where it is

    def frames(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins (d, 3), metres, and rotations (d, 3, 3) of all domains in the world, now."""
        kernel.place(self._tables, self._motion, self._room)
        frames = self._room.frames
        return frames[:, 9:12].copy(), frames[:, :9].reshape(-1, 3, 3).copy()

    def domain_positions(self, domain: str | int) -> np.ndarray:
        """(n, 3) vertices of one domain in the world, metres; copies at seams apart."""
        number = self._number(domain)
        origins, rotations = self.frames()
        chosen = self._model.domains[number]
        shape = self._model.shapes[chosen.shape]
        own = self.q[self._model.starts[number] : self._model.starts[number + 1]]
        local = chosen.scale * (shape.vertices + (shape.basis @ own).reshape(-1, 3))
        return origins[number] + local @ rotations[number].T

    def positions(self, out: np.ndarray | None = None) -> np.ndarray:
        """(m, 3) drawn vertices in the world, metres, into `out` if given; at seams the mean of the copies."""
        model, tables = self._model, self._model.display
        result = np.empty((model.drawn_count, 3)) if out is None else out
        require_output(result, (model.drawn_count, 3), np.float64)
        kernel.place(self._tables, self._motion, self._room)
        drawn_positions(
            tables.domains, self._tables.scales, tables.starts, tables.rest, tables.modes, self.q, self._room.frames,
            model.drawn, tables.shares, self._drawing, result,
        )  # fmt: skip
        return result
