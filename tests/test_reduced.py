"""The reduced StVK body equals its projected full body, however its materials and modes are edited."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bodies_for_tests import RUBBER, beam, relative, tip, tip_load
from softrig.bases.modes import linear_modes
from softrig.bases.snapshots import snapshot_basis
from softrig.errors import InputError, MaterialError, ModeCountError
from softrig.fem.embedding import Embedding
from softrig.fem.material import Material
from softrig.forces import polynomial as builder
from softrig.forces.polynomial import reduce_body
from softrig.models.full import FullBody

KINDS = ["tets", "bricks"]
MODES = 6


@cache
def patchwork(kind, mass="consistent", *, free=False) -> FullBody:
    """Four groups: ordinary, negative Poisson ratio, ν = 0, and one whose every element is different."""
    blank = beam(kind, groups=4, free=free)
    groups, count = blank.mesh.groups, len(blank.mesh.elements)
    rng = np.random.default_rng(0)
    young = np.array([1e5, 3e5, 5e4, 2e5])[groups]
    poisson = np.array([0.3, -0.4, 0.0, 0.2])[groups]
    density = np.array([1000.0, 700.0, 1500.0, 900.0])[groups]
    mixed = groups == 3
    young[mixed] *= rng.uniform(0.5, 1.5, mixed.sum())
    poisson[mixed] = rng.uniform(-0.3, 0.45, mixed.sum())
    density[mixed] *= rng.uniform(0.5, 1.5, mixed.sum())
    assert count == len(young)
    return FullBody(blank.mesh, Material(young, poisson, density), fixed=blank.fixed, mass=mass, solver="superlu")


@cache
def patchwork_basis(kind, mass="consistent", *, free=False) -> np.ndarray:
    """Modes mixed by a rotation: still mass-orthonormal, but no matrix stays diagonal."""
    mixture = np.linalg.qr(np.random.default_rng(9).standard_normal((MODES, MODES)))[0]
    return linear_modes(patchwork(kind, mass, free=free), MODES).shapes @ mixture


def far_away(model, seed=0) -> np.ndarray:
    """Random coordinates that displace some vertex by the body's own size."""
    q = np.random.default_rng(seed).standard_normal(model.size)
    return q / np.abs(model.basis @ q).max() * np.linalg.norm(np.ptp(model.vertices, axis=0))


def assert_same_physics(one, other, tolerance):
    q = far_away(one)
    force, stiffness = one.force_and_stiffness(q)
    wanted_force, wanted_stiffness = other.force_and_stiffness(q)
    assert relative(force, wanted_force) < tolerance
    assert relative(stiffness, wanted_stiffness) < tolerance
    assert one.energy(q) == pytest.approx(other.energy(q), rel=tolerance)
    assert relative(one.mass, other.mass) < tolerance


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_force_stiffness_energy_and_mass_are_the_projected_ones_far_from_rest(free, kind, mass):
    body = patchwork(kind, mass, free=free)
    basis = patchwork_basis(kind, mass, free=free)
    model = reduce_body(body, basis)
    for seed in range(3):
        q = far_away(model, seed)
        full_force, full_stiffness = body.force_and_stiffness(basis @ q)
        force, stiffness = model.force_and_stiffness(q)
        assert relative(force, basis.T @ full_force) < 1e-10
        assert relative(model.force(q), basis.T @ full_force) < 1e-10
        assert relative(stiffness, basis.T @ (full_stiffness @ basis)) < 1e-10
        assert model.energy(q) == pytest.approx(body.energy(basis @ q), rel=1e-10)
    np.testing.assert_allclose(model.mass, np.eye(MODES), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_elements_do_not_matter(kind, monkeypatch):
    body = patchwork(kind)
    basis = patchwork_basis(kind)
    heard = []
    whole = reduce_body(body, basis)
    monkeypatch.setattr(builder, "BLOCK_BYTES", 1)  # one element a block
    pieces = reduce_body(body, basis, progress=lambda *at: heard.append(at))
    assert_same_physics(pieces, whole, 1e-12)
    count = len(body.mesh.elements)
    assert heard == [(done, count) for done in range(1, count + 1)]


def test_force_is_the_slope_of_energy_and_stiffness_that_of_force():
    model = reduce_body(patchwork("tets"), patchwork_basis("tets"))
    q = far_away(model)
    step = 1e-4 * np.linalg.norm(q)
    force, stiffness = model.force_and_stiffness(q)
    sides = [(q + step * e, q - step * e) for e in np.eye(MODES)]
    slope = [(model.energy(a) - model.energy(b)) / (2 * step) for a, b in sides]
    bend = [(model.force(a) - model.force(b)) / (2 * step) for a, b in sides]
    assert relative(np.array(slope), force) < 1e-6
    assert relative(np.array(bend), stiffness) < 1e-6


def test_projected_stiffness_is_the_positive_part():
    body = beam(lengths=(1.0, 0.12, 0.1), counts=(6, 1, 1))
    bending = body.expand(linear_modes(body, 2).shapes).transpose(2, 0, 1)
    squeeze = -0.2 * body.mesh.vertices * [1.0, 0.0, 0.0]
    model = reduce_body(body, snapshot_basis(body, np.stack([*bending, squeeze]), 3).shapes)
    q = model.basis.T @ body.expand(body.mass @ body.restrict(squeeze)).ravel()
    values, vectors = np.linalg.eigh(model.force_and_stiffness(q)[1])
    assert values[0] < 0.0 < values[-1]
    force, projected = model.force_and_stiffness(q, projected=True)
    assert np.linalg.eigvalsh(projected)[0] > 0.0  # a solve must be possible
    assert relative(projected, (vectors * np.maximum(values, 0.0)) @ vectors.T) < 1e-6
    np.testing.assert_array_equal(force, model.force(q))


@pytest.mark.parametrize(
    "edits",
    [
        {"young": 7e4},
        {"poisson": 0.1},
        {"poisson": -0.2},
        {"density": 2500.0},
        {"young": 4e5, "poisson": 0.4, "density": 300.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("group", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_group_equals_a_body_rebuilt_from_scratch(kind, group, edits):
    body = patchwork(kind)
    basis = patchwork_basis(kind)
    edited = reduce_body(body, basis).with_material(f"group {group}", **edits)
    members = body.mesh.groups == group
    fields = {name: np.where(members, edits.get(name, 0.0), 0.0) for name in edits}
    new = {
        name: np.where(members, fields[name], getattr(body.material, name)) if name in edits
        else getattr(body.material, name)
        for name in ("young", "poisson", "density")
    }  # fmt: skip
    full = FullBody(body.mesh, Material(**new), fixed=body.fixed, solver="superlu")
    assert_same_physics(edited, reduce_body(full, basis), 1e-12)
    np.testing.assert_allclose(edited.mass, basis.T @ (full.mass @ basis), atol=1e-10)
    q = far_away(edited)
    assert relative(edited.force(q), basis.T @ full.force(basis @ q)) < 1e-10


@pytest.mark.parametrize("edit", ["young", "density"])
def test_editing_a_group_of_mixed_elements_scales_all_of_them(edit):
    body = patchwork("tets")
    basis = patchwork_basis("tets")
    model = reduce_body(body, basis)
    now = Material.from_lame(model.lam[3], model.mu[3], model.density[3])
    edited = model.with_material("group 3", **{edit: 2.0 * float(getattr(now, edit))})
    scaled = getattr(body.material, edit) * np.where(body.mesh.groups == 3, 2.0, 1.0)
    rebuilt = reduce_body(
        FullBody(body.mesh, replace(body.material, **{edit: scaled}), fixed=body.fixed, solver="superlu"), basis
    )
    assert_same_physics(edited, rebuilt, 1e-12)


def test_edits_compose_in_any_order_and_leave_the_original_alone():
    body = patchwork("bricks")
    model = reduce_body(body, linear_modes(body, MODES).shapes)
    before = model.flat_coefficients.copy()
    one = model.with_material("group 0", young=3e5).with_material("group 1", poisson=0.2, density=50.0)
    other = model.with_material("group 1", density=50.0).with_material("group 0", young=3e5)
    other = other.with_material("group 1", poisson=0.2)
    assert_same_physics(one, other, 1e-12)
    now = Material.from_lame(model.lam[0], model.mu[0], model.density[0])
    back = one.with_material("group 0", young=float(now.young))
    assert_same_physics(back, model.with_material("group 1", poisson=0.2, density=50.0), 1e-12)
    np.testing.assert_array_equal(model.flat_coefficients, before)


@pytest.mark.parametrize("kept", [1, 4, [0, 1, 2], [5, 2, 3], [1]], ids=str)
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_fewer_modes_equal_reducing_with_fewer_columns(free, kept):
    body = patchwork("tets", free=free)
    basis = patchwork_basis("tets", free=free)
    sliced = reduce_body(body, basis).with_modes(kept)
    columns = basis[:, :kept] if isinstance(kept, int) else basis[:, kept]
    rebuilt = reduce_body(body, columns)
    assert_same_physics(sliced, rebuilt, 1e-12)
    np.testing.assert_array_equal(sliced.basis, rebuilt.basis)
    if free:
        np.testing.assert_allclose(sliced.rigid_products, rebuilt.rigid_products, atol=1e-12)


def test_a_numpy_integer_counts_modes_too():
    body = beam()
    model = reduce_body(body, linear_modes(body, 4).shapes)
    assert model.with_modes(np.int64(2)).size == 2


@pytest.mark.parametrize("modes", [0, -1, MODES + 1, [], [0, 0], [MODES], [-1]], ids=str)
def test_impossible_modes_raise(modes):
    body = beam()
    model = reduce_body(body, linear_modes(body, MODES).shapes)
    with pytest.raises(ModeCountError):
        model.with_modes(modes)


def test_wrong_names_materials_and_bodies_raise():
    body = beam()
    basis = linear_modes(body, 3).shapes
    model = reduce_body(body, basis)
    with pytest.raises(InputError, match=r"'liver'.*body"):
        model.with_material("liver", young=1e5)
    for wrong in ({"young": -1.0}, {"poisson": 0.5}, {"density": 0.0}, {"young": np.nan}):
        with pytest.raises((MaterialError, InputError)):
            model.with_material("body", **wrong)
    with pytest.raises(InputError, match="neo-hookean"):
        reduce_body(beam(law="neo-hookean"), basis)
    for shape in (basis[:-1], basis[:, 0]):
        with pytest.raises(InputError, match="basis"):
            reduce_body(body, shape)
    with pytest.raises(InputError, match="together"):
        reduce_body(body, basis, surface_triangles=np.zeros((1, 3), int))


def test_reduced_force_is_the_projected_force_and_repeated_vertices_add_up():
    body = beam("tets")
    model = reduce_body(body, linear_modes(body, 5).shapes)
    rng = np.random.default_rng(3)
    vertices, forces = rng.integers(0, len(body.mesh.vertices), 7), rng.standard_normal((7, 3))
    vertices[1] = vertices[0]
    field = np.zeros_like(body.mesh.vertices)
    np.add.at(field, vertices, forces)
    np.testing.assert_allclose(model.reduced_force(vertices, forces), model.basis.T @ field.ravel(), atol=1e-12)
    for outside in (-1, len(body.mesh.vertices)):
        with pytest.raises(InputError, match="outside") as raised:
            model.reduced_force([0, outside], np.ones((2, 3)))
        assert raised.value.indices.tolist() == [outside]


@pytest.mark.parametrize("embedded", [False, True])
def test_surface_positions_follow_the_volume_to_single_precision(embedded):
    body = beam("bricks")
    rng = np.random.default_rng(4)
    weights = rng.uniform(0.1, 1.0, (30, 8))
    weights /= weights.sum(axis=1, keepdims=True)
    embedding = Embedding(body.mesh.elements[rng.integers(0, len(body.mesh.elements), 30)], weights)
    triangles = rng.integers(0, 30, (20, 3)).astype(np.int32)
    basis = linear_modes(body, 4).shapes
    model = (
        reduce_body(body, basis, surface=embedding, surface_triangles=triangles)
        if embedded
        else reduce_body(body, basis)
    )
    q = 0.3 * far_away(model)
    wanted = embedding.carry(model.positions(q)) if embedded else model.positions(q)
    got = model.surface_positions(q)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    np.testing.assert_array_equal(model.surface_triangles, triangles if embedded else body.mesh.boundary_triangles)


def test_positions_are_rest_plus_modes_and_fixed_vertices_stay():
    body = beam()
    basis = linear_modes(body, 4).shapes
    model = reduce_body(body, basis)
    q = far_away(model)
    np.testing.assert_allclose(model.positions(q), body.mesh.vertices + body.expand(basis @ q), atol=1e-12)
    np.testing.assert_array_equal(model.positions(q)[body.fixed], body.mesh.vertices[body.fixed])


def test_solving_with_mass_and_system_inverts_them():
    body = patchwork("tets")
    model = reduce_body(body, linear_modes(body, MODES).shapes).with_material("group 0", density=4000.0)
    right = np.random.default_rng(5).standard_normal(MODES)
    np.testing.assert_allclose(model.mass @ model.solve_mass(right), right, atol=1e-10)
    np.testing.assert_allclose(model.mass_times(right), model.mass @ right, atol=1e-12)
    assert relative(model.mass, np.eye(MODES)) > 0.1
    stiffness = model.force_and_stiffness(far_away(model))[1]
    system = model.system(3.0, stiffness, 0.5)
    np.testing.assert_allclose(system, 3.0 * model.mass + 0.5 * stiffness, rtol=1e-13)
    np.testing.assert_allclose(system @ model.solve(system, right), right, atol=1e-8)


def test_is_free_tells_flying_bodies_from_anchored_ones():
    for free in (False, True):
        body = beam(free=free)
        assert reduce_body(body, linear_modes(body, 2).shapes).is_free is free


def test_a_load_does_the_same_work_reduced_and_full():
    body = beam(material=RUBBER)
    model = reduce_body(body, linear_modes(body, 4).shapes)
    q = far_away(model)
    pull = np.tile([1.0, 2.0, 3.0], (len(tip(body)), 1)) / len(tip(body))
    work = tip_load(body, (1.0, 2.0, 3.0)) @ body.restrict(model.positions(q) - body.mesh.vertices)
    assert model.reduced_force(tip(body), pull) @ q == pytest.approx(work)
