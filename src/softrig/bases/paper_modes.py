"""The paper's modes of regions (PSSD §7): each region's own, weighted, clamped at its border."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from softrig.bases.contact import constrained_matrix
from softrig.bases.derivatives import ModalDerivatives, derivative_samples
from softrig.bases.load_modes import Samples, flesh_amplitude, paper_mode_count, samples_of
from softrig.bases.localised import require_members
from softrig.bases.modes import LinearModes
from softrig.errors import ModeCountError
from softrig.models.full import FullBody
from softrig.numerics.null_space import null_space
from softrig.numerics.sparse import lowest_eigenpairs, stiffness_solve
from softrig.numerics.symmetric_tensors import entry_position, sorted_indices

SPARE = 4
"""The paper's recipe has so many linear modes more in each region than an equal share of the basis."""


def paper_region_weights(weights: np.ndarray, *, eta: float = 0.1, kappa: float = 0.5) -> np.ndarray:
    """W' = ((W − η)/(1 − η))^κ of weights W in 0 … 1, zero below the threshold η (PSSD §7)."""
    return np.asarray((np.maximum(weights - eta, 0.0) / (1.0 - eta)) ** kappa)


def paper_regional_modes(
    body: FullBody,
    weights: np.ndarray,
    count: int,
    *,
    derivatives: int | None = None,
    eta: float = 0.1,
    kappa: float = 0.5,
    constraints: csr_array | None = None,
) -> tuple[LinearModes, ModalDerivatives]:
    """The paper's `count` modes and their derivatives of ONE region with weights (n,) in 0 … 1 (PSSD Eqs. 31–35).

    With W' of the region's free vertices, the others fixed: K y = λ WMW y, φ = W y (Eq. 32);
    K z_ij = −(H:φ_i) y_j, ψ_ij = W z_ij (Eq. 33), which is not symmetric in i and j and is averaged. With
    `constraints` C (c, 3·free) the same in the null space of C W (Eqs. 34, 35): C φ = 0 and C ψ = 0. `derivatives`:
    those of so many leading modes, default all.
    """
    remapped = paper_region_weights(np.asarray(weights, dtype=np.float64), eta=eta, kappa=kappa)
    require_members(remapped[:, None], body.free)
    inside = np.flatnonzero(np.repeat(remapped[body.free] > 0.0, 3))
    lift = csr_array((np.ones(len(inside)), (inside, np.arange(len(inside)))), shape=(body.size, len(inside)))
    local = np.repeat(remapped[body.free], 3)[inside]
    weigh = diags_array(local)
    Z = lift if constraints is None else csr_array(lift @ null_space(csr_array(constraints[:, inside] @ weigh)))
    if not 1 <= count <= Z.shape[1]:
        raise ModeCountError(f"{count} modes asked of a region that has {Z.shape[1]}")
    everywhere = csr_array(diags_array(np.repeat(remapped[body.free], 3)))
    weighted = csr_array(everywhere @ Z)
    stiffness = constrained_matrix(body.rest_stiffness, Z)
    values, y = lowest_eigenpairs(stiffness, constrained_matrix(body.mass, weighted), count, solver=body.solver_name)
    modes = LinearModes(values, np.asarray(weighted @ y), None)
    leading = modes.leading(derivatives).shapes
    loads = -_mixed_derivative(body, leading, np.asarray(Z @ y[:, : leading.shape[1]]))
    solve = stiffness_solve(stiffness, stiffness, None, solver=body.solver_name)
    bent = np.asarray(weighted @ solve(np.ascontiguousarray(Z.T @ loads)))
    return modes, ModalDerivatives(sorted_indices(2, leading.shape[1]), bent)


def _mixed_derivative(body: FullBody, shapes: np.ndarray, unweighted: np.ndarray) -> np.ndarray:
    """(3·free, k(k+1)/2) the mean of (H:φ_i)y_j and (H:φ_j)y_i."""
    count = shapes.shape[1]
    everything = body.stiffness_derivative(np.concatenate([shapes, unweighted], axis=1))
    i, j = sorted_indices(2, count).T
    one = everything[:, entry_position(np.stack([i, count + j], axis=1))]
    return np.asarray(0.5 * (one + everything[:, entry_position(np.stack([j, count + i], axis=1))]))


def paper_regional_samples(
    body: FullBody,
    weights: np.ndarray,
    modes: int,
    *,
    derivatives: int | None = None,
    eta: float = 0.1,
    kappa: float = 0.5,
    constraints: csr_array | None = None,
    amplitude: float | None = None,
) -> tuple[Samples, ...]:
    """For each region of `weights` (n, g) its `modes` modes and their derivatives, at a physical size, as samples."""
    found = []
    for region in range(weights.shape[1]):
        pair = paper_regional_modes(
            body,
            weights[:, region],
            modes,
            derivatives=derivatives,
            eta=eta,
            kappa=kappa,
            constraints=constraints,
        )
        found.append(samples_of(body, derivative_samples(body, *pair, amplitude=amplitude)))
    return tuple(found)


def paper_regional_recipe(
    body: FullBody, weights: np.ndarray, size: int, *, constraints: csr_array | None = None
) -> tuple[Samples, ...]:
    """What the paper's recipe makes a basis of `size` columns of, for each region of `weights` (n, g): linear modes for
    an equal share and `SPARE` more, derivatives of the first ones, for a motion of flesh (as `paper_recipe`)."""
    share = -(-size // weights.shape[1]) + SPARE
    return paper_regional_samples(
        body,
        weights,
        share,
        derivatives=paper_mode_count(share),
        constraints=constraints,
        amplitude=flesh_amplitude(body),
    )
