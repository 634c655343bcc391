"""The flower as SUB11 Figures 3, 5, 7 and 8 have it: pulled, pulled at one place, swinging, and at its seams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from softrig.bench.substructured_truth import STEP
from softrig.bodies.divided import DividedBody
from softrig.bodies.flower import flower
from softrig.dynamics import Rayleigh
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure

DAMPING = Rayleigh(0.3, 0.002)
PULLED = "side stem"
FORCE = np.array([0.30, -0.20, -0.20])
"""Newton, at the end of the side stem."""
RISE, HELD = 0.5, 0.9
"""Seconds until the force is whole, and until it is gone."""


@cache
def flower_body() -> DividedBody:
    """The flower; made once a run."""
    return flower()


@cache
def flower_model() -> SubstructuredModel:
    """With 20 modes a domain; made once a run."""
    return substructure(flower_body())


@dataclass(frozen=True, eq=False)
class Pull:
    """A force at a few vertices of a domain that grows, stays and lets go."""

    vertices: np.ndarray
    """(k,) of the whole mesh, which are the model's drawn ones."""
    own: np.ndarray
    """(k,) of the domain's shape."""
    domain: str
    force: np.ndarray
    """(3,) newton, all of it."""

    def strength(self, seconds: float) -> float:
        """From 0 to 1, of the force."""
        return min(seconds / RISE, 1.0) if seconds < HELD else 0.0

    def apply(self, simulation: SubstructuredSimulation, seconds: float) -> None:
        """What the simulation feels at that moment."""
        simulation.clear_forces()
        strength = self.strength(seconds)
        if strength > 0.0:
            forces = np.tile(strength / len(self.own) * self.force, (len(self.own), 1))
            simulation.pull(self.domain, self.own, forces)

    def field(self, count: int, seconds: float) -> np.ndarray:
        """(count, 3) newton, of the whole mesh."""
        forces = np.zeros((count, 3))
        forces[self.vertices] = self.strength(seconds) / len(self.vertices) * self.force
        return forces


def pull_at_the_end(model: SubstructuredModel, domain: str, force: np.ndarray, count: int = 9) -> Pull:
    """A pull at the `count` vertices of a domain that are farthest from where it is held."""
    number = model.domain(domain)
    simulation = SubstructuredSimulation(model, STEP)
    drawn = model.drawn[model.vertex_starts[number] : model.vertex_starts[number + 1]]
    away = np.linalg.norm(simulation.positions()[drawn] - simulation.frames()[0][number], axis=1)
    own = np.sort(np.argsort(-away)[:count])
    return Pull(drawn[own], own, domain, force)


def deviations(model: SubstructuredModel, q: np.ndarray) -> np.ndarray:
    """(d - 1,) ‖A − R‖_F of every interface at coordinates q (r̂,): how far from rigid it is (SUB11 Eq. 5)."""
    found = []
    for domain in model.domains[1:]:
        own = q[model.starts[domain.parent] : model.starts[domain.parent + 1]]
        stretches = np.linalg.svd(np.eye(3) + np.tensordot(own, domain.slopes, axes=1), compute_uv=False)
        found.append(np.linalg.norm(stretches - 1.0))
    return np.array(found)


@dataclass(frozen=True, eq=False)
class Pulled:
    """A pulled flower over time."""

    times: np.ndarray
    """(f,) seconds."""
    places: np.ndarray
    """(f, m, 3) metres."""
    deviations: np.ndarray
    """(f, d - 1)."""
    rest: np.ndarray
    """(m, 3) metres."""


def pulled(model: SubstructuredModel, pull: Pull, steps: int) -> Pulled:
    """So many steps of the model under a pull."""
    simulation = SubstructuredSimulation(model, STEP, damping=DAMPING)
    rest = simulation.positions()
    places, apart = np.empty((steps, *rest.shape)), np.empty((steps, len(model.domains) - 1))
    for i in range(steps):
        pull.apply(simulation, (i + 1) * STEP)
        simulation.step()
        places[i] = simulation.positions()
        apart[i] = deviations(model, simulation.q)
    return Pulled(STEP * np.arange(1, steps + 1), places, apart, rest)
