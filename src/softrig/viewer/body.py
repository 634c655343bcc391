"""A plain reduced body to look at: no rig and no clips, but it can be pulled, shaken and tuned."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from softrig.dynamics import Rayleigh
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.models.full import FullBody
from softrig.models.reduced import ReducedBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.rig.clip import Clip
from softrig.rig.features import bounding_size
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.viewer.coats import Coat
from softrig.viewer.grips import BodyGrip
from softrig.viewer.subjects import FRAME, GRAVITY, Geometry, plain_numbers, sound_compliance, surface_geometry, swung
from softrig.viewer.tuning import Scope, Settings

UPRIGHT = {
    "y": np.eye(3),
    "z": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
}
"""From the axes of a body, by which of them points up, to those that are shown."""
NOTHING = 1e-12
SHAKE = tuple(f"root.translation.{axis}" for axis in "xyz")


class Moment(NamedTuple):
    """The end of a frame."""

    pose: np.ndarray
    q: np.ndarray
    v: np.ndarray


class SoftBody:
    """A `ReducedSimulation` to look at; see `subjects.Subject`.

    `up`: the body's axis that points up. Its pose is where its anchors have been shaken to. Forces that the simulation
    had already stay.
    """

    kind = "body"
    clips: tuple[Clip, ...] = ()
    skeleton: Skeleton | None = None
    coat: Coat | None = None

    def __init__(self, simulation: ReducedSimulation, *, name: str = "body", up: str = "z") -> None:
        if up not in UPRIGHT:
            raise InputError(f"up is y or z, not {up!r}")
        self.up = up
        self.body: FullBody | None = None
        """The full body, where it is known: sketches are solved with it."""
        self.simulation = simulation
        self.whole = self.model = simulation.model
        """`whole`: with all modes and the materials it came with."""
        self.name = name
        self.regions = self.model.group_names
        self.parameters = Parameters(SHAKE, ("m",) * 3, np.zeros(3), np.zeros(0))
        self.size = bounding_size(self.model.surface_rest)
        self.turn = UPRIGHT[up]
        """(3, 3) from the body's axes to those shown."""
        self.grips: list[BodyGrip] = []
        self._own_force = simulation.force.copy()
        self._weight = np.zeros_like(self._own_force)
        self._inertia = 1.0
        self._pending = 0.0
        self._geometry: Geometry | None = None
        self._trail = np.zeros((3, 3))
        self._now = self._before = self._moment(np.zeros(3))
        self._positions: np.ndarray | None = None
        self.look(1.0)

    def geometry(self) -> Geometry:
        """The surface at rest."""
        if self._geometry is None:
            model = self.model
            self._geometry = surface_geometry(
                model.surface_rest @ self.turn.T, model.surface_triangles, model.surface_colours
            )
        return self._geometry

    # Motion

    def move(self, pose: np.ndarray, *, cut: bool = False, seconds: float = FRAME) -> None:
        """One frame further, with the anchors shaken to `pose` (3,)."""
        simulation = self.simulation
        self._trail = np.tile(pose, (3, 1)) if cut else np.stack([pose, *self._trail[:2]])
        acceleration = (self._trail[0] - 2.0 * self._trail[1] + self._trail[2]) / FRAME**2
        force = self._own_force + self._weight
        if acceleration.any():
            force = force - self._inertia * simulation.model.gravity_force((self.turn.T @ acceleration).tolist())
        for grip in self.grips:
            force = force + grip.reduced
        simulation.force = force
        self._run(seconds)
        self._before, self._now = self._now, self._moment(pose)
        if cut:
            self._before = self._now
        self._positions = None

    def _run(self, seconds: float) -> None:
        """Whole steps of the body's own step size; what is left, less than a step, waits."""
        self._pending += seconds
        steps = int(self._pending / self.simulation.step_size + 1e-6)
        self._pending = max(self._pending - steps * self.simulation.step_size, 0.0)
        self.simulation.run(steps)

    def _moment(self, pose: np.ndarray) -> Moment:
        simulation, s = self.simulation, self._pending
        q = simulation.q + s * (simulation.v + 0.5 * s * simulation.a)
        return Moment(np.array(pose, dtype=np.float64), q, simulation.v.copy())

    def begin(self, pose: np.ndarray) -> None:
        """At rest, undeformed, with the anchors at `pose` (3,)."""
        self.simulation.q[:] = self.simulation.v[:] = self.simulation.a[:] = 0.0
        self._pending = 0.0
        self._trail = np.tile(pose, (3, 1))
        self._before = self._now = self._moment(pose)
        self._positions = None
        self.look(1.0)

    def still(self) -> None:
        """At rest, undeformed."""
        self.begin(self._now.pose)

    def with_basis(self, model: ReducedBody) -> SoftBody:
        """The same body in other modes, at rest; forces of its own stay behind, as they are in the old ones."""
        old = self.simulation
        simulation = ReducedSimulation(model, old.step_size, old.method, damping=old.damping, iterations=old.iterations)
        new = SoftBody(simulation, name=self.name, up=self.up)
        new.body = self.body
        return new

    def look(self, share: float, q: np.ndarray | None = None) -> None:
        """Show the moment `share` of the way between the last two frames."""
        self.pose = (1.0 - share) * self._before.pose + share * self._now.pose
        self._q = swung(self._before[1:], self._now[1:], share) if q is None else q

    # Positions

    def soft_positions(self) -> np.ndarray:
        """(n, 3) float32 as shown."""
        return self._shown(self.simulation.model.surface_positions(self._q), self.pose)

    def newest_positions(self) -> np.ndarray:
        """(n, 3) float32 at the end of the last frame."""
        if self._positions is None:
            self._positions = self._shown(self.simulation.model.surface_positions(self._now.q), self._now.pose)
        return self._positions

    def foresee(self, pose: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) where drawn vertices will be if the next frame goes to `pose` (3,), and undeformed."""
        simulation = self.simulation
        kept = simulation.state(), self._pending, self._trail, self._before, self._now, self._positions
        self.move(pose)
        soft = self.newest_positions()[vertices].astype(np.float64)
        simulation.restore(kept[0])
        _, self._pending, self._trail, self._before, self._now, self._positions = kept
        return soft, self.model.surface_rest[vertices] @ self.turn.T + pose

    def plain_positions(self, pose: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) float32 undeformed, moved by `pose` (3,), by default as shown."""
        return self._shown(self.model.surface_rest.astype(np.float32), self.pose if pose is None else pose)

    def tet_positions(self) -> np.ndarray:
        """(N, 3) vertices of the volume mesh as shown."""
        return self.simulation.model.positions(self._q) @ self.turn.T + self.pose

    def _shown(self, positions: np.ndarray, pose: np.ndarray) -> np.ndarray:
        return positions @ self.turn.T.astype(np.float32) + pose.astype(np.float32)

    # Touch

    def grip(self, vertex: int, radius: float | None = None) -> BodyGrip:
        """Take hold of the body around a drawn vertex."""
        return BodyGrip(self, vertex, radius)

    def probe(self, forces: np.ndarray, vertex: int) -> np.ndarray:
        """(3, 3) metres that newtons, as reduced forces (3, r), held for one frame, move a drawn vertex."""
        simulation, model = self.simulation, self.simulation.model
        before, pending, force = simulation.state(), self._pending, simulation.force.copy()
        shape = model.surface_modes[:, 3 * vertex : 3 * vertex + 3].T
        places = []
        for extra in (np.zeros_like(force), *forces):
            simulation.force = force + extra
            self._run(FRAME)
            places.append(shape @ simulation.q)
            simulation.restore(before)
            self._pending = pending
        simulation.force = force
        return sound_compliance(np.subtract(places[1:], places[0]) @ self.turn.T)

    # Settings

    def scope(self) -> Scope:
        """What can be tuned."""
        return Scope(self.regions, self.whole.size, ("off", "full"))

    def settings(self) -> Settings:
        """As the simulation has them."""
        omega, damping = self._lowest(), self.simulation.damping
        ratio = 0.5 * (damping.mass / omega + damping.stiffness * omega)
        return Settings(
            damping_ratio=float(ratio),
            gravity="full" if self._weight.any() else "off",
            modes=self.simulation.model.size,
            stiffness=dict.fromkeys(self.regions, 1.0),
        )

    def tune(self, settings: Settings) -> None:
        """Take up live settings; another number of modes goes on with the old values of those that are kept."""
        if settings.modes != self.simulation.model.size:
            self._with_modes(settings.modes)
        simulation = self.simulation
        for group, name in enumerate(self.regions):
            young = self._young(self.whole, group) * settings.stiffness.get(name, 1.0)
            if not math.isclose(young, self._young(simulation.model, group), rel_tol=1e-9):
                simulation.edit_material(name, young=young)
        omega = self._lowest()
        ratio = 0.5 * (simulation.damping.mass / omega + simulation.damping.stiffness * omega)
        if not math.isclose(ratio, settings.damping_ratio, rel_tol=1e-9, abs_tol=1e-12):
            simulation.damping = Rayleigh(settings.damping_ratio * omega, settings.damping_ratio / omega)
        down = self.turn.T @ [0.0, -GRAVITY if settings.gravity == "full" else 0.0, 0.0]
        self._weight = simulation.model.gravity_force(down.tolist())
        self._inertia = settings.inertia
        self.model = simulation.model

    def prepare(self, settings: Settings) -> None:
        """Nothing is needed: modes are dropped at once."""

    def _with_modes(self, count: int) -> None:
        old = self.simulation
        kept = min(count, old.model.size)
        model = self.whole.with_modes(count)
        self.simulation = ReducedSimulation(
            model, old.step_size, old.method, damping=old.damping, iterations=old.iterations
        )
        for mine, theirs in ((self.simulation.q, old.q), (self.simulation.v, old.v), (self.simulation.a, old.a)):
            mine[:kept] = theirs[:kept]
        own = np.zeros(count)
        own[:kept] = self._own_force[:kept]
        self._own_force, self._weight = own, np.zeros(count)
        for grip in self.grips:
            grip.renew()
        self._before = self._now = self._moment(self._now.pose)
        self._positions = None
        self.look(1.0)

    def _lowest(self) -> float:
        """rad/s, of the lowest mode as built."""
        stiffness = self.whole.force_and_stiffness(np.zeros(self.whole.size))[1]
        return math.sqrt(max(float(eigh(stiffness, self.whole.mass, eigvals_only=True)[0]), NOTHING))

    @staticmethod
    def _young(model: ReducedBody, group: int) -> float:
        return float(Material.from_lame(model.lam[group], model.mu[group], model.density[group]).young)

    # Numbers

    def numbers(self) -> dict[str, Any]:
        """Energy and counters."""
        simulation = self.simulation
        model = simulation.model
        energy = {
            "kinetic": 0.5 * float(simulation.v @ model.mass_times(simulation.v)),
            "elastic": model.energy(simulation.q),
        }
        return {
            "energy": plain_numbers(energy),
            "weights": [],
            "counters": {"steps": round(simulation.time / simulation.step_size), **simulation.fallbacks._asdict()},
        }

    def about(self) -> dict[str, Any]:
        """Counts for people."""
        return {
            "vertices": len(self.model.surface_rest),
            "triangles": len(self.model.surface_triangles),
            "volume vertices": len(self.model.vertices),
            "modes": self.whole.size,
            "groups": len(self.regions),
            "rate": 1.0 / self.simulation.step_size,
        }
