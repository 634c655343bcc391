"""glTF in, the whole file: containers, nodes, units and parts, worked out by hand, by three.js and on real files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gltf_files_for_tests import (
    SINGLE,
    TETRAHEDRON,
    TETRAHEDRON_FACES,
    TURN_Z,
    GltfFile,
    at,
    everything,
    loaded,
    plain_tetrahedron,
    skinned_bar,
    volume,
)
from softrig.errors import InputError, Notice
from softrig.io.characters import LOADERS, load_character
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf
from softrig.io.gltf_nodes import trs_of, unique_names

# Containers


@pytest.mark.parametrize("name", ["a.glb", "a.vrm", "a.gltf", "A.GLB"])
def test_every_container_gives_the_same_character(tmp_path, name):
    character = load_character(skinned_bar().save(tmp_path / name))
    assert character.name == Path(name).stem
    assert character.source == tmp_path / name
    assert character.rest_positions.shape == (20, 3)
    np.testing.assert_allclose(character.rest_positions[[0, 16]], [[-0.1, 0, -0.1], [-0.1, 2, -0.1]], atol=SINGLE)
    assert volume(character) == pytest.approx(0.2**2 * 2.0, rel=1e-5)


def test_a_buffer_beside_the_file_or_below(tmp_path):
    file = skinned_bar()
    (tmp_path / "with space").mkdir()
    (tmp_path / "with space" / "bytes.bin").write_bytes(file.binary)
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(file.finished(uri="with%20space/bytes.bin")))
    assert volume(load_gltf(path)) == pytest.approx(0.08, rel=1e-5)


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path):
    file = tmp_path / "hero.max"
    file.write_bytes(b"3ds")
    with pytest.raises(FileFormatError, match=r"hero\.max: ending \.max: softrig reads .*\.glb, \.gltf, .*\.vrm"):
        load_character(file)
    with pytest.raises(FileFormatError, match=r"hera\.max: there is no such file, did you mean .* \(softrig reads"):
        load_character(tmp_path / "hera.max")
    assert {".glb", ".gltf", ".vrm"} <= set(LOADERS)
    with pytest.raises(FileFormatError, match="this is a folder; name a file in it"):
        load_character(tmp_path)


# Nodes


def test_scene_transforms_of_unskinned_meshes(tmp_path):
    file = plain_tetrahedron(scale=[2, 3, 4])
    file.add("nodes", children=[0], rotation=TURN_Z)
    file.add("nodes", children=[1], translation=[10, 0, 0])
    character = loaded(file, tmp_path)
    # Scaled, then turned about z, then moved.
    expected = [[10, 0, 0], [10, 2, 0], [7, 0, 0], [10, 0, 4]]
    np.testing.assert_allclose(character.rest_positions, expected, atol=SINGLE)


def test_only_the_default_scene_is_shown(tmp_path):
    file = plain_tetrahedron(name="shown")
    file.add("nodes", mesh=0, name="hidden")
    file.add("scenes", nodes=[1])
    file.add("scenes", nodes=[0])
    file.json["scene"] = 1
    assert [part.name for part in loaded(file, tmp_path).parts] == ["shown"]
    del file.json["scene"]
    assert [part.name for part in loaded(file, tmp_path).parts] == ["hidden"]


def test_a_sheared_matrix_is_kept_and_a_plain_one_becomes_a_trs(tmp_path):
    shear = np.eye(4)
    shear[0, 1], shear[:3, 3] = 0.5, [1, 2, 3]
    plain = np.array([[0, -2, 0, 5], [2, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1.0]])
    file = plain_tetrahedron(matrix=shear.T.ravel().tolist(), name="sheared")
    file.add("nodes", children=[0], matrix=plain.T.ravel().tolist(), name="plain")
    character = loaded(file, tmp_path)
    skeleton = character.skeleton
    assert set(skeleton.fixed_matrices) == {skeleton.index("sheared")}
    node = skeleton.index("plain")
    np.testing.assert_allclose(skeleton.translations[node], [5, 0, 0])
    np.testing.assert_allclose(skeleton.scales[node], [2, 2, 2])
    np.testing.assert_allclose(skeleton.rotations[node], TURN_Z, atol=1e-12)
    inner = TETRAHEDRON @ shear[:3, :3].T + shear[:3, 3]
    np.testing.assert_allclose(character.rest_positions, inner @ plain[:3, :3].T + plain[:3, 3], atol=SINGLE)


def test_trs_of_mirrors_with_a_negative_scale_and_refuses_what_flattens():
    mirror = np.diag([1.0, 1.0, -3.0, 1.0])
    translation, rotation, scale = trs_of(mirror)
    x, y, z, w = rotation
    turned = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    np.testing.assert_allclose(turned * scale, mirror[:3, :3], atol=1e-12)
    assert np.prod(scale) == pytest.approx(-3.0)
    assert np.all(translation == 0.0)
    assert trs_of(np.diag([1.0, 0.0, 1.0, 1.0])) is None


def test_a_mirrored_part_is_turned_so_that_it_still_faces_outwards(tmp_path):
    assert volume(loaded(plain_tetrahedron(), tmp_path)) == pytest.approx(1 / 6)
    mirrored = loaded(plain_tetrahedron(scale=[-1, 2, 1]), tmp_path)
    assert mirrored.rest_positions[:, 0].min() == -1.0
    assert volume(mirrored) == pytest.approx(2 / 6)
    bar = skinned_bar()
    bar.add("nodes", children=[0], scale=[1, 1, -1])
    assert volume(loaded(bar, tmp_path)) == pytest.approx(0.08, rel=1e-5)


def test_a_tree_of_ten_thousand_nodes_needs_no_recursion(tmp_path):
    file = plain_tetrahedron(translation=[0, 0.001, 0])
    for below in range(10_000):
        file.add("nodes", children=[below], translation=[0, 0.001, 0])
    character = loaded(file, tmp_path, scale=0.1)
    assert len(character.skeleton) == 10_001
    np.testing.assert_allclose(character.rest_positions[0], [0, 1.0001, 0], atol=1e-9)


def test_nodes_without_vertices_cameras_and_lights_are_left_out(tmp_path):
    file = skinned_bar()
    file.json["cameras"] = [{"type": "perspective", "perspective": {"yfov": 1, "znear": 0.1}}]
    file.add("nodes", camera=0, name="camera")
    file.add("nodes", name="light", extensions={"KHR_lights_punctual": {"light": 0}})
    file.json["extensionsRequired"] = ["KHR_lights_punctual", "KHR_materials_unlit", "KHR_texture_transform", "VRM"]
    file.animation((3, "translation", [0, 1], [[0, 0, 0], [1, 1, 1]], "LINEAR"), name="camera ride")
    character = loaded(file, tmp_path)
    assert sorted(character.skeleton.names) == ["body", "lower", "upper"]
    assert character.clips == ()


def test_repeated_and_missing_names_are_made_different(tmp_path):
    assert unique_names(["a", "a#2", "a", "a"]) == ("a", "a#2", "a#3", "a#4")
    file = GltfFile()
    mesh = file.mesh(TETRAHEDRON, TETRAHEDRON_FACES, name="tet")
    for name in ({"name": "twin"}, {"name": "twin"}, {}):
        file.add("nodes", mesh=mesh, **name)
    character = loaded(file, tmp_path)
    assert character.skeleton.names == ("twin", "twin#2", "node_2")
    assert [part.name for part in character.parts] == ["twin", "twin#2", "tet"]
    assert [part.source["node"] for part in character.parts] == [0, 1, 2]


# Units


def test_scale_multiplies_every_length_and_nothing_else(tmp_path):
    file = skinned_bar()
    file.json["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": file.sparse(20, [16], [[0, 0, 3]])}]
    file.json["meshes"][0]["weights"] = [0.25]
    shear = np.eye(4)
    shear[0, 1], shear[:3, 3] = 0.5, [1, 2, 3]
    file.add("nodes", children=[0], matrix=shear.T.ravel().tolist())
    file.animation(
        (0, "translation", [0, 1], [[0, 0, 0], [0, 0, 5]], "LINEAR"),
        (1, "rotation", [0, 1], [[0, 0, 0, 1], TURN_Z], "LINEAR"),
        (2, "weights", [0, 1], [[0], [1]], "LINEAR"),
        name="all",
    )
    path = file.save(tmp_path / "a.glb")
    plain, doubled = load_gltf(path), load_gltf(path, scale=2.0)
    np.testing.assert_allclose(doubled.rest_positions, 2.0 * plain.rest_positions, atol=1e-12)
    for time in (0.3, 1.0):
        np.testing.assert_allclose(at(doubled, "all", time), 2.0 * at(plain, "all", time), atol=1e-12)
    assert np.abs(at(plain, "all", 1.0) - plain.rest_positions).max() > 1.0


@pytest.mark.parametrize(("unit", "proposed"), [(100.0, "0.01"), (0.01, "100")])
def test_an_implausible_size_proposes_a_scale(tmp_path, unit, proposed):
    path = plain_tetrahedron(scale=[unit] * 3).save(tmp_path / "a.glb")
    told = rf"a\.glb: .* m from corner to corner.*build it with --scale {proposed} .* in Python scale={proposed}\)$"
    with pytest.warns(Notice, match=told):
        load_character(path)
    load_character(path, scale=float(proposed))


def test_vertices_at_one_place_are_told_of(tmp_path):
    with pytest.warns(Notice, match="all vertices are at one place"):
        load_character(plain_tetrahedron(scale=[0.0] * 3).save(tmp_path / "a.glb"))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_is_none_is_refused(tmp_path, scale):
    with pytest.raises(InputError, match="scale must be positive"):
        loaded(plain_tetrahedron(), tmp_path, scale=scale)


# What is not read is named


def test_required_compression_is_named(tmp_path):
    for name in ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "ACME_mesh_magic"):
        file = plain_tetrahedron()
        file.json["extensionsRequired"] = [name]
        with pytest.raises(FileFormatError, match=f"needs {name}, which softrig does not read"):
            loaded(file, tmp_path)


def test_compression_with_plain_data_beside_it_is_read_and_without_is_named(tmp_path):
    file = plain_tetrahedron()
    file.json["extensionsUsed"] = ["KHR_draco_mesh_compression"]
    file.json["meshes"][0]["primitives"][0]["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0}}
    assert volume(loaded(file, tmp_path)) == pytest.approx(1 / 6)
    del file.json["accessors"][0]["bufferView"]
    with pytest.raises(FileFormatError, match="compressed with KHR_draco_mesh_compression"):
        loaded(file, tmp_path)


# Parts


def test_roles_are_guessed(tmp_path):
    character = loaded(everything(), tmp_path)
    assert {part.name: part.role for part in character.parts} == {"eye": "rigid", "body": "soft"}
    assert character.part("body").source == {"node": 2, "mesh": 0, "primitive": 0, "skin": 0}


def test_too_many_parts_to_guess_roles_are_all_soft(tmp_path):
    file = GltfFile()
    mesh = file.mesh(np.random.default_rng(0).random((400, 3)), [0, 1, 2])
    for _ in range(200):
        file.add("nodes", mesh=mesh, name="eye")
    with pytest.warns(Notice, match="200 parts are too many to guess"):
        character = loaded(file, tmp_path)
    assert {part.role for part in character.parts} == {"soft"}


# An independent evaluator

# Computed by three.js r187 (GLTFLoader, AnimationMixer, Mesh.getVertexPosition, matrixWorld) in headless chromium, with
# the sheared matrix put back that its loader decomposes: vertices 0, 3 of "eye" and 1, 6, 9, 14, 19 of "body".
THREE_JS = {
    None: [
        [-0.4372328, 1.2603779, 0.412159],
        [-0.3510438, 1.2472834, 0.592159],
        [0.0527161, 0.0837676, -0.1302592],
        [-0.0326092, 0.4189244, 0.1572008],
        [-0.292907, 0.788499, 0.0587241],
        [-0.3896587, 1.1041266, 0.3780124],
        [-0.7387729, 1.3092378, 0.5600991],
    ],
    1 / 3: [
        [-1.0787058, 0.7313175, 0.4397579],
        [-1.0039635, 0.7398408, 0.6241616],
        [0.1314936, 0.1808421, -0.1221931],
        [-0.0271356, 0.5204137, 0.1008408],
        [-0.3864084, 0.8866825, -0.0845998],
        [-0.8744144, 0.7016781, 0.370373],
        [-1.3690288, 0.3564385, 0.5803347],
    ],
    2 / 3: [
        [-1.5780253, 0.2601642, -0.3375284],
        [-1.6016021, 0.0951074, -0.437792],
        [0.2416556, 0.2489769, -0.0949458],
        [-0.0757632, 0.5599659, -0.2030719],
        [-0.3805558, 0.7965949, -0.6093231],
        [-1.2314648, 0.321841, -0.3359401],
        [-1.9443497, -0.046369, 0.0517334],
    ],
    1.0: [
        [-0.6819508, 0.2796545, -1.8197858],
        [-0.8773108, 0.1222004, -1.7376964],
        [0.3499706, 0.3380827, -0.0318699],
        [0.0168188, 0.4705676, -0.4182653],
        [0.0108143, 0.4336221, -0.9736334],
        [-0.6280099, 0.3767285, -1.505219],
        [-1.0204727, 0.5331171, -2.1392534],
    ],
}


@pytest.mark.parametrize("time", THREE_JS)
def test_positions_equal_those_of_three_js(tmp_path, time):
    character = loaded(everything(), tmp_path)
    positions = character.rest_positions if time is None else at(character, "all", time)
    eye, body = (positions[character.part(name).vertices] for name in ("eye", "body"))
    chosen = np.concatenate([eye[[0, 3]], body[[1, 6, 9, 14, 19]]])
    np.testing.assert_allclose(chosen, THREE_JS[time], atol=2e-6)


# Real files

SHARED = Path(__file__).parents[2] / "shared" / "data"
SIZES = {  # vertices, triangles, clips
    "CesiumMan": (3273, 4672, 1),
    "Fox": (1728, 576, 3),
    "RiggedFigure": (370, 256, 1),
    "RiggedSimple": (160, 188, 1),
    "RecursiveSkeletons": (84 * 40, 84 * 76, 1),
    "AnimatedMorphCube": (24, 12, 1),
    "MorphStressTest": (1528, 2412, 3),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files in ../shared/data are not here")
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
def test_sample_files_load_and_move(name):
    character = load_character(SHARED / f"{name}.glb")
    vertices, triangles, clips = SIZES[name]
    assert character.rest_positions.shape == (vertices, 3)
    assert len(character.triangles) == triangles
    assert len(character.clips) == clips
    for clip in character.clips:
        start, middle = (character.rig.positions(p) for p in clip.sample([0.0, 0.4 * clip.duration]))
        assert np.abs(middle - start).max() > 1e-3 * character.size
