"""The unreduced body on bones that move: the truth beside multi-domain models (MD11).

The rest shape is the neutral one and stays. Vertices on bones are prescribed in the world, all others are free:
    M q̈ + α M (q̇ − v_f) + β B(u) u̇ + f_int(u) = f,        u = x − X,
with v_f the velocity of the frames that carry the flesh and B the viscosity of `fem.laws`, which resists the rates of
strain alone, so that a body which only travels and turns is not damped.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from softrig.dynamics import (
    MOST_ITERATIONS,
    Rayleigh,
    State,
    require_step,
    static_equilibrium,
    step_constants,
)
from softrig.errors import SolverError, require_finite, require_vectors
from softrig.fem import assembly
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody

LOAD_STEPS = 4
"""A pose from which the equilibrium is not found is approached in so many."""


class PosedBody(FullBody):
    """A full body whose fixed vertices are where they are put.

    Arrays of unknowns are the displacements from the neutral shape of the free vertices, metres.
    """

    def __init__(
        self,
        mesh: VolumeMesh,
        material: Material,
        *,
        law: str = "stable-neo-hookean",
        fixed: np.ndarray,
        solver: str = "auto",
    ) -> None:
        super().__init__(mesh, material, law=law, fixed=fixed, mass="lumped", solver=solver)
        self.held = np.zeros((int(self.fixed.sum()), 3))
        _ = self.rest_stiffness  # while nothing is displaced

    def hold(self, positions: np.ndarray) -> None:
        """Put the fixed vertices where `positions` (n, 3), metres, has them; other rows do not matter."""
        rows = require_vectors(np.asarray(positions, np.float64), len(self.fixed), "positions")[self.fixed]
        require_finite(rows, "positions of fixed vertices")
        self.held = rows - self.mesh.vertices[self.fixed]

    def expand(self, q: np.ndarray) -> np.ndarray:
        """(n, 3) displacements of all vertices, where a column of fields (3·free, m) has none at the fixed ones."""
        full = super().expand(q)
        if q.ndim == 1:
            full[self.fixed] = self.held
        return full

    def viscosity(self, q: np.ndarray) -> csr_array:
        """B(q) between the free vertices, newton per metre: what damps, per second of β."""
        points, pattern = self.mesh.stiffness_points, self.pattern
        data = np.empty(len(pattern.indices))
        parts = (points.nodes, points.gradients, points.volumes, self.lam, self.mu, self.expand(q))
        assembly.viscosity(*parts, pattern.free, pattern.slots, pattern.indptr, data)
        return pattern.matrix(data)

    def viscous_force(self, q: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """(3·free,) B u̇, newton per second of β, of velocities (n, 3) of all vertices, m/s."""
        points = self.mesh.stiffness_points
        gradients, corners = points.gradients[:, 0], points.nodes
        F = np.eye(3) + np.einsum("eai,eaK->eiK", self.expand(q)[corners], gradients)
        rate = np.einsum("eai,eaK->eiK", velocities[corners], gradients)
        cofactor = np.stack([np.cross(F[:, (i + 1) % 3], F[:, (i + 2) % 3]) for i in range(3)], axis=1)
        strain = np.swapaxes(F, 1, 2) @ rate
        stress = self.lam[:, None, None] * np.einsum("eij,eij->e", cofactor, rate)[:, None, None] * cofactor
        stress += self.mu[:, None, None] * F @ (strain + np.swapaxes(strain, 1, 2))
        shares = points.volumes[:, 0, None, None] * np.einsum("eiK,eaK->eai", stress, gradients)
        force = np.zeros((len(self.fixed), 3))
        np.add.at(force, corners, shares)
        return self.restrict(force)


def posed_equilibrium(
    body: PosedBody,
    held: np.ndarray,
    guess: np.ndarray,
    load: np.ndarray,
    *,
    tolerance: float = 1e-6,
    iterations: int = 60,
) -> np.ndarray:
    """(3·free,) the shape of rest under `load` (3·free,), newton, with the fixed vertices at `held` (n, 3).

    Newton starts from positions `guess` (n, 3), metres; where that fails, the pose is approached from the rest shape.
    """
    start = body.restrict(guess - body.mesh.vertices)
    try:
        body.hold(held)
        return static_equilibrium(body, load, start=start, tolerance=tolerance, iterations=iterations)
    except SolverError:
        q = np.zeros_like(start)
        for part in np.arange(1, LOAD_STEPS + 1) / LOAD_STEPS:
            body.hold(body.mesh.vertices + part * (held - body.mesh.vertices))
            q = static_equilibrium(body, part * load, start=q, tolerance=tolerance, iterations=4 * iterations)
        return q


class PosedIntegrator:
    """Implicit Newmark for a `PosedBody`, Newton to the end, halved where it overshoots."""

    def __init__(self, body: PosedBody, step: float, *, damping: Rayleigh, tolerance: float = 1e-6) -> None:
        self.body = body
        self.step_size = require_step(step)
        self.damping = damping
        self.tolerance = tolerance

    def step(
        self, state: State, held: np.ndarray, velocities: np.ndarray, carried: np.ndarray, load: np.ndarray
    ) -> State:
        """The state one step later, at whose end fixed vertices are at `held` (n, 3) with `velocities` (n, 3), m/s.

        `carried` (n, 3): v_f of all vertices, m/s; `load` (3·free,) newton.
        """
        body, c = self.body, step_constants("newmark", self.step_size)
        alpha, beta = self.damping.mass, self.damping.stiffness
        body.hold(held)
        frame = body.restrict(carried)
        q = previous = state.q + self.step_size * (state.v + 0.5 * self.step_size * state.a)
        last = np.inf
        for _ in range(2 * MOST_ITERATIONS):
            moved = q - state.q
            a = c.a1 * moved - c.a2 * state.v - c.a3 * state.a
            v = c.a4 * moved + c.a5 * state.v + c.a6 * state.a
            everywhere = body.expand(v)
            everywhere[body.fixed] = velocities[body.fixed]
            internal, stiffness = body.force_and_stiffness(q)
            inertia = body.mass_times(a + alpha * (v - frame))
            residual = inertia + internal + beta * body.viscous_force(q, everywhere) - load
            norm = float(np.linalg.norm(residual))
            scale = float(np.linalg.norm(inertia) + np.linalg.norm(internal) + np.linalg.norm(load))
            if not norm <= 2.0 * last:
                q = 0.5 * (q + previous)
                continue
            if norm <= self.tolerance * scale + body.force_rounding(q):
                return State(q, v, a, state.time + self.step_size)
            viscosity = body.viscosity(q)
            previous, last = q, norm
            q = q - self._solve(c.a1 + c.a4 * alpha, stiffness, c.a4 * beta, viscosity, q, residual)
        raise SolverError(f"the step at {state.time:.6g} s did not converge: try a smaller step")

    def _solve(
        self, mass: float, stiffness: csr_array, viscous: float, viscosity: csr_array, q: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        body = self.body

        def system(elastic: csr_array) -> csr_array:
            return body.system(mass, body.pattern.matrix(elastic.data + viscous * viscosity.data), 1.0)

        try:
            return body.solve(system(stiffness), right, definite=True)
        except SolverError:
            return body.solve(system(body.force_and_stiffness(q, projected=True)[1]), right)
