"""A small soft bar to look at: on a stage, on a runner whose clock stands still, or behind a server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from pose_models_for_tests import bar_model, pose
from softrig.models.pose_space import PoseSpaceModel
from softrig.project import Project
from softrig.rig.clip import Clip
from softrig.viewer.audience import Nobody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.opening import Opened
from softrig.viewer.runner import Runner
from softrig.viewer.stage import Stage

TICK = 1.0 / 60.0


@cache
def soft_bar() -> PoseSpaceModel:
    """Two regions; clips "wave" (ends), "held" far away, "sway", which loops, "aside" 5 cm from rest."""
    model = bar_model(law="stable-neo-hookean", regions=2, modes=24)
    wave = model.clips[0]
    far = pose(model.rig, (0, -1.2, 0.4), root_turn=(0, 1.5, 0), root_move=(0.3, 0.2, 0))
    near = pose(model.rig, root_move=(0.0, 0.05, 0.0))
    held, aside = (
        Clip.from_samples(name, model.rig.parameters, np.array([0.0, 2.0]), np.stack([where, where]))
        for name, where in (("held", far), ("aside", near))
    )
    return replace(model, clips=(wave, held, replace(wave, name="sway", looping=True), aside))


@contextmanager
def stage(clip: str | None = "wave", model: PoseSpaceModel | None = None):
    """A stage with the bar, or another model."""
    opened = Opened(SoftCharacter(model or soft_bar()), Project())
    made = Stage(opened, tell=lambda *_: None, swap=lambda *_: None, swap_body=lambda *_: None)
    if clip != "wave":
        made.playback.choose(clip)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def runner(**changes):
    """A runner whose time passes only when `tick` is called; its audience remembers everything."""
    made = Runner(Opened(SoftCharacter(soft_bar()), Project(), **changes))
    try:
        yield made
    finally:
        made.close()


def obey(made: Runner, **command) -> list[tuple[str, str]]:
    """Have a command done; what was told about it."""
    assert isinstance(made.audience, Nobody)
    made.audience.told.clear()
    assert made.command(command)
    made.tick(1)
    return list(made.audience.told)


def frames(made: Stage, count: int, speed: float = 1.0) -> np.ndarray:
    """(count, n, 3) the soft surface after each of `count` ticks."""
    shown = []
    for _ in range(count):
        made.advance(speed * TICK)
        shown.append(made.subject.soft_positions().copy())
    return np.array(shown)


def kept_in(folder: Path) -> dict[str, Path]:
    """Where a stage may keep things."""
    return {"project_path": folder / "bar.toml", "model_path": folder / "bar.softrig", "source": folder / "bar.glb"}
