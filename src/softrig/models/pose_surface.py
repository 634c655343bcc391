"""The drawn surface of a pose-space model: the rig's own, moved along by the tets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from softrig.errors import require_output
from softrig.models.kernels import pose_space_display as kernels
from softrig.models.kernels.pose_space_layout import bone_runs, most_bones, root_table
from softrig.models.kernels.pose_space_tables import BoneRuns, Memory, Rows
from softrig.models.pose_drive import CorrectedPose, compiled_features, corrective_places
from softrig.models.pose_space import PoseSpaceModel, parameters_start
from softrig.numerics.vectors import BEYOND
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.protocol import Rig
from softrig.rig.skeleton_kernel import skeleton_tree
from softrig.rig.skinning import LinearBlendSkin

GAP = 16
"""Places that a blend shape does not move but that are moved by zero, rather than begin another piece."""


class Surface:
    """Compiled where the rig is a linear blend skin, with or without blend shapes in front; else by the rig itself."""

    def __init__(
        self,
        model: PoseSpaceModel,
        rig: Rig,
        rows: Rows,
        followed: tuple[kernels.Followed, kernels.Following],
        memory: Memory,
    ) -> None:
        self._rig = rig
        self._count = len(model.embedding_nodes)
        stages = rig.stages if isinstance(rig, RigChain) else (rig,)
        skin, shapes = stages[-1], stages[0] if isinstance(stages[0], BlendShapes) else None
        plain = len(stages) == 1 or (len(stages) == 2 and shapes is not None)
        vertices, motion, bones = motion_tables(model, rows, memory)
        # The modes' state is looked up anew each time: a copy of this must look into its own.
        self._state = memory.state
        self._motion = (*motion[1:], *bones, *followed[0], *followed[1])
        self._moves = motion.moves
        order = np.arange(self._count)
        self._skin: tuple[Any, ...] | None = None
        if plain and isinstance(skin, LinearBlendSkin):
            order, runs, skinning = skinning_tables(model, rig, skin, shapes)
            binding = skin.binding
            tree = skeleton_tree(skin.skeleton, parameters_start(rig, skin), binding.bones, binding.inverse_binds)
            self._skin = (*tree, *compiled_features(model), *skinning, *runs)
        self._pose = CorrectedPose(model, rig)
        self._embedding = embedding_tables(model, vertices, order)

    def positions(self, p: np.ndarray, out: np.ndarray | None) -> np.ndarray:
        """(n̄, 3) float32 metres at rig parameters p (P,)."""
        p = np.ascontiguousarray(self._rig.parameters.checked(p))
        if out is None:
            out = np.empty((self._count, 3), np.float32)
        require_output(out, (self._count, 3), np.float32)
        flat = out.reshape(-1)
        if self._skin is not None:
            kernels.draw_skin(p, flat, self._state[0], *self._motion, *self._skin, *self._embedding)
        else:
            kernels.move_tets(self._state[0], *self._motion)
            own = np.ascontiguousarray(self._rig.positions(self._pose(p)[0]).T, dtype=np.float32)
            kernels.embed(own[0], own[1], own[2], self._moves, *self._embedding, flat)
        return out


def motion_tables(model: PoseSpaceModel, rows: Rows, memory: Memory) -> tuple[np.ndarray, kernels.Motion, BoneRuns]:
    """The moving tet vertices (d,) that carry the surface, by bones; what moves them; their bones."""
    used = np.unique(model.embedding_nodes[model.embedding_weights != 0.0])
    moving = used[rows.of_vertex[used] >= 0]
    moving = moving[np.argsort(rows.offsets[moving])]
    if model.interpolation == "bind":
        assert model.tet_rig.weights is not None
        table = model.tet_rig.weights[moving]
    else:
        table = root_table(model, len(moving))
    order, bones = bone_runs(table, kind=np.float32)
    sets, first, counts = np.unique(rows.of_vertex[moving], return_index=True, return_counts=True)
    by_place = np.argsort(first)
    motion = kernels.Motion(
        memory.state[0],
        memory.upsilon,
        memory.basis,
        memory.quaternions,
        rows.starts,
        rows.columns,
        rows.numbers,
        rows.units,
        np.stack([sets, counts], axis=1)[by_place].astype(np.int32),
        np.argsort(order).astype(np.uint32),
        np.zeros(max(rows.units.size, model.follower_count) + BEYOND, np.float32),
        np.zeros((3, len(moving)), np.float32),
        np.zeros(4 * most_bones(bones), np.float32),
        np.zeros((4, len(moving) + BEYOND), np.float32),
        np.zeros(4 * len(moving) + 4, np.float32),
    )
    return moving[order], motion, bones


def followed_tables(model: PoseSpaceModel, rows: Rows, memory: Memory) -> tuple[kernels.Followed, kernels.Following]:
    """What follows the modes, if anything does; `rows` are those of the followers."""
    followed = kernels.Followed(
        memory.mixing, rows.starts, rows.columns, rows.numbers, rows.units, np.ones(rows.units.size), np.ones(1)
    )
    known = model.followers
    if known is None:
        none, nothing = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        return followed, kernels.Following(none, none, none.astype(np.int16), none, none, *[nothing] * 4)
    mixtures, left, right = known.core.shape
    core = known.core.transpose(1, 0, 2).reshape(left, mixtures * right)
    peaks = np.abs(core).max(axis=1, initial=0.0)
    units = np.where(peaks > 0.0, peaks, 1.0) / np.iinfo(np.int16).max
    return followed, kernels.Following(
        np.ascontiguousarray(known.mean, dtype=np.float32),
        np.ascontiguousarray(known.left * units, dtype=np.float32),
        np.rint(core / units[:, None]).astype(np.int16),
        np.ascontiguousarray(known.right, dtype=np.float32),
        np.ascontiguousarray(known.mixing, dtype=np.float32),
        np.zeros(model.mode_count, np.float32),
        np.zeros(mixtures * right, np.float32),
        np.zeros(left, np.float32),
        np.zeros(known.count, np.float32),
    )


def skinning_tables(
    model: PoseSpaceModel, rig: Rig, skin: LinearBlendSkin, shapes: BlendShapes | None
) -> tuple[np.ndarray, BoneRuns, kernels.Skinning]:
    """The surface vertex at each place (n̄,), the bones, and the compiled form of a skin with blend shapes in front.

    Within a run of bones, vertices that the same blend shapes move stand together: those of one make few pieces.
    """
    targets = np.zeros((0, len(model.embedding_nodes), 3)) if shapes is None else np.asarray(shapes.targets)
    moved = np.asarray(targets.any(axis=2))
    order, runs = bone_runs(skin.binding.table, kind=np.float32, within=moved.T)
    piece_starts, pieces, moves, used = [0], [np.zeros((0, 4), np.int64)], [np.zeros((0, 3))], 0
    for low, high in pairwise(runs.runs.tolist()):
        for target, own in enumerate(moved[:, order[low:high]]):
            places = np.flatnonzero(own) + low
            for piece in np.split(places, np.flatnonzero(np.diff(places) > GAP) + 1) if len(places) else ():
                begin, end = piece[0], piece[-1] + 1
                pieces.append(np.array([[target, begin, end - begin, used]]))
                moves.append(targets[target, order[begin:end]])
                used += end - begin
        piece_starts.append(len(pieces) - 1)
    correctives, poses = corrective_places(model, rig)
    first = skin if shapes is None else shapes
    longest = int(np.diff(runs.runs).max(initial=0))
    return (
        order,
        runs,
        kernels.Skinning(
            np.ascontiguousarray(np.pad(first.rest_positions[order], ((0, BEYOND), (0, 0))).T, dtype=np.float32),
            np.array(piece_starts, np.int32),
            np.concatenate(pieces).astype(np.int32),
            np.ascontiguousarray(np.concatenate(moves).T, dtype=np.float32),
            np.zeros((6, longest + BEYOND), np.float32),
            np.zeros((len(skin.skeleton), 3, 4)),
            np.zeros((len(skin.binding.bones), 3, 4), np.float32),
            correctives,
            poses,
            np.zeros(len(rig.parameters)),
            np.zeros(len(model.poses)),
            np.zeros(len(model.poses.feature_weights)),
        ),
    )


def embedding_tables(model: PoseSpaceModel, vertices: np.ndarray, order: np.ndarray) -> kernels.Embedding:
    """The embedding by place: `vertices` (d,) moving tet vertices, `order` (n̄,) the surface vertex at each place."""
    slot = np.zeros(len(model.vertices), np.uint16 if len(vertices) < 1 << 16 else np.uint32)
    slot[vertices] = np.arange(1, len(vertices) + 1)
    nodes = np.where(model.embedding_weights != 0.0, slot[model.embedding_nodes], 0)
    return kernels.Embedding(
        nodes[order].astype(slot.dtype).ravel(),
        model.embedding_weights[order].astype(np.float32).ravel(),
        order.astype(np.uint32),
    )
