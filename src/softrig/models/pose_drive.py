"""From rig parameters p to carrier values z, which is all the step knows of the pose.

A skin's z: bone matrices M_b (B, 3, 4), then pose weights w (m,); so that of frames fitted to a rig without bones. A
black box' z: positions of the observed tet vertices, carried by the surface without corrections, then w. Behind either,
where the model has them, stand the weights of the stiffness map's components and the shares of the inertia map's. Skins
are compiled; any other rig is asked for the few surface vertices that frames are fitted to, or observed tet vertices
hang on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.models.inertia_map import write_shares
from softrig.models.kernels import pose_space_drive as kernels
from softrig.models.pose_kernel import PoseKernel, write_kernels
from softrig.models.pose_space import PoseSpaceModel, fitted_matrices, parameters_start, rest_inverses
from softrig.models.stiffness_map import write_weights
from softrig.numerics.rotations import quaternion_conjugate, unit_quaternions
from softrig.rig.bones import skin_of
from softrig.rig.features import PoseFeatures
from softrig.rig.protocol import Rig
from softrig.rig.skeleton_kernel import skeleton_tree


class SkinDrive:
    """Carrier values of a skin, compiled."""

    def __init__(self, model: PoseSpaceModel, rig: Rig) -> None:
        skin = skin_of(rig)
        if skin is None or len(skin.binding.bones) * 12 + len(model.poses) != model.load_count:
            raise InputError("the rig does not have the bones that carry the model's tets")
        self.size = 12 * len(skin.binding.bones) + len(model.poses)
        binds = skin.binding.inverse_binds @ rest_inverses(skin)
        self._parameters = rig.parameters
        self._tree = skeleton_tree(skin.skeleton, parameters_start(rig, skin), skin.binding.bones, binds)
        self._features = compiled_features(model)
        self._world = np.zeros((len(skin.skeleton), 3, 4))
        self._room = np.zeros(self._features.poses.shape[1])
        self._maps = MapDrive(model)

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """z (Z,) at parameters p (P,)."""
        p = np.ascontiguousarray(self._parameters.checked(p))
        z = np.empty(self.size + self._maps.size)
        kernels.skin_carriers(self._tree, self._features, p, self._world, self._room, z[: self.size])
        poses = len(self._features.matrix)
        self._maps.write(self._room, z[self.size - poses : self.size], z[self.size :])
        return z

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """w (m,) at parameters p (P,)."""
        w = np.empty(len(self._features.matrix))
        kernels.pose_weights(self._features, np.ascontiguousarray(p, dtype=np.float64), self._room, w)
        return w


class FittedDrive:
    """Carrier values of a rig without bones that frames stand for: their matrices from a few surface vertices."""

    def __init__(self, model: PoseSpaceModel, rig: Rig) -> None:
        fit, sample = model.tet_rig.frame_fit, model.tet_rig.frame_sample
        assert fit is not None
        assert sample is not None
        self._fit, self._sample = np.ascontiguousarray(fit), sample
        self.size = 12 * len(fit) + len(model.poses)
        self._rig = rig
        self._pose = CorrectedPose(model, rig)
        self._maps = MapDrive(model)

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """z (Z,) at parameters p (P,)."""
        p, w = self._pose(self._rig.parameters.checked(p))
        z = np.empty(self.size + self._maps.size)
        z[: self.size - len(w)] = fitted_matrices(self._fit, self._rig.positions(p, self._sample)).ravel()
        z[self.size - len(w) : self.size] = w
        self._maps.write(self._pose.features, w, z[self.size :])
        return z

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """w (m,) at parameters p (P,)."""
        return self._pose.weights(p)


class BlackBoxDrive:
    """Carrier values of any other rig: positions of the observed tet vertices."""

    def __init__(self, model: PoseSpaceModel, rig: Rig, observed: np.ndarray) -> None:
        nodes, weights = model.tet_rig.shepard_nodes, model.tet_rig.shepard_weights
        assert nodes is not None
        assert weights is not None
        self.size = 3 * len(observed) + len(model.poses)
        self._rig = rig
        self._surface, places = np.unique(nodes[observed], return_inverse=True)
        self._places = np.ascontiguousarray(places.reshape(nodes[observed].shape), dtype=np.int32)
        self._weights = np.ascontiguousarray(weights[observed])
        self._pose = CorrectedPose(model, rig)
        self._maps = MapDrive(model)
        self._rest = np.zeros((len(observed), 3))
        at_rest = self(rig.parameters.rest)[: 3 * len(observed)].reshape(-1, 3)
        self._rest = model.vertices[observed] - at_rest

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """z (Z,) at parameters p (P,)."""
        p, w = self._pose(self._rig.parameters.checked(p))
        z = np.empty(self.size + self._maps.size)
        kernels.carried_by_nodes(self._rest, self._places, self._weights, self._rig.positions(p, self._surface), z)
        z[self.size - len(w) : self.size] = w
        self._maps.write(self._pose.features, w, z[self.size :])
        return z

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """w (m,) at parameters p (P,)."""
        return self._pose.weights(p)


class CorrectedPose:
    """Pose weights, and parameters with those of the correctives in place; compiled, for rigs that are not."""

    def __init__(self, model: PoseSpaceModel, rig: Rig) -> None:
        self._features = compiled_features(model)
        self._places, self._poses = corrective_places(model, rig)
        self.features = np.zeros(self._features.poses.shape[1])
        """Those of the last pose."""

    def weights(self, p: np.ndarray) -> np.ndarray:
        """w (m,) at parameters p (P,)."""
        w = np.empty(len(self._features.matrix))
        kernels.pose_weights(self._features, np.ascontiguousarray(p, dtype=np.float64), self.features, w)
        return w

    def __call__(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A copy of p (P,) with the weights of corrective morphs replaced by those of their poses, and w (m,)."""
        p = np.array(p, dtype=np.float64)
        w = self.weights(p)
        p[self._places] = w[self._poses]
        return p, w


class MapDrive:
    """What the maps of a model make of a pose, from the features that pose weights left behind."""

    def __init__(self, model: PoseSpaceModel) -> None:
        self._stiffness, self._inertia = model.cubature.stiffness_map, model.inertia_map
        self._weights = 0 if self._stiffness is None else len(self._stiffness.components)
        self.size = self._weights + (0 if self._inertia is None else len(self._inertia.owners))
        self._place = {int(feature): place for place, feature in enumerate(feature_order(model)[2])}
        maps = [known for known in (self._stiffness, self._inertia) if known is not None]
        together = len(maps) == 2 and maps[0].same_samples(maps[1])
        self._tables = [self._table(*maps)] if together else [self._table(known) for known in maps]
        self._kernels = [row for table in self._tables for row in table[-1]]
        # In one order, whichever they were made in: the compiler takes each for another type.
        self._coefficients = [np.ascontiguousarray(known.coefficients) for known in maps]
        self._remainders = None if self._inertia is None else np.ascontiguousarray(self._inertia.remainders)

    def _table(self, known: PoseKernel, *others: PoseKernel) -> tuple[Any, ...]:
        """What `write_kernels` needs for maps of the same samples, and room for its answer."""
        places = np.array([self._place[int(column)] for column in known.columns], np.int32)
        samples = np.ascontiguousarray(known.samples)
        relevance = np.stack([known.relevance, *(other.relevance for other in others)])
        room = np.zeros(len(known.lengths)), np.zeros((len(relevance), len(samples)))
        return places, known.groups, known.lengths, samples, *known.bounds, known.pairs, relevance, *room

    def write(self, features: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        """Write the weights of the stiffness map's components and the shares of the inertia map's, where there are any.

        w (m,) of the poses.
        """
        for places, groups, lengths, samples, low, high, pairs, relevance, single, answer in self._tables:
            write_kernels(places, groups, lengths, samples, low, high, pairs, relevance, features, single, answer)
        if self._stiffness is not None:
            touching = self._stiffness.touching
            write_weights(self._kernels[0], self._coefficients[0], touching, w, out[: self._weights])
        if self._remainders is not None:
            write_shares(self._kernels[-1], self._coefficients[-1], self._remainders, w, out[self._weights :])


def observed_vertices(model: PoseSpaceModel) -> np.ndarray:
    """Black-box tet vertices that the step must know: of the cubature tets, of the inertial sample, of the root."""
    if model.tet_rig.kind == "skin":
        return np.zeros(0, np.int64)
    corners = model.tets[model.cubature.tets].ravel()
    return np.unique(np.concatenate([corners, model.cubature.inertial_vertices, model.tet_rig.root_sample]))


def pose_drive(model: PoseSpaceModel, rig: Rig) -> SkinDrive | FittedDrive | BlackBoxDrive:
    """The drive of a model by `rig`, its own or one of the same parameters."""
    if len(rig.parameters) != len(model.rig.parameters):
        raise InputError(f"the model's rig has {len(model.rig.parameters)} parameters, this one {len(rig.parameters)}")
    if model.tet_rig.frame_fit is not None:
        return FittedDrive(model, rig)
    if model.tet_rig.kind == "skin":
        return SkinDrive(model, rig)
    return BlackBoxDrive(model, rig, observed_vertices(model))


def compiled_features(model: PoseSpaceModel) -> kernels.Features:
    """Those features of `model.pose_features` that count."""
    features: PoseFeatures = model.pose_features
    parameters, weights = features.parameters, features.weights
    scalars, turns, order, place = feature_order(model)
    lengths = np.array([features.size if parameters.units[k] == "m" else 1.0 for k in scalars])
    rests = np.array([parameters.rest[k : k + 4] for k in turns]).reshape(-1, 4)
    return kernels.Features(
        np.array(scalars, np.int32),
        parameters.rest[scalars] if scalars else np.zeros(0),
        weights[[place[k] for k in scalars]] / lengths if scalars else np.zeros(0),
        np.array(turns, np.int32),
        quaternion_conjugate(unit_quaternions(rests)),
        np.array([weights[place[k] : place[k] + 3] for k in turns]).reshape(-1, 3),
        np.ascontiguousarray(model.poses.features[:, order], dtype=np.float64),
        np.ascontiguousarray(model.poses.interpolant.matrix, dtype=np.float64),
    )


def feature_order(model: PoseSpaceModel) -> tuple[list[int], list[int], list[int], dict[int, int]]:
    """Parameters of scalar features and of rotations that count, the features in that order, and all by parameter."""
    parameters, weights = model.pose_features.parameters, model.pose_features.weights
    turned = set((parameters.quaternions[:, None] + np.arange(4)).ravel().tolist())
    columns = np.delete(np.arange(len(parameters)), parameters.quaternions + 3)
    place = {int(parameter): k for k, parameter in enumerate(columns)}
    scalars = [k for k in place if k not in turned and weights[place[k]] != 0.0]
    turns = [int(k) for k in parameters.quaternions if weights[place[int(k)] : place[int(k)] + 3].any()]
    order = [place[k] for k in scalars] + [place[k] + i for k in turns for i in range(3)]
    return scalars, turns, order, place


def corrective_places(model: PoseSpaceModel, rig: Rig) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of the corrective morphs, and their poses."""
    places = [rig.parameters.index(name) for name, _ in model.corrective]
    return np.array(places, np.int64), np.array([pose for _, pose in model.corrective], np.int64)
