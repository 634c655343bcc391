"""One codec for all binary messages."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softrig.errors import InputError
from softrig.viewer.picture import bounded, coded
from softrig.viewer.protocol import TYPES, decode, encode

ARRAYS = st.sampled_from(sorted(TYPES)).flatmap(
    lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=7))
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), ARRAYS, max_size=5), st.text(max_size=20))
def test_what_goes_in_comes_out(arrays, text):
    message = encode({"is": "test", "text": text, "number": 0.5}, arrays)
    header, found = decode(message)
    assert header == {"is": "test", "text": text, "number": 0.5}
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_every_array_begins_where_a_browser_can_look_at_it():
    arrays = {
        "a": np.arange(3, dtype=np.uint8),
        "b": np.arange(3, dtype=np.float32),
        "c": np.arange(1, dtype=np.uint16),
    }
    message = encode({"is": "x"}, arrays)
    (length,) = struct.unpack_from("<I", message)
    assert (4 + length) % 8 == 0
    assert json.loads(message[4 : 4 + length])["arrays"][1] == {"name": "b", "type": "float32", "shape": [3]}
    at = 4 + length + 8
    assert at % 8 == 0
    np.testing.assert_array_equal(np.frombuffer(message, "<f4", 3, at), arrays["b"])
    assert len(message) % 8 == 0


def test_what_a_browser_has_no_array_for_is_refused():
    with pytest.raises(InputError, match="'x' holds float64"):
        encode({"is": "x"}, {"x": np.zeros(3)})
    with pytest.raises(ValueError, match="JSON"):
        encode({"is": "x", "bad": float("nan")})


@given(st.binary(max_size=200))
def test_other_bytes_are_no_message(content):
    try:
        decode(content)
    except InputError:
        return


def test_sixteen_bits_are_enough_for_a_surface():
    points = np.random.default_rng(0).uniform(-0.9, 1.1, (1000, 3)).astype(np.float32)
    kept, low, high = bounded(points)
    step = (high - low) / 65535
    back = low + step * coded(kept, low, step)
    assert np.abs(back - points).max() < 0.51 * step.max() + 1e-7


def test_a_lost_vertex_does_not_take_the_message_with_it():
    points = np.array([[0.0, 1, 2], [np.nan, np.inf, -np.inf]], np.float32)
    kept, low, high = bounded(points)
    assert np.isfinite([*kept.ravel(), *low, *high]).all()
    assert bounded(np.zeros((0, 3), np.float32))[0].shape == (0, 3)
