"""glTF in, what moves a mesh: skins, morphs and animations, with positions worked out by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gltf_files_for_tests import (
    HALF,
    SINGLE,
    TETRAHEDRON,
    TETRAHEDRON_FACES,
    TURN_Z,
    GltfFile,
    at,
    loaded,
    plain_tetrahedron,
    skinned_bar,
)
from softrig.errors import Notice
from softrig.io.gltf import load_gltf

TURN_X = [HALF, 0.0, 0.0, HALF]  # 90° about x: y becomes z, z becomes −y

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
