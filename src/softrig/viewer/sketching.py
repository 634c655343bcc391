"""Sketched bases, the whole loop (StVK05 §5.2): pull a plain body, record, solve for real, reduce, play again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softrig.bases.sketch import Pull
from softrig.errors import InputError, SoftrigError, require_indices, require_vectors
from softrig.models.file import load_reduced_body
from softrig.models.full import FullBody
from softrig.models.reduced import ReducedBody
from softrig.viewer.errands import Errand
from softrig.viewer.progress import Progress
from softrig.viewer.sketch_files import write_sketch

COSTS = {"Reading": 1.0, "Solving the pulls": 10.0, "Reducing forces": 5.0, "Writing": 1.0}
APART = 0.05
"""Of the strongest force so far: pulls that differ less from the last one kept are the same."""
MOST_PULLS = 200
"""When more are kept, every other one goes: a long sketch is thinned, not cut off."""


class Sketching:
    """Records pulls on a plain body and makes a new basis of them.

    `body`: the full body, None: there is none to solve with, and nothing can be sketched. `swap(model)`: called with
    the new reduced body when it is ready; it and `tell` are called from another thread.
    """

    def __init__(
        self,
        body: FullBody | None,
        model: ReducedBody | None,
        *,
        tell: Callable[[str, str], None],
        swap: Callable[[ReducedBody], None],
        folder: Path | None = None,
    ) -> None:
        self._why_not = _why_not(body, model)
        self._body, self._model = body, model
        self._tell, self._swap = tell, swap
        self._folder = Path(tempfile.mkdtemp(prefix="softrig-sketch-", dir=folder))
        self.recording = False
        self.pulls: list[Pull] = []
        """Recorded so far."""
        self._strongest = 0.0
        self._last: np.ndarray | None = None
        self._errand: Errand | None = None
        self._progress: Progress | None = None
        self._message: str | None = None
        self._closed = False

    @property
    def possible(self) -> bool:
        """Whether there is a full body to solve the pulls with."""
        return self._why_not is None

    @property
    def running(self) -> bool:
        """Whether a basis is being made."""
        return self._progress is not None

    @property
    def state(self) -> dict[str, Any]:
        """For the page: how many pulls, whether more are recorded, and of a build the same as the workshop tells."""
        progress = self._progress
        left = None if progress is None else progress.left
        return {
            "pulls": len(self.pulls),
            "recording": self.recording,
            "running": progress is not None,
            "stage": None if progress is None else progress.stage or "Starting",
            "done": 0.0 if progress is None else round(progress.done, 3),
            "left_s": None if left is None else round(left, 1),
            "message": self._message,
        }

    def record(self, on: bool) -> None:
        """Begin to record pulls, after those already there, or end."""
        if on and self._why_not is not None:
            raise InputError(self._why_not)
        self.recording = bool(on)

    def clear(self) -> None:
        """Forget all pulls."""
        self.pulls, self._strongest, self._last = [], 0.0, None

    def pulled(self, vertices: np.ndarray, forces: np.ndarray) -> None:
        """What acts in this frame: forces (k, 3), newton, in the body's own axes, at its vertices (k,).

        Kept while recording, where it differs from what was kept last. Call it with nothing when all is let go.
        """
        if not self.recording or self._body is None:
            return
        count = len(self._body.mesh.vertices)
        vertices = require_indices(vertices, count, "pulled vertices")
        if len(vertices) == 0:
            self._last = None
            return
        pull = Pull(vertices, require_vectors(forces, len(vertices), "forces of pulls"))
        field = pull.field(count)
        strength = float(np.linalg.norm(field))
        self._strongest = max(self._strongest, strength)
        step = strength if self._last is None else float(np.linalg.norm(field - self._last))
        if strength <= 0.0 or step < APART * self._strongest:
            return
        self._last = field
        self.pulls.append(pull)
        if len(self.pulls) > MOST_PULLS:
            del self.pulls[1::2]

    def build(self, size: int) -> bool:
        """Begin to make a basis of at most `size` shapes; False: one is being made already."""
        if self._why_not is not None:
            raise InputError(self._why_not)
        if self.running:
            self._tell("warning", "A basis is being made already: cancel it first.")
            return False
        if not self.pulls:
            raise InputError("no pulls were recorded: switch recording on and pull at the body")
        if not 1 <= int(size) <= 200:
            raise InputError(f"a basis has 1 to 200 shapes, not {size}")
        assert self._body is not None
        assert self._model is not None
        body, model, pulls = self._body, self._model, list(self.pulls)
        self.recording, self._message = False, None
        sketch, target = self._folder / "sketch.npz", self._folder / "sketched.softrig"

        def prepared() -> dict[str, Any]:
            write_sketch(sketch, body, model, pulls)
            return {"do": "sketch", "sketch": str(sketch), "size": int(size), "target": str(target)}

        self._progress = Progress(COSTS)
        self._errand = Errand(prepared, heard=self._heard, ended=self._ended)
        return True

    def cancel(self) -> None:
        """Stop; returns at once."""
        if self._errand is not None and self.running:
            self._errand.stop()

    def close(self) -> None:
        """Stop and wait until no process is left."""
        self._closed = True
        if self._errand is not None:
            self._errand.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _heard(self, message: dict[str, Any]) -> None:
        if self._progress is not None:
            self._progress.hear(message)
        if "note" in message:
            self._tell("warning", str(message["note"]))

    def _ended(self, problem: str | None, result: dict[str, Any] | None) -> None:
        try:
            if self._closed:
                return
            if result is not None:
                model = load_reduced_body(result["model"])
                self._model = model
                self._swap(model)
                self._tell("info", f"{result['pulls']} pulls became a basis of {result['modes']} shapes.")
            elif problem is not None:
                self._message = problem
                self._tell("error", f"No basis could be made: {problem}")
        except (SoftrigError, OSError) as error:
            self._message = str(error)
            self._tell("error", f"The new basis cannot be shown: {error}")
        finally:
            self._progress = None


def _why_not(body: FullBody | None, model: ReducedBody | None) -> str | None:
    """Why nothing can be sketched, None: it can."""
    if body is None or model is None:
        return "sketching needs the full body: view(simulation, body=full_body)"
    if len(body.mesh.vertices) != len(model.vertices):
        return f"the full body has {len(body.mesh.vertices)} vertices, the reduced one {len(model.vertices)}"
    if body.law != "stvk":
        return f"only bodies of the stvk law can be reduced, this one is {body.law!r}"
    try:
        body.require_anchored()
    except InputError as error:
        return str(error)
    return None
