"""What the pose-space step promises: snapshots to the bit, no NaN whatever happens, and bad input refused."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from pose_models_for_tests import bar_model, mapped, pose
from softrig.errors import IndexRangeError, InputError
from softrig.models.stepper import Stepper
from softrig.numerics.rotations import quaternions_from_vectors
from steppers_for_tests import lively, moment, put


@pytest.mark.parametrize("map_of", [lambda model: model, mapped], ids=["corrections", "map"])
def test_snapshots_restore_to_the_last_bit(map_of):
    model = map_of(bar_model(poses=3))
    stepper, other = Stepper(model), Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    kept = stepper.snapshot()
    runs = []
    for each in (stepper, stepper, other):
        each.restore(kept)
        shown = each.vertex_displacements()
        for _ in range(5):
            each.step(z, zd, zdd)
        runs.append((shown, each.snapshot()))
    for shown, end in runs[1:]:
        np.testing.assert_array_equal(shown, runs[0][0])
        for one, two in zip(end, runs[0][1], strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_copy_goes_on_by_itself():
    model = bar_model(poses=3)
    stepper = Stepper(model)
    z, zd, zdd, state = moment(model, stepper)
    put(stepper, state)
    stepper.step(z, zd, zdd)
    other, before = copy.deepcopy(stepper), stepper.q.copy()
    other.step(z, zd, zdd)
    np.testing.assert_array_equal(stepper.q, before)
    assert np.abs(other.q - before).max() > 1e-9
    stepper.step(z, zd, zdd)
    np.testing.assert_array_equal(other.q, stepper.q)


@pytest.mark.parametrize("law", ["stvk", "neo-hookean", "stable-neo-hookean", "corotational"])
def test_extreme_steps_never_give_nan(law):
    model = lively(bar_model(poses=3, law=law))
    stepper = Stepper(model)
    rng = np.random.default_rng(7)
    for _ in range(150):
        turns = [quaternions_from_vectors(rng.normal(0.0, 2.0, 3)) for _ in range(2)]
        p = pose(model.rig)
        p[3:7], p[13:17] = turns
        z = stepper.carriers(p)
        size = 10.0 ** rng.uniform(0, 7)
        stepper.point_loads(rng.integers(0, len(model.vertices), 3), size * rng.normal(size=(3, 3)))
        stepper.step(z, size * rng.normal(size=z.shape), size * rng.normal(size=z.shape))
        assert np.isfinite(stepper.snapshot().q).all()
        assert np.isfinite(stepper.v).all()
        assert np.isfinite(stepper.a).all()
    counters = stepper.counters
    assert counters["steps"] == 150
    assert 150 >= counters["halved"] >= counters["decayed"] > 0


def test_a_step_that_cannot_be_saved_decays_by_half():
    stepper = Stepper(bar_model(poses=2))
    z, zd, zdd, state = moment(stepper.model, stepper)
    put(stepper, state)
    stepper.step(z, zd, np.nan * zdd)
    assert stepper.counters == {"steps": 1, "projected": stepper.counters["projected"], "halved": 1, "decayed": 1}
    for now, before in zip((stepper.q, stepper.v, stepper.a), state, strict=True):
        np.testing.assert_array_equal(now, 0.5 * before)
    stepper.step(z, zd, zdd)
    assert stepper.counters["decayed"] == 1


def test_too_large_a_displacement_is_redone_in_smaller_steps():
    """A force that throws a vertex beyond half the size in one step, but not in two or four shorter ones."""
    model = bar_model(poses=2)
    load, limit = np.array([[0.0, 1.0, 0.0]]), 0.5 * model.size
    steppers = {parts: Stepper(model, rate=5.0 * parts) for parts in (1, 2, 4)}
    z = steppers[1].carriers(model.rig.parameters.rest)
    while steppers[1].counters["halved"] == 0:
        load *= 1.2
        for parts, stepper in steppers.items():
            put(stepper, np.zeros((3, model.mode_count)))
            stepper.point_loads(np.array([80]), load)
            for _ in range(parts):
                stepper.step(z, 0 * z, 0 * z)
        assert np.abs(steppers[1].vertex_displacements()).max() <= limit * 1.0001
    assert steppers[1].counters["decayed"] == 0
    redone = steppers[2] if steppers[2].counters["halved"] == 0 else steppers[4]
    assert redone.counters["halved"] == 0
    for one, other in zip(steppers[1].snapshot()[:3], redone.snapshot()[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_an_indefinite_stiffness_is_projected():
    model = bar_model(poses=2)
    matrices = np.repeat(-1e7 * np.eye(model.mode_count)[None], 2, axis=0)
    model = replace(model, cubature=replace(model.cubature, stiffness_correction=matrices))
    stepper = Stepper(model)
    z = stepper.carriers(model.rig.parameters.rest)
    stepper.v[:] = 1e-3
    stepper.step(z, 0 * z, 0 * z)
    assert stepper.counters == {"steps": 1, "projected": 1, "halved": 0, "decayed": 0}
    assert np.isfinite(stepper.q).all()
    assert stepper.q.any()


def test_bad_input_is_refused():
    model = bar_model(poses=2)
    stepper = Stepper(model)
    with pytest.raises(InputError, match="no implicit method"):
        Stepper(model, method="leapfrog")
    with pytest.raises(InputError, match="iteration"):
        Stepper(model, iterations=0)
    with pytest.raises(InputError, match="positive"):
        Stepper(model, rate=0.0)
    with pytest.raises(IndexRangeError):
        stepper.point_loads(np.array([10**6]), np.zeros((1, 3)))
    with pytest.raises(InputError, match="parameters"):
        stepper.carriers(np.zeros(3))
    with pytest.raises(InputError, match="gravity"):
        stepper.gravity = (1.0, 2.0)
    with pytest.raises(InputError, match="parameters"):
        Stepper(model, rig=bar_model(poses=2, morphs=True).rig)
    with pytest.raises(IndexRangeError, match="stand together"):
        replace(model, region_of_mode=np.array([0, 1, 0, 1, 1, 1, 1, 1]), region_names=("a", "b"))
    with pytest.raises(InputError, match="bind space"):
        replace(bar_model(black_box=True), interpolation="bind")
    hidden = bar_model(black_box=True)
    hidden = replace(
        hidden,
        cubature=replace(
            hidden.cubature,
            **{
                "tets": hidden.cubature.tets[:1],
                **{name: getattr(hidden.cubature, name)[:, :1] for name in ("weights", "young", "poisson")},
                "inertial_vertices": np.zeros(0, np.int32),
            },
        ),
        inertia=np.zeros((2, hidden.mode_count, 2)),
    )
    with pytest.raises(InputError, match="does not observe"):
        Stepper(hidden).tet_positions()
