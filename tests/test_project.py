"""Project files: defaults, round trips, and refusals that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from softrig.errors import InputError
from softrig.project import Project, load_project, paper_recipe, project_toml, save_project


def written(folder: Path, text: str) -> Path:
    path = folder / "hero.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load_project(written(tmp_path, "")) == Project()


def test_what_the_user_said_comes_back(tmp_path: Path) -> None:
    text = """
seed = 7
[parts]
"Shirt 2" = "follows"
[material]
preset = "muscle"
[material.poses."arm bent"]
young = 9e4
[poses]
count = 3
given = [{ clip = "walk", time = 0.4 }, { parameters = { "elbow.angle" = 1.5 }, name = "bent" }]
[basis]
handles = [{ name = "head", bone = "Head" }, { name = "belly", point = [0.0, 1.0, 0.2] }]
"""
    project = load_project(written(tmp_path, text))
    assert project.seed == 7
    assert project.parts == {"Shirt 2": "follows"}
    assert project.material.poses["arm bent"].young == 9e4
    assert project.poses.given[1].parameters == {"elbow.angle": 1.5}
    assert project.basis.handles[1].point == (0.0, 1.0, 0.2)
    save_project(project, tmp_path / "again.toml")
    assert load_project(tmp_path / "again.toml") == project
    save_project(project, str(tmp_path / "by name.toml"))
    assert load_project(str(tmp_path / "by name.toml")) == project


def test_only_differences_are_written() -> None:
    assert project_toml(Project()).strip() == ""
    assert project_toml(Project().changed(basis={"modes": 50})) == "[basis]\nmodes = 50\n"
    given = Project().changed(poses={"given": [{"clip": "a", "time": 0.5}, {"clip": "b"}]})
    lines = ["[poses]", "given = [", '  { clip = "a", time = 0.5 },', '  { clip = "b" },', "]"]
    assert project_toml(given).splitlines() == lines, "a line each, so that people can read and copy them"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[basis]\nmodess = 5", "basis.modess"),
        ("[basis]\nmodes = 1", "basis.modes"),
        ("[basis]\ncontact = 'sticky'", "basis.contact: should be true, false, 'sliding' or 'fixed'"),
        ("[material]\nyoung = [1.0]", "material.young"),
        ("[material]\npoisson = 0.5", "material.poisson"),
        ("[material]\nyoung = -1.0", "material.young: should be greater than 0"),
        ("[material]\nyoung = true", "material.young: should be a valid number"),
        ("[material.poses.bent]\npoisson = 0.5", "material.poses.bent.poisson: should be less than 0.5"),
        ("[parts]\nEye = 'hard'", "parts.Eye"),
        ("[parts]\nmap = 'hard'", r"parts\.map: should be"),
        ("[material]\nmap = 'x'", r"material\.map: there is no such setting"),
        ("[material.poses]\nmap = 3", r"material\.poses\.map"),
        ("[poses]\ngiven = [{ name = 'x' }]", "poses.given.0"),
        ("[basis]\nhandles = [{ name = 'x' }]", "handle 'x'"),
        ("[simulation]\nrate = inf", "simulation.rate"),
        ("[mesh", "TOML"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        load_project(written(tmp_path, text))


def test_fingerprints_follow_their_tables_only() -> None:
    project = Project()
    other = project.changed(basis={"modes": 50})
    assert project.fingerprint("mesh") == other.fingerprint("mesh")
    assert project.fingerprint("basis") != other.fingerprint("basis")


@pytest.mark.parametrize(
    ("given", "kind"), [("true", "sliding"), ("false", "none"), ("'sliding'", "sliding"), ("'fixed'", "fixed")]
)
def test_contact_is_a_switch_or_a_kind(tmp_path: Path, given: str, kind: str) -> None:
    project = load_project(written(tmp_path, f"[basis]\ncontact = {given}"))
    assert project.basis.contact_kind == kind
    save_project(project, tmp_path / "again.toml")
    assert load_project(tmp_path / "again.toml") == project


def test_elastic_constants_are_numbers_or_maps(tmp_path: Path) -> None:
    text = "[material]\nyoung = 'young.npy'\npoisson = 0.4\n[material.poses.bent]\nyoung = 5\npoisson = 'ratio'\n"
    project = load_project(written(tmp_path, text))
    assert (project.material.young, project.material.poisson) == ("young.npy", 0.4)
    assert (project.material.poses["bent"].young, project.material.poses["bent"].poisson) == (5.0, "ratio")
    save_project(project, tmp_path / "again.toml")
    assert load_project(tmp_path / "again.toml") == project


def test_the_papers_recipe_is_one_word() -> None:
    project = paper_recipe()
    assert project.basis.recipe == "paper"
    assert project.basis.interpolation == "world"
    assert not project.cubature.stiffness_correction
    assert (project.simulation.method, project.simulation.rate) == ("backward-euler", 90.0)
