"""A visit to a viewer without a browser: its requests, and a page that watches."""

from __future__ import annotations

import http.client
import json
import time

from websockets.sync.client import connect

from softrig.viewer.protocol import decode


def token(viewer) -> str:
    return viewer.url.partition("token=")[2]


def get(viewer, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str):
    """(status, headers, content) of a request that says exactly what is given."""
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=20)
    try:
        line.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        if body is not None:
            line.putheader("Content-Length", str(len(body)))
        line.endheaders(body)
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        line.close()


def live(viewer, secret: str | None = None, **options):
    return connect(
        f"ws://127.0.0.1:{viewer.port}/live?token={token(viewer) if secret is None else secret}",
        max_size=None,
        compression=None,
        **options,
    )


class Watcher:
    """A page: sends commands, acknowledges frames if it `draws`, keeps what it is told."""

    def __init__(self, socket, draws: bool = True) -> None:
        self.socket, self.draws = socket, draws
        self.frames: list[tuple[dict, dict]] = []
        self.texts: list[dict] = []
        self.binaries: list[dict] = []

    def send(self, **command) -> None:
        self.socket.send(json.dumps(command))

    def watch(self, seconds: float = 20.0, until=lambda _: False) -> Watcher:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until(self):
            try:
                message = self.socket.recv(timeout=max(end - time.monotonic(), 0.01))
            except TimeoutError:
                break
            if isinstance(message, str):
                self.texts.append(json.loads(message))
                continue
            header, arrays = decode(message)
            if header["is"] == "frame":
                self.frames.append((header, arrays))
                if self.draws:
                    self.send(do="drawn", number=header["number"])
            else:
                self.binaries.append(header)
        return self

    def told(self) -> list[str]:
        return [text["text"] for text in self.texts if text["is"] == "told"]

    def last(self, kind: str) -> dict:
        return [text for text in self.texts if text["is"] == kind][-1]


def _waited(condition, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
