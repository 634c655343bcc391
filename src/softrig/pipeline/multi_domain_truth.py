"""A multi-domain model beside the full body that it stands for: at rest in poses, and along a clip (MD11 §6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softrig.dynamics import Rayleigh, State
from softrig.models.kernels.multi_domain_frames import rigid_frames
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.multi_domain_stepper import MultiDomainStepper, default_damping
from softrig.models.posed import PosedBody, PosedIntegrator
from softrig.pipeline.multi_domain_samples import Carrier
from softrig.rig.clip import Clip
from softrig.simulation.timeline import Timeline


@dataclass(frozen=True, eq=False)
class PosedErrors:
    """How far reduced equilibria are from full ones."""

    error: float
    """Percent: mass-weighted RMS distance over the RMS displacement of the full body from its rigid domains."""
    gap: float
    """Percent of the size: RMS distance of the two copies on the seams, weighted by area."""
    worst_gap: float
    """Percent of the size."""
    lost: int
    """Poses at which the reduced Newton found no equilibrium."""


def posed_errors(
    model: MultiDomainModel, poses: np.ndarray, positions: np.ndarray, *, spring: float | None = None
) -> PosedErrors:
    """Reduced equilibria at `poses` (k, P) against `positions` (k, n, 3) of the full body, metres."""
    stepper = MultiDomainStepper(model, spring=spring, quasistatic=True)
    areas = np.concatenate([seam.areas for seam in model.seams]) if model.seams else np.zeros(0)
    missed = whole = gaps = worst = 0.0
    lost = 0
    for p, full in zip(poses, positions, strict=True):
        stepper.restart(model.bone_matrices(p))
        lost += not stepper.settle(model.bone_matrices(p))
        one, other = local_errors(model, stepper, full)
        missed, whole = missed + one, whole + other
        if len(areas):
            apart = stepper.gaps()
            gaps += float(areas @ apart**2 / areas.sum())
            worst = max(worst, float(apart.max()))
    scale = 100.0 / model.size
    return PosedErrors(100.0 * np.sqrt(missed / whole), scale * np.sqrt(gaps / len(poses)), scale * worst, lost)


def local_errors(model: MultiDomainModel, stepper: MultiDomainStepper, full: np.ndarray) -> tuple[float, float]:
    """kg m²: squared distances of the drawn tet vertices from `full` (n, 3), and of `full` from the rigid domains."""
    R, t = stepper.memory.rotations, stepper.memory.places[0]
    reduced = stepper.positions()
    missed = float(model.vertex_mass @ np.sum((reduced - full) ** 2, axis=1))
    whole = 0.0
    for domain, rotation, place in zip(model.domains, R, t, strict=True):
        rest = (model.vertices[domain.vertices] - domain.centre) @ rotation.T + place
        whole += float(domain.mass @ np.sum((full[domain.vertices] - rest) ** 2, axis=1))
    return missed, whole


class FullCharacter:
    """The full body driven by the frames of a multi-domain model, at its rate, with its damping and gravity."""

    def __init__(
        self,
        model: MultiDomainModel,
        body: PosedBody,
        carrier: Carrier,
        *,
        rate: float = 180.0,
        damping: Rayleigh | None = None,
        gravity: tuple[float, float, float] = (0.0, -9.81, 0.0),
        sag_free: bool = True,
    ) -> None:
        self.model, self.body, self.carrier = model, body, carrier
        self.gravity, self.sag_free = np.array(gravity), sag_free
        self.integrator = PosedIntegrator(body, 1.0 / rate, damping=damping or default_damping(model))
        self.state = State.rest(body.size)
        count = len(model.domains)
        self._rotations, self._spins, self._accelerations = (np.zeros((count, 3, 3)) for _ in range(3))
        self._places = np.zeros((3, count, 3))

    def start(self, positions: np.ndarray) -> None:
        """At `positions` (n, 3), metres, and still."""
        self.state = State.rest(self.body.size)
        q = self.body.restrict(positions - self.body.mesh.vertices)
        self.state = State(q, np.zeros_like(q), np.zeros_like(q))

    def step(self, matrices: np.ndarray, rates: np.ndarray, accelerations: np.ndarray) -> None:
        """One step that ends at bone matrices (D, 3, 4), their rates per second and per second²."""
        stacked = np.stack([matrices, rates, accelerations])
        R, t = self._rotations, self._places
        rigid_frames(stacked, self.carrier.centres, R, self._spins, self._accelerations, t)
        carried = self._carried()
        load = self.body.restrict(self.carrier.gravity(R, self.gravity, sag_free=self.sag_free))
        held = self.carrier.held(R, t[0])
        own, domain = self.carrier.holders >= 0, self.carrier.holders[self.carrier.holders >= 0]
        velocities = np.zeros_like(held)
        local = self.carrier.vertices[own] - self.carrier.centres[domain]
        velocities[own] = np.einsum("nij,njk,nk->ni", R[domain], self._spins[domain], local) + t[1][domain]
        self.state = self.integrator.step(self.state, held, velocities, carried, load)

    def positions(self) -> np.ndarray:
        """(n, 3) tet vertices, metres."""
        return self.body.mesh.vertices + self.body.expand(self.state.q)

    def _carried(self) -> np.ndarray:
        """(n, 3) m/s: velocities of the frames where each vertex is now, by its shares in the domains."""
        R, spins, t = self._rotations, self._spins, self._places
        now = self.positions()
        total = np.zeros_like(now)
        for index in range(len(R)):
            turning = R[index] @ spins[index] @ R[index].T
            velocity = (now - t[0, index]) @ turning.T + t[1, index]
            total += self.carrier.shares[:, index, None] * velocity
        return total / self.carrier.shares.sum(axis=1, keepdims=True)


def clip_frames_of(
    model: MultiDomainModel, clip: Clip, fps: float = 60.0, rate: float = 180.0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Bone matrices (D, 3, 4) and their two rates at all inner steps of a clip, as a simulation interpolates them."""
    shape = (len(model.domains), 3, 4)
    _, poses = clip.resample(fps)
    timeline = Timeline(12 * len(model.domains), rate, lead=True)
    timeline.restart(model.bone_matrices(poses[0]).ravel())
    for p in poses[1:]:
        for z in timeline.frame(model.bone_matrices(p).ravel(), 1.0 / fps):
            place, speed, acceleration = (part.reshape(shape).copy() for part in z)  # the timeline's own change
            yield place, speed, acceleration
