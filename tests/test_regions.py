"""Regions: weights are one on their handle, sum to one, and are smooth or cheap."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from softrig.errors import InputError, NotFiniteError, Notice
from softrig.fem.meshes import VolumeMesh
from softrig.meshing import box_bricks
from softrig.meshing.lattice import tet_mesh
from softrig.meshing.regions import Handle, region_weights
from soups_for_tests import box, joined, moved, sphere


@cache
def mesh_of(name: str) -> VolumeMesh:
    soups = {
        "bar": box((4.0, 1.0, 1.0)),
        "two balls": joined(sphere(2), moved(sphere(2), (4.0, 0.0, 0.0))),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        return tet_mesh(*soups[name], tets=1200).mesh


LEFT = Handle.segment("left", (0.3, 0.5, 0.5), (1.2, 0.5, 0.5))
RIGHT = Handle.bone(("right", np.array([2.8, 0.5, 0.5]), np.array([3.7, 0.5, 0.5]), 7))
TOP = Handle.point("top", (2.0, 0.5, 0.9))
either = pytest.mark.parametrize("smooth", [True, False])


@either
def test_one_on_the_handle_and_one_in_all(smooth):
    mesh = mesh_of("bar")
    regions = region_weights(mesh, [LEFT, RIGHT, TOP], smooth=smooth)
    assert regions.names == ("left", "right", "top")
    assert regions.weights.shape == (len(mesh.vertices), 3)
    assert regions.weights.min() >= 0.0
    assert regions.weights.max() <= 1.0
    np.testing.assert_allclose(regions.weights.sum(axis=1), 1.0, atol=1e-12)
    for k in range(3):
        on = regions.handle_of_vertex == k
        assert on.any()
        np.testing.assert_allclose(regions.weights[on], np.eye(3)[[k] * on.sum()], atol=1e-12)
    assert (regions.handle_of_vertex == 2).sum() == 1, "a point has one vertex"
    assert (regions.handle_of_vertex == 0).sum() > 4


@either
def test_each_end_belongs_to_its_handle(smooth):
    mesh = mesh_of("bar")
    weights = region_weights(mesh, [LEFT, RIGHT], smooth=smooth).weights
    x = mesh.vertices[:, 0]
    assert weights[x < 1.0, 0].min() > 0.8
    assert weights[x > 3.0, 1].min() > 0.8
    middle = weights[np.abs(x - 2.0) < 0.2, 0]
    assert middle.mean() == pytest.approx(0.5, abs=0.1)
    bins = [weights[np.abs(x - at) < 0.15, 0].mean() for at in np.arange(0.5, 3.6, 0.5)]
    assert (np.diff(bins) <= 1e-3).all(), "weights fall from one handle to the other"


def test_smooth_weights_start_flat():
    """Biharmonic weights leave a handle with no slope; harmonic ones with their steepest."""
    mesh = mesh_of("bar")
    x = mesh.vertices[:, 0]
    near, half = np.abs(x - 1.45) < 0.12, np.abs(x - 2.0) < 0.12
    slopes = {}
    for smooth in (True, False):
        weights = region_weights(mesh, [LEFT, RIGHT], smooth=smooth).weights[:, 0]
        slopes[smooth] = (1.0 - weights[near].mean()) / (weights[near].mean() - weights[half].mean())
    assert slopes[True] < 0.7 * slopes[False]


@either
def test_a_single_handle_has_it_all(smooth):
    assert (region_weights(mesh_of("bar"), [TOP], smooth=smooth).weights == 1.0).all()


@either
def test_a_part_without_a_handle_follows_the_nearest(smooth):
    mesh = mesh_of("two balls")
    handles = [Handle.point("far", (-0.5, 0.0, 0.0)), Handle.point("near", (0.6, 0.0, 0.0))]
    weights = region_weights(mesh, handles, smooth=smooth).weights
    other = mesh.vertices[:, 0] > 2.0
    assert (weights[other] == [0.0, 1.0]).all()
    assert 0.0 < weights[~other, 0].mean() < 1.0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)


def test_neighbouring_bones_share_no_vertex():
    """A chain of bones: at the joints each vertex goes to the nearest one, and every bone has some."""
    mesh = mesh_of("bar")
    joints = np.linspace([0.2, 0.5, 0.5], [3.8, 0.5, 0.5], 7)
    bones = [Handle.segment(f"bone {k}", joints[k], joints[k + 1]) for k in range(6)]
    regions = region_weights(mesh, bones, smooth=False)
    assert set(regions.handle_of_vertex) == {-1, *range(6)}
    middles = [mesh.vertices[regions.handle_of_vertex == k, 0].mean() for k in range(6)]
    np.testing.assert_allclose(middles, joints[:-1, 0] + 0.3, atol=0.2)


def test_a_handle_in_the_same_place_steals_a_neighbouring_vertex():
    mesh = mesh_of("bar")
    twin = Handle.segment("twin", LEFT.head, LEFT.tail)
    regions = region_weights(mesh, [LEFT, twin], smooth=False)
    assert {0, 1} <= set(regions.handle_of_vertex)
    assert np.isfinite(regions.weights).all()


def test_refusals():
    mesh = mesh_of("bar")
    with pytest.raises(InputError, match="at least one handle"):
        region_weights(mesh, [])
    with pytest.raises(InputError, match="different names"):
        region_weights(mesh, [LEFT, LEFT])
    with pytest.raises(InputError, match="needs tets"):
        region_weights(box_bricks((1, 1, 1), (1, 1, 1)), [LEFT])
    with pytest.raises(NotFiniteError):
        Handle.point("nowhere", (0.0, np.nan, 0.0))
