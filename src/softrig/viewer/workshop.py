"""The workshop: builds a character anew, in a process of its own, while the old model goes on playing.

Finished stages are kept in the cache folder, so a build that was stopped goes on where it was. The model file is
replaced when the new one is whole, and not before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softrig.errors import SoftrigError
from softrig.models.file import load_character_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.telling import COSTS as BUILD_COSTS
from softrig.project import Project
from softrig.viewer.decisions import captured, handle_at, pinned, with_handle, without_handle, without_pose
from softrig.viewer.errands import Errand
from softrig.viewer.progress import Progress

__all__ = ["Workshop", "captured", "handle_at", "pinned", "with_handle", "without_handle", "without_pose"]

COSTS = {"Reading": 3.0} | BUILD_COSTS | {"Writing": 1.0}
CACHE = ".softrig-cache"

Tell = Callable[[str, str], None]
"""Level ("info", "warning", "error") and text."""


class Workshop:
    """Builds of one character. No call waits; `tell` and `swap` are called from another thread.

    `source`: the character's file, or the name of a built-in one. `model_path`: where the model goes; default beside
    the source. `swap(model, path)`: called with a new model when it is ready.
    """

    def __init__(
        self,
        source: Path | str,
        project: Project,
        project_path: Path | None,
        model_path: Path | None = None,
        *,
        tell: Tell,
        swap: Callable[[PoseSpaceModel, Path], None],
        jobs: int | None = None,
    ) -> None:
        self.source, self.project, self.project_path = source, project, project_path
        path = Path(source)
        self.model_path = model_path or (path.with_suffix(".softrig") if path.exists() else Path(f"{source}.softrig"))
        self._tell, self._swap = tell, swap
        # One core is the live simulation's.
        self._jobs = jobs or max(worker_count(None) - 1, 1)
        self._lock = threading.Lock()
        self._errand: Errand | None = None
        self._progress: Progress | None = None
        self._message: str | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a build is at work."""
        return self._progress is not None

    @property
    def state(self) -> dict[str, Any]:
        """For the page: running, stage, done (0 to 1), left_s (seconds or None), message."""
        progress = self._progress
        if progress is None:
            return {"running": False, "stage": None, "done": 0.0, "left_s": None, "message": self._message}
        left = progress.left
        return {
            "running": True,
            "stage": progress.stage or "Starting",
            "done": round(progress.done, 3),
            "left_s": None if left is None else round(left, 1),
            "message": self._message,
        }

    def build(self, project: Project | None = None) -> bool:
        """Begin a build by `project`, by the last one if it is None; False: one is at work already."""
        with self._lock:
            if self.running:
                self._tell("warning", "A build is at work already: cancel it first.")
                return False
            self.project = project or self.project
            self._message, self._progress = None, Progress(COSTS)
            self._errand = Errand(self._job(), heard=self._heard, ended=self._ended)
        return True

    def cancel(self) -> None:
        """Stop the build that is at work; what it has finished is kept. Returns at once."""
        errand = self._errand
        if errand is not None and self.running:
            self._message = "Stopping …"
            errand.stop()

    def close(self) -> None:
        """Stop and wait until no process is left."""
        self._closed = True
        errand = self._errand
        if errand is not None:
            errand.close()

    def _job(self) -> dict[str, Any]:
        path = Path(self.source)
        folder = self.project_path.parent if self.project_path is not None else path.parent if path.exists() else None
        return {
            "do": "build",
            "source": str(path.resolve()) if path.exists() else str(self.source),
            "project": self.project.model_dump(mode="json"),
            "folder": None if folder is None else str(folder.resolve()),
            "target": str(self.model_path.resolve()),
            "cache": str(self.model_path.resolve().parent / CACHE),
            "jobs": self._jobs,
        }

    def _heard(self, message: dict[str, Any]) -> None:
        progress = self._progress
        if progress is not None:
            progress.hear(message)
        if "note" in message:
            self._tell("info", str(message["note"]))

    def _ended(self, problem: str | None, result: dict[str, Any] | None) -> None:
        """The child is gone: take up its model, or say why there is none."""
        if self._closed:
            self._progress = None
            return
        try:
            self._message = self._taken_up(problem, result)
        except (SoftrigError, OSError) as error:
            self._message = str(error)
            self._tell("error", f"The new model cannot be shown: {error}")
        finally:
            self._progress = None

    def _taken_up(self, problem: str | None, result: dict[str, Any] | None) -> str | None:
        """What is left to say about the build."""
        if result is not None:
            path = Path(result["model"])
            self._swap(load_character_model(path), path)
            self._tell("info", "The new model is built.")
        elif problem is not None:
            self._tell("error", f"The build failed: {problem}")
        else:
            self._tell("info", "The build was stopped; what it had finished is kept.")
        return problem
