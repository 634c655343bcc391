"""Tets that follow the rig: Shepard weights, skin weights of tet vertices, corrections in bind space, inverted tets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from pose_models_for_tests import bar_model
from rigs_for_tests import random_parameters, two_bone_bar
from softrig.errors import InputError, NotFiniteError, Notice
from softrig.meshing.boxes import box_tets
from softrig.pipeline.posing import Posing
from softrig.poses.tet_rig import (
    bind_correction,
    carried,
    inverted_rest_tets,
    shepard,
    skinned,
    tet_skin,
)
from softrig.rig.skinning import LinearBlendSkin


def bar_mesh():
    """Tets inside the tube of `two_bone_bar`."""
    mesh = box_tets((2.0, 0.2, 0.2), (12, 2, 2))
    return mesh.vertices - [1.0, 0.1, 0.1], mesh.elements


def test_shepard_weights_are_inverse_distances_to_the_nearest() -> None:
    surface = np.random.default_rng(0).normal(size=(30, 3))
    point = np.array([[0.1, -0.2, 0.3]])
    nodes, weights = shepard(point, surface)
    distances = np.linalg.norm(surface - point, axis=1)
    assert set(nodes[0]) == set(np.argsort(distances)[:4])
    assert weights[0] * distances[nodes[0]] == pytest.approx(np.full(4, 1.0 / (1.0 / distances[nodes[0]]).sum()))
    assert nodes.dtype == np.int32


def test_a_point_on_a_surface_vertex_takes_it_alone() -> None:
    surface = np.random.default_rng(1).normal(size=(30, 3))
    nodes, weights = shepard(surface[[7, 3]], surface)
    assert list(nodes[:, 0]) == [7, 3]
    assert np.array_equal(weights, [[1.0, 0, 0, 0], [1.0, 0, 0, 0]])


def test_too_few_surface_vertices_and_nan_are_refused() -> None:
    with pytest.raises(InputError, match="4 nearest of 3"):
        shepard(np.zeros((1, 3)), np.eye(3))
    with pytest.raises(NotFiniteError, match="index 1"):
        shepard(np.array([[0.0, 0, 0], [np.nan, 0, 0]]), np.random.default_rng(0).normal(size=(5, 3)))


def test_tet_skin_is_the_mixture_of_the_surfaces_weights() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    vertices, _ = bar_mesh()
    weights = tet_skin(vertices, skin.rest_positions, skin.binding.table)
    nodes, shares = shepard(vertices, skin.rest_positions)
    dense = skin.binding.table.toarray()
    assert weights.toarray() == pytest.approx(np.einsum("nk,nkb->nb", shares, dense[nodes]))


def test_at_most_eight_bones_and_rows_sum_to_one() -> None:
    rng = np.random.default_rng(2)
    surface = rng.normal(size=(40, 3))
    table = rng.uniform(size=(40, 15))
    table /= table.sum(axis=1, keepdims=True)
    nodes, shares = shepard(np.zeros((1, 3)), surface)
    mixed = shares[0] @ table[nodes[0]]
    row = tet_skin(np.zeros((1, 3)), surface, csr_array(table)).toarray()[0]
    strongest = np.argsort(-mixed)[:8]
    assert set(np.flatnonzero(row)) == set(strongest)
    assert row[strongest] == pytest.approx(mixed[strongest] / mixed[strongest].sum())


def test_smoothing_keeps_constants_and_turns_fewer_tets_inside_out() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    vertices, tets = bar_mesh()
    right = skin.rest_positions[:, 0] > 0.0
    abrupt = csr_array(np.stack([~right, right], axis=1).astype(float))
    p = skin.parameters.rest.copy()
    p[skin.parameters.index("right.rotation.x") :][:4] = [0.0, 0.0, np.sin(1.2), np.cos(1.2)]
    smallest, counts = [], []
    for smoothing in (0, 4):
        weights = tet_skin(vertices, skin.rest_positions, abrupt, tets=tets, smoothing=smoothing)
        assert weights.sum(axis=1) == pytest.approx(np.ones(len(vertices)))
        assert skinned(weights, skin.bone_matrices(skin.parameters.rest), vertices) == pytest.approx(vertices)
        report = inverted_rest_tets(
            lambda p, w=weights: skinned(w, skin.bone_matrices(p), vertices), p[None], vertices, tets
        )
        counts.append(report.counts[0])
        smallest.append(report.smallest[0])
    assert counts[1] < counts[0]
    assert smallest[1] > smallest[0]


def test_skinned_tets_are_where_the_definition_says() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    vertices, _ = bar_mesh()
    weights = tet_skin(vertices, skin.rest_positions, skin.binding.table)
    matrices = skin.bone_matrices(random_parameters(skin.parameters, np.random.default_rng(3)))
    homogeneous = np.concatenate([vertices, np.ones((len(vertices), 1))], axis=1)
    expected = np.einsum("nb,bij,nj->ni", weights.toarray(), matrices, homogeneous)[:, :3]
    assert skinned(weights, matrices, vertices) == pytest.approx(expected)


def test_a_bind_correction_leads_to_the_fitted_place() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    vertices, _ = bar_mesh()
    rng = np.random.default_rng(4)
    weights = tet_skin(vertices, skin.rest_positions, skin.binding.table)
    p = skin.parameters.rest.copy()
    p[skin.parameters.index("right.rotation.x") :][:4] = [0.0, np.sin(0.5), 0.0, np.cos(0.5)]
    p[skin.parameters.index("left.translation.x") :][:3] += [0.3, -0.1, 0.2]
    matrices = skin.bone_matrices(p)
    fitted = skinned(weights, matrices, vertices) + rng.normal(0.0, 0.01, vertices.shape)
    delta = bind_correction(weights, matrices, vertices, fitted)
    assert skinned(weights, matrices, vertices + delta) == pytest.approx(fitted, abs=1e-14)


def test_where_the_skin_is_wrung_flat_the_correction_stays_bounded() -> None:
    skin = two_bone_bar(LinearBlendSkin)
    vertices, _ = bar_mesh()
    weights = tet_skin(vertices, skin.rest_positions, skin.binding.table)
    p = skin.parameters.rest.copy()
    p[skin.parameters.index("right.rotation.x") :][:4] = [1.0, 0.0, 0.0, 0.0]
    matrices = skin.bone_matrices(p)
    fitted = skinned(weights, matrices, vertices) + 0.01
    with pytest.warns(Notice, match="wrings"):
        delta = bind_correction(weights, matrices, vertices, fitted)
    assert 0.01 <= np.abs(delta).max() < 0.01 / 0.05 * 2.0


def test_a_black_box_carries_displacements() -> None:
    rng = np.random.default_rng(5)
    surface, vertices = rng.normal(size=(20, 3)), 0.3 * rng.normal(size=(6, 3))
    nodes, weights = shepard(vertices, surface)
    moves = rng.normal(size=(20, 3))
    moved = carried(vertices, nodes, weights, moves)
    for v in range(6):
        assert moved[v] == pytest.approx(vertices[v] + sum(weights[v, a] * moves[nodes[v, a]] for a in range(4)))


def test_inverted_tets_are_counted_frame_by_frame() -> None:
    vertices, tets = bar_mesh()
    flipped = vertices.copy()
    corner = int(np.argmin(vertices @ [1.0, 1.0, 1.0]))
    flipped[corner] += [0.5, 0.5, 0.5]

    def rest(p: np.ndarray) -> np.ndarray:
        return flipped if p[0] > 0.5 else vertices

    seen: list[tuple[int, int]] = []
    frames = np.array([[0.0], [1.0], [0.2]])
    report = inverted_rest_tets(rest, frames, vertices, tets, progress=lambda *at: seen.append(at))
    around = np.flatnonzero((tets == corner).any(axis=1))
    assert report.counts[0] == report.counts[2] == 0
    assert report.counts[1] == len(report.tets) > 0
    assert set(report.tets) <= set(around)
    assert report.worst_frame == 1
    assert report.smallest[1] < 0.0
    assert report.smallest[0] == pytest.approx(1.0)
    assert report.volume_shares[1] == pytest.approx(report.counts[1] / len(tets))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_weights_of_another_surface_are_refused() -> None:
    with pytest.raises(InputError, match="of 5 vertices for a surface of 6"):
        tet_skin(np.zeros((1, 3)), np.random.default_rng(0).normal(size=(6, 3)), csr_array(np.ones((5, 2))))


def test_some_tets_of_a_black_box_are_those_of_all():
    model = bar_model(black_box=True, poses=3)
    rng = np.random.default_rng(3)
    chosen = rng.permutation(len(model.vertices))[:7]
    nothing = np.broadcast_to(model.vertices, (len(model.poses), *model.vertices.shape))
    posing = Posing(model.rig, model.corrective, model.poses, model.tet_rig, None, nothing, False, [])
    for p in (*model.poses.parameters, rng.normal(0.0, 0.2, len(model.rig.parameters))):
        whole = model.shepard_positions(p)
        np.testing.assert_allclose(model.shepard_positions(p, chosen), whole[chosen], atol=1e-14)
        np.testing.assert_allclose(posing.carried_by_black_box(p, model.vertices), whole, atol=1e-14)
        np.testing.assert_allclose(posing.carried_by_black_box(p, model.vertices, chosen), whole[chosen], atol=1e-14)
