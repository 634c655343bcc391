"""The arm of the pictures, its builds, and the full simulations that some are held against; finished ones are kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import softrig as sr
from softrig.dynamics import Rayleigh
from softrig.pipeline.build import Built, build_parts
from softrig.pipeline.cache import StageCache, content_hash
from softrig.pipeline.coarse import on_surface
from softrig.pipeline.compare import RATE, default_damping, full_trajectory, reduced_trajectory
from softrig.simulation import Bake

FPS = 60.0
CLIP = "wave"
SOFTNESS = "firm hand"
BASE = sr.Project().changed(
    mesh={"tets": 3000},
    basis={"modes": 40},
    poses={"count": 3, "clips": ("bend", "swing")},
    cubature={"count": 150},
    material={"preset": "fat", "softness_map": SOFTNESS},
)
"""Softer than an arm is, so that there is something to see; small, so that a build takes seconds; with tets enough for
the softest and farthest of what is shown. Poses are chosen from the clips that are not shown, as they would be for most
clips of a character."""
WRIST, FINGERS = 0.50, 0.60
"""Metres along the arm, between which softness fades to `FIRM`: else the boneless hand outdoes everything."""
FIRM = 0.1


def painted_arm() -> sr.Character:
    """The built-in arm with a firm hand."""
    arm = sr.built_in("arm")
    paint = np.interp(arm.rest_positions[:, 0], (WRIST, FINGERS), (1.0, FIRM))
    return replace(arm, maps={**arm.maps, SOFTNESS: paint})


class Studio:
    """One arm, built in many ways."""

    def __init__(self, cache: Path) -> None:
        self.arm = painted_arm()
        self._cache = cache
        self._built: dict[str, Built] = {}

    def built(
        self, character: sr.Character | None = None, *, folder: Path | None = None, **tables: dict[str, object]
    ) -> Built:
        """The arm, or another character, built with some settings of `BASE` changed."""
        character, project = character or self.arm, BASE.changed(**tables)
        key = content_hash(project.model_dump_json(), character.rest_positions, [clip.name for clip in character.clips])
        if folder is not None or key not in self._built:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sr.Notice)
                self._built[key] = build_parts(character, project, cache=self._cache, folder=folder, jobs=1)
        return self._built[key]

    def model(self, character: sr.Character | None = None, **tables: dict[str, object]) -> sr.PoseSpaceModel:
        """As `built`, the model alone."""
        return self.built(character, **tables).model

    def bake(self, model: sr.PoseSpaceModel, clip: str = CLIP, **options: object) -> Bake:
        """A clip of the arm, with plain skinning beside it."""
        return sr.model_simulation(model, **options).bake(self.arm.clip(clip), FPS, plain=True)

    def unseen(self, clip: str = CLIP) -> sr.Character:
        """The arm without one of its clips."""
        return replace(self.arm, clips=tuple(each for each in self.arm.clips if each.name != clip))

    def truth(self, built: Built, damping: Rayleigh, clip: str = CLIP) -> np.ndarray:
        """(steps, n̄, 3) metres off plain skinning: the full simulation of the body that `built` is made from."""
        _, poses = self.arm.clip(clip).resample(FPS)
        key = content_hash(
            built.fabric.young, built.fabric.poisson, built.model.tet_rest(poses[len(poses) // 2]), built.model.law,
            poses, [damping.mass, damping.stiffness],
        )  # fmt: skip
        made = StageCache(self._cache).get(
            "truth", key, lambda: {"motion": full_trajectory(built, poses, FPS, damping=damping)}
        )
        return on_surface(built.model, made["motion"])

    def reduced(self, model: sr.PoseSpaceModel, damping: Rayleigh, clip: str = CLIP) -> np.ndarray:
        """(steps, n̄, 3) metres off plain skinning, at the same moments as `truth`."""
        _, poses = self.arm.clip(clip).resample(FPS)
        return on_surface(model, reduced_trajectory(model, poses, FPS, damping=damping))

    def times(self, steps: int) -> np.ndarray:
        """(steps,) seconds of `truth`."""
        return np.arange(1, steps + 1) / RATE

    @staticmethod
    def damping(built: Built) -> Rayleigh:
        """What a simulation has by default."""
        return default_damping(built)
