"""Inverse kinematics: joint rotations that bring a node to a point, as parameters of the skeleton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from softrig.errors import IndexRangeError, InputError, require_finite
from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_matrices,
    quaternion_product,
    quaternions_between,
    quaternions_from_matrices,
    quaternions_from_vectors,
    rotation_vectors,
    unit_quaternions,
)
from softrig.rig.skeleton import Skeleton

Limits = Mapping[int, tuple[np.ndarray, np.ndarray]]
"""Of a joint: lowest and highest rotation vector relative to rest, (3,) radians each. Equal numbers lock an axis."""

_STRAIGHT = 1e-6
_DIFFERENCE = 1e-6
_LONGEST_STEP = 0.6
_RESTARTS = 6


def two_bone(
    skeleton: Skeleton,
    p: np.ndarray,
    joints: tuple[int, int, int],
    target: np.ndarray,
    *,
    pole: np.ndarray | None = None,
    keep_end_rotation: bool = False,
) -> np.ndarray:
    """(10 j,) parameters in which the last of `joints` (hip, knee, ankle) is at `target` (3,), metres in the world.

    The middle joint bends towards the point `pole` (3,); without one the bend keeps its plane. A target out of reach is
    pointed at. `keep_end_rotation` leaves the end's rotation in the world as it was: a planted foot.
    """
    root, middle, end = joints
    _check_chain(skeleton, joints)
    p = skeleton.parameters.normalised(skeleton.parameters.checked(p))
    target = _point(target, "target")
    world = skeleton.world_matrices(p)
    a, b, c = (world[node, :3, 3] for node in joints)
    upper, lower = np.linalg.norm(b - a), np.linalg.norm(c - b)
    if upper == 0.0 or lower == 0.0:
        raise InputError("a bone of length zero cannot bend", [root if upper == 0.0 else middle])
    towards, aside = _bend_directions(a, b, c, target, None if pole is None else _point(pole, "pole"))
    distance = np.clip(np.linalg.norm(target - a), abs(upper - lower), upper + lower)
    # Law of cosines; folded onto the root itself any direction will do.
    along = (upper**2 + distance**2 - lower**2) / (2.0 * distance) if distance > 0.0 else 0.0
    height = np.sqrt(max(upper**2 - along**2, 0.0))
    elbow = along * towards + height * aside
    p = _turned(skeleton, p, root, _hinge_turn(b - a, c - b, elbow, np.cross(aside, towards)))
    now = skeleton.world_matrices(p)
    goal = a + distance * towards
    p = _turned(
        skeleton, p, middle, quaternions_between(now[end, :3, 3] - now[middle, :3, 3], goal - now[middle, :3, 3])
    )
    miss = np.linalg.norm(skeleton.world_matrices(p)[end, :3, 3] - goal)
    if miss > 1e-9 * (upper + lower):  # non-uniform scale above: bones change length as they turn
        p = chain(skeleton, p, (root, middle), end, goal)
    return _with_world_rotation(skeleton, p, end, world[end]) if keep_end_rotation else p


def chain(
    skeleton: Skeleton,
    p: np.ndarray,
    joints: Sequence[int],
    end: int,
    target: np.ndarray,
    *,
    limits: Limits | None = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
) -> np.ndarray:
    """(10 j,) parameters in which node `end` is at `target` (3,), metres, by turning `joints`, root first.

    Damped least squares on rotation vectors: joints turn as little as they can. `tolerance` is relative to the chain's
    length. A target out of reach is pointed at, or approached as far as the `limits` allow.
    """
    joints = tuple(int(joint) for joint in joints)
    _check_chain(skeleton, (*joints, end))
    p = skeleton.parameters.normalised(skeleton.parameters.checked(p))
    target = _point(target, "target")
    world = skeleton.world_matrices(p)
    heads = world[[*joints, end], :3, 3]
    reach = float(np.linalg.norm(np.diff(heads, axis=0), axis=1).sum())
    if reach == 0.0:
        raise InputError("a chain of length zero cannot reach", joints)
    if not limits and np.linalg.norm(target - heads[0]) >= reach and _keeps_lengths(world[list(joints)]):
        return _stretched(skeleton, p, (*joints, end), target)
    arm = _Arm(skeleton, p, joints, end, dict(limits or {}))
    angles = arm.solve(target, tolerance * reach, reach, iterations)
    p = p.copy()
    for joint, quaternion in zip(joints, arm.quaternions(angles), strict=True):
        p[skeleton.rotation(joint)] = quaternion
    return p


@dataclass(frozen=True, eq=False)
class _Arm:
    """The end's position as a function of the rotation vectors (m, 3) of the joints, relative to rest."""

    skeleton: Skeleton
    p: np.ndarray
    joints: tuple[int, ...]
    end: int
    limits: dict[int, tuple[np.ndarray, np.ndarray]]

    @cached_property
    def _path(self) -> list[int]:
        """Nodes from the end up to the first joint."""
        above = [self.end, *self.skeleton.ancestors(self.end)]
        return above[: above.index(self.joints[0]) + 1]

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.full((len(self.joints), 3), -np.inf), np.full((len(self.joints), 3), np.inf)
        for row, joint in enumerate(self.joints):
            if joint in self.limits:
                low[row], high[row] = self.limits[joint]
                if not (low[row] <= high[row]).all():
                    raise InputError("a joint's lowest angle is above its highest", [joint])
        return low, high

    @cached_property
    def _rest(self) -> np.ndarray:
        return unit_quaternions(self.skeleton.rotations[list(self.joints)])

    @cached_property
    def _frames(self) -> tuple[np.ndarray, np.ndarray]:
        """Local matrices of all nodes, and the world matrix above the first joint."""
        parent = int(self.skeleton.parents[self.joints[0]])
        above = self.skeleton.world_matrices(self.p)[parent] if parent >= 0 else np.eye(4)
        return self.skeleton.local_matrices(self.p), above

    def quaternions(self, angles: np.ndarray) -> np.ndarray:
        """(..., m, 4) local rotations of the joints."""
        return quaternion_product(self._rest, quaternions_from_vectors(angles))

    def tips(self, angles: np.ndarray) -> np.ndarray:
        """(v, 3) where the end is, for v sets of rotation vectors (v, m, 3)."""
        local, above = self._frames
        turned = quaternion_matrices(self.quaternions(angles))
        x = np.zeros((len(angles), 3))
        for node in self._path:
            if node in self.joints and node not in self.skeleton.fixed_matrices:
                matrix = turned[:, self.joints.index(node)] * self.p[self.skeleton.scale(node)]
                x = np.einsum("vij,vj->vi", matrix, x)
            else:
                x = x @ local[node, :3, :3].T
            x = x + local[node, :3, 3]
        return x @ above[:3, :3].T + above[:3, 3]

    def solve(self, target: np.ndarray, tolerance: float, reach: float, iterations: int) -> np.ndarray:
        """(m, 3) rotation vectors; of several starts the best, stopping at the first that is near enough."""
        now = self.p.reshape(-1, 10)[list(self.joints), 3:7]
        start = np.clip(rotation_vectors(quaternion_product(quaternion_conjugate(self._rest), now)), *self._bounds)
        rng = np.random.default_rng(0)
        best, best_miss = start, np.inf
        for attempt in range(_RESTARTS):
            # A straight chain cannot shorten to first order: leave such a start, the same way each time.
            noise = rng.normal(0.0, 0.3 * min(attempt, 2), start.shape)
            angles, miss = self._descend(np.clip(start + noise, *self._bounds), target, tolerance, reach, iterations)
            if miss < best_miss:
                best, best_miss = angles, miss
            if best_miss <= tolerance:
                break
        return best

    def _descend(
        self, angles: np.ndarray, target: np.ndarray, tolerance: float, reach: float, iterations: int
    ) -> tuple[np.ndarray, float]:
        low, high = self._bounds
        damping = 1e-3 * reach**2
        gap = self.tips(angles[None])[0] - target
        for _ in range(iterations):
            if np.linalg.norm(gap) <= tolerance or damping > 1e8 * reach**2:
                break
            J = self._jacobian(angles)
            pull = (J.T @ gap).reshape(angles.shape)
            # Axes that stand at a limit and are pushed against it drop out of this step.
            free = ~(((angles <= low) & (pull > 0.0)) | ((angles >= high) & (pull < 0.0)) | (low == high))
            J = J * free.ravel()
            step = -(J.T @ np.linalg.solve(J @ J.T + damping * np.eye(3), gap)).reshape(angles.shape)
            step *= min(1.0, _LONGEST_STEP / max(np.abs(step).max(), 1e-300))
            ahead = np.clip(angles + step, low, high)
            new_gap = self.tips(ahead[None])[0] - target
            if np.linalg.norm(new_gap) < np.linalg.norm(gap):
                angles, gap, damping = ahead, new_gap, max(0.1 * damping, 1e-14 * reach**2)
            else:
                damping *= 8.0
        return angles, float(np.linalg.norm(gap))

    def _jacobian(self, angles: np.ndarray) -> np.ndarray:
        """(3, 3m) by central differences, all in one batch."""
        moves = _DIFFERENCE * np.eye(angles.size).reshape(-1, *angles.shape)
        tips = self.tips(np.concatenate([angles + moves, angles - moves]))
        return ((tips[: angles.size] - tips[angles.size :]) / (2.0 * _DIFFERENCE)).T


def _stretched(skeleton: Skeleton, p: np.ndarray, nodes: tuple[int, ...], target: np.ndarray) -> np.ndarray:
    """All bones in one line from the first node towards the target."""
    for joint, below in pairwise(nodes):
        heads = skeleton.world_matrices(p)[:, :3, 3]
        bone = heads[below] - heads[joint]
        if np.linalg.norm(bone) > 0.0:
            p = _turned(skeleton, p, joint, quaternions_between(bone, target - heads[nodes[0]]))
    return p


def _keeps_lengths(matrices: np.ndarray) -> bool:
    """Whether bones below these world matrices keep their length as they turn: no non-uniform scale."""
    squares = np.swapaxes(matrices[:, :3, :3], 1, 2) @ matrices[:, :3, :3]
    sizes = np.trace(squares, axis1=1, axis2=2)[:, None, None] / 3.0
    return bool((np.abs(squares - sizes * np.eye(3)) <= 1e-9 * sizes).all())


def _bend_directions(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, target: np.ndarray, pole: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors from the root to the target, and across it towards where the middle joint bends."""
    size = float(np.linalg.norm(b - a) + np.linalg.norm(c - b))
    current = c - a if np.linalg.norm(c - a) > _STRAIGHT * size else b - a
    towards = target - a if np.linalg.norm(target - a) > _STRAIGHT * size else current
    towards = towards / np.linalg.norm(towards)
    # Without a pole the elbow's side is carried along as the arm swings round to its target.
    elbow = (b - a) - current * ((b - a) @ current) / (current @ current)
    swung = quaternion_matrices(quaternions_between(current, towards)) @ elbow
    for guess in (swung if pole is None else pole - a, swung, *np.eye(3)):
        aside = guess - towards * (guess @ towards)
        if np.linalg.norm(aside) > _STRAIGHT * max(size, float(np.linalg.norm(guess))):
            return towards, aside / np.linalg.norm(aside)
    raise InputError("no direction to bend to")


def _hinge_turn(upper: np.ndarray, lower: np.ndarray, new_upper: np.ndarray, new_normal: np.ndarray) -> np.ndarray:
    """(4,) rotation of the first bone that also turns the plane of the bend, so that the middle joint is a hinge."""
    normal = np.cross(upper, lower)
    if np.linalg.norm(normal) <= _STRAIGHT * np.linalg.norm(upper) * np.linalg.norm(lower):
        return quaternions_between(upper, new_upper)
    frames = []
    for along, across in ((upper, normal), (new_upper, new_normal)):
        x, z = along / np.linalg.norm(along), across / np.linalg.norm(across)
        frames.append(np.stack([x, np.cross(z, x), z], axis=1))
    return quaternions_from_matrices(frames[1] @ frames[0].T)


def _turned(skeleton: Skeleton, p: np.ndarray, node: int, turn: np.ndarray) -> np.ndarray:
    """(10 j,) parameters after turning `node` in the world by the quaternion `turn`."""
    parent = int(skeleton.parents[node])
    above = skeleton.world_matrices(p)[parent, :3, :3] if parent >= 0 else np.eye(3)
    local = np.linalg.solve(above, quaternion_matrices(turn) @ above)
    p = p.copy()
    where = skeleton.rotation(node)
    p[where] = unit_quaternions(quaternion_product(quaternions_from_matrices(_nearest_rotation(local)), p[where]))
    return p


def _with_world_rotation(skeleton: Skeleton, p: np.ndarray, node: int, world: np.ndarray) -> np.ndarray:
    """(10 j,) parameters in which `node` has the rotation of the (4, 4) matrix `world`."""
    parent = int(skeleton.parents[node])
    above = skeleton.world_matrices(p)[parent, :3, :3] if parent >= 0 else np.eye(3)
    local = np.linalg.solve(above, world[:3, :3]) / p[skeleton.scale(node)]
    p = p.copy()
    p[skeleton.rotation(node)] = quaternions_from_matrices(_nearest_rotation(local))
    return p


def _nearest_rotation(matrix: np.ndarray) -> np.ndarray:
    U, _, Vt = np.linalg.svd(matrix)
    U[:, 2] *= np.sign(np.linalg.det(U @ Vt))
    return U @ Vt


def _check_chain(skeleton: Skeleton, nodes: Sequence[int]) -> None:
    """Each node must be under the one before it."""
    wrong = [node for node in nodes if not 0 <= node < len(skeleton)]
    if wrong or len(nodes) < 2:
        raise IndexRangeError("a chain needs joints of the skeleton", wrong)
    for upper, lower in pairwise(nodes):
        if upper not in skeleton.ancestors(lower):
            raise IndexRangeError(f"'{skeleton.names[lower]}' is not under '{skeleton.names[upper]}'", [lower])


def _point(point: np.ndarray, what: str) -> np.ndarray:
    point = np.asarray(point, dtype=np.float64)
    if point.shape != (3,):
        raise InputError(f"a {what} is a point (3,), not {point.shape}")
    require_finite(point, what)
    return point
