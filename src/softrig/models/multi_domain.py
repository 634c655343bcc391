"""The multi-domain model (MD11): a body cut into domains, each with a frame of its own and a few shapes in it.

Domain i moves rigidly with a bone, R_i and t_i, and deforms by x = R_i (p + U_i q_i) + t_i, with p the rest positions
seen from the domain's centre (MD11 Eq. 1). Vertices on an interface belong to two domains or more, a copy each; springs
hold the copies together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.fem.laws import law_code
from softrig.models.multi_domain_checks import check_model
from softrig.models.pose_space import parameters_start, rest_inverses
from softrig.rig.bones import skin_of
from softrig.rig.clip import Clip
from softrig.rig.protocol import Rig
from softrig.rig.skinning import Skin


@dataclass(frozen=True, eq=False)
class Domain:
    """A piece of the body: n_i vertices, r_i shapes, c_i cubature tets."""

    name: str
    bone: int
    """Whose rigid motion the domain's frame has, among the bones of the skin's binding."""
    centre: np.ndarray
    """(3,) metres at rest: the origin of the domain's frame."""
    vertices: np.ndarray = field(repr=False)
    """(n_i,) int32 of the mesh, rising; those on interfaces are copies."""
    mass: np.ndarray = field(repr=False)
    """(n_i,) kilogram, of the domain's own tets."""
    shapes: np.ndarray = field(repr=False)
    """(n_i, 3, r_i) U_i in the domain's frame, mass-orthonormal, 1/√kg; zero at vertices on its bones."""
    stiffness: np.ndarray = field(repr=False)
    """(r_i, r_i) UᵀK U at rest, 1/s²: what damps."""
    tets: np.ndarray = field(repr=False)
    """(c_i,) int32 of the mesh: those that stand for all of the domain."""
    weights: np.ndarray = field(repr=False)
    """(c_i,) cubature weights ξ ≥ 0."""
    lam: np.ndarray = field(repr=False)
    """(c_i,) λ of these, pascal."""
    mu: np.ndarray = field(repr=False)
    """(c_i,) μ, pascal."""

    @property
    def rank(self) -> int:
        """r_i."""
        return self.shapes.shape[2]


@dataclass(frozen=True, eq=False)
class Seam:
    """The interface of two domains: k vertices that have a copy in both."""

    first: int
    second: int
    first_rows: np.ndarray
    """(k,) int32 where they are among the vertices of the first domain."""
    second_rows: np.ndarray
    """(k,) int32 where they are among those of the second."""
    areas: np.ndarray
    """(k,) a_k, m²: the share of each in the area of the interface."""


@dataclass(frozen=True, eq=False)
class MultiDomainModel:
    """A reduced soft character of several domains; immutable. World metres, kilograms, seconds."""

    name: str
    law: str
    rig: Rig = field(repr=False)
    domains: tuple[Domain, ...] = field(repr=False)
    """In an order in which elimination fills in little: leaves of the graph of seams first."""
    seams: tuple[Seam, ...] = field(repr=False)
    vertices: np.ndarray = field(repr=False)
    """(n, 3) rest positions of the tet vertices."""
    tets: np.ndarray = field(repr=False)
    """(e, 4) int32."""
    domain_of_tet: np.ndarray = field(repr=False)
    """(e,) int32."""
    triangles: np.ndarray = field(repr=False)
    """(t, 3) int32 of the surface."""
    colours: np.ndarray | None = field(repr=False)
    """(n̄, 4) or None."""
    embedding_nodes: np.ndarray = field(repr=False)
    """(n̄, 4) int32 tet vertices that carry each surface vertex."""
    embedding_weights: np.ndarray = field(repr=False)
    """(n̄, 4); all zero: the vertex follows the rig alone."""
    spring: float
    """κ, newton per metre and square metre of interface (Pa/m)."""
    spring_damping: float
    """κ_d, newton per metre a second and square metre (Pa s/m)."""
    damping_ratio: float
    """Share of critical damping at `frequency`."""
    frequency: float
    """Hertz, the lowest of the whole body."""
    size: float = 1.0
    """Metres: the diagonal of the bounding box."""
    clips: tuple[Clip, ...] = field(default=(), repr=False)
    notes: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        law_code(self.law)
        check_model(self)

    @property
    def mode_count(self) -> int:
        """Modes of all domains together."""
        return sum(domain.rank for domain in self.domains)

    @cached_property
    def skin(self) -> Skin:
        """The skin whose bones carry the domains."""
        skin = skin_of(self.rig)
        if skin is None:
            raise InputError(f"'{self.name}' has no skeleton: its rig has no bones to carry domains")
        return skin

    def bone_matrices(self, p: np.ndarray) -> np.ndarray:
        """(D, 3, 4) from rest to now of the bone of each domain, at the rig's parameters p (P,)."""
        start = parameters_start(self.rig, self.skin)
        own = self.rig.parameters.checked(p)[start : start + len(self.skin.parameters)]
        nodes = self.skin.bone_matrices(own)[self._bones]
        return np.ascontiguousarray((nodes @ self._rest_inverses)[:, :3])

    @cached_property
    def _bones(self) -> np.ndarray:
        return np.array([domain.bone for domain in self.domains])

    @cached_property
    def _rest_inverses(self) -> np.ndarray:
        return rest_inverses(self.skin)[self._bones]

    @cached_property
    def vertex_mass(self) -> np.ndarray:
        """(n,) kilogram of the tet vertices, all copies together."""
        mass = np.zeros(len(self.vertices))
        for domain in self.domains:
            mass[domain.vertices] += domain.mass
        return mass

    @cached_property
    def copies(self) -> np.ndarray:
        """(n,) int64 how many domains have a copy of each vertex."""
        return np.bincount(np.concatenate([d.vertices for d in self.domains]), minlength=len(self.vertices))

    def assembled(self, q: np.ndarray, rotations: np.ndarray, translations: np.ndarray) -> np.ndarray:
        """(n, 3) tet vertices in the world, metres, copies averaged; q (r,), `rotations` (D, 3, 3) and
        `translations` (D, 3) of the frames."""
        total = np.zeros_like(self.vertices)
        for domain, own, R, t in zip(self.domains, self.split(q), rotations, translations, strict=True):
            local = self.vertices[domain.vertices] - domain.centre + domain.shapes @ own
            total[domain.vertices] += local @ R.T + t
        return total / self.copies[:, None]

    def gaps(self, q: np.ndarray, rotations: np.ndarray, translations: np.ndarray) -> np.ndarray:
        """(k,) metres between the two copies at every spring, of all seams in their order."""
        own = self.split(q)
        found = []
        for seam in self.seams:
            sides = []
            for index, rows in ((seam.first, seam.first_rows), (seam.second, seam.second_rows)):
                domain = self.domains[index]
                local = self.vertices[domain.vertices[rows]] - domain.centre + domain.shapes[rows] @ own[index]
                sides.append(local @ rotations[index].T + translations[index])
            found.append(np.linalg.norm(sides[0] - sides[1], axis=1))
        return np.concatenate(found) if found else np.zeros(0)

    def split(self, q: np.ndarray) -> Sequence[np.ndarray]:
        """The coordinates of each domain, (r_i,), of all (r,)."""
        return np.split(q, np.cumsum([domain.rank for domain in self.domains])[:-1])


def rigid_frames(matrices: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (D, 3, 3), t (D, 3) of bone matrices (D, 3, 4): their rotation, without scale, and where centres (D, 3) go."""
    U, _, Vt = np.linalg.svd(matrices[:, :, :3])
    U[:, :, 2] *= np.where(np.linalg.det(U @ Vt) < 0.0, -1.0, 1.0)[:, None]
    return U @ Vt, np.einsum("dij,dj->di", matrices[:, :, :3], centres) + matrices[:, :, 3]
