"""A body in a tree of domains in the viewer: pulled, poked, shaken, blown at and tuned."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from softrig.bases.modes import linear_modes
from softrig.bodies import divide
from softrig.dynamics import Rayleigh
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure
from softrig.viewer.opening import opened
from softrig.viewer.stage import Stage
from softrig.viewer.telling import hello, state
from viewer_for_tests import TICK

BEAM = box_tets((1.0, 0.1, 0.1), (12, 2, 2))


@cache
def tree(parts: int = 3) -> SubstructuredModel:
    number = (parts * BEAM.vertices[BEAM.elements].mean(axis=1)[:, 0]).astype(int)
    fixed = BEAM.vertices[:, 0] == 0.0
    body = divide(BEAM, number, young=2e7, poisson=0.3, density=1000.0, fixed=fixed, name="beam")
    return substructure(body, modes=6)


def simulated(model: SubstructuredModel) -> SubstructuredSimulation:
    return SubstructuredSimulation(model, 1.0 / 180.0, damping=Rayleigh(8.0, 1e-3))


def staged(thing) -> Stage:
    return Stage(opened(thing), tell=lambda *_: None, swap=lambda *_: None, swap_body=lambda *_: None)


@pytest.fixture
def made():
    stage = staged(simulated(tree()))
    yield stage
    stage.close()


def run(stage: Stage, ticks: int) -> np.ndarray:
    shown = []
    for _ in range(ticks):
        stage.advance(TICK)
        shown.append(stage.subject.soft_positions().copy())
    return np.array(shown)


def end_vertex(stage: Stage) -> int:
    return int(np.argmax(stage.subject.geometry().rest[:, 0]))


def test_z_up_is_shown_upright(made):
    shown = made.subject.geometry().rest
    np.testing.assert_allclose(shown[:, 0], BEAM.vertices[:, 0], atol=1e-6)
    np.testing.assert_allclose(shown[:, 1], BEAM.vertices[:, 2], atol=1e-6)
    np.testing.assert_allclose(shown[:, 2], -BEAM.vertices[:, 1], atol=1e-6)


def test_it_moves_as_the_simulation_by_itself(made):
    alone = simulated(tree())
    alone.v[0] = made.subject.simulation.v[0] = 1.0
    run(made, 30)
    alone.run(90)
    np.testing.assert_allclose(made.subject.soft_positions()[:, 1], alone.positions()[:, 2], atol=1e-6)
    assert np.abs(made.subject.soft_positions() - made.subject.plain_positions()).max() > 1e-4


def test_a_pull_reaches_its_goal_and_lets_go(made):
    vertex = end_vertex(made)
    start = made.subject.geometry().rest[vertex].astype(np.float64)
    goal = start + np.array([0.0, 0.06, 0.0])
    made.pull("hand", 1, vertex, goal)
    held = run(made, 150)[-1][vertex]
    assert np.linalg.norm(held - goal) < 0.75 * np.linalg.norm(start - goal)
    assert held[1] > start[1] + 0.01
    made.touch.let_go()
    assert np.linalg.norm(run(made, 200)[-1][vertex] - start) < 0.003
    assert made.subject.grips == []


def test_foreseeing_changes_nothing(made):
    subject = made.subject
    subject.simulation.v[:] = 0.01
    run(made, 3)
    q, time = subject.simulation.q.copy(), subject.simulation.time
    soft, plain = subject.foresee(np.array([0.0, 0.02, 0.0]), np.array([end_vertex(made)]))
    assert np.array_equal(subject.simulation.q, q)
    assert subject.simulation.time == time
    assert not subject.simulation.gravity.any()
    assert soft.shape == plain.shape == (1, 3)


def test_a_shaken_root_leaves_the_tip_behind(made):
    vertex = end_vertex(made)
    subject = made.subject
    for step in range(1, 6):
        subject.move(np.array([0.0, 0.004 * step**2, 0.0]))
    soft = subject.newest_positions()[vertex].astype(np.float64)
    assert soft[1] < subject.plain_positions(subject._now.pose)[vertex, 1] - 1e-3


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_wind_blows_the_way_it_says(made, direction):
    made.tuning.now = made.tuning.scope.changed(made.tuning.now, "wind", [0.0, 0.0, 200.0 * direction])
    made.subject.tune(made.tuning.now)
    run(made, 90)
    moved = made.subject.soft_positions() - made.subject.plain_positions()
    assert direction * moved[end_vertex(made), 2] > 1e-3
    made.subject.tune(made.tuning.scope.changed(made.tuning.now, "wind", [0.0, 0.0, 0.0]))
    assert made.subject.simulation.wind is None


def test_gravity_and_stiffness_are_tuned(made):
    subject, scope = made.subject, made.tuning.scope
    settings = scope.changed(made.tuning.now, "gravity", "full")
    subject.tune(settings)
    run(made, 400)
    sag = subject.geometry().rest[:, 1].astype(float) - subject.soft_positions()[:, 1]
    stiff = scope.changed(settings, "stiffness", 4.0)
    subject.tune(stiff)
    run(made, 400)
    less = subject.geometry().rest[:, 1].astype(float) - subject.soft_positions()[:, 1]
    assert 0.2 * sag.max() < less.max() < 0.3 * sag.max()  # a quarter, as long as all is nearly linear
    assert subject.settings().stiffness == dict.fromkeys(subject.regions, 4.0)
    assert subject.settings().gravity == "full"


def test_damping_comes_back_as_it_was_set(made):
    settings = made.tuning.scope.changed(made.tuning.now, "damping_ratio", 0.3)
    made.subject.tune(settings)
    assert made.subject.settings().damping_ratio == pytest.approx(0.3)


def test_the_damping_ratio_is_that_of_the_whole_body(made):
    full = FullBody(BEAM, Material(2e7, 0.3, 1000.0), fixed=BEAM.vertices[:, 0] == 0.0)
    assert made.subject._slowest == pytest.approx(np.sqrt(linear_modes(full, 1).eigenvalues[0]), rel=0.1)


def test_what_the_simulation_had_stays_until_it_is_tuned():
    simulation = simulated(tree())
    simulation.gravity = (0.0, 0.0, -3.7)
    simulation.wind = (0.0, 2.0, 0.0)
    stage = staged(simulation)
    assert stage.subject.settings().gravity == "full"
    stage.subject.tune(stage.tuning.scope.changed(stage.tuning.now, "stiffness", 2.0))
    run(stage, 2)
    assert simulation.gravity.tolist() == [0.0, 0.0, -3.7]
    assert simulation.wind[0].tolist() == [0.0, 2.0, 0.0]
    assert simulation.damping == Rayleigh(8.0, 1e-3)
    stage.close()


def test_a_step_that_is_longer_than_a_frame_can_be_pulled():
    stage = staged(SubstructuredSimulation(tree(), 1.0 / 30.0, damping=Rayleigh(8.0, 1e-3)))
    vertex = end_vertex(stage)
    start = stage.subject.geometry().rest[vertex].astype(np.float64)
    stage.pull("hand", 1, vertex, start + np.array([0.0, 0.05, 0.0]))
    assert run(stage, 90)[-1][vertex][1] > start[1] + 0.01
    stage.close()


def test_modes_stay(made):
    with pytest.raises(InputError, match="modes it was made with"):
        made.tuning.scope.changed(made.tuning.now, "modes", 3)
    with pytest.raises(InputError, match="not shown one by one"):
        made.sights.mode(0, None)
    assert hello(made, 1)["modes"] == {"now": tree().size, "most": tree().size, "stay": True}
    assert state(made)["settings"]["modes"] == tree().size


def test_many_domains_are_tuned_by_shape():
    subject = opened(tree()).subject
    assert subject.regions == tuple(domain.name for domain in tree().domains)
    assert len(opened(tree(12)).subject.regions) == 12
    many = opened(tree(24)).subject
    assert many.regions == ("body",)  # each of them has a shape of its own
    many.tune(many.scope().changed(many.settings(), "stiffness", 2.0))
    assert (many.simulation._tables.stiffness == 2.0).all()


def test_a_vertex_that_is_none_is_refused(made):
    with pytest.raises(InputError, match="vertices"):
        made.pull("hand", 1, 10**6, np.zeros(3))


def test_the_built_in_flower_opens_by_its_name():
    found = opened("flower")
    assert found.subject.name == "flower"
    assert found.subject.about()["domains"] == 12
    # Colours of bodies are sRGB, as drawn: leaves are green, not washed out.
    colours = found.subject.geometry().colours.astype(int)
    greenest = colours[np.argmax(colours[:, 1] - colours[:, 0])]
    assert greenest[1] > 2 * greenest[2]
