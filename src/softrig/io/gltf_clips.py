"""Animations of a glTF document as clips over the parameters of the character's rig."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.io.accessors import AccessorReader
from softrig.io.gltf_nodes import unique_names
from softrig.io.json_fields import JsonObject
from softrig.rig.clip import Clip, Interpolation, Track
from softrig.rig.parameters import Parameters

_INTERPOLATIONS: dict[str, Interpolation] = {"STEP": "step", "LINEAR": "linear", "CUBICSPLINE": "cubic"}
# Offset and number of a node's parameters, and the accessor type of their keys.
_NODE_PATHS = {"translation": (0, 3, "VEC3"), "rotation": (3, 4, "VEC4"), "scale": (7, 3, "VEC3")}
# What a track costs beyond its keys.
_BYTES_A_TRACK = 1024


@dataclass(frozen=True)
class Targets:
    """Where the nodes' parameters stand in the parameter vector."""

    parameters: Parameters
    nodes: dict[int, int]
    """First of the ten parameters of each node of the file that moves vertices and can be animated."""
    morphs: dict[int, tuple[int, int]]
    """First morph weight and number of weights of each node of the file with morph targets."""
    scale: float
    """Metres a unit of the file."""


def read_clips(reader: AccessorReader, root: JsonObject, targets: Targets) -> tuple[Clip, ...]:
    """All animations that move a vertex. What they do to cameras, lights and materials is left out."""
    clips: list[tuple[str, list[Track]]] = []
    for number, animation in enumerate(root.children("animations")):
        tracks = [
            track
            for channel in animation.children("channels")
            if (track := _read_track(reader, animation, channel, targets)) is not None
        ]
        if tracks:
            clips.append((animation.name(f"animation_{number}"), tracks))
    names = unique_names(name for name, _ in clips)
    return tuple(
        Clip(name, targets.parameters, tuple(tracks), max(float(track.times[-1]) for track in tracks))
        for name, (_, tracks) in zip(names, clips, strict=True)
    )


def _read_track(reader: AccessorReader, animation: JsonObject, channel: JsonObject, targets: Targets) -> Track | None:
    target = channel.child("target")
    if target is None:
        raise channel.error("has no target")
    node, path = target.index("node"), target.text("path")
    if path == "weights" and node in targets.morphs:
        start, width = targets.morphs[node]
        kind, per_key = "SCALAR", width
    elif path in _NODE_PATHS and node in targets.nodes:
        offset, width, kind = _NODE_PATHS[path]
        start, per_key = targets.nodes[node] + offset, 1
    else:
        return None
    reader.budget.charge(_BYTES_A_TRACK, channel.place)
    sampler = animation.at("samplers", channel.whole("sampler"))
    interpolation = sampler.text("interpolation", "LINEAR")
    if interpolation not in _INTERPOLATIONS:
        raise sampler.error(f"interpolation {interpolation[:20]!r} is none of {', '.join(_INTERPOLATIONS)}")
    values_a_key = 3 if interpolation == "CUBICSPLINE" else 1
    times = reader.numbers(sampler.whole("input"), ("SCALAR",))[:, 0]
    count = len(times) * values_a_key * per_key
    values = reader.numbers(sampler.whole("output"), (kind,), count=count).reshape(len(times), values_a_key, width)
    _check_times(sampler, times)
    if path == "translation":
        reader.budget.charge(values.nbytes, sampler.place)
        values = values * targets.scale
    if path == "rotation":
        _check_rotations(sampler, values[:, values_a_key // 2])
    return Track(start, width, times, values.reshape(-1, width), _INTERPOLATIONS[interpolation], path == "rotation")


def _check_times(sampler: JsonObject, times: np.ndarray) -> None:
    if times[0] < 0.0:
        raise sampler.error(f"keys start before zero, at {times[0]:g} s")
    falling = np.flatnonzero(np.diff(times) < 0.0)
    if falling.size:
        raise sampler.error("times of keys decrease", falling + 1)


def _check_rotations(sampler: JsonObject, quaternions: np.ndarray) -> None:
    lost = np.flatnonzero(np.linalg.norm(quaternions, axis=1) < 1e-12)
    if lost.size:
        raise sampler.error("rotations of keys have no direction", lost)
