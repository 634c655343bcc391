"""Models whose chosen tets push with all of their force, and what is learned beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from characters_for_tests import SMALL
from softrig.characters import built_in
from softrig.fidelity import trajectory_error
from softrig.forces.cubature import TETS_PER_MODE
from softrig.inspection import soft_problems
from softrig.models.stepper import Stepper
from softrig.pipeline import remainder
from softrig.pipeline.build import build, build_parts
from softrig.pipeline.compare import (
    default_damping,
    every_tet,
    exact_forces,
    full_trajectory,
    reduced_trajectory,
)
from softrig.pipeline.elasticity import mixed_elasticity
from softrig.pipeline.motion import carrier_steps
from softrig.pipeline.reduction import LEANING
from softrig.pipeline.stiffness import stiffness_range
from softrig.project import Project

pytestmark = pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb


def test_modes_that_do_everything_at_their_own_poses_alone_do_not_lean(cache: Path) -> None:
    """An X of a hundred modes bends by a right angle, which it has not seen."""
    x = built_in("x")
    _, poses = x.clip("bend").resample(60.0)
    project = Project().changed(mesh={"tets": 1500}, basis={"rehearsal": 1.0}, poses={"count": 3})
    project = project.changed(material={"young": 4e5})
    errors = {}
    for name, doubted in (("ours", remainder.DOUBTED), ("at its own poses alone", 1.0)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(remainder, "DOUBTED", doubted)
            built = build_parts(replace(x, clips=(x.clip("bow"),)), project, cache=cache, jobs=1)
        damping = default_damping(built)
        truth = full_trajectory(built, poses[:90], 60.0, damping=damping)
        assert np.abs(truth).max() > 0.02 * built.model.size
        moved = reduced_trajectory(built.model, poses[:90], 60.0, damping=damping)
        errors[name] = trajectory_error(moved, truth, built.model.vertex_mass)
        assert built.model.notes["leans on tets"] == (built.model.cubature.beyond == 1.0) == (name != "ours")
    assert errors["ours"] < min(0.1, 0.5 * errors["at its own poses alone"]), errors


@pytest.mark.filterwarnings("ignore::softrig.errors.Notice")  # a coarse mesh of a thin limb
@pytest.mark.parametrize("interpolation", ["world", "bind"])
def test_mixed_bases_push_with_all_of_their_tets_and_learn_what_these_miss(cache: Path, interpolation: str) -> None:
    """In the world, a stiffness learned as a whole threw the arm 30 times as far as it goes, here."""
    arm = built_in("arm")
    project = SMALL.changed(
        mesh={"tets": 1000},
        basis={"modes": 30, "interpolation": interpolation, "between_poses": "interpolated", "rehearsal": 0.0},
        poses={"count": 3},
        cubature={"count": 100},
        material={"preset": "fat"},
    )
    unseen = replace(arm, clips=tuple(clip for clip in arm.clips if clip.name != "swing"))
    built = build_parts(unseen, project, cache=cache, jobs=1)
    known = built.model.cubature.stiffness_map
    assert known is not None
    assert known.beside_tets
    assert built.model.notes["stiffness map"]["softest"] > 0.9
    assert built.model.notes["stiffness map"]["stiffest"] < 1.1
    _, poses = arm.clip("swing").resample(60.0)
    damping = default_damping(built)
    truth = full_trajectory(built, poses, 60.0, damping=damping)
    ours, exact = (
        trajectory_error(reduced_trajectory(model, poses, 60.0, damping=damping), truth, model.vertex_mass)
        for model in (built.model, exact_forces(built))
    )
    assert ours < 1.2 * exact


def test_modes_that_do_everything_by_themselves_lean_on_their_tets(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soft X of a hundred modes, as its own poses want it, bends by a right angle and stays in one piece."""
    monkeypatch.setattr(remainder, "DOUBTED", 1.0)
    x = built_in("x")
    bends = replace(x, clips=(x.clip("bend"),))
    project = Project().changed(mesh={"tets": 1500}, basis={"rehearsal": 1.0}, poses={"count": 3})
    built = build_parts(bends, project, cache=cache, jobs=1)
    model = built.model
    assert model.cubature.beyond == 1.0
    known = model.cubature.stiffness_map
    assert known is not None
    assert known.beside_tets
    # What the tets miss is not little, and is known between the poses; mixed by pose weights it is not.
    p = x.clip("bend").sample(0.6)[0]
    exact = mixed_elasticity(model, built.flesh, built.fabric, p)
    chosen = model.cubature.tets, model.positive_weights(p) @ model.cubature.weights
    tets = exact.cubature_stiffness(np.zeros(model.mode_count), *chosen)
    least, most = stiffness_range((tets + model.linear_part(p))[None], exact.rest_stiffness[None])
    assert 0.95 < least < most < 1.05
    assert every_tet(built).cubature.stiffness_map is not None
    assert np.abs(every_tet(built).linear_part(p)).max() == 0.0, "all tets miss nothing, and nothing touches"
    unlearned = replace(model, cubature=replace(model.cubature, stiffness_map=None))
    worse = stiffness_range((tets + unlearned.linear_part(p))[None], exact.rest_stiffness[None])
    assert np.abs(worse - 1.0).max() > 2.0 * max(1.0 - least, most - 1.0)
    assert model.followers is model.yielding is model.carried_mass is None
    assert 1.9 < len(model.cubature.tets) / (TETS_PER_MODE * model.mode_count) <= LEANING
    few = build(bends, project.changed(cubature={"count": 60}), cache=cache, jobs=1)
    assert len(few.cubature.tets) <= 60  # what somebody asks for counts, and is told of
    for own, told in ((model, False), (few, True)):
        assert own.notes["leans on tets"]
        assert any("leans on its chosen tets" in problem for problem in soft_problems(own)) == told
        assert not any("learned" in problem for problem in soft_problems(own))
    _, poses = x.clip("bend").resample(60.0)
    damping = default_damping(built)
    stepper = Stepper(model, rate=180.0, damping=damping, gravity=(0.0, 0.0, 0.0))
    stepper.place(stepper.carriers(poses[0]))
    shown = []
    for moment in carrier_steps(stepper.carriers, poses[:90], 60.0, 180.0):
        stepper.step(*moment)
        shown.append(stepper.vertex_displacements(None).copy())
    assert stepper.counters["halved"] == stepper.counters["decayed"] == 0
    truth = full_trajectory(built, poses[:90], 60.0, damping=damping)
    assert np.abs(truth).max() > 0.2 * model.size
    assert trajectory_error(np.stack(shown), truth, model.vertex_mass) < 0.35
