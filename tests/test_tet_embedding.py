"""Points in tets against brute force; tets on bones against a sampled and an algebraic check."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from softrig.errors import InputError, NotFiniteError, Notice
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_bricks, box_tets
from softrig.meshing.bones import crossed_tets_of, fixed_vertices, painted_fixed
from softrig.meshing.embedding import barycentric_weights, embed_points
from softrig.meshing.lattice import tet_mesh
from soups_for_tests import joined, moved, sphere, torus


@cache
def ring() -> VolumeMesh:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        return tet_mesh(*torus(), tets=800).mesh


def queries(mesh: VolumeMesh, count: int = 400, seed: int = 2) -> np.ndarray:
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    middle, half = 0.5 * (low + high), 0.65 * (high - low)
    return np.random.default_rng(seed).uniform(middle - half, middle + half, (count, 3))


def all_weights(mesh: VolumeMesh, point: np.ndarray) -> np.ndarray:
    """(e, 4) the point's weights in every tet."""
    return barycentric_weights(mesh.vertices[mesh.elements], np.tile(point, (len(mesh.elements), 1)))


def test_found_tets_equal_brute_force():
    mesh, points = ring(), queries(ring())
    found = embed_points(mesh, points)
    assert 0.2 < found.outside.mean() < 0.95
    for k, point in enumerate(points):
        weights = all_weights(mesh, point)
        holding = np.nonzero(weights.min(axis=1) >= 0.0)[0]
        assert found.outside[k] == (len(holding) == 0)
        if len(holding):
            assert found.tets[k] in holding
            np.testing.assert_allclose(found.weights[k], weights[found.tets[k]], atol=1e-12)
        assert np.array_equal(found.nodes[k], mesh.elements[found.tets[k]])


def test_outside_points_take_the_nearest_tet():
    """Nearest by distance, found by projecting onto every tet: a small quadratic programme each."""
    import igl

    mesh, points = ring(), queries(ring(), 60, seed=9)
    found = embed_points(mesh, points)
    faces = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    every = mesh.elements[:, faces].reshape(-1, 3).astype(np.int64)
    squared = igl.point_mesh_squared_distance(points, mesh.vertices, every)[0]
    for k in np.nonzero(found.outside)[0]:
        own = mesh.elements[found.tets[k]][faces].astype(np.int64)
        to_own = igl.point_mesh_squared_distance(points[k : k + 1], mesh.vertices, own)[0]
        assert np.sqrt(to_own[0]) == pytest.approx(np.sqrt(squared[k]), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_positions_and_linear_fields_are_exact(scale):
    mesh = VolumeMesh.build(ring().vertices * scale, ring().elements)
    points = queries(mesh)
    found = embed_points(mesh, points)
    np.testing.assert_allclose(found.carry(mesh.vertices), points, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-12)
    slope, shift = np.random.default_rng(4).normal(size=(3, 2)) / scale, np.array([0.3, -2.0])
    np.testing.assert_allclose(found.carry(mesh.vertices @ slope + shift), points @ slope + shift, atol=1e-9)


def test_report_of_the_points_outside():
    mesh = box_tets((1.0, 1.0, 1.0), (2, 2, 2))
    found = embed_points(mesh, np.array([[0.3, 0.3, 0.4], [0.5, 0.5, 1.5], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]))
    assert found.outside.tolist() == [False, True, False, False]
    assert found.share_outside == 0.25
    assert found.smallest_weight == pytest.approx(found.weights[1].min())
    assert found.smallest_weight == pytest.approx(-1.0)


def test_vertices_faces_and_edges_are_inside():
    mesh = box_tets((1.0, 2.0, 3.0), (3, 2, 4))
    corners = mesh.vertices[mesh.elements]
    on_faces = corners[:, :3].mean(axis=1)
    on_edges = corners[:, :2].mean(axis=1)
    for points in (mesh.vertices, on_faces, on_edges):
        found = embed_points(mesh, points)
        assert not found.outside.any()
        assert found.weights.min() > -1e-9


def test_refusals():
    with pytest.raises(InputError, match="needs tets"):
        embed_points(box_bricks((1, 1, 1), (1, 1, 1)), np.zeros((1, 3)))
    with pytest.raises(InputError, match="shape"):
        embed_points(ring(), np.zeros(3))
    with pytest.raises(NotFiniteError) as caught:
        embed_points(ring(), np.array([[0, 0, 0], [0, np.nan, 0]]))
    assert caught.value.indices.tolist() == [1]
    empty = embed_points(ring(), np.zeros((0, 3)))
    assert empty.nodes.shape == (0, 4)
    assert empty.share_outside == 0.0


def meets(corners: np.ndarray, head: np.ndarray, tail: np.ndarray) -> bool:
    """Whether weights ≥ 0 that sum to one and a share in 0 … 1 give the same point: a linear programme."""
    equations = np.zeros((4, 5))
    equations[:3, :4], equations[:3, 4] = corners.T, head - tail
    equations[3, :4] = 1.0
    answer = linprog(np.zeros(5), A_eq=equations, b_eq=[*head, 1.0], bounds=[(0, None)] * 4 + [(0, 1)])
    return answer.status == 0


def test_bones_cross_the_tets_that_a_linear_programme_says():
    mesh = box_tets((1.0, 1.0, 1.0), (2, 2, 2))
    segments = np.random.default_rng(3).uniform(-0.2, 1.2, (6, 2, 3))
    crossed = crossed_tets_of(mesh, segments)
    assert crossed.shape == (6, len(mesh.elements))
    for s, (head, tail) in enumerate(segments):
        expected = [meets(mesh.vertices[tet], head, tail) for tet in mesh.elements]
        assert crossed[s].tolist() == expected
    assert crossed.any()
    assert not crossed.all()


def test_fixed_vertices_are_those_of_the_tets_on_the_bones():
    mesh = ring()
    angles = np.linspace(0.0, 2.0 * np.pi, 9)
    joints = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    bones = np.stack([joints[:-1], joints[1:]], axis=1)
    fixed = fixed_vertices(mesh, bones)
    at = (bones[:, :1] + np.linspace(0.0, 1.0, 400)[:, None] * (bones[:, 1:] - bones[:, :1])).reshape(-1, 3)
    sampled = np.zeros(len(mesh.vertices), bool)
    found = embed_points(mesh, at)
    sampled[found.nodes[~found.outside]] = True
    assert fixed[sampled].all()
    assert 0 < fixed.sum() - sampled.sum() + 1 < 0.05 * len(fixed), "only slivers that the samples miss"
    assert fixed.mean() < 0.7


def test_a_bone_of_no_length_fixes_nothing_and_free_parts_are_noticed():
    mesh = ring()
    with pytest.warns(Notice, match=r"1 of 1 parts has no fixed vertex: .*\[parts\] in the project file"):
        assert not fixed_vertices(mesh, np.array([[[1.0, 0, 0], [1.0, 0, 0]]])).any()
    with pytest.warns(Notice, match="no fixed vertex"):
        assert not fixed_vertices(mesh, np.zeros((0, 2, 3))).any()


def test_a_part_without_a_bone_is_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        mesh = tet_mesh(*joined(sphere(2), moved(sphere(2), (4.0, 0.0, 0.0))), tets=600).mesh
    with pytest.warns(Notice, match="1 of 2 parts") as caught:
        fixed = fixed_vertices(mesh, np.array([[[-0.5, 0.0, 0.0], [0.5, 0.1, 0.0]]]))
    assert mesh.vertices[fixed, 0].max() < 2.0
    named = int(str(caught[0].message).split("[index ")[1].rstrip("]"))
    assert mesh.vertices[mesh.elements[named], 0].min() > 2.0


def test_segments_must_be_segments():
    with pytest.raises(InputError, match=r"\(b, 2, 3\)"):
        fixed_vertices(ring(), np.zeros((3, 3)))
    with pytest.raises(NotFiniteError):
        fixed_vertices(ring(), np.full((1, 2, 3), np.inf))


def test_paint_of_zero_holds_the_tets_that_carry_it():
    mesh = ring()
    surface = torus()[0]
    carried = embed_points(mesh, surface)
    paint = np.where(surface[:, 0] > 0.9, 0.0, 0.5)
    fixed = painted_fixed(carried, paint, len(mesh.vertices))
    moved_field = np.where(fixed[:, None], 0.0, np.random.default_rng(0).normal(size=mesh.vertices.shape))
    assert np.abs(carried.carry(moved_field)[paint == 0.0]).max() == 0.0
    assert np.abs(carried.carry(moved_field)[surface[:, 0] < 0.0]).min() > 0.0
    assert not painted_fixed(carried, np.ones(len(surface)), len(mesh.vertices)).any()
    with pytest.raises(InputError, match="one a surface vertex"):
        painted_fixed(carried, np.zeros(3), len(mesh.vertices))
