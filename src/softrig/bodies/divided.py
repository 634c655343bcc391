"""Bodies divided into a tree of domains, and the bricks they are laid of (SUB11).

A `DividedBody` is one mesh cut into domains. A `PlantedTree` is a few shapes planted into each other many times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from softrig.bodies.soup import Colour
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.embedding import require_tets
from softrig.models.full import fixed_mask


@dataclass(frozen=True)
class DividedBody:
    """One conforming mesh in domains that form a tree: no two of them meet but parent and child."""

    name: str
    mesh: VolumeMesh
    """Linear tets, metres, z up."""
    domains: np.ndarray
    """(elements,) int32 domain of each element; 0 is the root."""
    domain_names: tuple[str, ...]
    fixed: np.ndarray
    """(vertices,) bool, held vertices, all of the root domain."""
    young: np.ndarray
    """(domains,) Young's moduli, Pa."""
    poisson: float
    """Poisson's ratio."""
    density: float
    """kg/m³."""
    colours: np.ndarray
    """(vertices, 3) sRGB in 0 to 1."""

    def material(self) -> Material:
        """What the whole mesh is made of."""
        return Material(self.young[self.domains], self.poisson, self.density)

    def __repr__(self) -> str:
        return f"DividedBody({self.name!r}, {len(self.domain_names)} domains, {self.mesh!r})"


@dataclass(frozen=True)
class LimbShape:
    """One shape of a planted tree. It grows along +z of its own axes from the origin, where it is held."""

    mesh: VolumeMesh
    """Linear tets, metres, at scale 1."""
    held: np.ndarray
    """(vertices,) bool, the base at z = 0, held by what it grows from."""
    young: float
    """Young's modulus, Pa."""
    poisson: float
    """Poisson's ratio."""
    density: float
    """kg/m³."""
    colours: np.ndarray
    """(vertices, 3) sRGB in 0 to 1."""

    def material(self) -> Material:
        """What it is made of."""
        return Material(self.young, self.poisson, self.density)


@dataclass(frozen=True)
class Limb:
    """A shape, turned, scaled and planted into its parent.

    Its vertices X stand at `at + rotation @ (scale / parent scale · X)` in the unscaled axes of the parent's shape.
    """

    shape: str
    """Key into `PlantedTree.shapes`."""
    parent: int
    """Number of the limb it grows from; -1 for the root."""
    at: np.ndarray
    """(3,) its origin in the parent's shape's own axes, metres before its scale; on or in the parent's mesh."""
    rotation: np.ndarray
    """(3, 3) from its own axes to its parent's."""
    scale: float
    """Of its shape; absolute, not relative to the parent."""


@dataclass(frozen=True)
class PlantedTree:
    """A few shapes planted into each other many times."""

    name: str
    shapes: dict[str, LimbShape]
    limbs: tuple[Limb, ...]
    """Parents before children; the first is the root."""

    def __repr__(self) -> str:
        return f"PlantedTree({self.name!r}, {len(self.limbs):,} limbs of {len(self.shapes)} shapes)"

    def frames(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the limbs stand at rest, z up: origins (limbs, 3), metres, and rotations (limbs, 3, 3).

        Vertices X of limb i's shape stand at `origins[i] + rotations[i] @ (limbs[i].scale · X)`.
        """
        origins, rotations = np.zeros((len(self.limbs), 3)), np.zeros((len(self.limbs), 3, 3))
        for i, limb in enumerate(self.limbs):
            if limb.parent < 0:
                origins[i], rotations[i] = limb.at, limb.rotation
                continue
            turn = rotations[limb.parent]
            origins[i] = origins[limb.parent] + turn @ (self.limbs[limb.parent].scale * limb.at)
            rotations[i] = turn @ limb.rotation
        return origins, rotations

    def depths(self) -> np.ndarray:
        """(limbs,) int: how many limbs lie between each limb and the ground, itself included."""
        depths = np.zeros(len(self.limbs), np.int64)
        for i, limb in enumerate(self.limbs):
            depths[i] = 1 + (depths[limb.parent] if limb.parent >= 0 else 0)
        return depths


class Brickwork:
    """Bricks laid one against the other, and then split into tets that meet face to face."""

    def __init__(self) -> None:
        self._points: list[np.ndarray] = []
        self._colours: list[np.ndarray] = []
        self._bricks: list[np.ndarray] = []
        self._domains: list[np.ndarray] = []
        self._count = 0

    def add(self, points: np.ndarray, colour: Colour | np.ndarray) -> np.ndarray:
        """(…,) numbers of new vertices at `points` (…, 3), metres; one colour, or one each."""
        flat = np.asarray(points, np.float64).reshape(-1, 3)
        self._points.append(flat)
        colours = np.broadcast_to(np.asarray(colour, np.float64), np.shape(points))
        self._colours.append(colours.reshape(-1, 3))
        numbers = np.arange(self._count, self._count + len(flat))
        self._count += len(flat)
        return numbers.reshape(np.shape(points)[:-1])

    def place(self, numbers: np.ndarray) -> np.ndarray:
        """(…, 3) where the vertices `numbers` (…,) are, metres."""
        return np.concatenate(self._points)[numbers]

    def tube(
        self, start: np.ndarray, quads: np.ndarray, rings: np.ndarray, domain: int, colour: Colour | np.ndarray
    ) -> np.ndarray:
        """Bricks between a section `start` (m,) of vertices laid before and further sections `rings` (n, m, 3), metres.

        `quads` (q, 4) are the section's cells. Returns (n + 1, m) numbers, `start` first.
        """
        numbers = np.vstack([start[None], self.add(rings, colour)])
        cells = np.concatenate([numbers[:-1][:, quads], numbers[1:][:, quads]], axis=-1)
        self._lay(cells.reshape(-1, 8), domain)
        return numbers

    def blade(
        self,
        start: np.ndarray,
        rows: np.ndarray,
        domain: int,
        colour: Colour | np.ndarray,
        *,
        stalk_rows: int,
    ) -> np.ndarray:
        """A sheet that grows out of the patch `start` (a, k): vertices across and through it, laid before.

        `rows` (n, b, k, 3), metres, are the sections that follow, with b - a even. The first
        `stalk_rows` have vertices only in their middle, the stalk, as many as the patch. Returns (n + 1, b, k)
        numbers, -1 where there is no vertex.
        """
        n, b, k = rows.shape[:3]
        margin = (b - len(start)) // 2
        middle = slice(margin, margin + len(start))
        there = np.ones((n, b, k), np.bool_)
        there[:stalk_rows] = False
        there[:stalk_rows, middle] = True
        numbers = np.full((n + 1, b, k), -1)
        numbers[0, middle] = start
        colours = np.broadcast_to(np.asarray(colour, np.float64), rows.shape)
        numbers[1:][there] = self.add(rows[there], colours[there])
        near, far = numbers[:-1], numbers[1:]
        loop = [(slice(-1), slice(-1)), (slice(1, None), slice(-1)), (slice(1, None), slice(1, None)),
                (slice(-1), slice(1, None))]  # fmt: skip
        cells = np.stack([side[:, i, j] for side in (near, far) for i, j in loop], axis=-1).reshape(-1, 8)
        self._lay(cells[(cells >= 0).all(axis=1)], domain)
        return numbers

    def _lay(self, bricks: np.ndarray, domain: int) -> None:
        self._bricks.append(bricks)
        self._domains.append(np.full(len(bricks), domain, np.int32))

    def finished(self) -> tuple[VolumeMesh, np.ndarray, np.ndarray]:
        """The mesh of tets, (elements,) their domains, (vertices, 3) colours."""
        points = np.ascontiguousarray(np.concatenate(self._points))
        tets = chessboard_tets(np.concatenate(self._bricks), len(points))
        corners = points[tets]
        edges = corners[:, 1:] - corners[:, :1]
        inside_out = np.linalg.det(edges) < 0.0
        # Bricks are laid in either direction; `VolumeMesh.build` refuses those that overlap.
        tets[inside_out] = tets[inside_out][:, [0, 2, 1, 3]]
        mesh = VolumeMesh.build(points, tets.astype(np.int32))
        return mesh, np.repeat(np.concatenate(self._domains), 5), np.concatenate(self._colours)


def chessboard_tets(bricks: np.ndarray, vertex_count: int) -> np.ndarray:
    """(5·bricks, 4) five tets for each of `bricks` (n, 8), VTK order, that meet face to face everywhere.

    Vertices are coloured like a chessboard, black beside white. Every brick has four black corners,
    which make its middle tet; so neighbours cut the face they share along the same diagonal.
    """
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]])
    one, other = bricks[:, edges].reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(vertex_count, vertex_count)).tocsr()
    steps = dijkstra(graph, directed=False, unweighted=True, indices=0)
    if not np.isfinite(steps).all():
        raise InputError("bricks: some vertices hang together with no other", np.nonzero(~np.isfinite(steps))[0])
    black = steps.astype(np.int64) % 2 == 0
    clashing = black[one] == black[other]
    if clashing.any():
        raise InputError(
            "bricks: around these there is no chessboard", np.unique(np.nonzero(clashing)[0] // len(edges))
        )
    upright = np.array([[0, 2, 5, 7], [1, 0, 2, 5], [3, 0, 2, 7], [4, 0, 5, 7], [6, 2, 5, 7]])
    turned = np.array([[1, 3, 4, 6], [0, 1, 3, 4], [2, 1, 3, 6], [5, 1, 4, 6], [7, 3, 4, 6]])
    split = np.where(black[bricks[:, 0], None, None], bricks[:, upright], bricks[:, turned])
    return split.reshape(-1, 4)


@dataclass(frozen=True)
class Section:
    """A round cross-section in quads: a centre, a rim, and perhaps a ring between."""

    points: np.ndarray
    """(m, 2) in units of the radius; the centre first, the rim last."""
    quads: np.ndarray
    """(q, 4) anticlockwise."""
    rim: np.ndarray
    """(2·folds,) points of the rim, anticlockwise from the first axis."""


def round_section(folds: int, *, ring: bool) -> Section:
    """A polygon of 2·`folds` sides: `folds` quads about the centre and, with `ring`, 2·`folds` more around them."""
    sides = 2 * folds
    angle = np.pi * np.arange(sides) / folds
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    after = np.roll(np.arange(sides), -1)
    inner = 1 + np.arange(sides)
    even = inner[::2]
    quads = [np.stack([np.zeros(folds, np.int64), even, inner[1::2], np.roll(even, -1)], axis=1)]
    if not ring:
        return Section(np.vstack([np.zeros((1, 2)), circle]), quads[0], inner)
    rim = inner + sides
    quads.append(np.stack([inner, rim, rim[after], inner[after]], axis=1))
    # Every second one lies farther out, where the inner quads have their outer corners.
    reach = np.where(np.arange(sides) % 2 == 0, 0.52, 0.62)[:, None]
    return Section(np.vstack([np.zeros((1, 2)), reach * circle, circle]), np.vstack(quads), rim)


def frames_along(path: np.ndarray, across: np.ndarray) -> np.ndarray:
    """(n, 3, 3) axes along `path` (n, 3): rows across, over, along; turned as little as can be from `across` (3,)."""
    along = np.gradient(path, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    frames = np.empty((len(path), 3, 3))
    for i, ahead in enumerate(along):
        side = across - (across @ ahead) * ahead
        across = side / np.linalg.norm(side)
        frames[i] = across, np.cross(ahead, across), ahead
    return frames


def tube_rings(path: np.ndarray, frames: np.ndarray, radii: np.ndarray, section: Section) -> np.ndarray:
    """(n, m, 3) the `section` with `radii` (n,) at each point of `path` (n, 3), metres."""
    planar = radii[:, None, None] * section.points
    return path[:, None] + planar @ frames[:, :2]


def arc(start: np.ndarray, outward: np.ndarray, up: np.ndarray, elevation: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """(n, 3) a path from `start`, not part of it: `steps` (n,), metres, each rising by `elevation` (n,), radians.

    `outward` and `up` are unit vectors (3,) across each other.
    """
    moves = np.cos(elevation)[:, None] * outward + np.sin(elevation)[:, None] * up
    return start + np.cumsum(steps[:, None] * moves, axis=0)


def blade_rows(
    path: np.ndarray,
    frames: np.ndarray,
    half_widths: np.ndarray,
    thicknesses: np.ndarray,
    *,
    across: int,
    stalk: int,
    layers: int,
    stalk_rows: int,
    cup: float | np.ndarray = 0.0,
    swept: float | np.ndarray = 0.0,
    gathered: float | np.ndarray = 1.0,
) -> np.ndarray:
    """(n, across + 1, layers + 1, 3) sections of a sheet about `path` (n, 3), metres, for `Brickwork.blade`.

    `half_widths` and `thicknesses` (n,), metres; `across` and `stalk` count the cells across the
    sheet and its stalk. Its margins rise by `cup` and stay behind by `swept`, in half widths. Where
    `gathered` is below 1, the cells are the wider the nearer the middle.
    """
    place = np.linspace(-1.0, 1.0, across + 1)
    rows = np.arange(len(path))
    spread = np.sign(place) * np.abs(place) ** np.broadcast_to(gathered, len(path))[:, None]
    # In the stalk, the middle cells alone have the whole width.
    c = np.where(rows[:, None] < stalk_rows, place * across / stalk, spread)
    bent = np.where(rows[:, None] < stalk_rows, 0.0, c**2)
    rise = (np.broadcast_to(cup, len(path)) * half_widths)[:, None] * bent
    behind = (np.broadcast_to(swept, len(path)) * half_widths)[:, None] * bent
    depth = np.linspace(-0.5, 0.5, layers + 1)
    # Thinner towards the margins, as leaves are.
    height = rise[..., None] + (thicknesses[:, None] * (1.0 - 0.3 * bent))[..., None] * depth
    side, over, ahead = (frames[:, None, None, axis] for axis in range(3))
    flat = (half_widths[:, None] * c)[..., None, None] * side - behind[..., None, None] * ahead
    return path[:, None, None] + flat + height[..., None] * over


def divide(
    mesh: VolumeMesh,
    domains: np.ndarray,
    *,
    young: float | Sequence[float],
    poisson: float,
    density: float,
    fixed: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    colours: np.ndarray | None = None,
    name: str = "body",
) -> DividedBody:
    """Your own tets cut into domains, for `softrig.substructure`.

    `domains` (elements,) numbers the domain of each from 0; `young` pascal, one or one a domain; `density` kg/m³;
    `fixed`: indices or mask of held vertices, all in one domain, which becomes the root; without any the body
    floats, and its root is the domain of most mass. `names` of the domains; `colours` (vertices, 3) sRGB.
    """
    require_tets(mesh, "divide")
    domains = np.asarray(domains)
    if domains.shape != (len(mesh.elements),) or not np.issubdtype(domains.dtype, np.integer) or domains.min() < 0:
        raise InputError(f"domains must be {len(mesh.elements)} whole numbers from 0, one an element")
    count = int(domains.max()) + 1
    given = np.asarray(young, np.float64)
    if given.shape not in ((), (count,)):
        raise InputError(f"{given.size} Young's moduli for {count} domains: give one, or one each")
    if names is not None and (len(names) != count or len(set(names)) != count):
        raise InputError(f"{count} domains need {count} different names, got {len(names)}")
    held = fixed_mask(len(mesh.vertices), fixed)
    owners = _all_of(held, mesh, domains) if held.any() else np.arange(count)
    if not len(owners):
        touched = np.unique(domains[held[mesh.elements].any(axis=1)])
        raise InputError("vertices are held in several domains, but only one can be the root", touched)
    volumes = np.bincount(domains, mesh.volumes, count)
    root = int(owners[volumes[owners].argmax()])
    order = [root, *(i for i in range(count) if i != root)]
    numbers = np.empty(count, np.int32)
    numbers[order] = np.arange(count)
    called = tuple(names) if names is not None else tuple(f"domain {i}" for i in range(count))
    return DividedBody(
        name=name,
        mesh=mesh,
        domains=numbers[domains],
        domain_names=tuple(called[i] for i in order),
        fixed=held,
        young=np.broadcast_to(given, (count,))[order].copy(),
        poisson=poisson,
        density=density,
        colours=np.full((len(mesh.vertices), 3), 0.7) if colours is None else np.asarray(colours, np.float64),
    )


def _all_of(held: np.ndarray, mesh: VolumeMesh, domains: np.ndarray) -> np.ndarray:
    """Domains to which all `held` vertices belong; those at a seam belong to both its sides."""
    near = np.unique(domains[held[mesh.elements].any(axis=1)])
    whole = [np.unique(mesh.elements[domains == number]) for number in near]
    return near[[bool(np.isin(np.nonzero(held)[0], vertices).all()) for vertices in whole]]
