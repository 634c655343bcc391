"""The least model there can be: one tet on one bone, one mode, one pose, with everything a built model has."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from softrig.models.inertia_map import BLOCK, InertiaMap
from softrig.models.pose_space import Cubature, PoseSpaceModel, PoseTable, TetRig
from softrig.models.stiffness_map import StiffnessMap
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
"""metres."""
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)


def least_model() -> PoseSpaceModel:
    """A tet whose corners move along x, skinned to one bone, in the types of a model that `build` made."""
    rig = _rig()
    loads, features = BLOCK + 1, rig.pose_features
    shapes = np.zeros((1, 4, 3, 1))
    shapes[0, :, 0] = 0.5
    weights = np.asarray(features.weights, dtype=np.float64)
    counted = np.flatnonzero(weights).astype(np.int32)
    kernel = counted, np.array([0, len(counted)], np.int32), np.ones(1), np.zeros((1, len(counted))), 0.0, np.ones(1)
    return PoseSpaceModel(
        name="least",
        law="stable-neo-hookean",
        rig=rig,
        corrective=(),
        poses=PoseTable(("rest",), rig.parameters.rest[None], features(rig.parameters.rest)[None], weights),
        tet_rig=TetRig("skin", csr_array(np.ones((4, 1))), None, None, np.zeros((1, 4, 3))),
        interpolation="bind",
        vertices=CORNERS,
        tets=np.arange(4, dtype=np.int32)[None],
        fixed=np.zeros(4, bool),
        vertex_mass=np.ones(4),
        triangles=FACES,
        colours=None,
        embedding_nodes=np.tile(np.arange(4, dtype=np.int32)[:, None], (1, 4)),
        embedding_weights=np.tile([1.0, 0.0, 0.0, 0.0], (4, 1)),
        shapes=shapes,
        region_of_mode=np.zeros(1, np.int32),
        region_names=("all",),
        mass_products=np.ones((1, 1, 1, 1)),
        inertia=np.zeros((1, 1, loads)),
        wind=np.zeros((1, 1, 3)),
        gyro_frames=np.zeros(1, np.int32),
        gyro=np.zeros((1, 9, 1, 1)),
        cubature=Cubature(
            np.zeros(1, np.int32),
            np.ones((1, 1)),
            np.full((1, 1), 1e4),
            np.full((1, 1), 0.4),
            np.zeros((1, 1, 1)),
            stiffness_map=StiffnessMap(*kernel, np.zeros((1, 1)), np.full((2, 1, 1), 100.0)),
        ),
        modes_order=np.ones(1),
        frequencies=np.ones((1, 1)),
        inertia_map=InertiaMap(
            *kernel,
            np.zeros((1, 1)),
            np.zeros((1, 1)),
            np.zeros(1, np.int32),
            np.zeros((1, 1, BLOCK)),
            np.zeros((1, 3)),
            np.zeros(1, np.int32),
            np.zeros((1, 1, 3)),
        ),
    )


def _rig() -> LinearBlendSkin:
    skeleton = Skeleton.from_heads(("bone",), (-1,), np.zeros((1, 3)))
    return LinearBlendSkin(
        skeleton, CORNERS, np.zeros(1, np.int64), np.eye(4)[None], np.zeros((4, 1), np.int64), np.ones((4, 1))
    )
