"""A small skinned character: a two-bone limb with a clip, morphs and a painted map, quick to build."""

from __future__ import annotations

import numpy as np

from softrig.numerics.rotations import quaternions_from_vectors
from softrig.project import Project
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip
from softrig.rig.deformers import Bend, BlendShapes, RigChain, Wire
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

RINGS, SIDES = 25, 16
LENGTH, RADIUS = 0.8, 0.09
SMALL = Project().changed(
    mesh={"tets": 700},
    basis={"modes": 24, "regions": 2, "contact": False, "derivatives": 8},
    poses={"count": 3},
    material={"preset": "fat"},
)
"""A project with which the limb is built in seconds."""


def tube(swell: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """A closed tube along x from 0 to `LENGTH`, thicker in the middle by the share `swell`."""
    x = np.linspace(0.0, LENGTH, RINGS)
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    thick = RADIUS * (1.0 + swell * np.sin(np.pi * x / LENGTH))
    rings = np.stack(
        [
            np.repeat(x, SIDES),
            (thick[:, None] * np.cos(angles)).ravel(),
            (thick[:, None] * np.sin(angles)).ravel(),
        ],
        axis=1,
    )
    points = np.concatenate([rings, [[0.0, 0, 0], [LENGTH, 0, 0]]])
    faces = []
    for i in range(RINGS - 1):
        for j in range(SIDES):
            a, b = i * SIDES + j, i * SIDES + (j + 1) % SIDES
            faces += [[a, b, a + SIDES], [b, b + SIDES, a + SIDES]]
    left, right, last = len(rings), len(rings) + 1, (RINGS - 1) * SIDES
    for j in range(SIDES):
        faces += [[left, (j + 1) % SIDES, j], [right, last + j, last + (j + 1) % SIDES]]
    return points, np.array(faces)[:, ::-1]


def limb(*, scale: float = 1.0) -> Character:
    """Two bones along x; clips "bend" (elbow, 1.2 rad there and back) and "shake" (root, up and down, loops)."""
    points, triangles = tube()
    points = scale * points
    skeleton = Skeleton.from_heads(("upper", "lower"), (-1, 0), scale * np.array([[0.0, 0, 0], [0.5 * LENGTH, 0, 0]]))
    t = np.clip((points[:, 0] / scale - 0.3) / 0.2, 0.0, 1.0)
    share = t * t * (3.0 - 2.0 * t)
    weights = np.stack([1.0 - share, share], axis=1)
    skin = LinearBlendSkin(
        skeleton,
        points,
        [0, 1],
        np.linalg.inv(skeleton.rest_world_matrices),
        np.tile([0, 1], (len(points), 1)),
        weights,
    )
    smile = np.zeros((1, *points.shape))
    smile[0, : 3 * SIDES, 1] = 0.02 * scale
    rig = RigChain((BlendShapes(points, smile, ("smile",)), skin))
    times = np.arange(49) / 30.0
    bend, shake = (np.tile(rig.parameters.rest, (len(times), 1)) for _ in range(2))
    turn = rig.parameters.index("lower.rotation.x")
    angles = 1.2 * np.sin(np.pi * times / times[-1]) ** 2
    bend[:, turn : turn + 4] = quaternions_from_vectors(angles[:, None] * np.array([0.0, 0.0, 1.0]))
    lift = rig.parameters.index("upper.translation.y")
    shake[:, lift] += 0.05 * scale * np.sin(4.0 * np.pi * times / times[-1])
    part = Part("limb", slice(0, len(points)), slice(0, len(triangles)))
    softness = np.clip((points[:, 0] / scale - 0.2) / 0.3, 0.0, 1.0)
    return Character(
        "limb",
        rig,
        skeleton,
        triangles,
        (part,),
        (
            Clip.from_samples("bend", rig.parameters, times, bend),
            Clip.from_samples("shake", rig.parameters, times, shake, looping=True),
        ),
        maps={"softness": softness},
    )


def bent_bar() -> Character:
    """The same tube moved by a bend deformer: a black box."""
    points, triangles = tube()
    rig = Bend(points, (0.5 * LENGTH, 0, 0), (1.0, 0, 0), (0, 1.0, 0), -0.5 * LENGTH, 0.5 * LENGTH)
    times = np.arange(31) / 30.0
    clip = Clip.from_samples("sway", rig.parameters, times, 1.2 * np.sin(2.0 * np.pi * times)[:, None])
    part = Part("bar", slice(0, len(points)), slice(0, len(triangles)))
    return Character("bar", rig, None, triangles, (part,), (clip,))


def wired_bar() -> Character:
    """The same tube along a wire of four control points, which swings up at one end."""
    points, triangles = tube()
    rig = Wire(points, np.linspace([0.0, 0.0, 0.0], [LENGTH, 0.0, 0.0], 4))
    times = np.arange(31) / 30.0
    moved = np.zeros((len(times), len(rig.parameters)))
    for place, share in (("wire.2.y", 0.05), ("wire.3.y", 0.2)):
        moved[:, rig.parameters.index(place)] = share * LENGTH * np.sin(2.0 * np.pi * times)
    part = Part("bar", slice(0, len(points)), slice(0, len(triangles)))
    clip = Clip.from_samples("swing", rig.parameters, times, moved)
    return Character("bar", rig, None, triangles, (part,), (clip,))
