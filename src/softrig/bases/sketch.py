"""A basis from sketched pulls (StVK05 §5.2): pull a linear model, keep the forces, solve them for real.

pad = SketchPad(body)
shape = pad.pull(vertices, forces)        # linear answer, at once; the pull is recorded
basis = sketched_basis(body, pad.pulls, size=15)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softrig.bases.snapshots import Basis, mass_distance_selection
from softrig.dynamics import static_equilibrium
from softrig.errors import ModeCountError, SolverError, notice, require_indices, require_vectors
from softrig.fem.loads import point_force
from softrig.models.full import FullBody
from softrig.numerics.pca import mass_pca
from softrig.numerics.sparse import symmetric_solver


@dataclass(frozen=True)
class Pull:
    """Forces somebody applied at one moment."""

    vertices: np.ndarray
    """(k,) of the volume mesh."""
    forces: np.ndarray
    """(k, 3) newton."""

    def field(self, vertices: int) -> np.ndarray:
        """(vertices, 3) the forces on the whole mesh."""
        return point_force(vertices, self.vertices, self.forces)


class SketchPad:
    """The linear static model K u = f of a body, which answers at once and records every pull."""

    def __init__(self, body: FullBody) -> None:
        body.require_anchored()
        self.body = body
        self.pulls: list[Pull] = []
        self._solver = symmetric_solver(body.solver_name)
        self._solver.factorise(body.rest_stiffness)

    def pull(self, vertices: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Record forces (k, 3), newton, at k vertices; (n, 3) the linear model's displacements, metres."""
        count = len(self.body.mesh.vertices)
        vertices = require_indices(vertices, count, "vertices")
        pull = Pull(vertices, require_vectors(forces, len(vertices), "forces"))
        self.pulls.append(pull)
        return self.body.expand(self._solver.solve(self.body.restrict(pull.field(count))))


def separated_pulls(body: FullBody, pulls: Sequence[Pull], separation: float) -> list[Pull]:
    """The pulls whose force differs from the last one kept by at least `separation` newton."""
    count = len(body.mesh.vertices)
    kept: list[Pull] = []
    last = np.zeros((count, 3))
    for pull in pulls:
        field = pull.field(count)
        if np.linalg.norm(field - last) >= separation:
            kept.append(pull)
            last = field
    return kept


def sketched_shapes(
    body: FullBody,
    pulls: Sequence[Pull],
    *,
    load_steps: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """(3·free, m) the static shapes of the full nonlinear body under each pull.

    Consecutive pulls are usually alike, so each solve starts from the last shape, and from rest with
    `load_steps` load steps where that fails. A pull that has no equilibrium is left out with a notice.
    """
    count = len(body.mesh.vertices)
    shapes: list[np.ndarray] = []
    failed: list[int] = []
    last = np.zeros(body.size)
    for index, pull in enumerate(pulls):
        force = body.restrict(pull.field(count))
        try:
            last = _static_shape(body, force, last, load_steps)
            shapes.append(last)
        except SolverError:
            failed.append(index)
        if progress:
            progress(index + 1, len(pulls))
    if failed:
        notice("pulls without a static equilibrium were left out", failed)
    return np.array(shapes).reshape(len(shapes), body.size).T


def _static_shape(body: FullBody, force: np.ndarray, start: np.ndarray, load_steps: int) -> np.ndarray:
    try:
        return static_equilibrium(body, force, start=start, iterations=30, tolerance=1e-6)
    except SolverError:
        return static_equilibrium(body, force, load_steps=load_steps, tolerance=1e-6)


def sketched_samples(
    body: FullBody,
    pulls: Sequence[Pull],
    *,
    force_separation: float = 0.0,
    shape_separation: float = 0.02,
    load_steps: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """(3·free, m) static shapes to make a basis of: the pulls thinned, solved, and the shapes thinned.

    `force_separation` in newton between consecutive pulls; `shape_separation` relative to the largest
    shape's mass-norm. `progress(done, total)` counts static solves.
    """
    if not pulls:
        raise ModeCountError("no pulls were recorded: there is nothing to make a basis of")
    chosen = separated_pulls(body, pulls, force_separation)
    shapes = sketched_shapes(body, chosen, load_steps=load_steps, progress=progress)
    norms = np.sqrt(np.einsum("ik,ik->k", shapes, body.mass @ shapes))
    return shapes[:, mass_distance_selection(body, shapes, shape_separation * norms.max(initial=0.0))]


def sketched_basis(
    body: FullBody,
    pulls: Sequence[Pull],
    size: int,
    *,
    force_separation: float = 0.0,
    shape_separation: float = 0.02,
    load_steps: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Basis:
    """The whole recipe: `sketched_samples` and their mass-PCA to `size` vectors."""
    samples = sketched_samples(
        body,
        pulls,
        force_separation=force_separation,
        shape_separation=shape_separation,
        load_steps=load_steps,
        progress=progress,
    )
    return Basis(*mass_pca(samples, body.mass, size))
