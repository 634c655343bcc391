"""Who looks, as the simulation's thread sees them."""

from __future__ import annotations

from typing import Protocol


class Audience(Protocol):
    """The pages, as the runner sees them; every call comes from its thread and returns at once."""

    def is_there(self) -> bool:
        """Whether anybody looks."""

    def wants_frame(self) -> bool:
        """Whether anybody could take another frame now."""

    def frame(self, message: bytes, number: int) -> None:
        """The latest frame, in place of all before it."""

    def send(self, kind: str, message: bytes | str | None, page: int | None = None) -> None:
        """The latest message of its kind to all pages or one; None: there is none of that kind any more."""

    def tell(self, level: str, text: str, page: int | None = None) -> None:
        """A line for people."""


class Nobody:
    """An audience for tests and scripts: looks, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.sent: dict[str, bytes | str | None] = {}
        self.latest: bytes | None = None

    def is_there(self) -> bool:
        """Always."""
        return True

    def wants_frame(self) -> bool:
        """Always."""
        return True

    def frame(self, message: bytes, number: int) -> None:
        """Remember it."""
        self.latest = message

    def send(self, kind: str, message: bytes | str | None, page: int | None = None) -> None:
        """Remember it."""
        self.sent[kind] = message

    def tell(self, level: str, text: str, page: int | None = None) -> None:
        """Remember it."""
        self.told.append((level, text))
