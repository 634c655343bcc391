"""A box in two domains on the bones of the limb: any shapes, every tet, small enough to sum over vertices by hand."""

from __future__ import annotations

from functools import cache

import numpy as np

from characters_for_tests import LENGTH, limb
from softrig.fem.laws import law_code
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.meshing.domains import interfaces
from softrig.meshing.embedding import embed_points
from softrig.models.multi_domain import Domain, MultiDomainModel, Seam
from softrig.models.multi_domain_tables import tet_gradients, tet_volumes
from softrig.models.posed import PosedBody
from softrig.pipeline.multi_domain import rest_stiffness

YOUNG, POISSON, DENSITY = 2.0e4, 0.4, 1000.0
CUTS = (8, 2, 2)


@cache
def box_mesh() -> VolumeMesh:
    """A bar along the limb's two bones, a sheet of vertices on them."""
    box = box_tets((LENGTH, 0.18, 0.18), CUTS)
    return VolumeMesh.build(box.vertices - [0.0, 0.09, 0.09], box.elements)


@cache
def two_boxes(*, modes: int | None = None, law: str = "stable-neo-hookean", seed: int = 0) -> MultiDomainModel:
    """Two domains that meet in the middle; `modes` random shapes in each, None: all that there are."""
    mesh, character = box_mesh(), limb()
    domain_of_tet = (mesh.vertices[mesh.elements].mean(axis=1)[:, 0] > 0.5 * LENGTH).astype(np.int32)
    lam, mu, density = Material(YOUNG, POISSON, DENSITY).per_element(len(mesh.elements))
    on_bone = np.abs(mesh.vertices[:, 1]) < 1e-9
    left = mesh.vertices[:, 0] <= 0.5 * LENGTH + 1e-9
    random = np.random.default_rng(seed)
    domains = []
    for index, name in enumerate(("upper", "lower")):
        tets = np.flatnonzero(domain_of_tet == index)
        share = np.zeros(len(mesh.vertices))
        np.add.at(share, mesh.elements[tets], (mesh.volumes * density / 4.0)[tets, None])
        vertices = np.flatnonzero(share > 0.0)
        free = ~(on_bone & (left if index == 0 else ~left))[vertices]
        basis = np.zeros((3 * len(vertices), 3 * int(free.sum())))
        basis[np.flatnonzero(np.repeat(free, 3)), np.arange(3 * int(free.sum()))] = 1.0
        root = np.repeat(np.sqrt(share[vertices]), 3)[:, None]
        if modes is not None:
            basis = np.linalg.qr(basis @ random.standard_normal((basis.shape[1], modes)))[0]
        shapes = (basis / root).reshape(len(vertices), 3, -1)
        gradients = tet_gradients(mesh.vertices, mesh.elements[tets], vertices, shapes)
        volumes = tet_volumes(mesh.vertices, mesh.elements[tets])
        mass = share[vertices]
        domains.append(
            Domain(
                name=name,
                bone=index,
                centre=mass @ mesh.vertices[vertices] / mass.sum(),
                vertices=vertices.astype(np.int32),
                mass=mass,
                shapes=shapes,
                stiffness=rest_stiffness(law_code(law), gradients, volumes, lam[tets], mu[tets]),
                tets=tets.astype(np.int32),
                weights=np.ones(len(tets)),
                lam=lam[tets],
                mu=mu[tets],
            )
        )
    (joint,) = interfaces(mesh, domain_of_tet)
    rows = [np.searchsorted(domain.vertices, joint.vertices).astype(np.int32) for domain in domains]
    surface = embed_points(mesh, character.rest_positions)
    return MultiDomainModel(
        name="two boxes",
        law=law,
        rig=character.rig,
        domains=tuple(domains),
        seams=(Seam(0, 1, rows[0], rows[1], joint.areas),),
        vertices=mesh.vertices,
        tets=mesh.elements,
        domain_of_tet=domain_of_tet,
        triangles=character.triangles,
        colours=None,
        embedding_nodes=surface.nodes,
        embedding_weights=surface.weights,
        spring=10.0 * YOUNG / 0.1,
        spring_damping=0.01 * YOUNG / 0.1,
        damping_ratio=0.1,
        frequency=4.0,
        size=character.size,
        clips=character.clips,
    )


def full_body(model: MultiDomainModel) -> PosedBody:
    """The unreduced body of `two_boxes`."""
    on_bone = np.abs(model.vertices[:, 1]) < 1e-9
    return PosedBody(box_mesh(), Material(YOUNG, POISSON, DENSITY), law=model.law, fixed=on_bone)


def posed(model: MultiDomainModel, *, bend: float = 0.5, turn=(0.0, 0.0, 0.0), move=(0.0, 0.0, 0.0)) -> np.ndarray:
    """(P,) the limb with its elbow bent about z, radians, turned by a rotation vector as a whole, and moved."""
    from softrig.numerics.rotations import quaternions_from_vectors

    p = model.rig.parameters.rest.copy()
    names = model.rig.parameters
    for node, vector in (("lower", (0.0, 0.0, bend)), ("upper", turn)):
        start = names.index(f"{node}.rotation.x")
        p[start : start + 4] = quaternions_from_vectors(np.array(vector))
    start = names.index("upper.translation.x")
    p[start : start + 3] += move
    return p


def some_state(model: MultiDomainModel, size: float = 0.02, seed: int = 3) -> np.ndarray:
    """(R,) random unknowns of about this RMS displacement, metres."""
    random = np.random.default_rng(seed)
    scale = size * np.sqrt(model.vertex_mass.sum() / model.mode_count)
    return scale * random.standard_normal(model.mode_count)


def moving(model: MultiDomainModel, seconds: float, *, scale: float = 1.0) -> np.ndarray:
    """(3, D, 3, 4) bone matrices of a motion that sets out smoothly at 0 s, and their two rates, by differences."""

    def at(t: float) -> np.ndarray:
        t = t**4 / (t * t + 0.02) ** 1.5
        turn = scale * np.array([0.4 * np.sin(3.0 * t), 0.5 * t, 0.3 * np.cos(2.0 * t)])
        move = scale * np.array([0.3 * t * t, 0.1 * np.sin(5.0 * t), -0.2 * t])
        return model.bone_matrices(posed(model, bend=0.4 + scale * 0.5 * np.sin(4.0 * t), turn=turn, move=move))

    h = 2e-3
    offsets = np.arange(-4, 5) * h
    values = np.stack([at(seconds + offset) for offset in offsets])
    first = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / (840.0 * h)
    second = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / (5040.0 * h * h)
    return np.stack([values[4], np.tensordot(first, values, 1), np.tensordot(second, values, 1)])


def world_positions(model: MultiDomainModel, q: np.ndarray, R: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
    """Of each domain (n_i, 3) all its copies in the world, one by one."""
    found = []
    for index, (domain, own) in enumerate(zip(model.domains, model.split(q), strict=True)):
        local = model.vertices[domain.vertices] - domain.centre + domain.shapes @ own
        found.append(local @ R[index].T + t[index])
    return found
