"""What carries the tets: the rates of positions and rotations are exact, of skins and of black boxes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from bodies_for_tests import relative
from moving_bars_for_tests import BAR, carriers_of, lumped, rise, rotation, skin_carriers, sliding, swing, turning
from softrig.models.tet_motion import BlackBoxCarriers, SkinCarriers, polar_derivatives
from softrig.numerics.rotations import skew


def black_box_track(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A rig that bends, spins and stretches: positions A(t) X + B(t) X², every rate exact."""
    X = BAR.vertices
    a = turning((0.3, 1.0, -0.4), rise(1.2, 4.0, t)) @ sliding(*(np.outer(rise(0.2, 3.0, t), [1.0, 2.0, 0.5])))
    stretch = rise(0.6, 5.0, t)
    parts = []
    for A, b, w in zip((a.value, a.first, a.second), stretch, rise(0.7, 6.0, t), strict=True):
        x = X @ A[:3, :3].T + A[:3, 3] + b * np.stack([X[:, 1] * X[:, 0], X[:, 0] ** 2, X[:, 2] * X[:, 1]], axis=1)
        parts.append(np.concatenate([x.ravel(), [w, 0.3 * w]]))
    return tuple(parts)


def general_track(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The swing with bones that also shear, so that their rotation is a polar factor in earnest."""
    parts = swing(t)
    shear = np.random.default_rng(2).uniform(-0.3, 0.3, len(parts[0]))
    return tuple(part + shear * s for part, s in zip(parts, rise(1.0, 5.5, t), strict=True))


def black_box_carriers() -> BlackBoxCarriers:
    rng = np.random.default_rng(5)
    corrections = 0.05 * rng.standard_normal((2, *BAR.vertices.shape))
    return BlackBoxCarriers(BAR.vertices, lumped(BAR), np.arange(0, len(BAR.vertices), 3), corrections)


KINDS = {"skin": (skin_carriers, general_track), "black-box": (black_box_carriers, black_box_track)}


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_the_derivatives_of_positions(kind, slope):
    make, track = KINDS[kind]
    carriers, t = make(), 0.37
    motion = carriers.motion(*track(t))
    velocity = slope(lambda s: carriers.motion(*track(t + s)).positions)
    acceleration = slope(lambda s: carriers.motion(*track(t + s)).velocities)
    assert relative(motion.velocities, velocity) < 1e-8
    assert relative(motion.accelerations, acceleration) < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_spin_is_the_rate_of_the_vertex_rotations(kind, slope):
    make, track = KINDS[kind]
    carriers, t = make(), 0.37
    motion = carriers.motion(*track(t))
    rate = slope(lambda s: carriers.motion(*track(t + s)).rotations)
    assert np.abs(motion.spin).max() > 1.0
    assert relative(skew(motion.spin) @ motion.rotations, rate) < 1e-8
    identity = motion.rotations @ np.swapaxes(motion.rotations, 1, 2)
    assert np.abs(identity - np.eye(3)).max() < 1e-12


def test_skin_positions_by_the_definition_vertex_by_vertex():
    carriers = skin_carriers()
    z, *_ = general_track(0.3)
    motion = carriers.motion(*general_track(0.3))
    matrices, w = z[:24].reshape(2, 3, 4), z[24:]
    table = carriers.weights.toarray()
    for v in range(0, len(BAR.vertices), 7):
        point = np.append(BAR.vertices[v] + w[0] * carriers.corrections[0, v] + w[1] * carriers.corrections[1, v], 1.0)
        wanted = sum(table[v, b] * matrices[b] @ point for b in range(2))
        assert np.abs(motion.positions[v] - wanted).max() < 1e-14


def test_vertex_rotations_follow_the_nearer_sign_of_a_quaternion():
    """Bones 200° and 10° about one axis: half-way is 285° the shorter way (through 0), and never the long way."""
    carriers = SkinCarriers(np.zeros((1, 3)), csr_array(np.array([[0.5, 0.5]])), np.zeros((1, 1, 3)))
    bones = [turning((0, 0, 1), (np.radians(angle), 0.0, 0.0)) for angle in (200.0, 10.0)]
    z = carriers_of(bones, (np.ones(1), np.zeros(1), np.zeros(1)))
    got = carriers.motion(*z).rotations[0]
    assert np.abs(got - rotation((0, 0, np.radians(285.0)))).max() < 1e-12


def test_polar_derivatives_of_a_known_rotation_times_a_moving_stretch(slope):
    A = np.random.default_rng(0).standard_normal((3, 3, 3)) * 0.3 + np.array([np.eye(3), np.zeros((3, 3)), np.eye(3)])
    R, R1, R2, omega = polar_derivatives(*A)

    def at(s: float):
        return polar_derivatives(A[0] + s * A[1] + 0.5 * s * s * A[2], A[1] + s * A[2], A[2])

    assert relative(R1, slope(lambda s: at(s)[0])) < 1e-8
    assert relative(R2, slope(lambda s: at(s)[1])) < 1e-8
    assert np.abs(R1 - skew(omega) @ R).max() < 1e-12


def test_a_bone_shrunk_to_nothing_does_not_spin():
    carriers = skin_carriers()
    z, first, second = (part.copy() for part in swing(0.3))
    z[12:24] = first[12:24] = second[12:24] = 0.0
    motion = carriers.motion(z, first, second)
    assert np.isfinite(motion.spin).all()
    assert np.isfinite(motion.accelerations).all()
    own = np.flatnonzero(carriers.weights.toarray()[:, 0] == 1.0)
    upper = carriers.motion(*swing(0.3))
    assert relative(motion.spin[own], upper.spin[own]) < 1e-12
