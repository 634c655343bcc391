"""Fewer modes of a model: those left out yield beside the others, like the rest of the body (`pipeline.yielding`).

With A = VᵀM K⁻¹M V and M̂ = VᵀMV the modes are as stiff as M̂A⁻¹M̂, and A of some modes is a block of that of all. So
is VᵀM K⁻¹M a, what accelerations a of the body move, from which the force on the modes is M̂A⁻¹ of that. Cut out of the
model's own matrices instead, the modes would be held by those that are gone: a gorilla's chest beat by 50 of its 100
modes rang 7 % too high and erred by 33 %, not 19.

Those left out also go along with the others. Of all x that these see as they are, E x (`foretold_by_kept`) has the
least energy, which is F as its covariance, and that goes with K⁺ into the mass. Drawn (`Followers.of_modes`) is what is
likely, of which the rig's loads are a part (`likely_motion`): 14 %.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

DRIVEN = 0.5
"""Variance of the modes as answers to the rig, of that by their energy. With 0, 0.5 and 1 a gorilla's unseen walk by 50
of 100 modes is off by 19.3, 18.0 and 17.7 %, an arm's bend by 22 of 45 by 19.8, 21.1 and 22.5; if modes left out are
not drawn by 27.2 and 28.0. A tube of two bones, shaken, by 12 of 24: 30.3, 13.9 and 10.8, and 9.8."""


def most_important(region_of_mode: np.ndarray, order: np.ndarray, count: int) -> np.ndarray:
    """(count,) rising modes, of each region those with the largest `order` (r,): shares by largest remainder, at least
    one a region while there are enough."""
    regions, sizes = np.unique(region_of_mode, return_counts=True)
    exact = count * sizes / sizes.sum()
    shares = np.maximum(np.floor(exact), 1.0 if count >= len(regions) else 0.0).astype(int)
    while shares.sum() < count:
        shares[np.argmax(np.where(shares < sizes, exact - shares, -np.inf))] += 1
    while shares.sum() > count:
        shares[np.argmax(np.where(shares > 1, shares - exact, -np.inf))] -= 1
    kept = []
    for region, share in zip(regions, shares, strict=True):
        modes = np.flatnonzero(region_of_mode == region)
        kept.append(modes[np.argsort(-order[modes], kind="stable")[:share]])
    return np.sort(np.concatenate(kept))


def block_of_flexibilities(flexibilities: np.ndarray, mass: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """(…, k, k) F = M̂⁻¹A M̂⁻¹ of the modes `keep` (k,), of F (…, r, r) and M̂ (r, r) of all."""
    sides = _seen_by_kept(mass, keep)
    return np.asarray(sides @ flexibilities @ sides.T)


def foretold_by_kept(covariance: np.ndarray, mass: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """(r, k) all modes, from the modes `keep` (k,), if all have that `covariance` (r, r), up to a factor.

    F as covariance: those left out yield beside these.
    """
    sides = _seen_by_kept(mass, keep)
    return np.asarray(np.linalg.solve(sides @ covariance @ sides.T, sides @ covariance).T)


def likely_motion(flexibility: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """(r, r) a covariance of all modes: by their energy, F, and as answers F C to accelerations, of `inertia` C (r, l),
    which are as large together as `DRIVEN` says."""
    driven = flexibility @ inertia
    by_loads = driven @ driven.T
    share = DRIVEN * np.trace(flexibility) / max(float(np.trace(by_loads)), 1e-300)
    return np.asarray(flexibility + share * by_loads)


def force_on_kept(flexibility: np.ndarray, mass: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """(k, r) from the force that accelerations cause on all modes to that on the modes `keep` (k,); F (r, r)."""
    fewer = block_of_flexibilities(flexibility, mass, keep)
    return np.asarray(np.linalg.solve(fewer, np.linalg.solve(mass[keep[:, None], keep], (mass @ flexibility)[keep])))


def yielding_of_kept(
    felt: np.ndarray, inertia: np.ndarray, flexibility: np.ndarray, mass: np.ndarray, keep: np.ndarray
) -> np.ndarray:
    """(k, 12 B) `PoseSpaceModel.yielding` of the modes `keep` (k,), from what all feel of the bones on average
    (r, 12 B), and C_i (m, r, L)."""
    given = inertia[:, keep, : felt.shape[1]].mean(axis=0)
    return _single(force_on_kept(flexibility, mass, keep) @ felt - given)


def carried_by_kept(moved: np.ndarray, foretold: np.ndarray, mass: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """(k, k) `PoseSpaceModel.carried_mass` of the modes `keep` (k,), by which all are `foretold` (r, k): M̂ (r, r) is
    the `mass` of all by themselves, `moved` that with what they carry along."""
    added = foretold.T @ moved @ foretold - mass[keep[:, None], keep]
    return _single(0.5 * (added + added.T))


def least_share(flexibility: np.ndarray, mass: np.ndarray, keep: np.ndarray) -> float:
    """How stiff the modes `keep` (k,) still are, of what they were while the others held them, where it is least.

    By as much less must count of what goes beyond the linear part, or it would push where the body pulls.
    """
    held = np.linalg.inv(flexibility)[keep[:, None], keep]
    yielding = np.linalg.inv(block_of_flexibilities(flexibility, mass, keep))
    return min(1.0, float(eigh(yielding, held, eigvals_only=True)[0]))


def _single(array: np.ndarray) -> np.ndarray:
    """Exactly representable in float32, as a file keeps it."""
    return np.asarray(array.astype(np.float32).astype(np.float64))


def _seen_by_kept(mass: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """(k, r) M̂_kk⁻¹M̂_k: what the modes `keep` (k,) see of a motion of all, by mass."""
    return np.linalg.solve(mass[keep[:, None], keep], mass[keep])
