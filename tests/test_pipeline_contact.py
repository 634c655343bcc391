"""Builds of a limb that touches itself: its shapes and its stiffness know where, sliding or fixed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from characters_for_tests import SMALL, limb
from softrig.meshing.boxes import box_tets
from softrig.models.stiffness_map import contact_share
from softrig.pipeline.build import Built, build, build_parts
from softrig.pipeline.reduction import between_poses_errors
from softrig.pipeline.stiffness import CONTACT, YIELDING_CONTACT, contact_stiffness
from softrig.pipeline.yielding import YieldingStiffness
from softrig.poses.materials import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb

FOLDED = {"name": "folded", "parameters": {"lower.rotation.z": 0.92, "lower.rotation.w": 0.39}}
"""A pose at which the limb touches itself."""


def folded_shapes(built: Built) -> np.ndarray:
    """(n, 3, r) the shapes at the folded pose, in the world."""
    model = built.model
    local = model.shapes[1 if len(model.shapes) > 1 else 0]
    return np.einsum("nij,njk->nik", model.vertex_rotations(model.poses.parameters[1]), local)


def test_shapes_of_a_pose_keep_its_contacts_sliding_or_fixed(cache: Path) -> None:
    project = SMALL.changed(
        basis={"between_poses": "interpolated", "rehearsal": 0.0}, poses={"count": 2, "given": [FOLDED]}
    )
    built = {
        kind: build_parts(limb(), project.changed(basis={"contact": kind}), cache=cache, jobs=1)
        for kind in ("fixed", "sliding")
    }
    rows = {kind: parts.shapes.contacts[1] for kind, parts in built.items()}
    touching = built["fixed"].model.notes["basis"]["contact vertices"][1]
    assert len(touching) > 10
    assert rows["fixed"].shape[0] == 3 * len(touching)
    assert rows["sliding"].shape[0] == len(touching)
    held, slid = (folded_shapes(parts) for parts in built.values())
    assert np.abs(held[touching]).max() < 1e-4 * np.abs(held).max()  # shapes are numbers of 16 bits
    assert np.abs(slid[touching]).max() > 0.01 * np.abs(slid).max()
    along = rows["sliding"] @ slid[~built["sliding"].model.fixed].reshape(-1, slid.shape[2])
    assert np.abs(along).max() < 1e-4 * np.abs(slid).max()
    same = build(limb(), project.changed(basis={"contact": True}), cache=cache, jobs=1)
    assert np.array_equal(same.shapes, built["sliding"].model.shapes)


def test_springs_of_fixed_contacts_hold_in_all_directions(cache: Path) -> None:
    """One basis for all poses: ½ qᵀKq is that of springs on all of u at the contacts, not on its normal part alone."""
    project = SMALL.changed(basis={"between_poses": "pooled", "rehearsal": 0.0}, poses={"count": 2, "given": [FOLDED]})
    springs, energies = {}, {}
    for kind in ("fixed", "sliding"):
        built = build_parts(limb(), project.changed(basis={"contact": kind}), cache=cache, jobs=1)
        model = built.model
        turns = np.stack([model.vertex_rotations(p) for p in model.poses.parameters])
        springs[kind] = contact_stiffness(built.flesh, built.fabric, built.shapes, turns)
        moved = folded_shapes(built)[model.notes["basis"]["contact vertices"][1]]
        edge = np.cbrt(np.median(built.flesh.mesh.volumes))
        energies[kind] = CONTACT * edge * PRESETS["fat"].young * np.einsum("cik,cik->k", moved, moved)
        assert not springs[kind][0].any()
        # They stand in the map by themselves: what is learned knows nothing of them.
        known, held = model.cubature.stiffness_map, np.array([0.0, 1.0])
        assert known.touching.tolist() == [1]
        np.testing.assert_allclose(known.springs(held), YIELDING_CONTACT * springs[kind][1], rtol=1e-6)
        flesh = YieldingStiffness(model, built.flesh, built.fabric, model.cubature.beyond)
        learned = model.linear_part(model.poses.parameters[1]) - known.springs(held)
        exact = flesh.at(model.poses.parameters[1])
        assert np.linalg.norm(learned - exact) < 0.01 * np.linalg.norm(exact)
        errors = between_poses_errors(model, built.flesh, built.posing, built.fabric, model.poses.parameters[1])
        assert max(errors.gaussian, errors.loads) < 0.1, "springs are no error"
        assert np.linalg.norm(known.springs(held)) > 0.05 * np.linalg.norm(exact)
    np.testing.assert_allclose(np.diag(springs["fixed"][1]), energies["fixed"], rtol=1e-6)
    assert np.median(np.diag(springs["sliding"][1]) / energies["sliding"]) < 0.8


def test_one_basis_is_never_more_yielding_than_the_body() -> None:
    """A folded limb touches itself; the share of the yielding that a basis has is at most one all the same."""
    project = SMALL.changed(basis={"contact": True, "rehearsal": 0.0}, poses={"count": 2, "given": [FOLDED]})
    notes = build(limb(), project, jobs=1).notes["basis"]
    assert max(notes["contacts"]) > 0
    assert max(notes["compliance"]["mean"]) <= 1.0 + 1e-9


def test_contacts_hold_near_their_pose_only() -> None:
    np.testing.assert_allclose(contact_share(np.array([1.0, 0.75, 0.5, 0.2])), [1.0, 0.25, 0.0, 0.0])


def test_one_basis_for_all_poses_feels_contact() -> None:
    """Springs in the directions of contact: CU is not zero, but moving there is dear."""
    flesh = SimpleNamespace(mesh=box_tets((1.0, 0.1, 0.1), (6, 1, 1)), fixed=np.zeros(28, bool))
    random = np.random.default_rng(0)
    shapes = random.normal(size=(1, 28, 3, 5))
    row = csr_array(random.normal(size=(1, 84)))
    part = SimpleNamespace(shapes=shapes, contacts=(csr_array((0, 84)), row))
    fabric = SimpleNamespace(young=np.full((2, 36), 1e4))
    turns = np.broadcast_to(np.eye(3), (2, 28, 3, 3))
    none, some = contact_stiffness(flesh, fabric, part, turns)
    assert not none.any()
    q = random.normal(size=5)
    pressed = float((row @ (shapes[0].reshape(84, 5) @ q))[0])
    edge = np.cbrt(np.median(flesh.mesh.volumes))
    assert q @ some @ q == pytest.approx(CONTACT * 1e4 * edge * pressed**2)
