"""Blender out of process, the real one, where it is found: what it reads and writes is what we do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree
from typer.testing import CliRunner

from softrig.characters import built_in
from softrig.cli import app
from softrig.conversion import convert_clip
from softrig.io.blender import Blender, BlenderError, check_blender
from softrig.io.blender_files import blender_vertices, compare_with_blender, glb_of
from softrig.io.characters import load_character
from softrig.io.format_error import FileFormatError
from softrig.io.glb_bake import bake_glb
from softrig.io.glb_writer import write_character_glb
from softrig.io.gltf import load_gltf
from softrig.io.usd import MissingExtraError


def _real() -> Blender | str:
    try:
        return check_blender().blender
    except (MissingExtraError, BlenderError) as missing:
        return str(missing)


MAKER = """
import json, os, sys
import bpy
request = json.load(open(sys.argv[-1]))
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.context.scene.render.fps = 60
bpy.ops.import_scene.gltf(filepath=request["glb"], disable_bone_shape=True)
mesh = next(thing for thing in bpy.data.objects if thing.type == "MESH")
if request["still"]:
    mesh.data.shape_keys.animation_data_clear()
    for key in mesh.data.shape_keys.key_blocks[1:]:
        key.value = 0.0
if request["mark"]:
    text = bpy.data.texts.new("evil.py")
    text.write("open(%r, 'w').close()" % (request["mark"] + "_text"))
    text.use_module = True
    driver = mesh.driver_add("location", 0).driver
    driver.type = "SCRIPTED"
    driver.expression = "0 * len(str(open(%r, 'w')))" % (request["mark"] + "_driver")
if request["linked"]:
    with bpy.data.libraries.load(request["linked"], link=True) as (there, here):
        here.objects = [name for name in there.objects]
    for thing in here.objects:
        bpy.context.scene.collection.objects.link(thing)
bpy.context.scene.unit_settings.scale_length = request["unit"]
if request["output"].endswith(".fbx"):
    bpy.ops.export_scene.fbx(filepath=request["output"], add_leaf_bones=False, bake_anim_simplify_factor=0.0)
elif request["output"].endswith(".blend"):
    bpy.ops.wm.save_as_mainfile(filepath=request["output"])
else:
    bpy.ops.wm.usd_export(filepath=request["output"], export_animation=True)
if request["mark"] and request["run"]:
    bpy.ops.wm.open_mainfile(filepath=request["output"], use_scripts=True)
"""


@pytest.fixture(scope="module")
def real():
    found = _real()
    if isinstance(found, str):
        pytest.skip(f"no Blender here: {found}")
    return found


@pytest.fixture(scope="module")
def made(real, tmp_path_factory):
    """A file that Blender makes of a GLB."""
    import json

    folder = tmp_path_factory.mktemp("blender")
    script = folder / "maker.py"
    script.write_text(MAKER)

    def make(glb: Path, name: str, **settings) -> Path:
        request = folder / "request.json"
        defaults = {"still": False, "mark": "", "run": False, "linked": "", "unit": 1.0}
        content = {**defaults, **settings, "glb": str(glb), "output": str(folder / name)}
        request.write_text(json.dumps(content, default=str))
        subprocess.run(real.command(script, request), check=True, capture_output=True, timeout=300)
        return folder / name

    return make


@pytest.fixture(scope="module", params=["arm", "gorilla"])
def original(request, real, tmp_path_factory):
    path = tmp_path_factory.mktemp("glb") / f"{request.param}.glb"
    write_character_glb(built_in(request.param), path)
    return path


@pytest.fixture(scope="module")
def arm(real, tmp_path_factory):
    path = tmp_path_factory.mktemp("glb") / "arm.glb"
    write_character_glb(built_in("arm"), path)
    return path


def largest_difference(found, wanted, clip, *, still=False):
    """Metres, over ten frames of a clip; vertices are matched where they rest."""
    away, match = cKDTree(found.rest_positions).query(wanted.rest_positions)
    assert away.max() < 1e-5 * wanted.size
    times = np.linspace(0.0, wanted.clip(clip).duration, 10)
    poses = wanted.clip(clip).sample(times)
    if still:
        poses[:, [name.endswith(".weight") for name in wanted.rig.parameters.names]] = 0.0
    again = found.clip(clip).sample(times)
    return max(
        float(np.linalg.norm(found.rig.positions(b)[match] - wanted.rig.positions(a), axis=1).max())
        for a, b in zip(poses, again, strict=True)
    )


class TestRealBlender:
    def test_a_blend_file_gives_every_clip_back(self, original, made):
        wanted, found = load_gltf(original), load_character(made(original, f"{original.stem}.blend"))
        assert {clip.name for clip in found.clips} == {clip.name for clip in wanted.clips}
        for clip in wanted.clips:
            assert largest_difference(found, wanted, clip.name) < 1e-5 * wanted.size

    def test_an_fbx_gives_its_clips_back(self, original, made):
        # Blender's FBX exporter keys shape keys from the active action whatever the clip: the first clip is whole,
        # the others are compared without their morphs.
        wanted, first = load_gltf(original), load_gltf(original).clips[0].name
        whole = load_character(made(original, f"{original.stem}.fbx"))
        assert largest_difference(whole, wanted, first) < 1e-5 * wanted.size
        weights = [name.endswith(".weight") for name in whole.rig.parameters.names]
        for clip in whole.clips:
            assert clip.sample(np.linspace(0.0, clip.duration, 10))[:, weights].max() > 0.1
        still = load_character(made(original, f"{original.stem}-still.fbx", still=True))
        assert {clip.name for clip in still.clips} == {clip.name for clip in wanted.clips}
        for clip in wanted.clips:
            assert largest_difference(still, wanted, clip.name, still=True) < 1e-5 * wanted.size

    def test_the_unit_of_a_scene_counts(self, arm, made):
        found, wanted = load_character(made(arm, "small.blend", unit=0.5)), load_gltf(arm)
        assert found.size == pytest.approx(0.5 * wanted.size, rel=1e-5)

    def test_a_usd_skeleton_comes_in(self, arm, made):
        found, wanted = load_character(made(arm, "arm.usdc")), load_gltf(arm)
        away, _ = cKDTree(found.rest_positions).query(wanted.rest_positions)
        assert away.max() < 1e-4 * wanted.size
        assert len(found.bones()) == len(wanted.bones())

    def test_scripts_in_a_blend_file_do_not_run(self, arm, made, tmp_path):
        mark = tmp_path / "ran"
        marks = [Path(f"{mark}_text"), Path(f"{mark}_driver")]
        path = made(arm, "evil.blend", mark=mark, run=True)
        assert all(m.exists() for m in marks)  # it would, if it were let
        for m in marks:
            m.unlink()
        assert load_character(path).clips
        assert not any(m.exists() for m in marks)

    def test_a_file_that_links_to_others_is_refused(self, arm, made):
        library = made(arm, "library.blend")
        with pytest.raises(FileFormatError, match=r"links to other files .*library\.blend"):
            load_character(made(arm, "linking.blend", linked=library))

    @pytest.mark.parametrize("ending", [".blend", ".fbx", ".usdc"])
    def test_rubbish_is_refused(self, real, tmp_path, ending):
        path = tmp_path / f"rubbish{ending}"
        path.write_bytes(b"BLENDER-v500" + bytes(range(256)) * 8)
        with pytest.raises(FileFormatError, match="rubbish"):
            load_character(path)

    def test_alembic_shows_the_clip(self, real, arm, tmp_path):
        character, output = load_gltf(arm), tmp_path / "arm.abc"
        done = convert_clip(character, "swing", output, fps=30.0)
        times, poses = character.clip("swing").resample(30.0)
        assert done.frames == len(times)
        (shown,) = blender_vertices(output, times, fps=30.0).values()
        wanted = np.stack([character.rig.positions(pose) for pose in poses])
        assert np.abs(wanted - wanted[0]).max() > 0.1 * character.size
        assert np.abs(shown - wanted).max() < 2e-6 * character.size

    def test_a_morph_bake_looks_the_same_in_blender(self, real, original, tmp_path):
        character = load_gltf(original)
        clip = character.clips[-1]
        times, poses = clip.resample(60.0)
        wanted = np.stack([character.rig.positions(pose) for pose in poses])
        wave = np.sin(9.0 * times[:, None] + 5.0 * character.rest_positions[:, 1] / character.size)
        wanted[..., 2] += 0.02 * character.size * wave * (1.0 - np.exp(-4.0 * times))[:, None]
        content, report = bake_glb(original.read_bytes(), character, clip.name, times, wanted)
        output = tmp_path / "baked.glb"
        output.write_bytes(content)
        some = np.linspace(0, len(times) - 1, 10).astype(int)
        (shown,) = blender_vertices(output, times[some], clip=report.animation).values()
        off = np.linalg.norm(shown - wanted[some], axis=2).max()
        assert off < report.error + 5e-6 * character.size
        assert off > 0.1 * report.error
        found = compare_with_blender(output, clip=report.animation)
        assert found.largest < 1e-4 * character.size

    def test_an_fbx_becomes_a_glb_with_its_clip(self, arm, made, tmp_path):
        source, output = made(arm, "arm.fbx"), tmp_path / "out.glb"
        result = CliRunner().invoke(app, ["convert", str(source), "-o", str(output), "--clip", "bend"])
        assert result.exit_code == 0, result.output
        again = load_gltf(output)
        assert "bend.converted" in [clip.name for clip in again.clips]
        assert largest_difference(again, load_gltf(arm), "bend") < 1e-5 * again.size

    def test_time_runs_out_for_the_real_one_too(self, arm, made):
        with pytest.raises(FileFormatError, match=r"within 0\.05 s"):
            glb_of(made(arm, "slow.blend"), seconds=0.05)
