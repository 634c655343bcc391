"""Pictures put together: captions, labels, strips of frames and colour bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from softrig.errors import InputError

INK = (38, 42, 48)
PAPER = (255, 255, 255)


def label(
    image: np.ndarray,
    text: str,
    *,
    corner: str = "top left",
    size: int = 18,
    ink: Sequence[int] = INK,
) -> np.ndarray:
    """A copy of the (h, w, 3) picture with `text` in a corner ("top left", "bottom right", …)."""
    vertical, _, horizontal = corner.partition(" ")
    if vertical not in ("top", "bottom") or horizontal not in ("left", "right"):
        raise InputError(f"label: {corner!r} is not a corner such as 'top left'")
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=size)
    margin = round(0.8 * size)
    x = margin if horizontal == "left" else canvas.width - margin
    y = margin if vertical == "top" else canvas.height - margin
    anchor = ("l" if horizontal == "left" else "r") + ("a" if vertical == "top" else "d")
    if "\n" in text:
        box = draw.multiline_textbbox((0, 0), text, font=font)
        y = y if vertical == "top" else y - int(box[3])
        x = x if horizontal == "left" else x - int(box[2])
        draw.multiline_text((x, y), text, font=font, fill=tuple(ink))
    else:
        draw.text((x, y), text, font=font, fill=tuple(ink), anchor=anchor)
    return np.asarray(canvas)


def strip(
    frames: Sequence[np.ndarray],
    captions: Sequence[str] = (),
    *,
    columns: int | None = None,
    gap: int = 8,
    size: int = 18,
) -> np.ndarray:
    """Frames of one size side by side on white, each with its caption beneath; `columns` wraps rows."""
    if len(frames) == 0:
        raise InputError("strip: no frames")
    if captions and len(captions) != len(frames):
        raise InputError(f"strip: {len(captions)} captions for {len(frames)} frames")
    wrong = [i for i, frame in enumerate(frames) if frame.shape != frames[0].shape]
    if wrong:
        raise InputError("strip: frames differ in size from the first", wrong)
    height, width = frames[0].shape[:2]
    columns = min(columns or len(frames), len(frames))
    rows = -(-len(frames) // columns)
    foot = round(1.9 * size) if captions else 0
    canvas = Image.new("RGB", (columns * (width + gap) - gap, rows * (height + foot + gap) - gap), PAPER)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=size)
    for i, frame in enumerate(frames):
        x, y = i % columns * (width + gap), i // columns * (height + foot + gap)
        canvas.paste(Image.fromarray(frame), (x, y))
        if captions:
            middle = (x + width / 2, y + height + foot / 2)
            draw.text(middle, captions[i], font=font, fill=INK, anchor="mm")
    return np.asarray(canvas)


def beneath(image: np.ndarray, foot: np.ndarray, *, gap: int = 12) -> np.ndarray:
    """The (h, w, 3) picture with a smaller one, such as a colour bar, in the middle below it, on white."""
    if foot.shape[1] > image.shape[1]:
        raise InputError(f"beneath: {foot.shape[1]} pixels are wider than the picture's {image.shape[1]}")
    height, width = image.shape[:2]
    canvas = np.full((height + foot.shape[0] + 2 * gap, width, 3), PAPER, np.uint8)
    canvas[:height] = image
    left = (width - foot.shape[1]) // 2
    canvas[height + gap : -gap, left : left + foot.shape[1]] = foot
    return canvas


def colour_bar(
    colour_map: Callable[[np.ndarray], np.ndarray],
    low: float,
    high: float,
    unit: str = "",
    *,
    width: int = 240,
    size: int = 16,
) -> np.ndarray:
    """A horizontal bar of `sequential` or `diverging` on white, its two ends and the unit beneath."""
    bar = colour_map(np.linspace(low, high, width))
    canvas = Image.new("RGB", (width, round(2.6 * size)), PAPER)
    pixels = np.rint(255 * np.broadcast_to(bar, (size, width, 3))).astype(np.uint8)
    canvas.paste(Image.fromarray(pixels), (0, 0))
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=size)
    draw.text((0, round(1.3 * size)), f"{low:g}", font=font, fill=INK, anchor="la")
    draw.text((width, round(1.3 * size)), f"{high:g} {unit}".rstrip(), font=font, fill=INK, anchor="ra")
    return np.asarray(canvas)
