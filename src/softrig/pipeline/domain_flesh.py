"""One domain of a tree: its reduced shape, how its frame follows its parent's, and what the air does to it (SUB11)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.bases.carrying import carrying_basis
from softrig.bases.derivatives import derivative_basis
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body, rigid_products
from softrig.models.full import FullBody
from softrig.models.substructured import DomainShape

FLAT = 1e-3
"""An interface thinner than this, squared and against its width, counts as planar (the paper's ε)."""


@dataclass(frozen=True)
class Flesh:
    """A domain's mesh in its own frame, reduced."""

    mesh: VolumeMesh
    shape: DomainShape

    @property
    def modes(self) -> np.ndarray:
        """(n, 3, r)."""
        return self.shape.basis.reshape(len(self.mesh.vertices), 3, -1)


def mode_counts(modes: int | Mapping[str, int], elements: dict[str, int]) -> dict[str, int]:
    """How many modes each shape has, by name."""
    if isinstance(modes, Mapping):
        unknown = sorted(set(modes) - set(elements))
        if unknown:
            raise InputError(f"no domain called {unknown[0]!r}; there are {', '.join(elements)}")
        missing = sorted(set(elements) - set(modes))
        if missing:
            raise InputError(f"how many modes has {missing[0]!r}? Name all domains, or give one number")
        wrong = [name for name, count in modes.items() if count < 0]
        if wrong:
            raise InputError(f"{wrong[0]!r} cannot have {modes[wrong[0]]} modes")
        return dict(modes)
    if modes < 0:
        raise InputError(f"domains cannot have {modes} modes")
    weights = {name: math.log(1.0 + count) for name, count in elements.items()}
    mean = sum(weights.values()) / len(weights)
    return {name: round(modes * weight / mean) for name, weight in weights.items()}


def reduced_shape(
    name: str,
    mesh: VolumeMesh,
    material: Material,
    held: np.ndarray,
    count: int,
    skin: np.ndarray,
    colours: np.ndarray,
    burdens: Sequence[np.ndarray],
) -> Flesh:
    """The shape of a mesh in its own frame; `skin` (t, 3) is what of its surface air can touch.

    `burdens`: fields (n, 3, 6) of forces that children exert.
    """
    if held.all():
        count = 0  # nothing of it can bend
    body = FullBody(mesh, material, fixed=held if count and held.any() else None)
    n = len(mesh.vertices)
    if count == 0:
        basis, coefficients = np.zeros((3 * n, 0)), np.zeros(0)
    else:
        count = min(count, body.size // 2)
        if burdens:
            shapes = carrying_basis(body, count, body.restrict(np.concatenate(burdens, axis=2)))
        else:
            shapes = derivative_basis(body, count)
        reduced = reduce_body(body, shapes)
        basis, coefficients = reduced.basis, reduced.flat_coefficients
    fields = basis.reshape(n, 3, -1)
    products = np.einsum("g,gabxy->abxy", _densities(body), rigid_products(body, fields, _densities(body)))
    shape = DomainShape(
        name=name,
        vertices=mesh.vertices,
        basis=basis,
        coefficients=coefficients,
        products=products,
        drag=drag_table(mesh.vertices, fields, skin),
        triangles=np.ascontiguousarray(mesh.boundary_triangles, np.int32),
        colours=colours,
    )
    return Flesh(mesh, shape)


def _densities(body: FullBody) -> np.ndarray:
    """(g,) the largest of each group, as `reduce_body` refers to it."""
    return np.array([body.density[body.mesh.groups == g].max() for g in range(len(body.mesh.group_names))])


def drag_table(vertices: np.ndarray, fields: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(21 + 3r,) ∫n⊗n dA | ∫(X×n)⊗n dA | ∫X dA / area | ∫(U·n)n dA, of a surface and modes `fields` (n, 3, r)."""
    corners = vertices[triangles]
    normals = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    units = normals / np.maximum(areas, 1e-300)[:, None]
    centres, moved = corners.mean(axis=1), fields[triangles].mean(axis=1)
    facing = np.einsum("ti,tj->ij", units, normals)
    turning = np.einsum("ti,tj->ij", np.cross(centres, units), normals)
    centre = areas @ centres / max(float(areas.sum()), 1e-300)
    modal = np.einsum("tir,ti,tj->rj", moved, units, normals)
    return np.concatenate([facing.ravel(), turning.ravel(), centre, modal.ravel()])


def interface_link(
    points: np.ndarray,
    areas: np.ndarray,
    moves: np.ndarray,
    slopes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centroid (3,), how modes move it â (3, r), and how they deform the interface (r, 3, 3) (SUB11 Eqs. 1 – 4).

    `points` (k, 3), metres, weighted by `areas` (k,); `moves` (k, 3, r) the parent's modes there. A planar interface
    says nothing of its normal: there `slopes` (3, 3, r), the mean gradient of the modes in the tets around, does.
    """
    weights = areas / areas.sum()
    centroid = weights @ points
    centre = np.einsum("k,kir->ir", weights, moves)
    arms = points - centroid
    spread = np.einsum("k,ki,kj->ij", weights, arms, arms)
    moments = np.einsum("k,kir,kj->rij", weights, moves - centre, arms)
    values, axes = np.linalg.eigh(spread)
    if not values[-1] > 0.0:  # a single point, or points that are one: the tets around say all
        return centroid, centre, np.ascontiguousarray(slopes.transpose(2, 0, 1))
    for axis, value in zip(axes.T, values, strict=True):
        lacking = FLAT * values[-1] - value
        if lacking > 0.0:
            # An extra point along the normal, which moves as the flesh around the interface does.
            spread = spread + lacking * np.outer(axis, axis)
            moments = moments + lacking * np.einsum("ijr,j,k->rik", slopes, axis, axis)
    return centroid, centre, moments @ np.linalg.inv(spread)


def mean_gradients(mesh: VolumeMesh, fields: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """(3, 3, r) mean of ∂U/∂X over some tets, by volume."""
    points = mesh.stiffness_points
    volumes = points.volumes[tets, 0] / points.volumes[tets, 0].sum()
    return np.einsum("t,tair,taj->ijr", volumes, fields[mesh.elements[tets]], points.gradients[tets, 0], optimize=True)


def subtree_burdens(
    parents: Sequence[int], order: Sequence[int], masses: np.ndarray, centres: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(d,) mass, kilogram, and (d, 3) centre of mass, metres, of each domain with all that hangs on it.

    `parents` of each, -1 of the root; `order`: their numbers, parents first; `masses` (d,) and `centres` (d, 3) of the
    domains themselves.
    """
    total, moments = masses.copy(), masses[:, None] * centres
    for i in reversed(order):
        if parents[i] >= 0:
            total[parents[i]] += total[i]
            moments[parents[i]] += moments[i]
    return total, moments / total[:, None]
