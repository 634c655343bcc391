"""The unreduced simulation on a rest shape that moves (PSSD Eq. 4): the truth beside pose-space dynamics.

The unknown is the world displacement u of the free vertices from the moving rest shape x(t):
    M ü + D (u̇ − ω_v × u) + f_int(x(t), u) = f_ext − M ẍ(t),     D = αM + βB(u).
Damping sees the rate of u in a frame that turns with the flesh (ω_v, one angular velocity a vertex), so that a body
that only spins is not damped; printed as D u̇ it is not objective.
B(u) is the viscosity of `fem.laws`: it resists the rates of volume and of strain. At u = 0 it is K, but it never gives
energy. K(u), which is printed, does where flesh is compressed and turns: its indefinite part pushes along the motion. A
letter of jelly, whose β is 0.05 s, was fed 50 kW by it and flew off within half a second.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from softrig.dynamics import (
    IMPLICIT_METHODS,
    MOST_ITERATIONS,
    Rayleigh,
    State,
    StepConstants,
    require_step,
    static_equilibrium,
    step_constants,
)
from softrig.errors import InputError, SolverError, require_finite, require_vectors
from softrig.fem import assembly
from softrig.fem.loads import point_force
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody
from softrig.models.kernels.posed_tets import posed_gradients
from softrig.models.tet_motion import TetMotion, carrier_values, tet_carriers
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel


class MovingBody(FullBody):
    """A full body of tets whose rest shape, and if wanted its material, is set anew at every step.

    `vertices` (n, 3) neutral positions, metres; `fixed` (n,) mask of vertices on the bones (u = 0, they go with the
    rest shape); `vertex_mass` (n,) lumped, kilogram; `young` pascal and `poisson`, a number or (e,).
    """

    def __init__(
        self,
        tets: np.ndarray,
        vertices: np.ndarray,
        *,
        fixed: np.ndarray | None,
        vertex_mass: np.ndarray,
        young: float | np.ndarray,
        poisson: float | np.ndarray,
        law: str = "stable-neo-hookean",
        solver: str = "auto",
    ) -> None:
        mesh = VolumeMesh.build(vertices, tets)
        if mesh.elements.shape[1] != 4:
            raise InputError("a moving body is made of tets")
        super().__init__(mesh, Material(young, poisson, 1.0), law=law, fixed=fixed, mass="lumped", solver=solver)
        mass = np.asarray(vertex_mass, dtype=np.float64)
        if mass.shape != (len(mesh.vertices),):
            raise InputError(f"vertex masses have shape {mass.shape}, not ({len(mesh.vertices)},)")
        light = np.flatnonzero(~(mass > 0.0) & self.free)
        if light.size:
            raise InputError("free vertices need a positive mass", light)
        self._given_mass = mass
        self._free_mass = np.repeat(mass[self.free], 3)
        points = mesh.stiffness_points
        self._neutral_inverse = np.ascontiguousarray(points.gradients[:, 0, :3, :])
        self._neutral_volume = np.ascontiguousarray(points.volumes[:, 0])
        self._gradients = np.empty((len(mesh.elements), 1, 4, 3))
        self._volumes = np.empty((len(mesh.elements), 1))
        self._diagonal = _diagonal_places(self.pattern.indptr, self.pattern.indices)
        self.positions = np.empty_like(mesh.vertices)
        self.clamped = 0
        self.place(mesh.vertices)

    def place(self, positions: np.ndarray) -> None:
        """Take `positions` (n, 3), metres, as the rest shape; `clamped` counts the tets that had to be kept open."""
        if np.shape(positions) != self.positions.shape:
            raise InputError(f"rest positions have shape {np.shape(positions)}, not {self.positions.shape}")
        require_finite(np.asarray(positions), "rest positions of vertices")
        self.positions[:] = positions
        self.clamped = posed_gradients(
            self.mesh.elements,
            self._neutral_inverse,
            self._neutral_volume,
            self.positions,
            self._gradients,
            self._volumes,
        )
        self.__dict__.pop("rest_stiffness", None)

    def set_material(self, young: float | np.ndarray, poisson: float | np.ndarray) -> None:
        """Young's modulus, pascal, and Poisson ratio from now on, a number or (e,) each."""
        self.lam, self.mu, _ = Material(young, poisson, 1.0).per_element(len(self.mesh.elements))
        self.__dict__.pop("rest_stiffness", None)

    def viscosity(self, q: np.ndarray) -> csr_array:
        """B(q), newton per metre: what damps, per second of β. Positive semidefinite; K at q = 0."""
        pattern = self.pattern
        data = np.empty(len(pattern.indices))
        assembly.viscosity(
            *self._points, self.lam, self.mu, self.expand(q), pattern.free, pattern.slots, pattern.indptr, data
        )
        return pattern.matrix(data)

    @cached_property
    def scalar_mass(self) -> csr_array:
        """(n, n) diagonal, kilogram."""
        return csr_array(diags_array(self._given_mass))

    def mass_times(self, v: np.ndarray) -> np.ndarray:
        """M v."""
        return (v.T * self._free_mass).T

    def solve_mass(self, right: np.ndarray) -> np.ndarray:
        """M⁻¹ right."""
        return (right.T / self._free_mass).T

    def system(self, mass_factor: float, stiffness: csr_array, stiffness_factor: float) -> csr_array:
        """mass_factor · M + stiffness_factor · K: one pass over the entries, as the mass is diagonal."""
        data = stiffness_factor * stiffness.data
        data[self._diagonal] += mass_factor * self._free_mass
        return self.pattern.matrix(data)

    def force_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in the norm of `force` is, newton; the neutral shape's stiffness gives the scale."""
        epsilon = float(np.finfo(np.float64).eps)
        return 4.0 * epsilon * (self._stress_scale + _length(self._neutral_diagonal * q))

    @cached_property
    def _neutral_diagonal(self) -> np.ndarray:
        return self.rest_stiffness.diagonal()

    @property
    def _points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.mesh.elements, self._gradients, self._volumes


class _Balance(NamedTuple):
    """The equation of motion at a trial q."""

    residual: np.ndarray
    stiffness: csr_array
    viscosity: csr_array | None
    scale: float
    """The size of the forces at play, newton."""


class MovingIntegrator:
    """Implicit Newmark or backward Euler for a `MovingBody` at a fixed step, damping in the turning frame.

    `iterations`: Newton iterations a step, 1 as the reduced runtime takes as a rule; None goes on until the residual
    is below `tolerance` times the forces at play, and so do several that came no nearer than they began. Newton starts
    at the last u turned by the frames, which is where coordinates in those frames would start. The term D (ω × u) is
    taken at the end of the step like all others and left out of the Newton matrix alone (it is not symmetric), and so
    is how B changes with u: converged steps hold both exactly.
    """

    def __init__(
        self,
        body: MovingBody,
        step: float,
        method: str = "newmark",
        *,
        damping: Rayleigh | None = None,
        iterations: int | None = None,
        tolerance: float = 1e-9,
    ) -> None:
        if method not in IMPLICIT_METHODS:
            raise InputError(f"no implicit method called {method!r}; there are {', '.join(IMPLICIT_METHODS)}")
        if iterations is not None and iterations < 1:
            raise InputError(f"at least one Newton iteration a step, got {iterations}")
        self.body = body
        self.step_size = require_step(step)
        self.method = method
        self.damping = damping or Rayleigh()
        self.iterations = iterations
        self.tolerance = tolerance

    def start(self, state: State, load: np.ndarray, spin: np.ndarray | None = None) -> State:
        """`state` with the acceleration that the force balance at the body's current rest shape asks for."""
        relative = state.v - _turning(spin, state.q)
        damped = self.damping.mass * self.body.mass_times(relative)
        if self.damping.stiffness:
            damped += self.damping.stiffness * (self.body.viscosity(state.q) @ relative)
        return State(state.q, state.v, self.body.solve_mass(load - self.body.force(state.q) - damped), state.time)

    def step(self, state: State, load: np.ndarray, spin: np.ndarray | None = None) -> State:
        """The state one step later. The body must be placed at the rest shape of the END of the step.

        `load` (3·free,) f_ext − M ẍ there, newton; `spin` (free, 3) ω_v there, radian per second.
        """
        c = step_constants(self.method, self.step_size)
        start = _turned(state.q, spin, self.step_size)
        q = previous = start
        last_norm, first_norm, left = np.inf, 0.0, self.iterations
        for _ in range((self.iterations or 0) + MOST_ITERATIONS):
            balance = self._balance(c, q, state, load, spin)
            norm = _length(balance.residual)
            if left is None and not norm <= 2.0 * last_norm:
                q = 0.5 * (q + previous)  # Newton overshot
                continue
            if not np.isfinite(norm):
                raise SolverError(f"the step at {state.time:.6g} s diverged: try a smaller step")
            if norm <= max(self.tolerance * balance.scale, self._rounding(c, q)):
                break
            previous, last_norm, first_norm = q, norm, first_norm or norm
            q = q - self._solve(c, q, balance)
            if left is not None:
                left -= 1
                if left == 0:
                    if self.iterations == 1 or norm < first_norm:
                        break
                    # So many did not bring it nearer: anew and to the end, with halving.
                    q, previous, last_norm, left = start, start, np.inf, None
        else:
            raise SolverError(
                f"the step at {state.time:.6g} s did not converge in {MOST_ITERATIONS} iterations: try a smaller step"
            )
        if not np.isfinite(q).all():
            raise SolverError(f"the step at {state.time:.6g} s diverged: try a smaller step")
        a, v = _rates(c, q, state)
        return State(q, v, a, state.time + self.step_size)

    def _balance(
        self, c: StepConstants, q: np.ndarray, state: State, load: np.ndarray, spin: np.ndarray | None
    ) -> _Balance:
        internal, stiffness = self.body.force_and_stiffness(q)
        a, v = _rates(c, q, state)
        relative = v - _turning(spin, q)
        inertia = self.body.mass_times(a + self.damping.mass * relative)
        residual = inertia + internal - load
        viscosity = None
        if self.damping.stiffness:
            viscosity = self.body.viscosity(q)
            residual += self.damping.stiffness * (viscosity @ relative)
        return _Balance(residual, stiffness, viscosity, _length(inertia) + _length(internal) + _length(load))

    def _solve(self, c: StepConstants, q: np.ndarray, balance: _Balance) -> np.ndarray:
        """The Newton step; where the system is indefinite, with element Hessians projected to PSD."""
        try:
            return self.body.solve(self._system(c, balance.stiffness, balance), balance.residual, definite=True)
        except SolverError:
            projected = self.body.force_and_stiffness(q, projected=True)[1]
            return self.body.solve(self._system(c, projected, balance), balance.residual)

    def _system(self, c: StepConstants, stiffness: csr_array, balance: _Balance) -> csr_array:
        if balance.viscosity is not None:
            stiffness = self.body.pattern.matrix(
                stiffness.data + c.a4 * self.damping.stiffness * balance.viscosity.data
            )
        return self.body.system(c.a1 + c.a4 * self.damping.mass, stiffness, 1.0)

    def _rounding(self, c: StepConstants, q: np.ndarray) -> float:
        moved = _length(self.body.mass_times(q))
        return 2.0 * self.body.force_rounding(q) + 8.0 * float(np.finfo(np.float64).eps) * c.a1 * moved


class FullSimulation:
    """Pose-space dynamics without reduction: all vertices, all tets, the same carriers, loads and step as the reduced.

    `model`: a `PoseSpaceModel` (or anything with its geometry, tet rig, mass and law); its basis and cubature are not
    used. `young`, pascal, and `poisson`: a number, (e,), or one row a pose (m, e), mixed by w⁺ as the reduced forces
    mix theirs. Black-box rigs: z holds ALL tet vertices. Gravity metre per second²; `sag_free` takes g − R_f g, its
    change since the bind pose, as the sculpted shape already sags; `inertia_scale` multiplies −M ẍ.
    """

    def __init__(
        self,
        model: PoseSpaceModel,
        young: float | np.ndarray,
        poisson: float | np.ndarray,
        *,
        rate: float = 180.0,
        method: str = "newmark",
        damping: Rayleigh | None = None,
        iterations: int | None = 1,
        inertia_scale: float = 1.0,
        gravity: tuple[float, float, float] | np.ndarray = (0.0, -9.81, 0.0),
        sag_free: bool = True,
        solver: str = "auto",
    ) -> None:
        poses, tets = len(model.tet_rig.corrections), len(model.tets)
        self._young = per_pose(young, poses, tets, "Young's modulus")
        self._poisson = per_pose(poisson, poses, tets, "Poisson ratio")
        self.body = MovingBody(
            model.tets,
            model.vertices,
            fixed=model.fixed,
            vertex_mass=model.vertex_mass,
            young=self._young[0],
            poisson=self._poisson[0],
            law=model.law,
            solver=solver,
        )
        self.model = model
        self.carriers = tet_carriers(model)
        self.integrator = MovingIntegrator(
            self.body, 1.0 / rate, method, damping=damping, iterations=iterations, tolerance=1e-9
        )
        self.inertia_scale = inertia_scale
        self.gravity = np.asarray(gravity, dtype=np.float64)
        self.sag_free = sag_free
        self.external = np.zeros_like(self.body.mesh.vertices)
        """(n, 3) newton, added in every step until changed."""
        self.state = State.rest(self.body.size)
        self.frames = np.broadcast_to(np.eye(3), (len(model.vertices), 3, 3))

    def carriers_at(self, p: np.ndarray) -> np.ndarray:
        """(Z,) the carrier values at rig parameters p (P,)."""
        return carrier_values(self.model, p)

    def place(self, z: np.ndarray) -> None:
        """Take the carrier values z as the current pose with zero rates; displacements go with the vertex frames."""
        motion = self._move(z, np.zeros_like(z), np.zeros_like(z))
        turn = (motion.rotations @ np.swapaxes(self.frames, 1, 2))[self.body.free]
        q, v, a = (np.einsum("nij,nj->ni", turn, part.reshape(-1, 3)).ravel() for part in self._parts())
        self.state = State(q, v, a, self.state.time)
        self.frames = motion.rotations

    def start(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> None:
        """Take these carriers as the current moment: u and u̇ stay, ü is what the balance of forces asks for.

        Newmark is of second order only from such a start.
        """
        motion = self._move(z, zdot, zddot)
        self.state = self.integrator.start(self.state, self._load(motion), motion.spin[self.body.free])
        self.frames = motion.rotations

    def step(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> None:
        """One step of 1/rate second that ends at these carrier values, rates per second and per second²."""
        motion = self._move(z, zdot, zddot)
        self.state = self.integrator.step(self.state, self._load(motion), motion.spin[self.body.free])
        self.frames = motion.rotations

    def settle(self, z: np.ndarray, *, load_steps: int = 1) -> None:
        """Static equilibrium at pose z under gravity and external forces, at rest."""
        motion = self._move(z, np.zeros_like(z), np.zeros_like(z))
        q = static_equilibrium(self.body, self._load(motion), load_steps=load_steps)
        self.state = State(q, np.zeros_like(q), np.zeros_like(q), self.state.time)
        self.frames = motion.rotations

    def reset(self) -> None:
        """Undeformed and still, where it stands."""
        self.state = State.rest(self.body.size)

    def point_loads(self, vertices: np.ndarray, forces: np.ndarray) -> None:
        """Forces (k, 3), newton, at tet vertices (k,) from now on, in place of all external forces so far."""
        self.external = point_force(len(self.external), vertices, forces)

    def displacements(self) -> np.ndarray:
        """(n, 3) u in the world, metres."""
        return self.body.expand(self.state.q)

    def positions(self) -> np.ndarray:
        """(n, 3) deformed tet vertices x + u, metres."""
        return self.body.positions + self.displacements()

    def _move(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> TetMotion:
        motion = self.carriers.motion(z, zdot, zddot)
        self.body.place(motion.positions)
        if len(self._young) > 1 or len(self._poisson) > 1:
            share = motion.positive_weights
            self.body.set_material(*(_mixed(field, share) for field in (self._young, self._poisson)))
        return motion

    def _load(self, motion: TetMotion) -> np.ndarray:
        """(3·free,) gravity − inertia_scale · M ẍ + external forces, newton."""
        felt = motion.felt(self.gravity, self.inertia_scale, sag_free=self.sag_free)
        external = require_vectors(self.external, len(felt), "external forces")
        return self.body.restrict(self.body.vertex_mass[:, None] * felt + external)

    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.state.q, self.state.v, self.state.a


def _rates(c: StepConstants, q: np.ndarray, state: State) -> tuple[np.ndarray, np.ndarray]:
    moved = q - state.q
    return (c.a1 * moved - c.a2 * state.v - c.a3 * state.a, c.a4 * moved + c.a5 * state.v + c.a6 * state.a)


def _length(x: np.ndarray) -> float:
    """‖x‖ without BLAS, whose threads take longer to wake than the sum takes."""
    return float(np.sqrt(np.einsum("i,i->", x, x)))


def _turning(spin: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    """ω × u, flat."""
    return np.zeros_like(q) if spin is None else np.cross(spin, q.reshape(-1, 3)).ravel()


def _turned(q: np.ndarray, spin: np.ndarray | None, step: float) -> np.ndarray:
    """u turned by its frames' rotation during a step."""
    if spin is None or not spin.any():
        return q.copy()
    turns = quaternion_matrices(quaternions_from_vectors(step * spin))
    return np.einsum("nij,nj->ni", turns, q.reshape(-1, 3)).ravel()


def _diagonal_places(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Where the diagonal entries stand among the values of a CSR matrix."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.flatnonzero(rows == indices)


def per_pose(field: float | np.ndarray, poses: int, tets: int, what: str) -> np.ndarray:
    """(poses, tets), or (1, tets) where all poses share it."""
    field = np.asarray(field, dtype=np.float64)
    if field.shape not in ((), (tets,), (poses, tets)):
        raise InputError(f"{what} has shape {field.shape}, not ({tets},) or ({poses}, {tets})")
    return np.atleast_2d(np.broadcast_to(field, (tets,)) if field.ndim < 2 else field)


def _mixed(field: np.ndarray, share: np.ndarray) -> np.ndarray:
    return field[0] if len(field) == 1 else share @ field
