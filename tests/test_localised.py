"""Regional bases (PSSD §7): ours by a partition of unity, and the paper's weighted modes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.linalg import null_space as dense_null_space
from scipy.sparse import csr_array

from bodies_for_tests import RUBBER, relative
from softrig.bases.compliance import gravity_compliance
from softrig.bases.contact import constraint_rows
from softrig.bases.load_modes import load_samples, rig_loads
from softrig.bases.localised import (
    basis_of_regions,
    compact_partition,
    completed_basis,
    default_regions,
    leading_fields,
    log_size_counts,
    merged_bones,
    paper_regions,
    regional_basis,
    require_members,
    shared_counts,
)
from softrig.bases.paper_modes import paper_region_weights, paper_regional_modes, paper_regional_samples
from softrig.errors import InputError, ModeCountError, NotFiniteError
from softrig.meshing.boxes import box_tets
from softrig.meshing.regions import Handle, region_weights
from softrig.models.full import FullBody
from softrig.numerics.null_space import null_space


def limb(law="stvk"):
    """A bar held along its middle, as flesh is on a bone."""
    mesh = box_tets((1.0, 0.24, 0.18), (8, 3, 3))
    middle = (np.abs(mesh.vertices[:, 1:] - [0.12, 0.09]) < [0.05, 0.04]).all(axis=1)
    return FullBody(mesh, RUBBER, fixed=middle, mass="lumped", solver="superlu", law=law)


def smooth_parts(vertices, count=3):
    """Weights along x that sum to one, each zero beyond its neighbours."""
    x = (count - 1) * vertices[:, 0] / vertices[:, 0].max()
    return np.maximum(1.0 - np.abs(x[:, None] - np.arange(count)), 0.0)


def skin_weights(vertices):
    return csr_array(smooth_parts(vertices))


@pytest.fixture(scope="module")
def body():
    return limb()


@pytest.fixture(scope="module")
def samples(body):
    X = body.mesh.vertices
    origins = np.array([[0.0, 0.12, 0.09], [0.3, 0.12, 0.09], [0.7, 0.12, 0.09]])
    loads = rig_loads(X, skin_weights(X), origins, np.array([-1, 0, 1]), free=body.free, vertex_mass=body.vertex_mass)
    return body.expand(load_samples(body, loads, derivatives=4).fields)


def products(a, b, mass):
    return np.einsum("nir,n,nis->rs", a, mass, b)


def test_modes_are_the_pca_of_samples_times_weights(body, samples):
    weights, mass = smooth_parts(body.mesh.vertices), body.vertex_mass
    found = regional_basis([samples], weights, mass, 30)
    assert found.shapes[0].shape == (len(mass), 3, 30)
    for region in range(3):
        columns = found.region_of_mode == region
        shapes, local = found.shapes[0][:, :, columns], samples * weights[:, region, None, None]
        assert np.allclose(products(shapes, shapes, mass), np.eye(columns.sum()), atol=1e-9)
        assert (np.diff(found.sigma[columns]) <= 0.0).all()
        values = eigh(products(local, local, mass), eigvals_only=True)[::-1][: columns.sum()]
        assert found.sigma[columns] ** 2 == pytest.approx(values, rel=1e-6)
        # Column k carries σ_k of the samples.
        carried = np.linalg.norm(products(shapes, local, mass), axis=1)
        assert carried == pytest.approx(found.sigma[columns], rel=1e-4)
        assert not shapes[weights[:, region] == 0.0].any()
    assert not found.shapes[0][body.fixed].any()


def test_all_regions_together_can_do_what_the_samples_do(body, samples):
    """The weights sum to one: with all modes kept, nothing of the global samples is lost."""
    few = samples[:, :, :6]
    weights = smooth_parts(body.mesh.vertices)
    found = regional_basis([few], weights, body.vertex_mass, 18)
    U = found.shapes[0].reshape(-1, 18)
    left = few.reshape(-1, 6) - U @ np.linalg.lstsq(U, few.reshape(-1, 6), rcond=None)[0]
    assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(few)


def test_counts_follow_sigma_over_all_poses_with_a_minimum_each():
    loud, quiet, silent = np.array([9.0, 8.0, 7.0, 1.0]), np.array([5.0, 2.0, 0.5]), np.array([0.1, 0.05])
    assert shared_counts([[loud, quiet, silent]], 6, 1) == [3, 2, 1]
    assert shared_counts([[loud, quiet, silent]], 6, 2) == [2, 2, 2]
    # A region that is loud in another pose alone still gets its share.
    other = [silent, quiet, 50.0 * np.ones(3)]
    assert shared_counts([[loud, quiet, np.array([0.1, 0.05, 0.01])], other], 5, 1) == [1, 1, 3]
    with pytest.raises(ModeCountError, match="too few"):
        shared_counts([[loud, quiet, silent]], 5, 2)
    with pytest.raises(ModeCountError, match="asked of regions") as caught:
        shared_counts([[loud, quiet, silent]], 10, 1)
    assert caught.value.most == 9
    with pytest.raises(ModeCountError) as caught:
        shared_counts([[loud, quiet, silent]], 9, 3)
    assert caught.value.indices.tolist() == [2]


def test_every_pose_gets_the_same_counts(body, samples):
    weights = smooth_parts(body.mesh.vertices)
    found = regional_basis([samples, samples[:, :, ::-1] * 2.0, samples[:, :, :20]], weights, body.vertex_mass, 24)
    assert len(found.shapes) == 3
    assert np.bincount(found.region_of_mode).sum() == 24
    assert all(shapes.shape == found.shapes[0].shape for shapes in found.shapes)
    # The second pose has the same spans, twice as long samples.
    for region in range(3):
        columns = found.region_of_mode == region
        cross = products(found.shapes[0][:, :, columns], found.shapes[1][:, :, columns], body.vertex_mass)
        assert np.linalg.svd(cross, compute_uv=False).min() > 1.0 - 1e-6


def test_the_metric_changes_what_is_kept_but_not_orthonormality(body, samples):
    weights = smooth_parts(body.mesh.vertices)
    metric = 1.0 + 50.0 * (body.mesh.vertices[:, 0] > 0.8)
    plain = regional_basis([samples], weights, body.vertex_mass, 24)
    raised = regional_basis([samples], weights, body.vertex_mass, 24, metric=metric)
    assert (raised.region_of_mode == 2).sum() > (plain.region_of_mode == 2).sum()
    last = raised.shapes[0][:, :, raised.region_of_mode == 2]
    assert np.allclose(products(last, last, body.vertex_mass), np.eye(last.shape[2]), atol=1e-9)


def test_regions_without_vertices_and_too_many_modes_are_refused(body, samples):
    mass, weights = body.vertex_mass, smooth_parts(body.mesh.vertices)
    empty = np.concatenate([weights, np.zeros((len(mass), 1))], axis=1)
    with pytest.raises(InputError, match="without vertices") as caught:
        regional_basis([samples], empty, mass, 30)
    assert caught.value.indices.tolist() == [3]
    # A region of fixed vertices alone.
    held = np.stack([np.where(body.fixed, 0.0, 1.0), body.fixed.astype(float)], axis=1)
    with pytest.raises(InputError, match="without free vertices") as caught:
        regional_basis([samples], held, mass, 30)
    assert caught.value.indices.tolist() == [1]
    with pytest.raises(InputError, match=r"\(tail\)"):
        require_members(held, body.free, ["head", "tail"])
    with pytest.raises(InputError, match="sum to one"):
        regional_basis([samples], 2.0 * weights, mass, 30)
    with pytest.raises(ModeCountError):
        regional_basis([samples], weights, mass, 10_000)
    # One free vertex has three degrees of freedom.
    lonely = np.zeros((len(mass), 2))
    lonely[:, 0] = 1.0
    lonely[np.flatnonzero(body.free)[0]] = [0.0, 1.0]
    with pytest.raises(ModeCountError) as caught:
        regional_basis([samples], lonely, mass, 30, minimum=4)
    assert caught.value.indices.tolist() == [1]


def test_ours_is_softer_than_the_papers_regions(body, samples):
    """The paper's weights clamp each region at its border; ours sum to one (method.md §4)."""
    weights = smooth_parts(body.mesh.vertices)
    ours = regional_basis([samples], weights, body.vertex_mass, 36)
    paper = paper_regional_samples(body, weights, 5)
    counts = log_size_counts(paper_region_weights(weights), 36)
    theirs = basis_of_regions([[body.expand(s.fields) for s in paper]], body.vertex_mass, 36, counts=counts)
    mine, other = (gravity_compliance(body, body.restrict(b.shapes[0])) for b in (ours, theirs))
    assert (mine > 0.97).all()
    assert (1.0 - mine < 0.5 * (1.0 - other)).all()


def test_the_papers_weights_are_cut_and_remapped():
    got = paper_region_weights(np.array([0.0, 0.1, 0.325, 1.0]))
    assert got == pytest.approx([0.0, 0.0, 0.5, 1.0])
    assert paper_region_weights(np.array([0.55]), kappa=1.0)[0] == pytest.approx(0.5)


def test_the_papers_modes_solve_equation_32(body):
    weights = smooth_parts(body.mesh.vertices)[:, 1]
    modes, _ = paper_regional_modes(body, weights, 5)
    remapped = np.repeat(paper_region_weights(weights)[body.free], 3)
    inside = remapped > 0.0
    K = body.rest_stiffness.toarray()[np.ix_(inside, inside)]
    M = body.mass.toarray()[np.ix_(inside, inside)]
    W = np.diag(remapped[inside])
    values, y = eigh(K, W @ M @ W)
    assert modes.eigenvalues == pytest.approx(values[:5], rel=1e-8)
    assert not modes.shapes[~inside].any()
    cross = np.abs((W @ y[:, :5]).T @ M @ modes.shapes[inside])
    assert np.allclose(cross, np.eye(5), atol=1e-6)


@pytest.mark.parametrize("contact", [False, True], ids=["free", "in contact"])
def test_the_papers_derivatives_solve_equations_33_and_35_averaged(contact):
    body = limb("neo-hookean")
    weights = smooth_parts(body.mesh.vertices)[:, 1]
    rows = contact_rows(body) if contact else None
    modes, derivatives = paper_regional_modes(body, weights, 3, constraints=rows)
    remapped = np.repeat(paper_region_weights(weights)[body.free], 3)
    inside = remapped > 0.0
    N = np.zeros((body.size, inside.sum()))
    N[inside] = np.eye(inside.sum())
    if rows is not None:
        N = N @ dense_null_space(rows.toarray()[:, inside] * remapped[inside])
        assert np.abs(rows @ modes.shapes).max() < 1e-10 * np.abs(modes.shapes).max()
        assert np.abs(rows @ derivatives.shapes).max() < 1e-10 * np.abs(derivatives.shapes).max()
    K = body.rest_stiffness.toarray()
    y = np.where(inside[:, None], modes.shapes / np.where(inside, remapped, 1.0)[:, None], 0.0)
    assert derivatives.pairs.tolist() == [[i, j] for j in range(3) for i in range(j + 1)]
    for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True):
        load = 0.5 * (
            by_differences(body, modes.shapes[:, i], y[:, j]) + by_differences(body, modes.shapes[:, j], y[:, i])
        )
        wanted = remapped * (N @ np.linalg.solve(N.T @ K @ N, -N.T @ load))
        assert relative(shape, wanted) < 1e-5, (i, j)


def contact_rows(body):
    class Contacts:
        vertices = np.flatnonzero(body.free & (np.abs(body.mesh.vertices[:, 0] - 0.5) < 0.2))[:5]
        normals = np.random.default_rng(0).standard_normal((5, 3))
        sliding = np.array([True, True, True, True, False])

    return constraint_rows(Contacts(), body.free)


def by_differences(body, a, b):
    """(H:a)b."""
    step = 1e-4 / np.abs(a).max()
    ahead, behind = (body.force_and_stiffness(s * a)[1] for s in (step, -step))
    return (ahead @ b - behind @ b) / (2.0 * step)


def test_contact_on_single_vertices_survives_our_partition(body):
    rows = contact_rows(body)
    X = body.mesh.vertices
    loads = rig_loads(X, skin_weights(X), X[[0, 1, 2]], np.array([-1, 0, 1]), free=body.free)
    fields = body.expand(load_samples(body, loads, derivatives=3, null_space=null_space(rows)).fields)
    found = regional_basis([fields], smooth_parts(X), body.vertex_mass, 24)
    assert np.abs(rows @ body.restrict(found.shapes[0])).max() < 1e-10


def test_a_region_of_the_paper_without_free_vertices_or_modes_is_refused(body):
    with pytest.raises(InputError, match="without vertices"):
        paper_regional_modes(body, np.zeros(len(body.fixed)), 2)
    with pytest.raises(InputError, match="without free vertices"):
        paper_regional_modes(body, body.fixed.astype(float), 2)
    lonely = np.zeros(len(body.fixed))
    lonely[np.flatnonzero(body.free)[0]] = 1.0
    with pytest.raises(ModeCountError):
        paper_regional_modes(body, lonely, 4)


def test_log_sizes_share_all_modes():
    weights = np.zeros((1000, 3))
    weights[:, 0], weights[:100, 1], weights[:10, 2] = 1.0, 1.0, 1.0
    counts = log_size_counts(weights, 60, minimum=2)
    assert sum(counts) == 60
    assert counts[0] > counts[1] > counts[2] > 2
    shares = np.array(counts) - 2.0
    assert shares[0] / shares[2] == pytest.approx(np.log(1001) / np.log(11), rel=0.15)
    with pytest.raises(ModeCountError):
        log_size_counts(weights, 5, minimum=2)
    with pytest.raises(InputError, match="not 7"):
        basis_of_regions([[np.ones((4, 3, 2))] * 2], np.ones(4), 7, counts=[1, 2])


def test_fingers_join_the_hand_and_left_stays_like_right():
    #          0 hips, 1 chest, 2/3 arms, 4/5 hands, 6-9 fingers, 10/11 legs, 12 head
    parents = np.array([-1, 0, 1, 1, 2, 3, 4, 4, 5, 5, 0, 0, 1])
    volumes = np.array([9.0, 12.0, 5.0, 5.1, 1.0, 1.02, 0.1, 0.1, 0.1, 0.1, 8.0, 8.1, 4.0])
    region, tops = merged_bones(volumes, parents, 7)
    assert region[[2, 4, 6, 7]].tolist() == [region[2]] * 4
    assert region[[3, 5, 8, 9]].tolist() == [region[3]] * 4
    assert len(set(region[[0, 1, 2, 3, 10, 11, 12]].tolist())) == 7
    assert tops == [0, 1, 2, 3, 10, 11, 12]
    for count in range(1, 7):
        fewer, tops = merged_bones(volumes, parents, count)
        assert len(tops) <= count
        assert (fewer[2] == fewer[1]) == (fewer[3] == fewer[1])
        assert (fewer[10] == fewer[0]) == (fewer[11] == fewer[0])
        size = np.bincount(fewer, volumes)
        assert size.min() >= 0.5 * volumes.sum() / count


def test_bones_that_carry_nothing_join_and_roots_join_what_hangs_on_them():
    region, tops = merged_bones(np.array([0.0, 0.0, 5.0, 4.0]), np.array([-1, 0, 1, 2]), 4)
    assert region.tolist() == [0, 0, 0, 1]
    assert tops == [0, 3]
    # Two trees: nothing is above the small root, so it joins the smallest of the others.
    region, _ = merged_bones(np.array([0.1, 5.0, 6.0]), np.array([-1, -1, 1]), 3)
    assert region.tolist() == [0, 0, 1]
    with pytest.raises(InputError):
        merged_bones(np.zeros(2), np.array([-1, 0]), 2)


def test_default_regions_are_a_smooth_local_partition(body):
    mesh = body.mesh
    hard = csr_array(np.eye(3)[smooth_parts(mesh.vertices).argmax(axis=1)])
    regions = default_regions(mesh, hard, np.array([-1, 0, 1]), names=("a", "b", "c"))
    assert regions.names == ("a", "b", "c")
    assert regions.region_of_bone.tolist() == [0, 1, 2]
    W = regions.weights
    assert W.min() >= 0.0
    assert np.allclose(W.sum(axis=1), 1.0, atol=1e-12)
    near, far = mesh.vertices[:, 0] < 0.1, mesh.vertices[:, 0] > 0.9
    assert (W[near, 0] > 0.95).all()
    assert not W[near, 2].any()
    assert not W[far, 0].any()
    # Smoother than the jump it came from, more so with a wider blend.
    steps = [
        largest_step(mesh, default_regions(mesh, hard, np.array([-1, 0, 1]), blend=b).weights) for b in (0, 0.1, 1.0)
    ]
    assert steps[0] > steps[1] > steps[2]


def largest_step(mesh, weights):
    return np.abs(np.diff(weights[mesh.elements], axis=1)).max()


def test_regions_of_handles_are_bounded_biharmonic_ones_made_compact(body):
    handles = [Handle.point("low", (0.1, 0.12, 0.09)), Handle.point("high", (0.9, 0.12, 0.09))]
    X = body.mesh.vertices
    regions = default_regions(body.mesh, skin_weights(X), np.array([-1, 0, 1]), handles=handles)
    assert regions.names == ("low", "high")
    assert np.array_equal(regions.weights, compact_partition(region_weights(body.mesh, handles).weights))
    assert regions.region_of_bone[[0, 2]].tolist() == [0, 1]


def test_the_papers_regions_reach_from_handle_to_handle(body):
    """PSSD §7: plain bounded biharmonic weights of points, which are cut off once, not twice."""
    X = body.mesh.vertices
    narrow = default_regions(body.mesh, skin_weights(X), np.array([-1, 0, 1]), names=("a", "b", "c"))
    wide = paper_regions(body.mesh, narrow)
    assert wide.names == narrow.names
    assert wide.region_of_bone.tolist() == narrow.region_of_bone.tolist()
    volumes = np.bincount(body.mesh.elements.ravel(), np.repeat(body.mesh.volumes / 4.0, 4), minlength=len(X))
    middles = [np.average(X, axis=0, weights=volumes * w) for w in narrow.weights.T]
    points = [Handle.point(name, middle) for name, middle in zip("abc", middles, strict=True)]
    assert np.allclose(wide.weights, region_weights(body.mesh, points).weights)
    given = [Handle.point("low", (0.1, 0.12, 0.09)), Handle.point("high", (0.9, 0.12, 0.09))]
    compact = default_regions(body.mesh, skin_weights(X), np.array([-1, 0, 1]), handles=given)
    assert np.array_equal(paper_regions(body.mesh, compact, given).weights, region_weights(body.mesh, given).weights)
    alone = default_regions(body.mesh, skin_weights(X), np.array([-1, 0, 1]), count=1)
    assert paper_regions(body.mesh, alone) is alone


def test_derivatives_of_the_leading_modes_alone(body):
    weights = smooth_parts(body.mesh.vertices)[:, 1]
    modes, every = paper_regional_modes(body, weights, 5)
    same, few = paper_regional_modes(body, weights, 5, derivatives=2)
    assert np.allclose(np.abs(modes.shapes), np.abs(same.shapes), atol=1e-8)
    assert few.pairs.tolist() == every.pairs[:3].tolist() == [[0, 0], [0, 1], [1, 1]]
    assert relative(np.abs(few.shapes), np.abs(every.shapes[:, :3])) < 1e-6


def test_compact_partitions_vanish_without_a_crease_and_keep_the_sum():
    t = np.linspace(0.0, 1.0, 2001)
    got = compact_partition(np.stack([t, 1.0 - t], axis=1), threshold=0.1)
    assert np.allclose(got.sum(axis=1), 1.0)
    assert not got[t < 0.1, 0].any()
    slopes = np.diff(got[:, 0]) / np.diff(t)
    assert slopes.min() >= 0.0
    assert slopes[t[1:] < 0.11].max() < 0.1
    many = compact_partition(np.full((1, 20), 0.05))
    assert many == pytest.approx(0.05)


def test_a_completed_basis_holds_what_was_lived_and_local_modes_beyond_it():
    random = np.random.default_rng(4)
    n, mass = 30, random.uniform(0.5, 2.0, 30)
    partition = np.zeros((n, 2))
    partition[:18, 0] = partition[12:, 1] = 1.0
    partition /= partition.sum(axis=1, keepdims=True)
    lived = random.normal(size=(n, 3, 6)) * np.array([8.0, 6.0, 4.0, 3.0, 0.1, 0.05])
    samples = [random.normal(size=(n, 3, 20)) for _ in range(2)]
    basis = completed_basis(lived, 4, samples, partition, mass, 14, minimum=2)
    assert basis.region_of_mode.tolist() == sorted(basis.region_of_mode.tolist())
    whole = basis.region_of_mode == 2
    assert whole.sum() == 4
    weights = np.repeat(mass, 3)[:, None]
    for shapes in basis.shapes:
        known = shapes[:, :, whole].reshape(-1, 4)
        np.testing.assert_allclose(known.T @ (weights * known), np.eye(4), atol=1e-12)
        np.testing.assert_array_equal(shapes[:, :, whole], basis.shapes[0][:, :, whole])
        # The four largest lived shapes are almost within them, the small ones are not.
        left = lived.reshape(-1, 6) - known @ (known.T @ (weights * lived.reshape(-1, 6)))
        shares = np.linalg.norm(left, axis=0) / np.linalg.norm(lived.reshape(-1, 6), axis=0)
        assert shares[:3].max() < 0.05
        assert shares[4:].min() > 0.5
        assert not shapes[18:, :, basis.region_of_mode == 0].any()
        assert not shapes[:12, :, basis.region_of_mode == 1].any()
    one = completed_basis(lived, 4, samples, np.ones((n, 1)), mass, 10)
    assert not one.region_of_mode.any()
    everything = one.shapes[0].reshape(-1, 10)
    np.testing.assert_allclose(everything.T @ (weights * everything), np.eye(10), atol=1e-10)


def test_leading_fields_keep_what_matters():
    random = np.random.default_rng(5)
    mass = random.uniform(0.5, 2.0, 12)
    fields = random.normal(size=(12, 3, 3)) @ random.normal(size=(3, 9))
    fields[3] = 0.0
    few = leading_fields(fields, mass, 3)
    assert few.shape == (12, 3, 3)
    flat, kept, weights = fields.reshape(36, 9), few.reshape(36, 3), np.repeat(mass, 3)[:, None]
    np.testing.assert_allclose(kept @ kept.T, flat @ flat.T, atol=1e-9)
    assert leading_fields(fields, mass, 9) is fields
    assert np.linalg.norm(np.sqrt(weights) * kept) == pytest.approx(np.linalg.norm(np.sqrt(weights) * flat))


def test_samples_that_are_not_finite_name_the_vertex():
    fields = np.random.default_rng(0).standard_normal((9, 3, 8))
    fields[[0, 4]] = 0.0  # vertices that do not move are left out of the sums, but not of the count
    fields[7, 1, 2] = np.nan
    weights = np.zeros((9, 2))
    weights[:6, 0], weights[6:, 1] = 1.0, 1.0
    with pytest.raises(NotFiniteError) as caught:
        regional_basis([fields], weights, np.ones(9), 4, minimum=2)
    assert list(caught.value.indices) == [7]
    with pytest.raises(NotFiniteError) as caught:
        basis_of_regions([[fields]], np.ones(9), 4)
    assert list(caught.value.indices) == [7]
