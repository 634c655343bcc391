"""Where the time of a pose-space step goes (PSSD Table 2).

What is compiled apart is run alone on the step's own tables; the rest follows by difference, so that the parts add up
to the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from softrig.machine import Timing, timed
from softrig.models.kernels.pose_space_gyro import gyroscopic
from softrig.models.kernels.pose_space_packed import StepTables
from softrig.models.kernels.pose_space_pose import gyroscopic_rates, loads, turning_loads
from softrig.models.kernels.pose_space_step import step as compiled_step
from softrig.models.kernels.pose_space_sums import assemble, cholesky, cholesky_solve, project
from softrig.models.kernels.pose_space_tables import EXTERNAL, FIRST, FORCE, INERTIA, SECOND, X
from softrig.models.stepper import Stepper
from softrig.pipeline.timing import moving_carriers

REPEATS = 300
INNER = 10
"""Times a part runs within one call, so that the call itself does not count."""


@dataclass(frozen=True)
class Breakdown:
    """Seconds of the parts of a frame of one step, the least of many where it is a number."""

    pose: Timing
    """Rig parameters to bone matrices and pose weights."""
    call: Timing
    """Handing the tables to compiled code."""
    fitting: float
    """Rest tets of the cubature, their rotations and materials, and the reduced mass."""
    internal: float
    """Shapes of the cubature tets mixed and turned, elastic force and stiffness."""
    inertial: Timing
    """Of the rig's motion, gyroscopic ones included."""
    integration: Timing
    """The system, its factorisation and solve."""
    surface: Timing
    """Skinning of what is drawn, plus A U q."""
    step: Timing
    """All but `pose` and `surface`, in one call."""

    @property
    def core(self) -> float:
        """Of what PSSD Table 3 calls rt:core; mixing the basis is among the internal forces here."""
        return self.pose.least + self.call.least + self.fitting

    @property
    def dynamics(self) -> float:
        """Of rt:dyn."""
        return self.internal + self.inertial.least + self.integration.least

    @property
    def total(self) -> float:
        """Of a pose, a step and a surface."""
        return self.pose.least + self.step.least + self.surface.least


def breakdown(stepper: Stepper, *, repeats: int = REPEATS) -> Breakdown:
    """Time every part along the model's first clip."""
    model = stepper.model
    moments = moving_carriers(stepper, model)
    stepper.place(moments[0][0])

    def along(call: Callable[..., None]) -> Timing:
        turn = iter(range(10**9))
        return timed(lambda: call(*moments[next(turn) % len(moments)]), repeats=repeats)

    whole = along(stepper.step)
    # The step's own tables; nobody else has a use for them.
    memory, packed = stepper._memory, stepper._packed
    count = len(memory.pose)

    def bare(z: np.ndarray, zd: np.ndarray, zdd: np.ndarray) -> None:
        stepper._checked(zd), stepper._checked(zdd)
        _nothing(stepper._checked(z), zd[:count], zdd[:count], False, packed)

    def prepared(z: np.ndarray, zd: np.ndarray, zdd: np.ndarray) -> None:
        stepper._checked(zd), stepper._checked(zdd)
        compiled_step(stepper._checked(z), zd[:count], zdd[:count], False, packed)

    def part(function: Callable[..., None], *moment: np.ndarray) -> Timing:
        each = timed(lambda: function(INNER, *moment, packed), repeats=repeats)
        return Timing(each.least / INNER, each.median / INNER, each.p99 / INNER, INNER * each.calls)

    call, ready = along(bare), along(prepared)
    moment = [np.ascontiguousarray(value[:count]) for value in moments[len(moments) // 2]]
    loaded = part(_loads, *moment)
    turning = part(_turning)
    inertial = Timing(loaded.least + turning.least, loaded.median + turning.median, loaded.p99 + turning.p99, repeats)
    integration = part(_integration)
    poses = model.clips[0].sample(np.linspace(0.1, 0.4, 4)) if model.clips else model.rig.parameters.rest[None]
    pose, turn = poses[0], iter(range(10**9))
    out = stepper.surface(pose)
    return Breakdown(
        # Another one each time: a rig may remember the last. What is drawn is what was just stepped.
        pose=timed(lambda: stepper.carriers(poses[next(turn) % len(poses)]), repeats=repeats),
        call=call,
        fitting=max(ready.least - call.least - loaded.least, 0.0),
        internal=max(whole.least - ready.least - turning.least - integration.least, 0.0),
        inertial=inertial,
        integration=integration,
        surface=timed(lambda: stepper.surface(pose, out), repeats=repeats // 2),
        step=whole,
    )


@njit(cache=True)
def _nothing(z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, moving: bool, tables: StepTables) -> None:
    pass


@njit(cache=True)
def _loads(times: int, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, tables: StepTables) -> None:
    carriers, inertia, m = tables.carriers, tables.inertia, tables.memory
    force = m.vectors[EXTERNAL]
    for _ in range(times):
        loads(
            carriers.skin,
            carriers.blended,
            carriers.root,
            carriers.inertial,
            zdd,
            m.turns,
            m.w.shape[0],
            m.settings,
            m.switches,
            m.load,
            m.wind,
            m.work,
        )
        gyroscopic_rates(
            carriers.skin,
            carriers.gyro_bones,
            carriers.sample,
            carriers.arms,
            z,
            zd,
            zdd,
            m.turns,
            m.settings,
            m.rates,
            m.work,
        )
        for i in range(force.shape[0]):
            force[i] = 0.0
        turning_loads(zd, m.turns, m.settings[INERTIA], m.turning)
        project(
            inertia.modes,
            inertia.starts,
            inertia.pieces,
            inertia.offsets,
            inertia.entries,
            m.load,
            m.mixture,
            -1.0,
            m.room,
            force,
        )


@njit(cache=True)
def _turning(times: int, tables: StepTables) -> None:
    gyro, m = tables.gyro, tables.memory
    x, v, force = m.vectors[X], m.vectors[FIRST], m.vectors[FORCE]
    for _ in range(times):
        for i in range(force.shape[0]):
            force[i] = 0.0
        gyroscopic(gyro.segments, gyro.starts, gyro.pieces, gyro.terms, m.rates, x, v, m.gyro, force)


@njit(cache=True)
def _integration(times: int, tables: StepTables) -> None:
    sums, m = tables.sums, tables.memory
    r, right = m.state.shape[1], m.vectors[SECOND]
    for _ in range(times):
        for i in range(r):
            right[i] = 1.0
        assemble(sums.segments, m.mass, 4.0 * 180.0**2, m.stiffness, 1.0, m.system)
        cholesky(m.system, sums.first, r)
        cholesky_solve(m.system, sums.first, right)
