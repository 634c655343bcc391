"""What is drawn and how it is kept: shapes in fixed point, poses left out, morphs in pieces, vector registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

from pose_models_for_tests import bar_model, pose, with_products
from softrig.models.kernels.pose_space_display import drawn_poses
from softrig.models.kernels.pose_space_gyro import gyroscopic
from softrig.models.kernels.pose_space_layout import gyro, in_fixed_point, region_runs, rows, vertex_regions
from softrig.models.stepper import Stepper
from softrig.numerics.vectors import load, load_four, plus_product, row, spread, store, store_three, widened
from softrig.rig.deformers import BlendShapes, RigChain


def rough_model():
    """Shapes of random entries, which no fixed point holds exactly, of very different sizes from mode to mode."""
    model = bar_model(poses=4, regions=3, modes=13)
    rng = np.random.default_rng(0)
    shapes = np.where(model.shapes != 0.0, rng.normal(size=model.shapes.shape), 0.0) * 10.0 ** rng.uniform(-3, 3, 13)
    shapes = shapes.astype(np.float32).astype(np.float64)
    return with_products(model, shapes, model.region_of_mode, model.frequencies)


def kept_shapes(model):
    """(m_b, n, 3, r) the shapes as kept, and the bytes they take."""
    runs = region_runs(model.region_of_mode)
    tables = rows(model, runs, vertex_regions(model, runs))
    kept = np.zeros_like(model.shapes)
    for vertex in np.flatnonzero(tables.of_vertex >= 0):
        own, at = tables.of_vertex[vertex], tables.offsets[vertex]
        columns = tables.columns[tables.starts[own] : tables.starts[own + 1]]
        shape = 3, len(model.shapes), len(columns)
        numbers = tables.numbers[at : at + np.prod(shape)].reshape(shape)
        kept[:, vertex][..., columns] = (tables.units[:, columns] * numbers).transpose(1, 0, 2)
    return kept, tables.numbers.nbytes


def test_shapes_in_fixed_point_are_as_exact_as_promised():
    model = rough_model()
    kept, size = kept_shapes(model)
    peaks = np.abs(model.shapes).max(axis=(1, 2))[:, None, None]
    assert (np.abs(kept - model.shapes) <= peaks / 32000.0).all()
    assert size < 0.51 * 4 * np.count_nonzero(model.shapes)


def test_numbers_in_fixed_point_stay_what_they_are():
    model = rough_model()
    once = in_fixed_point(model.shapes)
    assert (once != model.shapes).any()
    np.testing.assert_array_equal(in_fixed_point(once), once)
    np.testing.assert_array_equal(once.astype(np.float32), once)
    np.testing.assert_array_equal(kept_shapes(replace(model, shapes=once))[0], once)


def test_the_drawn_surface_is_off_by_less_than_a_hundredth_of_a_millimetre():
    """Flesh that moves by 10 cm, in shapes that 16 bits do not hold."""
    model = rough_model()
    stepper = Stepper(model)
    p = pose(model.rig, (0.2, 0.3, 0.9), root_turn=(0.3, 0.5, -0.2))
    stepper.place(stepper.carriers(p))
    rng = np.random.default_rng(1)
    stepper.q[:] = rng.normal(size=model.mode_count)
    stepper.q[:] *= 0.1 / np.linalg.norm(model.displacement(p, stepper.q), axis=1).max()
    u = model.displacement(p, stepper.q)
    moved = np.einsum("na,nak->nk", model.embedding_weights, u[model.embedding_nodes])
    error = np.abs(stepper.surface(p) - (model.rig.positions(p) + moved)).max()
    assert np.linalg.norm(moved, axis=1).max() > 0.05
    assert error < 1e-5
    np.testing.assert_allclose(stepper.vertex_displacements(), u, atol=1e-5)
    kept = replace(model, shapes=in_fixed_point(model.shapes))
    np.testing.assert_allclose(stepper.vertex_displacements(), kept.displacement(p, stepper.q), atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([0.2, 0.3, 0.5], (0, 3)),
        ([1.0, 0.0, 1e-9], (0, 1)),
        ([1e-8, 1.0, -1e-8], (1, 2)),
        ([0.0, 0.0, 1.0], (2, 3)),
        ([0.5, 0.0, 0.5], (0, 3)),
        ([1.0], (0, 1)),
        ([0.0, 0.0], (1, 2)),
    ],
)
def test_poses_without_weight_are_not_drawn(weights, expected):
    assert drawn_poses(np.array(weights)) == expected


@pytest.mark.parametrize("index", range(4))
def test_at_a_pose_the_others_are_not_missed(index):
    """Against all poses of the very shapes that are drawn, so that their rounding plays no part."""
    model = bar_model(poses=4, regions=3, modes=13)
    stepper = Stepper(model)
    p = model.poses.parameters[index]
    stepper.place(stepper.carriers(p))
    assert drawn_poses(stepper._memory.basis) == (index, index + 1)
    stepper.q[:] = 0.02 * np.random.default_rng(index).normal(size=model.mode_count)
    x, drawn = (
        stepper._memory.upsilon * stepper.q,
        np.tensordot(model.pose_weights(p), kept_shapes(model)[0], axes=1),
    )
    u = np.einsum("nij,njr,r->ni", model.vertex_rotations(p), drawn, x)
    moved = np.einsum("na,nak->nk", model.embedding_weights, u[model.embedding_nodes])
    np.testing.assert_allclose(stepper.surface(p), model.rig.positions(p) + moved, atol=2e-7)


def test_scattered_morphs_are_those_of_the_rig():
    """Two blend shapes that move random vertices: pieces with gaps, alone, together and not at all."""
    model = bar_model(poses=4, morphs=True)
    shapes, skin = model.rig.stages
    rng = np.random.default_rng(2)
    targets = 0.05 * rng.normal(size=shapes.targets.shape) * (rng.uniform(size=(*shapes.targets.shape[:2], 1)) < 0.2)
    rig = RigChain((BlendShapes(shapes.rest_positions, targets, shapes.names), skin))
    stepper = Stepper(replace(model, corrective=()), rig=rig)
    for weights in ((0.0, 0.0), (0.7, 0.0), (0.0, -0.4), (0.3, 0.6), (0.0, 0.0)):
        p = pose(rig, (0.1, 0.2, 0.5))
        p[:2] = weights
        np.testing.assert_allclose(stepper.surface(p), rig.positions(p), atol=1e-6)


def test_gyroscopic_forces_of_groups_that_reach_some_regions():
    """Blocks that a group does not have, and blocks too faint to be kept, against the plain formula."""
    model = bar_model(poses=4, regions=3, modes=13)
    runs, r = region_runs(model.region_of_mode), model.mode_count
    rng = np.random.default_rng(3)
    terms = rng.normal(size=(3, 9, r, r))
    terms[:, :3] -= terms[:, :3].transpose(0, 1, 3, 2).copy()
    terms[:, 3:] += terms[:, 3:].transpose(0, 1, 3, 2).copy()
    region = model.region_of_mode
    terms[1][:, np.add.outer(region, region) < 2] = 0.0
    terms[2][:, region[:, None] != region] *= 1e-9
    terms = terms.astype(np.float32).astype(np.float64)
    tables = gyro(replace(model, gyro=terms, gyro_frames=np.array([0, 1, 0], np.int32)), runs)
    assert tables.terms.shape[1] < 3 * r * (r + 1) / 2
    rates, x, v = rng.normal(size=(3, 2, 3)), rng.normal(size=r), rng.normal(size=r)
    expected = np.zeros(r)
    for (o, turn), term in zip(rates, terms, strict=True):
        squares = np.array([o[0] * o[0], o[1] * o[1], o[2] * o[2], o[0] * o[1], o[0] * o[2], o[1] * o[2]])
        expected -= 2.0 * np.tensordot(o, term[:3], axes=1) @ v
        expected -= (np.tensordot(turn, term[:3], axes=1) + np.tensordot(squares, term[3:], axes=1)) @ x
    force, room = np.zeros(r), np.full((3, int(tables.segments[:, 2].sum())), np.nan)
    gyroscopic(*tables, rates, x, v, room, force)
    np.testing.assert_allclose(force, expected, atol=1e-7 * np.abs(expected).max())
    gyroscopic(*tables, 0.0 * rates, x, v, room, force)
    np.testing.assert_allclose(force, expected, atol=1e-7 * np.abs(expected).max())


@njit
def blended(a, b, factor, out):
    at = np.uint64(1)
    store(out, at, plus_product(load(a, at), spread(factor), load(b, at)))


@njit
def placed(table, x, y, z, out):
    store_three(out, np.uint64(1), plus_product(row(x, y, z), row(x, x, x), load_four(table, np.uint64(2))))


@njit
def doubled(table, out):
    store(out, np.uint64(0), widened(load_four(table, np.uint64(3))))


@pytest.mark.parametrize(("kind", "count"), [(np.float32, 8), (np.float64, 4)])
def test_registers_load_and_store_what_they_say(kind, count):
    a, b, out = np.arange(12, dtype=kind), np.arange(12, dtype=kind) ** 2, np.full(12, -1, kind)
    blended(a, b, kind(0.5), out)
    expected = np.full(12, -1, kind)
    expected[1 : 1 + count] = (a + b / 2)[1 : 1 + count]
    np.testing.assert_array_equal(out, expected)


def test_rows_of_four_write_three():
    table, out = np.arange(8, dtype=np.float32), np.full(6, -1, np.float32)
    placed(table, np.float32(2), np.float32(3), np.float32(4), out)
    np.testing.assert_array_equal(out, [-1, 2 + 2 * 2, 3 + 2 * 3, 4 + 2 * 4, -1, -1])
    wide = np.zeros(4)
    doubled(table, wide)
    np.testing.assert_array_equal(wide, [3, 4, 5, 6])


def test_registers_refuse_arrays_with_gaps():
    a = np.zeros(40)[::2]
    with pytest.raises(NumbaError, match="contiguous"):
        blended(a, a, 0.5, np.zeros(20))
