"""Arrays that the step of a tree of reduced domains reads and writes (see `substructured_step`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softrig.models.kernels.substructured_terms import POLAR_WORK

FRAME = 18
"""Numbers of a row of `Room.frames`: rotation to the world (9), origin in it (3), m; ω (3), rad/s, and velocity of the
origin (3), m/s, in own axes."""
HINGE = 21
"""Numbers of a row of `Room.hinges`; see `substructured_terms.interface`: Q (9), place (3), spin (3), gain (6)."""
ROOT = 24
"""Numbers of `Motion.root`."""


class Tables(NamedTuple):
    """The model, as the step reads it. Domains in order, parents first; `modes` and the rest by domain."""

    parents: np.ndarray
    """(d,) int64, -1 for the root."""
    modes: np.ndarray
    """(d + 1,) int64 where each domain's coordinates start."""
    scales: np.ndarray
    """(d,)"""
    stiffness: np.ndarray
    """(d,) by what internal forces are multiplied."""
    coefficients: np.ndarray
    """Flat, of all shapes one after another; see `kernels.polynomial`."""
    coefficient_starts: np.ndarray
    """(d, 2) int64 first and end."""
    products: np.ndarray
    """Flat; see `kernels.substructured_terms.product_table`."""
    product_starts: np.ndarray
    """(d, 2) int64."""
    drags: np.ndarray
    """Flat: ∫n⊗n dA (9) | ∫(X×n)⊗n dA (9) | ∫X dA / area (3) | ∫(U·n)n dA (r, 3)."""
    drag_starts: np.ndarray
    """(d, 2) int64."""
    places: np.ndarray
    """(d, 3) origins at rest in the parent's unscaled axes."""
    turns: np.ndarray
    """(d, 3, 3) rotations at rest from own axes to the parent's."""
    links: np.ndarray
    """Flat: of each domain but the root, 12 numbers a mode of its parent; see `interface`."""
    link_starts: np.ndarray
    """(d, 2) int64."""


class Motion(NamedTuple):
    """What is stepped. Written in place."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    """(r̂,) modal coordinates of all domains and their two rates."""
    root: np.ndarray
    """(24,) of the root: rotation (9), place (3), ω (3) and velocity (3) in own axes, α (3) in own axes and
    acceleration (3) in the world."""
    start_q: np.ndarray
    start_v: np.ndarray
    """(r̂,) where a step without acceleration would end."""


class Loads(NamedTuple):
    """What acts from outside, until changed."""

    pulled: np.ndarray
    """(k,) int64 domain of each pull, rising."""
    pulls: np.ndarray
    """(k, 3) newton, in the world."""
    arms: np.ndarray
    """(k, 3) the pulled points X, unscaled."""
    levers: np.ndarray
    """(k, 3, most modes) their rows of U."""
    gravity: np.ndarray
    """(3,) m/s², in the world."""
    wind: np.ndarray
    """(d, 3) m/s of the air about each domain, in the world."""
    drag: np.ndarray
    """(1,) half the density of the air times its drag coefficient, kg/m³."""


class Room(NamedTuple):
    """Where the step works."""

    frames: np.ndarray
    """(d, 18)."""
    hinges: np.ndarray
    """(d, 21)."""
    follow: np.ndarray
    """Flat, 6 numbers a mode of each domain's parent, as `link_starts` / 2."""
    inertia: np.ndarray
    """(d, 6, 6)."""
    bias: np.ndarray
    """(d, 6)."""
    coupling: np.ndarray
    """(r̂, 6)."""
    right: np.ndarray
    """(r̂,)."""
    factors: np.ndarray
    """Flat packed systems of all domains, then their Cholesky factors in place."""
    factor_starts: np.ndarray
    """(d, 2) int64."""
    subtree: np.ndarray
    """(d, 7) mass of the subtree, its mass times place of its centre in own axes, force on it in own axes."""
    new_q: np.ndarray
    new_v: np.ndarray
    new_a: np.ndarray
    changes: np.ndarray
    """(2, r̂) what the last round, and all rounds, have changed."""
    accelerations: np.ndarray
    """(d, 6)."""
    root: np.ndarray
    """(24,) the root's, of the present round."""
    before: np.ndarray
    """(24,) of the round before."""
    constants: np.ndarray
    """(9,) of a part of a step."""
    scratch: np.ndarray


def room_for(tables: Tables) -> Room:
    """Memory for a step."""
    sizes = np.diff(tables.modes)
    total, domains, most = int(tables.modes[-1]), len(sizes), int(sizes.max(initial=0))
    ends = np.cumsum(sizes * (sizes + 1) // 2)
    starts = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
    return Room(
        frames=np.zeros((domains, FRAME)),
        hinges=np.zeros((domains, HINGE)),
        follow=np.zeros(int(tables.link_starts[-1, 1]) // 2),
        inertia=np.zeros((domains, 6, 6)),
        bias=np.zeros((domains, 6)),
        coupling=np.zeros((total, 6)),
        right=np.zeros(total),
        factors=np.zeros(int(ends[-1])),
        factor_starts=starts,
        subtree=np.zeros((domains, 7)),
        new_q=np.zeros(total),
        new_v=np.zeros(total),
        new_a=np.zeros(total),
        changes=np.zeros((2, total)),
        accelerations=np.zeros((domains, 6)),
        root=np.zeros(ROOT),
        before=np.zeros(ROOT),
        constants=np.zeros(9),
        scratch=np.zeros(POLAR_WORK + 40 * (most + 1) + 4 * most * (most + 1)),
    )
