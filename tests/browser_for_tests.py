"""three.js in headless chromium and the Khronos validator as judges of our GLBs; `make .node/ready` fetches both."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softrig.characters import built_in
from softrig.files import write_bytes
from softrig.io.glb_writer import character_glb

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).parent / "browser"
PACKAGES = ROOT / ".node" / "node_modules"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NODE = shutil.which("node")
PATIENCE = 120.0
"""Seconds that a page may take."""
_KINDS = {".html": "text/html", ".js": "text/javascript"}
_FLAGS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-quic", "--disable-extensions", "--disable-dev-shm-usage"),
)
# Chromium's sandbox refuses root, as which containers run.
_AS_ROOT = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
SOFTWARE_GL = (
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", *_AS_ROOT),
)
"""Flags for a chromium that draws WebGL without a graphics card."""


def skip_module_without(package: str, program: str | None, name: str, loss: str) -> None:
    """Skip the module that is being imported, in one line, if an npm package or a program is not there."""
    if program is None:
        pytest.skip(f"{loss}: {name} is not installed", allow_module_level=True)
    if not (PACKAGES / package).is_dir():
        pytest.skip(f"{loss}: {package} is not there; `make .node/ready` fetches it with npm", allow_module_level=True)


@dataclass
class Task:
    """A GLB to load, and the times (s) at which to look at each clip; a clip None is the rest pose."""

    content: bytes
    clips: list[tuple[str | None, np.ndarray]]
    found: dict[tuple[str | None, int], dict[tuple[int, int], np.ndarray]] = field(default_factory=dict)
    """(clip, frame) → (node, primitive) of the file → (n, 3) positions."""

    def take(self, body: bytes) -> None:
        (length,) = struct.unpack_from("<I", body)
        start = 4 + length
        for block in json.loads(body[4:start]):
            positions = np.frombuffer(body, "<f8", 3 * block["count"], start).reshape(-1, 3)
            start += positions.nbytes
            self.found.setdefault((block["clip"], block["frame"]), {})[block["node"], block["primitive"]] = positions
        assert start == len(body)


class _Desk(ThreadingHTTPServer):
    """Hands out the page, the packages and the tasks, and takes the answers."""

    daemon_threads = True

    def __init__(self, tasks: list[Task]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tasks = tasks
        self.trouble = ""
        self.done = threading.Event()
        self.open = set(range(len(tasks)))

    def answered(self, number: int, body: bytes) -> None:
        self.tasks[number].take(body)
        self.open.discard(number)
        if not self.open:
            self.done.set()

    def failed(self, message: str) -> None:
        self.trouble = self.trouble or message
        self.done.set()


class _Handler(BaseHTTPRequestHandler):
    server: _Desk

    def do_GET(self) -> None:
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "tasks":
            tasks = [
                {
                    "file": f"/files/{number}",
                    "answer": f"/answers/{number}",
                    "clips": [{"clip": clip, "times": np.asarray(times).tolist()} for clip, times in task.clips],
                }
                for number, task in enumerate(self.server.tasks)
            ]
            self._send(json.dumps(tasks).encode(), "application/json")
        elif kind == "files":
            self._send(self.server.tasks[int(rest)].content, "model/gltf-binary")
        elif kind in ("page", "packages"):
            folder = PAGE if kind == "page" else PACKAGES
            path = (folder / rest).resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                self._send(path.read_bytes(), _KINDS.get(path.suffix, "application/octet-stream"))
            else:
                self.send_error(404)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind, _, rest = self.path.lstrip("/").partition("/")
        self._send(b"", "text/plain")
        try:
            if kind == "answers":
                self.server.answered(int(rest), body)
            else:
                self.server.failed(body.decode(errors="replace"))
        except Exception as trouble:
            self.server.failed(f"an answer that cannot be read: {trouble!r}")
            raise

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def three_js_positions(tasks: list[Task], folder: Path) -> None:
    """Fill `found` of all tasks with what three.js shows; `folder` is for the browser's profile."""
    assert CHROMIUM is not None
    desk = _Desk(tasks)
    threading.Thread(target=desk.serve_forever, daemon=True).start()
    flags = [*_FLAGS, *_AS_ROOT, f"--user-data-dir={folder / 'profile'}"]
    log = folder / "chromium.log"
    with log.open("wb") as output:
        browser = subprocess.Popen(
            [CHROMIUM, *flags, f"http://127.0.0.1:{desk.server_port}/page/page.html"],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            finished = desk.done.wait(PATIENCE)
        finally:
            browser.terminate()
            browser.wait(20.0)
            desk.shutdown()
            desk.server_close()
    assert not desk.trouble, f"the page failed: {desk.trouble}"
    assert finished, f"no answer within {PATIENCE:g} s; chromium said: {log.read_text(errors='replace')[-2000:]}"


def validator_report(content: bytes, folder: Path) -> dict[str, Any]:
    """What the Khronos validator says of a GLB: `issues` with `numErrors` and `messages`."""
    assert NODE is not None
    path = folder / "judged.glb"
    path.write_bytes(content)
    command = [NODE, str(PAGE / "validate.cjs"), str(PACKAGES / "gltf-validator"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# The bear's wires are compressed into morph targets, which takes half a minute at 60 frames a second.
_FPS = {"bear": 4.0}


def built_in_glb(name: str, base: Path) -> bytes:
    """The GLB of a built-in character, made once for all workers of a test run; `base`: pytest's folder of this one."""
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = folder / f"built-in-{name}.glb"
    if not path.exists():
        write_bytes(path, character_glb(built_in(name), fps=_FPS.get(name, 60.0)))
    return path.read_bytes()
