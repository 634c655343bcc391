"""Penalty contact of the soft surface with colliders, stable at the inner rate.

A few hundred surface points are watched. One that touches a collider feels, along the way out and never pulling,
    f = k depth − c (speed outwards) + λ,
with the depth it would have at the end of the coming step, and friction against its sliding, at most `friction`·f. λ
follows f slowly: it is what has to be held, so that k need not be stiff for a body at rest to sink in less.

Forces are explicit in time, so k has a bound: all touching points pressed at once must not move faster than ωh =
`STIFFEST`. With k_s = κ m_s, m_s the mass point s stands for, ω² is the largest eigenvalue of κDBᵀ, B_s = √m_s J_s L⁻ᵀ;
J_s takes modes to point s, LLᵀ = M̂ with what goes along with the modes, and D_s is J_s with what follows them: it is
where points are, and forces act on the modes. It is at most the largest sum of ‖D_s B_tᵀ‖ over touching t, which no
rotation of the flesh changes: κ = (STIFFEST/h)² / max_s Σ_t ‖D_s B_tᵀ‖, or with B in place of D where that is more.
With a few of many modes D_s can point elsewhere than B_s, and a point be pushed in by its own force; the bound holds
all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial import cKDTree

from softrig.dynamics import Rayleigh
from softrig.models.pose_space import PoseSpaceModel
from softrig.simulation.colliders import Collider

POINTS = 200
"""Surface points that feel colliders."""
STIFFEST = 0.45
"""ωh of the fastest contact motion; with the damping below, a step loses its stability at 0.55."""
CONTACT_DAMPING = 0.35
"""Share of critical damping of a contact: it must not bounce by itself."""
HOLD = 0.8
"""How fast λ follows f, over the slowest damping rate α of the flesh. Anything faster than α could swing by itself: the
third-order system of mass, spring and λ loses its stability where λ outruns the damping."""
FADE = 0.1
"""How fast λ fades, over how fast it follows: held for long, a contact is 1 + 1/FADE times as stiff, not infinitely."""
DEEPEST = 0.05
"""Character sizes: deeper points are pushed no harder, so that no pose a user makes can throw the flesh about."""
NEAR = 0.1
"""Character sizes: points further than this from every collider at a frame's start are not watched in its steps."""

Displacements = Callable[[np.ndarray], np.ndarray]


class ContactState(NamedTuple):
    """What is remembered between steps."""

    rest: np.ndarray
    before: np.ndarray
    held: np.ndarray


class ContactPoints:
    """The watched points of one model, their stiffness, and the forces on them.

    Where a point is: on the drawn surface, which goes straight from frame to frame, plus the displacement of its flesh.
    `displacements`, where a method asks for it, gives those (k, 3) of tet vertices (k,), metres, at the present.
    """

    def __init__(self, model: PoseSpaceModel, rate: float, damping: Rayleigh) -> None:
        self._rate = rate
        self.damping = damping
        self._size = model.size
        self.vertices = points = _sample(model)
        """(s,) surface vertices."""
        self._nodes, self._weights = model.embedding_nodes[points], model.embedding_weights[points]
        self._mass = _patch_masses(model, np.einsum("sa,sak->sk", self._weights, model.vertices[self._nodes]))
        self._couplings = _couplings(model, self._nodes, self._weights, self._mass)
        self._watched = np.zeros(0, np.int64)
        self._start = np.zeros((len(points), 3))
        self._rest = np.full((len(points), 3), np.nan)
        self._before = np.full((len(points), 3), np.nan)
        self._held = np.zeros((0, len(points)))

    def place(self, rest: np.ndarray) -> None:
        """The pose jumped so that the points rest at (s, 3), metres: speeds and what was held start anew."""
        self._rest[:] = rest
        self._before[:] = np.nan
        self._held[:] = 0.0

    def frame(self, colliders: Sequence[Collider], rest: np.ndarray, displacements: Displacements) -> None:
        """Begin a frame that takes the points' rest to (s, 3), metres; chooses those near a collider for its steps."""
        if np.isnan(self._rest).any():
            self.place(rest)
        self._start[:] = self._rest
        self._rest[:] = rest
        offsets = np.einsum("sa,sak->sk", self._weights, displacements(self._nodes.ravel()).reshape(-1, 4, 3))
        near = np.zeros(len(rest), dtype=bool)
        for collider in colliders:
            for points in (self._start, self._rest):
                near |= collider.distances(points + offsets)[0] < NEAR * self._size
        self._watched = np.flatnonzero(near)
        self._before[~near] = np.nan
        if len(self._held) != len(colliders):
            self._held = np.zeros((len(colliders), len(rest)))
        self._held[:, ~near] = 0.0

    def state(self) -> ContactState:
        """A copy of what is remembered between frames."""
        return ContactState(self._rest.copy(), self._before.copy(), self._held.copy())

    def restore(self, state: ContactState) -> None:
        """Go on exactly as after `state`."""
        self._rest, self._before, self._held = (array.copy() for array in state)

    def loads(
        self, colliders: Sequence[Collider], displacements: Displacements, share: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tet vertices (k,) and forces (k, 3), newton, for the step that begins `share` of the way into the frame."""
        watched = self._watched
        nodes, weights = self._nodes[watched], self._weights[watched]
        if len(watched) == 0:
            return np.zeros(0, np.int32), np.zeros((0, 3))
        points = np.einsum("sa,sak->sk", weights, displacements(nodes.ravel()).reshape(-1, 4, 3))
        points += self._start[watched] + share * (self._rest[watched] - self._start[watched])
        # A point that was not watched in the last step has no speed yet.
        speeds = np.nan_to_num((points - self._before[watched]) * self._rate)
        self._before[watched] = points
        forces = np.zeros_like(points)
        for collider, held in zip(colliders, self._held, strict=True):
            forces += self._forces(collider, points, speeds, held)
        pushed = forces.any(axis=1)
        spread = weights[pushed][:, :, None] * forces[pushed][:, None]
        carrying = weights[pushed] != 0.0
        return nodes[pushed][carrying], spread[carrying]

    def _forces(self, collider: Collider, points: np.ndarray, speeds: np.ndarray, held: np.ndarray) -> np.ndarray:
        """(k, 3) newton of one collider on the watched points (k, 3) with speeds (k, 3); λ in `held` (s,) follows."""
        distances, outwards = collider.distances(points)
        leaving = np.einsum("si,si->s", speeds, outwards)
        # Where the point will be when the force acts: what acts on an old place feeds energy into the contact.
        depths = np.minimum(-(distances + leaving / self._rate), DEEPEST * self._size)
        hold = held[self._watched]
        touching = (depths > 0.0) | (hold > 0.0)
        if not touching.any():
            return np.zeros_like(points)
        stiffness = self._stiffness(self._watched[touching])
        mass = self._mass[self._watched]
        damping = 2.0 * CONTACT_DAMPING * np.sqrt(stiffness) * mass
        most = stiffness * mass * DEEPEST * self._size
        press = np.clip(stiffness * mass * depths - damping * leaving + hold, 0.0, most) * touching
        follow = min(HOLD * self.damping.mass / self._rate, 0.1)
        held[self._watched] = hold + follow * (press - (1.0 + FADE) * hold)
        forces = press[:, None] * outwards
        if collider.friction > 0.0:
            sliding = speeds - leaving[:, None] * outwards
            lengths = np.linalg.norm(sliding, axis=1)
            # No more than brakes within a few steps, or friction would itself throw the point back.
            brake = np.minimum(collider.friction * press, damping * lengths)
            forces -= (brake / np.maximum(lengths, 1e-12))[:, None] * sliding
        return forces

    def _stiffness(self, touching: np.ndarray) -> float:
        """κ, 1/s², for the points that touch."""
        bound = self._couplings[np.ix_(touching, touching)].sum(axis=1).max()
        return (STIFFEST * self._rate) ** 2 / max(float(bound), 1e-12)


def _sample(model: PoseSpaceModel) -> np.ndarray:
    """Surface vertices whose flesh can move, each the farthest from those before it; the first is farthest out."""
    soft = (model.embedding_weights != 0.0) & ~model.fixed[model.embedding_nodes]
    candidates = np.flatnonzero(soft.any(axis=1))
    rest = np.einsum("sa,sak->sk", model.embedding_weights, model.vertices[model.embedding_nodes])[candidates]
    chosen: list[int] = []
    if len(candidates):
        distances = np.linalg.norm(rest - rest.mean(axis=0), axis=1)
        for _ in range(min(POINTS, len(candidates))):
            index = int(distances.argmax())
            if chosen and distances[index] <= 0.0:
                break
            gaps = np.linalg.norm(rest - rest[index], axis=1)
            distances = np.minimum(distances, gaps) if chosen else gaps
            chosen.append(index)
    return candidates[chosen]


def _patch_masses(model: PoseSpaceModel, points: np.ndarray) -> np.ndarray:
    """(s,) kilogram: the mass of the free tet vertices nearest to each point; at least a thousandth of the mean."""
    if len(points) == 0:
        return np.zeros(0)
    free = np.flatnonzero(~model.fixed)
    nearest = cKDTree(points).query(model.vertices[free])[1]
    mass = np.bincount(nearest, model.vertex_mass[free], len(points))
    return np.maximum(mass, 1e-3 * mass.mean())


def _couplings(model: PoseSpaceModel, nodes: np.ndarray, weights: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(s, s) the norms ‖D_s B_tᵀ‖ of the module's docstring, at the first pose; ‖B_s B_tᵀ‖ where it is larger."""
    if not len(mass):
        return np.zeros((0, 0))
    L = cholesky(model.moved_mass[0, 0], lower=True)
    sides = []
    for shapes in (model.shapes[0], model.drawn_shapes(model.poses.parameters[0])):
        J = np.einsum("sa,sakr->skr", weights, shapes[nodes]) * np.sqrt(mass)[:, None, None]
        sides.append(solve_triangular(L, J.reshape(-1, J.shape[2]).T, lower=True).T)
    blocks = np.stack(sides) @ sides[0].T
    norms = np.linalg.norm(blocks.reshape(2, len(mass), 3, len(mass), 3).transpose(0, 1, 3, 2, 4), ord=2, axis=(3, 4))
    return np.asarray(norms.max(axis=0))
