"""Settings on their way into a subject: at once what can be, the rest prepared in another thread while it moves on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace

from softrig.viewer.subjects import Adopt, Subject
from softrig.viewer.tuning import Tuning

log = logging.getLogger(__name__)


class Retuning:
    """Has a subject move by its settings as they are now: once a frame, however often they changed.

    `changing` is called before something changes, `changed` after it. One preparation is under way at a time; what is
    wanted when it is done comes next.
    """

    def __init__(
        self,
        subject: Subject,
        tuning: Tuning,
        maker: Executor,
        *,
        changing: Callable[[], None],
        changed: Callable[[], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self._subject, self._tuning, self._maker = subject, tuning, maker
        self._changing, self._changed, self._tell = changing, changed, tell
        self._taken_up = self._prepared = tuning.now
        self._making: Future[Adopt | None] | None = None

    @property
    def under_way(self) -> bool:
        """Whether something is being prepared, or waits for it."""
        return self._making is not None or self._tuning.now is not self._prepared

    def step(self) -> None:
        """Before a frame."""
        self._adopt()
        wanted = self._tuning.now
        if wanted is not self._taken_up:
            self._taken_up = wanted
            self._changing()
            self._subject.tune(wanted)
            self._changed()
        if self._making is None and wanted is not self._prepared:
            self._prepared = wanted
            self._making = self._maker.submit(self._subject.prepare, wanted)

    def _adopt(self) -> None:
        making = self._making
        if making is None or not making.done():
            return
        self._making = None
        try:
            adopt = making.result()
        except Exception as error:
            log.exception("settings could not be prepared")
            self._tell("error", f"That setting cannot be had: {error}")
            own = self._subject.settings()
            # As it is; not to be tried again.
            self._prepared = self._tuning.now = replace(self._tuning.now, modes=own.modes, stiffness=own.stiffness)
            return
        if adopt is not None:
            self._changing()
            adopt(self._tuning.now)
            self._changed()
