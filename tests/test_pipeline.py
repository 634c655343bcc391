"""Build and bake end to end on a small limb: the model obeys its definitions, the cache redoes only what it must."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from characters_for_tests import SMALL, bent_bar, limb, tube
from softrig.bases.localised import BoneRegions
from softrig.dynamics import Rayleigh
from softrig.errors import IndexRangeError, InputError, ModeCountError, Notice
from softrig.fem.material import Material
from softrig.fidelity import trajectory_error
from softrig.io.caches import read_npz
from softrig.models.file import load_character_model, save_model
from softrig.models.full import FullBody
from softrig.models.pose_space import WHOLE_BODY, PoseSpaceModel
from softrig.pipeline.baking import bake, model_simulation
from softrig.pipeline.build import Built, build, build_parts
from softrig.pipeline.cache import StageCache
from softrig.pipeline.compare import (
    KEPT,
    PART,
    default_damping,
    exact_forces,
    full_trajectory,
    reduced_trajectory,
)
from softrig.pipeline.drift import differing_settings
from softrig.pipeline.flesh import make_flesh
from softrig.pipeline.inertia import clip_inertia_errors
from softrig.pipeline.regions import make_regions
from softrig.pipeline.rehearsal import violent_parts
from softrig.pipeline.remainder import SHARES
from softrig.pipeline.shapes import rehearsed_modes, require_independent
from softrig.pipeline.telling import Stage, Update
from softrig.project import Project
from softrig.rig.character import Character, Part
from softrig.rig.clip import Clip
from softrig.rig.deformers import CallableRig
from softrig.rig.parameters import Parameters

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


@pytest.fixture(scope="module")
def built(cache) -> Built:
    return build_parts(limb(), SMALL, cache=cache, jobs=1)


@pytest.fixture(scope="module")
def interpolated(cache) -> Built:
    project = SMALL.changed(basis={"between_poses": "interpolated", "rehearsal": 0.0})
    return build_parts(limb(), project, cache=cache, jobs=1)


@pytest.fixture(scope="module")
def boxed(cache) -> Built:
    return build_parts(bent_bar(), SMALL.changed(basis={"regions": 1, "interpolation": "world"}), cache=cache, jobs=1)


@pytest.fixture(scope="module")
def fitted(cache) -> Built:
    return build_parts(bent_bar(), SMALL.changed(basis={"regions": 1}), cache=cache, jobs=1)


def identities(built: Built) -> None:
    """What every model must satisfy, from the definitions."""
    model, flesh, posing = built.model, built.flesh, built.posing
    mass = model.vertex_mass
    assert mass.sum() == pytest.approx(built.fabric.density * flesh.density_factor * flesh.mesh.volumes.sum())
    assert not model.shapes[:, model.fixed].any()
    for i, p in enumerate(model.poses.parameters):
        # At its own pose each basis has weight one, unit modes, and the tets are where the fit put them.
        assert np.allclose(model.pose_weights(p), np.eye(len(model.poses))[i], atol=1e-9)
        assert np.allclose(model.tet_rest(p), posing.positions[i], atol=1e-9)
        carried = np.zeros(model.mode_count) if model.carried_mass is None else np.diag(model.carried_mass)
        assert np.allclose(model.mode_scales(p), 1.0 / np.sqrt(1.0 + carried), atol=1e-4)
        for region in range(len(model.region_names)):
            own = model.shapes[i % len(model.shapes)][..., model.region_of_mode == region].reshape(
                -1, (model.region_of_mode == region).sum()
            )
            # Numbers of 16 bits stand for shapes.
            assert np.allclose(own.T @ (np.repeat(mass, 3)[:, None] * own), np.eye(own.shape[1]), atol=1e-4)
    assert np.array_equal(model.shapes, model.shapes.astype(np.float32))


@pytest.mark.parametrize(("kind", "bases"), [("built", 1), ("interpolated", 3)])
def test_a_skinned_model_obeys_its_definitions(kind: str, bases: int, request: pytest.FixtureRequest) -> None:
    built: Built = request.getfixturevalue(kind)
    identities(built)
    assert built.model.interpolation == "bind"
    assert len(built.model.shapes) == bases


def test_a_black_box_model_obeys_its_definitions(boxed: Built) -> None:
    identities(boxed)
    assert boxed.model.interpolation == "world"
    assert max(boxed.model.notes["inertia"]["errors"]) < 0.02


def test_a_black_box_with_fitted_frames_obeys_its_definitions(fitted: Built) -> None:
    identities(fitted)
    model, posing = fitted.model, fitted.posing
    assert model.interpolation == "bind"
    assert model.skin is None
    X, mass = fitted.flesh.mesh.vertices, fitted.flesh.unit_mass
    for p in (*model.poses.parameters, np.array([0.4])):
        np.testing.assert_allclose(posing.vertex_rotations(p, X, mass), model.vertex_rotations(p), atol=1e-12)
        np.testing.assert_allclose(posing.matrices(p)[:, :3], model.bone_matrices(p), atol=1e-12)
        drive = model_simulation(model).stepper.carriers(p)
        np.testing.assert_allclose(drive[: 12 * len(posing.matrices(p))], model.bone_matrices(p).ravel(), atol=1e-12)
    assert max(clip_inertia_errors(model).values()) < 0.02
    stepper = model_simulation(model).stepper
    stepper.q[:] = np.linspace(-0.01, 0.02, model.mode_count)
    p = np.array([0.4])
    stepper.place(stepper.carriers(p))
    moved = model.displacement(p, stepper.q)
    carried = np.einsum("na,nak->nk", model.embedding_weights, moved[model.embedding_nodes])
    np.testing.assert_allclose(stepper.surface(p), model.rig.positions(p) + carried, atol=1e-5)


def test_shapes_of_one_pose_serve_a_bend_where_frames_turn_them(cache: Path) -> None:
    """By 1.2 rad to either side: in the world they point where the bar was, not where it is."""
    _, poses = bent_bar().clips[0].resample(60.0)
    poses, errors = poses[:31], []
    for interpolation in ("world", "auto"):
        settings = {"regions": 1, "rehearsal": 0.0, "interpolation": interpolation}
        project = SMALL.changed(basis=settings, poses={"count": 1})
        built = build_parts(bent_bar(), project, cache=cache, jobs=1)
        damping = default_damping(built)
        full = full_trajectory(built, poses, 60.0, damping=damping)
        reduced = reduced_trajectory(built.model, poses, 60.0, damping=damping)
        errors.append(trajectory_error(reduced, full, built.model.vertex_mass))
    assert errors[1] < 0.65 * errors[0], errors


def test_a_full_motion_that_was_stopped_goes_on_as_if_it_had_not_been(built: Built, tmp_path: Path) -> None:
    _, poses = built.character.clips[0].resample(60.0)
    poses, damping = poses[:46], default_damping(built)
    whole = full_trajectory(built, poses, 60.0, damping=damping, every=2)
    assert whole.shape == (67, *built.model.vertices.shape)
    kept = StageCache(tmp_path)

    def stopping(done: int, total: int) -> None:
        if done == PART + 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        full_trajectory(built, poses, 60.0, damping=damping, every=2, cache=kept, progress=stopping)
    assert kept.made == [KEPT]
    told: list[tuple[int, int]] = []
    again = full_trajectory(
        built, poses, 60.0, damping=damping, every=2, cache=kept, progress=lambda *done: told.append(done)
    )
    assert (told[0], told[1], told[-1]) == ((PART, 0), (PART + 1, 135), (135, 135)), "what was kept is told"
    np.testing.assert_array_equal(again, whole)
    assert kept.reused == [KEPT]
    kept = StageCache(tmp_path)
    told.clear()
    again = full_trajectory(
        built, poses, 60.0, damping=damping, every=2, cache=kept, progress=lambda *done: told.append(done)
    )
    np.testing.assert_array_equal(again, whole)
    assert told == [(0, 0)]
    assert (kept.reused, kept.made) == ([KEPT] * 3, []), "and nothing is done again"


def test_a_kept_full_motion_serves_no_other(built: Built, tmp_path: Path) -> None:
    _, poses = built.character.clips[0].resample(60.0)
    model, fabric = built.model, built.fabric
    same = {"built": built, "poses": poses[:4], "fps": 60.0, "damping": default_damping(built)}

    def reused(**changed) -> int:
        cache = StageCache(tmp_path)
        full_trajectory(**(same | changed), cache=cache)
        return len(cache.reused)

    assert [reused(), reused()] == [0, 1]
    heavier = replace(model, vertex_mass=1.01 * model.vertex_mass)
    bent = replace(model.tet_rig, corrections=model.tet_rig.corrections + 1e-4 * np.eye(3)[0])
    others = [
        {"inertia": 0.5},
        {"iterations": 2},
        {"rate": 120.0},
        {"fps": 30.0},
        {"every": 3},
        {"damping": Rayleigh(0.1, 0.001)},
        {"poses": poses[1:5]},
        {"built": replace(built, fabric=replace(fabric, young=0.5 * fabric.young))},
        {"built": replace(built, fabric=replace(fabric, poisson=0.9 * fabric.poisson))},
        {"built": replace(built, model=heavier)},
        {"built": replace(built, model=replace(model, tet_rig=bent))},
        {"built": replace(built, model=replace(model, law="stvk"))},
    ]
    assert [reused(**changed) for changed in others] == [0] * len(others)


def test_a_rehearsed_clip_is_followed_closely(cache: Path) -> None:
    """On a clip it rehearsed, the same number of modes is far truer than without."""
    errors = []
    for seconds in (4.0, 0.0):
        project = SMALL.changed(basis={"rehearsal": seconds, "modes": 16})
        built = build_parts(limb(), project, cache=cache, jobs=1)
        _, poses = limb().clip("bend").resample(60.0)
        damping = default_damping(built)
        full = full_trajectory(built, poses, 60.0, damping=damping)
        reduced = reduced_trajectory(exact_forces(built), poses, 60.0, damping=damping)
        errors.append(trajectory_error(reduced, full, built.model.vertex_mass))
    assert errors[0] < 0.6 * errors[1]
    assert errors[0] < 0.08


@pytest.mark.parametrize(("size", "rehearsed"), [(2, 1), (10, 4), (16, 6), (25, 6), (50, 10), (100, 20)])
def test_of_few_modes_a_larger_share_is_rehearsed(size: int, rehearsed: int) -> None:
    assert rehearsed_modes(size) == rehearsed


def test_violent_parts_are_those_that_accelerate(built: Built) -> None:
    rest = built.model.rig.parameters.rest
    lift = built.model.rig.parameters.index("upper.translation.y")
    times = np.arange(241) / 60.0
    poses = np.tile(rest, (len(times), 1))
    poses[:, lift] += np.where((times > 2.0) & (times < 2.5), 0.05 * np.sin(8.0 * np.pi * times), 0.0)
    clip = Clip.from_samples("late", built.model.rig.parameters, times, poses)
    (part,) = violent_parts(replace(built.model, clips=(clip,)), 1.0)
    assert len(part) == 91
    assert np.ptp(part[:, lift]) > 0.09


@pytest.mark.parametrize("kind", ["built", "boxed", "fitted"])
def test_the_reduced_motion_follows_the_full_one(kind: str, request: pytest.FixtureRequest) -> None:
    built: Built = request.getfixturevalue(kind)
    clip = built.character.clips[0]
    _, poses = clip.resample(60.0)
    damping = default_damping(built)
    full = full_trajectory(built, poses, 60.0, damping=damping)
    reduced = reduced_trajectory(built.model, poses, 60.0, damping=damping)
    still = trajectory_error(np.zeros_like(full), full, built.model.vertex_mass)
    assert still == pytest.approx(1.0)
    error = trajectory_error(reduced, full, built.model.vertex_mass)
    assert error < 0.25
    exact = trajectory_error(
        reduced_trajectory(exact_forces(built), poses, 60.0, damping=damping), full, built.model.vertex_mass
    )
    assert error < exact + 0.05


def test_the_file_keeps_fitted_frames(fitted: Built, tmp_path: Path) -> None:
    save_model(fitted.model, tmp_path / "bar.softrig")
    loaded = load_character_model(tmp_path / "bar.softrig")
    clip = fitted.character.clips[0]
    ours, theirs = (model_simulation(model).bake(clip, 30.0) for model in (fitted.model, loaded))
    assert np.abs(ours.vertices - theirs.vertices).max() < 1e-6
    sample = np.full_like(loaded.tet_rig.frame_sample, 10**6)
    with pytest.raises(IndexRangeError, match="fitted frames"):
        replace(loaded, tet_rig=replace(loaded.tet_rig, frame_sample=sample))
    with pytest.raises(InputError, match="fit of frames"):
        replace(loaded.tet_rig, frame_fit=loaded.tet_rig.frame_fit[:, :3])
    with pytest.raises(InputError, match="both"):
        replace(loaded.tet_rig, frame_fit=None)


def test_the_file_simulates_alone(built: Built, tmp_path: Path) -> None:
    save_model(built.model, tmp_path / "limb.softrig")
    loaded = load_character_model(tmp_path / "limb.softrig")
    assert loaded.cubature.beyond == built.model.cubature.beyond
    assert loaded.cubature.beyond in SHARES
    clip = built.character.clip("bend")
    ours = model_simulation(built.model).bake(clip, 30.0)
    theirs = model_simulation(loaded).bake(clip, 30.0)
    assert np.abs(ours.vertices - theirs.vertices).max() < 1e-6
    assert model_simulation(loaded).damping.ratio == built.fabric.damping_ratio
    assert model_simulation(loaded).stepper.method == "newmark"
    loaded.notes["project"]["simulation"] = {"method": "backward-euler", "modes": 5}
    calm = model_simulation(loaded).stepper
    assert (calm.method, calm.model.mode_count) == ("backward-euler", 5)


def kept_stages(told: list[tuple[str, int, int]]) -> list[str]:
    return [title for title, _, total in told if total == 0]


def telling(told: list[tuple[str, int, int]]) -> Stage:
    """Opens stages whose progress is written down, with their titles."""

    @contextmanager
    def stage(title: str) -> Iterator[Update]:
        yield lambda done, total: told.append((title, done, total))

    return stage


def test_a_second_build_reuses_every_stage_and_is_the_same(built: Built, cache: Path) -> None:
    told: list[tuple[str, int, int]] = []
    again = build(limb(), SMALL, cache=cache, jobs=1, stage=telling(told))
    assert again.notes["stages"]["made"] == []
    assert kept_stages(told) == ["Filling with tets", "Fitting the poses", "Finding shapes", "Reducing forces"]
    assert np.array_equal(again.shapes, built.model.shapes)
    assert np.array_equal(again.cubature.weights, built.model.cubature.weights)


def test_a_change_redoes_only_what_it_must(cache: Path, built: Built) -> None:
    told: list[tuple[str, int, int]] = []
    changed = build(limb(), SMALL.changed(cubature={"count": 20}), cache=cache, jobs=1, stage=telling(told))
    assert kept_stages(told) == ["Filling with tets", "Fitting the poses", "Finding shapes"]
    assert set(changed.notes["stages"]["made"]) == {"cubature", "steady", "between"}  # and what hangs on the tets
    assert len(changed.cubature.tets) <= 20


def test_how_it_is_simulated_needs_no_other_model(cache: Path, built: Built) -> None:
    """Settings of [simulation] are tried often: shapes rehearsed with another damping would be another model."""
    changed = build(limb(), SMALL.changed(simulation={"damping_ratio": 0.3, "inertia": 0.5}), cache=cache, jobs=1)
    assert changed.notes["stages"]["made"] == []
    assert changed.notes["damping ratio"] == 0.3
    assert np.array_equal(changed.shapes, built.model.shapes)


def test_workers_give_the_same_model(built: Built) -> None:
    other = build(limb(), SMALL, jobs=2)
    assert np.array_equal(other.shapes, built.model.shapes)
    for name in ("rows", "steps", "regions"):
        assert np.array_equal(getattr(other.followers, name), getattr(built.model.followers, name))
    p = built.model.poses.parameters[1]
    np.testing.assert_allclose(other.drawn_shapes(p), built.model.drawn_shapes(p), atol=1e-5)


def test_softness_zero_is_plain_skinning(cache: Path) -> None:
    project = SMALL.changed(material={"softness_map": "softness"})
    character = limb()
    model = build(character, project, cache=cache, jobs=1)
    zero = character.maps["softness"] == 0.0
    assert zero.any()
    made = model_simulation(model).bake(character.clip("shake"), 30.0, plain=True)
    assert np.array_equal(made.vertices[:, zero], made.plain[:, zero])
    assert np.abs(made.vertices - made.plain).max() > 1e-4


def test_a_slim_body_without_bones_is_held_by_more_than_a_line() -> None:
    """The deepest vertices of so coarse a tube all lie on its axis."""
    points, triangles = tube(swell=0.0)
    shift = Parameters(("shift.x",), ("m",), np.zeros(1), np.zeros(0, int))
    rig = CallableRig(lambda p, x, _: x + p[0] * np.eye(3)[0], shift, points)
    part = Part("tube", slice(0, len(points)), slice(0, len(triangles)))
    clip = Clip.from_samples("still", rig.parameters, np.array([0.0, 1.0]), np.zeros((2, 1)))
    flesh = make_flesh(
        Character("tube", rig, None, triangles, (part,), (clip,)),
        Project().changed(mesh={"tets": 400}),
        StageCache(None),
    )
    body = FullBody(flesh.mesh, Material(young=1e4, poisson=0.4, density=1000.0), fixed=flesh.fixed)
    body.require_anchored()
    assert flesh.fixed.mean() < 0.15


def test_scale_does_not_matter(built: Built) -> None:
    """A limb 100 times as large, 100 times as stiff, at √100 … of the same time has the same motion, scaled."""
    s = 100.0
    young = float(built.fabric.young[0, 0])
    # Accelerations scale with the size here (the same clip in time), so stiffness goes with the square of the size.
    project = SMALL.changed(material={"young": young * s * s})
    large = build(limb(scale=s), project, jobs=1)
    small_bake = model_simulation(built.model, gravity="off").bake(limb().clip("bend"), 30.0, plain=True)
    large_bake = model_simulation(large, gravity="off").bake(limb(scale=s).clip("bend"), 30.0, plain=True)
    small, big = (bake.vertices.astype(float) - bake.plain for bake in (small_bake, large_bake))
    assert np.linalg.norm(big / s - small) < 0.03 * np.linalg.norm(small)


@pytest.mark.parametrize("between", ["pooled", "neutral"])
def test_one_basis_for_all_poses(between: str, cache: Path) -> None:
    model = build(limb(), SMALL.changed(basis={"between_poses": between}), cache=cache, jobs=1)
    assert len(model.shapes) == 1
    assert WHOLE_BODY in model.region_names
    made = model_simulation(model).bake(limb().clip("shake"), 30.0)
    assert np.isfinite(made.vertices).all()


def test_the_papers_recipe_builds(cache: Path) -> None:
    model = build(limb(), SMALL, recipe="paper", cache=cache, jobs=1)
    assert model.interpolation == "world"
    assert not model.cubature.stiffness_correction.any()
    with pytest.raises(InputError, match="recipe"):
        build(limb(), SMALL, recipe="secret")


@pytest.mark.parametrize("regions", [1, 2])
def test_the_papers_recipe_moves_like_the_full_body(regions: int, cache: Path) -> None:
    """With few linear modes and large derivatives the basis was stiff and its cubature flew off: errors of 300 %."""
    project = SMALL.changed(basis={"regions": regions})
    built = build_parts(limb(), project, recipe="paper", cache=cache, jobs=1)
    model = built.model
    assert min(model.notes["basis"]["compliance"]["mean"]) > 0.75
    assert len(set(model.region_of_mode.tolist())) == regions
    clip = limb().clip("shake")
    _, poses = clip.resample(60.0)
    damping = default_damping(built)
    full = full_trajectory(built, poses, 60.0, damping=damping)
    moved = reduced_trajectory(model, poses, 60.0, damping=damping)
    assert trajectory_error(moved, full, model.vertex_mass) < 0.3


def test_bakes_are_written_and_one_failure_does_not_stop_the_rest(built: Built, tmp_path: Path, monkeypatch) -> None:
    results = bake(built.model, built.character, ["all"], tmp_path / "out", ending=".npz", fps=30.0)
    assert [result.clip for result in results] == ["bend", "shake"]
    cached = read_npz(tmp_path / "out" / "bend.npz")
    live = model_simulation(built.model, fps=30.0).bake(built.character.clip("bend"), 30.0)
    assert np.array_equal(cached.positions, live.vertices)
    broken = replace(built.model, clips=(replace(built.model.clips[0], duration=1e9), built.model.clips[1]))
    results = bake(broken, built.character, [], tmp_path / "two", ending=".npz", fps=30.0)
    assert results[0].failure
    assert results[0].done is None
    assert results[1].done is not None


def test_wrong_input_is_named(built: Built, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no clip 'nope'; its clips: 'bend'"):
        bake(built.model, built.character, ["nope"], tmp_path)
    with pytest.raises(InputError, match="vertices lie elsewhere"):
        bake(built.model, limb(scale=2.0), ["bend"], tmp_path)
    with pytest.raises(InputError, match="no painted map 'fur'"):
        build(limb(), SMALL.changed(material={"softness_map": "fur"}), cache=cache, jobs=1)
    with pytest.raises(InputError, match="poses that do not exist: bent"):
        build(limb(), SMALL.changed(material={"poses": {"bent": {"young": 1e5}}}), cache=cache, jobs=1)
    with pytest.raises(InputError, match=r"lasts 1\.60 s"):
        build(limb(), SMALL.changed(poses={"given": [{"clip": "bend", "time": 9.0}]}), cache=cache, jobs=1)
    with pytest.raises(InputError, match="no bone is called 'tail'"):
        build(limb(), SMALL.changed(basis={"handles": [{"name": "a", "bone": "tail"}]}), cache=cache, jobs=1)


def test_no_more_modes_than_there_are(cache: Path) -> None:
    """Where nobody asked for more it has as many as there are, and says so; who did is told what to type."""
    simple = {"modes": Project().basis.modes, "regions": 1, "derivatives": 0, "rehearsal": 0.0}
    few = SMALL.changed(basis=simple, poses={"count": 1})
    with pytest.warns(Notice, match=r"\d+ shapes were found for this flesh, so it has \d+ modes instead of 100"):
        model = build(limb(), few, cache=cache, jobs=1)
    assert 2 <= model.mode_count < 100
    assert differing_settings(model, few) == [], "the project file has not changed"
    with pytest.raises(ModeCountError, match=r"400 modes are more than the \d+ shapes found") as caught:
        build(limb(), few.changed(basis={"modes": 400}), cache=cache, jobs=1)
    assert f"--modes {caught.value.most}" in str(caught.value)
    most = build(limb(), few.changed(basis={"modes": caught.value.most}), cache=cache, jobs=1)
    assert most.mode_count == caught.value.most


def test_modes_that_do_what_others_do_are_none() -> None:
    shapes = np.random.default_rng(0).normal(size=(2, 5, 3, 4))
    require_independent(shapes, np.ones(5))
    shapes[1, :, :, 3] = shapes[1, :, :, 0] - 2.0 * shapes[1, :, :, 2]
    with pytest.raises(ModeCountError, match="4 modes of which 3 are independent") as caught:
        require_independent(shapes, np.ones(5))
    assert caught.value.most == 3


def test_regions_of_hardly_any_tets_have_as_many_modes_as_are_independent(cache: Path) -> None:
    project = Project().changed(mesh={"tets": 100}, basis={"regions": 2}, poses={"count": 1})
    with pytest.warns(Notice, match="shapes were found for this flesh"):
        model = build(limb(), project, cache=str(cache), jobs=1)
    assert 50 < model.mode_count < 100


def test_a_sculpt_is_exact_at_its_pose(tmp_path: Path, cache: Path) -> None:
    character = limb()
    p = character.clip("bend").sample(0.8)[0]
    sculpted = character.rig.positions(p) + np.array([0.0, 0.01, 0.0])
    lines = [f"v {x:.9f} {y:.9f} {z:.9f}" for x, y, z in sculpted]
    (tmp_path / "bent.obj").write_text("\n".join(lines), encoding="utf-8")
    given = [{"clip": "bend", "time": 0.8, "name": "bent", "sculpt": "bent.obj"}]
    project = SMALL.changed(poses={"count": 2, "given": given})
    model: PoseSpaceModel = build(character, project, folder=tmp_path, jobs=1)
    assert model.corrective == (("sculpt.bent.weight", 1),)
    surface = model.rig.positions(model.corrected(model.poses.parameters[1]))
    assert np.abs(surface - sculpted).max() < 1e-6
    outside = SMALL.changed(poses={"given": [given[0] | {"sculpt": "../bent.obj"}]})
    with pytest.raises(InputError, match="outside the project's folder"):
        build(character, outside, folder=tmp_path, jobs=1)


def test_a_region_that_holds_nothing_free_is_named(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(built.flesh.mesh.vertices)
    weights = np.stack([np.ones(count), np.zeros(count)], axis=1)
    empty = BoneRegions(("upper", "tail"), weights, np.zeros(2, np.int32))
    monkeypatch.setattr("softrig.pipeline.regions.default_regions", lambda *_, **__: empty)
    with pytest.raises(InputError, match=r"regions without vertices \(tail\)"):
        make_regions(built.character, built.flesh, built.posing, SMALL, StageCache(None))
