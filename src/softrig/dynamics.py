"""Time integration of M q̈ + C q̇ + R(q) = f, and static equilibrium R(q) = f, for any elastic body.

The body may be full (sparse, 3n unknowns) or reduced (dense, r unknowns): the same code serves
both. Implicit Newmark and backward Euler are one scheme with two sets of constants: with unknown q
and previous state (q₀, v₀, a₀),
    a = a₁(q − q₀) − a₂v₀ − a₃a₀,    v = a₄(q − q₀) + a₅v₀ + a₆a₀     (StVK05 App. C),
so every compiled runtime needs one step only as well. Units: whatever the body uses for q, seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from softrig.errors import InputError, SolverError, StepSizeError, require_finite

IMPLICIT_METHODS = ("newmark", "backward-euler")
METHODS = (*IMPLICIT_METHODS, "central-differences")

MOST_ITERATIONS = 30
"""Newton iterations of a step that must converge."""


class ElasticBody(Protocol):
    """What an integrator needs of a body. Matrices are opaque: only `system` and `solve` touch them."""

    @property
    def size(self) -> int:
        """Number of unknowns."""

    def energy(self, q: np.ndarray) -> float:
        """Elastic energy, joule."""

    def force(self, q: np.ndarray) -> np.ndarray:
        """Internal force R(q) = ∂energy/∂q (size,)."""

    def force_and_stiffness(self, q: np.ndarray, *, projected: bool = False) -> tuple[np.ndarray, Any]:
        """R(q) and K(q) = ∂R/∂q, or a positive semidefinite stand-in for K."""

    def force_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in the norm of `force` is: no residual can be asked to be smaller."""

    def energy_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in `energy` is, joule."""

    def mass_times(self, v: np.ndarray) -> np.ndarray:
        """M v."""

    def solve_mass(self, right: np.ndarray) -> np.ndarray:
        """M⁻¹ right."""

    def system(self, mass_factor: float, stiffness: Any, stiffness_factor: float) -> Any:
        """mass_factor · M + stiffness_factor · K."""

    def solve(self, matrix: Any, right: np.ndarray, *, definite: bool = False) -> np.ndarray:
        """matrix⁻¹ right; raises `SolverError` if singular, or if `definite` is asked for and not so."""

    def require_anchored(self) -> None:
        """Raise `AnchorError` if the body can move without deforming, so that not every load has an equilibrium."""


@dataclass(frozen=True)
class Rayleigh:
    """Damping C = mass · M + stiffness · K(q) (StVK05 Eq. 3): low frequencies by the first, high by the second."""

    mass: float = 0.0
    """α, 1/second."""
    stiffness: float = 0.0
    """β, second."""

    def __post_init__(self) -> None:
        if not (self.mass >= 0.0 and self.stiffness >= 0.0):
            raise InputError(f"damping must not be negative, got {self}")

    @classmethod
    def from_ratios(cls, low: tuple[float, float], high: tuple[float, float]) -> Rayleigh:
        """The damping with two given ratios of critical: each argument is (frequency in hertz, ratio)."""
        (f1, z1), (f2, z2) = low, high
        w1, w2 = 2.0 * np.pi * f1, 2.0 * np.pi * f2
        if not 0.0 < w1 < w2:
            raise InputError(f"frequencies must be positive and rising, got {f1} and {f2} hertz")
        stiffness = 2.0 * (z2 * w2 - z1 * w1) / (w2**2 - w1**2)
        return cls(mass=2.0 * z1 * w1 - stiffness * w1**2, stiffness=stiffness)

    def ratio(self, frequency: float) -> float:
        """Damping ratio (1 = critical) at a frequency in hertz."""
        omega = 2.0 * np.pi * frequency
        return 0.5 * (self.mass / omega + self.stiffness * omega)


class StepConstants(NamedTuple):
    """a₁ … a₆ of the implicit step."""

    a1: float
    a2: float
    a3: float
    a4: float
    a5: float
    a6: float


def step_constants(method: str, step: float) -> StepConstants:
    """Constants of "newmark" (β = ¼, γ = ½: second order, no numerical damping) or "backward-euler"."""
    if method == "newmark":
        beta, gamma = 0.25, 0.5
        return StepConstants(
            a1=1.0 / (beta * step * step),
            a2=1.0 / (beta * step),
            a3=(1.0 - 2.0 * beta) / (2.0 * beta),
            a4=gamma / (beta * step),
            a5=1.0 - gamma / beta,
            a6=(1.0 - gamma / (2.0 * beta)) * step,
        )
    if method == "backward-euler":
        return StepConstants(a1=1.0 / (step * step), a2=1.0 / step, a3=0.0, a4=1.0 / step, a5=0.0, a6=0.0)
    raise InputError(f"no implicit method called {method!r}; there are {', '.join(IMPLICIT_METHODS)}")


def require_step(step: float) -> float:
    """`step` if it is a positive finite number of seconds."""
    if not (np.isfinite(step) and step > 0.0):
        raise StepSizeError(f"a time step must be positive and finite, got {step} seconds")
    return float(step)


@dataclass(frozen=True)
class State:
    """Where the body is: unknowns, their first two rates, and the time in seconds."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    time: float = 0.0

    @classmethod
    def rest(cls, size: int) -> State:
        """Undeformed and still."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))


class Integrator:
    """Steps a body with a fixed time step.

    Newton iterations stop once the residual falls below `tolerance` times the forces at play (or below
    rounding). By default a step that does not get there raises `SolverError`; with `iterations` it takes that
    many at most and what they give (1 is the paper's semi-implicit choice).
    """

    def __init__(
        self,
        body: ElasticBody,
        step: float,
        method: str = "newmark",
        *,
        damping: Rayleigh | None = None,
        iterations: int | None = None,
        tolerance: float = 1e-9,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"no integrator called {method!r}; there are {', '.join(METHODS)}")
        if iterations is not None and iterations < 1:
            raise InputError(f"at least one Newton iteration a step, got {iterations}")
        self.body = body
        self.step_size = require_step(step)
        self.method = method
        self.damping = damping or Rayleigh()
        self.iterations = iterations
        self.tolerance = tolerance
        if method == "central-differences":
            limit = critical_step(body, self.damping)
            if step > limit:
                raise StepSizeError(f"central differences are unstable beyond {limit:.3g} seconds here, got {step:.3g}")

    def start(self, state: State, force: np.ndarray) -> State:
        """`state` with the acceleration that its force balance asks for."""
        internal = self.body.force(state.q)
        damping = self._damping_force(state.q, state.v)
        return replace(state, a=self.body.solve_mass(force - internal - damping))

    def step(self, state: State, force: np.ndarray) -> State:
        """The state one step later, under `force` at the end of the step."""
        if self.method == "central-differences":
            return self._explicit_step(state, force)
        return self._implicit_step(state, force)

    def run(
        self, state: State, steps: int, force: np.ndarray | Callable[[float], np.ndarray], *, record: bool = True
    ) -> tuple[State, np.ndarray]:
        """`steps` steps under a constant or time-dependent force; the last state, and q after each step.

        The trajectory is (steps, size), or (0, size) without `record`.
        """
        trajectory = np.empty((steps if record else 0, self.body.size))
        for i in range(steps):
            load = force(state.time + self.step_size) if callable(force) else force
            state = self.step(state, load)
            if record:
                trajectory[i] = state.q
        return state, trajectory

    def _implicit_step(self, state: State, force: np.ndarray) -> State:
        c = step_constants(self.method, self.step_size)
        alpha, beta = self.damping.mass, self.damping.stiffness
        q = state.q.copy()
        for _ in range(self.iterations or MOST_ITERATIONS):
            internal, stiffness = self.body.force_and_stiffness(q)
            a, v = self._rates(c, q, state)
            inertia = self.body.mass_times(a + alpha * v)
            residual = inertia + internal - force
            if beta:
                residual += beta * (stiffness @ v)
            scale = float(np.linalg.norm(inertia) + np.linalg.norm(internal) + np.linalg.norm(force))
            if not np.isfinite(scale):
                raise SolverError(f"the step at {state.time:.6g} s diverged: try a smaller step")
            if np.linalg.norm(residual) <= max(self.tolerance * scale, self._rounding(c, q)):
                break
            matrix = self.body.system(c.a1 + c.a4 * alpha, stiffness, 1.0 + c.a4 * beta)
            q = q - self.body.solve(matrix, residual)
        else:
            if self.iterations is None:
                raise SolverError(
                    f"the step at {state.time:.6g} s did not converge in {MOST_ITERATIONS} iterations: "
                    "try a smaller step"
                )
        a, v = self._rates(c, q, state)
        return State(q, v, a, state.time + self.step_size)

    def _rounding(self, c: StepConstants, q: np.ndarray) -> float:
        """What is left of a residual by rounding: in the internal force, and in the difference q − q₀."""
        moved = float(np.linalg.norm(self.body.mass_times(q)))
        return 2.0 * self.body.force_rounding(q) + 8.0 * float(np.finfo(np.float64).eps) * c.a1 * moved

    @staticmethod
    def _rates(c: StepConstants, q: np.ndarray, state: State) -> tuple[np.ndarray, np.ndarray]:
        moved = q - state.q
        return (
            c.a1 * moved - c.a2 * state.v - c.a3 * state.a,
            c.a4 * moved + c.a5 * state.v + c.a6 * state.a,
        )

    def _explicit_step(self, state: State, force: np.ndarray) -> State:
        """Newmark with β = 0, γ = ½; damping sees the velocity predicted from the last acceleration."""
        h = self.step_size
        q = state.q + h * state.v + 0.5 * h * h * state.a
        predicted = state.v + h * state.a
        a = self.body.solve_mass(force - self.body.force(q) - self._damping_force(q, predicted))
        v = state.v + 0.5 * h * (state.a + a)
        if not np.isfinite(a).all():
            raise SolverError(f"the explicit step at {state.time:.6g} s diverged: try a smaller step")
        return State(q, v, a, state.time + h)

    def _damping_force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        result = self.damping.mass * self.body.mass_times(v)
        if self.damping.stiffness:
            result = result + self.damping.stiffness * (self.body.force_and_stiffness(q)[1] @ v)
        return result


def kinetic_energy(body: ElasticBody, state: State) -> float:
    """½ vᵀ M v, joule."""
    return 0.5 * float(state.v @ body.mass_times(state.v))


def critical_step(body: ElasticBody, damping: Rayleigh | None = None, *, iterations: int = 200, seed: int = 0) -> float:
    """The largest stable step of central differences at rest, seconds: 2/ω_max, less with damping.

    ω_max by power iteration on M⁻¹K.
    """
    _, stiffness = body.force_and_stiffness(np.zeros(body.size))
    x = np.random.default_rng(seed).standard_normal(body.size)
    previous = 0.0
    for _ in range(iterations):
        x /= np.sqrt(x @ body.mass_times(x))
        y = stiffness @ x
        value = float(x @ y)
        if abs(value - previous) <= 1e-6 * value:
            break
        previous = value
        x = body.solve_mass(y)
    omega = np.sqrt(value)
    ratio = 0.0 if damping is None else damping.ratio(omega / (2.0 * np.pi))
    # The power iteration approaches ω_max from below: keep a margin.
    return 0.98 * _critical_product(ratio) / omega


def _critical_product(ratio: float) -> float:
    """The largest stable ωh of `Integrator._explicit_step` for an oscillator with this damping ratio, by bisection."""
    low, high = 0.0, 2.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        position = np.array([1.0, middle, 0.5 * middle**2])
        acceleration = -position - 2.0 * ratio * np.array([0.0, 1.0, middle])
        velocity = np.array([0.0, 1.0, 0.5 * middle]) + 0.5 * middle * acceleration
        growth = np.abs(np.linalg.eigvals(np.stack([position, velocity, acceleration]))).max()
        low, high = (middle, high) if growth <= 1.0 + 1e-9 else (low, middle)
    return low


def static_equilibrium(
    body: ElasticBody,
    force: np.ndarray,
    *,
    start: np.ndarray | None = None,
    load_steps: int = 1,
    iterations: int = 100,
    tolerance: float = 1e-9,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """q with R(q) = force, by Newton with line search on energy − force·q; load applied in `load_steps` parts.

    Where the stiffness is indefinite the positive semidefinite one takes its place, so that the answer is
    a minimum (a shape that lasts) and not a saddle.
    """
    body.require_anchored()
    require_finite(np.asarray(force), "forces")
    if load_steps < 1:
        raise InputError(f"at least one load step, got {load_steps}")
    q = np.zeros(body.size) if start is None else np.array(start, dtype=np.float64)
    for part in range(1, load_steps + 1):
        q = _equilibrium(body, force * (part / load_steps), q, iterations, tolerance)
        if progress:
            progress(part, load_steps)
    return q


def _equilibrium(body: ElasticBody, force: np.ndarray, q: np.ndarray, iterations: int, tolerance: float) -> np.ndarray:
    # Without a load there is only the force of the start to compare with.
    scale = float(np.linalg.norm(force)) or float(np.linalg.norm(body.force(q)))
    potential = float(body.energy(q) - force @ q)
    for _ in range(iterations):
        internal, stiffness = body.force_and_stiffness(q)
        gradient = internal - force
        goal = max(tolerance * scale, body.force_rounding(q))
        residual = float(np.linalg.norm(gradient))
        if residual <= goal:
            return q
        direction = _descent(body, q, stiffness, gradient)
        q, potential, moved = _line_search(body, force, q, direction, gradient, potential)
        if not moved:
            # The potential cannot tell better from worse any more; the estimate of rounding may be a little low.
            if residual <= 100.0 * goal:
                return q
            raise SolverError("the static solve stalled: apply the load in more steps")
    raise SolverError(f"the static solve did not converge in {iterations} iterations: use more load steps")


def _descent(body: ElasticBody, q: np.ndarray, stiffness: Any, gradient: np.ndarray) -> np.ndarray:
    """A direction in which the potential falls: exact Newton, or with the projected stiffness."""
    try:
        return -body.solve(stiffness, gradient, definite=True)
    except SolverError:
        _, projected = body.force_and_stiffness(q, projected=True)
        return -body.solve(projected, gradient)


def _line_search(
    body: ElasticBody,
    force: np.ndarray,
    q: np.ndarray,
    direction: np.ndarray,
    gradient: np.ndarray,
    potential: float,
) -> tuple[np.ndarray, float, bool]:
    """Halve until the potential falls as Armijo asks (or, at rounding level, until the residual does)."""
    slope = float(gradient @ direction)
    noise = body.energy_rounding(q) + 1e-13 * (abs(potential) + abs(float(force @ q)))
    length = 1.0
    for _ in range(40):
        trial = q + length * direction
        value = float(body.energy(trial) - force @ trial)
        if value <= potential + 1e-4 * length * slope:
            return trial, value, True
        if abs(length * slope) <= noise and np.linalg.norm(body.force(trial) - force) < np.linalg.norm(gradient):
            return trial, value, True
        length *= 0.5
    return q, potential, False
