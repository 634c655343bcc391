"""Figures of bodies in domains, on a bar and a small oak: what they measure goes the way it must."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.bench.substructured_truth import STEP
from softrig.bench.substructuring import OAK_MODES, chain
from softrig.bodies.divided import DividedBody
from softrig.bodies.oak import oak
from softrig.figures import flowers, garden, oaks, pulled, swinging
from softrig.figures.chart import OURS, Line, line_chart
from softrig.meshing.boxes import box_tets
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure


@pytest.fixture(scope="module")
def rods() -> SubstructuredModel:
    """Three rods on end."""
    return substructure(chain(3), modes=6)


def test_gusts_travel_repeat_and_have_their_mean() -> None:
    origins = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 3))
    times = np.arange(0.0, 3.0, 0.05)
    wind = np.stack([garden.gusts(origins, t, 6.0, 3.0) for t in times])
    np.testing.assert_allclose(wind.mean(axis=0), np.tile([6.0, 0.0, 0.0], (50, 1)), atol=1e-9)
    np.testing.assert_allclose(garden.gusts(origins, 3.0, 6.0, 3.0), wind[0], atol=1e-9)
    assert np.ptp(wind[0, :, 0]) > 1.0, "not the same everywhere"
    line = np.array([[0.0, 0.0, 0.0], [0.25, 0.0, 0.0]])
    first, then = np.stack([garden.gusts(line, t, 6.0, 3.0)[:, 0] for t in times]).T
    lag = np.argmax([np.roll(first, k) @ then for k in range(len(times))])
    assert 0 < lag < len(times) // 4, "leeward later"


def test_a_white_floor_and_a_body_are_on_white(rods: SubstructuredModel) -> None:
    rest = SubstructuredSimulation(rods, STEP).positions()
    camera = garden.seen([rest], (0.3, -1.0, 0.1), (40, 60))
    picture = garden.taken(garden.drawn(rods, rest), camera, (40, 60), ground=garden.white_floor(1.0), finer=2)
    assert picture.shape == (60, 40, 3)
    assert (picture[0, 0] == 255).all()
    assert (picture < 250).any()


def test_interfaces_are_rigid_at_rest_and_when_turned(rods: SubstructuredModel) -> None:
    assert not flowers.deviations(rods, np.zeros(rods.size)).any()
    q = np.zeros(rods.size)
    q[rods.starts[1]] = 1e-3
    found = flowers.deviations(rods, q)
    own = np.eye(3) + 1e-3 * rods.domains[2].slopes[0]
    stretches = np.linalg.svd(own, compute_uv=False)
    assert found == pytest.approx([0.0, np.linalg.norm(stretches - 1.0)])


def test_a_pull_takes_the_far_end_along_and_lets_go(rods: SubstructuredModel) -> None:
    tip = rods.domains[2].name
    pull = flowers.pull_at_the_end(rods, tip, np.array([2.0, 0.0, 0.0]), 4)
    rest = SubstructuredSimulation(rods, STEP).positions()
    assert pull.strength(0.25) == pytest.approx(0.5)
    assert pull.strength(1.0) == 0.0
    assert pull.field(len(rest), 0.7).sum(axis=0) == pytest.approx([2.0, 0.0, 0.0])
    found = flowers.pulled(rods, pull, 60)
    moved = found.places[-1] - found.rest
    assert moved[:, 0].max() > 1e-3
    assert found.deviations.shape == (60, 2)
    by_name = pulled.moved_alone(rods, found)
    assert max(by_name, key=lambda name: by_name[name]) == tip
    still = pulled.held_still(rods, pull)
    assert still[pull.vertices, 0].mean() > rest[pull.vertices, 0].mean()


def test_the_widest_seam_belongs_to_the_child() -> None:
    mesh = box_tets((0.6, 0.1, 0.1), (6, 1, 1))
    domains = (5.0 * mesh.vertices[mesh.elements].mean(axis=1)[:, 0]).astype(np.int32)
    fixed = mesh.vertices[:, 0] < 1e-9
    young, white = np.full(3, 1e5), np.ones_like(mesh.vertices)
    model = substructure(DividedBody("bar", mesh, domains, ("a", "b", "c"), fixed, young, 0.3, 1000.0, white), modes=4)
    for place, child in ((0.2, 1), (0.4, 2)):
        gap = np.where(np.abs(mesh.vertices[model.drawn, 0] - place) < 1e-9, 1.0, 0.0)
        assert model.domains[pulled.widest_seam(model, gap)].name == "abc"[child]


def test_the_thin_direction_of_a_sheet_is_across_it() -> None:
    sheet = np.random.default_rng(1).uniform(-1.0, 1.0, (40, 3)) * [1.0, 0.5, 0.01]
    assert pulled.thin_direction(sheet) == pytest.approx([0.0, 0.0, 1.0], abs=0.02)


def test_the_top_of_a_domain_is_its_highest_vertex(rods: SubstructuredModel) -> None:
    rest = SubstructuredSimulation(rods, STEP).positions()
    assert rest[swinging.top(rods, rods.domains[1].name, rest), 2] == pytest.approx(0.6)


def test_a_small_oak_bends_with_the_wind() -> None:
    model = substructure(oak(leaves=30), modes=dict.fromkeys(OAK_MODES, 6))
    windy = oaks.WindyOak(model, oaks.Weather(3.0, 1.0))
    windy.blow(0.5)
    moved = windy.simulation.positions() - windy.rest
    assert moved[:, 0].mean() > 0.0
    assert windy.simulation.time == pytest.approx(0.5)
    assert not windy.simulation.fallbacks.resets


def test_lines_without_a_name_have_no_legend() -> None:
    x = np.linspace(0.0, 1.0, 5)
    named = line_chart([Line("a", x, x, OURS)], x_label="x", y_label="y")
    both = line_chart([Line("a", x, x, OURS), Line("", x, 0.5 * x, OURS)], x_label="x", y_label="y")
    np.testing.assert_array_equal(named[:24], both[:24])
