"""glTF in: every feature on a small file written by hand, with positions worked out by hand."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from gltf_files_for_tests import TETRAHEDRON, TETRAHEDRON_FACES, GltfFile, everything, plain_tetrahedron, skinned_bar
from softrig.errors import InputError, Notice
from softrig.io.characters import LOADERS, load_character
from softrig.io.format_error import FileFormatError
from softrig.io.gltf import load_gltf
from softrig.io.gltf_nodes import trs_of, unique_names

HALF = np.sqrt(0.5)
TURN_X = [HALF, 0.0, 0.0, HALF]  # 90° about x: y becomes z, z becomes −y
TURN_Z = [0.0, 0.0, HALF, HALF]  # 90° about z: x becomes y, y becomes −x
SINGLE = 1e-6  # files hold single precision


def loaded(file: GltfFile, folder: Path, name: str = "character.glb", **options):
    return load_gltf(file.save(folder / name), **options)


def at(character, clip: str, time: float) -> np.ndarray:
    return character.rig.positions(character.clip(clip).sample(time)[0])


def volume(character) -> float:
    """Signed: positive if the triangles face outwards."""
    a, b, c = np.moveaxis(character.rest_positions[character.triangles], 1, 0)
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6.0)


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
    with pytest.raises(FileFormatError, match=r"hero\.max: ending \.max: softrig reads .*\.glb, \.gltf, .*\.vrm"):
        load_character(tmp_path / "hero.max")
    assert {".glb", ".gltf", ".vrm"} <= set(LOADERS)


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


# Primitives


def with_mode(mode: int, corners: list[int] | None, positions: np.ndarray) -> GltfFile:
    file = GltfFile()
    mesh = file.mesh(positions, corners)
    file.json["meshes"][mesh]["primitives"][0]["mode"] = mode
    file.add("nodes", mesh=mesh)
    return file


def test_strips_and_fans_keep_their_winding(tmp_path):
    flat = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 2, 0]])
    strip = loaded(with_mode(5, None, flat), tmp_path)
    np.testing.assert_array_equal(strip.triangles, [[0, 1, 2], [1, 3, 2], [2, 3, 4]])
    fan = loaded(with_mode(6, [0, 1, 3, 2], flat), tmp_path)
    np.testing.assert_array_equal(fan.triangles, [[1, 3, 0], [3, 2, 0]])
    for character in (strip, fan):
        a, b, c = np.moveaxis(flat[character.triangles], 1, 0)
        assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    stitched = loaded(with_mode(5, [0, 1, 2, 2, 2, 1, 3], flat), tmp_path)
    np.testing.assert_array_equal(stitched.triangles, [[0, 1, 2], [2, 1, 3]])


def test_triangles_without_indices_and_left_over_corners(tmp_path):
    soup = TETRAHEDRON[TETRAHEDRON_FACES].reshape(-1, 3)
    assert volume(loaded(with_mode(4, None, soup), tmp_path)) == pytest.approx(1 / 6)
    with pytest.warns(Notice, match="no whole triangles; the last 1 dropped"):
        character = loaded(with_mode(4, [0, 2, 1, 0], TETRAHEDRON), tmp_path)
    np.testing.assert_array_equal(character.triangles, [[0, 2, 1]])


@pytest.mark.parametrize(("mode", "word"), [(0, "points"), (1, "lines"), (3, "line strips"), (9, "mode 9")])
def test_points_and_lines_are_named(tmp_path, mode, word):
    with pytest.raises(FileFormatError, match=rf"meshes\[0\]\.primitives\[0\]: is made of {word}"):
        loaded(with_mode(mode, [0, 1, 2], TETRAHEDRON), tmp_path)


def test_several_primitives_instances_and_interleaved_attributes(tmp_path):
    file = GltfFile()
    # Position and normal side by side, 24 bytes a vertex.
    both = np.concatenate([TETRAHEDRON, np.ones((4, 3))], axis=1).astype("<f4")
    interleaved = file.accessor(TETRAHEDRON, view=file.view(both.tobytes(), stride=24))
    mesh = file.mesh(interleaved, TETRAHEDRON_FACES)
    second = {"attributes": {"POSITION": file.accessor(TETRAHEDRON + 2)}, "indices": file.accessor([0, 2, 1], "u4")}
    file.json["meshes"][mesh]["primitives"].append(second)
    file.add("nodes", mesh=mesh, name="one")
    file.add("nodes", mesh=mesh, name="two", translation=[0, 0, 2])
    character = loaded(file, tmp_path)
    assert [part.name for part in character.parts] == ["one.0", "one.1", "two.0", "two.1"]
    expected = np.concatenate([TETRAHEDRON, TETRAHEDRON + 2])
    np.testing.assert_allclose(
        character.rest_positions, np.concatenate([expected, expected + np.array([0, 0, 2])]), atol=SINGLE
    )
    np.testing.assert_array_equal(character.triangles[character.parts[3].triangles], [[12, 14, 13]])
    np.testing.assert_array_equal(character.triangles[character.parts[2].triangles], TETRAHEDRON_FACES + 8)


# Accessors


def test_quantised_positions(tmp_path):
    file = GltfFile()
    mesh = file.mesh(file.accessor(np.c_[TETRAHEDRON * 30000, np.zeros(4)][:, :3], "i2"), TETRAHEDRON_FACES)
    # Three shorts leave two bytes over: vertices must start at multiples of four.
    padded = np.zeros((4, 4), "<i2")
    padded[:, :3] = TETRAHEDRON * 30000
    file.json["accessors"][0]["bufferView"] = file.view(padded.tobytes(), stride=8)
    file.json["extensionsRequired"] = ["KHR_mesh_quantization"]
    file.add("nodes", mesh=mesh, scale=[1e-4] * 3)
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions, TETRAHEDRON * 3, atol=1e-9)
    file.json["accessors"][0]["normalized"] = True
    file.json["nodes"][0]["scale"] = [1, 1, 1]
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions, TETRAHEDRON * 30000 / 32767, atol=1e-9)


def test_signed_normalised_integers_never_fall_below_minus_one(tmp_path):
    file = GltfFile()
    padded = np.array([[-128, -127, 127, 0], [0, 64, 0, 0], [127, 0, 0, 0]], "i1")
    where = file.accessor(padded[:, :3], "i1", view=file.view(padded.tobytes(), stride=4), normalized=True)
    file.add("nodes", mesh=file.mesh(where, [0, 1, 2]))
    expected = [[-1, -1, 1], [0, 64 / 127, 0], [1, 0, 0]]
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions, expected, atol=1e-12)


def test_sparse_accessors_with_and_without_a_base(tmp_path):
    file = GltfFile()
    base = file.view(TETRAHEDRON.astype("<f4").tobytes())
    where = file.sparse(4, [1, 3], [[2, 0, 0], [0, 0, 5]], bufferView=base)
    smile = file.sparse(4, [2], [[0.5, 0, 0]])
    file.add("nodes", mesh=file.mesh(where, TETRAHEDRON_FACES, targets=[smile], weights=[1.0]))
    expected = np.array([[0, 0, 0], [2, 0, 0], [0.5, 1, 0], [0, 0, 5]])
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions, expected, atol=SINGLE)


# Skins


def test_a_bar_bent_by_ninety_degrees(tmp_path):
    file = skinned_bar()
    file.animation((1, "rotation", [0, 1], [[0, 0, 0, 1], TURN_Z], "LINEAR"), name="bend")
    character = loaded(file, tmp_path)
    rest, bent = at(character, "bend", 0.0), at(character, "bend", 1.0)
    np.testing.assert_allclose(bent[:8], rest[:8], atol=SINGLE)
    # Above the joint at y = 1: x → y, y − 1 → −x.
    turned = np.stack([1 * (1.0 - rest[:, 1]), 1.0 + rest[:, 0], rest[:, 2]], axis=1)
    np.testing.assert_allclose(bent[12:], turned[12:], atol=SINGLE)
    np.testing.assert_allclose(bent[8:12], 0.5 * (rest + turned)[8:12], atol=SINGLE)
    half = at(character, "bend", 0.5)
    np.testing.assert_allclose(half[16], [-0.1 * HALF - HALF, 1 - 0.1 * HALF + HALF, -0.1], atol=SINGLE)


def test_the_node_of_a_skinned_mesh_does_not_move_it(tmp_path):
    file = skinned_bar()
    file.json["nodes"][2] |= {"translation": [7, 8, 9], "scale": [5, 5, 5]}
    still = loaded(file, tmp_path)
    assert still.rest_positions[:, 1].max() == pytest.approx(2.0)
    file.json["nodes"][0] |= {"translation": [3, 0, 0]}
    np.testing.assert_allclose(
        loaded(file, tmp_path).rest_positions, still.rest_positions + np.array([3, 0, 0]), atol=SINGLE
    )


def test_missing_inverse_bind_matrices_are_identities(tmp_path):
    file = skinned_bar()
    del file.json["skins"][0]["inverseBindMatrices"]
    character = loaded(file, tmp_path)
    # The upper joint stands at y = 1, so what it carries is lifted by one; the middle ring by half.
    np.testing.assert_allclose(character.rest_positions[::4, 1], [0, 0.5, 1.5, 2.5, 3.0], atol=SINGLE)


def test_two_meshes_share_a_skin_and_two_skins_share_a_mesh(tmp_path):
    file = skinned_bar()
    lifted = np.tile(np.eye(4), (2, 1, 1))
    lifted[:, 2, 3] = 3.0
    lifted[1, 1, 3] = -1.0
    other = file.add("skins", joints=[0, 1], inverseBindMatrices=file.accessor(lifted))
    file.add("nodes", mesh=0, skin=0, name="same skin")
    file.add("nodes", mesh=0, skin=other, name="other skin")
    character = loaded(file, tmp_path)
    first, same, shifted = (character.rest_positions[part.vertices] for part in character.parts)
    np.testing.assert_array_equal(same, first)
    np.testing.assert_allclose(shifted, first + np.array([0, 0, 3]), atol=SINGLE)


def test_more_than_four_influences(tmp_path):
    file = GltfFile()
    count = 6
    for joint in range(count):
        file.add("nodes", name=f"joint {joint}", translation=[0, 10.0**-joint, 0])
    joints = {"JOINTS_0": [0, 1, 2, 3], "JOINTS_1": [4, 5, 0, 0]}
    weights = {"WEIGHTS_0": [0.2, 0.2, 0.2, 0.2], "WEIGHTS_1": [0.1, 0.1, 0, 0]}
    attributes = {key: file.accessor(np.tile(row, (4, 1)), "u2") for key, row in joints.items()}
    attributes |= {key: file.accessor(np.tile(row, (4, 1))) for key, row in weights.items()}
    mesh = file.mesh(TETRAHEDRON, TETRAHEDRON_FACES, attributes)
    file.add("nodes", mesh=mesh, skin=file.add("skins", joints=list(range(count))))
    lift = 0.2 * (1 + 0.1 + 0.01 + 0.001) + 0.1 * (1e-4 + 1e-5)
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions, TETRAHEDRON + np.array([0, lift, 0]), atol=SINGLE)


@pytest.mark.parametrize(("dtype", "one"), [("u1", 255), ("u2", 65535)])
def test_normalised_weights(tmp_path, dtype, one):
    file = skinned_bar()
    quarter = np.tile([one - one // 5, one // 5, 0, 0], (20, 1))
    where = file.accessor(quarter, dtype, normalized=True)
    file.json["meshes"][0]["primitives"][0]["attributes"]["WEIGHTS_0"] = where
    del file.json["skins"][0]["inverseBindMatrices"]
    np.testing.assert_allclose(loaded(file, tmp_path).rest_positions[0], [-0.1, 0.2, -0.1], atol=SINGLE)


def test_weights_that_do_not_sum_to_one(tmp_path):
    file = skinned_bar()
    del file.json["skins"][0]["inverseBindMatrices"]
    weights = np.tile([0.5, 0.5, 0, 0], (20, 1))
    weights[3] = [3, 1, 0, 0]
    weights[4] = 0.0
    file.json["meshes"][0]["primitives"][0]["attributes"]["WEIGHTS_0"] = file.accessor(weights)
    path = file.save(tmp_path / "a.glb")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        character = load_gltf(path)
    messages = [str(warning.message) for warning in caught]
    assert any("without skin weights follow their first joint [index 4]" in message for message in messages)
    assert any("scaled to the sum 1 [index 3]" in message for message in messages)
    np.testing.assert_allclose(character.rest_positions[2:5, 1], [0.5, 0.25, 0.5], atol=SINGLE)


def test_a_skin_without_joints_in_the_mesh_follows_the_node(tmp_path):
    file = plain_tetrahedron(translation=[1, 0, 0], skin=0)
    file.add("nodes", name="joint")
    file.add("skins", joints=[1])
    with pytest.warns(Notice, match="no JOINTS_0; it follows its node"):
        character = loaded(file, tmp_path)
    np.testing.assert_allclose(character.rest_positions, TETRAHEDRON + np.array([1, 0, 0]))


# Morphs


def morphing(**node) -> GltfFile:
    file = GltfFile()
    up, aside = np.zeros((4, 3)), np.zeros((4, 3))
    up[3], aside[1:] = [0, 0, 2], [[0, 4, 0], [0, 1, 0], [0, 0, 0]]
    mesh = file.mesh(
        TETRAHEDRON,
        TETRAHEDRON_FACES,
        targets=[file.accessor(up), file.accessor(aside)],
        weights=[0.5, 0.0],
        extras={"targetNames": ["up", "aside"]},
    )
    file.add("nodes", mesh=mesh, **node)
    return file


def test_weights_of_mesh_and_node(tmp_path):
    by_mesh = loaded(morphing(), tmp_path)
    assert by_mesh.rig.parameters.names[:2] == ("up.weight", "aside.weight")
    np.testing.assert_allclose(by_mesh.rest_positions[3], [0, 0, 2])
    by_node = loaded(morphing(weights=[0, -1]), tmp_path)
    np.testing.assert_allclose(by_node.rest_positions, [[0, 0, 0], [1, -4, 0], [0, 0, 0], [0, 0, 1]])


def test_named_morphs_are_maps(tmp_path):
    character = loaded(morphing(), tmp_path)
    np.testing.assert_allclose(character.maps["up"], [0, 0, 0, 1])
    np.testing.assert_allclose(character.maps["aside"], [0, 1, 0.25, 0])


def test_instances_have_their_own_weights(tmp_path):
    file = morphing(name="left", weights=[0, 0])
    file.add("nodes", mesh=0, name="right", weights=[0, 0])
    file.animation((1, "weights", [0, 1], [[0, 0], [1, 0.5]], "LINEAR"), name="smile")
    character = loaded(file, tmp_path)
    assert character.rig.parameters.names[:4] == (
        "left.up.weight",
        "left.aside.weight",
        "right.up.weight",
        "right.aside.weight",
    )
    moved = at(character, "smile", 0.5)
    np.testing.assert_allclose(moved[:4], TETRAHEDRON)
    np.testing.assert_allclose(moved[4:], TETRAHEDRON + np.array([[0, 0, 0], [0, 1, 0], [0, 0.25, 0], [0, 0, 1]]))


# Animations


def test_step_linear_and_cubic_translations(tmp_path):
    times, steps = [0.0, 2.0], [[0, 0, 0], [4, 0, 0]]
    file = plain_tetrahedron()
    file.animation((0, "translation", times, steps, "STEP"), name="step")
    file.animation((0, "translation", times, steps, "LINEAR"), name="linear")
    # Leaves with speed 1 along y, arrives with speed 3 along z; a key is in-tangent, value, out-tangent.
    keys = [[9, 9, 9], [0, 0, 0], [0, 1, 0], [0, 0, 3], [4, 0, 0], [9, 9, 9]]
    file.animation((0, "translation", times, keys, "CUBICSPLINE"), name="cubic")
    character = loaded(file, tmp_path)
    assert [clip.duration for clip in character.clips] == [2.0, 2.0, 2.0]
    np.testing.assert_allclose(at(character, "step", 1.999)[0], [0, 0, 0])
    np.testing.assert_allclose(at(character, "step", 2.0)[0], [4, 0, 0])
    np.testing.assert_allclose(at(character, "linear", 0.5)[0], [1, 0, 0])
    # At t = ½ of 2 s: values ½, tangents 2 s · (t³ − 2t² + t) = ¼ s and 2 s · (t³ − t²) = −¼ s.
    np.testing.assert_allclose(at(character, "cubic", 1.0)[0], [2, 0.25, -0.75])


def test_cubic_rotations_are_normalised(tmp_path):
    file = plain_tetrahedron()
    flat = [0, 0, 0, 0]
    file.animation((0, "rotation", [0, 1], [flat, [0, 0, 0, 1], flat, flat, TURN_Z, flat], "CUBICSPLINE"), name="turn")
    # Half way is the normalised mean: 45° about z.
    np.testing.assert_allclose(at(loaded(file, tmp_path), "turn", 0.5)[1], [HALF, HALF, 0], atol=SINGLE)


def test_rotations_as_normalised_shorts(tmp_path):
    file = plain_tetrahedron()
    file.animation((0, "rotation", [0, 1], [[0, 0, 0, 1], TURN_X], "LINEAR"), name="turn")
    shorts = np.array([[0, 0, 0, 32767], [23170, 0, 0, 23170]])
    file.json["animations"][0]["samplers"][0]["output"] = file.accessor(shorts, "i2", normalized=True)
    np.testing.assert_allclose(at(loaded(file, tmp_path), "turn", 1.0)[2], [0, 0, 1], atol=1e-4)


def test_animated_non_uniform_and_negative_scale(tmp_path):
    file = skinned_bar()
    file.animation((1, "scale", [0, 1], [[1, 1, 1], [-1, 3, 1]], "LINEAR"), name="stretch")
    moved = at(loaded(file, tmp_path), "stretch", 1.0)
    np.testing.assert_allclose(moved[16], [0.1, 4.0, -0.1], atol=SINGLE)
    np.testing.assert_allclose(moved[0], [-0.1, 0.0, -0.1], atol=SINGLE)


def test_cubic_weights(tmp_path):
    file = morphing(weights=[0, 0])
    # A key: in-tangents of both weights, both values, both out-tangents.
    keys = [[[9, 9], [0, 0], [1, 0]], [[0, 2], [1, 0], [9, 9]]]
    file.animation((0, "weights", [0, 1], keys, "CUBICSPLINE"), name="morph")
    character = loaded(file, tmp_path)
    parameters = character.clip("morph").sample(0.5)[0]
    np.testing.assert_allclose(parameters[:2], [0.5 + 0.125, -0.25], atol=SINGLE)


def test_channels_without_a_known_target_are_passed_over(tmp_path):
    file = plain_tetrahedron()
    file.animation((0, "translation", [0, 1], [[0, 0, 0], [1, 0, 0]], "LINEAR"), name="move")
    channels = file.json["animations"][0]["channels"]
    channels.append({"sampler": 0, "target": {"path": "pointer", "extensions": {}}})
    channels.append({"sampler": 0, "target": {"path": "translation"}})
    assert len(loaded(file, tmp_path).clip("move").tracks) == 1


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
    with pytest.warns(
        Notice, match=rf"a\.glb: .* m from corner to corner.*--scale {proposed}, in Python scale={proposed}$"
    ):
        load_gltf(path)
    load_gltf(path, scale=float(proposed))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_is_none_is_refused(tmp_path, scale):
    with pytest.raises(InputError, match="scale must be positive"):
        loaded(plain_tetrahedron(), tmp_path, scale=scale)


# Paint


@pytest.mark.parametrize(("dtype", "one"), [("f4", 1), ("u1", 255), ("u2", 65535)])
@pytest.mark.parametrize("channels", [3, 4])
def test_vertex_colours(tmp_path, dtype, one, channels):
    file = GltfFile()
    fractions = np.array([[0, 1, 0.2, 0.4], [1, 0, 0, 1], [0, 0, 1, 1], [0.6, 0.6, 0.6, 1]])[:, :channels]
    padded = np.zeros((4, 4), np.dtype("<" + dtype))
    padded[:, :channels] = np.rint(fractions * one) if one > 1 else fractions
    view = file.view(padded.tobytes(), stride=4 * padded.itemsize)
    colour = file.accessor(padded[:, :channels], dtype, view=view, normalized=one > 1)
    file.add("nodes", mesh=file.mesh(TETRAHEDRON, TETRAHEDRON_FACES, {"COLOR_0": colour}), name="painted")
    file.add("nodes", mesh=file.mesh(TETRAHEDRON, TETRAHEDRON_FACES), name="plain")
    character = loaded(file, tmp_path)
    expected = np.ones((4, 4))
    expected[:, :channels] = fractions
    np.testing.assert_allclose(character.part("painted").colours, expected, atol=SINGLE)
    np.testing.assert_allclose(character.colours[4:], 1.0)
    assert character.part("plain").colours is None
    np.testing.assert_allclose(character.maps["COLOR_0.g"], [*fractions[:, 1], 0, 0, 0, 0], atol=SINGLE)


def test_attributes_that_start_with_an_underscore_are_maps(tmp_path):
    file = GltfFile()
    soft, pair = file.accessor([0.0, 0.5, 1.0, 2.0]), file.accessor([[0, 1], [2, 3], [4, 5], [6, 7]])
    attributes = {"_SOFTNESS": soft, "_PAIR": pair, "TEXCOORD_0": pair}
    file.add("nodes", mesh=file.mesh(TETRAHEDRON, TETRAHEDRON_FACES, attributes))
    character = loaded(file, tmp_path)
    assert set(character.maps) == {"_SOFTNESS", "_PAIR.x", "_PAIR.y"}
    np.testing.assert_allclose(character.maps["_SOFTNESS"], [0, 0.5, 1, 2])
    np.testing.assert_allclose(character.parts[0].maps["_PAIR.y"], [1, 3, 5, 7])


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
