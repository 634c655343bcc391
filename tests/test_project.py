"""Project files: defaults, round trips, and refusals that name the place."""

from __future__ import annotations

import re
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
        ("[mesh]\ntets = 'many'", '[mesh] tets is "many", but should be a whole number from 100 to 200000'),
        ("[mesh]\ntets = 1.5", "[mesh] tets is 1.5, but should be a whole number from 100 to 200000"),
        ("[mesh]\ntets = 99", "[mesh] tets is 99, but should be a whole number from 100 to 200000"),
        ("[mesh]\ntets = 2020-02-02", "[mesh] tets is 2020-02-02, but should be a whole number from 100 to 200000"),
        ("mesh = 3", "mesh is 3, but should be a table"),
        ("seed = -1", "seed is -1, but should be a whole number of at least 0"),
        ("scale = 0", "scale is 0, but should be a number above 0"),
        ("[basis]\nmodess = 5", "[basis] modess: there is no such setting, did you mean modes?"),
        ("[basis]\ntets = 500", "[basis] tets: there is no such setting here, but in [mesh]"),
        ("count = 3", "count: there is no such setting here, but in [poses] and [cubature]"),
        ("[mesh]\nxyz = 5", "[mesh] xyz: there is no such setting, there are tets, mesher"),
        ("[bassis]\nmodes = 5", "bassis: there is no such setting, did you mean basis?"),
        ("[basis]\nmodes = 1", "[basis] modes is 1, but should be a whole number from 2 to 400"),
        (
            "[basis]\ncontact = 'sticky'",
            '[basis] contact is "sticky", but should be true, false, "sliding" or "fixed"',
        ),
        ("[basis]\nrehearsal = 'no'", '[basis] rehearsal is "no", but should be a number from 0 to 600'),
        ("[material]\nbony = 'perhaps'", '[material] bony is "perhaps", but should be true or false'),
        ("[material]\nsoftness_map = 3", "[material] softness_map is 3, but should be a text in quotes"),
        (
            "[material]\nyoung = [1.0]",
            "[material] young is [1.0], but should be a number above 0, or the name of a map",
        ),
        (
            "[material]\npoisson = 0.5",
            "[material] poisson is 0.5, but should be a number above -1 and below 0.5, or the name of a map",
        ),
        ("[material]\nyoung = true", "[material] young is true, but should be a number above 0"),
        (
            "[material.poses.bent]\npoisson = 0.5",
            "[material.poses.bent] poisson is 0.5, but should be a number above -1",
        ),
        (
            "[material.poses.'arm bent']\nyong = 5",
            '[material.poses."arm bent"] yong: there is no such setting, did you',
        ),
        ("[parts]\nEye = 'hard'", '[parts] Eye is "hard", but should be "soft", "rigid" or "follows"'),
        ("[parts]\nmap = 'hard'", '[parts] map is "hard", but'),
        ("[material]\nmap = 'x'", "[material] map: there is no such setting"),
        ("[material.poses]\nmap = 3", "[material.poses] map is 3, but should be a table"),
        ("[poses]\ngiven = [{ name = 'x' }]", "[poses] given, entry 1: a pose needs either a clip or parameters"),
        (
            "[poses]\ngiven = [{ clip = 'x' }, { clip = 'y', tim = 3 }]",
            "[poses] given, entry 2, tim: there is no such setting, did you mean time?",
        ),
        ("[poses]\ngiven = 3", "[poses] given is 3, but should be a list"),
        ("[poses]\ngiven = [3]", "[poses] given, entry 1 is 3, but should be a table"),
        ("[basis]\nhandles = [{ name = 'x' }]", "[basis] handles, entry 1: handle 'x'"),
        ("[basis]\nhandles = [{ bone = 'x' }]", "[basis] handles, entry 1, name is missing, but should be a text"),
        (
            "[basis]\nhandles = [{ name = 'x', point = [1, 2] }]",
            "[basis] handles, entry 1, point is [1, 2], but should be a list of 3 numbers",
        ),
        (
            "[basis]\nhandles = [{ name = 'x', segment = [[1, 2, 3]] }]",
            "[basis] handles, entry 1, segment is [[1, 2, 3]], but should be a list of 2 lists",
        ),
        ("[simulation]\nrate = inf", "[simulation] rate is inf, but should be a number from 30 to 5000"),
        ("[simulation]\nwind = [0, 1, 'x']", '[simulation] wind, entry 3 is "x", but should be a number'),
        ("[simulation]\nwind = [0, 1, 2, 3]", "[simulation] wind is [0, 1, 2, 3], but should be a list of 3 numbers"),
        ("[simulation]\nstiffness = { Arm = -1 }", "[simulation.stiffness] Arm is -1, but should be a number above 0"),
        ("[mesh", "TOML"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InputError, match=f"hero.toml: .*{re.escape(named)}"):
        load_project(written(tmp_path, text))


def test_many_faults_are_told_in_one_line_and_counted(tmp_path: Path) -> None:
    lines = "\n".join(f"part{n} = '{'hard' * 20}'" for n in range(7))
    with pytest.raises(InputError) as caught:
        load_project(written(tmp_path, f"[parts]\n{lines}"))
    told = str(caught.value)
    assert told.endswith("; and 2 more")
    assert "hardhar …, but" in told, "a long value is cut"
    assert "\n" not in told


def test_every_setting_says_what_it_wants() -> None:
    """Nothing of the schema is unknown to the words."""

    class Nothing:
        def __str__(self) -> str:
            return "nothing"

    for table, settings in Project.model_fields.items():
        inner = getattr(settings.annotation, "model_fields", None)
        for key in inner or [""]:
            with pytest.raises(InputError, match=r"is nothing, but should be [a-z\"]"):
                Project().changed(**{table: {key: Nothing()} if inner else Nothing()})


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
