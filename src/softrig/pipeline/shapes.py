"""The shapes the flesh may take at each pose: loads, contacts, samples, regions, alignment (PSSD §5.1, §6, §7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    paper_recipe,
    rig_loads,
    rig_loads_black_box,
)
from softrig.bases.localised import (
    BoneRegions,
    RegionalBasis,
    basis_of_regions,
    completed_basis,
    leading_fields,
    log_size_counts,
    regional_basis,
)
from softrig.bases.paper_modes import paper_region_weights, paper_regional_recipe
from softrig.errors import InputError, ModeCountError
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.models.full import FullBody
from softrig.models.kernels.pose_space_layout import in_fixed_point
from softrig.models.pose_space import WHOLE_BODY
from softrig.numerics.null_space import null_space
from softrig.pipeline.cache import Arrays, StageCache, content_hash, text_array, text_value
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.parallel import Progress, cached_each, part_of
from softrig.pipeline.posing import Posing
from softrig.pipeline.regions import make_regions
from softrig.pipeline.rehearsal import rehearse
from softrig.pipeline.unreduced import unreduced_model
from softrig.poses.contact import self_contacts
from softrig.poses.materials import PRESETS
from softrig.project import Project
from softrig.rig.character import Character
from softrig.simulation.damping import Damping

FREQUENCIES = 6
"""So many of the lowest frequencies are kept of each pose."""
REHEARSED = 0.2
"""Share of the modes that come from a rehearsal. More follow the clips still closer, but reach everywhere and cost
time, and leave fewer for what was not rehearsed."""
INDEPENDENT = 1e-6
"""Of the largest eigenvalue of VᵀMV: below it a mode does nothing that others do not."""
FEW, FEW_REHEARSED = 6, 0.35
"""Of few modes so many are rehearsed, or that share: the first ones are worth most."""


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
    contacts: tuple[csr_array, ...]
    """Of each pose (c, 3·free): what the contacts hold still."""
    partition: np.ndarray
    """(n, g) how much each region has of each vertex; the whole body is none of them."""
    lived: tuple[np.ndarray, ...]
    """Of each part that was rehearsed (n, 3, k): what the full body did."""
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
    contact: str
    """"none", "sliding" or "fixed"."""

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
    found = cached_each(cache, "samples", keys, pose_samples, tasks, jobs, part_of(progress, 0, 2))
    frequencies = np.stack([arrays["frequencies"] for arrays in found])
    lived = _rehearsed(character, flesh, posing, fabric, frequencies, project, cache, jobs, part_of(progress, 1, 2))
    names = regions.names if not lived or len(regions.names) == 1 else (*regions.names, WHOLE_BODY)
    made = _basis(found, keys, lived, posing, flesh, fabric, regions, project, cache)
    shapes, region_of_mode = made["shapes"].astype(np.float64), made["region_of_mode"]
    require_independent(shapes, fabric.density * flesh.unit_mass)
    notes = [text_value(arrays["notes"]) for arrays in found]
    return Shapes(
        shapes=shapes,
        region_of_mode=region_of_mode,
        region_names=names,
        sigma=made["sigma"],
        frequencies=frequencies,
        loads=loads,
        contacts=tuple(_contact_rows(arrays, flesh) for arrays in found),
        partition=regions.weights,
        lived=tuple(lived),
        notes={
            "contacts": [note["contacts"] for note in notes],
            "contact vertices": [note.get("vertices", []) for note in notes],
            "penetration": [note["penetration"] for note in notes],
            "subspace angles": np.degrees(made["angles"]).tolist(),
            "rehearsed shapes": [fields.shape[2] for fields in lived],
            "tree": [list(edge) for edge in alignment_tree(posing.table.features)],
            "modes of regions": np.bincount(region_of_mode, minlength=len(names)).tolist(),
            "compliance": text_value(_compliance(tasks, keys, shapes, posing, flesh, cache)["shares"]),
        },
    )


def require_independent(shapes: np.ndarray, vertex_mass: np.ndarray) -> None:
    """A `ModeCountError` where some of the shapes (m_b, n, 3, r) of a pose are sums of others, and how many are not.

    Regions share their borders: where they have nearly as many modes as vertices can move, those of one do what those
    of another do.
    """
    flat = (shapes * np.sqrt(vertex_mass)[:, None, None]).reshape(len(shapes), -1, shapes.shape[3])
    values = np.linalg.eigvalsh(flat.transpose(0, 2, 1) @ flat)
    independent = int((values > INDEPENDENT * values[:, -1:]).sum(axis=1).min())
    if independent < shapes.shape[3]:
        raise ModeCountError(
            f"{shapes.shape[3]} modes of which {independent} are independent of each other", most=independent
        )


def pose_loads(posing: Posing, flesh: Flesh, index: int) -> np.ndarray:
    """(n, 3, L) accelerations that the rig can cause at one of the poses, m/s²."""
    return rig_causes(posing, flesh, posing.table.parameters[index], posing.positions[index])


def rig_causes(posing: Posing, flesh: Flesh, p: np.ndarray, posed: np.ndarray) -> np.ndarray:
    """The same at any parameters p (P,), where the vertices are `posed` (n, 3)."""
    free, mass = ~flesh.fixed, flesh.unit_mass
    if posing.bones is not None:
        assert posing.tet_rig.weights is not None
        return rig_loads(
            posed,
            posing.tet_rig.weights,
            posing.bones.places(p),
            posing.bones.parents,
            free=free,
            vertex_mass=mass,
        )
    size = float(np.linalg.norm(np.ptp(flesh.mesh.vertices, axis=0)))
    return rig_loads_black_box(
        lambda q: posing.carried_by_black_box(q, flesh.mesh.vertices),
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
        contact=project.basis.contact_kind,
    )


def pose_samples(task: PoseTask) -> Arrays:
    """Deformations of one pose (n, 3, k), metres, its lowest frequencies, its contacts; "paper": regions apart."""
    body = task.body()
    rows, kernel, told = _contacts(task, body)
    modes = constrained_modes(body, min(FREQUENCIES, body.size), kernel)
    frequencies = np.sqrt(np.maximum(modes.eigenvalues, 0.0)) / (2.0 * np.pi)
    arrays: Arrays = {"frequencies": frequencies, "notes": text_array(told)}
    if rows is not None:
        held = csr_array(rows)
        arrays |= {"contact.values": held.data, "contact.columns": held.indices, "contact.starts": held.indptr}
    if task.recipe == "load":
        samples = load_samples(body, task.loads, derivatives=task.derivatives, null_space=kernel, metric=task.metric)
        arrays["fields"] = body.expand(samples.fields)
    elif task.regions.shape[1] == 1:
        arrays["fields"] = body.expand(paper_recipe(body, task.modes, null_space=kernel).fields)
    else:
        regional = paper_regional_recipe(body, task.regions, task.modes, constraints=rows)
        for region, samples in enumerate(regional):
            arrays[f"fields.{region}"] = body.expand(samples.fields)
    return arrays


def _contacts(task: PoseTask, body: FullBody) -> tuple[csr_array | None, csr_array | None, dict[str, Any]]:
    """Constraint rows and their null space at a pose that touches itself (PSSD §6)."""
    nothing: dict[str, Any] = {"contacts": 0, "penetration": 0.0, "vertices": []}
    if task.contact == "none":
        return None, None, nothing
    # Deeper than −∞ is every contact: all are held in all directions.
    fixed_beyond = -np.inf if task.contact == "fixed" else None
    contacts = self_contacts(body.mesh, task.posed, task.vertices, fixed_beyond=fixed_beyond)
    moving = ~task.fixed[contacts.vertices]
    if not moving.any():
        return None, None, nothing
    rows = constraint_rows(contacts, body.free)
    found = contacts.vertices[moving]
    told = {"contacts": len(found), "penetration": contacts.deepest, "vertices": found.tolist()}
    return rows, null_space(rows), told


def _contact_rows(arrays: Arrays, flesh: Flesh) -> csr_array:
    """(c, 3·free) what the contacts of a pose hold still; no rows where nothing touches."""
    width = 3 * int((~flesh.fixed).sum())
    if "contact.values" not in arrays:
        return csr_array((0, width))
    parts = arrays["contact.values"], arrays["contact.columns"], arrays["contact.starts"]
    return csr_array(parts, shape=(len(parts[2]) - 1, width))


def _rehearsed(
    character: Character,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    frequencies: np.ndarray,
    project: Project,
    cache: StageCache,
    jobs: int,
    progress: Progress | None,
) -> list[np.ndarray]:
    """Shapes (n, 3, k) that the full body takes in the clips, by part; none without clips or where none are wanted."""
    seconds = project.basis.rehearsal
    if project.basis.recipe == "paper" or seconds == 0.0 or not character.clips or not posing.bind:
        return []
    model = replace(unreduced_model(character, flesh, posing, fabric), frequencies=frequencies)
    # The material's own, not the project's: how a motion dies down is tried often, and needs no other shapes.
    damping = Damping(PRESETS[project.material.preset].damping_ratio).rayleigh(model)
    return rehearse(model, fabric, damping, seconds, cache, jobs=jobs, progress=progress)


def _basis(
    found: list[Arrays],
    keys: list[str],
    lived: list[np.ndarray],
    posing: Posing,
    flesh: Flesh,
    fabric: Fabric,
    regions: BoneRegions,
    project: Project,
    cache: StageCache,
) -> Arrays:
    """Aligned shapes, their regions, σ and the angles between poses, from the samples `found` with those `keys`."""
    rotations = [posing.vertex_rotations(p, flesh.mesh.vertices, flesh.unit_mass) for p in posing.table.parameters]

    def make() -> Arrays:
        turned = [_unturned(arrays, turns) for arrays, turns in zip(found, rotations, strict=True)]
        basis = _regional(turned, lived, posing, flesh, fabric, regions, project)
        shapes, angles = _aligned(basis, posing, flesh, fabric)
        if len(shapes) == 1 < len(turned) and "fields" in turned[0]:
            angles = _angles_apart(turned, posing, flesh, fabric, regions, project)
        return {
            "shapes": in_fixed_point(shapes).astype(np.float32),
            "region_of_mode": basis.region_of_mode,
            "sigma": basis.sigma,
            "angles": angles,
        }

    key = content_hash(
        keys, lived, rotations, posing.table.features, posing.positions, posing.bind, flesh.unit_mass, fabric.density,
        project.fingerprint("basis"), ["fixed point", REHEARSED, FEW, FEW_REHEARSED],
    )  # fmt: skip
    return cache.get("basis", key, make)


def _regional(
    turned: list[Arrays],
    lived: list[np.ndarray],
    posing: Posing,
    flesh: Flesh,
    fabric: Fabric,
    regions: BoneRegions,
    project: Project,
) -> RegionalBasis:
    """The bases: a share of the modes from what was rehearsed, if anything was, the others from the poses' samples."""
    mass, size = fabric.density * flesh.unit_mass, project.basis.modes
    minimum = _least_modes(regions, size)
    between = project.basis.between_poses or ("pooled" if posing.bind else "interpolated")
    if between == "neutral":
        turned = turned[:1]
    if "fields" not in turned[0]:
        apart = [[fields[f"fields.{region}"] for region in range(len(regions.names))] for fields in turned]
        counts = log_size_counts(paper_region_weights(regions.weights), size, minimum=minimum)
        if between == "pooled":
            apart = [[np.concatenate(fields, axis=2) for fields in zip(*apart, strict=True)]]
        return basis_of_regions(apart, mass, size, counts=counts)
    metric = _metric(posing, mass, project)
    samples = [fields["fields"] for fields in turned]
    if between == "pooled":
        measure = mass if metric is None else mass * metric
        samples = [np.concatenate([leading_fields(fields, measure, 2 * size) for fields in samples], axis=2)]
    if not lived:
        return regional_basis(samples, regions.weights, mass, size, minimum=minimum, metric=metric)
    shapes = np.concatenate(lived, axis=2)
    return completed_basis(
        shapes, rehearsed_modes(size), samples, regions.weights, mass, size, minimum=min(minimum, 2), metric=metric
    )


def _least_modes(regions: BoneRegions, size: int) -> int:
    return max(1, min(4, size // (2 * len(regions.names))))


def _metric(posing: Posing, mass: np.ndarray, project: Project) -> np.ndarray | None:
    weights = posing.tet_rig.weights
    return None if weights is None or project.basis.recipe == "paper" else bone_mass_metric(weights, mass)


def _angles_apart(
    turned: list[Arrays], posing: Posing, flesh: Flesh, fabric: Fabric, regions: BoneRegions, project: Project
) -> np.ndarray:
    """(edges, r) radians between the bases that the poses would have of their own, along the tree of poses.

    Where they are wide, shapes found at one pose say little about the other, whether bases are mixed or pooled.
    """
    mass, size = fabric.density * flesh.unit_mass, project.basis.modes
    samples = [fields["fields"] for fields in turned]
    own = regional_basis(
        samples,
        regions.weights,
        mass,
        size,
        minimum=_least_modes(regions, size),
        metric=_metric(posing, mass, project),
    )
    return _aligned(own, posing, flesh, fabric)[1]


def rehearsed_modes(size: int) -> int:
    """How many of `size` modes come from a rehearsal."""
    return max(round(REHEARSED * size), min(FEW, round(FEW_REHEARSED * size)))


def _unturned(arrays: Arrays, rotations: np.ndarray) -> Arrays:
    """Sample fields in the frames' coordinates, R_vᵀ u, with R_v (n, 3, 3)."""
    return {
        name: np.einsum("nji,njk->nik", rotations, fields, optimize=True)
        for name, fields in arrays.items()
        if name.startswith("fields")
    }


def _aligned(basis: RegionalBasis, posing: Posing, flesh: Flesh, fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Bases turned to match over the tree of poses; in the world also un-rotated by the local rotations (Eq. 13).

    One basis for all poses needs no alignment.
    """
    if len(basis.shapes) == 1:
        return np.stack(basis.shapes), np.zeros((0, 0))
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
            # One basis for all poses does not keep contacts, so it is measured against the body without them.
            kernel = _contacts(task, body)[1] if len(shapes) > 1 else None
            shares = compliance(body, basis, acceleration_forces(body, task.loads), null_space=kernel)
            worst.append(float(shares.min()))
            mean.append(float(shares.mean()))
        return {"shares": text_array({"worst": worst, "mean": mean})}

    return cache.get("compliance", content_hash(keys, shapes), make)
