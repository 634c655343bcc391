"""The pages that look: what each has been sent, what it has drawn, and what waits for it. Latest wins.

A page has one place a kind of message, so that one that is slow or asleep costs nothing and is told the newest when it
wakes. Everything here lives on the server's event loop; the runner's thread only leaves messages.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from softrig.viewer.runner import Runner

IN_FLIGHT = 2
"""Frames that a page has been sent and has not drawn yet."""
ORDER = ("hello", "geometry", "coat", "layer", "state")
"""What goes first; frames come last."""
MOST_TOLD = 20
RATE, BURST = 400.0, 800.0
"""Messages a second that a page may send, and how many at once."""
MOST_PAGES = 16


class Socket(Protocol):
    """What is needed of a websocket."""

    async def send_text(self, data: str) -> None:
        """Send text."""

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes."""


class Page:
    """One page."""

    def __init__(self, number: int, socket: Socket) -> None:
        self.number = number
        self._socket = socket
        self._waiting: dict[str, bytes | str] = {}
        self._told: deque[str] = deque(maxlen=MOST_TOLD)
        self._frame: tuple[bytes, int] | None = None
        self.in_flight: deque[int] = deque()
        self.knows_geometry = False
        self._wake = asyncio.Event()
        self._allowance, self._counted = BURST, time.monotonic()
        self._warned = 0.0

    @property
    def wants_frame(self) -> bool:
        """Whether another frame could be sent."""
        return len(self.in_flight) < IN_FLIGHT and self.knows_geometry

    def put(self, kind: str, message: bytes | str | None) -> None:
        """Leave a message in the place of its kind."""
        if kind == "geometry":
            # Frames of another geometry are of no use any more.
            self._frame = None
            self.knows_geometry = True
        if message is None:
            self._waiting.pop(kind, None)
        else:
            self._waiting[kind] = message
            self._wake.set()

    def put_frame(self, message: bytes, number: int) -> None:
        """Leave the latest frame."""
        if self.knows_geometry:
            self._frame = (message, number)
            self._wake.set()

    def tell(self, level: str, text: str) -> None:
        """Leave a line for people."""
        self._told.append(json.dumps({"is": "told", "level": level, "text": text[:2000]}))
        self._wake.set()

    def drawn(self, number: int) -> None:
        """The page has drawn a frame, and with it all before it."""
        while self.in_flight and self.in_flight[0] <= number:
            self.in_flight.popleft()
        self._wake.set()

    async def send_for_ever(self) -> None:
        """Send what waits, whenever something does."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (message := self._next()) is not None:
                if isinstance(message, str):
                    await self._socket.send_text(message)
                else:
                    await self._socket.send_bytes(message)

    def _next(self) -> bytes | str | None:
        for kind in ORDER:
            if kind in self._waiting:
                return self._waiting.pop(kind)
        if self._told:
            return self._told.popleft()
        if self._frame is not None and len(self.in_flight) < IN_FLIGHT:
            message, number = self._frame
            self._frame = None
            self.in_flight.append(number)
            return message
        return None

    def may_speak(self) -> bool:
        """Whether the page keeps to the rate at which it may send; says so once a second if not."""
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + RATE * (now - self._counted))
        self._counted = now
        if self._allowance >= 1.0:
            self._allowance -= 1.0
            return True
        if now - self._warned > 1.0:
            self._warned = now
            self.tell("warning", "Too many commands at once: some were dropped.")
        return False


class Pages:
    """All pages: the runner's audience."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._pages: dict[int, Page] = {}
        self._numbers = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._pages)

    # On the event loop

    def enter(self, socket: Socket) -> Page | None:
        """A new page; None: there are too many."""
        self._loop = asyncio.get_running_loop()
        if len(self._pages) >= MOST_PAGES:
            return None
        self._numbers += 1
        page = Page(self._numbers, socket)
        self._pages = {**self._pages, page.number: page}
        self._runner.welcome(page.number)
        return page

    def leave(self, page: Page) -> None:
        """A page is gone."""
        self._pages = {number: each for number, each in self._pages.items() if number != page.number}
        self._runner.left(page.number)

    def heard(self, page: Page, text: str) -> None:
        """What a page says."""
        try:
            message = json.loads(text, parse_constant=_refused)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            page.tell("error", "That was no command: an object in JSON is.")
            return
        if message.get("do") == "drawn":
            number = message.get("number")
            if isinstance(number, int) and not isinstance(number, bool):
                page.drawn(number)
        elif not self._runner.command(message, page.number):
            page.tell("warning", "Too many commands are waiting: this one was dropped.")

    # From the runner's thread

    def is_there(self) -> bool:
        """Whether there is a page."""
        return bool(self._pages)

    def wants_frame(self) -> bool:
        """Whether a page could take a frame now."""
        return any(page.wants_frame for page in self._pages.values())

    def frame(self, message: bytes, number: int) -> None:
        """The latest frame."""
        self._each(None, lambda page: page.put_frame(message, number))

    def send(self, kind: str, message: bytes | str | None, page: int | None = None) -> None:
        """The latest message of its kind."""
        self._each(page, lambda each: each.put(kind, message))

    def tell(self, level: str, text: str, page: int | None = None) -> None:
        """A line for people."""
        self._each(page, lambda each: each.tell(level, text))

    def _each(self, number: int | None, action: Callable[[Page], None]) -> None:
        """Do something with every page, or with one, on the event loop."""

        def do() -> None:
            for page in self._pages.values():
                if number is None or page.number == number:
                    action(page)

        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: there are no pages any more
                loop.call_soon_threadsafe(do)


def _refused(name: str) -> float:
    raise ValueError(name)
