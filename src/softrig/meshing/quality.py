"""What a tet mesh is worth: its angles, its volume against the surface's, its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_OPPOSITE = np.array([[0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2], [1, 2, 0, 3], [1, 3, 2, 0], [2, 3, 0, 1]])
"""Each edge of a tet, and the two corners away from it."""


def dihedral_angles(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(t, 6) angles between faces at each edge, degrees; `vertices` (n, 3), `tets` (t, 4)."""
    corners = vertices[tets][:, _OPPOSITE]
    along = corners[:, :, 1] - corners[:, :, 0]
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    one, other = (corners[:, :, k] - corners[:, :, 0] for k in (2, 3))
    one = one - np.einsum("ted,ted->te", one, along)[..., None] * along
    other = other - np.einsum("ted,ted->te", other, along)[..., None] * along
    across = np.linalg.norm(np.cross(one, other), axis=2)
    return np.degrees(np.arctan2(across, np.einsum("ted,ted->te", one, other)))


def tet_volumes(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(t,) signed volumes, positive where positively wound."""
    a, b, c, d = (vertices[tets[:, k]] for k in range(4))
    return np.einsum("td,td->t", b - a, np.cross(c - a, d - a)) / 6.0


@dataclass(frozen=True)
class MeshQuality:
    """What a lattice mesh is worth. Angles in degrees, lengths in metres, volumes in cubic metres."""

    tets: int
    vertices: int
    smallest_dihedral: float
    """Smallest angle between two faces of a tet, degrees."""
    largest_dihedral: float
    """Largest angle between two faces of a tet, degrees."""
    surface_volume: float
    """What the surface encloses; overlaps count once."""
    mesh_volume: float
    parts: int
    """Face-connected parts."""
    parted_vertices: int
    """Vertices doubled because parts hung together only there."""
    removed_tets: int
    """Tets dropped as crumbs or around edges that could not be parted."""
    pinched_edges: int
    """Edges of the boundary that more than two boundary faces share."""
    smallest_weight: float
    """Smallest barycentric weight of a surface vertex in its tet; below 0 where it lies outside."""
    share_outside: float
    """Share of the surface's vertices in no tet."""
    thin_share: float
    """Share of the surface's area where the body is under two cells thick."""
    thin_places: np.ndarray
    """(k, 3) middles of those areas, the largest first, metres."""
    thin_bones: np.ndarray
    """(k,) bones that lie everywhere less than one cell deep: under two cells thick."""
    fused_pairs: int
    """Pairs of surface samples, far apart along the surface, that the mesh has joined across a gap."""
    fused_places: np.ndarray
    """(k, 3) middles of such gaps, the largest first, metres."""

    @property
    def volume_ratio(self) -> float:
        """Mesh over surface; infinite where the surface encloses nothing."""
        return self.mesh_volume / self.surface_volume if self.surface_volume > 0.0 else float("inf")
