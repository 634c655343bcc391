"""`Simulation`: a soft character that follows poses given at any frame rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from softrig.dynamics import require_step
from softrig.errors import InputError, NotFiniteError, StepSizeError, require_finite, require_indices
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.rig.clip import Clip
from softrig.rig.protocol import Rig
from softrig.simulation.baking import Bake, bake_clip
from softrig.simulation.colliders import Collider
from softrig.simulation.contact import ContactPoints, ContactState
from softrig.simulation.damping import Damping
from softrig.simulation.jumps import Jumps
from softrig.simulation.pulls import Pull, checked_force, patch
from softrig.simulation.timeline import Timeline, TimelineState

Gravity = Literal["change", "full", "off"]
Teleport = Literal["keep", "reset"]
GRAVITIES = ("change", "full", "off")
TELEPORTS = ("keep", "reset")

NO_TIME = 1e-8
"""Seconds: in a frame this short no time passes; the pose is shown with the flesh as it is."""
SHORTEST_FRAME = 1e-4
"""Seconds: shorter frames are shown and their time is added to the next one; differences over them would be noise."""
LONGEST_FRAME = 0.25
"""Seconds: a longer frame is a stall, not a motion; the flesh lives through this much of it."""
WARMING_FRAMES = 3
"""The first starts, the second moves and the third, which has a speed, may be a jump: no other runs anything new."""
PAUSED_FRAME = 1.0 / 60.0
"""Seconds that a change of pose while no time passes is judged by: larger ones are jumps."""


@dataclass(frozen=True, eq=False)
class SimulationState:
    """Where a simulation is; pulls, wind, colliders and settings are not part of it."""

    time: float
    stepper: Any = field(repr=False)
    timeline: TimelineState = field(repr=False)
    contact: ContactState | None = field(repr=False)
    pose: np.ndarray = field(repr=False)
    started: bool = field(repr=False)
    cut: bool = field(repr=False)
    pending: float = field(repr=False)


class Simulation:
    """Soft flesh on a rig: `step` takes a pose (P,) and gives the vertices (n̄, 3), metres.

    `fps` is the default frame rate; every `step` may say its own duration. Inside, time runs in steps of 1/`rate` s, so
    that all frame rates see the same motion. `gravity`: "change" (only how gravity differs from that of the rest pose,
    as a sculpted shape already sags), "full" or "off", along `gravity_vector`, m/s². `inertia` scales how strongly the
    flesh feels accelerations. `modes` keeps the most important ones only. `teleport`: what a jump, a cut or a stall
    does: "keep" the flesh as it swings or "reset" it. `settled`: whether the first pose starts in its equilibrium.
    """

    def __init__(
        self,
        model: PoseSpaceModel,
        *,
        fps: float = 60.0,
        rate: float = 180.0,
        method: str = "newmark",
        damping: Damping | None = None,
        gravity: Gravity = "change",
        gravity_vector: Sequence[float] | np.ndarray = (0.0, -9.81, 0.0),
        inertia: float = 1.0,
        modes: int | None = None,
        rig: Rig | None = None,
        teleport: Teleport = "keep",
        settled: bool = True,
    ) -> None:
        if gravity not in GRAVITIES:
            raise InputError(f"no gravity called {gravity!r}; there are {', '.join(GRAVITIES)}")
        if teleport not in TELEPORTS:
            raise InputError(f"a teleport can {' or '.join(TELEPORTS)} the flesh, not {teleport!r}")
        self.model = model if modes is None else model.with_modes(modes)
        self.fps = 1.0 / require_step(1.0 / fps if fps > 0.0 else fps)
        self.rate = 1.0 / require_step(1.0 / rate if rate > 0.0 else rate)
        self.teleport: Teleport = teleport
        self.settled = settled
        self._damping = damping or Damping()
        vector = checked_force(np.asarray(gravity_vector))
        self.stepper = Stepper(
            self.model,
            rig=rig,
            rate=self.rate,
            method=method,
            damping=self._damping.rayleigh(self.model),
            inertia_scale=inertia,
            gravity=tuple(vector if gravity != "off" else np.zeros(3)),
            sag_free=gravity == "change",
        )
        self._rig = rig or self.model.rig
        self.parameters = self._rig.parameters
        self._jumps = Jumps(self.model)
        self._timeline = Timeline(len(self.stepper.carriers(self.parameters.rest)), self.rate, lead=method == "newmark")
        self._pulls: list[Pull] = []
        self._colliders: tuple[Collider, ...] = ()
        self._contact: ContactPoints | None = None
        self._pull_loads = (np.zeros(0, np.int32), np.zeros((0, 3)))
        self._pose, self._z = self.parameters.rest, self._timeline.values.copy()
        self._started = self._cut = False
        self._pending = self._time = 0.0

    @property
    def time(self) -> float:
        """Seconds since the first frame."""
        return self._time

    @property
    def counters(self) -> dict[str, int]:
        """Inner steps, and how often one needed help."""
        return dict(self.stepper.counters)

    @property
    def damping(self) -> Damping:
        """How fast swings die away; assign to change it."""
        return self._damping

    @damping.setter
    def damping(self, value: Damping) -> None:
        self._damping = value
        self.stepper.damping = value.rayleigh(self.model)
        if self._contact is not None:
            self._contact.damping = self.stepper.damping

    @property
    def wind(self) -> np.ndarray:
        """(3,) newton per square metre of surface, world axes; assign to change it."""
        return np.array(self.stepper.wind)

    @wind.setter
    def wind(self, value: np.ndarray) -> None:
        self.stepper.wind = checked_force(value)

    @property
    def colliders(self) -> tuple[Collider, ...]:
        """What the flesh cannot enter; assign new ones at any frame."""
        return self._colliders

    @colliders.setter
    def colliders(self, value: Sequence[Collider]) -> None:
        self._colliders = tuple(value)
        if self._colliders and self._contact is None:
            self._contact = ContactPoints(self.model, self.rate, self.stepper.damping)
        if not self._colliders:
            self.stepper.point_loads(*self._pull_loads)

    @property
    def pulls(self) -> tuple[Pull, ...]:
        """The pulls that act now, in the order in which they began."""
        return tuple(self._pulls)

    def pull(self, vertex: int, force: np.ndarray, radius: float | None = None) -> Pull:
        """Pull at a surface vertex with `force` (3,) newton, spread over `radius` metres (None: a hand's width)."""
        return self.pull_tets(*patch(self.model, vertex, radius), force)

    def pull_tets(self, vertices: np.ndarray, shares: np.ndarray, force: np.ndarray) -> Pull:
        """Pull at tet vertices (k,) with their `shares` (k,) of `force` (3,) newton."""
        chosen = require_indices(vertices, len(self.model.vertices), "pulled tet vertices").astype(np.int32)
        weights = np.array(shares, dtype=np.float64)
        if weights.shape != chosen.shape:
            raise InputError(f"{len(chosen)} pulled tet vertices need as many shares, not {weights.shape}")
        require_finite(weights, "shares of a pull")
        pull = Pull(chosen, weights, np.asarray(force), self._pull_changed)
        self._pull_changed(pull, True)
        return pull

    def release(self) -> None:
        """Let go of all pulls."""
        for pull in tuple(self._pulls):
            pull.release()

    def _pull_changed(self, pull: Pull, kept: bool) -> None:
        if kept and pull not in self._pulls:
            self._pulls.append(pull)
        elif not kept and pull in self._pulls:
            self._pulls.remove(pull)
        vertices = [np.zeros(0, np.int32), *(each.vertices for each in self._pulls)]
        forces = [np.zeros((0, 3)), *(each.forces() for each in self._pulls)]
        self._pull_loads = np.concatenate(vertices), np.concatenate(forces)
        self.stepper.point_loads(*self._pull_loads)

    @property
    def next_frame(self) -> Literal["first", "cut", "on"]:
        """What the next frame will be: the first of all, one after a cut, or one that goes on."""
        return "first" if not self._started else "cut" if self._cut else "on"

    def cut(self) -> None:
        """The next frame is a cut: whatever the pose does there, the flesh is not kicked."""
        self._cut = True

    def reset(self) -> None:
        """Back to the beginning: the next frame is the first. Pulls, wind and colliders stay."""
        self._started = self._cut = False
        self._pending = self._time = 0.0

    def step(self, pose: np.ndarray, dt: float | None = None, *, out: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) float32 vertices, metres, at `pose` (P,), `dt` seconds after the last frame (None: 1/fps)."""
        self.move(pose, dt)
        return self.show(self._pose, self.shown_coordinates(), out=out)

    def run(self, poses: np.ndarray, dt: float | None = None) -> np.ndarray:
        """(f, n̄, 3) float32 vertices, metres, at `poses` (f, P): as many steps."""
        poses = np.asarray(poses, dtype=np.float64)
        if poses.ndim != 2:
            raise InputError(f"poses have the shape (frames, {len(self.parameters)}), not {poses.shape}")
        vertices = np.empty((len(poses), len(self.model.embedding_nodes), 3), np.float32)
        for pose, target in zip(poses, vertices, strict=True):
            target[:] = self.step(pose, dt)
        return vertices

    def bake(
        self,
        clip: Clip,
        fps: float | None = None,
        *,
        loop: bool = False,
        settle: bool = True,
        plain: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Bake:
        """All frames of a clip from a fresh start, exactly as stepping gives them; the simulation's own state is kept.

        `loop`: the clip is run through whole cycles until it closes. `settle`: start in equilibrium. `plain`: also give
        the vertices of plain skinning.
        """
        before, settled = self.state(), self.settled
        self.settled = settle
        try:
            return bake_clip(self, clip, fps or self.fps, loop=loop, plain=plain, progress=progress)
        finally:
            self.settled = settled
            self.restore(before)

    def state(self) -> SimulationState:
        """A copy of where the simulation is."""
        return SimulationState(
            time=self._time,
            stepper=self.stepper.snapshot(),
            timeline=self._timeline.state(),
            contact=None if self._contact is None else self._contact.state(),
            pose=self._pose.copy(),
            started=self._started,
            cut=self._cut,
            pending=self._pending,
        )

    def restore(self, state: SimulationState) -> None:
        """Go on from `state`, to the bit."""
        self.stepper.restore(state.stepper)
        self._timeline.restore(state.timeline)
        if state.contact is not None:
            self._contact = self._contact or ContactPoints(self.model, self.rate, self.stepper.damping)
            self._contact.restore(state.contact)
        else:
            self._contact = ContactPoints(self.model, self.rate, self.stepper.damping) if self._colliders else None
        self._pose, self._z = state.pose.copy(), self.stepper.carriers(state.pose)
        self._time, self._started, self._cut = state.time, state.started, state.cut
        self._pending = state.pending

    def warm_up(self) -> None:
        """Compile all that a frame runs, so that no frame waits for it: about a minute the first time on a machine,
        less than a second in each process from then on. The simulation stays where it is, to the bit. Set colliders
        first."""
        before = self.state()
        self.reset()
        try:
            for _ in range(WARMING_FRAMES):
                # An inner step each, neither a stall nor too short to be one.
                self.step(self.parameters.rest, min(max(1.0 / self.rate, SHORTEST_FRAME), LONGEST_FRAME))
        finally:
            self.restore(before)

    def move(self, pose: np.ndarray, dt: float | None = None) -> None:
        """What `step` does, without making vertices."""
        pose = self._checked_pose(pose)
        seconds = 1.0 / self.fps if dt is None else float(dt)
        if not (np.isfinite(seconds) and seconds >= 0.0):
            raise StepSizeError(f"a frame lasts zero or more seconds, not {dt}")
        z = self.stepper.carriers(pose)
        if not np.isfinite(z).all():
            raise NotFiniteError("the rig gives no finite positions at this pose")
        self._pose, self._z = pose, z
        if not self._started:
            self._start(z)
        elif seconds < NO_TIME:
            self._change_in_no_time(z)
        else:
            self._pending += seconds
            if self._pending >= SHORTEST_FRAME:
                seconds, self._pending = self._pending, 0.0
                self._time += seconds
                self._frame(z, seconds)

    def shown_coordinates(self) -> np.ndarray:
        """(r,) modal coordinates at the last frame: q + sq̇ + ½s²q̈, s seconds after the last inner step."""
        s = self._timeline.seconds_since_step
        stepper = self.stepper
        return stepper.q + s * (stepper.v + 0.5 * s * stepper.a) if s > 0.0 else stepper.q.copy()

    def show(self, pose: np.ndarray, q: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) float32 vertices, metres, at a pose (P,) with modal coordinates q (r,); nothing moves."""
        kept = self.stepper.q.copy()
        self.stepper.q[:] = q
        # Displacements turn with the pose that was placed last, and the last inner step may lie before the frame.
        self.stepper.place(self._z if pose is self._pose else self.stepper.carriers(pose))
        try:
            return self.stepper.surface(pose, out)
        finally:
            self.stepper.q[:] = kept

    def _checked_pose(self, pose: np.ndarray) -> np.ndarray:
        pose = np.array(pose, dtype=np.float64)
        if pose.shape != (len(self.parameters),):
            raise InputError(f"a pose of this rig has {len(self.parameters)} parameters, not the shape {pose.shape}")
        if not np.isfinite(pose).all():
            bad = np.flatnonzero(~np.isfinite(pose))
            raise NotFiniteError(f"pose: '{self.parameters.names[bad[0]]}' is NaN or infinite", bad)
        return pose

    def _start(self, z: np.ndarray) -> None:
        stepper = self.stepper
        stepper.restart(z)
        if self.settled:
            stepper.point_loads(*self._pull_loads)
            stepper.settle(z)
        self._timeline.restart(z)
        if self._contact is not None:
            self._contact.place(self._contact_rest(self._contact))
        self._started, self._cut = True, False

    def _change_in_no_time(self, z: np.ndarray) -> None:
        still = np.zeros_like(z)
        if self._cut or self._jumps.found(self._timeline.values, z, still, PAUSED_FRAME):
            self._jump(z, 0.0)
        else:
            self._timeline.shift(z)

    def _frame(self, z: np.ndarray, seconds: float) -> None:
        slope = self._timeline.slope if self._timeline.is_moving else None
        if self._cut or seconds > LONGEST_FRAME or self._jumps.found(self._timeline.values, z, slope, seconds):
            self._jump(z, seconds)
            return
        self._begin_contact()
        start = self._timeline.since
        for index, state in enumerate(self._timeline.frame(z, seconds)):
            self._inner_step(*state, share=(index - start) / (seconds * self.rate))

    def _jump(self, z: np.ndarray, seconds: float) -> None:
        """Be at z without having moved there: the flesh swings on meanwhile, or starts anew."""
        self._cut = False
        if self.teleport == "reset":
            self._start(z)
            return
        steps = self._timeline.grid_steps(min(seconds, LONGEST_FRAME))
        self._timeline.restart(z, since=self._timeline.since)
        if self._contact is not None:
            self._contact.place(self._contact_rest(self._contact))
        self._begin_contact()
        still = np.zeros_like(z)
        for _ in range(steps):
            self._inner_step(z, still, still, share=1.0)

    def _inner_step(self, values: np.ndarray, rates: np.ndarray, accelerations: np.ndarray, *, share: float) -> None:
        if self._contact is not None and self._colliders:
            vertices, forces = self._contact.loads(self._colliders, self.stepper.vertex_displacements, share)
            pulled, pulls = self._pull_loads
            self.stepper.point_loads(np.concatenate([pulled, vertices]), np.concatenate([pulls, forces]))
        self.stepper.step(values, rates, accelerations)

    def _begin_contact(self) -> None:
        if self._contact is not None and self._colliders:
            # What was shown in between may have placed any pose.
            self.stepper.place(self._timeline.values)
            rest = self._contact_rest(self._contact)
            self._contact.frame(self._colliders, rest, self.stepper.vertex_displacements)

    def _contact_rest(self, contact: ContactPoints) -> np.ndarray:
        """(s, 3) where the surface without its flesh's motion has the contact points at the present pose."""
        pose = self.model.corrected(self._pose) if self.model.corrective else self._pose
        return self._rig.positions(pose, contact.vertices)
