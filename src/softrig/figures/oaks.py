"""SUB11 Figure 1, and a clip: the oak in the wind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from softrig.bench.record import Row
from softrig.bench.substructuring import DAMPING, OAK_MODES, PAPER, STEP, model_sizes
from softrig.bodies.oak import oak
from softrig.console import Update
from softrig.figures.figure import Figure, made, made_of
from softrig.figures.garden import drawn, gusts, seen, taken, white_floor
from softrig.figures.sheet import Panel, sheet
from softrig.io.images import animated_png
from softrig.models.substructured import SubstructuredModel
from softrig.models.substructured_simulation import SubstructuredSimulation
from softrig.pipeline.parallel import worker_count
from softrig.pipeline.substructuring import substructure
from softrig.render import Camera

HEIGHT = 4.6
"""Of the oak, metres."""
CLOSE = 0.55
"""Metres: half of what is seen from nearer."""
TOWARDS = (0.3, -1.0, 0.10)
"""From the oak to the camera."""


@dataclass(frozen=True)
class Weather:
    """Gusts that repeat."""

    speed: float
    """In the mean, m/s."""
    period: float
    """Seconds."""


FIGURE_WIND = Weather(6.0, 3.0)
CLIP_WIND = Weather(5.5, 3.2)
CLIP_FRAMES = 48


@cache
def oak_model(leaves: int | None = None) -> SubstructuredModel:
    """The oak with the paper's modes; made once a run."""
    return substructure(oak() if leaves is None else oak(leaves=leaves), modes=OAK_MODES)


class WindyOak:
    """An oak, step by step in a wind that each domain feels where it stands at rest."""

    def __init__(self, model: SubstructuredModel, weather: Weather) -> None:
        self.simulation = SubstructuredSimulation(model, STEP, damping=DAMPING)
        self.rest = self.simulation.positions()
        self.weather = weather
        self._origins = self.simulation.frames()[0]

    def blow(self, seconds: float) -> None:
        """Go on for so long."""
        for _ in range(round(seconds / STEP)):
            time = self.simulation.time + STEP
            self.simulation.wind = gusts(self._origins, time, self.weather.speed, self.weather.period)
            self.simulation.step()


def oak_in_the_wind(update: Update) -> Figure:
    """SUB11 Fig. 1: an oak of 1,435 domains, at rest and in the wind."""
    model = oak_model()
    windy = WindyOak(model, FIGURE_WIND)
    best, farthest = windy.rest, 0.0
    moments = 30
    for i in range(moments + moments // 2):
        windy.blow(FIGURE_WIND.period / moments)
        places = windy.simulation.positions()
        far = float(np.linalg.norm(places - windy.rest, axis=1).mean())
        if i >= moments // 2 and far > farthest:
            best, farthest = places, far
        update(i + 1, 2 * moments)
    apart = np.linalg.norm(best - windy.rest, axis=1)
    rows = [
        Row("domains", "", float(len(model.domains)), others={PAPER: 1435.0}),
        Row("modes of all domains", "", float(model.size), others={PAPER: 11972.0}),
        Row("vertices of all domains", "", float(len(model.drawn)), others={PAPER: 262363.0}),
        Row("from rest, farthest vertex", "m", float(apart.max())),
        Row("from rest, mean of all vertices", "m", float(apart.mean())),
    ]
    size, near = (430, 490), (400, 490)
    camera = seen([windy.rest, best], TOWARDS, size, margin=1.02)
    detail = close_up(best, near)
    ground = white_floor(HEIGHT)
    panels = [
        Panel(taken(drawn(model, windy.rest), camera, size, ground=ground, finer=2), "at rest"),
        Panel(taken(drawn(model, best), camera, size, ground=ground, finer=2), "in the wind, from the left"),
        Panel(taken(drawn(model, best), detail, near, finer=2), "its lee side, nearer"),
    ]
    return made(
        "sub11-1",
        "SUB11 Figure 1: an oak in the wind",
        sheet([panels]),
        rows,
        f"An oak of {len(model.domains):,} domains, 41 of wood with 20 modes and 1,394 leaves with 8, in gusts of "
        f"{FIGURE_WIND.speed:g} m/s in the mean that travel through the crown. Every branch and every leaf bends and "
        "turns by itself, and carries what grows on it. Only six shapes are stored: a trunk, two boughs, a branch, a "
        "twig and a leaf.",
        alt=f"An oak at rest, bent by the wind, and its crown from nearer: leaves go up to {rows[3].told()}",
        value="softrig",
        sizes={"oak": model_sizes(model)},
    )


def close_up(places: np.ndarray, size: tuple[int, int]) -> Camera:
    """A camera at the lee side of the crown."""
    lee = places[places[:, 0] > np.quantile(places[:, 0], 0.98)]
    middle = np.median(lee, axis=0) - np.array([CLOSE, 0.0, 0.0])
    around = middle + CLOSE * np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    return seen([around], TOWARDS, size, margin=1.0)


def oak_clip(update: Update) -> Figure:
    """Clip: an oak in the wind."""
    model = oak_model()
    windy = WindyOak(model, CLIP_WIND)
    windy.blow(2.0 * CLIP_WIND.period)
    update(1, 4)
    first, frames = windy.simulation.positions(), []
    for _ in range(CLIP_FRAMES):
        frames.append(windy.simulation.positions())
        windy.blow(CLIP_WIND.period / CLIP_FRAMES)
    seam = float(np.linalg.norm(windy.simulation.positions() - first, axis=1).mean())
    update(2, 4)
    size = (300, 320)
    camera = seen([windy.rest, *frames[::8]], TOWARDS, size, margin=1.02)
    ground = white_floor(HEIGHT)
    with ThreadPoolExecutor(worker_count(None)) as pool:
        pictures = list(
            pool.map(lambda places: taken(drawn(model, places), camera, size, ground=ground, finer=2), frames)
        )
    update(4, 4)
    apart = np.stack([np.linalg.norm(places - windy.rest, axis=1) for places in frames])
    rows = [
        Row("from rest, farthest vertex of all frames", "m", float(apart.max())),
        Row("from rest, mean of all vertices and frames", "m", float(apart.mean())),
        Row("between the last frame's end and the first, mean of all vertices", "mm", 1e3 * seam),
    ]
    return made_of(
        "clip-oak",
        "Clip: an oak in the wind",
        animated_png(pictures, CLIP_FRAMES / CLIP_WIND.period),
        rows,
        f"{CLIP_WIND.period:g} s in {CLIP_FRAMES} frames, in real time: {len(model.domains):,} domains with "
        f"{model.size:,} modes in gusts of {CLIP_WIND.speed:g} m/s in the mean, which travel from left to right. The "
        "gusts repeat, and after two rounds so does the oak, nearly.",
        alt=f"An oak sways in the wind: its leaves go up to {rows[0].told()}",
        value="softrig",
        sizes={"oak": model_sizes(model)},
    )
