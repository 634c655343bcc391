"""Measures of fidelity on signals whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import InputError, NotFiniteError
from softrig.fidelity import (
    compare,
    component,
    dominant_frequency,
    dominant_shape,
    first_swing_frequency,
    frame_norms,
    half_life,
    inverted_tets,
    peak,
    projection_error,
    trajectory_error,
    volume_drift,
)
from softrig.meshing.boxes import box_tets

RATE = 90.0
BOX = box_tets((0.4, 0.2, 0.1), (3, 2, 1))
MASS = np.random.default_rng(0).uniform(0.5, 2.0, len(BOX.vertices))


def times(frames: int) -> np.ndarray:
    return np.arange(frames) / RATE


def orthonormal_shapes(count: int, seed: int = 1) -> np.ndarray:
    """(n, 3, count) mass-orthonormal."""
    root = np.sqrt(np.repeat(MASS, 3))[:, None]
    columns = np.linalg.qr(root * np.random.default_rng(seed).standard_normal((len(root), count)))[0]
    return (columns / root).reshape(-1, 3, count)


def test_error_of_a_scaled_trajectory_is_the_scale():
    full = np.random.default_rng(2).standard_normal((20, len(MASS), 3))
    assert trajectory_error(full, full, MASS) == 0.0
    assert trajectory_error(1.25 * full, full, MASS) == pytest.approx(0.25)
    assert trajectory_error(0.0 * full, full, MASS) == pytest.approx(1.0)


def test_error_of_two_mass_orthonormal_shapes_is_pythagoras():
    """The wanted motion 3 sin a + 4 cos b, the error 1 in a third shape: masses enter as weights."""
    shapes = orthonormal_shapes(3)
    full = np.tile(shapes @ np.array([3.0, 4.0, 0.0]), (7, 1, 1))
    reduced = np.tile(shapes @ np.array([3.0, 4.0, 1.0]), (7, 1, 1))
    assert trajectory_error(reduced, full, MASS) == pytest.approx(0.2)
    assert trajectory_error(reduced, full, np.ones_like(MASS)) != pytest.approx(0.2, rel=1e-3)
    assert frame_norms(full, MASS) == pytest.approx(np.full(7, 5.0 / np.sqrt(MASS.sum())))


def test_a_body_that_never_moves_has_no_error_and_any_motion_beside_it_an_infinite_one():
    still = np.zeros((4, len(MASS), 3))
    assert trajectory_error(still, still, MASS) == 0.0
    assert trajectory_error(still + 1.0, still, MASS) == float("inf")


@pytest.mark.parametrize("frequency", [1.83, 3.0, 4.417, 7.9, 21.3])
def test_frequency_of_a_sine_about_an_offset(frequency):
    signal = 5.0 + 0.02 * np.sin(2.0 * np.pi * frequency * times(180) + 0.6)
    assert dominant_frequency(signal, RATE) == pytest.approx(frequency, abs=0.01 * RATE / 180 * 2)


def test_the_larger_of_two_sines_is_dominant():
    t = times(270)
    signal = np.sin(2.0 * np.pi * 3.21 * t) + 0.6 * np.sin(2.0 * np.pi * 11.4 * t + 1.0)
    assert dominant_frequency(signal, RATE) == pytest.approx(3.21, abs=0.01)
    signal = 0.6 * np.sin(2.0 * np.pi * 3.21 * t) + np.sin(2.0 * np.pi * 11.4 * t + 1.0)
    assert dominant_frequency(signal, RATE) == pytest.approx(11.4, abs=0.01)


@pytest.mark.parametrize("half", [0.05, 0.1, 0.3])
def test_frequency_of_a_sine_that_decays_does_not_jump_as_it_passes_from_line_to_line(half):
    t = times(180)
    wanted = np.linspace(8.4, 9.6, 25)
    for phase in (0.0, 0.4, 1.0, 2.5):
        found = [dominant_frequency(np.exp2(-t / half) * np.sin(2.0 * np.pi * f * t + phase), RATE) for f in wanted]
        assert np.abs(found - wanted).max() < 0.02
        assert (np.diff(found) > 0.0).all()


@pytest.mark.parametrize("half", [0.3, 1.0])
def test_frequency_of_what_swings_but_twice(half):
    t = times(180)
    wanted = np.linspace(0.8, 1.1, 9)  # hertz, for two seconds; a letter X swings as slowly
    found = [dominant_frequency(np.exp2(-t / half) * np.sin(2.0 * np.pi * f * t + 0.4), RATE) for f in wanted]
    assert np.abs(found - wanted).max() < 0.1


@pytest.mark.parametrize("drift", [0.0, 1.0, 3.0])
def test_frequency_of_what_swings_while_it_drifts(drift):
    t = times(180)
    assert dominant_frequency(drift * t + np.sin(2.0 * np.pi * 8.0 * t), RATE) == pytest.approx(8.0, abs=0.02)


def test_frequency_of_the_first_swing():
    t = times(400)
    assert first_swing_frequency(np.sin(2.0 * np.pi * 1.5 * t + 0.3), RATE) == pytest.approx(1.5, rel=1e-3)
    slower = np.sin(2.0 * np.pi * np.where(t < 1.0, 1.5 * t, 1.5 + 0.9 * (t - 1.0)) + 0.3)
    assert first_swing_frequency(slower, RATE) == pytest.approx(1.5, rel=1e-3)
    assert np.isnan(first_swing_frequency(np.ones(50), RATE))
    assert first_swing_frequency(np.tile([0.0, 1.0, 2.0, 1.0, 0.0, -1.0, -2.0, -1.0], 10), 8.0) == pytest.approx(1.0)
    late = np.sin(2.0 * np.pi * 1.5 * t - 0.1)
    late[:3] = [0.1, -0.1, 0.1]  # what trembles at the very start
    assert first_swing_frequency(late, RATE) == pytest.approx(1.5, rel=1e-3)


def test_a_constant_and_a_short_signal_have_no_frequency():
    assert np.isnan(dominant_frequency(np.full(50, 3.0), RATE))
    assert np.isnan(dominant_frequency(np.arange(5.0), RATE))


@pytest.mark.parametrize("wanted", [0.08, 0.25, 1.5])
@pytest.mark.parametrize("offset", [0.0, -2.0])
def test_half_life_of_a_damped_sine(wanted, offset):
    t = times(200)
    signal = offset + np.exp2(-t / wanted) * np.sin(2.0 * np.pi * 5.3 * t + 0.2)
    assert half_life(signal, RATE) == pytest.approx(wanted, rel=0.01)


def test_half_life_of_what_does_not_swing_or_grows():
    t = times(200)
    assert np.isnan(half_life(np.exp(-t), RATE))
    assert half_life(np.exp2(t / 0.5) * np.sin(30.0 * t), RATE) == pytest.approx(-0.5, rel=0.02)


def test_dominant_shape_is_the_one_that_carries_most_mass():
    shapes = orthonormal_shapes(2)
    t = times(180)
    signals = np.stack([0.3 * np.sin(2 * np.pi * 9.0 * t), np.cos(2 * np.pi * 2.5 * t)])
    trajectory = np.einsum("nik,kf->fni", shapes, signals) + 4.0
    shape = dominant_shape(trajectory, MASS)
    cosine = np.einsum("ni,ni,n->", shape, shapes[:, :, 1], MASS)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-3)
    assert dominant_frequency(component(trajectory, shape, MASS), RATE) == pytest.approx(2.5, abs=0.01)
    assert not dominant_shape(np.ones((5, len(MASS), 3)), MASS).any()


def test_volume_drift_of_a_stretch_about_a_moving_rest_shape():
    frames = np.arange(1, 4)
    rest = np.stack([BOX.vertices * [1.0, s, 1.0] + 10.0 * s for s in frames])
    u = np.stack([0.1 * s * (BOX.vertices - 0.3) * [1.0, 0.0, 0.0] for s in frames])
    assert volume_drift(rest, u, BOX.elements) == pytest.approx(0.1 * frames)
    assert volume_drift(rest, -u, BOX.elements) == pytest.approx(-0.1 * frames)
    assert inverted_tets(rest, u, BOX.elements).tolist() == [0, 0, 0]


def test_inverted_tets_are_counted():
    u = np.zeros((2, *BOX.vertices.shape))
    u[1, :, 2] = -2.0 * BOX.vertices[:, 2]
    rest = np.tile(BOX.vertices, (2, 1, 1))
    assert inverted_tets(rest, u, BOX.elements).tolist() == [0, len(BOX.elements)]


def test_projection_error_is_what_lies_outside_the_span():
    shapes = orthonormal_shapes(6)
    amplitudes = np.random.default_rng(3).standard_normal((15, 6))
    full = np.einsum("nik,fk->fni", shapes, amplitudes)
    wanted = np.sqrt((amplitudes[:, 4:] ** 2).sum() / (amplitudes**2).sum())
    assert projection_error(full, shapes[:, :, :4], MASS) == pytest.approx(wanted)
    assert projection_error(full, shapes, MASS) < 1e-12
    assert projection_error(full, np.zeros((*full.shape[1:], 2)), MASS) == pytest.approx(1.0)


def test_projection_does_not_ask_for_orthonormal_or_independent_columns_nor_for_one_unit():
    shapes = orthonormal_shapes(5)
    full = np.einsum("nik,fk->fni", shapes, np.random.default_rng(4).standard_normal((6, 5)))
    mixed = shapes[:, :, :3] @ np.random.default_rng(5).standard_normal((3, 3)) * [1e-6, 1.0, 1e6]
    doubled = np.concatenate([mixed, mixed[:, :, :2]], axis=2)
    assert projection_error(full, doubled, MASS) == pytest.approx(projection_error(full, shapes[:, :, :3], MASS))


def test_projection_onto_a_basis_that_changes_with_the_frame():
    shapes = orthonormal_shapes(4)
    full = np.stack([shapes[:, :, k] for k in range(4)])
    right, wrong = [shapes[:, :, [k]] for k in range(4)], [shapes[:, :, [3 - k]] for k in range(4)]
    assert projection_error(full, right, MASS) < 1e-12
    assert projection_error(full, np.stack(wrong), MASS) == pytest.approx(1.0)
    assert projection_error(full, lambda k: shapes[:, :, [k, 0]], MASS) < 1e-12


def swinging(frequency: float, decay: float, size: float) -> np.ndarray:
    """A motion of ten frames, then a damped swing about a sag."""
    t = times(200)
    shape = np.zeros_like(BOX.vertices)
    shape[:, 1] = BOX.vertices[:, 0]
    signal = 0.01 + size * np.exp2(-t / decay) * np.cos(2.0 * np.pi * frequency * t)
    signal = np.concatenate([0.01 + size * np.linspace(0.0, 1.0, 10), signal])
    return signal[:, None, None] * shape


def test_report_of_a_slower_smaller_swing():
    reduced, full = swinging(4.0, 0.5, 0.09), swinging(4.4, 0.3, 0.1)
    rest = np.tile(BOX.vertices, (len(full), 1, 1))
    report = compare(reduced, full, MASS, RATE, stop=10, rest=rest, tets=BOX.elements)
    assert report.error == pytest.approx(trajectory_error(reduced, full, MASS))
    assert report.error > 0.3
    assert report.frequency[0] == pytest.approx(4.0, rel=0.02)
    assert report.frequency[1] == pytest.approx(4.4, rel=0.02)
    assert report.half_life == pytest.approx((0.5, 0.3), rel=0.02)
    assert report.peak_ratio == pytest.approx((0.01 + 0.09) / (0.01 + 0.1))
    assert report.frequency_ratio == pytest.approx(4.0 / 4.4, rel=0.03)
    assert report.half_life_ratio == pytest.approx(0.5 / 0.3, rel=0.03)
    assert report.worst_distance == pytest.approx(peak(reduced - full))
    assert report.volume_drift == pytest.approx((0.0, 0.0), abs=1e-12)
    assert report.inverted == (0.0, 0.0)
    table = {row[0]: row[1:] for row in report.rows()}
    assert table["peak"] == ("40 mm", "44 mm")
    assert table["half-life"][1].endswith(" s")


def test_report_without_a_stop_and_volumes_says_so():
    motion = swinging(4.0, 0.5, 0.1)
    report = compare(motion, motion, MASS, RATE)
    assert report.error == 0.0
    assert np.isnan([*report.half_life, *report.volume_drift, *report.inverted]).all()
    assert ("half-life", "–", "–") in report.rows()


def test_faults_are_named():
    full = np.zeros((4, len(MASS), 3))
    with pytest.raises(InputError, match="trajectories"):
        trajectory_error(full[:3], full, MASS)
    with pytest.raises(InputError, match="masses"):
        trajectory_error(full, full, MASS[1:])
    broken = full.copy()
    broken[2, 0, 0] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        trajectory_error(broken, full, MASS)
    assert caught.value.indices.tolist() == [2]
    with pytest.raises(InputError, match="3 bases for 4 frames"):
        projection_error(full, np.zeros((3, len(MASS), 3, 2)), MASS)
    with pytest.raises(InputError, match="a basis of shape"):
        projection_error(full, np.zeros((len(MASS) + 1, 3, 2)), MASS)
