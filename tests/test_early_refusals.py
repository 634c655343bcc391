"""What a project file names and the character has not is refused before the mesher, which takes long, is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from characters_for_tests import SMALL, bent_bar, limb
from softrig.cli import app
from softrig.errors import InputError
from softrig.io.glb_writer import write_character_glb
from softrig.pipeline.build import build, build_parts
from softrig.pipeline.posing import choose_poses, chosen_poses

HANDLES = [{"name": "hand", "bone": "lower"}, {"name": "root", "point": [0.0, 0.0, 0.0]}]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"poses": {"clips": ["bend", "fly"]}}, "no clip 'fly'; its clips: 'bend', 'shake'"),
    ({"poses": {"given": [{"clip": "fly", "time": 0.1}]}}, "no clip 'fly'; its clips: 'bend', 'shake'"),
    ({"poses": {"given": [{"clip": "bend", "time": 99.0}]}}, "there is no pose at 99.00 s"),
    ({"poses": {"given": [{"parameters": {"tail.rotation.x": 0.5}}]}}, "tail.rotation.x"),
    ({"poses": {"given": [{"clip": "bend", "time": 0.5, "sculpt": "../bent.obj"}]}}, "outside the project's folder"),
    ({"parts": {"Shirt": "follows"}}, "no part 'Shirt'"),
    ({"material": {"softness_map": "paint"}}, "no painted map 'paint'; its maps:"),
    ({"material": {"stiffness_map": "paint"}}, "no painted map 'paint'; its maps:"),
    ({"material": {"softness_map": "paint.npy"}}, "paint.npy is not there"),
    ({"material": {"softness_map": "short.npy"}}, "7 painted values, where the character has"),
    ({"material": {"young": "paint"}}, "no painted map 'paint'; its maps:"),
    ({"material": {"young": "paint.npy"}}, "paint.npy is not there"),
    ({"material": {"poisson": "holes.npy"}}, "NaN or infinite"),
    ({"material": {"poses": {"rest": {"young": "paint.npy"}}}}, "paint.npy is not there"),
    ({"material": {"poses": {"rest": {"stiffness_map": "paint"}}}}, "no painted map 'paint'"),
    (
        {"material": {"poses": {"flexed": {"young": 5e4}}}},
        "poses that do not exist: flexed; the poses: 'rest', ",
    ),
    ({"basis": {"handles": [{"name": "a", "bone": "tail"}]}}, "no bone is called 'tail'; there are lower, upper"),
    (
        {"basis": {"handles": HANDLES}, "simulation": {"stiffness": {"hands": 2.0}}},
        "no region hands; its regions: hand, root, whole body",
    ),
]


@pytest.fixture
def unmeshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with maps; whoever calls the mesher fails."""

    def mesher(*_: object, **__: object) -> None:
        raise AssertionError("the mesher was called")

    monkeypatch.setattr("softrig.pipeline.flesh.character_volume", mesher)
    np.save(tmp_path / "short.npy", np.zeros(7))
    np.save(tmp_path / "holes.npy", np.full(limb().rig.vertex_count, np.nan))
    return tmp_path


@pytest.mark.parametrize(("settings", "told"), WRONG, ids=[told for _, told in WRONG])
def test_what_is_not_there_is_refused_before_meshing(settings, told: str, unmeshed: Path) -> None:
    with pytest.raises(InputError) as caught:
        build(limb(), SMALL.changed(**settings), folder=unmeshed, jobs=1)
    assert told in str(caught.value)


def test_a_missing_sculpt_is_told_before_meshing(unmeshed: Path) -> None:
    project = SMALL.changed(poses={"given": [{"clip": "bend", "time": 0.5, "sculpt": "bent.obj"}]})
    with pytest.raises(FileNotFoundError, match=r"bent\.obj"):
        build(limb(), project, folder=unmeshed, jobs=1)


def test_a_body_of_one_region_knows_it_before_meshing(unmeshed: Path) -> None:
    project = SMALL.changed(basis={"regions": 1, "rehearsal": 0.0}, simulation={"stiffness": {"arm": 2.0}})
    with pytest.raises(InputError, match=r"no region arm; its regions: body$"):
        build(bent_bar(), project, jobs=1)
    with pytest.raises(AssertionError, match="the mesher was called"):
        build_parts(bent_bar(), project, jobs=1)


def test_what_is_there_gets_as_far_as_the_mesher(unmeshed: Path) -> None:
    """Of a file's length the mesh decides: it may be of tets. Regions made from bones are known later."""
    softness = np.linspace(0.2, 1.0, limb().rig.vertex_count)
    np.save(unmeshed / "softness.npy", softness)
    np.save(unmeshed / "young.npy", np.full(700, 1e4))
    for settings in (
        {"material": {"softness_map": "softness.npy", "young": "young.npy", "poses": {"rest": {"poisson": 0.3}}}},
        {"poses": {"given": [{"clip": "bend", "time": 0.5}], "clips": ["shake"]}, "basis": {"handles": HANDLES}},
        {"basis": {"handles": HANDLES}, "simulation": {"stiffness": {"hand": 2.0, "whole body": 0.5}}},
        {"simulation": {"stiffness": {"nobody": 2.0}}},
    ):
        with pytest.raises(AssertionError, match="the mesher was called"):
            build(limb(), SMALL.changed(**settings), folder=unmeshed, jobs=1)


def test_the_command_refuses_a_clip_before_it_meshes(unmeshed: Path) -> None:
    write_character_glb(limb(), unmeshed / "hero.glb")
    (unmeshed / "hero.toml").write_text('[poses]\nclips = ["fly"]\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["build", str(unmeshed / "hero.glb"), "--jobs", "1"])
    assert isinstance(result.exception, InputError)
    assert "no clip 'fly'" in str(result.exception)
    assert "Filling with tets" not in result.output


def test_poses_are_the_same_with_tets_and_without() -> None:
    project = SMALL.changed(poses={"given": [{"clip": "bend", "time": 0.5}]})
    choice = choose_poses(limb(), project)
    names, parameters = chosen_poses(limb(), project)
    assert choice.names == names
    np.testing.assert_array_equal(choice.parameters, parameters)
