"""Reduced forces of the shapes, and the finished model (PSSD §5.2 – §5.4)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from softrig.forces.cubature import TETS_PER_MODE, CubatureErrors, cubature_errors, train_cubature
from softrig.forces.projection import (
    carried_areas,
    gyro_groups,
    gyro_matrices,
    mass_products,
    wind_matrices,
)
from softrig.forces.samples import pose_samples
from softrig.models.pose_space import Cubature, PoseSpaceModel
from softrig.pipeline.cache import Arrays, StageCache, content_hash, text_array, text_value
from softrig.pipeline.elasticity import mixed_elasticity, pose_elasticity
from softrig.pipeline.fabric import Fabric
from softrig.pipeline.flesh import Flesh
from softrig.pipeline.inertia import Inertia, make_inertia
from softrig.pipeline.inertia_map import with_inertia_map
from softrig.pipeline.parallel import Progress, part_of
from softrig.pipeline.pose_samples import map_samples
from softrig.pipeline.posing import Posing
from softrig.pipeline.remainder import measured_remainder
from softrig.pipeline.shapes import Shapes, pose_loads
from softrig.pipeline.stiffness import contact_stiffness, with_stiffness_map
from softrig.pipeline.unreduced import unreduced_model
from softrig.pipeline.yielding import YieldingStiffness
from softrig.project import Project
from softrig.rig.character import Character

MOMENTS = 2
"""Of the clips, at which the error of the forces between the poses is measured."""
UNSEEN = 20
"""Deformations a pose on which the cubature's error is measured."""
LEANING = 2.0
"""So many times the usual number of tets where all of the remainder counts. A letter X of 100 modes, its stiffness
learned, is 10 and 14 % off as it bends and bows, which the build saw, with 150 of them, 2 and 4 with 300, 450 or
all."""


def reduce_forces(
    character: Character,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    shapes: Shapes,
    project: Project,
    cache: StageCache,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> PoseSpaceModel:
    """Train the cubature, project everything else exactly, and put the model together.

    Modes that can do nearly everything by themselves (all of the remainder counts, `pipeline.remainder`) lean on their
    tets, and so do others with one basis for all poses whose stiffness between these cannot be learned: there are more
    of them.
    """
    model, rotations, inertia = _projected(character, flesh, posing, fabric, shapes, project)
    contact = contact_stiffness(flesh, fabric, shapes, rotations)
    samples = map_samples(model, seed=project.seed) if project.cubature.stiffness_correction else None
    remainder = None
    # Bases of their own at every pose keep contacts, beside which the rest may not yield.
    if samples is not None and len(model.shapes) == 1 and project.basis.recipe != "paper":
        remainder = measured_remainder(
            model,
            flesh,
            posing,
            fabric,
            shapes.loads,
            samples,
            cache,
            seed=project.seed,
            jobs=jobs,
            progress=part_of(progress, 0, 4),
        )
    leans = remainder is not None and remainder.is_whole
    trained = _cubature(flesh, posing, fabric, shapes, project, leans, cache, part_of(progress, 1, 4))
    model = replace(model, cubature=_chosen(trained, fabric, contact, inertia.vertices))
    if samples is not None:
        model = with_stiffness_map(
            model,
            flesh,
            posing,
            fabric,
            contact,
            shapes,
            samples,
            remainder,
            cache,
            jobs=jobs,
            progress=part_of(progress, 2, 4),
        )
    if remainder is not None and not leans and model.cubature.stiffness_map is None:
        leans = True
        trained = _cubature(flesh, posing, fabric, shapes, project, leans, cache, None)
        model = replace(model, cubature=_chosen(trained, fabric, contact, inertia.vertices))
    model.notes["leans on tets"] = leans
    model, told = with_inertia_map(model, project, cache, part_of(progress, 3, 4))
    notes = _notes(model, posing, fabric, shapes, text_value(trained["report"]), inertia.report | told, project)
    model.notes.update(notes)
    return model


def _projected(
    character: Character, flesh: Flesh, posing: Posing, fabric: Fabric, shapes: Shapes, project: Project
) -> tuple[PoseSpaceModel, np.ndarray, Inertia]:
    """The model of these shapes with all that is projected exactly, without tets; the vertices' rotations at the poses
    (m, n, 3, 3); and what its inertia comes from."""
    mass = fabric.density * flesh.unit_mass
    inertia = make_inertia(flesh, posing, shapes, mass, project)
    rotations, frames = _rotations(posing, flesh)
    areas = carried_areas(
        character.rest_positions, character.triangles, flesh.nodes, flesh.weights, len(flesh.mesh.vertices)
    )
    gyro_frames, group_weights = gyro_groups(posing.frame_weights, mass, posing.frame_parents)
    nothing = np.zeros((len(posing.table), 0))
    modes = shapes.shapes.shape[3]
    model = replace(
        unreduced_model(character, flesh, posing, fabric),
        shapes=shapes.shapes,
        region_of_mode=shapes.region_of_mode,
        region_names=shapes.region_names,
        mass_products=mass_products(shapes.shapes, mass),
        inertia=inertia.matrices,
        wind=wind_matrices(shapes.shapes, areas, rotations, posing.frame_weights, frames),
        gyro_frames=gyro_frames,
        gyro=gyro_matrices(shapes.shapes.mean(axis=0), mass, group_weights),
        cubature=Cubature(
            np.zeros(0, np.int32), nothing, nothing, nothing, np.zeros((len(nothing), modes, modes)), inertia.vertices
        ),
        modes_order=shapes.sigma,
        frequencies=shapes.frequencies,
    )
    return model, rotations, inertia


def _chosen(trained: Arrays, fabric: Fabric, contact: np.ndarray, inertial: np.ndarray) -> Cubature:
    """The tets that were `trained`, with the springs of contacts (m, r, r) in their correction."""
    tets = trained["tets"]
    young, poisson = fabric.young[:, tets], fabric.poisson[:, tets]
    return Cubature(tets, trained["weights"], young, poisson, trained["correction"] + contact, inertial)


def _rotations(posing: Posing, flesh: Flesh) -> tuple[np.ndarray, np.ndarray]:
    """(m, n, 3, 3) vertex rotations and (m, frames, 3, 3) frame rotations at the poses."""
    X, mass = flesh.mesh.vertices, flesh.unit_mass
    frames = np.stack([posing.frames(p, X, mass) for p in posing.table.parameters])
    return np.stack([posing.vertex_rotations(p, X, mass) for p in posing.table.parameters]), frames


def _cubature(
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    shapes: Shapes,
    project: Project,
    leans: bool,
    cache: StageCache,
    progress: Progress | None,
) -> Arrays:
    """The tets that the project asks for; more than usual where it leaves that open and the model `leans` on them."""
    settings = project.cubature
    count = settings.count or round((LEANING if leans else 1.0) * TETS_PER_MODE * shapes.shapes.shape[3])
    rotations, _ = _rotations(posing, flesh)
    key = content_hash(
        flesh.mesh.vertices,
        posing.positions,
        shapes.shapes,
        fabric.young,
        fabric.poisson,
        fabric.law,
        list(shapes.loads),
        rotations,
        project.fingerprint("cubature", "seed"),
        project.basis.recipe,
        count,
    )

    def make() -> Arrays:
        poses = [
            pose_elasticity(flesh, fabric, posing.positions[i], i, _turned(rotations[i], shapes.shapes, i))
            for i in range(len(rotations))
        ]
        report = train_cubature(
            poses,
            fabric.density * flesh.unit_mass,
            shapes.loads,
            _size(flesh),
            count=count,
            samples=settings.samples,
            unseen=UNSEEN,
            recipe="paper" if project.basis.recipe == "paper" else "ours",
            method=settings.method,
            correction=settings.stiffness_correction,
            seed=project.seed,
            progress=progress,
        )
        told = {
            "method": report.method,
            "training": report.training_error.tolist(),
            "unseen": [asdict(error) for error in report.errors],
        }
        return {
            "tets": report.tets,
            "weights": report.weights,
            "correction": report.stiffness_correction,
            "report": text_array(told),
        }

    return cache.get("cubature", key, make)


def _turned(rotations: np.ndarray, shapes: np.ndarray, pose: int) -> np.ndarray:
    """(n, 3, r) shapes of a pose in the world."""
    own = shapes[pose if len(shapes) > 1 else 0]
    return np.einsum("nij,njk->nik", rotations, own, optimize=True)


def _size(flesh: Flesh) -> float:
    return float(np.linalg.norm(np.ptp(flesh.mesh.vertices, axis=0)))


def between_poses_errors(
    model: PoseSpaceModel,
    flesh: Flesh,
    posing: Posing,
    fabric: Fabric,
    p: np.ndarray,
    *,
    own: bool = False,
    seed: int = 0,
) -> CubatureErrors:
    """Errors of the cubature at any pose p (P,), with interpolated shapes, weights and materials, on unseen samples.

    `own`: p is a pose of the model, and its linear part is taken to be right there. Springs of contacts are meant and
    no error: a map is measured without them.
    """
    w = model.positive_weights(p)
    exact = mixed_elasticity(model, flesh, fabric, p, scales=model.mode_scales(p))
    loads = pose_loads(posing, flesh, int(w.argmax()))
    samples = pose_samples(exact, model.vertex_mass, loads, _size(flesh), UNSEEN, np.random.default_rng([seed, 77]))
    scale = model.mode_scales(p)
    linear = None
    if model.cubature.beyond != 1.0:
        linear = YieldingStiffness(model, flesh, fabric, model.cubature.beyond).at(p) * scale[:, None] * scale
    flesh_alone = model.linear_part(p)
    if model.cubature.stiffness_map is not None:
        flesh_alone -= model.cubature.stiffness_map.springs(w)
    correction = flesh_alone * scale[:, None] * scale
    if own:
        correction = exact.rest_stiffness if linear is None else linear
    if own or not model.cubature.holds_linear:
        correction = correction - exact.cubature_stiffness(
            np.zeros(exact.modes), model.cubature.tets, w @ model.cubature.weights
        )
    return cubature_errors(
        exact,
        model.cubature.tets,
        w @ model.cubature.weights,
        correction,
        samples,
        linear=linear,
        beyond=model.cubature.beyond,
    )


def clip_force_errors(
    model: PoseSpaceModel, flesh: Flesh, posing: Posing, fabric: Fabric, project: Project, cache: StageCache
) -> dict[str, float]:
    """By "clip at seconds", the worse of the two errors of `between_poses_errors` at `MOMENTS` random moments."""
    random = np.random.default_rng([project.seed, 23])
    lengths = np.array([clip.duration for clip in model.clips])
    if not lengths.sum() > 0.0:
        return {}
    chosen = [model.clips[i] for i in random.choice(len(lengths), MOMENTS, p=lengths / lengths.sum())]
    moments = [(clip, random.uniform(0.0, clip.duration)) for clip in chosen]
    poses = np.concatenate([clip.sample(moment) for clip, moment in moments])
    known = model.cubature.stiffness_map
    key = content_hash(
        model.shapes,
        model.cubature.tets,
        model.cubature.weights,
        model.cubature.linear_parts,
        model.cubature.beyond,
        *([] if known is None else [known.coefficients, known.samples, known.pairs, known.touching, known.flexible]),
        *([] if known is None else [known.relevance, known.lengths, known.groups, known.beside_tets]),
        flesh.mesh.vertices,
        posing.positions,
        fabric.young,
        fabric.poisson,
        fabric.law,
        poses,
    )

    def make() -> Arrays:
        found = [between_poses_errors(model, flesh, posing, fabric, p, seed=project.seed) for p in poses]
        return {"worst": np.array([max(errors.gaussian, errors.loads) for errors in found])}

    worst = cache.get("between", key, make)["worst"]
    return {f"{clip.name} at {at:.2f} s": float(error) for (clip, at), error in zip(moments, worst, strict=True)}


def _notes(
    model: PoseSpaceModel,
    posing: Posing,
    fabric: Fabric,
    shapes: Shapes,
    cubature: dict[str, Any],
    inertia: dict[str, Any],
    project: Project,
) -> dict[str, Any]:
    return {
        "project": project.model_dump(mode="json", exclude_defaults=True),
        "damping ratio": fabric.damping_ratio,
        "fit": posing.reports,
        "basis": shapes.notes,
        "cubature": cubature,
        "inertia": inertia,
        "mass": float(model.vertex_mass.sum()),
    }
