"""One mesh cut into domains → a tree of reduced domains (SUB11 §3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from softrig.bases.carrying import wrench_fields
from softrig.bodies.divided import DividedBody
from softrig.errors import InputError, notice
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.domains import Interface, interfaces
from softrig.meshing.embedding import boundary_owners
from softrig.models.substructured import Domain, SubstructuredModel
from softrig.pipeline.domain_flesh import (
    Flesh,
    interface_link,
    mean_gradients,
    mode_counts,
    reduced_shape,
    subtree_burdens,
)


class _Cut:
    """The domains of a mesh in the order of a tree, and where they meet."""

    def __init__(self, body: DividedBody) -> None:
        self.body = body
        _require_domains(body)
        seams = interfaces(body.mesh, body.domains)
        self.parents, self.order = _tree(body, seams)
        _tell_of_edges(body, self.parents)
        self.places = {number: place for place, number in enumerate(self.order)}
        """Of each domain in the model."""
        self.seams = {(seam.second if self.parents[seam.second] == seam.first else seam.first): seam for seam in seams}
        """By the child's number."""
        vertices = body.mesh.vertices
        self.origins = {0: np.zeros(3)}
        for child, seam in self.seams.items():
            self.origins[child] = seam.areas @ vertices[seam.vertices] / seam.areas.sum()
        masses = body.mesh.volumes * body.density
        count = len(self.parents)
        own = np.bincount(body.domains, masses, count)
        middles = vertices[body.mesh.elements].mean(axis=1)
        centres = np.stack([np.bincount(body.domains, masses * axis, count) for axis in middles.T], axis=1)
        self.weights, self.centres = subtree_burdens(self.parents, self.order, own, centres / own[:, None])
        self.members: dict[int, np.ndarray] = {}
        self.skin, tets = boundary_owners(body.mesh.elements)
        """(t, 3) triangles of the surface."""
        self.numbers = np.full(len(vertices), -1)
        """Of vertices in the domain at hand; others hold what they were last."""
        self.owners = body.domains[tets]
        """(t,) the domain that each belongs to."""
        by_domain = np.argsort(body.domains, kind="stable")
        ends = np.cumsum(np.bincount(body.domains, minlength=count))
        self.elements = np.split(by_domain, ends[:-1])
        """Of each domain."""
        self.children: dict[int, list[int]] = {i: [] for i in range(count)}
        for child in self.order[1:]:
            self.children[self.parents[child]].append(child)

    def flesh(self, i: int, modes: int, carrying: bool) -> Flesh:
        """Domain i, reduced."""
        body, mesh = self.body, self.body.mesh
        used, local = np.unique(mesh.elements[self.elements[i]], return_inverse=True)
        self.members[i] = used
        number_of = self.numbers
        number_of[used] = np.arange(len(used))
        held = body.fixed[used] if i == 0 else np.isin(used, self.seams[i].vertices)
        skin = number_of[self.skin[self.owners == i]]
        part = VolumeMesh.build(mesh.vertices[used] - self.origins[i], local.reshape(-1, 4).astype(np.int32))
        burdens = []
        for child in self.children[i] if carrying else ():
            seam = self.seams[child]
            forces = np.zeros((len(used), 3, 6))
            lever = float(np.linalg.norm(self.centres[child] - self.origins[child]))
            forces[number_of[seam.vertices]] = self.weights[child] * wrench_fields(
                mesh.vertices[seam.vertices], seam.areas, lever
            )
            burdens.append(forces)
        material = Material(body.young[i], body.poisson, body.density)
        return reduced_shape(body.domain_names[i], part, material, held, modes, skin, body.colours[used], burdens)

    def domain(self, i: int, flesh: Mapping[int, Flesh]) -> Domain:
        """How domain i hangs on its parent."""
        name, shape = self.body.domain_names[i], self.places[i]
        if i == 0:
            return Domain(name, shape, -1, np.zeros(3), np.eye(3))
        parent, seam = self.parents[i], self.seams[i]
        above = flesh[parent]
        local = np.searchsorted(self.members[parent], seam.vertices)
        near = np.nonzero(np.isin(above.mesh.elements, local).any(axis=1))[0]
        place, centre, slopes = interface_link(
            above.mesh.vertices[local], seam.areas, above.modes[local], mean_gradients(above.mesh, above.modes, near)
        )
        return Domain(name, shape, self.places[parent], place, np.eye(3), centre=centre, slopes=slopes)


def divided_model(
    body: DividedBody,
    modes: int | Mapping[str, int],
    carrying: bool,
    progress: Callable[[int, int], None] | None,
) -> SubstructuredModel:
    """See `softrig.substructure`."""
    cut = _Cut(body)
    names = body.domain_names
    elements = np.bincount(body.domains, minlength=len(names))
    counts = mode_counts(modes, {names[i]: int(elements[i]) for i in cut.order})
    flesh: dict[int, Flesh] = {}
    for done, i in enumerate(cut.order):
        flesh[i] = cut.flesh(i, counts[names[i]], carrying)
        if progress:
            progress(done + 1, len(cut.order))
    return SubstructuredModel(
        shapes=tuple(flesh[i].shape for i in cut.order),
        domains=tuple(cut.domain(i, flesh) for i in cut.order),
        floating=not body.fixed.any(),
        drawn=np.concatenate([cut.members[i] for i in cut.order]).astype(np.int32),
        triangles=np.ascontiguousarray(body.mesh.boundary_triangles, np.int32),
        name=body.name,
    )


def _require_domains(body: DividedBody) -> None:
    count, elements = len(body.domain_names), len(body.mesh.elements)
    if len(body.domains) != elements or body.domains.min() < 0 or body.domains.max() >= count:
        raise InputError(f"domains must be {elements} numbers from 0 to {count - 1}, one an element")


def _tree(body: DividedBody, seams: list[Interface]) -> tuple[list[int], list[int]]:
    """The parent of each domain, -1 of the root, and all in order, parents first; what forms no tree is named."""
    count, names = len(body.domain_names), body.domain_names
    empty = np.setdiff1d(np.arange(count), body.domains)
    if empty.size:
        raise InputError("domains without elements", empty)
    root = np.zeros(len(body.mesh.vertices), np.bool_)
    root[body.mesh.elements[body.domains == 0]] = True
    astray = np.nonzero(body.fixed & ~root)[0]
    if astray.size:
        holder = names[body.domains[(body.mesh.elements == astray[0]).any(axis=1)][0]]
        raise InputError(f"only the root, {names[0]!r}, may be held; vertices of {holder!r} are, too", astray)
    neighbours: dict[int, list[int]] = {i: [] for i in range(count)}
    for seam in seams:
        neighbours[seam.first].append(seam.second)
        neighbours[seam.second].append(seam.first)
    parents = {0: -1}
    queue = [0]
    for number in queue:
        for other in sorted(neighbours[number]):
            if other == parents[number]:
                continue
            if other in parents:
                raise InputError(
                    f"domains {names[number]!r} and {names[other]!r} close a loop; domains must form a tree: "
                    "make one domain of some of them",
                    [number, other],
                )
            parents[other] = number
            queue.append(other)
    lost = sorted(set(range(count)) - set(parents))
    if lost:
        raise InputError(f"domain {names[lost[0]]!r} shares no face with a way to the root {names[0]!r}", lost)
    return [parents[i] for i in range(count)], queue


def _tell_of_edges(body: DividedBody, parents: list[int]) -> None:
    """Tell of domains that touch at vertices which no parent of theirs shares: nothing holds them together there."""
    pairs = np.unique(
        np.stack([body.mesh.elements.ravel(), np.repeat(body.domains, body.mesh.elements.shape[1])], axis=1), axis=0
    )
    starts = np.nonzero(np.diff(pairs[:, 0], prepend=-1))[0]
    for group in np.split(pairs[:, 1], starts[1:]):
        # Where all that meet at a vertex hang together there, all but one have their parent among them.
        loose = [number for number in group.tolist() if parents[number] not in group]
        if len(loose) > 1:
            one, other = (body.domain_names[number] for number in loose[:2])
            notice(f"domains {one!r} and {other!r} touch at an edge or a corner only: there they will come apart")
            return
