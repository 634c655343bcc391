"""A baseline without reduction: the full body on a mesh so coarse that a step costs what a reduced one does.

PSSD Fig. 15 sets coarse meshes beside the reduced one. Their tets are others, so motions are compared on the drawn
surface, which all of them carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.errors import InputError, SolverError
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.small import SmallSimulation
from softrig.models.stepper import Stepper
from softrig.pipeline.build import Built
from softrig.pipeline.cache import StageCache
from softrig.pipeline.compare import RATE, default_damping
from softrig.pipeline.fabric import Fabric, make_fabric
from softrig.pipeline.flesh import make_flesh, prepared_character
from softrig.pipeline.posing import pose_character
from softrig.pipeline.rigging import bones_of
from softrig.pipeline.timing import carriers_along, least_step, moving_carriers
from softrig.pipeline.unreduced import full_simulation, unreduced_model
from softrig.project import Project
from softrig.rig.character import Character

SMALLEST = (100, 150, 220, 330, 500, 750, 1100)
"""Tets asked for until there is a mesh that can move: so few may all hang on the bones, or turn inside out."""
TRIES = 5
"""Meshes tried between the smallest one and the fine one, each in the middle by ratio."""
ITERATIONS = 1
"""Newton iterations a step, as the reduced step takes as a rule."""
TIMED_FULL, TIMED_REDUCED = 16, 200
"""Steps of which the quickest is taken for the cost: of a large body, and of one as quick as a reduced model."""


@dataclass(frozen=True, eq=False)
class CoarseBody:
    """A character filled with tets of its own, nothing reduced: as much of a `Built` as a full simulation needs."""

    model: PoseSpaceModel
    fabric: Fabric


@dataclass(frozen=True, eq=False)
class EqualCost:
    """The finest mesh whose full step costs no more than a reduced one; or the coarsest, if that costs more already."""

    body: CoarseBody
    seconds: float
    """Of its step."""
    budget: float
    """Seconds: the reduced step."""
    tried: tuple[tuple[int, float], ...]
    """Tets and seconds a step of all meshes that were timed."""

    @property
    def is_met(self) -> bool:
        """Whether the step costs no more than the reduced one; else this is the coarsest mesh there is."""
        return self.seconds <= self.budget


def coarse_body(
    character: Character, project: Project, tets: int, *, cache: Path | None = None, folder: Path | None = None
) -> CoarseBody:
    """`character` filled with about `tets` tets, by the project's other decisions; maps of single tets do not fit it.

    `cache`: a folder for finished stages. `folder`: where the project's sculpts and maps lie.
    """
    project, stages = project.changed(mesh={"tets": tets}), StageCache(cache)
    character = prepared_character(character, project)
    flesh = make_flesh(character, project, stages, folder=folder)
    posing = pose_character(character, flesh, project, stages, bones=bones_of(character), folder=folder)
    fabric = make_fabric(character, flesh, posing, project, folder=folder)
    return CoarseBody(unreduced_model(character, flesh, posing, fabric), fabric)


def equal_cost_body(
    built: Built,
    project: Project,
    *,
    budget: float | None = None,
    damping: Rayleigh | None = None,
    cache: Path | None = None,
    folder: Path | None = None,
) -> EqualCost:
    """The coarse full body to set beside `built`, made by `project`: steps are timed on this machine, along a clip.

    `budget`: seconds that a step may cost; default: what the reduced step does, without drawing.
    """
    damping = damping or default_damping(built)
    budget = reduced_step_seconds(built.model, damping) if budget is None else budget
    tried: list[tuple[int, float]] = []

    def attempt(tets: int) -> tuple[CoarseBody, float]:
        body = coarse_body(built.character, project, tets, cache=cache, folder=folder)
        seconds = full_step_seconds(body, damping)
        tried.append((len(body.model.tets), seconds))
        return body, seconds

    low, (body, seconds) = _smallest(attempt)
    high = len(built.model.tets)
    for _ in range(TRIES):
        tets = round(sqrt(low * high))
        if seconds > budget or not low < tets < high:
            break
        try:
            other, taken = attempt(tets)
        except (InputError, SolverError):  # a mesh that cannot be simulated is no candidate
            high = tets
            continue
        if taken <= budget:
            low, body, seconds = tets, other, taken
        else:
            high = tets
    return EqualCost(body, seconds, budget, tuple(tried))


def _smallest(attempt: Callable[[int], tuple[CoarseBody, float]]) -> tuple[int, tuple[CoarseBody, float]]:
    """The first of `SMALLEST` that can be filled, posed and stepped, and what came of it."""
    trouble: Exception | None = None
    for tets in SMALLEST:
        try:
            return tets, attempt(tets)
        except (InputError, SolverError) as error:
            trouble = error
    raise InputError(f"no mesh of {SMALLEST[0]} to {SMALLEST[-1]:,} tets can be simulated: {trouble}") from trouble


def full_step_seconds(body: Built | CoarseBody, damping: Rayleigh) -> float:
    """Seconds: the quickest of some full steps along the first clip."""
    # All of gravity: a body at rest in a still part of the clip would not solve anything.
    full = full_simulation(body.model, body.fabric, rate=RATE, damping=damping, iterations=ITERATIONS, sag_free=False)
    count = TIMED_REDUCED if isinstance(full, SmallSimulation) else TIMED_FULL
    return least_step(full, carriers_along(full.carriers_at, body.model, RATE, count))


def reduced_step_seconds(model: PoseSpaceModel, damping: Rayleigh) -> float:
    """Seconds: the quickest of many reduced steps along the first clip."""
    stepper = Stepper(model, rate=RATE, damping=damping)
    return least_step(stepper, moving_carriers(stepper, model, TIMED_REDUCED))


def on_surface(model: PoseSpaceModel, u: np.ndarray) -> np.ndarray:
    """(f, n̄, 3) metres off plain skinning: the drawn surface under displacements u (f, n, 3) of the tets, A u."""
    nodes, weights = model.embedding_nodes, model.embedding_weights
    return np.stack([np.einsum("na,nak->nk", weights, field[nodes]) for field in u])
