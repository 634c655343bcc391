"""How much of what goes beyond the linear part counts: loads tell, at rest."""

from __future__ import annotations

import numpy as np
import pytest

from bodies_for_tests import beam
from softrig.bases.modes import linear_modes
from softrig.dynamics import static_equilibrium
from softrig.pipeline.remainder import (
    ALIKE,
    LEVELS,
    LITTLE,
    MOVE,
    SHARES,
    TOLERANCE,
    best_share,
    least_stretch,
    modes_at_rest,
    resting_errors,
)
from softrig.pipeline.stiffness import STEADY, steady_share

SIZE = 0.3 / MOVE  # loads that would bend a beam of two metres by 0.3


@pytest.fixture(scope="module")
def body():
    return beam("tets")


@pytest.fixture(scope="module")
def loads(body):
    """Sideways accelerations, newton, the second growing along the beam."""
    fields = np.zeros((len(body.fixed), 3, 2))
    along = body.mesh.vertices[:, 0]
    fields[:, 1, 0] = 1.0
    fields[:, 2, 1] = along / along.max()
    return body.mass @ body.restrict(fields)


def test_modes_at_rest_balance_the_load(body, loads):
    basis = linear_modes(body, 6).shapes
    stiffness = np.diag(np.linspace(1.0, 2.0, 6)) * (basis.T @ (body.rest_stiffness @ basis))[0, 0]
    force = 40.0 * basis.T @ loads[:, 0] / np.linalg.norm(basis.T @ loads[:, 0])
    x = modes_at_rest(body, basis, stiffness, 0.3, force, np.zeros(6))
    left = stiffness @ x + 0.3 * basis.T @ body.force(basis @ x) - force
    assert np.linalg.norm(left) < 2.0 * TOLERANCE * np.linalg.norm(force)
    # Both parts push: with either alone it would go farther.
    assert np.linalg.norm(x) < np.linalg.norm(np.linalg.solve(stiffness, force))


def test_a_body_that_is_its_own_basis_rests_where_it_rests(body, loads):
    every = np.eye(body.size)
    u = static_equilibrium(body, 30.0 * loads[:, 0], tolerance=1e-6)
    x = modes_at_rest(body, every, np.zeros((body.size, body.size)), 1.0, 30.0 * loads[:, 0], 0.5 * u)
    assert np.linalg.norm(x - u) < 10.0 * TOLERANCE * np.linalg.norm(u)


def test_modes_that_can_do_everything_need_all_of_the_remainder(body, loads):
    errors, rests = resting_errors(body, np.eye(body.size), loads, SIZE)
    assert errors.shape == (len(LEVELS), 2, len(SHARES))
    for rest, load in zip(rests.T, loads.T, strict=True):
        # A multiple of the load holds the body there, up to what counts as rest.
        force = body.force(rest)
        assert np.linalg.norm(force - load * (force @ load) / (load @ load)) < 2.0 * TOLERANCE * np.linalg.norm(force)
    assert best_share(errors) == SHARES[-1]
    assert np.sqrt(errors[0, :, -1]).max() < 0.1 * np.sqrt(errors[0, :, 0]).min()
    # The milder a load, the less what goes beyond the linear part matters.
    assert (np.diff(errors[..., 0], axis=0) < 0.0).all()


def test_modes_that_can_do_little_need_little_of_it(body, loads):
    """A few linear modes stretch where the beam would swing on an arc: most of their remainder is locking."""
    errors, _ = resting_errors(body, linear_modes(body, 4).shapes, loads, SIZE)
    assert best_share(errors) < 0.5
    assert errors[0, :, -1].sum() > 1.5 * errors[0].sum(axis=0).min()


def test_small_loads_do_not_tell_and_the_linear_part_is_right(body):
    """Along the modes' own loads M V y every share is right in the limit: K⁺ is."""
    basis = linear_modes(body, 4).shapes
    errors, _ = resting_errors(body, basis, body.mass @ basis[:, :1], 1e-6 * SIZE)
    assert np.sqrt(errors).max() < 1e-3


def test_of_shares_that_are_alike_the_smallest_counts():
    errors = np.full((1, 3, len(SHARES)), 4.0)
    errors[..., 3:6] = [1.5, 1.0, 1.01]
    assert best_share(errors) == SHARES[4]
    errors[..., 3] = 0.99 * ALIKE**2
    assert best_share(errors) == SHARES[3]
    little = SHARES.index(LITTLE)
    assert little == 2
    errors[..., :3] = [1.05, 1.03, 1.04]
    assert best_share(errors) == SHARES[1], "of those the nearest"
    errors[..., :3] = [1.5, 1.5, 1.04]
    assert best_share(errors) == LITTLE
    assert best_share(np.zeros((2, 0, len(SHARES)))) == SHARES[-1]


def test_how_far_tets_are_crushed() -> None:
    rest, tets = np.random.default_rng(3).standard_normal((8, 3)), np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    turn = np.linalg.qr(np.random.default_rng(4).standard_normal((3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    posed = (rest * [1.0, 2.0, 0.5]) @ turn.T + 0.3
    assert least_stretch(tets, rest, posed) == pytest.approx(0.5)
    posed[4:] = rest[4:] * [1.0, 1.0, -0.7]
    assert least_stretch(tets, rest, posed) == pytest.approx(-0.7)


def test_mild_loads_count_as_much_as_violent_ones():
    errors = np.full((2, 3, len(SHARES)), 4.0)
    errors[0, :, 5:7] = [1.5, 1.0]
    errors[1] *= 1e-4
    errors[1, :, 5:7] = [1e-4, 2e-4]
    assert best_share(errors[:1]) == SHARES[6]
    assert best_share(errors) == SHARES[5]
    errors[1, :, 6] = np.nan  # a level at which some share found no rest tells nothing
    assert best_share(errors) == SHARES[6]
    errors[1] = 1e-8 * np.linspace(0.0, 1.0, len(SHARES))  # nor does one that is at rest to the last digit
    assert best_share(errors) == SHARES[6]


def test_tets_do_not_take_away_what_is_not_there() -> None:
    """γ goes down until K⁺, raised to γ VᵀKV, is enough of γ times what the chosen tets have at rest."""
    yielding, given = 0.5 * np.eye(3)[None], np.eye(3)[None]
    stiff = np.diag([1.0, 1.0, 4.0])[None]  # one direction four times as stiff as it is
    assert steady_share(1.0, yielding, given, given) == 1.0
    # At 1 there is 1 of 4 and at 0.4 there is 0.5 of 1.6: less than STEADY. At 0.3 there is 0.5 of 1.2.
    assert 0.5 / (4.0 * 0.4) < STEADY < 0.5 / (4.0 * 0.3)
    assert steady_share(1.0, yielding, given, stiff) == 0.3
    assert steady_share(0.2, yielding, given, stiff) == 0.2
    assert steady_share(1.0, yielding, given, 1000.0 * stiff) == SHARES[0]
    assert steady_share(1.0, yielding, given, np.diag([1.0, 1.0, 0.0])[None]) == 1.0, "a mode that moves no tet"
    both = np.concatenate([given, given])
    assert steady_share(1.0, np.concatenate([yielding] * 2), both, np.concatenate([given, stiff])) == 0.3
