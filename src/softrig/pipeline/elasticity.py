"""Exact reduced elasticity of the flesh, at a pose of the model or at any other."""

from __future__ import annotations

import numpy as np

from softrig.fem.assembly import SystemPattern
from softrig.forces.projection import PoseElasticity
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh


def pose_elasticity(
    flesh: Flesh,
    fabric: Fabric,
    positions: np.ndarray,
    pose: int,
    shapes: np.ndarray,
    *,
    pattern: SystemPattern | None = None,
) -> PoseElasticity:
    """Exact reduced elasticity with the material of `pose`."""
    return PoseElasticity(
        positions,
        flesh.mesh.elements,
        flesh.fixed,
        fabric.law,
        fabric.young[pose],
        fabric.poisson[pose],
        shapes,
        neutral=flesh.mesh.vertices,
        pattern=pattern,
    )


def mixed_elasticity(
    model: PoseSpaceModel,
    flesh: Flesh,
    fabric: Fabric,
    p: np.ndarray,
    *,
    scales: np.ndarray | None = None,
    pattern: SystemPattern | None = None,
) -> PoseElasticity:
    """The same at any parameters p (P,): interpolated rest shape, basis and material; `scales` (r,) of the modes."""
    w = model.positive_weights(p)
    local = np.tensordot(model.basis_weights(p), model.shapes, axes=1)
    shapes = np.einsum("nij,njk->nik", model.vertex_rotations(p), local, optimize=True)
    mixed = Fabric(fabric.law, fabric.density, (w @ fabric.young)[None], (w @ fabric.poisson)[None], 0.0)
    if scales is not None:
        shapes *= scales
    return pose_elasticity(flesh, mixed, model.tet_rest(p), 0, shapes, pattern=pattern)
