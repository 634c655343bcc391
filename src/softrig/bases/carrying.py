"""Bases of a body that carries others: how it bends under what hangs on it, too (ours, beyond SUB11).

The modes of a domain by itself know nothing of the weight at its far end, which in a tree is most of what moves it. So
the static answers to the wrenches that its children can exert stand beside its vibration modes, and the derivatives of
both.
"""

from __future__ import annotations

import numpy as np

from softrig.bases.derivatives import derivative_samples, modal_derivatives
from softrig.bases.modes import LinearModes, linear_modes
from softrig.bases.snapshots import Basis
from softrig.errors import InputError, ModeCountError
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca
from softrig.numerics.sparse import stiffness_solve


def wrench_fields(positions: np.ndarray, areas: np.ndarray, lever: float) -> np.ndarray:
    """(k, 3, 6) forces at points (k, 3), metres, spread by area: unit forces, then torques of 1 N at `lever` metres.

    The torque about an axis pushes each point across its distance from it, so that no net force is left.
    """
    weights = areas / areas.sum()
    arms = positions - weights @ positions
    spread = np.einsum("k,ki,kj->ij", weights, arms, arms)
    inverse = np.linalg.pinv(np.trace(spread) * np.eye(3) - spread, rcond=1e-9)
    fields = np.zeros((len(positions), 3, 6))
    for axis in range(3):
        fields[:, axis, axis] = weights
        fields[:, :, 3 + axis] = lever * weights[:, None] * np.cross(inverse[axis], arms)
    return fields


def carrying_basis(
    body: FullBody, size: int, loads: np.ndarray, *, modes: int | None = None, amplitude: float | None = None
) -> Basis:
    """A mass-orthonormal basis (3·free, size) from linear modes, the answers to `loads` (3·free, m), and derivatives.

    Modes and answers are drawn together by mass-PCA, the largest answer counting as much as the first mode; the leading
    `modes` of them (by default as many as fill `size` about twice with derivatives counted) take the place of vibration
    modes in `derivative_samples`, which says what `amplitude` is.
    """
    if size < 1:
        raise ModeCountError(f"a basis needs at least one vector, got {size}")
    if loads.ndim != 2 or loads.shape[0] != body.size or loads.shape[1] == 0:
        raise InputError(f"loads have shape {loads.shape}, the body {body.size} free degrees of freedom")
    if modes is None:
        modes = next(k for k in range(1, size + 3) if k + k * (k + 1) // 2 >= 2 * size)
    linear = linear_modes(body, modes)
    solve = stiffness_solve(body.rest_stiffness, body.mass, linear.rigid, solver=body.solver_name)
    answers = solve(loads)
    if linear.rigid is not None:
        answers = answers - linear.rigid @ (linear.rigid.T @ (body.mass @ answers))
    sizes = np.sqrt(np.einsum("ij,ij->j", answers, body.mass @ answers))
    ratios = linear.eigenvalues[0] / linear.eigenvalues
    pooled = np.concatenate([linear.shapes * ratios, answers / sizes.max()], axis=1)
    shapes, singular = mass_pca(pooled, body.mass, modes)
    drawn = LinearModes(linear.eigenvalues[0] * singular[0] / singular, shapes, linear.rigid)
    derivatives = modal_derivatives(body, drawn, inertia=False)
    samples = derivative_samples(body, drawn, derivatives, amplitude=amplitude)
    if linear.rigid is not None:
        samples = samples - linear.rigid @ (linear.rigid.T @ (body.mass @ samples))
    basis, values = mass_pca(samples, body.mass, size)
    return Basis(basis, values)
