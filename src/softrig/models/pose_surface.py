"""The drawn surface of a pose-space model: the rig's own, moved along by the tets."""

from __future__ import annotations

from typing import Any

import numpy as np

from softrig.errors import InputError
from softrig.models.kernels import pose_space_display as kernels
from softrig.models.kernels.pose_space_layout import bone_runs, root_table
from softrig.models.kernels.pose_space_runs import mixed_quaternions
from softrig.models.kernels.pose_space_tables import BoneRuns, Carriers, Memory, Rows
from softrig.models.pose_drive import compiled_features, corrective_places, skeleton_tree
from softrig.models.pose_space import PoseSpaceModel, parameters_start
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.protocol import Rig
from softrig.rig.skinning import LinearBlendSkin


class Surface:
    """Compiled where the rig is a linear blend skin, with or without blend shapes in front; else by the rig itself."""

    def __init__(self, model: PoseSpaceModel, rig: Rig, rows: Rows) -> None:
        self._model, self._rig = model, rig
        self._count = len(model.embedding_nodes)
        stages = rig.stages if isinstance(rig, RigChain) else (rig,)
        skin, shapes = stages[-1], stages[0] if isinstance(stages[0], BlendShapes) else None
        plain = len(stages) == 1 or (len(stages) == 2 and shapes is not None)
        order = np.arange(self._count)
        self._skin: tuple[Any, ...] | None = None
        if plain and isinstance(skin, LinearBlendSkin):
            order, runs = bone_runs(skin.binding.table, kind=np.float32)
            binding = skin.binding
            tree = skeleton_tree(skin.skeleton, parameters_start(rig, skin), binding.bones, binding.inverse_binds)
            features = compiled_features(model)
            self._skinning = skinning_tables(model, rig, skin, shapes, order)
            self._skin = (tree, features, self._skinning, *runs)
        self._tets, self._embedding = embedding_tables(model, rows, order)
        self._moves = np.zeros((len(self._tets) + 1, 4), np.float32)
        self._mixed = np.zeros((4, len(self._tets)), np.float32)
        self._runs = tet_runs(model, self._tets)
        self._precision = np.zeros(len(model.shapes) * model.mode_count, np.float32), np.zeros(3, np.float32)

    def positions(self, rows: Rows, memory: Memory, p: np.ndarray, out: np.ndarray | None) -> np.ndarray:
        """(n̄, 3) float32 metres at rig parameters p (P,)."""
        p = np.ascontiguousarray(self._rig.parameters.checked(p))
        if out is None:
            out = np.empty((self._count, 3), np.float32)
        elif out.shape != (self._count, 3) or out.dtype != np.float32 or not out.flags.c_contiguous:
            raise InputError(f"the surface needs contiguous float32 ({self._count}, 3), not {out.dtype} {out.shape}")
        moves = self._moves[1:]
        write_local_displacements(rows, memory, self._tets, *self._precision, moves)
        mixed_quaternions(*self._runs, memory.quaternions, self._mixed)
        kernels.turn_by(self._mixed, moves)
        if self._skin is not None:
            kernels.skin_surface(p, *self._skin)
            positions = self._skinning.out
        else:
            own = self._rig.positions(self._model.corrected(p))
            positions = np.ascontiguousarray(own.T, dtype=np.float32)
        kernels.add_moves(positions, self._moves, *self._embedding, out)
        return out


def write_displacements(
    carriers: Carriers,
    rows: Rows,
    memory: Memory,
    vertices: np.ndarray,
    factors: np.ndarray,
    local: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write u (k, 3) of tet vertices (k,), metres; `factors` (m_b · r,) and `local` (3,) set the precision."""
    write_local_displacements(rows, memory, vertices, factors, local, out)
    kernels.turn_vectors(
        vertices,
        carriers.starts,
        carriers.bones,
        carriers.weights,
        memory.quaternions,
        carriers.root,
        carriers.blended,
        out,
    )


def write_local_displacements(
    rows: Rows, memory: Memory, vertices: np.ndarray, factors: np.ndarray, local: np.ndarray, out: np.ndarray
) -> None:
    """Write Rᵀu (k, 3) of tet vertices (k,), metres."""
    kernels.local_displacements(
        vertices,
        rows.of_vertex,
        rows.starts,
        rows.columns,
        rows.offsets,
        rows.entries,
        memory.state[0],
        memory.upsilon,
        memory.basis,
        factors,
        local,
        out,
    )


def tet_runs(model: PoseSpaceModel, vertices: np.ndarray) -> BoneRuns:
    """The runs of tet vertices (k,) in their order; where all turn with the root, one run of one bone."""
    if model.interpolation == "bind":
        assert model.tet_rig.weights is not None
        return bone_runs(model.tet_rig.weights[vertices], np.arange(len(vertices)), np.float32)[1]
    return bone_runs(root_table(model, len(vertices)), np.arange(len(vertices)), np.float32)[1]


def skinning_tables(
    model: PoseSpaceModel, rig: Rig, skin: LinearBlendSkin, shapes: BlendShapes | None, order: np.ndarray
) -> kernels.Skinning:
    """The compiled form of a skin and the blend shapes in front of it; `order` (n̄,): the vertex at each place."""
    count = len(order)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    first = skin if shapes is None else shapes
    starts, places, moves = [0], [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for target in () if shapes is None else shapes.targets:
        own = np.flatnonzero(target.any(axis=1))
        own = own[np.argsort(place[own])]
        places.append(place[own])
        moves.append(target[own])
        starts.append(starts[-1] + len(own))
    correctives, poses = corrective_places(model, rig)
    points = np.ascontiguousarray(first.rest_positions[order].T, dtype=np.float32)
    return kernels.Skinning(
        points,
        np.arange(len(starts) - 1, dtype=np.int32),
        np.array(starts, np.int32),
        np.concatenate(places).astype(np.int32),
        np.ascontiguousarray(np.concatenate(moves).T, dtype=np.float32),
        np.unique(np.concatenate(places)).astype(np.int32),
        points.copy(),
        np.zeros((3, count), np.float32),
        np.zeros((len(skin.skeleton), 3, 4)),
        np.zeros((len(skin.binding.bones), 3, 4), np.float32),
        correctives,
        poses,
        np.zeros(len(rig.parameters)),
        np.zeros(len(model.poses)),
        np.zeros(len(model.poses.feature_weights)),
    )


def embedding_tables(model: PoseSpaceModel, rows: Rows, order: np.ndarray) -> tuple[np.ndarray, kernels.Embedding]:
    """The moving tet vertices that carry the surface, in the order of their shapes, and the embedding tet by tet.

    `order` (n̄,): which surface vertex stands at each place.
    """
    used = np.unique(model.embedding_nodes[model.embedding_weights != 0.0])
    moving = used[rows.of_vertex[used] >= 0]
    moving = moving[np.argsort(rows.offsets[moving])].astype(np.int32)
    slot = np.zeros(len(model.vertices), np.int32)
    slot[moving] = np.arange(1, len(moving) + 1)
    nodes = np.where(model.embedding_weights != 0.0, slot[model.embedding_nodes], 0)
    tets, of_vertex = np.unique(nodes, axis=0, return_inverse=True)
    vertices = np.argsort(of_vertex.ravel(), kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    counts = np.bincount(of_vertex.ravel(), minlength=len(tets))
    return moving, kernels.Embedding(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.ascontiguousarray(tets, dtype=np.int32),
        place[vertices],
        vertices.astype(np.int32),
        np.ascontiguousarray(model.embedding_weights[vertices], dtype=np.float32),
    )
