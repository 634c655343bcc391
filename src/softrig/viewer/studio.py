"""What is made of a subject while it plays: paint, poses, handles, builds, bakes, takes and sketches."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from softrig.errors import InputError, SoftrigError
from softrig.models.file import save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.models.reduced import ReducedBody
from softrig.poses.selection import REST
from softrig.project import save_project
from softrig.viewer.body import SoftBody
from softrig.viewer.character import SoftCharacter
from softrig.viewer.opening import Opened
from softrig.viewer.painting import Painting
from softrig.viewer.recordings import Recordings
from softrig.viewer.sketching import Sketching
from softrig.viewer.takeaway import Takeaway
from softrig.viewer.tuning import Settings, Tuning, into_project
from softrig.viewer.workshop import Workshop, captured, handle_at, without_handle, without_pose

Tell = Callable[[str, str], None]


class Studio:
    """The workshop around one subject. Called from the thread that owns the subject, but for `file`.

    `swap(model, path)` and `swap_body(model)` are called from other threads when something new is ready.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        tell: Tell,
        swap: Callable[[PoseSpaceModel, Path], None],
        swap_body: Callable[[ReducedBody], None],
        folder: Path | None = None,
    ) -> None:
        self._opened, self._tell = opened, tell
        self.subject = opened.subject
        self.project, self.project_path = opened.project, opened.project_path
        self._saved_project = opened.project
        self._folder = tempfile.TemporaryDirectory(prefix="softrig-view-", dir=folder, ignore_cleanup_errors=True)
        home = Path(self._folder.name)
        source = opened.source
        self.takeaway = Takeaway(home, tell, character=source if isinstance(source, Path) else None)
        self.workshop: Workshop | None = None
        if source is not None and self.project_path is not None:
            self.workshop = Workshop(source, self.project, self.project_path, opened.model_path, tell=tell, swap=swap)
        self.sketching: Sketching | None = None
        if isinstance(self.subject, SoftBody):
            self.sketching = Sketching(opened.body, self.subject.model, tell=tell, swap=swap_body, folder=home)
        self._painting: Painting | None = None
        self.painting_on = False
        self.painted_pose: str | None = None
        self.brush = {"value": 0.0, "radius": 0.05}
        self.recordings = Recordings(tell)
        self._writers: list[threading.Thread] = []
        self._counted = 0

    # Paint

    @property
    def can_paint(self) -> bool:
        """Whether there is a place to keep paint in, and a character to build with it."""
        return self.subject.kind == "character" and self.workshop is not None

    def painting(self) -> Painting:
        """The painted maps, read when they are first wanted."""
        if not self.can_paint:
            raise InputError("paint needs the character's file, to build with it")
        if self._painting is None:
            self._painting = Painting(self.subject, self._opened.character, self.project_path, self.project)
            for trouble in self._painting.unread:
                self._tell("warning", trouble)
        return self._painting

    def paint(self, on: bool, pose: str | None) -> None:
        """Begin or end to paint, for all poses or for one of the model's."""
        if on:
            self.painting()
            known = [entry["name"] for entry in self.poses()]
            if pose is not None and pose not in known:
                raise InputError(f"no pose is called '{pose}'")
            self.painted_pose = None if pose == REST else pose
        self.painting_on = on

    def dab(self, vertex: int, radius: float, value: float, strength: float) -> None:
        """One dab of the brush."""
        if not self.painting_on:
            raise InputError("switch painting on first")
        self.painting().dab(vertex, radius, value, strength, self.painted_pose)
        self.brush = {"value": value, "radius": radius}

    # Poses and handles

    def capture(self, name: str, pose: np.ndarray) -> None:
        """The pose (P,) becomes a training pose of the next build."""
        model = self._model("a pose can be captured once there is flesh: build first")
        self.project = captured(self.project, model, pose, name)

    def remove_pose(self, name: str) -> None:
        """Forget a captured pose."""
        self.project = without_pose(self.project, name)

    def add_handle(self, name: str, vertex: int) -> None:
        """Mark where a region shall be."""
        self.project = handle_at(self.project, name, self.subject.geometry().rest.astype(np.float64), vertex)

    def remove_handle(self, name: str) -> None:
        """Forget a handle."""
        self.project = without_handle(self.project, name)

    def poses(self) -> list[dict[str, Any]]:
        """The model's poses, and those that the next build will have."""
        given = {pose.name for pose in self.project.poses.given if pose.name}
        model = self.subject.model
        own = list(model.poses.names) if isinstance(model, PoseSpaceModel) else []
        names = own + [name for name in sorted(given) if name not in own]
        return [{"name": name, "captured": name in given} for name in names]

    # Builds and the project

    def build(self) -> None:
        """Build the character anew with what was painted, captured and marked."""
        if self.workshop is None:
            raise InputError("the character's own file is needed to build; open it, or put it beside the model")
        self._keep_paint()
        self.workshop.build(self.project)

    def cancel(self) -> None:
        """Stop a build, or a basis that is being made."""
        if self.workshop is not None:
            self.workshop.cancel()
        if self.sketching is not None:
            self.sketching.cancel()

    def save(self, tuning: Tuning) -> Path:
        """Write settings, maps, poses and handles into the project file; its path."""
        if not self.can_save or self.project_path is None:
            raise InputError("there is no project file to save into: open the character with 'softrig view FILE'")
        self._keep_paint()
        self.project = into_project(self.project, tuning.now, tuning.built)
        save_project(self.project, self.project_path)
        self._saved_project = self.project
        tuning.saved = tuning.now
        self._note_settings(tuning.now)
        return self.project_path

    @property
    def can_save(self) -> bool:
        """Whether there is a project file, or a place for one."""
        return self.project_path is not None and self.subject.kind == "character" and not self._opened.uploaded

    @property
    def dirty(self) -> bool:
        """Whether paint, poses or handles are not in the project file."""
        painted = self._painting is not None and self._painting.version > self._counted
        return painted or self.project != self._saved_project

    def _keep_paint(self) -> None:
        if self._painting is not None and self._painting.version > self._counted:
            self.project = self.project.changed(**self._painting.save(self.project))
            self._counted = self._painting.version

    def _note_settings(self, settings: Settings) -> None:
        """The model's own notes tell how it moves: bring them up to date, so that a bake moves as was seen."""
        model, path = self.subject.model, self._opened.model_path
        if not isinstance(model, PoseSpaceModel) or path is None or not path.is_file():
            return
        table = self.project.model_dump(mode="json", exclude_defaults=True).get("simulation", {})
        noted = {**model.notes.get("project", {}), "simulation": table}
        notes = {**model.notes, "project": noted, "damping ratio": settings.damping_ratio}
        changed = replace(model, notes=notes)

        def write() -> None:
            try:
                save_model(changed, path)
            except (SoftrigError, OSError) as error:
                self._tell("warning", f"the settings are saved, but not in the model: {error}")

        # Some ten megabytes: the motion must not wait for the disk.
        writer = threading.Thread(target=write, name="softrig notes", daemon=True)
        self._writers = [*(each for each in self._writers if each.is_alive()), writer]
        writer.start()

    # Things to take away

    def bake(self, clip: str, ending: str, settings: Settings) -> None:
        """Bake a clip, or "all", as tuned."""
        model = self._model("only flesh can be baked: build first")
        self.takeaway.bake(model, self._opened.model_path, clip, ending, settings.shown())

    def record(self, on: bool) -> None:
        """Begin or end a take."""
        if on:
            self.recordings.begin(self.subject.simulation)
        else:
            self.recordings.end()

    def replay(self, name: str | None) -> None:
        """Play a take again; None ends it."""
        self.recordings.replay(name, self.subject.simulation)

    def bake_take(self, name: str, ending: str) -> None:
        """Bake a take, with all that was pulled and tuned in it."""
        model = self._model("only flesh can be baked: build first")
        self.takeaway.bake_take(model, self._opened.model_path, self.recordings.take(name), ending)

    def save_take(self, name: str) -> None:
        """Make a file of a take."""
        self.takeaway.save_take(self.recordings.take(name))

    def file(self, job: str) -> Path:
        """A finished file by the id of its job; from any thread."""
        return self.takeaway.file(job)

    # Sketches

    def sketch(self) -> Sketching:
        """The sketch of a plain body."""
        if self.sketching is None:
            raise InputError("only plain bodies can be sketched on")
        return self.sketching

    def sketched(self) -> None:
        """Tell the sketch what pulls in this frame."""
        if self.sketching is None or not self.sketching.recording or not isinstance(self.subject, SoftBody):
            return
        grips = self.subject.grips
        nodes = [np.zeros(0, np.int64), *(grip.nodes for grip in grips)]
        forces = [np.zeros((0, 3)), *(grip.node_forces() for grip in grips)]
        self.sketching.pulled(np.concatenate(nodes), np.concatenate(forces))

    # For the page

    def can(self) -> dict[str, bool]:
        """What is possible here."""
        soft = isinstance(self.subject, SoftCharacter)
        return {
            "build": self.workshop is not None,
            "bake": soft and bool(self.subject.clips),
            "take": soft,
            "paint": self.can_paint,
            "sketch": self.sketching is not None and self.sketching.possible,
            "save": self.can_save,
        }

    def state(self) -> dict[str, Any]:
        """What the page needs to draw its controls."""
        nothing = {"running": False, "stage": None, "done": 0.0, "left_s": None, "message": None}
        build = self.workshop.state if self.workshop is not None else nothing
        sketch = {"pulls": 0, "recording": False} if self.sketching is None else self.sketching.state
        can_undo = self._painting is not None and self._painting.can_undo
        return {
            "paint": {"on": self.painting_on, "pose": self.painted_pose, **self.brush, "can_undo": can_undo},
            "poses": self.poses(),
            "handles": [
                {"name": handle.name, "point": list(handle.point or ())} for handle in self.project.basis.handles
            ],
            "build": sketch if sketch.get("running") else build,
            "jobs": self.takeaway.jobs,
            **self.recordings.state(),
            "sketch": sketch,
        }

    def model_swapped(self, subject: SoftCharacter, path: Path) -> None:
        """A new model of the same character is on the stage; what was decided stays."""
        self._keep_paint()
        self._painting, self._counted = None, 0
        self.subject = subject
        self._opened = replace(self._opened, subject=subject, model_path=path)

    def close(self) -> None:
        """Stop everything; waits until no process and no thread is left."""
        if self.workshop is not None:
            self.workshop.close()
        if self.sketching is not None:
            self.sketching.close()
        self.takeaway.close()
        for writer in self._writers:
            writer.join(10.0)
        self._folder.cleanup()

    def _model(self, why_not: str) -> PoseSpaceModel:
        if not isinstance(self.subject.model, PoseSpaceModel):
            raise InputError(why_not)
        return self.subject.model
