"""How much each joint matters to what is regressed over poses.

How stiff a belly is depends on the spine and hardly on a hand. A kernel to which all joints matter alike does not know
that: an arm bent as in no sample makes it forget what it knows of the belly. So the relevances a_g of the kernel
(`models.pose_kernel`) and the noise ν are those with which each sample is best foretold by all others. With Y (t, k)
what is to be regressed and Q = (κ + ν I)⁻¹, leaving out sample t misses it by

    e_t = (QY)_t / Q_tt,

and log Σ_t ‖e_t‖² is brought down along its slopes, which cost no more than itself.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from softrig.models.pose_kernel import mixed_kernel, relevance_slopes

RANGES = (0.01, 20.0, 1e-6, 1e-4)
"""The least and the largest relevance of a joint; and of the noise, of the kernel's diagonal.
With more of it few samples foretell each other better, but none is met: a limb whose muscle stiffens tenfold at one
pose is a third as stiff there as it should be."""
ITERATIONS = 20
DIRECTIONS = 40
"""Of what is regressed: the largest principal ones tell enough."""


def fitted_relevance(single: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, float]:
    """a (G,) and ν for kernels of the joints (t, t, G) and targets (t, k)."""
    groups, (least, most, quiet, noisy) = single.shape[2], RANGES
    known, start = _largest(targets), np.log(np.r_[np.ones(single.shape[2]), noisy])
    logs = start
    if float(np.sum(known**2)) > 0.0:
        bounds = [*[np.log([least, most])] * groups, np.log([quiet, noisy])]
        options = {"maxiter": ITERATIONS}
        found = minimize(loss, start, (single, known), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        logs = found.x if found.fun < loss(start, single, known)[0] else start
    relevance = np.exp(logs[:-1])
    return relevance, float(np.exp(logs[-1]) * mixed_kernel(np.ones((1, 1, groups)), relevance)[0, 0])


def loss(logs: np.ndarray, single: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    """log Σ_t ‖e_t‖² and its slopes by the logarithms of a and of ν/κ(p, p) (G + 1,)."""
    relevance, share = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    same = np.ones((1, 1, len(relevance)))
    noise = share * float(mixed_kernel(same, relevance)[0, 0])
    value, slopes = left_out(mixed_kernel(single, relevance), noise, targets)
    by_noise = np.trace(slopes)
    by_joint = relevance_slopes(slopes, single, relevance)
    by_joint += share * by_noise * relevance_slopes(np.ones((1, 1)), same, relevance)
    return value, np.r_[by_joint * relevance, by_noise * noise]


def left_out(kernel: np.ndarray, noise: float, targets: np.ndarray) -> tuple[float, np.ndarray]:
    """log Σ_t ‖e_t‖² and its slopes (t, t) by the entries of κ (t, t), for targets (t, k)."""
    count = len(kernel)
    inverse = cho_solve(cho_factor(kernel + noise * np.eye(count), lower=True), np.eye(count))
    diagonal = inverse.diagonal()
    solved = inverse @ targets
    misses = solved / diagonal[:, None]
    total = float(np.sum(misses**2))
    direct = inverse @ (misses / diagonal[:, None]) @ solved.T
    through = (inverse * np.sum(misses**2, axis=1) / diagonal) @ inverse
    return float(np.log(total)), 2.0 * (through - 0.5 * (direct + direct.T)) / total


def _largest(targets: np.ndarray) -> np.ndarray:
    """(t, ≤ DIRECTIONS) with the same inner products between samples, nearly."""
    if targets.shape[1] <= DIRECTIONS:
        return targets
    left, sizes, _ = np.linalg.svd(targets, full_matrices=False)
    return np.asarray(left[:, :DIRECTIONS] * sizes[:DIRECTIONS])
