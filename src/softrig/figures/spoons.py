"""A soft spoon held at its handle: the body of StVK05's Figures 6, 7, 9 and 12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softrig.bases.modes import linear_modes
from softrig.bases.sketch import SketchPad
from softrig.bodies import Soup, spoon
from softrig.dynamics import static_equilibrium
from softrig.fem.material import Material
from softrig.figures.look import STEEL
from softrig.forces.polynomial import reduce_body
from softrig.meshing.voxels import Voxelisation
from softrig.models.full import FullBody
from softrig.render import Mesh

RUBBER = Material(young=3e6, poisson=0.3, density=1000.0)
RESOLUTION = 64
UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class SoftSpoon:
    """The drawn triangles, the bricks they hang on, and the body."""

    soup: Soup
    voxels: Voxelisation
    body: FullBody

    def drawn(self, u: np.ndarray, colours: object = STEEL, *, gloss: float = 0.5) -> Mesh:
        """The skin where displacements (n, 3) of the bricks carry it; one colour, or (n, 3) of the bricks' vertices."""
        paint = np.asarray(colours, dtype=np.float64)
        if paint.ndim == 2:
            paint = np.clip(self.voxels.embedding.carry(paint), 0.0, 1.0)
        return Mesh(
            self.places(u), self.soup.triangles, paint if paint.ndim == 2 else tuple(paint.tolist()), gloss=gloss
        )

    def places(self, u: np.ndarray) -> np.ndarray:
        """(m, 3) metres: drawn vertices under displacements (n, 3) of the bricks."""
        return self.voxels.embedding.carry(self.body.mesh.vertices + u)

    @property
    def tip(self) -> np.ndarray:
        """Vertices of the bowl's end."""
        along = self.body.mesh.vertices[:, 0]
        return np.flatnonzero(along > along.max() - 1e-9)

    def pull(self, vertices: np.ndarray, force: Sequence[float] | np.ndarray) -> np.ndarray:
        """(n, 3) newton: `force` (3,) shared by `vertices`."""
        field = np.zeros_like(self.body.mesh.vertices)
        field[vertices] = np.asarray(force) / len(vertices)
        return field


def soft_spoon(resolution: int = RESOLUTION) -> SoftSpoon:
    """A rubber spoon in bricks, held at the end of its handle."""
    soup = spoon()
    voxels = soup.voxelised(resolution)
    return SoftSpoon(soup, voxels, FullBody(voxels.mesh, RUBBER, fixed=soup.fixed_vertices(voxels.mesh.vertices)))


def full_answer(body: FullBody, load: np.ndarray, *, load_steps: int = 6) -> np.ndarray:
    """(n, 3) metres: static shape of the full body under forces (n, 3), newton."""
    force = body.restrict(load)
    return body.expand(static_equilibrium(body, force, load_steps=load_steps, tolerance=1e-6))


def reduced_answer(body: FullBody, basis: np.ndarray, load: np.ndarray, *, load_steps: int = 6) -> np.ndarray:
    """(n, 3) metres: the same of the body held to a basis (3·free, r)."""
    reduced = reduce_body(body, basis)
    q = static_equilibrium(reduced, basis.T @ body.restrict(load), load_steps=load_steps, tolerance=1e-8)
    return body.expand(basis @ q)


def difference(u: np.ndarray, truth: np.ndarray) -> float:
    """‖u − u_full‖ / ‖u_full‖."""
    return float(np.linalg.norm(u - truth) / np.linalg.norm(truth))


def sketched_pulls(spoon_: SoftSpoon, hardest: float) -> SketchPad:
    """Pulls a user might draw: the bowl's end and the middle of the handle, up, down and a little sideways."""
    body = spoon_.body
    along = body.mesh.vertices[:, 0]
    middle = np.flatnonzero(np.abs(along - along.mean()) < 0.02 * np.ptp(along))
    pad = SketchPad(body)
    for place, force in ((spoon_.tip, hardest), (middle, 5.0 * hardest)):
        for sign in (1.0, -1.0):
            for strength in (0.25, 0.5, 0.75, 1.0):
                for side in (-0.25, 0.1):
                    pad.pull(place, sign * strength * force / len(place) * np.array([0.0, side, 1.0]))
    return pad


def bending_force(body: FullBody, tip: np.ndarray, reach: float) -> float:
    """Newton: the pull upwards at the tip under which the linear model moves it by `reach` metres."""
    modes = linear_modes(body, 8)
    load = np.zeros_like(body.mesh.vertices)
    load[tip, 2] = 1.0 / len(tip)
    share = modes.shapes.T @ body.restrict(load)
    return float(reach / (share @ (share / modes.eigenvalues)))
