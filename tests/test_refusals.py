"""What is refused at the door rather than found out later."""

import numpy as np
import pytest

from bodies_for_tests import RUBBER, beam, tip_load
from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes, rigid_motions
from softrig.bases.sketch import SketchPad
from softrig.dynamics import Integrator, Rayleigh, State, critical_step
from softrig.errors import (
    IndexRangeError,
    InputError,
    ModeCountError,
    ModelFileError,
    NotFiniteError,
    SolverError,
    StepSizeError,
)
from softrig.fem.embedding import Embedding
from softrig.fem.loads import gravity_force, point_force
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.meshing.boxes import box_bricks
from softrig.models.file import load_model, save_model
from softrig.models.free_flight import FreeFlight
from softrig.models.full import FullBody
from softrig.models.reduced_simulation import ReducedSimulation


@pytest.fixture(scope="module")
def model():
    body = beam()
    return reduce_body(body, linear_modes(body, 4).shapes)


@pytest.fixture(scope="module")
def flier():
    body = beam(free=True)
    return reduce_body(body, linear_modes(body, 4).shapes)


def test_a_basis_that_is_not_finite_or_empty_is_refused():
    body = beam()
    shapes = linear_modes(body, 3).shapes.copy()
    shapes[5, 1] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        reduce_body(body, shapes)
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(ModeCountError):
        reduce_body(body, shapes[:, :0])
    for size in (0, -1):
        with pytest.raises(ModeCountError):
            derivative_basis(body, size)


def test_a_surface_that_does_not_fit_is_refused():
    body = beam()
    shapes = linear_modes(body, 2).shapes
    surface = Embedding(body.mesh.elements[:3], np.full((3, 8), 0.125))
    with pytest.raises(IndexRangeError, match="surface triangles"):
        reduce_body(body, shapes, surface=surface, surface_triangles=np.array([[0, 1, 3]]))
    with pytest.raises(InputError, match="together"):
        reduce_body(body, shapes, surface=surface)


def test_rigid_motion_in_the_basis_of_a_free_body_is_named():
    body = beam(free=True)
    shapes = linear_modes(body, 3).shapes
    mixed = np.concatenate([shapes, rigid_motions(body)[:, :1] + shapes[:, :1]], axis=1)
    with pytest.raises(InputError) as caught:
        reduce_body(body, mixed)
    assert caught.value.indices.tolist() == [3]


def test_a_model_that_could_not_be_loaded_is_not_saved(model, tmp_path):
    from dataclasses import replace

    path = tmp_path / "a.softrig"
    with pytest.raises(ModelFileError, match="surface_triangles"):
        save_model(replace(model, surface_triangles=np.array([[0, 1, 10**6]], np.int32)), path)
    assert not path.exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_forces_that_are_not_finite_are_refused_everywhere(bad, model, flier):
    simulation, flight, pad = ReducedSimulation(model, 0.01), FreeFlight(flier, 0.01), SketchPad(beam())
    for take in (simulation.pull, flight.push, pad.pull, lambda v, f: point_force(20, v, f)):
        with pytest.raises(NotFiniteError):
            take([3], [[0.0, bad, 0.0]])
        with pytest.raises(InputError):
            take([3, 4], [[0.0, 1.0, 0.0]] * 3)
        with pytest.raises(IndexRangeError):
            take([3, 10**6], [0.0, 1.0, 0.0])
        with pytest.raises(IndexRangeError, match="integers"):
            take([0.5], [0.0, 1.0, 0.0])
    assert not simulation.force.any()
    assert pad.pulls == []


def test_one_force_serves_all_vertices(model):
    every = model.reduced_force([3, 4], [[0.0, 1.0, 0.0]] * 2)
    np.testing.assert_array_equal(model.reduced_force([3, 4], [0.0, 1.0, 0.0]), every)


def test_a_mask_of_numbers_is_not_taken_for_indices():
    mesh = box_bricks((1.0, 1.0, 1.0), (2, 2, 2))
    mask = mesh.vertices[:, 0] == 0.0
    with pytest.raises(InputError, match="mask"):
        FullBody(mesh, RUBBER, fixed=mask.astype(int))
    with pytest.raises(IndexRangeError, match="integers"):
        FullBody(mesh, RUBBER, fixed=np.nonzero(mask)[0].astype(float))
    assert FullBody(mesh, RUBBER, fixed=np.nonzero(mask)[0]).fixed.sum() == 9


def test_unknown_solvers_and_empty_groups_are_refused_at_once():
    mesh = box_bricks((1.0, 1.0, 1.0), (2, 1, 1))
    with pytest.raises(InputError, match="solver"):
        FullBody(mesh, RUBBER, solver="zz")
    with pytest.raises(InputError) as caught:
        VolumeMesh.build(mesh.vertices, mesh.elements, groups=np.array([0, 2]))
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(InputError, match="integers"):
        VolumeMesh.build(mesh.vertices, mesh.elements, groups=np.array([0.0, 1.0]))


def test_a_step_that_does_not_converge_says_so():
    body = beam(law="stable-neo-hookean")
    force = tip_load(body, (0.0, 0.0, -1e5))
    with pytest.raises(SolverError, match="smaller step"):
        Integrator(body, 1.0).step(State.rest(body.size), force)
    # Asked for a number of iterations, it does those and no more.
    Integrator(body, 0.05, iterations=2).step(State.rest(body.size), 1e-3 * force)


def test_stiff_bodies_converge_at_rounding_and_not_at_the_iteration_limit():
    from softrig.fem.material import Material

    body = beam(material=Material(young=2e11, poisson=0.3, density=7800.0))
    calls = []
    plain = body.force_and_stiffness
    body.force_and_stiffness = lambda q, **options: calls.append(1) or plain(q, **options)
    state = State.rest(body.size)
    integrator = Integrator(body, 1e-4)
    for _ in range(5):
        state = integrator.step(state, tip_load(body, (0.0, 0.0, -10.0)))
    assert len(calls) < 25


@pytest.mark.parametrize("damping", [Rayleigh(), Rayleigh(0.0, 1e-3), Rayleigh(5.0, 1e-4)])
def test_the_critical_step_knows_about_damping(damping):
    body = beam(mass="lumped")
    limit = critical_step(body, damping)
    start = State(1e-6 * np.random.default_rng(0).standard_normal(body.size), np.zeros(body.size), np.zeros(body.size))
    integrator = Integrator(body, limit, "central-differences", damping=damping)
    end, _ = integrator.run(start, 400, np.zeros(body.size), record=False)
    assert np.abs(end.q).max() < 1e-4
    with pytest.raises(StepSizeError):
        Integrator(body, 1.001 * limit, "central-differences", damping=damping)
    # Just above, it really does grow: the limit is not merely cautious.
    integrator.step_size = 1.06 * limit
    end, _ = integrator.run(start, 15, np.zeros(body.size), record=False)
    assert np.abs(end.q).max() > 3.0 * np.abs(start.q).max()


def test_display_refuses_a_buffer_it_cannot_write_through(model):
    simulation = ReducedSimulation(model, 0.01)
    interleaved = np.zeros((len(model.vertices), 6), np.float32)
    with pytest.raises(InputError, match="contiguous"):
        simulation.surface_positions(interleaved[:, :3])
    own = np.zeros((len(model.vertices), 3), np.float32)
    assert simulation.surface_positions(own) is own
    np.testing.assert_allclose(own, model.vertices, atol=1e-6)


def test_assigning_to_state_and_force_does_what_it_says(model):
    simulation = ReducedSimulation(model, 0.01)
    simulation.force = [1.0, 0.0, 0.0, 0.0]
    simulation.v = np.array([0.0, 2.0, 0.0, 0.0])
    simulation.step()
    assert simulation.q[0] > 0.0
    assert simulation.q[1] > 0.0
    for name in ("damping", "step_size", "method", "iterations"):
        with pytest.raises(AttributeError):
            setattr(simulation, name, 1)


def test_material_edits_share_what_is_drawn(model):
    simulation = ReducedSimulation(model, 0.01)
    simulation.surface_positions()
    modes = simulation.model.surface_modes
    simulation.edit_material("body", young=1e5)
    assert simulation.model.surface_modes is modes


def test_gravity_needs_the_file_alone_and_follows_density(tmp_path):
    mesh = box_bricks((1.0, 0.2, 0.2), (4, 1, 1))
    mesh = VolumeMesh.build(mesh.vertices, mesh.elements, groups=np.array([0, 0, 1, 1]))
    body = FullBody(mesh, RUBBER, fixed=mesh.vertices[:, 0] == 0.0)
    shapes = linear_modes(body, 4).shapes
    save_model(reduce_body(body, shapes), tmp_path / "a.softrig")
    model = load_model(tmp_path / "a.softrig")
    full = shapes.T @ body.restrict(gravity_force(body.vertex_mass))
    np.testing.assert_allclose(model.gravity_force(), full, rtol=1e-12, atol=1e-9)
    heavy = model.with_material("group 1", density=3.0 * RUBBER.density).with_modes(3)
    dense = np.where(mesh.groups == 1, 3.0, 1.0) * RUBBER.density
    rebuilt = FullBody(mesh, type(RUBBER)(RUBBER.young, RUBBER.poisson, dense), fixed=body.fixed)
    wanted = shapes[:, :3].T @ rebuilt.restrict(gravity_force(rebuilt.vertex_mass, (1.0, 2.0, -3.0)))
    np.testing.assert_allclose(heavy.gravity_force((1.0, 2.0, -3.0)), wanted, rtol=1e-10, atol=1e-9)


def test_free_flight_counts_iterations_resets_and_edits_in_flight():
    with pytest.raises(InputError):
        FreeFlight(reduce_body(beam(free=True), linear_modes(beam(free=True), 2).shapes), 0.01, iterations=0)
    mesh = box_bricks((1.0, 0.2, 0.2), (4, 1, 1))
    mesh = VolumeMesh.build(mesh.vertices, mesh.elements, groups=np.array([0, 0, 1, 1]))
    body = FullBody(mesh, RUBBER)
    flight = FreeFlight(reduce_body(body, linear_modes(body, 4).shapes), 1e-3)
    flight.launch([1.0, 0.0, 0.5])
    flight.v[0] = 0.2
    flight.spin([1.0, 2.0, 3.0])
    flight.run(50)
    positions, velocities = flight.positions(), flight.velocities()
    flight.edit_material("group 1", density=4.0 * RUBBER.density)
    np.testing.assert_allclose(flight.positions(), positions, atol=1e-12)
    np.testing.assert_allclose(flight.velocities(), velocities, atol=1e-12)
    assert flight.mass == pytest.approx(2.5 * body.vertex_mass.sum())
    one, other = FreeFlight(flight.model, 1e-3), FreeFlight(flight.model, 1e-3)
    for each in (one, other):
        each.spin([1.0, 2.0, 3.0])
    one.run(20)
    for _ in range(20):
        other.step()
    np.testing.assert_array_equal(one.positions(), other.positions())
    one.reset()
    np.testing.assert_array_equal(one.positions(), FreeFlight(flight.model, 1e-3).positions())
    assert one.time == 0.0


def test_a_basis_object_serves_as_well_as_its_vectors():
    body = beam()
    basis = derivative_basis(body, 3)
    np.testing.assert_array_equal(reduce_body(body, basis).basis, reduce_body(body, basis.shapes).basis)
    with pytest.raises(ModeCountError, match="asked of a body that has"):
        derivative_basis(body, 10**6)


def test_an_edit_that_changes_nothing_is_refused(model):
    with pytest.raises(InputError, match="nothing to change"):
        ReducedSimulation(model, 0.01).edit_material("body")


def test_writing_says_what_is_in_the_way_and_harms_nothing(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder to write into") as caught:
        save_model(model, tmp_path / "nowhere" / "a.softrig")
    assert caught.value.filename == str(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        save_model(model, tmp_path)
    path = tmp_path / "a.softrig"
    save_model(model, path)
    before = path.read_bytes()
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        save_model(model.with_modes(2), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
