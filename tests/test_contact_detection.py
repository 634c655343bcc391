"""Self-contact at a pose: facing slabs, a folded bar, and no false contacts in a crease or at rest."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.errors import InputError, NotFiniteError
from softrig.fem.meshes import VolumeMesh
from softrig.meshing.boxes import box_tets
from softrig.poses.contact import Contacts, self_contacts, self_overlap
from softrig.poses.fit import mean_edge
from softrig.rig.deformers import Bend


def two_slabs() -> VolumeMesh:
    """A plate from y = 0 to 0.2 and another from y = 2 on, both 1 × 1 m, as one mesh; cells of 0.1 m."""
    plate = box_tets((1.0, 0.2, 1.0), (10, 2, 10))
    count = len(plate.vertices)
    vertices = np.concatenate([plate.vertices, plate.vertices + np.array([0.0, 2.0, 0.0])])
    return VolumeMesh.build(vertices, np.concatenate([plate.elements, plate.elements + count]))


def lowered(mesh: VolumeMesh, gap: float, shift: float = 0.0) -> np.ndarray:
    """The upper plate `gap` metres above the lower one, moved aside by `shift`."""
    posed = mesh.vertices.copy()
    upper = posed[:, 1] > 1.0
    posed[upper] += [shift, gap - 1.8, shift]
    return posed


def test_plates_that_touch_have_opposite_normals() -> None:
    mesh = two_slabs()
    gap = 0.05 * mean_edge(mesh)
    contacts = self_contacts(mesh, lowered(mesh, gap, 0.03))
    lower = contacts.vertices < len(mesh.vertices) // 2
    top = np.flatnonzero(np.isclose(mesh.vertices[:, 1], 0.2))
    assert lower.any()
    assert not lower.all()
    assert set(contacts.vertices[lower]) <= set(top)
    inner = top[(mesh.vertices[top][:, [0, 2]] > 0.15).all(axis=1) & (mesh.vertices[top][:, [0, 2]] < 0.85).all(axis=1)]
    assert set(inner) <= set(contacts.vertices)
    # Out of the other part: the upper plate's underside looks down, the lower one's top looks up.
    assert contacts.normals[lower] == pytest.approx(np.tile([0.0, -1.0, 0.0], (int(lower.sum()), 1)), abs=1e-9)
    assert contacts.normals[~lower] == pytest.approx(np.tile([0.0, 1.0, 0.0], (int((~lower).sum()), 1)), abs=1e-9)
    within = np.isin(contacts.vertices, inner)
    assert contacts.depths[within] == pytest.approx(-gap)
    assert contacts.deepest == 0.0
    assert contacts.sliding.all()


def test_plates_apart_do_not_touch() -> None:
    mesh = two_slabs()
    assert len(self_contacts(mesh, mesh.vertices)) == 0
    assert len(self_contacts(mesh, lowered(mesh, 0.4 * mean_edge(mesh)))) == 0


def test_plates_that_overlap_report_how_deep() -> None:
    mesh = two_slabs()
    contacts = self_contacts(mesh, lowered(mesh, -0.06, 0.03))
    assert contacts.deepest == pytest.approx(0.06, abs=1e-9)
    inner = contacts.depths > 0.0
    assert inner.sum() > 100
    assert contacts.depths[inner].max() == pytest.approx(0.06, abs=1e-9)
    lower = contacts.vertices < len(mesh.vertices) // 2
    assert contacts.normals[lower & inner][:, 1] == pytest.approx(np.full(int((lower & inner).sum()), -1.0), abs=1e-6)
    assert "inside" in contacts.summary()
    # The triangle named is one of the other plate.
    assert (contacts.triangles[lower] >= len(mesh.vertices) // 2).all()


def test_the_overlap_of_two_plates_is_what_they_share() -> None:
    mesh = two_slabs()
    assert self_overlap(mesh, mesh.vertices) == 0.0
    assert self_overlap(mesh, lowered(mesh, 0.01)) == 0.0
    for depth in (0.05, 0.1, 0.15):  # however deep: no search ends anywhere
        shared = self_overlap(mesh, lowered(mesh, -depth, 0.1))
        assert shared == pytest.approx(depth * 0.9 * 0.9, rel=0.12)


def test_moving_along_the_normal_parts_the_plates() -> None:
    """The sign: every vertex moved by its own depth against the other's inside gets out."""
    mesh = two_slabs()
    posed = lowered(mesh, -0.06, 0.03)
    contacts = self_contacts(mesh, posed)
    lower = contacts.vertices < len(mesh.vertices) // 2
    freed = posed.copy()
    freed[contacts.vertices[lower]] += (contacts.depths[lower, None] + 0.04) * contacts.normals[lower]
    again = self_contacts(mesh, freed, mesh.vertices)
    assert again.deepest < contacts.deepest


def test_deep_contacts_can_be_held_fast() -> None:
    mesh = two_slabs()
    cell = mean_edge(mesh)
    posed = lowered(mesh, -0.06, 0.03)
    posed[mesh.vertices[:, 1] > 1.0, 1] += 0.05 * posed[mesh.vertices[:, 1] > 1.0, 0]
    contacts = self_contacts(mesh, posed, fixed_beyond=0.03 / cell)
    assert np.array_equal(contacts.sliding, contacts.depths <= 0.03)
    assert contacts.sliding.any()
    assert not contacts.sliding.all()


def folded_bar(angle: float) -> tuple[VolumeMesh, np.ndarray]:
    mesh = box_tets((2.0, 0.2, 0.2), (20, 2, 2))
    bend = Bend(mesh.vertices, (1.0, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), -0.2, 0.2)
    return mesh, bend.positions(np.array([angle]))


def test_the_legs_of_a_folded_bar_touch_and_its_crease_does_not() -> None:
    mesh, posed = folded_bar(3.45)
    contacts = self_contacts(mesh, posed)
    assert len(contacts) > 10
    at = mesh.vertices[contacts.vertices]
    assert (np.abs(at[:, 0] - 1.0) > 0.2).all()
    assert {-1, 1} == set(np.sign(at[:, 0] - 1.0).astype(int))
    # The inner side of the bend is y = 0.2, and what presses there comes from the other leg.
    assert (at[:, 1] > 0.15).mean() > 0.8
    partners = mesh.vertices[contacts.triangles].mean(axis=1)
    assert (np.sign(partners[:, 0] - 1.0) == -np.sign(at[:, 0] - 1.0)).all()


@pytest.mark.parametrize("angle", [0.0, 1.0, 2.0])
def test_a_bent_bar_that_does_not_touch_itself_has_no_contacts(angle: float) -> None:
    mesh, posed = folded_bar(angle)
    assert len(self_contacts(mesh, posed)) == 0


def test_size_and_place_do_not_matter() -> None:
    mesh, posed = folded_bar(3.45)
    here = self_contacts(mesh, posed)
    large = VolumeMesh.build(100.0 * mesh.vertices, mesh.elements)
    there = self_contacts(large, 100.0 * posed + 5.0)
    assert np.array_equal(here.vertices, there.vertices)
    assert there.depths == pytest.approx(100.0 * here.depths)
    assert there.normals == pytest.approx(here.normals, abs=1e-9)


def test_wrong_shapes_and_nan_are_refused() -> None:
    mesh, posed = folded_bar(0.5)
    with pytest.raises(InputError, match="vertices, not"):
        self_contacts(mesh, posed[:-1])
    posed[4] = np.nan
    with pytest.raises(NotFiniteError, match="index 4"):
        self_contacts(mesh, posed)


def test_an_empty_set_is_a_set() -> None:
    none = np.zeros(0)
    contacts = Contacts(none.astype(int), np.zeros((0, 3)), none.astype(bool), none, np.zeros((0, 3), int))
    assert len(contacts) == 0
    assert contacts.deepest == 0.0


def test_neighbours_in_a_sharp_crease_do_not_count() -> None:
    mesh = box_tets((2.0, 0.2, 0.2), (20, 2, 2))
    bend = Bend(mesh.vertices, (1.0, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), -0.05, 0.05)
    posed = bend.positions(np.array([3.0]))

    def nearest_at_rest(contacts: Contacts) -> float:
        partners = mesh.vertices[contacts.triangles].mean(axis=1)
        return float(np.linalg.norm(mesh.vertices[contacts.vertices] - partners, axis=1).min())

    cell = mean_edge(mesh)
    far, all_of_them = self_contacts(mesh, posed), self_contacts(mesh, posed, apart=0.0)
    assert nearest_at_rest(far) >= 4.0 * cell
    assert nearest_at_rest(all_of_them) < 3.0 * cell
    assert len(far) < len(all_of_them)
