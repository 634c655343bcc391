"""`build_multi_domain`: a character in, a multi-domain model out (MD11 Fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softrig.bases.domain_shapes import domain_shapes
from softrig.errors import InputError
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.forces.domain_cubature import domain_cubature
from softrig.meshing.domains import Interface, Partition, bone_domains, holders, interfaces
from softrig.models.multi_domain import Domain, MultiDomainModel, Seam
from softrig.models.multi_domain_tables import tet_gradients, tet_volumes
from softrig.models.posed import PosedBody
from softrig.pipeline.build import source_note
from softrig.pipeline.cache import StageCache, content_hash
from softrig.pipeline.fabric import Fabric, make_fabric
from softrig.pipeline.flesh import Flesh, make_flesh, prepared_character
from softrig.pipeline.multi_domain_samples import (
    Carrier,
    bones_at,
    local_displacements,
    pose_samples,
    pose_shapes,
    skin_guess,
    vibration_shapes,
)
from softrig.pipeline.posing import Posing, pose_character
from softrig.pipeline.rigging import Bones, bones_of
from softrig.pipeline.telling import Stage, untold
from softrig.pipeline.unreduced import unreduced_model
from softrig.project import Project
from softrig.rig.character import Character

MODES = 20
"""Of each domain, as in most of MD11 Table 2."""
POSE_SHARE = 0.75
"""Of these from poses, the others from vibration. MD11 takes half, which errs more (docs/records/multi-domain.md)."""
SAMPLES = 60
"""Poses; MD11 §6 takes 100."""
TETS = 5000
LEAST_TETS = 40
"""Bones with less flesh than this many tets are one domain with the bone above."""
TETS_PER_MODE = 4.0
"""Cubature tets for each mode of a domain, as in MD11 Table 2 (1,368 for 340)."""
LINEAR_MODES = 160
DERIVATIVES = 14
"""Leading modes with derivatives: 105 pairs, as many as MD11 takes."""
SPRING = 10.0
"""κ times the edge length over Young's modulus."""
SPRING_DAMPING = 1.0 / 180.0
"""κ_d over κ, seconds."""
SWING = 0.02
"""Of the size: how far the first mode swings in the samples that cubature is trained on."""
GRAVITY = np.array([0.0, -9.81, 0.0])


@dataclass(frozen=True, eq=False)
class DomainBuild:
    """A model and the full body that it stands for."""

    model: MultiDomainModel
    body: PosedBody
    carrier: Carrier
    character: Character


def build_multi_domain(
    character: Character,
    project: Project | None = None,
    *,
    modes: int = MODES,
    samples: int = SAMPLES,
    pose_share: float = POSE_SHARE,
    cache: Path | str | None = None,
    folder: Path | None = None,
    stage: Stage | None = None,
) -> MultiDomainModel:
    """The multi-domain model of a skinned `character`: a domain for each fleshy bone, `modes` shapes in each.

    Of `project` count mesh (of about 5,000 tets where it says nothing of them), material, parts and seed. `samples`:
    poses in which the full body is solved; `pose_share` of the modes come from there, the others from vibration.
    `cache` and `folder` as in `build`.
    """
    return build_domains(
        character, project, modes=modes, samples=samples, pose_share=pose_share, cache=cache, folder=folder, stage=stage
    ).model


def build_domains(
    character: Character,
    project: Project | None = None,
    *,
    modes: int = MODES,
    samples: int = SAMPLES,
    pose_share: float = POSE_SHARE,
    cache: Path | str | None = None,
    folder: Path | None = None,
    stage: Stage | None = None,
) -> DomainBuild:
    """As `build_multi_domain`, with the full body beside it."""
    if not 0.0 <= pose_share <= 1.0:
        raise InputError(f"the share of modes from poses lies between 0 and 1, got {pose_share}")
    if modes < 1 or samples < 1:
        raise InputError(f"a multi-domain model needs at least one mode and one sample, got {modes} and {samples}")
    project, stage, stages = settings_of(project), stage or untold, StageCache(cache)
    character = prepared_character(character, project)
    bones = bones_of(character)
    if bones is None:
        raise InputError(f"'{character.name}' has no skeleton that carries it: domains need bones to move with")
    with stage("Filling with tets") as update:
        flesh = make_flesh(character, project, stages, update, folder=folder)
        posing = pose_character(character, flesh, project, stages, bones=bones)
    fabric = make_fabric(character, flesh, posing, project, folder=folder)
    cut = cut_domains(character, flesh, posing, fabric, bones)
    posed = unreduced_model(character, flesh, posing, fabric)
    matrices = bones_at(posed, cut.partition.bones)
    with stage("Solving the poses") as update:
        chosen = pose_samples(posed, samples, seed=project.seed)
        key = content_hash(
            flesh.mesh.vertices, flesh.mesh.elements, flesh.fixed, cut.carrier.holders, cut.partition.domain_of_tet,
            fabric.young, fabric.poisson, fabric.density, fabric.law, chosen, [matrices(p) for p in chosen],
        )  # fmt: skip

        def solved() -> dict[str, np.ndarray]:
            found = pose_shapes(cut.body, cut.carrier, matrices, skin_guess(posed), chosen, GRAVITY, progress=update)
            return dict(zip(("positions", "rotations", "places"), found, strict=True))

        known = stages.get("domain-poses", key, solved)
    with stage("Finding shapes"):
        linear, swings, shapes = vibration_shapes(cut.body, LINEAR_MODES, DERIVATIVES, character.size)
        random = np.random.default_rng([project.seed, 31])
        coordinates = random.standard_normal((len(known["positions"]), shapes.shape[2]))
        coordinates *= linear.eigenvalues[0] / linear.eigenvalues
        largest = np.linalg.norm(shapes[:, :, 0], axis=1).max()
        vibrating = shapes @ (SWING * character.size / largest * coordinates.T)
    domains, report = [], []
    with stage("Reducing forces") as update:
        for index in range(len(cut.partition.bones)):
            args = (known["positions"], known["rotations"][:, index], known["places"][:, index])
            domain, facts = make_domain(cut, fabric, index, args, swings, vibrating, (modes, pose_share), project.seed)
            domains.append(domain)
            report.append(facts)
            if update:
                update(index + 1, len(cut.partition.bones))
    edges = flesh.mesh.vertices[flesh.mesh.elements[:, [0, 0, 0, 1, 1, 2]]]
    edges = edges - flesh.mesh.vertices[flesh.mesh.elements[:, [1, 2, 3, 2, 3, 3]]]
    length = float(np.linalg.norm(edges, axis=2).mean())
    spring = SPRING * fabric.usual_young(flesh.mesh.volumes)[1] / length
    model = MultiDomainModel(
        name=character.name,
        law=fabric.law,
        rig=posing.rig,
        domains=tuple(domains),
        seams=tuple(seam_of(each, domains) for each in cut.interfaces),
        vertices=flesh.mesh.vertices,
        tets=flesh.mesh.elements,
        domain_of_tet=cut.partition.domain_of_tet,
        triangles=character.triangles,
        colours=character.colours,
        embedding_nodes=flesh.nodes,
        embedding_weights=flesh.weights,
        spring=spring,
        spring_damping=SPRING_DAMPING * spring,
        damping_ratio=fabric.damping_ratio,
        frequency=float(linear.frequencies[0]),
        size=character.size,
        clips=posed.clips,
        notes={
            "source": source_note(character),
            "project": project.model_dump(mode="json", exclude_defaults=True),
            "samples": len(known["positions"]),
            "edge length": length,
            "domains": report,
        },
    )
    return DomainBuild(model, cut.body, cut.carrier, character)


def settings_of(project: Project | None) -> Project:
    """What of a project counts here: one pose, the rest, and about 5,000 tets where it says nothing of them."""
    project = project or Project()
    tets = {} if "tets" in project.mesh.model_fields_set else {"tets": TETS}
    return project.changed(mesh=tets, poses={"count": 1, "given": ()}, basis={"contact": False})


@dataclass(frozen=True, eq=False)
class Cut:
    """A body in pieces, before anything is reduced."""

    names: tuple[str, ...]
    partition: Partition
    interfaces: list[Interface]
    body: PosedBody
    carrier: Carrier


def cut_domains(character: Character, flesh: Flesh, posing: Posing, fabric: Fabric, bones: Bones) -> Cut:
    """Domains, interfaces, who holds which vertex on the bones, and the full body."""
    mesh, skin = flesh.mesh, posing.tet_rig.weights
    assert skin is not None
    partition = bone_domains(mesh, skin.toarray(), bones.parents, least=LEAST_TETS)
    segments = character.bones()
    nodes = bones.skin.binding.bones.tolist()
    domain_of_segment = np.array([partition.domain_of_bone[nodes.index(bone.node)] for bone in segments])
    ends = np.array([[bone.head, bone.tail] for bone in segments]).reshape(-1, 2, 3)
    held = holders(mesh, partition.domain_of_tet, flesh.fixed, ends, domain_of_segment)
    material = Material(fabric.young[0], fabric.poisson[0], fabric.density * flesh.density_factor)
    body = PosedBody(mesh, material, law=fabric.law, fixed=flesh.fixed)
    shares = np.zeros((len(mesh.vertices), len(partition.bones)))
    quarter = mesh.volumes * fabric.density * flesh.density_factor / 4.0
    np.add.at(shares, (mesh.elements, partition.domain_of_tet[:, None]), quarter[:, None])
    centres = shares.T @ mesh.vertices / shares.sum(axis=0)[:, None]
    return Cut(
        tuple(bones.names[bone] for bone in partition.bones),
        partition,
        interfaces(mesh, partition.domain_of_tet),
        body,
        Carrier(mesh.vertices, held, centres, shares),
    )


def make_domain(
    cut: Cut,
    fabric: Fabric,
    index: int,
    posed: tuple[np.ndarray, np.ndarray, np.ndarray],
    swings: np.ndarray,
    vibrating: np.ndarray,
    size: tuple[int, float],
    seed: int,
) -> tuple[Domain, dict[str, float]]:
    """One domain, of the solved poses (positions, rotations, places) and vibration (n, 3, k), and how good it is.

    `size`: modes, and the share of them from poses.
    """
    mesh, carrier = cut.body.mesh, cut.carrier
    mass = carrier.shares[:, index]
    vertices = np.flatnonzero(mass > 0.0)
    mass, free = mass[vertices], carrier.holders[vertices] != index
    poses = local_displacements(mesh.vertices, vertices, carrier.centres[index], *posed) * free[:, None, None]
    shapes = domain_shapes(poses, swings[vertices] * free[:, None, None], mass, size[0], pose_share=size[1])
    tets = np.flatnonzero(cut.partition.domain_of_tet == index)
    lam, mu = cut.body.lam[tets], cut.body.mu[tets]
    weighted = mass[:, None, None] * shapes
    still = np.einsum("nim,nis->sm", weighted, poses)
    swinging = np.einsum("nim,nis->sm", weighted, vibrating[vertices])
    samples = np.concatenate([still, still[::-1] + swinging])
    return reduced_domain(cut, fabric, index, vertices, mass, shapes, (tets, lam, mu), samples, seed)


def reduced_domain(
    cut: Cut,
    fabric: Fabric,
    index: int,
    vertices: np.ndarray,
    mass: np.ndarray,
    shapes: np.ndarray,
    flesh: tuple[np.ndarray, np.ndarray, np.ndarray],
    samples: np.ndarray,
    seed: int,
) -> tuple[Domain, dict[str, float]]:
    """The domain of these shapes (n_i, 3, r), its cubature trained on coordinates `samples` (s, r)."""
    mesh, (tets, lam, mu) = cut.body.mesh, flesh
    rank = shapes.shape[2]
    gradients = tet_gradients(mesh.vertices, mesh.elements[tets], vertices, shapes)
    volumes = tet_volumes(mesh.vertices, mesh.elements[tets])
    chosen = domain_cubature(
        law_code(fabric.law), gradients, volumes, lam, mu, samples, round(TETS_PER_MODE * rank), seed=seed
    )
    some = chosen.tets
    domain = Domain(
        name=cut.names[index],
        bone=int(cut.partition.bones[index]),
        centre=cut.carrier.centres[index],
        vertices=vertices.astype(np.int32),
        mass=mass,
        shapes=shapes,
        stiffness=rest_stiffness(law_code(fabric.law), gradients, volumes, lam, mu),
        tets=tets[some].astype(np.int32),
        weights=chosen.weights,
        lam=lam[some],
        mu=mu[some],
    )
    facts = {"tets": len(tets), "training error": chosen.training_error, "unseen error": chosen.unseen_error}
    return domain, facts


def rest_stiffness(law: int, gradients: np.ndarray, volumes: np.ndarray, lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(r, r) UᵀKU at rest, 1/s²: λ tr tr + 2μ ε : ε, the same of every law."""
    G = gradients.reshape(len(gradients), 3, 3, -1)
    strain = 0.5 * (G + np.swapaxes(G, 1, 2)).reshape(len(G), 9, -1)
    trace = G[:, 0, 0] + G[:, 1, 1] + G[:, 2, 2]
    stiffness = np.einsum("e,em,en->mn", volumes * lam, trace, trace, optimize=True)
    return stiffness + 2.0 * np.einsum("e,ekm,ekn->mn", volumes * mu, strain, strain, optimize=True)


def seam_of(interface: Interface, domains: list[Domain]) -> Seam:
    """An interface in the rows of its two domains."""
    rows = [
        np.searchsorted(domains[index].vertices, interface.vertices).astype(np.int32)
        for index in (interface.first, interface.second)
    ]
    return Seam(interface.first, interface.second, rows[0], rows[1], interface.areas)
