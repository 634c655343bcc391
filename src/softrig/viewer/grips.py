"""Holds on a patch of flesh around a vertex: of a character, and of a plain body."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softrig.errors import InputError, require_indices
from softrig.models.reduced import ReducedBody
from softrig.simulation.pulls import DEFAULT_RADIUS

if TYPE_CHECKING:
    from softrig.viewer.body import SoftBody
    from softrig.viewer.character import SoftCharacter


class CharacterGrip:
    """A hold on the flesh of a character."""

    def __init__(self, subject: SoftCharacter, vertex: int, radius: float | None) -> None:
        self._owner = subject.simulation
        self._pull = subject.simulation.pull(vertex, np.zeros(3), radius)
        self.vertex = vertex
        self.nodes, self.weights = self._pull.vertices, self._pull.weights
        try:
            self.compliance = subject.probe(self._pull, vertex)
        except Exception:
            self._pull.release()
            raise

    def push(self, force: np.ndarray) -> None:
        """Pull with `force` (3,) newton."""
        self._pull.force = force

    def release(self) -> None:
        """Let go."""
        self._pull.release()


class BodyGrip:
    """A hold on a plain body."""

    def __init__(self, subject: SoftBody, vertex: int, radius: float | None) -> None:
        self._subject = subject
        self.vertex = vertex
        self.nodes, self.weights = body_patch(
            subject.model, vertex, DEFAULT_RADIUS * subject.size if radius is None else radius
        )
        self.force = np.zeros(3)
        """(3,) newton, as shown."""
        self.reduced = np.zeros(subject.simulation.model.size)
        axes = np.stack([self._reduced(axis) for axis in np.eye(3)])
        self.compliance = subject.probe(axes, vertex)
        subject.grips.append(self)

    def push(self, force: np.ndarray) -> None:
        """Pull with `force` (3,) newton."""
        self.force = np.array(force, dtype=np.float64)
        self.renew()

    def release(self) -> None:
        """Let go."""
        if self in self._subject.grips:
            self._subject.grips.remove(self)

    def node_forces(self) -> np.ndarray:
        """(k, 3) newton at `nodes`, in the body's own axes."""
        return self.weights[:, None] * (self._subject.turn.T @ self.force)

    def renew(self) -> None:
        """The same force in the modes that there are now."""
        self.reduced = self._reduced(self.force)

    def _reduced(self, force: np.ndarray) -> np.ndarray:
        forces = self.weights[:, None] * (self._subject.turn.T @ force)
        return self._subject.simulation.model.reduced_force(self.nodes, forces)


def body_patch(model: ReducedBody, vertex: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Volume vertices (k,) around a drawn vertex and their shares (k,) of a force, as `simulation.pulls.patch`."""
    vertex = int(require_indices([vertex], len(model.surface_rest), "drawn vertices")[0])
    moving = np.flatnonzero(model.basis.reshape(len(model.vertices), -1).any(axis=1))
    if len(moving) == 0:
        raise InputError("nothing of this body moves", [vertex])
    distances = np.linalg.norm(model.vertices[moving] - model.surface_rest[vertex], axis=1)
    near = distances < radius
    if not near.any():  # a coarse mesh: the vertex that is nearest
        return moving[[distances.argmin()]], np.ones(1)
    shares = (1.0 - (distances[near] / radius) ** 2) ** 2
    return moving[near], shares / shares.sum()
