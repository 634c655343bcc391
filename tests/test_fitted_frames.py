"""Frames that stand for bones: affine motions are found exactly, bends nearly, and every vertex belongs to some."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softrig.errors import InputError
from softrig.fem.embedding import Embedding
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.models.pose_space import blended_rotations, fitted_matrices, polar_rotations
from softrig.poses.fitted_frames import FRAMES, FittedFrames, affine_fit, fitted_frames
from softrig.poses.tet_rig import MOST_BONES, skinned
from softrig.rig.deformers import Bend

BAR = box_tets((1.0, 0.2, 0.2), (20, 4, 4))


def frames_of(mesh: VolumeMesh, **options) -> tuple[FittedFrames, np.ndarray]:
    """Frames of a mesh whose own boundary vertices are the surface, and which those are."""
    surface = np.unique(mesh.boundary_triangles)
    hung = Embedding(surface[:, None].astype(np.int32), np.ones((len(surface), 1)))
    return fitted_frames(mesh, hung, np.arange(len(surface)), mesh.vertices[surface], **options), surface


def whole(matrices: np.ndarray) -> np.ndarray:
    return np.concatenate([matrices, np.tile([0.0, 0.0, 0.0, 1.0], (len(matrices), 1, 1))], axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_an_affine_motion_is_every_frames_own(seed):
    frames, surface = frames_of(BAR)
    rng = np.random.default_rng(seed)
    A, t = rng.normal(size=(3, 3)), rng.normal(size=3)
    places = BAR.vertices[surface][frames.sample] @ A.T + t
    found = fitted_matrices(frames.fit, places)
    np.testing.assert_allclose(found, np.broadcast_to(np.column_stack([A, t]), found.shape), atol=1e-9)
    np.testing.assert_allclose(skinned(frames.weights, whole(found), BAR.vertices), BAR.vertices @ A.T + t, atol=1e-9)


def test_the_fit_is_that_of_least_squares():
    rng = np.random.default_rng(3)
    points, places, weights = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.uniform(0.1, 1.0, 9)
    rows = np.column_stack([points, np.ones(9)]) * np.sqrt(weights)[:, None]
    wanted = np.linalg.lstsq(rows, places * np.sqrt(weights)[:, None], rcond=None)[0].T
    np.testing.assert_allclose(fitted_matrices(affine_fit(points, weights)[None], places)[0], wanted, rtol=1e-4)


def test_vertices_turn_as_far_as_a_bend_has_turned_there():
    """At a place s along the bar the cross-section is turned by s times the angle, about z."""
    frames, surface = frames_of(BAR)
    angle, low = 1.2, BAR.vertices.min(axis=0)
    bend = Bend(BAR.vertices[surface], (low[0], 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), 0.0, 1.0)
    M = fitted_matrices(frames.fit, bend.positions(np.array([angle]), frames.sample))
    found = blended_rotations(frames.weights, polar_rotations(M[:, :, :3]))
    s = BAR.vertices[:, 0] - low[0]
    wanted = Rotation.from_rotvec(np.outer(angle * s, [0.0, 0.0, 1.0])).as_matrix()
    off = Rotation.from_matrix(found @ wanted.transpose(0, 2, 1)).magnitude()
    assert off.max() < np.radians(12.0)
    assert np.sqrt(np.mean(off**2)) < np.radians(4.0)
    bent = bend.deform(np.array([angle]), BAR.vertices, None)
    missed = skinned(frames.weights, whole(M), BAR.vertices) - bent
    assert np.linalg.norm(missed) < 0.03 * np.linalg.norm(bent - BAR.vertices)


def test_every_vertex_belongs_to_few_frames_and_wholly():
    frames, surface = frames_of(BAR)
    table = frames.weights.toarray()
    assert table.shape == (len(BAR.vertices), FRAMES)
    assert table.min() >= 0.0
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-14)
    assert (table > 0.0).sum(axis=1).max() <= MOST_BONES
    assert len(np.unique(frames.sample)) == len(frames.sample) <= len(surface)
    assert frames.parents[0] == -1
    assert (frames.parents[1:] >= 0).all()
    assert (frames.parents[1:] < np.arange(1, FRAMES)).all()
    assert frames.root == table.sum(axis=0).argmax()


@pytest.mark.parametrize("count", [1, 6])
def test_parts_that_nothing_joins_belong_to_frames_too(count):
    """With one frame the second part is reached through the air alone."""
    apart = BAR.vertices + np.array([0.0, 1.0, 0.0])
    tets = np.concatenate([BAR.elements, BAR.elements + len(BAR.vertices)])
    mesh = VolumeMesh(np.concatenate([BAR.vertices, apart]), tets, np.zeros(len(tets), np.int32), ("body",))
    frames, _ = frames_of(mesh, count=count)
    np.testing.assert_allclose(frames.weights.sum(axis=1), 1.0, atol=1e-14)
    if count > 1:  # and no frame holds both
        halves = np.split(frames.weights.toarray(), 2)
        assert not (halves[0].any(axis=0) & halves[1].any(axis=0)).any()


@pytest.mark.parametrize("side", [[0.0, -0.05, 0.0], [0.3, -0.03, 0.1], [-0.05, 0.0, 0.0]])
def test_a_small_part_beside_a_large_one_has_samples_of_its_own(side):
    """Samples far from each other in air pass over an eye or a button."""
    low = BAR.vertices.min(axis=0)
    small = box_tets((0.01, 0.01, 0.01), (1, 1, 1))
    vertices = np.concatenate([BAR.vertices, small.vertices + low + side])
    tets = np.concatenate([BAR.elements, small.elements + len(BAR.vertices)])
    frames, surface = frames_of(VolumeMesh.build(vertices, tets))
    turn, shift = Rotation.from_rotvec([0.2, -0.4, 0.7]).as_matrix(), np.array([0.1, 0.2, 0.3])
    moved = fitted_matrices(frames.fit, vertices[surface][frames.sample] @ turn.T + shift)
    np.testing.assert_allclose(moved[:, :, :3], np.broadcast_to(turn, (len(moved), 3, 3)), atol=1e-6)
    np.testing.assert_allclose(moved[:, :, 3], np.broadcast_to(shift, (len(moved), 3)), atol=1e-6)


def test_a_flat_surface_is_refused():
    points = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 1.0, 0.0]
    with pytest.raises(InputError, match="world"):
        affine_fit(points, np.ones(20))
