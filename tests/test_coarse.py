"""The coarse full body that is set beside a reduced one: its mesh, its cost, and its motion on the drawn surface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from characters_for_tests import limb
from softrig.errors import InputError
from softrig.fidelity import trajectory_error
from softrig.figures.coarse import full_run
from softrig.models import small
from softrig.models.moving import MovingIntegrator
from softrig.models.stepper import Stepper
from softrig.pipeline import coarse
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.coarse import CoarseBody, coarse_body, equal_cost_body, full_step_seconds, on_surface
from softrig.pipeline.compare import default_damping, full_trajectory
from softrig.pipeline.timing import moving_carriers
from softrig.project import Project

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

SMALL = Project().changed(
    mesh={"tets": 1500},
    basis={"modes": 12, "regions": 1, "contact": False, "derivatives": 4, "rehearsal": 0.0},
    poses={"count": 2},
    material={"preset": "fat"},
)
PER_TET = 1e-6
"""Seconds that a tet costs in tests that need a cost they know."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def built(cache: Path) -> Built:
    return build_parts(limb(), SMALL, cache=cache, jobs=1)


@pytest.fixture
def known_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "full_step_seconds", lambda body, damping: PER_TET * len(body.model.tets))


def test_a_coarse_body_follows_the_project_on_another_mesh(built: Built) -> None:
    body = coarse_body(limb(), SMALL, 500)
    assert 300 < len(body.model.tets) < 800
    assert body.fabric.young.shape == (2, len(body.model.tets))
    assert np.array_equal(body.model.poses.parameters, built.model.poses.parameters)
    assert body.model.vertex_mass.sum() == pytest.approx(built.model.vertex_mass.sum(), rel=0.05)
    # Both carry the drawn surface: a field that is linear in space arrives as it is.
    wanted = limb().rest_positions @ np.diag([0.1, 0.2, 0.3])
    for model in (body.model, built.model):
        found = on_surface(model, (model.vertices @ np.diag([0.1, 0.2, 0.3]))[None])[0]
        assert np.abs(found - wanted).max() < 1e-9


def test_the_coarser_the_mesh_the_farther_off_is_its_surface(built: Built) -> None:
    character, damping = limb(), default_damping(built)
    _, poses = character.clip("bend").resample(60.0)
    poses = poses[:40]
    runs = {tets: full_run(coarse_body(character, SMALL, tets), poses, damping) for tets in (200, 700, 1500)}
    u = full_trajectory(built, poses, 60.0, damping=damping, iterations=1)
    truth = on_surface(built.model, u)
    errors = {tets: trajectory_error(run.surface, truth, character.areas) for tets, run in runs.items()}
    assert errors[1500] < 1e-9  # the same mesh
    assert errors[1500] < errors[700] < errors[200]
    assert runs[200].tets < runs[700].tets
    assert 0.0 < runs[200].seconds < runs[1500].seconds


@pytest.mark.usefixtures("known_cost")
def test_the_finest_mesh_within_the_cost_is_found(built: Built, cache: Path) -> None:
    found = equal_cost_body(built, SMALL, budget=600 * PER_TET, cache=cache)
    tets = len(found.body.model.tets)
    assert found.is_met
    assert found.seconds == PER_TET * tets <= found.budget == 600 * PER_TET
    assert tets == max(count for count, _ in found.tried if count <= 600)
    assert tets > 450
    assert 2 < len(found.tried) <= coarse.TRIES + 1


@pytest.mark.usefixtures("known_cost")
def test_where_nothing_is_cheap_enough_the_coarsest_is_given_and_said(built: Built, cache: Path) -> None:
    found = equal_cost_body(built, SMALL, budget=10 * PER_TET, cache=cache)
    assert not found.is_met
    assert found.tried == ((len(found.body.model.tets), found.seconds),)


@pytest.mark.usefixtures("known_cost")
def test_meshes_that_cannot_be_simulated_are_passed_over(
    built: Built, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(character: object, project: object, tets: int, **_: object) -> CoarseBody:
        if tets < least:
            raise InputError(f"{tets} are too few")
        return body

    body = coarse_body(limb(), SMALL, 500, cache=cache)
    monkeypatch.setattr(coarse, "coarse_body", picky)
    least = 200
    assert equal_cost_body(built, SMALL, budget=PER_TET).body is body
    least = 10_000
    with pytest.raises(InputError, match="no mesh of 100 to 1,100 tets can be simulated: 1100 are too few"):
        equal_cost_body(built, SMALL, budget=PER_TET)


def test_costs_are_measured(built: Built, cache: Path) -> None:
    """By default against the reduced step; a second a step is enough for any of these meshes."""
    found = equal_cost_body(built, SMALL, cache=cache)
    assert 0.0 < found.budget < 0.1
    assert found.is_met == (found.seconds <= found.budget)
    rich = equal_cost_body(built, SMALL, budget=1.0, cache=cache)
    assert rich.is_met
    assert len(rich.tried) == coarse.TRIES + 1
    assert len(rich.body.model.tets) > 3 * rich.tried[0][0]


def test_steps_are_timed_along_a_clip(built: Built) -> None:
    stepper = Stepper(built.model, damping=default_damping(built))
    moments = moving_carriers(stepper, built.model, 30)
    assert len(moments) == 30
    values, rates, _ = (np.stack(parts) for parts in zip(*moments, strict=True))
    assert (np.abs(np.diff(values, axis=0)).max(axis=1) > 0.0).all()
    # The rates belong to the values: differences over a step of 1/180 s, midway.
    steps = 180.0 * np.diff(values, axis=0)
    assert np.abs(steps - 0.5 * (rates[1:] + rates[:-1])).max() < 0.1 * np.abs(rates).max()
    still = moving_carriers(stepper, replace(built.model, clips=()), 3)
    assert not np.stack([speed for _, speed, _ in still]).any()
    # A clip of a single moment moves nothing either.
    pose = replace(built.model.clips[0], tracks=(), duration=0.0)
    assert len(moving_carriers(stepper, replace(built.model, clips=(pose,)), 3)) == 3


def test_a_step_that_stands_still_is_timed_with_all_its_work(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing moves without a clip; a step that finds nothing to solve looks cheap. The compiled one always solves."""
    solved = []
    solve = MovingIntegrator._solve
    monkeypatch.setattr(MovingIntegrator, "_solve", lambda self, *given: solved.append(1) or solve(self, *given))
    body = coarse_body(replace(limb(), clips=()), SMALL.changed(poses={"count": 1}), 300)
    assert full_step_seconds(body, default_damping(built)) > 0.0
    assert not solved
    monkeypatch.setattr(small, "MOST_UNKNOWNS", 0)
    assert full_step_seconds(body, default_damping(built)) > 0.0
    assert len(solved) >= coarse.TIMED_FULL - 1
