"""What the figures measure, on tiny bodies: each number goes the way it must."""

from __future__ import annotations

import numpy as np
import pytest

from softrig.bases.modes import linear_modes
from softrig.fem.material import Material
from softrig.figures import (
    alignment,
    bending,
    between,
    contact,
    derivatives,
    flight,
    ground,
    kick,
    local,
    spoons,
)
from softrig.figures.sketching import volume_change
from softrig.meshing.boxes import box_tets
from softrig.models.full import FullBody


def test_a_bent_beam_needs_its_own_modes() -> None:
    beam = bending.bent_beam((8, 2, 2), modes=8)
    found = bending.answers(beam, bending.end_load(beam, (0.0, 0.0, 0.02)))
    tip = beam.straight.mesh.vertices[:, 0] > bending.LENGTH - 1e-9
    assert found["full body"][tip, 2].min() > 1e-3  # it goes where it is pulled
    wrong = bending.errors(found)
    assert wrong[bending.POSE] < 0.05
    assert wrong[bending.TRANSFERRED] > 5.0 * wrong[bending.POSE]
    assert wrong[bending.NEUTRAL] > 5.0 * wrong[bending.POSE]
    truth = linear_modes(beam.bent, 1).frequencies[0]
    own, carried = (bending.frequencies(beam.bent, basis, 1)[0] for basis in (beam.own, beam.carried))
    assert truth * (1.0 - 1e-6) <= own < carried  # a span can only be stiffer than the body


def test_swapped_modes_collapse_unless_aligned() -> None:
    poses = alignment.swapped_modes((6, 1, 1))
    assert alignment.likeness(*poses.shapes[:, :, :, 0], poses.mass) < 1e-6
    assert alignment.likeness(poses.shapes[0, :, :, 0], poses.shapes[1, :, :, 1], poses.mass) > 0.999
    plain = alignment.halfway(poses.shapes, poses.mass)
    turned = alignment.halfway(alignment.aligned(poses, turned=True), poses.mass)
    assert alignment.likeness(plain[:, :, 0], plain[:, :, 1], poses.mass) > 0.999
    assert alignment.likeness(turned[:, :, 0], turned[:, :, 1], poses.mass) < 1e-6
    truth = poses.middle.expand(linear_modes(poses.middle, 2).shapes)
    assert alignment.missed(turned, truth, poses.mass) < 0.01
    assert alignment.missed(plain, truth, poses.mass) > 0.9


def test_a_turned_pose_finds_its_modes_again() -> None:
    poses = alignment.turned_beam((6, 1, 1))
    own = alignment.rayleigh(poses.one, poses.shapes[0])
    found = alignment.rayleigh(poses.other, alignment.aligned(poses, turned=True)[1])
    crossed = alignment.rayleigh(poses.other, alignment.aligned(poses, turned=False)[1])
    assert found == pytest.approx(own, rel=1e-3)
    assert crossed[0] == pytest.approx(own[1], rel=0.02)
    assert crossed[1] == pytest.approx(own[0], rel=0.02)


def test_overlap_of_two_boxes_is_their_common_part() -> None:
    one, other = box_tets((0.06, 0.06, 0.06), (1, 1, 1)), box_tets((0.06, 0.06, 0.06), (1, 1, 1))
    vertices = np.concatenate([one.vertices, other.vertices + np.array([0.04, 0.0, 0.0])])
    both = type(one).build(vertices, np.concatenate([one.elements, other.elements + len(one.vertices)]))
    middle = np.array([0.05, 0.03, 0.03])
    found = contact.overlap(both, both.vertices, middle, reach=0.06)
    assert found.volume == pytest.approx(0.02 * 0.06 * 0.06, rel=0.25)
    assert found.depth == pytest.approx(0.01, abs=contact.GRID)
    apart = both.vertices + np.where(np.arange(len(vertices))[:, None] >= len(one.vertices), [0.05, 0.0, 0.0], 0.0)
    assert contact.overlap(both, apart, middle, reach=0.06) == contact.Overlap(0.0, 0.0)


def test_a_cut_counts_how_often_the_body_is_there() -> None:
    one = box_tets((0.06, 0.06, 0.06), (1, 1, 1))
    vertices = np.concatenate([one.vertices, one.vertices + np.array([0.04, 0.0, 0.0])])
    both = type(one).build(vertices, np.concatenate([one.elements, one.elements + len(one.vertices)]))
    points = np.array([[0.02, 0.03, 0.03], [0.05, 0.03, 0.03], [0.08, 0.03, 0.03], [0.2, 0.03, 0.03]])
    assert contact.cut(both, both.vertices, points).tolist() == [1, 2, 1, 0]


def test_into_contact_counts_one_direction_only() -> None:
    normals = np.array([[0.0, 1.0, 0.0]])
    assert contact.into_contact(normals, np.array([[[0.3, -0.002, 0.0]], [[0.0, 0.01, 0.0]]])) == pytest.approx(0.002)
    assert contact.into_contact(normals, np.array([[[0.3, 0.002, 0.0]]])) == 0.0


def test_shapes_missed_between_poses() -> None:
    shapes = np.eye(6).reshape(2, 3, 6)
    mass = np.ones(2)
    sigma = np.array([2.0, 1.0])
    assert between.missed_of(shapes[:, :, :2], sigma, shapes[:, :, :3], mass) == pytest.approx(0.0, abs=1e-12)
    assert between.missed_of(shapes[:, :, :2], sigma, shapes[:, :, 1:3], mass) == pytest.approx(np.sqrt(4.0 / 5.0))


def test_a_pull_held_to_a_basis_is_stiffer_and_local_shapes_do_not_ring() -> None:
    mesh = box_tets((0.6, 0.1, 0.1), (12, 2, 2))
    body = FullBody(mesh, Material(1e4, 0.3, 1000.0), fixed=mesh.vertices[:, 0] < 1e-9, mass="lumped")
    patch, load = local.patch_pull(body, np.array([0.6, 0.1, 0.05]), 0.02)
    assert load.sum(axis=0) == pytest.approx([1.0, 0.0, 0.0])
    force = body.restrict(load)
    truth = body.expand(np.asarray(body.solve(body.rest_stiffness, force)))
    held = local.held_answer(body, local.global_basis(body, 6), force)
    assert 0.0 < (load * held).sum() < (load * truth).sum()
    far = mesh.vertices[:, 0] < 0.1
    assert local.ringing(truth, patch, far) == pytest.approx(
        np.linalg.norm(truth[far], axis=1).max() / np.linalg.norm(truth[patch], axis=1).mean()
    )


def test_modes_needed_are_read_off_the_curve() -> None:
    assert local.modes_needed((10, 20, 40), (1.0, 3.0, 5.0), 4.0) == pytest.approx(30.0)
    assert local.modes_needed((10, 20), (1.0, 3.0), 0.5) == 10.0
    assert local.modes_needed((10, 20), (1.0, 3.0), 3.5) is None


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # the mesh is coarse on purpose
def test_one_basis_for_two_poses_loses_motion_or_ground() -> None:
    x = ground.hanging_x(tets=500, modes=6)
    mass = x.free.mass
    assert x.own[0].T @ (mass @ x.own[0]) == pytest.approx(np.eye(6), abs=1e-8)
    pooled = x.pooled(12)
    _, own = ground.moved_off(x.grounded, x.own[1], x.touching, 2.0)
    _, both = ground.moved_off(x.grounded, pooled, x.touching, 2.0)
    assert own < 1e-9  # contact is in the basis
    assert both > 1e-4
    load, pulse = ground.side_kick(x.free, 5.0)
    swing = ground.reduced_swing(x.free, x.own[0], load, pulse[:20])
    foot = int(np.argmax(np.abs(x.free.expand(load)).sum(axis=1)))
    assert swing[-1, foot] @ x.free.expand(load)[foot] > 0.0


def test_spoon_bends_where_it_is_pulled_and_derivatives_matter() -> None:
    spoon = spoons.soft_spoon(30)
    body = spoon.body
    length = float(np.ptp(body.mesh.vertices[:, 0]))
    force = spoons.bending_force(body, spoon.tip, 0.3 * length)
    load = spoon.pull(spoon.tip, (0.0, 0.0, force))
    truth = spoons.full_answer(body, load)
    assert 0.1 * length < truth[spoon.tip, 2].mean() < 0.4 * length
    with_derivatives = derivatives.derivative_basis(body, 9, modes=4).shapes
    linear = linear_modes(body, 9).shapes
    assert derivatives.missed_share(body, with_derivatives, truth) < derivatives.missed_share(body, linear, truth)
    good, stiff = (spoons.reduced_answer(body, basis, load) for basis in (with_derivatives, linear))
    assert spoons.difference(good, truth) < 0.1 < spoons.difference(stiff, truth)
    assert volume_change(body.mesh, 0.1 * body.mesh.vertices) == pytest.approx(1.1**3 - 1.0)


def test_sections_turn_as_they_are_twisted() -> None:
    beam = derivatives.beam_of_bricks((10, 2, 2))
    u = derivatives.twisted(beam.mesh.vertices, 4.0, derivatives.BEAM)
    assert derivatives.section_angles(beam.mesh.vertices, u)[[0, 5, -1]] == pytest.approx([0.0, 2.0, 4.0])
    assert derivatives.section_angles(beam.mesh.vertices, -u * 0.0)[-1] == 0.0
    bases = derivatives.twist_bases(beam, among=10)
    target = derivatives.twisted(beam.mesh.vertices, 1.0, derivatives.BEAM)
    missed = [derivatives.missed_share(beam, basis, target) for basis in bases.values()]
    assert missed[0] < 0.5 * missed[1]


def test_a_kick_lifts_the_tip_and_swings() -> None:
    spoon = spoons.soft_spoon(26)
    hit = kick.kick_of(spoon, reach=0.2, periods=1.6, steps=30)
    basis = linear_modes(spoon.body, 4).shapes
    assert basis.shape[1] == 4
    full = kick.full_motion(spoon.body, hit) @ hit.load
    good = kick.reduced_motion(spoon.body, derivatives.derivative_basis(spoon.body, 8, modes=4).shapes, hit)
    assert full[hit.pulse > 0.0][-1] > 0.0
    assert np.linalg.norm(good - full) < 0.2 * np.linalg.norm(full)


def test_a_thrown_body_keeps_momentum_and_follows_the_full_one() -> None:
    thing = flight.free_spoon(22)
    reduced, drift = flight.reduced_flight(flight.thrown(thing.body, 12, 6), 0.05, 5)
    full = flight.full_flight(thing.body, 0.05, 5)
    assert drift["linear momentum"] < 1e-9
    assert drift["angular momentum"] < 1e-9
    assert drift["energy"] < 0.01
    moved = np.linalg.norm(full.places[-1] - full.places[0], axis=1).max()
    assert np.linalg.norm(full.places[-1] - reduced.places[-1], axis=1).max() < 0.05 * moved
    turned = thing.body.mesh.vertices @ np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) + 3.0
    assert flight.bent(thing.body, turned).max() < 1e-9
