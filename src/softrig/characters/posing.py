"""Poses of a skeleton over time: turn joints, move the root, plant feet and hands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from softrig.rig.skeleton import Skeleton

Angle = float | np.ndarray


@dataclass(frozen=True, eq=False)
class Motion:
    """Parameters of a skeleton at f times, to be filled in joint by joint.

    All joints of the built-in skeletons are axis-aligned at rest: +x turns what points up to the front,
    +y turns the front to the left, +z turns the left upwards.
    """

    skeleton: Skeleton
    times: np.ndarray
    """(f,) s."""
    values: np.ndarray = field(init=False)
    """(f, P) parameters."""

    def __post_init__(self) -> None:
        rest = self.skeleton.parameters.rest
        object.__setattr__(self, "values", np.tile(rest, (len(self.times), 1)))

    def turn(self, joint: str, x: Angle = 0.0, y: Angle = 0.0, z: Angle = 0.0) -> None:
        """Turn `joint` on top of what it has: rad about its parent's z, then y, then x axis."""
        angles = np.stack([np.broadcast_to(a, self.times.shape) for a in (z, y, x)], axis=1)
        self._set(joint, Rotation.from_euler("zyx", angles) * self._local(joint))

    def turn_both(self, joint: str, x: Angle = 0.0, y: Angle = 0.0, z: Angle = 0.0) -> None:
        """Turn a left joint, and the right one as its mirror image."""
        self.turn(joint, x, y, z)
        self.turn(joint.replace("Left", "Right"), x, np.negative(y), np.negative(z))

    def move(self, joint: str, x: Angle = 0.0, y: Angle = 0.0, z: Angle = 0.0) -> None:
        """Move `joint` by metres in its parent's frame."""
        where = self.skeleton.translation(self.skeleton.index(joint))
        self.values[:, where] += np.stack([np.broadcast_to(a, self.times.shape) for a in (x, y, z)], axis=1)

    def place(self, joint: str) -> np.ndarray:
        """(f, 3) where `joint` is, m."""
        return self.skeleton.world_matrices(self.values)[:, self.skeleton.index(joint), :3, 3]

    def facing(self, joint: str) -> Rotation:
        """How `joint` is turned in the world."""
        return Rotation.from_matrix(self.skeleton.world_matrices(self.values)[:, self.skeleton.index(joint), :3, :3])

    def reach(
        self, end: str, target: np.ndarray, facing: Rotation | None = None, pole: np.ndarray | None = None
    ) -> None:
        """Bring joint `end` to `target` (f, 3), m, by turning the two joints above it (two-bone IK).

        facing  how `end` is turned in the world afterwards; None leaves it as it was
        pole    (3,) or (f, 3) direction into which the middle joint bends; None: as at rest, turned with the body
        """
        last = self.skeleton.index(end)
        middle = int(self.skeleton.parents[last])
        first = int(self.skeleton.parents[middle])
        names = self.skeleton.names
        rest = self.skeleton.rest_world_matrices[[first, middle, last], :3, 3]
        body = self.facing(names[int(self.skeleton.parents[first])])
        facing = self.facing(end) if facing is None else facing
        if pole is None:
            pole = body.apply(np.tile(_bend_direction(rest), (len(self.times), 1)))
        start = self.place(names[first])
        knee = knee_places(start, target, np.broadcast_to(pole, start.shape), rest)
        hinge = np.cross(rest[1] - rest[0], rest[2] - rest[1])
        hinges = np.cross(knee - start, target - knee)
        upper = _turned(rest[1] - rest[0], hinge, knee - start, hinges)
        lower = _turned(rest[2] - rest[1], hinge, target - knee, hinges)
        self._set(names[first], body.inv() * upper)
        self._set(names[middle], upper.inv() * lower)
        self._set(end, lower.inv() * facing)

    def _local(self, joint: str) -> Rotation:
        return Rotation.from_quat(self.values[:, self.skeleton.rotation(self.skeleton.index(joint))])

    def _set(self, joint: str, rotation: Rotation) -> None:
        self.values[:, self.skeleton.rotation(self.skeleton.index(joint))] = rotation.as_quat(canonical=True)


def _bend_direction(rest: np.ndarray) -> np.ndarray:
    """(3,) from the line between first and last joint to the middle one."""
    along = rest[2] - rest[0]
    aside = rest[1] - rest[0]
    return aside - (aside @ along) / (along @ along) * along


def knee_places(start: np.ndarray, target: np.ndarray, pole: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(f, 3) place of the middle joint; a target out of reach is approached along a nearly straight limb."""
    upper, lower = np.linalg.norm(rest[1] - rest[0]), np.linalg.norm(rest[2] - rest[1])
    along = target - start
    distance = np.linalg.norm(along, axis=1, keepdims=True)
    along = along / distance
    distance = np.clip(distance, abs(upper - lower) + 1e-4, upper + lower - 1e-4)
    foot = (upper**2 - lower**2 + distance**2) / (2.0 * distance)
    aside = pole - (pole * along).sum(axis=1, keepdims=True) * along
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    return start + foot * along + np.sqrt(np.maximum(upper**2 - foot**2, 0.0)) * aside


def _turned(along: np.ndarray, hinge: np.ndarray, now: np.ndarray, hinge_now: np.ndarray) -> Rotation:
    """The rotations that take a bone and its hinge at rest to their directions now."""
    return Rotation.from_matrix(_frames(now, hinge_now) @ _frames(along[None], hinge[None])[0].T)


def _frames(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """(f, 3, 3) columns: bone, hinge, and the third."""
    a = along / np.linalg.norm(along, axis=1, keepdims=True)
    b = across - (across * a).sum(axis=1, keepdims=True) * a
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    return np.stack([a, b, np.cross(a, b)], axis=2)
