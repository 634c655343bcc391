"""`softrig build`, `bake`, `picture`, `info` and `compare` on a GLB, as a user would type them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from characters_for_tests import limb
from softrig.cli import app
from softrig.console import duration
from softrig.errors import InputError, Notice, SoftrigError
from softrig.io.characters import load_character
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import load_character_model, save_model
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.drift import differing_settings
from softrig.pipeline.sources import model_character
from softrig.project import load_project, paper_recipe, save_project
from softrig.rig.bones import carrying_joint

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")

PROJECT = """
[mesh]
tets = 700
[material]
preset = "fat"
[basis]
modes = 16
regions = 2
contact = false
derivatives = 6
[poses]
count = 2
[simulation]
gravity = "off"
"""


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hero")
    write_character_glb(limb(), folder / "hero.glb")
    (folder / "hero.toml").write_text(PROJECT, encoding="utf-8")
    start = time.perf_counter()
    told = run("build", str(folder / "hero.glb"), "--jobs", "1")
    took = re.search(r"It took (?:(\d+) min )?(\d+) s, loading and compiling included", told)
    assert took is not None
    # All of the command's time, which stages that are not shown would lack.
    assert abs(60 * int(took[1] or 0) + int(took[2]) - (time.perf_counter() - start)) < 2.0
    return folder


def test_durations_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 48.4, 59.6, 125.0)] == ["0 s", "48 s", "1 min 0 s", "2 min 5 s"]


def test_build_takes_the_project_file_beside_the_character(folder: Path) -> None:
    model = load_character_model(folder / "hero.softrig")
    assert model.mode_count == 16
    assert model.notes["project"]["simulation"]["gravity"] == "off"
    assert model.notes["step"]["median"] > 0.0
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def test_info_tells_a_row_of_table_3(folder: Path) -> None:
    told = run("info", str(folder / "hero.softrig"))
    for word in (
        "tets",
        "modes",
        "16 in 2 regions and over the whole body",
        "on unseen deformations at the poses,",
        "% between them",
        "inertial error",
        "memory",
        "subspace",
        "compliance",
    ):
        assert word in " ".join(told.split()), word
    assert re.search(r"\d+° / \d+°", told), "subspace angles of a pose"


def test_bake_adds_a_soft_animation_within_the_printed_error(folder: Path) -> None:
    told = run("bake", str(folder / "hero.softrig"), "--clip", "bend", "-o", str(folder / "bend.glb"), "--fps", "30")
    assert "bend.glb" in told
    written, source = (folder / "bend.glb").stat().st_size, (folder / "hero.glb").stat().st_size
    assert f"; {written / 1e3:,.0f} kB, of which {(written - source) / 1e3:,.0f} are new" in told
    baked = load_character(folder / "bend.glb")
    model = load_character_model(folder / "hero.softrig")
    live = model_simulation(model, fps=30.0).bake(model.clips[0], 30.0, plain=True)
    clip = baked.clip("bend.soft")
    shown = np.stack([baked.rig.positions(p) for p in clip.sample(live.times)])
    off = np.linalg.norm(shown - live.vertices, axis=2).max()
    lengths = np.linalg.norm(live.vertices - live.plain, axis=2)
    assert live.report.largest_at == lengths.max(axis=0).argmax()
    joint = carrying_joint(baked.rig, live.report.largest_at)
    where, printed = told.split("plain skinning")[1].split(";")[:2]
    assert " ".join(where.split()) == f"at '{joint}'"
    printed = 1e-3 * float(printed.split("mm")[0])
    assert off <= 1.05 * printed + 1e-6
    assert np.linalg.norm(live.vertices - live.plain, axis=2).max() > 10.0 * printed


def test_clips_stand_bare_or_behind_their_option(folder: Path, tmp_path: Path) -> None:
    """Both commands take both."""
    model, hero = str(folder / "hero.softrig"), str(folder / "hero.glb")
    for name, words in {"bare": ["bend"], "named": ["--clip", "bend"], "both": ["bend", "--clip", "shake"]}.items():
        run("bake", model, *words, "-o", str(tmp_path / name), "--format", ".npz", "--fps", "10")
    written = {path.name: sorted(file.stem for file in path.iterdir()) for path in tmp_path.iterdir()}
    assert written == {"bare": ["bend"], "named": ["bend"], "both": ["bend", "shake"]}
    with pytest.raises(InputError, match="no clip 'fly'"):
        run("compare", hero, "--clip", "fly")
    with pytest.raises(InputError, match="no clip 'fly'"):
        run("compare", hero, str(folder / "hero.toml"), "--clip", "fly")
    with pytest.raises(InputError, match="one clip at a time: 'bend' or 'fly'"):
        run("compare", hero, "bend", "--clip", "fly")
    with pytest.raises(InputError, match="in which clip to compare; 'hero' has: 'bend', 'shake'"):
        run("compare", hero)


def test_all_clips_go_into_a_folder(folder: Path) -> None:
    told = run("bake", str(folder / "hero.softrig"), "-o", str(folder / "all"), "--format", ".npz", "--fps", "30")
    assert f"exact; {(folder / 'all' / 'bend.npz').stat().st_size / 1e3:,.0f} kB\n" in told
    assert sorted(path.name for path in (folder / "all").iterdir()) == ["bend.npz", "shake.npz"]


def test_what_cannot_be_baked_is_told_before_a_stage_begins(folder: Path) -> None:
    model = str(folder / "hero.softrig")
    for words in (["-o", str(folder / "a.fbx")], ["-o", str(folder / "a.glb")], ["Rnu", "-o", str(folder / "soft")]):
        result = CliRunner().invoke(app, ["bake", model, *words])
        assert isinstance(result.exception, InputError)
        assert "Reading" in result.output
        assert "Simulating" not in result.output


def test_a_model_is_no_project_file(folder: Path) -> None:
    with pytest.raises(InputError, match=r"hero\.softrig: by its name this is a model; a project file ends in \.toml"):
        run("build", str(folder / "hero.glb"), str(folder / "hero.softrig"))


def test_a_picture_is_drawn_of_the_first_clip_or_of_another(folder: Path, tmp_path: Path) -> None:
    model = str(folder / "hero.softrig")
    told = run("picture", model, "--moments", "1")
    assert re.search(r"hero-bend\.png: 'bend', flesh up to [\d.]+ mm from plain skinning", told)
    assert "other clips: shake" in told
    assert (folder / "hero-bend.png").read_bytes()[:4] == b"\x89PNG"
    told = run("picture", model, "shake", "-o", str(tmp_path / "it.gif"), "--fps", "4", "--span", "0.0", "0.5")
    assert "other clips" not in told
    assert (tmp_path / "it.gif").read_bytes()[:4] == b"GIF8"
    for words, refused in (
        (["fly"], "no clip 'fly'"),
        (["all"], "no clip 'all'"),
        (["bend", "--clip", "shake"], "one clip at a time"),
        (["-o", str(tmp_path / "it.mp4")], "cannot write .mp4"),
        (["-o", str(tmp_path / "it.gif"), "--moments", "2"], "--moments is for sheets"),
        (["--fps", "5"], "--fps is for animations"),
    ):
        with pytest.raises(InputError, match=refused):
            run("picture", model, *words)
    with pytest.raises(InputError, match="this is a character, not a model; build it first"):
        run("picture", str(folder / "hero.glb"))


def test_compare_states_errors_against_the_full_body(folder: Path, tmp_path: Path) -> None:
    told = run("compare", str(folder / "hero.glb"), "bend", "--seen", "-o", str(tmp_path))
    words = " ".join(told.split())
    assert "hero, 'bend'" in words
    assert re.search(
        r"The flesh is [\d.]+ % of its motion off the full simulation; its 16 modes and what follows them could", words
    )
    assert "frequency, % off" in words, "figures stand whole in 80 columns"
    assert words.count("The same modes alone err") == 1
    assert re.search(r"ours: [\d.]+ % ours, forces of every tet: [\d.]+ %", words), "as soon as it is known"
    assert "converged" not in words
    rows = {row["what"]: row for row in json.loads((tmp_path / "compare.json").read_text())["rows"]}
    assert list(rows) == [
        "ours",
        "ours, forces of every tet",
        "ours, nothing follows the modes",
        "the same modes alone, exact forces",
    ]
    assert 0.0 < rows["ours"]["ours"] < 30.0
    assert (tmp_path / "compare.md").exists()
    refused = CliRunner().invoke(app, ["compare", str(folder / "hero.glb"), "fly"])
    assert refused.exit_code != 0
    assert "no clip 'fly'; its clips: 'bend', 'shake'" in str(refused.exception or refused.output)


def test_who_stops_a_command_is_told_what_is_kept(folder: Path) -> None:
    """As Ctrl-C does it, in a process of its own; here while the model is read."""
    code = """
import softrig.cli, softrig.models.file, sys
def stop(_path):
    raise KeyboardInterrupt
softrig.models.file.load_character_model = stop
sys.argv = ["softrig", "picture", sys.argv[1]]
softrig.cli.main()
"""
    stopped = subprocess.run(
        [sys.executable, "-c", code, str(folder / "hero.softrig")], capture_output=True, text=True, check=False
    )
    assert stopped.returncode == 130
    assert "softrig: stopped; what a build or a comparison of a file has finished is kept" in stopped.stderr
    assert "Traceback" not in stopped.stderr


def test_the_only_clip_need_not_be_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_character, clip, *_, **__):
        raise InputError(f"compared in {clip}")

    monkeypatch.setattr("softrig.bench.fidelity.compare_clip", stop)
    character = limb()
    write_character_glb(replace(character, clips=character.clips[:1]), tmp_path / "one.glb")
    with pytest.raises(InputError, match=f"compared in {character.clips[0].name}"):
        run("compare", str(tmp_path / "one.glb"))


def test_compare_takes_modes_and_tets_as_build_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_character, _clip, project, **_):
        raise InputError(f"{project.basis.modes} modes, {project.mesh.tets} tets")

    monkeypatch.setattr("softrig.bench.fidelity.compare_clip", stop)
    for words, told in (
        (["--modes", "20", "--tets", "900"], "20 modes, 900 tets"),
        (["--modes", "20"], "20 modes, 700 tets"),
        ([], "16 modes, 700 tets"),
    ):
        with pytest.raises(InputError, match=told):
            run("compare", str(folder / "hero.glb"), "bend", *words)
    assert CliRunner().invoke(app, ["compare", str(folder / "hero.glb"), "bend", "--modes", "1"]).exit_code == 2


def test_a_region_that_is_not_there_is_refused_before_shapes_are_made(folder: Path, tmp_path: Path) -> None:
    """The model of the fixture has the regions upper, lower and whole body."""
    wrong, target = tmp_path / "wrong.toml", tmp_path / "wrong.softrig"
    for stiffness, cause in (("lowerr = 0.5, upper = 2.0", "lowerr"), ('lower = 1.0, "Bel ly" = 2.0', "Bel ly")):
        wrong.write_text(f"{PROJECT}stiffness = {{ {stiffness} }}\n", encoding="utf-8")
        words = ["build", str(folder / "hero.glb"), str(wrong), "-o", str(target), "--jobs", "1"]
        with pytest.raises(InputError, match=f"'hero' has no region {cause}; its regions: upper, lower, whole body"):
            run(*words, "--cache", str(tmp_path / "cache"))
        assert not target.exists()
        assert not list((tmp_path / "cache").glob("samples*"))
    wrong.write_text(
        PROJECT.replace("modes = 16", "modes = 16\nrehearsal = 0.0") + 'stiffness = { "whole body" = 2.0 }',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"has no region whole body; its regions: upper, lower$"):
        run(*words, "--cache", str(folder / ".softrig-cache"))


def test_known_regions_build_and_stiffen(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "right.toml").write_text(
        PROJECT + 'stiffness = { lower = 0.5, "whole body" = 2.0 }\n', encoding="utf-8"
    )
    target, cache = tmp_path / "right.softrig", folder / ".softrig-cache"
    told = ["build", str(folder / "hero.glb"), str(tmp_path / "right.toml"), "-o", str(target), "--jobs", "1"]
    run(*told, "--cache", str(cache))
    model = load_character_model(target)
    assert model.notes["stages"]["made"] == []
    scales = dict(zip(model.region_names, model_simulation(model).stepper.stiffness_scale, strict=True))
    assert scales == {"upper": 1.0, "lower": 0.5, "whole body": 2.0}


def test_a_model_with_a_region_that_is_not_there_says_so(folder: Path, tmp_path: Path) -> None:
    model = load_character_model(folder / "hero.softrig")
    model.notes["project"]["simulation"]["stiffness"] = {"Bell\x1by": 2.0, "lower": 0.5}
    with pytest.warns(Notice, match="has no region Belly; its regions: upper, lower, whole body"):
        simulation = model_simulation(model)
    np.testing.assert_array_equal(simulation.stepper.stiffness_scale, [1.0, 0.5, 1.0])
    (tmp_path / "hero.glb").write_bytes((folder / "hero.glb").read_bytes())
    save_model(model, tmp_path / "hero.softrig")
    with pytest.warns(Notice, match="has no region Belly"):
        run("bake", str(tmp_path / "hero.softrig"), "bend", "-o", str(tmp_path / "bend.npz"), "--fps", "10")
    assert "has no region Belly;" in " ".join(run("info", str(tmp_path / "hero.softrig")).split())


def test_a_bake_into_a_file_that_cannot_be_written_is_refused(folder: Path, tmp_path: Path) -> None:
    model = str(folder / "hero.softrig")
    for name in ("x.fbx", "x.FBX", "x.mp4", "x.blend", "x.gltf"):
        with pytest.raises(InputError, match=rf"cannot write \.{name[2:]}; there are \.glb, \.pc2"):
            run("bake", model, "bend", "-o", str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "made.fbx").mkdir()
    for name in ("plain", "walk.v2", "take-1.5", "made.fbx"):
        run("bake", model, "bend", "-o", str(tmp_path / name), "--format", ".npz", "--fps", "10")
        assert [path.name for path in (tmp_path / name).iterdir()] == ["bend.npz"]


@pytest.mark.parametrize(("unit", "proposed"), [(100.0, "0.01"), (0.01, "100")])
@pytest.mark.parametrize("command", ["build", "mesh", "compare"])
def test_an_unlikely_size_is_refused_unless_a_scale_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, unit: float, proposed: str
) -> None:
    hero = tmp_path / "hero.glb"
    write_character_glb(limb(scale=unit), hero)
    words = [command, str(hero), *(["bend"] if command == "compare" else [])]

    def go_on(*_: object, **__: object) -> None:
        raise SoftrigError("on it goes")

    for place in ("pipeline.build.build", "volume.character_volume", "bench.fidelity.compare_clip"):
        monkeypatch.setattr(f"softrig.{place}", go_on)
    told = rf"m from corner to corner.*write scale = {proposed} at the top.*or give --scale {proposed} to.*--scale 1$"
    with pytest.raises(InputError, match=told):
        run(*words)
    for scale in (proposed, "1", "0.5"):
        with pytest.raises(SoftrigError, match="on it goes"):
            run(*words, "--scale", scale)
    project = tmp_path / "hero.toml"
    for line in (f"scale = {proposed}", "scale = 1"):
        project.write_text(line, encoding="utf-8")
        with pytest.raises(SoftrigError, match="on it goes"):
            run(*words)
        save_project(load_project(project), project)
        assert project.read_text(encoding="utf-8").startswith("scale = "), "an explicit 1 is no default"
    project.write_text("[mesh]\ntets = 700", encoding="utf-8")
    with pytest.raises(InputError, match="corner to corner"):
        run(*words)


def test_what_a_bake_says_of_the_size_can_be_typed(folder: Path, tmp_path: Path) -> None:
    """The size is the model's, decided by its build: bake only tells, and has no scale."""
    write_character_glb(limb(scale=100.0), tmp_path / "hero.glb")
    model = load_character_model(folder / "hero.softrig")
    with pytest.warns(
        Notice, match=r"corner to corner.* build it with --scale 0\.01 \(in the project file scale = 0\.01"
    ):
        model_character(model, tmp_path / "hero.softrig", None, tmp_path)


def test_a_changed_character_is_noticed(folder: Path, tmp_path: Path) -> None:
    for name in ("hero.glb", "hero.softrig"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    write_character_glb(limb(scale=1.0 + 1e-7), tmp_path / "hero.glb")
    with pytest.raises(InputError, match="changed since the model was built"):
        run("bake", str(tmp_path / "hero.softrig"), "-o", str(tmp_path / "out"))
    (tmp_path / "hero.glb").unlink()
    with pytest.raises(InputError, match="--character"):
        run("bake", str(tmp_path / "hero.softrig"), "-o", str(tmp_path / "out"))


@pytest.fixture
def moved(folder: Path, tmp_path: Path) -> Path:
    """The character, its project and its model in a folder of their own."""
    for name in ("hero.glb", "hero.toml", "hero.softrig"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def bake_notices(model: Path) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run("bake", str(model), "bend", "-o", str(model.parent / "bend.npz"), "--fps", "10")
    return [str(one.message) for one in caught if issubclass(one.category, Notice)]


def test_a_bake_says_which_settings_the_model_has_not(moved: Path) -> None:
    model, toml = moved / "hero.softrig", moved / "hero.toml"
    assert bake_notices(model) == [], "nothing changed"
    toml.write_text(PROJECT.replace('gravity = "off"', "damping_ratio = 0.5"), encoding="utf-8")
    (told,) = bake_notices(model)
    assert 'simulation.gravity ("off", in the file "change")' in told, "a bake takes these from the model, too"
    toml.write_text("seed = 3\n" + PROJECT.replace("tets = 700", "tets = 900").replace("modes = 16", ""))
    (told,) = bake_notices(model)
    assert "hero.softrig was built with other settings than hero.toml has: " in told
    for setting in ("seed (0, in the file 3)", "mesh.tets (700, in the file 900)", "basis.modes (16, in the file 100)"):
        assert setting in told
    assert told.endswith(f"softrig build {moved / 'hero.glb'}")
    assert "regions" not in told
    model.rename(moved / "my draft.softrig")
    (told,) = bake_notices(moved / "my draft.softrig")
    assert told.endswith(f"-o '{moved / 'my draft.softrig'}'")
    toml.write_text("tets = ", encoding="utf-8")
    (told,) = bake_notices(moved / "my draft.softrig")
    assert "baked as it was built, its project file cannot be read: " in told
    toml.unlink()
    assert bake_notices(moved / "my draft.softrig") == []


def test_settings_that_differ_are_found_by_name(folder: Path) -> None:
    model = load_character_model(folder / "hero.softrig")
    project = load_project(folder / "hero.toml")
    assert differing_settings(model, project) == []
    changed = project.changed(
        parts={"hero": "soft"},
        material={"poses": {"rest": {"young": 5e4}}},
        poses={"given": [{"clip": "bend", "time": time} for time in (0.1, 0.2)]},
    )
    assert differing_settings(model, changed) == [
        'parts.hero (default, in the file "soft")',
        "material.poses.rest.young (default, in the file 50000.0)",
        "poses.given",
    ]
    # The same, said otherwise.
    contact = project.basis.contact_kind
    same = project.changed(basis={"contact": {"none": False, "sliding": "sliding", "fixed": "fixed"}[contact]})
    assert differing_settings(model, same.model_copy(update={"scale": 1.0})) == []
    # What a recipe decides is decided, whatever the file says of it.
    paper = differing_settings(model, project.changed(basis={"recipe": "paper"}))
    assert 'basis.recipe ("load", in the file "paper")' in paper
    model.notes["project"] = paper_recipe(project).model_dump(mode="json", exclude_defaults=True)
    assert differing_settings(model, project.changed(basis={"recipe": "paper", "rehearsal": 3.0})) == []
    for strange in (5, None, {"wheels": 4}, {"wheels": {}}, {"mesh": {"wheels": 4}}):
        model.notes["project"] = strange
        assert differing_settings(model, changed) == []


def test_what_is_no_model_and_what_is_no_character_says_what_to_type(folder: Path, tmp_path: Path) -> None:
    hero, model = str(folder / "hero.glb"), str(folder / "hero.softrig")
    with pytest.raises(SoftrigError, match=r"not a model; build it first: softrig build .*hero\.glb"):
        run("bake", hero, "-o", "x")
    with pytest.raises(SoftrigError, match=r"^gorilla: .*: softrig build gorilla, which makes gorilla\.softrig"):
        run("bake", "gorilla", "-o", "x")
    with pytest.raises(SoftrigError, match=r"nosuch\.softrig: there is no such file"):
        run("bake", "nosuch.softrig", "-o", "x")
    wanted = r"compare takes the character file, not the model: softrig compare .*hero\.glb bend$"
    with pytest.raises(SoftrigError, match=wanted):
        run("compare", model, "bend")
    with pytest.raises(SoftrigError, match="build takes the character file, not the model: softrig build"):
        run("build", model)
    for source, told in (
        ({"name": "gorilla"}, "not the model: softrig compare gorilla bend$"),
        ({"name": "somebody"}, "not the model$"),
        ({"file": "a\x1b[0m.glb"}, "not the model$"),
        (5, "not the model$"),
    ):
        strange = load_character_model(model)
        strange.notes["source"] = source
        save_model(strange, tmp_path / "strange.softrig")
        with pytest.raises(SoftrigError, match=told):
            run("compare", str(tmp_path / "strange.softrig"), "bend")
    with pytest.raises(SoftrigError, match=r"no clip 'Bend', did you mean 'bend'\? Its clips: 'bend', 'shake'"):
        run("bake", model, "Bend", "-o", str(folder / "bend.npz"))


def test_flesh_that_does_not_move_is_told_of(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, target = str(folder / "hero.softrig"), str(tmp_path / "bend.npz")
    assert "does not move" not in run("bake", model, "bend", "-o", target, "--fps", "10")
    monkeypatch.setattr("softrig.commands.bake.STILL", 1e3)
    told = run("bake", model, "bend", "-o", target, "--fps", "10")
    assert "! 'bend': the flesh does not move, less than a thousandth of a millimetre from plain skinning: the" in told


def test_mistakes_are_told(folder: Path) -> None:
    with pytest.raises(SoftrigError, match="neither a file nor a built-in"):
        run("build", "nobody")
    with pytest.raises(SoftrigError, match=r"ends in \.softrig"):
        run("build", str(folder / "hero.glb"), "-o", str(folder / "hero.model"))
    with pytest.raises(SoftrigError, match="one file for 2 clips"):
        run("bake", str(folder / "hero.softrig"), "-o", str(folder / "x.glb"))
    with pytest.raises(SoftrigError, match="recipe"):
        run("build", str(folder / "hero.glb"), "--recipe", "secret")
    with pytest.raises(SoftrigError, match="character and bridge"):
        run("demo", "opera")
