"""How much energy is in the flesh: what the motion relative to the bones holds, and what the deformation holds."""

from __future__ import annotations

import numpy as np

from softrig.fem.assembly import total_energy
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.models.kernels.pose_space_chunks import owners
from softrig.models.kernels.pose_space_layout import region_runs
from softrig.models.kernels.posed_tets import posed_gradients
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.numerics.rbf import positive_weights


class FleshEnergy:
    """Energies of a model, joule, by its cubature and ½ (Υq)ᵀ ΔK Υq: what its steps take the elastic energy to be.

    The kinetic energy ½ (Υv)ᵀ M̂ Υv is that of the motion relative to the bones.
    """

    def __init__(self, model: PoseSpaceModel) -> None:
        self._model = model
        tets = model.tets[model.cubature.tets]
        self._vertices, places = np.unique(tets, return_inverse=True)
        self._tets = places.reshape(tets.shape).astype(np.int32)
        corners = model.vertices[tets]
        edges = np.swapaxes(corners[:, :3] - corners[:, 3:], 1, 2)
        self._inverse = np.ascontiguousarray(np.linalg.inv(edges))
        self._volume = np.abs(np.linalg.det(edges)) / 6.0
        self._owners = owners(model, region_runs(model.region_of_mode))
        self._gradients = np.empty((len(tets), 1, 4, 3))
        self._volumes = np.empty((len(tets), 1))

    def __call__(self, stepper: Stepper, pose: np.ndarray, q: np.ndarray, weights: np.ndarray) -> dict[str, float]:
        """Kinetic and elastic energy at a pose (P,) with coordinates q (r,) and pose weights (m,)."""
        model, cubature = self._model, self._model.cubature
        kept = stepper.q.copy()
        stepper.q[:] = q
        try:
            stepper.place(stepper.carriers(pose))
            rest = stepper.tet_positions(self._vertices) - stepper.vertex_displacements(self._vertices)
            u = stepper.vertex_displacements(self._vertices, followed=False)
        finally:
            stepper.q[:] = kept
        posed_gradients(self._tets, self._inverse, self._volume, rest, self._gradients, self._volumes)
        shares = positive_weights(weights)
        scales = stepper.stiffness_scale
        young = (shares @ cubature.young) * scales[self._owners]
        lam, mu = Material(young, shares @ cubature.poisson, 1.0).lame()
        volumes = self._volumes * (shares @ cubature.weights)[:, None]
        elastic = total_energy(law_code(model.law), self._tets, self._gradients, volumes, lam, mu, u)
        mass = self._mass(weights)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(mass), 1e-300))
        sides = np.sqrt(scales)[model.region_of_mode] * scale * q
        # With a map of the stiffness the linear part is not the tets' but the map's.
        if not cubature.holds_linear:
            elastic -= _linear_energy(self._tets, self._gradients, volumes, lam, mu, u)
        elastic += 0.5 * float(sides @ model.linear_part(pose) @ sides)
        v = scale * stepper.v
        return {"kinetic": 0.5 * float(v @ mass @ v), "elastic": elastic}

    def _mass(self, weights: np.ndarray) -> np.ndarray:
        """(r, r) M̂ at pose weights (m,)."""
        basis = weights if len(self._model.shapes) > 1 else np.ones(1)
        return np.einsum("i,j,ijkl->kl", basis, basis, self._model.moved_mass, optimize=True)


def _linear_energy(
    tets: np.ndarray, gradients: np.ndarray, volumes: np.ndarray, lam: np.ndarray, mu: np.ndarray, u: np.ndarray
) -> float:
    """Joule: ½λ tr(ε)² + μ ε:ε over the tets, ε = sym ∇u."""
    gradient = np.einsum("eai,eaj->eij", u[tets], gradients[:, 0])
    strain = 0.5 * (gradient + np.swapaxes(gradient, 1, 2))
    trace = np.trace(strain, axis1=1, axis2=2)
    return float(volumes[:, 0] @ (0.5 * lam * trace**2 + mu * np.einsum("eij,eij->e", strain, strain)))
