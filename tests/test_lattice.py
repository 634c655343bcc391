"""The lattice mesher: volume, count and angles over many shapes; broken soups; thin and fused parts."""

from __future__ import annotations

import json
import re
import struct
import warnings
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from softrig import bodies
from softrig.errors import EmptyMeshError, IndexRangeError, InputError, NotFiniteError, Notice
from softrig.meshing.embedding import embed_points
from softrig.meshing.lattice import LatticeMesh, tet_mesh
from softrig.meshing.notices import KnownBones, tell_quality
from softrig.meshing.quality import dihedral_angles, tet_volumes
from softrig.meshing.repair import Mended, hinge_count, mend
from softrig.meshing.soup_tree import build_tree, nearest_points, winding_numbers
from soups_for_tests import box, divergence_volume, joined, moved, sheet, sphere, torus, turned

SHAPES = {"sphere": sphere(), "torus": torus(), "box": box(), "flat box": box((1.0, 0.8, 0.15))}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def meshed(soup, tets=3000, **options) -> tuple[LatticeMesh, list[str]]:
    """The mesh and the notices it drew."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        lattice = tet_mesh(*soup, tets=tets, **options)
    return lattice, [str(entry.message) for entry in caught if issubclass(entry.category, Notice)]


@cache
def body_mesh(name: str, tets: int) -> LatticeMesh:
    soup = getattr(bodies, name)()
    return meshed((soup.vertices, soup.triangles), tets)[0]


def assert_sound(lattice: LatticeMesh, soup, least_angle: float = 10.0) -> None:
    """What must hold whatever the soup: wound, shaped, manifold, carrying the surface, telling the truth."""
    mesh, quality = lattice.mesh, lattice.quality
    angles = dihedral_angles(mesh.vertices, mesh.elements)
    assert (tet_volumes(mesh.vertices, mesh.elements) > 0.0).all()
    assert angles.min() >= least_angle
    assert angles.max() <= 165.0
    assert quality.smallest_dihedral == pytest.approx(angles.min())
    assert quality.largest_dihedral == pytest.approx(angles.max())
    assert quality.tets == len(mesh.elements)
    assert quality.parts == mesh.part_of_element.max() + 1
    assert quality.mesh_volume == pytest.approx(mesh.volumes.sum())
    assert quality.pinched_edges == 0
    edges = Counter()
    for triangle in mesh.boundary_faces.tolist():
        for k in range(3):
            edges[frozenset((triangle[k], triangle[k - 1]))] += 1
    assert set(edges.values()) == {2}, "the boundary is a closed manifold"
    assert hinge_count(mesh.elements) == 0
    size = np.ptp(soup[0], axis=0).max()
    carried = lattice.embedding.carry(mesh.vertices)
    np.testing.assert_allclose(carried, soup[0], rtol=0, atol=1e-10 * size)
    assert quality.smallest_weight == lattice.embedding.weights.min()


@pytest.mark.parametrize("name", ["sphere", "torus", "box"])
def test_volume_converges_to_the_surface(name):
    """The least offset is 0.15 spacings, so the error falls with the first power of the spacing."""
    soup = SHAPES[name]
    exact = divergence_volume(*soup)
    coarse, fine = (meshed(soup, tets)[0] for tets in (1000, 12000))
    errors = [lattice.quality.mesh_volume / exact - 1.0 for lattice in (coarse, fine)]
    order = np.log(errors[0] / errors[1]) / np.log(coarse.spacing / fine.spacing)
    assert 0.0 < errors[1] < 0.12
    assert 0.8 < order < 2.0
    assert fine.quality.surface_volume == pytest.approx(exact)
    assert fine.density_factor * fine.mesh.volumes.sum() == pytest.approx(exact)
    assert fine.quality.volume_ratio == pytest.approx(errors[1] + 1.0)


@pytest.mark.parametrize("tets", [300, 2000, 9000])
@pytest.mark.parametrize("name", SHAPES)
def test_count_is_met_within_ten_percent(name, tets):
    lattice, _ = meshed(SHAPES[name], tets)
    assert lattice.quality.tets == pytest.approx(tets, rel=0.1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SHAPES)
def test_sound_under_any_rotation(name, seed):
    soup = turned(SHAPES[name], seed)
    lattice, _ = meshed(soup, 1000 + 700 * seed)
    assert_sound(lattice, soup)
    assert lattice.quality.parts == 1
    assert lattice.quality.smallest_weight > -1.0


@pytest.mark.parametrize(("name", "tets"), [("spoon", 4000), ("heart", 5000), ("footbridge", 6000), ("tower", 4000)])
def test_the_four_bodies(name, tets):
    soup, lattice = getattr(bodies, name)(), body_mesh(name, tets)
    assert_sound(lattice, (soup.vertices, soup.triangles))
    assert lattice.quality.tets == pytest.approx(tets, rel=0.1)
    assert lattice.quality.parts == 1
    assert lattice.quality.share_outside < 0.02


def test_size_and_place_do_not_matter():
    """A micrometre far away and a light-year give the same tets, scaled."""
    points, faces = SHAPES["torus"]
    reference, _ = meshed((points, faces), 2000)
    for scale, shift in ((2.0**-20, 0.0), (2.0**53, 0.0), (1.0, 1024.0)):
        other, _ = meshed((points * scale + shift, faces), 2000)
        assert other.quality.tets == pytest.approx(reference.quality.tets, rel=0.02)
        assert other.spacing / scale == pytest.approx(reference.spacing, rel=0.01)
        assert other.quality.mesh_volume / scale**3 == pytest.approx(reference.quality.mesh_volume, rel=0.01)


def test_the_same_every_time():
    one, other = (meshed(SHAPES["box"], 2000)[0] for _ in range(2))
    assert np.array_equal(one.mesh.vertices, other.mesh.vertices)
    assert np.array_equal(one.mesh.elements, other.mesh.elements)


def test_progress_counts_up():
    calls = []
    meshed(SHAPES["box"], 500, progress=lambda done, total: calls.append((done, total)))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert calls[-1][0] == calls[-1][1]


def open_sphere():
    points, faces = sphere()
    return points, faces[points[faces].mean(axis=1)[:, 2] < 0.8]


def fin():
    """A closed box with a triangle standing on one of its edges: three faces share an edge."""
    points, faces = box()
    return np.concatenate([points, [[0.5, -0.4, 0.25]]]), np.concatenate([faces, [[0, 1, 8]]])


BROKEN = {
    "open": open_sphere(),
    "non-manifold": fin(),
    "self-intersecting": joined(sphere(), moved(sphere(), (0.9, 0.1, 0.2))),
    "duplicate faces": (sphere()[0], np.concatenate([sphere()[1], sphere()[1][::3]])),
    "drawn from both sides": (sphere()[0], np.concatenate([sphere()[1], sphere()[1][:, ::-1]])),
    "inside out": (sphere()[0], sphere()[1][:, ::-1]),
    "isolated vertices": (np.concatenate([sphere()[0], [[3.0, 0, 0], [0, 0, 0]]]), sphere()[1]),
    "flipped triangles": (sphere()[0], np.where((np.arange(512) % 9 == 0)[:, None], sphere()[1][:, ::-1], sphere()[1])),
    "degenerate triangles": (sphere()[0], np.concatenate([sphere()[1], [[0, 0, 1], [5, 5, 5]]])),
    "unwelded": (sphere()[0][sphere()[1]].reshape(-1, 3), np.arange(3 * 512).reshape(-1, 3)),
    "hollow": joined(sphere(), (0.6 * sphere()[0], sphere()[1][:, ::-1])),
    "one triangle": (np.eye(3), np.array([[0, 1, 2]])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_soups_give_sound_meshes(name):
    lattice, _ = meshed(BROKEN[name], 1500)
    assert_sound(lattice, BROKEN[name])
    assert lattice.quality.tets == pytest.approx(1500, rel=0.1)
    assert lattice.quality.parts == 1


@pytest.mark.parametrize(
    ("name", "share"),
    [("open", 0.85), ("duplicate faces", 1.0), ("drawn from both sides", 1.0), ("inside out", 1.0), ("unwelded", 1.0)],
)
def test_broken_spheres_are_still_filled(name, share):
    whole = divergence_volume(*sphere())
    lattice, _ = meshed(BROKEN[name], 1500)
    assert lattice.quality.surface_volume >= 0.97 * share * whole
    assert lattice.quality.surface_volume <= 1.02 * whole


def test_overlaps_count_once():
    one, other = divergence_volume(*sphere()), meshed(BROKEN["self-intersecting"], 3000)[0].quality.surface_volume
    apart = np.linalg.norm([0.9, 0.1, 0.2])
    lens = np.pi * (4.0 + apart) * (2.0 - apart) ** 2 / 12.0 * one / (4.0 * np.pi / 3.0)
    assert other == pytest.approx(2.0 * one - lens, rel=0.02)


def test_a_hollow_stays_hollow():
    lattice, _ = meshed(BROKEN["hollow"], 8000)
    middles = lattice.mesh.vertices[lattice.mesh.elements].mean(axis=1)
    assert np.linalg.norm(middles, axis=1).min() > 0.4


def test_two_bodies_are_two_parts_and_said():
    soup = joined(sphere(), moved(box(), (3.0, 0.0, 0.0)))
    lattice, notices = meshed(soup, 3000)
    assert_sound(lattice, soup)
    assert lattice.quality.parts == 2
    assert any("2 parts share no face" in text for text in notices)


def test_a_sheet_becomes_a_slab_with_its_own_mass():
    lattice, notices = meshed(sheet(), 2000)
    assert_sound(lattice, sheet())
    assert lattice.density_factor == 1.0
    assert any("encloses next to nothing" in text for text in notices)
    height = np.ptp(lattice.mesh.vertices[:, 2])
    assert 1.0 * lattice.spacing < height < 1.8 * lattice.spacing
    assert lattice.quality.thin_share == 1.0
    assert lattice.quality.share_outside == 0.0


@pytest.mark.parametrize(
    ("vertices", "triangles", "error"),
    [
        (np.zeros((0, 3)), np.zeros((0, 3), int), EmptyMeshError),
        (np.eye(3), np.zeros((0, 3), int), EmptyMeshError),
        (np.zeros((3, 3)), np.array([[0, 1, 2]]), EmptyMeshError),
        (np.arange(9.0).reshape(3, 3), np.array([[0, 1, 2]]), EmptyMeshError),
        (np.array([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]]), np.array([[0, 1, 2]]), NotFiniteError),
        (np.eye(3), np.array([[0, 1, 3]]), IndexRangeError),
        (np.eye(3), np.array([[0, 1, -1]]), IndexRangeError),
        (np.eye(3), np.array([[0.0, 1.0, 2.0]]), InputError),
        (np.eye(4), np.array([[0, 1, 2]]), InputError),
    ],
)
def test_refusals_have_names(vertices, triangles, error):
    with pytest.raises(error):
        tet_mesh(vertices, triangles)


def test_refusals_name_the_culprit():
    points = sphere()[0].copy()
    points[[4, 7]] = np.inf
    with pytest.raises(NotFiniteError) as caught:
        tet_mesh(points, sphere()[1])
    assert caught.value.indices.tolist() == [4, 7]
    with pytest.raises(InputError, match="tets must be within"):
        tet_mesh(*sphere(), tets=3)
    with pytest.raises(InputError, match="bones must have shape"):
        tet_mesh(*sphere(), bones=np.zeros((2, 3)))
    with pytest.raises(NotFiniteError):
        tet_mesh(*sphere(), bones=np.full((1, 2, 3), np.nan))


def ball_and_fingers(gap: float, thick: float = 0.2):
    """A palm with two parallel fingers, `gap` apart."""
    palm = box((1.0, 1.0, 0.5))
    fingers = [box((1.5, thick, thick), low=(0.9, 0.5 + side, 0.15)) for side in (-0.5 * gap - thick, 0.5 * gap)]
    return joined(palm, *fingers)


def test_a_gap_of_more_than_a_cell_and_a_half_stays_open():
    soup = ball_and_fingers(gap=0.3)
    lattice, notices = meshed(soup, 12000)
    assert lattice.spacing * 1.5 < 0.3
    middle = np.array([[x, 0.5, 0.25] for x in np.linspace(1.3, 2.3, 30)])
    assert embed_points(lattice.mesh, middle).outside.all()
    assert lattice.quality.fused_pairs == 0
    assert not any("nearly touching" in text for text in notices)


def test_fused_fingers_are_said_with_their_place():
    soup = ball_and_fingers(gap=0.02)
    lattice, notices = meshed(soup, 3000)
    assert lattice.quality.fused_pairs > 0
    assert any("nearly touching parts are one" in text for text in notices)
    place = lattice.quality.fused_places[0]
    assert 1.0 < place[0] < 2.4
    assert place[1] == pytest.approx(0.5, abs=0.05)


def test_thin_parts_are_said_with_their_place():
    soup = joined(box((1.0, 1.0, 1.0)), box((1.0, 0.1, 0.1), low=(0.95, 0.45, 0.45)))
    lattice, notices = meshed(soup, 6000)
    (told,) = [text for text in notices if "of the surface is under two cells thick, at 1 place: (" in text]
    wanted = re.search(r"; more tets.* help: about ([\d,]+) would do for half of it$", told)
    assert wanted is not None
    more, _ = meshed(soup, int(wanted[1].replace(",", "")))
    assert more.quality.thin_share < 0.75 * lattice.quality.thin_share
    assert len(lattice.quality.thin_places) == 1
    assert lattice.quality.thin_places[0] == pytest.approx([1.5, 0.5, 0.5], abs=0.15)
    assert 0.02 < lattice.quality.thin_share < 0.1


@pytest.mark.parametrize("count", [1, 2])
def test_every_notice_of_the_mesh_says_what_helps(count):
    lattice, _ = meshed(SHAPES["sphere"], 500)
    places = np.zeros((count, 3))
    quality = replace(
        lattice.quality,
        parted_vertices=count,
        removed_tets=count,
        parts=2,
        pinched_edges=count,
        fused_pairs=3,
        fused_places=places,
        thin_share=0.5,
        thin_places=places,
        thin_bones=np.arange(count),
    )
    mended = Mended(lattice.mesh.vertices, np.zeros((4, 4), int), count, count, np.array([0, 0, 0, 1]), count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        tell_quality(quality, 5 * quality.tets, mended, KnownBones(["hip", "tail"]))
    told = [str(entry.message) for entry in caught]
    assert len(told) == 7
    assert all("more tets" in text or "another number" in text for text in told)
    assert ["([mesh] tets in the project file, --tets, or" in text for text in told] == [True] + [False] * 6, "once"
    words = " ".join(told)
    one = ("1 vertex doubled", "1 tet removed", "1 edge is shared", "at 1 place:")
    several = ("2 vertices doubled", "2 tets removed", "2 edges are shared", "at 2 places:")
    assert [part in words for part in one] == [count == 1] * 4
    assert [part in words for part in several] == [count == 2] * 4


def test_a_thick_body_draws_no_notice():
    assert meshed(SHAPES["sphere"], 6000)[1] == []
    assert meshed(box((1.0, 1.0, 1.0)), 6000)[1] == []


def test_thin_parts_are_not_lost():
    """A rod a third of a cell thick stays whole, and holds nearly all of its surface."""
    rod = box((3.0, 0.05, 0.05), low=(0.4, 0.1, 0.1))
    soup = turned(joined(sphere(), rod), 3)
    lattice, _ = meshed(soup, 4000)
    assert lattice.spacing > 0.13
    assert lattice.quality.parts == 1
    assert lattice.quality.share_outside < 0.02


def test_bones_keep_their_flesh_and_helpers_grow_none():
    points, faces = sphere()
    inside, helper = [[-0.5, 0, 0], [0.5, 0, 0]], [[3.0, 0, 0], [5.0, 0, 0]]
    with_bones, notices = meshed((points, faces), 2000, bones=np.array([inside, helper, [[0, 0, 0]] * 2]))
    without, _ = meshed((points, faces), 2000)
    assert np.array_equal(with_bones.mesh.vertices, without.mesh.vertices)
    assert with_bones.mesh.vertices[:, 0].max() < 1.2
    assert notices == []


def test_a_bone_in_a_thin_part_has_flesh_all_around():
    soup = joined(sphere(), box((2.0, 0.02, 0.02), low=(0.5, -0.01, -0.01)))
    bone = np.array([[[1.3, 0.0, 0.0], [2.3, 0.0, 0.0]]])
    lattice, _ = meshed(soup, 3000, bones=bone)
    angles = np.linspace(0.0, 2.0 * np.pi, 12)
    around = np.stack([0.0 * angles, np.cos(angles), np.sin(angles)], axis=1) * 0.4 * lattice.spacing
    places = (np.linspace([1.3, 0.0, 0.0], [2.3, 0.0, 0.0], 9)[:, None] + around).reshape(-1, 3)
    assert embed_points(lattice.mesh, places).outside.mean() < 0.05


def test_a_thin_bone_is_named():
    soup = joined(sphere(), box((2.0, 0.1, 0.1), low=(0.5, -0.05, -0.05)))
    bones = np.array([[[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]], [[1.2, 0.0, 0.0], [2.4, 0.0, 0.0]]])
    lattice, notices = meshed(soup, 3000, bones=bones)
    assert lattice.quality.thin_bones.tolist() == [1]
    assert any("bones in parts under two cells thick" in text and "[index 1]" in text for text in notices)
    _, notices = meshed(soup, 3000, bones=bones, bone_names=["spine", "tail"])
    assert any("bones in parts under two cells thick: 'tail'" in text for text in notices)
    assert not any("index" in text for text in notices if "bones" in text)
    assert any("under two cells thick, at 1 place: by 'tail' (" in text for text in notices)


def test_places_are_known_by_the_nearest_bone():
    bones = KnownBones(["spine", "tail"], np.array([[[0, 0, 0], [1.0, 0, 0]], [[1.0, 0, 0], [1.0, 2.0, 0]]]))
    assert bones.nearest(np.array([0.2, 0.3, 0.0])) == "spine"
    assert bones.nearest(np.array([0.9, 1.0, 0.0])) == "tail"
    assert bones.nearest(np.array([1.0, 9.0, 0.0])) == "tail"
    assert KnownBones(["spine"]).nearest(np.zeros(3)) is None
    assert KnownBones().nearest(np.zeros(3)) is None


def lattice_pair(shared: int) -> tuple[np.ndarray, np.ndarray]:
    """Two tets that share 1, 2 or 3 vertices."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [-0.5, -0.5, -1]], float)
    other = {1: [0, 5, 4, 6], 2: [0, 1, 5, 6], 3: [0, 1, 2, 6]}[shared]
    tets = np.array([[0, 1, 2, 3], other])
    wrong = tet_volumes(points, tets) < 0.0
    tets[wrong] = tets[wrong][:, [1, 0, 2, 3]]
    return points, tets


@pytest.mark.parametrize(("shared", "hinges", "parted"), [(1, 1, 1), (2, 1, 2), (3, 0, 0)])
def test_hinges_are_counted_and_parted(shared, hinges, parted):
    points, tets = lattice_pair(shared)
    assert hinge_count(tets) == hinges
    mended = mend(points, tets, crumb=0.0)
    assert mended.parted == parted
    assert mended.removed == 0
    assert len(np.unique(mended.part_of_tet)) == hinges + 1
    assert np.allclose(mended.vertices[mended.tets], points[tets])


def test_crumbs_go_but_never_everything():
    points, tets = lattice_pair(1)
    assert len(mend(points, tets, crumb=1e9).tets) == 1


def test_a_ring_closed_by_an_edge_is_opened():
    """Two fans about one edge that meet again around its ends: only removing tets parts them."""
    lattice = meshed(SHAPES["torus"], 2000)[0].mesh
    edge = lattice.elements[0, :2]
    about = np.nonzero(np.isin(lattice.elements, edge).sum(axis=1) == 2)[0]
    # Take two opposite tets of the ring about the edge away.
    keep = np.ones(len(lattice.elements), bool)
    keep[about[[0]]] = False
    shares = [np.isin(lattice.elements[t], lattice.elements[about[0]]).sum() for t in about]
    keep[about[int(np.argmin(shares))]] = False
    mended = mend(lattice.vertices, lattice.elements[keep].astype(np.int64), crumb=0.0)
    assert mended.pinched_edges == 0
    assert hinge_count(mended.tets) == 0


def test_winding_numbers_and_distances_equal_igl():
    import igl

    soup = bodies.spoon()
    faces = soup.triangles.astype(np.int64)
    rng = np.random.default_rng(5)
    low, high = soup.vertices.min(axis=0), soup.vertices.max(axis=0)
    queries = rng.uniform(low, high, (500, 3))
    tree = build_tree(soup.vertices, faces)
    distance, triangle, place = nearest_points(tree, queries, np.inf)
    squared, _, nearest = igl.point_mesh_squared_distance(queries, soup.vertices, faces)
    np.testing.assert_allclose(distance, np.sqrt(squared), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(place, nearest, atol=1e-9)
    assert (triangle >= 0).all()
    exact = igl.winding_number(soup.vertices, faces, queries)
    assert np.abs(winding_numbers(tree, queries) - exact).max() < 0.15
    bounded, found, _ = nearest_points(tree, queries, 0.01)
    np.testing.assert_allclose(bounded, np.minimum(distance, 0.01))
    assert ((found == -1) == (distance >= 0.01)).all()


def character_soup(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All triangles of a GLB with positions as stored: enough to mesh, no transforms."""
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    content, binary = json.loads(data[20 : 20 + length]), data[28 + length :]

    def array(index):
        accessor = content["accessors"][index]
        view = content["bufferViews"][accessor["bufferView"]]
        dtype = {5121: "u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}[accessor["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3}[accessor["type"]]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        step = view.get("byteStride", np.dtype(dtype).itemsize * width)
        shape, strides = (accessor["count"], width), (step, np.dtype(dtype).itemsize)
        return np.ndarray(shape, dtype, binary, start, strides)

    soups = []
    for mesh in content["meshes"]:
        for primitive in mesh["primitives"]:
            points = array(primitive["attributes"]["POSITION"]).astype(float)
            flat = array(primitive["indices"]).astype(np.int64) if "indices" in primitive else np.arange(len(points))
            soups.append((points, flat.reshape(-1, 3)))
    return joined(*soups)


FILES = [
    "AnimatedMorphCube",
    "CesiumMan",
    "Fox",
    "MorphStressTest",
    "RecursiveSkeletons",
    "RiggedFigure",
    "RiggedSimple",
]


@pytest.mark.parametrize("name", FILES)
def test_character_files(name):
    path = DATA / f"{name}.glb"
    if not path.exists():
        pytest.skip(f"{path} is not there: the shared data is no part of the project")
    soup = character_soup(path)
    lattice, _ = meshed(soup, 4000)
    assert_sound(lattice, soup)
    assert lattice.quality.tets == pytest.approx(4000, rel=0.1)
    assert lattice.quality.smallest_weight > -2.0
