"""`MultiDomainSimulation`: a character of several domains that follows poses given at any frame rate (MD11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from softrig.dynamics import Rayleigh, require_step
from softrig.errors import InputError, NotFiniteError, StepSizeError, require_output
from softrig.models.kinds import require_model
from softrig.models.multi_domain import MultiDomainModel
from softrig.models.multi_domain_stepper import ITERATIONS, MultiDomainState, MultiDomainStepper
from softrig.models.multi_domain_surface import DomainSurface
from softrig.simulation.jumps import (
    LARGEST_JUMP,
    LARGEST_KICK,
    LARGEST_TURN,
    SLOWEST_TURN_CHECK,
    largest_miss,
    least_cosine,
)
from softrig.simulation.timeline import Timeline, TimelineState

LONGEST_FRAME = 0.25
"""Seconds: a longer frame is a stall, not a motion."""
SHORTEST_FRAME = 1e-4
"""Seconds: in a shorter one no time passes; the pose is shown with the flesh as it is."""


@dataclass(frozen=True, eq=False)
class MultiDomainMoment:
    """Where a simulation is."""

    time: float
    stepper: MultiDomainState = field(repr=False)
    timeline: TimelineState = field(repr=False)
    pose: np.ndarray = field(repr=False)
    started: bool = field(repr=False)


class MultiDomainSimulation:
    """Flesh in domains on a rig: `step` takes a pose (P,) and gives the drawn vertices (n̄, 3), metres.

    `fps` is the default frame rate; every `step` may say its own duration. Inside, time runs in steps of 1/`rate` s, so
    that all frame rates see the same motion. `quasistatic`: no motion of its own, each frame is the equilibrium at its
    pose, as near as `iterations` of Newton from the last frame come. `gravity`: "change" (how it differs from that of
    the rest pose), "full" or "off". `damping` takes the place of the model's. The first pose starts in its equilibrium,
    and so does one after a jump.
    """

    def __init__(
        self,
        model: MultiDomainModel,
        *,
        fps: float = 60.0,
        rate: float = 180.0,
        quasistatic: bool = False,
        damping: Rayleigh | None = None,
        gravity: Literal["change", "full", "off"] = "change",
        inertia: float = 1.0,
        iterations: int = ITERATIONS,
    ) -> None:
        require_model(model, MultiDomainModel, "MultiDomainSimulation")
        if gravity not in ("change", "full", "off"):
            raise InputError(f"no gravity called {gravity!r}; there are change, full and off")
        self.model = model
        self.fps = 1.0 / require_step(1.0 / fps if fps > 0.0 else fps)
        self.rate = 1.0 / require_step(1.0 / rate if rate > 0.0 else rate)
        self.stepper = MultiDomainStepper(
            model,
            rate=self.rate,
            damping=damping,
            gravity=(0.0, -9.81 if gravity != "off" else 0.0, 0.0),
            sag_free=gravity == "change",
            inertia_scale=inertia,
            iterations=iterations,
            quasistatic=quasistatic,
        )
        self.parameters = model.rig.parameters
        self._surface = DomainSurface(model)
        self._shape = (len(model.domains), 3, 4)
        self._timeline = Timeline(12 * len(model.domains), self.rate, lead=True)
        self._centres = np.stack([domain.centre for domain in model.domains])
        self._all = np.arange(len(model.domains))
        self._pose = self.parameters.rest
        self._timeline.restart(model.bone_matrices(self._pose).ravel())  # what is drawn before the first frame
        self._started = False
        self._time = 0.0

    @property
    def time(self) -> float:
        """Seconds since the first frame."""
        return self._time

    @property
    def counters(self) -> dict[str, int]:
        """Inner steps, Newton iterations, and how often a step needed help."""
        return dict(self.stepper.counters)

    def reset(self) -> None:
        """Back to the beginning: the next frame is the first."""
        self._started, self._time = False, 0.0

    def step(self, pose: np.ndarray, dt: float | None = None, *, out: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) float32 vertices, metres, at `pose` (P,), `dt` seconds after the last frame (None: 1/fps)."""
        if out is not None:
            require_output(out, (len(self.model.embedding_nodes), 3), np.float32)
        self.move(pose, dt)
        return self.surface(out)

    def run(self, poses: np.ndarray, dt: float | None = None) -> np.ndarray:
        """(f, n̄, 3) float32 vertices, metres, at `poses` (f, P): as many steps."""
        return np.stack([self.step(pose, dt) for pose in np.atleast_2d(poses)])

    def move(self, pose: np.ndarray, dt: float | None = None) -> None:
        """What `step` does, without making vertices."""
        pose = self._checked(pose)
        seconds = 1.0 / self.fps if dt is None else float(dt)
        if not (np.isfinite(seconds) and seconds >= 0.0):
            raise StepSizeError(f"a frame lasts zero or more seconds, not {dt}")
        z = self.model.bone_matrices(pose).ravel()
        if not np.isfinite(z).all():
            raise NotFiniteError("the rig gives no finite bones at this pose")
        self._pose = pose
        if not self._started or seconds > LONGEST_FRAME or self._jumped(z, seconds):
            self._begin(z)
        elif seconds < SHORTEST_FRAME:
            self._timeline.shift(z)
        elif self.stepper.quasistatic:
            self._timeline.restart(z)
            self.stepper.step(z.reshape(self._shape), *np.zeros((2, *self._shape)))
        else:
            for now in self._timeline.frame(z, seconds):
                self.stepper.step(*(part.reshape(self._shape) for part in now))
        self._time += seconds if self._started else 0.0
        self._started = True

    def surface(self, out: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) float32 vertices at the last frame, metres. What is left of an inner step is bridged by the flesh."""
        stepper, s = self.stepper, self._timeline.seconds_since_step
        m = stepper.memory
        q = m.q + s * (m.v + 0.5 * s * m.a)
        vertices = np.empty((len(self.model.embedding_nodes), 3), np.float32) if out is None else out
        require_output(vertices, (len(self.model.embedding_nodes), 3), np.float32)
        kept = stepper.snapshot()
        stepper.place(self._timeline.values.reshape(self._shape))
        self._surface.move(q, m.rotations, m.places[0], vertices)
        stepper.restore(kept)
        alone = self._surface.alone
        if len(alone):
            vertices[alone] = self.model.rig.positions(self._pose, alone)
        return vertices

    def state(self) -> MultiDomainMoment:
        """A copy of where the simulation is."""
        return MultiDomainMoment(
            self._time, self.stepper.snapshot(), self._timeline.state(), self._pose.copy(), self._started
        )

    def restore(self, state: MultiDomainMoment) -> None:
        """Go on from `state`, to the bit."""
        self.stepper.restore(state.stepper)
        self._timeline.restore(state.timeline)
        self._time, self._pose, self._started = state.time, state.pose.copy(), state.started

    def _begin(self, z: np.ndarray) -> None:
        """Be at z in equilibrium, found from where the flesh is in its frames: nothing is kicked."""
        if not self._started:
            self.stepper.restart(z.reshape(self._shape))
        self.stepper.settle(z.reshape(self._shape))
        self._timeline.restart(z)

    def _jumped(self, z: np.ndarray, seconds: float) -> bool:
        """Whether the bones got here as no motion would, as `simulation.jumps` tells."""
        start, seconds = self._timeline.values, max(seconds, 1.0 / 60.0)
        if self._timeline.is_moving:
            bound = self.model.size * min(LARGEST_JUMP, LARGEST_KICK * seconds)
            if largest_miss(self._all, self._centres, start, z, self._timeline.slope, seconds) > bound:
                return True
        turned = least_cosine(self._all, start, z) < np.cos(LARGEST_TURN)
        return bool(turned) and seconds <= SLOWEST_TURN_CHECK

    def _checked(self, pose: np.ndarray) -> np.ndarray:
        pose = np.array(pose, dtype=np.float64)
        if pose.shape != (len(self.parameters),):
            raise InputError(f"a pose of this rig has {len(self.parameters)} parameters, not the shape {pose.shape}")
        if not np.isfinite(pose).all():
            bad = np.flatnonzero(~np.isfinite(pose))
            raise NotFiniteError(f"pose: '{self.parameters.names[bad[0]]}' is NaN or infinite", bad)
        return pose
