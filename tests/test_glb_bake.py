"""Baked clips in GLBs: within the reported error, weights within [0, 1], and everything that was there unchanged."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from bars_for_tests import bar_character, jiggled
from softrig.errors import InputError, NotFiniteError
from softrig.io.format_error import FileFormatError
from softrig.io.glb_bake import bake_glb, write_baked_glb
from softrig.io.glb_builder import VERTICES, GlbBuilder
from softrig.io.glb_targets import MeshGrowth, NewAnimation, grow_mesh
from softrig.io.glb_writer import character_glb
from softrig.io.gltf import load_gltf
from softrig.io.morphs import Morphs
from test_glb_writer import parsed

DATA = Path(__file__).parents[2] / "shared" / "data"
IMAGE = bytes(range(256)) * 3 + b"odd"


def decorated(content):
    """The GLB with what softrig knows nothing about: an image, a material, extras, a camera, a chunk of its own."""
    builder = GlbBuilder.opened(content)
    view = builder.view(IMAGE)
    builder.add("images", {"bufferView": view, "mimeType": "image/png", "name": "Haut ä"})
    builder.add("materials", {"name": "skin", "extras": {"studio": [1, 2.5e-7, None, "x"]}})
    builder.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.7, "znear": 0.01}})
    builder.json["extras"] = {"licence": "CC0"}
    whole = builder.content() + b"\4\0\0\0XTRAsoft"
    return whole[:8] + len(whole).to_bytes(4, "little") + whole[12:]


@pytest.fixture(scope="module", params=[{}, {"parts": 2}, {"with_morph": False}], ids=["morph", "parts", "plain"])
def case(request, tmp_path_factory):
    """(bytes, character, times, positions) of a decorated bar and its jiggled clip "bend"."""
    path = tmp_path_factory.mktemp("bake") / "bar.glb"
    path.write_bytes(decorated(character_glb(bar_character(**request.param))))
    character = load_gltf(path)
    return path.read_bytes(), character, *jiggled(character, "bend")


def reopened(content, tmp_path, **options):
    (tmp_path / "baked.glb").write_bytes(content)
    return load_gltf(tmp_path / "baked.glb", **options)


def shown(character, clip, times):
    return np.stack([character.rig.positions(p) for p in character.clip(clip).sample(times)])


def largest(difference):
    return float(np.linalg.norm(difference, axis=-1).max())


@pytest.mark.parametrize(
    "options", [{}, {"quantise": True}, {"normals": True}, {"per_frame": True}, {"tolerance": 5e-5}], ids=str
)
def test_a_jiggle_comes_back_within_the_reported_error(case, options, tmp_path):
    source, character, times, positions = case
    content, report = bake_glb(source, character, "bend", times, positions, **options)
    back = reopened(content, tmp_path)
    found = largest(shown(back, report.animation, times) - positions)
    without = largest(shown(back, "bend", times) - positions)
    assert without > 0.02, "the jiggle must be worth baking"
    assert found <= 1.001 * report.error + 2e-6
    assert report.error <= report.tolerance * 1.001
    if options.get("per_frame"):
        assert report.error < 2e-6
        assert max(report.targets.values()) == len(times)
    else:
        assert max(report.targets.values()) <= 12
        assert report.error > 0.02 * report.tolerance, "no more targets than needed"
    assert report.bytes_added == len(content) - len(source)


def test_weights_are_within_zero_and_one(case):
    source, character, times, positions = case
    for quantise in (False, True):
        document, binary = parsed_with_tail(bake_glb(source, character, "bend", times, positions, quantise=quantise)[0])
        for channel in document["animations"][-1]["channels"]:
            if channel["target"]["path"] == "weights":
                accessor = document["accessors"][document["animations"][-1]["samplers"][channel["sampler"]]["output"]]
                offset = document["bufferViews"][accessor["bufferView"]]["byteOffset"]
                weights = np.frombuffer(binary, "<f4", accessor["count"], offset)
                assert weights.min() >= 0.0
                assert 0.0 < weights.max() <= 1.0


def parsed_with_tail(content):
    """`parsed` for GLBs with one more chunk of twelve bytes behind the binary one."""
    assert content[-12:] == b"\4\0\0\0XTRAsoft"
    return parsed(content[:8] + (len(content) - 12).to_bytes(4, "little") + content[12:-12])


def stripped(document, meshes):
    """The JSON without what a bake may grow."""
    rest = copy.deepcopy(document)
    for collection in ("buffers", "bufferViews", "accessors", "animations", "extensionsUsed", "extensionsRequired"):
        rest.pop(collection, None)
    for index in meshes:
        mesh = rest["meshes"][index]
        mesh.pop("weights", None)
        mesh.get("extras", {}).pop("targetNames", None)
        if not mesh.get("extras", True):
            del mesh["extras"]
        for primitive in mesh["primitives"]:
            primitive.pop("targets", None)
    return rest


@pytest.mark.parametrize("options", [{}, {"quantise": True, "normals": True}], ids=str)
def test_everything_else_is_unchanged(case, options):
    source, character, times, positions = case
    before, old_binary = parsed_with_tail(source)
    content, report = bake_glb(source, character, "bend", times, positions, **options)
    after, new_binary = parsed_with_tail(content)
    assert new_binary[: len(old_binary)] == old_binary
    assert IMAGE in new_binary
    for collection in ("bufferViews", "accessors"):
        assert after[collection][: len(before[collection])] == before[collection]
    assert stripped(after, report.targets) == stripped(before, report.targets)
    assert len(after["animations"]) == len(before["animations"]) + 1
    assert after["animations"][0] == before["animations"][0], "the clip without weights stays as it is"
    assert after["buffers"] == [{"byteLength": len(new_binary)}]
    for mesh, old in zip(after["meshes"], before["meshes"], strict=True):
        for primitive, old_primitive in zip(mesh["primitives"], old["primitives"], strict=True):
            had = old_primitive.get("targets", [])
            assert primitive["targets"][: len(had)] == had
            assert len({tuple(sorted(target)) for target in primitive["targets"]}) == 1
    assert "KHR_mesh_quantization" in after.get("extensionsRequired", []) or not options


def test_the_new_clip_reuses_the_skeleton_channels(case):
    source, character, times, positions = case
    before, _ = parsed_with_tail(source)
    after, _ = parsed_with_tail(bake_glb(source, character, "bend", times, positions)[0])

    def channels(animation):
        return [
            (channel["target"], animation["samplers"][channel["sampler"]])
            for channel in animation["channels"]
            if channel["target"]["path"] != "weights"
        ]

    assert channels(after["animations"][-1]) == channels(before["animations"][0])
    assert len(channels(after["animations"][-1])) == 2


def test_counts_of_targets_agree_everywhere(case):
    source, character, times, positions = case
    document, _ = parsed_with_tail(bake_glb(source, character, "bend", times, positions)[0])
    for index, mesh in enumerate(document["meshes"]):
        counts = {len(primitive["targets"]) for primitive in mesh["primitives"]}
        assert counts == {len(mesh["weights"])} == {len(mesh["extras"]["targetNames"])}
        for animation in document["animations"]:
            for channel in animation["channels"]:
                if (
                    channel["target"]["path"] == "weights"
                    and document["nodes"][channel["target"]["node"]]["mesh"] == index
                ):
                    sampler = animation["samplers"][channel["sampler"]]
                    keys, values = (document["accessors"][sampler[end]]["count"] for end in ("input", "output"))
                    assert values == keys * len(mesh["weights"])


def test_old_weight_animations_play_as_before(tmp_path):
    bar = bar_character()
    (tmp_path / "bar.glb").write_bytes(character_glb(bar))
    source, character = (tmp_path / "bar.glb").read_bytes(), load_gltf(tmp_path / "bar.glb")
    times, positions = jiggled(character, "bulge")
    content, report = bake_glb(source, character, "bulge", times, positions)
    back = reopened(content, tmp_path)
    fine = np.linspace(0.0, 1.0, 43)
    assert largest(shown(back, "bulge", fine) - shown(character, "bulge", fine)) < 1e-6
    assert largest(shown(back, "bend", fine) - shown(character, "bend", fine)) < 1e-6
    # The old morph and the new ones share one channel of the new clip.
    assert largest(shown(back, report.animation, times) - positions) <= 1.001 * report.error + 1e-6
    twice, again = bake_glb(content, back, "bulge", times, shown(back, "bulge", times))
    assert again.targets == {}, "nothing secondary, nothing added"
    assert len(parsed(twice)[0]["animations"]) == 4
    assert again.animation == f"{report.animation}.2"


def test_baking_a_baked_file_again_works(case, tmp_path):
    source, character, times, positions = case
    content, first = bake_glb(source, character, "bend", times, positions)
    back = reopened(content, tmp_path)
    other = shown(back, "bend", times) - (positions - shown(back, "bend", times))
    content, second = bake_glb(content, back, "bend", times, other, name="mirrored")
    back = reopened(content, tmp_path)
    assert largest(shown(back, first.animation, times) - positions) <= 1.001 * first.error + 2e-6
    assert largest(shown(back, "mirrored", times) - other) <= 1.001 * second.error + 2e-6


def test_more_targets_give_less_error(case):
    source, character, times, positions = case
    errors = [
        bake_glb(source, character, "bend", times, positions, tolerance=1e-7, most_targets=count)[1].error
        for count in (2, 4, 7, 20)
    ]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 0.1 * errors[0]


def test_seams_do_not_crack(case, tmp_path):
    source, character, times, positions = case
    weld = character.welded
    assert len(weld.representative) < character.rig.vertex_count
    for quantise in (False, True):
        content, report = bake_glb(source, character, "bend", times, positions, quantise=quantise)
        moved = shown(reopened(content, tmp_path), report.animation, times)
        apart = moved - moved[:, weld.representative[weld.unique_of_vertex]]
        assert largest(apart) < 1e-6, "neither at texture seams nor between meshes"


def test_scaled_characters_bake_in_the_units_of_the_file(tmp_path):
    (tmp_path / "bar.glb").write_bytes(character_glb(bar_character(scale=100.0)))
    character = load_gltf(tmp_path / "bar.glb", scale=0.01)
    times, positions = jiggled(character, "bend")
    for quantise in (False, True):
        content, report = bake_glb(
            (tmp_path / "bar.glb").read_bytes(), character, "bend", times, positions, quantise=quantise
        )
        back = reopened(content, tmp_path, scale=0.01)
        assert largest(shown(back, report.animation, times) - positions) <= 1.001 * report.error + 2e-6
        assert report.error < 5e-4
        weights = parsed(content)[0]["accessors"][-1]
        assert weights["type"] == "SCALAR"


def test_fitted_normals_follow_the_surface(case):
    source, character, times, positions = case
    document, _ = parsed_with_tail(bake_glb(source, character, "bend", times, positions, normals=True)[0])
    for mesh in document["meshes"]:
        for primitive in mesh["primitives"]:
            added = [document["accessors"][target["NORMAL"]] for target in primitive["targets"][-3:]]
            assert all(
                accessor["count"] == document["accessors"][primitive["attributes"]["NORMAL"]]["count"]
                for accessor in added
            )
            assert any("sparse" in accessor or "bufferView" in accessor for accessor in added)
    plain, _ = parsed_with_tail(bake_glb(source, character, "bend", times, positions)[0])
    assert not any(
        "bufferView" in plain["accessors"][target["NORMAL"]] or "sparse" in plain["accessors"][target["NORMAL"]]
        for mesh in plain["meshes"]
        for primitive in mesh["primitives"]
        for target in primitive["targets"][-3:]
        if "NORMAL" in target
    )


def test_several_instances_of_one_mesh_share_targets_but_not_weights(tmp_path):
    builder = GlbBuilder.opened(character_glb(bar_character(with_morph=False)))
    shown_by = next(node for node in builder.json["nodes"] if "mesh" in node)
    other = builder.add("nodes", {"name": "other", "mesh": shown_by["mesh"], "translation": [1.0, 0.0, 0.0]})
    builder.json["scenes"][0]["nodes"].append(other)
    (tmp_path / "bar.glb").write_bytes(builder.content())
    character = load_gltf(tmp_path / "bar.glb")
    times, positions = jiggled(character, "bend")
    half = character.rig.vertex_count // 2
    base = shown(character, "bend", times)
    positions[:, half:] = base[:, half:] - 0.5 * (positions[:, half:] - base[:, half:])[::-1]
    content, report = bake_glb(builder.content(), character, "bend", times, positions)
    assert len(report.targets) == 1
    back = reopened(content, tmp_path)
    assert largest(shown(back, report.animation, times) - positions) <= 1.001 * report.error + 2e-6
    assert report.error <= report.tolerance


def test_primitives_the_character_does_not_use_get_as_many_targets():
    builder = GlbBuilder.opened(character_glb(bar_character(with_morph=False)))
    mesh = builder.json["meshes"][0]
    extra = {"POSITION": builder.accessor(np.zeros((3, 3), np.float32), bounds=True, target=VERTICES)}
    mesh["primitives"].append({"attributes": extra, "mode": 0})
    count = builder.json["accessors"][mesh["primitives"][0]["attributes"]["POSITION"]]["count"]
    morphs = Morphs(np.ones((2, count, 3), np.float32), np.ones((4, 2), np.float32))
    growth = MeshGrowth(0, morphs, None, {}, {0: slice(0, count)}, "x")
    grow_mesh(builder, growth, NewAnimation(None), np.arange(4.0))
    used, unused = (primitive["targets"] for primitive in mesh["primitives"])
    assert len(used) == len(unused) == 2
    zero = builder.json["accessors"][unused[0]["POSITION"]]
    assert zero["count"] == 3
    assert "bufferView" not in zero
    assert "sparse" not in zero


def test_missing_attributes_of_old_targets_are_filled_with_zeros(tmp_path):
    builder = GlbBuilder.opened(character_glb(bar_character()))
    del builder.json["meshes"][0]["primitives"][0]["targets"][0]["NORMAL"]
    (tmp_path / "bar.glb").write_bytes(builder.content())
    character = load_gltf(tmp_path / "bar.glb")
    times, positions = jiggled(character, "bend")
    document, _ = parsed(bake_glb(builder.content(), character, "bend", times, positions, normals=True)[0])
    first = document["accessors"][document["meshes"][0]["primitives"][0]["targets"][0]["NORMAL"]]
    assert "bufferView" not in first
    assert "sparse" not in first


def test_rest_pose_bakes_without_a_clip(case, tmp_path):
    source, character, times, _ = case
    moves = 0.02 * np.sin(7.0 * times)[:, None, None] * np.cos(5.0 * character.rest_positions[:, 1])[:, None]
    positions = character.rest_positions + moves * [1.0, 0.0, 0.5]
    content, report = bake_glb(source, character, None, times, positions)
    back = reopened(content, tmp_path)
    assert report.animation == "rest.soft"
    assert largest(shown(back, "rest.soft", times) - positions) <= 1.001 * report.error + 2e-6


def test_writing_is_baking_into_a_file(case, tmp_path):
    source, character, times, positions = case
    report = write_baked_glb(tmp_path / "out.glb", source, character, "bend", times, positions, tolerance=2e-3)
    content, again = bake_glb(source, character, "bend", times, positions, tolerance=2e-3)
    assert (tmp_path / "out.glb").read_bytes() == content
    assert report == again


def test_bad_input_is_refused_with_its_index(case, tmp_path):
    source, character, times, positions = case
    with pytest.raises(InputError, match="has no clip 'walk'"):
        bake_glb(source, character, "walk", times, positions)
    with pytest.raises(InputError, match="are not \\(frames"):
        bake_glb(source, character, "bend", times, positions[:, 1:])
    with pytest.raises(InputError, match="times must increase") as caught:
        bake_glb(source, character, "bend", np.where(times == times[5], times[4], times), positions)
    assert caught.value.indices.tolist() == [5]
    broken = positions.copy()
    broken[3, 2, 1] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        bake_glb(source, character, "bend", times, broken)
    assert caught.value.indices.tolist() == [3]
    with pytest.raises(FileFormatError, match="is not a GLB"):
        bake_glb(b'{"asset": {"version": "2.0"}}', character, "bend", times, positions)
    with pytest.raises(InputError, match="rest positions are not those"):
        bake_glb(moved_source(source), character, "bend", times, positions)


def moved_source(source):
    """The same file with its first position moved: the character is another one."""
    document, binary = parsed_with_tail(source)
    accessor = document["accessors"][document["meshes"][0]["primitives"][0]["attributes"]["POSITION"]]
    place = source.index(binary) + document["bufferViews"][accessor["bufferView"]]["byteOffset"]
    return source[:place] + np.float32(7.0).tobytes() + source[place + 4 :]


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
@pytest.mark.parametrize("name", ["CesiumMan", "RiggedSimple", "AnimatedMorphCube", "RiggedFigure"])
def test_real_characters_come_back_within_the_error(name, tmp_path):
    path = DATA / f"{name}.glb"
    if not path.exists():
        pytest.skip(f"{path} is not there: sample characters lie beside the project")
    character = load_gltf(path)
    clip = character.clips[0].name
    times, positions = jiggled(character, clip, fps=30.0)
    content, report = bake_glb(path.read_bytes(), character, clip, times, positions)
    back = reopened(content, tmp_path)
    assert report.error <= report.tolerance
    assert largest(shown(back, report.animation, times) - positions) <= 1.001 * report.error + 1e-6 * character.size
    assert parsed(content)[1][: len(parsed(path.read_bytes())[1])] == parsed(path.read_bytes())[1]
