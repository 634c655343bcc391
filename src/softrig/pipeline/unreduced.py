"""A model without shapes: all that the full simulation needs of a character; and which of its two steps to take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from softrig.dynamics import Rayleigh
from softrig.models.moving import FullSimulation
from softrig.models.pose_space import Cubature, PoseSpaceModel
from softrig.models.small import SmallSimulation, is_small
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.posing import Posing
from softrig.rig.character import Character


def full_simulation(
    model: PoseSpaceModel,
    fabric: Fabric,
    *,
    rate: float,
    damping: Rayleigh,
    iterations: int | None = 1,
    gravity: tuple[float, float, float] = (0.0, -9.81, 0.0),
    sag_free: bool = True,
    inertia_scale: float = 1.0,
) -> FullSimulation | SmallSimulation:
    """The full simulation of a model: compiled where the body is small and steps take one Newton iteration.

    Both move alike; small bodies step many times quicker so, and what a coarse mesh costs is what it need cost.
    """
    small = iterations == 1 and is_small(model)
    kind: Callable[..., FullSimulation | SmallSimulation]
    kind = SmallSimulation if small else partial(FullSimulation, iterations=iterations)
    return kind(
        model,
        fabric.young,
        fabric.poisson,
        rate=rate,
        damping=damping,
        gravity=gravity,
        sag_free=sag_free,
        inertia_scale=inertia_scale,
    )


def unreduced_model(character: Character, flesh: Flesh, posing: Posing, fabric: Fabric) -> PoseSpaceModel:
    """Geometry, rig, poses, mass and clips of `character`; of shapes and forces there is one mode that does nothing."""
    poses, n = len(posing.table), len(flesh.mesh.vertices)
    frames = posing.frame_weights.shape[1]
    loads = 12 * posing.tet_rig.weights.shape[1] if posing.tet_rig.weights is not None else 0
    nothing = np.zeros((poses, 0))
    return PoseSpaceModel(
        name=character.name,
        law=fabric.law,
        rig=posing.rig,
        corrective=posing.corrective,
        poses=posing.table,
        tet_rig=posing.tet_rig,
        interpolation="bind" if posing.bind else "world",
        vertices=flesh.mesh.vertices,
        tets=flesh.mesh.elements,
        fixed=flesh.fixed,
        vertex_mass=fabric.density * flesh.unit_mass,
        triangles=character.triangles,
        colours=character.colours,
        embedding_nodes=flesh.nodes,
        embedding_weights=flesh.weights,
        shapes=np.zeros((1, n, 3, 1)),
        region_of_mode=np.zeros(1, np.int32),
        region_names=("body",),
        mass_products=np.ones((1, 1, 1, 1)),
        inertia=np.zeros((poses, 1, loads + poses)),
        wind=np.zeros((poses, 1, 3 * frames)),
        gyro_frames=np.zeros(0, np.int32),
        gyro=np.zeros((0, 9, 1, 1)),
        cubature=Cubature(np.zeros(0, np.int32), nothing, nothing, nothing, np.zeros((poses, 1, 1))),
        modes_order=np.ones(1),
        frequencies=np.zeros((poses, 0)),
        clips=tuple(
            clip if posing.rig is character.rig else clip.placed(posing.rig.parameters) for clip in character.clips
        ),
        size=character.size,
    )
