"""Motion of one skeleton put onto another, joint by joint, by a map of names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from softrig.errors import InputError
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_product,
    quaternions_between,
    quaternions_from_matrices,
    unit_quaternions,
)
from softrig.rig.clip import Clip
from softrig.rig.skeleton import Skeleton

_SIDES = re.compile(r"(?:^|[^a-z])(left|right|l|r)(?=$|[^a-z])")
_SYNONYMS = (
    (r"pelvis|hips?$|^hip |^root$", "hips"),
    (r"toe|ball", "toes"),
    (r"upper ?leg|up ?leg|thigh", "upperleg"),
    (r"lower ?leg|shin|calf|^leg$|knee", "lowerleg"),
    (r"foot|ankle", "foot"),
    (r"clavicle|collar|shoulder", "shoulder"),
    (r"lower ?arm|fore ?arm|elbow", "lowerarm"),
    (r"upper ?arm|^arm$", "upperarm"),
    (r"hand|wrist", "hand"),
    (r"upper ?chest|spine ?0?[23]$", "upperchest"),
    (r"chest|thorax|spine ?0?1$", "chest"),
    (r"spine|abdomen|lowerback|lower back|belly", "spine"),
    (r"neck", "neck"),
    (r"head", "head"),
)


def canonical_joint(name: str) -> str:
    """A joint's name without the habits of its program: "mixamorig:LeftUpLeg" and "thigh_l" are "left upperleg".

    Fingers and other joints without a common name keep their own words.
    """
    words = re.sub(r"^.*[:|]", "", name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", words).lower()
    words = " ".join(re.sub(r"[^a-z0-9]+", " ", words).split())
    words = re.sub(r"^(left|right)(?=[a-z])", r"\1 ", words)
    found = _SIDES.search(words)
    side = {"l": "left ", "r": "right "}[found.group(1)[0]] if found else ""
    rest = " ".join(_SIDES.sub(" ", words).split())
    if re.search(r"thumb|index|middle|ring|pinky|little|finger|end$|nub|site|twist|roll", rest):
        return side + rest
    for pattern, word in _SYNONYMS:
        if re.search(pattern, rest):
            return side + word
    return side + rest


def guess_names(source: Skeleton, target: Skeleton) -> dict[str, str]:
    """Source joint → target joint where both have the same canonical name; of several the first of each."""
    by_name: dict[str, str] = {}
    for name in target.names:
        by_name.setdefault(canonical_joint(name), name)
    taken: dict[str, str] = {}
    for name in source.names:
        canonical = canonical_joint(name)
        if canonical in by_name and by_name[canonical] not in taken.values():
            taken[name] = by_name[canonical]
    return taken


def retarget(
    clip: Clip,
    source: Skeleton,
    target: Skeleton,
    names: Mapping[str, str] | None = None,
    *,
    scale: float | None = None,
    align: bool = True,
) -> Clip:
    """`clip` of the source skeleton's parameters as a clip of the target's, at the keys of the source.

    Each mapped joint turns in the world as its source does, relative to rest; all others stay at rest. With `align` a
    joint with one mapped joint below it is first turned so that its bone points as the source's does at rest (A-pose
    onto T-pose). The first mapped joint also travels, `scale` times as far (None: the ratio of rest heights).
    """
    names = guess_names(source, target) if names is None else names
    pairs = sorted((target.index(there), source.index(here)) for here, there in names.items())
    if not pairs:
        raise InputError("no joint of the motion has a counterpart in the skeleton: give a map of names")
    if len({there for there, _ in pairs}) < len(pairs):
        raise InputError("two joints of the motion are mapped to one", [there for there, _ in pairs])
    times = np.unique(np.concatenate([np.zeros(1), *(track.times for track in clip.tracks), [clip.duration]]))
    times = times[(times >= 0.0) & (times <= clip.duration)]
    world = source.world_matrices(clip.sample(times) if not clip.looping else _held(clip).sample(times))
    turns = _world_turns(world, source, target, pairs, align=align)
    values = np.tile(target.parameters.rest, (len(times), 1))
    root, source_root = min(pairs)
    ratio = _height_ratio(source, target, pairs) if scale is None else scale
    moves = ratio * (world[:, source_root, :3, 3] - _standing(source, source_root, world))
    _place(target, values, turns, root, target.rest_world_matrices[root, :3, 3] + moves)
    return Clip.from_samples(clip.name, target.parameters, times, values, looping=clip.looping)


def _held(clip: Clip) -> Clip:
    """The clip without looping: its end is its last pose, not its first."""
    return Clip(clip.name, clip.parameters, clip.tracks, clip.duration)


def _world_turns(
    world: np.ndarray, source: Skeleton, target: Skeleton, pairs: list[tuple[int, int]], *, align: bool
) -> dict[int, np.ndarray]:
    """Of each mapped target joint its world rotations (f, 4)."""
    rest = source.rest_world_matrices
    result = {}
    for there, here in pairs:
        turn = quaternions_from_matrices(_rotations(world[:, here]) @ _rotations(rest[here]).T)
        own = quaternions_from_matrices(_rotations(target.rest_world_matrices[there]))
        if align:
            own = quaternion_product(_aligning(source, target, pairs, there, here), own)
        result[there] = quaternion_product(turn, own)
    return result


def _aligning(source: Skeleton, target: Skeleton, pairs: list[tuple[int, int]], there: int, here: int) -> np.ndarray:
    """(4,) the turn from the target's rest bone to the source's; none where the joint has not just one mapped child."""
    mapped = {t for t, _ in pairs}
    below = [(t, s) for t, s in pairs if next((a for a in target.ancestors(t) if a in mapped), -1) == there]
    below = [(t, s) for t, s in below if here in source.ancestors(s)]
    identity = np.array([0.0, 0.0, 0.0, 1.0])
    if len(below) != 1:
        return identity
    mine = target.rest_world_matrices[[there, below[0][0]], :3, 3]
    theirs = source.rest_world_matrices[[here, below[0][1]], :3, 3]
    if not (np.linalg.norm(mine[1] - mine[0]) > 0.0 and np.linalg.norm(theirs[1] - theirs[0]) > 0.0):
        return identity
    return quaternions_between(mine[1] - mine[0], theirs[1] - theirs[0])


def _place(target: Skeleton, values: np.ndarray, turns: dict[int, np.ndarray], root: int, heads: np.ndarray) -> None:
    """Fill local rotations, and the root's translation, of `values` (f, 10 j), parents before children."""
    frames = len(values)
    rotations = np.empty((len(target), frames, 4))
    above_root = int(target.parents[root])
    if above_root >= 0:
        frame = target.rest_world_matrices[above_root]
        heads = np.linalg.solve(frame[:3, :3], (heads - frame[:3, 3]).T).T
    values[:, target.translation(root)] = heads
    for node in range(len(target)):
        parent = int(target.parents[node])
        above = rotations[parent] if parent >= 0 else np.tile([0.0, 0.0, 0.0, 1.0], (frames, 1))
        if node in turns and node not in target.fixed_matrices:
            local = quaternion_product(quaternion_conjugate(above), turns[node])
            values[:, target.rotation(node)] = unit_quaternions(local)
        else:
            own = target.rest_world_matrices[node], (target.rest_world_matrices[parent] if parent >= 0 else np.eye(4))
            local = quaternions_from_matrices(_rotations(own[1]).T @ _rotations(own[0]))
        rotations[node] = quaternion_product(above, local)


def _rotations(matrices: np.ndarray) -> np.ndarray:
    """(..., 3, 3) the rotations in (..., 4, 4) matrices, without scale and mirroring."""
    U, _, Vt = np.linalg.svd(matrices[..., :3, :3])
    flips = np.ones((*U.shape[:-2], 3))
    flips[..., 2] = np.sign(np.linalg.det(U @ Vt))
    return (U * flips[..., None, :]) @ Vt


def _height_ratio(source: Skeleton, target: Skeleton, pairs: list[tuple[int, int]]) -> float:
    """How much larger the target is: heights of the first joint over the lowest mapped one, else their spread."""
    there, here = (list(column) for column in zip(*pairs, strict=True))
    mine, theirs = target.rest_world_matrices[there, :3, 3], source.rest_world_matrices[here, :3, 3]
    heights = [points[0, 1] - points[:, 1].min() for points in (mine, theirs)]
    if min(heights) > 0.0:
        return float(heights[0] / heights[1])
    spreads = [np.linalg.norm(points - points.mean(axis=0)) for points in (mine, theirs)]
    return float(spreads[0] / spreads[1]) if min(spreads) > 0.0 else 1.0


def _standing(source: Skeleton, root: int, world: np.ndarray) -> np.ndarray:
    """(3,) where the source's root is when it stands: at rest, or with its lowest joint on the ground.

    Many files put the root of the rest pose into the origin although the motion stands on the ground y = 0: of the
    two heights the one nearer to the first frame's is meant.
    """
    rest = source.rest_world_matrices[:, :3, 3]
    height = rest[root, 1] - rest[:, 1].min()
    first = world[0, root, 1, 3]
    choices = sorted((rest[root, 1], height), key=lambda y: abs(first - y))
    return np.array([rest[root, 0], choices[0], rest[root, 2]])
