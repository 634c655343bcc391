"""A plain reduced body in the viewer: pulled, poked, shaken and tuned, without a rig."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from softrig.bases.derivatives import derivative_basis
from softrig.dynamics import Rayleigh
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.meshing import box_bricks
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.viewer.opening import opened
from softrig.viewer.protocol import decode
from softrig.viewer.stage import Stage
from softrig.viewer.telling import hello, state
from viewer_for_tests import TICK


@cache
def beam() -> FullBody:
    box = box_bricks((1.0, 0.1, 0.1), (10, 2, 2))
    right = box.vertices[box.elements].mean(axis=1)[:, 0] > 0.5
    mesh = VolumeMesh.build(box.vertices, box.elements, groups=right.astype(int), group_names=("left", "right"))
    return FullBody(mesh, Material(young=1e8, poisson=0.3, density=1000.0), fixed=mesh.vertices[:, 0] == 0.0)


@cache
def reduced_beam():
    return reduce_body(beam(), derivative_basis(beam(), size=10, modes=5).shapes)


@pytest.fixture
def simulation() -> ReducedSimulation:
    return ReducedSimulation(reduced_beam(), step=1e-3, damping=Rayleigh(8.0, 1e-4))


@pytest.fixture
def made(simulation):
    stage = Stage(
        opened(simulation, body=beam()), tell=lambda *_: None, swap=lambda *_: None, swap_body=lambda *_: None
    )
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
    rest = reduced_beam().surface_rest
    shown = made.subject.geometry().rest
    np.testing.assert_allclose(shown[:, 1], rest[:, 2], atol=1e-6)
    np.testing.assert_allclose(shown[:, 2], -rest[:, 1], atol=1e-6)
    np.testing.assert_allclose(made.subject.tet_positions()[:, 1], reduced_beam().vertices[:, 2], atol=1e-6)


def test_it_moves_as_the_simulation_by_itself(made, simulation):
    alone = ReducedSimulation(reduced_beam(), step=1e-3, damping=Rayleigh(8.0, 1e-4))
    alone.v[0] = simulation.v[0] = 1.0
    run(made, 30)
    alone.run(500)
    np.testing.assert_allclose(made.subject.soft_positions()[:, 1], alone.surface_positions()[:, 2], atol=1e-6)
    assert np.abs(made.subject.soft_positions() - made.subject.plain_positions()).max() > 1e-4


def test_a_pull_bends_it_and_it_swings_back(made):
    vertex = end_vertex(made)
    start = made.subject.soft_positions()[vertex].astype(float)
    made.pull(0, "a", vertex, start + np.array([0.0, 0.05, 0.0]))
    run(made, 60)
    assert 0.01 < made.subject.soft_positions()[vertex][1] - start[1] < 0.06
    made.touch.release(0, "a")
    run(made, 600)
    np.testing.assert_allclose(made.subject.soft_positions()[vertex], start, atol=1e-4)


def test_a_ball_pushes_it(made):
    vertex = end_vertex(made)
    start = made.subject.soft_positions()[vertex].astype(float)
    made.poke(0, start + np.array([0.0, 0.03, 0.0]), 0.06)
    run(made, 60)
    assert made.subject.soft_positions()[vertex][1] < start[1] - 0.005
    made.poke(0, None, 0.0)
    run(made, 600)
    np.testing.assert_allclose(made.subject.soft_positions()[vertex], start, atol=1e-4)


def test_shaking_its_anchors_swings_it(made):
    made.posing.move_root(np.array([0.0, 0.1, 0.0]))
    run(made, 12)
    vertex = end_vertex(made)
    lag = made.subject.plain_positions()[vertex][1] - made.subject.soft_positions()[vertex][1]
    assert lag > 1e-3, "the free end lags behind"
    run(made, 600)
    np.testing.assert_allclose(made.subject.soft_positions() - made.subject.geometry().rest, _all(made, 0.1), atol=1e-4)


def test_stiffness_by_group_damping_gravity_and_modes(made, simulation):
    scope = made.tuning.scope
    assert scope.regions == ("left", "right")
    assert made.tuning.now.stiffness == {"left": 1.0, "right": 1.0}
    made.tuning.change("gravity", "full")
    run(made, 900)
    sagged = made.subject.soft_positions()[end_vertex(made)][1]
    made.tuning.change("stiffness", 2.0)
    made.tuning.change("damping_ratio", 0.5)
    run(made, 900)
    stiff = made.subject.soft_positions()[end_vertex(made)][1]
    rest = made.subject.geometry().rest[end_vertex(made)][1]
    assert rest - stiff == pytest.approx(0.5 * (rest - sagged), rel=0.05)
    assert made.subject.settings().damping_ratio == pytest.approx(0.5)
    made.tuning.change("modes", 4)
    run(made, 5)
    assert made.subject.simulation.model.size == 4
    assert np.isfinite(run(made, 30)).all()
    while made.tuning.can_undo:
        made.tuning.undo()
    run(made, 1500)
    assert made.subject.simulation.model.size == 10
    np.testing.assert_allclose(made.subject.soft_positions(), made.subject.geometry().rest, atol=2e-4)


def test_energy_and_what_a_page_is_told(made):
    made.subject.simulation.v[0] = 0.2
    run(made, 5)
    energy = made.numbers()["energy"]
    assert energy["kinetic"] + energy["elastic"] > 1e-4
    greeting, told = hello(made, 1), state(made)
    assert (greeting["kind"], greeting["clips"], greeting["joints"], greeting["presets"]) == ("body", [], [], {})
    assert greeting["can"]["sketch"]
    assert not greeting["can"]["ground"]
    assert told["settings"]["gravity"] == "off"
    header, arrays = decode(made.frame())
    assert "handles" not in arrays
    assert header["clip_time"] == 0.0
    with pytest.raises(InputError, match="ground"):
        made.touch.ground(True)


def test_pulls_are_sketched_in_the_bodys_own_axes(made):
    made.studio.sketch().record(True)
    vertex = end_vertex(made)
    made.pull(0, "a", vertex, made.subject.soft_positions()[vertex] + np.array([0.0, 0.05, 0.0]))
    run(made, 30)
    pulls = made.studio.sketch().pulls
    assert pulls
    total = pulls[0].forces.sum(axis=0)
    assert total[2] > 5.0 * np.abs(total[:2]).max(), "up is z in the body"


def test_what_cannot_be_shown_is_named():
    free = FullBody(box_bricks((1.0, 0.2, 0.1), (4, 2, 2)), Material(young=1e6, poisson=0.3, density=1000.0))
    flight = FreeFlight(reduce_body(free, derivative_basis(free, size=4, modes=3)), step=1e-3)
    with pytest.raises(InputError, match="cannot show a FreeFlight"):
        opened(flight)
    with pytest.raises(InputError, match="neither a file nor a built-in"):
        opened("nobody")
    with pytest.raises(InputError, match="up is y or z"):
        opened(reduced_beam(), up="x")


def _all(made: Stage, height: float) -> np.ndarray:
    return np.broadcast_to([0.0, height, 0.0], made.subject.geometry().rest.shape)


def test_a_hand_holds_on_through_a_change_of_modes_and_leaves_nothing_behind(made):
    vertex = end_vertex(made)
    made.pull(0, "hand", vertex, np.array([0.5, 0.1, 0.0]))
    run(made, 5)
    made.tuning.change("modes", 4)
    run(made, 5)
    assert len(made.subject.grips) == 1
    made.touch.release(0, "hand")
    assert made.subject.grips == []


def test_another_basis_is_damped_as_the_old_one(made, simulation):
    made.swap_body(reduce_body(beam(), derivative_basis(beam(), size=6, modes=3).shapes))
    assert made.subject.model.size == 6
    assert made.subject.simulation.damping == simulation.damping
    assert made.subject.body is beam()
