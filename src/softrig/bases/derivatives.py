"""Modal derivatives: how each mode changes along another (StVK05 §5.1, App. D), and bases from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softrig.bases.modes import RIGID_MODES, LinearModes, linear_modes
from softrig.bases.snapshots import Basis
from softrig.errors import InputError, ModeCountError
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca
from softrig.numerics.sparse import singular_solve, stiffness_solve
from softrig.numerics.symmetric_tensors import sorted_indices

SAME = 1e-7
"""Eigenvalues closer than this, relatively, are one eigenvalue to the accuracy it is known with."""
CLUSTER = 1e-3
"""Modes whose eigenvalues are closer than this, relatively, turn into each other at the slightest push; that part
of their derivatives says nothing and is left out."""
SPARE_MODES = 3
"""Modes computed beyond those differentiated, to complete a cluster at the end."""


@dataclass(frozen=True)
class ModalDerivatives:
    """Φ_ij = ∂ψ_i/∂p_j along the modes, for listed pairs."""

    pairs: np.ndarray
    """(m, 2) i, j; i ≤ j only where the derivatives are symmetric."""
    shapes: np.ndarray
    """(3·free, m)."""


def modal_derivatives(
    body: FullBody,
    modes: LinearModes,
    *,
    inertia: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ModalDerivatives:
    """Derivatives of all `modes` along all of them.

    Without `inertia` (default for anchored bodies): K Φ_ij = −(H:ψ_i)ψ_j, symmetric, i ≤ j, one
    factorisation for all (StVK05 Eq. 14); a free body's rigid motions are kept out of load and
    answer. With it (default for free bodies): the exact derivative of the eigenvector,
    (K − λ_i M) Φ_ij = (M ψ_i ψ_iᵀ − I)(H:ψ_i)ψ_j with ψ_iᵀMΦ_ij = 0 (Eq. 29), all i and j, one
    factorisation a mode. `progress(done, total)` counts factorisations.
    """
    with_inertia = modes.rigid is not None if inertia is None else inertia
    pairs = sorted_indices(2, modes.shapes.shape[1])
    loads = -body.stiffness_derivative(modes.shapes)
    if with_inertia:
        return _derivatives_with_inertia(body, modes, pairs, loads, progress)
    solve = stiffness_solve(body.rest_stiffness, body.mass, modes.rigid, solver=body.solver_name)
    shapes = solve(loads)
    if progress:
        progress(1, 1)
    return ModalDerivatives(pairs, shapes)


def _derivatives_with_inertia(
    body: FullBody,
    modes: LinearModes,
    pairs: np.ndarray,
    loads: np.ndarray,
    progress: Callable[[int, int], None] | None,
) -> ModalDerivatives:
    count = modes.shapes.shape[1]
    # The last modes may belong to a cluster of which the caller asked for a part only.
    near = linear_modes(body, min(count + SPARE_MODES, body.size - (0 if modes.rigid is None else RIGID_MODES)))
    column = np.zeros((count, count), np.int64)
    column[pairs[:, 0], pairs[:, 1]] = column[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    all_pairs: list[tuple[int, int]] = []
    shapes: list[np.ndarray] = []
    for i in range(count):
        value = modes.eigenvalues[i]
        gaps = np.abs(near.eigenvalues - value) / value
        matrix = body.system(-value, body.rest_stiffness, 1.0)
        null_space = near.shapes[:, gaps <= SAME]
        solve = singular_solve(matrix, body.mass, null_space, definite=False, solver=body.solver_name)
        cluster = near.shapes[:, gaps <= CLUSTER]
        answers = solve(loads[:, column[i]])
        shapes.append(answers - cluster @ (cluster.T @ (body.mass @ answers)))
        all_pairs.extend((i, j) for j in range(count))
        if progress:
            progress(i + 1, count)
    return ModalDerivatives(np.array(all_pairs), np.concatenate(shapes, axis=1))


def derivative_samples(
    body: FullBody, modes: LinearModes, derivatives: ModalDerivatives, *, amplitude: float | None = None
) -> np.ndarray:
    """(3·free, k + m) modes and derivatives, scaled by how far they will move (metres √kilogram).

    `amplitude` is the largest displacement to expect of the first mode, metres; default a quarter of
    the body's diagonal. With p₁ the coordinate that moves the first mode that far and
    p_j = p₁ λ₁/λ_j, the samples are the terms of the parabola u = ψ_j p_j + ½ Φ_ij p_i p_j (Eq. 13): the paper's
    weights λ₁/λ_j and λ₁²/(λ_iλ_j) (Eq. 16) with the size that a motion of that amplitude gives them.
    `amplitude=0` gives the printed recipe, which mass-normalises the derivatives and so forgets how large
    they are.
    """
    ratios = modes.eigenvalues[0] / modes.eigenvalues
    i, j = derivatives.pairs.T
    if amplitude == 0.0:
        norms = np.sqrt(np.einsum("ij,ij->j", derivatives.shapes, body.mass @ derivatives.shapes))
        weights = ratios[i] * ratios[j] / np.where(norms > 0.0, norms, 1.0)
        return np.concatenate([modes.shapes * ratios, derivatives.shapes * weights], axis=1)
    if amplitude is None:
        amplitude = 0.25 * float(np.linalg.norm(np.ptp(body.mesh.vertices, axis=0)))
    if amplitude < 0.0:
        raise InputError(f"the amplitude is a length in metres, got {amplitude}")
    largest = np.linalg.norm(modes.shapes[:, 0].reshape(-1, 3), axis=1).max()
    coordinates = amplitude / largest * ratios
    # Off-diagonal terms appear twice in Eq. 13; a list of all (i, j) has them twice already.
    symmetric = bool((i <= j).all())
    weights = np.where((i != j) & symmetric, 1.0, 0.5) * coordinates[i] * coordinates[j]
    return np.concatenate([modes.shapes * coordinates, derivatives.shapes * weights], axis=1)


def derivative_basis(
    body: FullBody,
    size: int,
    *,
    modes: int | None = None,
    amplitude: float | None = None,
    inertia: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Basis:
    """A mass-orthonormal basis (3·free, size) from `modes` linear modes and their derivatives.

    `modes` defaults to as many as fill `size` about twice with derivatives counted. Other arguments:
    `derivative_samples`, `modal_derivatives`.
    """
    if size < 1:
        raise ModeCountError(f"a basis needs at least one vector, got {size}")
    available = body.size - (RIGID_MODES if body.is_free else 0)
    if size > available:
        raise ModeCountError(f"{size} modes asked of a body that has {available}")
    if modes is None:
        modes = next(k for k in range(1, size + 3) if k + k * (k + 1) // 2 >= 2 * size)
    if size > modes + (modes * (modes + 1) // 2):
        raise ModeCountError(f"{modes} modes and their derivatives cannot span {size} dimensions")
    linear = linear_modes(body, modes)
    derivatives = modal_derivatives(body, linear, inertia=inertia, progress=progress)
    samples = derivative_samples(body, linear, derivatives, amplitude=amplitude)
    if linear.rigid is not None:
        samples = samples - linear.rigid @ (linear.rigid.T @ (body.mass @ samples))
    shapes, singular = mass_pca(samples, body.mass, size)
    return Basis(shapes, singular)
