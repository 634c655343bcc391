"""How stiff the modes are where everything else may yield.

A body that can do nothing but its modes is too stiff: VᵀKV is the energy of V x itself. The full body would take the
shape of least energy among all that the modes see as x, u with VᵀM u = VᵀMV x, whose energy is ½ xᵀK⁺x with

    K⁺ = M̂ (VᵀM K⁻¹ M V)⁻¹ M̂,   M̂ = VᵀMV.

With K⁺ in place of VᵀKV a static load moves the modes exactly as far as it moves the full body. What goes beyond the
linear part knows nothing of that: K⁺x + (f(x) − VᵀKV x) can push where the body pulls. But for any γ that K⁺ is nowhere
below, K⁺x + γ (f(x) − VᵀKV x) = (K⁺ − γ VᵀKV) x + γ f(x), a stiffness and a softer body, is as stable as f is. How
much γ should be is measured (`pipeline.remainder`).

Loads on the rest move the modes, too. Under accelerations a the body goes to K⁻¹Ma, in which the modes are
M̂⁻¹VᵀM K⁻¹M a; K⁺ holds them there if the force on them is WᵀM a with the yielding shapes W = K⁻¹MV A⁻¹M̂, A = VᵀM K⁻¹MV,
not VᵀM a. W is V and what the rest does beside it. What that adds to the inertia of the bones, seen from each bone,
hardly depends on the pose (by a fifth of itself over all sample poses of a gorilla), so its mean over the poses is
taken (`added_by_the_rest`). Wind, pulls and contacts act on the modes alone. In a gorilla's walk and jump, everything
linear and K known, it takes the error of the modes from 6.9 and 8.1 % to 4.5 and 5.9.

What moves along has mass: the kinetic energy of W ẋ is ½ ẋᵀ(M̂ + (W − V)ᵀM (W − V)) ẋ, since W − V is orthogonal to V in
the metric of M (Guyan 1965 condenses the mass of a structure in this way). Again the mean over the poses is taken.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from softrig.forces.inertia import bone_inertia
from softrig.forces.projection import mass_products
from softrig.models.kernels.pose_space_layout import region_runs
from softrig.models.moving import MovingBody
from softrig.models.pose_space import PoseSpaceModel
from softrig.numerics.sparse import symmetric_solver
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.inertia_map import SLIGHT, drop_faint

OWN = 0.1
"""Variance of the modes by the flesh's own accelerations, of that by the rig's; it makes b². With 1, 0.1 and 0.01 a
gorilla's unseen walk is off by 7.3, 7.0 and 7.2 % if W is known, its jump by 10.2, 10.0 and 10.1."""

LIVED = 0.3
"""The same by what was rehearsed, which makes c². With 0.1, 0.3 and 1 that walk is off by
8.0, 8.0 and 8.1 % where it was not rehearsed, by 4.9, 4.6 and 4.2 where it was; with nothing of it, by 7.9 and 5.5,
which is more than V x alone errs on a clip that it has lived through."""


class YieldingStiffness:
    """K⁺ of a model with one basis, at any pose, at least γ VᵀKV; `share` is γ."""

    def __init__(self, model: PoseSpaceModel, flesh: Flesh, fabric: Fabric, share: float) -> None:
        self._model, self._fabric, self._share = model, fabric, share
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
        self._turns = np.zeros((0, 3, 3))

    def at(self, p: np.ndarray) -> np.ndarray:
        """(r, r) at parameters p (P,), newton per metre."""
        basis, heavy = self._placed(p)
        return self._stiffness(basis, heavy, self._solver.inverse_products(heavy))

    def expected(
        self, p: np.ndarray, loads: np.ndarray, lived: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same; (n, 3, r) what is to be expected beside the modes, W − V of `pipeline.followers`; (r, r) Cov x.

        `loads` (n, 3, l) m/s² that act on the body, `lived` (n, 3, k) shapes that it took; all seen from the vertices.
        """
        basis, heavy = self._placed(p)
        driven = self._body.mass_times(self._turned(loads))
        answers = np.hstack([self._solver.solve(np.hstack([heavy, driven])), self._turned(lived)])
        seen, r, driven_end = heavy.T @ answers, basis.shape[1], basis.shape[1] + driven.shape[1]
        modes = 0.5 * (seen[:, :r] + seen[:, :r].T)
        parts, covariance = expected_parts(modes, seen[:, r:driven_end], seen[:, driven_end:])
        mass = basis.T @ heavy
        told = answers @ (parts @ np.linalg.solve(covariance, mass))
        variance = np.linalg.solve(mass, np.linalg.solve(mass, covariance).T)
        return self._stiffness(basis, heavy, seen[:, :r]), self._unturned(told - basis), variance

    def _stiffness(self, basis: np.ndarray, heavy: np.ndarray, yields: np.ndarray) -> np.ndarray:
        given = basis.T @ (self._body.rest_stiffness @ basis)
        return raised(yielding_stiffness(basis.T @ heavy, yields), given, self._share)

    def beside(self, p: np.ndarray) -> np.ndarray:
        """(n, 3, r) what the rest does beside the modes at parameters p (P,), seen from the vertices: R_vᵀW − V."""
        basis, heavy = self._placed(p)
        return self._unturned(yielding_shapes(basis, heavy, self._solver.solve(heavy)) - basis)

    def _placed(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(3·free, r) V in the world and MV, with K of that pose factorised."""
        model, body = self._model, self._body
        w = model.positive_weights(p)
        body.place(model.tet_rest(p))
        body.set_material(w @ self._fabric.young, w @ self._fabric.poisson)
        self._turns = model.vertex_rotations(p)
        basis = self._turned(model.shapes[0])
        heavy = body.mass_times(basis)
        self._solver.factorise(body.rest_stiffness)
        return basis, heavy

    def _turned(self, fields: np.ndarray) -> np.ndarray:
        """(3·free, k) in the world, of `fields` (n, 3, k) seen from the vertices where they were placed."""
        return self._body.restrict(self._turns @ fields)

    def _unturned(self, fields: np.ndarray) -> np.ndarray:
        """The other way round."""
        return self._turns.transpose(0, 2, 1) @ self._body.expand(fields)


def expected_parts(modes: np.ndarray, loads: np.ndarray, lived: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(r + l + k, r) [b² A; Xᵀ; c² Yᵀ] and (r, r) C = b² A² + XXᵀ + c² YYᵀ, from A = VᵀMK⁻¹MV, X = VᵀMK⁻¹ML (r, l)
    and Y = VᵀMZ (r, k).

    u of covariance K⁻¹M (LLᵀ + b² VVᵀ) MK⁻¹ + c² ZZᵀ is, where VᵀMu is known, [K⁻¹MV, K⁻¹ML, Z] (first) C⁻¹ VᵀMu.
    """
    own = modes @ modes
    # Where no load is felt only the ratio of the other two counts.
    size = float(np.sum(loads**2)) or float(np.trace(own))
    share = OWN * size / max(float(np.trace(own)), 1e-300)
    seen = LIVED * size / max(float(np.sum(lived**2)), 1e-300)
    covariance = loads @ loads.T + share * own + seen * (lived @ lived.T)
    return np.concatenate([share * modes, loads.T, seen * lived.T]), 0.5 * (covariance + covariance.T)


def added_by_the_rest(model: PoseSpaceModel, stiffness: YieldingStiffness) -> tuple[np.ndarray, np.ndarray]:
    """(r, 12 B) what the rest adds to the columns of the bones in `PoseSpaceModel.inertia`, and (r, r) to the mass of
    the modes: the means over the poses, exactly representable in float32.

    The former without what a bone hardly does to a region.
    """
    weights = model.tet_rig.weights
    assert weights is not None
    found, masses = [], []
    for p in model.poses.parameters:
        points = model.vertices + np.tensordot(model.pose_weights(p), model.tet_rig.corrections, axes=1)
        turns, frames = model.vertex_rotations(p), model.frame_rotations(p)
        shapes = stiffness.beside(p)
        found.append(bone_inertia(shapes, model.vertex_mass, points, weights, turns, frames))
        masses.append(mass_products(shapes[None], model.vertex_mass)[0, 0])
    mean, mass = np.mean(found, axis=0), np.mean(masses, axis=0)
    least, runs = SLIGHT * float(np.linalg.norm(mean)), region_runs(model.region_of_mode)
    for block in np.split(mean, weights.shape[1], axis=1):
        drop_faint(block, least, runs)
    return mean.astype(np.float32).astype(np.float64), mass.astype(np.float32).astype(np.float64)


def yielding_shapes(basis: np.ndarray, heavy: np.ndarray, relaxed: np.ndarray) -> np.ndarray:
    """(k, r) W = K⁻¹MV A⁻¹M̂ of V, MV and K⁻¹MV (k, r): accelerations a act on the modes by WᵀM a."""
    yields = heavy.T @ relaxed
    return relaxed @ np.linalg.solve(0.5 * (yields + yields.T), basis.T @ heavy)


def yielding_stiffness(mass: np.ndarray, yields: np.ndarray) -> np.ndarray:
    """(r, r) M̂ A⁻¹ M̂ of M̂ and A = VᵀM K⁻¹ M V (r, r)."""
    stiffness = mass @ np.linalg.solve(0.5 * (yields + yields.T), mass)
    return 0.5 * (stiffness + stiffness.T)


def raised(stiffness: np.ndarray, other: np.ndarray, least: float) -> np.ndarray:
    """`stiffness` (r, r), where it is below `least` times `other` (r, r) in some direction raised to that."""
    shares, directions = eigh(stiffness, other)
    sides = other @ directions
    return (sides * np.maximum(shares, least)) @ sides.T
