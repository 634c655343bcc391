"""Things to take away: clips and takes baked into files, one job after the other, each in a process of its own."""

from __future__ import annotations

import queue
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from softrig.conversion import ENDINGS
from softrig.errors import InputError, SoftrigError
from softrig.models.file import save_model
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import chosen_clips
from softrig.viewer.errands import Errand
from softrig.viewer.progress import Progress
from softrig.viewer.takes import Take

COSTS = {"Reading": 1.0, "Simulating": 8.0, "Writing": 1.0}
MOST_JOBS = 20
"""Older results are forgotten."""
FPS = 60.0


@dataclass(eq=False)
class _Job:
    """One thing to be made."""

    id: str
    what: str
    make: Callable[[_Job], dict[str, Any] | None]
    """Prepares it: what to send on the errand; None: it is made already."""
    folder: Path
    progress: Progress | None = None
    errand: Errand | None = None
    file: Path | None = None
    failed: str | None = None
    forgotten: bool = False

    def state(self) -> dict[str, Any]:
        """For the page."""
        left = None if self.progress is None or self.file else self.progress.left
        return {
            "id": self.id,
            "what": self.what,
            "done": 1.0 if self.file else 0.0 if self.progress is None else round(self.progress.done, 3),
            "left_s": None if left is None else round(left, 1),
            "url": f"/files/{self.id}/{quote(self.file.name)}" if self.file else None,
            "failed": self.failed,
        }


class Takeaway:
    """Jobs and their files, in a private folder within `folder` (default: the system's for temporary files).

    `character`: the file that clips are baked into, where it is not beside the model. No call but `close` waits.
    """

    def __init__(self, folder: Path | None, tell: Callable[[str, str], None], *, character: Path | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="softrig-take-", dir=folder))
        self._tell, self.character = tell, character
        self._jobs: dict[str, _Job] = {}
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._saved: tuple[PoseSpaceModel, Path] | None = None
        self._closed = False

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """For the page: id, what, done (0 to 1), left_s, url (None: not finished), failed (None: not)."""
        return [job.state() for job in list(self._jobs.values())]

    def bake(
        self,
        model: PoseSpaceModel,
        model_path: Path | None,
        clip: str,
        ending: str,
        settings: Mapping[str, Any] | None = None,
        *,
        fps: float = FPS,
    ) -> str:
        """Bake a clip, or "all", into files that end in `ending`, with live `settings`; the id of the job."""
        ending = _checked(ending)
        clips = [found.name for found in chosen_clips(model, [clip])]
        title = clips[0] if len(clips) == 1 else "all clips"
        order = {"do": "bake", "clips": clips, "ending": ending, "fps": fps, "settings": dict(settings or {})}
        return self._add(f"{title}{ending}", self._baking(order, model, model_path, f"{model.name} {title}"))

    def bake_take(
        self, model: PoseSpaceModel, model_path: Path | None, take: Take, ending: str, *, fps: float = FPS
    ) -> str:
        """Bake a take, with all that was pulled and tuned in it; the id of the job."""
        ending = _checked(ending)
        order = {"do": "take", "ending": ending, "fps": fps}
        return self._add(f"{take.name}{ending}", self._baking(order, model, model_path, take.name, take))

    def save_take(self, take: Take) -> str:
        """Write a take itself as .npz; the id of the job."""

        def make(job: _Job) -> None:
            path = job.folder / f"{_plain(take.name)}.npz"
            take.save(path)
            job.file = path

        return self._add(f"{take.name}.npz", make)

    def file(self, job_id: str) -> Path:
        """The finished file of a job."""
        job = self._jobs.get(job_id)
        if job is None or job.file is None or not job.file.is_file():
            raise InputError("there is no such file, or not yet")
        return job.file

    def forget(self, job_id: str) -> None:
        """Stop a job if it is at work, and remove its file."""
        job = self._jobs.pop(job_id, None)
        if job is not None:
            job.forgotten = True
            if job.errand is not None and job.errand.running:
                job.errand.stop()  # the folder goes when the child has gone
            else:
                shutil.rmtree(job.folder, ignore_errors=True)

    def close(self) -> None:
        """Stop everything and remove all files."""
        self._closed = True
        self._waiting.put(None)
        for job in list(self._jobs.values()):
            job.forgotten = True
            if job.errand is not None:
                job.errand.close()
        if self._worker is not None and self._worker is not threading.current_thread():
            self._worker.join(10.0)
        self._jobs.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _add(self, what: str, make: Callable[[_Job], dict[str, Any] | None]) -> str:
        if self._closed:
            raise InputError("the viewer is closing")
        job = _Job(secrets.token_hex(8), what, make, self._folder)
        job.folder = self._folder / job.id
        job.folder.mkdir()
        self._jobs[job.id] = job
        for old in [old.id for old in self._jobs.values() if old.file or old.failed][: len(self._jobs) - MOST_JOBS]:
            self.forget(old)
        self._waiting.put(job)
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="softrig takeaway", daemon=True)
            self._worker.start()
        return job.id

    def _work(self) -> None:
        while (job := self._waiting.get()) is not None and not self._closed:
            if not job.forgotten:
                self._do(job)
            if job.forgotten:
                shutil.rmtree(job.folder, ignore_errors=True)
            self._recorded(job).unlink(missing_ok=True)

    def _do(self, job: _Job) -> None:
        finished = threading.Event()

        def ended(problem: str | None, result: dict[str, Any] | None) -> None:
            job.failed = problem
            if result is not None:
                job.file = Path(result["file"])
            finished.set()

        job.progress = Progress(COSTS)
        try:
            order = job.make(job)
        except (SoftrigError, OSError) as error:
            ended(str(error), None)
        else:
            if order is None:
                finished.set()
            else:
                job.errand = Errand(order, heard=lambda message: self._heard(job, message), ended=ended)
                if job.forgotten:  # forgotten or closed in this very moment
                    job.errand.stop()
                finished.wait()
        if job.forgotten:
            return
        if job.failed is not None:
            self._tell("error", f"{job.what}: {job.failed}")
        elif job.file is not None:
            self._tell("info", f"{job.file.name} is ready.")

    def _heard(self, job: _Job, message: dict[str, Any]) -> None:
        if job.progress is not None:
            job.progress.hear(message)
        if "note" in message:
            self._tell("warning", str(message["note"]))

    def _baking(
        self, order: dict[str, Any], model: PoseSpaceModel, model_path: Path | None, name: str, take: Take | None = None
    ) -> Callable[[_Job], dict[str, Any]]:
        def make(job: _Job) -> dict[str, Any]:
            if take is not None:
                recorded = self._recorded(job)
                take.save(recorded)
                order["take"] = str(recorded)
            return {
                **order,
                "model": str(self._model_file(model, model_path)),
                "beside": None if model_path is None else str(model_path),
                "character": None if self.character is None else str(self.character),
                "folder": str(job.folder),
                "name": _plain(name),
            }

        return make

    def _recorded(self, job: _Job) -> Path:
        """Where a take waits to be baked: beside the results, not among them."""
        return self._folder / f"{job.id}.npz"

    def _model_file(self, model: PoseSpaceModel, path: Path | None) -> Path:
        """A file that holds the model; one made from Python alone is written first."""
        if path is not None and path.is_file():
            return path
        if self._saved is None or self._saved[0] is not model:
            target = self._folder / "model.softrig"
            save_model(model, target)
            self._saved = (model, target)
        return self._saved[1]


def _checked(ending: str) -> str:
    plain = str(ending).lower()
    plain = plain if plain.startswith(".") else f".{plain}"
    if plain not in ENDINGS:
        raise InputError(f"cannot write {plain[:20]}; there are {', '.join(ENDINGS)}")
    return plain


def _plain(name: str) -> str:
    """A name as a file's."""
    plain = "".join(letter if letter.isalnum() or letter in "-_ " else "_" for letter in name).strip()
    return plain[:80] or "softrig"
