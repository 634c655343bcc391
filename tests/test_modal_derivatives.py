"""Modal derivatives against differences of eigenvectors, and the bases made of them (StVK05 §5.1, App. D)."""

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from bodies_for_tests import RUBBER, beam, mass_norm, relative, tip_load
from softrig.bases.derivatives import derivative_basis, derivative_samples, modal_derivatives
from softrig.bases.modes import linear_modes
from softrig.bases.snapshots import snapshot_basis
from softrig.dynamics import static_equilibrium
from softrig.errors import InputError, ModeCountError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca

SOLVERS = ["superlu", "pardiso"]
LAWS = ["stvk", "corotational", "neo-hookean", "stable-neo-hookean"]


def differenced_mode(body, modes, i, j):
    """∂ψ_i/∂p_j by central differences of the dense eigenvectors of K(±εψ_j)."""
    step = 2e-5 / np.abs(modes.shapes[:, j]).max()
    mass = body.mass.toarray()
    sides = []
    for sign in (1.0, -1.0):
        stiffness = body.force_and_stiffness(sign * step * modes.shapes[:, j])[1].toarray()
        _, vectors = eigh(stiffness, mass)
        overlap = modes.shapes[:, i] @ (mass @ vectors)
        best = np.abs(overlap).argmax()
        sides.append(vectors[:, best] * np.sign(overlap[best]))
    return (sides[0] - sides[1]) / (2.0 * step)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_derivatives_with_inertia_are_those_of_the_eigenvectors(free, law):
    body = beam(lengths=(1.0, 0.31, 0.17), counts=(3, 1, 1), free=free, law=law)
    modes = linear_modes(body, 4)
    assert np.diff(modes.eigenvalues).min() > 0.05 * modes.eigenvalues[0]  # else the comparison means nothing
    derivatives = modal_derivatives(body, modes, inertia=True)
    assert sorted(map(tuple, derivatives.pairs.tolist())) == [(i, j) for i in range(4) for j in range(4)]
    largest = np.linalg.norm(derivatives.shapes, axis=0).max()
    for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True):
        assert np.linalg.norm(shape - differenced_mode(body, modes, i, j)) < 1e-4 * largest, (i, j)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("law", LAWS)
def test_derivatives_without_inertia_solve_equation_14(law, solver):
    body = beam("tets", law=law, solver=solver)
    modes = linear_modes(body, 4)
    derivatives = modal_derivatives(body, modes)
    assert derivatives.pairs.tolist() == [[i, j] for j in range(4) for i in range(j + 1)]
    for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True):
        step = 1e-4 / np.abs(modes.shapes[:, i]).max()
        ahead, behind = (body.force_and_stiffness(s * modes.shapes[:, i])[1] for s in (step, -step))
        load = (ahead @ modes.shapes[:, j] - behind @ modes.shapes[:, j]) / (2.0 * step)  # (H:ψ_i)ψ_j
        assert relative(body.rest_stiffness @ shape, -load) < 1e-5, (i, j)


def test_the_first_derivative_pulls_the_tip_of_a_bending_beam_back():
    body = beam(counts=(6, 1, 1))
    modes = linear_modes(body, 1)
    shape = body.expand(modal_derivatives(body, modes).shapes[:, 0])
    assert shape[body.mesh.vertices[:, 0] > 0.99][:, 0].max() < 0.0  # bent either way, the tip comes closer


@pytest.mark.parametrize("inertia", [False, True], ids=["static", "with inertia"])
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_both_solvers_give_the_same_derivatives(free, inertia):
    modes = linear_modes(beam(free=free), 4)
    one, other = (modal_derivatives(beam(free=free, solver=s), modes, inertia=inertia) for s in SOLVERS)
    assert np.array_equal(one.pairs, other.pairs)
    assert relative(one.shapes, other.shapes) < 1e-8


def test_static_derivatives_of_a_free_body_hold_no_rigid_motion_and_balance_the_rest_of_the_load():
    body = beam(free=True)
    modes = linear_modes(body, 4)
    derivatives = modal_derivatives(body, modes, inertia=False)
    size = np.linalg.norm(derivatives.shapes)
    assert np.abs(modes.rigid.T @ (body.mass @ derivatives.shapes)).max() < 1e-9 * size
    load = -body.stiffness_derivative(modes.shapes)
    carried = load - (body.mass @ modes.rigid) @ (modes.rigid.T @ load)
    assert relative(body.rest_stiffness @ derivatives.shapes, carried) < 1e-8


@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
@pytest.mark.parametrize("inertia", [False, True, None])
def test_the_default_keeps_inertia_for_free_bodies_only(free, inertia):
    body = beam(free=free)
    derivatives = modal_derivatives(body, linear_modes(body, 3), inertia=inertia)
    with_inertia = free if inertia is None else inertia
    assert derivatives.shapes.shape[1] == (9 if with_inertia else 6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_degenerate_pairs_of_a_square_beam_stay_finite_and_orthogonal_to_their_cluster(free, solver):
    body = beam(lengths=(1.0, 0.2, 0.2), free=free, solver=solver)
    modes = linear_modes(body, 4)
    assert modes.eigenvalues[1] - modes.eigenvalues[0] < 1e-6 * modes.eigenvalues[0]
    static = modal_derivatives(body, modes, inertia=False)
    exact = modal_derivatives(body, modes, inertia=True)
    assert np.isfinite(exact.shapes).all()
    assert np.linalg.norm(exact.shapes, axis=0).max() < 10.0 * np.linalg.norm(static.shapes, axis=0).max()
    for (i, _), shape in zip(exact.pairs, exact.shapes.T, strict=True):
        cluster = np.abs(modes.eigenvalues - modes.eigenvalues[i]) < 1e-3 * modes.eigenvalues[i]
        along = modes.shapes[:, cluster].T @ (body.mass @ shape)
        assert np.abs(along).max() < 1e-8 * np.linalg.norm(shape), i


def two_ears(solver, apart=0.0) -> FullBody:
    """Two equal parts without symmetry of their own: every frequency comes twice, its modes any mixture.

    `apart` makes the second one stiffer by that share.
    """
    ear = box_tets((1.0, 0.22, 0.17), (3, 1, 1))
    beside = ear.vertices + np.array([0.0, 1.0, 0.0])
    both = np.concatenate([ear.elements, ear.elements + len(ear.vertices)])
    mesh = VolumeMesh.build(np.concatenate([ear.vertices, beside]), both)
    young = np.random.default_rng(0).uniform(5e4, 2e5, len(ear.elements))
    young = np.concatenate([young, (1.0 + apart) * young])
    fixed = mesh.vertices[:, 0] == 0.0
    return FullBody(mesh, Material(young=young, poisson=0.35, density=1000.0), fixed=fixed, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("count", [2, 4, 1, 3], ids=["a pair", "two pairs", "half a pair", "one and a half"])
@pytest.mark.parametrize("apart", [0.0, 3e-4], ids=["equal", "nearly equal"])
def test_two_equal_ears_do_not_blow_up_however_many_modes_are_kept(apart, count, solver):
    body = two_ears(solver, apart)
    modes, pairs = linear_modes(body, count), linear_modes(body, 4)
    assert np.abs(np.diff(pairs.eigenvalues)[[0, 2]]).max() < 1e-3 * pairs.eigenvalues[0]
    static = modal_derivatives(body, modes, inertia=False)
    exact = modal_derivatives(body, modes, inertia=True)
    assert np.linalg.norm(exact.shapes, axis=0).max() < 10.0 * np.linalg.norm(static.shapes, axis=0).max()
    for (i, _), shape in zip(exact.pairs, exact.shapes.T, strict=True):
        own = pairs.shapes[:, 2 * (i // 2) : 2 * (i // 2) + 2]
        assert np.abs(own.T @ (body.mass @ shape)).max() < 1e-6 * np.linalg.norm(shape), i


def test_progress_counts_factorisations():
    heard = []
    body = beam()
    modal_derivatives(body, linear_modes(body, 3), inertia=True, progress=lambda *at: heard.append(at))
    modal_derivatives(body, linear_modes(body, 3), progress=lambda *at: heard.append(at))
    assert heard == [(1, 3), (2, 3), (3, 3), (1, 1)]


def test_amplitude_zero_gives_the_printed_weights_of_equation_16():
    body = beam()
    modes = linear_modes(body, 3)
    derivatives = modal_derivatives(body, modes)
    samples = derivative_samples(body, modes, derivatives, amplitude=0)
    lam = modes.eigenvalues
    wanted = [lam[0] / lam[j] * modes.shapes[:, j] for j in range(3)]
    wanted += [
        lam[0] ** 2 / (lam[i] * lam[j]) * shape / mass_norm(body, shape)
        for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True)
    ]
    np.testing.assert_allclose(samples, np.array(wanted).T, rtol=1e-13)


@pytest.mark.parametrize("amplitude", [None, 0.07])
@pytest.mark.parametrize("inertia", [False, True], ids=["symmetric", "all pairs"])
def test_samples_are_the_terms_of_the_parabola_at_the_expected_amplitude(inertia, amplitude):
    body = beam()
    modes = linear_modes(body, 3)
    derivatives = modal_derivatives(body, modes, inertia=inertia)
    samples = derivative_samples(body, modes, derivatives, amplitude=amplitude)
    reach = 0.25 * np.linalg.norm([1.0, 0.22, 0.17]) if amplitude is None else amplitude
    assert np.linalg.norm(samples[:, 0].reshape(-1, 3), axis=1).max() == pytest.approx(reach)
    p = reach / np.linalg.norm(modes.shapes[:, 0].reshape(-1, 3), axis=1).max() * modes.eigenvalues[0]
    p = p / modes.eigenvalues
    parabola = modes.shapes @ p  # Eq. 13 with its full double sum
    for (i, j), shape in zip(derivatives.pairs, derivatives.shapes.T, strict=True):
        twice = 2.0 if not inertia and i != j else 1.0
        parabola = parabola + 0.5 * twice * p[i] * p[j] * shape
    np.testing.assert_allclose(samples.sum(axis=1), parabola, atol=1e-12)


def test_a_negative_amplitude_raises():
    body = beam()
    modes = linear_modes(body, 2)
    with pytest.raises(InputError, match="amplitude"):
        derivative_samples(body, modes, modal_derivatives(body, modes), amplitude=-0.1)


def largest_angle(body, one, other):
    """Largest principal angle of two subspaces in the mass metric, radians."""
    root = np.linalg.cholesky(body.mass.toarray()).T
    return subspace_angles(root @ one, root @ other).max()


@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_the_basis_does_not_depend_on_the_unit_of_length(free):
    metres = beam(free=free)
    # The same body in centimetres: pascal = kg/(m s²), so moduli divide by 100 and densities by 100³.
    young, density = RUBBER.young / 100.0, RUBBER.density / 100.0**3
    material = Material(young=young, poisson=RUBBER.poisson, density=density)
    centimetres = beam(lengths=(100.0, 22.0, 17.0), free=free, material=material)
    np.testing.assert_allclose(linear_modes(metres, 3).frequencies, linear_modes(centimetres, 3).frequencies, rtol=1e-8)
    angles = {
        amplitude: largest_angle(
            metres,
            derivative_basis(metres, 6, modes=4, amplitude=amplitude).shapes,
            derivative_basis(centimetres, 6, modes=4, amplitude=amplitude).shapes,
        )
        for amplitude in (None, 0.0)
    }
    assert max(angles.values()) < 1e-5


@pytest.mark.parametrize("size", [5, 9])
def test_derivatives_capture_large_bending_that_linear_modes_miss(size):
    body = beam(lengths=(1.0, 0.1, 0.08), counts=(10, 1, 1))
    bent = static_equilibrium(body, tip_load(body, (0.0, 0.0, -3.0)))
    assert np.abs(bent).max() > 0.3

    def missed(basis):
        return mass_norm(body, bent - basis @ (basis.T @ (body.mass @ bent))) / mass_norm(body, bent)

    assert missed(derivative_basis(body, size).shapes) < 0.25 * missed(linear_modes(body, size).shapes)


@pytest.mark.parametrize("free", [False, True], ids=["anchored", "free"])
def test_the_basis_is_mass_orthonormal_without_rigid_motion_and_sorted_by_weight(free):
    body = beam(free=free)
    basis = derivative_basis(body, 8)
    np.testing.assert_allclose(basis.shapes.T @ (body.mass @ basis.shapes), np.eye(8), atol=1e-10)
    assert (np.diff(basis.singular_values) <= 0.0).all()
    if free:
        assert np.abs(linear_modes(body, 1).rigid.T @ (body.mass @ basis.shapes)).max() < 1e-9


def test_a_basis_larger_than_modes_and_derivatives_span_raises():
    with pytest.raises(ModeCountError, match="2 modes"):
        derivative_basis(beam(), 6, modes=2)


def test_mass_pca_is_a_singular_value_decomposition_in_the_mass_metric():
    body = beam()
    samples = np.random.default_rng(0).standard_normal((body.size, 5)) * [5.0, 4.0, 3.0, 2.0, 1.0]
    basis, singular = mass_pca(samples, body.mass, 3)
    root = np.linalg.cholesky(body.mass.toarray()).T
    u, s, _ = np.linalg.svd(root @ samples, full_matrices=False)
    np.testing.assert_allclose(singular, s[:3], rtol=1e-8)
    assert subspace_angles(root @ basis, u[:, :3]).max() < 1e-6


def test_snapshots_of_a_free_body_lose_their_rigid_part():
    body = beam(free=True)
    rng = np.random.default_rng(1)
    shapes = body.expand(linear_modes(body, 3).shapes).transpose(2, 0, 1) * 0.1
    carried = shapes + rng.standard_normal((3, 1, 3)) + np.cross(rng.standard_normal((3, 1, 3)), body.mesh.vertices)
    root_angle = largest_angle(body, snapshot_basis(body, carried, 3).shapes, snapshot_basis(body, shapes, 3).shapes)
    assert root_angle < 1e-5
    with pytest.raises(InputError, match="shape"):
        snapshot_basis(body, shapes[0], 1)
