"""three.js, which somebody else wrote, shows our files where we say the vertices are."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from bars_for_tests import bar_character, jiggled
from browser_for_tests import CHROMIUM, ROOT, Task, built_in_glb, skip_module_without, three_js_positions
from gltf_files_for_tests import everything
from softrig.characters import CHARACTERS
from softrig.errors import Notice
from softrig.io.glb_bake import bake_glb
from softrig.io.glb_writer import character_glb
from softrig.io.gltf import load_gltf

DATA = ROOT.parent / "shared" / "data"
FRAMES = 10
CLOSE = 1e-5
"""Of the size."""

skip_module_without("three", CHROMIUM, "chromium", "no comparison with three.js")


def loaded(path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # the fox is not in metres
        return load_gltf(path)


def gathered(task: Task, character, clip: str | None, frame: int) -> np.ndarray:
    """(n, 3) what three.js shows, in the character's order of vertices; every part must be there."""
    found = task.found[clip, frame]
    assert len(found) == len(character.parts)
    positions = np.full((character.rig.vertex_count, 3), np.nan)
    for part in character.parts:
        positions[part.vertices] = found[part.source["node"], part.source["primitive"]]
    return positions


def largest_differences(paths: list[Path], folder: Path) -> dict[tuple[str, str | None], float]:
    """(file, clip) → the largest distance between three.js' vertices and ours, of the size."""
    characters = [loaded(path) for path in paths]
    tasks = [
        Task(
            path.read_bytes(),
            [(None, np.zeros(1)), *((clip.name, np.linspace(0.0, clip.duration, FRAMES)) for clip in character.clips)],
        )
        for path, character in zip(paths, characters, strict=True)
    ]
    three_js_positions(tasks, folder)
    differences = {}
    for path, character, task in zip(paths, characters, tasks, strict=True):
        for clip, times in task.clips:
            poses = character.rig.parameters.rest[None] if clip is None else character.clip(clip).sample(times)
            away = [
                np.linalg.norm(character.rig.positions(p) - gathered(task, character, clip, frame), axis=1).max()
                for frame, p in enumerate(poses)
            ]
            differences[path.stem, clip] = float(np.max(away)) / character.size
    return differences


def assert_close(differences: dict[tuple[str, str | None], float]) -> None:
    far = {key: value for key, value in differences.items() if not value < CLOSE}
    assert not far, f"away from three.js, of the size: {far}"


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there")
def test_real_files_move_as_in_three_js(tmp_path):
    paths = sorted(DATA.glob("*.glb"))
    differences = largest_differences(paths, tmp_path)
    assert {stem for stem, clip in differences if clip is not None} == {path.stem for path in paths}
    assert_close(differences)


def test_built_in_characters_move_as_in_three_js(tmp_path, tmp_path_factory):
    paths = []
    for name in CHARACTERS:
        paths.append(tmp_path / f"{name}.glb")
        paths[-1].write_bytes(built_in_glb(name, tmp_path_factory.getbasetemp()))
    differences = largest_differences(paths, tmp_path)
    assert len(differences) >= 3 * len(CHARACTERS)
    assert_close(differences)


def test_every_feature_of_the_reader_moves_as_in_three_js(tmp_path):
    file = everything()
    # three.js keeps a node as translation, rotation and scale: it cannot shear.
    file.json["nodes"][4]["matrix"] = [0.0, 2.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.1, 0.2, -0.1, 1.0]
    differences = largest_differences([file.save(tmp_path / "everything.glb")], tmp_path)
    assert set(differences) == {("everything", None), ("everything", "all")}
    assert_close(differences)


def test_a_baked_jiggle_is_within_the_printed_error_in_three_js(tmp_path):
    sources = {"bar": character_glb(bar_character(parts=2))}
    if (DATA / "CesiumMan.glb").exists():
        sources["man"] = (DATA / "CesiumMan.glb").read_bytes()
    bakes = []
    for name, source in sources.items():
        (tmp_path / f"{name}.glb").write_bytes(source)
        character = loaded(tmp_path / f"{name}.glb")
        clip = character.clips[0].name
        times, positions = jiggled(character, clip, fps=30.0)
        for options in ({}, {"quantise": True, "normals": True}, {"per_frame": True}):
            if name == "bar" or not options:
                content, report = bake_glb(source, character, clip, times, positions, **options)
                task = Task(content, [(report.animation, times), (clip, times)])
                bakes.append((task, character, positions, report, clip))
    three_js_positions([task for task, *_ in bakes], tmp_path)
    for task, character, positions, report, clip in bakes:
        away, without = (
            max(
                np.linalg.norm(gathered(task, character, shown, frame) - wanted, axis=1).max()
                for frame, wanted in enumerate(positions)
            )
            for shown in (report.animation, clip)
        )
        assert without > 0.01 * character.size, "the jiggle must be worth baking"
        assert away <= 1.001 * report.error + 1e-6 * character.size
