"""The full simulation of a clip, and models beside it: a row of figures each.

The clip, and a second after it in which the rig stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import isnan
from pathlib import Path

import numpy as np

from softrig.bench.cases import FREQUENCY, Case
from softrig.bench.conclusions import BEST
from softrig.bench.record import Row
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, SolverError
from softrig.fidelity import FidelityReport, compare, trajectory_error
from softrig.models.moving import FullSimulation
from softrig.models.pose_space import PoseSpaceModel, polar_rotations
from softrig.models.tet_motion import TetMotion, tet_carriers
from softrig.pipeline.build import Built
from softrig.pipeline.cache import StageCache
from softrig.pipeline.coarse import ITERATIONS, equal_cost_body, on_surface
from softrig.pipeline.compare import RATE, default_damping, full_trajectory, reduced_trajectory
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.telling import Stage, untold
from softrig.poses.contact import self_overlap
from softrig.project import Project

FPS = 60.0
STILL = 1.0
"""Seconds that the rig stands still after the clip: there frequency and decay are measured."""
EVERY = 6
"""So many steps lie between moments at which it is measured what the shapes could do at best."""
MOMENTS = 12
"""Of a clip, at which it is measured how much of the body is in itself and how far flesh turns."""
MOST_TURNED = 95.0
"""Percent of the tets that turn no farther than what is stated."""
CONVERGED = 720.0
"""Steps a second of the simulation that is called converged, each solved to the end."""
LINEAR = 0.02
"""Of the accelerations that the flesh feels: under so little nothing goes beyond the linear part."""

Forces = Callable[[Built], PoseSpaceModel]


class Truth:
    """The full simulation of a case: the clip, then a second of standing still."""

    def __init__(
        self, case: Case, built: Built, *, converged: bool, stage: Stage = untold, cache: StageCache | None = None
    ) -> None:
        _, clip = case.character.clip(case.clip).resample(FPS)
        self.poses = np.concatenate([clip, np.repeat(clip[-1:], round(STILL * FPS), axis=0)])
        self._ours, self._cache = built, cache
        self.damping = default_damping(built)
        with stage("Simulating in full") as update:
            self.motion = full_trajectory(built, self.poses, FPS, damping=self.damping, cache=cache, progress=update)
        self.stop = int((len(clip) - 1) * RATE / FPS)
        self._passed = case.character.clip(case.clip).sample((np.arange(0, self.stop, EVERY) + 1.0) / RATE)
        rests, unturned = [], []
        for index, moment in enumerate(_rest_motions(built, self.poses, self.damping)):
            rests.append(moment.positions)
            if index < self.stop and index % EVERY == 0:
                unturned.append(np.einsum("nji,nj->ni", moment.rotations, self.motion[index]))
        self.rest, self._unturned = np.stack(rests), np.stack(unturned)
        self._mesh = built.flesh.mesh
        self._moments = np.unique(np.linspace(0, self.stop - 1, MOMENTS).round().astype(int))
        self._overlaps = self._shared(self.motion)
        turns = [turned_by(self._mesh.elements, self.rest[k], self.rest[k] + self.motion[k]) for k in self._moments]
        self._turned = max(np.percentile(moment, MOST_TURNED) for moment in turns)
        self.converged: np.ndarray | None = None
        if converged:
            with stage("Simulating in full, converged") as update:
                self.converged = full_trajectory(
                    built,
                    clip,
                    FPS,
                    rate=CONVERGED,
                    damping=self.damping,
                    iterations=None,
                    every=round(CONVERGED / RATE),
                    cache=cache,
                    progress=update,
                )

    def _shared(self, motion: np.ndarray) -> np.ndarray:
        """(k,) m³ of the body that is in itself at moments of the clip, displaced by `motion` (steps, n, 3)."""
        return np.array([self_overlap(self._mesh, self.rest[k] + motion[k]) for k in self._moments])

    def coarse_row(self, what: str, ours: Built, project: Project, cache: Path, folder: Path | None = None) -> Row:
        """The full body on the finest mesh that costs no more than our step, beside the truth on the drawn surface.

        The meshes differ, so errors are area-weighted there; that of ours stands beside it.
        """
        try:
            found = equal_cost_body(ours, project, damping=self.damping, cache=cache, folder=folder)
        except InputError as trouble:  # a map with a value a tet fits no other mesh
            return Row(what, "%", None, note=str(trouble))
        tets, areas = len(found.body.model.tets), ours.character.areas
        also = {"tets": float(tets), "a step, over ours": found.seconds / found.budget}
        note = "" if found.is_met else f"no mesh costs so little: this, of {tets:,} tets, is the coarsest that moves"
        try:
            moved = full_trajectory(found.body, self.poses, FPS, damping=self.damping, iterations=ITERATIONS)
        except SolverError as trouble:
            note = "; ".join(filter(None, (note, f"did not come through the clip: {trouble}")))
            return Row(what, "%", None, also=also, note=note)
        surface, truth = on_surface(found.body.model, moved), on_surface(ours.model, self.motion)
        reduced = on_surface(ours.model, reduced_trajectory(ours.model, self.poses, FPS, damping=self.damping))
        report = compare(surface, truth, areas, RATE, stop=self.stop)
        seen = slice(0, self.stop)
        also |= {
            "ours on the surface, %": 100.0 * trajectory_error(reduced[seen], truth[seen], areas),
            **_swing(report),
        }
        error = trajectory_error(surface[seen], truth[seen], areas)
        return Row(what, "%", 100.0 * error, also=_known(also), note=note)

    def row(self, what: str, built: Built, *, forces: Forces | None = None, goal: float | None = None) -> Row:
        """A model beside the truth; `forces`: as those of `pipeline.compare` make it."""
        model = forces(built) if forces else built.model
        moved = reduced_trajectory(model, self.poses, FPS, damping=self.damping)
        report = compare(moved, self.motion, model.vertex_mass, RATE, stop=self.stop, rest=self.rest, tets=model.tets)
        seen = slice(0, self.stop)
        also = {
            **_swing(report),
            "volume drift, %": 100.0 * report.volume_drift[0],
            "true volume drift, %": 100.0 * report.volume_drift[1],
            "overlap added, ml": 1e6 * float((self._shared(moved) - self._overlaps).mean()),
            "true overlap, ml": 1e6 * float(self._overlaps.mean()),
            "flesh turns, °": float(np.degrees(self._turned)),
        }
        if model.interpolation == "bind" and len(model.shapes) == 1:
            also[BEST] = 100.0 * best_error(self._unturned, model, self._passed)
        if self.converged is not None:
            also["against a converged step, %"] = 100.0 * trajectory_error(
                moved[seen], self.converged[seen], model.vertex_mass
            )
        error = trajectory_error(moved[seen], self.motion[seen], model.vertex_mass)
        return Row(what, "%", 100.0 * error, goal=goal, also=_known(also))

    def linear_row(self, what: str) -> Row:
        """Ours beside the truth, both so little accelerated that they are linear."""
        model = self._ours.model
        moved = reduced_trajectory(model, self.poses, FPS, damping=self.damping, inertia=LINEAR)
        return self._plain_row(what, moved, self._linear)

    def linear_body_row(self, what: str) -> Row:
        """The full body as if it were linear beside the truth: nothing that is linear comes nearer, but by chance."""
        return self._plain_row(what, self._linear / LINEAR, self.motion)

    @cached_property
    def _linear(self) -> np.ndarray:
        return full_trajectory(
            self._ours, self.poses, FPS, damping=self.damping, iterations=1, inertia=LINEAR, cache=self._cache
        )

    def _plain_row(self, what: str, moved: np.ndarray, truth: np.ndarray) -> Row:
        mass, seen = self._ours.model.vertex_mass, slice(0, self.stop)
        report = compare(moved, truth, mass, RATE, stop=self.stop)
        error = trajectory_error(moved[seen], truth[seen], mass)
        return Row(what, "%", 100.0 * error, also=_known(_swing(report)))


def _swing(report: FidelityReport) -> dict[str, float]:
    """What an eye sees of a swing."""
    return {
        "peak, of the true one": report.peak_ratio,
        FREQUENCY: 100.0 * (report.frequency_ratio - 1.0),
        "half-life, of the true one": report.half_life_ratio,
    }


def _known(figures: dict[str, float]) -> dict[str, float]:
    """Without those that could not be measured."""
    return {name: value for name, value in figures.items() if not isnan(value)}


def _rest_motions(built: Built, poses: np.ndarray, damping: Rayleigh) -> Iterator[TetMotion]:
    model, fabric = built.model, built.fabric
    full, carriers = (
        FullSimulation(model, fabric.young, fabric.poisson, rate=RATE, damping=damping),
        tet_carriers(model),
    )
    for z, speed, acceleration in carrier_steps(full.carriers_at, poses, FPS, RATE):
        yield carriers.motion(z, speed, acceleration)


def best_error(fields: np.ndarray, model: PoseSpaceModel, poses: np.ndarray) -> float:
    """The least mass-weighted RMS error, of their size, of fields (k, n, 3) at poses (k, P) as sums of a model's modes
    and what follows these; all seen from the vertices."""
    root = np.sqrt(np.repeat(model.vertex_mass, 3))
    told = []
    for field, p in zip(fields, poses, strict=True):
        shapes = model.drawn_shapes(p).reshape(-1, model.mode_count)
        sides = root[:, None] * shapes
        told.append((shapes @ np.linalg.solve(sides.T @ sides, sides.T @ (root * field.ravel()))).reshape(-1, 3))
    return trajectory_error(np.stack(told), fields, model.vertex_mass)


def turned_by(tets: np.ndarray, rest: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(e,) radians: how far tets (e, 4) turn from vertices (n, 3) at rest to where these have moved."""
    before, after = (np.swapaxes(places[tets[:, 1:]] - places[tets[:, :1]], 1, 2) for places in (rest, moved))
    turns = polar_rotations(after @ np.linalg.inv(before))
    return np.arccos(np.clip(0.5 * (np.trace(turns, axis1=1, axis2=2) - 1.0), -1.0, 1.0))
