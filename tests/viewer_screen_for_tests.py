"""A page of the viewer in a real browser, and what can be done with it."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from browser_for_tests import CHROMIUM, SOFTWARE_GL
from softrig.viewer.view import Viewer

SIZE = {"width": 900, "height": 600}
PATIENCE = 60.0
"""Seconds that anything may take on a busy machine."""


@dataclass
class Screen:
    """A page that looks at a viewer, and what its console complained of."""

    page: Any
    viewer: Viewer
    errors: list[str] = field(default_factory=list)

    def wait(self, condition: str, given: Any = None) -> None:
        """Until the page finds it true."""
        # Playwright's own wait_for_function evaluates strings in the page, which the page's policy rightly forbids.
        self.until(lambda: self.page.evaluate(condition, given))

    def until(self, condition: Callable[[], bool]) -> None:
        """Until it is true here."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it took too long"
            self.page.wait_for_timeout(30)

    def look(self, frames: int = 4) -> None:
        """Until some frames were drawn."""
        self.wait("frames => window.softrig && softrig.state && softrig.frames >= frames", frames)

    def positions(self) -> np.ndarray:
        """(n, 3) as drawn last."""
        return np.array(self.page.evaluate("Array.from(softrig.lastFrame().positions)")).reshape(-1, 3)

    def still(self) -> np.ndarray:
        """(n, 3) once nothing moves any more: a third of a second changes nothing that could be seen."""
        last = self.positions()
        end = time.monotonic() + PATIENCE
        while True:
            begun = self.page.evaluate("softrig.lastFrame().time")
            self.wait("begun => softrig.lastFrame().time > begun + 0.3", begun)
            now = self.positions()
            if np.abs(now - last).max() < 2e-4:
                return now
            assert time.monotonic() < end, "it does not come to rest"
            last = now

    def open(self, section: str) -> Any:
        """A section of the panel, opened."""
        content = self.page.locator(f"#section-{section}")
        if not content.is_visible():
            self.page.locator(f"[aria-controls=section-{section}]").click()
        return content

    def choose(self, clip: str | None) -> None:
        """A clip by its tile in the panel."""
        self.open("play").get_by_role("radio").filter(has_text=clip or "Rest pose").click()
        self.wait("clip => softrig.state.clip === clip", clip)

    def play(self, on: bool) -> None:
        """Press play or pause, if that is needed."""
        if self.page.evaluate("softrig.state.playing") != on:
            self.page.locator("#transport button.primary").click()
            self.wait("on => softrig.state.playing === on", on)

    def tool(self, name: str) -> None:
        """A tool of the rail."""
        self.page.locator("#tools").get_by_role("radio").filter(has_text=name).click()

    def slide(self, key: str, *presses: str) -> None:
        """Keys on a slider of the open section."""
        handle = self.page.locator(f"#panel [data-key='{key}'] input")
        for press in presses:
            handle.press(press)

    def in_sight(self, share: float) -> int:
        """A vertex at about that share of its length, along x, that a mouse would pick: amid those in sight."""
        rest = self.viewer.runner.stage.subject.geometry().rest
        low, high = rest[:, 0].min(), rest[:, 0].max()
        ring = np.argsort(np.abs(rest[:, 0] - low - share * (high - low)), kind="stable")[:32]
        seen = self.page.evaluate(
            """ring => ring.filter(v => softrig.pick(...softrig.project(v))?.vertex === v)
                .sort((v, w) => softrig.project(v)[1] - softrig.project(w)[1])""",
            ring.tolist(),
        )
        assert seen, "nothing of it is in sight"
        return int(seen[len(seen) // 2])

    def pixels(self) -> np.ndarray:
        """(h, w, 3) what is drawn, 0 … 255, highest row first."""
        width, height, text = self.page.evaluate(
            """() => {
                const { width, height, data } = softrig.renderer.pixels();
                return [width, height, btoa(Array.from(data, byte => String.fromCharCode(byte)).join(""))];
            }"""
        )
        return np.frombuffer(b64decode(text), np.uint8).reshape(height, width, 4)[::-1, :, :3].astype(np.float64)

    def drop(self, path: Path) -> None:
        """Let a file fall onto the picture, as from a file manager."""
        self.page.evaluate(
            """([name, text]) => {
                const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0)), data = new DataTransfer();
                data.items.add(new File([bytes], name));
                const target = document.getElementById("picture"), options = { dataTransfer: data, bubbles: true, cancelable: true };
                for (const kind of ["dragenter", "dragover", "drop"]) target.dispatchEvent(new DragEvent(kind, options));
            }""",  # noqa: E501
            [path.name, b64encode(path.read_bytes()).decode()],
        )

    def place(self, vertex: int) -> tuple[float, float]:
        """Where a vertex is on the page, pixels."""
        x, y = self.page.evaluate("v => softrig.project(v)", vertex)
        return x, y


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that draws without a graphics card."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        opened = player.chromium.launch(executable_path=CHROMIUM, args=list(SOFTWARE_GL))
        yield opened
        opened.close()


@contextmanager
def screen_of(browser: Any, viewer: Viewer, **options: Any) -> Iterator[Screen]:
    """A page that looks at a viewer, in a context of its own; its console is listened to."""
    context = browser.new_context(**{"viewport": SIZE, "color_scheme": "dark", **options})
    screen = Screen(context.new_page(), viewer)
    screen.page.on("console", lambda said: said.type == "error" and screen.errors.append(said.text))
    screen.page.on("pageerror", lambda error: screen.errors.append(str(error)))
    screen.page.goto(viewer.url)
    screen.look()
    yield screen
    context.close()
