"""Static equilibrium R(q) = f: every law, small and large loads, buckling, refusals."""

import numpy as np
import pytest

from bodies_for_tests import beam, relative, slopes, tip, tip_load
from softrig.bases.modes import linear_modes
from softrig.dynamics import static_equilibrium
from softrig.errors import AnchorError, InputError, NotFiniteError, SolverError
from softrig.fem.loads import gravity_force
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body

LAWS = ["stvk", "corotational", "neo-hookean", "stable-neo-hookean"]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", ["tets", "bricks"])
def test_equilibrium_balances_the_load(kind, law):
    body = beam(kind, law=law)
    force = tip_load(body, (3.0, -2.0, -8.0))
    q = static_equilibrium(body, force)
    assert relative(body.force(q), force) <= 1e-8
    lift = body.expand(q)[tip(body)].mean(axis=0)
    assert lift[2] < -0.03  # where it is pulled, and visibly


@pytest.mark.parametrize("law", LAWS)
def test_small_loads_approach_the_linear_answer_with_a_second_order_difference(law):
    body = beam(law=law)
    shift = np.linalg.solve(body.rest_stiffness.toarray(), tip_load(body, (2.0, 1.0, -1.0)))
    sizes = [0.4, 0.2, 0.1, 0.05]
    errors = []
    for size in sizes:
        q = static_equilibrium(body, size * tip_load(body, (2.0, 1.0, -1.0)), tolerance=1e-10)
        errors.append(float(np.linalg.norm(q - size * shift)))
    assert errors[-1] < 1e-2 * sizes[-1] * np.linalg.norm(shift)
    assert ((slopes(errors) > 1.9) & (slopes(errors) < 2.1)).all()


@pytest.mark.parametrize("load_steps", [1, 5])
def test_a_large_bending_load_converges_to_the_same_shape_however_it_is_applied(load_steps):
    body = beam(counts=(8, 1, 1))
    force = tip_load(body, (0.0, 0.0, -40.0))
    heard = []
    q = static_equilibrium(body, force, load_steps=load_steps, progress=lambda *at: heard.append(at))
    assert relative(body.force(q), force) <= 1e-8
    assert body.expand(q)[tip(body)][:, 2].mean() < -0.4  # of a beam one metre long
    assert heard == [(part, load_steps) for part in range(1, load_steps + 1)]
    np.testing.assert_allclose(q, static_equilibrium(body, force, load_steps=3), atol=1e-6)


def test_a_beam_sags_under_gravity_as_far_as_its_stiffness_lets_it():
    sags = []
    for young in (1e6, 2e6):
        body = beam(material=Material(young=young, poisson=0.35, density=1000.0))
        force = body.restrict(gravity_force(body.vertex_mass))
        q = static_equilibrium(body, force)
        assert relative(body.force(q), force) <= 1e-8
        assert force.sum() == pytest.approx(-9.80665 * body.vertex_mass[body.free].sum())
        sags.append(body.expand(q)[tip(body)][:, 2].mean())
    assert sags[0] < -0.1
    assert sags[1] == pytest.approx(0.5 * sags[0], rel=0.1)


@pytest.mark.parametrize("solver", ["superlu", "pardiso"])
@pytest.mark.parametrize("nudge", ["sideways", "random"])
def test_a_compressed_bar_buckles_into_a_minimum(nudge, solver):
    body = beam(lengths=(1.0, 0.12, 0.1), counts=(8, 1, 1), solver=solver)
    force = tip_load(body, (-10.0, 0.0, 0.0))
    straight = static_equilibrium(body, force)
    assert np.linalg.eigvalsh(body.force_and_stiffness(straight)[1].toarray())[0] < 0.0  # no minimum
    push = np.random.default_rng(0).standard_normal(body.size)
    if nudge == "sideways":
        push = body.restrict(np.ones_like(body.mesh.vertices) * [0.0, 0.5, 1.0])
    q = static_equilibrium(body, force, start=straight + 1e-3 * push)
    assert relative(body.force(q), force) <= 1e-8
    assert body.energy(q) - force @ q < body.energy(straight) - force @ straight
    assert np.linalg.eigvalsh(body.force_and_stiffness(q)[1].toarray())[0] > 0.0
    assert np.linalg.norm(body.expand(q)[tip(body)][:, 1:].mean(axis=0)) > 0.1


def test_a_deformed_body_without_load_goes_back_to_rest():
    body = beam()
    bent = static_equilibrium(body, tip_load(body, (0.0, 0.0, -8.0)))
    q = static_equilibrium(body, np.zeros(body.size), start=bent)
    assert np.abs(q).max() < 1e-9 * np.abs(bent).max()


def test_a_reduced_body_finds_its_equilibrium_the_same_way():
    body = beam()
    model = reduce_body(body, linear_modes(body, 8).shapes)
    force = model.basis.T @ body.expand(tip_load(body, (0.0, -2.0, -8.0))).ravel()
    q = static_equilibrium(model, force)
    assert relative(model.force(q), force) <= 1e-8


def test_too_few_iterations_raise_instead_of_returning_half_an_answer():
    body = beam()
    with pytest.raises(SolverError, match="did not converge in 1"):
        static_equilibrium(body, tip_load(body, (0.0, 0.0, -8.0)), iterations=1)


@pytest.mark.parametrize("law", ["stvk", "stable-neo-hookean"])
def test_a_load_without_equilibrium_raises(law):
    body = beam(free=True, law=law, material=Material(young=1e4, poisson=0.3, density=1000.0))
    force = tip_load(body, (1.0, 0.0, 0.0))  # nothing holds the other end
    with pytest.raises(AnchorError):
        static_equilibrium(body, force, iterations=20)


def test_a_load_that_is_not_finite_raises():
    body = beam()
    with pytest.raises(NotFiniteError, match="forces"):
        static_equilibrium(body, np.full(body.size, np.nan))


def test_a_tolerance_below_rounding_ends_at_rounding():
    body = beam()
    force = tip_load(body, (0.0, 0.0, -8.0))
    q = static_equilibrium(body, force, tolerance=1e-18)
    assert relative(body.force(q), force) < 1e-9


@pytest.mark.parametrize("young", [1e2, 1e6, 1e11])
@pytest.mark.parametrize("load", [1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("law", ["stvk", "corotational", "neo-hookean", "stable-neo-hookean"])
def test_loads_far_below_the_stiffness_are_solved_to_rounding(law, load, young):
    """Rounding in the force goes with the modulus, not with the load: asking for less would never end."""
    body = beam(law=law, material=Material(young=young, poisson=0.3, density=1000.0))
    force = tip_load(body, (0.0, 0.0, -load * young * 0.01))
    q = static_equilibrium(body, force, load_steps=2)
    assert np.linalg.norm(body.force(q) - force) <= max(1e-9 * np.linalg.norm(force), 1.01 * body.force_rounding(q))
    assert body.force_rounding(q) < 1e-11 * young


def test_a_static_solve_needs_a_load_step():
    with pytest.raises(InputError, match="load step"):
        static_equilibrium(beam(), np.zeros(beam().size), load_steps=0)
