"""StVK05 Fig. 10: a basis from sketched pulls, each solved by the full body."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from softrig.bases.sketch import Pull, SketchPad, separated_pulls, sketched_shapes
from softrig.bases.snapshots import mass_distance_selection
from softrig.bench.paper import MODELS, PAPER, stand_in
from softrig.bench.record import Record, Row, body_sizes
from softrig.console import Update
from softrig.errors import Notice
from softrig.machine import Timing, this_machine
from softrig.models.full import FullBody


@dataclass(frozen=True)
class Sketch:
    """What the paper's user drew, and how far ours is pulled."""

    loads: int
    shapes: int
    minutes: float
    """Of all static solves."""
    reach: float
    """How far the hardest pull would move the linear model, over the body's diagonal."""
    few: int
    """Loads solved when there is little time."""
    separation: float
    """Between the shapes kept, over the largest one's mass-norm."""


SKETCHES = {"spoon": Sketch(353, 45, 45.0, 0.3, 16, 0.05), "bridge": Sketch(326, 142, 144.0, 0.04, 8, 0.02)}
DRAGS = 8
"""Times the mouse is put down."""


def figure_10(update: Update) -> Record:
    """Some of the loads, evenly chosen from the whole sketch."""
    return _figure(update, whole=False)


def figure_10_whole(update: Update) -> Record:
    """As many loads as the paper has."""
    return _figure(update, whole=True)


def _figure(update: Update, *, whole: bool) -> Record:
    rows: list[Row] = []
    sizes = {}
    counts = {name: sketch.loads if whole else sketch.few for name, sketch in SKETCHES.items()}
    total, before = sum(counts.values()), 0
    for name, sketch in SKETCHES.items():
        _, _, body = stand_in(MODELS[name])
        pulls = drawn(body, counts[name], sketch.reach)
        sizes[name] = body_sizes(body)
        shapes, each = solved(body, pulls, lambda done, _, before=before: update(before + done, total))  # type: ignore[misc]
        before += counts[name]
        norms = np.sqrt(np.einsum("ik,ik->k", shapes, body.mass @ shapes))
        kept = mass_distance_selection(body, shapes, sketch.separation * norms.max(initial=0.0))
        paper = 60.0 * sketch.minutes / sketch.loads
        rows.append(Row(f"{name}: static solve of a load", "s", each.mean, each.median, None, {PAPER: paper}, each.p99))
        rows.append(Row(f"{name}: loads solved", "", len(pulls), others={PAPER: sketch.loads}))
        rows.append(Row(f"{name}: shapes kept", "", len(kept), others={PAPER: sketch.shapes}))
        if whole:
            minutes = each.calls * each.mean / 60.0
            rows.append(Row(f"{name}: all static solves", "min", minutes, others={PAPER: sketch.minutes}))
    remark = (
        "The sketch is scripted: pulls at several places that grow, each solved by the full StVK body from the shape "
        "before. A load: the mean of all, as the paper's total over its count."
    )
    if not whole:
        remark += " So few loads are farther apart and harder each; with `--long` they are as many as the paper's."
    return Record("stvk05-fig-10", "StVK05 Figure 10: a basis from sketches", this_machine(), rows, remark, sizes)


@dataclass(frozen=True)
class SolveTiming(Timing):
    """Seconds of the solves, and their mean."""

    mean: float


def solved(body: FullBody, pulls: list[Pull], update: Update) -> tuple[np.ndarray, SolveTiming]:
    """(3·free, m) the shapes, and the seconds of each solve."""
    moments = [time.perf_counter()]

    def tell(done: int, total: int) -> None:
        moments.append(time.perf_counter())
        update(done, total)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # a pull without an equilibrium is left out
        shapes = sketched_shapes(body, pulls, progress=tell)
    taken = np.diff(moments)
    least, median, p99 = float(taken.min()), float(np.median(taken)), float(np.quantile(taken, 0.99))
    return shapes, SolveTiming(least, median, p99, len(taken), float(taken.mean()))


def drawn(body: FullBody, count: int, reach: float) -> list[Pull]:
    """`count` pulls as of a mouse: at several places, each dragged ever further, and kept apart."""
    vertices, free = body.mesh.vertices, np.flatnonzero(body.free)
    far = np.linalg.norm(vertices[free] - vertices[body.fixed].mean(axis=0), axis=1)
    diagonal = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    pad = SketchPad(body)
    choice = np.random.default_rng(5)
    pulls: list[Pull] = []
    for drag in range(DRAGS):
        # From where it moves most towards the anchors, up and down, a little aslant.
        at = free[np.argsort(far)[round((0.999 - 0.05 * drag) * (len(far) - 1))]]
        place = free[np.argsort(np.linalg.norm(vertices[free] - vertices[at], axis=1))[:12]]
        direction = np.array([*choice.uniform(-0.3, 0.3, 2), 1.0 if drag % 2 else -1.0])
        forces = np.tile(direction / len(place), (len(place), 1))
        hardest = reach * diagonal / float(np.linalg.norm(pad.pull(place, forces), axis=1).max())
        steps = count // DRAGS + (drag < count % DRAGS)
        pulls += [Pull(place, forces * (hardest * (k + 1) / steps)) for k in range(steps)]
    return separated_pulls(body, pulls, 0.0)
