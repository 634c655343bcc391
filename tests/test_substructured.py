"""Trees of domains as a stranger uses them: rigid domains, drawing, air, stiffness, and never NaN."""

from __future__ import annotations

import numpy as np
import pytest

from domain_bodies_for_tests import (
    Mechanics,
    accelerations_of,
    amplitudes,
    bar_bodies,
    bar_model,
    cut_bar,
    place_of,
    planted,
    shrub,
    stir,
)
from softrig.bodies.divided import DividedBody
from softrig.dynamics import Rayleigh
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.meshing.embedding import embed_points
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.substructuring import substructure

GRAVITY = (1.0, -3.0, -9.0)


def simulation_of(model, **options) -> SubstructuredSimulation:
    return SubstructuredSimulation(model, 2e-3, **options)


# Rigid domains


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("modes", [(4, 0, 3), (0, 4, 0), (4, 0, 0), (0, 0, 5), (0, 3, 4)])
def test_rigid_domains_anywhere_in_a_chain_obey_lagrange(modes, held):
    body = cut_bar(3, held=held)
    model = substructure(body, modes={f"d{i}": count for i, count in enumerate(modes)})
    assert tuple(model.sizes) == modes
    mechanics = Mechanics(model, bar_bodies(model, body))
    simulation = simulation_of(model, gravity=GRAVITY)
    stir(simulation, 0, speed=20.0)
    # On a rigid held root nothing moves what hangs rigidly on it.
    simulation.pull("d2", [5, 9], np.array([0.3, 0.5, -0.2]))
    at, rates = place_of(simulation)
    forces = (mechanics.mass @ np.tile(GRAVITY, len(mechanics.mass) // 3)).reshape(-1, 3)
    forces[model.vertex_starts[2] + np.array([5, 9])] += (0.3, 0.5, -0.2)
    wanted = mechanics.accelerations(at, rates, mechanics.internal(at.q, simulation.v, (0.0, 0.0)), forces)
    simulation.balance()
    np.testing.assert_allclose(accelerations_of(simulation), wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    simulation.run(20)
    assert not any(simulation.fallbacks)
    assert np.isfinite(simulation.positions()).all()


def test_rigid_domains_keep_their_shape_and_a_rigid_held_tree_stands():
    rigid = substructure(cut_bar(3), modes=0)
    assert rigid.size == 0
    simulation = simulation_of(rigid, gravity=GRAVITY)
    simulation.pull("d2", [3], np.array([0.0, 0.0, 100.0]))
    simulation.run(10)
    np.testing.assert_allclose(simulation.positions(), cut_bar(3).mesh.vertices, atol=1e-12)
    assert simulation.time == pytest.approx(0.02)
    hung = simulation_of(substructure(cut_bar(3), modes={"d0": 5, "d1": 0, "d2": 0}), gravity=GRAVITY)
    hung.run(60)
    for i in (1, 2):
        rest = hung.model.shapes[i].vertices
        now = hung.domain_positions(i)
        lengths = [np.linalg.norm(some[:, None] - some, axis=2) for some in (rest, now)]
        np.testing.assert_allclose(lengths[1], lengths[0], atol=1e-12)
        assert np.abs(now - hung.frames()[0][i] - rest).max() > 1e-3


# Drawn


def test_a_bar_at_rest_is_its_mesh_and_seams_are_one():
    body = cut_bar(4)
    model = substructure(body, modes=3)
    simulation = simulation_of(model)
    positions = simulation.positions()
    np.testing.assert_allclose(positions, body.mesh.vertices, atol=1e-12)
    np.testing.assert_array_equal(model.triangles, body.mesh.boundary_triangles)
    np.testing.assert_allclose(model.drawn_colours, body.colours)
    assert model.drawn_count == len(body.mesh.vertices)
    assert len(model.drawn) == model.drawn_count + 3 * 4  # three seams of four vertices
    out = np.full_like(positions, np.nan)
    assert simulation.positions(out) is out
    np.testing.assert_array_equal(out, positions)


@pytest.mark.parametrize("make", [lambda: bar_model(3), lambda: shrub(True)])
def test_drawn_vertices_are_the_mean_of_their_copies(make):
    model = make()
    simulation = simulation_of(model)
    stir(simulation, 1, bend=2.0)
    simulation.run(3)
    sums, counts = np.zeros((model.drawn_count, 3)), np.zeros(model.drawn_count)
    origins, rotations = simulation.frames()
    for i, domain in enumerate(model.domains):
        shape = model.shapes[domain.shape]
        own = (shape.basis @ simulation.q[simulation.of(domain.name)]).reshape(-1, 3)
        copies = origins[i] + domain.scale * (shape.vertices + own) @ rotations[i].T
        np.testing.assert_allclose(simulation.domain_positions(domain.name), copies, atol=1e-13)
        np.testing.assert_array_equal(simulation.domain_positions(i), simulation.domain_positions(domain.name))
        np.add.at(sums, model.drawn[model.vertex_starts[i] : model.vertex_starts[i + 1]], copies)
        np.add.at(counts, model.drawn[model.vertex_starts[i] : model.vertex_starts[i + 1]], 1)
    np.testing.assert_allclose(simulation.positions(), sums / counts[:, None], atol=1e-12)


def test_planted_instances_stand_where_the_tree_says():
    tree = planted()
    simulation = simulation_of(shrub())
    positions, start = simulation.positions(), 0
    origins, rotations = tree.frames()
    for limb, origin, rotation in zip(tree.limbs, origins, rotations, strict=True):
        rest = tree.shapes[limb.shape].mesh.vertices
        wanted = origin + limb.scale * rest @ rotation.T
        np.testing.assert_allclose(positions[start : start + len(rest)], wanted, atol=1e-12)
        start += len(rest)
    assert start == len(positions)
    volumes = [tree.shapes[limb.shape].mesh.volumes.sum() * limb.scale**3 for limb in tree.limbs]
    assert shrub().mass == pytest.approx(1000.0 * sum(volumes))
    assert shrub().depth == 3
    assert [domain.parent for domain in shrub().domains] == [-1, 0, 0, 2]


def test_a_childs_frame_hangs_on_the_points_of_its_parent_where_it_is_held():
    """The held points of a child, carried by the tets of the parent that they lie in: their mean, by area."""
    model, tree = shrub(), planted()
    origins, rotations = tree.frames()
    for i, limb in enumerate(tree.limbs[1:], 1):
        domain, own, parent = model.domains[i], tree.shapes[limb.shape], tree.limbs[limb.parent]
        shape, mesh = model.shapes[model.domains[limb.parent].shape], tree.shapes[parent.shape].mesh
        base = own.mesh.boundary_triangles
        base = base[own.held[base].all(axis=1)]
        corners = own.mesh.vertices[base]
        areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        shares = np.bincount(base.ravel(), np.repeat(areas, 3), len(own.mesh.vertices))[own.held]
        world = origins[i] + limb.scale * own.mesh.vertices[own.held] @ rotations[i].T
        points = (world - origins[limb.parent]) @ rotations[limb.parent] / parent.scale
        moves = embed_points(mesh, points).carry(shape.basis.reshape(-1, 3, shape.size))
        wanted = np.einsum("k,kir->ir", shares, moves) / shares.sum()
        np.testing.assert_allclose(domain.centre, wanted, atol=1e-9 * np.abs(wanted).max())
        place = shares @ points / shares.sum() + (shape.vertices - mesh.vertices)[0]
        np.testing.assert_allclose(domain.place, place, atol=1e-12)


# Air


def one_piece(mesh: VolumeMesh) -> DividedBody:
    """A floating body of one domain."""
    n = len(mesh.vertices)
    whole = np.zeros(len(mesh.elements), np.int32)
    return DividedBody(
        "plate", mesh, whole, ("plate",), np.zeros(n, bool), np.array([1e6]), 0.3, 1000.0, np.ones((n, 3))
    )


@pytest.mark.parametrize("wind", [(0.0, 0.0, 4.0), (0.0, 0.0, -4.0)])
def test_a_plate_that_faces_the_wind_feels_its_pressure_and_none_along_it(wind):
    mesh = box_tets((0.5, 0.4, 0.001), (2, 2, 1))
    model = substructure(one_piece(mesh), modes=0)
    simulation = simulation_of(model)
    simulation.drag = 0.9
    assert simulation.wind is None
    simulation.wind = wind
    simulation.balance()
    # Two sides of which one faces the wind, and hardly any rim.
    pressure = 0.9 * 16.0 * np.sign(wind[2])
    state = simulation.state()
    np.testing.assert_allclose(model.mass * state.root[21:24], [0.0, 0.0, 0.2 * pressure], rtol=5e-3, atol=1e-9)
    simulation.wind = (4.0, 0.0, 0.0)
    simulation.balance()
    along = model.mass * simulation.state().root[21:24]
    np.testing.assert_allclose(along, [0.9 * 16.0 * 0.4 * 0.001, 0.0, 0.0], atol=1e-9)
    assert simulation.drag == 0.9


def test_still_air_brakes_and_no_air_does_not():
    model = substructure(one_piece(box_tets((0.5, 0.4, 0.01), (2, 2, 1))), modes=0)
    for wind, brake in ((None, 0.0), ((0.0, 0.0, 0.0), 0.72 * 0.2 / model.mass)):
        simulation = SubstructuredSimulation(model, 1e-3)
        simulation.wind = wind
        simulation.launch((0.0, 0.0, 5.0))
        simulation.balance()
        simulation.run(500)
        # v̇ = -b v²
        wanted = 5.0 / (1.0 + brake * 5.0 * 0.5)
        np.testing.assert_allclose(simulation.state().root[15:18], (0.0, 0.0, wanted), rtol=1e-5, atol=1e-9)


# Stiffness


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_stiffness_scales_frequencies_by_its_root(factor):
    soft = bar_model(3)
    hard = soft.with_stiffness(dict.fromkeys(("d0", "d1", "d2"), factor))
    found = []
    for model in (soft, hard):
        simulation = simulation_of(model)
        columns = []
        for unit in np.diag(1e-6 * amplitudes(model)):
            simulation.q = unit
            simulation.balance()
            columns.append(simulation.a / unit.max())
        found.append(np.sort(np.sqrt(-np.linalg.eigvals(np.array(columns).T).real)))
    np.testing.assert_allclose(found[1], np.sqrt(factor) * found[0], rtol=1e-6)
    assert soft.domains[0].stiffness == 1.0
    assert [domain.stiffness for domain in soft.with_stiffness({"d1": 3.0}).domains] == [1.0, 3.0, 1.0]


# Again and again


@pytest.mark.parametrize("floating", [False, True])
def test_steps_repeat_bit_for_bit_and_do_not_disturb_each_other(floating):
    def begun():
        simulation = simulation_of(shrub(floating), gravity=GRAVITY, damping=Rayleigh(0.1, 1e-3))
        stir(simulation, 5, bend=0.5, speed=5.0)
        simulation.pull("twig 1", [3], np.array([0.1, 0.0, 0.0]))
        simulation.wind = (2.0, 1.0, 0.0)
        return simulation

    one, other, third = begun(), begun(), begun()
    path = one.run(30, record=True)
    assert path.shape == (30, one.model.size)
    for row in path:
        other.step()
        third.pull("twig 3", [1], np.array([0.0, 0.1, 0.0]))
        third.step()
        np.testing.assert_array_equal(other.q, row)
    assert one.run(0).shape == (0, one.model.size)
    assert one.time == other.time == pytest.approx(0.06)
    kept = other.state()
    one.run(20)
    other.run(7)
    other.restore(kept)
    assert other.time == kept.time
    other.run(20)
    for name in ("q", "v", "a", "root"):
        np.testing.assert_array_equal(getattr(one.state(), name), getattr(other.state(), name))
    assert np.abs(third.q - path[-1]).max() > 1e-9
    other.reset()
    fresh = simulation_of(shrub(floating))
    assert other.time == 0.0
    np.testing.assert_array_equal(other.positions(), fresh.positions())
    assert not np.any(other.state().v)
    assert not np.any(other.state().root[12:])


def test_cleared_forces_are_gone():
    simulation = simulation_of(bar_model(3))
    simulation.pull(1, [2], np.array([0.0, 0.0, 1.0]))
    simulation.clear_forces()
    simulation.run(5)
    assert not simulation.q.any()


def test_a_launch_is_given_in_the_world():
    simulation = simulation_of(shrub(True))
    simulation.launch((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    _, rates = place_of(simulation)
    np.testing.assert_allclose(rates[:6], np.arange(1.0, 7.0), atol=1e-12)


@pytest.mark.parametrize("inertia", ["exact", "interface"])
@pytest.mark.parametrize("floating", [False, True])
def test_absurd_pulls_and_velocities_never_give_nan(floating, inertia):
    model = shrub(floating)
    simulation = simulation_of(model, inertia=inertia)
    rng = np.random.default_rng(0)
    simulation.v = 1e9 * amplitudes(model) * rng.standard_normal(model.size)
    simulation.pull("twig 3", [4], np.array([1e12, -1e9, 1e10]))
    simulation.wind = (1e6, -1e7, 1e5)
    for _ in range(20):
        simulation.run(100)
        assert np.isfinite(simulation.positions()).all()
        assert np.isfinite(np.concatenate([simulation.q, simulation.v, simulation.a])).all()
    simulation.v = np.full(model.size, 1e200)
    simulation.run(3)
    assert np.isfinite(simulation.positions()).all()
    assert simulation.fallbacks.resets > 0
    simulation.reset()
    assert not any(simulation.fallbacks)


def test_shifted_systems_are_counted():
    """A squeezed domain has an indefinite stiffness, which a long step has to shift."""
    helped = 0
    for seed in range(40):
        simulation = SubstructuredSimulation(shrub(), 0.5)
        stir(simulation, seed, bend=2.0 + 0.2 * seed, speed=0.0)
        simulation.step()
        assert np.isfinite(simulation.q).all()
        helped += simulation.fallbacks.shifts > 0
    assert helped > 0
    simulation.reset()
    assert not any(simulation.fallbacks)
