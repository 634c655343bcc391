"""The pictures that most settings have: the same moment of a clip with different values, or curves along the clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import softrig as sr
from parameter_pictures.look import Panel, around, chart, lengths, row, scale_of
from parameter_pictures.picture import Picture
from parameter_pictures.studio import CLIP, Studio
from softrig.render import Series
from softrig.simulation import Bake

OFF = "mm and more off plain skinning (blue line)"
FULL = "the full motion, off plain skinning"
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
    *,
    of: int = 0,
) -> Picture:
    """Plain skinning and bakes, by their words, at the moment at which bake `of` and the last differ most.

    Beneath each, magnified, where those two differ most; lines are the outline of plain skinning. Colours end where
    those of bake `of` and all after it do. `caption` may use `time`, and `low` … `high`: how far the flesh is off plain
    skinning at most at that moment, mm.
    """
    found = list(bakes.values())
    at = moment(found[of:])
    plain = found[0].plain
    assert plain is not None
    panels = [Panel(plain[at], "plain skinning")]
    panels += [soft_panel(bake, at, words) for words, bake in bakes.items()]
    near = around(plain[at], lengths(found[of].vertices[at] - found[-1].vertices[at]))
    told = named([offsets(bake)[at].max() for bake in found]) | {"time": float(found[0].times[at])}
    image = row(studio.arm.triangles, panels, OFF, near=near, most=scale_of(panels[1 + of :]))
    return Picture(image, settings, caption, told | dict(numbers or {}))


def off_the_last(
    studio: Studio,
    bakes: Mapping[str, Bake],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
) -> Picture:
    """Bakes, by their words, coloured by how far each is off the last, when and where the first is off it most.

    Lines are the outline of the last. `caption` may use `time`, and `low`, `high`: how far those before the last are
    off it at most at that moment, mm.
    """
    *found, last = bakes.values()
    at = moment([found[0], last])
    off = [1e3 * lengths(bake.vertices[at] - last.vertices[at]) for bake in bakes.values()]
    panels = [
        Panel(bake.vertices[at], words, each, plain=last.vertices[at], told=f"{each.max():.1f} mm" * bool(each.any()))
        for (words, bake), each in zip(bakes.items(), off, strict=True)
    ]
    near = around(last.vertices[at], off[0])
    told = named([each.max() for each in off[:-1]]) | {"time": float(last.times[at])}
    image = row(studio.arm.triangles, panels, f"mm and more off {list(bakes)[-1]} (blue line)", near=near)
    return Picture(image, settings, caption, told | dict(numbers or {}))


def soft_panel(bake: Bake, at: int, words: str, on: np.ndarray | None = None) -> Panel:
    """Frame `at` of a bake, coloured by how far it is off plain skinning, whose outline lies over it.

    The corner tells the most of all vertices, or of those where `on` (n,) is true.
    """
    assert bake.plain is not None
    off = offsets(bake)[at]
    most = (off if on is None else off[on]).max()
    return Panel(bake.vertices[at], words, off, plain=bake.plain[at], told=f"{most:.1f} mm")


def along_the_clip(
    bakes: Mapping[str, Bake],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
    *,
    on: np.ndarray | None = None,
    reference: str = "",
) -> Picture:
    """Root mean square over the surface, or over the vertices `on`, of how far the flesh is off plain skinning.

    The bake called `reference` is a black, dashed line. `caption` may use `low` … `high`: the largest of each, mm.
    """
    lines = []
    for words, bake in bakes.items():
        off = offsets(bake) if on is None else offsets(bake)[:, on]
        lines.append(Series(words, bake.times, np.sqrt((off**2).mean(axis=1)), dashed=words == reference))
    told = named([line.y.max() for line in lines])
    image = chart(lines, "time, s", "off plain skinning, mm (r.m.s.)", reference=reference)
    return Picture(image, settings, caption, told | dict(numbers or {}))


def off_the_full(
    studio: Studio,
    models: Mapping[str, sr.PoseSpaceModel],
    settings: tuple[str, ...],
    caption: str,
    numbers: Mapping[str, float] | None = None,
    *,
    dashed: Sequence[str] = (),
    beside: bool = True,
) -> Picture:
    """How far models are off the full simulation along a clip that their builds did not see.

    `dashed` names lines that lie on others and would hide them; `beside`: whether the full motion is drawn, beside
    which small errors are hardly seen.
    `caption` may use `low` … `high`: the error over the clip, percent of the motion, and `motion`: its r.m.s., mm.
    """
    ours = studio.built(studio.unseen())
    damping = studio.damping(ours)
    truth = studio.truth(ours, damping)
    whole = _spread(truth)
    times = studio.times(len(truth))
    lines, errors = [], []
    for words, model in models.items():
        off = _spread(studio.reduced(model, damping) - truth)
        lines.append(Series(words, times[::3], 1e3 * off[::3], dashed=words in dashed))
        errors.append(100.0 * np.sqrt((off**2).sum() / (whole**2).sum()))
    if beside:
        lines.append(Series(FULL, times[::3], 1e3 * whole[::3], dashed=True))
    told = named(errors) | {"motion": 1e3 * float(np.sqrt((whole**2).mean()))}
    image = chart(lines, f"time in the clip {CLIP}, s", "off the full simulation, mm (r.m.s.)", reference=FULL)
    return Picture(image, settings, caption, told | dict(numbers or {}))


def _spread(motion: np.ndarray) -> np.ndarray:
    """(f,) root mean square over the vertices of vectors (f, n, 3)."""
    return np.asarray(np.sqrt((motion**2).sum(axis=2).mean(axis=1)))
