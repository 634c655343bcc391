"""A reduced body in motion: one compiled call a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softrig.dynamics import Rayleigh, State, require_step, step_constants
from softrig.errors import InputError, require_finite
from softrig.models.kernels import polynomial
from softrig.models.kinds import require_model
from softrig.models.reduced import ReducedBody


class Fallbacks(NamedTuple):
    """How often a step needed help, since the last reset."""

    shifts: int
    """Steps whose system was not positive definite and was shifted until it was."""
    resets: int
    """Steps that ended in NaN and were thrown away; the body stopped where it was."""


class ReducedSimulation:
    """Steps an anchored `ReducedBody` with a fixed time step in seconds.

    `method`: "newmark" or "backward-euler". `iterations` Newton iterations a step at most (1 is the
    paper's choice), fewer once the residual falls below `tolerance` times the forces at play.

    Assign reduced forces to `force`, or use `pull`; they stay until changed. A step never gives NaN: what went
    wrong is counted in `fallbacks`.
    """

    def __init__(
        self,
        model: ReducedBody,
        step: float,
        method: str = "newmark",
        *,
        damping: Rayleigh | None = None,
        iterations: int = 1,
        tolerance: float = 1e-12,
    ) -> None:
        require_model(model, ReducedBody, "ReducedSimulation")
        if model.is_free:
            raise InputError("this body flies freely: simulate it with FreeFlight")
        if iterations < 1:
            raise InputError(f"at least one Newton iteration a step, got {iterations}")
        self._step_size = require_step(step)
        self._method = method
        self._damping = damping or Rayleigh()
        self._iterations = iterations
        self._model = model
        self._coefficients = model.flat_coefficients.copy()
        r = self._size = model.size
        self._memory = np.zeros(polynomial.memory_size(r))
        self._memory[:6] = step_constants(method, self._step_size)
        self._memory[6:9] = self._damping.mass, self._damping.stiffness, tolerance
        at = polynomial.SETTINGS
        self._q, self._v, self._a, self._force = self._memory[at : at + 4 * r].reshape(4, r)
        self._counters = np.zeros(2, np.int64)
        self._steps = 0
        self._none = np.empty((0, r))

    @property
    def q(self) -> np.ndarray:
        """(r,) modal coordinates; write into it or assign to it."""
        return self._q

    @q.setter
    def q(self, value: np.ndarray) -> None:
        self._q[:] = value

    @property
    def v(self) -> np.ndarray:
        """(r,) their rates; write into it or assign to it."""
        return self._v

    @v.setter
    def v(self, value: np.ndarray) -> None:
        self._v[:] = value

    @property
    def a(self) -> np.ndarray:
        """(r,) their accelerations, as the last step left them."""
        return self._a

    @property
    def force(self) -> np.ndarray:
        """(r,) the reduced force; write into it or assign to it. It stays until changed."""
        return self._force

    @force.setter
    def force(self, value: np.ndarray) -> None:
        self._force[:] = value

    @property
    def step_size(self) -> float:
        """Seconds."""
        return self._step_size

    @property
    def method(self) -> str:
        """Either "newmark" or "backward-euler"."""
        return self._method

    @property
    def damping(self) -> Rayleigh:
        """Rayleigh damping; assign to change it."""
        return self._damping

    @damping.setter
    def damping(self, value: Rayleigh) -> None:
        self._damping = value
        self._memory[6:8] = value.mass, value.stiffness

    @property
    def iterations(self) -> int:
        """Newton iterations a step at most."""
        return self._iterations

    @property
    def model(self) -> ReducedBody:
        """The body, with its current materials."""
        return self._model

    @property
    def time(self) -> float:
        """Seconds since the last reset."""
        return self._steps * self._step_size

    @property
    def fallbacks(self) -> Fallbacks:
        """How often a step needed help."""
        return Fallbacks(*(int(count) for count in self._counters))

    def balance(self) -> None:
        """Give the modes the acceleration that the present force asks for.

        Call it after setting up a motion by hand: without it the first step starts from the last
        acceleration (zero at first), an error of first order in the step.
        """
        internal, stiffness = self._model.force_and_stiffness(self.q)
        damping = self.damping.mass * self._model.mass_times(self.v) + self.damping.stiffness * (stiffness @ self.v)
        self.a[:] = self._model.solve_mass(self.force - internal - damping)

    def step(self) -> None:
        """One step under the current force."""
        polynomial.step(self._coefficients, self._memory, self._counters, self._size, self._iterations)
        self._steps += 1

    def run(self, steps: int, forces: np.ndarray | None = None, *, record: bool = False) -> np.ndarray:
        """Many steps in one compiled call; exactly what as many calls of `step` give.

        `forces` (steps, r) for each step, or the current force throughout. Returns (steps, r) q after
        each step if `record`, else (0, r).
        """
        if steps < 0:
            raise InputError(f"cannot run {steps} steps")
        if forces is None:
            forces = self._none
        else:
            forces = np.ascontiguousarray(forces, dtype=np.float64)
            if forces.shape != (steps, self._size):
                raise InputError(f"forces have shape {forces.shape}, not {(steps, self._size)}")
            require_finite(forces, "forces")
        trajectory = np.empty((steps, self._size)) if record else self._none
        polynomial.run(
            self._coefficients,
            self._memory,
            self._counters,
            self._size,
            self._iterations,
            forces,
            trajectory,
            steps,
        )
        self._steps += steps
        return trajectory

    def pull(self, vertices: np.ndarray, forces: np.ndarray) -> None:
        """Add forces (k, 3), or one (3,) for all, newton, at k vertices of the volume mesh to the current force."""
        self._force += self._model.reduced_force(vertices, forces)

    def edit_material(
        self,
        group: str,
        *,
        young: float | None = None,
        poisson: float | None = None,
        density: float | None = None,
    ) -> None:
        """Change a group's material while the body moves (pascal, 1, kg/m³); exact, some milliseconds."""
        self._model = self._model.with_material(group, young=young, poisson=poisson, density=density)
        self._coefficients[:] = self._model.flat_coefficients

    def reset(self) -> None:
        """Back to rest, undeformed, no force, time zero."""
        self.restore(State.rest(self._size))
        self.force[:] = 0.0
        self._counters[:] = 0

    def state(self) -> State:
        """A copy of the current state."""
        return State(self.q.copy(), self.v.copy(), self.a.copy(), self.time)

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        for mine, theirs in ((self.q, state.q), (self.v, state.v), (self.a, state.a)):
            mine[:] = theirs
        self._steps = round(state.time / self.step_size)

    def positions(self) -> np.ndarray:
        """(n, 3) vertices of the volume mesh, metres."""
        return self._model.positions(self.q)

    def surface_positions(self, out: np.ndarray | None = None) -> np.ndarray:
        """(m, 3) drawn vertices, metres, single precision; into `out` (m, 3) if given."""
        return self._model.surface_positions(self.q, out)
