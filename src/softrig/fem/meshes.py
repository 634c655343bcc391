"""Volume meshes of tets or bricks, checked on the way in, and their integration points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.errors import (
    EmptyMeshError,
    FlatElementError,
    IndexRangeError,
    InputError,
    InvertedElementError,
    UnreferencedVertexError,
    notice,
    require_finite,
)
from softrig.fem.elements import REFERENCE_ELEMENTS, Quadrature, ReferenceElement

FLATNESS = 1e-10
"""An element is flat if its volume is below this times the cube of its bounding box's diagonal."""


@dataclass(frozen=True)
class IntegrationPoints:
    """Where a volume integral is evaluated: ∫ f dV = Σ_e Σ_p volumes[e, p] f(e, p)."""

    nodes: np.ndarray
    """(e, k) int32 vertex of each corner."""
    gradients: np.ndarray
    """(e, p, k, 3) dN_a/dX, 1/metre."""
    volumes: np.ndarray
    """(e, p) cubic metres."""
    shapes: np.ndarray
    """(p, k) N_a."""

    def __repr__(self) -> str:
        return f"IntegrationPoints({len(self.nodes):,} elements, {self.volumes.shape[1]} points each)"


@dataclass(frozen=True)
class VolumeMesh:
    """Vertices and tets (4 corners) or bricks (8 corners, VTK order). Make one with `build`."""

    vertices: np.ndarray
    """(n, 3) float64, metres."""
    elements: np.ndarray
    """(e, 4) or (e, 8) int32, positively wound."""
    groups: np.ndarray
    """(e,) int32 material group of each element."""
    group_names: tuple[str, ...]

    def __repr__(self) -> str:
        kind = "tets" if self.elements.shape[1] == 4 else "bricks"
        return f"VolumeMesh({len(self.vertices):,} vertices, {len(self.elements):,} {kind}, groups={self.group_names})"

    @classmethod
    def build(
        cls,
        vertices: np.ndarray,
        elements: np.ndarray,
        groups: np.ndarray | None = None,
        group_names: tuple[str, ...] | None = None,
    ) -> VolumeMesh:
        """Check everything and return the mesh; wrong winding is repaired with a `Notice`.

        `groups` (e,) numbers the material group of each element from 0; one group by default.
        """
        vertices = np.ascontiguousarray(vertices, dtype=np.float64)
        elements = np.asarray(elements)
        _check_arrays(vertices, elements)
        elements, rewound = _positively_wound(vertices, np.ascontiguousarray(elements, dtype=np.int32))
        _check_overlaps(elements)
        if rewound.size:
            notice(f"{rewound.size} of {len(elements)} elements were wound the wrong way: rewound", rewound)
        if groups is None:
            groups = np.zeros(len(elements), np.int32)
        if not np.issubdtype(np.asarray(groups).dtype, np.integer):
            raise InputError(f"groups must be integers, got {np.asarray(groups).dtype}")
        group_array = np.ascontiguousarray(groups, dtype=np.int32)
        if group_array.shape != (len(elements),) or group_array.min() < 0:
            raise InputError(f"groups must be {len(elements)} non-negative integers, one an element")
        count = int(group_array.max()) + 1
        empty = np.setdiff1d(np.arange(count), group_array)
        if empty.size:
            raise InputError("material groups without elements", empty)
        names = group_names or tuple("body" if count == 1 else f"group {i}" for i in range(count))
        if len(names) != count or len(set(names)) != len(names):
            raise InputError(f"{count} groups need {count} different names, got {names}")
        return cls(vertices, elements, group_array, tuple(names))

    @property
    def reference(self) -> ReferenceElement:
        """The reference element of this mesh."""
        return REFERENCE_ELEMENTS[self.elements.shape[1]]

    @cached_property
    def stiffness_points(self) -> IntegrationPoints:
        """Points at which stress is evaluated."""
        return integration_points(self.vertices, self.elements, self.reference.stiffness)

    @cached_property
    def mass_points(self) -> IntegrationPoints:
        """Points that integrate products of shape functions exactly."""
        return integration_points(self.vertices, self.elements, self.reference.mass)

    @cached_property
    def volumes(self) -> np.ndarray:
        """(e,) element volumes, cubic metres."""
        return self.stiffness_points.volumes.sum(axis=1)

    @cached_property
    def boundary_faces(self) -> np.ndarray:
        """(f, 3) or (f, 4) vertices of the faces with an element on one side only, outward."""
        faces, keys = _faces(self.elements)
        _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
        return faces[np.sort(first[counts == 1])]

    @cached_property
    def boundary_triangles(self) -> np.ndarray:
        """(t, 3) the boundary as triangles, outward."""
        faces = self.boundary_faces
        if faces.shape[1] == 3:
            return faces
        return np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])

    @cached_property
    def inner_faces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(f, 3) or (f, 4) vertices of the faces with elements on both sides, and the two elements, (f,) each."""
        faces, one, other = _face_pairs(self.elements)
        return faces[one], _owners(self.elements, one), _owners(self.elements, other)

    @cached_property
    def part_of_element(self) -> np.ndarray:
        """(e,) which part each element belongs to; elements sharing a face are one part."""
        one, other = _face_neighbours(self.elements)
        pairs = (np.ones(len(one), np.int8), (one, other))
        graph = coo_array(pairs, shape=(len(self.elements),) * 2)
        return connected_components(graph, directed=False)[1]


def integration_points(vertices: np.ndarray, elements: np.ndarray, rule: Quadrature) -> IntegrationPoints:
    """Map a reference rule into every element: dN/dX = dN/dξ (dX/dξ)⁻¹."""
    jacobians = _jacobians(vertices, elements, rule.gradients)
    determinants = np.linalg.det(jacobians)
    gradients = np.einsum("pka,epax->epkx", rule.gradients, np.linalg.inv(jacobians), optimize=True)
    return IntegrationPoints(
        nodes=elements,
        gradients=np.ascontiguousarray(gradients),
        volumes=np.ascontiguousarray(determinants * rule.weights),
        shapes=np.ascontiguousarray(rule.shapes),
    )


def _jacobians(vertices: np.ndarray, elements: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """(e, p, 3, 3) dX_x/dξ_a from dN/dξ (p, k, 3)."""
    return np.einsum("ekx,pka->epxa", vertices[elements], gradients, optimize=True)


def _check_arrays(vertices: np.ndarray, elements: np.ndarray) -> None:
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(f"vertices must have shape (n, 3), got {vertices.shape}")
    if elements.ndim != 2 or elements.shape[1] not in REFERENCE_ELEMENTS:
        raise InputError(f"elements must have shape (e, 4) or (e, 8), got {elements.shape}")
    if not len(vertices) or not len(elements):
        raise EmptyMeshError(f"a mesh of {len(vertices)} vertices and {len(elements)} elements has no body")
    if not np.issubdtype(elements.dtype, np.integer):
        raise InputError(f"elements must be integers, got {elements.dtype}")
    require_finite(vertices, "vertex positions")
    outside = ((elements < 0) | (elements >= len(vertices))).any(axis=1)
    if outside.any():
        raise IndexRangeError(f"elements name vertices outside 0 to {len(vertices) - 1}", np.nonzero(outside)[0])
    ordered = np.sort(elements, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        raise IndexRangeError("elements name the same vertex twice", np.nonzero(repeated)[0])
    unused = np.ones(len(vertices), bool)
    unused[elements] = False
    if unused.any():
        raise UnreferencedVertexError("vertices that no element uses", np.nonzero(unused)[0])


def _positively_wound(vertices: np.ndarray, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements with positive volume everywhere, and which had to be rewound; tangled ones are refused."""
    reference = REFERENCE_ELEMENTS[elements.shape[1]]
    rule = reference.stiffness
    volumes = np.linalg.det(_jacobians(vertices, elements, rule.gradients)) @ rule.weights
    determinants = np.linalg.det(_jacobians(vertices, elements, reference.corner_gradients))
    corners = vertices[elements]
    longest = np.linalg.norm(corners.max(axis=1) - corners.min(axis=1), axis=1)
    flat = np.abs(volumes) <= FLATNESS * longest**3
    if flat.any():
        raise FlatElementError("elements without volume", np.nonzero(flat)[0])
    tangled = (determinants.min(axis=1) <= 0.0) & (determinants.max(axis=1) >= 0.0)
    if tangled.any():
        raise InvertedElementError("elements turned inside out at a corner", np.nonzero(tangled)[0])
    negative = volumes < 0.0
    if negative.any():
        elements = elements.copy()
        elements[negative] = elements[negative][:, reference.mirrored]
    return elements, np.nonzero(negative)[0]


def _faces(elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All faces of all elements, (e·faces, 3 or 4), element by element, and their sorted vertices."""
    reference = REFERENCE_ELEMENTS[elements.shape[1]]
    faces = elements[:, reference.faces].reshape(-1, reference.faces.shape[1])
    return faces, np.sort(faces, axis=1)


def _face_pairs(elements: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All faces as `_faces` gives them, and the positions of each two with the same vertices.

    Raises where more than two elements share a face.
    """
    faces, keys = _faces(elements)
    order = np.lexsort(keys.T)
    same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
    crowded = np.nonzero(same[1:] & same[:-1])[0]
    if crowded.size:
        owners = _owners(elements, order[np.concatenate([crowded, crowded + 1, crowded + 2])])
        raise InvertedElementError("three or more elements share one face", np.unique(owners))
    pairs = np.nonzero(same)[0]
    return faces, order[pairs], order[pairs + 1]


def _owners(elements: np.ndarray, faces: np.ndarray) -> np.ndarray:
    return faces // len(REFERENCE_ELEMENTS[elements.shape[1]].faces)


def _face_neighbours(elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of elements that share a face."""
    _, one, other = _face_pairs(elements)
    return _owners(elements, one), _owners(elements, other)


def _check_overlaps(elements: np.ndarray) -> None:
    """Two elements on a face must lie on opposite sides of it.

    Winding alone cannot tell a mirrored element (harmless) from one pushed through its neighbour;
    the neighbours can: once all volumes are positive, the face they share must be seen in opposite
    directions.
    """
    faces, one, other = _face_pairs(elements)
    start = faces.argmin(axis=1)
    following = np.take_along_axis(faces, ((start + 1) % faces.shape[1])[:, None], axis=1)[:, 0]
    overlapping = following[one] == following[other]
    if overlapping.any():
        culprits = _owners(elements, np.concatenate([one[overlapping], other[overlapping]]))
        raise InvertedElementError("elements lie on the same side of the face they share", np.unique(culprits))
