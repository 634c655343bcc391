"""Forces on a simulation: pulls, wind, and colliders that keep the flesh out."""

import numpy as np
import pytest

from softrig.errors import InputError
from softrig.simulation import Capsule, Damping, Plane, Simulation, Sphere
from softrig.simulation.contact import ContactPoints
from softrig.simulation.pulls import patch


def surface_vertex(model, place):
    points = model.rig.positions(model.rig.parameters.rest)
    return int(np.linalg.norm(points - place, axis=1).argmin())


def test_a_pull_pulls_and_lets_go(bar):
    p = bar.rig.parameters.rest
    vertex = surface_vertex(bar, (0.6, 0.06, 0.05))
    simulation = Simulation(bar)
    rest = simulation.step(p)
    pull = simulation.pull(vertex, (0.0, 2.0, 0.5), radius=0.12)
    pulled = simulation.run(np.tile(p, (240, 1)))[-1] - rest
    assert pulled[vertex] @ [0.0, 2.0, 0.5] > 0.0
    assert pulled[vertex, 1] > 1e-3
    assert np.linalg.norm(pulled, axis=1)[vertex] > 0.5 * np.linalg.norm(pulled, axis=1).max()
    pull.force = (0.0, -2.0, -0.5)
    other = simulation.run(np.tile(p, (240, 1)))[-1] - rest
    assert other[vertex, 1] < -1e-3
    pull.release()
    pull.release()
    assert np.abs(simulation.run(np.tile(p, (400, 1)))[-1] - rest).max() < 2e-5


def test_pulls_add_up(bar):
    vertex = surface_vertex(bar, (0.6, 0.06, 0.05))
    p = bar.rig.parameters.rest
    one, two = Simulation(bar), Simulation(bar)
    one.pull(vertex, (0.0, 0.0, 1.0))
    for _ in range(2):
        two.pull(vertex, (0.0, 0.0, 0.5))
    np.testing.assert_allclose(one.run([p] * 20), two.run([p] * 20), rtol=0, atol=1e-7)
    two.release()
    assert len(two.stepper.q) == len(one.stepper.q)


def test_a_patch_is_a_ball_of_flesh_around_the_vertex(bar):
    vertex = surface_vertex(bar, (0.45, 0.06, 0.05))
    nodes, shares = patch(bar, vertex, 0.15)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0.0).all()
    assert not bar.fixed[nodes].any()
    centre = bar.vertices[bar.embedding_nodes[vertex, 0]]
    assert np.linalg.norm(bar.vertices[nodes] - centre, axis=1).max() < 0.15
    tiny, share = patch(bar, vertex, 0.0)
    assert tiny.tolist() == [bar.embedding_nodes[vertex, 0]]
    assert share.tolist() == [1.0]
    with pytest.raises(InputError, match="9999"):
        patch(bar, 9999, 0.1)
    with pytest.raises(InputError, match="radius"):
        patch(bar, vertex, -1.0)
    on_bone = int(np.flatnonzero(bar.fixed[bar.embedding_nodes[:, 0]])[0])
    with pytest.raises(InputError, match="no flesh"):
        patch(bar, on_bone, 0.1)
    with pytest.raises(InputError, match="three"):
        Simulation(bar).pull(vertex, (1.0, 2.0))


def test_wind_blows_along(bar):
    p = bar.rig.parameters.rest
    simulation = Simulation(bar)
    rest = simulation.step(p)
    simulation.wind = (0.0, 0.0, 30.0)
    np.testing.assert_array_equal(simulation.wind, [0.0, 0.0, 30.0])
    blown = simulation.run([p] * 200)[-1] - rest
    assert blown[:, 2].mean() > 1e-4
    assert abs(blown[:, 1].mean()) < 0.5 * blown[:, 2].mean()


OBSTACLES = {
    "plane": Plane((0.0, -0.061, 0.0), (0.0, 2.0, 0.0)),
    "sphere": Sphere((0.45, -0.261, 0.05), 0.2),
    "capsule": Capsule((0.3, -0.161, 0.05), (0.6, -0.161, 0.05), 0.1),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_colliders_keep_the_flesh_out(bar, name):
    """Wind presses the bar down onto something just below it."""
    p = bar.rig.parameters.rest
    obstacle = OBSTACLES[name]
    depths = []
    for colliders in ([], [obstacle]):
        simulation = Simulation(bar, damping=Damping(0.4))
        simulation.wind = (0.0, -600.0, 0.0)
        simulation.colliders = colliders
        vertices = simulation.run([p] * 180)
        depths.append(-obstacle.distances(vertices[-1].astype(np.float64))[0].min())
        assert np.abs(vertices[-20:] - vertices[-1]).max() < 1e-4  # it lies still
    assert depths[0] > 5e-4
    assert depths[1] < 0.35 * depths[0]
    simulation.colliders = []
    simulation.wind = (0.0, 0.0, 0.0)
    assert np.abs(simulation.run([p] * 300)[-1] - bar.rig.positions(p)).max() < 5e-5


def test_contacts_do_not_bounce_by_themselves(bar):
    p = bar.rig.parameters.rest
    simulation = Simulation(bar, damping=Damping(0.02))
    simulation.wind = (0.0, -600.0, 0.0)
    simulation.colliders = [OBSTACLES["sphere"]]
    vertices = simulation.run([p] * 200)
    assert np.abs(vertices[-10:] - vertices[-1]).max() < 3e-4


def test_contact_points_travel_through_the_frame(bar):
    contact = ContactPoints(bar, 180.0, Damping().rayleigh(bar))
    rest = bar.rig.positions(bar.rig.parameters.rest, contact.vertices)
    floor = [Plane((0.0, -0.06, 0.0), (0.0, 1.0, 0.0))]
    contact.place(rest)
    contact.frame(floor, rest - [0.0, 0.01, 0.0], lambda nodes: np.zeros((len(nodes), 3)))
    presses = []
    for share in (0.0, 0.3, 0.6):
        nodes, forces = contact.loads(floor, lambda nodes: np.zeros((len(nodes), 3)), share)
        assert (bar.vertices[nodes, 1] < -0.05).all()
        presses.append(forces[:, 1].sum())
    assert presses[0] == 0.0
    assert 0.0 < presses[1] < presses[2]


def test_friction_holds_against_sliding(bar):
    """Wind drags the bar over a plane it is pressed on."""
    p = bar.rig.parameters.rest
    below = bar.rig.positions(p)[:, 1] < -0.059
    slides = []
    for friction in (0.0, 0.8):
        simulation = Simulation(bar, damping=Damping(0.4))
        simulation.colliders = [Plane((0.0, -0.059, 0.0), (0.0, 1.0, 0.0), friction)]
        simulation.wind = (0.0, -600.0, 0.0)
        start = simulation.run([p] * 60)[-1]
        simulation.wind = (0.0, -600.0, 200.0)
        slides.append((simulation.run([p] * 10) - start)[:, below, 2].mean())
    assert 0.0 < slides[1] < 0.9 * slides[0]


def test_distances_and_ways_out():
    points = np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [2.0, 1.0, 0.0]])
    capsule = Capsule((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.5)
    distances, outwards = capsule.distances(points)
    np.testing.assert_allclose(distances, [-0.5, 2.5, np.sqrt(2.0) - 0.5])
    np.testing.assert_allclose(outwards[2], np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0))
    np.testing.assert_allclose(Sphere((0, 1, 0), 1.0).distances(points)[0], [0.0, 1.0, 1.0])
    np.testing.assert_allclose(Plane((0, 1, 0), (0, 5, 0)).distances(points)[0], [-1.0, 2.0, 0.0])
    for wrong in (lambda: Plane((0, 0, 0), (0, 0, 0)), lambda: Sphere((0, 0), 1.0), lambda: Sphere((0, 0, 0), -1.0)):
        with pytest.raises(InputError):
            wrong()
