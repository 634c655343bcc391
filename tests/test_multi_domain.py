"""Multi-domain formulas (MD11): sandwiches, springs, moving frames, the block solve; all of it against full bodies."""

from dataclasses import replace

import numpy as np
import pytest

from bodies_for_tests import slopes
from domain_models_for_tests import (
    box_mesh,
    full_body,
    moving,
    posed,
    some_state,
    two_boxes,
    world_positions,
)
from softrig.dynamics import Rayleigh, step_constants
from softrig.errors import InputError
from softrig.meshing.domains import bone_domains, holders, interfaces
from softrig.models import multi_domain_stepper
from softrig.models.kernels.multi_domain_blocks import block_cholesky, block_pattern, block_solve
from softrig.models.kernels.multi_domain_coupling import sandwich
from softrig.models.kernels.multi_domain_frames import rigid_frames
from softrig.models.kernels.multi_domain_step import prepare
from softrig.models.multi_domain import rigid_frames as frames_of
from softrig.models.multi_domain_stepper import MultiDomainStepper
from softrig.models.multi_domain_tables import homogeneous, sandwich_matrices
from softrig.models.posed import posed_equilibrium
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors, skew
from softrig.pipeline.multi_domain_samples import carrier_of
from softrig.pipeline.multi_domain_truth import FullCharacter

GRAVITY = np.array([0.0, -9.81, 0.0])
NO_DAMPING = Rayleigh()


def rotation(seed):
    vector = np.random.default_rng(seed).normal(size=3)
    return quaternion_matrices(quaternions_from_vectors(vector))


def test_a_fast_sandwich_is_the_sum_over_vertices():
    random = np.random.default_rng(1)
    left, right = random.normal(size=(50, 3, 7)), random.normal(size=(50, 3, 9))
    areas, R = random.uniform(size=50), rotation(2)
    plain = np.einsum("k,kim,ij,kjn->mn", areas, left, R, right)
    out = np.zeros(63)
    sandwich(sandwich_matrices(left, right, areas).ravel(), R, out)
    np.testing.assert_allclose(out.reshape(7, 9), plain, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def model():
    return two_boxes(modes=12)


def placed(model, p=None, **settings):
    stepper = MultiDomainStepper(model, **settings)
    stepper.place(model.bone_matrices(posed(model, turn=(0.3, -0.2, 0.4), move=(0.1, 0.2, 0.3)) if p is None else p))
    return stepper


def spring_energy(model, stepper, q):
    (seam,) = model.seams
    sides = world_positions(model, q, stepper.memory.rotations, stepper.memory.places[0])
    apart = sides[0][seam.first_rows] - sides[1][seam.second_rows]
    return 0.5 * stepper.spring * float(seam.areas @ np.sum(apart**2, axis=1))


def by_differences(function, q, h):
    found = []
    for i in range(len(q)):
        e = np.zeros_like(q)
        e[i] = h
        found.append((function(q + e) - function(q - e)) / (2.0 * h))
    return np.array(found)


def test_springs_pull_down_the_slope_of_their_energy(model):
    """MD11 Eqs. 6 to 11: with neither gravity nor elasticity the residual is the gradient of the springs' energy."""
    soft = replace(model, domains=tuple(replace(d, weights=0.0 * d.weights) for d in model.domains))
    stepper = placed(soft, gravity=(0.0, 0.0, 0.0))
    q = some_state(model)
    force = stepper.static_residual(q)
    exact = by_differences(lambda at: spring_energy(soft, stepper, at), q, 1e-5)
    np.testing.assert_allclose(force, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


def test_the_potential_has_the_residual_as_its_slope(model):
    stepper = placed(model)
    q = some_state(model)
    residual = stepper.static_residual(q)

    def potential(at):
        stepper.memory.trial[:] = at
        return stepper._potential()

    exact = by_differences(potential, q, 1e-5)
    np.testing.assert_allclose(residual, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


def dense(stepper):
    """The lower blocks of the system as one symmetric matrix."""
    t, values = stepper.tables, stepper.memory.matrix
    found = np.zeros((t.starts[-1], t.starts[-1]))
    for i in range(len(t.starts) - 1):
        for j in range(i + 1):
            if t.blocks[i, j] >= 0:
                shape = (t.starts[i + 1] - t.starts[i], t.starts[j + 1] - t.starts[j])
                begin = t.places[t.blocks[i, j]]
                found[t.starts[i] : t.starts[i + 1], t.starts[j] : t.starts[j + 1]] = values[
                    begin : begin + shape[0] * shape[1]
                ].reshape(shape)
    return np.tril(found) + np.tril(found, -1).T


def test_the_matrix_is_the_derivative_of_the_residual(model):
    stepper = placed(model)
    q = some_state(model, 0.005)
    stepper.static_residual(q, with_matrix=True)
    matrix = dense(stepper)
    exact = by_differences(stepper.static_residual, q, 1e-6)
    np.testing.assert_allclose(matrix, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())


def test_newton_goes_on_to_where_every_damped_force_is_in_balance(model):
    """The residual with motion is that of M a + αM v + βK v + f + κ (…) + κ_d (…) written out, on a second way."""
    stepper = placed(model, damping=Rayleigh(2.0, 0.01))
    m, t, c = stepper.memory, stepper.tables, np.array(step_constants("newmark", 1.0 / 180.0))
    m.q[:], m.v[:], m.a[:] = some_state(model), some_state(model, 0.1, 5), some_state(model, 1.0, 6)
    stepper._prepare(stepper.step_size)
    m.trial[:] = m.q + stepper.step_size * m.v
    moved = m.trial - m.q
    a, v = c[0] * moved - c[1] * m.v - c[2] * m.a, c[3] * moved + c[4] * m.v + c[5] * m.a
    load = m.load.copy()
    multi_domain_stepper.balance(t, m, c, 2.0, 0.01, stepper.spring, stepper.spring_damping, True)
    residual, matrix, trial = m.residual.copy(), dense(stepper), m.trial.copy()
    still = stepper.static_residual(trial)
    gravity = m.load.copy()
    (seam,) = model.seams
    rates = world_positions(model, v, m.rotations, 0.0 * m.places[0])
    rest = world_positions(model, 0.0 * v, m.rotations, 0.0 * m.places[0])
    swinging = (rates[0] - rest[0])[seam.first_rows] - (rates[1] - rest[1])[seam.second_rows]
    damped = []
    for sign, index, rows in ((1.0, 0, seam.first_rows), (-1.0, 1, seam.second_rows)):
        domain = model.domains[index]
        damped.append(sign * np.einsum("k,kim,ki->m", seam.areas, domain.shapes[rows], swinging @ m.rotations[index]))
    stiff = np.concatenate([d.stiffness @ own for d, own in zip(model.domains, model.split(v), strict=True)])
    expected = a + 2.0 * v + 0.01 * stiff + still + gravity - load + stepper.spring_damping * np.concatenate(damped)
    np.testing.assert_allclose(residual, expected, atol=1e-9 * np.abs(expected).max())
    assert np.linalg.eigvalsh(matrix)[0] > 0.0


def relative_rates(model, q, qdot, z):
    """(n_i, 3) a side: world velocities of all copies, differentiated in time along frames and unknowns."""
    h = 1e-6

    def at(s):
        matrices = z[0] + s * z[1]
        R, t = frames_of(matrices, np.stack([d.centre for d in model.domains]))
        return world_positions(model, q + s * qdot, R, t)

    return [(after - before) / (2.0 * h) for after, before in zip(at(h), at(-h), strict=True)]


def test_spring_damping_sees_the_whole_velocity_of_the_copies(model):
    """MD11 Eqs. 12 to 16: explicit and implicit part together are −κ_d a Uᵀ Rᵀ (ẋ_i − ẋ_j)."""
    soft = replace(model, domains=tuple(replace(d, weights=0.0 * d.weights) for d in model.domains), spring=0.0)
    stepper = MultiDomainStepper(soft, gravity=(0.0, 0.0, 0.0), inertia_scale=0.0)
    z = moving(model, 0.7)
    stepper._frames(*z)
    m = stepper.memory
    m.q[:], m.v[:] = some_state(model), some_state(model, 0.1, 5)
    stepper._prepare(1e-12)
    implicit = np.zeros(model.mode_count)
    m.trial[:] = m.q
    multi_domain_stepper.balance(
        stepper.tables, m, np.array([0.0, 0, 0, 0, 1.0, 0]), 0.0, 0.0, 0.0, stepper.spring_damping, False
    )
    implicit[:] = m.residual
    (seam,) = model.seams
    sides = relative_rates(soft, m.q, m.v, z)
    apart = sides[0][seam.first_rows] - sides[1][seam.second_rows]
    expected = []
    for sign, index, rows in ((1.0, 0, seam.first_rows), (-1.0, 1, seam.second_rows)):
        shapes = soft.domains[index].shapes[rows]
        expected.append(sign * np.einsum("k,kim,ki->m", seam.areas, shapes, apart @ m.rotations[index]))
    expected = stepper.spring_damping * np.concatenate(expected)
    np.testing.assert_allclose(implicit, expected, atol=1e-5 * np.abs(expected).max())


def test_frames_and_their_rates_are_those_of_the_motion(model):
    z = moving(model, 0.6)
    count, centres = len(model.domains), np.stack([d.centre for d in model.domains])
    R, spins, accelerations = (np.zeros((count, 3, 3)) for _ in range(3))
    places = np.zeros((3, count, 3))
    rigid_frames(z, centres, R, spins, accelerations, places)
    h = 1e-4

    def at(s):
        return frames_of(z[0] + s * z[1] + 0.5 * s * s * z[2], centres)

    before, now, after = at(-h), at(0.0), at(h)
    np.testing.assert_allclose(R, now[0], atol=1e-12)
    rate, second = (after[0] - before[0]) / (2 * h), (after[0] - 2 * now[0] + before[0]) / h**2
    np.testing.assert_allclose(np.swapaxes(R, 1, 2) @ rate, spins, atol=1e-6)
    np.testing.assert_allclose(np.swapaxes(R, 1, 2) @ second, accelerations, atol=1e-5)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), places[1], atol=1e-6)
    np.testing.assert_allclose((after[1] - 2 * now[1] + before[1]) / h**2, places[2], atol=1e-5)
    np.testing.assert_allclose(spins, -np.swapaxes(spins, 1, 2), atol=1e-12)


def test_forces_of_moving_frames_are_minus_mass_times_acceleration(model):
    """f_qv + f_rigid (MD11 Eqs. 3, 26 to 28) = −(RU)ᵀ M ẍ at q̈ = 0, ẍ by differences of the moving, swinging body."""
    z, q, v = moving(model, 0.7), some_state(model), some_state(model, 0.2, 5)
    stepper = MultiDomainStepper(model, gravity=(0.0, 0.0, 0.0), spring_damping=0.0)
    stepper._frames(*z)
    m = stepper.memory
    m.q[:], m.v[:] = q, v
    prepare(stepper.tables, m, np.zeros(3), np.zeros(3), 1.0, 0.0, 1e-13)
    centres = np.stack([d.centre for d in model.domains])
    h = 1e-4

    def at(s):
        return world_positions(model, q + s * v, *frames_of(z[0] + s * z[1] + 0.5 * s * s * z[2], centres))

    expected = []
    for index, (before, now, after) in enumerate(zip(at(-h), at(0.0), at(h), strict=True)):
        domain, acceleration = model.domains[index], (after - 2 * now + before) / h**2
        local = acceleration @ m.rotations[index]
        expected.append(-np.einsum("k,kim,ki->m", domain.mass, domain.shapes, local))
    expected = np.concatenate(expected)
    np.testing.assert_allclose(m.load, expected, atol=2e-6 * np.abs(expected).max())
    for omitted in ("spins", "accelerations"):  # each of the terms is seen here
        kept = getattr(m, omitted).copy()
        getattr(m, omitted)[:] = -kept
        prepare(stepper.tables, m, np.zeros(3), np.zeros(3), 1.0, 0.0, 1e-13)
        assert np.abs(m.load - expected).max() > 1e-2 * np.abs(expected).max()
        getattr(m, omitted)[:] = kept


def test_gravity_is_what_turning_changes_of_it(model):
    stepper = placed(model)
    stepper._prepare(0.0)
    expected = []
    for domain, R in zip(model.domains, stepper.memory.rotations, strict=True):
        expected.append(np.einsum("k,kim,i->m", domain.mass, domain.shapes, R.T @ GRAVITY - GRAVITY))
    np.testing.assert_allclose(stepper.memory.load, np.concatenate(expected), atol=1e-12)


def test_the_rest_pose_is_without_force(model):
    stepper = MultiDomainStepper(model)
    residual = stepper.static_residual(np.zeros(model.mode_count))
    scale = model.spring * model.seams[0].areas.sum() * model.size
    np.testing.assert_allclose(residual, 0.0, atol=1e-12 * scale)


def test_a_character_turned_as_a_whole_is_the_same_turned(model):
    still, turned = (MultiDomainStepper(model, gravity=(0.0, 0.0, 0.0)) for _ in range(2))
    assert still.settle(model.bone_matrices(posed(model, bend=0.6)))
    assert turned.settle(model.bone_matrices(posed(model, bend=0.6, turn=(0.4, 1.0, -0.5), move=(1.0, 2.0, 3.0))))
    np.testing.assert_allclose(still.q, turned.q, atol=1e-6 * np.abs(still.q).max())
    np.testing.assert_allclose(still.gaps(), turned.gaps(), atol=1e-8)


@pytest.mark.parametrize(
    ("ranks", "pairs"),
    [([3], []), ([2, 5], [(0, 1)]), ([4, 1, 3, 2], [(0, 3), (1, 3), (2, 3)]), ([3, 2, 4], [(0, 1), (0, 2)])],
)
def test_the_block_solve_is_the_dense_solve(ranks, pairs):
    random = np.random.default_rng(len(ranks))
    starts = np.concatenate([[0], np.cumsum(ranks)])
    matrix = np.zeros((starts[-1], starts[-1]))
    for i, j in [*pairs, *((k, k) for k in range(len(ranks)))]:
        part = random.normal(size=(ranks[i], ranks[j]))
        matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = part
    matrix = matrix + matrix.T + 20.0 * np.eye(len(matrix))
    blocks, places = block_pattern(np.array(ranks), np.array(pairs, int).reshape(-1, 2))
    values = np.zeros(places[-1])
    for i in range(len(ranks)):
        for j in range(i + 1):
            if blocks[i, j] >= 0:
                part = matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
                values[places[blocks[i, j]] : places[blocks[i, j]] + part.size] = part.ravel()
    right = random.normal(size=len(matrix))
    x, kept = right.copy(), values.copy()
    assert block_cholesky(starts, blocks, places, values)
    block_solve(starts, blocks, places, values, x)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=1e-11, atol=1e-12)
    kept[places[blocks[-1, -1]]] = -50.0
    assert not block_cholesky(starts, blocks, places, kept)


def test_full_rank_domains_and_stiff_springs_are_the_full_body():
    """Where nothing is lost, what is left is the give of the springs, which falls as 1/κ."""
    model = two_boxes()
    body, carrier, p = full_body(model), carrier_of(model), posed(model, bend=0.7, turn=(0.3, 0.2, 0.1))
    found = []
    for factor in (1e2, 1e4):
        stepper = MultiDomainStepper(model, spring=factor * model.spring)
        assert stepper.settle(model.bone_matrices(p))
        R, t = stepper.memory.rotations, stepper.memory.places[0]
        load = body.restrict(carrier.gravity(R, GRAVITY, sag_free=True))
        q = posed_equilibrium(body, carrier.held(R, t), stepper.positions(), load, tolerance=1e-9)
        full = model.vertices + body.expand(q)
        found.append(np.abs(stepper.positions() - full).max())
        rigid = model.assembled(np.zeros(model.mode_count), R, t)
    assert np.abs(full - rigid).max() > 0.01
    assert found[1] < 1e-4 * np.abs(full - rigid).max()
    assert 50.0 < found[0] / found[1] < 200.0


def test_full_rank_domains_move_as_the_full_body():
    """All forces of motion at once, against a body that knows of no frames."""
    model = two_boxes()
    damping = Rayleigh(mass=2.0)
    reduced = MultiDomainStepper(model, spring=1e4 * model.spring, spring_damping=0.0, damping=damping, iterations=8)
    full = FullCharacter(model, full_body(model), carrier_of(model), damping=damping)
    reduced.settle(moving(model, 0.0)[0])
    full.start(reduced.positions())
    for i in range(24):
        z = moving(model, (i + 1) / 180.0)
        reduced.step(*z)
        full.step(*z)
    R, t = reduced.memory.rotations, reduced.memory.places[0]
    moved = np.abs(full.positions() - model.assembled(np.zeros(model.mode_count), R, t)).max()
    assert moved > 0.01
    assert np.abs(reduced.positions() - full.positions()).max() < 2e-3 * moved
    assert reduced.counters["projected"] == reduced.counters["decayed"] == 0


def test_a_swing_is_of_second_order_in_the_step(model):
    """Newmark, with the forces of the moving frames taken explicitly but ahead of time."""

    def after(steps):
        stepper = MultiDomainStepper(model, rate=steps / 0.25, damping=Rayleigh(1.0, 1e-4), iterations=12)
        assert stepper.settle(moving(model, 0.0)[0])  # else the first acceleration is not that of the balance
        for i in range(steps):
            stepper.step(*moving(model, 0.25 * (i + 1) / steps))
        return stepper.q.copy()

    enough = multi_domain_stepper.ENOUGH
    multi_domain_stepper.ENOUGH = 1e-12
    try:
        finest = after(1280)
        errors = [float(np.linalg.norm(after(steps) - finest)) for steps in (80, 160, 320)]
    finally:
        multi_domain_stepper.ENOUGH = enough
    assert (slopes(errors) > 1.7).all()


def test_homogeneous_coordinates_end_with_the_rest_positions(model):
    domain = model.domains[1]
    bar = homogeneous(model, domain)
    np.testing.assert_array_equal(bar[:, :, :-1], domain.shapes)
    np.testing.assert_allclose(bar[:, :, -1] + domain.centre, model.vertices[domain.vertices], atol=1e-15)


def test_mass_of_the_shapes_is_one(model):
    for domain in model.domains:
        gram = np.einsum("k,kim,kin->mn", domain.mass, domain.shapes, domain.shapes)
        np.testing.assert_allclose(gram, np.eye(domain.rank), atol=1e-12)


def test_domains_take_the_heaviest_bone_and_small_ones_join_the_bone_above():
    mesh = box_mesh()
    centre = mesh.vertices[:, 0]
    weights = np.stack([centre < 0.3, (centre >= 0.3) & (centre < 0.7), centre >= 0.7], axis=1).astype(float)
    parents = np.array([-1, 0, 1])
    cut = bone_domains(mesh, weights, parents)
    assert sorted(cut.bones) == [0, 1, 2]
    assert (cut.domain_of_bone[cut.bones] == np.arange(3)).all()
    mean = mesh.vertices[mesh.elements].mean(axis=1)[:, 0]
    assert (cut.bones[cut.domain_of_tet[mean < 0.25]] == 0).all()
    joined = bone_domains(mesh, weights, parents, least=60)
    assert sorted(joined.bones) == [0, 1]
    assert joined.domain_of_bone[2] == joined.domain_of_bone[1]


def test_interfaces_have_the_area_of_the_cut():
    mesh = box_mesh()
    (joint,) = interfaces(mesh, (mesh.vertices[mesh.elements].mean(axis=1)[:, 0] > 0.4).astype(np.int32))
    np.testing.assert_allclose(joint.areas.sum(), 0.18**2, rtol=1e-12)
    np.testing.assert_allclose(mesh.vertices[joint.vertices, 0], 0.4, atol=1e-12)


def test_vertices_are_held_by_the_nearest_bone_among_domains_that_have_them():
    mesh = box_mesh()
    domain = (mesh.vertices[mesh.elements].mean(axis=1)[:, 0] > 0.4).astype(np.int32)
    fixed = np.abs(mesh.vertices[:, 1]) < 1e-9
    bones = np.array([[[0.0, 0, 0], [0.5, 0, 0]], [[0.5, 0, 0], [0.8, 0, 0]]])
    held = holders(mesh, domain, fixed, bones, np.array([0, 1]))
    x = mesh.vertices[:, 0]
    assert (held[~fixed] == -1).all()
    assert (held[fixed & (x < 0.41)] == 0).all()
    assert (held[fixed & (x > 0.41)] == 1).all()  # the first bone reaches there, its domain does not


def test_errors_name_what_is_wrong(model):
    first, second = model.domains
    with pytest.raises(InputError, match=r"domain 1 'lower'.*mass"):
        replace(model, domains=(first, replace(second, mass=second.mass[:-1])))
    with pytest.raises(InputError, match="seam 0 joins vertices that are not copies"):
        replace(model, seams=(replace(model.seams[0], first_rows=model.seams[0].first_rows[::-1].copy()),))
    with pytest.raises(InputError, match="spring must be"):
        replace(model, spring=-1.0)
    with pytest.raises(InputError, match="bone 7 of"):
        replace(model, domains=(first, replace(second, bone=7)))
    with pytest.raises(InputError, match="seams between domains that have one already"):
        replace(model, seams=(model.seams[0], model.seams[0]))
    with pytest.raises(InputError, match=r"domain 1 'lower'.*μ must be positive"):
        replace(model, domains=(first, replace(second, mu=-second.mu)))
    flat = model.tets.copy()
    flat[second.tets[0]] = flat[second.tets[0], 0]
    with pytest.raises(InputError, match=r"domain 1 'lower'.*without volume"):
        replace(model, tets=flat)
    with pytest.raises(InputError, match="at least one Newton"):
        MultiDomainStepper(model, iterations=0)
    for wrong in ({"gravity": (0.0, -9.81)}, {"gravity": (0.0, np.nan, 0.0)}, {"spring": -1.0}, {"rate": 0.0}):
        with pytest.raises(InputError):
            MultiDomainStepper(model, **wrong)
    with pytest.raises(InputError, match="bone matrices"):
        MultiDomainStepper(model).place(np.zeros((3, 3, 4)))


def test_skew_and_kernel_agree_on_signs():
    """RᵀṘ of a turn about z at 2 rad/s."""
    z = np.zeros((3, 1, 3, 4))
    z[0, 0], z[1, 0, :, :3] = np.eye(3, 4), skew(np.array([0.0, 0.0, 2.0]))
    z[2, 0, :, :3] = z[1, 0, :, :3] @ z[1, 0, :, :3]
    R, spins, accelerations, places = np.zeros((1, 3, 3)), np.zeros((1, 3, 3)), np.zeros((1, 3, 3)), np.zeros((3, 1, 3))
    rigid_frames(z, np.zeros((1, 3)), R, spins, accelerations, places)
    np.testing.assert_allclose(spins[0], skew(np.array([0.0, 0.0, 2.0])), atol=1e-14)
    np.testing.assert_allclose(accelerations[0], np.diag([-4.0, -4.0, 0.0]), atol=1e-13)
