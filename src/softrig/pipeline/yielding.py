"""How stiff the modes are where everything else may yield.

A body that can do nothing but its modes is too stiff: VᵀKV is the energy of V x itself. The full body would take the
shape of least energy among all that the modes see as x, u with VᵀM u = VᵀMV x, whose energy is ½ xᵀK⁺x with

    K⁺ = M̂ (VᵀM K⁻¹ M V)⁻¹ M̂,   M̂ = VᵀMV.

With K⁺ in place of VᵀKV a static load moves the modes exactly as far as it moves the full body. What goes beyond the
linear part knows nothing of that: K⁺x + (f(x) − VᵀKV x) can push where the body pulls. But for any γ that K⁺ is nowhere
below, K⁺x + γ (f(x) − VᵀKV x) = (K⁺ − γ VᵀKV) x + γ f(x), a stiffness and a softer body, is as stable as f is.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from softrig.models.moving import MovingBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.numerics.sparse import symmetric_solver
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh

LEAST = 0.4
"""γ. Lower ones gain little: a gorilla errs on a walk it did not see by 19.1, 19.7, 20.6, 22.8 % at 0.3, 0.45, 0.6,
0.8, and by 27.2 % at 1 (which is VᵀKV)."""


class YieldingStiffness:
    """K⁺ of a model with one basis, nowhere below `LEAST` times VᵀKV, at any pose."""

    def __init__(self, model: PoseSpaceModel, flesh: Flesh, fabric: Fabric) -> None:
        self._model, self._fabric = model, fabric
        self._body = MovingBody(
            flesh.mesh.elements,
            flesh.mesh.vertices,
            fixed=flesh.fixed,
            vertex_mass=model.vertex_mass,
            young=fabric.young[0],
            poisson=fabric.poisson[0],
            law=fabric.law,
        )
        self._solver = symmetric_solver(self._body.solver_name)

    def at(self, p: np.ndarray) -> np.ndarray:
        """(r, r) at parameters p (P,), newton per metre."""
        model, body = self._model, self._body
        w = model.positive_weights(p)
        body.place(model.tet_rest(p))
        body.set_material(w @ self._fabric.young, w @ self._fabric.poisson)
        turned = np.einsum("nij,njk->nik", model.vertex_rotations(p), model.shapes[0], optimize=True)
        basis = body.restrict(turned)
        heavy = body.mass_times(basis)
        given = basis.T @ (body.rest_stiffness @ basis)
        self._solver.factorise(body.rest_stiffness)
        yielding = yielding_stiffness(basis.T @ heavy, heavy.T @ self._solver.solve(heavy))
        return raised(yielding, given, LEAST)


def yielding_stiffness(mass: np.ndarray, yields: np.ndarray) -> np.ndarray:
    """(r, r) M̂ A⁻¹ M̂ of M̂ and A = VᵀM K⁻¹ M V (r, r)."""
    stiffness = mass @ np.linalg.solve(0.5 * (yields + yields.T), mass)
    return 0.5 * (stiffness + stiffness.T)


def raised(stiffness: np.ndarray, other: np.ndarray, least: float) -> np.ndarray:
    """`stiffness` (r, r), where it is below `least` times `other` (r, r) in some direction raised to that."""
    shares, directions = eigh(stiffness, other)
    sides = other @ directions
    return (sides * np.maximum(shares, least)) @ sides.T
