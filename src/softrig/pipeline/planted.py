"""A few shapes planted into each other many times → a tree of reduced domains that share all that is precomputed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from softrig.bases.carrying import wrench_fields
from softrig.bodies.divided import Limb, PlantedTree
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.embedding import TetEmbedding, embed_points, require_tets
from softrig.models.substructured import Domain, SubstructuredModel
from softrig.pipeline.domain_flesh import (
    Flesh,
    interface_link,
    mean_gradients,
    mode_counts,
    reduced_shape,
    subtree_burdens,
)

MOST_BURDENS = 60
"""Children of one shape whose weight its basis knows of, the heaviest: others are like them."""


class _Planting:
    """Where the limbs of a tree stand, from the middles of their bases."""

    def __init__(self, tree: PlantedTree) -> None:
        self.tree = tree
        self.meshes: dict[str, VolumeMesh] = {}
        self.bases: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        """Held points in own axes, metres, and the area that each has."""
        self.middles: dict[str, np.ndarray] = {}
        for key, shape in tree.shapes.items():
            vertices, triangles = shape.mesh.vertices, shape.mesh.boundary_triangles
            held, areas = _base(vertices, triangles[shape.held[triangles].all(axis=1)], shape.held)
            self.middles[key] = areas @ vertices[held] / areas.sum()
            self.bases[key] = vertices[held] - self.middles[key], areas
            self.meshes[key] = VolumeMesh.build(vertices - self.middles[key], shape.mesh.elements)
        self.places = [self._place(limb) for limb in tree.limbs]
        self.children: dict[str, list[int]] = {key: [] for key in tree.shapes}
        """Numbers of the limbs that grow from limbs of each shape."""
        for i, limb in enumerate(tree.limbs):
            if limb.parent >= 0:
                self.children[tree.limbs[limb.parent].shape].append(i)
        self.weights, self.levers = self._burdens()
        self._embeddings: dict[str, TetEmbedding] = {}

    def _place(self, limb: Limb) -> np.ndarray:
        """(3,) the middle of a limb's base in its parent's axes, from the middle of the parent's base."""
        if limb.parent < 0:
            return limb.at + limb.rotation @ (limb.scale * self.middles[limb.shape])
        parent = self.tree.limbs[limb.parent]
        grown = limb.rotation @ (limb.scale / parent.scale * self.middles[limb.shape])
        return limb.at + grown - self.middles[parent.shape]

    def _burdens(self) -> tuple[np.ndarray, np.ndarray]:
        """(d,) mass of each subtree, and how far its centre is from where it hangs."""
        tree = self.tree
        origins, rotations = tree.frames()
        heavy = {
            key: (float(limb.mesh.volumes.sum() * limb.density), _centre(limb.mesh))
            for key, limb in tree.shapes.items()
        }
        masses = np.array([heavy[limb.shape][0] * limb.scale**3 for limb in tree.limbs])
        centres = [
            origin + rotation @ (limb.scale * heavy[limb.shape][1])
            for limb, origin, rotation in zip(tree.limbs, origins, rotations, strict=True)
        ]
        parents = [limb.parent for limb in tree.limbs]
        weights, middles = subtree_burdens(parents, range(len(parents)), masses, np.array(centres))
        return weights, np.linalg.norm(middles - origins, axis=1)

    def points(self, i: int) -> np.ndarray:
        """(k, 3) where limb i is held, in its parent's axes."""
        limb = self.tree.limbs[i]
        ratio = limb.scale / self.tree.limbs[limb.parent].scale
        return self.places[i] + ratio * self.bases[limb.shape][0] @ limb.rotation.T

    def carried(self, key: str) -> TetEmbedding:
        """Where in the tets of a shape all its children are held, found at once."""
        if key not in self._embeddings:
            points = np.concatenate([self.points(i) for i in self.children[key]])
            self._embeddings[key] = embed_points(self.meshes[key], points)
        return self._embeddings[key]

    def rows(self, key: str) -> dict[int, slice]:
        """By child, its rows in `carried`."""
        ends = np.cumsum([0, *(len(self.bases[self.tree.limbs[i].shape][1]) for i in self.children[key])])
        return {i: slice(ends[k], ends[k + 1]) for k, i in enumerate(self.children[key])}

    def flesh(self, key: str, modes: int, carrying: bool) -> Flesh:
        """A shape, reduced."""
        limb, mesh = self.tree.shapes[key], self.meshes[key]
        triangles = mesh.boundary_triangles
        burdens = []
        if carrying and self.children[key]:
            embedding, rows = self.carried(key), self.rows(key)
            for i in sorted(self.children[key], key=lambda child: -self.weights[child])[:MOST_BURDENS]:
                child = self.tree.limbs[i]
                scale = self.tree.limbs[child.parent].scale
                fields = wrench_fields(self.points(i), self.bases[child.shape][1], self.levers[i] / scale)
                forces = np.zeros((len(mesh.vertices), 3, 6))
                shares = embedding.weights[rows[i]][:, :, None, None]
                np.add.at(forces, embedding.nodes[rows[i]], shares * fields[:, None])
                burdens.append(self.weights[i] / scale**3 * forces)
        skin = triangles[~limb.held[triangles].all(axis=1)]
        material = Material(limb.young, limb.poisson, limb.density)
        return reduced_shape(key, mesh, material, limb.held, modes, skin, limb.colours, burdens)

    def links(self, key: str, flesh: Flesh) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """By child of a shape, how its frame follows."""
        found = {}
        if self.children[key]:
            embedding = self.carried(key)
            moves = embedding.carry(flesh.modes)
            for i, some in self.rows(key).items():
                slopes = mean_gradients(flesh.mesh, flesh.modes, np.unique(embedding.tets[some]))
                areas = self.bases[self.tree.limbs[i].shape][1]
                found[i] = interface_link(self.points(i), areas, moves[some], slopes)[1:]
        return found


def planted_model(
    tree: PlantedTree,
    modes: int | Mapping[str, int],
    carrying: bool,
    progress: Callable[[int, int], None] | None,
) -> SubstructuredModel:
    """See `softrig.substructure`."""
    _require_sound(tree)
    planting = _Planting(tree)
    keys = list(tree.shapes)
    counts = mode_counts(modes, {key: len(limb.mesh.elements) for key, limb in tree.shapes.items()})
    flesh: dict[str, Flesh] = {}
    links: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for done, key in enumerate(keys):
        flesh[key] = planting.flesh(key, counts[key], carrying)
        links |= planting.links(key, flesh[key])
        if progress:
            progress(done + 1, len(keys))
    none = np.zeros((3, 0)), np.zeros((0, 3, 3))
    domains = []
    for i, limb in enumerate(tree.limbs):
        centre, slopes = links.get(i, none)
        place, turn = np.asarray(planting.places[i], np.float64), np.asarray(limb.rotation, np.float64)
        number = keys.index(limb.shape)
        name = f"{limb.shape} {i}"
        domains.append(Domain(name, number, limb.parent, place, turn, limb.scale, centre=centre, slopes=slopes))
    shapes = [flesh[limb.shape].shape for limb in tree.limbs]
    starts = np.cumsum([0, *(len(shape.vertices) for shape in shapes)])
    triangles = [shape.triangles + start for shape, start in zip(shapes, starts[:-1], strict=True)]
    return SubstructuredModel(
        shapes=tuple(flesh[key].shape for key in keys),
        domains=tuple(domains),
        floating=False,
        drawn=np.arange(starts[-1], dtype=np.int32),
        triangles=np.concatenate(triangles).astype(np.int32),
        name=tree.name,
    )


def _require_sound(tree: PlantedTree) -> None:
    """Refuse a tree that cannot stand, naming the limb or the shape."""
    if not tree.limbs:
        raise InputError("a planted tree needs at least one limb")
    for key, shape in tree.shapes.items():
        require_tets(shape.mesh, f"shape {key!r}")
        if shape.held.shape != (len(shape.mesh.vertices),) or not shape.held.any():
            raise InputError(f"shape {key!r} needs a mask of {len(shape.mesh.vertices)} vertices with some held")
    for i, limb in enumerate(tree.limbs):
        if limb.shape not in tree.shapes:
            raise InputError(f"limb {i} has a shape {limb.shape!r}; there are {', '.join(tree.shapes)}", [i])
        if (limb.parent < 0) != (i == 0) or limb.parent >= i:
            raise InputError(f"limb {i} ({limb.shape}) grows from {limb.parent}: parents first, one root", [i])
        if not (np.isfinite(limb.scale) and limb.scale > 0.0 and np.isfinite(limb.at).all()):
            raise InputError(f"limb {i} ({limb.shape}) needs a positive scale and a finite place", [i])
        if np.shape(limb.rotation) != (3, 3) or np.abs(limb.rotation @ limb.rotation.T - np.eye(3)).max() > 1e-9:
            raise InputError(f"the rotation of limb {i} ({limb.shape}) is none", [i])


def _centre(mesh: VolumeMesh) -> np.ndarray:
    """(3,) metres."""
    return mesh.volumes @ mesh.vertices[mesh.elements].mean(axis=1) / mesh.volumes.sum()


def _base(vertices: np.ndarray, triangles: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Held vertices and the area that each has of the base (a third of the triangles around it)."""
    if not len(triangles):
        chosen = np.nonzero(held)[0]
        return chosen, np.ones(len(chosen))
    corners = vertices[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 6.0
    shares = np.bincount(triangles.ravel(), np.repeat(areas, 3), minlength=len(vertices))
    chosen = np.nonzero(shares > 0.0)[0]
    return chosen, shares[chosen]
