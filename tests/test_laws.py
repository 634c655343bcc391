"""Material laws against their definitions: derivatives, symmetries, rest state, PSD projection."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.linalg import sqrtm
from scipy.spatial.transform import Rotation

from softrig.errors import InputError
from softrig.fem import laws
from softrig.fem.laws import LAWS, law_code

LAM, MU = 1.3, 0.7

STRETCHES = {
    "near rest": (1.04, 1.01, 0.97),
    "large": (2.6, 1.2, 0.35),
    "squashed": (0.7, 0.5, 0.3),
    "two equal": (1.4, 1.4, 0.6),
    "other two equal": (1.4, 0.7, 0.7),
    "all equal": (0.8, 0.8, 0.8),
    "rest": (1.0, 1.0, 1.0),
    "flat": (1.5, 0.8, 0.0),
    "inverted": (1.6, 0.9, -0.4),
    "inverted, two equal": (0.9, 0.9, -0.4),
}
CASES = [
    (law, name)
    for law, name in product(LAWS, STRETCHES)
    if not (law == "neo-hookean" and np.prod(STRETCHES[name]) <= 0.0)
]
every_law = pytest.mark.parametrize("law", LAWS)
every_case = pytest.mark.parametrize(("law", "stretches"), CASES)


def energy(law, F):
    return laws.energy(LAWS[law], np.ascontiguousarray(F), LAM, MU, np.empty(laws.WORKSPACE))


def stress(law, F):
    P = np.full((3, 3), np.nan)
    laws.stress(LAWS[law], np.ascontiguousarray(F), LAM, MU, P, np.empty(laws.WORKSPACE))
    return P


def hessian(law, F, kernel=laws.hessian):
    H = np.full((9, 9), np.nan)
    kernel(LAWS[law], np.ascontiguousarray(F), LAM, MU, H, np.empty(laws.WORKSPACE))
    return H


def projected_hessian(law, F):
    return hessian(law, F, laws.projected_hessian)


def rotations(count, seed):
    return Rotation.random(count, random_state=seed).as_matrix()


def deformations(stretches, count=4):
    """Deformation gradients with these signed principal stretches, turned at random on both sides."""
    seed = 17 * list(STRETCHES).index(stretches)
    pairs = zip(rotations(count, seed), rotations(count, seed + 1), strict=True)
    return [U @ np.diag(STRETCHES[stretches]) @ V.T for U, V in pairs]


def random_deformations(law, count, seed, spread=0.7):
    """Random F from near rest to badly deformed; inverted ones only where the law knows them."""
    rng = np.random.default_rng(seed)
    found = np.eye(3) + spread * rng.uniform(0.0, 1.0, (4 * count, 1, 1)) * rng.standard_normal((4 * count, 3, 3))
    if law == "neo-hookean":
        found = found[np.linalg.det(found) > 0.05]
    return found[:count]


def unit_matrices():
    return np.eye(9).reshape(9, 3, 3)


def eigenvalue_clamp(H):
    values, vectors = np.linalg.eigh(H)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def assert_close(got, expected, tolerance, scale=None):
    """Largest difference within `tolerance` of the largest expected entry (or of `scale`)."""
    scale = max(np.abs(expected).max(), LAM) if scale is None else scale
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=tolerance * scale)


@every_case
def test_stress_is_the_derivative_of_energy(law, stretches, slope):
    for F in deformations(stretches):
        expected = [slope(lambda t, D=D, F=F: energy(law, F + t * D)) for D in unit_matrices()]
        assert_close(stress(law, F).ravel(), expected, 1e-8)


@every_case
def test_hessian_is_the_derivative_of_stress(law, stretches, slope):
    for F in deformations(stretches):
        columns = [slope(lambda t, D=D, F=F: stress(law, F + t * D).ravel()) for D in unit_matrices()]
        assert_close(hessian(law, F), np.transpose(columns), 1e-7)


@every_case
def test_hessian_is_symmetric(law, stretches):
    for F in deformations(stretches):
        H = hessian(law, F)
        assert_close(H, H.T, 1e-14)


@every_case
def test_energy_ignores_rotations_before_and_after(law, stretches):
    for F, Q in zip(deformations(stretches), rotations(4, seed=5), strict=True):
        expected = energy(law, F)
        assert energy(law, Q @ F) == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert energy(law, F @ Q) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@every_case
def test_stress_turns_with_the_body(law, stretches):
    for F, Q in zip(deformations(stretches), rotations(4, seed=6), strict=True):
        assert_close(stress(law, Q @ F), Q @ stress(law, F), 1e-12)
        assert_close(stress(law, F @ Q), stress(law, F) @ Q, 1e-12)


@every_law
def test_rest_and_rotations_store_no_energy_and_no_stress(law):
    for Q in [np.eye(3), *rotations(5, seed=2)]:
        assert energy(law, Q) == pytest.approx(0.0, abs=1e-14)
        assert_close(stress(law, Q), np.zeros((3, 3)), 1e-14)


@every_law
def test_hessian_at_rest_is_hookes_law(law):
    hooke = np.empty((9, 9))
    for a, b in product(range(9), range(9)):
        (i, K), (j, L) = divmod(a, 3), divmod(b, 3)
        hooke[a, b] = LAM * (i == K) * (j == L) + MU * ((i == j) * (K == L) + (i == L) * (K == j))
    assert_close(hessian(law, np.eye(3)), hooke, 1e-14)
    assert_close(projected_hessian(law, np.eye(3)), hooke, 1e-14)


@every_law
def test_energy_matches_its_formula_in_principal_stretches(law):
    """The formulas of the module's table, for one asymmetric diagonal F."""
    s = np.array([1.7, 1.2, 0.6])
    E, J = 0.5 * (s**2 - 1.0), s.prod()
    expected = {
        "stvk": LAM / 2 * E.sum() ** 2 + MU * (E**2).sum(),
        "corotational": LAM / 2 * (s.sum() - 3) ** 2 + MU * ((s - 1) ** 2).sum(),
        "neo-hookean": MU / 2 * ((s**2).sum() - 3) - MU * np.log(J) + LAM / 2 * np.log(J) ** 2,
        "stable-neo-hookean": MU / 2 * ((s**2).sum() - 3) - MU * (J - 1) + (LAM + MU) / 2 * (J - 1) ** 2,
    }
    assert energy(law, np.diag(s)) == pytest.approx(expected[law], rel=1e-13)


@every_case
def test_projection_clamps_the_eigenvalues_of_the_exact_hessian(law, stretches):
    for F in deformations(stretches):
        assert_close(projected_hessian(law, F), eigenvalue_clamp(hessian(law, F)), 1e-12)


@every_law
def test_projection_clamps_the_eigenvalues_for_random_deformations(law):
    clamped = 0
    for F in random_deformations(law, 200, seed=8):
        H = hessian(law, F)
        clamped += np.linalg.eigvalsh(H)[0] < 0.0
        assert_close(projected_hessian(law, F), eigenvalue_clamp(H), 1e-11)
    assert clamped > 20, "the sample must contain indefinite Hessians to show anything"


@every_law
def test_projected_hessian_is_positive_semidefinite(law):
    for F in random_deformations(law, 200, seed=9, spread=1.5):
        values = np.linalg.eigvalsh(projected_hessian(law, F))
        assert values[0] >= -1e-12 * values[-1]


@every_law
def test_projection_leaves_definite_hessians_alone(law):
    untouched = 0
    for F in random_deformations(law, 200, seed=10, spread=0.2):
        H = hessian(law, F)
        if np.linalg.eigvalsh(H)[0] >= 0.0:
            untouched += 1
            assert_close(projected_hessian(law, F), H, 1e-13)
    assert untouched > 20, "the sample must contain definite Hessians to show anything"


@pytest.mark.parametrize("longest", [1.2, 8.0])
def test_corotational_projection_survives_where_the_rotation_is_undefined(longest):
    """σ₁ + σ₂ = 0: the polar rotation jumps there, and its curvature is infinite."""
    H = projected_hessian("corotational", np.diag([longest, 0.6, -0.6]))
    values = np.linalg.eigvalsh(H)
    assert np.isfinite(values).all()
    assert values[0] >= -1e-12 * values[-1]


@every_law
@pytest.mark.parametrize("direction", ["volume", "shear", "random 0", "random 1"])
def test_third_order_constants_are_the_cubic_term_of_energy(law, direction):
    """ψ(√(I + 2tD)) has the t³ coefficient a/3 tr D³ + b tr D tr D² + c/3 (tr D)³."""
    D = {
        "volume": np.eye(3) / 3.0,
        "shear": np.array([[0.3, 0.4, 0.0], [0.4, -0.5, 0.2], [0.0, 0.2, 0.2]]),
        "random 0": np.diag([0.8, -0.3, 0.1]),
        "random 1": np.array([[0.2, 0.1, -0.3], [0.1, 0.5, 0.2], [-0.3, 0.2, 0.1]]),
    }[direction]

    def energy_along(strain):
        return energy(law, np.real(sqrtm(np.eye(3) + 2.0 * strain * D)))

    expansion = Chebyshev.interpolate(np.vectorize(energy_along), 20, domain=[-0.2, 0.2])
    a, b, c = laws.third_order_constants(LAWS[law], LAM, MU)
    trace, square, cube = np.trace(D), np.trace(D @ D), np.trace(D @ D @ D)
    expected = a / 3.0 * cube + b * trace * square + c / 3.0 * trace**3
    assert expansion.deriv(3)(0.0) / 6.0 == pytest.approx(expected, rel=1e-7, abs=1e-8)


def test_stvk_is_blind_to_inversion():
    """A known weakness, not a wish: a mirrored element is at rest, so nothing pushes it back."""
    mirror = np.diag([-1.0, 1.0, 1.0])
    assert energy("stvk", mirror) == 0.0
    assert not stress("stvk", mirror).any()
    assert energy("corotational", mirror) > MU
    assert energy("stable-neo-hookean", mirror) > MU


@pytest.mark.parametrize("last", [0.0, -1e-3, -1.0])
def test_neo_hookean_refuses_flat_and_inverted_elements(last):
    F = np.diag([1.0, 1.0, last])
    assert energy("neo-hookean", F) == np.inf
    assert np.isnan(stress("neo-hookean", F)).any()
    assert np.isnan(hessian("neo-hookean", F)).any()


def test_neo_hookean_energy_grows_without_bound_towards_flatness():
    energies = [energy("neo-hookean", np.diag([1.0, 1.0, thickness])) for thickness in (1e-1, 1e-10, 1e-100)]
    assert energies[0] < energies[1] < energies[2]
    assert energies[2] > 1e4


def test_unknown_law_names_the_known_ones():
    with pytest.raises(InputError, match="corotational, neo-hookean, stable-neo-hookean, stvk"):
        law_code("jelly")
