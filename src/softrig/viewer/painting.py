"""Softness painted on the surface with a brush: for all poses or for one, undone stroke by stroke, kept as `.npy`.

1 is as soft as the preset, towards 0 stiffer, exactly 0 plain skinning. A pose that was never painted by itself is like
the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from softrig.errors import InputError
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.fabric import softness_by_joints
from softrig.pipeline.maps import ENDING, paint_map, read_map, write_map
from softrig.project import PoseMaterial, Project
from softrig.render.colour import sequential
from softrig.rig.character import Character
from softrig.viewer.decisions import pinned
from softrig.viewer.walks import Walks

PLATEAU = 0.5
"""Of the radius: within it a dab has its full strength, beyond it fades. Without, nothing could be painted exactly."""
NEAR_ENOUGH = 1.0 / 256.0
"""Softness: closer to the brush's value than this is that value, so that weak dabs arrive at exactly 0 and 1."""
STROKE_GAP = 0.4
"""Seconds without a dab that end a stroke, which is what undo takes back."""
MOST_STROKES = 200
_LARGEST_RADIUS = 0.5
"""Of the character's size."""


class _Painted(Protocol):
    """What painting needs of a subject: `geometry()` with rest (n, 3), triangles, weld (n,) and size."""

    def geometry(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class _Stroke:
    """What a stroke covered: the map it began from; None: the pose had none."""

    pose: str | None
    before: np.ndarray | None


class Painting:
    """The softness maps of one character while they are painted.

    `project` says which maps there are already; those in the character's own file need the `character`. Maps are saved
    beside `project_path`.
    """

    def __init__(
        self,
        subject: _Painted,
        character: Character | None = None,
        project_path: Path | None = None,
        project: Project | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        geometry = subject.geometry()
        self._count, self._size = len(geometry.rest), float(geometry.size)
        self._geometry = geometry
        self._walks: Walks | None = None
        self._path, self._clock = project_path, clock
        self._model = getattr(subject, "model", None)
        self._maps: dict[str | None, np.ndarray] = {}
        self._unpainted = np.ones(self._count, np.float32)
        self._touched: set[str | None] = set()
        self._strokes: list[_Stroke] = []
        self._last: tuple[float, str | None] | None = None
        self.version = 0
        """Grows with every change."""
        self.unread: list[str] = []
        """Maps of the project that could not be read, and why."""
        if project is not None:
            self._read(project, character)

    @property
    def can_undo(self) -> bool:
        """Whether there is a stroke to take back."""
        return bool(self._strokes)

    @property
    def painted(self) -> tuple[str | None, ...]:
        """The poses that have a map; None: the one for all."""
        return tuple(self._maps)

    def map(self, pose: str | None = None) -> np.ndarray:
        """(n,) float32 softness at a pose, or of all that have none of their own; a copy."""
        found = self._maps.get(pose, self._maps.get(None))
        return (self._unpainted if found is None else found).copy()

    def colours(self, pose: str | None = None) -> np.ndarray:
        """(n, 4) uint8 sRGB: dark where the flesh is held, bright where it is soft."""
        rgb = sequential(self.map(pose), low=0.0, high=1.0)
        return np.concatenate([np.rint(255.0 * rgb), np.full((self._count, 1), 255.0)], axis=1).astype(np.uint8)

    def dab(self, vertex: int, radius: float, value: float, strength: float = 1.0, pose: str | None = None) -> None:
        """Move the softness around a surface vertex towards `value`, within `radius` metres along the surface."""
        numbers = (float(radius), float(value), float(strength))
        if not (np.isfinite(numbers).all() and numbers[0] >= 0.0 and 0.0 <= numbers[1] <= 1.0):
            raise InputError(f"a brush has a radius in metres and a softness from 0 to 1, not {radius} and {value}")
        if not 0.0 <= numbers[2] <= 1.0:
            raise InputError(f"the strength of a brush lies between 0 and 1, not {strength}")
        radius = min(numbers[0], _LARGEST_RADIUS * self._size)
        near, distances = self._surface().within(vertex, radius)
        self._begin_stroke(pose)
        values = self.map(pose)
        share = numbers[2] * _fading(distances / max(radius, 1e-300))
        values[near] += share * (numbers[1] - values[near])
        close = near[(np.abs(values[near] - numbers[1]) < NEAR_ENOUGH) & (share > 0.0)]
        values[close] = numbers[1]
        self._maps[pose] = values
        self.version += 1

    def undo(self) -> None:
        """Take back the last stroke, if there is one."""
        if self._strokes:
            stroke = self._strokes.pop()
            if stroke.before is None:
                self._maps.pop(stroke.pose, None)
            else:
                self._maps[stroke.pose] = stroke.before
            self._last = None
            self.version += 1

    def clear(self, pose: str | None = None) -> None:
        """As where nothing is painted: firm hands, feet and heads, the preset elsewhere. A pose becomes like the others
        again. Undo brings it back."""
        if pose in self._maps:
            self._last = None
            self._begin_stroke(pose)
            self._last = None
            del self._maps[pose]
            self.version += 1

    def save(self, project: Project | None = None) -> dict[str, dict[str, Any]]:
        """Write what was painted beside the project file; returns what to change: `project.changed(**changes)`.

        `project`: what it says about materials of poses, and maps that were not painted on, stay. Poses with a map of
        their own are given by their parameters from now on, so that the next build has them, too.
        """
        if self._path is None:
            raise InputError("painted softness is kept beside a project file, and there is none")
        project = project or Project()
        material = project.model_dump()["material"]
        names = self._files()
        for pose in self._touched & set(self._maps):
            write_map(self._path.parent / names[pose], self._maps[pose])
        for pose in self._touched:
            name = names.get(pose)
            if pose is None:
                material["softness_map"] = name
            else:
                material["poses"][pose] = {**material["poses"].get(pose, {}), "softness_map": name}
        nothing = PoseMaterial().model_dump()
        poses = {pose: own for pose, own in material["poses"].items() if {**nothing, **own} != nothing}
        changes = {"material": {"softness_map": material["softness_map"], "poses": poses}}
        if isinstance(self._model, PoseSpaceModel):
            staying = pinned(project, self._model, set(poses))
            changes["poses"] = {"given": [pose.model_dump() for pose in staying.poses.given]}
        return changes

    def _files(self) -> dict[str | None, str]:
        """Of each map the name of its file, no two the same on any disk."""
        assert self._path is not None
        stem = f"{self._path.stem}-softness"
        taken: set[str] = set()
        names: dict[str | None, str] = {}
        for pose in sorted(self._maps, key=lambda pose: pose or ""):
            plain = "" if pose is None else "-" + "".join(c if c.isalnum() or c in "-_" else "_" for c in pose)[:60]
            name, copy = f"{stem}{plain}{ENDING}", 1
            while name.lower() in taken:
                copy += 1
                name = f"{stem}{plain}-{copy}{ENDING}"
            taken.add(name.lower())
            names[pose] = name
        return names

    def _read(self, project: Project, character: Character | None) -> None:
        wanted: dict[str | None, str | None] = {None: project.material.softness_map}
        wanted |= {pose: own.softness_map for pose, own in project.material.poses.items()}
        # What is built where nothing is painted; also after what is painted now has been cleared.
        unpainted = project.changed(material={"softness_map": None})
        if character is not None and (softness := softness_by_joints(character, unpainted)) is not None:
            self._unpainted = softness.astype(np.float32)
        folder = None if self._path is None else self._path.parent
        for pose, name in wanted.items():
            if name is None:
                continue
            try:
                values = self._one_map(name, character, folder)
            except (InputError, OSError) as trouble:
                self.unread.append(str(trouble))
                continue
            self._maps[pose] = np.clip(values, 0.0, 1.0).astype(np.float32)

    def _one_map(self, name: str, character: Character | None, folder: Path | None) -> np.ndarray:
        if character is not None:
            return paint_map(character, name, folder)
        if folder is None or not name.lower().endswith(ENDING) or Path(name).name != name:
            raise InputError(f"the painted map '{name}' is in the character's file, which is not there")
        return read_map(folder / name, self._count)

    def _surface(self) -> Walks:
        if self._walks is None:
            self._walks = Walks(self._geometry.rest, self._geometry.triangles, self._geometry.weld)
        return self._walks

    def _begin_stroke(self, pose: str | None) -> None:
        """Remember what was there, unless this dab goes on with the last stroke."""
        now = self._clock()
        going_on = self._last is not None and self._last[1] == pose and now - self._last[0] < STROKE_GAP
        self._last = (now, pose)
        self._touched.add(pose)
        if not going_on:
            before = self._maps.get(pose)
            self._strokes.append(_Stroke(pose, None if before is None else before.copy()))
            del self._strokes[:-MOST_STROKES]


def _fading(share: np.ndarray) -> np.ndarray:
    """(k,) how strongly a dab acts at `share` (k,) of its radius: one on the plateau, zero at the rim, smooth."""
    t = np.clip((share - PLATEAU) / (1.0 - PLATEAU), 0.0, 1.0)
    return 1.0 - t * t * (3.0 - 2.0 * t)
