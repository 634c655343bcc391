"""The fit of the tets to a posed surface (PSSD Eq. 3): stationary by differences, never inverted, free of units."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from softrig.errors import InputError, NotFiniteError
from softrig.fem.embedding import Embedding
from softrig.fem.laws import LAWS, WORKSPACE, energy, law_code
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.meshing.embedding import embed_points
from softrig.meshing.quality import tet_volumes
from softrig.poses.fit import POISSON, FitReport, fit_tets, mean_edge
from softrig.poses.tet_rig import bind_correction, skinned, tet_skin
from softrig.rig.deformers import Bend


@cache
def bar() -> tuple[VolumeMesh, Embedding, np.ndarray]:
    """A bar of 240 tets, its embedded surface points, and the points."""
    mesh = box_tets((1.0, 0.2, 0.2), (10, 2, 2))
    u, v = np.meshgrid(np.linspace(0.0, 1.0, 25), np.linspace(0.0, 0.2, 6), indexing="ij")
    u, v, low = u.ravel(), v.ravel(), np.zeros(u.size)
    sides = [np.stack(side, axis=1) for side in ((u, v, low), (u, v, low + 0.2), (u, low, v), (u, low + 0.2, v))]
    points = np.concatenate(sides)
    return mesh, embed_points(mesh, points), points


def bent(points: np.ndarray, angle: float) -> np.ndarray:
    return Bend(points, (0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), -0.2, 0.2).positions(np.array([angle]))


def value(x: np.ndarray, target: np.ndarray, gamma: float, weights: np.ndarray) -> float:
    """Both terms of Eq. 3 as the module's head has them, tet by tet."""
    mesh, embedding, _ = bar()
    carried = np.einsum("nk,nkd->nd", embedding.weights, x[embedding.nodes])
    total = weights @ np.sum((carried - target) ** 2, axis=1) / (weights.sum() * mean_edge(mesh) ** 2)
    lam, mu = (float(constant) for constant in Material(1.0, POISSON, 1.0).lame())
    for tet, volume in zip(mesh.elements, mesh.volumes, strict=True):
        rest = (mesh.vertices[tet[1:]] - mesh.vertices[tet[0]]).T
        F = (x[tet[1:]] - x[tet[0]]).T @ np.linalg.inv(rest)
        psi = energy(law_code("stable-neo-hookean"), F, lam, mu, np.empty(WORKSPACE))
        total += gamma * volume * psi / mesh.volumes.sum()
    return float(total)


def test_the_neutral_surface_is_met_by_the_neutral_tets() -> None:
    mesh, embedding, points = bar()
    rng = np.random.default_rng(0)
    report = fit_tets(mesh, embedding, points, mesh.vertices + rng.normal(0.0, 0.01, mesh.vertices.shape))
    assert report.positions == pytest.approx(mesh.vertices, abs=1e-4)
    assert report.error < 1e-5 < report.start_error
    assert not report.raised_tets.size


def test_a_rigid_motion_costs_nothing() -> None:
    mesh, embedding, points = bar()
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1.0]])
    report = fit_tets(mesh, embedding, points @ turn.T + [1.0, 2.0, 3.0], mesh.vertices @ turn.T + [1.0, 2.01, 3.0])
    assert report.positions == pytest.approx(mesh.vertices @ turn.T + [1.0, 2.0, 3.0], abs=1e-4)
    assert report.thinnest == pytest.approx(1.0, abs=1e-3)


def test_the_result_is_stationary_by_definition() -> None:
    mesh, embedding, points = bar()
    target = bent(points, 0.6)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(points))
    gamma = 0.3
    report = fit_tets(mesh, embedding, target, bent(mesh.vertices, 0.6), gamma=gamma, surface_weights=weights)
    assert report.thinnest > 0.5
    x, rng = report.positions, np.random.default_rng(2)
    here = value(x, target, gamma, weights)
    for _ in range(4):
        d = rng.normal(0.0, 1.0, x.shape)
        ahead, behind = (value(x + step * d, target, gamma, weights) for step in (1e-3, -1e-3))
        assert min(ahead, behind) > here
        assert abs(ahead - behind) < 2e-2 * (ahead + behind - 2.0 * here)


def test_a_small_gamma_follows_the_surface_a_large_one_keeps_the_shape() -> None:
    mesh, embedding, points = bar()
    target, start = bent(points, 1.0), bent(mesh.vertices, 1.0)
    errors = [fit_tets(mesh, embedding, target, start, gamma=gamma).error for gamma in (0.02, 0.2, 20.0)]
    assert errors[0] < errors[1] < errors[2]
    assert errors[0] < 0.02 * mean_edge(mesh)


def test_units_of_length_and_of_the_weights_do_not_matter() -> None:
    mesh, embedding, points = bar()
    target, start = bent(points, 0.8), bent(mesh.vertices, 0.8)
    large = VolumeMesh.build(100.0 * mesh.vertices, mesh.elements)
    one = fit_tets(mesh, embedding, target, start)
    other = fit_tets(large, embedding, 100.0 * target, 100.0 * start, surface_weights=np.full(len(points), 7.0))
    assert other.positions == pytest.approx(100.0 * one.positions, rel=1e-6)


def test_heavier_parts_of_the_surface_are_met_better() -> None:
    mesh, embedding, points = bar()
    target = bent(points, 1.2)
    left = points[:, 0] < 0.5
    weights = np.where(left, 20.0, 0.1)
    plain, skewed = (
        fit_tets(mesh, embedding, target, bent(mesh.vertices, 1.2), gamma=2.0, surface_weights=w)
        for w in (None, weights)
    )
    missed = [np.sum((embedding.carry(r.positions) - target)[left] ** 2) for r in (plain, skewed)]
    assert missed[1] < missed[0]


def test_a_tangled_start_is_untangled() -> None:
    mesh, embedding, points = bar()
    start = mesh.vertices.copy()
    inner = np.argsort(np.linalg.norm(start - [0.5, 0.1, 0.1], axis=1))[:2]
    start[inner] = start[inner[::-1]]
    assert (tet_volumes(start, mesh.elements) <= 0.0).any()
    report = fit_tets(mesh, embedding, points, start)
    assert report.positions == pytest.approx(mesh.vertices, abs=2e-3)
    assert not report.inverted.size


def folded() -> tuple[np.ndarray, np.ndarray]:
    """The surface and tets of a bar whose middle third is pulled through itself: no honest fit can follow."""
    mesh, _, points = bar()

    def fold(x: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[:, 0] += 0.35 * np.exp(-(((x[:, 0] - 0.35) / 0.08) ** 2))
        return out

    return fold(points), fold(mesh.vertices)


@cache
def folded_fit() -> tuple[FitReport, list[tuple[int, int]]]:
    mesh, embedding, _ = bar()
    target, start = folded()
    seen: list[tuple[int, int]] = []
    return fit_tets(mesh, embedding, target, start, gamma=0.02, progress=lambda *at: seen.append(at)), seen


def test_a_folded_surface_inverts_no_tet_and_the_report_says_where_it_was_stiffened() -> None:
    mesh, _, _ = bar()
    _, start = folded()
    assert (tet_volumes(start, mesh.elements) <= 0.0).any()
    report, seen = folded_fit()
    assert (tet_volumes(report.positions, mesh.elements) > 0.0).all()
    assert not report.inverted.size
    assert report.thinnest > 0.0
    middle = mesh.vertices[mesh.elements[report.raised_tets]].mean(axis=1)[:, 0]
    assert 0 < len(middle) < len(mesh.elements)
    assert np.all((middle > 0.15) & (middle < 0.85))
    assert "stiffer" in report.summary()
    assert seen == [(k + 1, seen[0][1]) for k in range(len(seen))]


def test_fixed_vertices_stay() -> None:
    mesh, embedding, points = bar()
    fixed = mesh.vertices[:, 0] < 0.05
    start = bent(mesh.vertices, 0.5) + 0.003
    report = fit_tets(mesh, embedding, bent(points, 0.5), start, fixed=fixed)
    assert np.array_equal(report.positions[fixed], start[fixed])
    free = ~fixed & (mesh.vertices[:, 0] > 0.3)
    assert report.positions[free] == pytest.approx(bent(mesh.vertices, 0.5)[free], abs=0.01)


def test_bad_input_is_named() -> None:
    mesh, embedding, points = bar()
    with pytest.raises(InputError, match="posed surface is"):
        fit_tets(mesh, embedding, points[:-1], mesh.vertices)
    with pytest.raises(InputError, match="the start is"):
        fit_tets(mesh, embedding, points, mesh.vertices[:-1])
    with pytest.raises(InputError, match="γ must be positive"):
        fit_tets(mesh, embedding, points, mesh.vertices, gamma=0.0)
    with pytest.raises(InputError, match="stable"):
        fit_tets(mesh, embedding, points, mesh.vertices, law="neo-hookean")
    weights = np.ones(len(points))
    weights[3] = -1.0
    with pytest.raises(InputError, match="index 3"):
        fit_tets(mesh, embedding, points, mesh.vertices, surface_weights=weights)
    target = points.copy()
    target[5] = np.nan
    with pytest.raises(NotFiniteError, match="index 5"):
        fit_tets(mesh, embedding, target, mesh.vertices)
    assert "neo-hookean" in LAWS


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")
def test_the_arm_at_its_bent_elbow() -> None:
    """A built-in character through the whole chain: tet skin, fit, bind correction, contacts."""
    from softrig.characters import built_in
    from softrig.poses.contact import self_contacts
    from softrig.rig.bones import skin_of
    from softrig.volume import character_volume

    arm = built_in("arm")
    volume = character_volume(arm, tets=2000)
    mesh, skin = volume.lattice.mesh, skin_of(arm.rig)
    assert skin is not None
    surface = np.zeros(len(volume.surface_vertices), dtype=np.int64)
    surface[volume.welded_of_vertex] = np.arange(arm.rig.vertex_count)
    weights = tet_skin(
        mesh.vertices, volume.surface_vertices, csr_array(skin.binding.table[surface]), tets=mesh.elements
    )
    p = arm.pose("flexed")
    matrices = skin.bone_matrices(arm.skeleton_parameters(p))
    start = skinned(weights, matrices, mesh.vertices)
    target = arm.rig.positions(p)[surface]
    report = fit_tets(mesh, volume.lattice.embedding, target, start)
    assert (tet_volumes(report.positions, mesh.elements) > 0.0).all()
    assert report.thinnest > 0.03
    assert report.error < min(0.15 * mean_edge(mesh), 0.6 * report.start_error)
    delta = bind_correction(weights, matrices, mesh.vertices, report.positions)
    assert skinned(weights, matrices, mesh.vertices + delta) == pytest.approx(report.positions, abs=1e-9)
    assert len(self_contacts(mesh, mesh.vertices)) == 0
    bent_contacts = self_contacts(mesh, report.positions)
    assert len(bent_contacts) > 0
    elbow = 0.305
    assert np.abs(mesh.vertices[bent_contacts.vertices, 0] - elbow).max() < 0.3
