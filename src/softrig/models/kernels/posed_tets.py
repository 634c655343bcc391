"""Shape gradients and volumes of tets at a pose, kept open where the pose collapses them."""

from __future__ import annotations

import numpy as np
from numba import njit

from softrig.fem.laws import determinant
from softrig.models.pose_space import REST_CLAMP
from softrig.numerics.rotations import svd3


@njit(cache=True)
def posed_gradients(
    tets: np.ndarray,
    neutral_inverse: np.ndarray,
    neutral_volume: np.ndarray,
    positions: np.ndarray,
    gradients: np.ndarray,
    volumes: np.ndarray,
) -> int:
    """Write shape gradients (e, 1, 4, 3) and volumes (e, 1) of tets posed at `positions` (n, 3); how many were clamped.

    F_rest = Ds(positions) Dm⁻¹ with signed singular values raised to `REST_CLAMP`; gradients are the rows of
    Dm⁻¹ F_rest⁻¹, so that F = I + Σ_a u_a B_aᵀ is I at u = 0 for collapsed and inverted rest tets too.
    """
    F = np.empty((3, 3))
    U = np.empty((3, 3))
    V = np.empty((3, 3))
    inverse = np.empty((3, 3))
    s = np.empty(3)
    clamped = 0
    for e in range(tets.shape[0]):
        last = tets[e, 3]
        norm = 0.0
        for i in range(3):
            for K in range(3):
                total = 0.0
                for a in range(3):
                    total += (positions[tets[e, a], i] - positions[last, i]) * neutral_inverse[e, a, K]
                F[i, K] = total
                norm += total * total
        J = determinant(F)
        # σ₁σ₂ ≤ ‖F‖²/2, so the smallest singular value is at least 2J/‖F‖²: most tets need no decomposition.
        if not 2.0 * J >= REST_CLAMP * norm:
            svd3(F, U, s, V, inverse)
            if s[2] < REST_CLAMP:
                clamped += 1
                for k in range(3):
                    s[k] = max(s[k], REST_CLAMP)
                for i in range(3):
                    for K in range(3):
                        F[i, K] = U[i, 0] * s[0] * V[K, 0] + U[i, 1] * s[1] * V[K, 1] + U[i, 2] * s[2] * V[K, 2]
                J = s[0] * s[1] * s[2]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            for K in range(3):
                L, N = (K + 1) % 3, (K + 2) % 3
                inverse[K, i] = (F[j, L] * F[k, N] - F[j, N] * F[k, L]) / J
        volumes[e, 0] = J * neutral_volume[e]
        for i in range(3):
            sum_of_three = 0.0
            for a in range(3):
                value = (
                    neutral_inverse[e, a, 0] * inverse[0, i]
                    + neutral_inverse[e, a, 1] * inverse[1, i]
                    + neutral_inverse[e, a, 2] * inverse[2, i]
                )
                gradients[e, 0, a, i] = value
                sum_of_three += value
            gradients[e, 0, 3, i] = -sum_of_three
    return clamped
