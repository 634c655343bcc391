"""What pages are told in words: what is on the stage (hello), and how it stands (state)."""

from __future__ import annotations

from typing import Any

from softrig.conversion import ENDINGS
from softrig.viewer.playback import listed
from softrig.viewer.stage import Stage
from softrig.viewer.tuning import presets_shown


def hello(stage: Stage, port: int) -> dict[str, Any]:
    """What does not change while a subject is on the stage."""
    subject, studio, scope = stage.subject, stage.studio, stage.tuning.scope
    joints = stage.posing.joints
    collides = hasattr(subject.simulation, "colliders")
    return {
        "is": "hello",
        "port": port,
        "name": subject.name,
        "kind": subject.kind,
        "about": subject.about(),
        "clips": listed(subject),
        "regions": list(subject.regions),
        "joints": [] if joints is None else joints.listed(),
        "poses": [pose["name"] for pose in studio.poses()],
        "modes": {"now": stage.tuning.now.modes, "most": scope.most_modes, "stay": scope.modes_stay},
        "presets": presets_shown() if scope.young is not None else {},
        "gravities": list(scope.gravities),
        "layers": list(stage.sights.layers()),
        "endings": list(ENDINGS),
        "can": {**studio.can(), "root": stage.posing.can_move_root, "ground": collides},
        "flesh": subject.simulation is not None,
        "project": None if studio.project_path is None else str(studio.project_path),
    }


def state(stage: Stage) -> dict[str, Any]:
    """Everything a page needs to draw its controls."""
    tuning = stage.tuning
    return {
        "is": "state",
        **stage.playback.shown(),
        "show": stage.show,
        "layer": None if stage.sights.shown is None else stage.sights.shown.name,
        "mode": None if stage.sights.mode_shown is None else stage.sights.mode_shown.index,
        "settings": tuning.now.shown(),
        "can_undo": tuning.can_undo,
        "can_redo": tuning.can_redo,
        "unsaved": {"settings": tuning.dirty, "decisions": stage.studio.dirty},
        "root": stage.posing.root_wanted(),
        "ground": stage.touch.has_ground,
        **stage.studio.state(),
    }
