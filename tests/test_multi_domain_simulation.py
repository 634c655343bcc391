"""Multi-domain characters from a build to drawn vertices, and their files."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from characters_for_tests import SMALL, bent_bar, limb
from domain_models_for_tests import posed, two_boxes
from softrig.bases.domain_shapes import domain_shapes
from softrig.errors import InputError, ModeCountError, ModelFileError, NotFiniteError, StepSizeError
from softrig.fem import laws
from softrig.fem.invertible import (
    LEAST_STRETCH,
    WORKSPACE,
    clamped_gradient,
    invertible_energy,
    invertible_hessian,
    invertible_stress,
)
from softrig.forces.domain_cubature import domain_cubature
from softrig.models.file import load_model, load_multi_domain_model, model_kind, save_model
from softrig.models.kernels.multi_domain_elements import tet_forces
from softrig.models.multi_domain_tables import tet_gradients, tet_volumes
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.baking import model_simulation
from softrig.pipeline.multi_domain import build_domains, build_multi_domain
from softrig.pipeline.multi_domain_samples import pose_shapes
from softrig.pipeline.multi_domain_truth import posed_errors
from softrig.simulation.multi_domain import MultiDomainSimulation

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")


@pytest.fixture(scope="module")
def built():
    return build_domains(limb(), SMALL, modes=16, samples=12)


@pytest.fixture(scope="module")
def model(built):
    return built.model


def test_a_character_is_cut_at_its_joint(built):
    model = built.model
    assert sorted(domain.name for domain in model.domains) == ["lower", "upper"]
    assert all(domain.rank == 16 for domain in model.domains)
    assert len(model.seams) == 1
    across = np.pi * 0.11**2  # of the limb where its bones meet; the tets' faces between them zigzag
    assert across < model.seams[0].areas.sum() < 2.5 * across
    assert model.spring > 0.0
    for domain in model.domains:
        gram = np.einsum("k,kim,kin->mn", domain.mass, domain.shapes, domain.shapes)
        np.testing.assert_allclose(gram, np.eye(domain.rank), atol=1e-9)
    held = built.carrier.holders >= 0
    np.testing.assert_array_equal(held, built.body.fixed)
    assert model.vertex_mass.sum() == pytest.approx(built.body.vertex_mass.sum(), rel=1e-12)


def test_the_build_is_the_same_again(model):
    again = build_multi_domain(limb(), SMALL, modes=16, samples=12)
    for one, other in zip(model.domains, again.domains, strict=True):
        np.testing.assert_array_equal(one.shapes, other.shapes)
        np.testing.assert_array_equal(one.weights, other.weights)


def test_reduced_poses_are_near_those_of_the_full_body(built):
    """Poses of the clip that the build drew its samples from: two thirds of the way from rigid domains is not much."""
    model = built.model
    poses = model.clips[0].resample(10.0)[1][4:10]
    full, _, _ = pose_shapes(
        built.body, built.carrier, model.bone_matrices, lambda p: built.carrier.vertices, poses, np.zeros(3)
    )
    errors = posed_errors(model, poses, full)
    assert errors.lost == 0
    assert errors.error < 35.0
    assert errors.gap < 1.0


def test_at_rest_the_drawn_surface_is_the_rigs(model):
    simulation = MultiDomainSimulation(model)
    vertices = simulation.step(model.rig.parameters.rest)
    np.testing.assert_allclose(vertices, model.rig.positions(model.rig.parameters.rest), atol=1e-6)


def test_drawn_vertices_hang_on_the_averaged_tets():
    model = two_boxes(modes=12)
    simulation = MultiDomainSimulation(model)
    vertices = simulation.step(posed(model, bend=0.8, turn=(0.3, 0.1, 0.2)))
    tets = simulation.stepper.positions()
    hung = np.einsum("ka,kai->ki", model.embedding_weights, tets[model.embedding_nodes])
    np.testing.assert_allclose(vertices, hung, atol=2e-6)


@pytest.mark.parametrize("fps", [30.0, 60.0, 90.0, 144.0])
def test_all_frame_rates_show_one_motion(model, fps):
    def after(rate):
        simulation = MultiDomainSimulation(model, fps=rate)
        _, poses = model.clips[1].resample(rate)
        return simulation.run(poses[: round(0.5 * rate) + 1])[-1]

    one, other = after(fps), after(180.0)
    moved = np.abs(other - model.rig.positions(model.clips[1].resample(180.0)[1][90])).max()
    assert np.abs(one - other).max() < max(0.15 * moved, 2e-4)


def test_flesh_follows_through_and_comes_to_rest(model):
    simulation = MultiDomainSimulation(model)
    _, poses = model.clips[1].resample(60.0)
    frames = simulation.run(poses)
    plain = np.stack([model.rig.positions(p) for p in poses])
    assert 1e-4 < np.abs(frames - plain).max() < 0.1
    for _ in range(600):
        last = simulation.step(poses[-1])
    still = MultiDomainSimulation(model).step(poses[-1])
    np.testing.assert_allclose(last, still, atol=1e-4)


def test_quasistatic_frames_are_equilibria_without_memory_of_speed(model):
    simulation = MultiDomainSimulation(model, quasistatic=True, iterations=30)
    _, poses = model.clips[0].resample(30.0)
    for pose in poses[:20]:
        shown = simulation.step(pose)
    again = simulation.step(poses[19])
    np.testing.assert_allclose(shown, again, atol=1e-4)
    assert not simulation.stepper.memory.v.any()


def test_teleports_kick_nothing(model):
    simulation = MultiDomainSimulation(model)
    rest = model.rig.parameters.rest
    for _ in range(5):
        simulation.step(rest)
    far = rest.copy()
    far[model.rig.parameters.index("upper.translation.x")] += 50.0
    for _ in range(3):
        shown = simulation.step(far)
    np.testing.assert_allclose(shown, model.rig.positions(far), atol=2e-4)


def test_violence_gives_no_nan_and_is_counted(model):
    simulation = MultiDomainSimulation(model)
    random = np.random.default_rng(0)
    for _ in range(60):
        shown = simulation.step(posed(model, bend=random.uniform(-2, 2), turn=random.normal(size=3)))
        assert np.isfinite(shown).all()
    assert simulation.counters["steps"] > 0


def test_a_state_is_gone_back_to_bit_by_bit(model):
    simulation = MultiDomainSimulation(model)
    _, poses = model.clips[1].resample(60.0)
    simulation.run(poses[:20])
    kept = simulation.state()
    one = simulation.run(poses[20:30])
    simulation.restore(kept)
    np.testing.assert_array_equal(one, simulation.run(poses[20:30]))


def test_vertices_go_only_where_they_fit(model):
    simulation = MultiDomainSimulation(model)
    pose, count = model.rig.parameters.rest, len(model.embedding_nodes)
    for wrong in (np.empty((count // 2, 3), np.float32), np.empty((count, 3)), np.empty((3, count), np.float32).T):
        with pytest.raises(InputError, match="contiguous float32"):
            simulation.step(pose, out=wrong)
    assert simulation.time == 0.0
    right = np.empty((count, 3), np.float32)
    assert simulation.step(pose, out=right) is right


def test_before_the_first_frame_it_is_at_rest(model):
    first, rest = MultiDomainSimulation(model).surface(), model.rig.positions(model.rig.parameters.rest)
    assert np.abs(first - rest).max() < 0.1 * model.size


def test_each_simulation_says_what_steps_another_kind(model):
    for simulation in (SubstructuredSimulation, ReducedSimulation):
        with pytest.raises(InputError, match=r"multi-domain character; step it with sr\.MultiDomainSimulation"):
            simulation(model, 1e-3)
    with pytest.raises(InputError, match=r"multi-domain character; step it with sr\.MultiDomainSimulation"):
        model_simulation(model)


def test_wrong_input_is_named(model):
    simulation = MultiDomainSimulation(model)
    with pytest.raises(InputError, match="parameters, not the shape"):
        simulation.step(np.zeros(3))
    wrong = model.rig.parameters.rest.copy()
    wrong[2] = np.nan
    with pytest.raises(NotFiniteError, match="is NaN"):
        simulation.step(wrong)
    with pytest.raises(StepSizeError):
        simulation.step(model.rig.parameters.rest, -1.0)
    with pytest.raises(InputError, match="no gravity"):
        MultiDomainSimulation(model, gravity="moon")
    with pytest.raises(InputError, match="no skeleton"):
        build_multi_domain(bent_bar(), SMALL)
    with pytest.raises(InputError, match="at least one mode"):
        build_multi_domain(limb(), SMALL, modes=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        build_multi_domain(limb(), SMALL, pose_share=2.0)
    with pytest.raises(ModeCountError, match="all of it is on its bones"):
        domain_shapes(np.zeros((4, 3, 2)), np.zeros((4, 3, 2)), np.ones(4), 3)


def test_shapes_are_half_of_poses_and_half_of_vibration():
    random = np.random.default_rng(4)
    mass = random.uniform(0.5, 2.0, 30)
    poses, vibration = random.normal(size=(30, 3, 3)), random.normal(size=(30, 3, 12))
    shapes = domain_shapes(poses, vibration, mass, 8)
    gram = np.einsum("k,kim,kin->mn", mass, shapes, shapes)
    np.testing.assert_allclose(gram, np.eye(8), atol=1e-12)
    seen = np.einsum("kim,kis,k->ms", shapes, poses, mass)
    np.testing.assert_allclose(np.einsum("kim,ms->kis", shapes, seen), poses, atol=1e-12)
    assert domain_shapes(poses, vibration[..., :0], mass, 8).shape[2] == 3
    many = random.normal(size=(30, 3, 20))
    part = domain_shapes(many, vibration, mass, 8, pose_share=0.75)
    best = np.linalg.svd(np.repeat(np.sqrt(mass), 3)[:, None] * many.reshape(90, -1))[0][:, :6]
    whole = part.reshape(90, -1) * np.repeat(np.sqrt(mass), 3)[:, None]
    np.testing.assert_allclose(np.linalg.norm(whole.T @ best, axis=0), 1.0, atol=1e-10)  # six of eight are theirs


@pytest.mark.parametrize("law", sorted(laws.LAWS.values()))
def test_cubature_with_all_tets_is_exact_and_with_few_is_near(law):
    model = two_boxes(modes=6)
    domain = model.domains[0]
    tets = model.tets[domain.tets]
    gradients = tet_gradients(model.vertices, tets, domain.vertices, domain.shapes)
    volumes = tet_volumes(model.vertices, tets)
    samples = 0.004 * np.random.default_rng(0).normal(size=(60, 6))
    found = domain_cubature(law, gradients, volumes, domain.lam, domain.mu, samples, 40)
    assert len(found.tets) <= 40
    assert (found.weights > 0.0).all()
    assert found.training_error < 0.1
    assert found.unseen_error < 0.2
    forces = np.empty((len(tets), 60, 6))
    tet_forces(law, gradients, volumes, domain.lam, domain.mu, samples, forces)
    near = np.einsum("e,esr->sr", found.weights, forces[found.tets])
    assert np.linalg.norm(near - forces.sum(0)) < 0.15 * np.linalg.norm(forces.sum(0))


def gradient(*stretches, seed=0):
    random = np.random.default_rng(seed)
    U, _ = np.linalg.qr(random.normal(size=(3, 3)))
    V, _ = np.linalg.qr(random.normal(size=(3, 3)))
    U, V = U * np.linalg.det(U), V * np.linalg.det(V)
    return np.ascontiguousarray(U @ np.diag(stretches) @ V.T)


@pytest.mark.parametrize("law", sorted(laws.LAWS.values()))
def test_above_the_clamp_a_law_is_itself(law):
    F, work = gradient(1.4, 0.9, 0.5), np.zeros(WORKSPACE)
    P, other = np.zeros((3, 3)), np.zeros((3, 3))
    H, exact = np.zeros((9, 9)), np.zeros((9, 9))
    invertible_stress(law, F, 3.0, 2.0, P, work)
    laws.stress(law, F, 3.0, 2.0, other, work)
    np.testing.assert_array_equal(P, other)
    invertible_hessian(law, F, 3.0, 2.0, False, H, work)
    laws.hessian(law, F, 3.0, 2.0, exact, work)
    np.testing.assert_array_equal(H, exact)
    assert invertible_energy(law, F, 3.0, 2.0, work) == pytest.approx(laws.energy(law, F, 3.0, 2.0, work), rel=1e-13)
    h, differences = 1e-6, np.zeros((9, 9))
    for k in range(9):
        E = np.zeros(9)
        E[k] = h
        ends = []
        for sign in (1.0, -1.0):
            invertible_stress(law, F + sign * E.reshape(3, 3), 3.0, 2.0, other, work)
            ends.append(other.ravel().copy())
        differences[:, k] = (ends[0] - ends[1]) / (2.0 * h)
    np.testing.assert_allclose(H, differences, atol=1e-6 * np.abs(H).max())


@pytest.mark.parametrize("law", sorted(laws.LAWS.values()))
def test_stress_goes_through_inversion_without_a_jump(law):
    """Along one stretch from 0.6 to −0.6: no jump, no NaN, and pushed back where it is clamped."""
    work, last = np.zeros(WORKSPACE), None
    for stretch in np.linspace(0.6, -0.6, 2401):
        F, P, H = gradient(1.1, 0.95, stretch), np.zeros((3, 3)), np.zeros((9, 9))
        invertible_stress(law, F, 3.0, 2.0, P, work)
        invertible_hessian(law, F, 3.0, 2.0, True, H, work)
        assert np.isfinite(P).all()
        assert np.linalg.eigvalsh(H)[0] > -1e-9 * np.abs(H).max()
        if last is not None:
            assert np.abs(P - last).max() < 0.2
        last = P
    up = gradient(0.0, 0.0, 1.0)  # the direction in which this stretch opens
    assert np.sum(last * up) < 0.0


def test_the_clamp_keeps_rotations_and_lifts_the_smallest_stretch():
    F, clamped, work = gradient(1.2, 0.8, -0.4), np.zeros((3, 3)), np.zeros(WORKSPACE)
    assert clamped_gradient(F, LEAST_STRETCH, clamped, work)
    np.testing.assert_allclose(clamped, gradient(1.2, 0.8, LEAST_STRETCH), atol=1e-12)
    assert not clamped_gradient(gradient(1.2, 0.8, 0.4), LEAST_STRETCH, clamped, work)


@pytest.mark.parametrize("law", ["neo-hookean", "corotational", "stvk"])
def test_other_laws_settle_too(law):
    from softrig.models.multi_domain_stepper import MultiDomainStepper

    model = two_boxes(modes=12, law=law)
    stepper = MultiDomainStepper(model)
    assert stepper.settle(model.bone_matrices(posed(model, bend=0.3)))
    residual = stepper.static_residual(stepper.q.copy())
    rigid = stepper.static_residual(np.zeros(model.mode_count))
    assert np.linalg.norm(residual) < 1e-3 * np.linalg.norm(rigid)


def identical(one, other):
    for each in fields(one):
        mine, theirs = getattr(one, each.name), getattr(other, each.name)
        if each.name in ("rig", "clips"):
            continue
        if isinstance(mine, tuple) and mine and is_dataclass(mine[0]):
            assert len(mine) == len(theirs)
            for a, b in zip(mine, theirs, strict=True):
                identical(a, b)
        elif isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, each.name
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs, each.name


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "limb.softrig"
    save_model(model, path)
    return path


def test_a_file_holds_everything(model, saved):
    assert model_kind(saved) == "multi-domain"
    again = load_model(saved)
    identical(model, again)
    pose = model.clips[0].resample(30.0)[1][12]
    one, other = (MultiDomainSimulation(each).step(pose) for each in (model, again))
    np.testing.assert_array_equal(one, other)
    assert [clip.name for clip in again.clips] == [clip.name for clip in model.clips]
    with_rig = load_multi_domain_model(saved, rig=model.rig)
    assert with_rig.rig is model.rig


def rewritten(path, **tensors):
    from test_model_file import metadata_of

    kept = {name: array for name, array in (load_file(path) | tensors).items() if array is not None}
    save_file(kept, path, metadata_of(path))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("domain.0.shapes", lambda a: a[:-1]),
        ("domain.1.mass", lambda a: -a),
        ("domain.1.cubature", lambda a: a + 10**6),
        ("domain.0.members", lambda a: a[::-1].copy()),
        ("seam.0.first_rows", lambda a: a[::-1].copy()),
        ("seam.0.areas", lambda a: a[:-1]),
        ("embedding_nodes", lambda a: a + 10**6),
        ("tets", lambda a: None),
        ("document", lambda a: a[:-9].copy()),
        ("vertices", lambda a: np.full_like(a, np.nan)),
        ("vertices", lambda a: a.astype(np.float32)),
    ],
)
def test_damaged_files_are_refused(saved, name, change):
    rewritten(saved, **{name: change(load_file(saved)[name])})
    with pytest.raises(ModelFileError, match=saved.name):
        load_model(saved)


def test_info_tells_of_the_domains_and_others_refuse(model, saved):
    from softrig.inspection import inspect_file
    from softrig.viewer.opening import found

    told = inspect_file(saved)
    assert dict(told.facts)["kind"] == "character in 2 domains, one a bone"
    assert [row[0] for row in told.tables[0][2]] == [domain.name for domain in model.domains]
    with pytest.raises(InputError, match="shows no multi-domain models"):
        found(saved)


def test_other_kinds_and_truncated_files_are_refused(saved, tmp_path):
    from softrig.models.file import load_character_model

    with pytest.raises(ModelFileError, match="holds a multi-domain character"):
        load_character_model(saved)
    cut = tmp_path / "cut.softrig"
    cut.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load_model(cut)


def test_fewer_clips_make_no_other_domains(model):
    character = limb()
    quiet = build_domains(replace(character, clips=()), SMALL, modes=4, samples=4).model
    assert [d.name for d in quiet.domains] == [d.name for d in model.domains]
