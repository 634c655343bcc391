"""`view`: open the live viewer from a script, a notebook or the command line."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import Any

from softrig.errors import InputError
from softrig.models.full import FullBody
from softrig.viewer.body import UPRIGHT
from softrig.viewer.guard import ANYWHERE, LOCAL, new_token
from softrig.viewer.opening import Found, found, opened
from softrig.viewer.runner import Runner
from softrig.viewer.server import Server, listening
from softrig.words import none_called


class Viewer:
    """A viewer that runs: `url` opens it in a browser, `close` ends it. Also a context manager."""

    def __init__(self, runner: Runner, server: Server, token: str) -> None:
        self._runner, self._server, self._token = runner, server, token
        self._closed = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address, with the token that opens it."""
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "") else "::1" if self.host == "::" else self.host
        shown = f"[{shown}]" if ":" in shown else shown
        return f"http://{shown}:{self._server.port}/?token={self._token}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    @property
    def runner(self) -> Runner:
        """The simulation's thread."""
        return self._runner

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOCAL

    @property
    def host(self) -> str:
        """What it listens on."""
        return self._server.host.strip("[]")

    def show(self) -> None:
        """Open it in this machine's browser."""
        webbrowser.open(self.url)

    def close(self) -> None:
        """End it; waits until nothing of it runs. Closing twice does nothing."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                self._server.close()
                self._runner.close()

    def wait(self) -> None:
        """Wait until it is closed; Ctrl+C comes through."""
        while not self._closed.wait(0.5):
            pass

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Viewer(closed)" if self._closed.is_set() else f"Viewer({self.url})"

    def _repr_html_(self) -> str:
        if self._closed.is_set():
            return "softrig viewer, closed"
        return f'softrig viewer: <a href="{self.url}" target="_blank" rel="noopener">open in a tab</a>'


class Prepared:
    """A viewer that could be opened: what it shows was read, its clip is there, and its port is held.

    So everything that people get wrong is told before anything is compiled, which may take a minute.
    """

    def __init__(
        self,
        thing: Any,
        *,
        project: str | Path | None = None,
        body: FullBody | None = None,
        up: str = "z",
        clip: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        if up not in UPRIGHT:
            raise InputError(f"up is y or z, not {up!r}")
        self._project = None if project is None else Path(project)
        self._thing = found(thing, self._project) if isinstance(thing, str | Path) else thing
        if isinstance(self._thing, Found) and clip is not None and clip not in self._thing.clips:
            raise InputError(none_called("clip", clip, self._thing.clips))
        self._body, self._up, self._clip, self._host = body, up, clip, host
        self._socket = listening(host, port)

    def open(self) -> Viewer:
        """Open it."""
        server: Server | None = None
        runner: Runner | None = None
        try:
            shown = opened(self._thing, project=self._project, body=self._body, up=self._up)
            token = new_token()
            runner = Runner(shown, clip=self._clip)
            server = Server(runner, token=token, host=self._host, socket=self._socket)
            runner.port = server.port
            runner.start()
            server.start()
        except BaseException:
            if server is not None:
                server.close()
            self._socket.close()
            if runner is not None:
                runner.close()
            raise
        return Viewer(runner, server, token)


def view(
    thing: Any,
    *,
    project: str | Path | None = None,
    body: FullBody | None = None,
    up: str = "z",
    clip: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = False,
) -> Viewer:
    """Open the live viewer and go on: `viewer.url` is its address, `viewer.close()` ends it.

    `thing`: a model file (.softrig), a character file (.glb, .vrm), the name of a built-in character or "flower", a
    `Character`, a model, a `Simulation`, a `ReducedSimulation` or a `SubstructuredSimulation`; while it is looked at, a
    simulation belongs to the viewer.
    `project`: the project file to save into; default: the one beside the character. `body`, for a plain body: the full
    one, so that sketched pulls can become a new basis; `up`: its axis that points up. `host`: other than 127.0.0.1 lets
    other machines in, if they have the address with its token. `port` 0: any that is free. `browser`: open one.
    """
    viewer = Prepared(thing, project=project, body=body, up=up, clip=clip, host=host, port=port).open()
    if browser:
        viewer.show()
    return viewer


def reach(viewer: Viewer) -> str | None:
    """What a host other than this machine opens, in words; None: nothing."""
    if viewer.is_local:
        return None
    host = "every network interface of this machine" if viewer.host in ANYWHERE else viewer.host
    return (
        f"Port {viewer.port} is open on {host}: everybody who has the address with its token can play, tune, build, "
        "save into the project file and upload models. The connection is not encrypted."
    )
