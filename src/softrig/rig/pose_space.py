"""Pose-space deformation (PSSD Eqs. 1, 2): sculpted corrections that switch themselves on with the pose.

    Φ̄(p) = rig(X̄ + Σ_i w_i(p) δ̄_i, p)

A correction is a blend shape in front of the rig, so it turns with the bones; its weight is the normalised biharmonic
weight w_i of the pose it was sculpted at: one there, zero at all other poses. Poses without a correction
take part in the weights too: there nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softrig.errors import IndexRangeError, InputError, notice
from softrig.numerics.rbf import BiharmonicWeights
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.deforming import checked_positions
from softrig.rig.features import bounding_size
from softrig.rig.parameters import Parameters
from softrig.rig.protocol import Deformer, Rig

FAR_SCULPT = 0.25
"""Of the character's size: a sculpt whose vertices lie further from the posed surface (RMS) draws a notice."""
_IN_PLACE = 1e-12
_STEP = 1e-5
_REACHED = 1e-9
_SHOWN_AT_REST = 1e-6
"""A correction of more than this share of itself counts."""


class PoseSpaceRig:
    """A rig whose corrective morphs follow the pose; the caller's values of their weights are ignored.

    `rig`         the plain rig, with the correctives among its morphs
    `corrective`  pairs (morph parameter "<name>.weight", index of the pose it was sculpted at)
    `poses`       (m, P) parameters of the poses, all of them, also those without a correction
    `ignored`     names of further parameters that are no part of the pose, such as the morphs of a face
    """

    def __init__(
        self, rig: Rig, corrective: Sequence[tuple[str, int]], poses: np.ndarray, *, ignored: Sequence[str] = ()
    ) -> None:
        self.rig = rig
        self.corrective = tuple((str(name), int(pose)) for name, pose in corrective)
        self.poses = np.atleast_2d(rig.parameters.checked(poses))
        names = [name for name, _ in self.corrective]
        self._columns = np.array([rig.parameters.index(name) for name in names], dtype=np.int64)
        self._pose_of = np.array([pose for _, pose in self.corrective], dtype=np.int64)
        self._counted = np.array([name not in {*names, *ignored} for name in rig.feature_names])
        _check_correctives(names, self._columns, self._pose_of, len(self.poses))
        self.weights = BiharmonicWeights(self.features(self.poses))
        self._require_rest_uncorrected()

    @property
    def parameters(self) -> Parameters:
        """Those of the plain rig."""
        return self.rig.parameters

    @property
    def vertex_count(self) -> int:
        """n̄, how many vertices the rig moves."""
        return self.rig.vertex_count

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the F pose features, those of the correctives among them (always zero)."""
        return self.rig.feature_names

    def features(self, p: np.ndarray) -> np.ndarray:
        """(..., F) weighted features of parameters p (..., P): zero where a corrective's weight would be.

        What a corrective does follows from the pose, so it must not be part of the pose.
        """
        return features_of_frames(self.rig, p) * self._counted

    def pose_weights(self, p: np.ndarray) -> np.ndarray:
        """(..., m) w(p) (Eq. 2) at parameters p (..., P)."""
        return self.weights(self.features(p))

    def corrected(self, p: np.ndarray) -> np.ndarray:
        """(..., P) a copy of p (..., P) with the weights of the correctives replaced by w of their poses."""
        p = np.array(self.parameters.checked(p))
        if self._columns.size:
            p[..., self._columns] = self.pose_weights(p)[..., self._pose_of]
        return p

    def positions(self, p: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(n̄, 3) metres, the corrected surface at p (P,), or (len(vertices), 3) of the named vertices alone."""
        return self.rig.positions(self.corrected(p), vertices)

    def _require_rest_uncorrected(self) -> None:
        """A correction at the rest pose would change the rest shape that everything is bound to."""
        at_rest = np.abs(self.pose_weights(self.parameters.rest)[self._pose_of])
        shown = np.flatnonzero(at_rest > _SHOWN_AT_REST)
        if not shown.size:
            return
        own = shown[at_rest[shown] > 1.0 - _SHOWN_AT_REST]
        if own.size:
            name = self.corrective[int(own[0])][0]
            raise InputError(f"correction '{name}' belongs to the rest pose: put it into the rest shape", own)
        notice("the rest pose is not among the poses, so it shows some of the corrections", shown)


def features_of_frames(rig: Rig, p: np.ndarray) -> np.ndarray:
    """(..., F) weighted features of any rig at parameters p (..., P); one call where the rig takes many frames."""
    p = rig.parameters.checked(p)
    pose_features = getattr(rig, "pose_features", None)
    if pose_features is not None:
        return np.asarray(pose_features(p))
    rows = [rig.features(row) for row in p.reshape(-1, p.shape[-1])]
    return np.array(rows).reshape(*p.shape[:-1], len(rig.feature_names))


def sculpted_correction(rig: Deformer, p: np.ndarray, positions: np.ndarray, *, rounds: int = 4) -> np.ndarray:
    """(n̄, 3) bind-space displacements δ̄ of the rest positions that `rig` at parameters p (P,) takes to `positions`.

    `positions` (n̄, 3), metres, is the surface as it was sculpted at the pose. Newton's method a vertex: skins and wires
    are affine in a vertex' place, so they need one round and one for rounding. Vertices in place get exactly zero.
    """
    rest = rig.rest_positions
    target = checked_positions(positions, "sculpted vertices")
    if len(target) != len(rest):
        raise InputError(
            f"the sculpt has {len(target)} vertices, the character {len(rest)}: they must be the same ones"
        )
    p = rig.parameters.checked(p)
    size = bounding_size(rest)
    posed = rig.deform(p, rest, None)
    away = np.linalg.norm(target - posed, axis=1)
    if np.sqrt(np.mean(away**2)) > FAR_SCULPT * size:
        notice("a sculpt lies far from the surface at its pose: is it another pose, or are its vertices reordered?")
    moved = np.flatnonzero(away > _IN_PLACE * size)
    points = rest[moved]
    for _ in range(rounds):
        now, slopes = _value_and_slopes(rig, p, points, moved, _STEP * size)
        # The least change that does it: where a joint has collapsed, some directions cannot be reached at all.
        change = np.linalg.pinv(slopes, rcond=1e-6) @ (target[moved] - now)[:, :, None]
        points = points + change[:, :, 0]
    missed = np.linalg.norm(rig.deform(p, points, moved) - target[moved], axis=1) > _REACHED * size
    if missed.any():
        raise InputError("the rig cannot take these vertices to where they were sculpted", moved[missed])
    displacements = np.zeros_like(rest)
    displacements[moved] = points - rest[moved]
    return displacements


def with_corrections(rig: Deformer, deltas: np.ndarray, names: Sequence[str]) -> RigChain:
    """`rig` with corrections `deltas` (t, n̄, 3), metres in bind space, as blend shapes called `names` in front.

    Where the rig begins with blend shapes already the new ones come behind those; all other parameters keep their
    names and move back by t. A clip made for `rig` fits by `Clip.placed`.
    """
    deltas = np.asarray(deltas, dtype=np.float64)
    if deltas.ndim != 3 or deltas.shape[2] != 3 or len(deltas) != len(names):
        raise InputError(f"{len(names)} corrections must be ({len(names)}, n, 3), not {deltas.shape}")
    if deltas.shape[1] != rig.vertex_count:
        raise InputError(f"corrections of {deltas.shape[1]} vertices for a character of {rig.vertex_count}")
    taken = [index for index, name in enumerate(names) if f"{name}.weight" in rig.parameters.names]
    if taken or len(set(names)) != len(names):
        raise InputError(f"a correction needs a name of its own: {', '.join(names)}", taken)
    stages = rig.stages if isinstance(rig, RigChain) else (rig,)
    first = stages[0] if isinstance(stages[0], BlendShapes) else None
    if first is None:
        shapes = BlendShapes(rig.rest_positions, deltas, tuple(names))
    else:
        weights = np.concatenate([first.parameters.rest, np.zeros(len(names))])
        targets = np.concatenate([first.targets, deltas])
        shapes = replace(first, targets=targets, names=(*first.names, *names), rest_weights=weights)
        stages = stages[1:]
    return RigChain(
        (shapes, *stages),
        areas=getattr(rig, "areas", None),
        feature_weights=_widened(
            getattr(rig, "feature_weights", None), 0 if first is None else len(first.names), names
        ),
    )


def _widened(weights: np.ndarray | None, place: int, names: Sequence[str]) -> np.ndarray | None:
    """The user's feature weights with zeros for the new morphs."""
    return None if weights is None else np.insert(np.asarray(weights, dtype=np.float64), place, np.zeros(len(names)))


def _value_and_slopes(
    rig: Deformer, p: np.ndarray, points: np.ndarray, vertices: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """(k, 3) where the rig takes `points`, and (k, 3, 3) its slopes there, by central differences."""
    ahead = [rig.deform(p, points + step * unit, vertices) for unit in np.eye(3)]
    behind = [rig.deform(p, points - step * unit, vertices) for unit in np.eye(3)]
    slopes = (np.stack(ahead, axis=2) - np.stack(behind, axis=2)) / (2.0 * step)
    return rig.deform(p, points, vertices), slopes


def _check_correctives(names: Sequence[str], columns: np.ndarray, poses: np.ndarray, count: int) -> None:
    twice = [index for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise InputError(f"correction '{names[twice[0]]}' is given more than one pose", twice)
    unknown = np.flatnonzero((poses < 0) | (poses >= count))
    if unknown.size:
        index = int(unknown[0])
        raise IndexRangeError(
            f"correction '{names[index]}' belongs to pose {poses[index]}, but there are only {count} poses", unknown
        )
    assert len(columns) == len(names)
