"""Load modes: the rig's accelerations, the body's answers to them, and how those bend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array

from bodies_for_tests import RUBBER, beam, relative
from softrig.bases.compliance import acceleration_forces, compliance
from softrig.bases.contact import constrained_modes, constraint_rows
from softrig.bases.derivatives import derivative_basis
from softrig.bases.load_modes import (
    CENTRIPETAL,
    GRAVITY,
    Samples,
    bone_mass_metric,
    load_samples,
    metric_mass,
    paper_mode_count,
    paper_samples,
    rig_loads,
    rig_loads_black_box,
    sample_basis,
    skin_joints,
)
from softrig.bases.modes import linear_modes
from softrig.dynamics import static_equilibrium
from softrig.errors import InputError, ModeCountError
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.numerics.null_space import null_space
from softrig.numerics.rotations import quaternion_product, quaternions_from_vectors
from softrig.rig.parameters import Parameters
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin


def bar(**options):
    return beam("tets", (1.0, 0.22, 0.17), (6, 2, 1), mass="lumped", **options)


def limb():
    """A bar held along its middle, as flesh is on a bone."""
    mesh = box_tets((1.0, 0.24, 0.18), (8, 3, 3))
    middle = (np.abs(mesh.vertices[:, 1:] - [0.12, 0.09]) < [0.05, 0.04]).all(axis=1)
    return FullBody(mesh, RUBBER, fixed=middle, mass="lumped", solver="superlu")


def two_bones(vertices):
    """Weights of two bones along x that meet smoothly in the middle, their joints and parents."""
    second = np.clip((vertices[:, 0] - 0.35) / 0.3, 0.0, 1.0)
    weights = csr_array(np.stack([1.0 - second, second], axis=1))
    return weights, np.array([[0.0, 0.1, 0.08], [0.5, 0.1, 0.08]]), np.array([-1, 0])


def loads_of(body):
    weights, origins, parents = two_bones(body.mesh.vertices)
    return rig_loads(body.mesh.vertices, weights, origins, parents, free=body.free, vertex_mass=body.vertex_mass)


def along(field, wanted):
    """Whether two fields are positive multiples of each other."""
    field, wanted = np.ravel(field), np.ravel(wanted)
    return field @ wanted == pytest.approx(np.linalg.norm(field) * np.linalg.norm(wanted), rel=1e-10)


def test_the_loads_of_two_bones_are_the_accelerations_of_their_motions():
    body = bar()
    X = body.mesh.vertices
    weights, origins, parents = two_bones(X)
    loads = loads_of(body)
    assert loads.shape == (len(X), 3, 3 + 2 * 9)
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    for axis in range(3):
        assert along(loads[:, :, axis], np.tile(np.eye(3)[axis], (len(X), 1)))
    for joint, share in ((0, np.ones(len(X))), (1, weights.toarray()[:, 1])):
        arms = X - origins[joint]
        start = 3 + 9 * joint
        for k in range(3):
            assert along(loads[:, :, start + k], share[:, None] * np.cross(np.eye(3)[k], arms))
        for place, (a, b) in enumerate(pairs):
            # The part of ω × (ω × d) that goes with ω_a ω_b.
            ea, eb = np.eye(3)[a], np.eye(3)[b]
            both = np.cross(ea, np.cross(eb, arms)) + np.cross(eb, np.cross(ea, arms))
            assert along(loads[:, :, start + 3 + place], share[:, None] * both), (joint, a, b)
    assert parents.tolist() == [-1, 0]


def test_every_load_has_its_size_on_what_it_moves():
    body = bar()
    loads = loads_of(body)
    wanted = GRAVITY * np.array([1.0] * 3 + 2 * ([1.0] * 3 + [CENTRIPETAL] * 6))
    mass = np.where(body.free, body.vertex_mass, 0.0)
    sizes = np.linalg.norm(loads, axis=1)
    for size, expected in zip(sizes.T, wanted, strict=True):
        moved = size > 1e-2 * size[body.free].max()
        assert np.sqrt(mass @ size**2 / mass[moved].sum()) == pytest.approx(expected, rel=1e-3)


def test_the_rotation_of_a_joint_is_what_the_skeleton_does_to_its_subtree():
    """Second difference of the skin's positions while one joint speeds up: the load, whatever the bones' order."""
    rng = np.random.default_rng(0)
    skeleton = Skeleton.from_heads(["root", "helper", "low", "high"], [-1, 0, 1, 2], rng.standard_normal((4, 3)))
    X = rng.standard_normal((40, 3))
    bone_of_vertex = rng.integers(0, 3, 40)  # with one bone a vertex the formula is exact at any pose
    bones = np.array([3, 0, 2])  # "helper" carries nothing and is no bone
    binds = np.linalg.inv(skeleton.rest_world_matrices[bones])
    skin = LinearBlendSkin(skeleton, X, bones, binds, bone_of_vertex[:, None], np.ones((40, 1)))
    p = skeleton.parameters.rest.copy()
    p[skeleton.rotation(2)] = quaternions_from_vectors(np.array([0.3, -0.5, 0.9]))
    origins, parents = skin_joints(skin, p)
    assert parents.tolist() == [2, -1, 1]
    loads = rig_loads(skin.positions(p), skin.binding.table, origins, parents)
    assert loads.shape[2] == 3 + 27
    # Joint "low" is bone 2, its parent's frame is not turned: world axes are its own before its rotation.
    step = 1e-3
    for k in range(3):
        turned = []
        for sign in (step, -step):
            moved = p.copy()
            turn = quaternions_from_vectors(sign * np.eye(3)[k])
            moved[skeleton.rotation(2)] = quaternion_product(turn, p[skeleton.rotation(2)])
            turned.append(skin.positions(moved))
        angular = (turned[0] - turned[1]) / (2.0 * step)
        centripetal = (turned[0] - 2.0 * skin.positions(p) + turned[1]) / step**2
        start = 3 + 9 * 2
        assert relative(loads[:, :, start + k] / np.linalg.norm(loads[:, :, start + k]), unit(angular)) < 1e-5
        assert relative(unit(loads[:, :, start + 3 + k]), unit(centripetal)) < 1e-4


def unit(field):
    return field / np.linalg.norm(field)


def test_joints_that_move_nothing_free_or_repeat_another_are_skipped():
    X = bar().mesh.vertices
    weights, origins, _ = two_bones(X)
    wider = csr_array(np.concatenate([weights.toarray(), np.zeros((len(X), 2))], axis=1))
    places = np.concatenate([origins, [[1.0, 0.0, 0.0]], origins[:1]])
    # Bone 2 hangs below bone 1 and carries nothing; bone 3 is above all in the place of bone 0.
    loads = rig_loads(X, wider, places, np.array([3, 0, 1, -1]))
    assert loads.shape[2] == 3 + 2 * 9
    only_first = X[:, 0] < 0.3
    assert rig_loads(X, weights, origins, np.array([-1, 0]), free=only_first).shape[2] == 3 + 9


def test_loads_refuse_circles_and_wrong_shapes():
    X = bar().mesh.vertices
    weights, origins, _ = two_bones(X)
    with pytest.raises(InputError, match="circle"):
        rig_loads(X, weights, origins, np.array([1, 0]))
    with pytest.raises(InputError, match="parents"):
        rig_loads(X, weights, origins, np.array([-1]))
    with pytest.raises(InputError, match="nothing moves"):
        rig_loads(X, weights, origins, np.array([-1, 0]), free=np.zeros(len(X), bool))


def test_black_box_loads_are_first_and_second_derivatives_of_the_rig():
    X = bar().mesh.vertices

    def bend(p):
        """x turned about z by the angle p₀ x, moved by p₁ along y, and p₂, which does nothing."""
        angle = p[0] * X[:, 0]
        turned = np.stack([np.cos(angle) * X[:, 0], np.sin(angle) * X[:, 0] + X[:, 1] + p[1], X[:, 2]], axis=1)
        return turned

    parameters = Parameters(("bend", "lift", "idle"), ("rad", "m", "1"), np.zeros(3), np.zeros(0))
    p = np.array([0.7, 0.0, 0.0])
    loads = rig_loads_black_box(bend, p, parameters, 1.0)
    assert loads.shape[2] == 3 + 9 + 2 + 1  # the lift is straight: no second derivative
    angle, s = 0.7 * X[:, 0], X[:, 0]
    first = np.stack([-np.sin(angle) * s**2, np.cos(angle) * s**2, 0.0 * s], axis=1)
    second = np.stack([-np.cos(angle) * s**3, -np.sin(angle) * s**3, 0.0 * s], axis=1)
    assert relative(unit(loads[:, :, 12]), unit(first)) < 1e-4
    assert relative(unit(loads[:, :, 13]), unit(second)) < 1e-4
    sizes = np.sqrt(np.mean(np.sum(loads[:, :, 12:14] ** 2, axis=1), axis=0))
    assert sizes[1] < 2.0 * CENTRIPETAL * sizes[0]
    assert relative(unit(loads[:, :, 14]), unit(np.tile([0.0, 1.0, 0.0], (len(X), 1)))) < 1e-9
    # The turning fields are about the centre, which they leave at rest.
    assert np.abs(loads[:, :, 3:6].mean(axis=0)).max() < 1e-9


def test_black_box_quaternions_turn_about_three_axes():
    X = bar().mesh.vertices
    skeleton = Skeleton.from_heads(["one"], [-1], np.zeros((1, 3)))
    one = np.zeros((len(X), 1), np.int32)
    skin = LinearBlendSkin(skeleton, X, np.array([0]), np.eye(4)[None], one, np.ones((len(X), 1)))
    p = skeleton.parameters.rest
    loads = rig_loads_black_box(skin.positions, p, skeleton.parameters, 1.0)
    # 12 of the whole; 3 translations; 3 rotations twice; 3 scales, whose second derivatives vanish.
    assert loads.shape[2] == 12 + 3 + 6 + 3
    assert relative(unit(loads[:, :, 15]), unit(np.cross([1.0, 0, 0], X))) < 1e-4


def test_the_answers_span_the_krylov_space_of_the_loads():
    body = bar()
    loads = loads_of(body)[:, :, [0, 4, 12]]
    samples = load_samples(body, loads, krylov=2, derivatives=0)
    K, M = body.rest_stiffness.toarray(), body.mass.toarray()
    block = np.linalg.solve(K, acceleration_forces(body, loads))
    for _ in range(3):
        left = block - samples.fields @ np.linalg.lstsq(samples.fields, block, rcond=None)[0]
        assert np.linalg.norm(left) < 2e-4 * np.linalg.norm(block)
        block = np.linalg.solve(K, M @ block)
    gram = samples.fields.T @ M @ samples.fields
    assert np.diag(gram) == pytest.approx(samples.sigma**2)
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-8 * gram.max()
    assert (np.diff(samples.sigma) <= 0.0).all()


def test_each_krylov_step_is_scaled_by_the_lowest_eigenvalue():
    """A load that excites the first mode alone answers with the same shape again and again: one sample, √(k+1) long."""
    body = bar()
    modes = linear_modes(body, 1)
    loads = body.expand(modes.shapes)
    plain = load_samples(body, loads, krylov=0, derivatives=0, amplitude=0.1)
    assert plain.fields.shape[1] == 1
    again = load_samples(body, loads, krylov=3, derivatives=0, amplitude=0.1)
    assert again.fields.shape[1] == 1
    # With a second mode beside it the ratio of the two tells: its answers shrink by λ₁/λ₂ a step.
    two = linear_modes(body, 2)
    both = load_samples(body, body.expand(two.shapes * two.eigenvalues), krylov=3, derivatives=0)
    ratio = two.eigenvalues[0] / two.eigenvalues[1]
    expected = np.sqrt(sum(ratio ** (2 * k) for k in range(4)) / 4.0)
    assert both.sigma[1] / both.sigma[0] == pytest.approx(expected, rel=1e-6)


def test_the_leading_sample_moves_as_far_as_asked_whatever_the_stiffness():
    soft, hard = bar(), bar(law="neo-hookean")
    loads = loads_of(soft)
    for body in (soft, hard):
        samples = load_samples(body, loads, derivatives=0, amplitude=0.03)
        assert np.linalg.norm(body.expand(samples.fields[:, 0]), axis=1).max() == pytest.approx(0.03)
    with pytest.raises(InputError, match="amplitude"):
        load_samples(soft, loads, amplitude=-1.0)


@pytest.mark.parametrize("law", ["stvk", "stable-neo-hookean"])
def test_derivative_samples_are_the_second_order_of_the_static_answer(law):
    """Under the force K Σ c_i σ_iφ_i the body goes to Σ c_i σ_iφ_i + Σ_{i≤j} c_i c_j (derivative sample ij) + …"""
    body = bar(law=law)
    samples = load_samples(body, loads_of(body)[:, :, [1, 5]], krylov=0, derivatives=2, amplitude=0.02)
    assert samples.fields.shape[1] == 2 + 3
    linear, bent = samples.fields[:, :2], samples.fields[:, 2:]
    c = np.array([0.05, 0.03])
    ahead, behind = (static_equilibrium(body, s * body.rest_stiffness @ (linear @ c), tolerance=1e-12) for s in (1, -1))
    wanted = bent @ np.array([c[0] ** 2, c[0] * c[1], c[1] ** 2])
    assert relative(0.5 * (ahead + behind), wanted) < 2e-3


def test_only_the_leading_shapes_are_differentiated():
    body = bar()
    loads = loads_of(body)
    none = load_samples(body, loads, derivatives=0)
    some = load_samples(body, loads, derivatives=4)
    assert some.fields.shape[1] == none.fields.shape[1] + 10
    assert np.array_equal(some.fields[:, : none.fields.shape[1]], none.fields)
    seen: list[tuple[int, int]] = []
    load_samples(body, loads, derivatives=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 5) for k in range(1, 6)]


def test_under_contact_every_sample_keeps_the_constraints():
    body = bar()

    class Contacts:
        vertices = np.flatnonzero(body.mesh.vertices[:, 0] > 0.9)[:4]
        normals = np.random.default_rng(0).standard_normal((4, 3))
        sliding = np.array([True, True, True, False])

    rows = constraint_rows(Contacts(), body.free)
    Z = null_space(rows)
    samples = load_samples(body, loads_of(body), derivatives=4, null_space=Z)
    basis = sample_basis(body, samples, 20)
    assert np.abs(rows @ basis.shapes).max() < 1e-10
    paper = paper_samples(body, 4, null_space=Z)
    assert np.abs(rows @ paper.fields).max() < 1e-10
    modes = constrained_modes(body, 4, Z)
    assert np.abs(np.abs(unit(paper.fields[:, 0])) - np.abs(unit(modes.shapes[:, 0]))).max() < 1e-10
    forces = acceleration_forces(body, loads_of(body))
    assert compliance(body, basis.shapes, forces, null_space=Z).mean() > 0.99


def test_load_modes_beat_linear_modes_and_the_papers_recipe_at_a_load_along_a_joint():
    body = limb()
    loads = loads_of(body)
    turning = acceleration_forces(body, loads[:, :, 12:15])  # the second joint's three angular accelerations
    size = 16
    ours = compliance(body, sample_basis(body, load_samples(body, loads, derivatives=4), size).shapes, turning)
    linear = compliance(body, linear_modes(body, size).shapes, turning)
    paper = compliance(body, sample_basis(body, paper_samples(body, 6), size).shapes, turning)
    assert (ours > 0.98).all()
    assert 1.0 - ours.mean() < 0.1 * (1.0 - linear.mean())
    assert 1.0 - ours.mean() < 0.1 * (1.0 - paper.mean())


def test_a_large_static_answer_in_the_basis_is_near_the_full_one_only_with_derivatives():
    body = bar()
    loads = loads_of(body)
    force = acceleration_forces(body, loads) @ np.random.default_rng(3).uniform(-1.0, 1.0, loads.shape[2])
    force *= 0.15 / np.abs(np.linalg.solve(body.rest_stiffness.toarray(), force)).max()
    truth = static_equilibrium(body, force, load_steps=4)
    errors = {}
    for count in (0, 6):
        U = sample_basis(body, load_samples(body, loads, derivatives=count), 14).shapes
        errors[count] = relative(U @ reduced_static(body, U, force), truth)
    assert errors[6] < 0.02
    assert errors[6] < 0.1 * errors[0]


def reduced_static(body, U, force):
    q = np.zeros(U.shape[1])
    for step in (0.25, 0.5, 0.75, 1.0):
        for _ in range(30):
            internal, stiffness = body.force_and_stiffness(U @ q)
            change = np.linalg.solve(U.T @ (stiffness @ U), U.T @ (step * force - internal))
            q += change
            if np.abs(change).max() < 1e-12 * max(np.abs(q).max(), 1e-12):
                break
    return q


def test_the_metric_raises_a_light_bone_and_leaves_the_basis_mass_orthonormal():
    body = bar()
    X = body.mesh.vertices
    light = (X[:, 0] > 0.8).astype(np.float64)
    weights = csr_array(np.stack([1.0 - light, light], axis=1))
    metric = bone_mass_metric(weights, body.vertex_mass)
    masses = weights.T @ body.vertex_mass
    assert metric == pytest.approx(np.where(light > 0.0, masses.mean() / masses[1], masses.mean() / masses[0]))
    assert weights.T @ (metric * body.vertex_mass) == pytest.approx(masses.mean())
    loads = loads_of(body)
    plain = sample_basis(body, load_samples(body, loads), 10)
    raised = sample_basis(body, load_samples(body, loads, metric=metric), 10, metric=metric)
    for basis in (plain, raised):
        assert np.allclose(basis.shapes.T @ (body.mass @ basis.shapes), np.eye(10), atol=1e-9)
        assert (np.diff(basis.singular_values) <= 0.0).all()
    assert relative(raised.shapes, plain.shapes) > 0.1


def test_very_light_bones_do_not_outvote_and_empty_ones_count_for_nothing():
    weights = csr_array(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    metric = bone_mass_metric(weights, np.array([1.0, 1.0, 1e-6]))
    mean = 0.5 * (2.0 + 1e-6)
    assert metric == pytest.approx([mean / 2.0, mean / 2.0, 10.0])


def test_the_pca_measures_with_the_metric():
    body = bar()
    metric = np.random.default_rng(0).uniform(0.5, 2.0, len(body.fixed))
    matrix = metric_mass(body, metric).toarray()
    assert np.allclose(matrix, np.diag(np.repeat((metric * body.vertex_mass)[body.free], 3)))
    samples = load_samples(body, loads_of(body), derivatives=3)
    basis = sample_basis(body, samples, 5, metric=metric)
    values = eigh(samples.fields.T @ matrix @ samples.fields, eigvals_only=True)[::-1]
    assert basis.singular_values**2 == pytest.approx(values[:5])
    with pytest.raises(InputError):
        metric_mass(body, -metric)
    with pytest.raises(InputError, match="shape"):
        metric_mass(body, metric[:-1])


def test_the_papers_samples_are_those_of_the_derivative_basis():
    body = bar()
    modes = paper_mode_count(12)
    assert modes + modes * (modes + 1) // 2 >= 24 > (modes - 1) * (modes + 2) // 2
    ours = sample_basis(body, paper_samples(body, modes), 12)
    known = derivative_basis(body, 12)
    assert ours.singular_values == pytest.approx(known.singular_values, rel=1e-8)
    overlap = np.linalg.svd(ours.shapes.T @ (body.mass @ known.shapes), compute_uv=False)
    assert overlap.min() > 1.0 - 1e-8


def test_more_modes_than_there_are_and_loads_that_do_nothing_are_refused():
    body = bar()
    samples = load_samples(body, loads_of(body)[:, :, :1], krylov=0, derivatives=0)
    with pytest.raises(ModeCountError):
        sample_basis(body, samples, 2)
    with pytest.raises(ModeCountError):
        sample_basis(body, Samples(np.eye(body.size), np.ones(body.size)), body.size + 1)
    with pytest.raises(InputError, match="do not move"):
        load_samples(body, np.zeros((len(body.fixed), 3, 2)))
    with pytest.raises(InputError, match="at least one load"):
        load_samples(body, np.zeros((len(body.fixed), 3, 0)))
