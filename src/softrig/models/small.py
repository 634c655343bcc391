"""The unreduced simulation of a small body, compiled: the step of `FullSimulation` without what small calls cost.

A body of some hundred tets has little to compute, and a step put together from array operations and a sparse solver
spends most of its time in between. Here the whole step is one compiled function, with the matrix in an envelope
(`kernels/envelope.py`): its time is that of forces, stiffness and factorisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from softrig.dynamics import Rayleigh, State, require_step, step_constants
from softrig.errors import InputError, SolverError
from softrig.fem.laws import law_code
from softrig.models.kernels.envelope import envelope_starts
from softrig.models.kernels.pose_space_elements import LANES, WORK
from softrig.models.kernels.small_forces import SCRATCH
from softrig.models.kernels.small_motion import skin_motion
from softrig.models.kernels.small_step import DIVERGED, INDEFINITE, PROJECTED, advance
from softrig.models.kernels.small_tables import (
    CORNER_PAIRS,
    GRAVITY,
    INERTIA,
    ROWS,
    SAG_FREE,
    STEP,
    A,
    Q,
    SmallBody,
    SmallMemory,
    SmallRig,
    V,
)
from softrig.models.moving import per_pose
from softrig.models.tet_motion import SkinCarriers, carrier_values, tet_carriers

if TYPE_CHECKING:
    from softrig.models.pose_space import PoseSpaceModel

MOST_UNKNOWNS = 3000
"""Free unknowns up to which the envelope was seen to be quicker than a general sparse solver."""

TOO_MANY = 10_000
"""Its envelope, of 400 MB at the worst, is not made."""


def is_small(model: PoseSpaceModel) -> bool:
    """Whether the full body of a model is small enough for `SmallSimulation`."""
    return 3 * int((~model.fixed).sum()) <= MOST_UNKNOWNS


class SmallSimulation:
    """Pose-space dynamics without reduction, compiled; `FullSimulation` with one Newton iteration a step.

    Arguments as there. Each step solves once, also where nothing moves; forces from outside other than gravity are not
    taken.
    """

    def __init__(
        self,
        model: PoseSpaceModel,
        young: float | np.ndarray,
        poisson: float | np.ndarray,
        *,
        rate: float = 180.0,
        method: str = "newmark",
        damping: Rayleigh | None = None,
        inertia_scale: float = 1.0,
        gravity: tuple[float, float, float] | np.ndarray = (0.0, -9.81, 0.0),
        sag_free: bool = True,
    ) -> None:
        unknowns = 3 * int((~model.fixed).sum())
        if unknowns > TOO_MANY:
            raise InputError(f"{unknowns:,} unknowns in one envelope, at most {TOO_MANY:,}: use FullSimulation")
        poses, tets = len(model.tet_rig.corrections), len(model.tets)
        fields = per_pose(young, poses, tets, "Young's modulus"), per_pose(poisson, poses, tets, "Poisson ratio")
        damping, step = damping or Rayleigh(), require_step(1.0 / rate)
        self.model = model
        self.carriers = tet_carriers(model)
        self.projected = 0
        """Steps so far that had to be solved with semidefinite Hessians."""
        self._order, self._free = _vertex_order(model)
        self._body = _body(model, self._order, self._free, *fields)
        self._rig = _rig(self.carriers, self._order) if isinstance(self.carriers, SkinCarriers) else None
        settings = np.array(
            [*step_constants(method, step), step, damping.mass, damping.stiffness, inertia_scale, *gravity, sag_free]
        )
        bones = 1 if self._rig is None else (self.carriers.size - poses) // 12
        self._memory = _memory(settings, self._body, len(self._order), poses, bones)
        self._z: np.ndarray | None = None
        self._time = 0.0

    @property
    def size(self) -> int:
        """Free unknowns."""
        return 3 * self._free

    @property
    def state(self) -> State:
        """u of the free vertices and its rates, (3·free,) each, in the order of the model's vertices."""
        free = ~self.model.fixed
        q, v, a = (self._given(self._memory.state[row])[free].ravel() for row in (Q, V, A))
        return State(q, v, a, self._time)

    def carriers_at(self, p: np.ndarray) -> np.ndarray:
        """(Z,) the carrier values at rig parameters p (P,)."""
        return carrier_values(self.model, p)

    def place(self, z: np.ndarray) -> None:
        """Take the carrier values z as the current pose with zero rates; displacements go with the vertex frames."""
        motion = self.carriers.motion(z, np.zeros_like(z), np.zeros_like(z))
        turn = motion.rotations
        if self._z is not None:
            turn = turn @ np.swapaxes(self._rotations(self._z), 1, 2)
        self._z = np.array(z, dtype=np.float64)
        self._memory.positions[:] = motion.positions[self._order]
        for row in (Q, V, A):
            self._memory.state[row] = np.einsum("nij,nj->ni", turn[self._order], self._memory.state[row])

    def step(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> None:
        """One step of 1/rate second that ends at these carrier values, rates per second and per second².

        Raises `SolverError`, and the state is what it was, where the step has no finite solution.
        """
        if self._rig is None:
            self._move_by_rig(z, zdot, zddot)
        else:
            z, zdot, zddot = (np.ascontiguousarray(part, dtype=np.float64) for part in (z, zdot, zddot))
            for part in (z, zdot, zddot):
                if part.shape != (self.carriers.size,):
                    raise InputError(f"carrier values and rates have shape {part.shape}, not ({self.carriers.size},)")
            skin_motion(self._rig, self._body.mass, self._memory, z, zdot, zddot)
        outcome = advance(self._body, self._memory)
        if outcome in (INDEFINITE, DIVERGED):
            if self._z is not None:
                still = np.zeros_like(self._z)
                self._memory.positions[:] = self.carriers.motion(self._z, still, still).positions[self._order]
            why = "diverged" if outcome == DIVERGED else "has a matrix that is not positive definite"
            raise SolverError(f"the step at {self._time:.6g} s {why}: try a smaller step")
        self.projected += outcome == PROJECTED
        self._z = z.copy()
        self._time += self._memory.settings[STEP]

    def reset(self) -> None:
        """Undeformed and still, where it stands."""
        self._memory.state[:] = 0.0

    def displacements(self) -> np.ndarray:
        """(n, 3) u in the world, metres."""
        return self._given(self._memory.state[Q])

    def positions(self) -> np.ndarray:
        """(n, 3) deformed tet vertices x + u after a step, metres."""
        return self._given(self._memory.positions + self._memory.state[Q])

    def _given(self, field: np.ndarray) -> np.ndarray:
        """A field (n, 3) in the order of the model's vertices."""
        given = np.empty_like(field)
        given[self._order] = field
        return given

    def _rotations(self, z: np.ndarray) -> np.ndarray:
        return self.carriers.motion(z, np.zeros_like(z), np.zeros_like(z)).rotations

    def _move_by_rig(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> None:
        """What `skin_motion` writes, of a rig without bones."""
        memory, motion = self._memory, self.carriers.motion(z, zdot, zddot)
        free = self._order[: self._free]
        memory.positions[:] = motion.positions[self._order]
        memory.spin[:] = motion.spin[free]
        settings = memory.settings
        felt = motion.felt(settings[GRAVITY : GRAVITY + 3], settings[INERTIA], sag_free=bool(settings[SAG_FREE]))
        memory.load[:] = self._body.mass[:, None] * felt[free]
        memory.positive[:] = motion.positive_weights


def _vertex_order(model: PoseSpaceModel) -> tuple[np.ndarray, int]:
    """(n,) the vertices, free ones first so that neighbours are near each other, and how many are free."""
    free = np.flatnonzero(~model.fixed)
    if not len(free):
        raise InputError("all vertices are on the bones: nothing can move")
    place = np.full(len(model.vertices), -1)
    place[free] = np.arange(len(free))
    pairs = place[model.tets[:, [0, 0, 0, 1, 1, 2, 1, 2, 3, 2, 3, 3]]].reshape(len(model.tets), 2, 6)
    one, two = pairs[:, 0].ravel(), pairs[:, 1].ravel()
    kept = (one >= 0) & (two >= 0)
    both = np.concatenate([one[kept], two[kept]]), np.concatenate([two[kept], one[kept]])
    graph = csr_array((np.ones(2 * int(kept.sum())), both), shape=(len(free),) * 2)
    near = free[reverse_cuthill_mckee(graph, symmetric_mode=True)]
    return np.concatenate([near, np.flatnonzero(model.fixed)]), len(free)


def _body(model: PoseSpaceModel, order: np.ndarray, free: int, young: np.ndarray, poisson: np.ndarray) -> SmallBody:
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    tets = np.sort(number[model.tets], axis=1)
    moved = np.flatnonzero(tets[:, 0] < free)  # a tet on the bones alone pulls at nothing
    firsts = np.arange(free)
    for a in range(1, 4):
        rows = tets[:, a] < free
        np.minimum.at(firsts, tets[rows, a], tets[rows, 0])
    starts = envelope_starts(firsts)
    chunks = -(-len(moved) // LANES)
    # Empty lanes repeat the first tet with no volume: everything stays finite and nothing is added.
    filled = np.concatenate([moved, np.full(chunks * LANES - len(moved), moved[0])])
    corners = tets[filled]
    points = model.vertices[order]
    edges = np.swapaxes(points[corners[:, 1:]] - points[corners[:, :1]], 1, 2)
    volumes = np.abs(np.linalg.det(edges)) / 6.0
    volumes[len(moved) :] = 0.0
    mass = np.asarray(model.vertex_mass, dtype=np.float64)[order[:free]]
    if not (mass > 0.0).all():
        raise InputError("free vertices need a positive mass", order[:free][~(mass > 0.0)])
    places = np.full((len(filled), CORNER_PAIRS), -1)
    for a in range(4):
        for b in range(a + 1):
            both = corners[:, a] < free  # corners rise, so the other one is free as well
            row, column = corners[both, a], corners[both, b]
            places[both, a * (a + 1) // 2 + b] = starts[row] + 3 * (column - firsts[row])
    kinds = max(len(young), len(poisson))
    of_young, of_poisson = (np.broadcast_to(field, (kinds, field.shape[1]))[:, filled] for field in (young, poisson))
    return SmallBody(
        law_code(model.law),
        _lanes(corners.T).astype(np.int32),
        _lanes(places.T),
        _lanes(edges.reshape(-1, 9).T).reshape(chunks, -1),
        _lanes(np.linalg.inv(edges).reshape(-1, 9).T).reshape(chunks, -1),
        _lanes(volumes[None])[:, 0].copy(),
        np.ones((chunks, kinds, LANES)),
        _lanes(of_young),
        _lanes(of_poisson),
        np.ones((chunks, LANES)),
        mass,
        firsts,
        starts,
    )


def _lanes(table: np.ndarray) -> np.ndarray:
    """(chunks, k, LANES) of a table (k, chunks · LANES)."""
    return np.ascontiguousarray(table.reshape(len(table), -1, LANES).transpose(1, 0, 2))


def _rig(carriers: SkinCarriers, order: np.ndarray) -> SmallRig:
    weights = csr_array(carriers.weights[order])
    rows = np.repeat(np.arange(len(order)), np.diff(weights.indptr))
    by_weight = np.lexsort((weights.indices, -weights.data, rows))
    return SmallRig(
        -1 if carriers.root_frame is None else carriers.root_frame,
        weights.indptr.astype(np.int32),
        weights.indices[by_weight].astype(np.int32),
        weights.data[by_weight].astype(np.float64),
        carriers.vertices[order],
        np.ascontiguousarray(carriers.corrections[:, order].transpose(1, 0, 2)),
        np.arange(len(order)),
    )


def _memory(settings: np.ndarray, body: SmallBody, count: int, poses: int, bones: int) -> SmallMemory:
    chunks, free = len(body.corners), len(body.mass)
    return SmallMemory(
        settings,
        state=np.zeros((ROWS, count, 3)),
        positions=np.zeros((count, 3)),
        load=np.zeros((free, 3)),
        spin=np.zeros((free, 3)),
        w=np.zeros(poses),
        positive=np.zeros(poses),
        whole=np.ones(1),
        turns=np.zeros((bones, 3, 3)),
        quaternions=np.zeros((bones, 4)),
        rates=np.zeros((bones, 4)),
        gradients=np.zeros((chunks, 9 * LANES)),
        factors=np.zeros((chunks, LANES)),
        lame=np.zeros((chunks, 2, LANES)),
        residual=np.zeros(3 * free),
        matrix=np.zeros(int(body.starts[-1])),
        lanes=np.zeros(SCRATCH),
        work=np.zeros(WORK),
    )
