"""Clips in and out again, without dynamics."""

import numpy as np
import pytest
from typer.testing import CliRunner

from gltf_files_for_tests import everything
from softrig.cli import app
from softrig.conversion import convert_clip
from softrig.errors import InputError
from softrig.io import caches
from softrig.io.characters import load_character


@pytest.fixture
def path(tmp_path):
    return everything().save(tmp_path / "bar.glb")


@pytest.fixture
def character(path):
    return load_character(path)


@pytest.mark.parametrize("ending", [".pc2", ".mdd", ".npz"])
def test_caches_hold_the_clip(ending, character, tmp_path):
    clip = character.clips[0]
    output = tmp_path / f"out{ending}"
    done = convert_clip(character, clip.name, output, fps=24.0)
    times, poses = clip.resample(24.0)
    wanted = np.array([character.rig.positions(pose) for pose in poses])
    if ending == ".pc2":
        found = caches.read_pc2(output, fps=24.0)
    else:
        found = (caches.read_mdd if ending == ".mdd" else caches.read_npz)(output)
    assert done.frames == len(times)
    assert done.bytes_added == output.stat().st_size
    np.testing.assert_allclose(found.positions, wanted, atol=1e-6)
    np.testing.assert_allclose(found.times, times, atol=1e-6)


def test_an_obj_sequence_has_a_file_a_frame(character, tmp_path):
    done = convert_clip(character, None, tmp_path / "frames" / "bar.obj", fps=5.0)
    assert len(list((tmp_path / "frames").glob("bar_*.obj"))) == done.frames


def test_a_glb_keeps_its_own_and_shows_the_clip_again(character, path, tmp_path):
    output = tmp_path / "out.glb"
    done = convert_clip(character, None, output, fps=30.0)
    again = load_character(output)
    added = [clip for clip in again.clips if clip.name not in {clip.name for clip in character.clips}]
    assert len(added) == 1
    times, poses = character.clips[0].resample(30.0)
    for time, pose in zip(times, poses, strict=True):
        shown = again.rig.positions(added[0].sample(np.array([time]))[0])
        assert np.abs(shown - character.rig.positions(pose)).max() <= done.error + 1e-6
    assert output.stat().st_size - path.stat().st_size == done.bytes_added


def test_what_cannot_be_written_is_refused(character, tmp_path):
    with pytest.raises(InputError, match=r"\.fbx"):
        convert_clip(character, None, tmp_path / "a.fbx")
    with pytest.raises(InputError):
        convert_clip(character, "no such clip", tmp_path / "a.npz")
    assert not list(tmp_path.glob("a.*"))


def test_the_input_is_never_overwritten(character, path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(InputError, match="is the input"):
        convert_clip(character, None, path)
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="folder"):
        convert_clip(character, None, tmp_path / "nowhere" / "a.npz")


def test_the_command_converts(path, tmp_path):
    output = tmp_path / "out.npz"
    result = CliRunner().invoke(app, ["convert", str(path), "-o", str(output), "--fps", "10"])
    assert result.exit_code == 0, result.output
    assert output.exists()
    first = load_character(path).clips[0].name
    assert f"'{first}', " in result.stdout
    assert "frames" in result.stdout
    for words in ([first], ["--clip", first]):
        again = tmp_path / "again.npz"
        result = CliRunner().invoke(app, ["convert", str(path), "-o", str(again), "--fps", "10", *words])
        assert result.exit_code == 0, result.output
        assert again.read_bytes() == output.read_bytes()
    both = CliRunner().invoke(app, ["convert", str(path), first, "-o", str(output), "--clip", first])
    assert "one clip at a time" in str(both.exception)
