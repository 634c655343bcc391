"""Models of every kind for the pose-space step, and moments of their motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pose_models_for_tests import pose

KINDS = {
    "bind": {"poses": 3},
    "regions": {"poses": 4, "regions": 3, "modes": 13},
    "world": {"interpolation": "world"},
    "one basis": {"poses": 3, "basis_poses": 1},
    "one basis of regions": {"poses": 4, "regions": 3, "modes": 13, "basis_poses": 1},
    "black box": {"black_box": True, "poses": 3},
    "five poses": {"poses": 4, "morphs": True},
}


def lively(model, seed=0, correction=0.5):
    """The model with random cubature weights (some zero) and random stiffness corrections."""
    rng = np.random.default_rng(seed)
    shape, r = model.cubature.weights.shape, model.mode_count
    weights = rng.uniform(0.0, 2.0, shape) * (rng.uniform(size=shape) > 0.2)
    matrices = correction * rng.normal(size=(len(model.poses), r, r))
    matrices = (matrices + matrices.transpose(0, 2, 1)).astype(np.float32).astype(np.float64)
    cubature = replace(model.cubature, weights=weights, stiffness_correction=matrices)
    return replace(model, cubature=cubature)


def moment(model, stepper, seed=0, size=1.0):
    """Carrier values far from the poses with random rates, and a random state (3, r)."""
    rng = np.random.default_rng(seed)
    p = pose(model.rig, (0.2, 0.3, 2.6), root_turn=(0.3, 0.5, -0.2), root_move=(0.1, 0.2, 0.3), angle=2.6)
    z = stepper.carriers(p)
    z = z + 0.01 * rng.normal(size=z.shape)
    state = rng.normal(size=(3, model.mode_count)) * np.array([[0.01], [0.3], [10.0]])
    return z, size * rng.normal(size=z.shape), 5.0 * size * rng.normal(size=z.shape), state


def put(stepper, state):
    stepper.q[:], stepper.v[:], stepper.a[:] = state


def difference(ours, theirs):
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))
