"""Plain skinning beside soft flesh: a sheet of telling moments of a clip, or an animation of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import cos, radians, sin
from pathlib import Path

import numpy as np

from softrig.errors import InputError, notice
from softrig.files import require_writable
from softrig.io.images import write_gif, write_png
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import chosen_clips, model_simulation
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.telling import Stage, Update, untold
from softrig.render import (
    Camera,
    Ground,
    Light,
    Mesh,
    beneath,
    colour_bar,
    label,
    lightened,
    render,
    scale_end,
    sequential,
    strip,
)
from softrig.simulation import Bake
from softrig.words import millimetres

SIZE, MOVING_SIZE = (420, 460), (440, 482)
"""Pixels of each picture of a sheet, and of each half of an animation: of the same shape, as they share a camera."""
MARGIN = 1.08
MOMENTS = 4
MOVING_FPS = 15.0
MOST_FPS = 50.0
"""What browsers play without slowing it down."""
SIMULATED_FPS = 60.0
"""Poses a second of the simulation, about: a clip sampled as coarsely as it is drawn loses its quick parts."""
LONGEST = 20.0
"""Seconds that are shown of a clip unless one says which; a minute of a large surface would fill the memory."""
ENDINGS = (".png", ".gif")
TURN = 26.6
"""Degrees to the character's left from which it is seen: its front and one side."""
RISE = 0.125
"""How much the camera stands above, of its distance along the ground."""
LIGHT = Light((0.05, 1.0, 0.6), radius=0.1, strength=1.15)
"""From high above and before it: what the camera sees is lit, and the shadow stays near the feet."""
SKIN = (0.75, 0.66, 0.6)
"""Of a character without colours."""
LIGHTENED = 0.55
"""Power of the skin's luminance: a gorilla's fur is nearly black, and flesh that moves under it would not be seen."""


def shown_skin(colours: np.ndarray | None) -> np.ndarray:
    """(3,) or (n̄, 3) sRGB in pictures of a character with `colours` (n̄, ≥ 3) or without."""
    return np.array(SKIN) if colours is None else lightened(np.asarray(colours)[:, :3], LIGHTENED)


def towards(turn: float) -> tuple[float, float, float]:
    """From the character to the camera, which stands `turn` degrees to its left; 0: before it."""
    return sin(radians(turn)), RISE, cos(radians(turn))


def whole_camera(places: np.ndarray, ground: Ground, turn: float = TURN) -> Camera:
    """A camera that sees everything at `places` (n, 3), metres, and all of its shadow."""
    seen = np.concatenate([places, LIGHT.shadow(places, ground.height)])
    return Camera.framing(seen, towards(turn), aspect=SIZE[0] / SIZE[1], margin=MARGIN, field_of_view=0.5)


def show_clip(
    model: PoseSpaceModel,
    clip: str,
    path: str | Path,
    *,
    span: tuple[float, float] | None = None,
    moments: int = MOMENTS,
    fps: float = MOVING_FPS,
    turn: float = TURN,
    stage: Stage = untold,
) -> float:
    """Simulate a clip and write plain skinning beside soft flesh: telling moments of it (.png) or an animation (.gif).

    `span`: from when to when, seconds; else all of it, or the first `LONGEST` of a longer one. `moments`: columns of a
    sheet. `fps`: of an animation, about; up to 50. `turn`: degrees to the character's left from which it is seen.
    Returns how far the flesh is from plain skinning at most, metres.
    """
    path = Path(path)
    check_picture(path)
    if not 0.0 < fps <= MOST_FPS:
        raise InputError(f"{fps:g} frames a second is not within 0 … {MOST_FPS:g}")
    if moments < 1:
        raise InputError(f"a sheet of {moments} moments")
    shown, *more = chosen_clips(model, [clip])
    if more:
        raise InputError(f"one clip at a time, not {len(more) + 1}")
    if span is not None and not 0.0 <= span[0] < span[1]:
        raise InputError(f"from {span[0]:g} to {span[1]:g} s is no part of a clip")
    loops = shown.looping and span is None
    if span is None and shown.duration > LONGEST:
        notice(f"clip '{clip}' lasts {shown.duration:.0f} s: its first {LONGEST:g} are shown, or what `span` says")
        span, loops = (0.0, LONGEST), False
    if span is not None:
        # What comes before moves the flesh as well; what comes after does not.
        shown = replace(shown, looping=False).trimmed(0.0, span[1])
    with stage(f"Simulating '{clip}'") as update:
        frames = fps * max(1, round(SIMULATED_FPS / fps))
        bake = model_simulation(model).bake(shown, frames, loop=loops, plain=True, progress=update)
    with stage("Drawing") as update:
        pictures = BesidePlain(model, bake if span is None else from_time(bake, span[0]), turn=turn)
        if path.suffix.lower() == ".gif":
            moving, rate = pictures.animation(fps, update)
            write_gif(path, moving, rate)
        else:
            write_png(path, pictures.sheet(moments))
    return float(pictures.offsets.max())


def check_picture(path: Path) -> None:
    """Refuse a place to which no picture can be written, before the work begins."""
    if path.suffix.lower() not in ENDINGS:
        what = path.suffix or "a file without an ending"
        raise InputError(f"{path}: cannot write {what}; there are {', '.join(ENDINGS)}")
    require_writable(path)


def from_time(bake: Bake, start: float) -> Bake:
    """The frames of a bake from `start` seconds on."""
    chosen = bake.times >= start - 1e-9
    assert bake.plain is not None
    return replace(
        bake,
        times=bake.times[chosen],
        poses=bake.poses[chosen],
        vertices=bake.vertices[chosen],
        plain=bake.plain[chosen],
        coordinates=bake.coordinates[chosen],
    )


class BesidePlain:
    """Pictures of a baked clip under one camera; the bake has plain skinning, too."""

    def __init__(self, model: PoseSpaceModel, bake: Bake, *, turn: float = TURN) -> None:
        assert bake.plain is not None
        self._bake, self._plain = bake, bake.plain
        self._triangles = model.triangles
        self._skin = shown_skin(model.colours)
        self.offsets = np.linalg.norm(bake.vertices - bake.plain, axis=2)
        """(f, n̄) metres from plain skinning."""
        self._most = scale_end(float(self.offsets.max()))
        rest = model.rig.positions(model.rig.parameters.rest)
        self._ground = Ground.under([Mesh(rest, model.triangles)], (0.0, 1.0, 0.0))
        every = (slice(None, None, max(1, len(bake) // 40)), slice(None, None, 7))
        sides = [side[every].reshape(-1, 3).astype(np.float64) for side in (bake.plain, bake.vertices)]
        self._camera = whole_camera(np.concatenate(sides), self._ground, turn)

    def sheet(self, moments: int = MOMENTS) -> np.ndarray:
        """(h, w, 3): rows plain, soft, offset; columns the moments of largest offset, apart from each other."""
        chosen = telling_frames(self.offsets.max(axis=1), moments)
        pictures, captions = [], []
        for i in chosen:
            pictures.append(self._shot(self._plain[i], self._skin, SIZE))
            captions.append(f"{self._bake.times[i]:.2f} s, plain")
        for i in chosen:
            pictures.append(self._shot(self._bake.vertices[i], self._skin, SIZE))
            captions.append("soft")
        for i in chosen:
            colours = sequential(self.offsets[i], low=0.0, high=self._most)
            pictures.append(self._shot(self._bake.vertices[i], colours, SIZE))
            captions.append(f"up to {millimetres(float(self.offsets[i].max()))}")
        # One scale for all of the last row, and nothing of the body behind it.
        bar = colour_bar(sequential, 0.0, 1e3 * self._most, "mm")
        return beneath(strip(pictures, captions, columns=len(chosen)), bar)

    def animation(self, fps: float = MOVING_FPS, update: Update | None = None) -> tuple[list[np.ndarray], float]:
        """(h, w, 3) frames of plain and soft side by side, and how many a second they are: nearly `fps`, so that
        they come from frames of the bake at equal distances."""
        baked = self._bake.report.fps
        every = max(1, round(baked / fps))
        chosen = range(0, len(self._bake), every)
        sides = [side[i] for i in chosen for side in (self._plain, self._bake.vertices)]
        with ThreadPoolExecutor(worker_count(None)) as pool:
            pictures = []
            for picture in pool.map(lambda places: self._shot(places, self._skin, MOVING_SIZE), sides):
                pictures.append(picture)
                if update is not None:
                    update(len(pictures), len(sides))
        frames = []
        for i, plain, soft in zip(chosen, pictures[::2], pictures[1::2], strict=True):
            both = strip([plain, soft], ["plain skinning", "soft"], size=22)
            # On the white foot, where no hand or shadow comes.
            frames.append(label(both, f"{self._bake.times[i]:.2f} s", corner="bottom right", size=16))
        return frames, baked / every

    def _shot(self, places: np.ndarray, colours: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        mesh = Mesh(places.astype(np.float64), self._triangles, colours)
        return render([mesh], self._camera, size, light=LIGHT, ground=self._ground)


def telling_frames(sizes: np.ndarray, count: int) -> list[int]:
    """`count` frames where `sizes` (f,) is large, no two nearer than a part of the whole, in order of time."""
    apart = max(1, len(sizes) // (2 * count))
    left = sizes.astype(np.float64).copy()
    chosen: list[int] = []
    while len(chosen) < min(count, len(sizes)) and left.max() > -np.inf:
        best = int(left.argmax())
        chosen.append(best)
        left[max(0, best - apart) : best + apart + 1] = -np.inf
    return sorted(chosen)
