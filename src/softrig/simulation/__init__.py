"""Poses in, soft vertices out: frames of any rate, pulls, wind, colliders, and bakes of whole clips."""

from softrig.simulation.baking import Bake, BakeReport
from softrig.simulation.colliders import Capsule, Collider, Plane, Sphere
from softrig.simulation.damping import Damping
from softrig.simulation.live import Simulation, SimulationState
from softrig.simulation.multi_domain import MultiDomainSimulation
from softrig.simulation.pulls import Pull

__all__ = [
    "Bake",
    "BakeReport",
    "Capsule",
    "Collider",
    "Damping",
    "MultiDomainSimulation",
    "Plane",
    "Pull",
    "Simulation",
    "SimulationState",
    "Sphere",
]
