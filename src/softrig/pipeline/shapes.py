"""The shapes the flesh may take at each pose: loads, contacts, samples, regions, alignment (PSSD §5.1, §6, §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from softrig.bases.alignment import align, alignment_tree
from softrig.bases.alignment import vertex_rotations as rotations_between
from softrig.bases.compliance import acceleration_forces, compliance
from softrig.bases.contact import constrained_modes, constraint_rows
from softrig.bases.load_modes import (
    bone_mass_metric,
    load_samples,
    paper_mode_count,
    paper_samples,
    rig_loads,
    rig_loads_black_box,
)
from softrig.bases.localised import (
    BoneRegions,
    RegionalBasis,
    basis_of_regions,
    log_size_counts,
    paper_regional_samples,
    regional_basis,
)
from softrig.errors import InputError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody
from softrig.numerics.null_space import null_space
from softrig.pipeline.cache import Arrays, StageCache, content_hash, text_array, text_value
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.parallel import Progress, cached_each
from softrig.pipeline.posing import Posing
from softrig.pipeline.regions import make_regions
from softrig.poses.contact import self_contacts
from softrig.project import Project
from softrig.rig.character import Character

FREQUENCIES = 6
"""So many of the lowest frequencies are kept of each pose."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """Aligned bases of the poses, in the frames' coordinates."""

    shapes: np.ndarray
    """(m_b, n, 3, r) float64 holding float32 values."""
    region_of_mode: np.ndarray
    region_names: tuple[str, ...]
    sigma: np.ndarray
    """(r,)."""
    frequencies: np.ndarray
    """(m, k) hertz."""
    loads: tuple[np.ndarray, ...]
    """Of each pose (n, 3, L), m/s²."""
    notes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class PoseTask:
    """All that one pose's samples follow from; sent to a worker."""

    vertices: np.ndarray
    posed: np.ndarray
    tets: np.ndarray
    fixed: np.ndarray
    law: str
    young: np.ndarray
    poisson: np.ndarray
    density: float
    loads: np.ndarray
    metric: np.ndarray | None
    regions: np.ndarray
    recipe: str
    modes: int
    derivatives: int
    contact: bool

    def body(self) -> FullBody:
        """The full body at rest in this pose, with the mass it has in the neutral one."""
        return posed_body(
            self.vertices, self.posed, self.tets, self.fixed, self.law, self.young, self.poisson, self.density
        )


def posed_body(
    vertices: np.ndarray,
    posed: np.ndarray,
    tets: np.ndarray,
    fixed: np.ndarray,
    law: str,
    young: np.ndarray,
    poisson: np.ndarray,
    density: float,
) -> FullBody:
    """A full body whose rest shape is `posed` and whose mass is that of `vertices` at `density`, lumped."""
    group = np.zeros(len(tets), np.int32)
    mesh = VolumeMesh(np.ascontiguousarray(posed), tets, group, ("body",))
    neutral = VolumeMesh(vertices, tets, group, ("body",))
    flat = mesh.volumes <= 0.0
    if flat.any():
        raise InputError("tets inside out at this pose: choose a milder one, or more tets", np.flatnonzero(flat))
    material = Material(young, poisson, density * neutral.volumes / mesh.volumes)
    return FullBody(mesh, material, law=law, fixed=fixed, mass="lumped")


def make_shapes(
    character: Character,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    project: Project,
    cache: StageCache,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Shapes:
    """Samples at every pose, a basis of each region from them, aligned over the poses."""
    regions = make_regions(character, flesh, posing, project, cache)
    loads = tuple(pose_loads(posing, flesh, i) for i in range(len(posing.positions)))
    tasks = [_task(i, flesh, posing, fabric, project, regions, loads[i]) for i in range(len(loads))]
    keys = [content_hash({name: getattr(task, name) for name in task.__dataclass_fields__}) for task in tasks]
    found = cached_each(cache, "samples", keys, pose_samples, tasks, jobs, progress)
    basis = _regional(found, posing, flesh, fabric, regions, project)
    shapes, angles = _aligned(basis, posing, flesh, fabric)
    shapes = _between_poses(shapes, basis, flesh, project)
    shapes = shapes.astype(np.float32).astype(np.float64)
    notes = [text_value(arrays["notes"]) for arrays in found]
    return Shapes(
        shapes=shapes,
        region_of_mode=basis.region_of_mode,
        region_names=regions.names,
        sigma=basis.sigma,
        frequencies=np.stack([arrays["frequencies"] for arrays in found]),
        loads=loads,
        notes={
            "contacts": [note["contacts"] for note in notes],
            "penetration": [note["penetration"] for note in notes],
            "subspace angles": np.degrees(angles).tolist(),
            "tree": [list(edge) for edge in alignment_tree(posing.table.features)],
            "modes of regions": np.bincount(basis.region_of_mode, minlength=len(regions.names)).tolist(),
            "compliance": text_value(_compliance(tasks, keys, shapes, posing, flesh, cache)["shares"]),
        },
    )


def pose_loads(posing: Posing, flesh: Flesh, index: int) -> np.ndarray:
    """(n, 3, L) accelerations that the rig can cause at a pose, m/s²."""
    p = posing.table.parameters[index]
    free, mass = ~flesh.fixed, flesh.unit_mass
    if posing.bones is not None:
        assert posing.tet_rig.weights is not None
        return rig_loads(
            posing.positions[index],
            posing.tet_rig.weights,
            posing.bones.places(p),
            posing.bones.parents,
            free=free,
            vertex_mass=mass,
        )
    size = float(np.linalg.norm(np.ptp(flesh.mesh.vertices, axis=0)))
    return rig_loads_black_box(
        lambda q: posing.carried_by_surface(q, flesh.mesh.vertices),
        p,
        posing.rig.parameters,
        size,
        free=free,
        vertex_mass=mass,
    )


def _task(
    index: int, flesh: Flesh, posing: Posing, fabric: Fabric, project: Project, regions: BoneRegions, loads: np.ndarray
) -> PoseTask:
    weights = posing.tet_rig.weights
    mass = fabric.density * flesh.unit_mass
    return PoseTask(
        vertices=flesh.mesh.vertices,
        posed=posing.positions[index],
        tets=flesh.mesh.elements,
        fixed=flesh.fixed,
        law=fabric.law,
        young=fabric.young[index],
        poisson=fabric.poisson[index],
        density=fabric.density * flesh.density_factor,
        loads=loads,
        metric=None if weights is None else bone_mass_metric(weights, mass),
        regions=regions.weights,
        recipe=project.basis.recipe,
        modes=project.basis.modes,
        derivatives=project.basis.derivatives,
        contact=project.basis.contact,
    )


def pose_samples(task: PoseTask) -> Arrays:
    """Deformations of one pose (n, 3, k), metres, its lowest frequencies, its contacts; "paper": regions apart."""
    body = task.body()
    rows, kernel, told = _contacts(task, body)
    modes = constrained_modes(body, min(FREQUENCIES, body.size), kernel)
    frequencies = np.sqrt(np.maximum(modes.eigenvalues, 0.0)) / (2.0 * np.pi)
    arrays: Arrays = {"frequencies": frequencies, "notes": text_array(told)}
    if task.recipe == "load":
        samples = load_samples(body, task.loads, derivatives=task.derivatives, null_space=kernel, metric=task.metric)
        arrays["fields"] = body.expand(samples.fields)
    elif task.regions.shape[1] == 1:
        samples = paper_samples(body, paper_mode_count(task.modes), null_space=kernel)
        arrays["fields"] = body.expand(samples.fields)
    else:
        share = paper_mode_count(-(-task.modes // task.regions.shape[1]) + 4)
        for region, samples in enumerate(paper_regional_samples(body, task.regions, share, constraints=rows)):
            arrays[f"fields.{region}"] = body.expand(samples.fields)
    return arrays


def _contacts(task: PoseTask, body: FullBody) -> tuple[csr_array | None, csr_array | None, dict[str, float]]:
    """Constraint rows and their null space at a pose that touches itself (PSSD §6)."""
    nothing: dict[str, float] = {"contacts": 0, "penetration": 0.0}
    if not task.contact:
        return None, None, nothing
    contacts = self_contacts(body.mesh, task.posed, task.vertices)
    moving = ~task.fixed[contacts.vertices]
    if not moving.any():
        return None, None, nothing
    rows = constraint_rows(contacts, body.free)
    return rows, null_space(rows), {"contacts": int(moving.sum()), "penetration": contacts.deepest}


def _regional(
    found: list[Arrays], posing: Posing, flesh: Flesh, fabric: Fabric, regions: BoneRegions, project: Project
) -> RegionalBasis:
    mass, size = fabric.density * flesh.unit_mass, project.basis.modes
    minimum = max(1, min(4, size // (2 * len(regions.names))))
    turned = [_unturned(arrays, posing, flesh, i) for i, arrays in enumerate(found)]
    weights = posing.tet_rig.weights
    if "fields" in found[0]:
        metric = None if weights is None or project.basis.recipe == "paper" else bone_mass_metric(weights, mass)
        samples = [fields["fields"] for fields in turned]
        return regional_basis(samples, regions.weights, mass, size, minimum=minimum, metric=metric)
    apart = [[fields[f"fields.{region}"] for region in range(len(regions.names))] for fields in turned]
    return basis_of_regions(apart, mass, size, counts=log_size_counts(regions.weights, size, minimum=minimum))


def _unturned(arrays: Arrays, posing: Posing, flesh: Flesh, index: int) -> Arrays:
    """Sample fields in the frames' coordinates: R_vᵀ u."""
    p = posing.table.parameters[index]
    rotations = posing.vertex_rotations(p, flesh.mesh.vertices, flesh.unit_mass)
    return {
        name: np.einsum("nji,njk->nik", rotations, fields, optimize=True)
        for name, fields in arrays.items()
        if name.startswith("fields")
    }


def _aligned(basis: RegionalBasis, posing: Posing, flesh: Flesh, fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Bases turned to match over the tree of poses; in the world also un-rotated by the local rotations (Eq. 13)."""
    tree = alignment_tree(posing.table.features)
    rotations = None
    if not posing.bind:
        # Positions in the root's frame: the root's own turn is taken out of the shapes already.
        turned = [
            places @ posing.frames(p, flesh.mesh.vertices, flesh.unit_mass)[0]
            for places, p in zip(posing.positions, posing.table.parameters, strict=True)
        ]
        rotations = [rotations_between(turned[i], turned[j], flesh.mesh.elements) for i, j in tree]
    mass = fabric.density * flesh.unit_mass
    return align(np.stack(basis.shapes), mass, basis.region_of_mode, tree, rotations)


def _between_poses(shapes: np.ndarray, basis: RegionalBasis, flesh: Flesh, project: Project) -> np.ndarray:
    """(m or 1, n, 3, r): all bases, the neutral one, or the principal components of all."""
    wanted = project.basis.between_poses
    if wanted == "interpolated" or len(shapes) == 1:
        return shapes
    if wanted == "neutral":
        return shapes[:1]
    regions = int(basis.region_of_mode.max()) + 1
    stacked = np.concatenate(list(shapes), axis=2)
    owner = np.tile(basis.region_of_mode, len(shapes))
    weight = np.tile(basis.sigma, len(shapes))
    samples = [[(stacked * weight)[:, :, owner == region] for region in range(regions)]]
    counts = np.bincount(basis.region_of_mode, minlength=regions).tolist()
    pooled = basis_of_regions(samples, flesh.unit_mass, len(basis.region_of_mode), counts=counts)
    return np.stack(pooled.shapes)


def _compliance(
    tasks: list[PoseTask], keys: list[str], shapes: np.ndarray, posing: Posing, flesh: Flesh, cache: StageCache
) -> Arrays:
    """Of each pose, how much of the full body's yielding to the rig's loads the basis has: worst and mean."""

    def make() -> Arrays:
        worst, mean = [], []
        for i, task in enumerate(tasks):
            body = task.body()
            turns = posing.vertex_rotations(posing.table.parameters[i], flesh.mesh.vertices, flesh.unit_mass)
            own = shapes[i if len(shapes) > 1 else 0]
            basis = body.restrict(np.einsum("nij,njk->nik", turns, own, optimize=True))
            kernel = _contacts(task, body)[1]
            shares = compliance(body, basis, acceleration_forces(body, task.loads), null_space=kernel)
            worst.append(float(shares.min()))
            mean.append(float(shares.mean()))
        return {"shares": text_array({"worst": worst, "mean": mean})}

    return cache.get("compliance", content_hash(keys, shapes), make)
