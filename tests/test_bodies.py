"""The four generated bodies: sound surfaces, the bricks of Figure 3, held where they should be."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from softrig import bodies

FIGURE_3 = {
    "spoon": (2005, 6638),
    "footbridge": (5854, 59630),
    "tower": (11304, 105788),
    "heart": (14444, 23616),
}
"""Bricks and rendered triangles of StVK05's models."""

every_body = pytest.mark.parametrize("name", FIGURE_3)


@cache
def soup_of(name):
    return getattr(bodies, name)()


@cache
def voxels_of(name):
    return soup_of(name).voxelised()


@every_body
def test_bricks_as_in_figure_3(name):
    bricks, triangles = FIGURE_3[name]
    assert len(voxels_of(name).cells) == pytest.approx(bricks, rel=0.03)
    assert triangles / 2 < len(soup_of(name).triangles) < triangles * 2


@every_body
def test_nothing_floats(name):
    assert voxels_of(name).part_count == 1


@every_body
def test_vertices_are_carried_exactly(name):
    soup, voxels = soup_of(name), voxels_of(name)
    size = np.ptp(soup.vertices, axis=0).max()
    carried = voxels.embedding.carry(voxels.mesh.vertices)
    np.testing.assert_allclose(carried, soup.vertices, rtol=0, atol=1e-12 * size)
    assert voxels.embedding.weights.min() >= 0.0


@every_body
def test_held_firmly_but_mostly_free(name):
    soup, voxels = soup_of(name), voxels_of(name)
    held = soup.fixed_vertices(voxels.mesh.vertices)
    assert held.shape == (len(voxels.mesh.vertices),)
    whole_bricks = held[voxels.mesh.elements].all(axis=1).sum()
    assert whole_bricks >= 4
    assert held.sum() < 0.2 * len(held)


def test_bridge_and_tower_stand_on_every_foot():
    bridge, tower = voxels_of("footbridge").mesh.vertices, voxels_of("tower").mesh.vertices
    left_and_right = np.sign(bridge[soup_of("footbridge").fixed_vertices(bridge)][:, 0])
    assert set(left_and_right) == {-1.0, 1.0}
    quarters = np.sign(tower[soup_of("tower").fixed_vertices(tower)][:, :2])
    assert len(np.unique(quarters, axis=0)) == 4


@every_body
def test_surface_is_sound(name):
    soup = soup_of(name)
    assert np.isfinite(soup.vertices).all()
    assert soup.triangles.min() == 0
    assert np.array_equal(np.unique(soup.triangles), np.arange(len(soup.vertices)))
    corners = soup.vertices[soup.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.linalg.norm(normals, axis=1).min() > 0.0
    assert soup.colours.shape == soup.vertices.shape
    assert soup.colours.min() >= 0.0
    assert soup.colours.max() <= 1.0


@every_body
def test_closed_and_outward(name):
    """Every edge is walked once each way (caps have their own vertices: weld by place first)."""
    soup = soup_of(name)
    size = np.ptp(soup.vertices, axis=0).max()
    places = np.round(soup.vertices / (1e-9 * size)).astype(np.int64)
    faces = np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)[soup.triangles]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    count = faces.max() + 1
    forward, backward = np.sort(edges @ [count, 1]), np.sort(edges @ [1, count])
    assert np.array_equal(forward, backward)
    corners = soup.vertices[soup.triangles]
    assert np.einsum("ni,ni->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) > 0.0


@pytest.mark.parametrize("name", ["spoon", "heart"])
def test_one_smooth_skin(name):
    """Neighbouring triangles of the spoon and the heart seldom meet at a sharp angle."""
    soup = soup_of(name)
    corners = soup.vertices[soup.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    edges = np.sort(np.concatenate([soup.triangles[:, c] for c in ([0, 1], [1, 2], [2, 0])]), axis=1)
    owners = np.tile(np.arange(len(soup.triangles)), 3)[np.lexsort(edges.T)].reshape(-1, 2)
    assert len(np.unique(edges, axis=0)) == len(owners)
    turns = np.einsum("ni,ni->n", normals[owners[:, 0]], normals[owners[:, 1]])
    assert (turns < 0.5).mean() < 0.03


def test_sizes_in_metres():
    heights = {name: np.ptp(soup_of(name).vertices, axis=0) for name in FIGURE_3}
    assert heights["footbridge"][0] == pytest.approx(20.0)
    assert heights["spoon"][0] == pytest.approx(0.2)
    assert heights["tower"][2] == pytest.approx(300.0)
    assert 0.12 < heights["heart"][2] < 0.16


def test_the_same_every_time():
    again = bodies.footbridge()
    assert np.array_equal(again.vertices, soup_of("footbridge").vertices)
    assert np.array_equal(again.colours, soup_of("footbridge").colours)
