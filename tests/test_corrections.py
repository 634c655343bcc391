"""Corrections: what switches them on, and that they come back from a GLB; hostile tables are left out, by name."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from bars_for_tests import bar_character, turn
from gltf_files_for_tests import everything, plain_tetrahedron, skinned_bar
from softrig.errors import InputError, Notice
from softrig.io.glb_bake import bake_glb
from softrig.io.glb_writer import character_glb, write_character_glb
from softrig.io.gltf import load_gltf
from softrig.io.gltf_corrections import MOST_CORRECTIONS
from softrig.rig.corrections import Correction, check_corrections, correction_weights, driver_values
from softrig.rig.deformers import BlendShapes, RigChain
from test_glb_writer import parsed


def corrected_bar(parts=1, scale=1.0):
    """The bar with two corrections, one driven by a rotation and one by a translation."""
    bar = bar_character(parts=parts, scale=scale)
    shapes, skin = bar.rig.stages
    other = shapes.targets[:1, :, [2, 1, 0]] * [0.5, 1.0, -0.3]
    names = ("bulge", "lifted")
    rig = RigChain((BlendShapes(shapes.rest_positions, np.concatenate([shapes.targets, other]), names), skin))
    corrections = []
    for number, (name, driver, values) in enumerate(
        [
            ("bulge", "bone1.rotation", turn(0.9, [0.0, 0.0, 1.0])[0]),
            ("lifted", "bone0.translation.y", 0.4 * scale),
        ]
    ):
        pose = rig.parameters.rest.copy()
        pose[number] = 1.0
        start = rig.parameters.index(f"{driver}.x" if driver.endswith("rotation") else driver)
        pose[start : start + np.size(values)] = values
        corrections.append(Correction(name, pose, (driver,), rig.positions(pose)))
    return replace(bar, rig=rig, clips=(), corrections=tuple(corrections))


def by_name(character, p):
    return dict(zip(character.rig.parameters.names, p, strict=True))


def assert_same_corrections(back, made, tolerance=2e-6):
    assert [c.name for c in back.corrections] == [c.name for c in made.corrections]
    for found, own in zip(back.corrections, made.corrections, strict=True):
        assert found.drivers == own.drivers
        # What the file stores exactly comes back exactly; weights may have other names.
        found_pose = by_name(back, found.pose)
        for name, value in by_name(made, own.pose).items():
            if not name.endswith(".weight"):
                assert found_pose[name] == pytest.approx(value, abs=1e-12)
        assert np.abs(found.positions - own.positions).max() < tolerance * made.size
        assert np.allclose(back.rig.positions(found.pose), found.positions)


def written(character, folder, **options):
    write_character_glb(character, folder / "out.glb")
    return load_gltf(folder / "out.glb", **options)


def in_file(character, folder, change):
    """The character's GLB read with a changed table of corrections."""
    path = folder / "changed.glb"
    content = character_glb(character)
    document, _ = parsed(content)
    start = 20 + int.from_bytes(content[12:16], "little")
    change(document["meshes"][0]["extras"])
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    rest = content[start:]
    header = b"glTF" + (2).to_bytes(4, "little") + (20 + len(text) + len(rest)).to_bytes(4, "little")
    path.write_bytes(header + len(text).to_bytes(4, "little") + b"JSON" + text + rest)
    return load_gltf(path)


# What switches them on


def test_weights_are_one_at_the_own_pose_and_zero_at_others():
    bar = corrected_bar()
    poses = np.stack([correction.pose for correction in bar.corrections])
    assert np.allclose(correction_weights(bar.rig.parameters, bar.corrections, poses), np.eye(2), atol=1e-12)
    p = bar.rig.parameters.rest.copy()
    p[bar.rig.parameters.index("bone0.translation.y")] = 0.1
    assert np.allclose(bar.corrected(p)[:2], [0.0, 0.25])
    assert np.allclose(bar.corrected(poses), poses)
    assert bar.corrected(p) is not p
    assert not p[:2].any()


def test_a_turn_the_other_way_leaves_a_correction_off():
    bar = corrected_bar()
    p = bar.rig.parameters.rest.copy()
    start = bar.rig.parameters.index("bone1.rotation.x")
    for angle, weight in ((-0.9, 0.0), (0.45, 0.5), (1.5, 1.0)):
        p[start : start + 4] = turn(angle, [0.0, 0.0, 1.0])[0]
        assert bar.corrected(p)[0] == pytest.approx(weight)


def test_poses_that_go_partly_the_same_way_do_not_switch_each_other_on():
    bar = corrected_bar()
    bulge, lifted = bar.corrections
    both = bulge.pose + lifted.pose - bar.rig.parameters.rest
    both[0] = 0.0
    pair = (bulge, replace(lifted, pose=both, drivers=("bone0.translation.y", "bone1.rotation")))
    poses = np.stack([bulge.pose, both])
    assert np.allclose(correction_weights(bar.rig.parameters, pair, poses), np.eye(2), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pose": np.zeros(3)}, "'bulge': its pose must be"),
        ({"positions": np.zeros((2, 3))}, "'bulge': its positions must be"),
        ({"drivers": ("tail.rotation",)}, "'bulge': no parameter is called 'tail.rotation.x'"),
        ({"drivers": ("tail.length",)}, "'bulge': no parameter is called 'tail.length'"),
        ({"drivers": ()}, "'bulge': its drivers are at rest"),
        ({"drivers": ("bone2.rotation",)}, "'bulge': its drivers are at rest"),
        ({"drivers": ("bulge.weight",)}, "'bulge' drives itself"),
        ({"weights": ("smile.weight",)}, "'bulge': no parameter is called 'smile.weight'"),
    ],
)
def test_corrections_of_another_rig_are_refused(change, message):
    bar = corrected_bar()
    with pytest.raises(InputError, match=message):
        replace(bar, corrections=(replace(bar.corrections[0], **change),))


def test_corrections_at_one_pose_are_refused():
    bar = corrected_bar()
    first = bar.corrections[0]
    with pytest.raises(InputError, match="do not tell their poses apart: 'bulge', 'lifted'"):
        check_corrections(bar.rig.parameters, bar.rig.vertex_count, (first, replace(first, name="lifted", weights=())))
    with pytest.raises(InputError, match="is no rotation"):
        driver_values(replace(bar.rig.parameters, quaternions=np.zeros(0)), ("bone1.rotation",), first.pose)


# There and back


@pytest.mark.parametrize("parts", [1, 2])
def test_corrections_come_back(parts, tmp_path):
    bar = corrected_bar(parts)
    back = written(bar, tmp_path)
    assert_same_corrections(back, bar)
    assert [len(c.weights) for c in back.corrections] == [parts, parts]
    weights = correction_weights(back.rig.parameters, back.corrections, back.corrections[1].pose)
    assert np.allclose(weights, [0.0, 1.0], atol=1e-9)
    assert np.allclose(back.corrected(back.corrections[0].pose), back.corrections[0].pose, atol=1e-9)
    # And once more: what was read can be written.
    assert_same_corrections(written(back, tmp_path), bar)


def test_lengths_follow_the_scale(tmp_path):
    write_character_glb(corrected_bar(), tmp_path / "out.glb")
    assert_same_corrections(load_gltf(tmp_path / "out.glb", scale=2.0), corrected_bar(scale=2.0))


def test_a_bake_keeps_them(tmp_path):
    bar = corrected_bar()
    bar = replace(bar, clips=tuple(replace(c, parameters=bar.rig.parameters, tracks=()) for c in bar_character().clips))
    back = written(bar, tmp_path)
    positions = jiggled_rest(back)
    content, report = bake_glb((tmp_path / "out.glb").read_bytes(), back, None, *positions)
    assert report.targets
    (tmp_path / "baked.glb").write_bytes(content)
    assert_same_corrections(load_gltf(tmp_path / "baked.glb"), bar)


def jiggled_rest(character):
    times = np.linspace(0.0, 1.0, 9)
    moves = np.sin(2.0 * np.pi * times)[:, None, None] * character.rest_positions * [0.1, 0.0, 0.1]
    return times, character.rest_positions + moves


def test_a_table_written_by_hand_is_read(tmp_path):
    character = load_gltf(everything().save(tmp_path / "by hand.glb"))
    bulge, far = character.corrections
    assert (bulge.name, far.name) == ("bulge", "far")
    assert (bulge.weights, far.weights) == (("bulge.weight",), ("lean.weight",))
    assert by_name(character, far.pose)["lower.translation.x"] == 0.5
    assert np.allclose([by_name(character, bulge.pose)[f"upper.rotation.{a}"] for a in "xyzw"], [0, 0, 0.6, 0.8])
    assert np.allclose(bulge.pose[:2], [1.0, 0.0]), "its own weight and no other's, whatever they are at rest"


def test_one_mesh_shown_twice_is_one_correction_of_two_weights(tmp_path):
    table = [
        {"morph": "swell", "drivers": ["lower.rotation"], "pose": {"lower.rotation.x": 1.0, "lower.rotation.w": 0}}
    ]
    file = skinned_bar(extras={"targetNames": ["swell"], "softrig": {"corrections": table}})
    swell = file.accessor(np.tile([0.1, 0.0, 0.0], (20, 1)))
    file.json["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": swell}]
    file.add("nodes", name="twin", mesh=0, skin=0)
    (correction,) = load_gltf(file.save(tmp_path / "twins.glb")).corrections
    assert correction.weights == ("body.swell.weight", "twin.swell.weight")


def test_same_names_with_other_poses_stay_two(tmp_path):
    file = plain_tetrahedron(name="a")
    for node, angle in (("a", 0.6), ("b", 0.8)):
        line = {"morph": "m", "name": "fold", "drivers": [f"{node}.rotation"], "pose": {f"{node}.rotation.x": angle}}
        mesh = file.json["meshes"][-1]
        mesh["extras"] = {"targetNames": ["m"], "softrig": {"corrections": [line]}}
        mesh["primitives"][0]["targets"] = [{"POSITION": file.accessor(np.full((4, 3), 0.1))}]
        if node == "a":
            file.json["meshes"].append(json.loads(json.dumps(mesh)))
            file.add("nodes", mesh=1, name="b", translation=[3, 0, 0])
    corrections = load_gltf(file.save(tmp_path / "two.glb")).corrections
    assert [c.name for c in corrections] == ["fold", "fold#2"]
    assert [c.weights for c in corrections] == [("a.m.weight",), ("b.m.weight",)]


# Hostile tables


def lines(extras):
    return extras["softrig"]["corrections"]


@pytest.mark.parametrize(
    ("change", "message", "left"),
    [
        (
            lambda e: e["softrig"].update(corrections={"a": 1}),
            r"extras\.softrig\.corrections is left out: .* not a list",
            0,
        ),
        (lambda e: lines(e).__setitem__(0, 7), r"corrections\[0\] is not an object", 1),
        (lambda e: lines(e)[0].pop("morph"), r"corrections\[0\]: no morph target of the mesh is called ''", 1),
        (lambda e: lines(e)[0].update(morph=[]), r"corrections\[0\]: morph is not a string", 1),
        (lambda e: lines(e)[0].update(morph="x\n" * 500), r"corrections\[0\]: no morph .* 'x_x_", 1),
        (lambda e: lines(e)[0].update(drivers=[]), r"corrections\[0\]: has 0 drivers", 1),
        (lambda e: lines(e)[0].update(drivers=["a"] * 65), r"corrections\[0\]: has 65 drivers", 1),
        (lambda e: lines(e)[0].update(drivers=[3]), r"corrections\[0\]: drivers holds what is not a string", 1),
        (lambda e: lines(e)[0].update(drivers=["no.rotation"]), r"corrections\[0\] is left out: .*no\.rotation", 1),
        (lambda e: lines(e)[0].update(drivers=["bulge.weight"]), r"corrections\[0\] is left out: .* drives itself", 1),
        (lambda e: lines(e)[0].pop("pose"), r"corrections\[0\]: has no pose", 1),
        (lambda e: lines(e)[0].update(pose=[1.0]), r"corrections\[0\]\.pose is not an object", 1),
        (lambda e: lines(e)[0].update(pose={}), r"corrections\[0\] is left out: .* at rest", 1),
        (
            lambda e: lines(e)[0]["pose"].update({"tail.x": 1.0}),
            r"corrections\[0\]: no parameter is called 'tail\.x'",
            1,
        ),
        (lambda e: lines(e)[0]["pose"].update({"bone1.scale.x": "1"}), r"corrections\[0\]: pose holds what is not", 1),
        (lambda e: lines(e)[0]["pose"].update({"bone1.scale.x": 10**400}), r"corrections\[0\]: pose holds what", 1),
        (
            lambda e: lines(e)[0]["pose"].update({"bone0.scale.x": 1e200, "bone1.scale.x": 1e200}),
            r"corrections\[0\] is left out: correction 'bulge': its positions",
            1,
        ),
        (lambda e: lines(e)[1]["pose"].update({"bone0.translation.y": 1e200}), r"\[1\] is left out: the drivers", 1),
        (lambda e: lines(e).append(lines(e)[0]), r"corrections\[2\] is left out: its morph has a correction", 2),
        (
            lambda e: lines(e)[1].update(lines(e)[0], morph="lifted", name="b"),
            r"\[1\] is left out: the drivers of 'b'",
            1,
        ),
        (lambda e: lines(e).extend([5] * MOST_CORRECTIONS), "has 258 lines; those after 256 are left out", 2),
    ],
)
def test_hostile_tables_are_left_out_with_a_notice_that_names_them(change, message, left, tmp_path):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        character = in_file(corrected_bar(), tmp_path, change)
    assert len(character.corrections) == left
    assert all(warning.category is Notice for warning in seen)
    texts = [str(warning.message).removeprefix(str(tmp_path / "changed.glb: meshes[0].")) for warning in seen]
    assert re.search(message, texts[0])
    assert all(text.startswith("extras.softrig.corrections") and len(text) < 600 for text in texts)


@pytest.mark.parametrize("softrig", [None, 3, [], "corrections", {}, {"other": 1}])
def test_extras_that_are_not_ours_say_nothing(softrig, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not in_file(corrected_bar(), tmp_path, lambda extras: extras.update(softrig=softrig)).corrections
