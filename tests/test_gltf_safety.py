"""Damaged and hostile glTF files: refused with a reason that starts with the path, in bounded memory."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import warnings

import numpy as np
import pytest

from gltf_files_for_tests import (
    TETRAHEDRON,
    TETRAHEDRON_FACES,
    GltfFile,
    everything,
    glb_bytes,
    mutated,
    plain_tetrahedron,
    skinned_bar,
)
from softrig.errors import InputError, Notice
from softrig.io.accessors import memory_limit
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf

FUZZED_FILES = 400
# Python's own objects and the surface's checks come on top of the arrays that are counted.
SLACK = 64 * 2**20


@pytest.fixture
def refused(tmp_path):
    """Load a file's bytes (or a `GltfFile`) and give back why it was refused."""

    def load(content: bytes | GltfFile, name: str = "bad.glb") -> str:
        path = tmp_path / name
        path.write_bytes(content.glb() if isinstance(content, GltfFile) else content)
        with pytest.raises(FileFormatError) as caught:
            load_gltf(path)
        assert isinstance(caught.value, InputError)
        assert caught.value.path == path
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        return message.removeprefix(f"{path}: ")

    return load


# Containers


def test_damaged_containers(refused):
    whole = skinned_bar().glb()
    assert "is cut off" in refused(whole[:-1])
    assert "hold no GLB header" in refused(whole[:7])
    assert refused(b"") == "is empty"
    for foreign in (b"\x89PNG\xff\xfe", b"Dear reader,"):
        assert refused(foreign).startswith("this is no 3D character, whatever its name says; what can be read is GLB")
    assert "neither a GLB nor JSON" in refused(b"{\xff")
    assert "JSON cannot be read" in refused(b"{")
    assert "version 1; softrig reads version 2" in refused(whole[:4] + struct.pack("<I", 1) + whole[8:])
    assert "chunk 0 claims 4294967295 bytes" in refused(whole[:12] + b"\xff\xff\xff\xff" + whole[16:])
    assert "first chunk of the GLB is not JSON" in refused(whole[:16] + b"BIN\0" + whole[20:])
    for path, reason in (("/nowhere/hero.glb", "there is no such file"), ("/", "is not a file")):
        with pytest.raises(FileFormatError, match=f"^{path}: {reason}"):
            load_gltf(path)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 50_000 + b"]" * 50_000])
def test_deeply_nested_json(refused, content):
    assert "nested too deeply" in refused(content, "bad.gltf")
    assert "nested too deeply" in refused(glb_bytes(content))


def test_json_that_is_no_gltf(refused):
    assert "is not an object" in refused(b"[1, 2]")
    assert "no 'asset'" in refused(b"{}")
    assert "glTF version '1.0'" in refused(b'{"asset": {"version": "1.0"}}')
    assert "NaN is not JSON" in refused(b'{"asset": NaN}')
    assert "shows no mesh" in refused(b'{"asset": {"version": "2.0"}}')


def test_duplicate_keys_are_fine(tmp_path):
    text = json.dumps(plain_tetrahedron().finished()).encode()
    doubled = b'{"asset": {"version": "1.0"}, ' + text[1:]
    path = tmp_path / "a.glb"
    path.write_bytes(glb_bytes(doubled, bytes(plain_tetrahedron().binary)))
    assert load_gltf(path).rest_positions.shape == (4, 3)


def test_trailing_bytes_and_a_byte_order_mark_are_fine(tmp_path):
    path = tmp_path / "a.glb"
    path.write_bytes(plain_tetrahedron().glb() + b"rest")
    assert load_gltf(path).rest_positions.shape == (4, 3)
    text = plain_tetrahedron().save(tmp_path / "a.gltf").read_bytes()
    (tmp_path / "a.gltf").write_bytes(b"\xef\xbb\xbf" + text)
    assert load_gltf(tmp_path / "a.gltf").rest_positions.shape == (4, 3)


# Buffers


@pytest.fixture
def with_uri(tmp_path):
    """A .gltf in a folder of its own whose buffer has the given uri; its bytes are in ../outside.bin and inside.bin."""
    folder = tmp_path / "folder"
    folder.mkdir()
    file = plain_tetrahedron()
    (tmp_path / "outside.bin").write_bytes(file.binary)
    (folder / "inside.bin").write_bytes(file.binary)

    def load(uri: object):
        path = folder / "a.gltf"
        path.write_text(json.dumps(file.finished(uri=uri)))
        return load_gltf(path)

    load.folder = folder
    return load


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("../outside.bin", "outside the file's folder"),
        ("%2e%2e/outside.bin", "outside the file's folder"),
        ("x/../../outside.bin", "outside the file's folder"),
        ("..\\outside.bin", "outside the file's folder"),
        ("/etc/passwd", "outside the file's folder"),
        ("%2Fetc%2Fpasswd", "outside the file's folder"),
        ("\\\\host\\share\\a.bin", "outside the file's folder"),
        ("C:\\a.bin", "is an address"),
        ("file:///etc/passwd", "is an address"),
        ("FILE:inside.bin", "is an address"),
        ("http://example.org/a.bin", "is an address"),
        ("https://example.org/a.bin", "is an address"),
        ("%66ile:///etc/passwd", "outside the file's folder"),
        ("missing.bin", "no such file"),
        (".", "no such file"),
        ("", "outside the file's folder"),
        ("a\0b", "outside the file's folder"),
        ("\ud800", "cannot be followed|no such file"),
        ("x" * 5000, "cannot be followed|no such file"),
        (3, "uri is not a string"),
        ("data:application/octet-stream;base64", "no comma"),
        ("data:application/octet-stream;base64,@@@@", "not base64"),
        ("data:,abc", "byteLength is 72, but there are 3 bytes"),
    ],
)
def test_buffers_from_anywhere_else_are_refused(with_uri, uri, reason):
    with pytest.raises(FileFormatError, match=reason) as caught:
        with_uri(uri)
    assert "buffers[0]" in str(caught.value)


def test_buffers_from_the_folder_are_read_but_not_through_a_link_that_leaves_it(with_uri):
    assert with_uri("inside.bin").rest_positions.shape == (4, 3)
    assert with_uri("./inside.bin").rest_positions.shape == (4, 3)
    (with_uri.folder / "fine.bin").symlink_to("inside.bin")
    assert with_uri("fine.bin").rest_positions.shape == (4, 3)
    (with_uri.folder / "link.bin").symlink_to("../outside.bin")
    with pytest.raises(FileFormatError, match="outside the file's folder, by a symbolic link"):
        with_uri("link.bin")
    (with_uri.folder / "up").symlink_to("..")
    with pytest.raises(FileFormatError, match="by a symbolic link"):
        with_uri("up/outside.bin")
    (with_uri.folder / "loop").symlink_to("loop")
    with pytest.raises(FileFormatError, match=r"cannot be followed|no such file"):
        with_uri("loop")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(with_uri):
    os.mkfifo(with_uri.folder / "pipe.bin")
    with pytest.raises(FileFormatError, match="no such file"):
        with_uri("pipe.bin")


def test_only_the_needed_bytes_of_a_large_buffer_file_are_read(with_uri):
    inside = with_uri.folder / "inside.bin"
    with inside.open("r+b") as file:
        file.truncate(2**33)
    tracemalloc.start()
    try:
        assert with_uri("inside.bin").rest_positions.shape == (4, 3)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_buffer_without_data(refused):
    file = plain_tetrahedron()
    document = file.finished()
    assert "has no uri and no data" in refused(glb_bytes(document))
    document["buffers"][0]["extensions"] = {"EXT_meshopt_compression": {"fallback": True}}
    assert "no data that softrig can read (EXT_meshopt_compression)" in refused(glb_bytes(document))


# Accessors


def changed(key: str, index: int, **fields) -> GltfFile:
    file = plain_tetrahedron()
    file.json[key][index] |= fields
    return file


@pytest.mark.parametrize(
    ("key", "fields", "reason"),
    [
        ("accessors", {"count": 5}, "5 elements reach to byte 60 of a buffer view of 48"),
        ("accessors", {"count": 2**31}, "reach to byte"),
        ("accessors", {"count": 2**53}, "reach to byte"),
        ("accessors", {"count": 2**70}, "a number beyond"),
        ("accessors", {"count": -1}, "count = -1 is not a whole number"),
        ("accessors", {"count": 0}, "count = 0 is not a whole number of at least 1"),
        ("accessors", {"count": 3.5}, "count = 3.5 is not a whole number"),
        ("accessors", {"count": True}, "count = True is not a whole number"),
        ("accessors", {"count": "4"}, "count = a string"),
        ("accessors", {"byteOffset": 2}, "misaligned: offset 2"),
        ("accessors", {"byteOffset": 4}, "reach to byte 52"),
        ("accessors", {"byteOffset": -4}, "byteOffset = -4"),
        ("accessors", {"byteOffset": 2**53}, "reach to byte"),
        ("accessors", {"componentType": 5124}, "componentType 5124 is none of"),
        ("accessors", {"type": "VEC4"}, "type 'VEC4' where VEC3 belongs"),
        ("accessors", {"bufferView": 99}, r"bufferViews\[99\] does not exist, there are 2"),
        ("bufferViews", {"byteStride": 4}, "byteStride 4 is less than an element of 12 bytes"),
        ("bufferViews", {"byteStride": 14}, "misaligned: offset 0, stride 14"),
        ("bufferViews", {"byteStride": 2**40}, "reach to byte"),
        ("bufferViews", {"byteOffset": 2}, "misaligned: offset 2"),
        ("bufferViews", {"byteOffset": 2**53}, "of a buffer of 72"),
        ("bufferViews", {"byteLength": 2**40}, "of a buffer of 72"),
        ("bufferViews", {"buffer": 1}, r"buffers\[1\] does not exist"),
    ],
)
def test_accessors_out_of_range(tmp_path, key, fields, reason):
    path = tmp_path / "bad.glb"
    path.write_bytes(changed(key, 0, **fields).glb())
    with pytest.raises(FileFormatError, match=reason):
        load_gltf(path)


def test_a_buffer_longer_than_its_bytes(refused):
    file = plain_tetrahedron()
    document = file.finished() | {"buffers": [{"byteLength": 2**40}]}
    assert "byteLength is 1099511627776, but there are 72 bytes" in refused(glb_bytes(document, bytes(file.binary)))


def with_sparse(elements: int, **changes) -> GltfFile:
    file = GltfFile()
    where = file.sparse(elements, [0, 2], [[0, 0, 0], [1, 1, 1]])
    file.json["accessors"][where]["sparse"] |= changes
    file.add("nodes", mesh=file.mesh(where, [0, 1, 2]))
    return file


def test_sparse_accessors_out_of_range(refused):
    assert "count 3 is above the accessor's 2" in refused(with_sparse(2, count=3))
    assert "beyond the 2 elements [index 1]" in refused(with_sparse(2))
    file = with_sparse(3)
    del file.json["accessors"][0]["sparse"]["values"]
    assert "lacks indices or values" in refused(file)
    file = with_sparse(3)
    file.binary[:4] = struct.pack("<HH", 2, 2)
    assert "not strictly increasing [index 1]" in refused(file)
    file = with_sparse(3)
    file.json["accessors"][0]["sparse"]["indices"]["componentType"] = 5126
    assert "componentType 5126 where unsigned integers belong" in refused(file)


def test_a_sparse_accessor_without_bytes_has_a_stated_bound(refused):
    reason = refused(with_sparse(2**40))
    assert "elements without bytes of their own; at most 1048576 are read" in reason


# Contents


def test_positions_that_are_not_numbers_are_named(refused):
    broken = TETRAHEDRON.copy()
    broken[1, 2], broken[3, 0] = np.nan, -np.inf
    file = GltfFile()
    file.add("nodes", mesh=file.mesh(broken, TETRAHEDRON_FACES))
    assert refused(file) == "meshes[0].primitives[0]: POSITION of vertices is NaN or infinite [index 1, 3]"


def test_indices_and_joints_out_of_range_are_named(refused):
    file = GltfFile()
    file.add("nodes", mesh=file.mesh(TETRAHEDRON, [[0, 1, 4], [0, 1, 2]]))
    assert "indices beyond its 4 vertices [index 2]" in refused(file)
    bar = skinned_bar()
    bar.json["skins"][0]["joints"] = [0]
    assert "joints beyond the 1 of skins[0], at vertices [index 8, 9, 10" in refused(bar)
    bar.json["skins"][0]["joints"] = [0, 77]
    assert "skins[0]: joints that do not exist [index 1]" in refused(bar)
    bar.json["skins"][0]["joints"] = [0, 1, 1]
    assert "2 inverse bind matrices for 3 joints" in refused(bar)
    bar.json["skins"][0]["joints"] = []
    assert "has no joints" in refused(bar)


def test_weights_that_cannot_be(refused):
    bar = skinned_bar()
    attributes = bar.json["meshes"][0]["primitives"][0]["attributes"]
    weights = np.tile([2.0, -1.0, 0, 0], (20, 1))
    attributes["WEIGHTS_0"] = bar.accessor(weights)
    assert "negative skin weights of vertices [index 0" in refused(bar)
    weights[5] = np.nan
    attributes["WEIGHTS_0"] = bar.accessor(weights)
    assert "NaN or infinite [index 5]" in refused(bar)
    attributes["WEIGHTS_0"] = bar.accessor(weights[:7])
    assert "has 7 elements where 20 belong" in refused(bar)
    del attributes["WEIGHTS_0"]
    assert "has JOINTS_0 but no WEIGHTS_0" in refused(bar)


def test_trees_that_are_none(refused):
    file = plain_tetrahedron(children=[1])
    file.add("nodes", children=[2])
    file.add("nodes", children=[1])
    assert "node 1 has two parents [index 0, 2]" in refused(file)
    file = plain_tetrahedron()
    file.add("nodes", children=[2], mesh=0)
    file.add("nodes", children=[1])
    assert "nodes form a cycle or hang below one [index 1, 2]" in refused(file)
    assert "node 0 has two parents" in refused(plain_tetrahedron(children=[0, 0]))
    assert "cycle" in refused(plain_tetrahedron(children=[0]))
    assert "child 5 does not exist" in refused(plain_tetrahedron(children=[5]))
    file = plain_tetrahedron()
    file.add("nodes", children=[0])
    file.add("scenes", nodes=[0])
    assert "child of another one [index 0]" in refused(file)
    file.json["scenes"][0]["nodes"] = [2]
    assert "node 2 does not exist" in refused(file)


def test_nodes_that_cannot_be(refused):
    assert "rotation has no direction" in refused(plain_tetrahedron(rotation=[0, 0, 0, 0]))
    assert "translation has 2 numbers, not 3" in refused(plain_tetrahedron(translation=[0, 0]))
    assert "scale holds what is not a finite number [index 1]" in refused(plain_tetrahedron(scale=[1, 10**400, 1]))
    assert "last row" in refused(plain_tetrahedron(matrix=[1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]))
    file = plain_tetrahedron(scale=["here", 1, 1])
    infinite = json.dumps(file.finished()).replace('"here"', "1e999").encode()
    assert "scale holds what is not a finite number [index 0]" in refused(glb_bytes(infinite, bytes(file.binary)))
    towering = plain_tetrahedron(scale=[1e200] * 3)
    towering.add("nodes", children=[0], scale=[1e200] * 3)
    assert "rest positions" in refused(towering)


def test_animations_that_cannot_be(refused):
    def animated(times, values, interpolation="LINEAR", path="translation"):
        file = plain_tetrahedron()
        file.animation((0, path, times, values, interpolation))
        return file

    two = [[0, 0, 0], [1, 0, 0]]
    assert "times of keys decrease [index 1]" in refused(animated([1, 0], two))
    assert "start before zero" in refused(animated([-1, 0], two))
    assert "NaN or infinite [index 1]" in refused(animated([0, np.nan], two))
    assert "has 2 elements where 3 belong" in refused(animated([0, 1, 2], two))
    assert "has 2 elements where 6 belong" in refused(animated([0, 1], two, "CUBICSPLINE"))
    assert "interpolation 'BEZIER' is none of STEP, LINEAR, CUBICSPLINE" in refused(animated([0, 1], two, "BEZIER"))
    assert "type 'VEC3' where VEC4 belongs" in refused(animated([0, 1], two, path="rotation"))
    lost = animated([0, 1], [[0, 0, 0, 1], [0, 0, 0, 0]], path="rotation")
    assert "rotations of keys have no direction [index 1]" in refused(lost)


# Memory


def instances(count: int, vertices: int) -> GltfFile:
    file = GltfFile()
    mesh = file.mesh(np.random.default_rng(0).random((vertices, 3)), [0, 1, 2])
    for _ in range(count):
        file.add("nodes", mesh=mesh)
    return file


def many_primitives() -> GltfFile:
    file = plain_tetrahedron()
    file.json["meshes"][0]["primitives"] *= 3000
    for _ in range(3000):
        file.add("nodes", mesh=0)
    return file


def many_targets() -> GltfFile:
    file = GltfFile()
    positions = file.accessor(np.random.default_rng(0).random((10_000, 3)))
    mesh = file.mesh(positions, [0, 1, 2], targets=[positions] * 5000, extras={"targetNames": ["x" * 300] * 5000})
    file.add("nodes", mesh=mesh)
    return file


def many_influences() -> GltfFile:
    file = GltfFile()
    joints = file.accessor(np.zeros((10_000, 4)), "u1")
    weights = file.accessor(np.ones((10_000, 4)), "u1", normalized=True)
    attributes = {f"JOINTS_{i}": joints for i in range(2000)} | {f"WEIGHTS_{i}": weights for i in range(2000)}
    mesh = file.mesh(np.random.default_rng(0).random((10_000, 3)), [0, 1, 2], attributes)
    file.add("nodes", mesh=mesh, skin=file.add("skins", joints=[0]))
    return file


def many_accessors() -> GltfFile:
    file = GltfFile()
    view = file.view(np.zeros(100_000, "<f4").tobytes())
    attributes = {f"_MAP_{i}": file.accessor(np.zeros(100_000), view=view) for i in range(3000)}
    file.add("nodes", mesh=file.mesh(file.sparse(100_000, [1], [[1, 1, 1]]), [0, 1, 2], attributes))
    return file


def many_sparse() -> GltfFile:
    file = with_sparse(2**20)
    targets = [dict(file.json["accessors"][0]) for _ in range(500)]
    file.json["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": 2 + i} for i in range(500)]
    file.json["accessors"] += targets
    return file


@pytest.mark.parametrize(
    "build",
    [lambda: instances(3000, 20_000), many_primitives, many_targets, many_influences, many_accessors, many_sparse],
    ids=["instances", "primitives", "targets", "influences", "accessors", "sparse"],
)
def test_a_file_that_repeats_its_bytes_is_refused_before_memory_runs_out(refused, build):
    content = build().glb()
    tracemalloc.start()
    try:
        reason = refused(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "in memory; the limit for a file of" in reason
    assert peak < memory_limit(len(content)) + SLACK


def test_names_of_the_file_stay_short_and_printable(tmp_path):
    path = plain_tetrahedron(name="\x1b[2J\ud800" + "x" * 10_000).save(tmp_path / "a.glb")
    (name,) = load_gltf(path).skeleton.names
    assert name.startswith("_[2J_xxx")
    assert len(name) == 200
    name.encode()


def test_ten_thousand_equal_names_take_no_time(tmp_path):
    file = plain_tetrahedron(name="a")
    for below in range(10_000):
        file.add("nodes", children=[below], name="a")
    names = load_gltf(file.save(tmp_path / "a.glb")).skeleton.names
    assert len(set(names)) == 10_001


# Anything


def test_mutated_files_give_clean_errors_only(tmp_path):
    rng = np.random.default_rng(20240)
    seeds = [everything(), everything(), plain_tetrahedron(), skinned_bar()]
    path = tmp_path / "mutated.glb"
    outcomes = {"read": 0, "refused": 0}
    tracemalloc.start()
    try:
        for number in range(FUZZED_FILES):
            path.write_bytes(mutated(rng, seeds[number % len(seeds)]))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", Notice)
                try:
                    character = load_gltf(path)
                except FileFormatError as error:
                    outcomes["refused"] += str(error).startswith(str(path))
                else:
                    assert np.isfinite(character.rest_positions).all()
                    outcomes["read"] += 1
        assert tracemalloc.get_traced_memory()[1] < SLACK
    finally:
        tracemalloc.stop()
    assert sum(outcomes.values()) == FUZZED_FILES
    assert outcomes["refused"] > FUZZED_FILES // 2
    assert outcomes["read"] > FUZZED_FILES // 20


def test_the_seed_of_the_mutations_is_a_good_file(tmp_path):
    character = load_gltf(everything().save(tmp_path / "a.glb"))
    assert [part.name for part in character.parts] == ["eye", "body"]
    assert len(character.clip("all").tracks) == 5
    assert np.ptp(character.maps["_SOFTNESS"]) == 1.0
