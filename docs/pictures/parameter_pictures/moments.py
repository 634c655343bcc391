"""The pictures that most settings have: the same moment of a clip with different values, or curves along the clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import softrig as sr
from parameter_pictures.look import Panel, chart, lengths, row
from parameter_pictures.picture import Picture
from parameter_pictures.studio import CLIP, Studio
from softrig.render import Series
from softrig.simulation import Bake

OFF = "mm and more off plain skinning"
NAMES = ("low", "middle", "high", "highest")
"""Of the numbers of a caption, by the order of the panels."""


def named(values: Sequence[float], suffix: str = "") -> dict[str, float]:
    """Numbers for a caption, called low, middle, high or low, high."""
    names = ("low", "high") if len(values) == 2 else NAMES[: len(values)]
    return {f"{name}{suffix}": float(value) for name, value in zip(names, values, strict=True)}


def offsets(bake: Bake) -> np.ndarray:
    """(f, n) millimetres off plain skinning."""
    assert bake.plain is not None
    return 1e3 * lengths(bake.vertices - bake.plain)


def moment(bakes: Sequence[Bake]) -> int:
    """The frame at which the first and the last differ most, all over."""
    return int(lengths(bakes[0].vertices - bakes[-1].vertices).mean(axis=1).argmax())


def side_by_side(
    studio: Studio,
    bakes: Mapping[str, Bake],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
) -> Picture:
    """Plain skinning and bakes, by their words, at the moment at which the first and the last differ most.

    `caption` may use `time`, and `low` … `high`: how far the flesh is off plain skinning at most at that moment, mm.
    """
    found = list(bakes.values())
    at = moment(found)
    assert found[0].plain is not None
    panels = [Panel(found[0].plain[at], "plain skinning")]
    panels += [Panel(bake.vertices[at], words, offsets(bake)[at]) for words, bake in bakes.items()]
    told = named([offsets(bake)[at].max() for bake in found]) | {"time": float(found[0].times[at])}
    return Picture(row(studio.arm.triangles, panels, OFF), settings, caption, told | dict(numbers or {}))


def along_the_clip(
    bakes: Mapping[str, Bake],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
    *,
    on: np.ndarray | None = None,
) -> Picture:
    """Root mean square over the surface, or over the vertices `on`, of how far the flesh is off plain skinning.

    `caption` may use `low` … `high`: the largest of each curve, mm.
    """
    lines = []
    for words, bake in bakes.items():
        off = offsets(bake) if on is None else offsets(bake)[:, on]
        lines.append(Series(words, bake.times, np.sqrt((off**2).mean(axis=1))))
    told = named([line.y.max() for line in lines])
    image = chart(lines, "time, s", "off plain skinning, mm (r.m.s.)")
    return Picture(image, settings, caption, told | dict(numbers or {}))


def off_the_full(
    studio: Studio,
    models: Mapping[str, sr.PoseSpaceModel],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
    *,
    character: sr.Character | None = None,
) -> Picture:
    """How far models are off the full simulation along a clip that their builds did not see.

    `caption` may use `low` … `high`: the error over the clip, percent of the motion, and `motion`: its r.m.s., mm.
    """
    ours = studio.built(character or studio.unseen())
    damping = studio.damping(ours)
    truth = studio.truth(ours, damping)
    whole = _spread(truth)
    times = studio.times(len(truth))
    lines, errors = [], []
    for words, model in models.items():
        off = _spread(studio.reduced(model, damping) - truth)
        lines.append(Series(words, times[::3], 1e3 * off[::3]))
        errors.append(100.0 * np.sqrt((off**2).sum() / (whole**2).sum()))
    lines.append(Series("the full motion, off plain skinning", times[::3], 1e3 * whole[::3], dashed=True))
    told = named(errors) | {"motion": 1e3 * float(np.sqrt((whole**2).mean()))}
    image = chart(lines, f"time in the clip {CLIP}, s", "off the full simulation, mm (r.m.s.)")
    return Picture(image, settings, caption, told | dict(numbers or {}))


def _spread(motion: np.ndarray) -> np.ndarray:
    """(f,) root mean square over the vertices of vectors (f, n, 3)."""
    return np.asarray(np.sqrt((motion**2).sum(axis=2).mean(axis=1)))
