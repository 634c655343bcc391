"""A reduced body without anchors: it flies, spins and deforms, all coupled (StVK05 App. D, Fig. 13)."""

from __future__ import annotations

import numpy as np

from softrig.dynamics import Rayleigh, require_step, step_constants
from softrig.errors import InputError, SolverError, require_indices, require_vectors
from softrig.models.kernels import free_flight as kernel
from softrig.models.reduced import ReducedBody
from softrig.numerics.symmetric_tensors import entry_count, pack

CENTRE_FIELDS = 2
"""The first fields of `rigid_products`: uniform, rest position."""


class FreeFlight:
    """Steps a freely flying `ReducedBody` with a fixed time step in seconds.

    State: `centre` (3,) m, `rotation` (3, 3), `momentum` (3,) kg m/s, `angular_momentum` (3,) kg m²/s about the
    centre of mass, and the modal `q`, `v`. Positions are centre + rotation · (X + Uq). Set forces
    with `push`; they stay until `clear_forces`.
    """

    def __init__(
        self,
        model: ReducedBody,
        step: float,
        method: str = "newmark",
        *,
        damping: Rayleigh | None = None,
        gravity: tuple[float, float, float] = (0.0, 0.0, 0.0),
        iterations: int = 8,
        tolerance: float = 1e-10,
    ) -> None:
        if model.rigid_products is None:
            raise InputError("this body is anchored: simulate it with ReducedSimulation")
        if iterations < 1:
            raise InputError(f"at least one iteration a step, got {iterations}")
        self._step_size = require_step(step)
        self._damping = damping or Rayleigh()
        self._iterations = iterations
        self.gravity = np.array(gravity, dtype=np.float64)
        self._constants = np.array(
            [*step_constants(method, self._step_size), self._damping.mass, self._damping.stiffness, tolerance]
        )
        self._take(model)
        self.q, self.v, self._a = np.zeros(model.size), np.zeros(model.size), np.zeros(model.size)
        self.rotation = np.eye(3)
        self.centre = self._rest_centre.copy()
        self.momentum, self.angular_momentum = np.zeros(3), np.zeros(3)
        self.time = 0.0
        self.resets = 0
        """Steps that did not stay finite and were thrown away; the modes stopped where they were."""
        self._pushes: list[tuple[np.ndarray, np.ndarray]] = []

    def _take(self, model: ReducedBody) -> None:
        """Everything that follows from the model and its present materials."""
        if model.rigid_products is None:
            raise InputError("this body is anchored: simulate it with ReducedSimulation")
        self._model = model
        products = np.einsum("g,gabxy->abxy", model.density, model.rigid_products)
        self.mass = float(products[0, 0, 0, 0])
        """Total mass, kilogram."""
        centres = products[0, :, 0, :] / self.mass
        self._rest_centre, self._mode_centres = centres[1], centres[CENTRE_FIELDS:]
        about_centre = products - self.mass * np.einsum("ax,by->abxy", centres, centres)
        self._products = np.ascontiguousarray(about_centre[1:, 1:])
        self._coefficients = model.flat_coefficients.copy()
        # Modes measured from the centre of mass have this mass; elastic energy does not see a translation.
        self._reduced_mass = np.trace(self._products[1:, 1:], axis1=2, axis2=3)
        s = entry_count(2, model.size)
        self._coefficients[s : 2 * s] = pack(self._reduced_mass)
        self._modes = model.basis.reshape(-1, 3, model.size) - self._mode_centres.T
        """(n, 3, r) modes measured from the centre of mass."""

    @property
    def model(self) -> ReducedBody:
        """The body, with its current materials."""
        return self._model

    @property
    def step_size(self) -> float:
        """Seconds."""
        return self._step_size

    def edit_material(
        self,
        group: str,
        *,
        young: float | None = None,
        poisson: float | None = None,
        density: float | None = None,
    ) -> None:
        """Change a group's material in flight (pascal, 1, kg/m³); positions and velocities stay as they are.

        Another density moves the centre of mass, and momentum changes with the mass that carries it.
        """
        spin, positions_before, speeds = self._local_spin(), self._rest_centre, self.momentum / self.mass
        mode_centres = self._mode_centres
        self._take(self._model.with_material(group, young=young, poisson=poisson, density=density))
        shift = self._rest_centre - positions_before + self.q @ (self._mode_centres - mode_centres)
        drift = np.cross(spin, shift) + self.v @ (self._mode_centres - mode_centres)
        self.centre += self.rotation @ shift
        self.momentum[:] = self.mass * (speeds + self.rotation @ drift)
        J, _, h = self._inertia()
        self.angular_momentum[:] = self.rotation @ (J @ spin + self.v @ h)

    def reset(self) -> None:
        """Back to where it began: undeformed, still, unturned, no pushes, time zero."""
        for array in (self.q, self.v, self._a, self.momentum, self.angular_momentum):
            array[:] = 0.0
        self.rotation[:] = np.eye(3)
        self.centre[:] = self._rest_centre
        self.time, self.resets = 0.0, 0
        self._pushes.clear()

    def spin(self, angular_velocity: np.ndarray) -> None:
        """Set the body turning rigidly at `angular_velocity` (3,) rad/s in the world frame."""
        J, _, h = self._inertia()
        local = self.rotation.T @ np.asarray(angular_velocity, dtype=np.float64)
        self.angular_momentum[:] = self.rotation @ (J @ local + self.v @ h)

    def launch(self, velocity: np.ndarray) -> None:
        """Set the velocity (3,) m/s of the centre of mass."""
        self.momentum[:] = self.mass * np.asarray(velocity, dtype=np.float64)

    @property
    def angular_velocity(self) -> np.ndarray:
        """(3,) rad/s, world frame."""
        return self.rotation @ self._local_spin()

    def push(self, vertices: np.ndarray, forces: np.ndarray) -> None:
        """Add forces (k, 3), or one (3,) for all, newton, at k vertices of the volume mesh.

        They keep their direction in the world and follow their vertices until `clear_forces`.
        """
        vertices = require_indices(vertices, len(self._model.vertices), "vertices")
        self._pushes.append((vertices, require_vectors(forces, len(vertices), "forces")))

    def clear_forces(self) -> None:
        """Remove all pushes."""
        self._pushes.clear()

    def _loads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the pushes do now: to the modes (r,), to the centre (3,) newton, about it (3,) newton metre."""
        modal, thrust, torque = np.zeros(self._model.size), np.zeros(3), np.zeros(3)
        for vertices, forces in self._pushes:
            modes = self._modes[vertices]
            local = self._model.vertices[vertices] - self._rest_centre + modes @ self.q
            modal += np.einsum("kxr,kx->r", modes, forces @ self.rotation)
            thrust += forces.sum(axis=0)
            torque += np.cross(local @ self.rotation.T, forces).sum(axis=0)
        return modal, thrust, torque

    def balance(self) -> None:
        """Give the modes the acceleration that the present forces and spin ask for.

        Call it after setting up a motion by hand: without it the first step starts from the last
        acceleration (zero at first), an error of first order in the step.
        """
        force, _, torque = self._loads()
        balanced = kernel.balance(
            self._coefficients, self._products, self._constants, self.q, self.v, self._a,
            self.rotation, self.angular_momentum, force, torque,
        )  # fmt: skip
        if not balanced:
            raise SolverError("the modes have no mass left to accelerate: is the motion finite?")

    def step(self) -> None:
        """One step."""
        self.run(1)

    def run(self, steps: int) -> None:
        """Many steps; one compiled call where nothing pushes."""
        calls, each = (steps, 1) if self._pushes else (1, steps)
        for _ in range(calls):
            force, thrust, torque = self._loads()
            self.resets += kernel.run(
                self._coefficients, self._products, self._constants, self._step_size, self.mass,
                self.q, self.v, self._a, self.rotation, self.centre, self.momentum, self.angular_momentum, force,
                thrust + self.mass * self.gravity, torque, self._iterations, each,
            )  # fmt: skip
        self.time += steps * self._step_size

    def positions(self) -> np.ndarray:
        """(n, 3) vertices of the volume mesh in the world, metres."""
        return self.centre + self._local() @ self.rotation.T

    def velocities(self) -> np.ndarray:
        """(n, 3) velocities of the vertices in the world, m/s."""
        local = np.cross(self._local_spin(), self._local()) + self._modes @ self.v
        return self.momentum / self.mass + local @ self.rotation.T

    def surface_positions(self) -> np.ndarray:
        """(m, 3) drawn vertices in the world, metres."""
        positions = self.positions()
        return positions if self._model.surface is None else self._model.surface.carry(positions)

    def energy(self) -> float:
        """Kinetic plus elastic energy, joule."""
        J, _, h = self._inertia()
        omega = self._local_spin()
        kinetic = (
            0.5 * self.momentum @ self.momentum / self.mass
            + 0.5 * omega @ J @ omega
            + omega @ (self.v @ h)
            + 0.5 * self.v @ self._reduced_mass @ self.v
        )
        return float(kinetic) + self._model.energy(self.q)

    def _local_spin(self) -> np.ndarray:
        """(3,) angular velocity in the body frame, rad/s."""
        omega = np.empty(3)
        kernel.angular_velocity(self._products, self.q, self.v, self.rotation, self.angular_momentum, omega)
        return omega

    def _local(self) -> np.ndarray:
        return self._model.vertices - self._rest_centre + self._modes @ self.q

    def _inertia(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r = self._model.size
        J, J_modes, h = np.empty((3, 3)), np.empty((r, 3, 3)), np.empty((r, 3))
        kernel.inertia_and_coupling(self._products, self.q, J, J_modes, h)
        return J, J_modes, h
