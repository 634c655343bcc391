"""A character with flesh to look at: a pose-space model in motion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.pipeline.baking import model_simulation
from softrig.poses.materials import PRESETS
from softrig.simulation import Damping, Pull, Simulation
from softrig.viewer.coats import Coat
from softrig.viewer.energy import FleshEnergy
from softrig.viewer.grips import CharacterGrip
from softrig.viewer.subjects import (
    FRAME,
    GRAVITY,
    Adopt,
    Geometry,
    between,
    plain_numbers,
    sound_compliance,
    surface_geometry,
    swung,
)
from softrig.viewer.threads import one_thread
from softrig.viewer.tuning import Scope, Settings

QUICKLY = 1e7
"""Poses × modes³ up to which another stiffness takes some milliseconds."""


class Moment(NamedTuple):
    """The end of a frame."""

    pose: np.ndarray
    q: np.ndarray
    v: np.ndarray


class SoftCharacter:
    """A pose-space model in motion; see `subjects.Subject`."""

    kind = "character"

    def __init__(self, model: PoseSpaceModel, simulation: Simulation | None = None) -> None:
        self.simulation = simulation or model_simulation(model, fps=60.0)
        self._is_own = simulation is None
        self._spare: Stepper | None = None
        self.model = model
        """With all its modes, of which `simulation.model` may have fewer."""
        self.coat: Coat | None = None
        self.name = model.name
        self.clips = model.clips
        self.regions = model.region_names
        self.parameters = self.simulation.parameters
        self.skeleton = None if model.skin is None else model.skin.skeleton
        self.size = model.size
        self._geometry: Geometry | None = None
        self._energy = FleshEnergy(self.simulation.model)
        self._positions: np.ndarray | None = None
        self.pose = self.parameters.rest
        self._before = self._now = Moment(self.pose, np.zeros(0), np.zeros(0))
        # Compiled here, where it is told, and not by the thread that plays: nothing interrupts a compiler.
        self.simulation.warm_up()
        self.begin(self.pose)

    def geometry(self) -> Geometry:
        """The surface at rest."""
        if self._geometry is None:
            model, rest = self.model, self.parameters.rest
            self._geometry = surface_geometry(model.rig.positions(rest), model.triangles, model.colours, self.coat)
        return self._geometry

    # Motion

    def move(self, pose: np.ndarray, *, cut: bool = False, seconds: float = FRAME) -> None:
        """One frame further, to `pose` (P,)."""
        if cut:
            self.simulation.cut()
        self.simulation.move(pose, seconds)
        self._before, self._now = self._now, self._moment(pose)
        if cut:
            self._before = self._now
        self._positions = None

    def begin(self, pose: np.ndarray) -> None:
        """Begin anew at `pose` (P,), at rest there."""
        self.simulation.reset()
        self.simulation.move(pose, FRAME)
        self._before = self._now = self._moment(pose)
        self._positions = None
        self.look(1.0)

    def still(self) -> None:
        """Begin anew at the present pose."""
        self.begin(self._now.pose)

    def look(self, share: float, q: np.ndarray | None = None) -> None:
        """Show the moment `share` of the way between the last two frames."""
        self.pose = between(self.parameters, self._before.pose, self._now.pose, share)
        self._q = swung(self._before[1:], self._now[1:], share) if q is None else q
        self._is_newest = q is None and share >= 1.0

    def _moment(self, pose: np.ndarray) -> Moment:
        return Moment(pose, self.simulation.shown_coordinates(), self.simulation.stepper.v.copy())

    # Positions

    def soft_positions(self) -> np.ndarray:
        """(n, 3) float32 as shown."""
        if self._is_newest:
            return self.newest_positions()
        return self.simulation.show(self.pose, self._q)

    def newest_positions(self) -> np.ndarray:
        """(n, 3) float32 at the end of the last frame."""
        if self._positions is None:
            self._positions = self.simulation.show(self._now.pose, self._now.q)
        return self._positions

    def foresee(self, pose: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) where surface vertices will be if the next frame goes to `pose` (P,), and without flesh."""
        simulation = self.simulation
        before = simulation.state()
        try:
            simulation.move(pose, FRAME)
            q = simulation.shown_coordinates()
            soft, plain = (simulation.show(pose, each)[vertices] for each in (q, np.zeros_like(q)))
        finally:
            simulation.restore(before)
        return soft.astype(np.float64), plain.astype(np.float64)

    def plain_positions(self, pose: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) float32 at `pose` (P,), by default as shown, without the flesh's own motion."""
        return self.simulation.show(self.pose if pose is None else pose, np.zeros_like(self._q))

    def tet_positions(self) -> np.ndarray:
        """(N, 3) tet vertices as shown."""
        stepper = self.simulation.stepper
        kept = stepper.q.copy()
        stepper.q[:] = self._q
        try:
            stepper.place(stepper.carriers(self.pose))
            if self.model.tet_rig.kind == "skin":
                return stepper.tet_positions()
            return self.model.tet_rest(self.pose) + stepper.vertex_displacements()
        finally:
            stepper.q[:] = kept

    # Touch

    def grip(self, vertex: int, radius: float | None = None) -> CharacterGrip:
        """Take hold of the flesh around a surface vertex."""
        return CharacterGrip(self, vertex, radius)

    def probe(self, pull: Pull, vertex: int) -> np.ndarray:
        """(3, 3) metres that a newton of `pull`, held for one frame, moves `vertex`; nothing is changed by asking."""
        simulation, pose = self.simulation, self._now.pose
        before = simulation.state()
        newton = GRAVITY * max(float(self.model.vertex_mass[pull.vertices].sum()), 1e-9)
        places = []
        try:
            for force in (np.zeros(3), *(newton * np.eye(3))):
                pull.force = force
                simulation.move(pose, FRAME)
                places.append(simulation.show(pose, simulation.shown_coordinates())[vertex].astype(np.float64))
                simulation.restore(before)
        finally:
            simulation.restore(before)
            pull.force = np.zeros(3)
        return sound_compliance(np.subtract(places[1:], places[0]) / newton)

    # Settings

    def scope(self) -> Scope:
        """What can be tuned."""
        return Scope(self.regions, self.model.mode_count, young=self._built_young())

    def settings(self) -> Settings:
        """As the simulation has them."""
        stepper = self.simulation.stepper
        gravity = "off" if not stepper.gravity.any() else "change" if stepper.sag_free else "full"
        x, y, z = (float(value) for value in stepper.wind)
        return Settings(
            damping_ratio=float(self.simulation.damping.ratio),
            gravity=gravity,
            inertia=stepper.inertia_scale,
            modes=self.simulation.model.mode_count,
            stiffness=dict(zip(self.regions, stepper.stiffness_scale.tolist(), strict=True)),
            wind=(x, y, z),
        )

    def tune(self, settings: Settings) -> None:
        """Take up live settings, but for the number of modes, and a stiffness that takes long: see `prepare`."""
        stepper = self.simulation.stepper
        self.simulation.damping = Damping(settings.damping_ratio, self.simulation.damping.frequency)
        stepper.gravity = np.array([0.0, 0.0 if settings.gravity == "off" else -GRAVITY, 0.0])
        stepper.sag_free = settings.gravity == "change"
        stepper.inertia_scale = settings.inertia
        self.simulation.wind = np.array(settings.wind)
        if not self._stiffens_beside:
            self._stiffen(stepper, settings)

    def prepare(self, settings: Settings) -> Adopt | None:
        """Make what takes long, in any thread; what it gives adopts it. None: nothing is needed."""
        if settings.modes != self.simulation.model.mode_count:
            return self._other_modes(settings)
        if self._stiffens_beside and (self._scales(settings) != self.simulation.stepper.stiffness_scale).any():
            return self._other_stiffness(settings)
        return None

    def _other_modes(self, settings: Settings) -> Adopt:
        old = self.simulation
        new = model_simulation(self.model, fps=60.0, modes=settings.modes, rate=old.rate)
        energy = FleshEnergy(new.model)
        self._stiffen(new.stepper, settings)

        def adopt(now: Settings) -> None:
            """From rest at the present pose."""
            new.colliders = old.colliders
            self.simulation, self._energy, self._spare = new, energy, None
            self._is_own = True
            self.tune(now)
            self.begin(self._now.pose)

        return adopt

    def _other_stiffness(self, settings: Settings) -> Adopt:
        """A second stepper gets the stiffness and then takes the first one's place: the motion does not wait."""
        simulation = self.simulation
        old = simulation.stepper
        new = self._spare or Stepper(simulation.model, rate=old.rate, method=old.method)
        self._stiffen(new, settings)

        def adopt(now: Settings) -> None:
            new.restore(old.snapshot())
            simulation.stepper, self._spare = new, old
            new.point_loads(np.zeros(0, np.int32), np.zeros((0, 3)))
            for pull in simulation.pulls:
                pull.force = pull.force  # takes hold of the new one
            self.tune(now)

        return adopt

    @property
    def _stiffens_beside(self) -> bool:
        """Whether another stiffness takes longer than a frame has, and a second stepper can be made for it."""
        model = self.simulation.model
        return self._is_own and len(model.poses) * model.mode_count**3 > QUICKLY

    def _scales(self, settings: Settings) -> np.ndarray:
        return np.array([settings.stiffness.get(name, 1.0) for name in self.regions])

    def _stiffen(self, stepper: Stepper, settings: Settings) -> None:
        scales = self._scales(settings)
        if (scales != stepper.stiffness_scale).any():
            with one_thread():
                stepper.stiffness_scale = scales

    def _built_young(self) -> float:
        material = self.model.notes.get("project", {}).get("material", {})
        given = material.get("young")
        if isinstance(given, str):  # a map: what is in the middle
            return float(np.median(self.model.cubature.young[0]))
        name = str(material.get("preset", "muscle"))
        return float(given) if isinstance(given, int | float) else PRESETS.get(name, PRESETS["muscle"]).young

    # Numbers

    def numbers(self) -> dict[str, Any]:
        """Energy, pose weights, counters."""
        stepper = self.simulation.stepper
        weights = stepper.pose_weights(self._now.pose)
        energy = self._energy(stepper, self._now.pose, self._now.q, weights)
        return {
            "energy": plain_numbers(energy),
            "weights": [round(float(weight), 4) for weight in weights],
            "counters": self.simulation.counters,
        }

    def about(self) -> dict[str, Any]:
        """Counts for people."""
        model = self.model
        return {
            "vertices": len(model.embedding_nodes),
            "triangles": len(model.triangles),
            "tets": len(model.tets),
            "modes": model.mode_count,
            "poses": len(model.poses),
            "regions": len(model.region_names),
            "cubature": len(model.cubature.tets),
            "mass": float(model.vertex_mass.sum()),
            "law": model.law,
            "rate": self.simulation.rate,
        }
