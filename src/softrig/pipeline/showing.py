"""Plain skinning beside soft flesh: a sheet of telling moments of a clip, or an animation of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import cos, isfinite, radians, sin, sqrt
from pathlib import Path

import numpy as np

from softrig.errors import InputError, notice
from softrig.files import require_writable
from softrig.io.images import write_gif, write_png
from softrig.models.pose_space import PoseSpaceModel
from softrig.pipeline.baking import clip_called, model_simulation
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
from softrig.rig.bones import carrying_joint
from softrig.rig.clip import Clip
from softrig.simulation import Bake
from softrig.words import millimetres

PIXELS, MOVING_PIXELS = 193_000, 212_000
"""Of each picture of a sheet, and of each half of an animation."""
NARROWEST, WIDEST = 0.7, 1.6
"""Width over height that a picture may have, to fit what it shows."""
MARGIN = 1.08
MOMENTS = 4
MOVING_FPS = 15.0
MOST_FPS = 50.0
"""What browsers play without slowing it down."""
SIMULATED_FPS = 60.0
"""Poses a second of the simulation, about: a clip sampled as coarsely as it is drawn loses its quick parts."""
LONGEST, MOST_PLACES = 20.0, 5e7
"""Seconds of a clip that are shown, and places of vertices in all of its frames: a minute of a large surface would fill
the memory."""
MOST_FRAMES = 500
"""Of an animation."""
ROUNDED = 0.01
"""Seconds by which a span may go beyond the clip: `info` tells lengths rounded to that."""
LEAD = 5.0
"""Seconds that are simulated before those that are shown: then flesh has forgotten how it began."""
ENDINGS = (".png", ".gif")
TURN, BESIDE, BEHIND = 26.6, 75.0, 153.4
"""Degrees to the character's left from which it is seen: its front and one side, mostly that side, or its back."""
TURNS = (TURN, -TURN, BESIDE, -BESIDE, BEHIND, -BEHIND)
FAR_MORE = 1.5
"""A character is shown from behind, or from its other side, where so many times as much of the motion is seen there."""
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


def whole_camera(places: np.ndarray, ground: Ground, turn: float = TURN) -> tuple[Camera, float]:
    """A camera that sees everything at `places` (n, 3), metres, and all of its shadow; and width over height of a
    picture that fits that."""
    seen = np.concatenate([places, LIGHT.shadow(places, ground.height)])
    looks = towards(turn)
    right, upward, _ = Camera.framing(seen, looks).axes()
    shape = float(np.clip(np.ptp(seen @ right) / max(np.ptp(seen @ upward), 1e-9), NARROWEST, WIDEST))
    return Camera.framing(seen, looks, aspect=shape, margin=MARGIN, field_of_view=0.5), shape


def outermost(frames: np.ndarray) -> np.ndarray:
    """(k, 3) of the places in `frames` (f, n, 3) those that lie farthest out, frame by frame, in 26 directions."""
    around = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)), dtype=np.float32)
    ways = around[around.any(axis=1)].T
    return np.concatenate([places[np.unique(np.argmax(places @ ways, axis=0))] for places in frames]).astype(np.float64)


def telling_turn(triangles: np.ndarray, plain: np.ndarray, soft: np.ndarray) -> float:
    """From where most of the flesh's motion from places `plain` to `soft` (n̄, 3) is seen: before the character and to
    its left, unless it is far more elsewhere."""
    corners = plain[triangles].astype(np.float64)
    moved = (soft - plain)[triangles].mean(axis=1).astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # twice the area long
    seen = {}
    for turn in TURNS:
        way = np.array(towards(turn)) / np.linalg.norm(towards(turn))
        across = np.sum(moved**2, axis=1) - (moved @ way) ** 2  # what goes towards the camera is hardly seen
        seen[turn] = float(across @ np.maximum(normals @ way, 0.0))
    best = max(seen, key=lambda turn: seen[turn])
    return best if seen[best] > FAR_MORE * seen[TURN] else TURN


@dataclass(frozen=True)
class Told:
    """What a picture shows."""

    most: float
    """How far the flesh is from plain skinning at most, metres."""
    joint: str
    """Which joint carries the flesh that is; "" where none does."""
    turn: float
    """Degrees to the character's left from which it is seen."""


def show_clip(
    model: PoseSpaceModel,
    clip: str,
    path: str | Path,
    *,
    span: tuple[float, float] | None = None,
    moments: int = MOMENTS,
    fps: float = MOVING_FPS,
    turn: float | None = None,
    loop: bool | None = None,
    stage: Stage = untold,
) -> Told:
    """Simulate a clip and write plain skinning beside soft flesh: telling moments of it (.png) or an animation (.gif).

    `span`: from when to when, seconds, at most 20; else all of it, or the first 20 seconds of a longer clip (less of
    very large surfaces). `moments`: columns of a sheet. `fps`: frames a second of an animation, about, up to 50; at
    most 500 in all. `turn`: degrees to the character's left from which it is seen; None: from where most is to be seen.
    `loop`: whether the motion closes; None: where the clip loops. Returns how far the flesh goes at
    `most`, metres, which `joint` carries what does, and the `turn`.
    """
    path = Path(path)
    check_picture(path)
    moves = path.suffix.lower() == ".gif"
    if not 1.0 <= fps <= MOST_FPS:
        raise InputError(f"{fps:g} frames a second is not within 1 … {MOST_FPS:g}")
    if moments < 1:
        raise InputError(f"a sheet of {moments} moments")
    if turn is not None and not isfinite(turn):
        raise InputError(f"a camera cannot stand {turn} degrees to the left")
    rate = fps * max(1, round(SIMULATED_FPS / fps)) if moves else SIMULATED_FPS
    whole = clip_called(model, clip)
    if loop is not None:
        whole = replace(whole, looping=loop)
    if loop and span is not None:
        raise InputError("a part of a clip does not loop: leave out one of the two")
    part = shown_part(whole, span, len(model.embedding_nodes))
    if moves and (part.end - part.start) * fps > MOST_FRAMES:
        raise InputError(
            f"{part.end - part.start:.0f} s at {fps:g} frames a second are more than {MOST_FRAMES} pictures; take fewer"
            " a second, or a shorter span"
        )
    with stage(f"Simulating '{clip}'") as update:
        bake = model_simulation(model).bake(part.clip, rate, loop=part.clip.looping, plain=True, progress=update)
    with stage("Drawing") as update:
        pictures = BesidePlain(model, from_time(bake, part.start - part.begin, part.begin), turn=turn)
        if moves:
            write_gif(path, *pictures.animation(fps, update))
        else:
            write_png(path, pictures.sheet(moments))
    frame, vertex = np.unravel_index(pictures.offsets.argmax(), pictures.offsets.shape)
    return Told(float(pictures.offsets[frame, vertex]), carrying_joint(model.rig, int(vertex)), pictures.turn)


@dataclass(frozen=True)
class Shown:
    """What of a clip is simulated and shown; seconds of the whole clip."""

    clip: Clip
    """From `begin` to `end`."""
    begin: float
    start: float
    """From when it is shown: what comes before moves the flesh as well."""
    end: float


def shown_part(clip: Clip, span: tuple[float, float] | None, vertices: int) -> Shown:
    """All of a clip, or of a surface of so many vertices as much of it as the memory should bear; or the `span`."""
    most = min(LONGEST, MOST_PLACES / (SIMULATED_FPS * max(vertices, 1)))
    if span is None:
        if clip.duration <= most:
            return Shown(clip, 0.0, 0.0, clip.duration)
        notice(f"clip '{clip.name}' lasts {clip.duration:.3g} s: its first {most:.3g} are shown, or what `span` says")
        span = (0.0, most)
    start, end = span
    if end <= start:
        raise InputError(f"from {start:g} to {end:g} s: the end must come after the start")
    if clip.duration < end <= clip.duration + ROUNDED:
        end = clip.duration
    if not 0.0 <= start < end <= clip.duration:
        raise InputError(
            f"from {start:g} to {end:g} s is no part of clip '{clip.name}', which lasts {clip.duration:.4g} s"
        )
    if end - start > most + 1e-9:
        raise InputError(f"from {start:g} to {end:g} s is too long to be shown at once: at most {most:.3g} s")
    begin = max(0.0, start - LEAD)
    return Shown(replace(clip, looping=False).trimmed(begin, end), begin, start, end)


def check_picture(path: Path) -> None:
    """Refuse a place to which no picture can be written, before the work begins."""
    if path.suffix.lower() not in ENDINGS:
        what = path.suffix or "a file without an ending"
        raise InputError(f"{path}: cannot write {what}; there are {', '.join(ENDINGS)}")
    require_writable(path)


def from_time(bake: Bake, start: float, later: float = 0.0) -> Bake:
    """The frames of a bake from `start` seconds on, at least one; their times that much `later`."""
    first = min(int(np.searchsorted(bake.times, start - 1e-9)), len(bake) - 1)
    assert bake.plain is not None
    return replace(
        bake,
        times=bake.times[first:] + later,
        poses=bake.poses[first:],
        vertices=bake.vertices[first:],
        plain=bake.plain[first:],
        coordinates=bake.coordinates[first:],
    )


class BesidePlain:
    """Pictures of a baked clip under one camera; the bake has plain skinning, too.

    `turn`: degrees to the character's left from which it is seen; None: from where most is to be seen.
    """

    def __init__(self, model: PoseSpaceModel, bake: Bake, *, turn: float | None = TURN) -> None:
        assert bake.plain is not None
        self._bake, self._plain = bake, bake.plain
        self._triangles = model.triangles
        self._skin = shown_skin(model.colours)
        self.offsets = np.linalg.norm(bake.vertices - bake.plain, axis=2)
        """(f, n̄) metres from plain skinning."""
        self._most = scale_end(float(self.offsets.max()))
        frame = int(self.offsets.max(axis=1).argmax())
        self.turn = telling_turn(model.triangles, bake.plain[frame], bake.vertices[frame]) if turn is None else turn
        rest = model.rig.positions(model.rig.parameters.rest)
        self._ground = Ground.under([Mesh(rest, model.triangles)], (0.0, 1.0, 0.0))
        places = np.concatenate([outermost(side) for side in (bake.plain, bake.vertices)])
        self.camera, shape = whole_camera(places, self._ground, self.turn)
        self.size, self.moving_size = (
            (2 * round(0.5 * sqrt(pixels * shape)), 2 * round(0.5 * sqrt(pixels / shape)))
            for pixels in (PIXELS, MOVING_PIXELS)
        )
        """Pixels (width, height) of each picture of a sheet, and of each half of an animation."""

    def sheet(self, moments: int = MOMENTS) -> np.ndarray:
        """(h, w, 3): rows plain, soft, offset; columns the moments of largest offset, apart from each other."""
        chosen = telling_frames(self.offsets.max(axis=1), moments)
        pictures, captions = [], []
        for i in chosen:
            pictures.append(self._shot(self._plain[i], self._skin, self.size))
            captions.append(f"{self._bake.times[i]:.2f} s, plain")
        for i in chosen:
            pictures.append(self._shot(self._bake.vertices[i], self._skin, self.size))
            captions.append("soft")
        for i in chosen:
            colours = sequential(self.offsets[i], low=0.0, high=self._most)
            pictures.append(self._shot(self._bake.vertices[i], colours, self.size))
            captions.append(f"up to {millimetres(float(self.offsets[i].max()))}")
        # One scale for all of the last row, and nothing of the body behind it.
        bar = colour_bar(sequential, 0.0, 1e3 * self._most, "mm from plain skinning", width=340)
        return beneath(strip(pictures, captions, columns=len(chosen)), bar)

    def animation(self, fps: float = MOVING_FPS, update: Update | None = None) -> tuple[list[np.ndarray], float]:
        """(h, w, 3) frames of plain and soft side by side, and how many a second they are: nearly `fps`, so that
        they come from frames of the bake at equal distances, and so that a loop ends where it begins."""
        count, baked = len(self._bake), self._bake.report.fps
        if self._bake.report.cycles:
            wanted = max(1, min(round(count / baked * fps), int(count / baked * MOST_FPS), count))
            chosen, rate = np.arange(wanted) * count // wanted, wanted * baked / count
        else:
            every = max(1, round(baked / fps))
            chosen, rate = np.arange(0, count, every), baked / every

        def both(i: int) -> np.ndarray:
            sides = [self._shot(side[i], self._skin, self.moving_size) for side in (self._plain, self._bake.vertices)]
            # The time on the white foot, where no hand or shadow comes.
            told = f"{self._bake.times[i]:.2f} s"
            return label(strip(sides, ["plain skinning", "soft"], size=22), told, corner="bottom right", size=16)

        frames = []
        with ThreadPoolExecutor(worker_count(None)) as pool:
            for picture in pool.map(both, chosen.tolist()):
                frames.append(picture)
                if update is not None:
                    update(len(frames), len(chosen))
        return frames, rate

    def _shot(self, places: np.ndarray, colours: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        mesh = Mesh(places.astype(np.float64), self._triangles, colours)
        return render([mesh], self.camera, size, light=LIGHT, ground=self._ground)


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
