"""Characters written as new GLBs: read back they are the same, and the file keeps glTF's rules."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from bars_for_tests import HEIGHT, bar_character, tube
from softrig.errors import InputError
from softrig.io.glb_writer import character_glb, write_character_glb
from softrig.io.gltf import load_gltf
from softrig.io.vertex_normals import turned, vertex_normals
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip, Track
from softrig.rig.deformers import Bend, CallableRig, RigChain, carried_by_root
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

SIZES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}


def parsed(content):
    magic, version, length = struct.unpack_from("<4sII", content)
    assert (magic, version, length) == (b"glTF", 2, len(content))
    size, kind = struct.unpack_from("<I4s", content, 12)
    assert kind == b"JSON"
    assert size % 4 == 0
    binary_size, kind = struct.unpack_from("<I4s", content, 20 + size)
    assert kind == b"BIN\0"
    binary = content[28 + size :]
    assert len(binary) == binary_size
    assert binary_size % 4 == 0
    return json.loads(content[20 : 20 + size]), binary


def written(character, tmp_path, **options):
    write_character_glb(character, tmp_path / "out.glb", **options)
    return load_gltf(tmp_path / "out.glb")


def largest_difference(one, other, clip, times):
    pairs = zip(one.clip(clip).sample(times), other.clip(clip).sample(times), strict=True)
    return max(np.linalg.norm(one.rig.positions(p) - other.rig.positions(q), axis=1).max() for p, q in pairs)


@pytest.mark.parametrize("options", [{}, {"parts": 2}, {"with_morph": False}, {"bones": 6}])
def test_a_skinned_bar_comes_back(options, tmp_path):
    bar = bar_character(**options)
    back = written(bar, tmp_path)
    assert np.allclose(back.rest_positions, bar.rest_positions, atol=1e-6)
    assert np.array_equal(back.triangles, bar.triangles)
    assert [part.name for part in back.parts] == [part.name for part in bar.parts]
    assert [clip.name for clip in back.clips] == [clip.name for clip in bar.clips]
    assert set(back.skeleton.names) >= set(bar.skeleton.names)
    times = np.linspace(0.0, 1.0, 37)
    for clip in bar.clips:
        assert back.clip(clip.name).duration == pytest.approx(1.0)
        moved = max(np.ptp(bar.rig.positions(p)[-1] - bar.rest_positions[-1]) for p in clip.sample(times))
        assert moved > 0.1, "the clip must move something"
        assert largest_difference(bar, back, clip.name, times) < 2e-6


def test_colours_maps_and_morphs_come_back(tmp_path):
    bar = bar_character()
    back = written(bar, tmp_path)
    assert np.allclose(back.colours, bar.colours, atol=1.0 / 65535.0)
    assert np.allclose(back.maps["_FAT"], bar.maps["_FAT"], atol=1e-6)
    shapes = back.rig.stages[0]
    assert shapes.names == ("bulge",)
    assert np.allclose(shapes.targets, bar.rig.stages[0].targets, atol=1e-7)


def test_more_than_four_influences_take_several_sets(tmp_path):
    document, _ = parsed(character_glb(bar_character(bones=6)))
    attributes = document["meshes"][0]["primitives"][0]["attributes"]
    assert {"JOINTS_0", "WEIGHTS_0", "JOINTS_1", "WEIGHTS_1"} <= set(attributes)
    assert "JOINTS_2" not in attributes


def test_the_file_is_aligned_and_states_its_bounds(tmp_path):
    document, binary = parsed(character_glb(bar_character()))
    assert document["buffers"] == [{"byteLength": len(binary)}]
    end = 0
    for view in document["bufferViews"]:
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] >= end, "views do not overlap"
        end = view["byteOffset"] + view["byteLength"]
    assert end <= len(binary)
    primitive = document["meshes"][0]["primitives"][0]
    positions = document["accessors"][primitive["attributes"]["POSITION"]]
    assert positions["min"][1] == 0.0
    assert positions["max"][1] == pytest.approx(HEIGHT)
    for accessor in document["accessors"]:
        if "bufferView" in accessor:
            view = document["bufferViews"][accessor["bufferView"]]
            tight = SIZES[accessor["componentType"]] * WIDTHS[accessor["type"]]
            assert view.get("byteStride", tight) * (accessor["count"] - 1) + tight <= view["byteLength"]
    for target in primitive["targets"]:
        morph = document["accessors"][target["POSITION"]]
        assert {"min", "max", "sparse"} <= set(morph), "most of the bar does not bulge: sparse pays"
    for animation in document["animations"]:
        for sampler in animation["samplers"]:
            keys = document["accessors"][sampler["input"]]
            assert keys["min"] == [0.0]
            assert keys["max"] == [1.0]


def test_skin_weights_sum_to_one_and_unused_joints_are_zero():
    document, binary = parsed(character_glb(bar_character(bones=6)))
    attributes = document["meshes"][0]["primitives"][0]["attributes"]

    def read(name, kind):
        accessor = document["accessors"][attributes[name]]
        offset = document["bufferViews"][accessor["bufferView"]]["byteOffset"]
        return np.frombuffer(binary, kind, 4 * accessor["count"], offset).reshape(-1, 4)

    weights = np.hstack([read("WEIGHTS_0", "<f4"), read("WEIGHTS_1", "<f4")])
    joints = np.hstack([read("JOINTS_0", "u1"), read("JOINTS_1", "u1")])
    assert np.abs(weights.sum(axis=1, dtype=np.float64) - 1.0).max() < 1e-7
    assert (np.diff(weights[:, :2], axis=1) <= 1e-6).all(), "largest first"
    assert not joints[weights == 0.0].any()


@pytest.mark.parametrize("root", [False, True])
def test_a_bend_becomes_morph_targets(root, tmp_path):
    points, triangles = tube()
    bend = Bend(points, [0, 0, 0], [0, 1, 0], [1, 0, 0], 0.0, HEIGHT)
    rig = carried_by_root(bend) if root else bend
    angle = Track(rig.parameters.index("bend.angle"), 1, [0.0, 0.5, 1.0], [[0.0], [1.2], [-0.4]])
    tracks = [angle]
    if root:
        lift = Track(rig.parameters.index("root.translation.x"), 3, [0.0, 1.0], [[0, 0, 0], [0.3, 0.2, 0.1]])
        tracks.append(lift)
    clip = Clip("bend", rig.parameters, tuple(tracks), 1.0)
    part = Part("x", slice(0, len(points)), slice(0, len(triangles)))
    skeleton = rig.stages[-1].skeleton if root else None
    before = Character("x", rig, skeleton, triangles, (part,), (clip,))
    back = written(before, tmp_path, tolerance=2e-4)
    frames = np.arange(61) / 60.0
    assert largest_difference(before, back, "bend", frames) < 2.02e-4
    weights = np.array([back.clip("bend").sample(frames)[:, : len(back.rig.stages[0].names)]])
    assert weights.min() >= 0.0
    assert weights.max() <= 1.0


def test_any_function_without_clips_gives_a_still_mesh(tmp_path):
    points, triangles = tube()
    bend = Bend(points, [0, 0, 0], [0, 1, 0], [1, 0, 0], 0.0, HEIGHT)
    rig = RigChain((CallableRig(lambda p, x, v: x + p[0], bend.parameters, points),))
    part = Part("f", slice(0, len(points)), slice(0, len(triangles)))
    back = written(Character("f", rig, None, triangles, (part,)), tmp_path)
    assert np.allclose(back.rest_positions, points, atol=1e-6)
    assert not back.clips


def test_two_bones_of_one_node_and_fixed_matrices_come_back(tmp_path):
    points, triangles = tube()
    shear = np.eye(4)
    shear[0, 1] = 0.3
    identity = np.tile([0.0, 0.0, 0.0, 1.0], (2, 1))
    skeleton = Skeleton(("a", "b"), [-1, 0], [[0, 0, 0], [0, 0.6, 0]], identity, np.ones((2, 3)), {0: shear})
    low = points[:, 1] < 0.5
    weights = np.where(low, 0.0, 1.0)[:, None]
    attach = np.where(low, 1, -1)
    inverse = np.eye(4)
    inverse[:3, 3] = [0.0, -0.3, 0.1]
    skin = LinearBlendSkin(skeleton, points, [1], inverse[None], np.zeros((len(points), 1), int), weights, attach)
    part = Part("p", slice(0, len(points)), slice(0, len(triangles)))
    spin = Track(skin.parameters.index("b.rotation.x"), 4, [0.0, 1.0], [[0, 0, 0, 1], [0.6, 0, 0, 0.8]], "step", True)
    character = Character("p", skin, skeleton, triangles, (part,), (Clip("spin", skin.parameters, (spin,), 1.0),))
    back = written(character, tmp_path)
    assert np.allclose(back.rest_positions, character.rest_positions, atol=1e-6)
    assert largest_difference(character, back, "spin", np.array([0.0, 0.5, 1.0])) < 2e-6


def test_normals_point_outwards_and_seams_are_smooth():
    points, triangles = tube()
    bar = bar_character()
    normals = vertex_normals(points, triangles, bar.welded.unique_of_vertex)
    outward = points * [1.0, 0.0, 1.0]
    assert (np.einsum("ni,ni->n", normals, outward) > 0.1 * np.linalg.norm(outward, axis=1)).all()
    ring = points.reshape(13, 11, 3)
    assert np.array_equal(ring[:, 0], ring[:, -1])
    assert np.allclose(normals.reshape(13, 11, 3)[:, 0], normals.reshape(13, 11, 3)[:, -1])


def test_turning_takes_one_direction_to_the_other():
    rng = np.random.default_rng(0)
    before, after = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, 50, 3)))
    assert np.allclose(turned(before, before, after), after)
    axis = np.cross(before, after)
    assert np.allclose(turned(axis, before, after), axis)


def test_writing_twice_gives_the_same_bytes():
    assert character_glb(bar_character()) == character_glb(bar_character())


@pytest.mark.parametrize("name", ["bar.gltf", "bar", "bar.glb.bak"])
def test_only_a_glb_is_written(name, tmp_path):
    with pytest.raises(InputError, match=r"is written as \.glb, not as"):
        write_character_glb(bar_character(), tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_character_glb(bar_character(), tmp_path / "BAR.GLB")
