"""One mesh cut into domains → a tree of reduced domains (SUB11 §3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from softrig.bases.carrying import wrench_fields
from softrig.bodies.divided import DividedBody
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.domains import Interface, interfaces
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
        self.parents = _tree(body, seams)
        self.order = [0]
        for number in self.order:
            self.order.extend(child for child, parent in enumerate(self.parents) if parent == number)
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
        self.weights, self.centres = subtree_burdens(self.parents, own, centres / own[:, None])
        self.members: dict[int, np.ndarray] = {}

    def flesh(self, i: int, modes: int, carrying: bool) -> Flesh:
        """Domain i, reduced."""
        body, mesh = self.body, self.body.mesh
        own = np.nonzero(body.domains == i)[0]
        used, local = np.unique(mesh.elements[own], return_inverse=True)
        self.members[i] = used
        number_of = np.full(len(mesh.vertices), -1)
        number_of[used] = np.arange(len(used))
        held = body.fixed[used] if i == 0 else np.isin(used, self.seams[i].vertices)
        skin = number_of[mesh.boundary_triangles]
        skin = skin[(skin >= 0).all(axis=1)]
        part = VolumeMesh.build(mesh.vertices[used] - self.origins[i], local.reshape(-1, 4).astype(np.int32))
        burdens = []
        for child, seam in self.seams.items():
            if carrying and self.parents[child] == i:
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
        name, shape = self.body.domain_names[i], self.order.index(i)
        if i == 0:
            return Domain(name, shape, -1, np.zeros(3), np.eye(3))
        parent, seam = self.parents[i], self.seams[i]
        above = flesh[parent]
        local = np.searchsorted(self.members[parent], seam.vertices)
        near = np.nonzero(np.isin(above.mesh.elements, local).any(axis=1))[0]
        place, centre, slopes = interface_link(
            above.mesh.vertices[local], seam.areas, above.modes[local], mean_gradients(above.mesh, above.modes, near)
        )
        return Domain(name, shape, self.order.index(parent), place, np.eye(3), centre=centre, slopes=slopes)


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


def _tree(body: DividedBody, seams: list[Interface]) -> list[int]:
    """The parent of each domain, -1 of the root; domains that form no tree are named."""
    count, names = len(body.domain_names), body.domain_names
    empty = np.setdiff1d(np.arange(count), body.domains)
    if empty.size:
        raise InputError("domains without elements", empty)
    held = np.unique(body.domains[body.fixed[body.mesh.elements].any(axis=1)])
    if held.size and held[-1] > 0:
        raise InputError(f"only the root, {names[0]!r}, may be held; {names[held[-1]]!r} is, too", [held[-1]])
    parents = {0: -1}
    queue = [0]
    for number in queue:
        for seam in seams:
            if number not in (seam.first, seam.second):
                continue
            other = seam.second if seam.first == number else seam.first
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
    return [parents[i] for i in range(count)]
