"""Reference elements: the linear tet and the 8-node brick, as shape functions and quadrature.

Everything above this module works on integration points and never asks which element it has.
A third element is a third entry in `REFERENCE_ELEMENTS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# VTK's corner order of the reference cube [-1, 1]³.
_BRICK_CORNERS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
    dtype=np.float64,
)


@dataclass(frozen=True)
class Quadrature:
    """Points of a reference element with the shape functions tabulated at them."""

    weights: np.ndarray
    """(p,) reference volumes."""
    shapes: np.ndarray
    """(p, k) N_a at the points."""
    gradients: np.ndarray
    """(p, k, 3) dN_a/dξ at the points."""


@dataclass(frozen=True)
class ReferenceElement:
    """One kind of element: its quadrature rules, faces and how to mirror it."""

    name: str
    stiffness: Quadrature
    """Points at which stress is evaluated."""
    mass: Quadrature
    """Points that integrate N_a N_b exactly (in bricks: where opposite faces are parallel)."""
    corner_gradients: np.ndarray
    """(k, k, 3) dN_a/dξ at the corners, where an element turns inside out first."""
    faces: np.ndarray
    """(faces, 3 or 4) local corners, counter-clockwise seen from outside."""
    mirrored: np.ndarray
    """(k,) the corner order that turns a negatively wound element into a positive one."""


def _tet_quadrature(barycentric: np.ndarray) -> Quadrature:
    points = len(barycentric)
    gradients = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return Quadrature(
        weights=np.full(points, 1.0 / (6.0 * points)),
        shapes=barycentric,
        gradients=np.repeat(gradients[None], points, axis=0),
    )


def _brick_quadrature(spread: float) -> Quadrature:
    """2×2×2 points at ± spread: Gauss at 1/√3, the corners at 1."""
    points = spread * _BRICK_CORNERS
    factors = 1.0 + points[:, None, :] * _BRICK_CORNERS[None]  # (p, k, 3)
    shapes = factors.prod(axis=2) / 8.0
    gradients = np.empty((8, 8, 3))
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        gradients[:, :, axis] = _BRICK_CORNERS[:, axis] * factors[:, :, others].prod(axis=2) / 8.0
    return Quadrature(weights=np.ones(8), shapes=shapes, gradients=gradients)


# Degree-2 rule with four points: b + 3a = 1, exact for N_a N_b on a linear tet.
_A, _B = (5.0 - np.sqrt(5.0)) / 20.0, (5.0 + 3.0 * np.sqrt(5.0)) / 20.0

TET = ReferenceElement(
    name="tet",
    stiffness=_tet_quadrature(np.full((1, 4), 0.25)),
    mass=_tet_quadrature(np.full((4, 4), _A) + (_B - _A) * np.eye(4)),
    corner_gradients=_tet_quadrature(np.eye(4)).gradients,
    faces=np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]),
    mirrored=np.array([0, 2, 1, 3]),
)

BRICK = ReferenceElement(
    name="brick",
    stiffness=_brick_quadrature(1.0 / np.sqrt(3.0)),
    mass=_brick_quadrature(1.0 / np.sqrt(3.0)),
    corner_gradients=_brick_quadrature(1.0).gradients,
    faces=np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]),
    mirrored=np.array([4, 5, 6, 7, 0, 1, 2, 3]),
)

REFERENCE_ELEMENTS = {4: TET, 8: BRICK}
"""By number of corners."""
