"""What `softrig info` says of characters and models."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from bodies_for_tests import beam
from characters_for_tests import limb
from gltf_files_for_tests import everything, plain_tetrahedron
from pose_models_for_tests import bar_model, mapped
from softrig.bases.modes import linear_modes
from softrig.bodies.closedness import closedness
from softrig.cli import app
from softrig.commands.shared import remark_lines, tell_model
from softrig.conversion import GlbOptions, write_motion
from softrig.errors import InputError
from softrig.forces.polynomial import reduce_body
from softrig.inspection import (
    inspect_file,
    inspect_soft_character,
    readable_endings,
    soft_facts,
    soft_problems,
    soft_remarks,
    stillness_words,
)
from softrig.io.characters import load_character
from softrig.io.glb_writer import write_character_glb
from softrig.models.file import save_model
from softrig.project import Project, load_project
from softrig.rig.deformers import BlendShapes, RigChain
from softrig.rig.roles import ROLES

TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


@pytest.mark.parametrize(
    ("triangles", "open_edges", "crowded", "flat", "words"),
    [
        (TETRAHEDRON, 0, 0, 0, "closed"),
        (TETRAHEDRON[:3], 3, 0, 0, "3 open edges"),
        (np.vstack([TETRAHEDRON, [[0, 1, 4]]]), 2, 1, 0, "2 open edges, 1 crowded edge"),
        (np.vstack([TETRAHEDRON, [[1, 1, 2]]]), 0, 0, 1, "closed"),
        (np.zeros((0, 3), int), 0, 0, 0, "closed"),
    ],
)
def test_closedness_counts_edges(triangles, open_edges, crowded, flat, words):
    found = closedness(triangles)
    assert (found.open_edges, found.crowded_edges, found.degenerate) == (open_edges, crowded, flat)
    assert found.words() == words


def test_a_model_is_described_with_its_materials(tmp_path):
    body = beam()
    model = reduce_body(body, linear_modes(body, 3).shapes, notes={"made by": "a test"})
    path = tmp_path / "beam.softrig"
    save_model(model.with_material("body", young=12345.0, poisson=0.25), path)
    found = inspect_file(path)
    facts = dict(found.facts)
    assert facts["modes"] == "3"
    assert facts["note: made by"] == "a test"
    (title, _, rows) = found.tables[0]
    assert title == "Materials"
    assert rows[0][:3] == ("body", "1.234e+04 Pa", "0.25")
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0
    assert "anchored" in result.stdout


def test_a_character_is_described_with_its_parts_and_clips(tmp_path):
    path = tmp_path / "everything.glb"
    path.write_bytes(everything().glb())
    found = inspect_file(path)
    titles = [title for title, _, _ in found.tables]
    assert titles == ["Parts", "Clips"]
    assert dict(found.facts)["triangles"].replace(",", "").isdigit()
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0
    assert found.title.split()[0] in result.stdout


def test_a_scale_is_found_in_the_project_file_and_an_unlikely_size_is_a_problem(tmp_path):
    path = tmp_path / "hero.glb"
    write_character_glb(limb(scale=100.0), path)

    def told(*words: str) -> str:
        result = CliRunner().invoke(app, ["info", str(path), *words])
        assert result.exit_code == 0
        return " ".join(result.stdout.split())

    assert "! the character is" in told()
    assert "scale = 0.01" in told()
    assert "! the character" not in told("--scale", "0.01")
    path.with_suffix(".toml").write_text("scale = 0.01", encoding="utf-8")
    assert "scale 0.01 metres per unit, by hero.toml size 0.8 ×" in told()
    assert "! the character" not in told()
    assert "! the character is" in told("--scale", "1")


def test_what_can_be_read_is_listed():
    assert ".glb" in readable_endings()
    assert ".softrig" in readable_endings()


def test_parts_that_repeat_are_one_row_with_their_count(tmp_path):
    file = plain_tetrahedron(name="wheel")
    for number in range(3):
        file.add("nodes", mesh=0, name="wheel", translation=[2.0 * number + 2.0, 0, 0])
    file.add("nodes", mesh=0, name="spare", translation=[0, 3, 0])
    path = file.save(tmp_path / "cart.glb")
    found = inspect_file(path)
    rows = [row[:3] for row in found.tables[0][2]]
    assert rows == [("wheel", "soft", "4"), ("wheel × 3", "rigid", "4"), ("spare", "rigid", "4")]
    shown = " ".join(CliRunner().invoke(app, ["info", str(path)]).stdout.split())
    assert "wheel × 3" in shown
    assert "#2" not in shown
    assert found.legend in shown
    assert all(role in found.legend for role in ROLES)


def test_morphs_are_no_painted_maps_and_baked_ones_are_counted(tmp_path):
    character = limb()
    write_character_glb(character, tmp_path / "limb.glb")
    plain = load_character(tmp_path / "limb.glb")
    times, poses = plain.clip("bend").resample(5.0)
    wobble = np.random.default_rng(1).normal(size=(len(times), plain.rig.vertex_count, 3))
    motion = np.stack([plain.rig.positions(pose) for pose in poses]) + 0.01 * wobble
    options = GlbOptions(per_frame=True)
    write_motion(plain, "bend", times, motion, tmp_path / "baked.glb", name="bend.soft", options=options)
    facts = dict(inspect_file(tmp_path / "baked.glb").facts)
    assert facts["painted maps"] == "_softness"
    assert facts["morphs"] == f"smile, bend.soft × {len(times)} (each serves as a map, too)"
    none = dict(inspect_file(plain_tetrahedron().save(tmp_path / "plain.glb")).facts)
    assert none["painted maps"] == none["morphs"] == "none"


def test_corrections_are_named(tmp_path):
    path = everything().save(tmp_path / "everything.glb")
    assert dict(inspect_file(path).facts)["corrections"] == "bulge, far"


@pytest.mark.parametrize(("size", "scale", "proposed"), [(176.0, 1.0, "0.01"), (1.76, 0.01, None), (0.02, 0.01, "1")])
def test_a_model_of_another_unit_says_what_to_type(size, scale, proposed):
    model = replace(bar_model(), size=size, notes={"project": {"scale": scale}})
    told = [problem for problem in soft_problems(model) if "corner to corner" in problem]
    if proposed is None:
        assert told == []
    else:
        (line,) = told
        assert f"{size:g} m" in line
        assert line.endswith(f"--scale {proposed}")
        assert f"scale = {proposed} at the top" in line


def test_what_is_worth_a_pose_says_what_to_type(tmp_path):
    suggested = [{"name": name, "reason": "bases differ"} for name in ('clip "one" @ 0.43 s', "between rest and bent")]
    given = [{"parameters": {"lower.rotation.z": 0.7}, "name": "bent"}]
    clip = replace(bar_model().clips[0], name='clip "one"')
    notes = {"suggested poses": suggested, "project": {"mesh": {"tets": 700}, "poses": {"given": given}}}
    model = replace(bar_model(), clips=(clip,), notes=notes)
    assert soft_problems(model) == ()
    *_, told = soft_remarks(model)
    lines = told.partition(":\n")[2]
    (tmp_path / "hero.toml").write_text(lines, encoding="utf-8")
    poses = load_project(tmp_path / "hero.toml").poses
    assert poses.count == Project().poses.count + 1
    assert [(pose.name, pose.clip, pose.time) for pose in poses.given] == [
        ("bent", None, 0.0),
        (None, 'clip "one"', 0.43),
    ]
    assert "tets" not in lines
    nowhere = soft_remarks(replace(bar_model(), notes={"suggested poses": suggested[1:]}))
    assert not any("project file" in problem for problem in nowhere), "no clip passes there: nothing to type"


def test_remarks_do_not_look_like_problems(tmp_path, monkeypatch) -> None:
    """Neither after a build nor of the file: one begins with "!", the others are a list set in under their title."""
    suggested = [{"name": "nod @ 0.43 s", "reason": "bases differ"}]
    clip = replace(bar_model().clips[0], name="nod")
    errors = {"along clips": {"nod at 0.50 s": 0.32}}
    notes = {"suggested poses": suggested, "cubature": errors, "basis": {"compliance": {"mean": [0.3, 0.95]}}}
    model = replace(bar_model(), clips=(clip,), notes=notes)
    (problem,), (pose, lines, modes) = soft_problems(model), soft_remarks(model)
    assert "32 % off" in problem
    assert pose.startswith("worth a pose: nod @ 0.43 s")
    assert modes.endswith("more modes (basis.modes) help")
    told: list[str] = []
    monkeypatch.setattr("typer.echo", lambda text, **_: told.extend(text.splitlines()))
    tell_model(model, "Remarks, not problems:")
    assert [line for line in told if line.startswith("!")] == [f"! {problem}"]
    after = told[told.index("Remarks, not problems:") + 1 :]
    assert all(line.startswith("  ") for line in after)
    copied = "\n".join(line for line in after if line.startswith("      "))
    (tmp_path / "hero.toml").write_text(copied, encoding="utf-8")
    assert load_project(tmp_path / "hero.toml").poses.given[0].clip == "nod", "set in, they can still be copied"
    assert inspect_soft_character(model, "x").remarks == (pose, lines, modes)
    assert remark_lines(()) == []


def test_a_body_that_nothing_drives_is_told_of(tmp_path) -> None:
    path = tmp_path / "body.glb"
    plain_tetrahedron().save(path)
    alone = "there is no skeleton and no other rig, so nothing drives the flesh: pulls and wind alone can move it"
    assert any(problem.startswith(alone) for problem in inspect_file(path).problems)
    body = load_character(path)
    model = replace(bar_model(), rig=body.rig, clips=())
    assert any(problem.startswith(alone) for problem in soft_problems(model))
    assert stillness_words(model).startswith(alone)
    assert any(remark.startswith("there are no clips, so nothing was rehearsed") for remark in soft_remarks(model))
    moved = replace(bar_model(), rig=body.rig)
    assert any("nothing drives the flesh: its clips move it as a whole" in problem for problem in soft_problems(moved))
    for driven in (bar_model(), bar_model(morphs=True), bar_model(black_box=True)):
        assert not any("no skeleton" in problem for problem in soft_problems(driven))
        assert "may move nothing" in stillness_words(driven)
    points = body.rest_positions
    smile = BlendShapes(points, 0.1 * np.ones((1, *points.shape)), ("smile",))
    morphed = replace(bar_model(), rig=RigChain((smile, body.rig)), clips=())
    assert any("morphs alone bend the surface" in problem for problem in soft_problems(morphed))
    held = replace(bar_model(), fixed=np.ones_like(bar_model().fixed))
    assert stillness_words(held).startswith("all of it is held")
    # Parts on nodes of their own move against each other.
    two = plain_tetrahedron()
    two.add("nodes", mesh=0, translation=[2.0, 0.0, 0.0])
    two.save(path)
    assert not any("no skeleton" in problem for problem in inspect_file(path).problems)


def test_counts_and_masses_read_as_one_says_them() -> None:
    heavy = replace(bar_model(), vertex_mass=np.full(len(bar_model().vertex_mass), 8478.0 / len(bar_model().vertices)))
    facts = dict(soft_facts(heavy))
    assert facts["mass"] == "8,480 kg"
    assert facts["modes"] == "8 in 1 region, 2 poses"
    notes = {"fit": [{"inverted": 1.0, "error": 0.0}, {"inverted": 2.0, "error": 0.0}]}
    one, two = soft_problems(replace(bar_model(), notes=notes))
    assert "1 tet is inside out" in one
    assert "2 tets are inside out" in two


def test_long_facts_and_problems_go_on_below_themselves(tmp_path) -> None:
    path = tmp_path / "hero.softrig"
    clip = bar_model().clips[0]
    save_model(replace(bar_model(), clips=tuple(replace(clip, name=f"a clip called {k}") for k in range(9))), path)
    lines = CliRunner().invoke(app, ["info", str(path)]).output.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("  clips "))
    assert lines[first].index("a clip") == 23
    assert lines[first + 1].startswith(" " * 23)
    assert lines[first + 1][23] != " "


def test_forces_that_are_far_off_are_told_of() -> None:
    model = bar_model()
    for few, tets in ((True, model.mode_count - 1), (False, model.mode_count)):
        cubature = model.cubature
        chosen = {name: getattr(cubature, name)[:, :tets] for name in ("weights", "young", "poisson")}
        some = replace(cubature, tets=cubature.tets[:tets], **chosen)
        notes = {"cubature": {"along clips": {"nod at 0.20 s": 0.04, "nod at 0.50 s": 0.32}}}
        (told,) = soft_problems(replace(model, cubature=some, notes=notes))
        assert told.startswith(f"nod at 0.50 s: the {tets} chosen tets")
        assert "32 % off" in told
        assert ("cubature.count" in told) == few
    notes["cubature"]["along clips"] = {"nod at 0.20 s": 0.04}
    assert soft_problems(replace(model, notes=notes)) == ()


def test_forces_far_off_are_told_of_by_their_kind() -> None:
    errors = {"along clips": {"nod at 0.50 s": 0.32}}
    for model, kind in ((bar_model(), "mixed"), (mapped(bar_model()), "learned")):
        (told,) = soft_problems(replace(model, notes={"cubature": errors}))
        assert f"the {kind} stiffness" in told
    for contacts, springs in (([0, 3], True), ([0, 0], False), ([], False), (7, False), (["x", None], False)):
        notes = {"cubature": errors, "basis": {"contacts": contacts}}
        (told,) = soft_problems(replace(bar_model(), notes=notes))
        assert ("32 % off (contacts' springs included); " in told) == springs
        assert ("32 % off; " in told) == (not springs)
        (told,) = soft_problems(replace(mapped(bar_model()), notes=notes))
        assert "32 % off; " in told, "a learned stiffness is measured without them"


@pytest.mark.parametrize(
    "strange",
    [5, [0.3], "x", None, {}, {5: 0.3}, *({"a": bad} for bad in ("x", None, True, [0.3], np.nan, -np.inf, 10**400))],
)
def test_strange_errors_along_the_clips_are_left_out(strange) -> None:
    unseen = [{"gaussian": 0.01, "loads": 0.02}]
    notes = {"cubature": {"along clips": strange, "unseen": unseen}, "inertia": {"along clips": strange}}
    model = replace(bar_model(), notes=notes)
    assert soft_problems(model) == ()
    facts = dict(soft_facts(model))
    assert facts["force error"] == "at most 2.0 % on unseen deformations at the poses"
    assert "inertial error" not in facts
    if isinstance(strange, dict):
        strange = {**strange, "nod\x1b[31m\r\n" + "c" * 500: 0.4}
        model.notes["cubature"]["along clips"] = model.notes["inertia"]["along clips"] = strange
        (told,) = soft_problems(model)
        assert told.startswith("nod[31mccc")
        assert told.isprintable()
        assert len(told) < 250
        facts = dict(soft_facts(model))
        assert facts["force error"].endswith(", 40.0 % between them")
        assert facts["inertial error"].startswith("at most 40.0 %")


def test_a_stiffness_of_a_region_that_is_not_there_is_told_of() -> None:
    model = bar_model(regions=2)
    for strange in (5, [], None, {}, {model.region_names[0]: 2.0}):
        assert soft_problems(replace(model, notes={"project": {"simulation": {"stiffness": strange}}})) == ()
    names = {f"Belly{i}\x1b[0m": 2.0 for i in range(12)}
    (told,) = soft_problems(replace(model, notes={"project": {"simulation": {"stiffness": names}}}))
    assert "has no region Belly0[0m, " in told
    assert "… (12); its regions: region 0, region 1." in told
    assert told.isprintable()


def test_a_skin_whose_joints_are_called_nothing_known_says_so() -> None:
    def firm(model, **notes) -> str | None:
        return dict(soft_facts(replace(model, notes=notes))).get("firm")

    hint = "no hands, feet or head known by their joints' names; see firm under [material], or paint them"
    none: list[str] = []
    assert firm(bar_model(), **{"firm joints": none, "project": {}}) == hint
    assert firm(bar_model(), **{"firm joints": none, "project": {"material": {"young": 2e4}}}) == hint
    for material in ({"bony": False}, {"softness_map": "paint"}, {"stiffness_map": "paint"}, {"young": "young.npy"}, 5):
        assert firm(bar_model(), **{"firm joints": none, "project": {"material": material}}) is None
    assert firm(bar_model(black_box=True), **{"firm joints": none, "project": {}}) is None
    assert firm(bar_model(), project={}) is None, "made before joints were firm"
    assert "LeftHand" in (firm(bar_model(), **{"firm joints": ["LeftHand"], "project": {}}) or "")
    remarks = [
        soft_remarks(replace(bar_model(), notes={"firm joints": known, "project": {}})) for known in ([], ["LeftHand"])
    ]
    assert ["firm = [" in " ".join(told) for told in remarks] == [True, False]
    assert f"joints at the ends are {bar_model().rig.skeleton.names[-1]}" in " ".join(remarks[0])


def test_a_misspelt_ending_is_guessed_at_where_nothing_is_there(tmp_path):
    (tmp_path / "hero.softrig").touch()
    with pytest.raises(InputError, match=r"there is no such file, did you mean 'hero\.softrig'\?"):
        inspect_file(tmp_path / "hero.softrg")
    (tmp_path / "hero.softrg").touch()
    with pytest.raises(InputError, match=r"ending \.softrg: softrig reads .*\.softrig"):
        inspect_file(tmp_path / "hero.softrg")


def test_a_soft_character_is_described_with_its_poses():
    model = bar_model()
    found = inspect_soft_character(model, "bar.softrig")
    told = str(found)
    assert all(name in told for name in model.poses.names)
    assert f"{len(model.tets):,}" in told
    assert dict(found.facts)["modes"].split()[0] == str(model.mode_count)
    young = np.sort(model.cubature.young.ravel()) / 1e3
    assert dict(found.facts)["flesh"].startswith(f"Young's modulus {np.median(young):.3g} kPa, most of it ")
    same = replace(model, cubature=replace(model.cubature, young=np.full_like(model.cubature.young, 4e4)))
    assert dict(soft_facts(same))["flesh"] == "Young's modulus 40 kPa (of the chosen tets)"
    noted = replace(same, notes={"young": [8e3, 1.2e4, 3e4]})
    assert dict(soft_facts(noted))["flesh"] == "Young's modulus 12 kPa, most of it 8 to 30"
    for wrong in ("soft", [1.0, 2.0], [8e3, None, 3e4], [np.nan] * 3, [1.0, 2.0, np.inf], [3.0, 2.0, 1.0], [-1.0] * 3):
        assert dict(soft_facts(replace(same, notes={"young": wrong})))["flesh"].endswith("(of the chosen tets)")
