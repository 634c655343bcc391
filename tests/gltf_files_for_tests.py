"""Small glTF files written by hand: a JSON object and a growing block of bytes; and how the characters in them lie."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from softrig.io.gltf import load_gltf

BYTE, UNSIGNED_BYTE, SHORT, UNSIGNED_SHORT, UNSIGNED_INT, FLOAT = 5120, 5121, 5122, 5123, 5125, 5126
HALF = np.sqrt(0.5)
TURN_Z = [0.0, 0.0, HALF, HALF]  # 90° about z: x becomes y, y becomes −x
SINGLE = 1e-6  # files hold single precision
_COMPONENTS = {"i1": BYTE, "u1": UNSIGNED_BYTE, "i2": SHORT, "u2": UNSIGNED_SHORT, "u4": UNSIGNED_INT, "f4": FLOAT}
_KINDS = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


def glb_bytes(document: dict[str, Any] | bytes, binary: bytes = b"") -> bytes:
    """A GLB of a JSON object (or its text) and a binary chunk."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        padded = binary + b"\0" * (-len(binary) % 4)
        chunks += struct.pack("<II", len(padded), 0x004E4942) + padded
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


class GltfFile:
    """A glTF under construction; every method returns the index of what it added."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"asset": {"version": "2.0"}}
        self.binary = bytearray()

    def add(self, key: str, **fields: Any) -> int:
        entries = self.json.setdefault(key, [])
        entries.append(fields)
        return len(entries) - 1

    def view(self, content: bytes, stride: int | None = None) -> int:
        self.binary += b"\0" * (-len(self.binary) % 4)
        extra = {} if stride is None else {"byteStride": stride}
        index = self.add("bufferViews", buffer=0, byteOffset=len(self.binary), byteLength=len(content), **extra)
        self.binary += content
        return index

    def accessor(self, values: Any, dtype: str = "f4", *, view: int | None = None, **extra: Any) -> int:
        """Values of shape (n,), (n, width) or matrices (n, 4, 4), the latter stored column by column."""
        array = np.asarray(values)
        if array.ndim == 3:
            array = array.transpose(0, 2, 1).reshape(len(array), 16)
        array = array.reshape(len(array), -1).astype(np.dtype("<" + dtype))
        return self.add(
            "accessors",
            bufferView=self.view(array.tobytes()) if view is None else view,
            componentType=_COMPONENTS[dtype],
            count=len(array),
            type=_KINDS[array.shape[1]],
            **extra,
        )

    def sparse(self, count: int, rows: Any, values: Any, dtype: str = "f4", **extra: Any) -> int:
        """A sparse accessor; pass `bufferView` in `extra` for a base other than zeros."""
        values = np.asarray(values, dtype=np.dtype("<" + dtype)).reshape(len(rows), -1)
        return self.add(
            "accessors",
            componentType=_COMPONENTS[dtype],
            count=count,
            type=_KINDS[values.shape[1]],
            sparse={
                "count": len(rows),
                "indices": {
                    "bufferView": self.view(np.asarray(rows, "<u2").tobytes()),
                    "componentType": UNSIGNED_SHORT,
                },
                "values": {"bufferView": self.view(values.tobytes())},
            },
            **extra,
        )

    def mesh(
        self, positions: Any, triangles: Any = None, attributes: dict[str, int] | None = None, **extra: Any
    ) -> int:
        """A mesh of one primitive; `positions` are values or the index of an accessor; `extra` goes to the mesh."""
        where = positions if isinstance(positions, int) else self.accessor(positions)
        primitive: dict[str, Any] = {"attributes": {"POSITION": where, **(attributes or {})}}
        if triangles is not None:
            primitive["indices"] = self.accessor(np.ravel(triangles), "u2")
        if "targets" in extra:
            primitive["targets"] = [{"POSITION": target} for target in extra.pop("targets")]
        return self.add("meshes", primitives=[primitive], **extra)

    def animation(self, *channels: tuple[int, str, Any, Any, str], **extra: Any) -> int:
        """Channels of (node, path, times, values, interpolation)."""
        entry: dict[str, Any] = {"samplers": [], "channels": [], **extra}
        for node, path, times, values, interpolation in channels:
            entry["channels"].append({"sampler": len(entry["samplers"]), "target": {"node": node, "path": path}})
            entry["samplers"].append(
                {
                    "input": self.accessor(times),
                    "output": self.accessor(np.ravel(values) if path == "weights" else values),
                    "interpolation": interpolation,
                }
            )
        return self.add("animations", **entry)

    def finished(self, **buffer: Any) -> dict[str, Any]:
        document = dict(self.json)
        if self.binary:
            document["buffers"] = [{"byteLength": len(self.binary), **buffer}]
        return document

    def glb(self) -> bytes:
        return glb_bytes(self.finished(), bytes(self.binary))

    def save(self, path: Path) -> Path:
        """A GLB, or for the ending .gltf JSON with the bytes in a data: uri."""
        if path.suffix == ".gltf":
            uri = "data:application/octet-stream;base64," + base64.b64encode(self.binary).decode()
            path.write_text(json.dumps(self.finished(uri=uri)), encoding="utf-8")
        else:
            path.write_bytes(self.glb())
        return path


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float64)
TETRAHEDRON_FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def plain_tetrahedron(**node: Any) -> GltfFile:
    """One unskinned tetrahedron on one node."""
    file = GltfFile()
    file.add("nodes", mesh=file.mesh(TETRAHEDRON, TETRAHEDRON_FACES), **node)
    return file


def skinned_bar(**extra: Any) -> GltfFile:
    """A square bar along y from 0 to 2 m, joints `lower` at y = 0 and `upper` at y = 1, rings at 0, 0.5, 1, 1.5, 2.

    The ring at 1 is bound half to each joint. `extra` goes to the mesh.
    """
    file = GltfFile()
    corners = np.array([[-0.1, 0, -0.1], [0.1, 0, -0.1], [0.1, 0, 0.1], [-0.1, 0, 0.1]])
    heights = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    positions = (corners[None] + heights[:, None, None] * [0.0, 1.0, 0.0]).reshape(-1, 3)
    faces = []
    for ring in range(4):
        for side in range(4):
            a, b = 4 * ring + side, 4 * ring + (side + 1) % 4
            faces += [[a, a + 4, b], [b, a + 4, b + 4]]
    faces += [[0, 1, 2], [0, 2, 3], [16, 18, 17], [16, 19, 18]]
    upper = np.repeat([0.0, 0.0, 0.5, 1.0, 1.0], 4)
    weights = np.stack([1.0 - upper, upper, 0 * upper, 0 * upper], axis=1)
    joints = np.tile([0, 1, 0, 0], (20, 1))
    inverse = np.tile(np.eye(4), (2, 1, 1))
    inverse[1, 1, 3] = -1.0
    attributes = {"JOINTS_0": file.accessor(joints, "u1"), "WEIGHTS_0": file.accessor(weights)}
    mesh = file.mesh(positions, faces, attributes, name="bar", **extra)
    file.add("nodes", name="lower", children=[1])
    file.add("nodes", name="upper", translation=[0.0, 1.0, 0.0])
    file.add(
        "nodes",
        name="body",
        mesh=mesh,
        skin=file.add("skins", joints=[0, 1], inverseBindMatrices=file.accessor(inverse)),
    )
    return file


def everything() -> GltfFile:
    """A bar that uses most of what the reader knows: the seed of mutated files, and of the comparison with three.js."""
    corrections = [
        {"morph": "bulge", "drivers": ["upper.rotation"], "pose": {"upper.rotation.z": 0.6, "upper.rotation.w": 0.8}},
        {"name": "far", "morph": "lean", "drivers": ["lower.translation.x"], "pose": {"lower.translation.x": 0.5}},
    ]
    extras = {"targetNames": ["bulge", "lean"], "softrig": {"corrections": corrections}}
    file = skinned_bar(weights=[0.25, 0.5], extras=extras)
    primitive = file.json["meshes"][0]["primitives"][0]
    bulge = file.sparse(20, [8, 9, 10, 11], [[-0.1, 0, -0.1], [0.1, 0, -0.1], [0.1, 0, 0.1], [-0.1, 0, 0.1]])
    lean = file.accessor(np.linspace(0, 0.3, 20)[:, None] * [1.0, 0.0, 0.0])
    primitive["targets"] = [{"POSITION": bulge}, {"POSITION": lean}]
    primitive["attributes"] |= {
        "COLOR_0": file.accessor(np.tile([255, 128, 0, 255], (20, 1)), "u1", normalized=True),
        "_SOFTNESS": file.accessor(np.linspace(0, 1, 20)),
    }
    quantised = np.zeros((4, 4), "<i2")
    quantised[:, :3] = TETRAHEDRON * 2000
    eye = file.accessor(quantised[:, :3], "i2", view=file.view(quantised.tobytes(), stride=8))
    strip = file.mesh(eye, [0, 1, 2, 3], name="eye")
    file.json["meshes"][strip]["primitives"][0]["mode"] = 5
    shear = np.eye(4)
    shear[0, 1], shear[:3, 3] = 0.3, [0.1, 0.2, -0.1]
    file.add("nodes", name="eye", mesh=strip, scale=[-1e-4, 2e-4, 1e-4], translation=[0, 0.5, 0.2])
    file.add("nodes", name="sheared", children=[3], matrix=shear.T.ravel().tolist())
    file.json["nodes"][1]["children"] = [4]
    file.add("nodes", name="root", children=[0, 2], rotation=[0.1, 0.2, 0.3, 0.9273618495495703], scale=[1.2, 0.8, 1.0])
    file.add("scenes", nodes=[5])
    half = np.sqrt(0.5)
    still, zero = [0.0, 0.0, 0.0, 1.0], [0.0] * 4
    turn = [zero, still, [0.3, 0, 0, 0], [0, 0, 0.5, 0], [0, 0, half, half], zero, zero, [0, half, 0, half], zero]
    file.animation(
        (1, "rotation", [0, 0.5, 1], turn, "CUBICSPLINE"),
        (0, "translation", [0, 1], [[0, 0, 0], [0.3, 0.2, 0.1]], "LINEAR"),
        (0, "rotation", [0.25, 1], [still, [half, 0, 0, -half]], "LINEAR"),
        (1, "scale", [0, 0.6], [[1, 1, 1], [0.7, 1.5, -1.1]], "STEP"),
        (2, "weights", [0, 1], [[0.25, 0.5], [1.0, -0.5]], "LINEAR"),
        name="all",
    )
    return file


def loaded(file: GltfFile, folder: Path, name: str = "character.glb", **options):
    return load_gltf(file.save(folder / name), **options)


def at(character, clip: str, time: float) -> np.ndarray:
    return character.rig.positions(character.clip(clip).sample(time)[0])


def volume(character) -> float:
    """Signed: positive if the triangles face outwards."""
    a, b, c = np.moveaxis(character.rest_positions[character.triangles], 1, 0)
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6.0)


_NASTY: tuple[Any, ...] = (
    *(-1, 0, 1, 2, 3, 5, 255, 65536, 2**31, 2**32 - 1, 2**53, 2**64, -(2**40), 10**400, 0.5, 1e308, -1e300, 1e-320),
    *(None, True, "", "x", "\ud800", "MAT4", "SCALAR", [], {}, [[]], [0, 0], [1e30] * 3, {"POSITION": 0}, [[[[[[]]]]]]),
)


def mutated(rng: np.random.Generator, file: GltfFile) -> bytes:
    """A damaged copy of a file: bits flipped, cut off, JSON fields changed, or numbers of the binary part replaced."""
    content = bytearray(file.glb())
    kind = rng.integers(6)
    if kind == 0:
        for place in rng.integers(0, len(content), rng.integers(1, 20)):
            content[place] ^= 1 << rng.integers(8)
    elif kind == 1:
        del content[int(rng.integers(0, len(content))) :]
    elif kind == 2:
        values = np.array([np.nan, np.inf, 3e38, -3e38, 1e-40, 0, -1, 1e9], "<f4")
        binary = np.frombuffer(bytes(file.binary) + b"\0" * (-len(file.binary) % 4), "<f4").copy()
        binary[rng.integers(0, len(binary), rng.integers(1, 5))] = rng.choice(values)
        return glb_bytes(file.finished(), binary.tobytes())
    elif kind == 3:
        text = bytearray(json.dumps(file.finished()).encode())
        for place in rng.integers(0, len(text), rng.integers(1, 4)):
            text[place] = rng.integers(32, 127)
        return glb_bytes(bytes(text), bytes(file.binary))
    else:
        document = json.loads(json.dumps(file.finished()))
        for _ in range(rng.integers(1, 4)):
            _change_a_field(rng, document)
        return glb_bytes(document, bytes(file.binary))
    return bytes(content)


def _change_a_field(rng: np.random.Generator, document: dict[str, Any]) -> None:
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [document]
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    holder, key = places[rng.integers(len(places))]
    kind = rng.integers(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[key])
    elif kind == 2:
        other, place = places[rng.integers(len(places))]
        holder[key] = json.loads(json.dumps(other[place]))
    elif kind == 3 and isinstance(holder[key], int):
        holder[key] += int(rng.integers(-3, 4))
    else:
        holder[key] = _NASTY[rng.integers(len(_NASTY))]
