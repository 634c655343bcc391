"""A body in a tree of domains to look at: no rig and no clips, but it can be pulled, shaken, blown at and tuned."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.errors import InputError, require_indices
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation, SubstructuredState
from softrig.render.colour import linear
from softrig.rig.clip import Clip
from softrig.rig.features import bounding_size
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.viewer.body import SHAKE, UPRIGHT
from softrig.viewer.coats import Coat
from softrig.viewer.subjects import FRAME, GRAVITY, Geometry, plain_numbers, sound_compliance, surface_geometry
from softrig.viewer.tuning import Scope, Settings

MOST_REGIONS = 16
"""More domains than that are tuned by the shape they are instances of."""
NOTHING = 1e-12
LONG, WEAK = 1e4, 1e-6
"""Seconds and m/s²: of a step that ends at rest, and of a gravity under which all is linear."""


class Moment(NamedTuple):
    """The end of a frame: where the root is shaken to, and what is drawn, metres, in the body's own axes."""

    pose: np.ndarray
    positions: np.ndarray


class TreeGrip:
    """A hold on a drawn vertex; it pulls at one of the domains that the vertex belongs to."""

    def __init__(self, subject: SoftTree, vertex: int) -> None:
        self._subject = subject
        model = subject.model
        self.vertex = int(require_indices([vertex], model.drawn_count, "drawn vertices")[0])
        copy = int(np.nonzero(model.drawn == self.vertex)[0][0])
        self.domain = int(np.searchsorted(model.vertex_starts, copy, side="right")) - 1
        self.node = copy - int(model.vertex_starts[self.domain])
        self.force = np.zeros(3)
        self.compliance = subject.probe(self)
        subject.grips.append(self)

    def push(self, force: np.ndarray) -> None:
        """Pull with `force` (3,) newton."""
        self.force = np.array(force, dtype=np.float64)
        self._subject.pull()

    def release(self) -> None:
        """Let go."""
        if self in self._subject.grips:
            self._subject.grips.remove(self)
            self._subject.pull()


class SoftTree:
    """A `SubstructuredSimulation` to look at; see `subjects.Subject`.

    `up`: the body's axis that points up. Its pose is where its root has been shaken to. Gravity, wind and damping that
    the simulation had already stay until they are tuned; pulls are let go.
    """

    kind = "body"
    clips: tuple[Clip, ...] = ()
    skeleton: Skeleton | None = None
    coat: Coat | None = None

    def __init__(self, simulation: SubstructuredSimulation, *, name: str = "", up: str = "z") -> None:
        if up not in UPRIGHT:
            raise InputError(f"up is y or z, not {up!r}")
        self.simulation = simulation
        self.model: SubstructuredModel = simulation.model
        self.name = name or self.model.name
        self.turn = UPRIGHT[up]
        """(3, 3) from the body's axes to those shown."""
        self.parameters = Parameters(SHAKE, ("m",) * 3, np.zeros(3), np.zeros(0))
        self._domains = _tuned_together(self.model)
        self.regions = tuple(self._domains)
        self.grips: list[TreeGrip] = []
        self._gravity = simulation.gravity.copy()
        self._wind = (0.0, 0.0, 0.0)
        self._slowest = _slowest_swing(self.model)
        """rad/s, of the whole body."""
        self._inertia = 1.0
        self._pending = 0.0
        self._factors = dict.fromkeys(self.regions, 1.0)
        simulation.clear_forces()
        kept = simulation.state()
        simulation.reset()
        self._rest = simulation.positions()
        simulation.restore(kept)
        self.size = bounding_size(self._rest)
        self._geometry: Geometry | None = None
        self._trail = np.zeros((3, 3))
        self._now = self._before = self._moment(np.zeros(3))
        self.look(1.0)

    def geometry(self) -> Geometry:
        """The surface at rest."""
        if self._geometry is None:
            model = self.model
            self._geometry = surface_geometry(self._rest @ self.turn.T, model.triangles, linear(model.drawn_colours))
        return self._geometry

    # Motion

    def move(self, pose: np.ndarray, *, cut: bool = False, seconds: float = FRAME) -> None:
        """One frame further, with the root shaken to `pose` (3,)."""
        self._trail = np.tile(pose, (3, 1)) if cut else np.stack([pose, *self._trail[:2]])
        acceleration = (self._trail[0] - 2.0 * self._trail[1] + self._trail[2]) / FRAME**2
        # What is held in a frame that is shaken feels the shaking as gravity the other way.
        self.simulation.gravity[:] = self._gravity - self._inertia * (self.turn.T @ acceleration)
        self._run(seconds)
        self._before, self._now = self._now, self._moment(pose)
        if cut:
            self._before = self._now

    def _run(self, seconds: float) -> None:
        """Whole steps of the body's own step size; what is left, less than a step, waits."""
        self._pending += seconds
        steps = int(self._pending / self.simulation.step_size + 1e-6)
        self._pending = max(self._pending - steps * self.simulation.step_size, 0.0)
        self.simulation.run(steps)

    def _moment(self, pose: np.ndarray) -> Moment:
        """What is drawn now; where a step does not fit the frame, a little ahead of the last one."""
        simulation, s = self.simulation, self._pending
        if s < NOTHING:
            return Moment(np.array(pose, dtype=np.float64), simulation.positions())
        q = simulation.q.copy()
        simulation.q += s * (simulation.v + 0.5 * s * simulation.a)
        moment = Moment(np.array(pose, dtype=np.float64), simulation.positions())
        simulation.q = q
        return moment

    def begin(self, pose: np.ndarray) -> None:
        """At rest, undeformed, with the root at `pose` (3,)."""
        self.simulation.reset()
        self._pending = 0.0
        self._trail = np.tile(pose, (3, 1))
        self._now = self._before = self._moment(pose)
        self.look(1.0)

    def still(self) -> None:
        """At rest, undeformed."""
        self.begin(self._now.pose)

    def look(self, share: float, q: np.ndarray | None = None) -> None:
        """Show the moment `share` of the way between the last two frames."""
        if q is not None:
            raise InputError("the modes of a tree of domains are not shown one by one")
        self.pose = (1.0 - share) * self._before.pose + share * self._now.pose
        self._shown_share = share

    # Positions

    def soft_positions(self) -> np.ndarray:
        """(n, 3) float32 as shown."""
        share = self._shown_share
        if share >= 1.0:
            return self._shown(self._now.positions, self.pose)
        return self._shown((1.0 - share) * self._before.positions + share * self._now.positions, self.pose)

    def newest_positions(self) -> np.ndarray:
        """(n, 3) float32 at the end of the last frame."""
        return self._shown(self._now.positions, self._now.pose)

    def foresee(self, pose: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) where drawn vertices will be if the next frame goes to `pose` (3,), and undeformed."""
        kept, gravity = self._kept(), self.simulation.gravity.copy()
        moments = self._trail, self._before, self._now
        self.move(pose)
        soft = self.newest_positions()[vertices].astype(np.float64)
        self._restore(kept)
        self.simulation.gravity[:] = gravity
        self._trail, self._before, self._now = moments
        return soft, self._rest[vertices] @ self.turn.T + pose

    def plain_positions(self, pose: np.ndarray | None = None) -> np.ndarray:
        """(n, 3) float32 undeformed, moved by `pose` (3,), by default as shown."""
        return self._shown(self._rest, self.pose if pose is None else pose)

    def tet_positions(self) -> np.ndarray:
        """(N, 3) vertices of the volume meshes as shown: those that are drawn."""
        return self.soft_positions().astype(np.float64)

    def _shown(self, positions: np.ndarray, pose: np.ndarray) -> np.ndarray:
        return (positions @ self.turn.T + pose).astype(np.float32)

    def _kept(self) -> tuple[SubstructuredState, float]:
        return self.simulation.state(), self._pending

    def _restore(self, kept: tuple[SubstructuredState, float]) -> None:
        self.simulation.restore(kept[0])
        self._pending = kept[1]

    # Touch

    def grip(self, vertex: int, radius: float | None = None) -> TreeGrip:
        """Take hold of the body at a drawn vertex."""
        return TreeGrip(self, vertex)

    def pull(self, *beside: tuple[TreeGrip, np.ndarray]) -> None:
        """Give the simulation the forces of all grips, and others `beside` them, newton, as shown."""
        self.simulation.clear_forces()
        for grip, force in (*((grip, grip.force) for grip in self.grips), *beside):
            self.simulation.pull(grip.domain, [grip.node], self.turn.T @ force)

    def probe(self, grip: TreeGrip) -> np.ndarray:
        """(3, 3) metres that newtons, held for one frame or for a step that is longer, move a grip's vertex."""
        kept = self._kept()
        places = []
        for force in np.concatenate([np.zeros((1, 3)), np.eye(3)]):
            self.pull((grip, force))
            self._run(max(FRAME, self.simulation.step_size))
            places.append(self.simulation.domain_positions(grip.domain)[grip.node])
            self._restore(kept)
        self.pull()
        return sound_compliance(np.subtract(places[1:], places[0]) @ self.turn.T)

    # Settings

    def scope(self) -> Scope:
        """What can be tuned."""
        return Scope(self.regions, self.model.size, ("off", "full"), modes_stay=True)

    def settings(self) -> Settings:
        """As the simulation has them."""
        return Settings(
            damping_ratio=self._damping_ratio(),
            gravity="full" if self._gravity.any() else "off",
            modes=self.model.size,
            stiffness=dict(self._factors),
            wind=self._wind,
        )

    def tune(self, settings: Settings) -> None:
        """Take up live settings. Wind in N/m² is air as fast as gives that pressure on a plate."""
        simulation = self.simulation
        for name, factor in settings.stiffness.items():
            if factor != self._factors[name]:
                for number in self._domains[name]:
                    simulation.edit_stiffness(number, factor * self.model.domains[number].stiffness)
                self._factors[name] = factor
        ratio = settings.damping_ratio
        if not math.isclose(ratio, self._damping_ratio(), rel_tol=1e-9, abs_tol=1e-12):
            simulation.damping = Rayleigh(ratio * self._slowest, ratio / self._slowest)
        if (settings.gravity == "full") != bool(self._gravity.any()):
            self._gravity = self.turn.T @ [0.0, -GRAVITY if settings.gravity == "full" else 0.0, 0.0]
        self._inertia = settings.inertia
        if settings.wind != self._wind:
            self._wind = settings.wind
            pressure = self.turn.T @ np.array(settings.wind)
            strength = float(np.linalg.norm(pressure))
            speed = math.sqrt(strength / simulation.drag)
            simulation.wind = pressure / strength * speed if strength > 0.0 else None

    def prepare(self, settings: Settings) -> None:
        """Nothing is needed."""

    def _damping_ratio(self) -> float:
        """Of the slowest swing."""
        damping = self.simulation.damping
        return 0.5 * (damping.mass / self._slowest + damping.stiffness * self._slowest)

    # Numbers

    def numbers(self) -> dict[str, Any]:
        """Counters, and how fast the flesh moves."""
        simulation = self.simulation
        return {
            "energy": plain_numbers({}),
            "weights": [],
            "counters": {"steps": round(simulation.time / simulation.step_size), **simulation.fallbacks._asdict()},
        }

    def about(self) -> dict[str, Any]:
        """Counts for people."""
        return {
            "vertices": self.model.drawn_count,
            "triangles": len(self.model.triangles),
            "modes": self.model.size,
            "domains": len(self.model.domains),
            "rate": 1.0 / self.simulation.step_size,
        }


def _slowest_swing(model: SubstructuredModel) -> float:
    """rad/s of the whole body, about: from how far it sags, ω² = Σ g·u / Σ u² (Rayleigh), along its weakest axis.

    A floating body sags nowhere: there it is that of its slowest domain.
    """
    if not model.floating:
        # So weak a gravity that all is linear, and one backward Euler step so long that nothing still moves.
        rest = SubstructuredSimulation(model, LONG, "backward-euler", iterations=1)
        start = rest.positions()
        found = []
        for pull in WEAK * np.eye(3):
            rest.reset()
            rest.gravity = pull.tolist()
            rest.step()
            sag = rest.positions() - start
            if (sag @ pull).sum() > 0.0:
                found.append(float((sag @ pull).sum() / (sag * sag).sum()))
        if found:
            return math.sqrt(min(found))
    slowest = [
        shape.frequencies[0] / domain.scale for domain in model.domains if (shape := model.shapes[domain.shape]).size
    ]
    return max(2.0 * math.pi * float(min(slowest, default=1.0)), NOTHING)


def _tuned_together(model: SubstructuredModel) -> dict[str, list[int]]:
    """Domains whose stiffness is tuned as one, by name: each by itself; where there are many, by shape, or all."""
    if len(model.domains) <= MOST_REGIONS:
        return {domain.name: [i] for i, domain in enumerate(model.domains)}
    found: dict[str, list[int]] = {}
    for i, domain in enumerate(model.domains):
        found.setdefault(model.shapes[domain.shape].name, []).append(i)
    return found if len(found) <= MOST_REGIONS else {"body": list(range(len(model.domains)))}
