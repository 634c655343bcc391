"""The tables of a full step of a small body: named tuples of arrays that compiled code reads and writes.

Vertices stand in an order of their own: free ones first, neighbours near each other, then those on the bones. Tets
stand in chunks of eight (`pose_space_elements.LANES`), the corners of each in rising order, so that of two corners the
later one is the row of their block in the lower half of the matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Places in `SmallMemory.settings`: a₁ to a₆ of the step first.
A1, A2, A3, A4, A5, A6, STEP, ALPHA, BETA, INERTIA, GRAVITY, SAG_FREE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13
# Rows of `SmallMemory.state`; `TRIAL` and `RELATIVE` are scratch.
Q, V, A, TRIAL, RELATIVE = 0, 1, 2, 3, 4
ROWS = 5
CORNER_PAIRS = 10
"""Pairs of corners of a tet, each with itself, too: a(a + 1)/2 + b for a ≥ b."""


class SmallRig(NamedTuple):
    """What carries the vertices of a skin."""

    root: int
    """The bone that turns the sculpted sag of all, −1: each vertex' own do."""
    starts: np.ndarray
    """(n + 1,) where the bones of a vertex stand in `bones` and `weights`, the heaviest first."""
    bones: np.ndarray
    weights: np.ndarray
    points: np.ndarray
    """(n, 3) rest positions."""
    corrections: np.ndarray
    """(n, m, 3) δ."""
    order: np.ndarray
    """(n,) 0, 1, …: all vertices, for kernels that take a choice of them."""


class SmallBody(NamedTuple):
    """Tets with a free corner, and the envelope of their matrix."""

    law: int
    corners: np.ndarray
    """(chunks, 4, LANES) vertices."""
    places: np.ndarray
    """(chunks, CORNER_PAIRS, LANES) where the blocks of corners begin in the envelope, −1: not both are free."""
    edges: np.ndarray
    """(chunks, 9 · LANES) neutral edges Dm."""
    inverses: np.ndarray
    """(chunks, 9 · LANES) Dm⁻¹."""
    volumes: np.ndarray
    """(chunks, LANES) neutral volumes, m³, zero in empty lanes."""
    ones: np.ndarray
    """(chunks, k, LANES) and `scale` (chunks, LANES): every tet counts once."""
    young: np.ndarray
    """(chunks, k, LANES) pascal; k is 1 or the number of poses, as of `poisson`."""
    poisson: np.ndarray
    scale: np.ndarray
    mass: np.ndarray
    """(f,) of the free vertices, kilogram."""
    firsts: np.ndarray
    """(f,) and `starts` (f + 1,): the envelope (`envelope.py`)."""
    starts: np.ndarray


class SmallMemory(NamedTuple):
    """What the step changes."""

    settings: np.ndarray
    state: np.ndarray
    """(ROWS, n, 3) u and its rates in the world, zero at the vertices on the bones."""
    positions: np.ndarray
    """(n, 3) the rest shape, metres."""
    load: np.ndarray
    """(f, 3) newton."""
    spin: np.ndarray
    """(f, 3) radian per second."""
    w: np.ndarray
    positive: np.ndarray
    """(m,) w⁺."""
    whole: np.ndarray
    """(1,) one: the share of a material that all poses have in common."""
    turns: np.ndarray
    """(B, 3, 3) rotations of the bones."""
    quaternions: np.ndarray
    """(B, 4), and `rates` (B, 4) per second."""
    rates: np.ndarray
    gradients: np.ndarray
    """(chunks, 9 · LANES) B of the posed tets."""
    factors: np.ndarray
    """(chunks, LANES) their volumes, m³."""
    lame: np.ndarray
    """(chunks, 2, LANES) λ and μ, pascal."""
    residual: np.ndarray
    """(3·f,) newton; after the solve the Newton step."""
    matrix: np.ndarray
    """(numbers of the envelope,)."""
    lanes: np.ndarray
    work: np.ndarray
