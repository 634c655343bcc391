"""The unreduced body: every free vertex moves. The truth that reduced models are measured against."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array

from softrig.errors import AnchorError, InputError, SolverError, require_indices
from softrig.fem import assembly
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.numerics.sparse import SOLVERS, SymmetricSolver, symmetric_solver

MASSES = ("consistent", "lumped")


class FullBody:
    """A volume mesh of one material law, some vertices fixed; unknowns are the free displacements, metres.

    `law`: "stvk", "corotational", "neo-hookean" or "stable-neo-hookean". `fixed`: indices or mask of
    the vertices held in place. Arrays of unknowns are flat, (3·free,); `expand` gives them back as
    (n, 3) with zeros at the fixed vertices.
    """

    def __init__(
        self,
        mesh: VolumeMesh,
        material: Material,
        *,
        law: str = "stvk",
        fixed: np.ndarray | None = None,
        mass: str = "consistent",
        solver: str = "auto",
    ) -> None:
        self.mesh = mesh
        self.material = material
        self.law = law
        self._law = law_code(law)
        if mass not in MASSES:
            raise InputError(f"no mass called {mass!r}; there are {', '.join(MASSES)}")
        self.mass_kind = mass
        self.lam, self.mu, self.density = material.per_element(len(mesh.elements))
        self.fixed = fixed_mask(len(mesh.vertices), fixed)
        if solver not in SOLVERS:
            raise InputError(f"no sparse solver called {solver!r}; there are {', '.join(SOLVERS)}")
        self.solver_name = solver
        self.pattern = assembly.system_pattern(len(mesh.vertices), mesh.elements, self.fixed)

    @property
    def size(self) -> int:
        """Free degrees of freedom, 3 a free vertex."""
        return self.pattern.size

    @property
    def free(self) -> np.ndarray:
        """(n,) mask of the vertices that move."""
        return ~self.fixed

    def expand(self, q: np.ndarray) -> np.ndarray:
        """(n, 3) displacements of all vertices, or (n, 3, m) of the columns of (3·free, m)."""
        full = np.zeros((len(self.fixed), 3, *q.shape[1:]))
        full[self.free] = q.reshape(-1, 3, *q.shape[1:])
        return full

    def restrict(self, field: np.ndarray) -> np.ndarray:
        """(3·free,) or (3·free, m): the free part of a field (n, 3) or (n, 3, m)."""
        chosen = field[self.free]
        return np.ascontiguousarray(chosen.reshape(3 * len(chosen), *field.shape[2:]))

    def energy(self, q: np.ndarray) -> float:
        """Elastic energy, joule."""
        return assembly.total_energy(self._law, *self._points, self.lam, self.mu, self.expand(q))

    def force(self, q: np.ndarray) -> np.ndarray:
        """Internal force R(q), newton."""
        force = np.empty((len(self.fixed), 3))
        assembly.internal_force(self._law, *self._points, self.lam, self.mu, self.expand(q), force)
        return self.restrict(force)

    def force_and_stiffness(self, q: np.ndarray, *, projected: bool = False) -> tuple[np.ndarray, csr_array]:
        """R(q), newton, and K(q), newton per metre; `projected` clamps each point's Hessian to PSD."""
        force = np.empty((len(self.fixed), 3))
        data = np.empty(len(self.pattern.indices))
        pattern = self.pattern
        assembly.force_and_stiffness(
            self._law,
            *self._points,
            self.lam,
            self.mu,
            self.expand(q),
            projected,
            pattern.free,
            pattern.slots,
            pattern.indptr,
            force,
            data,
        )
        return self.restrict(force), pattern.matrix(data)

    def force_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in the norm of `force` is, newton: strain is known to the last digit of F ≈ 1."""
        epsilon = float(np.finfo(np.float64).eps)
        stretched = self.rest_stiffness.diagonal() * q
        return 4.0 * epsilon * (self._stress_scale + float(np.linalg.norm(stretched)))

    def energy_rounding(self, q: np.ndarray) -> float:
        """How large the rounding in `energy` is, joule: some laws add up to zero at rest, but term by term do not."""
        moduli = np.abs(self.lam) + 2.0 * self.mu
        return 4.0 * float(np.finfo(np.float64).eps) * float(moduli @ self.mesh.volumes)

    @cached_property
    def _stress_scale(self) -> float:
        """‖Σ volume (λ + 2μ) |dN/dX|‖ over the vertices, newton: the force of a strain of one."""
        points = self.mesh.stiffness_points
        slopes = np.linalg.norm(points.gradients, axis=3)
        shares = np.einsum("ep,epk->ek", points.volumes, slopes) * (np.abs(self.lam) + 2.0 * self.mu)[:, None]
        return float(np.linalg.norm(np.bincount(points.nodes.ravel(), weights=shares.ravel())))

    @cached_property
    def rest_stiffness(self) -> csr_array:
        """K(0), newton per metre."""
        return self.force_and_stiffness(np.zeros(self.size))[1]

    def stiffness_derivative(self, fields: np.ndarray) -> np.ndarray:
        """(3·free, k(k+1)/2) of (H:a)b at rest for all pairs of columns a ≤ b of `fields` (3·free, k).

        StVK05 Eq. 14; pairs in the order of `numerics.symmetric_tensors`.
        """
        full = np.ascontiguousarray(self.expand(fields))
        count = fields.shape[1]
        result = np.empty((len(self.fixed), 3, count * (count + 1) // 2))
        assembly.stiffness_derivative(self._law, *self._points, self.lam, self.mu, full, result)
        return self.restrict(result)

    @cached_property
    def scalar_mass(self) -> csr_array:
        """(n, n) mass per vertex pair, kilogram, fixed vertices included; the mass matrix is this ⊗ I₃."""
        points, n = self.mesh.mass_points, len(self.fixed)
        if self.mass_kind == "lumped":
            return csr_array(diags_array(assembly.lumped_mass(points, self.density, n)))
        return assembly.consistent_mass(points, self.density, n)

    @cached_property
    def vertex_mass(self) -> np.ndarray:
        """(n,) kilogram: row sums of the mass, what gravity pulls at."""
        return np.asarray(self.scalar_mass.sum(axis=1)).ravel()

    @cached_property
    def mass(self) -> csr_array:
        """M on the free degrees of freedom, kilogram, on the stiffness's pattern."""
        return self.pattern.matrix(self._mass_data)

    @cached_property
    def _mass_data(self) -> np.ndarray:
        return self.pattern.from_scalar(self.scalar_mass[self.free][:, self.free])

    def mass_times(self, v: np.ndarray) -> np.ndarray:
        """M v."""
        return self.mass @ v

    def solve_mass(self, right: np.ndarray) -> np.ndarray:
        """M⁻¹ right; a division where the mass is lumped."""
        if self.mass_kind == "lumped":
            return (right.T / self.mass.diagonal()).T
        return self._mass_factor.solve(right)

    @cached_property
    def _mass_factor(self) -> SymmetricSolver:
        factor = symmetric_solver(self.solver_name)
        factor.factorise(self.mass)
        return factor

    def system(self, mass_factor: float, stiffness: csr_array, stiffness_factor: float) -> csr_array:
        """mass_factor · M + stiffness_factor · K."""
        return self.pattern.matrix(mass_factor * self._mass_data + stiffness_factor * stiffness.data)

    def solve(self, matrix: csr_array, right: np.ndarray, *, definite: bool = False) -> np.ndarray:
        """matrix⁻¹ right; unless `definite` is asked for, a failed Cholesky is tried again as LDLᵀ."""
        try:
            self._solver.factorise(matrix)
            return self._solver.solve(right)
        except SolverError:
            if definite:
                raise
            self._indefinite_solver.factorise(matrix)
            return self._indefinite_solver.solve(right)

    @cached_property
    def _solver(self) -> SymmetricSolver:
        return symmetric_solver(self.solver_name)

    @cached_property
    def _indefinite_solver(self) -> SymmetricSolver:
        return symmetric_solver(self.solver_name, definite=False)

    def require_anchored(self) -> None:
        """Raise `AnchorError` naming a vertex of each part that can still move rigidly.

        A part is what hangs together by faces; it is held by three vertices not on one line, each fixed
        or shared with a part that is held. Parts that meet in an edge or a corner only are hinged.
        """
        parts = self.mesh.part_of_element
        held_vertices = self.fixed.copy()
        loose = list(range(int(parts.max()) + 1))
        members = {part: np.unique(self.mesh.elements[parts == part]) for part in loose}
        progress = True
        while progress:
            held = [part for part in loose if _holds(self.mesh.vertices[members[part][held_vertices[members[part]]]])]
            for part in held:
                held_vertices[members[part]] = True
                loose.remove(part)
            progress = bool(held)
        if loose:
            raise AnchorError(
                f"{len(loose)} part(s) of the body can still move rigidly: fix at least three vertices of each, "
                "not on one line; a vertex of each such part",
                [members[part][0] for part in loose],
            )

    @property
    def is_free(self) -> bool:
        """Whether no vertex is fixed."""
        return not self.fixed.any()

    @property
    def _points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = self.mesh.stiffness_points
        return points.nodes, points.gradients, points.volumes


def fixed_mask(vertices: int, fixed: np.ndarray | None) -> np.ndarray:
    """(vertices,) mask from indices, a mask, or nothing."""
    if fixed is None:
        return np.zeros(vertices, bool)
    fixed = np.asarray(fixed)
    if fixed.dtype == bool:
        if fixed.shape != (vertices,):
            raise InputError(f"the mask of fixed vertices has shape {fixed.shape}, the mesh {vertices} vertices")
        mask = fixed.copy()
    else:
        indices = require_indices(fixed.ravel(), vertices, "fixed vertices")
        if len(indices) == vertices > 2 and indices.max() <= 1:
            raise InputError("fixed vertices look like a mask of 0 and 1: give booleans, or indices")
        mask = np.zeros(vertices, bool)
        mask[indices] = True
    if mask.all():
        raise InputError("every vertex is fixed: nothing can move")
    return mask


def _holds(points: np.ndarray) -> bool:
    """Whether holding `points` (k, 3) holds a rigid body: three of them, not on one line."""
    if len(points) < 3:
        return False
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(values[1] > 1e-9 * max(values[0], 1e-300))
