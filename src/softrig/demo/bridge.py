"""The footbridge as a full body and as a reduced model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softrig.bases.derivatives import derivative_samples, modal_derivatives
from softrig.bases.modes import LinearModes, linear_modes
from softrig.bases.sketch import SketchPad
from softrig.bases.snapshots import snapshot_basis
from softrig.bodies import Soup, footbridge
from softrig.console import Stages
from softrig.fem.material import Material
from softrig.forces.polynomial import reduce_body
from softrig.meshing.voxels import Voxelisation
from softrig.models.full import FullBody
from softrig.models.reduced import ReducedBody

SOFT_WOOD = Material(young=1.5e7, poisson=0.3, density=700.0)
"""Some 600 times softer than timber, so that a picture shows what the bridge does."""

MODES = 8
"""Linear modes whose derivatives go into the basis."""

PULL_PLACES = np.linspace(-8.0, 8.0, 11)
"""Where along the deck the basis learns what a load does, metres from the middle."""

PULL = 1e5
"""newton."""


@dataclass(frozen=True)
class Bridge:
    """Everything the demo makes of the bridge."""

    soup: Soup
    voxels: Voxelisation
    body: FullBody
    modes: LinearModes
    model: ReducedBody


def build_bridge(stages: Stages, size: int) -> Bridge:
    """Triangles → bricks → modes, derivatives and pulls → a basis of `size` vectors → polynomials."""
    with stages.stage("Cutting the bridge into bricks"):
        soup = footbridge()
        voxels = soup.voxelised()
        fixed = soup.fixed_vertices(voxels.mesh.vertices)
        body = FullBody(voxels.mesh, SOFT_WOOD, fixed=fixed)
    with stages.stage("Linear modes"):
        modes = linear_modes(body, MODES)
    with stages.stage("Modal derivatives") as update:
        derivatives = modal_derivatives(body, modes, progress=update)
        samples = derivative_samples(body, modes, derivatives, amplitude=0.5)
    with stages.stage("Pulls along the deck") as update:
        pad = SketchPad(body)
        shapes = []
        for done, place in enumerate(PULL_PLACES, start=1):
            force = deck_load(soup, voxels, place, 0.0)
            shapes.append(pad.pull(np.arange(len(force)), PULL * force))
            update(done, len(PULL_PLACES))
    with stages.stage("Basis and force polynomials") as update:
        displacements = np.concatenate([np.moveaxis(body.expand(samples), 2, 0), np.array(shapes)])
        basis = snapshot_basis(body, displacements, size)
        model = reduce_body(
            body,
            basis.shapes,
            surface=voxels.embedding,
            surface_triangles=soup.triangles,
            surface_colours=soup.colours,
            notes={"made by": "softrig demo"},
            progress=update,
        )
    return Bridge(soup, voxels, body, modes, model)


def deck_patch(soup: Soup, along: float, across: float, half: float = 0.6) -> np.ndarray:
    """Drawn vertices of the deck's top within a square of half width `half` about a place, metres."""
    x, y, z = soup.vertices.T
    # Rails and cables stand at the sides; within the square the planks are the highest thing there is.
    near = (np.abs(x - along) < half) & (np.abs(y - across) < half)
    return np.nonzero(near & (z > z[near].max() - 0.12))[0]


def deck_load(soup: Soup, voxels: Voxelisation, along: float, across: float) -> np.ndarray:
    """(n, 3) one newton downwards, spread evenly over a patch of the deck, on the bricks' vertices."""
    patch = deck_patch(soup, along, across)
    forces = np.zeros_like(soup.vertices)
    forces[patch, 2] = -1.0 / len(patch)
    return voxels.embedding.spread(forces, len(voxels.mesh.vertices))
