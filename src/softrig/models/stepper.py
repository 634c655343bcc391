"""A pose-space model in motion: carrier values in, modal coordinates and vertices out; one compiled call a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softrig.dynamics import IMPLICIT_METHODS, Rayleigh, require_step
from softrig.errors import InputError, require_finite, require_indices, require_vectors
from softrig.models.kernels import pose_space_chunks
from softrig.models.kernels import pose_space_layout as layout
from softrig.models.kernels import pose_space_tables as tables
from softrig.models.kernels.following import follow
from softrig.models.kernels.pose_space_packed import step_tables
from softrig.models.kernels.pose_space_pose import rest_positions
from softrig.models.kernels.pose_space_prepare import place
from softrig.models.kernels.pose_space_shapes import add_local_displacements, turn_vectors
from softrig.models.kernels.pose_space_step import step
from softrig.models.pose_drive import observed_vertices, pose_drive
from softrig.models.pose_settling import settled_modes
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel
from softrig.models.pose_surface import Surface, followed_tables
from softrig.rig.protocol import Rig

LIMIT = 0.5
"""Of the character's size: a displacement beyond it is not sound."""
TURNS = 4
"""Turns in which the tangent stiffness of all tets has been made anew. It only steers the solver: the stiffness of a
map and the mass outweigh it by far, or there is a second iteration, and the force of the tets is always that of the
moment."""
STRAINED, LEAST_STRAINED, MOST_STRAINED = 0.02, 0.05, 0.2
"""Tets that have strained by more than this over γ, the share of them that counts, but within these bounds, have their
tangent made anew. Off steps that are solved to the end a gorilla's jump and an arm's bend, γ 0.1 and 0.2, are by
0.36 and 2.6 %; at 0.05 for both by 0.38 and 2.0, at 0.5 by 0.45 and 5.6."""
STALE = 0.01
"""By how much, RMS over the modes, of that at the first pose, the stiffness may lag before a flexibility is
inverted anew; single modes by several times that. A gorilla's walk, jump and beat err as with none at 0.01 and 0.02, by
0.3 points more at 0.05. Steps of which several iterations are asked have none."""
MOSTLY = 0.5
"""γ, the share of the tets' remainder that counts, beyond which a step is solved twice. Once, an arm of 200 modes and
a letter X of 100, γ 1, are 65 and 11 % off the full simulation as they bend, which their builds saw, twice 6 and 2, to
the end 5 and 2."""
GRAVITY = (0.0, -9.81, 0.0)
"""m/s²."""


class Snapshot(NamedTuple):
    """All that a stepper remembers of the motion."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    pose: np.ndarray
    """(Z,) carrier values of the pose."""
    mixing: np.ndarray
    """What the maps of stiffness and inertia made of it: the end of the carrier values."""
    counters: np.ndarray
    tangents: np.ndarray
    """(P, r, r) what the parts of the tets add to the stiffness: some of it of earlier steps."""
    then: np.ndarray
    """(chunks, 72) how far their edges had moved then."""
    strained: np.ndarray
    """(P,) and how much they have strained since, squared."""
    diagonal: np.ndarray
    """(r,) of the stiffness of the last step."""
    inverted_at: np.ndarray
    """(k,) the weights at which a flexibility was last inverted; none where it is the stiffness that is mixed."""
    inverse: np.ndarray
    """And what came of it."""
    scale: np.ndarray
    """(g,) the factors on the stiffness of the regions for which all of that holds."""
    age: int
    """Steps since all of that was made anew; 0: it must be."""


def bearable_strain(share: float) -> float:
    """By how much tets may strain before their tangent is made anew, if a `share` of them counts."""
    return float(np.clip(STRAINED / share, LEAST_STRAINED, MOST_STRAINED))


def enough_iterations(model: PoseSpaceModel) -> int:
    """How often a step of a model has to be solved, as a rule; bases mixed at every pose once, as in the paper."""
    return 2 if len(model.shapes) == 1 and model.cubature.beyond > MOSTLY else 1


class Stepper:
    """Steps a `PoseSpaceModel` at a fixed rate (hertz).

    `method`: "newmark" or "backward-euler"; `iterations` of Newton a step, by default `enough_iterations`; `modes`:
    fewer modes than the model has (level of detail). `inertia_scale` multiplies the rig's accelerations as the flesh
    feels them; not gravity, nor what turning frames do. `rig`: another rig of the same parameters. `turns`: unless
    several iterations are asked for, or one where tets hold the linear part, in so many turns all of them have had
    their tangent made anew, an equal part in each; 1 is Newton's method as it is written. A step never gives NaN: see
    `counters`.
    """

    def __init__(
        self,
        model: PoseSpaceModel,
        *,
        rig: Rig | None = None,
        rate: float = 180.0,
        method: str = "newmark",
        damping: Rayleigh | None = None,
        iterations: int | None = None,
        inertia_scale: float = 1.0,
        gravity: Sequence[float] | np.ndarray = GRAVITY,
        sag_free: bool = True,
        modes: int | None = None,
        turns: int = TURNS,
    ) -> None:
        if method not in IMPLICIT_METHODS:
            raise InputError(f"no implicit method called {method!r}; there are {', '.join(IMPLICIT_METHODS)}")
        if iterations is not None and iterations < 1:
            raise InputError(f"at least one Newton iteration a step, got {iterations}")
        if not (np.isfinite(rate) and rate > 0.0):
            raise InputError(f"steps a second must be positive, got {rate}")
        self._model = model = model if modes is None else model.with_modes(modes)
        self._rate, self._method = float(rate), method
        self._drive = pose_drive(model, rig or model.rig)
        self._runs = runs = layout.region_runs(model.region_of_mode)
        regions = layout.vertex_regions(model, runs)
        # Asked for, several are Newton's method as it is written; else a second goes on with the tangents of the first.
        # Those of earlier steps serve where there is a second, or where most of the stiffness is the map's.
        kept = iterations is not None and iterations > 1
        trials = enough_iterations(model) if iterations is None else iterations
        lasting = not kept and (trials > 1 or not model.cubature.holds_linear)
        parts = turns if lasting else 1
        self._chunks, self._members, vertices, bones, together = pose_space_chunks.chunks(
            model, runs, regions, kept, parts
        )
        self._sums = layout.sums(model, runs, together)
        gyro = layout.gyro(model, runs)
        self._rows = layout.rows(model, runs, regions)
        self._carriers = layout.carriers(model, observed_vertices(model), vertices)
        projections = layout.inertia_projection(model, runs), layout.mixed_projection(model.wind, runs)
        self._memory = layout.memory(
            model, self._chunks, self._sums, gyro, self._carriers, bones, projections, self._drive.size
        )
        self._fixed_tables = (self._carriers, bones, self._sums, gyro, *projections, self._chunks, self._rows)
        self._link()
        self._follower_rows = layout.follower_rows(model, self._rows)
        self._followed, self._following = followed_tables(model, self._follower_rows, self._memory)
        self._surface = Surface(model, rig or model.rig, self._rows, (self._followed, self._following), self._memory)
        settings, switches = self._memory.settings, self._memory.switches
        settings[tables.STEP] = require_step(1.0 / rate)
        settings[tables.LIMIT] = LIMIT * model.size
        settings[tables.TOLERANCE] = 1e-13
        settings[tables.STRAINED] = bearable_strain(model.cubature.beyond) ** 2
        switches[tables.EULER] = method == "backward-euler"
        switches[tables.ITERATIONS] = trials
        switches[tables.KEPT] = kept
        known = model.cubature.stiffness_map
        switches[tables.REMAINDER] = not model.cubature.holds_linear
        switches[tables.FLEXIBLE] = known is not None and known.flexible
        settings[tables.STALE] = 0.0 if kept else STALE
        self._stiffness_scale = np.ones(len(model.region_names))
        self._owners: np.ndarray | None = None
        self.damping = damping or Rayleigh()
        self.inertia_scale = inertia_scale
        self.gravity = np.asarray(gravity)
        self.sag_free = sag_free
        self._factors = np.zeros(max(len(model.shapes) * model.mode_count, model.follower_count))
        self.place(self.carriers(model.rig.parameters.rest))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_packed", "_mapped")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._link()

    def _link(self) -> None:
        """Make what looks into other arrays: a copy's must look into the copy's own."""
        memory, model = self._memory, self._model
        m = len(model.poses)
        self._memory = memory = memory._replace(
            w=memory.mixture[1 : 1 + m], turning=memory.load[model.load_count :].reshape(-1, m, 3)
        )
        # What the maps made of the pose, where the step reads it; either may be none.
        mixes = model.cubature.stiffness_map is not None
        self._mapped = memory.mixing[: None if mixes else 0], memory.mixture[1 + m :]
        self._whole = len(memory.pose) + sum(map(len, self._mapped))
        self._packed = step_tables(*self._fixed_tables, memory)

    # Settings

    @property
    def model(self) -> PoseSpaceModel:
        """The model, with the modes that are stepped."""
        return self._model

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self._rate

    @property
    def method(self) -> str:
        """Either "newmark" or "backward-euler"."""
        return self._method

    @property
    def damping(self) -> Rayleigh:
        """Rayleigh damping."""
        return self._damping

    @damping.setter
    def damping(self, value: Rayleigh) -> None:
        self._damping = value
        self._memory.settings[tables.ALPHA], self._memory.settings[tables.BETA] = value.mass, value.stiffness

    @property
    def inertia_scale(self) -> float:
        """Factor on the rig's accelerations as the flesh feels them, 1 is physical."""
        return float(self._memory.settings[tables.INERTIA])

    @inertia_scale.setter
    def inertia_scale(self, value: float) -> None:
        require_finite(np.asarray(value, dtype=np.float64), "inertia scale")
        self._memory.settings[tables.INERTIA] = value

    @property
    def gravity(self) -> np.ndarray:
        """(3,) m/s²."""
        at = tables.GRAVITY
        return self._memory.settings[at : at + 3].copy()

    @gravity.setter
    def gravity(self, value: Sequence[float] | np.ndarray) -> None:
        at = tables.GRAVITY
        self._memory.settings[at : at + 3] = require_vectors(value, 1, "gravity")[0]

    @property
    def sag_free(self) -> bool:
        """Whether only the change of gravity relative to the flesh acts: the sculpted shape already bears it."""
        return bool(self._memory.switches[tables.SAG_FREE])

    @sag_free.setter
    def sag_free(self, value: bool) -> None:
        self._memory.switches[tables.SAG_FREE] = bool(value)

    @property
    def wind(self) -> np.ndarray:
        """(3,) N/m², the same force on every square metre."""
        at = tables.WIND
        return self._memory.settings[at : at + 3].copy()

    @wind.setter
    def wind(self, value: Sequence[float] | np.ndarray) -> None:
        at = tables.WIND
        self._memory.settings[at : at + 3] = require_vectors(value, 1, "wind")[0]

    @property
    def stiffness_scale(self) -> np.ndarray:
        """(g,) factor on Young's modulus of each region; assign to change it."""
        return self._stiffness_scale.copy()

    @stiffness_scale.setter
    def stiffness_scale(self, value: Sequence[float] | np.ndarray) -> None:
        model = self._model
        scales = np.broadcast_to(np.asarray(value, dtype=np.float64), len(model.region_names)).copy()
        if not (np.isfinite(scales).all() and (scales > 0.0).all()):
            raise InputError("stiffness scales must be positive", np.flatnonzero(~(scales > 0.0)))
        self._stiffness_scale = scales
        if self._owners is None:  # a slider asks for it many times a second
            self._owners = pose_space_chunks.owners(model, self._runs)
        whole = np.array([name == WHOLE_BODY for name in model.region_names])
        if whole.any() and not whole.all():
            # What reaches everywhere is in everything; its own modes are as stiff as the body is on average.
            scales = np.where(whole, scales[~whole].mean(), scales) * float(scales[whole].prod())
        of_tet = scales[self._owners]
        self._chunks.scale[:] = of_tet[np.maximum(self._members, 0)]
        # √s on both sides of ΔK: within a region its factor, between two their mean, and it stays semidefinite.
        sides = np.sqrt(scales)[model.region_of_mode]
        factors = np.outer(sides, sides)
        parts = model.cubature.linear_parts * factors
        if (known := model.cubature.stiffness_map) is not None and known.flexible:
            softer = known.flexibilities
            parts[softer] = known.components[softer] / factors
            self._sums.firmest[:] = known.firmest * factors.diagonal()
        self._sums.stiffness[:] = layout.packed(parts, self._sums.segments)
        of_poses = model.cubature.stiffness_correction * factors
        positive = np.array([layout.positive_part(matrix) for matrix in of_poses])
        self._sums.stiffness_positive[:] = layout.packed(positive, self._sums.segments)
        self._forget()

    # State

    @property
    def q(self) -> np.ndarray:
        """(r,) modal coordinates, live."""
        return self._memory.state[0]

    @property
    def v(self) -> np.ndarray:
        """(r,) their rates, live."""
        return self._memory.state[1]

    @property
    def a(self) -> np.ndarray:
        """(r,) their accelerations, live."""
        return self._memory.state[2]

    @property
    def counters(self) -> dict[str, int]:
        """Steps, and how many of them needed semidefinite Hessians, smaller steps, or a decay."""
        return dict(zip(tables.COUNTERS, self._memory.counters.tolist(), strict=True))

    def snapshot(self) -> Snapshot:
        """A copy of the state."""
        q, v, a = self._memory.state.copy()
        memory = self._memory
        return Snapshot(
            q,
            v,
            a,
            memory.pose.copy(),
            np.concatenate(self._mapped),
            memory.counters.copy(),
            memory.tangents.copy(),
            memory.then.copy(),
            memory.strained.copy(),
            memory.stiffness.diagonal().copy(),
            memory.inverted_at.copy(),
            memory.inverse.copy(),
            self.stiffness_scale,
            int(memory.switches[tables.AGE]),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from `snapshot`, to the last bit; where the flesh has become stiffer or softer since, by that."""
        self._memory.state[:] = snapshot.q, snapshot.v, snapshot.a
        self._memory.counters[:] = snapshot.counters
        self.place(np.concatenate([snapshot.pose, snapshot.mixing]))
        self._memory.tangents[:], self._memory.then[:] = snapshot.tangents, snapshot.then
        self._memory.strained[:] = snapshot.strained
        np.fill_diagonal(self._memory.stiffness, snapshot.diagonal)
        self._memory.inverted_at[:], self._memory.inverse[:] = snapshot.inverted_at, snapshot.inverse
        self._memory.switches[tables.AGE] = snapshot.age
        if not np.array_equal(snapshot.scale, self._stiffness_scale):
            self._forget()

    # Motion

    def carriers(self, p: np.ndarray) -> np.ndarray:
        """(Z,) carrier values at rig parameters p (P,)."""
        return self._drive(p)

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """(m,) w at rig parameters p (P,)."""
        return self._drive.pose_weights(p)

    def place(self, z: np.ndarray) -> None:
        """Take carrier values z (Z,) as the pose, at rest, without stepping."""
        carriers, sums, memory = self._carriers, self._sums, self._memory
        place(
            self._taken(z),
            carriers.skin,
            carriers.sample,
            carriers.arms,
            sums.segments,
            sums.mass,
            memory.pose,
            memory.w,
            memory.positive,
            memory.basis,
            memory.turns,
            memory.quaternions,
            memory.mass,
            memory.upsilon,
            memory.pairs,
            memory.work,
        )

    def restart(self, z: np.ndarray) -> None:
        """The same, undeformed, and nothing is remembered of earlier steps."""
        self.place(z)
        self._memory.state[:] = 0.0
        self._forget()

    def _forget(self) -> None:
        """What earlier steps found of the stiffness is made anew by the next."""
        self._memory.switches[tables.AGE] = 0
        self._memory.inverted_at[:] = 0.0

    def step(self, z: np.ndarray, zdot: np.ndarray, zddot: np.ndarray) -> None:
        """One step of 1/rate seconds that ends at carrier values z (Z,) with rates zdot, 1/s, and zddot, 1/s²."""
        step(self._taken(z), self._checked(zdot), self._checked(zddot), True, self._packed)

    def _checked(self, z: np.ndarray) -> np.ndarray:
        """The carrier values that the compiled step reads: all but what the maps made of the pose."""
        z = np.ascontiguousarray(z, dtype=np.float64)
        if z.shape != (self._whole,):
            raise InputError(f"this model has {self._whole} carrier values, not {z.shape}")
        return z[: len(self._memory.pose)]

    def _taken(self, z: np.ndarray) -> np.ndarray:
        """The same, and what the maps made of the pose is taken to be what z says."""
        read = self._checked(z)
        weights, shares = self._mapped
        between = len(read) + len(weights)
        weights[:], shares[:] = z[len(read) : between], z[between:]
        return read

    def settle(self, z: np.ndarray, iterations: int = 50) -> float:
        """Static equilibrium at carrier values z (Z,) under gravity, wind and loads; rates become zero.

        Newton from q = 0, with positive semidefinite Hessians where the exact ones fail and halved steps until the
        residual falls. Returns what is left of the residual, over the loads: below 1e-9 where it converged.
        """
        z = self._taken(z)
        still = np.zeros_like(z)
        self._forget()
        step(z, still, still, False, self._packed)
        return settled_modes(self._sums, self._chunks, self._memory, iterations)

    def point_loads(self, vertices: np.ndarray, forces: np.ndarray) -> None:
        """Forces (k, 3), newton, world, at tet vertices (k,); kept until replaced, none: cleared."""
        vertices = require_indices(vertices, len(self._model.vertices), "loaded vertices")
        forces = require_vectors(forces, len(vertices), "point loads") if len(vertices) else np.zeros((0, 3))
        memory = self._memory
        if len(vertices) > len(memory.load_vertices):
            room = 2 * len(vertices)
            self._memory = memory._replace(
                load_vertices=np.zeros(room, np.int32),
                load_forces=np.zeros((room, 3)),
                load_rotations=np.zeros((room, 9)),
            )
            self._packed = step_tables(*self._fixed_tables, self._memory)
        self._memory.load_vertices[: len(vertices)] = vertices
        self._memory.load_forces[: len(vertices)] = forces
        self._memory.switches[tables.LOADS] = len(vertices)

    # Vertices

    def vertex_displacements(self, vertices: np.ndarray | None = None, *, followed: bool = True) -> np.ndarray:
        """(k, 3) metres: u of the named tet vertices, or of all, at the current pose; `followed`: with what follows the
        modes, as it is drawn, or as the step knows it."""
        chosen = self._chosen(vertices)
        out = np.zeros((len(chosen), 3))
        carriers, memory = self._carriers, self._memory
        q, factors = memory.state[0], self._factors
        add_local_displacements(chosen, *self._rows, q, memory.upsilon, memory.basis, factors, out)
        if followed and self._model.followers is not None:
            known, y = self._followed, self._following.y
            follow(q, memory.upsilon, memory.mixing, *self._following)
            add_local_displacements(chosen, *self._follower_rows, y, known.scales, known.basis, factors, out)
        turn_vectors(
            chosen,
            carriers.starts,
            carriers.bones,
            carriers.weights,
            memory.quaternions,
            carriers.root,
            carriers.blended,
            out,
        )
        return out

    def tet_positions(self, vertices: np.ndarray | None = None) -> np.ndarray:
        """(k, 3) metres: rest position plus u of the named tet vertices, or of all.

        A black box knows only the vertices that its cubature, its inertial sample and its root use.
        """
        chosen = self._chosen(vertices)
        if not self._carriers.skin and (self._carriers.observed[chosen] < 0).any():
            raise InputError(
                "positions of vertices that this black-box model does not observe",
                chosen[self._carriers.observed[chosen] < 0],
            )
        carriers, memory = self._carriers, self._memory
        out = np.empty((len(chosen), 3))
        rest_positions(
            carriers.skin,
            chosen,
            memory.pose,
            memory.w,
            memory.turns,
            carriers.starts,
            carriers.bones,
            carriers.weights,
            carriers.points,
            carriers.corrections,
            carriers.observed,
            out,
        )
        out += self.vertex_displacements(chosen)
        return out

    def surface(self, p: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) float32 metres: the surface at rig parameters p (P,), correctives applied, plus A u."""
        return self._surface.positions(p, out)

    def _chosen(self, vertices: np.ndarray | None) -> np.ndarray:
        count = len(self._model.vertices)
        return np.arange(count) if vertices is None else require_indices(vertices, count, "tet vertices")
