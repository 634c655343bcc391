"""Layers of the viewer: what they show is where it is, as large and as coloured as it should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bodies_for_tests import beam
from pose_models_for_tests import bar_mesh, bar_model, pose, region_weights
from softrig.bases.modes import linear_modes
from softrig.errors import ModeCountError
from softrig.forces.polynomial import reduce_body
from softrig.models.reduced_simulation import ReducedSimulation
from softrig.viewer import contacts
from softrig.viewer.body import SoftBody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.inside import GREY, Magnitude, ModeShow, layers, region_colours, region_palette, region_shares
from softrig.viewer.protocol import decode


def moved(model) -> SoftCharacter:
    """A character away from rest, its flesh in motion."""
    subject = SoftCharacter(model)
    for k in range(6):
        subject.move(pose(model.rig, (0.0, 0.0, 0.1 * k), root_move=(0.0, 0.004 * k, 0.0)))
    subject.look(1.0)
    return subject


@pytest.fixture(scope="module")
def subject() -> SoftCharacter:
    return moved(bar_model(3, regions=3, modes=9))


def made(subject, name):
    layer = layers(subject)[name]()
    header, arrays = decode(layer.message())
    assert header["is"] == "layer"
    assert header["layer"] == layer.name == name
    return layer, header, arrays


def test_the_outer_edges_of_the_tets_are_shown_where_they_are(subject) -> None:
    layer, _, arrays = made(subject, "tets")
    triangles = bar_mesh().boundary_triangles
    wanted = {tuple(sorted(pair)) for a, b, c in triangles.tolist() for pair in ((a, b), (b, c), (c, a))}
    vertices = np.unique(triangles)
    assert {tuple(sorted(vertices[list(edge)])) for edge in arrays["edges"].tolist()} == wanted
    points = layer.points(subject)
    assert points.dtype == np.float32
    assert np.allclose(points, subject.tet_positions()[vertices], atol=1e-6)
    assert np.abs(points - bar_mesh().vertices[vertices]).max() > 0.01  # they move
    assert len(arrays["colours"]) == len(points)


def test_a_cut_shows_the_inside_of_one_half(subject) -> None:
    layer, _, arrays = made(subject, "cut")
    points = layer.points(SoftCharacter(bar_model(3, regions=3, modes=9)))
    whole = bar_mesh().vertices
    axis = int(np.ptp(whole, axis=0).argmin())
    assert np.ptp(points[:, axis]) < 0.75 * np.ptp(whole[:, axis])
    inner = ~np.isin(np.arange(len(whole)), np.unique(bar_mesh().boundary_triangles))
    assert inner.any()
    gaps = np.linalg.norm(points[:, None] - whole[inner], axis=2).min(axis=0)
    assert gaps.min() < 1e-6  # vertices from the inside are among them
    assert arrays["edges"].max() == len(points) - 1


def test_shares_of_regions_are_the_weights_they_were_built_with() -> None:
    model = bar_model(3, regions=3, modes=9)
    model = replace(model, modes_order=np.tile([1.0, 0.5, 0.2], 3))
    shares = region_shares(model)
    free = ~model.fixed
    assert np.allclose(shares[free], region_weights(model.vertices, 3)[free], atol=1e-4)
    assert not shares[model.fixed].any()


def test_regions_have_their_colours_and_held_flesh_is_grey(subject) -> None:
    model = replace(bar_model(3, regions=3, modes=9), modes_order=np.tile([1.0, 0.5, 0.2], 3))
    colours, names = region_colours(model)
    palette = region_palette(3)
    weights = region_weights(model.vertices, 3)[model.embedding_nodes[:, 0]]
    free = ~model.fixed[model.embedding_nodes[:, 0]]
    for region in range(3):
        alone = free & (weights[:, region] == 1.0)
        assert alone.any()
        assert np.abs(colours[alone, :3] - np.rint(palette[region])).max() <= 1
    assert (colours[~free] == GREY).all()
    assert list(names) == list(model.region_names)
    _, header, arrays = made(subject, "regions")
    assert arrays["field_colours"].shape == (len(model.embedding_nodes), 4)
    assert [entry["name"] for entry in header["legend"]] == list(model.region_names)
    assert len({tuple(row) for row in np.rint(region_palette(32)).astype(int).tolist()}) == 32


def test_fixed_vertices_are_dots_where_they_are(subject) -> None:
    layer, _, arrays = made(subject, "fixed")
    assert np.allclose(layer.points(subject), subject.tet_positions()[subject.model.fixed], atol=1e-6)
    assert (arrays["sizes"] > 0.0).all()
    assert len(arrays["sizes"]) == subject.model.fixed.sum()


def test_cubature_tets_are_in_their_middles_and_grow_with_the_root_of_their_weight(subject) -> None:
    model = subject.model
    weights = np.ones_like(model.cubature.weights)
    weights[:, 3], weights[:, 5], weights[:, 7] = 8.0, 27.0, 0.0
    other = SoftCharacter(replace(model, cubature=replace(model.cubature, weights=weights)))
    layer, _, arrays = made(other, "cubature")
    kept = np.delete(np.arange(len(model.tets)), 7)
    assert np.allclose(layer.points(other), other.tet_positions()[model.tets[kept]].mean(axis=1), atol=1e-6)
    sizes = dict(zip(kept.tolist(), arrays["sizes"], strict=True))
    assert sizes[3] / sizes[0] == pytest.approx(2.0, rel=1e-5)
    assert sizes[5] / sizes[0] == pytest.approx(3.0, rel=1e-5)


def test_contact_vertices_are_those_noted_or_found_again(subject, monkeypatch) -> None:
    model = subject.model
    noted = {"basis": {"contacts": [0, 2, 1], "contact vertices": [[], [4, 9], [9]]}}
    other = SoftCharacter(replace(model, notes=noted))
    layer, header, arrays = made(other, "contact")
    assert np.allclose(layer.points(other), other.tet_positions()[[4, 9]], atol=1e-6)
    assert len(arrays["sizes"]) == 2
    assert [entry["name"] for entry in header["legend"]] == ["pose 1: 2", "pose 2: 1"]
    looked: list[int] = []

    class Found:
        vertices = np.array([1, 2])

    monkeypatch.setattr(contacts, "self_contacts", lambda *_: looked.append(1) or Found)
    unusable = [
        {},
        {"contacts": [0, 2, 1]},  # as older models have it
        {"contacts": [0, 2, 1], "contact vertices": [[], [4], [9]]},
        {"contacts": [0, 1, 0], "contact vertices": [[], [10**9], []]},
        {"contacts": [0, 1, 0], "contact vertices": [[], ["x"], []]},
    ]
    for basis in unusable:
        found = contacts.contact_vertices(replace(model, notes={"basis": basis}))
        assert [set(own.tolist()) <= {1, 2} for own in found] == [True] * 3
    assert len(looked) == 3 * len(unusable)
    assert made(SoftCharacter(bar_model(3)), "contact")[0].points(subject).shape[1] == 3


def test_magnitude_is_the_distance_from_plain_skinning(subject) -> None:
    layer = layers(subject)["magnitude"]()
    plain = np.zeros((4, 3), np.float32)
    soft = plain + np.array([[0.0, 0, 0], [0.01, 0, 0], [0, 0.02, 0], [0, 0, 0.031]], np.float32)
    field, most = layer.field(subject, soft, plain)
    assert field.dtype == np.uint8
    assert most == pytest.approx(0.05)
    assert np.allclose(field / 255.0 * most, [0.0, 0.01, 0.02, 0.031], atol=most / 500.0)
    assert layer.field(subject, plain, plain)[1] == pytest.approx(0.05)  # held for a while
    for _ in range(4000):
        _, most = layer.field(subject, plain, plain)
    assert most < 0.001
    assert layer.points(subject) is None
    assert decode(layer.message())[0]["layer"] == "magnitude"
    assert Magnitude(1.0).field(subject, plain, plain)[0].max() == 0


def test_a_mode_swings_as_far_as_it_should(subject) -> None:
    show = ModeShow(subject, 4)
    assert not show.coordinates(0.0).any()
    size = subject.geometry().size
    rest = SoftCharacter(subject.model)
    reach = []
    for seconds in np.linspace(0.0, 3.0, 97):
        q = show.coordinates(float(seconds))
        assert np.flatnonzero(q).tolist() in ([], [4])
        rest.look(1.0, q)
        reach.append(np.linalg.norm(rest.soft_positions() - rest.plain_positions(), axis=1).max())
    assert max(reach) == pytest.approx(0.06 * size, rel=0.02)
    wide = ModeShow(subject, 4, 0.12).coordinates(0.2)
    assert np.allclose(wide, 2.0 * show.coordinates(0.2))
    for wrong in (-1, 9):
        with pytest.raises(ModeCountError, match="modes 0 to 8"):
            ModeShow(subject, wrong)


def test_a_plain_body_can_be_looked_into() -> None:
    full = beam(counts=(4, 2, 2))
    model = reduce_body(full, linear_modes(full, 4).shapes)
    subject = SoftBody(ReducedSimulation(model, step=1e-3))
    assert set(layers(subject)) == {"fixed", "magnitude"}
    subject.body = full
    assert set(layers(subject)) == {"tets", "cut", "fixed", "magnitude"}
    layer, _, arrays = made(subject, "fixed")
    assert len(arrays["sizes"]) == full.fixed.sum()
    assert np.allclose(layer.points(subject), subject.tet_positions()[full.fixed], atol=1e-6)
    layer, _, arrays = made(subject, "tets")
    quads = full.mesh.boundary_faces
    assert len(arrays["edges"]) == 2 * len(quads)  # each of four edges is two faces'
    show = ModeShow(subject, 1)
    subject.look(1.0, show.coordinates(1.0 / 4.0 / 0.7))
    reach = np.linalg.norm(subject.soft_positions() - subject.plain_positions(), axis=1).max()
    assert reach == pytest.approx(0.06 * subject.geometry().size, rel=1e-3)


def test_a_subject_without_flesh_has_nothing_inside() -> None:
    class Plain:
        model = simulation = None

    assert layers(Plain()) == {}
