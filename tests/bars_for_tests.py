"""A generated skinned bar with a seam, a morph target, colours and clips, as a character."""

from __future__ import annotations

import numpy as np

from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip, Track
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

HEIGHT, RADIUS = 1.2, 0.15


def tube(rings=13, sides=10):
    """Vertices and outward triangles of an open tube along y; the first and last column are a seam: same places."""
    angles = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    angles[-1] = 0.0
    heights = np.linspace(0.0, HEIGHT, rings)
    circle = np.stack([RADIUS * np.sin(angles), np.zeros(sides + 1), RADIUS * np.cos(angles)], axis=1)
    points = (circle[None] + heights[:, None, None] * [0.0, 1.0, 0.0]).reshape(-1, 3)
    a = (np.arange(rings - 1)[:, None] * (sides + 1) + np.arange(sides)[None]).ravel()
    up = a + sides + 1
    triangles = np.concatenate([np.stack([a, a + 1, up], 1), np.stack([a + 1, up + 1, up], 1)])
    return points, triangles


def bar_weights(points, bones):
    """(n, bones) smooth weights along y that sum to one."""
    centres = (np.arange(bones) + 0.5) * HEIGHT / bones
    weights = np.exp(-(((points[:, 1:2] - centres) / 0.15) ** 2))
    return weights / weights.sum(axis=1, keepdims=True)


def turn(angle, axis):
    """Quaternions (f, 4) of turns by `angle` (f,) about `axis`."""
    half = 0.5 * np.atleast_1d(angle)[:, None]
    return np.hstack([np.sin(half) * np.asarray(axis, float), np.cos(half)])


def bar_character(*, bones=3, parts=1, with_morph=True, scale=1.0):
    """Up to `bones` influences a vertex; clips "bend" (rotations) and "bulge" (rotation and morph weight)."""
    points, triangles = tube()
    weights = bar_weights(points, bones)
    points = points * scale
    heads = np.arange(bones)[:, None] * [0.0, HEIGHT / bones, 0.0] * scale
    skeleton = Skeleton.from_heads([f"bone{i}" for i in range(bones)], np.arange(bones) - 1, heads)
    inverse_binds = np.tile(np.eye(4), (bones, 1, 1))
    inverse_binds[:, :3, 3] = -heads
    joints = np.tile(np.arange(bones), (len(points), 1))
    skin = LinearBlendSkin(skeleton, points, np.arange(bones), inverse_binds, joints, weights)
    rig = skin
    if with_morph:
        bump = np.exp(-(((points[:, 1:2] / scale - 0.6) / 0.2) ** 2)) * points * [1.0, 0.0, 1.0]
        bump[np.abs(bump).max(axis=1) < 1e-3 * scale] = 0.0
        rig = RigChain((BlendShapes(points, bump[None], ("bulge",)), skin))
    clips = bar_clips(rig, skeleton)
    colours = np.column_stack([points / np.abs(points).max() * 0.5 + 0.5, np.ones(len(points))])
    maps = {"_FAT": points[:, 1] / HEIGHT / scale}
    if parts == 1:
        pieces = (Part("bar", slice(0, len(points)), slice(0, len(triangles))),)
        return Character("bar", rig, skeleton, triangles, pieces, clips, colours, maps)
    return two_parts(rig, skeleton, skin, clips)


def two_parts(rig, skeleton, skin, clips):
    """The same bar, its lower and its upper rows as parts of their own."""
    points, triangles = tube()
    row = len(points) // 13
    low = 7 * row
    lower = (triangles < low).all(axis=1)
    upper = (triangles >= low - row).all(axis=1)
    # The ring between them belongs to both, so the upper part has its own copy of it.
    order = np.concatenate([np.arange(low), np.arange(low - row, len(points))])
    faces = np.concatenate([triangles[lower], triangles[upper] + row])
    chosen = LinearBlendSkin(
        skeleton, skin.rest_positions[order], skin.bones, skin.inverse_binds, skin.joints[order], skin.weights[order]
    )
    whole = chosen
    if isinstance(rig, RigChain):
        shapes = rig.stages[0]
        whole = RigChain((BlendShapes(chosen.rest_positions, shapes.targets[:, order], shapes.names), chosen))
    pieces = (
        Part("lower", slice(0, low), slice(0, int(lower.sum()))),
        Part("upper", slice(low, len(order)), slice(int(lower.sum()), len(faces))),
    )
    return Character("bar", whole, skeleton, faces, pieces, bar_clips(whole, skeleton))


def bar_clips(rig, skeleton):
    times = np.linspace(0.0, 1.0, 21)
    bend = rig.parameters.index("bone1.rotation.x")
    swing = Track(bend, 4, times, turn(0.9 * np.sin(2.0 * np.pi * times), [0, 0, 1]), "linear", True)
    lift = rig.parameters.index("bone0.translation.x")
    path = Track(lift, 3, [0.0, 0.4, 1.0], [[0, 0, 0], [0.1, 0.3, 0.0], [0, 0, 0.2]])
    clips = [Clip("bend", rig.parameters, (swing, path), 1.0)]
    if "bulge.weight" in rig.parameters.names:
        weight = rig.parameters.index("bulge.weight")
        grow = Track(weight, 1, [0.0, 0.3, 0.9], [[0.0], [1.0], [0.25]])
        clips.append(Clip("bulge", rig.parameters, (swing, grow), 1.0))
    return tuple(clips)


def jiggled(character, clip, fps=60.0, amplitude=0.03):
    """Times (f,) and positions (f, n, 3): the clip plus three travelling bumps; the foot of the bar stays."""
    times, values = character.clip(clip).resample(fps)
    base = np.stack([character.rig.positions(p) for p in values])
    points = character.rest_positions
    size = character.size
    moves = np.zeros_like(base)
    for wave, (height, direction) in enumerate([(0.4, [1, 0, 0.3]), (0.7, [0, 0.4, 1]), (0.9, [0.5, 1, 0])]):
        bump = np.exp(-(((points[:, 1] / size - height) / 0.12) ** 2))[:, None] * np.array(direction, float)
        moves += amplitude * size * np.sin(2.0 * np.pi * (1.3 + wave) * times + wave)[:, None, None] * bump
    moves[:, points[:, 1] < 0.2 * size] = 0.0
    return times, base + moves
