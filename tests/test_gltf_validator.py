"""Khronos' validator finds no error in what we write."""

from __future__ import annotations

import warnings

import pytest

from bars_for_tests import bar_character, jiggled
from browser_for_tests import NODE, ROOT, built_in_glb, skip_module_without, validator_report
from softrig.characters import CHARACTERS
from softrig.conversion import convert_clip
from softrig.errors import Notice
from softrig.io.glb_animation import with_animation
from softrig.io.glb_bake import bake_glb
from softrig.io.glb_writer import character_glb
from softrig.io.gltf import load_gltf

DATA = ROOT.parent / "shared" / "data"
skip_module_without("gltf-validator", NODE, "node", "the Khronos validator does not run")


def errors(content, folder):
    issues = validator_report(content, folder)["issues"]
    found = [message for message in issues["messages"] if message["severity"] == 0]
    assert len(found) == issues["numErrors"]
    return found


def test_the_validator_sees_errors(tmp_path):
    content = character_glb(bar_character())
    broken = content.replace(b'"skin":0', b'"skin":7')
    assert broken != content
    assert errors(broken, tmp_path)


@pytest.mark.parametrize("name", CHARACTERS)
def test_built_in_characters_are_valid(name, tmp_path, tmp_path_factory):
    assert not errors(built_in_glb(name, tmp_path_factory.getbasetemp()), tmp_path)


@pytest.mark.parametrize("options", [{}, {"quantise": True, "normals": True}, {"per_frame": True}], ids=str)
@pytest.mark.parametrize("bar", [{}, {"parts": 2}, {"bones": 6, "with_morph": False}], ids=str)
def test_bakes_are_valid(bar, options, tmp_path):
    path = tmp_path / "bar.glb"
    path.write_bytes(character_glb(bar_character(**bar)))
    assert not errors(path.read_bytes(), tmp_path)
    character = load_gltf(path)
    content, _ = bake_glb(path.read_bytes(), character, "bend", *jiggled(character, "bend", fps=15.0), **options)
    assert not errors(content, tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize("name", ["CesiumMan", "Fox", "MorphStressTest", "RiggedFigure"])
def test_conversions_of_real_files_add_no_error(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # the fox is not in metres
        character = load_gltf(DATA / f"{name}.glb")
    convert_clip(character, None, tmp_path / "out.glb", fps=15.0)
    assert not errors((tmp_path / "out.glb").read_bytes(), tmp_path)


@pytest.mark.parametrize("name", ["CesiumMan", "AnimatedMorphCube"])
def test_an_added_animation_is_valid(name, tmp_path):
    """CesiumMan moves nodes that had a matrix, which an animated node must not have."""
    path = DATA / f"{name}.glb"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        character = load_gltf(path)
    times, poses = character.clips[0].resample(10.0)
    before = errors(path.read_bytes(), tmp_path)
    assert errors(with_animation(path.read_bytes(), character, "added", times, poses), tmp_path) == before
