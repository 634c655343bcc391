"""Small exact pose-space models: a bar of 200 tets, each a cubature tet, every product from its definition."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_tets
from softrig.models.followers import Followers, in_steps
from softrig.models.full import FullBody
from softrig.models.inertia_map import InertiaMap
from softrig.models.kernels.pose_space_layout import in_fixed_point
from softrig.models.pose_space import Cubature, PoseSpaceModel, PoseTable, TetRig
from softrig.models.stiffness_map import StiffnessMap
from softrig.numerics.rotations import quaternions_from_vectors, skew
from softrig.rig.clip import Clip
from softrig.rig.deformers import Bend, BlendShapes, RigChain, carried_by_root
from softrig.rig.features import bounding_size, vertex_areas
from softrig.rig.skeleton import Skeleton
from softrig.rig.skinning import LinearBlendSkin

LENGTHS, COUNTS = (0.6, 0.12, 0.1), (8, 2, 2)
DENSITY = 1000.0
TURNS = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.3], [0.0, -1.1, 0.0], [0.9, 0.0, -0.5]])
"""Rotation vectors of the second bone at the poses of a skinned bar, rad."""
ANGLES = np.array([0.0, 1.0, -0.8, 1.8])
"""Angles of the bend at the poses of a bent bar, rad."""


@cache
def bar_mesh() -> VolumeMesh:
    box = box_tets(LENGTHS, COUNTS)
    return VolumeMesh.build(box.vertices - [0.0, 0.06, 0.05], box.elements)


def bone_weights(points: np.ndarray) -> np.ndarray:
    """(n, 2) weights along the bar that sum to one: one bone alone at each end."""
    t = np.clip((points[:, 0] - 0.15) / 0.3, 0.0, 1.0)
    share = t * t * (3.0 - 2.0 * t)
    return np.stack([1.0 - share, share], axis=1)


def region_weights(points: np.ndarray, regions: int) -> np.ndarray:
    """(n, regions) hats along the bar that sum to one: neighbours overlap, others do not meet."""
    places = np.linspace(0.0, LENGTHS[0], 2 * regions)
    hats = [np.interp(points[:, 0], places, np.repeat(np.eye(regions)[k], 2)) for k in range(regions)]
    return np.stack(hats, axis=1)


def skinned_rig(points: np.ndarray, *, morphs: bool = False):
    """Two bones along x; with morphs, "fix" (a corrective) and "bulge" in front."""
    skeleton = Skeleton.from_heads(("upper", "lower"), (-1, 0), np.array([[0.0, 0, 0], [0.3, 0, 0]]))
    joints = np.tile([0, 1], (len(points), 1))
    binds = np.linalg.inv(skeleton.rest_world_matrices)
    skin = LinearBlendSkin(skeleton, points, [0, 1], binds, joints, bone_weights(points))
    if not morphs:
        return skin
    fix = 0.02 * np.exp(-(((points[:, :1] - 0.3) / 0.08) ** 2)) * [0.0, 1.0, 0.3]
    bulge = 0.3 * np.exp(-(((points[:, :1] - 0.45) / 0.08) ** 2)) * points * [0.0, 1.0, 1.0]
    return RigChain((BlendShapes(points, np.stack([fix, bulge]), ("fix", "bulge")), skin))


def bent_rig(points: np.ndarray):
    """A bend along x and a root node behind it."""
    return carried_by_root(Bend(points, (0.1, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.2), 0.0, 0.4))


def pose(rig, turn=(0.0, 0.0, 0.0), *, root_turn=(0.0, 0.0, 0.0), root_move=(0.0, 0.0, 0.0), angle=0.0) -> np.ndarray:
    """Parameters: the second bone turned (skinned bar) or the bend's angle, and the root turned and moved."""
    p, index = rig.parameters.rest.copy(), rig.parameters.index
    root = "upper" if "upper.rotation.x" in rig.parameters.names else "root"
    where = index(f"{root}.rotation.x")
    p[where : where + 4] = quaternions_from_vectors(np.asarray(root_turn, float))
    where = index(f"{root}.translation.x")
    p[where : where + 3] += root_move
    if root == "upper":
        where = index("lower.rotation.x")
        p[where : where + 4] = quaternions_from_vectors(np.asarray(turn, float))
    else:
        p[index("bend.angle")] = angle
    return p


@cache
def bar_model(
    poses: int = 2,
    interpolation: str = "bind",
    law: str = "stvk",
    regions: int = 1,
    *,
    modes: int = 8,
    basis_poses: int | None = None,
    morphs: bool = False,
    black_box: bool = False,
    corrections: float = 0.004,
    young: float = 2e4,
    poisson: float = 0.4,
) -> PoseSpaceModel:
    """A bar along x, fixed on its axis and at x = 0: skinned by two bones, or bent as a black box.

    `corrections`, metres: how large the made-up δ are. `basis_poses`: all by default, 1 for a single basis. ΔK = 0.
    """
    mesh = bar_mesh()
    inside = (np.abs(mesh.vertices[:, 1:]) < 1e-9).all(axis=1) | (mesh.vertices[:, 0] < 1e-9)
    surface = np.unique(mesh.boundary_triangles)
    rig = bent_rig(mesh.vertices[surface]) if black_box else skinned_rig(mesh.vertices[surface], morphs=morphs)
    model = bare_model(mesh, surface, rig, inside, poses, law, "world" if black_box else interpolation, black_box)
    model = with_corrections(model, corrections)
    stiffness = young * (1.0 + 0.3 * np.arange(poses))[:, None] * (1.0 + 0.5 * mesh.vertices[mesh.elements, 0].mean(1))
    cubature = Cubature(
        np.arange(len(mesh.elements), dtype=np.int32),
        np.ones((poses, len(mesh.elements))),
        stiffness,
        np.full_like(stiffness, poisson) - 0.02 * np.arange(poses)[:, None],
        np.zeros((poses, 1, 1)),
        np.flatnonzero(~inside).astype(np.int32) if black_box else np.zeros(0, np.int32),
    )
    model = replace(model, cubature=cubature, inertia=np.zeros((poses, 1, load_count(model, cubature))))
    return with_basis(model, modes, regions, poses if basis_poses is None else basis_poses)


def bare_model(mesh, surface, rig, fixed, poses, law, interpolation, black_box) -> PoseSpaceModel:
    """The character with one empty mode, no corrections and no cubature: its kinematics already work."""
    n, points = len(mesh.vertices), len(surface)
    position = np.full(n, -1)
    position[surface] = np.arange(points)
    if black_box:
        parameters = np.array([pose(rig, angle=angle) for angle in ANGLES[:poses]])
    else:
        parameters = np.array([pose(rig, turn) for turn in TURNS[:poses]])
    corrective = (("fix.weight", 1),) if "fix.weight" in rig.parameters.names and poses > 1 else ()
    features = rig.pose_features
    counted = np.array([name not in [morph for morph, _ in corrective] for name in features.names])
    table = PoseTable(
        tuple(f"pose {i}" for i in range(poses)), parameters, features(parameters) * counted, features.weights * counted
    )
    bones = csr_array(bone_weights(mesh.vertices))
    gaps = np.linalg.norm(mesh.vertices[:, None] - mesh.vertices[surface], axis=2)
    nodes = np.argsort(gaps, axis=1, kind="stable")[:, :4].astype(np.int32)
    shares = 1.0 / (np.take_along_axis(gaps, nodes, axis=1) + 1e-9)
    tet_rig = TetRig(
        "black-box" if black_box else "skin",
        None if black_box else bones,
        nodes if black_box else None,
        shares / shares.sum(axis=1, keepdims=True) if black_box else None,
        np.zeros((poses, n, 3)),
        0,
        np.arange(0, n, 5, dtype=np.int32) if black_box else np.zeros(0, np.int32),
    )
    empty = np.zeros((poses, 0))
    cubature = Cubature(np.zeros(0, np.int32), empty, empty, empty, np.zeros((poses, 1, 1)))
    frames = 2 if interpolation == "bind" else 1
    body = FullBody(mesh, Material(1.0, 0.3, DENSITY), mass="lumped")
    return PoseSpaceModel(
        name="bar",
        law=law,
        rig=rig,
        corrective=corrective,
        poses=table,
        tet_rig=tet_rig,
        interpolation=interpolation,
        vertices=mesh.vertices,
        tets=mesh.elements,
        fixed=fixed,
        vertex_mass=body.vertex_mass,
        triangles=position[mesh.boundary_triangles].astype(np.int32),
        colours=None,
        embedding_nodes=np.tile(surface[:, None], (1, 4)).astype(np.int32),
        embedding_weights=np.tile([1.0, 0.0, 0.0, 0.0], (points, 1)),
        shapes=np.zeros((1, n, 3, 1)),
        region_of_mode=np.zeros(1, np.int32),
        region_names=("all",),
        mass_products=np.ones((1, 1, 1, 1)),
        inertia=np.zeros((poses, 1, poses if black_box else 24 + poses)),
        wind=np.zeros((poses, 1, 3 * frames)),
        gyro_frames=np.zeros(0, np.int32),
        gyro=np.zeros((0, 9, 1, 1)),
        cubature=cubature,
        modes_order=np.ones(1),
        frequencies=np.ones((poses, 1)),
        clips=(waving_clip(rig),),
        size=bounding_size(mesh.vertices),
    )


def load_count(model: PoseSpaceModel, cubature: Cubature) -> int:
    blocks = 24 if model.tet_rig.kind == "skin" else 3 * len(cubature.inertial_vertices)
    return blocks + len(model.poses)


def waving_clip(rig, seconds: float = 1.0, fps: int = 30) -> Clip:
    """The bar bends and its root swings and travels; the last frame is the first."""
    times = np.arange(int(seconds * fps) + 1) / fps
    waves = np.sin(2.0 * np.pi * times / seconds)
    frames = [
        pose(rig, (0, 0, 0.6 + 0.5 * s), root_turn=(0, 0.4 * s, 0), root_move=(0, 0.05 * s, 0), angle=0.5 * s)
        for s in waves
    ]
    return Clip.from_samples("wave", rig.parameters, times, np.array(frames))


def with_corrections(model: PoseSpaceModel, size: float) -> PoseSpaceModel:
    """Smooth made-up corrections δ_i, none at pose 0 and at the fixed vertices."""
    waves = np.sin(9.0 * model.vertices[:, [1, 2, 0]] + 5.0 * model.vertices[:, :1])
    corrections = size * np.arange(len(model.poses))[:, None, None] * waves * ~model.fixed[:, None]
    return replace(model, tet_rig=replace(model.tet_rig, corrections=corrections))


def with_basis(model: PoseSpaceModel, modes: int, regions: int, basis_poses: int) -> PoseSpaceModel:
    """Aligned linear modes of each pose, times region weights, and everything derived from them."""
    parts = [modes // regions + (k < modes % regions) for k in range(regions)]
    fields, frequencies = [], []
    for index, p in enumerate(model.poses.parameters):
        eigenvalues, shapes = linear_modes_at(model, index, max(parts))
        frequencies.append(np.sqrt(eigenvalues) / (2.0 * np.pi))
        fields.append(np.einsum("nji,njr->nir", model.vertex_rotations(p), shapes))
        turn, _, back = np.linalg.svd(np.einsum("nia,n,nib->ab", fields[-1], model.vertex_mass, fields[0]))
        fields[-1] = fields[-1] @ (turn @ back)
    hats = region_weights(model.vertices, regions) if regions > 1 else np.ones((len(model.vertices), 1))
    columns = [[field[:, :, :count] * hats[:, k, None, None] for k, count in enumerate(parts)] for field in fields]
    shapes = np.stack([np.concatenate(column, axis=2) for column in columns])[:basis_poses]
    return with_products(
        model,
        in_fixed_point(shapes),
        np.repeat(np.arange(regions), parts).astype(np.int32),
        np.array(frequencies),
    )


def linear_modes_at(model: PoseSpaceModel, index: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest (count,) eigenvalues and (n, 3, count) world-space modes of the full body at a pose."""
    mesh = VolumeMesh.build(model.tet_rest(model.poses.parameters[index]), model.tets)
    material = Material(model.cubature.young[index], model.cubature.poisson[index], DENSITY)
    body = FullBody(mesh, material, law=model.law, fixed=model.fixed)
    mass = np.diag(np.repeat(model.vertex_mass[~model.fixed], 3))
    values, vectors = eigh(body.rest_stiffness.toarray(), mass, subset_by_index=(0, count - 1))
    return values, body.expand(vectors * np.sign(vectors.sum(axis=0)))


def with_products(model: PoseSpaceModel, shapes, region_of_mode, frequencies) -> PoseSpaceModel:
    """The model with this basis; mass, inertia, wind and gyroscopic products straight from their definitions."""
    poses, r = len(model.poses), shapes.shape[3]
    mass, deltas = model.vertex_mass, model.tet_rig.corrections
    areas = np.zeros(len(mass))
    surface = model.embedding_nodes[:, 0]
    areas[surface] = vertex_areas(model.vertices[surface], model.triangles)
    frames = model.tet_rig.weights.toarray() if model.interpolation == "bind" else np.ones((len(mass), 1))
    inertia, wind = [], []
    for i, p in enumerate(model.poses.parameters):
        V = shapes[min(i, len(shapes) - 1)]
        back = np.swapaxes(model.vertex_rotations(p), 1, 2)
        rotations = model.frame_rotations(p)
        fading = np.einsum("nka,n,jnk->aj", V, mass, deltas)
        if model.tet_rig.kind == "skin":
            weights = model.tet_rig.weights.toarray()
            of_bone = rotations if model.interpolation == "bind" else np.repeat(rotations, 2, axis=0)
            points = np.concatenate([model.vertices + deltas[i], np.ones((len(mass), 1))], axis=1)
            block = np.einsum("nja,n,njx,nb,bxk,nl->abkl", V, mass, back, weights, of_bone, points, optimize=True)
        else:
            chosen = model.cubature.inertial_vertices
            block = np.einsum("nka,n->ank", V[chosen], mass[chosen])
        inertia.append(np.concatenate([block.reshape(r, -1), fading], axis=1))
        wind.append(np.einsum("nja,n,njx,nf,fxk->afk", V, areas, back, frames, rotations, optimize=True).reshape(r, -1))
    return replace(
        model,
        shapes=shapes,
        region_of_mode=region_of_mode,
        region_names=tuple(f"region {k}" for k in range(int(region_of_mode.max()) + 1)),
        mass_products=np.einsum("inka,n,jnkb->ijab", shapes, mass, shapes, optimize=True),
        inertia=as_kept(np.array(inertia)),
        wind=as_kept(np.array(wind)),
        gyro_frames=np.arange(frames.shape[1], dtype=np.int32),
        gyro=np.array([gyroscopic(shapes.mean(axis=0), mass * frames[:, k]) for k in range(frames.shape[1])]),
        cubature=replace(model.cubature, stiffness_correction=np.zeros((poses, r, r))),
        modes_order=1.0 / np.arange(1, r + 1),
        frequencies=frequencies,
    )


def gyroscopic(V: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(9, r, r): Γ_a = VᵀM[e_a]×V, and Θ_ab = VᵀM[e_a]×[e_b]×V, off the diagonal the sum of ab and ba."""
    crosses = skew(np.eye(3))
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    squares = [crosses[a] @ crosses[b] + (crosses[b] @ crosses[a] if a != b else 0.0) for a, b in pairs]
    products = np.einsum("nia,n,cij,njb->cab", V, mass, np.concatenate([crosses, squares]), V, optimize=True)
    return as_kept(products)


def as_kept(matrices: np.ndarray) -> np.ndarray:
    """Rounded as the stepper keeps them, so that a comparison can be exact."""
    return matrices.astype(np.float32).astype(np.float64)


def mapped(model, seed=0, own=1, flexible=False, beside_tets=False):
    """The model with a stiffness map of random components over its features: `own` of poses, springs of the last pose,
    two learned; where it is `flexible`, those of the flexibility of a stiffness of the same size; `beside_tets`: of
    what the tets miss."""
    rng = np.random.default_rng(seed)
    r = model.mode_count
    columns = np.flatnonzero(model.poses.feature_weights).astype(np.int32)
    groups = np.array(sorted({0, len(columns) // 2, len(columns)}), np.int32)
    matrices = rng.normal(size=(own + 3, r, r))
    matrices = matrices + matrices.transpose(0, 2, 1)
    matrices[:own] += 200.0 * np.eye(r)
    if flexible:
        others = np.r_[:own, own + 1 : own + 3]
        matrices[others] /= 200.0**2
    matrices = as_kept(matrices)
    known = StiffnessMap(
        columns,
        groups,
        np.full(len(groups) - 1, 0.7),
        0.3 * rng.normal(size=(5, len(columns))),
        0.6,
        np.array([1.3, 0.4])[: len(groups) - 1],
        rng.normal(size=(5, 2)),
        matrices,
        np.array([len(model.poses) - 1], np.int32),
        flexible,
        beside_tets,
    )
    return replace(model, cubature=replace(model.cubature, stiffness_map=known))


def followed(model: PoseSpaceModel, seed: int = 3) -> PoseSpaceModel:
    """The model with random followers: of the first region, of the last, in steps, of three mixtures."""
    rng = np.random.default_rng(seed)
    model = mapped(model, flexible=True)
    regions = np.sort(np.unique(model.region_of_mode)[[0, 0, -1, -1, -1]]).astype(np.int32)
    moving = model.shapes[0].any(axis=1)
    fields = np.zeros((len(model.vertices), 3, 5))
    for k, region in enumerate(regions):
        reached = moving[:, model.region_of_mode == region].any(axis=1)
        fields[reached, :, k] = 10.0**-k * rng.normal(size=(int(reached.sum()), 3))
    r, learned = model.mode_count, model.cubature.stiffness_map.coefficients.shape[1]
    sizes = {"mean": (5, r), "left": (5, 4), "core": (3, 4, 2), "right": (2, r), "mixing": (3, learned)}
    parts = {name: rng.normal(size=size).astype(np.float32).astype(np.float64) for name, size in sizes.items()}
    return replace(model, followers=Followers(*in_steps(fields), regions, **parts))


def with_more_mass(model: PoseSpaceModel) -> PoseSpaceModel:
    """The model, of one basis, with a rest that goes along with its modes."""
    beside = np.random.default_rng(3).integers(-4, 5, size=(5, model.mode_count)) / 16.0
    return replace(model, carried_mass=beside.T @ beside)


def inertia_mapped(model, seed=0):
    """The model with an inertia map of random components over its features, and a rest that yields at random."""
    rng = np.random.default_rng(seed)
    columns = np.flatnonzero(model.poses.feature_weights).astype(np.int32)
    count, poses, (bones, r) = 7, len(model.poses), (model.frame_count, model.mode_count)
    scale = np.abs(model.inertia).max()
    components = scale * rng.normal(size=(count, r, 12))
    components[2:4, : r // 2] = 0.0
    known = InertiaMap(
        columns,
        np.array([0, len(columns)], np.int32),
        np.full(1, 0.9),
        0.3 * rng.normal(size=(5, len(columns))),
        1.0,
        np.full(1, 0.8),
        rng.normal(size=(5, count)),
        0.1 * rng.normal(size=(poses, count)),
        np.arange(count, dtype=np.int32) * bones // count,
        as_kept(components),
        as_kept(scale * rng.normal(size=(r, 3 * poses * bones))),
        np.array([1, 2, 6], np.int32),
        as_kept(scale * rng.normal(size=(3, r, 3 * poses))),
    )
    own = model.inertia[0, :, : 12 * bones]
    # The stepper keeps the sum of both.
    yielding = as_kept(own + 0.1 * scale * rng.normal(size=own.shape)) - own
    return replace(model, inertia_map=known, yielding=yielding)


def offsets(model, poses, vertices):
    """(f, n̄, 3) from plain skinning."""
    return vertices - np.array([model.rig.positions(model.corrected(p)) for p in poses])


def coarse(model, every=12):
    """The model with fewer cubature tets."""
    cubature = model.cubature
    few = {name: getattr(cubature, name)[:, ::every] for name in ("young", "poisson")}
    return replace(
        model,
        cubature=replace(cubature, tets=cubature.tets[::every], weights=every * cubature.weights[:, ::every], **few),
    )
