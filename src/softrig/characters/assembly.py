"""From surface, bones and poses to a whole character with corrections and clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from softrig.bodies.implicit import gradient
from softrig.characters.corrections import pulled_back
from softrig.characters.paint import Stroke, Triple, painted
from softrig.characters.sculpture import Sculpture
from softrig.characters.surface import Focus, closed_surface
from softrig.errors import InputError
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip
from softrig.rig.corrections import Correction, corrected
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.features import vertex_areas
from softrig.rig.protocol import Deformer
from softrig.rig.skeleton import Skeleton

MARGIN = 0.05
"""Metres of air around the lumps of a sculpture, which swell where they flow together."""


@dataclass(frozen=True, eq=False, repr=False)
class BuiltInCharacter(Character):
    """A character made by code, with named poses."""

    poses: dict[str, np.ndarray] = field(default_factory=dict)
    """(P,) parameters by name, corrections included: poses worth preparing a simulation for."""

    def pose(self, name: str) -> np.ndarray:
        """(P,) the pose called `name`."""
        try:
            return self.poses[name]
        except KeyError:
            raise InputError(f"'{self.name}' has no pose '{name}'; its poses: {', '.join(self.poses)}") from None


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles with colours, m."""

    vertices: np.ndarray
    """(n, 3)."""
    triangles: np.ndarray
    """(t, 3) int32, outward."""
    colours: np.ndarray
    """(n, 4) linear red, green, blue, alpha."""


@dataclass(frozen=True)
class Sculpt:
    """A correction to be made: its pose (parameters by name, without weights) and the sculpted surface there."""

    name: str
    pose: np.ndarray
    """(P − t,) parameters of the rig behind the blend shapes."""
    drivers: tuple[str, ...]
    positions: np.ndarray
    """(n, 3) m."""


@dataclass(frozen=True, eq=False)
class Take:
    """A motion on its way into a clip."""

    times: np.ndarray
    """(f,) s."""
    values: np.ndarray
    """(f, P − t) parameters of the rig behind the blend shapes."""
    looping: bool = False


def at(take: Take, time: float) -> np.ndarray:
    """(P − t,) the pose of a take at the key nearest to `time`, s."""
    return take.values[int(np.abs(take.times - time).argmin())]


def surface_of(
    body: Sculpture, count: int, ground: Triple, strokes: Sequence[Stroke], *, focus: Focus | None = None, grain: float
) -> Surface:
    """The painted surface of a sculpture with `count` vertices."""
    low, high = body.box()
    vertices, triangles = closed_surface(body, low - MARGIN, high + MARGIN, count, focus)
    normals = gradient(body, vertices, 1e-4)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Surface(vertices, triangles, painted(vertices, triangles, normals, ground, strokes, grain=grain))


def skeleton_of(joints: Mapping[str, tuple[str, Triple]]) -> Skeleton:
    """A skeleton of `joints`: parent ("" for the root) and place at rest, m, of each; frames axis-aligned."""
    names = list(joints)
    parents = [names.index(parent) if parent else -1 for parent, _ in joints.values()]
    return Skeleton.from_heads(names, parents, np.array([place for _, place in joints.values()]))


def assembled(
    name: str,
    surface: Surface,
    stages: Sequence[Deformer],
    skeleton: Skeleton | None,
    sculpts: Sequence[Sculpt],
    takes: Mapping[str, Take],
    poses: Mapping[str, np.ndarray],
) -> BuiltInCharacter:
    """Blend shapes in front of `stages`, the sculpts pulled back to rest, clips and poses with their corrections.

    `poses` are parameters (P − t,) of the stages, by name, without the t corrections' weights.
    """
    mover = RigChain(tuple(stages))
    deltas = [pulled_back(mover, sculpt.pose, sculpt.positions) for sculpt in sculpts]
    shapes = BlendShapes(
        surface.vertices,
        np.stack(deltas) if deltas else np.zeros((0, *surface.vertices.shape)),
        tuple(sculpt.name for sculpt in sculpts),
    )
    areas = vertex_areas(surface.vertices, surface.triangles)
    rig = RigChain((shapes, *stages), areas=areas)
    corrections = tuple(
        Correction(sculpt.name, np.concatenate([row, sculpt.pose]), sculpt.drivers, sculpt.positions)
        for sculpt, row in zip(sculpts, np.eye(len(sculpts)), strict=True)
    )

    def whole(values: np.ndarray) -> np.ndarray:
        padded = np.concatenate([np.zeros((*values.shape[:-1], len(sculpts))), values], axis=-1)
        return corrected(rig.parameters, corrections, padded)

    part = Part(name, slice(0, len(surface.vertices)), slice(0, len(surface.triangles)), colours=surface.colours)
    return BuiltInCharacter(
        name=name,
        rig=rig,
        skeleton=skeleton,
        triangles=surface.triangles,
        parts=(part,),
        clips=tuple(
            Clip.from_samples(key, rig.parameters, take.times, whole(take.values), looping=take.looping)
            for key, take in takes.items()
        ),
        colours=surface.colours,
        corrections=corrections,
        poses={key: whole(np.asarray(pose)) for key, pose in poses.items()},
    )
