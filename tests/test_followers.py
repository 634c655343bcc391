"""What the rest of the body does beside the modes: foretold by them, drawn, and kept in files."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bodies_for_tests import beam
from characters_for_tests import SMALL, limb
from pose_models_for_tests import bar_model, followed, pose, with_more_mass
from softrig.bases.compliance import acceleration_forces
from softrig.bases.modes import linear_modes
from softrig.dynamics import Rayleigh
from softrig.errors import InputError, ModelFileError
from softrig.fidelity import trajectory_error
from softrig.models.fewer_modes import foretold_by_kept, likely_motion
from softrig.models.file import load_character_model, save_model
from softrig.models.followers import Followers, in_steps
from softrig.models.level_of_detail import mean_bone_inertia
from softrig.models.pose_space import REST_CLAMP, PoseSpaceModel
from softrig.models.stepper import Stepper
from softrig.pipeline import remainder
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.cache import StageCache
from softrig.pipeline.compare import default_damping, exact_forces, full_trajectory, reduced_trajectory, unfollowed
from softrig.pipeline.followers import (
    Candidates,
    candidates,
    fitted_followers,
    following_share,
    lived_seen,
    loads_seen,
    principal_shapes,
)
from softrig.pipeline.pose_samples import map_samples
from softrig.pipeline.remainder import LEVELS, SHARES, TOLERANCE, least_stretch, measured_remainder
from softrig.pipeline.shapes import posed_body, rig_causes
from softrig.pipeline.yielding import LIVED, OWN, YieldingStiffness, expected_parts
from softrig.simulation.contact import ContactPoints
from softrig.viewer.take_rows import model_mark

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


@pytest.fixture(scope="module")
def built(cache) -> Built:
    return build_parts(limb(), SMALL, cache=cache, jobs=1)


@pytest.mark.parametrize("regions", [1, 3])
def test_what_follows_is_drawn_where_it_is_said_to_be(regions: int) -> None:
    model = followed(bar_model(poses=4, regions=regions, modes=9, basis_poses=1))
    stepper, p = Stepper(model), pose(model.rig, (0.2, 0.3, 0.9), root_turn=(0.3, 0.5, -0.2))
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.02 * np.random.default_rng(3).normal(size=model.mode_count)
    u = model.displacement(p, stepper.q)
    alone = replace(model, followers=None).displacement(p, stepper.q)
    assert np.abs(u - alone).max() > 0.2 * np.abs(alone).max()
    np.testing.assert_allclose(stepper.vertex_displacements(), u, atol=2e-4 * np.abs(u).max())
    some = np.array([40, 3, 77])
    np.testing.assert_allclose(stepper.vertex_displacements(some), stepper.vertex_displacements()[some], atol=1e-12)
    moved = np.einsum("na,nak->nk", model.embedding_weights, u[model.embedding_nodes])
    np.testing.assert_allclose(stepper.surface(p), model.rig.positions(p) + moved, atol=2e-4 * np.abs(u).max())


def test_how_it_follows_is_its_definition() -> None:
    model = followed(bar_model(poses=4, modes=9, basis_poses=1))
    known, weights = model.followers, np.array([9.0, 8.0, 0.3, -0.7])  # own, springs, two learned
    sums = sum((known.mixing @ weights[2:])[j] * known.left @ known.core[j] @ known.right for j in range(3))
    np.testing.assert_allclose(known.matrix(weights), known.mean + sums, rtol=1e-12)
    np.testing.assert_allclose(known.shapes, known.rows * known.steps)
    p, q = model.poses.parameters[1], np.linspace(-1.0, 1.0, 9)
    y = known.matrix(model.linear_weights(p)) @ (model.mode_scales(p) * q)
    local = np.einsum("nij,nj->ni", model.vertex_rotations(p), known.shapes @ y)
    off = model.displacement(p, q) - replace(model, followers=None).displacement(p, q)
    np.testing.assert_allclose(off, local, atol=1e-12 * np.abs(local).max())


def test_a_copy_of_a_stepper_follows_its_own_modes() -> None:
    model = followed(bar_model(poses=4, modes=9, basis_poses=1))
    stepper, p = Stepper(model), model.poses.parameters[1]
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.01
    other = copy.deepcopy(stepper)
    before = other.surface(p).copy()
    stepper.place(stepper.carriers(model.poses.parameters[2]))
    stepper.q[:] = -0.02
    stepper.surface(p)
    np.testing.assert_array_equal(other.surface(p), before)
    np.testing.assert_allclose(other.vertex_displacements(), model.displacement(p, other.q), atol=1e-5)


def test_fewer_modes_foretell_the_others_and_what_follows_these() -> None:
    model = followed(bar_model(poses=4, regions=3, modes=9, basis_poses=1))
    fewer = model.with_modes(2)  # of two regions: some vertices have no mode left
    kept = np.moveaxis(fewer.shapes[0], 2, 0)
    keep = np.array([k for k in range(9) if any(np.array_equal(model.shapes[0, ..., k], own) for own in kept)])
    mass, flexibility = model.mass_products[0, 0], model.cubature.stiffness_map.components[0]
    foretold = foretold_by_kept(flexibility, mass, keep)
    likely = foretold_by_kept(likely_motion(flexibility, mean_bone_inertia(model)), mass, keep)
    # Of the others what their flexibility makes of a force on these, such that these look as they are.
    sides = np.linalg.solve(mass[np.ix_(keep, keep)], mass[keep])
    np.testing.assert_allclose(sides @ foretold, np.eye(2), atol=1e-10)
    push = np.linalg.solve(sides @ flexibility @ sides.T, np.array([0.3, -0.2]))
    np.testing.assert_allclose(foretold @ [0.3, -0.2], flexibility @ (sides.T @ push), rtol=1e-10)
    weights = np.array([1.0, 0.0, 0.4, 0.2])
    still, p = ~fewer.shapes[0].any(axis=(1, 2)), model.poses.parameters[1]
    assert 0 < still.sum() < len(still)
    # All modes are drawn where these foretell them, with what follows all.
    drawn, wanted = fewer.drawn_shapes(p), model.drawn_shapes(p) @ likely
    assert not drawn[still].any()
    np.testing.assert_allclose(drawn[~still], wanted[~still], atol=0.01 * np.abs(wanted).max())
    # Also those of fewer still, and without anything that followed before.
    one, plain = fewer.with_modes(1), replace(model, followers=None).with_modes(2)
    last = int(np.flatnonzero([np.array_equal(one.shapes[0, ..., 0], own) for own in kept])[0])
    share = foretold_by_kept(
        likely_motion(fewer.cubature.stiffness_map.components[0], mean_bone_inertia(fewer)),
        fewer.mass_products[0, 0],
        np.array([last]),
    )
    reached = one.shapes[0].any(axis=(1, 2))
    np.testing.assert_allclose(
        one.drawn_shapes(p)[reached], (drawn @ share)[reached], atol=0.01 * np.abs(drawn @ share).max()
    )
    assert not one.drawn_shapes(p)[~reached].any()
    np.testing.assert_allclose(
        plain.drawn_shapes(p)[~still], (model.shapes[0] @ likely)[~still], atol=0.01 * np.abs(wanted).max()
    )
    assert plain.followers.matrix(weights).shape == (9, 2)
    stepper = Stepper(fewer)
    stepper.place(stepper.carriers(p))
    stepper.q[:] = 0.02, -0.01
    u = fewer.displacement(p, stepper.q)
    assert not u[still].any()
    np.testing.assert_allclose(stepper.vertex_displacements(), u, atol=2e-4 * np.abs(u).max())


def test_shapes_in_steps_of_bytes() -> None:
    shapes = np.random.default_rng(0).normal(size=(40, 3, 4)) * [1.0, 1e-3, 1e3, 0.0]
    rows, steps = in_steps(shapes)
    assert rows.dtype == np.int8
    assert (np.abs(rows * steps - shapes) <= 0.5001 * steps).all()
    assert (np.abs(rows).max(axis=(0, 1)) == [127, 127, 127, 0]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": np.array([1.0, 1.0, 0.0, 1.0, 1.0])}, "positive"),
        ({"regions": np.array([0, 1, 0, 1, 1], np.int32)}, "region by region"),
        ({"mean": np.zeros((4, 9))}, "mean"),
        ({"left": np.zeros((5, 3))}, "left"),
        ({"right": np.zeros((2, 8))}, "right"),
        ({"core": np.full((3, 4, 2), np.nan)}, "core"),
        ({"core": np.zeros((0, 4, 2)), "mixing": np.zeros((0, 2))}, "at least one"),
        ({"rows": np.zeros((135, 3, 5), np.int16)}, "int8"),
    ],
)
def test_followers_that_do_not_fit_are_refused(changes: dict, message: str) -> None:
    known = followed(bar_model(poses=4, modes=9, basis_poses=1)).followers
    with pytest.raises(InputError, match=message):
        replace(known, **changes)


def test_followers_of_another_model_are_refused() -> None:
    model = followed(bar_model(poses=4, modes=9, basis_poses=1))
    with pytest.raises(InputError, match="flexibility"):
        replace(model, cubature=replace(model.cubature, stiffness_map=None))
    with pytest.raises(InputError, match="mean"):
        replace(model, followers=replace(model.followers, mean=np.zeros((5, 8)), right=np.zeros((2, 8))))
    with pytest.raises(InputError, match="mixing"):
        replace(model, followers=replace(model.followers, mixing=np.zeros((3, 7))))


@pytest.mark.parametrize("regions", [1, 3])
def test_followers_come_back_from_a_file(regions: int, tmp_path: Path) -> None:
    model = followed(bar_model(poses=4, regions=regions, modes=9, basis_poses=1))
    save_model(model, tmp_path / "bar.softrig")
    again = load_character_model(tmp_path / "bar.softrig")
    for name in ("rows", "steps", "regions", "mean", "left", "core", "right", "mixing"):
        np.testing.assert_array_equal(getattr(again.followers, name), getattr(model.followers, name))
    assert again.followers.rows.dtype == np.int8


def test_followers_beyond_the_body_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "bar.softrig"
    save_model(followed(bar_model(poses=4, modes=9, basis_poses=1)), path)
    tensors = load_file(path)
    metadata = {"format": "softrig", "kind": "pose-space", "version": "9"}
    tensors["followers.0.vertices_of_region"] = tensors["followers.0.vertices_of_region"] + 10**6
    save_file(tensors, path, metadata)
    with pytest.raises(ModelFileError, match="do not exist"):
        load_character_model(path)
    tensors["followers.0.vertices_of_region"] = tensors["followers.0.vertices_of_region"] - 10**6
    assert load_character_model_of(tensors, path, metadata) is not None
    for name, wrong in {
        "followers.0.follower_rows": np.ones((1, 1, 1), np.int8),
        "followers.regions": np.full(5, -1, np.int32),
        "followers.core": np.zeros((0, 4, 2), np.float32),
        "followers.steps": np.zeros(5),
    }.items():
        with pytest.raises(ModelFileError, match="inconsistent"):
            load_character_model_of(tensors | {name: wrong}, path, metadata)
    del tensors["followers.0.follower_rows"]
    with pytest.raises(ModelFileError, match="inconsistent"):
        load_character_model_of(tensors, path, metadata)


def load_character_model_of(tensors: dict, path: Path, metadata: dict) -> PoseSpaceModel:
    from safetensors.numpy import save_file

    save_file(tensors, path, metadata)
    return load_character_model(path)


def test_what_is_expected_leaves_nothing_that_the_modes_foretell() -> None:
    """u − W x has no covariance with x: the best that any linear guess can do."""
    body = beam("tets")
    stiffness, mass = body.rest_stiffness.toarray(), body.mass.toarray()
    rng = np.random.default_rng(2)
    basis, loads = linear_modes(body, 5).shapes, rng.normal(size=(body.size, 4))
    heavy, driven = mass @ basis, mass @ loads
    relaxed = np.linalg.solve(stiffness, np.hstack([heavy, driven]))
    seen = heavy.T @ relaxed
    lived = rng.normal(size=(body.size, 3))
    parts, covariance = expected_parts(seen[:, :5], seen[:, 5:], heavy.T @ lived)
    # By definition: u = K⁻¹M a + z, a of covariance LLᵀ + b²VVᵀ, z of c²ZZᵀ.
    size = np.sum(seen[:, 5:] ** 2)
    share, again = OWN * size / np.trace(seen[:, :5] @ seen[:, :5]), LIVED * size / np.sum((heavy.T @ lived) ** 2)
    spread = np.linalg.solve(stiffness, mass @ np.hstack([loads, np.sqrt(share) * basis]))
    cov = spread @ spread.T + again * lived @ lived.T
    np.testing.assert_allclose(covariance, heavy.T @ cov @ heavy, rtol=1e-8, atol=1e-12 * covariance.max())
    told = np.hstack([relaxed, lived]) @ parts @ np.linalg.inv(covariance)
    left = cov @ heavy - told @ (heavy.T @ cov @ heavy)
    assert np.abs(left).max() < 1e-7 * np.abs(cov @ heavy).max()
    # What is told looks like what was seen.
    np.testing.assert_allclose(heavy.T @ told, np.eye(5), atol=1e-7)


def test_beside_the_modes_is_what_the_full_body_does_beside_them(built: Built) -> None:
    """A load of the rig moves the body; W x of its modes x is nearer to that than V x, by far."""
    model = built.model
    yielding, loads = YieldingStiffness(model, built.flesh, built.fabric, 0.0), loads_seen(model, built.shapes.loads)
    nothing = lived_seen(model, ())
    p, mass = model.poses.parameters[1], model.vertex_mass[:, None, None]
    stiffness, beside, variance = yielding.expected(p, loads, nothing)
    np.testing.assert_allclose(stiffness, yielding.at(p), rtol=1e-6, atol=1e-9 * np.abs(stiffness).max())
    heavy = model.shapes[0] * mass
    assert np.abs(np.einsum("nia,nib->ab", heavy, beside)).max() < 1e-9  # the modes of W x are x
    np.testing.assert_allclose(variance, variance.T, rtol=1e-9, atol=1e-12 * variance.max())
    yielding._placed(p)
    driven = yielding._body.mass_times(yielding._turned(loads))
    u = yielding._unturned(yielding._solver.solve(driven))
    x = np.linalg.solve(
        np.einsum("nia,nib->ab", heavy, model.shapes[0]), np.einsum("nia,nik->ak", heavy, u, optimize=True)
    )
    plain = np.sum(mass * (u - model.shapes[0] @ x) ** 2)
    told = np.sum(mass * (u - (model.shapes[0] + beside) @ x) ** 2)
    assert told < 0.25 * plain


def test_candidates_are_the_principal_shapes_of_what_is_beside(built: Built) -> None:
    model, rng = built.model, np.random.default_rng(1)
    beside = rng.normal(size=(len(model.vertices), 3, model.mode_count)) * ~model.fixed[:, None, None]
    variance = np.diag(10.0 ** -np.arange(model.mode_count, dtype=float))
    nothing = lived_seen(model, ())
    fields = principal_shapes(beside, variance)
    np.testing.assert_allclose(np.abs(fields[..., -1]), np.abs(beside[..., 0]), rtol=1e-9)
    found = candidates(model, [fields], built.shapes.partition, nothing, nothing)
    assert found.shapes.shape[2] <= 2.0 * model.mode_count
    for k, region in enumerate(found.regions):
        assert not found.shapes[built.shapes.partition[:, region] == 0.0, :, k].any()
    # All regions together do what was beside.
    y = found.nearest @ fields.reshape(-1, fields.shape[2])
    left = fields - found.shapes @ y
    assert np.sum(model.vertex_mass[:, None] * left[..., -1] ** 2) < 1e-3 * np.sum(
        model.vertex_mass[:, None] * fields[..., -1] ** 2
    )


def of_weights(model: PoseSpaceModel, seed: int = 5) -> tuple[Candidates, np.ndarray, np.ndarray, np.ndarray]:
    """Candidates, and Y of little rank that is linear in random weights (t, k) of as many components."""
    rng = np.random.default_rng(seed)
    r, learned, s = model.mode_count, model.cubature.stiffness_map.coefficients.shape[1], 12
    shapes = rng.normal(size=(len(model.vertices), 3, s)) * ~model.fixed[:, None, None]
    flat = shapes.reshape(-1, s)
    gram = flat.T @ (np.repeat(model.vertex_mass, 3)[:, None] * flat)
    nothing = np.zeros((len(model.vertices), 3, 0))
    known = Candidates(shapes, np.zeros(s, np.int32), nothing, nothing, gram, np.zeros((s, 0)))
    weights = rng.normal(size=(200, learned)) + 0.3
    left, right = rng.normal(size=(s, 3)), rng.normal(size=(2, r))
    changes = left @ rng.normal(size=(learned, 3, 2)) @ right
    matrices = rng.normal(size=(s, r)) + 0.3 * np.tensordot(weights, changes, axes=1)
    root = rng.normal(size=(r, r))
    return known, matrices, np.tile(root @ root.T + np.eye(r), (200, 1, 1)), weights


def test_what_follows_by_little_is_learned_exactly(built: Built) -> None:
    known, matrices, variances, weights = of_weights(built.model)
    arrays = fitted_followers(built.model, known, matrices, variances, weights, ())
    found = Followers(**{name: value for name, value in arrays.items() if name != "share"})
    assert float(arrays["share"]) == 1.0
    for t in (0, 7, 111):
        np.testing.assert_allclose(found.matrix(weights[t]), matrices[t], atol=0.03 * np.abs(matrices[t]).max())
    assert fitted_followers(built.model, known, 1e-9 * matrices, variances, weights, ()) is None


def test_what_does_not_change_with_the_pose_is_learned_too(built: Built) -> None:
    known, matrices, variances, weights = of_weights(built.model)
    same = np.tile(matrices[:1], (len(matrices), 1, 1))
    for others in (weights, weights[:, :0]):
        arrays = fitted_followers(built.model, known, same, variances, others, ())
        found = Followers(**{name: value for name, value in arrays.items() if name != "share"})
        np.testing.assert_allclose(found.matrix(others[3]), same[0], atol=1e-4 * np.abs(same).max())


def test_bodies_at_rest_are_seen_from_their_vertices(built: Built, cache) -> None:
    """Turned back into the world, each is in balance with a mixture of the loads that the rig can cause."""
    model = built.model
    samples = map_samples(model, seed=0)
    found = measured_remainder(
        model, built.flesh, built.posing, built.fabric, built.shapes.loads, samples, StageCache(cache), seed=0
    )
    assert 0.0 < found.share <= 1.0
    assert found.told
    assert not replace(found, share=1.0, told=False).is_whole, "where nothing tells nothing leans on tets"
    assert replace(found, share=1.0).is_whole
    assert sum(field.shape[2] for field in found.rests) >= len(found.rests) == len(model.poses)
    for index, field in enumerate(found.rests):
        flesh, fabric = built.flesh, built.fabric
        body = posed_body(
            flesh.mesh.vertices, built.posing.positions[index], flesh.mesh.elements, flesh.fixed, fabric.law,
            fabric.young[index], fabric.poisson[index], fabric.density,
        )  # fmt: skip
        loads = acceleration_forces(body, built.shapes.loads[index])
        turned = np.einsum("nij,njk->nik", model.vertex_rotations(model.poses.parameters[index]), field)
        for u in body.restrict(turned).T:
            force = body.force(u)
            left = force - loads @ np.linalg.lstsq(loads, force, rcond=None)[0]
            assert np.linalg.norm(left) < 5.0 * TOLERANCE * np.linalg.norm(force)


@pytest.mark.parametrize(("own", "asked"), [(0.4, False), (1.0, True)])
def test_modes_that_do_everything_at_their_poses_are_tried_at_others(
    built: Built, monkeypatch: pytest.MonkeyPatch, own: float, asked: bool
) -> None:
    model, flesh, posing, fabric = built.model, built.flesh, built.posing, built.fabric
    samples, own_count = map_samples(model, seed=0), len(model.poses)
    assert samples is not None
    scaled = samples.features / np.repeat(samples.lengths, np.diff(samples.groups))
    gaps = np.linalg.norm(scaled[own_count:, None] - scaled[:own_count], axis=2).min(axis=1)
    places = [model.tet_rest(p) for p in samples.poses]
    crushed = places[0] * [1.0, 1.0, -1.0]
    of_pose = {p.tobytes(): posed for p, posed in zip(samples.poses, places, strict=True)}
    sound = [least_stretch(model.tets, model.vertices, posed) >= REST_CLAMP for posed in places[own_count:]]
    farthest = own_count + np.argsort(-np.where(sound, gaps, 0.0), kind="stable")
    of_pose[samples.poses[farthest[0]].tobytes()] = crushed
    tried = []

    def errors(task) -> dict[str, np.ndarray]:
        at_own = any(np.array_equal(task.body[1], posed) for posed in posing.positions)
        told = np.full((len(LEVELS), task.loads.shape[2], len(SHARES)), 4.0)
        told[..., SHARES.index(own if at_own else 0.01)] = 1.0
        if not at_own:
            tried.append(task)
        return {"errors": told, "rests": np.zeros((3 * int((~flesh.fixed).sum()), 1))}

    monkeypatch.setattr(PoseSpaceModel, "tet_rest", lambda _, p: of_pose[p.tobytes()])
    monkeypatch.setattr(remainder, "_errors", errors)
    monkeypatch.setattr(remainder, "ELSEWHERE", 1)
    given = model, flesh, posing, fabric, built.shapes.loads
    found = measured_remainder(*given, samples, StageCache(None), seed=0)
    assert found.share == (0.01 if asked else own)
    assert len(found.rests) == len(model.poses), "those elsewhere are no shapes of the poses"
    assert len(tried) == asked
    for task in tried:
        # The farthest is inside out, so the next is taken.
        p, posed = samples.poses[farthest[1]], places[farthest[1]]
        weights = model.positive_weights(p)
        np.testing.assert_array_equal(task.body[1], posed)
        np.testing.assert_allclose(task.body[5], weights @ fabric.young)
        np.testing.assert_allclose(task.body[6], weights @ fabric.poisson)
        np.testing.assert_allclose(task.basis, model.vertex_rotations(p) @ model.shapes[0], atol=1e-12)
        loads = rig_causes(posing, flesh, p, posed).reshape(posed.size, -1)
        mixed = task.loads.reshape(posed.size, -1)
        left = mixed - loads @ np.linalg.lstsq(loads, mixed, rcond=None)[0]
        assert np.abs(left).max() < 1e-9 * np.abs(mixed).max(), "what the rig can cause there"
    of_pose.update((p.tobytes(), crushed) for p in samples.poses)
    assert measured_remainder(*given, samples, StageCache(None), seed=0).share == own, "nothing else to go by"


def test_a_hand_on_a_point_and_colliders_know_what_follows() -> None:
    model = followed(bar_model(poses=4, regions=3, modes=9, basis_poses=1))
    points = ContactPoints(model, 180.0, Rayleigh())
    alone = ContactPoints(replace(model, followers=None), 180.0, Rayleigh())
    assert (points._couplings >= alone._couplings * (1.0 - 1e-12)).all()
    assert points._couplings.sum() > 1.05 * alone._couplings.sum()
    # What goes along with the modes makes them harder to move.
    heavier = ContactPoints(with_more_mass(replace(model, followers=None)), 180.0, Rayleigh())
    assert heavier._couplings.sum() < 0.98 * alone._couplings.sum()


def test_a_recording_knows_what_follows() -> None:
    model = followed(bar_model(poses=4, modes=9, basis_poses=1))
    other = replace(model, followers=replace(model.followers, mean=1.1 * model.followers.mean))
    assert len({model_mark(own) for own in (model, other, replace(model, followers=None), with_more_mass(model))}) == 4


def test_what_follows_counts_as_much_as_bodies_at_rest_say(built: Built) -> None:
    model = built.model
    known, weights = model.followers, np.zeros((2, model.cubature.stiffness_map.coefficients.shape[1]))
    x = np.random.default_rng(4).normal(size=(model.mode_count, 2))
    along = model.shapes[0] @ x
    told = known.shapes @ (known.matrix(weights[0]) @ x)
    # Without what of it looks like modes, for that would be other modes.
    heavy = model.shapes[0] * model.vertex_mass[:, None, None]
    gram = np.einsum("nia,nib->ab", heavy, model.shapes[0])
    unlike = told - model.shapes[0] @ np.linalg.solve(gram, np.einsum("nia,nik->ak", heavy, told))
    shares = [
        following_share(model, known, weights, (along + f * unlike, along + f * unlike)) for f in (0.5, -1.0, 9.0)
    ]
    assert shares[0] == pytest.approx(0.5, abs=0.05)
    assert shares[1:] == [0.0, 1.0]
    assert following_share(model, known, weights, ()) == 1.0


def test_what_was_rehearsed_is_foretold(built: Built) -> None:
    """Shapes that the body took, seen by their modes alone: what was rehearsed says the rest, loads alone do not."""
    model = built.model
    yielding, loads = YieldingStiffness(model, built.flesh, built.fabric, 0.0), loads_seen(model, built.shapes.loads)
    lived, mass = lived_seen(model, built.shapes.lived), model.vertex_mass[:, None, None]
    heavy = model.shapes[0] * mass
    gram = np.einsum("nia,nib->ab", heavy, model.shapes[0])
    x = np.linalg.solve(gram, np.einsum("nia,nik->ak", heavy, lived, optimize=True))
    left = []
    for known in (lived, lived_seen(model, ())):
        beside = yielding.expected(model.poses.parameters[1], loads, known)[1]
        left.append(np.sum(mass * (lived - (model.shapes[0] + beside) @ x) ** 2))
    assert left[0] < 0.5 * left[1]


@pytest.mark.parametrize("clip", ["bend", "shake"])
def test_followers_bring_the_motion_nearer_to_the_full_body(cache, clip: str) -> None:
    built = build_parts(limb(), SMALL.changed(basis={"rehearsal": 0.0}), cache=cache, jobs=1)
    model = built.model
    assert model.notes["followers"]["count"] == model.follower_count == 2 * model.mode_count
    assert 0.1 < model.notes["followers"]["share"] <= 1.0
    assert unfollowed(built).followers is exact_forces(built).followers is None
    _, poses = built.character.clip(clip).resample(60.0)
    damping = default_damping(built)
    truth = full_trajectory(built, poses, 60.0, damping=damping)
    errors = [
        trajectory_error(reduced_trajectory(own, poses, 60.0, damping=damping), truth, model.vertex_mass)
        for own in (model, unfollowed(built))
    ]
    assert errors[0] < 0.95 * errors[1]
