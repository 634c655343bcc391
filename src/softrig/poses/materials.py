"""What the flesh is made of (PSSD Section 8): presets, painted maps carried to tets, values per pose (Eqs. 36, 37)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from softrig.errors import InputError, MaterialError, require_finite
from softrig.fem.embedding import Embedding
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.numerics.rbf import positive_weights
from softrig.numerics.sparse import symmetric_solver

STIFFEST = 100.0
"""How many times stiffer than the preset flesh is where the softness goes to zero (at zero it does not move at all)."""
STILL = 0.01
"""Softness in the body below which a vertex is held like those painted zero."""
_LEAST_SMOOTHING = 1e-9


@dataclass(frozen=True)
class Preset:
    """A kind of flesh in SI units, and what it looks like."""

    young: float
    """Young's modulus, Pa."""
    poisson: float
    """Poisson ratio, dimensionless."""
    density: float
    """kg/m³."""
    damping_ratio: float
    """Of the lowest frequency, 1: no swing at all; a swing falls to exp(−2π ratio) of itself in a period."""
    looks: str
    """One sentence for people."""

    @property
    def material(self) -> Material:
        """The same as an elastic material."""
        return Material(self.young, self.poisson, self.density)


PRESETS = {
    "fat": Preset(8.0e3, 0.46, 930.0, 0.10, "Belly, cheeks, upper arms: slow swings, two or three until it settles."),
    "muscle": Preset(4.0e4, 0.47, 1060.0, 0.15, "Relaxed limbs of an athlete: short quick ripples after a footfall."),
    "firm": Preset(1.5e5, 0.45, 1050.0, 0.20, "Flexed muscle, paws, firm rubber: trembles only at impacts."),
    "jelly": Preset(3.0e3, 0.48, 1000.0, 0.04, "Cartoon blubber, gelatine: wobbles widely and for long."),
}  # fmt: skip
"""Kinds of flesh by name. Real fat has 2 to 10 kPa, relaxed muscle 10 to 60 kPa, tensed muscle 100 kPa and more."""


def preset_called(name: str) -> Preset:
    """The preset called `name`."""
    if name not in PRESETS:
        raise InputError(f"no material preset '{name}'; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def painted_field(
    mesh: VolumeMesh, embedding: Embedding, values: np.ndarray, *, smoothing: float = 1.0, positive: bool = True
) -> np.ndarray:
    """(e,) values of the tets from `values` (n̄,) painted on surface vertices, NaN: not painted (Eq. 37).

    Minimises ½ Σ_{e painted} v_e (x_e − x̄_e)² + ζ/2 xᵀ L x, with v_e the tet's volume over the mean, x̄_e the mean of
    the painted vertices in tet e, L the Laplacian of tets that share a face, weighted by (v_e + v_f) / 2, and ζ =
    `smoothing` (dimensionless: about the square of the width, in tets, over which paint is blurred). Tets
    without paint are filled smoothly. With `positive` x is the logarithm (moduli: a mean of 1 and 100 kPa is 10); else
    the value itself (Poisson ratios). The result never leaves the range of the paint.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(embedding.nodes),):
        raise InputError(f"{len(embedding.nodes)} surface vertices need as many painted values, not {values.shape}")
    if not (np.isfinite(smoothing) and smoothing >= 0.0):
        raise InputError(f"smoothing must not be negative, nor infinite: {smoothing}")
    painted = ~np.isnan(values)
    if not painted.any():
        raise InputError("nothing is painted: every value is NaN")
    require_finite(values[painted], "painted values")
    if positive and (values[painted] <= 0.0).any():
        raise MaterialError("painted values must be positive at vertices", np.flatnonzero(painted & (values <= 0.0)))
    paint = np.log(values[painted]) if positive else values[painted]
    counts, sums = _tet_paint(mesh, embedding, painted, paint)
    field = _filled(mesh, counts, sums, max(smoothing, _LEAST_SMOOTHING))
    # Rounding must not leave the range either: a Poisson ratio painted 0.499 must not become 0.5, and one value
    # painted everywhere must come back to the bit.
    return np.clip(np.exp(field) if positive else field, values[painted].min(), values[painted].max())


def stiffness_from_softness(softness: np.ndarray | float, *, stiffest: float = STIFFEST) -> np.ndarray:
    """Factor on Young's modulus for softness 0 … 1: stiffest^(1 − softness), so 1 is the preset itself.

    At exactly 0 the flesh does not move: `held_by_softness` names those vertices, the factor there is `stiffest`.
    """
    softness = np.asarray(softness, dtype=np.float64)
    wrong = (softness < 0.0) | (softness > 1.0) | ~np.isfinite(softness)
    if wrong.any():
        raise InputError("softness must lie between 0 and 1, at vertices", np.flatnonzero(wrong))
    return np.asarray(stiffest ** (1.0 - softness))


def held_by_softness(mesh: VolumeMesh, embedding: Embedding, softness: np.ndarray) -> np.ndarray:
    """(n,) bool: tet vertices that must not move so that surface vertices of softness 0 (n̄,) follow the rig exactly.

    Those that carry such a vertex, and those inside around which everything is below a softness of 0.01.
    """
    softness = np.asarray(softness, dtype=np.float64)
    stiffness_from_softness(softness)
    held = np.zeros(len(mesh.vertices), dtype=bool)
    zero = softness == 0.0
    if not zero.any():
        return held
    nodes, weights = embedding.nodes[zero], embedding.weights[zero]
    held[nodes[weights != 0.0]] = True
    inside = painted_field(mesh, embedding, softness, smoothing=0.0, positive=False)
    soft = np.zeros(len(mesh.vertices), dtype=bool)
    soft[mesh.elements[inside > STILL]] = True
    return held | ~soft


def painted_material(
    mesh: VolumeMesh,
    embedding: Embedding,
    preset: Preset,
    *,
    young: np.ndarray | float | None = None,
    poisson: np.ndarray | float | None = None,
    softness: np.ndarray | None = None,
    stiffness: np.ndarray | None = None,
    smoothing: float = 1.0,
) -> Material:
    """The material (e,) of one pose.

    `young`, Pa, and `poisson`: one value, one a surface vertex (n̄,; painted, Eq. 37) or one a tet (e,); default: the
    preset's. `softness` (n̄,) 0 … 1 and `stiffness` (n̄,) > 0 multiply Young's modulus (see `stiffness_from_softness`).
    """

    def on_tets(values: np.ndarray | float, positive: bool) -> np.ndarray:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim == 0 or array.shape == (len(mesh.elements),):
            return np.array(np.broadcast_to(array, len(mesh.elements)))
        return painted_field(mesh, embedding, array, smoothing=smoothing, positive=positive)

    moduli = on_tets(preset.young if young is None else young, True)
    if softness is not None:
        moduli *= on_tets(stiffness_from_softness(softness), True)
    if stiffness is not None:
        moduli *= on_tets(stiffness, True)
    return Material(moduli, on_tets(preset.poisson if poisson is None else poisson, False), preset.density)


def material_at(materials: Sequence[Material], weights: np.ndarray) -> Material:
    """The material between poses: E(p) = Σ_i w⁺_i E_i (Eq. 36), ν and ρ alike, with the convex weights w⁺ of w (m,)."""
    convex = positive_weights(np.asarray(weights, dtype=np.float64))
    if convex.shape != (len(materials),):
        raise InputError(f"{len(materials)} materials need as many weights, not {convex.shape}")

    def mixed(name: str) -> np.ndarray:
        parts = [share * np.asarray(getattr(one, name)) for share, one in zip(convex, materials, strict=True)]
        return np.asarray(sum(parts))

    return Material(mixed("young"), mixed("poisson"), mixed("density"))


def tet_laplacian(mesh: VolumeMesh) -> csr_array:
    """(e, e) L: row sums zero, −(v_e + v_f) / 2 between tets that share a face, v volumes over their mean."""
    shares = mesh.volumes / mesh.volumes.mean()
    one, other = _neighbours(mesh.elements)
    links = 0.5 * (shares[one] + shares[other])
    count = len(mesh.elements)
    off = coo_array((np.tile(links, 2), (np.r_[one, other], np.r_[other, one])), shape=(count, count)).tocsr()
    return csr_array(diags_array(np.asarray(off.sum(axis=1)).ravel()) - off)


def _filled(mesh: VolumeMesh, counts: np.ndarray, sums: np.ndarray, smoothing: float) -> np.ndarray:
    """(e,) the solution of (diag(v painted) + ζ L) x = v painted x̄; parts without any paint take the mean."""
    shares = mesh.volumes / mesh.volumes.mean()
    weights = np.where(counts > 0, shares, 0.0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
    laplacian = tet_laplacian(mesh)
    parts = connected_components(laplacian, directed=False)[1]
    empty = np.bincount(parts, weights=weights)[parts] <= 0.0
    overall = weights @ means / weights.sum()
    weights, means = np.where(empty, shares, weights), np.where(empty, overall, means)
    solver = symmetric_solver()
    # By one thread, once the solver is loaded: several give other last bits each time, and what a build kept for other
    # bits is not found again.
    with threadpool_limits(1):
        solver.factorise(csr_array(diags_array(weights) + smoothing * laplacian))
        # Solving for the difference from the mean keeps a constant exactly constant.
        return np.asarray(overall + solver.solve(weights * (means - overall)))


def _tet_paint(
    mesh: VolumeMesh, embedding: Embedding, painted: np.ndarray, paint: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(e,) how many painted vertices each tet carries, and (e,) the sum of their values."""
    owners = carrying_tets(mesh, embedding)[painted]
    count = len(mesh.elements)
    return np.bincount(owners, minlength=count), np.bincount(owners, weights=paint, minlength=count)


def carrying_tets(mesh: VolumeMesh, embedding: Embedding) -> np.ndarray:
    """(n̄,) the tet that carries each point of the embedding."""
    known = getattr(embedding, "tets", None)
    if known is not None:
        return np.asarray(known, dtype=np.int64)
    rows = np.concatenate([np.sort(mesh.elements, axis=1), np.sort(embedding.nodes, axis=1)])
    keys = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    tet_of_key = np.full(keys.max() + 1, -1, dtype=np.int64)
    tet_of_key[keys[: len(mesh.elements)]] = np.arange(len(mesh.elements))
    owners = tet_of_key[keys[len(mesh.elements) :]]
    if (owners < 0).any():
        raise InputError("points that no tet of the mesh carries", np.flatnonzero(owners < 0))
    return owners


def _neighbours(tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of tets that share a face."""
    faces = np.sort(tets[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]].reshape(-1, 3), axis=1)
    order = np.lexsort(faces.T)
    same = np.flatnonzero((faces[order[1:]] == faces[order[:-1]]).all(axis=1))
    return order[same] // 4, order[same + 1] // 4
