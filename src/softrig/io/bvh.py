"""BVH: a skeleton and its motion, as archives of motion capture give it. Degrees in the file, quaternions here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from softrig.errors import InputError
from softrig.files import write_bytes
from softrig.io.format_error import FileFormatError
from softrig.numerics.rotations import quaternion_matrices, quaternion_product, quaternions_from_vectors
from softrig.rig.clip import Clip
from softrig.rig.skeleton import NODE_PARAMETERS, Skeleton

MOST_BYTES = 500_000_000
MOST_NODES = 10_000
MOST_NUMBERS = 100_000_000
_AXES = "XYZ"
_CHANNELS = {f"{axis}{kind}" for axis in _AXES for kind in ("position", "rotation")}


@dataclass(frozen=True, eq=False)
class Motion:
    """A skeleton of its own and a clip over its parameters. "End Site"s are nodes called "<joint>.end"."""

    skeleton: Skeleton
    clip: Clip


@dataclass
class _Node:
    """What the file says of one joint."""

    name: str
    parent: int
    offset: tuple[float, float, float] | None = None
    channels: list[str] = field(default_factory=list)


class _Words:
    """The words of the file with their line numbers; errors name the line."""

    def __init__(self, text: str, path: str | Path) -> None:
        self._path = path
        self._lines = iter(enumerate(text.splitlines(), start=1))
        self._words: Iterator[str] = iter(())
        self.line = 0

    def error(self, message: str) -> FileFormatError:
        """What is wrong, with the line it was found in."""
        return FileFormatError(self._path, message, [self.line])

    def following(self, what: str) -> str:
        """The next word, where the file must have one."""
        while True:
            for word in self._words:
                return word
            try:
                self.line, text = next(self._lines)
            except StopIteration:
                raise self.error(f"the file ends where {what} should be") from None
            self._words = iter(text.split())

    def expect(self, wanted: str) -> None:
        """The next word must be `wanted`."""
        word = self.following(wanted)
        if word.lower() != wanted.lower():
            raise self.error(f"'{word[:40]}' where '{wanted}' should be")

    def number(self, what: str) -> float:
        """The next word as a finite number."""
        word = self.following(what)
        try:
            value = float(word)
        except ValueError:
            raise self.error(f"'{word[:40]}' where {what} should be") from None
        if not np.isfinite(value):
            raise self.error(f"{what} is not finite")
        return value

    def rest_of_line(self) -> str:
        """The words left on this line: names may hold spaces."""
        return " ".join(self._words)

    def rest(self) -> str:
        """Everything from here on."""
        return "\n".join([self.rest_of_line(), *(text for _, text in self._lines)])


def load_bvh(path: str | Path, *, scale: float = 1.0) -> Motion:
    """The skeleton and motion of a BVH file; `scale` is metres per unit of the file (0.01 for centimetres)."""
    path = Path(path)
    if path.stat().st_size > MOST_BYTES:
        raise FileFormatError(path, f"more than {MOST_BYTES} bytes")
    if not (np.isfinite(scale) and scale > 0.0):
        raise InputError(f"a scale must be positive, not {scale}")
    return parse_bvh(path.read_text(encoding="utf-8", errors="replace"), path, scale=scale)


def parse_bvh(text: str, path: str | Path = "motion.bvh", *, scale: float = 1.0) -> Motion:
    """The skeleton and motion of the text of a BVH file; `path` names the clip and faults."""
    words = _Words(text.removeprefix("\ufeff"), path)
    words.expect("HIERARCHY")
    nodes = _hierarchy(words)
    times, numbers = _frames(words, sum(len(node.channels) for node in nodes))
    offsets = scale * np.array([node.offset for node in nodes])
    identity = np.tile([0.0, 0.0, 0.0, 1.0], (len(nodes), 1))
    parents = np.array([node.parent for node in nodes])
    skeleton = Skeleton(tuple(node.name for node in nodes), parents, offsets, identity, np.ones((len(nodes), 3)))
    values = _parameters(nodes, skeleton, numbers, scale)
    return Motion(skeleton, Clip.from_samples(Path(path).stem, skeleton.parameters, times, values))


def _hierarchy(words: _Words) -> list[_Node]:
    """All joints, parents first, up to the word MOTION. A stack, not recursion: files may nest deeply."""
    nodes: list[_Node] = []
    above: list[int] = []
    while True:
        word = words.following("a joint").upper()
        here = nodes[above[-1]] if above else None
        if word == "MOTION" and not above and nodes:
            return nodes
        if word in ("ROOT", "JOINT", "END") and (word == "ROOT") == (here is None):
            given = words.rest_of_line()
            own = given.removesuffix("{").strip() or f"joint{len(nodes)}"
            name = f"{here.name}.end" if here is not None and word == "END" else own
            nodes.append(_Node(name, above[-1] if above else -1))
            if not given.endswith("{"):
                words.expect("{")
            above.append(len(nodes) - 1)
            if len(nodes) > MOST_NODES:
                raise words.error(f"more than {MOST_NODES} joints")
        elif word == "OFFSET" and here is not None and here.offset is None:
            x, y, z = (words.number("an offset") for _ in range(3))
            here.offset = (x, y, z)
        elif word == "CHANNELS" and here is not None and not here.channels:
            here.channels = _channels(words)
        elif word == "}" and here is not None:
            if here.offset is None:
                raise words.error(f"'{here.name}' has no OFFSET")
            above.pop()
        else:
            raise words.error(f"'{word[:40]}' does not belong here")


def _channels(words: _Words) -> list[str]:
    count = words.number("a number of channels")
    if count not in range(7):
        raise words.error(f"{count} channels; a joint has 0 to 6")
    names = []
    for _ in range(int(count)):
        word = words.following("a channel").lower()
        names.append(word[:1].upper() + word[1:])
        if names[-1] not in _CHANNELS or names.count(names[-1]) > 1:
            raise words.error(f"channel '{word[:40]}' is unknown or given twice")
    return names


def _frames(words: _Words, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (f,), seconds, and channel values (f, channels)."""
    words.expect("Frames:")
    count = words.number("a number of frames")
    words.expect("Frame")
    words.expect("Time:")
    interval = words.number("a frame time")
    if count < 1 or count != int(count) or interval <= 0.0:
        raise words.error(f"{count} frames of {interval} s")
    if count * max(channels, 1) > MOST_NUMBERS:
        raise words.error(f"{count:.0f} frames of {channels} channels are too many")
    text = words.rest()
    try:
        numbers = np.array(text.split(), dtype=np.float64)
    except ValueError as error:
        raise words.error(f"motion data: {error}") from None
    frames = int(count)
    if numbers.size != frames * channels:
        raise words.error(
            f"{frames} frames of {channels} channels need {frames * channels} numbers, not {numbers.size}"
        )
    if not np.isfinite(numbers).all():
        bad = np.flatnonzero(~np.isfinite(numbers))[0] // max(channels, 1)
        raise words.error(f"motion data of frame {bad} is not finite")
    return np.arange(frames) * interval, numbers.reshape(frames, channels)


def _parameters(nodes: list[_Node], skeleton: Skeleton, numbers: np.ndarray, scale: float) -> np.ndarray:
    """(f, 10 j): positions replace the offset; rotations multiply in the order of the channels."""
    values = np.tile(skeleton.parameters.rest, (len(numbers), 1))
    column = 0
    for index, node in enumerate(nodes):
        rotation = np.tile([0.0, 0.0, 0.0, 1.0], (len(numbers), 1))
        for channel in node.channels:
            axis = _AXES.index(channel[0])
            if channel.endswith("position"):
                values[:, NODE_PARAMETERS * index + axis] = scale * numbers[:, column]
            else:
                turn = np.deg2rad(numbers[:, column])[:, None] * np.eye(3)[axis]
                rotation = quaternion_product(rotation, quaternions_from_vectors(turn))
            column += 1
        values[:, skeleton.rotation(index)] = rotation
    return values


def save_bvh(path: str | Path, skeleton: Skeleton, clip: Clip, *, fps: float = 60.0, scale: float = 1.0) -> None:
    """Write a clip of the skeleton's own parameters as BVH; `scale` is metres per unit of the file.

    The motion is kept. BVH knows neither scale nor rest rotations: animated or non-unit scale is refused, and rest
    rotations are part of every frame, so that the file's own rest pose is another one.
    """
    write_bytes(path, bvh_text(skeleton, clip, fps=fps, scale=scale).encode())


def bvh_text(skeleton: Skeleton, clip: Clip, *, fps: float = 60.0, scale: float = 1.0) -> str:
    """The text `save_bvh` writes."""
    if clip.parameters.names != skeleton.parameters.names or skeleton.fixed_matrices:
        raise InputError("a BVH clip moves the parameters of its skeleton, whose nodes have no fixed matrices")
    times, values = clip.resample(fps)
    nodes = values.reshape(len(times), len(skeleton), NODE_PARAMETERS)
    scaled = np.abs(nodes[:, :, 7:] - 1.0).max(axis=(0, 2)) > 1e-6
    if scaled.any():
        raise InputError("BVH has no scale, but nodes do", np.flatnonzero(scaled))
    moving = (np.ptp(nodes[:, :, :3], axis=0) > 0.0).any(axis=1) | (nodes[0, :, :3] != skeleton.translations).any(
        axis=1
    )
    moving |= skeleton.parents < 0
    turning = np.abs(nodes[:, :, 3:6]).max(axis=(0, 2)) > 0.0
    ends = [
        not (moving[i] or turning[i] or skeleton.children[i]) and name.endswith(".end")
        for i, name in enumerate(skeleton.names)
    ]
    lines = ["HIERARCHY"]
    order: list[int] = []
    for root in np.flatnonzero(skeleton.parents < 0).tolist():
        _write_tree(skeleton, root, (moving, np.array(ends)), scale, lines, order)
    columns = []
    for node in order:
        if moving[node]:
            columns.append(nodes[:, node, :3] / scale)
        columns.append(np.rad2deg(_zxy_angles(quaternion_matrices(nodes[:, node, 3:7]))))
    lines += ["MOTION", f"Frames: {len(times)}", f"Frame Time: {1.0 / fps!r}"]
    lines += [" ".join(f"{number:.9g}" for number in row) for row in np.concatenate(columns, axis=1)]
    return "\n".join(lines) + "\n"


def _write_tree(
    skeleton: Skeleton,
    root: int,
    kinds: tuple[np.ndarray, np.ndarray],
    scale: float,
    lines: list[str],
    order: list[int],
) -> None:
    """Append the joints under `root`, depth first, to `lines` and, where they have channels, to `order`.

    `kinds` says of each node whether it has positions of its own, and whether it is an "End Site".
    """
    moving, ends = kinds
    stack: list[tuple[int, int, bool]] = [(root, 0, False)]
    while stack:
        node, depth, closing = stack.pop()
        indent = "  " * depth
        if closing:
            lines.append(f"{indent}}}")
            continue
        x, y, z = skeleton.translations[node] / scale
        title = "End Site" if ends[node] else f"{'ROOT' if depth == 0 else 'JOINT'} {skeleton.names[node]}"
        lines += [f"{indent}{title}", f"{indent}{{", f"{indent}  OFFSET {x:.9g} {y:.9g} {z:.9g}"]
        children = skeleton.children[node]
        if not ends[node]:
            order.append(node)
            positions = "6 Xposition Yposition Zposition" if moving[node] else "3"
            lines.append(f"{indent}  CHANNELS {positions} Zrotation Xrotation Yrotation")
            if not children:  # programs expect every branch to end in one
                lines += [f"{indent}  End Site", f"{indent}  {{", f"{indent}    OFFSET 0 0 0", f"{indent}  }}"]
        stack.append((node, depth, True))
        stack += [(child, depth + 1, False) for child in reversed(children)]


def _zxy_angles(R: np.ndarray) -> np.ndarray:
    """(f, 3) radians z, x, y with R = Rz Rx Ry; at x = ±90° all of the common turn goes to z."""
    sine = np.clip(R[..., 2, 1], -1.0, 1.0)
    locked = np.abs(sine) > 1.0 - 1e-12
    z = np.where(locked, np.arctan2(R[..., 1, 0], R[..., 0, 0]), np.arctan2(-R[..., 0, 1], R[..., 1, 1]))
    y = np.where(locked, 0.0, np.arctan2(-R[..., 2, 0], R[..., 2, 2]))
    x = np.arctan2(sine, np.hypot(R[..., 2, 0], R[..., 2, 2]))
    return np.stack([z, x, y], axis=-1)
