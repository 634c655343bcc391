"""A hand on the flesh: springs to picked vertices, a ball that pokes, a floor.

A spring must feel the same on a mouse and on an elephant, and must not explode on either. So it is measured in what
the flesh answers: a grip knows how far a newton, held for one frame, moves the vertex, its compliance C (3, 3). With c
the compliance along the pull the spring is k = STIFFNESS / c, and it is implicit in time: with x⁰ where the vertex
would come to in the coming frame under the present force f⁰, which the simulation is asked for,

    f = k (goal − x),  x = x⁰ + C (f − f⁰)   ⇒   (1 + k C) f = k (goal − x⁰ + C f⁰),

stable whatever the flesh is made of. Firm flesh follows the hand half of the way, soft flesh almost all of it. The goal
is the hand, but never further than `LONGEST` from where the vertex would be without any flesh: that bounds the force.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from softrig.errors import InputError, require_finite, require_indices
from softrig.simulation import Collider, Plane, Sphere
from softrig.viewer.subjects import Grip, Subject

STIFFNESS = 1.0
LONGEST = 0.06
"""Character sizes."""
LEAST_GIVING = 0.1
"""Of the softest direction: those that hardly give are taken to give this much, or a spring would pull at the bone."""
MOST_PULLS = 10
POKE_RADIUS = (0.005, 0.5)
"""Character sizes: least and largest ball."""
FRICTION = 0.4
FALTERING = 0.5
"""Factor on a spring's stiffness for every frame in which a step had to be mended while it pulled."""


@dataclass
class Spring:
    """From a vertex to a hand."""

    grip: Grip
    to: np.ndarray
    stiffness: float = STIFFNESS
    force: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def act(self, ahead: np.ndarray, plain: np.ndarray, longest: float) -> None:
        """Set the force for a frame at whose end the vertex would be `ahead` (3,), and `plain` (3,) without flesh."""
        reach = self.to - plain
        goal = plain + reach * min(1.0, longest / max(float(np.linalg.norm(reach)), 1e-300))
        C = self.grip.compliance
        along = goal - plain
        length = float(np.linalg.norm(along))
        least = LEAST_GIVING * float(np.linalg.eigvalsh(C)[-1])
        k = self.stiffness / max(float(along @ C @ along) / length**2 if length > 0.0 else 0.0, least)
        self.force = np.linalg.solve(np.eye(3) + k * C, k * (goal - ahead + C @ self.force))
        self.grip.push(self.force)


class Touch:
    """Everything that touches one subject. Pulls belong to somebody: a hand that is gone lets go."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._springs: dict[tuple[Hashable, Hashable], Spring] = {}
        self._ball: tuple[Hashable, np.ndarray, float] | None = None
        self._ball_spring: Spring | None = None
        self._simulation = subject.simulation
        self._mended = 0
        self.has_ground = False

    @property
    def pulls(self) -> list[Spring]:
        """The springs that pull now."""
        return list(self._springs.values())

    def pull(self, owner: Hashable, name: Hashable, vertex: int, to: np.ndarray) -> None:
        """Pull a surface vertex towards `to` (3,) metres; the same name again moves the hand."""
        to = _point(to)
        spring = self._springs.get((owner, name))
        if spring is not None and spring.grip.vertex == vertex:
            spring.to = to
            return
        if spring is None and len(self._springs) >= MOST_PULLS:
            raise InputError(f"at most {MOST_PULLS} pulls at a time")
        self.release(owner, name)
        self._springs[owner, name] = self._spring(self._checked(vertex), to)

    def release(self, owner: Hashable, name: Hashable) -> None:
        """Let go of one pull; nothing where there is none."""
        spring = self._springs.pop((owner, name), None)
        if spring is not None:
            spring.grip.release()

    def poke(self, owner: Hashable, centre: np.ndarray | None, radius: float = 0.0) -> None:
        """Put a ball of `radius` metres at `centre` (3,); None takes it away."""
        if centre is None:
            if self._ball is not None and self._ball[0] == owner:
                self._ball = None
        else:
            least, most = (share * self._subject.size for share in POKE_RADIUS)
            self._ball = (owner, _point(centre), float(np.clip(radius, least, most)))

    def ground(self, on: bool) -> None:
        """Put a floor under the feet, or take it away."""
        if on and not hasattr(self._subject.simulation, "colliders"):
            raise InputError("only flesh on a rig can stand on the ground")
        self.has_ground = on

    def leave(self, owner: Hashable) -> None:
        """Whoever it was is gone."""
        for key in [key for key in self._springs if key[0] == owner]:
            self.release(*key)
        if self._ball is not None and self._ball[0] == owner:
            self._ball = None

    def let_go(self) -> None:
        """Nothing touches any more; the floor stays."""
        for key in list(self._springs):
            self.release(*key)
        self._ball = None
        self._drop_ball_spring()

    def act(self, pose: np.ndarray) -> None:
        """Set forces and colliders for the coming frame, which goes to `pose` (P,)."""
        if self._subject.simulation is not self._simulation:
            self._renew()
        if hasattr(self._subject.simulation, "colliders"):
            self._collide()
        else:
            self._place_ball_spring()
        springs = [*self._springs.values(), *([self._ball_spring] if self._ball_spring else [])]
        if springs:
            self._falter()
            vertices = np.array([spring.grip.vertex for spring in springs])
            ahead, plain = self._subject.foresee(pose, vertices)
            for spring, x, without in zip(springs, ahead, plain, strict=True):
                spring.act(x, without, LONGEST * self._subject.size)

    def _spring(self, vertex: int, to: np.ndarray) -> Spring:
        return Spring(self._subject.grip(vertex), to)

    def _renew(self) -> None:
        """The subject has another simulation: take hold of it as of the old one."""
        self._simulation = self._subject.simulation
        for key, spring in list(self._springs.items()):
            spring.grip.release()  # also of the old one: a body keeps its grips through a change of modes
            self._springs[key] = self._spring(spring.grip.vertex, spring.to)
        self._drop_ball_spring()

    def _falter(self) -> None:
        """Pull less where the flesh could not bear it in the last frame."""
        counters = getattr(self._simulation, "counters", {})
        mended = counters.get("decayed", 0) + counters.get("halved", 0)
        if mended > self._mended:
            for spring in self._springs.values():
                spring.stiffness *= FALTERING
        self._mended = mended

    def _collide(self) -> None:
        colliders: list[Collider] = []
        if self.has_ground:
            low = float(self._subject.geometry().bounds[0, 1])
            colliders.append(Plane((0.0, low, 0.0), (0.0, 1.0, 0.0), FRICTION))
        if self._ball is not None:
            colliders.append(Sphere(self._ball[1], self._ball[2]))
        if colliders or self._subject.simulation.colliders:
            self._subject.simulation.colliders = colliders

    def _place_ball_spring(self) -> None:
        """Where nothing collides, a ball pushes the deepest vertex out of itself."""
        if self._subject.simulation is None or self._ball is None:
            self._drop_ball_spring()
            return
        _, centre, radius = self._ball
        arms = self._subject.newest_positions().astype(np.float64) - centre
        distances = np.linalg.norm(arms, axis=1)
        if self._ball_spring is None:
            deepest = int(distances.argmin())
            if distances[deepest] >= radius:
                return
            self._ball_spring = self._spring(deepest, centre)
        spring = self._ball_spring
        vertex = spring.grip.vertex
        if distances[vertex] > 1.05 * radius:  # a vertex that came out by itself is not held back
            self._drop_ball_spring()
            return
        # Only half of the way is followed where the flesh is firm: aim beyond the ball's skin by as much.
        away = 2.0 * radius - min(distances[vertex], radius)
        spring.to = centre + away * arms[vertex] / max(distances[vertex], 1e-9)

    def _drop_ball_spring(self) -> None:
        if self._ball_spring is not None:
            self._ball_spring.grip.release()
            self._ball_spring = None

    def _checked(self, vertex: int) -> int:
        count = len(self._subject.geometry().rest)
        return int(require_indices([vertex], count, "surface vertices")[0])


def _point(value: np.ndarray) -> np.ndarray:
    point = np.array(value, dtype=np.float64)
    if point.shape != (3,):
        raise InputError(f"a place has three numbers, not {point.shape}")
    require_finite(point, "place")
    return point
