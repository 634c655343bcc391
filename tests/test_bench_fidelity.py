"""Reduced against full motion: the rows of `softrig bench fidelity` and `softrig compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from pose_models_for_tests import bar_model, followed
from softrig.bench import fidelity, truth
from softrig.bench.cases import CASES, LIMB, OTHERS, Case
from softrig.bench.conclusions import ALONE, conclusion, told_row, why_alone
from softrig.bench.record import Record, Row
from softrig.bench.run import show_turned
from softrig.characters import built_in
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, ModeCountError, Notice, SolverError
from softrig.machine import this_machine
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors
from softrig.pipeline.telling import COSTS as BUILD_COSTS
from softrig.project import Project


def test_the_best_that_shapes_can_do():
    random = np.random.default_rng(5)
    model = followed(bar_model(poses=4, modes=5, basis_poses=1))
    alone, shapes, poses = replace(model, followers=None), model.shapes[0], model.poses.parameters[:3]
    inside = np.einsum("nia,ka->kni", shapes, random.standard_normal((3, 5)))
    assert truth.best_error(inside, alone, poses) < 1e-12
    beyond = random.standard_normal((3, len(shapes), 3))
    root = np.sqrt(model.vertex_mass)[:, None]
    rows = (root[:, :, None] * shapes).reshape(-1, 5)
    fits = [np.linalg.lstsq(rows, (root * field).ravel(), rcond=None) for field in beyond]
    expected = np.sqrt(sum(fit[1][0] for fit in fits) / ((root * beyond) ** 2).sum())
    assert truth.best_error(beyond, alone, poses) == pytest.approx(expected)
    left = 0.0
    for p, field in zip(poses, beyond, strict=True):
        drawn = np.stack([model.displacement(p, unit / model.mode_scales(p)) for unit in np.eye(5)], axis=2)
        seen = model.vertex_rotations(p).transpose(0, 2, 1) @ drawn
        rows = (root[:, :, None] * seen).reshape(-1, 5)
        left += np.linalg.lstsq(rows, (root * field).ravel(), rcond=None)[1][0]
    expected = np.sqrt(left / ((root * beyond) ** 2).sum())
    assert truth.best_error(beyond, model, poses) == pytest.approx(expected)


def test_how_far_tets_turn():
    random = np.random.default_rng(3)
    rest, tets = random.standard_normal((8, 3)), np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    turn = quaternion_matrices(quaternions_from_vectors(np.array([0.3, -0.4, 1.2])))
    moved = rest.copy()
    moved[:4] = rest[:4] @ turn.T + 0.7
    np.testing.assert_allclose(truth.turned_by(tets, rest, moved), [1.3, 0.0], atol=1e-6)
    # Stretching is no turn.
    np.testing.assert_allclose(truth.turned_by(tets, rest, rest * [1.0, 2.0, 0.5]), 0.0, atol=1e-6)


def test_a_case_with_a_goal_states_the_other_goals():
    case = CASES[0]
    ours = Row("a: ours", "%", 11.0, also={"against a converged step, %": 11.5, "frequency, % off": -0.4})
    converged, frequency = fidelity._other_goals(case, ours)
    assert (converged.what, converged.ours, converged.goal) == ("a: ours, against a converged step", 11.5, 12.0)
    assert (frequency.what, frequency.ours, frequency.goal) == ("a: ours, frequency", 0.4, 1.0)
    assert fidelity._other_goals(replace(case, goal=LIMB), ours)[0].goal == 18.0
    (unknown,) = fidelity._other_goals(case, replace(ours, also={}))
    assert (unknown.what, unknown.ours, unknown.goal) == ("a: ours, frequency", None, 1.0), "not found is not met"
    assert unknown.note == "no frequency to be found"
    assert fidelity._other_goals(replace(case, goal=None), ours) == []


def test_a_case_may_be_called_otherwise():
    names = [case.what for case in OTHERS]
    assert len(set(names)) == len(names)
    assert "x eight times as firm without 'shake'" in names


def test_no_coarse_mesh_says_why_and_loses_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise InputError("young.npy: it was made for another mesh")

    monkeypatch.setattr(truth, "equal_cost_body", refused)
    known = object.__new__(fidelity.Truth)
    known.damping = Rayleigh(0.0, 0.0)
    row = known.coarse_row("a coarse mesh", None, Project(), tmp_path)
    assert row.ours is None
    assert row.note == "young.npy: it was made for another mesh"


def compared(ours: float, alone: float, best: float | None) -> Record:
    also = {} if best is None else {"best of these shapes, %": best}
    rows = [Row("ours", "%", ours, also=also), Row("the same modes alone, exact forces", "%", alone)]
    return Record("compare", "An example", this_machine(), rows, sizes={"hero": {"modes": 100}})


def test_a_row_is_told_in_a_line_or_why_it_has_no_figure() -> None:
    assert told_row(Row("ours", "%", 7.291)) == "ours: 7.29 %"
    assert told_row(Row("a coarse mesh", "%", None, note="no mesh costs so little")) == (
        "a coarse mesh: no mesh costs so little"
    )
    assert told_row(Row("a coarse mesh", "%", None)) == "a coarse mesh: not measured"


def test_the_conclusion_names_what_limits() -> None:
    held = conclusion(compared(6.91, 5.0, 1.09))
    assert held.startswith(
        "The flesh is 6.91 % of its motion off the full simulation; its 100 modes and what follows them could come "
        "as near"
    )
    assert "more of them hardly help" in held
    assert "Poses or clips" in held
    few = conclusion(compared(6.91, 9.0, 4.2))
    assert "as near as 4.2 %. More modes (--modes" in few
    assert "Poses" not in few
    assert conclusion(compared(6.91, 9.0, None)) == "The flesh is 6.91 % of its motion off the full simulation."


def test_the_footnote_fits_the_table_above_it() -> None:
    assert "err more than ours" in why_alone(compared(6.0, 9.0, 4.0).rows)
    assert "they hold nearly all of the motion" in why_alone(compared(6.0, 5.0, 1.0).rows)
    although = why_alone(compared(6.0, 5.0, 4.0).rows)
    assert "err less than ours" in although
    assert "nearly all" not in although
    assert why_alone(compared(6.0, 6.0, 4.0).rows) == ""
    every = Row("ours, forces of every tet", "%", 5.0)
    assert "More of them (count under [cubature]" in why_alone([*compared(6.0, 5.0, 4.0).rows, every])
    assert why_alone([*compared(4.5, 5.0, 4.0).rows, every]) == "", "by chance"
    assert why_alone([*compared(5.0001, 5.0, 4.0).rows, every]) == "", "the same motion"
    leaning = compared(6.0, 5.0, 1.0)
    assert "between the poses" in conclusion(leaning)
    leaning = replace(leaning, rows=[*leaning.rows, every])
    assert "between the poses" not in conclusion(leaning)
    assert "more tets that are asked for their force" in conclusion(leaning)
    assert "err more than ours" in why_alone([*compared(6.0, 9.0, 4.0).rows, every])
    assert why_alone([Row("ours", "%", None, note="did not come through")]) == ""


@pytest.mark.parametrize("converged", [False, True])
def test_the_converged_simulation_is_run_where_it_is_asked_for(monkeypatch, converged: bool) -> None:
    def rows(case, _cache, **asked):
        assert asked["converged"] is converged
        return [Row(f"{case.what}: ours", "%", 5.0), Row(f"{case.what}: {ALONE}", "%", 7.0)], {case.what: {"modes": 3}}

    monkeypatch.setattr(fidelity, "case_rows", rows)
    record = fidelity.compare_clip(built_in("arm"), "bend", converged=converged)
    assert ("720 Hz" in record.remark) == converged
    assert record.remark.endswith("beside them.")
    if not converged:
        fidelity.compare_clip(built_in("arm"), "bend")  # nor is it where nothing is said


def test_a_single_clip_that_is_left_out_is_told_of(monkeypatch) -> None:
    monkeypatch.setattr(fidelity, "case_rows", lambda case, *_, **__: ([Row(f"{case.what}: ours", "%", 5.0)], {}))
    arm = built_in("arm")
    single = replace(arm, clips=arm.clips[:1])
    with pytest.warns(Notice, match=f"'{arm.clips[0].name}' is the only clip and is left out.*--seen"):
        fidelity.compare_clip(single, arm.clips[0].name)
    fidelity.compare_clip(single, arm.clips[0].name, unseen=False)


@pytest.mark.parametrize("width", [80, 130])
def test_many_ways_stand_whole_in_a_narrow_terminal(width: int) -> None:
    ways = [f"our way number {k}, exact forces" for k in range(11)]
    rows = [Row(way, "%", 10.0 + k, also={"against a converged step, %": 30.0 + k}) for k, way in enumerate(ways)]
    rows.append(Row("a coarse mesh", "%", None, also={"a step, over ours": 2.0}, note="too coarse"))
    console = Console(width=width, record=True, file=StringIO())
    show_turned(console, Record("compare", "An example", this_machine(), rows, "A remark."))
    told = console.export_text()
    assert "…" not in told, "nothing is cut off"
    for word in ("against a converged step, %", *(str(30 + k) for k in range(11)), "a step, over ours", "too coarse"):
        assert word in told, word
    assert told.count("An example") == told.count("A remark.") == 1
    assert told.count("a step, over ours") == 1, "only where there is one"


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb
def test_fidelity_rows_state_all_measures_beside_the_baselines(tmp_path):
    small = Project().changed(
        mesh={"tets": 400}, basis={"modes": 12, "regions": 2, "contact": False, "rehearsal": 0.5}, poses={"count": 2}
    )
    small = small.changed(material={"young": "young.npy"})  # a file of the project, which every build finds
    np.save(tmp_path / "young.npy", np.full(built_in("arm").rig.vertex_count, 30e3))
    case = Case("arm", "bend", 15.0, small, folder=tmp_path)
    told: dict[str, list[float]] = {}

    @contextmanager
    def stage(title: str) -> Iterator[Callable[[int, int], None]]:
        shares = told.setdefault(title, [])
        yield lambda done, total: shares.append(done / total)

    rows, sizes = fidelity.case_rows(case, tmp_path, converged=False, stage=stage)
    own = [*BUILD_COSTS, "Simulating in full", "Comparing (compiles the first time)"]
    assert list(told)[: len(own)] == own
    assert list(told)[-1] == "Comparing the baselines"
    assert len(told) <= 18, "all lines of progress stand on a small terminal"
    for title in list(told)[len(BUILD_COSTS) :]:
        assert told[title] == sorted(told[title]), f"{title}: never goes back"
        assert told[title][-1] == 1.0, title
    assert list(sizes) == ["arm without 'bend'"]
    by_name = {row.what.split(": ")[1]: row for row in rows}
    assert len(by_name) == 16
    linear, body = by_name.pop("ours, where all is linear"), by_name.pop("the full body, if it were linear")
    # What is not linear is most of what is off here, and ours knows little of it.
    assert 0.0 < linear.ours < by_name["ours"].ours
    assert 1.0 < body.ours < by_name["ours"].ours
    assert by_name["ours, maps that know the clip"].ours != by_name["ours"].ours
    assert by_name["ours"].ours != by_name["ours, nothing follows the modes"].ours
    other = by_name.pop("ours, frequency")
    assert other.ours == abs(by_name["ours"].also["frequency, % off"])
    assert other.goal == 1.0
    coarse = by_name.pop("a coarse full mesh of equal cost")
    assert coarse.ours > coarse.also["ours on the surface, %"] > 0.0
    assert coarse.also["tets"] < 450  # as many as asked for, more or less
    # Whichever it is on this machine, it is said.
    assert (coarse.also["a step, over ours"] > 1.0) == ("no mesh costs so little" in coarse.note)
    assert {"peak, of the true one", "frequency, % off"} <= set(coarse.also)
    for row in by_name.values():
        assert 0.0 < row.ours < 100.0
        assert {"peak, of the true one", "frequency, % off", "volume drift, %"} <= set(row.also)
        assert 1.0 < row.also["flesh turns, °"] < 60.0
        # The clip itself puts the forearm into the upper arm; flesh that moves changes that by little.
        assert abs(row.also["overlap added, ml"]) < row.also["true overlap, ml"]
    assert 0.0 < by_name["ours"].also["best of these shapes, %"] < by_name["ours"].ours
    assert "best of these shapes, %" not in by_name["the paper's recipe"].also
    assert by_name["ours"].ours < by_name["the paper's recipe"].ours
    assert by_name["ours"].ours < by_name["one PCA basis in the world, exact forces"].ours
    assert by_name["ours"].ours < by_name["basis of the neutral pose, exact forces"].ours
    assert abs(by_name["ours"].also["frequency, % off"]) < 20.0
    few, _ = fidelity.case_rows(replace(case, variants=False, rivals=False), tmp_path, converged=False)
    assert few == rows[:5]
    rivals, _ = fidelity.case_rows(replace(case, variants=False), tmp_path, converged=False)
    told = [row.what.split(": ")[1] for row in rivals[5:]]
    assert told[-1] == "a coarse full mesh of equal cost"
    assert told == [row.what.split(": ")[1] for row in rows[-len(told) :]]
    assert not any(name.startswith("ours") for name in told), "no variant of ours among the other methods"
    assert abs(by_name["ours"].ours - by_name["ours, forces of every tet"].ours) < 1.0, "few tets are enough"


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb
def test_what_is_swept_stands_beside_other_methods_of_its_size(tmp_path: Path, monkeypatch) -> None:
    small = Project().changed(
        mesh={"tets": 400}, basis={"modes": 45, "regions": 2, "contact": False, "rehearsal": 0.0}, poses={"count": 2}
    )
    case = Case("arm", "bend", 15.0, small)
    projects = dict(fidelity.swept_projects(case))
    assert list(projects) == [
        "r = 10",
        "r = 25",
        "r = 50",
        "r = 100",
        "r = 200",
        "1 pose",
        "2 poses",
        "4 poses",
        "8 poses",
    ]
    assert projects["r = 25"].basis.modes == 25
    assert projects["8 poses"].poses.count == 8
    assert projects["8 poses"].basis.modes == 45
    usual = case.project.changed(basis={"modes": 100})
    assert "2 poses" not in dict(fidelity.swept_projects(replace(case, project=usual))), "r = 100 has as many"

    rows, sizes = fidelity._swept((case, "r = 10", projects["r = 10"], tmp_path))
    name = "arm, r = 10, without 'bend'"
    assert list(sizes) == [name]
    assert sizes[name]["modes"] == 10
    told = [row.what.removeprefix(f"{name}: ") for row in rows]
    assert told[:2] == ["ours", ALONE]
    assert told[2:] == [
        "one PCA basis in bind space, exact forces",
        "one PCA basis in the world, exact forces",
        "basis of the neutral pose, exact forces",
        "the paper's recipe",
        "the paper's recipe, exact forces",
    ]
    assert rows[0].also["step, ms"] > 0.0
    assert rows[0].ours < min(row.ours for row in rows[2:])

    def no_neutral(case, project, *rest):
        if project.basis.between_poses == "neutral":
            raise ModeCountError("30 modes of which 12 are independent of each other")
        return built(case, project, *rest)

    few, _ = fidelity._swept((replace(case, rivals=False), "r = 10", projects["r = 10"], tmp_path))
    assert few[1:] == [rows[1], *rows[-2:]], "the paper's recipe alone"
    built = fidelity._built
    monkeypatch.setattr(fidelity, "_built", no_neutral)
    some, _ = fidelity._swept((case, "r = 10", projects["r = 10"], tmp_path))
    assert [row.what for row in some] == [row.what for row in rows]
    assert [row.what.removeprefix(f"{name}: ") for row in some if row.ours is None] == [told[4]]
    assert "12 are independent" in some[4].note

    def diverges(*_, **__):
        raise SolverError("the step at 0.5 s diverged")

    monkeypatch.setattr(fidelity, "Truth", diverges)
    ((lost,), none) = fidelity._swept((case, "r = 10", projects["r = 10"], tmp_path))
    assert (lost.what, lost.ours, none) == (f"{name}: ours", None, {})
    assert "0.5 s diverged" in lost.note


def test_a_case_whose_full_simulation_fails_costs_its_own_rows_only(tmp_path, monkeypatch):
    def fails(case, cache, **_):
        if case.clip == "walk":
            raise SolverError("the step at 0.5 s diverged")
        return [Row(f"{case.what}: ours", "%", 5.0)], {case.what: {"tets": 1}}

    monkeypatch.setattr(fidelity, "case_rows", fails)
    monkeypatch.setattr(fidelity, "worker_count", lambda _: 1)
    record = fidelity._cases("fidelity", "title", CASES, lambda *_: None)
    lost = [row for row in record.rows if row.ours is None]
    assert [row.what for row in lost] == ["gorilla without 'walk'"]
    assert "0.5 s diverged" in lost[0].note
    assert len(record.rows) == len(CASES)
