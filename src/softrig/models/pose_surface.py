"""The drawn surface of a pose-space model: the rig's own, moved along by the tets."""

from __future__ import annotations

import numpy as np

from softrig.errors import InputError
from softrig.models.kernels import pose_space_display as kernels
from softrig.models.kernels.pose_space_drive import bone_matrices, world_matrices
from softrig.models.kernels.pose_space_layout import Carriers, Memory, Rows
from softrig.models.pose_drive import BlackBoxDrive, SkinDrive, corrective_places, skeleton_tree
from softrig.models.pose_space import PoseSpaceModel, parameters_start
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.protocol import Rig
from softrig.rig.skinning import LinearBlendSkin


class Surface:
    """Compiled where the rig is a linear blend skin, with or without blend shapes in front; else by the rig itself."""

    def __init__(self, model: PoseSpaceModel, rig: Rig, rows: Rows) -> None:
        self._rig = rig
        self._correctives = corrective_places(model, rig)
        count = len(model.embedding_nodes)
        stages = rig.stages if isinstance(rig, RigChain) else (rig,)
        skin = stages[-1]
        self._compiled = isinstance(skin, LinearBlendSkin) and (
            len(stages) == 1 or (len(stages) == 2 and isinstance(stages[0], BlendShapes))
        )
        order = np.arange(count, dtype=np.int32)
        if self._compiled:
            assert isinstance(skin, LinearBlendSkin)
            shapes = stages[0] if isinstance(stages[0], BlendShapes) else None
            self._skinning = skinning_tables(skin, shapes)
            order = self._skinning.order
            binding = skin.binding
            self._tree = skeleton_tree(skin.skeleton, parameters_start(rig, skin), binding.bones, binding.inverse_binds)
            self._world = np.zeros((len(skin.skeleton), 3, 4))
            self._matrices = np.zeros((len(binding.bones), 3, 4), np.float32)
        self._order = order
        self._embedding = embedding_tables(model, rows, order)
        self._factors = np.zeros(len(model.shapes) * model.mode_count, np.float32), np.zeros(3, np.float32)

    def positions(
        self,
        carriers: Carriers,
        rows: Rows,
        memory: Memory,
        drive: SkinDrive | BlackBoxDrive,
        p: np.ndarray,
        out: np.ndarray | None,
    ) -> np.ndarray:
        """(n̄, 3) float32 metres at rig parameters p (P,)."""
        p = np.array(self._rig.parameters.checked(p))
        places, poses = self._correctives
        if len(places):
            p[places] = drive.pose_weights(p)[poses]
        if out is None:
            out = np.empty((len(self._order), 3), np.float32)
        elif out.shape != (len(self._order), 3) or out.dtype != np.float32:
            raise InputError(f"the surface needs float32 ({len(self._order)}, 3), not {out.dtype} {out.shape}")
        embedding = self._embedding
        write_displacements(carriers, rows, memory, embedding.vertices, *self._factors, embedding.moves[1:])
        if self._compiled:
            world_matrices(self._tree, p, self._world)
            bone_matrices(self._tree, self._world, self._matrices)
            positions = self._skinned(p)
        else:
            positions = np.ascontiguousarray(self._rig.positions(p).T, dtype=np.float32)
        kernels.add_moves(self._order, positions, embedding.nodes, embedding.weights, embedding.moves, out)
        return out

    def _skinned(self, p: np.ndarray) -> np.ndarray:
        """(3, n̄) float32 skinned positions by place, at parameters p with corrected weights."""
        table = self._skinning
        moved, out = table.room
        shaped = kernels.moved_points(
            table.points, p, table.morphs, table.morph_starts, table.morph_places, table.morph_moves, moved
        )
        kernels.skinned(
            moved if shaped else table.points,
            self._matrices,
            table.runs,
            table.starts,
            table.bones,
            table.offsets,
            table.weights,
            out,
        )
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
    """Write u (k, ≥ 3) of tet vertices (k,), metres; `factors` (m_b · r,) and `local` (3,) set the precision."""
    kernels.displacements(
        vertices,
        carriers.starts,
        carriers.bones,
        carriers.weights,
        carriers.root,
        carriers.blended,
        *rows_in_order(rows),
        memory.state[0],
        memory.upsilon,
        memory.basis,
        memory.quaternions,
        factors,
        local,
        out,
    )


def rows_in_order(rows: Rows) -> tuple[np.ndarray, ...]:
    """The arrays of `rows` as compiled code takes them."""
    return rows.of_vertex, rows.starts, rows.columns, rows.offsets, rows.entries


def skinning_tables(skin: LinearBlendSkin, shapes: BlendShapes | None) -> kernels.Skinning:
    """The compiled form of a skin and the blend shapes in front of it."""
    table = skin.binding.table
    count = table.shape[0]
    table.sort_indices()
    keys = [tuple(table.indices[low:high]) for low, high in zip(table.indptr, table.indptr[1:], strict=False)]
    order = np.array(sorted(range(count), key=lambda k: (keys[k], k)), np.int32)
    begins = [k for k in range(count) if k == 0 or keys[order[k]] != keys[order[k - 1]]]
    bones = [np.array(keys[order[k]], np.int32) for k in begins]
    runs = np.array([*begins, count], np.int32)
    weights, offsets, used = [np.zeros(0, np.float32)], [], 0
    for low, high in zip(runs, runs[1:], strict=False):
        own = np.stack([table.data[table.indptr[v] : table.indptr[v + 1]] for v in order[low:high]], axis=1)
        offsets.append(used)
        weights.append(own.astype(np.float32).ravel())
        used += own.size
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    first = skin if shapes is None else shapes
    morph_starts, places, moves = [0], [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for target in () if shapes is None else shapes.targets:
        own = np.flatnonzero(target.any(axis=1))
        own = own[np.argsort(place[own])]
        places.append(place[own])
        moves.append(target[own])
        morph_starts.append(morph_starts[-1] + len(own))
    return kernels.Skinning(
        order,
        np.ascontiguousarray(first.rest_positions[order].T, dtype=np.float32),
        runs,
        np.cumsum([0, *(len(part) for part in bones)]).astype(np.int32),
        np.concatenate([np.zeros(0, np.int32), *bones]),
        np.array(offsets, np.int64),
        np.concatenate(weights),
        np.arange(len(morph_starts) - 1, dtype=np.int32),
        np.array(morph_starts, np.int32),
        np.concatenate(places).astype(np.int32),
        np.ascontiguousarray(np.concatenate(moves).T, dtype=np.float32),
        np.zeros((2, 3, count), np.float32),
    )


def embedding_tables(model: PoseSpaceModel, rows: Rows, order: np.ndarray) -> kernels.Embedding:
    """The compiled form of the embedding; `order` (n̄,): which surface vertex stands at each place."""
    used = np.unique(model.embedding_nodes[model.embedding_weights != 0.0])
    moving = used[rows.of_vertex[used] >= 0]
    moving = moving[np.argsort(rows.offsets[moving])]
    place = np.zeros(len(model.vertices), np.int32)
    place[moving] = np.arange(1, len(moving) + 1)
    weights = model.embedding_weights[order]
    nodes = np.where(weights != 0.0, place[model.embedding_nodes[order]], 0)
    return kernels.Embedding(
        moving.astype(np.int32),
        np.ascontiguousarray(nodes, dtype=np.int32),
        np.ascontiguousarray(weights, dtype=np.float32),
        np.zeros((len(moving) + 1, 4), np.float32),
    )
