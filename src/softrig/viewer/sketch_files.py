"""A plain body and the pulls somebody sketched on it, in a file for another process; and what comes of them there."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softrig.bases.sketch import Pull, sketched_samples
from softrig.bases.snapshots import Basis
from softrig.errors import InputError, ModeCountError
from softrig.fem.embedding import Embedding
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.forces.polynomial import reduce_body
from softrig.io.npy import read_npz, write_npz
from softrig.models.full import FullBody
from softrig.models.reduced import ReducedBody
from softrig.numerics.pca import mass_pca

Stage = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Everything a new basis follows from."""

    body: FullBody
    pulls: list[Pull] = field(repr=False)
    surface: Embedding | None = None
    triangles: np.ndarray | None = None
    colours: np.ndarray | None = None
    notes: dict[str, str] = field(default_factory=dict)


def write_sketch(path: Path, body: FullBody, model: ReducedBody, pulls: list[Pull]) -> None:
    """Write a body, the surface that its present model is drawn with, and the pulls."""
    mesh, material = body.mesh, body.material
    elements = len(mesh.elements)
    names = {"groups": mesh.group_names, "law": body.law, "mass": body.mass_kind, "solver": body.solver_name}
    arrays = {
        "document": np.frombuffer(json.dumps({**names, "notes": model.notes}).encode(), np.uint8),
        "vertices": mesh.vertices,
        "elements": mesh.elements,
        "groups": mesh.groups,
        "fixed": body.fixed,
        **{
            name: np.array(np.broadcast_to(np.asarray(getattr(material, name), np.float64), elements))
            for name in ("young", "poisson", "density")
        },
        "pull_starts": np.cumsum([0, *(len(pull.vertices) for pull in pulls)]),
        "pull_vertices": np.concatenate([np.zeros(0, np.int64), *(pull.vertices for pull in pulls)]),
        "pull_forces": np.concatenate([np.zeros((0, 3)), *(pull.forces for pull in pulls)]),
    }
    if model.surface is not None:
        arrays |= {"surface_nodes": model.surface.nodes, "surface_weights": model.surface.weights}
        arrays["surface_triangles"] = model.surface_triangles
    if model.surface_colours is not None:
        arrays["surface_colours"] = model.surface_colours
    write_npz(path, arrays)


def read_sketch(path: Path) -> Sketch:
    """What `write_sketch` wrote."""
    arrays = read_npz(path)
    try:
        names = json.loads(arrays["document"].tobytes())
        mesh = VolumeMesh(arrays["vertices"], arrays["elements"], arrays["groups"], tuple(names["groups"]))
        material = Material(arrays["young"], arrays["poisson"], arrays["density"])
        body = FullBody(
            mesh, material, law=names["law"], fixed=arrays["fixed"], mass=names["mass"], solver=names["solver"]
        )
        cuts = arrays["pull_starts"][1:-1]
        vertices, forces = np.split(arrays["pull_vertices"], cuts), np.split(arrays["pull_forces"], cuts)
        surface = None
        if "surface_nodes" in arrays:
            surface = Embedding(arrays["surface_nodes"], arrays["surface_weights"])
        notes = {str(key): str(value) for key, value in names["notes"].items()}
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: not a sketch ({error})") from error
    pulls = [Pull(where, force) for where, force in zip(vertices, forces, strict=True)]
    return Sketch(body, pulls, surface, arrays.get("surface_triangles"), arrays.get("surface_colours"), notes)


def solve_sketch(sketch: Sketch, size: int, stage: Stage) -> tuple[ReducedBody, dict[str, Any]]:
    """The body reduced to at most `size` shapes of its pulls (StVK05 §5.2), and what to tell about it."""
    body = sketch.body
    with stage("Solving the pulls") as update:
        samples = sketched_samples(body, sketch.pulls, progress=update)
        basis = _largest_basis(samples, body, size)
    with stage("Reducing forces") as update:
        model = reduce_body(
            body,
            basis,
            surface=sketch.surface,
            surface_triangles=sketch.triangles if sketch.surface is not None else None,
            surface_colours=sketch.colours,
            notes={**sketch.notes, "basis": f"{len(sketch.pulls)} sketched pulls"},
            progress=update,
        )
    return model, {"modes": model.size, "shapes": samples.shape[1], "pulls": len(sketch.pulls)}


def _largest_basis(samples: np.ndarray, body: FullBody, size: int) -> Basis:
    """Of `size` vectors, or of as many as the samples span."""
    if samples.shape[1] == 0:
        raise ModeCountError("none of the pulls has a shape to make a basis of: pull harder")
    for count in range(min(size, samples.shape[1]), 1, -1):
        try:
            return Basis(*mass_pca(samples, body.mass, count))
        except ModeCountError:
            continue
    return Basis(*mass_pca(samples, body.mass, 1))
