"""`MultiDomainStepper`: a multi-domain model in motion, step by step (MD11 §5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softrig.dynamics import Rayleigh, require_step, step_constants
from softrig.errors import InputError, require_finite, require_vectors
from softrig.models.kernels.multi_domain_frames import rigid_frames
from softrig.models.kernels.multi_domain_layout import Memory, Tables
from softrig.models.kernels.multi_domain_step import FAILED, balance, newton, potential, prepare, take
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.multi_domain_tables import tables_of

ITERATIONS = 3
"""Newton iterations a step at most (MD11 §6)."""
ENOUGH = 2e-5
"""Of the character's size, RMS over its mass: a Newton step this short is the last one."""
LONGEST = 0.05
"""Of the size, RMS: no Newton step goes further at once."""
SETTLING = 200
"""Newton iterations of an equilibrium at most."""
HALVINGS = 12
"""Of a Newton step before it is given up."""
ROUNDING = 1e-12
"""Of the potential: differences below say nothing."""
SETTLED = 1e-7
"""Of the size, RMS: an equilibrium is found when Newton moves less."""


@dataclass(frozen=True, eq=False)
class MultiDomainState:
    """Unknowns and their rates, and where the frames are."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    rotations: np.ndarray = field(repr=False)
    places: np.ndarray = field(repr=False)


class MultiDomainStepper:
    """Steps of 1/`rate` seconds; poses come as bone matrices (D, 3, 4) of the domains and their two rates.

    `quasistatic`: every step is the equilibrium at its pose, as near as `iterations` of Newton from the last one come.
    `gravity` m/s², `sag_free`: without what of it the rest shape bears. `inertia_scale` multiplies the inertia of the
    frames. `counters`: steps, Newton iterations, steps with projected Hessians, and such that were damped to half.
    """

    def __init__(
        self,
        model: MultiDomainModel,
        *,
        rate: float = 180.0,
        method: str = "newmark",
        damping: Rayleigh | None = None,
        gravity: tuple[float, float, float] | np.ndarray = (0.0, -9.81, 0.0),
        sag_free: bool = True,
        inertia_scale: float = 1.0,
        iterations: int = ITERATIONS,
        quasistatic: bool = False,
        spring: float | None = None,
        spring_damping: float | None = None,
    ) -> None:
        if iterations < 1:
            raise InputError(f"at least one Newton iteration a step, got {iterations}")
        numbers = [inertia_scale, *(value for value in (spring, spring_damping) if value is not None)]
        if not all(np.isfinite(value) and value >= 0.0 for value in numbers):
            raise InputError(f"inertia, spring and its damping must be finite and not negative, got {numbers}")
        self.model = model
        self.step_size = require_step(1.0 / rate if rate > 0.0 else rate)
        self.quasistatic = quasistatic
        self.iterations = iterations
        self.damping = damping or default_damping(model)
        self.gravity = require_vectors(gravity, 1, "gravity")[0]
        self.sag_free = sag_free
        self.inertia_scale = inertia_scale
        self.spring = model.spring if spring is None else float(spring)
        self.spring_damping = model.spring_damping if spring_damping is None else float(spring_damping)
        self.tables = tables_of(model)
        self.memory = memory_of(self.tables)
        self.counters = {"steps": 0, "iterations": 0, "projected": 0, "decayed": 0}
        self._moving = np.array(step_constants(method, self.step_size))
        self._length = model.size * float(np.sqrt(model.vertex_mass.sum()))
        self.place(np.tile(np.eye(3, 4), (len(model.domains), 1, 1)))

    @property
    def q(self) -> np.ndarray:
        """(R,) unknowns of all domains, live, m √kg."""
        return self.memory.q

    def place(self, matrices: np.ndarray) -> None:
        """Put the frames where bone matrices (D, 3, 4) have them; the unknowns stay."""
        self._frames(matrices, np.zeros_like(matrices), np.zeros_like(matrices))

    def restart(self, matrices: np.ndarray) -> None:
        """Undeformed and still, at bone matrices (D, 3, 4)."""
        for part in (self.memory.q, self.memory.v, self.memory.a):
            part[:] = 0.0
        self.place(matrices)

    def step(self, matrices: np.ndarray, rates: np.ndarray, accelerations: np.ndarray) -> None:
        """One step that ends at bone matrices (D, 3, 4), their rates per second and per second²."""
        self.counters["steps"] += 1
        if self.quasistatic:
            self.place(matrices)
            self._equilibrium(self.iterations, ENOUGH)
            return
        m, h = self.memory, self.step_size
        self._frames(matrices, rates, accelerations)
        self._prepare(h)
        m.trial[:] = m.q + h * (m.v + 0.5 * h * m.a)
        count, length = self._newton(self._moving, self.damping, self.iterations, ENOUGH, project=False)
        if length == FAILED:
            self.counters["projected"] += 1
            m.trial[:] = m.q
            count, length = self._newton(self._moving, self.damping, self.iterations, ENOUGH, project=True)
        self.counters["iterations"] += count
        if length == FAILED or not np.isfinite(m.trial).all():
            self._decay()
        else:
            take(m, self._moving)

    def settle(self, matrices: np.ndarray, *, iterations: int = SETTLING) -> bool:
        """Equilibrium at bone matrices (D, 3, 4), at rest; whether it was found."""
        self.place(matrices)
        return self._equilibrium(iterations, SETTLED)

    def positions(self) -> np.ndarray:
        """(n, 3) tet vertices, metres, copies averaged."""
        return self.model.assembled(self.q, self.memory.rotations, self.memory.places[0])

    def gaps(self) -> np.ndarray:
        """(k,) metres between the copies at each spring."""
        return self.model.gaps(self.q, self.memory.rotations, self.memory.places[0])

    def snapshot(self) -> MultiDomainState:
        """A copy of the state."""
        m = self.memory
        return MultiDomainState(m.q.copy(), m.v.copy(), m.a.copy(), m.rotations.copy(), m.places.copy())

    def restore(self, state: MultiDomainState) -> None:
        """Go on from a snapshot."""
        m = self.memory
        m.q[:], m.v[:], m.a[:] = state.q, state.v, state.a
        m.rotations[:], m.places[:] = state.rotations, state.places

    def static_residual(self, q: np.ndarray, *, with_matrix: bool = False) -> np.ndarray:
        """(R,) what is out of balance at unknowns q, nothing moving, in the present frames."""
        self.memory.trial[:] = q
        self._prepare(0.0)
        balance(self.tables, self.memory, np.zeros(6), 0.0, 0.0, self.spring, 0.0, with_matrix)
        return self.memory.residual.copy()

    def _frames(self, matrices: np.ndarray, rates: np.ndarray, accelerations: np.ndarray) -> None:
        m, stacked = self.memory, np.stack([matrices, rates, accelerations]).astype(np.float64)
        if stacked.shape != (3, len(self.model.domains), 3, 4):
            raise InputError(f"bone matrices {np.shape(matrices)} for {len(self.model.domains)} domains")
        require_finite(stacked, "bone matrices (0 values, 1 rates, 2 second rates)")
        rigid_frames(stacked, self.tables.centres, m.rotations, m.spins, m.accelerations, m.places)

    def _prepare(self, step: float) -> None:
        sag = self.gravity if self.sag_free else np.zeros(3)
        inertia = self.inertia_scale if step > 0.0 else 0.0
        damping = self.spring_damping if step > 0.0 else 0.0
        prepare(self.tables, self.memory, self.gravity, sag, inertia, damping, step)

    def _newton(
        self, c: np.ndarray, damping: Rayleigh, iterations: int, enough: float, *, project: bool
    ) -> tuple[int, float]:
        moving = c[0] > 0.0
        return newton(
            self.tables,
            self.memory,
            c,
            damping.mass if moving else 0.0,
            damping.stiffness if moving else 0.0,
            self.spring,
            self.spring_damping if moving else 0.0,
            iterations,
            enough * self._length,
            LONGEST * self._length,
            project,
        )

    def _equilibrium(self, iterations: int, enough: float) -> bool:
        """Newton with line search on the potential, projected where the system is indefinite; whether it got there."""
        m = self.memory
        self._prepare(0.0)
        m.trial[:] = m.q
        found = False
        for _ in range(iterations):
            self.counters["iterations"] += 1
            before, start = self._potential(), m.trial.copy()
            length = self._descend(before, start)
            if length == FAILED:
                m.trial[:] = start
                break
            if length <= enough * self._length:
                found = True
                break
        if not np.isfinite(m.trial).all():
            self._decay()
            return False
        m.q[:] = m.trial
        m.v[:] = 0.0
        m.a[:] = 0.0
        return found

    def _descend(self, before: float, start: np.ndarray) -> float:
        """One Newton step from `start`, halved until the potential falls; how far it went, FAILED if nowhere."""
        m, still = self.memory, np.zeros(6)
        for project in (False, True):
            m.trial[:] = start
            _, length = self._newton(still, self.damping, 1, 0.0, project=project)
            if length == FAILED:
                self.counters["projected"] += 1
                continue
            step = m.trial - start
            for _ in range(HALVINGS):
                if self._potential() <= before + ROUNDING * abs(before):
                    return float(np.linalg.norm(m.trial - start))
                step *= 0.5
                m.trial[:] = start + step
        return FAILED

    def _potential(self) -> float:
        return potential(self.tables, self.memory, self.spring)

    def _decay(self) -> None:
        m = self.memory
        self.counters["decayed"] += 1
        m.q[:] = 0.5 * np.nan_to_num(m.q, posinf=0.0, neginf=0.0)
        m.v[:] = 0.0
        m.a[:] = 0.0


def default_damping(model: MultiDomainModel) -> Rayleigh:
    """α = ζω, β = ζ/ω at the model's frequency."""
    omega = 2.0 * np.pi * model.frequency
    return Rayleigh(mass=model.damping_ratio * omega, stiffness=model.damping_ratio / omega)


def memory_of(tables: Tables) -> Memory:
    """Zeros of the sizes that these tables need."""
    domains, modes = len(tables.centres), int(tables.starts[-1])
    ranks = np.diff(tables.starts)
    widest = int(ranks.max())
    vectors = [np.zeros(modes) for _ in range(10)]
    q, v, a, trial, load, constant, residual, moved, rate, product = vectors
    return Memory(
        q=q,
        v=v,
        a=a,
        trial=trial,
        load=load,
        constant=constant,
        coupling=np.zeros(int(tables.places[-1])),
        matrix=np.zeros(int(tables.places[-1])),
        rotations=np.zeros((domains, 3, 3)),
        spins=np.zeros((domains, 3, 3)),
        accelerations=np.zeros((domains, 3, 3)),
        places=np.zeros((3, domains, 3)),
        residual=residual,
        moved=moved,
        rate=rate,
        product=product,
        buffer=np.zeros(max((widest + 1) ** 2, 9 * widest)),
        square=np.zeros(widest**2),
        small=np.zeros(240),
    )
