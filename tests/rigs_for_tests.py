"""Small rigs of every kind, and random parameters for them."""

from __future__ import annotations

import numpy as np

from softrig.numerics.rotations import quaternions_from_vectors
from softrig.rig.deformers import Bend, BlendShapes, CallableRig, RigChain, Wire, carried_by_root
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import DualQuaternionSkin, LinearBlendSkin

IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


def random_skeleton(rng: np.random.Generator, count: int = 6) -> Skeleton:
    """A tree of random shape, rotations and mildly non-uniform scales."""
    parents = np.array([-1, *(int(rng.integers(0, i)) for i in range(1, count))])
    return Skeleton(
        tuple(f"node{i}" for i in range(count)),
        parents,
        rng.normal(0.0, 0.5, (count, 3)),
        quaternions_from_vectors(rng.normal(0.0, 0.7, (count, 3))),
        rng.uniform(0.7, 1.3, (count, 3)),
    )


def random_skin(rng: np.random.Generator, kind=LinearBlendSkin, *, count: int = 40, influences: int = 5):
    """A skin with bones in another order than the nodes, zero weights, and every seventh vertex following a node."""
    skeleton = random_skeleton(rng)
    bones = rng.permutation(len(skeleton))[:5]
    inverse_binds = np.linalg.inv(skeleton.rest_world_matrices[bones])
    weights = rng.uniform(0.0, 1.0, (count, influences)) * (rng.uniform(size=(count, influences)) > 0.3)
    weights[:, 0] += 0.01
    weights /= weights.sum(axis=1, keepdims=True)
    attach = np.full(count, -1)
    attach[::7] = rng.integers(0, len(skeleton), len(attach[::7]))
    weights[::7] = 0.0
    joints = rng.integers(0, len(bones), (count, influences))
    return kind(skeleton, rng.normal(0.0, 1.0, (count, 3)), bones, inverse_binds, joints, weights, attach)


def rig_of_each_kind(seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    linear, dual = random_skin(rng), random_skin(rng, DualQuaternionSkin)
    points = linear.rest_positions
    shapes = BlendShapes(points, rng.normal(0.0, 0.3, (3, len(points), 3)), ("smile", "frown", "smile"))
    bend = Bend(points, (0.1, 0.0, 0.0), (0.0, 2.0, 0.0), (1.0, 1.0, 0.0), -0.5, 0.8)
    wire = Wire(points, np.array([[0.0, -2.0, 0.0], [0.2, -1.0, 0.0], [0.0, 0.0, 0.3], [0.0, 1.0, 0.0], [0, 2.0, 0.1]]))
    twist = Parameters(("twist.angle", "twist.lift"), ("rad", "m"), np.zeros(2), np.zeros(0))

    def twisted(p, at, vertices):
        turn = p[0] * at[:, 1]
        x, z = at[:, 0], at[:, 2]
        lift = p[1] * np.sin(vertices)
        return np.stack([x * np.cos(turn) + z * np.sin(turn), at[:, 1] + lift, z * np.cos(turn) - x * np.sin(turn)], 1)

    def centred(p, at, vertices):
        return p[0] * at + p[1] * at.mean(axis=0)

    whole = Parameters(("whole.a", "whole.b"), ("1", "1"), np.array([1.0, 0.0]), np.zeros(0))
    return {
        "linear": linear,
        "dual": dual,
        "shapes": shapes,
        "bend": bend,
        "wire": wire,
        "weighted wire": Wire(points, wire.controls, rng.uniform(0, 1, len(points)), "other"),
        "callable": CallableRig(twisted, twist, points),
        "callable on all": CallableRig(centred, whole, points, needs_all=True),
        "shapes and skin": RigChain((shapes, linear)),
        "bend and wire": RigChain((bend, wire)),
        "chain with one that needs all": RigChain((bend, CallableRig(centred, whole, points, True), shapes)),
        "bend on a root": carried_by_root(bend),
    }


RIGS = rig_of_each_kind()


def random_parameters(parameters: Parameters, rng: np.random.Generator, size: float = 0.4) -> np.ndarray:
    """Rest plus noise, with unit quaternions; scales of either sign and never near zero."""
    p = parameters.rest + rng.normal(0.0, size, len(parameters))
    for index, name in enumerate(parameters.names):
        if ".scale." in name:
            p[index] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0)
    return parameters.normalised(p)


def two_bone_bar(kind, *, sections: int = 21, ring: int = 8):
    """A tube along x from −1 to 1, weights sliding from bone 0 to bone 1 over the middle; bones on the axis."""
    skeleton = Skeleton.from_heads(("left", "right"), (-1, 0), np.array([[-1.0, 0, 0], [0.0, 0, 0]]))
    x = np.linspace(-1.0, 1.0, sections)
    angles = np.arange(ring) * 2.0 * np.pi / ring
    circle = 0.2 * np.stack([np.zeros(ring), np.cos(angles), np.sin(angles)], axis=1)
    points = (np.stack([x, 0 * x, 0 * x], axis=1)[:, None] + circle).reshape(-1, 3)
    share = np.clip(0.5 + points[:, 0], 0.0, 1.0)
    weights = np.stack([1.0 - share, share], axis=1)
    joints = np.tile([0, 1], (len(points), 1))
    return kind(skeleton, points, [0, 1], np.linalg.inv(skeleton.rest_world_matrices), joints, weights)
