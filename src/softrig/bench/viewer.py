"""`softrig bench viewer`: pictures a second in software GL, bytes a frame, and that a stalled page costs nothing."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from softrig.bench.record import Record, Row, model_sizes
from softrig.characters import built_in
from softrig.console import Update
from softrig.machine import this_machine
from softrig.pipeline.build import build
from softrig.project import Project
from softrig.viewer.protocol import decode
from softrig.viewer.view import Viewer, view

QUICK = Project().changed(mesh={"tets": 3000}, basis={"modes": 30, "rehearsal": 0.0}, poses={"count": 2})
"""The surface, which is what this is about, is the same as of the finest model."""
PICTURE = (960, 720)
WARM_UP = 4.0
"""Seconds in which programs are compiled, occlusion is found and the page settles on how much it draws."""
WINDOWS = (5, 2.0)
"""How often, and for how many seconds, something is counted."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


def live_viewer(update: Update) -> Record:
    """The gorilla, walking, as a page sees it."""
    model = build(built_in("gorilla"), QUICK)
    update(1, 4)
    with view(model, clip="walk") as viewer:
        with attentive(viewer) as sizes:
            time.sleep(WARM_UP)
            alone = step_rate(viewer)
            update(2, 4)
            with stalled(viewer):
                beside = step_rate(viewer)
        update(3, 4)
        vertices = len(model.embedding_nodes)
        rows = [
            Row(f"a frame of {vertices:,} vertices", "kB", float(np.median(sizes)) / 1e3),
            Row("inner steps a second, one page looks", "1/s", float(np.median(alone)), others={"asked for": 180.0}),
            Row(
                "the same beside pages that stall",
                "1/s",
                float(np.median(beside)),
                others={"asked for": 180.0},
            ),
            Row(
                "ratio of the two",
                "×",
                float(np.median(beside) / np.median(alone)),
                goal=0.95,
                at_least=True,
            ),
        ]
        missing = without_browser()
        if missing is None:
            found = pictures(viewer)
            what = f"pictures a second, {PICTURE[0]} × {PICTURE[1]}, software GL"
            most, median = float(np.max(found)), float(np.median(found))
            rows.insert(0, Row(what, "1/s", most, median, goal=8.0, at_least=True))
    update(4, 4)
    remark = "Stalled: one page that never says it has drawn, one that does not even read. "
    remark += "Browser, server and simulation share this machine." if missing is None else f"No pictures: {missing}."
    counts = {"gorilla": model_sizes(model)}
    return Record("viewer", f"The live viewer: gorilla, {vertices:,} vertices", this_machine(), rows, remark, counts)


def step_rate(viewer: Viewer) -> list[float]:
    """Inner steps a second of the simulation, counted several times."""
    return _counted(lambda: viewer.runner.stage.steps, time.sleep)


def _counted(count: Callable[[], float], sleep: Callable[[float], Any]) -> list[float]:
    """How much `count` grows a second, in each of the windows."""
    rates = []
    windows, seconds = WINDOWS
    for _ in range(windows):
        before, start = count(), time.perf_counter()
        sleep(seconds)
        rates.append((count() - before) / (time.perf_counter() - start))
    return rates


# Pages without a browser


@contextmanager
def attentive(viewer: Viewer) -> Iterator[list[int]]:
    """A page that takes every frame and says so; the sizes of its frames, in bytes, as they come."""
    sizes: list[int] = []
    with _line(viewer) as line:
        watcher = threading.Thread(target=_watch, args=(line, sizes), daemon=True)
        watcher.start()
        yield sizes
    watcher.join()


def _watch(line: ClientConnection, sizes: list[int]) -> None:
    with suppress(ConnectionClosed):
        for message in line:
            if isinstance(message, str):
                continue
            header, _ = decode(message)
            if header["is"] == "frame":
                sizes.append(len(message))
                line.send(json.dumps({"do": "drawn", "number": header["number"]}))


@contextmanager
def stalled(viewer: Viewer) -> Iterator[None]:
    """A page that reads but never says that it has drawn anything, and one that reads no more after a moment."""
    with _line(viewer) as silent, _line(viewer, max_queue=1):
        reader = threading.Thread(target=_read, args=(silent,), daemon=True)
        reader.start()
        yield
    reader.join()


def _read(line: ClientConnection) -> None:
    with suppress(ConnectionClosed):
        for _ in line:
            pass


def _line(viewer: Viewer, **options: Any) -> ClientConnection:
    address = viewer.url.replace("http://", "ws://").replace("/?", "/live?")
    # A page that does not read answers no good-bye either.
    return connect(address, max_size=None, compression=None, close_timeout=1.0, **options)


# A page in a browser


def without_browser() -> str | None:
    """What is missing for a real page; None: nothing."""
    if _chromium() is None:
        return "chromium is not installed"
    return None if find_spec("playwright") else "playwright is not installed"


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def pictures(viewer: Viewer) -> list[float]:
    """Pictures a second that a headless chromium without a graphics card draws of frames that move."""
    from playwright.sync_api import sync_playwright

    # Chromium's sandbox refuses root, as which containers run.
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=_chromium(), args=[*FLAGS, *as_root])
        page = browser.new_page(viewport={"width": PICTURE[0], "height": PICTURE[1]})
        page.goto(viewer.url)
        canvas = page.locator("#picture").bounding_box() or {"width": PICTURE[0], "height": PICTURE[1]}
        # So much wider and higher that the picture itself is as large as promised.
        page.set_viewport_size(
            {
                "width": round(2 * PICTURE[0] - canvas["width"]),
                "height": round(2 * PICTURE[1] - canvas["height"]),
            }
        )
        page.wait_for_timeout(1e3 * WARM_UP)
        found = _counted(
            lambda: float(page.evaluate("softrig.frames")), lambda seconds: page.wait_for_timeout(1e3 * seconds)
        )
        browser.close()
    return found
