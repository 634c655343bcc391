"""Bases from sketched pulls (StVK05 §5.2) and the choice of separated samples."""

import numpy as np
import pytest

from bodies_for_tests import beam, mass_norm, relative, tip
from softrig.bases.modes import linear_modes
from softrig.bases.sketch import Pull, SketchPad, separated_pulls, sketched_basis, sketched_shapes
from softrig.bases.snapshots import mass_distance_selection, snapshot_basis
from softrig.dynamics import static_equilibrium
from softrig.errors import AnchorError, InputError, ModeCountError, Notice, SolverError
from softrig.forces.polynomial import reduce_body


@pytest.fixture(scope="module")
def body():
    return beam(lengths=(1.0, 0.12, 0.1), counts=(6, 1, 1))


def sweep(body, count=8) -> SketchPad:
    """Somebody drags the tip down, and to both sides."""
    pad = SketchPad(body)
    for side in (-1.0, 0.0, 1.0):
        for part in range(1, count + 1):
            share = part / count / len(tip(body))
            pad.pull(tip(body), np.tile([0.0, 2.0 * side * share, -4.0 * share], (len(tip(body)), 1)))
    return pad


def test_selection_keeps_exactly_the_separated_samples(body):
    """Along one mode of unit mass-norm distances are plain differences of coefficients."""
    mode = linear_modes(body, 1).shapes[:, 0]
    #            too near rest, kept, kept, near 2nd, kept, the 2nd again, kept (1 from 5), near −1
    coefficients = np.array([0.5, 1.0, 3.0, 1.9, -1.0, 1.0, 4.0, -1.99])
    samples = mode[:, None] * coefficients
    assert mass_distance_selection(body, samples, 0.999).tolist() == [1, 2, 4, 6]
    assert mass_distance_selection(body, samples, 0.0).tolist() == list(range(8))
    assert mass_distance_selection(body, samples, 9.0).tolist() == []
    assert mass_distance_selection(body, samples, 0.901).tolist() == [1, 2, 4, 6, 7]
    assert mass_distance_selection(body, samples, 0.899).tolist() == [1, 2, 3, 4, 6, 7]


def test_the_pad_answers_with_the_linear_model_and_records(body):
    pad = SketchPad(body)
    vertices, forces = np.array([5, 5, 13]), np.array([[1.0, 0, 0], [0, 2.0, 0], [0, 0, -3.0]])
    answer = pad.pull(vertices, forces)
    field = np.zeros_like(body.mesh.vertices)
    field[5], field[13] = [1.0, 2.0, 0.0], [0.0, 0.0, -3.0]
    wanted = np.linalg.solve(body.rest_stiffness.toarray(), body.restrict(field))
    np.testing.assert_allclose(answer, body.expand(wanted), atol=1e-10 * np.abs(wanted).max())
    assert not answer[body.fixed].any()
    assert relative(pad.pull(vertices, 2.0 * forces), 2.0 * answer) < 1e-12
    assert len(pad.pulls) == 2
    np.testing.assert_array_equal(pad.pulls[0].forces, forces)
    one = pad.pull(3, [0.0, 0.0, 1.0])
    assert one.shape == body.mesh.vertices.shape
    forces[:] = 0.0
    assert pad.pulls[0].forces.any()  # a copy was recorded


def test_the_pad_refuses_vertices_outside_and_loose_bodies(body):
    pad = SketchPad(body)
    for outside in (-1, len(body.mesh.vertices)):
        with pytest.raises(InputError) as raised:
            pad.pull([0, outside], np.zeros((2, 3)))
        assert raised.value.indices.tolist() == [outside]
    assert pad.pulls == []
    with pytest.raises(AnchorError):
        SketchPad(beam(free=True))


def test_pulls_are_kept_by_their_distance_from_the_last_one_kept(body):
    pulls = [Pull(np.array([5]), np.array([[0.0, 0.0, f]])) for f in (0.5, 1.0, 1.9, 2.0, 2.5, 0.9, 0.0)]
    kept = [pull.forces[0, 2] for pull in separated_pulls(body, pulls, 1.0)]
    assert kept == [1.0, 2.0, 0.9]  # 0.0 is 0.9 from 0.9
    assert separated_pulls(body, pulls, 0.0) == pulls
    elsewhere = [pulls[1], Pull(np.array([6]), np.array([[0.0, 0.0, 1.0]]))]
    assert separated_pulls(body, elsewhere, 1.4) == []  # the first is 1 from no pull, so the second is, too
    assert separated_pulls(body, elsewhere, 1.0) == elsewhere  # √2 from each other


def test_sketched_shapes_are_static_equilibria(body):
    pad, heard = sweep(body, 3), []
    shapes = sketched_shapes(body, pad.pulls, progress=lambda *at: heard.append(at))
    assert shapes.shape == (body.size, 9)
    for pull, shape in zip(pad.pulls, shapes.T, strict=True):
        force = body.restrict(pull.field(len(body.mesh.vertices)))
        assert relative(body.force(shape), force) < 1e-5
    assert heard == [(done, 9) for done in range(1, 10)]


def test_the_sketched_shapes_come_back_when_the_reduced_model_is_pulled_the_same_way(body):
    """StVK05 Fig. 9: visually indistinguishable, where the linear answer is badly distorted."""
    pad = sweep(body)
    model = reduce_body(body, sketched_basis(body, pad.pulls, 9).shapes)
    for pull in (pad.pulls[7], pad.pulls[15], pad.pulls[20]):
        wanted = sketched_shapes(body, [pull])[:, 0]
        q = static_equilibrium(model, model.reduced_force(pull.vertices, pull.forces), load_steps=4)
        got = body.restrict(model.positions(q) - body.mesh.vertices)
        assert mass_norm(body, got - wanted) < 0.03 * mass_norm(body, wanted)
        linear = body.restrict(SketchPad(body).pull(pull.vertices, pull.forces))
        assert mass_norm(body, linear - wanted) > 0.15 * mass_norm(body, wanted)


def test_the_basis_is_the_mass_pca_of_the_kept_shapes(body):
    pad = sweep(body, 4)
    basis = sketched_basis(body, pad.pulls, 4, shape_separation=0.2)
    shapes = sketched_shapes(body, pad.pulls)
    norms = np.sqrt(np.einsum("ik,ik->k", shapes, body.mass @ shapes))
    kept = mass_distance_selection(body, shapes, 0.2 * norms.max())
    assert 4 < len(kept) < 12
    wanted = snapshot_basis(body, body.expand(shapes[:, kept]).transpose(2, 0, 1), 4)
    np.testing.assert_allclose(basis.singular_values, wanted.singular_values, rtol=1e-8)
    np.testing.assert_allclose(basis.shapes.T @ (body.mass @ basis.shapes), np.eye(4), atol=1e-10)


def test_a_pull_without_equilibrium_is_left_out_with_a_notice(body, monkeypatch):
    good = Pull(tip(body), np.tile([0.0, 0.0, -0.5], (4, 1)))
    broken = Pull(tip(body), np.tile([0.0, 0.0, -1e6], (4, 1)))

    def solve(body, force, **options):
        if np.abs(force).max() > 1e3:
            raise SolverError("the static solve stalled")
        return static_equilibrium(body, force, **options)

    monkeypatch.setattr("softrig.bases.sketch.static_equilibrium", solve)
    with pytest.warns(Notice, match="index 1"):
        shapes = sketched_shapes(body, [good, broken, good])
    assert shapes.shape[1] == 2


def test_nothing_sketched_or_too_little_of_it_raises(body):
    with pytest.raises(ModeCountError, match="no pulls"):
        sketched_basis(body, [], 3)
    with pytest.raises(ModeCountError):
        sketched_basis(body, sweep(body, 1).pulls, 5)
    with pytest.raises(ModeCountError):
        sketched_basis(body, sweep(body, 2).pulls, 1, force_separation=1e9)
