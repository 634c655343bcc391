"""How much of the answer to a load a basis can give: one number a load, without any simulation."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from softrig.bases.contact import constrained_solve
from softrig.errors import InputError, require_finite
from softrig.models.full import FullBody

SATISFACTORY = 0.99
"""Where gravity and the rig's loads reach this, trajectories were within 10 %; at 0.80 they were 45 % wrong."""
DEPENDENT = 1e-12
"""Directions of the basis stiffer or softer than the rest by this are taken as dependent columns."""


def compliance(
    body: FullBody, basis: np.ndarray, loads: np.ndarray, *, null_space: csr_array | None = None
) -> np.ndarray:
    """(k,) fᵀU K̃⁻¹ Uᵀf / fᵀK⁻¹f of each load f: the share of the elastic work that the basis takes up, 0 to 1.

    `basis` U (3·free, r), any scaling; `loads` (3·free, k) newton; K̃ = UᵀKU. With `null_space` Z of the
    contacts the truth is that of the constrained body, (ZᵀKZ)⁻¹. A load that does no work gives 1.
    """
    loads = np.asarray(loads, dtype=np.float64)
    loads = loads[:, None] if loads.ndim == 1 else loads
    if basis.ndim != 2 or len(basis) != body.size or len(loads) != body.size:
        raise InputError(f"basis {basis.shape} and loads {loads.shape} must have {body.size} rows")
    require_finite(basis.T, "basis vectors")
    require_finite(loads.T, "loads")
    truth = np.einsum("ik,ik->k", loads, constrained_solve(body, null_space)(loads))
    got = _reduced_work(basis.T @ (body.rest_stiffness @ basis), basis.T @ loads)
    return np.where(truth > 0.0, got / np.where(truth > 0.0, truth, 1.0), 1.0)


def _reduced_work(stiffness: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """(k,) fᵀK̃⁻¹f; columns that depend on others, and zero ones, count once."""
    lengths = np.sqrt(np.maximum(np.diag(stiffness), 0.0))
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    values, vectors = np.linalg.eigh(scale[:, None] * (0.5 * (stiffness + stiffness.T)) * scale)
    kept = values > DEPENDENT * values[-1]
    turned = vectors[:, kept].T @ (scale[:, None] * loads)
    return np.asarray((turned**2 / values[kept][:, None]).sum(axis=0))


def acceleration_forces(body: FullBody, fields: np.ndarray) -> np.ndarray:
    """(3·free, k) newton: M a of acceleration fields (n, 3, k), m/s², those of the fixed vertices included."""
    n = len(body.fixed)
    if fields.ndim != 3 or fields.shape[:2] != (n, 3):
        raise InputError(f"acceleration fields have shape {fields.shape}, not ({n}, 3, k)")
    require_finite(fields, "acceleration fields")
    return body.restrict((body.scalar_mass @ fields.reshape(n, -1)).reshape(fields.shape))


def gravity_loads(body: FullBody, acceleration: float = 9.81) -> np.ndarray:
    """(3·free, 3) newton: the weight along x, y and z."""
    fields = np.broadcast_to(acceleration * np.eye(3), (len(body.fixed), 3, 3))
    return acceleration_forces(body, fields)


def gravity_compliance(body: FullBody, basis: np.ndarray, *, null_space: csr_array | None = None) -> np.ndarray:
    """(3,) `compliance` for gravity along x, y and z."""
    return compliance(body, basis, gravity_loads(body), null_space=null_space)
