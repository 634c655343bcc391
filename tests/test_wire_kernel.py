"""The compiled part of a wire against plain NumPy."""

import numpy as np
import pytest

from softrig.numerics.rotations import quaternions_between
from softrig.rig.wire_kernel import turn_between


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
