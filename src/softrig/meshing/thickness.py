"""How thick a surface's body is, how wide the gaps beside it are, and how far the lattice reaches out.

Thin parts fall between the nodes of a lattice. The body to be meshed is therefore the soup grown
outward, more where it is thin: by clip(b·h − ½ thickness, 0.15 h, b·h) for the lattice spacing h,
but not so far that a gap which the lattice could resolve is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from softrig.meshing.distance_field import SurfaceField, both_sides

LEAST_OFFSET = 0.15
"""Of a spacing: how far the lattice's body reaches beyond the surface everywhere."""

SURVIVES = 0.55
"""Of a spacing: a rod of this radius holds a lattice node in every cross-section (0.5 is the limit)."""

DEEPEST_BALL = 1.25
"""Of a spacing: balls are not grown beyond this radius; thicker is thick."""

SAMPLE_SIZE = 0.75
"""Of a spacing: the longest edge of the pieces whose middles are the samples."""

MOST_PIECES = 1 << 20


@dataclass(frozen=True)
class SurfaceSamples:
    """Points of the surface about half a spacing apart, in the field's units."""

    places: np.ndarray
    """(s, 3)."""
    outward: np.ndarray
    """(s, 3) unit normals, away from the inside where there is one."""
    inner: np.ndarray
    """(s,) radius of the largest ball inside that touches here: half the thickness."""
    outer: np.ndarray
    """(s,) radius of the largest ball outside that touches here: half the gap."""
    gap: np.ndarray
    """(s,) the same, but only where the surface beyond faces this one; large at mere corners."""
    areas: np.ndarray
    """(s,) area each sample stands for."""
    owners: np.ndarray
    """(s,) triangle each sample lies on."""

    spacing: float
    """Of the lattice they were taken for."""

    @cached_property
    def neighbours(self) -> np.ndarray:
        """(p, 2) samples within about a cell of each other that face alike."""
        pairs = self.tree.query_pairs(0.9 * self.spacing, output_type="ndarray")
        turn = np.einsum("pd,pd->p", self.outward[pairs[:, 0]], self.outward[pairs[:, 1]])
        return pairs[turn > -0.2]

    @cached_property
    def tree(self) -> cKDTree:
        """To find the samples about a place."""
        return cKDTree(self.places)


def sample_surface(field: SurfaceField, spacing: float) -> SurfaceSamples:
    """Samples of the surface with the inner and outer balls that touch there."""
    places, owners, areas, cut = _pieces(field, spacing)
    outward, sheet = field.normals[owners], field.sheet[owners]
    buried = np.zeros(len(places), bool)
    # A triangle larger than the samples may dive into another part half-way.
    below, above = both_sides(field.around, places[cut], outward[cut])
    buried[cut], sheet[cut] = below & above, ~below & ~above
    if not buried.all():
        kept = (places, outward, sheet, areas, owners)
        places, outward, sheet, areas, owners = (array[~buried] for array in kept)
    most = DEEPEST_BALL * spacing
    inner = np.where(sheet, 0.0, _touching_ball(field, places, -outward, most)[0])
    outer, beyond = _touching_ball(field, places, outward, most)
    opposed = (beyond >= 0) & (np.einsum("sd,sd->s", field.normals[beyond], outward) < -0.5)
    return SurfaceSamples(places, outward, inner, outer, np.where(opposed, outer, most), areas, owners, spacing)


def _pieces(field: SurfaceField, spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Middle (s, 3), triangle, area and whether its triangle was cut (s,), of pieces under `SAMPLE_SIZE` spacings.

    Triangles much smaller than that are thinned to a few in each cube of half that size, so that the
    number of samples follows the lattice and not the soup.
    """
    corners = field.points[field.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    cuts = np.maximum(np.ceil(longest / (SAMPLE_SIZE * spacing)), 1.0)
    total = float((cuts**2).sum())
    cuts = np.maximum(cuts * min(1.0, np.sqrt(MOST_PIECES / total)), 1.0).astype(np.int64)
    places, owners = [], []
    for k in np.unique(cuts):
        those = np.nonzero(cuts == k)[0]
        weights = _piece_middles(int(k))
        places.append(np.einsum("wc,tcd->twd", weights, corners[those]).reshape(-1, 3))
        owners.append(np.repeat(those, len(weights)))
    place, owner = np.concatenate(places), np.concatenate(owners)
    a, b, c = (corners[:, i] for i in range(3))
    areas = (0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1) / cuts**2)[owner]
    cube = np.floor(place / (0.5 * SAMPLE_SIZE * spacing)).astype(np.int64)
    octant = (field.normals[owner] > 0.0).astype(np.int64)
    _, first, which = np.unique(np.hstack([cube, octant]), axis=0, return_index=True, return_inverse=True)
    owner = owner[first]
    return place[first], owner, np.bincount(which.reshape(-1), weights=areas), cuts[owner] > 1


def _piece_middles(cuts: int) -> np.ndarray:
    """(cuts², 3) barycentric middles of a triangle cut into `cuts`² equal ones."""
    i, j = np.meshgrid(np.arange(cuts), np.arange(cuts), indexing="ij")
    upright, turned = i + j < cuts, i + j < cuts - 1
    first = np.concatenate([i[upright] + 1 / 3, i[turned] + 2 / 3]) / cuts
    second = np.concatenate([j[upright] + 1 / 3, j[turned] + 2 / 3]) / cuts
    return np.stack([first, second, 1.0 - first - second], axis=1)


def _touching_ball(
    field: SurfaceField, places: np.ndarray, towards: np.ndarray, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Radius (s,), at most `most`, of the largest empty ball that touches `places` on one side; and what stops it.

    Shrinking: where a ball about p + r·n holds a surface point q, the ball through p and q is the next.
    """
    radii, beyond = np.full(len(places), most), np.full(len(places), -1)
    active = np.arange(len(places))
    for _ in range(8):
        centres = places[active] + radii[active, None] * towards[active]
        distance, triangle, nearest = field.distances(centres, most)
        shrink = distance < radii[active] * (1.0 - 1e-2)
        active, nearest = active[shrink], nearest[shrink]
        beyond[active] = triangle[shrink]
        if not active.size:
            break
        apart = nearest - places[active]
        along = np.einsum("sd,sd->s", apart, towards[active])
        squared = np.einsum("sd,sd->s", apart, apart)
        smaller = np.where(along > 0.0, squared / np.maximum(2.0 * along, 1e-300), 0.0)
        radii[active] = np.minimum(radii[active], smaller)
    return radii, beyond


def _blunted(samples: SurfaceSamples, most: float) -> np.ndarray:
    """(s,) inner radii, or what is left of a neighbour's ball (up to `most`) less the way to it.

    At the edge of a box the touching ball vanishes although the body there is as thick as anywhere: it
    needs no offset. At a blade's edge the neighbours are as thin. Only balls below the surface count:
    a finger is not thick because it stands on a hand.
    """
    radii = samples.inner.copy()
    balls = np.minimum(samples.inner, most)
    centres = samples.places - balls[:, None] * samples.outward
    for one, other in (samples.neighbours.T, samples.neighbours[:, ::-1].T):
        towards = centres[other] - samples.places[one]
        length = np.linalg.norm(towards, axis=1)
        below = -np.einsum("pd,pd->p", towards, samples.outward[one]) > 0.5 * length
        np.maximum.at(radii, one[below], (2.0 * balls[other] - length)[below])
    return radii


def sample_offsets(samples: SurfaceSamples, spacing: float, reach: float) -> np.ndarray:
    """(s,) how far outward the lattice's body goes at each sample; `reach` is b, in spacings."""
    inner = _blunted(samples, reach * spacing)
    wanted = reach * spacing - inner
    spared = np.maximum(samples.gap - 0.5 * spacing, SURVIVES * spacing - inner)
    return np.maximum(LEAST_OFFSET * spacing, np.minimum(wanted, spared))


def offsets_at(samples: SurfaceSamples, offsets: np.ndarray, spacing: float, queries: np.ndarray) -> np.ndarray:
    """(q,) the offset about each query: the mean of the nearest samples, weighted by their distance."""
    count = min(6, len(offsets))
    distance, which = samples.tree.query(queries, k=count)
    distance, which = distance.reshape(-1, count), which.reshape(-1, count)
    further = distance - distance[:, :1]
    weights = np.exp(-((further / (0.5 * spacing)) ** 2))
    return np.asarray((weights * offsets[which]).sum(axis=1) / weights.sum(axis=1))
