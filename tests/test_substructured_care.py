"""Trees of domains under ill treatment: crushed, flung, damped beyond measure, held oddly, planted wrongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softrig.bodies import divide
from softrig.bodies.divided import Limb, LimbShape, PlantedTree
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, Notice
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.kernels.polar import fitted_rotation, polar_rotation
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.numerics.rotations import quaternion_matrices, quaternions_from_vectors
from softrig.pipeline.substructuring import substructure

BEAM = box_tets((1.0, 0.12, 0.1), (24, 2, 2))
QUARTERS = (4.0 * BEAM.vertices[BEAM.elements].mean(axis=1)[:, 0]).astype(int)
SOFT = {"young": 2e5, "poisson": 0.3, "density": 1000.0}


def beam(modes: int = 12):
    return substructure(divide(BEAM, QUARTERS, fixed=BEAM.vertices[:, 0] == 0.0, **SOFT), modes=modes)


def turned(vector) -> np.ndarray:
    return quaternion_matrices(quaternions_from_vectors(np.asarray(vector, dtype=np.float64)))


@pytest.mark.parametrize("seed", range(4))
def test_a_frame_goes_on_smoothly_when_its_interface_turns_inside_out(seed):
    random = np.random.default_rng(seed)
    left, right = turned(random.normal(size=3)), turned(random.normal(size=3))
    found = []
    for last in np.linspace(0.02, -0.02, 9):
        R = np.empty((3, 3))
        fitted_rotation(left @ np.diag([1.1, 0.9, last]) @ right, R, np.empty(30))
        found.append(R)
    np.testing.assert_allclose(found, np.broadcast_to(left @ right, (9, 3, 3)), atol=1e-7)


@pytest.mark.parametrize("thin", [1e-1, 1e-2, 1e-3, 3e-4, 1e-4, 1e-6, 0.0])
def test_thin_matrices_have_rotations_that_are_some(thin):
    R, work = np.empty((3, 3)), np.empty(30)
    turn = turned([0.3, -0.8, 0.5])
    polar_rotation(turn @ np.diag([1.0, 1.0, thin]), R, work)
    np.testing.assert_allclose(R, turn, atol=1e-8)


@pytest.mark.parametrize("alpha", [30.0, 500.0, 5000.0])
def test_mass_damping_is_stable_however_strong(alpha):
    """Deep in honey things fall at g/α, and a bar that turns about its end at up to 1.5 times that at the other."""
    simulation = SubstructuredSimulation(beam(), 1.0 / 180.0, damping=Rayleigh(alpha, 0.0), gravity=(0.0, 0.0, -9.81))
    simulation.run(90)
    sunk = -simulation.positions()[:, 2].min()
    assert 0.5 * 0.5 * 9.81 / alpha < sunk < 1.5 * 0.5 * 9.81 / alpha
    assert not any(simulation.fallbacks)


def test_what_rounds_cannot_settle_is_halved_and_stays_near():
    coarse = SubstructuredSimulation(beam(), 1.0 / 180.0, gravity=(0.0, 0.0, -60.0))
    fine = SubstructuredSimulation(beam(), 1.0 / 2880.0, gravity=(0.0, 0.0, -60.0))
    coarse.run(90)
    fine.run(1440)
    assert coarse.fallbacks.halved > 0
    assert coarse.fallbacks.resets == 0
    assert np.abs(coarse.positions() - fine.positions()).max() < 0.1  # of 0.9 m that the end has moved
    farthest = 0.0
    for _ in range(60):
        coarse.run(6)
        farthest = max(farthest, float(np.abs(coarse.positions()).max()))
    assert farthest < 1.5


def test_drawn_vertices_go_only_where_they_fit():
    simulation = SubstructuredSimulation(beam(2), 1e-3)
    right = np.empty((simulation.model.drawn_count, 3))
    assert simulation.positions(right) is right
    for wrong in (np.empty((2, 3)), right.astype(np.float32), np.empty((3, len(right))).T):
        with pytest.raises(InputError, match="contiguous float64"):
            simulation.positions(wrong)


def test_nan_in_the_state_is_thrown_away():
    simulation = SubstructuredSimulation(beam(2), 1e-3)
    simulation.q[0] = np.nan
    simulation.run(3)
    assert np.isfinite(simulation.positions()).all()
    assert simulation.fallbacks.resets > 0


@pytest.mark.parametrize("setting", [{"gravity": (np.nan, 0.0, 0.0)}, {"tolerance": np.nan}, {"tolerance": -1.0}])
def test_settings_that_are_none_are_refused(setting):
    with pytest.raises(InputError):
        SubstructuredSimulation(beam(2), 1e-3, **setting)


def test_every_piece_of_surface_feels_the_air_once():
    """Also where a cut is jagged, so that a triangle of one domain has all its vertices in another, too."""
    random = np.random.default_rng(1)
    middle = BEAM.vertices[BEAM.elements].mean(axis=1)[:, 0]
    jagged = (middle + 0.05 * random.uniform(-1.0, 1.0, len(middle)) > 0.5).astype(int)
    # Islands would be domains of their own: keep the largest piece of each side.
    body = divide(BEAM, _without_islands(jagged), **SOFT)
    model = substructure(body, modes=2)
    corners = BEAM.vertices[BEAM.boundary_triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    assert sum(np.trace(shape.drag[:9].reshape(3, 3)) for shape in model.shapes) == pytest.approx(area, rel=1e-12)


def _without_islands(domains: np.ndarray) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, one, other = BEAM.inner_faces
    for _ in range(5):
        same = domains[one] == domains[other]
        graph = coo_array((np.ones(same.sum()), (one[same], other[same])), shape=(len(domains),) * 2)
        _, piece = connected_components(graph, directed=False)
        sizes = np.bincount(piece)
        domains = np.where(sizes[piece] < 100, 1 - domains, domains)
    return domains


def test_a_root_that_is_held_altogether_is_rigid():
    body = divide(BEAM, QUARTERS, fixed=BEAM.vertices[:, 0] <= 0.25 + 1e-9, **SOFT)
    assert body.domain_names[0] == "domain 0"
    model = substructure(body, modes=6)
    assert model.sizes[0] == 0
    simulation = SubstructuredSimulation(model, 1.0 / 180.0, gravity=(0.0, 0.0, -9.81))
    simulation.run(60)
    held = BEAM.vertices[:, 0] <= 0.25 + 1e-9
    np.testing.assert_allclose(simulation.positions()[held], BEAM.vertices[held], atol=1e-12)
    assert simulation.positions()[:, 2].min() < -0.05


def test_domains_that_touch_at_an_edge_are_told():
    """A ring of columns, one left out and one cut off: its ends share an edge and no face."""
    block = box_tets((0.3, 0.3, 0.2), (3, 3, 2))
    cell = np.floor(10.0 * block.vertices[block.elements].mean(axis=1)[:, :2]).astype(int)
    number = np.array([[1, 1, 1], [0, -1, 1], [-1, 2, 1]])[cell[:, 0], cell[:, 1]]
    kept = number >= 0
    used, local = np.unique(block.elements[kept], return_inverse=True)
    mesh = VolumeMesh.build(block.vertices[used], local.reshape(-1, 4).astype(np.int32))
    body = divide(mesh, number[kept], **SOFT)
    with pytest.warns(Notice, match="touch at an edge or a corner only"):
        substructure(body, modes=2)


ROD = box_tets((0.06, 0.06, 0.5), (1, 1, 5))
ROD_SHAPE = LimbShape(ROD, ROD.vertices[:, 2] == 0.0, 1e7, 0.3, 700.0, np.full((len(ROD.vertices), 3), 0.4))
ROOT = Limb("rod", -1, np.zeros(3), np.eye(3), 1.0)
TWIG = Limb("rod", 0, np.array([0.03, 0.03, 0.4]), np.eye(3), 0.5)


@pytest.mark.parametrize(
    ("limbs", "named"),
    [
        ((), "at least one limb"),
        ((ROOT, replace(TWIG, parent=5)), "limb 1 .* grows from 5"),
        ((ROOT, replace(TWIG, parent=-1)), "limb 1 .* grows from -1"),
        ((ROOT, replace(TWIG, shape="leaf")), "limb 1 has a shape 'leaf'; there are rod"),
        ((ROOT, replace(TWIG, scale=0.0)), "limb 1 .* positive scale"),
        ((ROOT, replace(TWIG, rotation=2.0 * np.eye(3))), "rotation of limb 1"),
        ((ROOT, replace(TWIG, at=np.array([0.0, np.nan, 0.0]))), "finite place"),
    ],
)
def test_trees_that_cannot_stand_are_refused_by_limb(limbs, named):
    with pytest.raises(InputError, match=named):
        substructure(PlantedTree("tree", {"rod": ROD_SHAPE}, limbs), modes=2)


def test_shapes_without_held_vertices_are_refused_by_name():
    loose = replace(ROD_SHAPE, held=np.zeros(len(ROD.vertices), bool))
    with pytest.raises(InputError, match="shape 'rod' needs a mask"):
        substructure(PlantedTree("tree", {"rod": loose}, (ROOT, TWIG)), modes=2)
