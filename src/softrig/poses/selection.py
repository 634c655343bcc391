"""Which poses get a basis: given by hand, or the frames of the clips that differ most from one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.errors import InputError, notice, require_finite
from softrig.numerics.rbf import COINCIDENT
from softrig.numerics.rotations import slerp, unit_quaternions
from softrig.rig.clip import Clip
from softrig.rig.features import bounding_size
from softrig.rig.parameters import Parameters, unique_names
from softrig.rig.pose_space import features_of_frames
from softrig.rig.protocol import Rig
from softrig.words import so_many_are

REST = "rest"
NEAR = 0.1
"""Of the largest distance between a frame and rest: frames nearer than this to a chosen pose bring nothing new."""
BEYOND = 3.0
"""A given pose this many times as far from rest as any frame of the clips draws a notice."""
TORN = 10.0
"""A pose that makes the character this many times as large is refused."""
LARGE_ANGLE = np.pi / 4
"""Mean subspace angle, rad, between neighbouring poses beyond which a pose between them is suggested."""


@dataclass(frozen=True, eq=False)
class Pose:
    """One pose: its name, and the rig's parameters (P,)."""

    name: str
    parameters: np.ndarray


@dataclass(frozen=True, eq=False)
class Suggestion(Pose):
    """A pose worth adding, and why."""

    reason: str


def pose_at(clip: Clip, time: float | None = None, *, frame: int | None = None, fps: float = 30.0) -> Pose:
    """The pose of `clip` at `time`, s, or at `frame` (counted from 0 at `fps` frames per second): "walk @ 0.43 s"."""
    if (time is None) == (frame is None):
        raise InputError("a pose of a clip needs either a time or a frame")
    when = float(time) if time is not None else int(frame or 0) / fps
    if not 0.0 <= when <= clip.duration + 1e-9:
        raise InputError(f"clip '{clip.name}' lasts {clip.duration:.2f} s; there is no pose at {when:.2f} s")
    return Pose(_moment(clip, when), clip.sample(when)[0])


def pose_of(parameters: Parameters, values: Mapping[str, float], name: str) -> Pose:
    """The pose with the named parameters at `values`, all others at rest; quaternions are made unit."""
    p = parameters.rest.copy()
    for key, value in values.items():
        p[parameters.index(key)] = value
    return Pose(name, parameters.normalised(p))


def farthest_poses(
    rig: Rig,
    clips: Sequence[Clip],
    count: int,
    *,
    given: Sequence[Pose] = (),
    fps: float = 30.0,
    ignored: Sequence[str] = (),
    near: float = NEAR,
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names (m) and parameters (m, P): rest, the `given` ones, then frames of the clips up to `count` poses.

    Each next pose is the frame farthest, in pose features, from all chosen so far. It ends early where every frame is
    nearer to a chosen pose than `near` times the largest distance of a frame from rest. `ignored`: parameters
    that are no pose, the weights of corrective morphs.
    """
    if count < 1:
        raise InputError(f"at least the rest pose is needed, not {count} poses")
    chosen = [Pose(REST, rig.parameters.rest.copy()), *given]
    frames = _frames(rig, clips, fps, ignored)
    measure = _Measure(rig, ignored)
    features = measure(np.stack([pose.parameters for pose in frames])) if frames else np.zeros((0, 1))
    reach = _reach(features, measure(rig.parameters.rest)) if frames else 0.0
    _check_given(rig, given, measure, reach)
    held = measure(np.stack([pose.parameters for pose in chosen]))
    _require_different(chosen, held)
    if frames:
        found = farthest_points(features, held, count - len(chosen), near * reach)
        chosen += [frames[index] for index in found]
    return unique_names(pose.name for pose in chosen), np.stack([pose.parameters for pose in chosen])


def farthest_points(features: np.ndarray, held: np.ndarray, count: int, near: float) -> list[int]:
    """At most `count` of features (k, F), each the farthest from `held` (h, F) and those before, beyond `near`."""
    chosen: list[int] = []
    gaps = np.min([np.linalg.norm(features - row, axis=1) for row in held], axis=0)
    while len(chosen) < count and gaps.max() > max(near, 0.0):
        best = int(gaps.argmax())
        chosen.append(best)
        gaps = np.minimum(gaps, np.linalg.norm(features - features[best], axis=1))
    return chosen


def suggest_poses(
    rig: Rig,
    clips: Sequence[Clip],
    names: Sequence[str],
    parameters: np.ndarray,
    *,
    tree: Sequence[tuple[int, int]] = (),
    angles: np.ndarray | None = None,
    inverted: Mapping[str, np.ndarray] | None = None,
    fps: float = 30.0,
    ignored: Sequence[str] = (),
    largest_angle: float = LARGE_ANGLE,
    near: float = NEAR,
    most: int = 4,
) -> list[Suggestion]:
    """Poses worth adding to those called `names` (m) with `parameters` (m, P), the most pressing first.

    `tree` (edges) pairs of poses whose bases were aligned, with `angles` (edges, r) or (edges,), rad, between
    their subspaces: where the mean exceeds `largest_angle`, the frame of a clip between the two, or halfway if no clip
    passes there. `inverted`: of each clip the counts (f,) of inverted rest tets at `fps` frames per second: the worst
    frame, unless a pose is `near` it already.
    """
    measure = _Measure(rig, ignored)
    frames = _frames(rig, clips, fps, ignored)
    features = measure(np.stack([pose.parameters for pose in frames])) if frames else np.zeros((0, 1))
    poses = measure(np.atleast_2d(parameters))
    reach = max(_reach(features, measure(rig.parameters.rest)) if frames else 0.0, _reach(poses, poses[0]))
    wanted = _inverted_frames(clips, inverted or {}, fps)
    for index, mean in _wide_edges(tree, angles, largest_angle):
        one, other = tree[index]
        reason = f"bases of '{names[one]}' and '{names[other]}' differ by {np.degrees(mean):.0f}° on average"
        between = _between(frames, features, poses[one], poses[other])
        between = between or _halfway(rig.parameters, parameters[one], parameters[other], (names[one], names[other]))
        wanted.append((mean / largest_angle, Suggestion(between.name, between.parameters, reason)))
    taken = list(poses)
    suggestions: list[Suggestion] = []
    for _, suggestion in sorted(wanted, key=lambda pair: -pair[0]):
        place = measure(suggestion.parameters)
        if len(suggestions) < most and min(np.linalg.norm(place - row) for row in taken) > near * reach:
            suggestions.append(suggestion)
            taken.append(place)
    return suggestions


class _Measure:
    """Pose features that count: `ignored` parameters and features of no weight left out."""

    def __init__(self, rig: Rig, ignored: Sequence[str]) -> None:
        self._rig = rig
        self._kept = np.array([name not in set(ignored) for name in rig.feature_names], dtype=bool)

    def __call__(self, p: np.ndarray) -> np.ndarray:
        return features_of_frames(self._rig, p)[..., self._kept]


def _frames(rig: Rig, clips: Sequence[Clip], fps: float, ignored: Sequence[str]) -> list[Pose]:
    frames = []
    for index, clip in enumerate(clips):
        times, values = _fitting(rig, clip, index, ignored).resample(fps)
        require_finite(values, f"frames of clip '{clip.name}'")
        frames += [Pose(_moment(clip, time), p) for time, p in zip(times, values, strict=True)]
    return frames


def _fitting(rig: Rig, clip: Clip, index: int, ignored: Sequence[str]) -> Clip:
    try:
        return clip.fitted(rig.parameters, ignored=ignored)
    except InputError as error:
        raise InputError(f"clip '{clip.name}' is of another rig: {error}", [index]) from error


def _check_given(rig: Rig, given: Sequence[Pose], measure: _Measure, reach: float) -> None:
    """Refuse poses that are not finite or tear the character, and tell of those far beyond all clips."""
    rest = rig.parameters.rest
    size = bounding_size(rig.positions(rest))
    for index, pose in enumerate(given):
        p = rig.parameters.checked(pose.parameters)
        if p.ndim != 1 or not np.isfinite(p).all():
            wrong = np.flatnonzero(~np.isfinite(np.atleast_1d(p).ravel()))
            raise InputError(f"pose '{pose.name}' is not one row of finite parameters", wrong)
        posed = rig.positions(p)
        if not np.isfinite(posed).all() or bounding_size(posed) > TORN * size:
            raise InputError(f"pose '{pose.name}' is outside the rig's range: it tears the character apart", [index])
        if 0.0 < BEYOND * reach < np.linalg.norm(measure(p) - measure(rest)):
            notice(f"pose '{pose.name}' lies far beyond everything the clips do", [index])


def _require_different(poses: Sequence[Pose], features: np.ndarray) -> None:
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    for one in range(len(poses)):
        for other in range(one + 1, len(poses)):
            if distances[one, other] <= COINCIDENT * distances.max():
                pair = f"'{poses[one].name}' and '{poses[other].name}'"
                raise InputError(f"poses {pair} are the same pose: remove one", [one, other])


def _reach(features: np.ndarray, rest: np.ndarray) -> float:
    return float(np.linalg.norm(features - rest, axis=1).max())


def _wide_edges(tree: Sequence[tuple[int, int]], angles: np.ndarray | None, largest: float) -> list[tuple[int, float]]:
    if angles is None:
        return []
    means = np.asarray(angles, dtype=np.float64).reshape(len(tree), -1).mean(axis=1) if len(tree) else np.zeros(0)
    return [(index, float(mean)) for index, mean in enumerate(means) if mean > largest]


def _inverted_frames(
    clips: Sequence[Clip], inverted: Mapping[str, np.ndarray], fps: float
) -> list[tuple[float, Suggestion]]:
    """The worst frame of each clip that inverts rest tets, weighed by how many."""
    wanted = []
    for clip in clips:
        counts = np.asarray(inverted.get(clip.name, ()))
        if counts.size and counts.max() > 0:
            time = min(int(counts.argmax()) / fps, clip.duration)
            reason = f"{so_many_are(int(counts.max()), 'rest tet')} inverted there"
            pose = pose_at(clip, time)
            # Inverted tets are worse than wide angles: they come first.
            wanted.append((1e3 + float(counts.max()), Suggestion(pose.name, pose.parameters, reason)))
    return wanted


def _between(frames: Sequence[Pose], features: np.ndarray, one: np.ndarray, other: np.ndarray) -> Pose | None:
    """The frame most in the middle of two poses, if any is nearer to both than they are to each other."""
    if not frames:
        return None
    farther = np.maximum(np.linalg.norm(features - one, axis=1), np.linalg.norm(features - other, axis=1))
    best = int(farther.argmin())
    return frames[best] if farther[best] < 0.75 * np.linalg.norm(one - other) else None


def _halfway(parameters: Parameters, one: np.ndarray, other: np.ndarray, names: tuple[str, str]) -> Pose:
    p = 0.5 * (one + other)
    for start in parameters.quaternions:
        ends = unit_quaternions(np.stack([one[start : start + 4], other[start : start + 4]]))
        p[start : start + 4] = slerp(ends[0], ends[1], 0.5)
    return Pose(f"between {names[0]} and {names[1]}", p)


def _moment(clip: Clip, time: float) -> str:
    return f"{clip.name} @ {time:.2f} s"
