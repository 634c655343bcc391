"""The flower in domains and the planted oak: sound meshes, true trees, held where they should be."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softrig.bases.derivatives import derivative_basis
from softrig.bases.modes import linear_modes
from softrig.bodies.divided import chessboard_tets
from softrig.bodies.flower import flower
from softrig.bodies.oak import oak
from softrig.errors import InputError
from softrig.forces.polynomial import reduce_body
from softrig.meshing.embedding import embed_points
from softrig.models.full import FullBody

TET_FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])

the_flower = cache(flower)
the_oak = cache(oak)


def shared_faces(mesh):
    """Pairs of elements (p, 2) and the face (p, 3) between them."""
    faces = np.sort(mesh.elements[:, TET_FACES].reshape(-1, 3), axis=1)
    order = np.lexsort(faces.T)
    same = np.nonzero((faces[order[1:]] == faces[order[:-1]]).all(axis=1))[0]
    return np.stack([order[same], order[same + 1]], axis=1) // 4, faces[order[same]]


def domain_interfaces(body):
    """The vertices of the faces between each two domains that share some."""
    pairs, faces = shared_faces(body.mesh)
    domains = np.sort(body.domains[pairs], axis=1)
    between = domains[:, 0] != domains[:, 1]
    return {
        (int(a), int(b)): np.unique(faces[(domains == (a, b)).all(axis=1)])
        for a, b in np.unique(domains[between], axis=0)
    }


def vertex_neighbours(body):
    """Pairs of domains that share a vertex, and the vertices each two share."""
    count = len(body.domain_names)
    touched = np.zeros((count, len(body.mesh.vertices)), np.bool_)
    for domain in range(count):
        touched[domain, body.mesh.elements[body.domains == domain]] = True
    return {
        (a, b): np.nonzero(touched[a] & touched[b])[0]
        for a in range(count)
        for b in range(a + 1, count)
        if (touched[a] & touched[b]).any()
    }


def parents_in(edges, count):
    parent = {0: -1}
    while len(parent) < count:
        found = {b: a for a, b in (*edges, *((b, a) for a, b in edges)) if a in parent and b not in parent}
        assert found, "domains without a way to the root"
        parent |= found
    return parent


def test_flower_is_as_big_as_the_paper_has_it():
    body = the_flower()
    assert 7000 <= len(body.mesh.elements) <= 8000
    assert 2000 <= len(body.mesh.vertices) <= 3000
    assert len(body.domain_names) == len(set(body.domain_names)) == 12
    assert np.ptp(body.mesh.vertices[:, 2]) == pytest.approx(0.5, abs=0.05)
    assert body.mesh.vertices[:, 2].min() == 0.0
    assert body.colours.shape == body.mesh.vertices.shape
    assert 0.0 <= body.colours.min() < body.colours.max() <= 1.0


def test_flower_is_one_sound_mesh():
    mesh = the_flower().mesh
    assert mesh.part_of_element.max() == 0
    assert mesh.volumes.min() > 0.0
    corners = mesh.vertices[mesh.elements]
    longest = max(np.linalg.norm(corners[:, a] - corners[:, b], axis=1).max() for a in range(4) for b in range(a))
    assert longest < 0.05
    # Two triangles at every edge of the surface: nothing hangs by an edge.
    triangles = mesh.boundary_triangles
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


def test_flower_tets_are_no_slivers():
    mesh = the_flower().mesh
    corners = mesh.vertices[mesh.elements]
    sides = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=-1)
    root_mean_square = np.sqrt((sides**2).sum(axis=(1, 2)) / 12.0)
    quality = 6.0 * np.sqrt(2.0) * mesh.volumes / root_mean_square**3
    assert quality.min() > 0.01
    assert np.median(quality) > 0.35


def test_every_domain_hangs_together():
    body = the_flower()
    assert body.domains.shape == (len(body.mesh.elements),)
    assert np.array_equal(np.unique(body.domains), np.arange(len(body.domain_names)))
    pairs, _ = shared_faces(body.mesh)
    for domain in range(len(body.domain_names)):
        mine = np.nonzero(body.domains == domain)[0]
        inside = pairs[(body.domains[pairs] == domain).all(axis=1)]
        graph = coo_array((np.ones(len(inside)), tuple(np.searchsorted(mine, inside).T)), shape=(len(mine),) * 2)
        assert connected_components(graph, directed=False)[0] == 1, body.domain_names[domain]


def test_domains_form_a_tree_by_faces_and_by_vertices():
    body = the_flower()
    by_faces, by_vertices = domain_interfaces(body), vertex_neighbours(body)
    assert set(by_faces) == set(by_vertices)
    assert len(by_faces) == len(body.domain_names) - 1
    parent = parents_in(by_faces, len(body.domain_names))
    names = {body.domain_names[a]: body.domain_names[b] for a, b in parent.items() if b >= 0}
    assert {name for name, above in names.items() if above == "bloom"} == {f"petal {i}" for i in range(1, 6)}
    assert {name for name, above in names.items() if above == "side stem"} == {"side bloom", "side leaf"}
    assert {name for name, above in names.items() if above == "stem"} == {
        "bloom", "side stem", "left leaf", "right leaf"
    }  # fmt: skip


def test_interfaces_are_small_flat_and_apart():
    body = the_flower()
    interfaces = domain_interfaces(body)
    by_vertices = vertex_neighbours(body)
    for pair, vertices in interfaces.items():
        # All that two domains share are the vertices of the faces between them.
        assert np.array_equal(vertices, by_vertices[pair])
        assert 4 <= len(vertices) <= 25
        points = body.mesh.vertices[vertices]
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        assert spread[2] < 1e-6 * spread[0]
        assert spread[1] > 0.3 * spread[0]
        assert np.ptp(points, axis=0).max() < 0.03
    everything = np.concatenate(list(interfaces.values()))
    assert len(np.unique(everything)) == len(everything)


def test_flower_is_held_at_the_ground_and_nowhere_else():
    body = the_flower()
    held = body.mesh.vertices[body.fixed]
    assert body.fixed.dtype == np.bool_
    assert len(held) >= 6
    assert (held[:, 2] == 0.0).all()
    assert (body.mesh.vertices[~body.fixed][:, 2] > 0.0).all()
    assert np.isin(np.nonzero(body.fixed)[0], body.mesh.elements[body.domains == 0]).all()
    assert not np.isin(np.nonzero(body.fixed)[0], body.mesh.elements[body.domains != 0]).any()


def test_flower_sways_about_once_a_second():
    body = the_flower()
    material = body.material()
    assert body.young.shape == (12,)
    assert np.array_equal(material.young, body.young[body.domains])
    frequencies = linear_modes(FullBody(body.mesh, material, fixed=body.fixed), 6).frequencies
    assert 0.8 < frequencies[0] < 1.5
    assert frequencies[-1] < 3.5  # and the side stem, the leaves and the petals soon after


def test_the_same_flower_every_time():
    one, other = flower(), flower()
    for name in ("domains", "fixed", "colours"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.mesh.vertices, other.mesh.vertices)
    np.testing.assert_array_equal(one.mesh.elements, other.mesh.elements)


def test_chessboard_tets_fill_the_bricks():
    bricks = np.array([[0, 1, 4, 3, 6, 7, 10, 9], [1, 2, 5, 4, 7, 8, 11, 10]])
    z, y, x = np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0, 1.0, 2.0], indexing="ij")
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    corners = points[chessboard_tets(bricks, 12)]
    volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6.0
    np.testing.assert_allclose(np.sort(volumes), [1 / 6] * 8 + [1 / 3] * 2)


def test_three_bricks_about_an_edge_have_no_chessboard():
    # A hexagon in three quads is fine; a triangle in three, whose corners are all neighbours of one another, is not.
    quads = np.array([[0, 1, 2, 3], [0, 3, 4, 1]])
    good = np.column_stack([quads, quads + 5])
    assert chessboard_tets(good, 10).shape == (10, 4)
    quads = np.array([[0, 1, 2, 3], [0, 3, 1, 4]])
    bad = np.column_stack([quads, quads + 5])
    with pytest.raises(InputError, match="no chessboard"):
        chessboard_tets(bad, 10)


def test_apart_bricks_are_refused():
    with pytest.raises(InputError, match="hang together"):
        chessboard_tets(np.arange(16).reshape(2, 8), 16)


def test_oak_has_as_many_limbs_as_the_paper_has():
    tree = the_oak()
    names = [limb.shape for limb in tree.limbs]
    assert names.count("leaf") == 1394
    assert len(names) - names.count("leaf") == 41
    assert set(names) == set(tree.shapes)
    assert len(tree.shapes) == 6
    assert tree.depths().max() == 5


def test_parents_come_before_children():
    tree = the_oak()
    assert tree.limbs[0].parent == -1
    for i, limb in enumerate(tree.limbs[1:], start=1):
        assert 0 <= limb.parent < i
        assert tree.limbs[limb.parent].shape != "leaf"
        assert limb.scale > 0.0
        np.testing.assert_allclose(limb.rotation @ limb.rotation.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(limb.rotation) > 0.0


@pytest.mark.parametrize("name", ["trunk", "bough", "crooked bough", "branch", "twig"])
def test_the_whole_base_of_each_limb_is_in_its_parents_wood(name):
    tree = the_oak()
    mesh = tree.shapes[name].mesh
    bases = []
    for limb in tree.limbs[1:]:
        if tree.limbs[limb.parent].shape == name:
            shape = tree.shapes[limb.shape]
            base = limb.scale / tree.limbs[limb.parent].scale * shape.mesh.vertices[shape.held]
            bases += [limb.at[None], limb.at + base @ limb.rotation.T]
    points = np.concatenate(bases)
    carried = embed_points(mesh, points)
    assert not carried.outside.any()
    np.testing.assert_allclose(carried.carry(mesh.vertices), points, atol=1e-9)


@pytest.mark.parametrize("name", ["trunk", "bough", "crooked bough", "branch", "twig", "leaf"])
def test_shapes_are_sound_and_held_at_their_base(name):
    shape = the_oak().shapes[name]
    mesh = shape.mesh
    fewest, most = (300, 500) if name == "leaf" else (300, 3000)
    assert fewest <= len(mesh.elements) <= most
    assert mesh.volumes.min() > 0.0
    assert mesh.part_of_element.max() == 0
    base = mesh.vertices[shape.held]
    assert len(base) >= 4
    np.testing.assert_array_equal(base[:, 2], 0.0)
    assert (mesh.vertices[~shape.held][:, 2] > 0.0).all()
    assert np.linalg.matrix_rank(base[:, :2] - base[:, :2].mean(axis=0), tol=1e-4) == 2
    np.testing.assert_allclose(base.mean(axis=0), 0.0, atol=1e-12)
    assert shape.colours.shape == mesh.vertices.shape
    assert 0.0 <= shape.colours.min() < shape.colours.max() <= 1.0


@pytest.mark.parametrize("name", ["trunk", "bough", "crooked bough", "branch", "twig", "leaf"])
def test_shapes_sway_slowly_enough_to_be_seen(name):
    shape = the_oak().shapes[name]
    first = linear_modes(FullBody(shape.mesh, shape.material(), fixed=shape.held), 2).frequencies[0]
    slowest, fastest = (1.5, 3.5) if name == "leaf" else (2.0, 4.5)  # half of that under what the wood carries
    assert slowest < first < fastest


@pytest.mark.parametrize("name", ["twig", "leaf"])
def test_shapes_can_be_reduced(name):
    shape = the_oak().shapes[name]
    body = FullBody(shape.mesh, shape.material(), fixed=shape.held)
    model = reduce_body(body, derivative_basis(body, size=8).shapes)
    assert model.size == 8


def test_oak_is_as_tall_as_told_and_spreads_to_all_sides():
    tree = the_oak()
    origins, rotations = tree.frames()
    elements = sum(len(tree.shapes[limb.shape].mesh.elements) for limb in tree.limbs)
    assert 500_000 < elements < 750_000  # 626,734 in the paper
    points = np.concatenate(
        [
            origin + (limb.scale * tree.shapes[limb.shape].mesh.vertices) @ turn.T
            for limb, origin, turn in zip(tree.limbs, origins, rotations, strict=True)
        ]
    )
    assert points[:, 2].min() == 0.0
    assert points[:, 2].max() == pytest.approx(4.5, abs=0.1)
    assert (points[:, :2].min(axis=0) < -1.3).all()
    assert (points[:, :2].max(axis=0) > 1.3).all()
    leaves = np.array([limb.shape == "leaf" for limb in tree.limbs])
    assert origins[leaves][:, 2].min() > 1.0
    # The upper side of a leaf is its +y: most look up, and most leaves point out of the crown.
    assert (rotations[leaves][:, 2, 1] > 0.0).mean() > 0.9
    outward = origins[leaves] - np.array([0.0, 0.0, 2.3])
    assert (np.einsum("ij,ij->i", rotations[leaves][:, :, 2], outward) > 0.0).mean() > 0.8


def test_the_same_oak_every_time():
    one, other = oak(), oak()
    assert one.shapes.keys() == other.shapes.keys()
    for name, shape in one.shapes.items():
        np.testing.assert_array_equal(shape.mesh.vertices, other.shapes[name].mesh.vertices)
        np.testing.assert_array_equal(shape.mesh.elements, other.shapes[name].mesh.elements)
        np.testing.assert_array_equal(shape.held, other.shapes[name].held)
    for a, b in zip(one.limbs, other.limbs, strict=True):
        assert (a.shape, a.parent, a.scale) == (b.shape, b.parent, b.scale)
        np.testing.assert_array_equal(a.at, b.at)
        np.testing.assert_array_equal(a.rotation, b.rotation)


@pytest.mark.parametrize("leaves", [0, 1, 57, 3000])
def test_any_number_of_leaves_on_the_same_wood(leaves):
    tree = oak(leaves=leaves)
    assert sum(limb.shape == "leaf" for limb in tree.limbs) == leaves
    for mine, usual in zip(tree.limbs[:41], the_oak().limbs[:41], strict=True):
        np.testing.assert_array_equal(mine.rotation, usual.rotation)


@pytest.mark.parametrize("leaves", [-1, 1.5, True, 1_000_000, "many"])
def test_an_impossible_number_of_leaves_is_refused(leaves):
    with pytest.raises(InputError, match="leaves must be a whole number within 0 and 100,000, not"):
        oak(leaves=leaves)
