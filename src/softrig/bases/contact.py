"""Modes that respect self-contact (PSSD §6): bilateral constraints C u = 0, solved in their sparse null space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array, csr_array

from softrig.bases.derivatives import ModalDerivatives
from softrig.bases.modes import LinearModes, linear_modes
from softrig.errors import InputError, ModeCountError, SolverError, require_indices, require_vectors
from softrig.models.full import FullBody
from softrig.numerics.null_space import require_null_space
from softrig.numerics.sparse import lowest_eigenpairs, stiffness_solve
from softrig.numerics.symmetric_tensors import sorted_indices

Solve = Callable[[np.ndarray], np.ndarray]


class ContactSet(Protocol):
    """c contacts at vertices of the volume mesh."""

    @property
    def vertices(self) -> np.ndarray:
        """(c,) vertices."""

    @property
    def normals(self) -> np.ndarray:
        """(c, 3) directions in which a sliding contact may not move; any length but zero."""

    @property
    def sliding(self) -> np.ndarray:
        """(c,) bool: held along the normal alone, otherwise held altogether."""


def constraint_rows(
    contacts: ContactSet,
    free: np.ndarray,
    *,
    partners: np.ndarray | None = None,
    partner_weights: np.ndarray | None = None,
) -> csr_array:
    """(rows, 3·free) C of C u = 0: S_i u = 0 held (three rows), N_iᵀS_i u = 0 sliding (one row) (PSSD §6).

    `free` (n,): mask of the vertices that move, or their place among those (−1 fixed). With `partners` (c, k)
    and their `partner_weights` (c, k), contact i is with the point Σ_k weight · vertex (a corner triangle's,
    say), and u_i − Σ_k weight u_k takes the place of u_i. Rows that touch fixed vertices alone are left out.
    """
    place = _free_places(free)
    vertices = require_indices(contacts.vertices, len(place), "contact vertices")
    directions, contact_of_row = _directions(contacts, len(vertices))
    nodes, weights = vertices[:, None], np.ones((len(vertices), 1))
    if partners is not None:
        others = require_indices(np.ravel(partners), len(place), "contact partners").reshape(len(vertices), -1)
        shares = np.asarray(partner_weights, dtype=np.float64)
        if shares.shape != others.shape:
            raise InputError(f"partners {others.shape} and their weights {shares.shape} must be (c, k)")
        nodes, weights = np.concatenate([nodes, others], axis=1), np.concatenate([weights, -shares], axis=1)
    columns = 3 * place[nodes][contact_of_row][:, :, None] + np.arange(3)
    values = weights[contact_of_row][:, :, None] * directions[:, None, :]
    rows = np.broadcast_to(np.arange(len(directions))[:, None, None], columns.shape)
    used = (columns >= 0) & (values != 0.0)
    shape = (len(directions), 3 * int((place >= 0).sum()))
    matrix = csr_array(coo_array((values[used], (rows[used], columns[used])), shape=shape))
    matrix.sum_duplicates()
    return matrix[np.diff(matrix.indptr) > 0]


def _free_places(free: np.ndarray) -> np.ndarray:
    free = np.asarray(free)
    return np.where(free, np.cumsum(free) - 1, -1) if free.dtype == bool else free.astype(np.int64)


def _directions(contacts: ContactSet, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, 3) unit directions held, and the contact of each row; x, y, z for those held altogether."""
    normals = require_vectors(contacts.normals, count, "contact normals")
    sliding = np.asarray(contacts.sliding, dtype=bool)
    if sliding.shape != (count,):
        raise InputError(f"{count} contacts need as many flags of sliding, not {sliding.shape}")
    lengths = np.linalg.norm(normals, axis=1)
    if (flat := sliding & (lengths <= 0.0)).any():
        raise InputError("sliding contacts without a normal", np.flatnonzero(flat))
    contact_of_row = np.repeat(np.arange(count), np.where(sliding, 1, 3))
    unit = normals / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    held = np.tile(np.eye(3), (int((~sliding).sum()), 1))
    directions = unit[contact_of_row]
    directions[~sliding[contact_of_row]] = held
    return directions, contact_of_row


def constrained_matrix(matrix: csr_array, null_space: csr_array) -> csr_array:
    """ZᵀAZ, sparse and symmetric."""
    product = csr_array(null_space.T @ (matrix @ null_space))
    product = csr_array(0.5 * (product + product.T))
    product.sum_duplicates()
    return product


def constrained_solve(body: FullBody, null_space: csr_array | None = None) -> Solve:
    """A function that solves K u = b, (3·free,) or (3·free, k) newton to metres, within C u = 0.

    u = Z (ZᵀKZ)⁻¹ Zᵀ b with the null space Z of C (PSSD Eq. 28); without one, K⁻¹ b. One factorisation.
    """
    if null_space is None:
        body.require_anchored()
        return stiffness_solve(body.rest_stiffness, body.mass, None, solver=body.solver_name)
    Z = require_null_space(null_space, body.size)
    reduced = constrained_matrix(body.rest_stiffness, Z)
    inner = stiffness_solve(reduced, reduced, None, solver=body.solver_name)
    return lambda right: np.asarray(Z @ inner(np.ascontiguousarray(Z.T @ right)))


def constrained_modes(body: FullBody, count: int, null_space: csr_array | None = None) -> LinearModes:
    """The `count` lowest modes with C φ = 0: (ZᵀKZ) y = λ (ZᵀMZ) y, φ = Z y (PSSD Eqs. 26, 27)."""
    if null_space is None:
        return linear_modes(body, count)
    Z = require_null_space(null_space, body.size)
    if not 1 <= count <= Z.shape[1]:
        raise ModeCountError(f"{count} modes asked of a body that has {Z.shape[1]} under its contacts")
    stiffness, mass = constrained_matrix(body.rest_stiffness, Z), constrained_matrix(body.mass, Z)
    values, vectors = lowest_eigenpairs(stiffness, mass, count, solver=body.solver_name)
    if values[0] <= 0.0:
        raise SolverError(f"the stiffness under contact is not positive definite: lowest eigenvalue {values[0]:.3g}")
    return LinearModes(values, np.asarray(Z @ vectors), None)


def constrained_derivatives(
    body: FullBody, modes: LinearModes, null_space: csr_array | None = None, *, solve: Solve | None = None
) -> ModalDerivatives:
    """(ZᵀKZ) z_ij = −Zᵀ(H:φ_i)φ_j, ψ_ij = Z z_ij for all i ≤ j (PSSD Eq. 28; without contact StVK05 Eq. 14).

    `modes` may hold any fields (3·free, k). `solve`: an existing `constrained_solve`, to spare its factorisation.
    """
    solve = solve or constrained_solve(body, null_space)
    loads = -body.stiffness_derivative(modes.shapes)
    return ModalDerivatives(sorted_indices(2, modes.shapes.shape[1]), solve(loads))
