"""Settings that are changed while it plays: they act, can be taken back, and are kept in the project file."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pose_models_for_tests import as_kept, bar_model, followed, mapped, with_more_mass
from softrig.errors import InputError
from softrig.models.file import load_character_model, save_model
from softrig.pipeline.baking import model_simulation
from softrig.project import load_project
from softrig.viewer import character
from softrig.viewer.character import SoftCharacter
from softrig.viewer.energy import FleshEnergy
from softrig.viewer.threads import one_thread
from softrig.viewer.tuning import Scope, Settings, Tuning
from viewer_for_tests import frames, kept_in, runner, soft_bar, stage


def settle_modes(made, count: int) -> None:
    """Another number of modes is prepared in a thread."""
    end = time.monotonic() + 60.0
    while made.subject.simulation.model.mode_count != count:
        assert time.monotonic() < end
        frames(made, 1)
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("damping_ratio", 1.0),
        ("stiffness", 0.3),
        ("stiffness.region 1", 0.3),
        ("inertia", 3.0),
        ("gravity", "full"),
        ("wind", [0.0, 0.0, 200.0]),
        ("preset", "jelly"),
    ],
)
def test_a_setting_changes_the_motion_and_undo_brings_it_back(name, value):
    with stage() as plain, stage() as tuned, stage() as undone:
        usual = frames(plain, 30)
        tuned.tuning.change(name, value)
        changed = frames(tuned, 30)
        assert np.abs(changed - usual).max() > 1e-4
        undone.tuning.change(name, value)
        undone.tuning.undo()
        np.testing.assert_allclose(frames(undone, 30), usual, atol=1e-7)


def test_fewer_modes_move_on_from_the_present_pose_and_back():
    with stage("sway") as made:
        frames(made, 10)
        made.tuning.change("modes", 4)
        settle_modes(made, 4)
        assert made.subject.simulation.model.mode_count == 4
        made.pull(0, 0, 5, np.zeros(3))
        made.tuning.undo()
        settle_modes(made, 24)
        shown = frames(made, 5)
        assert np.isfinite(shown).all()
        assert len(made.subject.simulation.pulls) == 1, "a hand holds on through the change"


def test_a_setting_acts_on_the_present_motion():
    """Stiff damping stops a swing that is on its way."""
    with stage(None) as made:
        frames(made, 2)
        made.subject.simulation.stepper.v[0] = 0.05
        swinging = np.ptp(frames(made, 20)[:, :, 1], axis=0).max()
        made.tuning.change("damping_ratio", 2.0)
        frames(made, 20)
        assert np.ptp(frames(made, 20)[:, :, 1], axis=0).max() < 0.1 * swinging


def test_the_drag_of_a_slider_is_one_step_of_undo():
    moment = [0.0]
    tuning = Tuning(Scope(("body",), 8, young=4e4), Settings(stiffness={"body": 1.0}), clock=lambda: moment[0])
    for value in (0.2, 0.3, 0.4):
        moment[0] += 0.1
        tuning.change("damping_ratio", value)
    moment[0] += 5.0
    tuning.change("damping_ratio", 0.9)
    tuning.change("inertia", 2.0)
    assert tuning.undo().inertia == 1.0
    assert tuning.undo().damping_ratio == 0.4
    assert tuning.undo() == tuning.built
    assert not tuning.can_undo
    assert tuning.undo() == tuning.built
    assert tuning.redo().damping_ratio == 0.4
    assert tuning.redo().damping_ratio == 0.9
    assert tuning.redo().inertia == 2.0
    assert not tuning.can_redo
    tuning.undo()
    tuning.change("gravity", "off")
    assert not tuning.can_redo, "what is changed after an undo leaves no way forward"
    tuning.reset()
    assert tuning.now == tuning.built
    assert tuning.undo().gravity == "off"


def test_presets_set_stiffness_and_damping():
    tuning = Tuning(Scope(("a", "b"), 8, young=4e4), Settings(stiffness={"a": 1.0, "b": 1.0}))
    fat = tuning.change("preset", "fat")
    assert fat.stiffness == {"a": 0.2, "b": 0.2}
    assert (fat.damping_ratio, fat.preset) == (0.10, "fat")
    assert tuning.change("stiffness.a", 1.0).preset is None


@pytest.mark.parametrize(("given", "young"), [(2e4, 2e4), ("young.npy", 7e4), (None, 8e3)])
def test_presets_are_measured_against_what_was_built(given, young):
    """A number, the middle of a map, or the preset's own."""
    model = soft_bar()
    painted = np.full_like(model.cubature.young, 7e4)
    painted[:, 0] = 1e9
    notes = {"project": {"material": {"preset": "fat", "young": given}}}
    built = replace(model, cubature=replace(model.cubature, young=painted), notes=notes)
    assert SoftCharacter(built).scope().young == young


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("damping_ratio", -0.1),
        ("damping_ratio", float("nan")),
        ("damping_ratio", 10**400),
        ("damping_ratio", True),
        ("damping_ratio", None),
        ("gravity", "sideways"),
        ("gravity", ["full"]),
        ("modes", 0),
        ("modes", 9),
        ("stiffness.nowhere", 1.0),
        ("stiffness.body", 0.0),
        ("wind", [1, 2]),
        ("wind", [1, 2, "x"]),
        ("preset", "stone"),
        ("preset", 3),
        ("nonsense", 1),
    ],
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(name, value):
    tuning = Tuning(Scope(("body",), 8, young=4e4), Settings(stiffness={"body": 1.0}))
    with pytest.raises(InputError):
        tuning.change(name, value)
    assert tuning.now == tuning.built
    assert not tuning.can_undo


def test_saving_keeps_settings_paint_poses_and_handles_in_the_project_file(tmp_path):
    save_model(soft_bar(), tmp_path / "bar.softrig")
    with runner(**kept_in(tmp_path)) as made:
        assert isinstance(made.stage.subject, SoftCharacter)
        told = made.audience.told
        for command in (
            {"do": "clip", "name": "held"},
            {"do": "tune", "name": "damping_ratio", "value": 0.33},
            {"do": "tune", "name": "stiffness.region 1", "value": 0.5},
            {"do": "tune", "name": "wind", "value": [0, 0, 3]},
            {"do": "tune", "name": "gravity", "value": "full"},
            {"do": "paint", "on": True, "pose": None},
            {"do": "brush", "vertex": 4, "radius": 0.1, "value": 0.0, "strength": 1.0},
            {"do": "add_handle", "name": "end", "vertex": 7},
        ):
            made.command(command)
        made.tick()
        made.command({"do": "capture_pose", "name": "mine"})
        assert made.stage.tuning.dirty
        made.command({"do": "save_project"})
        made.tick()
        assert told == [("info", "Saved in bar.toml.")]
        assert not made.stage.tuning.dirty
        assert not made.stage.studio.dirty
    project = load_project(tmp_path / "bar.toml")
    assert project.simulation.damping_ratio == 0.33
    assert project.simulation.stiffness == {"region 1": 0.5}
    assert project.simulation.wind == (0.0, 0.0, 3.0)
    assert project.simulation.gravity == "full"
    assert [handle.name for handle in project.basis.handles] == ["end"]
    assert [pose.name for pose in project.poses.given] == ["mine"]
    softness = np.load(tmp_path / str(project.material.softness_map))
    assert softness[4] == 0.0
    assert softness.max() == 1.0
    # A bake from the model file moves as it was seen.
    simulation = model_simulation(load_character_model(tmp_path / "bar.softrig"))
    assert simulation.damping.ratio == 0.33
    np.testing.assert_array_equal(simulation.stepper.stiffness_scale, [1.0, 0.5])
    np.testing.assert_array_equal(simulation.wind, [0.0, 0.0, 3.0])
    assert not simulation.stepper.sag_free


def test_without_a_file_there_is_nothing_to_save_into():
    with runner() as made:
        made.command({"do": "save_project"})
        made.tick()
        assert made.audience.told[0][0] == "error"
        assert "no project file" in made.audience.told[0][1]


@pytest.mark.parametrize(("correction", "learned"), [(0.0, False), (1.0, False), (1.0, True)])
def test_energy_is_what_a_swing_without_damping_keeps(correction, learned):
    """Also where a good part of the stiffness is ΔK, mixed or learned beside the tets."""
    bar = soft_bar()
    lowest = (2.0 * np.pi * bar.frequencies.min()) ** 2
    random = np.random.default_rng(0).normal(size=(24, 24))
    delta = correction * lowest * (np.eye(24) + 0.01 * (random + random.T))
    model = replace(bar, cubature=replace(bar.cubature, stiffness_correction=np.stack([delta, 2.0 * delta])))
    if learned:
        model = mapped(model, own=2, beside_tets=True)
        known = model.cubature.stiffness_map
        own = np.concatenate([as_kept(np.stack([delta, 2.0 * delta])), 0.0 * known.components[2:]])
        model = replace(model, cubature=replace(model.cubature, stiffness_map=replace(known, components=own)))
    with stage(None, model=model) as made:
        made.tuning.change("damping_ratio", 0.0)
        made.tuning.change("gravity", "off")
        made.tuning.change("stiffness.region 0", 0.5)
        frames(made, 2)
        made.subject.simulation.stepper.v[:3] = 0.03
        sums, kinetic = [], []
        for _ in range(60):
            frames(made, 1)
            energy = made.subject.numbers()["energy"]
            kinetic.append(energy["kinetic"])
            sums.append(energy["kinetic"] + energy["elastic"])
        assert np.ptp(kinetic) > 0.3 * np.max(kinetic)
        assert np.ptp(sums) < 0.01 * np.mean(sums)


def test_what_goes_along_with_the_modes_has_kinetic_energy():
    model = with_more_mass(followed(bar_model(poses=2, modes=6, basis_poses=1)))
    subject = SoftCharacter(model)
    stepper, pose = subject.simulation.stepper, subject.pose
    stepper.v[:] = np.linspace(-0.3, 0.4, 6)
    energy = FleshEnergy(model)(stepper, pose, np.zeros(6), model.pose_weights(pose))
    x = model.mode_scales(pose) * stepper.v
    wanted = 0.5 * float(x @ (model.mass_products[0, 0] + model.carried_mass) @ x)
    assert energy["kinetic"] == pytest.approx(wanted, rel=1e-12)


def test_a_body_at_rest_holds_no_energy():
    subject = SoftCharacter(soft_bar())
    weights = soft_bar().pose_weights(subject.pose)
    energy = FleshEnergy(soft_bar())(subject.simulation.stepper, subject.pose, np.zeros(24), weights)
    assert energy["kinetic"] == 0.0
    assert abs(energy["elastic"]) < 1e-12


# What takes long


def test_a_stiffness_that_takes_long_is_prepared_beside_the_motion(monkeypatch):
    """A second stepper takes the first one's place; what comes then is, to the bit, what a change on the spot gives."""
    monkeypatch.setattr(character, "QUICKLY", 0.0)
    with stage("sway") as beside:
        simulation, old = beside.subject.simulation, beside.subject.simulation.stepper
        frames(beside, 5)
        beside.pull(0, 0, 5, np.array([0.1, 0.3, 0.0]))
        frames(beside, 5)
        beside.tuning.change("stiffness", 0.3)
        beside.retuning.step()
        assert (old.stiffness_scale == 1.0).all(), "not yet"
        before = simulation.state()
        _settled(beside)
        assert beside.subject.simulation is simulation, "recordings and pulls go on"
        assert simulation.stepper is not old
        assert (simulation.stepper.stiffness_scale == 0.3).all()
        assert len(simulation.pulls) == 1
        again = model_simulation(soft_bar(), fps=60.0)
        again.stepper.stiffness_scale = simulation.stepper.stiffness_scale
        pull = simulation.pulls[0]
        again.pull_tets(pull.vertices, pull.weights, pull.force)
        pose = beside.playback.pose()
        for each in (simulation, again):
            each.restore(before)
        assert np.array_equal(simulation.run(np.stack([pose] * 5)), again.run(np.stack([pose] * 5)))
        beside.tuning.undo()
        _settled(beside)
        assert simulation.stepper is old, "the two take turns"
        assert (old.stiffness_scale == 1.0).all()


def test_what_cannot_be_prepared_is_told_once_and_everything_moves_on(monkeypatch):
    told = []
    with stage("sway") as made:
        made.retuning._tell = lambda *words: told.append(words)

        def fails(settings):
            raise MemoryError("no room")

        monkeypatch.setattr(made.subject, "prepare", fails)
        made.tuning.change("modes", 4)
        _settled(made)
        frames(made, 10)
        assert told == [("error", "That setting cannot be had: no room")]
        assert made.tuning.now.modes == 24, "as it really is"


def test_settings_act_while_another_number_of_modes_is_prepared(monkeypatch):
    gate = threading.Event()
    with stage("sway") as made:
        prepare = made.subject.prepare
        monkeypatch.setattr(made.subject, "prepare", lambda settings: gate.wait(30.0) and prepare(settings))
        made.tuning.change("modes", 4)
        frames(made, 2)
        made.tuning.change("inertia", 2.5)
        frames(made, 2)
        assert made.subject.simulation.stepper.inertia_scale == 2.5
        gate.set()
        settle_modes(made, 4)
        assert made.subject.simulation.stepper.inertia_scale == 2.5


def test_one_thread_is_given_back():
    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    with one_thread():
        with one_thread():
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before


def _settled(made) -> None:
    end = time.monotonic() + 60.0
    while made.retuning.under_way:
        assert time.monotonic() < end
        made.retuning.step()
        time.sleep(0.005)
