"""The server: the page and its files, the websocket, downloads by id, bounded uploads."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from softrig.errors import InputError, SoftrigError
from softrig.viewer.guard import Guard
from softrig.viewer.opening import UPLOADS, opened
from softrig.viewer.pages import Page, Pages
from softrig.viewer.runner import Runner
from softrig.viewer.takes import Take

LARGEST_MESSAGE = 64 * 1024
"""Bytes of what a page may send at once."""
LARGEST_UPLOAD = 200 * 1024 * 1024
"""Bytes."""
STALLED = 30.0
"""Seconds without a byte after which an upload is given up."""
TAKE = ".npz"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
"""What the page is made of."""


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of each file of the page, read once: no name in a request ever becomes a path."""
    found: dict[str, tuple[bytes, str]] = {}
    for entry in resources.files("softrig.viewer").joinpath("page").iterdir():
        kind = TYPES.get(Path(entry.name).suffix)
        if kind is not None and entry.is_file():
            found[entry.name] = (entry.read_bytes(), kind)
    return found


class Site:
    """What is answered to those who may come in."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.pages = Pages(runner)
        self._files = page_files()
        self._uploads = Path(tempfile.mkdtemp(prefix="softrig-uploads-"))
        self._count = 0
        self._uploading = asyncio.Lock()

    def app(self, *, token: str, port: int, host: str) -> ASGIApp:
        """The whole as an ASGI application, behind its guard."""
        routes = [
            Route("/", self._index, methods=["GET"]),
            Route("/page/{name}", self._page_file, methods=["GET"]),
            Route("/files/{job}/{name}", self._download, methods=["GET"]),
            Route("/upload", self._upload, methods=["POST"]),
            WebSocketRoute("/live", self._live),
        ]
        return Guard(Starlette(routes=routes), token=token, port=port, host=host)

    def close(self) -> None:
        """Remove what was uploaded."""
        shutil.rmtree(self._uploads, ignore_errors=True)

    async def _index(self, request: Request) -> Response:
        return self._static("index.html")

    async def _page_file(self, request: Request) -> Response:
        return self._static(request.path_params["name"])

    def _static(self, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", 404)
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    async def _download(self, request: Request) -> Response:
        try:
            path = self._runner.stage.studio.file(request.path_params["job"])
            about = path.stat()  # a file that is forgotten in this very moment is not there
        except (InputError, OSError) as error:
            return PlainTextResponse(f"{error if isinstance(error, InputError) else 'It is gone.'}\n", 404)
        return FileResponse(path, filename=path.name, media_type="application/octet-stream", stat_result=about)

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        page = self.pages.enter(socket)
        if page is None:
            await socket.close(1013, "too many pages look already")
            return
        sender = asyncio.create_task(page.send_for_ever())
        # A page that cannot be sent to any more is gone, also where it never says so.
        sender.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await self._listen(socket, page)
        finally:
            sender.cancel()
            self.pages.leave(page)
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError, OSError):
                await sender

    async def _listen(self, socket: WebSocket, page: Page) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if page.may_speak():
                self.pages.heard(page, message.get("text") or "")

    # Uploads

    async def _upload(self, request: Request) -> Response:
        name = plain_name(request.query_params.get("name", ""))
        if Path(name).suffix.lower() not in (*UPLOADS, TAKE):
            what = f"{name or 'This file'} is neither a character nor a model nor a take"
            return PlainTextResponse(f"{what}: {', '.join(UPLOADS)} and {TAKE} can be opened here.\n", 400)
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and len(announced) < 19 and int(announced) > LARGEST_UPLOAD:
            return _too_large()
        if self._uploading.locked():
            return PlainTextResponse("Another file is being opened: wait for it.\n", 409)
        async with self._uploading:
            self._count += 1
            folder = self._uploads / str(self._count)
            folder.mkdir()
            kept = False
            try:
                answer, kept = await self._taken(request, folder / name)
            except (ClientDisconnect, TimeoutError):
                answer = PlainTextResponse("The file did not arrive.\n", 400)
            finally:
                # One upload is on the stage at a time; of the others nothing is needed any more.
                old = [other for other in self._uploads.iterdir() if other != folder] if kept else [folder]
                for each in old:
                    shutil.rmtree(each, ignore_errors=True)
            return answer

    async def _taken(self, request: Request, path: Path) -> tuple[Response, bool]:
        refusal = await self._received(request, path)
        return (refusal, False) if refusal is not None else await run_in_threadpool(self._open, path)

    async def _received(self, request: Request, path: Path) -> Response | None:
        """Write what arrives to `path`; an answer: it was too much. A sender that stalls is not waited for."""
        size, chunks = 0, request.stream()
        with path.open("wb") as file:
            while True:
                async with asyncio.timeout(STALLED):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return None
                size += len(chunk)
                if size > LARGEST_UPLOAD:
                    return _too_large()
                await run_in_threadpool(file.write, chunk)

    def _open(self, path: Path) -> tuple[Response, bool]:
        """Put a file on the stage, or a take among the others; the answer, and whether the file is still needed."""
        try:
            if path.suffix.lower() == TAKE:
                self._runner.add_take(Take.load(path))
                return PlainTextResponse("added\n"), False
            shown = replace(opened(path), uploaded=True)
        except (SoftrigError, OSError, MemoryError) as error:
            return PlainTextResponse(f"{str(error).replace(str(path.parent), '').lstrip('/')}\n", 400), False
        self._runner.open(shown)
        return PlainTextResponse("opened\n"), True


def plain_name(name: str) -> str:
    """A file's name without anything that means something to a file system."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    plain = "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in last).strip(". ")
    return plain[-100:].lstrip(". ")


def _too_large() -> Response:
    return PlainTextResponse(f"Files of more than {LARGEST_UPLOAD >> 20} MB are not taken.\n", 413)


class Server:
    """The site on a port, in a thread of its own."""

    def __init__(self, runner: Runner, *, token: str, host: str, socket: socket.socket) -> None:
        self._socket = socket
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._site: Site | None = None
        self._runner, self._token = runner, token
        self._server: uvicorn.Server | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="softrig server", daemon=True)

    @property
    def pages(self) -> Pages | None:
        """The pages that look."""
        return None if self._site is None else self._site.pages

    def start(self) -> None:
        """Begin to answer; returns when it does."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise InputError(f"the viewer's server could not start: {self._failure}")

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()
        if self._site is not None:
            self._site.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # reported by whoever started it
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._site = Site(self._runner)
        self._runner.audience = self._site.pages
        config = uvicorn.Config(
            self._site.app(token=self._token, port=self.port, host=self.host),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
            limit_concurrency=64,
            h11_max_incomplete_event_size=LARGEST_MESSAGE,
        )
        self._server = uvicorn.Server(config)
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.005)
        self._started.set()
        await serving


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; an `InputError` says what is in the way."""
    try:
        family = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host.strip("[]"), port), family=family, backlog=64)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}, port {port}: {reason}") from error
