"""Panels put together on white: a heading above each, a line of numbers beneath."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from softrig.errors import InputError

INK = (38, 42, 48)
GREY = (96, 102, 112)
PAPER = (255, 255, 255)
GAP, MARGIN = 18, 20
HEADING, NOTE = 19, 17
"""Sizes of the letters, pixels."""

_SPELT = str.maketrans({"×": "x", "−": "-", "–": "-", "²": "^2", "µ": "u", "±": "+-", "≤": "<=", "→": ">"})
"""The font that comes with Pillow has no such letters."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture (h, w, 3) with a heading and a note; both may have several lines."""

    image: np.ndarray
    heading: str = ""
    note: str = ""
    ink: Sequence[int] = INK
    """Of the heading."""


def sheet(rows: Sequence[Sequence[Panel]]) -> np.ndarray:
    """(h, w, 3) rows of panels, each row centred."""
    if not rows or not all(rows):
        raise InputError("a sheet needs rows of panels")
    sizes = [_row_size(row) for row in rows]
    width = max(wide for wide, *_ in sizes) + 2 * MARGIN
    height = sum(sum(parts) for _, *parts in sizes) + GAP * (len(rows) - 1) + 2 * MARGIN
    canvas = Image.new("RGB", (width, height), PAPER)
    y = MARGIN
    for row, (wide, above, tall, below) in zip(rows, sizes, strict=True):
        x = (width - wide) // 2
        for panel in row:
            _draw(canvas, panel, x, y, above, tall)
            x += panel.image.shape[1] + GAP
        y += above + tall + below + GAP
    return np.asarray(canvas)


def swatches(colours: Mapping[str, Sequence[int]]) -> Panel:
    """What colours (0 … 255 each) mean: a square of each with its name, in a row."""
    letters, side = font(NOTE), 16
    starts = np.cumsum([0, *(side + 8 + round(letters.getlength(spelt(name))) + 26 for name in colours)])
    canvas = Image.new("RGB", (int(starts[-1]) - 26, side + 8), PAPER)
    draw = ImageDraw.Draw(canvas)
    for x, (name, colour) in zip(starts, colours.items(), strict=False):
        draw.rectangle([int(x), 4, int(x) + side, 4 + side], fill=tuple(colour))
        draw.text((int(x) + side + 8, 4 + side / 2), spelt(name), font=letters, fill=INK, anchor="lm")
    return Panel(np.asarray(canvas))


def _row_size(row: Sequence[Panel]) -> tuple[int, int, int, int]:
    wide = sum(panel.image.shape[1] for panel in row) + GAP * (len(row) - 1)
    above = max(_text_height(panel.heading, HEADING) for panel in row)
    below = max(_text_height(panel.note, NOTE) for panel in row)
    return wide, above, max(panel.image.shape[0] for panel in row), below


def _text_height(text: str, size: int) -> int:
    return round(1.32 * size) * len(text.splitlines()) + (8 if text else 0)


def _draw(canvas: Image.Image, panel: Panel, x: int, y: int, above: int, tall: int) -> None:
    draw = ImageDraw.Draw(canvas)
    height, width = panel.image.shape[:2]
    middle = x + width / 2
    for texts, size, ink, top in (
        (panel.heading, HEADING, tuple(panel.ink), y),
        (panel.note, NOTE, GREY, y + above + tall + 8),
    ):
        for line, text in enumerate(texts.splitlines()):
            place = (middle, top + (line + 0.5) * round(1.32 * size))
            draw.text(place, spelt(text), font=font(size), fill=ink, anchor="mm")
    canvas.paste(Image.fromarray(np.ascontiguousarray(panel.image)), (x, y + above + (tall - height) // 2))


def spelt(text: str) -> str:
    """`text` in letters that the font has."""
    return text.translate(_SPELT)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font of all figures."""
    return ImageFont.load_default(size=size)
