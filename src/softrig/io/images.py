"""Pictures and animations to files, each replaced in one piece: a reader never sees half of one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from softrig.errors import InputError
from softrig.files import write_bytes

# A threshold for each pixel of a 4×4 tile. It stays in place from frame to frame, where error diffusion
# would crawl, and repeats, which compresses.
_BAYER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16.0 - 15.0 / 32.0
_DITHER_LEVELS = 4.0
_SEEN = 6
"""Pixels of nearly one colour that a palette is fitted to."""
_WHITE = 254
"""Its place in a palette."""


def write_png(path: str | Path, image: np.ndarray) -> None:
    """Write an (h, w, 3) uint8 picture."""
    buffer = io.BytesIO()
    _picture(image, 0).save(buffer, format="PNG", optimize=True)
    write_bytes(path, buffer.getvalue())


def write_gif(path: str | Path, frames: Sequence[np.ndarray], fps: float) -> None:
    """Write an endless animation of (h, w, 3) uint8 frames, at most 50 a second (browsers slow faster ones).

    All frames share one palette, so colours do not flicker. GIF times are whole centiseconds: frames
    differ by one where needed so that the total time is right. Equal neighbours become one longer frame.
    """
    write_bytes(path, _animation(frames, fps, "GIF", 10))


def animated_png(frames: Sequence[np.ndarray], fps: float) -> bytes:
    """An endless animation of (h, w, 3) uint8 frames, at most 50 a second, as a PNG that moves (APNG).

    As in `write_gif`, but in whole milliseconds and smaller; what cannot play it shows the first frame.
    """
    return _animation(frames, fps, "PNG", 1)


def _animation(frames: Sequence[np.ndarray], fps: float, kind: str, tick: int) -> bytes:
    """The content of a file of that kind, whose frames last whole multiples of `tick` milliseconds."""
    if len(frames) == 0:
        raise InputError("animation: no frames")
    if not 0.0 < fps <= 50.0:
        raise InputError(f"animation: {fps} frames a second is not within 0 … 50")
    wrong = [i for i, frame in enumerate(frames) if np.shape(frame) != np.shape(frames[0])]
    if wrong:
        raise InputError("animation: frames differ in size from the first", wrong)
    pictures = [_picture(frame, i) for i, frame in enumerate(frames)]
    palette = _shared_palette(pictures)
    ends = np.round(np.arange(1, len(frames) + 1) * (1e3 / tick / fps)).astype(int)
    durations = (tick * np.diff(ends, prepend=0)).tolist()
    first, *rest = (_with_palette(picture, palette) for picture in pictures)
    buffer = io.BytesIO()
    first.save(buffer, format=kind, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)
    return buffer.getvalue()


def _picture(image: np.ndarray, index: int) -> Image.Image:
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or pixels.size == 0:
        raise InputError(f"picture: {pixels.dtype} of shape {pixels.shape} is not uint8 (h, w, 3)", [index])
    return Image.fromarray(np.ascontiguousarray(pixels))


def _shared_palette(pictures: Sequence[Image.Image]) -> Image.Image:
    """254 colours fitted to a dozen frames spread over the animation, and white; one is left for "unchanged"."""
    chosen = np.unique(np.linspace(0, len(pictures) - 1, 12).round().astype(int))
    samples = np.concatenate([np.asarray(pictures[i])[::2, ::2].reshape(-1, 3) for i in chosen])
    # Colours that fill a picture would leave none for what is small and bright: each counts a few times at most.
    _, inverse, counts = np.unique(samples >> 2, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    among = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    samples = samples[order[among < _SEEN]]
    fitted = Image.fromarray(samples[None]).quantize(_WHITE, method=Image.Quantize.MEDIANCUT, kmeans=2)
    colours = (fitted.getpalette() or [])[: 3 * _WHITE]
    fitted.putpalette([*colours, *[0] * (3 * _WHITE - len(colours)), 255, 255, 255])
    return fitted


def _with_palette(picture: Image.Image, palette: Image.Image) -> Image.Image:
    pixels = np.asarray(picture).astype(np.float64)
    height, width, _ = pixels.shape
    pattern = np.tile(_BAYER, (height // 4 + 1, width // 4 + 1))[:height, :width, None]
    dithered = np.clip(np.rint(pixels + _DITHER_LEVELS * pattern), 0, 255).astype(np.uint8)
    indices = np.array(Image.fromarray(dithered).quantize(palette=palette, dither=Image.Dither.NONE))
    indices[(pixels == 255).all(axis=2)] = _WHITE  # paper stays white, also beside colours that are nearly so
    reduced = Image.fromarray(indices)
    reduced.putpalette(palette.getpalette() or [])
    return reduced
