"""A pose bent by hand on top of the clip's: the root moved and turned, joints turned or dragged by their heads.

What the hand asks for is followed by a critically damped spring, so that a mouse that comes in steps does not kick the
flesh with every one of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from softrig.errors import InputError, require_indices
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_matrices,
    quaternion_product,
    quaternions_from_matrices,
    quaternions_from_vectors,
    rotation_vectors,
    unit_quaternions,
)
from softrig.rig.ik import chain, two_bone
from softrig.viewer.hand_math import checked_vector, nearest, rotation_part, shortened, unfolded
from softrig.viewer.joints import Joints, carrying_joints, root_places, top_nodes
from softrig.viewer.subjects import FRAME, Subject

FOLLOW = 30.0
"""rad/s of the spring: a hand is caught up with in about a seventh of a second."""
FARTHEST = 2.0
"""Character sizes that the root may be moved."""
STILL = 1e-7
"""Metres or radians within which a hand is reached: from there on the pose stands still."""
SHORT = 1e-3
"""Character sizes: shorter bones cannot be dragged by."""
NEW_TURN = (0.5, 0.15)
"""Seconds without a word, and radians: a turn that begins so small after so long is another one."""


class Posing:
    """The hand's share of the pose of one subject."""

    def __init__(self, subject: Subject, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turning: tuple[int, float, np.ndarray] | None = None
        self._parameters = subject.parameters
        self._size = subject.size
        self.joints = carrying_joints(subject)
        self._start = 0
        self._root: tuple[int, int] | None = None
        if self.joints is not None:
            assert subject.skeleton is not None
            self._count = len(subject.skeleton)
            self._start = self._parameters.index(subject.skeleton.parameters.names[0])
            self._tops = top_nodes(subject.skeleton)
        else:
            self._root = root_places(self._parameters)
        count = 0 if self.joints is None else len(self.joints.nodes)
        # Rows: where the root is moved, how it is turned, and how each joint is: rotation vectors.
        self._wanted = np.zeros((2 + count, 3))
        self._now = np.zeros((2 + count, 3))
        self._speed = np.zeros((2 + count, 3))

    @property
    def is_used(self) -> bool:
        """Whether the pose is not just the clip's."""
        return bool(self._wanted.any() or self._now.any())

    @property
    def can_move_root(self) -> bool:
        """Whether the rig has a root to move."""
        return self.joints is not None or self._root is not None

    def root_wanted(self) -> dict[str, list[float]]:
        """For the page: where a hand has the root, metres and a rotation vector in radians."""
        move, turn = (np.round(row, 5).tolist() for row in self._wanted[:2])
        return {"offset": move, "turn": turn}

    def reset(self) -> None:
        """Back to the clip's own pose, as fast as a hand would."""
        self._wanted[:] = 0.0

    def drop(self) -> None:
        """Back to the clip's own pose at once."""
        self._wanted[:] = self._now[:] = self._speed[:] = 0.0

    def follow(self) -> None:
        """One frame of the springs: exact for a target that stands still."""
        away = self._now - self._wanted
        if not away.any() and not self._speed.any():
            return
        fade, c = math.exp(-FOLLOW * FRAME), self._speed + FOLLOW * away
        self._now = self._wanted + fade * (away + FRAME * c)
        self._speed = fade * (self._speed - FOLLOW * FRAME * c)
        if np.abs(self._now - self._wanted).max() < STILL and np.abs(self._speed).max() < STILL * FOLLOW:
            self._now[:] = self._wanted
            self._speed[:] = 0.0

    # What the hand asks for

    def move_root(self, offset: np.ndarray) -> None:
        """Move the whole by `offset` (3,) metres."""
        self._require_root()
        self._wanted[0] = shortened(checked_vector(offset, "offset"), FARTHEST * self._size)

    def turn_root(self, angles: np.ndarray) -> None:
        """Turn the whole about its root: a rotation vector (3,), radians."""
        self._require_root()
        if self.joints is None and self._root is not None and self._root[1] < 0:
            raise InputError("this can be moved, not turned")
        self._wanted[1] = shortened(checked_vector(angles, "angles"), 2.0 * math.pi)

    def turn(self, joint: int, angles: np.ndarray, pose: np.ndarray) -> None:
        """Turn a joint of the clip's `pose` (P,) by a rotation vector (3,), radians in the world, since the drag began.

        What a new drag begins from is what the last one left.
        """
        place, angles = self._place(joint), checked_vector(angles, "angles")
        joints = self._known()
        if joints.tips[place]:
            raise InputError(f"'{self._name(place)}' is a tip: it can be dragged, not turned")
        moment, turning = self._clock(), self._turning
        anew = turning is None or turning[0] != place
        if turning is not None and moment - turning[1] > NEW_TURN[0]:
            anew = anew or float(np.linalg.norm(angles)) < NEW_TURN[1]
        begun = self._wanted[2 + place].copy() if anew or turning is None else turning[2]
        self._turning = (place, moment, begun)
        node = int(joints.nodes[place])
        hand = self._wanted.copy()
        hand[2 + place] = begun
        p = self._extended(self._applied(pose, hand))
        parent = int(joints.skeleton.parents[node])
        above = joints.skeleton.world_matrices(p)[parent, :3, :3] if parent >= 0 else np.eye(3)
        world = quaternion_matrices(quaternions_from_vectors(angles))
        local = quaternions_from_matrices(rotation_part(np.linalg.solve(above, world @ above)))
        self._want(place, quaternion_product(local, p[joints.skeleton.rotation(node)]), pose)

    def drag(self, joint: int, to: np.ndarray, pose: np.ndarray) -> None:
        """Bring a joint's head to `to` (3,) metres on top of the clip's `pose` (P,), as near as its limb reaches."""
        place, to = self._place(joint), checked_vector(to, "target")
        joints = self._known()
        self._turning = None
        p = self._extended(self._applied(pose, self._wanted))
        heads = joints.skeleton.world_matrices(p)[:, :3, 3]
        limb = self._limb(place, heads)
        if not limb:
            self.move_root(self._wanted[0] + to - heads[joints.nodes[place]])
            return
        nodes = [int(joints.nodes[each]) for each in limb]
        end = int(joints.nodes[place])
        if len(limb) == 2:
            p = two_bone(joints.skeleton, p, (nodes[0], nodes[1], end), unfolded(heads[[*nodes, end]], to))
        else:
            head = heads[nodes[0]]
            arm, length = to - head, np.linalg.norm(heads[end] - head)
            if np.linalg.norm(arm) < 1e-9:
                return
            # A hair beyond what the bone's end can reach: it is pointed at, without a search.
            p = chain(joints.skeleton, p, nodes, end, head + (1.0 + 1e-9) * length * arm / np.linalg.norm(arm))
        for each, node in zip(limb, nodes, strict=True):
            self._want(each, p[joints.skeleton.rotation(node)], pose)

    def _want(self, place: int, rotation: np.ndarray, pose: np.ndarray) -> None:
        """Have a joint turned to the local `rotation` (4,) where the clip's `pose` (P,) has its own."""
        joints = self._known()
        own = self._skeleton_part(pose)[joints.skeleton.rotation(int(joints.nodes[place]))]
        turn = quaternion_product(quaternion_conjugate(unit_quaternions(own)), unit_quaternions(rotation))
        self._wanted[2 + place] = nearest(rotation_vectors(turn), self._wanted[2 + place])

    def _limb(self, place: int, heads: np.ndarray) -> list[int]:
        """The joints to turn so that another moves, upmost first: one or two of those above it, none: the root.

        A joint with several limbs is turned only where there is no other: dragging a knee must not turn the hips.
        """
        joints = self._known()
        children = np.bincount(joints.parents[joints.parents >= 0], minlength=len(joints.nodes))
        found: list[int] = []
        below, above = place, int(joints.parents[place])
        while above >= 0 and len(found) < 2:
            if found and children[above] > 1:
                break
            if np.linalg.norm(heads[joints.nodes[below]] - heads[joints.nodes[above]]) > SHORT * self._size:
                found.insert(0, above)
                below = above
            above = int(joints.parents[above])
        return found

    # What comes of it

    def posed(self, pose: np.ndarray) -> np.ndarray:
        """(P,) the clip's `pose` (P,) with the hand's share as it is now."""
        return self._applied(pose, self._now) if self._now.any() else pose

    def handles(self, pose: np.ndarray) -> np.ndarray:
        """(j, 3) float32 where the joints are at a pose (P,)."""
        if self.joints is None:
            return np.zeros((0, 3), np.float32)
        world = self.joints.skeleton.world_matrices(self._extended(pose))
        return world[self.joints.nodes, :3, 3].astype(np.float32)

    def _applied(self, pose: np.ndarray, hand: np.ndarray) -> np.ndarray:
        pose = pose.copy()
        if self.joints is None:
            return self._with_plain_root(pose, hand)
        own = self._skeleton_part(pose)
        skeleton = self.joints.skeleton
        for place in np.flatnonzero(hand[2:].any(axis=1)):
            where = skeleton.rotation(int(self.joints.nodes[place]))
            own[where] = quaternion_product(own[where], quaternions_from_vectors(hand[2 + place]))
        if hand[:2].any():
            self._move_tops(pose, hand)
        return pose

    def _move_tops(self, pose: np.ndarray, hand: np.ndarray) -> None:
        """x → R(x − pivot) + pivot + offset at the uppermost nodes that can move, in place."""
        assert self.joints is not None
        skeleton, own = self.joints.skeleton, self._skeleton_part(pose)
        world = skeleton.world_matrices(self._extended(pose))
        pivot = world[self.joints.nodes[0], :3, 3]
        turn = np.eye(4)
        turn[:3, :3] = quaternion_matrices(quaternions_from_vectors(hand[1]))
        turn[:3, 3] = pivot + hand[0] - turn[:3, :3] @ pivot
        for node in self._tops:
            parent = int(skeleton.parents[node])
            above = world[parent] if parent >= 0 else np.eye(4)
            local = np.linalg.solve(above, turn @ above)
            own[skeleton.translation(node)] = local[:3, :3] @ own[skeleton.translation(node)] + local[:3, 3]
            rotation = quaternions_from_matrices(rotation_part(local[:3, :3]))
            own[skeleton.rotation(node)] = quaternion_product(rotation, own[skeleton.rotation(node)])

    def _with_plain_root(self, pose: np.ndarray, hand: np.ndarray) -> np.ndarray:
        if self._root is not None:
            place, turn = self._root
            pose[place : place + 3] += hand[0]
            if turn >= 0:
                quaternion = quaternions_from_vectors(hand[1])
                pose[turn : turn + 4] = quaternion_product(quaternion, pose[turn : turn + 4])
        return pose

    def _skeleton_part(self, pose: np.ndarray) -> np.ndarray:
        """A view of the skeleton's own parameters."""
        return pose[self._start : self._start + 10 * self._count]

    def _extended(self, pose: np.ndarray) -> np.ndarray:
        """Parameters of the skeleton that has tips."""
        assert self.joints is not None
        rest = self.joints.skeleton.parameters.rest
        return np.concatenate([self._skeleton_part(pose), rest[10 * self._count :]])

    def _known(self) -> Joints:
        if self.joints is None:
            raise InputError("this rig has no joints")
        return self.joints

    def _place(self, joint: int) -> int:
        return int(require_indices([joint], len(self._known().nodes), "joints")[0])

    def _name(self, place: int) -> str:
        joints = self._known()
        return joints.skeleton.names[joints.nodes[place]]

    def _require_root(self) -> None:
        if not self.can_move_root:
            raise InputError("this rig has no root that could be moved")
