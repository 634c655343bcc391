"""The compiled part of wires against plain NumPy."""

import copy

import numpy as np
import pytest

from softrig.numerics.rotations import (
    quaternion_conjugate,
    quaternion_matrices,
    quaternion_product,
    quaternions_between,
)
from softrig.rig.curves import filled_tangents, nearest_parameters, spline_basis, transported
from softrig.rig.deformers import RigChain, Wire
from softrig.rig.wire_kernel import turn_between
from softrig.rig.wires import REMEMBERED, SAMPLES_PER_CONTROL


@pytest.mark.parametrize("axis", range(3))
def test_the_smallest_turn_is_that_of_numpy_also_between_opposite_directions(axis):
    rng = np.random.default_rng(axis)
    a = rng.normal(size=(20, 3))
    a[:, axis] *= 0.1  # the smallest component decides about which axis half a turn goes
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = rng.normal(size=(20, 3))
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    b[10:] = -a[10:]
    found = [turn_between(tuple(one), tuple(two)) for one, two in zip(a, b, strict=True)]
    np.testing.assert_allclose(found, quaternions_between(a, b), atol=1e-12)


def plainly_carried(wire, p, points):
    """(n, 3) where one wire takes points of all its vertices, by the definition."""
    controls, moved = wire.controls, wire.controls + p.reshape(-1, 3)
    samples = np.linspace(0.0, 1.0, SAMPLES_PER_CONTROL * len(controls) + 1)
    where = nearest_parameters(controls, wire.rest_positions, len(samples))
    before = np.clip(np.searchsorted(samples, where, side="right") - 1, 0, len(samples) - 1)
    curve, slope = (spline_basis(len(controls), where, order) for order in range(2))
    rest, now = (filled_tangents(spline_basis(len(controls), samples, 1) @ c) for c in (controls, moved))
    frames = quaternion_product(transported(now), quaternions_between(rest[0], now[0]))
    turns = quaternion_product(frames, quaternion_conjugate(transported(rest)))[before]
    back, ahead = quaternions_between(slope @ controls, rest[before]), quaternions_between(now[before], slope @ moved)
    turn = quaternion_matrices(quaternion_product(ahead, quaternion_product(turns, back)))
    there = curve @ moved + np.einsum("nij,nj->ni", turn, points - curve @ controls)
    return points + (1.0 if wire.weights is None else wire.weights[:, None]) * (there - points)


def chain_of_wires(rng, count=203):
    points = rng.uniform(-1.0, 1.0, (count, 3))
    shares = rng.uniform(0.0, 1.0, (4, count)) * (rng.uniform(size=(4, count)) < 0.5)
    shares[:, -3:] = 0.0
    wires = []
    for index, controls in enumerate((7, 2, 3, 5)):  # fewer than four points: a curve of lower degree
        line = np.linspace([-1.0, 0.2, 0.0], [1.0, 0.0, 0.3], controls) + rng.normal(0.0, 0.05, (controls, 3))
        wires.append(Wire(points, line, None if index == 3 else shares[index], name=f"wire{index}"))
    return RigChain(tuple(wires))


def test_a_chain_of_wires_is_one_wire_after_the_other():
    rng = np.random.default_rng(5)
    chain = chain_of_wires(rng)
    p = rng.normal(0.0, 0.15, len(chain.parameters))
    p[chain.starts[1] : chain.starts[2]] = 0.0  # one of them stays
    expected = chain.rest_positions
    for index, wire in enumerate(chain.stages):
        expected = plainly_carried(wire, chain.stage_parameters(p, index), expected)
    np.testing.assert_allclose(chain.positions(p), expected, atol=1e-12)


def test_any_choice_of_vertices_is_the_same_to_the_bit():
    rng = np.random.default_rng(6)
    chain = chain_of_wires(rng)
    p = rng.normal(0.0, 0.15, len(chain.parameters))
    whole = chain.positions(p)
    for size in range(1, 2 * REMEMBERED):  # more choices than are kept
        chosen = rng.integers(0, len(whole), size)  # in any order, some twice
        np.testing.assert_array_equal(chain.positions(p, chosen), whole[chosen])
    np.testing.assert_array_equal(chain.positions(p, np.zeros(0, np.int64)), np.zeros((0, 3)))


def test_what_is_remembered_of_a_pose_is_not_taken_for_another():
    rng = np.random.default_rng(7)
    chain = chain_of_wires(rng)
    first, second = rng.normal(0.0, 0.15, (2, len(chain.parameters)))
    one, two = chain.positions(first), chain.positions(second)
    assert np.abs(one - two).max() > 0.01
    twin = copy.deepcopy(chain)
    np.testing.assert_array_equal(chain.positions(first), one)
    np.testing.assert_array_equal(twin.positions(second), two)
    np.testing.assert_array_equal(chain.positions(chain.parameters.rest), chain.rest_positions)
    first[0] += 1e-3
    assert np.abs(chain.positions(first) - one).max() > 1e-5


def test_a_folded_or_shrunken_curve_gives_numbers():
    chain = chain_of_wires(np.random.default_rng(8))
    for factor in (0.0, -1.0, 1e-9):
        p = np.concatenate([((factor - 1.0) * wire.controls).ravel() for wire in chain.stages])
        assert np.isfinite(chain.positions(p)).all()
