"""Materials of the poses: presets, paint carried to the tets (PSSD Eq. 37), values between poses (Eq. 36)."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from softrig.errors import InputError, MaterialError
from softrig.fem.embedding import Embedding
from softrig.fem.material import Material
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.meshing.embedding import embed_points
from softrig.numerics.sparse import symmetric_solver
from softrig.poses import materials
from softrig.poses.materials import (
    PRESETS,
    carrying_tets,
    held_by_softness,
    material_at,
    painted_field,
    painted_material,
    preset_called,
    stiffness_from_softness,
    tet_laplacian,
)


@pytest.fixture(scope="module")
def body() -> tuple[VolumeMesh, Embedding, np.ndarray]:
    """A bar, its surface points embedded, and those points."""
    mesh = box_tets((1.0, 0.2, 0.2), (10, 2, 2))
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(300, 3)) * [1.0, 0.2, 0.2]
    points[np.arange(300), 1 + np.arange(300) % 2] = 0.2 * (np.arange(300) // 2 % 2)
    return mesh, embed_points(mesh, points), points


def test_presets_are_flesh() -> None:
    assert set(PRESETS) == {"fat", "muscle", "firm", "jelly"}
    for preset in PRESETS.values():
        assert 0.45 <= preset.poisson <= 0.48
        assert 1e3 < preset.young < 1e6
        assert 900.0 <= preset.density <= 1100.0
        assert 0.0 < preset.damping_ratio < 1.0
        assert preset.material.young == preset.young
    order = sorted(PRESETS, key=lambda name: PRESETS[name].young)
    assert order == ["jelly", "fat", "muscle", "firm"]
    assert preset_called("fat") is PRESETS["fat"]
    with pytest.raises(InputError, match="no material preset 'bone'"):
        preset_called("bone")


def test_the_laplacian_is_symmetric_positive_and_blind_to_constants(body) -> None:
    mesh, _, _ = body
    L = tet_laplacian(mesh).toarray()
    assert np.array_equal(L, L.T)
    assert L @ np.ones(len(L)) == pytest.approx(np.zeros(len(L)), abs=1e-12)
    assert np.linalg.eigvalsh(L)[1] > 1e-3
    shared = [len(set(mesh.elements[0]) & set(tet)) == 3 for tet in mesh.elements.tolist()]
    assert np.array_equal(L[0] < 0.0, shared)


def test_the_field_solves_eq_37_by_definition(body) -> None:
    """The gradient of the two terms, written out, vanishes; and any other field has a larger value."""
    mesh, embedding, points = body
    values = 1e4 * np.exp(2.0 * points[:, 0])
    values[points[:, 0] > 0.6] = np.nan
    zeta = 0.7
    x = np.log(painted_field(mesh, embedding, values, smoothing=zeta))
    owners = carrying_tets(mesh, embedding)
    shares = mesh.volumes / mesh.volumes.mean()
    L = tet_laplacian(mesh).toarray()

    def cost(x: np.ndarray) -> float:
        data = 0.0
        for e in range(len(x)):
            inside = values[(owners == e) & np.isfinite(values)]
            if inside.size:
                data += 0.5 * shares[e] * (x[e] - np.log(inside).mean()) ** 2
        return data + 0.5 * zeta * x @ L @ x

    rng = np.random.default_rng(1)
    for _ in range(3):
        d = rng.normal(size=len(x))
        ahead, behind = cost(x + 1e-3 * d), cost(x - 1e-3 * d)
        assert ahead - behind == pytest.approx(0.0, abs=1e-9)
        assert min(ahead, behind) > cost(x)


def test_a_constant_stays_and_nothing_leaves_the_range_of_the_paint(body) -> None:
    mesh, embedding, points = body
    assert painted_field(mesh, embedding, np.full(300, 5e3)) == pytest.approx(np.full(len(mesh.elements), 5e3))
    values = np.where(points[:, 0] < 0.2, 1e3, np.where(points[:, 0] > 0.8, 1e6, np.nan))
    field = painted_field(mesh, embedding, values)
    assert 1e3 <= field.min() < 1.2e3
    assert 8e5 < field.max() <= 1e6
    middle = field[np.abs(mesh.vertices[mesh.elements].mean(axis=1)[:, 0] - 0.5) < 0.06]
    assert np.exp(np.log(middle).mean()) == pytest.approx(np.sqrt(1e9), rel=0.4)


def test_more_smoothing_is_smoother_and_little_smoothing_meets_the_paint(body) -> None:
    mesh, embedding, points = body
    values = np.where(points[:, 0] < 0.5, 0.30, 0.48)
    rough, smooth = (painted_field(mesh, embedding, values, smoothing=s, positive=False) for s in (0.0, 20.0))
    L = tet_laplacian(mesh)
    assert smooth @ (L @ smooth) < 0.2 * (rough @ (L @ rough))
    owners = carrying_tets(mesh, embedding)
    for tet in np.unique(owners):
        assert rough[tet] == pytest.approx(values[owners == tet].mean(), abs=1e-6)


def test_the_size_of_the_body_does_not_matter(body) -> None:
    mesh, embedding, points = body
    large = VolumeMesh.build(100.0 * mesh.vertices, mesh.elements)
    values = 1e4 + 1e5 * points[:, 0]
    assert painted_field(large, embedding, values) == pytest.approx(painted_field(mesh, embedding, values))


def test_parts_without_paint_take_the_mean() -> None:
    one = box_tets((1.0, 1.0, 1.0), (1, 1, 1))
    mesh = VolumeMesh.build(
        np.concatenate([one.vertices, one.vertices + 5.0]), np.concatenate([one.elements, one.elements + 8])
    )
    embedding = embed_points(mesh, np.array([[0.2, 0.3, 0.4], [5.2, 5.3, 5.4]]))
    assert painted_field(mesh, embedding, np.array([2e4, np.nan])) == pytest.approx(np.full(12, 2e4))


def test_the_carrying_tet_is_found_without_being_told(body) -> None:
    mesh, embedding, _ = body
    plain = Embedding(embedding.nodes[:, [2, 0, 3, 1]], embedding.weights[:, [2, 0, 3, 1]])
    assert np.array_equal(carrying_tets(mesh, plain), embedding.tets)
    with pytest.raises(InputError, match="no tet") as caught:
        carrying_tets(mesh, Embedding(np.array([[0, 1, 2, 98]]), np.full((1, 4), 0.25)))
    assert list(caught.value.indices) == [0]


def test_bad_paint_is_named(body) -> None:
    mesh, embedding, _ = body
    values = np.full(300, 1e4)
    with pytest.raises(InputError, match="299"):
        painted_field(mesh, embedding, values[:299])
    with pytest.raises(InputError, match="nothing is painted"):
        painted_field(mesh, embedding, np.full(300, np.nan))
    values[17] = 0.0
    with pytest.raises(MaterialError, match="index 17"):
        painted_field(mesh, embedding, values)
    with pytest.raises(InputError, match="smoothing"):
        painted_field(mesh, embedding, np.ones(300), smoothing=-1.0)


def test_softness_one_is_the_preset_and_less_is_stiffer() -> None:
    factors = stiffness_from_softness(np.array([1.0, 0.5, 0.0]), stiffest=100.0)
    assert factors == pytest.approx([1.0, 10.0, 100.0])
    with pytest.raises(InputError, match="index 1"):
        stiffness_from_softness(np.array([0.5, 1.2]))


def test_vertices_of_softness_zero_are_carried_by_held_vertices_only(body) -> None:
    mesh, embedding, points = body
    softness = np.where(points[:, 0] < 0.4, 0.0, 1.0)
    held = held_by_softness(mesh, embedding, softness)
    u = np.where(held[:, None], 0.0, np.random.default_rng(2).normal(size=mesh.vertices.shape))
    moved = embedding.carry(u)
    assert np.array_equal(moved[softness == 0.0], np.zeros((int((softness == 0.0).sum()), 3)))
    assert held[mesh.vertices[:, 0] < 0.25].all()
    assert not held[mesh.vertices[:, 0] > 0.65].any()
    assert not held_by_softness(mesh, embedding, np.full(300, 0.3)).any()
    assert held_by_softness(mesh, embedding, np.zeros(300)).all()


def test_a_painted_material_multiplies_its_maps(body) -> None:
    mesh, embedding, _ = body
    plain = painted_material(mesh, embedding, PRESETS["fat"])
    assert plain.young == pytest.approx(np.full(len(mesh.elements), 8e3))
    assert plain.density == 930.0
    both = painted_material(
        mesh, embedding, PRESETS["fat"], softness=np.full(300, 0.5), stiffness=np.full(300, 3.0), poisson=0.4
    )
    assert both.young == pytest.approx(np.full(len(mesh.elements), 8e3 * 10.0 * 3.0))
    assert both.poisson == pytest.approx(np.full(len(mesh.elements), 0.4))
    per_tet = np.linspace(1e3, 1e4, len(mesh.elements))
    assert painted_material(mesh, embedding, PRESETS["fat"], young=per_tet).young == pytest.approx(per_tet)


def test_between_poses_the_material_is_the_convex_mixture() -> None:
    soft, hard = Material(np.array([1e3, 2e3]), 0.4, 1000.0), Material(np.array([5e3, 2e3]), 0.48, 1000.0)
    mixed = material_at([soft, hard], np.array([0.25, 0.75]))
    assert mixed.young == pytest.approx([4e3, 2e3])
    assert mixed.poisson == pytest.approx(0.46)
    assert material_at([soft, hard], np.array([1.3, -0.3])).young == pytest.approx(soft.young)
    with pytest.raises(InputError, match="2 materials"):
        material_at([soft, hard], np.ones(3))


def test_paint_is_carried_by_one_thread(body, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several would give other last bits now and then, and nothing that a build kept would be found again."""
    mesh, embedding, points = body
    threads = []

    class Watched:
        def __init__(self) -> None:
            self._solver = symmetric_solver()

        def factorise(self, matrix) -> None:
            threads.extend(pool["num_threads"] for pool in threadpool_info())
            self._solver.factorise(matrix)

        def solve(self, right: np.ndarray) -> np.ndarray:
            threads.extend(pool["num_threads"] for pool in threadpool_info())
            return self._solver.solve(right)

    monkeypatch.setattr(materials, "symmetric_solver", Watched)
    with threadpool_limits(2):
        painted_field(mesh, embedding, 1.0 + points[:, 0])
        assert max(pool["num_threads"] for pool in threadpool_info()) == 2
    assert set(threads) == {1}
