"""The tet mesh of a pose, fitted to the surface the rig gives there (PSSD Eq. 3).

    x̂ = arg min ‖A x̂ − Φ̄‖²_M + γ E(x̂)

Both terms are made dimensionless, so that one γ serves a mouse and a whale and any material:

    Σ_s μ_s ‖(A x̂)_s − Φ̄_s‖² / (Σ_s μ_s h²)  +  γ Σ_e γ_e V_e ψ(F_e) / (Y V)

with the cell size h (mean edge of a tet), Young's modulus Y, volume V, and F from the neutral shape. The first is the
mean square misfit in cells, the second about half the mean square strain. γ_e is 1 until a tet stays inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, diags_array

from softrig.errors import InputError, notice, require_finite
from softrig.fem import assembly
from softrig.fem.embedding import Embedding
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.numerics.sparse import symmetric_solver

GAMMA = 0.2
"""Default γ: a strain of 10 % everywhere weighs as much as a misfit of 3 % of a cell everywhere."""
POISSON = 0.3
"""Skinning loses and gains volume; a fit that insists on the neutral volume would bulge instead."""
THINNEST = 0.1
"""Smallest principal stretch (signed) that a tet may have before γ stays raised for it."""
BARRIER = "neo-hookean"
"""Its energy is infinite for a tet without volume: what is not inverted stays so."""
LEVEL = 10.0
"""γ grows by this until a shape without inverted tets is found, and falls by it on the way back."""
RAISE = 4.0
"""By which γ is raised for a tet that is too thin."""
MOST_LOOSENINGS = 6
MOST_RAISES = 8
MOST_STEPS = 60
MOST_HALVINGS = 20
TOLERANCE = 1e-4
ON_THE_WAY = 0.05
"""Accuracy of the last shape and of those on the way to it: the change a Newton step promises over the value."""

Progress = Callable[[int, int], None]
Lame = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FitReport:
    """A fitted tet mesh and how well it fits."""

    positions: np.ndarray
    """(n, 3) metres."""
    error: float
    """RMS distance, weighted like the fit, between the surface and where the tets carry it, metres."""
    start_error: float
    """The same of the shape the fit started from."""
    inverted: np.ndarray
    """(k,) tets inside out after all; empty unless a `Notice` said otherwise."""
    thinnest: float
    """Smallest principal stretch of a tet, from the neutral shape, negative if it is inverted."""
    raised: np.ndarray = field(repr=False)
    """(e,) γ_e: 1, or more where γ had to be raised because a tet would have collapsed."""
    steps: int = 0
    """Newton steps altogether."""

    @property
    def raised_tets(self) -> np.ndarray:
        """(k,) the tets for which γ was raised."""
        return np.flatnonzero(self.raised > 1.0)

    def summary(self) -> str:
        """One line for a report."""
        line = f"fit error {1e3 * self.error:.2g} mm, no tet thinner than {self.thinnest:.2f} of neutral"
        if len(self.raised_tets):
            line += f"; held stiffer at {len(self.raised_tets)} tets that would have collapsed"
        return line + (f"; {len(self.inverted)} tets inverted" if len(self.inverted) else "")


def fit_tets(
    mesh: VolumeMesh,
    embedding: Embedding,
    target: np.ndarray,
    start: np.ndarray,
    *,
    law: str = "stable-neo-hookean",
    gamma: float = GAMMA,
    surface_weights: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
    progress: Progress | None = None,
) -> FitReport:
    """Fit the tets of `mesh` (neutral) to the posed surface `target` (n̄, 3), metres, from `start` (n, 3) (Eq. 3).

    `embedding` carries the surface by the tets. `surface_weights` (n̄,) μ, say the vertices' areas; None: all equal.
    `fixed` (n,) bool: vertices that stay where `start` has them. `law` must be finite for inverted tets.

    No tet of the result is inverted. Where the plain minimum has collapsed tets, γ is made so large that none is
    inverted and then falls back under a law that no tet can pass through; for tets that are too thin then it is
    raised again, which `FitReport.raised` tells.
    """
    problem = _Problem(mesh, embedding, target, start, law, gamma, surface_weights, fixed)
    factors = np.ones(len(mesh.elements))
    x = problem.minimum(np.array(start, dtype=np.float64), factors)
    if problem.stretches(x).min() < THINNEST:
        x, factors = _held_open(problem, np.asarray(start, dtype=np.float64), x, progress)
    inverted = np.flatnonzero(~(problem.stretches(x) > 0.0))
    if inverted.size:
        notice("tets that no fit turns back: the posed surface is folded there; tets", inverted)
    thinnest = float(problem.stretches(x).min())
    return FitReport(x, problem.error(x), problem.error(start), inverted, thinnest, factors, problem.steps)


def _held_open(
    problem: _Problem, start: np.ndarray, plain: np.ndarray, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    """Positions without an inverted tet, and γ_e; `plain` is the minimum that has thin ones."""
    level, x = 1.0, plain
    for _ in range(MOST_LOOSENINGS):
        if problem.stretches(x).min() > 0.0:
            break
        level *= LEVEL
        x = problem.minimum(start, np.full(len(problem.mesh.elements), level), ON_THE_WAY)
    if not problem.stretches(x).min() > 0.0:
        return plain, np.ones(len(problem.mesh.elements))
    problem.law = law_code(BARRIER)
    floor = np.ones(len(problem.mesh.elements))
    done, todo = 0, round(np.log(level) / np.log(LEVEL)) + MOST_RAISES
    while level > 1.0:
        level /= LEVEL
        x = problem.minimum(x, np.maximum(floor, level), ON_THE_WAY)
        done = _told(progress, done, todo)
    for _ in range(MOST_RAISES):
        thin = problem.stretches(x) < THINNEST
        if not thin.any():
            break
        floor[thin] *= RAISE
        x = problem.minimum(x, floor, ON_THE_WAY)
        done = _told(progress, done, todo)
    return problem.minimum(x, floor), floor


def _told(progress: Progress | None, done: int, todo: int) -> int:
    if progress is not None:
        progress(done + 1, todo)
    return done + 1


class _Problem:
    """The two terms of Eq. 3, their gradient and a positive definite Hessian, on the free vertices."""

    def __init__(
        self,
        mesh: VolumeMesh,
        embedding: Embedding,
        target: np.ndarray,
        start: np.ndarray,
        law: str,
        gamma: float,
        surface_weights: np.ndarray | None,
        fixed: np.ndarray | None,
    ) -> None:
        _check(mesh, embedding, target, start, law, gamma)
        count = len(mesh.vertices)
        self.mesh, self.law, self.gamma, self.target = mesh, law_code(law), gamma, np.asarray(target, np.float64)
        self.free = ~(np.zeros(count, dtype=bool) if fixed is None else np.asarray(fixed, dtype=bool))
        self.cell = mean_edge(mesh)
        self.shares = _shares(surface_weights, len(self.target))
        self.carry = embedding.matrix(count)
        self.weighted = csr_array(2.0 / self.cell**2 * (diags_array(self.shares) @ self.carry).T)
        self.pattern = assembly.system_pattern(count, mesh.elements, ~self.free)
        pull = csr_array(self.weighted @ self.carry)
        self.pull = self.pattern.from_scalar(csr_array(pull[self.free][:, self.free]))
        # Tets that carry no surface have no place of their own: a hundred-millionth of the pull keeps them put.
        lift = csr_array(diags_array(np.full(int(self.free.sum()), 1e-8 * max(pull.diagonal().max(), 1e-300))))
        self.lift = self.pattern.from_scalar(lift)
        self.solver = symmetric_solver()
        self.inverse_edges = np.linalg.inv(_edges(mesh.vertices, mesh.elements))
        self.steps = 0

    def error(self, x: np.ndarray) -> float:
        """√(Σ_s μ_s ‖(A x)_s − Φ̄_s‖² / Σ_s μ_s), metres."""
        return float(np.sqrt(self.shares @ np.sum((self.carry @ x - self.target) ** 2, axis=1)))

    def value(self, x: np.ndarray, lame: Lame) -> float:
        """The dimensionless sum of both terms at positions `x` (n, 3)."""
        energy = assembly.total_energy(self.law, *self._points, *lame, x - self.mesh.vertices)
        return (self.error(x) / self.cell) ** 2 + energy

    def slopes(self, x: np.ndarray, lame: Lame) -> tuple[np.ndarray, csr_array]:
        """Gradient (3·free,) of `value`, and its Hessian with the elastic part projected to be positive."""
        force, data = np.empty_like(x), np.empty(len(self.pattern.indices))
        pattern = self.pattern
        assembly.force_and_stiffness(
            self.law,
            *self._points,
            *lame,
            x - self.mesh.vertices,
            True,
            pattern.free,
            pattern.slots,
            pattern.indptr,
            force,
            data,
        )
        gradient = force + self.weighted @ (self.carry @ x - self.target)
        return gradient[self.free].ravel(), pattern.matrix(data + self.pull + self.lift)

    def lame(self, factors: np.ndarray) -> Lame:
        """γ γ_e / V times the Lamé constants, each (e,), of a material with Young's modulus one."""
        young = self.gamma * factors / self.mesh.volumes.sum()
        lam, mu, _ = Material(young, POISSON, 1.0).per_element(len(factors))
        return lam, mu

    def stretches(self, x: np.ndarray) -> np.ndarray:
        """(e,) the smallest principal stretch of each tet from neutral, negative where it is inverted."""
        F = _edges(x, self.mesh.elements) @ self.inverse_edges
        return np.asarray(np.linalg.svd(F, compute_uv=False)[:, 2] * np.sign(np.linalg.det(F)))

    def minimum(self, x: np.ndarray, factors: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
        """(n, 3) by Newton with projected Hessians and backtracking from `x` (n, 3)."""
        lame = self.lame(factors)
        value = self.value(x, lame)
        for _ in range(MOST_STEPS):
            self.steps += 1
            gradient, hessian = self.slopes(x, lame)
            self.solver.factorise(hessian)
            direction = np.zeros_like(x)
            direction[self.free] = -self.solver.solve(gradient).reshape(-1, 3)
            slope = float(gradient @ direction[self.free].ravel())
            length, lower = self._line_search(x, value, direction, slope, lame)
            if length == 0.0:
                break
            x, value = x + length * direction, lower
            if -slope < tolerance * value:
                break
        return x

    def _line_search(
        self, x: np.ndarray, value: float, direction: np.ndarray, slope: float, lame: Lame
    ) -> tuple[float, float]:
        """The first of 1, ½, ¼ … that lowers the value enough, and the value there; 0 where none does."""
        length = 1.0
        for _ in range(MOST_HALVINGS):
            lower = self.value(x + length * direction, lame)
            if lower <= value + 1e-4 * length * slope:
                return length, lower
            length *= 0.5
        return 0.0, value

    @property
    def _points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = self.mesh.stiffness_points
        return points.nodes, points.gradients, points.volumes


def mean_edge(mesh: VolumeMesh) -> float:
    """Metres: the mean length of the tets' edges."""
    corners = mesh.vertices[mesh.elements]
    pairs = [(a, b) for a in range(4) for b in range(a)]
    return float(np.mean([np.linalg.norm(corners[:, a] - corners[:, b], axis=1) for a, b in pairs]))


def _edges(x: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(e, 3, 3) edges from the first corner as columns."""
    return np.asarray((x[tets[:, 1:]] - x[tets[:, :1]]).transpose(0, 2, 1))


def _shares(weights: np.ndarray | None, count: int) -> np.ndarray:
    """(n̄,) μ_s / Σ μ."""
    shares = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (count,):
        raise InputError(f"{count} surface vertices need as many weights, not {shares.shape}")
    require_finite(shares, "surface weights")
    if (shares < 0.0).any() or not shares.any():
        raise InputError("surface weights must not be negative, nor all zero", np.flatnonzero(shares < 0.0))
    return shares / shares.sum()


def _check(
    mesh: VolumeMesh, embedding: Embedding, target: np.ndarray, start: np.ndarray, law: str, gamma: float
) -> None:
    if np.shape(target) != (len(embedding.nodes), 3):
        raise InputError(f"the posed surface is {np.shape(target)}, the embedding has {len(embedding.nodes)} points")
    if np.shape(start) != mesh.vertices.shape:
        raise InputError(f"the start is {np.shape(start)}, the mesh has {len(mesh.vertices)} vertices")
    if law == "neo-hookean":
        raise InputError("the fit passes through inverted tets, which 'neo-hookean' cannot: take the stable one")
    if not (np.isfinite(gamma) and gamma > 0.0):
        raise InputError(f"γ must be positive, not {gamma}")
    require_finite(np.asarray(target), "posed surface")
    require_finite(np.asarray(start), "start of the fit")
