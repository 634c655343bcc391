"""Volume meshes: what is refused and under which name, what is repaired, and the boundary."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from softrig.errors import (
    AnchorError,
    EmptyMeshError,
    FlatElementError,
    IndexRangeError,
    InputError,
    InvertedElementError,
    NotFiniteError,
    Notice,
    SoftrigError,
    UnreferencedVertexError,
)
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_bricks, box_tets
from softrig.models.full import FullBody

BOXES = {"tet": box_tets, "brick": box_bricks}
MIRROR = {"tet": [1, 0, 2, 3], "brick": [1, 0, 3, 2, 5, 4, 7, 6]}
every_element = pytest.mark.parametrize("element", BOXES)

UNIT_TET = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
UNIT_BRICK = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])


def arrays(element, counts=(2, 2, 2)):
    """Writable vertices and elements of a good mesh to spoil."""
    mesh = BOXES[element]((1.0, 1.0, 1.0), counts)
    return mesh.vertices.copy(), mesh.elements.copy()


def refused(error, vertices, elements):
    """The error with which a mesh is refused, whatever was repaired before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        with pytest.raises(error) as caught:
            VolumeMesh.build(vertices, elements)
    assert caught.type is error
    assert isinstance(caught.value, SoftrigError)
    assert isinstance(caught.value, ValueError)
    return caught.value


def signed_volumes(vertices, tets):
    corners = vertices[tets]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6.0


def steel_body(mesh, **options):
    return FullBody(mesh, Material(young=1.0, poisson=0.3, density=1.0), solver="superlu", **options)


@every_element
def test_a_good_box_has_its_volume_and_positive_elements(element):
    mesh = BOXES[element]((1.0, 0.5, 0.25), (3, 2, 2))
    assert mesh.volumes.sum() == pytest.approx(0.125, rel=1e-14)
    np.testing.assert_allclose(mesh.volumes, 0.125 / len(mesh.elements), rtol=1e-12)
    assert (mesh.stiffness_points.volumes > 0.0).all()
    np.testing.assert_allclose(mesh.mass_points.volumes.sum(axis=1), mesh.volumes, rtol=1e-13)


def test_tet_volumes_are_sixths_of_determinants(distorted_box):
    mesh = distorted_box("tet")
    np.testing.assert_allclose(mesh.volumes, signed_volumes(mesh.vertices, mesh.elements), rtol=1e-13)


@every_element
def test_shape_functions_reproduce_linear_fields(element, distorted_box):
    mesh = distorted_box(element)
    for points in (mesh.stiffness_points, mesh.mass_points):
        np.testing.assert_allclose(points.shapes.sum(axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(points.gradients.sum(axis=2), 0.0, atol=1e-13)
        jacobians = np.einsum("eki,epkj->epij", mesh.vertices[points.nodes], points.gradients)
        np.testing.assert_allclose(jacobians, np.broadcast_to(np.eye(3), jacobians.shape), rtol=0, atol=1e-13)


def test_a_tet_pushed_through_its_neighbour_is_refused_by_name():
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1], [0.2, 0.2, 2.0]])
    tets = np.array([[1, 2, 3, 5], [0, 1, 2, 3], [0, 2, 1, 4]])
    assert (VolumeMesh.build(vertices, tets).volumes > 0.0).all()
    vertices[4, 2] = 0.5  # the apex of tet 2 crosses the face it shares with tet 1
    assert refused(InvertedElementError, vertices, tets).indices.tolist() == [1, 2]


def test_a_refused_mesh_is_not_announced_as_repaired():
    """Under pytest's own filter a `Notice` is an error: it must not hide the real one."""
    vertices = np.vstack([UNIT_TET, [[0.2, 0.2, 0.5]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)
        with pytest.raises(InvertedElementError):
            VolumeMesh.build(vertices, [[0, 1, 2, 3], [0, 2, 1, 4]])


def test_an_interior_vertex_pushed_through_opposite_faces_is_refused():
    vertices, tets = arrays("tet")
    centre = int(np.argmin(np.linalg.norm(vertices - 0.5, axis=1)))
    vertices[centre] += [0.8, 0.1, 0.05]
    inside_out = np.nonzero(signed_volumes(vertices, tets) < 0.0)[0]
    culprits = refused(InvertedElementError, vertices, tets).indices
    assert np.isin(culprits, inside_out).any()
    for culprit in np.setdiff1d(culprits, inside_out):  # the other side of a face that an inverted one crossed
        assert max(len(np.intersect1d(tets[culprit], tets[other])) for other in inside_out) == 3


@pytest.mark.parametrize("beyond", [0.05, 0.3, 1.5])
def test_a_brick_with_a_corner_pushed_through_the_opposite_face_is_refused(beyond):
    vertices, bricks = arrays("brick", (2, 1, 1))
    pushed = int(np.argmax(vertices.sum(axis=1)))
    vertices[pushed, 0] = 0.5 - beyond * 0.5  # brick 1 spans 0.5 to 1
    assert refused(InvertedElementError, vertices, bricks).indices.tolist() == [1]


def test_three_elements_on_one_face_are_refused():
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, 0.3, 2], [0, 0, -1]])
    tets = np.array([[0, 1, 2, 3], [0, 1, 2, 4], [0, 2, 1, 5]])
    assert refused(InvertedElementError, vertices, tets).indices.tolist() == [0, 1, 2]


@every_element
def test_flat_elements_are_refused_by_name(element):
    vertices, elements = arrays(element, (3, 1, 1))
    flat_from = 2.0 / 3.0
    vertices[vertices[:, 0] > flat_from + 0.1, 0] = flat_from
    expected = np.nonzero(np.ptp(vertices[elements][:, :, 0], axis=1) < 1e-12)[0]
    assert len(expected) > 0
    np.testing.assert_array_equal(refused(FlatElementError, vertices, elements).indices, expected)


def test_flatness_does_not_depend_on_the_unit_of_length():
    for scale in (1e-6, 1.0, 1e6):
        assert VolumeMesh.build(scale * UNIT_TET, [[0, 1, 2, 3]]).volumes[0] == pytest.approx(scale**3 / 6.0)
        nearly_flat = UNIT_TET * [1.0, 1.0, 1e-11]
        assert refused(FlatElementError, scale * nearly_flat, [[0, 1, 2, 3]]).indices.tolist() == [0]


@every_element
def test_wrong_winding_is_repaired_with_a_notice(element, distorted_box):
    good = distorted_box(element)
    elements = good.elements.copy()
    wrong = np.arange(0, len(elements), 3)
    elements[wrong] = elements[wrong][:, MIRROR[element]]
    with pytest.warns(Notice, match=f"{len(wrong)} of {len(elements)} elements were wound the wrong way"):
        repaired = VolumeMesh.build(good.vertices, elements)
    np.testing.assert_allclose(repaired.volumes, good.volumes, rtol=1e-12)
    np.testing.assert_array_equal(np.sort(repaired.elements, axis=1), np.sort(good.elements, axis=1))
    stiffness, expected = (steel_body(mesh).rest_stiffness.toarray() for mesh in (repaired, good))
    np.testing.assert_allclose(stiffness, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    sorted_faces = [np.sort(mesh.boundary_faces, axis=1) for mesh in (repaired, good)]
    np.testing.assert_array_equal(*(faces[np.lexsort(faces.T)] for faces in sorted_faces))
    assert_outward_and_closed(repaired)


@every_element
def test_repair_does_not_touch_the_callers_arrays(element):
    vertices, elements = arrays(element)
    elements[0] = elements[0, MIRROR[element]]
    elements = elements.astype(np.int32)
    before = elements.copy()
    with pytest.warns(Notice):
        VolumeMesh.build(vertices, elements)
    np.testing.assert_array_equal(elements, before)


@every_element
def test_unreferenced_vertices_are_refused_by_name(element):
    vertices, elements = arrays(element)
    count = len(vertices)
    spoiled = np.vstack([vertices, [[9.0, 9.0, 9.0], [8.0, 8.0, 8.0]]])
    assert refused(UnreferencedVertexError, spoiled, elements).indices.tolist() == [count, count + 1]


@every_element
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vertices_that_are_not_finite_are_refused_by_name(element, bad):
    vertices, elements = arrays(element)
    vertices[3, 1] = vertices[7, 0] = vertices[7, 2] = bad
    assert refused(NotFiniteError, vertices, elements).indices.tolist() == [3, 7]


@every_element
@pytest.mark.parametrize("outside", [-1, 27, 2**40])
def test_vertex_numbers_out_of_range_are_refused_by_element(element, outside):
    vertices, elements = arrays(element)
    elements = elements.astype(np.int64)
    elements[1, 2] = elements[4, 0] = outside
    assert refused(IndexRangeError, vertices, elements).indices.tolist() == [1, 4]


@every_element
def test_a_vertex_named_twice_by_an_element_is_refused(element):
    vertices, elements = arrays(element)
    elements[5, 3] = elements[5, 1]
    assert refused(IndexRangeError, vertices, elements).indices.tolist() == [5]


@pytest.mark.parametrize(
    ("vertices", "elements"),
    [(np.zeros((0, 3)), np.zeros((0, 4), int)), (UNIT_TET, np.zeros((0, 4), int)), (np.zeros((0, 3)), [[0, 1, 2, 3]])],
)
def test_empty_meshes_are_refused(vertices, elements):
    refused(EmptyMeshError, vertices, elements)


@pytest.mark.parametrize(
    ("vertices", "elements"),
    [
        (UNIT_TET[:, :2], [[0, 1, 2, 3]]),
        (UNIT_TET.ravel(), [[0, 1, 2, 3]]),
        (UNIT_TET, [[0, 1, 2]]),
        (UNIT_TET, [0, 1, 2, 3]),
        (UNIT_TET, [[0.0, 1.0, 2.0, 3.0]]),
    ],
    ids=["flat vertices", "vertices in a row", "triangles", "one element in a row", "real numbers"],
)
def test_arrays_of_the_wrong_shape_or_kind_are_refused(vertices, elements):
    refused(InputError, vertices, elements)


def test_errors_name_a_few_culprits_and_count_the_rest():
    vertices, elements = arrays("tet")
    elements[:20, 0] = 999
    message = str(refused(IndexRangeError, vertices, elements))
    assert "[index 0, 1, 2, 3, 4, 5, 6, 7 and 12 more]" in message


def test_groups_are_named_and_checked():
    vertices, elements = arrays("brick", (3, 1, 1))
    default = VolumeMesh.build(vertices, elements)
    assert default.groups.tolist() == [0, 0, 0]
    assert default.group_names == ("body",)
    grouped = VolumeMesh.build(vertices, elements, groups=[0, 1, 1], group_names=("bone", "fat"))
    assert grouped.groups.tolist() == [0, 1, 1]
    assert grouped.group_names == ("bone", "fat")
    for groups, names in [([0, 1], None), ([0, -1, 0], None), ([0, 1, 1], ("bone",)), ([0, 1, 1], ("fat", "fat"))]:
        with pytest.raises(InputError):
            VolumeMesh.build(vertices, elements, groups=groups, group_names=names)


def assert_outward_and_closed(mesh):
    """Every edge is walked once each way, and the divergence theorem gives the volume of the elements."""
    triangles = mesh.boundary_triangles
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    walked = {tuple(edge) for edge in edges.tolist()}
    assert len(walked) == len(edges)
    assert all((b, a) in walked for a, b in walked)
    enclosed = np.linalg.det(mesh.vertices[triangles]).sum() / 6.0
    if mesh.elements.shape[1] == 4:
        assert enclosed == pytest.approx(mesh.volumes.sum(), rel=1e-12)
    else:  # bilinear faces enclose what both ways of cutting them enclose on average
        faces = mesh.boundary_faces
        other_cut = np.concatenate([faces[:, [1, 2, 3]], faces[:, [1, 3, 0]]])
        other = np.linalg.det(mesh.vertices[other_cut]).sum() / 6.0
        assert 0.5 * (enclosed + other) == pytest.approx(mesh.volumes.sum(), rel=1e-12)


@every_element
def test_boundary_is_closed_and_outward(element, distorted_box):
    assert_outward_and_closed(distorted_box(element, (3, 2, 2)))


@every_element
def test_boundary_of_a_single_element_is_all_its_faces(element):
    vertices = UNIT_TET if element == "tet" else UNIT_BRICK
    mesh = VolumeMesh.build(vertices, np.arange(len(vertices))[None])
    assert len(mesh.boundary_faces) == {"tet": 4, "brick": 6}[element]
    assert_outward_and_closed(mesh)


def two_bodies():
    """Two separate boxes of bricks in one mesh; the second one's first vertex."""
    mesh = box_bricks((1.0, 1.0, 1.0), (1, 1, 1))
    vertices = np.vstack([mesh.vertices, mesh.vertices + np.array([3.0, 0.0, 0.0])])
    return VolumeMesh.build(vertices, np.vstack([mesh.elements, mesh.elements + 8])), 8


def test_parts_are_the_connected_pieces():
    mesh, second = two_bodies()
    assert mesh.part_of_element.tolist() == [0, 1]
    assert second == 8
    assert len(set(box_tets((1, 1, 1), (2, 2, 2)).part_of_element)) == 1


def bricks_in_a_row(*corners):
    """Unit bricks with these low corners, sharing the vertices they have in common."""
    unit = box_bricks((1.0, 1.0, 1.0), (1, 1, 1))
    all_corners = np.concatenate([unit.vertices[unit.elements[0]] + np.array(corner) for corner in corners])
    vertices, places = np.unique(all_corners, axis=0, return_inverse=True)
    return VolumeMesh.build(vertices, places.reshape(-1, 8))


def test_bricks_hinged_on_an_edge_are_two_parts_and_must_both_be_held():
    mesh = bricks_in_a_row((0, 0, 0), (1, 1, 0))
    assert mesh.part_of_element.tolist() == [0, 1]
    first = mesh.vertices.max(axis=1) <= 1.0
    with pytest.raises(AnchorError):
        steel_body(mesh, fixed=first).require_anchored()
    # One more vertex off the hinge holds the second brick.
    far = int(np.argmax(mesh.vertices.sum(axis=1)))
    body = steel_body(mesh, fixed=first | (np.arange(len(mesh.vertices)) == far))
    body.require_anchored()
    assert np.linalg.eigvalsh(body.rest_stiffness.toarray())[0] > 1e-6


def test_a_part_is_held_through_parts_that_are():
    mesh = bricks_in_a_row((0, 0, 0), (1, 1, 0), (1, 0, 1))
    held = mesh.vertices.max(axis=1) <= 1.0
    with pytest.raises(AnchorError):
        steel_body(mesh, fixed=held).require_anchored()
    far = int(np.argmin(np.linalg.norm(mesh.vertices - np.array([2.0, 2.0, 0.0]), axis=1)))
    body = steel_body(mesh, fixed=held | (np.arange(len(mesh.vertices)) == far))
    # The third brick shares an edge with each of the others: four vertices, not on one line.
    body.require_anchored()
    assert np.linalg.eigvalsh(body.rest_stiffness.toarray())[0] > 1e-6


@every_element
@pytest.mark.parametrize(
    "anchors",
    [[], [[0, 0, 0]], [[0, 0, 0], [1, 1, 1]], [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]]],
    ids=["none", "one vertex", "two vertices", "three on a line"],
)
def test_too_few_anchors_are_refused(element, anchors):
    mesh = BOXES[element]((1.0, 1.0, 1.0), (2, 2, 2))
    fixed = [int(np.argmin(np.linalg.norm(mesh.vertices - place, axis=1))) for place in np.array(anchors, float)]
    with pytest.raises(AnchorError) as caught:
        steel_body(mesh, fixed=fixed).require_anchored()
    assert len(caught.value.indices) == 1


@every_element
def test_three_anchors_off_one_line_are_enough(element):
    mesh = BOXES[element]((1.0, 1.0, 1.0), (2, 2, 2))
    anchors = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    body = steel_body(mesh, fixed=[int(np.argmin(np.linalg.norm(mesh.vertices - place, axis=1))) for place in anchors])
    body.require_anchored()
    assert not body.is_free
    assert np.linalg.eigvalsh(body.rest_stiffness.toarray())[0] > 1e-6


def test_a_separate_part_without_anchors_is_named():
    mesh, second = two_bodies()
    with pytest.raises(AnchorError) as caught:
        steel_body(mesh, fixed=np.arange(4)).require_anchored()
    (culprit,) = caught.value.indices
    assert culprit == second
    with pytest.raises(AnchorError) as caught:
        steel_body(mesh).require_anchored()
    assert sorted(caught.value.indices) == [0, second]
    steel_body(mesh, fixed=[0, 1, 2, 8, 9, 10]).require_anchored()


def test_fixed_vertices_out_of_range_are_refused_by_number():
    mesh = box_tets((1.0, 1.0, 1.0), (1, 1, 1))
    with pytest.raises(InputError) as caught:
        steel_body(mesh, fixed=[0, 8, 3, -1])
    assert caught.value.indices.tolist() == [8, -1]


@pytest.mark.parametrize("fixed", [np.ones(8, bool), np.arange(8), np.zeros(7, bool)], ids=["mask", "all", "short"])
def test_fixing_everything_or_with_a_mask_of_the_wrong_length_is_refused(fixed):
    with pytest.raises(InputError):
        steel_body(box_tets((1.0, 1.0, 1.0), (1, 1, 1)), fixed=fixed)
