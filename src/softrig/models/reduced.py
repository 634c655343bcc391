"""The reduced StVK body: r modal coordinates, forces as cubic polynomials (StVK05 §4, §6.5).

Immutable. Coefficients are kept apart per material group and per Lamé constant, so that another
modulus, Poisson ratio or density is a weighted sum and exact; fewer modes are a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve

from softrig.errors import InputError, ModeCountError, SolverError, require_indices, require_output, require_vectors
from softrig.fem.embedding import Embedding
from softrig.fem.loads import STANDARD_GRAVITY
from softrig.fem.material import Material
from softrig.models.kernels import polynomial
from softrig.models.kernels.display import display_positions
from softrig.numerics.symmetric_tensors import (
    entry_count,
    entry_position,
    pack,
    packed_size,
    sorted_indices,
    unpack,
)

LAMBDA, MU = 0, 1
"""Places along the Lamé axis of the coefficient arrays."""


@dataclass(frozen=True)
class StvkCoefficients:
    """Energy derivatives at rest per group and unit Lamé constant, symmetric entries only.

    Storage order: `numerics.symmetric_tensors`. Axes: (groups, 2 for λ and μ, entries).
    """

    linear: np.ndarray
    """(g, 2, r(r+1)/2) second derivatives, K₀."""
    cubic: np.ndarray
    """(g, 2, C(r+2, 3)) third derivatives, T₃."""
    quartic: np.ndarray
    """(g, 2, C(r+3, 4)) fourth derivatives, T₄."""
    mass: np.ndarray
    """(g, r(r+1)/2) reduced mass at unit density."""

    def __repr__(self) -> str:
        return f"StvkCoefficients({self.size} modes, {len(self.linear)} groups)"

    @property
    def size(self) -> int:
        """Number of modes r."""
        return packed_size(self.linear.shape[-1])

    def kept(self, modes: np.ndarray) -> StvkCoefficients:
        """The coefficients of a subset of modes, in the order given."""
        count = len(modes)
        pair, triple, quad = (entry_position(modes[sorted_indices(order, count)]) for order in (2, 3, 4))
        return StvkCoefficients(
            linear=np.ascontiguousarray(self.linear[..., pair]),
            cubic=np.ascontiguousarray(self.cubic[..., triple]),
            quartic=np.ascontiguousarray(self.quartic[..., quad]),
            mass=np.ascontiguousarray(self.mass[..., pair]),
        )


@dataclass(frozen=True)
class ReducedBody:
    """u = U q with the exact reduced StVK forces. Build one with `softrig.reduce_body`, or load it from a file."""

    vertices: np.ndarray
    """(n, 3) rest positions of the volume mesh, metres."""
    basis: np.ndarray
    """(3n, r) U, mass-orthonormal as built; rows of fixed vertices are zero."""
    coefficients: StvkCoefficients
    group_names: tuple[str, ...]
    lam: np.ndarray
    """(g,) λ of each group, pascal. Where it varies within a group: its largest, and edits scale the rest."""
    mu: np.ndarray
    """(g,) μ of each group, pascal."""
    density: np.ndarray
    """(g,) kilogram per cubic metre."""
    uniform_products: np.ndarray
    """(g, 3, r) UᵀM e_x, e_y, e_z at unit density: what uniform accelerations do to the modes."""
    surface_triangles: np.ndarray
    """(t, 3) triangles to draw: of the embedded surface, or of the volume mesh's boundary."""
    surface: Embedding | None = None
    """How the drawn vertices hang on the volume mesh; None if they are its own vertices."""
    surface_colours: np.ndarray | None = None
    """(m, 3) linear RGB in 0 to 1 of the drawn vertices."""
    rigid_products: np.ndarray | None = None
    """Free bodies: (g, r+2, r+2, 3, 3) mass products ∫ a ⊗ b at unit density of the fields
    {uniform, rest position, modes}; see `models.free_flight`."""
    notes: dict[str, str] = field(default_factory=dict)
    """What the builder wants remembered (recipe, seeds); strings only."""

    def __repr__(self) -> str:
        kind = "free" if self.is_free else "anchored"
        return f"ReducedBody({self.size} modes, {len(self.vertices):,} vertices, {kind}, groups={self.group_names})"

    @property
    def size(self) -> int:
        """Number of modes r."""
        return self.basis.shape[1]

    @property
    def is_free(self) -> bool:
        """Whether the body flies freely (no vertex fixed)."""
        return self.rigid_products is not None

    def group(self, name: str) -> int:
        """The number of the group called `name`."""
        if name not in self.group_names:
            raise InputError(f"no material group called {name!r}; there are {', '.join(self.group_names)}")
        return self.group_names.index(name)

    def with_material(
        self,
        group: str,
        *,
        young: float | None = None,
        poisson: float | None = None,
        density: float | None = None,
    ) -> ReducedBody:
        """The same body with other properties in one group (pascal, 1, kg/m³); exact (StVK05 §6.5)."""
        g = self.group(group)
        if young is None and poisson is None and density is None:
            raise InputError(f"nothing to change in group {group!r}: give young, poisson or density")
        now = Material.from_lame(self.lam[g], self.mu[g], self.density[g])
        new = Material(
            young=float(now.young) if young is None else young,
            poisson=float(now.poisson) if poisson is None else poisson,
            density=float(now.density) if density is None else density,
        )
        lam, mu, rho = self.lam.copy(), self.mu.copy(), self.density.copy()
        lam[g], mu[g] = (float(value) for value in new.lame())
        rho[g] = float(new.density)
        edited = replace(self, lam=lam, mu=mu, density=rho)
        # What does not depend on the material is shared: a live edit must not cost a frame.
        for name in ("surface_rest", "surface_modes", "_surface_rest_single"):
            if name in self.__dict__:
                edited.__dict__[name] = self.__dict__[name]
        return edited

    def with_modes(self, modes: int | np.integer | Sequence[int] | np.ndarray) -> ReducedBody:
        """The same body with the first `modes` modes, or those listed (StVK05 §6.5)."""
        listed = np.arange(modes) if isinstance(modes, int | np.integer) else modes
        kept = np.asarray(listed, dtype=np.int64)
        if kept.size == 0 or kept.min() < 0 or kept.max() >= self.size or len(set(kept.tolist())) < kept.size:
            raise ModeCountError(f"modes must be different and within 0 to {self.size - 1}", kept)
        products = self.rigid_products
        if products is not None:
            axes = np.concatenate([[0, 1], kept + 2])
            products = np.ascontiguousarray(products[:, axes][:, :, axes])
        return replace(
            self,
            basis=np.ascontiguousarray(self.basis[:, kept]),
            coefficients=self.coefficients.kept(kept),
            uniform_products=np.ascontiguousarray(self.uniform_products[:, :, kept]),
            rigid_products=products,
        )

    def positions(self, q: np.ndarray) -> np.ndarray:
        """(n, 3) positions of the volume mesh's vertices at coordinates q, metres."""
        return self.vertices + (self.basis @ q).reshape(-1, 3)

    @cached_property
    def surface_rest(self) -> np.ndarray:
        """(m, 3) rest positions of the drawn vertices, metres."""
        return self.vertices if self.surface is None else self.surface.carry(self.vertices)

    @cached_property
    def surface_modes(self) -> np.ndarray:
        """(r, 3m) the modes at the drawn vertices, single precision."""
        basis = self.basis.reshape(-1, 3, self.size)
        drawn = basis if self.surface is None else self.surface.carry(basis)
        return np.ascontiguousarray(drawn.reshape(-1, self.size).T, dtype=np.float32)

    @cached_property
    def _surface_rest_single(self) -> np.ndarray:
        return np.ascontiguousarray(self.surface_rest.ravel(), dtype=np.float32)

    def surface_positions(self, q: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(m, 3) drawn vertices at coordinates q, metres, single precision; into `out` if given (contiguous)."""
        result = np.empty((len(self.surface_rest), 3), np.float32) if out is None else out
        require_output(result, (len(self.surface_rest), 3), np.float32)
        display_positions(self._surface_rest_single, self.surface_modes, q.astype(np.float32), result.reshape(-1))
        return result

    def reduced_force(self, vertices: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """(r,) Uᵀf of forces (k, 3), or one (3,) for all, newton, at k vertices of the volume mesh; costs O(k r)."""
        vertices = require_indices(vertices, len(self.vertices), "vertices")
        rows = self.basis.reshape(-1, 3, self.size)[vertices]
        return np.einsum("kxr,kx->r", rows, require_vectors(forces, len(vertices), "forces"))

    def gravity_force(self, acceleration: Sequence[float] = (0.0, 0.0, -STANDARD_GRAVITY)) -> np.ndarray:
        """(r,) Uᵀ of the weight of the whole body; z up by default."""
        return np.einsum("g,gxr,x->r", self.density, self.uniform_products, np.asarray(acceleration, dtype=np.float64))

    @cached_property
    def flat_coefficients(self) -> np.ndarray:
        """K₀ | M | T₃ | T₄ of the current materials, as the compiled step reads them."""
        return flat_coefficients(self)

    @cached_property
    def mass(self) -> np.ndarray:
        """(r, r) reduced mass; the identity for the materials the basis was made with."""
        return unpack(np.einsum("g,gs->s", self.density, self.coefficients.mass))

    def energy(self, q: np.ndarray) -> float:
        """Elastic energy, joule."""
        return polynomial.energy(self.flat_coefficients, np.ascontiguousarray(q), self._scratch())

    def force(self, q: np.ndarray) -> np.ndarray:
        """Internal force R(q) (r,)."""
        return self.force_and_stiffness(q)[0]

    def force_and_stiffness(self, q: np.ndarray, *, projected: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """R(q) (r,) and K(q) (r, r); `projected` lifts its eigenvalues to at least 1e-9 of the largest."""
        force, packed = np.empty(self.size), np.empty(entry_count(2, self.size))
        polynomial.evaluate(
            self.flat_coefficients, np.ascontiguousarray(q, dtype=np.float64), force, packed, self._scratch()
        )
        stiffness = unpack(packed)
        if projected:
            values, vectors = np.linalg.eigh(stiffness)
            stiffness = (vectors * np.maximum(values, 1e-9 * values[-1])) @ vectors.T
        return force, stiffness

    def force_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in the norm of `force` is."""
        epsilon = float(np.finfo(np.float64).eps)
        rest = unpack(self.flat_coefficients[: entry_count(2, self.size)])
        return 4.0 * epsilon * float(np.linalg.norm(np.abs(rest) @ np.abs(q)))

    def energy_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in `energy` is, joule."""
        return self.force_rounding(q) * float(np.linalg.norm(q))

    def mass_times(self, v: np.ndarray) -> np.ndarray:
        """M v."""
        return self.mass @ v

    def solve_mass(self, right: np.ndarray) -> np.ndarray:
        """M⁻¹ right."""
        return cho_solve(self._mass_factor, right)

    @cached_property
    def _mass_factor(self) -> tuple[np.ndarray, bool]:
        return cho_factor(self.mass)

    def system(self, mass_factor: float, stiffness: np.ndarray, stiffness_factor: float) -> np.ndarray:
        """mass_factor · M + stiffness_factor · K."""
        return mass_factor * self.mass + stiffness_factor * stiffness

    def solve(self, matrix: np.ndarray, right: np.ndarray, *, definite: bool = False) -> np.ndarray:
        """matrix⁻¹ right, for a symmetric matrix; positive definite if `definite` is asked for."""
        try:
            return solve(matrix, right, assume_a="pos" if definite else "sym")
        except LinAlgError as error:
            raise SolverError(f"the reduced system cannot be solved: {error}") from error

    def require_anchored(self) -> None:
        """Nothing to ask: the modes of a free body hold no rigid motion either."""

    def _scratch(self) -> np.ndarray:
        return np.empty(4 * entry_count(2, self.size) + self.size)


def flat_coefficients(body: ReducedBody) -> np.ndarray:
    """Weigh the groups by their materials and lay the result out as `models.kernels.polynomial` reads it."""
    r = body.size
    lame = np.stack([body.lam, body.mu], axis=1)
    linear, cubic, quartic = (
        np.einsum("gc,gcs->s", lame, part)
        for part in (body.coefficients.linear, body.coefficients.cubic, body.coefficients.quartic)
    )
    pairs = sorted_indices(2, r)
    s = len(pairs)
    triples = np.concatenate([np.repeat(pairs, r, axis=0), np.tile(np.arange(r), s)[:, None]], axis=1)
    quads = np.concatenate([np.repeat(pairs, s, axis=0), np.tile(pairs, (s, 1))], axis=1)
    return np.concatenate([linear, pack(body.mass), cubic[entry_position(triples)], quartic[entry_position(quads)]])
