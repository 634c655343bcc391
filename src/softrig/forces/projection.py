"""Elasticity of a body at one pose in a reduced basis, exact: all tets, no cubature. Also the reduced mass products."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from softrig.errors import FlatElementError, InputError, require_finite, require_indices
from softrig.fem import assembly
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.forces.elements import edge_forces, edge_stiffness, scatter_edges
from softrig.models.kernels.posed_tets import posed_gradients

BLOCK = 2048
"""Tets handled at once, so that arrays over tets, edges and modes stay at some tens of megabytes."""


def mass_products(shapes: np.ndarray, vertex_mass: np.ndarray) -> np.ndarray:
    """(m, m, r, r) V_iᵀ M V_j of `shapes` (m, n, 3, r) with lumped `vertex_mass` (n,), kilogram (PSSD Eq. 16).

    The reduced mass at weights w is Σ_ij w_i w_j of these.
    """
    count, _, _, modes = shapes.shape
    products = np.empty((count, count, modes, modes))
    for i in range(count):
        weighted = (shapes[i] * vertex_mass[:, None, None]).reshape(-1, modes)
        for j in range(i, count):
            products[i, j] = weighted.T @ shapes[j].reshape(-1, modes)
            products[j, i] = products[i, j].T
        products[i, i] = 0.5 * (products[i, i] + products[i, i].T)
    return products


class PoseElasticity:
    """Elastic force and stiffness of u = U q about the rest shape of one pose.

    `positions` (n, 3) rest positions at the pose, metres; `tets` (e, 4); `fixed` (n,) mask, where the rows of U are
    zero; `law` by name; `young` (e,) pascal and `poisson` (e,), or one number each; `shapes` U (n, 3, r) in the world
    at the pose. With `neutral` (n, 3), the rest positions of the neutral pose, rest shapes thinner than `REST_CLAMP`
    against it are thickened as at runtime (`clamped` counts them), and u = 0 stays free of force. Without it no tet
    may be flat or inverted. `pattern`: that of another pose of the same body, which takes long to find.
    """

    def __init__(
        self,
        positions: np.ndarray,
        tets: np.ndarray,
        fixed: np.ndarray,
        law: str,
        young: np.ndarray | float,
        poisson: np.ndarray | float,
        shapes: np.ndarray,
        *,
        neutral: np.ndarray | None = None,
        pattern: assembly.SystemPattern | None = None,
    ) -> None:
        self._given_pattern = pattern
        self.positions = np.ascontiguousarray(positions, dtype=np.float64)
        self.tets = np.ascontiguousarray(tets, dtype=np.int32)
        self.fixed = np.asarray(fixed, dtype=bool)
        self.law = law
        self._law = law_code(law)
        self.shapes = np.ascontiguousarray(shapes, dtype=np.float64)
        self._check()
        self.lam, self.mu, _ = Material(young, poisson, 1.0).per_element(len(self.tets))
        self._set_rest_shapes(self.positions if neutral is None else np.asarray(neutral, dtype=np.float64))

    def _set_rest_shapes(self, neutral: np.ndarray) -> None:
        corners = neutral[self.tets]
        edges = np.swapaxes(corners[:, :3] - corners[:, 3:], 1, 2)
        # Seen from the last corner, the edges of a positively wound tet are left-handed.
        volumes = -np.linalg.det(edges) / 6.0
        if not (volumes > 0.0).all():
            raise FlatElementError("tets without volume, or inverted", np.flatnonzero(~(volumes > 0.0)))
        gradients, scaled = np.empty((len(self.tets), 1, 4, 3)), np.empty((len(self.tets), 1))
        self.clamped = posed_gradients(self.tets, np.linalg.inv(edges), volumes, self.positions, gradients, scaled)
        self._points = (self.tets, gradients, scaled)
        self.gradients, self.volumes = np.ascontiguousarray(gradients[:, 0, :3]), scaled[:, 0].copy()

    def _check(self) -> None:
        count = len(self.positions)
        require_finite(self.positions, "rest positions")
        require_indices(self.tets.ravel(), count, "vertices of tets")
        if self.shapes.ndim != 3 or self.shapes.shape[:2] != (count, 3):
            raise InputError(f"shapes {self.shapes.shape} must be ({count}, 3, r)")
        if self.fixed.shape != (count,):
            raise InputError(f"the mask of fixed vertices has shape {self.fixed.shape}, the body {count} vertices")
        require_finite(self.shapes, "shapes")
        moving = self.shapes[self.fixed].any(axis=(1, 2))
        if moving.any():
            raise InputError("shapes move fixed vertices", np.flatnonzero(self.fixed)[moving])

    @property
    def modes(self) -> int:
        """r."""
        return self.shapes.shape[2]

    def displacements(self, q: np.ndarray) -> np.ndarray:
        """(n, 3) or (n, 3, k) metres, of coordinates (r,) or (r, k)."""
        return (self.shapes.reshape(-1, self.modes) @ q).reshape(len(self.shapes), 3, *q.shape[1:])

    def edge_rows(self, elements: np.ndarray | slice, shapes: np.ndarray | None = None) -> np.ndarray:
        """(c, 9, r) how the edges of some tets move by mode; by other `shapes` (n, 3, r) if given."""
        shapes = self.shapes if shapes is None else shapes
        tets = self.tets[elements]
        return (shapes[tets[:, :3]] - shapes[tets[:, 3:]]).reshape(len(tets), 9, -1)

    def edge_forces(
        self, u: np.ndarray, elements: np.ndarray | slice = slice(None), *, remainder: bool = False
    ) -> np.ndarray:
        """(c, 9, k) newton, of some tets under displacements u (n, 3, k); `remainder`: less the linear part K₀u."""
        edges = self.edge_rows(elements, u)
        forces = np.empty_like(edges)
        edge_forces(
            self._law, edges, self.gradients[elements], self.volumes[elements], self.lam[elements], self.mu[elements],
            remainder, forces,
        )  # fmt: skip
        return forces

    def element_forces(
        self, q: np.ndarray, elements: np.ndarray | slice = slice(None), *, remainder: bool = False
    ) -> np.ndarray:
        """(c, r) volume · G_eᵀ vec P of some tets at coordinates q (r,), or (c, r, k) of (r, k); all sum to `force`."""
        single = q.ndim == 1
        u = self.displacements(q.reshape(self.modes, -1))
        chosen = np.arange(len(self.tets))[elements]
        result = np.empty((len(chosen), self.modes, u.shape[2]))
        for start in range(0, len(chosen), BLOCK):
            some = chosen[start : start + BLOCK]
            forces = self.edge_forces(u, some, remainder=remainder)
            np.matmul(self.edge_rows(some).transpose(0, 2, 1), forces, out=result[start : start + BLOCK])
        return result[:, :, 0] if single else result

    def force(self, q: np.ndarray, *, remainder: bool = False) -> np.ndarray:
        """(r,) Uᵀ f(Uq), or (r, k) of coordinates (r, k): scattered to the vertices first, which is far cheaper."""
        u = self.displacements(q.reshape(self.modes, -1))
        field = np.zeros_like(u)
        for start in range(0, len(self.tets), BLOCK):
            some = slice(start, start + BLOCK)
            scatter_edges(self.tets[some], self.edge_forces(u, some, remainder=remainder), field)
        force = self.shapes.reshape(-1, self.modes).T @ field.reshape(-1, u.shape[2])
        return force.reshape(q.shape)

    def stiffness(self, q: np.ndarray, *, projected: bool = False) -> np.ndarray:
        """(r, r) Uᵀ K(Uq) U through the sparse matrix; `projected` clamps each tet's Hessian to PSD."""
        pattern = self.pattern
        force, data = np.empty_like(self.positions), np.empty(len(pattern.indices))
        nodes, gradients, volumes = self._points
        assembly.force_and_stiffness(
            self._law, nodes, gradients, volumes, self.lam, self.mu, self.displacements(q), projected,
            pattern.free, pattern.slots, pattern.indptr, force, data,
        )  # fmt: skip
        basis = self._free_shapes
        product = basis.T @ (pattern.matrix(data) @ basis)
        return 0.5 * (product + product.T)

    @cached_property
    def rest_stiffness(self) -> np.ndarray:
        """(r, r) K̃ at u = 0."""
        return self.stiffness(np.zeros(self.modes))

    def cubature_force(self, q: np.ndarray, elements: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(r,) or (r, k): Σ weights · element forces of some tets (PSSD Eq. 21)."""
        rows = self.edge_rows(elements).reshape(-1, self.modes)
        forces = self.edge_forces(self.displacements(q.reshape(self.modes, -1)), elements)
        return (rows.T @ (weights[:, None, None] * forces).reshape(len(rows), -1)).reshape(q.shape)

    def cubature_stiffness(self, q: np.ndarray, elements: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(r, r): Σ weights · element stiffness of some tets (PSSD Eq. 22)."""
        rows = self.edge_rows(elements)
        local = np.empty((len(rows), 9, 9))
        edge_stiffness(
            self._law, rows @ q, self.gradients[elements], self.volumes[elements], self.lam[elements],
            self.mu[elements], local,
        )  # fmt: skip
        product = rows.reshape(-1, self.modes).T @ (weights[:, None, None] * (local @ rows)).reshape(-1, self.modes)
        return 0.5 * (product + product.T)

    def stiffness_correction(self, elements: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(r, r) ΔK = K̃_exact − K̃_cubature at u = 0: with it the linear force is exact at this pose."""
        return self.rest_stiffness - self.cubature_stiffness(np.zeros(self.modes), elements, weights)

    @cached_property
    def pattern(self) -> assembly.SystemPattern:
        """Where the entries of the stiffness matrix stand."""
        return self._given_pattern or assembly.system_pattern(len(self.positions), self.tets, self.fixed)

    @cached_property
    def _free_shapes(self) -> np.ndarray:
        return np.ascontiguousarray(self.shapes[~self.fixed].reshape(-1, self.modes))


def wind_matrices(
    shapes: np.ndarray,
    vertex_areas: np.ndarray,
    vertex_rotations: np.ndarray,
    frame_weights: csr_array,
    frame_rotations: np.ndarray,
) -> np.ndarray:
    """(m, r, 3·frames) D_i with D_i [R_fᵀτ per frame] = Σ_v V_vᵀ R_vᵀ A_v τ, exact at pose i; τ force per area, N/m².

    `shapes` V (m, n, 3, r) in bind space, or (1, n, 3, r); `vertex_areas` (n,) m² of surface that hangs on each tet
    vertex (`carried_areas`); `vertex_rotations` (m, n, 3, 3); `frame_weights` (n, frames), rows sum to one;
    `frame_rotations` (m, frames, 3, 3). In "world" there is one frame, with weights one.
    """
    poses, frames = frame_rotations.shape[:2]
    result = np.empty((poses, shapes.shape[3], 3 * frames))
    for frame in range(frames):
        rows, weights = carried_by(frame_weights, frame)
        factors = vertex_areas[rows] * weights
        for i in range(poses):
            local = np.swapaxes(vertex_rotations[i][rows], 1, 2) @ frame_rotations[i, frame]
            own = shapes[i if len(shapes) > 1 else 0][rows]
            result[i, :, 3 * frame : 3 * frame + 3] = np.einsum("v,vir,via->ra", factors, own, local, optimize=True)
    return result


def carried_areas(
    positions: np.ndarray, triangles: np.ndarray, nodes: np.ndarray, weights: np.ndarray, vertices: int
) -> np.ndarray:
    """(vertices,) m² of the surface (positions (n̄, 3), triangles (t, 3)) on each tet vertex that carries it.

    `nodes` (n̄, 4) and `weights` (n̄, 4) embed the surface in the tets; rows of zeros take no part.
    """
    corners = positions[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 6.0
    shares = np.bincount(triangles.ravel(), np.repeat(areas, 3), minlength=len(positions))
    return np.bincount(nodes.ravel(), (shares[:, None] * weights).ravel(), minlength=vertices)


def gyro_groups(
    frame_weights: csr_array, vertex_mass: np.ndarray, parents: np.ndarray, most: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """(G,) int32 representative frames, heaviest first, and (G, n) vertex weights that sum to one.

    At most `most` frames stand for all: those that carry most mass. Every other frame joins the nearest of them in
    the hierarchy `parents` (frames,), −1 at a root; of two equally near, the heavier.
    """
    masses = np.asarray(frame_weights.T @ vertex_mass).ravel()
    chosen = np.argsort(-masses, kind="stable")[: max(1, min(most, int((masses > 0.0).sum())))]
    group_of = hierarchy_distances(parents)[:, chosen].argmin(axis=1)
    members = np.zeros((len(chosen), len(masses)))
    members[group_of, np.arange(len(masses))] = 1.0
    return chosen.astype(np.int32), np.ascontiguousarray((frame_weights @ members.T).T)


def hierarchy_distances(parents: np.ndarray) -> np.ndarray:
    """(b, b) steps between nodes along the tree; nodes of different trees are joined above their roots."""
    parents = np.asarray(parents, dtype=np.int64)
    chains = []
    for node in range(len(parents)):
        chain = [node]
        while (above := int(parents[chain[-1]])) >= 0:
            if len(chain) > len(parents):
                raise InputError("the hierarchy runs in a circle", [node])
            chain.append(above)
        chains.append([-1, *chain[::-1]][: len(chain) + 1])
    distances = np.zeros((len(parents), len(parents)), dtype=np.int64)
    for i, one in enumerate(chains):
        for j, other in enumerate(chains[:i]):
            shared = sum(1 for _ in _common(one, other))
            distances[i, j] = distances[j, i] = len(one) + len(other) - 2 * shared
    return distances


def _common(one: list[int], other: list[int]) -> list[int]:
    """The leading nodes that two chains from above share."""
    shared = []
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared.append(a)
    return shared


def gyro_matrices(shapes: np.ndarray, vertex_mass: np.ndarray, group_weights: np.ndarray) -> np.ndarray:
    """(G, 9, r, r) of V̄ = `shapes` (n, 3, r): three Γ_a = V̄ᵀMW[e_a]×V̄, six Θ_ab for ab = 00, 11, 22, 01, 02, 12.

    With the body angular velocity Ω of a group,
        VᵀMRᵀ d²/dt²(R V q) = VᵀMV q̈ + 2 Σ_a Ω_a Γ_a q̇ + Σ_a Ω̇_a Γ_a q + Σ_ab Ω_aΩ_b Θ_ab q.
    Θ_ab = V̄ᵀMW[e_a]×[e_b]×V̄, off the diagonal the sum of ab and ba. `group_weights` (G, n).
    """
    modes = shapes.shape[2]
    result = np.empty((len(group_weights), 9, modes, modes))
    axes = [np.ascontiguousarray(shapes[:, i]) for i in range(3)]
    for group, weights in enumerate(group_weights):
        factors = (weights * vertex_mass)[:, None]
        scaled = [factors * axis for axis in axes]
        P = {(i, j): scaled[i].T @ axes[j] for i in range(3) for j in range(i, 3)}
        P.update({(j, i): P[i, j].T for i in range(3) for j in range(i + 1, 3)})
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            result[group, a] = P[c, b] - P[b, c]
            result[group, 3 + a] = -(P[b, b] + P[c, c])
        # e_a × (e_b × x) = e_b (e_a·x) for a ≠ b, so both orders together are P_ab + P_ba.
        for place, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
            result[group, 6 + place] = P[a, b] + P[b, a]
    return result


def carried_by(frame_weights: csr_array, frame: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices that a frame carries, and its weights there."""
    column = frame_weights[:, [frame]].tocoo()
    return column.coords[0], column.data
