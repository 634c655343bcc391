"""glTF in, what a mesh holds: primitives, accessors and paint on small files written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gltf_files_for_tests import SINGLE, TETRAHEDRON, TETRAHEDRON_FACES, GltfFile, loaded, volume
from softrig.errors import Notice
from softrig.io.format_error import FileFormatError

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
