"""Linear vibration modes at rest: K ψ = λ M ψ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.errors import AnchorError, ModeCountError, SolverError
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_orthonormal
from softrig.numerics.rotations import skew
from softrig.numerics.sparse import lowest_eigenpairs

RIGID_MODES = 6


@dataclass(frozen=True)
class LinearModes:
    """The lowest deforming modes of a body."""

    eigenvalues: np.ndarray
    """(k,) λ = ω², rising, 1/second²."""
    shapes: np.ndarray
    """(3·free, k) mass-orthonormal, 1/√kilogram."""
    rigid: np.ndarray | None
    """(3·free, 6) mass-orthonormal rigid motions of a free body, which `shapes` do not contain."""

    @property
    def frequencies(self) -> np.ndarray:
        """(k,) hertz."""
        return np.sqrt(self.eigenvalues) / (2.0 * np.pi)

    def leading(self, count: int | None) -> LinearModes:
        """The `count` lowest of them; None: all."""
        return self if count is None else LinearModes(self.eigenvalues[:count], self.shapes[:, :count], self.rigid)


def linear_modes(body: FullBody, count: int) -> LinearModes:
    """The `count` lowest modes. A body without fixed vertices is free: its six rigid motions are left out."""
    if count < 1:
        raise ModeCountError(f"at least one mode, got {count}")
    available = body.size - (RIGID_MODES if body.is_free else 0)
    if count > available:
        raise ModeCountError(f"{count} modes asked of a body that has {available}")
    if not body.is_free:
        body.require_anchored()
        values, shapes = lowest_eigenpairs(body.rest_stiffness, body.mass, count, solver=body.solver_name)
        if values[0] <= 0.0:
            raise SolverError(f"the stiffness at rest is not positive definite: lowest eigenvalue {values[0]:.3g}")
        return LinearModes(values, shapes, None)
    return _free_modes(body, count)


def _free_modes(body: FullBody, count: int) -> LinearModes:
    parts = int(body.mesh.part_of_element.max()) + 1
    if parts > 1:
        first = [body.mesh.elements[body.mesh.part_of_element == part].min() for part in range(parts)]
        raise AnchorError(
            f"a free body must hang together by faces, this one has {parts} parts; a vertex of each", first
        )
    rigid = rigid_motions(body)
    values, shapes = lowest_eigenpairs(body.rest_stiffness, body.mass, count, null_space=rigid, solver=body.solver_name)
    if values[0] <= 0.0:
        raise SolverError(f"the stiffness at rest is not positive semidefinite: eigenvalue {values[0]:.3g}")
    # What rounding left of the rigid motions.
    shapes = shapes - rigid @ (rigid.T @ (body.mass @ shapes))
    return LinearModes(values, mass_orthonormal(shapes, body.mass), rigid)


def rigid_motions(body: FullBody) -> np.ndarray:
    """(3·free, 6) mass-orthonormal infinitesimal translations and rotations about the centre of mass."""
    vertices = body.mesh.vertices
    centre = body.vertex_mass @ vertices / body.vertex_mass.sum()
    fields = np.zeros((len(vertices), 3, RIGID_MODES))
    fields[:, :, :3] = np.eye(3)
    # Column k of S(e_k) x = e_k × x, so the three rotations are the columns of −S(x).
    fields[:, :, 3:] = -skew(vertices - centre)
    return mass_orthonormal(body.restrict(fields), body.mass)
