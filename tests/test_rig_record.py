"""Rigs and clips written down as tables and arrays come back the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rigs_for_tests import RIGS, random_parameters
from softrig.errors import InputError
from softrig.rig.clip import Clip, Track
from softrig.rig.deformers import CallableRig
from softrig.rig.record import clips_from_record, clips_record, rig_from_record, rig_record


def holds_function(rig: object) -> bool:
    return isinstance(rig, CallableRig) or any(holds_function(stage) for stage in getattr(rig, "stages", ()))


@pytest.mark.parametrize("name", RIGS)
def test_rigs_come_back(name: str) -> None:
    rig = RIGS[name]
    arrays: dict[str, np.ndarray] = {}
    table = rig_record(rig, arrays)
    if holds_function(rig):
        assert table is None
        return
    again = rig_from_record(json.loads(json.dumps(table)), arrays)
    assert again.parameters.names == rig.parameters.names
    assert np.array_equal(again.parameters.rest, rig.parameters.rest)
    p = random_parameters(rig.parameters, np.random.default_rng(1))
    assert np.array_equal(again.positions(p), rig.positions(p))


def test_clips_come_back() -> None:
    rig = RIGS["shapes and skin"]
    start = int(rig.parameters.quaternions[0])
    times = np.array([0.0, 0.5, 2.0])
    values = np.random.default_rng(0).normal(size=(9, 2))
    turns = np.tile([0.0, 0.0, 0.6, 0.8], (3, 1))
    tracks = (Track(0, 2, times, values, "cubic"), Track(start, 4, times, turns, "step", True))
    clip = Clip("run", rig.parameters, tracks, 2.0, True)
    arrays: dict[str, np.ndarray] = {}
    tables = json.loads(json.dumps(clips_record((clip,), arrays)))
    (again,) = clips_from_record(tables, arrays, rig.parameters)
    assert (again.name, again.duration, again.looping) == ("run", 2.0, True)
    when = np.linspace(0.0, 3.0, 17)
    assert np.array_equal(again.sample(when), clip.sample(when))


def test_unknown_and_endless_rigs_are_refused() -> None:
    with pytest.raises(InputError, match="kind 'spring'"):
        rig_from_record({"kind": "spring"}, {"rig.rest_positions": np.zeros((1, 3))})
    table: dict[str, object] = {"kind": "chain", "stages": []}
    for _ in range(20):
        table = {"kind": "chain", "stages": [table]}
    with pytest.raises(InputError, match="deep"):
        rig_from_record(table, {})
