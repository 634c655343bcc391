"""Reduced against full: both driven by the same poses, step by step, and how far they part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np

from softrig.dynamics import Rayleigh, State
from softrig.models.moving import FullSimulation
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.pipeline.build import Built
from softrig.pipeline.cache import StageCache, content_hash
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.reduction import reduce_forces
from softrig.pipeline.unreduced import full_simulation
from softrig.project import Project
from softrig.rig.clip import Clip
from softrig.simulation.damping import Damping

Progress = Callable[[int, int], None]

RATE = 180.0
"""Inner steps a second of both."""
PART = 60
"""Steps of a full simulation that are kept in one piece."""
KEPT = "full-motion"
"""What its pieces are called among the kept stages."""


def reduced_trajectory(
    model: PoseSpaceModel,
    poses: np.ndarray,
    fps: float,
    *,
    rate: float = RATE,
    damping: Rayleigh,
    gyro: bool = True,
    inertia: float = 1.0,
) -> np.ndarray:
    """(steps, n, 3) metres: displacements of the tet vertices at the inner steps, from rest, without gravity.
    `inertia` scales how strongly the flesh feels accelerations of the rig."""
    if not gyro:
        model = replace(model, gyro=np.zeros_like(model.gyro))
    stepper = Stepper(model, rate=rate, damping=damping, gravity=(0.0, 0.0, 0.0), inertia_scale=inertia)
    stepper.place(stepper.carriers(poses[0]))
    shown = []
    for z, speed, acceleration in carrier_steps(stepper.carriers, poses, fps, rate):
        stepper.step(z, speed, acceleration)
        shown.append(stepper.vertex_displacements(None).copy())
    return np.stack(shown)


class Full(Protocol):
    """What a full simulation needs: a `Built`, or a `CoarseBody` of `pipeline/coarse.py`."""

    @property
    def model(self) -> PoseSpaceModel:
        """Mesh, rig, poses, mass and law; shapes do not matter."""

    @property
    def fabric(self) -> Fabric:
        """Elastic constants."""


def full_trajectory(
    built: Full,
    poses: np.ndarray,
    fps: float,
    *,
    rate: float = RATE,
    damping: Rayleigh,
    iterations: int | None = 3,
    inertia: float = 1.0,
    every: int = 1,
    cache: StageCache | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """(steps / every, n, 3) metres: the same of the full body on its moving rest shape (PSSD Eq. 4).

    `cache`: where parts of it are kept, so that one that was stopped goes on; small bodies take no time to speak of.
    """
    full = full_simulation(
        built.model,
        built.fabric,
        rate=rate,
        damping=damping,
        iterations=iterations,
        gravity=(0.0, 0.0, 0.0),
        inertia_scale=inertia,
    )
    full.place(full.carriers_at(poses[0]))
    resumed = full if isinstance(full, FullSimulation) else None
    if resumed is None:
        cache = None
    key = ""
    if cache is not None:
        settings = [fps, rate, damping.mass, damping.stiffness, iterations, inertia, every, PART]
        key = _motion_hash(built, [full.carriers_at(pose) for pose in poses], settings)
    shown, done, total, made = [], 0, int((len(poses) - 1) * rate / fps), False
    # Copies: a part is looked at as a whole, and each moment is written over the last.
    steps = (
        [z.copy(), zdot.copy(), zddot.copy()] for z, zdot, zddot in carrier_steps(full.carriers_at, poses, fps, rate)
    )
    while part := list(islice(steps, PART)):
        name = f"{key}-{done}"
        found = None if cache is None else cache.find(KEPT, name)
        if found is None or resumed is None:
            if progress is not None and done and not made:
                progress(done, 0)  # partly kept from before
            here, made = [], True
            for index, moment in enumerate(part, start=done + 1):
                full.step(*moment)
                if index % every == 0:
                    here.append(full.displacements().copy())
                if progress is not None:
                    progress(index, total)
            shown.append(np.array(here).reshape(-1, *built.model.vertices.shape))
            if cache is not None and resumed is not None:
                now = resumed.state
                state = {"q": now.q, "v": now.v, "a": now.a, "time": np.array(now.time)}
                cache.keep(KEPT, name, state | {"shown": shown[-1]})
        else:
            resumed.state = State(found["q"], found["v"], found["a"], float(found["time"]))
            shown.append(found["shown"])
        done += len(part)
    if progress is not None and not made:
        progress(0, 0)  # kept from before
    return np.concatenate(shown)


def _motion_hash(built: Full, carriers: list[np.ndarray], settings: list[float | None]) -> str:
    """Of all that a full motion follows from; the rig's part in it are `carriers`, its values at each pose."""
    model, held = built.model, built.model.tet_rig
    mesh = [model.vertices, model.tets, model.fixed, model.vertex_mass]
    skin = [] if held.weights is None else [held.weights.data, held.weights.indices, held.weights.indptr]
    boxed = [held.shepard_nodes, held.shepard_weights, held.root_sample]
    rig = [held.kind, held.root_bone, held.corrections, model.interpolation, boxed, skin]
    flesh = [model.law, built.fabric.young, built.fabric.poisson]
    return content_hash("full motion", mesh, rig, flesh, carriers, settings)


def every_tet(built: Built) -> PoseSpaceModel:
    """The model with every tet in its cubature, and its linear part: what a choice of tets costs is left out."""
    model, fabric = built.model, built.fabric
    count = len(model.tets)
    known = model.cubature.stiffness_map
    if known is not None and known.beside_tets:
        known = known.springs_alone()  # all tets miss nothing
    cubature = replace(
        model.cubature,
        stiffness_map=known,
        tets=np.arange(count, dtype=np.int32),
        weights=np.full((len(model.poses), count), model.cubature.beyond),
        young=fabric.young,
        poisson=fabric.poisson,
        stiffness_correction=np.zeros_like(model.cubature.stiffness_correction),
    )
    return replace(model, cubature=cubature)


def unfollowed(built: Built) -> PoseSpaceModel:
    """The model without what follows its modes: V x and nothing else is drawn."""
    return replace(built.model, followers=None)


def exact_forces(built: Built) -> PoseSpaceModel:
    """The same shapes with exact projected forces, the linear part's too: V x can do nothing but V x."""
    model = every_tet(built)
    ones = np.ones_like(model.cubature.weights)
    exact = replace(model.cubature, weights=ones, stiffness_map=None, beyond=1.0)
    return replace(model, cubature=exact, followers=None, yielding=None, carried_mass=None)


def learned_along(built: Built, clip: Clip, project: Project, cache: Path) -> PoseSpaceModel:
    """The model of the same shapes whose maps of stiffness and inertia have learned from `clip`, too: without most of
    what it costs that it moves between poses that the maps know. `cache`: the folder of the build's stages."""
    character = replace(built.character, clips=(*built.character.clips, clip))
    return reduce_forces(
        character, built.flesh, built.posing, built.fabric, built.shapes, project, StageCache(cache), jobs=1
    )


def default_damping(built: Built) -> Rayleigh:
    """The damping a simulation of the model has by default."""
    return Damping(built.fabric.damping_ratio).rayleigh(built.model)
